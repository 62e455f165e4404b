/* Blocks in a list, each twice the last up to a ceiling; pieces are cut off the newest:
 *
 *   [block 3: ####......] -> [block 2: ########] -> [block 1: ####] -> null
 *
 * What rewinding empties is kept aside for the next block, up to a limit, and freed beyond it: a
 * search that marks and rewinds for each candidate touches the same pages again. A piece larger
 * than a block gets a block of its own. Under AddressSanitizer what is not
 * handed out is poisoned and a gap is left after each piece. */
#define _DEFAULT_SOURCE /* madvise */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/diag.h"
#include "base/owned.h"

#if defined(__SANITIZE_ADDRESS__)
#define HB_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HB_ASAN 1
#endif
#endif
#ifdef HB_ASAN
#include <sanitizer/asan_interface.h>
#endif

enum {
    FIRST_BLOCK_BYTES = 16 << 10,
    MAX_BLOCK_BYTES = 4 << 20,
    LARGE_BLOCK_BYTES = 2 << 20,
    MAX_SPARE_BYTES = 256 << 20,
    ALIGN_BYTES = 16,
#ifdef HB_ASAN
    REDZONE_BYTES = 16
#else
    REDZONE_BYTES = 0
#endif
};

struct block {
    struct block *older;
    size_t used_bytes;
    size_t room_bytes;
    size_t pad; /* keeps data[] aligned to ALIGN_BYTES */
    unsigned char data[];
};

struct hb_arena {
    struct block *newest; /* never null once it is made */
    struct block *spare;  /* emptied, newest first */
    size_t spare_bytes;
    size_t held_bytes; /* without what is spare */
    struct hb_owned owned;
};

static void poison(void *at, size_t bytes)
{
#ifdef HB_ASAN
    ASAN_POISON_MEMORY_REGION(at, bytes);
#else
    (void)at;
    (void)bytes;
#endif
}

static void unpoison(void *at, size_t bytes)
{
#ifdef HB_ASAN
    ASAN_UNPOISON_MEMORY_REGION(at, bytes);
#else
    (void)at;
    (void)bytes;
#endif
}

/* A large block is filled from end to end, and the kernel's work on a first touch was a third of an
 * eager pipeline's time: pages of 2 MiB, where the system has them, are touched 512 times less
 * often. Neighbouring blocks are one mapping to it. */
static void use_large_pages(void *at, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t page = 4096;
    uintptr_t start = ((uintptr_t)at + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)at + bytes) / page * page;
    if (bytes >= LARGE_BLOCK_BYTES)
        (void)madvise((unsigned char *)at + (start - (uintptr_t)at), end - start, MADV_HUGEPAGE);
#else
    (void)at;
    (void)bytes;
#endif
}

/* Null: the system refuses. */
static struct block *try_block(size_t room_bytes, struct block *older)
{
    struct block *b = malloc(sizeof *b + room_bytes);
    if (!b)
        return NULL;
    use_large_pages(b, sizeof *b + room_bytes);
    b->older = older;
    b->used_bytes = 0;
    b->room_bytes = room_bytes;
    poison(b->data, room_bytes);
    return b;
}

static struct block *make_block(size_t room_bytes, struct block *older)
{
    struct block *b = try_block(room_bytes, older);
    if (!b)
        hb_die("out of memory: %zu bytes refused", room_bytes);
    return b;
}

static void drop_block(struct block *b)
{
    unpoison(b->data, b->room_bytes);
    free(b);
}

static void drop_blocks(struct block *b)
{
    for (struct block *older; b; b = older) {
        older = b->older;
        drop_block(b);
    }
}

void hb_arena_free(struct hb_arena *arena)
{
    if (!arena)
        return;
    drop_blocks(arena->newest);
    drop_blocks(arena->spare);
    hb_disown(&arena->owned);
    free(arena);
}

static void drop_arena(void *arena)
{
    hb_arena_free(arena);
}

struct hb_arena *hb_arena_new(void)
{
    struct hb_arena *arena = malloc(sizeof *arena);
    if (!arena)
        hb_die("out of memory: no room for an arena");
    *arena = (struct hb_arena){.held_bytes = FIRST_BLOCK_BYTES};
    hb_own(&arena->owned, drop_arena, arena);
    arena->newest = make_block(FIRST_BLOCK_BYTES, NULL);
    return arena;
}

void hb_arena_keep(struct hb_arena *arena)
{
    hb_disown(&arena->owned);
}

/* Takes of the spare blocks that have the room the one that was emptied last; null: none has. */
static struct block *take_spare(struct hb_arena *arena, size_t room_bytes)
{
    struct block **at = &arena->spare;
    while (*at && (*at)->room_bytes < room_bytes)
        at = &(*at)->older;
    struct block *b = *at;
    if (!b)
        return NULL;
    *at = b->older;
    arena->spare_bytes -= b->room_bytes;
    b->older = arena->newest;
    b->used_bytes = 0;
    return b;
}

static void put_spare(struct hb_arena *arena, struct block *b)
{
    if (b->room_bytes > MAX_SPARE_BYTES - arena->spare_bytes) {
        drop_block(b);
        return;
    }
    poison(b->data, b->room_bytes);
    b->older = arena->spare;
    arena->spare = b;
    arena->spare_bytes += b->room_bytes;
}

/* Of the next block, for a piece of need_bytes. */
static size_t block_room(const struct hb_arena *arena, size_t need_bytes)
{
    size_t room = arena->newest->room_bytes * 2;
    if (room > MAX_BLOCK_BYTES)
        room = MAX_BLOCK_BYTES;
    return room < need_bytes ? need_bytes : room;
}

static void put_block(struct hb_arena *arena, struct block *b)
{
    arena->newest = b;
    arena->held_bytes += b->room_bytes;
}

static void add_block(struct hb_arena *arena, size_t need_bytes)
{
    size_t room = block_room(arena, need_bytes);
    struct block *spare = take_spare(arena, room);
    put_block(arena, spare ? spare : make_block(room, arena->newest));
}

/* What a piece takes. */
static size_t taken_bytes(size_t bytes)
{
    return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES + REDZONE_BYTES;
}

bool hb_arena_reserve(struct hb_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 4)
        return false;
    size_t taken = taken_bytes(bytes);
    if (arena->newest->room_bytes - arena->newest->used_bytes >= taken)
        return true;
    size_t room = block_room(arena, taken);
    struct block *b = take_spare(arena, room);
    if (!b)
        b = try_block(room, arena->newest);
    if (b)
        put_block(arena, b);
    return b != NULL;
}

static void *take_piece(struct hb_arena *arena, size_t bytes)
{
    size_t taken = taken_bytes(bytes);
    if (arena->newest->room_bytes - arena->newest->used_bytes < taken)
        add_block(arena, taken);
    struct block *b = arena->newest;
    void *piece = b->data + b->used_bytes;
    b->used_bytes += taken;
    unpoison(piece, bytes);
    return piece;
}

void *hb_arena_raw(struct hb_arena *arena, size_t count, size_t item_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes) || bytes > SIZE_MAX / 4)
        hb_die("out of memory: %zu items of %zu bytes wanted", count, item_bytes);
    return take_piece(arena, bytes);
}

void *hb_arena_alloc(struct hb_arena *arena, size_t count, size_t item_bytes)
{
    void *piece = hb_arena_raw(arena, count, item_bytes);
    memset(piece, 0, count * item_bytes);
    return piece;
}

void *hb_arena_grow(struct hb_arena *arena, void *piece, size_t bytes, size_t wanted_bytes)
{
    unsigned char *moved = hb_arena_raw(arena, wanted_bytes, 1);
    if (bytes)
        memcpy(moved, piece, bytes);
    memset(moved + bytes, 0, wanted_bytes - bytes);
    return moved;
}

char *hb_arena_strndup(struct hb_arena *arena, const char *text, size_t len)
{
    char *copy = hb_arena_alloc(arena, len + 1, 1);
    if (len)
        memcpy(copy, text, len);
    return copy;
}

char *hb_arena_strdup(struct hb_arena *arena, const char *text)
{
    return hb_arena_strndup(arena, text, strlen(text));
}

char *hb_arena_printf(struct hb_arena *arena, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (len < 0)
        HB_BUG("bad format '%s'", fmt);
    char *text = hb_arena_alloc(arena, (size_t)len + 1, 1);
    va_start(ap, fmt);
    vsnprintf(text, (size_t)len + 1, fmt, ap);
    va_end(ap);
    return text;
}

struct hb_arena_mark hb_arena_mark(const struct hb_arena *arena)
{
    return (struct hb_arena_mark){arena->newest, arena->newest->used_bytes};
}

void hb_arena_rewind(struct hb_arena *arena, struct hb_arena_mark mark)
{
    while (arena->newest != mark.block) {
        struct block *b = arena->newest;
        if (!b->older)
            HB_BUG("rewind to a mark of another arena");
        arena->newest = b->older;
        arena->held_bytes -= b->room_bytes;
        put_spare(arena, b);
    }
    struct block *b = arena->newest;
    poison(b->data + mark.used_bytes, b->used_bytes - mark.used_bytes);
    b->used_bytes = mark.used_bytes;
}

size_t hb_arena_held_bytes(const struct hb_arena *arena)
{
    return arena->held_bytes;
}
