/* solver/trip_floor: what a trip waits for whatever the policy, by hand. */
#include "tests/unit/made_ops.h"

#include "solver/trip_floor.h"

enum { MOST_OPS = 16, GATHER_NS = 100, TURN_NS = 10, WORK_NS = 30, TRIPS = 4 };

static bool optional[MOST_OPS];
static int64_t cost_ns[MOST_OPS];
static const int64_t *by_steps[MOST_OPS];

static int start(void **state)
{
    (void)state;
    start_ops();
    memset(optional, 0, sizeof optional);
    return 0;
}

static void op(enum hb_op_kind kind, enum hb_stream stream, int64_t ns, uint32_t read,
               uint32_t write)
{
    cost_ns[prog.op_count] = ns;
    optional[prog.op_count] = kind == HB_OP_COPY;
    hb_program_add_op(&prog, (struct hb_op){.name = "op",
                                            .kind = kind,
                                            .stream = stream,
                                            .phase = HB_PHASE_BACKWARD,
                                            .start = HB_NONE});
    hb_program_read(&prog, read);
    hb_program_write(&prog, write);
}

static int64_t floor_ns(void)
{
    const struct hb_op_costs costs = {.usual_ns = cost_ns, .by_steps = by_steps};
    struct hb_trip_floor t;
    hb_trip_floor_init(&t, arena, &prog, hb_program_roots(arena, &prog), &costs, optional);
    return hb_trip_floor_ns(&t, 0, 1, TRIPS);
}

/* A weight is gathered, turned and multiplied by: the product waits for both. */
static void test_what_is_turned_is_waited_for(void **state)
{
    (void)state;
    uint32_t w = buf("w"), whole = buf("whole"), turned = buf("turned"), y = buf("y");
    uint32_t loop = hb_program_open_loop(&prog, "backward", TRIPS);
    op(HB_OP_ALL_GATHER, HB_STREAM_COLLECTIVE, GATHER_NS, w, whole);
    op(HB_OP_COPY, HB_STREAM_COMPUTE, TURN_NS, whole, turned);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, turned, y);
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_ns(), TRIPS * (GATHER_NS + TURN_NS + WORK_NS));
}

/* What comes out of a stack is there under a policy that keeps it, and only then. */
static void test_what_is_kept_is_not(void **state)
{
    (void)state;
    uint32_t w = buf("w"), whole = buf("whole"), stack = buf("stack"), kept = buf("kept");
    uint32_t y = buf("y");
    uint32_t loop = hb_program_open_loop(&prog, "backward", TRIPS);
    op(HB_OP_ALL_GATHER, HB_STREAM_COLLECTIVE, GATHER_NS, w, whole);
    op(HB_OP_COPY, HB_STREAM_COMPUTE, TURN_NS, stack, kept);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, kept, y);
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_ns(), TRIPS * WORK_NS);
}

/* Gathers of one stream come one after another, whatever is turned of them. */
static void test_turned_gathers_share_a_stream(void **state)
{
    (void)state;
    uint32_t w = buf("w"), loop = hb_program_open_loop(&prog, "backward", TRIPS);
    for (int i = 0; i < 2; i++) {
        uint32_t whole = buf("whole"), turned = buf("turned"), y = buf("y");
        op(HB_OP_ALL_GATHER, HB_STREAM_COLLECTIVE, GATHER_NS, w, whole);
        op(HB_OP_COPY, HB_STREAM_COMPUTE, TURN_NS, whole, turned);
        op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, turned, y);
    }
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_ns(), TRIPS * (2 * GATHER_NS + WORK_NS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_turned_is_waited_for, start, end_ops),
        cmocka_unit_test_setup_teardown(test_what_is_kept_is_not, start, end_ops),
        cmocka_unit_test_setup_teardown(test_turned_gathers_share_a_stream, start, end_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
