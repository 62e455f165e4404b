/* As BufferAssigner::AssignSingleHloBuffer in xla/service/buffer_assignment.cc does it: buffers by
 * falling size, each into the first allocation that is no smaller and free throughout its life.
 * 70B,f128,b256 without donation: of its temporaries only what is larger than any output is left,
 * 10240 + 4008 + 2004 MiB (17.5 -> 15.9 GiB). A donated parameter that has a master copy is read
 * last in the backward pass: pr85/pp8/good,noclip with master, 20.1 -> 16.6 GiB, whose transposed
 * copy and gradient of the experts, 1024 MiB each, and gradient of the head lie in parameters. */
#include "sim/engine/lend.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"

/* What holds a slot: in order of time, no two at once. */
struct stays {
    struct hb_heap_span *at;
    uint32_t count, cap;
};

/* Of slots below a node: the first time at which one is empty and the last, and of the longest stay
 * in each the first end and the last start, so that what lives through both meets a stay in all of
 * them. In a slot that is smaller than what asks now something always stays. */
struct node {
    int32_t after;
    int32_t until;
    int32_t first_end;
    int32_t last_start;
};

struct lend {
    struct hb_arena *scratch;
    const struct hb_lend_slot *slots;
    uint32_t slot_count;
    struct node *nodes;  /* children of n are 2n and 2n + 1 */
    uint32_t width;      /* leaves */
    struct stays *stays; /* by slot */
};

static int compare_size(const void *a, const void *b)
{
    const struct hb_heap_item *const *left = a, *const *right = b;
    if ((*left)->bytes != (*right)->bytes)
        return (*left)->bytes > (*right)->bytes ? -1 : 1;
    return (*left)->order < (*right)->order ? -1 : (*left)->order > (*right)->order;
}

static int compare_slots(const void *a, const void *b)
{
    const struct hb_lend_slot *const *left = a, *const *right = b;
    return ((*left)->bytes < (*right)->bytes) - ((*left)->bytes > (*right)->bytes);
}

/* Where in a slot something of this life would stand, behind what ends before it. */
static uint32_t find_turn(const struct stays *s, const struct hb_heap_item *item)
{
    uint32_t low = 0, high = s->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (s->at[middle].end < item->start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of an item that the slot may hold. */
static bool is_free(const struct lend *l, uint32_t slot, const struct hb_heap_item *item)
{
    const struct hb_lend_slot *own = &l->slots[slot];
    const struct stays *s = &l->stays[slot];
    /* What the update reads may become its result in place. */
    if (item->end == own->until && item->bytes != own->bytes)
        return false;
    uint32_t turn = find_turn(s, item);
    return turn == s->count || s->at[turn].start > item->end;
}

static struct node join(const struct node *a, const struct node *b)
{
    return (struct node){a->after < b->after ? a->after : b->after,
                         a->until > b->until ? a->until : b->until,
                         a->first_end < b->first_end ? a->first_end : b->first_end,
                         a->last_start > b->last_start ? a->last_start : b->last_start};
}

static void make_nodes(struct lend *l)
{
    for (l->width = 1; l->width < l->slot_count;)
        l->width *= 2;
    l->nodes = hb_arena_alloc(l->scratch, (size_t)l->width * 2, sizeof *l->nodes);
    for (uint32_t n = 0; n < l->width * 2; n++)
        l->nodes[n] = (struct node){INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN};
}

/* What stays longest in a slot now. */
static void set_stay(struct lend *l, uint32_t slot, int32_t start, int32_t end)
{
    uint32_t n = l->width + slot;
    l->nodes[n] = (struct node){l->slots[slot].after, l->slots[slot].until, end, start};
    while (n /= 2)
        l->nodes[n] = join(&l->nodes[2 * n], &l->nodes[2 * n + 1]);
}

static void move_in(struct lend *l, uint32_t slot, const struct hb_heap_item *item)
{
    struct stays *s = &l->stays[slot];
    const struct node *own = &l->nodes[l->width + slot];
    uint32_t turn = find_turn(s, item);
    s->at = hb_grow(l->scratch, s->at, s->count, &s->cap, sizeof *s->at);
    memmove(s->at + turn + 1, s->at + turn, (s->count - turn) * sizeof *s->at);
    s->at[turn] = (struct hb_heap_span){item->start, item->end};
    if (s->count++ == 0 || item->end - item->start > own->first_end - own->last_start)
        set_stay(l, slot, item->start, item->end);
}

static bool may_hold(const struct node *n, const struct hb_heap_item *item)
{
    return item->start > n->after && item->end <= n->until &&
           (item->start > n->first_end || item->end < n->last_start);
}

/* The next node to the right that is not below this one; 0: there is none. */
static uint32_t node_after(uint32_t node)
{
    while (node & 1)
        node /= 2;
    return node ? node + 1 : 0;
}

/* The first slot, in order, that takes the item. */
static bool place_item(struct lend *l, const struct hb_heap_item *item)
{
    for (uint32_t node = 1; node;) {
        uint32_t slot = node - l->width;
        if (!may_hold(&l->nodes[node], item)) {
            node = node_after(node);
            continue;
        }
        if (node < l->width) {
            node *= 2;
            continue;
        }
        if (is_free(l, slot, item)) {
            move_in(l, slot, item);
            return true;
        }
        node = node_after(node);
    }
    return false;
}

uint32_t hb_lend(struct hb_arena *scratch, struct hb_heap_item *items, uint32_t count,
                 const struct hb_lend_slot *slots, uint32_t slot_count)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct lend l = {.scratch = scratch, .slots = slots, .slot_count = slot_count};
    l.stays = hb_arena_alloc(scratch, slot_count, sizeof *l.stays);
    make_nodes(&l);
    const struct hb_heap_item **sorted =
        hb_arena_alloc(scratch, count, sizeof(const struct hb_heap_item *));
    const struct hb_lend_slot **large =
        hb_arena_alloc(scratch, slot_count, sizeof(const struct hb_lend_slot *));
    bool *placed = hb_arena_alloc(scratch, count, sizeof *placed);
    for (uint32_t i = 0; i < slot_count; i++)
        large[i] = &slots[i];
    qsort(large, slot_count, sizeof(const struct hb_lend_slot *), compare_slots);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = &items[i];
    qsort(sorted, count, sizeof(const struct hb_heap_item *), compare_size);
    for (uint32_t i = 0, open = 0; i < count; i++) {
        for (; open < slot_count && large[open]->bytes >= sorted[i]->bytes; open++)
            set_stay(&l, (uint32_t)(large[open] - slots), INT32_MAX, INT32_MIN);
        placed[sorted[i] - items] = place_item(&l, sorted[i]);
    }
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!placed[i])
            items[left++] = items[i];
    hb_arena_rewind(scratch, mark);
    return left;
}

uint32_t hb_lend_slots(struct hb_arena *arena, const struct hb_program *p,
                       const struct hb_live *live, uint32_t live_count, struct hb_lend_slot **out)
{
    const struct hb_heap_span *gaps = hb_live_gaps(arena, p);
    bool *is_argument = hb_arena_alloc(arena, p->buf_count, sizeof *is_argument);
    bool *is_output = hb_arena_alloc(arena, p->buf_count, sizeof *is_output);
    const uint32_t *roots = hb_program_roots(arena, p);
    uint32_t count = 0;
    *out = hb_arena_alloc(arena, live_count, sizeof **out);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        is_argument[roots[i]] |= p->bufs[i].argument;
        is_output[roots[i]] |= p->bufs[i].output;
    }
    for (uint32_t i = 0; i < live_count; i++) {
        uint32_t buf = live[i].buf;
        if (p->bufs[buf].space != HB_SPACE_HBM || !is_output[buf])
            continue;
        struct hb_lend_slot slot = {live[i].bytes, -1, live[i].start, buf};
        if (is_argument[buf])
            slot = (struct hb_lend_slot){live[i].bytes, gaps[buf].start, gaps[buf].end, buf};
        (*out)[count++] = slot;
    }
    return count;
}

/* XLA:GPU's: no other compiler lends. */
enum { HEAP_ALIGN = 256 };

int64_t hb_lend_bytes(const struct hb_lend_slot *slot)
{
    return slot->until > slot->after ? hb_round_up(slot->bytes, HEAP_ALIGN) : 0;
}

int64_t hb_lend_room(struct hb_arena *scratch, const struct hb_program *p,
                     const struct hb_live *live, uint32_t live_count, int32_t until)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct hb_lend_slot *slots;
    int64_t room = 0;
    if (!p->outputs_lend)
        return 0;
    uint32_t count = hb_lend_slots(scratch, p, live, live_count, &slots);
    for (uint32_t i = 0; i < count; i++)
        if (slots[i].after < until)
            room = hb_add_sat(room, hb_lend_bytes(&slots[i]));
    hb_arena_rewind(scratch, mark);
    return room;
}
