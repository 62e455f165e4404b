/* What must hold of every program, on random ones: 2,000 by default, HB_LAWS=n for n. A case that
 * breaks a law is told with its seed, after smaller programs that break it too were looked for. */
#include "tests/prop/seed.h"
#include "tests/unit/unit.h"

#include "base/rng.h"
#include "sim/engine/heap_bfc.h"
#include "sim/engine/live.h"
#include "sim/engine/timeline.h"
#include "tests/unit/random_program.h"
#include "tests/unit/slow_time.h"

struct subject {
    struct hb_arena *arena;
    struct hb_rng rng; /* for what the law changes */
    struct hb_program p;
    struct hb_memory m;
};

/* Null where the law holds, else how it is broken. */
typedef const char *law_fn(struct subject *s);

static uint32_t list_temps(struct subject *s, struct hb_heap_item **out)
{
    const struct hb_memory *m = &s->m;
    struct hb_heap_item *items = hb_arena_alloc(s->arena, m->live_count, sizeof *items);
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->live_count; i++)
        if (m->offset_of[m->live[i].buf] >= 0)
            items[count++] = (struct hb_heap_item){.bytes = m->live[i].bytes,
                                                   .start = m->live[i].start,
                                                   .end = m->live[i].end,
                                                   .order = i};
    *out = items;
    return count;
}

/* 1: what is allocated is freed, but for arguments and outputs, which stay. */
static const char *bytes_are_conserved(struct subject *s)
{
    struct hb_heap_item *items;
    uint32_t count = list_temps(s, &items);
    for (uint32_t i = 0; i < count; i++)
        if (items[i].start < 0 || items[i].end < items[i].start ||
            items[i].end >= (int32_t)s->p.op_count)
            return "a temporary outlives the step";
    struct hb_timeline line;
    hb_timeline_make(s->arena, &s->p, &s->m, &line);
    int64_t still = s->m.peak_bytes - s->m.temp_bytes;
    for (uint32_t i = 0; i < line.count; i++)
        if (line.total_bytes[i] < still)
            return "less is alive than what stays";
    struct hb_bfc_stats stats;
    if (!hb_bfc_run(s->arena, (struct hb_bfc_limits){INT64_MAX / 2, 0}, items, count, &stats, NULL))
        return "no memory without limit";
    return stats.asked_bytes < 0 || stats.in_use_bytes < stats.asked_bytes ? "more asked than given"
                                                                           : NULL;
}

/* 2: live peak <= heap <= sum of aligned sizes, whichever the allocator. */
static const char *heaps_lie_between_bounds(struct subject *s)
{
    static const enum hb_heap_kind kinds[] = {HB_HEAP_IN_ORDER, HB_HEAP_SORTED, HB_HEAP_CACHING};
    struct hb_heap_item *items;
    uint32_t count = list_temps(s, &items);
    for (int k = 0; k < 3; k++) {
        int64_t sum = 0;
        int64_t height = hb_heap_pack(s->arena, items, count, kinds[k], 256);
        for (uint32_t i = 0; i < count; i++)
            sum += items[i].bytes;
        if (height < hb_heap_live_peak(s->arena, items, count, 256, NULL))
            return "a heap lower than what is alive";
        if (height > sum)
            return "a heap higher than all buffers side by side";
    }
    return NULL;
}

/* 3: growing a buffer never lowers the live peak; doubling all at most doubles it. */
static const char *larger_buffers_never_live_in_less(struct subject *s)
{
    struct hb_memory grown, doubled;
    uint32_t one = (uint32_t)hb_rng_range(&s->rng, 0, s->p.buf_count - 1);
    s->p.bufs[one].bytes += hb_rng_range(&s->rng, 1, 100000);
    hb_run_memory(s->arena, &s->p, &grown);
    if (grown.live_temp_bytes < s->m.live_temp_bytes || grown.argument_bytes < s->m.argument_bytes)
        return "a larger buffer lowered the live peak";
    for (uint32_t i = 0; i < s->p.buf_count; i++)
        s->p.bufs[i].bytes *= hb_rng_range(&s->rng, 1, 2);
    hb_run_memory(s->arena, &s->p, &doubled);
    return doubled.live_temp_bytes > 2 * grown.live_temp_bytes ? "doubling more than doubled"
                                                               : NULL;
}

static int64_t *random_costs(struct subject *s)
{
    int64_t *costs = hb_arena_alloc(s->arena, s->p.op_count, sizeof *costs);
    int64_t most = hb_rng_range(&s->rng, 1, 1000);
    for (uint32_t i = 0; i < s->p.op_count; i++)
        if (s->p.ops[i].kind != HB_OP_MARK && s->p.ops[i].kind != HB_OP_DONE)
            costs[i] = hb_rng_range(&s->rng, 0, most);
    return costs;
}

/* 6: a faster op never lengthens the step; no step is shorter than a stream or a chain. */
static const char *streams_bound_the_step(struct subject *s)
{
    struct hb_timing slower, faster;
    struct slow_time chain;
    int64_t *costs = random_costs(s);
    hb_run_timing_with(s->arena, &s->p, costs, &slower);
    int64_t told = slower.busy_ns[HB_STREAM_COMPUTE];
    for (int i = 0; i < HB_STREAM_COUNT; i++) {
        if (slower.step_ns < slower.busy_ns[i])
            return "a step shorter than one of its streams";
        told += slower.exposed_ns[i];
    }
    if (told != slower.step_ns)
        return "compute and what it waits for are not the step";
    slow_time_run_as(s->arena, &s->p, costs, true, &chain);
    free(chain.spans);
    if (slower.step_ns < chain.clock_ns[0])
        return "a step shorter than its longest chain";
    for (uint32_t i = 0; i < s->p.op_count; i++)
        costs[i] -= hb_rng_range(&s->rng, 0, 2) ? 0 : hb_rng_range(&s->rng, 0, costs[i]);
    hb_run_timing_with(s->arena, &s->p, costs, &faster);
    return faster.step_ns > slower.step_ns ? "faster ops, longer step" : NULL;
}

/* 7: the parts of the peak sum to it; bytes and alignment doubled double the heap. */
static const char *parts_sum_to_the_peak(struct subject *s)
{
    const struct hb_memory *m = &s->m;
    int64_t kinds = 0, tensors = s->p.argument_extra_bytes + m->temp_bytes - m->live_temp_bytes;
    for (int c = 0; c < HB_CATEGORY_COUNT; c++)
        kinds += m->category_bytes[c];
    for (uint32_t i = 0; i < m->at_peak_count; i++)
        tensors += m->at_peak[i].bytes;
    if (kinds != m->peak_bytes || tensors != m->peak_bytes)
        return "kinds or tensors do not sum to the peak";
    struct hb_heap_item *items;
    uint32_t count = list_temps(s, &items);
    enum hb_heap_kind kind = hb_rng_range(&s->rng, 0, 1) ? HB_HEAP_IN_ORDER : HB_HEAP_SORTED;
    int64_t height = hb_heap_pack(s->arena, items, count, kind, 64);
    list_temps(s, &items); /* as they were before packing rounded them up */
    for (uint32_t i = 0; i < count; i++)
        items[i].bytes *= 2;
    return hb_heap_pack(s->arena, items, count, kind, 128) != 2 * height ? "twice is not twice"
                                                                         : NULL;
}

/* 9: twice the same run, twice the same answer. */
static const char *runs_repeat(struct subject *s)
{
    struct hb_memory m;
    struct hb_timing a, b;
    int64_t *costs = random_costs(s);
    hb_run_memory(s->arena, &s->p, &m);
    hb_run_timing_with(s->arena, &s->p, costs, &a);
    hb_run_timing_with(s->arena, &s->p, costs, &b);
    if (m.peak_bytes != s->m.peak_bytes || m.peak_op != s->m.peak_op ||
        m.at_peak_count != s->m.at_peak_count ||
        memcmp(m.offset_of, s->m.offset_of, s->p.buf_count * sizeof *m.offset_of) != 0)
        return "another memory";
    if (a.step_ns != b.step_ns || a.span_count != b.span_count)
        return "another time";
    for (uint32_t i = 0; i < a.span_count; i++)
        if (a.spans[i].op != b.spans[i].op || a.spans[i].start_ns != b.spans[i].start_ns)
            return "other spans";
    return NULL;
}

static const char *try_law(law_fn *law, uint64_t seed, struct random_shape shape)
{
    struct subject s = {.arena = hb_arena_new(), .rng = hb_rng_seed(seed)};
    random_program(s.arena, &s.rng, shape, &s.p);
    hb_run_memory(s.arena, &s.p, &s.m);
    const char *broken = law(&s);
    hb_arena_free(s.arena);
    return broken;
}

static bool find_seed(law_fn *law, struct random_shape shape, uint64_t *seed)
{
    for (uint64_t other = 0; other < 500; other++)
        if (try_law(law, other, shape)) {
            *seed = other;
            return true;
        }
    return false;
}

/* The smallest shape, and its first seed, that breaks the law; the given one if none does. */
static void shrink(law_fn *law, uint64_t *seed, struct random_shape *shape)
{
    struct random_shape small = {1, 0, 3, 1000};
    while (small.most_ops < shape->most_ops && !find_seed(law, small, seed)) {
        small.most_depth = (small.most_depth + 1) % 3;
        small.most_ops += small.most_depth == 0;
    }
    if (small.most_ops < shape->most_ops)
        *shape = small;
}

static uint64_t case_count(void)
{
    const char *asked = getenv("HB_LAWS");
    return asked && *asked ? strtoull(asked, NULL, 10) : prop_cases(2000);
}

static void hold(law_fn *law)
{
    uint64_t cases = case_count(), first = prop_seed(0);
    for (uint64_t seed = first; seed < first + cases; seed++) {
        struct random_shape shape = {2 + (int)(seed % 25), (int)(seed % 4), 12, 200000};
        const char *broken = try_law(law, seed, shape);
        if (!broken)
            continue;
        uint64_t small = seed;
        shrink(law, &small, &shape);
        fail_msg("%s: seed %llu (smaller: seed %llu, %d ops a block, depth %d)", broken,
                 (unsigned long long)seed, (unsigned long long)small, shape.most_ops,
                 shape.most_depth);
    }
}

#define LAW(name)                                                                                  \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        hold(name);                                                                                \
    }
LAW(bytes_are_conserved)
LAW(heaps_lie_between_bounds)
LAW(larger_buffers_never_live_in_less)
LAW(streams_bound_the_step)
LAW(parts_sum_to_the_peak)
LAW(runs_repeat)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_conserved),
        cmocka_unit_test(test_heaps_lie_between_bounds),
        cmocka_unit_test(test_larger_buffers_never_live_in_less),
        cmocka_unit_test(test_streams_bound_the_step),
        cmocka_unit_test(test_parts_sum_to_the_peak),
        cmocka_unit_test(test_runs_repeat),
    };
    return cmocka_run_group_tests_name("laws of programs", tests, NULL, NULL);
}
