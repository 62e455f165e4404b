/* hbmsim hlo: a compiler's dump replayed: its total again, what stands at the peak, what costs
 * memory and need not. */
#include "base/arena.h"
#include "base/out.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/draw.h"
#include "cli/show_hlo.h"
#include "plots/picture.h"

struct options {
    struct hb_common common;
    const char *module;
    int backend;
    int order;
    int64_t top;
    struct hb_draw_options plot;
    bool full;
};

static void print_json(struct hb_env *env, FILE *out, const struct hb_hlo_shown *shown,
                       const struct hb_hlo_report *report, const struct hb_outcome *heap)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, out, true);
    hb_show_hlo_json(&j, shown, report, heap);
    hb_json_end(&j);
}

static bool read_report(struct hb_env *env, const struct options *o, struct hb_hlo_module *module,
                        struct hb_hlo_report *report)
{
    struct hb_hlo_text text;
    if (!hb_hlo_text_load(env->arena, env->diag, o->module, &text) ||
        !hb_hlo_module_read(env->arena, env->diag, &text, module))
        return false;
    if (o->backend >= 0)
        module->dialect = hb_hlo_dialect_find(hb_hlo_dialect_names()[o->backend]);
    return hb_hlo_report_make(env->arena, env->diag, module, (enum hb_hlo_ask)(o->order + 1),
                              report);
}

static struct hb_outcome make_heap(struct hb_env *env, const struct hb_hlo_report *report)
{
    struct hb_outcome heap;
    struct hb_hlo_span name = report->hp.m->name;
    hb_outcome_make_heap(env->arena, &report->hp.program, &report->memory, &heap);
    heap.name = hb_arena_strndup(env->arena, name.at, name.len);
    return heap;
}

/* A module without temporaries has no heap to draw. */
static bool check_heap(struct hb_env *env, const struct options *o, const struct hb_outcome *heap)
{
    return !o->plot.path || heap->buffer_count ||
           hb_error(env->diag, (struct hb_loc){.file = o->module},
                    "--plot: the module has no temporaries");
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    struct hb_hlo_module module;
    struct hb_hlo_report report;
    int status = hb_opt_parse(env, &hb_cmd_hlo, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    struct hb_outcome heap = {0};
    if (!hb_draw_check(env, &o.plot))
        return HB_EXIT_INPUT;
    struct hb_out *out = hb_out_open(env, o.common.output);
    bool ok = read_report(env, &o, &module, &report);
    if (ok && (o.plot.path || o.full))
        heap = make_heap(env, &report);
    if (!ok || !check_heap(env, &o, &heap)) {
        hb_out_drop(out);
        return HB_EXIT_INPUT;
    }
    struct hb_hlo_shown shown = {module.text.file, o.backend >= 0, o.top};
    if (o.common.json)
        print_json(env, hb_out_file(out), &shown, &report, o.full ? &heap : NULL);
    else
        hb_show_hlo_text(env, hb_out_file(out), &shown, &report);
    hb_out_close(out);
    if (o.plot.path) {
        struct hb_picture picture = {
            .kind = HB_PICTURE_ADDRESSMAP, .outcomes = &heap, .outcome_count = 1};
        hb_draw_picture(env, &picture, &o.plot);
    }
    return HB_EXIT_YES;
}

static const struct hb_opt options[] = {
    {"MODULE", 0, HB_OPT_OPERAND, NULL, "an HLO text dump, plain or .gz; - for stdin", NULL,
     offsetof(struct options, module), 0, 0},
    {"backend", 0, HB_OPT_CHOICE, "cpu|gpu|tpu-v5e|tpu-v5p|tpu-v6e",
     "whose rules to use, where the text does not give them away", NULL,
     offsetof(struct options, backend), 0, 0},
    {"order", 0, HB_OPT_CHOICE, "list|depth|post|least",
     "run it in that order instead of its own; least: the one of the three that XLA keeps", NULL,
     offsetof(struct options, order), 0, 0},
    HB_DRAW_OPTIONS(offsetof(struct options, plot)),
    {"full", 0, HB_OPT_FLAG, NULL, "with --json: also where buffers lie, for plot", NULL,
     offsetof(struct options, full), 0, 0},
    {"top", 0, HB_OPT_INT, "N", "rows of the table of temporaries", "20",
     offsetof(struct options, top), 1, 1000000},
    {0},
};

const struct hb_cmd hb_cmd_hlo = {
    .name = "hlo",
    .run = run,
    .summary = "an HLO dump replayed: the compiler's total, what stands at the peak, pathologies",
    .about = "Reads what XLA writes with --xla_dump_to (*after_optimizations.txt; other stages as\n"
             "well), finds liveness and aliasing, packs as the compiler's heap does, and tells\n"
             "the largest temporaries by operation and what costs memory and need not: each\n"
             "finding is taken out of the program, which is then run again.",
    .example = "hbmsim hlo tests/golden/hlo/cpu_4x4_all_pad.hlo.gz",
    .options = options,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT,
};
