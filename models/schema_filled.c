/* What nobody wrote and yet decides: the defaults that were filled in, of keys that move memory
 * or time in most steps. All keys with their values are hb_schema_emit's. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "models/schema.h"

/* With "[]." the key is in each item of the list; `only` names what it needs to matter. */
static const struct {
    const char *path;
    enum { ALWAYS, WITH_PIPELINE, OF_XLA } only;
} told[] = {
    {"compiler", ALWAYS},
    {"precision.params", ALWAYS},
    {"precision.compute", ALWAYS},
    {"precision.grads", ALWAYS},
    {"optimizer.name", ALWAYS},
    {"optimizer.moments", ALWAYS},
    {"model.blocks[].attention.kernel", ALWAYS},
    {"model.blocks[].moe.dispatch", ALWAYS},
    {"model.blocks[].moe.capacity_factor", ALWAYS},
    {"loss.dot", OF_XLA},
    {"loss.kernel", ALWAYS},
    {"sharding.optimizer_over_data", ALWAYS},
    {"pipeline.schedule", WITH_PIPELINE},
    {"pipeline.microbatches", WITH_PIPELINE},
};

static const struct hb_node *child(const struct hb_node *map, const char *name, size_t len)
{
    for (const struct hb_node *node = map ? map->first : NULL; node; node = node->next)
        if (node->key && strlen(node->key) == len && strncmp(node->key, name, len) == 0)
            return node;
    return NULL;
}

/* The node at path; of lists the first item that has it. */
static const struct hb_node *find(const struct hb_node *tree, const char *path)
{
    while (tree && *path) {
        size_t len = strcspn(path, ".[");
        bool list = path[len] == '[';
        tree = child(tree, path, len);
        path += len + (list ? strlen("[]") : 0);
        path += *path == '.';
        if (!list)
            continue;
        const struct hb_node *found = NULL;
        for (const struct hb_node *item = tree ? tree->first : NULL; item && !found;
             item = item->next)
            found = find(item, path);
        return found;
    }
    return tree;
}

static bool matters(const struct hb_spec *spec, size_t i, const struct hb_node *value)
{
    bool none = value->kind == HB_NODE_LIST && !value->count;
    bool capacity = hb_str_ends(told[i].path, "capacity_factor");
    if (none || hb_str_same(value->text ? value->text : "", "false"))
        return false;
    if (capacity &&
        spec->model.blocks[spec->model.block_count - 1].moe.dispatch != HB_DISPATCH_EINSUM)
        return false;
    if (told[i].only == WITH_PIPELINE)
        return spec->mesh[HB_AX_PIPELINE] > 1;
    return told[i].only != OF_XLA || spec->compiler != HB_TORCH;
}

static const char *value_text(struct hb_arena *arena, const struct hb_node *value)
{
    struct hb_str s;
    if (value->kind == HB_NODE_SCALAR)
        return value->text;
    hb_str_init(&s, arena);
    hb_str_add(&s, "[");
    for (const struct hb_node *item = value->first; item; item = item->next)
        hb_str_addf(&s, "%s%s", item == value->first ? "" : ",", item->text ? item->text : "");
    hb_str_add(&s, "]");
    return s.text;
}

uint32_t hb_schema_filled(struct hb_arena *arena, const struct hb_node *written,
                          const struct hb_spec *spec, struct hb_schema_filled *out)
{
    const struct hb_node *whole = hb_schema_emit(arena, spec, true);
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        const struct hb_node *value = find(whole, told[i].path);
        if (!value || find(written, told[i].path) || !matters(spec, i, value))
            continue;
        if (count < HB_SCHEMA_MOST_FILLED)
            out[count++] = (struct hb_schema_filled){told[i].path, value_text(arena, value)};
    }
    return count;
}

const char *hb_schema_filled_text(struct hb_arena *arena, const struct hb_node *written,
                                  const struct hb_spec *spec)
{
    struct hb_schema_filled filled[HB_SCHEMA_MOST_FILLED];
    struct hb_str s;
    uint32_t count = hb_schema_filled(arena, written, spec, filled);
    hb_str_init(&s, arena);
    for (uint32_t i = 0; i < count; i++)
        hb_str_addf(&s, "%s%s=%s", i ? " " : "", filled[i].path, filled[i].value);
    return s.text;
}
