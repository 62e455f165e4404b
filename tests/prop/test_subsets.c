/* All sets of tensors of a block, saved, offloaded or made again, run one by one: none is below
 * what the plan says that nothing is below, and the plan is hardly ever above the best of them.
 * HB_LONG=1 tries 60 spaces; HB_SEED begins elsewhere. */
#include "tests/prop/seed.h"
#include "tests/prop/zoo_specs.h"

#include "hw/device.h"
#include "sim/engine/run.h"
#include "sim/graph/link.h"
#include "solver/menu.h"
#include "solver/plan.h"

enum { SPACES = 3, LONG_SPACES = 60 };

static const char *random_text(struct hb_arena *arena, struct hb_rng *rng)
{
    static const char *const devices[] = {"tpu-v5p", "tpu-v6e", "nvidia-h100", "amd-mi300x"};
    int64_t device = hb_rng_range(rng, 0, 3), heads = 8 << hb_rng_range(rng, 0, 2);
    struct hb_str s;
    hb_str_init(&s, arena);
    hb_str_addf(&s,
                "model:\n  d_model: %lld\n  vocab: 8192\n  blocks:\n    - {name: a, repeat: %lld, "
                "attention: {heads: %lld, kv_heads: %lld}, mlp: {d_ff: %lld}}\n",
                (long long)(heads * 64), (long long)hb_rng_range(rng, 2, 24), (long long)heads,
                (long long)(heads / 2), (long long)(heads * 256));
    hb_str_addf(&s, "batch: {global: 32, seq: %lld}\nmesh: {fsdp: 4}\n",
                (long long)(512 << hb_rng_range(rng, 0, 3)));
    hb_str_addf(&s,
                "hardware: {device: %s, count: 4}\ncompiler: %s\nplan: {search: {remat: true}}\n",
                devices[device], device < 2 ? "xla-tpu" : "xla-gpu");
    return s.text;
}

/* The fastest that fits of all policies for the whole block; INT64_MAX: none fits. */
static int64_t best_of_all(struct hb_arena *arena, const struct hb_plan_ask *ask, int *out_tried)
{
    struct hb_block block = ask->spec->model.blocks[0];
    struct hb_spec spec = *ask->spec;
    uint32_t tensors = hb_menu_tensors(&block), count = 1;
    int64_t best = INT64_MAX;
    spec.model.blocks = &block;
    for (int t = 0; t < HB_TN_COUNT; t++)
        count *= tensors >> t & 1 ? 3 : 1;
    for (uint32_t k = 0; k < count; k++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct hb_diag diag;
        struct hb_program p;
        struct hb_memory m;
        uint32_t left = k;
        block.remat = (struct hb_remat){.policy = HB_POLICY_NAMES};
        for (int t = 0; t < HB_TN_COUNT; t++) {
            if (!(tensors >> t & 1))
                continue;
            block.remat.save |= left % 3 == 1 ? 1u << t : 0;
            block.remat.offload |= left % 3 == 2 ? 1u << t : 0;
            left /= 3;
        }
        hb_diag_init(&diag, arena);
        if (hb_menu_compiles(&spec, &block.remat) && hb_link_lower(arena, &diag, &spec, &p)) {
            hb_run_memory(arena, &p, &m);
            bool fits = m.peak_bytes <= ask->budget_bytes && m.host_bytes <= ask->host_bytes;
            int64_t ns = fits ? hb_run_step_ns(arena, &p, ask->device) : INT64_MAX;
            best = ns < best ? ns : best;
            ++*out_tried;
        }
        hb_arena_rewind(arena, mark);
    }
    return best;
}

/* A budget between the leanest policy's and the largest's. */
static int64_t random_budget(struct hb_arena *arena, struct hb_rng *rng, const struct hb_spec *spec)
{
    int64_t peaks[2];
    for (int i = 0; i < 2; i++) {
        struct hb_block block = spec->model.blocks[0];
        struct hb_spec own = *spec;
        struct hb_diag diag;
        struct hb_program p;
        struct hb_memory m;
        block.remat = (struct hb_remat){i ? HB_POLICY_NONE : HB_POLICY_FULL, 0, 0};
        own.model.blocks = &block;
        hb_diag_init(&diag, arena);
        assert_true(hb_link_lower(arena, &diag, &own, &p));
        hb_run_memory(arena, &p, &m);
        peaks[i] = m.peak_bytes;
    }
    int64_t low = peaks[0] < peaks[1] ? peaks[0] : peaks[1];
    return hb_rng_range(rng, low, low + (peaks[1] > peaks[0] ? peaks[1] - peaks[0] : low / 8));
}

static void test_nothing_is_below_the_gap(void **state)
{
    (void)state;
    struct unit u;
    struct hb_rng rng = hb_rng_seed(prop_seed(417));
    int wanted = prop_cases_or(SPACES, LONG_SPACES), tried = 0, reached = 0;
    double worst = 0, gap = 0;
    unit_start(&u);
    for (int i = 0; i < wanted; i++) {
        struct hb_arena_mark mark = hb_arena_mark(u.env.arena);
        struct hb_spec spec;
        struct hb_device device;
        struct hb_diag diag;
        struct hb_node *root;
        struct hb_plan plan;
        const char *text = random_text(u.env.arena, &rng);
        hb_diag_init(&diag, u.env.arena);
        assert_true(hb_yaml_parse(u.env.arena, &diag, "random", text, strlen(text), &root));
        assert_true(hb_schema_from_node(u.env.arena, &diag, root, HB_SOURCE_DIR, &spec));
        assert_true(hb_device_load(u.env.arena, &u.diag, HB_SOURCE_DIR, spec.hardware.device,
                                   (struct hb_loc){0}, &device));
        struct hb_plan_ask ask;
        hb_plan_ask_make(&u.env, &spec, &device, &ask);
        ask.objective = HB_OBJ_STEP_TIME;
        ask.budget_bytes = random_budget(u.env.arena, &rng, &spec);
        int64_t best = best_of_all(u.env.arena, &ask, &tried);
        assert_true(hb_plan_find(u.env.arena, &ask, &plan));
        assert_true(plan.found || best == INT64_MAX);
        if (plan.found) {
            double above = plan.best.value / (double)best - 1;
            assert_true(plan.best.value * (1 - plan.gap) <= (double)best);
            assert_true(plan.status == (plan.gap > 0 ? HB_PLAN_BEST : HB_PLAN_OPTIMAL));
            reached += above <= 0;
            worst = above > worst ? above : worst;
            gap += plan.gap;
        }
        hb_arena_rewind(u.env.arena, mark);
    }
    print_message("# %d spaces, %d configurations run: %d plans as good as the best of them or "
                  "better, the worst %.3f %% above; mean gap %.2f %%\n",
                  wanted, tried, reached, 100 * worst, 100 * gap / wanted);
    assert_true(worst < 0.01);
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_is_below_the_gap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
