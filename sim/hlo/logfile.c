/* Logs from files: see logfile.h. zlib passes on what is not gzip as it is. */
#include "sim/hlo/logfile.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/arena.h"

/* A file ends; what is none may not: it is taken whole before it is read, which takes far longer.
 * A device that is no terminal has nothing to say. */
#define MOST_OF_STREAM_BYTES ((int64_t)256 << 20)
#define MOST_OF_DEVICE_BYTES ((int64_t)64 << 20)

enum { PIECE_BYTES = 1 << 20 };

/* Of what was taken. */
struct piece {
    struct piece *next;
    size_t len;
    char text[PIECE_BYTES];
};

struct input {
    gzFile file;
    bool failed;
    int error;           /* errno of a failed read; 0: not the system's */
    const char *reason;  /* what zlib says */
    struct piece *piece; /* where reading stands; null: at the end, or all is in the file */
    size_t at;
};

static size_t read_file(void *context, char *text, size_t cap)
{
    struct input *in = context;
    if (in->failed)
        return 0;
    errno = 0;
    int got = gzread(in->file, text, (unsigned)cap);
    if (got >= 0)
        return (size_t)got;
    int code;
    in->failed = true;
    in->error = errno;
    in->reason = gzerror(in->file, &code);
    return 0;
}

static size_t read_taken(void *context, char *text, size_t cap)
{
    struct input *in = context;
    while (in->piece && in->at == in->piece->len) {
        in->piece = in->piece->next;
        in->at = 0;
    }
    size_t left = in->piece ? in->piece->len - in->at : 0;
    size_t len = left < cap ? left : cap;
    if (len)
        memcpy(text, in->piece->text + in->at, len);
    in->at += len;
    return len;
}

/* False: it goes on behind `most` bytes. */
static bool take_whole(struct hb_arena *arena, struct input *in, int64_t most)
{
    struct piece **last = &in->piece;
    for (int64_t left = most; left >= 0; left -= (int64_t)(*last)->len, last = &(*last)->next) {
        *last = hb_arena_raw(arena, 1, sizeof **last);
        (*last)->next = NULL;
        (*last)->len = read_file(in, (*last)->text, PIECE_BYTES);
        if (!(*last)->len)
            return true;
    }
    return false;
}

static int64_t most_of(const char *path)
{
    struct stat st;
    int wrong = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(path, &st);
    if (!wrong && S_ISREG(st.st_mode))
        return INT64_MAX;
    return !wrong && S_ISCHR(st.st_mode) ? MOST_OF_DEVICE_BYTES : MOST_OF_STREAM_BYTES;
}

static gzFile open_input(const char *path)
{
    if (strcmp(path, "-") != 0)
        return gzopen(path, "rb");
    int fd = dup(STDIN_FILENO);
    return fd < 0 ? NULL : gzdopen(fd, "rb");
}

bool hb_logfile_read(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                     struct hb_log *out_log)
{
    struct hb_loc loc = {.file = path};
    errno = 0;
    struct input in = {.file = open_input(path)};
    if (!in.file)
        return hb_error(diag, loc, "cannot be read: %s", errno ? strerror(errno) : "no memory");
    int64_t most = most_of(path);
    bool ends = most == INT64_MAX || take_whole(arena, &in, most);
    if (ends)
        hb_log_read(arena, (struct hb_log_source){most == INT64_MAX ? read_file : read_taken, &in},
                    out_log);
    bool ok = !in.failed && ends;
    if (!ends)
        hb_error(diag, loc,
                 "no end after %lld MiB: a log is read from a file, or from a pipe that ends",
                 (long long)(most >> 20));
    else if (!ok && in.error)
        hb_error(diag, loc, "cannot be read: %s", strerror(in.error));
    else if (!ok)
        hb_error(diag, loc, "cannot be read: %s", in.reason);
    if (gzclose(in.file) == Z_BUF_ERROR && ok)
        hb_warn(diag, loc, "the gzip file ends early; what could be unpacked was read");
    return ok;
}
