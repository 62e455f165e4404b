/* See timed.h. Of XLA programs: 8-bit products run at the 8-bit rate (the quantising is an op of
 * its own: sim/ir/narrow.c). Head, router and attention stay as they are, as in MaxText's and
 * Transformer Engine's recipes. */
#include "sim/eager/timed.h"

#include "base/arena.h"
#include "base/size.h"
#include "sim/eager/eager.h"
#include "sim/ir/lower.h"

static bool is_head(const struct hb_spec *s, const struct hb_op *op)
{
    int64_t ways = s->sharding.vocab_over_tensor ? s->mesh[HB_AX_TENSOR] : 1;
    int64_t vocab = hb_div_up(s->model.vocab, ways);
    return op->rows == vocab || op->cols == vocab || op->depth == vocab ||
           op->phase == HB_PHASE_LOSS;
}

enum hb_dtype hb_timed_linear_dtype(const struct hb_precision *precision)
{
    switch (precision->fp8) {
    case HB_FP8_NONE:
        return precision->compute;
    case HB_FP8_TENSORWISE:
    case HB_FP8_ROWWISE:
    case HB_FP8_BLOCKWISE:
    case HB_FP8_MXFP8:
        return HB_DT_F8;
    case HB_FP8_NVFP4:
        return HB_DT_F4;
    }
    return precision->compute;
}

/* Attention without a kernel multiplies many small matrices side by side; linear layers do not. */
static bool is_linear(const struct hb_spec *s, const struct hb_op *op)
{
    bool layer = op->phase == HB_PHASE_FORWARD || op->phase == HB_PHASE_BACKWARD;
    return op->kind == HB_OP_MATMUL && layer && op->rows > 0 && !is_head(s, op);
}

static void set_quantised(const struct hb_spec *s, struct hb_program *p)
{
    for (uint32_t i = 0; i < p->op_count; i++) {
        struct hb_op *op = &p->ops[i];
        if (is_linear(s, op))
            op->dtype = hb_timed_linear_dtype(&s->precision);
    }
}

bool hb_timed_lower(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                    struct hb_program *out)
{
    if (spec->compiler == HB_TORCH) {
        hb_eager_lower(arena, spec, out);
        return true;
    }
    if (!hb_lower(arena, diag, spec, out))
        return false;
    if (spec->precision.fp8 != HB_FP8_NONE)
        set_quantised(spec, out);
    return true;
}
