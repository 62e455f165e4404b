/* Blocks in one array, linked by address within their segment; free ones of a pool sorted by size
 * and address: see heap_cuda.h. */
#include "sim/engine/heap_cuda.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"

#define KIB      INT64_C(1024)
#define MIB      (KIB * KIB)
#define NO_BLOCK UINT32_MAX

enum { ALIGN_BYTES = 512 };
#define SMALL_BYTES      MIB
#define SMALL_PAGE_BYTES (2 * MIB)
#define LARGE_PAGE_BYTES (20 * MIB)
#define OWN_BYTES        (10 * MIB) /* from here on a request has a segment of its own */
#define OWN_STEP_BYTES   (2 * MIB)
#define SEGMENT_STRIDE   (INT64_C(1) << 44) /* between segments: no two blocks of them touch */

struct block {
    int64_t address;
    int64_t bytes;
    uint32_t before; /* neighbours in the segment; NO_BLOCK */
    uint32_t after;
    uint32_t pool;
    bool in_use;
    bool gone; /* its segment went back to the device */
};

struct pool {
    uint32_t stream;
    bool small;
    uint32_t *free; /* by size, then address */
    uint32_t free_count, free_cap;
    int64_t base; /* expandable: of the range, */
    int64_t mapped_bytes;
    uint32_t last; /* and its last block */
};

struct hb_cuda {
    struct hb_arena *arena;
    struct hb_cuda_limits limits;
    struct block *blocks;
    uint32_t block_count, block_cap;
    struct pool *pools;
    uint32_t pool_count, pool_cap;
    int64_t next_address;
    struct hb_cuda_stats stats;
};

int64_t hb_cuda_round(int64_t bytes)
{
    return hb_round_up(bytes, ALIGN_BYTES);
}

struct hb_cuda *hb_cuda_new(struct hb_arena *arena, struct hb_cuda_limits limits)
{
    struct hb_cuda *c = hb_arena_alloc(arena, 1, sizeof *c);
    c->arena = arena;
    c->limits = limits;
    return c;
}

static uint32_t find_pool(struct hb_cuda *c, int64_t bytes, uint32_t stream)
{
    bool small = bytes <= SMALL_BYTES;
    for (uint32_t i = 0; i < c->pool_count; i++)
        if (c->pools[i].stream == stream && c->pools[i].small == small)
            return i;
    c->pools = hb_grow(c->arena, c->pools, c->pool_count, &c->pool_cap, sizeof *c->pools);
    c->pools[c->pool_count] = (struct pool){.stream = stream, .small = small, .last = NO_BLOCK};
    c->pools[c->pool_count].base = c->next_address;
    c->next_address += SEGMENT_STRIDE;
    return c->pool_count++;
}

/* First free block of the pool that is not below (bytes, address). */
static uint32_t lower_bound(const struct hb_cuda *c, const struct pool *p, int64_t bytes,
                            int64_t address)
{
    uint32_t low = 0, high = p->free_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const struct block *b = &c->blocks[p->free[mid]];
        if (b->bytes < bytes || (b->bytes == bytes && b->address < address))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void put_free(struct hb_cuda *c, uint32_t block)
{
    const struct block *b = &c->blocks[block];
    struct pool *p = &c->pools[b->pool];
    uint32_t at = lower_bound(c, p, b->bytes, b->address);
    p->free = hb_grow(c->arena, p->free, p->free_count, &p->free_cap, sizeof *p->free);
    memmove(p->free + at + 1, p->free + at, (p->free_count - at) * sizeof *p->free);
    p->free[at] = block;
    p->free_count++;
}

static void take_free(struct hb_cuda *c, uint32_t block)
{
    const struct block *b = &c->blocks[block];
    struct pool *p = &c->pools[b->pool];
    uint32_t at = lower_bound(c, p, b->bytes, b->address);
    if (at >= p->free_count || p->free[at] != block)
        HB_BUG("block %u is not among the free ones of its pool", block);
    p->free_count--;
    memmove(p->free + at, p->free + at + 1, (p->free_count - at) * sizeof *p->free);
}

static uint32_t add_block(struct hb_cuda *c, struct block b)
{
    c->blocks = hb_grow(c->arena, c->blocks, c->block_count, &c->block_cap, sizeof *c->blocks);
    c->blocks[c->block_count] = b;
    return c->block_count++;
}

/* --- memory from the device, and back to it --- */

static int64_t page_bytes(const struct pool *p)
{
    return p->small ? SMALL_PAGE_BYTES : LARGE_PAGE_BYTES;
}

/* The pages that a free tail covers whole go back. */
static void unmap_tail(struct hb_cuda *c, struct pool *p)
{
    if (p->last == NO_BLOCK || c->blocks[p->last].in_use)
        return;
    struct block *b = &c->blocks[p->last];
    int64_t start = hb_round_up(b->address - p->base, page_bytes(p));
    int64_t bytes = p->mapped_bytes - start;
    if (bytes <= 0)
        return;
    take_free(c, p->last);
    b->bytes -= bytes;
    p->mapped_bytes -= bytes;
    c->stats.reserved_bytes -= bytes;
    if (b->bytes > 0) {
        put_free(c, p->last);
        return;
    }
    b->gone = true;
    p->last = b->before;
    if (p->last != NO_BLOCK)
        c->blocks[p->last].after = NO_BLOCK;
}

static void release_segments(struct hb_cuda *c, struct pool *p)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->free_count; i++) {
        struct block *b = &c->blocks[p->free[i]];
        if (b->before == NO_BLOCK && b->after == NO_BLOCK) {
            b->gone = true;
            c->stats.reserved_bytes -= b->bytes;
        } else {
            p->free[kept++] = p->free[i];
        }
    }
    p->free_count = kept;
}

static void release_cached(struct hb_cuda *c)
{
    for (uint32_t i = 0; i < c->pool_count; i++) {
        if (c->limits.expandable)
            unmap_tail(c, &c->pools[i]);
        else
            release_segments(c, &c->pools[i]);
    }
}

/* Makes room for so many bytes more below the limit, if that can be. */
static void check_limit(struct hb_cuda *c, int64_t bytes)
{
    int64_t limit = c->limits.limit_bytes;
    if (!limit || hb_add_sat(c->stats.reserved_bytes, bytes) <= limit)
        return;
    release_cached(c);
    c->stats.retries++;
    if (hb_add_sat(c->stats.reserved_bytes, bytes) > limit)
        c->stats.failed = true;
}

static void add_reserved(struct hb_cuda *c, int64_t bytes)
{
    c->stats.reserved_bytes += bytes;
    c->stats.peak_reserved_bytes = hb_larger(c->stats.peak_reserved_bytes, c->stats.reserved_bytes);
}

static int64_t free_tail(const struct hb_cuda *c, const struct pool *p)
{
    bool has = p->last != NO_BLOCK && !c->blocks[p->last].in_use;
    return has ? c->blocks[p->last].bytes : 0;
}

/* Grows the pool's range until its tail holds so many bytes. */
static uint32_t extend_range(struct hb_cuda *c, uint32_t pool, int64_t bytes)
{
    struct pool *p = &c->pools[pool];
    check_limit(c, hb_round_up(bytes - free_tail(c, p), page_bytes(p)));
    int64_t tail = free_tail(c, p);
    int64_t more = hb_round_up(bytes - tail, page_bytes(p));
    add_reserved(c, more);
    if (tail > 0) {
        take_free(c, p->last);
        c->blocks[p->last].bytes += more;
    } else {
        uint32_t before = p->last;
        p->last = add_block(c, (struct block){.address = p->base + p->mapped_bytes,
                                              .bytes = more,
                                              .before = before,
                                              .after = NO_BLOCK,
                                              .pool = pool});
        if (before != NO_BLOCK)
            c->blocks[before].after = p->last;
    }
    p->mapped_bytes += more;
    put_free(c, p->last);
    return p->last;
}

static uint32_t new_segment(struct hb_cuda *c, uint32_t pool, int64_t bytes)
{
    int64_t segment = bytes;
    if (bytes <= SMALL_BYTES)
        segment = SMALL_PAGE_BYTES;
    else if (bytes < OWN_BYTES)
        segment = LARGE_PAGE_BYTES;
    else
        segment = hb_round_up(bytes, OWN_STEP_BYTES);
    check_limit(c, segment);
    add_reserved(c, segment);
    uint32_t block = add_block(c, (struct block){.address = c->next_address,
                                                 .bytes = segment,
                                                 .before = NO_BLOCK,
                                                 .after = NO_BLOCK,
                                                 .pool = pool});
    c->next_address += SEGMENT_STRIDE;
    put_free(c, block);
    return block;
}

/* --- taking and giving --- */

/* Blocks above max_split are for requests above it, and not for those far smaller than they. */
static uint32_t find_fit(const struct hb_cuda *c, const struct pool *p, int64_t bytes)
{
    uint32_t at = lower_bound(c, p, bytes, -1);
    int64_t split = c->limits.max_split_bytes;
    if (at >= p->free_count)
        return NO_BLOCK;
    int64_t found = c->blocks[p->free[at]].bytes;
    if (split && !p->small && bytes < split && found >= split)
        return NO_BLOCK;
    if (split && !p->small && bytes >= split && found >= hb_add_sat(bytes, LARGE_PAGE_BYTES))
        return NO_BLOCK;
    return p->free[at];
}

static bool is_split(const struct hb_cuda *c, const struct pool *p, int64_t bytes, int64_t rest)
{
    if (p->small || c->limits.expandable)
        return rest >= ALIGN_BYTES;
    bool may = !c->limits.max_split_bytes || bytes < c->limits.max_split_bytes;
    return may && rest > SMALL_BYTES;
}

static void split_block(struct hb_cuda *c, uint32_t block, int64_t bytes)
{
    struct block rest = c->blocks[block];
    struct pool *p = &c->pools[rest.pool];
    rest.address += bytes;
    rest.bytes -= bytes;
    rest.before = block;
    uint32_t added = add_block(c, rest);
    c->blocks[block].after = added;
    c->blocks[block].bytes = bytes;
    if (rest.after != NO_BLOCK)
        c->blocks[rest.after].before = added;
    if (p->last == block)
        p->last = added;
    put_free(c, added);
}

uint32_t hb_cuda_take(struct hb_cuda *c, int64_t bytes, uint32_t stream, int64_t *out_address)
{
    int64_t size = hb_cuda_round(bytes);
    uint32_t pool = find_pool(c, size, stream);
    uint32_t block = find_fit(c, &c->pools[pool], size);
    if (block == NO_BLOCK)
        block = c->limits.expandable ? extend_range(c, pool, size) : new_segment(c, pool, size);
    take_free(c, block);
    if (is_split(c, &c->pools[pool], size, c->blocks[block].bytes - size))
        split_block(c, block, size);
    struct block *b = &c->blocks[block];
    b->in_use = true;
    *out_address = b->address;
    c->stats.allocated_bytes += b->bytes;
    c->stats.peak_allocated_bytes =
        hb_larger(c->stats.peak_allocated_bytes, c->stats.allocated_bytes);
    return block;
}

/* Joins `second` to `first`, both free, the latter in no list. */
static void join(struct hb_cuda *c, uint32_t first, uint32_t second)
{
    struct block *a = &c->blocks[first], *b = &c->blocks[second];
    struct pool *p = &c->pools[a->pool];
    a->bytes += b->bytes;
    a->after = b->after;
    if (b->after != NO_BLOCK)
        c->blocks[b->after].before = first;
    if (p->last == second)
        p->last = first;
    b->gone = true;
}

void hb_cuda_give(struct hb_cuda *c, uint32_t block)
{
    struct block *b = &c->blocks[block];
    if (!b->in_use)
        HB_BUG("block %u is given back twice", block);
    c->stats.allocated_bytes -= b->bytes;
    b->in_use = false;
    uint32_t after = b->after, before = b->before;
    if (after != NO_BLOCK && !c->blocks[after].in_use) {
        take_free(c, after);
        join(c, block, after);
    }
    if (before != NO_BLOCK && !c->blocks[before].in_use) {
        take_free(c, before);
        join(c, before, block);
        block = before;
    }
    put_free(c, block);
}

struct hb_cuda_stats hb_cuda_stats(const struct hb_cuda *c)
{
    return c->stats;
}

static void check_neighbours(const struct hb_cuda *c, uint32_t i)
{
    const struct block *b = &c->blocks[i];
    if (b->after == NO_BLOCK)
        return;
    const struct block *next = &c->blocks[b->after];
    if (next->gone || next->before != i || next->address != b->address + b->bytes)
        HB_BUG("block %u does not meet the next one", i);
    if (!b->in_use && !next->in_use)
        HB_BUG("blocks %u and %u are both free", i, b->after);
}

void hb_cuda_check(const struct hb_cuda *c)
{
    int64_t reserved = 0, allocated = 0;
    uint32_t free_count = 0, listed = 0;
    for (uint32_t i = 0; i < c->block_count; i++) {
        const struct block *b = &c->blocks[i];
        if (b->gone)
            continue;
        reserved += b->bytes;
        allocated += b->in_use ? b->bytes : 0;
        free_count += !b->in_use;
        check_neighbours(c, i);
    }
    for (uint32_t i = 0; i < c->pool_count; i++)
        listed += c->pools[i].free_count;
    if (reserved != c->stats.reserved_bytes || allocated != c->stats.allocated_bytes ||
        listed != free_count)
        HB_BUG("%lld of %lld bytes in use, %u of %u free blocks listed", (long long)allocated,
               (long long)reserved, listed, free_count);
}
