/* torchtitan as of 0.2.1 (torchtitan/config/job_config.py: its TOML), and Megatron-core
 * (megatron/training/arguments.py: its command line). With torchtitan selective checkpointing with
 * a number is that of every so many-th layer, and `op` its own list; Megatron recomputes whole
 * layers in a uniform way, or parts of them. */
#include <inttypes.h>

#include "models/emit.h"

static int64_t batch_ranks(const struct hb_spec *s)
{
    return s->mesh[HB_AX_DATA] * s->mesh[HB_AX_FSDP] * s->mesh[HB_AX_EXPERT];
}

/* Sequences of a rank's microbatch. */
static int64_t microbatch(const struct hb_spec *s)
{
    int64_t parts = batch_ranks(s) * s->batch.accumulate;
    if (s->mesh[HB_AX_PIPELINE] > 1)
        parts *= s->pipeline.microbatches;
    return s->batch.global / parts;
}

static bool blocks_differ(const struct hb_spec *s)
{
    const struct hb_remat *first = &s->model.blocks[0].remat;
    for (int i = 1; i < s->model.block_count; i++) {
        const struct hb_remat *r = &s->model.blocks[i].remat;
        if (r->policy != first->policy || r->save != first->save)
            return true;
    }
    return false;
}

static void emit_titan_remat(struct hb_str *out, const struct hb_spec *s)
{
    enum hb_policy policy = s->model.blocks[0].remat.policy;
    hb_str_add(out, "\n[activation_checkpoint]\n");
    if (policy == HB_POLICY_NONE)
        hb_str_add(out, "mode = \"none\"\n");
    else if (policy == HB_POLICY_FULL && s->remat.every == 1)
        hb_str_add(out, "mode = \"full\"\n");
    else if (policy == HB_POLICY_FULL)
        hb_str_addf(out, "mode = \"selective\"\nselective_ac_option = \"%" PRId64 "\"\n",
                    s->remat.every);
    else
        hb_str_add(out, "mode = \"selective\"\nselective_ac_option = \"op\"\n");
    if (blocks_differ(s))
        hb_str_add(out, "# cannot be said: blocks with policies of their own\n");
}

void hb_emit_torchtitan(struct hb_str *out, const struct hb_spec *s)
{
    const int64_t *m = s->mesh;
    hb_str_addf(out,
                "[training]\nlocal_batch_size = %" PRId64 "\nglobal_batch_size = %" PRId64
                "\nseq_len = %" PRId64 "\n",
                microbatch(s), s->batch.global, s->batch.seq);
    hb_str_addf(out,
                "\n[parallelism]\ndata_parallel_replicate_degree = %" PRId64
                "\ndata_parallel_shard_degree = %" PRId64 "\ntensor_parallel_degree = %" PRId64
                "\ncontext_parallel_degree = %" PRId64 "\nfsdp_reshard_after_forward = \"%s\"\n",
                m[HB_AX_DATA], m[HB_AX_FSDP], m[HB_AX_TENSOR], m[HB_AX_SEQUENCE],
                s->sharding.reshard_after_forward ? "always" : "never");
    emit_titan_remat(out, s);
    hb_str_addf(out, "\n[compile]\nenable = %s\n", s->runtime.compile ? "true" : "false");
    if (s->runtime.compile)
        hb_str_add(out, s->loss.kernel == HB_LOSS_COMPILED ? "components = [\"model\", \"loss\"]\n"
                                                           : "components = [\"model\"]\n");
    if (s->runtime.expandable_segments)
        hb_str_add(out,
                   "\n# in the environment: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n");
}

static void emit_megatron_remat(struct hb_str *out, const struct hb_spec *s)
{
    enum hb_policy policy = s->model.blocks[0].remat.policy;
    if (policy == HB_POLICY_FULL && s->remat.every == 1)
        hb_str_add(out, "--recompute-granularity full\n--recompute-method uniform\n"
                        "--recompute-num-layers 1\n");
    else if (policy == HB_POLICY_FULL)
        hb_str_addf(out, "# cannot be said: recompute every %" PRId64 "th layer\n", s->remat.every);
    else if (s->remat.modules)
        hb_str_add(out, "--recompute-granularity selective\n--recompute-modules core_attn\n");
    if (blocks_differ(s))
        hb_str_add(out, "# cannot be said: blocks with policies of their own\n");
}

static void emit_megatron_axes(struct hb_str *out, const struct hb_spec *s)
{
    const int64_t *m = s->mesh;
    hb_str_addf(out,
                "--tensor-model-parallel-size %" PRId64 "\n--pipeline-model-parallel-size %" PRId64
                "\n--context-parallel-size %" PRId64 "\n",
                m[HB_AX_TENSOR], m[HB_AX_PIPELINE], m[HB_AX_SEQUENCE]);
    if (m[HB_AX_EXPERT] > 1)
        hb_str_addf(out,
                    "--expert-model-parallel-size %" PRId64 "\n--expert-tensor-parallel-size "
                    "%" PRId64 "\n",
                    m[HB_AX_EXPERT] * (m[HB_AX_TENSOR] / s->sharding.expert_tensor),
                    s->sharding.expert_tensor);
    if (m[HB_AX_TENSOR] > 1 && s->sharding.residual_over_tensor)
        hb_str_add(out, "--sequence-parallel\n");
    if (m[HB_AX_PIPELINE] > 1 && s->pipeline.repeats > 1)
        hb_str_addf(out, "--num-virtual-stages-per-pipeline-rank %" PRId64 "\n",
                    s->pipeline.repeats);
    if (m[HB_AX_PIPELINE] > 1 && s->pipeline.schedule == HB_SCHED_GPIPE)
        hb_str_add(out, "# cannot be said: schedule gpipe (it runs 1f1b)\n");
}

void hb_emit_megatron(struct hb_str *out, const struct hb_spec *s)
{
    hb_str_addf(out,
                "--micro-batch-size %" PRId64 "\n--global-batch-size %" PRId64
                "\n--seq-length %" PRId64 "\n",
                microbatch(s), s->batch.global, s->batch.seq);
    emit_megatron_axes(out, s);
    if (s->mesh[HB_AX_FSDP] > 1)
        hb_str_add(out, "--use-megatron-fsdp\n--data-parallel-sharding-strategy "
                        "optim_grads_params\n");
    else if (s->sharding.optimizer_over_data)
        hb_str_add(out, "--use-distributed-optimizer\n");
    emit_megatron_remat(out, s);
    if (s->loss.kernel == HB_LOSS_FUSED)
        hb_str_add(out, "--cross-entropy-loss-fusion\n--cross-entropy-fusion-impl te\n");
    else if (s->loss.kernel == HB_LOSS_JIT)
        hb_str_add(out, "--cross-entropy-loss-fusion\n--cross-entropy-fusion-impl native\n");
    if (!s->runtime.grad_fusion)
        hb_str_add(out, "--no-gradient-accumulation-fusion\n");
}
