/* Where buffers lie in the heap over the step: a box each, the schedule across, address
 * upwards. What is
 * hatched inside the heap's height is reserved and used by nobody. */
#ifndef HB_PLOTS_ADDRESSMAP_H
#define HB_PLOTS_ADDRESSMAP_H

#include "plots/canvas.h"
#include "plots/outcome.h"

struct hb_heap_use {
    int64_t live_peak_bytes; /* most bytes in use at one time */
    int64_t at_op;           /* when */
};

/* o->buffer_count > 0. */
void hb_addressmap_draw(struct hb_canvas *c, const struct hb_outcome *o);
/* "heap of 12.3 GiB, 98 % in use at the peak; 0.2 GiB lost to fragmentation" */
const char *hb_addressmap_title(struct hb_arena *arena, const struct hb_outcome *o);

#endif
