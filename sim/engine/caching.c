/* Two steps of an eager framework under its allocator. An op's storage is asked for when it is
 * issued, and what dies with it is given back after it, so the order of requests is the host's.
 * The peak that is told is that of allocated bytes, where most is alive, or that of reserved bytes:
 * then what the allocator holds beyond what is alive counts as fragmentation. */
#include "sim/engine/caching.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/engine/heap_cuda.h"
#include "sim/engine/live.h"

#define SEGMENT_BYTES (INT64_C(1) << 44) /* how far apart addresses of segments are, at least */

/* While it runs `lives` has all buffers, each in its own place. */
struct run {
    const struct hb_program *p;
    struct hb_memory *out;
    struct hb_arena *arena;
    struct hb_live *lives;
    struct hb_cuda *cuda;
    uint32_t *block;  /* by buffer; HB_NONE: not there */
    int64_t most;     /* allocated bytes at peak_op */
    int64_t segments; /* that have addresses */
};

/* start: first op that writes it, -1: argument, NEVER; end: last op that touches it, op_count: it
 * is kept. */
enum { NEVER = -2 };

/* All but when they start. */
static void find_ends(struct run *r)
{
    const struct hb_program *p = r->p;
    for (uint32_t i = 0; i < p->buf_count; i++) {
        const struct hb_buf *b = &p->bufs[i];
        r->lives[i] = (struct hb_live){i, b->argument ? -1 : NEVER,
                                       b->output ? (int32_t)p->op_count : NEVER, b->bytes};
    }
    for (uint32_t op = p->op_count; op-- > 0;) {
        const struct hb_op *o = &p->ops[op];
        const uint32_t *refs = p->refs + o->refs_at;
        for (uint32_t k = 0; k < o->read_count + o->write_count; k++)
            if (r->lives[refs[k]].end == NEVER)
                r->lives[refs[k]].end = (int32_t)op;
    }
}

static void take(struct run *r, uint32_t buf)
{
    int64_t bytes = r->lives[buf].bytes, *address = &r->out->offset_of[buf];
    if (bytes <= 0)
        return;
    r->block[buf] = hb_cuda_take(r->cuda, bytes, r->p->bufs[buf].pool, address);
    r->segments = hb_larger(r->segments, *address / SEGMENT_BYTES + 1);
}

/* What an op was the last to touch. In whatever order blocks are given back, the same ones are
 * joined. */
static void give_dying(struct run *r, const struct hb_op *o, int32_t op)
{
    const uint32_t *refs = r->p->refs + o->refs_at;
    for (uint32_t k = 0; k < o->read_count + o->write_count; k++) {
        uint32_t *block = &r->block[refs[k]];
        if (r->lives[refs[k]].end != op || *block == HB_NONE)
            continue;
        hb_cuda_give(r->cuda, *block);
        *block = HB_NONE;
    }
}

static void run_op(struct run *r, uint32_t op)
{
    const struct hb_op *o = &r->p->ops[op];
    const uint32_t *written = hb_op_writes(r->p, o);
    for (uint32_t k = 0; k < o->write_count; k++) {
        if (r->lives[written[k]].start != NEVER)
            continue;
        r->lives[written[k]].start = (int32_t)op;
        take(r, written[k]);
    }
    int64_t now = hb_cuda_allocated(r->cuda);
    if (now > r->most) {
        r->most = now;
        r->out->peak_op = (int32_t)op;
    }
    give_dying(r, o, (int32_t)op);
}

static void run_ops(struct run *r)
{
    const struct hb_program *p = r->p;
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (r->lives[i].start == -1)
            take(r, i);
    r->most = hb_cuda_allocated(r->cuda);
    for (uint32_t op = 0; op < p->op_count; op++) {
        if (op == p->caching.second_op && p->caching.captures)
            hb_cuda_release(r->cuda);
        if (op == p->caching.second_op)
            r->out->argument_bytes = hb_cuda_allocated(r->cuda);
        run_op(r, op);
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

/* Of those that live at all; returns how many do at the peak. */
static uint32_t list_lives(struct run *r)
{
    struct hb_memory *out = r->out;
    int32_t last = (int32_t)r->p->op_count - 1, peak = out->peak_op;
    uint32_t at_peak = 0;
    for (uint32_t i = 0; i < r->p->buf_count; i++) {
        struct hb_live l = r->lives[i];
        if (l.start < -1)
            continue;
        out->parts[out->live_count] = (struct hb_live_part){
            out->live_count, {l.start < 0 ? 0 : l.start, l.end > last ? last : l.end}};
        out->live[out->live_count++] = l;
        at_peak += is_at_peak(&l, peak);
    }
    out->part_count = out->live_count;
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
static void pack_addresses(struct run *r)
{
    int64_t *top = hb_arena_alloc(r->arena, (size_t)r->segments + 1, sizeof *top);
    int64_t *offset_of = r->out->offset_of;
    for (uint32_t i = 0; i < r->p->buf_count; i++) {
        int64_t *end = &top[offset_of[i] / SEGMENT_BYTES + 1];
        if (offset_of[i] >= 0)
            *end =
                hb_larger(*end, offset_of[i] % SEGMENT_BYTES + hb_cuda_round(r->p->bufs[i].bytes));
    }
    for (int64_t s = 0; s < r->segments; s++)
        top[s + 1] += top[s];
    for (uint32_t i = 0; i < r->p->buf_count; i++)
        if (offset_of[i] >= 0)
            offset_of[i] = top[offset_of[i] / SEGMENT_BYTES] + offset_of[i] % SEGMENT_BYTES;
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
    uint32_t bufs = r->p->buf_count;
    r->cuda = hb_cuda_new(r->arena, hb_caching_limits(&r->p->caching));
    r->block = hb_arena_raw(r->arena, bufs, sizeof *r->block);
    memset(r->block, 0xff, bufs * sizeof *r->block);
    find_ends(r);
    run_ops(r);
    struct hb_cuda_stats stats = hb_cuda_stats(r->cuda);
    hb_arena_rewind(r->arena, mark);
    return stats;
}

void hb_caching_run(struct hb_arena *arena, const struct hb_program *p, struct hb_memory *out)
{
    struct run r = {.p = p, .out = out, .arena = arena};
    out->live = hb_arena_raw(arena, p->buf_count, sizeof *out->live);
    r.lives = out->live;
    out->parts = hb_arena_raw(arena, p->buf_count, sizeof *out->parts);
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
    list_at_peak(&r, list_lives(&r));
    pack_addresses(&r);
}
