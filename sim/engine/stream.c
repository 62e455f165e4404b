/* Times are kept by op, of its latest run, and everything else refers to ops: the state between
 * two trips of a loop is the starts and ends of its ops, so moving those moves the state. */
#include "sim/engine/stream.h"

#include "base/arena.h"
#include "base/size.h"

void hb_streams_init(struct hb_streams *s, struct hb_arena *arena, const struct hb_program *p,
                     const int64_t *cost_ns)
{
    *s = (struct hb_streams){.p = p, .cost_ns = cost_ns};
    s->root = hb_arena_alloc(arena, p->buf_count, sizeof *s->root);
    s->writer = hb_arena_alloc(arena, p->buf_count, sizeof *s->writer);
    s->scheduled = hb_arena_alloc(arena, p->op_count, sizeof *s->scheduled);
    s->cause = hb_arena_alloc(arena, p->op_count, sizeof *s->cause);
    s->start_ns = hb_arena_alloc(arena, p->op_count, sizeof *s->start_ns);
    s->end_ns = hb_arena_alloc(arena, p->op_count, sizeof *s->end_ns);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        s->root[i] = p->bufs[i].alias_of == HB_NONE ? i : s->root[p->bufs[i].alias_of];
        s->writer[i] = HB_NONE;
    }
    for (int i = 0; i < HB_STREAM_COUNT; i++)
        s->last[i] = HB_NONE;
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->ops[i].start != HB_NONE)
            s->scheduled[p->ops[i].start] = true;
}

int64_t hb_streams_free_ns(const struct hb_streams *s, enum hb_stream stream)
{
    return s->last[stream] == HB_NONE ? 0 : s->end_ns[s->last[stream]];
}

void hb_streams_edge(struct hb_streams *s)
{
    s->edge_ns = hb_streams_free_ns(s, HB_STREAM_COMPUTE);
}

/* The op among those it depends on that ends last, HB_NONE where all is there from the start. */
static uint32_t find_latest(const struct hb_streams *s, uint32_t index)
{
    const struct hb_op *op = &s->p->ops[index];
    uint32_t latest = op->kind == HB_OP_DONE ? op->start : HB_NONE;
    for (uint32_t r = 0; r < op->read_count; r++) {
        uint32_t writer = s->writer[s->root[s->p->refs[op->refs_at + r]]];
        if (writer != HB_NONE && (latest == HB_NONE || s->end_ns[writer] > s->end_ns[latest]))
            latest = writer;
    }
    return latest;
}

static int64_t max_ns(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void hb_streams_run(struct hb_streams *s, uint32_t index)
{
    const struct hb_op *op = &s->p->ops[index];
    bool mark = op->kind == HB_OP_MARK, compute = op->stream == HB_STREAM_COMPUTE;
    uint32_t latest = find_latest(s, index);
    int64_t ready = latest == HB_NONE ? 0 : s->end_ns[latest];
    int64_t begin = mark ? 0 : hb_streams_free_ns(s, op->stream);
    if (!compute)
        begin = max_ns(begin,
                       s->scheduled[index] ? hb_streams_free_ns(s, HB_STREAM_COMPUTE) : s->edge_ns);
    if (!mark && compute && ready > begin)
        s->exposed_ns[s->cause[latest]] =
            hb_add_sat(s->exposed_ns[s->cause[latest]], ready - begin);
    s->start_ns[index] = max_ns(begin, ready);
    s->end_ns[index] = hb_add_sat(s->start_ns[index], s->cost_ns[index]);
    s->cause[index] = mark && latest != HB_NONE ? s->cause[latest] : op->stream;
    if (!mark)
        s->last[op->stream] = index;
    for (uint32_t w = 0; w < op->write_count; w++)
        s->writer[s->root[hb_op_writes(s->p, op)[w]]] = index;
}
