/* What is kept and what is made inside its reader: a policy that keeps a value which its readers
 * would make themselves (an activation, a product that is summed with the residual) has an op for
 * it and a copy; one that does not has neither, and the readers' ops do that work. A floor's
 * program keeps all that has a name; beside it is lowered the one that keeps only what would be a
 * buffer anyway, and of the forward pass each op counts as
 *
 *   0          where it is only in the first: what it does is in its reader
 *   merged     where it is in both: a reader with that work in it takes no longer than both apart,
 *              since work and traffic of the two add up under one roof and the value itself is
 *              neither written nor read.
 *
 * In the backward pass nothing is made inside a reader where all is kept: those ops stay. */
#ifndef HB_SOLVER_MERGED_H
#define HB_SOLVER_MERGED_H

#include "sim/ir/program.h"

struct hb_arena;
struct hb_device;

/* An op that is only in the first program. */
#define HB_MERGED_AWAY INT64_MIN

/* By op of `kept`: what is to be added to its cost, or HB_MERGED_AWAY. */
int64_t *hb_merged_find(struct hb_arena *arena, const struct hb_program *kept,
                        const struct hb_program *merged, const struct hb_device *device);
/* The cost with that change: never below 0. */
int64_t hb_merged_ns(int64_t ns, int64_t change_ns);

#endif
