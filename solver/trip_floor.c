/* One trip, op by op in the order of the program: see trip_floor.h. */
#include "solver/trip_floor.h"

#include <string.h>

#include "base/arena.h"
#include "base/size.h"

void hb_trip_floor_init(struct hb_trip_floor *t, struct hb_arena *arena, const struct hb_program *p,
                        const uint32_t *root_of, const struct hb_op_costs *costs,
                        const bool *optional)
{
    *t = (struct hb_trip_floor){.p = p, .costs = costs, .root_of = root_of, .optional = optional};
    t->writer = hb_arena_raw(arena, p->buf_count, sizeof *t->writer);
    for (uint32_t i = 0; i < p->buf_count; i++)
        t->writer[i] = HB_NONE;
    t->end_ns = hb_arena_alloc(arena, p->op_count, sizeof *t->end_ns);
    t->is_led = hb_arena_alloc(arena, p->op_count, sizeof *t->is_led);
    t->is_summed = hb_arena_alloc(arena, p->op_count, sizeof *t->is_summed);
    t->is_kept = hb_arena_alloc(arena, p->op_count, sizeof *t->is_kept);
    t->is_turn = hb_arena_alloc(arena, p->op_count, sizeof *t->is_turn);
    t->turns = hb_arena_alloc(arena, p->op_count, sizeof *t->turns);
    t->is_read = hb_arena_alloc(arena, p->buf_count, sizeof *t->is_read);
    t->is_carried = hb_arena_alloc(arena, p->op_count, sizeof *t->is_carried);
    t->carried_ns = hb_arena_alloc(arena, p->op_count, sizeof *t->carried_ns);
    t->start_ns = hb_arena_alloc(arena, p->op_count, sizeof *t->start_ns);
    t->by_start = hb_arena_alloc(arena, p->op_count, sizeof *t->by_start);
    t->is_scheduled = hb_arena_alloc(arena, p->op_count, sizeof *t->is_scheduled);
    t->stops_for = hb_arena_alloc(arena, p->op_count, sizeof *t->stops_for);
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->ops[i].start != HB_NONE)
            t->is_scheduled[p->ops[i].start] = true;
}

bool hb_trip_floor_has_inner(const struct hb_program *p, uint32_t loop)
{
    for (uint32_t i = loop + 1; i < p->loop_count; i++)
        if (p->loops[i].parent == loop)
            return true;
    return false;
}

static int64_t max_ns(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The op of this trip or the one before that reference r of the op waits for; HB_NONE. What it
 * reads comes first, then the op that a DONE waits for. Ops before the edge are of another loop:
 * they have ended. */
static uint32_t cause_of(const struct hb_trip_floor *t, const struct hb_op *op, uint32_t r)
{
    uint32_t cause = op->kind == HB_OP_DONE ? op->start : HB_NONE;
    if (r < op->read_count)
        cause = t->writer[t->root_of[t->p->refs[op->refs_at + r]]];
    return cause != HB_NONE && cause >= t->edge && t->is_kept[cause] ? cause : HB_NONE;
}

/* It takes its turn on a stream beside compute. */
static bool is_beside(const struct hb_op *op)
{
    return !hb_op_is_work(op) && op->kind != HB_OP_MARK && op->kind != HB_OP_DONE;
}

/* Ops that a policy can do without elsewhere, of the backward pass: casts of weights before their
 * gathers. What is made again has them sooner, wherever the compute stream is by then. */
static bool is_moved(const struct hb_trip_floor *t, uint32_t index)
{
    return t->optional[index] && t->p->ops[index].phase != HB_PHASE_FORWARD &&
           !(t->in_turn && t->stops_for[index] == t->turn);
}

static bool leads(const struct hb_trip_floor *t, uint32_t cause)
{
    return t->is_led[cause] || t->is_carried[cause] ||
           (hb_op_is_work(&t->p->ops[cause]) && !is_moved(t, cause));
}

/* Behind what waits for this, in turn, gathers may hide. */
static bool is_shade(const struct hb_trip_floor *t, uint32_t cause)
{
    const struct hb_op *op = &t->p->ops[cause];
    return t->in_turn &&
           (t->is_carried[cause] || (is_beside(op) && !t->is_led[cause] && op->stream != t->turn));
}

static int64_t held_ns(const struct hb_trip_floor *t, enum hb_stream stream)
{
    return t->in_turn && stream != t->turn ? 0 : t->held_ns[stream];
}

/* A collective of this trip is read now; in turn, one that waits for nothing of it. */
static void sum_up(struct hb_trip_floor *t, uint32_t index, int64_t n)
{
    const struct hb_op *op = &t->p->ops[index];
    bool led = t->is_led[index] && t->in_turn;
    if (t->is_summed[index] || led || t->is_carried[index] || hb_op_is_work(op))
        return;
    t->is_summed[index] = true;
    t->sum_ns[op->stream] = hb_add_sat(max_ns(t->sum_ns[op->stream], held_ns(t, op->stream)),
                                       hb_op_cost_at(t->costs, index, n));
}

/* What an op that every policy has reads, and what was turned for it. */
static void sum_read(struct hb_trip_floor *t, uint32_t cause, int64_t n)
{
    sum_up(t, cause, n);
    if (t->is_turn[cause] && t->turns[cause] != HB_NONE)
        sum_up(t, t->turns[cause], n);
}

/* When all that the op waits for has ended. */
static int64_t ready_ns(struct hb_trip_floor *t, uint32_t index, int64_t n)
{
    const struct hb_op *op = &t->p->ops[index];
    int64_t ready = 0;
    for (uint32_t r = 0; r <= op->read_count; r++) {
        uint32_t cause = cause_of(t, op, r);
        if (cause == HB_NONE || is_shade(t, cause))
            continue;
        t->is_led[index] |= leads(t, cause);
        ready = t->end_ns[cause] > ready ? t->end_ns[cause] : ready;
        if (t->is_turn[index])
            t->turns[index] = cause;
        else if (hb_op_is_work(op))
            sum_read(t, cause, n);
    }
    return ready;
}

static void write_all(struct hb_trip_floor *t, const struct hb_op *op, uint32_t writer)
{
    for (uint32_t w = 0; w < op->write_count; w++)
        t->writer[t->root_of[hb_op_writes(t->p, op)[w]]] = writer;
}

/* What of a trip's ops is read by one that every policy has; in the backward pass by a gather of a
 * weight, whose operand is made in the trip whatever is made again. */
static bool tells_writers(const struct hb_op *op)
{
    return op->phase == HB_PHASE_FORWARD || op->kind == HB_OP_ALL_GATHER;
}

/* The op of this trip that wrote what is read there last; HB_NONE. */
static uint32_t find_writer(const struct hb_trip_floor *t, const struct hb_op *op, uint32_t read)
{
    uint32_t from = t->writer[t->root_of[t->p->refs[op->refs_at + read]]];
    return from != HB_NONE && from >= t->edge ? from : HB_NONE;
}

static bool may_turn(const struct hb_trip_floor *t, uint32_t index)
{
    const struct hb_op *op = &t->p->ops[index];
    bool turns = t->optional[index] && op->phase == HB_PHASE_BACKWARD && op->kind == HB_OP_COPY &&
                 op->read_count > 0;
    for (uint32_t r = 0; r < op->read_count && turns; r++) {
        uint32_t from = find_writer(t, op, r);
        turns = from != HB_NONE && !t->optional[from];
    }
    return turns;
}

/* Copies in the backward pass of what ops that no policy can do without made in this trip, for
 * others of these: gathered weights and gradients are turned, whatever layers keep. */
static void find_turns(struct hb_trip_floor *t, const struct hb_loop *l)
{
    for (uint32_t i = l->first_op; i < l->end_op; i++)
        write_all(t, &t->p->ops[i], HB_NONE);
    for (uint32_t i = l->first_op; i < l->end_op; i++) {
        const struct hb_op *op = &t->p->ops[i];
        t->is_turn[i] = false;
        t->turns[i] = HB_NONE;
        for (uint32_t r = 0; r < op->read_count && !t->optional[i]; r++) {
            uint32_t from = find_writer(t, op, r);
            if (from != HB_NONE)
                t->is_turn[from] = t->optional[from];
        }
        write_all(t, op, !t->optional[i] || may_turn(t, i) ? i : HB_NONE);
    }
}

/* Which ops of the trip every policy has: also those that a policy could do without elsewhere,
 * where what they write is read by one that it cannot. */
static void keep_ops(struct hb_trip_floor *t, const struct hb_loop *l)
{
    for (uint32_t i = l->first_op; i < l->end_op; i++)
        for (uint32_t r = 0; r < t->p->ops[i].read_count + t->p->ops[i].write_count; r++)
            t->is_read[t->root_of[t->p->refs[t->p->ops[i].refs_at + r]]] = false;
    for (uint32_t i = l->end_op; i-- > l->first_op;) {
        const struct hb_op *op = &t->p->ops[i];
        const uint32_t *refs = &t->p->refs[op->refs_at];
        t->is_kept[i] = !t->optional[i] || t->is_turn[i];
        for (uint32_t w = 0; w < op->write_count; w++)
            t->is_kept[i] |= t->is_read[t->root_of[refs[op->read_count + w]]];
        for (uint32_t r = 0; r < op->read_count && t->is_kept[i] && tells_writers(op); r++)
            t->is_read[t->root_of[refs[r]]] = true;
    }
}

/* The sum of a weight's gradient over devices: it comes behind the layer's products, and so behind
 * the gathers that are for these, which what is made again only brings forward. */
static bool sums_gradient(const struct hb_trip_floor *t, const struct hb_op *op)
{
    bool forward = op->phase == HB_PHASE_FORWARD;
    return !forward && is_beside(op) && op->kind != HB_OP_ALL_GATHER && op->write_count == 1 &&
           t->p->bufs[t->root_of[hb_op_writes(t->p, op)[0]]].category == HB_CAT_GRADIENTS;
}

/* When the op starts, by what holds under every policy. */
static int64_t start_ns(struct hb_trip_floor *t, uint32_t index, int64_t n)
{
    const struct hb_op *op = &t->p->ops[index];
    int64_t start = ready_ns(t, index, n);
    bool forward = op->phase == HB_PHASE_FORWARD;
    if (is_beside(op))
        start = max_ns(start, held_ns(t, op->stream));
    if (sums_gradient(t, op) && !t->any_order && !t->several)
        start = max_ns(start, max_ns(t->gathered_ns[op->stream], t->summed_ns[op->stream]));
    if (is_moved(t, index) || t->any_order)
        return start;
    if (hb_op_is_work(op))
        for (int s = 0; s < HB_STREAM_COUNT; s++)
            start = max_ns(start, t->sum_ns[s]);
    if (hb_op_is_work(op) || (forward && op->kind != HB_OP_MARK))
        start = max_ns(start, t->free_ns[op->stream]);
    if (forward && t->is_scheduled[index])
        start = max_ns(start, t->free_ns[HB_STREAM_COMPUTE]);
    return start;
}

static void list_start(struct hb_trip_floor *t, uint32_t index)
{
    uint32_t at = t->by_start_count++;
    for (; at > 0 && t->start_ns[t->by_start[at - 1]] > t->start_ns[index]; at--)
        t->by_start[at] = t->by_start[at - 1];
    t->by_start[at] = index;
}

/* Until when the trip's ops hold the streams, counted from the next edge: in whatever order they
 * come, no earlier than in that in which they can start. Returns by how much less than the trip
 * before, at most. */
static int64_t hold_streams(struct hb_trip_floor *t, int64_t n)
{
    int64_t edge_ns = t->free_ns[HB_STREAM_COMPUTE], less = 0, until_ns[HB_STREAM_COUNT];
    for (int s = 0; s < HB_STREAM_COUNT; s++)
        until_ns[s] = t->held_ns[s];
    for (uint32_t i = 0; i < t->by_start_count && !t->apart; i++) {
        uint32_t index = t->by_start[i];
        int64_t *until = &until_ns[t->p->ops[index].stream];
        *until = hb_add_sat(max_ns(*until, t->start_ns[index]), hb_op_cost_at(t->costs, index, n));
    }
    for (int s = 0; s < HB_STREAM_COUNT; s++) {
        until_ns[s] = max_ns(until_ns[s] - edge_ns, 0);
        less = max_ns(less, t->held_ns[s] - until_ns[s]);
        t->held_ns[s] = until_ns[s];
    }
    return less;
}

/* From one edge to the next, which is when the compute stream is through. */
static int64_t run_trip(struct hb_trip_floor *t, const struct hb_loop *l, int64_t n)
{
    for (int s = 0; s < HB_STREAM_COUNT; s++)
        t->sum_ns[s] = t->gathered_ns[s] = t->summed_ns[s] = 0;
    t->by_start_count = 0;
    for (uint32_t i = l->first_op; i < l->end_op; i++) {
        const struct hb_op *op = &t->p->ops[i];
        bool forward = op->phase == HB_PHASE_FORWARD;
        t->is_led[i] = t->is_summed[i] = false;
        if (!t->is_kept[i]) {
            write_all(t, op, HB_NONE);
            continue;
        }
        int64_t start = start_ns(t, i, n);
        t->end_ns[i] = hb_add_sat(start, hb_op_cost_at(t->costs, i, n));
        t->start_ns[i] = start;
        t->is_carried[i] = false;
        if (is_beside(op) && !forward)
            list_start(t, i);
        if (op->kind == HB_OP_ALL_GATHER)
            t->gathered_ns[op->stream] = max_ns(t->gathered_ns[op->stream], t->end_ns[i]);
        if (sums_gradient(t, op))
            t->summed_ns[op->stream] = t->end_ns[i];
        else if (hb_op_is_work(op)) /* they stand in a row of their own, in the order of leaves */
            memset(t->summed_ns, 0, sizeof t->summed_ns);
        if (!is_moved(t, i) && (hb_op_is_work(op) || (forward && op->kind != HB_OP_MARK)))
            t->free_ns[op->stream] = max_ns(t->free_ns[op->stream], t->end_ns[i]);
        if (t->any_order && hb_op_is_work(op) && !t->is_turn[i])
            t->sum_ns[op->stream] =
                hb_add_sat(t->sum_ns[op->stream], hb_op_cost_at(t->costs, i, n));
        write_all(t, op, i);
    }
    int64_t *free_ns = &t->free_ns[HB_STREAM_COMPUTE];
    for (int s = 0; s < HB_STREAM_COUNT && t->any_order; s++)
        *free_ns = max_ns(*free_ns, t->sum_ns[s]);
    return *free_ns;
}

/* Counts from the next edge: what has not ended by then is waited for in the next trip. Returns by
 * how much less than at the edge before, at most. */
static int64_t carry_over(struct hb_trip_floor *t, const struct hb_loop *l, int64_t n)
{
    int64_t edge_ns = t->free_ns[HB_STREAM_COMPUTE], less = hold_streams(t, n);
    for (uint32_t i = l->first_op; i < l->end_op; i++) {
        t->end_ns[i] = t->is_kept[i] ? max_ns(t->end_ns[i] - edge_ns, 0) : 0;
        less = max_ns(less, t->carried_ns[i] - t->end_ns[i]);
        t->carried_ns[i] = t->end_ns[i];
        t->is_carried[i] = true;
    }
    for (int s = 0; s < HB_STREAM_COUNT; s++)
        t->free_ns[s] = max_ns(t->free_ns[s] - edge_ns, 0);
    return less;
}

int64_t hb_trip_floor_apart_ns(struct hb_trip_floor *t, uint32_t loop, int64_t n, int64_t trips)
{
    t->apart = true;
    int64_t ns = hb_trip_floor_ns(t, loop, n, trips);
    t->apart = false;
    return ns;
}

/* Work that what is made again does, not a copy out of a stack. */
static bool is_again(const struct hb_trip_floor *t, uint32_t index)
{
    const struct hb_op *op = &t->p->ops[index];
    return t->optional[index] && !t->is_kept[index] && op->phase != HB_PHASE_FORWARD &&
           hb_op_is_work(op) && op->kind != HB_OP_COPY;
}

/* All that may be made again stands before what every policy has, and there is some. */
static bool is_again_first(const struct hb_trip_floor *t, const struct hb_loop *l)
{
    bool begun = false, again = false;
    for (uint32_t i = l->first_op; i < l->end_op; i++) {
        if (begun && is_again(t, i))
            return false;
        begun = begun || (hb_op_is_work(&t->p->ops[i]) && !t->optional[i]);
        again = again || is_again(t, i);
    }
    return again;
}

/* On which stream the gathers have their turn: that of most that follow their casts. False: none.
 */
static bool find_turn(struct hb_trip_floor *t, const struct hb_loop *l, int64_t n)
{
    int64_t most_ns = 0, sums_ns[HB_STREAM_COUNT] = {0};
    for (uint32_t i = l->first_op; i < l->end_op; i++) {
        t->stops_for[i] = HB_STREAM_COMPUTE;
        if (!t->is_kept[i] || !is_moved(t, i) || t->is_turn[i])
            continue;
        const struct hb_op *next = &t->p->ops[i + 1]; /* there is one: it is kept to be read */
        if (next->kind != HB_OP_ALL_GATHER)
            continue;
        t->stops_for[i] = next->stream;
        int64_t *sum = &sums_ns[t->stops_for[i]];
        *sum = hb_add_sat(*sum, hb_op_cost_at(t->costs, i + 1, n));
        if (*sum > most_ns)
            t->turn = t->stops_for[i];
        most_ns = max_ns(most_ns, *sum);
    }
    return most_ns > 0;
}

static int64_t run_trips(struct hb_trip_floor *t, const struct hb_loop *l, int64_t n, int64_t trips)
{
    for (int s = 0; s < HB_STREAM_COUNT; s++)
        t->free_ns[s] = t->held_ns[s] = 0;
    for (uint32_t i = l->first_op; i < l->end_op; i++) {
        write_all(t, &t->p->ops[i], HB_NONE);
        t->is_carried[i] = false;
        t->carried_ns[i] = 0;
    }
    int64_t first = run_trip(t, l, n);
    carry_over(t, l, n);
    t->least_ns = first;
    if (trips < 2)
        return hb_mul_sat(first, trips);
    int64_t second = run_trip(t, l, n), less = carry_over(t, l, n);
    int64_t next = max_ns(second - less, 0);
    t->least_ns = hb_smaller(first, next);
    return hb_add_sat(hb_add_sat(first, second), hb_mul_sat(next, trips - 2));
}

int64_t hb_trip_floor_ns(struct hb_trip_floor *t, uint32_t loop, int64_t n, int64_t trips)
{
    const struct hb_loop *l = &t->p->loops[loop];
    t->edge = l->first_op;
    find_turns(t, l);
    keep_ops(t, l);
    t->in_turn = false;
    t->in_turn = !t->any_order && is_again_first(t, l) && find_turn(t, l, n);
    int64_t in_turn_ns = t->in_turn ? run_trips(t, l, n, trips) : 0;
    t->in_turn = false;
    return max_ns(in_turn_ns, run_trips(t, l, n, trips));
}
