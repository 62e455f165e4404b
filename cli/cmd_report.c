/* hbmsim report: one configuration as a page of HTML, with other commands' results beside it. */
#include <stdio.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/file.h"
#include "base/json.h"
#include "base/out.h"
#include "cli/cmd.h"
#include "cli/input.h"
#include "cli/report_runs.h"
#include "models/schema.h"
#include "plots/html.h"

struct options {
    struct hb_common common;
    const char *model;
    const char *sweep;
    const char *plan;
    const char *flags;
    const char *advise;
    int theme;
    double seconds;
    double confidence;
    bool quick;
};

/* What no file shows is run here. */
static void run_others(struct hb_env *env, const struct options *o, const struct hb_result *r,
                       const struct hb_device *device, struct hb_html *report)
{
    if (o->quick)
        return;
    if (!o->sweep)
        hb_report_sweep(env, r->spec, report);
    if (!o->plan && o->seconds > 0)
        hb_report_plan(env, r->spec, device, o->seconds, report);
    if (!o->advise)
        hb_report_levers(env, r->spec, device, report);
}

/* A result of another command; null where there is none. False: it cannot be read. */
static bool load_json(struct hb_env *env, const char *path, const struct hb_node **out)
{
    struct hb_text text;
    const char *reason;
    struct hb_node *root;
    struct hb_loc start = {path, 1, 1};
    *out = NULL;
    if (!path)
        return true;
    if (!hb_file_load(env->arena, path, HB_FILE_MAX_BYTES, &text, &reason))
        return hb_error(env->diag, (struct hb_loc){0}, "%s %s", path, reason);
    if (!hb_json_parse(env->arena, env->diag, start, text.text, text.len, &root))
        return false;
    *out = root;
    return true;
}

static bool read_others(struct hb_env *env, const struct options *o, struct hb_html *report)
{
    const struct hb_node *sweep, *plan, *advise;
    if (!load_json(env, o->sweep, &sweep) || !load_json(env, o->plan, &plan) ||
        !load_json(env, o->advise, &advise))
        return false;
    struct hb_fit_map *map = hb_arena_alloc(env->arena, 1, sizeof *map);
    struct hb_pareto *pareto = hb_arena_alloc(env->arena, 1, sizeof *pareto);
    struct hb_tornado *levers = hb_arena_alloc(env->arena, 1, sizeof *levers);
    report->sweep = sweep ? map : NULL;
    report->plan = plan ? pareto : NULL;
    report->advise = advise ? levers : NULL;
    return (!sweep || hb_fit_read(env->arena, env->diag, sweep, map)) &&
           (!plan || hb_pareto_read(env->arena, env->diag, plan, pareto)) &&
           (!advise || hb_tornado_read(env->arena, env->diag, advise, levers));
}

static bool read_flags(struct hb_env *env, const struct options *o, struct hb_html *report)
{
    struct hb_text text;
    const char *reason;
    if (!o->flags)
        return true;
    if (!hb_file_load(env->arena, o->flags, HB_FILE_MAX_BYTES, &text, &reason))
        return hb_error(env->diag, (struct hb_loc){0}, "%s %s", o->flags, reason);
    report->flags[report->flag_count++] = (struct hb_html_flags){"flags", text.text};
    return true;
}

static const char *trust_text(struct hb_arena *arena, const struct hb_spec *spec)
{
    return hb_arena_printf(
        arena,
        "Memory: the step is lowered to the buffers that the compiler was seen to make, and placed "
        "as it places them; every byte of the peak has a name and a reason. What was never "
        "measured can still differ: the README has the table of measured cases with their errors, "
        "and hbmsim validate compares with runs of your own.\n\n"
        "Step time: each op takes what the profile of %s allows (hbmsim devices %s names the "
        "source of each number). Treat it as less certain than memory.",
        spec->hardware.device, spec->hardware.device);
}

static void describe(struct hb_env *env, const struct hb_result *r, struct hb_html *report)
{
    struct hb_str yaml;
    struct hb_outcome *outcome = hb_arena_alloc(env->arena, 1, sizeof *outcome);
    hb_str_init(&yaml, env->arena);
    hb_schema_emit_yaml(&yaml, r->spec, false);
    hb_outcome_make(env->arena, r, outcome);
    report->outcome = outcome;
    report->device = hb_arena_printf(env->arena, "%s \xC3\x97 %lld", r->spec->hardware.device,
                                     (long long)r->spec->hardware.count);
    report->yaml = yaml.text;
    report->version = env->version;
    report->trust = trust_text(env->arena, r->spec);
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    struct hb_spec spec;
    struct hb_node *written;
    struct hb_device device;
    struct hb_result result;
    struct hb_html report = {0};
    struct hb_str html;
    int status = hb_opt_parse(env, &hb_cmd_report, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    report.theme = (enum hb_html_theme)o.theme;
    if (!hb_input_confidence(env, o.confidence, &o.common.set) ||
        !hb_input_read_written(env, o.model, &o.common.set, &spec, &device, &written) ||
        !read_others(env, &o, &report) || !read_flags(env, &o, &report))
        return HB_EXIT_INPUT;
    struct hb_out *out = hb_out_open(env, o.common.output);
    if (!hb_result_run(env->arena, env->diag, &spec, &device, &result)) {
        hb_out_drop(out);
        return HB_EXIT_INPUT;
    }
    hb_str_init(&html, env->arena);
    report.filled = hb_schema_filled_text(env->arena, written, &spec);
    describe(env, &result, &report);
    run_others(env, &o, &result, &device, &report);
    hb_html_write(env->arena, &report, &html);
    fwrite(html.text, 1, html.len, hb_out_file(out));
    hb_out_close(out);
    return HB_EXIT_YES;
}

static const struct hb_opt options[] = {
    {"MODEL.yaml", 0, HB_OPT_OPERAND, NULL, "the configuration; - is standard input", NULL,
     offsetof(struct options, model), 0, 0},
    {"quick", 0, HB_OPT_FLAG, NULL, "this configuration alone: no other sizes, plan or levers",
     NULL, offsetof(struct options, quick), 0, 0},
    {"seconds", 0, HB_OPT_DOUBLE, "S", "the search for a plan is cut off after so long; 0: none",
     "10", offsetof(struct options, seconds), 0, 0},
    HB_CONFIDENCE_OPTION(offsetof(struct options, confidence)),
    {"sweep", 0, HB_OPT_INPUT, "FILE", "show this JSON of sweep instead of sizes around it", NULL,
     offsetof(struct options, sweep), 0, 0},
    {"plan", 0, HB_OPT_INPUT, "FILE", "show this JSON of plan instead of a search", NULL,
     offsetof(struct options, plan), 0, 0},
    {"flags", 0, HB_OPT_INPUT, "FILE", "text to paste into the trainer, shown with the plan", NULL,
     offsetof(struct options, flags), 0, 0},
    {"advise", 0, HB_OPT_INPUT, "FILE", "show this JSON of advise instead of the levers", NULL,
     offsetof(struct options, advise), 0, 0},
    {"theme", 0, HB_OPT_CHOICE, "auto|light|dark", "auto: as the reader's system", "auto",
     offsetof(struct options, theme), 0, 0},
    {0},
};

const struct hb_cmd hb_cmd_report = {
    .name = "report",
    .run = run,
    .summary = "one configuration as a self-contained HTML page",
    .about =
        "Runs the step as simulate does, the sizes around it as sweep, the search as plan and\n"
        "the levers as advise, and writes one HTML file: verdict, breakdown, timeline, heap,\n"
        "what else fits, plan with settings to paste, levers, tensors, configuration. It\n"
        "needs no network, and no script but for hover, sorting and filtering. A search that\n"
        "is cut off says so.",
    .example = "hbmsim report examples/quickstart/model.yaml -o report.html",
    .options = options,
    .common = HB_COMMON_OUTPUT | HB_COMMON_SET,
};
