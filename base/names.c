/* Names by hash: see names.h. */
#include "base/names.h"

#include <string.h>

#include "base/arena.h"
#include "base/str.h"

void hb_names_init(struct hb_names *n, struct hb_arena *arena, size_t most)
{
    n->room = 16;
    while (n->room < 2 * most)
        n->room *= 2;
    n->names = hb_arena_alloc(arena, n->room, sizeof *n->names);
    n->numbers = hb_arena_alloc(arena, n->room, sizeof *n->numbers);
}

/* Eight bytes at a time. */
static uint64_t hash_name(const char *name, uint32_t number)
{
    size_t len = strlen(name);
    uint64_t hash = number + len, word;
    for (; len >= sizeof word; len -= sizeof word, name += sizeof word) {
        memcpy(&word, name, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, name, len);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

size_t hb_names_place(const struct hb_names *n, const char *name, uint32_t number)
{
    size_t at = (size_t)hash_name(name, number) & (n->room - 1);
    while (n->names[at] && (n->numbers[at] != number || !hb_str_same(n->names[at], name)))
        at = (at + 1) & (n->room - 1);
    return at;
}

size_t hb_names_put(struct hb_names *n, const char *name, uint32_t number)
{
    size_t at = hb_names_place(n, name, number);
    n->names[at] = name;
    n->numbers[at] = number;
    return at;
}
