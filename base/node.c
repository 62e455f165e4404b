/* The document tree: see node.h. */
#include "base/node.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"

enum { SHOWN_BYTES = 40 };

struct hb_node *hb_node_new(struct hb_arena *arena, enum hb_node_kind kind, struct hb_loc loc)
{
    struct hb_node *node = hb_arena_alloc(arena, 1, sizeof *node);
    node->kind = kind;
    node->loc = loc;
    return node;
}

struct hb_node *hb_node_scalar(struct hb_arena *arena, struct hb_loc loc, const char *text,
                               bool quoted)
{
    struct hb_node *node = hb_node_new(arena, HB_NODE_SCALAR, loc);
    node->text = text;
    node->quoted = quoted;
    return node;
}

struct hb_node *hb_node_copy(struct hb_arena *arena, const struct hb_node *node)
{
    struct hb_node *copy = hb_arena_alloc(arena, 1, sizeof *copy);
    *copy = *node;
    copy->key = NULL;
    copy->next = NULL;
    copy->first = NULL;
    copy->last = NULL;
    copy->count = 0;
    for (const struct hb_node *child = node->first; child; child = child->next) {
        struct hb_node *c = hb_node_copy(arena, child);
        c->key = child->key;
        hb_node_append(copy, c);
    }
    return copy;
}

void hb_node_append(struct hb_node *list, struct hb_node *child)
{
    if (list->last)
        list->last->next = child;
    else
        list->first = child;
    list->last = child;
    list->count++;
}

void hb_node_put(struct hb_node *map, const char *key, struct hb_loc key_loc, struct hb_node *child)
{
    child->key = key;
    child->key_loc = key_loc;
    struct hb_node *before = NULL;
    struct hb_node *old = map->first;
    while (old && !hb_str_same(old->key, key)) {
        before = old;
        old = old->next;
    }
    if (!old) {
        hb_node_append(map, child);
        return;
    }
    child->next = old->next;
    if (before)
        before->next = child;
    else
        map->first = child;
    if (map->last == old)
        map->last = child;
}

void hb_node_drop(struct hb_node *map, const char *key)
{
    struct hb_node *rest = map->first;
    map->first = NULL;
    map->last = NULL;
    map->count = 0;
    while (rest) {
        struct hb_node *node = rest;
        rest = rest->next;
        node->next = NULL;
        if (!hb_str_same(node->key, key))
            hb_node_append(map, node);
    }
}

void hb_node_overlay(struct hb_node *base, struct hb_node *over)
{
    struct hb_node *rest = over->first;
    while (rest) {
        struct hb_node *node = rest;
        rest = rest->next;
        node->next = NULL;
        struct hb_node *old = hb_node_find(base, node->key);
        if (old && old->kind == HB_NODE_MAP && node->kind == HB_NODE_MAP)
            hb_node_overlay(old, node);
        else
            hb_node_put(base, node->key, node->key_loc, node);
    }
}

struct hb_node *hb_node_find(const struct hb_node *map, const char *key)
{
    if (!map || map->kind != HB_NODE_MAP)
        return NULL;
    for (struct hb_node *child = map->first; child; child = child->next)
        if (hb_str_same(child->key, key))
            return child;
    return NULL;
}

struct hb_node *hb_node_at(const struct hb_node *list, int64_t index)
{
    if (!list || list->kind != HB_NODE_LIST || index < 0)
        return NULL;
    struct hb_node *child = list->first;
    while (child && index--)
        child = child->next;
    return child;
}

static bool plain_scalar(const struct hb_node *node)
{
    return node && node->kind == HB_NODE_SCALAR && !node->quoted;
}

bool hb_node_int(const struct hb_node *node, int64_t *out_value)
{
    if (!plain_scalar(node))
        return false;
    const char *at = node->text;
    bool negative = *at == '-';
    at += negative;
    if (!isdigit((unsigned char)*at) || (*at == '0' && at[1]))
        return false;
    int64_t value = 0;
    for (; isdigit((unsigned char)*at); at++) {
        int64_t digit = *at - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit, &value))
            return false;
    }
    if (*at || (!negative && value == INT64_MIN))
        return false;
    *out_value = negative ? value : -value;
    return true;
}

bool hb_node_real(const struct hb_node *node, double *out_value)
{
    if (!plain_scalar(node))
        return false;
    /* strtod takes words and hexadecimals that are no numbers here. */
    size_t len = strlen(node->text);
    if (!len || len > 64 || strspn(node->text, "0123456789+-.eE") != len)
        return false;
    char *end;
    double value = strtod(node->text, &end);
    if (end != node->text + len || !isfinite(value))
        return false;
    *out_value = value;
    return true;
}

bool hb_node_bool(const struct hb_node *node, bool *out_value)
{
    if (!plain_scalar(node))
        return false;
    bool yes = hb_str_same(node->text, "true");
    if (!yes && !hb_str_same(node->text, "false"))
        return false;
    *out_value = yes;
    return true;
}

bool hb_node_is_null(const struct hb_node *node)
{
    return plain_scalar(node) &&
           (!node->text[0] || hb_str_same(node->text, "~") || hb_str_same(node->text, "null"));
}

const char *hb_node_show(struct hb_arena *arena, const struct hb_node *node)
{
    if (node->kind == HB_NODE_MAP)
        return "a map of keys";
    if (node->kind == HB_NODE_LIST)
        return "a list";
    if (hb_node_is_null(node) || !node->text[0])
        return "nothing";
    size_t len = strlen(node->text);
    size_t cut = len;
    if (len > SHOWN_BYTES) {
        cut = SHOWN_BYTES - 3;
        while (cut && ((unsigned char)node->text[cut] & 0xc0) == 0x80)
            cut--;
    }
    char *text = hb_arena_printf(arena, "'%.*s%s'", (int)cut, node->text, cut < len ? "..." : "");
    for (char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    return text;
}

static bool report_twice(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *first,
                         const struct hb_node *again)
{
    struct hb_node name = {.kind = HB_NODE_SCALAR, .quoted = true, .text = again->key};
    return hb_error(diag, again->key_loc, "key %s is written twice; first at line %d, column %d",
                    hb_node_show(arena, &name), first->key_loc.line, first->key_loc.column);
}

struct child {
    const struct hb_node *node;
};

static int compare_keys(const void *a, const void *b)
{
    const struct hb_node *na = ((const struct child *)a)->node;
    const struct hb_node *nb = ((const struct child *)b)->node;
    int order = strcmp(na->key, nb->key);
    if (order)
        return order;
    if (na->key_loc.line != nb->key_loc.line)
        return na->key_loc.line < nb->key_loc.line ? -1 : 1;
    return na->key_loc.column < nb->key_loc.column ? -1 : 1;
}

bool hb_node_check_keys(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *map)
{
    struct hb_arena_mark mark = hb_arena_mark(arena);
    struct child *sorted = hb_arena_alloc(arena, map->count, sizeof *sorted);
    uint32_t n = 0;
    for (const struct hb_node *node = map->first; node; node = node->next)
        sorted[n++].node = node;
    qsort(sorted, n, sizeof *sorted, compare_keys);
    bool ok = true;
    for (uint32_t i = 1, first = 0; i < n; i++)
        if (hb_str_same(sorted[first].node->key, sorted[i].node->key))
            ok = report_twice(arena, diag, sorted[first].node, sorted[i].node);
        else
            first = i;
    if (ok)
        hb_arena_rewind(arena, mark);
    return ok;
}
