/* The table in words: `hbmsim help model`. */
#include "models/schema.h"

#include <string.h>

#include "base/arena.h"
#include "models/schema_key.h"

enum { NAME_COLUMNS = 24 };

static const char *default_text(const struct hb_key *key)
{
    if (key->kind == HB_KEY_SECTION)
        return NULL;
    if (!key->def)
        return "required";
    return key->def[0] == '=' ? key->def + 1 : key->def;
}

static void print_key(FILE *out, struct hb_arena *arena, const struct hb_key *key, const char *name)
{
    const char *def = default_text(key);
    fprintf(out, "  %-*s %s\n", NAME_COLUMNS, name, key->doc);
    if (key->kind == HB_KEY_SECTION)
        fprintf(out, "  %-*s keys: see %s\n", NAME_COLUMNS, "", hb_section(key->section)->path);
    else
        fprintf(out, "  %-*s %s; default: %s\n", NAME_COLUMNS, "", hb_key_allowed(arena, key), def);
}

static void print_section(FILE *out, struct hb_arena *arena, const struct hb_section *section)
{
    fprintf(out, "%s: %s\n", section->path[0] ? section->path : "(top)", section->doc);
    for (int i = 0; i < section->key_count; i++)
        print_key(out, arena, &section->keys[i], section->keys[i].name);
}

/* "blocks[].moe" and "moe" name the section "model.blocks[].moe" as well. */
static bool names_section(const char *name, const char *path)
{
    size_t len = strlen(name);
    size_t all = strlen(path);
    if (len > all || !len)
        return false;
    return hb_str_same(name, path + all - len) && (len == all || path[all - len - 1] == '.');
}

static const char *key_path(struct hb_arena *arena, const struct hb_section *s, int key)
{
    return hb_arena_printf(arena, "%s%s%s", s->path, s->path[0] ? "." : "", s->keys[key].name);
}

/* The keys of this name in all sections: "loss.chunks" or "chunks". */
static bool print_keys(FILE *out, struct hb_arena *arena, const char *name)
{
    bool found = false;
    for (int id = 0; id < HB_SEC_COUNT; id++) {
        const struct hb_section *s = hb_section((enum hb_section_id)id);
        for (int i = 0; i < s->key_count; i++) {
            const char *path = key_path(arena, s, i);
            if (!names_section(name, path))
                continue;
            print_key(out, arena, &s->keys[i], path);
            found = true;
        }
    }
    return found;
}

/* Of keys with their section, or without. */
static const char *nearest_key(struct hb_arena *arena, const char *name)
{
    const char **names = NULL;
    uint32_t count = 0, cap = 0;
    for (int id = 0; id < HB_SEC_COUNT; id++) {
        const struct hb_section *s = hb_section((enum hb_section_id)id);
        for (int i = 0; i < s->key_count; i++) {
            names = hb_grow(arena, names, count, &cap, sizeof *names);
            names[count++] = strchr(name, '.') ? key_path(arena, s, i) : s->keys[i].name;
        }
    }
    names = hb_grow(arena, names, count, &cap, sizeof *names);
    names[count] = NULL;
    return hb_str_nearest(name, names);
}

bool hb_schema_help(FILE *out, struct hb_arena *arena, const char *section,
                    const char **out_nearest)
{
    const char *paths[HB_SEC_COUNT + 1] = {0};
    bool found = false;
    for (int id = 0; id < HB_SEC_COUNT; id++) {
        const struct hb_section *s = hb_section((enum hb_section_id)id);
        paths[id] = s->path;
        if (section && !names_section(section, s->path))
            continue;
        if (found)
            fputc('\n', out);
        print_section(out, arena, s);
        found = true;
    }
    if (!found && section)
        found = print_keys(out, arena, section);
    if (!found)
        *out_nearest = hb_str_nearest(section, paths);
    if (!found && !*out_nearest)
        *out_nearest = nearest_key(arena, section);
    return found;
}

void hb_schema_each_key(void (*visit)(void *context, const char *path), void *context)
{
    struct hb_arena *arena = hb_arena_new();
    for (int id = 0; id < HB_SEC_COUNT; id++) {
        const struct hb_section *s = hb_section((enum hb_section_id)id);
        for (int i = 0; i < s->key_count; i++)
            visit(context, key_path(arena, s, i));
    }
    hb_arena_free(arena);
}

const char *hb_schema_path_of(struct hb_arena *arena, const char *name)
{
    for (int id = HB_SEC_ROOT + 1; id < HB_SEC_COUNT; id++) {
        const struct hb_section *s = hb_section((enum hb_section_id)id);
        for (int i = 0; i < s->key_count; i++)
            if (hb_str_same(s->keys[i].name, name))
                return hb_arena_printf(arena, "%s.%s", s->path, name);
    }
    return NULL;
}

static const struct hb_key *find_key(const char *path)
{
    const char *dot = strrchr(path, '.');
    size_t len = dot ? (size_t)(dot - path) : 0;
    const char *name = dot ? dot + 1 : path;
    for (int id = 0; id < HB_SEC_COUNT; id++) {
        const struct hb_section *s = hb_section((enum hb_section_id)id);
        if (strlen(s->path) != len || strncmp(s->path, path, len) != 0)
            continue;
        for (int i = 0; i < s->key_count; i++)
            if (hb_str_same(s->keys[i].name, name))
                return &s->keys[i];
    }
    return NULL;
}

const char *hb_schema_doc(const char *path)
{
    const struct hb_key *key = find_key(path);
    return key ? key->doc : NULL;
}

const char *hb_schema_choices(struct hb_arena *arena, const char *path)
{
    const struct hb_key *key = find_key(path);
    struct hb_str words;
    if (!key || (key->kind != HB_KEY_ENUM && key->kind != HB_KEY_BOOL))
        return NULL;
    if (key->kind == HB_KEY_BOOL)
        return "true false";
    hb_str_init(&words, arena);
    for (const struct hb_word *w = key->words; w->text; w++)
        hb_str_addf(&words, "%s%s", words.len ? " " : "", w->text);
    return words.text;
}
