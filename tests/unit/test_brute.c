/* The walk that leaves out what cannot be wanted, against one that leaves out nothing: of random
 * segments every configuration is priced by the sums (and replayed), sorted, and each page of the
 * best few is as the sorted list says, whatever the goal, the kind of time and the limits. */
#include "tests/prop/zoo_specs.h"

#include <stdlib.h>

#include "hw/device.h"
#include "solver/brute.h"
#include "solver/replay.h"
#include "solver/segment_order.h"
#include "tests/unit/made_segment.h"

enum { SPECS = 24, POLICIES = 4, MOST = 5, PAGES = 3, CONFIGURATIONS = 20000 };

struct priced {
    struct hb_price price;
    int64_t value;
    uint32_t place; /* in the walk over all */
    struct hb_part parts[HB_PARTS_MAX];
    uint32_t count;
};

struct sample {
    struct hb_arena *arena;
    struct hb_spec spec;
    struct hb_segment segment;
    struct hb_replay *replay;
    struct priced *all;
    uint32_t count, capacity;
};

static bool draw_sample(struct sample *s, struct hb_rng *rng)
{
    struct hb_diag diag;
    struct hb_device device;
    const char *why;
    zoo_spec(s->arena, rng, &s->spec);
    hb_diag_init(&diag, s->arena);
    assert_true(hb_device_load(s->arena, &diag, HB_SOURCE_DIR, s->spec.hardware.device,
                               (struct hb_loc){0}, &device));
    struct hb_menu *menus =
        hb_arena_alloc(s->arena, (size_t)s->spec.model.block_count, sizeof *menus);
    for (int i = 0; i < s->spec.model.block_count; i++) {
        struct hb_remat *r = hb_arena_alloc(s->arena, POLICIES, sizeof *r);
        for (uint32_t k = 0; k < POLICIES; k++)
            r[k] = k && chance(rng, 15) ? r[0] : zoo_remat(rng); /* what costs the same */
        menus[i] = (struct hb_menu){r, POLICIES};
    }
    struct hb_segment_ask ask = {.spec = &s->spec, .menus = menus, .device = &device};
    if (!hb_segment_build(s->arena, &ask, &s->segment, &why) ||
        hb_brute_count(&s->spec, menus, true) > CONFIGURATIONS)
        return false;
    s->replay = hb_replay_open(s->arena, &s->segment);
    return true;
}

static bool add_priced(void *context, const struct hb_part *parts, uint32_t count)
{
    struct sample *s = context;
    s->all = hb_grow(s->arena, s->all, s->count, &s->capacity, sizeof *s->all);
    struct priced *p = &s->all[s->count];
    *p = (struct priced){.place = s->count++, .count = count};
    memcpy(p->parts, parts, count * sizeof *parts);
    hb_segment_price(&s->segment, parts, count, &p->price);
    assert_int_equal(p->price.bound_ns, hb_segment_bound_ns(&s->segment, parts, count));
    assert_true(hb_segment_in_order(&s->segment, parts, count));
    return true;
}

static int64_t value_of(struct sample *s, const struct priced *p, const struct hb_brute_limits *l)
{
    int64_t ns = 0;
    if (l->goal == HB_GOAL_MEMORY)
        return p->price.live_bytes;
    if (l->time == HB_TIME_REPLAY)
        ns = hb_replay_bound_ns(s->replay, p->parts, p->count);
    if (l->time == HB_TIME_TURNS)
        ns = hb_replay_turns_ns(s->replay, p->parts, p->count);
    return ns > p->price.bound_ns ? ns : p->price.bound_ns;
}

static int by_value(const void *a, const void *b)
{
    const struct priced *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Those within the limits, best first. */
static struct priced *sort_all(struct sample *s, const struct hb_brute_limits *l,
                               uint32_t *out_count)
{
    struct priced *list = hb_arena_alloc(s->arena, (size_t)s->count + 1, sizeof *list);
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        struct priced *p = &s->all[i];
        if (p->price.live_bytes > l->budget_bytes || p->price.host_bytes > l->host_bytes)
            continue;
        p->value = value_of(s, p, l);
        if (p->value <= l->most_value)
            list[count++] = *p;
    }
    if (count)
        qsort(list, count, sizeof *list, by_value);
    *out_count = count;
    return list;
}

static void same_choice(const struct hb_brute_choice *c, const struct priced *p)
{
    assert_int_equal(c->value, p->value);
    assert_int_equal(c->count, p->count);
    for (uint32_t i = 0; i < p->count; i++)
        assert_true(c->parts[i].item == p->parts[i].item && c->parts[i].steps == p->parts[i].steps);
    assert_int_equal(c->price.live_bytes, p->price.live_bytes);
    assert_int_equal(c->price.host_bytes, p->price.host_bytes);
}

/* Page after page, each of as many as it asks for. */
static uint32_t check_pages(struct sample *s, struct hb_brute_limits l, uint32_t most)
{
    struct hb_brute_choice page[MOST];
    uint32_t count, at = 0;
    struct priced *list = sort_all(s, &l, &count);
    for (int n = 0; n < PAGES; n++) {
        uint32_t found = hb_brute_best(s->arena, &s->segment, &s->spec, &l, most, page);
        assert_int_equal(found, count - at < most ? count - at : most);
        for (uint32_t i = 0; i < found; i++)
            same_choice(&page[i], &list[at + i]);
        at += found;
        if (found < most || most == 1)
            break;
        l.after_value = page[found - 1].value;
        l.after_place = page[found - 1].place;
    }
    return at;
}

/* Some meet the limits and some do not; now and then all do, or none. */
static void draw_limits(struct sample *s, struct hb_rng *rng, struct hb_brute_limits *l)
{
    const struct priced *one = &s->all[hb_rng_range(rng, 0, s->count - 1)];
    const struct priced *other = &s->all[hb_rng_range(rng, 0, s->count - 1)];
    const struct priced *third = &s->all[hb_rng_range(rng, 0, s->count - 1)];
    *l = (struct hb_brute_limits){.budget_bytes = INT64_MAX,
                                  .host_bytes = INT64_MAX,
                                  .most_value = INT64_MAX,
                                  .after_value = -1};
    if (chance(rng, 70))
        l->budget_bytes = one->price.live_bytes - hb_rng_range(rng, 0, 1);
    if (chance(rng, 30))
        l->host_bytes = other->price.host_bytes - hb_rng_range(rng, 0, 1);
    l->goal = chance(rng, 20) ? HB_GOAL_MEMORY : HB_GOAL_TIME;
    l->time = HB_TIME_SUMS;
    if (s->replay)
        l->time = (enum hb_brute_time)hb_rng_range(rng, HB_TIME_REPLAY, HB_TIME_TURNS);
    if (chance(rng, 30))
        l->most_value = value_of(s, third, l) - hb_rng_range(rng, 0, 1);
}

static void the_best_are_those_of_all(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(71);
    uint32_t compared = 0, specs = 0;
    while (specs < SPECS) {
        struct sample s = {.arena = hb_arena_new()};
        if (draw_sample(&s, &rng)) {
            hb_brute_each(&s.segment, &s.spec, add_priced, &s);
            for (int n = 0; n < 6 && s.count; n++) {
                struct hb_brute_limits l;
                draw_limits(&s, &rng, &l);
                compared += check_pages(&s, l, MOST) + check_pages(&s, l, 1);
            }
            specs += s.count > 0;
        }
        hb_arena_free(s.arena);
    }
    print_message("# %u choices\n", compared);
    assert_true(compared > SPECS * 40);
}

/* --- segments that no program stands behind --- */

static void add_made(void *context, const struct hb_part *parts, uint32_t count)
{
    struct sample *s = context;
    s->all = hb_grow(s->arena, s->all, s->count, &s->capacity, sizeof *s->all);
    struct priced *p = &s->all[s->count];
    *p = (struct priced){.place = s->count++, .count = count};
    memcpy(p->parts, parts, count * sizeof *parts);
}

struct follow {
    const struct sample *s;
    uint32_t at;
};

static bool is_next(void *context, const struct hb_part *parts, uint32_t count)
{
    struct follow *f = context;
    assert_true(f->at < f->s->count);
    const struct priced *p = &f->s->all[f->at++];
    assert_int_equal(count, p->count);
    for (uint32_t i = 0; i < count; i++)
        assert_true(parts[i].item == p->parts[i].item && parts[i].steps == p->parts[i].steps);
    return true;
}

static bool is_first(void *context, const struct hb_part *parts, uint32_t count)
{
    (void)parts;
    (void)count;
    ++*(int *)context;
    return false;
}

/* Both walks go through what they should, in that order, and end when they are told to. */
static void check_walks(const struct made *m, struct sample *s)
{
    struct sample odd = {.arena = m->arena};
    struct made_walk all = {.m = m, .visit = add_made, .context = s};
    struct made_walk rest = {.m = m, .odd = true, .visit = add_made, .context = &odd};
    struct follow follow = {.s = s}, follow_odd = {.s = &odd};
    int visits = 0;
    made_each(&all);
    made_each(&rest);
    hb_brute_each(&m->s, &m->spec, is_next, &follow);
    hb_brute_each_odd(&m->s, &m->spec, is_next, &follow_odd);
    assert_int_equal(follow.at, s->count);
    assert_int_equal(follow_odd.at, odd.count);
    hb_brute_each(&m->s, &m->spec, is_first, &visits);
    assert_int_equal(visits, s->count > 0);
}

/* Of the last block where it is split: in each slot no more than the peak, in the peak's own all of
 * it; and the path. */
static void check_cuts(const struct made *m, const struct priced *p)
{
    const struct hb_part *one = &p->parts[p->count - 2], *other = one + 1;
    if (p->count < 2 || m->s.items[one->item].block != m->s.items[other->item].block ||
        m->s.items[one->item].block + 1 != (uint32_t)m->spec.model.block_count)
        return;
    struct hb_cuts_ask ask = {&m->s, p->parts, p->count - 2, one->item, other->item};
    struct hb_segment paths = m->s;
    paths.bounds[0] = 0;
    paths.bound_count = 1;
    for (uint32_t q = 0; q < m->s.slot_count; q++) {
        struct hb_segment_cuts cuts;
        hb_segment_cuts_open(&ask, q, &cuts);
        int64_t bytes = hb_segment_cut_bytes(&cuts, one->steps, other->steps);
        assert_int_equal(hb_segment_cut_ns(&cuts, one->steps, other->steps),
                         hb_segment_bound_ns(&paths, p->parts, p->count));
        assert_true(bytes <= p->price.live_bytes);
        if (q == p->price.peak_slot)
            assert_int_equal(bytes, p->price.live_bytes);
    }
}

static void check_prices(const struct made *m, struct sample *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct priced *p = &s->all[i];
        struct hb_price fits;
        hb_segment_price(&m->s, p->parts, p->count, &p->price);
        int64_t bytes = made_bytes(m, p->parts, p->count, HB_BYTES_DEVICE);
        assert_int_equal(p->price.live_bytes, bytes);
        assert_int_equal(p->price.host_bytes, made_bytes(m, p->parts, p->count, HB_BYTES_HOST));
        assert_int_equal(p->price.bound_ns, made_ns(m, p->parts, p->count));
        for (uint32_t q = 0; q < m->s.slot_count; q++) {
            uint32_t slot = q;
            assert_false(hb_segment_fits(&m->s, p->parts, p->count, bytes - 1, &slot, &fits));
            slot = q;
            assert_true(hb_segment_fits(&m->s, p->parts, p->count, bytes, &slot, &fits));
            assert_int_equal(slot, q);
            assert_int_equal(fits.live_bytes, bytes);
            assert_int_equal(fits.host_bytes, p->price.host_bytes);
            assert_int_equal(fits.peak_slot, p->price.peak_slot);
        }
        check_cuts(m, p);
    }
}

/* A walk of one's own, through the same ones from the end. */
static void walk_back(void *context, hb_brute_visit *visit, void *visit_context)
{
    const struct sample *s = context;
    for (uint32_t i = s->count; i-- > 0;)
        if (!visit(visit_context, s->all[i].parts, s->all[i].count))
            return;
}

static void check_other_walk(struct sample *s, const struct hb_brute_limits *l)
{
    const struct hb_brute_walk walk = {walk_back, s};
    struct hb_brute_choice best[MOST];
    uint32_t count;
    struct priced *list = sort_all(s, l, &count);
    uint32_t found = hb_brute_best_of(s->arena, &s->segment, &walk, l, MOST, best);
    assert_int_equal(found, count < MOST ? count : MOST);
    for (uint32_t i = 0; i < found; i++)
        assert_int_equal(best[i].value, list[i].value);
}

static void made_segments_are_priced_and_walked(void **state)
{
    (void)state;
    enum { SEGMENTS = 300 };
    struct hb_rng rng = hb_rng_seed(73);
    uint32_t compared = 0;
    for (int n = 0; n < SEGMENTS; n++) {
        struct made m = {.arena = hb_arena_new()};
        made_draw(&m, &rng);
        struct sample s = {.arena = m.arena, .spec = m.spec, .segment = m.s};
        check_walks(&m, &s);
        check_prices(&m, &s);
        for (int k = 0; k < 6 && s.count; k++) {
            struct hb_brute_limits l;
            draw_limits(&s, &rng, &l);
            compared += check_pages(&s, l, MOST) + check_pages(&s, l, 1);
            check_other_walk(&s, &l);
        }
        hb_arena_free(m.arena);
    }
    print_message("# %u choices\n", compared);
    assert_true(compared > SEGMENTS * 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_best_are_those_of_all),
                                       cmocka_unit_test(made_segments_are_priced_and_walked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
