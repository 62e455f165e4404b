/* The head of a result: see head.h. */
#include "cli/head.h"

#include "base/env.h"
#include "models/schema.h"

static const char *text_of(const struct hb_node *map, const char *key)
{
    const struct hb_node *node = hb_node_find(map, key);
    return node && node->kind == HB_NODE_SCALAR ? node->text : NULL;
}

struct hb_head hb_head_of(const struct hb_env *env, const struct hb_spec *spec)
{
    const struct hb_node *tree = hb_schema_emit(env->arena, spec, true);
    return (struct hb_head){.name = spec->model.name,
                            .version = env->version,
                            .compiler = text_of(tree, "compiler"),
                            .device = text_of(hb_node_find(tree, "hardware"), "device"),
                            .configuration = tree};
}

void hb_head_json_texts(struct hb_json *j, const struct hb_head *head)
{
    hb_json_put_text(j, "name", head->name);
    hb_json_put_text(j, "version", head->version);
    hb_json_put_text(j, "compiler", head->compiler);
    hb_json_put_text(j, "device", head->device);
}

void hb_head_json(struct hb_json *j, const struct hb_head *head)
{
    hb_head_json_texts(j, head);
    hb_json_key(j, "configuration");
    if (head->configuration)
        hb_json_node(j, head->configuration);
    else
        hb_json_null(j);
}
