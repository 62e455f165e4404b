/* How long a step takes at least: sums of terms of the ends and of each group, so that they add up
 * for any configuration. Three kinds of sums, of which the longest is the bound:
 *
 *   [0]                         a path that begins and ends on the compute stream
 *   [1 + stream]                all that one stream has to do
 *   [1 + HB_STREAM_COUNT + s]   [0] up to the last loop, then all that stream s does after it
 *
 * Proof. The engine starts an op at the latest of what it depends on: the op before it on its
 * stream, the writers of what it reads, and for ops beside the compute stream the edge, which is
 * when compute came to the start of this trip or to the end of the last loop (stream.h). So the end
 * of an op is the longest path to it, and every path is a lower bound. Between two edges take any
 * path from compute at the first edge to compute at the second: nothing there starts before the
 * first edge except by following compute's earlier work, so such paths may be put end to end, over
 * all the pieces of the step and all trips of its loops. That is [0]. Which path is taken is found
 * on the pair's first program; it stays a path when other groups' ops are put in between, since
 * those lengthen streams and cut no dependence. In a loop the path of four trips is found; where
 * it meets the same op in two trips running, what lies between can be repeated, once for each
 * further trip. [1 + s] holds since a stream runs one op at a time, the last kind since all of
 * them start after the edge that [0] reaches. Ops whose cost is not known for every number of
 * layers count as 0. In a floor (segment.h) [0] stays on the compute stream: for what it waits, and
 * where, follows from the policy (a gather that is exposed under one is hidden under another); and
 * of the last kind counts what is before and behind the last loop under any (last_loop.h). */
#ifndef HB_SOLVER_STEP_BOUND_H
#define HB_SOLVER_STEP_BOUND_H

#include "solver/segment.h"
#include "solver/sized.h"

/* Fills bound_ns of the segment and its items, which are there already. merged: of a floor, the
 * pair's first program without what readers make themselves (merged.h); else null. */
void hb_step_bounds(struct hb_arena *arena, struct hb_sized *sized,
                    const struct hb_segment_ask *ask, const struct hb_program *merged,
                    struct hb_segment *s);

#endif
