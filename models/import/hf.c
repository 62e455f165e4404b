/* Hugging Face config.json. Names of keys and the values that stand for absent ones: the
 * configuration classes of transformers 5.23 (models/TYPE/configuration_TYPE.py), and the names
 * that earlier versions wrote (torch_dtype, rope_theta, n_embd). Whether a type has biases, norms
 * of queries and keys, a second norm: its modeling_TYPE.py; counted against the published weights
 * in tests/unit/test_import.c. The text part of models with images is read, the rest told. */
#include "models/import/source.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"

enum habit {
    LAYERNORM = 1,
    POST_NORM = 2,
    BIAS = 4,     /* of all projections of attention */
    QKV_BIAS = 8, /* of q, k, v */
    MLP_BIAS = 16,
    QK_NORM = 32,
    NO_ROPE = 64, /* learned positions */
    FUSED_QKV = 128,
    SINKS = 256,
    ROUTER_BIAS = 512,
    TIED = 1024, /* where tie_word_embeddings is absent */
    MLA = 2048,
    ALTERNATE = 4096,  /* window, full in turn, where layer_types is absent */
    SIXTH = 8192,      /* each sixth layer is full */
    FOURTH = 16384,    /* each fourth */
    NO_WINDOW = 32768, /* sliding_window counts only with use_sliding_window */
    OPEN = 65536       /* the output's projection has no bias where the others have one */
};

struct family {
    const char *type;
    const char *mlp;
    unsigned habits;
    /* where the key is absent; 0: it has to be there (kv_heads: heads, head_dim: width / heads) */
    int64_t kv_heads, head_dim, window, experts, top_k, moe_d_ff;
};

static const struct family families[] = {
    {"llama", "swiglu", 0, 0, 0, 0, 0, 0, 0},
    {"mistral", "swiglu", 0, 8, 0, 4096, 0, 0, 0},
    {"ministral", "swiglu", 0, 8, 0, 4096, 0, 0, 0},
    {"mistral3", "swiglu", 0, 8, 0, 0, 0, 0, 0},
    {"mixtral", "swiglu", 0, 8, 0, 0, 8, 2, 0},
    {"qwen2", "swiglu", QKV_BIAS | NO_WINDOW, 32, 0, 4096, 0, 0, 0},
    {"qwen2_moe", "swiglu", QKV_BIAS | NO_WINDOW, 16, 0, 4096, 60, 4, 1408},
    {"qwen3", "swiglu", QK_NORM | NO_WINDOW, 32, 128, 4096, 0, 0, 0},
    {"qwen3_moe", "swiglu", QK_NORM | NO_WINDOW, 4, 0, 4096, 128, 8, 768},
    {"gemma", "geglu", TIED, 16, 256, 0, 0, 0, 0},
    {"gemma2", "geglu", TIED | POST_NORM | ALTERNATE, 4, 256, 4096, 0, 0, 0},
    {"gemma3_text", "geglu", TIED | POST_NORM | QK_NORM | SIXTH, 4, 256, 4096, 0, 0, 0},
    {"gemma3", "geglu", TIED | POST_NORM | QK_NORM | SIXTH, 4, 256, 4096, 0, 0, 0},
    {"deepseek_v2", "swiglu", MLA, 0, 0, 0, 64, 0, 1407},
    {"deepseek_v3", "swiglu", MLA | ROUTER_BIAS, 0, 0, 0, 256, 8, 2048},
    {"kimi_k2", "swiglu", MLA | ROUTER_BIAS, 0, 0, 0, 256, 8, 2048},
    {"gpt2", "gelu", LAYERNORM | BIAS | MLP_BIAS | NO_ROPE | FUSED_QKV | TIED, 0, 0, 0, 0, 0, 0},
    {"gpt_neox", "gelu", LAYERNORM | BIAS | MLP_BIAS | FUSED_QKV, 0, 0, 0, 0, 0, 0},
    {"phi", "gelu", LAYERNORM | BIAS | MLP_BIAS, 0, 0, 0, 0, 0, 0},
    {"phi3", "swiglu", FUSED_QKV, 0, 0, 0, 0, 0, 0},
    {"phimoe", "swiglu", LAYERNORM | NO_WINDOW, 8, 0, 0, 16, 2, 0},
    {"olmo2", "swiglu", QK_NORM, 0, 0, 0, 0, 0, 0},
    {"olmo3", "swiglu", QK_NORM | FOURTH, 0, 0, 4096, 0, 0, 0},
    {"olmoe", "swiglu", QK_NORM, 0, 0, 0, 64, 8, 0},
    {"gpt_oss", "swiglu", BIAS | MLP_BIAS | SINKS | ROUTER_BIAS | ALTERNATE, 8, 64, 128, 128, 4, 0},
    {"glm4_moe", "swiglu", ROUTER_BIAS | OPEN, 8, 0, 0, 128, 8, 1408},
    {"llama4_text", "swiglu", 0, 8, 128, 8192, 16, 1, 0},
    {"llama4", "swiglu", 0, 8, 128, 8192, 16, 1, 0},
    {"smollm3", "swiglu", NO_WINDOW, 4, 0, 0, 0, 0, 0},
    {"granite", "swiglu", 0, 0, 0, 0, 0, 0, 0},
    {"granitemoe", "swiglu", TIED, 0, 0, 0, 8, 2, 0},
    {"minimax_m2", "swiglu", QK_NORM | ROUTER_BIAS, 8, 128, 0, 256, 8, 0},
    {"seed_oss", "swiglu", BIAS | OPEN, 8, 128, 0, 0, 0, 0},
    {"dots1", "swiglu", QK_NORM | ROUTER_BIAS | NO_WINDOW, 32, 0, 0, 128, 6, 1408},
    {"ernie4_5", "swiglu", TIED, 2, 128, 0, 0, 0, 0},
    {"ernie4_5_moe", "swiglu", TIED | ROUTER_BIAS, 4, 128, 0, 64, 6, 1536},
    {"starcoder2", "gelu", LAYERNORM | BIAS | MLP_BIAS | TIED, 2, 0, 0, 0, 0, 0},
    {"qwen2_vl", "swiglu", QKV_BIAS | NO_WINDOW, 8, 0, 4096, 0, 0, 0},
    {"qwen2_5_vl", "swiglu", QKV_BIAS | NO_WINDOW, 8, 0, 4096, 0, 0, 0},
    {"qwen3_vl", "swiglu", QK_NORM, 32, 128, 0, 0, 0, 0},
    {"qwen3_vl_moe", "swiglu", QK_NORM, 16, 0, 0, 60, 4, 1408},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

/* Keys that change no memory of a training step. */
static const char *const quiet[] = {"architectures",
                                    "_name_or_path",
                                    "transformers_version",
                                    "torch_dtype",
                                    "dtype",
                                    "*_token_id",
                                    "bos_token_id",
                                    "eos_token_id",
                                    "pad_token_id",
                                    "unk_token_id",
                                    "sep_token_id",
                                    "decoder_start_token_id",
                                    "use_cache",
                                    "initializer_range",
                                    "rms_norm_eps",
                                    "layer_norm_eps",
                                    "layer_norm_epsilon",
                                    "norm_eps",
                                    "norm_epsilon",
                                    "norm_type",
                                    "mlp_type",
                                    "rope_*",
                                    "partial_rotary_factor",
                                    "rotary_*",
                                    "max_position_embeddings",
                                    "original_max_position_embeddings",
                                    "pretraining_tp",
                                    "return_dict*",
                                    "output_attentions",
                                    "output_hidden_states",
                                    "output_router_logits",
                                    "router_aux_loss_coef",
                                    "router_jitter_noise",
                                    "aux_loss_alpha",
                                    "seq_aux",
                                    "norm_topk_prob",
                                    "routed_scaling_factor",
                                    "scoring_func",
                                    "topk_method",
                                    "topk_group",
                                    "n_group",
                                    "auto_map",
                                    "attn_implementation",
                                    "_attn_implementation",
                                    "cache_implementation",
                                    "max_window_layers",
                                    "use_bidirectional_attention",
                                    "query_pre_attn_scalar",
                                    "is_decoder",
                                    "bad_words_ids",
                                    "embd_layer*",
                                    "ep_size",
                                    "initializer_factor",
                                    "summary_*",
                                    "task_specific_params",
                                    "n_ctx",
                                    "scale_attn*",
                                    "reorder_and_upcast_attn",
                                    "classifier_dropout",
                                    "use_parallel_residual",
                                    "swiglu_*",
                                    "initial_context_length",
                                    "experts_per_token",
                                    "attn_temperature_tuning",
                                    "floor_scale",
                                    "attn_scale",
                                    "no_rope_*",
                                    "max_sequence_length",
                                    "chunk_size_feed_forward",
                                    "id2label",
                                    "label2id",
                                    "problem_type",
                                    "tokenizer_class",
                                    "model_type",
                                    "input_jitter_noise",
                                    "clip_qkv",
                                    "qk_layernorm_eps",
                                    "embedding_multiplier",
                                    "residual_multiplier",
                                    "attention_multiplier",
                                    "logits_scaling",
                                    "num_hidden_layers_*",
                                    "head_dim_original",
                                    "sliding_window_pattern",
                                    "_sliding_window_pattern",
                                    "moe_layer_freq",
                                    "boi_token_index",
                                    "eoi_token_index",
                                    "image_token_index",
                                    "image_token_id",
                                    "mm_tokens_per_image",
                                    "for_llm_*",
                                    "num_nextn_predict_layers",
                                    "num_mtp_*",
                                    "mtp_transformer_layers",
                                    "use_mtp",
                                    "use_routing_bias",
                                    "qk_norm_type",
                                    "attn_type_list",
                                    "moe_norm_min",
                                    "moe_layer_end_index",
                                    "vision_*",
                                    "video_token_id",
                                    "interpolation_factor",
                                    "use_pos_emb",
                                    "prefix_lm",
                                    "unsloth_*",
                                    "pad_token",
                                    "quantization_config",
                                    NULL};

static const struct family *find_family(const char *type)
{
    for (int i = 0; i < FAMILIES; i++)
        if (hb_str_same(families[i].type, type))
            return &families[i];
    return NULL;
}

bool hb_import_is_hf(const struct hb_node *root)
{
    const struct hb_node *type = hb_node_find(root, "model_type");
    return type && type->kind == HB_NODE_SCALAR;
}

static bool fail_type(struct hb_foreign *f, const struct hb_node *root, const char *type)
{
    const char *names[FAMILIES + 1];
    struct hb_str known;
    hb_str_init(&known, f->arena);
    for (int i = 0; i < FAMILIES; i++) {
        names[i] = families[i].type;
        hb_str_addf(&known, "%s%s", i ? ", " : "", names[i]);
    }
    names[FAMILIES] = NULL;
    const struct hb_node *node = hb_node_find(root, "model_type");
    const char *near = hb_str_nearest(type, names);
    const char *linear = strstr(type, "mamba") || strstr(type, "rwkv") || strstr(type, "next")
                             ? "; layers without attention are not simulated"
                             : "";
    if (near && !linear[0])
        return hb_error(f->diag, node->loc, "model_type: '%s' is not known; did you mean '%s'?",
                        type, near);
    return hb_error(f->diag, node->loc,
                    "model_type: '%s' is not known%s: which biases, norms and layers it has stands "
                    "in no key; write model.blocks by `hbmsim help model`; known: %s",
                    type, linear, known.text);
}

/* ---- parts of the shape */

static const char *mlp_kind(struct hb_foreign *f, const struct hb_node *c,
                            const struct family *family)
{
    const char *act = hb_take_text(f, c, "hidden_act|hidden_activation|activation_function", "");
    if (strstr(family->mlp, "glu") && strstr(act, "gelu"))
        return "geglu";
    if (strstr(act, "relu2"))
        return "relu2";
    return family->mlp;
}

static void take_sizes(struct hb_foreign *f, const struct hb_node *c, const struct family *family,
                       struct hb_shape *s)
{
    s->d_model = hb_take_int(f, c, "hidden_size|n_embd|d_model", 0);
    s->vocab = hb_take_int(f, c, "vocab_size", 0);
    s->layers = hb_take_int(f, c, "num_hidden_layers|n_layer|num_layers", 0);
    s->heads = hb_take_int(f, c, "num_attention_heads|n_head", 0);
    s->d_ff = hb_take_int(f, c, "intermediate_size|n_inner", 0);
    s->kv_heads = hb_take_int(f, c, "num_key_value_heads", family->kv_heads);
    s->head_dim = hb_take_int(f, c, "head_dim", family->head_dim);
    if (!s->head_dim && s->heads > 0 && s->d_model % s->heads == 0)
        s->head_dim = s->d_model / s->heads;
    if (hb_str_same(family->type, "gpt2") && !s->d_ff)
        s->d_ff = 4 * s->d_model;
    if (family->habits & NO_ROPE)
        s->positions = hb_take_int(f, c, "n_positions|max_position_embeddings", 1024);
    s->tied = hb_take_bool(f, c, "tie_word_embeddings", (family->habits & TIED) != 0);
}

static void take_habits(struct hb_foreign *f, const struct hb_node *c, const struct family *family,
                        struct hb_shape *s)
{
    unsigned h = family->habits;
    s->layernorm = (h & LAYERNORM) != 0;
    s->post_norm = (h & POST_NORM) != 0;
    s->no_rope = (h & NO_ROPE) != 0;
    s->fused_qkv = (h & FUSED_QKV) != 0;
    s->sinks = (h & SINKS) != 0;
    s->router_bias = (h & ROUTER_BIAS) != 0;
    s->mlp = mlp_kind(f, c, family);
    bool qkv = hb_take_bool(f, c, "qkv_bias", (h & QKV_BIAS) != 0);
    bool all = hb_take_bool(f, c, "attention_bias|use_bias", (h & BIAS) != 0);
    bool out = hb_take_bool(f, c, "attention_out_bias", !(h & OPEN));
    s->bias = all && out ? "true" : all || qkv ? "qkv" : NULL;
    s->mlp_bias = hb_take_bool(f, c, "mlp_bias", (h & MLP_BIAS) && all);
    bool norm = hb_take_bool(f, c, "use_qk_norm|qk_layernorm", (h & QK_NORM) != 0);
    bool llama4 = strncmp(family->type, "llama4", 6) == 0;
    if (llama4)
        norm = hb_take_bool(f, c, "use_qk_norm", true);
    s->qk_norm = norm ? llama4 ? "l2" : "true" : NULL;
    s->softcap =
        hb_take_real(f, c, "attn_logit_softcapping", hb_str_same(family->type, "gemma2") ? 50 : 0);
    s->dropout = hb_take_real(f, c, "resid_pdrop|hidden_dropout|residual_dropout", 0);
    s->attention_dropout = hb_take_real(f, c, "attn_pdrop|attention_dropout", 0);
    hb_take_any(f, c, "embd_pdrop|embedding_dropout");
    double cap =
        hb_take_real(f, c, "final_logit_softcapping", hb_str_same(family->type, "gemma2") ? 30 : 0);
    if (cap > 0)
        hb_put_real(f, "loss.softcap", cap);
}

static void take_mla(struct hb_foreign *f, const struct hb_node *c, struct hb_shape *s)
{
    s->kv_lora_rank = hb_take_int(f, c, "kv_lora_rank", 512);
    const struct hb_node *rank = hb_node_find(c, "q_lora_rank");
    s->q_lora_rank = hb_take_int(f, c, "q_lora_rank", rank ? 0 : 1536);
    s->qk_nope_head_dim = hb_take_int(f, c, "qk_nope_head_dim", 128);
    s->qk_rope_head_dim = hb_take_int(f, c, "qk_rope_head_dim", 64);
    s->v_head_dim = hb_take_int(f, c, "v_head_dim", 128);
    hb_take_any(f, c, "qk_head_dim");
}

/* ---- which layers have experts */

static bool in_list(const struct hb_node *list, int64_t wanted)
{
    for (const struct hb_node *n = list ? list->first : NULL; n; n = n->next) {
        double value = -1;
        if (hb_number(n, &value) && hb_clipped(value) == wanted)
            return true;
    }
    return false;
}

static void take_experts(struct hb_foreign *f, const struct hb_node *c, const struct family *family,
                         struct hb_shape *s)
{
    s->experts = hb_take_int(f, c, "num_local_experts|n_routed_experts|num_experts|moe_num_experts",
                             family->experts);
    s->top_k = hb_take_int(f, c, "num_experts_per_tok|moe_k", family->top_k);
    s->moe_d_ff = hb_take_int(f, c, "moe_intermediate_size", family->moe_d_ff);
    if (!s->moe_d_ff)
        s->moe_d_ff = s->d_ff;
    bool ernie = hb_str_same(family->type, "ernie4_5_moe");
    s->shared_experts = hb_take_int(f, c, "n_shared_experts|moe_num_shared_experts", ernie ? 2 : 0);
    int64_t shared =
        hb_take_int(f, c, "shared_expert_intermediate_size|shared_intermediate_size", 0);
    if (shared) {
        s->shared_experts = 1;
        s->shared_d_ff = shared;
    } else {
        s->shared_d_ff = s->shared_experts * s->moe_d_ff;
    }
    int64_t first = hb_take_int(f, c, "first_k_dense_replace|moe_layer_start_index",
                                ernie || hb_str_same(family->type, "glm4_moe") ? 1 : 0);
    int64_t step =
        hb_take_int(f, c, "decoder_sparse_step|interleave_moe_layer_step|moe_layer_interval", 1);
    const struct hb_node *dense = hb_take_any(f, c, "mlp_only_layers");
    const struct hb_node *moe = hb_take_any(f, c, "moe_layers");
    for (int64_t i = 0; i < s->layers; i++) {
        bool has = i >= first && (i + 1) % (step > 0 ? step : 1) == 0 && !in_list(dense, i);
        s->each[i].moe = moe && moe->count ? in_list(moe, i) : has;
    }
}

/* Llama 4: an expert that every token passes; its dense layers are wider than its experts. */
static void take_llama4(struct hb_foreign *f, const struct hb_node *c, struct hb_shape *s)
{
    s->shared_experts = 1;
    s->shared_d_ff = s->moe_d_ff;
    s->d_ff = hb_take_int(f, c, "intermediate_size_mlp", 16384);
}

/* ---- windows */

static void take_windows(struct hb_foreign *f, const struct hb_node *c, const struct family *family,
                         struct hb_shape *s)
{
    const struct hb_node *types = hb_take_any(f, c, "layer_types");
    bool used = hb_take_bool(f, c, "use_sliding_window", !(family->habits & NO_WINDOW));
    const struct hb_node *said = hb_node_find(c, "sliding_window");
    int64_t window =
        hb_take_int(f, c, "sliding_window|attention_chunk_size", said ? 0 : family->window);
    int64_t turn = family->habits & ALTERNATE ? 2 : family->habits & SIXTH ? 6 : 0;
    turn = family->habits & FOURTH || strncmp(family->type, "llama4", 6) == 0 ? 4 : turn;
    turn = hb_take_int(f, c, "sliding_window_pattern|_sliding_window_pattern", turn);
    const struct hb_node *type = types ? types->first : NULL;
    for (int64_t i = 0; used && window > 0 && i < s->layers; i++) {
        bool full = turn > 0 && (i + 1) % turn == 0;
        if (type) {
            full = type->kind == HB_NODE_SCALAR && hb_str_same(type->text, "full_attention");
            type = type->next;
        }
        s->each[i].window = full ? 0 : window;
    }
}

/* ---- the whole */

static const char *short_name(struct hb_foreign *f, const struct hb_node *root, const char *type)
{
    const char *path = hb_take_text(f, root, "_name_or_path", "");
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return name[0] ? name : type;
}

static const struct hb_node *text_part(struct hb_foreign *f, const struct hb_node *root)
{
    const struct hb_node *text = hb_take_any(f, root, "text_config");
    bool inner = text && text->kind == HB_NODE_MAP;
    if (inner || hb_take_any(f, root, "vision_config"))
        hb_missing(f, "vision_config and its like: only the text part is trained here");
    return inner ? text : root;
}

static void tell_kind(struct hb_foreign *f, const struct family *family, const struct hb_node *root)
{
    if (strncmp(family->type, "olmo", 4) == 0 || hb_str_same(family->type, "minimax_m2"))
        hb_assume(f, "norms of queries and keys are counted per head, not over their whole width");
    if (hb_str_same(family->type, "olmo2") || hb_str_same(family->type, "olmo3"))
        hb_assume(f, "the two norms of a layer stand before attention and MLP, not behind");
    if (hb_str_same(family->type, "gpt_neox") || hb_str_same(family->type, "phi"))
        hb_assume(f, "attention and MLP one after the other, not in parallel");
    if (hb_str_same(family->type, "phi"))
        hb_missing(f, "the one norm that attention and MLP share: two are counted; and the bias of "
                      "the head");
    static const char *const further[] = {"num_nextn_predict_layers", "num_mtp_modules"};
    for (int i = 0; i < 2; i++) {
        const struct hb_node *mtp = hb_node_find(root, further[i]);
        if (mtp)
            hb_missing(f, "%s: %s; the main model alone (model.mtp adds it)", further[i],
                       hb_node_show(f->arena, mtp));
    }
    const struct hb_node *quant = hb_node_find(root, "quantization_config");
    if (quant)
        hb_missing(f, "quantization_config: of the stored weights; trained in precision.params");
}

bool hb_import_hf(struct hb_foreign *f, const struct hb_node *root)
{
    const char *type = hb_take_text(f, root, "model_type", "");
    const struct family *family = find_family(type);
    const struct hb_node *c = text_part(f, root);
    if (!family)
        return fail_type(f, root, type);
    f->out->what = hb_arena_printf(f->arena, "Hugging Face config.json, model_type %s", type);
    struct hb_shape s = {.name = short_name(f, root, type)};
    if (c != root && hb_str_same(type, "mistral3"))
        hb_take_any(f, c, "model_type");
    take_sizes(f, c, family, &s);
    if (c != root) /* the whole model's word is the one that counts */
        s.tied = hb_take_bool(f, root, "tie_word_embeddings", s.tied);
    if (s.layers < 1 || s.layers > 100000)
        return hb_error(f->diag, c->loc, "num_hidden_layers is missing, or not within 1 to 100000");
    s.each = hb_arena_alloc(f->arena, (size_t)s.layers, sizeof *s.each);
    take_habits(f, c, family, &s);
    if (family->habits & MLA)
        take_mla(f, c, &s);
    if (family->experts)
        take_experts(f, c, family, &s);
    if (strncmp(type, "llama4", 6) == 0)
        take_llama4(f, c, &s);
    take_windows(f, c, family, &s);
    if (!hb_put_model(f, &s, c->loc))
        return false;
    tell_kind(f, family, root);
    hb_tell_rest(f, root, "", quiet);
    if (c != root)
        hb_tell_rest(f, c, "text_config.", quiet);
    hb_assume(f,
              "batch, mesh, device and precision are this program's defaults: a config.json says "
              "nothing of them");
    return !f->diag->errors;
}
