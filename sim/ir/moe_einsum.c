/* The dispatch by one-hot masks: see moe_einsum.h. */
#include "sim/ir/moe_einsum.h"

#include "base/size.h"
#include "sim/ir/moe_turn.h"
#include "sim/ir/weight.h"

static bool hides_gathers(const struct hb_lower *lo)
{
    return lo->habits->gathers_timed;
}

/* An expert axis beside fsdp: the partitioner gathers the batch of all devices where the experts'
 * inputs are made, for the constraint on them (mixtral,f32e8: bf16[256,4096,4096]); beside tensor
 * parallelism from fsdp 8 and 4 experts' ways on (olmoe, v6e, f32e4t2; not mixtral,f4e4t4). */
enum { TENSOR_GATHER_WAYS = 8, TENSOR_EXPERT_WAYS = 4 };

static void gather_globally(const struct hb_lower *lo, struct hb_step_op *s,
                            const struct hb_moe_routed *r, bool after)
{
    int64_t fsdp = hb_ways(lo, HB_AX_FSDP), ways = hb_mul_sat(fsdp, hb_moe_ways(lo));
    if (r->joins)
        ways = lo->local.batch_ways;
    bool tensor = hb_ways(lo, HB_AX_TENSOR) > 1;
    if (ways == hb_moe_ways(lo) ||
        (tensor && (fsdp < TENSOR_GATHER_WAYS || hb_moe_ways(lo) < TENSOR_EXPERT_WAYS)))
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
     * (dslite,f8e8 with 4 layers: bf16[64,4096,2048] at 1423 beside bf16[8,4096,2048] alone), on
     * v5e beside what the weights' gradients are made of (f32e2: bf16[512,2048,2048]). */
    s->back_scratch_after = after;
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

static int64_t plain_bytes(struct hb_shape s)
{
    return hb_shape_plain_bytes(&s);
}

/* remat none under a scan keeps what the weights were put together from, a token's choices by
 * place and by expert (bwd/mlp=moe_einsum,remat=none: bf16[4,8,2048,2,640] and [4,8,2048,2,8]). */
static void keep_choices(struct hb_lower *lo, struct hb_layer *y, const struct hb_moe_routed *r,
                         const int64_t *masks)
{
    static const char *const names[] = {"experts of the choices", "places of the choices"};
    struct hb_step_op *s = &y->steps[y->step_count - 1];
    for (int i = 0; i < 2; i++) {
        struct hb_value v = hb_moe_value(
            lo, names[i], 0, lo->compute,
            (const int64_t[]){r->batch, masks[1], y->block->moe.top_k, masks[2 + i], -1});
        v.fused = true;
        v.trace_only = true;
        s->out[s->out_count++] = hb_layer_value(lo, y, v);
    }
}

/* For the way back the places of all tokens that it is handed come to a device as a mask
 * (granite-3b-moe, 40 experts over 8: pred[16,4096,8,1024] beside bf16[65536,5,1024]). */
static int join_places(struct hb_lower *lo, struct hb_layer *y, int probs, const int64_t *masks)
{
    struct hb_value v =
        hb_moe_value(lo, "places of the choices, gathered", 0, HB_DT_PRED,
                     (const int64_t[]){masks[0], masks[1], y->block->moe.top_k, masks[3], -1});
    v.unseen = true;
    int places = hb_layer_make(
        lo, y, v, (struct hb_step_op){.op = HB_OP_GATHER, .in = {probs}, .in_count = 1});
    y->steps[y->step_count - 1].no_grad = true;
    return places;
}

/* XLA:TPU's list takes first what adds less: the gather of an expert weight, or the masks (olmoe:
 * bf16[64,2048,1024] before bf16[8,4096,64,640]; mixtral over 64: masks of 120 MiB before 896). */
static bool gathers_less(const struct hb_lower *lo, const struct hb_layer *y, const int64_t *masks)
{
    const struct hb_leaf *down = &lo->leaves[hb_layer_find_leaf(lo, y, "e_down")];
    struct hb_shape weight = hb_leaf_layer_shape(down, lo->compute, true);
    struct hb_shape weights = hb_shape_make(lo->compute, masks);
    struct hb_shape mask = hb_shape_make(HB_DT_PRED, masks);
    return plain_bytes(weight) < hb_add_sat(plain_bytes(weights), plain_bytes(mask));
}

/* Masks along whose lanes neither places nor experts fill a row, or whose experts fill no tile, are
 * turned to have the tokens there, as the weights themselves (64 experts, 320 and 480 places:
 * bf16[8,2048,64,320] at 295 and 299; 128 experts: pred[2,4096,128,320]; 20: no predicate). */
static bool is_wide(const struct hb_lower *lo, const struct hb_moe_routed *r)
{
    int64_t here = r->joins ? r->experts : r->masked;
    bool padded = here > HB_TPU_SUBLANES / 2 && here % HB_TPU_SUBLANES != 0;
    return (hb_moe_ways(lo) == 1 || r->joins) && here % HB_TPU_LANES != 0 &&
           (r->capacity % HB_TPU_LANES != 0 || padded);
}

/* The weights that put the experts' outputs together, and their mask, which is returned. */
static int einsum_masks(struct hb_lower *lo, struct hb_layer *y, int probs,
                        const struct hb_moe_routed *r, const int64_t *masks, int *out_combine)
{
    bool narrow = lo->habits->masks_narrow, wide = narrow && is_wide(lo, r);
    bool own = hb_moe_is_own_einsum(lo, y), full = r->capacity % HB_TPU_LANES == 0;
    int places = r->joins ? join_places(lo, y, probs, masks) : -1;
    struct hb_value v =
        hb_moe_value(lo, "moe combine weights", 1u << HB_TN_MOE_COMBINE, lo->compute, masks);
    v.batch_dot = true;
    v.wide_mask = wide;
    v.for_ring = wide && !full ? HB_RING_MASK : hb_moe_mask_for(lo);
    v.tiling = wide ? HB_TILE_MINOR : v.tiling;
    *out_combine = hb_layer_make(lo, y, v,
                                 (struct hb_step_op){.op = HB_OP_ELEMENTWISE,
                                                     .in = {probs, places},
                                                     .in_count = 1 + r->joins,
                                                     .back_in = r->joins ? 3 : 1});
    keep_choices(lo, y, r, masks);
    y->steps[y->step_count - 1].scratch[0] = hb_shape_make(HB_DT_PRED, masks);
    y->steps[y->step_count - 1].scratch_count = narrow ? 0 : 1;
    y->steps[y->step_count - 1].eager = narrow || r->joins;
    /* One fusion makes both (broadcast_compare_fusion: pred and bf16[8,4096,64,640]). */
    y->steps[y->step_count - 1].with_next = own;
    y->steps[y->step_count - 1].experts_there = own && gathers_less(lo, y, masks);
    int disp = hb_layer_make(
        lo, y, hb_moe_value(lo, "moe dispatch mask", 1u << HB_TN_MOE_DISPATCH, lo->compute, masks),
        (struct hb_step_op){.op = HB_OP_ELEMENTWISE, .in = {*out_combine}, .in_count = 1});
    /* An iteration of a pipeline makes the mask again from the weights (pr85/pp8). */
    y->values[disp].cheap = true;
    y->values[disp].mask = narrow;
    y->values[disp].wide_mask = wide;
    y->values[*out_combine].back_as = wide && !full ? disp : 0;
    y->values[disp].weighs = narrow && !own;
    y->values[disp].fused = !narrow && y->together < 2;
    y->steps[y->step_count - 1].no_grad = true;
    return disp;
}

/* moeT/base: one bf16[8,2048,8,1024] where the gradient of the weights is. Gathered experts: the
 * gradient of the outputs first, of the weights last, from outputs made again as soon as those are
 * gone (olmoe over 4 to 256: bf16[8,4096,64,640] from 243 to 246 and from 275 on). CUDA makes the
 * weights' gradient of one sequence last where no gather is to hide behind it (64 experts of a
 * device), and above the limit the weights are made again after it on both. ROCm makes it last, of
 * more sequences where the outputs are summed over tensor (qwen3-30b and phimoe over 4 and 8). */
static void order_gradients(const struct hb_lower *lo, const struct hb_layer *y,
                            struct hb_step_op *step, bool narrow)
{
    const struct hb_leaf *down = &lo->leaves[hb_layer_find_leaf(lo, y, "e_down")];
    bool whole = hb_weight_mode(lo, down) == HB_WEIGHT_LOCAL, one = lo->local.batch == 1;
    bool last = (one || down->dim[1].ways > 1) && lo->habits->weights_last;
    step->grad_in_place = narrow && whole ? 1 : narrow ? 2 : 0;
    step->first_last = whole ? one : hb_moe_is_own_einsum(lo, y);
    step->first_last |= last || lo->spec->share == HB_SHARE_EXCEEDED;
    step->off_early = hb_moe_in_list(lo, y);
}

/* Rings read the outputs' gradient in another layout than the product with the weights makes unless
 * experts fill the lanes, and the rows where places fill them or a ring takes less than a row of
 * the features (olmoe, fsdp 16 with expert 2: copies at 1191 and 1197). XLA:TPU's list takes next
 * what frees most (libtpu's log, 13 of 15): behind the activation's gradients a ring frees nothing
 * until it is done; a product through gate or up frees its weight and takes rows, as the outputs
 * made again do, which let go of the activation, too, where down's ring has its copy (v6e). The
 * combine weights' gradient, of those and the tokens' gathered gradient, comes among them (olmoe,
 * fsdp 8 with expert 4: before the products; granite over 16 and 2: behind the tokens'). */
static void order_rings(const struct hb_lower *lo, struct hb_layer *y,
                        const struct hb_moe_routed *r, const struct hb_step_op *sum, int x)
{
    struct hb_value *v = y->values, *weights = &v[sum->in[0]];
    const struct hb_step_op *down = &y->steps[v[sum->in[1]].producer];
    struct hb_step_op *rows = &y->steps[v[x].producer];
    struct hb_step_op *act = &y->steps[v[down->in[0]].producer];
    struct hb_shape weight = hb_leaf_layer_shape(&lo->leaves[down->leaf], lo->compute, true);
    int64_t part = lo->spec->model.d_model / hb_larger(lo->leaves[down->leaf].fsdp_ways, 1);
    bool full = r->capacity % HB_TPU_LANES == 0, thin = part < HB_TPU_LANES;
    int64_t made = plain_bytes(v[x].shape), mask = plain_bytes(weights->shape);
    int64_t gain = plain_bytes(weight) - made, wide = plain_bytes(v[down->in[0]].shape);
    int64_t late = made - mask + (r->joins ? plain_bytes(v[sum->out[0]].shape) : 0);
    bool copied = full && (thin || weights->for_ring == HB_RING_MASK);
    bool turned = r->experts % HB_TPU_LANES != 0;
    v[sum->in[1]].for_ring = turned ? HB_RING_GRADIENT : HB_RING_AS_IS;
    v[x].for_ring = turned && (full || thin) ? HB_RING_VALUE : HB_RING_AS_IS;
    /* The tokens are gathered before the masks where they add less. */
    if (r->joins && 2 * plain_bytes(v[rows->in[1]].shape) < 3 * mask)
        y->steps[weights->producer].before = rows->in[1];
    if (!hb_moe_in_list(lo, y))
        return;
    act->listed = rows->listed = rows->outputs_again = true;
    act->late_first = gain < 0 && !copied;
    act->outputs_again = copied && wide < -gain;
    act->makes_off = act->outputs_again && late >= gain;
    rows->makes_off = !act->makes_off;
    rows->late_first = r->joins && late < (copied ? -wide : 0);
}

/* Of tokens that came from other devices, steps `first` to `last`: the experts' weights' gradients
 * wait for the layer's end, and XLA:CUDA, which hides the gather of the outputs' gradient behind
 * the experts, makes that of the combine weights when the activation's is there. */
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
    sum->first_last = true;
    sum->off_early = timed && !late;
    for (uint32_t i = first; i < last; i++) {
        struct hb_step_op *s = &y->steps[i];
        s->grad_late = s->kind == HB_STEP_PRODUCT;
        if (s->op != HB_OP_ELEMENTWISE)
            continue;
        s->makes_off = y->values[y->steps[last - 1].out[0]].turned == 0;
        y->values[s->out[0]].fused = false;
    }
}

/* The outputs put together by their weights: of a device's own tokens, or a part of all those that
 * came to it, which then goes back to each. */
static int combine(struct hb_lower *lo, struct hb_layer *y, struct hb_step_op m,
                   const struct hb_moe_routed *r, int64_t seq)
{
    int64_t d = lo->spec->model.d_model, own = r->joins ? seq : r->seq;
    struct hb_value v = hb_moe_value(lo, "moe output", 1u << HB_TN_MLP_DOWN, lo->compute,
                                     (const int64_t[]){r->batch, own, d, -1});
    v.batch_dot = true;
    struct hb_value part = v;
    part.fused = !r->joins;
    if (!r->joins)
        return hb_layer_make(lo, y, part, m);
    part.shape.dim[0] = r->expert_batch;
    part.unseen = true;
    part.tags = 0;
    v.name = "moe output, summed";
    int sum = hb_layer_make(lo, y, part, m);
    return hb_layer_move(lo, y, HB_OP_REDUCE_SCATTER, HB_AX_EXPERT, sum, v);
}

/* Several sequences of gathered experts, between whose collectives latency hiding has an order. */
static bool is_turned(const struct hb_lower *lo, const struct hb_layer *y,
                      const struct hb_moe_routed *r)
{
    const struct hb_leaf *down = &lo->leaves[hb_layer_find_leaf(lo, y, "e_down")];
    return r->expert_batch > 1 && hides_gathers(lo) && y->block->remat.policy != HB_POLICY_NONE &&
           hb_weight_grad_partial(lo, down);
}

int hb_moe_einsum(struct hb_lower *lo, struct hb_layer *y, int in, int probs,
                  const struct hb_moe_routed *r)
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
        in = hb_moe_gather_tokens(lo, y, in, seq, r);
    uint32_t made = y->step_count - r->joins;
    struct hb_value v = hb_moe_value(lo, "expert inputs", 0, lo->compute, here);
    v.batch_dot = true;
    struct hb_step_op m = {
        .op = HB_OP_MATMUL, .in = {disp, in}, .in_count = 2, .flops = flops, .back_in = 1};
    int x = hb_layer_make(lo, y, v, m);
    for (uint32_t i = y->first_leaf; i < y->end_leaf; i++)
        if (lo->leaves[i].rank == 3 && lo->leaves[i].matrix && lo->leaves[i].held)
            lo->leaves[i].einsum_batch = r->expert_batch;
    if (apart && lo->spec->sharding.activation_constraints)
        gather_globally(lo, &y->steps[made], r, y->values[disp].mask);
    if (apart && !r->joins)
        x = hb_moe_exchange(lo, y, x,
                            hb_moe_value(lo, "expert inputs, exchanged", 0, lo->compute, there));
    bool direct = !apart || r->joins; /* products hand rows on without an exchange */
    bool turned = is_turned(lo, y, r) && direct && !y->steps[made].back_scratch_count;
    if (turned)
        x = hb_moe_turn_rows(lo, y, x);
    uint32_t steps = y->step_count;
    int o = hb_moe_experts(lo, y, x, wide, there);
    if (!y->values[disp].mask)
        hb_moe_turn_kept(y, first, r->expert_batch > 1);
    if (turned)
        o = hb_moe_turn_rows(lo, y, o);
    if (apart && !r->joins)
        o = hb_moe_exchange(lo, y, o,
                            hb_moe_value(lo, "expert outputs, returned", 0, lo->compute, here));
    m = (struct hb_step_op){
        .op = HB_OP_MATMUL, .in = {comb, o}, .in_count = 2, .flops = flops, .back_in = 3};
    uint32_t last = y->step_count;
    int sum = combine(lo, y, m, r, seq);
    order_gradients(lo, y, &y->steps[last], y->values[disp].mask);
    if (hb_moe_goes_round(lo, y) && direct)
        order_rings(lo, y, r, &y->steps[last], x);
    if (r->joins && !hb_moe_goes_round(lo, y))
        order_joined(lo, y, steps, last, &y->steps[made]);
    if (turned)
        hb_moe_order_turned(y, steps - 1, last);
    if (!y->values[disp].mask)
        hb_moe_turn_weights(&y->steps[last], masks);
    return sum;
}
