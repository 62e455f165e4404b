/* What MaxText's keys say of the run: see maxtext.h. How each shows in memory was read off
 * MaxText's own step, compiled (tests/golden/maxtext.jsonl); the test reads those configurations
 * back. */
#include "models/import/maxtext.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "models/maxtext.h"
#include "models/spec_names.h"

/* Keys without influence on the memory of a step; a '*' stands for the rest of a name. */
static const char *const quiet[] = {"base_config",
                                    "run_name",
                                    "override_*",
                                    "normalization_layer_epsilon",
                                    "load_*",
                                    "lora_*",
                                    "hf_*",
                                    "enable_*",
                                    "save_*",
                                    "async_checkpointing",
                                    "checkpoint*",
                                    "max_num_checkpoints_to_keep",
                                    "force_unroll",
                                    "colocated_*",
                                    "source_checkpoint_layout",
                                    "reuse_example_batch",
                                    "metrics_file",
                                    "gcs_metrics",
                                    "wandb_*",
                                    "constant_bound_config",
                                    "matmul_precision",
                                    "replicate_quant_scale",
                                    "quant_cfg_path",
                                    "kv_quant_*",
                                    "quantize_kvcache",
                                    "model_call_mode",
                                    "use_qwix_quantization",
                                    "*_quantization_calibration_method",
                                    "weight_quantization*",
                                    "act_quantization*",
                                    "bwd_quantization*",
                                    "quantization_local_shard_count",
                                    "weight_sparsity_*",
                                    "dense_init_scale",
                                    "normalize_embedding_logits",
                                    "mla_*",
                                    "mtp_*",
                                    "load_balance_loss_weight",
                                    "use_random_routing",
                                    "use_custom_sort_vjp",
                                    "ragged_gather_*",
                                    "wi_tile_*",
                                    "wo_tile_*",
                                    "norm_topk_prob",
                                    "routed_*",
                                    "n_routing_groups",
                                    "topk_routing_group",
                                    "inhomogeneous_layer_cycle_interval",
                                    "rope_*",
                                    "record_internal_nn_metrics",
                                    "base_output_directory",
                                    "multi_tier_*",
                                    "mtc_*",
                                    "local_checkpoint*",
                                    "jax_*",
                                    "internal_compile*",
                                    "compile_xla_flags",
                                    "mesh_axes",
                                    "data_sharding",
                                    "input_data_sharding_logical_axes",
                                    "context_sharding",
                                    "ulysses_context_sharding",
                                    "custom_mesh_and_rule_for_eval",
                                    "logical_axis_rules_for_eval",
                                    "sharding_tolerance",
                                    "check_vma",
                                    "num_slices",
                                    "tokenizer*",
                                    "use_chat_template",
                                    "chat_template*",
                                    "tokenize_*",
                                    "add_bos",
                                    "add_eos",
                                    "use_truncation",
                                    "expansion_factor_real_data",
                                    "eval_*",
                                    "max_corpus_chars",
                                    "train_*",
                                    "default_prompt",
                                    "packing",
                                    "num_epoch",
                                    "generate_padding_*",
                                    "max_segments_per_seq",
                                    "per_device_batch_size_*",
                                    "global_rampup_samples",
                                    "dataset_*",
                                    "grain_*",
                                    "olmo_*",
                                    "steps",
                                    "log_period",
                                    "max_inflight_computations",
                                    "training_objective",
                                    "block_diffusion_*",
                                    "skip_*",
                                    "learning_rate*",
                                    "lr_schedule_type",
                                    "wsd_*",
                                    "warmup_*",
                                    "max_prefill_predict_length",
                                    "prompt",
                                    "prefill_*",
                                    "autoregressive_*",
                                    "profile*",
                                    "upload_all_*",
                                    "hide_profiler_*",
                                    "tpu_*",
                                    "managed_*",
                                    "dump_*",
                                    "data_shuffle_seed",
                                    "init_weights_seed",
                                    "diloco_*",
                                    "dcn_bandwidth_*",
                                    "num_diloco_fragments",
                                    "use_sequential_layers",
                                    "num_communication_*",
                                    "communication_*",
                                    "trainable_parameters_mask",
                                    "adam_*",
                                    "adamw_mask",
                                    "muon_*",
                                    "use_untrainable_*",
                                    "local_rope_*",
                                    "global_rope_*",
                                    "max_position_embeddings",
                                    "original_max_position_embeddings",
                                    "beta_*",
                                    "mscale",
                                    "compiled_trainstep_file",
                                    "write_estimator_result",
                                    "decode_*",
                                    "target_eval_loss",
                                    "abort_on_*",
                                    "monitor_*",
                                    "goodput_*",
                                    "step_deviation_*",
                                    "report_*",
                                    "heartbeat_*",
                                    "use_vertex_*",
                                    "vertex_*",
                                    "max_checkify",
                                    "inference_*",
                                    "generate_slice",
                                    "multi_sampling",
                                    "return_log_prob",
                                    "stack_prefill_*",
                                    "ar_cache_*",
                                    "compute_axis_order",
                                    "reshape_q",
                                    "prometheus_port",
                                    "xprof_*",
                                    "log_config",
                                    "debug_sharding",
                                    "custom_mesh",
                                    "allow_split_physical_axes",
                                    "optimize_mesh_for_tpu_v6e",
                                    "shardy",
                                    "remove_size_one_*",
                                    "use_ragged_attention",
                                    "ragged_block_size",
                                    "sa_*",
                                    "local_sa_*",
                                    "use_splash_scheduler",
                                    "local_use_splash_scheduler",
                                    "ring_scan_unroll",
                                    "temperature_tuning",
                                    "nope_layer_interval",
                                    "vision_encoder_block",
                                    "*_for_vit",
                                    "image_*",
                                    "conv_stride_for_vit",
                                    "num_channels_for_vit",
                                    "patch_size_for_vit",
                                    "hidden_size_for_vit",
                                    "intermediate_size_for_vit",
                                    "freeze_*",
                                    "num_hidden_layers_for_vit",
                                    "num_attention_heads_for_vit",
                                    "scan_pipeline_repeats",
                                    "use_dpo",
                                    "dpo_*",
                                    "use_sft",
                                    "sft_*",
                                    "indexer_*",
                                    "moba_*",
                                    "vocab_tiling_ag_once",
                                    "z_loss_multiplier",
                                    "mlp_activations_limit",
                                    "v_norm_with_scale",
                                    "qk_norm_with_scale",
                                    "hardware",
                                    "shard_mode",
                                    "cast_*",
                                    "use_multimodal",
                                    "elastic_*",
                                    "goodput",
                                    "jax_distributed_*",
                                    "base_*",
                                    "vocab_size",
                                    "head_dim",
                                    "decoder_block",
                                    "mlp_activations",
                                    "logits_via_embedding",
                                    "trainable_position_size",
                                    "attention_bias",
                                    "use_qk_norm",
                                    "fused_qkv",
                                    "num_experts*",
                                    "shared_experts",
                                    "first_num_dense_layers",
                                    "interleave_moe_layer_step",
                                    "sliding_window_size",
                                    "kv_lora_rank",
                                    "q_lora_rank",
                                    "qk_nope_head_dim",
                                    "qk_rope_head_dim",
                                    "v_head_dim",
                                    "use_post_*",
                                    "chunk_attn_window_size",
                                    "attention_type",
                                    "attention_sink",
                                    "mlp_bias",
                                    "dropout_rate",
                                    NULL};

static bool word_in(const char *word, const char *first, const char *second)
{
    return hb_str_same(word, first) || hb_str_same(word, second);
}

/* ---- types */

static const char *type_of(struct hb_foreign *f, const struct hb_node *c, const char *key,
                           const char *absent)
{
    const char *text = hb_take_text(f, c, key, "");
    if (!text[0])
        return absent;
    if (word_in(text, "bfloat16", "bf16"))
        return "bf16";
    if (word_in(text, "float16", "f16"))
        return "f16";
    if (!word_in(text, "float32", "f32"))
        hb_missing(f, "%s: %s", key, text);
    return "f32";
}

static void put_precision(struct hb_foreign *f, const struct hb_node *c)
{
    const char *params = type_of(f, c, "weight_dtype", "f32");
    const char *grads = type_of(f, c, "grad_dtype", "f32");
    hb_put(f, "precision.params", params);
    hb_put(f, "precision.compute", type_of(f, c, "dtype", "bf16"));
    if (!hb_str_same(grads, params) && !hb_str_same(params, "bf16"))
        hb_put(f, "precision.grads", grads);
    const char *quant = hb_take_text(f, c, "quantization", "");
    const char *method = hb_take_text(f, c, "weight_quantization_calibration_method", "absmax");
    bool rows = hb_str_same(quant, "fp8_full") && strncmp(method, "fixed", 5) != 0;
    if (strstr(quant, "fp8"))
        hb_put(f, "precision.fp8", rows ? "rowwise" : "tensorwise");
    else if (quant[0])
        hb_missing(f, "quantization: %s", quant);
    if (hb_take_bool(f, c, "activations_in_float32", false)) {
        hb_put_in_blocks(f, "mlp", "act_dtype", "f32");
        hb_put_in_blocks(f, "moe", "act_dtype", "f32");
    }
}

static void put_optimizer(struct hb_foreign *f, const struct hb_node *c)
{
    const char *type = hb_take_text(f, c, "opt_type", "adamw");
    bool sgd = hb_str_same(type, "sgd");
    bool muon = hb_str_same(type, "muon");
    const char *params = type_of(f, c, "weight_dtype", "f32");
    const char *moments[2] = {type_of(f, c, "mu_dtype", params), params};
    if (!sgd && !muon && !word_in(type, "adamw", "adam_pax"))
        hb_missing(f, "opt_type: %s; adamw's states are counted", type);
    hb_put(f, "optimizer.name", sgd || muon ? type : "adamw");
    hb_put_words(f, "optimizer.moments", moments, sgd ? 0 : muon ? 1 : 2);
    hb_put_bool(f, "optimizer.clip", hb_take_real(f, c, "gradient_clipping_threshold", 1) > 0);
    if (hb_take_bool(f, c, "optimizer_memory_host_offload", false))
        hb_put(f, "optimizer.offload", "pinned_host");
    if (hb_take_bool(f, c, "parameter_memory_host_offload", false))
        hb_put(f, "optimizer.params_offload", "pinned_host");
}

/* ---- device and mesh */

/* "v5p-128": which device, and how many. v4 and v5p are counted in cores, two a chip and device;
 * tpu7x, too, of which each core is a device. */
static int64_t put_device(struct hb_foreign *f, const struct hb_node *c)
{
    static const struct {
        const char *prefix;
        const char *device;
        int cores;
    } known[] = {{"v5p-", "tpu-v5p", 2}, {"v5e-", "tpu-v5e", 1},       {"v6e-", "tpu-v6e", 1},
                 {"v4-", "tpu-v4", 2},   {"v5litepod-", "tpu-v5e", 1}, {"a3", "nvidia-h100", 1},
                 {"tpu7x-", "tpu-v7", 1}};
    const char *topology = hb_take_text(f, c, "compile_topology", "");
    int64_t slices = hb_take_int(f, c, "compile_topology_num_slices|num_slices", 1);
    for (size_t i = 0; topology[0] && i < sizeof known / sizeof known[0]; i++) {
        double count = 0;
        size_t len = strlen(known[i].prefix);
        struct hb_node number = {.kind = HB_NODE_SCALAR, .text = topology + len};
        if (strncmp(topology, known[i].prefix, len) != 0)
            continue;
        hb_put(f, "hardware.device", known[i].device);
        if (!hb_number(&number, &count) || count < 1)
            return 0;
        return hb_mul_sat(hb_clipped(count) / known[i].cores, slices > 0 ? slices : 1);
    }
    if (topology[0])
        hb_missing(f, "compile_topology: %s; tpu-v5p is taken", topology);
    bool gpu = strstr(hb_take_text(f, c, "hardware", "tpu"), "gpu") != NULL;
    hb_put(f, "hardware.device", gpu ? "nvidia-h100" : "tpu-v5p");
    hb_assume(f, "hardware.device %s: no compile_topology says which",
              gpu ? "nvidia-h100" : "tpu-v5p");
    return 0;
}

/* An axis of MaxText's mesh: the product of its parts within and between slices; -1: what is left.
 */
struct axis {
    const char *name;
    enum hb_axis ours;
};
static const struct axis axes[] = {{"data", HB_AX_DATA},
                                   {"fsdp", HB_AX_FSDP},
                                   {"fsdp_transpose", HB_AX_FSDP},
                                   {"tensor", HB_AX_TENSOR},
                                   {"tensor_sequence", HB_AX_TENSOR},
                                   {"tensor_transpose", HB_AX_TENSOR},
                                   {"context", HB_AX_SEQUENCE},
                                   {"context_usp_ulysses", HB_AX_SEQUENCE},
                                   {"sequence", HB_AX_SEQUENCE},
                                   {"expert", HB_AX_EXPERT},
                                   {"pipeline", HB_AX_PIPELINE}};
enum { AXES = sizeof axes / sizeof axes[0] };

/* Sizes of axes of one level ("ici", "dcn"); which of them is left open, or -1. */
static int take_level(struct hb_foreign *f, const struct hb_node *c, const char *level,
                      int64_t *sizes)
{
    int open = -1;
    for (int i = 0; i < AXES; i++) {
        const char *key = hb_arena_printf(f->arena, "%s_%s_parallelism", level, axes[i].name);
        bool dcn = level[0] == 'd';
        bool filled = dcn ? axes[i].ours == HB_AX_DATA
                          : i == 1; /* base.yml: dcn data and ici fsdp take what is left */
        sizes[i] = hb_take_int(f, c, key, filled ? -1 : 1);
        if (sizes[i] == -1)
            open = i;
        else if (sizes[i] < 1)
            hb_error(f->diag, c->loc, "%s: %" PRId64 "; allowed: -1, or 1 and more", key, sizes[i]);
    }
    return open;
}

static int64_t product(const int64_t *sizes)
{
    int64_t all = 1;
    for (int i = 0; i < AXES; i++)
        all = hb_mul_sat(all, sizes[i] > 0 ? sizes[i] : 1);
    return all;
}

/* What -1 stands for: all slices, and the devices of one. */
static int64_t fill_axes(struct hb_foreign *f, const struct hb_node *c, int64_t devices,
                         int64_t *all)
{
    enum { FEW = 8 };
    int64_t ici[AXES];
    int64_t dcn[AXES];
    int open_ici = take_level(f, c, "ici", ici);
    int open_dcn = take_level(f, c, "dcn", dcn);
    int64_t slices = hb_take_int(f, c, "compile_topology_num_slices|num_slices", -1);
    int64_t between = product(dcn);
    if (open_dcn >= 0)
        dcn[open_dcn] = slices > between ? slices / between : 1;
    between = product(dcn);
    int64_t within = product(ici);
    if (!devices) {
        devices = hb_mul_sat(between, open_ici >= 0 && within < FEW ? FEW : within);
        if (open_ici >= 0)
            hb_assume(f,
                      "%" PRId64 " devices: no compile_topology says how many; "
                      "compile_topology=v5p-128 does",
                      devices);
    }
    if (open_ici >= 0)
        ici[open_ici] =
            devices / hb_mul_sat(between, within) > 0 ? devices / hb_mul_sat(between, within) : 1;
    for (int i = 0; i < AXES; i++)
        all[i] = hb_mul_sat(ici[i], dcn[i]);
    return devices;
}

static void put_context(struct hb_foreign *f, const struct hb_node *c)
{
    const char *how = hb_take_text(f, c, "context_parallel_strategy", "all_gather");
    bool ring = hb_str_same(how, "ring");
    bool gather = hb_str_same(how, "all_gather");
    hb_put_bool(f, "sharding.states_over_sequence", true);
    hb_put(f, "sharding.sequence_kind", ring ? "ring" : gather ? "all_gather" : "all_to_all");
    hb_put_bool(f, "sharding.sequence_balance",
                hb_take_bool(f, c, "context_parallel_load_balance", true));
}

/* Whether a rule gives weights of norms to fsdp, as those of Llama 2's files do. */
static bool norms_over_fsdp(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *rules = hb_take(f, c, "logical_axis_rules");
    for (const struct hb_node *r = rules ? rules->first : NULL; r; r = r->next) {
        const struct hb_node *what = hb_node_at(r, 0);
        const struct hb_node *over = hb_node_at(r, 1);
        if (what && over && what->kind == HB_NODE_SCALAR && hb_str_same(what->text, "norm"))
            return over->kind == HB_NODE_SCALAR && hb_str_same(over->text, "fsdp");
    }
    return !rules && strncmp(hb_take_text(f, c, "model_name", ""), "llama2", 6) == 0;
}

/* Its router is not split over experts. */
static bool is_deepseek(struct hb_foreign *f, const struct hb_node *c)
{
    const char *model = hb_take_text(f, c, "model_name", "");
    return hb_str_same(hb_take_text(f, c, "decoder_block", ""), "deepseek") ||
           hb_str_starts(model, "deepseek") || hb_str_starts(model, "kimi");
}

static int64_t put_mesh(struct hb_foreign *f, const struct hb_node *c)
{
    static const char *const ours[] = {"mesh.data",     "mesh.fsdp",   "mesh.tensor",
                                       "mesh.sequence", "mesh.expert", "mesh.pipeline"};
    int64_t all[AXES];
    int64_t mesh[HB_AX_COUNT] = {1, 1, 1, 1, 1, 1};
    int64_t devices = fill_axes(f, c, put_device(f, c), all);
    for (int i = 0; i < AXES; i++)
        mesh[axes[i].ours] = hb_mul_sat(mesh[axes[i].ours], all[i]);
    for (int a = 0; a < HB_AX_COUNT; a++)
        hb_put_int(f, ours[a], mesh[a]);
    hb_put_int(f, "hardware.count", devices);
    if (all[2] > 1)
        hb_assume(f, "fsdp_transpose counts as fsdp: as many bytes of each weight, of its other "
                     "side");
    if (mesh[HB_AX_SEQUENCE] > 1)
        put_context(f, c);
    if (mesh[HB_AX_TENSOR] > 1) {
        hb_put_bool(f, "sharding.residual_over_tensor", true);
        hb_put(f, "sharding.residual_split", all[4] > 1 ? "sequence" : "features");
    }
    if (mesh[HB_AX_EXPERT] > 1)
        hb_put_bool(f, "sharding.dense_over_expert", true);
    if (mesh[HB_AX_EXPERT] > 1 && is_deepseek(f, c))
        hb_put_bool(f, "sharding.router_over_expert", false);
    if (mesh[HB_AX_EXPERT] > 1 && hb_take_bool(f, c, "shard_exp_on_fsdp", false))
        hb_missing(f, "shard_exp_on_fsdp: true");
    hb_put(f, "sharding.norms", norms_over_fsdp(f, c) ? "fsdp" : "tensor");
    if (hb_take_bool(f, c, "shard_optimizer_over_data", false))
        hb_put_bool(f, "sharding.optimizer_over_data", true);
    return devices;
}

/* ---- batch, loss, layers */

static void put_batch(struct hb_foreign *f, const struct hb_node *c, int64_t devices)
{
    double each = hb_take_real(f, c, "per_device_batch_size", 12);
    int64_t accumulate = hb_take_int(f, c, "gradient_accumulation_steps", 1);
    double global = each * (double)devices * (double)accumulate;
    if (!(global >= 1) || global > 0x1p40)
        hb_error(f->diag, c->loc,
                 "per_device_batch_size: %g on %" PRId64 " devices; allowed: at "
                 "least one sequence a step",
                 each, devices);
    else
        hb_put_int(f, "batch.global", hb_clipped(global + 0.5));
    hb_put_int(f, "batch.seq", hb_take_int(f, c, "max_target_length", 2048));
    hb_put_int(f, "batch.accumulate", accumulate);
}

static void put_loss(struct hb_foreign *f, const struct hb_node *c)
{
    int64_t tiles = hb_take_int(f, c, "num_vocab_tiling", 1);
    hb_put_int(f, "loss.chunks", tiles);
    if (tiles > 1)
        hb_put(f, "loss.chunk_over", "tokens");
    hb_put(f, "loss.dot", hb_take_bool(f, c, "logits_dot_in_fp32", false) ? "f32" : "bf16");
    hb_put(f, "loss.softmax", hb_take_bool(f, c, "cast_logits_to_fp32", true) ? "f32" : "bf16");
    hb_put_bool(f, "loss.onehot", true);
    double cap = hb_take_real(f, c, "final_logits_soft_cap", 0);
    if (cap > 0)
        hb_put_real(f, "loss.softcap", cap);
    if (hb_take_bool(f, c, "use_iota_embed", false))
        hb_put(f, "embedding.lookup", "onehot");
}

/* Of the fused backward kernel: one for each block of keys, 512 where nothing is set; of more than
 * three, tokamax's dq_reduction_steps=3 leaves three (splash_attention_kernel.py, dq_shape). */
static void put_dq_parts(struct hb_foreign *f, const struct hb_node *c, bool tokamax)
{
    int64_t seq = hb_take_int(f, c, "max_target_length", 2048);
    int64_t block = hb_take_int(f, c, "sa_block_kv_dkv", 512);
    int64_t steps = hb_take_int(f, c, "dq_reduction_steps", 0);
    int64_t parts = block > 0 && seq > 0 ? hb_div_up(seq, block) : 0;
    if (tokamax && steps == 3 && parts > 3)
        hb_put_in_blocks(f, "attention", "dq_parts", "3");
    else if (block != 512 && parts)
        hb_put_in_blocks(f, "attention", "dq_parts", hb_arena_printf(f->arena, "%" PRId64, parts));
}

static void put_kernels(struct hb_foreign *f, const struct hb_node *c)
{
    const char *kind = hb_take_text(f, c, "attention", "autoselected");
    if (hb_str_same(kind, "dot_product")) {
        hb_put_in_blocks(f, "attention", "kernel", "naive");
        bool wide = hb_take_bool(f, c, "float32_logits", false);
        hb_put_in_blocks(f, "attention", "softmax",
                         wide || hb_take_bool(f, c, "float32_qk_product", false) ? "f32" : "bf16");
    } else {
        hb_take(f, c, "float32_logits");
        hb_take(f, c, "float32_qk_product");
        if (hb_str_same(kind, "autoselected"))
            hb_assume(f, "attention: autoselected is a flash kernel");
    }
    bool tokamax = hb_take_bool(f, c, "use_tokamax_splash", false);
    bool fused = hb_take_bool(f, c, "sa_use_fused_bwd_kernel", false);
    if (tokamax)
        hb_put_in_blocks(f, "attention", "flash", "tokamax");
    if (fused)
        hb_put_in_blocks(f, "attention", "fused_backward", "true");
    if (tokamax || fused)
        put_dq_parts(f, c, tokamax);
    if (hb_take_bool(f, c, "fused_mlp", false))
        hb_put_in_blocks(f, "mlp", "fused", "true");
}

static void put_experts(struct hb_foreign *f, const struct hb_node *c)
{
    bool sparse = hb_take_bool(f, c, "sparse_matmul", true);
    double capacity = hb_take_real(f, c, "capacity_factor", -1);
    bool megablox = hb_take_bool(f, c, "megablox", true);
    bool tokamax = hb_take_bool(f, c, "use_tokamax_gmm", false);
    double buffer = hb_take_real(f, c, "ragged_buffer_factor", -1);
    bool gate = hb_take_bool(f, c, "float32_gate_logits", false);
    bool sum = hb_take_bool(f, c, "float32_weight_sum", true);
    if (sparse && (!megablox || tokamax))
        hb_put_in_blocks(f, "moe", "kernel", tokamax ? "tokamax" : "ragged_dot");
    hb_put_in_blocks(f, "moe", "dispatch", sparse ? "ragged" : capacity > 0 ? "einsum" : "dense");
    if (!sparse && capacity > 0)
        hb_put_in_blocks(f, "moe", "capacity_factor", hb_arena_printf(f->arena, "%.10g", capacity));
    if (sparse && buffer > 0)
        hb_put_in_blocks(f, "moe", "buffer_factor", hb_arena_printf(f->arena, "%.10g", buffer));
    hb_put_in_blocks(f, "moe", "router_dtype", gate ? "f32" : "bf16");
    hb_put_in_blocks(f, "moe", "weight_sum", sum ? "f32" : "compute");
}

/* ---- what layers keep */

static uint32_t model_has(struct hb_foreign *f, bool *out_dense, bool *out_experts)
{
    const struct hb_node *b = hb_node_find(hb_node_find(f->out->root, "model"), "blocks")->first;
    uint32_t has = 0;
    for (; b; b = b->next) {
        const struct hb_node *moe = hb_node_find(b, "moe");
        const struct hb_node *attention = hb_node_find(b, "attention");
        const struct hb_node *kind = hb_node_find(attention, "kind");
        struct hb_block block = {.moe.experts = moe != NULL};
        block.moe.shared_experts = hb_node_find(moe, "shared_experts") != NULL;
        block.attention.fused_qkv = hb_node_find(attention, "fused_qkv") != NULL;
        block.attention.kind = kind && hb_str_same(kind->text, "mla") ? HB_ATTN_MLA : HB_ATTN_GQA;
        *(moe ? out_experts : out_dense) = true;
        has |= hb_maxtext_has(&block);
    }
    return has;
}

static void put_tensors(struct hb_foreign *f, const char *path, uint32_t mask)
{
    const char *list[HB_TN_COUNT];
    int count = 0;
    for (int t = 0; t < HB_TN_COUNT; t++)
        if (mask >> t & 1)
            list[count++] = hb_tensor_names[t];
    hb_put_words(f, path, list, count);
}

/* `custom`: a place for each tensor. */
static void put_custom(struct hb_foreign *f, const struct hb_node *c)
{
    bool dense = false;
    bool experts = false;
    uint32_t has = model_has(f, &dense, &experts);
    uint32_t save = 0;
    uint32_t offload = 0;
    for (int t = 0; t < HB_MAXTEXT_TENSORS; t++) {
        const struct hb_maxtext_tensor *tensor = &hb_maxtext_tensors[t];
        const char *keys[] = {tensor->key, NULL};
        uint32_t bits = hb_maxtext_mask(keys, dense, experts) & has;
        const char *place = hb_take_text(f, c, tensor->key, t ? "remat" : "device");
        bool kept = !hb_str_same(place, "remat");
        if (kept && !tensor->dense && !tensor->experts)
            hb_missing(f, "%s: %s; no tensor here", tensor->key, place);
        if (hb_str_same(place, "offload"))
            offload |= bits;
        else if (kept)
            save |= bits;
    }
    hb_put(f, "remat.policy", "names");
    put_tensors(f, "remat.save", save & ~offload);
    put_tensors(f, "remat.offload", offload);
}

static bool put_remat(struct hb_foreign *f, const struct hb_node *c)
{
    const char *name = hb_take_text(f, c, "remat_policy", "full");
    const struct hb_maxtext_policy *p = hb_maxtext_policy(name);
    bool dense = false;
    bool experts = false;
    uint32_t has = model_has(f, &dense, &experts);
    if (hb_str_same(name, "custom")) {
        put_custom(f, c);
        return true;
    }
    for (int t = 0; t < HB_MAXTEXT_TENSORS; t++)
        hb_take(f, c, hb_maxtext_tensors[t].key);
    if (!p) {
        const char *known[HB_MAXTEXT_POLICIES + 2] = {"custom"};
        for (int i = 0; i < HB_MAXTEXT_POLICIES; i++)
            known[i + 1] = hb_maxtext_policies[i].name;
        const char *near = hb_str_nearest(name, known);
        return hb_error(f->diag, hb_node_find(c, "remat_policy")->loc,
                        "remat_policy: MaxText has no '%s'%s%s", name,
                        near ? "; did you mean " : "", near ? near : "");
    }
    hb_put(f, "remat.policy",
           p->policy == HB_POLICY_FULL   ? "full"
           : p->policy == HB_POLICY_NONE ? "none"
                                         : "names");
    if (p->policy == HB_POLICY_NAMES) {
        put_tensors(f, "remat.save", hb_maxtext_mask(p->save, dense, experts) & has);
        put_tensors(f, "remat.offload", hb_maxtext_mask(p->offload, dense, experts) & has);
    }
    if (strstr(name, "quantization"))
        hb_missing(f, "remat_policy: %s also keeps what is quantised", name);
    return true;
}

/* ---- stack and pipeline */

static int64_t count_layers(struct hb_foreign *f)
{
    const struct hb_node *b = hb_node_find(hb_node_find(f->out->root, "model"), "blocks")->first;
    int64_t layers = 0;
    for (; b; b = b->next) {
        int64_t repeat = 0;
        if (hb_node_int(hb_node_find(b, "repeat"), &repeat))
            layers += repeat;
    }
    return layers;
}

static void put_pipeline(struct hb_foreign *f, const struct hb_node *c, int64_t stages)
{
    int64_t each = hb_take_int(f, c, "num_layers_per_pipeline_stage", 1);
    int64_t repeats = hb_take_int(f, c, "num_pipeline_repeats", -1);
    int64_t parts = hb_take_int(f, c, "num_pipeline_microbatches", -1);
    bool once = hb_take_bool(f, c, "pipeline_fsdp_ag_once", false);
    bool repeat = hb_take_bool(f, c, "pipeline_fsdp_ag_per_repeat", false);
    static const char *const kept[] = {"layer_in"};
    if (repeats < 1)
        repeats = each > 0 ? count_layers(f) / (each * stages) : 1;
    hb_put_int(f, "pipeline.microbatches", parts > 0 ? parts : stages);
    hb_put_int(f, "pipeline.repeats", repeats > 0 ? repeats : 1);
    hb_put(f, "pipeline.shift", "shard_map");
    hb_put(f, "pipeline.constraints", "all");
    hb_put(f, "pipeline.outputs", "buffer");
    hb_put_words(f, "pipeline.iteration_save", kept, 1);
    hb_put_bool(f, "pipeline.remat_iteration",
                hb_take_bool(f, c, "set_remat_policy_on_pipeline_iterations", true));
    hb_put_bool(f, "pipeline.remat_layer",
                hb_take_bool(f, c, "set_remat_policy_on_layers_per_stage", false));
    if (once || repeat)
        hb_put(f, "pipeline.gather", once ? "once" : "repeat");
    if (hb_take_bool(f, c, "pipeline_delay_activation_forwarding", false))
        hb_put_bool(f, "pipeline.delay", true);
    if (!hb_take_bool(f, c, "scan_pipeline_iterations", true))
        hb_put_bool(f, "pipeline.unroll", true);
    hb_put_bool(f, "sharding.ends_over_pipeline", true);
    bool scan = hb_take_bool(f, c, "scan_layers_per_stage", false) || each == 1;
    hb_put(f, "stack.form", scan ? "scan" : "loop");
    int64_t piped = hb_take_int(f, c, "pipeline_parallel_layers", -1);
    if (piped > 0 && piped != count_layers(f))
        hb_missing(f, "pipeline_parallel_layers: %" PRId64 "; all layers are in the pipeline",
                   piped);
}

static void put_stack(struct hb_foreign *f, const struct hb_node *c)
{
    bool scan = hb_take_bool(f, c, "scan_layers", true);
    int64_t axis = hb_take_int(f, c, "param_scan_axis", 1);
    const struct hb_node *stages = hb_node_find(hb_node_find(f->out->root, "mesh"), "pipeline");
    int64_t count = 1;
    hb_node_int(stages, &count);
    if (count > 1) {
        put_pipeline(f, c, count);
        return;
    }
    static const char *const idle[] = {"num_layers_per_pipeline_stage",
                                       "num_pipeline_repeats",
                                       "num_pipeline_microbatches",
                                       "pipeline_fsdp_ag_once",
                                       "pipeline_fsdp_ag_per_repeat",
                                       "scan_pipeline_iterations",
                                       "set_remat_policy_on_pipeline_iterations",
                                       "set_remat_policy_on_layers_per_stage",
                                       "scan_layers_per_stage",
                                       "pipeline_parallel_layers",
                                       "pipeline_delay_activation_forwarding"};
    for (size_t i = 0; i < sizeof idle / sizeof idle[0]; i++)
        hb_take(f, c, idle[i]);
    hb_put(f, "stack.form", scan ? "scan" : "loop");
    if (scan)
        hb_put_int(f, "stack.axis", axis);
}

/* Keys whose value turns on something that is not simulated; at their usual value they are quiet.
 */
static void tell_switches(struct hb_foreign *f, const struct hb_node *c)
{
    for (const struct hb_node *n = c->first; n; n = n->next) {
        bool off = n->kind != HB_NODE_SCALAR || hb_str_same(n->text, "false") ||
                   hb_str_same(n->text, "False") || hb_str_same(n->text, "-1") ||
                   hb_str_same(n->text, "-1.0") || hb_str_same(n->text, "0") ||
                   hb_str_same(n->text, "0.0") || hb_str_same(n->text, "1") || !n->text[0] ||
                   hb_str_same(n->text, "disabled");
        if (off && n->key && !hb_node_find(f->said, n->key))
            hb_quiet(f, n);
    }
}

bool hb_maxtext_run(struct hb_foreign *f, const struct hb_node *c)
{
    put_precision(f, c);
    int64_t devices = put_mesh(f, c);
    put_batch(f, c, devices);
    put_optimizer(f, c);
    put_loss(f, c);
    put_kernels(f, c);
    put_experts(f, c);
    put_stack(f, c);
    if (!put_remat(f, c))
        return false;
    tell_switches(f, c);
    hb_tell_rest(f, c, "", quiet);
    return true;
}
