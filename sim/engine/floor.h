/* What a step of compiler torch takes at least, without running all of it: the planner's bound. */
#ifndef HB_SIM_ENGINE_FLOOR_H
#define HB_SIM_ENGINE_FLOOR_H

#include <stdint.h>

#include "models/spec.h"

struct hb_arena;

/* The peak that hb_step_run tells is no lower. Ranks of a pipeline are looked at from the first,
 * until one is above most_bytes. INT64_MAX: a size leaves the range. */
int64_t hb_floor_bytes(struct hb_arena *scratch, const struct hb_spec *spec, int64_t most_bytes);

#endif
