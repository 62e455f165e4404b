/* fork, exec, and a loop over three pipes: see child.h. A fourth pipe, closed by a successful
 * exec, tells why one failed. */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"

/* How often clock and signals are looked at, and what is read at once. */
enum { LOOK_MS = 50, CHUNK = 65536, IN = 0, OUT = 1, ERR = 2, EXEC = 3, PIPES = 4 };
/* Between being asked to end and being killed: enough to remove its files. */
static const int64_t grace_ns = 1000000000;

struct run {
    const struct hb_child_ask *ask;
    struct hb_child *child;
    pid_t pid;
    int ours[PIPES]; /* our ends; -1: closed */
    int theirs[PIPES];
    size_t sent;
    struct hb_str out;
    struct hb_str err;
    sigset_t held;
    sigset_t before;
    int64_t start_ns;
    int64_t stopped_ns;
    bool stopped;
};

static void make_pipes(struct run *r)
{
    for (int i = 0; i < PIPES; i++) {
        int ends[2];
        if (pipe(ends) != 0)
            hb_die("cannot make a pipe: %s", strerror(errno));
        r->ours[i] = i == IN ? ends[1] : ends[0];
        r->theirs[i] = i == IN ? ends[0] : ends[1];
        fcntl(r->ours[i], F_SETFD, FD_CLOEXEC);
        fcntl(r->theirs[i], F_SETFD, FD_CLOEXEC);
        if (i != EXEC)
            fcntl(r->ours[i], F_SETFL, O_NONBLOCK);
    }
}

/* In the child: never returns. Descriptors of other files are closed by exec. */
static void become(const struct run *r)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    setpgid(0, 0);
    sigemptyset(&usual.sa_mask);
    sigaction(SIGPIPE, &usual, NULL);
    sigaction(SIGXFSZ, &usual, NULL);
    sigprocmask(SIG_SETMASK, &r->before, NULL);
    bool good = true;
    for (int i = IN; i <= ERR; i++)
        good = good && dup2(r->theirs[i], i) == i;
    if (good && (!r->ask->folder || chdir(r->ask->folder) == 0))
        execvp(r->ask->argv[0], (char *const *)(uintptr_t)r->ask->argv);
    int why = errno;
    ssize_t told = write(r->theirs[EXEC], &why, sizeof why);
    _exit(told == sizeof why ? 127 : 126);
}

/* Those that mean something to this program: not blocked, not ignored (nohup). */
static void hold_signals(struct run *r)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    sigprocmask(SIG_SETMASK, NULL, &r->before);
    sigemptyset(&r->held);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct sigaction now;
        if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN &&
            sigismember(&r->before, ends[i]) != 1)
            sigaddset(&r->held, ends[i]);
    }
    sigprocmask(SIG_BLOCK, &r->held, NULL);
}

static bool was_interrupted(const struct run *r)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t pending;
    bool any = false;
    if (sigpending(&pending) != 0)
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        any = any || (sigismember(&r->held, ends[i]) == 1 && sigismember(&pending, ends[i]) == 1);
    return any;
}

static void close_end(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

static void start(struct run *r)
{
    make_pipes(r);
    hold_signals(r);
    r->pid = fork();
    if (r->pid < 0)
        hb_die("cannot start a process: %s", strerror(errno));
    if (r->pid == 0)
        become(r);
    setpgid(r->pid, r->pid); /* whoever comes first */
    for (int i = 0; i < PIPES; i++)
        close_end(&r->theirs[i]);
    int why;
    ssize_t got;
    do
        got = read(r->ours[EXEC], &why, sizeof why);
    while (got < 0 && errno == EINTR);
    close_end(&r->ours[EXEC]);
    if (got == (ssize_t)sizeof why) {
        r->child->end = HB_CHILD_ABSENT;
        r->child->status = why;
    }
}

static void stop(struct run *r, enum hb_child_end why)
{
    if (r->stopped)
        return;
    r->child->end = why;
    r->stopped = true;
    r->stopped_ns = r->ask->now_ns();
    kill(-r->pid, SIGTERM);
}

static void send_input(struct run *r)
{
    size_t len = r->ask->input ? strlen(r->ask->input) : 0;
    ssize_t n = 0;
    if (r->sent < len)
        n = write(r->ours[IN], r->ask->input + r->sent, len - r->sent);
    if (n > 0)
        r->sent += (size_t)n;
    if (r->sent == len || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_end(&r->ours[IN]); /* it need not read all */
}

/* Of its messages the end is what tells. */
static void keep_end(struct hb_str *text, size_t most)
{
    if (text->len <= 2 * most)
        return;
    memmove(text->text, text->text + (text->len - most), most);
    text->len = most;
    text->text[most] = 0;
}

static void receive(struct run *r, int which)
{
    char chunk[CHUNK];
    ssize_t n = read(r->ours[which], chunk, sizeof chunk);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            close_end(&r->ours[which]);
        return;
    }
    if (which == ERR) {
        hb_str_addn(&r->err, chunk, (size_t)n);
        keep_end(&r->err, r->ask->most_bytes);
        return;
    }
    if (!r->stopped)
        hb_str_addn(&r->out, chunk, (size_t)n);
    if (r->out.len > r->ask->most_bytes)
        stop(r, HB_CHILD_LONG);
}

static void look_around(struct run *r)
{
    if (r->ask->most_ns && r->ask->now_ns() - r->start_ns > r->ask->most_ns)
        stop(r, HB_CHILD_LATE);
    if (was_interrupted(r))
        stop(r, HB_CHILD_INTERRUPTED);
    if (r->stopped && r->ask->now_ns() - r->stopped_ns > grace_ns)
        kill(-r->pid, SIGKILL);
}

/* One turn: waits for something to happen on the pipes. */
static void turn(struct run *r)
{
    struct pollfd p[3];
    for (int i = IN; i <= ERR; i++)
        p[i] = (struct pollfd){.fd = r->ours[i], .events = i == IN ? POLLOUT : POLLIN};
    if (poll(p, 3, LOOK_MS) > 0) {
        if (p[IN].revents) /* none of a pipe that is closed */
            send_input(r);
        for (int i = OUT; i <= ERR; i++)
            if (p[i].revents)
                receive(r, i);
    }
    look_around(r);
}

/* Something that it left behind may hold the pipes: its own end is what counts. */
static int wait_for_end(struct run *r)
{
    int state = 0;
    for (;;) {
        pid_t got = waitpid(r->pid, &state, WNOHANG);
        if (got == r->pid || (got < 0 && errno != EINTR))
            break;
        turn(r);
    }
    kill(-r->pid, SIGKILL);
    for (int i = OUT; i <= ERR; i++) /* what still stands in the pipes */
        while (poll(&(struct pollfd){r->ours[i], POLLIN, 0}, 1, 0) > 0)
            receive(r, i);
    return state;
}

static void finish(struct run *r, int state)
{
    struct hb_child *c = r->child;
    for (int i = 0; i < PIPES; i++)
        close_end(&r->ours[i]);
    c->took_ns = r->ask->now_ns() - r->start_ns;
    c->out = (struct hb_text){r->out.text, r->out.len};
    c->err = (struct hb_text){r->err.text, r->err.len};
    if (!r->stopped && c->end == HB_CHILD_DONE) {
        bool killed = WIFSIGNALED(state);
        c->end = killed ? HB_CHILD_SIGNAL : HB_CHILD_DONE;
        c->status = killed ? WTERMSIG(state) : WEXITSTATUS(state);
    }
    if (c->end == HB_CHILD_INTERRUPTED)
        sigwait(&r->held, &c->status);
    sigprocmask(SIG_SETMASK, &r->before, NULL);
}

void hb_child_run(struct hb_arena *arena, const struct hb_child_ask *ask, struct hb_child *out)
{
    struct run r = {.ask = ask, .child = out, .start_ns = ask->now_ns()};
    *out = (struct hb_child){.end = HB_CHILD_DONE};
    hb_str_init(&r.out, arena);
    hb_str_init(&r.err, arena);
    start(&r);
    finish(&r, wait_for_end(&r));
}
