/* As BufferAssigner::AssignSingleHloBuffer in xla/service/buffer_assignment.cc does it: buffers by
 * falling size, each into the first allocation that is no smaller and free throughout its life.
 * 70B,f128,b256 without donation: of its temporaries only what is larger than any output is left,
 * 10240 + 4008 + 2004 MiB (17.5 -> 15.9 GiB). A donated parameter that has a master copy is read
 * last in the backward pass: pr85/pp8/good,noclip with master, 20.1 -> 16.6 GiB, whose transposed
 * copy and gradient of the experts, 1024 MiB each, and gradient of the head lie in parameters. */
#include "sim/engine/lend.h"

#include <stdlib.h>

#include "base/arena.h"

/* One tenant of a slot. */
struct stay {
    int32_t start;
    int32_t end;
    uint32_t next; /* in the same slot; UINT32_MAX: none */
};

struct lend {
    const struct hb_lend_slot *slots;
    uint32_t slot_count;
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

static bool is_free(const struct lend *l, uint32_t slot, const struct hb_heap_item *item)
{
    const struct hb_lend_slot *own = &l->slots[slot];
    /* What the update reads may become its result in place. */
    if (item->start <= own->after || item->end > own->until ||
        (item->end == own->until && item->bytes != own->bytes))
        return false;
    for (uint32_t i = l->first[slot]; i != UINT32_MAX; i = l->stays[i].next)
        if (item->start <= l->stays[i].end && l->stays[i].start <= item->end)
            return false;
    return true;
}

static bool place_item(struct lend *l, const struct hb_heap_item *item)
{
    for (uint32_t slot = 0; slot < l->slot_count; slot++) {
        if (l->slots[slot].bytes < item->bytes || !is_free(l, slot, item))
            continue;
        l->stays[l->stay_count] = (struct stay){item->start, item->end, l->first[slot]};
        l->first[slot] = l->stay_count++;
        return true;
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
