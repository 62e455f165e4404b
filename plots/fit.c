/* Drawing the fit map: see fit.h. Cells stand on whole units, so that equal neighbours join
 * without seams; all cells of one colour are one path, rows of equal cells one box, which keeps a
 * map of 100 x 100 small and fast. */
#include "plots/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "plots/fit_legend.h"
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
    bool star;               /* marks the best cell, not a frame */
    bool ring;               /* marks the input's own cell, as star */
    bool turned;             /* names of columns read upwards, so that each has its own */
    const char **budgets[2]; /* of each column and of each row, where these decide: other devices */
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
    bool any = false;
    for (uint32_t y = 0; y < v->m->y.count; y++)
        for (uint32_t x = 0; x < v->m->x.count; x++) {
            if (!hb_fit_tight(v->m, hb_fit_cell(v->m, p->facet, y, x)))
                continue;
            hb_draw_add_box(v->c->draw, cell_box(v, p, y, x));
            any = true;
        }
    if (any)
        hb_draw_fill(v->c->draw, hb_canvas_ink(v->c, HB_INK_BACK), HB_FIT_WASH);
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

/* What stands in a legend or a hover: the answer, and that it is the input's own or a best one. */
static const char *describe_marked(const struct view *v, uint32_t index)
{
    const struct hb_fit_cell *cell = &v->m->cells[index];
    return hb_arena_printf(v->c->arena, "%s%s%s", hb_fit_describe(v->c->arena, v->m, cell),
                           hb_fit_is_best(v->m, index) ? "; best" : "",
                           cell->own ? "; the input as it stands" : "");
}

static const char *name_cell(const struct view *v, const struct panel *p, uint32_t y, uint32_t x)
{
    const char *facet = v->m->facets ? v->m->facets[p->facet] : "";
    return hb_arena_printf(v->c->arena, "%s%s%s", hb_fit_place(v->c->arena, v->m, y, x),
                           *facet ? ", " : "", facet);
}

/* With the paler band's wash. */
static uint32_t shown_colour(const struct view *v, const struct panel *p, uint32_t y, uint32_t x)
{
    uint32_t rgb = colour_of(v, p, y, x);
    bool tight = hb_fit_tight(v->m, hb_fit_cell(v->m, p->facet, y, x));
    return tight ? hb_colour_mix(rgb, hb_canvas_ink(v->c, HB_INK_BACK), HB_FIT_WASH) : rgb;
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
            style.rgb = hb_colour_on(shown_colour(v, p, y, x));
            style.bold = hb_fit_is_best(v->m, index);
            hb_canvas_label_in(v->c, print_peak(v, cell, text), box, style);
        }
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
            hb_fit_mark_best(v->c, box, small);
        if (v->m->cells[cell].own)
            hb_fit_mark_own(v->c, box, small);
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

static uint32_t cell_at(const struct hb_fit_map *m, uint32_t facet, uint32_t y, uint32_t x)
{
    return (facet * m->y.count + y) * m->x.count + x;
}

/* The budget of each value of an axis; null where it is one for all, or not of the value alone. */
static const char **find_budgets(const struct view *v, bool rows)
{
    char text[HB_TICK_TEXT];
    const struct hb_fit_map *m = v->m;
    uint32_t count = rows ? m->y.count : m->x.count, across = rows ? m->x.count : m->y.count;
    const char **budgets = hb_arena_alloc(v->c->arena, count, sizeof *budgets);
    bool differ = false;
    int64_t before = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t own = 0;
        for (uint32_t k = 0; k < across * m->facet_count; k++) {
            uint32_t f = k / across, other = k % across;
            const struct hb_fit_cell *cell =
                &m->cells[rows ? cell_at(m, f, i, other) : cell_at(m, f, other, i)];
            int64_t budget = hb_fit_budget(m, cell);
            if (cell->peak_bytes >= 0 && own > 0 && budget != own)
                return NULL;
            own = cell->peak_bytes >= 0 ? budget : own;
        }
        differ = differ || (own > 0 && before > 0 && own != before);
        before = own > 0 ? own : before;
        budgets[i] =
            own > 0 ? hb_arena_strdup(v->c->arena, hb_unit_print(HB_UNIT_BYTES, (double)own, text))
                    : "";
    }
    return differ ? budgets : NULL;
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
    const char **budgets = v->budgets[axis == &v->m->y];
    for (uint32_t i = 0; i < axis->count; i++) {
        widest = fmax(widest, hb_canvas_width(v->c, axis->text[i], &style));
        if (budgets)
            widest = fmax(widest, hb_canvas_width(v->c, budgets[i], &style));
    }
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

static struct hb_style faint_of(const struct view *v, struct hb_style style)
{
    style.rgb = hb_canvas_ink(v->c, HB_INK_FAINT);
    return style;
}

static void name_columns(struct view *v, const struct panel *p)
{
    const struct hb_fit_axis *axis = &v->m->x;
    struct hb_style style = tick_style(v);
    double widest = name_room(v, axis);
    double line = hb_canvas_line(v->c, &style);
    double needed = v->turned ? line * (v->budgets[0] ? 2 : 1) : widest + v->c->em * 0.7;
    uint32_t stride = find_stride(axis, p->area.w / axis->count, needed);
    style.across = HB_ALIGN_MIDDLE;
    style.turned = v->turned;
    for (uint32_t i = find_first(axis, stride); i < axis->count; i += stride) {
        struct hb_box box = cell_box(v, p, 0, i);
        struct hb_point at = {box.x + box.w / 2, box.y + box.h + v->c->em * 0.3};
        struct hb_point below = {at.x, at.y + line};
        if (v->turned && v->budgets[0]) {
            below = (struct hb_point){at.x + line / 2, at.y};
            at.x -= line / 2;
        }
        hb_canvas_label(v->c, hb_canvas_shorten(v->c, axis->text[i], widest + 0.01, &style), at,
                        style);
        if (v->budgets[0])
            hb_canvas_label(v->c, v->budgets[0][i], below, faint_of(v, style));
    }
    double y = p->area.y + p->area.h + v->c->em * 0.3 + (v->turned ? widest : line);
    y += v->budgets[0] && !v->turned ? line : 0;
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
        bool two = v->budgets[1] && box.h > 2.2 * line;
        at.y -= two ? line / 2 : 0;
        hb_canvas_label(v->c, hb_canvas_shorten(v->c, axis->text[i], widest + 0.01, &style), at,
                        style);
        if (two)
            hb_canvas_label(v->c, v->budgets[1][i], (struct hb_point){at.x, at.y + line},
                            faint_of(v, style));
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
    int64_t low = INT64_MAX, high = 0;
    for (size_t i = first; i < first + count; i++) {
        int64_t budget = hb_fit_budget(m, &m->cells[i]);
        if (m->cells[i].peak_bytes < 0)
            continue; /* what cannot be has none of its own */
        low = budget < low ? budget : low;
        high = budget > high ? budget : high;
    }
    if (high == 0)
        low = high = m->budget_bytes;
    hb_unit_print(HB_UNIT_BYTES, (double)low, low_text);
    hb_unit_print(HB_UNIT_BYTES, (double)high, high_text);
    if (low == high)
        return hb_arena_printf(arena, " %s", low_text);
    return hb_arena_printf(arena, "s %s to %s", low_text, high_text);
}

/* Names of a facet, the fullest first. */
enum head { HEAD_WHOLE, HEAD_VALUE, HEAD_BUDGET, HEAD_ALONE };

static const char *head_text(struct view *v, uint32_t facet, enum head head)
{
    size_t each = (size_t)v->m->x.count * v->m->y.count;
    const char *all = budget_text(v->c->arena, v->m, 0, each * v->m->facet_count);
    const char *own = budget_text(v->c->arena, v->m, each * facet, each);
    bool apart = strcmp(all, own) != 0;
    const char *name = v->m->facets[facet] + (head == HEAD_WHOLE ? 0 : shared_key(v->m));
    if (head <= HEAD_VALUE)
        return hb_arena_printf(v->c->arena, "%s: %s%s%s", name,
                               hb_fit_reach(v->c->arena, v->m, facet), apart ? " of" : "",
                               apart ? own : "");
    return head == HEAD_BUDGET && apart ? hb_arena_printf(v->c->arena, "%s:%s", name, own) : name;
}

/* The fullest that has room over each of the panels. */
static enum head choose_head(struct view *v, double width, const struct hb_style *style)
{
    int head = HEAD_WHOLE;
    for (uint32_t i = 0; i < v->m->facet_count; i++)
        while (head < HEAD_ALONE &&
               hb_canvas_width(v->c, head_text(v, i, (enum head)head), style) > width)
            head++;
    return (enum head)head;
}

static void draw_head_of(struct view *v, const struct panel *p)
{
    struct hb_style style = hb_canvas_style(v->c, "facet");
    style.bold = true;
    const char *text = head_text(v, p->facet, choose_head(v, p->area.w, &style));
    hb_canvas_label(v->c, hb_canvas_shorten(v->c, text, p->area.w, &style),
                    (struct hb_point){p->area.x, p->area.y - v->head * 0.9}, style);
}

static void draw_panel(struct view *v, const struct panel *p, bool first, bool last)
{
    if (v->head > 0)
        draw_head_of(v, p);
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
    v.budgets[0] = find_budgets(&v, false);
    v.budgets[1] = find_budgets(&v, true);
    struct hb_style name = hb_canvas_style(c, "axis");
    struct hb_box page = {c->em, top, c->look.width - 2 * c->em,
                          c->look.height - top - c->em * 0.6};
    v.left = name_room(&v, &m->y) + c->em * 0.8 + hb_canvas_line(c, &name);
    v.below =
        c->em * 0.3 + hb_canvas_line(c, &tick) * (v.budgets[0] ? 2 : 1) + hb_canvas_line(c, &name);
    v.head = m->facets ? hb_canvas_line(c, &name) * 1.25 : 0;
    struct hb_fit_legend l;
    hb_fit_legend_plan(c, m, page.w, &l);
    bool legend = page.h > c->em * 13 + l.height;
    struct hb_box foot = {page.x, page.y + page.h - l.height, page.w, l.height};
    page.h -= legend ? l.height + c->em * 0.8 : 0;
    arrange_panels(&v, page);
    if (has_crowded_words(&v, page)) {
        v.turned = true;
        v.below += name_room(&v, &m->x) - hb_canvas_line(c, &tick) * (v.budgets[0] ? 2 : 1);
        arrange_panels(&v, page);
    }
    if (page.w > v.left && page.h > v.below)
        draw_panels(&v, page);
    l.star = v.star;
    l.ring = v.ring;
    if (legend)
        hb_fit_legend_draw(&l, foot);
}
