/* The levers that people pull when memory runs out, each pulled alone on a configuration and run by
 * the engine, and the pairs that free most. A lever that does nothing says why. */
#ifndef HB_SOLVER_ADVISE_H
#define HB_SOLVER_ADVISE_H

#include <stdbool.h>
#include <stdint.h>

#include "models/spec.h"

struct hb_env;
struct hb_device;

/* One turn of one knob (or of two). */
struct hb_advice {
    int lever;         /* 1 .. HB_LEVER_COUNT */
    const char *name;  /* "loss.chunks = 8" */
    const char *title; /* of the lever: "logits in chunks, attention kernels" */
    const char *why;   /* what it does; where it has no effect, why not */
    bool applies;
    bool outside;        /* of what plan searches by default */
    int64_t freed_bytes; /* of the peak; below 0: takes more */
    int64_t cost_ns;     /* of the step; below 0: faster */
};

enum { HB_LEVER_COUNT = 16 };

struct hb_advice_list {
    int64_t peak_bytes; /* of the configuration as it is */
    int64_t budget_bytes;
    int64_t step_ns;
    struct hb_advice *knobs; /* by freed bytes, most first; those without effect last */
    uint32_t knob_count;
    struct hb_advice *pairs; /* that free more than each of their knobs, most first */
    uint32_t pair_count;
};

/* False: the configuration itself cannot be run (errors in env->diag). */
bool hb_advise_find(struct hb_env *env, const struct hb_spec *spec, const struct hb_device *device,
                    struct hb_advice_list *out);
/* Of the knobs that plan does not search, the one that frees most, in words; null: none frees. */
const char *hb_advise_best_freer(struct hb_env *env, const struct hb_spec *spec,
                                 const struct hb_device *device);
/* Of the same knobs the one that makes the step shortest, in words, with as many microbatches or
 * fewer, where it is half as long at most and the peak within the budget; null: none does. */
const char *hb_advise_best_faster(struct hb_env *env, const struct hb_spec *spec,
                                  const struct hb_device *device, int64_t budget_bytes);

#endif
