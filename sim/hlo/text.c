/* One reader for plain and packed dumps: zlib hands plain bytes through. A packed file tells its
 * length in its last four bytes; they are taken as a hint only, within what deflate can reach. */
#include "sim/hlo/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"

enum {
    CHUNK_BYTES = 1 << 26,       /* asked of zlib at once */
    FIRST_BYTES = 1 << 20,       /* room for an input of unknown length */
    MOST_PACKED = 1032,          /* deflate's best ratio (zlib technical notes) */
    ZLIB_BUFFER_BYTES = 1 << 18, /* its own default of 8 KiB costs a system call each */
};

struct loading {
    struct hb_arena *arena;
    struct hb_diag *diag;
    const char *path;
    gzFile gz;
    char *bytes;
    size_t len;
    size_t room; /* without the closing zero */
    bool ends;   /* a file, not a pipe that may go on for ever */
};

#define MOST_OF_STREAM_BYTES ((int64_t)512 << 20)

static bool fail(const struct loading *l, const char *what, const char *detail)
{
    return hb_error(l->diag, (struct hb_loc){l->path, 0, 0}, "%s%s%s", what, *detail ? ": " : "",
                    detail);
}

/* The length to expect: of the file if plain, from its last bytes if packed, else a first room. */
static size_t guess_length(int fd)
{
    struct stat st;
    unsigned char head[2] = {0}, tail[4];
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 18)
        return FIRST_BYTES;
    int64_t size_bytes = st.st_size;
    if (pread(fd, head, sizeof head, 0) != sizeof head)
        return FIRST_BYTES;
    if (head[0] != 0x1f || head[1] != 0x8b)
        return size_bytes < HB_HLO_MAX_BYTES ? (size_t)size_bytes : (size_t)HB_HLO_MAX_BYTES;
    if (pread(fd, tail, sizeof tail, st.st_size - (off_t)sizeof tail) != sizeof tail)
        return FIRST_BYTES;
    int64_t claim =
        (int64_t)tail[0] | (int64_t)tail[1] << 8 | (int64_t)tail[2] << 16 | (int64_t)tail[3] << 24;
    int64_t most = hb_mul_sat(size_bytes, MOST_PACKED);
    most = most < HB_HLO_MAX_BYTES ? most : HB_HLO_MAX_BYTES;
    return (size_t)(claim < most ? claim : most) + 1;
}

static void grow_room(struct loading *l)
{
    size_t room = l->room * 2;
    char *bytes = hb_arena_alloc(l->arena, room + 1, 1);
    memcpy(bytes, l->bytes, l->len);
    l->bytes = bytes;
    l->room = room;
}

static bool read_all(struct loading *l)
{
    for (;;) {
        if (l->len == l->room)
            grow_room(l);
        size_t want = l->room - l->len < CHUNK_BYTES ? l->room - l->len : CHUNK_BYTES;
        int got = gzread(l->gz, l->bytes + l->len, (unsigned)want);
        int code = Z_OK;
        const char *why = gzerror(l->gz, &code);
        if (got < 0)
            return fail(l, "cannot be read", code == Z_ERRNO ? strerror(errno) : why);
        if (l->len == 0 && memchr(l->bytes, '\0', (size_t)got))
            return fail(l, "holds zero bytes: it is no text of a dump", "");
        l->len += (size_t)got;
        if ((int64_t)l->len > HB_HLO_MAX_BYTES)
            return fail(l, "is larger than 2 GiB; a smaller dump is wanted", "");
        if (!l->ends && (int64_t)l->len > MOST_OF_STREAM_BYTES)
            return fail(
                l, "no end after 512 MiB: a dump is read from a file, or from a pipe that ends",
                "");
        if (got == 0)
            return code == Z_BUF_ERROR ? fail(l, "ends in the middle of its packed data", "")
                                       : true;
    }
}

bool hb_hlo_text_load(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                      struct hb_hlo_text *out_text)
{
    struct loading l = {.arena = arena, .diag = diag, .path = path};
    bool is_stdin = hb_str_same(path, "-");
    int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(&l, "cannot be opened", strerror(errno));
    struct stat st;
    l.ends = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    l.room = guess_length(fd) + 1;
    l.gz = gzdopen(fd, "rb");
    if (!l.gz) {
        close(fd);
        hb_die("out of memory: zlib refused to start");
    }
    gzbuffer(l.gz, ZLIB_BUFFER_BYTES);
    l.bytes = hb_arena_alloc(arena, l.room + 1, 1);
    bool ok = read_all(&l);
    gzclose_r(l.gz);
    if (!ok)
        return false;
    l.bytes[l.len] = '\0';
    *out_text = (struct hb_hlo_text){is_stdin ? "<stdin>" : path, l.bytes, l.len, 0};
    return true;
}

struct hb_loc hb_hlo_text_loc(const struct hb_hlo_text *text, const char *at)
{
    struct hb_loc loc = {text->file, 1, 1};
    const char *line = text->bytes;
    for (const char *c; (c = memchr(line, '\n', (size_t)(at - line))); line = c + 1)
        loc.line++;
    loc.column = (int)(at - line) + 1;
    return loc;
}

/* A head stands at the begin of a line, maybe behind blanks. */
static const char *find_head(const char *at, const char *end)
{
    static const char word[] = "HloModule";
    for (const char *line = at; line < end;) {
        const char *c = line;
        while (c < end && (*c == ' ' || *c == '\t' || *c == '\r'))
            c++;
        if ((size_t)(end - c) > sizeof word && memcmp(c, word, sizeof word - 1) == 0 &&
            (c[sizeof word - 1] == ' ' || c[sizeof word - 1] == '\t'))
            return c;
        line = memchr(c, '\n', (size_t)(end - c));
        if (!line)
            break;
        line++;
    }
    return NULL;
}

/* Whether a string is open at `to` that begins between: origin_recovery_table has modules as text
 * in quotes. */
static bool is_quoted(const char *from, const char *to)
{
    bool open = false;
    for (; (from = memchr(from, '"', (size_t)(to - from))); from++)
        open = from[-1] == '\\' ? open : !open;
    return open;
}

uint32_t hb_hlo_text_parts(const struct hb_hlo_text *text, struct hb_hlo_part *out, uint32_t max)
{
    const char *end = text->bytes + text->len, *last = NULL;
    uint32_t count = 0;
    for (const char *at = text->bytes; (at = find_head(at, end)); count++) {
        if (last && is_quoted(last, at)) {
            at++;
            count--;
            continue;
        }
        last = at;
        size_t from = (size_t)(at - text->bytes);
        const char *name = at + strlen("HloModule");
        while (name < end && (*name == ' ' || *name == '\t'))
            name++;
        for (at = name; at < end && !strchr(" \t\r\n,:{", *at); at++)
            continue;
        if (count < max)
            out[count] = (struct hb_hlo_part){{name, (size_t)(at - name)}, from, text->len};
        if (count && count <= max)
            out[count - 1].to = from;
    }
    return count;
}
