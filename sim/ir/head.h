/* How the head's weight is read and when its gradient is made: at once beside the logits, or after
 * the layers' backward pass, so that logits (or their gradient) wait through it. Answers follow
 * from sizes and habits; ends.c acts on them. */
#ifndef HB_SIM_IR_HEAD_H
#define HB_SIM_IR_HEAD_H

#include "sim/ir/lowering.h"

/* Whether fsdp splits it; whether its products then go round in rings, and in short ones; whether
 * each stage of a pipeline makes the gradient of one of the parts. */
bool hb_head_split(const struct hb_lower *lo);
/* Of a chunk: a device's own, and on all devices of fsdp. */
int64_t hb_head_own_tokens(const struct hb_lower *lo);
int64_t hb_head_tokens(const struct hb_lower *lo);
bool hb_head_ring(const struct hb_lower *lo);
/* In rings of five ways and more, part by part. */
bool hb_head_goes_round(const struct hb_lower *lo);
bool hb_head_grad_staged(const struct hb_lower *lo);
/* MaxText's loss: a backward rule of its own; and, outside of pipelines, its habits of waiting. */
bool hb_head_own_loss(const struct hb_lower *lo);
bool hb_head_own_rule(const struct hb_lower *lo);
/* The gradient is made after the layers' backward pass. */
bool hb_head_waits(const struct hb_lower *lo);
/* Post-order: its accumulators come as late as it does. */
bool hb_head_post_order(const struct hb_lower *lo);
/* Where depth-first order has the labels' logits last: of one sequence, on v5p, beside tensor. */
bool hb_head_label_stays(const struct hb_lower *lo);
/* What then waits: the logits and their gradient; its bf16 copy alone. */
bool hb_head_label_over_data(const struct hb_lower *lo);
/* Its ring comes before the gradient of its input; whether the labels' logits come behind that. */
bool hb_head_ring_first(const struct hb_lower *lo);
bool hb_head_label_behind(const struct hb_lower *lo);
bool hb_head_both_wait(const struct hb_lower *lo);
bool hb_head_copy_waits(const struct hb_lower *lo);
/* It is made at once, but the logits wait until the labels' own are taken for the loss. */
bool hb_head_label_waits(const struct hb_lower *lo);
/* It is made at once, but summed over the devices after them. */
bool hb_head_sum_waits(const struct hb_lower *lo);
/* Made and summed before that of its input (v5e). */
bool hb_head_sum_beside(const struct hb_lower *lo);
/* In either case the f32 logits wait for the layers. */
bool hb_head_logits_beside(const struct hb_lower *lo);
/* It is made after them from logits that are made once more. */
bool hb_head_logits_again(const struct hb_lower *lo);
/* What its ring collects has room as soon as there can be (v5e). */
bool hb_head_room_early(const struct hb_lower *lo);
/* Whether the part of the features that a ring's product takes at a time is whole lanes. */
bool hb_head_parts_lie(const struct hb_lower *lo);
/* All of it at once: over more than 16 devices. */
bool hb_head_rooms_at_once(const struct hb_lower *lo);
/* Where a whole copy of it is fetched: between layers and loss, or before the layers. */
bool hb_head_gathered_first(const struct hb_lower *lo);

#endif
