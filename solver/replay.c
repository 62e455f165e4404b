/* Matrices of turns, and their products: see replay.h. */
#include "solver/replay.h"

#include <string.h>

#include "base/arena.h"
#include "base/size.h"

enum { EDGE = HB_STREAM_COUNT, TIMES, MOST_PERIOD = 4, SNAPSHOTS = 2 * MOST_PERIOD + 1 };

/* Before anything; sums with it stay far below 0. */
static const int64_t never = INT64_MIN / 4;

struct times {
    int64_t ns[TIMES];
};

/* Its entries by column; times that no op moves are not in it. */
struct entry {
    int to;
    int from;
    int64_t ns;
};

struct matrix {
    struct entry *entries;
    uint32_t count;
    bool moved[TIMES];
};

struct hb_replay {
    struct hb_arena *arena;
    const struct hb_segment *s;
    const struct hb_timed *t;
    struct matrix **turns; /* [(slot x items + item) x (steps + 1) + steps]; null: not made yet */
    struct matrix **ends;  /* by slot */
    /* of the stretch that is being run */
    int64_t steps;
    struct times now;
    int64_t *end_ns;  /* by op */
    uint32_t *writer; /* by root: the op that wrote it last in this run ... */
    uint32_t *run_of; /* ... if this is the run's number */
    uint32_t *ran_in; /* by op: the number of the run that it was last in */
    uint32_t run;
    uint32_t *child;   /* by loop, [loop_count]: of the program: the first loop inside; HB_NONE */
    uint32_t *sibling; /* by loop: the next inside the same; HB_NONE */
    /* SNAPSHOTS times the ops of the longest loop: without loops inside, and with such inside. */
    int64_t *snapshots[2];
    int *height;     /* by loop: how many loops lie inside of one another */
    bool *scheduled; /* by op: its end is waited for by an op of its own */
};

/* --- one op --- */

static int64_t ready_ns(const struct hb_replay *r, const struct hb_op *op)
{
    int64_t ready = never;
    if (op->kind == HB_OP_DONE && op->start != HB_NONE && r->ran_in[op->start] == r->run)
        ready = r->end_ns[op->start];
    for (uint32_t i = 0; i < op->read_count; i++) {
        uint32_t root = r->t->outline->root_of[r->t->p->refs[op->refs_at + i]];
        if (r->run_of[root] != r->run)
            continue;
        int64_t end = r->end_ns[r->writer[root]];
        ready = end > ready ? end : ready;
    }
    return ready;
}

static void run_op(struct hb_replay *r, uint32_t index)
{
    const struct hb_op *op = &r->t->p->ops[index];
    int64_t start = ready_ns(r, op);
    if (op->kind != HB_OP_MARK) {
        int64_t begin = r->now.ns[op->stream];
        start = begin > start ? begin : start;
        if (op->stream != HB_STREAM_COMPUTE) {
            int64_t after = r->now.ns[r->scheduled[index] ? HB_STREAM_COMPUTE : EDGE];
            start = after > start ? after : start;
        }
    }
    int64_t end = hb_add_sat(start, hb_op_cost_at(&r->t->costs, index, r->steps));
    r->end_ns[index] = end;
    r->ran_in[index] = r->run;
    if (op->kind != HB_OP_MARK)
        r->now.ns[op->stream] = end;
    for (uint32_t w = 0; w < op->write_count; w++) {
        uint32_t root = r->t->outline->root_of[r->t->p->refs[op->refs_at + op->read_count + w]];
        r->writer[root] = index;
        r->run_of[root] = r->run;
    }
}

/* --- loops --- */

static void run_loop(struct hb_replay *r, uint32_t loop);

static void run_stretch(struct hb_replay *r, uint32_t loop, uint32_t first, uint32_t end)
{
    const struct hb_program *p = r->t->p;
    uint32_t inner = r->child[loop == HB_NONE ? p->loop_count : loop];
    for (uint32_t op = first; op < end;) {
        while (inner != HB_NONE && p->loops[inner].end_op <= op)
            inner = r->sibling[inner];
        if (inner == HB_NONE || p->loops[inner].first_op != op) {
            run_op(r, op++);
            continue;
        }
        run_loop(r, inner);
        r->now.ns[EDGE] = r->now.ns[HB_STREAM_COMPUTE];
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

/* Trips after which each end moved as it did before; 0: not seen. */
static int64_t find_period(const struct hb_replay *r, uint32_t loop, int64_t trips)
{
    uint32_t ops = r->t->p->loops[loop].end_op - r->t->p->loops[loop].first_op;
    for (int64_t period = 1; period <= MOST_PERIOD && trips > 2 * period; period++) {
        const int64_t *a = snapshot(r, loop, trips - 2 * period);
        const int64_t *b = snapshot(r, loop, trips - period), *c = snapshot(r, loop, trips);
        uint32_t i = 0;
        while (i < ops && b[i] - a[i] == c[i] - b[i])
            i++;
        if (i == ops)
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
        r->now.ns[EDGE] = r->now.ns[HB_STREAM_COMPUTE];
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
            r->now.ns[EDGE] = r->now.ns[HB_STREAM_COMPUTE];
            run_stretch(r, loop, l->first_op, l->end_op);
        }
        return;
    }
}

/* --- matrices --- */

static void find_moved(const struct hb_replay *r, uint32_t first, uint32_t end, struct matrix *m)
{
    const struct hb_program *p = r->t->p;
    for (uint32_t i = first; i < end; i++) {
        m->moved[p->ops[i].stream] |= p->ops[i].kind != HB_OP_MARK;
        m->moved[EDGE] |=
            p->ops[i].loop != HB_NONE && r->t->outline->loop_owner[p->ops[i].loop] != HB_NONE;
    }
}

/* Ops [first, end) at so many steps. */
static struct matrix *make_matrix(struct hb_replay *r, uint32_t first, uint32_t end, int64_t steps)
{
    struct matrix *m = hb_arena_alloc(r->arena, 1, sizeof *m);
    struct entry found[TIMES * TIMES];
    find_moved(r, first, end, m);
    r->steps = steps;
    uint32_t around = first < end ? r->t->p->ops[first].loop : HB_NONE;
    while (around != HB_NONE && r->t->outline->loop_owner[around] != HB_NONE)
        around = r->t->p->loops[around].parent;
    for (int from = 0; from < TIMES; from++) {
        for (int i = 0; i < TIMES; i++)
            r->now.ns[i] = never;
        r->now.ns[from] = 0;
        r->run++;
        if (!m->moved[from] && from != EDGE && from != HB_STREAM_COMPUTE)
            continue; /* nothing waits for it */
        run_stretch(r, around, first, end);
        for (int to = 0; to < TIMES; to++)
            if (m->moved[to] && r->now.ns[to] > never / 2)
                found[m->count++] = (struct entry){to, from, r->now.ns[to]};
    }
    m->entries = hb_arena_alloc(r->arena, m->count, sizeof *m->entries);
    memcpy(m->entries, found, m->count * sizeof *found);
    return m;
}

static void multiply(const struct matrix *m, struct times *x)
{
    struct times y;
    for (int i = 0; i < TIMES; i++)
        y.ns[i] = m->moved[i] ? never : x->ns[i];
    for (uint32_t i = 0; i < m->count; i++) {
        const struct entry *e = &m->entries[i];
        int64_t ns = x->ns[e->from] + e->ns;
        y.ns[e->to] = ns > y.ns[e->to] ? ns : y.ns[e->to];
    }
    *x = y;
}

/* --- the step --- */

static void pass_turn(struct hb_replay *r, uint32_t slot, const struct hb_part *part,
                      struct times *x)
{
    size_t place = (size_t)slot * r->s->item_count + part->item;
    struct matrix **m = &r->turns[place * ((size_t)r->s->max_steps + 1) + (size_t)part->steps];
    size_t at = (size_t)slot * r->t->outline->pair.group_count + part->item;
    if (!*m)
        *m =
            make_matrix(r, r->t->outline->turn_first[at], r->t->outline->turn_end[at], part->steps);
    multiply(*m, x);
}

static void pass_slot(struct hb_replay *r, uint32_t slot, const struct hb_part *parts,
                      uint32_t count, struct times *x)
{
    const struct hb_slot *q = &r->s->slots[slot];
    for (uint32_t i = 0; q->turns && i < count; i++)
        pass_turn(r, slot, &parts[q->rising ? i : count - 1 - i], x);
    if (q->turns)
        return;
    if (!r->ends[slot])
        r->ends[slot] = make_matrix(r, q->first_op, q->end_op, r->s->max_steps);
    multiply(r->ends[slot], x);
}

/* The loop over several groups that begins with the slot; HB_NONE. */
static uint32_t shared_loop(const struct hb_replay *r, uint32_t slot)
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
    for (int i = 0; i < TIMES; i++)
        if (b->ns[i] - a->ns[i] != x->ns[i] - b->ns[i])
            return false;
    for (int i = 0; i < TIMES; i++)
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
        x->ns[EDGE] = x->ns[HB_STREAM_COMPUTE];
        for (uint32_t q = slot; q < end; q++)
            pass_slot(r, q, parts, count, x);
        if (trip > 0 && jump(&first, &before, x, l->trips - 1 - trip))
            break;
    }
    x->ns[EDGE] = x->ns[HB_STREAM_COMPUTE];
    return end;
}

int64_t hb_replay_bound_ns(struct hb_replay *r, const struct hb_part *parts, uint32_t count)
{
    struct times x = {{0}};
    int64_t last = 0;
    for (uint32_t q = 0; q < r->s->slot_count;) {
        uint32_t loop = shared_loop(r, q);
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

/* How often the loops over several groups around a slot run. */
static int64_t times_shared(const struct hb_replay *r, uint32_t slot)
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
        for (int i = 0; i < TIMES; i++)
            x.ns[i] = i == HB_STREAM_COMPUTE ? 0 : never;
        pass_slot(r, q, parts, count, &x);
        sum = hb_add_sat(sum, hb_mul_sat(x.ns[HB_STREAM_COMPUTE], times_shared(r, q)));
    }
    return sum;
}

/* --- opening --- */

static void link_loops(struct hb_replay *r)
{
    const struct hb_program *p = r->t->p;
    uint32_t longest = 0;
    r->child = hb_arena_alloc(r->arena, (size_t)p->loop_count + 1, sizeof *r->child);
    r->sibling = hb_arena_alloc(r->arena, p->loop_count, sizeof *r->sibling);
    r->height = hb_arena_alloc(r->arena, p->loop_count, sizeof *r->height);
    for (uint32_t i = 0; i <= p->loop_count; i++)
        r->child[i] = HB_NONE;
    for (uint32_t i = p->loop_count; i-- > 0;) {
        const struct hb_loop *l = &p->loops[i];
        uint32_t *first = &r->child[l->parent == HB_NONE ? p->loop_count : l->parent];
        r->sibling[i] = *first;
        *first = i;
        longest = l->end_op - l->first_op > longest ? l->end_op - l->first_op : longest;
        if (l->parent != HB_NONE && r->height[l->parent] <= r->height[i])
            r->height[l->parent] = r->height[i] + 1;
    }
    for (int h = 0; h < 2; h++)
        r->snapshots[h] = hb_arena_alloc(r->arena, (size_t)longest * SNAPSHOTS, sizeof(int64_t));
}

struct hb_replay *hb_replay_open(struct hb_arena *arena, const struct hb_segment *s)
{
    struct hb_replay *r = hb_arena_alloc(arena, 1, sizeof *r);
    const struct hb_program *p = s->timed->p;
    *r = (struct hb_replay){.arena = arena, .s = s, .t = s->timed};
    size_t turns = (size_t)s->slot_count * s->item_count * ((size_t)s->max_steps + 1);
    r->turns = hb_arena_alloc(arena, turns, sizeof(struct matrix *));
    r->ends = hb_arena_alloc(arena, s->slot_count, sizeof(struct matrix *));
    r->end_ns = hb_arena_alloc(arena, p->op_count, sizeof *r->end_ns);
    r->ran_in = hb_arena_alloc(arena, p->op_count, sizeof *r->ran_in);
    r->scheduled = hb_arena_alloc(arena, p->op_count, sizeof *r->scheduled);
    r->writer = hb_arena_alloc(arena, p->buf_count, sizeof *r->writer);
    r->run_of = hb_arena_alloc(arena, p->buf_count, sizeof *r->run_of);
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->ops[i].kind == HB_OP_DONE && p->ops[i].start != HB_NONE)
            r->scheduled[p->ops[i].start] = true;
    link_loops(r);
    return r;
}
