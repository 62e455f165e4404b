/* What a buffer in a compiler's list most likely is in a training step, told from the name of the
 * operation, the shape and the compiler's label. A guess, from a table of words and shapes. */
#ifndef HB_SIM_HLO_WHAT_H
#define HB_SIM_HLO_WHAT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/hlo/log.h"

#define HB_WHATS(X)                                                                                \
    X(ARGUMENT, "argument", "an argument: parameters, optimizer states or inputs")                 \
    X(SCORES, "scores", "attention scores")                                                        \
    X(LOGITS, "logits", "logits, or another tensor as wide as the vocabulary")                     \
    X(ONEHOT, "onehot", "a one-hot encoding")                                                      \
    X(GATHERED, "gathered", "a whole tensor gathered from its shards")                             \
    X(MOE, "experts", "routed tokens or expert activations")                                       \
    X(OPTIMIZER, "optimizer", "the optimizer's update")                                            \
    X(SAVED, "saved", "activations that a loop over layers saves")                                 \
    X(HALO, "halo", "a padded or shifted copy")                                                    \
    X(CONVERT, "convert", "a copy in another dtype")                                               \
    X(ACTIVATION, "activation", "an activation or its gradient")                                   \
    X(OTHER, "other", "other")

enum hb_what {
#define HB_ENUM(name, key, title) HB_WHAT_##name,
    HB_WHATS(HB_ENUM)
#undef HB_ENUM
        HB_WHAT_COUNT
};

enum { HB_WHAT_RANK = 8 };

/* The dimensions of "f32[32,4096,4096]{1,2,0:T(8,128)}"; of a tuple the first. */
struct hb_what_shape {
    int rank; /* 0: none was read, or a scalar */
    int64_t dim[HB_WHAT_RANK];
};

struct hb_what_shape hb_what_shape(const char *text);
enum hb_what hb_what_of(const struct hb_log_item *item);
const char *hb_what_key(enum hb_what what);
const char *hb_what_title(enum hb_what what);

#endif
