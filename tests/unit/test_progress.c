/* base/progress: silent off a terminal and for half a second, then one line that is wiped. */
#include "tests/unit/each.h"

#include "base/progress.h"

static void set_ms(int64_t ms)
{
    unit_clock_ns = ms * 1000000;
}

static void nothing_off_a_terminal(void **state)
{
    (void)state;
    struct hb_progress p;
    hb_progress_start(&p, &u.env, "sweep", 100);
    set_ms(5000);
    hb_progress_at(&p, 50);
    hb_progress_end(&p);
    assert_string_equal(unit_err(&u), "");
}

static void nothing_in_the_first_half_second(void **state)
{
    (void)state;
    struct hb_progress p;
    u.env.err_is_terminal = true;
    hb_progress_start(&p, &u.env, "sweep", 100);
    set_ms(499);
    hb_progress_at(&p, 50);
    hb_progress_end(&p);
    assert_string_equal(unit_err(&u), "");
}

/* From its end on, and a tenth of a second after that again. */
static void a_line_at_half_a_second(void **state)
{
    (void)state;
    struct hb_progress p;
    u.env.err_is_terminal = true;
    hb_progress_start(&p, &u.env, "sweep", 0);
    set_ms(500);
    hb_progress_at(&p, 50);
    assert_string_equal(unit_err(&u), "\r\033[Ksweep: 50, 100/s");
    set_ms(599);
    hb_progress_at(&p, 51);
    set_ms(600);
    hb_progress_at(&p, 60);
    assert_string_equal(unit_err(&u), "\r\033[Ksweep: 50, 100/s\r\033[Ksweep: 60, 100/s");
}

static void rate_and_time_left(void **state)
{
    (void)state;
    struct hb_progress p;
    u.env.err_is_terminal = true;
    hb_progress_start(&p, &u.env, "sweep", 2048);
    set_ms(1000);
    hb_progress_at(&p, 48);
    assert_string_equal(unit_err(&u), "\r\033[Ksweep: 48 of 2048, 48/s, 41.67 s left");
    set_ms(1050); /* too soon for another line */
    hb_progress_at(&p, 60);
    hb_progress_end(&p);
    assert_string_equal(unit_err(&u), "\r\033[Ksweep: 48 of 2048, 48/s, 41.67 s left\r\033[K");
}

static void an_unknown_total_and_no_advance(void **state)
{
    (void)state;
    struct hb_progress p;
    u.env.err_is_terminal = true;
    hb_progress_start(&p, &u.env, "plan", 0);
    set_ms(2000);
    hb_progress_at(&p, 3000);
    set_ms(3000);
    p.total = 5;
    hb_progress_at(&p, 0);
    assert_string_equal(unit_err(&u), "\r\033[Kplan: 3000, 1.50 k/s\r\033[Kplan: 0 of 5, 0/s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_off_a_terminal),          TEST(nothing_in_the_first_half_second),
        TEST(a_line_at_half_a_second),         TEST(rate_and_time_left),
        TEST(an_unknown_total_and_no_advance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
