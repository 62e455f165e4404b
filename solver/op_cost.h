/* What each op of a pair's first program costs for every number of steps of its group. */
#ifndef HB_SOLVER_OP_COST_H
#define HB_SOLVER_OP_COST_H

#include "sim/engine/cost.h"
#include "solver/sized.h"

struct hb_op_costs {
    int64_t *usual_ns;        /* by op: at half of the most steps; 0 where it is not known */
    const int64_t **by_steps; /* by op: the table where it follows the layers; else null */
};

void hb_op_costs_find(struct hb_arena *arena, struct hb_sized *sized,
                      const struct hb_device *device, struct hb_op_costs *out);
/* At n steps. */
int64_t hb_op_cost_at(const struct hb_op_costs *costs, uint32_t op, int64_t n);

#endif
