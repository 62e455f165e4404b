/* One trip, op by op in the order of the program: see trip_floor.h. */
#include "solver/trip_floor.h"

#include "base/arena.h"
#include "base/size.h"

void hb_trip_floor_init(struct hb_trip_floor *t, struct hb_arena *arena,
                        const struct hb_outline *outline, const struct hb_op_costs *costs,
                        const bool *optional)
{
    const struct hb_program *p = outline->pair.a;
    *t = (struct hb_trip_floor){
        .p = p, .costs = costs, .root_of = outline->root_of, .optional = optional};
    t->writer = hb_arena_alloc(arena, p->buf_count, sizeof *t->writer);
    t->end_ns = hb_arena_alloc(arena, p->op_count, sizeof *t->end_ns);
    t->is_led = hb_arena_alloc(arena, p->op_count, sizeof *t->is_led);
    t->is_summed = hb_arena_alloc(arena, p->op_count, sizeof *t->is_summed);
}

static bool is_compute(const struct hb_op *op)
{
    return op->stream == HB_STREAM_COMPUTE && op->kind != HB_OP_MARK && op->kind != HB_OP_DONE;
}

/* The op of this trip that reference r of the op waits for; HB_NONE. What it reads comes first,
 * then the op that a DONE waits for. */
static uint32_t cause_of(const struct hb_trip_floor *t, const struct hb_op *op, uint32_t r)
{
    if (r < op->read_count)
        return t->writer[t->root_of[t->p->refs[op->refs_at + r]]];
    bool waits = op->kind == HB_OP_DONE && op->start != HB_NONE && op->start >= t->edge;
    return waits && !t->optional[op->start] ? op->start : HB_NONE;
}

/* A collective that waits for nothing of this trip is read now. */
static void sum_up(struct hb_trip_floor *t, uint32_t index, int64_t n)
{
    const struct hb_op *op = &t->p->ops[index];
    if (t->is_summed[index] || t->is_led[index] || is_compute(op))
        return;
    t->is_summed[index] = true;
    t->sum_ns[op->stream] =
        hb_add_sat(t->sum_ns[op->stream], hb_op_cost_at(t->costs, index, n));
}

/* When all that the op waits for has ended. */
static int64_t ready_ns(struct hb_trip_floor *t, uint32_t index, int64_t n)
{
    const struct hb_op *op = &t->p->ops[index];
    int64_t ready = 0;
    for (uint32_t r = 0; r <= op->read_count; r++) {
        uint32_t cause = cause_of(t, op, r);
        if (cause == HB_NONE)
            continue;
        t->is_led[index] |= t->is_led[cause] || is_compute(&t->p->ops[cause]);
        ready = t->end_ns[cause] > ready ? t->end_ns[cause] : ready;
        if (is_compute(op))
            sum_up(t, cause, n);
    }
    return ready;
}

int64_t hb_trip_floor_ns(struct hb_trip_floor *t, uint32_t loop, int64_t n)
{
    const struct hb_loop *l = &t->p->loops[loop];
    int64_t now = 0;
    t->edge = l->first_op;
    for (int s = 0; s < HB_STREAM_COUNT; s++)
        t->sum_ns[s] = 0;
    for (uint32_t i = 0; i < t->p->buf_count; i++)
        t->writer[i] = HB_NONE;
    for (uint32_t i = l->first_op; i < l->end_op; i++) {
        const struct hb_op *op = &t->p->ops[i];
        t->is_led[i] = t->is_summed[i] = false;
        int64_t ready = t->optional[i] ? 0 : ready_ns(t, i, n);
        for (int s = 0; s < HB_STREAM_COUNT && is_compute(op); s++)
            now = t->sum_ns[s] > now ? t->sum_ns[s] : now;
        int64_t start = is_compute(op) && now > ready ? now : ready;
        t->end_ns[i] = hb_add_sat(start, t->optional[i] ? 0 : hb_op_cost_at(t->costs, i, n));
        now = is_compute(op) && !t->optional[i] ? t->end_ns[i] : now;
        for (uint32_t w = 0; w < op->write_count; w++)
            t->writer[t->root_of[t->p->refs[op->refs_at + op->read_count + w]]] =
                t->optional[i] ? HB_NONE : i;
    }
    return now;
}
