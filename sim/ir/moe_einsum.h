/* A mixture's dispatch by one-hot masks and a capacity: a product with the mask puts tokens in
 * their experts' places, one with the weights puts the outputs together. */
#ifndef HB_SIM_IR_MOE_EINSUM_H
#define HB_SIM_IR_MOE_EINSUM_H

#include "sim/ir/moe_experts.h"

/* From the tokens and the router's probabilities to the layer's output. */
int hb_moe_einsum(struct hb_lower *lo, struct hb_layer *y, int in, int probs,
                  const struct hb_moe_routed *r);

#endif
