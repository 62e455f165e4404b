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
/* Whether iterations save the inputs of their layers. */
bool hb_pipeline_saves_inputs(const struct hb_lower *lo);
void hb_pipeline_leaves(struct hb_lower *lo, struct hb_pipeline *pl);
void hb_pipeline_build(struct hb_lower *lo, struct hb_pipeline *pl);
uint32_t hb_pipeline_forward(struct hb_lower *lo, struct hb_pipeline *pl, uint32_t x);
uint32_t hb_pipeline_backward(struct hb_lower *lo, struct hb_pipeline *pl, uint32_t grad);

#endif
