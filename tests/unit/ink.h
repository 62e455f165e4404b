/* Whether what was put on a page can be read: no line through a text, no large part bare, no mark
 * over nothing. Include it after tests/unit/unit.h. */
#ifndef HB_TESTS_INK_H
#define HB_TESTS_INK_H

#include <math.h>

#include "plots/canvas.h"
#include "plots/trace.h"

static inline struct hb_box ink_bounds(const struct hb_traced *t)
{
    double left = INFINITY, top = INFINITY, right = -INFINITY, bottom = -INFINITY;
    for (uint32_t i = 0; i < t->count; i++) {
        left = fmin(left, t->points[i].x);
        right = fmax(right, t->points[i].x);
        top = fmin(top, t->points[i].y);
        bottom = fmax(bottom, t->points[i].y);
    }
    return (struct hb_box){left, top, right - left, bottom - top};
}

static inline bool ink_holds(const struct hb_traced *t, struct hb_point at)
{
    bool inside = false;
    for (uint32_t i = 0, k = t->count - 1; i < t->count; k = i++) {
        struct hb_point a = t->points[i], b = t->points[k];
        if ((a.y > at.y) != (b.y > at.y) && at.x < (b.x - a.x) * (at.y - a.y) / (b.y - a.y) + a.x)
            inside = !inside;
    }
    return inside;
}

static inline bool ink_meets(struct hb_box a, struct hb_box b)
{
    return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

/* What says something: not the page, the ground of a plot, its grid. */
static inline bool ink_tells(const struct hb_canvas *c, const struct hb_traced *item)
{
    return item->rgb != hb_canvas_ink(c, HB_INK_BACK) &&
           item->rgb != hb_canvas_ink(c, HB_INK_PANEL) &&
           (item->rgb != hb_canvas_ink(c, HB_INK_GRID) || item->kind == HB_TRACED_HATCH);
}

/* Whether a fill between the two in the order hides the place. The plate of a text, through which a
 * little shows, is enough for grids and rims. */
static inline bool ink_is_covered(const struct hb_trace *t, uint32_t from, uint32_t until,
                                  struct hb_point at, bool faint)
{
    for (uint32_t i = from + 1; i < until; i++)
        if (t->items[i].kind == HB_TRACED_FILL && t->items[i].alpha > (faint ? 0.8 : 0.99) &&
            ink_holds(&t->items[i], at))
            return true;
    return false;
}

/* Where letters are in the box of a line of text: without ascenders, descenders and its air. */
static inline struct hb_box ink_letters(const struct hb_traced *text)
{
    struct hb_box box = ink_bounds(text);
    bool turned = box.h > box.w && strlen(text->text) > 2;
    double along = 1, across = 0.24 * (turned ? box.w : box.h);
    double dx = turned ? across : along, dy = turned ? along : across;
    return (struct hb_box){box.x + dx, box.y + dy, fmax(0, box.w - 2 * dx),
                           fmax(0, box.h - 2 * dy)};
}

/* Says what is wrong; the test goes on and fails at its end. */
static inline void ink_complain(int *count, const char *what, const char *why)
{
    if ((*count)++ < 60)
        print_error("%s: %s\n", what, why);
}

/* A line or the like at i, seen in the letters of the text at k. */
static inline bool ink_crosses(const struct hb_canvas *c, const struct hb_trace *t, uint32_t i,
                               uint32_t k, struct hb_box letters)
{
    enum { STEPS = 8 };
    struct hb_point a = t->items[i].points[0], b = t->items[i].points[1];
    struct hb_box box = ink_bounds(&t->items[i]);
    if (t->items[i].kind != HB_TRACED_LINE) { /* a mark, a hatch: its middle line */
        if (!ink_meets(box, letters))
            return false;
        a = (struct hb_point){fmax(box.x, letters.x) + 0.5, fmax(box.y, letters.y) + 0.5};
        b = (struct hb_point){fmin(box.x + box.w, letters.x + letters.w) - 0.5,
                              fmin(box.y + box.h, letters.y + letters.h) - 0.5};
    }
    if (!hb_trace_cut(&a, &b, letters) || fabs(b.x - a.x) + fabs(b.y - a.y) < 0.7)
        return false;
    if (i > k)
        return true;
    for (int s = 0; s <= STEPS; s++) {
        double part = (s + 0.5) / (STEPS + 1);
        struct hb_point at = {a.x + (b.x - a.x) * part, a.y + (b.y - a.y) * part};
        if (!ink_is_covered(t, i, k, at, !ink_tells(c, &t->items[i])))
            return true;
    }
    return false;
}

/* Fails where a line, a hatch or a mark goes through a text. */
static inline void ink_check_texts(const struct hb_canvas *c, const struct hb_trace *t,
                                   const char *what, int *wrong)
{
    for (uint32_t k = 0; k < t->count; k++) {
        if (t->items[k].kind != HB_TRACED_TEXT)
            continue;
        struct hb_box letters = ink_letters(&t->items[k]);
        for (uint32_t i = 0; i < t->count; i++) {
            enum hb_traced_kind kind = t->items[i].kind;
            bool inked =
                kind == HB_TRACED_LINE || kind == HB_TRACED_HATCH || kind == HB_TRACED_MARK;
            if (!inked || !ink_crosses(c, t, i, k, letters))
                continue;
            struct hb_box box = ink_bounds(&t->items[i]);
            ink_complain(wrong, what,
                         hb_arena_printf(
                             t->arena,
                             "a %s at %.0f %.0f, %.0f x %.0f, goes through '%s' at %.0f %.0f",
                             kind == HB_TRACED_LINE   ? "line"
                             : kind == HB_TRACED_MARK ? "mark"
                                                      : "hatch",
                             box.x, box.y, box.w, box.h, t->items[k].text, letters.x, letters.y));
            break;
        }
    }
}

/* What lies below the item at this place. */
static inline uint32_t ink_ground(const struct hb_canvas *c, const struct hb_trace *t,
                                  uint32_t until, struct hb_point at)
{
    uint32_t rgb = hb_canvas_ink(c, HB_INK_BACK);
    for (uint32_t i = 0; i < until; i++)
        if (t->items[i].kind == HB_TRACED_FILL && ink_holds(&t->items[i], at))
            rgb = hb_colour_mix(rgb, t->items[i].rgb, t->items[i].alpha);
    return rgb;
}

/* Fails where a text has nearly the colour of what is below its middle. */
static inline void ink_check_contrast(const struct hb_canvas *c, const struct hb_trace *t,
                                      const char *what, int *wrong)
{
    static const double least = 4.4;
    for (uint32_t i = 0; i < t->count; i++) {
        struct hb_box box = ink_bounds(&t->items[i]);
        struct hb_point middle = {box.x + box.w / 2, box.y + box.h / 2};
        if (t->items[i].kind != HB_TRACED_TEXT)
            continue;
        double contrast = hb_colour_contrast(t->items[i].rgb, ink_ground(c, t, i, middle));
        if (contrast < least)
            ink_complain(wrong, what,
                         hb_arena_printf(t->arena, "'%s' has a contrast of %.1f", t->items[i].text,
                                         contrast));
    }
}

enum { INK_SIDE = 160 }; /* of the raster in which bare parts are looked for */

static inline void ink_fill_raster(const struct hb_canvas *c, const struct hb_traced *item,
                                   bool raster[INK_SIDE][INK_SIDE])
{
    struct hb_box box = ink_bounds(item);
    double w = c->look.width / INK_SIDE, h = c->look.height / INK_SIDE;
    int left = (int)fmax(0, floor(box.x / w)), right = (int)fmin(INK_SIDE - 1, (box.x + box.w) / w);
    int top = (int)fmax(0, floor(box.y / h));
    int bottom = (int)fmin(INK_SIDE - 1, (box.y + box.h) / h);
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x++) {
            struct hb_point a = item->points[0], b = item->points[1];
            struct hb_point middle = {(x + 0.5) * w, (y + 0.5) * h};
            struct hb_box cell = {x * w, y * h, w, h};
            bool whole = item->count == 4; /* a box, as most are */
            bool there = item->kind == HB_TRACED_LINE ? hb_trace_cut(&a, &b, cell)
                                                      : whole || ink_holds(item, middle);
            raster[y][x] = raster[y][x] || there;
        }
}

/* The largest bare rectangle, as a share of the page. */
static inline double ink_bare(const struct hb_canvas *c, const struct hb_trace *t)
{
    static bool raster[INK_SIDE][INK_SIDE];
    int height[INK_SIDE] = {0}, best = 0;
    memset(raster, 0, sizeof raster);
    for (uint32_t i = 0; i < t->count; i++)
        if (ink_tells(c, &t->items[i]))
            ink_fill_raster(c, &t->items[i], raster);
    for (int y = 0; y < INK_SIDE; y++)
        for (int x = 0; x < INK_SIDE; x++) {
            height[x] = raster[y][x] ? 0 : height[x] + 1;
            for (int k = x, low = height[x]; k >= 0 && low > 0; k--) {
                low = height[k] < low ? height[k] : low;
                best = low * (x - k + 1) > best ? low * (x - k + 1) : best;
            }
        }
    return (double)best / (INK_SIDE * INK_SIDE);
}

/* Whether anything that tells, but no text, is within reach of the box. */
static inline bool ink_beside(const struct hb_canvas *c, const struct hb_trace *t,
                              struct hb_box box, double reach)
{
    struct hb_box wide = {box.x - reach, box.y - reach, box.w + 2 * reach, box.h + 2 * reach};
    for (uint32_t i = 0; i < t->count; i++) {
        const struct hb_traced *item = &t->items[i];
        struct hb_point a = item->points[0], b = item->points[1];
        if (item->kind == HB_TRACED_TEXT || item->kind == HB_TRACED_HATCH || !ink_tells(c, item))
            continue;
        if (item->kind == HB_TRACED_LINE ? hb_trace_cut(&a, &b, wide)
                                         : ink_meets(ink_bounds(item), wide))
            return true;
    }
    return false;
}

/* Whether an area of data was drawn below the box. */
static inline bool ink_on_data(const struct hb_canvas *c, const struct hb_trace *t,
                               struct hb_box box)
{
    enum { STEPS = 12 };
    for (uint32_t i = 0; i < t->count; i++) {
        const struct hb_traced *item = &t->items[i];
        if (item->kind != HB_TRACED_FILL || !ink_tells(c, item) || item->alpha < 0.5)
            continue;
        for (int k = 0; k <= STEPS; k++) {
            double x = box.x + box.w * (0.05 + 0.9 * k / STEPS);
            if (ink_holds(item, (struct hb_point){x, box.y + box.h * 0.25}) ||
                ink_holds(item, (struct hb_point){x, box.y + box.h * 0.75}))
                return true;
        }
    }
    return false;
}

/* Whether a mark has data below it: a fill that was drawn before it and is seen beside it. */
static inline bool ink_stands(const struct hb_canvas *c, const struct hb_trace *t, uint32_t mark)
{
    struct hb_box box = ink_bounds(&t->items[mark]);
    struct hb_point middle = {box.x + box.w / 2, box.y + box.h / 2};
    for (double x = -0.4; x <= 0.4; x += 0.2) {
        struct hb_point below = {middle.x + x, box.y + box.h + 2};
        uint32_t seen = t->count;
        for (uint32_t i = 0; i < t->count; i++) {
            struct hb_point a = t->items[i].points[0], b = t->items[i].points[1];
            double half = fmax(0.3, t->items[i].width / 2);
            struct hb_box pixel = {below.x - half, below.y - 0.3, 2 * half, 0.6};
            if (t->items[i].kind == HB_TRACED_LINE ? hb_trace_cut(&a, &b, pixel)
                                                   : ink_holds(&t->items[i], below))
                seen = i;
        }
        if (seen < t->count && t->items[seen].kind == HB_TRACED_FILL &&
            ink_tells(c, &t->items[seen]))
            return true;
    }
    return false;
}

#endif
