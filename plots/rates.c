/* The curves of a device: see rates.h. The table of the profile's keys says which there are. */
#include "plots/rates.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/str.h"
#include "plots/frame.h"

enum { PANELS = 4, MOST_CURVES = 12 };

/* Which panel a key belongs to; what follows the prefix, without the words beside it, is the
 * curve's name. */
static const struct {
    const char *prefix;
    int panel;
    const char *name; /* null: the end of the key */
} groups[] = {
    {"matmul_curve_", 0, NULL},
    {"attention_forward_curve", 1, "forward"},
    {"attention_backward_curve", 1, "backward"},
    {"sdpa_forward_curve", 1, "torch, forward"},
    {"sdpa_backward_curve", 1, "torch, backward"},
    {"hbm_curve", 2, "memory"},
    {"link_curve", 3, "links"},
};

static const struct {
    const char *title;
    const char *x_name;
    enum hb_unit unit;
} panels[PANELS] = {
    {"products", "cube root of m n k", HB_UNIT_NUMBER},
    {"attention, of the bf16 peak", "sequence length", HB_UNIT_NUMBER},
    {"device memory", "moved by an operation", HB_UNIT_BYTES},
    {"links between devices", "payload of a collective", HB_UNIT_BYTES},
};

struct curve {
    const char *name;
    const struct hb_curve *points;
};

static int list_curves(const struct hb_device *dev, int panel, struct curve out[MOST_CURVES])
{
    int fields, count = 0;
    const struct hb_field *field = hb_device_fields(&fields);
    for (int i = 0; i < fields && count < MOST_CURVES; i++) {
        const void *at = (const char *)dev + field[i].offset;
        const struct hb_curve *points = at;
        if (field[i].type != HB_FIELD_CURVE || points->count == 0)
            continue;
        for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
            if (groups[g].panel == panel && hb_str_starts(field[i].key, groups[g].prefix))
                out[count++] = (struct curve){
                    groups[g].name ? groups[g].name : field[i].key + strlen(groups[g].prefix),
                    points};
    }
    return count;
}

bool hb_rates_any(const struct hb_device *dev)
{
    struct curve curves[MOST_CURVES];
    int count = 0;
    for (int i = 0; i < PANELS; i++)
        count += list_curves(dev, i, curves);
    return count > 0;
}

bool hb_rates_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *json,
                   struct hb_device *out)
{
    struct hb_str text;
    hb_str_init(&text, arena);
    struct hb_json j = hb_json_begin(&text, NULL, false);
    hb_json_node(&j, json); /* JSON is YAML, which is what profiles are read from */
    hb_json_end(&j);
    if (!hb_device_parse(arena, diag, json->loc.file, text.text, text.len, out))
        return false;
    return hb_rates_any(out) || hb_error(diag, json->loc, "the profile has no curve to draw");
}

/* The type that titles speak of: the first of these that was measured; HB_RATE_COUNT: none. */
static enum hb_rate main_rate(const struct hb_device *dev)
{
    static const enum hb_rate wanted[] = {HB_RATE_BF16, HB_RATE_F16, HB_RATE_F32, HB_RATE_F64};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (dev->peak_flops[wanted[i]] > 0 && dev->matmul_curve[wanted[i]].count > 0)
            return wanted[i];
    return HB_RATE_COUNT;
}

/* "989 TFLOP/s", "9.46 GB/s". */
static const char *rate_text(struct hb_arena *arena, double rate, const char *unit)
{
    bool tera = rate >= 1e12;
    return hb_arena_printf(arena, "%.4g %c%s", rate / (tera ? 1e12 : 1e9), tera ? 'T' : 'G', unit);
}

static const char *products_text(struct hb_arena *arena, const struct hb_device *dev)
{
    static const double usual = 4096;
    enum hb_rate rate = main_rate(dev);
    if (rate == HB_RATE_COUNT)
        return NULL;
    const struct hb_curve *curve = &dev->matmul_curve[rate];
    double side = fmin(usual, curve->x[curve->count - 1]);
    return hb_arena_printf(arena, "products of %.0f reach %.0f %% of %s in %s", side,
                           100 * hb_curve_at(curve, side),
                           rate_text(arena, dev->peak_flops[rate], "FLOP/s"), hb_rate_name(rate));
}

const char *hb_rates_title(struct hb_arena *arena, const struct hb_device *dev)
{
    const char *products = products_text(arena, dev);
    if (dev->hbm_curve.count == 0)
        return products ? products : "by size nothing was measured: what it reaches is not told";
    return hb_arena_printf(arena, "%s%smemory reaches %.0f %% of %s", products ? products : "",
                           products ? ", " : "", 100 * hb_curve_at(&dev->hbm_curve, 0x1p30),
                           rate_text(arena, dev->hbm_bytes_per_s, "B/s"));
}

static void find_range(const struct curve *curves, int count, double *low, double *high)
{
    *low = INFINITY;
    *high = 0;
    for (int i = 0; i < count; i++) {
        *low = fmin(*low, curves[i].points->x[0]);
        *high = fmax(*high, curves[i].points->x[curves[i].points->count - 1]);
    }
    if (*high < *low * 4) {
        *low /= 4;
        *high *= 4;
    }
}

/* Flat beyond its ends, as it is read. */
static void draw_curve(struct hb_canvas *c, const struct hb_frame *f, const struct curve *curve,
                       uint32_t rgb)
{
    struct hb_point path[HB_CURVE_POINTS + 2];
    const struct hb_curve *p = curve->points;
    uint32_t count = 0;
    path[count++] = hb_frame_at(f, f->x.low, 100 * p->y[0]);
    for (int i = 0; i < p->count; i++) {
        path[count++] = hb_frame_at(f, p->x[i], 100 * p->y[i]);
        hb_canvas_add_point(c, (struct hb_layout_point){curve->name, path[count - 1], p->x[i],
                                                        100 * p->y[i], NULL,
                                                        c->layout.axis_count - 2});
    }
    path[count++] = hb_frame_at(f, f->x.high, 100 * p->y[p->count - 1]);
    hb_draw_path(c->draw, path, count, (struct hb_pen){rgb, 1.8, false});
    for (uint32_t i = 1; i + 1 < count; i++)
        hb_draw_mark(c->draw, path[i], HB_MARK_DISC, c->em * 0.26, rgb,
                     hb_canvas_ink(c, HB_INK_BACK));
}

static void draw_panel(struct hb_canvas *c, struct hb_box box, int panel,
                       const struct curve *curves, int count)
{
    struct hb_frame f = {.x_name = panels[panel].x_name, .y_name = "reached (%)"};
    struct hb_key keys[MOST_CURVES];
    struct hb_style head = hb_canvas_style(c, "facet");
    double low, high, top = 100;
    head.bold = true;
    find_range(curves, count, &low, &high);
    for (int i = 0; i < count; i++) {
        keys[i] = (struct hb_key){hb_ink_group(c->look.theme, i), curves[i].name, NULL, false,
                                  HB_KEY_LINE};
        for (int k = 0; k < curves[i].points->count; k++)
            top = fmax(top, 100 * curves[i].points->y[k]);
    }
    hb_canvas_label(c, hb_canvas_shorten(c, panels[panel].title, box.w, &head),
                    (struct hb_point){box.x, box.y}, head);
    double line = hb_canvas_line(c, &head) * 1.4;
    double legend = count > 1 ? hb_legend_height(c, box.w, keys, count) : 0;
    box.y += line;
    box.h -= line + legend;
    f.x = hb_scale_make(low, high, panels[panel].unit, true);
    f.y = (struct hb_scale){.low = 0, .high = top * 1.03, .unit = HB_UNIT_NUMBER};
    if (!hb_frame_make(c, box, &f))
        return;
    hb_frame_draw(c, &f);
    hb_draw_clip(c->draw, f.area);
    for (int i = 0; i < count; i++)
        draw_curve(c, &f, &curves[i], hb_ink_group(c->look.theme, i));
    hb_draw_unclip(c->draw);
    if (legend > 0)
        hb_legend_draw(c, (struct hb_box){box.x, box.y + box.h, box.w, legend}, keys, count);
}

void hb_rates_draw(struct hb_canvas *c, const struct hb_device *dev)
{
    struct curve curves[PANELS][MOST_CURVES];
    int counts[PANELS];
    int used = 0, drawn = 0;
    for (int i = 0; i < PANELS; i++) {
        counts[i] = list_curves(dev, i, curves[i]);
        used += counts[i] > 0;
    }
    double top = hb_canvas_title(c, hb_rates_title(c->arena, dev), dev->title);
    if (used == 0)
        return;
    double gap = c->em * 1.2;
    int columns = used > 1 && c->look.width > c->em * 36 ? 2 : 1;
    int rows = (used + columns - 1) / columns;
    double w = (c->look.width - 2 * c->em - gap * (columns - 1)) / columns;
    double h = (c->look.height - top - c->em - gap * (rows - 1)) / rows;
    if (h < c->em * 9) /* too low for all: the first, which matters most */
        h = c->look.height - top - c->em;
    for (int i = 0; i < PANELS; i++) {
        int row = drawn / columns;
        double y = top + row * (h + gap);
        if (counts[i] == 0 || y + h > c->look.height)
            continue;
        draw_panel(c, (struct hb_box){c->em + (drawn % columns) * (w + gap), y, w, h}, i, curves[i],
                   counts[i]);
        drawn++;
    }
}
