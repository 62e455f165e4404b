/* Pairs of records: see pairs.h. Each configuration becomes a sorted list of (key, hash of its
 * value), so that comparing two of them is one walk along both, which ends at the second
 * difference. */
#include "sim/engine/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "models/schema.h"

struct leaf {
    uint32_t key; /* index into pairs->keys */
    uint64_t value;
};

struct hb_pairs_side {
    const char *id;
    const char *kind; /* only figures of one kind are compared */
    int64_t measured_bytes;
    int64_t predicted_bytes;
    bool rematerialised;
    struct leaf *leaves;
    uint32_t count, cap;
};

/* No part of the program. */
static const char *const ignored[] = {
    "hbmsim", "model.name", "hardware.count", "hardware.hbm", "hardware.reserve", "plan", "load"};

/* Keys that follow another one. */
static const struct {
    const char *path;
    const char *leader;
} followers[] = {{"optimizer.moments", "optimizer.name"},
                 {"remat.save", "remat.policy"},
                 {"remat.offload", "remat.policy"}};

static const char per_block[] = "remat.per_block";

void hb_pairs_init(struct hb_pairs *pairs, struct hb_arena *arena)
{
    *pairs = (struct hb_pairs){.arena = arena};
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return hb_hash_bytes(hash, text, strlen(text)) * HB_HASH_PRIME;
}

static uint32_t find_key(struct hb_pairs *pairs, const char *path)
{
    for (uint32_t i = 0; i < pairs->key_count; i++)
        if (hb_str_same(pairs->keys[i], path))
            return i;
    pairs->keys =
        hb_grow(pairs->arena, pairs->keys, pairs->key_count, &pairs->key_cap, sizeof *pairs->keys);
    pairs->keys[pairs->key_count] = hb_arena_strdup(pairs->arena, path);
    return pairs->key_count++;
}

static const char *leader_of(const char *path)
{
    for (size_t i = 0; i < sizeof followers / sizeof followers[0]; i++)
        if (hb_str_same(path, followers[i].path))
            return followers[i].leader;
    return hb_str_starts(path, per_block) ? per_block : path;
}

static void add_leaf(struct hb_pairs *pairs, struct hb_pairs_side *side, const char *path,
                     uint64_t value)
{
    uint32_t key = find_key(pairs, leader_of(path));
    for (uint32_t i = 0; i < side->count; i++)
        if (side->leaves[i].key == key) {
            side->leaves[i].value = side->leaves[i].value * HB_HASH_PRIME ^ value;
            return;
        }
    side->leaves =
        hb_grow(pairs->arena, side->leaves, side->count, &side->cap, sizeof *side->leaves);
    side->leaves[side->count++] = (struct leaf){key, value};
}

static bool is_ignored(const char *path)
{
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        if (hb_str_same(path, ignored[i]))
            return true;
    return hb_str_starts(path, "model.blocks[") && hb_str_ends(path, "].name");
}

static bool is_list_of_leaves(const struct hb_node *node)
{
    return node->kind == HB_NODE_LIST && (!node->first || node->first->kind == HB_NODE_SCALAR);
}

/* Depth is that of the schema. */
static void add_tree(struct hb_pairs *pairs, struct hb_arena *scratch, struct hb_pairs_side *side,
                     const struct hb_node *node, const char *path)
{
    uint64_t hash = HB_HASH_START;
    int index = 0;
    if (is_ignored(path))
        return;
    if (node->kind == HB_NODE_SCALAR || is_list_of_leaves(node)) {
        const struct hb_node *item = node->kind == HB_NODE_LIST ? node->first : node;
        for (; item; item = node->kind == HB_NODE_LIST ? item->next : NULL)
            hash = hash_text(hash, item->text);
        add_leaf(pairs, side, path, hash);
        return;
    }
    for (const struct hb_node *child = node->first; child; child = child->next, index++) {
        const char *below =
            child->key ? hb_arena_printf(scratch, "%s%s%s", path, *path ? "." : "", child->key)
                       : hb_arena_printf(scratch, "%s[%d]", path, index);
        add_tree(pairs, scratch, side, child, below);
    }
}

static int compare_leaves(const void *a, const void *b)
{
    uint32_t x = ((const struct leaf *)a)->key;
    uint32_t y = ((const struct leaf *)b)->key;
    return (x > y) - (x < y);
}

void hb_pairs_add(struct hb_pairs *pairs, struct hb_arena *scratch, const struct hb_record *record,
                  const struct hb_case *c)
{
    if (c->failed || c->speed)
        return;
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct hb_pairs_side side = {.id = c->id,
                                 .kind = hb_arena_strdup(pairs->arena, record->kind),
                                 .measured_bytes = c->measured_bytes,
                                 .predicted_bytes = c->predicted_bytes,
                                 .rematerialised = record->rematerialised};
    add_tree(pairs, scratch, &side, hb_schema_emit(scratch, &record->spec, true), "");
    hb_arena_rewind(scratch, mark);
    if (side.count)
        qsort(side.leaves, side.count, sizeof *side.leaves, compare_leaves);
    pairs->sides = hb_grow(pairs->arena, pairs->sides, pairs->side_count, &pairs->side_cap,
                           sizeof *pairs->sides);
    pairs->sides[pairs->side_count++] = side;
}

/* Whether the two differ in exactly one key. */
static bool differ_in_one(const struct hb_pairs_side *a, const struct hb_pairs_side *b,
                          uint32_t *out_key)
{
    uint32_t i = 0, k = 0;
    int different = 0;
    while ((i < a->count || k < b->count) && different < 2) {
        uint32_t left = i < a->count ? a->leaves[i].key : UINT32_MAX;
        uint32_t right = k < b->count ? b->leaves[k].key : UINT32_MAX;
        if (left != right || a->leaves[i].value != b->leaves[k].value) {
            *out_key = left < right ? left : right;
            different++;
        }
        i += left <= right;
        k += right <= left;
    }
    return different == 1;
}

uint32_t hb_pairs_find(const struct hb_pairs *pairs, struct hb_pair **out)
{
    struct hb_pair *list = NULL;
    uint32_t count = 0, cap = 0, key = 0;
    for (uint32_t i = 0; i < pairs->side_count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const struct hb_pairs_side *first = &pairs->sides[k], *second = &pairs->sides[i];
            if (!hb_str_same(first->kind, second->kind) || !differ_in_one(first, second, &key))
                continue;
            list = hb_grow(pairs->arena, list, count, &cap, sizeof *list);
            list[count++] = (struct hb_pair){first->id,
                                             second->id,
                                             pairs->keys[key],
                                             second->measured_bytes - first->measured_bytes,
                                             second->predicted_bytes - first->predicted_bytes,
                                             first->rematerialised || second->rematerialised};
        }
    *out = list;
    return count;
}

struct hb_pair_stats hb_pairs_stats(const struct hb_pair *list, uint32_t count, bool rematerialised)
{
    struct hb_pair_stats s = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].rematerialised != rematerialised)
            continue;
        s.n++;
        int64_t measured = list[i].measured_bytes, predicted = list[i].predicted_bytes;
        int64_t off = llabs(predicted - measured);
        if (llabs(measured) <= HB_PAIR_LARGE_BYTES) {
            s.small_within += off <= HB_PAIR_LARGE_BYTES;
            continue;
        }
        s.large++;
        s.sign_right += (measured > 0) == (predicted > 0) && predicted != 0;
        s.within_close += (double)off <= HB_PAIR_CLOSE * (double)llabs(measured);
    }
    return s;
}
