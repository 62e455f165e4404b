/* Two steps of an eager framework under its allocator. An op's storage is asked for when it is
 * issued, and what dies with it is given back after it, so the order of requests is the host's.
 * The peak that is told is that of allocated bytes, where most is alive, or that of reserved bytes:
 * then what the allocator holds beyond what is alive counts as fragmentation. */
#include "sim/engine/caching.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/engine/heap_cuda.h"
#include "sim/engine/live.h"

enum { SEGMENT_BITS = 44 }; /* of addresses: how far apart segments are, at least */

/* The allocator's state while the program runs. */
struct run {
    const struct hb_program *p;
    struct hb_memory *out;
    struct hb_arena *arena;
    struct hb_cuda *cuda;
    uint32_t *block; /* by buffer */
    uint32_t *dying; /* buffers by their last op: first of each list, */
    uint32_t *next;  /* and the next of the same */
    int64_t *top;    /* by segment, from the second on: the end of what lay in the one before */
    uint32_t top_count, top_cap;
    int64_t most; /* allocated bytes at peak_op */
};

static uint32_t segment_of(int64_t address)
{
    return (uint32_t)(address >> SEGMENT_BITS);
}

static int64_t in_segment(int64_t address)
{
    return address & ((INT64_C(1) << SEGMENT_BITS) - 1);
}

static inline void take(struct run *r, const struct hb_live *l)
{
    int64_t *address = &r->out->offset_of[l->buf];
    if (l->bytes <= 0)
        return;
    r->block[l->buf] = hb_cuda_take(r->cuda, l->bytes, l->pool, address);
    uint32_t above = segment_of(*address) + 1;
    for (; above >= r->top_count; r->top_count++)
        r->top = hb_grow(r->arena, r->top, r->top_count, &r->top_cap, sizeof *r->top);
    r->top[above] = hb_larger(r->top[above], in_segment(*address) + l->bytes);
}

static void list_dying(struct run *r)
{
    const struct hb_program *p = r->p;
    r->dying = hb_arena_raw(r->arena, p->op_count, sizeof *r->dying);
    r->next = hb_arena_raw(r->arena, p->buf_count, sizeof *r->next);
    memset(r->dying, 0xff, p->op_count * sizeof *r->dying); /* HB_NONE */
    for (uint32_t i = 0; i < p->buf_count; i++) {
        uint32_t end = (uint32_t)p->lives[i].end;
        if (end >= p->op_count || p->lives[i].bytes <= 0)
            continue;
        r->next[i] = r->dying[end];
        r->dying[end] = i;
    }
}

/* Blocks are given back in whatever order: the same ones are joined. */
static void run_ops(struct run *r)
{
    const struct hb_program *p = r->p;
    uint32_t next = 0;
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->lives[i].start < 0)
            take(r, &p->lives[i]);
    r->most = hb_cuda_allocated(r->cuda);
    for (uint32_t op = 0; op < p->op_count; op++) {
        if (op == p->caching.second_op && p->caching.captures)
            hb_cuda_release(r->cuda);
        if (op == p->caching.second_op)
            r->out->argument_bytes = hb_cuda_allocated(r->cuda);
        for (; next < p->buf_count && p->lives[next].start <= (int32_t)op; next++)
            if (p->lives[next].start == (int32_t)op)
                take(r, &p->lives[next]);
        int64_t now = hb_cuda_allocated(r->cuda);
        if (now > r->most) {
            r->most = now;
            r->out->peak_op = (int32_t)op;
        }
        for (uint32_t b = r->dying[op]; b != HB_NONE; b = r->next[b])
            hb_cuda_give(r->cuda, r->block[b]);
    }
}

static int compare_at_peak(const void *a, const void *b)
{
    const struct hb_at_peak *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes > right->bytes ? -1 : 1;
    return left->buf < right->buf ? -1 : left->buf > right->buf;
}

static bool is_at_peak(const struct hb_live *l, int32_t peak)
{
    return l->start <= peak && l->end >= peak && l->bytes;
}

/* Each in one part; returns how many are there at the peak. */
static uint32_t list_parts(struct run *r)
{
    struct hb_memory *out = r->out;
    int32_t last = (int32_t)r->p->op_count - 1;
    uint32_t at_peak = 0;
    out->live = r->p->lives;
    out->live_count = out->part_count = r->p->buf_count;
    out->parts = hb_arena_raw(r->arena, out->part_count, sizeof *out->parts);
    for (uint32_t i = 0; i < out->live_count; i++) {
        const struct hb_live *l = &out->live[i];
        out->parts[i] =
            (struct hb_live_part){i, {l->start < 0 ? 0 : l->start, l->end > last ? last : l->end}};
        at_peak += is_at_peak(l, out->peak_op);
    }
    return at_peak;
}

static void list_at_peak(struct run *r, uint32_t count)
{
    struct hb_memory *out = r->out;
    int64_t sum = 0;
    out->at_peak = hb_arena_raw(r->arena, count, sizeof *out->at_peak);
    for (uint32_t i = 0; out->at_peak_count < count; i++) {
        const struct hb_live *l = &out->live[i];
        const struct hb_buf *b = &r->p->bufs[l->buf];
        if (!is_at_peak(l, out->peak_op))
            continue;
        int64_t bytes = hb_cuda_round(l->bytes);
        out->at_peak[out->at_peak_count++] = (struct hb_at_peak){l->buf, bytes};
        out->category_bytes[b->category] += b->plain_bytes;
        out->category_bytes[HB_CAT_PADDING] += bytes - b->plain_bytes;
        sum += bytes;
    }
    /* Blocks that were not split hold more than what was asked for. */
    out->category_bytes[HB_CAT_FRAGMENTATION] += out->peak_bytes - sum;
    qsort(out->at_peak, out->at_peak_count, sizeof *out->at_peak, compare_at_peak);
}

/* For pictures the segments are put side by side. */
static void pack_addresses(const struct run *r)
{
    int64_t *offset_of = r->out->offset_of;
    for (uint32_t s = 1; s < r->top_count; s++)
        r->top[s] = r->top[s - 1] + hb_cuda_round(r->top[s]);
    for (uint32_t i = 0; i < r->p->buf_count && r->top; i++)
        if (offset_of[i] >= 0)
            offset_of[i] = r->top[segment_of(offset_of[i])] + in_segment(offset_of[i]);
}

struct hb_cuda_limits hb_caching_limits(const struct hb_caching *c)
{
    return (struct hb_cuda_limits){c->expandable, c->limit_bytes, c->max_split_bytes,
                                   c->collect_above};
}

/* Leaves nothing in the arena. */
static struct hb_cuda_stats run_all(struct run *r)
{
    struct hb_arena_mark mark = hb_arena_mark(r->arena);
    r->cuda = hb_cuda_new(r->arena, hb_caching_limits(&r->p->caching));
    r->block = hb_arena_raw(r->arena, r->p->buf_count, sizeof *r->block);
    list_dying(r);
    run_ops(r);
    pack_addresses(r);
    struct hb_cuda_stats stats = hb_cuda_stats(r->cuda);
    hb_arena_rewind(r->arena, mark);
    return stats;
}

void hb_caching_run(struct hb_arena *arena, const struct hb_program *p, struct hb_memory *out)
{
    struct run r = {.p = p, .out = out, .arena = arena};
    memset(out->offset_of, 0xff, p->buf_count * sizeof *out->offset_of); /* -1 */
    out->peak_op = -1;
    out->heap_align_bytes = out->leaf_align_bytes = hb_cuda_round(1);
    struct hb_cuda_stats stats = run_all(&r);
    out->allocated_bytes = stats.peak_allocated_bytes;
    out->reserved_bytes = stats.peak_reserved_bytes;
    out->retries = stats.retries;
    out->peak_bytes = p->caching.reserved ? out->reserved_bytes : out->allocated_bytes;
    out->output_bytes = out->alias_bytes = out->argument_bytes;
    out->temp_bytes = out->peak_bytes - out->argument_bytes;
    out->live_temp_bytes = out->allocated_bytes - out->argument_bytes;
    list_at_peak(&r, list_parts(&r));
}
