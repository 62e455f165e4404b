/* Reading the JSON of one simulated configuration: see outcome.h. */
#include "plots/outcome.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/size.h"
#include "base/str.h"
#include "plots/place.h"
#include "plots/reading.h"
#include "plots/scale.h"

const enum hb_category hb_stack_order[HB_CATEGORY_COUNT] = {
    HB_CAT_RUNTIME, HB_CAT_PARAMS,        HB_CAT_OPTIMIZER, HB_CAT_EMA,
    HB_CAT_INPUTS,  HB_CAT_SAVED,         HB_CAT_GRADIENTS, HB_CAT_LOGITS,
    HB_CAT_WORKING, HB_CAT_COMMUNICATION, HB_CAT_PADDING,   HB_CAT_FRAGMENTATION};

static void read_categories(struct hb_reading *f, const struct hb_node *map, int64_t *out_bytes)
{
    for (const struct hb_node *node = map ? map->first : NULL; node; node = node->next) {
        enum hb_category category = hb_category_find(node->key);
        if (category == HB_CATEGORY_COUNT)
            hb_reading_wrong(f, node, node->key, "one of the categories");
        else
            hb_reading_bytes(f, map, node->key, 0, &out_bytes[category]);
    }
}

static void check_sum(struct hb_reading *f, const struct hb_node *peak, const struct hb_outcome *o)
{
    int64_t sum = 0;
    for (int i = 0; i < HB_CATEGORY_COUNT; i++)
        sum = hb_add_sat(sum, o->category_bytes[i]);
    if (hb_node_find(peak, "categories") && sum != o->peak_bytes) {
        f->ok = false;
        hb_error(f->diag, peak->loc, "peak.categories sum to %lld bytes, but peak_bytes is %lld",
                 (long long)sum, (long long)o->peak_bytes);
    }
}

static void read_tensors(struct hb_reading *f, const struct hb_node *list, struct hb_outcome *o)
{
    if (!list)
        return;
    o->tensors = hb_arena_alloc(f->arena, list->count, sizeof *o->tensors);
    for (const struct hb_node *node = list->first; node; node = node->next) {
        struct hb_shown_tensor *t = &o->tensors[o->tensor_count++];
        *t = (struct hb_shown_tensor){.name = "", .why = "", .category = HB_CAT_WORKING};
        hb_reading_text(f, node, "name", &t->name);
        hb_reading_text(f, node, "why", &t->why);
        hb_reading_category(f, node, "category", &t->category);
        hb_reading_bytes(f, node, "bytes", 0, &t->bytes);
    }
}

/* One span, written as [start, end, name]. */
static bool read_span(struct hb_reading *f, const struct hb_node *node, struct hb_shown_span *out)
{
    const struct hb_node *name = hb_node_at(node, 2);
    bool good = node->kind == HB_NODE_LIST && node->count == 3 &&
                hb_node_real(hb_node_at(node, 0), &out->start_seconds) &&
                hb_node_real(hb_node_at(node, 1), &out->end_seconds) &&
                name->kind == HB_NODE_SCALAR && out->start_seconds <= out->end_seconds;
    if (!good)
        hb_reading_wrong(f, node, "spans", "[start, end, name]");
    else
        out->name = name->text;
    return good;
}

static void read_spans(struct hb_reading *f, const struct hb_node *list, struct hb_shown_span **out,
                       uint32_t *out_count)
{
    *out_count = 0;
    if (!list)
        return;
    *out = hb_arena_alloc(f->arena, list->count, sizeof **out);
    for (const struct hb_node *node = list->first; node; node = node->next)
        *out_count += read_span(f, node, &(*out)[*out_count]);
}

static void read_phases(struct hb_reading *f, const struct hb_node *list, struct hb_outcome *o)
{
    if (!list)
        return;
    o->phases = hb_arena_alloc(f->arena, list->count, sizeof *o->phases);
    for (const struct hb_node *node = list->first; node; node = node->next) {
        struct hb_shown_span *phase = &o->phases[o->phase_count++];
        phase->name = "";
        hb_reading_text(f, node, "name", &phase->name);
        hb_reading_real(f, node, "start_seconds", &phase->start_seconds);
        hb_reading_real(f, node, "end_seconds", &phase->end_seconds);
    }
}

static void read_streams(struct hb_reading *f, const struct hb_node *list, struct hb_outcome *o)
{
    if (!list)
        return;
    o->streams = hb_arena_alloc(f->arena, list->count, sizeof *o->streams);
    for (const struct hb_node *node = list->first; node; node = node->next) {
        struct hb_shown_stream *stream = &o->streams[o->stream_count++];
        stream->name = "";
        hb_reading_text(f, node, "name", &stream->name);
        hb_reading_real(f, node, "busy_seconds", &stream->busy_seconds);
        read_spans(f, hb_reading_list(f, node, "spans"), &stream->spans, &stream->span_count);
    }
}

static void read_curves(struct hb_reading *f, const struct hb_node *map, struct hb_outcome *o)
{
    for (const struct hb_node *node = map ? map->first : NULL; node; node = node->next) {
        enum hb_category category = hb_category_find(node->key);
        if (category == HB_CATEGORY_COUNT || node->kind != HB_NODE_LIST ||
            node->count != o->sample_count)
            hb_reading_wrong(f, node, node->key, "a category with a value for each of the seconds");
        else
            o->category_curve[category] = hb_reading_sizes(f, node);
    }
}

static void read_timeline(struct hb_reading *f, const struct hb_node *map, struct hb_outcome *o)
{
    const struct hb_node *seconds = map ? hb_reading_list(f, map, "seconds") : NULL;
    if (!seconds || seconds->count == 0)
        return;
    o->seconds = hb_reading_reals(f, seconds);
    o->sample_count = seconds->count;
    for (uint32_t i = 1; i < o->sample_count; i++)
        if (o->seconds[i] < o->seconds[i - 1]) {
            hb_reading_wrong(f, hb_node_at(seconds, i), "seconds", "no earlier time than the last");
            break;
        }
    read_curves(f, hb_reading_map(f, map, "categories"), o);
    read_phases(f, hb_reading_list(f, map, "phases"), o);
    read_streams(f, hb_reading_list(f, map, "streams"), o);
    double end = o->seconds[o->sample_count - 1];
    if (o->step_seconds < end)
        o->step_seconds = end;
}

const char *hb_shown_kind_name(enum hb_shown_kind kind)
{
    static const char *const names[] = {
#define HB_ENUM(name, text) text,
        HB_SHOWN_KINDS(HB_ENUM)
#undef HB_ENUM
    };
    return names[kind];
}

static void read_kind(struct hb_reading *f, const struct hb_node *node, struct hb_shown_buffer *b)
{
    const char *kind = "";
    hb_reading_text(f, node, "kind", &kind);
    for (int i = 0; i < HB_SHOWN_KIND_COUNT; i++)
        if (hb_str_same(kind, hb_shown_kind_name((enum hb_shown_kind)i)))
            b->kind = (enum hb_shown_kind)i;
    hb_reading_text(f, node, "label", &b->label);
    hb_reading_text(f, node, "why", &b->why);
}

static void read_heap(struct hb_reading *f, const struct hb_node *map, struct hb_outcome *o)
{
    const struct hb_node *list = map ? hb_reading_list(f, map, "buffers") : NULL;
    if (!list)
        return;
    hb_reading_bytes(f, map, "bytes", 0, &o->heap_bytes);
    o->buffers = hb_arena_alloc(f->arena, list->count, sizeof *o->buffers);
    for (const struct hb_node *node = list->first; node; node = node->next) {
        struct hb_shown_buffer *b = &o->buffers[o->buffer_count++];
        *b = (struct hb_shown_buffer){
            .name = "", .why = "", .category = HB_CAT_WORKING, .buf = HB_NONE};
        hb_reading_text(f, node, "name", &b->name);
        read_kind(f, node, b);
        hb_reading_category(f, node, "category", &b->category);
        hb_reading_bytes(f, node, "offset_bytes", 0, &b->offset_bytes);
        hb_reading_bytes(f, node, "bytes", 0, &b->bytes);
        hb_reading_int(f, node, "start_op", &b->start_op);
        hb_reading_int(f, node, "end_op", &b->end_op);
        if (b->offset_bytes + b->bytes > o->heap_bytes)
            hb_reading_wrong(f, node, "buffers", "a buffer inside the heap's bytes");
        if (b->start_op < 0 || b->end_op < b->start_op || b->end_op > INT32_MAX)
            hb_reading_wrong(f, node, "buffers", "an end_op at or after start_op");
    }
}

static int compare_loads(const void *a, const void *b)
{
    const struct hb_shown_load *x = a;
    const struct hb_shown_load *y = b;
    return (x->processes > y->processes) - (x->processes < y->processes);
}

static void read_load(struct hb_reading *f, const struct hb_node *map, struct hb_outcome *o)
{
    const struct hb_node *list = map ? hb_reading_list(f, map, "by_processes") : NULL;
    if (!list)
        return;
    o->loads = hb_arena_alloc(f->arena, list->count, sizeof *o->loads);
    for (const struct hb_node *node = list->first; node; node = node->next) {
        struct hb_shown_load *load = &o->loads[o->load_count++];
        *load = (struct hb_shown_load){.host_peak_bytes = -1};
        hb_reading_int(f, node, "processes", &load->processes);
        hb_reading_bytes(f, node, "device_peak_bytes", 0, &load->device_peak_bytes);
        hb_reading_bytes(f, node, "host_peak_bytes", -1, &load->host_peak_bytes);
        if (load->processes < 1)
            hb_reading_wrong(f, node, "processes", "at least one process");
    }
    qsort(o->loads, o->load_count, sizeof *o->loads, compare_loads);
}

static void read_totals(struct hb_reading *f, const struct hb_node *json, struct hb_outcome *o)
{
    hb_reading_text(f, json, "name", &o->name);
    o->place = hb_place_read(f->arena, json, HB_WHERE_MESH);
    hb_reading_bool(f, json, "fits", &o->fits);
    hb_reading_bytes(f, json, "peak_bytes", 0, &o->peak_bytes);
    hb_reading_bytes(f, json, "budget_bytes", 0, &o->budget_bytes);
    const struct hb_node *interval = hb_reading_map(f, json, "interval");
    if (interval) {
        hb_reading_bytes(f, interval, "low_bytes", 0, &o->low_bytes);
        hb_reading_bytes(f, interval, "high_bytes", 0, &o->high_bytes);
        hb_reading_real(f, interval, "confidence", &o->confidence);
        hb_reading_int(f, interval, "records", &o->records);
    }
    hb_reading_bytes(f, json, "argument_bytes", 0, &o->argument_bytes);
    hb_reading_bytes(f, json, "output_bytes", 0, &o->output_bytes);
    hb_reading_bytes(f, json, "alias_bytes", 0, &o->alias_bytes);
    hb_reading_bytes(f, json, "temp_bytes", 0, &o->temp_bytes);
    hb_reading_bytes(f, json, "host_bytes", 0, &o->host_bytes);
    hb_reading_real(f, json, "step_seconds", &o->step_seconds);
    hb_reading_real(f, json, "tokens_per_second", &o->tokens_per_second);
    hb_reading_real(f, json, "mfu", &o->mfu);
}

bool hb_outcome_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *json,
                     struct hb_outcome *out)
{
    struct hb_reading f = {arena, diag, true};
    *out = (struct hb_outcome){.name = "", .peak_at = "", .fits = true};
    if (json->kind != HB_NODE_MAP || !hb_node_find(json, "peak_bytes")) {
        hb_reading_wrong(&f, json, "result", "an object with peak_bytes");
        return false;
    }
    read_totals(&f, json, out);
    const struct hb_node *peak = hb_reading_map(&f, json, "peak");
    if (peak) {
        hb_reading_text(&f, peak, "at", &out->peak_at);
        read_categories(&f, hb_reading_map(&f, peak, "categories"), out->category_bytes);
        check_sum(&f, peak, out);
        read_tensors(&f, hb_reading_list(&f, peak, "tensors"), out);
    }
    read_timeline(&f, hb_reading_map(&f, json, "timeline"), out);
    read_heap(&f, hb_reading_map(&f, json, "heap"), out);
    read_load(&f, hb_reading_map(&f, json, "load"), out);
    return f.ok;
}

int64_t hb_outcome_total(const struct hb_outcome *o, uint32_t i)
{
    int64_t total = 0;
    for (int category = 0; category < HB_CATEGORY_COUNT; category++)
        if (o->category_curve[category])
            total = hb_add_sat(total, o->category_curve[category][i]);
    return total;
}

uint32_t hb_outcome_peak_sample(const struct hb_outcome *o)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < o->sample_count; i++)
        if (hb_outcome_total(o, i) > hb_outcome_total(o, best))
            best = i;
    return best;
}

const char *hb_outcome_phase_at(const struct hb_outcome *o, double seconds)
{
    const char *name = "";
    for (uint32_t i = 0; i < o->phase_count; i++)
        if (o->phases[i].start_seconds <= seconds && seconds <= o->phases[i].end_seconds)
            name = o->phases[i].name;
    return name;
}

enum hb_verdict hb_outcome_word(const struct hb_outcome *o)
{
    struct hb_interval i = {.low_bytes = o->low_bytes, .high_bytes = o->high_bytes};
    if (!o->fits && o->peak_bytes <= o->budget_bytes) /* its loading does not */
        return HB_VERDICT_NOT;
    if (o->high_bytes <= 0)
        return o->fits ? HB_VERDICT_FITS : HB_VERDICT_NOT;
    return hb_interval_verdict(&i, o->budget_bytes);
}

/* " (53.9 GiB to 56.8 GiB)", or "". */
static const char *ends_text(struct hb_arena *arena, const struct hb_outcome *o)
{
    char low[HB_TICK_TEXT];
    char high[HB_TICK_TEXT];
    if (o->high_bytes <= 0)
        return "";
    hb_unit_print(HB_UNIT_BYTES, (double)o->low_bytes, low);
    hb_unit_print(HB_UNIT_BYTES, (double)o->high_bytes, high);
    return hb_arena_printf(arena, " (%s to %s)", low, high);
}

const char *hb_outcome_verdict(struct hb_arena *arena, const struct hb_outcome *o)
{
    char peak[HB_TICK_TEXT];
    char budget[HB_TICK_TEXT];
    char rest[HB_TICK_TEXT];
    int64_t left = o->budget_bytes - o->peak_bytes;
    hb_unit_print(HB_UNIT_BYTES, (double)o->peak_bytes, peak);
    hb_unit_print(HB_UNIT_BYTES, (double)o->budget_bytes, budget);
    hb_unit_print(HB_UNIT_BYTES, (double)(left < 0 ? -left : left), rest);
    if (o->budget_bytes == 0)
        return hb_arena_printf(arena, "peak %s", peak);
    enum hb_verdict word = hb_outcome_word(o);
    const char *ends = ends_text(arena, o);
    const char *name = word == HB_VERDICT_TIGHT ? "may not fit" : hb_verdict_name(word);
    if (word != HB_VERDICT_NOT && left >= 0)
        return hb_arena_printf(arena, "%s: peak %s%s of %s, %s free", name, peak, ends, budget,
                               rest);
    return hb_arena_printf(arena, "%s: peak %s%s, %s above the budget of %s", name, peak, ends,
                           rest, budget);
}
