/* The load picture: see loadview.h. */
#include "plots/loadview.h"

#include <math.h>

#include "base/arena.h"
#include "plots/frame.h"
#include "plots/place.h"

static int64_t peak_of(const struct hb_shown_load *load, bool host)
{
    return host ? load->host_peak_bytes : load->device_peak_bytes;
}

static const struct hb_shown_load *find_extreme(const struct hb_outcome *o, int sign)
{
    const struct hb_shown_load *found = &o->loads[0];
    for (uint32_t i = 1; i < o->load_count; i++)
        if (sign > 0 ? o->loads[i].device_peak_bytes > found->device_peak_bytes
                     : o->loads[i].device_peak_bytes < found->device_peak_bytes)
            found = &o->loads[i];
    return found;
}

static const char *with_processes(struct hb_arena *arena, const struct hb_shown_load *load)
{
    char bytes[HB_TICK_TEXT];
    char count[HB_TICK_TEXT];
    hb_unit_print(HB_UNIT_BYTES, (double)load->device_peak_bytes, bytes);
    return hb_arena_printf(arena, "%s with %s process%s", bytes,
                           hb_human_print((double)load->processes, count),
                           load->processes == 1 ? "" : "es");
}

/* The step from fitting to not fitting, or the other way: i and i + 1; false where there is none
 * or more than one. */
static bool find_turn(const struct hb_outcome *o, uint32_t *out)
{
    int turns = 0;
    for (uint32_t i = 0; i + 1 < o->load_count; i++)
        if ((o->loads[i].device_peak_bytes <= o->budget_bytes) !=
            (o->loads[i + 1].device_peak_bytes <= o->budget_bytes)) {
            *out = i;
            turns++;
        }
    return turns == 1;
}

const char *hb_loadview_title(struct hb_arena *arena, const struct hb_outcome *o)
{
    uint32_t turn;
    const struct hb_shown_load *least = find_extreme(o, -1);
    const struct hb_shown_load *most = find_extreme(o, 1);
    const char *from = with_processes(arena, least);
    const char *to = with_processes(arena, most);
    if (o->budget_bytes <= 0 || least->device_peak_bytes == most->device_peak_bytes)
        return hb_arena_printf(arena, "a device peaks at %s while loading%s%s", from,
                               least == most ? "" : ", at ", least == most ? "" : to);
    if (most->device_peak_bytes <= o->budget_bytes)
        return hb_arena_printf(arena, "loading always fits: at most %s", to);
    if (least->device_peak_bytes > o->budget_bytes)
        return hb_arena_printf(arena, "loading never fits: at least %s", from);
    if (!find_turn(o, &turn))
        return hb_arena_printf(arena, "loading does not always fit: up to %s", to);
    bool first = o->loads[turn].device_peak_bytes <= o->budget_bytes;
    return hb_arena_printf(arena, "loading fits: %s; not %s",
                           with_processes(arena, &o->loads[first ? turn : turn + 1]),
                           with_processes(arena, &o->loads[first ? turn + 1 : turn]));
}

/* The second group has the colour of the budget's line. */
static uint32_t curve_ink(const struct hb_canvas *c, bool host)
{
    return hb_ink_group(c->look.theme, host ? 2 : 0);
}

static void draw_curve(struct hb_canvas *c, const struct hb_frame *f, const struct hb_outcome *o,
                       bool host, struct hb_point end[2])
{
    struct hb_point *path = hb_arena_alloc(c->arena, o->load_count, sizeof *path);
    uint32_t count = 0;
    uint32_t rgb = curve_ink(c, host);
    for (uint32_t i = 0; i < o->load_count; i++) {
        int64_t bytes = peak_of(&o->loads[i], host);
        if (bytes < 0 || (f->y.logarithmic && (double)bytes < f->y.low))
            continue;
        path[count] = hb_frame_at(f, (double)o->loads[i].processes, (double)bytes);
        hb_canvas_add_point(c, (struct hb_layout_point){host ? "host" : "device", path[count],
                                                        (double)o->loads[i].processes,
                                                        (double)bytes, NULL, 0});
        count++;
    }
    if (count == 0)
        return;
    hb_draw_path(c->draw, path, count, (struct hb_pen){rgb, 2, host});
    for (uint32_t i = 0; i < count; i++)
        hb_draw_mark(c->draw, path[i], host ? HB_MARK_SQUARE : HB_MARK_DISC, c->em * 0.32, rgb,
                     hb_canvas_ink(c, HB_INK_BACK));
    hb_canvas_keep_path_free(c, path, count);
    for (uint32_t i = 0; i < count; i++) /* no label over a mark */
        hb_canvas_keep_free(
            c, hb_box_inset((struct hb_box){path[i].x, path[i].y, 0, 0}, -c->em * 0.4));
    end[host] = path[count - 1];
}

static void name_curve(struct hb_canvas *c, const struct hb_frame *f, bool host, struct hb_point at)
{
    struct hb_style style = hb_canvas_style(c, "curve");
    style.rgb = hb_colour_mix(curve_ink(c, host), hb_canvas_ink(c, HB_INK_TEXT), 0.35);
    style.bold = true;
    style.plated = true;
    style.plate = hb_canvas_ink(c, HB_INK_PANEL);
    if (at.x > 0)
        hb_canvas_label_near(c, host ? "host" : "device", at, f->area, style);
}

static void make_scales(const struct hb_outcome *o, struct hb_frame *f)
{
    double high = 0;
    double low = (double)find_extreme(o, -1)->device_peak_bytes;
    for (uint32_t i = 0; i < o->load_count; i++)
        if (o->loads[i].host_peak_bytes > 0)
            low = fmin(low, (double)o->loads[i].host_peak_bytes);
    for (uint32_t i = 0; i < o->load_count; i++)
        high = fmax(
            high, fmax((double)o->loads[i].device_peak_bytes, (double)o->loads[i].host_peak_bytes));
    if (o->budget_bytes > 0 && (double)o->budget_bytes < 3 * high)
        high = fmax(high, (double)o->budget_bytes * 1.02);
    f->x = hb_scale_make((double)o->loads[0].processes,
                         (double)o->loads[o->load_count - 1].processes, HB_UNIT_NUMBER, true);
    bool wide = low > 0 && high > 12 * low;
    high *= wide ? 1.6 : 1.1; /* for the names above the curves' ends */
    f->y = hb_scale_make(wide ? low : 0, high, HB_UNIT_BYTES, wide);
    f->x_name = "processes";
    f->y_name = "peak while loading";
}

void hb_loadview_draw(struct hb_canvas *c, const struct hb_outcome *o)
{
    char text[HB_TICK_TEXT];
    struct hb_frame f = {0};
    const char *below = hb_place_under(c->arena, o->name, o->place);
    double top = hb_canvas_title(c, hb_loadview_title(c->arena, o), *below ? below : NULL);
    make_scales(o, &f);
    if (!hb_frame_make(
            c, (struct hb_box){c->em, top, c->look.width - 2 * c->em, c->look.height - top - c->em},
            &f))
        return;
    hb_frame_draw(c, &f);
    struct hb_point end[2] = {{0, 0}, {0, 0}}; /* of the device's and the host's curve */
    draw_curve(c, &f, o, false, end);
    draw_curve(c, &f, o, true, end);
    hb_unit_print(HB_UNIT_BYTES, (double)o->budget_bytes, text);
    if (o->budget_bytes > 0)
        hb_frame_level(c, &f, (double)o->budget_bytes, hb_arena_printf(c->arena, "budget %s", text),
                       "budget", 0);
    name_curve(c, &f, false, end[0]);
    name_curve(c, &f, true, end[1]);
}
