/* Words and a schema from the rows of json_rows.c: see json_keys.h. */
#include "cli/json_keys.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cli/json_rows.h"
#include "hw/device.h"
#include "models/schema.h"

/* ---- schema */

/* Rows of one object: those right below a prefix ("", "peak.", "top[]."). */
struct level {
    const struct hb_json_row *rows[3]; /* tables; null: no more */
    const char *prefix;
};

static void put_type(struct hb_json *j, const struct level *l, const char *path, const char *type);

/* The name right below the prefix, or null; maybe: it may be absent. */
static const char *own_name(struct hb_arena *arena, const struct level *l,
                            const struct hb_json_row *r, bool *maybe)
{
    if (!hb_str_starts(r->path, l->prefix))
        return NULL;
    const char *rest = r->path + strlen(l->prefix);
    size_t len = strlen(rest);
    if (!len || strpbrk(rest, ".[*"))
        return NULL;
    *maybe = rest[len - 1] == '?';
    return hb_arena_strndup(arena, rest, *maybe ? len - 1 : len);
}

static void put_members(struct hb_json *j, const struct level *l)
{
    hb_json_key(j, "properties");
    hb_json_object(j);
    for (int t = 0; t < 3 && l->rows[t]; t++)
        for (const struct hb_json_row *r = l->rows[t]; r->path; r++) {
            bool maybe;
            const char *name = own_name(j->out->arena, l, r, &maybe);
            if (!name)
                continue;
            hb_json_key(j, name);
            hb_json_object(j);
            hb_json_put_text(j, "description", r->doc);
            put_type(j, l, hb_arena_printf(j->out->arena, "%s%s", l->prefix, name), r->type);
            hb_json_object_end(j);
        }
    hb_json_object_end(j);
}

static void put_required(struct hb_json *j, const struct level *l)
{
    hb_json_key(j, "required");
    hb_json_array(j);
    for (int t = 0; t < 3 && l->rows[t]; t++)
        for (const struct hb_json_row *r = l->rows[t]; r->path; r++) {
            bool maybe;
            const char *name = own_name(j->out->arena, l, r, &maybe);
            if (name && !maybe)
                hb_json_text(j, name);
        }
    hb_json_array_end(j);
}

static const struct hb_json_row *find_row(const struct level *l, const char *path)
{
    for (int t = 0; t < 3 && l->rows[t]; t++)
        for (const struct hb_json_row *r = l->rows[t]; r->path; r++)
            if (hb_str_same(r->path, path))
                return r;
    return NULL;
}

static void put_object(struct hb_json *j, const struct level *l)
{
    struct hb_arena *arena = j->out->arena;
    const struct hb_json_row *any = find_row(l, hb_arena_printf(arena, "%s*", l->prefix));
    hb_json_put_text(j, "type", "object");
    if (any) {
        hb_json_key(j, "additionalProperties");
        hb_json_object(j);
        put_type(j, l, any->path, any->type);
        hb_json_object_end(j);
        return;
    }
    put_members(j, l);
    put_required(j, l);
    hb_json_put_bool(j, "additionalProperties", false);
}

/* Members of an open object that say one of the types without '?'. */
static void put_plain(struct hb_json *j, const struct level *l, const char *path, const char *type)
{
    static const struct {
        const char *ours, *theirs;
    } words[] = {{"bool", "boolean"}, {"int", "integer"}, {"number", "number"}, {"text", "string"}};
    struct hb_arena *arena = j->out->arena;
    size_t len = strlen(type);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (hb_str_same(type, words[i].ours))
            hb_json_put_text(j, "type", words[i].theirs);
    if (hb_str_same(type, "config"))
        hb_json_put_text(j, "$ref", "#/$defs/configuration");
    if (type[0] == '&')
        hb_json_put_text(j, "$ref", hb_arena_printf(arena, "#/$defs/%s", type + 1));
    if (hb_str_same(type, "{}")) {
        struct level inner = *l;
        inner.prefix = hb_arena_printf(arena, "%s.", path);
        put_object(j, &inner);
    } else if (type[0] == '{' || type[0] == '[') {
        bool list = type[0] == '[';
        hb_json_put_text(j, "type", list ? "array" : "object");
        hb_json_key(j, list ? "items" : "additionalProperties");
        hb_json_object(j);
        put_type(j, l, hb_arena_printf(arena, "%s[]", path),
                 hb_arena_strndup(arena, type + 1, len - 2));
        hb_json_object_end(j);
    }
}

static void put_type(struct hb_json *j, const struct level *l, const char *path, const char *type)
{
    size_t len = strlen(type);
    if (type[len - 1] != '?') {
        put_plain(j, l, path, type);
        return;
    }
    hb_json_key(j, "anyOf");
    hb_json_array(j);
    hb_json_object(j);
    hb_json_put_text(j, "type", "null");
    hb_json_object_end(j);
    hb_json_object(j);
    put_plain(j, l, path, hb_arena_strndup(j->out->arena, type, len - 1));
    hb_json_object_end(j);
    hb_json_array_end(j);
}

static struct level level_of(const struct hb_json_kind *result)
{
    struct level l = {{NULL}, ""};
    int count = 0;
    if (result->headed)
        l.rows[count++] = hb_json_head();
    l.rows[count++] = result->rows;
    if (result->base)
        l.rows[count] = result->base;
    return l;
}

static void put_definitions(struct hb_json *j)
{
    int result_count, part_count;
    const struct hb_json_kind *results = hb_json_results(&result_count);
    const struct hb_json_kind *parts = hb_json_parts(&part_count);
    hb_json_key(j, "$defs");
    hb_json_object(j);
    for (int i = 0; i < result_count; i++) {
        struct level l = level_of(&results[i]);
        hb_json_key(j, hb_arena_printf(j->out->arena, "result.%s", results[i].name));
        hb_json_object(j);
        if (hb_str_same(results[i].name, "calibrate"))
            hb_device_json_schema(j);
        else
            put_object(j, &l);
        hb_json_object_end(j);
    }
    for (int i = 0; i < part_count; i++) {
        struct level l = {{parts[i].rows}, ""};
        hb_json_key(j, parts[i].name);
        hb_json_object(j);
        put_object(j, &l);
        hb_json_object_end(j);
    }
    hb_json_key(j, "configuration");
    hb_json_object(j);
    hb_schema_json_root(j);
    hb_json_object_end(j);
    hb_schema_json_sections(j);
    hb_json_object_end(j);
}

void hb_json_keys_schema(struct hb_json *j)
{
    int result_count;
    const struct hb_json_kind *results = hb_json_results(&result_count);
    hb_json_object(j);
    hb_json_put_text(j, "$schema", "https://json-schema.org/draft/2020-12/schema");
    hb_json_put_text(j, "title", "results of hbmsim as JSON");
    hb_json_key(j, "anyOf");
    hb_json_array(j);
    for (int i = 0; i < result_count; i++) {
        hb_json_object(j);
        hb_json_put_text(j, "$ref",
                         hb_arena_printf(j->out->arena, "#/$defs/result.%s", results[i].name));
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
    put_definitions(j);
    hb_json_object_end(j);
}

/* ---- words */

enum { PATH_COLUMNS = 42, TYPE_COLUMNS = 12 };

static void print_rows(FILE *out, const char *title, const struct hb_json_row *rows)
{
    fprintf(out, "%s\n", title);
    for (const struct hb_json_row *r = rows; r && r->path; r++)
        fprintf(out, "  %-*s %-*s %s\n", PATH_COLUMNS, r->path, TYPE_COLUMNS, r->type, r->doc);
    fputc('\n', out);
}

bool hb_json_keys_text(FILE *out, const char *kind)
{
    int result_count, part_count;
    const struct hb_json_kind *results = hb_json_results(&result_count);
    const struct hb_json_kind *parts = hb_json_parts(&part_count);
    bool found = !kind;
    for (int i = 0; i < result_count; i++)
        found |= kind && hb_str_same(kind, results[i].name);
    if (!found)
        return false;
    print_rows(out, "each result but a record", hb_json_head());
    for (int i = 0; i < result_count; i++) {
        if (kind && !hb_str_same(kind, results[i].name))
            continue;
        print_rows(out, results[i].name, results[i].rows);
        if (results[i].base)
            print_rows(out, "simulate, where it is asked for", results[i].base);
    }
    for (int i = 1; i < part_count; i++) /* the first is simulate */
        if (!kind)
            print_rows(out, parts[i].title, parts[i].rows);
    return true;
}
