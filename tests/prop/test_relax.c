/* The relaxation over all policies against the engine: no configuration of random policies, given
 * no more memory than it takes, is faster. HB_LONG=1 tries 50,000 configurations; HB_SEED begins
 * elsewhere. */
#include <math.h>

#include "tests/prop/seed.h"
#include "tests/prop/zoo_specs.h"

#include "hw/device.h"
#include "sim/engine/run.h"
#include "sim/graph/link.h"
#include "solver/bound.h"
#include "solver/menu.h"
#include "solver/relax.h"

enum { POLICIES_A_SPEC = 4, CONFIGURATIONS = 2000, LONG_CONFIGURATIONS = 50000 };

struct tally {
    int compared;
    int empty; /* without a bound */
    double *slack;
};

/* One of the four without names, or any set of tensors saved and offloaded. */
static struct hb_remat random_policy(struct hb_rng *rng, const struct hb_spec *spec,
                                     const struct hb_block *b)
{
    uint32_t tensors = hb_menu_tensors(b) | 1u << HB_TN_LAYER_IN;
    struct hb_remat r = {.policy = HB_POLICY_NAMES};
    if (chance(rng, 25))
        return (struct hb_remat){(enum hb_policy)hb_rng_range(rng, 0, 3), 0, 0};
    int often = (int)hb_rng_range(rng, 0, 100), away = (int)hb_rng_range(rng, 0, 100);
    for (int t = 0; t < HB_TN_COUNT; t++) {
        struct hb_remat sent = {HB_POLICY_NAMES, 0, 1u << t};
        if (!(tensors >> t & 1) || !chance(rng, often))
            continue;
        if (chance(rng, away) && hb_menu_compiles(spec, &sent))
            r.offload |= 1u << t;
        else
            r.save |= 1u << t;
    }
    return r;
}

/* Blocks under random policies, some of them in two runs with their own. */
static int draw_runs(struct hb_rng *rng, const struct hb_spec *spec, struct hb_block *runs)
{
    int count = 0;
    for (int i = 0; i < spec->model.block_count; i++) {
        const struct hb_block *b = &spec->model.blocks[i];
        int32_t steps = hb_block_steps(b);
        int32_t first =
            steps >= 4 && chance(rng, 50) ? (int32_t)hb_rng_range(rng, 2, steps - 2) : 0;
        for (int k = first ? 0 : 1; k < 2; k++, count++) {
            runs[count] = *b;
            runs[count].repeat = (k ? steps - first : first) * b->unit;
            runs[count].remat = random_policy(rng, spec, b);
            if (k == 0)
                runs[count].name = "first run";
        }
    }
    return count;
}

static void try_policies(struct hb_arena *arena, struct hb_rng *rng, const struct hb_spec *spec,
                         const struct hb_device *device, const char *text, struct tally *tally)
{
    struct hb_spec own = *spec;
    struct hb_diag diag;
    struct hb_program p;
    struct hb_memory m;
    struct hb_relax relax;
    size_t most = 2 * (size_t)spec->model.block_count;
    struct hb_block *blocks = hb_arena_alloc(arena, most, sizeof *blocks);
    int count = own.model.block_count = draw_runs(rng, spec, blocks);
    own.model.blocks = blocks;
    hb_diag_init(&diag, arena);
    if (!hb_link_lower(arena, &diag, &own, &p))
        return;
    hb_run_memory_live(arena, &p, &m);
    int64_t step_ns = hb_run_step_ns(arena, &p, device);
    struct hb_relax_ask ask = {.cell_spec = spec,
                               .device = device,
                               .budget_bytes = m.peak_bytes,
                               .host_bytes = m.host_bytes,
                               .layers_only = chance(rng, 30)};
    struct hb_floor floor;
    assert_true(hb_bound_cell(arena, spec, device, 0, &floor));
    ask.floor = ask.layers_only ? NULL : &floor;
    hb_relax_find(arena, &ask, &relax);
    tally->empty += relax.bound_ns == 0;
    if (relax.bound_ns > step_ns)
        for (int i = 0; i < count; i++)
            print_error("%s\nrun %d, %d layers: policy %d, saves %x, offloads %x: engine %lld, "
                        "bound %lld\n",
                        text, i, (int)blocks[i].repeat, (int)blocks[i].remat.policy,
                        blocks[i].remat.save, blocks[i].remat.offload, (long long)step_ns,
                        (long long)relax.bound_ns);
    assert_true(relax.bound_ns <= step_ns);
    if (relax.bound_ns > 0)
        tally->slack[tally->compared++] = 1 - (double)relax.bound_ns / (double)step_ns;
}

/* Attention whose scores are tensors. */
static void score_plainly(struct hb_arena *arena, struct hb_spec *spec)
{
    size_t count = (size_t)spec->model.block_count;
    struct hb_block *blocks = hb_arena_alloc(arena, count, sizeof *blocks);
    memcpy(blocks, spec->model.blocks, count * sizeof *blocks);
    for (size_t i = 0; i < count; i++)
        blocks[i].attention.kernel = HB_KERNEL_NAIVE;
    spec->model.blocks = blocks;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void try_specs(uint64_t seed, int wanted)
{
    struct hb_arena *arena = hb_arena_new();
    struct hb_rng rng = hb_rng_seed(seed);
    struct tally tally = {0};
    int specs = 0;
    tally.slack = hb_arena_alloc(arena, (size_t)wanted + POLICIES_A_SPEC, sizeof *tally.slack);
    while (tally.compared < wanted) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct hb_spec spec;
        struct hb_device device;
        struct hb_diag diag;
        const char *text = zoo_spec(arena, &rng, &spec);
        spec.stack.form = HB_FORM_SCAN;
        if (specs++ % 4 == 3)
            score_plainly(arena, &spec);
        spec.share = chance(&rng, 50) ? HB_SHARE_KEPT : HB_SHARE_ASKED;
        hb_diag_init(&diag, arena);
        assert_true(hb_device_load(arena, &diag, HB_SOURCE_DIR, spec.hardware.device,
                                   (struct hb_loc){0}, &device));
        bool lowered = draw_memory_about(arena, &rng, &spec);
        for (int i = 0; i < POLICIES_A_SPEC && lowered; i++)
            try_policies(arena, &rng, &spec, &device, text, &tally);
        hb_arena_rewind(arena, mark);
    }
    qsort(tally.slack, (size_t)tally.compared, sizeof *tally.slack, compare_doubles);
    print_message("# %d configurations (%d without a bound); slack: least %.3f %%, "
                  "median %.2f, p95 %.2f\n",
                  tally.compared, tally.empty, 100 * tally.slack[0],
                  100 * tally.slack[tally.compared / 2],
                  100 * tally.slack[tally.compared * 95 / 100]);
    assert_true(tally.empty < wanted);
    hb_arena_free(arena);
}

/* Scores in memory, of which XLA makes some again where all is: not where a policy keeps products.
 */
static void test_of_steps_made_again(void **state)
{
    (void)state;
    try_specs(78, 500);
}

static void test_is_below_the_engine(void **state)
{
    (void)state;
    try_specs(prop_seed(17), prop_cases_or(CONFIGURATIONS, LONG_CONFIGURATIONS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_of_steps_made_again),
                                       cmocka_unit_test(test_is_below_the_engine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
