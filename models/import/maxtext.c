/* MaxText's yml and command line. Names and defaults of keys: configs/base.yml and configs/types.py
 * at e591f30 (August 2026). The order of strength is MaxText's: base, the file, the model's yml
 * (found beside the file, else the model zoo's card of that name), the command line. What a key
 * does to memory was read off measured steps: tests/golden/maxtext.jsonl. */
#include "models/import/source.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/size.h"
#include "models/import/maxtext.h"
#include "models/schema_key.h"

bool hb_import_is_maxtext(const struct hb_node *root)
{
    static const char *const keys[] = {
        "base_emb_dim",  "ici_fsdp_parallelism", "per_device_batch_size", "base_num_decoder_layers",
        "decoder_block", "base_config",          "remat_policy",          "max_target_length"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (hb_node_find(root, keys[i]))
            return true;
    return false;
}

/* ---- layers of files */

/* The zoo's names of MaxText's models, where they differ. */
static const struct {
    const char *maxtext;
    const char *zoo;
} names[] = {{"deepseek2-16b", "deepseek-v2-lite"},
             {"deepseek2-236b", "deepseek-v2"},
             {"deepseek3-671b", "deepseek-v3"},
             {"deepseek3-671b-2dfsdp", "deepseek-v3"},
             {"kimi-k2-1t", "kimi-k2"},
             {"llama4-17b-16e", "llama4-scout"},
             {"llama4-17b-128e", "llama4-maverick"},
             {"qwen3-480b-a35b", "qwen3-coder-480b-a35b"},
             {"llama3.3-70b", "llama3.1-70b"},
             {"llama3-405b", "llama3.1-405b"},
             {"olmo3-7b-pt", "olmo3-7b"}};

static const char *zoo_name(struct hb_foreign *f, const char *model)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (hb_str_same(names[i].maxtext, model))
            return names[i].zoo;
    if (hb_str_ends(model, "-base"))
        return hb_arena_strndup(f->arena, model, strlen(model) - strlen("-base"));
    return model;
}

/* A file that may be there; null where it is not. */
static struct hb_node *maybe_load(struct hb_foreign *f, const char *path)
{
    struct hb_diag unheard;
    struct hb_node *root = NULL;
    hb_diag_init(&unheard, f->arena);
    if (!hb_import_load(f->arena, &unheard, path, &root) || root->kind != HB_NODE_MAP)
        return NULL;
    return root;
}

static bool plain_name(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/');
}

/* The file over its base_config, the model's yml over both but for what the command line says. */
static struct hb_node *stack_files(struct hb_foreign *f, const struct hb_node *root,
                                   const char *model, bool *out_found)
{
    const char *folder = hb_file_folder(f->arena, f->path);
    const struct hb_node *base = hb_node_find(root, "base_config");
    struct hb_node *all = NULL;
    *out_found = false;
    if (base && base->kind == HB_NODE_SCALAR && plain_name(base->text))
        all = maybe_load(f, hb_arena_printf(f->arena, "%s%s", folder, base->text));
    if (!all)
        all = hb_node_new(f->arena, HB_NODE_MAP, root->loc);
    hb_node_overlay(all, hb_node_copy(f->arena, root));
    if (hb_str_same(f->path, "-") || !plain_name(model))
        return all;
    struct hb_node *card =
        maybe_load(f, hb_arena_printf(f->arena, "%smodels/%s.yml", folder, model));
    if (!card)
        return all;
    for (const struct hb_node *said = f->said ? f->said->first : NULL; said; said = said->next)
        hb_node_drop(card, said->key);
    hb_node_overlay(all, card);
    *out_found = true;
    return all;
}

/* ---- the model */

static int64_t scaled(int64_t value, int64_t doublings)
{
    return hb_mul_sat(value, (int64_t)1 << doublings);
}

/* get_individual_scales: heads and MLP, width, and layers take turns in doubling. */
static void scale(struct hb_foreign *f, const struct hb_node *c, struct hb_shape *s)
{
    int64_t by = hb_take_int(f, c, "global_parameter_scale", 1);
    int64_t doublings = 0;
    while (doublings < 40 && (int64_t)1 << (doublings + 1) <= by)
        doublings++;
    int64_t layers = doublings / 3;
    int64_t heads = layers + (doublings % 3 > 0);
    s->d_model = scaled(s->d_model, layers + (doublings % 3 > 1));
    s->heads = scaled(s->heads, heads);
    s->kv_heads = scaled(s->kv_heads, heads);
    s->d_ff = scaled(s->d_ff, heads);
    s->moe_d_ff = scaled(s->moe_d_ff, heads);
    s->layers = scaled(s->layers, layers);
}

static bool is_block(const char *decoder, const char *kinds)
{
    size_t len = strlen(decoder);
    for (const char *at = kinds; *at;) {
        size_t word = strcspn(at, " ");
        if (word == len && memcmp(at, decoder, len) == 0)
            return true;
        at += word + (at[word] == ' ');
    }
    return false;
}

static const char *mlp_kind(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *list = hb_take(f, c, "mlp_activations");
    const char *first =
        list && list->first && list->first->kind == HB_NODE_SCALAR ? list->first->text : "silu";
    bool gated = !list || list->count > 1;
    if (hb_str_same(first, "relu2") || hb_str_same(first, "relu"))
        return "relu2";
    if (!gated)
        return "gelu";
    return strstr(first, "gelu") ? "geglu" : "swiglu";
}

static void take_windows(struct hb_foreign *f, const struct hb_node *c, const char *decoder,
                         struct hb_shape *s)
{
    int64_t window = hb_take_int(f, c, "sliding_window_size", 0);
    int64_t chunk = hb_take_int(f, c, "chunk_attn_window_size", 0);
    const char *type = hb_take_text(f, c, "attention_type", "global");
    int64_t turn = is_block(decoder, "gemma2 gpt_oss") ? 2
                   : is_block(decoder, "gemma3")       ? 6
                   : is_block(decoder, "olmo3 llama4") ? 4
                                                       : 0;
    if (is_block(decoder, "llama4"))
        window = chunk;
    if (!turn && !hb_str_same(type, "local_sliding"))
        return;
    for (int64_t i = 0; i < s->layers; i++)
        s->each[i].window = turn && (i + 1) % turn == 0 ? 0 : window;
}

static void take_experts(struct hb_foreign *f, const struct hb_node *c, const char *decoder,
                         struct hb_shape *s)
{
    s->experts = hb_take_int(f, c, "num_experts", 1);
    s->top_k = hb_take_int(f, c, "num_experts_per_tok", 1);
    s->shared_experts = hb_take_int(f, c, "shared_experts", 0);
    s->shared_d_ff = s->shared_experts * s->moe_d_ff;
    s->router_bias = hb_take_bool(f, c, "routed_bias", false);
    int64_t first = hb_take_int(f, c, "first_num_dense_layers", 0);
    int64_t step = hb_take_int(f, c, "interleave_moe_layer_step", 1);
    if (s->experts < 2) {
        s->experts = 0;
        return;
    }
    if (!is_block(decoder, "llama4"))
        step = 1;
    for (int64_t i = 0; i < s->layers; i++)
        s->each[i].moe = i >= first && (i + 1) % (step > 0 ? step : 1) == 0;
}

static void take_attention(struct hb_foreign *f, const struct hb_node *c, const char *decoder,
                           struct hb_shape *s)
{
    bool bias = hb_take_bool(f, c, "attention_bias", false);
    bool gpt3 = is_block(decoder, "gpt3");
    bool norm = hb_take_bool(f, c, "use_qk_norm", false);
    bool learned = norm || is_block(decoder, "gemma3");
    s->bias = gpt3 || (bias && is_block(decoder, "gpt_oss")) ? "true" : bias ? "qkv" : NULL;
    s->qk_norm = learned ? is_block(decoder, "llama4") ? "l2" : "true" : NULL;
    s->layernorm = gpt3;
    s->mlp_bias = gpt3 || hb_take_bool(f, c, "mlp_bias", false);
    s->no_rope = gpt3;
    s->fused_qkv = hb_take_bool(f, c, "fused_qkv", false);
    s->sinks = hb_take_bool(f, c, "attention_sink", false);
    s->post_norm = hb_take_bool(f, c, "use_post_attn_norm", false);
    hb_take(f, c, "use_post_ffw_norm");
    s->softcap = hb_take_real(f, c, "attn_logits_soft_cap", 0);
    if (hb_str_same(hb_take_text(f, c, "attention_type", "global"), "mla")) {
        s->q_lora_rank = hb_take_int(f, c, "q_lora_rank", 0);
        s->kv_lora_rank = hb_take_int(f, c, "kv_lora_rank", 512);
        s->qk_nope_head_dim = hb_take_int(f, c, "qk_nope_head_dim", 128);
        s->qk_rope_head_dim = hb_take_int(f, c, "qk_rope_head_dim", 64);
        s->v_head_dim = hb_take_int(f, c, "v_head_dim", 128);
    }
}

static bool put_own_model(struct hb_foreign *f, const struct hb_node *c, const char *model)
{
    const char *decoder = hb_take_text(f, c, "decoder_block", "llama2");
    static const char known[] = "default llama2 mistral mixtral deepseek gemma gemma2 gemma3 gpt3 "
                                "gpt_oss qwen2 qwen3 qwen3_moe llama4 olmo3 simple simple_mlp";
    struct hb_shape s = {.name = hb_str_same(model, "default") ? "maxtext" : model};
    if (!is_block(decoder, known))
        return hb_error(f->diag, hb_node_find(c, "decoder_block")->loc,
                        "decoder_block: '%s' is not known; known: %s", decoder, known);
    s.d_model = hb_take_int(f, c, "base_emb_dim", 2048);
    s.heads = hb_take_int(f, c, "base_num_query_heads", 16);
    s.kv_heads = hb_take_int(f, c, "base_num_kv_heads", 16);
    s.head_dim = hb_take_int(f, c, "head_dim", 128);
    s.d_ff = hb_take_int(f, c, "base_mlp_dim", 7168);
    s.moe_d_ff = hb_take_int(f, c, "base_moe_mlp_dim", -1);
    if (s.moe_d_ff < 1)
        s.moe_d_ff = s.d_ff;
    s.layers = hb_take_int(f, c, "base_num_decoder_layers", 16);
    s.vocab = hb_take_int(f, c, "vocab_size", 32000);
    scale(f, c, &s);
    if (is_block(decoder, "gemma2"))
        s.layers = scaled(s.layers, 1); /* a layer of MaxText's is a pair */
    if (s.layers < 1 || s.layers > 100000)
        return hb_error(f->diag, c->loc, "base_num_decoder_layers: allowed: 1 to 100000");
    s.each = hb_arena_alloc(f->arena, (size_t)s.layers, sizeof *s.each);
    s.mlp = mlp_kind(f, c);
    s.tied = hb_take_bool(f, c, "logits_via_embedding", false);
    s.positions = hb_take_int(f, c, "trainable_position_size", 0);
    if (s.positions < 0)
        s.positions = 0;
    s.dropout = hb_take_real(f, c, "dropout_rate", 0);
    if (!hb_take_bool(f, c, "enable_dropout", true))
        s.dropout = 0;
    s.mtp = hb_take_int(f, c, "mtp_num_layers", 0);
    take_attention(f, c, decoder, &s);
    take_experts(f, c, decoder, &s);
    take_windows(f, c, decoder, &s);
    return hb_put_model(f, &s, c->loc);
}

/* The zoo's card under MaxText's name; its layers may be other in number. */
static bool put_card(struct hb_foreign *f, const struct hb_node *c, const char *model)
{
    const char *zoo = zoo_name(f, model);
    const struct hb_node *node = hb_node_find(c, "model_name");
    if (!hb_put_card(f, zoo, node ? node->loc : c->loc))
        return false;
    hb_assume(f, "model_name %s: the model zoo's card %s (no models/%s.yml beside the file)", model,
              zoo, model);
    hb_put(f, "model.name", model);
    struct hb_node *blocks = hb_node_find(hb_node_find(f->out->root, "model"), "blocks");
    if (hb_node_find(f->said, "vocab_size"))
        hb_put_int(f, "model.vocab", hb_take_int(f, c, "vocab_size", 0));
    if (hb_node_find(f->said, "base_num_decoder_layers") && blocks->count == 1) {
        int64_t layers = hb_take_int(f, c, "base_num_decoder_layers", 0);
        hb_put_in_blocks(f, NULL, "repeat", hb_arena_printf(f->arena, "%" PRId64, layers));
    }
    return true;
}

/* ---- the whole */

static bool has_model(const struct hb_node *c)
{
    return hb_node_find(c, "base_emb_dim") || hb_node_find(c, "decoder_block") ||
           hb_node_find(c, "base_num_decoder_layers");
}

bool hb_import_maxtext(struct hb_foreign *f, const struct hb_node *root)
{
    const struct hb_node *said = hb_node_find(f->said, "model_name");
    const struct hb_node *name = said ? said : hb_node_find(root, "model_name");
    const char *model = name && name->kind == HB_NODE_SCALAR ? name->text : "default";
    bool found = false;
    struct hb_node *c = stack_files(f, root, model, &found);
    if (f->said)
        hb_node_overlay(c, hb_node_copy(f->arena, f->said));
    f->out->what = hb_arena_printf(f->arena, "MaxText's configuration, model %s", model);
    hb_take(f, c, "model_name");
    bool own = found || hb_str_same(model, "default") ||
               (!hb_node_find(root, "model_name") && has_model(root) && !said);
    if (!(own ? put_own_model(f, c, model) : put_card(f, c, model)))
        return false;
    return hb_maxtext_run(f, c) && !f->diag->errors;
}
