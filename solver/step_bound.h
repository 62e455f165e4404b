/* How long a step takes at least, as sums of terms of the ends and of each group. */
#ifndef HB_SOLVER_STEP_BOUND_H
#define HB_SOLVER_STEP_BOUND_H

#include "solver/segment.h"

struct hb_step_ask {
    const struct hb_outline *outline;
    const struct hb_device *device;
    const int64_t *outer; /* by steps: trips of outer and inner loops */
    const int64_t *inner;
};

/* Fills bound_ns of the segment and its items, whose count is set. */
void hb_step_bounds(struct hb_arena *arena, const struct hb_step_ask *ask, struct hb_segment *s);

#endif
