/* What a plan leaves free of the budget: plan.margin. */
#ifndef HB_SOLVER_MARGIN_H
#define HB_SOLVER_MARGIN_H

#include "solver/plan.h"

enum hb_margin_kind { HB_MARGIN_CONFIDENT, HB_MARGIN_NONE, HB_MARGIN_BYTES, HB_MARGIN_PERCENT };

struct hb_margin {
    enum hb_margin_kind kind;
    double part;   /* of the budget, with PERCENT */
    int64_t bytes; /* with BYTES */
};

const char *hb_margin_name(enum hb_margin_kind kind);
/* Asks for the margin of the spec, once ask's budget is settled. False, with an error: it cannot be
 * read. */
bool hb_margin_apply(struct hb_plan_ask *ask, struct hb_margin *out);
/* Whether of plans that are hardly worse the one with more room is taken (plan.prefer): not where
 * the budget is to be filled. */
bool hb_margin_prefers_room(const struct hb_plan_ask *ask, const struct hb_margin *margin);
/* The same question without a margin; with `plan`, found under it, as a start; given up (LIMIT)
 * after so much. */
struct hb_plan_ask hb_margin_without(const struct hb_plan_ask *ask, const struct hb_plan *plan);

#endif
