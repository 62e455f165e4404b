/* When the ops of a program of storages ran, where another program told how long the step takes. */
#ifndef HB_SIM_ENGINE_DATING_H
#define HB_SIM_ENGINE_DATING_H

#include "sim/engine/run.h"

/* Lays the ops of the last step of p out over timing->step_ns, each in proportion to what it would
 * take alone; spans and starts of timing become theirs. False: one takes HB_COST_MAX_NS. */
bool hb_dating_make(struct hb_arena *arena, const struct hb_program *p,
                    const struct hb_device *device, struct hb_timing *timing);

#endif
