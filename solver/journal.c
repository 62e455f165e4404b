#include "solver/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/hash.h"

struct hb_journal {
    struct hb_arena *arena;
    const char *path;
    int file;
};

/* A line is an object whose last member is the checksum of what stands before it. */
#define CHECK ",\"check\":\""
enum { DIGITS = 16, TAIL = sizeof CHECK - 1 + DIGITS + 2 };

static const char *check_of(const char *text, size_t len, char out[TAIL + 1])
{
    snprintf(out, TAIL + 1, CHECK "%016" PRIx64 "\"}", hb_hash_bytes(HB_HASH_START, text, len));
    return out;
}

/* All lines but the first, which the caller compares whole. */
static bool check_lines(struct hb_diag *diag, const char *path, const char *text)
{
    int number = 1;
    for (const char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        char want[TAIL + 1];
        size_t len = strcspn(line, "\n");
        number++;
        if (len > TAIL && memcmp(check_of(line, len - TAIL, want), line + len - TAIL, TAIL) == 0)
            continue;
        return hb_error(diag, (struct hb_loc){.file = path, .line = number},
                        "this line is not as it was written (its checksum is another); remove it, "
                        "and its cell is run again");
    }
    return true;
}

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
    if (strlen(*out_text) != len)
        return hb_error(diag, (struct hb_loc){.file = path}, "holds a NUL byte: it was damaged");
    if (!check_lines(diag, path, *out_text))
        return false;
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
    j->arena = arena;
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
    char check[TAIL + 1];
    struct hb_arena_mark mark = hb_arena_mark(j->arena);
    size_t body = len - strlen("}\n");
    const char *whole =
        hb_arena_printf(j->arena, "%.*s%s\n", (int)body, line, check_of(line, body, check));
    write_all(j, whole, body + TAIL + 1);
    hb_arena_rewind(j->arena, mark);
}

void hb_journal_close(struct hb_journal *j)
{
    if (close(j->file) != 0)
        hb_die("cannot write '%s': %s", j->path, strerror(errno));
}
