/* Attention as values and steps: its weights, grouped-query or multi-head latent projections, the
 * heads and positions that devices exchange, and the output; what is made of q, k and v is a
 * kernel's (attention_kernel.h). */
#include "sim/ir/attention_kernel.h"

#include "base/size.h"

static struct hb_attention_heads find_heads(const struct hb_lower *lo, const struct hb_block *b,
                                            int64_t batch)
{
    const struct hb_attention *a = &b->attention;
    int64_t tp = hb_ways(lo, HB_AX_TENSOR);
    bool mla = a->kind == HB_ATTN_MLA;
    int64_t kv_heads = mla ? a->heads : a->kv_heads;
    struct hb_attention_heads h = {
        .batch = batch, .seq = lo->local.seq, .kv_seq = lo->spec->batch.seq};
    h.fused_kernel = a->kernel == HB_KERNEL_FLASH;
    h.kv_ways = kv_heads % tp == 0 ? tp : 1;
    h.q = hb_div_up(a->heads, tp);
    h.kv = hb_div_up(kv_heads, h.kv_ways);
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

/* MaxText's stay a dimension of their own in arguments (gemma2-9b: [14,21,16,256], unpadded). */
static bool has_heads_apart(const struct hb_lower *lo, const struct hb_layer *y)
{
    return y->block->attention.split_heads || lo->maxtext;
}

static void head_leaf(struct hb_lower *lo, struct hb_layer *y, const char *name, struct head_dims h)
{
    bool apart = has_heads_apart(lo, y);
    struct hb_split heads = {apart ? h.heads : h.heads * h.dim, h.ways};
    struct hb_split dims[3] = {{h.outer, 1}, heads, {h.dim, 1}};
    uint32_t leaf = hb_layer_matrix(lo, y, name, dims, apart ? 3 : 2, 0);
    lo->leaves[leaf].summed = 1;
}

static void out_leaf(struct hb_lower *lo, struct hb_layer *y, int64_t heads, int64_t dim)
{
    bool apart = has_heads_apart(lo, y);
    int64_t d = lo->spec->model.d_model;
    struct hb_split tp = {apart ? heads : heads * dim, hb_ways(lo, HB_AX_TENSOR)};
    struct hb_split dims[3] = {tp, {apart ? dim : d, 1}, {d, 1}};
    uint32_t leaf = hb_layer_matrix(lo, y, "wo", dims, apart ? 3 : 2, apart ? 2 : 1);
    lo->leaves[leaf].summed = apart ? 2 : 1;
}

static void plain_leaf(struct hb_lower *lo, struct hb_layer *y, const char *name, int64_t rows,
                       int64_t cols)
{
    struct hb_split dims[2] = {{rows, 1}, {cols, 1}};
    hb_layer_matrix(lo, y, name, dims, 2, 0);
}

static void mla_leaves(struct hb_lower *lo, struct hb_layer *y)
{
    const struct hb_attention *a = &y->block->attention;
    int64_t d = lo->spec->model.d_model;
    int64_t tp = hb_ways(lo, HB_AX_TENSOR);
    int64_t qk = a->qk_nope_head_dim + a->qk_rope_head_dim;
    if (a->q_lora_rank) {
        plain_leaf(lo, y, "wq_a", d, a->q_lora_rank);
        hb_layer_bias(lo, y, "q_norm", a->q_lora_rank, 1);
        head_leaf(lo, y, "wq_b", (struct head_dims){a->q_lora_rank, a->heads, qk, tp});
    } else {
        head_leaf(lo, y, "wq", (struct head_dims){d, a->heads, qk, tp});
    }
    plain_leaf(lo, y, "wkv_a", d, a->kv_lora_rank + a->qk_rope_head_dim);
    hb_layer_bias(lo, y, "kv_norm", a->kv_lora_rank, 1);
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
        hb_layer_bias(lo, y, "bq", a->heads * a->head_dim, tp);
        hb_layer_bias(lo, y, "bk", a->kv_heads * a->head_dim, kv_ways);
        hb_layer_bias(lo, y, "bv", a->kv_heads * a->head_dim, kv_ways);
    }
    if (a->bias == HB_BIAS_ALL)
        hb_layer_output_bias(lo, y, "bo");
    if (a->qk_norm == HB_QKN_LEARNED) {
        hb_layer_bias(lo, y, "q_norm", a->head_dim, 1);
        hb_layer_bias(lo, y, "k_norm", a->head_dim, 1);
    }
    if (a->sinks)
        hb_layer_bias(lo, y, "sinks", a->heads, 1);
}

void hb_layer_attention_leaves(struct hb_lower *lo, struct hb_layer *y)
{
    if (y->block->attention.kind == HB_ATTN_MLA)
        mla_leaves(lo, y);
    else
        gqa_leaves(lo, y);
}

/* --- values and steps --- */

/* Rotation, with the norm before it where there is one. */
static int rotate(struct hb_lower *lo, struct hb_layer *y, int in, struct hb_value out_value)
{
    struct hb_shape s = y->values[in].shape;
    struct hb_shape wide = s;
    wide.dtype = HB_DT_F32;
    struct hb_step_op step = {.name = out_value.name,
                              .op = HB_OP_ELEMENTWISE,
                              .leaf = HB_NONE,
                              .in = {in},
                              .in_count = 1,
                              .out = {hb_layer_value(lo, y, out_value)},
                              .out_count = 1,
                              .flops = 4.0 * (double)hb_shape_elements(&s),
                              .scratch = {wide},
                              .scratch_count = 1,
                              .back_scratch = {wide},
                              .back_scratch_count = 1};
    if (y->block->attention.qk_norm != HB_QKN_NONE && lo->spec->precision.norm_f32)
        hb_layer_norm_parts(lo, y, in, out_value.name, &step);
    hb_layer_step(lo, y, step);
    return step.out[0];
}

/* Query, key and value, as a kernel has them. */
static struct hb_value qkv_value(const struct hb_lower *lo, const struct hb_attention_heads *h,
                                 int i)
{
    static const char *const names[] = {"q", "k", "v"};
    static const uint32_t tags[] = {1u << HB_TN_Q, 1u << HB_TN_K, 1u << HB_TN_V};
    return hb_attention_kernel_value(lo, names[i], tags[i], h, i ? h->kv : h->q,
                                     i < 2 ? h->qk_dim : h->v_dim);
}

/* One of them: product, then norm and rotation where there are. */
static int project(struct hb_lower *lo, struct hb_layer *y, int in,
                   const struct hb_attention_heads *h, int i, bool rope)
{
    struct hb_value done = qkv_value(lo, h, i);
    const char *weight = hb_name(lo, "w", done.name);
    if (!rope) {
        done.dot = true;
        return hb_layer_product(lo, y, in, weight, done);
    }
    const int64_t dims[] = {h->batch, h->seq, i ? h->kv : h->q, h->qk_dim, -1};
    struct hb_value raw = hb_layer_dot(lo, hb_name(lo, done.name, " before rope"), 0, dims);
    return rotate(lo, y, hb_layer_product(lo, y, in, weight, raw), done);
}

/* Keys and values of the whole sequence on every device of the sequence axis. */
static int gather_keys(struct hb_lower *lo, struct hb_layer *y, int in,
                       const struct hb_attention_heads *h, const char *name)
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
 * bf16[128,2048,32,128]). What is kept of it is that part. MaxText's divide it by the query. */
static bool is_kernel_whole(const struct hb_lower *lo, const struct hb_layer *y,
                            const struct hb_attention_heads *h)
{
    return lo->habits->rings && !lo->maxtext && h->kv_seq > h->seq &&
           y->block->attention.kernel == HB_KERNEL_FLASH &&
           lo->spec->sharding.sequence_kind == HB_SEQ_RING;
}

static int attend_whole(struct hb_lower *lo, struct hb_layer *y, const struct hb_attention_heads *h,
                        const int qkv[3])
{
    struct hb_attention_heads whole = *h;
    whole.seq = h->kv_seq;
    uint32_t tags = y->values[qkv[0]].tags;
    int q = gather_keys(lo, y, qkv[0], h, "q, gathered over sequence");
    y->values[qkv[0]].tags = tags;
    y->values[q].tags = 0;
    int k = gather_keys(lo, y, qkv[1], h, "k, gathered over sequence");
    int v = gather_keys(lo, y, qkv[2], h, "v, gathered over sequence");
    int all = hb_attention_kernel(lo, y, &whole, q, k, v);
    const struct hb_step_op *kernel = &y->steps[y->values[all].producer];
    for (int i = 0; i < kernel->out_count; i++)
        y->values[kernel->out[i]].in_parts = true;
    struct hb_value own = y->values[all];
    own.name = "own part of the kernel's result";
    own.tags = 0;
    own.shape.dim[2] = h->seq;
    return hb_layer_move(lo, y, HB_OP_COPY, HB_AX_SEQUENCE, all, own);
}

/* Attention where the sequence may be split: XLA programs gather keys and values whole (the lab's
 * constraint on k and v; a ring is not kept as one), or exchange heads for positions. */
static int attend_sequence(struct hb_lower *lo, struct hb_layer *y,
                           const struct hb_attention_heads *h, const int qkv[3])
{
    int64_t ways = hb_ways(lo, HB_AX_SEQUENCE);
    if (is_kernel_whole(lo, y, h))
        return attend_whole(lo, y, h, qkv);
    if (ways == 1 || lo->spec->sharding.sequence_kind != HB_SEQ_ALL_TO_ALL) {
        int k = gather_keys(lo, y, qkv[1], h, "k, gathered over sequence");
        int v = gather_keys(lo, y, qkv[2], h, "v, gathered over sequence");
        return hb_attention_kernel(lo, y, h, qkv[0], k, v);
    }
    struct hb_attention_heads whole = *h;
    whole.seq = h->kv_seq;
    whole.q = hb_div_up(h->q, ways);
    whole.kv = hb_div_up(h->kv, ways);
    int q = exchange_heads(lo, y, qkv[0], whole.q, whole.seq);
    int k = exchange_heads(lo, y, qkv[1], whole.kv, whole.seq);
    int v = exchange_heads(lo, y, qkv[2], whole.kv, whole.seq);
    return exchange_heads(lo, y, hb_attention_kernel(lo, y, &whole, q, k, v), h->q, h->seq);
}

/* The result back in [batch, seq, heads x dim]; then the output projection and its sum. */
static int project_out(struct hb_lower *lo, struct hb_layer *y, const struct hb_attention_heads *h,
                       int o)
{
    /* Where heads are a dimension of the weights, the copy is a change of layout only, and one of
     * the two is kept: a kernel's result that has the name (llama3-8b/remat_custom_inputdev_ctxdev;
     * two in bwd/remat=names:attn_ctx), or this (qwen3-14b, H100: bf16[40,2,8192,40,128] twice). */
    bool whole = has_heads_apart(lo, y);
    bool named = false;
    for (uint32_t v = 0; v < y->value_count; v++)
        named = named || (whole && (y->values[v].tags & 1u << HB_TN_ATTN_CTX));
    struct hb_value ctx = hb_layer_tensor(
        lo, "attention context", named ? 0 : 1u << HB_TN_ATTN_CTX,
        hb_shape_make(lo->compute, (const int64_t[]){h->batch, h->seq, h->q * h->v_dim, -1}));
    ctx.relaid = whole && !named;
    int c =
        hb_layer_make(lo, y, ctx, (struct hb_step_op){.op = HB_OP_COPY, .in = {o}, .in_count = 1});
    struct hb_value out =
        hb_layer_tensor(lo, "attention output", 1u << HB_TN_ATTN_OUT, y->values[y->input].shape);
    out.dot = true;
    out.fused = true; /* summed with the residual where it is made */
    int a = hb_layer_product(lo, y, c, "wo", out);
    hb_layer_sum_parts(lo, y);
    return a;
}

/* Low-rank q and kv: down, norm, up. */
struct rank_part {
    const char *down; /* names of its leaves */
    const char *norm;
    int64_t width;
    uint32_t tag;
};

static int low_rank(struct hb_lower *lo, struct hb_layer *y, int in,
                    const struct hb_attention_heads *h, struct rank_part p)
{
    struct hb_value v =
        hb_layer_dot(lo, p.down, 0, (const int64_t[]){h->batch, h->seq, p.width, -1});
    int low = hb_layer_product(lo, y, in, p.down, v);
    int out = hb_layer_norm(lo, y, low, p.norm);
    y->values[out].fused = false;
    y->values[out].tags = 1u << p.tag;
    return out;
}

/* From the up-projection of kv: keys with the shared rotary part joined to each head. */
static void split_kv(struct hb_lower *lo, struct hb_layer *y, const struct hb_attention_heads *h,
                     int up, int *out_k, int *out_v)
{
    *out_k = hb_layer_value(lo, y, qkv_value(lo, h, 1));
    *out_v = hb_layer_value(lo, y, qkv_value(lo, h, 2));
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

static int mla(struct hb_lower *lo, struct hb_layer *y, int in, const struct hb_attention_heads *h)
{
    const struct hb_attention *a = &y->block->attention;
    int q_in = in;
    if (a->q_lora_rank)
        q_in = low_rank(lo, y, in, h,
                        (struct rank_part){"wq_a", "q_norm", a->q_lora_rank, HB_TN_MLA_Q});
    const int64_t q_dims[] = {h->batch, h->seq, h->q, h->qk_dim, -1};
    struct hb_value raw = hb_layer_dot(lo, "q before rope", 0, q_dims);
    const char *wq = a->q_lora_rank ? "wq_b" : "wq";
    int q = hb_layer_product(lo, y, q_in, wq, raw);
    q = rotate(lo, y, q, qkv_value(lo, h, 0));
    int64_t kv_width = a->kv_lora_rank + a->qk_rope_head_dim;
    int low =
        low_rank(lo, y, in, h, (struct rank_part){"wkv_a", "kv_norm", kv_width, HB_TN_MLA_KV});
    const int64_t kv_dims[] = {h->batch, h->seq, h->kv, a->qk_nope_head_dim + a->v_head_dim, -1};
    struct hb_value up = hb_layer_dot(lo, "kv, up projection", 0, kv_dims);
    int kv = hb_layer_product(lo, y, low, "wkv_b", up);
    int k, v;
    split_kv(lo, y, h, kv, &k, &v);
    return project_out(lo, y, h, attend_sequence(lo, y, h, (const int[]){q, k, v}));
}

static int fused_qkv(struct hb_lower *lo, struct hb_layer *y, int in,
                     const struct hb_attention_heads *h)
{
    int64_t width = (h->q + 2 * h->kv) * h->qk_dim;
    struct hb_value all =
        hb_layer_dot(lo, "qkv", 1u << HB_TN_QKV, (const int64_t[]){h->batch, h->seq, width, -1});
    int qkv = hb_layer_product(lo, y, in, "wqkv", all);
    int parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = rotate(lo, y, qkv, qkv_value(lo, h, i));
    return project_out(lo, y, h, attend_sequence(lo, y, h, parts));
}

int hb_layer_attention(struct hb_lower *lo, struct hb_layer *y, int in, int64_t batch)
{
    const struct hb_attention *a = &y->block->attention;
    struct hb_attention_heads h = find_heads(lo, y->block, batch);
    if (a->kind == HB_ATTN_MLA)
        return mla(lo, y, in, &h);
    if (a->fused_qkv)
        return fused_qkv(lo, y, in, &h);
    bool rope = a->rope || a->qk_norm != HB_QKN_NONE;
    int parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = project(lo, y, in, &h, i, rope && i < 2);
    return project_out(lo, y, &h,
                       a->kind == HB_ATTN_NONE ? parts[0] : attend_sequence(lo, y, &h, parts));
}
