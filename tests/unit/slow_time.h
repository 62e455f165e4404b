/* Times of a program found the slow way: every trip of every loop is run, with a clock for each
 * stream and one for each buffer, and nothing is jumped over. */
#ifndef HB_TESTS_SLOW_TIME_H
#define HB_TESTS_SLOW_TIME_H

#include "sim/engine/run.h"

struct slow_time {
    const struct hb_program *p;
    const int64_t *cost_ns;
    int64_t *ready_ns; /* by root */
    int *ready_by;     /* by root: stream to blame */
    int64_t *done_ns;  /* by op: when it last ended */
    int64_t clock_ns[HB_STREAM_COUNT];
    int64_t edge_ns;
    bool endless; /* as many streams as there are ops: only inputs count */
    int64_t busy_ns[HB_STREAM_COUNT];
    int64_t exposed_ns[HB_STREAM_COUNT];
    int64_t *first_ns, *last_ns;
    struct hb_span *spans;
    uint32_t span_count, span_cap;
};

static inline bool slow_waits_for(const struct hb_program *p, uint32_t op)
{
    for (uint32_t i = op + 1; i < p->op_count; i++)
        if (p->ops[i].kind == HB_OP_DONE && p->ops[i].start == op)
            return true;
    return false;
}

static inline void slow_op(struct slow_time *t, uint32_t at, int64_t trip, bool record)
{
    const struct hb_op *op = &t->p->ops[at];
    const uint32_t *ref = t->p->refs + op->refs_at;
    int64_t inputs = 0, from = 0;
    int blame = (int)op->stream;
    if (op->kind == HB_OP_DONE) {
        inputs = t->done_ns[op->start];
        blame = (int)t->p->ops[op->start].stream;
    }
    for (uint32_t r = 0; r < op->read_count; r++) {
        uint32_t root = hb_program_root(t->p, ref[r]);
        if (t->ready_ns[root] > inputs) {
            inputs = t->ready_ns[root];
            blame = t->ready_by[root];
        }
    }
    bool mark = op->kind == HB_OP_MARK;
    if (!mark && !t->endless) {
        from = t->clock_ns[op->stream];
        if (op->stream == HB_STREAM_COMPUTE) {
            if (inputs > from)
                t->exposed_ns[blame] += inputs - from;
        } else if (slow_waits_for(t->p, at)) {
            from = from > t->clock_ns[0] ? from : t->clock_ns[0];
        } else {
            from = from > t->edge_ns ? from : t->edge_ns;
        }
    }
    from = from > inputs ? from : inputs;
    int64_t until = from + t->cost_ns[at];
    t->busy_ns[op->stream] += t->cost_ns[at];
    t->done_ns[at] = until;
    if (!mark)
        t->clock_ns[op->stream] = until > t->clock_ns[op->stream] ? until : t->clock_ns[op->stream];
    for (uint32_t w = 0; w < op->write_count; w++) {
        uint32_t root = hb_program_root(t->p, ref[op->read_count + w]);
        t->ready_ns[root] = until;
        t->ready_by[root] = mark ? blame : (int)op->stream;
    }
    if (t->first_ns[at] < 0)
        t->first_ns[at] = from;
    t->last_ns[at] = until;
    if (record) {
        if (t->span_count == t->span_cap)
            t->spans = realloc(t->spans, (t->span_cap = 2 * t->span_cap + 64) * sizeof *t->spans);
        t->spans[t->span_count++] = (struct hb_span){at, from, until, trip};
    }
}

static inline void slow_range(struct slow_time *t, uint32_t around, int64_t trip, bool record)
{
    const struct hb_program *p = t->p;
    uint32_t at = around == HB_NONE ? 0 : p->loops[around].first_op;
    uint32_t end = around == HB_NONE ? p->op_count : p->loops[around].end_op;
    t->edge_ns = t->clock_ns[0];
    while (at < end) {
        uint32_t inner = HB_NONE;
        for (uint32_t i = 0; i < p->loop_count && inner == HB_NONE; i++)
            if (p->loops[i].parent == around && p->loops[i].first_op == at &&
                p->loops[i].end_op > at)
                inner = i;
        if (inner == HB_NONE) {
            slow_op(t, at++, trip, record);
            continue;
        }
        int64_t trips = p->loops[inner].trips;
        for (int64_t i = 0; i < trips; i++)
            slow_range(t, inner, i, record && (i < 2 || i == trips - 1));
        t->edge_ns = t->clock_ns[0];
        at = p->loops[inner].end_op;
    }
}

static inline void slow_time_run_as(struct hb_arena *a, const struct hb_program *p,
                                    const int64_t *cost_ns, bool endless, struct slow_time *t)
{
    *t = (struct slow_time){.p = p, .cost_ns = cost_ns, .endless = endless};
    t->ready_ns = hb_arena_alloc(a, p->buf_count, sizeof *t->ready_ns);
    t->ready_by = hb_arena_alloc(a, p->buf_count, sizeof *t->ready_by);
    t->done_ns = hb_arena_alloc(a, p->op_count, sizeof *t->done_ns);
    t->first_ns = hb_arena_alloc(a, p->op_count, sizeof *t->first_ns);
    t->last_ns = hb_arena_alloc(a, p->op_count, sizeof *t->last_ns);
    memset(t->first_ns, 0xff, p->op_count * sizeof *t->first_ns);
    slow_range(t, HB_NONE, 0, true);
    int late = 0;
    for (int i = 0; i < HB_STREAM_COUNT; i++)
        if (t->clock_ns[i] > t->clock_ns[late])
            late = i;
    t->exposed_ns[late] += t->clock_ns[late] - t->clock_ns[0];
    t->clock_ns[0] = t->clock_ns[late]; /* the end of the step */
}

static inline void slow_time_run(struct hb_arena *a, const struct hb_program *p,
                                 const int64_t *cost_ns, struct slow_time *t)
{
    slow_time_run_as(a, p, cost_ns, false, t);
}

#endif
