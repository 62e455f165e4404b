/* How far each bound is below the engine's step, in the mean of random configurations that are
 * always the same: none is above, and none is farther below or nearer than it was. So a bound that
 * lost a part of what it knows is seen, which no test of its soundness sees, and one that claims
 * more than it did, which is no more sound for it. The same of what segments pass over. Who changes
 * what steps take takes the figures that are printed, after a look at why. */
#include "tests/prop/zoo_specs.h"

#include <math.h>

#include "base/size.h"
#include "hw/device.h"
#include "sim/engine/run.h"
#include "sim/graph/link.h"
#include "solver/bound.h"
#include "solver/brute.h"
#include "solver/relax.h"
#include "solver/replay.h"
#include "solver/space.h"

enum { SPECS = 100, POLICIES = 4, TRIES = 3 };

enum bound { SUMS, TURNS, REPLAY, NODE, BACKWARD, CELL, LAYERS, RELAXED, TIGHT, BYTES, BOUNDS };
static const char *const names[BOUNDS] = {"sums", "turns",  "replay",  "node",  "backward",
                                          "cell", "layers", "relaxed", "tight", "bytes"};

/* By whether scans are nested. */
static const double known[2][BOUNDS] = {
    {0.96835009, 0.85574924, 0.98826830, 0.75651471, 0.61491655, 0.87933237, 0.02262562, 0.81973283,
     0.89514881, 0.45413205},
    {0.92463300, 0.86211071, 0.97324779, 0.60638617, 0.52638115, 0.66334897, 0.02538955, 0, 0,
     0.53152351},
};

/* Items that are odd where they are whole, first of two and last of two (segment.h). */
enum { WHOLE, SPLIT, LAST, ODDS };
static const int known_odd[ODDS] = {25, 17, 2};

struct tally {
    double sums[2][BOUNDS];
    int counts[2];
    int odd[ODDS], items;
};

struct sample {
    struct hb_arena *arena;
    struct hb_spec spec;
    struct hb_device device;
    struct hb_menu *menus;
    struct hb_segment segment;
    struct hb_part parts[HB_PARTS_MAX];
    uint32_t count;
    int64_t left; /* configurations to pass over */
};

static bool draw_sample(struct sample *s, struct hb_rng *rng)
{
    struct hb_diag diag;
    const char *why;
    zoo_spec(s->arena, rng, &s->spec);
    hb_diag_init(&diag, s->arena);
    assert_true(hb_device_load(s->arena, &diag, HB_SOURCE_DIR, s->spec.hardware.device,
                               (struct hb_loc){0}, &s->device));
    s->menus = zoo_menus(s->arena, rng, &s->spec.model, POLICIES);
    struct hb_segment_ask ask = {.spec = &s->spec, .menus = s->menus, .device = &s->device};
    return hb_segment_build(s->arena, &ask, &s->segment, &why) && s->segment.timed;
}

static void count_odd(const struct hb_segment *s, struct tally *tally)
{
    for (uint32_t i = 0; i < s->item_count; i++) {
        tally->odd[WHOLE] += s->odd_whole[i];
        tally->odd[SPLIT] += s->odd_split[i];
        tally->odd[LAST] += s->odd_last[i];
        tally->items++;
    }
}

static bool count_one(void *context, const struct hb_part *parts, uint32_t count)
{
    (void)parts;
    (void)count;
    ((struct sample *)context)->left++;
    return true;
}

static bool take_one(void *context, const struct hb_part *parts, uint32_t count)
{
    struct sample *s = context;
    memcpy(s->parts, parts, count * sizeof *parts);
    s->count = count;
    return s->left-- > 0;
}

static void check_layers(const struct sample *s, const struct hb_spec *whole,
                         const struct hb_memory *m, int64_t *out_ns)
{
    struct hb_spec plain = s->spec;
    struct hb_floor fixed;
    struct hb_menu *menus =
        hb_arena_alloc(s->arena, (size_t)s->spec.model.block_count, sizeof *menus);
    *out_ns = 0;
    if (whole->model.block_count != s->spec.model.block_count)
        return;
    for (int i = 0; i < s->spec.model.block_count; i++)
        menus[i] = (struct hb_menu){&whole->model.blocks[i].remat, 1};
    plain.loss.chunks = 1;
    plain.optimizer.offload = HB_PLACE_NONE;
    assert_true(hb_bound_node(s->arena, &s->spec, &s->device,
                              (struct hb_bound_limits){INT64_MAX, 0}, &fixed));
    struct hb_layers_ask ask = {.cell_spec = &plain,
                                .menus = menus,
                                .device = &s->device,
                                .fixed_bytes = fixed.fixed_bytes,
                                .budget_bytes = m->peak_bytes,
                                .host_bytes = m->host_bytes,
                                .most_ns = INT64_MAX};
    *out_ns = hb_bound_layers(s->arena, &ask);
}

/* What is said of the configuration, and last of its bytes. */
static void find_bounds(struct sample *s, const struct hb_spec *whole, const struct hb_memory *m,
                        int64_t step_ns, int64_t *ns)
{
    struct hb_replay *replay = hb_replay_open(s->arena, &s->segment);
    struct hb_floor node, backward, cell;
    struct hb_relax relaxed;
    struct hb_bound_limits limits = {m->peak_bytes, 0};
    assert_true(hb_bound_node(s->arena, &s->spec, &s->device, limits, &node));
    assert_true(hb_bound_backward(s->arena, &s->spec, &s->device, m->peak_bytes, &backward));
    assert_true(hb_bound_cell(s->arena, &s->spec, &s->device, 0, &cell));
    struct hb_relax_ask ask = {&s->spec, &s->device, m->peak_bytes, m->host_bytes, &cell, false};
    hb_relax_find(s->arena, &ask, &relaxed);
    ns[SUMS] = hb_segment_bound_ns(&s->segment, s->parts, s->count);
    ns[TURNS] = hb_replay_turns_ns(replay, s->parts, s->count);
    ns[REPLAY] = hb_replay_bound_ns(replay, s->parts, s->count);
    ns[NODE] = node.bound_ns;
    ns[BACKWARD] = backward.bound_ns;
    ns[CELL] = cell.bound_ns;
    check_layers(s, whole, m, &ns[LAYERS]);
    ns[RELAXED] = relaxed.bound_ns;
    ask.budget_bytes = m->peak_bytes / 4 * 3;
    hb_relax_find(s->arena, &ask, &relaxed);
    assert_true(relaxed.bound_ns >= ns[RELAXED]);
    ns[TIGHT] = hb_smaller(relaxed.bound_ns, 2 * step_ns); /* as none fits */
    ns[BYTES] = cell.live_bytes;
}

static void try_one(struct sample *s, struct hb_rng *rng, struct tally *tally)
{
    struct hb_run runs[HB_PARTS_MAX];
    struct hb_spec whole;
    struct hb_diag diag;
    struct hb_program p;
    struct hb_memory m;
    int64_t ns[BOUNDS];
    s->left = 0;
    hb_brute_each(&s->segment, &s->spec, count_one, s);
    if (s->left == 0)
        return;
    s->left = hb_rng_range(rng, 0, s->left - 1);
    hb_brute_each(&s->segment, &s->spec, take_one, s);
    uint32_t count = hb_brute_runs(&s->segment, &s->spec, s->parts, s->count, runs);
    hb_space_parts_spec(s->arena, &s->spec, s->menus, runs, count, &whole);
    hb_diag_init(&diag, s->arena);
    assert_true(hb_link_lower(s->arena, &diag, &whole, &p));
    hb_run_memory_live(s->arena, &p, &m);
    int64_t step_ns = hb_run_step_ns(s->arena, &p, &s->device);
    int nested = s->spec.stack.form == HB_FORM_NESTED;
    find_bounds(s, &whole, &m, step_ns, ns);
    for (int b = 0; b < BOUNDS; b++) {
        int64_t most = b == BYTES ? m.peak_bytes : step_ns;
        assert_true(ns[b] <= most || b == TIGHT);
        tally->sums[nested][b] += (double)ns[b] / (double)most;
    }
    tally->counts[nested]++;
}

static void bounds_are_as_close_as_they_were(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(89);
    struct tally tally = {0};
    for (int specs = 0; specs < SPECS;) {
        struct sample s = {.arena = hb_arena_new()};
        if (draw_sample(&s, &rng)) {
            count_odd(&s.segment, &tally);
            for (int i = 0; i < TRIES; i++)
                try_one(&s, &rng, &tally);
            specs++;
        }
        hb_arena_free(s.arena);
    }
    int moved = 0;
    for (int nested = 0; nested < 2; nested++)
        for (int b = 0; b < BOUNDS; b++) {
            double mean = tally.sums[nested][b] / tally.counts[nested];
            print_message("# %s of %d %s: %.8f\n", names[b], tally.counts[nested],
                          nested ? "nested" : "scans", mean);
            moved += !(fabs(mean - known[nested][b]) <= 2e-8);
        }
    for (int i = 0; i < ODDS; i++) {
        print_message("# odd %d: %d of %d\n", i, tally.odd[i], tally.items);
        moved += tally.odd[i] != known_odd[i];
    }
    assert_int_equal(moved, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_are_as_close_as_they_were)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
