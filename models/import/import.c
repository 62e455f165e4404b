/* Whose file it is, and what is said of it: see import.h. */
#include "models/import/import.h"

#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/file.h"
#include "base/toml.h"
#include "base/yaml.h"
#include "models/import/args.h"
#include "models/import/source.h"

enum { COMMENT_WIDTH = 96 };

/* In this order: the first whose keys are there. */
static const struct importer {
    bool (*is)(const struct hb_node *root);
    bool (*read)(struct hb_foreign *f, const struct hb_node *root);
} importers[] = {
    {hb_import_is_trainer, hb_import_trainer},   {hb_import_is_hf, hb_import_hf},
    {hb_import_is_titan, hb_import_titan},       {hb_import_is_nemo, hb_import_nemo},
    {hb_import_is_levanter, hb_import_levanter}, {hb_import_is_megatron, hb_import_megatron},
    {hb_import_is_maxtext, hb_import_maxtext},
};
enum { IMPORTERS = sizeof importers / sizeof importers[0] };

static const struct importer *find_importer(const struct hb_node *root)
{
    if (root->kind != HB_NODE_MAP || hb_node_find(root, "hbmsim"))
        return NULL;
    for (int i = 0; i < IMPORTERS; i++)
        if (importers[i].is(root))
            return &importers[i];
    return NULL;
}

bool hb_import_is_foreign(const struct hb_node *root)
{
    return find_importer(root) != NULL;
}

/* Whether the first line that is no comment is a table's head, or KEY = VALUE. */
static bool looks_like_toml(const char *text)
{
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        const char *at = line + strspn(line, " \t\r");
        const char *word = at + (*at == '[') + (at[0] == '[' && at[1] == '[');
        size_t key = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_-.\"'");
        line += len + (line[len] == '\n');
        if (at >= line - (line[-1] == '\n') || *at == '#')
            continue;
        const char *after = word + key + strspn(word + key, " \t");
        return key && (*at == '[' ? word[key] == ']' : *after == '=');
    }
    return false;
}

/* Levanter's !include of data: the word is left out, the rest keeps its place. */
static const char *without_includes(struct hb_arena *arena, const char *text, size_t len)
{
    static const char word[] = "!include ";
    if (!strstr(text, word))
        return text;
    char *copy = hb_arena_strndup(arena, text, len);
    for (char *at = copy; (at = strstr(at, word)) != NULL;)
        memset(at, ' ', sizeof word - 1);
    return copy;
}

/* Another program's file as that program reads it, where it is no input of ours. */
static bool parse_yaml(struct hb_arena *arena, struct hb_diag *diag, const char *name,
                       const char *text, size_t len, struct hb_node **out_root)
{
    const struct hb_diag before = *diag;
    struct hb_diag unheard;
    hb_diag_init(&unheard, arena);
    text = without_includes(arena, text, len);
    if (hb_yaml_parse(arena, diag, name, text, len, out_root))
        return true;
    if (!hb_yaml_parse_loose(arena, &unheard, name, text, len, out_root) ||
        !hb_import_is_foreign(*out_root))
        return false;
    *diag = before;
    return true;
}

bool hb_import_parse(struct hb_arena *arena, struct hb_diag *diag, const char *name,
                     const char *text, size_t len, struct hb_node **out_root)
{
    if (hb_str_ends(name, ".py"))
        return hb_error(diag, (struct hb_loc){.file = name},
                        "is a program; of torchtitan's registries a run with "
                        "--debug.save_config_file=FILE writes what is read here");
    if (hb_args_look(text) || hb_str_starts(text, "#!"))
        return hb_args_parse(arena, diag, name, text, len, out_root);
    if (looks_like_toml(text))
        return hb_toml_parse(arena, diag, name, text, len, out_root);
    return parse_yaml(arena, diag, name, text, len, out_root);
}

bool hb_import_load(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                    struct hb_node **out_root)
{
    struct hb_text content;
    const char *name;
    if (!hb_file_read(arena, diag, path, &content, &name))
        return false;
    return hb_import_parse(arena, diag, name, content.text, content.len, out_root);
}

bool hb_import_load_given(struct hb_arena *arena, struct hb_diag *diag,
                          const struct hb_given *given, const char *path, struct hb_node **out_root)
{
    if (given && given->name)
        return hb_import_parse(arena, diag, given->name, given->text, given->len, out_root);
    return hb_import_load(arena, diag, path, out_root);
}

/* KEY=VALUE, with or without dashes in front, into a map: dots are kept in the key. */
static bool add_said(const struct hb_import_source *source, struct hb_node *map, const char *word)
{
    const char *equals = strchr(word, '=');
    const char *name = hb_arena_printf(source->arena, "argument %s", word);
    struct hb_node *value = NULL;
    while (*word == '-')
        word++;
    if (!equals || equals == word)
        return hb_error(source->diag, (struct hb_loc){0},
                        "'%s' is no file and no KEY=VALUE of that program's command line", word);
    const char *key = hb_arena_strndup(source->arena, word, (size_t)(equals - word));
    if (!equals[1])
        value = hb_node_scalar(source->arena, (struct hb_loc){.file = name}, "", true);
    else if (!hb_yaml_parse(source->arena, source->diag, name, equals + 1, strlen(equals + 1),
                            &value))
        return false;
    hb_node_put(map, key, (struct hb_loc){.file = name}, value);
    return true;
}

static bool is_auto(const struct hb_node *node)
{
    const struct hb_node *enabled = hb_node_find(node, "enabled");
    node = enabled ? enabled : node;
    return node->kind == HB_NODE_SCALAR && hb_str_same(node->text, "auto");
}

/* DeepSpeed's "auto" is what the file before says. */
static void drop_auto(const struct hb_node *root, struct hb_node *tree)
{
    for (const struct hb_node *n = tree->first, *next; n; n = next) {
        next = n->next;
        if (n->key && is_auto(n) && hb_node_find(root, n->key)) {
            hb_node_drop(tree, n->key);
            next = tree->first; /* which puts the rest anew */
        }
    }
}

static int64_t count_values(const struct hb_node *node)
{
    int64_t count = 1;
    for (const struct hb_node *n = node->first; n; n = n->next)
        count += count_values(n);
    return count;
}

/* Keys are looked for one by one, and told one by one. */
static bool check_size(struct hb_diag *diag, const struct hb_node *root)
{
    enum { MOST_VALUES = 20000 }; /* a torchtitan dump of DeepSeek-V3 has 10,466 */
    return count_values(root) <= MOST_VALUES ||
           hb_error(diag, root->loc, "holds more than %d values, as no configuration does",
                    MOST_VALUES);
}

/* Files among source->more are laid over root, the rest becomes f->said. */
static bool add_more(const struct hb_import_source *source, struct hb_foreign *f,
                     struct hb_node *root)
{
    struct hb_node *said = hb_node_new(source->arena, HB_NODE_MAP, root->loc);
    for (int i = 0; i < source->more_count; i++) {
        struct hb_text content;
        const char *reason = NULL;
        struct hb_node *tree = NULL;
        if (!hb_file_load(source->arena, source->more[i], HB_FILE_MAX_BYTES, &content, &reason)) {
            const char *word = source->more[i];
            bool alone = hb_str_starts(word, "--") && !strchr(word, '=');
            bool pair =
                alone && i + 1 < source->more_count && !hb_str_starts(source->more[i + 1], "--");
            if (alone)
                word = hb_arena_printf(source->arena, "%s=%s", word,
                                       pair ? source->more[++i] : "true");
            if (!add_said(source, said, word))
                return false;
            continue;
        }
        if (!hb_import_parse(source->arena, source->diag, source->more[i], content.text,
                             content.len, &tree) ||
            !check_size(source->diag, tree))
            return false;
        drop_auto(root, tree);
        hb_node_overlay(root, tree);
    }
    f->said = said->count ? said : NULL;
    return true;
}

bool hb_import_tree(const struct hb_import_source *source, struct hb_node *root,
                    struct hb_import *out_import)
{
    struct hb_foreign f = {.arena = source->arena,
                           .diag = source->diag,
                           .data_dir = source->data_dir,
                           .path = source->path,
                           .out = out_import};
    if (!check_size(source->diag, root) ||
        (root->kind == HB_NODE_MAP && !add_more(source, &f, root)))
        return false;
    const struct importer *importer = find_importer(root);
    if (!importer && hb_node_find(root, "hbmsim"))
        return hb_error(source->diag, root->loc,
                        "is an input of hbmsim itself: every command takes it as it is");
    if (!importer)
        return hb_error(source->diag, root->loc,
                        "is none of the files that are known: Hugging Face config.json, "
                        "MaxText yml, "
                        "torchtitan toml or dump, Megatron arguments, NeMo yaml, Levanter yml, "
                        "arguments of Hugging Face's Trainer");
    *out_import = (struct hb_import){0};
    out_import->root = hb_node_new(source->arena, HB_NODE_MAP, root->loc);
    hb_put(&f, "hbmsim", "1");
    return importer->read(&f, root);
}

/* Names of an input may hold line feeds, a comment line may not. */
static void add_plain(struct hb_str *out, const char *text)
{
    size_t start = out->len;
    hb_str_add(out, text);
    for (size_t i = start; i < out->len; i++)
        if ((unsigned char)out->text[i] < ' ')
            out->text[i] = '?';
}

/* "# title: a, b, c" over as many lines as it takes. */
static void add_notes(struct hb_str *out, const char *title, const struct hb_notes *notes,
                      bool lines)
{
    size_t used = 0;
    if (!notes->count)
        return;
    hb_str_addf(out, "# %s:", title);
    used = strlen(title) + 3;
    for (uint32_t i = 0; i < notes->count; i++) {
        size_t len = strlen(notes->items[i]) + 2;
        if (lines || used + len > COMMENT_WIDTH) {
            hb_str_add(out, "\n#  ");
            used = 4;
        }
        hb_str_add(out, " ");
        add_plain(out, notes->items[i]);
        hb_str_add(out, !lines && i + 1 < notes->count ? "," : "");
        used += len;
    }
    hb_str_add(out, "\n");
}

void hb_import_comment(struct hb_str *out, const struct hb_import *import)
{
    hb_str_add(out, "# Imported: ");
    add_plain(out, import->what);
    hb_str_add(out, ".\n");
    add_notes(out, "Understood", &import->understood, false);
    add_notes(out, "Assumed", &import->assumed, true);
    add_notes(out, "Not expressed", &import->missing, true);
}
