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

/* Torch's own ops, one after the other, each of a whole shard: Lion's clone (2), mul_ (2), add (3),
 * sgn_ (2) and add_ (3), mul_ (2) and add_ (3) of the average, mul_ (2) of the parameter;
 * Adafactor's decay (2), three norms (3), product (1), div_, clamp_ and rsqrt_ (6), mul_ (3), norm
 * (1), add_ (3); Muon's two lerps (6), decay (2), add_ (3), and copies in bf16. */
static double rule_bytes(const struct hb_spec *s, double param)
{
    enum { LION = 19, ADAFACTOR = 19, MUON = 11, ITERATES = 24 };
    switch (s->optimizer.name) {
    case HB_OPT_LION:
        return LION * param;
    case HB_OPT_ADAFACTOR:
        return ADAFACTOR * param;
    case HB_OPT_MUON:
        return MUON * param + ITERATES;
    case HB_OPT_SGD:
    case HB_OPT_MOMENTUM:
    case HB_OPT_ADAMW:
        break;
    }
    return 0;
}

bool hb_eager_has_rule(const struct hb_spec *s)
{
    bool whole = hb_titan_shard_ranks(s) == 1 && s->mesh[HB_AX_TENSOR] == 1;
    bool own = s->optimizer.name == HB_OPT_ADAFACTOR || s->optimizer.name == HB_OPT_MUON;
    return hb_titan_lion_is_eager(s) || (own && whole && s->runtime.framework != HB_FW_MEGATRON);
}

/* One fused kernel reads gradient, moments and parameter and writes the last two; a kernel of its
 * own casts a master copy; clipping reads the gradient for its norm and, in torch, writes it back
 * scaled. */
double hb_eager_update_bytes(const struct hb_spec *s)
{
    double param = (double)hb_dtype_bits(s->precision.params) / 8, grad = hb_eager_grad_bytes(s);
    double bytes = grad + moment_bytes(s) + 2 * param + (s->precision.master ? 12 - param : 0);
    if (hb_eager_has_rule(s))
        bytes = rule_bytes(s, param);
    if (s->optimizer.ema == HB_PLACE_DEVICE)
        bytes += 3 * param;
    if (s->optimizer.clip)
        bytes += grad + (s->runtime.framework == HB_FW_MEGATRON ? 0 : 2 * grad);
    return bytes;
}

/* Of a matrix and its shorter side: five times its square, the square's square, their product. */
static double turn_matrix(double rows, double cols)
{
    enum { PASSES = 5 };
    double side = rows < cols ? rows : cols, other = rows < cols ? cols : rows;
    return PASSES * (4 * side * side * other + 2 * side * side * side);
}

double hb_eager_muon_flops(const struct hb_spec *s, const struct hb_block *b)
{
    const struct hb_attention *a = &b->attention;
    double d = (double)s->model.d_model, ff = (double)b->mlp.d_ff, h = (double)a->head_dim;
    double q = (double)a->heads * h, kv = (double)a->kv_heads * h;
    double first =
        a->fused_qkv ? turn_matrix(q + 2 * kv, d) : turn_matrix(q, d) + 2 * turn_matrix(kv, d);
    double products = hb_mlp_is_gated(b->mlp.kind) ? 3 : 2;
    return first + turn_matrix(d, q) + products * turn_matrix(ff, d);
}
