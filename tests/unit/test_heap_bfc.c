/* sim/engine/heap_bfc: the rules one by one, then random traffic beside a slow allocator. */
#include "tests/unit/unit.h"

#include "base/rng.h"
#include "sim/engine/heap_bfc.h"

static const int64_t mib = 1 << 20;

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

static uint32_t take(struct hb_bfc *bfc, int64_t bytes, int64_t expected_offset)
{
    uint32_t chunk = 0;
    int64_t offset = -1;
    assert_true(hb_bfc_take(bfc, bytes, &chunk, &offset));
    assert_int_equal(offset, expected_offset);
    hb_bfc_check(bfc);
    return chunk;
}

static void give(struct hb_bfc *bfc, uint32_t chunk)
{
    hb_bfc_give(bfc, chunk);
    hb_bfc_check(bfc);
}

static void sizes_round_to_256(void **state)
{
    (void)state;
    struct hb_bfc *bfc = hb_bfc_new(arena, (struct hb_bfc_limits){1 << 20, 0});
    take(bfc, 1, 0);
    take(bfc, 257, 256);
    take(bfc, 256, 768);
    struct hb_bfc_stats stats = hb_bfc_stats(bfc);
    assert_int_equal(stats.in_use_bytes, 1024);
    assert_int_equal(stats.asked_bytes, 514);
    assert_int_equal(stats.height_bytes, 1024);
    assert_int_equal(stats.reserved_bytes, 1 << 20);
}

static void freed_neighbours_join(void **state)
{
    (void)state;
    struct hb_bfc *bfc = hb_bfc_new(arena, (struct hb_bfc_limits){4096, 0});
    uint32_t a = take(bfc, 1024, 0), b = take(bfc, 1024, 1024), c = take(bfc, 1024, 2048);
    take(bfc, 1024, 3072);
    give(bfc, a);
    give(bfc, c);
    assert_int_equal(hb_bfc_stats(bfc).largest_free_bytes, 1024);
    assert_int_equal(hb_bfc_stats(bfc).scattered_bytes, 1024);
    uint32_t chunk;
    int64_t offset;
    assert_false(hb_bfc_take(bfc, 2048, &chunk, &offset)); /* 2048 are free, but in two places */
    give(bfc, b);
    assert_int_equal(hb_bfc_stats(bfc).largest_free_bytes, 3072);
    take(bfc, 3072, 0);
}

static void smallest_chunk_then_lowest_address(void **state)
{
    (void)state;
    struct hb_bfc *bfc = hb_bfc_new(arena, (struct hb_bfc_limits){1 << 20, 0});
    uint32_t holes[3];
    int64_t at = 0;
    static const int64_t hole_bytes[] = {4096, 2048, 2048};
    for (int i = 0; i < 3; i++) {
        holes[i] = take(bfc, hole_bytes[i], at);
        at += hole_bytes[i];
        take(bfc, 256, at);
        at += 256;
    }
    for (int i = 2; i >= 0; i--)
        give(bfc, holes[i]);
    take(bfc, 1500, 4096 + 256); /* of the two of 2048 the lower one */
    take(bfc, 1800, 4096 + 256 + 2048 + 256);
    take(bfc, 1800, 0);
}

/* A chunk is handed out whole unless it is twice the request or would waste 128 MiB. */
static void chunks_split_by_waste(void **state)
{
    (void)state;
    struct hb_bfc *bfc = hb_bfc_new(arena, (struct hb_bfc_limits){1000 * mib, 0});
    uint32_t low = take(bfc, 300 * mib, 0);
    take(bfc, 256, 300 * mib);
    give(bfc, low);
    uint32_t whole = take(bfc, 200 * mib, 0);
    assert_int_equal(hb_bfc_stats(bfc).in_use_bytes, 300 * mib + 256);
    give(bfc, whole);
    take(bfc, 172 * mib, 0); /* wastes 128 MiB: split */
    assert_int_equal(hb_bfc_stats(bfc).in_use_bytes, 172 * mib + 256);
    take(bfc, 64 * mib, 172 * mib); /* half of the rest: split */
    assert_int_equal(hb_bfc_stats(bfc).in_use_bytes, 236 * mib + 256);
}

static void regions_double(void **state)
{
    (void)state;
    struct hb_bfc *bfc = hb_bfc_new(arena, (struct hb_bfc_limits){100 * mib, 2 * mib});
    take(bfc, mib, 0);
    assert_int_equal(hb_bfc_stats(bfc).reserved_bytes, 2 * mib);
    take(bfc, 2 * mib, 2 * mib); /* the next region is twice as large */
    assert_int_equal(hb_bfc_stats(bfc).reserved_bytes, 6 * mib);
    take(bfc, 20 * mib, 6 * mib); /* doubled until it fits: 8, 16, 32 */
    assert_int_equal(hb_bfc_stats(bfc).reserved_bytes, 38 * mib);
    take(bfc, 40 * mib, 38 * mib); /* 64 would pass the limit: what is left */
    assert_int_equal(hb_bfc_stats(bfc).reserved_bytes, 100 * mib);
    uint32_t chunk;
    int64_t offset;
    assert_false(hb_bfc_take(bfc, 23 * mib, &chunk, &offset));
}

static void a_region_may_be_what_is_asked(void **state)
{
    (void)state;
    struct hb_bfc *bfc = hb_bfc_new(arena, (struct hb_bfc_limits){100 * mib, 2 * mib});
    take(bfc, 2 * mib, 0);
    assert_int_equal(hb_bfc_stats(bfc).reserved_bytes, 2 * mib);
    take(bfc, 4 * mib, 2 * mib);
    assert_int_equal(hb_bfc_stats(bfc).reserved_bytes, 6 * mib);
}

/* The allocator the slow way: regions, and the chunks in use in them by address; what is free is
 * what lies between. */
struct slow_chunk {
    int64_t at, bytes, asked;
};

struct slow_bfc {
    struct hb_bfc_limits limits;
    struct hb_bfc_stats stats;
    int64_t next_region_bytes;
    int64_t region_end[64];
    uint32_t region_count;
    struct slow_chunk used[64];
    uint32_t count;
};

/* The next free place of its region from there on, or the end of all. */
static struct slow_chunk next_free(const struct slow_bfc *s, int64_t at)
{
    struct slow_chunk found = {s->stats.reserved_bytes, 0, 0};
    uint32_t region = 0, next = 0;
    while (next < s->count && s->used[next].at < at)
        next++;
    for (; next < s->count && s->used[next].at == at; next++)
        at += s->used[next].bytes;
    while (region < s->region_count && s->region_end[region] <= at)
        region++;
    if (region == s->region_count)
        return found;
    int64_t end = s->region_end[region];
    if (next < s->count && s->used[next].at < end)
        end = s->used[next].at;
    return (struct slow_chunk){at, end - at, 0};
}

/* The smallest that is large enough, the lowest of such; false: there is none. */
static bool find_free(const struct slow_bfc *s, int64_t bytes, struct slow_chunk *out)
{
    struct slow_chunk best = {-1, INT64_MAX, 0}, one;
    for (int64_t at = 0; at < s->stats.reserved_bytes; at = one.at + one.bytes) {
        one = next_free(s, at);
        if (one.bytes >= bytes && one.bytes < best.bytes)
            best = one;
    }
    *out = best;
    return best.at >= 0;
}

static void add_region(struct slow_bfc *s, int64_t bytes)
{
    int64_t rest = s->limits.limit_bytes / 256 * 256 - s->stats.reserved_bytes;
    int64_t region = s->next_region_bytes;
    if (bytes > rest)
        return;
    while (region < bytes)
        region *= 2;
    s->next_region_bytes = region == s->next_region_bytes ? 2 * region : region;
    s->stats.reserved_bytes += region < rest ? region : rest;
    s->region_end[s->region_count++] = s->stats.reserved_bytes;
}

static bool slow_take(struct slow_bfc *s, int64_t bytes, uint32_t *out_place)
{
    struct slow_chunk c;
    int64_t rounded = (bytes + 255) / 256 * 256;
    if (!find_free(s, rounded, &c)) {
        add_region(s, rounded);
        if (!find_free(s, rounded, &c))
            return false;
    }
    if (c.bytes >= 2 * rounded || c.bytes - rounded >= 128 * mib)
        c.bytes = rounded;
    c.asked = bytes;
    uint32_t place = s->count++;
    for (; place > 0 && s->used[place - 1].at > c.at; place--)
        s->used[place] = s->used[place - 1];
    s->used[place] = c;
    *out_place = place;
    struct hb_bfc_stats *t = &s->stats;
    t->in_use_bytes += c.bytes;
    t->asked_bytes += bytes;
    if (t->in_use_bytes > t->peak_in_use_bytes)
        t->peak_in_use_bytes = t->in_use_bytes;
    if (c.at + c.bytes > t->height_bytes)
        t->height_bytes = c.at + c.bytes;
    return true;
}

static void slow_give(struct slow_bfc *s, uint32_t place)
{
    s->stats.in_use_bytes -= s->used[place].bytes;
    s->stats.asked_bytes -= s->used[place].asked;
    s->count--;
    for (; place < s->count; place++)
        s->used[place] = s->used[place + 1];
}

static void same_figures(const struct hb_bfc *bfc, const struct slow_bfc *s)
{
    struct hb_bfc_stats a = hb_bfc_stats(bfc), b = s->stats;
    struct slow_chunk one;
    for (int64_t at = 0; at < b.reserved_bytes; at = one.at + one.bytes) {
        one = next_free(s, at);
        if (one.bytes > b.largest_free_bytes)
            b.largest_free_bytes = one.bytes;
    }
    b.scattered_bytes = b.reserved_bytes - b.in_use_bytes - b.largest_free_bytes;
    assert_memory_equal(&a, &b, sizeof a);
}

struct traffic {
    struct hb_bfc *bfc;
    struct slow_bfc slow;
    uint32_t held[64]; /* as slow.used */
};

static void take_both(struct traffic *t, int64_t bytes)
{
    uint32_t chunk = 0, place = 0, count = t->slow.count;
    int64_t offset = -1;
    bool got = hb_bfc_take(t->bfc, bytes, &chunk, &offset);
    assert_int_equal(got, slow_take(&t->slow, bytes, &place));
    if (!got)
        return;
    assert_int_equal(offset, t->slow.used[place].at);
    for (uint32_t i = count; i > place; i--)
        t->held[i] = t->held[i - 1];
    t->held[place] = chunk;
}

static void give_both(struct traffic *t, uint32_t place)
{
    hb_bfc_give(t->bfc, t->held[place]);
    slow_give(&t->slow, place);
    for (uint32_t i = place; i < t->slow.count; i++)
        t->held[i] = t->held[i + 1];
}

/* Of few sizes, so that many chunks are alike, or of any. */
static int64_t draw_bytes(struct hb_rng *rng, int largest, bool alike)
{
    if (alike)
        return (INT64_C(256) << hb_rng_range(rng, 0, largest - 8)) - hb_rng_range(rng, 0, 1);
    return hb_rng_range(rng, 1, INT64_C(1) << hb_rng_range(rng, 4, largest));
}

static void run_traffic(struct hb_rng *rng, struct hb_bfc_limits limits, int largest, bool alike)
{
    int64_t first = limits.first_region_bytes ? limits.first_region_bytes : limits.limit_bytes;
    struct traffic t = {.bfc = hb_bfc_new(arena, limits), .slow.limits = limits};
    t.slow.next_region_bytes = (first + 255) / 256 * 256;
    for (int step = 0; step < 300; step++) {
        if (t.slow.count && (t.slow.count == 64 || hb_rng_range(rng, 0, 9) < 4))
            give_both(&t, (uint32_t)hb_rng_range(rng, 0, t.slow.count - 1));
        else
            take_both(&t, draw_bytes(rng, largest, alike));
        hb_bfc_check(t.bfc);
        same_figures(t.bfc, &t.slow);
    }
    while (t.slow.count)
        give_both(&t, t.slow.count - 1);
    hb_bfc_check(t.bfc);
    same_figures(t.bfc, &t.slow);
}

/* Below 4 MiB in all, and on a device where 128 MiB can lie idle. */
static void a_slow_allocator_does_the_same(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(21);
    for (int round = 0; round < 96; round++) {
        int64_t unit = round % 4 < 2 ? 65537 : 64 * mib + 77;
        struct hb_bfc_limits limits = {hb_rng_range(&rng, 1, 64) * unit, 0};
        if (round % 2)
            limits.first_region_bytes = hb_rng_range(&rng, 1, 4) * (unit / 16);
        run_traffic(&rng, limits, round % 4 < 2 ? 17 : 29, round % 8 < 4);
    }
}

static void whole_lives_run_in_time(void **state)
{
    (void)state;
    struct hb_heap_item items[] = {ITEM(512, 0, 2, 0), ITEM(256, 0, 9, 1), ITEM(512, 3, 9, 2),
                                   ITEM(1024, 4, 9, 3), ITEM(0, 4, 9, 4)};
    struct hb_bfc_stats stats;
    uint32_t failed = 99;
    assert_true(hb_bfc_run(arena, (struct hb_bfc_limits){1 << 20, 0}, items, 5, &stats, &failed));
    assert_int_equal(items[2].offset, 0); /* where the first was */
    assert_int_equal(items[3].offset, 768);
    assert_int_equal(items[4].offset, 0);
    assert_int_equal(stats.peak_in_use_bytes, 1792);
    assert_int_equal(stats.height_bytes, 1792);
    assert_int_equal(failed, 99);
    assert_false(hb_bfc_run(arena, (struct hb_bfc_limits){1536, 0}, items, 5, &stats, &failed));
    assert_int_equal(failed, 3);
}

/* Of what starts together, the one of lower order asks first, wherever it stands. */
static void orders_decide_ties(void **state)
{
    (void)state;
    struct hb_heap_item items[] = {ITEM(256, 0, 1, 2), ITEM(256, 0, 1, 0), ITEM(256, 0, 1, 1)};
    struct hb_bfc_stats stats;
    assert_true(hb_bfc_run(arena, (struct hb_bfc_limits){4096, 0}, items, 3, &stats, NULL));
    assert_int_equal(items[1].offset, 0);
    assert_int_equal(items[2].offset, 256);
    assert_int_equal(items[0].offset, 512);
}

static void give_twice(const void *arg)
{
    (void)arg;
    struct hb_bfc *bfc = hb_bfc_new(arena, (struct hb_bfc_limits){4096, 0});
    uint32_t chunk;
    int64_t offset;
    hb_bfc_take(bfc, 256, &chunk, &offset);
    hb_bfc_give(bfc, chunk);
    hb_bfc_give(bfc, chunk);
}

static void giving_back_twice_is_our_fault(void **state)
{
    (void)state;
    char text[400];
    assert_int_not_equal(unit_child(give_twice, NULL, text, sizeof text), 0);
    assert_non_null(strstr(text, "given back, but not in use"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_round_to_256),
        cmocka_unit_test(freed_neighbours_join),
        cmocka_unit_test(smallest_chunk_then_lowest_address),
        cmocka_unit_test(chunks_split_by_waste),
        cmocka_unit_test(regions_double),
        cmocka_unit_test(a_region_may_be_what_is_asked),
        cmocka_unit_test(a_slow_allocator_does_the_same),
        cmocka_unit_test(whole_lives_run_in_time),
        cmocka_unit_test(orders_decide_ties),
        cmocka_unit_test(giving_back_twice_is_our_fault),
    };
    return cmocka_run_group_tests_name("heap_bfc", tests, start, end);
}
