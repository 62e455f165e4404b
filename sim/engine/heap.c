/* Best fit over live intervals: an item takes the smallest gap that is free throughout its life,
 * the lowest of equals, and else goes on top. What differs is the order in which items ask:
 *
 *   address                       in order of start, only what is alive now stands in the way,
 *     ^   |---|  |------|         so a list of gaps of the moment answers at once;
 *     |  |-------------|  |--|    sorted by size or duration, items of all times are met, and
 *     +------------------> event  each asks those which share an event with it.
 *
 * Source of truth: rules 7 and 12 for scheduled modules, found by replaying XLA's own intervals. */
#include "sim/engine/heap.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/engine/heap_bfc.h"

/* Sort key of an item: major, then minor, then the place in the array (the sort is stable). */
struct key {
    uint64_t major;
    uint64_t minor;
    uint32_t item;
};

static bool key_before(const struct key *a, const struct key *b)
{
    return a->major < b->major || (a->major == b->major && a->minor < b->minor);
}

static void merge_runs(const struct key *from, struct key *to, uint32_t middle, uint32_t count)
{
    uint32_t left = 0, right = middle;
    for (uint32_t i = 0; i < count; i++) {
        bool take_right =
            left == middle || (right < count && key_before(&from[right], &from[left]));
        to[i] = take_right ? from[right++] : from[left++];
    }
}

static void sort_run(struct key *keys, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct key key = keys[i];
        uint32_t at = i;
        for (; at && key_before(&key, &keys[at - 1]); at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* Short runs by insertion, then merged from the bottom up; spare has room for count keys too. */
static void sort_keys(struct key *keys, struct key *spare, uint32_t count)
{
    enum { RUN = 8 };
    struct key *from = keys, *to = spare;
    for (uint32_t at = 0; at < count; at += RUN)
        sort_run(keys + at, count - at < RUN ? count - at : RUN);
    for (uint32_t width = RUN; width < count; width *= 2) {
        for (uint32_t at = 0; at < count; at += 2 * width) {
            uint32_t rest = count - at;
            merge_runs(from + at, to + at, rest < width ? rest : width,
                       rest < 2 * width ? rest : 2 * width);
        }
        struct key *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, count * sizeof *keys);
}

static uint32_t biased(int32_t event)
{
    return (uint32_t)event ^ 0x80000000u;
}

static uint32_t duration(const struct hb_heap_item *item)
{
    return (uint32_t)((int64_t)item->end - item->start);
}

/* Of an item in several spans, as XLA sorts by size: of what was placed first. */
static uint32_t first_duration(const struct hb_heap_item *item)
{
    return item->spans ? (uint32_t)((int64_t)item->spans[0].end - item->spans[0].start)
                       : duration(item);
}

enum item_order { BY_ORDER, BY_START, BY_END, BY_SIZE, BY_DURATION };

static struct key make_key(const struct hb_heap_item *item, enum item_order order)
{
    uint64_t size_down = ~(uint64_t)item->bytes, duration_down = ~(uint64_t)duration(item);
    switch (order) {
    case BY_ORDER:
        return (struct key){item->order, 0, 0};
    case BY_START:
        return (struct key){biased(item->start), item->order, 0};
    case BY_END:
        return (struct key){biased(item->end), item->order, 0};
    case BY_SIZE:
        return (struct key){size_down, ~(uint64_t)first_duration(item), 0};
    case BY_DURATION:
        return (struct key){duration_down, size_down, 0};
    }
    return (struct key){0, 0, 0};
}

/* Sorts again what keys holds, so that a former order decides between equals. */
static void order_items(const struct hb_heap_item *items, uint32_t count, enum item_order order,
                        struct key *keys, struct key *spare)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t item = keys[i].item;
        keys[i] = make_key(&items[item], order);
        keys[i].item = item;
    }
    sort_keys(keys, spare, count);
}

static struct key *make_keys(struct hb_arena *scratch, uint32_t count)
{
    struct key *keys = hb_arena_alloc(scratch, count, sizeof *keys);
    for (uint32_t i = 0; i < count; i++)
        keys[i].item = i;
    return keys;
}

/* ---- in order of start: the gaps of the moment, by address; the last has no end ----
 * A gap begins at a multiple of the alignment and ends where its last tenant's bytes did, not at
 * the next multiple: what an item of 512 bytes left alone holds no item of 4096 (so it is in the
 * offsets of libtpu's own assignments, 2,600 of 2,600). Gaps that touch but for the alignment
 * become one; what is free at the top is no gap. */

struct gap {
    int64_t offset;
    int64_t end;
};

struct gaps {
    struct gap *at;
    uint32_t count;
    int64_t align_bytes;
};

/* Returns the offset, and where the place ends that is taken: behind the bytes, or with the gap
 * if less than the alignment would remain of it. */
static int64_t take_gap(struct gaps *g, int64_t bytes, int64_t *out_end)
{
    uint32_t best = g->count - 1;
    int64_t best_bytes = INT64_MAX;
    for (uint32_t i = 0; i + 1 < g->count; i++) {
        int64_t gap_bytes = g->at[i].end - g->at[i].offset;
        if (gap_bytes < bytes || gap_bytes >= best_bytes)
            continue;
        best = i;
        best_bytes = gap_bytes;
        if (best_bytes == bytes)
            break;
    }
    struct gap *gap = &g->at[best];
    int64_t offset = gap->offset, end = hb_add_sat(offset, bytes);
    gap->offset = hb_round_up(end, g->align_bytes);
    *out_end = end;
    if (best + 1 < g->count && gap->offset >= gap->end) {
        *out_end = gap->end;
        memmove(gap, gap + 1, (g->count - best - 1) * sizeof *gap);
        g->count--;
    }
    return offset;
}

static void give_gap(struct gaps *g, int64_t offset, int64_t end)
{
    uint32_t low = 0, high = g->count - 1; /* the first gap above offset; the last always is */
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (g->at[middle].offset > offset)
            high = middle;
        else
            low = middle + 1;
    }
    struct gap *above = &g->at[low];
    bool joins_above = hb_round_up(end, g->align_bytes) == above->offset;
    bool joins_below = low > 0 && hb_round_up(above[-1].end, g->align_bytes) == offset;
    if (joins_above)
        above->offset = offset;
    if (joins_above && joins_below) {
        above[-1].end = above->end;
        memmove(above, above + 1, (g->count - low - 1) * sizeof *above);
        g->count--;
    } else if (joins_below) {
        above[-1].end = end;
    } else if (!joins_above) {
        memmove(above + 1, above, (g->count - low) * sizeof *above);
        *above = (struct gap){offset, end};
        g->count++;
    }
}

static int64_t pack_in_order(struct hb_arena *scratch, struct hb_heap_item *items, uint32_t count,
                             int64_t align_bytes)
{
    struct key *spare = hb_arena_alloc(scratch, count, sizeof *spare);
    struct key *starts = make_keys(scratch, count), *ends = make_keys(scratch, count);
    int64_t *place_end = hb_arena_alloc(scratch, count, sizeof *place_end);
    order_items(items, count, BY_START, starts, spare);
    order_items(items, count, BY_END, ends, spare);
    struct gaps gaps = {hb_arena_alloc(scratch, (size_t)count + 2, sizeof *gaps.at), 1,
                        align_bytes};
    gaps.at[0].end = INT64_MAX;
    int64_t height = 0;
    for (uint32_t i = 0, freed = 0; i < count; i++) {
        struct hb_heap_item *item = &items[starts[i].item];
        for (; items[ends[freed].item].end < item->start; freed++) {
            const struct hb_heap_item *dead = &items[ends[freed].item];
            if (dead->bytes)
                give_gap(&gaps, dead->offset, place_end[ends[freed].item]);
        }
        item->offset = item->bytes ? take_gap(&gaps, item->bytes, &place_end[starts[i].item]) : 0;
        int64_t top = hb_add_sat(item->offset, item->bytes);
        height = top > height ? top : height;
    }
    return hb_round_up(height, align_bytes);
}

/* ---- sorted: what was placed, by address, in leaves of a two-level list ---- */

enum { LEAF_ITEMS = 32 };

struct leaf {
    uint32_t count;
    int64_t max_top; /* the highest end address in it */
    int32_t start[LEAF_ITEMS];
    int32_t end[LEAF_ITEMS];
    int64_t offset[LEAF_ITEMS]; /* ascending */
    int64_t top[LEAF_ITEMS];
};

struct list {
    struct leaf **leaves; /* in order of address; the first is never empty but at the start */
    uint32_t count, cap;
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

struct placed {
    struct hb_arena *scratch;
    struct list all;
    struct level levels[LEVELS];
    int64_t first; /* event */
};

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
        bits[i] = (leaf->start[i] <= end) & (leaf->end[i] >= start);
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

static void climb_leaf(struct climb *c, const struct leaf *leaf, const struct hb_heap_item *item)
{
    for (uint32_t mask = find_shared(leaf, item); mask; mask &= mask - 1) {
        int i = __builtin_ctz(mask);
        int64_t gap = leaf->offset[i] - c->top;
        if (gap >= item->bytes && gap < c->best_bytes) {
            c->best = c->top;
            c->best_bytes = gap;
        }
        c->top = leaf->top[i] > c->top ? leaf->top[i] : c->top;
    }
}

/* The list to walk for an item: of the shortest windows one of which holds its life. */
static const struct list *pick_list(const struct placed *placed, const struct hb_heap_item *item)
{
    for (const struct level *level = placed->levels; level < placed->levels + LEVELS; level++)
        if (level->count && (int64_t)item->end - item->start <= level->step)
            return &level->windows[(item->start - placed->first) / level->step];
    return &placed->all;
}

static int64_t find_offset(const struct placed *placed, const struct hb_heap_item *item)
{
    struct climb c = {0, -1, INT64_MAX};
    const struct list *list = pick_list(placed, item);
    for (uint32_t l = 0; l < list->count && c.best_bytes > item->bytes; l++)
        if (list->leaves[l]->max_top > c.top)
            climb_leaf(&c, list->leaves[l], item);
    return c.best < 0 ? c.top : c.best;
}

static void shift_entries(struct leaf *leaf, uint32_t at)
{
    uint32_t moved = leaf->count - at;
    memmove(leaf->start + at + 1, leaf->start + at, moved * sizeof *leaf->start);
    memmove(leaf->end + at + 1, leaf->end + at, moved * sizeof *leaf->end);
    memmove(leaf->offset + at + 1, leaf->offset + at, moved * sizeof *leaf->offset);
    memmove(leaf->top + at + 1, leaf->top + at, moved * sizeof *leaf->top);
    leaf->count++;
}

static void find_max_top(struct leaf *leaf)
{
    leaf->max_top = 0;
    for (uint32_t i = 0; i < leaf->count; i++)
        leaf->max_top = leaf->top[i] > leaf->max_top ? leaf->top[i] : leaf->max_top;
}

static void add_leaf(struct placed *placed, struct list *list, uint32_t at)
{
    size_t each = sizeof(struct leaf *);
    list->leaves = hb_grow(placed->scratch, list->leaves, list->count, &list->cap, each);
    memmove(list->leaves + at + 1, list->leaves + at, (list->count - at) * each);
    list->leaves[at] = hb_arena_alloc(placed->scratch, 1, sizeof(struct leaf));
    list->count++;
}

static void split_leaf(struct placed *placed, struct list *list, uint32_t l)
{
    enum { HALF = LEAF_ITEMS / 2 };
    add_leaf(placed, list, l + 1);
    struct leaf *low = list->leaves[l], *high = list->leaves[l + 1];
    memcpy(high->start, low->start + HALF, HALF * sizeof *low->start);
    memcpy(high->end, low->end + HALF, HALF * sizeof *low->end);
    memcpy(high->offset, low->offset + HALF, HALF * sizeof *low->offset);
    memcpy(high->top, low->top + HALF, HALF * sizeof *low->top);
    low->count = high->count = HALF;
    find_max_top(low);
    find_max_top(high);
}

/* The last leaf that begins at or below the address. */
static uint32_t find_leaf(const struct list *list, int64_t offset)
{
    uint32_t low = 0, high = list->count - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (list->leaves[middle]->offset[0] <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void list_span(struct placed *placed, struct list *list, const struct hb_heap_item *item,
                      struct hb_heap_span span)
{
    if (!list->count)
        add_leaf(placed, list, 0);
    uint32_t l = find_leaf(list, item->offset);
    const struct leaf *full = list->leaves[l];
    if (full->count == LEAF_ITEMS) {
        if (l + 1 == list->count && full->offset[LEAF_ITEMS - 1] <= item->offset)
            add_leaf(placed, list, l + 1);
        else
            split_leaf(placed, list, l);
        l += list->leaves[l + 1]->offset[0] <= item->offset;
    }
    struct leaf *leaf = list->leaves[l];
    uint32_t at = leaf->count;
    while (at > 0 && leaf->offset[at - 1] > item->offset)
        at--;
    shift_entries(leaf, at);
    leaf->start[at] = span.start;
    leaf->end[at] = span.end;
    leaf->offset[at] = item->offset;
    leaf->top[at] = hb_add_sat(item->offset, item->bytes);
    leaf->max_top = leaf->top[at] > leaf->max_top ? leaf->top[at] : leaf->max_top;
}

/* The windows of a level that a span lies in: from out_first to before the end returned. */
static uint32_t find_windows(const struct level *level, int64_t first, struct hb_heap_span span,
                             uint32_t *out_first)
{
    int64_t low = (span.start - first) / level->step, high = (span.end - first) / level->step;
    *out_first = (uint32_t)(low > 0 ? low - 1 : 0);
    return (uint32_t)high + 1;
}

static void place_span(struct placed *placed, const struct hb_heap_item *item,
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

static void place_item(struct placed *placed, const struct hb_heap_item *item)
{
    if (!item->spans)
        place_span(placed, item, whole_life(item));
    for (uint32_t i = 0; i < item->span_count; i++)
        place_span(placed, item, item->spans[i]);
}

static uint32_t count_spans(const struct hb_heap_item *items, uint32_t count)
{
    uint32_t spans = 0;
    for (uint32_t i = 0; i < count; i++)
        spans += items[i].spans ? items[i].span_count : 1;
    return spans;
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
static void make_levels(struct placed *placed, const struct hb_heap_item *items, uint32_t count)
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
    int64_t events = (int64_t)life.end - life.start + 1, windows = count / ITEMS_A_WINDOW + 64;
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

/* Places the items in the order of keys; gives up, returning limit, once that is reached. */
static int64_t pack_keys(struct hb_arena *scratch, struct hb_heap_item *items,
                         const struct key *keys, uint32_t count, int64_t limit)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct placed placed = {.scratch = scratch};
    make_levels(&placed, items, count);
    int64_t height = 0;
    for (uint32_t i = 0; i < count && height < limit; i++) {
        struct hb_heap_item *item = &items[keys[i].item];
        item->offset = 0;
        if (item->bytes == 0)
            continue;
        item->offset = find_offset(&placed, item);
        int64_t top = hb_add_sat(item->offset, item->bytes);
        height = top > height ? top : height;
        place_item(&placed, item);
    }
    hb_arena_rewind(scratch, mark);
    return height < limit ? height : limit;
}

/* The items, with spans of one that leave no event between them made one. */
static struct hb_heap_item *merge_spans(struct hb_arena *scratch, const struct hb_heap_item *items,
                                        uint32_t count)
{
    struct hb_heap_item *merged = hb_arena_alloc(scratch, count, sizeof *merged);
    struct hb_heap_span *spans = hb_arena_alloc(scratch, count_spans(items, count), sizeof *spans);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = 0;
        merged[i] = items[i];
        for (uint32_t k = 0; items[i].spans && k < items[i].span_count; k++) {
            struct hb_heap_span span = items[i].spans[k];
            if (n && span.start <= (int64_t)spans[n - 1].end + 1)
                spans[n - 1].end = span.end > spans[n - 1].end ? span.end : spans[n - 1].end;
            else
                spans[n++] = span;
        }
        merged[i].spans = items[i].spans ? spans : NULL;
        merged[i].span_count = n;
        spans += n;
    }
    return merged;
}

static void take_offsets(struct hb_heap_item *items, const struct hb_heap_item *from,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        items[i].offset = from[i].offset;
}

static int64_t pack_sorted(struct hb_arena *scratch, struct hb_heap_item *items, uint32_t count)
{
    struct key *keys = make_keys(scratch, count);
    struct key *spare = hb_arena_alloc(scratch, count, sizeof *spare);
    struct hb_heap_item *merged = merge_spans(scratch, items, count);
    order_items(items, count, BY_ORDER, keys, spare);
    order_items(items, count, BY_SIZE, keys, spare);
    int64_t by_size = pack_keys(scratch, merged, keys, count, INT64_MAX);
    take_offsets(items, merged, count);
    if (by_size == hb_heap_live_peak(scratch, items, count, 1, NULL))
        return by_size; /* no order does better */
    order_items(items, count, BY_ORDER, keys, spare);
    order_items(items, count, BY_DURATION, keys, spare);
    int64_t by_duration = pack_keys(scratch, merged, keys, count, by_size);
    if (by_duration == by_size)
        return by_size;
    take_offsets(items, merged, count);
    return by_duration;
}

static int64_t pack_caching(struct hb_arena *scratch, struct hb_heap_item *items, uint32_t count)
{
    struct hb_bfc_limits no_limit = {.limit_bytes = INT64_MAX / 2};
    struct hb_bfc_stats stats;
    if (!hb_bfc_run(scratch, no_limit, items, count, &stats, NULL))
        return INT64_MAX;
    return stats.height_bytes;
}

int64_t hb_heap_pack(struct hb_arena *scratch, struct hb_heap_item *items, uint32_t count,
                     enum hb_heap_kind kind, int64_t align_bytes)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    for (uint32_t i = 0; i < count && kind != HB_HEAP_IN_ORDER; i++)
        items[i].bytes = hb_round_up(items[i].bytes, align_bytes);
    int64_t height = 0;
    switch (kind) {
    case HB_HEAP_IN_ORDER:
        height = pack_in_order(scratch, items, count, align_bytes);
        break;
    case HB_HEAP_SORTED:
        height = pack_sorted(scratch, items, count);
        break;
    case HB_HEAP_CACHING:
        height = pack_caching(scratch, items, count);
        break;
    }
    for (uint32_t i = 0; i < count && kind == HB_HEAP_IN_ORDER; i++) /* what lay in between */
        items[i].bytes = hb_round_up(items[i].bytes, align_bytes);
    hb_arena_rewind(scratch, mark);
    return height;
}

/* Spans of all items as items of their own; those of one item that meet become one. */
static uint32_t part_items(const struct hb_heap_item *items, uint32_t count,
                           struct hb_heap_item *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = n;
        if (!items[i].spans)
            out[n++] = items[i];
        for (uint32_t k = 0; k < items[i].span_count; k++) {
            struct hb_heap_span span = items[i].spans[k];
            if (n > first && span.start <= out[n - 1].end) {
                out[n - 1].end = span.end > out[n - 1].end ? span.end : out[n - 1].end;
                continue;
            }
            out[n] = items[i];
            out[n].start = span.start;
            out[n++].end = span.end;
        }
    }
    return n;
}

int64_t hb_heap_live_peak(struct hb_arena *scratch, const struct hb_heap_item *items,
                          uint32_t count, int64_t align_bytes, int32_t *out_at)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct hb_heap_item *parts = hb_arena_alloc(scratch, count_spans(items, count), sizeof *parts);
    count = part_items(items, count, parts);
    struct key *spare = hb_arena_alloc(scratch, count, sizeof *spare);
    struct key *starts = make_keys(scratch, count), *ends = make_keys(scratch, count);
    order_items(parts, count, BY_START, starts, spare);
    order_items(parts, count, BY_END, ends, spare);
    int64_t live = 0, peak = 0;
    int32_t peak_at = count ? parts[starts[0].item].start : 0;
    for (uint32_t i = 0, freed = 0; i < count; i++) {
        const struct hb_heap_item *item = &parts[starts[i].item];
        for (; parts[ends[freed].item].end < item->start; freed++)
            live -= hb_round_up(parts[ends[freed].item].bytes, align_bytes);
        live = hb_add_sat(live, hb_round_up(item->bytes, align_bytes));
        if (live > peak) {
            peak = live;
            peak_at = item->start;
        }
    }
    if (out_at)
        *out_at = peak_at;
    hb_arena_rewind(scratch, mark);
    return peak;
}

void hb_heap_count_events(struct hb_arena *scratch, struct hb_heap_span *spans, uint32_t count)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct key *starts = make_keys(scratch, count), *ends = make_keys(scratch, count);
    struct key *spare = hb_arena_alloc(scratch, count, sizeof *spare);
    for (uint32_t i = 0; i < count; i++) {
        starts[i].major = biased(spans[i].start);
        ends[i].major = biased(spans[i].end);
    }
    sort_keys(starts, spare, count);
    sort_keys(ends, spare, count);
    int32_t event = 0;
    for (uint32_t s = 0, e = 0; e < count;) {
        if (s < count && starts[s].major <= ends[e].major)
            spans[starts[s++].item].start = event++;
        else
            spans[ends[e++].item].end = event++;
    }
    hb_arena_rewind(scratch, mark);
}
