/* solver/replay: random programs in slots and turns against one that runs every trip of every loop
 * with all that is not free at once. Never above it, and what is jumped over is as a rule the same.
 */
#include "tests/unit/unit.h"

#include "base/arena.h"
#include "base/size.h"
#include "solver/replay_matrix.h"
#include "tests/unit/random_program.h"

enum {
    PROGRAMS = 1500,
    FAR_PROGRAMS = 1500,
    GROUPS = 3,
    STEPS = 6,
    SECTIONS = 4,
    ARGUMENTS = 5,
    MOST_SLOTS = 16,
    MOST_NS = 40
};
/* Of one loop: any number of trips up to 4 divides what they differ by. */
enum { NEAR_TRIPS = 30, MORE_TRIPS = 12, FAR_TIMES = 20000 };

struct made {
    struct hb_program p;
    struct hb_outline outline;
    struct hb_sized sized;
    struct hb_timed timed;
    struct hb_segment s;
    struct hb_slot slots[MOST_SLOTS];
    struct hb_part parts[GROUPS];
    uint32_t part_count;
    uint32_t firsts[MOST_SLOTS * GROUPS], ends[MOST_SLOTS * GROUPS];
    uint32_t around[MOST_SLOTS]; /* the loop over slots, or HB_NONE */
};

/* --- one at random --- */

/* A trip whose ops wait for one another across its edge: what two streams hand each other in two
 * trips moves every other time. */
static void make_rotation(struct random_maker *maker)
{
    static const enum hb_stream streams[] = {HB_STREAM_COMPUTE, HB_STREAM_D2H, HB_STREAM_H2D,
                                             HB_STREAM_COLLECTIVE};
    for (int64_t i = roll(maker, 3, 9); i > 0; i--) {
        enum hb_stream stream = streams[roll(maker, 0, 3)];
        hb_program_add_op(maker->p,
                          (struct hb_op){.name = "turned",
                                         .kind = stream == HB_STREAM_COMPUTE      ? HB_OP_MATMUL
                                                 : stream == HB_STREAM_COLLECTIVE ? HB_OP_ALL_GATHER
                                                                                  : HB_OP_HOST_COPY,
                                         .stream = stream,
                                         .start = HB_NONE,
                                         .phase = HB_PHASE_FORWARD,
                                         .group = 4,
                                         .batch = 1});
        hb_program_read(maker->p, (uint32_t)roll(maker, 0, ARGUMENTS - 1));
        hb_program_write(maker->p, (uint32_t)roll(maker, 0, ARGUMENTS - 1));
    }
}

/* A loop, and little beside it. */
static void make_layers(struct random_maker *maker)
{
    for (int64_t i = roll(maker, 0, 2); i > 0; i--)
        random_op(maker, roll(maker, 0, 2) ? HB_OP_MATMUL : HB_OP_MARK,
                  roll(maker, 0, 5) ? HB_STREAM_COMPUTE : HB_STREAM_COLLECTIVE);
    uint32_t loop = hb_program_open_loop(maker->p, "turn", roll(maker, 1, 40));
    if (roll(maker, 0, 1))
        make_rotation(maker);
    else
        random_block(maker, maker->shape.most_depth);
    hb_program_close_loop(maker->p, loop);
    if (roll(maker, 0, 3) == 0)
        random_op(maker, roll(maker, 0, 2) ? HB_OP_MARK : HB_OP_MATMUL, HB_STREAM_COMPUTE);
}

static void make_turns(struct made *m, struct random_maker *maker, struct hb_slot *q, uint32_t at)
{
    q->turns = true;
    q->rising = roll(maker, 0, 1);
    for (uint32_t i = 0; i < GROUPS; i++) {
        uint32_t group = q->rising ? i : GROUPS - 1 - i;
        m->firsts[at + group] = maker->p->op_count;
        if (roll(maker, 0, 1))
            make_layers(maker);
        else if (roll(maker, 0, 4))
            random_block(maker, 0);
        m->ends[at + group] = maker->p->op_count;
    }
}

static void make_slot(struct made *m, struct random_maker *maker, uint32_t around, bool ends)
{
    uint32_t at = m->s.slot_count * GROUPS;
    struct hb_slot *q = &m->slots[m->s.slot_count];
    *q = (struct hb_slot){.first_op = maker->p->op_count};
    m->around[m->s.slot_count++] = around;
    if (!ends && roll(maker, 0, 2))
        make_turns(m, maker, q, at);
    else
        random_block(maker, 0);
    if (maker->p->op_count == q->first_op) /* no slot is empty */
        random_step(maker);
    while (maker->open_count)
        random_done(maker);
    q->end_op = maker->p->op_count;
}

/* Slots one after another, some in a loop around them, which begins with an op of its own. */
static void make_slots(struct made *m, struct random_maker *maker)
{
    for (int64_t k = roll(maker, 1, SECTIONS); k > 0; k--) {
        bool shared = roll(maker, 0, 2) == 0;
        uint32_t loop = HB_NONE;
        if (shared)
            loop = hb_program_open_loop(maker->p, "shared", roll(maker, 1, 20));
        for (int64_t i = shared ? roll(maker, 1, 3) : 1; i > 0; i--)
            make_slot(m, maker, loop,
                      shared && maker->p->op_count == maker->p->loops[loop].first_op);
        if (shared)
            hb_program_close_loop(maker->p, loop);
    }
}

static void make_owners(struct made *m, struct hb_rng *rng, struct hb_arena *a)
{
    const struct hb_program *p = &m->p;
    struct hb_outline *o = &m->outline;
    o->root_of = hb_program_roots(a, p);
    o->turn_first = m->firsts;
    o->turn_end = m->ends;
    o->pair.group_count = GROUPS;
    o->loop_owner = hb_arena_alloc(a, p->loop_count, sizeof *o->loop_owner);
    o->loop_follow = hb_arena_alloc(a, p->loop_count, sizeof *o->loop_follow);
    for (uint32_t l = 0; l < p->loop_count; l++) {
        o->loop_owner[l] = 0;
        o->loop_follow[l] = (enum hb_follow)hb_rng_range(rng, 0, 2);
    }
    for (uint32_t q = 0; q < m->s.slot_count; q++)
        if (m->around[q] != HB_NONE) {
            o->loop_owner[m->around[q]] = HB_NONE;
            o->loop_follow[m->around[q]] = HB_FOLLOW_NOTHING;
        }
}

static void make_costs(struct made *m, struct hb_rng *rng, struct hb_arena *a)
{
    const struct hb_program *p = &m->p;
    struct hb_op_costs *c = &m->timed.costs;
    c->usual_ns = hb_arena_alloc(a, p->op_count, sizeof *c->usual_ns);
    c->by_steps = hb_arena_alloc(a, p->op_count, sizeof *c->by_steps);
    for (uint32_t i = 0; i < p->op_count; i++) {
        if (p->ops[i].kind == HB_OP_MARK || p->ops[i].kind == HB_OP_DONE)
            continue;
        c->usual_ns[i] = hb_rng_range(rng, 0, 3) ? hb_rng_range(rng, 0, MOST_NS) : 0;
        if (hb_rng_range(rng, 0, 15))
            continue;
        int64_t *table = hb_arena_alloc(a, STEPS + 1, sizeof *table);
        for (int n = 1; n <= STEPS; n++)
            table[n] = hb_rng_range(rng, 0, MOST_NS);
        c->by_steps[i] = table;
    }
}

static void make(struct made *m, struct hb_rng *rng, struct hb_arena *a)
{
    *m = (struct made){.s = {.max_steps = STEPS, .item_count = GROUPS}};
    struct random_maker maker = {&m->p, rng, {7, 2, 25, 100}, {0}, 0};
    hb_program_init(&m->p, a, "made", HB_XLA_TPU);
    for (int i = 0; i < ARGUMENTS; i++)
        random_buf(&maker, true);
    make_slots(m, &maker);
    hb_program_check(&m->p);
    make_owners(m, rng, a);
    make_costs(m, rng, a);
    m->sized.outer = hb_arena_alloc(a, STEPS + 1, sizeof(int64_t));
    m->sized.inner = hb_arena_alloc(a, STEPS + 1, sizeof(int64_t));
    for (int n = 1; n <= STEPS; n++) {
        m->sized.outer[n] = hb_rng_range(rng, 1, 6);
        m->sized.inner[n] = hb_rng_range(rng, 1, 30);
    }
    m->timed.p = &m->p;
    m->timed.outline = &m->outline;
    m->timed.sized = &m->sized;
    m->s.slots = m->slots;
    m->s.timed = &m->timed;
    for (uint32_t i = 0; i < GROUPS; i++)
        if (hb_rng_range(rng, 0, 3))
            m->parts[m->part_count++] = (struct hb_part){i, (int32_t)hb_rng_range(rng, 1, STEPS)};
}

/* --- the slow way --- */

struct tally {
    int tried, step, turns, entries, alike;
};

struct slow {
    const struct made *m;
    int64_t steps;
    int64_t ns[HB_REPLAY_TIMES]; /* HB_REPLAY_NEVER: from no time on */
    int64_t *ended, *ready;      /* by op and by root, in this stretch */
    struct tally *tally;
};

static void slow_forget(struct slow *x)
{
    for (uint32_t i = 0; i < x->m->p.op_count; i++)
        x->ended[i] = HB_REPLAY_NEVER;
    for (uint32_t i = 0; i < x->m->p.buf_count; i++)
        x->ready[i] = HB_REPLAY_NEVER;
}

static bool slow_is_waited_for(const struct hb_program *p, uint32_t op)
{
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->ops[i].start == op)
            return true;
    return false;
}

static void slow_op(struct slow *x, uint32_t at)
{
    const struct hb_program *p = &x->m->p;
    const struct hb_op *op = &p->ops[at];
    const uint32_t *refs = &p->refs[op->refs_at];
    bool mark = op->kind == HB_OP_MARK, beside = op->stream != HB_STREAM_COMPUTE;
    int64_t from = op->start == HB_NONE ? HB_REPLAY_NEVER : x->ended[op->start];
    for (uint32_t i = 0; i < op->read_count; i++)
        from = hb_larger(from, x->ready[hb_program_root(p, refs[i])]);
    if (!mark)
        from = hb_larger(from, x->ns[op->stream]);
    if (!mark && beside)
        from = hb_larger(
            from, x->ns[slow_is_waited_for(p, at) ? (int)HB_STREAM_COMPUTE : (int)HB_REPLAY_EDGE]);
    const int64_t *table = x->m->timed.costs.by_steps[at];
    int64_t ns = table ? table[x->steps] : x->m->timed.costs.usual_ns[at];
    x->ended[at] = from > HB_REPLAY_NEVER / 2 ? from + ns : HB_REPLAY_NEVER;
    if (!mark)
        x->ns[op->stream] = x->ended[at];
    for (uint32_t i = 0; i < op->write_count; i++)
        x->ready[hb_program_root(p, refs[op->read_count + i])] = x->ended[at];
}

static int64_t slow_trips(const struct slow *x, uint32_t loop)
{
    enum hb_follow follow = x->m->outline.loop_follow[loop];
    return follow == HB_FOLLOW_NOTHING ? x->m->p.loops[loop].trips
           : follow == HB_FOLLOW_OUTER ? x->m->sized.outer[x->steps]
                                       : x->m->sized.inner[x->steps];
}

static void slow_stretch(struct slow *x, uint32_t around, uint32_t at, uint32_t end)
{
    const struct hb_program *p = &x->m->p;
    while (at < end) {
        uint32_t inner = HB_NONE;
        for (uint32_t i = 0; i < p->loop_count && inner == HB_NONE; i++)
            if (p->loops[i].parent == around && p->loops[i].first_op == at)
                inner = i;
        if (inner == HB_NONE) {
            slow_op(x, at++);
            continue;
        }
        for (int64_t trips = slow_trips(x, inner); trips > 0; trips--) {
            x->ns[HB_REPLAY_EDGE] = x->ns[HB_STREAM_COMPUTE];
            slow_stretch(x, inner, at, p->loops[inner].end_op);
        }
        x->ns[HB_REPLAY_EDGE] = x->ns[HB_STREAM_COMPUTE];
        at = p->loops[inner].end_op;
    }
}

static void slow_slot(struct slow *x, uint32_t slot)
{
    const struct made *m = x->m;
    const struct hb_slot *q = &m->slots[slot];
    x->steps = STEPS;
    if (!q->turns) {
        slow_forget(x);
        slow_stretch(x, m->around[slot], q->first_op, q->end_op);
    }
    for (uint32_t i = 0; i < m->part_count && q->turns; i++) {
        const struct hb_part *part = &m->parts[q->rising ? i : m->part_count - 1 - i];
        uint32_t turn = slot * GROUPS + part->item;
        x->steps = part->steps;
        slow_forget(x);
        slow_stretch(x, m->around[slot], m->firsts[turn], m->ends[turn]);
    }
}

static int64_t slow_step_ns(struct slow *x)
{
    const struct made *m = x->m;
    memset(x->ns, 0, sizeof x->ns);
    for (uint32_t q = 0, end; q < m->s.slot_count; q = end) {
        uint32_t loop = m->around[q];
        for (end = q + 1; loop != HB_NONE && end < m->s.slot_count && m->around[end] == loop;)
            end++;
        for (int64_t i = 0; i < (loop == HB_NONE ? 1 : m->p.loops[loop].trips); i++) {
            if (loop != HB_NONE)
                x->ns[HB_REPLAY_EDGE] = x->ns[HB_STREAM_COMPUTE];
            for (uint32_t k = q; k < end; k++)
                slow_slot(x, k);
        }
        if (loop != HB_NONE)
            x->ns[HB_REPLAY_EDGE] = x->ns[HB_STREAM_COMPUTE];
    }
    int64_t most = 0;
    for (int i = 0; i < HB_STREAM_COUNT; i++)
        most = hb_larger(most, x->ns[i]);
    return most;
}

static int64_t slow_turns_ns(struct slow *x)
{
    int64_t sum = 0;
    for (uint32_t q = 0; q < x->m->s.slot_count; q++) {
        uint32_t loop = x->m->around[q];
        for (int i = 0; i < HB_REPLAY_TIMES; i++)
            x->ns[i] = i == HB_STREAM_COMPUTE ? 0 : HB_REPLAY_NEVER;
        if (x->m->slots[q].turns)
            slow_slot(x, q);
        sum += x->ns[HB_STREAM_COMPUTE] * (loop == HB_NONE ? 1 : x->m->p.loops[loop].trips);
    }
    return sum;
}

/* --- against it --- */

/* What comes of one time alone, and what is said where an item's turn leaves a time as it is. */
static void check_entry(struct slow *x, struct hb_replay *r, uint32_t slot,
                        const struct hb_part *part, int from, int to)
{
    const struct hb_matrix *m = hb_replay_turn(r, slot, part->item, part->steps);
    int64_t ns = hb_replay_turn_ns(r, part, slot, from, to), known = HB_REPLAY_NEVER;
    for (uint32_t k = 0; k < m->count; k++)
        if (m->entries[k].from == from && m->entries[k].to == to)
            known = m->entries[k].ns;
    if (!m->moved[to])
        known = to == from ? 0 : HB_REPLAY_NEVER;
    assert_true(ns == known && ns <= hb_larger(x->ns[to], HB_REPLAY_NEVER));
    x->tally->entries++;
    x->tally->alike += ns == x->ns[to];
}

static void check_turn(struct slow *x, struct hb_replay *r, uint32_t slot,
                       const struct hb_part *part)
{
    const struct made *m = x->m;
    uint32_t turn = slot * GROUPS + part->item;
    for (int from = 0; from < HB_REPLAY_TIMES; from++) {
        for (int n = 0; n < HB_REPLAY_TIMES; n++)
            x->ns[n] = n == from ? 0 : HB_REPLAY_NEVER;
        x->steps = part->steps;
        slow_forget(x);
        slow_stretch(x, m->around[slot], m->firsts[turn], m->ends[turn]);
        for (int to = 0; to < HB_REPLAY_TIMES; to++)
            check_entry(x, r, slot, part, from, to);
    }
}

static void check_turns(struct slow *x, struct hb_replay *r)
{
    for (uint32_t q = 0; q < x->m->s.slot_count; q++)
        for (uint32_t i = 0; x->m->slots[q].turns && i < GROUPS; i++)
            for (int32_t steps = 1; steps <= STEPS; steps += 2)
                check_turn(x, r, q, &(struct hb_part){i, steps});
}

static void open_slow(struct slow *x, const struct made *m, struct hb_arena *a, struct tally *t)
{
    *x = (struct slow){.m = m, .tally = t};
    x->ended = hb_arena_alloc(a, m->p.op_count, sizeof *x->ended);
    x->ready = hb_arena_alloc(a, m->p.buf_count, sizeof *x->ready);
}

static void check(struct made *m, struct hb_arena *a, struct tally *t)
{
    struct slow x;
    open_slow(&x, m, a, t);
    struct hb_replay *r = hb_replay_open(a, &m->s);
    int64_t slow_ns = slow_step_ns(&x), ns = hb_replay_bound_ns(r, m->parts, m->part_count);
    assert_true(ns <= slow_ns);
    assert_true(ns == hb_replay_bound_ns(r, m->parts, m->part_count));
    t->tried++;
    t->step += ns == slow_ns;
    slow_ns = slow_turns_ns(&x);
    ns = hb_replay_turns_ns(r, m->parts, m->part_count);
    assert_true(ns <= slow_ns);
    t->turns += ns == slow_ns;
    check_turns(&x, r);
}

static void test_every_trip_that_is_not_run(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(97);
    struct tally t = {0};
    for (int i = 0; i < PROGRAMS; i++) {
        struct hb_arena *a = hb_arena_new();
        struct made m;
        make(&m, &rng, a);
        check(&m, a, &t);
        hb_arena_free(a);
    }
    print_message("# of %d steps %d alike, turns %d, %d of %d entries\n", t.tried, t.step, t.turns,
                  t.alike, t.entries);
    assert_true(t.tried - t.step <= 6 && t.tried - t.turns <= 6 && t.entries - t.alike <= 420);
}

/* Beyond what can be run: every so many trips more take as long as the ones before. */
static void check_far(struct made *m, struct hb_rng *rng, struct hb_arena *a, struct tally *t)
{
    struct slow x;
    int64_t near_ns[2], far_ns;
    uint32_t loop = (uint32_t)hb_rng_range(rng, 0, m->p.loop_count - 1);
    if (m->outline.loop_follow[loop] != HB_FOLLOW_NOTHING)
        return;
    open_slow(&x, m, a, t);
    for (int i = 0; i < 2; i++) {
        m->p.loops[loop].trips = NEAR_TRIPS + i * MORE_TRIPS;
        near_ns[i] = slow_step_ns(&x);
    }
    m->p.loops[loop].trips = NEAR_TRIPS + FAR_TIMES * MORE_TRIPS;
    far_ns = hb_replay_bound_ns(hb_replay_open(a, &m->s), m->parts, m->part_count);
    t->tried++;
    t->step += far_ns == near_ns[0] + FAR_TIMES * (near_ns[1] - near_ns[0]);
}

static void test_trips_beyond_what_can_be_run(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(101);
    struct tally t = {0};
    for (int i = 0; i < FAR_PROGRAMS; i++) {
        struct hb_arena *a = hb_arena_new();
        struct made m;
        make(&m, &rng, a);
        if (m.p.loop_count > 0)
            check_far(&m, &rng, a, &t);
        hb_arena_free(a);
    }
    print_message("# of %d far ones %d as long as is left of them\n", t.tried, t.step);
    assert_true(t.tried > 600 && t.tried - t.step <= 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_trip_that_is_not_run),
                                       cmocka_unit_test(test_trips_beyond_what_can_be_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
