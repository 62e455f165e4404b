/* A step of an eager framework as a program of storages under its caching allocator: two steps, op
 * by op; or a short program with the same ends, to bound its memory by (short.h). */
#ifndef HB_SIM_EAGER_MEMORY_H
#define HB_SIM_EAGER_MEMORY_H

#include "models/spec.h"
#include "sim/ir/program.h"

struct hb_diag;

struct hb_short;

/* The program of a step whose memory is asked: with compiler torch that of one rank of the
 * pipeline, else hb_lower's. False (with a message) if a size leaves the range of int64. spec has
 * passed hb_spec_supported. */
bool hb_step_lower(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                   int64_t rank, struct hb_program *out);
/* The same shortened, of compiler torch alone. */
bool hb_step_lower_short(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                         int64_t rank, struct hb_program *out, struct hb_short *out_short);
/* Ranks that run programs of their own. */
int64_t hb_step_ranks(const struct hb_spec *spec);

#endif
