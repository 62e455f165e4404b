/* A spec back into a tree, along the table. Defaults are what the reader makes of the absent
 * key: they are computed by reading each default's text, so that both ways cannot disagree. */
#include "models/schema.h"

#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/yaml.h"
#include "models/schema_key.h"

struct emitter {
    struct hb_arena *arena;
    const struct hb_spec *spec;
    bool full;
};

static const struct hb_loc nowhere = {0};

static bool same_tree(const struct hb_node *a, const struct hb_node *b)
{
    if (a->kind != b->kind || a->count != b->count)
        return false;
    if (a->kind == HB_NODE_SCALAR)
        return hb_str_same(a->text, b->text);
    const struct hb_node *x = a->first;
    const struct hb_node *y = b->first;
    for (; x; x = x->next, y = y->next)
        if (!same_tree(x, y))
            return false;
    return true;
}

/* Whether value is what the default's text says. */
static bool is_default(const struct emitter *e, const struct hb_key *key,
                       const struct hb_node *value)
{
    if (!key->def || key->def[0] == '=')
        return false;
    struct hb_node *parsed = NULL;
    struct hb_diag diag;
    hb_diag_init(&diag, e->arena);
    if (!hb_yaml_parse(e->arena, &diag, "default", key->def, strlen(key->def), &parsed))
        HB_BUG("default of %s is no YAML", key->name);
    return same_tree(parsed, value);
}

static struct hb_node *emit_section(const struct emitter *e, enum hb_section_id id,
                                    const void *base);

static struct hb_node *emit_blocks(const struct emitter *e)
{
    const struct hb_model *m = &e->spec->model;
    struct hb_node *list = hb_node_new(e->arena, HB_NODE_LIST, nowhere);
    for (int i = 0; i < m->block_count; i++)
        hb_node_append(list, emit_section(e, HB_SEC_BLOCK, &m->blocks[i]));
    return list;
}

static struct hb_node *emit_per_block(const struct emitter *e)
{
    const struct hb_model *m = &e->spec->model;
    struct emitter whole = *e;
    whole.full = true;
    struct hb_node *map = hb_node_new(e->arena, HB_NODE_MAP, nowhere);
    for (int i = 0; i < m->block_count; i++) {
        const struct hb_block *b = &m->blocks[i];
        const struct hb_remat *all = &e->spec->remat.all;
        if (b->remat.policy != all->policy || b->remat.save != all->save ||
            b->remat.offload != all->offload)
            hb_node_put(map, b->name, nowhere, emit_section(&whole, HB_SEC_OWN_REMAT, &b->remat));
    }
    return map;
}

/* Whether an optional map is there: of load and plan.search by their flag, else one of the two
 * parts of a block. */
static bool is_present(const struct hb_key *key, const void *base)
{
    if (key->offset != HB_KEY_NOWHERE)
        return *(const bool *)((const char *)base + key->offset);
    const struct hb_block *block = base;
    return (key->section == HB_SEC_MOE) == (block->moe.experts != 0);
}

/* Fields without a value, and the split of experts where it is as wide as its axis: written out,
 * it would be in the way of whoever changes the axis. */
static bool is_silent(const struct emitter *e, const struct hb_key *key, const void *base)
{
    if (key->offset == HB_KEY_NOWHERE)
        return key->kind == HB_KEY_TEXT;
    const void *field = (const char *)base + key->offset;
    if (key->kind == HB_KEY_SIZE)
        return *(const int64_t *)field == HB_KEY_UNSET;
    if (field != &e->spec->sharding.expert_tensor)
        return false;
    return !e->full && e->spec->sharding.expert_tensor == e->spec->mesh[HB_AX_TENSOR];
}

/* The value under the key, or null where it is not written. */
static struct hb_node *emit_value(const struct emitter *e, const struct hb_key *key,
                                  const void *base)
{
    struct hb_node *value = NULL;
    if (key->kind == HB_KEY_SECTION) {
        if (key->optional && !is_present(key, base))
            return NULL;
        value = emit_section(e, key->section, base);
        return value->count || key->optional ? value : NULL;
    }
    if (is_silent(e, key, base))
        return NULL;
    if (key->kind == HB_KEY_BLOCKS)
        return emit_blocks(e);
    if (key->kind == HB_KEY_PER_BLOCK)
        value = emit_per_block(e);
    else if (key->offset == HB_KEY_NOWHERE && key->kind == HB_KEY_INT)
        return hb_node_scalar(e->arena, nowhere, key->def, false);
    else
        value = hb_key_emit(e->arena, key, base);
    return !e->full && is_default(e, key, value) ? NULL : value;
}

static struct hb_node *emit_section(const struct emitter *e, enum hb_section_id id,
                                    const void *base)
{
    const struct hb_section *section = hb_section(id);
    struct hb_node *map = hb_node_new(e->arena, HB_NODE_MAP, nowhere);
    for (int i = 0; i < section->key_count; i++) {
        struct hb_node *value = emit_value(e, &section->keys[i], base);
        if (value)
            hb_node_put(map, section->keys[i].name, nowhere, value);
    }
    return map;
}

struct hb_node *hb_schema_emit(struct hb_arena *arena, const struct hb_spec *spec, bool full)
{
    struct emitter e = {arena, spec, full};
    return emit_section(&e, HB_SEC_ROOT, spec);
}

void hb_schema_emit_yaml(struct hb_str *out, const struct hb_spec *spec, bool full)
{
    hb_yaml_write(out, hb_schema_emit(out->arena, spec, full));
}

void hb_schema_emit_json(struct hb_str *out, const struct hb_spec *spec, bool full)
{
    struct hb_json j = hb_json_begin(out, NULL, false);
    hb_json_node(&j, hb_schema_emit(out->arena, spec, full));
}
