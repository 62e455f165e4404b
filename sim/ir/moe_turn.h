/* A dispatch by one-hot masks on XLA:GPU: products over sequences want these outermost, those over
 * experts the experts, so that what one makes is turned for the other.
 *
 *   tokens, mask ─ [b, E, C, d] ─ turn ─ [E, b, C, d] ─ experts ─ [E, b, C, d] ─ turn ─ outputs */
#ifndef HB_SIM_IR_MOE_TURN_H
#define HB_SIM_IR_MOE_TURN_H

#include "sim/ir/layer.h"

/* Rows of all experts in the other order: a value of its own, and so is its gradient. */
int hb_moe_turn_rows(struct hb_lower *lo, struct hb_layer *y, int in);
/* What comes when of steps that begin and end with such copies, before step `last`, the sum. */
void hb_moe_order_turned(struct hb_layer *y, uint32_t first, uint32_t last);
/* Which stacks of values from `first` on are turned whole; both: several sequences and experts. */
void hb_moe_turn_kept(struct hb_layer *y, uint32_t first, bool both);
/* The step that sums the outputs by their weights reads these turned. */
void hb_moe_turn_weights(struct hb_step_op *sum, const int64_t *masks);
/* Whether a joined token's gradient is summed together with the router's. */
bool hb_moe_waits_for_router(const struct hb_lower *lo);

#endif
