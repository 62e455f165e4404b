/* Ragged products where a compiler has none: each operand is spread over the experts, masked. */
#ifndef HB_SIM_IR_SPREAD_H
#define HB_SIM_IR_SPREAD_H

#include "sim/ir/body.h"

/* What the product reads for its input, row by row. */
uint32_t hb_spread_rows(struct hb_body *b, const struct hb_step_op *s);
/* What it, or its backward pass, reads for its weight w. */
uint32_t hb_spread_weight(struct hb_body *b, const struct hb_step_op *s, uint32_t w, bool back);
/* What the product's backward pass reads for the gradient g of its result, and its siblings'. */
uint32_t hb_spread_gradient(struct hb_body *b, const struct hb_step_op *s, uint32_t g);
/* After the backward pass of the activation s, which made these gradients of its inputs: by expert,
 * with the activation itself. */
void hb_spread_hidden(struct hb_body *b, const struct hb_step_op *s, const uint32_t *made);
/* Whether the product's result is the outputs', of the activation. */
bool hb_spread_is_down(const struct hb_body *b, const struct hb_step_op *s);
/* What the gradient of the product's weight is made of. */
void hb_spread_read_weight(struct hb_body *b, struct hb_emit *e, const struct hb_step_op *s);

#endif
