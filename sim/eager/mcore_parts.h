/* What the parts of Megatron's step share: its layers (mcore_layer.c), the last norm, head, loss
 * and the further depths of multi-token prediction (mcore_ends.c), and the order of passes and what
 * stands between steps (mcore.c). Private to sim/eager/mcore*.c. */
#ifndef HB_SIM_EAGER_MCORE_PARTS_H
#define HB_SIM_EAGER_MCORE_PARTS_H

#include "sim/eager/mcore_plan.h"
#include "sim/eager/tape.h"

struct hb_short;
struct hb_mcore_alive;
struct hb_mcore_parts;

struct hb_mcore {
    struct hb_tape *t;
    const struct hb_spec *spec;
    struct hb_mcore_plan plan;
    struct hb_mcore_alive *alive; /* by chunk, then microbatch */
    int64_t microbatches;
    int64_t d, rows;              /* width, and tokens of the residual's part */
    struct hb_short *cut;         /* null: the program is a whole one */
    struct hb_mcore_parts *parts; /* by chunk */
};

/* A step of the code: x is consumed where `last` says so. */
struct hb_mcore_op {
    const char *name;
    uint32_t x;
    int64_t tokens;
    int64_t width_bytes;  /* of the output, a token */
    int64_t weight_count; /* elements; 0: it has none */
    bool keeps_input;
    bool last;   /* nobody else uses x after it */
    bool linear; /* with fp8: its input is quantised, and kept so */
};

uint32_t hb_mcore_make(struct hb_mcore *e, const char *name, int64_t tokens, int64_t width_bytes);
uint32_t hb_mcore_op(struct hb_mcore *e, struct hb_mcore_op o);
/* An op of its own whose gradient goes to `in`. */
void hb_mcore_back_op(struct hb_tape *t, struct hb_taped *n, uint32_t grad);
/* Over the tensor axis. */
int64_t hb_mcore_split(const struct hb_mcore *e, int64_t width);
/* Of a gated one: gate and up in one. */
int64_t hb_mcore_first_width(enum hb_mlp_kind kind, int64_t ff);
/* Norm in the product that follows: its input stays with the residual; its output is kept by the
 * product. */
uint32_t hb_mcore_norm(struct hb_mcore *e, uint32_t x);
/* The same, recomputed as a whole in the backward pass where `again`. x is consumed. */
uint32_t hb_mcore_run_layer(struct hb_mcore *e, const struct hb_block *b, bool again, uint32_t x);
/* From the last layer's output, which is consumed, to the loss. */
uint32_t hb_mcore_head(struct hb_mcore *e, uint32_t x);

#endif
