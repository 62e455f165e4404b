/* Muon's part of the update: Newton-Schulz iterations on whole matrices of the momentum, and what
 * of them is copied, gathered or turned before. optim.c asks; other optimizers have none of it. */
#ifndef HB_SIM_IR_MUON_H
#define HB_SIM_IR_MUON_H

#include "sim/ir/lowering.h"

/* Whether it iterates on this leaf. */
bool hb_muon_takes(const struct hb_lower *lo, const struct hb_leaf *l);
/* Copies of weights and momenta in another layout at the start, where a list makes them. */
void hb_muon_copy_first(struct hb_lower *lo);
/* Before the updates: momenta that all gathers renew first; those that are gathered together. */
void hb_muon_begin(struct hb_lower *lo);
void hb_muon_gather(struct hb_lower *lo);
/* What found no room then comes before what did. */
bool hb_muon_goes_first(const struct hb_lower *lo, const struct hb_leaf *l);
/* The passes over a leaf that XLA:TPU gathers, five in all; nothing elsewhere. */
enum { HB_MUON_ALL = 5 };
void hb_muon_iterate(struct hb_lower *lo, struct hb_leaf *l);
/* The iterations of any other leaf, as a part of its update e; what of the momentum then stays. */
void hb_muon_orthogonalise(struct hb_lower *lo, const struct hb_leaf *l, struct hb_emit *e);

#endif
