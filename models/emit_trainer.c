/* Hugging Face's Trainer: its TrainingArguments as a YAML file (HfArgumentParser and TRL's scripts
 * take one by --config), with fsdp_config or DeepSpeed's map within it as they are allowed there.
 * Keys: transformers/training_args.py 5.23; DeepSpeed's config-json page. The model's own
 * config.json says what it is; it is named here. */
#include <inttypes.h>
#include <string.h>

#include "models/emit.h"
#include "models/emit_parts.h"

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

/* Parameters in the compute type with a master copy are DeepSpeed's; FSDP's are float32. */
static bool is_zero(const struct hb_spec *s)
{
    return s->precision.master || s->sharding.optimizer_over_data || s->sharding.grads_over_data ||
           (s->optimizer.offload == HB_PLACE_PINNED_HOST) !=
               (s->optimizer.params_offload == HB_PLACE_PINNED_HOST);
}

static void emit_zero(struct hb_str *out, const struct hb_spec *s)
{
    int stage = s->mesh[HB_AX_FSDP] > 1           ? 3
                : s->sharding.grads_over_data     ? 2
                : s->sharding.optimizer_over_data ? 1
                                                  : 0;
    hb_str_addf(out, "deepspeed:\n  zero_optimization:\n    stage: %d\n", stage);
    if (stage > 0)
        hb_str_addf(out, "    overlap_comm: %s\n    reduce_bucket_size: %" PRId64 "\n",
                    truth(stage == 3), s->runtime.reduce_bucket);
    if (stage == 3)
        hb_str_addf(out,
                    "    stage3_prefetch_bucket_size: %" PRId64 "\n"
                    "    stage3_max_live_parameters: %" PRId64 "\n"
                    "    stage3_max_reuse_distance: %" PRId64 "\n"
                    "    stage3_param_persistence_threshold: %" PRId64 "\n"
                    "    sub_group_size: %" PRId64 "\n",
                    s->runtime.prefetch_bucket, s->runtime.live_parameters,
                    s->runtime.reuse_distance, s->runtime.persist_below, s->runtime.update_group);
    if (s->optimizer.offload == HB_PLACE_PINNED_HOST)
        hb_str_add(out, "    offload_optimizer: {device: cpu, pin_memory: true}\n");
    if (s->optimizer.params_offload == HB_PLACE_PINNED_HOST)
        hb_str_add(out, "    offload_param: {device: cpu, pin_memory: true}\n");
    hb_str_addf(out, "  bf16: {enabled: %s}\n  fp16: {enabled: %s}\n",
                truth(s->precision.compute == HB_DT_BF16),
                truth(s->precision.compute == HB_DT_F16));
    hb_str_add(out, "  train_micro_batch_size_per_gpu: auto\n  gradient_accumulation_steps: auto\n"
                    "  gradient_clipping: auto\n");
}

static void emit_fsdp(struct hb_str *out, const struct hb_spec *s)
{
    if (s->mesh[HB_AX_FSDP] == 1)
        return;
    bool full = s->sharding.reshard_after_forward;
    if (s->runtime.fsdp1) {
        hb_str_addf(out,
                    "fsdp: %s auto_wrap\nfsdp_config:\n  fsdp_version: 1\n"
                    "  fsdp_sharding_strategy: %s\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n",
                    full ? "full_shard" : "shard_grad_op", full ? "FULL_SHARD" : "SHARD_GRAD_OP");
        return;
    }
    hb_str_addf(out,
                "fsdp: full_shard auto_wrap\nfsdp_config:\n  fsdp_version: 2\n"
                "  reshard_after_forward: %s\n  cpu_offload: %s\n"
                "  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n",
                truth(full), truth(s->optimizer.offload == HB_PLACE_PINNED_HOST));
}

static const char *optimizer(const struct hb_optim *o)
{
    bool small = o->moment_count && o->moments[0] == HB_DT_Q8;
    switch (o->name) {
    case HB_OPT_SGD:
    case HB_OPT_MOMENTUM:
        return "sgd";
    case HB_OPT_LION:
        return small ? "lion_8bit" : "lion_32bit";
    case HB_OPT_ADAFACTOR:
        return "adafactor";
    case HB_OPT_ADAMW:
    case HB_OPT_MUON:
        break;
    }
    return small ? "adamw_bnb_8bit" : "adamw_torch_fused";
}

/* As import has it (norms_are_llamas). */
static bool writes_norms(const struct hb_model *m)
{
    for (int i = 0; i < m->block_count; i++) {
        const struct hb_block *b = &m->blocks[i];
        if (b->norm != HB_NORM_RMS || b->post_norm || b->mlp.kind == HB_MLP_GEGLU ||
            b->attention.sinks)
            return false;
    }
    return !strstr(m->name, "olmo");
}

void hb_emit_trainer_norms(struct hb_spec *s)
{
    if (!s->runtime.fused_norm && !s->runtime.compile && !s->precision.master)
        s->runtime.written_norm = writes_norms(&s->model);
}

void hb_emit_trainer(struct hb_str *out, const struct hb_spec *s, const char *data_dir)
{
    struct hb_hosts hosts = hb_hosts_of(out->arena, s, data_dir);
    hb_str_addf(out,
                "# accelerate launch --num_processes %" PRId64 " --num_machines %" PRId64
                " train.py --config this.yaml\n",
                s->hardware.count, hosts.count);
    const char *name = hb_hub_name(out->arena, &s->model, data_dir);
    hb_str_addf(out, "model_name_or_path: %s  # %s\nattn_implementation: %s\n",
                name ? name : s->model.name,
                name ? "or where it lies" : "put here where its config.json is",
                s->model.blocks[0].attention.kernel == HB_KERNEL_NAIVE ? "eager" : "sdpa");
    hb_str_addf(out,
                "max_length: %" PRId64 "\nper_device_train_batch_size: %" PRId64
                "\ngradient_accumulation_steps: %" PRId64 "\n",
                s->batch.seq, hb_rank_batch(s), s->batch.accumulate);
    bool full = s->model.blocks[0].remat.policy == HB_POLICY_FULL;
    hb_str_addf(out, "gradient_checkpointing: %s\nbf16: %s\nfp16: %s\noptim: %s\n", truth(full),
                truth(s->precision.compute == HB_DT_BF16), truth(s->precision.compute == HB_DT_F16),
                optimizer(&s->optimizer));
    hb_str_addf(out, "max_grad_norm: %s\ntorch_compile: %s\nuse_liger_kernel: %s\n",
                s->optimizer.clip ? "1.0" : "0.0", truth(s->runtime.compile),
                truth(s->loss.kernel == HB_LOSS_LINEAR));
    if (is_zero(s))
        emit_zero(out, s);
    else
        emit_fsdp(out, s);
}
