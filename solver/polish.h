/* A local search around a configuration of a cell that was run and fits: of each of its blocks the
 * policies that differ from one of its own in one tensor (saved, offloaded, made again), then in
 * two, with the block whole or split anywhere between any two of them; then its runs with one of
 * these in place of one or two of their own, steps that go from a run to the next, and a run cut in
 * two (moves.h), up to three runs more than blocks. The fast path prices them all, the engine runs
 * the best; what is better takes the place of the first, until nothing is. What the prices may not
 * know the engine runs each by itself (bare.h). Policies that are not in the plan's menus are
 * appended to them, so that indices stay. */
#ifndef HB_SOLVER_POLISH_H
#define HB_SOLVER_POLISH_H

#include "solver/search.h"

/* One run more, which somebody has to write down, is to make a step faster by this part. */
#define HB_POLISH_WORTH_A_RUN 0.001

/* From choice `index`, which was run. What is better goes into the queue as a configuration that
 * was run; true: there is one. Not from where a search in that cell came before, or no further. */
bool hb_polish(struct hb_search *s, uint32_t index);
/* The same with runs that are shorter than those that have a price (sized.h), around what is the
 * best of all otherwise, where least time is looked for. Once for each value. */
bool hb_polish_short(struct hb_search *s, uint32_t index);

#endif
