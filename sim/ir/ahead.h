/* MaxText's single dense layer before layers of experts: its MLP is made again beside its own
 * backward pass. */
#ifndef HB_SIM_IR_AHEAD_H
#define HB_SIM_IR_AHEAD_H

#include "sim/ir/stack.h"

/* Of a group that loses its rematerialisation: keeps its MLP or does not. */
void hb_ahead_find(const struct hb_lower *lo, struct hb_group *g);

#endif
