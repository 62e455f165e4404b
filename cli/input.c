/* Reading a command's model: see input.h. */
#include "cli/input.h"

#include "base/arena.h"
#include "base/env.h"
#include "models/schema.h"
#include "models/support.h"
#include "sim/engine/result.h"

struct hb_schema_source hb_input_source(struct hb_env *env, const char *path,
                                        const struct hb_words *sets)
{
    return (struct hb_schema_source){.arena = env->arena,
                                     .diag = env->diag,
                                     .path = path,
                                     .sets = sets->items,
                                     .set_count = (int)sets->count,
                                     .data_dir = env->data_dir,
                                     .given = &env->given};
}

static bool read_spec(struct hb_env *env, const struct hb_schema_source *source,
                      struct hb_spec *out_spec, struct hb_device *out_device)
{
    struct hb_node *root = NULL;
    struct hb_schema_source noted = *source;
    noted.out_written = &root;
    if (!hb_schema_read(&noted, out_spec))
        return false;
    if (source->out_written)
        *source->out_written = root;
    if (!hb_spec_supported(env->diag, root, out_spec) ||
        !hb_device_load(env->arena, env->diag, env->data_dir, out_spec->hardware.device,
                        (struct hb_loc){.file = source->path}, out_device))
        return false;
    out_spec->hardware.memory_bytes = hb_budget_found_bytes(out_spec, out_device);
    return true;
}

bool hb_input_read(struct hb_env *env, const char *path, const struct hb_words *sets,
                   struct hb_spec *out_spec, struct hb_device *out_device)
{
    struct hb_schema_source source = hb_input_source(env, path, sets);
    return read_spec(env, &source, out_spec, out_device);
}

bool hb_input_read_written(struct hb_env *env, const char *path, const struct hb_words *sets,
                           struct hb_spec *out_spec, struct hb_device *out_device,
                           struct hb_node **out_written)
{
    struct hb_schema_source source = hb_input_source(env, path, sets);
    source.out_written = out_written;
    return read_spec(env, &source, out_spec, out_device);
}

static const double least_part = 0.5, most_part = 0.999;

bool hb_input_part(struct hb_env *env, double value, double *out)
{
    double part = value > 1 ? value / 100 : value;
    if (part < least_part || part > most_part)
        return hb_error(env->diag, (struct hb_loc){0},
                        "--confidence: '%g'; allowed: per cent from 50 to 99.9", value);
    *out = part;
    return true;
}

bool hb_input_confidence(struct hb_env *env, double value, struct hb_words *sets)
{
    double part = 0;
    if (!(value < 0 || value > 0))
        return true;
    if (!hb_input_part(env, value, &part))
        return false;
    hb_words_add(sets, env->arena, hb_arena_printf(env->arena, "plan.confidence=%.10g", part));
    return true;
}

bool hb_input_read_planned(struct hb_env *env, const char *path, const struct hb_words *sets,
                           struct hb_spec *out_spec, struct hb_device *out_device,
                           struct hb_planned *planned)
{
    struct hb_schema_source source = hb_input_source(env, path, sets);
    source.searched = true;
    source.if_open = planned->if_open;
    source.out_written = &planned->written;
    return read_spec(env, &source, out_spec, out_device);
}
