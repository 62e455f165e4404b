/* The order in which XLA:TPU's memory scheduler leaves a step's updates and the copies of their
 * states between host and device: that of the step's graph. The latency-hiding scheduler then moves
 * the copies (sim/ir/copies.h). */
#ifndef HB_SIM_GRAPH_ROWS_H
#define HB_SIM_GRAPH_ROWS_H

#include "models/spec.h"

struct hb_arena;
struct hb_diag;

/* Fills in spec->copies, where there are any and it is not set. All steps of a cell have the same:
 * that of the cell with layers that keep nothing, runs of one block as one. */
bool hb_rows_find(struct hb_arena *arena, struct hb_diag *diag, struct hb_spec *spec);
/* The spec, or a copy that has them; null: it cannot be lowered. */
const struct hb_spec *hb_rows_spec(struct hb_arena *arena, struct hb_diag *diag,
                                   const struct hb_spec *spec);

#endif
