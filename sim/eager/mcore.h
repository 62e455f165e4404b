/* Megatron-core's step on one rank of the pipeline, two times, as a program of storages: contiguous
 * parameter and gradient buffers, the optimizer's share of them, and the rank's microbatches in the
 * order of its schedule. What a layer keeps follows Transformer Engine's modules: the norm's input
 * and output, q, k, v, attention's output, the first product and the activation. */
#ifndef HB_SIM_EAGER_MCORE_H
#define HB_SIM_EAGER_MCORE_H

#include "models/spec.h"
#include "sim/eager/tape.h"

struct hb_short;

/* cut: null, or the program is a short one (short.h). */
void hb_mcore_lower(struct hb_tape *t, const struct hb_spec *spec, int64_t rank,
                    struct hb_short *cut);

#endif
