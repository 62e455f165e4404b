/* A page on which no two labels overlap and none leaves the page: a label is put where it is
 * free, or not at all, and every one put (and each cell, bar and curve point) is recorded.
 * The record is what `--layout FILE` writes and what tests hold against the data. */
#ifndef HB_PLOTS_CANVAS_H
#define HB_PLOTS_CANVAS_H

#include "plots/colour.h"
#include "plots/draw.h"
#include "plots/scale.h"

struct hb_json;

struct hb_look {
    enum hb_theme theme;
    double width; /* of the page, in units */
    double height;
    double em;              /* size of plain text; 0: as the page's size says */
    double scale;           /* PNG: pixels a unit; 0: 1 */
    const char *font;       /* null: HB_DRAW_FONT */
    const char *id_prefix;  /* null: "g" */
    bool live_text;         /* SVG for a web page */
    struct hb_trace *trace; /* gets all that is drawn; null: nobody asks */
};

enum { HB_LOOK_MIN_SIDE = 64 };

struct hb_layout_label {
    const char *text;
    const char *role; /* "title", "tick", "cell" ... */
    struct hb_box box;
};

/* A filled part that stands for one datum. */
struct hb_layout_cell {
    const char *group; /* "cell", "bar", "buffer", "span" */
    const char *name;  /* what it is, for a reader: "16 x 8k" */
    const char *note;  /* what is told of it when pointed at; null: name alone */
    struct hb_box box;
    double value;
};

struct hb_layout_point {
    const char *curve;
    struct hb_point at;
    double x; /* the datum */
    double y;
    const char *note; /* null: none */
    uint32_t axis;    /* of the record: that across; the next is upright */
};

struct hb_layout_axis {
    const char *name;
    struct hb_scale scale;
    bool upright;
};

struct hb_layout {
    struct hb_layout_label *labels;
    uint32_t label_count, label_cap;
    struct hb_layout_cell *cells;
    uint32_t cell_count, cell_cap;
    struct hb_layout_point *points;
    uint32_t point_count, point_cap;
    struct hb_layout_axis *axes;
    uint32_t axis_count, axis_cap;
    uint32_t dropped_count; /* labels for which there was no room */
};

struct hb_canvas {
    struct hb_arena *arena;
    struct hb_draw *draw;
    struct hb_look look;
    double em;         /* size of plain text: grows with the page, 6.5 to 20 units */
    const char *title; /* what the picture finds; set by hb_canvas_title */
    struct hb_layout layout;
    struct hb_label_grid *grid; /* labels by place */
};

enum hb_align { HB_ALIGN_START, HB_ALIGN_MIDDLE, HB_ALIGN_END };

struct hb_style {
    double size; /* 0: em */
    bool bold;
    bool turned;
    uint32_t rgb;
    bool plated; /* stands on a box of the colour plate, so that lines do not cross it */
    uint32_t plate;
    enum hb_align across; /* which part of the label stands at the point given */
    enum hb_align down;
    const char *role;
};

/* title: of the document; the one drawn may say more. */
struct hb_canvas *hb_canvas_new(struct hb_arena *arena, const struct hb_look *look,
                                enum hb_format format, const char *title);
void hb_canvas_finish(struct hb_canvas *c, struct hb_str *out);

uint32_t hb_canvas_ink(const struct hb_canvas *c, enum hb_ink ink);
struct hb_style hb_canvas_style(const struct hb_canvas *c, const char *role);
double hb_canvas_width(struct hb_canvas *c, const char *text, const struct hb_style *style);
double hb_canvas_line(const struct hb_canvas *c, const struct hb_style *style);

/* Puts the label at the point if it is free there; false if not, and nothing is drawn. */
bool hb_canvas_label(struct hb_canvas *c, const char *text, struct hb_point at,
                     struct hb_style style);
/* In the middle of box, made smaller down to 6 units; false where it does not fit. */
bool hb_canvas_label_in(struct hb_canvas *c, const char *text, struct hb_box box,
                        struct hb_style style);
/* Beside a mark at the first free of eight places within bounds, with a thin line to it where it
 * stands apart; false if none is free. */
bool hb_canvas_label_near(struct hb_canvas *c, const char *text, struct hb_point at,
                          struct hb_box bounds, struct hb_style style);
/* A line straight across or down that steps aside for the labels that are there. Each pen draws all
 * of it, the first below the others. */
void hb_canvas_rule(struct hb_canvas *c, struct hb_point a, struct hb_point b,
                    const struct hb_pen *pens, int pen_count);
/* Keeps a place free: no label will be put over it. */
void hb_canvas_keep_free(struct hb_canvas *c, struct hb_box box);
void hb_canvas_keep_path_free(struct hb_canvas *c, const struct hb_point *points, uint32_t count);
/* text, or its start and end with an ellipsis between, so that it is at most width wide. */
const char *hb_canvas_shorten(struct hb_canvas *c, const char *text, double width,
                              const struct hb_style *style);
/* Cuts text at spaces into lines of at most width; returns their number, or 0 where more than most
 * are needed or a word is wider than a line. */
int hb_canvas_wrap(struct hb_canvas *c, const char *text, double width,
                   const struct hb_style *style, const char **out_lines, int most);
/* The finding, bold, on up to three lines, and a line below it (may be null); returns the height
 * that both take. */
double hb_canvas_title(struct hb_canvas *c, const char *title, const char *below);

/* The record. Texts are kept, not copied. */
void hb_canvas_add_cell(struct hb_canvas *c, struct hb_layout_cell cell);
void hb_canvas_add_point(struct hb_canvas *c, struct hb_layout_point point);
void hb_canvas_add_axis(struct hb_canvas *c, const char *name, const struct hb_scale *scale,
                        bool upright);
/* The record as JSON: width, height, title, dropped, axes, labels, cells, points. */
void hb_canvas_write_layout(const struct hb_canvas *c, struct hb_json *j);

#endif
