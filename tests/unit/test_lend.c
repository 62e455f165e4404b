/* sim/engine/lend: against its rule written the slow way, each item asking every slot in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/rng.h"
#include "sim/engine/check.h"
#include "sim/engine/lend.h"
#include "sim/engine/live.h"

enum { MOST_ITEMS = 120, MOST_SLOTS = 37, EVENTS = 60 };

struct slow {
    const struct hb_heap_item *tenant[MOST_ITEMS];
    uint32_t slot[MOST_ITEMS];
    uint32_t count;
};

static int64_t draw(struct hb_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)(hb_rng_next(rng) % (uint64_t)(high - low + 1));
}

static bool takes(const struct slow *s, const struct hb_lend_slot *slots, uint32_t slot,
                  const struct hb_heap_item *item)
{
    const struct hb_lend_slot *own = &slots[slot];
    if (own->bytes < item->bytes || item->start <= own->after || item->end > own->until ||
        (item->end == own->until && item->bytes != own->bytes))
        return false;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->slot[i] == slot && s->tenant[i]->start <= item->end &&
            item->start <= s->tenant[i]->end)
            return false;
    return true;
}

static bool slow_place(struct slow *s, const struct hb_lend_slot *slots, uint32_t slot_count,
                       const struct hb_heap_item *item)
{
    for (uint32_t slot = 0; slot < slot_count; slot++)
        if (takes(s, slots, slot, item)) {
            s->tenant[s->count] = item;
            s->slot[s->count++] = slot;
            return true;
        }
    return false;
}

static bool is_before(const struct hb_heap_item *a, const struct hb_heap_item *b)
{
    return a->bytes > b->bytes || (a->bytes == b->bytes && a->order < b->order);
}

/* The orders of those that are left, in the items' own order. */
static uint32_t slow_lend(const struct hb_heap_item *items, uint32_t count,
                          const struct hb_lend_slot *slots, uint32_t slot_count, uint32_t *left)
{
    static struct slow s;
    const struct hb_heap_item *sorted[MOST_ITEMS];
    bool placed[MOST_ITEMS] = {false};
    uint32_t n = 0;
    s.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && is_before(&items[i], sorted[at - 1]); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = &items[i];
    }
    for (uint32_t i = 0; i < count; i++)
        placed[sorted[i] - items] = slow_place(&s, slots, slot_count, sorted[i]);
    for (uint32_t i = 0; i < count; i++)
        if (!placed[i])
            left[n++] = items[i].order;
    return n;
}

static void lends_as_the_rule_says(void **state)
{
    (void)state;
    struct hb_arena *arena = hb_arena_new();
    struct hb_rng rng = hb_rng_seed(77);
    int lent = 0, kept = 0;
    for (int round = 0; round < 2000; round++) {
        struct hb_heap_item items[MOST_ITEMS] = {{0}};
        struct hb_lend_slot slots[MOST_SLOTS];
        uint32_t wanted[MOST_ITEMS];
        uint32_t count = (uint32_t)draw(&rng, 0, MOST_ITEMS);
        uint32_t slot_count = (uint32_t)draw(&rng, 0, MOST_SLOTS);
        for (uint32_t i = 0; i < slot_count; i++) {
            int32_t after = (int32_t)draw(&rng, -1, EVENTS);
            slots[i] = (struct hb_lend_slot){draw(&rng, 0, 8), after,
                                             after + (int32_t)draw(&rng, 0, EVENTS), 0};
        }
        for (uint32_t i = 0; i < count; i++) {
            int32_t start = (int32_t)draw(&rng, 0, EVENTS);
            items[i] = (struct hb_heap_item){.bytes = draw(&rng, 0, 8),
                                             .start = start,
                                             .end = start + (int32_t)draw(&rng, 0, 12),
                                             .order = i};
        }
        uint32_t n = slow_lend(items, count, slots, slot_count, wanted);
        assert_int_equal(hb_lend(arena, items, count, slots, slot_count), n);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(items[i].order, wanted[i]);
        kept += (int)n;
        lent += (int)(count - n);
    }
    assert_true(lent > 10000 && kept > 10000);
    hb_arena_free(arena);
}

static uint32_t add_buf(struct hb_program *p, int64_t bytes, uint32_t alias_of)
{
    return hb_program_add_buf(
        p, (struct hb_buf){
               .name = "b", .why = "", .bytes = bytes, .plain_bytes = bytes, .alias_of = alias_of});
}

static void add_op(struct hb_program *p, uint32_t read, uint32_t write)
{
    hb_program_add_op(p, (struct hb_op){.name = "op", .start = HB_NONE, .batch = 1});
    hb_program_read(p, read);
    hb_program_write(p, write);
}

/* A donated argument is empty behind op 2, which reads it last; an output of its own is from the
 * start. Both count as the heap rounds them. */
static void room_is_what_is_empty_before(void **state)
{
    (void)state;
    struct hb_arena *arena = hb_arena_new();
    struct hb_program p;
    struct hb_live *live;
    hb_program_init(&p, arena, "test", HB_XLA_GPU);
    uint32_t donated = add_buf(&p, 1000, HB_NONE), passed = add_buf(&p, 64, HB_NONE);
    uint32_t renewed = add_buf(&p, 1000, donated), own = add_buf(&p, 300, HB_NONE);
    p.bufs[donated].argument = true;
    p.bufs[renewed].output = p.bufs[own].output = true;
    add_op(&p, donated, passed);
    add_op(&p, passed, passed);
    add_op(&p, donated, passed);
    add_op(&p, passed, renewed);
    add_op(&p, passed, own);
    hb_program_check(&p);
    uint32_t count = hb_live_find(arena, &p, &live);
    assert_int_equal(hb_lend_room(arena, &p, live, count, INT32_MAX), 0); /* nothing is lent */
    p.outputs_lend = true;
    assert_int_equal(hb_lend_room(arena, &p, live, count, -1), 0);
    assert_int_equal(hb_lend_room(arena, &p, live, count, 0), 512);
    assert_int_equal(hb_lend_room(arena, &p, live, count, 2), 512);
    assert_int_equal(hb_lend_room(arena, &p, live, count, 3), 512 + 1024);
    assert_int_equal(hb_lend_room(arena, &p, live, count, INT32_MAX), 512 + 1024);
    hb_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lends_as_the_rule_says),
                                       cmocka_unit_test(room_is_what_is_empty_before)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
