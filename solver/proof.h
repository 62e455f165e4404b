/* What is proven of a cell once a search has ended, from the terms that it found: rows keep what
 * was known when a cell was put aside, and more of its node may have been found since.
 * examples/verify/ check_certificate.py computes the same from the certificate. Of compilers XLA.
 *
 * With n the node's terms and f those of the cell's floor (search.h, bound.h; 0 where they were not
 * looked at), A the forward pass of nested scans that are made again (remat.outer), else 0:
 *
 *   step >= n.loops                                      whatever the cell
 *   step >= n.path + A                                   but for unrolled layers
 *   step >= f.bound + A
 *   step >= n.relax, r                                   scans, r of the cell (whole.h)
 *   step >= max(n.path, n.layers, n.turns) + f.ends + f.tail      scans, policies of the menus
 * alone
 *
 * and a peak is no lower than n.live and f.live. */
#ifndef HB_SOLVER_PROOF_H
#define HB_SOLVER_PROOF_H

#include "solver/search.h"

/* The node that has the cell. */
const struct hb_search_node *hb_proof_node(const struct hb_plan *plan, uint32_t cell);
/* No configuration of the cell under policies of the menus is below; INFINITY: none could fit. */
double hb_proof_value(const struct hb_plan_ask *ask, const struct hb_plan *plan,
                      const struct hb_search_node *node, uint32_t cell);
/* May be better than the plan by what is proven, and was not searched. */
bool hb_proof_is_left(const struct hb_plan_ask *ask, const struct hb_plan *plan,
                      const struct hb_search_node *node, uint32_t cell);
/* What a predicted peak of the cell must not exceed. */
int64_t hb_proof_peak_bytes(const struct hb_plan_ask *ask, const struct hb_plan *plan,
                            uint32_t cell);

#endif
