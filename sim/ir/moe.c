/* A mixture of experts as values and steps. Three dispatches of the lab and MaxText programs:
 * einsum (one-hot masks and a capacity: moe_einsum.h), ragged (tokens sorted by expert, dropless),
 * dense (every expert on every token). Shapes are those of the lab program's `moe`. */
#include <math.h>

#include "base/size.h"
#include "models/params.h"
#include "sim/ir/moe_einsum.h"

/* Each rank of the expert axis gathers all the axis's tokens and sorts out its own. */
static bool gathers_tokens(const struct hb_lower *lo, const struct hb_moe *m)
{
    return hb_moe_ways(lo) > 1 && m->dispatch == HB_DISPATCH_ALLGATHER;
}

/* MaxText's einsum works on a device's own tokens; the weights of all experts come to it
 * (mixtral-8x7b, expert 4 and fsdp 8: bf16[8,4096,14336]). So do a plain program's ragged products
 * (moe_ragged over expert 8: all-gather to bf16[64,2048,1408], no exchange of rows). */
static bool comes_to_tokens(const struct hb_lower *lo, const struct hb_moe *m)
{
    if (hb_moe_ways(lo) == 1)
        return false;
    if (!lo->maxtext)
        return m->dispatch == HB_DISPATCH_RAGGED;
    return m->dispatch == HB_DISPATCH_EINSUM;
}

/* XLA's einsum brings the tokens of all devices of the expert axis to each (TPU's between rings),
 * which makes the masks of its own experts for them, and adds up what the others' made of its own
 * (granite-3b-moe, expert 8: all-gather to bf16[16,4096,1536]; in a pipeline's stage rows are
 * exchanged). */
static struct hb_moe_routed find_routed(const struct hb_lower *lo, const struct hb_moe *m,
                                        int64_t batch)
{
    int64_t ep = hb_moe_ways(lo);
    int64_t tp = hb_ways(lo, HB_AX_TENSOR);
    struct hb_moe_routed r = {.batch = batch, .seq = lo->local.seq, .experts = m->experts};
    r.tokens = batch * r.seq;
    r.width = hb_div_up(
        m->d_ff, lo->spec->sharding.expert_tensor > 0 ? lo->spec->sharding.expert_tensor : tp);
    r.capacity = hb_params_capacity(m, lo->spec->batch.seq);
    r.expert_batch = batch;
    r.rows = hb_mul_sat(r.tokens, m->top_k);
    r.masked = m->experts;
    if (ep > 1 && m->dispatch == HB_DISPATCH_EINSUM && !comes_to_tokens(lo, m)) {
        r.experts = hb_div_up(m->experts, ep);
        r.joins = lo->expert_batch == HB_EXPERTS_JOINED;
        if (r.joins || lo->expert_batch == HB_EXPERTS_EXCHANGED)
            r.expert_batch = hb_mul_sat(batch, ep);
        if (lo->expert_batch == HB_EXPERTS_LOCAL)
            r.masked = r.experts;
    }
    if (gathers_tokens(lo, m)) {
        r.experts = hb_div_up(m->experts, ep);
        r.expert_batch = hb_mul_sat(batch, ep);
        r.rows = hb_mul_sat(r.rows, ep);
    }
    if (hb_layer_exchanges_rows(lo, m)) {
        /* A token cannot have more of its top_k choices here than there are experts here: mixtral
         * over 8 devices has 65536 rows, as over 4 (get_ragged_buffer_size). */
        double worst = fmin((double)ep, (double)m->experts / (double)m->top_k);
        double factor = m->buffer_factor > 0 ? m->buffer_factor : worst;
        r.rows = (int64_t)ceil((double)r.rows * factor);
    }
    return r;
}

void hb_layer_moe_leaves(struct hb_lower *lo, struct hb_layer *y)
{
    const struct hb_moe *m = &y->block->moe;
    int64_t d = lo->spec->model.d_model;
    int64_t tp = hb_ways(lo, HB_AX_TENSOR);
    int64_t et = lo->spec->sharding.expert_tensor > 0 ? lo->spec->sharding.expert_tensor : tp;
    /* The lab's leaves are split over expert in both dispatches. */
    int64_t ep = hb_moe_ways(lo) * (tp / et);
    struct hb_split router[2] = {{d, 1}, {m->experts, 1}};
    y->expert_leaf = !lo->spec->sharding.router_over_expert;
    uint32_t wide = hb_layer_matrix(lo, y, "router", router, 2, 0);
    lo->leaves[wide].narrow = false;
    y->expert_leaf = true;
    uint32_t first = lo->leaf_count;
    struct hb_split up[3] = {{m->experts, ep}, {d, 1}, {m->d_ff, et}};
    struct hb_split down[3] = {{m->experts, ep}, {m->d_ff, et}, {d, 1}};
    bool gated = hb_mlp_is_gated(m->kind);
    if (gated)
        hb_layer_matrix(lo, y, "e_gate", up, 3, 1);
    hb_layer_matrix(lo, y, "e_up", up, 3, 1);
    hb_layer_matrix(lo, y, "e_down", down, 3, 2);
    if (m->bias) {
        struct hb_split bias[2] = {{m->experts, ep}, {m->d_ff, et}};
        struct hb_split out[2] = {{m->experts, ep}, {d, 1}};
        if (gated)
            hb_layer_vector(lo, y, "eb_gate", bias, 2, -1);
        hb_layer_vector(lo, y, "eb_up", bias, 2, -1);
        hb_layer_vector(lo, y, "eb_down", out, 2, -1);
    }
    /* A grouped product reads weights row by row: copies of their stacks are not laid out for
     * least padding (qwen30a3,f64,ragged: f32[48,128,768,32] takes 2304 MiB, not 576);
     * a scan over another dimension transposes them anyway (deepseek3-671b/mu_bf16). */
    for (uint32_t i = first; i < lo->leaf_count; i++) {
        lo->leaves[i].expert_ways = comes_to_tokens(lo, m) ? ep : 0;
        lo->leaves[i].row_major = hb_layer_sorts_rows(m) && !lo->maxtext;
    }
    y->expert_leaf = false;
    if (m->router_bias)
        hb_layer_bias(lo, y, "router_bias", m->experts, 1);
    if (m->shared_experts > 0) {
        struct hb_mlp shared = {.kind = m->kind, .d_ff = m->shared_d_ff};
        hb_mlp_leaves(lo, y, &shared, "shared_");
    }
}

/* Those whose products a device makes, over which XLA:GPU spreads a ragged product's operands. */
static int64_t spread_experts(const struct hb_lower *lo, const struct hb_moe *m)
{
    bool own = hb_layer_exchanges_rows(lo, m) || gathers_tokens(lo, m);
    return own ? hb_div_up(m->experts, hb_moe_ways(lo)) : m->experts;
}

/* CUDA has no ragged product (spread.h). Gate, up and what the router's gradient reads are made
 * again when that is due, not with the rest of the layer. */
static void expand_ragged(struct hb_lower *lo, struct hb_layer *y, uint32_t first)
{
    lo->spreads = true;
    for (uint32_t i = first; i < y->step_count; i++) {
        struct hb_step_op *s = &y->steps[i];
        if (s->kind == HB_STEP_PRODUCT)
            s->spread = spread_experts(lo, &y->block->moe);
        if (y->together > 1)
            continue;
        s->makes_off = s->op == HB_OP_ELEMENTWISE;
        y->values[s->out[0]].cheap = true;
    }
}

/* Rows that grouped products work on, of an even load: a tile that two experts share is visited for
 * both (jax, experimental/pallas/ops/tpu/megablox/gmm.py, make_group_metadata). */
static double visited_rows(const struct hb_lower *lo, const struct hb_moe *m,
                           const struct hb_moe_routed *r)
{
    double rows = (double)r->tokens * (double)m->top_k;
    if (m->kernel == HB_MOE_RAGGED_DOT || r->experts < 2)
        return rows;
    return rows + (double)(r->experts - 1) * (double)lo->habits->group_tile;
}

/* XLA:GPU's products over operands spread by expert multiply the zeros, too. */
static double made_rows(const struct hb_lower *lo, const struct hb_moe *m,
                        const struct hb_moe_routed *r)
{
    if (!lo->habits->ragged_dense || !hb_layer_sorts_rows(m))
        return visited_rows(lo, m, r);
    return (double)r->rows * (double)spread_experts(lo, m);
}

/* Rows to the devices of their experts, or back: in the buffer of the worst case, but no more is
 * sent than the rows that there are. */
static int exchange_rows(struct hb_lower *lo, struct hb_layer *y, int in, struct hb_value v,
                         const struct hb_moe_routed *r)
{
    double rows = (double)r->tokens * (double)y->block->moe.top_k;
    int out = hb_moe_exchange(lo, y, in, v);
    y->steps[y->step_count - 1].sent_bytes =
        hb_payload_bytes(HB_OP_ALL_TO_ALL, 1, hb_moe_ways(lo)) * rows *
        (double)lo->spec->model.d_model * (double)hb_dtype_bits(lo->compute) / 8;
    return out;
}

/* Rows that come from other devices: at the end of the experts' backward pass the sorted rows and
 * the outputs' gradient wait for the late weight gradients, with the activation and both gradients
 * of the hidden width, while the outputs are made again and sent back for the router's gradient
 * beside the rows' own (deepseek3-671b/ep16: five bf16[524288,7168] and three of 2048). */
static int sort_rows(struct hb_lower *lo, struct hb_layer *y, int in, const struct hb_moe_routed *r)
{
    int64_t d = lo->spec->model.d_model;
    int64_t own = hb_mul_sat(r->tokens, y->block->moe.top_k);
    const int64_t rows[] = {r->rows, d, -1}, here[] = {own, d, -1};
    struct hb_value v =
        hb_moe_value(lo, "tokens sorted by expert", 1u << HB_TN_MOE_SORTED, lo->compute, rows);
    if (!hb_layer_exchanges_rows(lo, &y->block->moe))
        return hb_layer_make(lo, y, v,
                             (struct hb_step_op){.op = HB_OP_GATHER, .in = {in}, .in_count = 1});
    int sorted =
        hb_layer_make(lo, y, hb_moe_value(lo, "tokens in order of expert", 0, lo->compute, here),
                      (struct hb_step_op){.op = HB_OP_GATHER, .in = {in}, .in_count = 1});
    struct hb_step_op *sort = &y->steps[y->step_count - 1];
    sort->back_scratch[0] = hb_shape_make(lo->compute, (const int64_t[]){3, r->rows, d, -1});
    sort->back_scratch_count = 1;
    return exchange_rows(lo, y, sorted, v, r);
}

/* The experts' outputs where and as their tokens are. */
static int return_rows(struct hb_lower *lo, struct hb_layer *y, int out,
                       const struct hb_moe_routed *r)
{
    int64_t d = lo->spec->model.d_model;
    int64_t own = hb_mul_sat(r->tokens, y->block->moe.top_k);
    const int64_t rows[] = {r->rows, d, -1}, here[] = {own, d, -1};
    int back = hb_layer_make(
        lo, y, hb_moe_value(lo, "expert outputs in token order", 0, lo->compute, rows),
        (struct hb_step_op){.op = HB_OP_GATHER, .in = {out}, .in_count = 1});
    if (!hb_layer_exchanges_rows(lo, &y->block->moe))
        return back;
    return exchange_rows(lo, y, back,
                         hb_moe_value(lo, "expert outputs, returned", 0, lo->compute, here), r);
}

static int ragged(struct hb_lower *lo, struct hb_layer *y, int in, int probs,
                  const struct hb_moe_routed *r)
{
    const struct hb_moe *m = &y->block->moe;
    int64_t d = lo->spec->model.d_model;
    const int64_t rows[] = {r->rows, d, -1};
    const int64_t wide[] = {r->rows, r->width, -1};
    bool gathers = gathers_tokens(lo, m);
    int x = sort_rows(lo, y, gathers ? hb_moe_gather_tokens(lo, y, in, r->seq, r) : in, r);
    uint32_t first = y->step_count;
    int o = hb_moe_experts(lo, y, x, wide, rows);
    double made = made_rows(lo, m, r);
    for (uint32_t i = first; i < y->step_count && r->rows > 0; i++)
        y->steps[i].flops *= made / (double)r->rows;
    int back = return_rows(lo, y, o, r);
    if (lo->habits->ragged_dense)
        expand_ragged(lo, y, first);
    struct hb_value v = hb_moe_value(lo, "moe output", 1u << HB_TN_MLP_DOWN, lo->compute,
                                     (const int64_t[]){r->expert_batch, r->seq, d, -1});
    v.fused = !gathers;
    v.tags = gathers ? 0 : v.tags;
    int out = hb_layer_make(lo, y, v,
                            (struct hb_step_op){.op = HB_OP_ELEMENTWISE,
                                                .in = {probs, back},
                                                .in_count = 2,
                                                .flops = 2.0 * (double)r->rows * (double)d,
                                                .back_in = 3});
    /* XLA:TPU makes the gradient of the outputs first; they themselves are made again, for the
     * router's, behind the activation's gradient (phimoe,v5p,f64: at 226 and 260, behind 255). */
    struct hb_step_op *step = &y->steps[y->step_count - 1];
    for (uint32_t i = first; i < y->step_count; i++)
        step->first_last = step->first_last || y->steps[i].makes_off;
    step->off_early = step->first_last;
    y->values[probs].for_ring = hb_moe_mask_for(lo);
    if (!gathers)
        return out;
    v = hb_moe_value(lo, "moe output, summed", 1u << HB_TN_MLP_DOWN, lo->compute,
                     (const int64_t[]){r->batch, r->seq, d, -1});
    return hb_layer_move(lo, y, HB_OP_REDUCE_SCATTER, HB_AX_EXPERT, out, v);
}

/* Every expert computes every token; the weights pick afterwards. */
static int dense(struct hb_lower *lo, struct hb_layer *y, int in, int probs,
                 const struct hb_moe_routed *r)
{
    int64_t d = lo->spec->model.d_model;
    const int64_t all[] = {r->batch, r->seq, r->experts, d, -1};
    const int64_t wide[] = {r->batch, r->seq, r->experts, r->width, -1};
    int o = hb_moe_experts(lo, y, in, wide, all);
    struct hb_value v = hb_moe_value(lo, "moe output", 1u << HB_TN_MLP_DOWN, lo->compute,
                                     (const int64_t[]){r->batch, r->seq, d, -1});
    v.fused = true;
    double flops = 2.0 * (double)r->tokens * (double)r->experts * (double)d;
    return hb_layer_make(lo, y, v,
                         (struct hb_step_op){.op = HB_OP_ELEMENTWISE,
                                             .in = {o, probs},
                                             .in_count = 2,
                                             .flops = flops,
                                             .back_in = 3});
}

int hb_layer_moe(struct hb_lower *lo, struct hb_layer *y, int in, int64_t batch)
{
    static const uint32_t shared_tags[4] = {HB_TN_SHARED_GATE, HB_TN_SHARED_UP, HB_TN_MLP_ACT,
                                            HB_TN_SHARED_DOWN};
    const struct hb_moe *m = &y->block->moe;
    struct hb_moe_routed r = find_routed(lo, m, batch);
    const int64_t logits[] = {batch, r.seq, m->experts, -1};
    struct hb_value v = hb_moe_value(lo, "router logits", 0, m->router_dtype, logits);
    int router = hb_layer_product(lo, y, in, "router", v);
    int probs =
        hb_layer_make(lo, y, hb_moe_value(lo, "router probabilities", 0, HB_DT_F32, logits),
                      (struct hb_step_op){.op = HB_OP_ELEMENTWISE,
                                          .in = {router},
                                          .in_count = 1,
                                          .flops = 8.0 * (double)r.tokens * (double)m->experts,
                                          .back_in = 1});
    int out = -1;
    switch (m->dispatch) {
    case HB_DISPATCH_EINSUM:
        out = hb_moe_einsum(lo, y, in, probs, &r);
        break;
    case HB_DISPATCH_RAGGED:
    case HB_DISPATCH_ALLGATHER:
        out = ragged(lo, y, in, probs, &r);
        break;
    case HB_DISPATCH_DENSE:
        out = dense(lo, y, in, probs, &r);
        break;
    }
    if (m->shared_experts == 0)
        return out;
    struct hb_mlp shared = {.kind = m->kind, .d_ff = m->shared_d_ff};
    struct hb_mlp_part part = {.mlp = &shared, .prefix = "shared_", .tags = shared_tags};
    int s = hb_mlp_build(lo, y, in, batch, &part);
    return hb_layer_add(lo, y, out, s, "moe and shared output");
}
