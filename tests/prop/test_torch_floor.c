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

/* Peaks without a program are those of the programs, rank by rank. */
static void peaks_are_of_programs(struct hb_arena *arena, const struct hb_spec *drawn,
                                  const struct hb_memory *told, const char *text)
{
    struct hb_spec spec = *drawn;
    int64_t peak = 0;
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
        if (m.peak_bytes != told->rank_peaks[r])
            fail_msg("rank %lld: peak %lld, without a program %lld of\n%s", (long long)r,
                     (long long)m.peak_bytes, (long long)told->rank_peaks[r], text);
    }
}

static void no_run_is_below_its_floor(void **state)
{
    (void)state;
    int wanted = getenv("HB_LONG") ? LONG_CONFIGURATIONS : CONFIGURATIONS, compared = 0;
    struct hb_rng rng = hb_rng_seed(prop_seed(20261122));
    struct hb_arena *arena = hb_arena_new();
    double *part[2] = {calloc((size_t)wanted, sizeof(double)),
                       calloc((size_t)wanted, sizeof(double))};
    int count[2] = {0};
    assert_true(part[0] && part[1]);
    for (int drawn = 0; compared < wanted; drawn++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct hb_spec spec;
        struct hb_diag diag;
        struct hb_program p;
        struct hb_memory m;
        const char *text;
        if (drawn > 20 * wanted)
            fail_msg("only %d of %d configurations are admitted", compared, drawn);
        if (torch_draw(arena, &rng, &spec, &text)) {
            hb_diag_init(&diag, arena);
            assert_true(hb_step_run(arena, &diag, &spec, &p, &m));
            peaks_are_of_programs(arena, &spec, &m, text);
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
    for (int k = 0; k < 2; k++) {
        assert_true(count[k] > wanted / 10);
        qsort(part[k], (size_t)count[k], sizeof(double), compare_real);
        print_message("floors of %d peaks of %s bytes: least %.3f, 5 %% below %.3f, median %.3f\n",
                      count[k], k ? "reserved" : "allocated", part[k][0], part[k][count[k] / 20],
                      part[k][count[k] / 2]);
        /* The segments of small programs hold far more than what is asked for, most of all where
         * parameters and states are on the host. */
        assert_true(part[k][count[k] / 20] > (k ? 0.3 : 0.95));
        assert_true(part[k][count[k] / 2] > (k ? 0.7 : 0.99));
        free(part[k]);
    }
    hb_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_run_is_below_its_floor)};
    return cmocka_run_group_tests_name("torch_floor", tests, NULL, NULL);
}
