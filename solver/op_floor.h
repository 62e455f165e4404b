/* What lives at once beside what is fixed, whatever the policy: while an op of every policy runs,
 * all that it reads and writes is there.
 *
 * It is read off programs of one cell: one that keeps all that has a name, whose ops every policy
 * has, and others that keep less. Each operand of such an op is, under any policy, one that one of
 * the programs has at the same place of the op's list: the least of these counts. Of a stack one
 * layer's part counts; nothing counts that lies in an argument or an output, or on the host; an op
 * that has another number of operands in one of the programs tells nothing. Ops are the same by
 * phase and name; where several are, each has the least of all.
 *
 * Beside it gradients of weights that live then in all of the programs, which policies do not
 * touch. Where a block's layers may be split into runs, each run has a part of them, padded in its
 * own way, and the parts
 * are there together where all are added up around the loop over microbatches or, without one, kept
 * until the update: then they all are while the last run to come back runs its ops. So too where
 * the step is in an order of XLA's schedulers, which a policy decides (seeds 4644, 6593): there a
 * run's update may come before the next run, and without accumulation none is counted. */
#ifndef HB_SOLVER_OP_FLOOR_H
#define HB_SOLVER_OP_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

struct hb_arena;
struct hb_program;

struct hb_op_floor_ask {
    const struct hb_program *all;
    const bool *optional; /* by op of all: no such op */
    const bool *counts;   /* by op of all: whether it is asked about */
    bool split;           /* layers may be split into runs */
    bool lasting;         /* of gradients those alone that outlive their loop count ... */
    bool apart;           /* ... and not even these */
    bool accumulates;     /* over microbatches */
    const struct hb_program *others; /* without them the answer is at least what it is with them */
    uint32_t other_count;
};

int64_t hb_op_floor_bytes(struct hb_arena *scratch, const struct hb_op_floor_ask *ask);

#endif
