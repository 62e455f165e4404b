/* Whose is what in a lowered program: which ops and buffers belong to which group of layers, and in
 * what order the groups take their turns. Found by comparing two programs that differ in nothing
 * but the number of layers of each group, so that nothing about the lowering is written here a
 * second time: what grows with a group's layers is the group's.
 *
 *   ops:    casts g1 g2 | embed | forward g1 g2 | loss | backward g2 g1 | scatter | update g1 g2
 *   slots:     TURNS    | ENDS  |     TURNS     | ENDS |     TURNS      |  ENDS   |    TURNS     */
#ifndef HB_SOLVER_OUTLINE_H
#define HB_SOLVER_OUTLINE_H

#include <stddef.h>

#include "sim/ir/program.h"

struct hb_arena;

/* Owner of what belongs to no group: embedding, loss, inputs. */
#define HB_ENDS (UINT32_MAX - 1)

/* How many trips a group's loops make, in the two programs that are compared. */
struct hb_outline_pair {
    const struct hb_program *a;
    const struct hb_program *b;
    uint32_t group_count;   /* >= 2 */
    int64_t inner_a;        /* of each group's (inner) loop */
    const int64_t *inner_b; /* by group; all different, none equal to inner_a */
    int64_t outer_a;        /* of the outer loops of nested scans; 0: none */
    int64_t outer_b;
    bool sums_alone; /* turns are not put together anew: which of two an op is in does not matter */
};

/* What a dimension, or the trips of a loop, follow. */
enum hb_follow { HB_FOLLOW_NOTHING, HB_FOLLOW_OUTER, HB_FOLLOW_INNER };

/* A run of ops: of the ends, or of the groups in turn. */
struct hb_slot {
    uint32_t first_op;
    uint32_t end_op;
    bool turns;
    bool rising; /* turns in the order of the model's layers, else in reverse */
};

/* A root buffer's life. */
struct hb_outline_root {
    uint32_t buf;
    uint32_t owner;
    int32_t start; /* as in hb_live */
    int32_t end;
};

struct hb_outline {
    struct hb_outline_pair pair;
    uint32_t *op_owner;   /* group or HB_ENDS */
    uint32_t *loop_owner; /* group, HB_ENDS, or HB_NONE: a loop around several owners */
    enum hb_follow *loop_follow;
    enum hb_follow (*dim_follow)[HB_MAX_RANK]; /* by buffer */
    struct hb_slot *slots;
    uint32_t slot_count;
    uint32_t *turn_first; /* [slot x group_count + group]: its ops in this slot, */
    uint32_t *turn_end;   /* empty where equal */
    struct hb_outline_root *roots;
    uint32_t root_count;
    uint32_t *root_of; /* by buffer */
};

/* False where the pair cannot be told apart into groups that take turns; *out_why says why. */
bool hb_outline_find(struct hb_arena *arena, const struct hb_outline_pair *pair,
                     struct hb_outline *out, const char **out_why);

#endif
