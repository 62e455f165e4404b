/* hbmsim record: a measured record for `validate` from what compilers and allocators print. */
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/out.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/cmd.h"
#include "cli/head.h"
#include "models/schema.h"
#include "sim/hlo/logfile.h"
#include "sim/hlo/measured.h"

struct options {
    struct hb_common common;
    const char *log;
    const char *config;
    const char *id;
    const char *source;
    const char *group;
    const char *note;
    struct hb_words versions;
    double step_seconds; /* 0: not known */
    int kind;
    int fits;
};

static const struct hb_loc nowhere;

/* The words of --fits. */
enum { FITS_YES, FITS_NO, FITS_OPEN };

/* jax=0.10.2 */
static bool write_versions(struct hb_env *env, struct hb_json *j, const struct hb_words *versions)
{
    bool ok = true;
    hb_json_key(j, "versions");
    hb_json_object(j);
    for (uint32_t i = 0; i < versions->count; i++) {
        const char *word = versions->items[i];
        size_t len = strcspn(word, "=");
        if (!len || !word[len]) {
            ok = hb_error(env->diag, nowhere, "--version: '%s' is not NAME=VERSION", word);
            continue;
        }
        hb_json_put_text(j, hb_arena_strndup(env->arena, word, len), word + len + 1);
    }
    hb_json_object_end(j);
    return ok;
}

/* Figures that every record has, then those that only some have. */
static void write_measured(struct hb_json *j, const struct hb_measured *m, const struct options *o)
{
    hb_json_key(j, "measured");
    hb_json_object(j);
    hb_json_put_text(j, "kind", hb_measured_kind_key(m->kind));
    hb_json_put_known(j, "argument_bytes", m->argument_bytes);
    hb_json_put_known(j, "output_bytes", m->output_bytes);
    hb_json_put_known(j, "alias_bytes", m->alias_bytes);
    hb_json_put_known(j, "temp_bytes", m->temp_bytes);
    hb_json_put_known(j, "host_bytes", m->host_bytes);
    hb_json_put_known(j, "peak_bytes", m->peak_bytes);
    if (m->static_bytes >= 0)
        hb_json_put_known(j, "static_bytes", m->static_bytes);
    if (m->reserved_bytes >= 0)
        hb_json_put_known(j, "reserved_bytes", m->reserved_bytes);
    if (m->active_bytes >= 0)
        hb_json_put_known(j, "active_bytes", m->active_bytes);
    hb_json_key(j, "fits");
    if (m->fits < 0)
        hb_json_null(j);
    else
        hb_json_bool(j, m->fits == 1);
    hb_json_key(j, "step_seconds");
    if (o->step_seconds > 0)
        hb_json_real(j, o->step_seconds);
    else
        hb_json_null(j);
    hb_json_object_end(j);
}

static const char *join_notes(struct hb_arena *arena, const char *a, const char *b)
{
    if (!a || !b)
        return a ? a : b ? b : "";
    return hb_arena_printf(arena, "%s; %s", a, b);
}

/* What differs from the defaults, and in any case on what and by which compiler. */
static struct hb_node *emit_config(struct hb_arena *arena, const struct hb_spec *spec)
{
    static const char *const always[] = {"hardware", "compiler"};
    struct hb_node *config = hb_schema_emit(arena, spec, false);
    struct hb_node *full = hb_schema_emit(arena, spec, true);
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        hb_node_put(config, always[i], nowhere, hb_node_copy(arena, hb_node_find(full, always[i])));
    return config;
}

static bool write_record(struct hb_env *env, struct hb_str *line, const struct options *o,
                         const struct hb_spec *spec, const struct hb_measured *m)
{
    struct hb_head head = hb_head_of(env, spec);
    struct hb_json j = hb_json_begin(line, NULL, false);
    hb_json_object(&j);
    hb_json_put_text(&j, "id", o->id);
    hb_json_put_text(&j, "source", o->source);
    if (o->group)
        hb_json_put_text(&j, "group", o->group);
    bool ok = write_versions(env, &j, &o->versions);
    hb_head_json_texts(&j, &head);
    hb_json_key(&j, "config");
    hb_json_node(&j, emit_config(env->arena, spec));
    write_measured(&j, m, o);
    hb_json_put_text(&j, "note", join_notes(env->arena, o->note, m->note));
    hb_json_object_end(&j);
    hb_json_end(&j);
    return ok;
}

/* The line as `validate` will read it: the schema has the last word. */
static bool check_record(struct hb_env *env, const struct hb_str *line)
{
    struct hb_node *record;
    struct hb_spec spec;
    struct hb_loc loc = {"the record", 1, 1};
    return hb_json_parse(env->arena, env->diag, loc, line->text, line->len, &record) &&
           hb_schema_from_node(env->arena, env->diag, hb_node_find(record, "config"), env->data_dir,
                               &spec);
}

static bool read_config(struct hb_env *env, const struct options *o, struct hb_spec *out_spec)
{
    struct hb_schema_source source = {.arena = env->arena,
                                      .diag = env->diag,
                                      .path = o->config,
                                      .sets = o->common.set.items,
                                      .set_count = (int)o->common.set.count,
                                      .data_dir = env->data_dir};
    return hb_schema_read(&source, out_spec);
}

/* What the user says of it; else XLA:TPU refuses what does not fit, so what it compiled fits. */
static void settle_fits(struct hb_env *env, const struct options *o, const char *compiler,
                        struct hb_measured *m)
{
    if (m->compiler && !hb_str_same(m->compiler, compiler))
        hb_warn(env->diag, nowhere, "the log is of %s, the configuration says compiler: %s",
                m->compiler, compiler);
    if (m->fits < 0 && m->kind == HB_MEASURED_XLA_TOTAL && hb_str_same(compiler, "xla-tpu"))
        m->fits = 1;
    if (o->fits >= 0)
        m->fits = o->fits == FITS_OPEN ? -1 : o->fits == FITS_YES;
}

static int make_record(struct hb_env *env, const struct options *o, struct hb_measured *m)
{
    struct hb_str line;
    struct hb_spec spec;
    if (!read_config(env, o, &spec))
        return HB_EXIT_INPUT;
    settle_fits(env, o, hb_compiler_name(spec.compiler), m);
    hb_str_init(&line, env->arena);
    if (!write_record(env, &line, o, &spec, m) || !check_record(env, &line))
        return HB_EXIT_INPUT;
    struct hb_out *out = hb_out_open(env, o->common.output);
    fputs(line.text, hb_out_file(out));
    hb_out_close(out);
    return HB_EXIT_YES;
}

static bool check_options(struct hb_env *env, const struct options *o)
{
    if (!o->config)
        hb_error(env->diag, nowhere, "'record' wants --config FILE.yaml, what ran");
    if (!o->id || !o->id[0])
        hb_error(env->diag, nowhere, "'record' wants --id ID, a name for the record");
    if (o->step_seconds < 0)
        hb_error(env->diag, nowhere, "--step-seconds: %g is no time", o->step_seconds);
    return env->diag->errors == 0;
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    struct hb_measured measured;
    const char *reason;
    struct hb_log *log = hb_arena_alloc(env->arena, 1, sizeof *log);
    int status = hb_opt_parse(env, &hb_cmd_record, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (!check_options(env, &o))
        return HB_EXIT_INPUT;
    if (!hb_logfile_read(env->arena, env->diag, o.log ? o.log : "-", log))
        return HB_EXIT_INPUT;
    enum hb_measured_kind want =
        o.kind < 0 ? HB_MEASURED_KIND_COUNT : (enum hb_measured_kind)o.kind;
    if (!hb_measured_read(env->arena, log, want, &measured, &reason)) {
        hb_utf8_say(env->err, "hbmsim record: no record: %s\n", reason);
        return HB_EXIT_NO;
    }
    return make_record(env, &o, &measured);
}

static const struct hb_opt options[] = {
    {"LOG", 0, HB_OPT_OPERAND_MAYBE, NULL, "what was printed; default: standard input", NULL,
     offsetof(struct options, log), 0, 0},
    {"config", 'c', HB_OPT_INPUT, "FILE.yaml", "the configuration that ran", NULL,
     offsetof(struct options, config), 0, 0},
    {"id", 0, HB_OPT_STRING, "ID", "the record's name", NULL, offsetof(struct options, id), 0, 0},
    {"source", 0, HB_OPT_STRING, "TEXT", "who measured it", "user",
     offsetof(struct options, source), 0, 0},
    {"group", 0, HB_OPT_STRING, "TEXT", "what it is counted with in statistics", NULL,
     offsetof(struct options, group), 0, 0},
    {"version", 0, HB_OPT_WORDS, "NAME=VERSION", "of jax, torch, libtpu ...; may be repeated", NULL,
     offsetof(struct options, versions), 0, 0},
    {"kind", 0, HB_OPT_CHOICE, "xla_total|runtime_peak|max_allocated|max_reserved",
     "which figure, where the log has several", NULL, offsetof(struct options, kind), 0, 0},
    {"fits", 0, HB_OPT_CHOICE, "yes|no|open", "whether it fit, where the log leaves it open", NULL,
     offsetof(struct options, fits), 0, 0},
    {"step-seconds", 0, HB_OPT_DOUBLE, "S", "time of a step, if known", NULL,
     offsetof(struct options, step_seconds), 0, 0},
    {"note", 0, HB_OPT_STRING, "TEXT", "what a reader must know", NULL,
     offsetof(struct options, note), 0, 0},
    {0},
};

const struct hb_cmd hb_cmd_record = {
    .name = "record",
    .run = run,
    .summary = "makes a measured record from what was printed",
    .about = "Reads memory_analysis(), MaxText's memory line, an XLA out-of-memory message, a BFC\n"
             "allocator dump, allocator statistics, or PyTorch's statistics or out-of-memory\n"
             "message, and writes one line of JSON for `hbmsim validate`. What the print does not\n"
             "tell is null; a run that did not fit has fits: false and what it wanted. Status 1:\n"
             "there is no figure in it. examples/record/ has scripts that measure a step.",
    .example = "hbmsim record tests/golden/logs/memory-analysis.log "
               "--config models/zoo/llama3-8b.yaml --id mine",
    .options = options,
    .common = HB_COMMON_SET | HB_COMMON_OUTPUT,
};
