/* Configurations of other programs, as the files of tests/import have them: the facts of published
 * ones, one a line. Each has the parameters that were published, and, where the zoo has a card of
 * it, that card's layers; `expect` names further keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/str.h"
#include "models/emit.h"
#include "models/import/import.h"
#include "models/params.h"
#include "models/schema.h"

#define FOLDER    HB_SOURCE_DIR "/tests/import/"
#define TOLERANCE 0.001

/* One line while it is checked. */
struct test_case {
    struct hb_arena *arena;
    struct hb_diag diag;
    const struct hb_node *record;
    const char *id;
    struct hb_import import;
    struct hb_spec spec;
};

static bool complain(const struct test_case *c, const char *what, const char *text)
{
    fprintf(stderr, "%s: %s: %s\n", c->id, what, text);
    return false;
}

/* The tree of "file", or what "text" is as a file. */
static bool read_case(struct test_case *c)
{
    struct hb_node *tree = hb_node_find(c->record, "file");
    const struct hb_node *text = hb_node_find(c->record, "text");
    const struct hb_node *more = hb_node_find(c->record, "more");
    const char *words[64];
    int count = 0;
    for (const struct hb_node *n = more ? more->first : NULL; n && count < 64; n = n->next)
        words[count++] = n->text;
    struct hb_import_source source = {.arena = c->arena,
                                      .diag = &c->diag,
                                      .path = "test",
                                      .more = words,
                                      .more_count = count,
                                      .data_dir = HB_SOURCE_DIR};
    bool ok =
        tree || hb_import_parse(c->arena, &c->diag, "test", text->text, strlen(text->text), &tree);
    ok = ok && hb_import_is_foreign(tree) && hb_import_tree(&source, tree, &c->import) &&
         hb_schema_from_node(c->arena, &c->diag, c->import.root, HB_SOURCE_DIR, &c->spec);
    hb_diag_print(&c->diag, stderr);
    return ok || complain(c, "import", "failed");
}

static bool check_count(struct test_case *c)
{
    const struct hb_node *published = hb_node_find(c->record, "parameters");
    struct hb_params params;
    int64_t wanted = 0;
    if (!hb_node_int(published, &wanted))
        return true;
    hb_params_count(&c->spec, &params);
    double off = (double)params.total / (double)wanted - 1;
    if (off <= TOLERANCE && off >= -TOLERANCE)
        return true;
    return complain(c, "parameters",
                    hb_arena_printf(c->arena, "%lld published, %lld counted", (long long)wanted,
                                    (long long)params.total));
}

/* The model without its names, and dropout and how q, k and v lie, which cards have none of. */
static const char *model_text(struct hb_arena *arena, struct hb_spec spec)
{
    struct hb_str text;
    hb_str_init(&text, arena);
    struct hb_block *blocks = hb_arena_alloc(arena, (size_t)spec.model.block_count, sizeof *blocks);
    memcpy(blocks, spec.model.blocks, (size_t)spec.model.block_count * sizeof *blocks);
    for (int i = 0; i < spec.model.block_count; i++) {
        blocks[i].name = i ? "b" : "a";
        blocks[i].dropout = 0;
        blocks[i].attention.dropout = 0;
        blocks[i].attention.fused_qkv = blocks[i].attention.split_heads = false;
    }
    spec.model.blocks = blocks;
    spec.model.name = "x";
    struct hb_node *root = hb_schema_emit(arena, &spec, false);
    struct hb_json j = hb_json_begin(&text, NULL, false);
    hb_json_node(&j, hb_node_find(root, "model"));
    return text.text;
}

static bool check_card(struct test_case *c)
{
    const struct hb_node *card = hb_node_find(c->record, "card");
    if (!card || hb_node_is_null(card))
        return true;
    struct hb_spec spec;
    struct hb_node *root = hb_node_new(c->arena, HB_NODE_MAP, (struct hb_loc){.file = "card"});
    const char *set = hb_arena_printf(c->arena, "model.preset=%s", card->text);
    assert_true(hb_schema_set(c->arena, &c->diag, root, set));
    assert_true(hb_schema_from_node(c->arena, &c->diag, root, HB_SOURCE_DIR, &spec));
    const char *theirs = model_text(c->arena, spec);
    const char *ours = model_text(c->arena, c->spec);
    if (hb_str_same(theirs, ours))
        return true;
    fprintf(stderr, "card: %s\nread: %s\n", theirs, ours);
    return complain(c, "layers", "others than the card's");
}

/* A configuration without the names of model and blocks. */
static const char *nameless(struct hb_arena *arena, const struct hb_spec *spec)
{
    struct hb_str text;
    hb_str_init(&text, arena);
    struct hb_node *root = hb_schema_emit(arena, spec, true);
    struct hb_node *model = hb_node_find(root, "model");
    hb_node_drop(model, "name");
    for (struct hb_node *b = hb_node_find(model, "blocks")->first; b; b = b->next)
        hb_node_drop(b, "name");
    struct hb_json j = hb_json_begin(&text, NULL, false);
    hb_json_node(&j, root);
    return text.text;
}

/* The whole configuration of a measured run. */
static bool check_config(struct test_case *c)
{
    const struct hb_node *config = hb_node_find(c->record, "config");
    struct hb_spec spec;
    if (!config)
        return true;
    assert_true(hb_schema_from_node(c->arena, &c->diag, config, HB_SOURCE_DIR, &spec));
    const char *theirs = nameless(c->arena, &spec);
    const char *ours = nameless(c->arena, &c->spec);
    if (hb_str_same(theirs, ours))
        return true;
    size_t at = 0;
    while (theirs[at] == ours[at])
        at++;
    at = at > 60 ? at - 60 : 0;
    fprintf(stderr, "measured: %.160s\nread:     %.160s\n", theirs + at, ours + at);
    return complain(c, "configuration", "another than the measured one's");
}

/* The value at a path of the complete configuration, as JSON. */
static const char *value_at(struct test_case *c, struct hb_node *root, const char *path)
{
    struct hb_str text;
    hb_str_init(&text, c->arena);
    struct hb_node *node = root;
    char word[64];
    while (*path && node) {
        size_t len = strcspn(path, ".");
        snprintf(word, sizeof word, "%.*s", (int)len, path);
        node = node->kind == HB_NODE_LIST ? hb_node_at(node, strtol(word, NULL, 10))
                                          : hb_node_find(node, word);
        path += len + (path[len] == '.');
    }
    if (!node)
        return "nothing";
    struct hb_json j = hb_json_begin(&text, NULL, false);
    hb_json_node(&j, node);
    return text.text;
}

static bool check_keys(struct test_case *c)
{
    const struct hb_node *wishes = hb_node_find(c->record, "expect");
    struct hb_node *full = hb_schema_emit(c->arena, &c->spec, true);
    bool ok = true;
    for (const struct hb_node *n = wishes ? wishes->first : NULL; n; n = n->next) {
        struct hb_str wanted;
        hb_str_init(&wanted, c->arena);
        struct hb_json j = hb_json_begin(&wanted, NULL, false);
        hb_json_node(&j, n);
        const char *found = value_at(c, full, n->key);
        if (!hb_str_same(found, wanted.text))
            ok = complain(c, n->key,
                          hb_arena_printf(c->arena, "%s wanted, %s read", wanted.text, found));
    }
    return ok;
}

/* What has to stand among the keys that are not expressed. */
static bool check_missing(struct test_case *c)
{
    const struct hb_node *list = hb_node_find(c->record, "missing");
    uint32_t wanted = list ? list->count : 0;
    for (const struct hb_node *n = list ? list->first : NULL; n; n = n->next)
        for (uint32_t i = 0; i < c->import.missing.count; i++)
            if (hb_str_starts(c->import.missing.items[i], n->text)) {
                wanted--;
                break;
            }
    if (!wanted && (!list || list->count == c->import.missing.count))
        return true;
    for (uint32_t i = 0; i < c->import.missing.count; i++)
        fprintf(stderr, "%s: not expressed: %s\n", c->id, c->import.missing.items[i]);
    return !list || complain(c, "not expressed", "other keys than wanted");
}

/* What was read, in the words of its program again, reads as the same. */
static bool check_emitted(struct test_case *c, enum hb_emit what)
{
    struct hb_str text, lost;
    struct hb_spec back;
    hb_str_init(&text, c->arena);
    hb_str_init(&lost, c->arena);
    hb_emit_program(what, &text, &c->spec, HB_SOURCE_DIR);
    bool ok = hb_emit_back(c->arena, what, &c->spec, HB_SOURCE_DIR, &back);
    const struct hb_node *unsaid = hb_node_find(c->record, "unsaid");
    if (ok && hb_str_same(nameless(c->arena, &c->spec), nameless(c->arena, &back)))
        return !unsaid || complain(c, "emitted", "all of it is said");
    if (ok)
        hb_emit_lost(&lost, &c->spec, &back);
    if (unsaid && hb_str_same(unsaid->text, ok ? lost.text : "not read back"))
        return true;
    fprintf(stderr, "%s%s", text.text, lost.text);
    return complain(c, "emitted", ok ? "reads as something else" : "does not read");
}

static void check_file(const char *name, int least, enum hb_emit what)
{
    struct hb_arena *arena = hb_arena_new();
    struct hb_arena *scratch = hb_arena_new();
    struct hb_diag diag;
    struct hb_jsonl file;
    int cases = 0;
    int wrong = 0;
    hb_diag_init(&diag, arena);
    assert_true(hb_jsonl_open(arena, &diag, hb_arena_printf(arena, FOLDER "%s", name), &file));
    for (;;) {
        struct hb_node *record = NULL;
        struct hb_arena_mark mark = hb_arena_mark(scratch);
        assert_true(hb_jsonl_next(&file, scratch, &diag, &record));
        if (!record)
            break;
        struct test_case c = {.arena = scratch, .record = record};
        hb_diag_init(&c.diag, scratch);
        c.id = hb_node_find(record, "id")->text;
        wrong += !(read_case(&c) && check_count(&c) && check_card(&c) && check_config(&c) &&
                   check_keys(&c) && check_missing(&c) &&
                   (what == HB_EMIT_NONE || check_emitted(&c, what)));
        cases++;
        hb_arena_rewind(scratch, mark);
    }
    assert_int_equal(wrong, 0);
    assert_true(cases >= least);
    hb_arena_free(scratch);
    hb_arena_free(arena);
}

static void reads_hugging_face(void **state)
{
    (void)state;
    check_file("hf.jsonl", 60, HB_EMIT_NONE);
}

static void reads_maxtext(void **state)
{
    (void)state;
    check_file("maxtext.jsonl", 70, HB_EMIT_MAXTEXT);
}

static void reads_megatron(void **state)
{
    (void)state;
    check_file("megatron.jsonl", 20, HB_EMIT_MEGATRON);
}

static void reads_nemo(void **state)
{
    (void)state;
    check_file("nemo.jsonl", 15, HB_EMIT_MEGATRON);
}

static void reads_torchtitan(void **state)
{
    (void)state;
    check_file("torchtitan.jsonl", 15, HB_EMIT_TORCHTITAN);
}

static void reads_levanter(void **state)
{
    (void)state;
    check_file("levanter.jsonl", 17, HB_EMIT_LEVANTER);
}

static void reads_trainer(void **state)
{
    (void)state;
    check_file("trainer.jsonl", 26, HB_EMIT_TRAINER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_hugging_face), cmocka_unit_test(reads_maxtext),
        cmocka_unit_test(reads_megatron),     cmocka_unit_test(reads_torchtitan),
        cmocka_unit_test(reads_nemo),         cmocka_unit_test(reads_levanter),
        cmocka_unit_test(reads_trainer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
