/* A short program with the same ends as a whole one, from which the whole one's memory is bounded
 * below without lowering it: of the layers only the first of each kind (block, checkpointing) and
 * the last ones are run; what the others add is known from those of their kind.
 *
 *   whole    first a a a a b b b b b last      short    first a b last
 *
 * A layer is the same list of ops wherever it stands, so it leaves the same storages for the
 * backward pass as the first of its kind does (rest), and the same sharded gradients. Wherever the
 * short program runs ops that the whole one has too, in the same order and with the same
 * neighbours, the whole one holds what the short one holds, plus
 *
 *   rest of each layer left out   between its forward and its backward pass
 *   its gradients                 from its backward pass to the update
 *
 * which spans of the short program say, op by op. Where the whole one may hold more than that
 * (prefetched neighbours of another kind, say) less is said: it is a bound. */
#ifndef HB_SIM_EAGER_SHORT_H
#define HB_SIM_EAGER_SHORT_H

#include "sim/eager/tape.h"

/* From this op to that of the next span the whole program holds so much more at least. */
struct hb_short_span {
    uint32_t first_op;
    int64_t rest_bytes; /* in the default stream's pool */
    int64_t grad_bytes; /* in the pool of reduced gradients */
};

struct hb_short {
    struct hb_short_span *spans;
    uint32_t count, cap;
};

/* From the next op of the tape on. */
void hb_short_mark(struct hb_short *s, struct hb_tape *t, int64_t rest_bytes, int64_t grad_bytes);

#endif
