/* Bytes alive at each position of the schedule, by category: what the peak is the highest of.
 * Fragmentation is the heap's height above what lives, and in no position. */
#ifndef HB_SIM_ENGINE_TIMELINE_H
#define HB_SIM_ENGINE_TIMELINE_H

#include "sim/engine/run.h"

struct hb_timeline {
    uint32_t count;       /* positions: ops of the program */
    int64_t *total_bytes; /* by position; HBM, arguments and outputs included */
    int64_t (*category_bytes)[HB_CATEGORY_COUNT]; /* sums to total_bytes */
};

/* At memory->peak_op, total_bytes + fragmentation = memory->peak_bytes, category by category. */
void hb_timeline_make(struct hb_arena *arena, const struct hb_program *p,
                      const struct hb_memory *memory, struct hb_timeline *out);

#endif
