/* sim/engine/heap: against the same rules written the slow way, against exact packing, and as
 * a layout: nothing overlaps, all is aligned, nothing lies below the live peak. */
#include "tests/unit/unit.h"

#include "base/rng.h"
#include "sim/engine/heap.h"

enum { MAX_ITEMS = 6000, MOST = 400, MOST_SPANS = 4 };

#define ITEM(size, from, to, place)                                                                \
    {                                                                                              \
        .bytes = (size), .start = (from), .end = (to), .order = (place)                            \
    }

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

/* Gives some items spans: pieces of their life with holes between. */
static void split_lives(struct hb_rng *rng, struct hb_heap_item *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct hb_heap_span *spans = hb_arena_alloc(arena, MOST_SPANS, sizeof *spans);
        int32_t at = items[i].start, most = (int32_t)hb_rng_range(rng, 1, MOST_SPANS);
        uint32_t n = 0;
        for (; (int32_t)n < most && at <= items[i].end; n++) {
            int32_t to = at + (int32_t)hb_rng_range(rng, 0, 6);
            spans[n] = (struct hb_heap_span){at, to < items[i].end ? to : items[i].end};
            at = to + (int32_t)hb_rng_range(rng, 0, 8);
        }
        items[i].end = spans[n - 1].end;
        items[i].spans = hb_rng_range(rng, 0, 3) ? spans : NULL;
        items[i].span_count = items[i].spans ? n : 0;
    }
}

static bool meet(const struct hb_heap_item *a, const struct hb_heap_span *span)
{
    if (!a->spans)
        return a->start <= span->end && span->start <= a->end;
    for (uint32_t i = 0; i < a->span_count; i++)
        if (a->spans[i].start <= span->end && span->start <= a->spans[i].end)
            return true;
    return false;
}

static bool share_event(const struct hb_heap_item *a, const struct hb_heap_item *b)
{
    struct hb_heap_span life = {b->start, b->end};
    if (!b->spans)
        return meet(a, &life);
    for (uint32_t i = 0; i < b->span_count; i++)
        if (meet(a, &b->spans[i]))
            return true;
    return false;
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
    static struct hb_heap_item *near[MAX_ITEMS];
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

enum slow_order { BY_SIZE, BY_DURATION };

static int64_t sort_value(const struct hb_heap_item *item, enum slow_order order, int field)
{
    int64_t duration = (int64_t)item->end - item->start, first = duration;
    if (item->spans)
        first = (int64_t)item->spans[0].end - item->spans[0].start;
    int64_t values[2][2] = {{-item->bytes, -first}, {-duration, -item->bytes}};
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
    static struct hb_heap_item *by[MAX_ITEMS];
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

/* ---- in order of start, byte by byte ----
 * A byte below the top is free, taken, or lies between the end of what is taken or free and the
 * next multiple of the alignment, where nothing begins. */

enum { FREE, BETWEEN, TAKEN };

struct bytes {
    unsigned char *is;
    int64_t top;
    int64_t align;
};

static int64_t next_multiple(const struct bytes *b, int64_t at)
{
    return (at + b->align - 1) / b->align * b->align;
}

/* Free bytes with nothing but a rest between them are one place; what is free at the top is none.
 */
static void join_free(struct bytes *b)
{
    for (int64_t at = 1; at < b->top; at++) {
        int64_t to = next_multiple(b, at);
        if (b->is[at] != BETWEEN || b->is[at - 1] != FREE || to >= b->top || b->is[to] != FREE)
            continue;
        while (at < to)
            b->is[at++] = FREE;
    }
    int64_t end = b->top;
    while (end > 0 && b->is[end - 1] == BETWEEN)
        end--;
    if (end == 0 || b->is[end - 1] != FREE)
        return;
    while (end > 0 && b->is[end - 1] == FREE)
        end--;
    b->top = end;
}

static int64_t take_bytes(struct bytes *b, int64_t bytes, int64_t *out_end)
{
    int64_t best = -1, best_size = INT64_MAX;
    for (int64_t at = 0, end; at < b->top; at = end + 1) {
        for (end = at; end < b->top && b->is[end] == FREE; end++) {
        }
        if (end - at >= bytes && end - at < best_size) {
            best = at;
            best_size = end - at;
        }
    }
    int64_t at = best < 0 ? b->top : best, end = at + bytes, rest = next_multiple(b, end);
    *out_end = best >= 0 && rest >= at + best_size ? at + best_size : end;
    memset(b->is + at, TAKEN, (size_t)(*out_end - at));
    if (best < 0 || *out_end == end)
        memset(b->is + end, BETWEEN, (size_t)(rest - end));
    b->top = best < 0 ? rest : b->top;
    return at;
}

static int64_t slow_in_order(struct hb_heap_item *items, uint32_t count, int64_t align)
{
    static unsigned char room[1 << 16];
    static int64_t ends[MAX_ITEMS];
    struct bytes b = {room, 0, align};
    uint32_t placed = 0;
    int64_t height = 0;
    for (int32_t event = -1; placed < count; event++) {
        for (uint32_t i = 0; i < count; i++)
            if (items[i].end + 1 == event && items[i].bytes) {
                memset(b.is + items[i].offset, FREE, (size_t)(ends[i] - items[i].offset));
                join_free(&b);
            }
        for (uint32_t i = 0; i < count; i++) {
            if (items[i].start != event)
                continue;
            placed++;
            items[i].offset = items[i].bytes ? take_bytes(&b, items[i].bytes, &ends[i]) : 0;
            height = items[i].offset + items[i].bytes > height ? items[i].offset + items[i].bytes
                                                               : height;
        }
    }
    return next_multiple(&b, height);
}

static void in_order_follows_the_rule(void **state)
{
    (void)state;
    static struct hb_heap_item fast[MAX_ITEMS], slow[MAX_ITEMS];
    struct hb_rng rng = hb_rng_seed(11);
    for (int round = 0; round < 600; round++) {
        uint32_t count = random_items(&rng, 60, fast);
        for (uint32_t i = 0; i < count; i++)
            fast[i].bytes %= 300;
        memcpy(slow, fast, sizeof slow);
        int64_t height = hb_heap_pack(arena, fast, count, HB_HEAP_IN_ORDER, 16);
        assert_int_equal(height, slow_in_order(slow, count, 16));
        assert_same_offsets(fast, slow, count);
    }
}

/* Worked by hand: B leaves 512 bytes free, too few for D though D would fit up to C. */
static void in_order_keeps_the_ends_of_places(void **state)
{
    (void)state;
    struct hb_heap_item items[] = {ITEM(4096, 0, 9, 0), ITEM(512, 0, 1, 1), ITEM(4096, 0, 9, 2),
                                   ITEM(4096, 2, 9, 3), ITEM(100, 2, 9, 4)};
    assert_int_equal(hb_heap_pack(arena, items, 5, HB_HEAP_IN_ORDER, 4096), 16384);
    assert_int_equal(items[3].offset, 12288);
    assert_int_equal(items[4].offset, 4096);
    assert_int_equal(items[4].bytes, 4096);
}

struct wins {
    int size, duration;
};

static void assert_sorted(struct hb_heap_item *fast, uint32_t count, struct wins *wins)
{
    static struct hb_heap_item by_size[MAX_ITEMS], by_duration[MAX_ITEMS];
    round_items(fast, count, 4);
    memcpy(by_size, fast, sizeof by_size);
    memcpy(by_duration, fast, sizeof by_duration);
    int64_t height = hb_heap_pack(arena, fast, count, HB_HEAP_SORTED, 4);
    int64_t size_height = slow_pack(by_size, count, BY_SIZE);
    int64_t duration_height = slow_pack(by_duration, count, BY_DURATION);
    bool duration_kept = duration_height < size_height;
    assert_int_equal(height, duration_kept ? duration_height : size_height);
    assert_same_offsets(fast, duration_kept ? by_duration : by_size, count);
    wins->duration += duration_kept;
    wins->size += size_height < duration_height;
}

static void sorted_keeps_the_lower_of_two(void **state)
{
    (void)state;
    static struct hb_heap_item items[MAX_ITEMS];
    struct hb_rng rng = hb_rng_seed(12);
    struct wins wins = {0, 0}, of_spans = {0, 0};
    for (int round = 0; round < 400; round++)
        assert_sorted(items, random_items(&rng, round % 5 ? 40 : MOST, items), &wins);
    assert_true(wins.size > 5 && wins.duration > 5);
    for (int round = 0; round < 400; round++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        uint32_t count = random_items(&rng, round % 5 ? 40 : MOST, items);
        split_lives(&rng, items, count);
        assert_sorted(items, count, &of_spans);
        hb_arena_rewind(arena, mark);
    }
    assert_true(of_spans.size > 5 && of_spans.duration > 5);
}

/* So many that the heap looks up what shares an event instead of walking over all. */
static void many_items_follow_the_same_rule(void **state)
{
    (void)state;
    static struct hb_heap_item items[MAX_ITEMS];
    struct hb_rng rng = hb_rng_seed(16);
    struct wins wins = {0, 0};
    for (int round = 0; round < 3; round++) {
        uint32_t count = 0;
        while (count < 4096)
            count = random_items(&rng, MAX_ITEMS, items);
        if (round)
            split_lives(&rng, items, count);
        assert_sorted(items, count, &wins);
    }
}

/* Of few sizes, each longer life a little behind the one before, as gradients and what waits for
 * its layer are: what was in the way of one tells what is in the way of the next. */
static uint32_t moving_items(struct hb_rng *rng, struct hb_heap_item *items, uint32_t count)
{
    int32_t from = 0, lasts = (int32_t)hb_rng_range(rng, 50, 2 * (int64_t)count);
    for (uint32_t i = 0; i < count; i++) {
        bool is_long = hb_rng_range(rng, 0, 3) > 0;
        from += (int32_t)hb_rng_range(rng, 0, 2);
        int32_t life = is_long ? lasts + (int32_t)hb_rng_range(rng, -3, 3) : 2;
        items[i] = (struct hb_heap_item){.bytes = hb_rng_range(rng, 1, 3) * (is_long ? 40 : 12),
                                         .start = from,
                                         .end = from + life,
                                         .order = i};
    }
    return count;
}

static void lives_that_move_follow_the_same_rule(void **state)
{
    (void)state;
    static struct hb_heap_item items[MAX_ITEMS];
    struct hb_rng rng = hb_rng_seed(17);
    struct wins wins = {0, 0};
    for (int round = 0; round < 60; round++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        uint32_t count = moving_items(&rng, items, round % 20 ? 200 : 2500);
        if (round % 3 == 2)
            split_lives(&rng, items, count);
        assert_sorted(items, count, &wins);
        hb_arena_rewind(arena, mark);
    }
}

/* ---- events ---- */

/* At each place all that starts there, in the order of the array, then all that ends there. */
static void events_are_starts_then_ends(void **state)
{
    (void)state;
    struct hb_heap_span spans[] = {{0, 2}, {2, 2}, {0, 1}, {2, 3}};
    static const struct hb_heap_span want[] = {{0, 5}, {3, 6}, {1, 2}, {4, 7}};
    hb_heap_count_events(arena, spans, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(spans[i].start, want[i].start);
        assert_int_equal(spans[i].end, want[i].end);
    }
    hb_heap_count_events(arena, NULL, 0);
}

/* Between its spans a place is free: the two halves of A's life leave room for B. */
static void spans_leave_room(void **state)
{
    (void)state;
    static const struct hb_heap_span halves[] = {{0, 1}, {8, 9}};
    struct hb_heap_item items[] = {ITEM(64, 0, 9, 0), ITEM(64, 2, 7, 1), ITEM(32, 1, 2, 2)};
    items[0].spans = halves;
    items[0].span_count = 2;
    int32_t at;
    assert_int_equal(hb_heap_live_peak(arena, items, 3, 1, &at), 96);
    assert_int_equal(at, 1);
    assert_int_equal(hb_heap_pack(arena, items, 3, HB_HEAP_SORTED, 1), 96);
    assert_int_equal(items[0].offset, items[1].offset);
}

/* Pieces of a life that share an event are one, which lasts to the latest of their ends. */
static void spans_that_meet_are_one(void **state)
{
    (void)state;
    static const struct hb_heap_span pieces[] = {{0, 2}, {2, 4}, {3, 3}, {6, 7}};
    struct hb_heap_item items[] = {ITEM(64, 0, 7, 0), ITEM(16, 4, 4, 1), ITEM(8, 7, 8, 2)};
    items[0].spans = pieces;
    items[0].span_count = 4;
    int32_t at;
    assert_int_equal(hb_heap_live_peak(arena, items, 3, 1, &at), 80);
    assert_int_equal(at, 4);
    items[2].bytes = 32;
    assert_int_equal(hb_heap_live_peak(arena, items, 3, 1, &at), 96);
    assert_int_equal(at, 7);
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
        uint32_t count = random_items(&rng, round % 8 ? 50 : MOST, items);
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
    struct hb_heap_item items[] = {ITEM(4, 0, 1, 0), ITEM(1, 0, 9, 1), ITEM(3, 0, 1, 2),
                                   ITEM(1, 0, 9, 3), ITEM(3, 2, 9, 4), ITEM(4, 3, 9, 5),
                                   ITEM(1, 4, 9, 6)};
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
        struct hb_heap_item meet[] = {ITEM(256, 0, 5, 0), ITEM(256, 5, 9, 1)};
        struct hb_heap_item pass[] = {ITEM(256, 0, 5, 0), ITEM(256, 6, 9, 1)};
        assert_int_equal(hb_heap_pack(arena, meet, 2, (enum hb_heap_kind)kind, 256), 512);
        assert_int_equal(hb_heap_pack(arena, pass, 2, (enum hb_heap_kind)kind, 256), 256);
    }
}

static void nothing_and_huge_sizes(void **state)
{
    (void)state;
    for (int kind = 0; kind <= HB_HEAP_CACHING; kind++) {
        struct hb_heap_item huge[] = {ITEM(INT64_MAX / 3, 0, 5, 0), ITEM(INT64_MAX / 3, 1, 3, 1),
                                      ITEM(INT64_MAX / 3, 2, 4, 2), ITEM(INT64_MAX / 3, 2, 4, 3)};
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
        cmocka_unit_test(in_order_keeps_the_ends_of_places),
        cmocka_unit_test(sorted_keeps_the_lower_of_two),
        cmocka_unit_test(many_items_follow_the_same_rule),
        cmocka_unit_test(lives_that_move_follow_the_same_rule),
        cmocka_unit_test(events_are_starts_then_ends),
        cmocka_unit_test(spans_leave_room),
        cmocka_unit_test(spans_that_meet_are_one),
        cmocka_unit_test(no_heap_is_lower_than_exact),
        cmocka_unit_test(layouts_hold),
        cmocka_unit_test(doubling_all_doubles_the_heap),
        cmocka_unit_test(smallest_gap_before_lowest),
        cmocka_unit_test(definitions_come_before_frees),
        cmocka_unit_test(nothing_and_huge_sizes),
    };
    return cmocka_run_group_tests_name("heap", tests, start, end);
}
