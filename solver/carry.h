/* What was found around the best of a cell, in other cells: its runs as they are, and each of its
 * policies for all of a model's one block. A local search ends where it began, and which cell of
 * two it began in is decided by a thousandth. */
#ifndef HB_SOLVER_CARRY_H
#define HB_SOLVER_CARRY_H

#include "solver/search.h"

/* Of a choice that was run and fits, in the cells where something else does that is near and, where
 * no price says what fits (experts' products that are spread, beyond the compiler's share), in
 * those that differ in a factor of two between two axes of the mesh, or in accumulation. What is
 * better than the best of its cell goes into the queue as a configuration that was run; true: one
 * is better than this choice. */
bool hb_carry(struct hb_search *s, uint32_t index);

#endif
