/* Matrices of turns, and their products: see replay.h. */
#include "solver/replay_matrix.h"

#include <string.h>

#include "base/arena.h"
#include "base/size.h"

enum { MOST_PERIOD = 4, SNAPSHOTS = 2 * MOST_PERIOD + 1 };

struct times {
    int64_t ns[HB_REPLAY_TIMES];
};

/* A loop that costs the same whatever its trips: what was free when after each of the first of
 * them, by what alone was not free before. */
enum { MOST_KEPT = 12 };
struct trips {
    uint32_t loop;
    uint32_t count[HB_REPLAY_TIMES]; /* so many are known, */
    int64_t period[HB_REPLAY_TIMES]; /* and how they go on from there; 0: there are no more */
    struct times after[HB_REPLAY_TIMES][MOST_KEPT];
};

/* An item's turn in a slot at so many steps. */
struct turn {
    struct hb_matrix *m; /* or null */
    bool row_known;
    int from; /* what it comes to where only that is not free */
    struct times row;
};

/* What of an op is looked at each time it is run. */
struct light {
    uint32_t roots_at; /* into roots: of what it reads, then of what it writes */
    uint32_t read_count, write_count;
    uint32_t start;   /* the op whose end it waits for; HB_NONE */
    uint32_t follows; /* no sooner than this stream; HB_REPLAY_TIMES: only its own */
    uint32_t stream;  /* HB_REPLAY_TIMES: a mark, on none */
    bool begins;      /* a loop may begin with it */
};

/* The op that wrote a root last, in the run of that number. */
struct write {
    uint32_t op;
    uint32_t run;
};

struct hb_replay {
    struct hb_arena *arena;
    const struct hb_segment *s;
    const struct hb_timed *t;
    struct light *ops;
    uint32_t *roots;
    struct turn ***turns;           /* [item x (steps + 1) + steps][slot]; or null */
    struct hb_matrix **ends;        /* by slot; or null */
    struct trips **trips;           /* [slot x groups + group]: of those that have one; else null */
    bool *looked;                   /* the same: it is known, and */
    bool (*moved)[HB_REPLAY_TIMES]; /* what its ops move (hb_matrix) */
    /* of the stretch that is being run */
    int64_t steps;
    struct times now;
    int64_t *end_ns;     /* by op */
    struct write *wrote; /* by root */
    uint32_t *ran_in;    /* by op: the number of the run that it was last in */
    uint32_t run;
    /* SNAPSHOTS times the ops of the longest loop: without loops inside, and with such inside. */
    int64_t *snapshots[2];
    int *height; /* by loop: how many loops lie inside of one another */
};

/* --- one op --- */

static int64_t ready_ns(const struct hb_replay *r, const struct light *op)
{
    int64_t ready = HB_REPLAY_NEVER;
    if (op->start != HB_NONE && r->ran_in[op->start] == r->run)
        ready = r->end_ns[op->start];
    for (uint32_t i = 0; i < op->read_count; i++) {
        struct write last = r->wrote[r->roots[op->roots_at + i]];
        if (last.run == r->run)
            ready = hb_larger(ready, r->end_ns[last.op]);
    }
    return ready;
}

static void run_op(struct hb_replay *r, uint32_t index)
{
    const struct light *op = &r->ops[index];
    int64_t start = ready_ns(r, op);
    if (op->stream < HB_REPLAY_TIMES)
        start = hb_larger(start, r->now.ns[op->stream]);
    if (op->follows < HB_REPLAY_TIMES)
        start = hb_larger(start, r->now.ns[op->follows]);
    int64_t end = hb_add_sat(start, hb_op_cost_at(&r->t->costs, index, r->steps));
    r->end_ns[index] = end;
    r->ran_in[index] = r->run;
    if (op->stream < HB_REPLAY_TIMES)
        r->now.ns[op->stream] = end;
    const uint32_t *writes = &r->roots[op->roots_at + op->read_count];
    for (uint32_t w = 0; w < op->write_count; w++)
        r->wrote[writes[w]] = (struct write){index, r->run};
}

/* --- loops --- */

static void run_loop(struct hb_replay *r, uint32_t loop);

/* The loop in this one that begins with the op; HB_NONE. What has loops inside begins with an op of
 * its own. */
static uint32_t loop_from(const struct hb_program *p, uint32_t loop, uint32_t op)
{
    uint32_t inner = p->ops[op].loop;
    bool begins = inner != HB_NONE && inner != loop && p->loops[inner].first_op == op;
    return begins ? inner : HB_NONE;
}

static void run_stretch(struct hb_replay *r, uint32_t loop, uint32_t first, uint32_t end)
{
    const struct hb_program *p = r->t->p;
    for (uint32_t op = first; op < end;) {
        uint32_t inner = r->ops[op].begins ? loop_from(p, loop, op) : HB_NONE;
        if (inner == HB_NONE) {
            run_op(r, op++);
            continue;
        }
        run_loop(r, inner);
        r->now.ns[HB_REPLAY_EDGE] = r->now.ns[HB_STREAM_COMPUTE];
        op = p->loops[inner].end_op;
    }
}

static int64_t trips_of(const struct hb_replay *r, uint32_t loop)
{
    switch (r->t->outline->loop_follow[loop]) {
    case HB_FOLLOW_NOTHING:
        return r->t->p->loops[loop].trips;
    case HB_FOLLOW_OUTER:
        return r->t->sized->outer[r->steps];
    case HB_FOLLOW_INNER:
        return r->t->sized->inner[r->steps];
    }
    return 1;
}

/* After `trips` trips: kept in a ring. */
static int64_t *snapshot(const struct hb_replay *r, uint32_t loop, int64_t trips)
{
    const struct hb_loop *l = &r->t->p->loops[loop];
    return r->snapshots[r->height[loop]] + (size_t)(trips % SNAPSHOTS) * (l->end_op - l->first_op);
}

/* Whether as much lies between b and c as between a and b, end by end. */
static bool moved_alike(const int64_t *a, const int64_t *b, const int64_t *c, uint32_t ops)
{
    for (uint32_t i = 0; i < ops; i++)
        if (b[i] - a[i] != c[i] - b[i])
            return false;
    return true;
}

/* Trips after which each end moved as it did before; 0: not seen. */
static int64_t find_period(const struct hb_replay *r, uint32_t loop, int64_t trips)
{
    uint32_t ops = r->t->p->loops[loop].end_op - r->t->p->loops[loop].first_op;
    for (int64_t period = 1; period <= MOST_PERIOD && trips > 2 * period; period++) {
        const int64_t *a = snapshot(r, loop, trips - 2 * period);
        const int64_t *b = snapshot(r, loop, trips - period), *c = snapshot(r, loop, trips);
        if (moved_alike(a, b, c, ops))
            return period;
    }
    return 0;
}

/* Goes on by so many moves, each of the size of the last: never above what happens, since an end
 * that another overtakes later on only rises. */
static void move_on(struct hb_replay *r, uint32_t loop, int64_t trips, int64_t period,
                    int64_t moves)
{
    const struct hb_loop *l = &r->t->p->loops[loop];
    uint32_t ops = l->end_op - l->first_op;
    const int64_t *before = snapshot(r, loop, trips - period), *now = snapshot(r, loop, trips);
    for (uint32_t i = 0; i < ops; i++) {
        const struct hb_op *op = &r->t->p->ops[l->first_op + i];
        int64_t end = hb_add_sat(now[i], hb_mul_sat(now[i] - before[i], moves));
        r->end_ns[l->first_op + i] = end;
        if (op->kind != HB_OP_MARK)
            r->now.ns[op->stream] = end;
    }
}

static void run_loop(struct hb_replay *r, uint32_t loop)
{
    const struct hb_loop *l = &r->t->p->loops[loop];
    uint32_t ops = l->end_op - l->first_op;
    int64_t trips = trips_of(r, loop);
    for (int64_t done = 0; done < trips;) {
        r->now.ns[HB_REPLAY_EDGE] = r->now.ns[HB_STREAM_COMPUTE];
        run_stretch(r, loop, l->first_op, l->end_op);
        done++;
        if (r->height[loop] > 1)
            continue;
        memcpy(snapshot(r, loop, done), r->end_ns + l->first_op, ops * sizeof(int64_t));
        int64_t period = find_period(r, loop, done);
        if (!period)
            continue;
        move_on(r, loop, done, period, (trips - done) / period);
        for (int64_t left = (trips - done) % period; left > 0; left--) {
            r->now.ns[HB_REPLAY_EDGE] = r->now.ns[HB_STREAM_COMPUTE];
            run_stretch(r, loop, l->first_op, l->end_op);
        }
        return;
    }
}

/* --- matrices --- */

static void find_moved(const struct hb_replay *r, uint32_t first, uint32_t end, bool *moved)
{
    const struct hb_program *p = r->t->p;
    for (uint32_t i = first; i < end; i++) {
        moved[p->ops[i].stream] |= p->ops[i].kind != HB_OP_MARK;
        moved[HB_REPLAY_EDGE] |=
            p->ops[i].loop != HB_NONE && r->t->outline->loop_owner[p->ops[i].loop] != HB_NONE;
    }
}

/* The loop over several groups, or none, that the op is in. */
static uint32_t loop_around(const struct hb_replay *r, uint32_t op)
{
    uint32_t around = r->t->p->ops[op].loop;
    while (around != HB_NONE && r->t->outline->loop_owner[around] != HB_NONE)
        around = r->t->p->loops[around].parent;
    return around;
}

static void start_from(struct hb_replay *r, int from)
{
    for (int i = 0; i < HB_REPLAY_TIMES; i++)
        r->now.ns[i] = HB_REPLAY_NEVER;
    r->now.ns[from] = 0;
    r->run++;
}

/* Whether ops [first, end) are one loop in which nothing follows the steps, compute's ops and marks
 * before it, and marks, which take no time, behind it. What the loop does then follows from when
 * streams are free alone: none of its ops starts before compute comes to it. */
static bool find_loop(const struct hb_replay *r, uint32_t first, uint32_t end, uint32_t *out)
{
    const struct hb_program *p = r->t->p;
    uint32_t around = loop_around(r, first), op = first, loop = HB_NONE;
    for (uint32_t i = first; i < end && loop == HB_NONE; i++)
        loop = loop_from(p, around, i);
    if (loop == HB_NONE || r->height[loop] > 0)
        return false;
    for (; op < p->loops[loop].first_op; op++)
        if (p->ops[op].kind != HB_OP_MARK &&
            (p->ops[op].kind == HB_OP_DONE || p->ops[op].stream != HB_STREAM_COMPUTE))
            return false;
    for (; op < p->loops[loop].end_op; op++)
        if (r->t->costs.by_steps[op])
            return false;
    for (; op < end; op++)
        if (p->ops[op].kind != HB_OP_MARK)
            return false;
    *out = loop;
    return true;
}

/* Until it is known how it goes on. */
static void run_trips(struct hb_replay *r, struct trips *t, int from)
{
    const struct hb_loop *l = &r->t->p->loops[t->loop];
    uint32_t ops = l->end_op - l->first_op, *done = &t->count[from];
    start_from(r, from);
    while (*done < MOST_KEPT && !t->period[from]) {
        r->now.ns[HB_REPLAY_EDGE] = r->now.ns[HB_STREAM_COMPUTE];
        run_stretch(r, t->loop, l->first_op, l->end_op);
        t->after[from][(*done)++] = r->now;
        memcpy(snapshot(r, t->loop, *done), r->end_ns + l->first_op, ops * sizeof(int64_t));
        t->period[from] = find_period(r, t->loop, *done);
    }
}

/* After so many trips, as run_loop finds it. False: that is not known. */
static bool find_after(struct hb_replay *r, struct trips *t, int from, int64_t trips,
                       struct times *out)
{
    if (!t->count[from])
        run_trips(r, t, from);
    int64_t count = t->count[from], period = t->period[from];
    if (trips > count && (!period || (trips - count) % period))
        return false;
    *out = t->after[from][(trips < count ? trips : count) - 1];
    for (int i = 0; i < HB_STREAM_COUNT && trips > count; i++) {
        int64_t moved = out->ns[i] - t->after[from][count - period - 1].ns[i];
        out->ns[i] = hb_add_sat(out->ns[i], hb_mul_sat(moved, (trips - count) / period));
    }
    return true;
}

/* All trips of the loop at once: of what each time comes to by itself the latest. */
static bool pass_loop(struct hb_replay *r, struct trips *t)
{
    struct times before = r->now, after = before, one;
    for (int i = 0; i < HB_REPLAY_TIMES; i++)
        after.ns[i] = HB_REPLAY_NEVER;
    for (int from = 0; from < HB_STREAM_COUNT; from++) {
        if (before.ns[from] <= HB_REPLAY_NEVER / 2)
            continue;
        if (!find_after(r, t, from, trips_of(r, t->loop), &one))
            return false;
        for (int i = 0; i < HB_STREAM_COUNT; i++)
            after.ns[i] = hb_larger(after.ns[i], one.ns[i] > HB_REPLAY_NEVER / 2
                                                     ? hb_add_sat(before.ns[from], one.ns[i])
                                                     : HB_REPLAY_NEVER);
    }
    after.ns[HB_REPLAY_EDGE] = after.ns[HB_STREAM_COMPUTE];
    r->now = after;
    return true;
}

/* Ops [first, end) from `from` on; t: of these the loop, or null. */
static void run_from(struct hb_replay *r, uint32_t first, uint32_t end, int from, struct trips *t)
{
    uint32_t around = first < end ? loop_around(r, first) : HB_NONE;
    start_from(r, from);
    if (t) {
        run_stretch(r, around, first, r->t->p->loops[t->loop].first_op);
        if (pass_loop(r, t))
            return;
        start_from(r, from);
    }
    run_stretch(r, around, first, end);
}

/* Else nothing waits for it. */
static bool may_wait(const bool *moved, int from)
{
    return moved[from] || from == HB_REPLAY_EDGE || from == HB_STREAM_COMPUTE;
}

/* What ops [first, end) do, at so many steps; t: of these the loop, or null. */
static struct hb_matrix *make_matrix(struct hb_replay *r, uint32_t first, uint32_t end,
                                     int64_t steps, struct trips *t)
{
    struct hb_matrix_entry found[HB_REPLAY_TIMES * HB_REPLAY_TIMES];
    struct hb_matrix own = {.count = 0}, *m;
    find_moved(r, first, end, own.moved);
    r->steps = steps;
    for (int from = 0; from < HB_REPLAY_TIMES; from++) {
        if (!may_wait(own.moved, from))
            continue;
        run_from(r, first, end, from, t);
        for (int to = 0; to < HB_REPLAY_TIMES; to++)
            if (own.moved[to] && r->now.ns[to] > HB_REPLAY_NEVER / 2)
                found[own.count++] = (struct hb_matrix_entry){to, from, r->now.ns[to]};
    }
    m = hb_arena_raw(r->arena, 1, sizeof *m + own.count * sizeof *found);
    *m = own;
    memcpy(m->entries, found, own.count * sizeof *found);
    return m;
}

static void multiply(const struct hb_matrix *m, struct times *x)
{
    struct times y;
    for (int i = 0; i < HB_REPLAY_TIMES; i++)
        y.ns[i] = m->moved[i] ? HB_REPLAY_NEVER : x->ns[i];
    for (uint32_t i = 0; i < m->count; i++) {
        const struct hb_matrix_entry *e = &m->entries[i];
        int64_t ns = x->ns[e->from] + e->ns;
        y.ns[e->to] = ns > y.ns[e->to] ? ns : y.ns[e->to];
    }
    *x = y;
}

/* --- the step --- */

/* The loop of a group's turn; null: it is none. */
static struct trips *trips_in(struct hb_replay *r, size_t turn)
{
    uint32_t first = r->t->outline->turn_first[turn], end = r->t->outline->turn_end[turn], loop;
    if (r->looked[turn])
        return r->trips[turn];
    r->looked[turn] = true;
    find_moved(r, first, end, r->moved[turn]);
    if (first < end && find_loop(r, first, end, &loop)) {
        r->trips[turn] = hb_arena_alloc(r->arena, 1, sizeof **r->trips);
        r->trips[turn]->loop = loop;
    }
    return r->trips[turn];
}

static size_t turn_of(const struct hb_replay *r, uint32_t slot, uint32_t item)
{
    return (size_t)slot * r->t->outline->pair.group_count + item;
}

static struct turn *find_turn(struct hb_replay *r, uint32_t slot, uint32_t item, int32_t steps)
{
    size_t place = (size_t)item * ((size_t)r->s->max_steps + 1) + (size_t)steps;
    struct turn **known = r->turns[place];
    if (!known)
        known = r->turns[place] = hb_arena_alloc(r->arena, r->s->slot_count, sizeof(struct turn *));
    if (!known[slot])
        known[slot] = hb_arena_alloc(r->arena, 1, sizeof **known);
    return known[slot];
}

const struct hb_matrix *hb_replay_turn(struct hb_replay *r, uint32_t slot, uint32_t item,
                                       int32_t steps)
{
    struct turn *known = find_turn(r, slot, item, steps);
    size_t turn = turn_of(r, slot, item);
    if (!known->m)
        known->m = make_matrix(r, r->t->outline->turn_first[turn], r->t->outline->turn_end[turn],
                               steps, trips_in(r, turn));
    return known->m;
}

int64_t hb_replay_turn_ns(struct hb_replay *r, const struct hb_part *part, uint32_t slot, int from,
                          int to)
{
    struct turn *known = find_turn(r, slot, part->item, part->steps);
    size_t turn = turn_of(r, slot, part->item);
    struct trips *t = trips_in(r, turn);
    if (!r->moved[turn][to])
        return to == from ? 0 : HB_REPLAY_NEVER;
    if (!may_wait(r->moved[turn], from))
        return HB_REPLAY_NEVER;
    if (!known->row_known || known->from != from) {
        r->steps = part->steps;
        run_from(r, r->t->outline->turn_first[turn], r->t->outline->turn_end[turn], from, t);
        known->row_known = true;
        known->from = from;
        known->row = r->now;
    }
    return known->row.ns[to] > HB_REPLAY_NEVER / 2 ? known->row.ns[to] : HB_REPLAY_NEVER;
}

const struct hb_matrix *hb_replay_ends(struct hb_replay *r, uint32_t slot)
{
    const struct hb_slot *q = &r->s->slots[slot];
    if (!r->ends[slot])
        r->ends[slot] = make_matrix(r, q->first_op, q->end_op, r->s->max_steps, NULL);
    return r->ends[slot];
}

static void pass_slot(struct hb_replay *r, uint32_t slot, const struct hb_part *parts,
                      uint32_t count, struct times *x)
{
    const struct hb_slot *q = &r->s->slots[slot];
    for (uint32_t i = 0; q->turns && i < count; i++) {
        const struct hb_part *part = &parts[q->rising ? i : count - 1 - i];
        multiply(hb_replay_turn(r, slot, part->item, part->steps), x);
    }
    if (!q->turns)
        multiply(hb_replay_ends(r, slot), x);
}

uint32_t hb_replay_shared(const struct hb_replay *r, uint32_t slot)
{
    uint32_t op = r->s->slots[slot].first_op, loop = r->t->p->ops[op].loop;
    for (; loop != HB_NONE; loop = r->t->p->loops[loop].parent)
        if (r->t->outline->loop_owner[loop] == HB_NONE && r->t->p->loops[loop].first_op == op)
            return loop;
    return HB_NONE;
}

/* Whether x moved as it did before; then it goes on by so many such moves. */
static bool jump(const struct times *a, const struct times *b, struct times *x, int64_t moves)
{
    for (int i = 0; i < HB_REPLAY_TIMES; i++)
        if (b->ns[i] - a->ns[i] != x->ns[i] - b->ns[i])
            return false;
    for (int i = 0; i < HB_REPLAY_TIMES; i++)
        x->ns[i] = hb_add_sat(x->ns[i], hb_mul_sat(x->ns[i] - b->ns[i], moves));
    return true;
}

/* The slots of a shared loop, as often as it runs; returns the slot after it. */
static uint32_t pass_shared(struct hb_replay *r, uint32_t slot, uint32_t loop,
                            const struct hb_part *parts, uint32_t count, struct times *x)
{
    const struct hb_loop *l = &r->t->p->loops[loop];
    struct times before = *x, first = *x;
    uint32_t end = slot;
    while (end < r->s->slot_count && r->s->slots[end].first_op < l->end_op)
        end++;
    for (int64_t trip = 0; trip < l->trips; trip++) {
        first = before;
        before = *x;
        x->ns[HB_REPLAY_EDGE] = x->ns[HB_STREAM_COMPUTE];
        for (uint32_t q = slot; q < end; q++)
            pass_slot(r, q, parts, count, x);
        if (trip > 0 && jump(&first, &before, x, l->trips - 1 - trip))
            break;
    }
    x->ns[HB_REPLAY_EDGE] = x->ns[HB_STREAM_COMPUTE];
    return end;
}

int64_t hb_replay_bound_ns(struct hb_replay *r, const struct hb_part *parts, uint32_t count)
{
    struct times x = {{0}};
    int64_t last = 0;
    for (uint32_t q = 0; q < r->s->slot_count;) {
        uint32_t loop = hb_replay_shared(r, q);
        if (loop != HB_NONE) {
            q = pass_shared(r, q, loop, parts, count, &x);
            continue;
        }
        pass_slot(r, q++, parts, count, &x);
    }
    for (int i = 0; i < HB_STREAM_COUNT; i++)
        last = x.ns[i] > last ? x.ns[i] : last;
    return last;
}

const struct hb_segment *hb_replay_segment(const struct hb_replay *r)
{
    return r->s;
}

int64_t hb_replay_times(const struct hb_replay *r, uint32_t slot)
{
    const struct hb_program *p = r->t->p;
    int64_t times = 1;
    for (uint32_t l = p->ops[r->s->slots[slot].first_op].loop; l != HB_NONE; l = p->loops[l].parent)
        if (r->t->outline->loop_owner[l] == HB_NONE)
            times = hb_mul_sat(times, p->loops[l].trips);
    return times;
}

int64_t hb_replay_turns_ns(struct hb_replay *r, const struct hb_part *parts, uint32_t count)
{
    int64_t sum = 0;
    for (uint32_t q = 0; q < r->s->slot_count; q++) {
        struct times x;
        if (!r->s->slots[q].turns)
            continue;
        for (int i = 0; i < HB_REPLAY_TIMES; i++)
            x.ns[i] = i == HB_STREAM_COMPUTE ? 0 : HB_REPLAY_NEVER;
        pass_slot(r, q, parts, count, &x);
        sum = hb_add_sat(sum, hb_mul_sat(x.ns[HB_STREAM_COMPUTE], hb_replay_times(r, q)));
    }
    return sum;
}

/* --- opening --- */

static void link_loops(struct hb_replay *r)
{
    const struct hb_program *p = r->t->p;
    uint32_t longest = 0;
    r->height = hb_arena_alloc(r->arena, p->loop_count, sizeof *r->height);
    for (uint32_t i = p->loop_count; i-- > 0;) {
        const struct hb_loop *l = &p->loops[i];
        longest = l->end_op - l->first_op > longest ? l->end_op - l->first_op : longest;
        if (l->parent != HB_NONE && r->height[l->parent] <= r->height[i])
            r->height[l->parent] = r->height[i] + 1;
    }
    for (int h = 0; h < 2; h++)
        r->snapshots[h] = hb_arena_alloc(r->arena, (size_t)longest * SNAPSHOTS, sizeof(int64_t));
}

/* Of a moment nothing but marks takes none: what is not compute's comes behind compute where an op
 * of its own waits for its end, else behind the edge. */
static void list_ops(struct hb_replay *r)
{
    const struct hb_program *p = r->t->p;
    r->ops = hb_arena_raw(r->arena, p->op_count, sizeof *r->ops);
    r->roots = hb_arena_raw(r->arena, p->ref_count, sizeof *r->roots);
    for (uint32_t i = 0; i < p->ref_count; i++)
        r->roots[i] = r->t->outline->root_of[p->refs[i]];
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        bool mark = op->kind == HB_OP_MARK, beside = !mark && op->stream != HB_STREAM_COMPUTE;
        r->ops[i] = (struct light){.roots_at = op->refs_at,
                                   .read_count = op->read_count,
                                   .write_count = op->write_count,
                                   .start = op->start,
                                   .stream = mark ? HB_REPLAY_TIMES : (uint32_t)op->stream,
                                   .follows = beside ? HB_REPLAY_EDGE : HB_REPLAY_TIMES};
    }
    for (uint32_t i = 0; i < p->op_count; i++)
        if (r->ops[i].start != HB_NONE && r->ops[r->ops[i].start].follows == HB_REPLAY_EDGE)
            r->ops[r->ops[i].start].follows = HB_STREAM_COMPUTE;
    for (uint32_t i = 0; i < p->loop_count; i++)
        if (p->loops[i].first_op < p->op_count)
            r->ops[p->loops[i].first_op].begins = true;
}

struct hb_replay *hb_replay_open(struct hb_arena *arena, const struct hb_segment *s)
{
    struct hb_replay *r = hb_arena_alloc(arena, 1, sizeof *r);
    const struct hb_program *p = s->timed->p;
    *r = (struct hb_replay){.arena = arena, .s = s, .t = s->timed};
    size_t parts = (size_t)s->item_count * ((size_t)s->max_steps + 1);
    r->turns = hb_arena_alloc(arena, parts, sizeof *r->turns);
    r->ends = hb_arena_alloc(arena, s->slot_count, sizeof(struct hb_matrix *));
    size_t groups = (size_t)s->slot_count * s->timed->outline->pair.group_count;
    r->trips = hb_arena_alloc(arena, groups, sizeof(struct trips *));
    r->looked = hb_arena_alloc(arena, groups, sizeof *r->looked);
    r->moved = hb_arena_alloc(arena, groups, sizeof *r->moved);
    r->end_ns = hb_arena_alloc(arena, p->op_count, sizeof *r->end_ns);
    r->ran_in = hb_arena_alloc(arena, p->op_count, sizeof *r->ran_in);
    r->wrote = hb_arena_alloc(arena, p->buf_count, sizeof *r->wrote);
    list_ops(r);
    link_loops(r);
    return r;
}
