/* One training step as its user describes it: the YAML, checked, with every default filled in.
 * A plain record; sizes of the model are unsharded. The schema table (schema.c) is the only
 * writer; every value here has passed its range and its cross-checks. */
#ifndef HB_MODELS_SPEC_H
#define HB_MODELS_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "models/dtype.h"

/* Tensors of a layer that a remat policy can name; sets of them are masks of 1u << HB_TN_*. */
#define HB_LAYER_TENSORS(X)                                                                        \
    X(LAYER_IN, "layer_in")                                                                        \
    X(Q, "q")                                                                                      \
    X(K, "k")                                                                                      \
    X(V, "v")                                                                                      \
    X(QKV, "qkv")                                                                                  \
    X(MLA_Q, "mla_q")                                                                              \
    X(MLA_KV, "mla_kv")                                                                            \
    X(ATTN_CTX, "attn_ctx")                                                                        \
    X(ATTN_OUT, "attn_out")                                                                        \
    X(MLP_GATE, "mlp_gate")                                                                        \
    X(MLP_UP, "mlp_up")                                                                            \
    X(MLP_ACT, "mlp_act")                                                                          \
    X(MLP_DOWN, "mlp_down")                                                                        \
    X(SHARED_GATE, "shared_gate")                                                                  \
    X(SHARED_UP, "shared_up")                                                                      \
    X(SHARED_DOWN, "shared_down")                                                                  \
    X(MOE_DISPATCH, "moe_dispatch")                                                                \
    X(MOE_COMBINE, "moe_combine")                                                                  \
    X(MOE_SORTED, "moe_sorted")                                                                    \
    X(MOE_OUT, "moe_out")
/* With a pipeline's input of an iteration, which is no tensor of a layer. */
#define HB_TENSOR_NAMES(X) HB_LAYER_TENSORS(X) X(ITER_IN, "iter_in")

enum hb_tensor_name {
#define HB_ENUM(name, text) HB_TN_##name,
    HB_TENSOR_NAMES(HB_ENUM)
#undef HB_ENUM
        HB_TN_COUNT
};

/* Enumerations of the schema. The first is the value 0, not always the default. */
enum hb_norm { HB_NORM_RMS, HB_NORM_LAYER };
enum hb_attn_kind { HB_ATTN_GQA, HB_ATTN_MLA, HB_ATTN_NONE };
enum hb_kernel { HB_KERNEL_FLASH, HB_KERNEL_NAIVE, HB_KERNEL_BLOCKED };
enum hb_mask { HB_MASK_CAUSAL, HB_MASK_MATERIALISED, HB_MASK_NONE };
enum hb_bias { HB_BIAS_NONE, HB_BIAS_ALL, HB_BIAS_QKV };
enum hb_qk_norm { HB_QKN_NONE, HB_QKN_LEARNED, HB_QKN_L2 };
enum hb_flash { HB_FLASH_SPLASH, HB_FLASH_TOKAMAX };
enum hb_mlp_kind { HB_MLP_SWIGLU, HB_MLP_GEGLU, HB_MLP_GELU, HB_MLP_RELU2 };
enum hb_dispatch {
    HB_DISPATCH_RAGGED,
    HB_DISPATCH_EINSUM,
    HB_DISPATCH_ALLGATHER,
    HB_DISPATCH_DENSE
};
enum hb_moe_kernel { HB_MOE_GMM, HB_MOE_TOKAMAX, HB_MOE_RAGGED_DOT };
enum hb_act_dtype { HB_ACT_COMPUTE, HB_ACT_F32, HB_ACT_BF16 };
enum hb_grads { HB_GRADS_PARAMS, HB_GRADS_F32, HB_GRADS_BF16 };
enum hb_fp8 {
    HB_FP8_NONE,
    HB_FP8_TENSORWISE,
    HB_FP8_ROWWISE,
    HB_FP8_BLOCKWISE,
    HB_FP8_MXFP8,
    HB_FP8_NVFP4
};
enum hb_optimizer {
    HB_OPT_SGD,
    HB_OPT_MOMENTUM,
    HB_OPT_ADAMW,
    HB_OPT_LION,
    HB_OPT_ADAFACTOR,
    HB_OPT_MUON
};
enum hb_place { HB_PLACE_NONE, HB_PLACE_PINNED_HOST, HB_PLACE_DEVICE, HB_PLACE_COUNT };
enum hb_others { HB_OTHERS_SAME, HB_OTHERS_ADAMW };
enum hb_axis {
    HB_AX_DATA,
    HB_AX_FSDP,
    HB_AX_TENSOR,
    HB_AX_SEQUENCE,
    HB_AX_EXPERT,
    HB_AX_PIPELINE,
    HB_AX_COUNT
};
enum hb_norms_over { HB_NORMS_REPLICATED, HB_NORMS_TENSOR, HB_NORMS_FSDP };
enum hb_residual_split { HB_SPLIT_SEQUENCE, HB_SPLIT_FEATURES };
enum hb_sequence_kind { HB_SEQ_RING, HB_SEQ_ALL_TO_ALL, HB_SEQ_ALL_GATHER };
enum hb_form { HB_FORM_SCAN, HB_FORM_LOOP, HB_FORM_NESTED };
enum hb_policy {
    HB_POLICY_NONE,
    HB_POLICY_FULL,
    HB_POLICY_DOTS,
    HB_POLICY_DOTS_NO_BATCH,
    HB_POLICY_NAMES
};
enum hb_schedule {
    HB_SCHED_SPMD,
    HB_SCHED_GPIPE,
    HB_SCHED_1F1B,
    HB_SCHED_INTERLEAVED,
    HB_SCHED_ZERO_BUBBLE,
    HB_SCHED_ZBV,
    HB_SCHED_DUALPIPE_V
};
enum hb_shift { HB_SHIFT_ROLL, HB_SHIFT_SLICE, HB_SHIFT_SHARD_MAP };
enum hb_constraints { HB_CONS_NONE, HB_CONS_STATE, HB_CONS_ALL, HB_CONS_REPLICATE };
enum hb_outputs { HB_OUT_STACKED, HB_OUT_BUFFER };
enum hb_pipe_gather { HB_GATHER_ITERATION, HB_GATHER_REPEAT, HB_GATHER_ONCE };
enum hb_lookup { HB_LOOKUP_GATHER, HB_LOOKUP_ONEHOT };
enum hb_loss_kernel { HB_LOSS_EAGER, HB_LOSS_JIT, HB_LOSS_COMPILED, HB_LOSS_FUSED, HB_LOSS_LINEAR };
enum hb_loss_kind { HB_LOSS_LM, HB_LOSS_GRPO };
/* Logits that a PyTorch program holds beyond its loss, until the next ones take their name. */
enum hb_held { HB_HELD_NONE, HB_HELD_COMPUTE, HB_HELD_F32 };
enum hb_chunk_over { HB_CHUNK_SEQUENCE, HB_CHUNK_TOKENS };
enum hb_load_method { HB_LOAD_SHARDED, HB_LOAD_DEVICE_PUT, HB_LOAD_CALLBACK };
/* HB_XLA: that of the device; the reader settles it. */
enum hb_compiler { HB_XLA_TPU, HB_XLA_GPU, HB_TORCH, HB_XLA };
/* HB_FW_AUTO: MaxText where a key stands that only its configurations have, else plain JAX; with
 * compiler torch torchtitan. */
enum hb_framework {
    HB_FW_AUTO,
    HB_FW_JAX,
    HB_FW_MAXTEXT,
    HB_FW_TORCHTITAN,
    HB_FW_MEGATRON,
    HB_FW_TORCHTUNE
};
enum hb_allocator { HB_MAX_ALLOCATED, HB_MAX_RESERVED };
enum hb_prefer { HB_PREFER_ROOM, HB_PREFER_SPEED };
enum hb_objective { HB_OBJ_TOKENS, HB_OBJ_STEP_TIME, HB_OBJ_MEMORY, HB_OBJ_DEVICES };

struct hb_attention {
    enum hb_attn_kind kind;
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;
    enum hb_kernel kernel;
    enum hb_dtype softmax;
    enum hb_mask mask;
    bool rope;
    enum hb_bias bias;
    bool split_heads;
    enum hb_qk_norm qk_norm;
    const int64_t *windows; /* of a unit's layers in turn; 0: full attention */
    int window_count;       /* >= 1 */
    int64_t q_lora_rank;    /* MLA; 0: q is projected directly */
    int64_t kv_lora_rank;
    int64_t qk_nope_head_dim;
    int64_t qk_rope_head_dim;
    int64_t v_head_dim;
    double dropout;
    bool fused_qkv;
    double softcap; /* 0: none */
    bool sinks;
    enum hb_flash flash;
    bool fused_backward;
    int64_t dq_parts; /* of that kernel; 0: one for each of its blocks of keys */
    int64_t block;    /* query block of kernel: blocked */
};

struct hb_mlp {
    enum hb_mlp_kind kind;
    int64_t d_ff;
    bool bias;
    bool fused;
    enum hb_act_dtype act_dtype;
};

struct hb_moe {
    int64_t experts; /* 0: the block has a dense MLP */
    int64_t top_k;
    int64_t d_ff;
    enum hb_mlp_kind kind;
    int64_t shared_experts;
    int64_t shared_d_ff; /* width of all shared experts together */
    enum hb_dispatch dispatch;
    double capacity_factor;
    enum hb_dtype router_dtype;
    enum hb_act_dtype weight_sum;
    bool pad_to_capacity;
    enum hb_act_dtype act_dtype;
    enum hb_moe_kernel kernel;
    double buffer_factor; /* 0: worst case */
    bool bias;
    bool router_bias;
};

struct hb_remat {
    enum hb_policy policy;
    uint32_t save;    /* mask of tensor names */
    uint32_t offload; /* mask of tensor names */
};

/* What torchtitan's own selective checkpoints keep: every second product, and attention. */
enum {
    HB_TITANS_LIST = 1 << HB_TN_Q | 1 << HB_TN_V | 1 << HB_TN_ATTN_CTX | 1 << HB_TN_MLP_GATE |
                     1 << HB_TN_MLP_DOWN
};

/* Beyond the layer's input, which a checkpoint has anyway. */
static inline uint32_t hb_remat_list(const struct hb_remat *r)
{
    return r->policy == HB_POLICY_NAMES ? r->save & ~(1u << HB_TN_LAYER_IN) : 0;
}

/* A list that is not torchtitan's. */
static inline bool hb_remat_is_own(const struct hb_remat *r)
{
    return hb_remat_list(r) && hb_remat_list(r) != HB_TITANS_LIST;
}

static inline bool hb_remat_same(const struct hb_remat *a, const struct hb_remat *b)
{
    return a->policy == b->policy && a->save == b->save && a->offload == b->offload;
}

/* A group of identical layers. */
struct hb_block {
    const char *name;
    int64_t repeat; /* layers; a multiple of unit */
    int64_t unit;   /* layers that one scan step runs */
    bool pipelined;
    bool joins; /* a depth of multi-token prediction: takes in the next tokens' embedding */
    enum hb_norm norm;
    bool post_norm;
    double dropout;
    struct hb_attention attention;
    struct hb_mlp mlp; /* where moe.experts is 0 */
    struct hb_moe moe;
    struct hb_remat remat; /* `remat` or its own of remat.per_block */
};

/* Its MLP has two products side by side. */
static inline bool hb_mlp_is_gated(enum hb_mlp_kind kind)
{
    return kind == HB_MLP_SWIGLU || kind == HB_MLP_GEGLU;
}

/* Experts in the place of an MLP. */
static inline bool hb_block_mixes(const struct hb_block *b)
{
    return b->moe.experts > 0;
}

/* What a scan over its layers goes through. */
static inline int32_t hb_block_steps(const struct hb_block *b)
{
    return (int32_t)(b->repeat / b->unit);
}

struct hb_model {
    const char *name;
    int64_t d_model;
    int64_t vocab;
    bool tied_embeddings;
    int64_t positions;
    int64_t mtp;
    const struct hb_block *blocks;
    int block_count; /* >= 1 */
};

struct hb_precision {
    enum hb_dtype params;
    bool master; /* an f32 master copy */
    enum hb_dtype compute;
    enum hb_grads grads;
    bool norm_f32;
    enum hb_fp8 fp8;
    bool fp8_gather;
    bool fp8_params;
};

struct hb_batch {
    int64_t global;
    int64_t seq;
    int64_t accumulate;
    double per_device; /* 0: not said; settled into global by the reader, and 0 again */
    int64_t tokens;    /* the same */
};

enum { HB_MOMENTS = 2 }; /* at most, of full-size states */

struct hb_optim {
    enum hb_optimizer name;
    enum hb_dtype moments[HB_MOMENTS];
    int moment_count; /* full-size states; adafactor's factored ones are not counted */
    enum hb_place offload;
    bool clip;
    enum hb_place ema;
    bool in_backward;
    enum hb_others others;
    enum hb_place params_offload;
};

struct hb_sharding {
    bool vocab_over_tensor;
    bool residual_over_tensor;
    bool optimizer_over_data;
    bool grads_over_data;
    bool activation_constraints;
    bool reshard_after_forward;
    int64_t reshard_ranks; /* over which units stay split then; 0: over all */
    bool states_over_sequence;
    bool dense_over_expert;
    int64_t expert_tensor;
    enum hb_sequence_kind sequence_kind;
    enum hb_norms_over norms;
    enum hb_residual_split residual_split;
    bool ends_over_pipeline;
    bool router_over_expert;
    bool sequence_balance;
};

struct hb_stack {
    enum hb_form form;
    int64_t outer; /* 0: chosen per block, see schema.md */
    int64_t unroll;
    int64_t axis;
};

struct hb_remat_more {
    struct hb_remat all; /* where `per_block` says nothing; blocks[].remat is what counts */
    bool outer;
    int64_t every;
    uint32_t modules; /* mask of HB_RM_* */
    double budget;    /* of a compiled layer; 1: none */
};

enum hb_remat_module {
    HB_RM_CORE_ATTN,
    HB_RM_MLA_UP_PROJ,
    HB_RM_MLP,
    HB_RM_MOE,
    HB_RM_MOE_ACT,
    HB_RM_LAYERNORM
};

struct hb_loss {
    int64_t chunks;
    enum hb_dtype dot;
    bool onehot;
    enum hb_dtype softmax;
    enum hb_loss_kernel kernel;
    enum hb_loss_kind kind;
    bool reference; /* of grpo: a frozen model whose log-probabilities are taken first */
    bool entropy;   /* of grpo: its entropy is told, too */
    bool value;     /* of grpo: a value model is trained beside the policy, as PPO's is */
    double softcap;
    enum hb_chunk_over chunk_over;
    enum hb_held held;
};

struct hb_pipe {
    int64_t microbatches;
    int64_t repeats;
    enum hb_schedule schedule;
    int64_t group; /* interleaved: microbatches of a chunk in a row; 0: as many as stages */
    enum hb_shift shift;
    enum hb_constraints constraints;
    bool trivial_constraints;
    enum hb_outputs outputs;
    bool remat_iteration;
    uint32_t iteration_save; /* mask of HB_TN_LAYER_IN, HB_TN_ITER_IN */
    bool remat_layer;
    int64_t rank;          /* -1: max */
    const int64_t *layers; /* of each chunk; null: even */
    int layer_count;
    enum hb_pipe_gather gather;
    bool delay;
    bool unroll;
};

struct hb_step {
    bool donate;
    bool nan_to_num;
    bool cast_upfront;
};

struct hb_load {
    bool present;
    enum hb_load_method method;
    int64_t processes;
    int64_t largest_array; /* bytes; 0: the model's largest parameter */
};

struct hb_hardware {
    const char *device;
    int64_t count;
    int64_t hbm_bytes;          /* 0: the device's own less reserve */
    int64_t reserve_bytes;      /* -1: the device's own */
    int64_t host_memory_bytes;  /* of a host, for all its devices; 0: the device's own */
    int64_t host_reserve_bytes; /* of a host, where that is 0; -1: by rule */
    int64_t memory_bytes; /* what the device's profile leaves a program; 0: it was not asked */
};

struct hb_runtime {
    enum hb_framework framework;
    bool compile;
    enum hb_allocator allocator;
    bool expandable_segments;
    int64_t max_split_bytes; /* 0: blocks of any size are split */
    bool grouped_gemm;       /* Megatron's experts, whatever hands out their tokens */
    int64_t blas_workspace;  /* bytes of each of two that products take from the allocator */
    int64_t reduce_bucket;   /* elements of ZeRO's buffer of gradients */
    int64_t prefetch_bucket; /* ... and of ZeRO-3's: asked for ahead at a time, */
    int64_t live_parameters; /* there at once, at most, */
    int64_t reuse_distance;  /* within which what comes again stays, */
    int64_t persist_below;   /* of a parameter that stays whole, at most, */
    int64_t update_group;    /* of a rank's part that is updated at a time */
    double memory_fraction;  /* of the device that programs get; 0: the runtime's own */
    double gc_threshold; /* of what that is: garbage collection starts there; 0: there is none */
    bool fsdp1;          /* FullyShardedDataParallel, not fully_shard */
    bool cuda_graphs;    /* passes are captured once and replayed */
    bool async_tp;       /* products and their gathers or sums over tensor in one, by rows */
    bool fused_norm;     /* RMSNorm is one kernel, as in torch from 2.9 on */
    bool written_norm;   /* as models write it out: its output is narrow before its weight comes */
    bool wrap_root;      /* embedding, last norm and head are FSDP's root unit */
    bool grad_fusion;
};

/* What plan may change. A list that is absent has count 0: stays as written. */
struct hb_spec;

struct hb_plan_axes {
    bool present;                         /* `plan.search` was written */
    uint32_t mesh_axes;                   /* mask of 1u << HB_AX_* that may be set */
    const int64_t (*meshes)[HB_AX_COUNT]; /* or a list of meshes */
    int mesh_count;
    bool remat;
    uint32_t stack_forms;       /* mask of 1u << HB_FORM_* */
    uint32_t optimizer_offload; /* mask of 1u << HB_PLACE_* */
    const int64_t *batch_global;
    int batch_global_count;
    const int64_t *accumulate;
    int accumulate_count;
    const int64_t *loss_chunks;
    int loss_chunks_count;
    const int64_t *microbatches;
    int microbatches_count;
    const int64_t *repeats; /* of compiler torch's pipelines */
    int repeats_count;
    bool reshard;                  /* of compiler torch: gathered weights may stay, or not */
    int64_t axis_max[HB_AX_COUNT]; /* keep: <axis>_max; 0: no limit */
    int64_t min_tokens_per_device; /* 0: no limit */
    enum hb_objective objective;
    bool whole_stack; /* remat stays as written, and nothing is nested: of what is emitted for a
                       * program that has one policy and one scan. Not a key. */
    bool (*says)(const struct hb_spec *cell); /* whether the program that a plan is for can say it;
                                               * null: any. Not a key. */
    double confidence;                        /* of the interval of a peak: above 0, below 1 */
    enum hb_prefer prefer;
    const char *margin; /* "confident", "none", bytes, or per cent: see hb_plan_margin */
};

/* Whether a step needs more than XLA leaves it of the device's memory: found out from its program
 * (asked), or taken as said; tight: not where the scheduler hides less. */
enum hb_share { HB_SHARE_ASKED, HB_SHARE_KEPT, HB_SHARE_TIGHT, HB_SHARE_REDONE, HB_SHARE_EXCEEDED };

/* In which order a step is: its own, as written down, or else one of those of its cell
 * (hb_link_all), of the planner's floors, which hold for each. */
enum { HB_AS_WRITTEN = -1, HB_OWN_ORDER = 0 };

struct hb_spec {
    struct hb_model model;
    struct hb_precision precision;
    struct hb_batch batch;
    struct hb_optim optimizer;
    int64_t mesh[HB_AX_COUNT];
    struct hb_sharding sharding;
    struct hb_stack stack;
    struct hb_remat_more remat;
    struct hb_loss loss;
    enum hb_lookup lookup;
    struct hb_pipe pipeline;
    struct hb_step step;
    struct hb_load load;
    struct hb_hardware hardware;
    enum hb_compiler compiler;
    bool force_compiler; /* though it is not the device's */
    struct hb_runtime runtime;
    struct hb_plan_axes plan;
    /* Of the planner's floors: a name keeps nothing that its readers would make. Not a key. */
    bool merged;
    enum hb_share share; /* not a key */
    bool depth_first;    /* XLA's first order; where products are spread; not a key */
    int as_order;        /* HB_OWN_ORDER ...; not a key */
    int as_layers;       /* inside of layers: 0, or one of XLA's three orders, from 1; not a key */
};

/* torchtitan's ranks that have different experts: of the tensor axis, too, unless it splits each.
 */
static inline int64_t hb_titan_expert_ways(const struct hb_spec *s)
{
    return s->mesh[HB_AX_EXPERT] * (s->sharding.expert_tensor == 1 ? s->mesh[HB_AX_TENSOR] : 1);
}

/* Ranks that share the states of torchtitan's dense weights. */
static inline int64_t hb_titan_shard_ranks(const struct hb_spec *s)
{
    int64_t sequence = s->sharding.states_over_sequence ? s->mesh[HB_AX_SEQUENCE] : 1;
    return s->mesh[HB_AX_FSDP] * s->mesh[HB_AX_EXPERT] * sequence;
}

/* Lion by torch's own ops (lion-pytorch): kernels take no DTensors, which shards of FSDP2 and of
 * tensor parallelism are. */
static inline bool hb_titan_lion_is_eager(const struct hb_spec *s)
{
    bool split = hb_titan_shard_ranks(s) > 1 || s->mesh[HB_AX_TENSOR] > 1;
    return s->optimizer.name == HB_OPT_LION && split && !s->precision.master && !s->runtime.fsdp1 &&
           s->runtime.framework != HB_FW_MEGATRON;
}

#endif
