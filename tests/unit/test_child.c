/* base/child: another program run to its end, or stopped for each of the reasons there are. */
#include "tests/unit/each.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/child.h"

static const int64_t turn_ns = 300000000;
static int64_t fast_ns;

/* Each look at it is 0.3 s later: limits of seconds take some turns of the loop. */
static int64_t fast_clock(void)
{
    return fast_ns += turn_ns;
}

static int64_t still_clock(void)
{
    return 0;
}

/* Runs a script of sh. */
static struct hb_child run(const char *script, struct hb_child_ask ask)
{
    struct hb_child child;
    const char *const argv[] = {"sh", "-c", script, NULL};
    ask.argv = argv;
    ask.now_ns = ask.now_ns ? ask.now_ns : still_clock;
    ask.most_bytes = ask.most_bytes ? ask.most_bytes : 1 << 24;
    alarm(60);
    hb_child_run(u.env.arena, &ask, &child);
    alarm(0);
    return child;
}

static void expect_out(const struct hb_child *child, const char *out)
{
    assert_int_equal(child->end, HB_CHILD_DONE);
    assert_int_equal(child->out.len, strlen(out));
    assert_memory_equal(child->out.text, out, strlen(out));
}

static void what_it_prints_is_kept_apart(void **state)
{
    (void)state;
    struct hb_child child =
        run("cat; echo message >&2; exit 3", (struct hb_child_ask){.input = "a\nb"});
    expect_out(&child, "a\nb");
    assert_int_equal(child.status, 3);
    assert_string_equal(child.err.text, "message\n");
    child = run("cat", (struct hb_child_ask){0});
    expect_out(&child, "");
    child = run("pwd -P", (struct hb_child_ask){.folder = "/"});
    expect_out(&child, "/\n");
}

/* More than pipes hold, and to one that reads none of it. */
static void much_is_sent_and_received(void **state)
{
    (void)state;
    enum { MUCH = 1 << 20 };
    char *text = hb_arena_alloc(u.env.arena, MUCH + 1, 1);
    for (int i = 0; i < MUCH; i++)
        text[i] = (char)('a' + i % 23);
    struct hb_child child = run("cat", (struct hb_child_ask){.input = text});
    expect_out(&child, text);
    child = run("echo none", (struct hb_child_ask){.input = text});
    expect_out(&child, "none\n");
    child = run("exec 0<&-; i=0; while [ $i -lt 20000 ]; do echo $i >&2; i=$((i+1)); done",
                (struct hb_child_ask){.input = text, .most_bytes = 1000});
    assert_int_equal(child.end, HB_CHILD_DONE);
    assert_in_range(child.err.len, 1000, 2000);
    assert_string_equal(child.err.text + child.err.len - 12, "19998\n19999\n");
}

static void what_cannot_be_started_has_a_reason(void **state)
{
    (void)state;
    struct hb_child child;
    const char *const argv[] = {"no-such-program-of-any-machine", NULL};
    struct hb_child_ask ask = {.argv = argv, .now_ns = still_clock};
    hb_child_run(u.env.arena, &ask, &child);
    assert_int_equal(child.end, HB_CHILD_ABSENT);
    assert_int_equal(child.status, ENOENT);
    child = run("echo here", (struct hb_child_ask){.folder = "/no/such/folder"});
    assert_int_equal(child.end, HB_CHILD_ABSENT);
    assert_int_equal(child.status, ENOENT);
    child = run("kill -9 $$", (struct hb_child_ask){0});
    assert_int_equal(child.end, HB_CHILD_SIGNAL);
    assert_int_equal(child.status, SIGKILL);
}

static int64_t steady_ns;

static int64_t steady_clock(void)
{
    return steady_ns += 1000;
}

/* From the first look at the clock to the last, wherever the clock began. */
static void it_took_what_passed_meanwhile(void **state)
{
    (void)state;
    steady_ns = (int64_t)1 << 60;
    struct hb_child child = run("exec true", (struct hb_child_ask){.now_ns = steady_clock});
    assert_int_equal(child.end, HB_CHILD_DONE);
    assert_int_equal(child.took_ns, steady_ns - ((int64_t)1 << 60) - 1000);
}

/* Who does not end when asked to is killed; what it had begun, too. */
static void limits_stop_it(void **state)
{
    (void)state;
    struct hb_child_ask short_time = {.most_ns = 2 * turn_ns, .now_ns = fast_clock};
    struct hb_child child = run("echo begun; exec sleep 50", short_time);
    assert_int_equal(child.end, HB_CHILD_LATE);
    assert_in_range(child.took_ns, short_time.most_ns, 60 * turn_ns);
    child = run("trap '' TERM; sleep 50 & while :; do sleep 50; done", short_time);
    assert_int_equal(child.end, HB_CHILD_LATE);
    child = run("while :; do echo more; done", (struct hb_child_ask){.most_bytes = 1000});
    assert_int_equal(child.end, HB_CHILD_LONG);
    assert_true(child.out.len > 1000);
    child = run("exec sleep 0", (struct hb_child_ask){.most_ns = INT64_MAX, .now_ns = fast_clock});
    expect_out(&child, "");
}

static int64_t stopped_clock(void)
{
    return (int64_t)5 * 1000000000;
}

/* However late the clock is: no time passes here between asking it to end and its end. */
static void it_has_time_to_tidy_up(void **state)
{
    (void)state;
    const char *script = "trap 'sleep 0.3; echo tidy >&2; exit' TERM; echo begun; "
                         "while :; do sleep 0.02; done";
    struct hb_child child =
        run(script, (struct hb_child_ask){.most_bytes = 5, .now_ns = stopped_clock});
    assert_int_equal(child.end, HB_CHILD_LONG);
    assert_string_equal(child.err.text, "tidy\n");
}

/* Just as much as is allowed is not too much. */
static void as_much_as_is_allowed_is_taken(void **state)
{
    (void)state;
    struct hb_child_ask ask = {.most_bytes = 1000};
    struct hb_child child = run("printf %01000d 7", ask);
    assert_int_equal(child.end, HB_CHILD_DONE);
    assert_int_equal(child.out.len, 1000);
}

/* What it leaves behind is not waited for. */
static void its_own_end_counts(void **state)
{
    (void)state;
    struct hb_child child = run("sleep 50 & echo left", (struct hb_child_ask){0});
    expect_out(&child, "left\n");
}

/* Waits long enough for the child to have ended at the next look. */
static int64_t late_clock(void)
{
    nanosleep(&(struct timespec){.tv_nsec = turn_ns}, NULL);
    return 0;
}

/* What a child that has ended left in both pipes is read. */
static void what_stands_in_the_pipes_is_read(void **state)
{
    (void)state;
    struct hb_child child = run("sleep 0.1; echo out; echo err >&2",
                                (struct hb_child_ask){.now_ns = late_clock, .most_ns = 1});
    expect_out(&child, "out\n");
    assert_string_equal(child.err.text, "err\n");
}

/* A signal for us stops it and is told, unless we ignore it; afterwards all is as it was. */
static void signals_are_held_back(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int number;
    } ends[] = {{"INT", SIGINT}, {"TERM", SIGTERM}, {"HUP", SIGHUP}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const char *script =
            hb_arena_printf(u.env.arena, "kill -%s $PPID; exec sleep 50", ends[i].name);
        struct hb_child child = run(script, (struct hb_child_ask){0});
        assert_int_equal(child.end, HB_CHILD_INTERRUPTED);
        assert_int_equal(child.status, ends[i].number);
    }
    sigset_t after;
    signal(SIGHUP, SIG_IGN);
    struct hb_child child = run("kill -HUP $PPID; echo on", (struct hb_child_ask){0});
    expect_out(&child, "on\n");
    signal(SIGHUP, SIG_DFL);
    sigprocmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGHUP) + sigismember(&after, SIGINT), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_it_prints_is_kept_apart),
        TEST(much_is_sent_and_received),
        TEST(what_cannot_be_started_has_a_reason),
        TEST(limits_stop_it),
        TEST(it_has_time_to_tidy_up),
        TEST(as_much_as_is_allowed_is_taken),
        TEST(it_took_what_passed_meanwhile),
        TEST(its_own_end_counts),
        TEST(what_stands_in_the_pipes_is_read),
        TEST(signals_are_held_back),
    };
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
