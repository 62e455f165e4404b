/* Records of compilations: see keep.h. */
#include "cli/keep.h"

#include <unistd.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/file.h"
#include "base/json_write.h"
#include "base/out.h"
#include "cli/head.h"
#include "models/schema.h"

static const struct hb_loc nowhere;

/* A name for the configuration that another one does not have: FNV-1a of its text. */
static const char *make_id(struct hb_env *env, const struct hb_spec *spec, const char *config)
{
    uint32_t hash = 2166136261u;
    for (const char *c = config; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return hb_arena_printf(env->arena, "verify-%s-%s-%lld-%08x", spec->model.name,
                           spec->hardware.device, (long long)spec->hardware.count, (unsigned)hash);
}

static struct hb_node *config_of(struct hb_arena *arena, const struct hb_spec *spec)
{
    struct hb_node *config = hb_schema_emit(arena, spec, false);
    struct hb_node *full = hb_schema_emit(arena, spec, true);
    hb_node_put(config, "hardware", nowhere, hb_node_copy(arena, hb_node_find(full, "hardware")));
    hb_node_put(config, "compiler", nowhere, hb_node_copy(arena, hb_node_find(full, "compiler")));
    return config;
}

static void write_measured(struct hb_json *j, const struct hb_compiled *c, int64_t budget_bytes)
{
    hb_json_object(j);
    hb_json_put_text(j, "kind", "xla_total");
    hb_json_put_known(j, "argument_bytes", c->argument_bytes);
    hb_json_put_known(j, "output_bytes", c->output_bytes);
    hb_json_put_known(j, "alias_bytes", c->alias_bytes);
    hb_json_put_known(j, "temp_bytes", c->temp_bytes);
    hb_json_put_known(j, "host_bytes", c->host_bytes);
    hb_json_put_known(j, "peak_bytes", c->total_bytes);
    hb_json_put_bool(j, "fits", c->total_bytes <= budget_bytes);
    hb_json_key(j, "step_seconds");
    hb_json_null(j);
    hb_json_object_end(j);
}

static void write_record(struct hb_env *env, struct hb_str *line, const char *id,
                         const struct hb_spec *spec, int64_t budget_bytes,
                         const struct hb_compiled *c)
{
    struct hb_str config;
    hb_str_init(&config, env->arena);
    hb_schema_emit_json(&config, spec, true);
    struct hb_json j = hb_json_begin(line, NULL, false);
    hb_json_object(&j);
    struct hb_head head = hb_head_of(env, spec);
    hb_json_put_text(&j, "id", id ? id : make_id(env, spec, config.text));
    hb_json_put_text(&j, "source",
                     spec->compiler == HB_XLA_TPU ? "xla-tpu-aot/verify" : "xla-gpu-aot/verify");
    hb_json_put_text(&j, "group", hb_arena_printf(env->arena, "verify/%s", spec->model.name));
    hb_json_key(&j, "versions");
    hb_json_node(&j, c->versions);
    hb_head_json_texts(&j, &head);
    hb_json_key(&j, "config");
    hb_json_node(&j, config_of(env->arena, spec));
    hb_json_key(&j, "measured");
    write_measured(&j, c, budget_bytes);
    hb_json_put_text(&j, "note", hb_arena_printf(env->arena, "compiled for %s", c->topology));
    hb_json_object_end(&j);
    hb_json_end(&j);
}

static bool append(struct hb_env *env, const char *path, const char *line)
{
    struct hb_text old = {"", 0};
    const char *reason;
    if (access(path, F_OK) == 0 &&
        !hb_file_load(env->arena, path, HB_FILE_MAX_BYTES, &old, &reason))
        return hb_error(env->diag, nowhere, "--keep: %s: %s", path, reason);
    struct hb_out *out = hb_out_open(env, path);
    fwrite(old.text, 1, old.len, hb_out_file(out));
    if (old.len && old.text[old.len - 1] != '\n')
        fputc('\n', hb_out_file(out));
    fputs(line, hb_out_file(out));
    hb_out_close(out);
    return true;
}

bool hb_keep_record(struct hb_env *env, const char *path, const char *id,
                    const struct hb_spec *spec, int64_t budget_bytes,
                    const struct hb_compiled *compiled)
{
    struct hb_str line;
    hb_str_init(&line, env->arena);
    write_record(env, &line, id, spec, budget_bytes, compiled);
    return append(env, path, line.text);
}

bool hb_keep_run(struct hb_env *env, const char *path, const struct hb_spec *spec,
                 const struct hb_kept *run)
{
    struct hb_str line;
    hb_str_init(&line, env->arena);
    struct hb_json j = hb_json_begin(&line, NULL, false);
    hb_json_object(&j);
    hb_json_put_text(&j, "id", run->id);
    hb_json_put_text(&j, "source", run->source);
    hb_json_put_text(&j, "group", "step");
    hb_json_key(&j, "versions");
    hb_json_node(&j, run->versions);
    hb_json_key(&j, "config");
    hb_json_node(&j, config_of(env->arena, spec));
    hb_json_key(&j, "measured");
    hb_json_object(&j);
    hb_json_put_text(&j, "kind", run->kind);
    hb_json_put_int(&j, "peak_bytes", run->peak_bytes);
    hb_json_put_bool(&j, "fits", run->fits);
    hb_json_put_real(&j, "step_seconds", run->step_seconds);
    hb_json_object_end(&j);
    hb_json_put_text(&j, "note", run->note);
    hb_json_object_end(&j);
    hb_json_end(&j);
    return append(env, path, line.text);
}
