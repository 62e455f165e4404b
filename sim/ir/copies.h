/* The queue of copies from and to the host on XLA:TPU: five are on their way at a time, in the
 * order of the leaves' updates. optim.c fetches, updates and sends by it. */
#ifndef HB_SIM_IR_COPIES_H
#define HB_SIM_IR_COPIES_H

#include "sim/ir/lowering.h"

enum { HB_COPIES_AT_ONCE = 5, HB_COPIES_OVER_LOSS = 3 };

/* Whether the optimizer's states go through that queue: not muon's whole matrices. */
bool hb_copies_queued(const struct hb_lower *lo);
/* Whether they all come before the layers' backward pass, by the sequence that the step runs in. */
bool hb_copies_first(const struct hb_lower *lo);
/* How many states otherwise are, of the leaves that are updated first. */
uint32_t hb_copies_early(const struct hb_lower *lo);
/* The leaves in the order of their updates: leaf_count indices in the arena; a weight's leaves, of
 * one run of layers each, stand together. Those of the i-th's weight end before hb_copies_end. */
uint32_t *hb_copies_order(struct hb_lower *lo);
uint32_t hb_copies_end(const struct hb_lower *lo, const uint32_t *order, uint32_t i);

#endif
