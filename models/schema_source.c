/* From files and the command line to one tree: includes (the included file's keys are defaults),
 * the model zoo's card under `model.preset`, and KEY=VALUE sets, in this order of strength. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/yaml.h"
#include "models/import/import.h"
#include "models/schema.h"
#include "models/schema_key.h"

enum { MAX_INCLUDES = 16 };

/* A file that is being read, and who included it. */
struct opened {
    const struct opened *by;
    const char *path;
    int depth;
    bool *out_foreign; /* null, or set where it is another program's file */
};

static bool read_with_includes(const struct hb_schema_source *s, const struct opened *file,
                               struct hb_node **out_root);

/* Whether a relative path leaves the folder it starts from, by its words. */
static bool leaves_folder(const char *path)
{
    int depth = 0;
    for (const char *at = path; *at && depth >= 0;) {
        size_t len = strcspn(at, "/");
        if (len == 2 && memcmp(at, "..", 2) == 0)
            depth--;
        else if (len && !(len == 1 && at[0] == '.'))
            depth++;
        at += len + (at[len] == '/');
    }
    return depth < 0 || path[0] == '/';
}

static bool check_include(const struct hb_schema_source *s, const struct opened *file,
                          const struct hb_node *include, const char *path)
{
    const char *shown = hb_node_show(s->arena, include);
    const char *folder = hb_file_folder(s->arena, file->path);
    if (leaves_folder(include->text))
        return hb_error(s->diag, include->loc,
                        "include: %s leaves the folder of the including file; allowed: a relative "
                        "path below it",
                        shown);
    struct hb_text unused;
    const char *reason = NULL;
    struct hb_arena_mark mark = hb_arena_mark(s->arena);
    if (!hb_file_load(s->arena, path, HB_FILE_MAX_BYTES, &unused, &reason))
        return hb_error(s->diag, include->loc, "include: %s %s", shown, reason);
    hb_arena_rewind(s->arena, mark);
    if (!hb_file_inside(folder, path))
        return hb_error(s->diag, include->loc,
                        "include: %s leads by a link out of the folder of the including file; "
                        "allowed: a relative path below it",
                        shown);
    for (const struct opened *up = file; up; up = up->by)
        if (hb_file_same(up->path, path))
            return hb_error(s->diag, include->loc, "include: %s is being read already: a loop",
                            shown);
    if (file->depth >= MAX_INCLUDES)
        return hb_error(s->diag, include->loc, "include: more than %d files deep", MAX_INCLUDES);
    return true;
}

static bool note_foreign(const struct opened *file, const struct hb_node *root)
{
    if (file->out_foreign)
        *file->out_foreign = hb_import_is_foreign(root);
    return true;
}

/* Replaces a tree of another program's by ours, and says so. */
static bool import_tree(const struct hb_schema_source *s, const char *path, struct hb_node **root)
{
    struct hb_import import;
    struct hb_import_source from = {
        .arena = s->arena, .diag = s->diag, .path = path, .data_dir = s->data_dir};
    if (!hb_import_is_foreign(*root))
        return true;
    struct hb_loc at = (*root)->loc;
    if (!hb_import_tree(&from, *root, &import))
        return false;
    hb_warn(s->diag, (struct hb_loc){.file = at.file},
            "read as %s; assumed %u, not expressed %u: `hbmsim import` tells", import.what,
            import.assumed.count, import.missing.count);
    *root = import.root;
    return true;
}

/* Who says how large a batch is overrides what a file below said in another way: of batch.global,
 * per_device and tokens, those of files go that over has not. */
static void drop_other_sizes(struct hb_node *batch, const struct hb_node *over)
{
    static const char *const ways[] = {"global", "per_device", "tokens"};
    enum { WAYS = sizeof ways / sizeof ways[0] };
    bool said = false;
    for (int i = 0; i < WAYS; i++) {
        const struct hb_node *node = hb_node_find(over, ways[i]);
        said |= node && node->kind == HB_NODE_SCALAR && !hb_str_same(node->text, "0");
    }
    for (int i = 0; said && i < WAYS; i++) {
        const struct hb_node *node = hb_node_find(batch, ways[i]);
        if (node && !hb_node_find(over, ways[i]) && !hb_str_starts(node->loc.file, "--set "))
            hb_node_drop(batch, ways[i]);
    }
}

/* Replaces *root by the included file's tree with root's keys over it. */
static bool include_under(const struct hb_schema_source *s, const struct opened *file,
                          struct hb_node **root)
{
    const struct hb_node *include = hb_node_find(*root, "include");
    if (include->kind != HB_NODE_SCALAR || hb_node_is_null(include) || !include->text[0])
        return hb_error(s->diag, include->loc, "include: %s stands where a file's path is wanted",
                        include->kind == HB_NODE_SCALAR ? "nothing"
                                                        : hb_node_show(s->arena, include));
    const char *folder = hb_file_folder(s->arena, file->path);
    const char *path = hb_arena_printf(s->arena, "%s%s", folder, include->text);
    if (!check_include(s, file, include, path))
        return false;
    struct opened inner = {file, path, file->depth + 1, NULL};
    struct hb_node *base = NULL;
    if (!read_with_includes(s, &inner, &base))
        return false;
    drop_other_sizes(hb_node_find(base, "batch"), hb_node_find(*root, "batch"));
    hb_node_overlay(base, *root);
    base->loc = (*root)->loc;
    hb_node_drop(base, "include");
    *root = base;
    return true;
}

static bool read_with_includes(const struct hb_schema_source *s, const struct opened *file,
                               struct hb_node **out_root)
{
    struct hb_node *root = NULL;
    if (!hb_import_load_given(s->arena, s->diag, file->by ? NULL : s->given, file->path, &root) ||
        !note_foreign(file, root) || !import_tree(s, file->path, &root))
        return false;
    if (root->kind != HB_NODE_MAP)
        return hb_error(s->diag, root->loc, "%s stands where a map of keys is wanted",
                        hb_node_show(s->arena, root));
    if (hb_node_find(root, "include") && !include_under(s, file, &root))
        return false;
    *out_root = root;
    return true;
}

/* ---- the model zoo */

static bool fail_preset(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *preset,
                        const char *folder)
{
    const char *const *names = hb_file_list(arena, folder, ".yaml");
    const char *near = preset->kind == HB_NODE_SCALAR ? hb_str_nearest(preset->text, names) : NULL;
    const char *shown = hb_node_show(arena, preset);
    if (preset->kind != HB_NODE_SCALAR || hb_node_is_null(preset))
        return hb_error(diag, preset->loc,
                        "model.preset: %s stands where a card's name is wanted; `hbmsim models` "
                        "lists them",
                        shown);
    if (!names[0])
        return hb_error(diag, preset->loc,
                        "model.preset: no model zoo in %s; HBMSIM_DATA can name another place",
                        folder);
    if (near)
        return hb_error(diag, preset->loc, "model.preset: no card %s; did you mean '%s'?", shown,
                        near);
    return hb_error(diag, preset->loc,
                    "model.preset: no card %s; `hbmsim models` lists what there is", shown);
}

static bool is_card_name(const struct hb_node *preset)
{
    if (preset->kind != HB_NODE_SCALAR || !isalnum((unsigned char)preset->text[0]))
        return false;
    for (const char *c = preset->text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
            return false;
    return true;
}

bool hb_schema_apply_preset(struct hb_arena *arena, struct hb_diag *diag, struct hb_node *root,
                            const char *data_dir)
{
    struct hb_node *model = hb_node_find(root, "model");
    const struct hb_node *preset = hb_node_find(model, "preset");
    if (!preset)
        return true;
    const char *folder = hb_arena_printf(arena, "%s/models/zoo/", data_dir);
    struct hb_text content;
    const char *reason = NULL;
    const char *path = "";
    if (is_card_name(preset))
        path = hb_arena_printf(arena, "%s%s.yaml", folder, preset->text);
    if (!path[0] || !hb_file_regular(path) ||
        !hb_file_load(arena, path, HB_FILE_MAX_BYTES, &content, &reason))
        return fail_preset(arena, diag, preset, folder);
    struct hb_node *card = NULL;
    if (!hb_yaml_parse(arena, diag, path, content.text, content.len, &card))
        return false;
    struct hb_node *base = hb_node_find(card, "model");
    if (!base || base->kind != HB_NODE_MAP)
        return hb_error(diag, card->loc, "model: a card of the zoo needs it");
    hb_node_drop(model, "preset");
    struct hb_loc loc = model->loc;
    struct hb_loc key_loc = model->key_loc;
    hb_node_overlay(base, model);
    base->loc = loc;
    base->next = NULL;
    hb_node_put(root, "model", key_loc, base);
    return true;
}

/* ---- KEY=VALUE */

/* Everything of a value given on the command line is placed there. */
static void place_all(struct hb_node *node, struct hb_loc loc)
{
    node->loc = loc;
    node->key_loc = loc;
    for (struct hb_node *child = node->first; child; child = child->next)
        place_all(child, loc);
}

/* One KEY=VALUE while it is applied. */
struct setting {
    struct hb_arena *arena;
    struct hb_diag *diag;
    struct hb_loc loc; /* "--set KEY=VALUE" */
};

static bool parse_value(const struct setting *s, const char *text, struct hb_node **out_value)
{
    struct hb_diag inner;
    hb_diag_init(&inner, s->arena);
    if (!text[0] || !text[strspn(text, " \t")]) {
        *out_value = hb_node_scalar(s->arena, s->loc, "", false);
        return true;
    }
    if (!hb_yaml_parse(s->arena, &inner, s->loc.file, text, strlen(text), out_value))
        return hb_error(s->diag, s->loc, "%s",
                        inner.count ? inner.entries[0].text : "cannot be read");
    place_all(*out_value, s->loc);
    return true;
}

/* Splits "model.blocks[0].repeat" into words; "[0]" becomes "0", "[]" the empty word. */
static bool split_path(const struct setting *s, const char *path, size_t len, char **words,
                       int *out_count)
{
    int count = 0;
    size_t at = 0;
    while (at < len && count < HB_NODE_MAX_DEPTH) {
        bool bracket = path[at] == '[';
        size_t start = at + bracket;
        size_t end = start;
        while (end < len && !strchr(bracket ? "]" : ".[", path[end]))
            end++;
        if (bracket ? end == len : end == start)
            break;
        words[count++] = hb_arena_strndup(s->arena, path + start, end - start);
        at = end + bracket;
        if (at < len && path[at] == '.' && at + 1 < len)
            at++;
        else if (at < len && path[at] != '[')
            break;
    }
    if (at < len || !count)
        return hb_error(s->diag, s->loc,
                        "'%.*s' is no path; allowed: keys joined by dots, as batch.global or "
                        "model.blocks[0].repeat",
                        (int)len, path);
    *out_count = count;
    return true;
}

static bool parse_index(const char *word, int64_t *out_index)
{
    struct hb_node node = {.kind = HB_NODE_SCALAR, .text = word};
    return hb_node_int(&node, out_index) && *out_index >= 0;
}

/* The child of node that word names; made if it is a key that is missing. */
static bool step_into(const struct setting *s, struct hb_node *node, const char *word,
                      struct hb_node **out_child)
{
    int64_t index = -1;
    if (node->kind == HB_NODE_SCALAR)
        return hb_error(s->diag, s->loc, "'%s' is looked for in %s, which is no map or list", word,
                        hb_node_show(s->arena, node));
    if (node->kind == HB_NODE_LIST) {
        *out_child = parse_index(word, &index) ? hb_node_at(node, index) : NULL;
        return *out_child ||
               hb_error(s->diag, s->loc,
                        "'%s' is no item of a list of %" PRIu32 "; items count from 0", word,
                        node->count);
    }
    *out_child = hb_node_find(node, word);
    if (!*out_child) {
        *out_child = hb_node_new(s->arena, HB_NODE_MAP, s->loc);
        hb_node_put(node, word, s->loc, *out_child);
    }
    return true;
}

/* Puts what value holds into the node, which keeps its place in the tree. */
static void become(struct hb_node *node, const struct hb_node *value)
{
    struct hb_node *next = node->next;
    const char *key = node->key;
    *node = *value;
    node->next = next;
    node->key = key;
}

/* Whether the maps that words name, but for the last, are all there. */
static bool has_parents(const struct hb_node *node, char *const *words, int count)
{
    for (int i = 0; i + 1 < count && node; i++)
        node = hb_node_find(node, words[i]);
    return node != NULL;
}

/* Sets what words name below node; "[]" is every item of a list that has the maps on the way. */
static bool set_below(const struct setting *s, struct hb_node *node, char *const *words, int count,
                      const struct hb_node *value)
{
    struct hb_node *child = NULL;
    int found = 0;
    if (!count) {
        become(node, hb_node_copy(s->arena, value));
        return true;
    }
    if (words[0][0])
        return step_into(s, node, words[0], &child) &&
               set_below(s, child, words + 1, count - 1, value);
    if (node->kind != HB_NODE_LIST)
        return hb_error(s->diag, s->loc, "[] stands behind a list; here is %s",
                        hb_node_show(s->arena, node));
    for (child = node->first; child; child = child->next) {
        if (!has_parents(child, words + 1, count - 1))
            continue;
        found++;
        if (!set_below(s, child, words + 1, count - 1, value))
            return false;
    }
    return found ||
           hb_error(s->diag, s->loc, "no item of the list has '%s'", count > 1 ? words[1] : "[]");
}

static bool apply_set(const struct setting *s, struct hb_node *root, const char *set)
{
    const char *equals = strchr(set, '=');
    char *words[HB_NODE_MAX_DEPTH + 1];
    int count = 0;
    if (!equals || equals == set)
        return hb_error(s->diag, s->loc, "not KEY=VALUE; allowed: as batch.global=64");
    if (!split_path(s, set, (size_t)(equals - set), words, &count))
        return false;
    struct hb_node *value = NULL;
    if (!parse_value(s, equals + 1, &value))
        return false;
    struct hb_node *node = root;
    if (hb_str_same(words[0], "include"))
        return hb_error(s->diag, s->loc, "include: only a file can include another");
    /* blocks[1].mlp.d_ff, as outputs name it, is model.blocks[1].mlp.d_ff */
    if (hb_str_same(words[0], "blocks") && !step_into(s, node, "model", &node))
        return false;
    if (!set_below(s, node, words, count, value))
        return false;
    if (count == 2 && hb_str_same(words[0], "batch")) {
        struct hb_node *over = hb_node_new(s->arena, HB_NODE_MAP, s->loc);
        hb_node_put(over, words[1], s->loc, hb_node_copy(s->arena, value));
        drop_other_sizes(hb_node_find(root, "batch"), over);
    }
    return true;
}

bool hb_schema_set(struct hb_arena *arena, struct hb_diag *diag, struct hb_node *root,
                   const char *set)
{
    char *name = hb_arena_printf(arena, "--set %s", set);
    for (char *c = name; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    return hb_schema_set_at(arena, diag, (struct hb_loc){.file = name}, root, set);
}

bool hb_schema_set_at(struct hb_arena *arena, struct hb_diag *diag, struct hb_loc loc,
                      struct hb_node *root, const char *set)
{
    struct setting s = {arena, diag, loc};
    return apply_set(&s, root, set);
}

/* Sets that name a card or a file come before it is looked up, all others after. */
static bool apply_sets(const struct hb_schema_source *s, struct hb_node *root, bool preset)
{
    bool ok = true;
    for (int i = 0; i < s->set_count; i++)
        if ((hb_str_starts(s->sets[i], "model.preset=") ||
             hb_str_starts(s->sets[i], "model.import=") || hb_str_starts(s->sets[i], "model=")) ==
            preset)
            ok &= hb_schema_set(s->arena, s->diag, root, s->sets[i]);
    return ok;
}

/* ---- model.import */

/* The file of model.import; one that a file names lies below that file's folder. */
static const char *import_path(const struct hb_schema_source *s, const struct hb_node *node)
{
    const char *shown = hb_node_show(s->arena, node);
    if (node->kind != HB_NODE_SCALAR || hb_node_is_null(node) || !node->text[0]) {
        hb_error(s->diag, node->loc, "model.import: %s stands where a file's path is wanted",
                 shown);
        return NULL;
    }
    if (hb_str_starts(node->loc.file, "--set "))
        return node->text;
    const char *folder = hb_file_folder(s->arena, node->loc.file);
    const char *path = hb_arena_printf(s->arena, "%s%s", folder, node->text);
    if (!leaves_folder(node->text) && (hb_file_inside(folder, path) || !hb_file_same(path, path)))
        return path;
    hb_error(s->diag, node->loc,
             "model.import: %s leaves the folder of the file that names it; allowed: a relative "
             "path below it, or any with --set",
             shown);
    return NULL;
}

/* Puts the model of that file, and what goes with it (a cap of the logits), under root's keys. */
static bool apply_import(const struct hb_schema_source *s, struct hb_node *root)
{
    struct hb_node *model = hb_node_find(root, "model");
    const struct hb_node *node = hb_node_find(model, "import");
    struct hb_node *tree = NULL;
    if (!node)
        return true;
    const char *path = import_path(s, node);
    if (!path || !hb_import_load(s->arena, s->diag, path, &tree))
        return false;
    if (!hb_import_is_foreign(tree))
        return hb_error(s->diag, node->loc, "model.import: %s is no file of another program",
                        hb_node_show(s->arena, node));
    if (!import_tree(s, path, &tree))
        return false;
    hb_node_drop(model, "import");
    struct hb_node *base = hb_node_new(s->arena, HB_NODE_MAP, root->loc);
    struct hb_node *imported = hb_node_find(tree, "model");
    struct hb_node *cap = hb_node_find(hb_node_find(tree, "loss"), "softcap");
    imported->next = NULL;
    hb_node_put(base, "model", model->key_loc, imported);
    if (cap) {
        struct hb_node *loss = hb_node_new(s->arena, HB_NODE_MAP, root->loc);
        hb_node_put(loss, "softcap", root->loc, hb_node_copy(s->arena, cap));
        hb_node_put(base, "loss", root->loc, loss);
    }
    hb_node_overlay(base, root);
    *root = *base;
    return true;
}

/* What the source says of keys that nothing else did: a section's or a key of a section. */
static bool apply_open(const struct hb_schema_source *s, struct hb_node *root)
{
    for (const char *const *set = s->if_open; set && *set; set++) {
        size_t len = strcspn(*set, ".=");
        const struct hb_node *node = hb_node_find(root, hb_arena_strndup(s->arena, *set, len));
        const char *rest = *set + len;
        if ((*rest == '=' && node) ||
            (*rest == '.' &&
             hb_node_find(node, hb_arena_strndup(s->arena, rest + 1, strcspn(rest + 1, "=")))))
            continue;
        if (!hb_schema_set(s->arena, s->diag, root, *set))
            return false;
    }
    return true;
}

/* Another program's file may say a model and nothing else: the rest is a default, which would be
 * simulated without a word. */
static void warn_open(const struct hb_schema_source *s, const struct hb_node *root)
{
    const struct hb_node *hardware = hb_node_find(root, "hardware");
    const struct hb_node *batch = hb_node_find(root, "batch");
    bool size = hb_node_find(batch, "global") || hb_node_find(batch, "per_device") ||
                hb_node_find(batch, "tokens");
    struct hb_str open;
    hb_str_init(&open, s->arena);
    if (!hb_node_find(hardware, "device"))
        hb_str_add(&open, " --set hardware.device=h100");
    if (!hb_node_find(hardware, "count") && !hb_node_find(root, "mesh"))
        hb_str_add(&open, " --set hardware.count=8");
    if (!size)
        hb_str_add(&open, " --set batch.global=64");
    if (!hb_node_find(batch, "seq") && !hb_node_find(batch, "tokens"))
        hb_str_add(&open, " --set batch.seq=4096");
    if (open.len)
        hb_warn(s->diag, (struct hb_loc){.file = s->path},
                "says nothing of these, and defaults are taken; say your own, as in:%s", open.text);
}

bool hb_schema_load(const struct hb_schema_source *source, struct hb_node **out_root)
{
    bool foreign = false;
    struct opened file = {NULL, source->path, 1, &foreign};
    struct hb_node *root = NULL;
    if (!read_with_includes(source, &file, &root) || !apply_sets(source, root, true) ||
        !apply_import(source, root) ||
        !hb_schema_apply_preset(source->arena, source->diag, root, source->data_dir) ||
        !apply_sets(source, root, false))
        return false;
    if (!apply_open(source, root))
        return false;
    if (foreign)
        warn_open(source, root);
    *out_root = root;
    return true;
}

/* ---- places */

struct hb_loc hb_schema_locate(const struct hb_node *root, const char *path)
{
    const struct hb_node *node = root;
    struct hb_loc loc = root->loc;
    char word[128];
    while (*path && node) {
        bool bracket = *path == '[';
        path += bracket;
        size_t len = strcspn(path, bracket ? "]" : ".[");
        if (len >= sizeof word)
            break;
        memcpy(word, path, len);
        word[len] = '\0';
        path += len + bracket;
        path += *path == '.';
        int64_t index = -1;
        if (node->kind == HB_NODE_LIST)
            node = parse_index(word, &index) ? hb_node_at(node, index) : NULL;
        else
            node = hb_node_find(node, word);
        if (node)
            loc = node->loc;
    }
    return loc;
}
