/* Rings of numbered links in an order that the caller gives. A link can be cut out and put into
 * another ring; its number stays. */
#ifndef HB_BASE_RING_H
#define HB_BASE_RING_H

#include <stdint.h>

struct hb_arena;

struct hb_link {
    uint32_t owner; /* the caller's */
    uint32_t prev, next;
};

struct hb_rings {
    struct hb_arena *arena;
    struct hb_link *links;
    uint32_t count, cap;
};

/* The one link of a new ring. Numbers are given one after another. */
uint32_t hb_ring_new(struct hb_rings *rings, uint32_t owner);
/* A new link, behind another. */
uint32_t hb_ring_add(struct hb_rings *rings, uint32_t owner, uint32_t behind);
/* Cuts a link out of its ring and puts it behind another. */
void hb_ring_move(struct hb_rings *rings, uint32_t link, uint32_t behind);
void hb_ring_cut(struct hb_rings *rings, uint32_t link);

#endif
