/* The only file that knows cairo: shapes and text onto one page, which becomes the bytes of an
 * SVG, PDF or PNG file. Same calls and same font: same bytes (no dates, ids counted from the
 * page's own start, numbers with two decimals). Coordinates are in units of the page, y downwards;
 * a unit is a CSS pixel in SVG, a point in PDF and `scale` pixels in PNG. */
#ifndef HB_PLOTS_DRAW_H
#define HB_PLOTS_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct hb_arena;
struct hb_draw;
struct hb_trace;

#define HB_FORMATS(X)                                                                              \
    X(SVG, "svg")                                                                                  \
    X(PDF, "pdf")                                                                                  \
    X(PNG, "png")                                                                                  \
    X(NONE, "none") /* measures and keeps nothing */

enum hb_format {
#define HB_ENUM(name, text) HB_FORMAT_##name,
    HB_FORMATS(HB_ENUM)
#undef HB_ENUM
        HB_FORMAT_COUNT
};

struct hb_draw_setup {
    enum hb_format format;
    double width; /* units, as height; 32 to HB_DRAW_MAX_SIDE */
    double height;
    double scale;           /* PNG: pixels a unit; width * scale <= HB_DRAW_MAX_SIDE */
    uint32_t back;          /* colour of the page */
    const char *font;       /* family that is tried first; null: HB_DRAW_FONT */
    const char *title;      /* of the document */
    const char *id_prefix;  /* SVG: what its ids begin with, so that a page may hold several */
    bool live_text;         /* SVG: text as text, set to the measured width; else as outlines */
    struct hb_trace *trace; /* see trace.h; null: nothing is kept */
};

/* 32767 is the largest side of an image in cairo 1.16. */
enum { HB_DRAW_MAX_SIDE = 32767 };
#define HB_DRAW_FONT "DejaVu Sans"

struct hb_point {
    double x;
    double y;
};

struct hb_box {
    double x; /* left */
    double y; /* top */
    double w;
    double h;
};

struct hb_pen {
    uint32_t rgb;
    double width;
    bool dashed;
};

enum hb_mark { HB_MARK_DISC, HB_MARK_SQUARE, HB_MARK_DIAMOND, HB_MARK_TRIANGLE, HB_MARK_COUNT };

struct hb_font {
    double size; /* height of the em */
    bool bold;
    bool turned; /* reads upwards */
    uint32_t rgb;
};

struct hb_draw *hb_draw_new(struct hb_arena *arena, const struct hb_draw_setup *setup);
/* Ends the page and appends the file's bytes to out. The draw is gone afterwards. */
void hb_draw_finish(struct hb_draw *d, struct hb_str *out);

void hb_draw_box(struct hb_draw *d, struct hb_box box, uint32_t rgb);
/* Many boxes of one colour, filled together by hb_draw_fill. */
void hb_draw_add_box(struct hb_draw *d, struct hb_box box);
/* A closed polygon; count >= 3. */
void hb_draw_add_area(struct hb_draw *d, const struct hb_point *points, uint32_t count);
void hb_draw_fill(struct hb_draw *d, uint32_t rgb, double alpha);
void hb_draw_frame(struct hb_draw *d, struct hb_box box, struct hb_pen pen);
void hb_draw_line(struct hb_draw *d, struct hb_point a, struct hb_point b, struct hb_pen pen);
void hb_draw_path(struct hb_draw *d, const struct hb_point *points, uint32_t count,
                  struct hb_pen pen);
/* Segments a-b, c-d, ... drawn as one; count is even. */
void hb_draw_segments(struct hb_draw *d, const struct hb_point *points, uint32_t count,
                      struct hb_pen pen);
/* Slanting lines over a box, gap apart: what is there but used by nobody. */
void hb_draw_hatch(struct hb_draw *d, struct hb_box box, double gap, struct hb_pen pen);
/* radius: half the mark's width; edge: its outline. */
void hb_draw_mark(struct hb_draw *d, struct hb_point at, enum hb_mark mark, double radius,
                  uint32_t rgb, uint32_t edge);
void hb_draw_star(struct hb_draw *d, struct hb_point at, double radius, uint32_t rgb,
                  uint32_t edge);
void hb_draw_clip(struct hb_draw *d, struct hb_box box);
void hb_draw_unclip(struct hb_draw *d);

/* Width of a text set straight, and the height of its line with ascenders and descenders: the
 * same in all formats and linear in size. A letter that the font lacks is taken from the next
 * of a list of fonts; text that is no UTF-8 has its bad bytes replaced by '?'. */
double hb_draw_text_width(struct hb_draw *d, const char *text, struct hb_font font);
double hb_draw_line_height(const struct hb_draw *d, double size);
/* box is where the text stands: its w is the text's width, or its h where the text is turned. */
void hb_draw_text(struct hb_draw *d, const char *text, struct hb_box box, struct hb_font font);

const char *hb_format_name(enum hb_format format);

#endif
