/* A bound of the replay that adds up, so that most configurations need not be replayed: the replay
 * is a product of matrices of (max, +), and so the longest of all paths through them. Of one
 * configuration the longest path is found, which says at each place between two turns on which
 * stream it is; the path over the same streams is one through any other configuration, and each of
 * its parts adds to it what that part's matrices have there. */
#ifndef HB_SOLVER_SCREEN_H
#define HB_SOLVER_SCREEN_H

#include "solver/segment.h"

struct hb_screen;

/* The path of these parts; apart: through the turns alone (hb_replay_turns_ns). The screen lives in
 * the arena and takes more of it as others are asked for. */
struct hb_screen *hb_screen_open(struct hb_arena *arena, struct hb_replay *replay, bool apart,
                                 const struct hb_part *parts, uint32_t count);
/* The step, or the turns, of these parts take no less; INT64_MIN: nothing is known. */
int64_t hb_screen_ns(struct hb_screen *c, const struct hb_part *parts, uint32_t count);

#endif
