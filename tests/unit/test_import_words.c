/* Words of other programs, one at a time: what each becomes, what is told as missing or assumed,
 * what is refused and where. Whole published files are test_import.c's. */
#include "tests/unit/unit.h"

#include "base/str.h"
#include "models/import/import.h"
#include "models/schema.h"

#define LEVANTER                                                                                   \
    "model: {type: llama, num_layers: 2, hidden_dim: 64, num_heads: 4, intermediate_dim: 128}\n"
#define TOKENS "data: {tokenizer: gpt2}\n"
#define MEGATRON                                                                                   \
    "num_layers: 2\nhidden_size: 64\nnum_attention_heads: 4\nvocab_size: 1000\nseq_length: 128\n"  \
    "micro_batch_size: 1\nglobal_batch_size: 8\nworld_size: 8\nmax_position_embeddings: 128\n"
#define NEMO                                                                                       \
    "trainer: {num_nodes: 1, devices: 8, precision: bf16}\nmodel:\n  num_layers: 2\n"              \
    "  hidden_size: 64\n  num_attention_heads: 4\n  encoder_seq_length: 128\n"                     \
    "  micro_batch_size: 1\n  global_batch_size: 8\n  megatron_amp_O2: true\n"                     \
    "  max_position_embeddings: 128\n  override_vocab_size: 1000\n"
#define TRAINER "model_name_or_path: gpt2\nper_device_train_batch_size: 1\nmax_length: 128\n"
#define TITAN   "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
#define MAXTEXT                                                                                    \
    "base_emb_dim: 64\nbase_num_decoder_layers: 2\nbase_num_query_heads: 4\nbase_num_kv_heads: "   \
    "4\n"                                                                                          \
    "head_dim: 16\nbase_mlp_dim: 128\nvocab_size: 1000\nmax_target_length: "                       \
    "128\nper_device_batch_size: 1\n"                                                              \
    "decoder_block: llama2\n"

static const struct row {
    const char *text;
    const char *key;  /* "mesh.data=2" of what is made, "" where an error or a note is wanted */
    const char *said; /* part of a note or of the error; null: none */
} rows[] = {
    /* Levanter */
    {LEVANTER "data: {cache_dir: x}\ntrainer: {train_batch_size: 8}\n", "model.vocab=50257",
     "vocabulary of 50257 words, by the tokenizer's name"},
    {LEVANTER "tokenizer: meta-llama/Meta-Llama-3.1-8B\ntrainer: {train_batch_size: 8}\n",
     "model.vocab=128256", NULL},
    {LEVANTER "data: {tokenizer: Allenai/OLMo-1B}\ntrainer: {train_batch_size: 8}\n",
     "model.vocab=50304", NULL},
    {LEVANTER TOKENS "trainer: {train_batch_size: [{start: 0, value: 8}, {start: 9, value: 32}]}\n",
     "batch.global=32", "train_batch_size: the largest of its schedule"},
    {"initialize_from_hf: org/model\ntrainer: {train_batch_size: 8}\n", "",
     "initialize_from_hf: the model stands in the config.json of 'org/model'; import that"},
    {LEVANTER TOKENS "trainer: {train_batch_size: 8, train_batch_size: 16}\n", "batch.global=16",
     NULL},
    {"base: &b {train_batch_size: 24, mp: f32}\n" LEVANTER TOKENS "trainer: {<<: *b, mp: p=f32}\n",
     "batch.global=24", NULL},
    {"base: &b {mp: f32}\nmore: &m {train_batch_size: 40, mp: f32}\n" LEVANTER TOKENS
     "trainer: {<<: [*b, *m]}\n",
     "batch.global=40", NULL},
    {"model: {type: rwkv, num_layers: 2}\ntrainer: {train_batch_size: 8}\n", "",
     "model.type: 'rwkv' is not known; known: llama, mistral"},
    {"model: {type: llama, num_layers: 0}\n" TOKENS "trainer: {train_batch_size: 8}\n", "",
     "model.num_layers: allowed: 1 to 100000"},
    {"model: {type: llama, num_layers: 2, hidden_dim: 64, num_heads: 4, use_qk_norm: true}\n" TOKENS
     "trainer: {train_batch_size: 8}\n",
     "model.blocks[0].attention.qk_norm=true", NULL},
    {LEVANTER TOKENS "trainer: {train_batch_size: 8, quantization: {type: int8}}\n",
     "batch.global=8", "trainer.quantization"},
    {LEVANTER TOKENS "trainer: {train_batch_size: 9, per_device_parallelism: 2}\n", "",
     "trainer.train_batch_size 9 is no multiple of per_device_parallelism x data ranks = 16"},
    {LEVANTER TOKENS "trainer: {train_batch_size: 8}\noptimizer: {type: sophia}\n",
     "optimizer.name=adamw", "optimizer.type: sophia; adamw's states are counted"},
    {LEVANTER TOKENS
     "trainer: {train_batch_size: 8, mesh: {axes: {replica: 2, data: 2, model: 2}}}\n",
     "mesh.tensor=2", NULL},
    {LEVANTER "trainer: {train_batch_size: 8}\n", "", "vocab"},
    /* NeMo */
    {NEMO "  activation: squared-relu\n", "model.blocks[0].mlp.kind=relu2", NULL},
    {NEMO "  activation: reglu\n", "model.blocks[0].mlp.kind=gelu",
     "activation: reglu; gelu is counted"},
    {NEMO "  normalization: layernorm1p\n", "model.blocks[0].norm=layernorm", NULL},
    {NEMO "  normalization: rmsnorm\n", "model.blocks[0].norm=rmsnorm", NULL},
    {NEMO "  cpu_offloading: true\n", "mesh.data=8", "cpu_offloading: activations stay"},
    {NEMO "  precision: 16\n", "precision.compute=f16", NULL},
    {NEMO "  fp8: true\n  fp8_hybrid: true\n  fp8_params: true\n", "precision.fp8=tensorwise",
     NULL},
    {NEMO "  optim: {name: distributed_fused_adam}\n", "sharding.optimizer_over_data=true",
     "a master copy of 4 bytes; distributed_fused_adam may keep 2 of them"},
    {NEMO "  optim: {name: sgd}\n", "optimizer.name=momentum", NULL},
    {NEMO "  optim: {name: adafactor}\n", "optimizer.name=adamw", "optim.name: adafactor; adam's"},
    {NEMO "  fsdp: true\n  fsdp_sharding_strategy: hybrid\n", "mesh.fsdp=8",
     "fsdp_sharding_strategy: hybrid; full is counted"},
    {NEMO "  ffn_hidden_size: ${multiply:2, ${model.hidden_size}}\n",
     "model.blocks[0].mlp.d_ff=128", NULL},
    {NEMO "  ffn_hidden_size: ${oc.env:FFN}\n", "", "ffn_hidden_size"},
    {NEMO "  ffn_hidden_size: ${.}\n", "", "ffn_hidden_size"},
    {"model: {num_layers: 2, hidden_size: 64, tensor_model_parallel_size: 1}\n", "",
     "vocab-size is missing"},
    /* Hugging Face's Trainer */
    {TRAINER "bf16: true\noptim: lomo\n", "optimizer.name=adamw", "optim: lomo; adamw's states"},
    {TRAINER "bf16: true\nfinetuning_type: lora\n", "remat.policy=full",
     "finetuning_type: lora; all parameters are trained here"},
    {TRAINER, "precision.compute=f32", "float32 throughout"},
    {"model_name_or_path: org/unheard-of\nper_device_train_batch_size: 1\n", "",
     "model_name_or_path: no card 'org/unheard-of' (`hbmsim models` lists what there is)"},
    {"base_model: NousResearch/Meta-Llama-3.1-8B\nmodel_type: AutoModelForCausalLM\n"
     "micro_batch_size: 2\nsequence_len: 512\nbf16: auto\noptimizer: adamw_8bit\n",
     "optimizer.moments[0]=q8", "the model zoo's card llama3.1-8b"},
    {"base_model: gpt2\nmicro_batch_size: 2\nsequence_len: 512\n", "batch.global=16", NULL},
    {"base_model: gpt2\nbf16: auto\n", "precision.compute=bf16", NULL},
    {"base_model: gpt2\nadapter: lora\n", "compiler=torch",
     "adapter: all parameters are trained here"},
    {"model_type: llama\nhidden_size: 64\nper_device_train_batch_size: 1\n", "",
     "num_hidden_layers is missing"},
    {TRAINER "bf16: [1]\n", "", "bf16: a list stands where true or false is wanted"},
    /* Megatron */
    {MEGATRON "parallel: {tensor_model_parallel_size: 2}\n", "mesh.tensor=2", NULL},
    {"num_layers: 2\nhidden_size: 64\nnum_attention_heads: 4\ntokenizer_type: Llama2Tokenizer\n",
     "model.vocab=32000", "vocabulary: Llama 2's 32000 words, by the tokenizer"},
    {"num_layers: 2\nhidden_size: 64\nnum_attention_heads: 4\npadded_vocab_size: 1024\n",
     "model.vocab=1024", "8 devices: nothing says how many; world_size=N does"},
    {"num_layers: 2\nhidden_size: 64\nnum_attention_heads: 4\n", "",
     "vocab-size is missing (it stands in the tokenizer alone); add vocab_size=N to the command"},
    {"num_layers: 0\nhidden_size: 64\nnum_attention_heads: 4\n", "",
     "num-layers is missing, or not within 1 to 100000"},
    {MEGATRON "num_experts: 4\nmoe_layer_freq: [0, 1]\nmoe_ffn_hidden_size: 32\n",
     "model.blocks[1].moe.experts=4", NULL},
    {MEGATRON "num_experts: 4\nmoe_layer_freq: [1]\n", "", "moe-layer-freq: says 1 of 2 layers"},
    {MEGATRON "num_experts: 4\nmoe_layer_freq: ([0,1]*1)\nmoe_ffn_hidden_size: 32\n",
     "model.blocks[1].moe.experts=4", NULL},
    {"#!/bin/sh\nTP=2\nMODEL=\"--num-layers 4 --hidden-size 64 --num-attention-heads 4 \\\n"
     " --num-experts 4 --moe-ffn-hidden-size 32 --moe-layer-freq [0]*2+[1]*2 \\\n"
     " --tokenizer-model \"Qwen/Qwen3-8B\" \\\n --seq-length 128 --micro-batch-size 1 \\\n"
     " --global-batch-size 8 --tensor-model-parallel-size ${TP}\"\n"
     "torchrun --nproc_per_node 8 -m pretrain $MODEL\n",
     "model.blocks[1].repeat=2", "vocabulary of 151936 words, by the tokenizer's name"},
    {"#!/bin/sh\nTOKENIZER_MODEL=openai/gpt-oss-20b\n"
     "A=\"--num-layers 4 --hidden-size 64 --num-attention-heads 4\"\n",
     "model.vocab=201088", NULL},
    {"--num-layers 4\n--tensor-model-parallel-size $TP\n--hidden-size 64\n"
     "--num-attention-heads 4\n--vocab-size 100\n",
     "",
     "tensor_model_parallel_size: no value stands where a whole number is wanted, or a name that "
     "the file does not set; add tensor_model_parallel_size=N"},
    {"hidden_size: 64\nnum_attention_heads: 4\nnum_layers: 0\nhybrid_layer_pattern: M-M\n", "",
     "hybrid_layer_pattern: Mamba layers are not simulated"},
    {"num_layers: 0\nencoder_num_layers: 4\nnum_attention_heads: 4\n", "",
     "encoder_num_layers: encoders with decoders are not simulated"},
    {MEGATRON "window_size: [127, 0]\n", "model.blocks[0].attention.window=128", NULL},
    {MEGATRON "tensor_model_parallel_size: 0\n", "", "a parallel size below 1"},
    {MEGATRON "expert_model_parallel_size: 3\nnum_experts: 6\n", "",
     "expert-model-parallel-size 3 does not divide the 8 data ranks"},
    {MEGATRON "use_megatron_fsdp: true\ndata_parallel_sharding_strategy: optim_grads\n",
     "sharding.grads_over_data=true", NULL},
    {MEGATRON "optimizer_cpu_offload: true\n", "optimizer.offload=pinned_host", NULL},
    {MEGATRON "recompute_granularity: full\nrecompute_method: block\nrecompute_num_layers: 3\n",
     "remat.policy=full", "recompute_method block of 3 layers: each layer is recomputed alone"},
    {MEGATRON "recompute_granularity: selective\nrecompute_modules: mlp\n", "remat.modules[0]=mlp",
     NULL},
    {MEGATRON
     "num_experts: 4\nmoe_expert_capacity_factor: 2\nmoe_pad_expert_input_to_capacity: true\n"
     "moe_token_dispatcher_type: alltoall\n",
     "model.blocks[0].moe.pad_to_capacity=true", NULL},
    {MEGATRON "pipeline_model_parallel_size: 2\ndecoder_first_pipeline_num_layers: 1\n",
     "pipeline.layers[0]=1", NULL},
    {MEGATRON "optimizer: sgd\n", "optimizer.name=momentum", NULL},
    {MEGATRON "optimizer: dist_muon\n", "optimizer.name=muon", NULL},
    {MEGATRON "exp_avg_dtype: bf16\n", "optimizer.moments[0]=bf16", NULL},
    {MEGATRON "exp_avg_sq_dtype: bf16\n", "optimizer.moments[1]=bf16", NULL},
    {MEGATRON "optimizer_cpu_offload: true\n", "optimizer.offload=pinned_host", NULL},
    {MEGATRON "clip_grad: 0\n", "optimizer.clip=false", NULL},
    {MEGATRON "mixed_precision: bf16_mixed\n", "precision.params=bf16", NULL},
    {MEGATRON "fp16: true\n", "precision.master=f32", NULL},
    {MEGATRON "bf16: true\ngrad_reduce_in_bf16: true\n", "precision.grads=params", NULL},
    {MEGATRON "bf16: true\nfp8_format: hybrid\n", "precision.fp8=tensorwise", NULL},
    {MEGATRON "bf16: true\nfp8_format: e4m3\nfp8_recipe: blockwise\n", "precision.fp8=blockwise",
     NULL},
    {MEGATRON "bf16: true\nfp8_format: e4m3\nfp8_recipe: mxfp8\n", "precision.fp8=mxfp8", NULL},
    {MEGATRON "num_experts: 4\nmoe_layer_freq: ([0,1]*1)\nmoe_ffn_hidden_size: 32\n",
     "model.blocks[1].moe.experts=4", NULL},
    {"#!/bin/sh\nTP=2\nMODEL=\"--num-layers 4 --hidden-size 64 --num-attention-heads 4 \\\n"
     " --num-experts 4 --moe-ffn-hidden-size 32 --moe-layer-freq [0]*2+[1]*2 \\\n"
     " --tokenizer-model \"Qwen/Qwen3-8B\" \\\n --seq-length 128 --micro-batch-size 1 \\\n"
     " --global-batch-size 8 --tensor-model-parallel-size ${TP}\"\n"
     "torchrun --nproc_per_node 8 -m pretrain $MODEL\n",
     "model.blocks[1].repeat=2", "vocabulary of 151936 words, by the tokenizer's name"},
    {"#!/bin/sh\nTOKENIZER_MODEL=openai/gpt-oss-20b\n"
     "A=\"--num-layers 4 --hidden-size 64 --num-attention-heads 4\"\n",
     "model.vocab=201088", NULL},
    {"--num-layers 4\n--tensor-model-parallel-size $TP\n--hidden-size 64\n"
     "--num-attention-heads 4\n--vocab-size 100\n",
     "",
     "tensor_model_parallel_size: no value stands where a whole number is wanted, or a name that "
     "the file does not set; add tensor_model_parallel_size=N"},
    {"hidden_size: 64\nnum_attention_heads: 4\nnum_layers: 0\nhybrid_layer_pattern: M-M\n", "",
     "hybrid_layer_pattern: Mamba layers are not simulated"},
    {"num_layers: 0\nencoder_num_layers: 4\nnum_attention_heads: 4\n", "",
     "encoder_num_layers: encoders with decoders are not simulated"},
    {MEGATRON "window_size: [127, 0]\n", "model.blocks[0].attention.window=128", NULL},
    {MEGATRON "squared_relu: true\n", "model.blocks[0].mlp.kind=relu2", NULL},
    {MEGATRON "make_vocab_size_divisible_by: 128\nshould_pad_vocab: false\n", "model.vocab=1000",
     NULL},
    {MEGATRON "recompute_granularity: selective\nrecompute_modules: [mlp, layernorm]\n",
     "remat.modules[1]=layernorm", NULL},
    {MEGATRON "recompute_granularity: selective\nrecompute_modules: \"[mlp moe_act]\"\n",
     "remat.modules[1]=moe_act", NULL},
    {MEGATRON "num_experts: 4\nmoe_grouped_gemm: true\n", "runtime.grouped_gemm=true", NULL},
    {MEGATRON "expert_tensor_parallel_size: 16\n", "mesh.expert=1", NULL},
    {MEGATRON "num_distributed_optimizer_instances: 2\n", "mesh.data=8",
     "num_distributed_optimizer_instances 2: states are split over all data ranks"},
    {MEGATRON "CUBLAS_WORKSPACE_CONFIG: ':4096:2:16:8'\n", "runtime.blas_workspace=8519680", NULL},
    {MEGATRON "tensor_model_parallel_size: 2\nsequence_parallel: true\ntp_comm_overlap: true\n",
     "runtime.async_tp=true", NULL},
    {MEGATRON "recompute_activations: true\n", "remat.modules[0]=core_attn", NULL},
    {MEGATRON "step_batch_size_schedule: '0:8 100B:16'\n", "batch.global=8", NULL},
    {"num_layers: 8\nhidden_size: 64\nnum_attention_heads: 4\nvocab_size: 1000\nseq_length: "
     "128\nmicro_batch_size: 1\nglobal_batch_size: 16\nworld_size: 8\nmax_position_embeddings: "
     "128\npipeline_model_parallel_size: 2\nnum_layers_per_virtual_pipeline_stage: "
     "2\nmicrobatch_group_size_per_vp_stage: 4\n",
     "pipeline.group=4", NULL},
    {"num_layers: 8\nhidden_size: 64\nnum_attention_heads: 4\nvocab_size: 1000\nseq_length: "
     "128\nmicro_batch_size: 1\nglobal_batch_size: 16\nworld_size: 8\nmax_position_embeddings: "
     "128\npipeline_model_parallel_size: 2\npipeline_model_parallel_layout: 'Et*3|t*2|t*2|tL'\n",
     "pipeline.repeats=2", NULL},
    {MEGATRON "attention_backend: unfused\n", "model.blocks[0].attention.kernel=naive", NULL},
    {MEGATRON "transformer_impl: local\nuse_flash_attn: true\n",
     "model.blocks[0].attention.kernel=flash", NULL},
    {MEGATRON "recompute_granularity: full\nrecompute_num_layers: 2\n", "remat.policy=full",
     "recompute_method uniform of 2 layers"},
    /* Numbers that no whole one of 64 bits is. */
    {MEGATRON "window_size: 1024e96\n", "", "attention.window: '9007199254740993' is out of range"},
    {TITAN "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"1e99\"\n", "",
     "remat.every: '9007199254740992' is out of range"},
    {MAXTEXT "compile_topology: v5p-1e99\ncompile_topology_num_slices: 9007199254740992\n", "",
     "per_device_batch_size: 1 on 9223372036854775807 devices"},
    {"num_layers: 100001\nhidden_size: 64\nnum_attention_heads: 4\nvocab_size: 1000\n", "",
     "num-layers is missing, or not within 1 to 100000"},
    /* torchtitan */
    {"[model]\nname = \"llama3\"\nflavor = \"9B\"\n", "",
     "model llama3: no flavor '9B' is known; known: "},
    {"[model]\nname = \"llama3\"\nflavor = \"debugmodel\"\n", "model.d_model=256", NULL},
    {TITAN "[parallelism]\ntensor_parallel_degree = 0\n", "",
     "parallelism: tensor_parallel_degree is below 1"},
    {TITAN "[parallelism]\nexpert_parallel_degree = 4\ntensor_parallel_degree = 2\n"
           "data_parallel_shard_degree = 4\n",
     "sharding.expert_tensor=1", NULL},
    {TITAN "[parallelism]\nexpert_parallel_degree = 4\ntensor_parallel_degree = 2\n"
           "data_parallel_shard_degree = 4\n",
     "mesh.expert=2", NULL},
    {TITAN "[parallelism]\nexpert_parallel_degree = 3\ntensor_parallel_degree = 2\n"
           "data_parallel_shard_degree = 6\n",
     "", "expert_parallel_degree is no multiple of tensor_parallel_degree"},
    {TITAN "[parallelism]\nexpert_parallel_degree = 0\n", "",
     "parallelism: expert_parallel_degree is below 1"},
    {TITAN "[parallelism]\ndata_parallel_shard_degree = 4\nexpert_parallel_degree = 3\n", "",
     "expert_parallel_degree does not divide data_parallel_shard_degree"},
    {TITAN "[training]\nglobal_batch_size = 9\nlocal_batch_size = 1\n", "",
     "training.global_batch_size 9 is no multiple of local_batch_size x data ranks = 8"},
    {TITAN "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_layers_per_stage = 4\n",
     "mesh.pipeline=2", "parallelism.pipeline_parallel_layers_per_stage: 4"},
    {"[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [\"mxfp8\", \"quant\"]\n",
     "precision.fp8=mxfp8", "model.converters: quant"},
    {TITAN
     "[training]\nmax_norm = 0.0\n[optimizer]\nname = \"Lion\"\nearly_step_in_backward = true\n",
     "optimizer.in_backward=true", "optimizer.name: Lion; adamw's states are counted"},
    {TITAN "[ema_weights]\nenable = true\ndecay = 0.99\n", "optimizer.ema=device", NULL},
    {TITAN "[ema_weights]\nenable = true\noffload_to_cpu = true\n", "optimizer.ema=pinned_host",
     NULL},
    {TITAN "[ema_weights]\nenable = true\npolicy = \"cosine\"\n", "optimizer.ema=device",
     "ema_weights.policy"},
    {"model_spec: {name: llama3, flavor: 405B}\nactivation_checkpoint: null\n"
     "parallelism: {data_parallel_shard_degree: 64}\n",
     "remat.policy=none", NULL},
    {"model_spec: {name: llama3, flavor: 8B, model: {layers: [{wo: {rank: 8, alpha: 16.0}}]}}\n"
     "parallelism: {data_parallel_shard_degree: 1}\n",
     "precision.grads=params", "LoRA: all parameters are trained here"},
    {"model_spec: {name: llama3, flavor: 8B, model: {wo: {in_features: 8, _torchao_config: x}}}\n"
     "parallelism: {data_parallel_shard_degree: 8}\n",
     "precision.fp8=rowwise", NULL},
    {"model_spec: {name: llama3, flavor: 8B}\ntraining: {max_context_length: 1024,\n"
     "  num_tokens_per_microbatch_per_dp_rank: 2048, disable_cuda_graphs: false}\n"
     "parallelism: {pipeline_parallel_degree: 2, num_pp_microbatches: 4,\n"
     "  data_parallel_shard_degree: 4}\n",
     "batch.global=32", NULL},
    {"model_spec: {name: llama3, flavor: 8B}\ntraining: {disable_cuda_graphs: false}\n",
     "runtime.cuda_graphs=true", NULL},
    {"model_spec: {name: qwen3, flavor: 30B-A3B}\ntraining: {disable_cuda_graphs: false}\n"
     "parallelism: {expert_parallel_degree: 8, data_parallel_shard_degree: 8}\n",
     "mesh.expert=8", "training.disable_cuda_graphs: false; what the graphs"},
    {"model_spec: {name: llama3, flavor: 8B}\noptimizer: {param_groups: [{optimizer_name: AdamW},\n"
     "  {optimizer_name: DistMuon}]}\n",
     "optimizer.name=muon", NULL},
    {TITAN "[activation_checkpoint]\nmode = \"memory_budget\"\nmemory_budget = 0.3\n"
           "[compile]\nenable = true\n",
     "remat.budget=0.3", NULL},
    /* MaxText */
    {"base_emb_dim: 64\nbase_num_decoder_layers: 0\nbase_num_query_heads: 4\ndecoder_block: "
     "llama2\n",
     "", "base_num_decoder_layers: allowed: 1 to 100000"},
    {MAXTEXT "opt_type: sophia\n", "optimizer.name=adamw",
     "opt_type: sophia; adamw's states are counted"},
    {MAXTEXT "dtype: float16\nweight_dtype: float16\n", "precision.compute=f16", NULL},
    {MAXTEXT "dtype: int4\n", "optimizer.name=adamw", "dtype: int4"},
    {MAXTEXT "quantization: fp8\n", "precision.fp8=tensorwise", NULL},
    {MAXTEXT "quantization: fp8_full\n", "precision.fp8=rowwise", NULL},
    {MAXTEXT "quantization: fp8_full\nweight_quantization_calibration_method: fixed,-224,224\n",
     "precision.fp8=tensorwise", NULL},
    {MAXTEXT "parameter_memory_host_offload: true\n", "optimizer.params_offload=pinned_host", NULL},
    {MAXTEXT "compile_topology: v9-8\n", "hardware.device=tpu-v5p",
     "compile_topology: v9-8; tpu-v5p is taken"},
    {MAXTEXT "activations_in_float32: true\n", "model.blocks[0].mlp.act_dtype=f32", NULL},
    {MAXTEXT "fused_mlp: true\n", "model.blocks[0].mlp.fused=true", NULL},
    {MAXTEXT "mlp_activations: ['relu2']\n", "model.blocks[0].mlp.kind=relu2", NULL},
};

/* The text at "a.b[0].c" of a tree. */
static const char *text_at(const struct hb_node *node, const char *path)
{
    while (node && *path && *path != '=') {
        size_t len = strcspn(path, ".[=");
        const struct hb_node *child = node->first;
        while (child && (!child->key || strncmp(child->key, path, len) != 0 || child->key[len]))
            child = child->next;
        node = child;
        path += len;
        if (*path == '[') {
            node = node ? hb_node_at(node, path[1] - '0') : NULL;
            path += strlen("[0]");
        }
        path += *path == '.';
    }
    return node && node->text ? node->text : "nothing";
}

static const char *all_said(struct hb_arena *arena, const struct hb_diag *diag,
                            const struct hb_import *import)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    for (int i = 0; i < diag->count; i++)
        hb_str_addf(&s, "%s\n", diag->entries[i].text);
    for (uint32_t i = 0; i < import->missing.count; i++)
        hb_str_addf(&s, "%s\n", import->missing.items[i]);
    for (uint32_t i = 0; i < import->assumed.count; i++)
        hb_str_addf(&s, "%s\n", import->assumed.items[i]);
    return s.text;
}

static bool check_row(const struct row *row)
{
    struct unit u;
    struct hb_import import = {0};
    struct hb_spec spec;
    struct hb_node *tree = NULL;
    unit_start(&u);
    struct hb_import_source source = {
        .arena = u.env.arena, .diag = &u.diag, .path = "test", .data_dir = HB_SOURCE_DIR};
    bool ok = hb_import_parse(u.env.arena, &u.diag, "test", row->text, strlen(row->text), &tree) &&
              hb_import_is_foreign(tree) && hb_import_tree(&source, tree, &import);
    ok = ok && !u.diag.errors &&
         hb_schema_from_node(u.env.arena, &u.diag, import.root, HB_SOURCE_DIR, &spec);
    const char *said = all_said(u.env.arena, &u.diag, &import);
    const char *equals = strchr(row->key, '=');
    struct hb_node *whole = ok ? hb_schema_emit(u.env.arena, &spec, true) : NULL;
    const char *found = ok ? text_at(whole, row->key) : "";
    bool right = ok == (equals != NULL) && (!equals || strcmp(found, equals + 1) == 0) &&
                 (!row->said || strstr(said, row->said));
    if (!right)
        fprintf(stderr, "%swanted %s, found '%s'; wanted '%s' in\n%s\n", row->text, row->key, found,
                row->said ? row->said : "", said);
    unit_end(&u);
    return right;
}

static void each_word_becomes_what_it_says(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        wrong += !check_row(&rows[i]);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_becomes_what_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
