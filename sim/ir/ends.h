/* The model's two ends: leaves, embedding, what waits between them; head and loss: see loss.h. */
#ifndef HB_SIM_IR_ENDS_H
#define HB_SIM_IR_ENDS_H

#include "sim/ir/lowering.h"

struct hb_ends {
    uint32_t iota; /* one-hot lookup on GPU: index tensor that waits for the backward pass */
    uint32_t pending_logits; /* logits (or their gradient) that the postponed head gradient reads */
    uint32_t pending_x;      /* its other operand */
    uint32_t pending_before; /* the logits before a cast, where those wait; HB_NONE */
    uint32_t loss_x;         /* input of the chunks whose loss is added up at the very end ... */
    uint32_t loss_w;         /* ... and the head, where they gather none */

    uint32_t pending_full; /* whole gradient that waits for its sum; HB_NONE */
    bool head_done;
    uint32_t table_grad; /* what the rows' gradients are added to, made early; HB_NONE */
};

void hb_ends_leaves(struct hb_lower *lo);
/* What the rows' gradients will be scattered into, where that can be made by now. */
void hb_ends_start_table(struct hb_lower *lo, struct hb_ends *ends);
/* The first residual. */
uint32_t hb_ends_embed(struct hb_lower *lo, struct hb_ends *ends);
/* A residual, as it lies between layers. */
struct hb_shape hb_ends_residual(const struct hb_lower *lo);
/* What is left when the layers' backward pass is done: gradients of the head (where postponed) and
 * of the embedding, from the gradient of the first residual. */
void hb_ends_finish(struct hb_lower *lo, struct hb_ends *ends, uint32_t grad);

#endif
