/* Where a configuration runs: see place.h. */
#include "plots/place.h"

#include "base/arena.h"
#include "base/str.h"

static const char *const axis_names[HB_AX_COUNT] = {
    [HB_AX_DATA] = "data",         [HB_AX_FSDP] = "fsdp",     [HB_AX_TENSOR] = "tensor",
    [HB_AX_SEQUENCE] = "sequence", [HB_AX_EXPERT] = "expert", [HB_AX_PIPELINE] = "pipeline"};

static const char *print_place(struct hb_arena *arena, const char *device, int64_t count,
                               const int64_t *mesh)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    hb_str_addf(&s, "%lld \xC3\x97 %s", (long long)count, device);
    const char *before = ", ";
    for (int i = 0; mesh && i < HB_AX_COUNT; i++) {
        if (mesh[i] <= 1)
            continue;
        hb_str_addf(&s, "%s%s %lld", before, axis_names[i], (long long)mesh[i]);
        before = " \xC3\x97 ";
    }
    return s.text;
}

const char *hb_place_of(struct hb_arena *arena, const struct hb_spec *spec, enum hb_where most)
{
    if (!spec || !spec->hardware.device || most == HB_WHERE_NONE)
        return "";
    if (most == HB_WHERE_DEVICE)
        return spec->hardware.device;
    return print_place(arena, spec->hardware.device, spec->hardware.count,
                       most == HB_WHERE_MESH ? spec->mesh : NULL);
}

const char *hb_place_read(struct hb_arena *arena, const struct hb_node *json, enum hb_where most)
{
    const struct hb_node *device = hb_node_find(json, "device");
    const struct hb_node *config = hb_node_find(json, "configuration");
    const struct hb_node *axes = hb_node_find(config, "mesh");
    int64_t sizes[HB_AX_COUNT] = {0};
    int64_t count = 0;
    if (most == HB_WHERE_NONE || !device || device->kind != HB_NODE_SCALAR ||
        hb_node_is_null(device))
        return "";
    if (most == HB_WHERE_DEVICE ||
        !hb_node_int(hb_node_find(hb_node_find(config, "hardware"), "count"), &count))
        return device->text;
    for (int i = 0; i < HB_AX_COUNT; i++)
        hb_node_int(hb_node_find(axes, axis_names[i]), &sizes[i]);
    return print_place(arena, device->text, count, most == HB_WHERE_MESH ? sizes : NULL);
}

const char *hb_place_under(struct hb_arena *arena, const char *name, const char *place)
{
    bool named = name && *name;
    bool placed = place && *place;
    return hb_arena_printf(arena, "%s%s%s", named ? name : "",
                           named && placed ? "  \xC2\xB7  " : "", placed ? place : "");
}

enum hb_where hb_place_with(const char *key)
{
    if (hb_str_starts(key, "hardware."))
        return HB_WHERE_NONE;
    return hb_str_starts(key, "mesh.") ? HB_WHERE_DEVICE : HB_WHERE_MESH;
}
