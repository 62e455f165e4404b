/* What kernels of the loss and of the optimizer read and write: see eager_layer.h. */
#include "sim/eager/eager_layer.h"

double hb_eager_grad_bytes(const struct hb_spec *s)
{
    switch (s->precision.grads) {
    case HB_GRADS_PARAMS:
        return (double)hb_dtype_bits(s->precision.params) / 8;
    case HB_GRADS_F32:
        return 4;
    case HB_GRADS_BF16:
        return 2;
    }
    return 4;
}

/* Converted to f32 (2+4), log-softmax (4+4), its gradient (8+4), back (4+2) and zeros for the
 * labels' gradient (4) in torch's own loss. */
double hb_eager_loss_bytes(const struct hb_loss *loss)
{
    /* By the temperature (2+2) and back (2+2), log-softmax (2+2), its gradient (2+4) and zeros for
     * the tokens' (2), all sequences in one (2+2); of the entropy log-softmax (2+2), exponentials
     * (2+2), their product (4+2) and its sum (2). */
    enum { GRPO = 24, ENTROPY = 16 };
    if (loss->kind == HB_LOSS_GRPO)
        return loss->entropy ? GRPO + ENTROPY : GRPO;
    switch (loss->kernel) {
    case HB_LOSS_EAGER:
        return 36;
    case HB_LOSS_JIT:
        return 22; /* a converted copy stays: 2+4, maximum 4, sum 4, gradient 4+4 */
    case HB_LOSS_COMPILED:
        return 8; /* 2 for maximum and sum, 2 + 2 for the gradient, 2 for the labels' pass */
    case HB_LOSS_FUSED:
    case HB_LOSS_LINEAR:
        return 6; /* 2, then 2 + 2 in place */
    }
    return 36;
}

static double moment_bytes(const struct hb_spec *s)
{
    double bytes = 0;
    for (int i = 0; i < s->optimizer.moment_count && i < 2; i++)
        bytes += (double)hb_dtype_bits(s->optimizer.moments[i]) / 8;
    return 2 * bytes; /* read and written */
}

/* One fused kernel reads gradient, moments and parameter and writes the last two; a kernel of its
 * own casts a master copy; clipping reads the gradient for its norm and, in torch, writes it back
 * scaled. */
double hb_eager_update_bytes(const struct hb_spec *s)
{
    double param = (double)hb_dtype_bits(s->precision.params) / 8, grad = hb_eager_grad_bytes(s);
    double bytes = grad + moment_bytes(s) + 2 * param + (s->precision.master ? 12 - param : 0);
    if (s->optimizer.clip)
        bytes += grad + (s->runtime.framework == HB_FW_MEGATRON ? 0 : 2 * grad);
    return bytes;
}
