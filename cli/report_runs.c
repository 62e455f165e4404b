/* The runs of a report: see report_runs.h. Errors of a part go into its note, not to the command:
 * a report without a plan is still one. */
#include "cli/report_runs.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/env.h"
#include "base/node.h"
#include "cli/draw_plan.h"
#include "models/emit.h"
#include "models/schema.h"
#include "plots/place.h"
#include "solver/advise.h"
#include "solver/sweep.h"

enum { DOUBLINGS = 3, POINTS_DRAWN = 160, NAME_ROOM = 32 };

/* env with messages of its own. */
static struct hb_env quiet_env(const struct hb_env *env, struct hb_diag *quiet)
{
    struct hb_env own = *env;
    hb_diag_init(quiet, env->arena);
    own.diag = quiet;
    return own;
}

static const char *first_error(const struct hb_diag *diag)
{
    return diag->errors ? diag->entries[0].text : "it cannot be run";
}

/* --- sizes --- */

static bool can_be(struct hb_env *env, const struct hb_spec *spec, const char *key,
                   const char *value)
{
    struct hb_spec other;
    struct hb_node *root = hb_schema_emit(env->arena, spec, false);
    const char *set = hb_arena_printf(env->arena, "%s=%s", key, value);
    return hb_schema_set(env->arena, env->diag, root, set) &&
           hb_schema_from_node(env->arena, env->diag, root, env->data_dir, &other);
}

static struct hb_sweep_axis make_axis(struct hb_env *env, const struct hb_spec *spec,
                                      const char *key, int64_t middle)
{
    struct hb_sweep_axis axis = {.key = key};
    axis.values = hb_arena_alloc(env->arena, 2 * DOUBLINGS + 1, sizeof *axis.values);
    for (int i = -DOUBLINGS; i <= DOUBLINGS; i++) {
        int64_t factor = INT64_C(1) << (i < 0 ? -i : i);
        if (i < 0 ? middle % factor != 0 : middle > INT64_MAX / factor)
            continue;
        const char *value = hb_arena_printf(env->arena, "%lld",
                                            (long long)(i < 0 ? middle / factor : middle * factor));
        if (can_be(env, spec, key, value))
            axis.values[axis.count++] = value;
    }
    return axis;
}

void hb_report_sweep(struct hb_env *env, const struct hb_spec *spec, struct hb_html *report)
{
    struct hb_diag diag;
    struct hb_env own = quiet_env(env, &diag);
    struct hb_sweep sweep = {.root_count = 1, .preset_axis = HB_SWEEP_AXES, .axis_count = 2};
    struct hb_node *root = hb_schema_emit(env->arena, spec, false);
    struct hb_sweep_cell *cells;
    struct hb_sweep_ask ask = {.env = &own, .sweep = &sweep, .jobs = 1, .shard = 1, .shards = 1};
    sweep.roots = &root;
    sweep.axes[0] = make_axis(&own, spec, "batch.global", spec->batch.global);
    sweep.axes[1] = make_axis(&own, spec, "batch.seq", spec->batch.seq);
    hb_diag_init(&diag, env->arena);
    if (!hb_sweep_count(&diag, &sweep) || !hb_sweep_run(&ask, &cells)) {
        report->sweep_note = first_error(&diag);
        return;
    }
    struct hb_fit_map *map = hb_arena_alloc(env->arena, 1, sizeof *map);
    sweep.own = root;
    hb_fit_make(env->arena, &sweep, cells, hb_sweep_own(env->arena, &sweep, env->data_dir), map);
    map->place = hb_place_of(env->arena, spec, HB_WHERE_MESH);
    report->sweep = map;
}

/* --- the plan --- */

static void add_flags(struct hb_env *env, struct hb_html *report, enum hb_emit what,
                      const struct hb_spec *spec)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    hb_emit_program(what, &text, spec, env->data_dir);
    report->flags[report->flag_count++] = (struct hb_html_flags){hb_emit_title(what), text.text};
}

static const char *proof_note(struct hb_env *env, const struct hb_plan *plan, double seconds)
{
    switch (plan->status) {
    case HB_PLAN_OPTIMAL:
        return "Proven: every other configuration of the space is excluded by a bound or was run.";
    case HB_PLAN_BEST:
        return hb_arena_printf(
            env->arena, "%s; over all policies nothing is better by more than %.2g %%.",
            plan->counts.left ? "The best of what was looked at"
                              : "Every other configuration of the policies that were "
                                "searched is excluded by a bound or was run",
            100 * plan->gap);
    case HB_PLAN_INFEASIBLE:
        return "Nothing in the space fits; hbmsim plan tells the smallest peak and what would do.";
    case HB_PLAN_LIMIT:
        if (plan->found)
            return hb_arena_printf(env->arena,
                                   "The search was cut off after %g s: nothing in the space is "
                                   "better than this by more than %.2g %%.",
                                   seconds, 100 * plan->gap);
        if (plan->counts.left)
            return hb_arena_printf(env->arena,
                                   "Nothing was found that fits; that nothing does is not proven "
                                   "(%u cells may have it by their bounds).",
                                   plan->counts.left);
        return hb_arena_printf(env->arena,
                               "The search was cut off after %g s, before it found a plan; hbmsim "
                               "plan goes on to the end.",
                               seconds);
    }
    return "";
}

static const char *plan_note(struct hb_env *env, const struct hb_plan_answer *a, double seconds)
{
    const char *proof = proof_note(env, a->plan, seconds);
    if (!a->takes_room)
        return proof;
    return hb_arena_printf(env->arena,
                           "%s That is said of the fastest; this one is %.2g %% slower and has "
                           "more room.",
                           proof, 100 * (hb_show_chosen(a)->value / a->plan->best.value - 1));
}

static void show_plan(struct hb_env *env, const struct hb_plan_answer *a, struct hb_html *report)
{
    struct hb_pareto *pareto = hb_arena_alloc(env->arena, 1, sizeof *pareto);
    hb_draw_plan(env, a, POINTS_DRAWN, pareto);
    if (pareto->count)
        report->plan = pareto;
    if (!a->plan->found)
        return;
    struct hb_spec spec;
    hb_plan_spec(env->arena, hb_show_chosen_plan(a), hb_show_chosen(a), &spec);
    spec.plan.present = false;
    if (spec.compiler != HB_TORCH) {
        add_flags(env, report, HB_EMIT_MAXTEXT, &spec);
        add_flags(env, report, HB_EMIT_LEVANTER, &spec);
    } else if (spec.runtime.framework == HB_FW_MEGATRON) {
        add_flags(env, report, HB_EMIT_MEGATRON, &spec);
    } else {
        add_flags(env, report, HB_EMIT_TORCHTITAN, &spec);
    }
    add_flags(env, report, HB_EMIT_YAML, &spec);
}

void hb_report_plan(struct hb_env *env, const struct hb_spec *spec, const struct hb_device *device,
                    double seconds, struct hb_html *report)
{
    struct hb_diag diag;
    struct hb_env own = quiet_env(env, &diag);
    struct hb_plan_ask ask;
    struct hb_plan plan;
    hb_plan_ask_make(&own, spec, device, &ask);
    struct hb_stop stop = {.now_ns = env->now_ns};
    hb_stop_start(&stop, (int64_t)(seconds * 1e9));
    ask.stop = &stop;
    ask.keep_runs = true;
    struct hb_margin margin;
    if (!hb_margin_apply(&ask, &margin) || !hb_plan_find(env->arena, &ask, &plan)) {
        report->plan_note = first_error(&diag);
        return;
    }
    struct hb_plan_answer answer = {.ask = &ask, .plan = &plan, .margin = margin};
    hb_show_choose(env, &answer);
    report->plan_note = plan_note(env, &answer, seconds);
    if (plan.status == HB_PLAN_LIMIT)
        report->cut_note = report->plan_note;
    if (plan.found || plan.status != HB_PLAN_LIMIT)
        show_plan(env, &answer, report);
}

/* --- levers --- */

void hb_report_levers(struct hb_env *env, const struct hb_spec *spec,
                      const struct hb_device *device, struct hb_html *report)
{
    struct hb_diag diag;
    struct hb_env own = quiet_env(env, &diag);
    struct hb_advice_list list;
    if (!hb_advise_find(&own, spec, device, &list)) {
        report->levers_note = first_error(&diag);
        return;
    }
    struct hb_tornado *levers = hb_arena_alloc(env->arena, 1, sizeof *levers);
    hb_tornado_make(env->arena, "", &list, levers);
    levers->place = hb_place_of(env->arena, spec, HB_WHERE_MESH);
    if (levers->count)
        report->advise = levers;
}
