/* The last trip of a layers' loop, where XLA:TPU takes it out: what waits behind other loops. */
#ifndef HB_SIM_IR_TRIP_H
#define HB_SIM_IR_TRIP_H

#include "sim/ir/stack.h"

/* Whether the backward loop's is taken out. */
bool hb_trip_taken(const struct hb_lower *lo, const struct hb_group *g);
/* Behind that loop: holds what its weight gradients read, which come last or with their updates. */
void hb_trip_hold(struct hb_lower *lo, struct hb_group *g);
void hb_trip_follow(struct hb_lower *lo, const struct hb_stack_plan *plan);
void hb_trip_update(struct hb_lower *lo, uint32_t leaf);
/* Whether a loss in chunks is added up in that trip of the last of several runs, before the weight
 * gradients of its MLP. */
bool hb_trip_meets_loss(const struct hb_lower *lo, const struct hb_stack_plan *plan);

#endif
