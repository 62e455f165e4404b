/* The legend of the fit map and the marks of its cells: see fit_legend.h. */
#include "plots/fit_legend.h"

#include <math.h>

#include "base/arena.h"
#include "plots/frame.h"

const char *hb_fit_describe(struct hb_arena *arena, const struct hb_fit_map *m,
                            const struct hb_fit_cell *cell)
{
    char peak[HB_TICK_TEXT];
    char other[HB_TICK_TEXT];
    if (cell->peak_bytes < 0)
        return cell->error ? cell->error : "no answer";
    int64_t left = hb_fit_budget(m, cell) - cell->peak_bytes;
    hb_unit_print(HB_UNIT_BYTES, (double)cell->peak_bytes, peak);
    hb_unit_print(HB_UNIT_BYTES, (double)(left < 0 ? -left : left), other);
    const char *text =
        hb_arena_printf(arena, "%s, %s %s", peak, left < 0 ? "lacks" : "leaves", other);
    if (hb_fit_tight(m, cell))
        text = hb_arena_printf(arena, "%s, tight: up to %s", text,
                               hb_unit_print(HB_UNIT_BYTES, (double)cell->high_bytes, other));
    if (cell->step_seconds > 0)
        text = hb_arena_printf(arena, "%s, step %s", text,
                               hb_unit_print(HB_UNIT_SECONDS, cell->step_seconds, other));
    return text;
}

/* A frame; a star where cells are too small for one. */
void hb_fit_mark_best(struct hb_canvas *c, struct hb_box box, bool star)
{
    struct hb_point middle = {box.x + box.w / 2, box.y + box.h / 2};
    uint32_t ink = hb_canvas_ink(c, HB_INK_BEST);
    if (star) {
        hb_draw_star(c->draw, middle, c->em * 0.65, ink, hb_canvas_ink(c, HB_INK_BACK));
        return;
    }
    double width = fmin(2.4, fmin(box.w, box.h) / 8);
    struct hb_box frame = hb_box_inset(box, width);
    hb_draw_frame(c->draw, frame,
                  (struct hb_pen){hb_canvas_ink(c, HB_INK_BACK), width * 1.6, false});
    hb_draw_frame(c->draw, frame, (struct hb_pen){ink, width, false});
}

/* A dashed frame within that of the best; a ring where cells are too small for one. */
void hb_fit_mark_own(struct hb_canvas *c, struct hb_box box, bool ring)
{
    struct hb_point middle = {box.x + box.w / 2, box.y + box.h / 2};
    uint32_t back = hb_canvas_ink(c, HB_INK_BACK), text = hb_canvas_ink(c, HB_INK_TEXT);
    if (ring) {
        hb_draw_mark(c->draw, middle, HB_MARK_DISC, c->em * 0.4, back, text);
        return;
    }
    double width = fmin(1.6, fmin(box.w, box.h) / 10);
    struct hb_box frame = hb_box_inset(box, fmin(5, fmin(box.w, box.h) / 6));
    hb_draw_frame(c->draw, frame, (struct hb_pen){back, width * 2, false});
    hb_draw_frame(c->draw, frame, (struct hb_pen){text, width, true});
}

static const char *place_of(const struct hb_fit_legend *v, uint32_t cell)
{
    uint32_t in = cell % (v->m->x.count * v->m->y.count);
    return hb_fit_place(v->c->arena, v->m, in / v->m->x.count, in % v->m->x.count);
}

/* Half blue, half orange, as cells on both sides of the budget are; washed and dotted as they. */
static void mark_tight(struct hb_canvas *c, struct hb_box box)
{
    struct hb_box half = {box.x, box.y, box.w / 2, box.h};
    hb_draw_box(c->draw, half, hb_ink_share(c->look.theme, 0.95));
    half.x += half.w;
    hb_draw_box(c->draw, half, hb_ink_share(c->look.theme, 1.05));
    hb_draw_add_box(c->draw, box);
    hb_draw_fill(c->draw, hb_canvas_ink(c, HB_INK_BACK), HB_FIT_WASH);
    hb_draw_frame(c->draw, box, (struct hb_pen){hb_canvas_ink(c, HB_INK_TEXT), 1, true});
}

/* Of several questions one is named. */
static const char *best_text(const struct hb_fit_legend *v)
{
    uint32_t bests = 0, all = v->m->x.count * v->m->y.count * v->m->facet_count;
    for (uint32_t i = 0; i < all; i++)
        bests += hb_fit_is_best(v->m, i);
    return hb_arena_printf(v->c->arena, "best%s: %s, %s", bests > 1 ? " of each, here" : "",
                           place_of(v, v->m->best),
                           hb_fit_describe(v->c->arena, v->m, &v->m->cells[v->m->best]));
}

static const char *own_text(const struct hb_fit_legend *v, uint32_t own)
{
    return hb_arena_printf(v->c->arena, "as it stands: %s, %s", place_of(v, own),
                           hb_fit_describe(v->c->arena, v->m, &v->m->cells[own]));
}

/* Null: every cell can be. */
static const char *wrong_text(const struct hb_fit_legend *v)
{
    uint32_t count, cells = 0;
    const struct hb_fit_reason *reasons = hb_fit_reasons(v->c->arena, v->m, &count);
    for (uint32_t i = 0; i < count; i++)
        cells += reasons[i].count;
    if (!count)
        return NULL;
    return hb_arena_printf(v->c->arena, "\xE2\x80\x93  %u cannot be: %s", cells, reasons[0].text);
}

/* Null: none lies between. */
static const char *tight_text(const struct hb_fit_legend *v)
{
    uint32_t tight = 0, all = v->m->x.count * v->m->y.count * v->m->facet_count;
    for (uint32_t i = 0; i < all; i++)
        tight += hb_fit_tight(v->m, &v->m->cells[i]);
    if (!tight)
        return NULL;
    return hb_arena_printf(v->c->arena, "%u tight: the budget lies in the interval", tight);
}

static double legend_row(const struct hb_fit_legend *v)
{
    struct hb_style style = hb_canvas_style(v->c, "legend");
    return hb_canvas_line(v->c, &style) + 0.5;
}

static struct hb_box sign_box(const struct hb_fit_legend *v, double left, double top)
{
    return (struct hb_box){left, top, v->c->em * 1.4, v->c->em * 1.1};
}

/* From a sign's left to its words. */
static double sign_room(const struct hb_fit_legend *v)
{
    return v->c->em * 2;
}

static double bar_gap(const struct hb_fit_legend *v)
{
    return v->c->em * 2.5;
}

/* Text in lines that are whole, or in one that is cut where even these are too many. */
static void add_sign(struct hb_fit_legend *v, enum hb_fit_sign_kind kind, const char *text,
                     double width)
{
    const char *lines[2];
    struct hb_style style = hb_canvas_style(v->c, "legend");
    double room = width - sign_room(v);
    int count = hb_canvas_wrap(v->c, text, room, &style, lines, 2);
    if (count == 0) {
        lines[0] = hb_canvas_shorten(v->c, text, room, &style);
        count = 1;
    }
    for (int i = 0; i < count; i++)
        v->rows[v->count++] = (struct hb_fit_sign){i == 0 ? kind : HB_SIGN_NONE, lines[i]};
}

/* Beside the bar what has room there whole, the rest below it over the page's width. */
void hb_fit_legend_plan(struct hb_canvas *c, const struct hb_fit_map *m, double width,
                        struct hb_fit_legend *l)
{
    struct hb_style style = hb_canvas_style(c, "legend");
    *l = (struct hb_fit_legend){
        .c = c, .m = m, .bar = fmin(width * 0.5, c->em * 26), .height = c->em * 2.2};
    uint32_t own = hb_fit_own(m);
    const char *texts[] = {m->best != HB_NONE ? best_text(l) : NULL,
                           own != HB_NONE ? own_text(l, own) : NULL, tight_text(l), wrong_text(l)};
    static const enum hb_fit_sign_kind kinds[] = {HB_SIGN_BEST, HB_SIGN_OWN, HB_SIGN_TIGHT,
                                                  HB_SIGN_NONE};
    double beside = width - l->bar - bar_gap(l) - sign_room(l);
    bool below = false;
    for (int i = 0; i < HB_FIT_SIGNS; i++) {
        if (!texts[i])
            continue;
        below = below || l->count == 2 || hb_canvas_width(c, texts[i], &style) > beside;
        if (below) {
            add_sign(l, kinds[i], texts[i], width);
            continue;
        }
        l->rows[l->count++] = (struct hb_fit_sign){kinds[i], texts[i]};
        l->beside++;
    }
    double row = legend_row(l);
    l->height = fmax(l->height, row * l->beside) + row * (l->count - l->beside);
}

static void draw_sign(const struct hb_fit_legend *v, const struct hb_fit_sign *sign, double left,
                      double top)
{
    struct hb_style style = hb_canvas_style(v->c, "legend");
    if (!hb_canvas_label(v->c, sign->line, (struct hb_point){left + sign_room(v), top}, style))
        return;
    if (sign->kind == HB_SIGN_BEST)
        hb_fit_mark_best(v->c, sign_box(v, left, top), v->star);
    if (sign->kind == HB_SIGN_OWN)
        hb_fit_mark_own(v->c, sign_box(v, left, top), v->ring);
    if (sign->kind == HB_SIGN_TIGHT)
        mark_tight(v->c, sign_box(v, left, top));
}

/* What the colours mean. */
static void draw_bar(const struct hb_fit_legend *v, struct hb_box box)
{
    static const struct {
        double share;
        const char *text;
    } ticks[] = {{1, "budget"}, {0, "0"}, {3, "3\xC3\x97"}, {2, "2\xC3\x97"}, {0.5, "50 %"}};
    struct hb_canvas *c = v->c;
    struct hb_style style = hb_canvas_style(c, "legend");
    style.size = fmax(6, c->em * 0.85);
    struct hb_scale scale = {.low = 0, .high = 3, .from_px = box.x, .to_px = box.x + box.w};
    for (int i = 0; i < 60; i++) {
        double from = round(hb_scale_at(&scale, i * 0.05));
        double to = round(hb_scale_at(&scale, (i + 1) * 0.05));
        hb_draw_box(c->draw, (struct hb_box){from, box.y, to - from + (i < 59), c->em * 0.8},
                    hb_ink_share(c->look.theme, (i + 0.5) * 0.05));
    }
    for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; i++) {
        double px = hb_scale_at(&scale, ticks[i].share);
        style.across = ticks[i].share == 0 ? HB_ALIGN_START : HB_ALIGN_MIDDLE;
        hb_canvas_label(c, ticks[i].text, (struct hb_point){px, box.y + c->em * 0.9}, style);
    }
}

/* A bar of the colours; beside and below it the signs of cells. */
void hb_fit_legend_draw(const struct hb_fit_legend *l, struct hb_box box)
{
    double row = legend_row(l);
    double below = box.y + l->height - row * (l->count - l->beside);
    draw_bar(l, (struct hb_box){box.x, box.y, l->bar, l->height});
    for (uint32_t i = 0; i < l->count; i++) {
        bool beside = i < l->beside;
        draw_sign(l, &l->rows[i], beside ? box.x + l->bar + bar_gap(l) : box.x,
                  beside ? box.y + row * i : below + row * (i - l->beside));
    }
}
