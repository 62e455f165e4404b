/* A mixture of experts as values and steps. Three dispatches of the lab and MaxText programs:
 * einsum (one-hot masks and a capacity), ragged (tokens sorted by expert, dropless), dense (every
 * expert on every token). Shapes are those of the lab program's `moe`. */
#include <math.h>

#include "base/size.h"
#include "sim/ir/head.h"
#include "sim/ir/layer.h"
#include "sim/ir/moe_turn.h"
#include "sim/ir/weight.h"

/* Sizes of the routed part on one device. */
struct routed {
    int64_t batch; /* sequences */
    int64_t seq;
    int64_t tokens;
    int64_t experts; /* whose work this device does */
    int64_t masked;  /* for which it makes dispatch masks */
    int64_t capacity;
    int64_t rows; /* of all experts here, a token counted top_k times */
    int64_t width;
    int64_t expert_batch; /* sequences that reach this device's experts */
    bool joins;           /* as tokens, for masks that are made here */
};

static int64_t expert_ways(const struct hb_lower *lo)
{
    return hb_ways(lo, HB_AX_EXPERT);
}

static bool hides_gathers(const struct hb_lower *lo)
{
    return lo->habits->gathers_timed;
}

bool hb_layer_sorts_rows(const struct hb_moe *m)
{
    return m->dispatch == HB_DISPATCH_RAGGED || m->dispatch == HB_DISPATCH_ALLGATHER;
}

/* MaxText's ragged experts get their rows from all devices of the axis and send them back
 * (ragged_all_to_all in sparse_matmul of its layers/moe.py, on any accelerator). */
bool hb_layer_exchanges_rows(const struct hb_lower *lo, const struct hb_moe *m)
{
    return expert_ways(lo) > 1 && m->dispatch == HB_DISPATCH_RAGGED && lo->maxtext;
}

/* Each rank of the expert axis gathers all the axis's tokens and sorts out its own. */
static bool gathers_tokens(const struct hb_lower *lo, const struct hb_moe *m)
{
    return expert_ways(lo) > 1 && m->dispatch == HB_DISPATCH_ALLGATHER;
}

/* MaxText's einsum works on a device's own tokens; the weights of all experts come to it
 * (mixtral-8x7b, expert 4 and fsdp 8, with one and two sequences: bf16[8,4096,14336] three times;
 * deepseek2-16b, expert 4 and fsdp 4). So do a plain program's ragged products, everywhere
 * (moe_ragged over expert 8, and over fsdp 2 and expert 4, 64 experts, on v5p, H100 and MI300X:
 * all-gather to bf16[64,2048,1408], no exchange of rows). */
static bool comes_to_tokens(const struct hb_lower *lo, const struct hb_moe *m)
{
    if (expert_ways(lo) == 1)
        return false;
    if (!lo->maxtext)
        return m->dispatch == HB_DISPATCH_RAGGED;
    return m->dispatch == HB_DISPATCH_EINSUM;
}

/* XLA:GPU's einsum brings the tokens of all devices of the expert axis to each, which makes the
 * masks of its own experts for them, and adds up what the others' made of its own (granite-3b-moe,
 * expert 8 alone, beside data 4 and fsdp 4, expert 2 and 4, tensor 2 and 4: all-gather to
 * bf16[16,4096,1536], bf16[65536,5,1024]; no exchange of rows; in a pipeline's stage rows are). */
static struct routed find_routed(const struct hb_lower *lo, const struct hb_moe *m, int64_t batch)
{
    int64_t ep = expert_ways(lo);
    int64_t tp = hb_ways(lo, HB_AX_TENSOR);
    int64_t seq = lo->spec->batch.seq;
    struct routed r = {.batch = batch, .seq = lo->local.seq, .experts = m->experts};
    r.tokens = batch * r.seq;
    r.width = hb_div_up(
        m->d_ff, lo->spec->sharding.expert_tensor > 0 ? lo->spec->sharding.expert_tensor : tp);
    double even = (double)seq * (double)m->top_k / (double)m->experts * m->capacity_factor;
    r.capacity = hb_round_up((int64_t)ceil(even - 1e-9), 4);
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
         * with 8 experts over 8 devices has 65536 rows, as over 4 (MaxText's
         * get_ragged_buffer_size). */
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
    /* The lab's ragged experts are whole on every device of the expert axis in the arguments too
     * only where the program says so: its leaves are split over expert in both dispatches. */
    int64_t ep = expert_ways(lo) * (tp / et);
    struct hb_split router[2] = {{d, 1}, {m->experts, 1}};
    y->expert_leaf = !lo->spec->sharding.router_over_expert;
    uint32_t wide = hb_layer_matrix(lo, y, "router", router, 2, 0);
    lo->leaves[wide].narrow = false;
    y->expert_leaf = true;
    uint32_t first = lo->leaf_count;
    struct hb_split up[3] = {{m->experts, ep}, {d, 1}, {m->d_ff, et}};
    struct hb_split down[3] = {{m->experts, ep}, {m->d_ff, et}, {d, 1}};
    bool gated = m->kind == HB_MLP_SWIGLU || m->kind == HB_MLP_GEGLU;
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
    for (uint32_t i = first; i < lo->leaf_count; i++)
        lo->leaves[i].expert_ways = comes_to_tokens(lo, m) ? ep : 0;
    for (uint32_t i = first; i < lo->leaf_count; i++)
        lo->leaves[i].row_major = hb_layer_sorts_rows(m) && !lo->maxtext;
    y->expert_leaf = false;
    if (m->router_bias) {
        struct hb_split bias = {m->experts, 1};
        hb_layer_vector(lo, y, "router_bias", &bias, 1, -1);
    }
    if (m->shared_experts > 0) {
        struct hb_mlp shared = {.kind = m->kind, .d_ff = m->shared_d_ff};
        hb_mlp_leaves(lo, y, &shared, "shared_");
    }
}

static struct hb_value make_value(const struct hb_lower *lo, const char *name, uint32_t tags,
                                  enum hb_dtype dtype, const int64_t *dims)
{
    return (struct hb_value){.name = name,
                             .tags = tags,
                             .shape = hb_shape_make(dtype, dims),
                             .tiling = lo->habits->tiling};
}

/* From what a value is mixed. */
struct mixing {
    enum hb_op_kind op;
    int in[2];
    int in_count;
    double flops;
    uint32_t back_in;
};

static int mix(struct hb_lower *lo, struct hb_layer *y, struct hb_value v, struct mixing m)
{
    int out = hb_layer_value(lo, y, v);
    struct hb_step_op s = {.kind = HB_STEP_MIX,
                           .op = m.op,
                           .name = v.name,
                           .in = {m.in[0], m.in[1]},
                           .in_count = m.in_count,
                           .out = {out},
                           .out_count = 1,
                           .leaf = HB_NONE,
                           .flops = m.flops,
                           .back_in = m.back_in};
    hb_layer_step(lo, y, s);
    return out;
}

static int64_t plain_bytes(struct hb_shape s)
{
    return hb_shape_plain_bytes(&s);
}

/* Those whose products a device makes, over which XLA:GPU spreads a ragged product's operands. */
static int64_t spread_experts(const struct hb_lower *lo, const struct hb_moe *m)
{
    bool own = hb_layer_exchanges_rows(lo, m) || gathers_tokens(lo, m);
    return own ? hb_div_up(m->experts, expert_ways(lo)) : m->experts;
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

/* XLA:TPU's ragged products are calls: gate's and up's gradients are made in a pass of their own,
 * which reads what is kept where it lies (bwd/mlp=moe_ragged,remat=none: two bf16[32768,2816]
 * beside six stacks of them, from 653 to 870 and 873). */
static void read_in_stacks(struct hb_layer *y, const struct hb_step_op *act)
{
    for (int i = 0; i < act->in_count; i++)
        y->values[act->in[i]].read_stacked = true;
    for (int i = 1; i < act->out_count; i++)
        y->values[act->out[i]].read_stacked = true;
}

/* How each compiler makes ragged products. On XLA:TPU one fusion makes the activation and both
 * gradients in the places of gate, up and its own (phimoe,v5p,f64: three bf16[65536,6400] from 255
 * on, no fourth). XLA:ROCm's are calls; one fusion makes the activation
 * again and the gradients of gate and up from theirs (moeT/mlp=moe_ragged: six bf16[32768,2816] at
 * 307 of 539). */
static void run_ragged(struct hb_lower *lo, struct hb_layer *y, const int64_t *wide)
{
    struct hb_step_op *act = &y->steps[y->step_count - 1];
    if (lo->habits->rings) {
        read_in_stacks(y, act);
        y->values[act->out[0]].fused = false;
        act->grad_follows = false;
        act->grad_in_place = 3;
        act->makes_off = true;
    } else {
        act->grad_follows = false;
        act->back_scratch[0] = hb_shape_make(lo->compute, wide);
        act->back_scratch_count = 1;
    }
}

/* XLA:TPU's einsum over experts that are all of a device's own, or over an axis with their weights
 * between more than four ways of fsdp: it gathers the axis's tokens and makes the masks of its own
 * experts, both in one fusion, and the combine weights' gradient behind those of the experts (fsdp
 * 8 with expert 2, v5e: pred and bf16[2,4096,32,1024] at 344, the gradient at 507, weights' rings
 * from 459; fsdp 16 with 4, v6e and v5p; fsdp 32 with 2: at 477). Between fewer it comes first,
 * from outputs made again (fsdp 2 with expert 4: at 185, the outputs' gradient at 249). */
static bool is_own_einsum(const struct hb_lower *lo, const struct hb_layer *y)
{
    bool own = expert_ways(lo) == 1 || (!lo->maxtext && !hb_head_short_ring(lo));
    return lo->habits->masks_narrow && own && y->block->moe.dispatch == HB_DISPATCH_EINSUM;
}

/* The gradients of whose weights go round in rings: these read the rows, the activation and the
 * outputs' gradient turned (olmoe,v6e,f8: copies at 384, 388 and 392 to 463), not short ones, whose
 * parts all come at once (2 and 4 ways with tensor 2 to 8 or expert 4 and 8, six: none). */
static bool goes_round(const struct hb_lower *lo, const struct hb_layer *y)
{
    return is_own_einsum(lo, y) && hb_in_rings(lo) && !hb_head_short_ring(lo);
}

/* Products of all experts with their rows. */
static int expert_mlp(struct hb_lower *lo, struct hb_layer *y, int in, const int64_t *wide,
                      const int64_t *narrow)
{
    const struct hb_moe *m = &y->block->moe;
    bool gated = m->kind == HB_MLP_SWIGLU || m->kind == HB_MLP_GEGLU;
    bool ragged = hb_layer_sorts_rows(m);
    int gate = -1;
    struct hb_value v = make_value(lo, "expert gate", 1u << HB_TN_MLP_GATE, lo->compute, wide);
    v.batch_dot = !ragged;
    uint32_t first = y->step_count;
    if (gated)
        gate = hb_layer_product(lo, y, in, hb_layer_find_leaf(lo, y, "e_gate"), v);
    v.name = "expert up";
    v.tags = 1u << HB_TN_MLP_UP;
    int up = hb_layer_product(lo, y, in, hb_layer_find_leaf(lo, y, "e_up"), v);
    int act = hb_layer_activation(lo, y, gate, up, "expert activation", 1u << HB_TN_MLP_ACT);
    /* moeFG/base: the activation is made inside its readers; gate and up stay beside their
     * gradients, the first of which lies where the activation's was. */
    y->values[act].fused = y->together < 2;
    y->steps[y->step_count - 1].grad_in_place = 0;
    y->steps[y->step_count - 1].grad_follows = true;
    y->steps[y->step_count - 1].grad_fused = false;
    uint32_t down = hb_layer_find_leaf(lo, y, "e_down");
    /* moeT/base: with whole weights the gradients of gate and up lie in their places, made from
     * the outputs' gradient in one pass (multiply_multiply_fusion.20); where gathered weights'
     * gradients are late, gate and up wait beside them (moeFG/base: 4 x 82.5 MiB). */
    bool inside = lo->habits->masks_narrow && !ragged;
    bool whole = hb_weight_mode(lo, &lo->leaves[down]) == HB_WEIGHT_LOCAL;
    if (inside) {
        y->steps[y->step_count - 1].grad_follows = false;
        y->steps[y->step_count - 1].grad_in_place = whole ? 3 : 0;
    }
    if (ragged)
        run_ragged(lo, y, wide);
    /* MaxText's: the activation waits for the late gradient of down beside gate's and up's, which
     * lie in their places (mixtral/dense_cf1.5: bf16[8,2,1536,14336] three times). */
    bool own = lo->maxtext && m->dispatch != HB_DISPATCH_DENSE;
    if (own || goes_round(lo, y) || (ragged && hb_layer_exchanges_rows(lo, m))) {
        y->values[act].fused = false;
        y->steps[y->step_count - 1].grad_follows = false;
        y->steps[y->step_count - 1].grad_in_place = 3;
    }
    v = make_value(lo, "expert output", 1u << HB_TN_MOE_OUT, lo->compute, narrow);
    v.batch_dot = !ragged;
    int out = hb_layer_product(lo, y, act, down, v);
    y->steps[y->step_count - 1].grad_inline = inside;
    for (uint32_t i = first; i < y->step_count; i++)
        y->steps[i].grad_by_size = is_own_einsum(lo, y) && !goes_round(lo, y);
    return out;
}

static int exchange(struct hb_lower *lo, struct hb_layer *y, int in, struct hb_value v)
{
    return hb_layer_move(lo, y, HB_OP_ALL_TO_ALL, HB_AX_EXPERT, in, v);
}

/* An expert axis beside fsdp: the partitioner gathers the batch of all devices where the experts'
 * inputs are made (mixtral,f32e8: bf16[256,4096,4096]; phi35moe, fsdp 2 and 4 with expert 2, 4 and
 * 8, H100: bf16[4,4096,4096] to [16,4096,4096]), for the constraint on them (64 experts on v6e,
 * fsdp 128, 32 and 16 with expert 2 and 4, 1 to 4 sequences a device, without: none of ten); beside
 * tensor parallelism from fsdp 8 and 4 experts' ways on (olmoe, v6e, f32e4t2, f16e4t4; not
 * mixtral,f4e4t4, f8e2t2, f8e2t4, f32e2t4, with a whole residual, too). */
enum { TENSOR_GATHER_WAYS = 8, TENSOR_EXPERT_WAYS = 4 };

static void gather_globally(const struct hb_lower *lo, struct hb_step_op *s, const struct routed *r)
{
    int64_t fsdp = hb_ways(lo, HB_AX_FSDP), ways = hb_mul_sat(fsdp, expert_ways(lo));
    if (r->joins)
        ways = lo->local.batch_ways;
    bool tensor = hb_ways(lo, HB_AX_TENSOR) > 1;
    if (ways == expert_ways(lo) ||
        (tensor && (fsdp < TENSOR_GATHER_WAYS || expert_ways(lo) < TENSOR_EXPERT_WAYS)))
        return;
    int64_t d = lo->spec->model.d_model;
    int64_t batch = hb_mul_sat(r->batch, ways);
    s->back_scratch[s->back_scratch_count++] =
        hb_shape_make(lo->compute, (const int64_t[]){batch, r->seq, d, -1});
    /* The gathered batch is a place, not a pass over memory: the recipe of Mixtral 8x22B on 256 x
     * v6e (AI-Hypercomputer/tpu-recipes) ran in 32 GiB, where it would be 96. */
    double kept = (double)r->tokens + (double)(r->batch * r->masked) * (double)r->capacity;
    s->back_moved_bytes = 2 * kept * (double)d * (double)hb_dtype_bits(lo->compute) / 8;
    /* XLA:TPU gathers the gradient of a device's own tokens when what that was made from is gone
     * (dslite,f8e8 with 4 layers: bf16[64,4096,2048] at 1423 beside bf16[8,4096,2048] alone; olmoe
     * on v6e and v5p, fsdp 32 with expert 2, 4 and 8, 64 with 4), on v5e beside what the
     * weights' gradients are made of (f32e2, f16e4: bf16[512,2048,2048] from before those on; of
     * 256 sequences bf16[256,4096,2048] at 1531 of 2636, no mask nor its gradient). */
    bool last = lo->habits->rings && !tensor;
    s->back_scratch_after = last;
    /* The product is that of an expert group's sequences, summed over it (olmoe, v6e, f32e2:
     * bf16[32,2048,2048], then bf16[1024,2048,2048], of which 16 sequences are cut). */
    if (last)
        s->back_group =
            hb_shape_make(lo->compute, (const int64_t[]){r->expert_batch, r->seq, d, -1});
    if (!tensor || lo->local.resid_seq < lo->local.seq)
        return;
    /* With tensor parallelism the products are of the whole batch, too (ds3,f32e8t2:
     * bf16[256,32,160,7168] and pred[256,4096,32,160]), unless it splits the residual (olmoe, v6e,
     * f32e4t2: bf16[128,8192,2048] alone). */
    s->back_scratch[s->back_scratch_count++] =
        hb_shape_make(lo->compute, (const int64_t[]){batch, r->experts, r->capacity, d, -1});
    s->back_scratch[s->back_scratch_count++] =
        hb_shape_make(HB_DT_PRED, (const int64_t[]){batch, r->seq, r->experts, r->capacity, -1});
}

/* remat none under a scan keeps what the weights were put together from, a token's choices by
 * place and by expert (bwd/mlp=moe_einsum,remat=none: bf16[4,8,2048,2,640] and [4,8,2048,2,8]). */
static void keep_choices(struct hb_lower *lo, struct hb_layer *y, const struct routed *r,
                         const int64_t *masks)
{
    static const char *const names[] = {"experts of the choices", "places of the choices"};
    struct hb_step_op *s = &y->steps[y->step_count - 1];
    for (int i = 0; i < 2; i++) {
        struct hb_value v = make_value(
            lo, names[i], 0, lo->compute,
            (const int64_t[]){r->batch, masks[1], y->block->moe.top_k, masks[2 + i], -1});
        v.fused = true;
        v.trace_only = true;
        s->out[s->out_count++] = hb_layer_value(lo, y, v);
    }
}

/* For the way back the places of all tokens that it is handed come to a device as a mask
 * (granite-3b -moe, 40 experts over 8, 8 of them a token: pred[16,4096,8,1024] beside masks of
 * bf16[65536,5,1024] and their gradient). */
static int join_places(struct hb_lower *lo, struct hb_layer *y, int probs, const int64_t *masks)
{
    struct hb_value v =
        make_value(lo, "places of the choices, gathered", 0, HB_DT_PRED,
                   (const int64_t[]){masks[0], masks[1], y->block->moe.top_k, masks[3], -1});
    v.unseen = true;
    int places = mix(lo, y, v, (struct mixing){.op = HB_OP_GATHER, .in = {probs}, .in_count = 1});
    y->steps[y->step_count - 1].no_grad = true;
    return places;
}

/* XLA:TPU's list takes first what adds less: the gather of an expert weight, or the masks (olmoe:
 * bf16[64,2048,1024] before bf16[8,4096,64,640] and its predicate; phimoe: 800 MiB before 960;
 * mixtral over 64: 120 before 896). */
static bool gathers_less(const struct hb_lower *lo, const struct hb_layer *y, const int64_t *masks)
{
    const struct hb_leaf *down = &lo->leaves[hb_layer_find_leaf(lo, y, "e_down")];
    struct hb_shape weight = hb_leaf_layer_shape(down, lo->compute, true);
    struct hb_shape weights = hb_shape_make(lo->compute, masks);
    struct hb_shape mask = hb_shape_make(HB_DT_PRED, masks);
    return plain_bytes(weight) < hb_add_sat(plain_bytes(weights), plain_bytes(mask));
}

/* The weights that put the experts' outputs together, and their mask, which is returned. */
static int einsum_masks(struct hb_lower *lo, struct hb_layer *y, int probs, const struct routed *r,
                        const int64_t *masks, int *out_combine)
{
    bool narrow = lo->habits->masks_narrow;
    bool own = is_own_einsum(lo, y);
    int places = r->joins ? join_places(lo, y, probs, masks) : -1;
    struct hb_value v =
        make_value(lo, "moe combine weights", 1u << HB_TN_MOE_COMBINE, lo->compute, masks);
    v.batch_dot = true;
    *out_combine = mix(lo, y, v,
                       (struct mixing){.op = HB_OP_ELEMENTWISE,
                                       .in = {probs, places},
                                       .in_count = 1 + r->joins,
                                       .back_in = r->joins ? 3 : 1});
    keep_choices(lo, y, r, masks);
    y->steps[y->step_count - 1].scratch[0] = hb_shape_make(HB_DT_PRED, masks);
    y->steps[y->step_count - 1].scratch_count = narrow ? 0 : 1;
    /* moeT/base: the router's gradient is made of it at once (fusion.608, 160 MiB for a moment). */
    y->steps[y->step_count - 1].eager = narrow || r->joins;
    /* One fusion makes both (broadcast_compare_fusion: pred and bf16[8,4096,64,640]). */
    y->steps[y->step_count - 1].with_next = own;
    y->steps[y->step_count - 1].experts_there = own && gathers_less(lo, y, masks);
    int disp = mix(
        lo, y, make_value(lo, "moe dispatch mask", 1u << HB_TN_MOE_DISPATCH, lo->compute, masks),
        (struct mixing){.op = HB_OP_ELEMENTWISE, .in = {*out_combine}, .in_count = 1});
    /* An iteration of a pipeline makes the mask again from the weights, and keeps the activation
     * for its product (pr85/pp8: bf16[16384,16,640] once a layer, bf16[1,16,2048,4,640]). */
    y->values[disp].cheap = true;
    y->values[disp].mask = narrow;
    y->values[disp].weighs = narrow && !own;
    y->values[disp].fused = !narrow && y->together < 2;
    y->steps[y->step_count - 1].no_grad = true;
    return disp;
}

/* moeT/base, moeT/capacity=2.0: one bf16[8,2048,8,1024] where the gradient of the weights is.
 * Gathered experts: the gradient of the outputs first, of the weights last, from outputs made
 * again as soon as those are gone (olmoe over 4, 8, 64, 256: bf16[8,4096,64,640] from 243 to
 * 246 and from 275 on, bf16[64,2048,8,640] from 246 to 256, bf16[8,64,640,2048] from 258 on).
 * CUDA makes the weights' gradient of one sequence last where no gather is to hide behind it (64
 * experts of a device, 8192 tokens: bf16[8192,64,1280] from 296 to 319 and bf16[8192,81920] from
 * 322; of two sequences of 4096 and 8192, four, two over data 4 together, and over fsdp 8, from 334
 * to 341), and above the limit the weights are made again after it on
 * both (qwen30b, fsdp 32: gemm_fusion_dot.96.remat2, one bf16[2,16384,163840]; dsmoe, fsdp 2
 * with expert 4; moe1b). ROCm makes it last, from outputs made again, when the
 * weights are gone (olmoe, fsdp 16 with tensor 2, one of 16,384 tokens: 86 to 131 and at 141;
 * qwen30b over fsdp 8 with tensor 2; granite-3b-moe over expert 4), of several sequences, too, but
 * beside turned inputs and outputs that are not told (olmoe, fsdp 8: five bf16[4,64,1280,2048]). */
static bool is_weights_last(const struct hb_lower *lo, const struct hb_layer *y, bool whole)
{
    bool alone = lo->local.batch == 1 && (whole || lo->habits->weights_last);
    return (is_own_einsum(lo, y) && !whole) || alone || lo->spec->share == HB_SHARE_EXCEEDED;
}

static void order_gradients(const struct hb_lower *lo, const struct hb_layer *y,
                            struct hb_step_op *step, bool narrow)
{
    uint32_t down = hb_layer_find_leaf(lo, y, "e_down");
    bool whole = hb_weight_mode(lo, &lo->leaves[down]) == HB_WEIGHT_LOCAL;
    step->turned_for_ring = goes_round(lo, y);
    step->grad_in_place = narrow && whole ? 1 : narrow ? 2 : 0;
    step->first_last = is_weights_last(lo, y, whole);
}

/* Of tokens that came from other devices, steps `first` to `last`: the experts' weights' gradients
 * wait for the layer's end, and XLA:CUDA, which hides the gather of the outputs' gradient behind
 * the experts, makes that of the combine weights when the activation's is there (granite-3b-moe,
 * fsdp 4 with expert 8: at 122, the outputs again at 116, products of weights from 143 on). */
static void order_joined(const struct hb_lower *lo, struct hb_layer *y, uint32_t first,
                         uint32_t last, const struct hb_step_op *gather)
{
    struct hb_step_op *sum = &y->steps[last];
    bool timed = hides_gathers(lo), late = sum->first_last && !hb_moe_waits_for_router(lo);
    /* Where products are of the whole batch, so is this one, of weights that are turned (fsdp 8
     * with expert 4 and tensor 2: bf16[64,4096,10,1024] and [64,4096,1024,10]). */
    for (int i = 1; i < gather->back_scratch_count; i++)
        sum->scratch[sum->scratch_count++] = gather->back_scratch[i];
    for (int i = 0; i < sum->scratch_count; i++)
        sum->scratch[i].dtype = lo->compute;
    if (sum->scratch_count > 1)
        sum->scratch[sum->scratch_count++] = sum->scratch[1];
    sum->first_last = true;
    sum->off_early = timed && !late;
    for (uint32_t i = first; i < last; i++) {
        struct hb_step_op *s = &y->steps[i];
        s->grad_late = s->kind == HB_STEP_PRODUCT;
        if (s->op != HB_OP_ELEMENTWISE)
            continue;
        s->makes_off = timed && y->values[y->steps[last - 1].out[0]].turned == 0;
        y->values[s->out[0]].fused = false;
    }
}

/* The whole axis's tokens before the experts, and the sum of all ranks' parts behind them
 * (use_ring_of_experts in MaxText's layers/moe.py). */
static int gather_tokens(struct hb_lower *lo, struct hb_layer *y, int in, int64_t seq,
                         const struct routed *r)
{
    const int64_t all[] = {r->expert_batch, seq, lo->spec->model.d_model, -1};
    struct hb_value v = make_value(lo, "tokens of the expert axis", 0, lo->compute, all);
    v.unseen = y->block->moe.dispatch == HB_DISPATCH_EINSUM;
    return hb_layer_move(lo, y, HB_OP_ALL_GATHER, HB_AX_EXPERT, in, v);
}

static int sum_outputs(struct hb_lower *lo, struct hb_layer *y, int in, struct hb_value v)
{
    int out = hb_layer_move(lo, y, HB_OP_REDUCE_SCATTER, HB_AX_EXPERT, in, v);
    y->steps[y->step_count - 1].back_op = HB_OP_ALL_GATHER;
    return out;
}

/* The outputs put together by their weights: of a device's own tokens, or a part of all those that
 * came to it, which then goes back to each. */
static int combine(struct hb_lower *lo, struct hb_layer *y, struct mixing m, const struct routed *r,
                   int64_t seq)
{
    int64_t d = lo->spec->model.d_model, own = r->joins ? seq : r->seq;
    struct hb_value v = make_value(lo, "moe output", 1u << HB_TN_MLP_DOWN, lo->compute,
                                   (const int64_t[]){r->batch, own, d, -1});
    v.batch_dot = true;
    struct hb_value part = v;
    part.fused = !r->joins;
    if (!r->joins)
        return mix(lo, y, part, m);
    part.shape.dim[0] = r->expert_batch;
    part.unseen = true;
    part.tags = 0;
    v.name = "moe output, summed";
    return sum_outputs(lo, y, mix(lo, y, part, m), v);
}

/* Several sequences of gathered experts, between whose collectives latency hiding has an order. */
static bool is_turned(const struct hb_lower *lo, const struct hb_layer *y, const struct routed *r)
{
    const struct hb_leaf *down = &lo->leaves[hb_layer_find_leaf(lo, y, "e_down")];
    return r->expert_batch > 1 && r->experts > 1 && hides_gathers(lo) &&
           y->block->remat.policy != HB_POLICY_NONE &&
           (r->joins || hb_weight_grad_partial(lo, down));
}

static int einsum(struct hb_lower *lo, struct hb_layer *y, int in, int probs,
                  const struct routed *r)
{
    int64_t E = r->joins ? r->experts : r->masked, batch = r->joins ? r->expert_batch : r->batch;
    int64_t d = lo->spec->model.d_model;
    bool apart = r->masked > r->experts;
    /* They are split as the residual (olmoe, fsdp 2 with tensor 8, 16384 tokens, sp_residual, H100:
     * bf16[4096,64,2560] of 32768 tokens; without it bf16[8192,64,1280] of as many; v6e, fsdp 32
     * with tensor 2, 4096 tokens: pred[8,2048,64,640]). */
    int64_t seq = lo->local.resid_seq;
    const int64_t masks[] = {batch, seq, E, r->capacity, -1};
    const int64_t here[] = {batch, E, r->capacity, d, -1};
    const int64_t there[] = {r->expert_batch, r->experts, r->capacity, d, -1};
    const int64_t wide[] = {r->expert_batch, r->experts, r->capacity, r->width, -1};
    double flops = 2.0 * (double)r->tokens * (double)r->masked * (double)r->capacity * (double)d;
    int comb;
    int disp = einsum_masks(lo, y, probs, r, masks, &comb);
    uint32_t first = y->value_count;
    if (r->joins)
        in = gather_tokens(lo, y, in, seq, r);
    uint32_t made = y->step_count - r->joins;
    struct hb_value v = make_value(lo, "expert inputs", 0, lo->compute, here);
    v.batch_dot = true;
    struct mixing m = {
        .op = HB_OP_MATMUL, .in = {disp, in}, .in_count = 2, .flops = flops, .back_in = 1};
    int x = mix(lo, y, v, m);
    y->steps[y->step_count - 1].turned_for_ring = goes_round(lo, y);
    for (uint32_t i = y->first_leaf; i < y->end_leaf; i++)
        if (lo->leaves[i].rank == 3 && lo->leaves[i].matrix && lo->leaves[i].held)
            lo->leaves[i].einsum_batch = r->expert_batch;
    if (apart && lo->spec->sharding.activation_constraints)
        gather_globally(lo, &y->steps[made], r);
    if (apart && !r->joins)
        x = exchange(lo, y, x, make_value(lo, "expert inputs, exchanged", 0, lo->compute, there));
    bool turned = is_turned(lo, y, r) && (!apart || r->joins) && !y->steps[made].back_scratch_count;
    if (turned)
        x = hb_moe_turn_rows(lo, y, x);
    uint32_t steps = y->step_count;
    int o = expert_mlp(lo, y, x, wide, there);
    if (!y->values[disp].mask)
        hb_moe_turn_kept(y, first, r->expert_batch > 1 && r->experts > 1);
    if (turned)
        o = hb_moe_turn_rows(lo, y, o);
    if (apart && !r->joins)
        o = exchange(lo, y, o, make_value(lo, "expert outputs, returned", 0, lo->compute, here));
    m = (struct mixing){
        .op = HB_OP_MATMUL, .in = {comb, o}, .in_count = 2, .flops = flops, .back_in = 3};
    uint32_t last = y->step_count;
    int sum = combine(lo, y, m, r, seq);
    order_gradients(lo, y, &y->steps[last], y->values[disp].mask);
    if (r->joins)
        order_joined(lo, y, steps, last, &y->steps[made]);
    if (turned)
        hb_moe_order_turned(y, steps - 1, last);
    if (!y->values[disp].mask && y->steps[last].scratch_count == 0)
        hb_moe_turn_weights(&y->steps[last], masks);
    return sum;
}

/* Buffers are as long as the worst case; time is that of an even load. */
/* Rows that grouped products work on: a tile that two experts share is visited for both (jax,
 * experimental/pallas/ops/tpu/megablox/gmm.py, make_group_metadata). */
static double visited_rows(const struct hb_lower *lo, const struct hb_moe *m,
                           const struct routed *r)
{
    double rows = (double)r->tokens * (double)m->top_k;
    if (m->kernel == HB_MOE_RAGGED_DOT || r->experts < 2)
        return rows;
    return rows + (double)(r->experts - 1) * (double)lo->habits->group_tile;
}

/* XLA:GPU's products over operands spread by expert multiply the zeros, too (H100, 64 experts:
 * bf16[98304,131072] with bf16[131072,1408], where a token's rows are 2048 wide). */
static double made_rows(const struct hb_lower *lo, const struct hb_moe *m, const struct routed *r)
{
    if (!lo->habits->ragged_dense || !hb_layer_sorts_rows(m))
        return visited_rows(lo, m, r);
    return (double)r->rows * (double)spread_experts(lo, m);
}

static void count_balanced(struct hb_layer *y, uint32_t first, double rows, int64_t room)
{
    for (uint32_t i = first; i < y->step_count && room > 0; i++)
        y->steps[i].flops *= rows / (double)room;
}

/* Rows to the devices of their experts, or back: in the buffer of the worst case, but no more is
 * sent than the rows that there are. */
static int exchange_rows(struct hb_lower *lo, struct hb_layer *y, int in, struct hb_value v,
                         const struct routed *r)
{
    double rows = (double)r->tokens * (double)y->block->moe.top_k;
    int out = exchange(lo, y, in, v);
    y->steps[y->step_count - 1].sent_bytes =
        hb_payload_bytes(HB_OP_ALL_TO_ALL, 1, expert_ways(lo)) * rows *
        (double)lo->spec->model.d_model * (double)hb_dtype_bits(lo->compute) / 8;
    return out;
}

/* Rows that come from other devices: at the end of the experts' backward pass the sorted rows and
 * the outputs' gradient wait for the late weight gradients, with the activation and both gradients
 * of the hidden width, while the outputs are made again and sent back for the router's gradient
 * beside the rows' own (deepseek3-671b/ep16: five bf16[524288,7168] and three of 2048;
 * deepseek2-16b over 16: five of 2048, three of 1408). */
static int sort_rows(struct hb_lower *lo, struct hb_layer *y, int in, const struct routed *r)
{
    int64_t d = lo->spec->model.d_model;
    int64_t own = hb_mul_sat(r->tokens, y->block->moe.top_k);
    const int64_t rows[] = {r->rows, d, -1}, here[] = {own, d, -1};
    struct hb_value v =
        make_value(lo, "tokens sorted by expert", 1u << HB_TN_MOE_SORTED, lo->compute, rows);
    if (!hb_layer_exchanges_rows(lo, &y->block->moe))
        return mix(lo, y, v, (struct mixing){.op = HB_OP_GATHER, .in = {in}, .in_count = 1});
    int sorted = mix(lo, y, make_value(lo, "tokens in order of expert", 0, lo->compute, here),
                     (struct mixing){.op = HB_OP_GATHER, .in = {in}, .in_count = 1});
    struct hb_step_op *sort = &y->steps[y->step_count - 1];
    sort->back_scratch[0] = hb_shape_make(lo->compute, (const int64_t[]){3, r->rows, d, -1});
    sort->back_scratch_count = 1;
    return exchange_rows(lo, y, sorted, v, r);
}

/* The experts' outputs where and as their tokens are. */
static int return_rows(struct hb_lower *lo, struct hb_layer *y, int out, const struct routed *r)
{
    int64_t d = lo->spec->model.d_model;
    int64_t own = hb_mul_sat(r->tokens, y->block->moe.top_k);
    const int64_t rows[] = {r->rows, d, -1}, here[] = {own, d, -1};
    int back = mix(lo, y, make_value(lo, "expert outputs in token order", 0, lo->compute, rows),
                   (struct mixing){.op = HB_OP_GATHER, .in = {out}, .in_count = 1});
    if (!hb_layer_exchanges_rows(lo, &y->block->moe))
        return back;
    return exchange_rows(lo, y, back,
                         make_value(lo, "expert outputs, returned", 0, lo->compute, here), r);
}

static int ragged(struct hb_lower *lo, struct hb_layer *y, int in, int probs,
                  const struct routed *r)
{
    const struct hb_moe *m = &y->block->moe;
    int64_t d = lo->spec->model.d_model;
    const int64_t rows[] = {r->rows, d, -1};
    const int64_t wide[] = {r->rows, r->width, -1};
    bool gathers = gathers_tokens(lo, m);
    int x = sort_rows(lo, y, gathers ? gather_tokens(lo, y, in, r->seq, r) : in, r);
    uint32_t first = y->step_count;
    int o = expert_mlp(lo, y, x, wide, rows);
    count_balanced(y, first, made_rows(lo, m, r), r->rows);
    int back = return_rows(lo, y, o, r);
    if (lo->habits->ragged_dense)
        expand_ragged(lo, y, first);
    struct hb_value v = make_value(lo, "moe output", 1u << HB_TN_MLP_DOWN, lo->compute,
                                   (const int64_t[]){r->expert_batch, r->seq, d, -1});
    v.fused = !gathers;
    v.tags = gathers ? 0 : v.tags;
    int out = mix(lo, y, v,
                  (struct mixing){.op = HB_OP_ELEMENTWISE,
                                  .in = {probs, back},
                                  .in_count = 2,
                                  .flops = 2.0 * (double)r->rows * (double)d,
                                  .back_in = 3});
    /* XLA:TPU makes the gradient of the outputs first; they themselves are made again, for the
     * router's, behind the activation's gradient (phimoe,v5p,f64: bf16[65536,4096] from 226, again
     * from 260, gate and up from 249, their gradients at 255; olmoe,v6e,f8 at 247 and 298). */
    struct hb_step_op *step = &y->steps[y->step_count - 1];
    for (uint32_t i = first; i < y->step_count; i++)
        step->first_last = step->first_last || y->steps[i].makes_off;
    step->off_early = step->first_last;
    if (!gathers)
        return out;
    v = make_value(lo, "moe output, summed", 1u << HB_TN_MLP_DOWN, lo->compute,
                   (const int64_t[]){r->batch, r->seq, d, -1});
    return sum_outputs(lo, y, out, v);
}

/* Every expert computes every token; the weights pick afterwards. */
static int dense(struct hb_lower *lo, struct hb_layer *y, int in, int probs, const struct routed *r)
{
    int64_t d = lo->spec->model.d_model;
    const int64_t all[] = {r->batch, r->seq, r->experts, d, -1};
    const int64_t wide[] = {r->batch, r->seq, r->experts, r->width, -1};
    int o = expert_mlp(lo, y, in, wide, all);
    struct hb_value v = make_value(lo, "moe output", 1u << HB_TN_MLP_DOWN, lo->compute,
                                   (const int64_t[]){r->batch, r->seq, d, -1});
    v.fused = true;
    double flops = 2.0 * (double)r->tokens * (double)r->experts * (double)d;
    return mix(lo, y, v,
               (struct mixing){.op = HB_OP_ELEMENTWISE,
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
    struct routed r = find_routed(lo, m, batch);
    const int64_t logits[] = {batch, r.seq, m->experts, -1};
    struct hb_value v = make_value(lo, "router logits", 0, m->router_dtype, logits);
    int router = hb_layer_product(lo, y, in, hb_layer_find_leaf(lo, y, "router"), v);
    int probs = mix(lo, y, make_value(lo, "router probabilities", 0, HB_DT_F32, logits),
                    (struct mixing){.op = HB_OP_ELEMENTWISE,
                                    .in = {router},
                                    .in_count = 1,
                                    .flops = 8.0 * (double)r.tokens * (double)m->experts,
                                    .back_in = 1});
    int out = -1;
    switch (m->dispatch) {
    case HB_DISPATCH_EINSUM:
        out = einsum(lo, y, in, probs, &r);
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
