/* sim/engine/overhead: known reserve and slack are found again, with outliers, with noise, and
 * where the records cannot tell. */
#include "tests/unit/unit.h"

#include <math.h>

#include "base/rng.h"
#include "sim/engine/overhead.h"

static const double gib = 1 << 30;
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

/* Predictions of 10, 13, ... GiB; noise: largest part by which a measurement is off. */
static struct hb_overhead_point *make_points(uint32_t count, double reserve, double slack,
                                             double noise)
{
    struct hb_rng rng = hb_rng_seed(7);
    struct hb_overhead_point *p = hb_arena_alloc(arena, count, sizeof *p);
    for (uint32_t i = 0; i < count; i++) {
        double off = noise * ((double)(hb_rng_next(&rng) % 2001) / 1000 - 1);
        p[i].id = "r";
        p[i].predicted_bytes = (10 + 3.0 * i) * gib;
        p[i].measured_bytes = (reserve + (1 + slack) * p[i].predicted_bytes) * (1 + off);
    }
    return p;
}

static bool near_to(double a, double b, double by)
{
    return fabs(a - b) <= by;
}

static void a_line_is_found(void **state)
{
    (void)state;
    struct hb_overhead o;
    struct hb_overhead_point *p = make_points(8, 1.5 * gib, 0.03, 0);
    hb_overhead_fit(arena, p, 8, &o);
    assert_true(o.slack_known);
    assert_true(near_to(o.slack.value, 0.03, 1e-9) && near_to(o.used_slack, 0.03, 1e-9));
    assert_true(near_to(o.slack.low, 0.03, 1e-9) && near_to(o.slack.high, 0.03, 1e-9));
    assert_true(near_to(o.reserve_bytes.value, 1.5 * gib, 10));
    assert_true(o.crossed.max_pct < 1e-6);
    assert_true(o.before.median_pct > 5);
    assert_int_equal(o.outliers, 0);
}

/* Every fifth record is far off: another program ran beside it. */
static void outliers_do_not_move_it(void **state)
{
    (void)state;
    struct hb_overhead o;
    struct hb_overhead_point *p = make_points(20, 2 * gib, 0.05, 0.001);
    for (uint32_t i = 2; i < 20; i += 5)
        p[i].measured_bytes += 9 * gib;
    hb_overhead_fit(arena, p, 20, &o);
    assert_true(near_to(o.slack.value, 0.05, 0.01));
    assert_true(o.slack.low <= 0.05 && 0.05 <= o.slack.high);
    assert_true(near_to(o.reserve_bytes.value, 2 * gib, 0.3 * gib));
    assert_int_equal(o.outliers, 4);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(p[i].outlier, i % 5 == 2);
    assert_true(o.crossed.median_pct < 0.5);
    assert_true(o.crossed.max_pct > 10);
}

/* 95 % intervals hold the truth in nearly all of many trials. */
static void intervals_hold_the_truth(void **state)
{
    (void)state;
    enum { TRIALS = 400, COUNT = 15 };
    struct hb_rng rng = hb_rng_seed(3);
    int slack = 0;
    for (int t = 0; t < TRIALS; t++) {
        struct hb_overhead o;
        struct hb_overhead_point p[COUNT];
        for (uint32_t i = 0; i < COUNT; i++) {
            double off = 0;
            for (int k = 0; k < 12; k++) /* close to a normal distribution */
                off += (double)(hb_rng_next(&rng) % 10001) / 10000 - 0.5;
            p[i] = (struct hb_overhead_point){"r", (10 + 4.0 * i) * gib,
                                              gib + 1.04 * (10 + 4.0 * i) * gib + off * gib, false};
        }
        hb_overhead_fit(arena, p, COUNT, &o);
        slack += o.slack.low <= 0.04 && 0.04 <= o.slack.high;
    }
    assert_true(slack >= TRIALS * 92 / 100);
    assert_true(slack < TRIALS);
}

static void what_cannot_be_told_is_left_out(void **state)
{
    (void)state;
    struct hb_overhead o;
    hb_overhead_fit(arena, make_points(4, gib, 0.1, 0), 4, &o); /* too few for a slope */
    assert_false(o.slack_known);
    assert_true(o.used_slack == 0);
    struct hb_overhead_point *same = make_points(9, gib, 0.1, 0.001);
    for (uint32_t i = 0; i < 9; i++) { /* of one size */
        same[i].measured_bytes += (10 * gib - same[i].predicted_bytes) * 1.1;
        same[i].predicted_bytes = 10 * gib;
    }
    hb_overhead_fit(arena, same, 9, &o);
    assert_false(o.slack_known);
    assert_true(near_to(o.reserve_bytes.value, 2 * gib, 0.1 * gib));
    /* No slack: its interval has 0, nothing is used. */
    hb_overhead_fit(arena, make_points(12, 3 * gib, 0, 0.002), 12, &o);
    assert_true(o.slack_known && o.slack.low <= 0 && 0 <= o.slack.high);
    assert_true(o.used_slack == 0);
    assert_true(near_to(o.reserve_bytes.value, 3 * gib, 0.1 * gib));
    /* Predictions that grow too fast are no slack either. */
    hb_overhead_fit(arena, make_points(12, 3 * gib, -0.1, 0), 12, &o);
    assert_true(o.slack.high < 0 && o.used_slack == 0);
}

/* Of rests of 1, 2 ... n GiB, in any order: the middle, and the ranks 0.98 sqrt(n) to both sides of
 * it, or the first and the last. */
static void ranks_make_the_interval(void **state)
{
    (void)state;
    static const struct {
        uint32_t count;
        double low, value, high;
    } rows[] = {{3, 1, 2, 3}, {4, 1, 2.5, 4}, {9, 2, 5, 8}, {24, 7, 12.5, 18}, {25, 8, 13, 18}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        uint32_t n = rows[r].count;
        struct hb_overhead o;
        struct hb_overhead_point *p = hb_arena_alloc(arena, n, sizeof *p);
        for (uint32_t i = 0; i < n; i++)
            p[i] = (struct hb_overhead_point){"r", 10 * gib, (11 + (i * 7 + 3) % n) * gib, false};
        hb_overhead_fit(arena, p, n, &o);
        assert_true(near_to(o.reserve_bytes.low, rows[r].low * gib, 1));
        assert_true(near_to(o.reserve_bytes.value, rows[r].value * gib, 1));
        assert_true(near_to(o.reserve_bytes.high, rows[r].high * gib, 1));
    }
}

/* Points anywhere, two and two of one size. */
static struct hb_overhead_point *draw_pairs(uint32_t count, struct hb_rng *rng)
{
    struct hb_overhead_point *p = hb_arena_alloc(arena, count, sizeof *p);
    for (uint32_t i = 0; i < count; i++) {
        p[i].predicted_bytes = (10 + 4.0 * (i / 2)) * gib;
        p[i].measured_bytes =
            p[i].predicted_bytes * 1.2 + (double)hb_rng_range(rng, 0, 4000) / 1000 * gib;
    }
    return p;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of all pairs of different sizes. */
static uint32_t list_slopes(const struct hb_overhead_point *p, uint32_t count, double *slopes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < (i & ~1u); k++)
            slopes[n++] = (p[i].measured_bytes - p[k].measured_bytes) /
                              (p[i].predicted_bytes - p[k].predicted_bytes) -
                          1;
    return n;
}

/* The slope is the middle one of all pairs of different sizes; what is crossed is how far off each
 * point is of a fit to the others. */
static void each_is_told_by_the_others(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(11);
    for (uint32_t count = 4; count <= 13; count++) {
        struct hb_overhead o, other;
        struct hb_overhead_point *p = draw_pairs(count, &rng);
        double slopes[100], errors[13];
        uint32_t n = list_slopes(p, count, slopes);
        qsort(slopes, n, sizeof *slopes, compare_doubles);
        hb_overhead_fit(arena, p, count, &o);
        assert_int_equal(o.slack_known, count >= HB_OVERHEAD_FEWEST_SLACK);
        if (o.slack_known)
            assert_true(near_to(o.slack.value, (slopes[(n - 1) / 2] + slopes[n / 2]) / 2, 1e-12));
        for (uint32_t i = 0; i < count; i++) {
            struct hb_overhead_point rest[13];
            memcpy(rest, p, i * sizeof *p);
            memcpy(rest + i, p + i + 1, (count - 1 - i) * sizeof *p);
            hb_overhead_fit(arena, rest, count - 1, &other);
            double told = other.reserve_bytes.value + (1 + other.used_slack) * p[i].predicted_bytes;
            errors[i] = 100 * fabs(told / p[i].measured_bytes - 1);
        }
        qsort(errors, count, sizeof *errors, compare_doubles);
        assert_true(near_to(o.crossed.max_pct, errors[count - 1], 1e-9));
        assert_true(
            near_to(o.crossed.median_pct, (errors[(count - 1) / 2] + errors[count / 2]) / 2, 1e-9));
    }
}

/* A tenth between the smallest and the largest is enough, what is left out not counted. */
static void a_spread_is_needed(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        struct hb_overhead o;
        struct hb_overhead_point p[9];
        for (uint32_t i = 0; i < 9; i++) {
            double size = i < 8 ? 90 + i : wide ? 100 : 99.5;
            p[i] = (struct hb_overhead_point){"r", size * gib, size * 1.1 * gib, false};
        }
        hb_overhead_fit(arena, p, 9, &o);
        assert_int_equal(o.slack_known, wide);
        /* Without the largest there is no slope to be had, and 10 % are missing. */
        if (wide)
            assert_true(near_to(o.crossed.max_pct, 100 * 0.65 / 110, 1e-9));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_line_is_found),
                                       TEST(outliers_do_not_move_it),
                                       TEST(each_is_told_by_the_others),
                                       TEST(a_spread_is_needed),
                                       TEST(intervals_hold_the_truth),
                                       TEST(ranks_make_the_interval),
                                       TEST(what_cannot_be_told_is_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
