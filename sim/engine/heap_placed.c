/* Leaves of some entries each, in order of address; groups of leaves; both with a summary by which
 * a walk passes what is not in the way, and what is all in the way without a gap that is large
 * enough. Thousands of gradients that all live to the end are such: passing them one by one made
 * the time grow as the square of their number. See heap_placed.h. */
#include "sim/engine/heap_placed.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/engine/heap.h"

enum { LEAF_ITEMS = 32, GROUP_LEAVES = 32 };

/* Of entries that follow each other by address: what lets a walk pass them all at once. */
struct summary {
    int32_t first_start, last_start; /* the earliest and the latest start of one */
    int32_t first_end, last_end;
    int64_t offset;  /* of the lowest */
    int64_t max_top; /* the highest end address */
    int64_t max_gap; /* no gap between them is larger */
};

struct entries {
    int32_t start[LEAF_ITEMS];
    int32_t end[LEAF_ITEMS];
    int64_t offset[LEAF_ITEMS]; /* ascending */
    int64_t top[LEAF_ITEMS];
};

/* Of what was in the way of an item, and is in the way of each whose life lies in these events and
 * meets all of it. A new leaf and one that changed since have no such events. */
struct met {
    struct hb_heap_span events;
    struct summary sum;
    int64_t first_top;   /* of the lowest */
    int64_t under, fits; /* no gap between them is larger than the one and smaller than the other */
    int64_t fits_at;     /* the lowest gap of that size; where there is none, the size has no end */
};

struct leaf {
    struct summary sum;
    struct met met;
    uint32_t count;
    struct entries *e;
};

struct group {
    struct summary sum;
    bool known; /* false: to be made again from the leaves */
};

struct list {
    struct leaf *leaves; /* in order of address; the first is never empty but at the start */
    uint32_t count, cap;
    struct group *groups; /* of GROUP_LEAVES leaves each; the last may have fewer */
    uint32_t group_count, group_cap;
};

/* What was placed, all of it, and of many items also by time: a level cuts the events into windows
 * that begin `step` apart and are twice as long, so that what is no longer than a step lies in one.
 *
 *   events   |--------|--------|--------|
 *   windows  [0               ][2  ...
 *                     [1               ]      */
enum { LEVELS = 4, LEVEL_FACTOR = 8 };

struct level {
    struct list *windows;
    uint32_t count; /* 0: there is no such level */
    int64_t step;   /* events; grows from level to level */
};

struct hb_placed {
    struct hb_arena *scratch;
    struct list all;
    struct level levels[LEVELS];
    int64_t first; /* event */
};

static const struct hb_heap_span no_events = {INT32_MAX, INT32_MIN};

static const unsigned char own_bit[LEAF_ITEMS] = {1,  2,   4,  8,  16,  32, 64, 128, 1,  2,  4,
                                                  8,  16,  32, 64, 128, 1,  2,  4,   8,  16, 32,
                                                  64, 128, 1,  2,  4,   8,  16, 32,  64, 128};

/* The entries of a leaf that share an event with the item, as bits. Written so that compilers
 * make vector code of it: each entry leaves its own bit in a byte, then a product sums eight
 * bytes into the highest, whatever their order in memory. */
static uint32_t find_shared_span(const struct leaf *leaf, struct hb_heap_span span)
{
    unsigned char bits[LEAF_ITEMS];
    int32_t start = span.start, end = span.end;
    for (int i = 0; i < LEAF_ITEMS; i++)
        bits[i] = (leaf->e->start[i] <= end) & (leaf->e->end[i] >= start);
    for (int i = 0; i < LEAF_ITEMS; i++)
        bits[i] = (unsigned char)(bits[i] * own_bit[i]);
    uint32_t mask = 0;
    for (uint32_t i = 0; i < LEAF_ITEMS; i += 8) {
        uint64_t eight;
        memcpy(&eight, bits + i, sizeof eight);
        mask |= (uint32_t)(eight * 0x0101010101010101u >> 56) << i;
    }
    return leaf->count == LEAF_ITEMS ? mask : mask & ((1u << leaf->count) - 1);
}

static struct hb_heap_span whole_life(const struct hb_heap_item *item)
{
    return (struct hb_heap_span){item->start, item->end};
}

static uint32_t find_shared(const struct leaf *leaf, const struct hb_heap_item *item)
{
    if (!item->spans)
        return find_shared_span(leaf, whole_life(item));
    uint32_t mask = 0;
    for (uint32_t i = 0; i < item->span_count; i++)
        mask |= find_shared_span(leaf, item->spans[i]);
    return mask;
}

/* A walk upwards over what shares an event with the item. */
struct climb {
    int64_t top;  /* all below it is taken or was looked at */
    int64_t best; /* lowest address of the smallest gap that fits; -1: none so far */
    int64_t best_bytes;
};

static void take_gap(struct climb *c, int64_t offset, int64_t gap)
{
    if (gap < c->best_bytes) {
        c->best = offset;
        c->best_bytes = gap;
    }
}

/* What lies from offset to top is in the way. */
static void climb_over(struct climb *c, int64_t offset, int64_t top, int64_t bytes)
{
    if (offset - c->top >= bytes)
        take_gap(c, c->top, offset - c->top);
    c->top = hb_larger(c->top, top);
}

/* The list to walk for an item: of the shortest windows one of which holds its life. */
static const struct list *pick_list(const struct hb_placed *placed, const struct hb_heap_item *item)
{
    for (const struct level *level = placed->levels; level < placed->levels + LEVELS; level++)
        if (level->count && (int64_t)item->end - item->start <= level->step)
            return &level->windows[(item->start - placed->first) / level->step];
    return &placed->all;
}

static struct summary join(const struct summary *low, const struct summary *high)
{
    int64_t gap = high->offset - low->max_top;
    struct summary s = *low;
    s.first_start = high->first_start < s.first_start ? high->first_start : s.first_start;
    s.last_start = high->last_start > s.last_start ? high->last_start : s.last_start;
    s.first_end = high->first_end < s.first_end ? high->first_end : s.first_end;
    s.last_end = high->last_end > s.last_end ? high->last_end : s.last_end;
    s.max_top = high->max_top > s.max_top ? high->max_top : s.max_top;
    s.max_gap = high->max_gap > s.max_gap ? high->max_gap : s.max_gap;
    s.max_gap = gap > s.max_gap ? gap : s.max_gap;
    return s;
}

static struct summary sum_entry(const struct leaf *leaf, uint32_t i)
{
    return (struct summary){leaf->e->start[i],
                            leaf->e->start[i],
                            leaf->e->end[i],
                            leaf->e->end[i],
                            leaf->e->offset[i],
                            leaf->e->top[i],
                            0};
}

static void sum_leaf(struct leaf *leaf)
{
    leaf->sum = sum_entry(leaf, 0);
    for (uint32_t i = 1; i < leaf->count; i++) {
        struct summary one = sum_entry(leaf, i);
        leaf->sum = join(&leaf->sum, &one);
    }
    leaf->met.events = no_events;
}

/* From behind the last entry that ends before an item to before the first that starts after it. */
static struct hb_heap_span find_free(const struct leaf *leaf, const struct hb_heap_item *item)
{
    struct hb_heap_span free = {INT32_MIN, INT32_MAX};
    for (uint32_t i = 0; i < leaf->count; i++) {
        if (leaf->e->end[i] < item->start && leaf->e->end[i] >= free.start)
            free.start = leaf->e->end[i] + 1;
        if (leaf->e->start[i] > item->end && leaf->e->start[i] <= free.end)
            free.end = leaf->e->start[i] - 1;
    }
    return free;
}

/* Gradients that live from their layer on to their update meet what is made between: what is in the
 * way of one mostly is all that is in the way of the next, and of its size, so it is kept as a
 * summary. */
static void keep_met(struct leaf *leaf, const struct hb_heap_item *item, uint32_t mask)
{
    struct met *met = &leaf->met;
    *met = (struct met){.events = find_free(leaf, item),
                        .sum = sum_entry(leaf, (uint32_t)__builtin_ctz(mask)),
                        .fits = INT64_MAX};
    met->first_top = met->sum.max_top;
    for (mask &= mask - 1; mask; mask &= mask - 1) {
        struct summary one = sum_entry(leaf, (uint32_t)__builtin_ctz(mask));
        int64_t gap = one.offset - met->sum.max_top;
        if (gap < item->bytes) {
            met->under = hb_larger(met->under, gap);
        } else if (gap < met->fits) {
            met->fits = gap;
            met->fits_at = met->sum.max_top;
        }
        met->sum = join(&met->sum, &one);
    }
}

static void climb_leaf(struct climb *c, struct leaf *leaf, const struct hb_heap_item *item)
{
    uint32_t mask = find_shared(leaf, item);
    if (mask && !item->spans)
        keep_met(leaf, item, mask);
    for (; mask; mask &= mask - 1) {
        int i = __builtin_ctz(mask);
        climb_over(c, leaf->e->offset[i], leaf->e->top[i], item->bytes);
    }
}

static const struct summary *sum_group(const struct list *list, uint32_t g)
{
    struct group *group = &list->groups[g];
    uint32_t first = g * GROUP_LEAVES, end = first + GROUP_LEAVES;
    if (group->known)
        return &group->sum;
    group->known = true;
    group->sum = list->leaves[first].sum;
    for (uint32_t l = first + 1; l < end && l < list->count; l++)
        group->sum = join(&group->sum, &list->leaves[l].sum);
    return &group->sum;
}

static bool shares_none(const struct summary *s, const struct hb_heap_item *item)
{
    return s->first_start > item->end || s->last_end < item->start;
}

static bool shares_all(const struct summary *s, const struct hb_heap_item *item)
{
    if (!item->spans)
        return s->last_start <= item->end && s->first_end >= item->start;
    for (uint32_t i = 0; i < item->span_count; i++)
        if (s->last_start <= item->spans[i].end && s->first_end >= item->spans[i].start)
            return true;
    return false;
}

/* Past all of these at once, as the walk over each would come out: none stands in the way, or all
 * do and no gap between them is large enough. False: they have to be walked. */
static bool pass(struct climb *c, const struct summary *s, const struct hb_heap_item *item)
{
    if (s->max_top <= c->top || shares_none(s, item))
        return true;
    if (s->max_gap >= item->bytes || !shares_all(s, item))
        return false;
    climb_over(c, s->offset, s->max_top, item->bytes);
    return true;
}

/* As pass, of what was in the way: the gap between that fits best is known for sizes around that of
 * the item which it was in the way of. */
static bool pass_met(struct climb *c, const struct met *met, const struct hb_heap_item *item)
{
    if (item->start < met->events.start || item->end > met->events.end)
        return false;
    if (pass(c, &met->sum, item))
        return true;
    if (!shares_all(&met->sum, item) || c->top > met->first_top || item->bytes <= met->under ||
        item->bytes > met->fits)
        return false;
    climb_over(c, met->sum.offset, met->first_top, item->bytes);
    take_gap(c, met->fits_at, met->fits);
    c->top = met->sum.max_top;
    return true;
}

static bool pass_leaf(struct climb *c, const struct leaf *leaf, const struct hb_heap_item *item)
{
    return pass(c, &leaf->sum, item) || pass_met(c, &leaf->met, item);
}

static void climb_group(struct climb *c, const struct list *list, uint32_t g,
                        const struct hb_heap_item *item)
{
    uint32_t end = (g + 1) * GROUP_LEAVES < list->count ? (g + 1) * GROUP_LEAVES : list->count;
    for (uint32_t l = g * GROUP_LEAVES; l < end && c->best_bytes > item->bytes; l++)
        if (!pass_leaf(c, &list->leaves[l], item))
            climb_leaf(c, &list->leaves[l], item);
}

int64_t hb_placed_find(const struct hb_placed *placed, const struct hb_heap_item *item)
{
    struct climb c = {0, -1, INT64_MAX};
    const struct list *list = pick_list(placed, item);
    for (uint32_t g = 0; g < list->group_count && c.best_bytes > item->bytes; g++)
        if (!pass(&c, sum_group(list, g), item))
            climb_group(&c, list, g, item);
    return c.best < 0 ? c.top : c.best;
}

static void shift_entries(struct leaf *leaf, uint32_t at)
{
    uint32_t moved = leaf->count - at;
    struct entries *e = leaf->e;
    memmove(e->start + at + 1, e->start + at, moved * sizeof *e->start);
    memmove(e->end + at + 1, e->end + at, moved * sizeof *e->end);
    memmove(e->offset + at + 1, e->offset + at, moved * sizeof *e->offset);
    memmove(e->top + at + 1, e->top + at, moved * sizeof *e->top);
    leaf->count++;
}

/* Leaves from l on have moved. */
static void forget_groups(struct hb_placed *placed, struct list *list, uint32_t l)
{
    uint32_t wanted = (list->count + GROUP_LEAVES - 1) / GROUP_LEAVES;
    for (; list->group_count < wanted; list->group_count++)
        list->groups = hb_grow(placed->scratch, list->groups, list->group_count, &list->group_cap,
                               sizeof *list->groups);
    for (uint32_t g = l / GROUP_LEAVES; g < list->group_count; g++)
        list->groups[g].known = false;
}

static void add_leaf(struct hb_placed *placed, struct list *list, uint32_t at)
{
    size_t each = sizeof *list->leaves;
    list->leaves = hb_grow(placed->scratch, list->leaves, list->count, &list->cap, each);
    memmove(list->leaves + at + 1, list->leaves + at, (list->count - at) * each);
    list->leaves[at] = (struct leaf){0};
    list->leaves[at].e = hb_arena_alloc(placed->scratch, 1, sizeof(struct entries));
    list->count++;
    forget_groups(placed, list, at);
}

static void split_leaf(struct hb_placed *placed, struct list *list, uint32_t l)
{
    enum { HALF = LEAF_ITEMS / 2 };
    add_leaf(placed, list, l + 1);
    struct leaf *low = &list->leaves[l], *high = low + 1;
    const struct entries *from = low->e;
    struct entries *to = high->e;
    memcpy(to->start, from->start + HALF, HALF * sizeof *to->start);
    memcpy(to->end, from->end + HALF, HALF * sizeof *to->end);
    memcpy(to->offset, from->offset + HALF, HALF * sizeof *to->offset);
    memcpy(to->top, from->top + HALF, HALF * sizeof *to->top);
    low->count = high->count = HALF;
    sum_leaf(low);
    sum_leaf(high);
    list->groups[l / GROUP_LEAVES].known = false;
}

/* The last leaf that begins at or below the address. */
static uint32_t find_leaf(const struct list *list, int64_t offset)
{
    uint32_t low = 0, high = list->count - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (list->leaves[middle].e->offset[0] <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* After an entry was added to a leaf; mostly it is the last of all. */
static void sum_added(struct list *list, uint32_t l, uint32_t at)
{
    struct leaf *leaf = &list->leaves[l];
    struct summary one = sum_entry(leaf, at);
    bool last = at + 1 == leaf->count;
    if (!last || at == 0)
        sum_leaf(leaf);
    else
        leaf->sum = join(&leaf->sum, &one);
    leaf->met.events = no_events;
    list->groups[l / GROUP_LEAVES].known = false;
}

static void list_span(struct hb_placed *placed, struct list *list, const struct hb_heap_item *item,
                      struct hb_heap_span span)
{
    if (!list->count)
        add_leaf(placed, list, 0);
    uint32_t l = find_leaf(list, item->offset);
    const struct leaf *full = &list->leaves[l];
    if (full->count == LEAF_ITEMS) {
        if (l + 1 == list->count && full->e->offset[LEAF_ITEMS - 1] <= item->offset)
            add_leaf(placed, list, l + 1);
        else
            split_leaf(placed, list, l);
        l += list->leaves[l + 1].e->offset[0] <= item->offset;
    }
    struct leaf *leaf = &list->leaves[l];
    uint32_t at = leaf->count;
    while (at > 0 && leaf->e->offset[at - 1] > item->offset)
        at--;
    shift_entries(leaf, at);
    leaf->e->start[at] = span.start;
    leaf->e->end[at] = span.end;
    leaf->e->offset[at] = item->offset;
    leaf->e->top[at] = hb_add_sat(item->offset, item->bytes);
    sum_added(list, l, at);
}

/* The windows of a level that a span lies in: from out_first to before the end returned. */
static uint32_t find_windows(const struct level *level, int64_t first, struct hb_heap_span span,
                             uint32_t *out_first)
{
    int64_t low = (span.start - first) / level->step, high = (span.end - first) / level->step;
    *out_first = (uint32_t)(low > 0 ? low - 1 : 0);
    return (uint32_t)high + 1;
}

static void place_span(struct hb_placed *placed, const struct hb_heap_item *item,
                       struct hb_heap_span span)
{
    list_span(placed, &placed->all, item, span);
    for (struct level *level = placed->levels; level < placed->levels + LEVELS; level++) {
        uint32_t first = 0;
        uint32_t end = level->count ? find_windows(level, placed->first, span, &first) : 0;
        for (uint32_t w = first; w < end; w++)
            list_span(placed, &level->windows[w], item, span);
    }
}

void hb_placed_add(struct hb_placed *placed, const struct hb_heap_item *item)
{
    if (!item->spans)
        place_span(placed, item, whole_life(item));
    for (uint32_t i = 0; i < item->span_count; i++)
        place_span(placed, item, item->spans[i]);
}

/* How many windows of a level all lives lie in, all in all. */
static int64_t count_entries(const struct level *level, int64_t first,
                             const struct hb_heap_item *items, uint32_t count)
{
    int64_t entries = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t low, end = find_windows(level, first, whole_life(&items[i]), &low);
        entries += end - low;
    }
    return entries;
}

/* Levels, of many items: the finest that takes no more than some windows an item, and coarser. */
static void make_levels(struct hb_placed *placed, const struct hb_heap_item *items, uint32_t count)
{
    enum { FEW_ITEMS = 2048, ITEMS_A_WINDOW = 256, ENTRIES_AN_ITEM = 12 };
    struct hb_heap_span life = {INT32_MAX, INT32_MIN};
    if (count < FEW_ITEMS)
        return;
    for (uint32_t i = 0; i < count; i++) {
        life.start = items[i].start < life.start ? items[i].start : life.start;
        life.end = items[i].end > life.end ? items[i].end : life.end;
    }
    placed->first = life.start;
    int64_t events = (int64_t)life.end - life.start, windows = count / ITEMS_A_WINDOW + 64;
    struct level *level = placed->levels;
    while (windows > 1 && level < placed->levels + LEVELS) {
        level->step = events / windows + 1;
        level->count = 0;
        if (count_entries(level, life.start, items, count) > (int64_t)count * ENTRIES_AN_ITEM) {
            windows /= 2;
            continue;
        }
        level->count = (uint32_t)(events / level->step) + 1;
        level->windows = hb_arena_alloc(placed->scratch, level->count, sizeof *level->windows);
        level++;
        windows /= LEVEL_FACTOR;
    }
}

struct hb_placed *hb_placed_new(struct hb_arena *scratch, const struct hb_heap_item *items,
                                uint32_t count)
{
    struct hb_placed *placed = hb_arena_alloc(scratch, 1, sizeof *placed);
    placed->scratch = scratch;
    make_levels(placed, items, count);
    return placed;
}
