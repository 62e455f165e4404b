#include "solver/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"

struct hb_journal {
    const char *path;
    int file;
};

static size_t whole_lines(const char *text, size_t len)
{
    while (len > 0 && text[len - 1] != '\n')
        len--;
    return len;
}

bool hb_journal_read(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                     const char **out_text, struct hb_jsonl *out_lines)
{
    struct hb_text text;
    const char *reason;
    *out_text = NULL;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return true;
    if (!hb_file_load(arena, path, HB_FILE_MAX_BYTES, &text, &reason))
        return hb_error(diag, (struct hb_loc){.file = path}, "%s", reason);
    size_t len = whole_lines(text.text, text.len);
    if (len == 0)
        return true;
    *out_text = hb_arena_strndup(arena, text.text, len);
    *out_lines = (struct hb_jsonl){.path = path, .text = *out_text, .len = len};
    return true;
}

static void write_all(const struct hb_journal *j, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t wrote = write(j->file, text, len);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            hb_die("cannot write '%s': %s", j->path, strerror(errno));
        text += wrote;
        len -= (size_t)wrote;
    }
}

struct hb_journal *hb_journal_open(struct hb_arena *arena, const char *path, const char *first)
{
    struct hb_journal *j = hb_arena_alloc(arena, 1, sizeof *j);
    struct hb_text text = {"", 0};
    const char *reason;
    struct stat st;
    j->path = path;
    j->file = open(path, O_WRONLY | O_CREAT, 0666);
    if (j->file < 0)
        hb_die("cannot write '%s': %s", path, strerror(errno));
    if (fstat(j->file, &st) == 0 && st.st_size > 0 &&
        !hb_file_load(arena, path, HB_FILE_MAX_BYTES, &text, &reason))
        hb_die("cannot read '%s': it %s", path, reason);
    off_t end = (off_t)whole_lines(text.text, text.len);
    if (ftruncate(j->file, end) != 0 || lseek(j->file, end, SEEK_SET) < 0)
        hb_die("cannot write '%s': %s", path, strerror(errno));
    if (end == 0)
        write_all(j, first, strlen(first));
    return j;
}

void hb_journal_add(struct hb_journal *j, const char *line, size_t len)
{
    write_all(j, line, len);
}

void hb_journal_close(struct hb_journal *j)
{
    if (close(j->file) != 0)
        hb_die("cannot write '%s': %s", j->path, strerror(errno));
}
