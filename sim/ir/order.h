/* Where the compiler's scheduler puts what could stand in several places: zeros of accumulators,
 * a weight gathered ahead of its product. Answers are derived from sizes, by habit. */
#ifndef HB_SIM_IR_ORDER_H
#define HB_SIM_IR_ORDER_H

#include "sim/ir/lowering.h"

enum { HB_HOST_DEVICES = 8 }; /* of one host */

enum hb_zeros_at {
    HB_ZEROS_FIRST,       /* before the forward pass */
    HB_ZEROS_BEFORE_LOSS, /* between the layers and the loss */
    HB_ZEROS_BESIDE_HEAD, /* between the gradient of the logits and that of the head */
    HB_ZEROS_LATE         /* where the backward pass first adds to them */
};

/* Zeros of the stacked gradients. */
enum hb_zeros_at hb_order_zeros(const struct hb_lower *lo);
/* Makes those that come there. */
void hb_order_put_zeros(struct hb_lower *lo, enum hb_zeros_at at);
/* Gradients of the stacked weights, together: what zeros are weighed by. */
int64_t hb_order_grad_bytes(const struct hb_lower *lo);
/* What a layer keeps of a token, its input too, in elements of two bytes. */
int64_t hb_order_kept_width(const struct hb_lower *lo, const struct hb_block *b);
/* Whether the head gathered for the backward product stands already beside both logits. */
bool hb_order_head_early(const struct hb_lower *lo);
/* Whether the head's product is in the compute dtype, and its gradients with it. */
bool hb_order_dot_narrow(const struct hb_lower *lo);
/* Whether the head's gradient is made after the layers' backward pass. */
bool hb_order_head_waits(const struct hb_lower *lo);
/* The rows of the table's gradient are scattered where they are, into a whole table: fewer words
 * are summed than rows gathered (qwen30b, H100, fsdp 8 with expert 8, 2048 tokens each: 131,072
 * rows come to all, all-gather-start.19, for 151,936 words; with fewer words not). */
bool hb_order_rows_stay(const struct hb_lower *lo);
/* Words that each device scatters rows into, which are summed over the tensor axis: of as many
 * parts as rows are split into over fsdp, or over both where the residual is split, unless all
 * devices' rows are fewer than words (H100, 90 of 92 steps: 32,768 rows over fsdp 4 and tensor 2
 * into 32,768 words, not 36,864; over 2 and 4, two of four parts of 21,333, not 22,528, with a
 * split residual all of 30,720; over data 4 and tensor 2 their own; so beside an expert axis). */
int64_t hb_order_words(const struct hb_lower *lo);
/* Another axis over the batch stands beside fsdp. */
bool hb_order_rows_beside(const struct hb_lower *lo);

/* Whether XLA takes the depth-first sequence: what goes back through a layer first, its weights'
 * gradients at the layer's end, the head's at the end of all. */
bool hb_order_depth(const struct hb_lower *lo);

#endif
