/* The YAML reader: trees with places, and everything that it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/yaml.h"

struct bench {
    struct hb_arena *arena;
    struct hb_diag diag;
    struct hb_node *root;
};

static struct bench *bench_of(void **state)
{
    return *state;
}

static int set_up(void **state)
{
    struct hb_arena *arena = hb_arena_new();
    struct bench *b = hb_arena_alloc(arena, 1, sizeof *b);
    b->arena = arena;
    hb_diag_init(&b->diag, arena);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    hb_arena_free(bench_of(state)->arena);
    return 0;
}

static bool parse(struct bench *b, const char *text)
{
    hb_diag_init(&b->diag, b->arena);
    b->root = NULL;
    return hb_yaml_parse(b->arena, &b->diag, "t.yaml", text, strlen(text), &b->root);
}

static void expect_error(struct bench *b, const char *text, int line, int column,
                         const char *message)
{
    assert_false(parse(b, text));
    assert_int_equal(b->diag.errors, 1);
    assert_string_equal(b->diag.entries[0].text, message);
    assert_int_equal(b->diag.entries[0].loc.line, line);
    assert_int_equal(b->diag.entries[0].loc.column, column);
    assert_string_equal(b->diag.entries[0].loc.file, "t.yaml");
}

static void reads_places(void **state)
{
    struct bench *b = bench_of(state);
    assert_true(parse(b, "# c\na: 1\nb:\n  - x: \"2\"\n    y: [3, \xc3\xa9, 5]\n"));
    struct hb_node *a = hb_node_find(b->root, "a");
    assert_int_equal(a->loc.line, 2);
    assert_int_equal(a->loc.column, 4);
    assert_int_equal(a->key_loc.column, 1);
    struct hb_node *item = hb_node_at(hb_node_find(b->root, "b"), 0);
    struct hb_node *x = hb_node_find(item, "x");
    assert_true(x->quoted);
    assert_string_equal(x->text, "2");
    struct hb_node *y = hb_node_find(item, "y");
    assert_int_equal(y->count, 3);
    assert_int_equal(hb_node_at(y, 2)->loc.line, 5);
    assert_int_equal(hb_node_at(y, 2)->loc.column, 15);
    assert_null(hb_node_at(y, 3));
    assert_null(hb_node_find(b->root, "c"));
}

static void reads_values(void **state)
{
    struct bench *b = bench_of(state);
    int64_t whole = 0;
    double real = 0;
    bool truth = false;
    assert_true(parse(b, "[9223372036854775807, -5, 1.5e3, true, ~, '7', 0x10, 08, 1e999, nan]"));
    assert_true(hb_node_int(hb_node_at(b->root, 0), &whole));
    assert_true(whole == INT64_MAX);
    assert_true(hb_node_int(hb_node_at(b->root, 1), &whole));
    assert_int_equal(whole, -5);
    assert_true(hb_node_real(hb_node_at(b->root, 2), &real));
    assert_true(real == 1500);
    assert_false(hb_node_int(hb_node_at(b->root, 2), &whole));
    assert_true(hb_node_bool(hb_node_at(b->root, 3), &truth));
    assert_true(truth);
    assert_true(hb_node_is_null(hb_node_at(b->root, 4)));
    for (int i = 5; i < 10; i++) {
        assert_false(hb_node_int(hb_node_at(b->root, i), &whole));
        if (i != 7) /* 08 is a real number */
            assert_false(hb_node_real(hb_node_at(b->root, i), &real));
    }
    assert_true(parse(b, "9223372036854775808"));
    assert_false(hb_node_int(b->root, &whole));
    assert_true(parse(b, "!!str 5"));
    assert_false(hb_node_int(b->root, &whole));
}

/* Two words, as they stand. */
static void reads_truth(void **state)
{
    struct bench *b = bench_of(state);
    bool truth = false;
    assert_true(parse(b, "[true, false, True, yes, 1, ~, 'true', \"false\", !!str true, [true]]"));
    for (int i = 2; i < 10; i++)
        assert_false(hb_node_bool(hb_node_at(b->root, i), &truth));
    assert_false(hb_node_bool(b->root, &truth));
    assert_true(hb_node_bool(hb_node_at(b->root, 0), &truth) && truth);
    assert_true(hb_node_bool(hb_node_at(b->root, 1), &truth) && !truth);
}

static void expands_aliases(void **state)
{
    struct bench *b = bench_of(state);
    assert_true(parse(b, "a: &x {k: 1}\nb: *x\nc: [*x, *x]\n"));
    struct hb_node *copy = hb_node_find(b->root, "b");
    assert_string_equal(hb_node_find(copy, "k")->text, "1");
    assert_ptr_not_equal(copy, hb_node_find(b->root, "a"));
    assert_int_equal(hb_node_find(b->root, "c")->count, 2);
}

static void refuses_with_places(void **state)
{
    struct bench *b = bench_of(state);
    static const struct {
        const char *text;
        int line;
        int column;
        const char *message;
    } cases[] = {
        {"a: 1\nb: 2\na: 3\n", 3, 1, "key 'a' is written twice; first at line 1, column 1"},
        {"x: {p: 1, p: 2}\n", 1, 11, "key 'p' is written twice; first at line 1, column 5"},
        {"", 0, 0, "is empty; it holds no key"},
        {"# only this\n", 0, 0, "is empty; it holds no key"},
        {"---\n", 0, 0, "is empty; it holds no key"},
        {"a: 1\n---\nb: 2\n", 2, 1, "a second document begins; one file holds one"},
        {"a: *x\n", 1, 4, "alias '*x' has no anchor '&x' before it"},
        {"a: &x [1, *x]\n", 1, 11, "alias '*x' stands within what it names"},
        {"a: !!python/name:os 1\n", 1, 4,
         "tag 'tag:yaml.org,2002:python/name:os' is not known; leave it out"},
        {"a:\n  <<: {b: 1}\n", 2, 3, "merge keys ('<<') are not read; write the keys out"},
        {"? [1]\n: 2\n", 1, 3, "a list stands where a key is wanted"},
        {"a: \"x\\0y\"\n", 1, 4, "the text holds the character U+0000"},
        {"a: x\x01y\n", 1, 5, "character U+0001 is not text; only text is read"},
        {"a: 1\nb: \xff\n", 2, 4, "byte 0xff is not UTF-8; only text is read"},
        {"b: \xc3\xa9\xc3\n", 1, 5, "byte 0xc3 is not UTF-8; only text is read"},
        {"b: \xed\xa0\x80\n", 1, 4, "byte 0xed is not UTF-8; only text is read"},
        {"b: \xc0\x80\n", 1, 4, "byte 0xc0 is not UTF-8; only text is read"},
        {"b: [1, 2\n", 2, 1,
         "not YAML: while parsing a flow sequence, did not find expected ',' or ']'"},
        {"a: 1\n\tb: 2\n", 2, 1,
         "not YAML: while scanning a plain scalar, found a tab character that violates "
         "indentation"},
        {"a: b: c\n", 1, 5, "not YAML: mapping values are not allowed in this context"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_error(b, cases[i].text, cases[i].line, cases[i].column, cases[i].message);
}

/* Each time after the first is told, of few keys and of many. */
static void refuses_keys_again(void **state)
{
    struct bench *b = bench_of(state);
    for (int others = 0; others < 60; others += 10) {
        char text[600];
        size_t len = (size_t)snprintf(text, sizeof text, "a: 1\na: 2\n");
        for (int i = 0; i < others; i++)
            len += (size_t)snprintf(text + len, sizeof text - len, "k%d: 0\n", i);
        snprintf(text + len, sizeof text - len, "a: 3\n");
        assert_false(parse(b, text));
        assert_int_equal(b->diag.errors, 2);
        for (int i = 0; i < 2; i++)
            assert_string_equal(b->diag.entries[i].text,
                                "key 'a' is written twice; first at line 1, column 1");
        assert_int_equal(b->diag.entries[0].loc.line, 2);
        assert_int_equal(b->diag.entries[1].loc.line, others + 3);
    }
}

/* As PyYAML takes it: the last of a key, "<<" behind what the map itself has. */
static void loosely_takes_the_last(void **state)
{
    struct bench *b = bench_of(state);
    static const char text[] =
        "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\n"
        "a: {x: 5, <<: *b, x: 6}\nc: {<<: [*b, *m]}\na: {<<: *m, k: 7, k: 8}\n";
    assert_false(parse(b, text));
    assert_true(hb_yaml_parse_loose(b->arena, &b->diag, "t.yaml", text, strlen(text), &b->root));
    const struct hb_node *a = hb_node_find(b->root, "a"), *c = hb_node_find(b->root, "c");
    assert_int_equal(b->root->count, 4);
    assert_int_equal(a->count, 3);
    assert_string_equal(hb_node_find(a, "k")->text, "8");
    assert_string_equal(hb_node_find(a, "y")->text, "3");
    assert_int_equal(c->count, 3);
    assert_string_equal(hb_node_find(c, "y")->text, "2");
    assert_string_equal(hb_node_find(c, "z")->text, "4");
}

static void loosely_is_bounded(void **state)
{
    struct bench *b = bench_of(state);
    struct hb_str text;
    hb_str_init(&text, b->arena);
    hb_str_add(&text, "a: &a {k0: 0");
    for (int i = 1; i < 1500; i++)
        hb_str_addf(&text, ", k%d: 0", i);
    hb_str_add(&text, "}\nb: {<<: *a");
    for (int i = 0; i < 1000; i++)
        hb_str_addf(&text, ", m%d: 0", i);
    hb_str_add(&text, "}\n");
    hb_diag_init(&b->diag, b->arena);
    assert_false(hb_yaml_parse_loose(b->arena, &b->diag, "t.yaml", text.text, text.len, &b->root));
    assert_string_equal(b->diag.entries[0].text, "more than 2000 keys, merged ones counted");
}

static void refuses_zero_bytes(void **state)
{
    struct bench *b = bench_of(state);
    assert_false(hb_yaml_parse(b->arena, &b->diag, "t.yaml", "a: 1\nb: \0 2", 11, &b->root));
    assert_string_equal(b->diag.entries[0].text, "character U+0000 is not text; only text is read");
    assert_int_equal(b->diag.entries[0].loc.line, 2);
}

static void bounds_depth(void **state)
{
    struct bench *b = bench_of(state);
    char text[20001];
    memset(text, '[', 20000);
    text[20000] = '\0';
    assert_false(parse(b, text));
    assert_string_equal(b->diag.entries[0].text, "nested deeper than 64 levels");
    memset(text + 63, ']', 63);
    text[126] = '\0';
    assert_true(parse(b, text));
}

/* Ten anchors, each nine times the one before: 9^10 nodes if they were expanded. */
static void bounds_aliases(void **state)
{
    struct bench *b = bench_of(state);
    struct hb_str s;
    hb_str_init(&s, b->arena);
    hb_str_add(&s, "a0: &a0 [1,1,1,1,1,1,1,1,1]\n");
    for (int i = 1; i < 10; i++) {
        hb_str_addf(&s, "a%d: &a%d [", i, i);
        for (int k = 0; k < 9; k++)
            hb_str_addf(&s, "%s*a%d", k ? "," : "", i - 1);
        hb_str_add(&s, "]\n");
    }
    assert_false(parse(b, s.text));
    assert_string_equal(b->diag.entries[0].text, "more than 1000000 values, aliases expanded");
    assert_in_range(b->diag.entries[0].loc.line, 6, 8);
}

/* As many values as are allowed, most of them through aliases, and one more. */
static void allows_a_million(void **state)
{
    struct bench *b = bench_of(state);
    for (int more = 0; more < 2; more++) {
        struct hb_str s;
        hb_str_init(&s, b->arena);
        hb_str_add(&s, "a: &a [1");
        for (int i = 1; i < 998; i++) /* 1,002 with the map, two keys and the other list */
            hb_str_add(&s, ",1");
        hb_str_add(&s, "]\nb: [1");
        for (int i = 0; i < 999; i++)
            hb_str_add(&s, ",*a");
        for (int i = 1; i < 996 + more; i++)
            hb_str_add(&s, ",1");
        hb_str_add(&s, "]\n");
        assert_int_equal(parse(b, s.text), !more);
    }
    assert_string_equal(b->diag.entries[0].text, "more than 1000000 values, aliases expanded");
}

/* The last of a name is meant, whole; a thousand may be there. */
static void finds_anchors(void **state)
{
    struct bench *b = bench_of(state);
    assert_true(parse(b, "a: &x 1\nb: &x {k: '2', l: [3]}\nc: *x\nd: &y []\ne: [*y, *x]"));
    const struct hb_node *c = hb_node_find(b->root, "c");
    assert_string_equal(hb_node_find(c, "k")->text, "2");
    assert_true(hb_node_find(c, "k")->quoted);
    assert_false(hb_node_at(hb_node_find(c, "l"), 0)->quoted);
    assert_int_equal(hb_node_at(hb_node_find(b->root, "e"), 1)->count, 2);
    for (int count = 1000; count <= 1001; count++) {
        struct hb_str s;
        hb_str_init(&s, b->arena);
        for (int i = 0; i < count; i++)
            hb_str_addf(&s, "- &a%d %d\n", i, i);
        hb_str_add(&s, "- *a0\n- *a999\n");
        assert_int_equal(parse(b, s.text), count == 1000);
        if (count > 1000)
            expect_error(b, s.text, 1001, 3, "more than 1000 anchors");
        else
            assert_string_equal(hb_node_at(b->root, 1001)->text, "999");
    }
}

/* Aliases may not carry a tree deeper than what can be written. */
static void bounds_alias_depth(void **state)
{
    struct bench *b = bench_of(state);
    struct hb_str s;
    hb_str_init(&s, b->arena);
    hb_str_add(&s, "a: &a ");
    for (int i = 0; i < 40; i++)
        hb_str_add(&s, "[");
    for (int i = 0; i < 40; i++)
        hb_str_add(&s, "]");
    hb_str_add(&s, "\nb: ");
    for (int i = 0; i < 40; i++)
        hb_str_add(&s, "[");
    hb_str_add(&s, "*a");
    for (int i = 0; i < 40; i++)
        hb_str_add(&s, "]");
    assert_false(parse(b, s.text));
    assert_string_equal(b->diag.entries[0].text, "nested deeper than 64 levels");
}

static void reads_files(void **state)
{
    struct bench *b = bench_of(state);
    static const struct {
        const char *path;
        const char *message;
    } cases[] = {
        {"/", "is a directory; a file is wanted"},
        {"/nonexistent/x.yaml", "cannot be read: No such file or directory"},
        {"/dev/null", "is empty; it holds no key"},
        {"/dev/zero", "is larger than 64 MiB, the most that is read"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hb_diag_init(&b->diag, b->arena);
        assert_false(hb_yaml_read_file(b->arena, &b->diag, cases[i].path, &b->root));
        assert_string_equal(b->diag.entries[0].text, cases[i].message);
        assert_string_equal(b->diag.entries[0].loc.file, cases[i].path);
    }
}

/* Plain text that could not stand plain in a line of several, and characters that YAML would
 * take for line breaks. */
static void quotes_what_must_be(void **state)
{
    struct bench *b = bench_of(state);
    static const char text[] =
        "a: x, y\nb: ['- c']\nd: \"\\u0085\\u2028\\uFEFF\\x1b\"\ne:\nf: -.5\n";
    struct hb_str s;
    hb_str_init(&s, b->arena);
    assert_true(parse(b, text));
    hb_yaml_write(&s, b->root);
    assert_string_equal(s.text, "a: \"x, y\"\nb: [\"- c\"]\nd: \"\\u0085\\u2028\\ufeff\\u001b\"\n"
                                "e: null\nf: -.5\n");
    assert_true(parse(b, s.text));
    assert_string_equal(hb_node_find(b->root, "d")->text, "\xc2\x85\xe2\x80\xa8\xef\xbb\xbf\x1b");
    assert_string_equal(hb_node_find(b->root, "a")->text, "x, y");
}

static const char sample[] =
    "hbmsim: 1\nmodel: {name: 'it''s', d_model: 4096, ratio: 1.25}\nlists:\n"
    "  - name: \"a: b\\n\"\n    none: {}\n    windows: [1024, 0]\n    deep: [[1, 2], [], [{x: "
    "y}]]\n"
    "  - yes\n  - 'yes'\n  - '12'\n  - \"\"\n  - \xc3\xa9t\xc3\xa9\nref: &r {k: v}\nalso: *r\n";

static void writes_what_it_reads(void **state)
{
    struct bench *b = bench_of(state);
    struct hb_str once;
    struct hb_str twice;
    hb_str_init(&once, b->arena);
    hb_str_init(&twice, b->arena);
    assert_true(parse(b, sample));
    hb_yaml_write(&once, b->root);
    assert_true(parse(b, once.text));
    hb_yaml_write(&twice, b->root);
    assert_string_equal(once.text, twice.text);
    struct hb_node *lists = hb_node_find(b->root, "lists");
    assert_string_equal(hb_node_find(hb_node_at(lists, 0), "name")->text, "a: b\n");
    assert_true(hb_node_at(lists, 2)->quoted);
    assert_true(hb_node_at(lists, 3)->quoted);
    assert_string_equal(hb_node_at(lists, 4)->text, "");
    assert_string_equal(hb_node_find(hb_node_find(b->root, "model"), "name")->text, "it's");
}

/* Forty bytes are shown whole; of more the first, cut between characters. */
static void shows_what_was_found(void **state)
{
    struct bench *b = bench_of(state);
    static const char forty[] = "0123456789012345678901234567890123456789";
    struct hb_node node = {.kind = HB_NODE_SCALAR, .text = forty};
    assert_string_equal(hb_node_show(b->arena, &node),
                        "'0123456789012345678901234567890123456789'");
    node.text = hb_arena_printf(b->arena, "%s!", forty);
    assert_string_equal(hb_node_show(b->arena, &node),
                        "'0123456789012345678901234567890123456...'");
    node.text = hb_arena_printf(b->arena, "%.35s\xe2\x82\xac\a%s", forty, forty);
    assert_string_equal(hb_node_show(b->arena, &node), "'01234567890123456789012345678901234...'");
    node.text = "a\ab";
    assert_string_equal(hb_node_show(b->arena, &node), "'a?b'");
    node.text = "";
    assert_string_equal(hb_node_show(b->arena, &node), "nothing");
}

/* JSON is read in full, with what libyaml does not know of it; what only begins like it is YAML. */
static void reads_json_in_full(void **state)
{
    struct bench *b = bench_of(state);
    assert_true(parse(b, " \n\t{\"a\": \"\\ud83d\\ude00\\/\", \"b\": 1}"));
    assert_string_equal(hb_node_find(b->root, "a")->text, "\xf0\x9f\x98\x80/");
    assert_true(parse(b, "{a: x, b: 1}"));
    assert_string_equal(hb_node_find(b->root, "a")->text, "x");
}

/* Random bytes in a valid text: any answer but a crash, and an error whenever it is false. */
static void survives_mutation(void **state)
{
    struct bench *b = bench_of(state);
    struct hb_rng rng = hb_rng_seed(7);
    size_t len = sizeof sample - 1;
    for (int i = 0; i < 2000; i++) {
        struct hb_arena_mark mark = hb_arena_mark(b->arena);
        char *text = hb_arena_strndup(b->arena, sample, len);
        for (int64_t k = hb_rng_range(&rng, 1, 4); k > 0; k--)
            text[hb_rng_range(&rng, 0, (int64_t)len - 1)] = (char)hb_rng_range(&rng, 0, 255);
        hb_diag_init(&b->diag, b->arena);
        bool ok = hb_yaml_parse(b->arena, &b->diag, "t.yaml", text, len, &b->root);
        assert_int_equal(ok, b->diag.errors == 0);
        hb_arena_rewind(b->arena, mark);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_places, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_truth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(expands_aliases, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_with_places, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_keys_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loosely_takes_the_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loosely_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_zero_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_depth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(allows_a_million, set_up, tear_down),
        cmocka_unit_test_setup_teardown(finds_anchors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_aliases, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_alias_depth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_what_it_reads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(quotes_what_must_be, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shows_what_was_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_json_in_full, set_up, tear_down),
        cmocka_unit_test_setup_teardown(survives_mutation, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
