/* PyTorch's caching allocator the slow way: nothing is linked or listed. A segment knows which of
 * its pages are mapped and which blocks are in use; what is free between them is found anew for
 * each request. */
#ifndef HB_TESTS_SLOW_CUDA_H
#define HB_TESTS_SLOW_CUDA_H

#include <string.h>

#include "base/size.h"
#include "sim/engine/heap_cuda.h"

enum { SLOW_SEGMENTS = 700, SLOW_PAGES = 160, SLOW_USED = 128 };
#define SLOW_MIB (INT64_C(1) << 20)

struct slow_segment {
    uint32_t stream;
    bool small, gone;
    int64_t page_bytes; /* of a segment that does not grow: all of it */
    int64_t freed_at;   /* requests for large blocks until its last block came back */
    bool mapped[SLOW_PAGES];
};

struct slow_used {
    uint32_t segment;
    int64_t at, bytes;
};

struct slow_cuda {
    struct hb_cuda_limits limits;
    struct hb_cuda_stats stats;
    struct slow_segment segments[SLOW_SEGMENTS];
    uint32_t segment_count;
    struct slow_used used[SLOW_USED];
    uint32_t used_count;
    int64_t large_asked;
};

/* What is mapped and not in use, from end to end. */
struct slow_piece {
    uint32_t segment;
    int64_t at, bytes;
    int64_t room; /* with what it can grow by */
};

static inline int64_t slow_end(const struct slow_segment *g)
{
    int64_t end = 0;
    for (int page = 0; page < SLOW_PAGES; page++)
        if (g->mapped[page])
            end = (page + 1) * g->page_bytes;
    return end;
}

static inline bool slow_mapped(const struct slow_segment *g, int64_t at)
{
    return g->mapped[at / g->page_bytes];
}

/* The end of the block in use at that place; 0: there is none. */
static inline int64_t slow_used_until(const struct slow_cuda *s, uint32_t segment, int64_t at)
{
    for (uint32_t i = 0; i < s->used_count; i++) {
        const struct slow_used *u = &s->used[i];
        if (u->segment == segment && u->at <= at && at < u->at + u->bytes)
            return u->at + u->bytes;
    }
    return 0;
}

/* Where the next block in use begins, or the segment ends. */
static inline int64_t slow_next_used(const struct slow_cuda *s, uint32_t segment, int64_t at)
{
    int64_t next = slow_end(&s->segments[segment]);
    for (uint32_t i = 0; i < s->used_count; i++)
        if (s->used[i].segment == segment && s->used[i].at >= at)
            next = hb_smaller(next, s->used[i].at);
    return next;
}

/* How far pages are mapped, or not, from there; not beyond an end. */
static inline int64_t slow_alike_until(const struct slow_segment *g, int64_t at, int64_t end)
{
    bool mapped = slow_mapped(g, at);
    int64_t to = at;
    while (to < end && slow_mapped(g, to) == mapped)
        to = (to / g->page_bytes + 1) * g->page_bytes;
    return hb_smaller(to, end);
}

static inline uint32_t slow_pieces_of(const struct slow_cuda *s, uint32_t segment,
                                      struct slow_piece *out)
{
    const struct slow_segment *g = &s->segments[segment];
    uint32_t count = 0;
    int64_t end = slow_end(g);
    for (int64_t at = 0; at < end;) {
        int64_t used = slow_used_until(s, segment, at), next = slow_next_used(s, segment, at);
        int64_t to = used ? used : slow_alike_until(g, at, next);
        if (!used && slow_mapped(g, at)) {
            int64_t hole = to < next ? slow_alike_until(g, to, next) - to : 0;
            int64_t room = to == end && s->limits.expandable ? INT64_MAX : to - at + hole;
            out[count++] = (struct slow_piece){segment, at, to - at, room};
        }
        at = to;
    }
    return count;
}

/* Of the pool, by size, then by age of the segment and address. */
static inline uint32_t slow_pieces(const struct slow_cuda *s, uint32_t stream, bool small,
                                   struct slow_piece *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->segment_count; i++) {
        const struct slow_segment *g = &s->segments[i];
        if (!g->gone && g->stream == stream && g->small == small)
            count += slow_pieces_of(s, i, out + count);
    }
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0 && out[k].bytes < out[k - 1].bytes; k--) {
            struct slow_piece swap = out[k];
            out[k] = out[k - 1];
            out[k - 1] = swap;
        }
    return count;
}

static inline bool slow_fit(const struct slow_cuda *s, int64_t bytes, uint32_t stream, bool small,
                            struct slow_piece *out)
{
    static struct slow_piece pieces[SLOW_USED + SLOW_SEGMENTS];
    uint32_t count = slow_pieces(s, stream, small, pieces), i = 0;
    int64_t split = small ? 0 : s->limits.max_split_bytes;
    while (i < count && pieces[i].bytes < bytes)
        i++;
    while (s->limits.expandable && i + 1 < count && pieces[i + 1].room < pieces[i].room)
        i++;
    if (i >= count)
        return false;
    *out = pieces[i];
    if (!split)
        return true;
    return bytes < split ? out->bytes < split : out->bytes < bytes + 20 * SLOW_MIB;
}

/* ---- back to the device */

static inline bool slow_is_idle(const struct slow_cuda *s, uint32_t segment)
{
    return !s->segments[segment].gone &&
           slow_next_used(s, segment, 0) == slow_end(&s->segments[segment]) &&
           !slow_used_until(s, segment, 0);
}

static inline int64_t slow_drop(struct slow_cuda *s, uint32_t segment)
{
    s->segments[segment].gone = true;
    s->stats.reserved_bytes -= s->segments[segment].page_bytes;
    return s->segments[segment].page_bytes;
}

static inline void slow_unmap(struct slow_cuda *s, uint32_t segment)
{
    struct slow_segment *g = &s->segments[segment];
    for (int page = 0; page < SLOW_PAGES; page++) {
        int64_t at = page * g->page_bytes;
        if (g->mapped[page] && !slow_used_until(s, segment, at) &&
            slow_next_used(s, segment, at) >= at + g->page_bytes) {
            g->mapped[page] = false;
            s->stats.reserved_bytes -= g->page_bytes;
        }
    }
}

static inline void slow_release(struct slow_cuda *s)
{
    for (uint32_t i = 0; i < s->segment_count; i++) {
        if (s->limits.expandable)
            slow_unmap(s, i);
        else if (slow_is_idle(s, i))
            slow_drop(s, i);
    }
}

static inline bool slow_drop_unsplit(struct slow_cuda *s, uint32_t stream, bool small,
                                     int64_t bytes)
{
    static struct slow_piece pieces[SLOW_USED + SLOW_SEGMENTS];
    int64_t least = s->limits.max_split_bytes, wanted = hb_larger(bytes, least), sum = 0;
    uint32_t count = slow_pieces(s, stream, small, pieces);
    for (uint32_t i = 0; i < count; i++)
        if (pieces[i].bytes >= wanted) {
            slow_drop(s, pieces[i].segment);
            return true;
        }
    for (uint32_t i = count; i-- > 0 && sum < wanted && pieces[i].bytes >= least;)
        sum += slow_drop(s, pieces[i].segment);
    return sum >= wanted;
}

static inline bool slow_exceeds(const struct slow_cuda *s, int64_t bytes)
{
    return s->limits.limit_bytes && s->stats.reserved_bytes + bytes > s->limits.limit_bytes;
}

static inline void slow_check_limit(struct slow_cuda *s, uint32_t stream, bool small, int64_t asked,
                                    int64_t more)
{
    bool drops = s->limits.max_split_bytes && !s->limits.expandable;
    if (!slow_exceeds(s, more))
        return;
    if (drops && slow_drop_unsplit(s, stream, small, asked) && !slow_exceeds(s, more))
        return;
    slow_release(s);
    s->stats.retries++;
    s->stats.failed |= slow_exceeds(s, more);
}

static inline void slow_collect(struct slow_cuda *s)
{
    int64_t most = (int64_t)(s->limits.collect_above * (double)s->limits.limit_bytes);
    int64_t wanted = s->stats.reserved_bytes - most;
    for (int64_t last = 1; last > 0 && wanted > 0; wanted -= last) {
        double count = 0, ages = 0;
        bool idle[SLOW_SEGMENTS];
        for (uint32_t i = 0; i < s->segment_count; i++) {
            idle[i] = !s->segments[i].small && slow_is_idle(s, i);
            count += idle[i];
            ages += idle[i] ? (double)(s->large_asked - s->segments[i].freed_at) : 0;
        }
        last = 0;
        for (uint32_t i = 0; i < s->segment_count; i++)
            if (idle[i] && (double)(s->large_asked - s->segments[i].freed_at) >= ages / count)
                last += slow_drop(s, i);
    }
}

/* ---- from the device */

static inline void slow_reserve(struct slow_cuda *s, int64_t bytes)
{
    s->stats.reserved_bytes += bytes;
    s->stats.peak_reserved_bytes = hb_larger(s->stats.peak_reserved_bytes, s->stats.reserved_bytes);
}

static inline uint32_t slow_add_segment(struct slow_cuda *s, uint32_t stream, bool small,
                                        int64_t page_bytes)
{
    assert_true(s->segment_count < SLOW_SEGMENTS);
    s->segments[s->segment_count] =
        (struct slow_segment){.stream = stream, .small = small, .page_bytes = page_bytes};
    return s->segment_count++;
}

static inline struct slow_piece slow_new_segment(struct slow_cuda *s, int64_t bytes,
                                                 uint32_t stream, bool small)
{
    int64_t segment = (bytes + 2 * SLOW_MIB - 1) / (2 * SLOW_MIB) * (2 * SLOW_MIB);
    if (small || bytes < 10 * SLOW_MIB)
        segment = small ? 2 * SLOW_MIB : 20 * SLOW_MIB;
    if (s->limits.collect_above > 0)
        slow_collect(s);
    slow_check_limit(s, stream, small, bytes, segment);
    uint32_t at = slow_add_segment(s, stream, small, segment);
    s->segments[at].mapped[0] = true;
    slow_reserve(s, segment);
    return (struct slow_piece){.segment = at, .bytes = segment};
}

/* Where the lowest run of what is not in use begins that has a hole and is large enough, or goes on
 * to the end; else what is free at the end; else the end. */
static inline int64_t slow_start(const struct slow_cuda *s, uint32_t segment, int64_t bytes)
{
    const struct slow_segment *g = &s->segments[segment];
    int64_t end = slow_end(g), last = end;
    for (int64_t at = 0; at < end;) {
        int64_t used = slow_used_until(s, segment, at), to = slow_next_used(s, segment, at);
        bool holes = !used && !(slow_mapped(g, at) && slow_alike_until(g, at, to) == to);
        if (holes && (to - at >= bytes || to == end))
            return at;
        if (!used && to == end)
            last = at;
        at = used ? used : to;
    }
    return last;
}

/* Maps page after page until so much is free from there on; the bytes that it took. */
static inline int64_t slow_map(struct slow_segment *g, int64_t at, int64_t bytes)
{
    int64_t more = 0;
    for (int64_t page = at / g->page_bytes; page * g->page_bytes < at + bytes; page++) {
        assert_true(page < SLOW_PAGES);
        more += g->mapped[page] ? 0 : g->page_bytes;
        g->mapped[page] = true;
    }
    return more;
}

static inline struct slow_piece slow_grow(struct slow_cuda *s, int64_t bytes, uint32_t stream,
                                          bool small)
{
    uint32_t i = 0;
    while (i < s->segment_count &&
           !(s->segments[i].stream == stream && s->segments[i].small == small))
        i++;
    if (i == s->segment_count)
        slow_add_segment(s, stream, small, small ? 2 * SLOW_MIB : 20 * SLOW_MIB);
    struct slow_segment supposed = s->segments[i];
    int64_t more = slow_map(&supposed, slow_start(s, i, bytes), bytes);
    slow_check_limit(s, stream, small, bytes, more);
    int64_t at = slow_start(s, i, bytes);
    slow_reserve(s, slow_map(&s->segments[i], at, bytes));
    return (struct slow_piece){.segment = i, .at = at, .bytes = bytes};
}

/* ---- taking and giving; a block is known by its place, which moves the last to that of another */

static inline const struct slow_used *slow_take(struct slow_cuda *s, int64_t bytes, uint32_t stream)
{
    int64_t size = (bytes + 511) / 512 * 512, split = s->limits.max_split_bytes;
    bool small = size <= SLOW_MIB;
    struct slow_piece p;
    s->large_asked += !small;
    if (!slow_fit(s, size, stream, small, &p))
        p = s->limits.expandable ? slow_grow(s, size, stream, small)
                                 : slow_new_segment(s, size, stream, small);
    bool whole =
        !small && !s->limits.expandable && ((split && size >= split) || p.bytes - size <= SLOW_MIB);
    struct slow_used *u = &s->used[s->used_count++];
    *u = (struct slow_used){p.segment, p.at, whole ? p.bytes : size};
    s->stats.allocated_bytes += u->bytes;
    s->stats.peak_allocated_bytes =
        hb_larger(s->stats.peak_allocated_bytes, s->stats.allocated_bytes);
    return u;
}

static inline void slow_give(struct slow_cuda *s, uint32_t i)
{
    s->stats.allocated_bytes -= s->used[i].bytes;
    s->segments[s->used[i].segment].freed_at = s->large_asked;
    s->used[i] = s->used[--s->used_count];
}

#endif
