/* The JSON reader, the walk over record files, and the writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/rng.h"

struct bench {
    struct hb_arena *arena;
    struct hb_diag diag;
    struct hb_node *root;
};

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
    struct bench *b = *state;
    hb_arena_free(b->arena);
    return 0;
}

static bool parse(struct bench *b, const char *text)
{
    hb_diag_init(&b->diag, b->arena);
    struct hb_loc start = {"r.jsonl", 7, 1};
    return hb_json_parse(b->arena, &b->diag, start, text, strlen(text), &b->root);
}

static void reads_values(void **state)
{
    struct bench *b = *state;
    assert_true(parse(b, " {\"a\": [1, -2.5e3, true, null, \"x\"],\n \"\\u00e9\": {}} "));
    struct hb_node *a = hb_node_find(b->root, "a");
    assert_int_equal(b->root->loc.line, 7);
    assert_int_equal(b->root->loc.column, 2);
    assert_int_equal(a->loc.column, 8);
    assert_int_equal(a->count, 5);
    assert_true(hb_node_is_null(hb_node_at(a, 3)));
    assert_true(hb_node_at(a, 4)->quoted);
    struct hb_node *e = hb_node_find(b->root, "\xc3\xa9");
    assert_int_equal(e->key_loc.line, 8);
    assert_int_equal(e->loc.column, 12);
    assert_int_equal(e->kind, HB_NODE_MAP);
    double real = 0;
    assert_true(hb_node_real(hb_node_at(a, 1), &real));
    assert_true(real == -2500);
}

static void reads_escapes(void **state)
{
    struct bench *b = *state;
    assert_true(parse(b, "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\ud83d\\ude00\\u20ac\""));
    assert_string_equal(b->root->text, "\"\\/\b\f\n\r\tA\xf0\x9f\x98\x80\xe2\x82\xac");
    /* the ends of each range */
    static const char *const pairs[][2] = {
        {"\\u0001", "\x01"},
        {"\\u007f", "\x7f"},
        {"\\u0080", "\xc2\x80"},
        {"\\u07ff", "\xdf\xbf"},
        {"\\u0800", "\xe0\xa0\x80"},
        {"\\ud7ff", "\xed\x9f\xbf"},
        {"\\ue000", "\xee\x80\x80"},
        {"\\uFfFf", "\xef\xbf\xbf"},
        {"\\ud800\\udc00", "\xf0\x90\x80\x80"},
        {"\\uD83D\\uDFFF", "\xf0\x9f\x9f\xbf"},
        {"\\udbff\\udfff", "\xf4\x8f\xbf\xbf"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_true(parse(b, hb_arena_printf(b->arena, "\"%s\"", pairs[i][0])));
        assert_string_equal(b->root->text, pairs[i][1]);
    }
}

/* Twice in the k-th form of two values. */
static void check_around(struct bench *b, const char *word, size_t k)
{
    static const char *const before[] = {"[", "[ ", "{\"a\":", "\n\n["};
    static const char *const between[] = {",", "\t,\r\n", ",\"b\":", " , "};
    static const char *const behind[] = {"]", " ]", "}", "]\n "};
    assert_true(parse(
        b, hb_arena_printf(b->arena, "%s%s%s%s%s", before[k], word, between[k], word, behind[k])));
    bool map = b->root->kind == HB_NODE_MAP;
    assert_int_equal(b->root->count, 2);
    for (int n = 0; n < 2; n++)
        assert_string_equal(
            (map ? hb_node_find(b->root, n ? "b" : "a") : hb_node_at(b->root, n))->text, word);
}

/* Each alone, in a list, and before the end of the text that can be read. */
static void reads_words_to_their_end(void **state)
{
    struct bench *b = *state;
    static const char *const words[] = {"true", "false", "null",   "0",     "-0",    "7",
                                        "10",   "0.5",   "-12.05", "1e5",   "1E5",   "1e+05",
                                        "3e-7", "0e0",   "9.90",   "1.5E2", "-1e-1", "1234567890"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_true(parse(b, words[i]));
        assert_int_equal(b->root->kind, HB_NODE_SCALAR);
        assert_string_equal(b->root->text, words[i]);
        assert_false(b->root->quoted);
        for (size_t k = 0; k < 4; k++)
            check_around(b, words[i], k);
    }
}

static void counts_columns_by_characters(void **state)
{
    struct bench *b = *state;
    struct hb_loc start = {"r.jsonl", 7, 5};
    static const char text[] = "[\"\xc3\xa9\",\n \"\xe2\x82\xac\", {\"\xc3\xa9\": 1}]";
    assert_true(hb_json_parse(b->arena, &b->diag, start, text, sizeof text - 1, &b->root));
    assert_int_equal(b->root->loc.column, 5);
    assert_int_equal(hb_node_at(b->root, 0)->loc.column, 6);
    assert_int_equal(hb_node_at(b->root, 1)->loc.line, 8);
    assert_int_equal(hb_node_at(b->root, 1)->loc.column, 2);
    const struct hb_node *map = hb_node_at(b->root, 2);
    assert_int_equal(map->loc.column, 7);
    assert_int_equal(hb_node_find(map, "\xc3\xa9")->key_loc.column, 8);
    assert_int_equal(hb_node_find(map, "\xc3\xa9")->loc.column, 13);
    static const char broken[] = "[\"\xc3\xa9\" x]";
    assert_false(hb_json_parse(b->arena, &b->diag, start, broken, sizeof broken - 1, &b->root));
    assert_int_equal(b->diag.entries[0].loc.column, 10);
}

static const struct {
    const char *text;
    int column;
    const char *message;
} refused[] = {
    {"", 1, "not JSON: ends where a value is wanted"},
    {"{", 2, "not JSON: ends where a key in quotes is wanted"},
    {"{\"a\" 1}", 6, "not JSON: '1' where ':' is wanted"},
    {"{\"a\": }", 7, "not JSON: '}' where a value is wanted"},
    {"{\"a\": 1,}", 9, "not JSON: '}' where a key in quotes is wanted"},
    {"{\"a\": 1 \"b\": 2}", 9, "not JSON: '\"' where ',' or '}' is wanted"},
    {"[1, 2", 6, "not JSON: ends where ',' or ']' is wanted"},
    {"[1,]", 4, "not JSON: ']' where a value is wanted"},
    {"{a: 1}", 2, "not JSON: 'a' where a key in quotes is wanted"},
    {"01", 1, "not JSON: '0' where a value is wanted"},
    {"1.", 1, "not JSON: '1' where a value is wanted"},
    {"-", 1, "not JSON: '-' where a value is wanted"},
    {"1e", 1, "not JSON: '1' where a value is wanted"},
    {"+1", 1, "not JSON: '+' where a value is wanted"},
    {"NaN", 1, "not JSON: 'N' where a value is wanted"},
    {"truex", 1, "not JSON: 't' where a value is wanted"},
    {"tru", 1, "not JSON: 't' where a value is wanted"},
    {"[nul]", 2, "not JSON: 'n' where a value is wanted"},
    {"true1", 1, "not JSON: 't' where a value is wanted"},
    {"1.5.", 1, "not JSON: '1' where a value is wanted"},
    {"[-a]", 2, "not JSON: '-' where a value is wanted"},
    {"1e+", 1, "not JSON: '1' where a value is wanted"},
    {"1e+-1", 1, "not JSON: '1' where a value is wanted"},
    {".5", 1, "not JSON: '.' where a value is wanted"},
    {"0x1", 1, "not JSON: '0' where a value is wanted"},
    {"[", 2, "not JSON: ends where a value is wanted"},
    {"[1}", 3, "not JSON: '}' where ',' or ']' is wanted"},
    {"[}", 2, "not JSON: '}' where a value is wanted"},
    {"{]", 2, "not JSON: ']' where a key in quotes is wanted"},
    {"{\"a\": 1]", 8, "not JSON: ']' where ',' or '}' is wanted"},
    {"{\"a\"", 5, "not JSON: ends where ':' is wanted"},
    {"{\"a\":", 6, "not JSON: ends where a value is wanted"},
    {"{\"a\": [1 2]}", 10, "not JSON: '2' where ',' or ']' is wanted"},
    {"{\"a\": 1, \"b\": {\"b\": 1, \"b\": 2}}", 24,
     "key 'b' is written twice; first at line 7, column 16"},
    {"[] []", 4, "not JSON: '[' where the end is wanted"},
    {"1 2", 3, "not JSON: '2' where the end is wanted"},
    {"{\"abc", 6, "not JSON: ends where the closing '\"' of a string is wanted"},
    {"{\"a\tb\": 1}", 4, "not JSON: '\\x09' where the closing '\"' of a string is wanted"},
    {"{\"\\x\": 1}", 4, "not JSON: 'x' where an escape (one of \"\\/bfnrtu) is wanted"},
    {"[\"abc", 6, "not JSON: ends where the closing '\"' of a string is wanted"},
    {"\"abc", 5, "not JSON: ends where the closing '\"' of a string is wanted"},
    {"\"a\nb\"", 3, "not JSON: '\\n' where the closing '\"' of a string is wanted"},
    {"\"\\x\"", 3, "not JSON: 'x' where an escape (one of \"\\/bfnrtu) is wanted"},
    {"\"\\u12g4\"", 6, "not JSON: 'g' where a hexadecimal digit is wanted"},
    {"\"\\ud800\"", 8, "not JSON: '\"' where the second half of a \\u pair is wanted"},
    {"\"\\ude00\"", 8, "not JSON: '\"' where the second half of a \\u pair is wanted"},
    {"\"\\udfff\"", 8, "not JSON: '\"' where the second half of a \\u pair is wanted"},
    {"\"\\ud83dxu\"", 8, "not JSON: 'x' where the second half of a \\u pair is wanted"},
    {"\"\\ud83d\\n\"", 8, "not JSON: '\\' where the second half of a \\u pair is wanted"},
    {"\"\\ud83d\\u", 10, "not JSON: ends where a hexadecimal digit is wanted"},
    {"\"\\ud83d\\", 8, "not JSON: '\\' where the second half of a \\u pair is wanted"},
    {"\"\\ud83d\\u1", 11, "not JSON: ends where a hexadecimal digit is wanted"},
    {"\"\\ud83d\\u12g4\"", 12, "not JSON: 'g' where a hexadecimal digit is wanted"},
    {"\"\\ud83d\\u0041\"", 14, "not JSON: '\"' where the second half of a \\u pair is wanted"},
    {"\"\\ud83d\\udbff\"", 14, "not JSON: '\"' where the second half of a \\u pair is wanted"},
    {"\"\\ud83d\\ue000\"", 14, "not JSON: '\"' where the second half of a \\u pair is wanted"},
    {"\"\\u12", 6, "not JSON: ends where a hexadecimal digit is wanted"},
    {"\"\\", 3, "not JSON: ends where an escape (one of \"\\/bfnrtu) is wanted"},
    {"\"\\u0000\"", 8, "not JSON: the character U+0000 is not text"},
    {"[\xc3\xa9]", 2, "not JSON: '\xc3\xa9' where a value is wanted"},
    {"[\"\xc3\xa9\", x]", 7, "not JSON: 'x' where a value is wanted"},
    {"[\"\xff\"]", 3, "byte 0xff is not UTF-8; only text is read"},
    {"{\"a\": 1, \"a\": 2}", 10, "key 'a' is written twice; first at line 7, column 2"},
};

static void refuses_with_places(void **state)
{
    struct bench *b = *state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_false(parse(b, refused[i].text));
        assert_int_equal(b->diag.errors, 1);
        assert_string_equal(b->diag.entries[0].text, refused[i].message);
        assert_int_equal(b->diag.entries[0].loc.line, 7);
        assert_int_equal(b->diag.entries[0].loc.column, refused[i].column);
    }
}

static void finds_duplicates_among_many(void **state)
{
    struct bench *b = *state;
    struct hb_str s;
    hb_str_init(&s, b->arena);
    for (int i = 0; i < 3000; i++)
        hb_str_addf(&s, "%c\"k%d\": %d", i ? ',' : '{', i == 2500 ? 17 : i, i);
    hb_str_add(&s, "}");
    assert_false(parse(b, s.text));
    assert_int_equal(b->diag.errors, 1);
    assert_non_null(strstr(b->diag.entries[0].text, "key 'k17' is written twice"));
}

static void bounds_depth_and_count(void **state)
{
    struct bench *b = *state;
    char deep[200];
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    deep[130] = '\0';
    assert_false(parse(b, deep));
    assert_string_equal(b->diag.entries[0].text, "nested deeper than 64 levels");
    memset(deep + 64, ']', 64);
    deep[128] = '\0';
    assert_true(parse(b, deep));
    size_t len = 2 * (HB_NODE_MAX_COUNT + 1) + 1;
    char *many = hb_arena_alloc(b->arena, len + 1, 1);
    for (size_t i = 0; i < len; i++)
        many[i] = i % 2 ? '1' : ',';
    many[0] = '[';
    many[len - 1] = ']';
    assert_false(parse(b, many));
    assert_string_equal(b->diag.entries[0].text, "more than 1000000 values");
    many[len - 3] = ']'; /* the list itself is one */
    many[len - 2] = '\0';
    assert_false(parse(b, many));
    many[len - 5] = ']';
    many[len - 4] = '\0';
    assert_true(parse(b, many));
    assert_int_equal(b->root->count, HB_NODE_MAX_COUNT - 1);
}

static void walks_records(void **state)
{
    struct bench *b = *state;
    static const char text[] = "{\"id\": 1}\n\n{\"id\": }\n{\"id\": 3}\n  "; /* no end of line */
    struct hb_jsonl file = {.path = "r.jsonl", .text = text, .len = sizeof text - 1};
    assert_true(hb_jsonl_next(&file, b->arena, &b->diag, &b->root));
    assert_string_equal(hb_node_find(b->root, "id")->text, "1");
    assert_false(hb_jsonl_next(&file, b->arena, &b->diag, &b->root));
    assert_int_equal(b->diag.entries[0].loc.line, 3);
    assert_int_equal(b->diag.entries[0].loc.column, 8);
    assert_true(hb_jsonl_next(&file, b->arena, &b->diag, &b->root));
    assert_string_equal(hb_node_find(b->root, "id")->text, "3");
    assert_int_equal(file.line, 4);
    assert_true(hb_jsonl_next(&file, b->arena, &b->diag, &b->root));
    assert_null(b->root);
    assert_false(hb_jsonl_open(b->arena, &b->diag, "/nonexistent", &file));
}

static void prints_reals_shortest(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.1, "0.1"},    {30.0, "30"},
                 {1e22, "1e+22"}, {1.0 / 3, "0.3333333333333333"},
                 {-2.5, "-2.5"},  {0.1 + 0.2, "0.30000000000000004"}};
    char text[HB_REAL_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(hb_real_print(cases[i].value, text), cases[i].text);
}

static void writes_documents(void **state)
{
    struct bench *b = *state;
    struct hb_str s;
    hb_str_init(&s, b->arena);
    struct hb_json j = hb_json_begin(&s, NULL, false);
    hb_json_object(&j);
    hb_json_key(&j, "a");
    hb_json_array(&j);
    hb_json_int(&j, INT64_MIN);
    hb_json_real(&j, 0.5);
    hb_json_bool(&j, false);
    hb_json_text(&j, NULL);
    hb_json_array_end(&j);
    hb_json_key(&j, "e\"\n\x01");
    hb_json_object(&j);
    hb_json_object_end(&j);
    hb_json_put_known(&j, "f", 0);
    hb_json_put_known(&j, "g", -1);
    hb_json_object_end(&j);
    hb_json_end(&j);
    assert_string_equal(s.text, "{\"a\": [-9223372036854775808, 0.5, false, null], "
                                "\"e\\\"\\n\\u0001\": {}, \"f\": 0, \"g\": null}\n");
    assert_true(parse(b, s.text));
}

static void writes_lines(void **state)
{
    struct bench *b = *state;
    struct hb_str s;
    hb_str_init(&s, b->arena);
    assert_true(parse(b, "{\"a\": [1, \"1\"], \"b\": {\"c\": true}, \"d\": []}"));
    struct hb_json j = hb_json_begin(&s, NULL, true);
    hb_json_node(&j, b->root);
    hb_json_end(&j);
    assert_string_equal(s.text,
                        "{\n  \"a\": [\n    1,\n    \"1\"\n  ],\n  \"b\": {\n    \"c\": true\n"
                        "  },\n  \"d\": []\n}\n");
}

static void writes_long_files(void **state)
{
    struct bench *b = *state;
    struct hb_str s;
    hb_str_init(&s, b->arena);
    FILE *file = tmpfile();
    assert_non_null(file);
    struct hb_json j = hb_json_begin(&s, file, true);
    hb_json_array(&j);
    for (int i = 0; i < 40000; i++)
        hb_json_int(&j, i);
    hb_json_array_end(&j);
    hb_json_end(&j);
    long len = ftell(file);
    assert_true(len > 200000 && s.cap < 200000);
    char *text = hb_arena_alloc(b->arena, (size_t)len + 1, 1);
    rewind(file);
    assert_int_equal(fread(text, 1, (size_t)len, file), len);
    fclose(file);
    assert_true(parse(b, text));
    assert_int_equal(b->root->count, 40000);
}

static void survives_mutation(void **state)
{
    struct bench *b = *state;
    static const char sample[] =
        "{\"a\": [1, -2.5e3, true, null, \"x\\u00e9\\n\"], \"b\": {\"c\": {}},"
        " \"\xc3\xa9\": \"\xf0\x9f\x98\x80\", \"l\": [[[]]]}";
    struct hb_rng rng = hb_rng_seed(11);
    size_t len = sizeof sample - 1;
    for (int i = 0; i < 2000; i++) {
        struct hb_arena_mark mark = hb_arena_mark(b->arena);
        char *text = hb_arena_strndup(b->arena, sample, len);
        for (int64_t k = hb_rng_range(&rng, 1, 4); k > 0; k--)
            text[hb_rng_range(&rng, 0, (int64_t)len - 1)] = (char)hb_rng_range(&rng, 0, 255);
        size_t cut = (size_t)hb_rng_range(&rng, 0, (int64_t)len);
        hb_diag_init(&b->diag, b->arena);
        struct hb_loc start = {"r.jsonl", 1, 1};
        text[i % 2 ? len : cut] = '\0';
        bool ok = hb_json_parse(b->arena, &b->diag, start, text, i % 2 ? len : cut, &b->root);
        assert_int_equal(ok, b->diag.errors == 0);
        hb_arena_rewind(b->arena, mark);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_escapes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_words_to_their_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(counts_columns_by_characters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_with_places, set_up, tear_down),
        cmocka_unit_test_setup_teardown(finds_duplicates_among_many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_depth_and_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(walks_records, set_up, tear_down),
        cmocka_unit_test_setup_teardown(prints_reals_shortest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_documents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_long_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(survives_mutation, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
