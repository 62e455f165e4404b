/* A configuration that fits, early: before menus are made, and whatever the size of the space. The
 * nodes are taken by what the linear program over all policies says of them (whole.h), of the best
 * a few cells by the same, and of each of these a ladder of policies from what keeps all to what
 * keeps nothing, split anywhere between two rungs, is priced; the engine runs the best until one
 * fits. What it takes is the incumbent from then on: nodes and cells above it are not looked at.
 * For that the best of the first few nodes is dived into before the others are looked at. Stages of
 * a pipeline, which have no such prices, are run rung by rung. */
#ifndef HB_SOLVER_DIVE_H
#define HB_SOLVER_DIVE_H

#include "solver/search.h"

/* Of the nodes that were put: sets s->dives, and the incumbent where something fits. */
void hb_dive(struct hb_search *s);
/* What was found, into the queue; of the menus that the plan has by now, with what those have not
 * at their end. In the best of those cells the menus' best is looked for, and what lies around the
 * best of all. */
void hb_dive_again(struct hb_search *s);

#endif
