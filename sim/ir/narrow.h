/* Products in 8 bit (precision.fp8), as qwix makes them in MaxText's `quantization: fp8_full`: a
 * copy of each operand, kept in place of it, and two of the gradient that comes in, one for each
 * product of the backward pass. */
#ifndef HB_SIM_IR_NARROW_H
#define HB_SIM_IR_NARROW_H

#include "sim/ir/body.h"

/* Whether s is such a product; and whether what lies outside of its operands' range gets no
 * gradient, so that the input is read once more, as it came. */
bool hb_narrow_product(const struct hb_lower *lo, const struct hb_step_op *s);
bool hb_narrow_clips(const struct hb_lower *lo, const struct hb_step_op *s);
/* What the product s reads for its input; made where it is not there. */
uint32_t hb_narrow_input(struct hb_body *b, const struct hb_step_op *s);
/* Makes both copies of the gradient of the product's result. */
void hb_narrow_gradient(struct hb_body *b, const struct hb_step_op *s, uint32_t grad);
/* A copy of a weight's shard or of the whole. */
uint32_t hb_narrow_weight(struct hb_lower *lo, const struct hb_leaf *l, uint32_t from, bool whole);
/* In which dtype the leaf is gathered. */
enum hb_dtype hb_narrow_gathered(const struct hb_lower *lo, const struct hb_leaf *l);

#endif
