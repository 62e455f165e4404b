/* Whole files and paths by POSIX calls: see file.h. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/owned.h"
#include "base/str.h"

enum { FIRST_READ_BYTES = 64 << 10 };

/* Reads to the end of fd, at most max_bytes; size_bytes is what the system says of it. */
static bool read_all(struct hb_arena *arena, int fd, size_t size_bytes, size_t max_bytes,
                     struct hb_text *out_text)
{
    size_t cap = size_bytes ? size_bytes + 1 : FIRST_READ_BYTES;
    char *text = hb_arena_alloc(arena, cap + 1, 1);
    size_t len = 0;
    for (;;) {
        ssize_t got = read(fd, text + len, cap - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        len += (size_t)got;
        if (len > max_bytes) {
            errno = EFBIG;
            return false;
        }
        if (len == cap) {
            char *more = hb_arena_alloc(arena, cap * 2 + 1, 1);
            memcpy(more, text, len);
            text = more;
            cap *= 2;
        }
    }
    text[len] = '\0';
    *out_text = (struct hb_text){text, len};
    return true;
}

static const char *reason_of(struct hb_arena *arena, int error, size_t max_bytes)
{
    if (error == EISDIR)
        return "is a directory; a file is wanted";
    if (error == EFBIG)
        return hb_arena_printf(arena, "is larger than %zu MiB, the most that is read",
                               max_bytes >> 20);
    return hb_arena_printf(arena, "cannot be read: %s", strerror(error));
}

/* What is no fault of the file's: with it every other file would fail too. */
static bool is_of_machine(int error)
{
    return error == EIO || error == EMFILE || error == ENFILE || error == ENOMEM;
}

static void close_descriptor(void *fd)
{
    close(*(int *)fd);
}

bool hb_file_load(struct hb_arena *arena, const char *path, size_t max_bytes,
                  struct hb_text *out_text, const char **out_reason)
{
    bool is_stdin = hb_str_same(path, "-");
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    struct hb_owned owned = {0};
    struct stat st;
    if (!is_stdin)
        hb_own(&owned, close_descriptor, &fd);
    bool ok = fd >= 0 && fstat(fd, &st) == 0;
    if (ok && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        ok = false;
    } else if (ok && (uintmax_t)st.st_size > max_bytes) {
        errno = EFBIG;
        ok = false;
    }
    size_t size_bytes = ok && S_ISREG(st.st_mode) ? (size_t)st.st_size : 0;
    ok = ok && read_all(arena, fd, size_bytes, max_bytes, out_text);
    if (!ok && is_of_machine(errno))
        hb_die("%s cannot be read: %s", path, strerror(errno));
    if (!ok)
        *out_reason = reason_of(arena, errno, max_bytes);
    hb_disown(&owned);
    if (!is_stdin)
        close(fd);
    return ok;
}

bool hb_file_read(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                  struct hb_text *out_text, const char **out_name)
{
    const char *reason = NULL;
    *out_name = hb_str_same(path, "-") ? "standard input" : path;
    return hb_file_load(arena, path, HB_FILE_MAX_BYTES, out_text, &reason) ||
           hb_error(diag, (struct hb_loc){.file = *out_name}, "%s", reason);
}

size_t hb_file_start(const char *path, char *out, size_t most)
{
    if (!hb_file_regular(path))
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, out, most);
    if (got < 0 && is_of_machine(errno))
        hb_die("%s cannot be read: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return got > 0 ? (size_t)got : 0;
}

const char *hb_file_folder(struct hb_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? hb_arena_strndup(arena, path, (size_t)(slash + 1 - path)) : "";
}

bool hb_file_inside(const char *folder, const char *path)
{
    char *tree = realpath(folder[0] ? folder : ".", NULL);
    char *file = realpath(path, NULL);
    bool inside = false;
    if (tree && file) {
        size_t len = strlen(tree);
        bool root = len == 1;
        inside = strncmp(file, tree, len) == 0 && (root || file[len] == '/');
    }
    free(tree);
    free(file);
    return inside;
}

bool hb_file_same(const char *a, const char *b)
{
    struct stat sa;
    struct stat sb;
    if (stat(a, &sa) != 0 || stat(b, &sb) != 0)
        return false;
    return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* Where the link at path leads, or null where none stands there. */
static const char *read_link(struct hb_arena *arena, const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode) || st.st_size < 0)
        return NULL;
    size_t room = (size_t)st.st_size + 1;
    char *to = hb_arena_alloc(arena, room, 1);
    ssize_t len = readlink(path, to, room);
    if (len <= 0 || (size_t)len >= room)
        return NULL;
    to[len] = '\0';
    return to[0] == '/' ? to : hb_arena_printf(arena, "%s%s", hb_file_folder(arena, path), to);
}

const char *hb_file_target(struct hb_arena *arena, const char *path)
{
    enum { MOST_LINKS = 40 };
    struct stat st;
    if (hb_str_same(path, "-"))
        return path;
    for (int i = 0; i < MOST_LINKS; i++) {
        const char *next = read_link(arena, path);
        if (!next)
            break;
        path = next;
    }
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return NULL;
    const char *folder = hb_file_folder(arena, path);
    char *real = realpath(folder[0] ? folder : ".", NULL);
    if (!real)
        return NULL;
    const char *whole = hb_arena_printf(arena, "%s/%s", real, path + strlen(folder));
    free(real);
    return whole;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool hb_file_regular(const char *path)
{
    struct stat st;
    bool ok = stat(path, &st) == 0;
    if (!ok && is_of_machine(errno))
        hb_die("%s cannot be read: %s", path, strerror(errno));
    return ok && S_ISREG(st.st_mode);
}

static void close_folder(void *dir)
{
    if (dir)
        closedir(dir);
}

const char *const *hb_file_list(struct hb_arena *arena, const char *folder, const char *suffix)
{
    const char **names = NULL;
    uint32_t count = 0;
    uint32_t cap = 0;
    struct hb_owned owned = {0};
    DIR *dir = opendir(folder);
    if (!dir && is_of_machine(errno))
        hb_die("%s cannot be read: %s", folder, strerror(errno));
    hb_own(&owned, close_folder, dir);
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        if (e->d_name[0] == '.' || !hb_str_ends(e->d_name, suffix))
            continue;
        if (suffix[0] && !hb_file_regular(hb_arena_printf(arena, "%s/%s", folder, e->d_name)))
            continue;
        names = hb_grow(arena, names, count, &cap, sizeof *names);
        names[count++] = hb_arena_strndup(arena, e->d_name, strlen(e->d_name) - strlen(suffix));
    }
    hb_disown(&owned);
    close_folder(dir);
    if (count)
        qsort(names, count, sizeof *names, compare_names);
    names = hb_grow(arena, names, count, &cap, sizeof *names);
    names[count] = NULL;
    return names;
}
