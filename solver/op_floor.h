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
 * touch; of these what a loop writes: an op of the ends may come before or after another (the
 * head's two products, which what goes to the host decides, seed 7001530), and is made again just
 * before its reader where memory is short (zeros of weights that nothing uses, seed 7015613). Where
 * a block's layers may be split into runs, each run has a part of them, padded in its own way, and
 * the parts are there together where all are added up around the loop over microbatches or, without
 * one, kept until the update: then they all are while the last run to come back runs its ops. So
 * too where the step is in an order of XLA's schedulers, which a policy decides (seeds 4644, 6593):
 * there a run's update may come before the next run, and without accumulation none is counted.
 * Where XLA:GPU may be short of memory the zeros that loops write into stand just before them, not
 * at the loss (test_spaces, seed 28717).
 *
 * And beside it values of the gradients that wait while it runs (op_waits.h), which are there then,
 * and are no operands of it, in all of the programs. */
#ifndef HB_SOLVER_OP_FLOOR_H
#define HB_SOLVER_OP_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

struct hb_arena;
struct hb_live;
struct hb_program;

struct hb_op_floor_ask {
    const struct hb_program *all;
    const struct hb_live *live; /* of its roots */
    uint32_t live_count;
    const bool *optional; /* by op of all: no such op */
    const bool *counts;   /* by op of all: whether it is asked about */
    bool split;           /* layers may be split into runs */
    bool lasting;         /* of gradients those alone that outlive their loop count ... */
    bool apart;           /* ... and not even these */
    bool late;            /* ... and not before the last loop: its zeros may stand just before it */
    bool waits;           /* values that wait count, too: none is made again for want of memory */
};

struct hb_op_floor;

/* In the arena. All that is asked about stays where it is. */
struct hb_op_floor *hb_op_floor_open(struct hb_arena *arena, const struct hb_op_floor_ask *ask);
/* Another of the programs. */
void hb_op_floor_join(struct hb_op_floor *s, const struct hb_program *p, const struct hb_live *live,
                      uint32_t live_count);
/* Ops that do not come to more than these bytes now never will: nothing more is asked of them. */
void hb_op_floor_forget(struct hb_op_floor *s, int64_t bytes);
/* By the programs that were joined. Each makes it less, or nothing; before the first it is no more
 * than a sum that is above. */
int64_t hb_op_floor_bytes(const struct hb_op_floor *s);

#endif
