/* Products of experts, and what brings tokens to them: see moe_experts.h. */
#include "sim/ir/moe_experts.h"

#include "sim/ir/weight.h"

int64_t hb_moe_ways(const struct hb_lower *lo)
{
    return hb_ways(lo, HB_AX_EXPERT);
}

bool hb_layer_sorts_rows(const struct hb_moe *m)
{
    return m->dispatch == HB_DISPATCH_RAGGED || m->dispatch == HB_DISPATCH_ALLGATHER;
}

/* MaxText's ragged experts get their rows from all devices of the axis and send them back
 * (ragged_all_to_all in sparse_matmul of its layers/moe.py, on any accelerator). */
bool hb_layer_exchanges_rows(const struct hb_lower *lo, const struct hb_moe *m)
{
    return hb_moe_ways(lo) > 1 && m->dispatch == HB_DISPATCH_RAGGED && lo->maxtext;
}

struct hb_value hb_moe_value(const struct hb_lower *lo, const char *name, uint32_t tags,
                             enum hb_dtype dtype, const int64_t *dims)
{
    return hb_layer_tensor(lo, name, tags, hb_shape_make(dtype, dims));
}

/* XLA:TPU's ragged products are calls: gate's and up's gradients are made in a pass of their own,
 * which reads what is kept where it lies (bwd/mlp=moe_ragged,remat=none: two bf16[32768,2816]). */
static void read_in_stacks(struct hb_layer *y, const struct hb_step_op *act)
{
    for (int i = 0; i < act->in_count; i++)
        y->values[act->in[i]].read_stacked = true;
    for (int i = 1; i < act->out_count; i++)
        y->values[act->out[i]].read_stacked = true;
}

/* How each compiler makes ragged products. On XLA:TPU one fusion makes the activation and both
 * gradients in the places of gate, up and its own (phimoe,v5p,f64: three bf16[65536,6400] from 255
 * on, no fourth). XLA:ROCm's are calls; one fusion makes the activation again and the gradients of
 * gate and up from theirs (moeT/mlp=moe_ragged: six bf16[32768,2816] at 307 of 539). */
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
 * 8 with expert 2, v5e: at 344, 507). Between fewer it comes first, from outputs made again. */
bool hb_moe_is_own_einsum(const struct hb_lower *lo, const struct hb_layer *y)
{
    return lo->habits->masks_narrow && lo->experts_own &&
           y->block->moe.dispatch == HB_DISPATCH_EINSUM;
}

/* Neither between rings, which libtpu puts off, nor beside v5e's gathers, which it hides: what its
 * latency hiding makes of the order is not known there (eight of 2,048 tokens, 64 experts over fsdp
 * 64 of v6e: masks, rows, gate and up, the outputs' gradient, w_down's, the activation's, outputs,
 * the weights' and its copy, the router's, then those of gate and up, in the list's order). */
bool hb_moe_is_ordered(const struct hb_lower *lo, const struct hb_layer *y)
{
    return hb_moe_is_own_einsum(lo, y) && hb_block_mixes(y->block) && !hb_in_rings(lo) &&
           !lo->experts_round && !hb_gathers_beside(lo);
}

/* The gradients of whose weights go round in rings: these read the rows, the activation and the
 * outputs' gradient turned (olmoe,v6e,f8: copies at 384, 388 and 392 to 463), not short ones. */
bool hb_moe_goes_round(const struct hb_lower *lo, const struct hb_layer *y)
{
    return hb_moe_is_own_einsum(lo, y) && lo->experts_round;
}

enum hb_for_ring hb_moe_mask_for(const struct hb_lower *lo)
{
    return lo->chip->masks_turned ? HB_RING_MASK : HB_RING_AS_IS;
}

/* Beside an expert axis or tensor parallelism XLA:TPU's list needs least of the three orders (seven
 * of eight such steps; without either depth-first, olmoe and mixtral over 8 and 16). */
bool hb_moe_in_list(const struct hb_lower *lo, const struct hb_layer *y)
{
    return hb_moe_goes_round(lo, y) && lo->experts_listed;
}

/* One fusion makes the activation and both gradients in the places of what it reads; of rows of
 * more than 2^31 bytes each is made by one of its own, and so is the outputs' gradient (mixtral,
 * fsdp 8, 4 sequences of 8192 tokens: five of 2240 MiB at 340 of 745). What v5e's products hand on
 * together with a gather beside them is not written over (phimoe, fsdp 32 with tensor 2: five). */
static bool made_apart(const struct hb_lower *lo, const struct hb_layer *y, const int64_t *wide)
{
    struct hb_shape rows = hb_shape_make(lo->compute, wide);
    return hb_moe_goes_round(lo, y) &&
           (lo->chip->gathers_beside || hb_shape_plain_bytes(&rows) > INT32_MAX);
}

int hb_moe_experts(struct hb_lower *lo, struct hb_layer *y, int in, const int64_t *wide,
                   const int64_t *narrow)
{
    const struct hb_moe *m = &y->block->moe;
    bool gated = hb_mlp_is_gated(m->kind);
    bool ragged = hb_layer_sorts_rows(m);
    int gate = -1;
    struct hb_value v = hb_moe_value(lo, "expert gate", 1u << HB_TN_MLP_GATE, lo->compute, wide);
    v.batch_dot = !ragged;
    uint32_t first = y->step_count;
    if (gated)
        gate = hb_layer_product(lo, y, in, "e_gate", v);
    v.name = "expert up";
    v.tags = 1u << HB_TN_MLP_UP;
    int up = hb_layer_product(lo, y, in, "e_up", v);
    struct hb_activation a = {m->kind, gate, up, "expert activation", 1u << HB_TN_MLP_ACT};
    int act = hb_layer_activation(lo, y, &a);
    /* moeFG/base: the activation is made inside its readers, but in units made again; gate and up
     * stay beside their gradients, the first where the activation's was; but on XLA:GPU of one
     * expert a device (mixtral, fsdp 4 with expert 8: four bf16[1,14336,16,5120]). */
    y->values[act].fused = y->together < 2 && !hb_layer_made_whole(lo, y);
    bool lone = hb_fuses_slices(lo) && !ragged && m->experts == hb_moe_ways(lo);
    y->steps[y->step_count - 1].grad_in_place = lone ? 2 : 0;
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
    bool apart = made_apart(lo, y, wide);
    bool own = lo->maxtext && m->dispatch != HB_DISPATCH_DENSE;
    if (own || hb_moe_goes_round(lo, y) || hb_layer_exchanges_rows(lo, m)) {
        y->values[act].fused = false;
        y->steps[y->step_count - 1].grad_follows = false;
        y->steps[y->step_count - 1].grad_in_place = apart ? 1 : 3;
    }
    v = hb_moe_value(lo, "expert output", 1u << HB_TN_MOE_OUT, lo->compute, narrow);
    v.batch_dot = !ragged;
    int out = hb_layer_product(lo, y, act, "e_down", v);
    y->steps[y->step_count - 1].grad_inline = inside && !apart;
    for (uint32_t i = first; i < y->step_count; i++)
        y->steps[i].grad_by_size = hb_moe_is_own_einsum(lo, y) && !hb_moe_goes_round(lo, y);
    return out;
}

int hb_moe_exchange(struct hb_lower *lo, struct hb_layer *y, int in, struct hb_value v)
{
    return hb_layer_move(lo, y, HB_OP_ALL_TO_ALL, HB_AX_EXPERT, in, v);
}

/* Before the experts, whose outputs all ranks sum (use_ring_of_experts of MaxText). */
int hb_moe_gather_tokens(struct hb_lower *lo, struct hb_layer *y, int in, int64_t seq,
                         const struct hb_moe_routed *r)
{
    const int64_t all[] = {r->expert_batch, seq, lo->spec->model.d_model, -1};
    struct hb_value v = hb_moe_value(lo, "tokens of the expert axis", 0, lo->compute, all);
    v.unseen = y->block->moe.dispatch == HB_DISPATCH_EINSUM;
    return hb_layer_move(lo, y, HB_OP_ALL_GATHER, HB_AX_EXPERT, in, v);
}
