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
#include "sim/engine/heap_placed.h"

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
        g->count--;
        memmove(above, above + 1, (g->count - low) * sizeof *above);
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

/* ---- sorted */

static uint32_t count_spans(const struct hb_heap_item *items, uint32_t count)
{
    uint32_t spans = 0;
    for (uint32_t i = 0; i < count; i++)
        spans += items[i].spans ? items[i].span_count : 1;
    return spans;
}

/* Places the items in the order of keys; gives up, returning limit, once that is reached. */
static int64_t pack_keys(struct hb_arena *scratch, struct hb_heap_item *items,
                         const struct key *keys, uint32_t count, int64_t limit)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct hb_placed *placed = hb_placed_new(scratch, items, count);
    int64_t height = 0;
    for (uint32_t i = 0; i < count && height < limit; i++) {
        struct hb_heap_item *item = &items[keys[i].item];
        item->offset = 0;
        if (item->bytes == 0)
            continue;
        item->offset = hb_placed_find(placed, item);
        int64_t top = hb_add_sat(item->offset, item->bytes);
        height = top > height ? top : height;
        hb_placed_add(placed, item);
    }
    hb_arena_rewind(scratch, mark);
    return height < limit ? height : limit;
}

/* The items, with spans of one that leave no event between them made one; a single one is its
 * life. */
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
        merged[i].spans = n > 1 ? spans : NULL;
        merged[i].span_count = n > 1 ? n : 0;
        if (n == 1) {
            merged[i].start = spans[0].start;
            merged[i].end = spans[0].end;
        }
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

/* The events of the parts lie close: their bytes are added up event by event. False: they do not,
 * or the bytes are more than can be added. */
static bool count_live(struct hb_arena *scratch, const struct hb_heap_item *parts, uint32_t count,
                       int64_t align_bytes, int64_t *out_peak, int32_t *out_at)
{
    enum { EVENTS_OF_ONE = 16 };
    int64_t first = INT32_MAX, last = INT32_MIN, all = 0;
    bool alive = count > 0; /* each of them at some event */
    for (uint32_t i = 0; i < count; i++) {
        alive = alive && parts[i].end >= parts[i].start;
        first = hb_smaller(first, parts[i].start);
        last = hb_larger(last, parts[i].end);
        all = hb_add_sat(all, hb_round_up(parts[i].bytes, align_bytes));
    }
    if (!alive || all == INT64_MAX || last - first > (int64_t)EVENTS_OF_ONE * count)
        return false;
    int64_t *change = hb_arena_alloc(scratch, (size_t)(last - first) + 2, sizeof *change), live = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t bytes = hb_round_up(parts[i].bytes, align_bytes);
        change[parts[i].start - first] += bytes;
        change[parts[i].end + 1 - first] -= bytes;
    }
    *out_peak = 0;
    *out_at = (int32_t)first;
    for (int64_t at = first; at <= last; at++) {
        live += change[at - first];
        if (live > *out_peak) {
            *out_peak = live;
            *out_at = (int32_t)at;
        }
    }
    return true;
}

static void sort_live(struct hb_arena *scratch, const struct hb_heap_item *parts, uint32_t count,
                      int64_t align_bytes, int64_t *out_peak, int32_t *out_at)
{
    struct key *spare = hb_arena_alloc(scratch, count, sizeof *spare);
    struct key *starts = make_keys(scratch, count), *ends = make_keys(scratch, count);
    order_items(parts, count, BY_START, starts, spare);
    order_items(parts, count, BY_END, ends, spare);
    int64_t live = 0;
    *out_peak = 0;
    *out_at = count ? parts[starts[0].item].start : 0;
    for (uint32_t i = 0, freed = 0; i < count; i++) {
        const struct hb_heap_item *item = &parts[starts[i].item];
        for (; parts[ends[freed].item].end < item->start; freed++)
            live -= hb_round_up(parts[ends[freed].item].bytes, align_bytes);
        live = hb_add_sat(live, hb_round_up(item->bytes, align_bytes));
        if (live > *out_peak) {
            *out_peak = live;
            *out_at = item->start;
        }
    }
}

int64_t hb_heap_live_peak(struct hb_arena *scratch, const struct hb_heap_item *items,
                          uint32_t count, int64_t align_bytes, int32_t *out_at)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct hb_heap_item *parts = hb_arena_raw(scratch, count_spans(items, count), sizeof *parts);
    int64_t peak;
    int32_t at;
    count = part_items(items, count, parts);
    if (!count_live(scratch, parts, count, align_bytes, &peak, &at))
        sort_live(scratch, parts, count, align_bytes, &peak, &at);
    if (out_at)
        *out_at = at;
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
