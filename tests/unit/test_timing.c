/* sim/engine/timing and stream: schedules by hand; loops whose closed form must equal running
 * every trip; the laws of in-order streams. */
#include "tests/unit/unit.h"

#include "base/rng.h"
#include "sim/engine/cost.h"
#include "sim/engine/run.h"
#include "tests/unit/random_program.h"
#include "tests/unit/slow_time.h"

enum { MAX_OPS = 64 };

static struct hb_arena *arena;
static struct hb_program prog;
static int64_t cost[MAX_OPS];

static int start(void **state)
{
    (void)state;
    arena = hb_arena_new();
    hb_program_init(&prog, arena, "test", HB_XLA_TPU);
    memset(cost, 0, sizeof cost);
    return 0;
}

static int end(void **state)
{
    (void)state;
    hb_arena_free(arena);
    return 0;
}

static uint32_t buf(void)
{
    return hb_program_add_buf(
        &prog, (struct hb_buf){.name = "b", .why = "", .bytes = 8, .alias_of = HB_NONE});
}

static uint32_t op(enum hb_stream stream, int64_t cost_ns, uint32_t read, uint32_t write)
{
    uint32_t at = hb_program_add_op(
        &prog,
        (struct hb_op){.name = "op", .kind = HB_OP_COPY, .stream = stream, .start = HB_NONE});
    cost[at] = cost_ns;
    if (read != HB_NONE)
        hb_program_read(&prog, read);
    if (write != HB_NONE)
        hb_program_write(&prog, write);
    return at;
}

static struct hb_timing run(void)
{
    struct hb_timing t;
    hb_run_timing_with(arena, &prog, cost, &t);
    return t;
}

static const enum hb_stream fsdp = HB_STREAM_COLLECTIVE + HB_AX_FSDP;

static void streams_overlap_until_inputs_are_missing(void **state)
{
    (void)state;
    uint32_t weight = buf(), x = buf();
    uint32_t gather = op(fsdp, 50, HB_NONE, weight);
    uint32_t before = op(HB_STREAM_COMPUTE, 30, HB_NONE, x);
    uint32_t use = op(HB_STREAM_COMPUTE, 10, weight, HB_NONE);
    struct hb_timing t = run();
    assert_int_equal(t.op_start_ns[gather], 0);
    assert_int_equal(t.op_end_ns[before], 30);
    assert_int_equal(t.op_start_ns[use], 50);
    assert_int_equal(t.step_ns, 60);
    assert_int_equal(t.busy_ns[HB_STREAM_COMPUTE], 40);
    assert_int_equal(t.busy_ns[fsdp], 50);
    assert_int_equal(t.exposed_ns[fsdp], 20);
    assert_int_equal(t.exposed_ns[HB_STREAM_COMPUTE], 0);
}

static void a_done_schedules_its_start(void **state)
{
    (void)state;
    uint32_t weight = buf(), x = buf();
    op(HB_STREAM_COMPUTE, 30, HB_NONE, x);
    uint32_t gather = op(fsdp, 50, HB_NONE, weight);
    op(HB_STREAM_COMPUTE, 20, HB_NONE, x);
    uint32_t done = hb_program_add_op(
        &prog, (struct hb_op){.name = "done", .kind = HB_OP_DONE, .start = gather});
    uint32_t after = op(HB_STREAM_COMPUTE, 1, HB_NONE, x);
    struct hb_timing t = run();
    assert_int_equal(t.op_start_ns[gather], 30);
    assert_int_equal(t.op_end_ns[done], 80);
    assert_int_equal(t.op_start_ns[after], 80);
    assert_int_equal(t.exposed_ns[fsdp], 30);
    assert_int_equal(t.step_ns, 81);
}

static void a_late_stream_is_exposed_at_the_end(void **state)
{
    (void)state;
    uint32_t x = buf(), host = buf();
    op(HB_STREAM_COMPUTE, 10, HB_NONE, x);
    op(HB_STREAM_D2H, 100, x, host);
    struct hb_timing t = run();
    assert_int_equal(t.step_ns, 110);
    assert_int_equal(t.exposed_ns[HB_STREAM_D2H], 100);
}

static void marks_take_no_stream(void **state)
{
    (void)state;
    uint32_t slow = buf(), seen = buf(), x = buf();
    op(HB_STREAM_H2D, 70, HB_NONE, slow);
    uint32_t mark = op(HB_STREAM_COMPUTE, 0, slow, seen);
    prog.ops[mark].kind = HB_OP_MARK;
    uint32_t free_op = op(HB_STREAM_COMPUTE, 5, HB_NONE, x);
    uint32_t waits = op(HB_STREAM_COMPUTE, 5, seen, HB_NONE);
    struct hb_timing t = run();
    assert_int_equal(t.op_start_ns[free_op], 0);
    assert_int_equal(t.op_start_ns[waits], 70);
    assert_int_equal(t.exposed_ns[HB_STREAM_H2D], 65);
}

/* A gather may start with its trip, but not in the trip before. */
static void loops_bound_how_early_an_op_starts(void **state)
{
    (void)state;
    uint32_t weight = buf(), x = buf();
    uint32_t loop = hb_program_open_loop(&prog, "layers", 10);
    op(HB_STREAM_COMPUTE, 30, HB_NONE, x);
    op(fsdp, 40, HB_NONE, weight);
    op(HB_STREAM_COMPUTE, 5, weight, x);
    hb_program_close_loop(&prog, loop);
    uint32_t late = op(fsdp, 1, HB_NONE, weight);
    struct hb_timing t = run();
    assert_int_equal(t.op_start_ns[late], 450);
    assert_int_equal(t.step_ns, 451);
    assert_int_equal(t.exposed_ns[fsdp], 101);
    assert_int_equal(t.busy_ns[fsdp], 401);
}

/* Copies that are slower than what they follow fall behind a little in each trip; compute first
 * feels it when it reads one back. */
static void a_backlog_is_found_late(void **state)
{
    (void)state;
    uint32_t x = buf(), host = buf(), slack = buf();
    uint32_t outer = op(HB_STREAM_H2D, 100000, HB_NONE, slack);
    uint32_t loop = hb_program_open_loop(&prog, "layers", 1000000);
    op(HB_STREAM_COMPUTE, 100, HB_NONE, x);
    op(HB_STREAM_D2H, 101, x, host);
    uint32_t wait = op(fsdp, 1, host, HB_NONE);
    hb_program_close_loop(&prog, loop);
    op(HB_STREAM_COMPUTE, 1, slack, HB_NONE);
    struct hb_timing t = run();
    assert_int_equal(t.op_end_ns[outer], 100000);
    assert_int_equal(t.step_ns, 100 + 101 * INT64_C(1000000) + 1);
    assert_int_equal(t.op_end_ns[wait], t.step_ns);
}

/* Wide apart, or so near to each other that streams fall behind by little in each trip. */
static void random_costs(struct hb_rng *rng, uint32_t count, int64_t *costs)
{
    static const int64_t most[] = {3, 100, 100000};
    int64_t scale = most[hb_rng_range(rng, 0, 2)], mode = hb_rng_range(rng, 0, 2);
    for (uint32_t i = 0; i < count; i++) {
        if (mode == 0)
            costs[i] = hb_rng_range(rng, 0, 3) * scale + hb_rng_range(rng, -1, 1);
        else
            costs[i] = hb_rng_range(rng, 0, 5) ? hb_rng_range(rng, 0, scale)
                                               : hb_rng_range(rng, 0, 20) * scale;
        costs[i] = costs[i] < 0 ? 0 : costs[i];
    }
}

static void set_costs(const struct hb_program *p, struct hb_rng *rng, int64_t *costs)
{
    random_costs(rng, p->op_count, costs);
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->ops[i].kind == HB_OP_MARK || p->ops[i].kind == HB_OP_DONE)
            costs[i] = 0;
}

static int compare_spans(const void *a, const void *b)
{
    const struct hb_span *l = a, *r = b;
    int64_t d[] = {l->start_ns - r->start_ns, (int64_t)l->op - r->op, l->trip - r->trip,
                   l->end_ns - r->end_ns};
    for (int i = 0; i < 4; i++)
        if (d[i])
            return d[i] < 0 ? -1 : 1;
    return 0;
}

static void assert_same_run(const struct hb_program *p, struct hb_timing *t, struct slow_time *slow)
{
    assert_int_equal(t->step_ns, slow->clock_ns[0]);
    for (int i = 0; i < HB_STREAM_COUNT; i++) {
        assert_int_equal(t->busy_ns[i], slow->busy_ns[i]);
        assert_int_equal(t->exposed_ns[i], slow->exposed_ns[i]);
    }
    for (uint32_t i = 0; i < p->op_count; i++) {
        assert_int_equal(t->op_start_ns[i], slow->first_ns[i]);
        assert_int_equal(t->op_end_ns[i], slow->last_ns[i]);
    }
    assert_int_equal(t->span_count, slow->span_count);
    if (t->span_count) {
        qsort(t->spans, t->span_count, sizeof *t->spans, compare_spans);
        qsort(slow->spans, slow->span_count, sizeof *slow->spans, compare_spans);
    }
    for (uint32_t i = 0; i < t->span_count; i++)
        assert_int_equal(compare_spans(&t->spans[i], &slow->spans[i]), 0);
}

static void loops_equal_running_every_trip(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(51);
    for (int round = 0; round < 1500; round++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct hb_program p;
        struct hb_timing t;
        struct slow_time slow;
        struct random_shape shape = {round % 3 ? 4 : 10, 3, round % 4 ? 12 : 200, 100};
        if (shape.most_trips > 50)
            shape.most_depth = 1;
        random_program(arena, &rng, shape, &p);
        int64_t *costs = hb_arena_alloc(arena, p.op_count, sizeof *costs);
        set_costs(&p, &rng, costs);
        hb_run_timing_with(arena, &p, costs, &t);
        slow_time_run(arena, &p, costs, &slow);
        assert_same_run(&p, &t, &slow);
        free(slow.spans);
        hb_arena_rewind(arena, mark);
    }
}

/* A few ops on two or three streams that read what was written in the trip before: backlogs that
 * are felt late, and steady states of more than one trip. */
static void random_race(struct hb_rng *rng)
{
    uint32_t bufs[4];
    hb_program_init(&prog, arena, "race", HB_XLA_GPU);
    for (int i = 0; i < 4; i++)
        op(HB_STREAM_COMPUTE, 0, HB_NONE, bufs[i] = buf());
    uint32_t loop = hb_program_open_loop(&prog, "race", hb_rng_range(rng, 100, 1500));
    int64_t base = hb_rng_range(rng, 20, 400);
    for (int64_t i = hb_rng_range(rng, 3, 7); i > 0; i--) {
        int64_t cost_ns = hb_rng_range(rng, 0, 1) ? base : base / 2;
        op((enum hb_stream)hb_rng_range(rng, 0, 3), cost_ns + hb_rng_range(rng, -2, 2),
           bufs[hb_rng_range(rng, 0, 3)], bufs[hb_rng_range(rng, 0, 3)]);
    }
    hb_program_close_loop(&prog, loop);
}

static void races_equal_running_every_trip(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(53);
    for (int round = 0; round < 10000; round++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct slow_time slow;
        random_race(&rng);
        struct hb_timing t = run();
        slow_time_run(arena, &prog, cost, &slow);
        assert_same_run(&prog, &t, &slow);
        free(slow.spans);
        hb_arena_rewind(arena, mark);
    }
}

/* Two streams with a backlog, of which one gains a nanosecond in each trip: what compute waits for
 * the one it waits less for the other, and the sum of it all is no straight line. */
static void a_backlog_that_shrinks_is_exposed_less_each_trip(void **state)
{
    (void)state;
    for (int64_t trips = 300; trips < 302; trips++) {
        struct slow_time slow;
        hb_program_init(&prog, arena, "backlogs", HB_XLA_GPU);
        uint32_t down = buf(), up = buf();
        op(HB_STREAM_D2H, 1000, HB_NONE, HB_NONE);
        op(HB_STREAM_H2D, 1001, HB_NONE, HB_NONE);
        uint32_t loop = hb_program_open_loop(&prog, "loop", trips);
        op(HB_STREAM_D2H, 500, HB_NONE, down);
        op(HB_STREAM_D2H, 499, HB_NONE, HB_NONE);
        op(HB_STREAM_H2D, 500, HB_NONE, up);
        op(HB_STREAM_H2D, 500, HB_NONE, HB_NONE);
        op(HB_STREAM_COMPUTE, 1, down, HB_NONE);
        op(HB_STREAM_COMPUTE, 1, up, HB_NONE);
        hb_program_close_loop(&prog, loop);
        struct hb_timing t = run();
        slow_time_run(arena, &prog, cost, &slow);
        assert_same_run(&prog, &t, &slow);
        free(slow.spans);
    }
}

static void faster_ops_never_lengthen_the_step(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(52);
    for (int round = 0; round < 300; round++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct hb_program p;
        struct hb_timing slower, faster;
        random_program(arena, &rng, (struct random_shape){8, 2, 30, 100}, &p);
        int64_t *costs = hb_arena_alloc(arena, p.op_count, sizeof *costs);
        set_costs(&p, &rng, costs);
        hb_run_timing_with(arena, &p, costs, &slower);
        int64_t total = slower.busy_ns[HB_STREAM_COMPUTE];
        for (int i = 0; i < HB_STREAM_COUNT; i++) {
            assert_true(slower.step_ns >= slower.busy_ns[i]);
            total += slower.exposed_ns[i];
        }
        assert_int_equal(total, slower.step_ns);
        for (uint32_t i = 0; i < p.op_count; i++)
            costs[i] -= hb_rng_range(&rng, 0, 3) ? 0 : hb_rng_range(&rng, 0, costs[i]);
        hb_run_timing_with(arena, &p, costs, &faster);
        assert_true(faster.step_ns <= slower.step_ns);
        hb_arena_rewind(arena, mark);
    }
}

/* Three loops in each other, 10^9 trips each: no time at all to run, and no overflow. */
static void absurd_trips_saturate(void **state)
{
    (void)state;
    uint32_t x = buf(), y = buf(), loops[3];
    for (int i = 0; i < 3; i++)
        loops[i] = hb_program_open_loop(&prog, "loop", 1000000000);
    op(HB_STREAM_COMPUTE, HB_COST_MAX_NS, HB_NONE, x);
    op(HB_STREAM_D2H, HB_COST_MAX_NS, x, y);
    for (int i = 2; i >= 0; i--)
        hb_program_close_loop(&prog, loops[i]);
    struct hb_timing t = run();
    assert_int_equal(t.step_ns, INT64_MAX);
    assert_int_equal(t.busy_ns[HB_STREAM_COMPUTE], INT64_MAX);
}

/* Only a jump gets there: a trip at a time would take longer than anyone waits. */
static void a_trillion_trips(void **state)
{
    (void)state;
    uint32_t x = buf(), y = buf();
    int64_t trips = INT64_C(1000000000000);
    uint32_t loop = hb_program_open_loop(&prog, "loop", trips);
    op(HB_STREAM_COMPUTE, 3, HB_NONE, x);
    op(HB_STREAM_D2H, 2, x, y);
    hb_program_close_loop(&prog, loop);
    assert_int_equal(run().step_ns, 3 * trips + 2);
}

static void flops_count_products_and_trips(void **state)
{
    (void)state;
    uint32_t x = buf();
    uint32_t copy = op(HB_STREAM_COMPUTE, 1, HB_NONE, x);
    uint32_t outer = hb_program_open_loop(&prog, "outer", 3);
    uint32_t inner = hb_program_open_loop(&prog, "inner", 5);
    uint32_t product = op(HB_STREAM_COMPUTE, 1, HB_NONE, x);
    hb_program_close_loop(&prog, inner);
    uint32_t attention = op(HB_STREAM_COMPUTE, 1, HB_NONE, x);
    hb_program_close_loop(&prog, outer);
    prog.ops[copy].flops = 1e9; /* not counted */
    prog.ops[product].kind = HB_OP_MATMUL;
    prog.ops[product].flops = 100;
    prog.ops[attention].kind = HB_OP_ATTENTION;
    prog.ops[attention].flops = 7;
    assert_true(run().flops == 1521);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(streams_overlap_until_inputs_are_missing, start, end),
        cmocka_unit_test_setup_teardown(a_done_schedules_its_start, start, end),
        cmocka_unit_test_setup_teardown(a_late_stream_is_exposed_at_the_end, start, end),
        cmocka_unit_test_setup_teardown(marks_take_no_stream, start, end),
        cmocka_unit_test_setup_teardown(loops_bound_how_early_an_op_starts, start, end),
        cmocka_unit_test_setup_teardown(a_backlog_is_found_late, start, end),
        cmocka_unit_test_setup_teardown(loops_equal_running_every_trip, start, end),
        cmocka_unit_test_setup_teardown(races_equal_running_every_trip, start, end),
        cmocka_unit_test_setup_teardown(a_backlog_that_shrinks_is_exposed_less_each_trip, start,
                                        end),
        cmocka_unit_test_setup_teardown(faster_ops_never_lengthen_the_step, start, end),
        cmocka_unit_test_setup_teardown(absurd_trips_saturate, start, end),
        cmocka_unit_test_setup_teardown(a_trillion_trips, start, end),
        cmocka_unit_test_setup_teardown(flops_count_products_and_trips, start, end),
    };
    return cmocka_run_group_tests_name("timing", tests, NULL, NULL);
}
