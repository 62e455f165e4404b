/* Typed reading of JSON objects: see reading.h. */
#include "plots/reading.h"

#include <math.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"

void hb_reading_wrong(struct hb_reading *f, const struct hb_node *node, const char *key,
                      const char *wanted)
{
    f->ok = false;
    hb_error(f->diag, node->loc, "%s: %s where %s is wanted", key, hb_node_show(f->arena, node),
             wanted);
}

static const struct hb_node *find_field(const struct hb_node *map, const char *key)
{
    const struct hb_node *node = hb_node_find(map, key);
    return node && !hb_node_is_null(node) ? node : NULL;
}

void hb_reading_int(struct hb_reading *f, const struct hb_node *map, const char *key, int64_t *out)
{
    const struct hb_node *node = find_field(map, key);
    if (node && !hb_node_int(node, out))
        hb_reading_wrong(f, node, key, "an integer");
}

void hb_reading_bytes(struct hb_reading *f, const struct hb_node *map, const char *key, int64_t low,
                      int64_t *out)
{
    const struct hb_node *node = find_field(map, key);
    int64_t bytes;
    if (!node)
        return;
    if (hb_node_int(node, &bytes) && bytes >= low && (bytes < 0 || hb_size_ok(bytes)))
        *out = bytes;
    else
        hb_reading_wrong(f, node, key, low < 0 ? "bytes, or -1" : "a number of bytes");
}

/* Beyond this no time, rate or size of a step can be, and sums stay finite. */
static const double largest_real = 1e30;

static bool good_real(const struct hb_node *node, double *out)
{
    double value;
    if (!hb_node_real(node, &value) || !(fabs(value) <= largest_real))
        return false;
    *out = value;
    return true;
}

void hb_reading_real(struct hb_reading *f, const struct hb_node *map, const char *key, double *out)
{
    const struct hb_node *node = find_field(map, key);
    if (node && !good_real(node, out))
        hb_reading_wrong(f, node, key, "a number");
}

void hb_reading_bool(struct hb_reading *f, const struct hb_node *map, const char *key, bool *out)
{
    const struct hb_node *node = find_field(map, key);
    if (node && !hb_node_bool(node, out))
        hb_reading_wrong(f, node, key, "true or false");
}

void hb_reading_text(struct hb_reading *f, const struct hb_node *map, const char *key,
                     const char **out)
{
    const struct hb_node *node = find_field(map, key);
    if (node && node->kind != HB_NODE_SCALAR)
        hb_reading_wrong(f, node, key, "text");
    else if (node)
        *out = node->text;
}

enum hb_category hb_category_find(const char *name)
{
    int i = 0;
    while (i < HB_CATEGORY_COUNT && !hb_str_same(name, hb_category_name((enum hb_category)i)))
        i++;
    return (enum hb_category)i;
}

void hb_reading_category(struct hb_reading *f, const struct hb_node *map, const char *key,
                         enum hb_category *out)
{
    const struct hb_node *node = find_field(map, key);
    if (!node)
        return;
    enum hb_category found =
        node->kind == HB_NODE_SCALAR ? hb_category_find(node->text) : HB_CATEGORY_COUNT;
    if (found == HB_CATEGORY_COUNT)
        hb_reading_wrong(f, node, key, "a category of memory");
    else
        *out = found;
}

static const struct hb_node *find_kind(struct hb_reading *f, const struct hb_node *map,
                                       const char *key, enum hb_node_kind kind)
{
    const struct hb_node *node = find_field(map, key);
    if (!node || node->kind == kind)
        return node;
    hb_reading_wrong(f, node, key, kind == HB_NODE_LIST ? "a list" : "an object");
    return NULL;
}

const struct hb_node *hb_reading_list(struct hb_reading *f, const struct hb_node *map,
                                      const char *key)
{
    return find_kind(f, map, key, HB_NODE_LIST);
}

const struct hb_node *hb_reading_map(struct hb_reading *f, const struct hb_node *map,
                                     const char *key)
{
    return find_kind(f, map, key, HB_NODE_MAP);
}

double *hb_reading_reals(struct hb_reading *f, const struct hb_node *list)
{
    double *values = hb_arena_alloc(f->arena, list->count, sizeof *values);
    uint32_t i = 0;
    for (const struct hb_node *node = list->first; node; node = node->next)
        if (!good_real(node, &values[i++]))
            hb_reading_wrong(f, node, list->key ? list->key : "item", "a number");
    return values;
}

int64_t *hb_reading_sizes(struct hb_reading *f, const struct hb_node *list)
{
    int64_t *values = hb_arena_alloc(f->arena, list->count, sizeof *values);
    uint32_t i = 0;
    for (const struct hb_node *node = list->first; node; node = node->next, i++)
        if (!hb_node_int(node, &values[i]) || !hb_size_ok(values[i])) {
            hb_reading_wrong(f, node, list->key ? list->key : "item", "a number of bytes");
            values[i] = 0;
        }
    return values;
}
