/* The model.yaml of a command: read with its --set, checked, with its device. */
#ifndef HB_CLI_INPUT_H
#define HB_CLI_INPUT_H

#include "cli/opt.h"
#include "hw/device.h"
#include "models/spec.h"

/* False: the errors are in env->diag. */
bool hb_input_read(struct hb_env *env, const char *path, const struct hb_words *sets,
                   struct hb_spec *out_spec, struct hb_device *out_device);

#endif
