/* The time of a program. A loop's trips are run until two moves of the state in a row are equal;
 * the rest is jumped over, and the last trip is run to see that the jump was right. That is exact:
 * a trip maps times to times by maxima of sums, so each time is a convex function of the trips
 * jumped; one that agrees with a straight line at two trips in a row and again at the last agrees
 * in between. Where it does not (a slow stream catches up later), the last trip that does is found
 * by halving, and running goes on from there.
 *
 *   run 1, run 2, run 3: 3 - 2 = 2 - 1 = d        state(j) = state(3) + (j - 3) d
 *   run N from state(N - 1): equals state(N)?     yes: done
 *
 * A steady state may also repeat only every 2, 3 or 4 trips: then as many make one move. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/engine/cost.h"
#include "sim/engine/run.h"
#include "sim/engine/stream.h"

enum { MOST_PERIOD = 4, SNAPSHOTS = 2 * MOST_PERIOD + 1 };

struct run {
    struct hb_arena *arena;
    struct hb_streams s;
    struct hb_timing *out;
    uint32_t span_cap;
    uint32_t skip_cap;
    int64_t trip;    /* of the innermost loop */
    bool recording;  /* first, second or last trip of every loop around */
    uint32_t *child; /* by loop, [loop_count]: of the program: first loop inside; HB_NONE */
    uint32_t *sibling;
    struct snapshot *shots; /* by loop, SNAPSHOTS each */
};

/* State after a trip: starts and ends of the body's ops, and what was exposed so far. */
struct snapshot {
    int64_t *start_ns;
    int64_t *end_ns;
    int64_t exposed_ns[HB_STREAM_COUNT];
};

struct loop_run {
    struct run *run;
    const struct hb_loop *loop;
    uint32_t index;
    uint32_t op_count;
    int64_t done;           /* trips run or jumped over */
    int64_t known;          /* trips run in a row, whose snapshots are there */
    int64_t second_ns;      /* when the second trip was over */
    struct snapshot *shots; /* in a ring, by trips done */
};

static void run_loop(struct run *run, uint32_t index);

static void record_span(struct run *run, uint32_t op)
{
    struct hb_timing *out = run->out;
    out->spans =
        hb_grow(run->arena, out->spans, out->span_count, &run->span_cap, sizeof *out->spans);
    out->spans[out->span_count++] =
        (struct hb_span){op, run->s.start_ns[op], run->s.end_ns[op], run->trip};
}

static void run_op(struct run *run, uint32_t op)
{
    hb_streams_run(&run->s, op);
    if (run->out->op_start_ns[op] < 0)
        run->out->op_start_ns[op] = run->s.start_ns[op];
    if (run->recording)
        record_span(run, op);
}

/* The ops of a loop's body (HB_NONE: of the program) once, the loops inside whole. */
static void run_body(struct run *run, uint32_t loop)
{
    const struct hb_program *p = run->s.p;
    uint32_t op = loop == HB_NONE ? 0 : p->loops[loop].first_op;
    uint32_t end = loop == HB_NONE ? p->op_count : p->loops[loop].end_op;
    uint32_t inner = run->child[loop == HB_NONE ? p->loop_count : loop];
    hb_streams_edge(&run->s);
    while (op < end) {
        while (inner != HB_NONE && p->loops[inner].end_op <= op)
            inner = run->sibling[inner];
        if (inner == HB_NONE || p->loops[inner].first_op != op) {
            run_op(run, op++);
            continue;
        }
        run_loop(run, inner);
        hb_streams_edge(&run->s);
        op = p->loops[inner].end_op;
    }
}

/* ---- snapshots ---- */

static struct snapshot *shot_at(struct loop_run *l, int64_t trips)
{
    return &l->shots[trips % SNAPSHOTS];
}

static void take_snapshot(struct loop_run *l)
{
    struct snapshot *shot = shot_at(l, l->done);
    const struct hb_streams *s = &l->run->s;
    memcpy(shot->start_ns, s->start_ns + l->loop->first_op, l->op_count * sizeof(int64_t));
    memcpy(shot->end_ns, s->end_ns + l->loop->first_op, l->op_count * sizeof(int64_t));
    memcpy(shot->exposed_ns, s->exposed_ns, sizeof s->exposed_ns);
}

static bool moved_alike(const int64_t *a, const int64_t *b, const int64_t *c, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (b[i] - a[i] != c[i] - b[i])
            return false;
    return true;
}

/* The smallest number of trips after which the state moves as it did before; 0: none seen. A start
 * is a cost before its end and moves with it. */
static int64_t find_period(struct loop_run *l)
{
    for (int64_t period = 1; period <= MOST_PERIOD && l->known > 2 * period; period++) {
        const struct snapshot *a = shot_at(l, l->done - 2 * period);
        const struct snapshot *b = shot_at(l, l->done - period), *c = shot_at(l, l->done);
        if (moved_alike(a->end_ns, b->end_ns, c->end_ns, l->op_count))
            return period;
    }
    return 0;
}

/* a + n (a - b): where a value gets by n further moves. */
static int64_t extend(int64_t a, int64_t b, int64_t moves)
{
    return hb_add_sat(a, hb_mul_sat(a - b, moves));
}

/* Sets the state to that after `moves` further moves of `period` trips. */
static void set_state(struct loop_run *l, int64_t period, int64_t moves)
{
    const struct snapshot *a = shot_at(l, l->done), *b = shot_at(l, l->done - period);
    struct hb_streams *s = &l->run->s;
    for (uint32_t i = 0; i < l->op_count; i++) {
        s->start_ns[l->loop->first_op + i] = extend(a->start_ns[i], b->start_ns[i], moves);
        s->end_ns[l->loop->first_op + i] = extend(a->end_ns[i], b->end_ns[i], moves);
    }
}

static bool state_is(struct loop_run *l, int64_t period, int64_t moves)
{
    const struct snapshot *a = shot_at(l, l->done), *b = shot_at(l, l->done - period);
    const struct hb_streams *s = &l->run->s;
    for (uint32_t i = 0; i < l->op_count; i++)
        if (s->end_ns[l->loop->first_op + i] != extend(a->end_ns[i], b->end_ns[i], moves))
            return false;
    return true;
}

/* What is exposed grows by a straight line too: the sum of an arithmetic series. */
static void set_exposed(struct loop_run *l, int64_t period, int64_t moves)
{
    const struct snapshot *a = shot_at(l, l->done - 2 * period);
    const struct snapshot *b = shot_at(l, l->done - period), *c = shot_at(l, l->done);
    for (int i = 0; i < HB_STREAM_COUNT; i++) {
        int64_t move = c->exposed_ns[i] - b->exposed_ns[i];
        int64_t growth = move - (b->exposed_ns[i] - a->exposed_ns[i]);
        int64_t pairs =
            moves % 2 ? hb_mul_sat(moves, (moves + 1) / 2) : hb_mul_sat(moves / 2, moves + 1);
        int64_t grown = growth < 0 ? -hb_mul_sat(-growth, pairs) : hb_mul_sat(growth, pairs);
        int64_t sum = hb_mul_sat(move, moves), total = 0;
        if (!hb_add_i64(sum, grown, &total))
            total = INT64_MAX;
        l->run->s.exposed_ns[i] = hb_add_sat(c->exposed_ns[i], total);
    }
}

/* ---- loops ---- */

/* Before the last trip: what lies between the second and it is in no span. */
static void record_skip(struct loop_run *l)
{
    struct run *run = l->run;
    struct hb_timing *out = run->out;
    int64_t now_ns = hb_streams_free_ns(&run->s, HB_STREAM_COMPUTE);
    out->skips =
        hb_grow(run->arena, out->skips, out->skip_count, &run->skip_cap, sizeof *out->skips);
    out->skips[out->skip_count++] = (struct hb_skip){l->index, l->second_ns, now_ns};
}

/* Runs trips from first_trip on; the state is that before them. */
static void run_trips(struct loop_run *l, int64_t first_trip, int64_t count, bool recording)
{
    struct run *run = l->run;
    for (int64_t i = 0; i < count; i++) {
        int64_t trip = first_trip + i;
        bool last = trip == l->loop->trips - 1;
        run->recording = recording && (trip < 2 || last);
        if (recording && last && trip > 2)
            record_skip(l);
        run->trip = trip;
        run_body(run, l->index);
        if (trip == 1)
            l->second_ns = hb_streams_free_ns(&run->s, HB_STREAM_COMPUTE);
    }
}

/* Runs the last of `moves` further moves; whether it ends where the steady state would. */
static bool try_moves(struct loop_run *l, int64_t period, int64_t moves, bool recording)
{
    uint32_t span_count = l->run->out->span_count, skip_count = l->run->out->skip_count;
    set_state(l, period, moves - 1);
    run_trips(l, l->done + (moves - 1) * period, period, recording);
    if (state_is(l, period, moves))
        return true;
    l->run->out->span_count = span_count;
    l->run->out->skip_count = skip_count;
    return false;
}

/* Goes on by as many moves as the steady state holds. */
static void jump(struct loop_run *l, int64_t period, bool recording)
{
    int64_t good = 0, bad = (l->loop->trips - l->done) / period;
    if (bad < 2)
        return;
    if (try_moves(l, period, bad, recording))
        good = bad;
    while (good + 1 < bad) {
        int64_t middle = good + (bad - good) / 2;
        if (try_moves(l, period, middle, false))
            good = middle;
        else
            bad = middle;
    }
    set_state(l, period, good);
    set_exposed(l, period, good);
    l->done += good * period;
    l->known = 0;
}

static void run_loop(struct run *run, uint32_t index)
{
    const struct hb_loop *loop = &run->s.p->loops[index];
    struct loop_run l = {.run = run,
                         .loop = loop,
                         .index = index,
                         .op_count = loop->end_op - loop->first_op,
                         .shots = run->shots + (size_t)index * SNAPSHOTS};
    bool recording = run->recording;
    int64_t outer_trip = run->trip;
    while (l.done < loop->trips) {
        run_trips(&l, l.done, 1, recording);
        l.done++;
        l.known++;
        take_snapshot(&l);
        int64_t period = find_period(&l);
        if (period)
            jump(&l, period, recording);
    }
    run->recording = recording;
    run->trip = outer_trip;
}

/* ---- the whole ---- */

static void link_loops(struct run *run)
{
    const struct hb_program *p = run->s.p;
    run->child = hb_arena_alloc(run->arena, (size_t)p->loop_count + 1, sizeof *run->child);
    run->sibling = hb_arena_alloc(run->arena, p->loop_count, sizeof *run->sibling);
    run->shots = hb_arena_alloc(run->arena, (size_t)p->loop_count * SNAPSHOTS, sizeof *run->shots);
    for (uint32_t i = 0; i <= p->loop_count; i++)
        run->child[i] = HB_NONE;
    for (uint32_t i = p->loop_count; i-- > 0;) {
        const struct hb_loop *loop = &p->loops[i];
        uint32_t *first = &run->child[loop->parent == HB_NONE ? p->loop_count : loop->parent];
        run->sibling[i] = *first;
        *first = i;
        for (uint32_t k = 0; k < SNAPSHOTS; k++) {
            struct snapshot *shot = &run->shots[(size_t)i * SNAPSHOTS + k];
            uint32_t op_count = loop->end_op - loop->first_op;
            shot->start_ns = hb_arena_raw(run->arena, op_count, sizeof(int64_t));
            shot->end_ns = hb_arena_raw(run->arena, op_count, sizeof(int64_t));
        }
    }
}

/* Sums that need no running: each op's cost and FLOPs by the trips of the loops around it. */
static void sum_ops(const struct hb_program *p, const int64_t *cost_ns, struct hb_timing *out)
{
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        int64_t times = hb_program_times(p, op);
        out->busy_ns[op->stream] =
            hb_add_sat(out->busy_ns[op->stream], hb_mul_sat(cost_ns[i], times));
        if (op->kind == HB_OP_MATMUL || op->kind == HB_OP_ATTENTION)
            out->flops += op->flops * (double)times;
    }
}

/* The step ends with the last stream; compute waits for it. */
static void end_step(struct run *run)
{
    struct hb_timing *out = run->out;
    int64_t compute_ns = hb_streams_free_ns(&run->s, HB_STREAM_COMPUTE);
    int last = HB_STREAM_COMPUTE;
    out->step_ns = compute_ns;
    for (int i = 0; i < HB_STREAM_COUNT; i++) {
        int64_t free_ns = hb_streams_free_ns(&run->s, (enum hb_stream)i);
        if (free_ns > out->step_ns) {
            out->step_ns = free_ns;
            last = i;
        }
    }
    memcpy(out->exposed_ns, run->s.exposed_ns, sizeof out->exposed_ns);
    out->exposed_ns[last] = hb_add_sat(out->exposed_ns[last], out->step_ns - compute_ns);
    memcpy(out->op_end_ns, run->s.end_ns, run->s.p->op_count * sizeof *out->op_end_ns);
}

static int compare_spans(const void *a, const void *b)
{
    const struct hb_span *left = a, *right = b;
    if (left->start_ns != right->start_ns)
        return left->start_ns < right->start_ns ? -1 : 1;
    if (left->end_ns != right->end_ns)
        return left->end_ns < right->end_ns ? -1 : 1;
    if (left->op != right->op)
        return left->op < right->op ? -1 : 1;
    return left->trip < right->trip ? -1 : left->trip > right->trip;
}

/* recording: with spans. */
static void time_program(struct hb_arena *arena, const struct hb_program *p, const int64_t *cost_ns,
                         bool recording, struct hb_timing *out)
{
    struct run run = {.arena = arena, .out = out, .recording = recording};
    *out = (struct hb_timing){0};
    out->op_start_ns = hb_arena_alloc(arena, p->op_count, sizeof *out->op_start_ns);
    out->op_end_ns = hb_arena_alloc(arena, p->op_count, sizeof *out->op_end_ns);
    for (uint32_t i = 0; i < p->op_count; i++)
        out->op_start_ns[i] = -1;
    hb_streams_init(&run.s, arena, p, cost_ns);
    link_loops(&run);
    sum_ops(p, cost_ns, out);
    run_body(&run, HB_NONE);
    end_step(&run);
    if (out->span_count)
        qsort(out->spans, out->span_count, sizeof *out->spans, compare_spans);
}

void hb_run_timing_with(struct hb_arena *arena, const struct hb_program *p, const int64_t *cost_ns,
                        struct hb_timing *out)
{
    time_program(arena, p, cost_ns, true, out);
}

/* Computing beside collectives is slower: they take cores and memory bandwidth. How long they run
 * beside it is known only after a run, so a second one follows with slower ops. Only of eager
 * programs: the planner's bound on a step, which is to lie close below it, does not know this. */
static double find_slowdown(const struct hb_device *device, const struct hb_timing *t)
{
    double beside = 0, busy = (double)t->busy_ns[HB_STREAM_COMPUTE];
    for (int i = HB_STREAM_COLLECTIVE; i < HB_STREAM_COUNT; i++)
        beside += (double)t->busy_ns[i] - (double)t->exposed_ns[i];
    return 1 + device->overlap_slowdown * (beside < busy ? beside / busy : 1);
}

static void time_on(struct hb_arena *arena, const struct hb_program *p,
                    const struct hb_device *device, bool recording, struct hb_timing *out)
{
    struct hb_cost cost;
    hb_cost_init(&cost, p, device);
    int64_t *cost_ns = hb_arena_alloc(arena, p->op_count, sizeof *cost_ns);
    for (uint32_t i = 0; i < p->op_count; i++)
        cost_ns[i] = hb_cost_op_ns(&cost, i);
    time_program(arena, p, cost_ns, recording, out);
    double slowdown = p->compiler == HB_TORCH ? find_slowdown(device, out) : 1;
    if (!(slowdown > 1))
        return;
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->ops[i].stream == HB_STREAM_COMPUTE)
            cost_ns[i] = (int64_t)((double)cost_ns[i] * slowdown);
    time_program(arena, p, cost_ns, recording, out);
}

void hb_run_timing(struct hb_arena *arena, const struct hb_program *p,
                   const struct hb_device *device, struct hb_timing *out)
{
    time_on(arena, p, device, true, out);
}

int64_t hb_run_step_ns(struct hb_arena *arena, const struct hb_program *p,
                       const struct hb_device *device)
{
    struct hb_timing t;
    time_on(arena, p, device, false, &t);
    return t.step_ns;
}
