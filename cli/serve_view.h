/* What the page shows of a configuration: simulate's JSON with what hover tells beside it. */
#ifndef HB_CLI_SERVE_VIEW_H
#define HB_CLI_SERVE_VIEW_H

#include <stdio.h>

#include "sim/engine/result.h"

struct hb_env;

/* One object: {"result": as `simulate --json --full`, "ops": [[name, phase, stream], ...] of the
 * schedule, "positions": [op of each sample of the timeline], "notes": [[shape, why], ...] of each
 * buffer of the heap}. */
void hb_view_write(struct hb_env *env, FILE *out, const struct hb_result *r);

#endif
