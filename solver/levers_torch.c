/* Levers of PyTorch's trainers: torchtitan's and Megatron's own options. What is of the other
 * framework has no effect, for the reason that models/support_torch.c gives. */
#include "solver/levers.h"

#include "base/arena.h"

static bool is_megatron(const struct hb_turn *t)
{
    return t->s->runtime.framework == HB_FW_MEGATRON;
}

/* --- 2: checkpoint --- */

static const char *set_policy(struct hb_turn *t, struct hb_remat policy, int64_t every)
{
    bool changed = t->s->remat.every != every;
    for (int i = 0; i < t->s->model.block_count; i++) {
        const struct hb_remat *r = &t->blocks[i].remat;
        changed = changed || r->policy != policy.policy || r->save != policy.save;
        t->blocks[i].remat = policy;
    }
    t->s->remat.all = policy;
    t->s->remat.modules = 0; /* with policy none alone, as a budget */
    t->s->remat.budget = 1;
    t->s->remat.every = every;
    return changed ? NULL : "the layers are checkpointed so already";
}

static const char *checkpoint_all(struct hb_turn *t)
{
    const char *why = set_policy(t, (struct hb_remat){HB_POLICY_FULL, 0, 0}, 1);
    return why ? why : hb_turn_named(t, "remat.policy = full");
}

static const char *checkpoint_some(struct hb_turn *t)
{
    const char *why = set_policy(t, (struct hb_remat){HB_POLICY_FULL, 0, 0}, 2);
    return why ? why : hb_turn_named(t, "remat.policy = full, remat.every = 2");
}

static const char *checkpoint_ops(struct hb_turn *t)
{
    if (is_megatron(t))
        return "a list of ops is torchtitan's";
    const char *why = set_policy(t, (struct hb_remat){HB_POLICY_NAMES, HB_TITANS_LIST, 0}, 1);
    return why ? why : hb_turn_named(t, "remat.save = [q, v, attn_ctx, mlp_gate, mlp_down]");
}

static const char *checkpoint_core(struct hb_turn *t)
{
    bool naive = false;
    if (!is_megatron(t))
        return "remat.modules are Megatron's";
    for (int i = 0; i < t->s->model.block_count; i++)
        naive = naive || t->blocks[i].attention.kernel == HB_KERNEL_NAIVE;
    if (!naive)
        return "attention is a flash kernel, which keeps no scores";
    if (t->s->remat.modules >> HB_RM_CORE_ATTN & 1)
        return "core attention is recomputed already";
    t->s->remat.modules |= 1u << HB_RM_CORE_ATTN;
    return hb_turn_named(t, "remat.modules = [core_attn]");
}

/* --- 5: other axes --- */

/* Half the ranks that split the batch; null: an axis was halved. */
static const char *halve_batch_axis(struct hb_turn *t)
{
    int64_t *m = t->s->mesh;
    int axis = is_megatron(t) && m[HB_AX_FSDP] == 1 ? HB_AX_DATA : HB_AX_FSDP;
    if (m[axis] % 2)
        return "the axis that splits the batch cannot be halved";
    m[axis] /= 2;
    return NULL;
}

static const char *split_tensors(struct hb_turn *t)
{
    const char *why = halve_batch_axis(t);
    bool own = t->s->sharding.expert_tensor == t->s->mesh[HB_AX_TENSOR];
    if (why)
        return why;
    if (t->s->mesh[HB_AX_TENSOR] == 1)
        t->s->sharding.residual_over_tensor = t->s->sharding.vocab_over_tensor = true;
    t->s->mesh[HB_AX_TENSOR] *= 2;
    if (own)
        t->s->sharding.expert_tensor = t->s->mesh[HB_AX_TENSOR];
    return hb_turn_numbered(t, "half the batch's ranks, mesh.tensor", t->s->mesh[HB_AX_TENSOR]);
}

static const char *split_context(struct hb_turn *t)
{
    const char *why = halve_batch_axis(t);
    if (why)
        return why;
    t->s->mesh[HB_AX_SEQUENCE] *= 2;
    if (!is_megatron(t))
        t->s->sharding.states_over_sequence = true;
    return hb_turn_numbered(t, "half the batch's ranks, mesh.sequence", t->s->mesh[HB_AX_SEQUENCE]);
}

static const char *split_stages(struct hb_turn *t)
{
    struct hb_pipe *p = &t->s->pipeline;
    const char *why = halve_batch_axis(t);
    if (why)
        return why;
    if (p->layers)
        return "pipeline.layers says which chunk has which layers";
    t->s->mesh[HB_AX_PIPELINE] *= 2;
    if (p->schedule == HB_SCHED_SPMD)
        p->schedule = HB_SCHED_1F1B;
    if (t->s->mesh[HB_AX_PIPELINE] == 2) { /* what was accumulated is its microbatches */
        p->microbatches = t->s->batch.accumulate > 1 ? t->s->batch.accumulate : 2;
        t->s->batch.accumulate = 1;
    }
    if (p->microbatches < t->s->mesh[HB_AX_PIPELINE]) /* PyTorch's 1F1B wants as many */
        p->microbatches = t->s->mesh[HB_AX_PIPELINE];
    return hb_turn_numbered(t, "half the batch's ranks, mesh.pipeline", t->s->mesh[HB_AX_PIPELINE]);
}

/* --- 8: smaller batches --- */

static const char *accumulate(struct hb_turn *t)
{
    if (t->s->mesh[HB_AX_PIPELINE] == 1)
        return hb_turn_accumulate(t);
    t->s->pipeline.microbatches *= 2;
    return hb_turn_numbered(t, "pipeline.microbatches", t->s->pipeline.microbatches);
}

/* --- 1, 11, 13, 15 --- */

static const char *reshard(struct hb_turn *t)
{
    if (is_megatron(t))
        return "sharding.reshard_after_forward is FSDP2's";
    if (t->s->sharding.reshard_after_forward)
        return "gathered weights are given back after the forward pass already";
    t->s->sharding.reshard_after_forward = true;
    return hb_turn_named(t, "sharding.reshard_after_forward = true");
}

static const char *lean_loss(struct hb_turn *t)
{
    enum hb_loss_kernel kernel = is_megatron(t) ? HB_LOSS_FUSED : HB_LOSS_COMPILED;
    if (t->s->loss.kernel == kernel)
        return "the loss is one kernel already";
    t->s->loss.kernel = kernel;
    return hb_turn_named(t, is_megatron(t) ? "loss.kernel = fused" : "loss.kernel = compiled");
}

static const char *chunk_loss(struct hb_turn *t)
{
    return is_megatron(t) ? "loss.chunks is torchtitan's" : hb_turn_chunk_loss(t);
}

static const char *short_grads(struct hb_turn *t)
{
    if (t->s->precision.grads == HB_GRADS_BF16)
        return "gradients are reduced in bf16 already";
    t->s->precision.grads = HB_GRADS_BF16;
    return hb_turn_named(t, "precision.grads = bf16");
}

static const char *compile(struct hb_turn *t)
{
    if (t->s->runtime.compile)
        return "the layers are compiled already";
    t->s->runtime.compile = true;
    return hb_turn_named(t, "runtime.compile = true");
}

static const char *expand(struct hb_turn *t)
{
    if (t->s->runtime.expandable_segments)
        return "segments are expandable already";
    t->s->runtime.expandable_segments = true;
    return hb_turn_named(t, "runtime.expandable_segments = true");
}

static const char *fuse_gradients(struct hb_turn *t)
{
    if (!is_megatron(t))
        return "runtime.grad_fusion is Megatron's";
    t->s->runtime.grad_fusion = !t->s->runtime.grad_fusion;
    return hb_turn_named(t, t->s->runtime.grad_fusion ? "runtime.grad_fusion = true"
                                                      : "runtime.grad_fusion = false");
}

static const struct hb_lever levers[] = {
    {1, false, "shard more", "parameters, gradients and states are split further",
     hb_turn_shard_params},
    {1, true, "shard more", "optimizer states are split over the data axis too",
     hb_turn_shard_states},
    {1, false, "shard more", "gathered weights are given back after the forward pass", reshard},
    {2, false, "checkpoint", "layers are run again in the backward pass", checkpoint_all},
    {2, false, "checkpoint", "every second layer is run again in the backward pass",
     checkpoint_some},
    {2, false, "checkpoint", "of a layer every second product and attention's output are kept",
     checkpoint_ops},
    {2, true, "checkpoint", "scores are made again in the backward pass", checkpoint_core},
    {5, false, "model parallel instead of more FSDP",
     "layers' weights, activations and logits are halved", split_tensors},
    {5, true, "model parallel instead of more FSDP", "the residual is split over tensor",
     hb_turn_split_sequence},
    {5, false, "context parallel", "a rank has half of each sequence", split_context},
    {5, false, "pipeline", "a rank has half of the layers", split_stages},
    {8, false, "smaller batch with accumulation", "half the tokens are in flight", accumulate},
    {10, true, "leaner optimizer", "moments in half the bytes", hb_turn_short_moments},
    {11, true, "one kernel for the loss, attention kernels",
     "the loss makes no copies of the logits", lean_loss},
    {11, true, "one kernel for the loss, attention kernels", "an eighth of the logits at a time",
     chunk_loss},
    {11, true, "one kernel for the loss, attention kernels", "scores are never materialised",
     hb_turn_flash_kernel},
    {13, true, "lower precision", "gradients are reduced in half the bytes", short_grads},
    {15, true, "compiled layers", "norms, rope and products of activations are one kernel each",
     compile},
    {16, true, "allocator", "no segment is left half empty", expand},
    {16, true, "allocator", "weight gradients added in place, or in storages of their own",
     fuse_gradients},
};

enum { LEVERS = sizeof levers / sizeof *levers };
_Static_assert((int)LEVERS <= (int)HB_LEVERS_MOST, "room for all levers");

const struct hb_lever *hb_levers_torch(uint32_t *out_count)
{
    *out_count = LEVERS;
    return levers;
}
