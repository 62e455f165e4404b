/* The timeline: see stepview.h. Layout, from the page down: title; phases; stacked memory with a
 * side panel (what stands at the peak) on wide pages, or a legend at the foot on narrow ones;
 * streams. Parts for which a page is too small are left out, the memory itself never. */
#include "plots/stepview.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "plots/frame.h"
#include "plots/place.h"

enum { TOP_TENSORS = 5, MOST_KEYS = HB_CATEGORY_COUNT + 1 };

struct view {
    struct hb_canvas *c;
    const struct hb_outcome *o;
    struct hb_frame memory;
    struct hb_box side;   /* w 0: none */
    struct hb_box legend; /* h 0: none */
    struct hb_box phases; /* strip above the memory; h 0: none */
    double row;           /* height of a stream's row; 0: no streams */
    uint32_t *shown;      /* samples drawn, in order ... */
    double *from;         /* ... and where each begins, across */
    uint32_t shown_count;
    double end_seconds;
    double budget_right; /* where the budget's name ends; 0: it stands in the legend */
};

const char *hb_stepview_title(struct hb_arena *arena, const struct hb_outcome *o)
{
    char at[HB_TICK_TEXT];
    const char *verdict = hb_outcome_verdict(arena, o);
    double seconds = o->seconds[hb_outcome_peak_sample(o)];
    const char *phase = hb_outcome_phase_at(o, seconds);
    hb_unit_print(HB_UNIT_SECONDS, seconds, at);
    if (!*phase)
        return hb_arena_printf(arena, "%s; highest at %s", verdict, at);
    return hb_arena_printf(arena, "%s; highest in %s, at %s", verdict, phase, at);
}

static const char *make_subtitle(struct hb_canvas *c, const struct hb_outcome *o)
{
    struct hb_str s;
    char text[HB_TICK_TEXT];
    hb_str_init(&s, c->arena);
    hb_str_add(&s, hb_place_under(c->arena, o->name, o->place));
    if (o->step_seconds > 0)
        hb_str_addf(&s, "%sstep %s", s.len ? "  \xC2\xB7  " : "",
                    hb_unit_print(HB_UNIT_SECONDS, o->step_seconds, text));
    if (o->tokens_per_second > 0)
        hb_str_addf(&s, "  \xC2\xB7  %s tokens/s", hb_count_print(o->tokens_per_second, text));
    if (o->mfu > 0)
        hb_str_addf(&s, "  \xC2\xB7  MFU %.1f %%", o->mfu * 100);
    return s.len ? s.text : NULL;
}

static bool has_curve(const struct hb_outcome *o, enum hb_category category)
{
    const int64_t *curve = o->category_curve[category];
    for (uint32_t i = 0; curve && i < o->sample_count; i++)
        if (curve[i] > 0)
            return true;
    return false;
}

/* Keys of the categories, top of the stack first. */
static int make_keys(struct view *v, struct hb_key *keys)
{
    int count = 0;
    uint32_t peak = hb_outcome_peak_sample(v->o);
    for (int i = HB_CATEGORY_COUNT - 1; i >= 0; i--) {
        enum hb_category category = hb_stack_order[i];
        if (!has_curve(v->o, category))
            continue;
        char *value = hb_arena_alloc(v->c->arena, HB_TICK_TEXT, 1);
        int64_t bytes = v->o->category_curve[category][peak];
        hb_unit_print(HB_UNIT_BYTES, (double)bytes, value);
        keys[count++] = (struct hb_key){.rgb = hb_ink_category(v->c->look.theme, category),
                                        .text = hb_category_name(category),
                                        .value = bytes > 0 ? value : NULL,
                                        .hatched = category == HB_CAT_FRAGMENTATION,
                                        .mark = HB_KEY_SWATCH};
    }
    if (v->o->budget_bytes > 0 && v->budget_right <= 0) {
        char *value = hb_arena_alloc(v->c->arena, HB_TICK_TEXT, 1);
        hb_unit_print(HB_UNIT_BYTES, (double)v->o->budget_bytes, value);
        keys[count++] = (struct hb_key){.rgb = hb_canvas_ink(v->c, HB_INK_BUDGET),
                                        .text = "budget",
                                        .value = value,
                                        .mark = HB_KEY_DASHES};
    }
    return count;
}

/* Bars of a lane and samples of the memory on a unit: bytes count on a web page. */
static double per_unit(const struct view *v)
{
    return v->c->look.live_text ? 1 : 2;
}

/* The peak is wide enough to be seen; what comes just after it gives way. */
static void widen_peak(struct view *v)
{
    static const double width = 2;
    uint32_t peak = hb_outcome_peak_sample(v->o), k = 0, next;
    while (k < v->shown_count && v->shown[k] != peak)
        k++;
    for (next = k + 1; next < v->shown_count && v->from[next] < v->from[k] + width;)
        next++;
    if (k >= v->shown_count || next == k + 1)
        return;
    next--; /* the last of these shows from where the peak ends */
    memmove(&v->shown[k + 1], &v->shown[next], (v->shown_count - next) * sizeof *v->shown);
    memmove(&v->from[k + 1], &v->from[next], (v->shown_count - next) * sizeof *v->from);
    v->shown_count -= next - k - 1;
    v->from[k + 1] = v->from[k] + width;
}

/* The samples that a page of this width can show: of those that fall on half a unit (on a web page,
 * whose bytes count, on one), the one with the largest total, which takes all of it, so that no
 * peak is lost however short it is. */
static void choose_samples(struct view *v)
{
    const struct hb_outcome *o = v->o;
    double each = per_unit(v);
    int64_t best = -1;
    double last = -1;
    v->shown = hb_arena_alloc(v->c->arena, o->sample_count, sizeof *v->shown);
    v->from = hb_arena_alloc(v->c->arena, o->sample_count, sizeof *v->from);
    for (uint32_t i = 0; i < o->sample_count; i++) {
        double bin = floor(hb_scale_at(&v->memory.x, o->seconds[i]) * each);
        int64_t total = hb_outcome_total(o, i);
        if (bin != last)
            best = -1;
        if (total > best) {
            v->shown_count -= bin == last;
            v->from[v->shown_count] = fmax(bin / each, v->memory.area.x);
            v->shown[v->shown_count++] = i;
            best = total;
        }
        last = bin;
    }
    widen_peak(v);
}

static double until(const struct view *v, uint32_t k)
{
    return k + 1 < v->shown_count ? v->from[k + 1] : hb_scale_at(&v->memory.x, v->end_seconds);
}

/* Adds a corner of a staircase; points on one level become the two ends of it. */
static uint32_t add_corner(struct hb_point *steps, uint32_t count, struct hb_point at)
{
    bool level = count >= 2 && fabs(steps[count - 1].y - at.y) < 0.05 &&
                 fabs(steps[count - 2].y - at.y) < 0.05;
    steps[level ? count - 1 : count] = at;
    return level ? count : count + 1;
}

static uint32_t make_steps(const struct view *v, const double *heights, struct hb_point *steps)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < v->shown_count; k++) {
        double y = hb_scale_at(&v->memory.y, heights[k]);
        count = add_corner(steps, count, (struct hb_point){v->from[k], y});
        count = add_corner(steps, count, (struct hb_point){until(v, k), y});
    }
    return count;
}

/* A rim on what is level: on the flanks of spikes it would hide them. */
static void draw_rim(struct view *v, const struct hb_point *top, uint32_t count)
{
    static const double least = 1.5;
    struct hb_point *ends = hb_arena_alloc(v->c->arena, (size_t)count * 2, sizeof *ends);
    uint32_t n = 0;
    for (uint32_t i = 0; i + 1 < count; i++) {
        if (fabs(top[i + 1].y - top[i].y) > 0.05 || top[i + 1].x - top[i].x < least)
            continue;
        ends[n++] = top[i];
        ends[n++] = top[i + 1];
    }
    hb_draw_segments(v->c->draw, ends, n,
                     (struct hb_pen){hb_canvas_ink(v->c, HB_INK_BACK), 0.5, false});
}

/* One band as steps: forth along its top, back along its base; moves the base to the top. */
static void draw_band(struct view *v, enum hb_category category, double *base)
{
    struct hb_canvas *c = v->c;
    uint32_t n = v->shown_count;
    const int64_t *curve = v->o->category_curve[category];
    struct hb_point *outline = hb_arena_alloc(c->arena, (size_t)n * 4, sizeof *outline);
    struct hb_point *under = hb_arena_alloc(c->arena, (size_t)n * 2, sizeof *under);
    uint32_t under_count = make_steps(v, base, under);
    for (uint32_t k = 0; k < n; k++) {
        double start = v->o->seconds[v->shown[k]];
        base[k] += (double)curve[v->shown[k]];
        hb_canvas_add_point(c, (struct hb_layout_point){hb_category_name(category),
                                                        hb_frame_at(&v->memory, start, base[k]),
                                                        start, base[k], NULL, 0});
    }
    uint32_t top_count = make_steps(v, base, outline);
    for (uint32_t k = 0; k < under_count; k++)
        outline[top_count + k] = under[under_count - 1 - k];
    hb_draw_add_area(c->draw, outline, top_count + under_count);
    hb_draw_fill(c->draw, hb_ink_category(c->look.theme, category), 1);
    draw_rim(v, outline, top_count);
}

static void draw_stack(struct view *v)
{
    double *base = hb_arena_alloc(v->c->arena, v->shown_count, sizeof *base);
    hb_draw_clip(v->c->draw, v->memory.area);
    for (int i = 0; i < HB_CATEGORY_COUNT; i++)
        if (has_curve(v->o, hb_stack_order[i]))
            draw_band(v, hb_stack_order[i], base);
    hb_draw_unclip(v->c->draw);
}

static void draw_phases(struct view *v)
{
    struct hb_canvas *c = v->c;
    struct hb_style style = hb_canvas_style(c, "phase");
    style.rgb = hb_canvas_ink(c, HB_INK_FAINT);
    for (uint32_t i = 0; i < v->o->phase_count; i++) {
        const struct hb_shown_span *phase = &v->o->phases[i];
        double from = hb_scale_at(&v->memory.x, phase->start_seconds);
        double to = hb_scale_at(&v->memory.x, phase->end_seconds);
        struct hb_box box = {from, v->phases.y, to - from, v->phases.h};
        if (i % 2 == 0)
            hb_draw_box(c->draw, box, hb_canvas_ink(c, HB_INK_GRID));
        hb_canvas_add_cell(c, (struct hb_layout_cell){"phase", phase->name, NULL, box,
                                                      phase->end_seconds - phase->start_seconds});
        hb_canvas_label_in(c, phase->name, box, style);
    }
}

/* Where each phase begins, around what is written there. */
static void draw_phase_lines(struct view *v)
{
    const struct hb_box *area = &v->memory.area;
    struct hb_pen pen = {hb_canvas_ink(v->c, HB_INK_AXIS), 0.7, false};
    for (uint32_t i = 0; i < v->o->phase_count; i++) {
        double x = hb_scale_at(&v->memory.x, v->o->phases[i].start_seconds);
        hb_canvas_rule(v->c, (struct hb_point){x, v->phases.y},
                       (struct hb_point){x, area->y + area->h}, &pen, 1);
    }
}

/* Where the peak may really be: a line up from its mark, and below it an end on either side, so
 * that a spike is not hidden, however narrow. */
static void draw_interval(struct view *v, double x)
{
    struct hb_canvas *c = v->c;
    struct hb_box area = v->memory.area;
    double top = fmax(hb_scale_at(&v->memory.y, (double)v->o->high_bytes), area.y);
    double bottom = hb_scale_at(&v->memory.y, (double)v->o->low_bytes);
    double peak = hb_scale_at(&v->memory.y, (double)v->o->peak_bytes);
    double half = c->em * 0.5, clear = c->em * 0.2;
    if (v->o->high_bytes <= 0 || bottom - top < 0.5 || bottom > area.y + area.h)
        return;
    const struct hb_point ends[] = {{x, peak},           {x, top},           {x - half, top},
                                    {x + half, top},     {x - half, bottom}, {x - clear, bottom},
                                    {x + clear, bottom}, {x + half, bottom}};
    hb_draw_segments(c->draw, ends, 8, (struct hb_pen){hb_canvas_ink(c, HB_INK_BACK), 3.2, false});
    hb_draw_segments(c->draw, ends, 8, (struct hb_pen){hb_canvas_ink(c, HB_INK_TEXT), 1.2, false});
}

static void draw_peak(struct view *v)
{
    struct hb_canvas *c = v->c;
    uint32_t peak = hb_outcome_peak_sample(v->o);
    char bytes[HB_TICK_TEXT];
    double total = (double)hb_outcome_total(v->o, peak);
    double seconds = v->o->seconds[peak];
    struct hb_point at = hb_frame_at(&v->memory, seconds, total);
    struct hb_style style = hb_canvas_style(c, "peak");
    style.bold = true;
    style.plated = true;
    style.plate = hb_canvas_ink(c, HB_INK_PANEL);
    draw_interval(v, at.x);
    hb_draw_mark(c->draw, at, HB_MARK_DISC, c->em * 0.32, hb_canvas_ink(c, HB_INK_TEXT),
                 hb_canvas_ink(c, HB_INK_BACK));
    hb_canvas_add_point(c, (struct hb_layout_point){"peak", at, seconds, total, NULL, 0});
    const char *text =
        hb_arena_printf(c->arena, "peak %s", hb_unit_print(HB_UNIT_BYTES, total, bytes));
    bool left =
        at.x + c->em + hb_canvas_width(c, text, &style) > v->memory.area.x + v->memory.area.w;
    style.down = HB_ALIGN_MIDDLE;
    style.across = left ? HB_ALIGN_END : HB_ALIGN_START;
    hb_canvas_label(c, text, (struct hb_point){at.x + c->em * (left ? -0.7 : 0.7), at.y}, style);
}

static uint32_t stream_colour(const struct hb_canvas *c, uint32_t index)
{
    return hb_ink_group(c->look.theme, (int)index);
}

/* What of each part of a unit a stream is busy is the height of its bar there, in steps of an
 * eighth; what is busy at all is seen. */
static void fill_lane(struct view *v, const double *busy, uint32_t count, struct hb_box row,
                      uint32_t rgb)
{
    static const double steps = 8;
    double each = per_unit(v);
    double open = 0, from = 0;
    for (uint32_t i = 0; i <= count; i++) {
        double level = i < count && busy[i] > 0 ? fmax(1, round(fmin(1, busy[i]) * steps)) : 0;
        if (level == open)
            continue;
        double h = row.h * open / steps;
        struct hb_box box = {row.x + from / each, row.y + row.h - h, (i - from) / each, h};
        if (open > 0)
            hb_draw_add_box(v->c->draw, box);
        open = level;
        from = i;
    }
    hb_draw_fill(v->c->draw, rgb, 1);
}

static void draw_spans(struct view *v, const struct hb_shown_stream *stream, struct hb_box row,
                       uint32_t rgb)
{
    const struct hb_scale *x = &v->memory.x;
    double each = per_unit(v);
    uint32_t count = (uint32_t)ceil(row.w * each);
    double *busy = hb_arena_alloc(v->c->arena, count + 1, sizeof *busy);
    for (uint32_t i = 0; i < stream->span_count; i++) {
        const struct hb_shown_span *span = &stream->spans[i];
        double from = hb_scale_at(x, span->start_seconds);
        double to = fmax(hb_scale_at(x, span->end_seconds), from);
        hb_canvas_add_cell(v->c, (struct hb_layout_cell){"span",
                                                         span->name,
                                                         stream->name,
                                                         {from, row.y, fmax(to - from, 0.2), row.h},
                                                         span->end_seconds - span->start_seconds});
        double a = fmax(0, (from - row.x) * each), b = fmin(count, (to - row.x) * each);
        for (uint32_t k = (uint32_t)a; k < count && k < b; k++)
            busy[k] += fmin(b, k + 1.) - fmax(a, k);
    }
    fill_lane(v, busy, count, row, rgb);
}

static void draw_busy(struct view *v, const struct hb_shown_stream *stream, double y)
{
    struct hb_style style = hb_canvas_style(v->c, "busy");
    style.size = fmax(6, v->c->em * 0.9);
    style.rgb = hb_canvas_ink(v->c, HB_INK_FAINT);
    style.down = HB_ALIGN_MIDDLE;
    if (v->side.w <= 0 || v->end_seconds <= 0)
        return;
    const char *text = hb_arena_printf(v->c->arena, "busy %.0f %% of the step",
                                       100 * stream->busy_seconds / v->end_seconds);
    hb_canvas_label(v->c, hb_canvas_shorten(v->c, text, v->side.w, &style),
                    (struct hb_point){v->side.x, y}, style);
}

/* Rows of streams below the memory; the last carries the axis of time. */
static void draw_streams(struct view *v, double top)
{
    struct hb_canvas *c = v->c;
    struct hb_style style = hb_canvas_style(c, "stream");
    style.size = fmax(6, c->em * 0.9);
    style.across = HB_ALIGN_END;
    style.down = HB_ALIGN_MIDDLE;
    for (uint32_t i = 0; i < v->o->stream_count; i++) {
        const struct hb_shown_stream *stream = &v->o->streams[i];
        const struct hb_box *area = &v->memory.area;
        struct hb_box row = {area->x, top + v->row * i, area->w, v->row};
        struct hb_box bar = {row.x, row.y + v->row * 0.14, row.w, v->row * 0.72};
        hb_draw_box(c->draw, bar, hb_canvas_ink(c, HB_INK_PANEL));
        draw_spans(v, stream, bar, stream_colour(c, i));
        const char *name = hb_canvas_shorten(c, stream->name, area->x - c->em * 0.6, &style);
        hb_canvas_label(c, name, (struct hb_point){area->x - c->em * 0.4, row.y + v->row / 2},
                        style);
        draw_busy(v, stream, row.y + v->row / 2);
    }
}

/* One tensor of the peak: its bytes and category's colour, then its name, and why it is there. */
static double draw_tensor(struct view *v, const struct hb_shown_tensor *t, double y)
{
    struct hb_canvas *c = v->c;
    char bytes[HB_TICK_TEXT];
    struct hb_style style = hb_canvas_style(c, "tensor");
    style.size = fmax(6, c->em * 0.88);
    double line = hb_canvas_line(c, &style);
    double side = style.size * 0.8;
    hb_unit_print(HB_UNIT_BYTES, (double)t->bytes, bytes);
    const char *text = hb_arena_printf(c->arena, "%s  %s", bytes, t->name);
    text = hb_canvas_shorten(c, text, v->side.w - side * 1.7, &style);
    if (!hb_canvas_label(c, text, (struct hb_point){v->side.x + side * 1.7, y}, style))
        return line;
    hb_draw_box(c->draw, (struct hb_box){v->side.x, y + (line - side) / 2, side, side},
                hb_ink_category(c->look.theme, t->category));
    return line + 1.5;
}

static void draw_side(struct view *v)
{
    struct hb_canvas *c = v->c;
    struct hb_key keys[MOST_KEYS];
    struct hb_style head = hb_canvas_style(c, "heading");
    double bottom = v->side.y + v->side.h;
    double line = hb_canvas_line(c, &head);
    head.bold = true;
    int count = make_keys(v, keys);
    double y = v->side.y;
    hb_canvas_label(c, hb_canvas_shorten(c, "at the peak", v->side.w, &head),
                    (struct hb_point){v->side.x, y}, head);
    y += line * 1.15;
    y += hb_legend_draw(c, (struct hb_box){v->side.x, y, v->side.w, bottom - y}, keys, count);
    y += line * 0.7;
    if (v->o->tensor_count == 0 || y + line * 2.4 > bottom)
        return;
    hb_canvas_label(c, hb_canvas_shorten(c, "largest tensors", v->side.w, &head),
                    (struct hb_point){v->side.x, y}, head);
    y += line * 1.15;
    for (uint32_t i = 0; i < v->o->tensor_count && i < TOP_TENSORS && y + line < bottom; i++)
        y += draw_tensor(v, &v->o->tensors[i], y);
}

/* Whether data stand in the box: nothing is written on them where it can be helped. */
static bool is_blank(const struct view *v, struct hb_box box)
{
    for (uint32_t k = 0; k < v->shown_count; k++) {
        double top = hb_scale_at(&v->memory.y, (double)hb_outcome_total(v->o, v->shown[k]));
        if (v->from[k] < box.x + box.w && until(v, k) > box.x && top < box.y + box.h)
            return false;
    }
    return true;
}

static const char *budget_text(const struct view *v)
{
    char bytes[HB_TICK_TEXT];
    hb_unit_print(HB_UNIT_BYTES, (double)v->o->budget_bytes, bytes);
    return hb_arena_printf(v->c->arena, "budget %s", bytes);
}

/* The name of the budget's line stands where the line passes over no data, or in the legend. */
static void place_budget(struct view *v)
{
    struct hb_canvas *c = v->c;
    struct hb_box area = v->memory.area;
    double y = hb_scale_at(&v->memory.y, (double)v->o->budget_bytes);
    struct hb_style style = hb_canvas_style(c, "budget");
    style.bold = true;
    double line = hb_canvas_line(c, &style);
    double width = hb_canvas_width(c, budget_text(v), &style);
    v->budget_right = 0;
    if (y < area.y || v->o->budget_bytes <= 0)
        return;
    for (int i = 4; i > 0; i--) {
        double x = area.x + c->em + (area.w - c->em * 2 - width) * i / 4;
        if (!is_blank(v, (struct hb_box){x, y - line, width, line}))
            continue;
        v->budget_right = x + width + c->em * 0.4;
        return;
    }
}

static void draw_budget(struct view *v)
{
    if (v->o->budget_bytes > 0)
        hb_frame_level(v->c, &v->memory, (double)v->o->budget_bytes,
                       v->budget_right > 0 ? budget_text(v) : "", "budget", v->budget_right);
}

static double widest_stream(struct view *v)
{
    struct hb_style style = hb_canvas_style(v->c, "stream");
    double widest = 0;
    style.size = fmax(6, v->c->em * 0.9);
    for (uint32_t i = 0; i < v->o->stream_count; i++)
        widest = fmax(widest, hb_canvas_width(v->c, v->o->streams[i].name, &style));
    return widest + v->c->em * 0.8;
}

static void make_scales(struct view *v)
{
    const struct hb_outcome *o = v->o;
    double peak = (double)hb_outcome_total(o, hb_outcome_peak_sample(o));
    double reach = fmax(peak, (double)o->high_bytes);
    if (o->budget_bytes > 0 && (double)o->budget_bytes < 3 * peak)
        reach = fmax(reach, (double)o->budget_bytes);
    v->end_seconds = fmax(o->step_seconds, o->seconds[o->sample_count - 1]);
    v->memory.y = hb_scale_make(0, reach > 0 ? reach * 1.06 : 1, HB_UNIT_BYTES, false);
    v->memory.x = (struct hb_scale){
        .low = 0, .high = v->end_seconds > 0 ? v->end_seconds : 1e-9, .unit = HB_UNIT_SECONDS};
    v->memory.x_name = "time in the step";
    v->memory.y_name = "memory of a device";
}

/* Cuts the page into its parts; what there is no room for gets no size. */
static void lay_out(struct view *v, double top)
{
    struct hb_canvas *c = v->c;
    struct hb_key keys[MOST_KEYS];
    struct hb_box page = {c->em, top, c->look.width - 2 * c->em, c->look.height - top - c->em};
    if (page.w > c->em * 50 && page.h > c->em * 18) {
        v->side.w = fmin(c->em * 24, page.w * 0.3);
        v->side = (struct hb_box){page.x + page.w - v->side.w, page.y, v->side.w, page.h};
        page.w -= v->side.w + c->em * 1.5;
    } else if (page.h > c->em * 18) {
        double height = hb_legend_height(c, page.w, keys, make_keys(v, keys));
        v->legend.h = fmin(height, page.h * 0.3);
        page.h -= v->legend.h + c->em * 0.6;
        v->legend = (struct hb_box){page.x, page.y + page.h + c->em * 0.6, page.w, v->legend.h};
    }
    if (v->o->stream_count > 0 && page.h > c->em * (12 + 1.6 * v->o->stream_count)) {
        v->row = fmin(c->em * 1.9, page.h * 0.3 / v->o->stream_count);
        v->memory.left = fmax(hb_frame_left(c, &v->memory), widest_stream(v));
    }
    v->phases = (struct hb_box){page.x, page.y, page.w, page.h > c->em * 10 ? c->em * 1.7 : 0};
    page.y += v->phases.h;
    page.h -= v->phases.h;
    v->memory.bare_x = false;
    page.h -= v->row * v->o->stream_count;
    hb_frame_make(c, page, &v->memory);
}

/* The axis of time stands below the last stream: drawn by a frame of no height there. */
static void draw_time_axis(struct view *v, double bottom)
{
    struct hb_frame axis = v->memory;
    axis.area = (struct hb_box){v->memory.area.x, bottom, v->memory.area.w, 0};
    axis.y_name = "";
    axis.bare_x = false;
    hb_frame_draw_across(v->c, &axis);
}

void hb_stepview_draw(struct hb_canvas *c, const struct hb_outcome *o)
{
    struct view v = {.c = c, .o = o};
    double top = hb_canvas_title(c, hb_stepview_title(c->arena, o), make_subtitle(c, o));
    make_scales(&v);
    lay_out(&v, top);
    if (v.memory.area.w <= 4 || v.memory.area.h <= 4)
        return;
    choose_samples(&v);
    place_budget(&v);
    v.memory.bare_x = true;
    hb_frame_draw(c, &v.memory);
    draw_stack(&v);
    if (v.phases.h > 0)
        draw_phases(&v);
    if (v.side.w > 0)
        draw_side(&v);
    draw_budget(&v);
    draw_peak(&v);
    draw_phase_lines(&v);
    double bottom = v.memory.area.y + v.memory.area.h;
    if (v.row > 0)
        draw_streams(&v, bottom + c->em * 0.2);
    draw_time_axis(&v, bottom + v.row * o->stream_count);
    struct hb_key keys[MOST_KEYS];
    int count = make_keys(&v, keys);
    if (v.legend.h > 0)
        hb_legend_draw(c, v.legend, keys, count);
}
