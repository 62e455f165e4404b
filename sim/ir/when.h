/* The place of a weight's gradient among a layer's backward products. */
#ifndef HB_SIM_IR_WHEN_H
#define HB_SIM_IR_WHEN_H

#include "sim/ir/body.h"

enum hb_when {
    HB_WHEN_FIRST, /* before the input's gradient, with its siblings */
    HB_WHEN_AFTER, /* after it */
    HB_WHEN_LATE   /* at the end of the layer, or of all layers */
};

enum hb_when hb_body_when(const struct hb_body *b, const struct hb_step_op *s);

/* CUDA hides the exchanges of a residual that is split over tensor behind weight gradients, where
 * attention is a kernel: all come after the last gradient through a weight, and the parts of an
 * input's gradient are added at once (70B,f64t4,lin,spres: three bf16[16384,8192] and their sum
 * from 364 to 370, four bf16[4,4096,7168] and the gathered gradients to 377 and 394;
 * 8B64/fsdp=16,tp=4, sp_residual=True and qwen32,f16t4 the same; rnd/044, whose scores are naive,
 * not). */
bool hb_body_ends_late(const struct hb_body *b);

/* Whether every reader of the step's results has run its backward pass, the last being step i. */
bool hb_body_readers_done(const struct hb_body *b, const struct hb_step_op *s, uint32_t i);

/* Whether the gradient of the sum that the step reads is made again by a layer's last fusion. */
bool hb_body_sum_remade(const struct hb_body *b, const struct hb_step_op *s);

#endif
