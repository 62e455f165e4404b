/* What stands below a fit map: the bar of its colours, and the signs of cells with their words, two
 * beside the bar where there is room, the others below it over the page's width. */
#ifndef HB_PLOTS_FIT_LEGEND_H
#define HB_PLOTS_FIT_LEGEND_H

#include "plots/fit.h"

enum hb_fit_sign_kind { HB_SIGN_NONE, HB_SIGN_BEST, HB_SIGN_OWN, HB_SIGN_TIGHT };

struct hb_fit_sign {
    enum hb_fit_sign_kind kind;
    const char *line;
};

enum { HB_FIT_SIGNS = 4, HB_FIT_SIGN_ROWS = 2 * HB_FIT_SIGNS };

struct hb_fit_legend {
    struct hb_canvas *c;
    const struct hb_fit_map *m;
    bool star; /* how cells are marked: the best one by a star, */
    bool ring; /* the input's own by a ring */
    struct hb_fit_sign rows[HB_FIT_SIGN_ROWS];
    uint32_t count, beside; /* so many of the first stand beside the bar, the others below it */
    double bar;             /* how wide it is, and how high with what is written below it */
    double height;
};

/* How much of the page's colour lies on a tight cell. */
#define HB_FIT_WASH 0.4

/* "47.9 GiB, leaves 11.6 GiB, step 1.66 s", or why it cannot be. */
const char *hb_fit_describe(struct hb_arena *arena, const struct hb_fit_map *m,
                            const struct hb_fit_cell *cell);
/* A frame; a star where cells are too small for one. */
void hb_fit_mark_best(struct hb_canvas *c, struct hb_box box, bool star);
/* A dashed frame within that of the best; a ring where cells are too small for one. */
void hb_fit_mark_own(struct hb_canvas *c, struct hb_box box, bool ring);
void hb_fit_legend_plan(struct hb_canvas *c, const struct hb_fit_map *m, double width,
                        struct hb_fit_legend *l);
void hb_fit_legend_draw(const struct hb_fit_legend *l, struct hb_box box);

#endif
