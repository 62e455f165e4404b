/* hbmsim hlo: a compiler's dump replayed: its total again, what stands at the peak, what costs
 * memory and need not. */
#include "base/arena.h"
#include "base/out.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/draw.h"
#include "cli/hlo_heap.h"
#include "cli/hlo_path.h"
#include "cli/show_hlo.h"
#include "plots/picture.h"

struct options {
    struct hb_common common;
    const char *file;
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

enum { MAX_SHOWN = 12 }; /* names of modules in a message */

static bool fail_parts(struct hb_env *env, const struct options *o, const struct hb_hlo_part *parts,
                       uint32_t count)
{
    struct hb_str names;
    hb_str_init(&names, env->arena);
    for (uint32_t i = 0; i < count && i < MAX_SHOWN; i++)
        hb_str_addf(&names, "%s%.*s", i ? ", " : "", (int)parts[i].name.len, parts[i].name.at);
    if (count > MAX_SHOWN)
        hb_str_add(&names, ", ...");
    struct hb_loc loc = {.file = o->file};
    if (o->module)
        return hb_error(env->diag, loc,
                        "--module: no module '%s', by name or number; there %s %u: %s", o->module,
                        count == 1 ? "is" : "are", count, names.text);
    return hb_error(env->diag, loc,
                    "%u modules in one file; --module NAME chooses one, or its number: %s", count,
                    names.text);
}

static bool is_part(const struct hb_hlo_part *part, uint32_t number, const char *wanted)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%u", number);
    return hb_hlo_span_is(part->name, wanted) || hb_str_same(digits, wanted);
}

/* Narrows the text to one of its modules. */
static bool choose_module(struct hb_env *env, const struct options *o, struct hb_hlo_text *text)
{
    uint32_t count = hb_hlo_text_parts(text, NULL, 0), chosen = 0;
    if (count < 2 && !o->module)
        return true;
    struct hb_hlo_part *parts = hb_arena_alloc(env->arena, count + 1, sizeof *parts);
    hb_hlo_text_parts(text, parts, count);
    if (!o->module)
        return fail_parts(env, o, parts, count);
    while (chosen < count && !is_part(&parts[chosen], chosen + 1, o->module))
        chosen++;
    if (chosen == count)
        return fail_parts(env, o, parts, count);
    text->from = parts[chosen].from;
    text->len = parts[chosen].to;
    return true;
}

static bool read_report(struct hb_env *env, const struct options *o, struct hb_hlo_module *module,
                        struct hb_hlo_report *report)
{
    struct hb_hlo_text text;
    const char *path;
    if (!hb_hlo_path(env, o->file, o->module, &path) ||
        !hb_hlo_text_load(env->arena, env->diag, path, &text) ||
        (path == o->file && !choose_module(env, o, &text)) ||
        !hb_hlo_module_read(env->arena, env->diag, &text, module))
        return false;
    module->dialect_given = o->backend >= 0;
    if (module->dialect_given)
        module->dialect = hb_hlo_dialect_find(hb_hlo_dialect_names()[o->backend]);
    return hb_hlo_report_make(env->arena, env->diag, module, (enum hb_hlo_ask)(o->order + 1),
                              report);
}

/* A module without temporaries has no heap to draw. */
static bool check_heap(struct hb_env *env, const struct options *o, const struct hb_outcome *heap)
{
    return !o->plot.path || heap->buffer_count ||
           hb_error(env->diag, (struct hb_loc){.file = o->file},
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
        heap = hb_hlo_heap(env->arena, &report);
    if (!ok || !check_heap(env, &o, &heap)) {
        hb_out_drop(out);
        return HB_EXIT_INPUT;
    }
    struct hb_hlo_shown shown = {module.text.file, env->version, o.backend >= 0, o.top};
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
    {"FILE", 0, HB_OPT_OPERAND, NULL,
     "an HLO text dump, plain or .gz, a folder of them, or a .hlo.pb with its text beside; - for "
     "stdin",
     NULL, offsetof(struct options, file), 0, 0},
    {"backend", 0, HB_OPT_CHOICE, "cpu|gpu|tpu-v4|tpu-v5e|tpu-v5p|tpu-v6e|tpu-v7",
     "whose rules to use, where the text does not give them away", NULL,
     offsetof(struct options, backend), 0, 0},
    {"order", 0, HB_OPT_CHOICE, "list|depth|post|least",
     "run it in that order instead of its own; least: the one of the three that XLA keeps", NULL,
     offsetof(struct options, order), 0, 0},
    HB_DRAW_OPTIONS(offsetof(struct options, plot)),
    {"full", 0, HB_OPT_FLAG, NULL, "with --json: also where buffers lie, for plot", NULL,
     offsetof(struct options, full), 0, 0},
    {"module", 0, HB_OPT_STRING, "NAME",
     "which module of a file with several, by name or number from 1; of a folder: in its name",
     NULL, offsetof(struct options, module), 0, 0},
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
