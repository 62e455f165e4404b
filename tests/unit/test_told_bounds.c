/* What the search knows of a cell, figure by figure: floors, relaxations, a segment's sums and
 * prices of CONFIGS configurations of any keys. tests/golden/bounds.told has a line of each: its
 * seed, the longest floor and the least bytes, and a checksum of all that is found (HB_SEED=N
 * prints it of one). That no bound is too high other tests say; this one says that none was moved
 * unseen. HB_UPDATE=1 (make golden-update) takes what is found now as right. */
#include <math.h>

#include "tests/prop/seed.h"

#include "tests/prop/random_config.h"
#include "tests/unit/told.h"

#include "base/file.h"
#include "base/str.h"
#include "hw/device.h"
#include "sim/engine/run.h"
#include "sim/graph/link.h"
#include "solver/bound.h"
#include "solver/brute.h"
#include "solver/ilp.h"
#include "solver/relax.h"
#include "solver/replay.h"
#include "solver/screen.h"

enum { CONFIGS = 600, POLICIES = 3, PRICES = 60, REPLAYED_EACH = 12, LAYERS = 2 };
#define TOLD HB_SOURCE_DIR "/tests/golden/bounds.told"

struct cell {
    struct hb_arena *arena;
    struct hb_spec spec;
    struct hb_device device;
    struct hb_menu *menus;
    struct hb_str out;
};

static void put_floor(struct cell *c, const char *name, bool found, const struct hb_floor *f)
{
    const int64_t rest[] = {f->ends_ns,
                            f->layers_ns,
                            f->wait_ns,
                            f->idle_ns,
                            f->again_ns,
                            f->tail_ns,
                            f->fixed_bytes,
                            f->state_bytes,
                            f->forward_ns,
                            f->links_ns,
                            llround(f->products_ns)};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        sum = told_mix(sum, rest[i]);
    if (found)
        hb_str_addf(&c->out, " %s %lld %lld %08llx", name, (long long)f->bound_ns,
                    (long long)f->live_bytes, (unsigned long long)(sum >> 32));
}

static void put_floors(struct cell *c, struct hb_floor *out_cell)
{
    struct hb_floor f = {0};
    struct hb_bound_limits all = {INT64_MAX, 0};
    bool found = hb_bound_node(c->arena, &c->spec, &c->device, all, &f);
    put_floor(c, "node", found, &f);
    found = hb_bound_backward(c->arena, &c->spec, &c->device, INT64_MAX, &f);
    put_floor(c, "backward", found, &f);
    struct hb_spec other = c->spec;
    other.batch.global *= 2;
    hb_str_addf(&c->out, " alike %lld",
                found ? (long long)hb_bound_alike(&f, &c->spec, &other) : 0);
    f = (struct hb_floor){0};
    put_floor(c, "path", hb_bound_path(c->arena, &c->spec, &c->device, &f), &f);
    *out_cell = (struct hb_floor){0};
    put_floor(c, "cell", hb_bound_cell(c->arena, &c->spec, &c->device, 0, out_cell), out_cell);
}

/* Seven digits of the linear programs: the solver's last are its own. */
static void put_relaxed(struct cell *c, const struct hb_floor *floor, double part, bool layers_only)
{
    struct hb_relax out;
    struct hb_relax_ask ask = {.cell_spec = &c->spec,
                               .device = &c->device,
                               .budget_bytes = (int64_t)((double)floor->live_bytes * part),
                               .host_bytes = layers_only ? INT64_MAX : floor->live_bytes,
                               .floor = layers_only ? NULL : floor,
                               .layers_only = layers_only};
    hb_relax_find(c->arena, &ask, &out);
    hb_str_addf(&c->out, " %.7g/%u/%u", (double)out.bound_ns, out.rows, out.columns);
}

/* That of the floors, then any tensors kept. */
static void draw_menus(struct cell *c, uint64_t seed)
{
    struct hb_rng rng = hb_rng_seed(seed);
    size_t count = (size_t)c->spec.model.block_count;
    c->menus = hb_arena_alloc(c->arena, count, sizeof *c->menus);
    for (size_t i = 0; i < count; i++) {
        struct hb_remat *list = hb_arena_alloc(c->arena, POLICIES, sizeof *list);
        uint32_t any = (1u << HB_TN_ITER_IN) - 1;
        list[0] = hb_segment_floor_policy();
        list[1] = (struct hb_remat){(enum hb_policy)hb_rng_range(&rng, 0, 3), 0, 0};
        list[2] = (struct hb_remat){.policy = HB_POLICY_NAMES};
        list[2].offload = hb_rng_next(&rng) & hb_rng_next(&rng) & any;
        list[2].save = hb_rng_next(&rng) & any & ~list[2].offload;
        c->menus[i] = (struct hb_menu){list, POLICIES};
        if (hb_block_steps(&c->spec.model.blocks[i]) == 1)
            c->menus[i] = (struct hb_menu){&c->spec.model.blocks[i].remat, 1};
    }
}

struct walk {
    struct hb_arena *arena;
    const struct hb_segment *segment;
    struct hb_replay *replay;
    struct hb_screen *screens[2]; /* of the step and of the turns, around the first parts */
    uint64_t sum;
    uint32_t count;
    int64_t least_bytes, most_bytes;
};

static bool price_one(void *context, const struct hb_part *parts, uint32_t count)
{
    struct walk *w = context;
    struct hb_price price;
    hb_segment_price(w->segment, parts, count, &price);
    const int64_t own[] = {price.live_bytes, price.host_bytes, price.bound_ns, price.peak_slot};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        w->sum = told_mix(w->sum, own[i]);
    if (w->replay && w->count % REPLAYED_EACH == 0) {
        w->sum = told_mix(w->sum, hb_replay_bound_ns(w->replay, parts, count));
        w->sum = told_mix(w->sum, hb_replay_turns_ns(w->replay, parts, count));
        for (int k = 0; k < 2; k++) {
            if (!w->screens[k])
                w->screens[k] = hb_screen_open(w->arena, w->replay, k, parts, count);
            w->sum = told_mix(w->sum, hb_screen_ns(w->screens[k], parts, count));
        }
    }
    w->least_bytes = w->count ? hb_smaller(w->least_bytes, price.live_bytes) : price.live_bytes;
    w->most_bytes = hb_larger(w->most_bytes, price.live_bytes);
    return ++w->count < PRICES;
}

static void put_layers(struct cell *c, const struct hb_segment *s, const struct walk *w)
{
    for (int i = 0; i < LAYERS; i++) {
        struct hb_layers_ask ask = {.cell_spec = &c->spec,
                                    .menus = c->menus,
                                    .device = &c->device,
                                    .fixed_bytes = i ? s->fixed[HB_BYTES_DEVICE] : 0,
                                    .budget_bytes =
                                        i ? w->least_bytes : (w->least_bytes + w->most_bytes) / 2,
                                    .host_bytes = i ? INT64_MAX : INT64_C(1) << 33,
                                    .most_ns = INT64_MAX,
                                    .any_share = hb_bound_is_dense(&c->spec)};
        bool scan = c->spec.stack.form == HB_FORM_SCAN && c->spec.mesh[HB_AX_PIPELINE] == 1;
        int64_t layers_ns = scan ? hb_bound_layers(c->arena, &ask) : 0;
        int64_t turns_ns = w->replay ? hb_bound_turns(c->arena, s, &ask) : 0;
        hb_str_addf(&c->out, " %lld/%lld", (long long)layers_ns, (long long)turns_ns);
    }
}

/* Integer programs of it, and what is proven of them: of the time within what some need, of the
 * memory. */
static void put_programs(struct cell *c, const struct hb_segment *s, const struct walk *w)
{
    for (int i = 0; i < 2; i++) {
        struct hb_ilp_ask ask = {.segment = s, .spec = &c->spec};
        struct hb_ilp_answer answer;
        ask.limits = (struct hb_brute_limits){.goal = i ? HB_GOAL_MEMORY : HB_GOAL_TIME,
                                              .time = HB_TIME_SUMS,
                                              .budget_bytes = (w->least_bytes + w->most_bytes) / 2,
                                              .host_bytes = INT64_MAX,
                                              .most_value = INT64_MAX,
                                              .after_value = -1};
        hb_ilp_solve(c->arena, &ask, &answer);
        hb_str_addf(&c->out, " program %d %.6g %d %u/%u", (int)answer.status, (double)answer.bound,
                    answer.proven, answer.rows, answer.columns);
        if (answer.status == HB_ILP_OPTIMAL)
            hb_str_addf(&c->out, " %d", hb_ilp_proves(c->arena, &ask, answer.objective * 0.9));
    }
}

static void put_segment(struct cell *c)
{
    struct hb_segment s;
    const char *why;
    struct hb_segment_ask ask = {.spec = &c->spec, .menus = c->menus, .device = &c->device};
    if (!hb_segment_build(c->arena, &ask, &s, &why))
        return;
    struct walk w = {.arena = c->arena, .segment = &s};
    w.replay = s.timed ? hb_replay_open(c->arena, &s) : NULL;
    uint32_t odd = 0;
    for (uint32_t i = 0; i < s.item_count; i++)
        odd = odd << 3 ^ odd >> 29 ^
              (uint32_t)(s.odd_whole[i] | s.odd_split[i] << 1 | s.odd_last[i] << 2);
    hb_brute_each(&s, &c->spec, price_one, &w);
    hb_str_addf(&c->out, " segment %u/%u/%u/%u odd %o prices %u %lld %016llx layers", s.slot_count,
                s.high_count[HB_BYTES_DEVICE], s.high_count[HB_BYTES_HOST], s.bound_count, odd,
                w.count, (long long)w.most_bytes, (unsigned long long)w.sum);
    put_layers(c, &s, &w);
    if (w.count > 1)
        put_programs(c, &s, &w);
}

/* False: there is no search of it. */
static bool tell(struct hb_arena *arena, uint64_t seed, struct cell *c, struct hb_floor *floor)
{
    struct config drawn;
    struct hb_diag diag;
    *c = (struct cell){.arena = arena};
    hb_diag_init(&diag, arena);
    hb_str_init(&c->out, arena);
    random_config(arena, seed, &drawn, &c->spec);
    if (c->spec.compiler == HB_TORCH)
        return false;
    c->spec.share = seed % 2 ? HB_SHARE_KEPT : HB_SHARE_EXCEEDED; /* as a search takes it */
    assert_true(hb_device_load(arena, &diag, HB_SOURCE_DIR, c->spec.hardware.device,
                               (struct hb_loc){0}, &c->device));
    put_floors(c, floor);
    hb_str_add(&c->out, " relaxed");
    put_relaxed(c, floor, 1.02, false);
    put_relaxed(c, floor, 1.2, false);
    put_relaxed(c, floor, 2, false);
    put_relaxed(c, floor, 1.2, true);
    draw_menus(c, seed);
    put_segment(c);
    return true;
}

static const char *line_of(struct hb_arena *arena, uint64_t seed, bool whole)
{
    struct hb_floor floor;
    struct cell c;
    uint64_t sum = 0;
    if (!tell(arena, seed, &c, &floor))
        return hb_arena_printf(arena, "%llu\n", (unsigned long long)seed);
    for (size_t i = 0; i < c.out.len; i++)
        sum = told_mix(sum, c.out.text[i]);
    if (whole)
        print_message("# %llu%s\n", (unsigned long long)seed, c.out.text);
    return hb_arena_printf(arena, "%llu %lld %lld %08llx\n", (unsigned long long)seed,
                           (long long)floor.bound_ns, (long long)floor.live_bytes,
                           (unsigned long long)(sum >> 32));
}

static void bounds_are_as_they_were(void **state)
{
    (void)state;
    uint64_t only = getenv("HB_SEED") ? prop_seed(0) : 0;
    struct told told = told_open(TOLD);
    for (uint64_t seed = 1; seed <= CONFIGS && told_goes_on(&told); seed++) {
        struct hb_arena *arena = hb_arena_new();
        told_line(&told, line_of(arena, seed, seed == only));
        hb_arena_free(arena);
    }
    told_close(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_are_as_they_were)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
