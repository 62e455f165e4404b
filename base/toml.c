/* Recursive descent, line by line: see toml.h. */
#include "base/toml.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/utf8.h"

struct reader {
    struct hb_arena *arena;
    struct hb_diag *diag;
    const char *name;
    const char *at;
    const char *end;
    const char *line_start;
    int line;
    int nodes;
};

static bool read_value(struct reader *r, int depth, struct hb_node **out_node);

static struct hb_loc here(const struct reader *r)
{
    return (struct hb_loc){r->name, r->line, (int)(r->at - r->line_start) + 1};
}

static bool fail(struct reader *r, const char *wanted)
{
    char found[4] = {*r->at};
    if (r->at == r->end)
        return hb_error(r->diag, here(r), "not TOML: ends where %s is wanted", wanted);
    if (iscntrl((unsigned char)found[0]))
        memcpy(found, "\\n", 3);
    return hb_error(r->diag, here(r), "not TOML: '%s' where %s is wanted", found, wanted);
}

static void step(struct reader *r)
{
    if (*r->at == '\n') {
        r->line++;
        r->line_start = r->at + 1;
    }
    r->at++;
}

/* Blanks, and with lines also line ends and comments. */
static void skip(struct reader *r, bool lines)
{
    for (;;) {
        if (*r->at == '#')
            r->at += strcspn(r->at, "\n");
        else if (*r->at == ' ' || *r->at == '\t' || *r->at == '\r' || (lines && *r->at == '\n'))
            step(r);
        else
            return;
    }
}

static bool take(struct reader *r, char c)
{
    if (*r->at != c)
        return false;
    step(r);
    return true;
}

/* ---- strings and keys */

static bool read_escape(struct reader *r, struct hb_str *out)
{
    static const char from[] = "btnfre\"\\";
    static const char to[] = "\b\t\n\f\r\033\"\\";
    const char *which = *r->at ? strchr(from, *r->at) : NULL;
    if (which) {
        hb_str_addn(out, &to[which - from], 1);
        r->at++;
        return true;
    }
    int digits = *r->at == 'u' ? 4 : *r->at == 'U' ? 8 : 0;
    uint32_t code = 0;
    if (!digits)
        return fail(r, "an escape");
    for (r->at++; digits--; r->at++) {
        int digit = hb_hex_digit(*r->at);
        if (digit < 0)
            return fail(r, "a hexadecimal digit");
        code = code * 16 + (uint32_t)digit;
    }
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return hb_error(r->diag, here(r), "not TOML: U+%04X is no character of text",
                        (unsigned)code);
    char bytes[4];
    hb_str_addn(out, bytes, (size_t)hb_utf8_put(code, bytes));
    return true;
}

/* Past a backslash that ends a line of a string, and all white space behind it. */
static bool join_lines(struct reader *r)
{
    const char *at = r->at + 1 + strspn(r->at + 1, " \t\r");
    if (*at != '\n')
        return false;
    r->at++;
    while (*r->at && strchr(" \t\r\n", *r->at))
        step(r);
    return true;
}

/* A string, quote being what opens it; three of them: over several lines. */
static bool read_string(struct reader *r, const char **out_text)
{
    char quote = *r->at;
    bool lines = r->at[1] == quote && r->at[2] == quote;
    struct hb_str out;
    hb_str_init(&out, r->arena);
    r->at += lines ? 3 : 1;
    if (lines && *r->at == '\n')
        step(r);
    for (;;) {
        if (r->at == r->end || (!lines && *r->at == '\n'))
            return fail(r, "the end of a string");
        bool closes = *r->at == quote && (!lines || (r->at[1] == quote && r->at[2] == quote));
        if (closes)
            break;
        if (quote == '"' && *r->at == '\\') {
            if (lines && join_lines(r))
                continue;
            r->at++;
            if (!read_escape(r, &out))
                return false;
            continue;
        }
        hb_str_addn(&out, r->at, 1);
        step(r);
    }
    r->at += lines ? 3 : 1;
    *out_text = out.text;
    return true;
}

static bool read_key(struct reader *r, const char **out_key)
{
    skip(r, false);
    if (*r->at == '"' || *r->at == '\'')
        return read_string(r, out_key);
    const char *start = r->at;
    while (isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '-')
        r->at++;
    if (r->at == start)
        return fail(r, "a key");
    *out_key = hb_arena_strndup(r->arena, start, (size_t)(r->at - start));
    return true;
}

/* ---- values */

static bool count_node(struct reader *r, int depth)
{
    if (depth > HB_NODE_MAX_DEPTH)
        return hb_error(r->diag, here(r), "nested more than %d deep", HB_NODE_MAX_DEPTH);
    if (++r->nodes > HB_NODE_MAX_COUNT)
        return hb_error(r->diag, here(r), "more than %d values", HB_NODE_MAX_COUNT);
    return true;
}

/* A table is looked through for each of its keys. */
static bool has_room(struct reader *r, const struct hb_node *map)
{
    enum { MOST_KEYS = 2000 };
    return map->count < MOST_KEYS ||
           hb_error(r->diag, here(r), "more than %d keys in one table", MOST_KEYS);
}

/* The map below map that a key names; made where it is missing. An array of tables: its last. */
static struct hb_node *enter(struct reader *r, struct hb_node *map, const char *key)
{
    struct hb_node *child = hb_node_find(map, key);
    if (!child) {
        if (!has_room(r, map))
            return NULL;
        child = hb_node_new(r->arena, HB_NODE_MAP, here(r));
        hb_node_put(map, key, here(r), child);
    }
    if (child->kind == HB_NODE_LIST && child->last)
        child = child->last;
    if (child->kind == HB_NODE_MAP)
        return child;
    hb_error(r->diag, here(r), "'%s' has a value already; it can be no table", key);
    return NULL;
}

/* a.b.c = value into map. */
static bool read_pair(struct reader *r, struct hb_node *map, int depth)
{
    const char *key = NULL;
    struct hb_node *value = NULL;
    struct hb_loc loc = here(r);
    for (;;) {
        if (!read_key(r, &key) || !count_node(r, depth))
            return false;
        skip(r, false);
        if (!take(r, '.'))
            break;
        map = enter(r, map, key);
        if (!map)
            return false;
    }
    if (!take(r, '='))
        return fail(r, "'='");
    if (hb_node_find(map, key))
        return hb_error(r->diag, loc, "key '%s' is there twice", key);
    skip(r, false);
    if (!has_room(r, map) || !read_value(r, depth + 1, &value))
        return false;
    hb_node_put(map, key, loc, value);
    return true;
}

static bool read_inline(struct reader *r, int depth, struct hb_node *map)
{
    skip(r, true);
    while (!take(r, '}')) {
        if (!read_pair(r, map, depth))
            return false;
        skip(r, true);
        if (!take(r, ',') && *r->at != '}')
            return fail(r, "',' or '}'");
        skip(r, true);
    }
    return true;
}

static bool read_array(struct reader *r, int depth, struct hb_node *list)
{
    skip(r, true);
    while (!take(r, ']')) {
        struct hb_node *item = NULL;
        if (!read_value(r, depth + 1, &item))
            return false;
        hb_node_append(list, item);
        skip(r, true);
        if (!take(r, ',') && *r->at != ']')
            return fail(r, "',' or ']'");
        skip(r, true);
    }
    return true;
}

static bool read_value(struct reader *r, int depth, struct hb_node **out_node)
{
    struct hb_loc loc = here(r);
    const char *text = NULL;
    if (!count_node(r, depth))
        return false;
    if (take(r, '[')) {
        *out_node = hb_node_new(r->arena, HB_NODE_LIST, loc);
        return read_array(r, depth, *out_node);
    }
    if (take(r, '{')) {
        *out_node = hb_node_new(r->arena, HB_NODE_MAP, loc);
        return read_inline(r, depth, *out_node);
    }
    if (*r->at == '"' || *r->at == '\'') {
        if (!read_string(r, &text))
            return false;
        *out_node = hb_node_scalar(r->arena, loc, text, true);
        return true;
    }
    const char *start = r->at;
    while (isalnum((unsigned char)*r->at) || (*r->at && strchr("+-._:", *r->at)))
        r->at++;
    if (r->at == start)
        return fail(r, "a value");
    text = hb_arena_strndup(r->arena, start, (size_t)(r->at - start));
    *out_node = hb_node_scalar(r->arena, loc, text, false);
    return true;
}

/* ---- the document */

/* [a.b] or [[a.b]]: the table that the lines below belong to. */
static struct hb_node *read_header(struct reader *r, struct hb_node *root)
{
    bool many = take(r, '[');
    struct hb_node *map = root;
    const char *key = NULL;
    for (int depth = 0;; depth++) {
        if (!read_key(r, &key) || !count_node(r, depth))
            return NULL;
        skip(r, false);
        if (!take(r, '.'))
            break;
        map = enter(r, map, key);
        if (!map)
            return NULL;
    }
    if (!take(r, ']') || (many && !take(r, ']'))) {
        fail(r, "']'");
        return NULL;
    }
    if (!many)
        return enter(r, map, key);
    struct hb_node *list = hb_node_find(map, key);
    if (!list) {
        if (!has_room(r, map))
            return NULL;
        list = hb_node_new(r->arena, HB_NODE_LIST, here(r));
        hb_node_put(map, key, here(r), list);
    }
    if (list->kind != HB_NODE_LIST) {
        hb_error(r->diag, here(r), "'%s' has a value already; it can be no array of tables", key);
        return NULL;
    }
    struct hb_node *item = hb_node_new(r->arena, HB_NODE_MAP, here(r));
    hb_node_append(list, item);
    return item;
}

bool hb_toml_parse(struct hb_arena *arena, struct hb_diag *diag, const char *name, const char *text,
                   size_t len, struct hb_node **out_root)
{
    struct reader r = {arena, diag, name, text, text + len, text, 1, 0};
    if (!hb_utf8_check(diag, (struct hb_loc){name, 1, 1}, text, len))
        return false;
    struct hb_node *root = hb_node_new(arena, HB_NODE_MAP, here(&r));
    struct hb_node *table = root;
    for (;;) {
        skip(&r, true);
        if (r.at == r.end)
            break;
        if (take(&r, '[')) {
            table = read_header(&r, root);
            if (!table)
                return false;
        } else if (!read_pair(&r, table, 1)) {
            return false;
        }
        skip(&r, false);
        if (*r.at && *r.at != '\n')
            return fail(&r, "the end of the line");
    }
    *out_root = root;
    return true;
}
