/* A plan's picture: see draw_plan.h. What the search ran itself stands close around the plan, so
 * the sample shows the rest of the space. */
#include "cli/draw_plan.h"

#include "base/arena.h"
#include "base/env.h"
#include "plots/place.h"
#include "solver/sample.h"

static void add_point(struct hb_env *env, const struct hb_plan *plan, const struct hb_candidate *c,
                      enum hb_pareto_rank rank, struct hb_pareto *out)
{
    out->points[out->count++] = (struct hb_pareto_point){.name = hb_show_plan_name(env, plan, c),
                                                         .peak_bytes = c->peak_bytes,
                                                         .step_seconds = (double)c->step_ns * 1e-9,
                                                         .rank = rank};
}

/* Beyond what anyone would choose from: it would press the rest into a corner. */
static bool is_far(const struct hb_plan_answer *a, const struct hb_candidate *c)
{
    enum { TIMES = 3 };
    bool found = a->plan->found;
    return found && (c->peak_bytes / TIMES > a->ask->budget_bytes ||
                     c->step_ns / TIMES > a->plan->best.step_ns);
}

void hb_draw_plan(struct hb_env *env, const struct hb_plan_answer *a, uint32_t most,
                  struct hb_pareto *out)
{
    const struct hb_plan *plan = a->plan;
    struct hb_candidate *sample;
    uint32_t count = hb_plan_sample(env->arena, a->ask, plan, most, &sample);
    *out = (struct hb_pareto){.name = a->ask->spec->model.name,
                              .place = hb_place_of(env->arena, a->ask->spec, HB_WHERE_COUNT),
                              .budget_bytes = a->ask->budget_bytes,
                              .plan = HB_NONE,
                              .cut_off = plan->status == HB_PLAN_LIMIT,
                              .considered = plan->counts.raw};
    out->points = hb_arena_alloc(env->arena, (size_t)count + plan->alternative_count + 2,
                                 sizeof *out->points);
    for (uint32_t i = 0; i < count; i++)
        if (!is_far(a, &sample[i]))
            add_point(env, plan, &sample[i], HB_RANK_OTHER, out);
    for (uint32_t i = 0; i < plan->alternative_count; i++)
        add_point(env, plan, &plan->alternatives[i], HB_RANK_RUNNER_UP, out);
    if (plan->found) {
        out->plan = out->count;
        add_point(env, hb_show_chosen_plan(a), hb_show_chosen(a), HB_RANK_PLAN, out);
        if (a->takes_room)
            add_point(env, plan, &plan->best, HB_RANK_RUNNER_UP, out);
    } else if (a->smallest) {
        add_point(env, a->smallest, &a->smallest->best, HB_RANK_RUNNER_UP, out);
    }
}
