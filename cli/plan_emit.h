/* A plan for another program: searched within what that program can say, and read back from what is
 * emitted, so that what is pasted is what was planned. */
#ifndef HB_CLI_PLAN_EMIT_H
#define HB_CLI_PLAN_EMIT_H

#include <stdbool.h>
#include <stdio.h>

#include "models/emit.h"
#include "solver/plan.h"

struct hb_env;

/* The search for ask->spec as that program would run it, over its policies. *ask and *out become
 * the best's. False: as hb_plan_find. */
bool hb_plan_emit_find(enum hb_emit what, struct hb_plan_ask *ask, struct hb_plan *out);
/* Settings of the plan, what they are read back as, and its peak and time as comments; and what of
 * `asked` (the input; null: spec is all) that program cannot say and no search turned. */
void hb_plan_emit_print(struct hb_env *env, FILE *out, enum hb_emit what,
                        const struct hb_spec *spec, const struct hb_spec *asked,
                        const struct hb_device *device);

#endif
