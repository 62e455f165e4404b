/* hbmsim: one binary, a command as its first word. Only this file looks at the environment; what
 * it finds there goes to the commands in a struct hb_env. */
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/out.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/help.h"

static const char *read_variable(const char *name, const char *absent)
{
    const char *value = getenv(name);
    return value && *value ? value : absent;
}

enum { NARROWEST = 40, USUAL_WIDTH = 80, WIDEST = 1000, MAX_PATH = 4096 };

static int terminal_width(bool terminal)
{
    struct winsize size;
    int64_t columns = USUAL_WIDTH;
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
        columns = size.ws_col;
    return (int)(columns < NARROWEST ? NARROWEST : columns > WIDEST ? WIDEST : columns);
}

static bool has_data(struct hb_arena *arena, const char *dir)
{
    return access(hb_arena_printf(arena, "%s/models/zoo", dir), R_OK) == 0;
}

/* The path of the running program; its length, 0 where the system does not tell. */
static ssize_t program_path(char *path)
{
#ifdef __APPLE__
    char given[MAX_PATH];
    uint32_t room = sizeof given;
    if (_NSGetExecutablePath(given, &room) != 0 || !realpath(given, path))
        return 0;
    return (ssize_t)strlen(path);
#else
    ssize_t len = readlink("/proc/self/exe", path, MAX_PATH);
    return len <= 0 || len == MAX_PATH ? 0 : len;
#endif
}

/* The folder of the running program, or null where the system does not tell. */
static const char *program_dir(struct hb_arena *arena)
{
    char path[MAX_PATH];
    ssize_t len = program_path(path);
    if (!len)
        return NULL;
    while (len > 0 && path[len - 1] != '/')
        len--;
    return hb_arena_strndup(arena, path, len > 1 ? (size_t)len - 1 : 0);
}

/* In this order: HBMSIM_DATA; ../share/hbmsim beside an installed program, also where the whole
 * installation was moved; the source tree of a program that runs from its build folder; the
 * place compiled in, and where no system tells the program's path, the tree it was built in. */
static const char *find_data(struct hb_arena *arena)
{
    const char *asked = read_variable("HBMSIM_DATA", NULL);
    if (asked)
        return asked;
    const char *dir = program_dir(arena);
    if (dir && hb_str_ends(dir, "/bin")) {
        const char *beside =
            hb_arena_printf(arena, "%.*s/share/hbmsim", (int)(strlen(dir) - strlen("/bin")), dir);
        if (has_data(arena, beside))
            return beside;
    }
    if (dir && hb_str_starts(dir, HB_SOURCE_DIR "/") && has_data(arena, HB_SOURCE_DIR))
        return HB_SOURCE_DIR;
    return dir || has_data(arena, HB_DATADIR) ? HB_DATADIR : HB_SOURCE_DIR;
}

/* As the C library takes it: the first of the three that is set. */
static bool shows_unicode(void)
{
    const char *locale =
        read_variable("LC_ALL", read_variable("LC_CTYPE", read_variable("LANG", "")));
    return strstr(locale, "UTF-8") || strstr(locale, "utf8") || strstr(locale, "UTF8") ||
           strstr(locale, "utf-8");
}

static void fill_env(struct hb_env *env)
{
    bool dumb = hb_str_same(read_variable("TERM", "dumb"), "dumb");
    env->out = stdout;
    env->err = stderr;
    env->version = HB_VERSION;
    env->data_dir = find_data(env->arena);
    env->trace = read_variable("HBM_TRACE", "");
    env->now_ns = hb_clock_ns;
    env->out_is_terminal = isatty(STDOUT_FILENO);
    env->err_is_terminal = isatty(STDERR_FILENO) && !dumb;
    env->colour = env->out_is_terminal && !dumb && !read_variable("NO_COLOR", NULL);
    if (env->out_is_terminal)
        hb_out_to_screen(env);
    env->unicode = shows_unicode() && !dumb;
    env->width = terminal_width(env->out_is_terminal);
}

/* A stream that the caller has closed is one that fails, so that no file gets its number and with
 * it what is printed. */
static void fill_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            exit(HB_EXIT_MACHINE);
}

static int dispatch(struct hb_env *env, int argc, char **argv)
{
    if (argc < 2) {
        hb_help_overview(env->err);
        return HB_EXIT_INPUT;
    }
    if (hb_str_same(argv[1], "--version")) {
        fputs("hbmsim " HB_VERSION "\n", env->out);
        return HB_EXIT_YES;
    }
    if (hb_str_same(argv[1], "--help") || hb_str_same(argv[1], "-h")) {
        hb_help_overview(env->out);
        return HB_EXIT_YES;
    }
    const struct hb_cmd *cmd = hb_help_find(argv[1]);
    if (cmd)
        return cmd->run(env, argc - 1, argv + 1);
    hb_help_unknown(env, argv[1], NULL);
    return HB_EXIT_INPUT;
}

int main(int argc, char **argv)
{
    struct hb_diag diag;
    struct hb_env env = {.arena = hb_arena_new(), .diag = &diag};
    hb_diag_init(&diag, env.arena);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond ulimit -f fails, as on a full disk */
    fill_closed_streams();
    fill_env(&env);
    int status = dispatch(&env, argc, argv);
    if (diag.errors)
        status = HB_EXIT_INPUT;
    hb_out_finish(&env);
    hb_arena_free(env.arena);
    return status;
}
