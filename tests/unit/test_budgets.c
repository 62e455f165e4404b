/* Searches of small spaces on budgets that are exactly what some configuration takes, and a byte
 * less: what trying all finds, with and without what is known of other budgets. */
#include "tests/unit/unit.h"
#include "tests/unit/unit_spec.h"

#include <math.h>

#include "hw/device.h"
#include "solver/plan.h"
#include "solver/proof.h"

enum { MOST_BUDGETS = 5, POLICIES = 3, MORE_PERCENT = 40, COMBINATIONS = 9 };

static struct unit u;
static int proofs, infinite;

struct space {
    struct hb_spec spec;
    struct hb_device device;
    struct hb_plan_ask ask; /* at the budget before, and its plan */
    struct hb_plan plan;
};

static void open_space(const char *text, struct space *s)
{
    s->spec = unit_spec(&u, text);
    s->device = unit_device(&u, &s->spec);
    hb_plan_ask_make(&u.env, &s->spec, &s->device, &s->ask);
    s->ask.polish = false;
    s->ask.most_policies = POLICIES;
    s->ask.most_effort = 0;
}

/* What is proven of each cell by itself is no more than its best is, and no less than the plan
 * where it was not searched. Returns the best of all; INFINITY: nothing fits. */
static double check_cells(const struct hb_plan_ask *ask, const struct hb_plan *plan)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < plan->space.cell_count; i++) {
        struct hb_plan one = *plan;
        struct hb_candidate best;
        bool found, searched = plan->rows[i].runs > 0 || plan->rows[i].fate == HB_FATE_SEARCHED;
        one.space.cells += i;
        one.space.cell_count = 1;
        assert_true(hb_plan_exhaust(u.env.arena, ask, &one, 1e5, &best, &found));
        double proven = hb_proof_value(ask, plan, hb_proof_node(plan, i), i);
        assert_true(!found || proven <= best.value);
        assert_true(searched || proven >= (plan->found ? plan->best.value : INFINITY));
        proofs++;
        infinite += !(proven < INFINITY);
        least = found ? fmin(least, best.value) : least;
    }
    return least;
}

/* The plan at a budget is the best of all; its value, INFINITY where nothing fits. */
static double find(const struct hb_plan_ask *ask, int64_t budget_bytes, struct hb_plan *out)
{
    struct hb_plan_ask own = *ask;
    own.budget_bytes = budget_bytes;
    assert_true(hb_plan_find(u.env.arena, &own, out));
    double best = check_cells(&own, out);
    assert_true(out->found == (best < INFINITY));
    assert_true(out->status == (out->found ? HB_PLAN_OPTIMAL : HB_PLAN_INFEASIBLE));
    if (!out->found)
        return INFINITY;
    assert_true(out->best.peak_bytes <= budget_bytes);
    assert_true(best <= out->best.value && best >= out->best.value);
    return out->best.value;
}

static bool is_beside(const struct hb_plan *a, const struct hb_plan *b)
{
    const struct hb_cell *x = &a->space.cells[a->best.cell], *y = &b->space.cells[b->best.cell];
    return memcmp(x->mesh, y->mesh, sizeof x->mesh) == 0 && x->batch_global == y->batch_global &&
           x->accumulate == y->accumulate;
}

/* With more room, by itself and after this one: only near its plan, and everywhere. */
static void check_more(const struct space *s, int64_t budget_bytes)
{
    struct hb_plan_ask again = s->ask;
    struct hb_plan alone, after, near;
    again.budget_bytes = budget_bytes;
    assert_true(hb_plan_find(u.env.arena, &again, &alone) && alone.found);
    double best = alone.best.value;
    again.like = &s->plan;
    assert_true(hb_plan_find(u.env.arena, &again, &after) && after.found);
    assert_true(after.best.value <= best && after.best.value >= best);
    again.near = true;
    assert_true(hb_plan_find(u.env.arena, &again, &near) && near.found);
    assert_true(is_beside(&near, &s->plan));
    assert_true(near.best.value >= best && near.best.value <= s->plan.best.value);
    assert_true(!is_beside(&alone, &s->plan) || near.best.value <= best);
}

/* Less room than `above` has, with what it excluded and what `none` knows: what is found without.
 */
static void check_below(const struct space *s, const struct hb_plan *none,
                        const struct hb_plan *above, int64_t budget_bytes)
{
    struct hb_plan_ask again = s->ask;
    struct hb_plan alone, plain, below;
    again.budget_bytes = budget_bytes;
    assert_true(hb_plan_find(u.env.arena, &again, &alone));
    again.like = none;
    again.value_only = true;
    assert_true(hb_plan_find(u.env.arena, &again, &plain));
    again.above = above;
    assert_true(hb_plan_find(u.env.arena, &again, &below));
    assert_true(plain.found == alone.found && below.found == alone.found);
    double value = alone.best.value;
    assert_true(!alone.found || !(plain.best.value < value || plain.best.value > value));
    assert_true(!alone.found || !(below.best.value < value || below.best.value > value));
    assert_int_equal(below.counts.node_floors, 0);
    /* What the layers exclude, they exclude. */
    for (uint32_t i = 0; i < below.space.cell_count; i++)
        assert_true(below.rows[i].fate != HB_FATE_NODE_BOUND || below.rows[i].value < INFINITY);
}

static void check_excluded(const struct space *s, int64_t budget_bytes, int64_t least_bytes)
{
    struct hb_plan_ask again = s->ask;
    struct hb_plan none, above;
    again.budget_bytes = least_bytes - 1;
    assert_true(hb_plan_find(u.env.arena, &again, &none) && !none.found);
    again.like = &none;
    again.value_only = true;
    again.budget_bytes = budget_bytes;
    assert_true(hb_plan_find(u.env.arena, &again, &above) && above.found);
    check_below(s, &none, &above, least_bytes);
    check_below(s, &none, &above, least_bytes - 1);
}

/* Down from all there is, by what each plan takes less one byte, to where nothing fits. */
static void check(const char *text)
{
    struct space s;
    struct hb_plan plan;
    open_space(text, &s);
    int64_t all_bytes = s.ask.budget_bytes, budget_bytes = all_bytes;
    double last = 0;
    int budgets = 0;
    for (; budgets < MOST_BUDGETS; budgets++) {
        double value = find(&s.ask, budget_bytes, &s.plan);
        s.ask.menus = s.plan.searched; /* for all that comes */
        assert_true(value >= last);
        if (!(value < INFINITY))
            break;
        s.ask.budget_bytes = s.plan.best.peak_bytes;
        assert_true(find(&s.ask, s.ask.budget_bytes, &plan) <= value);
        check_more(&s, s.ask.budget_bytes + s.ask.budget_bytes * MORE_PERCENT / 100);
        budget_bytes = s.plan.best.peak_bytes - 1;
        last = value;
    }
    print_message("# %d budgets, %.0f configurations, %d proofs, %d infinite\n", budgets,
                  s.plan.counts.raw, proofs, infinite);
    struct hb_plan_ask least = s.ask;
    least.objective = HB_OBJ_MEMORY;
    double bytes = find(&least, all_bytes, &plan);
    assert_true(bytes <= (double)plan.best.peak_bytes && bytes >= (double)plan.best.peak_bytes);
    check_excluded(&s, s.ask.budget_bytes, plan.best.peak_bytes);
    check_excluded(&s, all_bytes, plan.best.peak_bytes);
    assert_true(find(&s.ask, plan.best.peak_bytes, &s.plan) < INFINITY);
    assert_false(find(&s.ask, plan.best.peak_bytes - 1, &s.plan) < INFINITY);
}

#define MODEL(more)                                                                                \
    "model:\n  d_model: 512\n  vocab: 2048\n  blocks:\n"                                           \
    "    - {name: a, repeat: 4, attention: {heads: 4}, mlp: {d_ff: 2048}}\n"                       \
    "    - {name: b, repeat: 2, attention: {heads: 4}, mlp: {d_ff: 1024}}\n"                       \
    "batch: {global: 16, seq: 1024}\nmesh: {fsdp: 4}\n" more

static const char *const texts[] = {
    MODEL("hardware: {device: tpu-v5p, count: 4}\n"
          "plan: {search: {mesh: [data, fsdp], remat: true, loss_chunks: [1, 4]}}\n"),
    MODEL("hardware: {device: tpu-v5e, count: 4}\n"
          "plan: {objective: step_time, search: {mesh: [fsdp, tensor], remat: true,"
          " stack: [scan, nested], optimizer_offload: [none, pinned_host]}}\n"),
    MODEL("hardware: {device: nvidia-h100, count: 4}\n"
          "plan: {search: {mesh: [data, fsdp, pipeline], remat: true, stack: [scan, loop],"
          " batch: {accumulate: [1, 2]}}}\n"),
};
enum { TEXTS = sizeof texts / sizeof *texts };

static void budgets_are_met_to_the_byte(void **state)
{
    (void)state;
    unit_each_text(&u, texts, TEXTS, check);
}

/* However little a search may do, it ends with a plan where there is one, were it the only one. */
static void check_effort(const char *text)
{
    struct space s;
    struct hb_plan least;
    open_space(text, &s);
    s.ask.objective = HB_OBJ_MEMORY;
    assert_true(hb_plan_find(u.env.arena, &s.ask, &least) && least.found);
    s.ask.objective = HB_OBJ_STEP_TIME;
    s.ask.polish = true;
    s.ask.most_effort = 1;
    s.ask.menus = least.searched;
    s.ask.budget_bytes = least.best.peak_bytes;
    assert_true(hb_plan_find(u.env.arena, &s.ask, &s.plan) && s.plan.found);
    assert_true(s.plan.best.peak_bytes <= s.ask.budget_bytes);
}

static void little_effort_finds_a_plan(void **state)
{
    (void)state;
    unit_each_text(&u, texts, TEXTS, check_effort);
}

/* Where only the value counts, a cell whose configurations are all to be run is not begun if they
 * are more than is allowed: what gives up has run no more than what may run one. Each cell here has
 * three policies of two blocks. */
static void more_runs_than_allowed_are_not_begun(void **state)
{
    (void)state;
    struct space s;
    uint32_t given_up = 0;
    unit_start(&u);
    open_space(texts[TEXTS - 1], &s);
    s.ask.value_only = true;
    for (s.ask.most_runs = 1; s.ask.most_runs < COMBINATIONS; s.ask.most_runs++) {
        assert_true(hb_plan_find(u.env.arena, &s.ask, &s.plan));
        if (s.plan.status != HB_PLAN_LIMIT)
            continue;
        assert_in_range(s.plan.counts.runs, 0, 1);
        given_up++;
    }
    assert_true(given_up > 1);
    unit_end(&u);
}

/* The same of layers that are in no segment, each configuration of which is a run: where none fits,
 * no more are run than is allowed. */
static void runs_without_segments_are_counted(void **state)
{
    (void)state;
    struct space s;
    unit_start(&u);
    open_space(MODEL("hardware: {device: nvidia-h100, count: 4}\nstack: {form: loop}\n"
                     "plan: {objective: memory, search: {mesh: [fsdp], remat: true}}\n"),
               &s);
    assert_true(hb_plan_find(u.env.arena, &s.ask, &s.plan) && s.plan.found);
    s.ask.objective = HB_OBJ_STEP_TIME;
    s.ask.budget_bytes = s.plan.best.peak_bytes - 1;
    assert_true(hb_plan_find(u.env.arena, &s.ask, &s.plan) && !s.plan.found);
    uint32_t runs = s.plan.counts.runs;
    assert_int_equal(runs, COMBINATIONS);
    for (s.ask.most_runs = 1; s.ask.most_runs < runs; s.ask.most_runs++) {
        assert_true(hb_plan_find(u.env.arena, &s.ask, &s.plan));
        assert_int_equal(s.plan.counts.runs, s.ask.most_runs);
        assert_int_equal(s.plan.status, HB_PLAN_LIMIT);
    }
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budgets_are_met_to_the_byte),
        cmocka_unit_test(little_effort_finds_a_plan),
        cmocka_unit_test(more_runs_than_allowed_are_not_begun),
        cmocka_unit_test(runs_without_segments_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
