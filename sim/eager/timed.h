/* The program of a step for its time alone: what hb_lower makes where memory can be told, and
 * beyond that steps whose memory nobody has worked out yet (eager frameworks, 8-bit products,
 * multi-token prediction). Never ask such a program for memory: see hb_spec_supported. */
#ifndef HB_SIM_EAGER_TIMED_H
#define HB_SIM_EAGER_TIMED_H

#include "models/spec.h"
#include "sim/ir/program.h"

struct hb_diag;

/* Of the products of layers, 8-bit and 4-bit ones included. */
enum hb_dtype hb_timed_linear_dtype(const struct hb_precision *precision);

/* False (with a message) if a size leaves the range of int64. spec has passed hb_spec_timed. */
bool hb_timed_lower(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                    struct hb_program *out);

#endif
