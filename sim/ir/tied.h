/* A head that is the embedding's table, between XLA:TPU's rings, with one sequence a device: which
 * of its logits and of their gradients wait for the table's. Answers follow from sizes; head.c and
 * loss.c ask. */
#ifndef HB_SIM_IR_TIED_H
#define HB_SIM_IR_TIED_H

#include "sim/ir/lowering.h"

enum hb_tied_wait {
    HB_TIED_APART,  /* not such a head: other rules hold */
    HB_TIED_LABEL,  /* its gradient comes at once; the logits stay for the labels' own */
    HB_TIED_NARROW  /* the logits' gradient waits as it is made; it is turned when it is read */
};

enum hb_tied_wait hb_tied_find(const struct hb_lower *lo);
/* Its gradient is turned when the product reads it. */
bool hb_tied_turns_late(const struct hb_lower *lo);

#endif
