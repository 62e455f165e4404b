/* The address map: see addressmap.h. */
#include "plots/addressmap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "plots/frame.h"
#include "plots/place.h"

struct edge {
    int64_t op;
    int64_t bytes; /* born: above 0; gone: below */
    uint32_t order;
};

/* What is gone at an op goes before what is born there. */
static int compare_edges(const void *a, const void *b)
{
    const struct edge *x = a;
    const struct edge *y = b;
    if (x->op != y->op)
        return x->op < y->op ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static struct hb_heap_use find_use(struct hb_arena *arena, const struct hb_outcome *o)
{
    uint32_t n = o->buffer_count;
    struct edge *edges = hb_arena_alloc(arena, (size_t)n * 2, sizeof *edges);
    struct hb_heap_use use = {0};
    for (uint32_t i = 0; i < n; i++) {
        const struct hb_shown_buffer *b = &o->buffers[i];
        edges[2 * i] = (struct edge){b->start_op, b->bytes, n + i};
        edges[2 * i + 1] = (struct edge){b->end_op + 1, -b->bytes, i};
    }
    qsort(edges, (size_t)n * 2, sizeof *edges, compare_edges);
    int64_t live = 0;
    for (uint32_t i = 0; i < 2 * n; i++) {
        live += edges[i].bytes;
        if (live > use.live_peak_bytes)
            use = (struct hb_heap_use){live, edges[i].op};
    }
    /* at an op that takes its operand's place both are alive, in the same bytes */
    if (use.live_peak_bytes > o->heap_bytes)
        use.live_peak_bytes = o->heap_bytes;
    return use;
}

const char *hb_addressmap_title(struct hb_arena *arena, const struct hb_outcome *o)
{
    char heap[HB_TICK_TEXT];
    char lost[HB_TICK_TEXT];
    struct hb_heap_use use = find_use(arena, o);
    double share =
        o->heap_bytes > 0 ? 100 * (double)use.live_peak_bytes / (double)o->heap_bytes : 100;
    hb_unit_print(HB_UNIT_BYTES, (double)o->heap_bytes, heap);
    hb_unit_print(HB_UNIT_BYTES, (double)(o->heap_bytes - use.live_peak_bytes), lost);
    if (use.live_peak_bytes >= o->heap_bytes)
        return hb_arena_printf(arena,
                               "heap of %s, full at the peak: nothing lost to "
                               "fragmentation",
                               heap);
    return hb_arena_printf(arena,
                           "heap of %s, %.4g %% in use at the peak: %s lost to fragmentation", heap,
                           floor(share * 10) / 10, lost);
}

static int compare_sizes(const void *a, const void *b)
{
    const struct hb_shown_buffer *x = *(const struct hb_shown_buffer *const *)a;
    const struct hb_shown_buffer *y = *(const struct hb_shown_buffer *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x > y) - (x < y);
}

static struct hb_box buffer_box(const struct hb_frame *f, const struct hb_shown_buffer *b)
{
    double left = hb_scale_at(&f->x, (double)b->start_op);
    double right = fmax(hb_scale_at(&f->x, (double)b->end_op + 1), left + 0.3);
    double top = hb_scale_at(&f->y, (double)(b->offset_bytes + b->bytes));
    double bottom = hb_scale_at(&f->y, (double)b->offset_bytes);
    return (struct hb_box){left, top, right - left, bottom - top};
}

static bool is_small(struct hb_box box)
{
    return box.h <= 3 || box.w <= 3;
}

static void record_buffer(struct hb_canvas *c, const struct hb_shown_buffer *b, struct hb_box box)
{
    char bytes[HB_TICK_TEXT];
    const char *note = hb_arena_printf(
        c->arena, "%s, op %lld to %lld%s%s", hb_unit_print(HB_UNIT_BYTES, (double)b->bytes, bytes),
        (long long)b->start_op + 1, (long long)b->end_op + 1, *b->why ? "\n" : "", b->why);
    hb_canvas_add_cell(c, (struct hb_layout_cell){"buffer", b->name, note, box, (double)b->bytes});
}

/* Groups of one colour: categories, then kinds of operations of a dump. */
enum { GROUPS = HB_CATEGORY_COUNT + HB_SHOWN_KIND_COUNT };

static int group_of(const struct hb_shown_buffer *b)
{
    return b->kind ? HB_CATEGORY_COUNT + (int)b->kind : (int)b->category;
}

static uint32_t group_ink(const struct hb_canvas *c, int group)
{
    if (group < HB_CATEGORY_COUNT)
        return hb_ink_category(c->look.theme, (enum hb_category)group);
    return hb_ink_group(c->look.theme, group - HB_CATEGORY_COUNT - HB_SHOWN_PRODUCT);
}

static const char *name_of(const struct hb_shown_buffer *b)
{
    return b->label ? b->label : b->name;
}

/* Of one group: the small ones together, the others each with a rim. */
static void draw_group(struct hb_canvas *c, const struct hb_frame *f, const struct hb_outcome *o,
                       int group)
{
    uint32_t rgb = group_ink(c, group);
    struct hb_pen rim = {hb_canvas_ink(c, HB_INK_BACK), 0.6, false};
    bool small = false;
    for (uint32_t i = 0; i < o->buffer_count; i++) {
        struct hb_box box = buffer_box(f, &o->buffers[i]);
        if (group_of(&o->buffers[i]) != group || !is_small(box))
            continue;
        hb_draw_add_box(c->draw, box);
        small = true;
    }
    if (small)
        hb_draw_fill(c->draw, rgb, 1);
    for (uint32_t i = 0; i < o->buffer_count; i++) {
        struct hb_box box = buffer_box(f, &o->buffers[i]);
        if (group_of(&o->buffers[i]) != group || is_small(box))
            continue;
        hb_draw_box(c->draw, box, rgb);
        hb_draw_frame(c->draw, box, rim);
    }
}

static bool has_group(const struct hb_outcome *o, int group)
{
    for (uint32_t i = 0; i < o->buffer_count; i++)
        if (group_of(&o->buffers[i]) == group)
            return true;
    return false;
}

static void draw_buffers(struct hb_canvas *c, const struct hb_frame *f, const struct hb_outcome *o)
{
    for (int i = 0; i < GROUPS; i++)
        if (has_group(o, i))
            draw_group(c, f, o, i);
    for (uint32_t i = 0; i < o->buffer_count; i++)
        record_buffer(c, &o->buffers[i], buffer_box(f, &o->buffers[i]));
}

/* The part of a buffer's box that the line at the peak leaves: the wider one. */
static struct hb_box beside_line(struct hb_box box, double px)
{
    static const double air = 3;
    double right = box.x + box.w;
    if (px < box.x - air || px > right + air)
        return box;
    double before = px - box.x, after = right - px;
    if (before > after)
        return (struct hb_box){box.x, box.y, fmax(0, before - air), box.h};
    return (struct hb_box){px + air, box.y, fmax(0, after - air), box.h};
}

/* A dump's label without as many of its last words as there is no room for: "step.py:201
 * dot_general (backward)", "step.py:201"; else cut in the middle. */
static const char *fit_name(struct hb_canvas *c, const struct hb_shown_buffer *b, double room,
                            const struct hb_style *style)
{
    const char *name = name_of(b);
    for (size_t len = b->label ? strlen(name) : 0; len > 0; len--) {
        if (name[len] != '\0' && name[len] != ' ')
            continue;
        const char *part = hb_arena_printf(c->arena, "%.*s", (int)len, name);
        if (hb_canvas_width(c, part, style) <= room)
            return part;
    }
    return hb_canvas_shorten(c, name, room, style);
}

/* Names in the boxes that hold them, the largest buffers first; the end of a name tells more than
 * its start, but both are kept. */
static void name_buffers(struct hb_canvas *c, const struct hb_frame *f, const struct hb_outcome *o,
                         double peak_px)
{
    const struct hb_shown_buffer **sorted =
        hb_arena_alloc(c->arena, o->buffer_count, sizeof(const struct hb_shown_buffer *));
    for (uint32_t i = 0; i < o->buffer_count; i++)
        sorted[i] = &o->buffers[i];
    qsort(sorted, o->buffer_count, sizeof(const struct hb_shown_buffer *), compare_sizes);
    for (uint32_t i = 0; i < o->buffer_count && i < 200; i++) {
        struct hb_box box = beside_line(buffer_box(f, sorted[i]), peak_px);
        struct hb_style style = hb_canvas_style(c, "buffer");
        style.size = fmax(6, c->em * 0.85);
        style.plated = true;
        style.plate = group_ink(c, group_of(sorted[i]));
        style.turned = box.h > box.w * 2 && box.h > c->em * 8;
        style.rgb = hb_colour_on(style.plate);
        double room = (style.turned ? box.h : box.w) - 6;
        if ((style.turned ? box.w : box.h) < hb_canvas_line(c, &style) || room < c->em * 3)
            continue;
        hb_canvas_label_in(c, fit_name(c, sorted[i], room, &style), box, style);
    }
}

static int make_keys(struct hb_canvas *c, const struct hb_outcome *o, struct hb_key *keys)
{
    int count = 0;
    for (int i = 0; i < HB_CATEGORY_COUNT; i++)
        if (has_group(o, (int)hb_stack_order[i]))
            keys[count++] = (struct hb_key){.rgb = group_ink(c, (int)hb_stack_order[i]),
                                            .text = hb_category_name(hb_stack_order[i]),
                                            .mark = HB_KEY_SWATCH};
    for (int i = HB_SHOWN_PRODUCT; i < HB_SHOWN_KIND_COUNT; i++)
        if (has_group(o, HB_CATEGORY_COUNT + i))
            keys[count++] = (struct hb_key){.rgb = group_ink(c, HB_CATEGORY_COUNT + i),
                                            .text = hb_shown_kind_name((enum hb_shown_kind)i),
                                            .mark = HB_KEY_SWATCH};
    keys[count++] = (struct hb_key){.rgb = hb_canvas_ink(c, HB_INK_GRID),
                                    .text = "not in use",
                                    .hatched = true,
                                    .mark = HB_KEY_SWATCH};
    return count;
}

static double last_op(const struct hb_outcome *o)
{
    int64_t last = 0;
    for (uint32_t i = 0; i < o->buffer_count; i++)
        last = o->buffers[i].end_op > last ? o->buffers[i].end_op : last;
    return (double)last + 1;
}

static void draw_peak(struct hb_canvas *c, const struct hb_frame *f, struct hb_heap_use use,
                      double px)
{
    struct hb_style style = hb_canvas_style(c, "peak");
    style.bold = true;
    style.down = HB_ALIGN_END;
    style.across = px > f->area.x + f->area.w / 2 ? HB_ALIGN_END : HB_ALIGN_START;
    char bytes[HB_TICK_TEXT];
    hb_unit_print(HB_UNIT_BYTES, (double)use.live_peak_bytes, bytes);
    const struct hb_pen pens[] = {{hb_canvas_ink(c, HB_INK_BACK), 2.6, false},
                                  {hb_canvas_ink(c, HB_INK_TEXT), 1.2, true}};
    for (int i = 0; i < 2; i++) /* with a rim, to be seen on dark buffers, too */
        hb_draw_line(c->draw, (struct hb_point){px, f->area.y - c->em * 0.3},
                     (struct hb_point){px, f->area.y + f->area.h}, pens[i]);
    hb_canvas_label(c, hb_arena_printf(c->arena, "most in use: %s", bytes),
                    (struct hb_point){px, f->area.y - c->em * 0.3}, style);
}

void hb_addressmap_draw(struct hb_canvas *c, const struct hb_outcome *o)
{
    struct hb_key keys[GROUPS + 1];
    const char *below = hb_place_under(c->arena, o->name, o->place);
    double top = hb_canvas_title(c, hb_addressmap_title(c->arena, o), *below ? below : NULL);
    struct hb_box page = {c->em, top + c->em * 1.4, c->look.width - 2 * c->em,
                          c->look.height - top - c->em * 2.4};
    int count = make_keys(c, o, keys);
    double legend = hb_legend_height(c, page.w, keys, count);
    bool keyed = page.h > legend + c->em * 14;
    page.h -= keyed ? legend + c->em * 0.6 : 0;
    struct hb_frame f = {.x_name = "op of the schedule", .y_name = "address in the heap"};
    f.x = (struct hb_scale){.low = 0, .high = last_op(o)};
    f.y = (struct hb_scale){
        .low = 0, .high = o->heap_bytes > 0 ? (double)o->heap_bytes : 1, .unit = HB_UNIT_BYTES};
    if (!hb_frame_make(c, page, &f))
        return;
    hb_frame_draw(c, &f);
    hb_draw_hatch(c->draw, f.area, 6, (struct hb_pen){hb_canvas_ink(c, HB_INK_GRID), 1.4, false});
    hb_draw_clip(c->draw, f.area);
    draw_buffers(c, &f, o);
    hb_draw_unclip(c->draw);
    struct hb_heap_use use = find_use(c->arena, o);
    double peak_px = hb_scale_at(&f.x, (double)use.at_op + 0.5);
    draw_peak(c, &f, use, peak_px);
    name_buffers(c, &f, o, peak_px);
    double y = page.y + page.h + c->em * 0.6;
    if (keyed)
        hb_legend_draw(c, (struct hb_box){page.x, y, page.w, legend}, keys, count);
}
