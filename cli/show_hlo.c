/* `hbmsim hlo` as text: figures, what stands at the peak, the curve, what was found. */
#include <math.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "cli/show_hlo.h"
#include "cli/wrap.h"

enum { CURVE_ROWS = 24, BAR_WIDTH = 48, OPS_SHOWN = 6, FORECASTS_SHOWN = 12 };

struct page {
    const struct hb_env *env;
    FILE *out;
    const struct hb_hlo_shown *shown;
    const struct hb_hlo_report *r;
};

static const char *size_text(const struct page *g, int64_t bytes)
{
    return hb_size_print(bytes, hb_arena_alloc(g->env->arena, HB_SIZE_TEXT, 1));
}

static double mib(int64_t bytes)
{
    return (double)bytes / 0x1p20;
}

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

static void start_bold(const struct page *g)
{
    if (g->env->colour)
        fputs("\033[1m", g->out);
}

static void end_bold(const struct page *g)
{
    if (g->env->colour)
        fputs("\033[0m", g->out);
}

static void show_head(const struct page *g)
{
    const struct hb_hlo_module *m = g->r->hp.m;
    fprintf(g->out, "%s: %.*s, %u instructions, %s", g->shown->file, (int)m->name.len,
            m->name.at ? m->name.at : "", m->inst_count,
            m->scheduled ? "scheduled" : "without a schedule");
    if (m->partitions > 1)
        fprintf(g->out, ", %s %lld devices",
                m->partitioned ? "the part of one of" : "to be divided over",
                (long long)m->partitions);
    fprintf(g->out, "; rules of %s%s\n\n", m->dialect->name,
            g->shown->backend_given ? "" : " (guessed; --backend sets it)");
}

static void show_figure(const struct page *g, const char *name, int64_t bytes, const char *note)
{
    fprintf(g->out, "  %-14s %12s  %16lld%s%s\n", name, size_text(g, bytes), (long long)bytes,
            *note ? "  " : "", note);
}

static void show_figures(const struct page *g)
{
    const struct hb_hlo_figures *f = &g->r->figures;
    start_bold(g);
    const struct hb_hlo_module *m = g->r->hp.m;
    show_figure(g, "total", f->total_bytes,
                m->partitions < 2 ? "argument + output - alias + temp"
                : m->partitioned  ? "argument + output - alias + temp, on each device"
                                  : "argument + output - alias + temp, of the whole arrays");
    end_bold(g);
    show_figure(g, "argument", f->argument_bytes, "");
    show_figure(g, "output", f->output_bytes, "");
    show_figure(g, "alias", f->alias_bytes, "of the output, in donated arguments");
    show_figure(g, "temp", f->temp_bytes, "");
    if (f->rounded_temp_bytes != f->temp_bytes)
        show_figure(g, "", f->rounded_temp_bytes, "as memory_analysis() tells it");
    show_figure(g, "fragmentation", f->fragmentation_bytes, "of temp");
    show_figure(g, "liveness bound", f->liveness_bound_bytes, "no packing needs less");
    if (f->host_bytes)
        show_figure(g, "host", f->host_bytes, "pinned, for each device");
}

static void show_order(const struct page *g, enum hb_order_kind kind)
{
    const struct hb_hlo_orders *o = &g->r->orders;
    bool own = kind == HB_ORDER_KINDS;
    fprintf(g->out, "  %-14s %12s", hb_hlo_order_title(kind),
            size_text(g, own ? o->printed_bytes : o->bytes[kind]));
    if (!own)
        fprintf(g->out, "  %5.2f of %-5u %5.2f of %u", hb_hlo_common_part(&o->entry[kind]),
                o->entry[kind].of, hb_hlo_common_part(&o->inside[kind]), o->inside[kind].of);
    fprintf(g->out, "%s%s\n", kind == o->least ? "  kept by XLA" : "",
            kind == g->r->order ? "  shown here" : "");
}

/* XLA's own estimate, and how much of the text's order each keeps. */
static void show_orders(const struct page *g)
{
    if (!g->r->ordered)
        return;
    fprintf(g->out, "\n  %-14s %12s  %-14s %s\n", "order", "estimate", "as the text",
            "inside loops");
    for (int kind = 0; kind <= HB_ORDER_KINDS; kind++)
        show_order(g, (enum hb_order_kind)kind);
}

static void show_remarks(const struct page *g)
{
    if (g->r->hp.m->scheduled)
        return;
    fputc('\n', g->out);
    hb_wrap_print(g->env, g->out,
                  hb_arena_printf(
                      g->env->arena,
                      "This module has no schedule; it was given one that keeps little alive (%s). "
                      "A module before optimisation is no predictor: here each operation stores "
                      "its result, while the compiler fuses, divides and reorders them first; 0.6 "
                      "to 6 times the compiled program's memory was seen. Read the dump after it "
                      "(--xla_dump_to=DIR, *after_optimizations.txt), or simulate the model.",
                      hb_hlo_order_title(g->r->order)),
                  0);
    if (g->r->hp.m->partitions > 1 && !g->r->hp.m->partitioned)
        hb_wrap_print(g->env, g->out,
                      "Its shapes are those of whole arrays: each device gets a part of them.", 0);
}

static void show_where(const struct page *g)
{
    const struct hb_memory *memory = &g->r->memory;
    const struct hb_hlo_program *hp = &g->r->hp;
    if (memory->peak_op < 0 || memory->peak_op >= hp->flow.end_time)
        return;
    uint32_t inst = hb_hlo_node_inst(&hp->flow, hp->node_at[memory->peak_op]);
    struct hb_hlo_span name = hb_hlo_name_of(hp->m, inst);
    fprintf(g->out, "\nMost is alive at operation %d of %d, %%%.*s (%s)\n", memory->peak_op + 1,
            hp->flow.end_time, (int)name.len, name.at, hb_hlo_op_name(hb_hlo_op_of(hp->m, inst)));
}

static void show_group(const struct page *g, const struct hb_hlo_group *group)
{
    struct hb_hlo_span name = group->op_name.len ? group->op_name : group->name;
    fprintf(g->out, "  %10.2f %6.2f %6u  %.*s  %s%.*s", mib(group->bytes),
            percent(group->bytes, g->r->figures.total_bytes), group->count, (int)group->shape.len,
            group->shape.at, group->op_name.len ? "" : "%", (int)name.len, name.at);
    if (group->file.at)
        fprintf(g->out, "  %.*s:%lld", (int)group->file.len, group->file.at,
                (long long)group->line);
    fputc('\n', g->out);
}

static void show_groups(const struct page *g)
{
    uint32_t shown = 0;
    int64_t rest = 0;
    if (!g->r->group_count)
        return;
    fprintf(g->out, "\n  %10s %6s %6s  %s\n", "MiB", "%", "count",
            "temporaries alive there: shape, operation, source");
    for (; shown < g->r->group_count && shown < g->shown->top; shown++)
        show_group(g, &g->r->groups[shown]);
    for (uint32_t i = shown; i < g->r->group_count; i++)
        rest += g->r->groups[i].bytes;
    if (shown < g->r->group_count)
        fprintf(g->out, "  %10.2f %6.2f %6s  in %u more\n", mib(rest),
                percent(rest, g->r->figures.total_bytes), "", g->r->group_count - shown);
}

static void show_curve(const struct page *g)
{
    const struct hb_hlo_report *r = g->r;
    uint32_t stride = r->curve_count / CURVE_ROWS + 1;
    int64_t top = 0;
    for (uint32_t i = 0; i < r->curve_count; i++)
        top = r->curve[i].live_bytes > top ? r->curve[i].live_bytes : top;
    if (top <= 0)
        return;
    fputs("\n  operation        alive\n", g->out);
    for (uint32_t i = 0; i < r->curve_count; i += stride) {
        int64_t most = 0;
        for (uint32_t k = i; k < r->curve_count && k < i + stride; k++)
            most = r->curve[k].live_bytes > most ? r->curve[k].live_bytes : most;
        fprintf(g->out, "  %9d %12s  ", r->curve[i].op + 1, size_text(g, most));
        int bar = (int)lround((double)most / (double)top * BAR_WIDTH);
        while (bar-- > 0)
            fputc('#', g->out);
        fputc('\n', g->out);
    }
}

static void show_way(const struct page *g, const char *name, const struct hb_hlo_way *way)
{
    fprintf(g->out, "       %-26s temp %11s  output %11s  %u permutes, %u all-gathers\n", name,
            size_text(g, way->temp_bytes), size_text(g, way->output_bytes), way->ops.permutes,
            way->ops.all_gathers);
}

static void show_forecast(const struct page *g, const struct hb_hlo_forecast *f)
{
    fprintf(g->out, "     %s: %u of %.*s, cut ", f->direction, f->pads, (int)f->shape.len,
            f->shape.at);
    for (int d = 0; d < f->rank; d++)
        fprintf(g->out, "%s%lld", d ? "x" : "", (long long)f->parts[d]);
    fprintf(g->out, ", padding %.*s\n", (int)f->padding.len, f->padding.at);
    fprintf(g->out,
            "       the partitioner makes %u broadcasts, %u pads, %u dynamic-slices, %u selects\n",
            f->kept.ops.broadcasts, f->kept.ops.pads, f->kept.ops.dynamic_slices,
            f->kept.ops.selects);
    show_way(g, "if these fuse", &f->fused);
    show_way(g, "if each stays", &f->kept);
    show_way(g, "as permutes of slabs", &f->permuted);
}

static void show_ops(const struct page *g, const struct hb_hlo_finding *finding)
{
    uint32_t shown = 0;
    if (!finding->op_count)
        return;
    fputs("     ops: ", g->out);
    for (; shown < finding->op_count && shown < OPS_SHOWN; shown++)
        fprintf(g->out, "%s%%%s", shown ? ", " : "", finding->ops[shown]);
    if (shown < finding->count)
        fprintf(g->out, " and %u more", finding->count - shown);
    fputc('\n', g->out);
}

static void show_bytes(const struct page *g, const struct hb_hlo_finding *finding)
{
    const char *bytes = size_text(g, finding->bytes), *held = size_text(g, finding->held_bytes);
    if (finding->kind == HB_HLO_FIND_OFFLOAD)
        fprintf(g->out, ": %s moved\n", held);
    else if (finding->kind == HB_HLO_FIND_PAD_FORECAST)
        fprintf(g->out, ": up to %s more on each device than need be\n", bytes);
    else
        fprintf(g->out, ": %s freed of %s held\n", bytes, held);
}

static void show_finding(const struct page *g, uint32_t number)
{
    const struct hb_hlo_finding *finding = &g->r->findings.items[number];
    fprintf(g->out, "\n%3u. ", number + 1);
    start_bold(g);
    fputs(hb_hlo_finding_name(finding->kind), g->out);
    end_bold(g);
    show_bytes(g, finding);
    hb_wrap_print(g->env, g->out, finding->what, 5);
    show_ops(g, finding);
    for (uint32_t i = 0; i < finding->forecast_count && i < FORECASTS_SHOWN; i++)
        show_forecast(g, &finding->forecasts[i]);
    if (finding->forecast_count > FORECASTS_SHOWN)
        fprintf(g->out, "     and %u more (--json has them)\n",
                finding->forecast_count - FORECASTS_SHOWN);
    hb_wrap_print(g->env, g->out, hb_arena_printf(g->env->arena, "-> %s", finding->advice), 5);
}

static void show_findings(const struct page *g)
{
    if (!g->r->findings.count) {
        fputs("\nNothing was found that costs memory and need not.\n", g->out);
        return;
    }
    fprintf(g->out, "\nFound, with what the total falls by when it is taken out and %s:\n",
            g->r->findings.by_liveness ? "what is alive is summed again (too large to pack each "
                                         "time)"
                                       : "the program is run again");
    for (uint32_t i = 0; i < g->r->findings.count; i++)
        show_finding(g, i);
}

void hb_show_hlo_text(const struct hb_env *env, FILE *out, const struct hb_hlo_shown *shown,
                      const struct hb_hlo_report *r)
{
    struct page g = {env, out, shown, r};
    show_head(&g);
    show_figures(&g);
    show_orders(&g);
    show_remarks(&g);
    show_where(&g);
    show_groups(&g);
    show_curve(&g);
    show_findings(&g);
}
