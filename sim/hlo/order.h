/* Orders in which XLA walks a module: ties between equal buffers are decided by them (rule 10). */
#ifndef HB_SIM_HLO_ORDER_H
#define HB_SIM_HLO_ORDER_H

#include "sim/hlo/flow.h"

/* The instructions of a computation so that each stands behind its operands and its control
 * predecessors, which are met before the operands: depth first from instructions without users, in
 * the order of the text, as sim/graph has it (HloComputation::MakeInstructionPostOrder). out has
 * room for all of them. */
void hb_hlo_post_order(struct hb_arena *scratch, const struct hb_hlo_module *m, uint32_t comp,
                       uint32_t *out);
/* Fills the flow's post_order: scopes from the entry down, in each the computation's. */
void hb_hlo_order_nodes(struct hb_hlo_flow *f);

#endif
