/* The knobs in the frameworks' words: see knob.h. Names of options as they stand in public sources
 * and run scripts of 2025 and 2026: MaxText's configs/types.py, levanter's TrainerConfig and
 * LmConfig, torchtitan's JobConfig, Megatron-LM's and DeepSpeed's arguments, torchtune's recipes,
 * jax's and torch's documentation. */
#include "sim/hlo/knob.h"

#include <stdbool.h>
#include <stddef.h>

#define ROW(knob, framework) HB_KNOB_##knob, HB_FW_LOG_##framework

static const struct {
    enum hb_knob knob;
    enum hb_log_framework framework;
    const char *words;
} rows[] = {
    {ROW(FLASH, MAXTEXT), "attention: flash"},
    {ROW(FLASH, MEGATRON), "--attention-backend flash"},
    {ROW(FLASH, JAX), "jax.nn.dot_product_attention(..., implementation='cudnn'), or the Pallas "
                      "splash attention kernel on TPU"},
    {ROW(FLASH, TORCH), "torch.nn.functional.scaled_dot_product_attention"},
    {ROW(LOSS_CHUNKS, MAXTEXT), "num_vocab_tiling: 8"},
    {ROW(LOSS_CHUNKS, LEVANTER), "cross_entropy_block_size: 2048"},
    {ROW(LOSS_CHUNKS, MEGATRON), "--cross-entropy-loss-fusion"},
    {ROW(LOSS_CHUNKS, TORCHTITAN), "loss = ChunkedLossWrapper.Config(num_chunks=8)"},
    {ROW(LOSS_CHUNKS, TORCHTUNE), "loss: torchtune.modules.loss.LinearCrossEntropyLoss"},
    {ROW(LOSS_CHUNKS, JAX), "jax.lax.map over chunks of the sequence, each under jax.checkpoint"},
    {ROW(LOSS_CHUNKS, TORCH), "a fused linear cross-entropy, or the loss over hidden.chunk(8, "
                              "dim=1) under torch.utils.checkpoint"},
    {ROW(ONEHOT, JAX), "jnp.take_along_axis(logprobs, labels[..., None], -1)"},
    {ROW(REMAT, MAXTEXT), "remat_policy: full"},
    {ROW(REMAT, LEVANTER), "gradient_checkpointing: true"},
    {ROW(REMAT, TORCHTITAN), "activation_checkpoint.mode = \"full\""},
    {ROW(REMAT, MEGATRON),
     "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"},
    {ROW(REMAT, DEEPSPEED), "model.gradient_checkpointing_enable()"},
    {ROW(REMAT, TORCHTUNE), "enable_activation_checkpointing=True"},
    {ROW(REMAT, JAX), "jax.checkpoint around a layer (with jax.lax.scan over layers)"},
    {ROW(REMAT, TORCH), "torch.utils.checkpoint.checkpoint around a layer"},
    {ROW(BATCH, MAXTEXT), "per_device_batch_size: half of it, gradient_accumulation_steps: 2"},
    {ROW(BATCH, LEVANTER), "trainer.per_device_parallelism: half of it"},
    {ROW(BATCH, TORCHTITAN), "training.local_batch_size = half of it"},
    {ROW(BATCH, MEGATRON), "--micro-batch-size half of it"},
    {ROW(BATCH, DEEPSPEED), "\"train_micro_batch_size_per_gpu\": half of it"},
    {ROW(BATCH, TORCHTUNE), "batch_size=half of it gradient_accumulation_steps=2"},
    {ROW(BATCH, JAX), "optax.MultiSteps, or a jax.lax.scan over microbatches"},
    {ROW(BATCH, TORCH), "backward() on half the batch twice before step()"},
    {ROW(SEQUENCE, MAXTEXT), "ici_context_parallelism: 2"},
    {ROW(SEQUENCE, TORCHTITAN), "parallelism.context_parallel_degree = 2"},
    {ROW(SEQUENCE, MEGATRON),
     "--context-parallel-size 2 (and --sequence-parallel with tensor parallelism)"},
    {ROW(SEQUENCE, JAX), "a mesh axis for the sequence in the activations' sharding"},
    {ROW(FSDP, MAXTEXT), "ici_fsdp_parallelism: -1"},
    {ROW(FSDP, LEVANTER), "trainer.fsdp_axis: embed (newer: trainer.mesh.param_mapping)"},
    {ROW(FSDP, TORCHTITAN), "parallelism.data_parallel_shard_degree = -1"},
    {ROW(FSDP, MEGATRON), "--use-distributed-optimizer, or larger --tensor-model-parallel-size, "
                          "--pipeline-model-parallel-size"},
    {ROW(FSDP, DEEPSPEED), "\"zero_optimization\": {\"stage\": 3}"},
    {ROW(FSDP, TORCHTUNE), "the full_finetune_distributed recipe"},
    {ROW(FSDP, JAX), "NamedSharding with an axis for parameters and optimizer states"},
    {ROW(FSDP, TORCH), "torch.distributed.fsdp.fully_shard"},
    {ROW(OFFLOAD, MAXTEXT), "optimizer_memory_host_offload: true"},
    {ROW(OFFLOAD, TORCHTITAN), "training.enable_cpu_offload = true"},
    {ROW(OFFLOAD, MEGATRON), "--optimizer-cpu-offload"},
    {ROW(OFFLOAD, DEEPSPEED), "\"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": true}"},
    {ROW(OFFLOAD, TORCHTUNE), "fsdp_cpu_offload=True"},
    {ROW(OFFLOAD, JAX), "sharding.with_memory_kind('pinned_host') for the optimizer's states"},
    {ROW(OFFLOAD, TORCH), "fully_shard(..., offload_policy=CPUOffloadPolicy())"},
    {ROW(MOMENTS, MAXTEXT), "mu_dtype: bfloat16"},
    {ROW(MOMENTS, MEGATRON),
     "--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16"},
    {ROW(MOMENTS, JAX), "optax.adamw(..., mu_dtype=jnp.bfloat16)"},
    {ROW(MOMENTS, TORCH), "an 8-bit or bf16 optimizer (torchao, bitsandbytes)"},
    {ROW(DONATE, JAX), "jax.jit(step, donate_argnums=(0,))"},
    {ROW(EXPERTS, MAXTEXT), "sparse_matmul: true, megablox: true (or a lower capacity_factor)"},
    {ROW(EXPERTS, MEGATRON), "--moe-expert-capacity-factor, --moe-grouped-gemm"},
    {ROW(GATHER, TORCHTITAN), "parallelism.fsdp_reshard_after_forward = \"always\""},
    {ROW(GATHER, JAX), "jax.lax.scan over layers, weights sharded at its entry"},
    {ROW(GATHER, TORCH), "fully_shard(..., reshard_after_forward=True)"},
    {ROW(CALLBACK, JAX), "jax.make_array_from_callback(x.shape, sharding, lambda i: x[i]) instead "
                         "of jax.device_put(x, sharding)"},
    {ROW(SEGMENTS, TORCH), "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
                           "(PYTORCH_HIP_ALLOC_CONF on ROCm, PYTORCH_NPU_ALLOC_CONF on Ascend, "
                           "PYTORCH_ALLOC_CONF since torch 2.9)"},
    {ROW(SEGMENTS, JAX), "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"},
    {ROW(SEGMENTS, TENSORFLOW), "TF_GPU_ALLOCATOR=cuda_malloc_async"},
    {ROW(FRACTION, JAX), "XLA_PYTHON_CLIENT_MEM_FRACTION=0.92 (the default is 0.75)"},
    {ROW(SMALLER_POOL, JAX),
     "XLA_PYTHON_CLIENT_MEM_FRACTION lower, or XLA_PYTHON_CLIENT_PREALLOCATE=false"},
    {ROW(SMALLER_POOL, TORCH), "torch.cuda.set_per_process_memory_fraction(0.9), fewer process "
                               "groups, NCCL_BUFFSIZE smaller"},
    {ROW(LIMIT, TORCH), "torch.cuda.set_per_process_memory_fraction"},
    {ROW(UNREPLICATE, JAX), "jax.lax.with_sharding_constraint, and in_shardings of jax.jit"},
    {ROW(SERVER, TORCH), "vLLM: --gpu-memory-utilization 0.95, --max-model-len, "
                         "--tensor-parallel-size; SGLang: --mem-fraction-static"},
    {ROW(WEIGHTS, MAXTEXT), "ici_tensor_parallelism: 2"},
    {ROW(WEIGHTS, JAX), "NamedSharding with an axis for the weights"},
    {ROW(WEIGHTS, TORCH),
     "device_map=\"auto\" (transformers), tensor_parallel_size (vLLM, SGLang)"},
    {ROW(WEIGHTS, DEEPSPEED), "\"zero_optimization\": {\"stage\": 3}"},
    {ROW(WEIGHTS, GGML), "--tensor-split, --split-mode layer"},
    {ROW(QUANTIZE, TORCH), "load_in_8bit, load_in_4bit (bitsandbytes); enable_model_cpu_offload() "
                           "(diffusers)"},
    {ROW(QUANTIZE, GGML), "--n-gpu-layers lower, or a smaller quantisation"},
    {ROW(FEWER, GGML), "--ctx-size, --ubatch-size lower"},
    {ROW(FEWER, TENSORRT), "a smaller maximum in the optimization profile"},
    {ROW(RELEASE, TORCH), "del, then gc.collect() and torch.cuda.empty_cache()"},
    {ROW(RELEASE, JAX), "x.delete(), jax.clear_caches(), or a new process"},
    {ROW(CHECKPOINT, JAX), "orbax.checkpoint with the arrays' own shardings"},
    {ROW(CHECKPOINT, DEEPSPEED), "\"stage3_gather_16bit_weights_on_model_save\": false, then "
                                 "zero_to_fp32.py"},
    {ROW(CHECKPOINT, MEGATRON), "--ckpt-format torch_dist"},
    {ROW(CHECKPOINT, TORCH),
     "torch.distributed.checkpoint; get_model_state_dict(..., options=StateDictOptions("
     "full_state_dict=True, cpu_offload=True))"},
    {ROW(WORKSPACE, TENSORRT), "IBuilderConfig::setMemoryPoolLimit(kWORKSPACE, ...), trtexec "
                               "--memPoolSize=workspace:..."},
    {ROW(TUNER, JAX),
     "XLA_FLAGS=--xla_gpu_autotune_level=0 (kernels by rule, maybe slower ones), or "
     "jax.jit(step).lower(...).compile() before the arrays are made"},
    {ROW(DUMP, JAX),
     "XLA_FLAGS=--xla_dump_to=DIR --xla_dump_hlo_as_text, then hbmsim hlo DIR/module_....txt"},
    {ROW(DUMP, TORCH), "torch.cuda.memory._record_memory_history(), _dump_snapshot()"},
};

static const struct {
    const char *key, *set, *title;
} knobs[] = {
#define HB_ENUM(name, key, set, title) {key, set, title},
    HB_KNOBS(HB_ENUM)
#undef HB_ENUM
};

const char *hb_knob_key(enum hb_knob knob)
{
    return knobs[knob].key;
}

const char *hb_knob_title(enum hb_knob knob)
{
    return knobs[knob].title;
}

const char *hb_knob_set(enum hb_knob knob)
{
    return knobs[knob].set[0] ? knobs[knob].set : NULL;
}

/* What a framework stands on: its words help where it has none of its own. */
static enum hb_log_framework base_of(enum hb_log_framework framework)
{
    bool on_jax = framework == HB_FW_LOG_MAXTEXT || framework == HB_FW_LOG_LEVANTER ||
                  framework == HB_FW_LOG_JAX;
    bool alone = framework >= HB_FW_LOG_TENSORFLOW && framework != HB_FW_LOG_COUNT;
    return on_jax ? HB_FW_LOG_JAX : alone ? framework : HB_FW_LOG_TORCH;
}

static const char *find_words(enum hb_knob knob, enum hb_log_framework framework)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].knob == knob && rows[i].framework == framework)
            return rows[i].words;
    return NULL;
}

const char *hb_knob_words(enum hb_knob knob, enum hb_log_framework framework)
{
    const char *own = find_words(knob, framework);
    return own ? own : find_words(knob, base_of(framework));
}
