/* base/diag: the form of messages, the limit of twenty, and the two ways to end. */
#include "tests/unit/unit.h"

static void messages_name_the_place(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    assert_false(hb_error(&u.diag, (struct hb_loc){"m.yaml", 14, 9}, "size of '%s'", "w_up"));
    hb_warn(&u.diag, (struct hb_loc){"m.yaml", 3, 0}, "odd");
    hb_error(&u.diag, (struct hb_loc){"m.yaml", 0, 7}, "empty");
    hb_error(&u.diag, (struct hb_loc){0}, "no such option");
    hb_diag_print(&u.diag, u.env.err);
    assert_string_equal(unit_err(&u), "m.yaml:14:9: error: size of 'w_up'\n"
                                      "m.yaml:3: warning: odd\n"
                                      "m.yaml: error: empty\n"
                                      "hbmsim: error: no such option\n");
    unit_end(&u);
}

static void printing_forgets(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    hb_error(&u.diag, (struct hb_loc){0}, "once");
    assert_int_equal(u.diag.errors, 1);
    hb_diag_print(&u.diag, u.env.err);
    hb_diag_print(&u.diag, u.env.err);
    assert_int_equal(u.diag.errors, 0);
    assert_string_equal(unit_err(&u), "hbmsim: error: once\n");
    unit_end(&u);
}

static void errors_beyond_the_limit_are_counted(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    for (int i = 0; i < HB_DIAG_MAX_ERRORS + 5; i++)
        hb_error(&u.diag, (struct hb_loc){0}, "error %d", i);
    hb_warn(&u.diag, (struct hb_loc){0}, "dropped");
    assert_int_equal(u.diag.errors, HB_DIAG_MAX_ERRORS + 5);
    hb_diag_print(&u.diag, u.env.err);
    const char *text = unit_err(&u);
    assert_non_null(strstr(text, "error 19\nhbmsim: 5 further errors not shown\n"));
    assert_null(strstr(text, "error 20"));
    assert_null(strstr(text, "dropped"));
    unit_end(&u);
}

static void warnings_are_no_errors(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    hb_warn(&u.diag, (struct hb_loc){0}, "odd");
    assert_int_equal(u.diag.errors, 0);
    assert_int_equal(u.diag.count, 1);
    unit_end(&u);
}

static void die(const void *arg)
{
    hb_die("cannot write %s", (const char *)arg);
}

static void find_a_bug(const void *arg)
{
    HB_BUG("state %s", (const char *)arg);
}

static void dying_is_status_3(void **state)
{
    (void)state;
    char text[512];
    assert_int_equal(unit_child(die, "a.json", text, sizeof text), 3);
    assert_string_equal(text, "hbmsim: fatal: cannot write a.json\n");
}

static void quiet_ones_are_counted_and_not_kept(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    u.diag.quiet = true;
    assert_false(hb_error(&u.diag, (struct hb_loc){0}, "error %d", 1));
    hb_warn(&u.diag, (struct hb_loc){0}, "odd");
    assert_int_equal(u.diag.errors, 1);
    assert_int_equal(u.diag.count, 0);
    hb_diag_init(&u.diag, u.env.arena);
    hb_error(&u.diag, (struct hb_loc){0}, "loud again");
    assert_int_equal(u.diag.count, 1);
    unit_end(&u);
}

static void a_bug_asks_to_be_reported(void **state)
{
    (void)state;
    char text[512];
    int status = unit_child(find_a_bug, "x", text, sizeof text);
    assert_non_null(strstr(text, "internal fault at "));
    assert_non_null(strstr(text, "test_diag.c:"));
    assert_non_null(strstr(text, "please report it"));
    assert_true(status == 3 || status == -1); /* -1: aborted, as a debug build does */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_name_the_place),
        cmocka_unit_test(printing_forgets),
        cmocka_unit_test(errors_beyond_the_limit_are_counted),
        cmocka_unit_test(warnings_are_no_errors),
        cmocka_unit_test(quiet_ones_are_counted_and_not_kept),
        cmocka_unit_test(dying_is_status_3),
        cmocka_unit_test(a_bug_asks_to_be_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
