/* `hbmsim hlo --json`. */
#include "base/arena.h"
#include "base/str.h"
#include "cli/head.h"
#include "cli/show_hlo.h"

static void write_span(struct hb_json *j, const char *key, struct hb_hlo_span span)
{
    struct hb_str text;
    hb_str_init(&text, j->out->arena);
    for (size_t i = 0; i < span.len; i++) /* text from anywhere: what JSON cannot hold is shown */
        hb_str_addn(&text, (unsigned char)span.at[i] < 0x80 && span.at[i] ? span.at + i : "?", 1);
    hb_json_put_text(j, key, text.text);
}

static void write_figures(struct hb_json *j, const struct hb_hlo_figures *f)
{
    hb_json_put_int(j, "total_bytes", f->total_bytes);
    hb_json_put_int(j, "argument_bytes", f->argument_bytes);
    hb_json_put_int(j, "output_bytes", f->output_bytes);
    hb_json_put_int(j, "alias_bytes", f->alias_bytes);
    hb_json_put_int(j, "temp_bytes", f->temp_bytes);
    hb_json_put_int(j, "memory_analysis_temp_bytes", f->rounded_temp_bytes);
    hb_json_put_int(j, "fragmentation_bytes", f->fragmentation_bytes);
    hb_json_put_int(j, "liveness_bound_bytes", f->liveness_bound_bytes);
    hb_json_put_int(j, "host_bytes", f->host_bytes);
}

static void write_group(struct hb_json *j, const struct hb_hlo_group *g)
{
    hb_json_object(j);
    write_span(j, "name", g->name);
    write_span(j, "op_name", g->op_name);
    hb_json_put_text(j, "opcode", g->opcode);
    write_span(j, "shape", g->shape);
    hb_json_put_int(j, "bytes", g->bytes);
    hb_json_put_int(j, "count", g->count);
    hb_json_key(j, "source");
    if (g->file.at) {
        hb_json_object(j);
        write_span(j, "file", g->file);
        hb_json_put_int(j, "line", g->line);
        hb_json_object_end(j);
    } else {
        hb_json_null(j);
    }
    hb_json_object_end(j);
}

static void write_way(struct hb_json *j, const char *key, const struct hb_hlo_way *w)
{
    hb_json_key(j, key);
    hb_json_object(j);
    hb_json_put_int(j, "temp_bytes", w->temp_bytes);
    hb_json_put_int(j, "output_bytes", w->output_bytes);
    hb_json_put_int(j, "collective_permutes", w->ops.permutes);
    hb_json_put_int(j, "all_gathers", w->ops.all_gathers);
    hb_json_object_end(j);
}

static void write_forecast(struct hb_json *j, const struct hb_hlo_forecast *f)
{
    hb_json_object(j);
    hb_json_put_text(j, "direction", f->direction);
    write_span(j, "shape", f->shape);
    write_span(j, "padding", f->padding);
    hb_json_key(j, "parts");
    hb_json_array(j);
    for (int d = 0; d < f->rank; d++)
        hb_json_int(j, f->parts[d]);
    hb_json_array_end(j);
    hb_json_put_int(j, "count", f->pads);
    hb_json_put_int(j, "broadcasts", f->kept.ops.broadcasts);
    hb_json_put_int(j, "pads", f->kept.ops.pads);
    hb_json_put_int(j, "dynamic_slices", f->kept.ops.dynamic_slices);
    hb_json_put_int(j, "selects", f->kept.ops.selects);
    write_way(j, "fused", &f->fused);
    write_way(j, "unfused", &f->kept);
    write_way(j, "permuted", &f->permuted);
    hb_json_object_end(j);
}

static void write_finding(struct hb_json *j, const struct hb_hlo_finding *f)
{
    hb_json_object(j);
    hb_json_put_text(j, "kind", hb_hlo_finding_name(f->kind));
    hb_json_key(j, "ops");
    hb_json_array(j);
    for (uint32_t i = 0; i < f->op_count; i++)
        hb_json_text(j, f->ops[i]);
    hb_json_array_end(j);
    hb_json_put_int(j, "count", f->count);
    hb_json_put_int(j, "bytes", f->bytes);
    hb_json_put_int(j, "held_bytes", f->held_bytes);
    hb_json_put_int(j, "total_without_bytes", f->total_bytes);
    hb_json_put_text(j, "what", f->what);
    hb_json_put_text(j, "advice", f->advice);
    if (f->forecast_count) {
        hb_json_key(j, "forecasts");
        hb_json_array(j);
        for (uint32_t i = 0; i < f->forecast_count; i++)
            write_forecast(j, &f->forecasts[i]);
        hb_json_array_end(j);
    }
    hb_json_object_end(j);
}

static void write_curve(struct hb_json *j, const struct hb_hlo_report *r)
{
    hb_json_key(j, "curve");
    hb_json_array(j);
    for (uint32_t i = 0; i < r->curve_count; i++) {
        hb_json_object(j);
        hb_json_put_int(j, "op", r->curve[i].op);
        hb_json_put_int(j, "live_bytes", r->curve[i].live_bytes);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void write_orders(struct hb_json *j, const struct hb_hlo_orders *o)
{
    hb_json_key(j, "orders");
    hb_json_object(j);
    hb_json_put_text(j, "least", hb_graph_order_name(o->least));
    hb_json_put_int(j, "printed_bytes", o->printed_bytes);
    for (int kind = 0; kind < HB_ORDER_KINDS; kind++) {
        hb_json_key(j, hb_graph_order_name((enum hb_order_kind)kind));
        hb_json_object(j);
        hb_json_put_int(j, "bytes", o->bytes[kind]);
        hb_json_put_int(j, "entry_ops", o->entry[kind].of);
        hb_json_put_int(j, "entry_in_order", o->entry[kind].same);
        hb_json_put_int(j, "inner_ops", o->inside[kind].of);
        hb_json_put_int(j, "inner_in_order", o->inside[kind].same);
        hb_json_object_end(j);
    }
    hb_json_object_end(j);
}

/* A dump has no configuration; TPUs' rules are named as their profiles. */
static struct hb_head find_head(struct hb_json *j, const struct hb_hlo_shown *shown,
                                const struct hb_hlo_module *m)
{
    static const char *const compilers[] = {
        [HB_HLO_CPU] = "xla-cpu", [HB_HLO_GPU] = "xla-gpu", [HB_HLO_TPU] = "xla-tpu"};
    bool tpu = m->dialect->backend == HB_HLO_TPU;
    return (struct hb_head){
        .name = hb_arena_strndup(j->out->arena, m->name.at, m->name.len),
        .version = shown->version,
        .compiler = compilers[m->dialect->backend],
        .device = tpu ? m->dialect->name : NULL,
    };
}

void hb_show_hlo_json(struct hb_json *j, const struct hb_hlo_shown *shown,
                      const struct hb_hlo_report *r, const struct hb_outcome *heap)
{
    const struct hb_hlo_module *m = r->hp.m;
    struct hb_head head = find_head(j, shown, m);
    hb_json_object(j);
    hb_head_json(j, &head);
    hb_json_put_text(j, "file", shown->file);
    write_span(j, "module", m->name);
    hb_json_put_text(j, "backend", m->dialect->name);
    hb_json_put_bool(j, "backend_given", shown->backend_given);
    hb_json_put_bool(j, "scheduled", m->scheduled);
    bool own = m->scheduled && !r->ordered;
    hb_json_put_text(j, "schedule", own ? "compiler" : hb_hlo_order_title(r->order));
    hb_json_put_int(j, "devices", m->partitions);
    hb_json_put_bool(j, "partitioned", m->partitioned);
    write_figures(j, &r->figures);
    if (r->ordered)
        write_orders(j, &r->orders);
    hb_json_key(j, "top");
    hb_json_array(j);
    for (uint32_t i = 0; i < r->group_count && i < shown->top; i++)
        write_group(j, &r->groups[i]);
    hb_json_array_end(j);
    hb_json_key(j, "findings");
    hb_json_array(j);
    for (uint32_t i = 0; i < r->findings.count; i++)
        write_finding(j, &r->findings.items[i]);
    hb_json_array_end(j);
    hb_json_put_bool(j, "findings_packed", !r->findings.by_liveness);
    write_curve(j, r);
    if (heap) {
        hb_json_put_int(j, "peak_bytes", heap->peak_bytes);
        hb_outcome_write_heap(j, heap);
    }
    hb_json_object_end(j);
}
