/* How long the ranks of a pipeline wait: their passes one after another, each as soon as what it
 * needs is made. */
#ifndef HB_SIM_EAGER_CLOCK_H
#define HB_SIM_EAGER_CLOCK_H

#include "sim/eager/actions.h"

/* Of a chunk: forwards, backwards to its input, to its weights. */
struct hb_pass_times {
    int64_t forward;
    int64_t input;
    int64_t weight;
    int64_t again; /* more for weights where they have a pass of their own */
};

/* From the first pass to the last of any rank, less what a rank works (`again` is no work); all
 * chunks alike, sends for nothing. -1: the passes wait for each other. */
int64_t hb_pipeline_bubble(struct hb_arena *arena, const struct hb_pipeline *p,
                           struct hb_pass_times t);

#endif
