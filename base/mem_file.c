/* Where the C library takes streams of the program's own (glibc, musl) one over a block that grows;
 * elsewhere open_memstream. See mem_file.h. */
#ifdef __linux__
#define _GNU_SOURCE /* fopencookie */
#endif
#include "base/mem_file.h"

#ifdef __linux__

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum { FIRST_BYTES = 4096 };

struct block {
    char **text;
    size_t *len;
    size_t room; /* of *text, its end included */
};

static int make_room(struct block *b, size_t more)
{
    size_t room = b->room ? b->room : FIRST_BYTES;
    if (more >= SIZE_MAX / 4 - *b->len)
        return 0;
    while (room <= *b->len + more)
        room *= 2;
    if (room == b->room)
        return 1;
    char *text = realloc(*b->text, room);
    if (!text)
        return 0;
    *b->text = text;
    b->room = room;
    return 1;
}

/* 0 tells the stream that nothing was written. */
static ssize_t append(void *cookie, const char *bytes, size_t count)
{
    struct block *b = cookie;
    if (!make_room(b, count)) {
        errno = ENOMEM;
        return 0;
    }
    memcpy(*b->text + *b->len, bytes, count);
    *b->len += count;
    (*b->text)[*b->len] = '\0';
    return (ssize_t)count;
}

static int end(void *cookie)
{
    free(cookie);
    return 0;
}

FILE *hb_mem_open(char **text, size_t *len)
{
    struct block *b = malloc(sizeof *b);
    *text = NULL;
    *len = 0;
    if (!b)
        return NULL;
    *b = (struct block){text, len, 0};
    FILE *file = make_room(b, 0)
                     ? fopencookie(b, "w", (cookie_io_functions_t){.write = append, .close = end})
                     : NULL;
    if (!file) {
        free(*text);
        free(b);
        *text = NULL;
        return NULL;
    }
    (*text)[0] = '\0';
    return file;
}

#else

FILE *hb_mem_open(char **text, size_t *len)
{
    *text = NULL;
    *len = 0;
    return open_memstream(text, len);
}

#endif
