/* Works in processes of their own: see serve_job.h. */
#include "cli/serve_job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/out.h"

/* A frame's head and the least of its bytes that are worth reading. */
enum { HEAD_ROOM = 64, LEAST_ROOM = 16 << 10, MOST_DESCRIPTORS = 1024 };

/* Of memory, for one work. */
#define MOST_MEMORY ((rlim_t)16 << 30)

static void add_frame(struct hb_job *job, const char *kind, const char *bytes, size_t len)
{
    if (job->taken) {
        memmove(job->frames, job->frames + job->taken, job->len - job->taken);
        job->len -= job->taken;
        job->taken = 0;
    }
    job->len += (size_t)snprintf(job->frames + job->len, HEAD_ROOM, "%s %zu\n", kind, len);
    memcpy(job->frames + job->len, bytes, len);
    job->len += len;
}

static size_t room_of(const struct hb_job *job)
{
    size_t held = job->len - job->taken;
    return held + 4 * HEAD_ROOM < HB_JOB_ROOM ? HB_JOB_ROOM - held - 4 * HEAD_ROOM : 0;
}

/* Nothing of the server's but the three streams: a connection that a child keeps would not end. */
static void keep_streams(int in, int out, int err)
{
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    for (int fd = STDERR_FILENO + 1; fd < MOST_DESCRIPTORS; fd++)
        close(fd);
    lseek(STDIN_FILENO, 0, SEEK_SET);
}

_Noreturn static void be_child(const struct hb_env *server, const struct hb_work *work)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct rlimit memory = {MOST_MEMORY, MOST_MEMORY};
    struct hb_diag diag;
    struct hb_env env = *server;
    sigset_t none;
    sigemptyset(&none);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setrlimit(RLIMIT_AS, &memory);
    env.arena = hb_arena_new();
    env.diag = &diag;
    env.out = stdout;
    env.err = stderr;
    env.err_is_terminal = true; /* progress is wanted */
    hb_diag_init(&diag, env.arena);
    int status = hb_work_run(&env, work);
    if (diag.errors)
        status = 2;
    hb_out_finish(&env);
    fflush(NULL);
    _exit(status);
}

bool hb_job_start(struct hb_job *job, struct hb_env *env, const struct hb_work *work, int body)
{
    int out[2], err[2];
    char number[HEAD_ROOM];
    if (pipe(out) != 0)
        return false;
    if (pipe(err) != 0) {
        close(out[0]);
        close(out[1]);
        return false;
    }
    fflush(NULL);
    job->pid = fork();
    if (job->pid == 0) {
        setpgid(0, 0);
        keep_streams(body, out[1], err[1]);
        be_child(env, work);
    }
    close(out[1]);
    close(err[1]);
    job->out = out[0];
    job->err = err[0];
    if (job->pid < 0) {
        job->pid = 0;
        hb_job_kill(job);
        return false;
    }
    int len = snprintf(number, sizeof number, "%d", job->number);
    add_frame(job, "job", number, (size_t)len);
    return true;
}

int hb_job_waits(const struct hb_job *job, fd_set *reads)
{
    if (room_of(job) < LEAST_ROOM)
        return -1;
    if (job->out >= 0)
        FD_SET((unsigned)job->out, reads);
    if (job->err >= 0)
        FD_SET((unsigned)job->err, reads);
    return job->out > job->err ? job->out : job->err;
}

/* One read of a pipe; at its end it is closed. */
static void read_pipe(struct hb_job *job, int *fd, const char *kind, const fd_set *reads)
{
    char bytes[LEAST_ROOM];
    if (*fd < 0 || !FD_ISSET((unsigned)*fd, reads) || room_of(job) < LEAST_ROOM)
        return;
    ssize_t got = read(*fd, bytes, sizeof bytes);
    if (got > 0) {
        add_frame(job, kind, bytes, (size_t)got);
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
        close(*fd);
        *fd = -1;
    }
}

static void take_status(struct hb_job *job)
{
    char text[HEAD_ROOM];
    int status = 0;
    if (waitpid(job->pid, &status, 0) != job->pid)
        status = 0;
    job->pid = 0;
    int len = WIFSIGNALED(status) ? snprintf(text, sizeof text, "signal %d", WTERMSIG(status))
                                  : snprintf(text, sizeof text, "%d", WEXITSTATUS(status));
    add_frame(job, "end", text, (size_t)len);
    job->ended = true;
}

void hb_job_read(struct hb_job *job, const fd_set *reads)
{
    read_pipe(job, &job->out, "out", reads);
    read_pipe(job, &job->err, "err", reads);
    if (job->out < 0 && job->err < 0 && !job->ended)
        take_status(job);
}

void hb_job_tick(struct hb_job *job)
{
    if (!job->ended && job->len == job->taken)
        add_frame(job, "tick", "", 0);
}

size_t hb_job_take(struct hb_job *job, char *out, size_t most)
{
    size_t len = job->len - job->taken;
    len = len < most ? len : most;
    memcpy(out, job->frames + job->taken, len);
    job->taken += len;
    return len;
}

void hb_job_stop(const struct hb_job *job)
{
    if (job->pid > 0)
        kill(job->pid, SIGINT);
}

void hb_job_kill(struct hb_job *job)
{
    int status;
    if (job->out >= 0)
        close(job->out);
    if (job->err >= 0)
        close(job->err);
    job->out = job->err = -1;
    if (job->pid > 0) {
        kill(-job->pid, SIGKILL); /* with all that it started */
        kill(job->pid, SIGKILL);
        waitpid(job->pid, &status, 0);
    }
    job->pid = 0;
    job->ended = true;
}
