/* How long a configuration takes at least, all but exactly: its ops are run on the streams of the
 * engine, group by group, on the one program in which every choice stands (segment.h). What a
 * group's turn does to the times at which the streams are free is a matrix of (max, +), made once
 * for each number of steps; a configuration is a product of a few of them with a vector:
 *
 *   x = (when each stream is free, when compute came to the last edge of a loop)
 *   x'[i] = max over j of (m[i][j] + x[j]),   m[i][j] = what i comes to where only j is not free
 *
 * Proof that this is a lower bound. The engine starts an op at the maximum of what it depends on
 * (stream.h). Here it depends on the same, but for writers in another slot or another group's turn,
 * which are left out: a maximum of less. A loop's trips are run until each op's end has moved by
 * the same time twice over the same number of trips; the trip is a maximum of sums and therefore
 * convex in the times, so from there on each end moves at least as far each time (timing.c), and as
 * far is taken. Loops that have loops in them are run trip by trip. */
#ifndef HB_SOLVER_REPLAY_H
#define HB_SOLVER_REPLAY_H

#include "solver/op_cost.h"
#include "solver/segment.h"

/* What a segment keeps for it. */
struct hb_timed {
    const struct hb_program *p;
    const struct hb_outline *outline;
    const struct hb_sized *sized;
    struct hb_op_costs costs;
};

struct hb_replay;

/* Lives in the arena, and takes more of it as matrices are wanted. */
struct hb_replay *hb_replay_open(struct hb_arena *arena, const struct hb_segment *s);
/* The step of these parts takes no less. */
int64_t hb_replay_bound_ns(struct hb_replay *r, const struct hb_part *parts, uint32_t count);
/* Of that, what is left where nothing else holds the turns up: in each slot of turns, from
 * compute's coming to it to compute's leaving it. Like the paths of step_bound.h these may be put
 * end to end, and with what the ends have to do on the compute stream. */
int64_t hb_replay_turns_ns(struct hb_replay *r, const struct hb_part *parts, uint32_t count);

#endif
