/* Axes and legends: see frame.h. */
#include "plots/frame.h"

#include <math.h>

#include "base/arena.h"

struct hb_box hb_box_inset(struct hb_box box, double by)
{
    return (struct hb_box){box.x + by, box.y + by, box.w - 2 * by, box.h - 2 * by};
}

static double tick_gap(const struct hb_canvas *c)
{
    return c->em * 0.4;
}

static struct hb_style tick_style(const struct hb_canvas *c)
{
    struct hb_style style = hb_canvas_style(c, "tick");
    style.size = fmax(6, c->em * 0.9);
    style.rgb = hb_canvas_ink(c, HB_INK_FAINT);
    return style;
}

static struct hb_style name_style(const struct hb_canvas *c)
{
    struct hb_style style = hb_canvas_style(c, "axis");
    style.size = fmax(6, c->em * 0.95);
    return style;
}

static double widest_tick(struct hb_canvas *c, const struct hb_ticks *ticks)
{
    struct hb_style style = tick_style(c);
    double widest = 0;
    for (int i = 0; i < ticks->count; i++)
        widest = fmax(widest, hb_canvas_width(c, ticks->tick[i].text, &style));
    return widest;
}

static int wanted_upright(const struct hb_canvas *c, double height)
{
    return (int)fmax(2, fmin(9, height / (c->em * 3)));
}

/* As many as stand side by side with half a tick's width between. */
static void ticks_across(struct hb_canvas *c, const struct hb_scale *scale, struct hb_ticks *out)
{
    double width = hb_scale_span_px(scale);
    int want = (int)fmax(2, fmin(12, width / (c->em * 4)));
    for (; want > 2; want--) {
        hb_scale_ticks(scale, want, out);
        double pitch = out->count > 1 ? fabs(out->tick[1].px - out->tick[0].px) : width;
        if (out->count > 1 && widest_tick(c, out) * 1.35 <= pitch)
            return;
    }
    hb_scale_ticks(scale, 2, out);
}

static const char *name_with_unit(struct hb_canvas *c, const char *name,
                                  const struct hb_ticks *ticks)
{
    if (!*name || !*ticks->unit)
        return name;
    return hb_arena_printf(c->arena, "%s (%s)", name, ticks->unit);
}

double hb_frame_left(struct hb_canvas *c, const struct hb_frame *f)
{
    struct hb_ticks ticks;
    struct hb_style name = name_style(c);
    hb_scale_ticks(&f->y, wanted_upright(c, c->look.height * 0.7), &ticks);
    double left = widest_tick(c, &ticks) + 2 * tick_gap(c);
    return left + (*f->y_name ? hb_canvas_line(c, &name) : 0);
}

static double room_below(const struct hb_canvas *c, const struct hb_frame *f)
{
    struct hb_style tick = tick_style(c);
    struct hb_style name = name_style(c);
    double room = tick_gap(c);
    if (f->bare_x)
        return room;
    room += hb_canvas_line(c, &tick);
    return room + (*f->x_name ? hb_canvas_line(c, &name) : 0);
}

bool hb_frame_make(struct hb_canvas *c, struct hb_box outer, struct hb_frame *f)
{
    double left = f->left > 0 ? f->left : hb_frame_left(c, f);
    if (left > outer.w * 0.45)
        left = outer.w * 0.45;
    double below = fmin(room_below(c, f), outer.h * 0.45);
    f->area = (struct hb_box){outer.x + left, outer.y, outer.w - left, outer.h - below};
    f->x.from_px = f->area.x;
    f->x.to_px = f->area.x + f->area.w;
    f->y.from_px = f->area.y + f->area.h;
    f->y.to_px = f->area.y;
    return f->area.w > 4 && f->area.h > 4;
}

struct hb_point hb_frame_at(const struct hb_frame *f, double x, double y)
{
    return (struct hb_point){hb_scale_at(&f->x, x), hb_scale_at(&f->y, y)};
}

/* Keeps a label that stands at a tick near the page's edge on the page. */
static enum hb_align keep_inside(const struct hb_canvas *c, double px, double width)
{
    return px + width / 2 > c->look.width - 1 ? HB_ALIGN_END
           : px - width / 2 < 1               ? HB_ALIGN_START
                                              : HB_ALIGN_MIDDLE;
}

void hb_frame_draw_across(struct hb_canvas *c, const struct hb_frame *f)
{
    struct hb_ticks ticks;
    struct hb_style tick = tick_style(c);
    double bottom = f->area.y + f->area.h;
    struct hb_pen grid = {hb_canvas_ink(c, HB_INK_GRID), 0.8, false};
    ticks_across(c, &f->x, &ticks);
    for (int i = 0; i < ticks.count; i++) {
        double px = ticks.tick[i].px;
        hb_draw_line(c->draw, (struct hb_point){px, f->area.y}, (struct hb_point){px, bottom},
                     grid);
        double width = hb_canvas_width(c, ticks.tick[i].text, &tick);
        tick.across = keep_inside(c, px, width);
        /* Out of the corner, where the lowest upright tick stands. */
        if (tick.across == HB_ALIGN_MIDDLE && px - width / 2 < f->area.x - 1)
            px = f->area.x - 1 + width / 2;
        if (!f->bare_x)
            hb_canvas_label(c, ticks.tick[i].text, (struct hb_point){px, bottom + tick_gap(c)},
                            tick);
    }
    struct hb_style name = name_style(c);
    const char *text = name_with_unit(c, f->x_name, &ticks);
    double y = bottom + tick_gap(c) + hb_canvas_line(c, &tick);
    name.across = HB_ALIGN_MIDDLE;
    if (*text && !f->bare_x)
        hb_canvas_label(c, hb_canvas_shorten(c, text, f->area.w, &name),
                        (struct hb_point){f->area.x + f->area.w / 2, y}, name);
}

static void draw_upright(struct hb_canvas *c, const struct hb_frame *f)
{
    struct hb_ticks ticks;
    struct hb_style tick = tick_style(c);
    struct hb_pen grid = {hb_canvas_ink(c, HB_INK_GRID), 0.8, false};
    hb_scale_ticks(&f->y, wanted_upright(c, f->area.h), &ticks);
    tick.across = HB_ALIGN_END;
    tick.down = HB_ALIGN_MIDDLE;
    for (int i = 0; i < ticks.count; i++) {
        double px = ticks.tick[i].px;
        hb_draw_line(c->draw, (struct hb_point){f->area.x, px},
                     (struct hb_point){f->area.x + f->area.w, px}, grid);
        hb_canvas_label(c, ticks.tick[i].text, (struct hb_point){f->area.x - tick_gap(c), px},
                        tick);
    }
    struct hb_style name = name_style(c);
    double x = f->area.x - widest_tick(c, &ticks) - 2 * tick_gap(c);
    name.turned = true;
    name.across = HB_ALIGN_END;
    name.down = HB_ALIGN_MIDDLE;
    const char *text = name_with_unit(c, f->y_name, &ticks);
    if (*text)
        hb_canvas_label(c, hb_canvas_shorten(c, text, f->area.h, &name),
                        (struct hb_point){x, f->area.y + f->area.h / 2}, name);
}

void hb_frame_draw(struct hb_canvas *c, const struct hb_frame *f)
{
    struct hb_point corner[3] = {{f->area.x, f->area.y},
                                 {f->area.x, f->area.y + f->area.h},
                                 {f->area.x + f->area.w, f->area.y + f->area.h}};
    hb_draw_box(c->draw, f->area, hb_canvas_ink(c, HB_INK_PANEL));
    hb_frame_draw_across(c, f);
    draw_upright(c, f);
    hb_draw_path(c->draw, corner, 3, (struct hb_pen){hb_canvas_ink(c, HB_INK_AXIS), 1, false});
    hb_canvas_add_axis(c, f->x_name, &f->x, false);
    hb_canvas_add_axis(c, f->y_name, &f->y, true);
}

/* The text of a level: where it is told to end, or at the first place from the right that is free.
 */
static void name_level(struct hb_canvas *c, const struct hb_frame *f, double px, const char *text,
                       double right, struct hb_style style)
{
    enum { PLACES = 8 };
    bool above = px - f->area.y > hb_canvas_line(c, &style) + 2;
    double y = px + (above ? -1.5 : 1.5), gap = c->em * 0.4;
    style.across = HB_ALIGN_END;
    style.down = above ? HB_ALIGN_END : HB_ALIGN_START;
    text = hb_canvas_shorten(c, text, f->area.w - 2 * c->em, &style);
    double last = f->area.x + gap + hb_canvas_width(c, text, &style);
    double first = f->area.x + f->area.w - gap;
    if (right > 0)
        hb_canvas_label(c, text, (struct hb_point){fmax(last, right - gap), y}, style);
    for (int i = 0; i < PLACES && right <= 0; i++)
        if (hb_canvas_label(c, text,
                            (struct hb_point){first + (last - first) * i / (PLACES - 1), y}, style))
            return;
}

void hb_frame_level(struct hb_canvas *c, const struct hb_frame *f, double y, const char *text,
                    const char *role, double right)
{
    double px = hb_scale_at(&f->y, y);
    double end = f->area.x + f->area.w;
    if (px < f->area.y - 0.5 || px > f->area.y + f->area.h + 0.5)
        return;
    struct hb_style style = hb_canvas_style(c, role);
    style.rgb = hb_canvas_ink(c, HB_INK_BUDGET);
    style.bold = true;
    style.plated = true;
    style.plate = hb_canvas_ink(c, HB_INK_PANEL);
    const struct hb_pen pens[] = {{style.plate, 3.4, true}, {style.rgb, 1.4, true}};
    /* With a rim, to be seen on dark bands, too. */
    hb_canvas_rule(c, (struct hb_point){f->area.x, px}, (struct hb_point){end, px}, pens, 2);
    hb_canvas_keep_free(c, (struct hb_box){f->area.x, px - 1, f->area.w, 2});
    if (*text)
        name_level(c, f, px, text, right, style);
}

static struct hb_style key_style(const struct hb_canvas *c)
{
    struct hb_style style = hb_canvas_style(c, "legend");
    style.size = fmax(6, c->em * 0.92);
    return style;
}

struct columns {
    double text_width;
    double width; /* of a column, with its gap */
    double row;
    int count;
};

static struct columns find_columns(struct hb_canvas *c, double width, const struct hb_key *keys,
                                   int count)
{
    struct hb_style style = key_style(c);
    double text = 0;
    double value = 0;
    for (int i = 0; i < count; i++) {
        text = fmax(text, hb_canvas_width(c, keys[i].text, &style));
        if (keys[i].value)
            value = fmax(value, hb_canvas_width(c, keys[i].value, &style) + c->em);
    }
    struct columns columns = {.row = hb_canvas_line(c, &style) + 1.5};
    double swatch = style.size * 1.5;
    double room = width - swatch - value;
    columns.text_width = fmin(text, room > 0 ? room : 0);
    columns.width = swatch + columns.text_width + value + c->em * 1.2;
    columns.count = (int)fmax(1, floor((width + c->em * 1.2) / columns.width));
    return columns;
}

double hb_legend_height(struct hb_canvas *c, double width, const struct hb_key *keys, int count)
{
    struct columns columns = find_columns(c, width, keys, count);
    int rows = (count + columns.count - 1) / columns.count;
    return columns.row * rows;
}

static void draw_swatch(struct hb_canvas *c, struct hb_box box, const struct hb_key *key)
{
    struct hb_point middle = {box.x + box.w / 2, box.y + box.h / 2};
    if (key->mark >= 0) {
        hb_draw_mark(c->draw, middle, (enum hb_mark)key->mark, box.w / 2.4, key->rgb,
                     hb_canvas_ink(c, HB_INK_BACK));
        return;
    }
    if (key->mark == HB_KEY_LINE || key->mark == HB_KEY_DASHES) {
        hb_draw_line(c->draw, (struct hb_point){box.x - 2, middle.y},
                     (struct hb_point){box.x + box.w + 2, middle.y},
                     (struct hb_pen){key->rgb, key->mark == HB_KEY_DASHES ? 1.4 : 2,
                                     key->mark == HB_KEY_DASHES});
        return;
    }
    hb_draw_box(c->draw, box, key->rgb);
    if (key->hatched)
        hb_draw_hatch(c->draw, box, 3, (struct hb_pen){hb_canvas_ink(c, HB_INK_BACK), 0.8, false});
}

static void draw_key(struct hb_canvas *c, struct hb_point at, const struct columns *columns,
                     const struct hb_key *key)
{
    struct hb_style style = key_style(c);
    double side = style.size * 0.9;
    struct hb_box swatch = {at.x, at.y + (columns->row - side) / 2, side, side};
    const char *text = hb_canvas_shorten(c, key->text, columns->text_width + 0.01, &style);
    style.down = HB_ALIGN_MIDDLE;
    double y = at.y + columns->row / 2;
    if (!hb_canvas_label(c, text, (struct hb_point){at.x + style.size * 1.5, y}, style))
        return;
    draw_swatch(c, swatch, key);
    style.across = HB_ALIGN_END;
    if (key->value)
        hb_canvas_label(c, key->value, (struct hb_point){at.x + columns->width - c->em * 1.2, y},
                        style);
}

double hb_legend_draw(struct hb_canvas *c, struct hb_box box, const struct hb_key *keys, int count)
{
    struct columns columns = find_columns(c, box.w, keys, count);
    int rows = (count + columns.count - 1) / columns.count;
    if (rows * columns.row > box.h + 0.5)
        rows = (int)floor((box.h + 0.5) / columns.row);
    for (int i = 0; i < count && i < rows * columns.count; i++) {
        int row = i / columns.count;
        struct hb_point at = {box.x + (i % columns.count) * columns.width,
                              box.y + row * columns.row};
        draw_key(c, at, &columns, &keys[i]);
    }
    return rows > 0 ? rows * columns.row : 0;
}
