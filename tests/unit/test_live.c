/* sim/engine/live: cases worked by hand, then random programs against a trace written out. */
#include "tests/unit/unit.h"

#include "base/rng.h"
#include "sim/engine/check.h"
#include "sim/engine/live.h"
#include "tests/unit/random_program.h"
#include "tests/unit/slow_live.h"

static struct hb_arena *arena;
static struct hb_program prog;

static int start(void **state)
{
    (void)state;
    arena = hb_arena_new();
    hb_program_init(&prog, arena, "test", HB_XLA_TPU);
    return 0;
}

static int end(void **state)
{
    (void)state;
    hb_arena_free(arena);
    return 0;
}

static uint32_t buf(const char *name, uint32_t alias_of)
{
    return hb_program_add_buf(
        &prog, (struct hb_buf){.name = name, .why = "", .bytes = 8, .alias_of = alias_of});
}

/* An op that reads and writes what is not HB_NONE. */
static uint32_t op(uint32_t read, uint32_t write)
{
    uint32_t at = hb_program_add_op(&prog, (struct hb_op){.name = "op", .start = HB_NONE});
    if (read != HB_NONE)
        hb_program_read(&prog, read);
    if (write != HB_NONE)
        hb_program_write(&prog, write);
    return at;
}

static void assert_life(uint32_t b, int32_t first, int32_t last)
{
    struct hb_live *live;
    uint32_t count = hb_live_find(arena, &prog, &live);
    for (uint32_t i = 0; i < count; i++) {
        if (live[i].buf != b)
            continue;
        assert_int_equal(live[i].start, first);
        assert_int_equal(live[i].end, last);
        return;
    }
    fail_msg("buffer %u has no life", b);
}

static void from_first_writer_to_last_reader(void **state)
{
    (void)state;
    uint32_t a = buf("a", HB_NONE), b = buf("b", a), never = buf("never", HB_NONE);
    op(HB_NONE, HB_NONE);
    op(HB_NONE, a);
    op(a, b);
    op(b, HB_NONE);
    op(HB_NONE, HB_NONE);
    hb_program_check(&prog);
    assert_life(a, 1, 3);
    struct hb_live *live;
    assert_int_equal(hb_live_find(arena, &prog, &live), 1);
    assert_int_not_equal(live[0].buf, never);
}

static void an_alias_may_be_larger(void **state)
{
    (void)state;
    uint32_t a = buf("a", HB_NONE), b = buf("b", a);
    prog.bufs[b].bytes = 100;
    op(HB_NONE, a);
    op(a, b);
    struct hb_live *live;
    assert_int_equal(hb_live_find(arena, &prog, &live), 1);
    assert_int_equal(live[0].bytes, 100);
}

static void inside_a_body_or_around_it(void **state)
{
    (void)state;
    uint32_t before = buf("before", HB_NONE), body = buf("body", HB_NONE);
    uint32_t stack = buf("stack", HB_NONE), unread = buf("unread", HB_NONE);
    op(HB_NONE, before);
    uint32_t loop = hb_program_open_loop(&prog, "layers", 5);
    op(HB_NONE, HB_NONE);
    op(before, body);
    op(body, stack);
    op(HB_NONE, unread);
    op(HB_NONE, HB_NONE);
    hb_program_close_loop(&prog, loop);
    op(HB_NONE, HB_NONE);
    op(stack, HB_NONE);
    assert_life(before, 0, 5);
    assert_life(body, 2, 3);
    assert_life(stack, 1, 7);
    assert_life(unread, 4, 4);
}

static void assert_part(const struct hb_live_part *part, int32_t first, int32_t last)
{
    assert_int_equal(part->span.start, first);
    assert_int_equal(part->span.end, last);
}

/* Of values that ops hand on, two parts, from and to. */
static void assert_carried(int32_t first_from, int32_t first_to, int32_t next_from, int32_t next_to)
{
    struct hb_live *live;
    struct hb_live_part *parts;
    uint32_t count = hb_live_find(arena, &prog, &live);
    assert_int_equal(hb_live_carried(arena, &prog, live, count, &parts), 2);
    assert_part(&parts[0], first_from, first_to);
    assert_part(&parts[1], next_from, next_to);
}

/* What a loop writes for its next trip is one thing before it and another inside; the place of what
 * is renewed is empty from its last reader, an inner loop's too, to its writer. */
static void carried_in_parts(void **state)
{
    (void)state;
    uint32_t fixed = buf("fixed", HB_NONE), sum = buf("sum", HB_NONE);
    uint32_t carry = buf("carry", HB_NONE), next = buf("next", carry);
    prog.bufs[next].renews = true;
    op(HB_NONE, fixed);
    op(HB_NONE, sum);
    op(HB_NONE, carry);
    uint32_t loop = hb_program_open_loop(&prog, "iterations", 5);
    uint32_t inner = hb_program_open_loop(&prog, "layers", 2);
    op(carry, HB_NONE);
    op(fixed, sum);
    hb_program_close_loop(&prog, inner);
    op(HB_NONE, HB_NONE);
    op(HB_NONE, next);
    hb_program_close_loop(&prog, loop);
    op(next, HB_NONE);
    struct hb_live *live;
    struct hb_live_part *parts;
    uint32_t count = hb_live_find(arena, &prog, &live);
    assert_int_equal(hb_live_carried(arena, &prog, live, count, &parts), 6);
    assert_part(&parts[0], 0, 6);
    assert_part(&parts[1], 1, 2);
    assert_part(&parts[2], 3, 6);
    assert_part(&parts[3], 2, 2);
    assert_part(&parts[4], 3, 4);
    assert_part(&parts[5], 6, 7);
    assert_int_equal(hb_live_whole(arena, live, count, &parts), 3);
    assert_part(&parts[2], 2, 7);
}

/* What an alias takes over is placed with the life that it had before. */
static void an_alias_ends_what_is_placed(void **state)
{
    (void)state;
    uint32_t a = buf("a", HB_NONE), b = buf("b", a);
    op(HB_NONE, a);
    op(a, HB_NONE);
    op(a, b);
    op(b, HB_NONE);
    assert_carried(0, 1, 2, 3);
}

/* An argument that the first op renews is the given one before the step alone, and not up to the
 * loop that carries it. */
static void an_argument_ends_at_the_first_op(void **state)
{
    (void)state;
    uint32_t a = buf("a", HB_NONE), first = buf("first", a), next = buf("next", a);
    prog.bufs[a].argument = true;
    op(a, first);
    op(HB_NONE, HB_NONE);
    uint32_t loop = hb_program_open_loop(&prog, "iterations", 5);
    op(first, HB_NONE);
    op(HB_NONE, next);
    hb_program_close_loop(&prog, loop);
    op(next, HB_NONE);
    hb_program_check(&prog);
    assert_carried(-1, -1, 0, 4);
}

/* The same where the loop is the first thing that the step does. */
static void an_argument_ends_at_the_first_loop(void **state)
{
    (void)state;
    uint32_t a = buf("a", HB_NONE), next = buf("next", a);
    prog.bufs[a].argument = true;
    uint32_t loop = hb_program_open_loop(&prog, "iterations", 5);
    op(a, HB_NONE);
    op(HB_NONE, next);
    hb_program_close_loop(&prog, loop);
    op(next, HB_NONE);
    hb_program_check(&prog);
    assert_carried(-1, -1, 0, 2);
}

/* The loop's first op reads what its last renews: in between there is nothing, where there is an op
 * in between, and where the value is renewed. */
static void what_is_renewed_leaves_a_hole(void **state)
{
    (void)state;
    uint32_t a = buf("a", HB_NONE), next = buf("next", a);
    prog.bufs[a].argument = true;
    uint32_t loop = hb_program_open_loop(&prog, "iterations", 5);
    op(a, HB_NONE);
    op(HB_NONE, HB_NONE);
    op(HB_NONE, next);
    hb_program_close_loop(&prog, loop);
    op(next, HB_NONE);
    hb_program_check(&prog);
    assert_carried(-1, -1, 0, 3); /* the place is kept */
    prog.bufs[next].renews = true;
    struct hb_live *live;
    struct hb_live_part *parts;
    uint32_t count = hb_live_find(arena, &prog, &live);
    assert_int_equal(hb_live_carried(arena, &prog, live, count, &parts), 3);
    assert_part(&parts[1], 0, 0);
    assert_part(&parts[2], 2, 3);
    hb_program_init(&prog, arena, "test", HB_XLA_TPU);
    a = buf("a", HB_NONE), next = buf("next", a);
    prog.bufs[a].argument = prog.bufs[next].renews = true;
    loop = hb_program_open_loop(&prog, "iterations", 5);
    op(HB_NONE, HB_NONE);
    op(a, HB_NONE);
    op(HB_NONE, next); /* at once: no event is left between them */
    hb_program_close_loop(&prog, loop);
    assert_carried(-1, -1, 0, 2);
}

static void loops_in_loops(void **state)
{
    (void)state;
    uint32_t outer_only = buf("outer", HB_NONE), both = buf("both", HB_NONE);
    uint32_t siblings = buf("siblings", HB_NONE);
    op(HB_NONE, HB_NONE);
    uint32_t outer = hb_program_open_loop(&prog, "outer", 2);
    op(HB_NONE, outer_only);
    uint32_t first = hb_program_open_loop(&prog, "first", 3);
    op(HB_NONE, HB_NONE);
    op(outer_only, siblings);
    op(HB_NONE, both);
    hb_program_close_loop(&prog, first);
    op(HB_NONE, HB_NONE);
    uint32_t second = hb_program_open_loop(&prog, "second", 3);
    op(siblings, HB_NONE);
    op(HB_NONE, HB_NONE);
    hb_program_close_loop(&prog, second);
    op(HB_NONE, HB_NONE);
    hb_program_close_loop(&prog, outer);
    op(both, HB_NONE);
    assert_life(outer_only, 1, 4);
    assert_life(siblings, 2, 7);
    assert_life(both, 1, 9);
}

static void arguments_and_outputs(void **state)
{
    (void)state;
    uint32_t idle = buf("idle", HB_NONE), used = buf("used", HB_NONE), out = buf("out", HB_NONE);
    uint32_t donated = buf("donated", HB_NONE), updated = buf("updated", donated);
    prog.bufs[idle].argument = prog.bufs[used].argument = prog.bufs[donated].argument = true;
    prog.bufs[out].output = prog.bufs[updated].output = true;
    op(HB_NONE, HB_NONE);
    uint32_t loop = hb_program_open_loop(&prog, "loop", 2);
    op(used, out);
    op(donated, updated);
    hb_program_close_loop(&prog, loop);
    op(HB_NONE, HB_NONE);
    assert_life(idle, -1, -1);
    assert_life(used, -1, 2);
    assert_life(out, 1, 4);
    assert_life(donated, -1, 4);
}

static void an_output_of_a_loop(void **state)
{
    (void)state;
    uint32_t out = buf("out", HB_NONE);
    prog.bufs[out].output = true;
    uint32_t loop = hb_program_open_loop(&prog, "loop", 2);
    op(HB_NONE, HB_NONE);
    op(HB_NONE, out);
    hb_program_close_loop(&prog, loop);
    assert_life(out, 0, 2); /* the next trip finds it written */
}

/* An argument's place is free from its last reader to the first that writes a new value there. */
static void a_gap_ends_at_the_first_new_value(void **state)
{
    (void)state;
    uint32_t old = buf("old", HB_NONE), once = buf("once", old), twice = buf("twice", old);
    prog.bufs[old].argument = prog.bufs[twice].output = true;
    op(old, HB_NONE);
    op(old, HB_NONE);
    op(HB_NONE, HB_NONE);
    op(HB_NONE, once);
    op(once, twice);
    hb_program_check(&prog);
    const struct hb_heap_span *gaps = hb_live_gaps(arena, &prog);
    assert_int_equal(gaps[old].start, 1);
    assert_int_equal(gaps[old].end, 3);
}

static void asynchronous_ops_hold_until_done(void **state)
{
    (void)state;
    uint32_t from = buf("from", HB_NONE), to = buf("to", HB_NONE);
    op(HB_NONE, from);
    uint32_t copy = op(from, to);
    op(HB_NONE, HB_NONE);
    hb_program_add_op(&prog, (struct hb_op){.name = "d", .kind = HB_OP_DONE, .start = copy});
    op(HB_NONE, HB_NONE);
    hb_program_check(&prog);
    assert_life(from, 0, 3);
    assert_life(to, 1, 3);
}

static void random_programs_as_their_traces(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(31);
    uint32_t lives = 0, widened = 0;
    for (int round = 0; round < 250; round++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct hb_program p;
        struct random_shape shape = {round % 5 ? 10 : 30, 3, 4, 100};
        random_program(arena, &rng, shape, &p);
        struct hb_live *live;
        uint32_t count = hb_live_find(arena, &p, &live), at = 0;
        for (uint32_t i = 0; i < p.buf_count; i++) {
            struct hb_live slow;
            if (hb_program_root(&p, i) != i || !slow_live(&p, i, &slow))
                continue;
            assert_true(at < count);
            assert_int_equal(live[at].buf, i);
            assert_int_equal(live[at].start, slow.start);
            assert_int_equal(live[at].end, slow.end);
            assert_int_equal(live[at].bytes, slow.bytes);
            widened += slow.end > slow.start + 10;
            at++;
        }
        assert_int_equal(at, count);
        lives += count;
        hb_arena_rewind(arena, mark);
    }
    assert_true(lives > 5000 && widened > 300);
}

/* Programs of one op, two, three ...: what is kept by op or buffer is once as long as its room. */
static void a_chain_of_any_length(void **state)
{
    (void)state;
    for (int32_t ops = 1; ops <= 40; ops++) {
        hb_program_init(&prog, arena, "test", HB_XLA_TPU);
        for (int32_t i = 0; i < ops; i++)
            op(i ? (uint32_t)i - 1 : HB_NONE, buf("link", HB_NONE));
        hb_program_check(&prog);
        struct hb_live *live;
        struct hb_live_part *parts;
        const struct hb_heap_span *spans = hb_live_spans(arena, &prog);
        const struct hb_heap_span *gaps = hb_live_gaps(arena, &prog);
        uint32_t count = hb_live_find(arena, &prog, &live);
        assert_int_equal(count, ops);
        assert_int_equal(hb_live_apart(arena, &prog, live, count, &parts), ops);
        for (int32_t i = 0; i < ops; i++) {
            int32_t last = i + 1 < ops ? i + 1 : i;
            assert_life((uint32_t)i, i, last);
            assert_part(&parts[i], i, last);
            assert_int_equal(spans[i].start, i);
            assert_int_equal(spans[i].end, last);
            assert_int_equal(gaps[i].start, last);
            assert_int_equal(gaps[i].end, -1);
        }
        assert_int_equal(hb_live_carried(arena, &prog, live, count, &parts), ops);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(from_first_writer_to_last_reader, start, end),
        cmocka_unit_test_setup_teardown(an_alias_may_be_larger, start, end),
        cmocka_unit_test_setup_teardown(inside_a_body_or_around_it, start, end),
        cmocka_unit_test_setup_teardown(carried_in_parts, start, end),
        cmocka_unit_test_setup_teardown(an_alias_ends_what_is_placed, start, end),
        cmocka_unit_test_setup_teardown(an_argument_ends_at_the_first_op, start, end),
        cmocka_unit_test_setup_teardown(an_argument_ends_at_the_first_loop, start, end),
        cmocka_unit_test_setup_teardown(loops_in_loops, start, end),
        cmocka_unit_test_setup_teardown(what_is_renewed_leaves_a_hole, start, end),
        cmocka_unit_test_setup_teardown(arguments_and_outputs, start, end),
        cmocka_unit_test_setup_teardown(an_output_of_a_loop, start, end),
        cmocka_unit_test_setup_teardown(a_gap_ends_at_the_first_new_value, start, end),
        cmocka_unit_test_setup_teardown(asynchronous_ops_hold_until_done, start, end),
        cmocka_unit_test_setup_teardown(a_chain_of_any_length, start, end),
        cmocka_unit_test_setup_teardown(random_programs_as_their_traces, start, end),
    };
    return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
