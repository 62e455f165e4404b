/* Nested scans over one group of layers: outer blocks whose inputs are kept, and inner loops over
 * their layers, which run forwards, once more and backwards. The group's loops are opened here;
 * what a layer does is the body's. */
#ifndef HB_SIM_IR_NESTED_H
#define HB_SIM_IR_NESTED_H

#include "sim/ir/stack.h"

/* Whether a group's layers are run again block by block. */
bool hb_nested_is(const struct hb_lower *lo, const struct hb_group *g);
/* Of such a group: x is its input; returns its output. */
uint32_t hb_nested_forward(struct hb_lower *lo, struct hb_group *g, uint32_t x);
/* grad is that of its output; returns that of its input. */
uint32_t hb_nested_backward(struct hb_lower *lo, struct hb_group *g, uint32_t grad);
/* One outer block of any group with inner loops, backwards, nothing made again around it. */
uint32_t hb_nested_inner_backward(struct hb_lower *lo, struct hb_group *g, uint32_t grad);

#endif
