/* Reading a command's model: see input.h. */
#include "cli/input.h"

#include "base/env.h"
#include "models/schema.h"
#include "models/support.h"
#include "sim/engine/result.h"

bool hb_input_read(struct hb_env *env, const char *path, const struct hb_words *sets,
                   struct hb_spec *out_spec, struct hb_device *out_device)
{
    struct hb_loc at = {.file = path};
    struct hb_schema_source source = {.arena = env->arena,
                                      .diag = env->diag,
                                      .path = path,
                                      .sets = sets->items,
                                      .set_count = (int)sets->count,
                                      .data_dir = env->data_dir};
    if (!hb_schema_read(&source, out_spec) || !hb_spec_supported(env->diag, at, out_spec) ||
        !hb_device_load(env->arena, env->diag, env->data_dir, out_spec->hardware.device, at,
                        out_device))
        return false;
    out_spec->hardware.memory_bytes = hb_result_memory_bytes(out_spec, out_device);
    return true;
}
