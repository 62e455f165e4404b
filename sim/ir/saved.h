/* What the backward pass of a layer finds again: kept on the device, kept on the host, or made
 * anew from what is kept. Follows from the policy and from what the backward steps read; a value
 * that nothing needs is not kept, whatever the policy says (bwd/remat=names:mlp_down is free). */
#ifndef HB_SIM_IR_SAVED_H
#define HB_SIM_IR_SAVED_H

#include "sim/ir/layer.h"

enum hb_keep { HB_KEEP_NO, HB_KEEP_DEVICE, HB_KEEP_HOST };

struct hb_saved {
    enum hb_keep *keep; /* by value */
    bool *remake;       /* by value: made again in the backward pass */
};

/* vmapped: stages of a pipeline run side by side, so that every product has a batch dimension.
 * pruned: an unrolled program, whose unneeded residuals the compiler drops. */
void hb_saved_find(struct hb_lower *lo, const struct hb_layer *y, const struct hb_remat *remat,
                   bool vmapped, bool pruned, struct hb_saved *out);

/* What one layer keeps on the device. */
int64_t hb_saved_bytes(const struct hb_saved *s, const struct hb_layer *y);

/* The policies that keep a value where it is needed, a mask of 1u << enum hb_policy. 0: it is made
 * with others in one op that a policy may keep in its place. */
uint8_t hb_saved_by(const struct hb_layer *y, int v);

/* Whether what reads a kept value takes it out of its stack: a product for a weight's gradient that
 * is its only reader; fused: fusions as well, however many. */
bool hb_saved_inside(const struct hb_layer *y, const struct hb_saved *saved, int v, bool fused);

#endif
