/* Shapes in the order in which they were drawn: see trace.h. */
#include "plots/trace.h"

#include <math.h>

#include "base/arena.h"

/* Where the way from a by d, from *from to *to of it, is between low and high. */
static bool cut_side(double a, double d, double low, double high, double *from, double *to)
{
    if (d == 0)
        return a >= low && a <= high;
    double enter = ((d > 0 ? low : high) - a) / d;
    double leave = ((d > 0 ? high : low) - a) / d;
    *from = fmax(*from, enter);
    *to = fmin(*to, leave);
    return *from <= *to;
}

bool hb_trace_cut(struct hb_point *a, struct hb_point *b, struct hb_box box)
{
    double from = 0, to = 1;
    struct hb_point d = {b->x - a->x, b->y - a->y}, start = *a;
    if (!cut_side(start.x, d.x, box.x, box.x + box.w, &from, &to) ||
        !cut_side(start.y, d.y, box.y, box.y + box.h, &from, &to))
        return false;
    *a = (struct hb_point){start.x + from * d.x, start.y + from * d.y};
    *b = (struct hb_point){start.x + to * d.x, start.y + to * d.y};
    return true;
}

static void add(struct hb_trace *t, struct hb_traced item)
{
    t->items = hb_grow(t->arena, t->items, t->count, &t->cap, sizeof *t->items);
    t->items[t->count++] = item;
}

void hb_trace_line(struct hb_trace *trace, struct hb_point a, struct hb_point b, struct hb_pen pen)
{
    if (!trace || (trace->clipped && !hb_trace_cut(&a, &b, trace->clip)))
        return;
    struct hb_point *points = hb_arena_alloc(trace->arena, 2, sizeof *points);
    points[0] = a;
    points[1] = b;
    add(trace, (struct hb_traced){HB_TRACED_LINE, points, 2, pen.rgb, 1, pen.width, NULL});
    trace->filled = trace->count;
}

static struct hb_point keep_in(struct hb_point at, struct hb_box box)
{
    return (struct hb_point){fmax(box.x, fmin(box.x + box.w, at.x)),
                             fmax(box.y, fmin(box.y + box.h, at.y))};
}

static void add_area(struct hb_trace *trace, struct hb_traced item)
{
    struct hb_point *kept = hb_arena_alloc(trace->arena, item.count, sizeof *kept);
    for (uint32_t i = 0; i < item.count; i++)
        kept[i] = trace->clipped ? keep_in(item.points[i], trace->clip) : item.points[i];
    item.points = kept;
    add(trace, item);
}

void hb_trace_box(struct hb_trace *trace, enum hb_traced_kind kind, struct hb_box box, uint32_t rgb,
                  const char *text)
{
    struct hb_point corners[4] = {{box.x, box.y},
                                  {box.x + box.w, box.y},
                                  {box.x + box.w, box.y + box.h},
                                  {box.x, box.y + box.h}};
    if (!trace)
        return;
    add_area(trace, (struct hb_traced){kind, corners, 4, rgb, 1, 0,
                                       text ? hb_arena_strdup(trace->arena, text) : NULL});
    trace->filled = trace->count;
}

void hb_trace_area(struct hb_trace *trace, const struct hb_point *points, uint32_t count)
{
    if (trace)
        add_area(trace, (struct hb_traced){HB_TRACED_FILL, points, count, 0, 1, 0, NULL});
}

void hb_trace_fill(struct hb_trace *trace, uint32_t rgb, double alpha)
{
    for (; trace && trace->filled < trace->count; trace->filled++) {
        trace->items[trace->filled].rgb = rgb;
        trace->items[trace->filled].alpha = alpha;
    }
}

void hb_trace_clip(struct hb_trace *trace, const struct hb_box *box)
{
    if (!trace)
        return;
    trace->clipped = box != NULL;
    if (box)
        trace->clip = *box;
}
