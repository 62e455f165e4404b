/* Logs from files: see logfile.h. zlib passes on what is not gzip as it is. */
#include "sim/hlo/logfile.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

/* A file ends; what is none may not. A device that is no terminal has nothing to say. */
#define MOST_OF_STREAM_BYTES ((int64_t)4 << 30)
#define MOST_OF_DEVICE_BYTES ((int64_t)64 << 20)

struct input {
    gzFile file;
    int64_t left_bytes; /* that may be read */
    bool endless;
    bool failed;
    int error;          /* errno of a failed read; 0: not the system's */
    const char *reason; /* what zlib says */
};

static size_t read_some(void *context, char *text, size_t cap)
{
    struct input *in = context;
    if (in->failed || in->endless)
        return 0;
    errno = 0;
    int got = gzread(in->file, text, (unsigned)cap);
    in->left_bytes -= got > 0 ? got : 0;
    in->endless = in->left_bytes < 0;
    if (got >= 0)
        return (size_t)got;
    int code;
    in->failed = true;
    in->error = errno;
    in->reason = gzerror(in->file, &code);
    return 0;
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
    struct input in = {.left_bytes = most_of(path), .file = open_input(path)};
    if (!in.file)
        return hb_error(diag, loc, "cannot be read: %s", errno ? strerror(errno) : "no memory");
    hb_log_read(arena, (struct hb_log_source){read_some, &in}, out_log);
    bool ok = !in.failed && !in.endless;
    if (in.endless)
        hb_error(diag, loc,
                 "no end after %lld MiB: a log is read from a file, or from a pipe that ends",
                 (long long)(most_of(path) >> 20));
    else if (!ok && in.error)
        hb_error(diag, loc, "cannot be read: %s", strerror(in.error));
    else if (!ok)
        hb_error(diag, loc, "cannot be read: %s", in.reason);
    if (gzclose(in.file) == Z_BUF_ERROR && ok)
        hb_warn(diag, loc, "the gzip file ends early; what could be unpacked was read");
    return ok;
}
