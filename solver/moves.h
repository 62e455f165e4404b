/* What lies around a configuration of a cell in the runs of one of its blocks: a run, or two, under
 * other policies; steps that go from a run to the next, as they are or with one of the two under
 * another policy (which takes the room that the steps leave); a run that is cut in two, of which
 * one part or both have another policy, or neither has and another run does (two runs of one policy
 * have smaller stacks each, of which XLA keeps a second copy for a while). No run has fewer steps
 * than make a loop. */
#ifndef HB_SOLVER_MOVES_H
#define HB_SOLVER_MOVES_H

#include "solver/brute.h"

struct hb_moves {
    const struct hb_segment *segment;
    const struct hb_part *now; /* in the model's order */
    uint32_t count;
    uint32_t block;
    uint32_t most_parts; /* a run is cut below this many */
    int32_t least_steps; /* of a run that is cut or moved */
    uint64_t visited;    /* in the last walk */
};

/* For hb_brute_walk; context: the moves. */
void hb_moves_each(void *context, hb_brute_visit *visit, void *visit_context);

#endif
