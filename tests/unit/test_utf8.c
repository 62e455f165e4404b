/* base/utf8: which characters are text, held against YAML 1.1's table (c-printable, section 5.1)
 * for each there is, how they are quoted, and what reaches a terminal. */
#include "tests/unit/each.h"

#include "base/json.h"
#include "base/json_write.h"
#include "base/utf8.h"
#include "base/yaml.h"

enum { LAST = 0x10ffff };

/* Inclusive ranges; without U+FEFF, which is a mark and no text. */
static bool is_text(uint32_t code)
{
    static const uint32_t ranges[][2] = {{0x09, 0x0a},     {0x0d, 0x0d},       {0x20, 0x7e},
                                         {0x85, 0x85},     {0xa0, 0xd7ff},     {0xe000, 0xfefe},
                                         {0xff00, 0xfffd}, {0x10000, 0x10ffff}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return false;
}

/* By the table of RFC 3629. */
static size_t encode(uint32_t code, char *out)
{
    static const struct {
        uint32_t below;
        unsigned lead;
        size_t bytes;
    } forms[] = {{0x80, 0, 1}, {0x800, 0xc0, 2}, {0x10000, 0xe0, 3}, {LAST + 1, 0xf0, 4}};
    size_t f = 0;
    while (code >= forms[f].below)
        f++;
    for (size_t i = 0; i < forms[f].bytes; i++) {
        uint32_t bits = code >> 6 * (forms[f].bytes - 1 - i);
        out[i] = (char)(i ? 0x80 | (bits & 0x3f) : forms[f].lead | bits);
    }
    return forms[f].bytes;
}

static bool check(const char *text, size_t len)
{
    struct hb_loc start = {"t", 1, 1};
    hb_diag_init(&u.diag, u.env.arena);
    return hb_utf8_check(&u.diag, start, text, len);
}

static void each_character_is_text_or_not(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= LAST; code++) {
        char text[4], put[4];
        size_t len = encode(code, text);
        struct hb_arena_mark mark = hb_arena_mark(u.env.arena);
        assert_int_equal(check(text, len), is_text(code));
        hb_arena_rewind(u.env.arena, mark);
        assert_int_equal(hb_utf8_put(code, put), len);
        assert_memory_equal(put, text, len);
    }
}

/* Any byte anywhere among others, and where it is said to be. */
static void words_are_read_as_their_bytes(void **state)
{
    (void)state;
    enum { LEN = 19 };
    for (int c = 1; c < 256; c++)
        for (int at = 0; at < LEN; at++) {
            char text[LEN];
            memset(text, 'a', LEN);
            text[at] = (char)c;
            bool good = c < 0x80 && is_text((uint32_t)c);
            assert_int_equal(check(text, LEN), good);
            if (!good)
                assert_int_equal(u.diag.entries[0].loc.column, at + 1);
        }
    assert_false(check("\xc3\xa9\n\xc3\xa9\x01", 6));
    assert_int_equal(u.diag.entries[0].loc.line, 2);
    assert_int_equal(u.diag.entries[0].loc.column, 2);
}

/* Too long, half a pair, beyond the last, cut off, begun in the middle. */
static void what_is_malformed_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {"\xc0\x80",
                                        "\xc1\xbf",
                                        "\xe0\x9f\xbf",
                                        "\xed\xa0\x80",
                                        "\xed\xbf\xbf",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80",
                                        "\xf8\x90\x80\x80",
                                        "\xfc\x80\x80\x80",
                                        "\xc3",
                                        "\xe2\x82",
                                        "\xf0\x9f\x98",
                                        "\x80",
                                        "\xbf",
                                        "\xc3(",
                                        "\xe2\x28\xa1",
                                        "\xe2\x82(",
                                        "\xff"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_false(check(cases[i], strlen(cases[i])));
        assert_non_null(strstr(u.diag.entries[0].text, "is not UTF-8; only text is read"));
    }
}

/* Written as JSON each is read again, by both readers; only what YAML would take for a line break
 * or for no text is escaped beyond ASCII. */
static void quoted_characters_are_read_again(void **state)
{
    (void)state;
    enum { BLOCK = 4096 };
    for (uint32_t first = 0; first <= LAST; first += BLOCK) {
        struct hb_arena_mark mark = hb_arena_mark(u.env.arena);
        struct hb_str plain, quoted;
        struct hb_node *json, *yaml;
        size_t escaped = 0;
        hb_str_init(&plain, u.env.arena);
        hb_str_init(&quoted, u.env.arena);
        for (uint32_t code = first ? first : 1; code < first + BLOCK; code++) {
            char text[4];
            if (code >= 0xd800 && code < 0xe000)
                continue;
            hb_str_addn(&plain, text, encode(code, text));
            escaped += code >= 0x80 &&
                       (!is_text(code) || code == 0x85 || code == 0x2028 || code == 0x2029);
        }
        hb_json_quote(&quoted, plain.text);
        size_t found = 0;
        for (const char *at = quoted.text; (at = strstr(at, "\\u")); at += 2)
            found += strncmp(at, "\\u00", 4) != 0 || strchr("89", at[4]);
        assert_int_equal(found, escaped);
        const char *document = hb_arena_printf(u.env.arena, "{\"a\": %s}", quoted.text);
        const char *other = hb_arena_printf(u.env.arena, "a: %s", quoted.text);
        struct hb_loc start = {"t", 1, 1};
        assert_true(hb_json_parse(u.env.arena, &u.diag, start, document, strlen(document), &json));
        assert_true(hb_yaml_parse(u.env.arena, &u.diag, "t", other, strlen(other), &yaml));
        assert_string_equal(hb_node_find(json, "a")->text, plain.text);
        assert_string_equal(hb_node_find(yaml, "a")->text, plain.text);
        hb_arena_rewind(u.env.arena, mark);
    }
}

/* Only three bytes of their own make a line separator, and none behind the text does. */
static void what_looks_like_a_line_end_stays(void **state)
{
    (void)state;
    static const char cut[] = "\xe2\0\xa8", short_cut[] = "\xc2\0b";
    struct hb_str quoted;
    hb_str_init(&quoted, u.env.arena);
    hb_json_quote(&quoted, "\xd2\x80(\xdf\xbf?\xe2\x80h");
    hb_json_quote(&quoted, cut);
    hb_json_quote(&quoted, short_cut);
    assert_string_equal(quoted.text, "\"\xd2\x80(\xdf\xbf?\xe2\x80h\"\"\xe2\"\"\xc2\"");
}

static void show_part(const char *text, size_t len, bool colours, const char *wanted)
{
    char got[100];
    FILE *f = tmpfile();
    hb_utf8_show(f, text, len, colours);
    rewind(f);
    got[fread(got, 1, sizeof got - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(got, wanted);
}

static void show(const char *text, bool colours, const char *wanted)
{
    show_part(text, strlen(text), colours, wanted);
}

/* A text ends where it is said to end, within a character too. */
static void what_follows_a_text_is_no_part_of_it(void **state)
{
    (void)state;
    static const char text[] = "aa\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
    show_part("ab\xc3\xa9", 3, false, "ab\\xc3");
    for (size_t len = 0; len < sizeof text; len++)
        assert_int_equal(check(text, len),
                         len < 3 || len == 4 || len == 7 || len == sizeof text - 1);
}

/* Of what a terminal would obey only the colours that hbmsim writes itself pass. */
static void a_terminal_is_told_nothing(void **state)
{
    (void)state;
    show("a\tb\nc\xc3\xa9", false, "a\tb\nc\xc3\xa9");
    show("a\rb\x07\x7f", false, "a\\x0db\\x07\\x7f");
    show("\xc2\x85\xc2\x9b\xff\xef\xbb\xbf", false, "\\xc2\\x85\\xc2\\x9b\\xff\\xef\\xbb\\xbf");
    show("\033[1;32mok\033[0m", false, "\\x1b[1;32mok\\x1b[0m");
    static const char *const ours[] = {"\033[1;32m", "\033[0m",  "\033[2m",
                                       "\033[m",     "\033[30m", "\033[37m"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        show(ours[i], true, ours[i]);
    show("\033[3m", true, "\\x1b[3m");
    show("\033[29m", true, "\\x1b[29m");
    show("\033[38m", true, "\\x1b[38m");
    show("\033[1;45m", true, "\\x1b[1;45m");
    show("\033[2J", true, "\\x1b[2J");
    show("\033]0;x\x07", true, "\\x1b]0;x\\x07");
    show("\033[1", true, "\\x1b[1");
    show("\033", true, "\\x1b");
    show("\033(1m", true, "\\x1b(1m");
    show("\001[1m", true, "\\x01[1m");
    show("\033[1;32;1m", true, "\\x1b[1;32;1m");
}

/* Of what is said at most 4 KiB, the end of the buffer left out. */
static void what_is_said_is_cut(void **state)
{
    (void)state;
    char got[6000];
    for (int len = 4090; len < 4100; len++) {
        FILE *f = tmpfile();
        hb_utf8_say(f, "%*s", len, "z");
        rewind(f);
        size_t count = fread(got, 1, sizeof got, f);
        fclose(f);
        assert_int_equal(count, len < 4096 ? len : 4095);
        assert_int_equal(got[count - 1], len < 4096 ? 'z' : ' ');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_character_is_text_or_not),
        TEST(words_are_read_as_their_bytes),
        TEST(what_is_malformed_is_refused),
        TEST(quoted_characters_are_read_again),
        TEST(what_follows_a_text_is_no_part_of_it),
        TEST(a_terminal_is_told_nothing),
        TEST(what_is_said_is_cut),
        TEST(what_looks_like_a_line_end_stays),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
