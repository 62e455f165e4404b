/* Why memory was refused, from what the figures are: the decision alone, without any text. */
#include "tests/unit/unit.h"

#include "sim/hlo/cause.h"

static struct unit unit;

static int start(void **state)
{
    (void)state;
    unit_start(&unit);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unit_end(&unit);
    return 0;
}

#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

static struct hb_ledger of(int64_t asked, int64_t room, int64_t capacity)
{
    struct hb_ledger l = hb_ledger_untold();
    l.asked = asked;
    l.room = room;
    l.capacity = capacity;
    return l;
}

static void assert_reason(const struct hb_ledger *l, enum hb_reason wanted)
{
    enum hb_reason found = hb_ledger_reason(l);
    if (found != wanted)
        fail_msg("%s\n  not: %s", hb_reason_text(unit.env.arena, l, found),
                 hb_reason_text(unit.env.arena, l, wanted));
}

/* What others hold is the cause only if it would have been enough, and more than anybody has. */
static void holders_are_weighed(void **state)
{
    (void)state;
    struct hb_ledger l = of(2 * GIB, 1 * GIB, 16 * GIB);
    assert_reason(&l, HB_REASON_HELD);
    l.others = 4 * GIB;
    assert_reason(&l, HB_REASON_OTHERS);
    l.others = GIB; /* enough, but little */
    assert_reason(&l, HB_REASON_HELD);
    l.fresh = true; /* ... unless nothing else is held */
    assert_reason(&l, HB_REASON_OTHERS);
    l = of(6 * GIB, 1 * GIB, 16 * GIB);
    l.others = 4 * GIB; /* much, but not enough */
    assert_reason(&l, HB_REASON_HELD);
    l.lost = 5 * GIB;
    assert_reason(&l, HB_REASON_LOST);
    l.lost = 4 * GIB - 100 * MIB; /* contexts and libraries */
    l.asked = 2 * GIB;
    l.others = -1;
    assert_reason(&l, HB_REASON_HELD);
    l = of(100 * MIB, 50 * MIB, 6 * GIB);
    l.lost = 2 * GIB; /* a third of a small card: a context and a desktop */
    assert_reason(&l, HB_REASON_HELD);
    l.lost = 2 * GIB + MIB;
    assert_reason(&l, HB_REASON_LOST);
}

static void idle_memory_is_fragmented(void **state)
{
    (void)state;
    struct hb_ledger l = of(2 * GIB, GIB, 16 * GIB);
    l.live = 12 * GIB;
    l.idle = 2 * GIB;
    assert_reason(&l, HB_REASON_IDLE);
    l.live = 15 * GIB; /* tensors fill the device */
    assert_reason(&l, HB_REASON_LIVE);
    l.live = 12 * GIB;
    l.asked = 3 * GIB; /* it would not have been enough */
    assert_reason(&l, HB_REASON_LIVE);
    l.asked = 100 * MIB;
    l.room = 50 * MIB;
    l.idle = GIB; /* what any allocator has */
    assert_reason(&l, HB_REASON_LIVE);
}

/* A pool gives one piece of what it has, a device any pages. */
static void room_is_a_limit_or_lies_in_pieces(void **state)
{
    (void)state;
    struct hb_ledger l = of(2 * GIB, 3 * GIB, 16 * GIB);
    assert_reason(&l, HB_REASON_ROOM);
    l.blur = 2 * GIB; /* figures so rounded say nothing */
    assert_reason(&l, HB_REASON_HELD);
    l.blur = 0;
    l.one_piece = true;
    assert_reason(&l, HB_REASON_PIECES);
    l.piece = GIB;
    assert_reason(&l, HB_REASON_PIECE);
    l.piece = 2 * GIB; /* it was no want of room */
    assert_reason(&l, HB_REASON_HELD);
    l = of(10 * MIB, 20 * MIB, 16 * GIB); /* the crumbs of a full device */
    assert_reason(&l, HB_REASON_HELD);
    l.allowed = 8 * GIB;
    assert_reason(&l, HB_REASON_SHARE);
    l.limited = true;
    assert_reason(&l, HB_REASON_LIMITED);
    l.card = 96 * GIB;
    assert_reason(&l, HB_REASON_CARD);
    l = of(4000 * GIB, GIB, 16 * GIB);
    assert_reason(&l, HB_REASON_ABSURD);
}

static void parts_of_programs_are_weighed(void **state)
{
    (void)state;
    struct hb_ledger l = of(20 * GIB, -1, 16 * GIB);
    l.named = true;
    l.total = l.asked;
    assert_reason(&l, HB_REASON_PROGRAM);
    l.packing = 3 * GIB; /* it would not fit without it */
    l.padding = 3 * GIB;
    l.outputs = 10 * GIB;
    l.arguments = 9 * GIB;
    l.buffer = 8 * GIB;
    assert_reason(&l, HB_REASON_PROGRAM);
    l.outputs = 10 * GIB + 1;
    assert_reason(&l, HB_REASON_OUTPUTS);
    l.arguments = 10 * GIB;
    assert_reason(&l, HB_REASON_ARGUMENTS);
    l.packing = 4 * GIB;
    assert_reason(&l, HB_REASON_PACKING);
    l.buffer = 8 * GIB + 1;
    assert_reason(&l, HB_REASON_HALF);
    l.padding = 4 * GIB;
    assert_reason(&l, HB_REASON_PADDING);
    l.copies = l.asked;
    assert_reason(&l, HB_REASON_COPIES);
}

static void requests_are_weighed(void **state)
{
    (void)state;
    struct hb_ledger l = of(4 * GIB, GIB, 16 * GIB);
    l.buffer = 3 * GIB;
    assert_reason(&l, HB_REASON_BUFFER);
    l.buffer = -1;
    l.tensor = true;
    assert_reason(&l, HB_REASON_TENSOR);
    l.loads = true;
    assert_reason(&l, HB_REASON_LOADS);
    l.asked = 17 * GIB;
    assert_reason(&l, HB_REASON_ABOVE);
    l.capacity = -1;
    l.loads = false;
    assert_reason(&l, HB_REASON_HELD);
    l.asked = 100 * GIB;
    assert_reason(&l, HB_REASON_LARGE);
    l = of(17 * GIB, GIB, 16 * GIB);
    l.one_piece = true;
    assert_reason(&l, HB_REASON_POOL);
    l = of(2 * MIB, -1, -1);
    assert_reason(&l, HB_REASON_LITTLE);
    l = hb_ledger_untold();
    assert_reason(&l, HB_REASON_NOTHING);
    l.pieces = true; /* somebody's word, where there are no figures */
    assert_reason(&l, HB_REASON_SAID);
    l.asked = GIB;
    assert_reason(&l, HB_REASON_HELD);
    l = hb_ledger_untold();
    l.named = true;
    assert_int_equal(hb_reason_cause(hb_ledger_reason(&l)), HB_CAUSE_SIZE);
}

/* More room never turns a refusal with room into a want of size, whatever else is told. */
static void room_decides_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 256; i++) {
        struct hb_ledger l = of(GIB, GIB + (i & 15) * GIB, 64 * GIB);
        l.tensor = i & 16;
        l.loads = i & 32;
        l.one_piece = i & 64;
        l.idle = i & 128 ? 4 * GIB : -1;
        enum hb_cause cause = hb_reason_cause(hb_ledger_reason(&l));
        if (l.room > 64 * GIB / 100 * 5)
            assert_int_equal(cause, l.one_piece ? HB_CAUSE_FRAGMENTATION : HB_CAUSE_LIMIT);
    }
}

static void sentences_have_their_figures(void **state)
{
    (void)state;
    struct hb_ledger l = of(6 * GIB, GIB, 16 * GIB);
    l.live = 12 * GIB;
    for (int i = 0; i < HB_REASON_COUNT; i++) {
        const char *text = hb_reason_text(unit.env.arena, &l, (enum hb_reason)i);
        assert_null(strchr(text, '{'));
        assert_null(strstr(text, "  "));
    }
    assert_non_null(strstr(hb_reason_text(unit.env.arena, &l, HB_REASON_TENSOR),
                           "A single tensor of 6.00 GiB, 38 % of the memory"));
    assert_non_null(strstr(hb_reason_text(unit.env.arena, &l, HB_REASON_LIVE),
                           "Tensors take 12.00 GiB, 75 % of the device"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holders_are_weighed),
        cmocka_unit_test(idle_memory_is_fragmented),
        cmocka_unit_test(room_is_a_limit_or_lies_in_pieces),
        cmocka_unit_test(parts_of_programs_are_weighed),
        cmocka_unit_test(requests_are_weighed),
        cmocka_unit_test(room_decides_alone),
        cmocka_unit_test(sentences_have_their_figures),
    };
    return cmocka_run_group_tests_name("cause", tests, start, end);
}
