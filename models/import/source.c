/* Taking keys of a foreign tree and writing ours: see source.h. */
#include "models/import/source.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"

static const struct hb_loc nowhere = {0};

void hb_note(struct hb_foreign *f, struct hb_notes *notes, const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    for (uint32_t i = 0; i < notes->count; i++)
        if (hb_str_same(notes->items[i], line))
            return;
    notes->items = hb_grow(f->arena, notes->items, notes->count, &notes->cap, sizeof *notes->items);
    notes->items[notes->count++] = hb_arena_strdup(f->arena, line);
}

static bool was_taken(const struct hb_foreign *f, const struct hb_node *node)
{
    for (uint32_t i = 0; i < f->taken_count; i++)
        if (f->taken[i] == node)
            return true;
    return false;
}

void hb_quiet(struct hb_foreign *f, const struct hb_node *node)
{
    if (was_taken(f, node))
        return;
    f->taken = hb_grow(f->arena, f->taken, f->taken_count, &f->taken_cap, sizeof *f->taken);
    f->taken[f->taken_count++] = node;
}

const struct hb_node *hb_take(struct hb_foreign *f, const struct hb_node *map, const char *key)
{
    const struct hb_node *node = hb_node_find(map, key);
    if (!node)
        return NULL;
    if (!was_taken(f, node) && node->kind != HB_NODE_MAP)
        hb_note(f, &f->out->understood, "%s", key);
    hb_quiet(f, node);
    bool none = hb_node_is_null(node) ||
                (node->kind == HB_NODE_SCALAR && !node->quoted && hb_str_same(node->text, "None"));
    return none ? NULL : node;
}

const struct hb_node *hb_take_any(struct hb_foreign *f, const struct hb_node *map,
                                  const char *names)
{
    char name[128];
    for (const char *at = names; *at;) {
        size_t len = strcspn(at, "|");
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        const struct hb_node *node = hb_take(f, map, name);
        if (node)
            return node;
        at += len + (at[len] == '|');
    }
    return NULL;
}

bool hb_number(const struct hb_node *node, double *out_value)
{
    char digits[64];
    size_t len = 0;
    if (!node || node->kind != HB_NODE_SCALAR || !node->text[0])
        return false;
    for (const char *c = node->text; *c; c++) {
        if (*c == '_')
            continue;
        if (len + 1 >= sizeof digits || !strchr("0123456789+-.eE", *c))
            return false;
        digits[len++] = *c;
    }
    digits[len] = '\0';
    char *end = digits;
    errno = 0;
    double value = strtod(digits, &end);
    if (end == digits || *end || errno)
        return false;
    *out_value = value;
    return true;
}

static void fail_type(struct hb_foreign *f, const struct hb_node *node, const char *wanted)
{
    hb_error(f->diag, node->loc, "%s: %s stands where %s is wanted", node->key,
             hb_node_show(f->arena, node), wanted);
}

int64_t hb_take_int(struct hb_foreign *f, const struct hb_node *map, const char *names,
                    int64_t absent)
{
    const struct hb_node *node = hb_take_any(f, map, names);
    double value = 0;
    if (!node)
        return absent;
    bool whole =
        hb_number(node, &value) && fabs(value) <= 0x1p53 && !(fabs(value - trunc(value)) > 0);
    if (!whole) {
        fail_type(f, node, "a whole number");
        return absent;
    }
    return (int64_t)value;
}

double hb_take_real(struct hb_foreign *f, const struct hb_node *map, const char *names,
                    double absent)
{
    const struct hb_node *node = hb_take_any(f, map, names);
    double value = absent;
    if (node && !hb_number(node, &value))
        fail_type(f, node, "a number");
    return value;
}

bool hb_take_bool(struct hb_foreign *f, const struct hb_node *map, const char *names, bool absent)
{
    static const char *const yes[] = {"true", "True", "TRUE", "1", "yes", "on"};
    static const char *const no[] = {"false", "False", "FALSE", "0", "no", "off"};
    const struct hb_node *node = hb_take_any(f, map, names);
    if (!node)
        return absent;
    for (size_t i = 0; node->kind == HB_NODE_SCALAR && i < sizeof yes / sizeof yes[0]; i++) {
        if (hb_str_same(node->text, yes[i]))
            return true;
        if (hb_str_same(node->text, no[i]))
            return false;
    }
    fail_type(f, node, "true or false");
    return absent;
}

const char *hb_take_text(struct hb_foreign *f, const struct hb_node *map, const char *names,
                         const char *absent)
{
    const struct hb_node *node = hb_take_any(f, map, names);
    if (!node)
        return absent;
    if (node->kind == HB_NODE_SCALAR)
        return node->text;
    fail_type(f, node, "a word");
    return absent;
}

/* ---- writing */

/* The map that holds the last word of path, and that word. */
static struct hb_node *holder(struct hb_foreign *f, const char *path, const char **out_key)
{
    struct hb_node *map = f->out->root;
    const char *dot;
    while ((dot = strchr(path, '.'))) {
        const char *key = hb_arena_strndup(f->arena, path, (size_t)(dot - path));
        struct hb_node *child = hb_node_find(map, key);
        if (!child) {
            child = hb_node_new(f->arena, HB_NODE_MAP, nowhere);
            hb_node_put(map, key, nowhere, child);
        }
        map = child;
        path = dot + 1;
    }
    *out_key = hb_arena_strdup(f->arena, path);
    return map;
}

static void put_node(struct hb_foreign *f, const char *path, struct hb_node *node)
{
    const char *key;
    struct hb_node *map = holder(f, path, &key);
    hb_node_put(map, key, nowhere, node);
}

void hb_put(struct hb_foreign *f, const char *path, const char *text)
{
    put_node(f, path, hb_node_scalar(f->arena, nowhere, hb_arena_strdup(f->arena, text), false));
}

void hb_put_int(struct hb_foreign *f, const char *path, int64_t value)
{
    hb_put(f, path, hb_arena_printf(f->arena, "%" PRId64, value));
}

void hb_put_real(struct hb_foreign *f, const char *path, double value)
{
    char text[HB_REAL_TEXT];
    hb_put(f, path, hb_real_print(value, text));
}

void hb_put_bool(struct hb_foreign *f, const char *path, bool value)
{
    hb_put(f, path, value ? "true" : "false");
}

void hb_put_words(struct hb_foreign *f, const char *path, const char *const *words, int count)
{
    struct hb_node *list = hb_node_new(f->arena, HB_NODE_LIST, nowhere);
    for (int i = 0; i < count; i++)
        hb_node_append(list, hb_node_scalar(f->arena, nowhere, words[i], false));
    put_node(f, path, list);
}

/* ---- what is left over */

static bool is_quiet(const char *key, const char *const *quiet)
{
    for (; *quiet; quiet++) {
        size_t len = strlen(*quiet);
        if ((*quiet)[len - 1] == '*' ? strncmp(key, *quiet, len - 1) == 0
                                     : hb_str_same(key, *quiet))
            return true;
    }
    return false;
}

void hb_tell_rest(struct hb_foreign *f, const struct hb_node *map, const char *where,
                  const char *const *quiet)
{
    if (!map || map->kind != HB_NODE_MAP)
        return;
    for (const struct hb_node *node = map->first; node; node = node->next) {
        if (was_taken(f, node) || is_quiet(node->key, quiet) || hb_node_is_null(node))
            continue;
        struct hb_node shown = *node;
        hb_missing(f, "%s%s: %s", where, node->key, hb_node_show(f->arena, &shown));
    }
}
