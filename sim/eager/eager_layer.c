/* The pieces of a layer: see eager_layer.h. Bytes of a kernel are counted by what it reads and
 * writes per element, as its source does; which kernels there are:
 *   fused    one kernel for a chain of element-wise ops (torch.compile; Megatron with Transformer
 *            Engine: fused norms, rope, SwiGLU; bias, dropout and residual sum in one)
 *   eager    one kernel an op. RMSNorm and rope convert to f32 and back (torchtitan
 *            models/llama/model.py): x.float() 2+4, square 4+4, mean 4, scale 4+4, back 4+2, times
 *            weight 2+2 bytes an element; LayerNorm is one kernel forwards (torch.nn.LayerNorm). */
#include "sim/eager/eager_layer.h"

#include "base/arena.h"
#include "base/str.h"
#include "models/dtype.h"
#include "sim/eager/knapsack.h"
#include "sim/eager/timed.h"
#include "sim/eager/titan.h"

/* Bytes an element, forwards and backwards. */
struct traffic {
    double forward, backward;
};

static const struct traffic norm_fused = {4, 6};
static const struct traffic norm_eager_rms = {36, 60};
static const struct traffic norm_eager_layer = {4, 10};
static const struct traffic rope_fused = {4, 4};
static const struct traffic rope_eager = {20, 20};
static const struct traffic gated_fused = {6, 10};  /* of each of the two halves' elements */
static const struct traffic gated_eager = {10, 18}; /* silu 2+2, product 4+2; back 4+2, 4+2, 4+2 */
static const struct traffic plain_act = {4, 6};
static const struct traffic residual_sum = {6, 6};
static const struct traffic dropout = {5, 5};        /* 2 + 2 and a mask of 1 */
static const struct traffic scores_softmax = {4, 6}; /* scale, mask and softmax in one kernel */
static const struct traffic row_copy = {4, 4};

/* Quantising: a tensor-wise scale needs a pass of its own; 8-bit products on Hopper read both
 * operands along the contraction, hence transposed copies for the backward pass; on Blackwell they
 * take any layout (cuBLAS documentation, cublasLtMatmul: types and layouts of 8-bit operands). A
 * scale a row is found while the row is read, a scale a column is not. With scales a row torchao
 * multiplies backwards as if there were one scale and scales the result after it, since the kernel
 * that does both is slow with full sums (torchao issue 2184, float8_ops.py). */
enum { SCALED_PASS = 5, LOCAL_PASS = 4, ROW_PASS = 3, COLUMN_PASS = 5, TRANSPOSE = 2, SCALING = 4 };

static const struct traffic bias_gradient = {0,
                                             2}; /* a sum over the rows, in no product's kernel */

static bool takes_any_layout(const struct hb_eager *e)
{
    static const char *const blackwell[] = {"nvidia-b200", "nvidia-gb200", "nvidia-rtx5090"};
    for (size_t i = 0; i < sizeof blackwell / sizeof blackwell[0]; i++)
        if (hb_str_same(e->spec->hardware.device, blackwell[i]))
            return true;
    return false;
}

int64_t hb_eager_ways(const struct hb_eager *e, enum hb_axis axis)
{
    return e->spec->mesh[axis];
}

static double tensor_ways(const struct hb_eager *e)
{
    return (double)hb_eager_ways(e, HB_AX_TENSOR);
}

static double width_of(const struct hb_eager *e)
{
    return (double)e->spec->model.d_model;
}

static struct hb_piece *add(struct hb_eager *e, struct hb_eager_layer *l, struct hb_piece piece)
{
    l->pieces = hb_grow(e->arena, l->pieces, l->count, &l->cap, sizeof *l->pieces);
    l->pieces[l->count] = piece;
    return &l->pieces[l->count++];
}

static void add_kernel(struct hb_eager *e, struct hb_eager_layer *l, const char *name,
                       double elements, struct traffic t)
{
    add(e, l,
        (struct hb_piece){.name = name,
                          .kind = HB_OP_ELEMENTWISE,
                          .bytes = elements * t.forward,
                          .back_bytes = elements * t.backward});
}

/* --- products --- */

/* Transformer Engine keeps quantised weights over the microbatches. */
static bool quantises_weights(const struct hb_eager *e)
{
    const struct hb_precision *p = &e->spec->precision;
    return !p->fp8_params && !p->fp8_gather && e->spec->runtime.framework != HB_FW_MEGATRON;
}

/* Bytes an element: forwards, and backwards of operands and of the result's gradient. torchao keeps
 * operands in high precision and quantises them again, scales of rows and blocks along the other
 * axis (torchao/float8/float8_linear.py, matmul_with_hp_or_float8_args;
 * torchao/prototype/moe_training/mxfp8_linear.py, mx_mm); Transformer Engine keeps what it made. */
struct passes {
    double forward;
    double again; /* copies and quantising anew */
    double copy;  /* copies alone */
    double gradient;
    double scaled; /* results of the backward pass, scaled by a kernel of their own */
};

static struct passes quantise_passes(const struct hb_eager *e)
{
    bool keeps = e->spec->runtime.framework == HB_FW_MEGATRON;
    double copy = takes_any_layout(e) ? 0 : TRANSPOSE;
    if (e->spec->precision.fp8 == HB_FP8_TENSORWISE)
        return (struct passes){SCALED_PASS, copy + (keeps ? 0 : SCALED_PASS), copy,
                               SCALED_PASS + copy, 0};
    if (e->spec->precision.fp8 == HB_FP8_MXFP8 && !keeps)
        return (struct passes){ROW_PASS, ROW_PASS, 0, 2 * ROW_PASS, 0};
    if (e->spec->precision.fp8 == HB_FP8_ROWWISE && !keeps)
        return (struct passes){ROW_PASS, COLUMN_PASS, 0, ROW_PASS + COLUMN_PASS, SCALING};
    return (struct passes){LOCAL_PASS, 0, 0, LOCAL_PASS, 0};
}

static void set_quantising(const struct hb_eager *e, struct hb_piece *m)
{
    struct passes p = quantise_passes(e);
    double in = m->rows * m->depth * m->batch, out = m->rows * m->cols * m->batch;
    double weight = m->cols * m->depth * m->batch;
    m->quantise_bytes = in * p.forward;
    m->quantise_back_bytes = in * (p.again + p.scaled) + out * p.gradient;
    bool anew = quantises_weights(e);
    m->quantise_bytes += anew ? weight * p.forward : 0;
    m->quantise_back_bytes += weight * ((anew ? p.again : p.copy) + p.scaled);
}

/* A linear layer: rows x depth by depth x cols, so many side by side. Experts' products fill the
 * device one by one (SimuMax, configs/system: grouped products on B200 by the size of one). */
struct product {
    double rows, cols, depth, batch;
};

static struct hb_piece *add_linear(struct hb_eager *e, struct hb_eager_layer *l, const char *name,
                                   struct product s)
{
    bool fusion = e->spec->runtime.framework == HB_FW_MEGATRON && e->spec->runtime.grad_fusion;
    bool wide = e->spec->precision.grads == HB_GRADS_F32;
    enum hb_dtype dtype = hb_timed_linear_dtype(&e->spec->precision);
    struct hb_piece m = {.name = name,
                         .kind = HB_OP_MATMUL,
                         .flops = 2 * s.rows * s.cols * s.depth * s.batch,
                         .rows = s.rows,
                         .cols = s.cols,
                         .depth = s.depth,
                         .batch = s.batch,
                         .grouped = s.batch > 1,
                         .dtype = dtype};
    double operand = (double)hb_dtype_bits(dtype) / 8;
    m.bytes = s.batch * (operand * (s.rows + s.cols) * s.depth + 2 * s.rows * s.cols);
    m.back_bytes = m.bytes + (fusion && wide ? 4 * s.batch * s.depth * s.cols : 0);
    if (dtype != e->spec->precision.compute)
        set_quantising(e, &m);
    return add(e, l, m);
}

/* Fused kernels sum it on their way. */
static void add_bias(struct hb_eager *e, struct hb_eager_layer *l, bool has, double elements)
{
    if (has && !e->fused)
        add_kernel(e, l, "gradient of the bias", elements, bias_gradient);
}

/* --- collectives over tensor --- */

static void add_collective(struct hb_eager *e, struct hb_eager_layer *l, struct hb_piece c)
{
    c.group = hb_eager_ways(e, c.axis);
    if (c.group > 1)
        add(e, l, c);
}

static bool is_split(const struct hb_eager *e)
{
    return e->spec->sharding.residual_over_tensor;
}

static double residual_bytes(const struct hb_eager *e)
{
    return 2 * e->tokens * width_of(e);
}

/* Before a column-parallel product: gathers a split residual; else sums the input's gradient. */
static void enter_tensor(struct hb_eager *e, struct hb_eager_layer *l)
{
    add_collective(
        e, l,
        (struct hb_piece){.name = "gather the residual",
                          .kind = is_split(e) ? HB_OP_ALL_GATHER : HB_OP_MARK,
                          .back_kind = is_split(e) ? HB_OP_REDUCE_SCATTER : HB_OP_ALL_REDUCE,
                          .axis = HB_AX_TENSOR,
                          .sent_bytes = residual_bytes(e),
                          .beside = e->spec->runtime.async_tp});
}

/* In one with the product before it, rows that are ready going while others are computed. */
static void put_before_product(struct hb_eager_layer *l)
{
    struct hb_piece sum = l->pieces[l->count - 1];
    l->pieces[l->count - 1] = l->pieces[l->count - 2];
    l->pieces[l->count - 2] = sum;
}

static void leave_tensor(struct hb_eager *e, struct hb_eager_layer *l)
{
    add_collective(e, l,
                   (struct hb_piece){.name = "sum over tensor",
                                     .kind = is_split(e) ? HB_OP_REDUCE_SCATTER : HB_OP_ALL_REDUCE,
                                     .back_kind = is_split(e) ? HB_OP_ALL_GATHER : HB_OP_MARK,
                                     .axis = HB_AX_TENSOR,
                                     .sent_bytes = residual_bytes(e),
                                     .beside = e->spec->runtime.async_tp});
    if (e->spec->runtime.async_tp)
        put_before_product(l);
}

/* --- parts of a layer --- */

static struct traffic norm_traffic(const struct hb_eager *e, struct traffic in_ops)
{
    return e->fused || hb_titan_norms_fused(e->spec) ? norm_fused : in_ops;
}

static void add_norm(struct hb_eager *e, struct hb_eager_layer *l, const struct hb_block *b)
{
    add_kernel(e, l, "norm", e->resid_tokens * width_of(e),
               norm_traffic(e, b->norm == HB_NORM_RMS ? norm_eager_rms : norm_eager_layer));
}

static void add_residual(struct hb_eager *e, struct hb_eager_layer *l, const struct hb_block *b)
{
    if (b->dropout > 0 && !e->fused)
        add_kernel(e, l, "dropout", e->resid_tokens * width_of(e), dropout);
    add_kernel(e, l, "residual sum", e->resid_tokens * width_of(e), residual_sum);
}

/* Keys that a query meets on average: a flash kernel skips blocks that the mask hides whole. */
static double keys_met(const struct hb_attention *a, int64_t at, double keys)
{
    static const double block = 128; /* FlashAttention-2 and -3, cuDNN: tiles of 128 keys */
    int64_t window = a->windows[a->window_count > 1 ? at : 0];
    if (a->mask == HB_MASK_NONE && window == 0)
        return keys;
    if (window <= 0 || (double)window >= keys)
        return keys / 2; /* as the devices' curves count */
    /* a tile of queries takes whole tiles from its first query's window to its last query */
    double reach = (double)window, met = reach + block - reach * reach / (2 * keys);
    return met < keys ? met : keys;
}

/* Scores in memory: two batched products and the kernels between them. */
static void add_naive(struct hb_eager *e, struct hb_eager_layer *l, const struct hb_attention *a,
                      double heads)
{
    double keys = (double)e->spec->batch.seq, scores = e->batch * heads * e->seq * keys;
    struct hb_piece m = {.name = "scores",
                         .kind = HB_OP_MATMUL,
                         .flops = 2 * scores * (double)a->head_dim,
                         .rows = e->seq,
                         .cols = keys,
                         .depth = (double)a->head_dim,
                         .batch = e->batch * heads,
                         .bytes = 2 * scores,
                         .back_bytes = 2 * scores,
                         .dtype = e->spec->precision.compute};
    add(e, l, m);
    add_kernel(e, l, "softmax of the scores", scores, scores_softmax);
    if (a->dropout > 0)
        add_kernel(e, l, "dropout of the scores", scores, dropout);
    m.name = "scores times values";
    add(e, l, m);
}

static void add_flash(struct hb_eager *e, struct hb_eager_layer *l, const struct hb_attention *a,
                      int64_t at, double heads)
{
    bool mla = a->kind == HB_ATTN_MLA;
    double keys = (double)e->spec->batch.seq;
    double width = mla ? (double)(a->qk_nope_head_dim + a->qk_rope_head_dim) : (double)a->head_dim;
    double values = mla ? (double)a->v_head_dim : width;
    double flops = 2 * e->batch * heads * e->seq * keys_met(a, at, keys) * (width + values);
    add(e, l,
        (struct hb_piece){.name = "flash attention",
                          .kind = HB_OP_ATTENTION,
                          .flops = flops,
                          .rows = e->seq,
                          .cols = keys,
                          .depth = width,
                          .batch = 1,
                          .bytes = 4 * e->tokens * heads * (width + values),
                          .back_bytes = 8 * e->tokens * heads * (width + values),
                          .dtype = e->spec->precision.compute});
}

/* torch joins the steps of its ring itself; see ring_step_eager. */
static bool joins_steps(const struct hb_eager *e)
{
    return e->spec->runtime.framework == HB_FW_TORCHTITAN && hb_eager_ways(e, HB_AX_SEQUENCE) > 1;
}

/* What crosses the sequence axis: a ring passes keys and values on beside the kernel; the others
 * stand before and after it. Collectives that torch.compile traces are waited for where they start
 * (torch/distributed/_functional_collectives.py, _maybe_wrap_tensor), so a compiled ring hides
 * none; its sums of gradients go round in f32. */
static void add_context(struct hb_eager *e, struct hb_eager_layer *l, double bytes, bool before)
{
    bool ring = e->spec->sharding.sequence_kind == HB_SEQ_RING;
    bool all = e->spec->sharding.sequence_kind == HB_SEQ_ALL_TO_ALL;
    if (!before && !all)
        return;
    double ways = (double)hb_eager_ways(e, HB_AX_SEQUENCE);
    struct hb_piece c = {.name = all ? "exchange heads for positions" : "gather keys and values",
                         .kind = all ? HB_OP_ALL_TO_ALL : HB_OP_ALL_GATHER,
                         .back_kind = all ? HB_OP_ALL_TO_ALL : HB_OP_REDUCE_SCATTER,
                         .axis = HB_AX_SEQUENCE,
                         .sent_bytes = bytes * ways,
                         .beside = ring,
                         .waits = joins_steps(e) && e->spec->runtime.compile};
    if (joins_steps(e))
        c.back_sent_bytes = 2 * c.sent_bytes;
    add_collective(e, l, c);
}

/* torch joins the steps of its ring in f32 (torch/distributed/tensor/experimental, _SDPAMerger and
 * _templated_ring_attention_backward). A step forwards: cast 2 + 4, difference 8 + 4, times a part
 * 4 + 4, difference 8 + 4, or in one kernel 2 + 8; k and v in one 8. Backwards: k and v in one 8;
 * casts of three gradients 18, sum of q's 12, of half of k's and v's 12, or in one kernel 10 and
 * 10; copies of k's and v's sums 32. */
static const struct traffic ring_step_eager = {46, 82};
static const struct traffic ring_step_fused = {18, 60};
static const struct traffic ring_ends = {12, 18}; /* first and last casts; three back to 16 bits */

static void add_joining(struct hb_eager *e, struct hb_eager_layer *l, double elements)
{
    if (!joins_steps(e))
        return;
    double steps = (double)(hb_eager_ways(e, HB_AX_SEQUENCE) - 1);
    add_kernel(e, l, "the ring's steps joined", elements * steps,
               e->fused ? ring_step_fused : ring_step_eager);
    add_kernel(e, l, "the ring's casts", elements, ring_ends);
}

static void add_attention_core(struct hb_eager *e, struct hb_eager_layer *l,
                               const struct hb_block *b, int64_t at)
{
    const struct hb_attention *a = &b->attention;
    if (a->kind == HB_ATTN_NONE)
        return;
    double heads = (double)a->heads / tensor_ways(e), kv = (double)a->kv_heads / tensor_ways(e);
    if (kv < 1)
        kv = 1;
    if (joins_steps(
            e)) /* which repeats keys and values before (models/llama/model.py, repeat_kv) */
        kv = heads;
    double width = (double)a->head_dim, out = e->tokens * heads * width * 2;
    double in = e->tokens * 2 * kv * width * 2;
    if (a->kind == HB_ATTN_MLA)
        in = e->tokens * heads * 2 * (double)(a->qk_nope_head_dim + a->v_head_dim);
    bool all = e->spec->sharding.sequence_kind == HB_SEQ_ALL_TO_ALL;
    uint32_t first = l->count;
    add_context(e, l, all ? in + out : in, true);
    if (a->kernel == HB_KERNEL_FLASH) {
        add_flash(e, l, a, at, heads);
        add_joining(e, l, e->tokens * heads * width);
    } else {
        add_naive(e, l, a, heads);
    }
    add_context(e, l, out, false);
    bool remade = e->spec->remat.modules & 1u << HB_RM_CORE_ATTN;
    for (uint32_t i = first; i < l->count; i++)
        l->pieces[i].remade = remade;
}

static void add_mla_projections(struct hb_eager *e, struct hb_eager_layer *l,
                                const struct hb_attention *a)
{
    double heads = (double)a->heads / tensor_ways(e), d = width_of(e), t = e->tokens;
    double q = heads * (double)(a->qk_nope_head_dim + a->qk_rope_head_dim);
    double kv = heads * (double)(a->qk_nope_head_dim + a->v_head_dim);
    double rank = (double)a->kv_lora_rank;
    bool remade = e->spec->remat.modules & 1u << HB_RM_MLA_UP_PROJ;
    if (a->q_lora_rank > 0) {
        add_linear(e, l, "q down", (struct product){t, (double)a->q_lora_rank, d, 1});
        add_linear(e, l, "q up", (struct product){t, q, (double)a->q_lora_rank, 1})->remade =
            remade;
    } else {
        add_linear(e, l, "q", (struct product){t, q, d, 1});
    }
    add_linear(e, l, "kv down", (struct product){t, rank + (double)a->qk_rope_head_dim, d, 1});
    add_linear(e, l, "kv up", (struct product){t, kv, rank, 1})->remade = remade;
}

static void add_projections(struct hb_eager *e, struct hb_eager_layer *l,
                            const struct hb_attention *a)
{
    double d = width_of(e), t = e->tokens, tp = tensor_ways(e);
    double q = (double)a->heads * (double)a->head_dim / tp;
    double kv = (double)a->kv_heads * (double)a->head_dim / tp;
    if (a->kind == HB_ATTN_MLA) {
        add_mla_projections(e, l, a);
        return;
    }
    if (a->fused_qkv || e->spec->runtime.framework == HB_FW_MEGATRON) {
        add_linear(e, l, "qkv", (struct product){t, q + 2 * kv, d, 1});
    } else {
        add_linear(e, l, "q", (struct product){t, q, d, 1});
        add_linear(e, l, "k", (struct product){t, kv, d, 1});
        add_linear(e, l, "v", (struct product){t, kv, d, 1});
    }
    add_bias(e, l, a->bias != HB_BIAS_NONE, t * (q + 2 * kv));
    if (a->qk_norm != HB_QKN_NONE)
        add_kernel(e, l, "norm of q and k", t * (q + kv), norm_traffic(e, norm_eager_rms));
}

static void add_attention(struct hb_eager *e, struct hb_eager_layer *l, const struct hb_block *b,
                          int64_t at)
{
    const struct hb_attention *a = &b->attention;
    double heads = (double)a->heads / tensor_ways(e), kv = (double)a->kv_heads / tensor_ways(e);
    double turned = a->kind == HB_ATTN_MLA ? heads * (double)a->qk_rope_head_dim
                                           : (heads + kv) * (double)a->head_dim;
    double out =
        a->kind == HB_ATTN_MLA ? heads * (double)a->v_head_dim : heads * (double)a->head_dim;
    add_norm(e, l, b);
    enter_tensor(e, l);
    add_projections(e, l, a);
    if (a->rope)
        add_kernel(e, l, "rope", e->tokens * turned, e->fused ? rope_fused : rope_eager);
    add_attention_core(e, l, b, at);
    add_linear(e, l, "attention output", (struct product){e->tokens, width_of(e), out, 1});
    add_bias(e, l, a->bias == HB_BIAS_ALL, e->tokens * width_of(e));
    leave_tensor(e, l);
    add_residual(e, l, b);
}

static struct traffic act_traffic(const struct hb_eager *e, enum hb_mlp_kind kind)
{
    if (!hb_mlp_is_gated(kind))
        return plain_act;
    return e->fused ? gated_fused : gated_eager;
}

/* rows of each of `batch` MLPs side by side. */
static void add_mlp(struct hb_eager *e, struct hb_eager_layer *l, enum hb_mlp_kind kind,
                    double rows, double d_ff, double batch)
{
    double d = width_of(e);
    bool moe_act = e->spec->remat.modules & 1u << HB_RM_MOE_ACT;
    if (hb_mlp_is_gated(kind) && e->spec->runtime.framework == HB_FW_MEGATRON) {
        add_linear(e, l, "mlp gate and up", (struct product){rows, 2 * d_ff, d, batch});
    } else {
        if (hb_mlp_is_gated(kind))
            add_linear(e, l, "mlp gate", (struct product){rows, d_ff, d, batch});
        add_linear(e, l, "mlp up", (struct product){rows, d_ff, d, batch});
    }
    add_kernel(e, l, "activation", rows * d_ff * batch, act_traffic(e, kind));
    l->pieces[l->count - 1].remade = moe_act && batch > 1;
    add_linear(e, l, "mlp down", (struct product){rows, d, d_ff, batch});
}

/* Rows come sorted by sender, experts want them by expert (Megatron core/transformer/moe/
 * token_dispatcher.py: sort_chunks_by_idxs, before and after several local experts). */
static void add_local_sort(struct hb_eager *e, struct hb_eager_layer *l, double experts,
                           double elements)
{
    bool apart = e->spec->runtime.framework == HB_FW_MEGATRON && experts > 1;
    if (apart && hb_eager_ways(e, HB_AX_EXPERT) > 1)
        add_kernel(e, l, "sort rows by local expert", elements, row_copy);
}

/* Megatron multiplies forwards in the layer's type and lets the product write wider; backwards the
 * operands are widened first, products as TF32 (core/transformer/moe/moe_utils.py,
 * RouterGatingLinearFunction; Transformer Engine, cublaslt_gemm.cu). Backwards a token's width is
 * cast, read and summed into the weight's gradient, 2 + 4 and 4, and its own gradient written wide
 * and cast, 4 and 4 + 2. */
static void add_router(struct hb_eager *e, struct hb_eager_layer *l, const struct hb_moe *m)
{
    static const double narrow = 2, widened = 20;
    bool library = e->spec->runtime.framework == HB_FW_MEGATRON && m->router_dtype != HB_DT_F64;
    bool widens = library && m->router_dtype == HB_DT_F32;
    double d = width_of(e), elements = e->resid_tokens * d;
    add(e, l,
        (struct hb_piece){.name = "router",
                          .kind = HB_OP_MATMUL,
                          .flops = 2 * elements * (double)m->experts,
                          .rows = e->resid_tokens,
                          .cols = (double)m->experts,
                          .depth = d,
                          .batch = 1,
                          .bytes = narrow * elements,
                          .back_bytes = (widens ? widened : narrow) * elements,
                          .dtype = library ? e->spec->precision.compute : m->router_dtype});
}

/* Where ranks of the tensor axis split an expert, Megatron's dispatcher exchanges what a rank has
 * of the sequence and gathers it behind that, and sums shares before it sends them back (core/
 * transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher). */
static void add_expert_tensor(struct hb_eager *e, struct hb_eager_layer *l, double rows, bool sum)
{
    double each = (double)e->spec->sharding.expert_tensor;
    if (e->spec->runtime.framework != HB_FW_MEGATRON || !is_split(e) || each <= 1)
        return;
    add_collective(e, l,
                   (struct hb_piece){.name = sum ? "sum of the experts' shares" : "gather rows",
                                     .kind = sum ? HB_OP_REDUCE_SCATTER : HB_OP_ALL_GATHER,
                                     .back_kind = sum ? HB_OP_ALL_GATHER : HB_OP_REDUCE_SCATTER,
                                     .axis = HB_AX_TENSOR,
                                     .sent_bytes = 2 * rows * width_of(e)});
}

/* Megatron adds the output's bias expert by expert, times the token's weight, in f32 (core/
 * transformer/moe/experts.py, TEGroupedMLP._apply_bias). Forwards bias times weight 4, sum 6 + 4,
 * experts joined 4 + 4, cast 4 + 2; backwards cast 2 + 4, the output's gradient cast and joined
 * 4 + 2 and 2 + 2, and for bias and weight each a product 4 + 4 and a sum of it 4. */
static const struct traffic expert_bias = {28, 40};

static void add_expert_bias(struct hb_eager *e, struct hb_eager_layer *l, const struct hb_moe *m,
                            double elements)
{
    if (m->bias && e->spec->runtime.framework == HB_FW_MEGATRON)
        add_kernel(e, l, "bias of the experts, weighed", elements, expert_bias);
}

/* Between the ranks that hold a layer's experts: Megatron's lie side by side, whatever axes outside
 * of the experts lie within (core/parallel_state.py, expert_decoder_rank_generator: tp-ep-dp-pp).
 */
static void add_exchange(struct hb_eager *e, struct hb_eager_layer *l, const char *name,
                         double rows)
{
    bool packed = e->spec->runtime.framework == HB_FW_MEGATRON;
    int64_t ranks = packed ? hb_titan_expert_ways(e->spec) : hb_eager_ways(e, HB_AX_EXPERT);
    struct hb_piece exchange = {.name = name,
                                .kind = HB_OP_ALL_TO_ALL,
                                .back_kind = HB_OP_ALL_TO_ALL,
                                .axis = HB_AX_EXPERT,
                                .group = ranks,
                                .packed = packed,
                                .sent_bytes = 2 * rows * width_of(e) * (double)ranks};
    if (ranks > 1)
        add(e, l, exchange);
}

/* Tokens go to the experts' devices and come back; every expert gets as many. */
static void add_experts(struct hb_eager *e, struct hb_eager_layer *l, const struct hb_moe *m)
{
    double tp = tensor_ways(e), et = (double)e->spec->sharding.expert_tensor;
    double ways = (double)hb_eager_ways(e, HB_AX_EXPERT) * tp / et, d = width_of(e);
    double rows = e->tokens * (double)m->top_k * et / tp, here = (double)m->experts / ways;
    bool apart = e->spec->runtime.framework == HB_FW_MEGATRON && is_split(e);
    double own = apart ? e->resid_tokens * (double)m->top_k : rows;
    add_router(e, l, m);
    add_kernel(e, l, "sort tokens by expert", own * d, row_copy);
    add_exchange(e, l, "tokens to the experts", own);
    add_expert_tensor(e, l, rows, false);
    add_local_sort(e, l, here, rows * d);
    add_mlp(e, l, m->kind, rows / here, (double)m->d_ff / et, here);
    add_expert_bias(e, l, m, rows * d);
    add_local_sort(e, l, here, rows * d);
    add_expert_tensor(e, l, rows, true);
    add_exchange(e, l, "tokens back from the experts", own);
    add_kernel(e, l, "weigh and add the experts' rows", own * d, row_copy);
}

static void add_feed_forward(struct hb_eager *e, struct hb_eager_layer *l, const struct hb_block *b)
{
    double tp = tensor_ways(e);
    add_norm(e, l, b);
    if (b->moe.experts > 0) {
        add_experts(e, l, &b->moe);
        if (b->moe.shared_d_ff > 0)
            add_mlp(e, l, b->moe.kind, e->tokens, (double)b->moe.shared_d_ff / tp, 1);
    } else {
        enter_tensor(e, l);
        add_mlp(e, l, b->mlp.kind, e->tokens, (double)b->mlp.d_ff / tp, 1);
        add_bias(e, l, b->mlp.bias, e->tokens * ((double)b->mlp.d_ff / tp + width_of(e)));
        leave_tensor(e, l);
    }
    add_residual(e, l, b);
}

/* --- rematerialisation --- */

static const struct {
    const char *name;
    uint32_t tensors; /* of its result */
} products[] = {
    {"q", 1u << HB_TN_Q},
    {"k", 1u << HB_TN_K},
    {"v", 1u << HB_TN_V},
    {"qkv", 1u << HB_TN_QKV | 1u << HB_TN_Q | 1u << HB_TN_K | 1u << HB_TN_V},
    {"q down", 1u << HB_TN_MLA_Q},
    {"kv down", 1u << HB_TN_MLA_KV},
    {"flash attention", 1u << HB_TN_ATTN_CTX},
    {"scores times values", 1u << HB_TN_ATTN_CTX},
    {"attention output", 1u << HB_TN_ATTN_OUT},
    {"mlp gate and up", 1u << HB_TN_MLP_GATE | 1u << HB_TN_MLP_UP},
    {"mlp gate", 1u << HB_TN_MLP_GATE},
    {"mlp up", 1u << HB_TN_MLP_UP},
    {"mlp down", 1u << HB_TN_MLP_DOWN},
};

static bool is_saved(const struct hb_piece *piece, uint32_t kept)
{
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        if (hb_str_same(products[i].name, piece->name))
            return (products[i].tensors & ~kept) == 0;
    return false;
}

/* Of a whole layer that is made again, whether this piece is. What nothing later reads (from the
 * last product on) is left out by torch's checkpoint, not by Megatron's. */
static bool is_remade(const struct hb_eager *e, const struct hb_remat *r, const struct hb_piece *p,
                      bool last)
{
    if (last && e->spec->runtime.framework != HB_FW_MEGATRON)
        return false;
    switch (r->policy) {
    case HB_POLICY_NONE:
        return false;
    case HB_POLICY_FULL:
        return true;
    case HB_POLICY_DOTS:
    case HB_POLICY_DOTS_NO_BATCH:
        return p->kind != HB_OP_MATMUL;
    case HB_POLICY_NAMES:
        return !is_saved(p, r->save | r->offload);
    }
    return false;
}

static void mark_remade(struct hb_eager *e, struct hb_eager_layer *l, const struct hb_remat *r)
{
    if (r->policy == HB_POLICY_NONE)
        return;
    bool last = true;
    for (uint32_t i = l->count; i-- > 0;) {
        l->pieces[i].remade = is_remade(e, r, &l->pieces[i], last);
        last = last && l->pieces[i].kind != HB_OP_MATMUL;
    }
}

struct hb_remat hb_eager_remat(const struct hb_eager *e, const struct hb_block *block)
{
    return hb_knapsack_remat(e->arena, e->spec, block, (int64_t)e->tokens,
                             hb_dtype_bits(e->spec->precision.compute) / 8);
}

void hb_eager_layer_build(struct hb_eager *e, const struct hb_block *block, int64_t at, bool remat,
                          struct hb_eager_layer *out)
{
    *out = (struct hb_eager_layer){0};
    add_attention(e, out, block, at);
    add_feed_forward(e, out, block);
    bool norms = e->spec->remat.modules & 1u << HB_RM_LAYERNORM;
    for (uint32_t i = 0; i < out->count && norms; i++)
        if (hb_str_same(out->pieces[i].name, "norm"))
            out->pieces[i].remade = true;
    struct hb_remat r = hb_eager_remat(e, block);
    if (remat)
        mark_remade(e, out, &r);
}

double hb_eager_layer_flops(const struct hb_eager_layer *layer)
{
    double sum = 0;
    for (uint32_t i = 0; i < layer->count; i++)
        sum += layer->pieces[i].flops;
    return sum;
}
