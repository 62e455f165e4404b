/* What no configuration of the whole space is below: all policies of named tensors, not those of
 * the menus alone, and all runs of layers. Floors (bound.h) hold for every policy, the relaxation
 * (relax.h) for every policy that fits; what is known of the menus' policies says nothing here. */
#ifndef HB_SOLVER_WHOLE_H
#define HB_SOLVER_WHOLE_H

#include "solver/search.h"

/* Sets relax_ns of a node: its scans take no less, whatever their policies, chunks and place. */
void hb_whole_relax_node(struct hb_search *s, struct hb_search_node *node);
/* What no configuration of a cell of the node is below by what is known of the node alone. */
double hb_whole_node_value(const struct hb_search *s, const struct hb_search_node *node,
                           uint32_t index);
/* What no configuration of a cell of the node is below; where the floors say that it is above
 * `most` already no more than that is found out. INFINITY: none of it fits. */
double hb_whole_cell_value(struct hb_search *s, struct hb_search_node *node, uint32_t index,
                           double most);
/* The least that a configuration of the space may be; `best`: none that was not run is below it. */
double hb_whole_bound(struct hb_search *s, double best);

#endif
