/* What of compiler: torch has no memory yet, by framework: see support.h. */
#include "models/support_torch.h"

#include "models/refusal.h"
#include "models/schema.h"

static bool check_block(const struct hb_refusing *r, const struct hb_block *b, bool tune)
{
    const struct hb_attention *a = &b->attention;
    const struct hb_refusal gaps[] = {
        {a->kind == HB_ATTN_NONE, ".attention.kind",
         "only gqa and mla are simulated with torchtitan yet"},
        {a->kernel != HB_KERNEL_FLASH, ".attention.kernel",
         "only flash is simulated with torchtitan yet (naive with runtime.framework: megatron)"},
        {b->mlp.bias && b->mlp.kind != HB_MLP_GELU, ".mlp.bias",
         "biases of gated MLPs are not simulated with torchtitan yet; use bias: false"},
        {b->moe.experts == 0 && b->mlp.kind == HB_MLP_RELU2, ".mlp.kind",
         "only swiglu, geglu and gelu are simulated with torchtitan yet"},
        {b->mlp.fused, ".mlp.fused",
         "fused weights are not simulated with torchtitan yet; use false"},
        {a->softcap > 0, ".attention.softcap", "not simulated with torchtitan yet; use 0"},
        {b->remat.offload != 0 &&
             (!tune || b->remat.offload != 1u << HB_TN_LAYER_IN || b->remat.save != 0),
         "remat.offload",
         "only that of torchtune, save: [] with offload: [layer_in], is simulated yet; use "
         "offload: []"},
        {b->remat.policy == HB_POLICY_DOTS || b->remat.policy == HB_POLICY_DOTS_NO_BATCH,
         "remat.policy", "dots is of XLA; use none, full or names"},
    };
    return HB_REFUSE(r, gaps);
}

/* Experts as torchtitan runs them: sorted copies through grouped products, in f32 or bf16 routed.
 */
static bool check_experts(const struct hb_refusing *r, const struct hb_spec *s,
                          const struct hb_moe *m)
{
    int64_t tensor = s->mesh[HB_AX_TENSOR], each = s->sharding.expert_tensor;
    int64_t ways = hb_titan_expert_ways(s), ranks = s->mesh[HB_AX_FSDP];
    if (s->sharding.states_over_sequence)
        ranks *= s->mesh[HB_AX_SEQUENCE];
    int64_t counted = ways > 1 ? ways : s->mesh[HB_AX_DATA]; /* as torchtitan does, with replicas */
    bool across = ranks > m->experts / counted;              /* split along d_ff and d_model */
    const struct hb_refusal gaps[] = {
        {ranks * ways == 1, "mesh.fsdp",
         "experts are simulated with FSDP only; use mesh.fsdp above 1"},
        {s->runtime.compile, "runtime.compile",
         "compiled layers with experts are not simulated yet; use runtime.compile: false"},
        {tensor > 1 && each > 1 && each != tensor, "sharding.expert_tensor",
         "torchtitan splits an expert over all ranks of the tensor axis, or none; use 1, or "
         "mesh.tensor"},
        {m->experts % ways, ".moe.experts", "does not divide among the ranks that share them"},
        {tensor > 1 && each != 1 && m->d_ff % tensor, ".moe.d_ff",
         "mesh.tensor does not divide it; use one that does, or sharding.expert_tensor: 1"},
        {ways > 1 && !s->sharding.dense_over_expert, "sharding.dense_over_expert",
         "torchtitan splits other weights over the ranks of experts, too; use true"},
        {m->dispatch != HB_DISPATCH_RAGGED, ".moe.dispatch",
         "only ragged (all-to-all, dropless) is simulated with torchtitan yet"},
        {m->kind != HB_MLP_SWIGLU, ".moe.kind", "only swiglu is simulated with torchtitan yet"},
        {m->pad_to_capacity, ".moe.pad_to_capacity",
         "is not torchtitan's, which drops no token; use false"},
        {m->router_dtype != HB_DT_F32 && m->router_dtype != HB_DT_BF16, ".moe.router_dtype",
         "only f32 and bf16 are simulated with torchtitan yet"},
        {s->runtime.wrap_root, "runtime.wrap",
         "root is of torchtitan before it had experts; use split"},
        {s->sharding.reshard_ranks > 0, "sharding.reshard_ranks",
         "not simulated with experts yet; use 0"},
        {s->optimizer.params_offload != HB_PLACE_NONE, "optimizer.params_offload",
         "not simulated with experts yet; use none"},
        {across && m->d_ff % ranks, ".moe.d_ff",
         "FSDP splits each expert here, as it has more ranks than there are experts, and PyTorch "
         "refuses what does not divide; use mesh.fsdp that divides it"},
        {across && s->model.d_model % ranks, "model.d_model",
         "FSDP splits each expert here, as it has more ranks than there are experts, and PyTorch "
         "refuses what does not divide; use mesh.fsdp that divides it"},
    };
    return HB_REFUSE(r, gaps);
}

/* Selective checkpoints of another list than torchtitan's: of products and attention, each by its
 * name (create_selective_checkpoint_contexts with a policy of one's own). */
static bool check_own_list(const struct hb_refusing *r, const struct hb_spec *s,
                           const struct hb_block *b)
{
    static const char *const key = "remat.save";
    const uint32_t known =
        HB_TITANS_LIST | 1u << HB_TN_K | 1u << HB_TN_ATTN_OUT | 1u << HB_TN_MLP_UP;
    const struct hb_attention *a = &b->attention;
    bool keeps_attention = hb_remat_list(&b->remat) >> HB_TN_ATTN_CTX & 1;
    const struct hb_refusal gaps[] = {
        {(hb_remat_list(&b->remat) & ~known) != 0, key,
         "with PyTorch only products and attention are simulated yet; use names of q, k, v, "
         "attn_ctx, attn_out, mlp_gate, mlp_up and mlp_down, or policy: full"},
        {a->kind != HB_ATTN_GQA || a->fused_qkv || a->bias != HB_BIAS_NONE || a->sinks ||
             b->mlp.bias || b->moe.experts > 0,
         key,
         "with mla, experts, sinks, biases or fused products torchtitan's list alone is simulated "
         "yet; use [q, v, attn_ctx, mlp_gate, mlp_down], or policy: full"},
        {s->runtime.compile, key,
         "of compiled layers torchtitan's list alone is simulated yet; use "
         "[q, v, attn_ctx, mlp_gate, mlp_down], or runtime.compile: false"},
        {s->mesh[HB_AX_SEQUENCE] > 1 && !keeps_attention, key,
         "without attn_ctx not simulated with mesh.sequence yet; add it, or use policy: full"},
    };
    return !hb_remat_is_own(&b->remat) || HB_REFUSE(r, gaps);
}

/* Paged states of a single device; everything of a shard (FSDP2's CPUOffloadPolicy); states or
 * parameters of ZeRO-3. */
static bool offload_is_known(const struct hb_spec *s, bool plain, bool tune)
{
    enum hb_place states = s->optimizer.offload, params = s->optimizer.params_offload;
    if (states == HB_PLACE_NONE && params == HB_PLACE_NONE)
        return true;
    if (!plain && s->precision.master) /* DeepSpeed's ZeRO-3 */
        return (states == HB_PLACE_NONE || states == HB_PLACE_PINNED_HOST) &&
               (params == HB_PLACE_NONE || params == HB_PLACE_PINNED_HOST);
    if (states != HB_PLACE_PINNED_HOST)
        return false;
    return plain ? tune && params == HB_PLACE_NONE : params == HB_PLACE_PINNED_HOST;
}

/* Without FSDP: one device, or copies, whose states DeepSpeed's ZeRO splits. */
static bool check_plain(const struct hb_refusing *r, const struct hb_spec *s)
{
    bool zero = s->sharding.optimizer_over_data && s->mesh[HB_AX_DATA] > 1;
    const struct hb_refusal gaps[] = {
        {s->sharding.reshard_ranks > 0, "sharding.reshard_ranks", "is FSDP2's; use mesh.fsdp"},
        {s->precision.params != HB_DT_BF16 && s->precision.params != HB_DT_F32, "precision.params",
         "only f32 and bf16 parameters are simulated yet"},
        {s->precision.params == HB_DT_BF16 && s->precision.compute != HB_DT_BF16,
         "precision.compute",
         "without FSDP (mesh.fsdp 1) bf16 parameters are what products take; use bf16"},
        {s->precision.params == HB_DT_F32 && zero, "precision.params",
         "ZeRO is simulated with bf16 parameters only; use bf16"},
        {s->precision.master && !zero, "precision.master",
         "without FSDP (mesh.fsdp 1) it is of ZeRO-1 and ZeRO-2; use none, or "
         "sharding.optimizer_over_data: true"},
        {!s->precision.master && zero, "precision.master", "ZeRO has one; use f32"},
        {s->sharding.grads_over_data && !s->sharding.optimizer_over_data,
         "sharding.optimizer_over_data", "ZeRO-2 splits states, too; use true"},
        {s->precision.grads == HB_GRADS_F32, "precision.grads",
         "without FSDP (mesh.fsdp 1) gradients are as their parameters; use params"},
        {s->runtime.wrap_root, "runtime.wrap", "root is FSDP's; use split"},
        {s->runtime.fsdp1, "runtime.fsdp1", "is FSDP's; use mesh.fsdp above 1, or false"},
    };
    return HB_REFUSE(r, gaps);
}

/* Tensor parallelism without FSDP, as torchtitan has it: of parameters in what products take. */
static bool check_plain_tensor(const struct hb_refusing *r, const struct hb_spec *s)
{
    const struct hb_refusal gaps[] = {
        {s->mesh[HB_AX_DATA] > 1, "mesh.tensor",
         "DistributedDataParallel has no other axis in torchtitan; use mesh.fsdp, mesh.tensor 1, "
         "or runtime.framework: megatron"},
        {s->precision.params != s->precision.compute, "precision.params",
         "torchtitan turns mixed precision off with mesh.tensor and no FSDP; use params as "
         "compute"},
        {s->runtime.framework == HB_FW_TORCHTUNE, "mesh.tensor", "not simulated with torchtune"},
        {s->model.tied_embeddings, "model.tied_embeddings",
         "not simulated with mesh.tensor and no FSDP yet; use false"},
        {s->runtime.compile, "runtime.compile",
         "not simulated with mesh.tensor and no FSDP yet; use false"},
        {s->loss.chunks > 1, "loss.chunks",
         "not simulated with mesh.tensor and no FSDP yet; use 1"},
        {s->precision.fp8 != HB_FP8_NONE, "precision.fp8",
         "not simulated with mesh.tensor and no FSDP yet; use none"},
        {s->optimizer.in_backward, "optimizer.in_backward", "not simulated with mesh.tensor yet"},
    };
    return s->mesh[HB_AX_TENSOR] == 1 || HB_REFUSE(r, gaps);
}

static bool parts_passes(const struct hb_spec *s)
{
    return s->mesh[HB_AX_PIPELINE] > 1 && hb_schedule_parts(s->pipeline.schedule);
}

static bool check_fsdp(const struct hb_refusing *r, const struct hb_spec *s)
{
    const struct hb_refusal gaps[] = {
        {s->sharding.reshard_ranks > 0 && !s->sharding.reshard_after_forward,
         "sharding.reshard_after_forward", "must be true for reshard_ranks"},
        {s->sharding.reshard_ranks > 0 && hb_titan_shard_ranks(s) % s->sharding.reshard_ranks,
         "sharding.reshard_ranks", "does not divide mesh.fsdp; use one that does"},
        {s->sharding.reshard_ranks > 0 && s->mesh[HB_AX_TENSOR] > 1, "sharding.reshard_ranks",
         "PyTorch cannot with tensor parallelism; use 0, or mesh.tensor 1"},
        {s->precision.params != HB_DT_F32 && s->precision.params != HB_DT_BF16, "precision.params",
         "only f32 and bf16 parameters are simulated with torchtitan yet"},
        {s->runtime.fsdp1 && s->precision.params != HB_DT_F32, "precision.params",
         "FSDP1 is simulated with f32 parameters only yet; use f32"},
        {s->precision.fp8 != HB_FP8_NONE && s->precision.params != HB_DT_F32, "precision.params",
         "torchao's 8-bit products are simulated with f32 parameters only yet; use f32"},
        {s->loss.chunks > 1 && (s->runtime.wrap_root || s->runtime.fsdp1), "loss.chunks",
         "is of torchtitan with units of its own for the ends; use wrap: split, and FSDP2"},
        {s->loss.chunks > 1 && s->loss.held != HB_HELD_NONE, "loss.held",
         "chunks of logits are held one at a time; use none"},
    };
    return HB_REFUSE(r, gaps);
}

/* DeepSpeed's ZeRO-3: bf16 parameters with a master copy, split over mesh.fsdp. */
static bool check_zero3(const struct hb_refusing *r, const struct hb_spec *s)
{
    const struct hb_refusal gaps[] = {
        {s->precision.params != HB_DT_BF16, "precision.params",
         "with a master copy and mesh.fsdp (DeepSpeed's ZeRO-3) only bf16 is simulated yet; use "
         "bf16, or master: none for FSDP"},
        {s->precision.grads != HB_GRADS_PARAMS, "precision.grads",
         "ZeRO's gradients are as their parameters; use params"},
        {s->precision.fp8 != HB_FP8_NONE, "precision.fp8",
         "not simulated with ZeRO-3 yet; use none"},
        {s->mesh[HB_AX_DATA] > 1, "mesh.data", "not simulated with ZeRO-3 yet; use 1"},
        {s->mesh[HB_AX_TENSOR] > 1, "mesh.tensor", "not simulated with ZeRO-3 yet; use 1"},
        {s->mesh[HB_AX_SEQUENCE] > 1, "mesh.sequence", "not simulated with ZeRO-3 yet; use 1"},
        {s->mesh[HB_AX_PIPELINE] > 1, "mesh.pipeline", "DeepSpeed has none with ZeRO-3; use 1"},
        {hb_model_has_experts(&s->model), "precision.master",
         "ZeRO-3 is not simulated with experts yet; use none (FSDP)"},
        {!s->sharding.reshard_after_forward, "sharding.reshard_after_forward",
         "is FSDP's; ZeRO-3's is runtime.reuse_distance; use true"},
        {s->sharding.reshard_ranks > 0, "sharding.reshard_ranks", "is FSDP2's; use 0"},
        {s->runtime.compile, "runtime.compile", "not simulated with ZeRO-3 yet; use false"},
        {s->runtime.wrap_root, "runtime.wrap", "is FSDP's; use split"},
        {s->runtime.fsdp1, "runtime.fsdp1", "has no master copy; use false, or master: none"},
        {s->loss.chunks > 1, "loss.chunks", "not simulated with ZeRO-3 yet; use 1"},
        {s->loss.kernel == HB_LOSS_LINEAR, "loss.kernel",
         "takes the head's weight outside of its module, which ZeRO-3 gathers it for; use eager"},
    };
    return HB_REFUSE(r, gaps);
}

static bool check_fsdp1(const struct hb_refusing *r, const struct hb_spec *s)
{
    const struct hb_refusal gaps[] = {
        {s->mesh[HB_AX_DATA] > 1, "mesh.data", "not simulated with runtime.fsdp1 yet; use 1"},
        {s->mesh[HB_AX_TENSOR] > 1, "mesh.tensor", "not simulated with runtime.fsdp1 yet; use 1"},
        {s->mesh[HB_AX_SEQUENCE] > 1, "mesh.sequence",
         "not simulated with runtime.fsdp1 yet; use 1"},
        {hb_model_has_experts(&s->model), "runtime.fsdp1",
         "not simulated with experts yet; use false"},
        {s->sharding.reshard_ranks > 0, "sharding.reshard_ranks", "is FSDP2's; use 0"},
        {s->runtime.wrap_root, "runtime.wrap",
         "FSDP1 has the ends in its root by itself; use split"},
        {s->optimizer.params_offload != HB_PLACE_NONE, "optimizer.params_offload",
         "not simulated with runtime.fsdp1 yet; use none"},
    };
    return HB_REFUSE(r, gaps);
}

/* A model beside the policy, of its shapes: the reference, or PPO's value model. */
static bool check_second(const struct hb_refusing *r, const struct hb_spec *s, const char *key,
                         bool asked, bool tied)
{
    const struct hb_refusal gaps[] = {
        {asked && hb_model_has_experts(&s->model), key,
         "not simulated with experts yet; use false"},
        {asked && s->runtime.fsdp1, key, "not simulated with runtime.fsdp1 yet; use false"},
        {asked && (s->runtime.wrap_root || tied), key,
         "not simulated where the ends are the root's own yet (runtime.wrap: root, "
         "model.tied_embeddings, model.positions); use false"},
        {asked && s->optimizer.params_offload != HB_PLACE_NONE, key,
         "not simulated with params_offload yet; use false"},
    };
    return HB_REFUSE(r, gaps);
}

/* TRL's GRPOTrainer, as its code makes log-probabilities of whole logits. */
static bool check_grpo(const struct hb_refusing *r, const struct hb_spec *s, bool plain, bool zero)
{
    bool tied = (s->model.tied_embeddings || s->model.positions > 0) && !plain;
    const struct hb_refusal gaps[] = {
        {s->loss.kernel != HB_LOSS_EAGER, "loss.kernel", "grpo has its own loss; use eager"},
        {s->loss.chunks > 1, "loss.chunks", "not simulated with grpo yet; use 1"},
        {s->loss.held != HB_HELD_NONE, "loss.held", "grpo holds no logits; use none"},
        {s->mesh[HB_AX_TENSOR] > 1, "mesh.tensor", "not simulated with grpo yet; use 1"},
        {s->mesh[HB_AX_SEQUENCE] > 1, "mesh.sequence", "not simulated with grpo yet; use 1"},
        {s->mesh[HB_AX_PIPELINE] > 1, "mesh.pipeline", "TRL's trainers have none; use 1"},
        {s->runtime.framework == HB_FW_TORCHTUNE, "runtime.framework",
         "grpo is simulated with torchtitan's FSDP2 and plain copies only; use torchtitan"},
        {zero, "loss.kind", "grpo is not simulated with DeepSpeed's ZeRO yet; use lm"},
        {s->loss.reference && s->sharding.reshard_ranks > 0, "loss.reference",
         "not simulated with reshard_ranks yet; use false"},
        {s->loss.value && plain, "loss.value", "not simulated without FSDP yet; use false"},
    };
    bool ok = HB_REFUSE(r, gaps);
    ok = check_second(r, s, "loss.reference", s->loss.reference, tied) && ok;
    return check_second(r, s, "loss.value", s->loss.value, tied) && ok;
}

/* torch.distributed.pipelining as torchtitan drives it: under FSDP2, or of whole weights. */
static bool check_titan_pipeline(const struct hb_refusing *r, const struct hb_spec *s, bool plain)
{
    const struct hb_pipe *p = &s->pipeline;
    int64_t ranks = s->mesh[HB_AX_PIPELINE], rounds = p->microbatches / ranks;
    bool dual = p->schedule == HB_SCHED_DUALPIPE_V, parts = parts_passes(s), bare = false;
    bool two = p->schedule == HB_SCHED_INTERLEAVED || p->schedule == HB_SCHED_ZERO_BUBBLE;
    for (int i = 0; i < p->layer_count; i++)
        bare = bare || p->layers[i] == 0;
    const struct hb_refusal gaps[] = {
        {p->schedule == HB_SCHED_SPMD, "pipeline.schedule",
         "spmd is of XLA programs; use gpipe, 1f1b, interleaved, zero_bubble, zbv or dualpipe_v"},
        {plain && s->mesh[HB_AX_DATA] > 1, "mesh.data",
         "DistributedDataParallel has no other axis in torchtitan; use mesh.fsdp, or "
         "runtime.framework: megatron"},
        {plain && s->precision.params != s->precision.compute, "precision.params",
         "torchtitan turns mixed precision off with pipelines and no FSDP; use params as compute"},
        {plain && s->loss.chunks > 1, "loss.chunks",
         "not simulated with pipelines and no FSDP yet; use 1"},
        {s->model.tied_embeddings, "model.tied_embeddings",
         "torchtitan's stages share no weights; use false"},
        {s->runtime.fsdp1, "runtime.fsdp1", "not simulated with pipelines; use false"},
        {s->runtime.wrap_root, "runtime.wrap", "not simulated with pipelines; use split"},
        {s->optimizer.params_offload != HB_PLACE_NONE, "optimizer.params_offload",
         "not simulated with torchtitan's pipelines yet; use none"},
        {s->sharding.reshard_ranks > 0, "sharding.reshard_ranks",
         "not simulated with torchtitan's pipelines yet; use 0"},
        {s->loss.kernel == HB_LOSS_LINEAR, "loss.kernel",
         "a pipeline's loss takes logits; use eager or compiled"},
        {s->loss.held != HB_HELD_NONE, "loss.held",
         "a pipeline holds its logits until their pass backwards by itself; use none"},
        {p->group > 0, "pipeline.group", "is Megatron's; use 0"},
        {parts && s->sharding.reshard_after_forward && !plain, "sharding.reshard_after_forward",
         "PyTorch makes no gradients of weights that were given back before such a schedule parts "
         "its pass backwards; use false"},
        {bare, "pipeline.layers",
         "stages without layers are not simulated with torchtitan yet; use 1 and more"},
        {two && p->repeats == 1, "pipeline.repeats",
         "PyTorch's schedule has several stages a rank; use 2 and more, or schedule: 1f1b"},
        {two && rounds > 1 && p->microbatches % rounds, "pipeline.microbatches",
         "PyTorch runs rounds of as many as there are ranks, and refuses what does not divide "
         "among them; use a multiple of mesh.pipeline"},
        {p->schedule == HB_SCHED_1F1B && rounds == 0, "pipeline.microbatches",
         "PyTorch wants no fewer than there are stages; use mesh.pipeline and more"},
        {dual && rounds < 2, "pipeline.microbatches",
         "PyTorch wants no fewer than there are stages; use twice mesh.pipeline and more"},
        {parts && s->runtime.compile, "runtime.compile",
         "PyTorch does not part the backward pass of compiled layers; use false, or schedule: "
         "interleaved"},
    };
    return HB_REFUSE(r, gaps);
}

/* Norms behind attention and MLP, as Gemma's, on the bench with dense layers only. */
static bool check_post_norm(const struct hb_refusing *r, const struct hb_spec *s,
                            const struct hb_block *b)
{
    static const char *const key = ".post_norm";
    const struct hb_refusal gaps[] = {
        {b->moe.experts > 0, key, "not simulated with experts yet; use false"},
        {s->mesh[HB_AX_TENSOR] > 1, key, "not simulated with mesh.tensor yet; use false"},
        {b->remat.policy == HB_POLICY_NAMES, key,
         "not simulated with torchtitan's list of what is kept yet; use false, or policy: full"},
        {s->precision.master && s->mesh[HB_AX_FSDP] == 1, key,
         "not simulated with ZeRO 1 and 2 yet; use false"},
    };
    return !b->post_norm || HB_REFUSE(r, gaps);
}

/* Keys of GPT-2's layers: the first that the block has; null: none. */
static const char *key_of_gpt(const struct hb_block *b)
{
    const struct {
        bool has;
        const char *key;
    } told[] = {{b->norm == HB_NORM_LAYER, ".norm"},
                {b->attention.fused_qkv, ".attention.fused_qkv"},
                {b->attention.bias == HB_BIAS_ALL, ".attention.bias"},
                {b->moe.experts == 0 && b->mlp.kind == HB_MLP_GELU, ".mlp.kind"},
                {b->dropout > 0, ".dropout"},
                {b->attention.dropout > 0, ".attention.dropout"}};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (told[i].has)
            return told[i].key;
    return NULL;
}

static bool is_fsdp1_or_zero3(const struct hb_spec *s)
{
    return s->runtime.fsdp1 || (s->precision.master && s->mesh[HB_AX_FSDP] > 1);
}

/* gpt-oss's layers, all of it: torchtitan has no other with sinks, or with biases of experts. */
static bool check_sinks(const struct hb_refusing *r, const struct hb_spec *s,
                        const struct hb_block *b)
{
    static const char *const key = ".attention.sinks";
    const struct hb_attention *a = &b->attention;
    const struct hb_refusal gaps[] = {
        {a->kind != HB_ATTN_GQA || a->bias != HB_BIAS_ALL || !b->moe.bias || !b->moe.router_bias,
         key,
         "simulated in gpt-oss's layers only, with attention.kind gqa, and attention.bias, "
         "moe.bias "
         "and moe.router_bias true"},
        {b->norm != HB_NORM_RMS || b->post_norm || a->qk_norm != HB_QKN_NONE || b->dropout > 0 ||
             b->moe.shared_d_ff > 0 || !a->rope,
         key, "simulated in gpt-oss's layers only: two RMSNorms, rope, no shared expert"},
        {s->mesh[HB_AX_TENSOR] > 1, key, "not simulated with torchtitan's mesh.tensor yet"},
        {s->mesh[HB_AX_SEQUENCE] > 1, key, "not simulated with torchtitan's mesh.sequence yet"},
        {parts_passes(s), key, "not simulated with schedules that part the backward pass yet"},
        {s->precision.fp8 != HB_FP8_NONE, key, "not simulated with precision.fp8 yet"},
    };
    const struct hb_refusal without[] = {
        {b->moe.bias, ".moe.bias", "simulated with attention.sinks (gpt-oss) only yet; use false"},
    };
    return a->sinks ? HB_REFUSE(r, gaps) : HB_REFUSE(r, without);
}

/* On the bench: one device, copies and FSDP2 of dense layers, whole or checkpointed. */
static bool check_gpt(const struct hb_refusing *r, const struct hb_spec *s,
                      const struct hb_block *b)
{
    const char *key = b->attention.sinks ? NULL : key_of_gpt(b);
    const struct hb_refusal gaps[] = {
        {b->attention.kind == HB_ATTN_MLA, key, "not simulated with mla yet"},
        {b->moe.experts > 0, key, "not simulated with experts and torchtitan yet"},
        {b->post_norm, key, "not simulated with post_norm yet"},
        {s->mesh[HB_AX_TENSOR] > 1, key, "not simulated with torchtitan's mesh.tensor yet"},
        {s->mesh[HB_AX_SEQUENCE] > 1, key, "not simulated with torchtitan's mesh.sequence yet"},
        {s->runtime.compile, key, "not simulated with compiled layers yet"},
        {s->runtime.framework == HB_FW_TORCHTUNE, key, "is of no model of torchtune"},
        {b->remat.policy == HB_POLICY_NAMES, key,
         "not simulated with torchtitan's list of what is kept yet; use policy: none or full"},
        {is_fsdp1_or_zero3(s), key, "not simulated with FSDP1 or ZeRO-3 yet"},
        {s->precision.fp8 != HB_FP8_NONE, key, "not simulated with precision.fp8 yet"},
        {s->loss.chunks > 1 && s->mesh[HB_AX_FSDP] > 1, key,
         "not simulated with torchtitan's loss.chunks yet"},
    };
    return !key || HB_REFUSE(r, gaps);
}

/* DeepSeek's attention as torchtitan has it. */
static bool check_mla(const struct hb_refusing *r, const struct hb_spec *s,
                      const struct hb_block *b)
{
    static const char *const key = ".attention.kind";
    const struct hb_refusal gaps[] = {
        {s->mesh[HB_AX_TENSOR] > 1, key, "mla is not simulated with mesh.tensor yet"},
        {s->mesh[HB_AX_SEQUENCE] > 1, key, "mla is not simulated with mesh.sequence yet"},
        {s->runtime.compile, key, "mla is not simulated with compiled layers yet"},
        {s->runtime.framework == HB_FW_TORCHTUNE, key, "mla is of no model of torchtune"},
        {is_fsdp1_or_zero3(s), key, "mla is not simulated with FSDP1 or ZeRO-3 yet"},
        {b->attention.bias != HB_BIAS_NONE, ".attention.bias", "DeepSeek has none; use false"},
        {!b->attention.rope, ".attention.rope", "DeepSeek has it; use true"},
        {b->post_norm, ".post_norm", "not simulated with mla yet; use false"},
    };
    return b->attention.kind != HB_ATTN_MLA || HB_REFUSE(r, gaps);
}

/* Schedules that part the backward pass run a layer that is checkpointed again for each weight. */
static bool check_parted(const struct hb_refusing *r, const struct hb_spec *s,
                         const struct hb_block *b)
{
    static const char *const yet = "not simulated with schedules that part the backward pass yet; "
                                   "use schedule: interleaved";
    const struct hb_refusal gaps[] = {
        {b->remat.policy == HB_POLICY_NAMES, "remat.policy",
         "PyTorch runs selective checkpoints backwards once only, this schedule does so for each "
         "weight; use none, full, or schedule: interleaved"},
        {b->attention.bias != HB_BIAS_NONE, ".attention.bias", yet},
        {b->mlp.bias, ".mlp.bias", yet},
        {b->norm != HB_NORM_RMS, ".norm", yet},
        {b->dropout > 0, ".dropout", yet},
        {b->attention.dropout > 0, ".attention.dropout", yet},
        {b->post_norm && b->remat.policy != HB_POLICY_NONE, ".post_norm",
         "not simulated with checkpoints under schedules that part the backward pass yet; use "
         "remat.policy: none, or schedule: interleaved"},
    };
    return !parts_passes(s) || HB_REFUSE(r, gaps);
}

static bool check_titan_loss(const struct hb_refusing *r, const struct hb_loss *l, int64_t tensor)
{
    bool linear = l->kernel == HB_LOSS_LINEAR;
    const struct hb_refusal gaps[] = {
        {l->kernel != HB_LOSS_EAGER && l->kernel != HB_LOSS_COMPILED && !linear, "loss.kernel",
         "jit and fused are Megatron's; use eager, compiled or linear"},
        {l->held == HB_HELD_F32 && l->kernel != HB_LOSS_EAGER, "loss.held",
         "f32 is simulated with loss.kernel eager only yet; use none"},
        {linear && l->chunks > 1, "loss.chunks",
         "loss.kernel: linear cuts its pieces itself; use chunks: 1"},
        {linear && tensor > 1, "mesh.tensor",
         "loss.kernel: linear takes a whole vocabulary; use mesh.tensor 1, or another kernel"},
        {linear && l->held != HB_HELD_NONE, "loss.held",
         "loss.kernel: linear has no logits; use none"},
    };
    return HB_REFUSE(r, gaps);
}

static bool check_titan_rest(const struct hb_refusing *r, const struct hb_spec *s, bool plain)
{
    bool tune = s->runtime.framework == HB_FW_TORCHTUNE;
    const struct hb_refusal gaps[] = {
        {s->precision.compute == HB_DT_F64, "precision.compute", "not simulated yet; use bf16"},
        {tune && !plain, "mesh.fsdp",
         "with torchtune only one device is simulated yet; use 1, or runtime.framework: "
         "torchtitan"},
        {tune && s->mesh[HB_AX_DATA] > 1, "mesh.data",
         "with torchtune only one device is simulated yet; use 1, or runtime.framework: "
         "torchtitan"},
        {!offload_is_known(s, plain, tune), "optimizer.offload",
         "simulated with torchtune (paged states), or with params_offload under FSDP "
         "(CPUOffloadPolicy), only yet; use none, or both pinned_host"},
        {s->model.positions > 0 && s->model.positions < s->batch.seq, "model.positions",
         "less than batch.seq; use as many and more"},
        {s->model.positions > 0 && s->mesh[HB_AX_PIPELINE] > 1, "model.positions",
         "not simulated with pipelines yet; use positions: 0"},
        {!plain && s->sharding.optimizer_over_data, "sharding.optimizer_over_data",
         "ZeRO-1 is simulated without FSDP only; use mesh.fsdp 1, or false"},
        {!plain && s->sharding.grads_over_data, "sharding.grads_over_data",
         "ZeRO-2 is simulated without FSDP only; use mesh.fsdp 1, or false"},
        {s->mesh[HB_AX_TENSOR] > 1 && !s->sharding.residual_over_tensor,
         "sharding.residual_over_tensor",
         "mesh.tensor is simulated with sequence parallelism only; use true"},
        {s->mesh[HB_AX_TENSOR] > 1 && !s->sharding.vocab_over_tensor, "sharding.vocab_over_tensor",
         "mesh.tensor is simulated with a split vocabulary only; use true"},
        {s->remat.modules != 0, "remat.modules", "are Megatron's; use []"},
        {s->runtime.async_tp && (!s->runtime.compile || s->mesh[HB_AX_TENSOR] == 1),
         "runtime.async_tp",
         "is of compiled layers that a tensor axis splits; use false, or runtime.compile: true and "
         "mesh.tensor above 1"},
        {s->precision.fp8_params, "precision.fp8_params", "is Megatron's; use false"},
        {s->precision.fp8_gather && plain, "precision.fp8_gather",
         "is FSDP's; use mesh.fsdp above 1, or false"},
        {s->precision.fp8_gather && s->runtime.fsdp1, "precision.fp8_gather",
         "is FSDP2's; use false"},
        {s->precision.fp8_gather && s->precision.fp8 != HB_FP8_TENSORWISE, "precision.fp8_gather",
         "is torchao's with fp8: tensorwise only; use false"},
        {s->mesh[HB_AX_SEQUENCE] > 1 && !s->sharding.states_over_sequence,
         "sharding.states_over_sequence",
         "torchtitan shards its states over the ranks of a sequence, too; use true"},
        {s->mesh[HB_AX_SEQUENCE] > 1 && s->sharding.sequence_kind == HB_SEQ_ALL_TO_ALL,
         "sharding.sequence_kind", "all_to_all is not torchtitan's; use all_gather or ring"},
        {s->mesh[HB_AX_EXPERT] > 1 && !hb_model_has_experts(&s->model), "mesh.expert",
         "without experts is not torchtitan's; use mesh.fsdp"},
    };
    return HB_REFUSE(r, gaps);
}

/* The share of a compiled layer's activations that torch's partitioner keeps: told of Llama's
 * layer, whole on a rank. */
static bool check_budget(const struct hb_refusing *r, const struct hb_spec *s,
                         const struct hb_block *b)
{
    static const char *const key = "remat.budget";
    const struct hb_attention *a = &b->attention;
    if (s->remat.budget >= 1)
        return true;
    const struct hb_refusal gaps[] = {
        {s->mesh[HB_AX_TENSOR] > 1 || s->mesh[HB_AX_SEQUENCE] > 1, key,
         "not simulated with mesh.tensor or mesh.sequence yet; use 1"},
        {parts_passes(s), key,
         "not simulated with schedules that part the backward pass yet; use 1"},
        {b->norm != HB_NORM_RMS || b->post_norm || a->qk_norm != HB_QKN_NONE || b->dropout > 0, key,
         "simulated with two RMSNorms a layer, and without dropout, only yet; use 1"},
        {b->mlp.kind != HB_MLP_SWIGLU || b->mlp.fused || a->fused_qkv, key,
         "simulated with swiglu, and products of their own, only yet; use 1"},
        {a->bias != HB_BIAS_NONE || b->mlp.bias, key, "not simulated with biases yet; use 1"},
        {s->precision.fp8 != HB_FP8_NONE, key, "not simulated with precision.fp8 yet; use 1"},
    };
    return HB_REFUSE(r, gaps);
}

/* RMSNorms that the model writes out. */
static bool check_written(const struct hb_refusing *r, const struct hb_spec *s,
                          const struct hb_block *b, bool zero3)
{
    static const char *const key = "runtime.written_norm";
    const struct hb_refusal gaps[] = {
        {s->runtime.compile, key, "torch.compile makes one kernel of it; use false"},
        {parts_passes(s), key,
         "not simulated with schedules that part the backward pass yet; use false"},
        {zero3, key, "not simulated with ZeRO-3 yet; use false"},
        {b->post_norm, key, "not simulated with post_norm yet; use false"},
    };
    return !s->runtime.written_norm || HB_REFUSE(r, gaps);
}

/* Products in f32, or, of f32 parameters without FSDP, under torch.autocast. */
static bool check_wide(const struct hb_refusing *r, const struct hb_spec *s, bool plain)
{
    bool f32 = s->precision.compute == HB_DT_F32;
    bool autocast = plain && s->precision.params == HB_DT_F32 && !f32;
    if (!f32 && !autocast)
        return true;
    const char *key = f32 ? "precision.compute" : "precision.params";
    const char *experts = "experts are simulated with bf16 products of FSDP only; use bf16";
    const struct hb_refusal gaps[] = {
        {hb_model_has_experts(&s->model), key, experts},
        {s->runtime.compile, "runtime.compile",
         "not simulated with f32 products or autocast yet; use false"},
        {s->precision.fp8 != HB_FP8_NONE, "precision.fp8",
         "not simulated with f32 products or autocast yet; use none"},
        {s->loss.chunks > 1, "loss.chunks",
         "not simulated with f32 products or autocast yet; use 1"},
        {s->loss.kernel != HB_LOSS_EAGER, "loss.kernel",
         "only eager is simulated with f32 products or autocast yet"},
        {s->loss.kind != HB_LOSS_LM, "loss.kind",
         "only lm is simulated with f32 products or autocast yet"},
        {s->runtime.framework == HB_FW_TORCHTUNE, key,
         "torchtune's is bf16 here; use bf16, or runtime.framework: torchtitan"},
        {s->mesh[HB_AX_SEQUENCE] > 1, "mesh.sequence",
         "not simulated with f32 products yet; use 1"},
        {s->runtime.fsdp1, "runtime.fsdp1", "not simulated with f32 products yet; use false"},
        {f32 && s->precision.master, "precision.master", "ZeRO's products are in bf16; use none"},
    };
    return HB_REFUSE(r, gaps);
}

/* What torchtitan captures: passes without the host, of one stage. */
static bool check_graphs(const struct hb_refusing *r, const struct hb_spec *s, bool zero)
{
    static const char *const key = "runtime.cuda_graphs";
    const struct hb_refusal gaps[] = {
        {s->runtime.framework == HB_FW_TORCHTUNE, key, "is torchtitan's; use false"},
        {s->mesh[HB_AX_PIPELINE] > 1, key, "torchtitan has none with pipelines; use false"},
        {hb_titan_expert_ways(s) > 1, key,
         "torchtitan has none with this exchange of tokens, which waits for the host; use false, "
         "or "
         "mesh.expert 1"},
        {zero || s->runtime.fsdp1, key, "is of FSDP2 or plain copies; use false"},
        {s->loss.kind != HB_LOSS_LM, key, "not simulated with this loss.kind yet; use false"},
        {s->optimizer.in_backward, key, "leaves gradients, which in_backward does not; use false"},
        {s->optimizer.params_offload != HB_PLACE_NONE, key,
         "not simulated with params_offload yet; use false"},
    };
    return !s->runtime.cuda_graphs || HB_REFUSE(r, gaps);
}

static bool check_titan(struct hb_refusing *r, const struct hb_spec *s)
{
    bool plain = hb_titan_shard_ranks(s) == 1,
         zero3 = s->precision.master && s->mesh[HB_AX_FSDP] > 1;
    bool tune = s->runtime.framework == HB_FW_TORCHTUNE;
    bool ok = check_titan_rest(r, s, plain);
    ok &= !plain || check_plain_tensor(r, s);
    ok &= plain ? check_plain(r, s) : zero3 ? check_zero3(r, s) : check_fsdp(r, s);
    ok &= !s->runtime.fsdp1 || check_fsdp1(r, s);
    ok &= s->mesh[HB_AX_PIPELINE] == 1 || check_titan_pipeline(r, s, plain);
    ok &= check_titan_loss(r, &s->loss, s->mesh[HB_AX_TENSOR]);
    ok &= check_wide(r, s, plain);
    bool zero = zero3 || s->sharding.optimizer_over_data;
    ok &= s->loss.kind != HB_LOSS_GRPO || check_grpo(r, s, plain, zero);
    ok &= check_graphs(r, s, zero);
    for (r->block = 0; r->block < s->model.block_count; r->block++) {
        const struct hb_block *b = &s->model.blocks[r->block];
        const struct hb_refusal list[] = {
            {zero3 && b->remat.policy == HB_POLICY_NAMES, "remat.policy",
             "names is torchtitan's, not simulated with ZeRO-3; use none or full"}};
        ok &= check_block(r, b, tune);
        ok &= check_own_list(r, s, b);
        ok &= check_written(r, s, b, zero3);
        ok &= check_parted(r, s, b);
        ok &= check_post_norm(r, s, b);
        ok &= check_gpt(r, s, b);
        ok &= check_sinks(r, s, b);
        ok &= check_mla(r, s, b);
        ok &= check_budget(r, s, b);
        ok &= !b->moe.experts || check_experts(r, s, &b->moe);
        ok &= HB_REFUSE(r, list);
    }
    return ok;
}

static bool check_megatron_block(const struct hb_refusing *r, const struct hb_block *b)
{
    const struct hb_refusal gaps[] = {
        {b->moe.experts > 0 && b->moe.dispatch != HB_DISPATCH_RAGGED &&
             b->moe.dispatch != HB_DISPATCH_ALLGATHER,
         ".moe.dispatch", "only ragged and allgather are simulated with megatron yet"},
        {b->attention.kind == HB_ATTN_NONE, ".attention.kind",
         "only gqa and mla are simulated with megatron yet"},
        {b->attention.kernel == HB_KERNEL_BLOCKED, ".attention.kernel",
         "only flash and naive are simulated with megatron yet"},
        {b->post_norm, ".post_norm", "not simulated with megatron yet; use false"},
        {b->attention.softcap > 0, ".attention.softcap", "not simulated with megatron yet; use 0"},
        {b->attention.sinks, ".attention.sinks", "not simulated with megatron yet; use false"},
        {b->remat.policy != HB_POLICY_NONE && b->remat.policy != HB_POLICY_FULL, "remat.policy",
         "only none and full are simulated with megatron yet (core attention alone: none with "
         "remat.modules: [core_attn])"},
        {b->remat.offload != 0, "remat.offload",
         "not simulated with megatron yet; use offload: []"},
    };
    return HB_REFUSE(r, gaps);
}

static bool check_megatron_rest(const struct hb_refusing *r, const struct hb_spec *s)
{
    enum hb_schedule schedule = s->pipeline.schedule;
    const struct hb_refusal gaps[] = {
        {s->mesh[HB_AX_PIPELINE] > 1 && schedule != HB_SCHED_GPIPE && schedule != HB_SCHED_1F1B &&
             schedule != HB_SCHED_INTERLEAVED,
         "pipeline.schedule",
         "only gpipe, 1f1b and interleaved are simulated with megatron (zero_bubble, zbv and "
         "dualpipe_v with torchtitan)"},
        {s->mesh[HB_AX_PIPELINE] > 1 && s->pipeline.group > 0 &&
             (s->pipeline.group < s->mesh[HB_AX_PIPELINE] ||
              s->pipeline.microbatches % s->pipeline.group != 0),
         "pipeline.group",
         "megatron takes no fewer than there are stages, and what divides "
         "pipeline.microbatches is simulated; use such a number, or 0"},
        {hb_dtype_bits(s->precision.compute) != 16, "precision.compute",
         "only bf16 and f16 are simulated with megatron yet"},
        {s->precision.fp8 == HB_FP8_ROWWISE, "precision.fp8",
         "rowwise is torchao's; use tensorwise, blockwise or mxfp8"},
        {s->precision.fp8 == HB_FP8_NVFP4, "precision.fp8",
         "nvfp4 is not simulated with megatron yet; use tensorwise, blockwise or mxfp8"},
        {s->precision.fp8 != HB_FP8_NONE && s->mesh[HB_AX_FSDP] > 1, "precision.fp8",
         "not simulated with Megatron-FSDP yet; use none, or mesh.fsdp 1"},
        {s->precision.fp8 != HB_FP8_NONE && s->precision.params != HB_DT_BF16, "precision.params",
         "Transformer Engine's 8-bit products are simulated with bf16 parameters only; use bf16"},
        {s->loss.chunks > 1, "loss.chunks", "not simulated with megatron yet; use 1"},
        {s->loss.kernel != HB_LOSS_EAGER && s->loss.kernel != HB_LOSS_JIT &&
             s->loss.kernel != HB_LOSS_FUSED,
         "loss.kernel",
         "compiled and linear are not simulated with megatron; use eager, jit or fused"},
        {s->loss.held != HB_HELD_NONE, "loss.held", "is not megatron's; use none"},
        {s->loss.kind != HB_LOSS_LM, "loss.kind", "only lm is simulated with megatron yet; use lm"},
        {s->sharding.reshard_ranks > 0, "sharding.reshard_ranks", "is FSDP2's; use 0"},
        {s->runtime.fsdp1, "runtime.fsdp1", "is not megatron's; use false"},
        {s->runtime.cuda_graphs, "runtime.cuda_graphs",
         "megatron's are not simulated yet; use false"},
        {s->runtime.async_tp && (s->mesh[HB_AX_TENSOR] == 1 || !s->sharding.residual_over_tensor),
         "runtime.async_tp",
         "is of a residual that is split over tensor (tp-comm-overlap with sequence-parallel); use "
         "false, or sharding.residual_over_tensor: true and mesh.tensor above 1"},
        {s->optimizer.offload != HB_PLACE_NONE, "optimizer.offload",
         "not simulated with megatron yet; use none"},
        {s->optimizer.params_offload != HB_PLACE_NONE, "optimizer.params_offload",
         "not simulated with megatron yet; use none"},
        {s->runtime.allocator == HB_MAX_RESERVED, "runtime.allocator",
         "only max_allocated is simulated with megatron yet"},
        {s->runtime.compile, "runtime.compile", "not simulated with megatron yet; use false"},
        {s->mesh[HB_AX_TENSOR] > 1 && !s->sharding.vocab_over_tensor, "sharding.vocab_over_tensor",
         "megatron splits the vocabulary; use true"},
    };
    return HB_REFUSE(r, gaps);
}

static bool check_megatron(struct hb_refusing *r, const struct hb_spec *s)
{
    bool ok = check_megatron_rest(r, s);
    for (r->block = 0; r->block < s->model.block_count; r->block++)
        ok &= check_megatron_block(r, &s->model.blocks[r->block]);
    return ok;
}

bool hb_support_torch(struct hb_diag *diag, const struct hb_node *root, const struct hb_spec *s)
{
    struct hb_refusing r = {.diag = diag, .root = root, .before = "compiler: torch: "};
    const struct hb_refusal gaps[] = {
        {s->model.mtp > 0 && s->runtime.framework != HB_FW_MEGATRON, "model.mtp",
         "simulated with megatron only yet; use mtp: 0, or runtime.framework: megatron"},
    };
    bool ok = HB_REFUSE(&r, gaps);
    ok &= hb_support_torch_update(&r, s);
    ok &= s->runtime.framework == HB_FW_MEGATRON ? check_megatron(&r, s) : check_titan(&r, s);
    return ok;
}
