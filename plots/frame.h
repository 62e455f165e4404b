/* What pictures with axes share: the plot area with its grid, ticks and names, and legends. */
#ifndef HB_PLOTS_FRAME_H
#define HB_PLOTS_FRAME_H

#include "plots/canvas.h"

struct hb_frame {
    struct hb_box area; /* where the data go */
    struct hb_scale x;
    struct hb_scale y;
    const char *x_name; /* "step time"; its unit is added. "": no name */
    const char *y_name;
    double left; /* room asked for left of the area; 0: as the ticks need it */
    bool bare_x; /* no ticks below: another panel carries them */
};

struct hb_key {
    uint32_t rgb;
    const char *text;
    const char *value; /* right-aligned in its column; null: none */
    bool hatched;
    int mark; /* enum hb_mark, or one of those below */
};
enum { HB_KEY_SWATCH = -1, HB_KEY_LINE = -2, HB_KEY_DASHES = -3 };

/* Lays the frame out in outer, and sets where its scales go. The area may be empty on a page that
 * is too small: then false, and nothing should be drawn. */
bool hb_frame_make(struct hb_canvas *c, struct hb_box outer, struct hb_frame *f);
/* Panel, grid, ticks and names; records both axes. */
void hb_frame_draw(struct hb_canvas *c, const struct hb_frame *f);
/* The ticks and the name of the axis across alone, below the area. */
void hb_frame_draw_across(struct hb_canvas *c, const struct hb_frame *f);
/* Room that upright ticks and the axis's name need at the left. */
double hb_frame_left(struct hb_canvas *c, const struct hb_frame *f);
struct hb_point hb_frame_at(const struct hb_frame *f, double x, double y);
/* A line across the area at y with its text above it (or below, where there is no room) that ends
 * at `right` on the page, or for 0 where the page is free; nothing where y is outside. No name is
 * put on the line afterwards. */
void hb_frame_level(struct hb_canvas *c, const struct hb_frame *f, double y, const char *text,
                    const char *role, double right);

/* Height of the legend in as many columns as fit into width. */
double hb_legend_height(struct hb_canvas *c, double width, const struct hb_key *keys, int count);
/* Draws as many rows as the box holds, returns the height used. */
double hb_legend_draw(struct hb_canvas *c, struct hb_box box, const struct hb_key *keys, int count);

/* box without a border of that width. */
struct hb_box hb_box_inset(struct hb_box box, double by);

#endif
