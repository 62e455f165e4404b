/* The tornado chart: see tornado.h. */
#include "plots/tornado.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/size.h"
#include "base/str.h"
#include "plots/frame.h"
#include "plots/place.h"
#include "plots/reading.h"
#include "solver/advise.h"

/* Levers that do nothing are put in from the end of the room backwards. */
struct filling {
    struct hb_tornado *t;
    uint32_t room;
};

static void add_lever(struct filling *f, struct hb_lever lever, bool applies)
{
    if (applies)
        f->t->levers[f->t->count++] = lever;
    else
        f->t->levers[f->room - ++f->t->idle_count] = lever;
}

static void read_levers(struct hb_reading *f, const struct hb_node *list, bool pair,
                        struct filling *into)
{
    for (const struct hb_node *node = list ? list->first : NULL; node; node = node->next) {
        struct hb_lever lever = {.name = "", .why = "", .pair = pair};
        bool applies = true;
        hb_reading_text(f, node, "name", &lever.name);
        hb_reading_text(f, node, "why", &lever.why);
        hb_reading_bytes(f, node, "freed_bytes", -(INT64_MAX / 4), &lever.freed_bytes);
        hb_reading_real(f, node, "cost_seconds", &lever.cost_seconds);
        hb_reading_bool(f, node, "applies", &applies);
        add_lever(into, lever, applies);
    }
}

static int compare_levers(const void *a, const void *b)
{
    const struct hb_lever *x = a;
    const struct hb_lever *y = b;
    if (x->freed_bytes != y->freed_bytes)
        return x->freed_bytes > y->freed_bytes ? -1 : 1;
    if (x->cost_seconds < y->cost_seconds || x->cost_seconds > y->cost_seconds)
        return x->cost_seconds < y->cost_seconds ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void sort_levers(struct hb_tornado *t)
{
    qsort(t->levers, t->count, sizeof *t->levers, compare_levers);
    qsort(t->levers + t->count, t->idle_count, sizeof *t->levers, compare_levers);
}

static void add_advice(struct filling *f, const struct hb_advice *list, uint32_t count, bool pair)
{
    for (uint32_t i = 0; i < count; i++)
        add_lever(f,
                  (struct hb_lever){list[i].name, list[i].why, list[i].freed_bytes,
                                    (double)list[i].cost_ns * 1e-9, pair},
                  list[i].applies);
}

void hb_tornado_make(struct hb_arena *arena, const char *name, const struct hb_advice_list *list,
                     struct hb_tornado *out)
{
    struct filling f = {out, list->knob_count + list->pair_count};
    *out = (struct hb_tornado){.name = name,
                               .peak_bytes = list->peak_bytes,
                               .budget_bytes = list->budget_bytes,
                               .step_seconds = (double)list->step_ns * 1e-9,
                               .levers = hb_arena_alloc(arena, f.room, sizeof *out->levers)};
    add_advice(&f, list->knobs, list->knob_count, false);
    add_advice(&f, list->pairs, list->pair_count, true);
    sort_levers(out);
}

bool hb_tornado_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *json,
                     struct hb_tornado *out)
{
    struct hb_reading f = {arena, diag, true};
    const struct hb_node *levers = hb_reading_list(&f, json, "levers");
    const struct hb_node *pairs = hb_reading_list(&f, json, "pairs");
    *out = (struct hb_tornado){.name = ""};
    if (!levers || levers->count == 0) {
        hb_reading_wrong(&f, json, "levers", "at least one lever");
        return false;
    }
    struct filling filling = {out, (uint32_t)levers->count + (uint32_t)(pairs ? pairs->count : 0)};
    out->levers = hb_arena_alloc(arena, filling.room, sizeof *out->levers);
    hb_reading_text(&f, json, "name", &out->name);
    out->place = hb_place_read(arena, json, HB_WHERE_MESH);
    hb_reading_bytes(&f, json, "peak_bytes", 0, &out->peak_bytes);
    hb_reading_bytes(&f, json, "budget_bytes", 0, &out->budget_bytes);
    hb_reading_real(&f, json, "step_seconds", &out->step_seconds);
    read_levers(&f, levers, false, &filling);
    read_levers(&f, pairs, true, &filling);
    sort_levers(out);
    return f.ok;
}

#define SMALLEST_PCT 0.05 /* less is printed as nothing */

/* "+23 %", or in seconds where the step's time is not known. */
static const char *cost_text(struct hb_arena *arena, const struct hb_tornado *t,
                             const struct hb_lever *lever)
{
    char text[HB_TICK_TEXT];
    const char *sign = lever->cost_seconds < 0 ? "\xE2\x88\x92" : "+";
    double cost = fabs(lever->cost_seconds);
    if (t->step_seconds > 0) {
        double pct = 100 * cost / t->step_seconds;
        if (pct < SMALLEST_PCT)
            return "0 %";
        return hb_arena_printf(arena, "%s%.*f %%", sign, pct < 9.95 ? 1 : 0, pct);
    }
    return hb_arena_printf(arena, "%s%s", sign, hb_unit_print(HB_UNIT_SECONDS, cost, text));
}

const char *hb_tornado_title(struct hb_arena *arena, const struct hb_tornado *t)
{
    char freed[HB_TICK_TEXT];
    const struct hb_lever *best = &t->levers[0];
    if (t->count == 0 || best->freed_bytes <= 0)
        return "no lever frees memory at the peak";
    hb_unit_print(HB_UNIT_BYTES, (double)best->freed_bytes, freed);
    const char *title = hb_arena_printf(arena, "%s free%s most: %s (step time %s)", best->name,
                                        best->pair ? "" : "s", freed, cost_text(arena, t, best));
    int64_t lack = t->peak_bytes - t->budget_bytes;
    if (t->budget_bytes <= 0 || lack <= 0)
        return title;
    hb_unit_print(HB_UNIT_BYTES, (double)lack, freed);
    return hb_arena_printf(arena, "%s; %s are lacking", title, freed);
}

struct view {
    struct hb_canvas *c;
    const struct hb_tornado *t;
    struct hb_frame freed;
    struct hb_frame cost;
    double pitch;
    double names;  /* room for them */
    double widest; /* of them */
    uint32_t shown;
    double lack; /* where the line of what is lacking stands; 0: there is none */
};

static struct hb_box bar_box(const struct hb_frame *f, double pitch, uint32_t row, double value)
{
    double zero = hb_scale_at(&f->x, 0);
    double end = hb_scale_at(&f->x, value);
    return (struct hb_box){fmin(zero, end), f->area.y + pitch * (row + 0.16), fabs(end - zero),
                           pitch * 0.68};
}

/* In the end of its bar, as the line of what is lacking stands where it would else. */
static void write_inside(struct view *v, struct hb_box bar, const char *text, struct hb_style style,
                         uint32_t rgb)
{
    style.plate = rgb;
    style.rgb = hb_colour_on(rgb);
    style.across = HB_ALIGN_END;
    hb_canvas_label(v->c, text,
                    (struct hb_point){bar.x + bar.w - v->c->em * 0.35, bar.y + bar.h / 2}, style);
}

/* The value beside the end of its bar, inside the area; inside the bar where there is no room. */
static void write_value(struct view *v, const struct hb_frame *f, struct hb_box bar, bool leftward,
                        const char *text, uint32_t rgb)
{
    struct hb_canvas *c = v->c;
    struct hb_style style = hb_canvas_style(c, "value");
    style.size = fmax(6, c->em * 0.88);
    style.plated = true;
    style.plate = hb_canvas_ink(c, HB_INK_PANEL);
    style.down = HB_ALIGN_MIDDLE;
    double y = bar.y + bar.h / 2;
    double width = hb_canvas_width(c, text, &style);
    double right = bar.x + bar.w + c->em * 0.35;
    bool struck = f == &v->freed && v->lack > right - 4 && v->lack < right + width + 4;
    if (struck && bar.w > width + c->em) {
        write_inside(v, bar, text, style, rgb);
        return;
    }
    double left = bar.x - c->em * 0.35;
    bool fits = leftward ? left - width > f->area.x : right + width < c->look.width - c->em * 0.4;
    if (!fits)
        return;
    style.across = leftward ? HB_ALIGN_END : HB_ALIGN_START;
    hb_canvas_label(c, text, (struct hb_point){leftward ? left : right, y}, style);
}

static void draw_lever(struct view *v, uint32_t row)
{
    struct hb_canvas *c = v->c;
    const struct hb_lever *lever = &v->t->levers[row];
    char text[HB_TICK_TEXT];
    struct hb_style style = hb_canvas_style(c, "lever");
    style.across = HB_ALIGN_END;
    style.down = HB_ALIGN_MIDDLE;
    style.size = fmax(6, c->em * 0.95);
    style.size = fmax(6, style.size * fmax(0.8, fmin(1, v->names / v->widest)));
    struct hb_box bar = bar_box(&v->freed, v->pitch, row, (double)lever->freed_bytes);
    const char *name = hb_canvas_shorten(c, lever->name, v->names, &style);
    hb_canvas_label(c, name, (struct hb_point){v->freed.area.x - c->em * 0.5, bar.y + bar.h / 2},
                    style);
    bool worse = lever->freed_bytes < 0;
    uint32_t rgb = hb_ink_group(c->look.theme, worse ? 1 : 0);
    hb_draw_box(c->draw, bar, rgb);
    if (lever->pair)
        hb_draw_hatch(c->draw, bar, 6, (struct hb_pen){hb_canvas_ink(c, HB_INK_BACK), 0.8, false});
    hb_unit_print(HB_UNIT_BYTES, fabs((double)lever->freed_bytes), text);
    const char *amount = hb_arena_printf(c->arena, "%s%s", worse ? "\xE2\x88\x92" : "", text);
    hb_canvas_add_cell(c, (struct hb_layout_cell){"freed", lever->name, lever->why, bar,
                                                  (double)lever->freed_bytes});
    write_value(v, &v->freed, bar, worse, amount, rgb);
    if (v->cost.area.w <= 4)
        return;
    struct hb_box cost = bar_box(&v->cost, v->pitch, row, lever->cost_seconds);
    bool faster =
        lever->cost_seconds < 0 && -100 * lever->cost_seconds >= SMALLEST_PCT * v->t->step_seconds;
    rgb = hb_ink_group(c->look.theme, faster ? 2 : 4);
    hb_draw_box(c->draw, cost, rgb);
    hb_canvas_add_cell(
        c, (struct hb_layout_cell){"cost", lever->name, lever->why, cost, lever->cost_seconds});
    write_value(v, &v->cost, cost, faster, cost_text(c->arena, v->t, lever), rgb);
}

/* With room for the values that stand beside the longest bars of a panel that is width wide. */
static struct hb_scale make_scale(struct hb_canvas *c, double low, double high, enum hb_unit unit,
                                  double width)
{
    struct hb_style style = hb_canvas_style(c, "value");
    double text = hb_canvas_width(c,
                                  unit == HB_UNIT_BYTES ? "\xE2\x88\x92"
                                                          "88.88 GiB"
                                                        : "+88.8 %",
                                  &style);
    low = fmin(low, 0);
    high = fmax(high, 0);
    double span = high > low ? high - low : 1;
    double bars = fmax(width * 0.3, width - (low < 0 ? 2 : 1) * text);
    double room = span / bars * text;
    return (struct hb_scale){.low = low < 0 ? low - room : 0, .high = high + room, .unit = unit};
}

static void make_scales(struct view *v, double freed_px, double cost_px)
{
    double low_b = 0, high_b = 0, low_s = 0, high_s = 0;
    for (uint32_t i = 0; i < v->shown; i++) {
        const struct hb_lever *lever = &v->t->levers[i];
        low_b = fmin(low_b, (double)lever->freed_bytes);
        high_b = fmax(high_b, (double)lever->freed_bytes);
        low_s = fmin(low_s, lever->cost_seconds);
        high_s = fmax(high_s, lever->cost_seconds);
    }
    int64_t lack = v->t->peak_bytes - v->t->budget_bytes;
    if (v->t->budget_bytes > 0 && (double)lack < 2 * high_b)
        high_b = fmax(high_b, (double)lack);
    v->freed.x = make_scale(v->c, low_b, high_b, HB_UNIT_BYTES, freed_px);
    v->cost.x = make_scale(v->c, low_s, high_s, HB_UNIT_SECONDS, cost_px);
    v->freed.x_name = "freed at the peak";
    v->cost.x_name = "added to the step";
    v->freed.y_name = v->cost.y_name = "";
}

static void draw_panel(struct view *v, struct hb_frame *f)
{
    struct hb_canvas *c = v->c;
    hb_draw_box(c->draw, f->area, hb_canvas_ink(c, HB_INK_PANEL));
    hb_frame_draw_across(c, f);
    double zero = hb_scale_at(&f->x, 0);
    hb_draw_line(c->draw, (struct hb_point){zero, f->area.y},
                 (struct hb_point){zero, f->area.y + f->area.h},
                 (struct hb_pen){hb_canvas_ink(c, HB_INK_AXIS), 1, false});
    hb_canvas_add_axis(c, f->x_name, &f->x, false);
}

static void place_lack(struct view *v)
{
    int64_t lack = v->t->peak_bytes - v->t->budget_bytes;
    const struct hb_box *area = &v->freed.area;
    double px = hb_scale_at(&v->freed.x, (double)lack);
    v->lack = v->t->budget_bytes > 0 && lack > 0 && px <= area->x + area->w ? px : 0;
}

/* A line at what is lacking: a lever that reaches it makes the configuration fit. */
static void draw_lack(struct view *v)
{
    struct hb_canvas *c = v->c;
    const struct hb_box *area = &v->freed.area;
    double px = v->lack;
    if (px <= 0)
        return;
    struct hb_style style = hb_canvas_style(c, "budget");
    style.rgb = hb_canvas_ink(c, HB_INK_BUDGET);
    style.bold = true;
    style.across = HB_ALIGN_MIDDLE;
    style.down = HB_ALIGN_END;
    struct hb_pen pen = {style.rgb, 1.4, true};
    hb_canvas_label(c, "enough to fit", (struct hb_point){px, area->y - 1}, style);
    hb_canvas_rule(c, (struct hb_point){px, area->y}, (struct hb_point){px, area->y + area->h},
                   &pen, 1);
}

static double widest_name(struct view *v)
{
    struct hb_style style = hb_canvas_style(v->c, "lever");
    double widest = 0;
    for (uint32_t i = 0; i < v->shown; i++)
        widest = fmax(widest, hb_canvas_width(v->c, v->t->levers[i].name, &style));
    return widest;
}

/* What the bars do not say. */
static const char *describe(struct hb_arena *arena, const struct hb_tornado *t)
{
    struct hb_str text;
    bool pair = false;
    for (uint32_t i = 0; i < t->count; i++)
        pair = pair || t->levers[i].pair;
    hb_str_init(&text, arena);
    hb_str_add(&text, hb_place_under(arena, t->name, t->place));
    if (pair)
        hb_str_addf(&text, "%shatched: two levers together", text.len ? "  \xC2\xB7  " : "");
    if (t->idle_count)
        hb_str_addf(&text, "%s%u %sdo nothing here", text.len ? "  \xC2\xB7  " : "", t->idle_count,
                    t->count ? "more " : "");
    return text.text;
}

void hb_tornado_draw(struct hb_canvas *c, const struct hb_tornado *t)
{
    struct view v = {.c = c, .t = t};
    const char *below = describe(c->arena, t);
    double top = hb_canvas_title(c, hb_tornado_title(c->arena, t), *below ? below : NULL);
    struct hb_box page = {c->em, top + c->em * 1.2, c->look.width - 2 * c->em,
                          c->look.height - top - c->em * 2.2};
    double rows = (page.h - c->em * 3) / (c->em * 1.25);
    v.shown = rows < 1 ? 1 : rows < t->count ? (uint32_t)rows : t->count;
    if (t->count == 0)
        return;
    v.widest = widest_name(&v);
    v.names = fmin(v.widest, page.w * 0.46);
    bool costs = page.w - v.names > c->em * 26;
    struct hb_box bars = page; /* right of the names */
    bars.x += v.names + c->em * 0.6;
    bars.w -= v.names + c->em * 0.6;
    struct hb_box left = bars;
    left.w = costs ? bars.w * 0.6 : bars.w;
    v.freed.left = 0.01;
    make_scales(&v, left.w, bars.w - left.w - c->em);
    if (!hb_frame_make(c, left, &v.freed))
        return;
    v.pitch = fmin(v.freed.area.h / v.shown, c->em * 3.2);
    v.freed.area.h = v.pitch * v.shown;
    if (costs) {
        v.cost.left = 0.01;
        hb_frame_make(
            c, (struct hb_box){left.x + left.w + c->em, page.y, bars.w - left.w - c->em, page.h},
            &v.cost);
        v.cost.area.h = v.freed.area.h;
        draw_panel(&v, &v.cost);
    }
    draw_panel(&v, &v.freed);
    place_lack(&v);
    for (uint32_t i = 0; i < v.shown; i++)
        draw_lever(&v, i);
    draw_lack(&v);
}
