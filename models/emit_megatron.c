/* Megatron-LM: the command line of megatron/training/arguments.py and core/transformer's
 * configuration at d98e8a6 (August 2026), model and run; data, tokenizer and checkpoints are the
 * user's. It recomputes whole layers in a uniform way, or parts of them. */
#include <inttypes.h>

#include "base/arena.h"
#include "models/emit.h"
#include "models/emit_parts.h"

static void number(struct hb_str *out, const char *name, int64_t value)
{
    hb_str_addf(out, " \\\n  --%s %" PRId64, name, value);
}

static void text(struct hb_str *out, const char *name, const char *value)
{
    hb_str_addf(out, " \\\n  --%s %s", name, value);
}

static void flag(struct hb_str *out, const char *name, bool set)
{
    if (set)
        hb_str_addf(out, " \\\n  --%s", name);
}

/* The last block: where some layers have experts, those do. */
static const struct hb_block *main_block(const struct hb_model *m)
{
    return &m->blocks[m->block_count - 1];
}

static void emit_mlp(struct hb_str *out, const struct hb_model *m)
{
    const struct hb_block *b = main_block(m);
    enum hb_mlp_kind kind = b->moe.experts ? b->moe.kind : b->mlp.kind;
    int64_t width = b->moe.experts ? b->moe.d_ff : b->mlp.d_ff;
    for (int i = 0; i < m->block_count; i++)
        if (!m->blocks[i].moe.experts)
            width = m->blocks[i].mlp.d_ff;
    number(out, "ffn-hidden-size", width);
    flag(out, "swiglu", kind == HB_MLP_SWIGLU);
    flag(out, "use-gated-gelu", kind == HB_MLP_GEGLU);
    flag(out, "squared-relu", kind == HB_MLP_RELU2);
}

static void emit_attention(struct hb_str *out, const struct hb_attention *a)
{
    number(out, "num-attention-heads", a->heads);
    if (a->kind == HB_ATTN_MLA) {
        flag(out, "multi-latent-attention", true);
        if (a->q_lora_rank)
            number(out, "q-lora-rank", a->q_lora_rank);
        number(out, "kv-lora-rank", a->kv_lora_rank);
        number(out, "qk-head-dim", a->qk_nope_head_dim);
        number(out, "qk-pos-emb-head-dim", a->qk_rope_head_dim);
        number(out, "v-head-dim", a->v_head_dim);
    } else {
        if (a->kv_heads != a->heads) {
            flag(out, "group-query-attention", true);
            number(out, "num-query-groups", a->kv_heads);
        }
        number(out, "kv-channels", a->head_dim);
    }
    flag(out, "disable-bias-linear", a->bias != HB_BIAS_ALL);
    flag(out, "add-qkv-bias", a->bias == HB_BIAS_QKV);
    flag(out, "qk-layernorm", a->qk_norm);
    hb_str_addf(out, " \\\n  --attention-dropout %.10g", a->dropout);
    if (a->softcap > 0)
        hb_str_addf(out, " \\\n  --attn-logit-softcapping %.10g", a->softcap);
    if (a->windows[0] > 0)
        hb_str_addf(out, " \\\n  --window-size %" PRId64 " 0", a->windows[0] - 1);
}

/* "([0]*3+[1]*58)": which layers have experts. */
static void emit_pattern(struct hb_str *out, const struct hb_model *m)
{
    bool all = true;
    for (int i = 0; i < m->block_count; i++)
        all = all && m->blocks[i].moe.experts;
    if (all)
        return;
    hb_str_add(out, " \\\n  --moe-layer-freq \"(");
    for (int i = 0; i < m->block_count; i++)
        hb_str_addf(out, "%s[%d]*%" PRId64, i ? "+" : "", m->blocks[i].moe.experts > 0,
                    m->blocks[i].repeat);
    hb_str_add(out, ")\"");
}

static void emit_experts(struct hb_str *out, const struct hb_spec *s)
{
    const struct hb_model *m = &s->model;
    const struct hb_moe *e = &main_block(m)->moe;
    if (!e->experts)
        return;
    number(out, "num-experts", e->experts);
    number(out, "moe-router-topk", e->top_k);
    number(out, "moe-ffn-hidden-size", e->d_ff);
    if (e->shared_d_ff)
        number(out, "moe-shared-expert-intermediate-size", e->shared_d_ff);
    flag(out, "moe-router-enable-expert-bias", e->router_bias);
    emit_pattern(out, m);
    text(out, "moe-token-dispatcher-type",
         e->dispatch == HB_DISPATCH_ALLGATHER ? "allgather" : "alltoall");
    flag(out, "moe-grouped-gemm", e->dispatch != HB_DISPATCH_ALLGATHER || s->runtime.grouped_gemm);
    if (e->router_dtype == HB_DT_F32)
        text(out, "moe-router-dtype", "fp32");
    if (e->capacity_factor > 0)
        hb_str_addf(out, " \\\n  --moe-expert-capacity-factor %.10g", e->capacity_factor);
    flag(out, "moe-pad-expert-input-to-capacity", e->pad_to_capacity);
}

static void emit_model(struct hb_str *out, const struct hb_spec *s)
{
    const struct hb_model *m = &s->model;
    const struct hb_block *b = main_block(m);
    int64_t layers = 0, multiple = 128;
    for (int i = 0; i < m->block_count; i++)
        layers += m->blocks[i].repeat;
    while (m->vocab % (multiple * s->mesh[HB_AX_TENSOR]) && multiple > 1)
        multiple /= 2;
    number(out, "num-layers", layers);
    number(out, "hidden-size", m->d_model);
    emit_mlp(out, m);
    emit_attention(out, &b->attention);
    hb_str_addf(out, " \\\n  --hidden-dropout %.10g", b->dropout);
    emit_experts(out, s);
    text(out, "normalization", b->norm == HB_NORM_RMS ? "RMSNorm" : "LayerNorm");
    flag(out, "untie-embeddings-and-output-weights", !m->tied_embeddings);
    text(out, "position-embedding-type",
         m->positions                                            ? "learned_absolute"
         : b->attention.rope || b->attention.kind == HB_ATTN_MLA ? "rope"
                                                                 : "none");
    number(out, "max-position-embeddings", m->positions ? m->positions : s->batch.seq);
    number(out, "vocab-size", m->vocab);
    number(out, "make-vocab-size-divisible-by", multiple);
    if (m->mtp)
        number(out, "mtp-num-layers", m->mtp);
}

static void emit_layers(struct hb_str *out, const struct hb_pipe *p)
{
    hb_str_add(out, " \\\n  --pipeline-model-parallel-layout \"");
    for (int i = 0; i < p->layer_count; i++)
        hb_str_addf(out, "%st*%" PRId64 "%s", i ? "|" : "E", p->layers[i],
                    i + 1 == p->layer_count ? "L\"" : "");
}

static void emit_axes(struct hb_str *out, const struct hb_spec *s)
{
    const int64_t *m = s->mesh;
    number(out, "tensor-model-parallel-size", m[HB_AX_TENSOR]);
    number(out, "pipeline-model-parallel-size", m[HB_AX_PIPELINE]);
    number(out, "context-parallel-size", m[HB_AX_SEQUENCE]);
    if (main_block(&s->model)->moe.experts) {
        number(out, "expert-model-parallel-size",
               m[HB_AX_EXPERT] * m[HB_AX_TENSOR] / s->sharding.expert_tensor);
        number(out, "expert-tensor-parallel-size", s->sharding.expert_tensor);
    }
    flag(out, "sequence-parallel", m[HB_AX_TENSOR] > 1 && s->sharding.residual_over_tensor);
    flag(out, "tp-comm-overlap", s->runtime.async_tp);
    if (m[HB_AX_FSDP] > 1) {
        flag(out, "use-megatron-fsdp", true);
        text(out, "data-parallel-sharding-strategy", "optim_grads_params");
    } else if (s->sharding.grads_over_data) {
        flag(out, "use-megatron-fsdp", true);
        text(out, "data-parallel-sharding-strategy", "optim_grads");
    }
    flag(out, "use-distributed-optimizer", s->sharding.optimizer_over_data || m[HB_AX_FSDP] > 1);
    if (m[HB_AX_PIPELINE] > 1 && s->pipeline.layer_count)
        emit_layers(out, &s->pipeline);
    else if (m[HB_AX_PIPELINE] > 1 && s->pipeline.repeats > 1)
        number(out, "num-virtual-stages-per-pipeline-rank", s->pipeline.repeats);
    if (m[HB_AX_PIPELINE] > 1 && s->pipeline.repeats > 1 && s->pipeline.group)
        number(out, "microbatch-group-size-per-virtual-pipeline-stage", s->pipeline.group);
}

static void emit_batch(struct hb_str *out, const struct hb_spec *s)
{
    int64_t micro = hb_rank_batch(s);
    if (s->mesh[HB_AX_PIPELINE] > 1)
        micro /= s->pipeline.microbatches;
    number(out, "micro-batch-size", micro > 0 ? micro : 1);
    number(out, "global-batch-size", s->batch.global);
    number(out, "seq-length", s->batch.seq);
}

static void emit_precision(struct hb_str *out, const struct hb_precision *p)
{
    static const char *const recipes[] = {[HB_FP8_TENSORWISE] = "delayed",
                                          [HB_FP8_ROWWISE] = "tensorwise",
                                          [HB_FP8_BLOCKWISE] = "blockwise",
                                          [HB_FP8_MXFP8] = "mxfp8",
                                          [HB_FP8_NVFP4] = "mxfp8"};
    flag(out, "bf16", p->compute == HB_DT_BF16);
    flag(out, "fp16", p->compute == HB_DT_F16);
    flag(out, "grad-reduce-in-bf16", p->compute == HB_DT_BF16 && p->grads != HB_GRADS_F32);
    if (p->fp8 == HB_FP8_NONE)
        return;
    text(out, "fp8-format", "hybrid");
    text(out, "fp8-recipe", recipes[p->fp8]);
    flag(out, "fp8-param-gather", p->fp8_params);
}

static void emit_optimizer(struct hb_str *out, const struct hb_optim *o)
{
    static const char *const keys[] = {"exp-avg-dtype", "exp-avg-sq-dtype"};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    bool narrow = false;
    text(out, "optimizer",
         o->name == HB_OPT_MOMENTUM || o->name == HB_OPT_SGD ? "sgd"
         : o->name == HB_OPT_MUON                            ? "muon"
                                                             : "adam");
    text(out, "clip-grad", o->clip ? "1.0" : "0.0");
    flag(out, "optimizer-cpu-offload", o->offload == HB_PLACE_PINNED_HOST);
    for (int i = 0; i < KEYS && o->name == HB_OPT_ADAMW; i++)
        narrow = narrow || o->moments[i] == HB_DT_BF16;
    flag(out, "use-precision-aware-optimizer", narrow);
    for (int i = 0; i < KEYS && narrow; i++)
        text(out, keys[i], o->moments[i] == HB_DT_BF16 ? "bf16" : "fp32");
}

static void emit_remat(struct hb_str *out, const struct hb_spec *s)
{
    static const char *const words[] = {[HB_RM_CORE_ATTN] = "core_attn",
                                        [HB_RM_MLA_UP_PROJ] = "mla_up_proj",
                                        [HB_RM_MLP] = "mlp",
                                        [HB_RM_MOE] = "moe",
                                        [HB_RM_MOE_ACT] = "moe_act",
                                        [HB_RM_LAYERNORM] = "layernorm"};
    if (s->model.blocks[0].remat.policy == HB_POLICY_FULL) {
        text(out, "recompute-granularity", "full");
        text(out, "recompute-method", "uniform");
        number(out, "recompute-num-layers", 1);
    } else if (s->remat.modules) {
        text(out, "recompute-granularity", "selective");
        hb_str_add(out, " \\\n  --recompute-modules");
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (s->remat.modules >> i & 1)
                hb_str_addf(out, " %s", words[i]);
    }
}

static void emit_kernels(struct hb_str *out, const struct hb_spec *s)
{
    const struct hb_attention *a = &main_block(&s->model)->attention;
    text(out, "transformer-impl", "transformer_engine");
    text(out, "attention-backend", a->kernel == HB_KERNEL_NAIVE ? "unfused" : "flash");
    if (s->loss.kernel == HB_LOSS_FUSED || s->loss.kernel == HB_LOSS_JIT) {
        flag(out, "cross-entropy-loss-fusion", true);
        text(out, "cross-entropy-fusion-impl", s->loss.kernel == HB_LOSS_FUSED ? "te" : "native");
    }
    flag(out, "no-gradient-accumulation-fusion", !s->runtime.grad_fusion);
}

void hb_emit_megatron(struct hb_str *out, const struct hb_spec *s, const char *data_dir)
{
    struct hb_hosts hosts = hb_hosts_of(out->arena, s, data_dir);
    hb_str_addf(out,
                "# Your own: --data-path, --tokenizer-type and its files, --train-iters.\n"
                "torchrun --nproc_per_node %" PRId64 " --nnodes %" PRId64 " pretrain_gpt.py",
                hosts.each, hosts.count);
    flag(out, "use-mcore-models", true);
    emit_model(out, s);
    emit_axes(out, s);
    emit_batch(out, s);
    emit_precision(out, &s->precision);
    emit_optimizer(out, &s->optimizer);
    emit_remat(out, s);
    emit_kernels(out, s);
    hb_str_add(out, "\n");
}
