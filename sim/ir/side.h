/* Layers side by side, in an unrolled program: which of their weight gradients, and which sums of
 * those over devices, wait for other layers' backward passes. */
#ifndef HB_SIM_IR_SIDE_H
#define HB_SIM_IR_SIDE_H

#include "sim/ir/stack.h"

/* Marks what waits; after the bodies are there. */
void hb_side_plan(struct hb_lower *lo, struct hb_stack_plan *plan);
/* Gathers that come before the first layer. */
void hb_side_gather(struct hb_lower *lo, const struct hb_stack_plan *plan);
/* What no longer waits after group i's backward pass; then what is left after all. */
void hb_side_follow(struct hb_lower *lo, struct hb_stack_plan *plan, uint32_t i);
void hb_side_finish(struct hb_stack_plan *plan);

#endif
