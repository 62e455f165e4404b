/* base/size: checked arithmetic at the edges, and sizes, times and counts as text. */
#include "tests/unit/unit.h"

#include "base/size.h"

static void sums_and_products_are_checked(void **state)
{
    (void)state;
    int64_t r = 77;
    assert_true(hb_add_i64(INT64_MAX - 1, 1, &r) && r == INT64_MAX);
    assert_false(hb_add_i64(INT64_MAX, 1, &r));
    assert_false(hb_add_i64(INT64_MIN, -1, &r));
    assert_int_equal(r, INT64_MAX); /* untouched */
    assert_true(hb_mul_i64(INT64_C(1) << 31, INT64_C(1) << 31, &r) && r == INT64_C(1) << 62);
    assert_false(hb_mul_i64(INT64_C(1) << 32, INT64_C(1) << 31, &r));
    assert_false(hb_mul_i64(INT64_MIN, -1, &r));
    assert_int_equal(r, INT64_C(1) << 62);
}

static void saturating_forms_stop_at_the_top(void **state)
{
    (void)state;
    assert_int_equal(hb_add_sat(INT64_MAX - 1, 5), INT64_MAX);
    assert_int_equal(hb_add_sat(2, 3), 5);
    assert_int_equal(hb_mul_sat(INT64_C(1) << 40, INT64_C(1) << 40), INT64_MAX);
    assert_int_equal(hb_mul_sat(6, 7), 42);
    assert_true(hb_size_ok(INT64_MAX / 4 - 1));
    assert_false(hb_size_ok(INT64_MAX));
    assert_false(hb_size_ok(-1));
}

static void division_and_rounding_go_up(void **state)
{
    (void)state;
    assert_int_equal(hb_div_up(0, 8), 0);
    assert_int_equal(hb_div_up(1, 8), 1);
    assert_int_equal(hb_div_up(16, 8), 2);
    assert_int_equal(hb_div_up(INT64_MAX, 2), INT64_MAX / 2 + 1);
    assert_int_equal(hb_round_up(0, 512), 0);
    assert_int_equal(hb_round_up(513, 512), 1024);
    assert_int_equal(hb_round_up(INT64_MAX - 1, 512), INT64_MAX);
    assert_int_equal(hb_round_up(13, 12), 24);
    assert_int_equal(hb_round_up(INT64_MAX, 1), INT64_MAX);
}

static void sizes_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {
        {"0", 0},
        {"12", 12},
        {"12 B", 12},
        {"95GiB", INT64_C(95) << 30},
        {"1.5 GB", 1500000000},
        {"16 MiB", 16 << 20},
        {"0.5KiB", 512},
        {"2 kB", 2000},
        {"1TiB", INT64_C(1) << 40},
        {"3 TB", INT64_C(3000000000000)},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t bytes = -1;
        assert_true(hb_size_parse(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
}

static void what_is_no_size_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "GiB",    "-1",  "12 apples",     "1e30", "nan",
                                      "inf", "1 GiBB", " 12", "9999999999TiB", ".",    "1..2"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t bytes = 5;
        assert_false(hb_size_parse(bad[i], &bytes));
        assert_int_equal(bytes, 5);
    }
}

/* At each unit's edge and where digits change. */
static void sizes_are_printed(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } rows[] = {{0, "0 B"},
                {1, "1 B"},
                {512, "512 B"},
                {1023, "1023 B"},
                {1024, "1.00 KiB"},
                {1025, "1.00 KiB"},
                {-2048, "-2.00 KiB"},
                {100 * 1024 - 1, "100.00 KiB"},
                {100 * 1024, "100.0 KiB"},
                {(1 << 20) - 1, "1024.0 KiB"},
                {1 << 20, "1.00 MiB"},
                {(1 << 30) - 1, "1024.0 MiB"},
                {1 << 30, "1.00 GiB"},
                {INT64_C(12047314485), "11.22 GiB"},
                {INT64_C(150) << 30, "150.0 GiB"},
                {(INT64_C(1) << 40) - 1, "1024.0 GiB"},
                {INT64_C(1) << 40, "1.00 TiB"}};
    char text[HB_SIZE_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(hb_size_print(rows[i].bytes, text), rows[i].text);
    assert_true(strlen(hb_size_print(INT64_MAX, text)) < HB_SIZE_TEXT);
    assert_true(strlen(hb_size_print(INT64_MIN, text)) < HB_SIZE_TEXT);
}

static void times_and_counts_are_printed(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *time, *count;
    } rows[] = {{0, "0 ns", "0"},
                {3, "3 ns", "3"},
                {999, "999 ns", "999"},
                {1000, "1.00 us", "1.00 k"},
                {17000, "17.00 us", "17.00 k"},
                {100000, "100.0 us", "100.0 k"},
                {1000000, "1.00 ms", "1.00 M"},
                {45100000, "45.10 ms", "45.10 M"},
                {405000000, "405.0 ms", "405.0 M"},
                {1000000000, "1.00 s", "1.00 B"},
                {INT64_C(8030261248), "8.03 s", "8.03 B"},
                {INT64_C(1000000000000), "1000.0 s", "1.00 T"}};
    char text[HB_SIZE_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(hb_time_print(rows[i].value, text), rows[i].time);
        assert_string_equal(hb_count_print((double)rows[i].value, text), rows[i].count);
    }
}

static void printed_sizes_are_read_again(void **state)
{
    (void)state;
    for (int shift = 0; shift < 50; shift++) {
        char text[HB_SIZE_TEXT];
        int64_t bytes = INT64_C(1) << shift;
        int64_t again = 0;
        assert_true(hb_size_parse(hb_size_print(bytes, text), &again));
        assert_int_equal(again, bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products_are_checked),
        cmocka_unit_test(saturating_forms_stop_at_the_top),
        cmocka_unit_test(division_and_rounding_go_up),
        cmocka_unit_test(sizes_are_read),
        cmocka_unit_test(what_is_no_size_is_refused),
        cmocka_unit_test(sizes_are_printed),
        cmocka_unit_test(times_and_counts_are_printed),
        cmocka_unit_test(printed_sizes_are_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
