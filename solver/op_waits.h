/* Values that wait while an op runs, whatever the policy and whatever the order of the schedule.
 *
 *   A writes v ... t ... B reads v,    t follows from A, and B from t
 *
 * All three are ops of every policy in one trip of a loop over layers, in the backward pass: where
 * t needs what comes of A, through ops of every policy alone, it runs behind A in any schedule, and
 * where B needs what comes of t it runs behind that. What a policy keeps, moves or makes again are
 * values of the forward pass; what lies between ops of the gradients it does not touch. So v is
 * there while t runs, unless it is made again itself (again.h), which is for who asks to know.
 *
 * XLA:CUDA's experts have most of it: tokens and the outputs' gradient come spread by expert out of
 * one op (A), of the latter follow the gradients of gate and up, spread by another (t), and of
 * these and the tokens the weights' gradients (B): twice 56 GiB beside t's three of 16 in
 * DeepSeek-V3 over 2,048 devices. */
#ifndef HB_SOLVER_OP_WAITS_H
#define HB_SOLVER_OP_WAITS_H

#include <stdbool.h>
#include <stdint.h>

struct hb_arena;
struct hb_live;
struct hb_program;

struct hb_op_wait {
    uint32_t op;  /* t */
    uint32_t buf; /* v, a root; t does not touch it */
};

/* By op; how many. live: of the program's roots; optional: by op, of no policy (segment.h). */
uint32_t hb_op_waits_find(struct hb_arena *arena, const struct hb_program *p,
                          const struct hb_live *live, uint32_t live_count, const bool *optional,
                          struct hb_op_wait **out);

#endif
