/* Two steps of an eager framework under its allocator. An op's storage is asked for when it is
 * issued, and what dies with it is given back after it, so the order of requests is the host's.
 * The peak that is told is that of allocated bytes, where most is alive, or that of reserved bytes:
 * then what the allocator holds beyond what is alive counts as fragmentation. */
#include "sim/engine/caching.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/engine/heap_cuda.h"
#include "sim/engine/live.h"

/* While it runs `live` has all buffers, each in its own place. */
struct run {
    const struct hb_program *p;
    struct hb_memory *out;
    struct hb_arena *arena;
    struct hb_live *lives;
};

/* start: first op that writes it, -1: argument, NEVER; end: last op that touches it, op_count: it
 * is kept. */
enum { NEVER = -2 };

static void find_lives(struct run *r)
{
    const struct hb_program *p = r->p;
    for (uint32_t i = 0; i < p->buf_count; i++) {
        const struct hb_buf *b = &p->bufs[i];
        r->lives[i] = (struct hb_live){i, b->argument ? -1 : NEVER,
                                       b->output ? (int32_t)p->op_count : NEVER, b->bytes};
    }
    for (uint32_t op = 0; op < p->op_count; op++) {
        const struct hb_op *o = &p->ops[op];
        for (uint32_t k = 0; k < o->read_count + o->write_count; k++) {
            struct hb_live *l = &r->lives[p->refs[o->refs_at + k]];
            if (l->start == NEVER)
                l->start = (int32_t)op;
            if (l->end < (int32_t)op)
                l->end = (int32_t)op;
        }
    }
}

/* Of those that live at all. */
static void list_lives(struct run *r)
{
    struct hb_memory *out = r->out;
    int32_t last = (int32_t)r->p->op_count - 1;
    for (uint32_t i = 0; i < r->p->buf_count; i++) {
        struct hb_live l = r->lives[i];
        if (l.start < -1)
            continue;
        out->parts[out->part_count++] = (struct hb_live_part){
            out->live_count, {l.start < 0 ? 0 : l.start, l.end > last ? last : l.end}};
        out->live[out->live_count++] = l;
    }
}

/* The allocator's state while the program runs. */
struct walk {
    struct hb_cuda *cuda;
    uint32_t *block; /* by buffer */
    uint32_t *dying; /* buffers by their last op: first of each list, */
    uint32_t *next;  /* and the next of the same */
    int64_t most;    /* allocated bytes at peak_op */
};

static void take(struct run *r, struct walk *w, uint32_t buf)
{
    int64_t bytes = r->lives[buf].bytes;
    if (bytes > 0)
        w->block[buf] = hb_cuda_take(w->cuda, bytes, r->p->bufs[buf].pool, &r->out->offset_of[buf]);
}

static void give_dying(struct run *r, struct walk *w, uint32_t op)
{
    for (uint32_t b = w->dying[op]; b != HB_NONE; b = w->next[b])
        if (r->lives[b].bytes > 0)
            hb_cuda_give(w->cuda, w->block[b]);
}

static void list_dying(struct run *r, struct walk *w)
{
    uint32_t ops = r->p->op_count;
    w->dying = hb_arena_raw(r->arena, ops, sizeof *w->dying);
    w->next = hb_arena_raw(r->arena, r->p->buf_count, sizeof *w->next);
    for (uint32_t i = 0; i < ops; i++)
        w->dying[i] = HB_NONE;
    for (uint32_t i = r->p->buf_count; i-- > 0;) {
        int32_t end = r->lives[i].end;
        if (end < 0 || end >= (int32_t)ops)
            continue;
        w->next[i] = w->dying[end];
        w->dying[end] = i;
    }
}

static void walk_ops(struct run *r, struct walk *w)
{
    const struct hb_program *p = r->p;
    struct hb_memory *out = r->out;
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (r->lives[i].start == -1)
            take(r, w, i);
    w->most = hb_cuda_allocated(w->cuda);
    for (uint32_t op = 0; op < p->op_count; op++) {
        const struct hb_op *o = &p->ops[op];
        const uint32_t *written = hb_op_writes(p, o);
        if (op == p->caching.second_op && p->caching.captures)
            hb_cuda_release(w->cuda);
        if (op == p->caching.second_op)
            out->argument_bytes = hb_cuda_allocated(w->cuda);
        for (uint32_t k = 0; k < o->write_count; k++)
            if (r->lives[written[k]].start == (int32_t)op)
                take(r, w, written[k]);
        int64_t now = hb_cuda_allocated(w->cuda);
        if (now > w->most) {
            w->most = now;
            out->peak_op = (int32_t)op;
        }
        give_dying(r, w, op);
    }
}

static int compare_at_peak(const void *a, const void *b)
{
    const struct hb_at_peak *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes > right->bytes ? -1 : 1;
    return left->buf < right->buf ? -1 : left->buf > right->buf;
}

static bool is_at_peak(const struct hb_memory *out, const struct hb_live *l)
{
    return l->start <= out->peak_op && l->end >= out->peak_op && l->bytes;
}

static void list_at_peak(struct run *r)
{
    struct hb_memory *out = r->out;
    int64_t sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < out->live_count; i++)
        count += is_at_peak(out, &out->live[i]);
    out->at_peak = hb_arena_alloc(r->arena, count, sizeof *out->at_peak);
    for (uint32_t i = 0; i < out->live_count; i++) {
        const struct hb_live *l = &out->live[i];
        const struct hb_buf *b = &r->p->bufs[l->buf];
        if (!is_at_peak(out, l))
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

/* Addresses of a device are far apart: for pictures the segments are put side by side. */
static void pack_addresses(struct run *r)
{
    const int64_t stride = INT64_C(1) << 44;
    int64_t most = 0;
    for (uint32_t i = 0; i < r->p->buf_count; i++)
        most = hb_larger(most, r->out->offset_of[i]);
    most /= stride;
    int64_t *top = hb_arena_alloc(r->arena, (size_t)most + 2, sizeof *top);
    for (uint32_t i = 0; i < r->out->live_count; i++) {
        int64_t at = r->out->offset_of[r->out->live[i].buf];
        if (at < 0)
            continue;
        int64_t end = at % stride + hb_cuda_round(r->out->live[i].bytes);
        top[at / stride + 1] = hb_larger(top[at / stride + 1], end);
    }
    for (int64_t s = 0; s < most + 1; s++)
        top[s + 1] += top[s];
    for (uint32_t i = 0; i < r->p->buf_count; i++)
        if (r->out->offset_of[i] >= 0)
            r->out->offset_of[i] =
                top[r->out->offset_of[i] / stride] + r->out->offset_of[i] % stride;
}

struct hb_cuda_limits hb_caching_limits(const struct hb_caching *c)
{
    return (struct hb_cuda_limits){c->expandable, c->limit_bytes, c->max_split_bytes,
                                   c->collect_above};
}

/* Leaves nothing in the arena. */
static struct hb_cuda_stats run_ops(struct run *r)
{
    const struct hb_program *p = r->p;
    struct hb_arena *arena = r->arena;
    struct hb_arena_mark mark = hb_arena_mark(arena);
    const struct hb_caching *c = &p->caching;
    struct walk w = {.cuda = hb_cuda_new(arena, hb_caching_limits(c))};
    w.block = hb_arena_raw(arena, p->buf_count, sizeof *w.block);
    find_lives(r);
    list_dying(r, &w);
    walk_ops(r, &w);
    list_lives(r);
    struct hb_cuda_stats stats = hb_cuda_stats(w.cuda);
    hb_arena_rewind(arena, mark);
    return stats;
}

void hb_caching_run(struct hb_arena *arena, const struct hb_program *p, struct hb_memory *out)
{
    struct run r = {.p = p, .out = out, .arena = arena};
    out->live = hb_arena_raw(arena, p->buf_count, sizeof *out->live);
    r.lives = out->live;
    out->parts = hb_arena_raw(arena, p->buf_count, sizeof *out->parts);
    for (uint32_t i = 0; i < p->buf_count; i++)
        out->offset_of[i] = -1;
    out->peak_op = -1;
    out->heap_align_bytes = out->leaf_align_bytes = hb_cuda_round(1);
    struct hb_cuda_stats stats = run_ops(&r);
    out->allocated_bytes = stats.peak_allocated_bytes;
    out->reserved_bytes = stats.peak_reserved_bytes;
    out->retries = stats.retries;
    out->peak_bytes = p->caching.reserved ? out->reserved_bytes : out->allocated_bytes;
    out->output_bytes = out->alias_bytes = out->argument_bytes;
    out->temp_bytes = out->peak_bytes - out->argument_bytes;
    out->live_temp_bytes = out->allocated_bytes - out->argument_bytes;
    list_at_peak(&r);
    pack_addresses(&r);
}
