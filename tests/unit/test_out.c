/* base/out: a file appears whole or not at all, whatever stands at its path. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem_file.h"
#include "base/out.h"

static char folder[] = "/tmp/hbmsim-out-XXXXXX";
static struct unit u;

static int start(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/hbmsim-out-XXXXXX");
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

static const char *read_file(const char *path)
{
    static char text[1000];
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int count_files(void)
{
    int count = 0;
    DIR *dir = opendir(".");
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

static void put(const char *path, const char *text)
{
    struct hb_out *out = hb_out_open(&u.env, path);
    fputs(text, hb_out_file(out));
    hb_out_close(out);
}

static void a_file_appears_at_the_end(void **state)
{
    (void)state;
    struct hb_out *out = hb_out_open(&u.env, "new.txt");
    fputs("hello", hb_out_file(out));
    fflush(hb_out_file(out));
    assert_int_equal(count_files(), 0);
    hb_out_close(out);
    assert_string_equal(read_file("new.txt"), "hello");
    assert_int_equal(count_files(), 1);
}

static void a_dropped_output_leaves_the_old_file(void **state)
{
    (void)state;
    write_file("old.txt", "old");
    struct hb_out *out = hb_out_open(&u.env, "old.txt");
    fputs("new", hb_out_file(out));
    hb_out_drop(out);
    assert_string_equal(read_file("old.txt"), "old");
    assert_int_equal(count_files(), 1);
}

static void permissions_are_kept(void **state)
{
    (void)state;
    struct stat now;
    write_file("old.txt", "old");
    chmod("old.txt", 0600);
    put("old.txt", "new");
    assert_int_equal(stat("old.txt", &now), 0);
    assert_int_equal(now.st_mode & 0777, 0600);
    assert_string_equal(read_file("old.txt"), "new");
}

static void the_umask_holds_for_new_files(void **state)
{
    (void)state;
    struct stat now;
    mode_t before = umask(027);
    put("new.txt", "x");
    umask(before);
    assert_int_equal(stat("new.txt", &now), 0);
    assert_int_equal(now.st_mode & 0777, 0640);
}

static void links_are_followed(void **state)
{
    (void)state;
    struct stat now;
    write_file("target", "old");
    assert_int_equal(symlink("target", "link"), 0);
    put("link", "new");
    assert_int_equal(lstat("link", &now), 0);
    assert_true(S_ISLNK(now.st_mode));
    assert_string_equal(read_file("target"), "new");
}

/* Of a process whose input is closed the first is 0. */
static void any_descriptor_will_do(void **state)
{
    (void)state;
    int kept = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    put("new", "text");
    assert_string_equal(read_file("new"), "text");
    if (kept >= 0)
        assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    close(kept);
}

static void devices_are_written_not_replaced(void **state)
{
    (void)state;
    struct stat now;
    put("/dev/null", "x");
    assert_int_equal(stat("/dev/null", &now), 0);
    assert_true(S_ISCHR(now.st_mode));
    assert_int_equal(mkfifo("pipe", 0600), 0);
    int fd = open("pipe", O_RDONLY | O_NONBLOCK);
    put("pipe", "through");
    char text[20] = {0};
    assert_int_equal(read(fd, text, sizeof text - 1), 7);
    assert_string_equal(text, "through");
    close(fd);
}

enum { MANY_WORDS = 50000 }; /* more than a pipe takes at once */

static void only_interrupt(int signal)
{
    (void)signal;
}

/* 0: all words come, to a reader that takes its time. */
static int read_late(const char *path)
{
    FILE *f = fopen(path, "r");
    static const struct timespec while_written = {.tv_nsec = 50000000};
    nanosleep(&while_written, NULL);
    int count = 0, word;
    while (f && fscanf(f, "%d", &word) == 1 && word == count)
        count++;
    return count == MANY_WORDS ? 0 : 1;
}

/* A write that a signal ends has written a part. */
static void what_is_interrupted_goes_on(void **state)
{
    (void)state;
    int status;
    struct sigaction on = {.sa_handler = only_interrupt};
    static const struct itimerval often = {{0, 5000}, {0, 5000}}, never;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    int open_end = open("pipe", O_RDONLY | O_NONBLOCK); /* who writes need not wait to open */
    pid_t reader = fork();
    if (reader == 0)
        _exit(read_late("pipe"));
    struct hb_out *out = hb_out_open(&u.env, "pipe");
    for (int i = 0; i < MANY_WORDS; i++)
        fprintf(hb_out_file(out), "%d\n", i);
    sigaction(SIGALRM, &on, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    hb_out_close(out);
    setitimer(ITIMER_REAL, &never, NULL);
    close(open_end);
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
}

static void a_dash_is_standard_output(void **state)
{
    (void)state;
    put("-", "one ");
    put(NULL, "two");
    assert_string_equal(unit_out(&u), "one two");
    assert_int_equal(count_files(), 0);
}

static void open_path(const void *path)
{
    hb_out_open(&u.env, path);
}

static void put_path(const void *path)
{
    put(path, "x");
}

static void what_cannot_be_written_dies_early(void **state)
{
    (void)state;
    char text[300];
    mkdir("dir", 0700);
    assert_int_equal(unit_child(open_path, "dir", text, sizeof text), 3);
    assert_string_equal(text, "hbmsim: fatal: cannot write dir: Is a directory\n");
    assert_int_equal(unit_child(open_path, "no/such", text, sizeof text), 3);
    assert_string_equal(text, "hbmsim: fatal: cannot write no/such: No such file or directory\n");
    assert_int_equal(unit_child(open_path, "dir/../no/x", text, sizeof text), 3);
    write_file("plain", "");
    assert_int_equal(unit_child(open_path, "plain/x", text, sizeof text), 3);
    assert_string_equal(text, "hbmsim: fatal: cannot write plain/x: Not a directory\n");
}

static void a_full_disk_dies(void **state)
{
    (void)state;
    char text[300];
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(unit_child(put_path, "/dev/full", text, sizeof text), 3);
    assert_string_equal(text, "hbmsim: fatal: cannot write /dev/full: No space left on device\n");
}

static void spoil_and_close(const void *path)
{
    struct hb_out *out = hb_out_open(&u.env, path);
    fputs("new", hb_out_file(out));
    fflush(NULL);
    rmdir("gone"); /* the folder vanishes during the work */
    hb_out_close(out);
}

/* In the place of the system's: what it answers. */
static int sync_errno;

int fsync(int fd)
{
    (void)fd;
    errno = sync_errno;
    return sync_errno ? -1 : 0;
}

static void what_the_disk_does_not_keep_is_lost(void **state)
{
    (void)state;
    char text[300];
    sync_errno = EIO;
    assert_int_equal(unit_child(put_path, "new.txt", text, sizeof text), 3);
    assert_string_equal(text, "hbmsim: fatal: cannot write new.txt: Input/output error\n");
    assert_int_equal(count_files(), 0);
    sync_errno = EINVAL; /* a file system that cannot */
    assert_int_equal(unit_child(put_path, "new.txt", text, sizeof text), 0);
    assert_string_equal(read_file("new.txt"), "x");
    sync_errno = 0;
}

static void a_failure_at_the_end_leaves_nothing(void **state)
{
    (void)state;
    char text[300];
    mkdir("gone", 0700);
    assert_int_equal(unit_child(spoil_and_close, "gone/x", text, sizeof text), 3);
    assert_string_equal(text, "hbmsim: fatal: cannot write gone/x: No such file or directory\n");
    assert_int_equal(count_files(), 0);
}

/* Writes until there is no memory, then goes on with memory again: 0 where the stream tells that
 * bytes are lost. */
static void lose_bytes(const void *unused)
{
    (void)unused;
    static char piece[1 << 20];
    struct rlimit limit;
    char *text;
    size_t len;
    FILE *file = hb_mem_open(&text, &len);
    memset(piece, 'a', sizeof piece);
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = (rlim_t)256 << 20;
    if (!file || setrlimit(RLIMIT_AS, &limit) != 0)
        _exit(2);
    for (int i = 0; i < 512; i++)
        fwrite(piece, 1, sizeof piece, file);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
    fputs("and the rest", file);
    bool told = fflush(file) != 0 || ferror(file) != 0;
    _exit(told && len < (size_t)512 << 20 ? 0 : 1);
}

/* A screen that takes nothing, though it closes and has a text. */
static void lose_a_screen(const void *unused)
{
    (void)unused;
    u.env.out = fopen("/dev/null", "r");
    u.env.screen.to = stdout;
    u.env.screen.text = calloc(1, 1);
    fputs("never seen", u.env.out);
    hb_out_finish(&u.env);
}

static void what_a_screen_loses_is_told(void **state)
{
    (void)state;
    char said[300];
    assert_int_equal(unit_child(lose_a_screen, NULL, said, sizeof said), 3);
    assert_non_null(strstr(said, "cannot write standard output: no memory"));
}

static void lost_bytes_are_told(void **state)
{
    (void)state;
    char said[100];
#if defined(__SANITIZE_ADDRESS__) || !defined(__linux__)
    skip();
#endif
    assert_int_equal(unit_child(lose_bytes, NULL, said, sizeof said), 0);
}

/* Of processes that are no more; what is no number of one is somebody's own. */
static void halves_of_killed_runs_go(void **state)
{
    (void)state;
    static const char *const kept[] = {"",   "0",    "-5",         "12x",
                                       "x9", "mine", "2147483648", "99999999999999999999"};
    enum { KEPT = sizeof kept / sizeof *kept };
    char name[64];
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    for (int i = 0; i < KEPT; i++) {
        snprintf(name, sizeof name, "out.part-%s", kept[i]);
        write_file(name, "");
    }
    write_file("other.part-2147483647", "");
    snprintf(name, sizeof name, "out.part-%ld", (long)getppid());
    write_file(name, "");
    snprintf(name, sizeof name, "out.part-%ld", (long)child);
    write_file(name, "");
    write_file("out.part-2147483647", ""); /* no system counts so far */
    put("out", "new");
    assert_int_equal(count_files(), KEPT + 3);
    assert_int_not_equal(access(name, F_OK), 0);
    assert_int_not_equal(access("out.part-2147483647", F_OK), 0);
    assert_int_equal(u.diag.count, 2);
}

static void memory_holds_what_was_written(void **state)
{
    (void)state;
    char *text;
    size_t len;
    FILE *file = hb_mem_open(&text, &len);
    assert_non_null(file);
    for (int i = 0; i < 5000; i++)
        fprintf(file, "%04d\n", i);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(len, 25000);
    assert_memory_equal(text + 24990, "4998\n4999\n", 11);
    assert_int_equal(fclose(file), 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_appears_at_the_end, start, end),
        cmocka_unit_test_setup_teardown(a_dropped_output_leaves_the_old_file, start, end),
        cmocka_unit_test_setup_teardown(permissions_are_kept, start, end),
        cmocka_unit_test_setup_teardown(the_umask_holds_for_new_files, start, end),
        cmocka_unit_test_setup_teardown(any_descriptor_will_do, start, end),
        cmocka_unit_test_setup_teardown(links_are_followed, start, end),
        cmocka_unit_test_setup_teardown(devices_are_written_not_replaced, start, end),
        cmocka_unit_test_setup_teardown(what_is_interrupted_goes_on, start, end),
        cmocka_unit_test_setup_teardown(a_dash_is_standard_output, start, end),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_dies_early, start, end),
        cmocka_unit_test_setup_teardown(a_full_disk_dies, start, end),
        cmocka_unit_test_setup_teardown(what_the_disk_does_not_keep_is_lost, start, end),
        cmocka_unit_test_setup_teardown(a_failure_at_the_end_leaves_nothing, start, end),
        cmocka_unit_test_setup_teardown(halves_of_killed_runs_go, start, end),
        cmocka_unit_test(memory_holds_what_was_written),
        cmocka_unit_test(lost_bytes_are_told),
        cmocka_unit_test(what_a_screen_loses_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
