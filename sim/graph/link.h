/* A step's program in the order that XLA's memory schedulers choose for it (order.h, choose.h).
 *
 * Which of the three is least is found of the program under its first policy, whatever follows it;
 * what each of them does is found once for all policies, of the same step whose layers keep their
 * products: an order is one of three of a mesh, a batch and a model, so that samples of a
 * configuration could follow it.
 *
 *   emitted   zeros of the layers | cast, gather head | stacks, loop | logits | ... | updates
 *   clusters  0                     1     2             3       4      5        ...   9
 *   order     1 2 3 4 5 0 ...
 *
 * A cluster is an op of the model's ends, or neighbours of one kind that belong to the layers. */
#ifndef HB_SIM_GRAPH_LINK_H
#define HB_SIM_GRAPH_LINK_H

#include <stdbool.h>

#include "sim/ir/program.h"

/* Whether the compiler's order is its schedulers' alone: ROCm's scans without stages. */
bool hb_link_is_known(const struct hb_spec *spec);
/* Of what hb_lower made of the spec; where it is not known p stays as it is. */
void hb_link_order(struct hb_arena *arena, const struct hb_spec *spec, struct hb_program *p);

#endif
