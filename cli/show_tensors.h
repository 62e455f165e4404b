/* What becomes of each tensor of a block between the forward and the backward pass: saved,
 * offloaded or made again, with its bytes and what that costs of the step. */
#ifndef HB_CLI_SHOW_TENSORS_H
#define HB_CLI_SHOW_TENSORS_H

#include <stdio.h>

#include "sim/engine/result.h"

struct hb_device;
struct hb_env;

/* block: its name in the program. */
void hb_show_tensors(const struct hb_env *env, FILE *out, const struct hb_result *result,
                     const struct hb_device *device, const char *block);

#endif
