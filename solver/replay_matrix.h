/* The matrices of a replay: private to replay.c and screen.c. */
#ifndef HB_SOLVER_REPLAY_MATRIX_H
#define HB_SOLVER_REPLAY_MATRIX_H

#include "solver/replay.h"

/* When each stream is free, and when compute came to the last edge of a loop. */
enum { HB_REPLAY_EDGE = HB_STREAM_COUNT, HB_REPLAY_TIMES };

/* Before anything; sums with it stay far below 0. */
#define HB_REPLAY_NEVER (INT64_MIN / 4)

/* By column. */
struct hb_matrix_entry {
    int to;
    int from;
    int64_t ns;
};

struct hb_matrix {
    uint32_t count;
    bool moved[HB_REPLAY_TIMES]; /* others stay as they are, and have no entries */
    struct hb_matrix_entry entries[];
};

/* What an item's turn in a slot does, at so many steps, or a slot of the ends. */
const struct hb_matrix *hb_replay_turn(struct hb_replay *r, uint32_t slot, uint32_t item,
                                       int32_t steps);
/* Of that matrix one entry, which costs less to find; HB_REPLAY_NEVER: there is none. */
int64_t hb_replay_turn_ns(struct hb_replay *r, const struct hb_part *part, uint32_t slot, int from,
                          int to);
const struct hb_matrix *hb_replay_ends(struct hb_replay *r, uint32_t slot);
const struct hb_segment *hb_replay_segment(const struct hb_replay *r);
/* How often the loops over several groups around a slot run. */
int64_t hb_replay_times(const struct hb_replay *r, uint32_t slot);
/* The loop over several groups that begins with the slot; HB_NONE. */
uint32_t hb_replay_shared(const struct hb_replay *r, uint32_t slot);

#endif
