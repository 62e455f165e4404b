/* The table of the input's keys: name, type, range, default, spellings and one line of meaning
 * each. Reader, defaults, messages, help and writer all walk this table and hold no key of their
 * own. A key whose default begins with '=' is computed in schema_fill.c; one without a default
 * is required. */
#include "models/schema_key.h"

#include <string.h>

#include "base/diag.h"
#include "models/schema.h"

#define COUNT(array)     (int)(sizeof(array) / sizeof((array)[0]))
#define FIELD(type, f)   .offset = offsetof(type, f), .size_bytes = sizeof(((type *)0)->f)
#define SPEC(f)          FIELD(struct hb_spec, f)
#define BLOCK(f)         FIELD(struct hb_block, f)
#define REMAT(f)         FIELD(struct hb_remat, f)
#define NOWHERE          .offset = HB_KEY_NOWHERE
#define SPEC_LIST(f, n)  SPEC(f), .count_offset = offsetof(struct hb_spec, n)
#define BLOCK_LIST(f, n) BLOCK(f), .count_offset = offsetof(struct hb_block, n)

/* Ranges: far above any model, far below what products of a few of them need to stay in range. */
#define DIM_MAX     2147483648.0    /* 2^31: one dimension of a tensor */
#define LAYERS_MAX  100000.0        /* layers of one block */
#define AXIS_MAX    16777216.0      /* 2^24: devices along one axis */
#define DEVICES_MAX 1099511627776   /* 2^40: devices in all */
#define BATCH_MAX   1099511627776.0 /* 2^40: sequences, tokens of a sequence */
#define BYTES_MAX   0x1p62

#define INT(n, where, lo, hi, d, text)                                                             \
    {                                                                                              \
        .name = n, .kind = HB_KEY_INT, where, .low = lo, .high = hi, .def = d, .doc = text         \
    }
#define BYTES(n, where, d, text)                                                                   \
    {                                                                                              \
        .name = n, .kind = HB_KEY_SIZE, where, .high = BYTES_MAX, .def = d, .doc = text            \
    }
#define AXIS(n, where, d, text)                                                                    \
    {                                                                                              \
        .name = n, .kind = HB_KEY_AXIS, SPEC(where), .low = 1, .high = AXIS_MAX, .def = d,         \
        .doc = text                                                                                \
    }
#define REAL(n, where, lo, hi, d, text)                                                            \
    {                                                                                              \
        .name = n, .kind = HB_KEY_REAL, where, .low = lo, .high = hi, .def = d, .doc = text        \
    }
#define BOOL(n, where, d, text)                                                                    \
    {                                                                                              \
        .name = n, .kind = HB_KEY_BOOL, where, .def = d, .doc = text                               \
    }
#define TEXT(n, where, d, text)                                                                    \
    {                                                                                              \
        .name = n, .kind = HB_KEY_TEXT, where, .def = d, .doc = text                               \
    }
#define ENUM(n, where, w, d, text)                                                                 \
    {                                                                                              \
        .name = n, .kind = HB_KEY_ENUM, where, .words = w, .def = d, .doc = text                   \
    }
#define MASK(n, where, w, d, text)                                                                 \
    {                                                                                              \
        .name = n, .kind = HB_KEY_MASK, where, .words = w, .def = d, .doc = text                   \
    }
#define INTS(n, k, where, lo, hi, d, text)                                                         \
    {                                                                                              \
        .name = n, .kind = k, where, .low = lo, .high = hi, .def = d, .doc = text                  \
    }
#define MAP(n, id, text)                                                                           \
    {                                                                                              \
        .name = n, .kind = HB_KEY_SECTION, NOWHERE, .section = id, .def = "{}", .doc = text        \
    }
#define MAYBE(n, where, id, text)                                                                  \
    {                                                                                              \
        .name = n, .kind = HB_KEY_SECTION, where, .section = id, .optional = true, .def = "{}",    \
        .doc = text                                                                                \
    }

static const struct hb_word dtypes[] = {
    {"f32", HB_DT_F32}, {"bf16", HB_DT_BF16}, {"f16", HB_DT_F16}, {"f64", HB_DT_F64}, {0}};
static const struct hb_word moments[] = {{"f32", HB_DT_F32},
                                         {"bf16", HB_DT_BF16},
                                         {"f16", HB_DT_F16},
                                         {"f64", HB_DT_F64},
                                         {"q8", HB_DT_Q8},
                                         {"q4", HB_DT_Q4},
                                         {0}};
static const struct hb_word norms[] = {{"rmsnorm", HB_NORM_RMS}, {"layernorm", HB_NORM_LAYER}, {0}};
static const struct hb_word attn_kinds[] = {
    {"gqa", HB_ATTN_GQA}, {"mla", HB_ATTN_MLA}, {"none", HB_ATTN_NONE}, {0}};
static const struct hb_word kernels[] = {
    {"flash", HB_KERNEL_FLASH}, {"naive", HB_KERNEL_NAIVE}, {"blocked", HB_KERNEL_BLOCKED}, {0}};
static const struct hb_word masks[] = {{"causal", HB_MASK_CAUSAL},
                                       {"causal_materialised", HB_MASK_MATERIALISED},
                                       {"none", HB_MASK_NONE},
                                       {0}};
static const struct hb_word biases[] = {
    {"false", HB_BIAS_NONE}, {"true", HB_BIAS_ALL}, {"qkv", HB_BIAS_QKV}, {0}};
static const struct hb_word qk_norms[] = {
    {"false", HB_QKN_NONE}, {"true", HB_QKN_LEARNED}, {"l2", HB_QKN_L2}, {0}};
static const struct hb_word flashes[] = {
    {"splash", HB_FLASH_SPLASH}, {"tokamax", HB_FLASH_TOKAMAX}, {0}};
static const struct hb_word mlp_kinds[] = {{"swiglu", HB_MLP_SWIGLU},
                                           {"geglu", HB_MLP_GEGLU},
                                           {"gelu", HB_MLP_GELU},
                                           {"relu2", HB_MLP_RELU2},
                                           {0}};
static const struct hb_word dispatches[] = {{"ragged", HB_DISPATCH_RAGGED},
                                            {"einsum", HB_DISPATCH_EINSUM},
                                            {"allgather", HB_DISPATCH_ALLGATHER},
                                            {"dense", HB_DISPATCH_DENSE},
                                            {0}};
static const struct hb_word moe_kernels[] = {
    {"gmm", HB_MOE_GMM}, {"tokamax", HB_MOE_TOKAMAX}, {"ragged_dot", HB_MOE_RAGGED_DOT}, {0}};
static const struct hb_word act_dtypes[] = {
    {"compute", HB_ACT_COMPUTE}, {"f32", HB_ACT_F32}, {"bf16", HB_ACT_BF16}, {0}};
static const struct hb_word weight_sums[] = {{"compute", HB_ACT_COMPUTE}, {"f32", HB_ACT_F32}, {0}};
static const struct hb_word masters[] = {{"none", false}, {"f32", true}, {0}};
static const struct hb_word norm_dtypes[] = {{"f32", true}, {"compute", false}, {0}};
static const struct hb_word grads[] = {
    {"params", HB_GRADS_PARAMS}, {"f32", HB_GRADS_F32}, {"bf16", HB_GRADS_BF16}, {0}};
static const struct hb_word fp8s[] = {{"none", HB_FP8_NONE},
                                      {"tensorwise", HB_FP8_TENSORWISE},
                                      {"rowwise", HB_FP8_ROWWISE},
                                      {"blockwise", HB_FP8_BLOCKWISE},
                                      {"mxfp8", HB_FP8_MXFP8},
                                      {"nvfp4", HB_FP8_NVFP4},
                                      {0}};
static const struct hb_word optimizers[] = {{"sgd", HB_OPT_SGD},
                                            {"momentum", HB_OPT_MOMENTUM},
                                            {"adamw", HB_OPT_ADAMW},
                                            {"lion", HB_OPT_LION},
                                            {"adafactor", HB_OPT_ADAFACTOR},
                                            {"muon", HB_OPT_MUON},
                                            {0}};
static const struct hb_word offloads[] = {
    {"none", HB_PLACE_NONE}, {"pinned_host", HB_PLACE_PINNED_HOST}, {0}};
static const struct hb_word emas[] = {{"none", HB_PLACE_NONE},
                                      {"device", HB_PLACE_DEVICE},
                                      {"pinned_host", HB_PLACE_PINNED_HOST},
                                      {0}};
static const struct hb_word others[] = {{"same", HB_OTHERS_SAME}, {"adamw", HB_OTHERS_ADAMW}, {0}};
static const struct hb_word axes[] = {{"data", HB_AX_DATA},
                                      {"fsdp", HB_AX_FSDP},
                                      {"tensor", HB_AX_TENSOR},
                                      {"sequence", HB_AX_SEQUENCE},
                                      {"expert", HB_AX_EXPERT},
                                      {"pipeline", HB_AX_PIPELINE},
                                      {0}};
static const struct hb_word sequence_kinds[] = {{"ring", HB_SEQ_RING},
                                                {"all_to_all", HB_SEQ_ALL_TO_ALL},
                                                {"all_gather", HB_SEQ_ALL_GATHER},
                                                {0}};
static const struct hb_word norms_over[] = {
    {"replicated", HB_NORMS_REPLICATED}, {"tensor", HB_NORMS_TENSOR}, {"fsdp", HB_NORMS_FSDP}, {0}};
static const struct hb_word splits[] = {
    {"sequence", HB_SPLIT_SEQUENCE}, {"features", HB_SPLIT_FEATURES}, {0}};
static const struct hb_word forms[] = {
    {"scan", HB_FORM_SCAN}, {"loop", HB_FORM_LOOP}, {"nested", HB_FORM_NESTED}, {0}};
static const struct hb_word policies[] = {
    {"none", HB_POLICY_NONE},   {"full", HB_POLICY_FULL},
    {"dots", HB_POLICY_DOTS},   {"dots_no_batch", HB_POLICY_DOTS_NO_BATCH},
    {"names", HB_POLICY_NAMES}, {0}};
#define HB_ENUM(name, text) {text, HB_TN_##name},
static const struct hb_word tensor_names[] = {HB_LAYER_TENSORS(HB_ENUM){0}};
#undef HB_ENUM
static const struct hb_word iteration_names[] = {
    {"layer_in", HB_TN_LAYER_IN}, {"iter_in", HB_TN_ITER_IN}, {0}};
static const struct hb_word remat_modules[] = {{"core_attn", HB_RM_CORE_ATTN},
                                               {"mla_up_proj", HB_RM_MLA_UP_PROJ},
                                               {"mlp", HB_RM_MLP},
                                               {"moe", HB_RM_MOE},
                                               {"moe_act", HB_RM_MOE_ACT},
                                               {"layernorm", HB_RM_LAYERNORM},
                                               {0}};
static const struct hb_word loss_kinds[] = {{"lm", HB_LOSS_LM}, {"grpo", HB_LOSS_GRPO}, {0}};
static const struct hb_word loss_kernels[] = {
    {"eager", HB_LOSS_EAGER}, {"jit", HB_LOSS_JIT},       {"compiled", HB_LOSS_COMPILED},
    {"fused", HB_LOSS_FUSED}, {"linear", HB_LOSS_LINEAR}, {0}};
static const struct hb_word chunk_overs[] = {
    {"sequence", HB_CHUNK_SEQUENCE}, {"tokens", HB_CHUNK_TOKENS}, {0}};
static const struct hb_word holds[] = {
    {"none", HB_HELD_NONE}, {"compute", HB_HELD_COMPUTE}, {"f32", HB_HELD_F32}, {0}};
static const struct hb_word lookups[] = {
    {"gather", HB_LOOKUP_GATHER}, {"onehot", HB_LOOKUP_ONEHOT}, {0}};
static const struct hb_word schedules[] = {{"spmd", HB_SCHED_SPMD},
                                           {"gpipe", HB_SCHED_GPIPE},
                                           {"1f1b", HB_SCHED_1F1B},
                                           {"interleaved", HB_SCHED_INTERLEAVED},
                                           {"zero_bubble", HB_SCHED_ZERO_BUBBLE},
                                           {"zbv", HB_SCHED_ZBV},
                                           {"dualpipe_v", HB_SCHED_DUALPIPE_V},
                                           {0}};

const char *hb_schedule_name(enum hb_schedule schedule)
{
    return hb_word_text(schedules, (int)schedule);
}

bool hb_schedule_parts(enum hb_schedule schedule)
{
    return schedule == HB_SCHED_ZERO_BUBBLE || schedule == HB_SCHED_ZBV ||
           schedule == HB_SCHED_DUALPIPE_V;
}

static const struct hb_word shifts[] = {
    {"roll", HB_SHIFT_ROLL}, {"slice", HB_SHIFT_SLICE}, {"shard_map", HB_SHIFT_SHARD_MAP}, {0}};
static const struct hb_word constraints[] = {{"none", HB_CONS_NONE},
                                             {"state", HB_CONS_STATE},
                                             {"all", HB_CONS_ALL},
                                             {"replicate", HB_CONS_REPLICATE},
                                             {0}};
static const struct hb_word outputs[] = {
    {"stacked", HB_OUT_STACKED}, {"buffer", HB_OUT_BUFFER}, {0}};
static const struct hb_word pipe_gathers[] = {{"iteration", HB_GATHER_ITERATION},
                                              {"repeat", HB_GATHER_REPEAT},
                                              {"once", HB_GATHER_ONCE},
                                              {0}};
static const struct hb_word casts[] = {{"in_layer", false}, {"upfront", true}, {0}};
static const struct hb_word load_methods[] = {{"sharded", HB_LOAD_SHARDED},
                                              {"device_put", HB_LOAD_DEVICE_PUT},
                                              {"callback", HB_LOAD_CALLBACK},
                                              {0}};
static const struct hb_word compilers[] = {
    {"xla-tpu", HB_XLA_TPU}, {"xla-gpu", HB_XLA_GPU}, {"torch", HB_TORCH}, {"xla", HB_XLA}, {0}};

const char *hb_compiler_name(enum hb_compiler compiler)
{
    return hb_word_text(compilers, (int)compiler);
}

static const struct hb_word frameworks[] = {{"auto", HB_FW_AUTO},
                                            {"jax", HB_FW_JAX},
                                            {"maxtext", HB_FW_MAXTEXT},
                                            {"torchtitan", HB_FW_TORCHTITAN},
                                            {"megatron", HB_FW_MEGATRON},
                                            {"torchtune", HB_FW_TORCHTUNE},
                                            {0}};
static const struct hb_word wraps[] = {{"split", false}, {"root", true}, {0}};
static const struct hb_word allocators[] = {
    {"max_allocated", HB_MAX_ALLOCATED}, {"max_reserved", HB_MAX_RESERVED}, {0}};
static const struct hb_word prefers[] = {{"room", HB_PREFER_ROOM}, {"speed", HB_PREFER_SPEED}, {0}};
static const struct hb_word objectives[] = {{"tokens_per_second", HB_OBJ_TOKENS},
                                            {"step_time", HB_OBJ_STEP_TIME},
                                            {"memory", HB_OBJ_MEMORY},
                                            {"devices", HB_OBJ_DEVICES},
                                            {0}};

static const struct hb_key root_keys[] = {
    INT("hbmsim", NOWHERE, 1, 1, "1", "version of this format"),
    TEXT("include", NOWHERE, "=none", "another file whose keys are defaults for this one"),
    {.name = "model",
     .kind = HB_KEY_SECTION,
     NOWHERE,
     .section = HB_SEC_MODEL,
     .doc = "what is trained"},
    MAP("precision", HB_SEC_PRECISION, "element types"),
    MAP("batch", HB_SEC_BATCH, "sequences of a step"),
    MAP("optimizer", HB_SEC_OPTIMIZER, "update rule and its states"),
    MAP("mesh", HB_SEC_MESH, "devices along each axis; their product is hardware.count"),
    MAP("sharding", HB_SEC_SHARDING, "what is split over which axis"),
    MAP("stack", HB_SEC_STACK, "how layers follow one another"),
    MAP("remat", HB_SEC_REMAT, "what is kept, recomputed or offloaded"),
    MAP("loss", HB_SEC_LOSS, "logits and cross-entropy"),
    MAP("embedding", HB_SEC_EMBEDDING, "token embedding"),
    MAP("pipeline", HB_SEC_PIPELINE, "with mesh.pipeline above 1"),
    MAP("step", HB_SEC_STEP, "the step function"),
    MAYBE("load", SPEC(load.present), HB_SEC_LOAD, "building the state before step 1"),
    MAP("hardware", HB_SEC_HARDWARE, "devices"),
    ENUM("compiler", SPEC(compiler), compilers, "=the device's: xla-tpu or xla-gpu",
         "whose memory behaviour is simulated"),
    BOOL("force_compiler", SPEC(force_compiler), "false",
         "simulate a compiler that is not the device's"),
    MAP("runtime", HB_SEC_RUNTIME, "with compiler: torch"),
    MAP("plan", HB_SEC_PLAN, "what `hbmsim plan` may change"),
};

static const struct hb_key model_keys[] = {
    TEXT("preset", NOWHERE, "=none", "a card of the model zoo; the keys below override its keys"),
    TEXT("import", NOWHERE, "=none",
         "a file of another program whose model this is; the keys below override its keys"),
    TEXT("name", SPEC(model.name), "unnamed", "shown in outputs"),
    INT("d_model", SPEC(model.d_model), 1, DIM_MAX, NULL, "width of the residual"),
    INT("vocab", SPEC(model.vocab), 1, DIM_MAX, NULL, "rows of the embedding"),
    BOOL("tied_embeddings", SPEC(model.tied_embeddings), "false",
         "the unembedding is the embedding"),
    INT("positions", SPEC(model.positions), 0, DIM_MAX, "0",
        "rows of a learned position table; 0: rotary or none"),
    INT("mtp", SPEC(model.mtp), 0, 64, "0", "depth of multi-token prediction"),
    {.name = "blocks",
     .kind = HB_KEY_BLOCKS,
     NOWHERE,
     .section = HB_SEC_BLOCK,
     .doc = "groups of identical layers, in order"},
};

static const struct hb_key block_keys[] = {
    TEXT("name", BLOCK(name), "=dense or moe", "shown in outputs; named by remat.per_block"),
    INT("repeat", BLOCK(repeat), 1, LAYERS_MAX, NULL, "layers of the block; a multiple of unit"),
    INT("unit", BLOCK(unit), 1, LAYERS_MAX, "1",
        "layers that one scan step runs and one rematerialisation wraps"),
    BOOL("pipelined", BLOCK(pipelined), "true", "false: outside the pipeline, on every stage"),
    ENUM("norm", BLOCK(norm), norms, "rmsnorm", "normalisation"),
    BOOL("post_norm", BLOCK(post_norm), "false",
         "a further norm after attention and after the MLP"),
    REAL("dropout", BLOCK(dropout), 0, 1, "0", "probability after attention and after the MLP"),
    MAP("attention", HB_SEC_ATTENTION, "the attention of each layer"),
    MAYBE("mlp", NOWHERE, HB_SEC_MLP, "a dense MLP; either this or moe"),
    MAYBE("moe", NOWHERE, HB_SEC_MOE, "a mixture of experts; either this or mlp"),
};

static const struct hb_key attention_keys[] = {
    ENUM("kind", BLOCK(attention.kind), attn_kinds, "gqa",
         "gqa (mha and mqa by kv_heads), mla, or none (projections without attention)"),
    INT("heads", BLOCK(attention.heads), 1, DIM_MAX, NULL, "query heads"),
    INT("kv_heads", BLOCK(attention.kv_heads), 1, DIM_MAX, "=heads", "key and value heads"),
    INT("head_dim", BLOCK(attention.head_dim), 1, DIM_MAX, "=d_model / heads", "width of a head"),
    ENUM("kernel", BLOCK(attention.kernel), kernels, "flash",
         "naive materialises the scores; blocked does it query block by query block"),
    INT("block", BLOCK(attention.block), 1, DIM_MAX, "512", "query block of kernel: blocked"),
    ENUM("softmax", BLOCK(attention.softmax), dtypes, "f32", "dtype of materialised scores"),
    ENUM("mask", BLOCK(attention.mask), masks, "causal", "mask of the scores"),
    BOOL("rope", BLOCK(attention.rope), "true", "rotary positions"),
    ENUM("bias", BLOCK(attention.bias), biases, "false",
         "biases of the projections; qkv: not of the output's"),
    BOOL("split_heads", BLOCK(attention.split_heads), "false",
         "weights stored [d_model, heads, head_dim]"),
    ENUM("qk_norm", BLOCK(attention.qk_norm), qk_norms, "false",
         "norm of queries and keys; l2: without a learned scale"),
    INTS("window", HB_KEY_ONE_INTS, BLOCK_LIST(attention.windows, attention.window_count), 0,
         BATCH_MAX, "0", "sliding window, 0: full; a list: of a unit's layers in turn"),
    INT("q_lora_rank", BLOCK(attention.q_lora_rank), 0, DIM_MAX, "0",
        "mla: rank of the query; 0: projected directly"),
    INT("kv_lora_rank", BLOCK(attention.kv_lora_rank), 0, DIM_MAX, "0", "mla: rank of key, value"),
    INT("qk_nope_head_dim", BLOCK(attention.qk_nope_head_dim), 0, DIM_MAX, "0",
        "mla: width of a head without rope"),
    INT("qk_rope_head_dim", BLOCK(attention.qk_rope_head_dim), 0, DIM_MAX, "0",
        "mla: width of a head with rope"),
    INT("v_head_dim", BLOCK(attention.v_head_dim), 0, DIM_MAX, "0", "mla: width of a value head"),
    REAL("dropout", BLOCK(attention.dropout), 0, 1, "0", "probability on the attention weights"),
    BOOL("fused_qkv", BLOCK(attention.fused_qkv), "false", "one weight and product for q, k, v"),
    REAL("softcap", BLOCK(attention.softcap), 0, 1e9, "0",
         "scores become cap x tanh(x / cap); 0: none"),
    BOOL("sinks", BLOCK(attention.sinks), "false", "a learned extra score per head"),
    ENUM("flash", BLOCK(attention.flash), flashes, "splash", "which flash kernel"),
    BOOL("fused_backward", BLOCK(attention.fused_backward), "false", "one kernel for dq, dk, dv"),
    INT("dq_parts", BLOCK(attention.dq_parts), 0, DIM_MAX, "0",
        "parts of dq that this kernel writes; 0: one for each block of keys"),
};

static const struct hb_key mlp_keys[] = {
    ENUM("kind", BLOCK(mlp.kind), mlp_kinds, "swiglu", "nonlinearity, gated or not"),
    INT("d_ff", BLOCK(mlp.d_ff), 1, DIM_MAX, NULL, "inner width"),
    BOOL("bias", BLOCK(mlp.bias), "false", "biases of the products"),
    BOOL("fused", BLOCK(mlp.fused), "false", "one weight and product for gate and up"),
    ENUM("act_dtype", BLOCK(mlp.act_dtype), act_dtypes, "compute", "dtype of the nonlinearity"),
};

static const struct hb_key moe_keys[] = {
    INT("experts", BLOCK(moe.experts), 1, DIM_MAX, NULL, "experts of a layer"),
    INT("top_k", BLOCK(moe.top_k), 1, DIM_MAX, NULL, "experts of a token"),
    INT("d_ff", BLOCK(moe.d_ff), 1, DIM_MAX, NULL, "inner width of one expert"),
    ENUM("kind", BLOCK(moe.kind), mlp_kinds, "swiglu", "nonlinearity, gated or not"),
    INT("shared_experts", BLOCK(moe.shared_experts), 0, DIM_MAX, "0",
        "experts that every token passes"),
    INT("shared_d_ff", BLOCK(moe.shared_d_ff), 0, DIM_MAX, "=shared_experts x d_ff",
        "inner width of all shared experts together"),
    ENUM("dispatch", BLOCK(moe.dispatch), dispatches, "ragged", "how tokens reach their experts"),
    REAL("capacity_factor", BLOCK(moe.capacity_factor), 0.001, 1e6, "1.25",
         "einsum: room of an expert, as a multiple of the even share"),
    ENUM("router_dtype", BLOCK(moe.router_dtype), dtypes, "f32", "dtype of the router"),
    ENUM("weight_sum", BLOCK(moe.weight_sum), weight_sums, "compute",
         "dtype of the weighted sum of the experts"),
    BOOL("pad_to_capacity", BLOCK(moe.pad_to_capacity), "false",
         "ragged: rows padded or cut to capacity_factor x the even share"),
    ENUM("act_dtype", BLOCK(moe.act_dtype), act_dtypes, "compute", "dtype of the nonlinearity"),
    ENUM("kernel", BLOCK(moe.kernel), moe_kernels, "gmm", "grouped product of ragged"),
    REAL("buffer_factor", BLOCK(moe.buffer_factor), 0, 1e6, "0",
         "ragged: rows that a rank can receive, as a multiple of the even share; 0: all"),
    BOOL("bias", BLOCK(moe.bias), "false", "biases in the experts"),
    BOOL("router_bias", BLOCK(moe.router_bias), "false", "bias in the router"),
};

static const struct hb_key precision_keys[] = {
    ENUM("params", SPEC(precision.params), dtypes, "f32", "dtype of the parameters"),
    ENUM("master", SPEC(precision.master), masters, "none", "a further f32 copy of the parameters"),
    ENUM("compute", SPEC(precision.compute), dtypes, "bf16", "dtype of the products"),
    ENUM("grads", SPEC(precision.grads), grads, "params", "dtype of the gradients"),
    ENUM("norm", SPEC(precision.norm_f32), norm_dtypes, "f32", "dtype within norms"),
    ENUM("fp8", SPEC(precision.fp8), fp8s, "none", "linear layers compute in 8 bit (nvfp4: 4)"),
    BOOL("fp8_gather", SPEC(precision.fp8_gather), "false", "fsdp gathers these weights as 8 bit"),
    BOOL("fp8_params", SPEC(precision.fp8_params), "false", "these weights are stored as 8 bit"),
};

static const struct hb_key batch_keys[] = {
    INT("global", SPEC(batch.global), 1, BATCH_MAX, "64", "sequences of a step over all devices"),
    INT("seq", SPEC(batch.seq), 1, BATCH_MAX, "8192", "tokens of a sequence"),
    INT("accumulate", SPEC(batch.accumulate), 1, BATCH_MAX, "1", "microbatches accumulated"),
    REAL("per_device", SPEC(batch.per_device), 0, BATCH_MAX, "0",
         "instead of global: sequences of one microbatch for each device; 0: not said"),
    INT("tokens", SPEC(batch.tokens), 0, BYTES_MAX, "0",
        "instead of global: tokens of a step over all devices; 0: not said"),
};

static const struct hb_key optimizer_keys[] = {
    ENUM("name", SPEC(optimizer.name), optimizers, "adamw", "update rule"),
    {.name = "moments",
     .kind = HB_KEY_MOMENTS,
     SPEC_LIST(optimizer.moments, optimizer.moment_count),
     .words = moments,
     .def = "=f32 for each; of torch without a master copy as the parameters",
     .doc = "dtype of each full-size state: adamw 2, momentum, lion, muon 1, others 0"},
    ENUM("offload", SPEC(optimizer.offload), offloads, "none", "where states live between steps"),
    BOOL("clip", SPEC(optimizer.clip), "false", "global-norm clipping"),
    ENUM("ema", SPEC(optimizer.ema), emas, "none", "an averaged copy of the parameters"),
    BOOL("in_backward", SPEC(optimizer.in_backward), "false",
         "each parameter is updated as soon as its gradient exists"),
    ENUM("others", SPEC(optimizer.others), others, "same",
         "muon: what updates embeddings, head, norms and biases"),
    ENUM("params_offload", SPEC(optimizer.params_offload), offloads, "none",
         "where parameters live between steps"),
};

static const struct hb_key mesh_keys[] = {
    AXIS("data", mesh[HB_AX_DATA], "1", "replicas of the parameters"),
    AXIS("fsdp", mesh[HB_AX_FSDP], "=1; without mesh all devices, or 8",
         "parameters split, gathered when used"),
    AXIS("tensor", mesh[HB_AX_TENSOR], "1", "heads, d_ff and vocab split"),
    AXIS("sequence", mesh[HB_AX_SEQUENCE], "1", "sequence split"),
    AXIS("expert", mesh[HB_AX_EXPERT], "1", "experts split"),
    AXIS("pipeline", mesh[HB_AX_PIPELINE], "1", "stages of layers"),
};

static const struct hb_key sharding_keys[] = {
    BOOL("vocab_over_tensor", SPEC(sharding.vocab_over_tensor), "true",
         "embedding and unembedding split over the tensor axis"),
    BOOL("residual_over_tensor", SPEC(sharding.residual_over_tensor), "false",
         "the residual split over the tensor axis (sequence parallelism)"),
    BOOL("optimizer_over_data", SPEC(sharding.optimizer_over_data), "false",
         "ZeRO-1: states split over the data axis too"),
    BOOL("grads_over_data", SPEC(sharding.grads_over_data), "false",
         "ZeRO-2: gradients split over the data axis too"),
    BOOL("activation_constraints", SPEC(sharding.activation_constraints), "true",
         "false: the compiler's propagation decides on activations"),
    BOOL("reshard_after_forward", SPEC(sharding.reshard_after_forward), "true",
         "false: gathered weights stay until the backward pass"),
    INT("reshard_ranks", SPEC(sharding.reshard_ranks), 0, AXIS_MAX, "0",
        "torch: after the forward pass weights stay split over so many ranks (FSDP2's "
        "reshard_after_forward: N); 0: over all"),
    BOOL("states_over_sequence", SPEC(sharding.states_over_sequence), "false",
         "what is split over data or fsdp is split over sequence too"),
    BOOL("dense_over_expert", SPEC(sharding.dense_over_expert), "false",
         "parameters outside the experts split over expert as over fsdp"),
    INT("expert_tensor", SPEC(sharding.expert_tensor), 1, AXIS_MAX, "=mesh.tensor",
        "ranks of the tensor axis that split one expert"),
    ENUM("sequence_kind", SPEC(sharding.sequence_kind), sequence_kinds, "ring",
         "how attention crosses the sequence axis"),
    ENUM("norms", SPEC(sharding.norms), norms_over, "replicated", "where norm weights are split"),
    ENUM("residual_split", SPEC(sharding.residual_split), splits, "sequence",
         "dimension that residual_over_tensor splits"),
    BOOL("ends_over_pipeline", SPEC(sharding.ends_over_pipeline), "false",
         "embedding and loss: their batch is split over pipeline too"),
    BOOL("router_over_expert", SPEC(sharding.router_over_expert), "true",
         "with dense_over_expert: the router is split like others"),
    BOOL("sequence_balance", SPEC(sharding.sequence_balance), "false",
         "sequence chunks dealt out so that causal work is even"),
};

static const struct hb_key stack_keys[] = {
    ENUM("form", SPEC(stack.form), forms, "scan", "how layers follow one another"),
    INT("outer", SPEC(stack.outer), 0, LAYERS_MAX, "0",
        "nested: outer blocks; 0: the largest divisor <= sqrt of the depth"),
    INT("unroll", SPEC(stack.unroll), 1, LAYERS_MAX, "1", "layers of one scan step"),
    INT("axis", SPEC(stack.axis), 0, 3, "0", "dimension of stacked parameters that counts layers"),
};

#define REMAT_KEYS(where, d)                                                                       \
    ENUM("policy", where(policy), policies, d("full"), "what is kept for the backward pass"),      \
        MASK("save", where(save), tensor_names, d("[]"), "names: tensors kept on the device"),     \
        MASK("offload", where(offload), tensor_names, d("[]"),                                     \
             "tensors kept in pinned host memory until the backward pass")
#define ALL(f)       SPEC(remat.all.f)
#define PLAIN(d)     d
#define INHERITED(d) "=that of remat"

static const struct hb_key remat_keys[] = {
    REMAT_KEYS(ALL, PLAIN),
    BOOL("outer", SPEC(remat.outer), "true", "nested: the outer block is rematerialised as well"),
    {.name = "per_block",
     .kind = HB_KEY_PER_BLOCK,
     NOWHERE,
     .section = HB_SEC_OWN_REMAT,
     .def = "{}",
     .doc = "block name -> its own policy, save, offload"},
    INT("every", SPEC(remat.every), 1, LAYERS_MAX, "1", "only each n-th layer is rematerialised"),
    MASK("modules", SPEC(remat.modules), remat_modules, "[]",
         "policy none: only these parts are recomputed"),
    REAL("budget", SPEC(remat.budget), 0, 1, "1",
         "policy none, runtime.compile: torch's activation_memory_budget: the share of a compiled "
         "layer's saved activations that it keeps; 0: its input alone"),
};

static const struct hb_key own_remat_keys[] = {REMAT_KEYS(REMAT, INHERITED)};

static const struct hb_key loss_keys[] = {
    INT("chunks", SPEC(loss.chunks), 1, BATCH_MAX, "1", "chunks of the logits"),
    ENUM("dot", SPEC(loss.dot), dtypes, "f32", "dtype of the logits"),
    BOOL("onehot", SPEC(loss.onehot), "false", "targets as one-hot rows"),
    ENUM("softmax", SPEC(loss.softmax), dtypes, "f32", "dtype that logits are converted to"),
    ENUM("kernel", SPEC(loss.kernel), loss_kernels, "eager", "how much of the loss is one kernel"),
    ENUM(
        "kind", SPEC(loss.kind), loss_kinds, "lm",
        "torch: lm: cross entropy; grpo: log-probabilities of the tokens, sequence by sequence, of "
        "logits over a temperature (TRL's GRPOTrainer)"),
    BOOL("reference", SPEC(loss.reference), "true",
         "of grpo: a frozen reference model in the compute type, sharded as the policy is (beta "
         "above 0)"),
    BOOL("entropy", SPEC(loss.entropy), "true", "of grpo: the policy's entropy is told, too"),
    BOOL(
        "value", SPEC(loss.value), "false",
        "of grpo: PPO's value model, of the policy's shapes with a head of one column, sharded and "
        "trained as the policy is, whose step goes before the policy's"),
    REAL("softcap", SPEC(loss.softcap), 0, 1e9, "0", "logits become cap x tanh(x / cap); 0: none"),
    ENUM("chunk_over", SPEC(loss.chunk_over), chunk_overs, "sequence", "what chunks divides"),
    ENUM("held", SPEC(loss.held), holds, "none",
         "torch: logits that the program keeps a name for until the next step's: none (del), those "
         "of the head, or f32 ones that the model returns"),
};

static const struct hb_key embedding_keys[] = {
    ENUM("lookup", SPEC(lookup), lookups, "gather", "gather rows, or a product with one-hot rows"),
};

static const struct hb_key pipeline_keys[] = {
    INT("microbatches", SPEC(pipeline.microbatches), 1, BATCH_MAX, "8", "parts of the batch"),
    INT("repeats", SPEC(pipeline.repeats), 1, LAYERS_MAX, "1", "circular: stages a device"),
    ENUM(
        "schedule", SPEC(pipeline.schedule), schedules, "spmd",
        "spmd: vmapped stages inside one scan; torch: its own (zbv, dualpipe_v: two stages a rank, "
        "in V shape)"),
    INT("group", SPEC(pipeline.group), 0, BATCH_MAX, "0",
        "torch, interleaved: microbatches that run through a chunk before the next one does "
        "(Megatron's microbatch_group_size_per_vp_stage); 0: stages"),
    ENUM("shift", SPEC(pipeline.shift), shifts, "roll", "how the state moves to the next stage"),
    ENUM("constraints", SPEC(pipeline.constraints), constraints, "state",
         "sharding constraints inside the iteration"),
    BOOL("trivial_constraints", SPEC(pipeline.trivial_constraints), "true",
         "constraints over axes of size one are kept"),
    ENUM("outputs", SPEC(pipeline.outputs), outputs, "stacked",
         "outputs stacked by the scan, or written into a buffer"),
    BOOL("remat_iteration", SPEC(pipeline.remat_iteration), "false",
         "the iteration is rematerialised"),
    MASK("iteration_save", SPEC(pipeline.iteration_save), iteration_names, "[layer_in]",
         "what a rematerialised iteration keeps"),
    BOOL("remat_layer", SPEC(pipeline.remat_layer), "true", "layers are rematerialised"),
    {.name = "rank",
     .kind = HB_KEY_RANK,
     SPEC(pipeline.rank),
     .high = AXIS_MAX,
     .def = "max",
     .doc = "the stage whose memory is quoted, from 0"},
    INTS("layers", HB_KEY_EVEN_INTS, SPEC_LIST(pipeline.layers, pipeline.layer_count), 0,
         LAYERS_MAX, "even", "layers of each chunk, stages x repeats numbers"),
    ENUM("gather", SPEC(pipeline.gather), pipe_gathers, "iteration",
         "when weights are gathered over fsdp"),
    BOOL("delay", SPEC(pipeline.delay), "false", "outputs are sent on one iteration later"),
    BOOL("unroll", SPEC(pipeline.unroll), "false", "the iterations are unrolled"),
};

static const struct hb_key step_keys[] = {
    BOOL("donate", SPEC(step.donate), "true", "the state's buffers are reused for the new state"),
    BOOL("nan_to_num", SPEC(step.nan_to_num), "false", "gradients are cleaned"),
    ENUM("cast", SPEC(step.cast_upfront), casts, "in_layer", "where weights become compute dtype"),
};

static const struct hb_key load_keys[] = {
    ENUM("method", SPEC(load.method), load_methods, "sharded", "how the state is built"),
    INT("processes", SPEC(load.processes), 1, AXIS_MAX, "8", "hosts that take part"),
    BYTES("largest_array", SPEC(load.largest_array), "0", "0: the model's largest parameter"),
};

static const struct hb_key hardware_keys[] = {
    TEXT("device", SPEC(hardware.device), "tpu-v5p", "a device of the table, or a profile file"),
    INT("count", SPEC(hardware.count), 1, DEVICES_MAX, "=product of the mesh", "devices"),
    BYTES("hbm", SPEC(hardware.hbm_bytes), "0",
          "what a program may use; 0: the device's own less reserve"),
    BYTES("reserve", SPEC(hardware.reserve_bytes), "=the device's own",
          "kept for the runtime, where hbm is 0"),
    BYTES("host_memory", SPEC(hardware.host_memory_bytes), "0",
          "what programs may use of a host, shared by its devices; 0: the device's own less "
          "host_reserve"),
    BYTES("host_reserve", SPEC(hardware.host_reserve_bytes), "=5 % and 380 MiB of a host",
          "kept for a host's system, where host_memory is 0"),
};

static const struct hb_key runtime_keys[] = {
    ENUM("framework", SPEC(runtime.framework), frameworks, "auto",
         "whose step it is; auto: maxtext with stack.axis 1 or split norms, torchtitan with torch"),
    BOOL("compile", SPEC(runtime.compile), "false", "torch.compile on each layer"),
    ENUM("allocator", SPEC(runtime.allocator), allocators, "max_allocated",
         "which of the allocator's figures is predicted"),
    BOOL("expandable_segments", SPEC(runtime.expandable_segments), "false", "segments grow"),
    INT("reduce_bucket", SPEC(runtime.reduce_bucket), 1, 1e12, "500000000",
        "torch, ZeRO: elements of the buffer that gradients are reduced in (DeepSpeed's "
        "reduce_bucket_size; of ZeRO-1 and -2 twice that with overlap_comm)"),
    INT("prefetch_bucket", SPEC(runtime.prefetch_bucket), 0, 1e12, "50000000",
        "torch, ZeRO-3: elements gathered ahead at a time (stage3_prefetch_bucket_size)"),
    INT("live_parameters", SPEC(runtime.live_parameters), 0, 1e13, "1000000000",
        "torch, ZeRO-3: elements there or coming at which nothing more is gathered ahead "
        "(stage3_max_live_parameters)"),
    INT("reuse_distance", SPEC(runtime.reuse_distance), 0, 1e13, "1000000000",
        "torch, ZeRO-3: elements of the pass within which what comes again is not given back "
        "(stage3_max_reuse_distance)"),
    INT("persist_below", SPEC(runtime.persist_below), 0, 1e12, "100000",
        "torch, ZeRO-3: elements of parameters that stay whole, at most "
        "(stage3_param_persistence_threshold)"),
    INT("update_group", SPEC(runtime.update_group), 1, 1e13, "1000000000",
        "torch, ZeRO-3: elements of a device's part that are updated at a time (sub_group_size)"),
    BYTES("max_split_size", SPEC(runtime.max_split_bytes), "0",
          "larger blocks are not split (PyTorch: above 20 MiB); 0: all are"),
    BOOL("grouped_gemm", SPEC(runtime.grouped_gemm), "false",
         "torch, megatron: experts' products are grouped with gathered tokens, too "
         "(moe-grouped-gemm)"),
    BYTES(
        "blas_workspace", SPEC(runtime.blas_workspace), "0",
        "torch: bytes of the workspace that the products of either pass take from the allocator: "
        "32MiB on H100, 8320KiB on A100; 0: it is left out (with Megatron: as the device has it)"),
    REAL("memory_fraction", SPEC(runtime.memory_fraction), 0, 1, "0",
         "share of the device that programs get, as XLA_PYTHON_CLIENT_MEM_FRACTION; 0: the "
         "runtime's own (0.75 for xla-gpu, else 1)"),
    REAL("gc_threshold", SPEC(runtime.gc_threshold), 0, 1, "0",
         "torch, with memory_fraction: share of what that gives at which cached segments that were "
         "not used for long go back (garbage_collection_threshold); 0: they do not"),
    ENUM("wrap", SPEC(runtime.wrap_root), wraps, "split",
         "FSDP units: embedding, layers, norm with head; root: the ends in the root's own"),
    BOOL("fsdp1", SPEC(runtime.fsdp1), "false",
         "FullyShardedDataParallel (FSDP1) in place of fully_shard: a unit's parameters are one; "
         "the "
         "ends are the root's"),
    BOOL(
        "cuda_graphs", SPEC(runtime.cuda_graphs), "false",
        "torchtitan on NVIDIA (disable_cuda_graphs: false): from the second step on the passes are "
        "a graph that owns their memory, and gradients stay from step to step"),
    BOOL("async_tp", SPEC(runtime.async_tp), "false",
         "torchtitan's enable_async_tensor_parallel: compiled products take their gathers and sums "
         "over tensor into themselves, through symmetric memory outside the allocator; Megatron's "
         "tp-comm-overlap: the same in Transformer Engine's userbuffers"),
    BOOL("fused_norm", SPEC(runtime.fused_norm), "true",
         "torchtitan: RMSNorm is one kernel (on GPUs from PyTorch 2.9 on) and keeps no f32 copies; "
         "false: single operations, as before"),
    BOOL("written_norm", SPEC(runtime.written_norm), "false",
         "torchtitan: the model writes RMSNorm out, as Llama's own code and Hugging Face's do: to "
         "f32, scaled, back to its dtype, times the weight"),
    BOOL("grad_fusion", SPEC(runtime.grad_fusion), "true",
         "weight gradients are added straight into the buffer"),
};

static const struct hb_key plan_keys[] = {
    MAYBE("search", SPEC(plan.present), HB_SEC_SEARCH, "what may change; the rest stays"),
    MAP("keep", HB_SEC_KEEP, "limits"),
    ENUM("objective", SPEC(plan.objective), objectives, "tokens_per_second", "what is best"),
    REAL("confidence", SPEC(plan.confidence), 0.5, 0.999, "0.95",
         "of the interval that a peak is told with"),
    TEXT("margin", SPEC(plan.margin), "confident",
         "what stays free: confident: so much that the upper end of the peak's interval fits; "
         "none; bytes; or as 5%"),
    ENUM("prefer", SPEC(plan.prefer), prefers, "room",
         "of plans that are at most 1 % worse than the best: room: the one that needs least, if "
         "that is less by 2 % of the budget (not with margin none); speed: the best"),
};

static const struct hb_key search_keys[] = {
    {.name = "mesh",
     .kind = HB_KEY_MESHES,
     NOWHERE,
     .words = axes,
     .section = HB_SEC_MESH,
     .def = "[]",
     .doc = "axes that may be set, or a list of meshes"},
    BOOL("remat", SPEC(plan.remat), "false", "save, recompute or offload per tensor and block"),
    MASK("stack", SPEC(plan.stack_forms), forms, "[]", "forms that may be chosen"),
    MASK("optimizer_offload", SPEC(plan.optimizer_offload), offloads, "[]", "places to choose"),
    MAP("batch", HB_SEC_SEARCH_BATCH, "batches to choose"),
    INTS("loss_chunks", HB_KEY_INTS, SPEC_LIST(plan.loss_chunks, plan.loss_chunks_count), 1,
         BATCH_MAX, "[]", "chunks to choose"),
    INTS("microbatches", HB_KEY_INTS, SPEC_LIST(plan.microbatches, plan.microbatches_count), 1,
         BATCH_MAX, "[]", "the pipeline's microbatches to choose"),
    INTS("repeats", HB_KEY_INTS, SPEC_LIST(plan.repeats, plan.repeats_count), 1, LAYERS_MAX, "[]",
         "compiler torch: chunks of a pipeline's rank to choose"),
    BOOL("reshard", SPEC(plan.reshard), "false",
         "compiler torch: whether gathered weights stay until the backward pass"),
};

static const struct hb_key search_batch_keys[] = {
    INTS("global", HB_KEY_INTS, SPEC_LIST(plan.batch_global, plan.batch_global_count), 1, BATCH_MAX,
         "[]", "sequences of a step to choose"),
    INTS("accumulate", HB_KEY_INTS, SPEC_LIST(plan.accumulate, plan.accumulate_count), 1, BATCH_MAX,
         "[]", "microbatches accumulated to choose"),
};

#define KEEP(n, axis)                                                                              \
    INT(n, SPEC(plan.axis_max[axis]), 0, AXIS_MAX, "0", "largest size of this axis; 0: no limit")
static const struct hb_key keep_keys[] = {
    KEEP("data_max", HB_AX_DATA),
    KEEP("fsdp_max", HB_AX_FSDP),
    KEEP("tensor_max", HB_AX_TENSOR),
    KEEP("sequence_max", HB_AX_SEQUENCE),
    KEEP("expert_max", HB_AX_EXPERT),
    KEEP("pipeline_max", HB_AX_PIPELINE),
    INT("min_tokens_per_device", SPEC(plan.min_tokens_per_device), 0, BATCH_MAX, "0",
        "least tokens of a step on a device; 0: no limit"),
};

#define ROW(id, path, keys, doc) [id] = {path, doc, keys, COUNT(keys)}
static const struct hb_section sections[] = {
    ROW(HB_SEC_ROOT, "", root_keys, "the file"),
    ROW(HB_SEC_MODEL, "model", model_keys, "what is trained; sizes are unsharded"),
    ROW(HB_SEC_BLOCK, "model.blocks[]", block_keys, "a group of identical layers"),
    ROW(HB_SEC_ATTENTION, "model.blocks[].attention", attention_keys, "attention of a layer"),
    ROW(HB_SEC_MLP, "model.blocks[].mlp", mlp_keys, "dense MLP of a layer"),
    ROW(HB_SEC_MOE, "model.blocks[].moe", moe_keys, "mixture of experts of a layer"),
    ROW(HB_SEC_PRECISION, "precision", precision_keys, "element types"),
    ROW(HB_SEC_BATCH, "batch", batch_keys, "sequences of a step"),
    ROW(HB_SEC_OPTIMIZER, "optimizer", optimizer_keys, "update rule and its states"),
    ROW(HB_SEC_MESH, "mesh", mesh_keys, "devices along each axis"),
    ROW(HB_SEC_SHARDING, "sharding", sharding_keys, "what is split over which axis"),
    ROW(HB_SEC_STACK, "stack", stack_keys, "how layers follow one another"),
    ROW(HB_SEC_REMAT, "remat", remat_keys, "what is kept, recomputed or offloaded"),
    ROW(HB_SEC_OWN_REMAT, "remat.per_block.NAME", own_remat_keys, "the same for one block"),
    ROW(HB_SEC_LOSS, "loss", loss_keys, "logits and cross-entropy"),
    ROW(HB_SEC_EMBEDDING, "embedding", embedding_keys, "token embedding"),
    ROW(HB_SEC_PIPELINE, "pipeline", pipeline_keys, "with mesh.pipeline above 1"),
    ROW(HB_SEC_STEP, "step", step_keys, "the step function"),
    ROW(HB_SEC_LOAD, "load", load_keys, "building the state before step 1"),
    ROW(HB_SEC_HARDWARE, "hardware", hardware_keys, "devices"),
    ROW(HB_SEC_RUNTIME, "runtime", runtime_keys, "with compiler: torch"),
    ROW(HB_SEC_PLAN, "plan", plan_keys, "the task of `hbmsim plan`"),
    ROW(HB_SEC_SEARCH, "plan.search", search_keys, "what may change; what is absent stays"),
    ROW(HB_SEC_SEARCH_BATCH, "plan.search.batch", search_batch_keys, "batches to choose"),
    ROW(HB_SEC_KEEP, "plan.keep", keep_keys, "limits of the search"),
};
_Static_assert(sizeof sections / sizeof sections[0] == HB_SEC_COUNT, "one row a section");

const struct hb_section *hb_section(enum hb_section_id id)
{
    if (id >= HB_SEC_COUNT)
        HB_BUG("section %d", (int)id);
    return &sections[id];
}

static bool is_field_same(size_t offset, size_t size_bytes, const struct hb_block *a,
                          const struct hb_block *b)
{
    return memcmp((const char *)a + offset, (const char *)b + offset, size_bytes) == 0;
}

/* Of a block's section: its keys are places in the block. */
static bool is_section_same(enum hb_section_id id, const struct hb_block *a,
                            const struct hb_block *b)
{
    bool same = true;
    for (int i = 0; i < sections[id].key_count && same; i++) {
        const struct hb_key *k = &sections[id].keys[i];
        if (k->kind == HB_KEY_SECTION)
            same = is_section_same(k->section, a, b);
        else if (k->offset != HB_KEY_NOWHERE)
            same = is_field_same(k->offset, k->size_bytes, a, b) &&
                   (!k->count_offset || is_field_same(k->count_offset, sizeof(int), a, b));
    }
    return same;
}

bool hb_schema_same_block(const struct hb_block *a, const struct hb_block *b)
{
    return is_section_same(HB_SEC_BLOCK, a, b) && hb_remat_same(&a->remat, &b->remat);
}

const char *hb_word_text(const struct hb_word *words, int value)
{
    for (; words->text; words++)
        if (words->value == value)
            return words->text;
    return NULL;
}
