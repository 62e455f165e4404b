/* Lives of buffers found the slow way: the program is written out as a trace in which every loop
 * runs twice, and a buffer is alive from the first to the last entry of that trace which touches
 * it. What is touched inside one loop only is looked at in the trace of one trip of that loop. */
#ifndef HB_TESTS_SLOW_LIVE_H
#define HB_TESTS_SLOW_LIVE_H

#include "sim/engine/live.h"

struct trace {
    uint32_t *op;
    uint32_t count, cap;
};

static inline bool op_refers(const struct hb_program *p, uint32_t op, uint32_t root)
{
    const struct hb_op *o = &p->ops[op];
    for (uint32_t r = 0; r < o->read_count + o->write_count; r++)
        if (hb_program_root(p, p->refs[o->refs_at + r]) == root)
            return true;
    return false;
}

static inline bool op_touches(const struct hb_program *p, uint32_t op, uint32_t root)
{
    const struct hb_op *o = &p->ops[op];
    return op_refers(p, op, root) ||
           (o->kind == HB_OP_DONE && o->start != HB_NONE && op_refers(p, o->start, root));
}

/* The largest loop inside [from, end) that begins at from, other than `around`. */
static inline uint32_t loop_that_begins(const struct hb_program *p, uint32_t around, uint32_t from)
{
    for (uint32_t i = 0; i < p->loop_count; i++)
        if (p->loops[i].parent == around && p->loops[i].first_op == from &&
            p->loops[i].end_op > from)
            return i;
    return HB_NONE;
}

static inline void write_trace(const struct hb_program *p, uint32_t around, uint32_t from,
                               uint32_t end, struct trace *t)
{
    while (from < end) {
        uint32_t inner = loop_that_begins(p, around, from);
        if (inner == HB_NONE) {
            if (t->count == t->cap)
                t->op = realloc(t->op, (t->cap = 2 * t->cap + 64) * sizeof *t->op);
            t->op[t->count++] = from++;
            continue;
        }
        for (int trip = 0; trip < 2; trip++)
            write_trace(p, inner, p->loops[inner].first_op, p->loops[inner].end_op, t);
        from = p->loops[inner].end_op;
    }
}

static inline bool loop_holds(const struct hb_program *p, uint32_t loop, uint32_t root)
{
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (hb_program_root(p, i) == root && (p->bufs[i].argument || p->bufs[i].output))
            return false;
    for (uint32_t op = 0; op < p->op_count; op++)
        if (op_touches(p, op, root) &&
            (op < p->loops[loop].first_op || op >= p->loops[loop].end_op))
            return false;
    return true;
}

/* Life of one root; false where nothing touches it and no caller gave it. */
static inline bool slow_live(const struct hb_program *p, uint32_t root, struct hb_live *out)
{
    uint32_t home = HB_NONE;
    for (uint32_t i = 0; i < p->loop_count; i++)
        if (loop_holds(p, i, root) &&
            (home == HB_NONE || p->loops[i].end_op - p->loops[i].first_op <=
                                    p->loops[home].end_op - p->loops[home].first_op))
            home = i;
    struct trace t = {0};
    write_trace(p, home, home == HB_NONE ? 0 : p->loops[home].first_op,
                home == HB_NONE ? p->op_count : p->loops[home].end_op, &t);
    bool argument = false, output = false, touched = false;
    *out = (struct hb_live){.buf = root, .start = INT32_MAX, .end = -1};
    for (uint32_t i = 0; i < p->buf_count; i++) {
        if (hb_program_root(p, i) != root)
            continue;
        argument = argument || p->bufs[i].argument;
        output = output || p->bufs[i].output;
        out->bytes = p->bufs[i].bytes > out->bytes ? p->bufs[i].bytes : out->bytes;
    }
    uint32_t first = argument ? 0 : UINT32_MAX, last = output ? t.count : 0;
    for (uint32_t i = 0; i < t.count; i++) {
        if (!op_touches(p, t.op[i], root))
            continue;
        touched = true;
        first = i < first ? i : first;
        last = i + 1 > last ? i + 1 : last;
    }
    for (uint32_t i = first; i < last; i++) {
        out->start = (int32_t)t.op[i] < out->start ? (int32_t)t.op[i] : out->start;
        out->end = (int32_t)t.op[i] > out->end ? (int32_t)t.op[i] : out->end;
    }
    if (argument)
        out->start = -1;
    if (output)
        out->end = (int32_t)p->op_count;
    free(t.op);
    return argument || touched;
}

#endif
