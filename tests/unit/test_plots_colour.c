/* plots/colour: text can be read on what it stands on, and colours that mean different things
 * stay apart for people who see colours differently. */
#include "tests/unit/unit.h"

#include <math.h>

#include "plots/colour.h"

/* Severity 1.0 of Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of
 * color vision deficiency" (2009), table of matrices; in linear RGB. The first is normal sight. */
static const double sights[4][9] = {
    {1, 0, 0, 0, 1, 0, 0, 0, 1},
    {0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998},
    {0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881},
    {1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900}};

static double to_linear(uint32_t rgb, int shift)
{
    double c = ((rgb >> shift) & 0xFF) / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static double curve(double t)
{
    return t > 216.0 / 24389 ? cbrt(t) : (24389.0 / 27 * t + 16) / 116;
}

/* CIE L*a*b* (D65) of a colour as seen. */
static void to_lab(uint32_t rgb, const double *m, double *lab)
{
    double in[3] = {to_linear(rgb, 16), to_linear(rgb, 8), to_linear(rgb, 0)};
    double c[3];
    for (int i = 0; i < 3; i++) {
        c[i] = m[3 * i] * in[0] + m[3 * i + 1] * in[1] + m[3 * i + 2] * in[2];
        c[i] = c[i] < 0 ? 0 : c[i] > 1 ? 1 : c[i];
    }
    double x = curve((0.4124564 * c[0] + 0.3575761 * c[1] + 0.1804375 * c[2]) / 0.95047);
    double y = curve(0.2126729 * c[0] + 0.7151522 * c[1] + 0.0721750 * c[2]);
    double z = curve((0.0193339 * c[0] + 0.1191920 * c[1] + 0.9503041 * c[2]) / 1.08883);
    lab[0] = 116 * y - 16;
    lab[1] = 500 * (x - y);
    lab[2] = 200 * (y - z);
}

static double difference(uint32_t a, uint32_t b, int sight)
{
    double p[3], q[3];
    to_lab(a, sights[sight], p);
    to_lab(b, sights[sight], q);
    return sqrt(pow(p[0] - q[0], 2) + pow(p[1] - q[1], 2) + pow(p[2] - q[2], 2));
}

/* A difference of 2.3 is just noticeable (Mahy et al. 1994); areas side by side need more. */
static const double least_apart = 12;

typedef uint32_t colour_fn(enum hb_theme theme, int index);

static uint32_t category_colour(enum hb_theme theme, int index)
{
    return hb_ink_category(theme, (enum hb_category)index);
}

/* Each of the colours against each, with one kind of sight. */
static void check_apart(colour_fn *fn, int count, enum hb_theme theme, int sight)
{
    for (int pair = 0; pair < count * count; pair++) {
        int a = pair / count, b = pair % count;
        double d = difference(fn(theme, a), fn(theme, b), sight);
        if (a < b && d < least_apart)
            fail_msg("theme %d, sight %d: %d and %d are %.1f apart", (int)theme, sight, a, b, d);
    }
}

static void categories_and_groups_stay_apart(void **state)
{
    (void)state;
    for (int theme = 0; theme < HB_THEME_COUNT; theme++)
        for (int sight = 0; sight < 4; sight++) {
            check_apart(category_colour, HB_CATEGORY_COUNT, (enum hb_theme)theme, sight);
            check_apart(hb_ink_group, HB_GROUP_COLOURS, (enum hb_theme)theme, sight);
        }
}

static void check_shares(enum hb_theme theme, int sight)
{
    for (double fits = 0; fits <= 1; fits += 0.05)
        for (double lacks = 1.01; lacks < 4; lacks += 0.1)
            if (difference(hb_ink_share(theme, fits), hb_ink_share(theme, lacks), sight) <
                least_apart)
                fail_msg("theme %d, sight %d: %.2f and %.2f of the budget are alike", (int)theme,
                         sight, fits, lacks);
}

static void what_fits_differs_from_what_does_not(void **state)
{
    (void)state;
    for (int theme = 0; theme < HB_THEME_COUNT; theme++)
        for (int sight = 0; sight < 4; sight++)
            check_shares((enum hb_theme)theme, sight);
}

static void text_can_be_read(void **state)
{
    (void)state;
    for (int t = 0; t < HB_THEME_COUNT; t++) {
        enum hb_theme theme = (enum hb_theme)t;
        uint32_t backs[2] = {hb_ink(theme, HB_INK_BACK), hb_ink(theme, HB_INK_PANEL)};
        static const enum hb_ink inks[] = {HB_INK_TEXT, HB_INK_FAINT, HB_INK_BUDGET};
        for (int b = 0; b < 2; b++)
            for (int i = 0; i < 3; i++)
                assert_true(hb_colour_contrast(backs[b], hb_ink(theme, inks[i])) >= 4.5);
        for (double share = -0.1; share < 4; share += 0.01) {
            uint32_t cell = hb_ink_share(theme, share);
            assert_true(hb_colour_contrast(cell, hb_colour_on(cell)) >= 4.5);
        }
        for (int c = 0; c < HB_CATEGORY_COUNT; c++) {
            uint32_t back = hb_ink_category(theme, (enum hb_category)c);
            assert_true(hb_colour_contrast(back, hb_colour_on(back)) >= 4.5);
        }
    }
}

static void shares_darken_towards_the_budget(void **state)
{
    (void)state;
    double last = 2;
    for (double share = 0.05; share <= 1; share += 0.1) {
        double light = hb_colour_luminance(hb_ink_share(HB_THEME_LIGHT, share));
        assert_true(light < last);
        last = light;
    }
    assert_int_equal(hb_ink_share(HB_THEME_LIGHT, -1), hb_ink(HB_THEME_LIGHT, HB_INK_EMPTY));
    assert_int_equal(hb_ink_share(HB_THEME_LIGHT, (double)NAN),
                     hb_ink(HB_THEME_LIGHT, HB_INK_EMPTY));
}

static void colours_mix_and_compare(void **state)
{
    (void)state;
    assert_int_equal(hb_colour_mix(0x000000, 0xFFFFFF, 0), 0x000000);
    assert_int_equal(hb_colour_mix(0x000000, 0xFFFFFF, 1), 0xFFFFFF);
    assert_int_equal(hb_colour_mix(0x102030, 0x304050, 0.5), 0x203040);
    assert_true(fabs(hb_colour_contrast(0x000000, 0xFFFFFF) - 21) < 1e-9);
    assert_true(fabs(hb_colour_contrast(0x777777, 0xFFFFFF) - 4.48) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(categories_and_groups_stay_apart),
        cmocka_unit_test(what_fits_differs_from_what_does_not),
        cmocka_unit_test(text_can_be_read),
        cmocka_unit_test(shares_darken_towards_the_budget),
        cmocka_unit_test(colours_mix_and_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
