/* Labels and the record: see canvas.h. A grid of squares lists the labels that touch each, so that
 * ten thousand cells with a label each are placed in linear time. */
#include "plots/canvas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "plots/trace.h"

struct square {
    uint32_t *boxes;
    uint32_t count;
    uint32_t cap;
};

struct hb_label_grid {
    double side;
    int columns;
    int rows;
    struct square *squares;
    struct hb_box *boxes;
    uint32_t count;
    uint32_t cap;
};

enum { SQUARES_A_SIDE = 64 };
static const double smallest_text = 6;
static const double gap = 2; /* between two labels, at least */

static struct hb_label_grid *make_grid(struct hb_arena *arena, const struct hb_look *look)
{
    struct hb_label_grid *g = hb_arena_alloc(arena, 1, sizeof *g);
    g->side = fmax(24, fmax(look->width, look->height) / SQUARES_A_SIDE);
    g->columns = (int)ceil(look->width / g->side);
    g->rows = (int)ceil(look->height / g->side);
    g->squares = hb_arena_alloc(arena, (size_t)g->columns * (size_t)g->rows, sizeof *g->squares);
    return g;
}

/* Text that can be read on a page as small as a stamp allows; on large ones, which are looked at
 * from afar, it grows with them, but slower. */
static double usual_em(const struct hb_look *look)
{
    static const double plain = 13, plain_at = 16, most = 20;
    double size = fmin(look->width / 60, look->height / 15);
    if (size > plain_at)
        return fmin(most, plain * sqrt(size / plain_at));
    return fmin(plain, fmax(6.5, size));
}

struct hb_canvas *hb_canvas_new(struct hb_arena *arena, const struct hb_look *look,
                                enum hb_format format, const char *title)
{
    struct hb_canvas *c = hb_arena_alloc(arena, 1, sizeof *c);
    c->arena = arena;
    c->look = *look;
    c->title = title;
    c->em = look->em > 0 ? look->em : usual_em(look);
    c->grid = make_grid(arena, look);
    c->draw = hb_draw_new(arena, &(struct hb_draw_setup){.format = format,
                                                         .width = look->width,
                                                         .height = look->height,
                                                         .scale = look->scale,
                                                         .back = hb_ink(look->theme, HB_INK_BACK),
                                                         .font = look->font,
                                                         .title = title,
                                                         .id_prefix = look->id_prefix,
                                                         .live_text = look->live_text,
                                                         .trace = look->trace});
    return c;
}

void hb_canvas_finish(struct hb_canvas *c, struct hb_str *out)
{
    hb_draw_finish(c->draw, out);
    c->draw = NULL;
}

uint32_t hb_canvas_ink(const struct hb_canvas *c, enum hb_ink ink)
{
    return hb_ink(c->look.theme, ink);
}

struct hb_style hb_canvas_style(const struct hb_canvas *c, const char *role)
{
    return (struct hb_style){.size = c->em, .rgb = hb_canvas_ink(c, HB_INK_TEXT), .role = role};
}

static struct hb_font font_of(const struct hb_canvas *c, const struct hb_style *style)
{
    return (struct hb_font){style->size > 0 ? style->size : c->em, style->bold, style->turned,
                            style->rgb};
}

double hb_canvas_width(struct hb_canvas *c, const char *text, const struct hb_style *style)
{
    return hb_draw_text_width(c->draw, text, font_of(c, style));
}

double hb_canvas_line(const struct hb_canvas *c, const struct hb_style *style)
{
    return hb_draw_line_height(c->draw, style->size > 0 ? style->size : c->em);
}

/* The range of squares that a box touches, clipped to the grid. */
struct reach {
    int left, right, top, bottom;
};

static int clip_index(double value, int count)
{
    return value < 0 ? 0 : value >= count ? count - 1 : (int)value;
}

static struct reach find_reach(const struct hb_label_grid *g, struct hb_box box)
{
    return (struct reach){clip_index(floor(box.x / g->side), g->columns),
                          clip_index(floor((box.x + box.w) / g->side), g->columns),
                          clip_index(floor(box.y / g->side), g->rows),
                          clip_index(floor((box.y + box.h) / g->side), g->rows)};
}

static bool boxes_touch(struct hb_box a, struct hb_box b)
{
    return a.x < b.x + b.w + gap && b.x < a.x + a.w + gap && a.y < b.y + b.h && b.y < a.y + a.h;
}

static bool touches_any(const struct hb_label_grid *g, const struct square *s, struct hb_box box)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (boxes_touch(box, g->boxes[s->boxes[i]]))
            return true;
    return false;
}

static bool is_free(const struct hb_canvas *c, struct hb_box box)
{
    const struct hb_label_grid *g = c->grid;
    if (box.x < 0 || box.y < 0 || box.x + box.w > c->look.width || box.y + box.h > c->look.height)
        return false;
    struct hb_box wide = {box.x - gap, box.y, box.w + 2 * gap, box.h};
    struct reach r = find_reach(g, wide);
    for (int row = r.top; row <= r.bottom; row++)
        for (int column = r.left; column <= r.right; column++)
            if (touches_any(g, &g->squares[row * g->columns + column], box))
                return false;
    return true;
}

void hb_canvas_keep_free(struct hb_canvas *c, struct hb_box box)
{
    struct hb_label_grid *g = c->grid;
    g->boxes = hb_grow(c->arena, g->boxes, g->count, &g->cap, sizeof g->boxes[0]);
    g->boxes[g->count] = box;
    struct reach r = find_reach(g, box);
    for (int row = r.top; row <= r.bottom; row++)
        for (int column = r.left; column <= r.right; column++) {
            struct square *s = &g->squares[row * g->columns + column];
            s->boxes = hb_grow(c->arena, s->boxes, s->count, &s->cap, sizeof s->boxes[0]);
            s->boxes[s->count++] = g->count;
        }
    g->count++;
}

void hb_canvas_keep_path_free(struct hb_canvas *c, const struct hb_point *points, uint32_t count)
{
    static const double side = 4;
    for (uint32_t i = 0; i + 1 < count; i++) {
        struct hb_point a = points[i], b = points[i + 1];
        int steps = (int)fmax(1, ceil(hypot(b.x - a.x, b.y - a.y) / side));
        for (int k = 0; k <= steps; k++) {
            double t = (double)k / steps;
            hb_canvas_keep_free(c, (struct hb_box){a.x + (b.x - a.x) * t - side / 2,
                                                   a.y + (b.y - a.y) * t - side / 2, side, side});
        }
    }
}

static struct hb_box place_box(struct hb_canvas *c, const char *text, struct hb_point at,
                               const struct hb_style *style)
{
    double w = hb_canvas_width(c, text, style);
    double h = hb_canvas_line(c, style);
    if (style->turned) {
        double swap = w;
        w = h;
        h = swap;
    }
    return (struct hb_box){at.x - w * (int)style->across / 2, at.y - h * (int)style->down / 2, w,
                           h};
}

static void put_label(struct hb_canvas *c, const char *text, struct hb_box box,
                      const struct hb_style *style)
{
    struct hb_layout *r = &c->layout;
    if (style->plated) {
        hb_draw_add_box(c->draw, box);
        hb_draw_fill(c->draw, style->plate, 0.85);
    }
    hb_draw_text(c->draw, text, box, font_of(c, style));
    hb_canvas_keep_free(c, box);
    r->labels = hb_grow(c->arena, r->labels, r->label_count, &r->label_cap, sizeof r->labels[0]);
    r->labels[r->label_count++] =
        (struct hb_layout_label){hb_arena_strdup(c->arena, text), style->role, box};
}

static bool put_if_free(struct hb_canvas *c, const char *text, struct hb_box box,
                        const struct hb_style *style)
{
    if (!*text || !is_free(c, box))
        return false;
    put_label(c, text, box, style);
    return true;
}

bool hb_canvas_label(struct hb_canvas *c, const char *text, struct hb_point at,
                     struct hb_style style)
{
    bool put = put_if_free(c, text, place_box(c, text, at, &style), &style);
    c->layout.dropped_count += !put && *text;
    return put;
}

bool hb_canvas_label_in(struct hb_canvas *c, const char *text, struct hb_box box,
                        struct hb_style style)
{
    double size = style.size > 0 ? style.size : c->em;
    double along = style.turned ? box.h : box.w;
    double across = style.turned ? box.w : box.h;
    style.size = size;
    double shrink = fmin(along / (hb_canvas_width(c, text, &style) + 2 * gap),
                         across / hb_canvas_line(c, &style));
    style.size = shrink < 1 ? floor(size * shrink * 4) / 4 : size;
    if (style.size < smallest_text)
        return false;
    style.across = HB_ALIGN_MIDDLE;
    style.down = HB_ALIGN_MIDDLE;
    struct hb_point middle = {box.x + box.w / 2, box.y + box.h / 2};
    return put_if_free(c, text, place_box(c, text, middle, &style), &style);
}

static bool box_inside(struct hb_box box, struct hb_box bounds)
{
    return box.x >= bounds.x && box.y >= bounds.y && box.x + box.w <= bounds.x + bounds.w &&
           box.y + box.h <= bounds.y + bounds.h;
}

/* Right, left, above, below, then the corners: where the label goes as seen from the mark. */
static const struct {
    int x, y;
    enum hb_align across, down;
} places[] = {
    {1, 0, HB_ALIGN_START, HB_ALIGN_MIDDLE}, {-1, 0, HB_ALIGN_END, HB_ALIGN_MIDDLE},
    {0, -1, HB_ALIGN_MIDDLE, HB_ALIGN_END},  {0, 1, HB_ALIGN_MIDDLE, HB_ALIGN_START},
    {1, -1, HB_ALIGN_START, HB_ALIGN_END},   {1, 1, HB_ALIGN_START, HB_ALIGN_START},
    {-1, -1, HB_ALIGN_END, HB_ALIGN_END},    {-1, 1, HB_ALIGN_END, HB_ALIGN_START},
};

/* Whether a line crosses no label. */
static bool is_clear(const struct hb_canvas *c, struct hb_point from, struct hb_point to)
{
    for (uint32_t i = 0; i < c->layout.label_count; i++) {
        struct hb_point a = from, b = to;
        if (hb_trace_cut(&a, &b, c->layout.labels[i].box))
            return false;
    }
    return true;
}

bool hb_canvas_label_near(struct hb_canvas *c, const char *text, struct hb_point at,
                          struct hb_box bounds, struct hb_style style)
{
    static const double steps[] = {0.7, 1.6, 3};
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++)
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            struct hb_point to = {at.x + places[i].x * steps[s] * c->em,
                                  at.y + places[i].y * steps[s] * c->em};
            style.across = places[i].across;
            style.down = places[i].down;
            struct hb_box box = place_box(c, text, to, &style);
            if (!box_inside(box, bounds) || (s > 0 && !is_clear(c, at, to)) ||
                !put_if_free(c, text, box, &style))
                continue;
            if (s > 0) {
                const struct hb_point thread[2] = {at, to};
                hb_draw_line(c->draw, at, to, (struct hb_pen){style.rgb, 0.6, false});
                hb_canvas_keep_path_free(c, thread, 2);
            }
            return true;
        }
    c->layout.dropped_count++;
    return false;
}

struct gap {
    double from, to; /* along a rule */
};

static int compare_gaps(const void *a, const void *b)
{
    const struct gap *x = a;
    const struct gap *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Where labels stand on the line, in order. */
static uint32_t find_gaps(const struct hb_canvas *c, struct hb_point a, struct hb_point b,
                          bool across, struct gap **out)
{
    static const double air = 1.5;
    uint32_t count = 0;
    *out = hb_arena_alloc(c->arena, c->layout.label_count + 1, sizeof **out);
    for (uint32_t i = 0; i < c->layout.label_count; i++) {
        const struct hb_box *box = &c->layout.labels[i].box;
        bool meets = across ? a.y > box->y - air && a.y < box->y + box->h + air
                            : a.x > box->x - air && a.x < box->x + box->w + air;
        double from = across ? box->x : box->y, to = from + (across ? box->w : box->h);
        if (meets && to > (across ? a.x : a.y) && from < (across ? b.x : b.y))
            (*out)[count++] = (struct gap){from - air, to + air};
    }
    qsort(*out, count, sizeof **out, compare_gaps);
    return count;
}

void hb_canvas_rule(struct hb_canvas *c, struct hb_point a, struct hb_point b,
                    const struct hb_pen *pens, int pen_count)
{
    struct gap *gaps;
    bool across = fabs(b.x - a.x) > fabs(b.y - a.y);
    uint32_t count = find_gaps(c, a, b, across, &gaps);
    double end = across ? b.x : b.y;
    for (int p = 0; p < pen_count; p++) {
        double at = across ? a.x : a.y;
        for (uint32_t i = 0; i <= count; i++) {
            double to = i < count ? fmin(end, gaps[i].from) : end;
            struct hb_point from = across ? (struct hb_point){at, a.y} : (struct hb_point){a.x, at};
            struct hb_point until =
                across ? (struct hb_point){to, a.y} : (struct hb_point){a.x, to};
            if (to > at)
                hb_draw_line(c->draw, from, until, pens[p]);
            at = i < count ? fmax(at, gaps[i].to) : at;
        }
    }
}

/* Where the letter that ends at or before byte `at` begins. */
static size_t letter_start(const char *text, size_t at)
{
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80)
        at--;
    return at;
}

const char *hb_canvas_shorten(struct hb_canvas *c, const char *text, double width,
                              const struct hb_style *style)
{
    size_t len = strlen(text);
    const char *shown = text;
    for (size_t keep = len; hb_canvas_width(c, shown, style) > width;) {
        if (keep <= 6)
            return ""; /* what little is left tells nothing */
        keep -= keep > 40 ? keep / 20 : 1;
        size_t head = letter_start(text, keep - keep / 3);
        size_t tail = letter_start(text, len - keep / 3);
        shown = hb_arena_printf(c->arena, "%.*s\xE2\x80\xA6%s", (int)head, text, text + tail);
    }
    return shown;
}

enum { TITLE_LINES = 3 };

/* Whether a line that ends after a number would part it from its unit: "326" and "ms". */
static bool unit_follows(const char *text, size_t end)
{
    size_t word = strcspn(text + end + strspn(text + end, " "), " ;,");
    bool number = end > 0 && text[end - 1] >= '0' && text[end - 1] <= '9';
    return number && word > 0 && word <= 3;
}

int hb_canvas_wrap(struct hb_canvas *c, const char *text, double width,
                   const struct hb_style *style, const char **out_lines, int most)
{
    int count = 0;
    while (*text) {
        size_t taken = 0;
        for (size_t end = 0; text[end];) {
            end += strspn(text + end, " ");
            end += strcspn(text + end, " ");
            const char *line = hb_arena_strndup(c->arena, text, end);
            if (hb_canvas_width(c, line, style) > width)
                break;
            if (!unit_follows(text, end))
                taken = end;
        }
        if (taken == 0 || count == most)
            return 0;
        out_lines[count++] = hb_arena_strndup(c->arena, text, taken);
        text += taken;
        text += strspn(text, " ");
    }
    return count;
}

static double put_lines(struct hb_canvas *c, const char **lines, int count, double y,
                        struct hb_style style)
{
    for (int i = 0; i < count; i++) {
        hb_canvas_label(c, lines[i], (struct hb_point){c->em, y}, style);
        y += hb_canvas_line(c, &style);
    }
    return y;
}

/* The largest size at which it takes few lines; as a last resort one shortened line. */
static int fit_title(struct hb_canvas *c, const char *title, double width, struct hb_style *style,
                     const char **lines)
{
    static const double sizes[] = {1.3, 1.15, 1.0, 0.9};
    double room = c->look.height * 0.28;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        style->size = fmax(smallest_text, c->em * sizes[i]);
        int count = hb_canvas_wrap(c, title, width, style, lines, TITLE_LINES);
        if (count && count * hb_canvas_line(c, style) <= room && (count <= 2 || i > 1))
            return count;
    }
    lines[0] = hb_canvas_shorten(c, title, width, style);
    return *lines[0] ? 1 : 0;
}

double hb_canvas_title(struct hb_canvas *c, const char *title, const char *below)
{
    const char *lines[TITLE_LINES];
    struct hb_style style = hb_canvas_style(c, "title");
    double width = c->look.width - 2 * c->em;
    style.bold = true;
    c->title = title;
    int count = fit_title(c, title, width, &style, lines);
    double y = put_lines(c, lines, count, c->em * 0.6, style);
    if (below && c->look.height > 26 * c->em) {
        struct hb_style faint = hb_canvas_style(c, "subtitle");
        faint.rgb = hb_canvas_ink(c, HB_INK_FAINT);
        lines[0] = hb_canvas_shorten(c, below, width, &faint);
        y = put_lines(c, lines, 1, y + c->em * 0.2, faint);
    }
    return y + c->em * 0.5;
}

void hb_canvas_add_cell(struct hb_canvas *c, struct hb_layout_cell cell)
{
    struct hb_layout *r = &c->layout;
    r->cells = hb_grow(c->arena, r->cells, r->cell_count, &r->cell_cap, sizeof r->cells[0]);
    r->cells[r->cell_count++] = cell;
}

void hb_canvas_add_point(struct hb_canvas *c, struct hb_layout_point point)
{
    struct hb_layout *r = &c->layout;
    r->points = hb_grow(c->arena, r->points, r->point_count, &r->point_cap, sizeof r->points[0]);
    r->points[r->point_count++] = point;
}

void hb_canvas_add_axis(struct hb_canvas *c, const char *name, const struct hb_scale *scale,
                        bool upright)
{
    struct hb_layout *r = &c->layout;
    r->axes = hb_grow(c->arena, r->axes, r->axis_count, &r->axis_cap, sizeof r->axes[0]);
    r->axes[r->axis_count++] = (struct hb_layout_axis){name, *scale, upright};
}

/* Two decimals are a hundredth of a pixel. */
static double round_px(double px)
{
    return round(px * 100) / 100;
}

static void write_box(struct hb_json *j, struct hb_box box)
{
    hb_json_key(j, "box");
    hb_json_array(j);
    hb_json_real(j, round_px(box.x));
    hb_json_real(j, round_px(box.y));
    hb_json_real(j, round_px(box.w));
    hb_json_real(j, round_px(box.h));
    hb_json_array_end(j);
}

static void write_pair(struct hb_json *j, const char *key, double a, double b)
{
    hb_json_key(j, key);
    hb_json_array(j);
    hb_json_real(j, a);
    hb_json_real(j, b);
    hb_json_array_end(j);
}

static void write_axes(const struct hb_layout *r, struct hb_json *j)
{
    hb_json_key(j, "axes");
    hb_json_array(j);
    for (uint32_t i = 0; i < r->axis_count; i++) {
        const struct hb_scale *s = &r->axes[i].scale;
        hb_json_object(j);
        hb_json_put_text(j, "name", r->axes[i].name);
        hb_json_put_text(j, "side", r->axes[i].upright ? "y" : "x");
        hb_json_put_bool(j, "log", s->logarithmic);
        write_pair(j, "data", s->low, s->high);
        write_pair(j, "px", round_px(s->from_px), round_px(s->to_px));
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void write_labels(const struct hb_layout *r, struct hb_json *j)
{
    hb_json_key(j, "labels");
    hb_json_array(j);
    for (uint32_t i = 0; i < r->label_count; i++) {
        hb_json_object(j);
        hb_json_put_text(j, "text", r->labels[i].text);
        hb_json_put_text(j, "role", r->labels[i].role);
        write_box(j, r->labels[i].box);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void write_cells(const struct hb_layout *r, struct hb_json *j)
{
    hb_json_key(j, "cells");
    hb_json_array(j);
    for (uint32_t i = 0; i < r->cell_count; i++) {
        const struct hb_layout_cell *cell = &r->cells[i];
        hb_json_object(j);
        hb_json_put_text(j, "group", cell->group);
        hb_json_put_text(j, "name", cell->name);
        write_box(j, cell->box);
        hb_json_put_real(j, "value", cell->value);
        if (cell->note)
            hb_json_put_text(j, "note", cell->note);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void write_points(const struct hb_layout *r, struct hb_json *j)
{
    hb_json_key(j, "points");
    hb_json_array(j);
    for (uint32_t i = 0; i < r->point_count; i++) {
        const struct hb_layout_point *p = &r->points[i];
        hb_json_object(j);
        hb_json_put_text(j, "curve", p->curve);
        write_pair(j, "at", round_px(p->at.x), round_px(p->at.y));
        write_pair(j, "data", p->x, p->y);
        if (p->axis > 0) {
            hb_json_put_int(j, "axis", p->axis);
        }
        if (p->note)
            hb_json_put_text(j, "note", p->note);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

void hb_canvas_write_layout(const struct hb_canvas *c, struct hb_json *j)
{
    hb_json_object(j);
    hb_json_put_real(j, "width", c->look.width);
    hb_json_put_real(j, "height", c->look.height);
    hb_json_put_text(j, "title", c->title);
    hb_json_put_int(j, "dropped", c->layout.dropped_count);
    write_axes(&c->layout, j);
    write_labels(&c->layout, j);
    write_cells(&c->layout, j);
    write_points(&c->layout, j);
    hb_json_object_end(j);
}
