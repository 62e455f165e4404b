/* The place of a weight's gradient among a layer's backward products. */
#ifndef HB_SIM_IR_WHEN_H
#define HB_SIM_IR_WHEN_H

#include "sim/ir/body.h"

enum hb_when {
    HB_WHEN_FIRST, /* before the input's gradient, with its siblings */
    HB_WHEN_AFTER, /* after it */
    HB_WHEN_LATE   /* at the end of the layer, or of all layers */
};

enum hb_when hb_body_when(const struct hb_body *b, const struct hb_step_op *s);

/* Of sorted experts on v5e weight gradients do not wait for the layer's end. */
bool hb_body_sorts_beside(const struct hb_body *b);
/* Whether every reader of the step's results has run its backward pass, the last being step i. */
bool hb_body_readers_done(const struct hb_body *b, const struct hb_step_op *s, uint32_t i);

/* Whether the gradient of the sum that the step reads is made again by a layer's last fusion. */
bool hb_body_sum_remade(const struct hb_body *b, const struct hb_step_op *s);

#endif
