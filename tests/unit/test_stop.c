/* A search that is stopped at whatever moment: it looks at nothing more, what it has is a plan of
 * the space, no worse than what it had at an earlier moment, and what it says of the rest holds. */
#include "tests/unit/unit.h"
#include "tests/unit/unit_spec.h"

#include <math.h>

#include "hw/device.h"
#include "sim/engine/result.h"
#include "solver/plan.h"
#include "solver/stop.h"

enum { MOMENTS = 24, MORE_RUNS = 1 };

static struct unit u;

/* A clock that goes on by one each time that it is looked at, and what was done when it is over. */
static int64_t looks, most_looks;
static const struct hb_plan *watched;
static struct hb_plan_counts at_end;

static int64_t look(void)
{
    if (++looks == most_looks + 1)
        at_end = watched->counts;
    return looks;
}

static void find(const struct hb_plan_ask *ask, int64_t most, struct hb_plan *out)
{
    struct hb_stop stop = {.now_ns = look, .until_ns = most};
    struct hb_plan_ask own = *ask;
    looks = 0;
    most_looks = most;
    watched = out;
    own.stop = &stop;
    assert_true(hb_plan_find(u.env.arena, &own, out));
}

/* What is said of a plan is what a simulation of it says. */
static void check_plan(const struct hb_plan_ask *ask, const struct hb_plan *plan)
{
    struct hb_spec chosen;
    struct hb_result result;
    hb_plan_spec(u.env.arena, plan, &plan->best, &chosen);
    assert_true(hb_result_run(u.env.arena, &u.diag, &chosen, ask->device, &result));
    assert_true(result.memory.peak_bytes == plan->best.peak_bytes);
    assert_true(result.memory.peak_bytes <= ask->budget_bytes);
    assert_true(result.timing.step_ns == plan->best.step_ns);
}

/* Returns the value of what it had; INFINITY: nothing. */
static double check_moment(const struct hb_plan_ask *ask, const struct hb_plan *whole, int64_t most)
{
    struct hb_plan plan;
    find(ask, most, &plan);
    if (looks > most) {
        assert_true(plan.counts.runs <= at_end.runs + MORE_RUNS);
        assert_true(plan.counts.polish_runs <= at_end.polish_runs + MORE_RUNS);
        assert_true(plan.counts.segments <= at_end.segments + 1);
        assert_true(plan.counts.layer_bounds <= at_end.layer_bounds + 1);
        assert_true(plan.counts.cell_floors <= at_end.cell_floors + 1);
    }
    assert_true(plan.found || plan.status == HB_PLAN_LIMIT);
    assert_true((plan.status == HB_PLAN_LIMIT) == (looks > most && plan.gap > 0));
    if (!plan.found)
        return INFINITY;
    check_plan(ask, &plan);
    assert_true(plan.best.value >= whole->best.value);
    assert_true(plan.best.value * (1 - plan.gap) <= whole->best.value);
    assert_true(plan.status != HB_PLAN_OPTIMAL || plan.best.value <= whole->best.value);
    for (uint32_t i = 0; i < plan.alternative_count; i++)
        assert_true(plan.alternatives[i].value >= plan.best.value);
    return plan.best.value;
}

static void check(const char *text)
{
    struct hb_spec spec = unit_spec(&u, text);
    struct hb_device device = unit_device(&u, &spec);
    struct hb_plan_ask ask;
    struct hb_plan whole;
    double best = INFINITY;
    hb_plan_ask_make(&u.env, &spec, &device, &ask);
    find(&ask, INT64_MAX - 1, &whole);
    assert_true(whole.found && whole.status != HB_PLAN_LIMIT);
    check_plan(&ask, &whole);
    int64_t all = looks;
    for (int64_t i = 1; i <= MOMENTS; i++) {
        double value = check_moment(&ask, &whole, i == 1 ? 1 : all * i / MOMENTS);
        assert_true(value <= best);
        best = value;
    }
    assert_true(best <= whole.best.value);
}

#define MODEL(more)                                                                                \
    "model:\n  d_model: 512\n  vocab: 2048\n  blocks:\n"                                           \
    "    - {name: a, repeat: 6, attention: {heads: 4}, mlp: {d_ff: 2048}}\n"                       \
    "batch: {global: 16, seq: 1024}\n" more

static void a_search_ends_where_it_stands(void **state)
{
    (void)state;
    static const char *const texts[] = {
        MODEL("mesh: {fsdp: 4}\nhardware: {device: tpu-v5p, count: 4, hbm: 280MiB}\n"
              "plan: {search: {mesh: [fsdp, tensor], remat: true, stack: [scan, nested],"
              " loss_chunks: [1, 4]}}\n"),
        MODEL("mesh: {fsdp: 4}\nhardware: {device: nvidia-h100, count: 4, hbm: 1GiB}\n"
              "plan: {search: {mesh: [fsdp, data, pipeline], remat: true, loss_chunks: [1, 4]}}\n"),
        MODEL("mesh: {fsdp: 4}\ncompiler: torch\n"
              "hardware: {device: nvidia-h100, count: 4, hbm: 1GiB}\n"
              "plan: {search: {mesh: [fsdp, tensor], remat: true, reshard: true}}\n"),
    };
    unit_each_text(&u, texts, sizeof texts / sizeof *texts, check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_search_ends_where_it_stands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
