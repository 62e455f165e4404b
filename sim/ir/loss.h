/* The head and its loss, forward and backward. What waits of them: struct hb_ends. */
#ifndef HB_SIM_IR_LOSS_H
#define HB_SIM_IR_LOSS_H

#include "sim/ir/ends.h"

/* What of the head is fetched before the layers. */
void hb_loss_prepare(struct hb_lower *lo);
/* The loss of the last residual x, and back: the gradient of x. */
uint32_t hb_loss_pass(struct hb_lower *lo, struct hb_ends *ends, uint32_t x);
/* That of a depth of multi-token prediction, before the model's own, for which the head stays
 * gathered; the head's gradient is collected, or `waits` for the model's own. */
uint32_t hb_loss_further(struct hb_lower *lo, uint32_t x, bool waits);
/* The head's gradient where it waited for the layers' backward pass. */
void hb_loss_finish(struct hb_lower *lo, struct hb_ends *ends);

#endif
