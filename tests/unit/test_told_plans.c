/* What searches of drawn spaces do, of XLA and of torch: tests/golden/plans.told has a line of
 * each, its status, the plan's step and peak, the runs, and a checksum of all that is told of its
 * cells, its runs and its counts, so that a bound that is loose, a cell that is looked at in vain
 * or an early end that does not come is seen, though the plan is the same. HB_UPDATE=1 (make
 * golden-update) takes what is found now as right; HB_FIRST: no further than the first that
 * differs. */
#include <math.h>

#include "tests/prop/seed.h"

#include "tests/prop/spaces.h"
#include "tests/prop/torch_config.h"
#include "tests/unit/told.h"

#include "sim/engine/run.h"
#include "sim/graph/link.h"
#include "solver/plan.h"
#include "solver/sample.h"

enum { SPACES = 100, TORCH_EACH = 5, MOST_EFFORT = 24, CASES = 6, SAMPLED_EACH = 4, SAMPLE = 12 };
#define TOLD HB_SOURCE_DIR "/tests/golden/plans.told"

/* Seven digits: the last of a linear program's bound are GLPK's own. */
static uint64_t mix_value(uint64_t sum, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.7g", value);
    for (const char *c = text; *c; c++)
        sum = told_mix(sum, *c);
    return sum;
}

static uint64_t mix_candidate(uint64_t sum, const struct hb_candidate *c)
{
    sum = told_mix(told_mix(sum, c->cell), c->step_ns);
    sum = told_mix(told_mix(told_mix(sum, c->peak_bytes), c->live_bytes), c->bound_ns);
    for (uint32_t i = 0; i < c->run_count; i++)
        sum = told_mix(told_mix(sum, c->runs[i].policy), c->runs[i].steps);
    return sum;
}

static uint64_t mix_counts(uint64_t sum, const struct hb_plan_counts *k)
{
    const int64_t own[] = {k->cells,
                           k->nodes,
                           k->node_floors,
                           k->cell_floors,
                           k->segments,
                           k->ilps,
                           k->layer_bounds,
                           k->ilps_proven,
                           k->runs,
                           k->cuts,
                           (int64_t)k->priced,
                           k->policies_tried,
                           k->lps,
                           k->lp_rows,
                           k->lp_columns,
                           k->polished,
                           k->odd,
                           k->polish_runs,
                           k->left};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sum = told_mix(sum, own[i]);
    return mix_value(sum, k->raw);
}

static uint64_t mix_plan(uint64_t sum, const struct hb_plan *plan)
{
    sum = told_mix(mix_value(mix_counts(sum, &plan->counts), plan->gap), plan->settled);
    for (uint32_t i = 0; i < plan->space.cell_count; i++) {
        const struct hb_cell_row *row = &plan->rows[i];
        sum = told_mix(told_mix(told_mix(sum, row->fate), row->runs), row->proven);
        sum = mix_value(sum, row->value);
        sum = plan->relax_ns ? mix_value(sum, (double)plan->relax_ns[i]) : sum;
    }
    for (uint32_t i = 0; i < plan->ran_count; i++) {
        const struct hb_ran *ran = &plan->ran[i];
        sum = told_mix(told_mix(told_mix(told_mix(sum, ran->cell), ran->fits), ran->step_ns),
                       ran->peak_bytes);
        sum = told_mix(told_mix(told_mix(sum, ran->limit_bytes), ran->high_bytes), ran->host_bytes);
    }
    for (uint32_t i = 0; i < plan->alternative_count; i++)
        sum = mix_candidate(sum, &plan->alternatives[i]);
    return plan->found ? mix_candidate(sum, &plan->best) : sum;
}

/* About what the file's own configuration takes. */
static bool draw_budget(struct hb_rng *rng, struct hb_plan_ask *ask)
{
    struct hb_arena *arena = ask->env->arena;
    struct hb_diag diag;
    struct hb_program p;
    struct hb_memory m;
    hb_diag_init(&diag, arena);
    if (!hb_link_lower(arena, &diag, ask->spec, &p))
        return false;
    hb_run_memory(arena, &p, &m);
    ask->budget_bytes = ask->whole_bytes = m.peak_bytes / 100 * hb_rng_range(rng, 70, 130);
    return true;
}

static bool draw_case(struct unit *u, struct hb_rng *rng, int number, struct space *space)
{
    struct hb_arena *arena = u->env.arena;
    const char *text;
    if (number % TORCH_EACH)
        return draw_space(arena, rng, space);
    if (!torch_draw(arena, rng, &space->spec, &text))
        return false;
    space->spec.pipeline.rank = -1;
    space->spec.plan.present = chance(rng, 70);
    space->spec.plan.mesh_axes = 1u << HB_AX_TENSOR | 1u << HB_AX_FSDP | 1u << HB_AX_DATA;
    space->spec.plan.remat = space->spec.plan.reshard = chance(rng, 70);
    return hb_device_load(arena, &u->diag, HB_SOURCE_DIR, space->spec.hardware.device,
                          (struct hb_loc){0}, &space->device);
}

/* With another objective and what is known of floors. */
static void search_other(const struct hb_plan_ask *ask, const struct hb_plan *known, uint64_t *sum)
{
    struct hb_plan_ask other = *ask;
    struct hb_plan plan;
    other.objective = ask->objective == HB_OBJ_MEMORY ? HB_OBJ_TOKENS : HB_OBJ_MEMORY;
    other.other = known;
    assert_true(hb_plan_find(ask->env->arena, &other, &plan));
    *sum = mix_plan(*sum, &plan);
}

/* With more room and what is known; then with less of that, as prices are asked for. */
static void search_more(const struct hb_plan_ask *ask, const struct hb_plan *known, int number,
                        uint64_t *sum)
{
    struct hb_plan_ask more = *ask;
    struct hb_plan above, below;
    more.like = known;
    more.near = number % CASES == 0;
    more.value_only = number % CASES == 1;
    more.budget_bytes += more.budget_bytes / 8;
    assert_true(hb_plan_find(ask->env->arena, &more, &above));
    *sum = mix_plan(*sum, &above);
    if (ask->objective == HB_OBJ_MEMORY || !above.found || above.status == HB_PLAN_LIMIT)
        return;
    more.above = &above;
    more.budget_bytes = ask->budget_bytes + ask->budget_bytes / 64;
    assert_true(hb_plan_find(ask->env->arena, &more, &below));
    *sum = mix_plan(*sum, &below);
}

static uint64_t mix_sample(uint64_t sum, const struct hb_plan_ask *ask, const struct hb_plan *plan)
{
    struct hb_candidate *items;
    uint32_t count = hb_plan_sample(ask->env->arena, ask, plan, SAMPLE, &items);
    for (uint32_t i = 0; i < count; i++)
        sum = mix_candidate(sum, &items[i]);
    return told_mix(sum, count);
}

/* With little effort; some as far as it goes, some by what their menus have, some with a margin;
 * then once more, with more room or for something else. */
static void search(struct hb_plan_ask *ask, int number, struct hb_plan *out, uint64_t *sum)
{
    static const enum hb_objective objectives[] = {HB_OBJ_TOKENS, HB_OBJ_STEP_TIME, HB_OBJ_MEMORY};
    ask->objective = objectives[number / 5 % 3];
    ask->most_effort = number % CASES == 1 ? 0 : MOST_EFFORT;
    ask->most_policies = number % CASES == 1 ? 2 : 0;
    ask->polish = number % CASES > 1;
    ask->confidence = number % CASES == 2 ? 0.9 : 0;
    ask->as_written = number % CASES == 3;
    ask->keep_runs = true;
    assert_true(hb_plan_find(ask->env->arena, ask, out));
    *sum = mix_plan(*sum, out);
    if (number % SAMPLED_EACH == 0)
        *sum = mix_sample(*sum, ask, out);
    if (number % CASES > 3)
        search_other(ask, out, sum);
    else
        search_more(ask, out, number, sum);
}

/* Draws on from rng until there is a space. */
static const char *tell(struct unit *u, struct hb_rng *rng, int number)
{
    struct hb_plan_ask ask;
    struct hb_plan plan;
    struct space space;
    uint64_t sum = 0;
    do
        hb_diag_init(&u->diag, u->env.arena);
    while (!draw_case(u, rng, number, &space));
    hb_plan_ask_make(&u->env, &space.spec, &space.device, &ask);
    if (!draw_budget(rng, &ask))
        return hb_arena_printf(u->env.arena, "%d\n", number);
    draw_memory(rng, &space.spec, ask.budget_bytes);
    search(&ask, number, &plan, &sum);
    return hb_arena_printf(u->env.arena, "%d %s %lld %lld %u %u %08llx\n", number,
                           hb_plan_status_name(plan.status), (long long)plan.best.step_ns,
                           (long long)plan.best.peak_bytes, plan.space.cell_count, plan.counts.runs,
                           (unsigned long long)(sum >> 32));
}

static void searches_do_what_they_did(void **state)
{
    (void)state;
    struct told told = told_open(TOLD);
    struct unit u;
    for (int number = 0; number < SPACES && told_goes_on(&told); number++) {
        struct hb_rng rng = hb_rng_seed(1000 + (uint64_t)number);
        unit_start(&u);
        told_line(&told, tell(&u, &rng, number));
        unit_end(&u);
    }
    told_close(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(searches_do_what_they_did)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
