/* The vmapped (`spmd`) pipeline: one scan over iterations; in each the stages run side by side on
 * their devices, and the state moves one stage on.
 *
 *   iterations = microbatches x repeats + stages - 1
 *   state [mb, S, d] on each stage; inputs and outputs of all iterations are stacks. */
#ifndef HB_SIM_IR_PIPELINE_H
#define HB_SIM_IR_PIPELINE_H

#include "sim/ir/stack.h"

struct hb_pipeline {
    struct hb_group *groups; /* one for each block (scanned stage) or each layer of a stage */
    uint32_t count, cap;
    int64_t iterations;
    int64_t batch;        /* sequences of one microbatch on one device */
    uint32_t iter_stack;  /* inputs of the iterations, where those are rematerialised; HB_NONE */
    uint32_t layer_stack; /* inputs of the layers, where an iteration saves them; HB_NONE */
    uint32_t inputs;      /* microbatches in order */
    uint32_t input_grads; /* gradients of the iterations' inputs; HB_NONE before they exist */
    uint32_t state;
};

bool hb_pipeline_wanted(const struct hb_lower *lo);
/* MaxText's of one repeat, as many microbatches as stages, and layers side by side: the table's
 * cast, the layers' casts and the accumulators come before the lookup (llama3-8b/pp8_lps4:
 * bf16[128256,4096] from 228 to 421, f32[1,4096,14336] from 410 on; pp4_lps8 and pp2_lps16 have
 * them before the loop, too; not with 16 microbatches, scanned, or with several repeats). */
bool hb_pipeline_even(const struct hb_lower *lo);
/* Whether iterations save the inputs of their layers. */
bool hb_pipeline_saves_inputs(const struct hb_lower *lo);
/* More layers side by side than two, of MaxText's over fsdp: all weights are gathered as the
 * iteration is made again and stay to each layer's backward pass; of what is made again the
 * kernel's results, the sums after attention and one tensor of the hidden width wait, a layer's own
 * input is read in its stack (llama3-8b/pp4_lps8 at the last layer's backward pass: 23 of 24
 * bf16[1,4096,14336], of the other seven layers seven bf16[4,4096,14336]). */
bool hb_pipeline_wide(const struct hb_lower *lo, const struct hb_pipeline *pl);
/* Accumulators of the stage's gradients, where they are not there. */
void hb_pipeline_zero(struct hb_lower *lo, const struct hb_pipeline *pl);
void hb_pipeline_leaves(struct hb_lower *lo, struct hb_pipeline *pl);
void hb_pipeline_build(struct hb_lower *lo, struct hb_pipeline *pl);
uint32_t hb_pipeline_forward(struct hb_lower *lo, struct hb_pipeline *pl, uint32_t x);
uint32_t hb_pipeline_backward(struct hb_lower *lo, struct hb_pipeline *pl, uint32_t grad);

#endif
