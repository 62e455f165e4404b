/* What is left of a walk takes at least: the path (bound_ns[0] of a segment) of the blocks that are
 * not chosen yet, so that the walk need not go there. */
#ifndef HB_SOLVER_LEAST_H
#define HB_SOLVER_LEAST_H

#include "solver/segment.h"

struct hb_least {
    uint32_t item_count;
    int64_t *pair_ns; /* [one x items + other]: their block split between the two, anywhere */
    int64_t *rest_ns; /* by block, [blocks]: it and all after it, however they are chosen */
};

void hb_least_find(struct hb_arena *arena, const struct hb_segment *s, const struct hb_spec *spec,
                   struct hb_least *out);

#endif
