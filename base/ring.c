#include "base/ring.h"

#include "base/str.h"

uint32_t hb_ring_new(struct hb_rings *rings, uint32_t owner)
{
    uint32_t n = rings->count;
    rings->links = hb_grow(rings->arena, rings->links, n, &rings->cap, sizeof *rings->links);
    rings->links[n] = (struct hb_link){owner, n, n};
    return rings->count++;
}

uint32_t hb_ring_add(struct hb_rings *rings, uint32_t owner, uint32_t behind)
{
    uint32_t link = hb_ring_new(rings, owner);
    hb_ring_move(rings, link, behind);
    return link;
}

void hb_ring_move(struct hb_rings *rings, uint32_t link, uint32_t behind)
{
    struct hb_link *links = rings->links;
    hb_ring_cut(rings, link);
    links[link].prev = behind;
    links[link].next = links[behind].next;
    links[links[link].next].prev = link;
    links[behind].next = link;
}

void hb_ring_cut(struct hb_rings *rings, uint32_t link)
{
    struct hb_link *l = &rings->links[link];
    rings->links[l->prev].next = l->next;
    rings->links[l->next].prev = l->prev;
    l->prev = l->next = link;
}
