/* Attention as values and steps: grouped-query and multi-head latent attention, with a flash
 * kernel (keeps its operands, its result and the log-sum-exp), naive (materialises scores and
 * probabilities), or blocked by queries. Layouts are those read in the compilers' schedules: a
 * kernel's operands are [batch, heads, seq, head_dim] with head_dim along the lanes. */
#include "base/diag.h"
#include "base/size.h"
#include "sim/ir/layer.h"
#include "sim/ir/order.h"
#include "sim/ir/sequence.h"

struct heads {
    int64_t batch;
    int64_t seq;    /* queries on this device */
    int64_t kv_seq; /* keys: gathered over the sequence axis */
    int64_t q;      /* query heads on this device */
    int64_t kv;     /* key heads on this device */
    int64_t qk_dim;
    int64_t v_dim;
    int64_t kv_ways;
    bool fused_kernel;
};

static int64_t split_heads(int64_t heads, int64_t ways)
{
    return (heads + ways - 1) / ways;
}

static struct heads find_heads(const struct hb_lower *lo, const struct hb_block *b, int64_t batch)
{
    const struct hb_attention *a = &b->attention;
    int64_t tp = hb_ways(lo, HB_AX_TENSOR);
    bool mla = a->kind == HB_ATTN_MLA;
    int64_t kv_heads = mla ? a->heads : a->kv_heads;
    struct heads h = {.batch = batch, .seq = lo->local.seq, .kv_seq = lo->spec->batch.seq};
    h.fused_kernel = a->kernel == HB_KERNEL_FLASH && a->kind != HB_ATTN_NONE;
    h.kv_ways = kv_heads % tp == 0 ? tp : 1;
    h.q = split_heads(a->heads, tp);
    h.kv = split_heads(kv_heads, h.kv_ways);
    h.qk_dim = mla ? a->qk_nope_head_dim + a->qk_rope_head_dim : a->head_dim;
    h.v_dim = mla ? a->v_head_dim : a->head_dim;
    return h;
}

/* --- weights --- */

/* A projection from or to heads; with split_heads the head count is a dimension of its own. */
struct head_dims {
    int64_t outer; /* width on the model's side */
    int64_t heads;
    int64_t dim;  /* of one head */
    int64_t ways; /* devices that share the heads */
};

/* MaxText's stacks keep heads apart from what is within one, which is what they are padded by
 * (deepseek3-671b/mu_bf16: f32[6,58,128,192] without padding, as [58,6,24576] 10 % more;
 * rand020/deepseek2-16b: f32[8,26,16,192] with a third more). */
static void keep_heads(struct hb_lower *lo, uint32_t leaf, int at, int64_t dim)
{
    if (!lo->maxtext)
        return;
    lo->leaves[leaf].head_at = at;
    lo->leaves[leaf].head_dim = dim;
}

static void head_leaf(struct hb_lower *lo, struct hb_layer *y, const char *name, struct head_dims h)
{
    bool apart = y->block->attention.split_heads;
    struct hb_split heads = {apart ? h.heads : h.heads * h.dim, h.ways};
    struct hb_split dims[3] = {{h.outer, 1}, heads, {h.dim, 1}};
    uint32_t leaf = hb_layer_matrix(lo, y, name, dims, apart ? 3 : 2, 0);
    lo->leaves[leaf].summed = 1;
    if (!apart)
        keep_heads(lo, leaf, 1, h.dim);
}

static void out_leaf(struct hb_lower *lo, struct hb_layer *y, int64_t heads, int64_t dim)
{
    bool apart = y->block->attention.split_heads;
    int64_t d = lo->spec->model.d_model;
    struct hb_split tp = {apart ? heads : heads * dim, hb_ways(lo, HB_AX_TENSOR)};
    struct hb_split dims[3] = {tp, {apart ? dim : d, 1}, {d, 1}};
    uint32_t leaf = hb_layer_matrix(lo, y, "wo", dims, apart ? 3 : 2, apart ? 2 : 1);
    lo->leaves[leaf].summed = apart ? 2 : 1;
    if (!apart)
        keep_heads(lo, leaf, 0, dim);
}

static void vector_leaf(struct hb_lower *lo, struct hb_layer *y, const char *name, int64_t size,
                        int64_t ways)
{
    struct hb_split dim = {size, ways};
    hb_layer_vector(lo, y, name, &dim, 1, -1);
}

static void plain_leaf(struct hb_lower *lo, struct hb_layer *y, const char *name, int64_t rows,
                       int64_t cols, int64_t col_ways)
{
    struct hb_split dims[2] = {{rows, 1}, {cols, col_ways}};
    hb_layer_matrix(lo, y, name, dims, 2, 0);
}

static void mla_leaves(struct hb_lower *lo, struct hb_layer *y)
{
    const struct hb_attention *a = &y->block->attention;
    int64_t d = lo->spec->model.d_model;
    int64_t tp = hb_ways(lo, HB_AX_TENSOR);
    int64_t qk = a->qk_nope_head_dim + a->qk_rope_head_dim;
    if (a->q_lora_rank) {
        plain_leaf(lo, y, "wq_a", d, a->q_lora_rank, 1);
        vector_leaf(lo, y, "q_norm", a->q_lora_rank, 1);
        head_leaf(lo, y, "wq_b", (struct head_dims){a->q_lora_rank, a->heads, qk, tp});
    } else {
        head_leaf(lo, y, "wq", (struct head_dims){d, a->heads, qk, tp});
    }
    plain_leaf(lo, y, "wkv_a", d, a->kv_lora_rank + a->qk_rope_head_dim, 1);
    vector_leaf(lo, y, "kv_norm", a->kv_lora_rank, 1);
    head_leaf(
        lo, y, "wkv_b",
        (struct head_dims){a->kv_lora_rank, a->heads, a->qk_nope_head_dim + a->v_head_dim, tp});
    out_leaf(lo, y, a->heads, a->v_head_dim);
}

static void gqa_leaves(struct hb_lower *lo, struct hb_layer *y)
{
    const struct hb_attention *a = &y->block->attention;
    int64_t d = lo->spec->model.d_model;
    int64_t tp = hb_ways(lo, HB_AX_TENSOR);
    int64_t kv_ways = a->kv_heads % tp == 0 ? tp : 1;
    if (a->fused_qkv) {
        head_leaf(lo, y, "wqkv",
                  (struct head_dims){d, a->heads + 2 * a->kv_heads, a->head_dim, tp});
    } else {
        head_leaf(lo, y, "wq", (struct head_dims){d, a->heads, a->head_dim, tp});
        head_leaf(lo, y, "wk", (struct head_dims){d, a->kv_heads, a->head_dim, kv_ways});
        head_leaf(lo, y, "wv", (struct head_dims){d, a->kv_heads, a->head_dim, kv_ways});
    }
    out_leaf(lo, y, a->heads, a->head_dim);
    if (a->bias != HB_BIAS_NONE) {
        vector_leaf(lo, y, "bq", a->heads * a->head_dim, tp);
        vector_leaf(lo, y, "bk", a->kv_heads * a->head_dim, kv_ways);
        vector_leaf(lo, y, "bv", a->kv_heads * a->head_dim, kv_ways);
    }
    if (a->bias == HB_BIAS_ALL)
        hb_layer_output_bias(lo, y, "bo");
    if (a->qk_norm == HB_QKN_LEARNED) {
        vector_leaf(lo, y, "q_norm", a->head_dim, 1);
        vector_leaf(lo, y, "k_norm", a->head_dim, 1);
    }
    if (a->sinks)
        vector_leaf(lo, y, "sinks", a->heads, 1);
}

void hb_layer_attention_leaves(struct hb_lower *lo, struct hb_layer *y)
{
    if (y->block->attention.kind == HB_ATTN_MLA)
        mla_leaves(lo, y);
    else
        gqa_leaves(lo, y);
}

/* --- values and steps --- */

static struct hb_value head_value(const struct hb_lower *lo, const char *name, uint32_t tags,
                                  struct hb_shape shape)
{
    return (struct hb_value){
        .name = name, .tags = tags, .shape = shape, .tiling = lo->habits->tiling};
}

/* [batch, heads, seq, dim], as kernels want it. */
static struct hb_value kernel_value(const struct hb_lower *lo, const char *name, uint32_t tags,
                                    const struct heads *h, int64_t heads, int64_t dim)
{
    struct hb_value v =
        head_value(lo, name, tags,
                   hb_shape_make(lo->compute, (const int64_t[]){h->batch, heads, h->seq, dim, -1}));
    if (h->fused_kernel)
        v.tiling = lo->habits->kernel_tiling;
    return v;
}

static int rotate(struct hb_lower *lo, struct hb_layer *y, int in, struct hb_value out_value)
{
    struct hb_shape s = y->values[in].shape;
    struct hb_shape wide = s;
    struct hb_shape half = s;
    wide.dtype = HB_DT_F32;
    half.dim[half.rank - 1] = half.dim[half.rank - 1] / 2;
    int out = hb_layer_value(lo, y, out_value);
    struct hb_step_op step = {.kind = HB_STEP_MIX,
                              .op = HB_OP_ELEMENTWISE,
                              .name = out_value.name,
                              .in = {in},
                              .in_count = 1,
                              .out = {out},
                              .out_count = 1,
                              .leaf = HB_NONE,
                              .flops = 4.0 * (double)hb_shape_elements(&s),
                              .scratch = {wide},
                              .scratch_count = 1,
                              .back_scratch = {wide},
                              .back_scratch_count = 1};
    hb_layer_step(lo, y, step);
    return out;
}

/* One of q, k: product, then norm and rotation where there are; v stops at the product. */
struct projection {
    const char *name;
    uint32_t tag;
    int64_t heads;
    bool rope;
};

static int project(struct hb_lower *lo, struct hb_layer *y, int in, const struct heads *h,
                   struct projection p)
{
    struct hb_value done = kernel_value(lo, p.name, 1u << p.tag, h, p.heads, h->qk_dim);
    uint32_t leaf = hb_layer_find_leaf(lo, y, hb_name(lo, "w", p.name));
    if (!p.rope) {
        done.dot = true;
        return hb_layer_product(lo, y, in, leaf, done);
    }
    struct hb_value raw = head_value(
        lo, hb_name(lo, p.name, " before rope"), 0,
        hb_shape_make(lo->compute, (const int64_t[]){h->batch, h->seq, p.heads, h->qk_dim, -1}));
    raw.dot = true;
    return rotate(lo, y, hb_layer_product(lo, y, in, leaf, raw), done);
}

/* Keys and values of the whole sequence on every device of the sequence axis. */
static int gather_keys(struct hb_lower *lo, struct hb_layer *y, int in, const struct heads *h,
                       const char *name)
{
    if (h->kv_seq == h->seq)
        return in;
    struct hb_value v = y->values[in];
    v.name = name;
    v.dot = false;
    v.shape.dim[2] = h->kv_seq;
    /* The lab's program names what is gathered; with all_gather the program names its own part and
     * gathers inside the attention (rand007/gemma2-9b). */
    if (lo->spec->sharding.sequence_kind == HB_SEQ_ALL_GATHER)
        v.tags = 0;
    else
        y->values[in].tags = 0;
    return hb_layer_move(lo, y, HB_OP_ALL_GATHER, HB_AX_SEQUENCE, in, v);
}

/* Scores of one query over `keys` keys, and their product with the values. */
static double score_flops(const struct heads *h, double keys)
{
    return 2.0 * (double)h->batch * (double)h->q * (double)h->seq * keys *
           (double)(h->qk_dim + h->v_dim);
}

/* MaxText's own blocks are not those that its speeds were published with: of 18 recipes for
 * Trillium and 50 for TPU7x none sets sa_block_q below 1024 (AI-Hypercomputer/tpu-recipes). */
static int64_t block_run(const struct hb_lower *lo)
{
    return hb_larger(lo->habits->attention_block, lo->chip->recipes_block);
}

/* Keys that a query of a flash kernel meets on average: the kernel skips blocks that the mask hides
 * whole and computes the others whole. */
static double keys_met(const struct hb_lower *lo, const struct hb_layer *y, const struct heads *h)
{
    const struct hb_attention *a = &y->block->attention;
    int64_t window = a->windows[a->window_count > 1 ? y->at : 0];
    int64_t block = hb_smaller(block_run(lo), h->kv_seq);
    double blocks = (double)hb_div_up(h->kv_seq, block), reach = blocks;
    if (a->mask == HB_MASK_NONE && window == 0)
        return (double)h->kv_seq;
    if (window > 0 && window < h->kv_seq)
        reach = (double)hb_div_up(window - 1, block) + 1;
    if (reach > blocks)
        reach = blocks;
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
                                const struct heads *h)
{
    bool tokamax = a->flash == HB_FLASH_TOKAMAX;
    if ((!tokamax && !a->fused_backward) || !lo->habits->attention_split)
        return (struct hb_shape){.rank = 0};
    int64_t block = lo->habits->attention_block;
    int64_t parts = a->dq_parts ? a->dq_parts : hb_div_up(h->kv_seq, block);
    return hb_shape_make(tokamax ? HB_DT_F32 : lo->compute,
                         (const int64_t[]){h->batch, parts, h->q, h->seq, h->qk_dim, -1});
}

/* Whatever else a policy keeps (llama3-8b of MaxText with query_proj, key_proj and value_proj on
 * the device: f32[2,32,4096,128] beside the MLP; phi-4, v5p, f32 and mistral-7b, v5p, f64 with
 * attn_out kept: f32[8,40,8192,128], f32[4,32,16384,128]). */
static bool is_kernel_remade(const struct hb_remat *r)
{
    bool named = r->policy == HB_POLICY_NAMES && !((r->save | r->offload) & 1u << HB_TN_ATTN_CTX);
    return r->policy == HB_POLICY_FULL || named;
}

static int flash(struct hb_lower *lo, struct hb_layer *y, const struct heads *h, int q, int k,
                 int v)
{
    struct hb_shape lanes = hb_shape_make(
        HB_DT_F32, (const int64_t[]){h->batch, h->q, h->seq, lo->habits->lse_lanes, -1});
    struct hb_shape lse = hb_shape_make(HB_DT_F32, (const int64_t[]){h->batch, h->q, h->seq, -1});
    /* 1B/base: between rings the kernel's own copy, a lane for each, waits for the backward pass
     * (f32[2,32,4096,128] from 1261 to 1533); between padded
     * gathers too (8B64/base: f32[32,4096,128]); elsewhere it is narrowed at once (bwd/base, 70B).
     */
    bool waits = hb_in_rings(lo) || lo->gather_form == HB_GATHER_PADDED;
    if (waits && (is_kernel_remade(&y->block->remat) || hb_layer_keeps_wide(lo, y)))
        lse = lanes;
    /* Splash names its residuals as the model names the context; cuDNN's have no name, so that
     * names:attn_ctx keeps the context alone and the kernel runs again (8B,v6e8x8,f64,b128: one
     * stack bf16[32,2,4096,32,128]; TPU: two). */
    uint32_t tags = lo->habits->kernel_names_result ? 1u << HB_TN_ATTN_CTX : 0;
    int o = hb_layer_value(
        lo, y, kernel_value(lo, "attention result of the kernel", tags, h, h->q, h->v_dim));
    int e = hb_layer_value(lo, y, head_value(lo, "attention log-sum-exp", tags, lse));
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
                                   const struct heads *h, enum hb_dtype dtype)
{
    return head_value(
        lo, name, 0,
        hb_shape_make(dtype, (const int64_t[]){h->batch, h->q, h->seq, h->kv_seq, -1}));
}

/* What the kernels of XLA:GPU's attention move that is written out, for each score of `wide` bytes
 * and probability of `narrow` ones: the program has one for the product, the maximum, the sum, the
 * quotient and the second product (xla-h100/11-mistral7b: 20 bytes a score; those of the softmax
 * alone 14), and eight or nine in its backward pass (54 with the scores made again, of which the
 * products and their scores have 30; 20-qwen3-4b: 40, the softmax's own 28). */
struct traffic {
    double all, softmax, all_back, softmax_back;
};

/* Nothing where one kernel has it all: then each operand and result is moved once. */
static struct traffic traffic_of(const struct hb_lower *lo, const struct hb_shape *scores,
                                 const struct heads *h)
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

static void softmax(struct hb_lower *lo, struct hb_layer *y, const struct heads *h, int scores,
                    int probabilities)
{
    const struct hb_shape wide = y->values[scores].shape;
    struct traffic traffic = traffic_of(lo, &wide, h);
    hb_layer_step(lo, y,
                  (struct hb_step_op){.kind = HB_STEP_MIX,
                                      .op = HB_OP_ELEMENTWISE,
                                      .grad_follows = true,
                                      .back_scratch = {wide},
                                      .back_scratch_count = lo->habits->naive_score_copies - 1,
                                      .mask_read = lo->habits->mask_hoisted,
                                      .name = "softmax",
                                      .in = {scores},
                                      .in_count = 1,
                                      .out = {probabilities},
                                      .out_count = 1,
                                      .leaf = HB_NONE,
                                      .back_in = 1,
                                      .back_out = lo->habits->naive_score_copies > 1,
                                      .moved_bytes = traffic.softmax,
                                      .back_moved_bytes = traffic.softmax_back,
                                      .flops = 5.0 * (double)hb_shape_elements(&wide)});
}

static int naive(struct hb_lower *lo, struct hb_layer *y, const struct heads *h, int q, int k,
                 int v)
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
    int s = hb_layer_value(lo, y, scores);
    struct hb_value probs = score_value(lo, "attention probabilities", h, lo->compute);
    probs.cheap = lo->habits->probabilities_remade;
    probs.restacked = scores.restacked;
    int p = hb_layer_value(lo, y, probs);
    struct hb_value ctx = kernel_value(lo, "attention result", 0, h, h->q, h->v_dim);
    ctx.batch_dot = true;
    int o = hb_layer_value(lo, y, ctx);
    double half = score_flops(h, (double)h->kv_seq) / 2;
    struct hb_step_op product = {.kind = HB_STEP_MIX,
                                 .op = HB_OP_MATMUL,
                                 .leaf = HB_NONE,
                                 .rows = h->seq,
                                 .cols = h->kv_seq,
                                 .depth = h->qk_dim,
                                 .batch = (double)h->batch * (double)h->q,
                                 .flops = half,
                                 .in_count = 2,
                                 .out_count = 1,
                                 .back_in = 3};
    struct hb_step_op step = product;
    step.name = "attention scores";
    step.in[0] = q;
    step.in[1] = k;
    step.out[0] = s;
    hb_layer_step(lo, y, step);
    softmax(lo, y, h, s, p);
    step = product;
    step.name = "attention result";
    step.in[0] = p;
    step.in[1] = v;
    step.out[0] = o;
    step.cols = h->v_dim;
    step.depth = h->kv_seq;
    /* tiny/base: f32 scores and one set of bf16 probabilities; a second where XLA:GPU's product has
     * no batch, of one sequence and one head of keys (gemma-2b over fsdp 16 and sequence 2:
     * gemm_fusion_dot.99, bf16[65536,16384], beside input_convert_transpose_fusion). */
    step.grad_in_place = h->batch * h->kv > 1 || lo->habits->naive_score_copies == 1;
    hb_layer_step(lo, y, step);
    return o;
}

/* ROCm fuses the turns of a block's scores into the ops that read them where they are neither
 * small nor large, and fewer than eight heads share a key: the gradient stands in bf16 beside the
 * three (8B,f16,b4,v32k with one sequence a device: bf16[8,2048,4096] from 441 to 448, f32 from
 * 442, 447 and 448 on; f32[8,4096,3072] and two sequences of [4,4096,2048] and of [8,2048,2048]
 * alike; transposes of their own, three f32 alone, for 128 MiB, [8,4096,1024] and [4,4096,2048],
 * for 512, [2,8,4,512,4096] and [1,16,4,512,4096], and for eight and sixteen heads a key). */
static bool is_turn_fused(const struct heads *h, const struct hb_shape *wide)
{
    enum { FUSED_ABOVE = 128 << 20, FUSED_BELOW = 512 << 20, FUSED_HEADS = 8 };
    int64_t bytes = hb_shape_plain_bytes(wide);
    return h->q < FUSED_HEADS * h->kv && bytes > FUSED_ABOVE && bytes < FUSED_BELOW;
}

static bool is_softmax_fused(const struct heads *h, const struct hb_shape *wide)
{
    int64_t bytes = hb_shape_plain_bytes(wide);
    return h->q > h->kv && h->q < 8 * h->kv && (bytes >= (int64_t)2048 << 20);
}

/* What a block of queries holds backwards: two of scores in f32 and two in bf16 (bwd/base); with
 * grouped queries the gradient is turned before it is cast, and three in f32 are there (1B/loss=
 * chunk: f32[2,8,4,512,4096] thrice, in three orders, at 483 of 616; 8B,f16,b4,v32k), in layers of
 * a stage side by side two and one in bf16 (pr85/pp8/good: at 725 of 1103), and depth-first
 * (tied/1B, t8,tied,chunk8: at 348 of 554). */
static void hold_block(const struct hb_lower *lo, struct hb_step_op *s, const struct heads *h,
                       int64_t together)
{
    struct hb_shape wide = s->scratch[0], narrow = s->scratch[1];
    bool grouped = h->q != h->kv;
    /* ep2pp4/good,replicate: three of f32[64,4096,2048] at 1413. */
    bool stage = lo->spec->stack.form == HB_FORM_LOOP && lo->expert_batch != HB_EXPERTS_GATHERED;
    s->back_scratch[0] = s->back_scratch[1] = wide;
    bool fused = together < 2 && is_softmax_fused(h, &wide);
    s->back_scratch[2] = grouped && !fused && !stage && !hb_order_depth(lo) ? wide : narrow;
    s->back_scratch[3] = narrow;
    s->back_scratch_count =
        grouped && (fused || hb_order_depth(lo) || !is_turn_fused(h, &wide)) ? 3 : 4;
    /* The block of q, of the result's gradient and of q's own (bf16[1,1,4,8,128,512,4] from 704).
     */
    if (s->back_scratch_count == 3)
        s->back_scratch[s->back_scratch_count++] =
            hb_shape_make(lo->compute, (const int64_t[]){3, h->batch, h->q, s->rows, h->v_dim, -1});
}

/* Queries in blocks, each with all its keys: scores of one block at a time. */
static int blocked(struct hb_lower *lo, struct hb_layer *y, const struct heads *h, int q, int k,
                   int v)
{
    struct heads block = *h;
    if (y->block->attention.block < block.seq)
        block.seq = y->block->attention.block;
    struct hb_shape wide = hb_shape_make(
        y->block->attention.softmax, (const int64_t[]){h->batch, h->q, block.seq, h->kv_seq, -1});
    struct hb_shape narrow = wide;
    narrow.dtype = lo->compute;
    struct traffic traffic = traffic_of(lo, &wide, h);
    int o = hb_layer_value(lo, y, kernel_value(lo, "attention result", 0, h, h->q, h->v_dim));
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
    hold_block(lo, &s, h, y->together);
    /* Policy dots keeps the scores of all blocks, which the loop's trips share out: a stack as the
     * forward loop makes them, copied for the backward loop, which takes a layer's slice of it
     * (rnd/031: two f32[16,4,32,2,512,1,2048]; rnd/047 as a scan: f32[6,2,4,1,1024,512,16] to 213,
     * f32[6,2,4,16,512,1,1024] from there on); of layers side by side that copy is made in the
     * layer's own backward pass (rocm-rnd/047: five f32[2,4,1,1024,512,16], one in another order).
     * A product of one sequence and one head of keys reads either order (d2k, 8 over 1 heads, fsdp
     * 8, one sequence: f32[4,8,1,1,4096,512,8] alone; 16 over 8: f32[4,8,1,8,2,512,4096], too). A
     * loop over blocks has those of all devices of a sequence axis (fsdp 4 with sequence 2:
     * f32[4,8,2,8,4096,512,2], eight blocks of 512 of 4096 tokens). */
    struct heads all = *h;
    all.seq = h->kv_seq;
    struct hb_value scores =
        score_value(lo, "attention scores of all blocks", &all, y->block->attention.softmax);
    scores.batch_dot = scores.fused = scores.dots_only = true;
    scores.restacked = h->batch > 1 || h->kv > 1;
    s.out[s.out_count++] = hb_layer_value(lo, y, scores);
    hb_layer_step(lo, y, s);
    return o;
}

static int attend(struct hb_lower *lo, struct hb_layer *y, const struct heads *h, int q, int k,
                  int v)
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

/* Heads against positions over the sequence axis: from all heads of this device's positions to
 * its share of the heads at all positions, and back. */
static int exchange_heads(struct hb_lower *lo, struct hb_layer *y, int in, int64_t heads,
                          int64_t seq)
{
    struct hb_value v = y->values[in];
    v.name = hb_name(lo, v.name, ", exchanged over sequence");
    v.tags = 0;
    v.dot = false;
    v.shape.dim[1] = heads;
    v.shape.dim[2] = seq;
    return hb_layer_move(lo, y, HB_OP_ALL_TO_ALL, HB_AX_SEQUENCE, in, v);
}

/* TPU's kernels are no part of what XLA divides: where a program says no more than that the
 * activations' sequence is split, each device runs them over all of it, queries, result and row
 * sums too, and takes its own part of the result (8B, v5p, fsdp 8 and sequence 8: two
 * bf16[128,2048,32,128] and f32[128,32,2048,128] in a layer's backward pass). What is kept of it is
 * that part (llama2-7b, fsdp 2 and sequence 8, names:q,k,v,attn_ctx: bf16[32,16,32,512,128] beside
 * keys and values bf16[32,16,4096,32,128]). MaxText's programs divide the kernel by the query. */
static bool is_kernel_whole(const struct hb_lower *lo, const struct hb_layer *y,
                            const struct heads *h)
{
    return lo->habits->rings && !lo->maxtext && h->kv_seq > h->seq &&
           y->block->attention.kernel == HB_KERNEL_FLASH &&
           lo->spec->sharding.sequence_kind == HB_SEQ_RING;
}

static int attend_whole(struct hb_lower *lo, struct hb_layer *y, const struct heads *h,
                        const int qkv[3])
{
    struct heads whole = *h;
    whole.seq = h->kv_seq;
    uint32_t tags = y->values[qkv[0]].tags;
    int q = gather_keys(lo, y, qkv[0], h, "q, gathered over sequence");
    y->values[qkv[0]].tags = tags;
    y->values[q].tags = 0;
    int k = gather_keys(lo, y, qkv[1], h, "k, gathered over sequence");
    int v = gather_keys(lo, y, qkv[2], h, "v, gathered over sequence");
    int all = attend(lo, y, &whole, q, k, v);
    const struct hb_step_op *kernel = &y->steps[y->values[all].producer];
    for (int i = 0; i < kernel->out_count; i++)
        y->values[kernel->out[i]].in_parts = true;
    struct hb_value own = y->values[all];
    own.name = "own part of the kernel's result";
    own.tags = 0;
    own.shape.dim[2] = h->seq;
    return hb_layer_own_part(lo, y, HB_AX_SEQUENCE, all, own);
}

/* Attention where the sequence may be split: XLA programs gather keys and values whole (the lab's
 * constraint on k and v; a ring is not kept as one), or exchange heads for positions. */
static int attend_sequence(struct hb_lower *lo, struct hb_layer *y, const struct heads *h,
                           const int qkv[3])
{
    int64_t ways = hb_ways(lo, HB_AX_SEQUENCE);
    if (is_kernel_whole(lo, y, h))
        return attend_whole(lo, y, h, qkv);
    if (ways == 1 || lo->spec->sharding.sequence_kind != HB_SEQ_ALL_TO_ALL) {
        int k = gather_keys(lo, y, qkv[1], h, "k, gathered over sequence");
        int v = gather_keys(lo, y, qkv[2], h, "v, gathered over sequence");
        return attend(lo, y, h, qkv[0], k, v);
    }
    struct heads whole = *h;
    whole.seq = h->kv_seq;
    whole.q = split_heads(h->q, ways);
    whole.kv = split_heads(h->kv, ways);
    int q = exchange_heads(lo, y, qkv[0], whole.q, whole.seq);
    int k = exchange_heads(lo, y, qkv[1], whole.kv, whole.seq);
    int v = exchange_heads(lo, y, qkv[2], whole.kv, whole.seq);
    return exchange_heads(lo, y, attend(lo, y, &whole, q, k, v), h->q, h->seq);
}

/* The result back in [batch, seq, heads x dim]; then the output projection and its sum. */
static int project_out(struct hb_lower *lo, struct hb_layer *y, const struct heads *h, int o)
{
    /* Where heads are a dimension of the weights, the copy is a change of layout only, and one of
     * the two is kept: a kernel's result that has the name (llama3-8b/remat_custom_inputdev_ctxdev;
     * two in bwd/remat=names:attn_ctx), or this (qwen3-14b, fsdp 32, H100: bf16[40,2,8192,40,128]
     * for q and for it; all kept, olmo-7b, fsdp 32: bf16[32,2,4096,32,128] of q, k, v and one). */
    bool whole = y->block->attention.split_heads || lo->maxtext;
    bool named = false;
    for (uint32_t v = 0; v < y->value_count; v++)
        named = named || (whole && (y->values[v].tags & 1u << HB_TN_ATTN_CTX));
    struct hb_value ctx = head_value(
        lo, "attention context", named ? 0 : 1u << HB_TN_ATTN_CTX,
        hb_shape_make(lo->compute, (const int64_t[]){h->batch, h->seq, h->q * h->v_dim, -1}));
    ctx.relaid = whole && !named;
    int c = hb_layer_value(lo, y, ctx);
    hb_layer_step(lo, y,
                  (struct hb_step_op){.kind = HB_STEP_MIX,
                                      .op = HB_OP_COPY,
                                      .name = "attention context",
                                      .in = {o},
                                      .in_count = 1,
                                      .out = {c},
                                      .out_count = 1,
                                      .leaf = HB_NONE});
    struct hb_value out =
        head_value(lo, "attention output", 1u << HB_TN_ATTN_OUT, y->values[y->input].shape);
    out.dot = true;
    out.fused = true; /* summed with the residual where it is made */
    int a = hb_layer_product(lo, y, c, hb_layer_find_leaf(lo, y, "wo"), out);
    y->steps[y->step_count - 1].sum_parts = hb_ways(lo, HB_AX_TENSOR) > 1;
    y->steps[y->step_count - 1].axis = HB_AX_TENSOR;
    return a;
}

/* Low-rank q and kv: down, norm, up. */
struct rank_part {
    const char *down; /* names of its leaves */
    const char *norm;
    int64_t width;
    uint32_t tag;
};

static int low_rank(struct hb_lower *lo, struct hb_layer *y, int in, const struct heads *h,
                    struct rank_part p)
{
    struct hb_value v =
        head_value(lo, p.down, 0,
                   hb_shape_make(lo->compute, (const int64_t[]){h->batch, h->seq, p.width, -1}));
    v.dot = true;
    int low = hb_layer_product(lo, y, in, hb_layer_find_leaf(lo, y, p.down), v);
    int out = hb_layer_norm(lo, y, low, p.norm);
    y->values[out].fused = false;
    y->values[out].tags = 1u << p.tag;
    return out;
}

/* From the up-projection of kv: keys with the shared rotary part joined to each head. */
static void split_kv(struct hb_lower *lo, struct hb_layer *y, const struct heads *h, int up,
                     int *out_k, int *out_v)
{
    *out_k = hb_layer_value(lo, y, kernel_value(lo, "k", 1u << HB_TN_K, h, h->kv, h->qk_dim));
    *out_v = hb_layer_value(lo, y, kernel_value(lo, "v", 1u << HB_TN_V, h, h->kv, h->v_dim));
    hb_layer_step(
        lo, y,
        (struct hb_step_op){.kind = HB_STEP_MIX,
                            .op = HB_OP_ELEMENTWISE,
                            .name = "keys and values",
                            .in = {up},
                            .in_count = 1,
                            .out = {*out_k, *out_v},
                            .out_count = 2,
                            .leaf = HB_NONE,
                            .flops = 4.0 * (double)hb_shape_elements(&y->values[up].shape)});
}

static int mla(struct hb_lower *lo, struct hb_layer *y, int in, const struct heads *h)
{
    const struct hb_attention *a = &y->block->attention;
    int q_in = in;
    if (a->q_lora_rank)
        q_in = low_rank(lo, y, in, h,
                        (struct rank_part){"wq_a", "q_norm", a->q_lora_rank, HB_TN_MLA_Q});
    struct hb_value raw = head_value(
        lo, "q before rope", 0,
        hb_shape_make(lo->compute, (const int64_t[]){h->batch, h->seq, h->q, h->qk_dim, -1}));
    raw.dot = true;
    const char *wq = a->q_lora_rank ? "wq_b" : "wq";
    int q = hb_layer_product(lo, y, q_in, hb_layer_find_leaf(lo, y, wq), raw);
    q = rotate(lo, y, q, kernel_value(lo, "q", 1u << HB_TN_Q, h, h->q, h->qk_dim));
    int64_t kv_width = a->kv_lora_rank + a->qk_rope_head_dim;
    int low =
        low_rank(lo, y, in, h, (struct rank_part){"wkv_a", "kv_norm", kv_width, HB_TN_MLA_KV});
    struct hb_value up = head_value(
        lo, "kv, up projection", 0,
        hb_shape_make(lo->compute, (const int64_t[]){h->batch, h->seq, h->kv,
                                                     a->qk_nope_head_dim + a->v_head_dim, -1}));
    up.dot = true;
    int kv = hb_layer_product(lo, y, low, hb_layer_find_leaf(lo, y, "wkv_b"), up);
    int k, v;
    split_kv(lo, y, h, kv, &k, &v);
    return project_out(lo, y, h, attend_sequence(lo, y, h, (const int[]){q, k, v}));
}

static int fused_qkv(struct hb_lower *lo, struct hb_layer *y, int in, const struct heads *h)
{
    int64_t width = (h->q + 2 * h->kv) * h->qk_dim;
    struct hb_value all =
        head_value(lo, "qkv", 1u << HB_TN_QKV,
                   hb_shape_make(lo->compute, (const int64_t[]){h->batch, h->seq, width, -1}));
    all.dot = true;
    int qkv = hb_layer_product(lo, y, in, hb_layer_find_leaf(lo, y, "wqkv"), all);
    int q = rotate(lo, y, qkv, kernel_value(lo, "q", 1u << HB_TN_Q, h, h->q, h->qk_dim));
    int k = rotate(lo, y, qkv, kernel_value(lo, "k", 1u << HB_TN_K, h, h->kv, h->qk_dim));
    int v = rotate(lo, y, qkv, kernel_value(lo, "v", 1u << HB_TN_V, h, h->kv, h->v_dim));
    return project_out(lo, y, h, attend_sequence(lo, y, h, (const int[]){q, k, v}));
}

int hb_layer_attention(struct hb_lower *lo, struct hb_layer *y, int in, int64_t batch)
{
    const struct hb_attention *a = &y->block->attention;
    struct heads h = find_heads(lo, y->block, batch);
    if (a->kind == HB_ATTN_MLA)
        return mla(lo, y, in, &h);
    if (a->fused_qkv)
        return fused_qkv(lo, y, in, &h);
    bool rope = a->rope || a->qk_norm != HB_QKN_NONE;
    int q = project(lo, y, in, &h, (struct projection){"q", HB_TN_Q, h.q, rope});
    int k = project(lo, y, in, &h, (struct projection){"k", HB_TN_K, h.kv, rope});
    int v = project(lo, y, in, &h, (struct projection){"v", HB_TN_V, h.kv, false});
    if (a->kind == HB_ATTN_NONE)
        return project_out(lo, y, &h, q);
    return project_out(lo, y, &h, attend_sequence(lo, y, &h, (const int[]){q, k, v}));
}

const struct hb_step_op *hb_layer_blocks(const struct hb_layer *y)
{
    for (uint32_t i = 0; i < y->step_count; i++)
        if (y->block->attention.kernel == HB_KERNEL_BLOCKED && y->steps[i].in_count == 3)
            return &y->steps[i];
    return NULL;
}
