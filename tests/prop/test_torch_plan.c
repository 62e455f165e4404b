/* Plans of compiler torch against brute force: on random small spaces, for random budgets and each
 * objective, the search finds what running every configuration finds. HB_LONG=1 in the environment
 * tries 400 spaces instead of 100. */
#include "tests/prop/seed.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "tests/prop/torch_config.h"

#include "hw/device.h"
#include "sim/engine/measure.h"
#include "solver/plan.h"

enum { SPACES = 100, LONG_SPACES = 400, MOST_CELLS = 300 };

static struct unit u;

/* A budget near what the file's own configuration takes, or far from it. */
static int64_t draw_budget(struct hb_rng *rng, const struct hb_spec *spec)
{
    int64_t peak = 0;
    assert_true(hb_measure_peak(u.env.arena, spec, &peak));
    return peak / 100 * hb_rng_range(rng, 20, 160);
}

/* With as much as the plan takes it is found again, with a byte less it is not. */
static void fits_to_the_byte(const struct hb_plan_ask *ask, const struct hb_plan *plan,
                             const char *text)
{
    struct hb_plan_ask own = *ask;
    struct hb_plan tight;
    own.budget_bytes = own.whole_bytes = plan->best.peak_bytes;
    assert_true(hb_plan_find(u.env.arena, &own, &tight));
    if (!tight.found || tight.best.value > plan->best.value)
        fail_msg("%lld bytes do not fit into as many, of\n%s", (long long)own.budget_bytes, text);
    own.budget_bytes = --own.whole_bytes;
    assert_true(hb_plan_find(u.env.arena, &own, &tight));
    assert_true(!tight.found || tight.best.peak_bytes <= own.budget_bytes);
}

static void compare(struct hb_rng *rng, const struct hb_plan_ask *ask, const char *text, int *found)
{
    static const enum hb_objective objectives[] = {HB_OBJ_TOKENS, HB_OBJ_STEP_TIME, HB_OBJ_MEMORY};
    struct hb_plan_ask own = *ask;
    struct hb_plan plan;
    struct hb_candidate best;
    bool there = false;
    own.objective = objectives[hb_rng_range(rng, 0, 2)];
    assert_true(hb_plan_find(u.env.arena, &own, &plan));
    assert_true(hb_plan_exhaust(u.env.arena, &own, &plan, 1e6, &best, &there));
    if (plan.found != there)
        fail_msg("a plan is%s found, brute force says%s, of\n%s", plan.found ? "" : " not",
                 there ? " there is one" : " there is none", text);
    if (there && (plan.best.value > best.value || plan.best.value < best.value))
        fail_msg("value %.17g, brute force %.17g of\n%s", plan.best.value, best.value, text);
    assert_true(!there || (plan.status == HB_PLAN_OPTIMAL && plan.gap <= 0));
    for (uint32_t i = 0; i < plan.alternative_count; i++)
        assert_true(plan.alternatives[i].value >= plan.best.value &&
                    plan.alternatives[i].peak_bytes <= own.budget_bytes);
    *found += there;
    if (there)
        fits_to_the_byte(&own, &plan, text);
}

/* Of the written configuration with its pipeline: none where that is one of one chunk a rank. */
static void written_schedule_is_a_choice(const struct hb_spec *spec,
                                         const struct hb_plan_space *space, const char *text)
{
    enum hb_schedule own = spec->pipeline.schedule;
    bool there = spec->mesh[HB_AX_PIPELINE] == 1 ||
                 (own == HB_SCHED_INTERLEAVED && spec->pipeline.repeats == 1);
    for (uint32_t i = 0; i < space->cell_count; i++) {
        const struct hb_torch_cell *cell = &space->cells[i].torch;
        bool pipes = space->cells[i].mesh[HB_AX_PIPELINE] > 1;
        there = there || (cell->schedule == own && cell->repeats == spec->pipeline.repeats);
        if (pipes && hb_schedule_parts(cell->schedule) && (cell->reshard || cell->repeats < 2))
            fail_msg("%s with gathered weights given back, or one chunk a rank, of\n%s",
                     hb_schedule_name(cell->schedule), text);
    }
    if (!there)
        fail_msg("no configuration with the written %s of\n%s", hb_schedule_name(own), text);
}

static void plans_are_what_brute_force_finds(void **state)
{
    (void)state;
    int wanted = prop_cases_or(SPACES, LONG_SPACES), tried = 0, found = 0;
    struct hb_rng rng = hb_rng_seed(prop_seed(19));
    while (tried < wanted) {
        struct hb_spec spec;
        struct hb_device device;
        struct hb_plan_ask ask;
        struct hb_plan_space space;
        const char *text;
        unit_start(&u);
        struct hb_arena *arena = u.env.arena;
        if (torch_draw(arena, &rng, &spec, &text)) {
            spec.pipeline.rank = -1;
            assert_true(hb_device_load(arena, &u.diag, HB_SOURCE_DIR, spec.hardware.device,
                                       (struct hb_loc){0}, &device));
            hb_plan_ask_make(&u.env, &spec, &device, &ask);
            ask.budget_bytes = ask.whole_bytes = draw_budget(&rng, &spec);
            spec.plan.present = torch_chance(&rng, 50);
            spec.plan.mesh_axes = 1u << HB_AX_TENSOR | 1u << HB_AX_FSDP | 1u << HB_AX_DATA;
            spec.plan.remat = spec.plan.reshard = torch_chance(&rng, 70);
            struct hb_arena_mark mark = hb_arena_mark(arena);
            struct hb_plan plan;
            ask.objective = HB_OBJ_STEP_TIME;
            assert_true(hb_plan_find(arena, &ask, &plan));
            space = plan.space;
            written_schedule_is_a_choice(&spec, &space, text);
            hb_arena_rewind(arena, mark);
            if (space.cell_count <= MOST_CELLS) {
                compare(&rng, &ask, text, &found);
                tried++;
            }
        }
        unit_end(&u);
    }
    print_message("%d of %d have a plan\n", found, tried);
    assert_true(wanted < SPACES || (found > wanted / 3 && found < wanted));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_are_what_brute_force_finds)};
    return cmocka_run_group_tests_name("torch_plan", tests, NULL, NULL);
}
