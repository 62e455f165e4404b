/* hbmsim verify: a configuration compiled by the real compiler, beside its prediction. */
#include <signal.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/out.h"
#include "base/size.h"
#include "base/utf8.h"
#include "cli/cmd.h"
#include "cli/compiled.h"
#include "cli/head.h"
#include "cli/input.h"
#include "cli/keep.h"
#include "models/emit.h"
#include "models/schema.h"
#include "sim/engine/result.h"

struct options {
    struct hb_common common;
    const char *model;
    const char *python;
    const char *keep;
    const char *id;
    const char *maxtext;
    struct hb_words setting;
    int64_t seconds;
    bool input;
};

static void put_compiled(struct hb_json *j, const struct hb_compiled *c)
{
    hb_json_put_known(j, "argument_bytes", c->argument_bytes);
    hb_json_put_known(j, "output_bytes", c->output_bytes);
    hb_json_put_known(j, "alias_bytes", c->alias_bytes);
    hb_json_put_known(j, "temp_bytes", c->temp_bytes);
    hb_json_put_known(j, "host_bytes", c->host_bytes);
}

/* --- what is printed --- */

static void print_json(struct hb_env *env, FILE *out, const struct hb_result *r,
                       const struct hb_compiled *c)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, out, true);
    hb_json_object(&j);
    struct hb_head head = hb_head_of(env, r->spec);
    hb_head_json(&j, &head);
    hb_json_put_bool(&j, "fits", c->total_bytes <= r->budget_bytes);
    hb_json_put_text(&j, "by", c->by);
    hb_json_put_text(&j, "topology", c->topology);
    hb_json_put_known(&j, "compiled_bytes", c->total_bytes);
    hb_json_put_known(&j, "predicted_bytes", r->memory.peak_bytes);
    hb_json_put_known(&j, "budget_bytes", r->budget_bytes);
    put_compiled(&j, c);
    hb_json_put_real(&j, "error_pct",
                     100 * ((double)r->memory.peak_bytes / (double)c->total_bytes - 1));
    hb_json_key(&j, "versions");
    hb_json_node(&j, c->versions);
    hb_json_put_real(&j, "seconds", c->seconds);
    hb_json_object_end(&j);
    hb_json_end(&j);
}

static void print_row(FILE *out, const char *name, int64_t compiled, int64_t predicted)
{
    char a[HB_SIZE_TEXT], b[HB_SIZE_TEXT];
    fprintf(out, "  %-10s %12s %12s\n", name,
            compiled < 0 ? "not told" : hb_size_print(compiled, a), hb_size_print(predicted, b));
}

static void print_text(struct hb_env *env, FILE *out, const struct options *o,
                       const struct hb_spec *spec, const struct hb_result *r,
                       const struct hb_compiled *c)
{
    char text[HB_SIZE_TEXT];
    const struct hb_memory *m = &r->memory;
    bool fits = c->total_bytes <= r->budget_bytes;
    const char *colour = fits ? "\033[1;32m" : "\033[1;31m";
    fprintf(out, "%s\n\n", hb_compiled_line(env, c, r->budget_bytes, m->peak_bytes));
    fprintf(out, "  %-10s %12s %12s\n", "", "compiled", "predicted");
    print_row(out, "argument", c->argument_bytes, m->argument_bytes);
    print_row(out, "output", c->output_bytes, m->output_bytes);
    print_row(out, "alias", c->alias_bytes, m->alias_bytes);
    print_row(out, "temp", c->temp_bytes, m->temp_bytes);
    print_row(out, "host", c->host_bytes, m->host_bytes);
    print_row(out, "total", c->total_bytes, m->peak_bytes);
    fprintf(out, "\n%s%s%s: %s %s; the prediction is %+.1f %% off\n", env->colour ? colour : "",
            fits ? "FITS" : "DOES NOT FIT", env->colour ? "\033[0m" : "",
            hb_size_print(
                fits ? r->budget_bytes - c->total_bytes : c->total_bytes - r->budget_bytes, text),
            fits ? "free" : "too much", 100 * ((double)m->peak_bytes / (double)c->total_bytes - 1));
    if (o->maxtext && *hb_compile_unsaid(env, spec))
        fprintf(out,
                "\nMaxText compiled, and the prediction is of, something else where its settings "
                "cannot say it:\n%s",
                hb_compile_unsaid(env, spec));
}

static void print_answer(struct hb_env *env, const struct options *o, const struct hb_spec *spec,
                         const struct hb_result *r, const struct hb_compiled *c)
{
    struct hb_out *out = hb_out_open(env, o->common.output);
    if (o->common.json)
        print_json(env, hb_out_file(out), r, c);
    else
        print_text(env, hb_out_file(out), o, spec, r, c);
    hb_out_close(out);
}

static int print_input(struct hb_env *env, const struct options *o, const struct hb_spec *spec)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    hb_schema_emit_json(&text, spec, true);
    struct hb_out *out = hb_out_open(env, o->common.output);
    fprintf(hb_out_file(out), "%s\n", text.text);
    hb_out_close(out);
    return HB_EXIT_YES;
}

/* r is of what the program that compiles makes of spec. */
static int compile(struct hb_env *env, const struct options *o, const struct hb_spec *spec,
                   const struct hb_result *r)
{
    struct hb_compile_ask ask = {.python = o->python,
                                 .seconds = o->seconds,
                                 .spec = spec,
                                 .maxtext = o->maxtext,
                                 .setting = o->setting.items,
                                 .setting_count = o->setting.count};
    struct hb_compiled c;
    hb_compile(env, &ask, &c);
    switch (c.end) {
    case HB_COMPILED:
        break;
    case HB_COMPILE_REFUSED:
        hb_error(env->diag, (struct hb_loc){.file = o->model}, "%s%s", c.reason,
                 strstr(c.reason, "not in the reference step") && !o->maxtext
                     ? "; --maxtext DIR compiles MaxText's own step"
                     : "");
        return HB_EXIT_INPUT;
    case HB_COMPILE_INTERRUPTED:
        raise(c.signal); /* as if there had been no compiler to stop first */
        return HB_EXIT_MACHINE;
    case HB_COMPILE_FAILED:
        hb_utf8_say(env->err, "hbmsim verify: %s\n", c.reason);
        return HB_EXIT_MACHINE;
    }
    if (o->keep && !hb_keep_record(env, o->keep, o->id, r->spec, r->budget_bytes, &c))
        return HB_EXIT_INPUT;
    print_answer(env, o, spec, r, &c);
    return c.total_bytes <= r->budget_bytes ? HB_EXIT_YES : HB_EXIT_NO;
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {.python = "python3", .seconds = HB_COMPILE_SECONDS};
    struct hb_spec spec;
    struct hb_device device;
    struct hb_result result;
    int status = hb_opt_parse(env, &hb_cmd_verify, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (!hb_input_read(env, o.model, &o.common.set, &spec, &device))
        return HB_EXIT_INPUT;
    if (o.setting.count && !o.maxtext)
        return hb_error(env->diag, (struct hb_loc){0}, "--setting goes with --maxtext"),
               HB_EXIT_INPUT;
    if (o.input)
        return print_input(env, &o, &spec);
    struct hb_spec own = spec;
    if (o.maxtext && !hb_emit_back(env->arena, HB_EMIT_MAXTEXT, &spec, env->data_dir, &own))
        own = spec; /* of a model that it has no name for */
    if (!hb_result_brief(env->arena, env->diag, &own, &device, &result))
        return HB_EXIT_INPUT;
    return compile(env, &o, &spec, &result);
}

static const struct hb_opt options[] = {
    {"CONFIG.yaml", 0, HB_OPT_OPERAND, NULL, "the configuration; - is standard input", NULL,
     offsetof(struct options, model), 0, 0},
    {"python", 0, HB_OPT_STRING, "PATH", "the interpreter that has JAX; default: python3", NULL,
     offsetof(struct options, python), 0, 0},
    {"compile-seconds", 0, HB_OPT_INT, "S", "of time for a compilation; default: 900", NULL,
     offsetof(struct options, seconds), 1, 1000000},
    {"keep", 0, HB_OPT_OUTPUT, "RUNS.jsonl", "append the record, for validate and calibrate --fit",
     NULL, offsetof(struct options, keep), 0, 0},
    {"id", 0, HB_OPT_STRING, "ID", "name of that record; default: one made of the configuration",
     NULL, offsetof(struct options, id), 0, 0},
    {"maxtext", 0, HB_OPT_STRING, "DIR",
     "compile MaxText's own step, of this checkout, with the settings of plan --emit maxtext", NULL,
     offsetof(struct options, maxtext), 0, 0},
    {"setting", 0, HB_OPT_WORDS, "NAME=VALUE",
     "with --maxtext: a further setting (model_name=...); may be repeated", NULL,
     offsetof(struct options, setting), 0, 0},
    {"input", 0, HB_OPT_FLAG, NULL,
     "print what the reference program reads, for a machine without hbmsim; compile nothing", NULL,
     offsetof(struct options, input), 0, 0},
    {0},
};

const struct hb_cmd hb_cmd_verify = {
    .name = "verify",
    .run = run,
    .summary = "one configuration compiled by the real compiler, ahead of time",
    .about = "Compiles a reference train step of this configuration (examples/verify, plain JAX)\n"
             "with the JAX of --python: libtpu for TPUs, the CUDA or ROCm plugin for GPUs. No\n"
             "accelerator is needed. Prints the compiler's own total beside the prediction. The\n"
             "status is 0 where it fits, 1 where it does not, 2 where the reference step does not\n"
             "have what a key asks for, 3 where Python, JAX or the compiler is missing or fails.",
    .example = "hbmsim verify examples/quickstart/model.yaml --input",
    .options = options,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT | HB_COMMON_SET,
};
