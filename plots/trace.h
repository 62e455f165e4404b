/* What was put on a page, in order, as plain shapes: for those who ask whether one lies over
 * another, or whether a part of the page is bare. Kept only where hb_look asks for it. */
#ifndef HB_PLOTS_TRACE_H
#define HB_PLOTS_TRACE_H

#include "plots/draw.h"

enum hb_traced_kind {
    HB_TRACED_LINE, /* two points */
    HB_TRACED_FILL, /* corners of an area */
    HB_TRACED_HATCH,
    HB_TRACED_MARK, /* corners of what it covers, as text */
    HB_TRACED_TEXT,
};

struct hb_traced {
    enum hb_traced_kind kind;
    const struct hb_point *points;
    uint32_t count;
    uint32_t rgb;
    double alpha; /* of a fill */
    double width; /* of a line */
    const char *text;
};

struct hb_trace {
    struct hb_arena *arena; /* set by who asks */
    struct hb_traced *items;
    uint32_t count, cap;
    uint32_t filled; /* items before it have their colour */
    struct hb_box clip;
    bool clipped;
};

/* These do nothing where trace is null. */
void hb_trace_line(struct hb_trace *trace, struct hb_point a, struct hb_point b, struct hb_pen pen);
void hb_trace_box(struct hb_trace *trace, enum hb_traced_kind kind, struct hb_box box, uint32_t rgb,
                  const char *text);
/* An area that gets its colour by hb_trace_fill, with all since the last. */
void hb_trace_area(struct hb_trace *trace, const struct hb_point *points, uint32_t count);
void hb_trace_fill(struct hb_trace *trace, uint32_t rgb, double alpha);
/* What comes is cut off at the box; null: no more. */
void hb_trace_clip(struct hb_trace *trace, const struct hb_box *box);

/* The part of a-b inside of box, into both; false: none. */
bool hb_trace_cut(struct hb_point *a, struct hb_point *b, struct hb_box box);

#endif
