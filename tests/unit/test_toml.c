/* The TOML reader: what it gives, and the place of what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/toml.h"

static void check(const char *text, const char *json)
{
    struct hb_arena *arena = hb_arena_new();
    struct hb_diag diag;
    struct hb_node *root = NULL;
    struct hb_str out;
    hb_diag_init(&diag, arena);
    hb_str_init(&out, arena);
    bool ok = hb_toml_parse(arena, &diag, "t", text, strlen(text), &root);
    hb_diag_print(&diag, stderr);
    assert_true(ok);
    struct hb_json j = hb_json_begin(&out, NULL, false);
    hb_json_node(&j, root);
    assert_string_equal(out.text, json);
    hb_arena_free(arena);
}

static void refuse(const char *text, int line, int column, const char *why)
{
    struct hb_arena *arena = hb_arena_new();
    struct hb_diag diag;
    struct hb_node *root = NULL;
    hb_diag_init(&diag, arena);
    assert_false(hb_toml_parse(arena, &diag, "t", text, strlen(text), &root));
    assert_int_equal(diag.errors, 1);
    assert_non_null(strstr(diag.entries[0].text, why));
    assert_int_equal(diag.entries[0].loc.line, line);
    assert_int_equal(diag.entries[0].loc.column, column);
    hb_arena_free(arena);
}

static void reads_values(void **state)
{
    (void)state;
    check("a = 1 # one\nb = \"x\\ty\"\nc = 'q\\n'\nd = true\n",
          "{\"a\": 1, \"b\": \"x\\ty\", \"c\": \"q\\\\n\", \"d\": true}");
    check("e = [1, [2, 3],\n 'z', # last\n]\nf = {x = 1, y.z = 2}",
          "{\"e\": [1, [2, 3], \"z\"], \"f\": {\"x\": 1, \"y\": {\"z\": 2}}}");
    check("s = \"\"\"\nab\nc\"\"\"\nu = \"\\u0041\\u00e9\\U0001F600\"\nd = 1979-05-27",
          "{\"s\": \"ab\\nc\", \"u\": \"A\xc3\xa9\xf0\x9f\x98\x80\", \"d\": \"1979-05-27\"}");
    check("\ta\t=\t1\t# tabs\r\n[ b\t]\r\nc = [\t1,\r\n\t2\r\n]\r\n",
          "{\"a\": 1, \"b\": {\"c\": [1, 2]}}");
    check("", "{}");
    check("a = \"\\b\\t\\n\\f\\r\\e\\\"\\\\\"", "{\"a\": \"\\b\\t\\n\\f\\r\\u001b\\\"\\\\\"}");
    check("a = \"\\u0001\\ud7ff\\ue000\\U0010ffff\\uABCDx\"",
          "{\"a\": \"\\u0001\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xea\xaf\x8dx\"}");
    check("a = '''\n\nb'' \\n\n'c'''\nd = ''\ne = '''f'''",
          "{\"a\": \"\\nb'' \\\\n\\n'c\", \"d\": \"\", \"e\": \"f\"}");
    check("a = \"\"\"b\"\" \\t\n\nc\"\"\"#\nd = \"'\"\ne = '\"'",
          "{\"a\": \"b\\\"\\\" \\t\\n\\nc\", \"d\": \"'\", \"e\": \"\\\"\"}");
    check("a = \"\"\"b\\\n\n  c \\ \t\r\n\td\\\n\"\"\"\ne = '''x\\\ny'''",
          "{\"a\": \"bc d\", \"e\": \"x\\\\\\ny\"}");
    check(
        "a = []\nb = {}\nc = [[], {}, [ ] , { } ]\nd = {e = [1], f = {g = 2}, }",
        "{\"a\": [], \"b\": {}, \"c\": [[], {}, [], {}], \"d\": {\"e\": [1], \"f\": {\"g\": 2}}}");
    check("A-b_9 = +1_0.5e-3\n9 = 07:32:00\n'x y' = inf",
          "{\"A-b_9\": \"+1_0.5e-3\", \"9\": \"07:32:00\", \"x y\": \"inf\"}");
    check("# only\n\n  # this", "{}");
    check("a = 1#\n#\nb = [ # one\n # two\n 1 # three\n , # four\n ]", "{\"a\": 1, \"b\": [1]}");
}

static void reads_tables(void **state)
{
    (void)state;
    check(
        "x = 0\n[a]\nb = 1\n[a.c]\nd = 2\n[ e . \"f g\" ]\nh.i = 3\n",
        "{\"x\": 0, \"a\": {\"b\": 1, \"c\": {\"d\": 2}}, \"e\": {\"f g\": {\"h\": {\"i\": 3}}}}");
    check("[[p]]\nn = 1\n[[p]]\nn = 2\n[p.q]\nr = 3\n",
          "{\"p\": [{\"n\": 1}, {\"n\": 2, \"q\": {\"r\": 3}}]}");
}

static void says_where(void **state)
{
    (void)state;
    refuse("a = 1\na = 2\n", 2, 1, "is there twice");
    refuse("a = \"x\n", 1, 7, "the end of a string");
    refuse("a = \n", 1, 5, "a value");
    refuse("a 1\n", 1, 3, "'='");
    refuse("a = 1 2\n", 1, 7, "the end of the line");
    refuse("[a\n", 1, 3, "']'");
    refuse("a = [1 2]\n", 1, 8, "',' or ']'");
    refuse("a = {b = 1", 1, 11, "',' or '}'");
    refuse("a = \"\\q\"\n", 1, 7, "an escape");
    refuse("a = \"\\u00g0\"\n", 1, 10, "hexadecimal");
    refuse("a = 1\n[a.b]\n", 2, 4, "has a value already");
    refuse("a = 1\n[[a]]\n", 2, 6, "no array of tables");
    refuse("= 1\n", 1, 1, "a key");
    refuse("a = \"\\u0000\"", 1, 12, "U+0000 is no character");
    refuse("a = \"\\ud800\"", 1, 12, "U+D800 is no character");
    refuse("a = \"\\U00110000\"", 1, 16, "U+110000 is no character");
    refuse("a = \"\\u12", 1, 10, "hexadecimal");
    refuse("a = \"\\", 1, 7, "an escape");
    refuse("a = \"\"\"x\"\"", 1, 11, "the end of a string");
    refuse("a = 'x", 1, 7, "the end of a string");
    refuse("a. = 1\n", 1, 4, "a key");
    refuse("a = 1\na.b = 2\n", 2, 3, "has a value already");
    refuse("a = {b}", 1, 7, "'='");
    refuse("a = {b = 1, b = 2}", 1, 13, "is there twice");
    refuse("a = [1,", 1, 8, "a value");
    refuse("a = [1", 1, 7, "',' or ']'");
    refuse("[[a]\n", 1, 5, "']'");
    refuse("[a.]\n", 1, 4, "a key");
    refuse("a = []\n[a.b]\n", 2, 4, "has a value already");
    refuse("\"a\n\" = 1", 1, 3, "the end of a string");
    refuse("a = \"x\\q\"", 1, 8, "an escape");
    refuse("a\x01 = 1", 1, 2, "not");
    refuse("a = \"\\udfff\"", 1, 12, "U+DFFF is no character");
    refuse("a = '''x\ny''\n", 3, 1, "ends where the end of a string");
    refuse("a = \"\"\"x\n\\q\"\"\"", 2, 2, "an escape");
    refuse("a = \"\"\"x\\ y\"\"\"", 1, 10, "an escape");
    refuse("a = \"x\\\n\"", 1, 8, "an escape");
    refuse("a = {b = 1 c = 2}", 1, 12, "',' or '}'");
    refuse("a = {b = 1\n", 2, 1, "ends where ',' or '}'");
    refuse("a = [\n1,\n2\n3]", 4, 1, "'3' where ',' or ']'");
    refuse("a = {\"b\" 1}", 1, 10, "'='");
    refuse("a = @", 1, 5, "'@' where a value");
    refuse("a = 1 # one\nb = 2 c", 2, 7, "'c' where the end of the line");
    refuse("a b = 1", 1, 3, "'b' where '='");
    refuse("[a] b = 1", 1, 5, "'b' where the end of the line");
    refuse("[a\nb]", 1, 3, "'\\n' where ']'");
    refuse("[[a] ]", 1, 5, "' ' where ']'");
    refuse("[]", 1, 2, "']' where a key");
    refuse("a.b = 1\n[a.b.c]", 2, 6, "has a value already");
    refuse("[[a]]\nb = 1\n[a.b]", 3, 6, "has a value already");
    refuse("[a]\n[[a]]", 2, 6, "no array of tables");
}

/* A table is looked through for each key, so that a file of nothing but keys would take hours. */
static void limits_keys(void **state)
{
    (void)state;
    static const char *const around[][2] = {{"", " = 1"}, {"", ".x = 1"}, {"[", "]"}, {"[[", "]]"}};
    for (size_t f = 0; f < sizeof around / sizeof *around; f++) {
        struct hb_arena *arena = hb_arena_new();
        struct hb_diag diag;
        struct hb_node *root = NULL;
        struct hb_str text;
        hb_diag_init(&diag, arena);
        hb_str_init(&text, arena);
        for (int i = 0; i < 2000; i++)
            hb_str_addf(&text, "%sk%d%s\n", around[f][0], i, around[f][1]);
        assert_true(hb_toml_parse(arena, &diag, "t", text.text, text.len, &root));
        assert_int_equal(root->count, 2000);
        hb_str_addf(&text, "%sk%s\n", around[f][0], around[f][1]);
        assert_false(hb_toml_parse(arena, &diag, "t", text.text, text.len, &root));
        assert_non_null(strstr(diag.entries[0].text, "more than 2000 keys in one table"));
        assert_int_equal(diag.entries[0].loc.line, 2001);
        hb_arena_free(arena);
    }
}

/* "a = [0,0,...]" with so many zeros; the key and the list are values, too. */
static char *zeros(size_t count)
{
    char *text = malloc(5 + 2 * count + 1);
    assert_non_null(text);
    memcpy(text, "a = [", 5);
    for (size_t i = 0; i < count; i++)
        memcpy(text + 5 + 2 * i, "0,", 2);
    memcpy(text + 5 + 2 * count - 1, "]", 2);
    return text;
}

static void limits_values(void **state)
{
    (void)state;
    char *most = zeros(HB_NODE_MAX_COUNT - 2), *more = zeros(HB_NODE_MAX_COUNT - 1);
    struct hb_arena *arena = hb_arena_new();
    struct hb_diag diag;
    struct hb_node *root = NULL;
    hb_diag_init(&diag, arena);
    assert_true(hb_toml_parse(arena, &diag, "t", most, strlen(most), &root));
    assert_int_equal(hb_node_find(root, "a")->count, HB_NODE_MAX_COUNT - 2);
    hb_arena_free(arena);
    refuse(more, 1, 6 + 2 * (HB_NODE_MAX_COUNT - 2), "more than 1000000 values");
    free(more);
    free(most);
}

static void limits_depth(void **state)
{
    (void)state;
    char text[256] = "a = ";
    memset(text + 4, '[', 200);
    refuse(text, 1, 68, "nested more than");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_values), cmocka_unit_test(reads_tables),
        cmocka_unit_test(says_where),   cmocka_unit_test(limits_depth),
        cmocka_unit_test(limits_keys),  cmocka_unit_test(limits_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
