/* Asking the reference program and reading its answer: see compiled.h. */
#include "cli/compiled.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/script.h"
#include "models/emit.h"
#include "models/schema.h"

enum { EXIT_REFUSED = 2 };
static const int64_t second_ns = 1000000000;

static const char *our_script = "examples/verify/verify.py";
static const char *maxtext_script = "examples/verify/run_maxtext.py";

/* What installs JAX with this device's compiler: 'pip install "jax[tpu]"'. */
static const char *find_pip(const struct hb_spec *spec)
{
    if (spec->compiler == HB_XLA_TPU)
        return "pip install \"jax[tpu]\"";
    return hb_str_starts(spec->hardware.device, "amd-") ? "pip install \"jax[rocm]\""
                                                        : "pip install \"jax[cuda12]\"";
}

static bool fail(struct hb_compiled *c, const char *reason)
{
    c->end = HB_COMPILE_FAILED;
    c->reason = reason;
    return false;
}

static int64_t bytes_of(const struct hb_node *answer, const char *key)
{
    int64_t bytes;
    bool known = hb_node_int(hb_node_find(answer, key), &bytes) && bytes >= 0 && hb_size_ok(bytes);
    return known ? bytes : -1;
}

/* Devices that "v5e:8x8", "h100:1x2x8" names; "tpu7x:2x2x1": two on each chip. 0: it is no such
 * name. */
static int64_t device_count(const char *topology)
{
    const char *c = strchr(topology, ':');
    int64_t all = hb_str_starts(topology, "tpu7x:") ? 2 : 1;
    if (!c || c == topology)
        return 0;
    do {
        int64_t n = 0;
        for (c++; isdigit((unsigned char)*c); c++)
            n = hb_add_sat(hb_mul_sat(n, 10), *c - '0');
        all = hb_mul_sat(all, n);
    } while (*c == 'x');
    return *c ? 0 : all;
}

/* It is of what was asked for. */
static bool check_device(struct hb_env *env, const struct hb_spec *spec,
                         const struct hb_node *answer, struct hb_compiled *c)
{
    int64_t count = 0;
    const char *device = hb_script_word(env, answer, "device");
    c->by = hb_script_word(env, answer, "compiler");
    c->topology = hb_script_word(env, answer, "topology");
    bool same = hb_str_same(device, spec->hardware.device) &&
                hb_node_int(hb_node_find(answer, "devices"), &count) &&
                count == spec->hardware.count && device_count(c->topology) >= count && *c->by;
    if (same)
        return true;
    return fail(c,
                hb_arena_printf(env->arena, "the answer is of %lld x '%s' ('%s'), not of %lld x %s",
                                (long long)count, device, c->topology,
                                (long long)spec->hardware.count, spec->hardware.device));
}

static bool read_sums(struct hb_env *env, const struct hb_node *answer, struct hb_compiled *c)
{
    c->argument_bytes = bytes_of(answer, "argument_bytes");
    c->output_bytes = bytes_of(answer, "output_bytes");
    c->alias_bytes = bytes_of(answer, "alias_bytes");
    c->temp_bytes = bytes_of(answer, "temp_bytes");
    c->host_bytes = bytes_of(answer, "host_bytes");
    c->total_bytes = bytes_of(answer, "total_bytes");
    bool parts =
        c->argument_bytes >= 0 && c->output_bytes >= 0 && c->alias_bytes >= 0 && c->temp_bytes >= 0;
    if (c->total_bytes <= 0)
        return fail(c, "the answer has no total_bytes");
    if (parts &&
        c->total_bytes != c->argument_bytes + c->output_bytes - c->alias_bytes + c->temp_bytes)
        return fail(c, hb_arena_printf(env->arena,
                                       "the answer's parts do not sum to its "
                                       "total_bytes %lld",
                                       (long long)c->total_bytes));
    return true;
}

static bool read_answer(struct hb_env *env, const struct hb_compile_ask *ask,
                        const struct hb_script *script, struct hb_compiled *c)
{
    const char *error = hb_script_error(env, script);
    if (error) {
        c->end = script->status == EXIT_REFUSED ? HB_COMPILE_REFUSED : HB_COMPILE_FAILED;
        c->reason = error;
        return false;
    }
    if (script->status != 0)
        return fail(c, hb_arena_printf(env->arena, "'%s' ended with status %d%s", ask->python,
                                       script->status, script->last_words));
    c->versions = hb_script_words(env, script->answer, "versions");
    return check_device(env, ask->spec, script->answer, c) && read_sums(env, script->answer, c);
}

/* --- the command line --- */

/* The lines of --emit maxtext: settings, or with unsaid the remarks between them. */
static const char *const *emitted_lines(struct hb_env *env, const struct hb_spec *spec, bool unsaid,
                                        uint32_t *out_count)
{
    struct hb_str text;
    const char **lines = NULL;
    uint32_t count = 0, cap = 0;
    hb_str_init(&text, env->arena);
    hb_emit_maxtext_run(&text, spec, env->data_dir);
    for (const char *at = text.text; *at;) {
        size_t len = strcspn(at, "\n");
        if (len && (*at == '#') == unsaid) {
            lines = hb_grow(env->arena, lines, count, &cap, sizeof *lines);
            lines[count++] = hb_arena_strndup(env->arena, at, len);
        }
        at += len + (at[len] == '\n');
    }
    *out_count = count;
    return lines;
}

const char *hb_compile_unsaid(struct hb_env *env, const struct hb_spec *spec)
{
    struct hb_str s;
    uint32_t count;
    const char *const *lines = emitted_lines(env, spec, true, &count);
    hb_str_init(&s, env->arena);
    for (uint32_t i = 0; i < count; i++)
        hb_str_addf(&s, "%s\n", lines[i]);
    return s.text;
}

enum { WORDS_BEFORE = 6 };

/* python -B script [checkout model_name=NAME settings...] */
static const char *const *command_line(struct hb_env *env, const struct hb_compile_ask *ask,
                                       const char *path)
{
    uint32_t count = 0, n = 0;
    const char *const *lines = ask->maxtext ? emitted_lines(env, ask->spec, false, &count) : NULL;
    const char **argv =
        hb_arena_alloc(env->arena, (size_t)count + ask->setting_count + WORDS_BEFORE, sizeof *argv);
    argv[n++] = ask->python;
    argv[n++] = "-B";
    argv[n++] = path;
    if (!ask->maxtext)
        return argv;
    argv[n++] = ask->maxtext;
    argv[n++] = hb_arena_printf(env->arena, "model_name=%s", ask->spec->model.name);
    for (uint32_t i = 0; i < count; i++)
        argv[n++] = lines[i];
    for (uint32_t i = 0; i < ask->setting_count; i++)
        argv[n++] = ask->setting[i];
    return argv;
}

void hb_compile(struct hb_env *env, const struct hb_compile_ask *ask, struct hb_compiled *out)
{
    struct hb_str config;
    struct hb_script script;
    const char *path = hb_arena_printf(env->arena, "%s/%s", env->data_dir,
                                       ask->maxtext ? maxtext_script : our_script);
    *out = (struct hb_compiled){.end = HB_COMPILED};
    if (access(path, R_OK) != 0) {
        fail(out, hb_arena_printf(env->arena, "%s cannot be read: %s", path, strerror(errno)));
        return;
    }
    hb_str_init(&config, env->arena);
    hb_schema_emit_json(&config, ask->spec, true);
    struct hb_script_ask run = {
        .argv = command_line(env, ask, path),
        .input = config.text,
        .most_ns = hb_mul_sat(ask->seconds, second_ns),
        .name = "the compiler",
        .longer = "--compile-seconds",
        .install = hb_arena_printf(env->arena, "JAX with: %s", find_pip(ask->spec))};
    bool answered = hb_script_run(env, &run, &script);
    out->seconds = script.seconds;
    if (answered)
        read_answer(env, ask, &script, out);
    else if (script.end == HB_SCRIPT_INTERRUPTED)
        *out = (struct hb_compiled){
            .end = HB_COMPILE_INTERRUPTED, .signal = script.signal, .reason = script.reason};
    else
        fail(out, script.reason);
}

/* Both in the same unit, which the second leaves out: "15.31 GiB of 15.75". */
static const char *number_of(struct hb_env *env, int64_t bytes, const char *unit)
{
    char *text = hb_arena_alloc(env->arena, HB_SIZE_TEXT, 1);
    hb_size_print(bytes, text);
    char *space = strchr(text, ' ');
    if (space && hb_str_same(space, unit))
        *space = 0;
    return text;
}

const char *hb_compiled_line(struct hb_env *env, const struct hb_compiled *c, int64_t budget_bytes,
                             int64_t predicted_bytes)
{
    const char *total = hb_size_print(c->total_bytes, hb_arena_alloc(env->arena, HB_SIZE_TEXT, 1));
    const char *unit = strchr(total, ' ');
    return hb_arena_printf(env->arena, "compiled by %s for %s: %s of %s; predicted %s", c->by,
                           c->topology, total, number_of(env, budget_bytes, unit ? unit : ""),
                           number_of(env, predicted_bytes, unit ? unit : ""));
}
