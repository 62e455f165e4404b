/* solver/op_waits: what waits for an op whatever the order, by hand. */
#include "tests/unit/made_ops.h"

#include "sim/engine/check.h"
#include "sim/engine/live.h"
#include "solver/op_waits.h"

static bool optional[128];

/* Ops that stand before the loop. */
enum { AHEAD = 3 };

static int start(void **state)
{
    (void)state;
    start_ops();
    memset(optional, 0, sizeof optional);
    return 0;
}

/* Reads two of them and writes two, where there are any. */
static void op(enum hb_op_kind kind, uint32_t read, uint32_t other, uint32_t write, uint32_t more)
{
    const uint32_t reads[] = {read, other}, writes[] = {write, more};
    hb_program_add_op(
        &prog,
        (struct hb_op){.name = "op", .kind = kind, .phase = HB_PHASE_BACKWARD, .start = HB_NONE});
    for (int i = 0; i < 2; i++)
        if (reads[i] != HB_NONE)
            hb_program_read(&prog, reads[i]);
    for (int i = 0; i < 2; i++)
        if (writes[i] != HB_NONE)
            hb_program_write(&prog, writes[i]);
}

struct experts {
    uint32_t v, g, r, y, loop;
};

/* Tokens and a gradient out of one op:  A: v g. */
static struct experts begin_experts(void)
{
    uint32_t v = buf("tokens"), g = buf("gradient"), r = buf("turned"), y = buf("hidden");
    struct experts e = {v, g, r, y, 0};
    for (int i = 0; i < AHEAD; i++)
        op(HB_OP_ELEMENTWISE, HB_NONE, HB_NONE, buf("ahead"), HB_NONE);
    e.loop = hb_program_open_loop(&prog, "backward", 4);
    op(HB_OP_ELEMENTWISE, HB_NONE, HB_NONE, e.v, e.g);
    return e;
}

/* The weight's gradient from the tokens and what came between:  B: (v y). */
static void end_experts(const struct experts *e)
{
    op(HB_OP_MATMUL, e->v, e->y, HB_NONE, HB_NONE);
    hb_program_close_loop(&prog, e->loop);
    hb_program_check(&prog);
}

/* Between them the gradient is turned, and another follows from it:  turn: r(g) | t: y(r). */
static void make_experts(bool chained)
{
    struct experts e = begin_experts();
    op(HB_OP_COPY, e.g, HB_NONE, e.r, HB_NONE);
    op(HB_OP_MATMUL, chained ? e.r : HB_NONE, HB_NONE, e.y, HB_NONE);
    end_experts(&e);
    optional[AHEAD + 1] = true; /* as copies are */
}

static uint32_t find(struct hb_op_wait **out)
{
    struct hb_live *live;
    uint32_t count = hb_live_find(arena, &prog, &live);
    return hb_op_waits_find(arena, &prog, live, count, optional, out);
}

/* So for the op between and for the copy, which turns what the first one made. */
static void what_comes_before_and_after_waits(void **state)
{
    (void)state;
    struct hb_op_wait *waits;
    make_experts(true);
    assert_int_equal(find(&waits), 2);
    assert_true(waits[0].op == AHEAD + 1 && waits[0].buf == 0);
    assert_true(waits[1].op == AHEAD + 2 && waits[1].buf == 0);
}

/* An op that follows from nothing before it may come first. */
static void order_alone_says_nothing(void **state)
{
    (void)state;
    struct hb_op_wait *waits;
    make_experts(false);
    assert_int_equal(find(&waits), 0);
}

/* Who writes what another has written, and reads nothing, follows from nobody. */
static void writing_again_waits_for_nothing(void **state)
{
    (void)state;
    struct hb_op_wait *waits;
    struct experts e = begin_experts();
    op(HB_OP_MATMUL, e.g, HB_NONE, e.r, HB_NONE);
    op(HB_OP_MATMUL, HB_NONE, HB_NONE, e.r, e.y);
    end_experts(&e);
    assert_int_equal(find(&waits), 0);
}

/* What a policy may do without makes nothing wait, nor does what it leads to. */
static void an_op_of_some_policies_says_nothing(void **state)
{
    (void)state;
    struct hb_op_wait *waits;
    make_experts(true);
    for (uint32_t i = AHEAD; i < prog.op_count; i++) {
        bool own = optional[i];
        optional[i] = true;
        assert_int_equal(find(&waits), i == AHEAD + 1 ? 2 : 0);
        optional[i] = own;
    }
}

/* A chain of many: at each of them what the first one made beside waits for the last. */
static void many_ops_follow(void **state)
{
    (void)state;
    enum { CHAIN = 90 };
    struct hb_op_wait *waits;
    uint32_t v = buf("tokens"), next = buf("link"), last = next;
    for (int i = 0; i < AHEAD; i++)
        op(HB_OP_ELEMENTWISE, HB_NONE, HB_NONE, buf("ahead"), HB_NONE);
    uint32_t loop = hb_program_open_loop(&prog, "backward", 4);
    op(HB_OP_ELEMENTWISE, HB_NONE, HB_NONE, v, next);
    for (int i = 0; i < CHAIN; i++) {
        last = next;
        next = buf("link");
        op(HB_OP_MATMUL, last, HB_NONE, next, HB_NONE);
    }
    op(HB_OP_MATMUL, v, next, HB_NONE, HB_NONE);
    hb_program_close_loop(&prog, loop);
    hb_program_check(&prog);
    assert_int_equal(find(&waits), CHAIN);
    for (uint32_t i = 0; i < CHAIN; i++)
        assert_true(waits[i].op == AHEAD + 1 + i && waits[i].buf == v);
}

/* Of the forward pass the policies decide. */
static void the_forward_pass_is_left_alone(void **state)
{
    (void)state;
    struct hb_op_wait *waits;
    make_experts(true);
    for (uint32_t i = 0; i < prog.op_count; i++)
        prog.ops[i].phase = HB_PHASE_FORWARD;
    assert_int_equal(find(&waits), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_comes_before_and_after_waits, start, end_ops),
        cmocka_unit_test_setup_teardown(order_alone_says_nothing, start, end_ops),
        cmocka_unit_test_setup_teardown(writing_again_waits_for_nothing, start, end_ops),
        cmocka_unit_test_setup_teardown(an_op_of_some_policies_says_nothing, start, end_ops),
        cmocka_unit_test_setup_teardown(many_ops_follow, start, end_ops),
        cmocka_unit_test_setup_teardown(the_forward_pass_is_left_alone, start, end_ops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
