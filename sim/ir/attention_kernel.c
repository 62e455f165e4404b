/* What attention makes of q, k and v: see attention_kernel.h. */
#include "sim/ir/attention_kernel.h"

#include <math.h>

#include "base/diag.h"
#include "base/size.h"
#include "sim/ir/order.h"

struct hb_value hb_attention_kernel_value(const struct hb_lower *lo, const char *name,
                                          uint32_t tags, const struct hb_attention_heads *h,
                                          int64_t heads, int64_t dim)
{
    struct hb_value v = hb_layer_tensor(
        lo, name, tags,
        hb_shape_make(lo->compute, (const int64_t[]){h->batch, heads, h->seq, dim, -1}));
    if (h->fused_kernel)
        v.tiling = lo->habits->kernel_tiling;
    return v;
}

/* Scores of one query over `keys` keys, and their product with the values. */
static double score_flops(const struct hb_attention_heads *h, double keys)
{
    return 2.0 * (double)h->batch * (double)h->q * (double)h->seq * keys *
           (double)(h->qk_dim + h->v_dim);
}

/* Keys that a query of a flash kernel meets on average: the kernel skips blocks that the mask hides
 * whole and computes the others whole. MaxText's own blocks are not those that its speeds were
 * published with: of 18 recipes for Trillium and 50 for TPU7x none sets sa_block_q below 1024
 * (AI-Hypercomputer/tpu-recipes). */
static double keys_met(const struct hb_lower *lo, const struct hb_layer *y,
                       const struct hb_attention_heads *h)
{
    const struct hb_attention *a = &y->block->attention;
    int64_t window = a->windows[a->window_count > 1 ? y->at : 0];
    int64_t run = hb_larger(lo->habits->attention_block, lo->chip->recipes_block);
    int64_t block = hb_smaller(run, h->kv_seq);
    double blocks = (double)hb_div_up(h->kv_seq, block), reach = blocks;
    if (a->mask == HB_MASK_NONE && window == 0)
        return (double)h->kv_seq;
    if (window > 0 && window < h->kv_seq)
        reach = fmin((double)hb_div_up(window - 1, block) + 1, blocks);
    /* row i of blocks reaches min(i + 1, reach) of them */
    return (double)block * (reach - reach * (reach - 1) / (2 * blocks));
}

/* Products of the backward pass per two of the forward pass: scores again, dv, dp, dq, dk; two
 * kernels make scores and dp each for themselves. All published recipes for TPU7x ask for the fused
 * one (AI-Hypercomputer/tpu-recipes, training/ironwood: sa_use_fused_bwd_kernel=True). */
static double backward_share(const struct hb_lower *lo, const struct hb_block *block)
{
    bool fused = block->attention.fused_backward || block->attention.flash == HB_FLASH_TOKAMAX ||
                 lo->chip->fused_backward;
    return lo->habits->attention_split && !fused ? 3.5 : 2.5;
}

/* A fused backward kernel leaves a part of dq for each block of keys, in q's dtype (splash: jax's
 * splash_attention_kernel.py, dq_shape; llama3-8b with sa_use_fused_bwd_kernel:
 * bf16[2,8,32,4096,128]) or in f32 (tokamax, which has no other: f32[2,8,32,4096,128]). The
 * blocks are set (sa_block_kv_dkv), or dq is summed in three parts (dq_reduction_steps). */
static struct hb_shape dq_parts(const struct hb_lower *lo, const struct hb_attention *a,
                                const struct hb_attention_heads *h)
{
    bool tokamax = a->flash == HB_FLASH_TOKAMAX;
    if (!tokamax && !a->fused_backward)
        return (struct hb_shape){.rank = 0};
    int64_t block = lo->habits->attention_block;
    int64_t parts = a->dq_parts ? a->dq_parts : hb_div_up(h->kv_seq, block);
    return hb_shape_make(tokamax ? HB_DT_F32 : lo->compute,
                         (const int64_t[]){h->batch, parts, h->q, h->seq, h->qk_dim, -1});
}

/* Whatever else a policy keeps (llama3-8b of MaxText with query_proj, key_proj and value_proj on
 * the device: f32[2,32,4096,128] beside the MLP; phi-4 and mistral-7b, v5p, attn_out kept). */
static bool is_kernel_remade(const struct hb_remat *r)
{
    bool named = r->policy == HB_POLICY_NAMES && !((r->save | r->offload) & 1u << HB_TN_ATTN_CTX);
    return r->policy == HB_POLICY_FULL || named;
}

static int flash(struct hb_lower *lo, struct hb_layer *y, const struct hb_attention_heads *h, int q,
                 int k, int v)
{
    struct hb_shape lanes = hb_shape_make(
        HB_DT_F32, (const int64_t[]){h->batch, h->q, h->seq, lo->habits->lse_lanes, -1});
    struct hb_shape lse = hb_shape_make(HB_DT_F32, (const int64_t[]){h->batch, h->q, h->seq, -1});
    /* 1B/base: between rings the kernel's own copy, a lane for each, waits for the backward pass
     * (f32[2,32,4096,128] from 1261 to 1533), between padded gathers too; elsewhere it is narrowed
     * at once (bwd/base, 70B). */
    bool waits = hb_in_rings(lo) || hb_gathers_padded(lo);
    if (waits && (is_kernel_remade(&y->block->remat) || hb_layer_keeps_wide(lo, y)))
        lse = lanes;
    /* Splash names its residuals as the model names the context; cuDNN's have no name, so that
     * names:attn_ctx keeps the context alone and the kernel runs again (8B,v6e8x8,f64,b128: one
     * stack bf16[32,2,4096,32,128]; TPU: two). */
    uint32_t tags = lo->habits->kernel_names_result ? 1u << HB_TN_ATTN_CTX : 0;
    int o = hb_layer_value(
        lo, y,
        hb_attention_kernel_value(lo, "attention result of the kernel", tags, h, h->q, h->v_dim));
    int e = hb_layer_value(lo, y, hb_layer_tensor(lo, "attention log-sum-exp", tags, lse));
    double flops = score_flops(h, keys_met(lo, y, h));
    struct hb_step_op s = {.kind = HB_STEP_MIX,
                           .op = HB_OP_ATTENTION,
                           .name = "flash attention",
                           .in = {q, k, v},
                           .in_count = 3,
                           .out = {o, e},
                           .out_count = 2,
                           .leaf = HB_NONE,
                           .flops = flops,
                           .back_flops = flops * backward_share(lo, y->block),
                           .rows = h->seq,
                           .cols = h->kv_seq,
                           .depth = h->qk_dim,
                           .back_in = 7,
                           .back_out = 3,
                           .scratch = {lanes},
                           .scratch_count = lo->habits->lse_lanes > 1,
                           .back_scratch = {lanes},
                           .back_scratch_count = lo->habits->lse_lanes > 1};
    struct hb_shape parts = dq_parts(lo, &y->block->attention, h);
    if (parts.rank)
        s.back_scratch[s.back_scratch_count++] = parts;
    hb_layer_step(lo, y, s);
    return o;
}

static struct hb_value score_value(const struct hb_lower *lo, const char *name,
                                   const struct hb_attention_heads *h, enum hb_dtype dtype)
{
    return hb_layer_tensor(
        lo, name, 0,
        hb_shape_make(dtype, (const int64_t[]){h->batch, h->q, h->seq, h->kv_seq, -1}));
}

/* What the kernels of XLA:GPU's attention move that is written out, for each score of `wide` bytes
 * and probability of `narrow` ones: the program has one for the product, the maximum, the sum, the
 * quotient and the second product (xla-h100/11-mistral7b: 20 bytes a score; those of the softmax
 * alone 14), and eight or nine in its backward pass (54 with the scores made again). */
struct traffic {
    double all, softmax, all_back, softmax_back;
};

/* Nothing where one kernel has it all: then each operand and result is moved once. */
static struct traffic traffic_of(const struct hb_lower *lo, const struct hb_shape *scores,
                                 const struct hb_attention_heads *h)
{
    double count = (double)h->batch * (double)h->q * (double)h->seq * (double)h->kv_seq;
    double wide = hb_dtype_bits(scores->dtype) / 8.0, narrow = hb_dtype_bits(lo->compute) / 8.0;
    if (!lo->habits->softmax_apart)
        return (struct traffic){0};
    return (struct traffic){.all = count * (4 * wide + 2 * narrow),
                            .softmax = count * (3 * wide + narrow),
                            .all_back = count * (11 * wide + 5 * narrow),
                            .softmax_back = count * (6 * wide + 2 * narrow)};
}

static int softmax(struct hb_lower *lo, struct hb_layer *y, const struct hb_attention_heads *h,
                   int scores, struct hb_value probabilities)
{
    const struct hb_shape wide = y->values[scores].shape;
    struct traffic traffic = traffic_of(lo, &wide, h);
    return hb_layer_make(
        lo, y, probabilities,
        (struct hb_step_op){.op = HB_OP_ELEMENTWISE,
                            .name = "softmax",
                            .grad_follows = true,
                            .back_scratch = {wide},
                            .back_scratch_count = lo->habits->naive_score_copies - 1,
                            .mask_read = lo->habits->mask_hoisted,
                            .in = {scores},
                            .in_count = 1,
                            .back_in = 1,
                            .back_out = lo->habits->naive_score_copies > 1,
                            .moved_bytes = traffic.softmax,
                            .back_moved_bytes = traffic.softmax_back,
                            .flops = 5.0 * (double)hb_shape_elements(&wide)});
}

static int naive(struct hb_lower *lo, struct hb_layer *y, const struct hb_attention_heads *h, int q,
                 int k, int v)
{
    enum hb_dtype wide = y->block->attention.softmax;
    y->mask_shape = score_value(lo, "", h, wide).shape;
    struct hb_value scores = score_value(lo, "attention scores", h, wide);
    scores.batch_dot = true;
    /* XLA:GPU's backward products want them by keys: stacks of scores and probabilities are copied,
     * one after the other, before the backward loop (tiny/remat=none: f32[4,8,16,1,2048,2048] twice
     * beside the bf16 one; tiny/base with remat=dots: twice). */
    scores.restacked = lo->habits->mask_hoisted;
    /* XLA:TPU's softmax reads a layer's out of the stack (bwd/attn=naive,remat=dots: no f32 scores
     * but f32[4,8,8,2048,2048]). */
    scores.read_stacked = lo->habits->rings;
    struct hb_value probs = score_value(lo, "attention probabilities", h, lo->compute);
    probs.cheap = lo->habits->probabilities_remade;
    probs.restacked = scores.restacked;
    struct hb_value ctx = hb_attention_kernel_value(lo, "attention result", 0, h, h->q, h->v_dim);
    ctx.batch_dot = true;
    struct hb_step_op product = {.op = HB_OP_MATMUL,
                                 .rows = h->seq,
                                 .cols = h->kv_seq,
                                 .depth = h->qk_dim,
                                 .batch = (double)h->batch * (double)h->q,
                                 .flops = score_flops(h, (double)h->kv_seq) / 2,
                                 .in = {q, k},
                                 .in_count = 2,
                                 .back_in = 3};
    int s = hb_layer_make(lo, y, scores, product);
    product.in[0] = softmax(lo, y, h, s, probs);
    product.in[1] = v;
    product.cols = h->v_dim;
    product.depth = h->kv_seq;
    /* tiny/base: f32 scores and one set of bf16 probabilities; a second where XLA:GPU's product has
     * no batch, of one sequence and one head of keys (gemma-2b over fsdp 16 and sequence 2:
     * gemm_fusion_dot.99, bf16[65536,16384], beside input_convert_transpose_fusion). */
    product.grad_in_place = h->batch * h->kv > 1;
    return hb_layer_make(lo, y, ctx, product);
}

/* ROCm fuses the turns of a block's scores into the ops that read them where they are neither
 * small nor large, and fewer than eight heads share a key: the gradient stands in bf16 beside the
 * three (8B,f16,b4,v32k with one sequence a device: bf16[8,2048,4096] from 441 to 448, f32 from
 * 442, 447 and 448 on; three f32 alone for 128 MiB, for 512 and for eight heads a key). */
static bool is_turn_fused(const struct hb_attention_heads *h, const struct hb_shape *wide)
{
    enum { FUSED_ABOVE = 128 << 20, FUSED_BELOW = 512 << 20, FUSED_HEADS = 8 };
    int64_t bytes = hb_shape_plain_bytes(wide);
    return h->q < FUSED_HEADS * h->kv && bytes > FUSED_ABOVE && bytes < FUSED_BELOW;
}

/* What a block of queries holds backwards: two of scores in f32 and two in bf16 (bwd/base); with
 * grouped queries three in f32 (1B/loss=chunk: f32[2,8,4,512,4096] in three orders, at 483 of 616),
 * in layers of a stage side by side two and one in bf16 (pr85/pp8/good: at 725 of 1103). */
static void hold_block(const struct hb_lower *lo, struct hb_step_op *s,
                       const struct hb_attention_heads *h)
{
    struct hb_shape wide = s->scratch[0], narrow = s->scratch[1];
    bool grouped = h->q != h->kv;
    /* ep2pp4/good,replicate: three of f32[64,4096,2048] at 1413. */
    bool stage = hb_is_unrolled(lo) && lo->expert_batch != HB_EXPERTS_GATHERED;
    s->back_scratch[0] = s->back_scratch[1] = wide;
    s->back_scratch[2] = grouped && !stage ? wide : narrow;
    s->back_scratch[3] = narrow;
    s->back_scratch_count = grouped && !is_turn_fused(h, &wide) ? 3 : 4;
    /* The block of q, of the result's gradient and of q's own (bf16[1,1,4,8,128,512,4]). */
    if (s->back_scratch_count == 3)
        s->back_scratch[s->back_scratch_count++] =
            hb_shape_make(lo->compute, (const int64_t[]){3, h->batch, h->q, s->rows, h->v_dim, -1});
}

/* Queries in blocks, each with all its keys: scores of one block at a time. */
static int blocked(struct hb_lower *lo, struct hb_layer *y, const struct hb_attention_heads *h,
                   int q, int k, int v)
{
    struct hb_attention_heads block = *h;
    block.seq = hb_smaller(block.seq, y->block->attention.block);
    struct hb_shape wide = hb_shape_make(
        y->block->attention.softmax, (const int64_t[]){h->batch, h->q, block.seq, h->kv_seq, -1});
    struct hb_shape narrow = wide;
    narrow.dtype = lo->compute;
    struct traffic traffic = traffic_of(lo, &wide, h);
    int o = hb_layer_value(lo, y,
                           hb_attention_kernel_value(lo, "attention result", 0, h, h->q, h->v_dim));
    struct hb_step_op s = {.kind = HB_STEP_MIX,
                           .op = HB_OP_MATMUL,
                           .name = "attention by query blocks",
                           .in = {q, k, v},
                           .in_count = 3,
                           .out = {o},
                           .out_count = 1,
                           .leaf = HB_NONE,
                           .flops = score_flops(h, (double)h->kv_seq),
                           .rows = block.seq,
                           .cols = h->kv_seq,
                           .depth = h->qk_dim,
                           .batch = (double)h->batch * (double)h->q,
                           .back_in = 7,
                           .moved_bytes = traffic.all,
                           .back_moved_bytes = traffic.all_back,
                           .scratch = {wide, narrow},
                           .scratch_count = 2};
    hold_block(lo, &s, h);
    /* Policy dots keeps the scores of all blocks: a stack as the forward loop makes them, copied
     * for the backward loop (rnd/031: two f32[16,4,32,2,512,1,2048]), of layers side by side in the
     * layer's own backward pass (rocm-rnd/047). A product of one sequence and one head of keys
     * reads either order (d2k, fsdp 8). They are of all devices of a sequence axis. */
    struct hb_attention_heads all = *h;
    all.seq = h->kv_seq;
    struct hb_value scores =
        score_value(lo, "attention scores of all blocks", &all, y->block->attention.softmax);
    scores.batch_dot = scores.fused = scores.dots_only = true;
    scores.restacked = h->batch > 1 || h->kv > 1;
    s.out[s.out_count++] = hb_layer_value(lo, y, scores);
    hb_layer_step(lo, y, s);
    return o;
}

int hb_attention_kernel(struct hb_lower *lo, struct hb_layer *y, const struct hb_attention_heads *h,
                        int q, int k, int v)
{
    switch (y->block->attention.kernel) {
    case HB_KERNEL_FLASH:
        return flash(lo, y, h, q, k, v);
    case HB_KERNEL_NAIVE:
        return naive(lo, y, h, q, k, v);
    case HB_KERNEL_BLOCKED:
        return blocked(lo, y, h, q, k, v);
    }
    HB_BUG("attention kernel %d", (int)y->block->attention.kernel);
}
