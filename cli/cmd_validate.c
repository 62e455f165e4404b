/* hbmsim validate: predicted against measured for files of records, with statistics by group, the
 * worst cases, gates, and both lists of what stands at a record's peak. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/out.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/draw.h"
#include "cli/input.h"
#include "cli/validate.h"
#include "hw/device.h"
#include "sim/engine/budget.h"
#include "plots/picture.h"

enum { PART_ALL, PART_LEARN, PART_HOLD_OUT };

struct options {
    struct hb_common common;
    struct hb_words files;
    double max_median;
    double max_p95;
    const char *explain;
    const char *peaks;
    struct hb_draw_options plot;
    double confidence;
    bool calibration;
    bool pairs;
    bool intervals;
    int part;
    int64_t worst;
};

/* Where records go when they have been run. */
struct sink {
    struct hb_report *report;
    struct hb_pairs *pairs; /* null: not asked for */
};

/* Profiles by name, each read once. */
struct devices {
    struct hb_device *items;
    uint32_t count;
    uint32_t cap;
};

static const struct hb_device *find_device(struct hb_env *env, struct devices *known,
                                           const char *name)
{
    for (uint32_t i = 0; i < known->count; i++)
        if (hb_str_same(known->items[i].name, name))
            return &known->items[i];
    struct hb_diag quiet;
    struct hb_device device;
    hb_diag_init(&quiet, env->arena);
    if (!hb_device_load(env->arena, &quiet, env->data_dir, name, (struct hb_loc){0}, &device))
        return NULL;
    known->items =
        hb_grow(env->arena, known->items, known->count, &known->cap, sizeof *known->items);
    known->items[known->count] = device;
    return &known->items[known->count++];
}

static bool is_wanted(const struct options *o, const char *id)
{
    if (o->explain)
        return hb_str_same(o->explain, id);
    return o->part == PART_ALL || (o->part == PART_HOLD_OUT) == hb_record_held_out(id);
}

/* Copies what outlives the record's own arena. */
static void keep_case(struct hb_arena *arena, struct hb_case *c)
{
    c->id = hb_arena_strdup(arena, c->id);
    c->group = hb_arena_strdup(arena, c->group);
    if (c->device)
        c->device = hb_arena_strdup(arena, c->device);
    if (c->like)
        c->like = hb_arena_strdup(arena, c->like);
    if (c->failed)
        c->failed = hb_arena_strdup(arena, c->failed);
}

/* What was measured above a device's memory was measured without its limit. */
static int64_t found_bytes(const struct hb_record *r, const struct hb_device *device)
{
    int64_t found = hb_budget_found_bytes(&r->spec, device);
    return r->spec.compiler == HB_TORCH && r->peak_bytes > found ? 0 : found;
}

static void run_record(struct hb_env *env, const struct options *o, struct devices *devices,
                       const struct hb_node *node, const struct sink *sink)
{
    struct hb_arena *own = hb_arena_new();
    struct hb_diag diag;
    struct hb_record record;
    struct hb_case c = {0};
    hb_diag_init(&diag, own);
    int64_t start = env->now_ns();
    bool read = hb_record_read(own, &diag, node, env->data_dir, &record);
    if (!*record.id) {
        hb_error(env->diag, node->loc, "a measured record needs an 'id'");
    } else if (is_wanted(o, record.id)) {
        if (o->confidence > 0)
            record.spec.plan.confidence = o->confidence;
        struct hb_program program;
        struct hb_memory memory;
        const struct hb_device *device =
            read ? find_device(env, devices, record.spec.hardware.device) : NULL;
        if (device)
            record.spec.hardware.memory_bytes = found_bytes(&record, device);
        if (read)
            hb_validate_case(own, &record, record.peak_bytes < 0 || record.verdict ? device : NULL,
                             &c, &program, &memory);
        else
            c = (struct hb_case){.id = record.id,
                                 .group = record.group,
                                 .measured_bytes = record.peak_bytes,
                                 .fits_measured = record.fits,
                                 .fits_predicted = -1,
                                 .failed = diag.entries[0].text};
        c.seconds = (double)(env->now_ns() - start) * 1e-9;
        if (o->explain && !c.failed)
            hb_report_explain(sink->report, &c, &program, &memory);
        keep_case(env->arena, &c);
        if (read)
            hb_report_name(sink->report, &record.spec);
        hb_report_date(sink->report, node);
        hb_report_add(sink->report, &c);
        if (sink->pairs)
            hb_pairs_add(sink->pairs, own, &record, &c);
    }
    hb_arena_free(own);
}

static bool run_file(struct hb_env *env, const struct options *o, struct devices *devices,
                     const char *path, const struct sink *sink)
{
    struct hb_jsonl file;
    struct hb_arena *line = hb_arena_new();
    struct hb_arena_mark mark = hb_arena_mark(line);
    bool ok = hb_jsonl_open(env->arena, env->diag, path, &file);
    while (ok) {
        struct hb_node *node;
        ok = hb_jsonl_next(&file, line, env->diag, &node);
        if (!ok || !node)
            break;
        run_record(env, o, devices, node, sink);
        hb_arena_rewind(line, mark);
    }
    hb_arena_free(line);
    return ok && !env->diag->errors;
}

/* The compiler's own list: --peaks, or NAME-peaks.jsonl beside NAME.jsonl. */
static const char *peaks_path(struct hb_env *env, const struct options *o)
{
    if (o->peaks)
        return o->peaks;
    const char *file = o->files.items[0];
    size_t len = strlen(file);
    if (!hb_str_ends(file, ".jsonl"))
        return NULL;
    const char *path =
        hb_arena_printf(env->arena, "%.*s-peaks.jsonl", (int)(len - strlen(".jsonl")), file);
    FILE *there = fopen(path, "r");
    if (there)
        fclose(there);
    return there ? path : NULL;
}

static void read_peaks(struct hb_env *env, const struct options *o, struct hb_report *report)
{
    const char *path = peaks_path(env, o);
    struct hb_jsonl file;
    struct hb_node *node;
    if (!path || !hb_jsonl_open(env->arena, env->diag, path, &file))
        return;
    while (hb_jsonl_next(&file, env->arena, env->diag, &node) && node) {
        const struct hb_node *id = hb_node_find(node, "id");
        if (id && id->text && hb_str_same(id->text, o->explain))
            report->compiler_list = hb_node_find(node, "live_at_peak");
    }
}

static int gate(struct hb_env *env, const struct options *o, const struct hb_report *report)
{
    struct hb_stats s = hb_report_stats(env->arena, report, NULL, false);
    if (o->max_median < INFINITY && !(s.n > 0 && s.median_abs_pct <= o->max_median))
        return HB_EXIT_NO;
    if (o->max_p95 < INFINITY && !(s.n > 0 && s.p95_abs_pct <= o->max_p95))
        return HB_EXIT_NO;
    return HB_EXIT_YES;
}

static void draw_scatter(struct hb_env *env, const struct hb_draw_options *o,
                         const struct hb_report *r)
{
    struct hb_picture picture = {.kind = HB_PICTURE_SCATTER};
    for (uint32_t i = 0; i < r->count; i++) {
        const struct hb_case *c = &r->cases[i];
        struct hb_scatter_case one = {.id = c->id,
                                      .measured_bytes = c->measured_bytes,
                                      .predicted_bytes = c->failed ? 0 : c->predicted_bytes};
        if (!c->speed && !c->verdict)
            hb_scatter_add(env->arena, &picture.scatter, one, c->group);
    }
    hb_draw_picture(env, &picture, o);
}

static bool has_bytes(const struct hb_report *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (!r->cases[i].failed && !r->cases[i].speed && !r->cases[i].verdict &&
            r->cases[i].measured_bytes > 0)
            return true;
    return false;
}

static void print_report(const struct hb_env *env, const struct options *o,
                         const struct hb_report *r, FILE *to)
{
    if (o->calibration)
        hb_report_calibration(r, to);
    else if (o->common.json) {
        struct hb_head head = {.name = o->files.count == 1 ? o->files.items[0] : NULL,
                               .version = env->version,
                               .compiler = r->compiler,
                               .device = r->device};
        hb_report_json(r, &head, to);
    } else if (o->explain)
        fputs(r->explanation ? r->explanation : r->cases[0].failed, to);
    else
        hb_report_text(r, to);
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {.max_median = INFINITY, .max_p95 = INFINITY};
    int status = hb_opt_parse(env, &hb_cmd_validate, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (!hb_draw_check(env, &o.plot) ||
        (o.confidence > 0 && !hb_input_part(env, o.confidence, &o.confidence)))
        return HB_EXIT_INPUT;
    struct devices devices = {0};
    struct hb_pairs pairs;
    struct hb_report report = {
        .arena = env->arena, .worst = (uint32_t)o.worst, .intervals = o.intervals};
    hb_pairs_init(&pairs, env->arena);
    if (o.pairs)
        report.pairs = &pairs;
    struct sink sink = {&report, o.pairs ? &pairs : NULL};
    if (o.explain)
        read_peaks(env, &o, &report);
    for (uint32_t i = 0; i < o.files.count; i++)
        if (!run_file(env, &o, &devices, o.files.items[i], &sink))
            return HB_EXIT_INPUT;
    if (o.explain && !report.count) {
        hb_error(env->diag, (struct hb_loc){0}, "no record has the id '%s'", o.explain);
        return HB_EXIT_INPUT;
    }
    if (o.plot.path && !has_bytes(&report)) {
        hb_error(env->diag, (struct hb_loc){0}, "--plot: no record has both figures");
        return HB_EXIT_INPUT;
    }
    struct hb_out *out = hb_out_open(env, o.common.output);
    print_report(env, &o, &report, hb_out_file(out));
    hb_out_close(out);
    if (o.plot.path)
        draw_scatter(env, &o.plot, &report);
    return gate(env, &o, &report);
}

static const struct hb_opt options[] = {
    {"RECORDS.jsonl", 0, HB_OPT_OPERANDS, NULL, "files of measured records, one a line", NULL,
     offsetof(struct options, files), 0, 0},
    {"max-median", 0, HB_OPT_DOUBLE, "PERCENT", "exit 1 if the median error is larger", NULL,
     offsetof(struct options, max_median), 0, 0},
    {"max-p95", 0, HB_OPT_DOUBLE, "PERCENT", "exit 1 if the 95th percentile is larger", NULL,
     offsetof(struct options, max_p95), 0, 0},
    {"explain", 0, HB_OPT_STRING, "ID", "what stands at this record's peak, both lists", NULL,
     offsetof(struct options, explain), 0, 0},
    {"peaks", 0, HB_OPT_INPUT, "FILE", "the compiler's lists (default: RECORDS-peaks.jsonl)", NULL,
     offsetof(struct options, peaks), 0, 0},
    {"part", 0, HB_OPT_CHOICE, "all|learn|hold-out", "which records, by a hash of the id", "all",
     offsetof(struct options, part), 0, 0},
    HB_CONFIDENCE_OPTION(offsetof(struct options, confidence)),
    {"calibration", 0, HB_OPT_FLAG, NULL, "print the table that intervals are made from, as C",
     NULL, offsetof(struct options, calibration), 0, 0},
    {"intervals", 0, HB_OPT_FLAG, NULL, "also how often peaks are within, by what they are like",
     NULL, offsetof(struct options, intervals), 0, 0},
    {"pairs", 0, HB_OPT_FLAG, NULL, "also records that differ in one key, by what it costs", NULL,
     offsetof(struct options, pairs), 0, 0},
    HB_DRAW_OPTIONS(offsetof(struct options, plot)),
    {"worst", 0, HB_OPT_INT, "N", "how many of the worst cases to list", "10",
     offsetof(struct options, worst), 0, 1000000},
    {0}};

const struct hb_cmd hb_cmd_validate = {
    .name = "validate",
    .run = run,
    .summary = "predicted against measured, with error statistics",
    .about = "Simulates every record of the files and compares. Records that cannot be expressed\n"
             "are listed as failed, never skipped. Quantiles are nearest-rank. Records of kind\n"
             "verdict (somebody's word that a step fits or does not) are counted apart.",
    .example = "hbmsim validate tests/golden/lab-tpu.jsonl",
    .options = options,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT};
