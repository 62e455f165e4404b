/* sim/engine/heap_cuda: the rules one by one; the figures that an independent replay of the
 * allocator gives on three lists of requests; random traffic beside a slow allocator. */
#include "tests/unit/unit.h"

#include "base/rng.h"
#include "tests/unit/slow_cuda.h"

static const int64_t mib = 1 << 20;
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

static uint32_t take(struct hb_cuda *c, int64_t bytes, uint32_t stream)
{
    int64_t address = -1;
    uint32_t block = hb_cuda_take(c, bytes, stream, &address);
    assert_true(address >= 0);
    hb_cuda_check(c);
    return block;
}

static void give(struct hb_cuda *c, uint32_t block)
{
    hb_cuda_give(c, block);
    hb_cuda_check(c);
}

static int64_t reserved(const struct hb_cuda *c)
{
    return hb_cuda_stats(c).reserved_bytes;
}

static void segments_go_by_size(void **state)
{
    (void)state;
    struct hb_cuda *c = hb_cuda_new(arena, (struct hb_cuda_limits){0});
    take(c, 1, 0);
    assert_int_equal(hb_cuda_stats(c).allocated_bytes, 512);
    assert_int_equal(reserved(c), 2 * mib);
    take(c, mib + 1, 0);
    assert_int_equal(reserved(c), 22 * mib);
    take(c, 9 * mib, 0); /* from the same segment */
    assert_int_equal(reserved(c), 22 * mib);
    take(c, 11 * mib, 0);
    assert_int_equal(reserved(c), 34 * mib);
}

static void a_stream_is_a_pool(void **state)
{
    (void)state;
    struct hb_cuda *c = hb_cuda_new(arena, (struct hb_cuda_limits){0});
    give(c, take(c, 64 * mib, 0));
    take(c, 64 * mib, 1);
    assert_int_equal(reserved(c), 128 * mib);
    take(c, 64 * mib, 0);
    assert_int_equal(reserved(c), 128 * mib);
}

static void small_rests_stay_with_large_blocks(void **state)
{
    (void)state;
    struct hb_cuda *c = hb_cuda_new(arena, (struct hb_cuda_limits){0});
    give(c, take(c, 20 * mib, 0));
    take(c, 19 * mib, 0);
    assert_int_equal(hb_cuda_stats(c).allocated_bytes, 20 * mib);
    c = hb_cuda_new(arena, (struct hb_cuda_limits){.expandable = true});
    give(c, take(c, 20 * mib, 0));
    take(c, 19 * mib, 0);
    assert_int_equal(hb_cuda_stats(c).allocated_bytes, 19 * mib);
}

static void ranges_grow_by_pages(void **state)
{
    (void)state;
    struct hb_cuda *c = hb_cuda_new(arena, (struct hb_cuda_limits){.expandable = true});
    uint32_t first = take(c, 30 * mib, 0);
    assert_int_equal(reserved(c), 40 * mib);
    take(c, 25 * mib, 0); /* 10 MiB of the tail, 20 MiB more */
    assert_int_equal(reserved(c), 60 * mib);
    give(c, first);
    take(c, 35 * mib, 0); /* the hole is too small: the tail of 5 MiB grows */
    assert_int_equal(reserved(c), 100 * mib);
}

/* Of two free blocks the larger is taken, where the smaller is the end that can grow; the end where
 * nothing else is large enough. */
static void the_end_of_a_range_goes_last(void **state)
{
    (void)state;
    struct hb_cuda *c = hb_cuda_new(arena, (struct hb_cuda_limits){.expandable = true});
    uint32_t first = take(c, 28 * mib, 0);
    take(c, 20 * mib, 0); /* an end of 12 MiB */
    give(c, first);
    int64_t address;
    hb_cuda_take(c, 11 * mib, 0, &address);
    int64_t start = address;
    hb_cuda_take(c, 11 * mib, 0, &address); /* 17 MiB are left of the hole */
    assert_int_equal(address, start + 11 * mib);
    hb_cuda_take(c, 11 * mib, 0, &address);
    assert_int_equal(address, start + 48 * mib);
    assert_int_equal(reserved(c), 60 * mib);
}

static int64_t place_of(struct hb_cuda *c, int64_t bytes, uint32_t stream, uint32_t *out_block)
{
    int64_t address = -1;
    *out_block = hb_cuda_take(c, bytes, stream, &address);
    hb_cuda_check(c);
    return address;
}

/* Pages that free blocks cover whole go back, wherever they are, and the lowest hole that is large
 * enough is filled again; what no page is left of ends the range. */
static void pages_go_back_from_the_middle(void **state)
{
    (void)state;
    uint32_t hole, second, other, block;
    struct hb_cuda *c =
        hb_cuda_new(arena, (struct hb_cuda_limits){.expandable = true, .limit_bytes = 100 * mib});
    int64_t start = place_of(c, 40 * mib, 0, &hole);
    second = take(c, 20 * mib, 0);
    give(c, hole);
    other = take(c, 60 * mib, 1);
    assert_int_equal(hb_cuda_stats(c).retries, 1);
    assert_int_equal(reserved(c), 80 * mib);
    assert_int_equal(place_of(c, 15 * mib, 0, &block), start);
    assert_int_equal(place_of(c, 5 * mib, 0, &block), start + 15 * mib);
    assert_int_equal(reserved(c), 100 * mib);
    give(c, second);
    give(c, other);
    assert_int_equal(place_of(c, 30 * mib, 0, &block), start + 20 * mib);
    assert_int_equal(reserved(c), 60 * mib);
    assert_int_equal(hb_cuda_stats(c).retries, 2);
    assert_false(hb_cuda_stats(c).failed);
}

/* A free block that begins and ends within pages, and covers none, stays as it is. */
static void a_block_between_pages_stays_whole(void **state)
{
    (void)state;
    uint32_t middle, block;
    struct hb_cuda *c =
        hb_cuda_new(arena, (struct hb_cuda_limits){.expandable = true, .limit_bytes = 110 * mib});
    give(c, take(c, 40 * mib, 1));
    int64_t start = place_of(c, 15 * mib, 0, &block);
    middle = take(c, 23 * mib, 0);
    take(c, 22 * mib, 0);
    give(c, middle);
    take(c, 40 * mib, 2); /* the pages of the first go back */
    assert_int_equal(hb_cuda_stats(c).retries, 1);
    assert_int_equal(reserved(c), 100 * mib);
    assert_int_equal(place_of(c, 17 * mib, 0, &block), start + 15 * mib);
    assert_int_equal(reserved(c), 100 * mib);
}

/* A block before a hole counts as large as both. */
static void a_block_before_a_hole_goes_later(void **state)
{
    (void)state;
    uint32_t first, second, third, block;
    struct hb_cuda *c =
        hb_cuda_new(arena, (struct hb_cuda_limits){.expandable = true, .limit_bytes = 180 * mib});
    int64_t start = place_of(c, 10 * mib, 0, &block);
    first = take(c, 50 * mib, 0);
    take(c, 10 * mib, 0);
    second = take(c, 18 * mib, 0);
    take(c, 12 * mib, 0);
    give(c, first);
    third = take(c, 100 * mib, 1); /* of the first 10 + 40 MiB 40 go back */
    assert_int_equal(reserved(c), 160 * mib);
    give(c, second);
    assert_int_equal(place_of(c, 9 * mib, 0, &block), start + 70 * mib);
    give(c, third);
}

/* Of three as large, of which the first lies before a hole, it goes last. */
static void of_equals_the_one_before_a_hole_goes_last(void **state)
{
    (void)state;
    uint32_t first, second, third, block;
    struct hb_cuda *c =
        hb_cuda_new(arena, (struct hb_cuda_limits){.expandable = true, .limit_bytes = 190 * mib});
    int64_t start = place_of(c, 10 * mib, 0, &block);
    first = take(c, 50 * mib, 0);
    take(c, 10 * mib, 0);
    second = take(c, 10 * mib, 0);
    take(c, 10 * mib, 0);
    third = take(c, 10 * mib, 0);
    take(c, 20 * mib, 0);
    give(c, first);
    take(c, 80 * mib, 1); /* of the first 10 + 40 MiB 40 go back */
    assert_int_equal(reserved(c), 160 * mib);
    give(c, second);
    give(c, third);
    assert_int_equal(place_of(c, 10 * mib, 0, &block), start + 70 * mib);
    assert_int_equal(place_of(c, 10 * mib, 0, &block), start + 90 * mib);
    assert_int_equal(place_of(c, 10 * mib, 0, &block), start + 10 * mib);
    assert_int_equal(reserved(c), 160 * mib);
}

/* With a block of its own as large as both are, the one that is smaller by itself goes. */
static void a_block_before_a_hole_goes_before_its_equal(void **state)
{
    (void)state;
    uint32_t first, second, block;
    struct hb_cuda *c =
        hb_cuda_new(arena, (struct hb_cuda_limits){.expandable = true, .limit_bytes = 210 * mib});
    int64_t start = place_of(c, 10 * mib, 0, &block);
    first = take(c, 50 * mib, 0);
    take(c, 10 * mib, 0);
    second = take(c, 50 * mib, 0);
    take(c, 12 * mib, 0);
    give(c, first);
    take(c, 100 * mib, 1); /* of the first 10 + 40 MiB 40 go back */
    assert_int_equal(reserved(c), 200 * mib);
    give(c, second);
    assert_int_equal(place_of(c, 9 * mib, 0, &block), start + 10 * mib);
}

/* It still goes before the end of the range, which has no bound. */
static void a_block_before_a_hole_goes_before_the_end(void **state)
{
    (void)state;
    uint32_t first, block;
    struct hb_cuda *c =
        hb_cuda_new(arena, (struct hb_cuda_limits){.expandable = true, .limit_bytes = 150 * mib});
    int64_t start = place_of(c, 10 * mib, 0, &block);
    first = take(c, 50 * mib, 0);
    take(c, 5 * mib, 0); /* an end of 15 MiB */
    give(c, first);
    take(c, 100 * mib, 1); /* of the 50 MiB 40 go back */
    assert_int_equal(reserved(c), 140 * mib);
    assert_int_equal(place_of(c, 9 * mib, 0, &block), start + 10 * mib);
}

static void a_failure_gives_back_and_tries_again(void **state)
{
    (void)state;
    struct hb_cuda *c = hb_cuda_new(arena, (struct hb_cuda_limits){.limit_bytes = 100 * mib});
    give(c, take(c, 40 * mib, 0));
    take(c, 30 * mib, 1);
    take(c, 60 * mib, 0);
    assert_int_equal(hb_cuda_stats(c).retries, 1);
    assert_false(hb_cuda_stats(c).failed);
    assert_int_equal(reserved(c), 90 * mib);
    take(c, 60 * mib, 0);
    assert_true(hb_cuda_stats(c).failed);
}

/* Before all is given back, a block that is never split is, where that is enough. */
static void unsplit_blocks_go_first(void **state)
{
    (void)state;
    struct hb_cuda *c = hb_cuda_new(
        arena, (struct hb_cuda_limits){.limit_bytes = 200 * mib, .max_split_bytes = 64 * mib});
    uint32_t small = take(c, 40 * mib, 0), large = take(c, 110 * mib, 0);
    give(c, small);
    give(c, large);
    take(c, 80 * mib, 0); /* 230 MiB are too many: the large one goes, which is no retry */
    assert_int_equal(hb_cuda_stats(c).retries, 0);
    assert_int_equal(reserved(c), 120 * mib);
    take(c, 90 * mib, 0); /* nothing of 64 MiB and more is free: all goes */
    assert_int_equal(hb_cuda_stats(c).retries, 1);
    assert_int_equal(reserved(c), 170 * mib);
}

/* Above 50 of 100 MiB what is older than the mean goes, before the device is asked. */
static void old_segments_are_collected(void **state)
{
    (void)state;
    struct hb_cuda *c =
        hb_cuda_new(arena, (struct hb_cuda_limits){.limit_bytes = 100 * mib, .collect_above = 0.5});
    uint32_t old = take(c, 20 * mib, 0), young = take(c, 30 * mib, 0);
    give(c, old);
    take(c, 12 * mib, 1); /* 50 MiB are reserved: none too many */
    assert_int_equal(reserved(c), 62 * mib);
    give(c, young);
    take(c, 14 * mib, 1); /* 12 too many: the old one alone */
    assert_int_equal(reserved(c), 56 * mib);
    assert_int_equal(hb_cuda_stats(c).retries, 0);
    take(c, 16 * mib, 1); /* and now the other */
    assert_int_equal(reserved(c), 42 * mib);
    c = hb_cuda_new(arena, (struct hb_cuda_limits){.limit_bytes = 100 * mib});
    give(c, take(c, 60 * mib, 0));
    take(c, 12 * mib, 1);
    assert_int_equal(reserved(c), 72 * mib); /* not asked for */
}

/* What the first round leaves above the share is older than a new mean, or it. */
static void old_segments_are_collected_in_rounds(void **state)
{
    (void)state;
    struct hb_cuda *c =
        hb_cuda_new(arena, (struct hb_cuda_limits){.limit_bytes = 100 * mib, .collect_above = 0.1});
    uint32_t old[3], other;
    for (int i = 0; i < 3; i++)
        old[i] = take(c, 20 * mib, 0);
    other = take(c, 20 * mib, 1);
    for (int i = 0; i < 3; i++) { /* each a request younger than the one before */
        give(c, old[i]);
        give(c, other);
        other = take(c, 20 * mib, 1);
    }
    assert_int_equal(reserved(c), 80 * mib);
    take(c, 12 * mib, 2); /* two are older than the mean of three, then the third */
    assert_int_equal(reserved(c), 32 * mib);
}

static void large_blocks_stay_whole(void **state)
{
    (void)state;
    struct hb_cuda *c = hb_cuda_new(arena, (struct hb_cuda_limits){.max_split_bytes = 64 * mib});
    give(c, take(c, 100 * mib, 0));
    take(c, 30 * mib, 0); /* not from the large one */
    assert_int_equal(reserved(c), 130 * mib);
    take(c, 70 * mib, 0); /* far smaller than it */
    assert_int_equal(reserved(c), 200 * mib);
    take(c, 90 * mib, 0); /* it, whole */
    assert_int_equal(reserved(c), 200 * mib);
    assert_int_equal(hb_cuda_stats(c).allocated_bytes, 200 * mib);
    c = hb_cuda_new(arena, (struct hb_cuda_limits){.max_split_bytes = 64 * mib});
    give(c, take(c, 70 * mib, 0));
    take(c, 64 * mib, 0); /* as much as the limit is no small one: it, whole */
    assert_int_equal(reserved(c), 70 * mib);
    c = hb_cuda_new(arena, (struct hb_cuda_limits){.max_split_bytes = 64 * mib});
    give(c, take(c, 64 * mib, 0));
    take(c, 30 * mib, 0); /* nor is a block of as much */
    assert_int_equal(reserved(c), 94 * mib);
}

/* {n, bytes, stream}: request n; {-1 - n, 0, 0}: n is given back. */
struct happening {
    int32_t n;
    int64_t bytes;
    uint32_t stream;
};

struct figures {
    int64_t peak_allocated, peak_reserved, allocated;
};

static const struct {
    struct happening happenings[40];
    struct figures figures[2]; /* segments, expandable ones */
} lists[] = {
    {{{0, 1048576, 1},    {1, 204800, 0},     {-2, 0, 0},       {2, 10485760, 0},
      {-1, 0, 0},         {3, 10485760, 0},   {4, 700, 1},      {-5, 0, 0},
      {5, 136314880, 0},  {6, 700, 0},        {-3, 0, 0},       {7, 10485760, 1},
      {-8, 0, 0},         {8, 67108864, 0},   {9, 17825797, 1}, {-6, 0, 0},
      {10, 17825797, 0},  {11, 10485760, 1},  {12, 204800, 0},  {13, 3145728, 0},
      {14, 67108864, 0},  {15, 1048577, 0},   {-14, 0, 0},      {16, 67108864, 0},
      {17, 700, 0},       {-13, 0, 0},        {-9, 0, 0},       {-15, 0, 0},
      {-7, 0, 0},         {18, 67108864, 0},  {-4, 0, 0},       {19, 3145728, 1},
      {20, 136314880, 1}, {21, 1048576, 0},   {22, 700, 0},     {23, 67108864, 0},
      {-18, 0, 0},        {24, 136314880, 0}, {25, 3145728, 1}, {26, 700, 0}},
     {{529533952, 618659840, 529533952}, {528485888, 633339904, 528485888}}},
    {{{0, 700, 0},        {-1, 0, 0},        {1, 3145728, 0},  {2, 136314880, 0}, {3, 1048576, 0},
      {4, 67108864, 0},   {5, 17825797, 1},  {-2, 0, 0},       {6, 9437184, 0},   {7, 10485760, 0},
      {8, 67108864, 0},   {9, 1048577, 0},   {-8, 0, 0},       {-7, 0, 0},        {10, 67108864, 1},
      {11, 17825797, 0},  {12, 9437184, 1},  {-12, 0, 0},      {-11, 0, 0},       {13, 17825797, 1},
      {14, 17825797, 0},  {15, 67108864, 1}, {16, 9437184, 1}, {17, 17825797, 0}, {18, 67108864, 1},
      {19, 1048577, 0},   {20, 1048576, 1},  {-21, 0, 0},      {21, 3145728, 1},  {22, 67108864, 1},
      {23, 136314880, 1}, {-13, 0, 0},       {24, 9437184, 1}, {25, 204800, 0},   {26, 1048577, 1},
      {-27, 0, 0},        {27, 3145728, 1},  {-6, 0, 0},       {28, 1048576, 0},  {-15, 0, 0}},
     {{710091776, 763363328, 674439680}, {707996672, 761266176, 673392640}}},
    {{{0, 1048577, 1},    {1, 9437184, 1},    {2, 136314880, 0}, {3, 17825797, 0},
      {4, 1048577, 1},    {5, 67108864, 0},   {-2, 0, 0},        {-3, 0, 0},
      {6, 67108864, 0},   {7, 204800, 0},     {8, 136314880, 0}, {-1, 0, 0},
      {9, 3145728, 0},    {10, 10485760, 1},  {11, 10485760, 0}, {12, 136314880, 0},
      {13, 1048576, 0},   {-6, 0, 0},         {14, 3145728, 1},  {-15, 0, 0},
      {15, 10485760, 1},  {16, 136314880, 0}, {17, 10485760, 1}, {-10, 0, 0},
      {18, 700, 0},       {19, 1048576, 1},   {20, 67108864, 1}, {21, 1048577, 1},
      {22, 136314880, 0}, {-7, 0, 0},         {23, 17825797, 0}, {-8, 0, 0},
      {-12, 0, 0},        {-16, 0, 0},        {24, 204800, 0},   {25, 700, 0},
      {26, 9437184, 1},   {27, 3145728, 1},   {-5, 0, 0},        {-11, 0, 0}},
     {{744696320, 880803840, 676539392}, {743647744, 884998144, 674442752}}},
};

static void replay(const struct happening *happenings, bool expandable, struct figures wanted)
{
    uint32_t blocks[40] = {0};
    struct hb_cuda *c = hb_cuda_new(arena, (struct hb_cuda_limits){.expandable = expandable});
    for (int k = 0; k < 40; k++) {
        const struct happening *h = &happenings[k];
        if (h->n >= 0)
            blocks[h->n] = take(c, h->bytes, h->stream);
        else
            give(c, blocks[-1 - h->n]);
    }
    struct hb_cuda_stats stats = hb_cuda_stats(c);
    assert_int_equal(stats.peak_allocated_bytes, wanted.peak_allocated);
    assert_int_equal(stats.peak_reserved_bytes, wanted.peak_reserved);
    assert_int_equal(stats.allocated_bytes, wanted.allocated);
}

static void a_replay_gives_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (int expandable = 0; expandable < 2; expandable++)
            replay(lists[i].happenings, expandable, lists[i].figures[expandable]);
}

/* The allocator, and another that finds everything anew (slow_cuda.h), through the same requests.
 */
struct pair {
    struct hb_cuda *c;
    struct slow_cuda slow;
    uint32_t block[SLOW_USED];        /* as slow.used */
    int64_t number_of[SLOW_SEGMENTS]; /* where its segments are, in the other's addresses */
};

static void same_figures(const struct pair *p)
{
    struct hb_cuda_stats a = hb_cuda_stats(p->c), b = p->slow.stats;
    assert_int_equal(a.allocated_bytes, b.allocated_bytes);
    assert_int_equal(a.peak_allocated_bytes, b.peak_allocated_bytes);
    assert_int_equal(a.reserved_bytes, b.reserved_bytes);
    assert_int_equal(a.peak_reserved_bytes, b.peak_reserved_bytes);
    assert_int_equal(a.retries, b.retries);
    assert_int_equal(a.failed, b.failed);
}

static void same_place(struct pair *p, const struct slow_used *u, int64_t address)
{
    const int64_t stride = INT64_C(1) << 44;
    int64_t *number = &p->number_of[u->segment];
    assert_int_equal(address % stride, u->at);
    if (*number)
        assert_int_equal(address / stride, *number - 1);
    for (uint32_t i = 0; i < p->slow.segment_count; i++)
        assert_true(i == u->segment || p->number_of[i] != address / stride + 1);
    *number = address / stride + 1;
}

static void take_both(struct pair *p, int64_t bytes, uint32_t stream)
{
    int64_t address = -1;
    p->block[p->slow.used_count] = hb_cuda_take(p->c, bytes, stream, &address);
    same_place(p, slow_take(&p->slow, bytes, stream), address);
}

static void give_both(struct pair *p, uint32_t i)
{
    hb_cuda_give(p->c, p->block[i]);
    slow_give(&p->slow, i);
    p->block[i] = p->block[p->slow.used_count];
}

/* Mostly sizes that come again, as layers ask for them; where they do not, each its own class. */
static int64_t draw_bytes(struct hb_rng *rng, bool again)
{
    static const int64_t sizes[] = {512,           700,      3 << 18,  1 << 20,
                                    (1 << 20) + 1, 3 << 20,  10 << 20, 11 << 20,
                                    18 << 20,      30 << 20, 50 << 20, 70 << 20};
    if (again)
        return sizes[hb_rng_range(rng, 0, sizeof sizes / sizeof sizes[0] - 1)];
    return hb_rng_range(rng, 1, INT64_C(1) << hb_rng_range(rng, 0, 27));
}

static void random_traffic(struct hb_rng *rng, struct hb_cuda_limits limits, bool again)
{
    enum { STEPS = 500 };
    static struct pair p;
    int64_t most = hb_rng_range(rng, 4, 64);
    p = (struct pair){.c = hb_cuda_new(arena, limits), .slow.limits = limits};
    for (int i = 0; i < STEPS; i++) {
        uint32_t count = p.slow.used_count;
        if (count == most || (count && hb_rng_range(rng, 0, 19) < 9))
            give_both(&p, (uint32_t)hb_rng_range(rng, 0, count - 1));
        else
            take_both(&p, draw_bytes(rng, again), (uint32_t)hb_rng_range(rng, 0, 2));
        if (hb_rng_range(rng, 0, 99) == 0) {
            hb_cuda_release(p.c);
            slow_release(&p.slow);
        }
        hb_cuda_check(p.c);
        same_figures(&p);
    }
    while (p.slow.used_count)
        give_both(&p, p.slow.used_count - 1);
    hb_cuda_check(p.c);
    assert_int_equal(hb_cuda_stats(p.c).allocated_bytes, 0);
}

static void a_slow_allocator_does_the_same(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(7);
    for (int i = 0; i < 160; i++)
        random_traffic(&rng,
                       (struct hb_cuda_limits){i & 1, i & 2 ? hb_rng_range(&rng, 60, 600) * mib : 0,
                                               i & 4 ? hb_rng_range(&rng, 12, 30) * 2 * mib : 0,
                                               i & 8 ? 0.1 * (double)hb_rng_range(&rng, 1, 9) : 0},
                       i & 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_go_by_size),
        cmocka_unit_test(a_stream_is_a_pool),
        cmocka_unit_test(small_rests_stay_with_large_blocks),
        cmocka_unit_test(ranges_grow_by_pages),
        cmocka_unit_test(the_end_of_a_range_goes_last),
        cmocka_unit_test(pages_go_back_from_the_middle),
        cmocka_unit_test(a_block_between_pages_stays_whole),
        cmocka_unit_test(a_block_before_a_hole_goes_later),
        cmocka_unit_test(of_equals_the_one_before_a_hole_goes_last),
        cmocka_unit_test(a_block_before_a_hole_goes_before_its_equal),
        cmocka_unit_test(a_block_before_a_hole_goes_before_the_end),
        cmocka_unit_test(a_failure_gives_back_and_tries_again),
        cmocka_unit_test(unsplit_blocks_go_first),
        cmocka_unit_test(old_segments_are_collected),
        cmocka_unit_test(old_segments_are_collected_in_rounds),
        cmocka_unit_test(large_blocks_stay_whole),
        cmocka_unit_test(a_replay_gives_the_same),
        cmocka_unit_test(a_slow_allocator_does_the_same),
    };
    return cmocka_run_group_tests_name("heap_cuda", tests, start, end);
}
