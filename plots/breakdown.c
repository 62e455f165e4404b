/* The breakdown: see breakdown.h. */
#include "plots/breakdown.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/str.h"
#include "plots/frame.h"
#include "plots/place.h"

struct view {
    struct hb_canvas *c;
    const struct hb_outcome *outcomes;
    uint32_t count;
    struct hb_frame frame;
    double pitch;  /* height a configuration takes */
    double bar;    /* height of its bar */
    bool details;  /* differences by category below each bar */
    double names;  /* room left of the bars */
    double totals; /* room right of the bars */
};

static enum hb_category largest_category(const struct hb_outcome *o)
{
    int best = 0;
    for (int i = 1; i < HB_CATEGORY_COUNT; i++)
        if (o->category_bytes[i] > o->category_bytes[best])
            best = i;
    return (enum hb_category)best;
}

/* The category whose bytes changed most from a to b. */
static enum hb_category largest_change(const struct hb_outcome *a, const struct hb_outcome *b)
{
    int best = 0;
    for (int i = 1; i < HB_CATEGORY_COUNT; i++)
        if (llabs(b->category_bytes[i] - a->category_bytes[i]) >
            llabs(b->category_bytes[best] - a->category_bytes[best]))
            best = i;
    return (enum hb_category)best;
}

static const char *signed_bytes(struct hb_arena *arena, int64_t bytes)
{
    char text[HB_TICK_TEXT];
    hb_unit_print(HB_UNIT_BYTES, fabs((double)bytes), text);
    return hb_arena_printf(arena, "%s%s", bytes < 0 ? "\xE2\x88\x92" : "+", text);
}

static const char *title_of_two(struct hb_arena *arena, const struct hb_outcome *a,
                                const struct hb_outcome *b)
{
    char text[HB_TICK_TEXT];
    int64_t change = b->peak_bytes - a->peak_bytes;
    enum hb_category most = largest_change(a, b);
    if (change == 0)
        return hb_arena_printf(arena, "%s and %s peak alike, at %s", a->name, b->name,
                               hb_unit_print(HB_UNIT_BYTES, (double)b->peak_bytes, text));
    hb_unit_print(HB_UNIT_BYTES, fabs((double)change), text);
    return hb_arena_printf(arena, "%s takes %s %s than %s; most in %s (%s)", b->name, text,
                           change < 0 ? "less" : "more", a->name, hb_category_name(most),
                           signed_bytes(arena, b->category_bytes[most] - a->category_bytes[most]));
}

const char *hb_breakdown_title(struct hb_arena *arena, const struct hb_outcome *outcomes,
                               uint32_t count)
{
    const struct hb_outcome *least = outcomes;
    const struct hb_outcome *most = outcomes;
    if (count == 1) {
        enum hb_category category = largest_category(outcomes);
        double share =
            outcomes->peak_bytes > 0
                ? 100.0 * (double)outcomes->category_bytes[category] / (double)outcomes->peak_bytes
                : 0;
        return hb_arena_printf(arena, "%s; %s take%s %.0f %%", hb_outcome_verdict(arena, outcomes),
                               hb_category_name(category),
                               hb_str_ends(hb_category_name(category), "s") ? "" : "s", share);
    }
    for (uint32_t i = 1; i < count; i++) {
        least = outcomes[i].peak_bytes < least->peak_bytes ? &outcomes[i] : least;
        most = outcomes[i].peak_bytes > most->peak_bytes ? &outcomes[i] : most;
    }
    if (count == 2 || least == most)
        return title_of_two(arena, &outcomes[0], &outcomes[1]);
    return title_of_two(arena, most, least);
}

static int make_keys(const struct view *v, struct hb_key *keys)
{
    int count = 0;
    for (int i = 0; i < HB_CATEGORY_COUNT; i++) {
        enum hb_category category = hb_stack_order[i];
        int64_t most = 0;
        for (uint32_t k = 0; k < v->count; k++)
            if (v->outcomes[k].category_bytes[category] > most)
                most = v->outcomes[k].category_bytes[category];
        if (most > 0)
            keys[count++] = (struct hb_key){.rgb = hb_ink_category(v->c->look.theme, category),
                                            .text = hb_category_name(category),
                                            .hatched = category == HB_CAT_FRAGMENTATION,
                                            .mark = HB_KEY_SWATCH};
    }
    return count;
}

static void draw_part(struct view *v, const struct hb_outcome *o, enum hb_category category,
                      struct hb_box box)
{
    struct hb_canvas *c = v->c;
    char bytes[HB_TICK_TEXT];
    hb_draw_box(c->draw, box, hb_ink_category(c->look.theme, category));
    if (category == HB_CAT_FRAGMENTATION)
        hb_draw_hatch(c->draw, box, 4, (struct hb_pen){hb_canvas_ink(c, HB_INK_BACK), 0.8, false});
    hb_draw_line(c->draw, (struct hb_point){box.x + box.w, box.y},
                 (struct hb_point){box.x + box.w, box.y + box.h},
                 (struct hb_pen){hb_canvas_ink(c, HB_INK_BACK), 1, false});
    hb_unit_print(HB_UNIT_BYTES, (double)o->category_bytes[category], bytes);
    const char *name = hb_category_name(category);
    if (*o->name)
        name = hb_arena_printf(c->arena, "%s, %s", o->name, name);
    hb_canvas_add_cell(c, (struct hb_layout_cell){"bar", name, hb_arena_strdup(c->arena, bytes),
                                                  box, (double)o->category_bytes[category]});
}

/* Name and bytes, or bytes alone, where they fit into the part. */
static void name_part(struct view *v, const struct hb_outcome *o, enum hb_category category,
                      struct hb_box box)
{
    struct hb_canvas *c = v->c;
    char bytes[HB_TICK_TEXT];
    struct hb_style style = hb_canvas_style(c, "part");
    style.plated = true;
    style.plate = hb_ink_category(c->look.theme, category);
    style.rgb = hb_colour_on(style.plate);
    style.size = fmax(6, c->em * 0.9);
    hb_unit_print(HB_UNIT_BYTES, (double)o->category_bytes[category], bytes);
    const char *both = hb_arena_printf(c->arena, "%s %s", hb_category_name(category), bytes);
    if (hb_canvas_width(c, both, &style) + 6 <= box.w)
        hb_canvas_label_in(c, both, box, style);
    else if (hb_canvas_width(c, bytes, &style) + 6 <= box.w && category != HB_CAT_FRAGMENTATION)
        hb_canvas_label_in(c, bytes, box, style);
}

typedef void part_fn(struct view *v, const struct hb_outcome *o, enum hb_category category,
                     struct hb_box box);

static struct hb_box bar_box(const struct view *v, uint32_t i)
{
    struct hb_box bar = {v->frame.area.x, v->frame.area.y + v->pitch * i + v->c->em * 0.5, 0,
                         v->bar};
    bar.w = hb_scale_at(&v->frame.x, (double)v->outcomes[i].peak_bytes) - bar.x;
    return bar;
}

static void walk_bar(struct view *v, uint32_t index, part_fn *fn)
{
    const struct hb_outcome *o = &v->outcomes[index];
    struct hb_box bar = bar_box(v, index);
    double from = 0;
    for (int i = 0; i < HB_CATEGORY_COUNT; i++) {
        enum hb_category category = hb_stack_order[i];
        double to = from + (double)o->category_bytes[category];
        double left = hb_scale_at(&v->frame.x, from);
        double right = hb_scale_at(&v->frame.x, to);
        if (to > from)
            fn(v, o, category, (struct hb_box){left, bar.y, right - left, bar.h});
        from = to;
    }
}

/* "saved -8.2 GiB, working +1.1 GiB": largest first, what is below a hundredth left out. */
static const char *describe_changes(struct view *v, const struct hb_outcome *o)
{
    struct hb_outcome rest = *o;
    const struct hb_outcome *base = &v->outcomes[0];
    struct hb_str s;
    hb_str_init(&s, v->c->arena);
    for (int n = 0; n < 4; n++) {
        enum hb_category most = largest_change(base, &rest);
        int64_t change = rest.category_bytes[most] - base->category_bytes[most];
        if (llabs(change) * 100 < base->peak_bytes)
            break;
        hb_str_addf(&s, "%s%s %s", s.len ? ",  " : "", hb_category_name(most),
                    signed_bytes(v->c->arena, change));
        rest.category_bytes[most] = base->category_bytes[most];
    }
    return s.text;
}

static void write_total(struct view *v, const struct hb_outcome *o, struct hb_box bar)
{
    struct hb_canvas *c = v->c;
    char total[HB_TICK_TEXT];
    struct hb_style style = hb_canvas_style(c, "total");
    style.bold = true;
    style.plated = bar.x + bar.w < v->frame.area.x + v->frame.area.w;
    style.plate = hb_canvas_ink(c, HB_INK_PANEL);
    style.down = HB_ALIGN_MIDDLE;
    hb_unit_print(HB_UNIT_BYTES, (double)o->peak_bytes, total);
    struct hb_point at = {bar.x + bar.w + c->em * 0.5, bar.y + bar.h / 2};
    double budget = hb_scale_at(&v->frame.x, (double)v->outcomes[0].budget_bytes);
    if (v->outcomes[0].budget_bytes > 0 && budget > at.x - 2 &&
        budget < at.x + hb_canvas_width(c, total, &style) + 2)
        at.x = budget + c->em * 0.5;
    if (o == v->outcomes) {
        hb_canvas_label(c, total, at, style);
        return;
    }
    double line = hb_canvas_line(c, &style);
    bool stacked = bar.h >= line * 1.9;
    at.y -= stacked ? line / 2 : 0;
    hb_canvas_label(c, total, at, style);
    const char *change = signed_bytes(c->arena, o->peak_bytes - v->outcomes[0].peak_bytes);
    at.x += stacked ? 0 : hb_canvas_width(c, total, &style) + c->em * 0.6;
    at.y += stacked ? line : 0;
    style.bold = false;
    style.role = "difference";
    if (o->peak_bytes != v->outcomes[0].peak_bytes)
        hb_canvas_label(c, change, at, style);
}

static void name_outcome(struct view *v, uint32_t i)
{
    struct hb_canvas *c = v->c;
    const struct hb_outcome *o = &v->outcomes[i];
    struct hb_box bar = bar_box(v, i);
    struct hb_style style = hb_canvas_style(c, "name");
    style.across = HB_ALIGN_END;
    style.down = HB_ALIGN_MIDDLE;
    hb_canvas_label(c, hb_canvas_shorten(c, o->name, v->names, &style),
                    (struct hb_point){bar.x - c->em * 0.5, bar.y + bar.h / 2}, style);
    write_total(v, o, bar);
    struct hb_style faint = hb_canvas_style(c, "changes");
    faint.plated = true;
    faint.plate = hb_canvas_ink(c, HB_INK_PANEL);
    faint.rgb = hb_canvas_ink(c, HB_INK_FAINT);
    faint.size = fmax(6, c->em * 0.88);
    const char *changes = i > 0 && v->details ? describe_changes(v, o) : "";
    hb_canvas_label(c, hb_canvas_shorten(c, changes, v->frame.area.w, &faint),
                    (struct hb_point){bar.x, bar.y + bar.h + 2}, faint);
}

static void draw_budget(struct view *v)
{
    struct hb_canvas *c = v->c;
    char bytes[HB_TICK_TEXT];
    int64_t budget = v->outcomes[0].budget_bytes;
    double px = hb_scale_at(&v->frame.x, (double)budget);
    const struct hb_box *area = &v->frame.area;
    if (budget <= 0 || px > area->x + area->w)
        return;
    struct hb_style style = hb_canvas_style(c, "budget");
    style.rgb = hb_canvas_ink(c, HB_INK_BUDGET);
    style.bold = true;
    style.down = HB_ALIGN_END;
    const char *text =
        hb_arena_printf(c->arena, "budget %s", hb_unit_print(HB_UNIT_BYTES, (double)budget, bytes));
    style.across = px + hb_canvas_width(c, text, &style) / 2 > c->look.width - 2 ? HB_ALIGN_END
                                                                                 : HB_ALIGN_MIDDLE;
    struct hb_pen pen = {style.rgb, 1.6, true};
    hb_canvas_label(c, text, (struct hb_point){px, area->y - 1}, style);
    hb_canvas_rule(c, (struct hb_point){px, area->y}, (struct hb_point){px, area->y + area->h},
                   &pen, 1);
}

static double widest(struct view *v, bool names)
{
    char text[HB_TICK_TEXT];
    struct hb_style style = hb_canvas_style(v->c, "name");
    double width = 0;
    style.bold = !names;
    for (uint32_t i = 0; i < v->count; i++) {
        const struct hb_outcome *o = &v->outcomes[i];
        hb_unit_print(HB_UNIT_BYTES, (double)o->peak_bytes, text);
        const char *total =
            i == 0 ? text : hb_arena_printf(v->c->arena, "%s  \xE2\x88\x92%s", text, text);
        width = fmax(width, hb_canvas_width(v->c, names ? o->name : total, &style));
    }
    return width + v->c->em;
}

static void make_frame(struct view *v, struct hb_box page)
{
    double reach = 0;
    for (uint32_t i = 0; i < v->count; i++)
        reach = fmax(reach, (double)v->outcomes[i].peak_bytes);
    double budget = (double)v->outcomes[0].budget_bytes;
    if (budget > 0 && budget < 3 * reach)
        reach = fmax(reach, budget * 1.01);
    v->names = fmin(widest(v, true), page.w * 0.28);
    v->totals = fmin(widest(v, false), page.w * 0.3);
    v->frame.left = v->names + v->c->em * 0.6;
    v->frame.x = (struct hb_scale){.low = 0, .high = reach > 0 ? reach : 1, .unit = HB_UNIT_BYTES};
    v->frame.y = (struct hb_scale){.low = 0, .high = 1};
    v->frame.x_name = "memory of a device at the peak";
    v->frame.y_name = "";
    page.w -= v->totals;
    page.h -= v->c->em;
    page.y += v->c->em;
    hb_frame_make(v->c, page, &v->frame);
    v->pitch =
        fmin((v->frame.area.h - v->c->em * 0.5) / v->count, v->c->em * (v->count > 1 ? 12 : 7.5));
    v->details = v->count > 1 && v->pitch > v->c->em * 3.4;
    v->bar = v->pitch * 0.78 - (v->details ? v->c->em * 1.2 : 0);
    double used = v->pitch * v->count + v->c->em * 0.5;
    if (used < v->frame.area.h)
        v->frame.area.h = used;
}

/* One of the largest tensors: its colour, bytes and name. */
static void list_tensor(struct view *v, const struct hb_shown_tensor *t, struct hb_box row)
{
    struct hb_canvas *c = v->c;
    struct hb_style style = hb_canvas_style(c, "tensor");
    char bytes[HB_TICK_TEXT];
    double side = style.size * 0.8;
    hb_draw_box(c->draw, (struct hb_box){row.x, row.y + (row.h - side) / 2 - 1, side, side},
                hb_ink_category(c->look.theme, t->category));
    style.across = HB_ALIGN_END;
    hb_canvas_label(c, hb_unit_print(HB_UNIT_BYTES, (double)t->bytes, bytes),
                    (struct hb_point){row.x + c->em * 7, row.y}, style);
    style.across = HB_ALIGN_START;
    hb_canvas_label(c, hb_canvas_shorten(c, t->name, row.w - c->em * 8, &style),
                    (struct hb_point){row.x + c->em * 8, row.y}, style);
}

/* The largest tensors of the one configuration, as many as there is room for, in columns. */
static void list_tensors(struct view *v, struct hb_box box)
{
    struct hb_canvas *c = v->c;
    const struct hb_outcome *o = v->outcomes;
    struct hb_style style = hb_canvas_style(c, "tensor");
    double line = hb_canvas_line(c, &style) * 1.2;
    uint32_t rows = box.h > 3 * line ? (uint32_t)(box.h / line) - 1 : 0;
    uint32_t columns = (uint32_t)fmax(1, floor(box.w / (c->em * 27)));
    if (!rows || !o->tensor_count)
        return;
    style.bold = true;
    hb_canvas_label(c, "largest tensors", (struct hb_point){box.x, box.y}, style);
    for (uint32_t i = 0; i < rows * columns && i < o->tensor_count; i++) {
        uint32_t column = i / rows, row = 1 + i % rows;
        list_tensor(v, &o->tensors[i],
                    (struct hb_box){box.x + box.w / columns * column, box.y + line * row,
                                    box.w / columns - (columns > 1 ? c->em : 0), line});
    }
}

void hb_breakdown_draw(struct hb_canvas *c, const struct hb_outcome *outcomes, uint32_t count)
{
    struct hb_key keys[HB_CATEGORY_COUNT];
    struct view v = {.c = c, .outcomes = outcomes, .count = count};
    const char *below = count == 1 ? hb_place_under(c->arena, outcomes->name, outcomes->place) : "";
    double top =
        hb_canvas_title(c, hb_breakdown_title(c->arena, outcomes, count), *below ? below : NULL);
    struct hb_box page = {c->em, top, c->look.width - 2 * c->em, c->look.height - top - c->em};
    int key_count = make_keys(&v, keys);
    double legend = hb_legend_height(c, page.w, keys, key_count);
    if (page.h > legend + c->em * (5 + 2.0 * count))
        page.h -= legend + c->em * 0.6;
    else
        legend = 0;
    make_frame(&v, page);
    if (v.frame.area.w <= 4 || v.bar < 1)
        return;
    hb_draw_box(c->draw, v.frame.area, hb_canvas_ink(c, HB_INK_PANEL));
    hb_frame_draw_across(c, &v.frame);
    hb_canvas_add_axis(c, v.frame.x_name, &v.frame.x, false);
    for (uint32_t i = 0; i < count; i++)
        walk_bar(&v, i, draw_part);
    for (uint32_t i = 0; i < count; i++) {
        walk_bar(&v, i, name_part);
        name_outcome(&v, i);
    }
    draw_budget(&v);
    double y = v.frame.area.y + v.frame.area.h + c->em * 3.6;
    if (legend > 0)
        y += hb_legend_draw(c, (struct hb_box){page.x, y, page.w, c->look.height - y}, keys,
                            key_count);
    if (count == 1)
        list_tensors(&v,
                     (struct hb_box){page.x, y + c->em, page.w, c->look.height - y - 2 * c->em});
}
