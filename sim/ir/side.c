/* The order of weight gradients among layers side by side: see side.h. Read in the schedules of the
 * records named below. */
#include "sim/ir/side.h"

#include "base/size.h"
#include "sim/ir/order.h"
#include "sim/ir/weight.h"

/* In an unrolled program with rings the weight gradients' rings come after the whole backward pass,
 * and three tensors of width d_ff a layer wait for them (ring/f16,loop,none; llama3-8b/L4_noscan:
 * 12 of them; the last two layers of gemma3-27b/base, outside its scan: six); not on v5e, where
 * memory is scarce (llama3-8b/L8_noscan), nor where they hide states on their way from and to the
 * host (1B with layers=loop and opt_host: no bf16[2,4096,8192] beside the logits' 4008 and 2004
 * MiB; list, depth, post 11277 8522 13571). MaxText's do beside late gathers, too
 * (rand015/gemma3-4b, v6e-64: 16 bf16[2048,10240] of the four layers outside its scan to its end).
 * On one device they come with the update, which waits for states from the host
 * (tiny/layers=loop,opt_host: 13 bf16[8,2048,2816] at the first layer's). */
static bool defers(const struct hb_lower *lo)
{
    if (!lo->habits->rings)
        return false;
    if (lo->fsdp_mode == HB_WEIGHT_RING)
        return !lo->chip->ring_grads_at_once;
    if (lo->maxtext && lo->gather_form == HB_GATHER_LATE)
        return true;
    return false;
}

/* CUDA hides the collectives of an unrolled program over fsdp behind weight gradients, whose own
 * sums come two layers later (8B,f8 with 8 layers and 32k words: three bf16[4096,14336] of layer k
 * beside layer k - 2's), or, where layers exchange over tensor, too, at the end of the backward
 * pass: there a layer takes the gradients of two to hide its own, and the later half of them waits
 * for the earlier one (1B,f4t2: four bf16[16384,4096] of each of 16 layers of 32; 1B,f2t4: 8 of 16,
 * tied; 8B,f4t2; up to three quarters in 8B64/fsdp=16,tp=4,sp_residual=True; 1B,t8: none). */
enum { SUM_LAG = 2 };

static bool is_interleaved(const struct hb_lower *lo)
{
    return lo->habits->gathers_timed && lo->spec->stack.form == HB_FORM_LOOP &&
           lo->fsdp_mode == HB_WEIGHT_GATHER;
}

/* Across hosts they take longer than a layer's products: weight gradients wait for as many tokens'
 * worth of earlier layers as hide some two layers' and the head's, whose sum is in f32 (12 layers
 * of 8B with 32k words over 16, 1, 2 and 4 sequences: the activations of some 6, 4 and 1 layers;
 * over 32 and 64: 10 and 5; d_model 2048: 4 to 5; 8B,f16,b2 of 32 layers and 128k words: 7, four
 * bf16[8192,14336] of each). HOST_TOKENS hide one layer's sum where all of it leaves the host. */
enum { HOST_TOKENS = 16384, HIDDEN_TENTHS = 23 };

static int64_t layer_params(const struct hb_lower *lo, const struct hb_layer *y)
{
    int64_t sum = 1;
    for (uint32_t i = y->first_leaf; i < y->end_leaf; i++) {
        struct hb_shape s = hb_leaf_layer_shape(&lo->leaves[i], lo->compute, true);
        sum = hb_add_sat(sum, hb_shape_elements(&s));
    }
    return sum;
}

/* In layers; 0: as within a host. */
static int64_t grad_lag(const struct hb_lower *lo, const struct hb_stack_plan *plan)
{
    int64_t hosts = hb_fsdp_ways(lo, false) / HB_HOST_DEVICES;
    if (!hb_order_lags(lo) || plan->count == 0)
        return 0;
    int64_t layer = layer_params(lo, &plan->groups[0].layer);
    int64_t head = hb_mul_sat(2 * lo->spec->model.d_model, lo->local.vocab);
    int64_t tenths = hb_add_sat(HIDDEN_TENTHS, hb_mul_sat(10, head) / layer);
    int64_t tokens = hb_mul_sat(HOST_TOKENS - HOST_TOKENS / hosts, tenths) / 10;
    return tokens / lo->local.tokens;
}

void hb_side_plan(struct hb_lower *lo, struct hb_stack_plan *plan)
{
    bool mixed = is_interleaved(lo);
    plan->late = plan->count;
    plan->lag = grad_lag(lo, plan);
    for (uint32_t i = 0; i < plan->count; i++) {
        struct hb_group *g = &plan->groups[i];
        bool half = mixed && hb_ways(lo, HB_AX_TENSOR) > 1 && 2 * i >= plan->count;
        g->body.defer = !g->looped && (defers(lo) || half || plan->lag > 0);
        g->body.defer = g->body.defer || hb_order_depth(lo);
        g->body.sums_wait = !g->looped && mixed;
    }
}

/* In an unrolled program over more than 32 devices XLA:TPU starts the gathers of all layers'
 * experts before the first layer (olmoe,loop,einsum on v6e and v5p over 256: three of each of 2, 4
 * and 8 layers from before the first one to their product; not on v5e, not over 4 or 8, not those
 * that a ragged product reads). */
void hb_side_gather(struct hb_lower *lo, const struct hb_stack_plan *plan)
{
    bool ahead = lo->gather_form == HB_GATHER_LATE || lo->gather_form == HB_GATHER_PADDED;
    for (uint32_t i = 0; i < plan->count && ahead; i++) {
        const struct hb_layer *y = &plan->groups[i].layer;
        for (uint32_t k = y->first_leaf; k < y->end_leaf && !plan->groups[i].looped; k++)
            if (lo->leaves[k].rank == HB_LEAF_RANK && !lo->leaves[k].row_major)
                hb_weight_use(lo, k);
    }
}

/* The weight gradients that wait of the groups not below `to`, last first. */
static void run_late(struct hb_stack_plan *plan, uint32_t to)
{
    for (; plan->late > to; plan->late--)
        if (plan->groups[plan->late - 1].body.defer && !plan->groups[plan->late - 1].looped)
            hb_body_late(&plan->groups[plan->late - 1].body);
}

void hb_side_follow(struct hb_lower *lo, struct hb_stack_plan *plan, uint32_t i)
{
    int64_t lag = plan->lag;
    bool depth = hb_order_depth(lo);
    if (!is_interleaved(lo) && !depth)
        return;
    if ((lag > 0 || depth) && i + lag < plan->count)
        run_late(plan, i + (uint32_t)lag);
    if (!plan->groups[i].body.defer)
        run_late(plan, plan->late - 1);
    int64_t above = i + lag + SUM_LAG;
    if (hb_ways(lo, HB_AX_TENSOR) == 1 && above < plan->count && plan->groups[above].body.sums_wait)
        hb_body_sums(&plan->groups[above].body);
}

void hb_side_finish(struct hb_stack_plan *plan)
{
    run_late(plan, 0);
    for (uint32_t i = plan->count; i-- > 0;)
        if (plan->groups[i].body.sums_wait)
            hb_body_sums(&plan->groups[i].body);
}
