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

/* Bottom-up merge sort; spare has room for count keys as well. */
static void sort_keys(struct key *keys, struct key *spare, uint32_t count)
{
    struct key *from = keys, *to = spare;
    for (uint32_t width = 1; width < count; width *= 2) {
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
        return (struct key){size_down, duration_down, 0};
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

/* ---- in order of start: the gaps of the moment, by address; the last has no end ---- */

struct gap {
    int64_t offset;
    int64_t bytes;
};

struct gaps {
    struct gap *at;
    uint32_t count;
};

static int64_t take_gap(struct gaps *g, int64_t bytes)
{
    uint32_t best = g->count - 1;
    int64_t best_bytes = INT64_MAX;
    for (uint32_t i = 0; i + 1 < g->count; i++) {
        if (g->at[i].bytes < bytes || g->at[i].bytes >= best_bytes)
            continue;
        best = i;
        best_bytes = g->at[i].bytes;
        if (best_bytes == bytes)
            break;
    }
    struct gap *gap = &g->at[best];
    int64_t offset = gap->offset;
    gap->offset = hb_add_sat(gap->offset, bytes);
    if (best + 1 == g->count)
        return offset;
    gap->bytes -= bytes;
    if (gap->bytes == 0) {
        memmove(gap, gap + 1, (g->count - best - 1) * sizeof *gap);
        g->count--;
    }
    return offset;
}

static void give_gap(struct gaps *g, int64_t offset, int64_t bytes)
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
    bool joins_above = offset + bytes == above->offset;
    bool joins_below = low > 0 && above[-1].offset + above[-1].bytes == offset;
    if (joins_above) {
        above->offset = offset;
        above->bytes = low + 1 == g->count ? INT64_MAX : above->bytes + bytes;
    }
    if (joins_above && joins_below) {
        above[-1].bytes = low + 1 == g->count ? INT64_MAX : above[-1].bytes + above->bytes;
        memmove(above, above + 1, (g->count - low - 1) * sizeof *above);
        g->count--;
    } else if (joins_below) {
        above[-1].bytes += bytes;
    } else if (!joins_above) {
        memmove(above + 1, above, (g->count - low) * sizeof *above);
        *above = (struct gap){offset, bytes};
        g->count++;
    }
}

static int64_t pack_in_order(struct hb_arena *scratch, struct hb_heap_item *items, uint32_t count)
{
    struct key *spare = hb_arena_alloc(scratch, count, sizeof *spare);
    struct key *starts = make_keys(scratch, count), *ends = make_keys(scratch, count);
    order_items(items, count, BY_START, starts, spare);
    order_items(items, count, BY_END, ends, spare);
    struct gaps gaps = {hb_arena_alloc(scratch, (size_t)count + 2, sizeof *gaps.at), 1};
    gaps.at[0].bytes = INT64_MAX;
    int64_t height = 0;
    for (uint32_t i = 0, freed = 0; i < count; i++) {
        struct hb_heap_item *item = &items[starts[i].item];
        for (; items[ends[freed].item].end < item->start; freed++) {
            const struct hb_heap_item *dead = &items[ends[freed].item];
            if (dead->bytes)
                give_gap(&gaps, dead->offset, dead->bytes);
        }
        item->offset = item->bytes ? take_gap(&gaps, item->bytes) : 0;
        int64_t top = hb_add_sat(item->offset, item->bytes);
        height = top > height ? top : height;
    }
    return height;
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

struct placed {
    struct hb_arena *scratch;
    struct leaf **leaves; /* in order of address; the first is never empty but at the start */
    uint32_t count;
};

static const unsigned char own_bit[LEAF_ITEMS] = {1,  2,   4,  8,  16,  32, 64, 128, 1,  2,  4,
                                                  8,  16,  32, 64, 128, 1,  2,  4,   8,  16, 32,
                                                  64, 128, 1,  2,  4,   8,  16, 32,  64, 128};

/* The entries of a leaf that share an event with the item, as bits. Written so that compilers
 * make vector code of it: each entry leaves its own bit in a byte, then a product sums eight
 * bytes into the highest, whatever their order in memory. */
static uint32_t find_shared(const struct leaf *leaf, const struct hb_heap_item *item)
{
    unsigned char bits[LEAF_ITEMS];
    int32_t start = item->start, end = item->end;
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

static int64_t find_offset(const struct placed *placed, const struct hb_heap_item *item)
{
    struct climb c = {0, -1, INT64_MAX};
    for (uint32_t l = 0; l < placed->count && c.best_bytes > item->bytes; l++)
        if (placed->leaves[l]->max_top > c.top)
            climb_leaf(&c, placed->leaves[l], item);
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

static void split_leaf(struct placed *placed, uint32_t l)
{
    enum { HALF = LEAF_ITEMS / 2 };
    struct leaf *low = placed->leaves[l];
    struct leaf *high = hb_arena_alloc(placed->scratch, 1, sizeof *high);
    memcpy(high->start, low->start + HALF, HALF * sizeof *low->start);
    memcpy(high->end, low->end + HALF, HALF * sizeof *low->end);
    memcpy(high->offset, low->offset + HALF, HALF * sizeof *low->offset);
    memcpy(high->top, low->top + HALF, HALF * sizeof *low->top);
    low->count = high->count = HALF;
    find_max_top(low);
    find_max_top(high);
    memmove(placed->leaves + l + 2, placed->leaves + l + 1,
            (placed->count - l - 1) * sizeof(struct leaf *));
    placed->leaves[l + 1] = high;
    placed->count++;
}

/* The last leaf that begins at or below the address. */
static uint32_t find_leaf(const struct placed *placed, int64_t offset)
{
    uint32_t low = 0, high = placed->count - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (placed->leaves[middle]->offset[0] <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void place_item(struct placed *placed, const struct hb_heap_item *item)
{
    uint32_t l = find_leaf(placed, item->offset);
    if (placed->leaves[l]->count == LEAF_ITEMS) {
        split_leaf(placed, l);
        l += placed->leaves[l + 1]->offset[0] <= item->offset;
    }
    struct leaf *leaf = placed->leaves[l];
    uint32_t at = leaf->count;
    while (at > 0 && leaf->offset[at - 1] > item->offset)
        at--;
    shift_entries(leaf, at);
    leaf->start[at] = item->start;
    leaf->end[at] = item->end;
    leaf->offset[at] = item->offset;
    leaf->top[at] = hb_add_sat(item->offset, item->bytes);
    leaf->max_top = leaf->top[at] > leaf->max_top ? leaf->top[at] : leaf->max_top;
}

/* Places the items in the order of keys; gives up, returning limit, once that is reached. */
static int64_t pack_keys(struct hb_arena *scratch, struct hb_heap_item *items,
                         const struct key *keys, uint32_t count, int64_t limit)
{
    uint32_t room = count / (LEAF_ITEMS / 2) + 2;
    struct placed placed = {scratch, hb_arena_alloc(scratch, room, sizeof(struct leaf *)), 1};
    placed.leaves[0] = hb_arena_alloc(scratch, 1, sizeof(struct leaf));
    int64_t height = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct hb_heap_item *item = &items[keys[i].item];
        item->offset = 0;
        if (item->bytes == 0)
            continue;
        item->offset = find_offset(&placed, item);
        int64_t top = hb_add_sat(item->offset, item->bytes);
        height = top > height ? top : height;
        if (height >= limit)
            return limit;
        place_item(&placed, item);
    }
    return height;
}

static int64_t pack_sorted(struct hb_arena *scratch, struct hb_heap_item *items, uint32_t count)
{
    struct key *keys = make_keys(scratch, count);
    struct key *spare = hb_arena_alloc(scratch, count, sizeof *spare);
    order_items(items, count, BY_ORDER, keys, spare);
    order_items(items, count, BY_SIZE, keys, spare);
    int64_t by_size = pack_keys(scratch, items, keys, count, INT64_MAX);
    if (by_size == hb_heap_live_peak(scratch, items, count, 1, NULL))
        return by_size; /* no order does better */
    int64_t *kept = hb_arena_alloc(scratch, count, sizeof *kept);
    for (uint32_t i = 0; i < count; i++)
        kept[i] = items[i].offset;
    order_items(items, count, BY_ORDER, keys, spare);
    order_items(items, count, BY_DURATION, keys, spare);
    int64_t by_duration = pack_keys(scratch, items, keys, count, by_size);
    if (by_duration < by_size)
        return by_duration;
    for (uint32_t i = 0; i < count; i++)
        items[i].offset = kept[i];
    return by_size;
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
    for (uint32_t i = 0; i < count; i++)
        items[i].bytes = hb_round_up(items[i].bytes, align_bytes);
    int64_t height = 0;
    switch (kind) {
    case HB_HEAP_IN_ORDER:
        height = pack_in_order(scratch, items, count);
        break;
    case HB_HEAP_SORTED:
        height = pack_sorted(scratch, items, count);
        break;
    case HB_HEAP_CACHING:
        height = pack_caching(scratch, items, count);
        break;
    }
    hb_arena_rewind(scratch, mark);
    return height;
}

int64_t hb_heap_live_peak(struct hb_arena *scratch, const struct hb_heap_item *items,
                          uint32_t count, int64_t align_bytes, int32_t *out_at)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct key *spare = hb_arena_alloc(scratch, count, sizeof *spare);
    struct key *starts = make_keys(scratch, count), *ends = make_keys(scratch, count);
    order_items(items, count, BY_START, starts, spare);
    order_items(items, count, BY_END, ends, spare);
    int64_t live = 0, peak = 0;
    int32_t peak_at = count ? items[starts[0].item].start : 0;
    for (uint32_t i = 0, freed = 0; i < count; i++) {
        const struct hb_heap_item *item = &items[starts[i].item];
        for (; items[ends[freed].item].end < item->start; freed++)
            live -= hb_round_up(items[ends[freed].item].bytes, align_bytes);
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
