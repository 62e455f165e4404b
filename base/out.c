/* Gather, write beside, rename: see out.h. */
#include "base/out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/env.h"
#include "base/file.h"
#include "base/mem_file.h"
#include "base/str.h"
#include "base/utf8.h"

struct hb_out {
    struct hb_env *env;
    const char *path; /* links resolved; null: env->out */
    mode_t mode;      /* of the file that is replaced; 0: there is none */
    bool direct;      /* no regular file: a device or a pipe */
    FILE *file;
    char *text; /* owned by the memory stream until it is closed, then by us */
    size_t len;
};

static _Noreturn void fail(const char *path)
{
    hb_die("cannot write %s: %s", path, errno ? strerror(errno) : "unknown error");
}

static const char *folder_of(struct hb_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    return slash == path ? "/" : hb_arena_strndup(arena, path, (size_t)(slash - path));
}

/* The file that a link at path leads to, be it there or not. */
static const char *follow_links(struct hb_arena *arena, const char *path)
{
    struct stat now;
    if (lstat(path, &now) != 0 || !S_ISLNK(now.st_mode))
        return path;
    const char *target = hb_file_target(arena, path);
    return target ? target : path;
}

/* What stands at the path now, and whether we may replace it. */
static void look_at_target(struct hb_out *out)
{
    struct stat now;
    if (stat(out->path, &now) != 0) {
        int why = errno;
        out->path = follow_links(out->env->arena, out->path);
        errno = why;
        if (errno != ENOENT || access(folder_of(out->env->arena, out->path), W_OK) != 0)
            fail(out->path);
        return;
    }
    if (S_ISDIR(now.st_mode)) {
        errno = EISDIR;
        fail(out->path);
    }
    if (access(out->path, W_OK) != 0)
        fail(out->path);
    out->direct = !S_ISREG(now.st_mode);
    out->mode = now.st_mode & 0777;
    if (!out->direct)
        out->path = follow_links(out->env->arena, out->path);
}

struct hb_out *hb_out_open(struct hb_env *env, const char *path)
{
    struct hb_out *out = hb_arena_alloc(env->arena, 1, sizeof *out);
    out->env = env;
    out->file = env->out;
    if (!path || hb_str_same(path, "-"))
        return out;
    out->path = path;
    look_at_target(out);
    out->file = hb_mem_open(&out->text, &out->len);
    if (!out->file)
        fail(path);
    return out;
}

FILE *hb_out_file(struct hb_out *out)
{
    return out->file;
}

static bool write_all(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t done = write(fd, text, len);
        if (done < 0 && errno != EINTR)
            return false;
        if (done > 0) {
            text += done;
            len -= (size_t)done;
        }
    }
    return true;
}

/* Data on the disk before the name points to it; not every file system can (EINVAL). */
static bool sync_file(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL;
}

static bool fill_file(const struct hb_out *out, int fd)
{
    bool ok = write_all(fd, out->text, out->len);
    ok = ok && (out->direct || sync_file(fd));
    ok = ok && (!out->mode || out->direct || fchmod(fd, out->mode) == 0);
    int why = errno;
    bool closed = close(fd) == 0;
    if (!ok)
        errno = why;
    return ok && closed;
}

static void write_directly(const struct hb_out *out)
{
    int fd = open(out->path, O_WRONLY);
    if (fd < 0 || !fill_file(out, fd))
        fail(out->path);
}

static bool is_gone(const char *pid)
{
    char *end;
    errno = 0;
    long id = strtol(pid, &end, 10);
    return end != pid && !*end && !errno && id > 0 && id <= INT_MAX && kill((pid_t)id, 0) != 0 &&
           errno == ESRCH;
}

/* What runs that were killed while they wrote left beside path: said and removed. */
static void clean_parts(const struct hb_out *out)
{
    struct hb_arena *arena = out->env->arena;
    size_t folder = strlen(hb_file_folder(arena, out->path));
    const char *prefix = hb_arena_printf(arena, "%s.part-", out->path + folder);
    const char *const *names = hb_file_list(arena, folder_of(arena, out->path), "");
    for (; *names; names++) {
        if (!hb_str_starts(*names, prefix) || !is_gone(*names + strlen(prefix)))
            continue;
        const char *part = hb_arena_printf(arena, "%.*s%s", (int)folder, out->path, *names);
        if (unlink(part) == 0)
            hb_warn(out->env->diag, (struct hb_loc){.file = part},
                    "the half of a run that was killed while it wrote: removed");
    }
}

static void replace_file(const struct hb_out *out)
{
    clean_parts(out);
    const char *beside = hb_arena_printf(out->env->arena, "%s.part-%ld", out->path, (long)getpid());
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0)
        fail(out->path);
    if (fill_file(out, fd) && rename(beside, out->path) == 0)
        return;
    int why = errno;
    unlink(beside);
    errno = why;
    fail(out->path);
}

void hb_out_close(struct hb_out *out)
{
    if (!out->path)
        return;
    bool lost = fflush(out->file) != 0 || ferror(out->file) != 0;
    errno = lost ? ENOMEM : 0;
    if (lost || fclose(out->file) != 0 || !out->text)
        fail(out->path);
    if (out->direct)
        write_directly(out);
    else
        replace_file(out);
    free(out->text);
}

void hb_out_drop(struct hb_out *out)
{
    if (!out->path)
        return;
    fclose(out->file);
    free(out->text);
}

/* Why a stream has lost output: an earlier write may have had the reason, so another is tried. */
static int find_reason(FILE *stream)
{
    errno = 0;
    clearerr(stream);
    fputc('\n', stream);
    fflush(stream);
    return errno;
}

void hb_out_to_screen(struct hb_env *env)
{
    env->screen.to = env->out;
    env->out = hb_mem_open(&env->screen.text, &env->screen.len);
    if (!env->out)
        hb_die("cannot write standard output: %s", strerror(errno));
}

static void show_screen(struct hb_env *env)
{
    struct hb_screen *s = &env->screen;
    if (!s->to)
        return;
    fflush(env->out);
    bool lost = ferror(env->out) != 0;
    if (fclose(env->out) != 0 || lost || !s->text)
        hb_die("cannot write standard output: no memory");
    hb_utf8_show(s->to, s->text, s->len, env->colour);
    free(s->text);
    env->out = s->to;
    *s = (struct hb_screen){0};
}

void hb_out_finish(struct hb_env *env)
{
    show_screen(env);
    fflush(env->out);
    bool lost = ferror(env->out) != 0;
    int why = lost ? find_reason(env->out) : 0;
    hb_diag_print(env->diag, env->err);
    errno = 0;
    if (fclose(env->out) != 0 && !lost) {
        lost = true;
        why = errno;
    }
    if (lost && why == EPIPE)
        hb_quit();
    if (lost)
        hb_die("cannot write standard output: %s", why ? strerror(why) : "write error");
}
