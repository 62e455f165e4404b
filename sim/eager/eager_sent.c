/* Weights and gradients on their way: see eager_sent.h. */
#include "sim/eager/eager_sent.h"

#include <stddef.h>

/* Devices that share or sum something, and the innermost axis among theirs: where they lie. */
struct group {
    double ways;
    enum hb_axis axis;
};

static struct group over_axes(const struct hb_eager *e, bool fsdp, bool data, bool expert,
                              bool sequence)
{
    const struct {
        bool wanted;
        enum hb_axis axis;
    } axes[] = {
        {data, HB_AX_DATA}, {fsdp, HB_AX_FSDP}, {expert, HB_AX_EXPERT}, {sequence, HB_AX_SEQUENCE}};
    struct group g = {1, HB_AX_FSDP};
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        if (!axes[i].wanted || hb_eager_ways(e, axes[i].axis) <= 1)
            continue;
        g.ways *= (double)hb_eager_ways(e, axes[i].axis);
        g.axis = axes[i].axis;
    }
    return g;
}

bool hb_eager_has_fsdp(const struct hb_eager *e)
{
    const struct hb_sharding *s = &e->spec->sharding;
    bool context = s->states_over_sequence && (double)hb_eager_ways(e, HB_AX_SEQUENCE) > 1 &&
                   e->spec->runtime.framework != HB_FW_MEGATRON;
    return (double)hb_eager_ways(e, HB_AX_FSDP) > 1 || s->dense_over_expert || context;
}

/* Over which weights are split, and over which copies of them are summed. */
static struct group split_group(const struct hb_eager *e, bool expert)
{
    const struct hb_sharding *s = &e->spec->sharding;
    bool on = hb_eager_has_fsdp(e);
    return over_axes(e, on, false, on && s->dense_over_expert && !expert,
                     on && s->states_over_sequence);
}

static struct group copies_group(const struct hb_eager *e, bool expert)
{
    const struct hb_sharding *s = &e->spec->sharding;
    bool on = hb_eager_has_fsdp(e);
    return over_axes(e, false, true, !expert && !s->dense_over_expert,
                     !(on && s->states_over_sequence));
}

/* A collective beside the main chain: on the stream of fsdp or data, whatever axes the group has.
 */
struct transfer {
    const char *name;
    enum hb_op_kind kind;
    struct group group;
    enum hb_axis stream;
    double bytes;
};

static void add_beside(struct hb_eager *e, struct transfer t, uint32_t read, uint32_t write)
{
    if (t.group.ways <= 1 || !(t.bytes > 0))
        return;
    hb_program_add_op(e->p, (struct hb_op){.name = t.name,
                                           .kind = t.kind,
                                           .phase = e->phase,
                                           .start = HB_NONE,
                                           .stream = HB_STREAM_COLLECTIVE + (unsigned)t.stream,
                                           .axis = t.group.axis,
                                           .group = (int64_t)t.group.ways,
                                           .sent_bytes = t.bytes});
    if (read != HB_NONE)
        hb_program_read(e->p, read);
    hb_program_write(e->p, write);
}

static double gather_width(const struct hb_eager *e)
{
    return e->spec->precision.fp8_gather ? 1
                                         : (double)hb_dtype_bits(e->spec->precision.compute) / 8;
}

void hb_eager_gather_weights(struct hb_eager *e, struct hb_eager_held w)
{
    double width = gather_width(e);
    add_beside(e,
               (struct transfer){"gather the next layer's weights", HB_OP_ALL_GATHER,
                                 split_group(e, false), HB_AX_FSDP, w.dense * width},
               HB_NONE, e->weights);
    add_beside(e,
               (struct transfer){"gather the next layer's experts", HB_OP_ALL_GATHER,
                                 split_group(e, true), HB_AX_FSDP, w.experts * width},
               HB_NONE, e->weights);
}

/* Megatron's distributed optimizer gathers what it updated layer by layer, one ahead, in the next
 * pass forwards (overlap_param_gather; Megatron-Bridge, docs/training/communication-overlap.md:
 * only one of these chunks is exposed). */
bool hb_eager_updates_ahead(const struct hb_eager *e)
{
    return e->spec->runtime.framework == HB_FW_MEGATRON && e->spec->sharding.optimizer_over_data;
}

/* Of weights that the device holds. */
void hb_eager_gather_updates(struct hb_eager *e, struct hb_eager_held w, uint32_t read,
                             uint32_t write)
{
    double width = (double)hb_dtype_bits(e->spec->precision.params) / 8;
    add_beside(e,
               (struct transfer){"gather updated parameters", HB_OP_ALL_GATHER,
                                 copies_group(e, false), HB_AX_DATA,
                                 w.dense * width / split_group(e, false).ways},
               read, write);
    add_beside(e,
               (struct transfer){"gather updated experts", HB_OP_ALL_GATHER, copies_group(e, true),
                                 HB_AX_DATA, w.experts * width / split_group(e, true).ways},
               read, write);
}

void hb_eager_wait_for_updates(struct hb_eager *e)
{
    hb_eager_emit(e, (struct hb_op){.name = "updated parameters are there", .kind = HB_OP_MARK},
                  e->updates, HB_NONE);
}

/* FSDP casts its parts before they go and copies whole weights out of the gathered buffer
 * (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py): 4 + 2 bytes of a part, 2 + 2 of a
 * whole one. */
void hb_eager_take_weights(struct hb_eager *e, struct hb_eager_held w)
{
    double ways = split_group(e, false).ways, width = gather_width(e);
    if (ways <= 1)
        return;
    hb_eager_emit(
        e,
        (struct hb_op){.name = "unpack gathered weights",
                       .kind = HB_OP_COPY,
                       .moved_bytes = (w.dense + w.experts) * (2 * width + (4 + width) / ways)},
        e->weights, HB_NONE);
}

/* Megatron divides a bucket by the copies before they are summed (core/distributed/
 * param_and_grad_buffer.py, start_grad_sync; NCCL is not asked for a mean: average_in_collective).
 */
static void scale_gradients(struct hb_eager *e, struct hb_eager_held w)
{
    double dense = copies_group(e, false).ways > 1 ? w.dense / split_group(e, false).ways : 0;
    double experts = copies_group(e, true).ways > 1 ? w.experts / split_group(e, true).ways : 0;
    double bytes = 2 * (dense + experts) * hb_eager_grad_bytes(e->spec);
    if (e->spec->runtime.framework == HB_FW_MEGATRON && bytes > 0)
        hb_eager_emit(e,
                      (struct hb_op){.name = "divide gradients by the copies",
                                     .kind = HB_OP_ELEMENTWISE,
                                     .moved_bytes = bytes},
                      e->grads, e->grads);
}

void hb_eager_sum_copies(struct hb_eager *e, struct hb_eager_held w)
{
    double width = hb_eager_grad_bytes(e->spec);
    scale_gradients(e, w);
    enum hb_op_kind kind =
        e->spec->sharding.optimizer_over_data ? HB_OP_REDUCE_SCATTER : HB_OP_ALL_REDUCE;
    add_beside(e,
               (struct transfer){"sum gradients over copies", kind, copies_group(e, false),
                                 HB_AX_DATA, w.dense * width / split_group(e, false).ways},
               e->grads, e->sums);
    add_beside(e,
               (struct transfer){"sum gradients of experts over copies", kind,
                                 copies_group(e, true), HB_AX_DATA,
                                 w.experts * width / split_group(e, true).ways},
               e->grads, e->sums);
}

/* Without the distributed optimizer Megatron sums all gradients at once after the backward pass
 * (overlap_grad_reduce is off: core/distributed/distributed_data_parallel_config.py). */
bool hb_eager_sums_late(const struct hb_eager *e)
{
    return e->spec->runtime.framework == HB_FW_MEGATRON && !e->spec->sharding.optimizer_over_data;
}

/* Over the copies only in the last microbatch. */
void hb_eager_sum_gradients(struct hb_eager *e, struct hb_eager_held w, bool last)
{
    double width = hb_eager_grad_bytes(e->spec),
           compute = (double)hb_dtype_bits(e->spec->precision.compute) / 8;
    struct group split = split_group(e, false), expert_split = split_group(e, true);
    if (split.ways > 1)
        hb_eager_emit(e,
                      (struct hb_op){.name = "pack gradients",
                                     .kind = HB_OP_COPY,
                                     .moved_bytes = (w.dense + w.experts) * (compute + width)},
                      HB_NONE, e->grads);
    add_beside(e,
               (struct transfer){"sum gradients of a layer", HB_OP_REDUCE_SCATTER, split,
                                 HB_AX_FSDP, w.dense * width},
               e->grads, e->sums);
    add_beside(e,
               (struct transfer){"sum gradients of its experts", HB_OP_REDUCE_SCATTER, expert_split,
                                 HB_AX_FSDP, w.experts * width},
               e->grads, e->sums);
    if (last && !hb_eager_sums_late(e))
        hb_eager_sum_copies(e, w);
}

/* Activations go to the next stage, and gradients back, after each chunk: 1F1B waits for them,
 * interleaved schedules send them while another chunk runs. */
void hb_eager_pass_on(struct hb_eager *e)
{
    struct group g = {(double)hb_eager_ways(e, HB_AX_PIPELINE), HB_AX_PIPELINE};
    double bytes = 2 * e->resid_tokens * (double)e->spec->model.d_model;
    bool waits = e->spec->pipeline.schedule != HB_SCHED_INTERLEAVED;
    if (g.ways <= 1)
        return;
    for (int64_t i = 0; i < e->spec->pipeline.repeats; i++)
        add_beside(e,
                   (struct transfer){"to the next stage", HB_OP_PERMUTE, g, HB_AX_PIPELINE, bytes},
                   e->x, waits ? e->x : e->keys);
}

/* FSDP's outermost unit, which stays gathered until its gradients are made, the last of all. */
void hb_eager_gather_tables(struct hb_eager *e, double tables)
{
    add_beside(e,
               (struct transfer){"gather embedding and head", HB_OP_ALL_GATHER,
                                 split_group(e, false), HB_AX_FSDP, tables * gather_width(e)},
               HB_NONE, e->weights);
}

double hb_eager_split_ways(const struct hb_eager *e, bool expert)
{
    return split_group(e, expert).ways;
}

double hb_eager_copy_ways(const struct hb_eager *e, bool expert)
{
    return copies_group(e, expert).ways;
}
