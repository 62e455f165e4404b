/* plots/scale: places, ticks and their texts. */
#include "tests/unit/unit.h"

#include <math.h>

#include "base/rng.h"
#include "plots/scale.h"

static void numbers_are_written_as_people_do(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{8, "8"},         {512, "512"},    {1024, "1k"},    {2048, "2k"}, {131072, "128k"},
                 {3000, "3000"},   {4608, "4608"},  {1048576, "1M"}, {0.5, "0.5"}, {0, "0"},
                 {12800, "12800"}, {1e20, "1e+20"}, {5242880, "5M"}};
    char text[HB_TICK_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(hb_human_print(cases[i].value, text), cases[i].text);
}

static void values_have_units(void **state)
{
    (void)state;
    static const struct {
        enum hb_unit unit;
        double value;
        const char *text;
    } cases[] = {{HB_UNIT_BYTES, 80.0 * 0x1p30, "80 GiB"},
                 {HB_UNIT_BYTES, 11.3 * 0x1p30, "11.3 GiB"},
                 {HB_UNIT_BYTES, 0, "0 B"},
                 {HB_UNIT_BYTES, 1536, "1.50 KiB"},
                 {HB_UNIT_BYTES, 341.4 * 0x1p30, "341 GiB"},
                 {HB_UNIT_BYTES, 0x1p43, "8 TiB"},
                 {HB_UNIT_SECONDS, 1.234, "1.23 s"},
                 {HB_UNIT_SECONDS, 0.0451, "45.1 ms"},
                 {HB_UNIT_SECONDS, 1.7e-5, "17 us"},
                 {HB_UNIT_PERCENT, 4.24, "4.2 %"},
                 {HB_UNIT_PERCENT, 55.4, "55 %"},
                 {HB_UNIT_NUMBER, 8192, "8k"}};
    char text[HB_TICK_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(hb_unit_print(cases[i].unit, cases[i].value, text), cases[i].text);
}

static void check_texts(const struct hb_ticks *ticks, const char *const *texts)
{
    int count = 0;
    while (texts[count])
        count++;
    assert_int_equal(ticks->count, count);
    for (int i = 0; i < count; i++)
        assert_string_equal(ticks->tick[i].text, texts[i]);
}

static void axes_have_the_ticks_one_expects(void **state)
{
    (void)state;
    struct hb_ticks ticks;
    struct hb_scale bytes = {.high = 85.0 * 0x1p30, .to_px = 100, .unit = HB_UNIT_BYTES};
    hb_scale_ticks(&bytes, 5, &ticks);
    check_texts(&ticks, (const char *const[]){"0", "20", "40", "60", "80", NULL});
    assert_string_equal(ticks.unit, "GiB");
    struct hb_scale log = {.low = 1, .high = 600, .to_px = 100, .logarithmic = true};
    hb_scale_ticks(&log, 6, &ticks);
    check_texts(&ticks, (const char *const[]){"1", "4", "16", "64", "256", NULL});
    struct hb_scale batch = {.low = 2000, .high = 140000, .to_px = 100, .logarithmic = true};
    hb_scale_ticks(&batch, 8, &ticks);
    check_texts(&ticks, (const char *const[]){"2k", "4k", "8k", "16k", "32k", "64k", "128k", NULL});
    struct hb_scale error = {.low = -12, .high = 12, .to_px = 100, .unit = HB_UNIT_PERCENT};
    hb_scale_ticks(&error, 5, &ticks);
    check_texts(&ticks, (const char *const[]){"\xE2\x88\x92"
                                              "10",
                                              "\xE2\x88\x92"
                                              "5",
                                              "0", "5", "10", NULL});
    struct hb_scale step = {.high = 0.0123, .to_px = 100, .unit = HB_UNIT_SECONDS};
    hb_scale_ticks(&step, 4, &ticks);
    check_texts(&ticks, (const char *const[]){"0", "5", "10", NULL});
    assert_string_equal(ticks.unit, "ms");
}

/* Rising, inside, on their places, no two texts alike, at most as many as wanted. */
static void ticks_keep_the_rules(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(11);
    for (int round = 0; round < 20000; round++) {
        double low = pow(10, (double)hb_rng_range(&rng, -7, 12));
        double high = low * (1.0001 + (double)hb_rng_range(&rng, 0, 1000000) / 1000);
        struct hb_scale s = {.low = hb_rng_range(&rng, 0, 2) ? low : -low,
                             .high = high,
                             .from_px = 10,
                             .to_px = 510,
                             .unit = (enum hb_unit)hb_rng_range(&rng, 0, 3)};
        s.logarithmic = s.low > 0 && hb_rng_range(&rng, 0, 1);
        int want = (int)hb_rng_range(&rng, 2, 20);
        struct hb_ticks ticks;
        hb_scale_ticks(&s, want, &ticks);
        assert_true(ticks.count <= want);
        for (int i = 0; i < ticks.count; i++) {
            const struct hb_tick *t = &ticks.tick[i];
            assert_true(t->px >= 9.99 && t->px <= 510.01);
            assert_true(fabs(t->px - hb_scale_at(&s, t->value)) < 1e-6);
            assert_true(strlen(t->text) > 0);
            if (i == 0)
                continue;
            assert_true(t->value > t[-1].value);
            if (strcmp(t->text, t[-1].text) == 0 && high / fabs(s.low) > 1.01)
                fail_msg("two ticks '%s' from %g to %g", t->text, s.low, s.high);
        }
    }
}

static void scales_hold_their_data(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(5);
    for (int round = 0; round < 2000; round++) {
        double low = (double)hb_rng_range(&rng, 0, 1000);
        double high = low + (double)hb_rng_range(&rng, 0, 1000000);
        bool logarithmic = hb_rng_range(&rng, 0, 1);
        struct hb_scale s = hb_scale_make(low, high, HB_UNIT_NUMBER, logarithmic);
        assert_true(s.low < s.high);
        assert_true(s.low <= fmax(low, 1e-9) && s.high >= high);
        assert_true(!logarithmic || s.low > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_written_as_people_do), cmocka_unit_test(values_have_units),
        cmocka_unit_test(axes_have_the_ticks_one_expects),  cmocka_unit_test(ticks_keep_the_rules),
        cmocka_unit_test(scales_hold_their_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
