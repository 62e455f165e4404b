/* MaxText's words for a model: the names of src/maxtext/configs/models at e591f30 (August 2026), or
 * decoder_block with the sizes of base.yml; and compile_topology for the hardware. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "models/emit.h"
#include "models/emit_parts.h"

/* Names of MaxText's whose layers the zoo's card of the second name has. */
static const struct {
    const char *maxtext, *zoo;
} models[] = {
    {"gemma-2b", "gemma-2b"},
    {"gemma-7b", "gemma-7b"},
    {"gemma2-2b", "gemma2-2b"},
    {"gemma2-9b", "gemma2-9b"},
    {"gemma2-27b", "gemma2-27b"},
    {"gemma3-4b", "gemma3-4b"},
    {"gemma3-12b", "gemma3-12b"},
    {"gemma3-27b", "gemma3-27b"},
    {"gpt-oss-20b", "gpt-oss-20b"},
    {"gpt-oss-120b", "gpt-oss-120b"},
    {"llama2-7b", "llama2-7b"},
    {"llama2-13b", "llama2-13b"},
    {"llama2-70b", "llama2-70b"},
    {"llama3-8b", "llama3-8b"},
    {"llama3-70b", "llama3-70b"},
    {"llama3.1-8b", "llama3.1-8b"},
    {"llama3.1-70b", "llama3.1-70b"},
    {"llama3.1-405b", "llama3.1-405b"},
    {"mixtral-8x7b", "mixtral-8x7b"},
    {"mixtral-8x22b", "mixtral-8x22b"},
    {"olmo3-7b", "olmo3-7b"},
    {"olmo3-32b", "olmo3-32b"},
    {"qwen2.5-1.5b", "qwen2.5-1.5b"},
    {"qwen2.5-7b", "qwen2.5-7b"},
    {"qwen2.5-14b", "qwen2.5-14b"},
    {"qwen3-0.6b", "qwen3-0.6b"},
    {"qwen3-1.7b", "qwen3-1.7b"},
    {"qwen3-4b", "qwen3-4b"},
    {"qwen3-8b", "qwen3-8b"},
    {"qwen3-14b", "qwen3-14b"},
    {"qwen3-32b", "qwen3-32b"},
    {"qwen3-30b-a3b", "qwen3-30b-a3b"},
    {"qwen3-235b-a22b", "qwen3-235b-a22b"},
    {"qwen3-480b-a35b", "qwen3-coder-480b-a35b"},
    {"deepseek2-16b", "deepseek-v2-lite"},
    {"deepseek2-236b", "deepseek-v2"},
    {"deepseek3-671b", "deepseek-v3"},
    {"kimi-k2-1t", "kimi-k2"},
    {"llama4-17b-16e", "llama4-scout"},
    {"llama4-17b-128e", "llama4-maverick"},
};

static const char *find_name(struct hb_arena *arena, const struct hb_model *m, const char *data_dir)
{
    for (int named = 1; named >= 0; named--) /* its own name first */
        for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
            if ((hb_str_same(m->name, models[i].maxtext) || hb_str_same(m->name, models[i].zoo)) ==
                    (named == 1) &&
                hb_is_card(arena, m, models[i].zoo, data_dir))
                return models[i].maxtext;
    return NULL;
}

/* ---- sizes */

static const char *decoder(const struct hb_model *m)
{
    const struct hb_block *b = &m->blocks[m->block_count - 1];
    const struct hb_attention *a = &b->attention;
    if (a->kind == HB_ATTN_MLA)
        return "deepseek";
    if (a->qk_norm == HB_QKN_L2)
        return "llama4";
    if (a->sinks)
        return "gpt_oss";
    if (b->moe.experts)
        return a->qk_norm ? "qwen3_moe" : "mixtral";
    if (b->norm == HB_NORM_LAYER)
        return "gpt3";
    if (b->post_norm)
        return a->qk_norm ? "gemma3" : "gemma2";
    if (b->unit == 4)
        return "olmo3";
    if (a->qk_norm)
        return "qwen3";
    return a->bias == HB_BIAS_QKV ? "qwen2" : b->mlp.kind == HB_MLP_GEGLU ? "gemma" : "llama2";
}

static const char *activations(enum hb_mlp_kind kind)
{
    switch (kind) {
    case HB_MLP_SWIGLU:
        return "[silu,linear]";
    case HB_MLP_GEGLU:
        return "[gelu,linear]";
    case HB_MLP_GELU:
        return "[gelu]";
    case HB_MLP_RELU2:
        return "[relu2]";
    }
    return "";
}

static void emit_attention(struct hb_str *out, const struct hb_attention *a)
{
    if (a->kind == HB_ATTN_MLA)
        hb_str_addf(out,
                    "attention_type=mla\nq_lora_rank=%" PRId64 "\nkv_lora_rank=%" PRId64
                    "\nqk_nope_head_dim=%" PRId64 "\nqk_rope_head_dim=%" PRId64
                    "\nv_head_dim=%" PRId64 "\n",
                    a->q_lora_rank, a->kv_lora_rank, a->qk_nope_head_dim, a->qk_rope_head_dim,
                    a->v_head_dim);
    int64_t window = 0;
    for (int i = 0; i < a->window_count; i++)
        window = a->windows[i] > window ? a->windows[i] : window;
    if (window && a->qk_norm == HB_QKN_L2)
        hb_str_addf(out, "chunk_attn_window_size=%" PRId64 "\n", window);
    else if (window)
        hb_str_addf(out, "sliding_window_size=%" PRId64 "\n", window);
    if (window && a->window_count == 1)
        hb_str_add(out, "attention_type=local_sliding\n");
    if (a->bias == HB_BIAS_QKV || (a->bias && a->sinks))
        hb_str_add(out, "attention_bias=true\n");
    if (a->qk_norm)
        hb_str_add(out, "use_qk_norm=true\n");
    if (a->sinks)
        hb_str_add(out, "attention_sink=true\n");
    if (a->fused_qkv)
        hb_str_add(out, "fused_qkv=true\n");
    if (a->softcap > 0)
        hb_str_addf(out, "attn_logits_soft_cap=%.10g\n", a->softcap);
}

static void emit_experts(struct hb_str *out, const struct hb_model *m)
{
    const struct hb_moe *e = &m->blocks[m->block_count - 1].moe;
    if (!e->experts)
        return;
    hb_str_addf(out,
                "num_experts=%" PRId64 "\nnum_experts_per_tok=%" PRId64
                "\nbase_moe_mlp_dim=%" PRId64 "\nshared_experts=%" PRId64 "\nrouted_bias=%s\n",
                e->experts, e->top_k, e->d_ff, e->shared_experts,
                e->router_bias ? "true" : "false");
    if (m->block_count > 1)
        hb_str_addf(out, "first_num_dense_layers=%" PRId64 "\n", m->blocks[0].repeat);
    if (e->bias)
        hb_str_add(out, "mlp_bias=true\n");
}

static void emit_sizes(struct hb_str *out, const struct hb_spec *s)
{
    const struct hb_model *m = &s->model;
    const struct hb_block *b = &m->blocks[0];
    const char *kind = decoder(m);
    int64_t layers = 0;
    for (int i = 0; i < m->block_count; i++)
        layers += m->blocks[i].repeat;
    if (hb_str_same(kind, "gemma2"))
        layers /= 2;
    hb_str_addf(out,
                "model_name=default\ndecoder_block=%s\nbase_emb_dim=%" PRId64
                "\nbase_num_decoder_layers=%" PRId64 "\nbase_num_query_heads=%" PRId64
                "\nbase_num_kv_heads=%" PRId64 "\nhead_dim=%" PRId64 "\nbase_mlp_dim=%" PRId64
                "\nmlp_activations=%s\nvocab_size=%" PRId64 "\nlogits_via_embedding=%s\n",
                kind, m->d_model, layers, b->attention.heads, b->attention.kv_heads,
                b->attention.head_dim, b->moe.experts ? b->moe.d_ff : b->mlp.d_ff,
                activations(b->moe.experts ? b->moe.kind : b->mlp.kind), m->vocab,
                m->tied_embeddings ? "true" : "false");
    emit_attention(out, &b->attention);
    emit_experts(out, m);
    if (b->post_norm)
        hb_str_add(out, "use_post_attn_norm=true\nuse_post_ffw_norm=true\n");
    if (m->positions)
        hb_str_addf(out, "trainable_position_size=%" PRId64 "\n", m->positions);
}

static void emit_hardware(struct hb_str *out, const struct hb_spec *s)
{
    static const struct {
        const char *device, *topology;
        int cores;
    } known[] = {
        {"tpu-v4", "v4", 2}, {"tpu-v5p", "v5p", 2}, {"tpu-v5e", "v5e", 1}, {"tpu-v6e", "v6e", 1}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (hb_str_same(known[i].device, s->hardware.device))
            hb_str_addf(out,
                        "hardware=tpu\ncompile_topology=%s-%" PRId64
                        "\ncompile_topology_num_slices=1\n",
                        known[i].topology, s->hardware.count * known[i].cores);
    if (s->compiler == HB_XLA_GPU)
        hb_str_add(out, "hardware=gpu\n");
}

void hb_emit_maxtext_model(struct hb_str *out, const struct hb_spec *spec, const char *data_dir)
{
    const char *name = find_name(out->arena, &spec->model, data_dir);
    if (name)
        hb_str_addf(out, "model_name=%s\n", name);
    else
        emit_sizes(out, spec);
    if (!name && spec->loss.softcap > 0)
        hb_str_addf(out, "final_logits_soft_cap=%.10g\n", spec->loss.softcap);
    if (spec->model.mtp > 0)
        hb_str_addf(out, "mtp_num_layers=%" PRId64 "\n", spec->model.mtp);
    emit_hardware(out, spec);
}
