/* How many devices would do where nothing fits: the smallest configuration is grown along each axis
 * of its mesh by doubling, and the first that fits is enough (fewer might be, with another form).
 */
#ifndef HB_SOLVER_REMEDY_H
#define HB_SOLVER_REMEDY_H

#include "models/spec.h"

struct hb_arena;
struct hb_device;

/* 0: none of up to `most_factor` times as many. */
int64_t hb_remedy_devices(struct hb_arena *arena, const struct hb_spec *smallest,
                          const struct hb_device *device, int64_t budget_bytes,
                          int64_t most_factor);

#endif
