/* sim/engine/heap: against the same rules written the slow way, against exact packing, and as
 * a layout: nothing overlaps, all is aligned, nothing lies below the live peak. */
#include "tests/unit/unit.h"

#include "base/rng.h"
#include "sim/engine/heap.h"

enum { MAX_ITEMS = 400 };

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

static uint32_t random_items(struct hb_rng *rng, uint32_t most, struct hb_heap_item *items)
{
    uint32_t count = (uint32_t)hb_rng_range(rng, 0, most);
    int64_t events = hb_rng_range(rng, 1, 3 * (int64_t)count + 1);
    int64_t largest = hb_rng_range(rng, 0, 1) ? 5 : 5000, towers = hb_rng_range(rng, 0, 1);
    for (uint32_t i = 0; i < count; i++) {
        int64_t from = hb_rng_range(rng, -1, events);
        int64_t life = hb_rng_range(rng, 0, hb_rng_range(rng, 0, 3) ? 4 : events);
        items[i] = (struct hb_heap_item){.bytes = hb_rng_range(rng, 0, largest),
                                         .start = (int32_t)from,
                                         .end = (int32_t)(from + life),
                                         .order = i,
                                         .offset = -7};
        if (towers && hb_rng_range(rng, 0, 15) == 0) /* a few reach far above the rest */
            items[i].bytes += largest * hb_rng_range(rng, 1, 40);
    }
    return count;
}

static bool share_event(const struct hb_heap_item *a, const struct hb_heap_item *b)
{
    return a->start <= b->end && b->start <= a->end;
}

/* ---- the rules again, slowly: each item looks at all placed ones, in order of address ---- */

static int compare_offsets(const void *a, const void *b)
{
    const struct hb_heap_item *left = *(const struct hb_heap_item *const *)a;
    const struct hb_heap_item *right = *(const struct hb_heap_item *const *)b;
    return left->offset < right->offset ? -1 : left->offset > right->offset;
}

static int64_t slow_offset(struct hb_heap_item *const *placed, uint32_t count,
                           const struct hb_heap_item *item)
{
    struct hb_heap_item *near[MAX_ITEMS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (placed[i]->bytes && share_event(placed[i], item))
            near[n++] = placed[i];
    if (n)
        qsort(near, n, sizeof *near, compare_offsets);
    int64_t top = 0, best_gap = INT64_MAX, best = -1;
    for (uint32_t i = 0; i < n; i++) {
        int64_t gap = near[i]->offset - top;
        if (gap >= item->bytes && gap < best_gap) {
            best_gap = gap;
            best = top;
        }
        if (near[i]->offset + near[i]->bytes > top)
            top = near[i]->offset + near[i]->bytes;
    }
    return best >= 0 ? best : top;
}

enum slow_order { BY_START, BY_SIZE, BY_DURATION };

static int64_t sort_value(const struct hb_heap_item *item, enum slow_order order, int field)
{
    int64_t duration = (int64_t)item->end - item->start;
    int64_t values[3][2] = {{item->start, 0}, {-item->bytes, -duration}, {-duration, -item->bytes}};
    return values[order][field];
}

static bool slow_before(const struct hb_heap_item *a, const struct hb_heap_item *b,
                        enum slow_order order)
{
    for (int field = 0; field < 2; field++)
        if (sort_value(a, order, field) != sort_value(b, order, field))
            return sort_value(a, order, field) < sort_value(b, order, field);
    return a->order < b->order;
}

static int64_t slow_pack(struct hb_heap_item *items, uint32_t count, enum slow_order order)
{
    struct hb_heap_item *by[MAX_ITEMS];
    int64_t height = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && slow_before(&items[i], by[at - 1], order); at--)
            by[at] = by[at - 1];
        by[at] = &items[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        by[i]->offset = by[i]->bytes ? slow_offset(by, i, by[i]) : 0;
        if (by[i]->offset + by[i]->bytes > height)
            height = by[i]->offset + by[i]->bytes;
    }
    return height;
}

static void round_items(struct hb_heap_item *items, uint32_t count, int64_t align)
{
    for (uint32_t i = 0; i < count; i++)
        items[i].bytes = (items[i].bytes + align - 1) / align * align;
}

static void assert_same_offsets(const struct hb_heap_item *a, const struct hb_heap_item *b,
                                uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(a[i].offset, b[i].offset);
}

static void in_order_follows_the_rule(void **state)
{
    (void)state;
    static struct hb_heap_item fast[MAX_ITEMS], slow[MAX_ITEMS];
    struct hb_rng rng = hb_rng_seed(11);
    for (int round = 0; round < 400; round++) {
        uint32_t count = random_items(&rng, round % 5 ? 40 : MAX_ITEMS, fast);
        memcpy(slow, fast, sizeof slow);
        round_items(slow, count, 16);
        int64_t height = hb_heap_pack(arena, fast, count, HB_HEAP_IN_ORDER, 16);
        assert_int_equal(height, slow_pack(slow, count, BY_START));
        assert_same_offsets(fast, slow, count);
    }
}

static void sorted_keeps_the_lower_of_two(void **state)
{
    (void)state;
    static struct hb_heap_item fast[MAX_ITEMS], by_size[MAX_ITEMS], by_duration[MAX_ITEMS];
    struct hb_rng rng = hb_rng_seed(12);
    int size_wins = 0, duration_wins = 0;
    for (int round = 0; round < 400; round++) {
        uint32_t count = random_items(&rng, round % 5 ? 40 : MAX_ITEMS, fast);
        round_items(fast, count, 4);
        memcpy(by_size, fast, sizeof fast);
        memcpy(by_duration, fast, sizeof fast);
        int64_t height = hb_heap_pack(arena, fast, count, HB_HEAP_SORTED, 4);
        int64_t size_height = slow_pack(by_size, count, BY_SIZE);
        int64_t duration_height = slow_pack(by_duration, count, BY_DURATION);
        bool duration_kept = duration_height < size_height;
        assert_int_equal(height, duration_kept ? duration_height : size_height);
        assert_same_offsets(fast, duration_kept ? by_duration : by_size, count);
        duration_wins += duration_kept;
        size_wins += size_height < duration_height;
    }
    assert_true(size_wins > 5 && duration_wins > 5);
}

/* ---- exact packing ---- */

/* The lowest heap there is: some order of addresses leads to it when each item in turn is put as
 * low as the items below it allow. */
static int64_t exact_height(struct hb_heap_item *items, uint32_t count, uint32_t placed,
                            int64_t height, int64_t best)
{
    if (height >= best)
        return best;
    if (placed == count)
        return height;
    for (uint32_t i = placed; i < count; i++) {
        struct hb_heap_item chosen = items[i];
        items[i] = items[placed];
        items[placed] = chosen;
        int64_t top = 0;
        for (uint32_t j = 0; j < placed; j++)
            if (share_event(&items[j], &chosen) && items[j].offset + items[j].bytes > top)
                top = items[j].offset + items[j].bytes;
        items[placed].offset = top;
        int64_t now = top + chosen.bytes > height ? top + chosen.bytes : height;
        best = exact_height(items, count, placed + 1, now, best);
        items[placed] = items[i];
        items[i] = chosen;
    }
    return best;
}

/* The live peak, by asking every event. */
static int64_t slow_live_peak(const struct hb_heap_item *items, uint32_t count, int32_t *out_at)
{
    int64_t peak = 0;
    *out_at = INT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        int64_t live = 0;
        for (uint32_t j = 0; j < count; j++)
            if (items[j].start <= items[i].start && items[i].start <= items[j].end)
                live += items[j].bytes;
        if (live > peak || (live == peak && items[i].start < *out_at)) {
            peak = live;
            *out_at = items[i].start;
        }
    }
    return peak;
}

static void no_heap_is_lower_than_exact(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(13);
    int above = 0;
    for (int round = 0; round < 1500; round++) {
        struct hb_heap_item items[7], copy[7];
        uint32_t count = random_items(&rng, 7, items);
        round_items(items, count, 8);
        memcpy(copy, items, sizeof copy);
        int32_t at;
        int64_t exact = exact_height(copy, count, 0, 0, INT64_MAX);
        int64_t live = slow_live_peak(items, count, &at);
        assert_true(exact >= live);
        for (int kind = 0; kind <= HB_HEAP_CACHING; kind++) {
            int64_t height = hb_heap_pack(arena, items, count, (enum hb_heap_kind)kind, 8);
            assert_true(height >= exact);
            above += height > exact;
        }
    }
    assert_true(above > 0);
}

static void assert_layout(const struct hb_heap_item *items, uint32_t count, int64_t height,
                          int64_t align)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_true(items[i].offset >= 0 && items[i].offset % align == 0);
        assert_true(items[i].offset + items[i].bytes <= height);
        for (uint32_t j = 0; j < i; j++)
            if (share_event(&items[i], &items[j]) && items[i].bytes && items[j].bytes)
                assert_true(items[i].offset + items[i].bytes <= items[j].offset ||
                            items[j].offset + items[j].bytes <= items[i].offset);
    }
}

static void layouts_hold(void **state)
{
    (void)state;
    static const int64_t aligns[] = {1, 64, 256, 16384};
    static struct hb_heap_item items[MAX_ITEMS];
    struct hb_rng rng = hb_rng_seed(14);
    for (int round = 0; round < 240; round++) {
        uint32_t count = random_items(&rng, round % 8 ? 50 : MAX_ITEMS, items);
        enum hb_heap_kind kind = (enum hb_heap_kind)(round % 3);
        int64_t align = kind == HB_HEAP_CACHING ? 256 : aligns[round % 4];
        int64_t height = hb_heap_pack(arena, items, count, kind, align);
        assert_layout(items, count, height, align);
        int32_t at = 0, slow_at = 0;
        int64_t live = hb_heap_live_peak(arena, items, count, align, &at);
        assert_int_equal(live, slow_live_peak(items, count, &slow_at));
        if (live)
            assert_int_equal(at, slow_at);
        assert_true(height >= live);
    }
}

static void doubling_all_doubles_the_heap(void **state)
{
    (void)state;
    static struct hb_heap_item once[MAX_ITEMS], twice[MAX_ITEMS];
    struct hb_rng rng = hb_rng_seed(15);
    for (int round = 0; round < 100; round++) {
        uint32_t count = random_items(&rng, 60, once);
        memcpy(twice, once, sizeof once);
        for (uint32_t i = 0; i < count; i++)
            twice[i].bytes *= 2;
        enum hb_heap_kind kind = round % 2 ? HB_HEAP_IN_ORDER : HB_HEAP_SORTED;
        int64_t height = hb_heap_pack(arena, once, count, kind, 32);
        assert_int_equal(hb_heap_pack(arena, twice, count, kind, 64), 2 * height);
    }
}

/* Worked by hand: C finds A's place too small and B's just right, though A's is lower. */
static void smallest_gap_before_lowest(void **state)
{
    (void)state;
    struct hb_heap_item items[] = {{4, 0, 1, 0, 0}, {1, 0, 9, 1, 0}, {3, 0, 1, 2, 0},
                                   {1, 0, 9, 3, 0}, {3, 2, 9, 4, 0}, {4, 3, 9, 5, 0},
                                   {1, 4, 9, 6, 0}};
    assert_int_equal(hb_heap_pack(arena, items, 7, HB_HEAP_IN_ORDER, 1), 10);
    assert_int_equal(items[4].offset, 5);
    assert_int_equal(items[5].offset, 0);
    assert_int_equal(items[6].offset, 9);
}

/* What ends at an event still stands in the way of what starts there. */
static void definitions_come_before_frees(void **state)
{
    (void)state;
    for (int kind = 0; kind <= HB_HEAP_CACHING; kind++) {
        struct hb_heap_item meet[] = {{256, 0, 5, 0, 0}, {256, 5, 9, 1, 0}};
        struct hb_heap_item pass[] = {{256, 0, 5, 0, 0}, {256, 6, 9, 1, 0}};
        assert_int_equal(hb_heap_pack(arena, meet, 2, (enum hb_heap_kind)kind, 256), 512);
        assert_int_equal(hb_heap_pack(arena, pass, 2, (enum hb_heap_kind)kind, 256), 256);
    }
}

static void nothing_and_huge_sizes(void **state)
{
    (void)state;
    for (int kind = 0; kind <= HB_HEAP_CACHING; kind++) {
        struct hb_heap_item huge[] = {{INT64_MAX / 3, 0, 5, 0, 0},
                                      {INT64_MAX / 3, 1, 3, 1, 0},
                                      {INT64_MAX / 3, 2, 4, 2, 0},
                                      {INT64_MAX / 3, 2, 4, 3, 0}};
        assert_int_equal(hb_heap_pack(arena, NULL, 0, (enum hb_heap_kind)kind, 64), 0);
        assert_int_equal(hb_heap_pack(arena, huge, 4, (enum hb_heap_kind)kind, 64), INT64_MAX);
    }
    int32_t at = 5;
    assert_int_equal(hb_heap_live_peak(arena, NULL, 0, 64, &at), 0);
    assert_int_equal(at, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order_follows_the_rule),
        cmocka_unit_test(sorted_keeps_the_lower_of_two),
        cmocka_unit_test(no_heap_is_lower_than_exact),
        cmocka_unit_test(layouts_hold),
        cmocka_unit_test(doubling_all_doubles_the_heap),
        cmocka_unit_test(smallest_gap_before_lowest),
        cmocka_unit_test(definitions_come_before_frees),
        cmocka_unit_test(nothing_and_huge_sizes),
    };
    return cmocka_run_group_tests_name("heap", tests, start, end);
}
