/* Cells of the search, and the configurations that are taken out of them by the walk (brute.h). */
#ifndef HB_SOLVER_CELLS_H
#define HB_SOLVER_CELLS_H

#include "solver/search.h"

/* Into the queue, without a floor of its own yet. */
void hb_cells_put(struct hb_search *s, const struct hb_open_cell *cell);
/* Its policies are summed up; an integer program raises its bound, or the walk begins. */
void hb_cells_open(struct hb_search *s, uint32_t index);
/* The next best configurations of an open cell. */
void hb_cells_walk(struct hb_search *s, uint32_t index);
/* Runs the best configurations of the cell until one fits: that is *out, and the incumbent where it
 * is better. It has to be one of the space, which those are not that the segment's check finds odd,
 * if nothing else is looked for: only plans that are polished may come from anywhere. */
bool hb_cells_dive(struct hb_search *s, uint32_t cell, struct hb_choice *out);
/* Runs a choice; false: it does not fit. */
bool hb_cells_try(struct hb_search *s, struct hb_choice *c);
/* A configuration that was run and fits, whose runs stay, into the queue; the incumbent where it is
 * better. */
void hb_cells_put_run(struct hb_search *s, const struct hb_choice *c);
/* Runs a choice, and puts it back if it fits. */
void hb_cells_run(struct hb_search *s, uint32_t index);
/* The segments that were kept are given back. */
void hb_cells_forget(struct hb_search *s);

#endif
