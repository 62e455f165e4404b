/* Attention over a sequence that ranks share, as PyTorch's context parallelism has it: each step
 * takes the keys and values of another rank, its result is merged into a sum in f32
 * (torch/distributed/tensor/experimental/_context_parallel/_attention.py). Where the sequence is
 * dealt out evenly, a step takes the early half of the keys or, if they come from a later rank, the
 * late half of the queries. The rank here is the last but one, which does most: all of the first
 * kind, and one of the second, whose result is in another order of its dimensions, so that it is
 * copied for the product that follows. */
#ifndef HB_SIM_EAGER_RING_H
#define HB_SIM_EAGER_RING_H

#include "sim/eager/ops.h"

/* Whether the output is copied before it is used. */
bool hb_ring_copies(const struct hb_sdpa *a);
/* In place of the kernel alone: the attention's output, and its log-sum-exp. */
void hb_ring_forward(struct hb_tape *t, const struct hb_sdpa *a, uint32_t *out_output,
                     uint32_t *out_lse);
struct hb_ring_sizes {
    int64_t q, kv; /* bytes of q, of k */
    int64_t ways;
    bool gathers, balanced;
};
/* The gradients of q, k, v. */
void hb_ring_backward(struct hb_tape *t, const struct hb_ring_sizes *s, uint32_t out[3]);

#endif
