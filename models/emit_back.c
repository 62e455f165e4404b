/* What a program makes of its own words: emitted, imported again, and what of it is lost on the
 * way. See emit.h. */
#include "models/emit.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "models/emit_parts.h"
#include "models/import/import.h"
#include "models/schema.h"

static void emit_yaml(struct hb_str *out, const struct hb_spec *spec, const char *data_dir)
{
    (void)data_dir;
    hb_schema_emit_yaml(out, spec, false);
}

static const struct {
    const char *name;
    void (*emit)(struct hb_str *out, const struct hb_spec *spec, const char *data_dir);
} programs[] = {
    [HB_EMIT_MAXTEXT] = {"MaxText", hb_emit_maxtext},
    [HB_EMIT_LEVANTER] = {"Levanter", hb_emit_levanter},
    [HB_EMIT_YAML] = {"hbmsim", emit_yaml},
    [HB_EMIT_TORCHTITAN] = {"torchtitan", hb_emit_torchtitan},
    [HB_EMIT_MEGATRON] = {"Megatron", hb_emit_megatron},
    [HB_EMIT_TRAINER] = {"Hugging Face's Trainer", hb_emit_trainer},
    [HB_EMIT_RECIPE] = {"torchtitan, in Python", hb_emit_recipe},
};

const char *hb_emit_title(enum hb_emit what)
{
    return programs[what].name;
}

void hb_emit_program(enum hb_emit what, struct hb_str *out, const struct hb_spec *spec,
                     const char *data_dir)
{
    programs[what].emit(out, spec, data_dir);
}

/* What stands on its command line or in other files of its. */
static int add_words(struct hb_arena *arena, enum hb_emit what, const struct hb_spec *s,
                     const char **words)
{
    const char *devices = hb_arena_printf(arena, "devices=%" PRId64, s->hardware.count);
    if (what == HB_EMIT_TRAINER)
        words[0] = hb_arena_printf(arena, "num_processes=%" PRId64, s->hardware.count);
    else if (what == HB_EMIT_LEVANTER)
        words[0] = devices;
    else
        return 0;
    words[1] = hb_arena_printf(arena, "vocab_size=%" PRId64, s->model.vocab);
    return what == HB_EMIT_LEVANTER ? 2 : 1;
}

/* What the program's words do not speak of, so that it cannot be lost either. */
static void keep_own(struct hb_spec *back, const struct hb_spec *spec)
{
    back->runtime.fused_norm = spec->runtime.fused_norm;
    back->runtime.written_norm = spec->runtime.written_norm;
    back->runtime.allocator = spec->runtime.allocator;
    back->runtime.expandable_segments = spec->runtime.expandable_segments;
    back->runtime.max_split_bytes = spec->runtime.max_split_bytes;
    back->runtime.blas_workspace = spec->runtime.blas_workspace;
    back->runtime.memory_fraction = spec->runtime.memory_fraction;
    back->runtime.gc_threshold = spec->runtime.gc_threshold;
    back->runtime.wrap_root = spec->runtime.wrap_root;
}

/* Has it a name for the model? The Trainer's is a file of its own. */
static bool names_model(struct hb_arena *arena, enum hb_emit what, const struct hb_spec *spec,
                        const char *data_dir)
{
    const char *name, *flavor;
    if (what != HB_EMIT_TORCHTITAN && what != HB_EMIT_RECIPE)
        return true;
    return hb_titan_flavor(arena, &spec->model, data_dir, &name, &flavor) &&
           (what == HB_EMIT_TORCHTITAN ||
            !hb_str_same(name, "llama4")); /* its trees have it no more */
}

/* Its own words, or for a program in Python the same in those of its configuration's dump. */
static void emit_words(enum hb_emit what, struct hb_str *text, const struct hb_spec *spec,
                       const char *data_dir)
{
    hb_emit_program(what == HB_EMIT_RECIPE ? HB_EMIT_TORCHTITAN : what, text, spec, data_dir);
    if (what == HB_EMIT_RECIPE && spec->loss.chunks > 1)
        hb_str_addf(text, "\n[loss]\nnum_chunks = %" PRId64 "\n", spec->loss.chunks);
}

static bool import_text(struct hb_arena *arena, enum hb_emit what, const struct hb_spec *spec,
                        const char *data_dir, struct hb_import *out)
{
    struct hb_diag unheard;
    struct hb_str text;
    struct hb_node *tree = NULL;
    const char *words[2];
    struct hb_import_source source = {.arena = arena,
                                      .diag = &unheard,
                                      .path = "-",
                                      .more = words,
                                      .more_count = add_words(arena, what, spec, words),
                                      .data_dir = data_dir};
    hb_diag_init(&unheard, arena);
    hb_str_init(&text, arena);
    emit_words(what, &text, spec, data_dir);
    if (!hb_import_parse(arena, &unheard, "emitted", text.text, text.len, &tree))
        return false;
    if (what == HB_EMIT_TRAINER) /* any card: the model is put in its place */
        hb_node_put(tree, "model_name_or_path", tree->loc,
                    hb_node_scalar(arena, tree->loc, "llama3-8b", true));
    return hb_import_tree(&source, tree, out);
}

bool hb_emit_back(struct hb_arena *arena, enum hb_emit what, const struct hb_spec *spec,
                  const char *data_dir, struct hb_spec *out_back)
{
    static const char *const own[] = {"hardware", "plan", "compiler", "force_compiler",
                                      "load",     "step", "model"};
    struct hb_diag unheard;
    struct hb_import import;
    if (what == HB_EMIT_YAML || !names_model(arena, what, spec, data_dir) ||
        !import_text(arena, what, spec, data_dir, &import))
        return false;
    struct hb_node *mine = hb_schema_emit(arena, spec, true);
    size_t count = sizeof own / sizeof own[0];
    count -= what == HB_EMIT_TRAINER ? 0 : what == HB_EMIT_LEVANTER ? 2 : 1;
    for (size_t i = 0; i < count; i++) {
        struct hb_node *section = hb_node_find(mine, own[i]);
        if (section)
            hb_node_put(import.root, own[i], section->loc, hb_node_copy(arena, section));
    }
    hb_diag_init(&unheard, arena);
    if (!hb_schema_from_node(arena, &unheard, import.root, data_dir, out_back))
        return false;
    out_back->model.name = spec->model.name;
    keep_own(out_back, spec);
    return true;
}

/* ---- what is lost */

static const char *leaf_text(struct hb_arena *arena, const struct hb_node *node)
{
    struct hb_str text;
    hb_str_init(&text, arena);
    struct hb_json j = hb_json_begin(&text, NULL, false);
    if (!node)
        return "nothing";
    hb_json_node(&j, node);
    return text.text;
}

static void compare(struct hb_str *out, const char *path, const struct hb_node *planned,
                    const struct hb_node *back)
{
    const char *a = leaf_text(out->arena, planned), *b = leaf_text(out->arena, back);
    bool both = back && planned->kind == back->kind && planned->count == back->count;
    if (hb_str_same(a, b))
        return;
    if (!both || planned->kind == HB_NODE_SCALAR ||
        (planned->kind == HB_NODE_LIST && planned->first->kind == HB_NODE_SCALAR)) {
        hb_str_addf(out, "# cannot be said: %s: %s; it runs with %s\n", path, a, b);
        return;
    }
    int64_t index = 0;
    for (const struct hb_node *n = planned->first; n; n = n->next, index++) {
        const char *inner =
            n->key ? hb_arena_printf(out->arena, "%s%s%s", path, *path ? "." : "", n->key)
                   : hb_arena_printf(out->arena, "%s[%" PRId64 "]", path, index);
        compare(out, inner, n, n->key ? hb_node_find(back, n->key) : hb_node_at(back, index));
    }
}

void hb_emit_lost(struct hb_str *out, const struct hb_spec *spec, const struct hb_spec *back)
{
    struct hb_node *a = hb_schema_emit(out->arena, spec, true);
    struct hb_node *b = hb_schema_emit(out->arena, back, true);
    hb_node_drop(a, "plan");
    hb_node_drop(b, "plan");
    compare(out, "", a, b);
}
