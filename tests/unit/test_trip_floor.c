/* solver/trip_floor: what a trip waits for whatever the policy, by hand. */
#include "tests/unit/made_ops.h"

#include "solver/trip_floor.h"

enum { MOST_OPS = 16, GATHER_NS = 100, TURN_NS = 10, WORK_NS = 30, TRIPS = 4 };

static enum hb_phase phase;
static bool optional[MOST_OPS];
static int64_t cost_ns[MOST_OPS];
static const int64_t *by_steps[MOST_OPS];

static int start(void **state)
{
    (void)state;
    start_ops();
    memset(optional, 0, sizeof optional);
    phase = HB_PHASE_BACKWARD;
    return 0;
}

/* Of what it reads `more` may be HB_NONE. */
static void op_of_two(enum hb_op_kind kind, enum hb_stream stream, int64_t ns, uint32_t read,
                      uint32_t more, uint32_t write)
{
    cost_ns[prog.op_count] = ns;
    optional[prog.op_count] = kind == HB_OP_COPY;
    hb_program_add_op(
        &prog, (struct hb_op){
                   .name = "op", .kind = kind, .stream = stream, .phase = phase, .start = HB_NONE});
    hb_program_read(&prog, read);
    if (more != HB_NONE)
        hb_program_read(&prog, more);
    hb_program_write(&prog, write);
}

static void op(enum hb_op_kind kind, enum hb_stream stream, int64_t ns, uint32_t read,
               uint32_t write)
{
    op_of_two(kind, stream, ns, read, HB_NONE, write);
}

/* Of the last loop, after those before it. */
static int64_t floor_in(bool any_order)
{
    const struct hb_op_costs costs = {.usual_ns = cost_ns, .by_steps = by_steps};
    struct hb_trip_floor t;
    int64_t ns = 0;
    hb_trip_floor_init(&t, arena, &prog, hb_program_roots(arena, &prog), &costs, optional);
    t.any_order = any_order;
    for (uint32_t l = 0; l < prog.loop_count; l++)
        ns = hb_trip_floor_ns(&t, l, 1, TRIPS);
    return ns;
}

static int64_t floor_ns(void)
{
    return floor_in(false);
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

/* A copy of what another loop made is a policy's: one that saves the value has it there. */
static void test_copies_of_another_loop_are_no_turns(void **state)
{
    (void)state;
    uint32_t made = buf("made"), turned = buf("turned");
    uint32_t first = hb_program_open_loop(&prog, "first", TRIPS);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, buf("x"), made);
    hb_program_close_loop(&prog, first);
    uint32_t loop = hb_program_open_loop(&prog, "backward", TRIPS);
    op(HB_OP_COPY, HB_STREAM_COMPUTE, TURN_NS, made, turned);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, turned, buf("y"));
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_ns(), TRIPS * WORK_NS);
}

/* Nor are those that read another loop's beside this trip's: what is waited for is the later of
 * two. */
static void test_all_that_is_read_counts(void **state)
{
    (void)state;
    uint32_t whole = buf("whole"), turned = buf("turned"), y = buf("y"), z = buf("z");
    uint32_t loop = hb_program_open_loop(&prog, "backward", TRIPS);
    op(HB_OP_ALL_GATHER, HB_STREAM_COLLECTIVE, GATHER_NS, buf("w"), whole);
    op_of_two(HB_OP_COPY, HB_STREAM_COMPUTE, TURN_NS, whole, buf("x"), turned);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, turned, y);
    op(HB_OP_ALL_REDUCE, HB_STREAM_COLLECTIVE + 1, GATHER_NS, y, z);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, buf("x"), buf("other"));
    op_of_two(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, buf("x"), z, buf("dy"));
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_ns(), TRIPS * (WORK_NS + GATHER_NS + WORK_NS));
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

/* A sum that ends a trip, which the next begins with: it is waited for, and no second one behind
 * it. The first trip waits for none. */
static void test_what_the_trip_before_left_is_waited_for_once(void **state)
{
    (void)state;
    uint32_t summed = buf("summed"), y = buf("y");
    uint32_t loop = hb_program_open_loop(&prog, "backward", TRIPS);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, summed, y);
    op(HB_OP_ALL_REDUCE, HB_STREAM_COLLECTIVE, GATHER_NS, y, summed);
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_ns(), TRIPS * WORK_NS + (TRIPS - 1) * GATHER_NS);
}

/* What is made again, then a product. */
static uint32_t open_again(void)
{
    uint32_t x = buf("x"), loop = hb_program_open_loop(&prog, "backward", TRIPS);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, x, buf("again"));
    optional[0] = true;
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, x, buf("y"));
    return loop;
}

/* A weight is cast, gathered and multiplied by; between, so many products. */
static void gather_cast(enum hb_stream stream, int64_t gather_ns, int between)
{
    uint32_t cast = buf("cast"), whole = buf("whole");
    op(HB_OP_OTHER, HB_STREAM_COMPUTE, TURN_NS, buf("w"), cast);
    optional[prog.op_count - 1] = true;
    for (int i = 0; i < between; i++)
        op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, buf("x"), buf("y"));
    op(HB_OP_ALL_GATHER, stream, gather_ns, cast, whole);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, whole, buf("y"));
}

/* Behind what is made again a gather right behind its cast stands in the way, whatever came before;
 * one that stands apart from it, or where what is made again comes later, may hide behind that. */
static void test_gathers_in_turn_stop_compute(void **state)
{
    (void)state;
    uint32_t loop = open_again();
    gather_cast(HB_STREAM_COLLECTIVE, GATHER_NS, 0);
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_ns(), TRIPS * (WORK_NS + TURN_NS + GATHER_NS + WORK_NS));
    optional[1] = true;
    optional[0] = false;
    assert_int_equal(floor_ns(), TRIPS * (TURN_NS + GATHER_NS + WORK_NS));
}

static void test_a_gather_apart_hides(void **state)
{
    (void)state;
    uint32_t loop = open_again();
    gather_cast(HB_STREAM_COLLECTIVE, GATHER_NS, 1);
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_ns(), TRIPS * (TURN_NS + GATHER_NS + WORK_NS));
}

/* Of two streams those of the longer gathers stop compute, the others hide behind it. */
static void check_streams(int64_t first_ns, int64_t second_ns)
{
    uint32_t loop = open_again();
    gather_cast(HB_STREAM_COLLECTIVE, first_ns, 0);
    gather_cast(HB_STREAM_COLLECTIVE + 1, second_ns, 0);
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_ns(), TRIPS * (3 * WORK_NS + TURN_NS + GATHER_NS));
}

static void test_the_first_stream_stops_compute(void **state)
{
    (void)state;
    check_streams(GATHER_NS, GATHER_NS / 2);
}

static void test_the_second_stream_stops_compute(void **state)
{
    (void)state;
    check_streams(GATHER_NS / 2, GATHER_NS);
}

/* Only what is cast for it has a turn: not the longer gather behind a product. */
static void test_no_turn_without_a_cast(void **state)
{
    (void)state;
    uint32_t whole = buf("whole"), loop = open_again();
    op(HB_OP_ALL_GATHER, HB_STREAM_COLLECTIVE + 1, GATHER_NS + WORK_NS, buf("w"), whole);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, whole, buf("y"));
    gather_cast(HB_STREAM_COLLECTIVE, GATHER_NS, 0);
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_ns(), TRIPS * (3 * WORK_NS + TURN_NS + GATHER_NS));
}

static uint32_t gradient(const char *name)
{
    uint32_t index = buf(name);
    prog.bufs[index].category = HB_CAT_GRADIENTS;
    return index;
}

/* A gradient is summed up behind the gathers of its stream, though it is there before: so the next
 * trip's gather comes as much later as the sum holds the stream beyond the edge. */
static void test_sums_come_behind_gathers(void **state)
{
    (void)state;
    uint32_t dw = buf("dw"), y = buf("y"), whole = buf("whole");
    uint32_t loop = hb_program_open_loop(&prog, "backward", TRIPS);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, buf("x"), dw);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, buf("x"), y);
    op(HB_OP_ALL_GATHER, HB_STREAM_COLLECTIVE, GATHER_NS, y, whole);
    op(HB_OP_REDUCE_SCATTER, HB_STREAM_COLLECTIVE, GATHER_NS, dw, gradient("dw summed"));
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, whole, buf("z"));
    hb_program_close_loop(&prog, loop);
    enum { FIRST_NS = 2 * WORK_NS + GATHER_NS + WORK_NS, LEFT_NS = GATHER_NS - WORK_NS };
    assert_int_equal(floor_ns(), FIRST_NS + (TRIPS - 1) * (LEFT_NS + GATHER_NS + WORK_NS));
}

/* One behind the other as they are written, whichever is there first. */
static void test_sums_come_in_a_row(void **state)
{
    (void)state;
    uint32_t first = buf("dw 1"), second = buf("dw 2"), summed = gradient("dw 2 summed");
    uint32_t loop = hb_program_open_loop(&prog, "backward", TRIPS);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, summed, second);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, buf("x"), first);
    op(HB_OP_REDUCE_SCATTER, HB_STREAM_COLLECTIVE, GATHER_NS, first, gradient("dw 1 summed"));
    op(HB_OP_REDUCE_SCATTER, HB_STREAM_COLLECTIVE, GATHER_NS, second, summed);
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_ns(), TRIPS * 2 * WORK_NS + (TRIPS - 1) * 2 * GATHER_NS);
}

/* What is read off a stream that has something before it: in the forward pass all of that comes
 * first; in the backward pass what nothing reads only holds the stream for the next trip. */
static uint32_t two_gathers(void)
{
    uint32_t whole = buf("whole"), loop = hb_program_open_loop(&prog, "layers", TRIPS);
    op(HB_OP_ALL_GATHER, HB_STREAM_COLLECTIVE, GATHER_NS, buf("w"), buf("for later"));
    op(HB_OP_ALL_GATHER, HB_STREAM_COLLECTIVE, GATHER_NS, buf("w"), whole);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, whole, buf("y"));
    return loop;
}

static void test_streams_keep_order_forward(void **state)
{
    (void)state;
    phase = HB_PHASE_FORWARD;
    hb_program_close_loop(&prog, two_gathers());
    assert_int_equal(floor_ns(), TRIPS * (2 * GATHER_NS + WORK_NS));
}

static void test_streams_are_held_backward(void **state)
{
    (void)state;
    enum { FIRST_NS = GATHER_NS + WORK_NS, LEFT_NS = 2 * GATHER_NS - FIRST_NS };
    hb_program_close_loop(&prog, two_gathers());
    assert_int_equal(floor_ns(), FIRST_NS + (TRIPS - 1) * (LEFT_NS + FIRST_NS));
}

/* A gather that is started and waited for stands in the order of the compute stream, one that runs
 * by itself does not. */
static void check_start(bool waited)
{
    uint32_t begun = buf("begun"), whole = buf("whole");
    phase = HB_PHASE_FORWARD;
    uint32_t loop = hb_program_open_loop(&prog, "layers", TRIPS);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, buf("x"), buf("y"));
    op(HB_OP_ALL_GATHER, HB_STREAM_COLLECTIVE, GATHER_NS, buf("w"), begun);
    if (waited) { /* which need not touch it */
        op(HB_OP_DONE, HB_STREAM_COMPUTE, 0, buf("w"), whole);
        prog.ops[2].start = 1;
    } else {
        op(HB_OP_MARK, HB_STREAM_COMPUTE, 0, begun, whole);
    }
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, whole, buf("z"));
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_ns(), TRIPS * (WORK_NS * waited + GATHER_NS + WORK_NS));
}

static void test_what_is_started_keeps_its_place(void **state)
{
    (void)state;
    check_start(true);
}

static void test_what_starts_by_itself_does_not(void **state)
{
    (void)state;
    check_start(false);
}

/* In whatever order: each waits for what it reads, and compute for all of its own and for all that
 * it reads off another stream. */
static void test_in_any_order_sums_are_left(void **state)
{
    (void)state;
    uint32_t first = buf("first"), loop = hb_program_open_loop(&prog, "layers", TRIPS);
    op(HB_OP_ALL_GATHER, HB_STREAM_COLLECTIVE, GATHER_NS, buf("w"), first);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, first, buf("y"));
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, buf("x"), buf("y"));
    hb_program_close_loop(&prog, loop);
    assert_int_equal(floor_in(true), TRIPS * (GATHER_NS + WORK_NS));
    assert_int_equal(floor_in(false), TRIPS * (GATHER_NS + 2 * WORK_NS));
    cost_ns[2] = 2 * GATHER_NS;
    assert_int_equal(floor_in(true), TRIPS * (WORK_NS + 2 * GATHER_NS));
    uint32_t second = buf("second");
    loop = hb_program_open_loop(&prog, "others", TRIPS);
    op(HB_OP_ALL_GATHER, HB_STREAM_COLLECTIVE, GATHER_NS, buf("w"), first);
    op(HB_OP_ALL_GATHER, HB_STREAM_COLLECTIVE, GATHER_NS, buf("w"), second);
    op_of_two(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, first, second, buf("y"));
    hb_program_close_loop(&prog, loop);
    assert_true(floor_in(true) >= TRIPS * 2 * GATHER_NS);
}

static void test_loops_in_a_loop(void **state)
{
    (void)state;
    uint32_t outer = hb_program_open_loop(&prog, "outer", TRIPS);
    uint32_t inner = hb_program_open_loop(&prog, "inner", TRIPS);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, buf("x"), buf("y"));
    hb_program_close_loop(&prog, inner);
    hb_program_close_loop(&prog, outer);
    uint32_t behind = hb_program_open_loop(&prog, "behind", TRIPS);
    op(HB_OP_MATMUL, HB_STREAM_COMPUTE, WORK_NS, buf("x"), buf("y"));
    hb_program_close_loop(&prog, behind);
    assert_true(hb_trip_floor_has_inner(&prog, outer));
    assert_false(hb_trip_floor_has_inner(&prog, inner));
    assert_false(hb_trip_floor_has_inner(&prog, behind));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_turned_is_waited_for, start, end_ops),
        cmocka_unit_test_setup_teardown(test_what_is_kept_is_not, start, end_ops),
        cmocka_unit_test_setup_teardown(test_copies_of_another_loop_are_no_turns, start, end_ops),
        cmocka_unit_test_setup_teardown(test_all_that_is_read_counts, start, end_ops),
        cmocka_unit_test_setup_teardown(test_turned_gathers_share_a_stream, start, end_ops),
        cmocka_unit_test_setup_teardown(test_what_the_trip_before_left_is_waited_for_once, start,
                                        end_ops),
        cmocka_unit_test_setup_teardown(test_gathers_in_turn_stop_compute, start, end_ops),
        cmocka_unit_test_setup_teardown(test_a_gather_apart_hides, start, end_ops),
        cmocka_unit_test_setup_teardown(test_the_first_stream_stops_compute, start, end_ops),
        cmocka_unit_test_setup_teardown(test_the_second_stream_stops_compute, start, end_ops),
        cmocka_unit_test_setup_teardown(test_no_turn_without_a_cast, start, end_ops),
        cmocka_unit_test_setup_teardown(test_sums_come_behind_gathers, start, end_ops),
        cmocka_unit_test_setup_teardown(test_sums_come_in_a_row, start, end_ops),
        cmocka_unit_test_setup_teardown(test_streams_keep_order_forward, start, end_ops),
        cmocka_unit_test_setup_teardown(test_streams_are_held_backward, start, end_ops),
        cmocka_unit_test_setup_teardown(test_what_is_started_keeps_its_place, start, end_ops),
        cmocka_unit_test_setup_teardown(test_what_starts_by_itself_does_not, start, end_ops),
        cmocka_unit_test_setup_teardown(test_in_any_order_sums_are_left, start, end_ops),
        cmocka_unit_test_setup_teardown(test_loops_in_a_loop, start, end_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
