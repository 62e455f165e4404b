/* What of compiler: torch has no memory yet, by framework: see support.h. */
#include "models/support_torch.h"

struct gap {
    bool there;
    const char *text;
};

static bool report(struct hb_diag *diag, struct hb_loc loc, const struct gap *gaps, size_t count)
{
    bool ok = true;
    for (size_t i = 0; i < count; i++)
        if (gaps[i].there)
            ok = hb_error(diag, loc, "compiler: torch: %s", gaps[i].text);
    return ok;
}

#define REPORT(gaps) report(diag, loc, gaps, sizeof(gaps) / sizeof *(gaps))

static bool check_block(struct hb_diag *diag, struct hb_loc loc, const struct hb_block *b,
                        bool tune)
{
    const struct hb_attention *a = &b->attention;
    const struct gap gaps[] = {
        {a->kind != HB_ATTN_GQA, "attention.kind: only gqa is simulated with torchtitan yet"},
        {a->kernel != HB_KERNEL_FLASH,
         "attention.kernel: only flash is simulated with torchtitan yet"},
        {b->norm != HB_NORM_RMS || b->post_norm,
         "only rmsnorm without post_norm is simulated with torchtitan yet"},
        {a->bias != HB_BIAS_NONE || b->mlp.bias,
         "biases are not simulated with torchtitan yet; use bias: false"},
        {b->dropout > 0 || a->dropout > 0,
         "dropout is not simulated with torchtitan yet; use dropout: 0"},
        {b->moe.experts == 0 && b->mlp.kind != HB_MLP_SWIGLU,
         "mlp.kind: only swiglu is simulated with torchtitan yet"},
        {a->fused_qkv || b->mlp.fused || a->sinks || a->softcap > 0 || b->unit > 1,
         "fused weights, sinks, softcap and unit are not simulated with torchtitan yet"},
        {b->remat.offload != 0 &&
             (!tune || b->remat.offload != 1u << HB_TN_LAYER_IN || b->remat.save != 0),
         "remat.offload: only that of torchtune, save: [] with offload: [layer_in], is simulated "
         "yet"},
        {b->remat.policy == HB_POLICY_DOTS || b->remat.policy == HB_POLICY_DOTS_NO_BATCH,
         "remat.policy dots is of XLA; use none, full or names"},
    };
    return REPORT(gaps);
}

/* Experts as torchtitan runs them: sorted copies through grouped products, in f32 or bf16 routed.
 */
static bool check_experts(struct hb_diag *diag, struct hb_loc loc, const struct hb_spec *s,
                          const struct hb_moe *m)
{
    int64_t ways = s->mesh[HB_AX_EXPERT], ranks = s->mesh[HB_AX_FSDP];
    if (s->sharding.states_over_sequence)
        ranks *= s->mesh[HB_AX_SEQUENCE];
    bool across = ranks > m->experts / ways; /* split along d_ff and d_model */
    const struct gap gaps[] = {
        {ranks * ways == 1, "experts are simulated with FSDP only; use mesh.fsdp above 1"},
        {s->runtime.compile,
         "compiled layers with experts are not simulated yet; use runtime.compile: false"},
        {s->mesh[HB_AX_TENSOR] > 1, "experts with tensor parallelism are not simulated with "
                                    "torchtitan yet; use mesh.tensor 1"},
        {ways > 1 && !s->sharding.dense_over_expert,
         "torchtitan splits other weights over the ranks of experts, too; use "
         "sharding.dense_over_expert: true"},
        {m->dispatch != HB_DISPATCH_RAGGED,
         "moe.dispatch: only ragged (all-to-all, dropless) is simulated with torchtitan yet"},
        {m->kind != HB_MLP_SWIGLU, "moe.kind: only swiglu is simulated with torchtitan yet"},
        {m->bias || m->router_bias, "moe.bias and router_bias are not simulated with torchtitan "
                                    "yet; use false"},
        {m->pad_to_capacity, "moe.pad_to_capacity is not torchtitan's, which drops no token"},
        {m->router_dtype != HB_DT_F32 && m->router_dtype != HB_DT_BF16,
         "moe.router_dtype: only f32 and bf16 are simulated with torchtitan yet"},
        {s->runtime.wrap_root, "runtime.wrap: root is of torchtitan before it had experts"},
        {s->sharding.reshard_ranks > 0 || s->optimizer.params_offload != HB_PLACE_NONE,
         "sharding.reshard_ranks and optimizer.params_offload are not simulated with experts yet"},
        {across && (m->d_ff % ranks || s->model.d_model % ranks),
         "FSDP splits each expert here, as it has more ranks than there are experts, and PyTorch "
         "refuses what does not divide; use mesh.fsdp that divides moe.d_ff and model.d_model"},
    };
    return REPORT(gaps);
}

/* Selective checkpointing as torchtitan has it: its own list, not any. */
static bool is_titans_list(const struct hb_remat *r)
{
    const uint32_t list = 1u << HB_TN_Q | 1u << HB_TN_V | 1u << HB_TN_ATTN_CTX |
                          1u << HB_TN_MLP_GATE | 1u << HB_TN_MLP_DOWN;
    return r->policy != HB_POLICY_NAMES || r->save == list || r->save == 0 ||
           r->save == 1u << HB_TN_LAYER_IN;
}

/* A hook of each parameter's: of whole ones, whose gradients are whole after one pass. */
static bool may_update_in_backward(const struct hb_spec *s)
{
    return s->runtime.framework != HB_FW_MEGATRON && s->mesh[HB_AX_FSDP] == 1 &&
           s->mesh[HB_AX_DATA] == 1 && s->batch.accumulate == 1;
}

/* Paged states of a single device; or everything of a shard (FSDP2's CPUOffloadPolicy). */
static bool offload_is_known(const struct hb_spec *s, bool plain, bool tune)
{
    enum hb_place states = s->optimizer.offload, params = s->optimizer.params_offload;
    if (states == HB_PLACE_NONE && params == HB_PLACE_NONE)
        return true;
    if (states != HB_PLACE_PINNED_HOST)
        return false;
    return plain ? tune && params == HB_PLACE_NONE : params == HB_PLACE_PINNED_HOST;
}

static bool has_experts(const struct hb_model *m)
{
    for (int i = 0; i < m->block_count; i++)
        if (m->blocks[i].moe.experts)
            return true;
    return false;
}

static bool check_titan(struct hb_diag *diag, struct hb_loc loc, const struct hb_spec *s)
{
    bool plain = s->mesh[HB_AX_FSDP] * s->mesh[HB_AX_EXPERT] == 1,
         tune = s->runtime.framework == HB_FW_TORCHTUNE;
    const struct gap gaps[] = {
        {tune && (!plain || s->mesh[HB_AX_DATA] > 1),
         "with torchtune only one device is simulated yet; use mesh.fsdp 1, mesh.data 1"},
        {s->loss.held == HB_HELD_F32 && s->loss.kernel != HB_LOSS_EAGER,
         "loss.held: f32 is simulated with loss.kernel eager only yet"},
        {plain && s->sharding.reshard_ranks > 0, "sharding.reshard_ranks is FSDP2's"},
        {s->sharding.reshard_ranks > 0 && (!s->sharding.reshard_after_forward ||
                                           s->mesh[HB_AX_FSDP] % s->sharding.reshard_ranks),
         "sharding.reshard_ranks divides mesh.fsdp, with reshard_after_forward: true"},
        {s->sharding.reshard_ranks > 0 && s->mesh[HB_AX_TENSOR] > 1,
         "sharding.reshard_ranks: PyTorch cannot with tensor parallelism; use mesh.tensor 1"},
        {!offload_is_known(s, plain, tune),
         "optimizer.offload is simulated with torchtune (paged states), or with params_offload "
         "under FSDP (CPUOffloadPolicy), only yet"},
        {plain && (s->precision.params != HB_DT_BF16 || s->precision.master),
         "without FSDP (mesh.fsdp 1) only bf16 parameters are simulated yet, no autocast; use "
         "precision.params: bf16"},
        {plain && s->precision.grads == HB_GRADS_F32,
         "without FSDP gradients are as their parameters; use precision.grads: params"},
        {plain && (s->mesh[HB_AX_TENSOR] > 1 || s->mesh[HB_AX_SEQUENCE] > 1),
         "mesh.tensor and mesh.sequence are simulated with FSDP only; use mesh.fsdp above 1"},
        {plain && s->runtime.wrap_root, "runtime.wrap: root is FSDP's"},
        {s->mesh[HB_AX_PIPELINE] > 1, "mesh.pipeline is not simulated with torchtitan yet"},
        {s->mesh[HB_AX_TENSOR] > 1 &&
             (!s->sharding.residual_over_tensor || !s->sharding.vocab_over_tensor),
         "mesh.tensor is simulated with sequence parallelism and a split vocabulary only; use "
         "sharding.residual_over_tensor: true"},
        {s->model.positions > 0, "model.positions are not simulated with torchtitan yet"},
        {!plain && (s->precision.params != HB_DT_F32 || s->precision.master),
         "torchtitan's memory is simulated with f32 parameters only yet; use precision.params: "
         "f32"},
        {s->loss.chunks > 1 && !plain,
         "loss.chunks are simulated on one device and DDP only yet; use loss.chunks: 1"},
        {s->loss.kernel != HB_LOSS_EAGER && s->loss.kernel != HB_LOSS_COMPILED &&
             s->loss.kernel != HB_LOSS_LINEAR,
         "loss: only kernel eager, compiled or linear is simulated with torchtitan yet"},
        {s->loss.kernel == HB_LOSS_LINEAR &&
             (s->loss.chunks > 1 || s->mesh[HB_AX_TENSOR] > 1 || s->loss.held != HB_HELD_NONE),
         "loss.kernel: linear cuts its pieces itself and has no logits; use chunks: 1, held: none, "
         "mesh.tensor 1"},
        {s->sharding.optimizer_over_data || s->sharding.grads_over_data,
         "ZeRO-1 and ZeRO-2 are not simulated with torchtitan yet"},
        {s->remat.modules != 0, "remat.modules are Megatron's"},
    };
    bool ok = REPORT(gaps);
    for (int i = 0; i < s->model.block_count; i++) {
        ok = check_block(diag, loc, &s->model.blocks[i], tune) && ok;
        if (s->model.blocks[i].moe.experts)
            ok = check_experts(diag, loc, s, &s->model.blocks[i].moe) && ok;
        if (!is_titans_list(&s->model.blocks[i].remat))
            ok = hb_error(diag, loc,
                          "compiler: torch: remat.save: with torchtitan only [q, v, attn_ctx, "
                          "mlp_gate, mlp_down], every second product, is simulated yet");
    }
    return ok;
}

static bool check_megatron_block(struct hb_diag *diag, struct hb_loc loc, const struct hb_block *b)
{
    const struct gap gaps[] = {
        {b->moe.experts > 0 && b->moe.dispatch != HB_DISPATCH_RAGGED &&
             b->moe.dispatch != HB_DISPATCH_ALLGATHER,
         "moe.dispatch: only ragged and allgather are simulated with megatron yet"},
        {b->attention.kind == HB_ATTN_NONE || b->attention.kernel == HB_KERNEL_BLOCKED,
         "attention: only gqa and mla, flash or naive, are simulated with megatron yet"},
        {b->post_norm || b->attention.softcap > 0 || b->attention.sinks,
         "post_norm, softcap and sinks are not simulated with megatron yet"},
        {b->remat.policy != HB_POLICY_NONE && b->remat.policy != HB_POLICY_FULL,
         "remat.policy: only none and full are simulated with megatron yet"},
        {b->remat.offload != 0, "remat.offload is not simulated yet; use offload: []"},
    };
    return REPORT(gaps);
}

static bool check_megatron(struct hb_diag *diag, struct hb_loc loc, const struct hb_spec *s)
{
    enum hb_schedule schedule = s->pipeline.schedule;
    const struct gap gaps[] = {
        {s->mesh[HB_AX_PIPELINE] > 1 && schedule != HB_SCHED_GPIPE && schedule != HB_SCHED_1F1B &&
             schedule != HB_SCHED_INTERLEAVED,
         "pipeline.schedule: only gpipe, 1f1b and interleaved are simulated with megatron yet"},
        {s->precision.fp8 != HB_FP8_NONE, "precision.fp8 is not simulated with megatron yet"},
        {s->remat.modules & ~(1u << HB_RM_CORE_ATTN),
         "remat.modules: only core_attn is simulated yet"},
        {s->loss.chunks > 1 || (s->loss.kernel != HB_LOSS_EAGER && s->loss.kernel != HB_LOSS_JIT &&
                                s->loss.kernel != HB_LOSS_FUSED),
         "loss: only kernel eager, jit or fused, in one chunk, is simulated with megatron yet"},
        {s->runtime.allocator == HB_MAX_RESERVED,
         "runtime.allocator: only max_allocated is simulated with megatron yet"},
        {s->runtime.compile, "runtime.compile is not simulated with megatron yet"},
        {s->mesh[HB_AX_TENSOR] > 1 && !s->sharding.vocab_over_tensor,
         "megatron splits the vocabulary; use sharding.vocab_over_tensor: true"},
    };
    bool ok = REPORT(gaps);
    for (int i = 0; i < s->model.block_count; i++)
        ok = check_megatron_block(diag, loc, &s->model.blocks[i]) && ok;
    return ok;
}

bool hb_support_torch(struct hb_diag *diag, struct hb_loc loc, const struct hb_spec *s)
{
    bool megatron = s->runtime.framework == HB_FW_MEGATRON;
    const struct gap gaps[] = {
        {s->optimizer.name != HB_OPT_ADAMW, "optimizer.name: only adamw is simulated yet"},
        {s->optimizer.ema != HB_PLACE_NONE, "optimizer.ema is not simulated yet"},
        {megatron && (s->optimizer.offload != HB_PLACE_NONE ||
                      s->optimizer.params_offload != HB_PLACE_NONE),
         "optimizer: offload and params_offload are not simulated with megatron yet"},
        {megatron && (s->loss.held != HB_HELD_NONE || s->sharding.reshard_ranks > 0),
         "loss.held and sharding.reshard_ranks are not megatron's"},
        {!megatron && s->mesh[HB_AX_EXPERT] > 1 && !has_experts(&s->model),
         "mesh.expert without experts is not torchtitan's; use mesh.fsdp"},
        {s->model.mtp > 0, "model.mtp is not simulated yet; use mtp: 0"},
        {s->optimizer.in_backward && !may_update_in_backward(s),
         "optimizer.in_backward is simulated on one device, without accumulation, only yet"},
    };
    if (!REPORT(gaps))
        return false;
    if (megatron)
        return check_megatron(diag, loc, s);
    return check_titan(diag, loc, s);
}
