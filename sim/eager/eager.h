/* A step of an eager framework (torchtitan, Megatron, FSDP1) as a program for its time: one
 * device's ops in the order in which the host issues them, for one stage of the pipeline. Its
 * buffers carry who waits for whom and no sizes, so that it says nothing about memory. What a key
 * means is in models/schema_table.c; this is the arithmetic, the traffic of each kernel, and the
 * collectives.
 *
 *   stage ─► microbatches ─► layers (a loop) ─► pieces of a layer: eager_layer.h
 *         ─► filling and draining of the pipeline, chunk by chunk
 *         ─► reduction of gradients, update, gather of parameters
 *
 * Products and attention count as everywhere; products of the filling count too, as the device
 * stands still for as long as another stage needs for them. */
#ifndef HB_SIM_EAGER_EAGER_H
#define HB_SIM_EAGER_EAGER_H

#include "models/spec.h"
#include "sim/ir/program.h"

void hb_eager_lower(struct hb_arena *arena, const struct hb_spec *spec, struct hb_program *out);

#endif
