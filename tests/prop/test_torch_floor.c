/* The floor of compiler torch against the engine: whatever the configuration, no rank's peak is
 * below it, and it is near the peak, or it would exclude nothing; peaks that are asked for alone
 * are the engine's. HB_LONG=1 in the environment
 * compares 10,000 configurations instead of 1,500. */
#include "tests/prop/seed.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "tests/prop/torch_config.h"

#include "sim/engine/floor.h"
#include "sim/engine/measure.h"
#include "sim/engine/step.h"

enum { CONFIGURATIONS = 1500, LONG_CONFIGURATIONS = 10000 };

static int compare_real(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

struct ranks_compared {
    int count, lower;
};

/* Peaks without a program are those of the programs, rank by rank, none below its floor. What is
 * added up has no word of a block that is larger than its request, by less than 1 MiB: seldom is
 * one there at the peak. */
static void peaks_are_of_programs(struct hb_arena *arena, const struct hb_spec *drawn,
                                  const struct hb_memory *told, const char *text,
                                  struct ranks_compared *sums)
{
    struct hb_spec spec = *drawn;
    int64_t peak = 0, first = 0, above = 0; /* floors: of the first rank, of the next above it */
    assert_true(hb_measure_peak(arena, &spec, &peak));
    if (peak != told->peak_bytes)
        fail_msg("peak %lld, without a program %lld of\n%s", (long long)told->peak_bytes,
                 (long long)peak, text);
    for (int64_t r = 0; r < told->rank_count; r++) {
        struct hb_diag diag;
        struct hb_program p;
        struct hb_memory m;
        hb_diag_init(&diag, arena);
        spec.pipeline.rank = r;
        assert_true(hb_step_run(arena, &diag, &spec, &p, &m));
        int64_t lower_bytes = m.peak_bytes - told->rank_peaks[r];
        sums->count++;
        sums->lower += lower_bytes > 0;
        if (lower_bytes < 0 || lower_bytes >= 1 << 20 || (r == told->rank && lower_bytes))
            fail_msg("rank %lld: peak %lld, without a program %lld of\n%s", (long long)r,
                     (long long)m.peak_bytes, (long long)told->rank_peaks[r], text);
        int64_t floor = hb_floor_bytes(arena, &spec, INT64_MAX - 1);
        if (floor > m.peak_bytes || floor <= 0)
            fail_msg("rank %lld: floor %lld, peak %lld of\n%s", (long long)r, (long long)floor,
                     (long long)m.peak_bytes, text);
        first = r ? first : floor;
        above = above || floor <= first ? above : floor;
    }
    /* What is as much as asked for is not above it: the next rank may be. */
    spec.pipeline.rank = drawn->pipeline.rank;
    if (told->rank_count && spec.pipeline.rank < 0)
        assert_int_equal(hb_floor_bytes(arena, &spec, first), above ? above : first);
}

static void run_and_compare(struct hb_arena *arena, const struct hb_spec *spec, const char *text,
                            struct hb_memory *out, struct ranks_compared *sums)
{
    struct hb_diag diag;
    struct hb_program p;
    hb_diag_init(&diag, arena);
    assert_true(hb_step_run(arena, &diag, spec, &p, out));
    peaks_are_of_programs(arena, spec, out, text, sums);
}

static void no_run_is_below_its_floor(void **state)
{
    (void)state;
    int wanted = prop_cases_or(CONFIGURATIONS, LONG_CONFIGURATIONS), compared = 0;
    struct hb_rng rng = hb_rng_seed(prop_seed(20261122));
    struct hb_arena *arena = hb_arena_new();
    double *part[2] = {calloc((size_t)wanted, sizeof(double)),
                       calloc((size_t)wanted, sizeof(double))};
    struct ranks_compared sums = {0};
    int count[2] = {0};
    assert_true(part[0] && part[1]);
    for (int drawn = 0; compared < wanted; drawn++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct hb_spec spec;
        struct hb_memory m;
        const char *text;
        if (drawn > 20 * wanted)
            fail_msg("only %d of %d configurations are admitted", compared, drawn);
        if (torch_draw(arena, &rng, &spec, &text)) {
            run_and_compare(arena, &spec, text, &m, &sums);
            int64_t floor = hb_floor_bytes(arena, &spec, INT64_MAX - 1);
            if (floor > m.peak_bytes || floor <= 0)
                fail_msg("floor %lld, peak %lld of\n%s", (long long)floor, (long long)m.peak_bytes,
                         text);
            int kind = spec.runtime.allocator == HB_MAX_RESERVED;
            part[kind][count[kind]++] = (double)floor / (double)m.peak_bytes;
            compared++;
        }
        hb_arena_rewind(arena, mark);
    }
    assert_true(wanted < 100 || sums.lower * 100 <= sums.count);
    for (int k = 0; k < 2; k++) {
        assert_true(wanted < 1000 || count[k] > wanted / 12);
        qsort(part[k], (size_t)count[k], sizeof(double), compare_real);
        print_message("floors of %d peaks of %s bytes: least %.3f, 5 %% below %.3f, median %.3f\n",
                      count[k], k ? "reserved" : "allocated", part[k][0], part[k][count[k] / 20],
                      part[k][count[k] / 2]);
        /* The segments of small programs hold far more than what is asked for, most of all where
         * parameters and states are on the host. */
        assert_true(wanted < 1000 || part[k][count[k] / 20] > (k ? 0.3 : 0.95));
        assert_true(wanted < 1000 || part[k][count[k] / 2] > (k ? 0.7 : 0.99));
        free(part[k]);
    }
    hb_arena_free(arena);
}

/* Pipelines in powers of two, whose ranks are added up from a few microbatches. */
static bool draw_even_pipe(struct hb_arena *arena, struct hb_rng *rng, struct hb_spec *out,
                           const char **out_text)
{
    struct hb_str s;
    struct hb_diag diag;
    struct hb_node *root;
    hb_str_init(&s, arena);
    hb_str_addf(&s, "model:\n  d_model: %lld\n  vocab: %lld\n  blocks:\n",
                (long long)(2048 * torch_power(rng, 1)), (long long)(32768 * torch_power(rng, 2)));
    for (int64_t i = 0, blocks = hb_rng_range(rng, 1, 2); i < blocks; i++)
        hb_str_addf(&s,
                    "    - {name: b%lld, repeat: %lld, norm: rmsnorm, attention: {heads: 32, "
                    "kv_heads: 8, head_dim: 128}, mlp: {kind: swiglu, d_ff: %lld}}\n",
                    (long long)i, (long long)hb_rng_range(rng, 2, 9),
                    (long long)(8192 * torch_power(rng, 1)));
    hb_str_add(&s, "compiler: torch\n");
    torch_pipes(&s, rng, false);
    hb_diag_init(&diag, arena);
    *out_text = s.text;
    return hb_yaml_parse(arena, &diag, "random", s.text, s.len, &root) &&
           hb_schema_from_node(arena, &diag, root, HB_SOURCE_DIR, out) &&
           hb_spec_supported(&diag, NULL, out);
}

static void ranks_added_up_are_those_that_run(void **state)
{
    (void)state;
    uint64_t wanted = prop_cases(100), compared = 0;
    struct ranks_compared sums = {0};
    struct hb_rng rng = hb_rng_seed(prop_seed(20261126));
    struct hb_arena *arena = hb_arena_new();
    for (uint64_t drawn = 0; compared < wanted; drawn++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct hb_spec spec;
        struct hb_memory m;
        const char *text;
        if (drawn > 20 * wanted)
            fail_msg("only %d of %d configurations are admitted", (int)compared, (int)drawn);
        if (draw_even_pipe(arena, &rng, &spec, &text)) {
            run_and_compare(arena, &spec, text, &m, &sums);
            compared++;
        }
        hb_arena_rewind(arena, mark);
    }
    print_message("%d ranks, %d added up to less\n", sums.count, sums.lower);
    assert_true(wanted < 100 || sums.lower * 100 <= sums.count);
    hb_arena_free(arena);
}

static struct ranks_compared run_text(const char *text, int64_t *out_told)
{
    struct hb_arena *arena = hb_arena_new();
    struct ranks_compared sums = {0};
    struct hb_diag diag;
    struct hb_node *root;
    struct hb_spec spec;
    struct hb_memory m;
    hb_diag_init(&diag, arena);
    assert_true(hb_yaml_parse(arena, &diag, "text", text, strlen(text), &root) &&
                hb_schema_from_node(arena, &diag, root, HB_SOURCE_DIR, &spec));
    run_and_compare(arena, &spec, text, &m, &sums);
    *out_told = m.rank;
    hb_arena_free(arena);
    return sums;
}

/* Odd sizes: what is added up of the third rank leaves 14 MiB out that blocks have beyond their
 * requests. */
static void a_rank_that_may_miss_a_block_is_asked(void **state)
{
    (void)state;
    int64_t told;
    static const char text[] =
        "model: {d_model: 896, vocab: 32000, tied_embeddings: false, blocks: [\n"
        "  {name: b0, repeat: 5, norm: rmsnorm, attention: {heads: 8, kv_heads: 1, head_dim: 128, "
        "qk_norm: true},\n"
        "   mlp: {d_ff: 1792}},\n"
        "  {name: b1, repeat: 7, norm: rmsnorm, attention: {heads: 8, kv_heads: 4, head_dim: 64},\n"
        "   mlp: {d_ff: 768}}]}\n"
        "compiler: torch\n"
        "batch: {global: 64, seq: 2048}\n"
        "mesh: {fsdp: 4, pipeline: 4}\n"
        "pipeline: {schedule: gpipe, microbatches: 8}\n"
        "sharding: {reshard_after_forward: false}\n"
        "remat: {policy: names, save: [q, v, attn_ctx, mlp_gate, mlp_down], every: 2}\n"
        "precision: {grads: f32}\n"
        "loss: {kernel: compiled}\n"
        "hardware: {device: nvidia-h100, count: 16}\n"
        "runtime: {framework: torchtitan, compile: true}\n";
    struct ranks_compared sums = run_text(text, &told);
    assert_int_equal(sums.count, 4);
    assert_int_equal(sums.lower, 0);
}

/* Ranks 1 and 2 have 989.5 MiB both. */
static void the_first_of_the_heaviest_is_told(void **state)
{
    (void)state;
    int64_t told;
    run_text("model: {d_model: 1024, vocab: 8, blocks: [{name: b, repeat: 16,\n"
             "  attention: {heads: 8, kv_heads: 8, head_dim: 128}, mlp: {d_ff: 4096}}]}\n"
             "compiler: torch\n"
             "batch: {global: 32, seq: 2048}\n"
             "mesh: {fsdp: 4, pipeline: 4}\n"
             "pipeline: {schedule: gpipe, microbatches: 8, layers: [3, 5, 5, 3]}\n"
             "hardware: {device: nvidia-h100, count: 16}\n"
             "runtime: {framework: torchtitan}\n",
             &told);
    assert_int_equal(told, 1);
}

/* The first rank, whose loss goes in chunks, is exact and heavier than what is added up of the
 * last, which is told once its blocks are asked for. */
static void a_rank_is_asked_beside_one_that_is_exact(void **state)
{
    (void)state;
    int64_t told;
    run_text(
        "model: {d_model: 768, vocab: 32000, tied_embeddings: false, blocks: [\n"
        "  {name: b0, repeat: 6, attention: {heads: 8, kv_heads: 2, head_dim: 128, rope: false, "
        "qk_norm: true},\n"
        "   mlp: {d_ff: 1024}},\n"
        "  {name: b1, repeat: 6, attention: {heads: 8, kv_heads: 8, head_dim: 128},\n"
        "   mlp: {d_ff: 1024}}]}\n"
        "compiler: torch\n"
        "batch: {global: 32, seq: 2048}\n"
        "mesh: {data: 2, fsdp: 4, pipeline: 2}\n"
        "pipeline: {schedule: zbv, microbatches: 4, repeats: 2}\n"
        "sharding: {reshard_after_forward: false}\n"
        "remat: {policy: full}\n"
        "precision: {grads: bf16}\n"
        "loss: {kernel: eager, chunks: 2}\n"
        "hardware: {device: nvidia-h100, count: 16}\n"
        "runtime: {framework: torchtitan}\n",
        &told);
    assert_int_equal(told, 1);
}

/* Blocks of segments that grow are as large as their requests: what is added up, of a first step
 * one microbatch alone, is each rank's peak in every schedule. */
static void sums_are_exact_where_segments_grow(void **state)
{
    (void)state;
    static const char *const schedules[] = {"gpipe, repeats: 1",       "1f1b, repeats: 1",
                                            "interleaved, repeats: 2", "zero_bubble, repeats: 2",
                                            "zbv, repeats: 2",         "dualpipe_v, repeats: 2"};
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        int64_t told;
        char text[1024];
        snprintf(text, sizeof text,
                 "model: {d_model: 1000, vocab: 3001, blocks: [{name: b, repeat: 16,\n"
                 "  attention: {heads: 10, kv_heads: 2, head_dim: 100}, mlp: {d_ff: 2728}}]}\n"
                 "compiler: torch\n"
                 "batch: {global: 48, seq: 1000}\n"
                 "mesh: {fsdp: 2, pipeline: 4}\n"
                 "pipeline: {schedule: %s, microbatches: 12}\n"
                 "sharding: {reshard_after_forward: false}\n"
                 "remat: {policy: %s}\n"
                 "hardware: {device: nvidia-h100, count: 8}\n"
                 "runtime: {framework: torchtitan, expandable_segments: true}\n",
                 schedules[i], i % 2 ? "full" : "none");
        struct ranks_compared sums = run_text(text, &told);
        assert_int_equal(sums.count, 4);
        assert_int_equal(sums.lower, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_run_is_below_its_floor),
                                       cmocka_unit_test(ranks_added_up_are_those_that_run),
                                       cmocka_unit_test(a_rank_that_may_miss_a_block_is_asked),
                                       cmocka_unit_test(a_rank_is_asked_beside_one_that_is_exact),
                                       cmocka_unit_test(sums_are_exact_where_segments_grow),
                                       cmocka_unit_test(the_first_of_the_heaviest_is_told)};
    return cmocka_run_group_tests_name("torch_floor", tests, NULL, NULL);
}
