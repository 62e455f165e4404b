/* What of a step is before the end of the layers' last loop, and what behind it, whatever the
 * policy. A policy moves ops of the ends: where layers fetch from the host, say, the head's
 * gradient is made behind them all, and the states that its update sends back are on their way
 * sooner or later than those of others. What the layers read, and what follows from what they made,
 * stays where it is:
 *
 *   before   the layers' loops, all of a loop over microbatches around them, and every op outside
 *            that one of these depends on
 *   behind   ops outside of loops that depend on the layers' backward pass, or on that loop
 *
 * An op behind may depend on the first of several loops of the backward pass alone (the update of
 * the last block). It follows the last of them as well: orders in which it does not are bound each
 * on its own (bound.h). */
#ifndef HB_SOLVER_LAST_LOOP_H
#define HB_SOLVER_LAST_LOOP_H

#include "solver/outline.h"

struct hb_arena;

struct hb_last_loop {
    bool *before; /* by op */
    bool *behind;
};

void hb_last_loop_find(struct hb_arena *arena, const struct hb_outline *o,
                       struct hb_last_loop *out);

#endif
