/* Memory of the caller's that holds nothing for a while: outputs of their own (state that is not
 * donated) until the update, a donated argument from its last reader to its new value. XLA's buffer
 * assignment places temporaries there first, and only the rest in the heap. */
#ifndef HB_SIM_ENGINE_LEND_H
#define HB_SIM_ENGINE_LEND_H

#include "sim/engine/live.h"

struct hb_lend_slot {
    int64_t bytes;
    int32_t after; /* empty after this position ... */
    int32_t until; /* ... and up to this one, at which its new value is made */
    uint32_t buf;  /* whose it is */
};

/* The slots of a program: outputs of their own, and arguments that become outputs; by its lives.
 * Returns how many. */
uint32_t hb_lend_slots(struct hb_arena *arena, const struct hb_program *p,
                       const struct hb_live *live, uint32_t live_count, struct hb_lend_slot **out);

/* What a slot can hold, as the heap counts it. */
int64_t hb_lend_bytes(const struct hb_lend_slot *slot);
/* All that its slots can hold at once that are empty before position `until`; INT32_MAX: at any
 * time. A floor of what else takes memory is less by so much. */
int64_t hb_lend_room(struct hb_arena *scratch, const struct hb_program *p,
                     const struct hb_live *live, uint32_t live_count, int32_t until);

/* Takes out of items those that find room in a slot, largest first. Returns how many are left, in
 * their order. */
uint32_t hb_lend(struct hb_arena *scratch, struct hb_heap_item *items, uint32_t count,
                 const struct hb_lend_slot *slots, uint32_t slot_count);

#endif
