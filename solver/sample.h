/* A sample of the configurations that a plan was chosen from, each run by the engine, whether it
 * fits or not: what pictures of the space show. */
#ifndef HB_SOLVER_SAMPLE_H
#define HB_SOLVER_SAMPLE_H

#include "solver/plan.h"

/* At most `most` configurations (their value, bounds and live bytes are 0), and how many there are:
 * the plan's own cell under each policy of its menus, then evenly chosen cells under a few. The
 * same for the same plan. */
uint32_t hb_plan_sample(struct hb_arena *arena, const struct hb_plan_ask *ask,
                        const struct hb_plan *plan, uint32_t most, struct hb_candidate **out);

#endif
