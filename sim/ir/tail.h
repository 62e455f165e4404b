/* The end of a step on CUDA as its latency-hiding scheduler has it (hide.h): the loss, what goes
 * back through it, the layers' backward loop, sums of gradients, updates. From it comes what of
 * the loss waits through that loop, and where the zeros stand that the layers add to.
 *
 *   forward loop, last norm, logits, softmax, gradient ─┬─ head's product ── sum ── update
 *                                                       └─ through the head ─ sum ─ last norm
 *   zeros ─────────────────────────────────── backward loop ─┬─ layers' updates
 *                                                             └─ table: exchange or sum, update */
#ifndef HB_SIM_IR_TAIL_H
#define HB_SIM_IR_TAIL_H

#include "sim/ir/lowering.h"

/* Of the step that lo lowers; sizes are the leaves of whole. */
void hb_tail_find(struct hb_lower *lo, const struct hb_lower *whole);

#endif
