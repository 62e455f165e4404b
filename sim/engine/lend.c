/* As BufferAssigner::AssignSingleHloBuffer in xla/service/buffer_assignment.cc does it: buffers by
 * falling size, each into the first allocation that is no smaller and free throughout its life.
 * 70B,f128,b256 without donation: of its temporaries only what is larger than any output is left,
 * 10240 + 4008 + 2004 MiB (17.5 -> 15.9 GiB). A donated parameter that has a master copy is read
 * last in the backward pass: pr85/pp8/good,noclip with master, 20.1 -> 16.6 GiB, whose transposed
 * copy and gradient of the experts, 1024 MiB each, and gradient of the head lie in parameters. */
#include "sim/engine/lend.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/size.h"

/* One tenant of a slot. */
struct stay {
    int32_t start;
    int32_t end;
    uint32_t next; /* in the same slot; UINT32_MAX: none */
};

struct lend {
    const struct hb_lend_slot *slots;
    uint32_t slot_count;
    /* Of slots below a node the largest, the earliest and the latest: what an item is too large,
     * too early or too late for need not be asked one by one. Children of n are 2n and 2n + 1. */
    struct hb_lend_slot *most;
    uint32_t width;  /* leaves */
    uint32_t *first; /* by slot */
    struct stay *stays;
    uint32_t stay_count;
};

static int compare_size(const void *a, const void *b)
{
    const struct hb_heap_item *const *left = a, *const *right = b;
    if ((*left)->bytes != (*right)->bytes)
        return (*left)->bytes > (*right)->bytes ? -1 : 1;
    return (*left)->order < (*right)->order ? -1 : (*left)->order > (*right)->order;
}

/* Of an item that the slot may hold. */
static bool is_free(const struct lend *l, uint32_t slot, const struct hb_heap_item *item)
{
    const struct hb_lend_slot *own = &l->slots[slot];
    /* What the update reads may become its result in place. */
    if (item->end == own->until && item->bytes != own->bytes)
        return false;
    for (uint32_t i = l->first[slot]; i != UINT32_MAX; i = l->stays[i].next)
        if (item->start <= l->stays[i].end && l->stays[i].start <= item->end)
            return false;
    return true;
}

static void make_nodes(struct lend *l, struct hb_arena *scratch)
{
    for (l->width = 1; l->width < l->slot_count;)
        l->width *= 2;
    l->most = hb_arena_alloc(scratch, (size_t)l->width * 2, sizeof *l->most);
    for (uint32_t i = 0; i < l->width; i++)
        l->most[l->width + i] =
            i < l->slot_count ? l->slots[i] : (struct hb_lend_slot){-1, INT32_MAX, INT32_MIN, 0};
    for (uint32_t n = l->width; n-- > 1;) {
        const struct hb_lend_slot *a = &l->most[2 * n], *b = a + 1;
        l->most[n] = (struct hb_lend_slot){a->bytes > b->bytes ? a->bytes : b->bytes,
                                           a->after < b->after ? a->after : b->after,
                                           a->until > b->until ? a->until : b->until, 0};
    }
}

static bool may_hold(const struct hb_lend_slot *most, const struct hb_heap_item *item)
{
    return most->bytes >= item->bytes && item->start > most->after && item->end <= most->until;
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
        if (!may_hold(&l->most[node], item)) {
            node = node_after(node);
            continue;
        }
        if (node < l->width) {
            node *= 2;
            continue;
        }
        if (is_free(l, slot, item)) {
            l->stays[l->stay_count] = (struct stay){item->start, item->end, l->first[slot]};
            l->first[slot] = l->stay_count++;
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
    struct lend l = {.slots = slots,
                     .slot_count = slot_count,
                     .first = hb_arena_alloc(scratch, slot_count, sizeof *l.first),
                     .stays = hb_arena_alloc(scratch, count, sizeof *l.stays)};
    make_nodes(&l, scratch);
    const struct hb_heap_item **sorted =
        hb_arena_alloc(scratch, count, sizeof(const struct hb_heap_item *));
    bool *placed = hb_arena_alloc(scratch, count, sizeof *placed);
    for (uint32_t i = 0; i < slot_count; i++)
        l.first[i] = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = &items[i];
    qsort(sorted, count, sizeof(const struct hb_heap_item *), compare_size);
    for (uint32_t i = 0; i < count; i++)
        placed[sorted[i] - items] = place_item(&l, sorted[i]);
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
