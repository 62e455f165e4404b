/* Source of truth: tsl/framework/bfc_allocator.cc (TensorFlow, XLA), read for its rules: sizes
 * round up to 256 bytes; 21 bins, bin k from 256 * 2^k; the smallest chunk that fits, at the
 * lowest address, is cut where it is at least twice the request or leaves 128 MiB; regions that
 * grow double from 2 MiB until a request fits, and are not merged with each other. */
#include "sim/engine/heap_bfc.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/ir/program.h"

enum { BIN_COUNT = 21, MIN_CHUNK_BYTES = 256 };

static const int64_t max_waste_bytes = 128 << 20;

struct chunk {
    int64_t offset;
    int64_t bytes;
    int64_t asked_bytes;
    uint32_t below; /* neighbours by address in its region; HB_NONE */
    uint32_t above;
    uint32_t previous; /* in its bin, or next in the list of unused records */
    uint32_t next;
    bool in_use;
};

struct hb_bfc {
    struct hb_arena *arena;
    struct hb_bfc_limits limits;
    int64_t region_bytes; /* of the next region */
    struct chunk *chunks;
    uint32_t count, cap;
    uint32_t unused; /* first record that no chunk needs */
    uint32_t bins[BIN_COUNT];
    struct hb_bfc_stats stats;
};

struct hb_bfc *hb_bfc_new(struct hb_arena *arena, struct hb_bfc_limits limits)
{
    struct hb_bfc *bfc = hb_arena_alloc(arena, 1, sizeof *bfc);
    bfc->arena = arena;
    bfc->limits = limits;
    bfc->limits.limit_bytes -= limits.limit_bytes % MIN_CHUNK_BYTES;
    int64_t first = limits.first_region_bytes ? limits.first_region_bytes : limits.limit_bytes;
    bfc->region_bytes = hb_round_up(first > 0 ? first : 1, MIN_CHUNK_BYTES);
    bfc->unused = HB_NONE;
    for (int bin = 0; bin < BIN_COUNT; bin++)
        bfc->bins[bin] = HB_NONE;
    return bfc;
}

static int bin_of(int64_t bytes)
{
    int bin = 63 - __builtin_clzll((unsigned long long)(bytes / MIN_CHUNK_BYTES) | 1);
    return bin < BIN_COUNT ? bin : BIN_COUNT - 1;
}

static uint32_t make_chunk(struct hb_bfc *bfc, struct chunk value)
{
    uint32_t c = bfc->unused;
    if (c != HB_NONE) {
        bfc->unused = bfc->chunks[c].next;
    } else {
        bfc->chunks = hb_grow(bfc->arena, bfc->chunks, bfc->count, &bfc->cap, sizeof *bfc->chunks);
        c = bfc->count++;
    }
    bfc->chunks[c] = value;
    return c;
}

static bool stands_before(const struct chunk *a, const struct chunk *b)
{
    return a->bytes < b->bytes || (a->bytes == b->bytes && a->offset < b->offset);
}

static void put_in_bin(struct hb_bfc *bfc, uint32_t c)
{
    struct chunk *chunk = &bfc->chunks[c];
    uint32_t *head = &bfc->bins[bin_of(chunk->bytes)];
    uint32_t previous = HB_NONE, next = *head;
    while (next != HB_NONE && stands_before(&bfc->chunks[next], chunk)) {
        previous = next;
        next = bfc->chunks[next].next;
    }
    chunk->previous = previous;
    chunk->next = next;
    *(previous == HB_NONE ? head : &bfc->chunks[previous].next) = c;
    if (next != HB_NONE)
        bfc->chunks[next].previous = c;
}

static void take_from_bin(struct hb_bfc *bfc, uint32_t c)
{
    const struct chunk *chunk = &bfc->chunks[c];
    if (chunk->previous == HB_NONE)
        bfc->bins[bin_of(chunk->bytes)] = chunk->next;
    else
        bfc->chunks[chunk->previous].next = chunk->next;
    if (chunk->next != HB_NONE)
        bfc->chunks[chunk->next].previous = chunk->previous;
}

/* Where the limit leaves room for one. */
static void add_region(struct hb_bfc *bfc, int64_t bytes)
{
    int64_t rest = bfc->limits.limit_bytes - bfc->stats.reserved_bytes;
    if (bytes > rest)
        return;
    bool grown = false;
    for (; bfc->region_bytes < bytes; grown = true)
        bfc->region_bytes = hb_mul_sat(bfc->region_bytes, 2);
    int64_t region = bfc->region_bytes < rest ? bfc->region_bytes : rest;
    if (!grown)
        bfc->region_bytes = hb_mul_sat(bfc->region_bytes, 2);
    uint32_t c = make_chunk(bfc, (struct chunk){.offset = bfc->stats.reserved_bytes,
                                                .bytes = region,
                                                .below = HB_NONE,
                                                .above = HB_NONE});
    bfc->stats.reserved_bytes += region;
    put_in_bin(bfc, c);
}

static uint32_t find_chunk(const struct hb_bfc *bfc, int64_t bytes)
{
    for (int bin = bin_of(bytes); bin < BIN_COUNT; bin++)
        for (uint32_t c = bfc->bins[bin]; c != HB_NONE; c = bfc->chunks[c].next)
            if (bfc->chunks[c].bytes >= bytes)
                return c;
    return HB_NONE;
}

/* Leaves bytes in chunk c, which is in no bin; the rest becomes a free chunk above it. */
static void split_chunk(struct hb_bfc *bfc, uint32_t c, int64_t bytes)
{
    struct chunk low = bfc->chunks[c];
    uint32_t rest = make_chunk(bfc, (struct chunk){.offset = low.offset + bytes,
                                                   .bytes = low.bytes - bytes,
                                                   .below = c,
                                                   .above = low.above});
    if (low.above != HB_NONE)
        bfc->chunks[low.above].below = rest;
    bfc->chunks[c].above = rest;
    bfc->chunks[c].bytes = bytes;
    put_in_bin(bfc, rest);
}

bool hb_bfc_take(struct hb_bfc *bfc, int64_t bytes, uint32_t *out_chunk, int64_t *out_offset)
{
    int64_t rounded = hb_round_up(bytes, MIN_CHUNK_BYTES);
    uint32_t c = find_chunk(bfc, rounded);
    if (c == HB_NONE) {
        add_region(bfc, rounded);
        c = find_chunk(bfc, rounded);
    }
    if (c == HB_NONE)
        return false;
    take_from_bin(bfc, c);
    int64_t waste_bytes = bfc->chunks[c].bytes - rounded;
    if (waste_bytes >= rounded || waste_bytes >= max_waste_bytes)
        split_chunk(bfc, c, rounded);
    struct chunk *chunk = &bfc->chunks[c];
    chunk->in_use = true;
    chunk->asked_bytes = bytes;
    struct hb_bfc_stats *stats = &bfc->stats;
    stats->in_use_bytes += chunk->bytes;
    stats->asked_bytes += bytes;
    if (stats->in_use_bytes > stats->peak_in_use_bytes)
        stats->peak_in_use_bytes = stats->in_use_bytes;
    if (chunk->offset + chunk->bytes > stats->height_bytes)
        stats->height_bytes = chunk->offset + chunk->bytes;
    *out_chunk = c;
    *out_offset = chunk->offset;
    return true;
}

/* Joins the chunk above to c; neither is in a bin. */
static void join_above(struct hb_bfc *bfc, uint32_t c)
{
    uint32_t above = bfc->chunks[c].above, beyond = bfc->chunks[above].above;
    bfc->chunks[c].bytes += bfc->chunks[above].bytes;
    bfc->chunks[c].above = beyond;
    if (beyond != HB_NONE)
        bfc->chunks[beyond].below = c;
    bfc->chunks[above] = (struct chunk){.next = bfc->unused, .in_use = true};
    bfc->unused = above;
}

static bool is_free(const struct hb_bfc *bfc, uint32_t c)
{
    return c != HB_NONE && !bfc->chunks[c].in_use;
}

void hb_bfc_give(struct hb_bfc *bfc, uint32_t c)
{
    struct chunk *chunk = &bfc->chunks[c];
    if (c >= bfc->count || !chunk->in_use || !chunk->bytes)
        HB_BUG("chunk %u given back, but not in use", c);
    chunk->in_use = false;
    bfc->stats.in_use_bytes -= chunk->bytes;
    bfc->stats.asked_bytes -= chunk->asked_bytes;
    if (is_free(bfc, chunk->above)) {
        take_from_bin(bfc, chunk->above);
        join_above(bfc, c);
    }
    uint32_t below = chunk->below;
    if (is_free(bfc, below)) {
        take_from_bin(bfc, below);
        join_above(bfc, below);
        c = below;
    }
    put_in_bin(bfc, c);
}

struct hb_bfc_stats hb_bfc_stats(const struct hb_bfc *bfc)
{
    struct hb_bfc_stats stats = bfc->stats;
    for (int bin = 0; bin < BIN_COUNT; bin++)
        for (uint32_t c = bfc->bins[bin]; c != HB_NONE; c = bfc->chunks[c].next)
            if (bfc->chunks[c].bytes > stats.largest_free_bytes)
                stats.largest_free_bytes = bfc->chunks[c].bytes;
    stats.scattered_bytes = stats.reserved_bytes - stats.in_use_bytes - stats.largest_free_bytes;
    return stats;
}

static void check_chunk(const struct hb_bfc *bfc, uint32_t c)
{
    const struct chunk *chunk = &bfc->chunks[c];
    if (chunk->bytes % MIN_CHUNK_BYTES || chunk->offset % MIN_CHUNK_BYTES)
        HB_BUG("chunk %u: %lld bytes at %lld", c, (long long)chunk->bytes,
               (long long)chunk->offset);
    if (chunk->above == HB_NONE)
        return;
    const struct chunk *above = &bfc->chunks[chunk->above];
    if (above->below != c || above->offset != chunk->offset + chunk->bytes)
        HB_BUG("chunk %u and its neighbour %u do not meet", c, chunk->above);
    if (!above->in_use && !chunk->in_use)
        HB_BUG("free chunks %u and %u are not joined", c, chunk->above);
}

static void check_bin(const struct hb_bfc *bfc, int bin, uint32_t *count)
{
    uint32_t previous = HB_NONE;
    for (uint32_t c = bfc->bins[bin]; c != HB_NONE; c = bfc->chunks[c].next) {
        const struct chunk *chunk = &bfc->chunks[c];
        if (chunk->in_use || bin_of(chunk->bytes) != bin || chunk->previous != previous)
            HB_BUG("chunk %u does not belong into bin %d", c, bin);
        if (previous != HB_NONE && !stands_before(&bfc->chunks[previous], chunk))
            HB_BUG("bin %d is not sorted at chunk %u", bin, c);
        previous = c;
        ++*count;
    }
}

void hb_bfc_check(const struct hb_bfc *bfc)
{
    int64_t total = 0, in_use = 0, asked = 0;
    uint32_t free_count = 0, binned = 0;
    for (uint32_t c = 0; c < bfc->count; c++) {
        if (!bfc->chunks[c].bytes)
            continue; /* an unused record */
        check_chunk(bfc, c);
        total += bfc->chunks[c].bytes;
        in_use += bfc->chunks[c].in_use ? bfc->chunks[c].bytes : 0;
        asked += bfc->chunks[c].in_use ? bfc->chunks[c].asked_bytes : 0;
        free_count += !bfc->chunks[c].in_use;
    }
    for (int bin = 0; bin < BIN_COUNT; bin++)
        check_bin(bfc, bin, &binned);
    if (total != bfc->stats.reserved_bytes || in_use != bfc->stats.in_use_bytes ||
        asked != bfc->stats.asked_bytes || binned != free_count)
        HB_BUG("allocator: %lld bytes in chunks of %lld, %lld in use of %lld, %u of %u binned",
               (long long)total, (long long)bfc->stats.reserved_bytes, (long long)in_use,
               (long long)bfc->stats.in_use_bytes, binned, free_count);
}

struct life {
    int32_t event;
    uint32_t order;
    uint32_t item;
};

static int compare_lives(const void *a, const void *b)
{
    const struct life *left = a, *right = b;
    if (left->event != right->event)
        return left->event < right->event ? -1 : 1;
    if (left->order != right->order)
        return left->order < right->order ? -1 : 1;
    return left->item < right->item ? -1 : left->item > right->item;
}

static struct life *sort_lives(struct hb_arena *scratch, const struct hb_heap_item *items,
                               uint32_t count, bool ends)
{
    struct life *lives = hb_arena_alloc(scratch, count, sizeof *lives);
    for (uint32_t i = 0; i < count; i++)
        lives[i] = (struct life){ends ? items[i].end : items[i].start, items[i].order, i};
    if (count)
        qsort(lives, count, sizeof *lives, compare_lives);
    return lives;
}

bool hb_bfc_run(struct hb_arena *scratch, struct hb_bfc_limits limits, struct hb_heap_item *items,
                uint32_t count, struct hb_bfc_stats *out_stats, uint32_t *out_failed)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    const struct life *starts = sort_lives(scratch, items, count, false);
    const struct life *ends = sort_lives(scratch, items, count, true);
    uint32_t *chunk = hb_arena_alloc(scratch, count, sizeof *chunk);
    struct hb_bfc *bfc = hb_bfc_new(scratch, limits);
    bool met = true;
    for (uint32_t i = 0, ended = 0; i < count && met; i++) {
        struct hb_heap_item *item = &items[starts[i].item];
        for (; ends[ended].event < item->start; ended++)
            if (items[ends[ended].item].bytes)
                hb_bfc_give(bfc, chunk[ends[ended].item]);
        item->offset = 0;
        if (item->bytes)
            met = hb_bfc_take(bfc, item->bytes, &chunk[starts[i].item], &item->offset);
        if (!met && out_failed)
            *out_failed = starts[i].item;
    }
    *out_stats = hb_bfc_stats(bfc);
    hb_arena_rewind(scratch, mark);
    return met;
}
