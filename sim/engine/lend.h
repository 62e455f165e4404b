/* Outputs with memory of their own (state that is not donated) hold nothing until the update: XLA's
 * buffer assignment places temporaries there first, and only the rest in the heap. */
#ifndef HB_SIM_ENGINE_LEND_H
#define HB_SIM_ENGINE_LEND_H

#include "sim/engine/heap.h"

/* Takes out of items those that find room in a slot, largest first; a slot's life is that of the
 * output itself. Returns how many are left, in their order. */
uint32_t hb_lend(struct hb_arena *scratch, struct hb_heap_item *items, uint32_t count,
                 const struct hb_heap_item *slots, uint32_t slot_count);

#endif
