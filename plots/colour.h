/* Colours by role, in a light and a dark theme, as 0xRRGGBB.
 * Categories: Paul Tol's "muted" scheme (P. Tol, Colour Schemes, SRON/EPS/TN/09-002, 2021) with
 * three greys beside it, changed where a test found two too near. Groups, fits and lacks: Okabe
 * and Ito, Color Universal Design (2008). tests/unit/test_plots_colour.c holds them to a least
 * difference as seen with protanopia, deuteranopia and tritanopia. No picture relies on colour
 * alone. */
#ifndef HB_PLOTS_COLOUR_H
#define HB_PLOTS_COLOUR_H

#include <stdint.h>

#include "sim/ir/program.h"

enum hb_theme { HB_THEME_LIGHT, HB_THEME_DARK, HB_THEME_COUNT };

#define HB_INKS(X)                                                                                 \
    X(BACK, "back")   /* behind everything */                                                      \
    X(PANEL, "panel") /* behind the data */                                                        \
    X(TEXT, "text")                                                                                \
    X(FAINT, "faint") /* text of less weight */                                                    \
    X(GRID, "grid")                                                                                \
    X(AXIS, "axis")                                                                                \
    X(BUDGET, "budget") /* the line that must not be crossed */                                    \
    X(FITS, "fits")     /* fully used budget; paler where less is used */                          \
    X(LACKS, "lacks")   /* far beyond the budget; paler where little is lacking */                 \
    X(EMPTY, "empty")   /* no answer */                                                            \
    X(BEST, "best")     /* frame of what was chosen */

enum hb_ink {
#define HB_ENUM(name, text) HB_INK_##name,
    HB_INKS(HB_ENUM)
#undef HB_ENUM
        HB_INK_COUNT
};

enum { HB_GROUP_COLOURS = 7 };

uint32_t hb_ink(enum hb_theme theme, enum hb_ink ink);
uint32_t hb_ink_category(enum hb_theme theme, enum hb_category category);
/* Of the index-th series; repeats after HB_GROUP_COLOURS (its mark then differs). index >= 0. */
uint32_t hb_ink_group(enum hb_theme theme, int index);
/* Peak as a share of the budget (1: exactly full; below 0: no answer), in steps so that equal
 * neighbours can be drawn as one. */
uint32_t hb_ink_share(enum hb_theme theme, double share);

/* a at t = 0, b at t = 1. */
uint32_t hb_colour_mix(uint32_t a, uint32_t b, double t);
/* Relative luminance, 0 to 1, and the contrast of two colours, 1 to 21 (WCAG 2.1). */
double hb_colour_luminance(uint32_t rgb);
double hb_colour_contrast(uint32_t a, uint32_t b);
/* Black or white, whichever reads better on back: contrast is at least 4.5. */
uint32_t hb_colour_on(uint32_t back);

#endif
