/* hw/calib: statistics of samples; when measuring stops; Ctrl-C keeps what was measured. */
#include "tests/unit/unit.h"

#include <signal.h>

#include "hw/calib.h"

static void near(double got, double want)
{
    double room = 1e-9 * (want > 1 ? want : 1);
    assert_true(got > want - room && got < want + room);
}

static void samples_have_a_median_and_quantiles(void **state)
{
    (void)state;
    const double values[] = {5, 1, 4, 2, 3};
    struct hb_sample s = hb_sample_of(values, 5);
    assert_int_equal(s.count, 5);
    near(s.median, 3);
    near(s.low, 1.2);
    near(s.high, 4.8);
    const double even[] = {4, 1};
    near(hb_sample_of(even, 2).median, 2.5);
    const double one[] = {7};
    s = hb_sample_of(one, 1);
    near(s.median, 7);
    near(s.low, 7);
    near(s.drift, 0);
    assert_int_equal(s.outliers, 0);
}

static void outliers_are_counted_and_do_not_move_the_median(void **state)
{
    (void)state;
    double values[21];
    for (int i = 0; i < 21; i++)
        values[i] = 100 + i % 3;
    values[10] = 1000;
    struct hb_sample s = hb_sample_of(values, 21);
    near(s.median, 101);
    assert_int_equal(s.outliers, 1);
}

static void drift_compares_the_last_third_with_the_first(void **state)
{
    (void)state;
    const double values[] = {100, 100, 100, 105, 105, 105, 110, 110, 110};
    near(hb_sample_of(values, 9).drift, 0.1);
    const double faster[] = {110, 110, 110, 105, 105, 105, 99, 99, 99};
    near(hb_sample_of(faster, 9).drift, -0.1);
}

/* More samples of the same scatter: the median is known better. */
static void the_spread_falls_with_the_count(void **state)
{
    (void)state;
    double values[200];
    unsigned seed = 1;
    for (int i = 0; i < 200; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = 1000 + seed % 100;
    }
    double few = hb_sample_of(values, 10).spread;
    double many = hb_sample_of(values, 200).spread;
    assert_true(many > 0 && many < few / 2);
    assert_true(few < 0.06);
}

/* Work of so many ns each time, scattered, on the test's clock. */
struct work {
    double ns, scatter;
    int calls, fail_at, interrupt_at;
    unsigned seed;
};

static bool do_work(void *ctx, int repeats, double *out_ns)
{
    struct work *w = ctx;
    w->seed = w->seed * 1664525u + 1013904223u;
    double part = (double)w->seed / 4294967296. - 0.5;
    *out_ns = w->ns * (1 + w->scatter * part) * repeats;
    unit_clock_ns += (int64_t)*out_ns;
    if (++w->calls == w->interrupt_at)
        raise(SIGINT);
    return w->calls != w->fail_at;
}

static bool measure(struct work *w, int64_t budget_ns, struct hb_sample *out,
                    struct hb_calib *out_calib)
{
    struct unit u;
    unit_start(&u);
    hb_calib_start(out_calib, &u.env, budget_ns);
    bool done = hb_calib_measure(out_calib, do_work, w, out);
    hb_calib_end(out_calib);
    unit_end(&u);
    return done;
}

static const int64_t minute = 60000000000;

static void steady_work_is_measured_a_few_times(void **state)
{
    (void)state;
    struct work w = {.ns = 5e7};
    struct hb_sample s;
    struct hb_calib c;
    assert_true(measure(&w, minute, &s, &c));
    assert_int_equal(s.count, c.least);
    near(s.median, 5e7);
    assert_false(c.interrupted);
}

/* A sample of short work is many repetitions, and the result is still of one. */
static void short_work_is_repeated(void **state)
{
    (void)state;
    struct work w = {.ns = 100};
    struct hb_sample s;
    struct hb_calib c;
    assert_true(measure(&w, minute, &s, &c));
    near(s.median, 100);
    assert_true(w.calls < 60);
}

static void scattered_work_is_measured_until_its_share_is_up(void **state)
{
    (void)state;
    struct work w = {.ns = 1e6, .scatter = 0.8};
    struct hb_sample s;
    struct hb_calib c;
    assert_true(measure(&w, minute, &s, &c));
    assert_true(s.count > c.least);
    assert_true(s.count == c.most || s.spread <= c.tight || unit_clock_ns < minute / 10);
    assert_true(s.median > 0.9e6 && s.median < 1.1e6);
}

/* Others may have the processor for longer than a quantity's share: then the first sample, which
 * may be an outlier, does not stand alone. */
static bool do_put_aside(void *ctx, int repeats, double *out_ns)
{
    struct work *w = ctx;
    bool outlier = ++w->calls == 3;
    *out_ns = w->ns * (outlier ? 1.25 : 1) * repeats;
    unit_clock_ns += minute / 50; /* twice the share */
    return true;
}

static void a_sample_does_not_stand_alone(void **state)
{
    (void)state;
    struct unit u;
    struct work w = {.ns = 1e8};
    struct hb_sample s;
    struct hb_calib c;
    unit_start(&u);
    hb_calib_start(&c, &u.env, minute);
    assert_true(hb_calib_measure(&c, do_put_aside, &w, &s));
    hb_calib_end(&c);
    assert_int_equal(s.count, 3);
    near(s.median, 1e8);
    unit_end(&u);
}

static void time_that_is_up_ends_it(void **state)
{
    (void)state;
    struct work w = {.ns = 1e9};
    struct hb_sample s;
    struct hb_calib c;
    assert_true(measure(&w, minute / 20, &s, &c)); /* warm-up and a sample */
    assert_true(s.count >= 1 && s.count < c.least);
    w = (struct work){.ns = 1};
    assert_false(measure(&w, 0, &s, &c));
    assert_int_equal(w.calls, 0);
}

/* What a profile must have is measured once when time was up before it began; Ctrl-C still counts.
 */
static void the_essential_is_measured_late(void **state)
{
    (void)state;
    struct unit u;
    struct hb_sample s;
    struct hb_calib c;
    struct work w = {.ns = 1e9}, stopped = {.ns = 1e9, .interrupt_at = 1};
    unit_start(&u);
    hb_calib_start(&c, &u.env, 1000);
    unit_clock_ns = 5000;
    assert_false(hb_calib_measure(&c, do_work, &w, &s));
    assert_int_equal(w.calls, 0);
    c.essential = true;
    assert_true(hb_calib_measure(&c, do_work, &w, &s));
    assert_int_equal(s.count, 1);
    near(s.median, 1e9);
    assert_true(hb_calib_measure(&c, do_work, &stopped, &s));
    assert_false(hb_calib_measure(&c, do_work, &w, &s));
    hb_calib_end(&c);
    unit_end(&u);
}

/* Fast at first, a tenth slower once it has run for half a second. */
static bool get_hot(void *ctx, int repeats, double *out_ns)
{
    double *hot_ns = ctx;
    *out_ns = (*hot_ns > 5e8 ? 1.1e6 : 1e6) * repeats;
    *hot_ns += *out_ns;
    unit_clock_ns += (int64_t)*out_ns;
    return true;
}

static void seconds_of_work_tell_what_is_kept_up(void **state)
{
    (void)state;
    struct unit u;
    struct hb_stretch s;
    struct hb_calib c;
    double hot_ns = 0;
    unit_start(&u);
    hb_calib_start(&c, &u.env, minute);
    assert_true(hb_calib_stretch(&c, get_hot, &hot_ns, 2e9, &s));
    near(s.burst, 1e6);
    near(s.sustained, 1.1e6);
    assert_true(s.ns >= 2e9 && s.ns < 2.1e9 && unit_clock_ns < 2200000000);
    hot_ns = 0;
    c.deadline_ns = unit_clock_ns + 100000000; /* what there is time for */
    assert_true(hb_calib_stretch(&c, get_hot, &hot_ns, 2e9, &s));
    near(s.sustained, 1e6);
    assert_true(s.ns < 2e8);
    assert_false(hb_calib_stretch(&c, get_hot, &hot_ns, 2e9, &s));
    hb_calib_end(&c);
    unit_end(&u);
}

static void work_that_fails_is_told(void **state)
{
    (void)state;
    for (int at = 1; at < 10; at++) {
        struct work w = {.ns = 1e7, .fail_at = at};
        struct hb_sample s;
        struct hb_calib c;
        assert_false(measure(&w, minute, &s, &c));
        assert_int_equal(w.calls, at);
    }
}

static void ctrl_c_stops_and_keeps_the_samples(void **state)
{
    (void)state;
    struct work w = {.ns = 2e7, .scatter = 0.8, .interrupt_at = 8};
    struct hb_sample s;
    struct hb_calib c;
    assert_true(measure(&w, minute, &s, &c));
    assert_true(c.interrupted);
    assert_true(s.count >= 1 && s.count <= 8);
    assert_int_equal(w.calls, 8);
    sigset_t pending; /* it has done its work: the program goes on */
    sigpending(&pending);
    assert_int_equal(sigismember(&pending, SIGINT), 0);
}

static void interrupt_again(const void *arg)
{
    (void)arg;
    struct work w = {.ns = 2e7};
    struct hb_sample s;
    struct hb_calib c;
    measure(&w, minute, &s, &c);
    raise(SIGINT);
}

static void afterwards_ctrl_c_ends_the_program(void **state)
{
    (void)state;
    char text[100];
    assert_int_equal(unit_child(interrupt_again, NULL, text, sizeof text), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_have_a_median_and_quantiles),
        cmocka_unit_test(outliers_are_counted_and_do_not_move_the_median),
        cmocka_unit_test(drift_compares_the_last_third_with_the_first),
        cmocka_unit_test(the_spread_falls_with_the_count),
        cmocka_unit_test(steady_work_is_measured_a_few_times),
        cmocka_unit_test(short_work_is_repeated),
        cmocka_unit_test(scattered_work_is_measured_until_its_share_is_up),
        cmocka_unit_test(a_sample_does_not_stand_alone),
        cmocka_unit_test(time_that_is_up_ends_it),
        cmocka_unit_test(the_essential_is_measured_late),
        cmocka_unit_test(seconds_of_work_tell_what_is_kept_up),
        cmocka_unit_test(work_that_fails_is_told),
        cmocka_unit_test(ctrl_c_stops_and_keeps_the_samples),
        cmocka_unit_test(afterwards_ctrl_c_ends_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
