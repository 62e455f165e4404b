/* One value of each kind: from a node into its field, back into a node, and what is allowed in
 * words. A row of `kinds` for each kind; sections and blocks are in schema_read.c. */
#include "models/schema_key.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/size.h"

enum { MAX_WORDS = 32 };

static void *field_of(const struct hb_key *key, void *base)
{
    return (char *)base + key->offset;
}

static const void *const_field_of(const struct hb_key *key, const void *base)
{
    return (const char *)base + key->offset;
}

/* ---- messages */

static void add_path(struct hb_str *out, const struct hb_scope *scope)
{
    if (!scope)
        return;
    add_path(out, scope->up);
    if (scope->name)
        hb_str_addf(out, "%s%s", out->len ? "." : "", scope->name);
    else
        hb_str_addf(out, "[%d]", scope->index);
}

bool hb_reading_fail(struct hb_reading *r, const struct hb_scope *scope, struct hb_loc loc,
                     const char *fmt, ...)
{
    struct hb_str path;
    hb_str_init(&path, r->arena);
    add_path(&path, scope);
    va_list ap;
    va_start(ap, fmt);
    char text[512];
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return hb_error(r->diag, loc, "%s%s%s", path.text, path.len ? ": " : "", text);
}

static const char *list_words(struct hb_arena *arena, const struct hb_word *words)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    for (const struct hb_word *w = words; w->text; w++)
        hb_str_addf(&s, "%s%s", s.len ? ", " : "", w->text);
    return s.text;
}

static const char *range_text(struct hb_arena *arena, const struct hb_key *key)
{
    if (key->low == key->high)
        return hb_arena_printf(arena, "%.0f", key->low);
    if (key->kind != HB_KEY_REAL)
        return hb_arena_printf(arena, "%.0f to %.0f", key->low, key->high);
    char low[HB_REAL_TEXT];
    char high[HB_REAL_TEXT];
    return hb_arena_printf(arena, "%s to %s", hb_real_print(key->low, low),
                           hb_real_print(key->high, high));
}

/* A list, a map or nothing stands where a value is wanted. */
static bool fail_shape(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                       const struct hb_node *node, const char *wanted)
{
    return hb_reading_fail(r, scope, node->loc, "%s stands where %s is wanted; allowed: %s",
                           hb_node_show(r->arena, node), wanted, hb_key_allowed(r->arena, key));
}

static bool has_value(const struct hb_node *node)
{
    return node->kind == HB_NODE_SCALAR && !hb_node_is_null(node);
}

/* "; allowed: ...", with the nearest spelling before it. */
static bool fail_word(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                      const struct hb_node *node)
{
    const char *spellings[MAX_WORDS + 1];
    int count = 0;
    for (const struct hb_word *w = key->words; w->text && count < MAX_WORDS; w++)
        spellings[count++] = w->text;
    spellings[count] = NULL;
    const char *near = hb_str_nearest(node->text, spellings);
    const char *hint = near ? hb_arena_printf(r->arena, "did you mean '%s'? ", near) : "";
    return hb_reading_fail(r, scope, node->loc, "%s is not known; %sallowed: %s",
                           hb_node_show(r->arena, node), hint, list_words(r->arena, key->words));
}

static bool all_digits(const char *text)
{
    text += *text == '-';
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* ---- readers */

static bool in_range(const struct hb_key *key, int64_t value)
{
    return (double)value >= key->low && (double)value <= key->high;
}

static bool fail_int(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                     const struct hb_node *node)
{
    const char *found = hb_node_show(r->arena, node);
    const char *allowed = hb_key_allowed(r->arena, key);
    if (!has_value(node))
        return fail_shape(r, scope, key, node, "a whole number");
    bool digits = all_digits(node->text);
    if (digits && node->quoted)
        return hb_reading_fail(r, scope, node->loc,
                               "%s is text because of its quotes; allowed: %s without quotes",
                               found, allowed);
    if (digits && (node->text[0] != '0' || !node->text[1]))
        return hb_reading_fail(r, scope, node->loc, "%s is out of range; allowed: %s", found,
                               allowed);
    return hb_reading_fail(r, scope, node->loc, "%s is not a whole number; allowed: %s", found,
                           allowed);
}

static bool parse_int(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                      const struct hb_node *node, int64_t *out_value)
{
    int64_t value;
    if (!hb_node_int(node, &value) || !in_range(key, value))
        return fail_int(r, scope, key, node);
    *out_value = value;
    return true;
}

static bool read_int(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                     const struct hb_node *node, void *base)
{
    int64_t value = 0;
    if (!parse_int(r, scope, key, node, &value))
        return false;
    if (key->offset != HB_KEY_NOWHERE)
        *(int64_t *)field_of(key, base) = value;
    return true;
}

static bool read_bytes(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                       const struct hb_node *node, void *base)
{
    int64_t *field = field_of(key, base);
    int64_t value = 0;
    if (hb_node_int(node, &value) && value >= 0 && (double)value <= key->high) {
        *field = value;
        return true;
    }
    if (has_value(node) && hb_size_parse(node->text, field))
        return true;
    if (!has_value(node))
        return fail_shape(r, scope, key, node, "a size");
    return hb_reading_fail(r, scope, node->loc,
                           "%s is not a size; allowed: bytes, or a number with B, KiB, MiB, GiB, "
                           "TiB, kB, MB, GB or TB",
                           hb_node_show(r->arena, node));
}

static bool read_real(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                      const struct hb_node *node, void *base)
{
    double value = 0;
    if (!has_value(node))
        return fail_shape(r, scope, key, node, "a number");
    if (!hb_node_real(node, &value))
        return hb_reading_fail(r, scope, node->loc, "%s is not a number; allowed: %s",
                               hb_node_show(r->arena, node), range_text(r->arena, key));
    if (value < key->low || value > key->high)
        return hb_reading_fail(r, scope, node->loc, "%s is out of range; allowed: %s",
                               hb_node_show(r->arena, node), range_text(r->arena, key));
    *(double *)field_of(key, base) = value;
    return true;
}

static bool read_bool(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                      const struct hb_node *node, void *base)
{
    if (hb_node_bool(node, field_of(key, base)))
        return true;
    if (!has_value(node))
        return fail_shape(r, scope, key, node, "a truth value");
    return hb_reading_fail(r, scope, node->loc, "%s is not a truth value; allowed: true, false",
                           hb_node_show(r->arena, node));
}

static bool read_text(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                      const struct hb_node *node, void *base)
{
    if (!has_value(node) || !node->text[0])
        return fail_shape(r, scope, key, node, "text");
    for (const char *c = node->text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return hb_reading_fail(r, scope, node->loc,
                                   "%s holds a control character; allowed: text of one line",
                                   hb_node_show(r->arena, node));
    if (key->offset != HB_KEY_NOWHERE)
        *(const char **)field_of(key, base) = node->text;
    return true;
}

static bool find_word(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                      const struct hb_node *node, int *out_value)
{
    if (!has_value(node))
        return fail_shape(r, scope, key, node, "a word");
    for (const struct hb_word *w = key->words; w->text; w++)
        if (hb_str_same(w->text, node->text)) {
            *out_value = w->value;
            return true;
        }
    return fail_word(r, scope, key, node);
}

static void store_word(const struct hb_key *key, void *base, int value)
{
    if (key->size_bytes == sizeof(bool))
        *(bool *)field_of(key, base) = value != 0;
    else
        memcpy(field_of(key, base), &value, sizeof value);
}

static bool read_enum(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                      const struct hb_node *node, void *base)
{
    int value = 0;
    if (!find_word(r, scope, key, node, &value))
        return false;
    store_word(key, base, value);
    return true;
}

static bool want_list(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                      const struct hb_node *node)
{
    if (node->kind == HB_NODE_LIST)
        return true;
    return fail_shape(r, scope, key, node, "a list");
}

/* The words of a list as a set; each may stand there once. */
static bool parse_mask(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                       const struct hb_node *node, uint32_t *out_mask)
{
    uint32_t mask = 0;
    bool ok = want_list(r, scope, key, node);
    struct hb_scope item_scope = {scope, NULL, 0};
    for (const struct hb_node *item = node->first; ok && item; item = item->next) {
        int value = 0;
        ok = find_word(r, &item_scope, key, item, &value);
        if (ok && mask >> value & 1)
            ok = hb_reading_fail(r, &item_scope, item->loc, "'%s' is listed twice", item->text);
        mask |= 1u << value;
        item_scope.index++;
    }
    if (ok)
        *out_mask = mask;
    return ok;
}

static bool read_mask(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                      const struct hb_node *node, void *base)
{
    return parse_mask(r, scope, key, node, field_of(key, base));
}

static bool read_ints(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                      const struct hb_node *node, void *base)
{
    if (!want_list(r, scope, key, node))
        return false;
    int64_t *values = hb_arena_alloc(r->arena, node->count, sizeof *values);
    struct hb_scope item_scope = {scope, NULL, 0};
    for (const struct hb_node *item = node->first; item; item = item->next) {
        if (!parse_int(r, &item_scope, key, item, &values[item_scope.index]))
            return false;
        item_scope.index++;
    }
    *(const int64_t **)field_of(key, base) = values;
    *(int *)((char *)base + key->count_offset) = item_scope.index;
    return true;
}

static bool is_word(const struct hb_node *node, const char *word)
{
    return node->kind == HB_NODE_SCALAR && hb_str_same(node->text, word);
}

static bool read_even_ints(struct hb_reading *r, const struct hb_scope *scope,
                           const struct hb_key *key, const struct hb_node *node, void *base)
{
    return is_word(node, "even") || read_ints(r, scope, key, node, base);
}

static bool read_one_ints(struct hb_reading *r, const struct hb_scope *scope,
                          const struct hb_key *key, const struct hb_node *node, void *base)
{
    if (node->kind == HB_NODE_LIST && !node->count)
        return hb_reading_fail(r, scope, node->loc, "an empty list; allowed: %s",
                               hb_key_allowed(r->arena, key));
    if (node->kind == HB_NODE_LIST)
        return read_ints(r, scope, key, node, base);
    int64_t *value = hb_arena_alloc(r->arena, 1, sizeof *value);
    if (!parse_int(r, scope, key, node, value))
        return false;
    *(const int64_t **)field_of(key, base) = value;
    *(int *)((char *)base + key->count_offset) = 1;
    return true;
}

static bool read_rank(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                      const struct hb_node *node, void *base)
{
    if (!is_word(node, "max"))
        return read_int(r, scope, key, node, base);
    *(int64_t *)field_of(key, base) = -1;
    return true;
}

static bool read_axis(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                      const struct hb_node *node, void *base)
{
    if (!is_word(node, "rest"))
        return read_int(r, scope, key, node, base);
    *(int64_t *)field_of(key, base) = HB_KEY_REST;
    return true;
}

static bool read_moments(struct hb_reading *r, const struct hb_scope *scope,
                         const struct hb_key *key, const struct hb_node *node, void *base)
{
    enum hb_dtype *dtypes = field_of(key, base);
    int room = (int)(key->size_bytes / sizeof *dtypes);
    if (!want_list(r, scope, key, node))
        return false;
    if (node->count > (uint32_t)room)
        return hb_reading_fail(r, scope, node->loc, "a list of %" PRIu32 "; allowed: at most %d",
                               node->count, room);
    struct hb_scope item_scope = {scope, NULL, 0};
    for (const struct hb_node *item = node->first; item; item = item->next) {
        int value = 0;
        if (!find_word(r, &item_scope, key, item, &value))
            return false;
        dtypes[item_scope.index++] = (enum hb_dtype)value;
    }
    *(int *)((char *)base + key->count_offset) = item_scope.index;
    return true;
}

/* A list of meshes, each read as the section `mesh` with ones where it says nothing. */
static bool read_mesh_list(struct hb_reading *r, const struct hb_scope *scope,
                           const struct hb_node *node, struct hb_plan_axes *plan)
{
    int64_t(*meshes)[HB_AX_COUNT] = hb_arena_alloc(r->arena, node->count, sizeof *meshes);
    struct hb_scope item_scope = {scope, NULL, 0};
    for (const struct hb_node *item = node->first; item; item = item->next) {
        struct hb_spec mesh_only = {0};
        if (!hb_section_read(r, &item_scope, HB_SEC_MESH, item, item->loc, &mesh_only))
            return false;
        int64_t *mesh = meshes[item_scope.index];
        memcpy(mesh, mesh_only.mesh, sizeof mesh_only.mesh);
        for (int a = 0; a < HB_AX_COUNT; a++)
            if (mesh[a] == HB_KEY_REST)
                return hb_reading_fail(r, &item_scope, item->loc,
                                       "rest stands in mesh alone; allowed here: numbers");
        item_scope.index++;
        if (mesh[HB_AX_FSDP] == HB_KEY_UNSET)
            mesh[HB_AX_FSDP] = 1;
    }
    plan->meshes = (const int64_t(*)[HB_AX_COUNT])meshes;
    plan->mesh_count = item_scope.index;
    return true;
}

static bool read_meshes(struct hb_reading *r, const struct hb_scope *scope,
                        const struct hb_key *key, const struct hb_node *node, void *base)
{
    struct hb_spec *spec = base;
    if (!want_list(r, scope, key, node))
        return false;
    if (node->first && node->first->kind == HB_NODE_MAP)
        return read_mesh_list(r, scope, node, &spec->plan);
    return parse_mask(r, scope, key, node, &spec->plan.mesh_axes);
}

/* ---- writers: places of emitted nodes are unknown */

static const struct hb_loc nowhere = {0};

static struct hb_node *int_node(struct hb_arena *arena, int64_t value)
{
    return hb_node_scalar(arena, nowhere, hb_arena_printf(arena, "%" PRId64, value), false);
}

static struct hb_node *emit_int(struct hb_arena *arena, const struct hb_key *key, const void *base)
{
    return int_node(arena, *(const int64_t *)const_field_of(key, base));
}

static struct hb_node *emit_real(struct hb_arena *arena, const struct hb_key *key, const void *base)
{
    char *text = hb_arena_alloc(arena, HB_REAL_TEXT, 1);
    hb_real_print(*(const double *)const_field_of(key, base), text);
    return hb_node_scalar(arena, nowhere, text, false);
}

static struct hb_node *emit_bool(struct hb_arena *arena, const struct hb_key *key, const void *base)
{
    bool yes = *(const bool *)const_field_of(key, base);
    return hb_node_scalar(arena, nowhere, yes ? "true" : "false", false);
}

static struct hb_node *emit_text(struct hb_arena *arena, const struct hb_key *key, const void *base)
{
    return hb_node_scalar(arena, nowhere, *(const char *const *)const_field_of(key, base), true);
}

static struct hb_node *word_node(struct hb_arena *arena, const struct hb_key *key, int value)
{
    const char *text = hb_word_text(key->words, value);
    if (!text)
        HB_BUG("%s has no spelling for %d", key->name, value);
    bool truth = hb_str_same(text, "true") || hb_str_same(text, "false");
    return hb_node_scalar(arena, nowhere, text, !truth);
}

static struct hb_node *emit_enum(struct hb_arena *arena, const struct hb_key *key, const void *base)
{
    int value = 0;
    if (key->size_bytes == sizeof(bool))
        value = *(const bool *)const_field_of(key, base);
    else
        memcpy(&value, const_field_of(key, base), sizeof value);
    return word_node(arena, key, value);
}

static struct hb_node *mask_node(struct hb_arena *arena, const struct hb_key *key, uint32_t mask)
{
    struct hb_node *list = hb_node_new(arena, HB_NODE_LIST, nowhere);
    for (const struct hb_word *w = key->words; w->text; w++)
        if (mask >> w->value & 1)
            hb_node_append(list, word_node(arena, key, w->value));
    return list;
}

static struct hb_node *emit_mask(struct hb_arena *arena, const struct hb_key *key, const void *base)
{
    return mask_node(arena, key, *(const uint32_t *)const_field_of(key, base));
}

static int list_count(const struct hb_key *key, const void *base)
{
    return *(const int *)((const char *)base + key->count_offset);
}

static struct hb_node *emit_ints(struct hb_arena *arena, const struct hb_key *key, const void *base)
{
    const int64_t *values = *(const int64_t *const *)const_field_of(key, base);
    struct hb_node *list = hb_node_new(arena, HB_NODE_LIST, nowhere);
    for (int i = 0; i < list_count(key, base); i++)
        hb_node_append(list, int_node(arena, values[i]));
    return list;
}

static struct hb_node *emit_even_ints(struct hb_arena *arena, const struct hb_key *key,
                                      const void *base)
{
    if (list_count(key, base))
        return emit_ints(arena, key, base);
    return hb_node_scalar(arena, nowhere, "even", true);
}

static struct hb_node *emit_one_ints(struct hb_arena *arena, const struct hb_key *key,
                                     const void *base)
{
    if (list_count(key, base) > 1)
        return emit_ints(arena, key, base);
    return int_node(arena, **(const int64_t *const *)const_field_of(key, base));
}

static struct hb_node *emit_rank(struct hb_arena *arena, const struct hb_key *key, const void *base)
{
    int64_t rank = *(const int64_t *)const_field_of(key, base);
    return rank < 0 ? hb_node_scalar(arena, nowhere, "max", true) : int_node(arena, rank);
}

static struct hb_node *emit_moments(struct hb_arena *arena, const struct hb_key *key,
                                    const void *base)
{
    const enum hb_dtype *dtypes = const_field_of(key, base);
    struct hb_node *list = hb_node_new(arena, HB_NODE_LIST, nowhere);
    for (int i = 0; i < list_count(key, base); i++)
        hb_node_append(list, word_node(arena, key, (int)dtypes[i]));
    return list;
}

static struct hb_node *emit_meshes(struct hb_arena *arena, const struct hb_key *key,
                                   const void *base)
{
    const struct hb_plan_axes *plan = &((const struct hb_spec *)base)->plan;
    if (!plan->mesh_count)
        return mask_node(arena, key, plan->mesh_axes);
    struct hb_node *list = hb_node_new(arena, HB_NODE_LIST, nowhere);
    for (int i = 0; i < plan->mesh_count; i++) {
        struct hb_node *mesh = hb_node_new(arena, HB_NODE_MAP, nowhere);
        for (const struct hb_word *w = key->words; w->text; w++)
            hb_node_put(mesh, w->text, nowhere, int_node(arena, plan->meshes[i][w->value]));
        hb_node_append(list, mesh);
    }
    return list;
}

/* ---- what is allowed, in words */

static const char *allow_int(struct hb_arena *arena, const struct hb_key *key)
{
    return range_text(arena, key);
}

static const char *allow_bytes(struct hb_arena *arena, const struct hb_key *key)
{
    (void)arena;
    (void)key;
    return "bytes, or text as 95GiB";
}

static const char *allow_bool(struct hb_arena *arena, const struct hb_key *key)
{
    (void)arena;
    (void)key;
    return "true, false";
}

static const char *allow_text(struct hb_arena *arena, const struct hb_key *key)
{
    (void)arena;
    (void)key;
    return "a line of text";
}

static const char *allow_word(struct hb_arena *arena, const struct hb_key *key)
{
    return list_words(arena, key->words);
}

static const char *allow_words(struct hb_arena *arena, const struct hb_key *key)
{
    return hb_arena_printf(arena, "[...] of %s", list_words(arena, key->words));
}

static const char *allow_ints(struct hb_arena *arena, const struct hb_key *key)
{
    return hb_arena_printf(arena, "[...] of %s", range_text(arena, key));
}

static const char *allow_even_ints(struct hb_arena *arena, const struct hb_key *key)
{
    return hb_arena_printf(arena, "even, or [...] of %s", range_text(arena, key));
}

static const char *allow_one_ints(struct hb_arena *arena, const struct hb_key *key)
{
    return hb_arena_printf(arena, "%s, or [...] of them", range_text(arena, key));
}

static const char *allow_rank(struct hb_arena *arena, const struct hb_key *key)
{
    return hb_arena_printf(arena, "max, or %s", range_text(arena, key));
}

static const char *allow_axis(struct hb_arena *arena, const struct hb_key *key)
{
    return hb_arena_printf(arena, "%s, or rest", range_text(arena, key));
}

static const char *allow_meshes(struct hb_arena *arena, const struct hb_key *key)
{
    return hb_arena_printf(arena, "[...] of %s, or of meshes", list_words(arena, key->words));
}

static const char *allow_map(struct hb_arena *arena, const struct hb_key *key)
{
    const struct hb_section *section = hb_section(key->section);
    struct hb_str s;
    hb_str_init(&s, arena);
    for (int i = 0; i < section->key_count; i++)
        hb_str_addf(&s, "%s%s", i ? ", " : "keys ", section->keys[i].name);
    return s.text;
}

static const char *allow_blocks(struct hb_arena *arena, const struct hb_key *key)
{
    (void)arena;
    (void)key;
    return "a list of maps";
}

static const struct {
    bool (*read)(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                 const struct hb_node *node, void *base);
    struct hb_node *(*emit)(struct hb_arena *arena, const struct hb_key *key, const void *base);
    const char *(*allowed)(struct hb_arena *arena, const struct hb_key *key);
} kinds[] = {
    [HB_KEY_INT] = {read_int, emit_int, allow_int},
    [HB_KEY_SIZE] = {read_bytes, emit_int, allow_bytes},
    [HB_KEY_REAL] = {read_real, emit_real, allow_int},
    [HB_KEY_BOOL] = {read_bool, emit_bool, allow_bool},
    [HB_KEY_TEXT] = {read_text, emit_text, allow_text},
    [HB_KEY_ENUM] = {read_enum, emit_enum, allow_word},
    [HB_KEY_MASK] = {read_mask, emit_mask, allow_words},
    [HB_KEY_INTS] = {read_ints, emit_ints, allow_ints},
    [HB_KEY_EVEN_INTS] = {read_even_ints, emit_even_ints, allow_even_ints},
    [HB_KEY_ONE_INTS] = {read_one_ints, emit_one_ints, allow_one_ints},
    [HB_KEY_RANK] = {read_rank, emit_rank, allow_rank},
    [HB_KEY_AXIS] = {read_axis, emit_int, allow_axis},
    [HB_KEY_MOMENTS] = {read_moments, emit_moments, allow_words},
    [HB_KEY_MESHES] = {read_meshes, emit_meshes, allow_meshes},
    [HB_KEY_SECTION] = {NULL, NULL, allow_map},
    [HB_KEY_BLOCKS] = {NULL, NULL, allow_blocks},
    [HB_KEY_PER_BLOCK] = {NULL, NULL, allow_map},
};
_Static_assert(sizeof kinds / sizeof kinds[0] == HB_KEY_KIND_COUNT, "one row a kind");

bool hb_key_read(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                 const struct hb_node *node, void *base)
{
    return kinds[key->kind].read(r, scope, key, node, base);
}

struct hb_node *hb_key_emit(struct hb_arena *arena, const struct hb_key *key, const void *base)
{
    return kinds[key->kind].emit(arena, key, base);
}

const char *hb_key_allowed(struct hb_arena *arena, const struct hb_key *key)
{
    return kinds[key->kind].allowed(arena, key);
}
