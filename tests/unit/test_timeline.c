/* sim/engine/timeline and event: the curve agrees with the memory that was found, events come in
 * order, and what is skipped closes the gap between the second trip and the last. */
#include "tests/unit/unit.h"

#include "base/rng.h"
#include "sim/engine/event.h"
#include "sim/engine/live.h"
#include "sim/engine/timeline.h"
#include "tests/unit/random_program.h"

static struct hb_arena *arena;

static int start(void **state)
{
    (void)state;
    arena = hb_arena_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    hb_arena_free(arena);
    return 0;
}

/* Live sum of temporaries at a position, from the lives. */
static int64_t temps_at(const struct hb_memory *m, int32_t at)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < m->live_count; i++)
        if (m->offset_of[m->live[i].buf] >= 0 && m->live[i].start <= at && at <= m->live[i].end)
            sum += (m->live[i].bytes + m->heap_align_bytes - 1) / m->heap_align_bytes *
                   m->heap_align_bytes;
    return sum;
}

static void assert_curve(const struct hb_memory *m, const struct hb_timeline *line)
{
    int64_t still = m->peak_bytes - m->temp_bytes, highest = 0;
    for (uint32_t at = 0; at < line->count; at++) {
        int64_t sum = 0;
        for (int c = 0; c < HB_CATEGORY_COUNT; c++) {
            assert_true(line->category_bytes[at][c] >= 0);
            sum += line->category_bytes[at][c];
        }
        assert_int_equal(sum, line->total_bytes[at]);
        assert_int_equal(sum, still + temps_at(m, (int32_t)at));
        highest = sum > highest ? sum : highest;
    }
    if (m->live_temp_bytes)
        assert_int_equal(highest, still + m->live_temp_bytes);
    if (m->peak_op < 0 || m->peak_op >= (int32_t)line->count)
        return;
    for (int c = 0; c < HB_CATEGORY_COUNT; c++)
        if (c != HB_CAT_FRAGMENTATION)
            assert_int_equal(line->category_bytes[m->peak_op][c], m->category_bytes[c]);
}

static void the_curve_agrees_with_the_peak(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(61);
    for (int round = 0; round < 300; round++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct hb_program p;
        struct hb_memory m;
        struct hb_timeline line;
        random_program(arena, &rng, (struct random_shape){12, 2, 4, 50000}, &p);
        hb_run_memory(arena, &p, &m);
        hb_timeline_make(arena, &p, &m, &line);
        assert_int_equal(line.count, p.op_count);
        assert_curve(&m, &line);
        hb_arena_rewind(arena, mark);
    }
}

static void events_come_in_order(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(62);
    for (int round = 0; round < 200; round++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct hb_program p;
        struct hb_timing t;
        struct hb_event *events;
        random_program(arena, &rng, (struct random_shape){10, 2, 9, 100}, &p);
        int64_t *costs = hb_arena_alloc(arena, p.op_count, sizeof *costs);
        for (uint32_t i = 0; i < p.op_count; i++)
            costs[i] = hb_rng_range(&rng, 0, 3);
        hb_run_timing_with(arena, &p, costs, &t);
        uint32_t count = hb_event_list(arena, &t, &events), running[HB_STREAM_COUNT] = {0};
        assert_int_equal(count, 2 * t.span_count);
        for (uint32_t i = 0; i < count; i++) {
            const struct hb_op *op = &p.ops[events[i].op];
            if (i)
                assert_true(events[i].time_ns > events[i - 1].time_ns ||
                            (events[i].time_ns == events[i - 1].time_ns &&
                             events[i].seq > events[i - 1].seq));
            if (op->kind != HB_OP_MARK) /* a stream runs one op at a time */
                running[op->stream] += events[i].end ? UINT32_MAX : 1;
            assert_true(running[op->stream] <= 1);
        }
        hb_arena_rewind(arena, mark);
    }
}

static void skips_close_the_gap(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_timing t;
    int64_t cost_ns = 10;
    hb_program_init(&p, arena, "test", HB_XLA_TPU);
    for (int64_t trips = 1; trips <= 6; trips++) {
        hb_program_init(&p, arena, "test", HB_XLA_TPU);
        uint32_t loop = hb_program_open_loop(&p, "loop", trips);
        hb_program_add_op(&p, (struct hb_op){.name = "op", .kind = HB_OP_COPY, .start = HB_NONE});
        hb_program_close_loop(&p, loop);
        hb_run_timing_with(arena, &p, &cost_ns, &t);
        assert_int_equal(t.span_count, trips < 3 ? trips : 3);
        assert_int_equal(t.skip_count, trips > 3);
        if (t.skip_count) {
            assert_int_equal(t.skips[0].start_ns, 20);
            assert_int_equal(t.skips[0].end_ns, 10 * (trips - 1));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_curve_agrees_with_the_peak),
        cmocka_unit_test(events_come_in_order),
        cmocka_unit_test(skips_close_the_gap),
    };
    return cmocka_run_group_tests_name("timeline", tests, start, end);
}
