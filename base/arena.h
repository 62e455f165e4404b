/* A region allocator: memory is taken piece by piece and given back all at once.
 * One arena per command; a scratch arena per candidate is rewound to a mark.
 * Arena memory is never null: when the system has none left, hb_die ends the program (or the call
 * of the library). */
#ifndef HB_BASE_ARENA_H
#define HB_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hb_arena;

struct hb_arena_mark {
    void *block;       /* block that was current */
    size_t used_bytes; /* how much of it was taken */
};

struct hb_arena *hb_arena_new(void);
/* It stays after the end of the library's call that made it (base/owned.h). */
void hb_arena_keep(struct hb_arena *arena);
void hb_arena_free(struct hb_arena *arena);

/* Zeroed memory for count items of item_bytes each, aligned for any type. */
void *hb_arena_alloc(struct hb_arena *arena, size_t count, size_t item_bytes);
/* Not zeroed. */
void *hb_arena_raw(struct hb_arena *arena, size_t count, size_t item_bytes);
/* The piece that hb_arena_alloc gave, or null with 0 bytes, made larger: moved if need be; what is
 * new is zeroed. */
void *hb_arena_grow(struct hb_arena *arena, void *piece, size_t bytes, size_t wanted_bytes);
/* A copy of len bytes of text, terminated. */
char *hb_arena_strndup(struct hb_arena *arena, const char *text, size_t len);
char *hb_arena_strdup(struct hb_arena *arena, const char *text);
/* Formatted text. */
char *hb_arena_printf(struct hb_arena *arena, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes room for one piece of so many bytes, so that taking it does not die; false: there is none.
 * For a callback of a foreign library, which is not to be left by a jump. */
bool hb_arena_reserve(struct hb_arena *arena, size_t bytes);

struct hb_arena_mark hb_arena_mark(const struct hb_arena *arena);
/* Gives back all that was taken after the mark. */
void hb_arena_rewind(struct hb_arena *arena, struct hb_arena_mark mark);
/* Bytes held from the system. */
size_t hb_arena_held_bytes(const struct hb_arena *arena);

#endif
