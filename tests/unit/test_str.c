/* base/str: growing text and arrays, and the nearest spelling. */
#include "tests/unit/unit.h"

#include <ctype.h>

#include "base/str.h"

static struct hb_arena *arena;

static int start(void **state)
{
    (void)state;
    arena = hb_arena_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    hb_arena_free(arena);
    return 0;
}

static void text_grows(void **state)
{
    (void)state;
    struct hb_str s;
    hb_str_init(&s, arena);
    assert_string_equal(s.text, "");
    for (int i = 0; i < 1000; i++)
        hb_str_addf(&s, "%d,", i);
    assert_int_equal(s.len, 10 * 2 + 90 * 3 + 900 * 4);
    assert_int_equal(strlen(s.text), s.len);
    assert_memory_equal(s.text, "0,1,2,", 6);
    assert_string_equal(s.text + s.len - 8, "998,999,");
}

static void parts_are_added(void **state)
{
    (void)state;
    struct hb_str s;
    hb_str_init(&s, arena);
    hb_str_add(&s, "ab");
    hb_str_addn(&s, "cdef", 2);
    hb_str_addn(&s, "zzz", 0);
    hb_str_add(&s, "");
    assert_string_equal(s.text, "abcd");
}

/* Of two lengths, one of which meets the room that the other left: ended in its own room. */
static void any_two_lengths_are_ended(void **state)
{
    (void)state;
    static char many[400];
    memset(many, 'x', sizeof many);
    for (size_t first = 1; first < 80; first += 7)
        for (size_t second = 0; second < sizeof many; second++) {
            struct hb_str s;
            hb_str_init(&s, arena);
            hb_str_addn(&s, many, first);
            hb_str_addn(&s, many, second);
            assert_true(s.len == first + second && s.len < s.cap);
            assert_int_equal(strlen(s.text), s.len);
        }
}

static void two_empty_texts_are_apart(void **state)
{
    (void)state;
    struct hb_str a;
    struct hb_str b;
    hb_str_init(&a, arena);
    hb_str_init(&b, arena);
    hb_str_add(&a, "a");
    assert_string_equal(b.text, "");
}

static void words_are_compared(void **state)
{
    (void)state;
    assert_true(hb_str_same("mesh", "mesh"));
    assert_false(hb_str_same("mesh", "mes"));
    assert_true(hb_str_starts("mesh.data", "mesh"));
    assert_false(hb_str_starts("me", "mesh"));
    assert_true(hb_str_ends("a.yaml", ".yaml"));
    assert_false(hb_str_ends("yaml", ".yaml"));
    assert_true(hb_str_ends("x", ""));
}

static void the_nearest_word_is_found(void **state)
{
    (void)state;
    static const char *const words[] = {"simulate", "sweep", "plan", "plot", NULL};
    assert_string_equal(hb_str_nearest("simulte", words), "simulate");
    assert_string_equal(hb_str_nearest("plann", words), "plan");
    assert_string_equal(hb_str_nearest("plot", words), "plot");
    assert_string_equal(hb_str_nearest("sweeep", words), "sweep");
    assert_null(hb_str_nearest("banana", words));
    assert_null(hb_str_nearest("", (const char *const[]){"xyz", NULL}));
    assert_null(hb_str_nearest("x", (const char *const[]){NULL}));
}

static void long_words_are_no_trouble(void **state)
{
    (void)state;
    char word[5000];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_null(hb_str_nearest("a", (const char *const[]){word, NULL}));
    /* Too long to be compared: it may name anything or nothing, but must return. */
    (void)hb_str_nearest(word, (const char *const[]){"a", NULL});
}

static void hexadecimal_digits_are_read(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[2] = {(char)c, '\0'};
        long value = isxdigit(c) ? strtol(text, NULL, 16) : -1;
        assert_int_equal(hb_hex_digit((char)c), value);
    }
}

static void arrays_grow(void **state)
{
    (void)state;
    int *items = NULL;
    uint32_t cap = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        items = hb_grow(arena, items, i, &cap, sizeof *items);
        assert_true(cap > i);
        assert_int_equal(items[i], 0);
        items[i] = (int)i * 3;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(items[i], i * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_grows, start, end),
        cmocka_unit_test_setup_teardown(parts_are_added, start, end),
        cmocka_unit_test_setup_teardown(any_two_lengths_are_ended, start, end),
        cmocka_unit_test_setup_teardown(two_empty_texts_are_apart, start, end),
        cmocka_unit_test_setup_teardown(words_are_compared, start, end),
        cmocka_unit_test_setup_teardown(the_nearest_word_is_found, start, end),
        cmocka_unit_test_setup_teardown(long_words_are_no_trouble, start, end),
        cmocka_unit_test_setup_teardown(hexadecimal_digits_are_read, start, end),
        cmocka_unit_test_setup_teardown(arrays_grow, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
