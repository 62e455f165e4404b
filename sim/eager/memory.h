/* A step of an eager framework as a program of storages under its caching allocator: two steps, op
 * by op. Sizes of one device of the heaviest kind. */
#ifndef HB_SIM_EAGER_MEMORY_H
#define HB_SIM_EAGER_MEMORY_H

#include "models/spec.h"
#include "sim/ir/program.h"

struct hb_diag;

/* False (with a message) if a size leaves the range of int64. spec has passed hb_spec_supported. */
/* The program of a step whose memory is asked: this one with compiler torch, else hb_lower's. */
bool hb_step_lower(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                   struct hb_program *out);
bool hb_eager_memory(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                     struct hb_program *out);

#endif
