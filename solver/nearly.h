/* What nearly was the plan, of what the search ran: faster, and refused for its memory (of those
 * and the best without a margin the ones least above what they may take, and the fastest); or
 * hardly slower, and with more room. The proof is of the fastest, and says of the roomier one how
 * far it is from that. */
#ifndef HB_SOLVER_NEARLY_H
#define HB_SOLVER_NEARLY_H

#include "sim/engine/interval.h"
#include "solver/plan.h"

enum { HB_NEARLY_MOST = 3 };

struct hb_nearly {
    const struct hb_plan *plan; /* the same, with the policies of these in its menus */
    struct hb_nearly_one {
        struct hb_candidate candidate;
        int64_t high_bytes;     /* its interval's upper end */
        int64_t too_much_bytes; /* of its peak or, where that is asked for, of that end */
        enum hb_verdict verdict;
    } list[HB_NEARLY_MOST]; /* each needs more than those before it, and is faster */
    uint32_t count;
};

/* Of those that fit and are at most 1 % worse than the plan the one that needs least (its
 * interval's upper end, where that is asked for), if that is less by 2 % of the budget at least. */
struct hb_roomier {
    const struct hb_plan *plan; /* the same, with its policies in its menus */
    struct hb_candidate candidate;
    bool found;
};

/* plan was found, with ask.keep_runs. Not for the least memory, nor of compiler torch. */
void hb_nearly_roomier(struct hb_arena *arena, const struct hb_plan_ask *ask,
                       const struct hb_plan *plan, struct hb_roomier *out);

/* plan was found, with ask.keep_runs; bare: what hb_margin_without asks for, found, or null. Runs a
 * few of them. */
void hb_nearly_find(struct hb_arena *arena, const struct hb_plan_ask *ask,
                    const struct hb_plan *plan, const struct hb_plan *bare, struct hb_nearly *out);

#endif
