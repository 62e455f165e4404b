/* What plan found, as a picture: memory against step time. */
#ifndef HB_CLI_DRAW_PLAN_H
#define HB_CLI_DRAW_PLAN_H

#include "cli/show_plan.h"

/* The plan, its alternatives and a sample of at most `most` of what it was chosen from; where
 * nothing fits, the smallest configuration and the sample. */
void hb_draw_plan(struct hb_env *env, const struct hb_plan_answer *a, uint32_t most,
                  struct hb_pareto *out);

#endif
