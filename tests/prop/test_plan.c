/* The planner against brute force on random small instances: both must agree on whether there is a
 * plan and on its value, and the plan, run again, fits. HB_LONG=1 in the environment tries 2,000
 * instances instead of 40. */
#include <math.h>

#include "tests/prop/seed.h"
#include "tests/prop/spaces.h"

#include "sim/engine/result.h"
#include "sim/engine/run.h"
#include "sim/graph/link.h"
#include "solver/menu.h"
#include "solver/plan.h"
#include "solver/search.h"

static const char *random_text(struct hb_arena *arena, struct hb_rng *rng)
{
    static const char *const devices[] = {"tpu-v5p", "tpu-v6e", "nvidia-h100", "amd-mi300x"};
    static const char *const objectives[] = {"tokens_per_second", "step_time", "memory"};
    int64_t device = hb_rng_range(rng, 0, 3), count = 1 << hb_rng_range(rng, 0, 3);
    int64_t heads = 1 << hb_rng_range(rng, 1, 3), width = heads * 64 * hb_rng_range(rng, 1, 4);
    bool moe = chance(rng, 25), two = chance(rng, 30);
    struct hb_str s;
    hb_str_init(&s, arena);
    const char *mlp = moe ? "moe: {experts: 4, top_k: 2, d_ff: 512}" : "mlp: {d_ff: 2048}";
    hb_str_addf(&s, "model:\n  d_model: %lld\n  vocab: %lld\n  blocks:\n", (long long)width,
                (long long)(1024 * hb_rng_range(rng, 1, 16)));
    hb_str_addf(&s, "    - {name: a, repeat: %lld, attention: {heads: %lld, kv_heads: %lld}, %s}\n",
                (long long)hb_rng_range(rng, 1, 6), (long long)heads, (long long)(heads / 2), mlp);
    if (two)
        hb_str_addf(&s,
                    "    - {name: b, repeat: %lld, attention: {heads: %lld}, mlp: {d_ff: 1024}}\n",
                    (long long)hb_rng_range(rng, 1, 4), (long long)heads);
    hb_str_addf(&s, "batch: {global: %lld, seq: %lld}\n", (long long)(count * 8),
                (long long)(256 << hb_rng_range(rng, 0, 2)));
    hb_str_addf(&s, "mesh: {fsdp: %lld}\nhardware: {device: %s, count: %lld}\n", (long long)count,
                devices[device], (long long)count);
    hb_str_addf(&s, "compiler: %s\nplan:\n  objective: %s\n  search: {remat: %s",
                device < 2 ? "xla-tpu" : "xla-gpu", objectives[hb_rng_range(rng, 0, 2)],
                chance(rng, 85) ? "true" : "false");
    if (chance(rng, 60))
        hb_str_add(&s, ", mesh: [fsdp, tensor, pipeline]");
    if (chance(rng, 40))
        hb_str_add(&s, ", stack: [scan, nested]");
    if (chance(rng, 40))
        hb_str_add(&s, ", optimizer_offload: [none, pinned_host]");
    if (chance(rng, 40))
        hb_str_add(&s, ", loss_chunks: [1, 4]");
    if (chance(rng, 40))
        hb_str_add(&s, ", batch: {accumulate: [1, 2]}");
    hb_str_add(&s, "}\n");
    return s.text;
}

static bool read_instance(struct hb_arena *arena, const char *text, struct hb_spec *spec)
{
    struct hb_diag diag;
    struct hb_node *root;
    hb_diag_init(&diag, arena);
    return hb_yaml_parse(arena, &diag, "random", text, strlen(text), &root) &&
           hb_schema_from_node(arena, &diag, root, HB_SOURCE_DIR, spec) &&
           hb_spec_supported(&diag, NULL, spec);
}

struct counts {
    int agreed;
    int infeasible;
    int cut;
    int better; /* where a policy outside of the menus was */
    int turned; /* neighbours of plans that were run */
    int nested; /* with a pipeline, whose nested scans were compared */
    double configurations;
};

static double value_with(struct hb_arena *arena, const struct hb_plan_ask *ask,
                         int64_t budget_bytes, const struct hb_plan *like,
                         const struct hb_plan *above, struct hb_plan *out)
{
    struct hb_plan_ask again = *ask;
    again.budget_bytes = budget_bytes;
    again.like = like;
    again.above = above;
    assert_true(hb_plan_find(arena, &again, out));
    assert_true(out->found);
    return out->best.value;
}

/* Larger budgets, each searched by itself and after a larger one: the same value. */
static void check_above(struct hb_arena *arena, const struct hb_plan_ask *ask,
                        const struct hb_plan *plan)
{
    struct hb_plan above, below, alone;
    int64_t small = ask->budget_bytes + ask->budget_bytes / 16;
    int64_t large = ask->budget_bytes + ask->budget_bytes / 4;
    double most = value_with(arena, ask, large, plan, NULL, &above);
    double value = value_with(arena, ask, small, plan, &above, &below);
    double expected = value_with(arena, ask, small, plan, NULL, &alone);
    assert_true(value >= expected && value <= expected);
    assert_true(most <= value && value <= plan->best.value);
}

static void run_cell(struct hb_arena *arena, const struct hb_plan_ask *ask,
                     const struct hb_cell *cell, struct hb_memory *m, struct hb_timing *t)
{
    struct hb_spec spec;
    struct hb_diag diag;
    struct hb_program p;
    hb_diag_init(&diag, arena);
    hb_space_cell_spec(ask->spec, cell, &spec);
    assert_true(hb_link_lower(arena, &diag, &spec, &p));
    hb_run_memory(arena, &p, m);
    hb_run_timing(arena, &p, ask->device, t);
}

/* Nested scans of layers that are all in a pipeline, which the space leaves out, are plain ones. */
static int check_nested(struct hb_arena *arena, const struct hb_plan_ask *ask,
                        const struct hb_plan *plan)
{
    for (uint32_t i = 0; i < plan->space.cell_count; i++) {
        struct hb_cell cell = plan->space.cells[i];
        struct hb_memory scan, nested;
        struct hb_timing scan_time, nested_time;
        if (cell.mesh[HB_AX_PIPELINE] == 1 || cell.form != HB_FORM_SCAN)
            continue;
        run_cell(arena, ask, &cell, &scan, &scan_time);
        cell.form = HB_FORM_NESTED;
        run_cell(arena, ask, &cell, &nested, &nested_time);
        assert_true(scan.peak_bytes == nested.peak_bytes && scan.host_bytes == nested.host_bytes);
        assert_true(scan_time.step_ns == nested_time.step_ns);
        return 1;
    }
    return 0;
}

/* Value of the plan with one policy of one run turned in one tensor; INFINITY: it does not fit. */
static double turned_value(struct hb_arena *arena, const struct hb_plan_ask *ask,
                           const struct hb_plan *plan, uint32_t run, int tensor, int state)
{
    struct hb_spec cell, spec;
    struct hb_diag diag;
    struct hb_program p;
    struct hb_memory m;
    const struct hb_candidate *c = &plan->best;
    hb_diag_init(&diag, arena);
    hb_plan_spec(arena, plan, c, &spec);
    hb_space_cell_spec(ask->spec, &plan->space.cells[c->cell], &cell);
    struct hb_block *blocks = hb_arena_alloc(arena, c->run_count, sizeof *blocks);
    memcpy(blocks, spec.model.blocks, c->run_count * sizeof *blocks);
    struct hb_remat *r = &blocks[run].remat;
    if (r->policy != HB_POLICY_NAMES && r->policy != HB_POLICY_FULL)
        return INFINITY;
    r->save = (r->save & ~(1u << tensor)) | (state == 1 ? 1u << tensor : 0);
    r->offload = (r->offload & ~(1u << tensor)) | (state == 2 ? 1u << tensor : 0);
    r->policy = r->save | r->offload ? HB_POLICY_NAMES : HB_POLICY_FULL;
    spec.model.blocks = blocks;
    if (!hb_menu_compiles(&cell, r) || !hb_link_lower(arena, &diag, &spec, &p))
        return INFINITY;
    hb_run_memory(arena, &p, &m);
    if (m.peak_bytes > ask->budget_bytes || m.host_bytes > ask->host_bytes)
        return INFINITY;
    int64_t ns = hb_run_step_ns(arena, &p, ask->device);
    double tokens = (double)cell.batch.global * (double)cell.batch.seq;
    return ask->objective == HB_OBJ_MEMORY      ? (double)m.peak_bytes
           : ask->objective == HB_OBJ_STEP_TIME ? (double)ns
                                                : (double)ns / tokens;
}

/* No tensor of one run that is turned makes it better. */
static int check_turned(struct hb_arena *arena, const struct hb_plan_ask *ask,
                        const struct hb_plan *plan)
{
    int turned = 0;
    for (uint32_t run = 0; run < plan->best.run_count && plan->space.remat; run++) {
        const struct hb_block *b = &ask->spec->model.blocks[plan->best.runs[run].block];
        uint32_t tensors = hb_menu_tensors(b) | 1u << HB_TN_LAYER_IN;
        for (int k = 0; k < 3 * HB_TN_COUNT && b->repeat > b->unit; k++) {
            struct hb_arena_mark mark = hb_arena_mark(arena);
            if (!(tensors >> (k / 3) & 1))
                continue;
            assert_true(turned_value(arena, ask, plan, run, k / 3, k % 3) >= plan->best.value);
            turned++;
            hb_arena_rewind(arena, mark);
        }
    }
    return turned;
}

/* What lies around the same menus' best: never worse. */
static void check_polish(struct hb_arena *arena, const struct hb_plan_ask *ask,
                         const struct hb_plan *plan, struct counts *counts)
{
    struct hb_plan polished;
    struct hb_plan_ask again = *ask;
    again.polish = true;
    again.menus = plan->searched;
    assert_true(hb_plan_find(arena, &again, &polished));
    assert_true(polished.found && polished.best.value <= plan->best.value);
    counts->better += polished.best.value < plan->best.value;
    counts->turned += check_turned(arena, ask, &polished);
}

static void try_instance(struct hb_arena *arena, struct hb_rng *rng, struct unit *u,
                         struct counts *counts)
{
    struct hb_spec spec;
    struct hb_device device;
    struct hb_plan plan;
    struct hb_candidate best = {0};
    bool found = false;
    const char *text = random_text(arena, rng);
    if (!read_instance(arena, text, &spec))
        return;
    assert_true(hb_device_load(arena, &u->diag, HB_SOURCE_DIR, spec.hardware.device,
                               (struct hb_loc){0}, &device));
    struct hb_plan_ask ask = {.env = &u->env,
                              .spec = &spec,
                              .device = &device,
                              .devices = spec.hardware.count,
                              .objective = spec.plan.objective,
                              .host_bytes = INT64_MAX,
                              .most_policies = (uint32_t)hb_rng_range(rng, 2, 5)};
    ask.budget_bytes = random_budget(arena, rng, ask);
    draw_memory(rng, &spec, ask.budget_bytes);
    assert_true(hb_plan_find(arena, &ask, &plan));
    assert_true(hb_plan_exhaust(arena, &ask, &plan, 1e5, &best, &found));
    if (found != plan.found ||
        (found && (best.value < plan.best.value || best.value > plan.best.value)))
        print_error("%s\nplan %d value %.17g, brute force %d value %.17g\n", text, plan.found,
                    plan.best.value, found, best.value);
    assert_true(found == plan.found);
    assert_true(plan.status == (found ? HB_PLAN_OPTIMAL : HB_PLAN_INFEASIBLE));
    assert_true(!found || (best.value <= plan.best.value && best.value >= plan.best.value));
    counts->agreed++;
    counts->infeasible += !found;
    counts->cut += plan.counts.cuts > 0;
    counts->configurations += plan.counts.raw;
    counts->nested += check_nested(arena, &ask, &plan);
    if (!found)
        return;
    check_above(arena, &ask, &plan);
    check_polish(arena, &ask, &plan, counts);
    struct hb_spec chosen;
    struct hb_result result;
    hb_plan_spec(arena, &plan, &plan.best, &chosen);
    assert_true(hb_schema_check(arena, &u->diag, NULL, &chosen));
    assert_true(hb_result_run(arena, &u->diag, &chosen, &device, &result));
    assert_true(result.memory.peak_bytes == plan.best.peak_bytes);
    assert_true(result.memory.peak_bytes <= ask.budget_bytes);
    assert_true(result.timing.step_ns == plan.best.step_ns);
}

/* The best of a larger budget, which fits a smaller one too, lies in a cell of which all that is
 * left is dearer. */
static void test_the_best_above_is_kept(void **state)
{
    (void)state;
    const char *text =
        "model:\n"
        "  d_model: 1536\n"
        "  vocab: 3072\n"
        "  blocks:\n"
        "    - {name: a, repeat: 5, attention: {heads: 8, kv_heads: 4}, moe: {experts: 4, top_k: 2,"
        " d_ff: 512}}\n"
        "    - {name: b, repeat: 1, attention: {heads: 8}, mlp: {d_ff: 1024}}\n"
        "batch: {global: 8, seq: 512}\n"
        "mesh: {fsdp: 1}\n"
        "hardware: {device: tpu-v5p, count: 1}\n"
        "compiler: xla-tpu\n"
        "plan:\n"
        "  objective: step_time\n"
        "  search: {remat: true, stack: [scan, nested], optimizer_offload: [none, pinned_host],"
        " loss_chunks: [1, 4]}\n";
    struct unit u;
    struct hb_spec spec;
    struct hb_device device;
    struct hb_plan plan;
    unit_start(&u);
    assert_true(read_instance(u.env.arena, text, &spec));
    assert_true(hb_device_load(u.env.arena, &u.diag, HB_SOURCE_DIR, spec.hardware.device,
                               (struct hb_loc){0}, &device));
    for (uint32_t policies = 2; policies <= 5; policies++) {
        struct hb_plan_ask ask = {.env = &u.env,
                                  .spec = &spec,
                                  .device = &device,
                                  .devices = 1,
                                  .objective = spec.plan.objective,
                                  .host_bytes = INT64_MAX,
                                  .most_policies = policies,
                                  .budget_bytes = 2503837977};
        assert_true(hb_plan_find(u.env.arena, &ask, &plan));
        assert_true(plan.found);
        check_above(u.env.arena, &ask, &plan);
    }
    unit_end(&u);
}

struct instance {
    struct hb_spec spec;
    struct hb_device device;
    struct hb_plan_ask ask;
    struct hb_plan plan;
};

/* What its file asks for, without a local search. */
static void open_instance(struct unit *u, const char *text, struct instance *n)
{
    assert_true(read_instance(u->env.arena, text, &n->spec));
    assert_true(hb_device_load(u->env.arena, &u->diag, HB_SOURCE_DIR, n->spec.hardware.device,
                               (struct hb_loc){0}, &n->device));
    hb_plan_ask_make(&u->env, &n->spec, &n->device, &n->ask);
    n->ask.polish = false;
}

/* The plan is what trying all finds. */
static void check_best(struct unit *u, struct instance *n)
{
    struct hb_candidate best;
    bool found;
    assert_true(hb_plan_find(u->env.arena, &n->ask, &n->plan));
    assert_true(hb_plan_exhaust(u->env.arena, &n->ask, &n->plan, 1e5, &best, &found));
    assert_true(n->plan.found && found);
    assert_true(best.value <= n->plan.best.value && best.value >= n->plan.best.value);
}

/* Mixtures whose experts take most of the time, on a budget that keeps a part of their values: what
 * the floors say of the backward pass decides which cells are opened at all. */
static void test_mixtures_that_matter(void **state)
{
    (void)state;
    static const char *const moe[] = {"{experts: 8, top_k: 2, d_ff: 2048}",
                                      "{experts: 8, top_k: 2, d_ff: 2048, dispatch: allgather}"};
    struct unit u;
    unit_start(&u);
    for (size_t i = 0; i < sizeof moe / sizeof moe[0]; i++) {
        const char *text = hb_arena_printf(
            u.env.arena,
            "model:\n"
            "  d_model: 1024\n"
            "  vocab: 8192\n"
            "  blocks: [{name: a, repeat: 8, attention: {heads: 8, kv_heads: 4}, moe: %s}]\n"
            "batch: {global: 64, seq: 4096}\n"
            "mesh: {fsdp: 8}\n"
            "hardware: {device: tpu-v5p, count: 8}\n"
            "compiler: xla-tpu\n"
            "plan: {search: {mesh: [{fsdp: 8}, {fsdp: 4, tensor: 2}], remat: true,"
            " batch: {accumulate: [1, 2]}}}\n",
            moe[i]);
        struct instance n;
        open_instance(&u, text, &n);
        check_best(&u, &n);
    }
    unit_end(&u);
}

/* Searches around a plan that is run down from what was better than the first (64 MI300X), and one
 * that takes more runs of the engine than a round has (HB_SEED=8401). */
static void test_nothing_is_beside(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t budget_bytes;
    } cases[] = {{"model: {preset: moonlight-16b-a3b}\n"
                  "batch: {global: 192, seq: 2048}\n"
                  "mesh: {fsdp: 64}\n"
                  "hardware: {device: amd-mi300x, count: 64}\n"
                  "compiler: xla-gpu\n",
                  0},
                 {"model:\n"
                  "  d_model: 2048\n"
                  "  vocab: 14336\n"
                  "  blocks: [{name: a, repeat: 6, attention: {heads: 8, kv_heads: 4},"
                  " moe: {experts: 4, top_k: 2, d_ff: 512}}]\n"
                  "batch: {global: 8, seq: 256}\n"
                  "mesh: {fsdp: 1}\n"
                  "hardware: {device: tpu-v6e, count: 1}\n"
                  "compiler: xla-tpu\n"
                  "plan: {objective: step_time, search: {remat: true,"
                  " optimizer_offload: [none, pinned_host], batch: {accumulate: [1, 2]}}}\n",
                  3120000000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct unit u;
        struct instance n;
        unit_start(&u);
        open_instance(&u, cases[i].text, &n);
        n.ask.polish = true;
        n.ask.most_alternatives = 0;
        if (cases[i].budget_bytes)
            n.ask.budget_bytes = cases[i].budget_bytes;
        assert_true(hb_plan_find(u.env.arena, &n.ask, &n.plan) && n.plan.found);
        assert_true(check_turned(u.env.arena, &n.ask, &n.plan) > 20);
        unit_end(&u);
    }
}

/* More room is no reason for a slower plan: what is found in one cell is tried in the others. */
static void test_more_room_is_no_worse(void **state)
{
    (void)state;
    static const char text[] = "model: {preset: llama3-70b}\n"
                               "batch: {global: 1024, seq: 8192}\n"
                               "mesh: {fsdp: 512}\n"
                               "hardware: {device: tpu-v6e, count: 512}\n"
                               "compiler: xla-tpu\n";
    double last = INFINITY;
    for (int64_t gib = 28; gib <= 29; gib++) {
        struct unit u;
        struct instance n;
        unit_start(&u);
        open_instance(&u, text, &n);
        n.ask.polish = true;
        n.ask.most_alternatives = 0;
        n.ask.confidence = 0;
        n.ask.budget_bytes = gib << 30;
        assert_true(hb_plan_find(u.env.arena, &n.ask, &n.plan) && n.plan.found);
        assert_true(n.plan.best.value <= last);
        last = n.plan.best.value;
        unit_end(&u);
    }
}

/* Searches that ended with a fault of their own. What is split was tried in pipelines, nested scans
 * and loops, whose layers it loses (34B); what had been found around a plan was held to what bounds
 * the menus alone (135M). */
static void test_searches_find_no_fault(void **state)
{
    (void)state;
    static const char *const texts[] = {"model: {preset: codellama-34b}\n"
                                        "batch: {global: 32, seq: 2048}\n"
                                        "mesh: {fsdp: 16}\n"
                                        "hardware: {device: nvidia-h100, count: 16}\n"
                                        "compiler: xla-gpu\n",
                                        "model: {preset: smollm2-135m}\n"
                                        "batch: {global: 16, seq: 2048}\n"
                                        "mesh: {fsdp: 16}\n"
                                        "hardware: {device: amd-mi300x, count: 16}\n"
                                        "compiler: xla-gpu\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct unit u;
        struct instance n;
        unit_start(&u);
        open_instance(&u, texts[i], &n);
        n.ask.polish = true;
        assert_true(hb_plan_find(u.env.arena, &n.ask, &n.plan) && n.plan.found);
        unit_end(&u);
    }
}

/* A block whose policy puts the ends in another order than the sample's, beside another that is
 * split: what the sums say of it is not asked (HB_SEED=72). */
static void test_splits_beside_an_odd_block(void **state)
{
    (void)state;
    const char *text =
        "model:\n"
        "  d_model: 256\n"
        "  vocab: 10240\n"
        "  blocks:\n"
        "    - {name: a, repeat: 5, attention: {heads: 2, kv_heads: 1}, moe: {experts: 4, top_k: 2,"
        " d_ff: 512}}\n"
        "    - {name: b, repeat: 4, attention: {heads: 2}, mlp: {d_ff: 1024}}\n"
        "batch: {global: 8, seq: 256}\n"
        "mesh: {fsdp: 1}\n"
        "hardware: {device: nvidia-h100, count: 1}\n"
        "compiler: xla-gpu\n"
        "plan: {search: {remat: true, stack: [scan, nested]}}\n";
    struct unit u;
    struct instance n;
    unit_start(&u);
    open_instance(&u, text, &n);
    n.ask.most_policies = 4;
    n.ask.budget_bytes = 466981339;
    check_best(&u, &n);
    assert_true(n.plan.status == HB_PLAN_OPTIMAL);
    unit_end(&u);
}

/* Of which splits the layers' sums hold is asked of steps as they are written and of those beyond
 * XLA:GPU's share of the memory: both are the space's (test_spaces, HB_SEED=29274). */
static void test_splits_of_either_share(void **state)
{
    (void)state;
    const char *text =
        "model:\n"
        "  d_model: 512\n"
        "  vocab: 6144\n"
        "  blocks:\n"
        "    - {name: main, repeat: 5, attention: {heads: 4}, moe: {experts: 4, top_k: 2,"
        " d_ff: 1024, dispatch: einsum}}\n"
        "batch: {global: 8, seq: 1024}\n"
        "mesh: {fsdp: 1}\n"
        "hardware: {device: amd-mi300x, count: 1}\n"
        "compiler: xla-gpu\n"
        "step: {cast: in_layer}\n"
        "optimizer: {clip: true}\n"
        "plan: {search: {remat: true, optimizer_offload: [none, pinned_host]}}\n";
    struct unit u;
    struct instance n;
    unit_start(&u);
    open_instance(&u, text, &n);
    n.spec.hardware.memory_bytes = 1373351760;
    n.ask.most_policies = 4;
    n.ask.budget_bytes = 1159719309;
    check_best(&u, &n);
    assert_true(n.plan.status == HB_PLAN_OPTIMAL);
    unit_end(&u);
}

/* A run below what was said of it is noticed; one that is not, is none. */
static void test_a_false_bound_is_noticed(void **state)
{
    (void)state;
    struct hb_cell cell = {.batch_global = 1};
    struct hb_cell_row row = {.fate = HB_FATE_LAYER_BOUND, .value = 100};
    struct hb_plan plan = {.rows = &row, .space = {.cells = &cell, .cell_count = 1}};
    struct hb_search_node node = {.first = 0, .end = 1, .floor_value = 50};
    struct hb_plan_ask ask = {.objective = HB_OBJ_STEP_TIME};
    struct hb_search s = {.ask = &ask, .plan = &plan, .nodes = &node, .node_count = 1};
    struct hb_choice c = {.step_ns = 100, .bound_ns = 100, .peak_bytes = 8, .live_bytes = 8};
    assert_null(hb_search_fault(&s, &c, true));
    c.bound_ns = 101;
    assert_non_null(hb_search_fault(&s, &c, true));
    c.bound_ns = 0;
    c.live_bytes = 9;
    assert_non_null(hb_search_fault(&s, &c, true));
    c.live_bytes = 0;
    c.step_ns = 99;
    assert_non_null(hb_search_fault(&s, &c, true));
    assert_null(hb_search_fault(&s, &c, false)); /* not of the menus that the row speaks of */
    plan.counts.ilps = 1;
    assert_null(hb_search_fault(&s, &c, true));
    c.step_ns = 49;
    assert_non_null(hb_search_fault(&s, &c, false));
}

static void test_equals_brute_force(void **state)
{
    (void)state;
    struct unit u;
    struct counts counts = {0};
    struct hb_rng rng = hb_rng_seed(prop_seed(2026));
    int wanted = prop_cases_or(40, 2000);
    unit_start(&u);
    for (int tries = 0; counts.agreed < wanted && tries < 10 * wanted; tries++) {
        struct hb_arena_mark mark = hb_arena_mark(u.env.arena);
        try_instance(u.env.arena, &rng, &u, &counts);
        hb_arena_rewind(u.env.arena, mark);
    }
    print_message("# %d instances agree (%d without a plan, %d with configurations that the engine "
                  "cut), %.0f configurations\n",
                  counts.agreed, counts.infeasible, counts.cut, counts.configurations);
    print_message("# %d plans are better for what lies around them; none of %d neighbours is\n",
                  counts.better, counts.turned);
    assert_true(counts.better > 0 || wanted < 40);
    assert_int_equal(counts.agreed, wanted);
    assert_true(counts.nested > 0 || wanted < 40);
    unit_end(&u);
}

/* spec with one policy for all of its layers. */
static struct hb_spec *with_policy(struct hb_arena *arena, const struct hb_spec *spec,
                                   enum hb_policy policy)
{
    struct hb_spec *own = hb_arena_alloc(arena, 1, sizeof *own);
    size_t count = (size_t)spec->model.block_count;
    struct hb_block *blocks = hb_arena_alloc(arena, count, sizeof *blocks);
    memcpy(blocks, spec->model.blocks, count * sizeof *blocks);
    for (size_t i = 0; i < count; i++)
        blocks[i].remat = (struct hb_remat){.policy = policy};
    *own = *spec;
    own->model.blocks = blocks;
    own->remat.all = blocks[0].remat;
    own->plan.whole_stack = true;
    return own;
}

/* With the floors of a search under one policy, that under another comes to the same, and no floor
 * of a node is found again. False: it has no plan. */
static bool check_other(struct unit *u, const struct hb_spec *spec)
{
    struct hb_arena *arena = u->env.arena;
    struct hb_device device;
    struct hb_plan_ask ask;
    struct hb_plan full, alone, after;
    assert_true(hb_device_load(arena, u->env.diag, HB_SOURCE_DIR, spec->hardware.device,
                               (struct hb_loc){0}, &device));
    hb_plan_ask_make(&u->env, with_policy(arena, spec, HB_POLICY_FULL), &device, &ask);
    ask.polish = false;
    if (!hb_plan_find(arena, &ask, &full) || !full.found)
        return false;
    ask.budget_bytes = ask.whole_bytes = full.best.peak_bytes;
    assert_true(hb_plan_find(arena, &ask, &full));
    ask.spec = with_policy(arena, spec, HB_POLICY_DOTS);
    assert_true(hb_plan_find(arena, &ask, &alone));
    ask.other = &full;
    assert_true(hb_plan_find(arena, &ask, &after));
    assert_true(alone.counts.node_floors > 0);
    assert_int_equal(after.counts.node_floors, 0);
    assert_int_equal(after.found, alone.found);
    assert_int_equal(after.status, alone.status);
    if (after.found) {
        assert_int_equal(after.best.step_ns, alone.best.step_ns);
        assert_int_equal(after.best.peak_bytes, alone.best.peak_bytes);
    }
    return after.found;
}

static void test_floors_of_another_policy(void **state)
{
    (void)state;
    struct unit u;
    struct hb_rng rng = hb_rng_seed(prop_seed(7));
    int found = 0;
    unit_start(&u);
    for (int i = 0; i < 30; i++) {
        struct hb_arena_mark mark = hb_arena_mark(u.env.arena);
        struct hb_spec spec;
        if (read_instance(u.env.arena, random_text(u.env.arena, &rng), &spec))
            found += check_other(&u, &spec);
        hb_arena_rewind(u.env.arena, mark);
    }
    assert_true(found > (getenv("HB_SEED") ? 0 : 5));
    unit_end(&u);
}

/* A clock that goes on by one at each look. */
static int64_t looks;

static int64_t count_looks(void)
{
    return ++looks;
}

/* Cut off wherever that may be, what is told of the plan is true of the plan of the whole search.
 */
static void test_cut_off_anywhere(void **state)
{
    (void)state;
    static const char text[] =
        "model:\n  d_model: 512\n  vocab: 8192\n  blocks:\n"
        "    - {name: a, repeat: 6, attention: {heads: 8, kv_heads: 4}, mlp: {d_ff: 2048}}\n"
        "batch: {global: 16, seq: 1024}\nmesh: {fsdp: 4}\n"
        "hardware: {device: tpu-v5p, count: 4, hbm: 1GiB}\n"
        "plan:\n  search: {mesh: [fsdp, tensor], remat: true, loss_chunks: [1, 4]}\n";
    struct unit u;
    struct hb_spec spec;
    struct hb_device device;
    struct hb_plan_ask ask;
    struct hb_plan whole, cut;
    struct hb_stop stop = {.now_ns = count_looks};
    int found = 0, none = 0;
    unit_start(&u);
    assert_true(read_instance(u.env.arena, text, &spec));
    assert_true(hb_device_load(u.env.arena, u.env.diag, HB_SOURCE_DIR, spec.hardware.device,
                               (struct hb_loc){0}, &device));
    hb_plan_ask_make(&u.env, &spec, &device, &ask);
    assert_true(hb_plan_find(u.env.arena, &ask, &whole) && whole.found);
    ask.stop = &stop;
    for (int64_t most = 1;; most += 1 + most / 4) {
        hb_stop_start(&stop, most);
        assert_true(hb_plan_find(u.env.arena, &ask, &cut));
        if (cut.status != HB_PLAN_LIMIT)
            break;
        none += !cut.found;
        if (!cut.found)
            continue;
        found++;
        assert_true(cut.gap >= 0 && cut.gap <= 1);
        assert_true(cut.best.value * (1 - cut.gap) <= whole.best.value * (1 + 1e-12));
        assert_true(cut.best.value >= whole.best.value);
    }
    print_message("# cut off %d times before a plan was there and %d times after\n", none, found);
    assert_true(none > 0 && found > 0);
    assert_true(cut.best.value <= whole.best.value && cut.best.value >= whole.best.value);
    unit_end(&u);
}

/* Ended by effort where policies stay as written: cells that are left are told, and the gap is true
 * of the plan of the whole search. */
static void test_ended_by_effort(void **state)
{
    (void)state;
    static const char text[] =
        "model:\n  d_model: 1024\n  vocab: 8192\n  blocks:\n"
        "    - {name: a, repeat: 8, attention: {heads: 8, kv_heads: 4}, mlp: {d_ff: 4096}}\n"
        "batch: {global: 64, seq: 2048}\nmesh: {fsdp: 8}\nremat: {policy: dots}\n"
        "hardware: {device: tpu-v5p, count: 8, hbm: 1200MiB}\n"
        "plan:\n  search: {mesh: [data, fsdp, tensor], loss_chunks: [1, 4],\n"
        "           batch: {accumulate: [1, 2, 4, 8]}}\n";
    struct unit u;
    struct hb_spec spec;
    struct hb_device device;
    struct hb_plan_ask ask;
    struct hb_plan whole, some;
    int left = 0;
    unit_start(&u);
    assert_true(read_instance(u.env.arena, text, &spec));
    assert_true(hb_device_load(u.env.arena, u.env.diag, HB_SOURCE_DIR, spec.hardware.device,
                               (struct hb_loc){0}, &device));
    hb_plan_ask_make(&u.env, &spec, &device, &ask);
    ask.most_effort = 0;
    assert_true(hb_plan_find(u.env.arena, &ask, &whole));
    assert_true(whole.found && whole.status == HB_PLAN_OPTIMAL && whole.counts.left == 0);
    for (ask.most_effort = 1; ask.most_effort < 200; ask.most_effort *= 2) {
        assert_true(hb_plan_find(u.env.arena, &ask, &some) && some.found);
        left += some.counts.left > 0;
        assert_int_equal(some.status == HB_PLAN_OPTIMAL, some.counts.left == 0);
        assert_true(some.best.value * (1 - some.gap) <= whole.best.value * (1 + 1e-12));
    }
    print_message("# %d of the searches left cells\n", left);
    assert_true(left > 0);
    unit_end(&u);
}

/* A space of thousands of nodes, of which most do not fit: soon after the floors are there, there
 * is a plan, long before the menus' best is found. */
static void test_early_plan(void **state)
{
    (void)state;
    static const char text[] = "model: {preset: llama3.1-405b}\nbatch: {global: 2048, seq: 8192}\n"
                               "mesh: {fsdp: 2048, tensor: 8}\ncompiler: xla-gpu\n"
                               "hardware: {device: nvidia-h100, count: 16384}\n";
    enum { LOOKS_AFTER_FLOORS = 2000 };
    struct unit u;
    struct hb_spec spec;
    struct hb_device device;
    struct hb_plan_ask ask;
    struct hb_plan plan;
    struct hb_stop stop = {.now_ns = count_looks};
    unit_start(&u);
    assert_true(read_instance(u.env.arena, text, &spec));
    assert_true(hb_device_load(u.env.arena, u.env.diag, HB_SOURCE_DIR, spec.hardware.device,
                               (struct hb_loc){0}, &device));
    hb_plan_ask_make(&u.env, &spec, &device, &ask);
    ask.stop = &stop;
    hb_stop_start(&stop, 1);
    assert_true(hb_plan_find(u.env.arena, &ask, &plan) && !plan.found);
    hb_stop_start(&stop, (int64_t)plan.node_count + LOOKS_AFTER_FLOORS);
    assert_true(hb_plan_find(u.env.arena, &ask, &plan));
    assert_true(plan.found && plan.status == HB_PLAN_LIMIT && plan.gap < 1);
    unit_end(&u);
}

/* Neither one chunk fits nor do 16, whose tokens are too few for the head's ring, come near the
 * best: what a search finds before it looks around has 4 or 8. */
static void test_chunks_between(void **state)
{
    (void)state;
    static const char text[] =
        "model: {preset: qwen3-8b}\nbatch: {global: 16, seq: 8192}\nmesh: {fsdp: 16}\n"
        "compiler: xla-tpu\nhardware: {device: tpu-v5e, count: 16}\n"
        "plan: {search: {mesh: [{fsdp: 16}], remat: true, loss_chunks: [1, 4, 8, 16]}}\n";
    struct unit u;
    struct hb_spec spec;
    struct hb_device device;
    struct hb_plan_ask ask;
    struct hb_plan first, whole;
    unit_start(&u);
    assert_true(read_instance(u.env.arena, text, &spec));
    assert_true(hb_device_load(u.env.arena, u.env.diag, HB_SOURCE_DIR, spec.hardware.device,
                               (struct hb_loc){0}, &device));
    hb_plan_ask_make(&u.env, &spec, &device, &ask);
    assert_true(hb_plan_find(u.env.arena, &ask, &whole));
    ask.most_effort = 1;
    assert_true(hb_plan_find(u.env.arena, &ask, &first));
    assert_true(first.found && whole.found);
    assert_true(first.best.value < whole.best.value * 1.02);
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_early_plan),
                                       cmocka_unit_test(test_chunks_between),
                                       cmocka_unit_test(test_the_best_above_is_kept),
                                       cmocka_unit_test(test_mixtures_that_matter),
                                       cmocka_unit_test(test_splits_beside_an_odd_block),
                                       cmocka_unit_test(test_splits_of_either_share),
                                       cmocka_unit_test(test_nothing_is_beside),
                                       cmocka_unit_test(test_more_room_is_no_worse),
                                       cmocka_unit_test(test_searches_find_no_fault),
                                       cmocka_unit_test(test_a_false_bound_is_noticed),
                                       cmocka_unit_test(test_cut_off_anywhere),
                                       cmocka_unit_test(test_ended_by_effort),
                                       cmocka_unit_test(test_floors_of_another_policy),
                                       cmocka_unit_test(test_equals_brute_force)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
