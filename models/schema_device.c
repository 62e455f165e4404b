/* hardware.device by its whole name, and the compiler that is that device's where none is given. */
#include "models/schema_key.h"

#include "base/arena.h"
#include "base/yaml.h"
#include "hw/device.h"
#include "models/schema.h"

/* The kind of device that a profile says; false where it cannot be read, which is told by whoever
 * loads it. */
static bool kind_of_file(struct hb_arena *arena, const char *path, enum hb_device_kind *out)
{
    struct hb_diag quiet;
    struct hb_node *profile = NULL;
    hb_diag_init(&quiet, arena);
    if (!hb_yaml_read_file(arena, &quiet, path, &profile))
        return false;
    const struct hb_node *kind = hb_node_find(profile, "kind");
    return kind && kind->kind == HB_NODE_SCALAR && hb_device_kind_parse(kind->text, out);
}

/* Settles the name of the device; *out_known tells whether *out_kind does. */
static bool settle_device(struct hb_reading *r, const struct hb_node *root, const char *data_dir,
                          bool *out_known, enum hb_device_kind *out_kind)
{
    struct hb_hardware *hardware = &r->spec->hardware;
    *out_known = false;
    if (hb_device_is_path(hardware->device)) {
        *out_known = kind_of_file(r->arena, hardware->device, out_kind);
        return true;
    }
    const char *near = NULL;
    const char *name = hb_device_resolve(r->arena, data_dir, hardware->device, &near);
    if (!name && near)
        return hb_error(r->diag, hb_schema_locate(root, "hardware.device"),
                        "hardware.device: there is no device '%s'; did you mean '%s'?",
                        hardware->device, near);
    if (!name)
        return hb_error(r->diag, hb_schema_locate(root, "hardware.device"),
                        "hardware.device: there is no device '%s'; 'hbmsim devices' lists them",
                        hardware->device);
    hardware->device = name;
    *out_kind = hb_str_starts(name, "tpu-") ? HB_KIND_TPU : HB_KIND_GPU;
    *out_known = hb_str_starts(name, "tpu-") || hb_str_starts(name, "nvidia-") ||
                 hb_str_starts(name, "amd-");
    return true;
}

bool hb_schema_fill_device(struct hb_reading *r, const struct hb_node *root, const char *data_dir)
{
    struct hb_spec *spec = r->spec;
    enum hb_device_kind kind = HB_KIND_CPU;
    bool known = false;
    bool given = hb_node_find(root, "compiler") && spec->compiler != HB_XLA;
    if (!settle_device(r, root, data_dir, &known, &kind))
        return false;
    if (!given)
        spec->compiler = known && kind == HB_KIND_GPU ? HB_XLA_GPU : HB_XLA_TPU;
    bool other =
        known && (kind == HB_KIND_TPU ? spec->compiler != HB_XLA_TPU
                                      : kind == HB_KIND_GPU && spec->compiler == HB_XLA_TPU);
    if (!given || !other || spec->force_compiler)
        return true;
    return hb_error(r->diag, hb_schema_locate(root, "compiler"),
                    "compiler: %s does not compile for hardware.device: %s%s; allowed: %s, or "
                    "force_compiler: true to simulate it all the same; without compiler it follows "
                    "the device",
                    hb_compiler_name(spec->compiler), spec->hardware.device,
                    hb_node_find(hb_node_find(root, "hardware"), "device") ? "" : " (the default)",
                    kind == HB_KIND_TPU ? "xla-tpu" : "xla-gpu, torch");
}
