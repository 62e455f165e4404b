/* A weight at the moment of a product: cast, gathered, or read where it lies; and its gradient on
 * the way to where it is collected. */
#ifndef HB_SIM_IR_WEIGHT_H
#define HB_SIM_IR_WEIGHT_H

#include "sim/ir/lowering.h"

/* For an update whose gradient is split over data, once. */
void hb_weight_copy_param(struct hb_lower *lo, struct hb_leaf *l);
/* Copies of whole stacks in the compute dtype, made once before the loops (habit casts_hoisted). */
void hb_weight_hoist_casts(struct hb_lower *lo);
void hb_weight_cast_turned(struct hb_lower *lo);
/* Stacks of the cast weights of a group's forward pass, which its backward pass reads; it is done
 * with them. Not where casts are hoisted. */
void hb_weight_keep_casts(struct hb_lower *lo, uint32_t first, uint32_t end);
void hb_weight_drop_casts(struct hb_lower *lo, uint32_t first, uint32_t end);
/* Copies of stacks whose gathered dimension is not the first, for the backward gathers (habit
 * transposed_stacks): those due in this phase, before the loss or after it. */
void hb_weight_transpose_stacks(struct hb_lower *lo);
/* Whether the leaf's stack is copied in another layout for the backward pass. */
bool hb_weight_is_turned(const struct hb_lower *lo, const struct hb_leaf *l);
/* The buffer that a product with the leaf reads; may add a cast or a gather. The result is kept in
 * leaf.gathered until hb_weight_forget. */
uint32_t hb_weight_use(struct hb_lower *lo, uint32_t leaf);
/* The communication of a ring that sums a weight's gradient; nothing for other modes. */
void hb_weight_send_grad(struct hb_lower *lo, uint32_t leaf);
void hb_weight_forget(struct hb_lower *lo, uint32_t first, uint32_t end);
/* A weight (its shard in `part`) gathered into `whole`; padded: by way of a second whole one. */
void hb_weight_gather(struct hb_lower *lo, const char *name, uint32_t part, uint32_t whole);
/* How products with the leaf are done. */
enum hb_weight_mode hb_weight_mode(const struct hb_lower *lo, const struct hb_leaf *l);
/* Elements of the room in which a weight's ring collects its gradient, both ways round; 0: it has
 * no ring, or a short one. */
int64_t hb_weight_ring_room(const struct hb_lower *lo, const struct hb_leaf *l);
/* Whether each device has only a part of the sum over the batch. */
bool hb_weight_grad_partial(const struct hb_lower *lo, const struct hb_leaf *l);
/* Zeros for the stacked gradients of the leaves [first, end). */
void hb_weight_zero_grads(struct hb_lower *lo, uint32_t first, uint32_t end);
/* nan_to_num: zeros for each distinct shape of a stacked gradient (habit nan_zero_per_shape). */
void hb_weight_nan_zeros(struct hb_lower *lo);
/* Once all gradients are there. */
void hb_weight_drop_nan_zeros(struct hb_lower *lo);
/* In which dtype the gradient of a leaf is collected. */
enum hb_dtype hb_weight_grad_dtype(const struct hb_lower *lo);
enum hb_tiling hb_weight_grad_tiling(const struct hb_lower *lo, const struct hb_leaf *l);
/* Weights gathered once for a whole loop, the compute dtype's stack or that of one repeat; their
 * gradients collected as whole, then summed and split. */
void hb_weight_gather_stacks(struct hb_lower *lo, uint32_t first, uint32_t end, bool one_repeat);
void hb_weight_whole_grads(struct hb_lower *lo, uint32_t first, uint32_t end, bool one_repeat);
void hb_weight_scatter_grads(struct hb_lower *lo, uint32_t first, uint32_t end);
/* Gathers of one weight after another, padded sums or late ones. */
bool hb_weight_gathers_apart(const struct hb_lower *lo);
/* Adds a microbatch's gradients to their accumulators: those made, or all that are not added. */
void hb_weight_accumulate(struct hb_lower *lo, bool made);
/* Sums the whole gradient `full` over the devices and adds it to where it is collected. */
void hb_weight_reduce_grad(struct hb_lower *lo, uint32_t leaf, uint32_t full);
/* Whether each device's part is all that there is of a gradient's sum: on v5e where the last
 * dimension divides into windows, but not over all of a square slice, where the whole gradient is
 * summed, cast, in another place (8 layers of 4,096, fsdp 64 of 8x8 and 256 of 16x16: all-reduce
 * bf16[4096,32000] for the head; fsdp 128 of 8x16, fsdp 64 and 32 beside data 2, 16 beside 4: none
 * as wide. Over 8x16 with 250 and 1188 times 128 words none, with 122 and 1187 times). */
bool hb_weight_sums_own(const struct hb_lower *lo, int64_t width);
/* Gathers that are neither padded, late nor beside products; whether each device sums its own part
 * of the head's gradient there. */
bool hb_weight_gathers_plain(const struct hb_lower *lo);
/* Late ones, where another axis over the batch stands beside fsdp. */
bool hb_weight_late_beside(const struct hb_lower *lo);
bool hb_weight_head_scattered(const struct hb_lower *lo);
/* The same in two steps: a sum that is whole, and each device's part of it. */
uint32_t hb_weight_sum_whole(struct hb_lower *lo, uint32_t leaf, uint32_t full);

#endif
