/* The optimizer's part of the step. */
#ifndef HB_SIM_IR_OPTIM_H
#define HB_SIM_IR_OPTIM_H

#include "sim/ir/lowering.h"

/* Finds in which order states come from the host, and go, if that is not known. */
void hb_optim_order(struct hb_lower *lo);
/* Brings states that lie on the host to the device: before the loss, before the layers' backward
 * pass or before a loop over microbatches. */
void hb_optim_fetch_before_loss(struct hb_lower *lo);
void hb_optim_fetch_first(struct hb_lower *lo);
void hb_optim_fetch(struct hb_lower *lo);
/* What comes before a head's gradient that waits, where XLA:TPU's order has it so: the layers, then
 * the table. */
void hb_optim_update_layers(struct hb_lower *lo);
void hb_optim_update_table(struct hb_lower *lo);
void hb_optim_update(struct hb_lower *lo);

#endif
