/* torchtitan as of 0.2.1: the TOML of torchtitan/config/job_config.py, whole but for the data set's
 * and checkpoint's own sections. Selective checkpointing with a number is that of every so many-th
 * layer, and `op` its own list. */
#include <inttypes.h>

#include "models/emit.h"
#include "models/emit_parts.h"

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static void emit_model(struct hb_str *out, const struct hb_spec *s, const char *data_dir)
{
    static const char *const recipes[] = {
        [HB_FP8_TENSORWISE] = "tensorwise", [HB_FP8_ROWWISE] = "rowwise"};
    enum hb_fp8 fp8 = s->precision.fp8;
    const char *name, *flavor;
    hb_str_add(out, "[model]\n");
    if (hb_titan_flavor(out->arena, &s->model, data_dir, &name, &flavor))
        hb_str_addf(out, "name = \"%s\"\nflavor = \"%s\"\n", name, flavor);
    if (fp8 == HB_FP8_NONE)
        return;
    bool plain = fp8 == HB_FP8_TENSORWISE || fp8 == HB_FP8_ROWWISE;
    hb_str_addf(out, "converters = [\"%s\"]\n",
                plain ? "quantize.linear.float8" : "quantize.linear.mx");
    if (plain)
        hb_str_addf(out,
                    "\n[quantize.linear.float8]\nrecipe_name = \"%s\"\n"
                    "enable_fsdp_float8_all_gather = %s\n",
                    recipes[fp8], truth(s->precision.fp8_gather));
}

static void emit_training(struct hb_str *out, const struct hb_spec *s)
{
    bool host = s->optimizer.offload == HB_PLACE_PINNED_HOST &&
                s->optimizer.params_offload == HB_PLACE_PINNED_HOST;
    hb_str_addf(out,
                "\n[training]\nlocal_batch_size = %" PRId64 "\nglobal_batch_size = %" PRId64
                "\nseq_len = %" PRId64 "\nmax_norm = %s\ndtype = \"%s\"\n"
                "mixed_precision_param = \"%s\"\nenable_cpu_offload = %s\n",
                hb_rank_batch(s), s->batch.global, s->batch.seq, s->optimizer.clip ? "1.0" : "0.0",
                hb_titan_dtype(s->precision.params), hb_titan_dtype(s->precision.compute),
                truth(host));
    hb_str_addf(out, "\n[optimizer]\nname = \"%s\"\n",
                s->optimizer.name == HB_OPT_MUON ? "Muon" : "AdamW");
    if (s->optimizer.in_backward)
        hb_str_add(out, "early_step_in_backward = true\n");
}

const char *hb_titan_dtype(enum hb_dtype dtype)
{
    return dtype == HB_DT_BF16 ? "bfloat16" : "float32";
}

const char *hb_titan_compiled(const struct hb_spec *s)
{
    bool loss = s->loss.kernel == HB_LOSS_COMPILED;
    if (s->runtime.compile)
        return loss ? "[\"model\", \"loss\"]" : "[\"model\"]";
    return loss ? "[\"loss\"]" : NULL;
}

const char *hb_titan_schedule(enum hb_schedule schedule)
{
    static const char *const words[] = {[HB_SCHED_SPMD] = "1F1B",
                                        [HB_SCHED_GPIPE] = "GPipe",
                                        [HB_SCHED_1F1B] = "1F1B",
                                        [HB_SCHED_INTERLEAVED] = "Interleaved1F1B",
                                        [HB_SCHED_ZERO_BUBBLE] = "InterleavedZeroBubble",
                                        [HB_SCHED_ZBV] = "ZBVZeroBubble",
                                        [HB_SCHED_DUALPIPE_V] = "DualPipeV"};
    return words[schedule];
}

static void emit_pipeline(struct hb_str *out, const struct hb_spec *s)
{
    int64_t size = hb_rank_batch(s) / s->pipeline.microbatches;
    hb_str_addf(out,
                "pipeline_parallel_schedule = \"%s\"\npipeline_parallel_microbatch_size = %" PRId64
                "\n",
                hb_titan_schedule(s->pipeline.schedule), size > 0 ? size : 1);
}

static void emit_parallelism(struct hb_str *out, const struct hb_spec *s)
{
    const int64_t *m = s->mesh;
    int64_t experts = hb_titan_expert_ways(s);
    hb_str_addf(out,
                "\n[parallelism]\ndata_parallel_replicate_degree = %" PRId64
                "\ndata_parallel_shard_degree = %" PRId64 "\ntensor_parallel_degree = %" PRId64
                "\ncontext_parallel_degree = %" PRId64 "\npipeline_parallel_degree = %" PRId64
                "\nexpert_parallel_degree = %" PRId64 "\nfsdp_reshard_after_forward = \"%s\"\n",
                m[HB_AX_DATA], m[HB_AX_FSDP] * m[HB_AX_EXPERT], m[HB_AX_TENSOR], m[HB_AX_SEQUENCE],
                m[HB_AX_PIPELINE], experts, s->sharding.reshard_after_forward ? "always" : "never");
    if (m[HB_AX_TENSOR] > 1 && !s->sharding.residual_over_tensor)
        hb_str_add(out, "enable_sequence_parallel = false\n");
    if (s->runtime.async_tp)
        hb_str_add(out, "enable_async_tensor_parallel = true\n");
    if (m[HB_AX_TENSOR] > 1 && experts > 1)
        hb_str_addf(out, "expert_tensor_parallel_degree = %" PRId64 "\n",
                    s->sharding.expert_tensor);
    if (m[HB_AX_SEQUENCE] > 1)
        hb_str_addf(out,
                    "context_parallel_rotate_method = \"%s\"\ncontext_parallel_load_balancer = "
                    "\"%s\"\n",
                    s->sharding.sequence_kind == HB_SEQ_ALL_GATHER ? "allgather" : "alltoall",
                    s->sharding.sequence_balance ? "headtail" : "");
    if (m[HB_AX_PIPELINE] > 1)
        emit_pipeline(out, s);
}

static void emit_remat(struct hb_str *out, const struct hb_spec *s)
{
    enum hb_policy policy = s->model.blocks[0].remat.policy;
    hb_str_add(out, "\n[activation_checkpoint]\n");
    if (policy == HB_POLICY_NONE && s->remat.budget < 1)
        hb_str_addf(out, "mode = \"memory_budget\"\nmemory_budget = %g\n", s->remat.budget);
    else if (policy == HB_POLICY_NONE)
        hb_str_add(out, "mode = \"none\"\n");
    else if (policy == HB_POLICY_FULL && s->remat.every == 1)
        hb_str_add(out, "mode = \"full\"\n");
    else
        hb_str_add(out, "mode = \"selective\"\n");
    if (policy == HB_POLICY_FULL && s->remat.every > 1)
        hb_str_addf(out, "selective_ac_option = \"%" PRId64 "\"\n", s->remat.every);
    else if (policy != HB_POLICY_NONE && policy != HB_POLICY_FULL)
        hb_str_add(out, "selective_ac_option = \"op\"\n");
}

void hb_emit_torchtitan(struct hb_str *out, const struct hb_spec *s, const char *data_dir)
{
    struct hb_hosts hosts = hb_hosts_of(out->arena, s, data_dir);
    hb_str_addf(out,
                "# torchrun --nproc_per_node %" PRId64 " --nnodes %" PRId64
                " -m torchtitan.train --job.config_file this.toml\n",
                hosts.each, hosts.count);
    if (s->runtime.expandable_segments)
        hb_str_add(out, "# with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n");
    emit_model(out, s, data_dir);
    emit_training(out, s);
    emit_parallelism(out, s);
    emit_remat(out, s);
    const char *compiled = hb_titan_compiled(s);
    hb_str_addf(out, "\n[compile]\nenable = %s\n", truth(compiled != NULL));
    if (compiled)
        hb_str_addf(out, "components = %s\n", compiled);
}
