/* Words and amounts in log text. */
#include "tests/unit/unit.h"

#include "sim/hlo/logtext.h"

static const struct {
    const char *text;
    int64_t unit;
    int64_t bytes; /* -1: not an amount */
    int64_t step;
} amounts[] = {
    {"17.62G of", 1, 18919330939, 10737418},
    {"48.16GiB (rounded to 51712165888)requested", 1, 51712165888, 1},
    {"10.64GiB (11429599132 bytes) by", 1, 11429599132, 1},
    {"154.06GiB (165425291480B) on", 1, 165425291480, 1},
    {"10.64GiB (about)", 1, 11424613007, 10737418},
    {"59.8 GB, Output", 1, 64209761075, 107374182},
    {"2.00 GiB. GPU", 1, 2147483648, 10737418},
    {"0 bytes is free", 1, 0, 1},
    {" = 21894366976\n", 1, 21894366976, 1},
    {"': 21894366976, 'b'", 1, 21894366976, 1},
    {"137,430,636,656 (127.99 GiB)", 1, 137430636656, 1},
    {"1,2", 1, 1, 1},
    {"12606.06201171875 | reserved", 1 << 20, 13218414080, 1},
    {"17482.0 | max", 1 << 20, 18331205632, 104858},
    {"4.0K", 1, 4096, 102},
    {"112B (0.00%)", 1, 112, 1},
    {"528.00M", 1, 553648128, 10486},
    {"1062 MB |", 1, 1113587712, 1 << 20},
    {"12.3 is no size", 1, -1, 0},
    {"nothing", 1, -1, 0},
    {"", 1, -1, 0},
    {"-5", 1, -1, 0},
    {"99999999999999999999", 1, -1, 0},
    {"9999999999G", 1, -1, 0},
    {"2305843009213693950", 1, 2305843009213693950, 1},
    {"2305843009213693951", 1, -1, 0}, /* a quarter of the range: sums could overflow */
};

static void amounts_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; i++) {
        struct hb_span s = hb_span_of(amounts[i].text);
        struct hb_amount got = {-7, -7};
        bool ok = hb_span_amount(&s, amounts[i].unit, &got);
        assert_int_equal(ok, amounts[i].bytes >= 0);
        if (!ok)
            continue;
        assert_int_equal(got.bytes, amounts[i].bytes);
        assert_int_equal(got.step_bytes, amounts[i].step);
    }
}

static void amounts_before_a_word_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {{"capacity of 79.15 GiB of which 1.04 GiB ", 1116691497},
                 {"and 0 bytes", 0},
                 {"GPU 7", 7},
                 {"460.38 MiB", 482743419},
                 {"MA 4.89 GB         ", 5250597519},
                 {"no figure", -1},
                 {"", -1},
                 {"   ", -1},
                 {"1.04 Gibbons", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hb_amount got = {-1, 0};
        bool ok = hb_span_amount_last(hb_span_of(cases[i].text), &got);
        assert_int_equal(ok, cases[i].bytes >= 0);
        assert_int_equal(got.bytes, cases[i].bytes);
    }
}

static void words_are_found_within_the_span(void **state)
{
    (void)state;
    struct hb_span s = hb_span_of("aab aabc");
    assert_true(hb_span_find(&s, "aabc"));
    assert_ptr_equal(s.at, s.end);
    s = hb_span_of("aab");
    s.end--;
    assert_false(hb_span_find(&s, "aab"));
    assert_false(hb_span_has(s, "b"));
    assert_true(hb_span_starts(s, "aa"));
    assert_false(hb_span_starts(s, "aab"));
}

/* Dimensions are not groups of digits. */
static void numbers_end_at_a_comma(void **state)
{
    (void)state;
    struct hb_span s = hb_span_of("2048,128,128]");
    int64_t value = 0;
    assert_true(hb_span_int(&s, &value));
    assert_int_equal(value, 2048);
    assert_int_equal(*s.at, ',');
    s = hb_span_of("9223372036854775808");
    assert_false(hb_span_int(&s, &value));
    assert_int_equal(value, 2048);
}

static void copies_are_printable_and_bounded(void **state)
{
    (void)state;
    char text[6];
    static const char raw[] = {'a', '\0', '\x1b', 'b', '"', 'c'};
    struct hb_span s = {raw, raw + sizeof raw};
    hb_span_copy(&s, "\"", text, sizeof text);
    assert_string_equal(text, "a??b");
    assert_int_equal(*s.at, '"');
    s = hb_span_of("abcdefgh;");
    hb_span_copy(&s, ";", text, sizeof text);
    assert_string_equal(text, "abcde");
    assert_int_equal(*s.at, ';');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_are_read),
        cmocka_unit_test(amounts_before_a_word_are_read),
        cmocka_unit_test(words_are_found_within_the_span),
        cmocka_unit_test(numbers_end_at_a_comma),
        cmocka_unit_test(copies_are_printable_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
