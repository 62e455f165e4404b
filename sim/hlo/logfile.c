/* Logs from files: see logfile.h. zlib passes on what is not gzip as it is. */
#include "sim/hlo/logfile.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

struct input {
    gzFile file;
    bool failed;
    int error;          /* errno of a failed read; 0: not the system's */
    const char *reason; /* what zlib says */
};

static size_t read_some(void *context, char *text, size_t cap)
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
    hb_log_read(arena, (struct hb_log_source){read_some, &in}, out_log);
    bool ok = !in.failed;
    if (!ok && in.error)
        hb_error(diag, loc, "cannot be read: %s", strerror(in.error));
    else if (!ok)
        hb_error(diag, loc, "cannot be read: %s", in.reason);
    if (gzclose(in.file) == Z_BUF_ERROR && ok)
        hb_warn(diag, loc, "the gzip file ends early; what could be unpacked was read");
    return ok;
}
