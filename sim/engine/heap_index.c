/* What meets a span either contains its first event or starts later within it. The first kind is
 * found in a segment tree: a span is kept in the few nodes that tile it, so all that is kept on
 * the way from an event's leaf to the root contains the event. The second kind hangs on its
 * first event; bits in three levels, 64 events a word, lead from one such event to the next.
 *
 *   tree   [0                7]      span 1..6 is kept at 1, 2-3, 4-5, 6
 *          [0       3][4     7]
 *          [0  1][2  3][4 5][6 7]    */
#include "sim/engine/heap_index.h"

#include "base/arena.h"
#include "base/str.h"

enum { LEVELS = 6, WORD_BITS = 64 }; /* 64^6 events are more than an int32_t holds */

struct entry {
    uint32_t item;
    uint32_t next; /* 1 + index; 0: none */
};

struct hb_heap_index {
    struct hb_arena *arena;
    int32_t first;      /* event of leaf 0 */
    uint32_t leaves;    /* a power of two */
    uint32_t *node;     /* 1 + index of its first entry; root is 1 */
    uint32_t *starting; /* by event: the same for spans that start there */
    struct entry *entries;
    uint32_t count, cap;
    uint64_t *bits[LEVELS]; /* events at which something starts; words that are not 0; ... */
    int levels;
};

struct hb_heap_index *hb_heap_index_new(struct hb_arena *arena, struct hb_heap_span life)
{
    struct hb_heap_index *x = hb_arena_alloc(arena, 1, sizeof *x);
    size_t events = (size_t)((int64_t)life.end - life.start) + 1;
    x->arena = arena;
    x->first = life.start;
    for (x->leaves = 1; x->leaves < events;)
        x->leaves *= 2;
    x->node = hb_arena_alloc(arena, 2 * (size_t)x->leaves, sizeof *x->node);
    x->starting = hb_arena_alloc(arena, x->leaves, sizeof *x->starting);
    size_t words = x->leaves;
    do {
        words = words / WORD_BITS + 1;
        x->bits[x->levels++] = hb_arena_alloc(arena, words, sizeof **x->bits);
    } while (words > 1);
    return x;
}

static void hang(struct hb_heap_index *x, uint32_t *link, uint32_t item)
{
    x->entries = hb_grow(x->arena, x->entries, x->count, &x->cap, sizeof *x->entries);
    x->entries[x->count] = (struct entry){item, *link};
    *link = ++x->count;
}

void hb_heap_index_add(struct hb_heap_index *index, struct hb_heap_span span, uint32_t item)
{
    uint32_t start = (uint32_t)((int64_t)span.start - index->first);
    uint32_t low = start + index->leaves;
    uint32_t high = (uint32_t)((int64_t)span.end - index->first) + index->leaves + 1;
    for (; low < high; low /= 2, high /= 2) {
        if (low & 1)
            hang(index, &index->node[low++], item);
        if (high & 1)
            hang(index, &index->node[--high], item);
    }
    hang(index, &index->starting[start], item);
    for (int level = 0; level < index->levels; level++, start /= WORD_BITS)
        index->bits[level][start / WORD_BITS] |= (uint64_t)1 << start % WORD_BITS;
}

/* The first event from `from` on at which something starts; UINT32_MAX: none. */
static uint32_t next_start(const struct hb_heap_index *x, uint32_t from)
{
    int level = 0;
    uint64_t at = from;
    for (;; level++, at = at / WORD_BITS + 1) { /* up, until a word has a bit at or behind it */
        if (level == x->levels || at / WORD_BITS > x->leaves / WORD_BITS)
            return UINT32_MAX;
        uint64_t word = x->bits[level][at / WORD_BITS] >> at % WORD_BITS;
        if (word) {
            at += (uint64_t)__builtin_ctzll(word);
            break;
        }
    }
    for (; level > 0; level--)
        at = at * WORD_BITS + (uint64_t)__builtin_ctzll(x->bits[level - 1][at]);
    return (uint32_t)at;
}

/* Appends a chain; false where there is no room for it. */
static bool take_chain(const struct hb_heap_index *x, uint32_t link, uint32_t max, uint32_t *count,
                       uint32_t *out_items)
{
    for (; link; link = x->entries[link - 1].next) {
        if (*count == max)
            return false;
        out_items[(*count)++] = x->entries[link - 1].item;
    }
    return true;
}

uint32_t hb_heap_index_find(const struct hb_heap_index *index, struct hb_heap_span span,
                            uint32_t max, uint32_t *out_items)
{
    uint32_t count = 0, start = (uint32_t)((int64_t)span.start - index->first);
    uint32_t end = (uint32_t)((int64_t)span.end - index->first);
    for (uint32_t node = start + index->leaves; node; node /= 2)
        if (!take_chain(index, index->node[node], max, &count, out_items))
            return max + 1;
    for (uint32_t at = next_start(index, start + 1); at <= end; at = next_start(index, at + 1))
        if (!take_chain(index, index->starting[at], max, &count, out_items))
            return max + 1;
    return count;
}
