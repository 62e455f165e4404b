/* Plans as JSON, and their certificate: see show_plan.h. */
#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "cli/show.h"
#include "cli/plan_verify.h"
#include "cli/show_plan.h"
#include "models/schema.h"
#include "models/spec_names.h"
#include "solver/certificate.h"

static const char *objective_name(enum hb_objective objective)
{
    static const char *const names[] = {"tokens_per_second", "step_time", "memory", "devices"};
    return names[objective];
}

/* Beside what is printed as the plan. */
static void put_candidate(struct hb_json *j, struct hb_env *env, const struct hb_plan_answer *a,
                          const struct hb_plan *p, const struct hb_candidate *c)
{
    struct hb_spec spec;
    hb_plan_spec(env->arena, p, c, &spec);
    hb_json_object(j);
    hb_json_put_text(j, "name", hb_show_plan_name(env, p, c));
    hb_json_put_real(j, "step_seconds", (double)c->step_ns * 1e-9);
    hb_json_put_int(j, "peak_bytes", c->peak_bytes);
    hb_json_put_real(j, "worse_by", c->value / hb_show_chosen(a)->value - 1);
    hb_json_key(j, "plan");
    hb_json_node(j, hb_schema_emit(env->arena, &spec, false));
    hb_json_object_end(j);
}

static void put_nearly(struct hb_json *j, struct hb_env *env, const struct hb_plan_answer *a)
{
    hb_json_key(j, "refused");
    hb_json_array(j);
    for (uint32_t i = 0; i < a->nearly.count; i++) {
        const struct hb_nearly_one *one = &a->nearly.list[i];
        const struct hb_candidate *c = &one->candidate;
        struct hb_spec spec;
        hb_plan_spec(env->arena, a->nearly.plan, c, &spec);
        hb_json_object(j);
        hb_json_put_text(j, "name", hb_show_plan_name(env, a->nearly.plan, c));
        hb_json_put_real(j, "step_seconds", (double)c->step_ns * 1e-9);
        hb_json_put_real(j, "better_by", 1 - c->value / hb_show_chosen(a)->value);
        hb_json_put_int(j, "peak_bytes", c->peak_bytes);
        hb_json_put_int(j, "high_bytes", one->high_bytes);
        hb_json_put_int(j, "too_much_bytes", one->too_much_bytes);
        hb_json_put_text(j, "verdict", hb_verdict_name(one->verdict));
        hb_json_key(j, "plan");
        hb_json_node(j, hb_schema_emit(env->arena, &spec, false));
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
    hb_json_key(j, "roomier");
    if (a->roomier.found && !a->takes_room)
        put_candidate(j, env, a, a->roomier.plan, &a->roomier.candidate);
    else
        hb_json_null(j);
    hb_json_key(j, "fastest");
    if (a->takes_room)
        put_candidate(j, env, a, a->plan, &a->plan->best);
    else
        hb_json_null(j);
}

/* What is kept free for it, and what the plan's objective is worse by than without: null where that
 * was not asked. */
static void put_margin(struct hb_json *j, const struct hb_plan_answer *a)
{
    int64_t bytes = a->ask->whole_bytes - a->ask->budget_bytes;
    if (a->ask->confidence > 0 && a->result)
        bytes = a->result->interval.high_bytes - a->result->memory.peak_bytes;
    hb_json_key(j, "margin");
    hb_json_object(j);
    hb_json_put_text(j, "kind", hb_margin_name(a->margin.kind));
    hb_json_put_int(j, "bytes", bytes);
    hb_json_key(j, "cost_pct");
    if (a->plan->found && a->margin.kind == HB_MARGIN_NONE)
        hb_json_real(j, 0);
    else if (a->plan->found && a->bare)
        hb_json_real(j, 100 * (a->plan->best.value / a->bare->value - 1));
    else
        hb_json_null(j);
    hb_json_object_end(j);
}

static void put_counts(struct hb_json *j, const struct hb_plan *p)
{
    const struct hb_plan_counts *k = &p->counts;
    double priced = (double)k->priced + (double)k->runs;
    hb_json_put_real(j, "considered", k->raw);
    hb_json_put_real(j, "pruned", k->raw > priced ? k->raw - priced : 0);
    hb_json_put_real(j, "seconds", p->seconds);
    hb_json_key(j, "counts");
    hb_json_object(j);
    hb_json_put_int(j, "cells", k->cells);
    hb_json_put_int(j, "nodes", k->nodes);
    hb_json_put_int(j, "cell_floors", k->cell_floors);
    hb_json_put_int(j, "integer_programs", k->ilps);
    hb_json_put_int(j, "integer_programs_proven", k->ilps_proven);
    hb_json_put_int(j, "priced", (int64_t)k->priced);
    hb_json_put_int(j, "run", k->runs);
    hb_json_put_int(j, "cut_by_the_engine", k->cuts);
    hb_json_put_int(j, "linear_programs", k->lps);
    hb_json_put_int(j, "polished", k->polished);
    hb_json_put_int(j, "polish_run", k->polish_runs);
    hb_json_put_int(j, "dive_priced", (int64_t)k->dived);
    hb_json_put_int(j, "polish_priced", (int64_t)k->turned);
    hb_json_put_int(j, "cells_left", k->left);
    hb_json_object_end(j);
}

static void put_infeasible(struct hb_json *j, struct hb_env *env, const struct hb_plan_answer *a)
{
    if (!a->result) {
        hb_json_put_text(j, "advice", a->advice);
        return;
    }
    hb_json_put_int(j, "smallest_peak_bytes", a->result->memory.peak_bytes);
    hb_json_key(j, "smallest_plan");
    hb_json_node(j, hb_schema_emit(env->arena, a->spec, true));
    hb_json_key(j, "smallest_prediction");
    hb_show_json(j, env->arena, a->result, false, NULL, NULL);
    hb_json_put_int(j, "least_budget_bytes",
                    hb_round_up(a->ask->confidence > 0 ? a->result->interval.high_bytes
                                                       : a->result->memory.peak_bytes,
                                1 << 20));
    hb_json_key(j, "least_devices");
    if (a->least_devices)
        hb_json_int(j, a->least_devices);
    else
        hb_json_null(j);
    hb_json_put_text(j, "advice", a->advice);
}

static void put_found(struct hb_json *j, struct hb_env *env, const struct hb_plan_answer *a)
{
    hb_json_put_text(j, "plan_name",
                     hb_show_plan_name(env, hb_show_chosen_plan(a), hb_show_chosen(a)));
    hb_json_key(j, "plan");
    hb_json_node(j, hb_schema_emit(env->arena, a->spec, true));
    hb_json_key(j, "prediction");
    hb_show_json(j, env->arena, a->result, false, NULL, NULL);
    if (a->faster)
        hb_json_put_text(j, "faster", a->faster);
    hb_json_key(j, "alternatives");
    hb_json_array(j);
    for (uint32_t i = 0; i < a->plan->alternative_count; i++)
        put_candidate(j, env, a, a->plan, &a->plan->alternatives[i]);
    hb_json_array_end(j);
    put_nearly(j, env, a);
    hb_json_key(j, "prices");
    hb_json_array(j);
    for (uint32_t i = 0; i < a->price_count; i++) {
        hb_json_object(j);
        hb_json_put_int(j, "more_bytes", a->prices[i].more_bytes);
        hb_json_put_real(j, "step_seconds", (double)a->prices[i].step_ns * 1e-9);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void put_filled(struct hb_json *j, struct hb_env *env, const struct hb_plan_answer *a)
{
    struct hb_schema_filled filled[HB_SCHEMA_MOST_FILLED];
    uint32_t count = hb_schema_filled(env->arena, a->written, a->ask->spec, filled);
    hb_json_key(j, "filled_in");
    hb_json_object(j);
    for (uint32_t i = 0; i < count; i++)
        hb_json_put_text(j, filled[i].path, filled[i].value);
    hb_json_object_end(j);
}

static void put_points(struct hb_json *j, const struct hb_pareto *p)
{
    hb_json_key(j, "points");
    hb_json_array(j);
    for (uint32_t i = 0; i < p->count; i++) {
        const struct hb_pareto_point *q = &p->points[i];
        if (q->rank != HB_RANK_OTHER)
            continue;
        hb_json_object(j);
        hb_json_put_text(j, "name", q->name);
        hb_json_put_real(j, "step_seconds", q->step_seconds);
        hb_json_put_int(j, "peak_bytes", q->peak_bytes);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

void hb_show_plan_json(struct hb_env *env, FILE *out, const struct hb_plan_answer *a,
                       const struct hb_pareto *points)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, out, true);
    hb_json_object(&j);
    struct hb_head head = hb_head_of(env, a->ask->spec);
    hb_head_json(&j, &head);
    hb_json_put_text(&j, "status", hb_plan_status_name(a->plan->status));
    if (a->plan->status == HB_PLAN_LIMIT && !a->plan->found)
        hb_json_key(&j, "gap"), hb_json_null(&j);
    else
        hb_json_put_real(&j, "gap", a->plan->gap);
    hb_json_put_text(&j, "objective", objective_name(a->ask->objective));
    hb_json_put_int(&j, "budget_bytes", a->ask->whole_bytes);
    put_margin(&j, a);
    put_filled(&j, env, a);
    put_counts(&j, a->plan);
    if (a->exhaust_ran) {
        hb_json_put_bool(&j, "exhaustive_agrees", a->exhaust_agrees);
    }
    if (a->plan->found)
        put_found(&j, env, a);
    else
        put_infeasible(&j, env, a);
    if (a->verified) {
        hb_json_key(&j, "verified");
        hb_verified_json(&j, a->verified);
    }
    if (points)
        put_points(&j, points);
    hb_json_object_end(&j);
    hb_json_end(&j);
}

/* --- the certificate --- */

static void put_torch_cell(struct hb_json *j, const struct hb_plan *p, const struct hb_cell *c)
{
    hb_json_put_text(j, "remat", hb_policy_names[p->menus[0].policies[c->torch.policy].policy]);
    hb_json_put_int(j, "every", c->torch.every);
    hb_json_put_bool(j, "reshard_after_forward", c->torch.reshard);
    hb_json_put_text(j, "schedule", hb_schedule_name(c->torch.schedule));
    hb_json_put_int(j, "microbatches", c->microbatches);
    hb_json_put_int(j, "repeats", c->torch.repeats);
}

static void put_cell(struct hb_json *j, const struct hb_plan *p, uint32_t index)
{
    const struct hb_cell *c = &p->space.cells[index];
    const struct hb_cell_row *row = &p->rows[index];
    hb_json_object(j);
    hb_json_key(j, "mesh");
    hb_json_object(j);
    for (int a = 0; a < HB_AX_COUNT; a++)
        if (c->mesh[a] > 1)
            hb_json_put_int(j, hb_axis_names[a], c->mesh[a]);
    hb_json_object_end(j);
    hb_json_put_int(j, "batch", c->batch_global);
    hb_json_put_int(j, "accumulate", c->accumulate);
    put_torch_cell(j, p, c);
    hb_json_put_text(j, "by", hb_cell_fate_name(row->fate));
    if (row->value < 1e300)
        hb_json_put_real(j, "not_below", row->value);
    hb_json_put_int(j, "run", row->runs);
    hb_json_object_end(j);
}

/* Of compiler torch: its space is a list. */
static void put_list(struct hb_env *env, FILE *out, const struct hb_plan_answer *a)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, out, false);
    hb_json_object(&j);
    hb_json_put_int(&j, "certificate", HB_CERTIFICATE_FORM);
    hb_json_put_text(&j, "model", a->ask->spec->model.name);
    hb_json_put_text(&j, "status", hb_plan_status_name(a->plan->status));
    hb_json_put_text(&j, "unit",
                     a->ask->objective == HB_OBJ_MEMORY      ? "bytes"
                     : a->ask->objective == HB_OBJ_STEP_TIME ? "ns"
                                                             : "ns per token");
    if (a->plan->found)
        hb_json_put_real(&j, "optimum", a->plan->best.value);
    hb_json_key(&j, "cells");
    hb_json_array(&j);
    for (uint32_t i = 0; i < a->plan->space.cell_count; i++)
        put_cell(&j, a->plan, i);
    hb_json_array_end(&j);
    hb_json_object_end(&j);
    hb_json_end(&j);
}

void hb_show_certificate(struct hb_env *env, FILE *out, const struct hb_plan_answer *a)
{
    if (a->ask->spec->compiler == HB_TORCH)
        put_list(env, out, a);
    else
        hb_certificate_write(env, out, a->ask, a->plan, a->takes_room ? &a->roomier : NULL);
}
