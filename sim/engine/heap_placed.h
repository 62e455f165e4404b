/* Items that have their places in a heap (heap.c), by address and time: where is the smallest gap
 * that is free throughout the life of one more? */
#ifndef HB_SIM_ENGINE_HEAP_PLACED_H
#define HB_SIM_ENGINE_HEAP_PLACED_H

#include <stdint.h>

struct hb_arena;
struct hb_heap_item;
struct hb_placed;

/* Empty, laid out for these items (their lives and number). Lives in scratch. */
struct hb_placed *hb_placed_new(struct hb_arena *scratch, const struct hb_heap_item *items,
                                uint32_t count);
/* The lowest address of the smallest gap for its bytes; above all that is in its way where there is
 * none. */
int64_t hb_placed_find(const struct hb_placed *placed, const struct hb_heap_item *item);
/* The item at its offset. */
void hb_placed_add(struct hb_placed *placed, const struct hb_heap_item *item);

#endif
