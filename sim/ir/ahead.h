/* MaxText's single dense layer before layers of experts: its MLP is made again ahead of their
 * backward loop, or beside its own backward pass. */
#ifndef HB_SIM_IR_AHEAD_H
#define HB_SIM_IR_AHEAD_H

#include "sim/ir/stack.h"

/* Of a group that loses its rematerialisation: decides which, and keeps its MLP or does not. */
void hb_ahead_find(const struct hb_lower *lo, struct hb_group *g);
/* After its forward pass, and after its backward pass: what waits with what came ahead. */
void hb_ahead_hold(struct hb_lower *lo, struct hb_group *g);
void hb_ahead_end(struct hb_lower *lo, const struct hb_group *g);

#endif
