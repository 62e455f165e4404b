/* hbmsim calibrate --step: real train steps on this machine's device, run by the user's own JAX
 * (examples/verify/run_step.py) or PyTorch (run_torch.py), beside what a profile predicts. */
#ifndef HB_CLI_CALIBRATE_STEP_H
#define HB_CLI_CALIBRATE_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/device.h"

struct hb_env;

struct hb_step_ask {
    const char *base; /* the profile: a name or a file */
    const char *python;
    const char *keep; /* file that the records are appended to; null: none */
    const char *date;
    int64_t most_ns; /* for all of them */
    bool torch;      /* PyTorch's step, not JAX's */
    bool small;      /* the smallest models, whatever the device holds */
};

enum hb_step_end {
    HB_STEP_FITTED, /* out_dev is the profile with reserve and slack of these steps */
    HB_STEP_SHOWN,  /* steps ran, but there is nothing to fit */
    HB_STEP_NONE,   /* no step ran; why is said */
    HB_STEP_BAD,    /* bad input, told */
    HB_STEP_STOPPED /* *out_signal came */
};

/* What is found is said on env->err. */
enum hb_step_end hb_calibrate_step(struct hb_env *env, const struct hb_step_ask *ask,
                                   struct hb_device *out_dev, int *out_signal);

#endif
