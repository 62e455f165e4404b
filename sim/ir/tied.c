/* Tied heads between rings: see tied.h. The table's gradient is the sum of the product's and the
 * lookup's, so its update follows the layers' backward pass; what waits follows from the sequence
 * (sequence.h). MiB above the arguments, list, depth, post, and what is alive through the layers:
 *
 *   gemma2b,f8           9245 7811  9091  the bf16 gradient, turned when it is read
 *   gemma2b,f8,clip      9245 9091  9091  f32 logits, the gradient turned
 *   gemma2b,f8,bf16      8296 8512 10826  f32 logits; the head's gradient, accumulators first
 *   gemma2b,f8,master    8176 7909 10705  as with clip
 *   gemma2b,f16,clip     8283 8560  8560  as in bf16 (so with bf16 and master)
 *   8B,f8,tied          10592 10449 12445, 8 layers 6081 4780 5681, 8192 tokens 14688 12568 16572,
 *   f16 7840 6283 8290, 1B,f8,b1 4745 4038 4601: as gemma2b,f8
 *   8B,f8,tied,bf16      7262 7456  7600  as gemma2b,f8,bf16
 *
 * Depth-first with updates that take their gradients as they are made, the loss is over when the
 * layers' backward pass begins; where they do not, or in bf16, it is post-order with the gradient
 * in both layouts beside the logits. v6e does not turn it and keeps both (gemma2b,v6e,f8: f32 from
 * 833 to 2777, bf16 from 852 to 2660, 9255 8702 8702; f16,clip; f8,bf16; 1B,f8,b1) but in the
 * list's order (8B,v6e,f8, 10623 12445 12445, and f16). The forms give the figures within 3 %, with
 * the casts, but the depth-first ones with a master copy (7674 for 7974, fsdp 16); two halves of
 * nested layers (gemma2b,f8,outer=2) are a list whose logits do not wait. */
#include "sim/ir/tied.h"

#include "base/size.h"
#include "sim/ir/head.h"
#include "sim/ir/sequence.h"

static bool is_known(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    bool whole = s->loss.chunks == 1 && s->loss.dot == HB_DT_F32 && s->batch.accumulate == 1;
    return s->model.tied_embeddings && lo->habits->rings && !lo->maxtext && hb_head_ring(lo) &&
           hb_fsdp_ways(lo, false) >= HB_SEQUENCE_LEAST_WAYS && hb_ways(lo, HB_AX_TENSOR) == 1 &&
           lo->local.batch == 1 && whole && !lo->chip->tied_grad_turned;
}

/* Whether the list is least. */
static bool is_list(const struct hb_lower *lo)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    struct hb_shape part = hb_leaf_layer_shape(l, HB_DT_F32, false);
    struct hb_shape gathered = hb_leaf_layer_shape(l, lo->compute, true);
    int64_t narrow = hb_logit_bytes(lo, 2);
    int64_t both = hb_mul_sat(3, narrow), grads = lo->stacked_grad_bytes;
    int64_t loss = hb_add_sat(both, hb_shape_plain_bytes(&gathered));
    int64_t list = hb_add_sat(loss, hb_mul_sat(2, hb_shape_plain_bytes(&part)));
    int64_t back = hb_larger(hb_mul_sat(2, grads), hb_add_sat(grads, hb_sequence_layer_bytes(lo)));
    int64_t depth = hb_larger(loss, hb_add_sat(narrow, back));
    if (lo->chip->tied_grad_as_is)
        depth = hb_larger(loss, hb_add_sat(both, back));
    return hb_add_sat(list, grads) <= depth;
}

enum hb_tied_wait hb_tied_find(const struct hb_lower *lo)
{
    if (!is_known(lo))
        return HB_TIED_APART;
    return is_list(lo) ? HB_TIED_LABEL : HB_TIED_NARROW;
}

bool hb_tied_turns_late(const struct hb_lower *lo)
{
    return hb_tied_find(lo) != HB_TIED_APART;
}
