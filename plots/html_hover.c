/* Hover data: see html_hover.h. They are the canvas's own record, so what is told of a place is
 * what was drawn there. */
#include "plots/html_hover.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"

enum { HOVER_TENSORS = 3, MOST_HOT = 3000 };
/* Of many cells those below so many square units are left out: nobody can point at them. */
enum { MANY = 100, LEAST_AREA = 8 };

static double round_px(double px)
{
    return round(px * 10) / 10;
}

static void open_list(struct hb_json *j, const char *key)
{
    hb_json_key(j, key);
    hb_json_array(j);
}

static void put_cells(struct hb_json *j, const struct hb_canvas *c)
{
    open_list(j, "cells");
    for (uint32_t i = 0; i < c->layout.cell_count && i < MOST_HOT; i++) {
        const struct hb_layout_cell *cell = &c->layout.cells[i];
        if (cell->box.w * cell->box.h < LEAST_AREA && c->layout.cell_count > MANY)
            continue;
        hb_json_array(j);
        hb_json_real(j, round_px(cell->box.x));
        hb_json_real(j, round_px(cell->box.y));
        hb_json_real(j, round_px(cell->box.w));
        hb_json_real(j, round_px(cell->box.h));
        hb_json_text(j, cell->note ? hb_arena_printf(c->arena, "%s\n%s", cell->name, cell->note)
                                   : cell->name);
        hb_json_array_end(j);
    }
    for (uint32_t i = 0; i < c->layout.point_count && i < MOST_HOT; i++) {
        const struct hb_layout_point *q = &c->layout.points[i];
        if (!q->note)
            continue;
        hb_json_array(j);
        hb_json_real(j, round_px(q->at.x - 5));
        hb_json_real(j, round_px(q->at.y - 5));
        hb_json_real(j, 10);
        hb_json_real(j, 10);
        hb_json_text(j, q->note);
        hb_json_array_end(j);
    }
    hb_json_array_end(j);
}

/* The largest tensors at the peak of one category: "9.30 GiB blocks.mlp.gate: why". */
static void put_tensors(const struct hb_outcome *o, struct hb_json *j)
{
    char bytes[HB_TICK_TEXT];
    hb_json_key(j, "tensors");
    hb_json_object(j);
    for (int c = 0; c < HB_CATEGORY_COUNT; c++) {
        int count = 0;
        open_list(j, hb_category_name((enum hb_category)c));
        for (uint32_t i = 0; i < o->tensor_count && count < HOVER_TENSORS; i++) {
            const struct hb_shown_tensor *t = &o->tensors[i];
            if (t->category != (enum hb_category)c)
                continue;
            count++;
            hb_json_text(j, hb_arena_printf(j->out->arena, "at the peak: %s, %s%s%s", t->name,
                                            hb_unit_print(HB_UNIT_BYTES, (double)t->bytes, bytes),
                                            *t->why ? ": " : "", t->why));
        }
        hb_json_array_end(j);
    }
    hb_json_object_end(j);
}

/* The points of one curve stand together. */
struct run {
    const struct hb_layout_point *points;
    uint32_t count;
};

static struct run next_curve(const struct hb_layout *r, uint32_t *at)
{
    struct run c = {&r->points[*at], 0};
    while (*at < r->point_count && strcmp(r->points[*at].curve, c.points->curve) == 0) {
        ++*at;
        c.count++;
    }
    return c;
}

static double own_mib(const struct run *band, const struct run *below, uint32_t i)
{
    double base = below->count == band->count ? below->points[i].y : 0;
    return round((band->points[i].y - base) / 0x1p20);
}

/* [times, MiB, times, MiB, ...]: most bands stand still most of the time. */
static void put_band(struct hb_json *j, const struct run *band, const struct run *below)
{
    hb_json_object(j);
    hb_json_put_text(j, "name", band->points->curve);
    open_list(j, "runs");
    for (uint32_t i = 0; i < band->count;) {
        double size = own_mib(band, below, i);
        uint32_t times = 1;
        while (i + times < band->count &&
               !(own_mib(band, below, i + times) < size || own_mib(band, below, i + times) > size))
            times++;
        hb_json_int(j, times);
        hb_json_real(j, size);
        i += times;
    }
    hb_json_array_end(j);
    hb_json_object_end(j);
}

static void put_times(struct hb_json *j, const struct run *curve)
{
    open_list(j, "seconds");
    for (uint32_t i = 0; i < curve->count; i++)
        hb_json_real(j, round(curve->points[i].x * 1e5) / 1e5);
    hb_json_array_end(j);
}

static void put_bands(struct hb_json *j, const struct hb_layout *r, struct run *out_first)
{
    struct run below = {0};
    open_list(j, "bands");
    for (uint32_t at = 0; at < r->point_count;) {
        struct run band = next_curve(r, &at);
        if (strcmp(band.points->curve, "peak") == 0)
            continue;
        put_band(j, &band, &below);
        below = band;
        *out_first = out_first->count ? *out_first : band;
    }
    hb_json_array_end(j);
}

static void put_timeline(const struct hb_outcome *o, struct hb_json *j, const struct hb_canvas *c)
{
    const struct hb_scale *x = &c->layout.axes[0].scale;
    const struct hb_scale *y = &c->layout.axes[1].scale;
    struct run first = {0};
    hb_json_key(j, "timeline");
    hb_json_object(j);
    put_bands(j, &c->layout, &first);
    put_times(j, &first);
    open_list(j, "span");
    hb_json_real(j, x->low);
    hb_json_real(j, x->high);
    hb_json_array_end(j);
    hb_json_put_real(j, "high", y->high / 0x1p20);
    open_list(j, "area");
    hb_json_real(j, round_px(x->from_px));
    hb_json_real(j, round_px(y->to_px));
    hb_json_real(j, round_px(x->to_px - x->from_px));
    hb_json_real(j, round_px(y->from_px - y->to_px));
    hb_json_array_end(j);
    put_tensors(o, j);
    hb_json_object_end(j);
}

void hb_html_hover(const struct hb_canvas *c, const struct hb_outcome *timeline, struct hb_str *out)
{
    struct hb_json j = hb_json_begin(out, NULL, false);
    hb_json_object(&j);
    put_cells(&j, c);
    if (timeline && c->layout.axis_count >= 2)
        put_timeline(timeline, &j, c);
    hb_json_object_end(&j);
}
