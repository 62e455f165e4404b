/* hbmsim calibrate --with-torch, --with-jax: a framework's own fused attention, timed by its own
 * program (examples/verify/attention.py), as curves of the profile. */
#ifndef HB_CLI_CALIBRATE_ATTENTION_H
#define HB_CLI_CALIBRATE_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

struct hb_device;
struct hb_env;

struct hb_attention_ask {
    const char *python;
    const char *framework; /* "torch" or "jax" */
    const char *source;    /* written into the profile */
    int64_t most_ns;
};

/* Without an answer the profile stays as it is, and why is said on env->err; *out_signal is one
 * that came meanwhile, or 0. */
void hb_calibrate_attention(struct hb_env *env, const struct hb_attention_ask *ask,
                            struct hb_device *dev, int *out_signal);

#endif
