/* Blocks in one array, linked by address within their segment; free ones of a pool in bins of
 * sizes up to an eighth apart, each sorted by size and address, and marks of those that have any:
 * see heap_cuda.h. */
#include "sim/engine/heap_cuda.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"

#define KIB      INT64_C(1024)
#define MIB      (KIB * KIB)
#define NO_BLOCK UINT32_MAX

enum {
    ALIGN_BYTES = 512,
    BIN_BITS = 3, /* of a size, behind its first, that tell its bin */
    BIN_WORDS = 8,
    BINS = BIN_WORDS * 64
};
#define SMALL_BYTES      MIB
#define SMALL_PAGE_BYTES (2 * MIB)
#define LARGE_PAGE_BYTES (20 * MIB)
#define OWN_BYTES        (10 * MIB) /* from here on a request has a segment of its own */
#define OWN_STEP_BYTES   (2 * MIB)
#define SEGMENT_STRIDE   (INT64_C(1) << 44) /* between segments: no two blocks of them touch */

enum state {
    FREE,
    USED,
    HOLE, /* expandable: addresses between others whose pages are back at the device */
    GONE  /* joined to another, or back at the device: its place is free, `after` the next */
};

struct block {
    int64_t address;
    int64_t bytes;
    uint32_t before; /* neighbours in the segment; NO_BLOCK */
    uint32_t after;
    int64_t freed_at; /* of a free one: requests for large blocks until then */
    uint16_t pool;
    enum state state : 8;
};

struct free_block {
    int64_t bytes;
    int64_t address;
    uint32_t block;
};

struct bin {
    struct free_block *list; /* from the largest down, the lowest of each size last */
    uint32_t count, cap;
};

struct pool {
    uint32_t stream;
    bool small;
    struct bin *bins;           /* by size */
    uint64_t filled[BIN_WORDS]; /* bins with blocks */
    int64_t base;               /* expandable: of the range, */
    int64_t mapped_bytes;       /* up to the end of its last block */
    uint32_t last;              /* that is mapped; */
    uint32_t holes;             /* blocks before it that are not */
};

struct hb_cuda {
    struct hb_arena *arena;
    struct hb_cuda_limits limits;
    struct block *blocks;
    uint32_t block_count, block_cap;
    uint32_t gone; /* first of those whose place is free */
    struct pool *pools;
    uint32_t pool_count, pool_cap;
    uint32_t *released; /* blocks whose pages are to go back */
    uint32_t released_count, released_cap;
    int64_t next_address;
    int64_t large_asked; /* requests for large blocks */
    struct hb_cuda_stats stats;
};

struct hb_cuda *hb_cuda_new(struct hb_arena *arena, struct hb_cuda_limits limits)
{
    struct hb_cuda *c = hb_arena_alloc(arena, 1, sizeof *c);
    c->arena = arena;
    c->limits = limits;
    c->gone = NO_BLOCK;
    return c;
}

static uint16_t add_pool(struct hb_cuda *c, uint32_t stream, bool small)
{
    if (c->pool_count == UINT16_MAX)
        HB_BUG("%u pools are too many", c->pool_count);
    c->pools = hb_grow(c->arena, c->pools, c->pool_count, &c->pool_cap, sizeof *c->pools);
    c->pools[c->pool_count] = (struct pool){.stream = stream, .small = small, .last = NO_BLOCK};
    c->pools[c->pool_count].bins = hb_arena_alloc(c->arena, BINS, sizeof(struct bin));
    c->pools[c->pool_count].base = c->next_address;
    c->next_address += SEGMENT_STRIDE;
    return (uint16_t)c->pool_count++;
}

static uint16_t find_pool(struct hb_cuda *c, int64_t bytes, uint32_t stream)
{
    bool small = bytes <= SMALL_BYTES;
    for (uint32_t i = 0; i < c->pool_count; i++)
        if (c->pools[i].stream == stream && c->pools[i].small == small)
            return (uint16_t)i;
    return add_pool(c, stream, small);
}

/* --- free blocks --- */

/* Where a free block is listed; bin BINS: nowhere. */
struct listed {
    uint32_t bin, place;
};

static const struct free_block *at_place(const struct pool *p, struct listed l)
{
    return &p->bins[l.bin].list[l.place];
}

/* Of larger sizes it is no less. */
static uint32_t bin_of(int64_t bytes)
{
    uint64_t step = (uint64_t)bytes / ALIGN_BYTES;
    uint32_t shift = 63 - BIN_BITS - (uint32_t)__builtin_clzll(step | 1 << BIN_BITS);
    return (shift << BIN_BITS) + (uint32_t)(step >> shift);
}

static bool is_above(const struct free_block *f, int64_t bytes, int64_t address)
{
    return f->bytes > bytes || (f->bytes == bytes && f->address > address);
}

enum { NEAR = 4 }; /* to the end of a bin, where most are put and taken */

/* Of the bin's blocks, how many are larger than that, or as large and higher. */
static inline uint32_t count_above(const struct bin *b, int64_t bytes, int64_t address)
{
    uint32_t low = 0, count = b->count;
    for (uint32_t near = 0; near < NEAR; near++, count--)
        if (!count || is_above(&b->list[count - 1], bytes, address))
            return count;
    while (count) {
        uint32_t half = count / 2;
        bool above = is_above(&b->list[low + half], bytes, address);
        low = above ? low + half + 1 : low;
        count = above ? count - half - 1 : half;
    }
    return low;
}

static inline void put_free(struct hb_cuda *c, uint32_t block)
{
    struct block *one = &c->blocks[block];
    struct pool *p = &c->pools[one->pool];
    uint32_t bin = bin_of(one->bytes);
    struct bin *b = &p->bins[bin];
    uint32_t place = count_above(b, one->bytes, one->address);
    one->freed_at = c->large_asked;
    if (b->count == b->cap)
        b->list = hb_grow(c->arena, b->list, b->count, &b->cap, sizeof *b->list);
    if (place + NEAR < b->count)
        memmove(b->list + place + 1, b->list + place, (b->count - place) * sizeof *b->list);
    for (uint32_t i = b->count; place + NEAR >= b->count && i > place; i--)
        b->list[i] = b->list[i - 1];
    b->list[place] = (struct free_block){one->bytes, one->address, block};
    if (!b->count++)
        p->filled[bin / 64] |= UINT64_C(1) << bin % 64;
}

static inline uint32_t take_listed(struct pool *p, struct listed l)
{
    struct bin *b = &p->bins[l.bin];
    uint32_t block = b->list[l.place].block;
    if (!--b->count)
        p->filled[l.bin / 64] &= ~(UINT64_C(1) << l.bin % 64);
    if (l.place < b->count)
        memmove(b->list + l.place, b->list + l.place + 1, (b->count - l.place) * sizeof *b->list);
    return block;
}

static inline void take_free(struct hb_cuda *c, uint32_t block)
{
    const struct block *one = &c->blocks[block];
    struct pool *p = &c->pools[one->pool];
    struct listed l = {bin_of(one->bytes), 0};
    l.place = count_above(&p->bins[l.bin], one->bytes, one->address);
    if (l.place == p->bins[l.bin].count || at_place(p, l)->block != block)
        HB_BUG("block %u is not among the free ones of its pool", block);
    take_listed(p, l);
}

/* The last of the first bin from there on that has any. */
static inline struct listed last_from(const struct pool *p, uint32_t bin)
{
    for (uint32_t w = bin / 64; w < BIN_WORDS; w++) {
        uint64_t filled = p->filled[w] & (w == bin / 64 ? UINT64_MAX << bin % 64 : UINT64_MAX);
        if (!filled)
            continue;
        bin = w * 64 + (uint32_t)__builtin_ctzll(filled);
        return (struct listed){bin, p->bins[bin].count - 1};
    }
    return (struct listed){BINS, 0};
}

/* The next by size, then by address. */
static struct listed next_listed(const struct pool *p, struct listed l)
{
    return l.place ? (struct listed){l.bin, l.place - 1} : last_from(p, l.bin + 1);
}

/* The smallest that is large enough, the lowest of them. */
static inline struct listed find_fit(const struct pool *p, int64_t bytes)
{
    uint32_t bin = bin_of(bytes);
    return next_listed(p, (struct listed){bin, count_above(&p->bins[bin], bytes, -1)});
}

/* How large a block can grow: by the hole behind it, or beyond the end of the range. */
static int64_t growth(const struct hb_cuda *c, const struct pool *p, const struct free_block *f)
{
    uint32_t after = c->blocks[f->block].after;
    if (f->block == p->last)
        return INT64_MAX;
    bool grows = after != NO_BLOCK && c->blocks[after].state == HOLE;
    return f->bytes + (grows ? c->blocks[after].bytes : 0);
}

/* With expandable segments a block counts as large as it can grow: the next goes first where that
 * is less (get_free_block). */
static struct listed best_of(const struct hb_cuda *c, const struct pool *p, struct listed best)
{
    int64_t most = growth(c, p, at_place(p, best));
    struct listed next = best;
    while (most > at_place(p, best)->bytes) {
        next = next_listed(p, next);
        if (next.bin == BINS || growth(c, p, at_place(p, next)) >= most)
            break;
        best = next;
        most = growth(c, p, at_place(p, best));
    }
    return best;
}

/* A place for one. */
static uint32_t add_block(struct hb_cuda *c)
{
    uint32_t at = c->gone;
    if (at != NO_BLOCK) {
        c->gone = c->blocks[at].after;
        return at;
    }
    c->blocks = hb_grow(c->arena, c->blocks, c->block_count, &c->block_cap, sizeof *c->blocks);
    return c->block_count++;
}

static void forget_block(struct hb_cuda *c, uint32_t block)
{
    c->blocks[block].state = GONE;
    c->blocks[block].after = c->gone;
    c->gone = block;
}

/* --- memory from the device, and back to it --- */

static int64_t page_bytes(const struct pool *p)
{
    return p->small ? SMALL_PAGE_BYTES : LARGE_PAGE_BYTES;
}

/* Cuts a block in two; the second is in no list. */
static inline uint32_t cut_block(struct hb_cuda *c, uint32_t block, int64_t bytes)
{
    uint32_t added = add_block(c);
    struct block *b = &c->blocks[block], *rest = &c->blocks[added];
    struct pool *p = &c->pools[b->pool];
    *rest = (struct block){.address = b->address + bytes,
                           .bytes = b->bytes - bytes,
                           .before = block,
                           .after = b->after,
                           .pool = b->pool,
                           .state = b->state};
    if (b->after != NO_BLOCK)
        c->blocks[b->after].before = added;
    if (p->last == block)
        p->last = added;
    b->after = added;
    b->bytes = bytes;
    return added;
}

/* Joins `second` to `first`, both not in use, the latter in no list. */
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
    forget_block(c, second);
}

static bool is_free(const struct hb_cuda *c, uint32_t block)
{
    return block != NO_BLOCK && c->blocks[block].state == FREE;
}

static bool is_hole(const struct hb_cuda *c, uint32_t block)
{
    return block != NO_BLOCK && c->blocks[block].state == HOLE;
}

/* The range ends before its last block, and before holes that would be last then. */
static void end_earlier(struct hb_cuda *c, struct pool *p)
{
    do {
        uint32_t last = p->last;
        p->holes -= c->blocks[last].state == HOLE;
        p->mapped_bytes -= c->blocks[last].bytes;
        p->last = c->blocks[last].before;
        forget_block(c, last);
    } while (is_hole(c, p->last));
    if (p->last != NO_BLOCK)
        c->blocks[p->last].after = NO_BLOCK;
}

/* The pages that a free block covers whole go back (unmap_block): what it has before and after them
 * stays. */
static void unmap_pages(struct hb_cuda *c, uint32_t block)
{
    const struct block *b = &c->blocks[block];
    struct pool *p = &c->pools[b->pool];
    int64_t at = b->address - p->base, page = page_bytes(p);
    int64_t start = hb_round_up(at, page), bytes = (at + b->bytes) / page * page - start;
    if (bytes <= 0)
        return;
    take_free(c, block);
    c->stats.reserved_bytes -= bytes;
    uint32_t whole = block;
    if (start > at) {
        whole = cut_block(c, block, start - at);
        put_free(c, block);
    }
    if (c->blocks[whole].bytes > bytes)
        put_free(c, cut_block(c, whole, bytes));
    if (p->last == whole) {
        end_earlier(c, p);
        return;
    }
    c->blocks[whole].state = HOLE;
    p->holes++;
    uint32_t after = c->blocks[whole].after, before = c->blocks[whole].before;
    if (is_hole(c, after)) {
        join(c, whole, after);
        p->holes--;
    }
    if (is_hole(c, before)) {
        join(c, before, whole);
        p->holes--;
    }
}

static void unmap_free(struct hb_cuda *c, const struct pool *p)
{
    c->released_count = 0;
    for (struct listed l = last_from(p, 0); l.bin != BINS; l = next_listed(p, l)) {
        c->released = hb_grow(c->arena, c->released, c->released_count, &c->released_cap,
                              sizeof *c->released);
        c->released[c->released_count++] = at_place(p, l)->block;
    }
    for (uint32_t i = 0; i < c->released_count; i++)
        unmap_pages(c, c->released[i]);
}

static bool is_segment(const struct block *b)
{
    return b->before == NO_BLOCK && b->after == NO_BLOCK;
}

/* A free block goes back to the device, a whole segment. */
static void release_block(struct hb_cuda *c, uint32_t block)
{
    take_free(c, block);
    c->stats.reserved_bytes -= c->blocks[block].bytes;
    forget_block(c, block);
}

static void release_segments(struct hb_cuda *c, const struct pool *p)
{
    struct listed next = last_from(p, 0);
    while (next.bin != BINS) {
        uint32_t block = at_place(p, next)->block;
        next = next_listed(p, next); /* before it: stays where it is */
        if (is_segment(&c->blocks[block]))
            release_block(c, block);
    }
}

void hb_cuda_release(struct hb_cuda *c)
{
    for (uint32_t i = 0; i < c->pool_count; i++) {
        if (c->limits.expandable)
            unmap_free(c, &c->pools[i]);
        else
            release_segments(c, &c->pools[i]);
    }
}

/* Blocks that are never split go first where that is enough: the smallest that is as large as what
 * is asked for and as them, or as many of the largest as it takes
 * (release_available_cached_blocks). */
static bool release_unsplit(struct hb_cuda *c, struct pool *p, int64_t bytes)
{
    int64_t least = c->limits.max_split_bytes, sum = 0;
    if (!least || c->limits.expandable)
        return false;
    int64_t wanted = hb_larger(bytes, least);
    struct listed fit = find_fit(p, wanted);
    if (fit.bin != BINS) {
        release_block(c, at_place(p, fit)->block);
        return true;
    }
    for (uint32_t bin = BINS; bin-- > 0;)
        while (sum < wanted && p->bins[bin].count && p->bins[bin].list[0].bytes >= least) {
            sum += p->bins[bin].list[0].bytes;
            release_block(c, p->bins[bin].list[0].block);
        }
    return sum >= wanted;
}

static bool exceeds(const struct hb_cuda *c, int64_t bytes)
{
    return hb_add_sat(c->stats.reserved_bytes, bytes) > c->limits.limit_bytes;
}

/* Makes room for a segment of so many bytes below the limit, if that can be. */
static void check_limit(struct hb_cuda *c, struct pool *p, int64_t asked, int64_t bytes)
{
    if (!c->limits.limit_bytes || !exceeds(c, bytes))
        return;
    if (release_unsplit(c, p, asked) && !exceeds(c, bytes))
        return;
    hb_cuda_release(c);
    c->stats.retries++;
    c->stats.failed = c->stats.failed || exceeds(c, bytes);
}

/* --- those that were not used for long --- */

/* A large segment that is free whole. */
static bool is_idle(const struct hb_cuda *c, const struct block *b)
{
    return b->state == FREE && !c->pools[b->pool].small && is_segment(b);
}

/* Of those; their ages, in requests, together. */
static int64_t count_idle(const struct hb_cuda *c, int64_t *out_age)
{
    int64_t count = 0;
    *out_age = 0;
    for (uint32_t i = 0; i < c->block_count; i++) {
        if (!is_idle(c, &c->blocks[i]))
            continue;
        count++;
        *out_age += c->large_asked - c->blocks[i].freed_at;
    }
    return count;
}

static int64_t release_older(struct hb_cuda *c, double age)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < c->block_count; i++) {
        const struct block *b = &c->blocks[i];
        if (!is_idle(c, b) || (double)(c->large_asked - b->freed_at) < age)
            continue;
        sum += b->bytes;
        release_block(c, i);
    }
    return sum;
}

/* Before the device is asked, what is older than the mean goes back, again and again, until no more
 * than that share of the limit is reserved (garbage_collect_cached_blocks). */
static void collect_old(struct hb_cuda *c)
{
    double share = c->limits.collect_above;
    int64_t most = (int64_t)(share * (double)c->limits.limit_bytes);
    int64_t wanted = c->stats.reserved_bytes - most, sum = 0, age, count, last = 1;
    if (share <= 0 || c->limits.expandable)
        return;
    while (sum < wanted && last > 0 && (count = count_idle(c, &age)) > 0) {
        last = release_older(c, (double)age / (double)count);
        sum += last;
    }
}

static void add_reserved(struct hb_cuda *c, int64_t bytes)
{
    c->stats.reserved_bytes += bytes;
    c->stats.peak_reserved_bytes = hb_larger(c->stats.peak_reserved_bytes, c->stats.reserved_bytes);
}

/* The lowest run of free blocks and holes that is large enough and has a hole: its first block;
 * NO_BLOCK: there is none, and the end of the range grows (find_expandable_block). The last run
 * goes on beyond the end. */
static uint32_t find_run(const struct hb_cuda *c, const struct pool *p, int64_t bytes)
{
    uint32_t found = NO_BLOCK, first = NO_BLOCK;
    int64_t sum = bytes;
    bool hole = false;
    for (uint32_t b = p->holes ? p->last : NO_BLOCK; b != NO_BLOCK; b = c->blocks[b].before) {
        const struct block *one = &c->blocks[b];
        bool used = one->state == USED;
        sum = used ? 0 : sum + one->bytes;
        hole = !used && (hole || one->state == HOLE);
        first = used ? NO_BLOCK : b;
        if (hole && sum >= bytes &&
            (one->before == NO_BLOCK || c->blocks[one->before].state == USED))
            found = first;
    }
    return found;
}

/* Pages that a block which begins there takes from the device until it is as large as asked for. */
static int64_t missing_bytes(const struct hb_cuda *c, const struct pool *p, uint32_t block,
                             int64_t bytes)
{
    int64_t more = 0, page = page_bytes(p);
    for (; block != NO_BLOCK && bytes > 0; block = c->blocks[block].after) {
        const struct block *b = &c->blocks[block];
        bool hole = b->state == HOLE;
        int64_t got = hole ? hb_smaller(b->bytes, hb_round_up(bytes, page)) : b->bytes;
        more += hole ? got : 0;
        bytes -= got;
    }
    return more + (bytes > 0 ? hb_round_up(bytes, page) : 0);
}

static uint32_t find_start(const struct hb_cuda *c, const struct pool *p, int64_t bytes)
{
    uint32_t run = find_run(c, p, bytes);
    return run == NO_BLOCK && is_free(c, p->last) ? p->last : run;
}

/* Pages of a hole, from its start. */
static void map_hole(struct hb_cuda *c, struct pool *p, uint32_t hole, int64_t bytes)
{
    bytes = hb_round_up(bytes, page_bytes(p));
    if (bytes < c->blocks[hole].bytes)
        cut_block(c, hole, bytes);
    else
        p->holes--;
    c->blocks[hole].state = FREE;
    add_reserved(c, c->blocks[hole].bytes);
}

/* A block at the end of the range, in no list. */
static uint32_t add_end(struct hb_cuda *c, uint16_t pool, int64_t bytes)
{
    struct pool *p = &c->pools[pool];
    int64_t more = hb_round_up(bytes, page_bytes(p));
    uint32_t before = p->last, added = add_block(c);
    c->blocks[added] = (struct block){.address = p->base + p->mapped_bytes,
                                      .bytes = more,
                                      .before = before,
                                      .after = NO_BLOCK,
                                      .pool = pool};
    if (before != NO_BLOCK)
        c->blocks[before].after = added;
    c->pools[pool].last = added;
    c->pools[pool].mapped_bytes += more;
    add_reserved(c, more);
    return added;
}

/* A block of so many bytes at least, with pages from the device, in no list. */
static uint32_t extend_range(struct hb_cuda *c, uint16_t pool, int64_t bytes)
{
    struct pool *p = &c->pools[pool];
    check_limit(c, p, bytes, missing_bytes(c, p, find_start(c, p, bytes), bytes));
    uint32_t block = find_start(c, p, bytes);
    if (block == NO_BLOCK)
        block = add_end(c, pool, bytes);
    else if (c->blocks[block].state == HOLE)
        map_hole(c, p, block, hb_smaller(c->blocks[block].bytes, bytes));
    else
        take_free(c, block);
    while (c->blocks[block].bytes < bytes || is_free(c, c->blocks[block].after)) {
        int64_t missing = bytes - c->blocks[block].bytes;
        uint32_t after = c->blocks[block].after;
        if (is_free(c, after))
            take_free(c, after);
        else if (after == NO_BLOCK)
            after = add_end(c, pool, missing);
        else
            map_hole(c, p, after, hb_smaller(c->blocks[after].bytes, missing));
        join(c, block, after);
    }
    return block;
}

/* The same, a segment. */
static uint32_t new_segment(struct hb_cuda *c, uint16_t pool, int64_t bytes)
{
    int64_t segment = bytes;
    if (bytes <= SMALL_BYTES)
        segment = SMALL_PAGE_BYTES;
    else if (bytes < OWN_BYTES)
        segment = LARGE_PAGE_BYTES;
    else
        segment = hb_round_up(bytes, OWN_STEP_BYTES);
    collect_old(c);
    check_limit(c, &c->pools[pool], bytes, segment);
    add_reserved(c, segment);
    uint32_t block = add_block(c);
    c->blocks[block] = (struct block){.address = c->next_address,
                                      .bytes = segment,
                                      .before = NO_BLOCK,
                                      .after = NO_BLOCK,
                                      .pool = pool};
    c->next_address += SEGMENT_STRIDE;
    return block;
}

/* --- taking and giving --- */

/* Blocks above max_split are for requests above it, and not for those far smaller than they. Takes
 * it out of its list; NO_BLOCK: none fits. */
static uint32_t take_fit(struct hb_cuda *c, struct pool *p, int64_t bytes)
{
    struct listed best = find_fit(p, bytes);
    int64_t split = c->limits.max_split_bytes;
    if (best.bin == BINS)
        return NO_BLOCK;
    if (c->limits.expandable)
        best = best_of(c, p, best);
    int64_t found = at_place(p, best)->bytes;
    if (split && !p->small &&
        (bytes < split ? found >= split : found >= hb_add_sat(bytes, LARGE_PAGE_BYTES)))
        return NO_BLOCK;
    return take_listed(p, best);
}

static bool is_split(const struct hb_cuda *c, const struct pool *p, int64_t bytes, int64_t rest)
{
    if (p->small || c->limits.expandable)
        return rest >= ALIGN_BYTES;
    bool may = !c->limits.max_split_bytes || bytes < c->limits.max_split_bytes;
    return may && rest > SMALL_BYTES;
}

uint32_t hb_cuda_take(struct hb_cuda *c, int64_t bytes, uint32_t stream, int64_t *out_address)
{
    int64_t size = hb_cuda_round(bytes);
    uint16_t pool = find_pool(c, size, stream);
    struct pool *p = &c->pools[pool];
    c->large_asked += !p->small;
    uint32_t block = take_fit(c, p, size);
    if (block == NO_BLOCK)
        block = c->limits.expandable ? extend_range(c, pool, size) : new_segment(c, pool, size);
    if (is_split(c, p, size, c->blocks[block].bytes - size))
        put_free(c, cut_block(c, block, size));
    struct block *b = &c->blocks[block];
    b->state = USED;
    *out_address = b->address;
    c->stats.allocated_bytes += b->bytes;
    c->stats.peak_allocated_bytes =
        hb_larger(c->stats.peak_allocated_bytes, c->stats.allocated_bytes);
    return block;
}

void hb_cuda_give(struct hb_cuda *c, uint32_t block)
{
    struct block *b = &c->blocks[block];
    if (b->state != USED)
        HB_BUG("block %u is given back twice", block);
    c->stats.allocated_bytes -= b->bytes;
    b->state = FREE;
    uint32_t after = b->after, before = b->before;
    if (is_free(c, after)) {
        take_free(c, after);
        join(c, block, after);
    }
    if (is_free(c, before)) {
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

int64_t hb_cuda_allocated(const struct hb_cuda *c)
{
    return c->stats.allocated_bytes;
}

int64_t hb_cuda_block_bytes(const struct hb_cuda *c, uint32_t block)
{
    return c->blocks[block].bytes;
}

static void check_neighbours(const struct hb_cuda *c, uint32_t i)
{
    const struct block *b = &c->blocks[i];
    if (b->bytes <= 0)
        HB_BUG("block %u has no bytes", i);
    if (b->after == NO_BLOCK)
        return;
    const struct block *next = &c->blocks[b->after];
    if (next->state == GONE || next->before != i || next->address != b->address + b->bytes)
        HB_BUG("block %u does not meet the next one", i);
    if (b->state != USED && b->state == next->state)
        HB_BUG("blocks %u and %u are both free, or holes", i, b->after);
}

static uint32_t count_listed(const struct pool *p)
{
    uint32_t sum = 0;
    for (uint32_t bin = 0; bin < BINS; bin++) {
        if ((p->bins[bin].count > 0) != (p->filled[bin / 64] >> bin % 64 & 1))
            HB_BUG("the mark of bin %u is wrong", bin);
        sum += p->bins[bin].count;
    }
    return sum;
}

void hb_cuda_check(const struct hb_cuda *c)
{
    int64_t reserved = 0, allocated = 0;
    uint32_t free_count = 0, listed = 0;
    for (uint32_t i = 0; i < c->block_count; i++) {
        const struct block *b = &c->blocks[i];
        if (b->state == GONE)
            continue;
        reserved += b->state == HOLE ? 0 : b->bytes;
        allocated += b->state == USED ? b->bytes : 0;
        free_count += is_free(c, i);
        check_neighbours(c, i);
    }
    for (uint32_t i = 0; i < c->pool_count; i++)
        listed += count_listed(&c->pools[i]);
    if (reserved != c->stats.reserved_bytes || allocated != c->stats.allocated_bytes ||
        listed != free_count)
        HB_BUG("%lld of %lld bytes in use, %u of %u free blocks listed", (long long)allocated,
               (long long)reserved, listed, free_count);
}
