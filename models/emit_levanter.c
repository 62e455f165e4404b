/* Levanter as it is in marin-community/marin (lib/levanter): the whole YAML of a run but its data:
 * the model's type and sizes, TrainerConfig with the MeshConfig of utils/mesh.py (axes data,
 * replica and model; mlp, heads and kv_head lie over model, weights' embed over data), and haliax's
 * ScanCheckpointPolicy (haliax/_src/scan.py) for model.gradient_checkpointing: true, "offload",
 * "nested", or a map of save_carries, save_block_internals, offload_block_internals and nested. */
#include <inttypes.h>

#include "base/size.h"
#include "models/emit.h"
#include "models/emit_parts.h"
#include "models/spec_names.h"

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static void number(struct hb_str *out, const char *key, int64_t value)
{
    hb_str_addf(out, "  %s: %" PRId64 "\n", key, value);
}

/* The type whose layers these are, by what only it has. */
static const char *type_of(const struct hb_model *m)
{
    const struct hb_block *b = &m->blocks[0];
    if (b->moe.experts)
        return "mixtral";
    if (b->norm == HB_NORM_LAYER)
        return "gpt2";
    if (b->mlp.kind == HB_MLP_GEGLU)
        return !b->post_norm ? "gemma" : b->attention.qk_norm ? "gemma3" : "gemma2";
    if (b->attention.qk_norm)
        return "qwen3";
    return b->attention.bias == HB_BIAS_QKV ? "qwen" : "llama";
}

/* A tokenizer of so many words, by which the vocabulary is said. */
static const char *tokenizer_of(int64_t vocab)
{
    static const struct {
        int64_t vocab;
        const char *name;
    } known[] = {{50257, "gpt2"},
                 {32000, "NousResearch/Llama-2-7b-hf"},
                 {128256, "meta-llama/Llama-3.1-8B"},
                 {50277, "EleutherAI/gpt-neox-20b"},
                 {256000, "google/gemma-7b"},
                 {151936, "Qwen/Qwen3-8B"},
                 {100352, "allenai/OLMo-2-1124-7B"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].vocab == vocab)
            return known[i].name;
    return NULL;
}

static void emit_names(struct hb_str *out, const char *key, uint32_t mask)
{
    const char *comma = "";
    if (!mask)
        return;
    hb_str_addf(out, "    %s: [", key);
    for (int t = 0; t < HB_TN_COUNT; t++)
        if (mask >> t & 1) {
            hb_str_addf(out, "%s%s", comma, hb_tensor_names[t]);
            comma = ", ";
        }
    hb_str_add(out, "]\n");
}

static void emit_policy(struct hb_str *out, const struct hb_spec *s, const struct hb_remat *r)
{
    uint32_t input = 1u << HB_TN_LAYER_IN;
    bool nested = s->stack.form == HB_FORM_NESTED, offload = (r->offload & input) != 0;
    if (r->policy == HB_POLICY_FULL && !(r->offload & ~input) && (!nested || !s->stack.outer)) {
        if (nested && !offload)
            hb_str_add(out, "  gradient_checkpointing: nested\n");
        else if (!nested)
            hb_str_addf(out, "  gradient_checkpointing: %s\n", offload ? "offload" : "true");
        if (!nested || !offload)
            return;
    }
    hb_str_add(out, "  gradient_checkpointing:\n");
    if (nested && s->stack.outer == 0)
        hb_str_add(out, "    nested: true\n");
    else if (nested)
        hb_str_addf(out, "    nested: %" PRId64 "\n", s->stack.outer);
    hb_str_addf(out, "    save_carries: %s\n", offload ? "offload" : "true");
    emit_names(out, "save_block_internals", r->save & ~input);
    emit_names(out, "offload_block_internals", r->offload & ~input);
    if ((r->save | r->offload) & ~input)
        hb_str_add(out, "    # these names must be given in the model (tree_checkpoint_name); they "
                        "are hbmsim's\n");
}

static void emit_remat(struct hb_str *out, const struct hb_spec *s)
{
    const struct hb_remat *r = &s->model.blocks[0].remat;
    switch (r->policy) {
    case HB_POLICY_FULL:
    case HB_POLICY_NAMES:
        emit_policy(out, s, r);
        return;
    case HB_POLICY_NONE:
        hb_str_add(out, "  gradient_checkpointing: false\n");
        return;
    case HB_POLICY_DOTS:
    case HB_POLICY_DOTS_NO_BATCH:
        hb_str_add(out, "  gradient_checkpointing: save_all\n");
        return;
    }
}

static void emit_model(struct hb_str *out, const struct hb_spec *s)
{
    const struct hb_model *m = &s->model;
    const struct hb_block *b = &m->blocks[0];
    const char *tokenizer = tokenizer_of(m->vocab), *type = type_of(m);
    int64_t layers = 0;
    for (int i = 0; i < m->block_count; i++)
        layers += m->blocks[i].repeat;
    if (tokenizer)
        hb_str_addf(out, "data:\n  tokenizer: %s  # of %" PRId64 " words\n", tokenizer, m->vocab);
    hb_str_addf(out, "model:\n  type: %s\n", type);
    number(out, "hidden_dim", m->d_model);
    number(out, "intermediate_dim", b->moe.experts ? b->moe.d_ff : b->mlp.d_ff);
    number(out, "num_layers", layers);
    number(out, "num_heads", b->attention.heads);
    number(out, "num_kv_heads", b->attention.kv_heads);
    if (b->attention.head_dim != m->d_model / b->attention.heads)
        number(out, "head_dim", b->attention.head_dim);
    number(out, "max_seq_len", s->batch.seq);
    hb_str_addf(out, "  tie_word_embeddings: %s\n  use_bias: %s\n", truth(m->tied_embeddings),
                truth(b->attention.bias == HB_BIAS_ALL));
    if (b->moe.experts) {
        number(out, "n_routed_experts", b->moe.experts);
        number(out, "num_experts_per_tok", b->moe.top_k);
    }
    if (s->loss.chunks > 1)
        number(out, "cross_entropy_block_size", hb_div_up(m->vocab, s->loss.chunks));
    if (b->attention.windows[0] > 0)
        number(out, "sliding_window", b->attention.windows[0]);
    hb_str_addf(out, "  attn_backend: %s\n",
                b->attention.kernel == HB_KERNEL_NAIVE ? "vanilla" : "default");
    emit_remat(out, s);
}

static const char *type_name(enum hb_dtype type)
{
    return type == HB_DT_BF16 ? "bfloat16" : type == HB_DT_F16 ? "float16" : "float32";
}

/* Parameters as `mp` says them: what starts narrow has an f32 first moment from the first update
 * on, and a narrow second one (models/import/levanter.c). */
static enum hb_dtype params_type(const struct hb_spec *s)
{
    const enum hb_dtype *m = s->optimizer.moments;
    bool narrow = s->optimizer.moment_count == 2 && m[0] == HB_DT_F32 && m[1] == HB_DT_BF16;
    return narrow ? HB_DT_BF16 : s->precision.params;
}

static void emit_trainer(struct hb_str *out, const struct hb_spec *s)
{
    int64_t ranks = s->mesh[HB_AX_DATA] * s->mesh[HB_AX_FSDP];
    hb_str_addf(out, "trainer:\n  train_batch_size: %" PRId64 "\n", s->batch.global);
    number(out, "per_device_parallelism", s->batch.global / (ranks * s->batch.accumulate));
    hb_str_addf(out, "  mp: p=%s,c=%s\n", type_name(params_type(s)),
                type_name(s->precision.compute));
    hb_str_addf(
        out, "  mesh:\n    axes: {replica: %" PRId64 ", data: %" PRId64 ", model: %" PRId64 "}\n",
        s->mesh[HB_AX_DATA], s->mesh[HB_AX_FSDP], s->mesh[HB_AX_TENSOR]);
    if (s->mesh[HB_AX_TENSOR] > 1) /* heads alone splits no queries, keys and values */
        hb_str_addf(out, "    tensor_parallel_axes: [mlp, heads, kv_head%s]\n",
                    s->sharding.vocab_over_tensor ? ", vocab" : "");
    if (s->optimizer.ema != HB_PLACE_NONE)
        hb_str_add(out, "  model_averaging: {type: ema}\n");
    hb_str_addf(out, "optimizer:\n  type: %s\n  max_grad_norm: %s\n",
                s->optimizer.name == HB_OPT_MUON ? "muon" : "adam",
                s->optimizer.clip ? "1.0" : "0.0");
}

void hb_emit_levanter(struct hb_str *out, const struct hb_spec *spec, const char *data_dir)
{
    struct hb_hosts hosts = hb_hosts_of(out->arena, spec, data_dir);
    hb_str_addf(out,
                "# python -m levanter.main.train_lm --config_path this.yaml, on %" PRId64
                " host%s of %" PRId64 " devices; your own data below `data`.\n",
                hosts.count, hosts.count == 1 ? "" : "s", hosts.each);
    emit_model(out, spec);
    emit_trainer(out, spec);
}
