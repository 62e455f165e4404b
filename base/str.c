/* Growing text and arrays in an arena, spelling distance: see str.h. */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"

void hb_str_init(struct hb_str *s, struct hb_arena *arena)
{
    static const char empty[1]; /* not written: cap is 0 */
    *s = (struct hb_str){.arena = arena, .text = (char *)(uintptr_t)empty};
}

/* Bytes for that many more; the same as there are where they suffice. */
static size_t wanted_cap(const struct hb_str *s, size_t more)
{
    if (s->len + more + 1 <= s->cap)
        return s->cap;
    return s->cap * 2 > s->len + more + 1 ? s->cap * 2 : s->len + more + 64;
}

bool hb_str_reserve(struct hb_str *s, size_t more)
{
    size_t cap = wanted_cap(s, more);
    return cap == s->cap || hb_arena_reserve(s->arena, cap);
}

static void make_room(struct hb_str *s, size_t more)
{
    size_t cap = wanted_cap(s, more);
    if (cap == s->cap)
        return;
    char *text = hb_arena_alloc(s->arena, cap, 1);
    memcpy(text, s->text, s->len);
    s->text = text;
    s->cap = cap;
}

void hb_str_addn(struct hb_str *s, const char *text, size_t len)
{
    make_room(s, len);
    if (len)
        memcpy(s->text + s->len, text, len);
    s->len += len;
    s->text[s->len] = '\0';
}

void hb_str_add(struct hb_str *s, const char *text)
{
    hb_str_addn(s, text, strlen(text));
}

void hb_str_addf(struct hb_str *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (len < 0)
        HB_BUG("bad format '%s'", fmt);
    make_room(s, (size_t)len);
    va_start(ap, fmt);
    vsnprintf(s->text + s->len, (size_t)len + 1, fmt, ap);
    va_end(ap);
    s->len += (size_t)len;
}

int hb_hex_digit(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    ptrdiff_t place = at ? at - digits : -1;
    return (int)(place < 16 ? place : place - 6);
}

bool hb_str_same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

bool hb_str_starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool hb_str_ends(const char *text, const char *suffix)
{
    size_t len = strlen(text);
    size_t end = strlen(suffix);
    return len >= end && strcmp(text + len - end, suffix) == 0;
}

enum { MAX_WORD = 64 };

static int min3(int a, int b, int c)
{
    int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Insertions, deletions and substitutions between two words of at most MAX_WORD letters. */
static int edit_distance(const char *a, const char *b)
{
    size_t len_a = strlen(a);
    size_t len_b = strlen(b);
    int row[MAX_WORD + 1];
    if (len_a > MAX_WORD || len_b > MAX_WORD)
        return MAX_WORD;
    for (size_t j = 0; j <= len_b; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= len_a; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= len_b; j++) {
            int above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[len_b];
}

const char *hb_str_nearest(const char *word, const char *const *words)
{
    const char *best = NULL;
    int best_distance = 0;
    int limit = 1 + (int)(strlen(word) / 3);
    for (; *words; words++) {
        int d = edit_distance(word, *words);
        if (d <= limit && (!best || d < best_distance)) {
            best = *words;
            best_distance = d;
        }
    }
    return best;
}

void *hb_grow_full(struct hb_arena *arena, void *items, uint32_t count, uint32_t *cap,
                   size_t item_bytes)
{
    if (*cap > UINT32_MAX / 4)
        hb_die("out of memory: more than %u items in one array", *cap);
    uint32_t grown = *cap ? *cap * 2 : 16;
    *cap = grown;
    return hb_arena_grow(arena, items, (size_t)count * item_bytes, (size_t)grown * item_bytes);
}
