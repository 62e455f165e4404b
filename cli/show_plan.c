/* Plans as text: see show_plan.h. */
#include "cli/show_plan.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "base/str.h"
#include "hw/device.h"
#include "cli/show_tensors.h"
#include "cli/wrap.h"
#include "models/schema.h"
#include "models/spec_names.h"
#include "sim/engine/cost.h"
#include "sim/ir/habits.h"

struct page {
    const struct hb_env *env;
    FILE *out;
    const struct hb_plan_answer *a;
};

static const char *size_text(const struct page *g, int64_t bytes)
{
    return hb_size_print(bytes, hb_arena_alloc(g->env->arena, HB_SIZE_TEXT, 1));
}

static const char *time_text(const struct page *g, int64_t ns)
{
    return hb_time_print(ns, hb_arena_alloc(g->env->arena, HB_SIZE_TEXT, 1));
}

static const char *mesh_text(const struct page *g, const int64_t *mesh)
{
    struct hb_str s;
    hb_str_init(&s, g->env->arena);
    for (int i = 0; i < HB_AX_COUNT; i++)
        if (mesh[i] > 1)
            hb_str_addf(&s, "%s%s %" PRId64, s.len ? " x " : "", hb_axis_names[i], mesh[i]);
    return s.len ? s.text : "one device";
}

static const char *names_text(const struct page *g, uint32_t mask)
{
    struct hb_str s;
    hb_str_init(&s, g->env->arena);
    for (int t = 0; t < HB_TN_COUNT; t++)
        if (mask >> t & 1)
            hb_str_addf(&s, "%s%s", s.len ? ", " : "", hb_tensor_names[t]);
    return s.len ? s.text : "-";
}

static const char *policy_text(const struct page *g, const struct hb_remat *r)
{
    static const char *const words[] = {"keeps everything", "recomputes everything",
                                        "keeps all products", "keeps products without batch", ""};
    if (r->policy != HB_POLICY_NAMES && !r->offload)
        return words[r->policy];
    struct hb_str s;
    hb_str_init(&s, g->env->arena);
    if (r->save)
        hb_str_addf(&s, "keeps %s", names_text(g, r->save));
    if (r->offload)
        hb_str_addf(&s, "%soffloads %s", s.len ? "; " : "", names_text(g, r->offload));
    return s.len ? s.text : "recomputes everything";
}

/* What no other compiler's cells have. */
static void add_torch_words(struct hb_str *s, const struct hb_spec *base,
                            const struct hb_cell *cell)
{
    if (cell->mesh[HB_AX_PIPELINE] > 1)
        hb_str_addf(s, ", %s of %" PRId64 " microbatches", hb_schedule_name(cell->torch.schedule),
                    cell->microbatches);
    if (cell->mesh[HB_AX_PIPELINE] > 1 && cell->torch.repeats > 1)
        hb_str_addf(s, ", %" PRId64 " chunks a rank", cell->torch.repeats);
    if (!cell->torch.reshard && base->runtime.framework != HB_FW_MEGATRON)
        hb_str_add(s, ", gathered weights stay");
    if (cell->torch.every > 1)
        hb_str_addf(s, ", 1 layer of %" PRId64 " checkpointed", cell->torch.every);
}

const char *hb_show_plan_name(const struct hb_env *env, const struct hb_plan *plan,
                              const struct hb_candidate *candidate)
{
    struct page g = {env, NULL, NULL};
    struct hb_str s;
    const struct hb_cell *cell = &plan->space.cells[candidate->cell];
    hb_str_init(&s, env->arena);
    hb_str_add(&s, mesh_text(&g, cell->mesh));
    if (cell->batch_global != plan->space.base->batch.global)
        hb_str_addf(&s, ", batch %" PRId64, cell->batch_global);
    if (cell->accumulate > 1)
        hb_str_addf(&s, ", %" PRId64 " microbatches", cell->accumulate);
    if (cell->form != HB_FORM_SCAN && plan->space.base->compiler != HB_TORCH)
        hb_str_addf(&s, ", %s", hb_form_names[cell->form]);
    if (cell->loss_chunks > 1)
        hb_str_addf(&s, ", %" PRId64 " chunks", cell->loss_chunks);
    if (cell->optimizer_offload == HB_PLACE_PINNED_HOST)
        hb_str_add(&s, ", optimizer on the host");
    if (plan->space.base->compiler == HB_TORCH)
        add_torch_words(&s, plan->space.base, cell);
    for (uint32_t k = 0; k < candidate->run_count; k++) {
        const struct hb_run *r = &candidate->runs[k];
        const char *policy = policy_text(&g, &plan->menus[r->block].policies[r->policy]);
        hb_str_add(&s, k ? "; " : ": ");
        if (candidate->run_count > 1)
            hb_str_addf(&s, "%d %s: ", r->steps, plan->space.base->model.blocks[r->block].name);
        hb_str_add(&s, policy);
    }
    return s.text;
}

/* --- which plan --- */

void hb_show_choose(struct hb_env *env, struct hb_plan_answer *a)
{
    a->roomier = (struct hb_roomier){.found = false};
    a->takes_room = false;
    if (!a->plan->found || a->ask->objective == HB_OBJ_MEMORY || a->ask->spec->compiler == HB_TORCH)
        return;
    hb_nearly_roomier(env->arena, a->ask, a->plan, &a->roomier);
    a->takes_room = a->roomier.found && hb_margin_prefers_room(a->ask, &a->margin);
}

const struct hb_plan *hb_show_chosen_plan(const struct hb_plan_answer *a)
{
    return a->takes_room ? a->roomier.plan : a->plan;
}

const struct hb_candidate *hb_show_chosen(const struct hb_plan_answer *a)
{
    return a->takes_room ? &a->roomier.candidate : &a->plan->best;
}

/* In per cent of the plan that is printed. */
static double worse_pct(const struct page *g, const struct hb_candidate *c)
{
    return 100 * (c->value / hb_show_chosen(g->a)->value - 1);
}

/* --- the plan --- */

static void show_torch_shape(const struct page *g)
{
    const struct hb_spec *s = g->a->spec;
    fputc('\n', g->out);
    if (s->mesh[HB_AX_PIPELINE] > 1)
        fprintf(g->out, "  pipeline    %s, %" PRId64 " microbatches, %" PRId64 " chunk%s a rank\n",
                hb_schedule_name(s->pipeline.schedule), s->pipeline.microbatches,
                s->pipeline.repeats, s->pipeline.repeats == 1 ? "" : "s");
    if (s->runtime.framework != HB_FW_MEGATRON)
        fprintf(g->out, "  gathered    weights %s\n",
                s->sharding.reshard_after_forward ? "are given back after the forward pass"
                                                  : "stay until the backward pass");
    if (s->mesh[HB_AX_TENSOR] > 1)
        fprintf(g->out, "  tensor axis %s sequence parallelism\n",
                s->sharding.residual_over_tensor ? "with" : "without");
}

static void show_shape(const struct page *g)
{
    const struct hb_spec *s = g->a->spec;
    fprintf(g->out, "  mesh        %s\n", mesh_text(g, s->mesh));
    fprintf(g->out, "  batch       %" PRId64 " sequences of %" PRId64 " tokens", s->batch.global,
            s->batch.seq);
    if (s->batch.accumulate > 1)
        fprintf(g->out, ", accumulated over %" PRId64 " microbatches", s->batch.accumulate);
    if (s->compiler == HB_TORCH) {
        show_torch_shape(g);
        return;
    }
    fprintf(g->out, "\n  stack       %s", hb_form_names[s->stack.form]);
    if (s->stack.form == HB_FORM_NESTED && s->stack.outer)
        fprintf(g->out, ", %" PRId64 " outer blocks", s->stack.outer);
    fprintf(g->out, "; loss in %" PRId64 " chunk%s; optimizer states on the %s\n", s->loss.chunks,
            s->loss.chunks == 1 ? "" : "s",
            s->optimizer.offload == HB_PLACE_PINNED_HOST ? "host" : "device");
    if (s->mesh[HB_AX_PIPELINE] > 1)
        fprintf(g->out, "  pipeline    %" PRId64 " microbatches\n", s->pipeline.microbatches);
}

/* Time of the ops of the backward pass that repeat the forward pass, and of host copies. */
static void show_remade(const struct page *g)
{
    const struct hb_program *p = &g->a->result->program;
    struct hb_cost cost;
    int64_t remade = 0, copied = 0;
    const bool *optional = hb_segment_optional_ops(g->env->arena, p);
    hb_cost_init(&cost, p, g->a->ask->device);
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        int64_t ns = hb_mul_sat(hb_cost_op_ns(&cost, i), hb_program_times(p, op));
        if (op->kind == HB_OP_HOST_COPY)
            copied = hb_add_sat(copied, ns);
        else if (op->stream == HB_STREAM_COMPUTE && op->loop != HB_NONE && optional[i] &&
                 op->kind != HB_OP_COPY)
            remade = hb_add_sat(remade, ns);
    }
    fprintf(g->out, "  recomputed  %s a step; copied to and from the host %s\n",
            time_text(g, remade), time_text(g, copied));
}

/* One policy for all layers, or for every k-th. */
static void show_torch_policies(const struct page *g)
{
    const struct hb_spec *s = g->a->spec;
    for (int i = 0; i < s->model.block_count; i++) {
        const struct hb_block *b = &s->model.blocks[i];
        bool some = s->remat.every > 1 && b->remat.policy != HB_POLICY_NONE;
        fprintf(g->out, "  %-11s %" PRId64 " layer%s: %s%s\n", b->name, b->repeat,
                b->repeat == 1 ? "" : "s", policy_text(g, &b->remat),
                some ? hb_arena_printf(g->env->arena,
                                       " (1 layer of %" PRId64 ", the others keep all)",
                                       s->remat.every)
                     : "");
    }
}

static void show_ranks(const struct page *g)
{
    const struct hb_memory *m = &g->a->result->memory;
    int64_t least = m->rank_count ? m->rank_peaks[0] : 0;
    for (int64_t i = 0; i < m->rank_count; i++)
        least = m->rank_peaks[i] < least ? m->rank_peaks[i] : least;
    if (m->rank_count)
        fprintf(g->out, "  ranks       %" PRId64 ": from %s to %s (rank %" PRId64 ")\n",
                m->rank_count, size_text(g, least), size_text(g, m->peak_bytes), m->rank);
}

static void show_policies(const struct page *g)
{
    const struct hb_model *m = &g->a->spec->model;
    if (g->a->spec->compiler == HB_TORCH) {
        show_torch_policies(g);
        show_ranks(g);
        return;
    }
    for (int i = 0; i < m->block_count; i++) {
        const struct hb_block *b = &m->blocks[i];
        fprintf(g->out, "  %-11s %" PRId64 " layer%s: %s\n", b->name, b->repeat,
                b->repeat == 1 ? "" : "s", policy_text(g, &b->remat));
        hb_show_tensors(g->env, g->out, g->a->result, g->a->ask->device, b->name);
    }
    show_remade(g);
}

/* What must be within the budget: the peak, or its interval's upper end. */
static int64_t needed_bytes(const struct page *g)
{
    const struct hb_result *r = g->a->result;
    return g->a->ask->confidence > 0 ? r->interval.high_bytes : r->memory.peak_bytes;
}

static const char *what_binds(const struct page *g)
{
    const struct hb_timing *t = &g->a->result->timing;
    int64_t budget = g->a->ask->budget_bytes;
    int most = HB_STREAM_COMPUTE;
    int64_t exposed = 0;
    for (int s = 0; s < HB_STREAM_COUNT; s++)
        if (t->exposed_ns[s] > exposed) {
            exposed = t->exposed_ns[s];
            most = s;
        }
    const char *stream =
        most == HB_STREAM_COMPUTE || exposed * 10 < t->step_ns
            ? "compute"
            : (most == HB_STREAM_D2H || most == HB_STREAM_H2D ? "the host link" : "the links");
    bool memory = needed_bytes(g) > budget - budget / 33;
    int64_t times = g->a->spec->batch.accumulate;
    const char *what = "";
    if (most == HB_STREAM_COLLECTIVE + HB_AX_FSDP && exposed * 2 > t->step_ns && times > 1)
        what =
            hb_arena_printf(g->env->arena, ", over which weights go in each of %lld microbatches",
                            (long long)times);
    return hb_arena_printf(g->env->arena, "%s%s%s", memory ? "memory, then " : "", stream, what);
}

/* Why the compiler's program multiplies more than the model, beyond what is made again; null: it
 * does not. */
static const char *why_more(const struct hb_spec *spec)
{
    for (int i = 0; i < spec->model.block_count; i++) {
        const struct hb_moe *m = &spec->model.blocks[i].moe;
        if (m->experts == 0)
            continue;
        if (m->dispatch == HB_DISPATCH_DENSE)
            return "every token passes all experts (moe.dispatch = dense)";
        if (m->dispatch == HB_DISPATCH_RAGGED && hb_habits_find(spec)->ragged_dense)
            return "this compiler takes each row through all experts whose weights a device "
                   "gathers (moe.dispatch = ragged)";
    }
    return NULL;
}

static void show_surplus(const struct page *g)
{
    const struct hb_result *r = g->a->result;
    const char *why = why_more(g->a->spec);
    if (why && r->hfu >= 2 * r->mfu && r->mfu > 0)
        fprintf(g->out, "  multiplies  %.3g times what the model needs: %s\n", r->hfu / r->mfu,
                why);
}

static void show_time(const struct page *g)
{
    const struct hb_timing *t = &g->a->result->timing;
    fprintf(g->out, "  time        ");
    const char *comma = "";
    for (int s = 0; s < HB_STREAM_COUNT; s++) {
        if (!t->busy_ns[s])
            continue;
        fprintf(g->out, "%s%s %s busy", comma, hb_stream_name((enum hb_stream)s),
                time_text(g, t->busy_ns[s]));
        if (t->exposed_ns[s])
            fprintf(g->out, " (%s not hidden)", time_text(g, t->exposed_ns[s]));
        comma = "; ";
    }
    fprintf(g->out, "\n  binds       %s\n", what_binds(g));
    show_surplus(g);
    if (g->a->faster)
        fprintf(g->out, "  beyond      outside of what was searched, %s\n", g->a->faster);
}

/* Of the plan's step, against the best that fills the budget. */
static const char *margin_cost(const struct page *g)
{
    const struct hb_plan *p = g->a->plan;
    const char *near = g->a->near ? " on this mesh" : "";
    if (!g->a->bare)
        return "";
    double cost = 100 * (p->best.value / g->a->bare->value - 1);
    if (cost < 0.005)
        return hb_arena_printf(g->env->arena, "; filling to the byte is no faster%s", near);
    return hb_arena_printf(g->env->arena, "; %s%.2g %% slower than filling to the byte%s",
                           g->a->takes_room ? "the fastest within it is " : "", cost, near);
}

/* What was given up for room, and what that brings. */
static void show_room(const struct page *g)
{
    const struct hb_candidate *best = &g->a->plan->best, *own = hb_show_chosen(g->a);
    double cost = 100 * (own->value / best->value - 1);
    if (!g->a->takes_room)
        return;
    const char *slower =
        cost < 0.005 ? "no slower" : hb_arena_printf(g->env->arena, "%.2g %% slower", cost);
    fprintf(g->out,
            "  room        %s more than with the fastest that fits, %s (plan.prefer=speed takes "
            "that)\n",
            size_text(g, best->peak_bytes - own->peak_bytes), slower);
}

static void show_margin(const struct page *g)
{
    const struct hb_interval *i = &g->a->result->interval;
    const struct hb_plan_ask *ask = g->a->ask;
    bool known = i->records > 0 || g->a->spec->compiler != HB_TORCH;
    if (!known && g->a->margin.kind <= HB_MARGIN_CONFIDENT)
        fprintf(g->out,
                "  margin      none: predictions for torch are not calibrated; --margin 5%% "
                "keeps some free\n");
    else if (g->a->margin.kind == HB_MARGIN_NONE)
        fprintf(g->out,
                "  margin      none: up to %s may be needed (%.3g %% of %u records like this)\n",
                size_text(g, i->high_bytes), 100 * i->confidence, i->records);
    else if (g->a->margin.kind == HB_MARGIN_CONFIDENT)
        fprintf(g->out,
                "  margin      up to %s fits: upper end of %.3g %% of %u records like this%s\n",
                size_text(g, i->high_bytes), 100 * i->confidence, i->records, margin_cost(g));
    else
        fprintf(g->out, "  margin      %s stays free%s\n",
                size_text(g, ask->whole_bytes - ask->budget_bytes), margin_cost(g));
}

/* Where the budget comes from, unless it was given. */
static void show_budget(const struct page *g)
{
    const struct hb_budget *b = &g->a->result->budget;
    const char *why = hb_budget_words(g->env->arena, b);
    if (*why && g->a->ask->whole_bytes == b->bytes)
        fprintf(g->out, "  budget      %s: %s\n", size_text(g, b->bytes), why);
}

/* What the states and tensors that were moved there take. */
static void show_host(const struct page *g)
{
    const struct hb_budget *b = &g->a->result->budget;
    int64_t own = g->a->result->memory.host_bytes;
    int64_t all = g->a->ask->host_bytes;
    if (!own)
        return;
    fprintf(g->out, "  host memory %s a device, %s a host of %" PRId64 " devices",
            size_text(g, own), size_text(g, hb_mul_sat(own, b->host_devices)), b->host_devices);
    if (all < INT64_MAX)
        fprintf(g->out, " (of %s%s)",
                size_text(g, hb_mul_sat(hb_add_sat(all, b->host_reserve_bytes), b->host_devices)),
                hb_budget_host_words(g->env->arena, b));
    fputc('\n', g->out);
    const char *pool = hb_budget_pool_words(g->env->arena, g->a->result->spec, b, own);
    if (*pool)
        fprintf(g->out, "              %s\n", pool);
}

/* What nobody wrote, as words for --set. */
static void show_filled(const struct page *g)
{
    const struct hb_spec *spec = g->a->ask->spec;
    const char *text = hb_schema_filled_text(g->env->arena, g->a->written, spec);
    if (!*text)
        return;
    fputs("  filled in   what the input leaves open (--set changes it):\n", g->out);
    hb_wrap_print(g->env, g->out, text, (int)strlen("  filled in   "));
}

static void show_verdict(const struct page *g)
{
    const struct hb_result *r = g->a->result;
    char count[HB_SIZE_TEXT];
    int64_t spare = g->a->ask->whole_bytes - r->memory.peak_bytes;
    fprintf(g->out, "%s%s a step%s, %s tokens/s, MFU %.1f %%, peak %s of %s (%s spare)\n\n",
            g->env->colour ? "\033[1;32m" : "", time_text(g, r->timing.step_ns),
            g->env->colour ? "\033[0m" : "", hb_count_print(r->tokens_per_second, count),
            100 * r->mfu, size_text(g, r->memory.peak_bytes), size_text(g, g->a->ask->whole_bytes),
            size_text(g, spare));
}

static void show_alternatives(const struct page *g)
{
    const struct hb_plan *p = g->a->plan;
    if (!p->alternative_count)
        return;
    fprintf(g->out, "\nNext of other kinds:\n");
    for (uint32_t i = 0; i < p->alternative_count; i++) {
        const struct hb_candidate *c = &p->alternatives[i];
        const struct hb_cell *cell = &p->space.cells[c->cell];
        if (p->space.base->compiler == HB_TORCH) {
            fprintf(g->out, "  %+6.2f %%  %s: %s\n", worse_pct(g, c),
                    hb_show_plan_name(g->env, p, c), size_text(g, c->peak_bytes));
            continue;
        }
        fprintf(g->out, "  %+6.2f %%  %s; accumulate %" PRId64 ", %s%s, %" PRId64 " chunks: %s\n",
                worse_pct(g, c), mesh_text(g, cell->mesh), cell->accumulate,
                hb_form_names[cell->form],
                cell->optimizer_offload == HB_PLACE_PINNED_HOST ? ", optimizer on the host" : "",
                cell->loss_chunks, size_text(g, c->peak_bytes));
        for (uint32_t k = 0; k < c->run_count; k++)
            fprintf(g->out, "             %d steps of %s: %s\n", c->runs[k].steps,
                    p->space.base->model.blocks[c->runs[k].block].name,
                    policy_text(g, &p->menus[c->runs[k].block].policies[c->runs[k].policy]));
    }
}

static void show_refused(const struct page *g)
{
    static const char *const words[] = {"leaves less free", "may not fit", "does not fit"};
    const struct hb_nearly *n = &g->a->nearly;
    if (n->count)
        fprintf(g->out, "\nFaster, and refused for memory:\n");
    for (uint32_t i = 0; i < n->count; i++) {
        const struct hb_candidate *c = &n->list[i].candidate;
        fprintf(g->out, "  %+6.2f %%  %s: %s", worse_pct(g, c),
                hb_show_plan_name(g->env, n->plan, c), size_text(g, c->peak_bytes));
        if (g->a->ask->confidence > 0)
            fprintf(g->out, ", up to %s", size_text(g, n->list[i].high_bytes));
        fprintf(g->out, ": %s (%s too much)\n", words[n->list[i].verdict],
                size_text(g, n->list[i].too_much_bytes));
    }
}

/* The one of the two that is not the plan. */
static void show_other(const struct page *g)
{
    const struct hb_plan_answer *a = g->a;
    const struct hb_candidate *fast = &a->plan->best, *small = &a->roomier.candidate;
    if (!a->roomier.found)
        return;
    const char *room = size_text(g, fast->peak_bytes - small->peak_bytes);
    if (a->takes_room)
        fprintf(g->out, "\nFastest:\n  %+6.2f %%  %s: %s (%s more)\n", worse_pct(g, fast),
                hb_show_plan_name(g->env, a->plan, fast), size_text(g, fast->peak_bytes), room);
    else
        fprintf(g->out, "\nWith more room:\n  %+6.2f %%  %s: %s (%s less)\n", worse_pct(g, small),
                hb_show_plan_name(g->env, a->roomier.plan, small), size_text(g, small->peak_bytes),
                room);
}

static void show_prices(const struct page *g)
{
    for (uint32_t i = 0; i < g->a->price_count; i++) {
        int64_t gain = g->a->plan->best.step_ns - g->a->prices[i].step_ns;
        fprintf(g->out, "%s%s more: %s\n", i ? "              " : "\nA budget of ",
                size_text(g, g->a->prices[i].more_bytes),
                gain > 0
                    ? hb_arena_printf(g->env->arena, "%s less a step (%.2f %%)", time_text(g, gain),
                                      100 * (double)gain / (double)g->a->plan->best.step_ns)
                    : "nothing gained");
    }
    if (g->a->price_count && g->a->near)
        fputs("              (with the same mesh, batch and accumulation)\n", g->out);
}

static void show_best_of(const struct page *g)
{
    const struct hb_plan *p = g->a->plan;
    uint32_t policies = 0;
    for (int i = 0; i < p->space.base->model.block_count; i++)
        policies += p->searched[i].count;
    if (p->status == HB_PLAN_OPTIMAL)
        fprintf(g->out, "Optimal: every other cell is excluded by a bound or searched (gap 0).\n");
    if (p->status == HB_PLAN_LIMIT && p->found)
        fprintf(g->out,
                "Cut off (--seconds, or Ctrl-C): the best so far. Nothing in the whole space is "
                "better by\nmore than %.2g %%.\n",
                100 * p->gap);
    if (p->status != HB_PLAN_BEST)
        return;
    if (p->counts.left)
        fprintf(g->out,
                "Best of %u policies where it was looked: %u cells may be better by their bounds "
                "and were left\n(--thorough searches them).\n",
                policies, p->counts.left);
    else
        fprintf(g->out,
                "Best of %u policies: every other cell is excluded by a bound or searched with "
                "them.\n",
                policies);
    fprintf(g->out,
            "Over all policies nothing is better by more than %.2g %% (%u linear programs "
            "of up to %u x %u).\n",
            100 * p->gap, p->counts.lps, p->counts.lp_rows, p->counts.lp_columns);
}

static void show_proof(const struct page *g)
{
    show_best_of(g);
    if (g->a->takes_room)
        fprintf(g->out,
                "All this is said of the fastest; how far the plan is from it stands at room.\n");
}

static void show_brute_force(const struct page *g)
{
    if (g->a->exhaust_ran)
        fprintf(g->out, "Brute force over all of them %s.\n",
                g->a->exhaust_agrees ? "agrees" : "DISAGREES");
}

static void show_torch_search(const struct page *g)
{
    const struct hb_plan *p = g->a->plan;
    const struct hb_plan_counts *k = &p->counts;
    fprintf(g->out, "\nSearched %s:\n", hb_space_words(g->env->arena, &p->space));
    fprintf(g->out,
            "%u configurations, the step of each priced; from the fastest on %u bounded by their "
            "ranks' floors,\n%u run (%u did not fit), %.2f s.\n",
            k->cells, k->cell_floors, k->runs, k->cuts, p->seconds);
    if (p->status == HB_PLAN_OPTIMAL)
        fprintf(g->out, "Optimal: every other configuration is slower, or what a rank takes at "
                        "least exceeds\nthe budget, or it was run and does not fit (gap 0).\n");
    show_brute_force(g);
}

static const char *programs_proven(const struct page *g)
{
    const struct hb_plan_counts *k = &g->a->plan->counts;
    if (k->ilps == 0)
        return "";
    return hb_arena_printf(g->env->arena, " (%u proven by linear ones, else GLPK's word)",
                           k->ilps_proven);
}

static void show_search(const struct page *g)
{
    const struct hb_plan_counts *k = &g->a->plan->counts;
    if (g->a->plan->space.base->compiler == HB_TORCH) {
        show_torch_search(g);
        return;
    }
    fprintf(g->out, "\nSearched %s: %.3g configurations in %u cells;\n",
            hb_space_words(g->env->arena, &g->a->plan->space), k->raw, k->cells);
    fprintf(g->out,
            "%u integer programs%s, %" PRIu64 " configurations priced, %u run (%u cut for their "
            "packed peak), %.2f s.\n",
            k->ilps, programs_proven(g), k->priced + k->dived, k->runs, k->cuts,
            g->a->plan->seconds);
    if (k->polished)
        fprintf(g->out,
                "Around the best of %u cell%s one and two tensors were turned: %" PRIu64
                " more priced, %u run.\n",
                k->polished, k->polished == 1 ? "" : "s", k->turned, k->polish_runs);
    show_proof(g);
    show_brute_force(g);
}

/* --- nothing fits --- */

static void show_largest(const struct page *g)
{
    const struct hb_memory *m = &g->a->result->memory;
    for (uint32_t i = 0; i < m->at_peak_count && i < 6; i++)
        fprintf(g->out, "      %-56s %s\n", g->a->result->program.bufs[m->at_peak[i].buf].name,
                size_text(g, m->at_peak[i].bytes));
}

static void show_freer(const struct page *g)
{
    if (g->a->advice)
        fprintf(g->out, "Of the step as the file has it, most is freed by %s.\n", g->a->advice);
}

static void show_cut_off(const struct page *g)
{
    fprintf(g->out, "no plan yet in %s: the search was cut off (--seconds, or Ctrl-C)\n",
            size_text(g, g->a->ask->whole_bytes));
    show_freer(g);
}

static void show_infeasible(const struct page *g)
{
    uint32_t left = g->a->plan->counts.left;
    fprintf(g->out, "%sno plan %s%s in %s\n", g->env->colour ? "\033[1;31m" : "",
            left ? "was found that fits" : "fits", g->env->colour ? "\033[0m" : "",
            size_text(g, g->a->ask->whole_bytes));
    if (left)
        fprintf(g->out, "That none does is not proven: %u cells may have one by their bounds.\n",
                left);
    if (g->a->bare)
        fprintf(g->out, "\nWithout a margin (--margin none) %s a step, peak %s: it may not fit.\n",
                time_text(g, g->a->bare->step_ns), size_text(g, g->a->bare->peak_bytes));
    if (!g->a->result) {
        fprintf(g->out, "\nWhat needs least was not found by the end of the search (--seconds).\n");
        show_freer(g);
        return;
    }
    fprintf(g->out, "\nSmallest peak: %s%s, %s too much, with\n",
            size_text(g, g->a->result->memory.peak_bytes),
            g->a->ask->confidence > 0
                ? hb_arena_printf(g->env->arena, ", up to %s", size_text(g, needed_bytes(g)))
                : "",
            size_text(g, needed_bytes(g) - g->a->ask->budget_bytes));
    show_shape(g);
    show_policies(g);
    fprintf(g->out, "  largest at the peak:\n");
    show_largest(g);
    fprintf(g->out, "\nWhat would do: a budget of %s",
            size_text(g, hb_round_up(needed_bytes(g), 1 << 20)));
    if (g->a->least_devices)
        fprintf(g->out, ", or %" PRId64 " devices", g->a->least_devices);
    fprintf(g->out, ".\n");
    if (g->a->advice)
        fprintf(g->out, "Outside of what was searched, most is freed by %s.\n", g->a->advice);
}

void hb_show_plan_text(const struct hb_env *env, FILE *out, const struct hb_plan_answer *a)
{
    struct page g = {env, out, a};
    fprintf(out, "%s on %" PRId64 " x %s: ", a->ask->spec->model.name, a->ask->devices,
            a->ask->device->name);
    if (!a->plan->found) {
        if (a->plan->status == HB_PLAN_LIMIT && !a->plan->counts.left)
            show_cut_off(&g);
        else
            show_infeasible(&g);
        show_search(&g);
        return;
    }
    show_verdict(&g);
    show_shape(&g);
    show_policies(&g);
    show_time(&g);
    show_margin(&g);
    show_room(&g);
    show_budget(&g);
    show_host(&g);
    show_filled(&g);
    show_alternatives(&g);
    show_other(&g);
    show_refused(&g);
    show_prices(&g);
    show_search(&g);
}
