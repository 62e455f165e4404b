/* torchtitan since February 2026, which is configured by functions in Python: one that returns the
 * whole Trainer.Config but for data and checkpoints. Names as of b5bcd76 (August 2026):
 * torchtitan/trainer.py, config/configs.py, distributed/activation_checkpoint.py. */
#include <inttypes.h>

#include "models/emit.h"
#include "models/emit_parts.h"

static const char *truth(bool value)
{
    return value ? "True" : "False";
}

/* The class of checkpointing, and what it is called without a module before it. */
static const char *remat_class(const struct hb_spec *s)
{
    enum hb_policy policy = s->model.blocks[0].remat.policy;
    return policy == HB_POLICY_NONE ? NULL : policy == HB_POLICY_FULL ? "FullAC" : "SelectiveAC";
}

static void emit_imports(struct hb_str *out, const struct hb_spec *s, const char *name)
{
    bool chunked = s->loss.chunks > 1, fp8 = s->precision.fp8 == HB_FP8_ROWWISE;
    hb_str_addf(out, "from torchtitan.components.loss import %sCrossEntropyLoss\n",
                chunked ? "ChunkedLossWrapper, " : "");
    hb_str_add(out, "from torchtitan.components.optimizer import default_adamw\n");
    if (fp8)
        hb_str_add(out, "from torchtitan.components.quantization import Float8LinearConverter\n");
    hb_str_add(out,
               "from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig\n");
    if (remat_class(s))
        hb_str_addf(out, "from torchtitan.distributed.activation_checkpoint import %s\n",
                    remat_class(s));
    hb_str_addf(out,
                "from torchtitan.models.common.config_utils import decoder_vocab_size\n"
                "from torchtitan.models.%s import model_registry\n"
                "from torchtitan.trainer import Trainer\n",
                name);
}

/* Tokens are counted for a rank of the batch, and one of its pipeline's microbatches. */
static void emit_training(struct hb_str *out, const struct hb_spec *s)
{
    bool host = s->optimizer.params_offload == HB_PLACE_PINNED_HOST;
    int64_t parts = s->mesh[HB_AX_PIPELINE] > 1 ? s->pipeline.microbatches : 1;
    hb_str_addf(out,
                "        training=TrainingConfig(\n"
                "            num_tokens_per_microbatch_per_dp_rank=%" PRId64 " * %" PRId64 ",\n"
                "            num_tokens_per_train_step=%" PRId64 " * %" PRId64 ",\n"
                "            max_context_length=%" PRId64 ",\n"
                "            max_norm=%s,\n"
                "            dtype=\"%s\",\n"
                "            mixed_precision_param=\"%s\",\n"
                "            enable_cpu_offload=%s,\n"
                "            disable_cuda_graphs=%s,\n"
                "        ),\n",
                hb_rank_batch(s) / (parts > 0 ? parts : 1), s->batch.seq, s->batch.global,
                s->batch.seq, s->batch.seq, s->optimizer.clip ? "1.0" : "0.0",
                hb_titan_dtype(s->precision.params), hb_titan_dtype(s->precision.compute),
                truth(host), truth(!s->runtime.cuda_graphs));
}

static void emit_parallelism(struct hb_str *out, const struct hb_spec *s)
{
    const int64_t *m = s->mesh;
    hb_str_addf(out,
                "        parallelism=ParallelismConfig(\n"
                "            data_parallel_replicate_degree=%" PRId64 ",\n"
                "            data_parallel_shard_degree=%" PRId64 ",\n"
                "            fsdp_reshard_after_forward=\"%s\",\n"
                "            tensor_parallel_degree=%" PRId64 ",\n"
                "            context_parallel_degree=%" PRId64 ",\n"
                "            expert_parallel_degree=%" PRId64 ",\n"
                "            pipeline_parallel_degree=%" PRId64 ",\n",
                m[HB_AX_DATA], m[HB_AX_FSDP] * m[HB_AX_EXPERT],
                s->sharding.reshard_after_forward ? "always" : "never", m[HB_AX_TENSOR],
                m[HB_AX_SEQUENCE], hb_titan_expert_ways(s), m[HB_AX_PIPELINE]);
    if (m[HB_AX_TENSOR] > 1 && !s->sharding.residual_over_tensor)
        hb_str_add(out, "            enable_sequence_parallel=False,\n");
    if (m[HB_AX_SEQUENCE] > 1 && !s->sharding.sequence_balance)
        hb_str_add(out, "            context_parallel_load_balancer=None,\n");
    if (m[HB_AX_PIPELINE] > 1)
        hb_str_addf(out,
                    "            pipeline_parallel_schedule=\"%s\",\n"
                    "            num_pp_microbatches=%" PRId64 ",\n",
                    hb_titan_schedule(s->pipeline.schedule), s->pipeline.microbatches);
    hb_str_add(out, "        ),\n");
}

static void emit_compile(struct hb_str *out, const struct hb_spec *s)
{
    const char *compiled = hb_titan_compiled(s);
    hb_str_addf(out, "        compile=CompileConfig(enable=%s", truth(compiled != NULL));
    if (compiled)
        hb_str_addf(out, ", components=%s", compiled);
    if (s->runtime.async_tp)
        hb_str_add(out, ", enable_async_tensor_parallel=True");
    hb_str_add(out, "),\n");
}

void hb_emit_recipe(struct hb_str *out, const struct hb_spec *s, const char *data_dir)
{
    struct hb_hosts hosts = hb_hosts_of(out->arena, s, data_dir);
    const char *name = "", *flavor = "", *remat = remat_class(s);
    hb_titan_flavor(out->arena, &s->model, data_dir, &name, &flavor);
    hb_str_addf(out,
                "# Save as hbmsim_plan.py where Python finds it; on each of %" PRId64 " hosts:\n"
                "# torchrun --nproc_per_node %" PRId64 " --nnodes %" PRId64
                " -m torchtitan.train --module hbmsim_plan --config plan\n",
                hosts.count, hosts.each, hosts.count);
    if (s->runtime.expandable_segments)
        hb_str_add(out, "# with PYTORCH_ALLOC_CONF=expandable_segments:True\n");
    emit_imports(out, s, name);
    bool fp8 = s->precision.fp8 == HB_FP8_ROWWISE;
    hb_str_addf(out,
                "\n\ndef plan() -> Trainer.Config:\n"
                "    model_spec = model_registry(\"%s\"%s)\n"
                "    loss = CrossEntropyLoss.Config(\n"
                "        global_vocab_size=decoder_vocab_size(model_spec)\n"
                "    )\n"
                "    return Trainer.Config(  # and yours: hf_assets_path, dataloader, checkpoint\n"
                "        model_spec=model_spec,\n",
                flavor, fp8 ? ", converters=[Float8LinearConverter.Config()]" : "");
    if (s->loss.chunks > 1)
        hb_str_addf(
            out, "        loss=ChunkedLossWrapper.Config(loss_fn=loss, num_chunks=%" PRId64 "),\n",
            s->loss.chunks);
    else
        hb_str_add(out, "        loss=loss,\n");
    hb_str_add(out, "        optimizer=default_adamw(),\n");
    emit_training(out, s);
    emit_parallelism(out, s);
    hb_str_addf(out, "        activation_checkpoint=%s%s,\n", remat ? remat : "None",
                remat ? ".Config()" : "");
    emit_compile(out, s);
    hb_str_add(out, "    )\n");
}
