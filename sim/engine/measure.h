/* One figure of a configuration, whatever its compiler: what searches ask many times. */
#ifndef HB_SIM_ENGINE_MEASURE_H
#define HB_SIM_ENGINE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "models/spec.h"

struct hb_arena;
struct hb_device;
struct hb_diag;

/* spec has passed hb_spec_supported. False: a size leaves the range. */
bool hb_measure_peak(struct hb_arena *scratch, const struct hb_spec *spec, int64_t *out_bytes);
bool hb_measure_step(struct hb_arena *scratch, const struct hb_spec *spec,
                     const struct hb_device *device, int64_t *out_ns);
/* Both, of one lowering where one does; what is wrong is in diag. */
bool hb_measure_both(struct hb_arena *scratch, struct hb_diag *diag, const struct hb_spec *spec,
                     const struct hb_device *device, int64_t *out_bytes, int64_t *out_ns);

#endif
