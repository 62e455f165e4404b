/* sim/graph: graphs small enough to be put in order by hand. */
#include "tests/unit/unit.h"

#include "base/arena.h"
#include "base/rng.h"
#include "sim/graph/step.h"

static struct unit u;
static struct hb_graph g;

static void open_graph(void)
{
    unit_start(&u);
    hb_graph_init(&g, u.env.arena);
    hb_graph_add_comp(&g);
}

/* An op that reads up to two others and makes so many bytes. */
static uint32_t op(uint32_t a, uint32_t b, int64_t bytes)
{
    uint32_t at = hb_graph_add_op(&g), operands[] = {a, b};
    for (int i = 0; i < 2; i++)
        if (operands[i] != HB_NONE)
            hb_graph_add_ref(&g, HB_GRAPH_OPERAND, operands[i]);
    for (int i = 0; i < 2; i++)
        if (operands[i] != HB_NONE && g.ops[operands[i]].value_count) {
            hb_graph_add_ref(&g, HB_GRAPH_USES, g.ops[operands[i]].first_value);
            hb_graph_touch(&g, g.ops[operands[i]].first_value, HB_GRAPH_OP, at);
        }
    hb_graph_add_value(&g, bytes);
    return at;
}

static void close_graph(uint32_t root)
{
    g.comps[g.ops[root].comp].root = root;
    hb_graph_touch(&g, g.ops[root].first_value, HB_GRAPH_END, g.ops[root].comp);
    hb_graph_close(&g);
}

static void assert_order(enum hb_order_kind kind, const uint32_t *wanted)
{
    const uint32_t *order = hb_graph_order_make(u.env.arena, &g, kind);
    for (uint32_t i = 0; i < g.op_count; i++)
        if (order[i] != wanted[i])
            fail_msg("%s: op %u stands at %u, not %u", hb_graph_order_name(kind), order[i], i,
                     wanted[i]);
}

/* XLA's own example (hlo_memory_scheduler.cc, ListScheduler): the list postpones B, whose result is
 * larger than what it reads.
 *
 *      +--> B ==> C ------+
 *   A -+--> D --> F ====> G
 *      +--> E ----+                                  ==> 2 bytes, --> 1 byte */
static void the_list_is_greedy(void **state)
{
    (void)state;
    open_graph();
    uint32_t a = op(HB_NONE, HB_NONE, 1), b = op(a, HB_NONE, 2), c = op(b, HB_NONE, 1);
    uint32_t d = op(a, HB_NONE, 1), e = op(a, HB_NONE, 1), f = op(d, e, 2), last = op(c, f, 0);
    close_graph(last);
    assert_order(HB_ORDER_LIST, (const uint32_t[]){a, e, d, f, b, c, last});
    assert_order(HB_ORDER_POST, (const uint32_t[]){a, b, c, d, e, f, last});
    struct hb_order_choice choice;
    hb_graph_choose(u.env.arena, &g, &choice);
    assert_int_equal(choice.bytes[HB_ORDER_LIST], 5);
    assert_int_equal(choice.bytes[HB_ORDER_POST], 5);
    assert_int_equal(choice.least, HB_ORDER_LIST); /* of equals the list */
    unit_end(&u);
}

/* What the program holds beside its buffers counts in no order. */
static void constants_weigh_nothing(void **state)
{
    (void)state;
    for (int constant = 0; constant < 2; constant++) {
        open_graph();
        uint32_t a = op(HB_NONE, HB_NONE, 100), b = op(a, HB_NONE, 3), end = op(b, a, 1);
        close_graph(end);
        g.values[g.ops[a].first_value].constant = constant != 0;
        struct hb_order_choice choice;
        hb_graph_choose(u.env.arena, &g, &choice);
        for (int order = 0; order < HB_ORDER_KINDS; order++)
            assert_int_equal(choice.bytes[order], constant ? 4 : 104);
        unit_end(&u);
    }
}

/* Of what frees as much, the one that became ready last; of these, first what more wait for. */
static void ties_of_the_list(void **state)
{
    (void)state;
    open_graph();
    uint32_t a = op(HB_NONE, HB_NONE, 4), b = op(HB_NONE, HB_NONE, 4);
    uint32_t c = op(HB_NONE, HB_NONE, 4), ab = op(a, b, 1), end = op(ab, c, 1),
             more = op(a, end, 1);
    close_graph(more);
    assert_order(HB_ORDER_LIST, (const uint32_t[]){a, c, b, ab, end, more});
    unit_end(&u);
}

/* A scalar goes first, whatever it costs. */
static void scalars_go_first(void **state)
{
    (void)state;
    open_graph();
    uint32_t a = op(HB_NONE, HB_NONE, 4), b = op(a, HB_NONE, 2), c = op(a, HB_NONE, 8);
    uint32_t end = op(b, c, 1);
    g.ops[c].scalar = true;
    close_graph(end);
    assert_order(HB_ORDER_LIST, (const uint32_t[]){a, c, b, end});
    unit_end(&u);
}

/* Extra users above decide before bytes, bytes before the name. */
static void depth_first_prefers_fans(void **state)
{
    (void)state;
    open_graph();
    uint32_t fan = op(HB_NONE, HB_NONE, 1), large = op(HB_NONE, HB_NONE, 100);
    uint32_t small = op(HB_NONE, HB_NONE, 10), two = op(small, large, 1);
    uint32_t left = op(two, fan, 1), end = op(left, fan, 1);
    close_graph(end);
    assert_order(HB_ORDER_DEPTH, (const uint32_t[]){fan, large, small, two, left, end});
    assert_order(HB_ORDER_POST, (const uint32_t[]){small, large, two, fan, left, end});
    unit_end(&u);
    open_graph();
    fan = op(HB_NONE, HB_NONE, 1);
    large = op(HB_NONE, HB_NONE, 1);
    end = op(fan, large, 1);
    g.ops[fan].rank = 7;
    close_graph(end);
    assert_order(HB_ORDER_DEPTH, (const uint32_t[]){large, fan, end});
    unit_end(&u);
}

/* What only has to run before comes before the operands; nobody reads it. */
static void order_without_data(void **state)
{
    (void)state;
    open_graph();
    uint32_t a = op(HB_NONE, HB_NONE, 1), b = op(HB_NONE, HB_NONE, 1), end = hb_graph_add_op(&g);
    hb_graph_add_ref(&g, HB_GRAPH_OPERAND, a);
    hb_graph_add_ref(&g, HB_GRAPH_AFTER, b);
    hb_graph_add_ref(&g, HB_GRAPH_USES, g.ops[a].first_value);
    hb_graph_add_value(&g, 1);
    close_graph(end);
    assert_order(HB_ORDER_LIST, (const uint32_t[]){a, b, end});
    assert_order(HB_ORDER_DEPTH, (const uint32_t[]){a, b, end});
    unit_end(&u);
}

/* entry: x = given, s = op, w = loop(s) runs body, y = op(w); body: p = given, q = op(p), which
 * lies in p's place: what the loop carries counts twice as it starts, and beside it what waits. */
static void a_loops_start_is_not_its_own(void **state)
{
    (void)state;
    open_graph();
    uint32_t s = op(HB_NONE, HB_NONE, 100), waits = op(HB_NONE, HB_NONE, 7);
    uint32_t w = hb_graph_add_op(&g);
    hb_graph_add_ref(&g, HB_GRAPH_OPERAND, s);
    hb_graph_add_ref(&g, HB_GRAPH_USES, g.ops[s].first_value);
    hb_graph_add_ref(&g, HB_GRAPH_RUNS, 1);
    uint32_t carried = hb_graph_add_value(&g, 100), end = op(w, waits, 1);
    uint32_t body = hb_graph_add_comp(&g), p = op(HB_NONE, HB_NONE, 100), q = op(p, HB_NONE, 100);
    uint32_t inner = op(q, HB_NONE, 30);
    g.ops[p].given = g.ops[p].early = true;
    g.values[g.ops[p].first_value].place = g.values[g.ops[q].first_value].place = 0;
    g.values[carried].place = g.values[g.ops[s].first_value].place = 0;
    g.comps[body].root = q;
    hb_graph_touch(&g, g.ops[s].first_value, HB_GRAPH_START, body);
    hb_graph_touch(&g, g.ops[q].first_value, HB_GRAPH_END, body);
    close_graph(end);
    (void)inner;
    const uint32_t order[] = {s, waits, w, end, p, q, inner};
    assert_int_equal(hb_graph_estimate(u.env.arena, &g, order), 207);
    const uint32_t later[] = {s, w, waits, end, p, q, inner};
    assert_int_equal(hb_graph_estimate(u.env.arena, &g, later), 200);
    unit_end(&u);
}

/* A value that takes the place of one that dies there counts once, if either has it alone. */
static void heirs_count_once(void **state)
{
    (void)state;
    open_graph();
    uint32_t a = op(HB_NONE, HB_NONE, 50), b = op(a, HB_NONE, 50);
    const uint32_t order[] = {a, b};
    hb_graph_add_heir(&g, g.ops[b].first_value, g.ops[a].first_value);
    close_graph(b);
    assert_int_equal(hb_graph_estimate(u.env.arena, &g, order), 50);
    g.heir_count = 0;
    assert_int_equal(hb_graph_estimate(u.env.arena, &g, order), 100);
    unit_end(&u);
}

/* Of three that die there one leaves its place, whichever could; the others stay that long. */
static void one_of_many_leaves_its_place(void **state)
{
    (void)state;
    open_graph();
    uint32_t from[3], order[4];
    for (int i = 0; i < 3; i++)
        order[i] = from[i] = op(HB_NONE, HB_NONE, 50);
    uint32_t last = order[3] = hb_graph_add_op(&g);
    for (int i = 0; i < 3; i++)
        hb_graph_add_ref(&g, HB_GRAPH_OPERAND, from[i]);
    for (int i = 0; i < 3; i++)
        hb_graph_touch(&g, g.ops[from[i]].first_value, HB_GRAPH_OP, last);
    hb_graph_add_value(&g, 100);
    for (int i = 0; i < 3; i++)
        hb_graph_add_heir(&g, g.ops[last].first_value, g.ops[from[i]].first_value);
    close_graph(last);
    assert_int_equal(hb_graph_estimate(u.env.arena, &g, order), 200);
    unit_end(&u);
}

/* The last reader of the first value frees it, and goes before what makes less: nobody but the end
 * and who reads it uses a value. */
static void the_last_reader_frees(void **state)
{
    (void)state;
    for (int loops = 0; loops < 2; loops++) {
        open_graph();
        uint32_t a = op(HB_NONE, HB_NONE, 100), small = hb_graph_add_op(&g);
        hb_graph_add_ref(&g, HB_GRAPH_AFTER, a);
        hb_graph_add_value(&g, 5);
        uint32_t b = op(a, HB_NONE, 10), end = op(b, small, 1);
        uint32_t body = loops ? hb_graph_add_comp(&g) : 0;
        if (loops)
            g.comps[body].root = op(HB_NONE, HB_NONE, 1);
        close_graph(end);
        assert_order(HB_ORDER_LIST, (const uint32_t[]){a, b, small, end, end + 1});
        unit_end(&u);
    }
}

/* What starts soon follows what it reads, what awaits it stands before its user. */
static void starts_soon_and_waits_late(void **state)
{
    (void)state;
    open_graph();
    uint32_t a = op(HB_NONE, HB_NONE, 1), b = op(a, HB_NONE, 1), start = op(a, HB_NONE, 1);
    uint32_t done = op(start, HB_NONE, 1), c = op(b, HB_NONE, 1), end = op(c, done, 1);
    g.ops[start].soon = g.ops[done].late = true;
    close_graph(end);
    uint32_t row[] = {a, b, start, done, c, end};
    hb_graph_order_async(u.env.arena, &g, 0, row);
    const uint32_t wanted[] = {a, start, b, c, done, end};
    assert_memory_equal(row, wanted, sizeof wanted);
    unit_end(&u);
}

/* What starts behind another start, by its result or just after it, comes in its own turn: starts
 * are looked for where an op runs, not where one was brought forward. */
static void starts_behind_starts_take_their_turn(void **state)
{
    (void)state;
    open_graph();
    uint32_t a = op(HB_NONE, HB_NONE, 1), x = op(a, HB_NONE, 1), first = op(a, HB_NONE, 1);
    uint32_t second = op(first, HB_NONE, 1), third = hb_graph_add_op(&g);
    hb_graph_add_ref(&g, HB_GRAPH_AFTER, first);
    hb_graph_add_value(&g, 1);
    uint32_t y = op(x, HB_NONE, 1), both = op(second, third, 1), end = op(y, both, 1);
    g.ops[first].soon = g.ops[second].soon = g.ops[third].soon = true;
    close_graph(end);
    uint32_t row[] = {a, x, y, first, second, third, both, end};
    hb_graph_order_async(u.env.arena, &g, 0, row);
    const uint32_t wanted[] = {a, first, x, y, second, third, both, end};
    assert_memory_equal(row, wanted, sizeof wanted);
    unit_end(&u);
}

/* Both in a loop behind other ops; and what only runs after it waits for it as well. */
static void loops_start_soon_as_well(void **state)
{
    (void)state;
    open_graph();
    uint32_t s = op(HB_NONE, HB_NONE, 1), w = hb_graph_add_op(&g);
    hb_graph_add_ref(&g, HB_GRAPH_OPERAND, s);
    hb_graph_add_ref(&g, HB_GRAPH_RUNS, 1);
    hb_graph_add_value(&g, 1);
    uint32_t last = op(w, HB_NONE, 1);
    uint32_t body = hb_graph_add_comp(&g), a = op(HB_NONE, HB_NONE, 1), b = op(a, HB_NONE, 1);
    uint32_t start = op(a, HB_NONE, 1), done = op(start, HB_NONE, 1), c = op(b, HB_NONE, 1);
    uint32_t after = hb_graph_add_op(&g);
    hb_graph_add_ref(&g, HB_GRAPH_OPERAND, c);
    hb_graph_add_ref(&g, HB_GRAPH_AFTER, done);
    hb_graph_add_value(&g, 1);
    uint32_t end = op(after, HB_NONE, 1);
    g.ops[start].soon = g.ops[done].late = true;
    g.comps[body].root = end;
    close_graph(last);
    uint32_t row[] = {a, b, start, done, c, after, end};
    hb_graph_order_async(u.env.arena, &g, body, row);
    const uint32_t wanted[] = {a, start, b, c, done, after, end};
    assert_memory_equal(row, wanted, sizeof wanted);
    unit_end(&u);
}

enum { DRAWN = 12 };

/* Whether op reads what `from` makes, or runs after it. */
static bool follows(uint32_t at, uint32_t from, enum hb_graph_ref kind)
{
    const uint32_t *to = hb_graph_refs(&g, at, kind);
    for (uint32_t i = 0; i < hb_graph_ref_count(&g, at, kind); i++)
        if (to[i] == from)
            return true;
    return false;
}

static bool is_bound(uint32_t at, uint32_t from)
{
    return follows(at, from, HB_GRAPH_OPERAND) || follows(at, from, HB_GRAPH_AFTER);
}

/* All that at follows (or, not forward, all that follow it) are there. */
static bool has_all(const bool *there, uint32_t at, bool forward)
{
    for (uint32_t i = 0; i < g.op_count; i++)
        if ((forward ? is_bound(at, i) : is_bound(i, at)) && !there[i])
            return false;
    return true;
}

/* One walk, by asking every op: behind each those that may come once it is there. Readers come in
 * order of ops, what is read in the order in which it is. */
static void walk_slowly(const uint32_t *row, bool forward, uint32_t *out)
{
    static const enum hb_graph_ref kinds[] = {HB_GRAPH_OPERAND, HB_GRAPH_AFTER};
    bool there[DRAWN] = {false};
    uint32_t count = 0;
    for (uint32_t i = 0; i < g.op_count; i++) {
        uint32_t at = row[i];
        if (there[at])
            continue;
        there[at] = true;
        out[count++] = at;
        for (uint32_t n = 0; n < 2 * g.op_count; n++) {
            enum hb_graph_ref kind = kinds[n / g.op_count];
            uint32_t next = n % g.op_count;
            if (!forward && next >= hb_graph_ref_count(&g, at, kind))
                continue;
            next = forward ? next : hb_graph_refs(&g, at, kind)[next];
            bool asked = forward ? follows(next, at, kind) && g.ops[next].soon : g.ops[next].late;
            if (!asked || there[next] || !has_all(there, next, forward))
                continue;
            there[next] = true;
            out[count++] = next;
        }
    }
}

/* A few ops, each behind some of those before it. */
static void draw_graph(struct hb_rng *rng)
{
    open_graph();
    for (uint32_t i = 0; i < DRAWN; i++) {
        uint32_t at = hb_graph_add_op(&g);
        for (uint32_t k = 0; k < i; k++)
            if (hb_rng_range(rng, 0, 5) == 0)
                hb_graph_add_ref(&g, HB_GRAPH_OPERAND, k);
        for (uint32_t k = 0; k < i; k++)
            if (hb_rng_range(rng, 0, 7) == 0)
                hb_graph_add_ref(&g, HB_GRAPH_AFTER, k);
        g.ops[at].soon = hb_rng_range(rng, 0, 2) == 0;
        g.ops[at].late = hb_rng_range(rng, 0, 2) == 0;
        hb_graph_add_value(&g, 1);
    }
    close_graph(DRAWN - 1);
}

static void drawn_graphs_move_as_if_asked_one_by_one(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(5);
    for (int n = 0; n < 300; n++) {
        uint32_t row[DRAWN], early[DRAWN], back[DRAWN], late[DRAWN];
        draw_graph(&rng);
        for (uint32_t i = 0; i < DRAWN; i++)
            row[i] = i;
        walk_slowly(row, true, early);
        for (uint32_t i = 0; i < DRAWN; i++)
            back[i] = early[DRAWN - 1 - i];
        walk_slowly(back, false, late);
        hb_graph_order_async(u.env.arena, &g, 0, row);
        for (uint32_t i = 0; i < DRAWN; i++)
            assert_int_equal(row[i], late[DRAWN - 1 - i]);
        unit_end(&u);
    }
}

enum { SHIFTED = 9, BEFORE = 5 };

/* A computation of ops that each read some of those before them. */
static void draw_comp(struct hb_rng *rng, uint32_t ops)
{
    uint32_t first = g.op_count, rank = (uint32_t)hb_rng_range(rng, 1, 1000);
    for (uint32_t i = 0; i < ops; i++) {
        uint32_t at = hb_graph_add_op(&g), reads = i ? (uint32_t)hb_rng_next(rng) : 0;
        uint32_t after = i && hb_rng_range(rng, 0, 3) == 0 ? (uint32_t)hb_rng_next(rng) : 0;
        reads &= (uint32_t)hb_rng_next(rng) & ((1u << i) - 1);
        after &= (uint32_t)hb_rng_next(rng) & ((1u << i) - 1) & ~reads;
        for (uint32_t k = 0; k < i; k++)
            if (reads >> k & 1)
                hb_graph_add_ref(&g, HB_GRAPH_OPERAND, first + k);
        for (uint32_t k = 0; k < i; k++)
            if (after >> k & 1)
                hb_graph_add_ref(&g, HB_GRAPH_AFTER, first + k);
        for (uint32_t k = 0; k < i; k++)
            for (uint32_t v = 0; reads >> k & 1 && v < g.ops[first + k].value_count; v++) {
                hb_graph_add_ref(&g, HB_GRAPH_USES, g.ops[first + k].first_value + v);
                hb_graph_touch(&g, g.ops[first + k].first_value + v, HB_GRAPH_OP, at);
            }
        for (int64_t v = hb_rng_range(rng, 0, 2); v > 0; v--)
            hb_graph_add_value(&g, hb_rng_range(rng, 0, 4));
        g.ops[at].given = !reads && hb_rng_range(rng, 0, 1);
        g.ops[at].scalar = hb_rng_range(rng, 0, 9) == 0;
        g.ops[at].rank = rank = (rank * 7 + 13) % 1009; /* no two the same */
    }
    g.comps[g.ops[first].comp].root = first + ops - 1;
}

/* The list without a queue: all that is ready is looked at each time. */
struct slow_list {
    bool placed[SHIFTED], ready[SHIFTED];
    int64_t freed[SHIFTED];
    uint32_t stamps[SHIFTED], stamp;
};

static int64_t slow_freed(const struct slow_list *l, uint32_t at)
{
    int64_t sum = 0;
    if (g.ops[at].scalar)
        return INT64_MAX;
    for (uint32_t v = 0; v < g.ops[at].value_count && !g.ops[at].given; v++)
        sum -= g.values[g.ops[at].first_value + v].bytes;
    for (uint32_t v = 0; v < g.value_count; v++) {
        int others = 0;
        for (uint32_t i = 0; i < g.op_count; i++)
            others += i != at && !l->placed[i] && follows(i, v, HB_GRAPH_USES);
        if (follows(at, v, HB_GRAPH_USES) && !others && !g.ops[g.values[v].op].given)
            sum += g.values[v].bytes;
    }
    return sum;
}

static void slow_push(struct slow_list *l, uint32_t at)
{
    l->ready[at] = true;
    l->freed[at] = slow_freed(l, at);
    l->stamps[at] = ++l->stamp;
}

static uint32_t slow_best(const struct slow_list *l)
{
    uint32_t best = HB_NONE;
    for (uint32_t i = 0; i < g.op_count; i++) {
        if (!l->ready[i])
            continue;
        int64_t users = hb_graph_user_count(&g, i),
                than = best == HB_NONE ? 0 : hb_graph_user_count(&g, best);
        if (best == HB_NONE || l->freed[i] > l->freed[best] ||
            (l->freed[i] == l->freed[best] &&
             (users > than || (users == than && l->stamps[i] > l->stamps[best]))))
            best = i;
    }
    return best;
}

/* Those that wait for it, readers first; then those that free more now, as it reads. */
static void slow_place(struct slow_list *l, uint32_t at)
{
    static const enum hb_graph_ref kinds[] = {HB_GRAPH_OPERAND, HB_GRAPH_AFTER};
    l->placed[at] = true;
    l->ready[at] = false;
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < g.op_count; i++)
            if (follows(i, at, kinds[k]) && !l->ready[i] && has_all(l->placed, i, true))
                slow_push(l, i);
    for (uint32_t r = 0; r < hb_graph_ref_count(&g, at, HB_GRAPH_OPERAND); r++)
        for (uint32_t i = 0; i < g.op_count; i++)
            if (l->ready[i] &&
                follows(i, hb_graph_refs(&g, at, HB_GRAPH_OPERAND)[r], HB_GRAPH_OPERAND) &&
                l->freed[i] != slow_freed(l, i))
                slow_push(l, i);
}

static void check_list(const uint32_t *row)
{
    struct slow_list l = {.stamp = 0};
    for (uint32_t i = 0; i < g.op_count; i++)
        if (has_all(l.placed, i, true))
            slow_push(&l, i);
    for (uint32_t i = 0; i < g.op_count; i++) {
        uint32_t best = slow_best(&l);
        assert_int_equal(row[i], best);
        slow_place(&l, best);
    }
}

/* How a computation is put in order does not depend on where in the graph it stands; all of it
 * comes, each behind what it reads, in the list as if all were looked at each time. */
static void a_computation_is_ordered_by_itself(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint32_t alone[HB_ORDER_KINDS][SHIFTED];
        struct hb_rng rng = hb_rng_seed(seed);
        open_graph();
        draw_comp(&rng, SHIFTED);
        hb_graph_close(&g);
        for (int kind = 0; kind < HB_ORDER_KINDS; kind++) {
            bool there[SHIFTED] = {false};
            memcpy(alone[kind], hb_graph_order_make(u.env.arena, &g, (enum hb_order_kind)kind),
                   sizeof alone[kind]);
            for (int i = 0; i < SHIFTED; i++) {
                assert_true(!there[alone[kind][i]] && has_all(there, alone[kind][i], true));
                there[alone[kind][i]] = true;
            }
        }
        check_list(alone[HB_ORDER_LIST]);
        unit_end(&u);
        open_graph();
        for (int i = 0; i + 1 < BEFORE; i++)
            op(HB_NONE, HB_NONE, 3);
        uint32_t runs = hb_graph_add_op(&g);
        hb_graph_add_ref(&g, HB_GRAPH_RUNS, 1);
        g.comps[0].root = runs;
        hb_graph_add_comp(&g);
        rng = hb_rng_seed(seed);
        draw_comp(&rng, SHIFTED);
        hb_graph_close(&g);
        for (int kind = 0; kind < HB_ORDER_KINDS; kind++) {
            const uint32_t *row =
                hb_graph_order_make(u.env.arena, &g, (enum hb_order_kind)kind) + BEFORE;
            for (int i = 0; i < SHIFTED; i++)
                assert_int_equal(row[i], alone[kind][i] + BEFORE);
        }
        unit_end(&u);
    }
}

/* A loop hands back all that it is given: the list puts what makes less before it. */
static void a_loop_makes_what_it_is_given(void **state)
{
    (void)state;
    open_graph();
    uint32_t s = op(HB_NONE, HB_NONE, 100), w = hb_graph_add_op(&g);
    g.ops[s].given = true;
    hb_graph_add_ref(&g, HB_GRAPH_OPERAND, s);
    hb_graph_add_ref(&g, HB_GRAPH_USES, g.ops[s].first_value);
    hb_graph_add_ref(&g, HB_GRAPH_RUNS, 1);
    uint32_t carried = hb_graph_add_value(&g, 1), other = op(s, HB_NONE, 50), end = op(w, other, 1);
    uint32_t body = hb_graph_add_comp(&g), q = op(HB_NONE, HB_NONE, 1);
    g.comps[body].root = q;
    close_graph(end);
    (void)carried;
    assert_order(HB_ORDER_LIST, (const uint32_t[]){s, other, w, end, q});
    unit_end(&u);
}

static uint32_t program_buf(struct hb_program *p, const char *name, int64_t bytes)
{
    return hb_program_add_buf(
        p,
        (struct hb_buf){.name = name, .bytes = bytes, .plain_bytes = bytes, .alias_of = HB_NONE});
}

static void program_op(struct hb_program *p, uint32_t read, uint32_t write)
{
    hb_program_add_op(p, (struct hb_op){.name = "op", .start = HB_NONE});
    if (read != HB_NONE)
        hb_program_read(p, read);
    if (write != HB_NONE)
        hb_program_write(p, write);
}

/* arg -> cast; zeros; loop { temp = f(cast); zeros += temp }; out = g(zeros), in arg's place. */
static void a_program_becomes_a_graph(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_step_orders o;
    unit_start(&u);
    hb_program_init(&p, u.env.arena, "step", HB_XLA_TPU);
    uint32_t arg = program_buf(&p, "arg", 40), cast = program_buf(&p, "cast", 20);
    uint32_t zeros = program_buf(&p, "zeros", 40), temp = program_buf(&p, "temp", 7);
    uint32_t out = program_buf(&p, "out", 40);
    p.bufs[arg].argument = p.bufs[out].output = true;
    p.bufs[out].alias_of = arg;
    program_op(&p, arg, cast);
    program_op(&p, HB_NONE, zeros);
    uint32_t loop = hb_program_open_loop(&p, "loop", 3);
    program_op(&p, cast, temp);
    program_op(&p, temp, zeros);
    hb_program_close_loop(&p, loop);
    program_op(&p, zeros, out);
    hb_step_orders_find(u.env.arena, &p, &o);
    assert_int_equal(o.step.graph.comp_count, 2);
    assert_int_equal(o.step.argument_bytes, 40);
    /* arg, cast, temp, and at the moment of the sum both what is found and what is made of it. */
    for (int kind = 0; kind < HB_ORDER_KINDS; kind++)
        assert_int_equal(o.choice.bytes[kind], 40 + 20 + 7 + 2 * 40);
    assert_int_equal(o.choice.least, HB_ORDER_LIST);
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_computation_is_ordered_by_itself),
        cmocka_unit_test(the_list_is_greedy),
        cmocka_unit_test(constants_weigh_nothing),
        cmocka_unit_test(ties_of_the_list),
        cmocka_unit_test(scalars_go_first),
        cmocka_unit_test(depth_first_prefers_fans),
        cmocka_unit_test(order_without_data),
        cmocka_unit_test(a_loops_start_is_not_its_own),
        cmocka_unit_test(heirs_count_once),
        cmocka_unit_test(one_of_many_leaves_its_place),
        cmocka_unit_test(the_last_reader_frees),
        cmocka_unit_test(starts_soon_and_waits_late),
        cmocka_unit_test(drawn_graphs_move_as_if_asked_one_by_one),
        cmocka_unit_test(starts_behind_starts_take_their_turn),
        cmocka_unit_test(loops_start_soon_as_well),
        cmocka_unit_test(a_loop_makes_what_it_is_given),
        cmocka_unit_test(a_program_becomes_a_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
