/* Roofline: an op takes the longer of its arithmetic and its memory traffic, plus the gap between
 * two dependent ops. Efficiencies are the device's curves: products by the cube root of m n k (of
 * all products of a batch together, since a batch fills the device as one product of that many
 * rows does), attention kernels by sequence length, the rest by bytes moved. */
#include "sim/engine/cost.h"

#include <math.h>

#include "base/size.h"
#include "hw/link.h"

/* Axes from the innermost, whose devices are neighbours, to the outermost: what talks most per
 * layer lies closest (the order of Megatron's rank generator, tp-cp-ep-dp-pp; JAX's device meshes
 * are laid out with the same aim). */
static const enum hb_axis inner_to_outer[HB_AX_COUNT] = {
    HB_AX_TENSOR, HB_AX_SEQUENCE, HB_AX_EXPERT, HB_AX_FSDP, HB_AX_DATA, HB_AX_PIPELINE};

/* A copy that is waited for at once has nothing beside it. */
static bool is_alone(const struct hb_program *p, uint32_t op)
{
    return op + 1 < p->op_count && p->ops[op + 1].kind == HB_OP_DONE && p->ops[op + 1].start == op;
}

enum { COPY_LOOPS = 64 };

static uint32_t copy_loop(const struct hb_op *op)
{
    return op->loop == HB_NONE ? 0 : op->loop + 1;
}

static void note_copy(struct hb_cost *cost, uint32_t index)
{
    const struct hb_op *op = &cost->p->ops[index];
    if (copy_loop(op) < COPY_LOOPS && !is_alone(cost->p, index))
        cost->copies[op->stream == HB_STREAM_H2D] |= UINT64_C(1) << copy_loop(op);
}

/* Whether copies run the other way in the same loop: they share the host link. */
static bool has_counterpart(const struct hb_cost *cost, uint32_t index)
{
    const struct hb_program *p = cost->p;
    const struct hb_op *op = &p->ops[index];
    bool up = op->stream == HB_STREAM_H2D;
    if (is_alone(p, index))
        return false;
    if (copy_loop(op) < COPY_LOOPS)
        return cost->copies[!up] >> copy_loop(op) & 1;
    for (uint32_t i = p->loops[op->loop].first_op; i < p->loops[op->loop].end_op; i++)
        if (p->ops[i].kind == HB_OP_HOST_COPY && p->ops[i].loop == op->loop &&
            (p->ops[i].stream == HB_STREAM_H2D) != up && !is_alone(p, i))
            return true;
    return false;
}

void hb_cost_init(struct hb_cost *cost, const struct hb_program *p, const struct hb_device *device)
{
    int64_t ways[HB_AX_COUNT];
    *cost = (struct hb_cost){.device = device, .p = p, .total = 1};
    for (int a = 0; a < HB_AX_COUNT; a++)
        ways[a] = p->mesh[a] > 0 ? p->mesh[a] : 1;
    for (uint32_t i = 0; i < p->op_count; i++) {
        if (p->ops[i].kind == HB_OP_HOST_COPY)
            note_copy(cost, i);
        if (!p->mesh[p->ops[i].axis] && p->ops[i].group > ways[p->ops[i].axis])
            ways[p->ops[i].axis] = p->ops[i].group;
    }
    for (int a = 0; a < HB_AX_COUNT; a++) {
        cost->stride[inner_to_outer[a]] = cost->total;
        cost->total *= ways[inner_to_outer[a]] < INT32_MAX / cost->total ? ways[inner_to_outer[a]]
                                                                         : INT32_MAX / cost->total;
    }
}

/* Types that a matrix unit may lack, and what runs in their place. */
static const enum hb_rate rate_of[HB_DTYPE_COUNT] = {
    [HB_DT_F32] = HB_RATE_F32, [HB_DT_BF16] = HB_RATE_BF16, [HB_DT_F16] = HB_RATE_F16,
    [HB_DT_F64] = HB_RATE_F64, [HB_DT_F8] = HB_RATE_FP8,    [HB_DT_F4] = HB_RATE_FP4,
    [HB_DT_Q8] = HB_RATE_BF16, [HB_DT_Q4] = HB_RATE_BF16,   [HB_DT_S32] = HB_RATE_INT8,
    [HB_DT_U8] = HB_RATE_INT8, [HB_DT_PRED] = HB_RATE_INT8, [HB_DT_S64] = HB_RATE_INT8};

static const enum hb_rate next_rate[HB_RATE_COUNT] = {
    [HB_RATE_F64] = HB_RATE_F64,   [HB_RATE_F32] = HB_RATE_BF16, [HB_RATE_TF32] = HB_RATE_F32,
    [HB_RATE_BF16] = HB_RATE_BF16, [HB_RATE_F16] = HB_RATE_BF16, [HB_RATE_FP8] = HB_RATE_BF16,
    [HB_RATE_FP4] = HB_RATE_FP8,   [HB_RATE_INT8] = HB_RATE_BF16};

/* JAX's default precision lets f32 products run as TF32 on NVIDIA; torch's does not. What the
 * default does on TPU and AMD is in their profiles' f32 rate. */
static enum hb_rate pick_rate(const struct hb_cost *cost, enum hb_dtype dtype)
{
    const struct hb_device *dev = cost->device;
    enum hb_rate rate = rate_of[dtype];
    if (rate == HB_RATE_F32 && dev->vendor == HB_VENDOR_NVIDIA && cost->p->compiler != HB_TORCH)
        rate = HB_RATE_TF32;
    while (!(dev->peak_flops[rate] > 0) && next_rate[rate] != rate)
        rate = next_rate[rate];
    return rate;
}

static double divide(double amount, double rate)
{
    return amount > 0 && rate > 0 ? amount / rate : 0;
}

double hb_cost_peak_flops(const struct hb_cost *cost, enum hb_dtype dtype)
{
    double peak = cost->device->peak_flops[pick_rate(cost, dtype)];
    return peak > 0 ? peak : cost->device->vector_flops;
}

static double matmul_seconds(const struct hb_cost *cost, const struct hb_op *op)
{
    enum hb_rate rate = pick_rate(cost, op->dtype);
    if (!(cost->device->peak_flops[rate] > 0)) /* f64 without a unit for it */
        return divide(op->flops, cost->device->vector_flops);
    double batch = op->batch > 1 ? op->batch : 1, side = cbrt(op->flops / 2);
    double m = side, n = side, k = side;
    if (op->rows > 0 && op->cols > 0 && op->depth > 0) {
        m = (double)op->rows * batch;
        n = (double)op->cols;
        k = (double)op->depth;
    }
    double part = op->grouped ? hb_device_grouped_part(cost->device, m, n, k) : 1;
    return divide(op->flops, part * hb_device_matmul_flops(cost->device, rate, m, n, k));
}

/* Sequence length where the op does not say: the middle of the measured curves. */
static const double usual_sequence = 4096;

/* Part of the matrix unit that a head fills: head_dim 128 is half of a unit of 256 x 256. */
static double head_fill(const struct hb_device *dev, int64_t head_dim)
{
    int64_t side = dev->mxu_dim;
    if (side <= 0 || head_dim <= 0)
        return 1;
    int64_t filled = ((head_dim - 1) / side + 1) * side;
    return (double)head_dim / (double)filled;
}

/* A narrower head has as many exponentials for fewer products. */
static double narrow_part(const struct hb_device *dev, int64_t head_dim)
{
    static const double curves_width = 128;
    if (head_dim <= 0 || (double)head_dim >= curves_width)
        return 1;
    return pow(dev->attention_width64, log2(curves_width / (double)head_dim));
}

/* The first kernel in Triton against FlashAttention-2, at any length and width: by what MPT loses
 * from one sequence length to the next (llm-foundry, scripts/train/benchmarking/README.md, 8192 to
 * 65536) without checkpoints, one pass each way, 95 TFLOP/s on A100 and 172 on H100, and with them,
 * two forwards, 102 and 181. */
static const double triton_forward = 0.69, triton_backward = 0.475;

/* Of the peak, at heads 128 wide or as wide as the op's. */
static double attention_part(const struct hb_cost *cost, bool back, double sequence, int64_t width)
{
    const struct hb_device *dev = cost->device;
    const struct hb_curve *own = back ? &dev->sdpa_backward_curve : &dev->sdpa_forward_curve;
    const struct hb_curve *curve =
        back ? &dev->attention_backward_curve : &dev->attention_forward_curve;
    if (cost->p->flash != HB_FLASH_LIBRARY && own->count)
        curve = own;
    double part = hb_curve_at(curve, sequence);
    if (cost->p->flash == HB_FLASH_TRITON)
        return part * (back ? triton_backward : triton_forward);
    return part * head_fill(dev, width) * narrow_part(dev, width);
}

static double attention_seconds(const struct hb_cost *cost, const struct hb_op *op)
{
    double sequence = (double)(op->cols > op->rows ? op->cols : op->rows);
    double part =
        attention_part(cost, op->adjoint, sequence > 0 ? sequence : usual_sequence, op->depth);
    return divide(op->flops, hb_cost_peak_flops(cost, op->dtype) * part);
}

static double arithmetic_seconds(const struct hb_cost *cost, const struct hb_op *op)
{
    if (op->kind == HB_OP_MATMUL)
        return matmul_seconds(cost, op);
    if (op->kind == HB_OP_ATTENTION)
        return attention_seconds(cost, op);
    return divide(op->flops, cost->device->vector_flops);
}

/* A kernel's part of the peak does not follow the sequences, a product's is the most of its curve.
 */
double hb_cost_least_ns(const struct hb_cost *cost, uint32_t index)
{
    const struct hb_op *op = &cost->p->ops[index];
    if (op->kind == HB_OP_ATTENTION)
        return attention_seconds(cost, op) * 1e9;
    if (op->kind != HB_OP_MATMUL || op->grouped)
        return 0;
    enum hb_rate rate = pick_rate(cost, op->dtype);
    double most = cost->device->peak_flops[rate];
    most = most > 0 ? most * hb_device_most_matmul_part(cost->device, rate)
                    : cost->device->vector_flops;
    return divide(op->flops, most) * 1e9;
}

static int64_t to_ns(double seconds)
{
    double ns = seconds * 1e9;
    if (!(ns > 0))
        return 0;
    return ns < (double)HB_COST_MAX_NS ? (int64_t)llround(ns) : HB_COST_MAX_NS;
}

static int64_t kernel_ns(const struct hb_cost *cost, const struct hb_op *op)
{
    double memory = divide(op->moved_bytes, hb_device_hbm_rate(cost->device, op->moved_bytes));
    double arithmetic = arithmetic_seconds(cost, op);
    double gap = (double)cost->device->op_latency_ns * 1e-9;
    return to_ns((memory > arithmetic ? memory : arithmetic) + gap);
}

static int64_t limit_ns(int64_t ns)
{
    return hb_larger(0, hb_smaller(ns, HB_COST_MAX_NS));
}

static int64_t group_ns(const struct hb_cost *cost, enum hb_axis axis, int64_t size,
                        enum hb_collective what, double bytes)
{
    int64_t stride = cost->stride[axis];
    int64_t span = size < INT32_MAX / stride ? size * stride : INT32_MAX;
    struct hb_link_group group = {size, stride, span > cost->total ? span : cost->total};
    return limit_ns(hb_link_collective_ns(cost->device, what, bytes, group));
}

/* XLA sums a shard over the copies of it behind the sum over those that share it. */
static int64_t collective_ns(const struct hb_cost *cost, const struct hb_op *op,
                             enum hb_collective what)
{
    int64_t time_ns = group_ns(cost, op->axis, op->group, what, op->sent_bytes);
    if (!op->over_data)
        return time_ns;
    double part_bytes = op->sent_bytes / (double)(op->group > 1 ? op->group : 1);
    int64_t copies_ns =
        group_ns(cost, HB_AX_DATA, cost->p->mesh[HB_AX_DATA], HB_COLL_ALL_REDUCE, part_bytes);
    return limit_ns(hb_add_sat(time_ns, copies_ns));
}

static int64_t host_copy_ns(const struct hb_cost *cost, uint32_t index)
{
    const struct hb_op *op = &cost->p->ops[index];
    return limit_ns(hb_link_host_ns(cost->device, op->moved_bytes, op->stream == HB_STREAM_H2D,
                                    has_counterpart(cost, index)));
}

int64_t hb_cost_op_ns(const struct hb_cost *cost, uint32_t index)
{
    const struct hb_op *op = &cost->p->ops[index];
    switch (op->kind) {
    case HB_OP_MARK:
    case HB_OP_DONE:
    case HB_OP_KIND_COUNT:
        return 0;
    case HB_OP_MATMUL:
    case HB_OP_ATTENTION:
    case HB_OP_ELEMENTWISE:
    case HB_OP_REDUCE:
    case HB_OP_GATHER:
    case HB_OP_COPY:
    case HB_OP_OTHER:
        return kernel_ns(cost, op);
    case HB_OP_ALL_GATHER:
        return collective_ns(cost, op, HB_COLL_ALL_GATHER);
    case HB_OP_REDUCE_SCATTER:
        return collective_ns(cost, op, HB_COLL_REDUCE_SCATTER);
    case HB_OP_ALL_REDUCE:
        return collective_ns(cost, op, HB_COLL_ALL_REDUCE);
    case HB_OP_ALL_TO_ALL:
        return collective_ns(cost, op, HB_COLL_ALL_TO_ALL);
    case HB_OP_PERMUTE:
        return collective_ns(cost, op, HB_COLL_PERMUTE);
    case HB_OP_HOST_COPY:
        return host_copy_ns(cost, index);
    }
    return 0;
}
