/* The step of a configuration: its program and its memory. With a pipeline of which each rank runs
 * a program of its own (compiler: torch) all are run, and the one that is asked for, or the
 * heaviest, is told. */
#ifndef HB_SIM_ENGINE_STEP_H
#define HB_SIM_ENGINE_STEP_H

#include "models/spec.h"
#include "sim/engine/run.h"

struct hb_diag;

/* False (with a message) if a size leaves the range of int64. spec has passed hb_spec_supported. */
bool hb_step_run(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                 struct hb_program *out_program, struct hb_memory *out_memory);

/* hb_link_lower, and anew where XLA:GPU begins with another order. */
bool hb_step_link(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                  struct hb_program *out);

/* The peak that hb_step_run tells, alone; as it says. */
bool hb_step_peak(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                  int64_t *out_bytes);

/* False (with a message) where all tensors together leave the range of sizes. */
bool hb_step_check_total(struct hb_diag *diag, const struct hb_program *p);

#endif
