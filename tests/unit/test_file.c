/* base/file: what is read, what is no file, and what is the machine's fault and not the file's. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/file.h"

static char folder[] = "/tmp/hbmsim-file-XXXXXX";
static struct unit u;

static int start(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/hbmsim-file-XXXXXX");
    unit_start(&u);
    return mkdtemp(folder) ? chdir(folder) : -1;
}

static int end(void **state)
{
    (void)state;
    unit_end(&u);
    char command[100];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return chdir("/") != 0 || system(command) != 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void a_file_is_read_whole(void **state)
{
    (void)state;
    struct hb_text text;
    const char *reason = NULL;
    write_file("a", "one\ntwo\n");
    errno = EINTR; /* of another call: the end of a file is no interrupted read */
    assert_true(hb_file_load(u.env.arena, "a", 8, &text, &reason));
    assert_string_equal(text.text, "one\ntwo\n");
    assert_int_equal(text.len, 8);
    assert_false(hb_file_load(u.env.arena, "a", 7, &text, &reason));
    assert_non_null(strstr(reason, "is larger than"));
    assert_false(hb_file_load(u.env.arena, ".", 7, &text, &reason));
    assert_string_equal(reason, "is a directory; a file is wanted");
    assert_false(hb_file_load(u.env.arena, "b", 7, &text, &reason));
    assert_string_equal(reason, "cannot be read: No such file or directory");
    assert_int_equal(text.len, 8);
}

/* Of what has no end no more than is allowed is read, in pieces that grow, none beyond its room. */
static void what_has_no_end_is_cut_off(void **state)
{
    (void)state;
    struct hb_text text;
    const char *reason = NULL;
    assert_false(hb_file_load(u.env.arena, "/dev/zero", 3 << 20, &text, &reason));
    assert_non_null(strstr(reason, "is larger than"));
}

/* A pipe that nobody writes to would be waited for. */
static void pipes_and_folders_are_no_files_of_a_folder(void **state)
{
    (void)state;
    write_file("b.yaml", "");
    write_file("a.yaml", "");
    write_file(".c.yaml", "");
    assert_int_equal(mkfifo("pipe.yaml", 0600), 0);
    assert_int_equal(mkdir("folder.yaml", 0700), 0);
    assert_int_equal(symlink("a.yaml", "link.yaml"), 0);
    assert_int_equal(symlink("pipe.yaml", "dark.yaml"), 0);
    int before = dup(0);
    close(before);
    const char *const *names = hb_file_list(u.env.arena, ".", ".yaml");
    int after = dup(0);
    close(after);
    assert_int_equal(after, before); /* the folder is closed */
    static const char *const wanted[] = {"a", "b", "link"};
    for (int i = 0; i < 3; i++)
        assert_string_equal(names[i], wanted[i]);
    assert_null(names[3]);
    assert_true(hb_file_regular("link.yaml"));
    assert_false(hb_file_regular("dark.yaml"));
    assert_false(hb_file_regular("nothing"));
    assert_null(hb_file_list(u.env.arena, "nothing", ".yaml")[0]);
}

static void read_without_descriptors(const void *unused)
{
    (void)unused;
    struct rlimit none = {0, 0};
    struct hb_text text;
    const char *reason = NULL;
    setrlimit(RLIMIT_NOFILE, &none);
    hb_file_load(u.env.arena, "a", 7, &text, &reason);
}

static void list_without_descriptors(const void *unused)
{
    (void)unused;
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    hb_file_list(u.env.arena, ".", ".yaml");
}

static void start_without_descriptors(const void *unused)
{
    (void)unused;
    struct rlimit none = {0, 0};
    char start[2];
    setrlimit(RLIMIT_NOFILE, &none);
    hb_file_start("a", start, sizeof start);
}

/* Whose first page no process has. */
static void read_nothing_of_memory(const void *unused)
{
    (void)unused;
    struct hb_text text;
    const char *reason = NULL;
    hb_file_load(u.env.arena, "/proc/self/mem", 1 << 20, &text, &reason);
}

/* Not an answer about the file: a sweep would keep it as the cell's. */
static void what_is_the_machines_ends_the_run(void **state)
{
    (void)state;
    char said[200];
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its search for leaks wants descriptors of its own */
#endif
    write_file("a", "");
    assert_int_equal(unit_child(read_without_descriptors, NULL, said, sizeof said), 3);
    assert_non_null(strstr(said, "a cannot be read: Too many open files"));
    assert_int_equal(unit_child(list_without_descriptors, NULL, said, sizeof said), 3);
    assert_non_null(strstr(said, ". cannot be read: Too many open files"));
    assert_int_equal(unit_child(start_without_descriptors, NULL, said, sizeof said), 3);
    assert_non_null(strstr(said, "a cannot be read: Too many open files"));
    if (access("/proc/self/mem", R_OK) != 0)
        return;
    assert_int_equal(unit_child(read_nothing_of_memory, NULL, said, sizeof said), 3);
    assert_non_null(strstr(said, "/proc/self/mem cannot be read: Input/output error"));
}

/* What failed before is no fault of a call that succeeds, or of one that fails otherwise. */
static void an_old_error_is_none(void **state)
{
    (void)state;
    static const int old[] = {EIO, EMFILE, ENFILE, ENOMEM};
    write_file("a", "one");
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        struct hb_text text;
        const char *reason = NULL;
        char bytes[4];
        errno = old[i];
        assert_true(hb_file_load(u.env.arena, "a", 8, &text, &reason));
        errno = old[i];
        assert_false(hb_file_load(u.env.arena, "a", 2, &text, &reason));
        errno = old[i];
        assert_int_equal(hb_file_start("a", bytes, sizeof bytes), 3);
        errno = old[i];
        assert_int_equal(hb_file_start("nothing", bytes, sizeof bytes), 0);
        errno = old[i];
        assert_non_null(hb_file_list(u.env.arena, ".", "")[0]);
        errno = old[i];
        assert_null(hb_file_list(u.env.arena, "nothing", "")[0]);
    }
}

static void the_start_of_a_file(void **state)
{
    (void)state;
    char bytes[4];
    write_file("a", "one\ntwo\n");
    assert_int_equal(hb_file_start("a", bytes, sizeof bytes), 4);
    assert_memory_equal(bytes, "one\n", 4);
    assert_int_equal(hb_file_start(".", bytes, sizeof bytes), 0);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    alarm(20); /* by which who waits for a writer is ended */
    assert_int_equal(hb_file_start("pipe", bytes, sizeof bytes), 0);
    alarm(0);
    assert_int_equal(hb_file_start("b", bytes, sizeof bytes), 0);
    int next = dup(0); /* as before: none is left open */
    close(next);
    assert_int_equal(hb_file_start("a", bytes, sizeof bytes), 4);
    assert_int_equal(dup(0), next);
    close(0); /* who was started without standard input opens a file in its place */
    assert_int_equal(hb_file_start("a", bytes, sizeof bytes), 4);
    assert_int_equal(dup2(next, 0), 0);
    close(next);
}

static void trees_hold_what_links_lead_to(void **state)
{
    (void)state;
    assert_int_equal(mkdir("in", 0700), 0);
    write_file("out", "");
    write_file("in/a", "");
    assert_int_equal(symlink("../out", "in/link"), 0);
    assert_int_equal(mkdir("inside", 0700), 0);
    write_file("inside/a", "");
    assert_true(hb_file_inside("in", "in/a"));
    assert_true(hb_file_inside("", "in/a"));
    assert_true(hb_file_inside("/", "in/a"));
    assert_false(hb_file_inside("in", "inside/a"));
    assert_false(hb_file_inside("in", "in/link"));
    assert_false(hb_file_inside("in", "in/nothing"));
    assert_true(hb_file_same("in/link", "out"));
    assert_false(hb_file_same("in/a", "out"));
    assert_false(hb_file_same("in/a", "nothing"));
}

/* Followed as the kernel follows them: no more than 40, each from its own folder. */
static void what_links_lead_to(void **state)
{
    (void)state;
    char name[16], to[16];
    assert_int_equal(mkdir("in", 0700), 0);
    assert_int_equal(symlink("a", "in/near"), 0);
    assert_int_equal(symlink("/a", "in/far"), 0);
    const char *near = hb_file_target(u.env.arena, "in/near");
    assert_string_equal(near + strlen(near) - 5, "/in/a");
    assert_string_equal(hb_file_target(u.env.arena, "in/far"), "//a");
    assert_string_equal(hb_file_target(u.env.arena, "-"), "-");
    assert_null(hb_file_target(u.env.arena, "in"));
    assert_null(hb_file_target(u.env.arena, "no/such"));
    write_file("vast", ""); /* no link: how long it is is no matter */
    if (truncate("vast", (off_t)1 << 42) == 0)
        assert_string_equal(strrchr(hb_file_target(u.env.arena, "vast"), '/'), "/vast");
    for (int i = 0; i < 42; i++) {
        snprintf(name, sizeof name, "l%d", i);
        snprintf(to, sizeof to, "l%d", i + 1);
        assert_int_equal(symlink(to, name), 0);
    }
    assert_string_equal(strrchr(hb_file_target(u.env.arena, "l0"), '/'), "/l40");
    assert_string_equal(strrchr(hb_file_target(u.env.arena, "l3"), '/'), "/l42");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_read_whole, start, end),
        cmocka_unit_test_setup_teardown(what_has_no_end_is_cut_off, start, end),
        cmocka_unit_test_setup_teardown(pipes_and_folders_are_no_files_of_a_folder, start, end),
        cmocka_unit_test_setup_teardown(an_old_error_is_none, start, end),
        cmocka_unit_test_setup_teardown(what_is_the_machines_ends_the_run, start, end),
        cmocka_unit_test_setup_teardown(the_start_of_a_file, start, end),
        cmocka_unit_test_setup_teardown(what_links_lead_to, start, end),
        cmocka_unit_test_setup_teardown(trees_hold_what_links_lead_to, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
