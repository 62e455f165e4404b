/* The tables of colours and the arithmetic on them: see colour.h. */
#include "plots/colour.h"

#include <math.h>

static const uint32_t inks[HB_THEME_COUNT][HB_INK_COUNT] = {
    [HB_THEME_LIGHT] = {[HB_INK_BACK] = 0xFFFFFF,
                        [HB_INK_PANEL] = 0xF7F8FA,
                        [HB_INK_TEXT] = 0x1B1F24,
                        [HB_INK_FAINT] = 0x57606A,
                        [HB_INK_GRID] = 0xE2E6EA,
                        [HB_INK_AXIS] = 0x8C959F,
                        [HB_INK_BUDGET] = 0xC23A00,
                        [HB_INK_FITS] = 0x0072B2,
                        [HB_INK_LACKS] = 0xD55E00,
                        [HB_INK_EMPTY] = 0xD5D9DE,
                        [HB_INK_BEST] = 0x000000},
    [HB_THEME_DARK] = {[HB_INK_BACK] = 0x14171C,
                       [HB_INK_PANEL] = 0x1B1F26,
                       [HB_INK_TEXT] = 0xE8EBEF,
                       [HB_INK_FAINT] = 0xA3ACB8,
                       [HB_INK_GRID] = 0x2F353E,
                       [HB_INK_AXIS] = 0x6B7582,
                       [HB_INK_BUDGET] = 0xFF8A4C,
                       [HB_INK_FITS] = 0x56B4E9,
                       [HB_INK_LACKS] = 0xE67A2E,
                       [HB_INK_EMPTY] = 0x3A414B,
                       [HB_INK_BEST] = 0xFFFFFF},
};

static const uint32_t categories[HB_THEME_COUNT][HB_CATEGORY_COUNT] = {
    [HB_THEME_LIGHT] = {[HB_CAT_PARAMS] = 0x332288,
                        [HB_CAT_OPTIMIZER] = 0x88CCEE,
                        [HB_CAT_GRADIENTS] = 0x44AA99,
                        [HB_CAT_SAVED] = 0xCC6677,
                        [HB_CAT_WORKING] = 0xDDCC77,
                        [HB_CAT_LOGITS] = 0x117733,
                        [HB_CAT_COMMUNICATION] = 0xAA4499,
                        [HB_CAT_PADDING] = 0xC4C9CF,
                        [HB_CAT_FRAGMENTATION] = 0x515962,
                        [HB_CAT_EMA] = 0x999933,
                        [HB_CAT_INPUTS] = 0x7B203C,
                        [HB_CAT_RUNTIME] = 0x14181C},
    [HB_THEME_DARK] = {[HB_CAT_PARAMS] = 0x6A5ACD,
                       [HB_CAT_OPTIMIZER] = 0x88CCEE,
                       [HB_CAT_GRADIENTS] = 0x45BA8C,
                       [HB_CAT_SAVED] = 0xEF7274,
                       [HB_CAT_WORKING] = 0xDDCC77,
                       [HB_CAT_LOGITS] = 0x339057,
                       [HB_CAT_COMMUNICATION] = 0xC063B0,
                       [HB_CAT_PADDING] = 0x757D87,
                       [HB_CAT_FRAGMENTATION] = 0x4F5761,
                       [HB_CAT_EMA] = 0xA9A93C,
                       [HB_CAT_INPUTS] = 0x931137,
                       [HB_CAT_RUNTIME] = 0xB7BEC7},
};

/* Okabe and Ito without yellow, which vanishes on white; lightened, black become white, on dark. */
static const uint32_t groups[HB_THEME_COUNT][HB_GROUP_COLOURS] = {
    [HB_THEME_LIGHT] = {0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9, 0x202020},
    [HB_THEME_DARK] = {0x4AA3DF, 0xE8803A, 0x1FBF92, 0xDD92BC, 0xF0B429, 0x9AD4F5, 0xF4F4F4},
};

uint32_t hb_ink(enum hb_theme theme, enum hb_ink ink)
{
    return inks[theme][ink];
}

uint32_t hb_ink_category(enum hb_theme theme, enum hb_category category)
{
    return categories[theme][category];
}

uint32_t hb_ink_group(enum hb_theme theme, int index)
{
    return groups[theme][index % HB_GROUP_COLOURS];
}

/* Steps on each side of the budget; the step at the budget is plainly darker than none. */
enum { SHARE_STEPS = 10 };

uint32_t hb_ink_share(enum hb_theme theme, double share)
{
    uint32_t back = hb_ink(theme, HB_INK_BACK);
    if (!(share >= 0))
        return hb_ink(theme, HB_INK_EMPTY);
    if (share <= 1) {
        double step = ceil(share * SHARE_STEPS) / SHARE_STEPS;
        return hb_colour_mix(back, hb_ink(theme, HB_INK_FITS), 0.12 + 0.78 * step);
    }
    double over = share < 3 ? (share - 1) / 2 : 1;
    double step = ceil(over * SHARE_STEPS) / SHARE_STEPS;
    return hb_colour_mix(back, hb_ink(theme, HB_INK_LACKS), 0.25 + 0.70 * step);
}

static uint32_t mix_channel(uint32_t a, uint32_t b, double t, int shift)
{
    double from = (a >> shift) & 0xFF;
    double to = (b >> shift) & 0xFF;
    return (uint32_t)lround(from + (to - from) * t) << shift;
}

uint32_t hb_colour_mix(uint32_t a, uint32_t b, double t)
{
    return mix_channel(a, b, t, 16) | mix_channel(a, b, t, 8) | mix_channel(a, b, t, 0);
}

static double linear_channel(uint32_t rgb, int shift)
{
    double c = ((rgb >> shift) & 0xFF) / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

double hb_colour_luminance(uint32_t rgb)
{
    return 0.2126 * linear_channel(rgb, 16) + 0.7152 * linear_channel(rgb, 8) +
           0.0722 * linear_channel(rgb, 0);
}

double hb_colour_contrast(uint32_t a, uint32_t b)
{
    double la = hb_colour_luminance(a);
    double lb = hb_colour_luminance(b);
    return la > lb ? (la + 0.05) / (lb + 0.05) : (lb + 0.05) / (la + 0.05);
}

uint32_t hb_colour_on(uint32_t back)
{
    return hb_colour_contrast(back, 0) >= hb_colour_contrast(back, 0xFFFFFF) ? 0 : 0xFFFFFF;
}
