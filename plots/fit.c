/* Drawing the fit map: see fit.h. Cells stand on whole units, so that equal neighbours join
 * without seams; all cells of one colour are one path, rows of equal cells one box, which keeps a
 * map of 100 x 100 small and fast. */
#include "plots/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "plots/frame.h"
#include "plots/place.h"

struct panel {
    struct hb_box area;
    uint32_t facet;
};

struct view {
    struct hb_canvas *c;
    const struct hb_fit_map *m;
    uint32_t columns; /* of panels */
    uint32_t rows;
    double left;      /* room for row names */
    double below;     /* room for column names */
    double head;      /* room for a facet's name */
    double text_size; /* of a cell's peak; 0: none */
    double unit_bytes;
    bool star;   /* marks the best cell, not a frame */
    bool ring;   /* marks the input's own cell, as star */
    bool turned; /* names of columns read upwards, so that each has its own */
};

static struct hb_box cell_box(const struct view *v, const struct panel *p, uint32_t y, uint32_t x)
{
    double w = p->area.w / v->m->x.count;
    double h = p->area.h / v->m->y.count;
    double left = round(p->area.x + w * x);
    double top = round(p->area.y + p->area.h - h * (y + 1));
    double right = round(p->area.x + w * (x + 1));
    double bottom = round(p->area.y + p->area.h - h * y);
    return (struct hb_box){left, top, right - left, bottom - top};
}

static double share_of(const struct view *v, const struct hb_fit_cell *cell)
{
    return cell->peak_bytes < 0 ? -1 : (double)cell->peak_bytes / (double)hb_fit_budget(v->m, cell);
}

static uint32_t colour_of(const struct view *v, const struct panel *p, uint32_t y, uint32_t x)
{
    return hb_ink_share(v->c->look.theme, share_of(v, hb_fit_cell(v->m, p->facet, y, x)));
}

/* Adds the boxes of one row that have this colour, neighbours joined. */
static void add_row(struct view *v, const struct panel *p, uint32_t y, uint32_t rgb)
{
    for (uint32_t x = 0; x < v->m->x.count; x++) {
        if (colour_of(v, p, y, x) != rgb)
            continue;
        struct hb_box box = cell_box(v, p, y, x);
        while (x + 1 < v->m->x.count && colour_of(v, p, y, x + 1) == rgb)
            x++;
        struct hb_box last = cell_box(v, p, y, x);
        box.w = last.x + last.w - box.x;
        hb_draw_add_box(v->c->draw, box);
    }
}

static void draw_cells(struct view *v, const struct panel *p)
{
    uint32_t done[64];
    int count = 0;
    for (uint32_t y = 0; y < v->m->y.count; y++)
        for (uint32_t x = 0; x < v->m->x.count; x++) {
            uint32_t rgb = colour_of(v, p, y, x);
            int i = 0;
            while (i < count && done[i] != rgb)
                i++;
            if (i < count || count == 64)
                continue;
            done[count++] = rgb;
            for (uint32_t row = y; row < v->m->y.count; row++)
                add_row(v, p, row, rgb);
            hb_draw_fill(v->c->draw, rgb, 1);
        }
}

/* Thin lines of the page's colour between cells that are large enough to bear them. */
static void draw_gaps(struct view *v, const struct panel *p)
{
    uint32_t nx = v->m->x.count;
    uint32_t ny = v->m->y.count;
    struct hb_pen pen = {hb_canvas_ink(v->c, HB_INK_BACK), 1, false};
    if (p->area.w / nx < 9 || p->area.h / ny < 9)
        return;
    struct hb_point *lines = hb_arena_alloc(v->c->arena, 2 * (nx + ny), sizeof *lines);
    uint32_t count = 0;
    for (uint32_t x = 1; x < nx; x++) {
        double px = cell_box(v, p, 0, x).x;
        lines[count++] = (struct hb_point){px, p->area.y};
        lines[count++] = (struct hb_point){px, p->area.y + p->area.h};
    }
    for (uint32_t y = 1; y < ny; y++) {
        struct hb_box box = cell_box(v, p, y, 0);
        lines[count++] = (struct hb_point){p->area.x, box.y + box.h};
        lines[count++] = (struct hb_point){p->area.x + p->area.w, box.y + box.h};
    }
    hb_draw_segments(v->c->draw, lines, count, pen);
}

/* Paler where the budget lies within a cell's interval: the band between surely and not at all. */
static void draw_band(struct view *v, const struct panel *p)
{
    static const double wash = 0.4;
    bool any = false;
    for (uint32_t y = 0; y < v->m->y.count; y++)
        for (uint32_t x = 0; x < v->m->x.count; x++) {
            if (!hb_fit_tight(v->m, hb_fit_cell(v->m, p->facet, y, x)))
                continue;
            hb_draw_add_box(v->c->draw, cell_box(v, p, y, x));
            any = true;
        }
    if (any)
        hb_draw_fill(v->c->draw, hb_canvas_ink(v->c, HB_INK_BACK), wash);
}

enum contour { BY_PEAK, BY_LOW, BY_HIGH };

/* Whether the peak or an end of its interval is within the budget. */
static bool is_within(const struct view *v, const struct hb_fit_cell *cell, enum contour by)
{
    if (by == BY_PEAK || cell->high_bytes <= 0 || cell->refused)
        return hb_fit_fits(v->m, cell);
    return (by == BY_LOW ? cell->low_bytes : cell->high_bytes) <= hb_fit_budget(v->m, cell);
}

/* Of two cells with an answer one fits and one does not. */
static bool are_parted(const struct view *v, const struct hb_fit_cell *a,
                       const struct hb_fit_cell *b, enum contour by)
{
    return a->peak_bytes >= 0 && b->peak_bytes >= 0 && is_within(v, a, by) != is_within(v, b, by);
}

/* The line between cells that fit and cells that do not; cells without an answer have none. */
static void draw_contour(struct view *v, const struct panel *p, enum contour by)
{
    bool plain = by == BY_PEAK;
    uint32_t nx = v->m->x.count;
    uint32_t ny = v->m->y.count;
    struct hb_point *lines = hb_arena_alloc(v->c->arena, (size_t)4 * nx * ny, sizeof *lines);
    uint32_t count = 0;
    for (uint32_t y = 0; y < ny; y++)
        for (uint32_t x = 0; x < nx; x++) {
            struct hb_box box = cell_box(v, p, y, x);
            const struct hb_fit_cell *cell = hb_fit_cell(v->m, p->facet, y, x);
            if (x + 1 < nx && are_parted(v, cell, hb_fit_cell(v->m, p->facet, y, x + 1), by)) {
                lines[count++] = (struct hb_point){box.x + box.w, box.y};
                lines[count++] = (struct hb_point){box.x + box.w, box.y + box.h};
            }
            if (y + 1 < ny && are_parted(v, cell, hb_fit_cell(v->m, p->facet, y + 1, x), by)) {
                lines[count++] = (struct hb_point){box.x, box.y};
                lines[count++] = (struct hb_point){box.x + box.w, box.y};
            }
        }
    for (uint32_t i = 0; i < count && plain; i++)
        hb_canvas_add_point(v->c,
                            (struct hb_layout_point){"contour", lines[i], p->facet, i, NULL, 0});
    hb_draw_segments(v->c->draw, lines, count,
                     (struct hb_pen){hb_canvas_ink(v->c, HB_INK_BACK), plain ? 4 : 2.5, false});
    hb_draw_segments(v->c->draw, lines, count,
                     (struct hb_pen){hb_canvas_ink(v->c, HB_INK_TEXT), plain ? 2 : 1, !plain});
}

/* The peak in the unit that all cells share; text has HB_TICK_TEXT bytes. */
static const char *print_peak(const struct view *v, const struct hb_fit_cell *cell, char *text)
{
    double shown = (double)cell->peak_bytes / v->unit_bytes;
    if (cell->peak_bytes < 0)
        return "\xE2\x80\x93";
    snprintf(text, HB_TICK_TEXT, "%.*f", shown < 99.95 ? 1 : 0, shown);
    return text;
}

static const char *describe_cell(const struct view *v, const struct hb_fit_cell *cell)
{
    char peak[HB_TICK_TEXT];
    char other[HB_TICK_TEXT];
    if (cell->peak_bytes < 0)
        return cell->error ? cell->error : "no answer";
    int64_t left = hb_fit_budget(v->m, cell) - cell->peak_bytes;
    hb_unit_print(HB_UNIT_BYTES, (double)cell->peak_bytes, peak);
    hb_unit_print(HB_UNIT_BYTES, (double)(left < 0 ? -left : left), other);
    const char *text =
        hb_arena_printf(v->c->arena, "%s, %s %s", peak, left < 0 ? "lacks" : "leaves", other);
    if (hb_fit_tight(v->m, cell))
        text = hb_arena_printf(v->c->arena, "%s, tight: up to %s", text,
                               hb_unit_print(HB_UNIT_BYTES, (double)cell->high_bytes, other));
    if (cell->step_seconds > 0)
        text = hb_arena_printf(v->c->arena, "%s, step %s", text,
                               hb_unit_print(HB_UNIT_SECONDS, cell->step_seconds, other));
    return text;
}

/* What stands in a legend or a hover: the answer, and that it is the input's own or a best one. */
static const char *describe_marked(const struct view *v, uint32_t index)
{
    const struct hb_fit_cell *cell = &v->m->cells[index];
    return hb_arena_printf(v->c->arena, "%s%s%s", describe_cell(v, cell),
                           hb_fit_is_best(v->m, index) ? "; best" : "",
                           cell->own ? "; the input as it stands" : "");
}

static const char *name_cell(const struct view *v, const struct panel *p, uint32_t y, uint32_t x)
{
    const char *facet = v->m->facets ? v->m->facets[p->facet] : "";
    return hb_arena_printf(v->c->arena, "%s%s%s", hb_fit_place(v->c->arena, v->m, y, x),
                           *facet ? ", " : "", facet);
}

static void draw_texts(struct view *v, const struct panel *p)
{
    char text[HB_TICK_TEXT];
    struct hb_style style = hb_canvas_style(v->c, "cell");
    style.size = v->text_size;
    for (uint32_t y = 0; y < v->m->y.count; y++)
        for (uint32_t x = 0; x < v->m->x.count; x++) {
            const struct hb_fit_cell *cell = hb_fit_cell(v->m, p->facet, y, x);
            struct hb_box box = cell_box(v, p, y, x);
            uint32_t index = (uint32_t)(cell - v->m->cells);
            hb_canvas_add_cell(v->c, (struct hb_layout_cell){"cell", name_cell(v, p, y, x),
                                                             describe_marked(v, index), box,
                                                             (double)cell->peak_bytes});
            if (v->text_size <= 0)
                continue;
            style.rgb = hb_colour_on(colour_of(v, p, y, x));
            style.bold = hb_fit_is_best(v->m, index);
            hb_canvas_label_in(v->c, print_peak(v, cell, text), box, style);
        }
}

/* A frame; a star where cells are too small for one. */
static void mark_best(struct view *v, struct hb_box box, bool star)
{
    struct hb_canvas *c = v->c;
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
static void mark_own(struct view *v, struct hb_box box, bool ring)
{
    struct hb_canvas *c = v->c;
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

static void mark_cells(struct view *v, const struct panel *p)
{
    uint32_t each = v->m->x.count * v->m->y.count;
    for (uint32_t i = 0; i < each; i++) {
        uint32_t cell = p->facet * each + i;
        bool best = hb_fit_is_best(v->m, cell);
        if (!best && !v->m->cells[cell].own)
            continue;
        struct hb_box box = cell_box(v, p, i / v->m->x.count, i % v->m->x.count);
        bool small = fmin(box.w, box.h) < 10;
        v->star = v->star || (small && best);
        v->ring = v->ring || (small && v->m->cells[cell].own);
        hb_draw_clip(v->c->draw, p->area); /* a sign may be larger than its cell */
        if (best)
            mark_best(v, box, small);
        if (v->m->cells[cell].own)
            mark_own(v, box, small);
        hb_draw_unclip(v->c->draw);
    }
}

/* How evenly a value counts: factors of two, and of ten twice. */
static int roundness(double value)
{
    int score = 0;
    if (isnan(value) || value == 0 || value != floor(value) || fabs(value) > 1e15)
        return 0;
    int64_t whole = (int64_t)value;
    for (int64_t v = whole; v % 2 == 0; v /= 2)
        score++;
    for (int64_t v = whole; v % 10 == 0; v /= 10)
        score += 2;
    return score;
}

/* With every stride-th value named: the first index that names the roundest. */
static uint32_t find_first(const struct hb_fit_axis *axis, uint32_t stride)
{
    uint32_t first = 0;
    int best = -1;
    for (uint32_t from = 0; from < stride && from < axis->count; from++) {
        int score = 0;
        for (uint32_t i = from; i < axis->count; i += stride)
            score += roundness(axis->value[i]);
        if (score > best) {
            best = score;
            first = from;
        }
    }
    return first;
}

static struct hb_style tick_style(const struct view *v)
{
    struct hb_style style = hb_canvas_style(v->c, "tick");
    style.size = fmax(6, v->c->em * 0.9);
    return style;
}

static double widest_name(struct view *v, const struct hb_fit_axis *axis)
{
    struct hb_style style = tick_style(v);
    double widest = 0;
    for (uint32_t i = 0; i < axis->count; i++)
        widest = fmax(widest, hb_canvas_width(v->c, axis->text[i], &style));
    return widest;
}

/* Names are cut where they would take too much of the page: rows' of its width, columns' of its
 * height, as they may be turned. */
static double name_room(struct view *v, const struct hb_fit_axis *axis)
{
    double most = axis == &v->m->y ? v->c->look.width / 4 : v->c->look.height / 5;
    return fmin(widest_name(v, axis), fmax(v->c->em * 9, most));
}

static const uint32_t strides[] = {1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128, 256, 512};

static size_t longest_name(const struct hb_fit_axis *axis, uint32_t stride)
{
    size_t longest = 0;
    for (uint32_t i = find_first(axis, stride); i < axis->count; i += stride)
        longest = strlen(axis->text[i]) > longest ? strlen(axis->text[i]) : longest;
    return longest;
}

/* The smallest stride at which names of `needed` units stand apart; up to thrice that where it
 * gives short names (4k) instead of long ones (4608). */
static uint32_t find_stride(const struct hb_fit_axis *axis, double pitch, double needed)
{
    enum { SHORT_NAME = 3, COUNT = sizeof strides / sizeof strides[0] };
    size_t i = 0;
    while (i + 1 < COUNT && strides[i] * pitch < needed)
        i++;
    if (longest_name(axis, strides[i]) <= SHORT_NAME)
        return strides[i];
    for (size_t k = i + 1; k < COUNT && strides[k] <= 3 * strides[i]; k++)
        if (strides[k] * 3 <= axis->count && longest_name(axis, strides[k]) <= SHORT_NAME)
            return strides[k];
    return strides[i];
}

static void name_columns(struct view *v, const struct panel *p)
{
    const struct hb_fit_axis *axis = &v->m->x;
    struct hb_style style = tick_style(v);
    double widest = name_room(v, axis);
    double line = hb_canvas_line(v->c, &style);
    double needed = v->turned ? line : widest + v->c->em * 0.7;
    uint32_t stride = find_stride(axis, p->area.w / axis->count, needed);
    style.across = HB_ALIGN_MIDDLE;
    style.turned = v->turned;
    for (uint32_t i = find_first(axis, stride); i < axis->count; i += stride) {
        struct hb_box box = cell_box(v, p, 0, i);
        struct hb_point at = {box.x + box.w / 2, box.y + box.h + v->c->em * 0.3};
        hb_canvas_label(v->c, hb_canvas_shorten(v->c, axis->text[i], widest + 0.01, &style), at,
                        style);
    }
    double y = p->area.y + p->area.h + v->c->em * 0.3 + (v->turned ? widest : line);
    style.turned = false;
    style.size = fmax(6, v->c->em * 0.95);
    style.role = "axis";
    hb_canvas_label(v->c, hb_canvas_shorten(v->c, axis->key, p->area.w, &style),
                    (struct hb_point){p->area.x + p->area.w / 2, y}, style);
}

static void name_rows(struct view *v, const struct panel *p)
{
    const struct hb_fit_axis *axis = &v->m->y;
    struct hb_style style = tick_style(v);
    double widest = name_room(v, axis);
    double line = hb_canvas_line(v->c, &style);
    uint32_t stride = find_stride(axis, p->area.h / axis->count, line);
    style.across = HB_ALIGN_END;
    style.down = HB_ALIGN_MIDDLE;
    for (uint32_t i = find_first(axis, stride); i < axis->count; i += stride) {
        struct hb_box box = cell_box(v, p, i, 0);
        struct hb_point at = {box.x - v->c->em * 0.4, box.y + box.h / 2};
        hb_canvas_label(v->c, hb_canvas_shorten(v->c, axis->text[i], widest + 0.01, &style), at,
                        style);
    }
    struct hb_style name = style;
    name.size = fmax(6, v->c->em * 0.95);
    name.turned = true;
    name.role = "axis";
    hb_canvas_label(
        v->c, hb_canvas_shorten(v->c, axis->key, p->area.h, &name),
        (struct hb_point){p->area.x - widest - v->c->em * 0.8, p->area.y + p->area.h / 2}, name);
}

/* Where the value begins in the facets' names, if all are of one key: "loss.chunks=8". */
static size_t shared_key(const struct hb_fit_map *m)
{
    size_t len = strcspn(m->facets[0], "=") + 1;
    for (uint32_t i = 0; i < m->facet_count; i++)
        if (!strchr(m->facets[i], '=') || strstr(m->facets[i], ", ") ||
            strncmp(m->facets[i], m->facets[0], len) != 0)
            return 0;
    return m->facet_count > 1 ? len : 0;
}

/* " 59.3 GiB", or "s 59.3 to 105 GiB" where cells have budgets of their own (other devices). */
static const char *budget_text(struct hb_arena *arena, const struct hb_fit_map *m, size_t first,
                               size_t count)
{
    char low_text[HB_TICK_TEXT];
    char high_text[HB_TICK_TEXT];
    int64_t low = hb_fit_budget(m, &m->cells[first]), high = low;
    for (size_t i = first; i < first + count; i++) {
        int64_t budget = hb_fit_budget(m, &m->cells[i]);
        low = budget < low ? budget : low;
        high = budget > high ? budget : high;
    }
    hb_unit_print(HB_UNIT_BYTES, (double)low, low_text);
    hb_unit_print(HB_UNIT_BYTES, (double)high, high_text);
    if (low == high)
        return hb_arena_printf(arena, " %s", low_text);
    return hb_arena_printf(arena, "s %s to %s", low_text, high_text);
}

static const char *whole_head(struct view *v, uint32_t facet, size_t from)
{
    size_t each = (size_t)v->m->x.count * v->m->y.count;
    const char *all = budget_text(v->c->arena, v->m, 0, each * v->m->facet_count);
    const char *own = budget_text(v->c->arena, v->m, each * facet, each);
    bool apart = strcmp(all, own) != 0;
    return hb_arena_printf(v->c->arena, "%s: %s%s%s", v->m->facets[facet] + from,
                           hb_fit_reach(v->c->arena, v->m, facet), apart ? " of" : "",
                           apart ? own : "");
}

/* The facet with what it finds: without the key where one of them has no room for it, and alone
 * where its own panel has none. */
static const char *head_text(struct view *v, const struct panel *p, const struct hb_style *style)
{
    bool wide = false;
    for (uint32_t i = 0; i < v->m->facet_count; i++)
        wide = wide || hb_canvas_width(v->c, whole_head(v, i, 0), style) > p->area.w;
    size_t from = wide ? shared_key(v->m) : 0;
    const char *whole = whole_head(v, p->facet, from);
    if (hb_canvas_width(v->c, whole, style) <= p->area.w)
        return whole;
    return hb_canvas_shorten(v->c, v->m->facets[p->facet] + from, p->area.w, style);
}

static void draw_panel(struct view *v, const struct panel *p, bool first, bool last)
{
    struct hb_style head = hb_canvas_style(v->c, "facet");
    head.bold = true;
    if (v->head > 0)
        hb_canvas_label(v->c, head_text(v, p, &head),
                        (struct hb_point){p->area.x, p->area.y - v->head * 0.9}, head);
    draw_cells(v, p);
    draw_band(v, p);
    draw_gaps(v, p);
    draw_contour(v, p, BY_LOW);
    draw_contour(v, p, BY_HIGH);
    draw_contour(v, p, BY_PEAK);
    mark_cells(v, p);
    draw_texts(v, p);
    if (first)
        name_rows(v, p);
    if (last)
        name_columns(v, p);
}

static const char *place_of(const struct view *v, uint32_t cell)
{
    uint32_t in = cell % (v->m->x.count * v->m->y.count);
    return hb_fit_place(v->c->arena, v->m, in / v->m->x.count, in % v->m->x.count);
}

/* Of several questions one is named. */
static const char *best_text(const struct view *v)
{
    uint32_t bests = 0, all = v->m->x.count * v->m->y.count * v->m->facet_count;
    for (uint32_t i = 0; i < all; i++)
        bests += hb_fit_is_best(v->m, i);
    return hb_arena_printf(v->c->arena, "best%s: %s, %s", bests > 1 ? " of each, here" : "",
                           place_of(v, v->m->best), describe_cell(v, &v->m->cells[v->m->best]));
}

static const char *own_text(const struct view *v, uint32_t own)
{
    return hb_arena_printf(v->c->arena, "as it stands: %s, %s", place_of(v, own),
                           describe_cell(v, &v->m->cells[own]));
}

/* Null: every cell can be. */
static const char *wrong_text(const struct view *v)
{
    uint32_t count, cells = 0;
    const struct hb_fit_reason *reasons = hb_fit_reasons(v->c->arena, v->m, &count);
    for (uint32_t i = 0; i < count; i++)
        cells += reasons[i].count;
    if (!count)
        return NULL;
    return hb_arena_printf(v->c->arena, "\xE2\x80\x93  %u cannot be: %s", cells, reasons[0].text);
}

enum { MOST_ROWS = 6 };

/* The signs of the legend, each with its words in lines. */
struct sign {
    enum { SIGN_NONE, SIGN_BEST, SIGN_OWN } kind;
    const char *line;
};

struct legend {
    struct sign rows[MOST_ROWS];
    uint32_t count, beside; /* so many of the first stand beside the bar, the others below it */
    double bar;             /* how wide it is, and how high with what is written below it */
    double height;
};

static double legend_row(const struct view *v)
{
    struct hb_style style = hb_canvas_style(v->c, "legend");
    return hb_canvas_line(v->c, &style) + 0.5;
}

static struct hb_box sign_box(const struct view *v, double left, double top)
{
    return (struct hb_box){left, top, v->c->em * 1.4, v->c->em * 1.1};
}

/* From a sign's left to its words. */
static double sign_room(const struct view *v)
{
    return v->c->em * 2;
}

static double bar_gap(const struct view *v)
{
    return v->c->em * 2.5;
}

/* Text in lines that are whole, or in one that is cut where even these are too many. */
static void add_sign(struct view *v, struct legend *l, int kind, const char *text, double width)
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
        l->rows[l->count++] = (struct sign){i == 0 ? kind : SIGN_NONE, lines[i]};
}

/* Beside the bar what has room there whole, the rest below it over the page's width. */
static struct legend plan_legend(struct view *v, double width)
{
    struct hb_style style = hb_canvas_style(v->c, "legend");
    struct legend l = {.bar = fmin(width * 0.5, v->c->em * 26), .height = v->c->em * 2.2};
    uint32_t own = hb_fit_own(v->m);
    const char *texts[] = {v->m->best != HB_NONE ? best_text(v) : NULL,
                           own != HB_NONE ? own_text(v, own) : NULL, wrong_text(v)};
    static const int kinds[] = {SIGN_BEST, SIGN_OWN, SIGN_NONE};
    double beside = width - l.bar - bar_gap(v) - sign_room(v);
    bool below = false;
    for (int i = 0; i < 3; i++) {
        if (!texts[i])
            continue;
        below = below || l.count == 2 || hb_canvas_width(v->c, texts[i], &style) > beside;
        if (below) {
            add_sign(v, &l, kinds[i], texts[i], width);
            continue;
        }
        l.rows[l.count++] = (struct sign){kinds[i], texts[i]};
        l.beside++;
    }
    double row = legend_row(v);
    l.height = fmax(l.height, row * l.beside) + row * (l.count - l.beside);
    return l;
}

static void draw_sign(struct view *v, const struct sign *sign, double left, double top)
{
    struct hb_style style = hb_canvas_style(v->c, "legend");
    if (!hb_canvas_label(v->c, sign->line, (struct hb_point){left + sign_room(v), top}, style))
        return;
    if (sign->kind == SIGN_BEST)
        mark_best(v, sign_box(v, left, top), v->star);
    if (sign->kind == SIGN_OWN)
        mark_own(v, sign_box(v, left, top), v->ring);
}

/* What the colours mean. */
static void draw_bar(struct view *v, struct hb_box box)
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
        hb_draw_box(c->draw, (struct hb_box){from, box.y, to - from, c->em * 0.8},
                    hb_ink_share(c->look.theme, (i + 0.5) * 0.05));
    }
    for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; i++) {
        double px = hb_scale_at(&scale, ticks[i].share);
        style.across = ticks[i].share == 0 ? HB_ALIGN_START : HB_ALIGN_MIDDLE;
        hb_canvas_label(c, ticks[i].text, (struct hb_point){px, box.y + c->em * 0.9}, style);
    }
}

/* A bar of the colours; beside and below it the signs of cells. */
static void draw_legend(struct view *v, const struct legend *l, struct hb_box box)
{
    double row = legend_row(v);
    double below = box.y + l->height - row * (l->count - l->beside);
    draw_bar(v, (struct hb_box){box.x, box.y, l->bar, l->height});
    for (uint32_t i = 0; i < l->count; i++) {
        bool beside = i < l->beside;
        draw_sign(v, &l->rows[i], beside ? box.x + l->bar + bar_gap(v) : box.x,
                  beside ? box.y + row * i : below + row * (i - l->beside));
    }
}

/* The number of columns of panels that makes them nearest to the page's shape. */
static void arrange_panels(struct view *v, struct hb_box page)
{
    double best = INFINITY;
    for (uint32_t columns = 1; columns <= v->m->facet_count; columns++) {
        uint32_t rows = (v->m->facet_count + columns - 1) / columns;
        double w = (page.w - v->left) / columns;
        double h = (page.h - v->below) / rows - v->head;
        double skew = h > 0 && w > 0 ? fabs(log(w / h / 1.5)) : 1e9;
        skew += 0.3 * (columns * rows - v->m->facet_count);
        if (skew < best) {
            best = skew;
            v->columns = columns;
            v->rows = rows;
        }
    }
}

/* Numbers may be left out between others; words not. */
static bool has_crowded_words(struct view *v, struct hb_box page)
{
    const struct hb_fit_axis *axis = &v->m->x;
    double pitch = (page.w - v->left) / v->columns / axis->count;
    return hb_fit_is_words(axis) && pitch < name_room(v, axis) + v->c->em * 0.7;
}

static double widest_peak(struct view *v, struct hb_style *style)
{
    char text[HB_TICK_TEXT];
    double widest = 0;
    size_t count = (size_t)v->m->x.count * v->m->y.count * v->m->facet_count;
    size_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        const char *peak = print_peak(v, &v->m->cells[i], text);
        if (strlen(peak) <= longest)
            continue; /* digits are of one width */
        longest = strlen(peak);
        widest = hb_canvas_width(v->c, peak, style);
    }
    return widest;
}

static void choose_text_size(struct view *v, const struct panel *p)
{
    struct hb_style style = {.size = v->c->em};
    double w = p->area.w / v->m->x.count - 6;
    double h = p->area.h / v->m->y.count - 3;
    double shrink = fmin(w / widest_peak(v, &style), h / hb_canvas_line(v->c, &style));
    v->text_size = floor(fmin(1, shrink) * v->c->em * 4) / 4;
    if (v->text_size < 6)
        v->text_size = 0;
}

static void draw_panels(struct view *v, struct hb_box page)
{
    double pitch_w = (page.w - v->left) / v->columns;
    double pitch_h = (page.h - v->below) / v->rows;
    for (uint32_t i = 0; i < v->m->facet_count; i++) {
        uint32_t column = i % v->columns;
        uint32_t row = i / v->columns;
        double inset = v->columns > 1 ? v->c->em * 0.8 : 0;
        struct panel p = {.facet = i};
        p.area.x = round(page.x + v->left + column * pitch_w);
        p.area.y = round(page.y + v->head + row * pitch_h);
        p.area.w = round(pitch_w - inset);
        p.area.h = round(pitch_h - v->head - (v->rows > 1 ? v->c->em * 0.6 : 0));
        if (p.area.w < v->m->x.count || p.area.h < v->m->y.count)
            return; /* less than a unit a cell: the title alone tells */
        if (i == 0)
            choose_text_size(v, &p);
        draw_panel(v, &p, column == 0, i + v->columns >= v->m->facet_count);
    }
}

static double largest_peak(const struct hb_fit_map *m)
{
    int64_t largest = m->budget_bytes;
    size_t count = (size_t)m->x.count * m->y.count * m->facet_count;
    for (size_t i = 0; i < count; i++)
        if (m->cells[i].peak_bytes > largest)
            largest = m->cells[i].peak_bytes;
    return (double)largest;
}

static double draw_head(struct view *v)
{
    const struct hb_fit_map *m = v->m;
    struct hb_arena *arena = v->c->arena;
    const char *unit =
        hb_unit_for(HB_UNIT_BYTES, fmin(largest_peak(m), (double)m->budget_bytes), &v->unit_bytes);
    uint32_t facet = hb_fit_main_facet(m);
    const char *title = hb_fit_finding(arena, m, facet);
    if (m->facets)
        title = hb_arena_printf(arena, "%s: %s", m->facets[facet], title);
    const char *budget = budget_text(arena, m, 0, (size_t)m->x.count * m->y.count * m->facet_count);
    const char *where = hb_place_under(arena, m->name, m->place);
    const char *below =
        hb_arena_printf(arena, "%s%s%s%s%s  \xC2\xB7  budget%s  \xC2\xB7  peak in %s", where,
                        *where ? "  \xC2\xB7  " : "", m->x.key, *m->y.key ? " \xC3\x97 " : "",
                        m->y.key, budget, unit);
    return hb_canvas_title(v->c, title, below);
}

void hb_fit_draw(struct hb_canvas *c, const struct hb_fit_map *m)
{
    struct view v = {.c = c, .m = m};
    double top = draw_head(&v);
    struct hb_style tick = tick_style(&v);
    struct hb_style name = hb_canvas_style(c, "axis");
    struct hb_box page = {c->em, top, c->look.width - 2 * c->em,
                          c->look.height - top - c->em * 0.6};
    v.left = name_room(&v, &m->y) + c->em * 0.8 + hb_canvas_line(c, &name);
    v.below = c->em * 0.3 + hb_canvas_line(c, &tick) + hb_canvas_line(c, &name);
    v.head = m->facets ? hb_canvas_line(c, &name) * 1.25 : 0;
    struct legend l = plan_legend(&v, page.w);
    bool legend = page.h > c->em * 13 + l.height;
    struct hb_box foot = {page.x, page.y + page.h - l.height, page.w, l.height};
    page.h -= legend ? l.height + c->em * 0.8 : 0;
    arrange_panels(&v, page);
    if (has_crowded_words(&v, page)) {
        v.turned = true;
        v.below += name_room(&v, &m->x) - hb_canvas_line(c, &tick);
        arrange_panels(&v, page);
    }
    if (page.w > v.left && page.h > v.below)
        draw_panels(&v, page);
    if (legend)
        draw_legend(&v, &l, foot);
}
