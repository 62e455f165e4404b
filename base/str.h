/* Text: a growing string in an arena, and the small questions asked of words.
 * A builder is a plain record; text is always terminated. */
#ifndef HB_BASE_STR_H
#define HB_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hb_arena;

struct hb_str {
    struct hb_arena *arena;
    char *text; /* terminated; "" at first */
    size_t len;
    size_t cap;
};

void hb_str_init(struct hb_str *s, struct hb_arena *arena);
void hb_str_add(struct hb_str *s, const char *text);
void hb_str_addn(struct hb_str *s, const char *text, size_t len);
void hb_str_addf(struct hb_str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes room for so many bytes, so that adding them does not die; false: there is no memory. */
bool hb_str_reserve(struct hb_str *s, size_t more);

/* Of one hexadecimal digit, of either case; -1: it is none. */
int hb_hex_digit(char c);
bool hb_str_same(const char *a, const char *b);
bool hb_str_starts(const char *text, const char *prefix);
bool hb_str_ends(const char *text, const char *suffix);
/* The word of a null-terminated list nearest in spelling, or null if none is near. */
const char *hb_str_nearest(const char *word, const char *const *words);

/* What hb_grow does where there is no room. */
void *hb_grow_full(struct hb_arena *arena, void *items, uint32_t count, uint32_t *cap,
                   size_t item_bytes);
/* Room for one item more in an array of the arena that grows by doubling: returns the array,
 * moved if need be. Items are zeroed. */
static inline void *hb_grow(struct hb_arena *arena, void *items, uint32_t count, uint32_t *cap,
                            size_t item_bytes)
{
    return count < *cap ? items : hb_grow_full(arena, items, count, cap, item_bytes);
}

#endif
