/* The walk over a tree along the table: every map of the file is a section, every key a row. */
#include "models/schema.h"

#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "models/schema_key.h"

enum { MAX_KEYS = 40 };

/* The row of a name, tried first at hint: files mostly keep the table's order. */
static int find_key(const struct hb_section *section, const char *name, int hint)
{
    for (int i = 0; i < section->key_count; i++) {
        int at = (hint + i) % section->key_count;
        if (hb_str_same(section->keys[at].name, name))
            return at;
    }
    return -1;
}

static bool fail_unknown(struct hb_reading *r, const struct hb_scope *scope,
                         const struct hb_section *section, const struct hb_node *node)
{
    const char *names[MAX_KEYS + 1];
    struct hb_str known;
    hb_str_init(&known, r->arena);
    for (int i = 0; i < section->key_count; i++) {
        names[i] = section->keys[i].name;
        hb_str_addf(&known, "%s%s", i ? ", " : "", names[i]);
    }
    names[section->key_count] = NULL;
    const char *whole = scope ? NULL : hb_schema_path_of(r->arena, node->key);
    if (whole)
        return hb_reading_fail(r, scope, node->key_loc, "unknown key '%s'; did you mean '%s'?",
                               node->key, whole);
    const char *near = hb_str_nearest(node->key, names);
    struct hb_node shown = {.kind = HB_NODE_SCALAR, .quoted = true, .text = node->key};
    const char *name = hb_node_show(r->arena, &shown);
    if (near)
        return hb_reading_fail(r, scope, node->key_loc, "unknown key %s; did you mean '%s'?", name,
                               near);
    return hb_reading_fail(r, scope, node->key_loc, "unknown key %s; known here: %s", name,
                           known.text);
}

/* The default's text as a node: a scalar, or a list of at most one word. */
static struct hb_node default_node(const struct hb_key *key, char *word, size_t room,
                                   struct hb_node *item)
{
    struct hb_node node = {.kind = HB_NODE_SCALAR, .text = key->def};
    size_t len = strlen(key->def);
    if (key->def[0] != '[')
        return node;
    node = (struct hb_node){.kind = HB_NODE_LIST};
    if (len == 2)
        return node;
    if (len - 2 >= room)
        HB_BUG("default of %s is too long", key->name);
    memcpy(word, key->def + 1, len - 2);
    word[len - 2] = '\0';
    *item = (struct hb_node){.kind = HB_NODE_SCALAR, .text = word};
    hb_node_append(&node, item);
    return node;
}

/* What stands in a field whose default is computed later. */
static void mark_unset(const struct hb_key *key, void *base)
{
    if (key->offset == HB_KEY_NOWHERE)
        return;
    void *field = (char *)base + key->offset;
    if (key->kind == HB_KEY_INT || key->kind == HB_KEY_SIZE || key->kind == HB_KEY_AXIS)
        *(int64_t *)field = HB_KEY_UNSET;
    else if (key->kind == HB_KEY_MOMENTS)
        *(int *)((char *)base + key->count_offset) = HB_KEY_UNSET;
}

static bool read_blocks(struct hb_reading *r, const struct hb_scope *scope,
                        const struct hb_node *list);

static bool want_map(struct hb_reading *r, const struct hb_scope *scope, const struct hb_node *node)
{
    if (node->kind == HB_NODE_MAP)
        return true;
    return hb_reading_fail(r, scope, node->loc, "%s stands where a map of keys is wanted",
                           hb_node_show(r->arena, node));
}

static bool read_child(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                       const struct hb_node *node, void *base)
{
    if (key->kind == HB_KEY_BLOCKS)
        return read_blocks(r, scope, node);
    if (key->kind == HB_KEY_PER_BLOCK) {
        r->per_block = node;
        return want_map(r, scope, node);
    }
    if (key->kind != HB_KEY_SECTION)
        return hb_key_read(r, scope, key, node, base);
    if (key->optional && key->offset != HB_KEY_NOWHERE)
        *(bool *)((char *)base + key->offset) = true;
    return hb_section_read(r, scope, key->section, node, node->loc, base);
}

static bool apply_default(struct hb_reading *r, const struct hb_scope *scope,
                          const struct hb_key *key, struct hb_loc at, void *base)
{
    if (!key->def)
        return hb_reading_fail(r, scope, at, "is missing; allowed: %s",
                               hb_key_allowed(r->arena, key));
    if (key->kind == HB_KEY_SECTION)
        return key->optional || hb_section_read(r, scope, key->section, NULL, at, base);
    if (key->def[0] == '=')
        mark_unset(key, base);
    if (key->def[0] == '=' || key->kind == HB_KEY_PER_BLOCK || key->offset == HB_KEY_NOWHERE)
        return true;
    char word[32];
    struct hb_node item;
    struct hb_node node = default_node(key, word, sizeof word, &item);
    if (!hb_key_read(r, scope, key, &node, base))
        HB_BUG("default of %s does not read", key->name);
    return true;
}

bool hb_section_read(struct hb_reading *r, const struct hb_scope *scope, enum hb_section_id id,
                     const struct hb_node *map, struct hb_loc at, void *base)
{
    const struct hb_section *section = hb_section(id);
    uint64_t seen = 0;
    bool ok = !map || want_map(r, scope, map);
    if (!ok)
        return false;
    int hint = 0;
    for (const struct hb_node *node = map ? map->first : NULL; node; node = node->next) {
        int i = find_key(section, node->key, hint);
        if (i < 0) {
            ok = fail_unknown(r, scope, section, node);
            continue;
        }
        struct hb_scope inner = {scope, node->key, 0};
        seen |= (uint64_t)1 << i;
        hint = i + 1;
        ok &= read_child(r, &inner, &section->keys[i], node, base);
    }
    for (int i = 0; i < section->key_count; i++) {
        struct hb_scope inner = {scope, section->keys[i].name, 0};
        if (!(seen >> i & 1))
            ok &= apply_default(r, &inner, &section->keys[i], at, base);
    }
    return ok;
}

/* Either an MLP or experts. */
static bool check_parts(struct hb_reading *r, const struct hb_scope *scope,
                        const struct hb_node *block)
{
    const struct hb_node *mlp = hb_node_find(block, "mlp");
    const struct hb_node *moe = hb_node_find(block, "moe");
    if (mlp && moe)
        return hb_reading_fail(r, scope, moe->key_loc,
                               "has both mlp and moe; a layer has one of them");
    if (!mlp && !moe)
        return hb_reading_fail(r, scope, block->loc,
                               "has neither mlp nor moe; allowed: one of "
                               "them");
    return true;
}

static bool read_blocks(struct hb_reading *r, const struct hb_scope *scope,
                        const struct hb_node *list)
{
    if (list->kind != HB_NODE_LIST || !list->count)
        return hb_reading_fail(
            r, scope, list->loc, "%s stands where a list of at least one block is wanted",
            list->kind == HB_NODE_LIST ? "an empty list" : hb_node_show(r->arena, list));
    struct hb_block *blocks = hb_arena_alloc(r->arena, list->count, sizeof *blocks);
    struct hb_scope item = {scope, NULL, 0};
    bool ok = true;
    for (const struct hb_node *node = list->first; node; node = node->next) {
        bool read = hb_section_read(r, &item, HB_SEC_BLOCK, node, node->loc, &blocks[item.index]);
        ok &= read && check_parts(r, &item, node);
        item.index++;
    }
    r->spec->model.blocks = blocks;
    r->spec->model.block_count = item.index;
    return ok;
}

/* Without the last checks. */
static bool fill_tree(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *root,
                      const char *data_dir, struct hb_spec *out_spec)
{
    struct hb_spec *spec = hb_arena_alloc(arena, 1, sizeof *spec);
    struct hb_reading r = {.arena = arena, .diag = diag, .spec = spec};
    if (!hb_section_read(&r, NULL, HB_SEC_ROOT, root, root->loc, spec))
        return false;
    if (!hb_schema_fill(&r, root) || !hb_schema_fill_device(&r, root, data_dir))
        return false;
    *out_spec = *spec;
    return true;
}

static bool read_tree(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *root,
                      const char *data_dir, struct hb_spec *out_spec)
{
    return fill_tree(arena, diag, root, data_dir, out_spec) &&
           hb_schema_check(arena, diag, root, out_spec);
}

bool hb_schema_check_key(struct hb_arena *arena, struct hb_diag *diag, struct hb_loc loc,
                         const char *path)
{
    struct hb_reading r = {.arena = arena, .diag = diag};
    struct hb_node *root = hb_node_new(arena, HB_NODE_MAP, loc);
    const struct hb_section *section = hb_section(HB_SEC_ROOT);
    struct hb_scope scopes[HB_NODE_MAX_DEPTH];
    int depth = 0;
    if (!hb_schema_set_at(arena, diag, loc, root, hb_arena_printf(arena, "%s=0", path)))
        return false;
    for (const struct hb_node *node = root->first; node; node = node->first) {
        const struct hb_scope *up = depth ? &scopes[depth - 1] : NULL;
        int i = find_key(section, node->key, 0);
        if (i < 0)
            return fail_unknown(&r, up, section, node);
        scopes[depth++] = (struct hb_scope){up, node->key, 0};
        enum hb_key_kind kind = section->keys[i].kind;
        bool items = kind == HB_KEY_BLOCKS || kind == HB_KEY_PER_BLOCK;
        if (kind != HB_KEY_SECTION && !items)
            return true;
        section = hb_section(section->keys[i].section);
        node = items ? node->first : node; /* a number, or a block's name */
        if (!node)
            return true;
    }
    return true;
}

bool hb_schema_from_node(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *config,
                         const char *data_dir, struct hb_spec *out_spec)
{
    if (hb_node_find(hb_node_find(config, "model"), "preset")) {
        struct hb_node *copy = hb_node_copy(arena, config);
        if (!hb_schema_apply_preset(arena, diag, copy, data_dir))
            return false;
        return read_tree(arena, diag, copy, data_dir, out_spec);
    }
    const struct hb_node *include = hb_node_find(config, "include");
    const struct hb_node *import = hb_node_find(hb_node_find(config, "model"), "import");
    if (import)
        return hb_error(diag, import->key_loc, "model.import: only a file can import another");
    if (include)
        return hb_error(diag, include->key_loc, "include: only a file can include another");
    return read_tree(arena, diag, config, data_dir, out_spec);
}

bool hb_schema_read(const struct hb_schema_source *source, struct hb_spec *out_spec)
{
    struct hb_node *root = NULL;
    if (!hb_schema_load(source, &root) ||
        !fill_tree(source->arena, source->diag, root, source->data_dir, out_spec))
        return false;
    if (source->out_written)
        *source->out_written = root;
    return source->searched ? hb_schema_check_searched(source->arena, source->diag, root, out_spec)
                            : hb_schema_check(source->arena, source->diag, root, out_spec);
}
