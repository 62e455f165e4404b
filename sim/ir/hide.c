/* The scheduler counts each edge as a microsecond (its kLowLatency), a start or done as one. */
#include "sim/ir/hide.h"

#include <math.h>

#include "base/arena.h"
#include "base/str.h"
#include "sim/ir/program.h"

static const double EDGE_US = 1;

struct queue {
    struct hb_hide *h;
    uint32_t *ready;
    uint32_t count;
    double now_us;
    double next_us; /* when the first of those that are late is ready; < 0: none is */
    bool busy;      /* a collective is under way */
    bool wanted;    /* what is ready could use its place ... */
    bool counted;   /* ... or a loop could once, which XLA keeps counting */
};

void hb_hide_init(struct hb_hide *h, struct hb_arena *arena)
{
    *h = (struct hb_hide){.arena = arena};
}

uint32_t hb_hide_add(struct hb_hide *h, enum hb_hide_kind kind, double cost_us)
{
    h->ops = hb_grow(h->arena, h->ops, h->count, &h->cap, sizeof *h->ops);
    h->ops[h->count] = (struct hb_hide_op){
        .kind = kind, .cost_us = cost_us, .first_read = h->read_count, .end = h->read_count};
    return h->count++;
}

void hb_hide_read(struct hb_hide *h, uint32_t op)
{
    if (op == HB_NONE)
        return;
    h->reads = hb_grow(h->arena, h->reads, h->read_count, &h->read_cap, sizeof *h->reads);
    h->reads[h->read_count++] = op;
    h->ops[h->count - 1].end = h->read_count;
    h->ops[op].waiting++;
}

uint32_t hb_hide_send(struct hb_hide *h, uint32_t op, double latency_us)
{
    if (latency_us <= 0)
        return op;
    uint32_t start = hb_hide_add(h, HB_HIDE_START, EDGE_US);
    hb_hide_read(h, op);
    uint32_t done = hb_hide_add(h, HB_HIDE_DONE, EDGE_US);
    hb_hide_read(h, start);
    h->ops[done].latency_us = latency_us;
    return done;
}

static void find_depths(struct hb_hide *h)
{
    for (uint32_t i = 0; i < h->count; i++) {
        struct hb_hide_op *op = &h->ops[i];
        for (uint32_t r = op->first_read; r < op->end; r++)
            op->depth_us = fmax(op->depth_us, h->ops[h->reads[r]].depth_us + op->latency_us);
    }
}

/* --- which of two --- */

static bool takes_place(const struct hb_hide_op *op)
{
    return op->kind == HB_HIDE_DONE || op->kind == HB_HIDE_LOOP;
}

static double stall_us(const struct queue *q, const struct hb_hide_op *op)
{
    return fmax(op->ready_us - q->now_us, 0);
}

static bool frees_place(const struct queue *q, const struct hb_hide_op *op)
{
    return op->kind == HB_HIDE_START && q->wanted;
}

/* A start before which no other collective is comes last of all that need not wait. */
static bool starts_first(const struct queue *q, const struct hb_hide_op *op)
{
    return op->kind == HB_HIDE_START && op->depth_us <= 0 && !frees_place(q, op);
}

/* Whether a fits what is to be filled better than b. */
static bool fits_better(const struct queue *q, const struct hb_hide_op *a,
                        const struct hb_hide_op *b)
{
    double gap_us = q->next_us - q->now_us;
    return q->next_us >= 0 && fabs(gap_us - a->cost_us) < fabs(gap_us - b->cost_us);
}

static bool reads_done(const struct queue *q, const struct hb_hide_op *op)
{
    for (uint32_t r = op->first_read; r < op->end; r++)
        if (q->h->ops[q->h->reads[r]].kind == HB_HIDE_DONE)
            return true;
    return false;
}

static double count_freed(const struct queue *q, const struct hb_hide_op *op)
{
    uint32_t count = op->given;
    for (uint32_t r = op->first_read; r < op->end; r++)
        count += q->h->ops[q->h->reads[r]].waiting == 1;
    return count;
}

/* > 0: a goes before b; 0: as they are. */
static double compare(const struct queue *q, const struct hb_hide_op *a, const struct hb_hide_op *b)
{
    double left = takes_place(a) - takes_place(b);
    if (left == 0)
        left = stall_us(q, b) - stall_us(q, a);
    if (left == 0)
        left = starts_first(q, b) - starts_first(q, a);
    if (left == 0)
        left = frees_place(q, a) - frees_place(q, b);
    if (left == 0)
        left = a->depth_us - b->depth_us;
    if (left == 0)
        left = fits_better(q, a, b) - fits_better(q, b, a);
    if (left == 0)
        left = reads_done(q, a) - reads_done(q, b);
    if (left == 0)
        left = count_freed(q, a) - count_freed(q, b);
    return left == 0 ? (a > b) - (a < b) : left;
}

/* --- the walk --- */

static void look_ahead(struct queue *q)
{
    q->next_us = -1;
    q->wanted = q->counted;
    for (uint32_t i = 0; i < q->count; i++) {
        const struct hb_hide_op *op = &q->h->ops[q->ready[i]];
        q->wanted = q->wanted || takes_place(op);
        q->counted = q->counted || op->kind == HB_HIDE_LOOP;
        if (op->late && op->ready_us >= q->now_us && (q->next_us < 0 || op->ready_us < q->next_us))
            q->next_us = op->ready_us;
    }
}

/* What takes no time is no choice. */
static uint32_t take_best(struct queue *q)
{
    uint32_t best = q->count;
    for (uint32_t i = 0; i < q->count; i++) {
        const struct hb_hide_op *op = &q->h->ops[q->ready[i]];
        bool none = op->cost_us <= 0;
        if (takes_place(op) && q->busy)
            continue;
        if (none || best == q->count || compare(q, op, &q->h->ops[q->ready[best]]) > 0)
            best = i;
        if (none)
            break;
    }
    uint32_t op = q->ready[best];
    q->ready[best] = q->ready[--q->count];
    return op;
}

static void release(struct queue *q, const struct hb_hide_op *by)
{
    double start_us = by->ready_us;
    for (uint32_t r = by->first_read; r < by->end; r++) {
        struct hb_hide_op *op = &q->h->ops[q->h->reads[r]];
        double edge_us = by->kind == HB_HIDE_DONE ? by->latency_us : EDGE_US;
        op->ready_us = fmax(op->ready_us, start_us + edge_us);
        if (--op->waiting > 0)
            continue;
        op->late = op->ready_us > q->now_us;
        op->ready_us = fmax(op->ready_us, q->now_us);
        q->ready[q->count++] = q->h->reads[r];
    }
}

void hb_hide_run(struct hb_hide *h)
{
    struct queue q = {.h = h};
    q.ready = hb_arena_raw(h->arena, (size_t)h->count + 1, sizeof *q.ready);
    find_depths(h);
    for (uint32_t i = 0; i < h->count; i++)
        if (h->ops[i].waiting == 0)
            q.ready[q.count++] = i;
    for (uint32_t place = 0; q.count > 0; place++) {
        look_ahead(&q);
        struct hb_hide_op *op = &h->ops[take_best(&q)];
        op->place = place;
        op->ready_us = fmax(op->ready_us, q.now_us);
        q.now_us = op->ready_us + op->cost_us;
        if (op->kind == HB_HIDE_DONE)
            q.busy = true;
        if (op->kind == HB_HIDE_START)
            q.busy = false;
        release(&q, op);
    }
}
