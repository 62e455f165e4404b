/* The search of plan for compiler torch. A configuration's step is priced exactly by a program of
 * some hundred ops, so that no bound of it is needed; its memory costs a hundred times as much and
 * is bounded by the floor of its heaviest rank (sim/engine/floor.h). All are priced; they are then
 * looked at from the fastest on:
 *
 *   floor above the budget    excluded: no run is below it
 *   else                      run by the engine, all ranks; the first that fits is the plan
 *
 * Whatever comes after it is slower: the plan is optimal, with gap 0. For the smallest peak the
 * floors themselves are the order. */
#ifndef HB_SOLVER_TORCH_PLAN_H
#define HB_SOLVER_TORCH_PLAN_H

#include "solver/plan.h"

/* As hb_plan_find. */
bool hb_torch_plan_find(struct hb_arena *arena, const struct hb_plan_ask *ask, struct hb_plan *out);
/* As hb_plan_exhaust: each configuration is run. */
bool hb_torch_plan_exhaust(struct hb_arena *arena, const struct hb_plan_ask *ask,
                           const struct hb_plan *plan, double most, struct hb_candidate *out_best,
                           bool *out_found);

#endif
