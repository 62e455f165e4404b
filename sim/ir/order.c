/* Places in the schedule: see order.h. XLA:GPU schedules twice: a first pass takes the order with
 * the smallest peak, a second moves collectives so that they hide behind compute, and what has no
 * operands (zeros) to the front. Read in the schedules of the records named below. */
#include "sim/ir/order.h"

#include "base/size.h"
#include "sim/ir/layer.h"
#include "sim/ir/stack.h"
#include "sim/ir/weight.h"

int64_t hb_order_grad_bytes(const struct hb_lower *lo)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        struct hb_shape s = hb_leaf_shape(lo, &lo->leaves[i], hb_weight_grad_dtype(lo));
        if (lo->leaves[i].stack[0])
            sum = hb_add_sat(sum, hb_shape_plain_bytes(&s));
    }
    return sum;
}

/* Scores that a layer's backward pass holds, f32 twice and bf16 once (tiny/base). */
static int64_t score_bytes(const struct hb_lower *lo)
{
    const struct hb_attention *a = &lo->spec->model.blocks[0].attention;
    if (a->kernel != HB_KERNEL_NAIVE)
        return 0;
    int64_t heads = hb_div_up(a->heads, hb_ways(lo, HB_AX_TENSOR));
    return hb_mul_sat(10, hb_mul_sat(hb_mul_sat(heads, lo->local.tokens), lo->spec->batch.seq));
}

/* What the loss holds that zeros are weighed against. */
static int64_t loss_bytes(const struct hb_lower *lo)
{
    return hb_logit_bytes(lo, 4) / lo->spec->loss.chunks;
}

/* What a policy names, for a token, on the host or not, which a schedule is weighed without; a
 * kernel's result is kept as it lies, too. */
static int64_t named_width(const struct hb_lower *lo, const struct hb_block *b)
{
    uint32_t mask = b->remat.save | b->remat.offload;
    const struct hb_attention *a = &b->attention;
    const int64_t q = hb_mul_sat(a->heads, a->head_dim), k = hb_mul_sat(a->kv_heads, a->head_dim);
    const struct {
        enum hb_tensor_name name;
        int64_t width;
    } names[] = {{HB_TN_Q, q},
                 {HB_TN_K, k},
                 {HB_TN_V, k},
                 {HB_TN_QKV, hb_add_sat(q, hb_mul_sat(2, k))},
                 {HB_TN_ATTN_CTX, a->kernel == HB_KERNEL_FLASH ? hb_mul_sat(2, q) : q},
                 {HB_TN_MLP_GATE, b->mlp.d_ff},
                 {HB_TN_MLP_UP, b->mlp.d_ff},
                 {HB_TN_MLP_ACT, b->mlp.d_ff}};
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (mask & 1u << names[i].name)
            sum = hb_add_sat(sum, names[i].width);
    bool out = (mask & 1u << HB_TN_ATTN_OUT) != 0;
    return hb_add_sat(sum / hb_ways(lo, HB_AX_TENSOR), out ? lo->local.resid_width : 0);
}

/* What a layer keeps for a token, in elements of two bytes: its input, products (bwd/remat=dots),
 * or all (tinyS/remat=none: six of d_ff). */
int64_t hb_order_kept_width(const struct hb_lower *lo, const struct hb_block *b)
{
    if (b->remat.policy == HB_POLICY_NAMES)
        return hb_add_sat(named_width(lo, b), lo->local.resid_width);
    enum { NONE_HIDDEN = 6 };
    bool none = b->remat.policy == HB_POLICY_NONE;
    int64_t heads = hb_add_sat(b->attention.heads, hb_mul_sat(2, b->attention.kv_heads));
    int64_t width = hb_mul_sat(none ? NONE_HIDDEN : 2, b->mlp.d_ff);
    width = hb_add_sat(width, hb_mul_sat(heads, b->attention.head_dim));
    width = width / hb_ways(lo, HB_AX_TENSOR);
    width = hb_add_sat(width, lo->local.resid_width);
    return hb_add_sat(b->remat.policy == HB_POLICY_FULL ? 0 : width, lo->local.resid_width);
}

/* On one device, where the graph is not asked (hb_habits_ordered), zeros come first unless the loss
 * is the peak: tinyS/base and pad (logits 2 x 2000 MiB, gradients 260) late, opt/base and bwd/base
 * first, tiny/base (scores 5120) first; with a product in bf16, whose gradient waits beside them,
 * late (opt/base with logits_dot=bf16). */
static enum hb_zeros_at zeros_alone(const struct hb_lower *lo, int64_t grads, int64_t logits)
{
    bool first = !hb_order_dot_narrow(lo) && hb_add_sat(grads, score_bytes(lo)) > logits;
    return first ? HB_ZEROS_FIRST : HB_ZEROS_LATE;
}

static bool exchanges_states(const struct hb_lower *lo)
{
    return lo->spec->mesh[HB_AX_PIPELINE] > 1 && lo->local.input_ways > 1;
}

/* On several the weights' gradients outweigh the logits, of which one waits for the head's gradient
 * (PP/base, tied/gemma2b,t8 late). CUDA's second pass moves them (tail.h); where that does not know
 * the step, before the loss. A loss in chunks is never the peak: first (1B/loss=chunk, v5e2x4,f8,b8
 * and gemma2b,f8,chunk8 on ROCm), but behind it where there is an exchange to hide, of a pipeline's
 * gradients (llama3b, pp4d2f2: all-to-all-start.5, zeros, all-to-all-done.5). */
enum hb_zeros_at hb_order_zeros(const struct hb_lower *lo)
{
    /* What waits and has no operands the compiler's rematerialization makes again first, just
     * before it is used (llama-like scans over fsdp 8 to 128 that need 1.1 to 1.4 times the limit:
     * no zeros beside both logits in any of 40 peak lists, in all of 25 below it). */
    if (lo->spec->share >= HB_SHARE_REDONE || hb_habits_ordered(lo->spec))
        return HB_ZEROS_LATE;
    if (!lo->habits->zeros_before_loss)
        return HB_ZEROS_LATE;
    if (lo->tail.known)
        return HB_ZEROS_BEFORE_LOSS; /* or later, each of its own */
    int64_t grads = lo->stacked_grad_bytes;
    int64_t logits = loss_bytes(lo);
    if (lo->spec->loss.chunks > 1)
        return exchanges_states(lo) ? HB_ZEROS_LATE : HB_ZEROS_FIRST;
    if (hb_habits_devices(lo->spec) == 1)
        return zeros_alone(lo, grads, logits);
    int64_t held = hb_add_sat(score_bytes(lo), hb_mul_sat(2, grads));
    return held <= logits ? HB_ZEROS_LATE : HB_ZEROS_BEFORE_LOSS;
}

/* In the body of a loop over microbatches zeros of one shape are one tensor until the loop that
 * adds to them begins (qwen3-4b over data 2 and fsdp 4 in chunks: f32[36,640,9728] and
 * [36,9728,640] at the loss, for gate, up and down); those of the step itself are moved to its
 * front, each. */
static bool is_there(const struct hb_lower *lo, const struct hb_layer *y, uint32_t leaf)
{
    for (uint32_t k = y->first_leaf; k < leaf && leaf < y->end_leaf; k++)
        if (lo->leaves[k].grad != HB_NONE && hb_leaf_is_alike(&lo->leaves[k], &lo->leaves[leaf]))
            return true;
    return false;
}

static bool are_there(const struct hb_lower *lo, uint32_t leaf)
{
    bool there = false;
    bool shared = lo->p->open_loop != HB_NONE && !lo->tail.known;
    for (uint32_t g = 0; g < lo->layers->count && shared; g++)
        there = there || is_there(lo, &lo->layers->groups[g].layer, leaf);
    return there;
}

void hb_order_put_zeros(struct hb_lower *lo, enum hb_zeros_at at)
{
    enum hb_zeros_at all = hb_order_zeros(lo);
    bool each = lo->tail.known && all == HB_ZEROS_BEFORE_LOSS;
    for (uint32_t i = 0; i < lo->leaf_count; i++)
        if ((each ? (enum hb_zeros_at)lo->leaves[i].zeros_at : all) == at && !are_there(lo, i))
            hb_weight_zero_grads(lo, i, i + 1);
}

/* Where nothing moves it the second gather starts beside the first: in unrolled programs (1B with
 * layers=loop: bf16[2048,128256] from 807 of 2950) and on ROCm, whose scheduler takes every
 * collective as long. */
bool hb_order_head_early(const struct hb_lower *lo)
{
    return !lo->tail.known || hb_order_dot_narrow(lo) || lo->tail.gather_early;
}

/* A product in bf16 whose labels are gathered: the f32 gradient is cast to bf16 for both products,
 * the cast waits for the head's (on one device, too), and the head is gathered once for logits and
 * gradient (1B/base and 8B/base with logits_dot=bf16 on both, tinyS/base: bf16[8,2048,32000] from
 * the loss to the end; not f32; not in pipelines: pr85/pp8 on ROCm). */
bool hb_order_dot_narrow(const struct hb_lower *lo)
{
    return lo->habits->logits_copies == 2 && lo->spec->loss.dot != HB_DT_F32 &&
           !lo->spec->loss.onehot;
}

/* One device, with experts (moeT/base), but not beside what is larger: naive scores (moeT on ROCm
 * with attn=naive: no f32[8,2048,32000] in the backward pass), CUDA's ragged products (moeT/
 * mlp=moe_ragged); nor with one-hot labels, whose one tensor is the peak (moeT/batch=16). */
static bool alone_head_waits(const struct hb_lower *lo)
{
    const struct hb_moe *m = &lo->spec->model.blocks[0].moe;
    return hb_habits_devices(lo->spec) == 1 && m->experts > 0 && !lo->spreads;
}

/* A pipeline that splits the loss over its stages, and the batch over experts alone, on CUDA: only
 * where the update waits for the norm of all gradients, and up to as many tokens (pr85/ep2pp4/good,
 * not noclip, sgd, batch=64). */
enum { STAGE_HEAD_TOKENS = 4 };

static bool stage_head_waits(const struct hb_lower *lo)
{
    bool experts = lo->local.batch_ways > lo->local.input_ways;
    bool few = lo->local.tokens <= hb_mul_sat(STAGE_HEAD_TOKENS, lo->spec->model.d_model);
    return !experts || (lo->spec->optimizer.clip && few);
}

/* So it does in a pipeline alone, with half as many (pr85/pp8/mask, with cuDNN and naive:
 * f32[2,4096,32000] to the end; small_batch, not its noclip; not good, f32[4,4096,32000]). */
static bool pipe_head_waits(const struct hb_lower *lo)
{
    bool staged = lo->local.batch_ways > 1;
    bool few =
        hb_mul_sat(2, lo->local.tokens) <= hb_mul_sat(STAGE_HEAD_TOKENS, lo->spec->model.d_model);
    return staged && few;
}

/* ROCm's unrolled layers over fsdp: list, depth and post-order take 28.83 25.29 62.60 GiB
 * (8B,f16,b4,v32k with layers=loop). */
bool hb_order_depth(const struct hb_lower *lo)
{
    return lo->habits->recompute_first && !lo->habits->gathers_timed &&
           hb_ways(lo, HB_AX_TENSOR) == 1 && lo->spec->stack.form == HB_FORM_LOOP &&
           hb_fsdp_ways(lo, false) > 1;
}

bool hb_order_head_waits(const struct hb_lower *lo)
{
    if (hb_habits_ordered(lo->spec) || hb_order_depth(lo))
        return true;
    if (lo->tail.known)
        return lo->tail.head_waits;
    bool sharded = lo->local.input_ways > 1 || hb_ways(lo, HB_AX_TENSOR) > 1 ||
                   hb_ways(lo, HB_AX_SEQUENCE) > 1;
    if (hb_order_dot_narrow(lo) && hb_ways(lo, HB_AX_PIPELINE) == 1)
        return true;
    if (!stage_head_waits(lo))
        return false;
    /* CUDA: in sharded rows (113 of 124; not where a pipeline alone splits the loss: pr85/pp8) and
     * with experts (moeT/base: f32[8,2048,32000] in the backward pass). */
    return sharded ? lo->habits->gathers_timed : alone_head_waits(lo) || pipe_head_waits(lo);
}

/* The partitioner takes the way of a scatter whose greatest op or collective, operand and result,
 * is least (gather_scatter_handler.cc, ScatterPartitionMethodsOrderedByCost;
 * spmd_partitioner_util.h, EvaluatePartitionCost): all rows gathered, or the table (2,048 wide, 16
 * sequences of 2,048: over data 2 and fsdp 8 with 31,232 words the rows, with 30,848 the table;
 * over 4 and 4 28,288 and 27,392; over 8 and 2 23,936 and 22,528; v5e, and the first and last two
 * H100). */
bool hb_order_rows_stay(const struct hb_lower *lo)
{
    int64_t ways = lo->local.batch_ways;
    double rows = (double)lo->local.batch * (double)lo->spec->batch.seq * (double)(ways + 1);
    double words = (double)lo->spec->model.vocab;
    return hb_order_rows_beside(lo) && rows >= words * (1 + 1 / (double)hb_fsdp_ways(lo, false));
}

bool hb_order_rows_beside(const struct hb_lower *lo)
{
    return lo->local.batch_ways > hb_fsdp_ways(lo, false);
}

/* fsdp alone: rows are exchanged and each device scatters into its own columns. With another axis
 * over the batch the whole table is scattered and then summed (8B64/fsdp=8,dp=8: bf16[4096,128256]
 * from the loss to the end; 8B/fsdp=64: none). */
bool hb_order_table_whole(const struct hb_lower *lo)
{
    return lo->habits->table_grad_whole && hb_order_rows_stay(lo) &&
           lo->spec->lookup == HB_LOOKUP_GATHER;
}
