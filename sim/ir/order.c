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
        struct hb_shape s = hb_leaf_shape(&lo->leaves[i], hb_weight_grad_dtype(lo));
        if (lo->leaves[i].stack[0])
            sum = hb_add_sat(sum, hb_shape_plain_bytes(&s));
    }
    return sum;
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
                 {HB_TN_ATTN_CTX, hb_mul_sat(2, q)},
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

/* CUDA's second pass moves them (tail.h); where that does not know the step they stand where they
 * are added to (PP/base late). A loss in chunks is never the peak: first, but behind it where there
 * is an exchange to hide, of a pipeline's gradients (llama3b, pp4d2f2: between all-to-all.5). */
enum hb_zeros_at hb_order_zeros(const struct hb_lower *lo)
{
    /* What waits and has no operands the compiler's rematerialization makes again first, just
     * before it is used (llama-like scans over fsdp 8 to 128 that need 1.1 to 1.4 times the limit:
     * no zeros beside both logits in any of 40 peak lists, in all of 25 below it). */
    if (lo->spec->share >= HB_SHARE_REDONE || hb_habits_ordered(lo->spec) ||
        !lo->habits->recompute_first)
        return HB_ZEROS_LATE;
    if (lo->tail.known)
        return HB_ZEROS_BEFORE_LOSS; /* or later, each of its own */
    bool exchanges = lo->spec->mesh[HB_AX_PIPELINE] > 1 && lo->local.input_ways > 1;
    return hb_in_chunks(lo) && !exchanges ? HB_ZEROS_FIRST : HB_ZEROS_LATE;
}

void hb_order_put_zeros(struct hb_lower *lo, enum hb_zeros_at at)
{
    enum hb_zeros_at all = hb_order_zeros(lo);
    bool each = all == HB_ZEROS_BEFORE_LOSS;
    for (uint32_t i = 0; i < lo->leaf_count; i++)
        if ((each ? (enum hb_zeros_at)lo->kinds[lo->leaves[i].kind].zeros_at : all) == at)
            hb_weight_zero_grads(lo, i, i + 1);
}

/* Where nothing moves it the second gather starts beside the first: in unrolled programs (1B with
 * layers=loop: bf16[2048,128256] from 807 of 2950) and on ROCm. */
bool hb_order_head_early(const struct hb_lower *lo)
{
    return !lo->tail.known || hb_order_dot_narrow(lo) || lo->tail.gather_early;
}

/* A product in bf16 whose labels are gathered: the f32 gradient is cast to bf16 for both products,
 * the cast waits for the head's, and the head is gathered once for logits and gradient (tinyS/base
 * with logits_dot=bf16: bf16[8,2048,32000] from the loss to the end; no pipelines). */
bool hb_order_dot_narrow(const struct hb_lower *lo)
{
    return lo->habits->logits_copies == 2 && lo->spec->loss.dot != HB_DT_F32 &&
           hb_gathers_labels(lo);
}

/* ROCm's unrolled layers over fsdp: list, depth and post-order take 28.83 25.29 62.60 GiB
 * (8B,f16,b4,v32k with layers=loop). */
bool hb_order_depth(const struct hb_lower *lo)
{
    return lo->habits->recompute_first && !lo->habits->gathers_timed &&
           hb_ways(lo, HB_AX_TENSOR) == 1 && hb_is_unrolled(lo) && hb_fsdp_ways(lo, false) > 1;
}

bool hb_order_head_waits(const struct hb_lower *lo)
{
    if (hb_habits_ordered(lo->spec) || hb_order_depth(lo))
        return true;
    if (lo->tail.known)
        return lo->tail.head_waits;
    bool sharded = lo->local.input_ways > 1 || hb_ways(lo, HB_AX_TENSOR) > 1 ||
                   hb_ways(lo, HB_AX_SEQUENCE) > 1;
    /* CUDA: in sharded rows (113 of 124; not where a pipeline alone splits the loss: pr85/pp8). */
    return sharded && lo->habits->gathers_timed;
}

static double own_rows(const struct hb_lower *lo)
{
    return (double)lo->local.batch * (double)lo->spec->batch.seq;
}

/* The partitioner takes the way of a scatter whose greatest op or collective, operand and result,
 * is least (gather_scatter_handler.cc, ScatterPartitionMethodsOrderedByCost;
 * spmd_partitioner_util.h, EvaluatePartitionCost): all rows gathered, or the table (2,048 wide, 16
 * sequences of 2,048: over data 2 and fsdp 8 with 31,232 words the rows, with 30,848 the table). */
bool hb_order_rows_stay(const struct hb_lower *lo)
{
    double rows = own_rows(lo) * (double)(lo->local.batch_ways + 1);
    double words = (double)lo->spec->model.vocab;
    return hb_order_rows_beside(lo) && rows >= words * (1 + 1 / (double)hb_fsdp_ways(lo, false));
}

int64_t hb_order_words(const struct hb_lower *lo)
{
    int64_t tensor = hb_ways(lo, HB_AX_TENSOR), fsdp = hb_fsdp_ways(lo, false),
            own = lo->local.vocab;
    int64_t all = lo->spec->model.vocab;
    bool split = lo->local.resid_seq < lo->local.seq;
    int64_t times = split || fsdp > tensor ? tensor : fsdp;
    bool more = own_rows(lo) * (double)lo->local.batch_ways >= (double)all;
    if (!more || own == all || hb_ways(lo, HB_AX_PIPELINE) > 1)
        return own;
    return times < tensor ? hb_mul_sat(own, times) : all;
}

bool hb_order_rows_beside(const struct hb_lower *lo)
{
    return lo->local.batch_ways > hb_fsdp_ways(lo, false);
}
