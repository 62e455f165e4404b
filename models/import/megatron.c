/* Megatron-LM's arguments (from a script, or the yaml of its functional tests) and the
 * configuration of Megatron-Bridge, whose keys are the same with underscores. Names and
 * defaults: megatron/training/arguments.py and megatron/core/transformer/transformer_config.py at
 * d98e8a6 (August 2026). What they do to memory: the configurations of Megatron's functional tests
 * whose peaks are published, tests/golden/torch-megatron.jsonl; the test reads them back. */
#include "models/import/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"

static const struct hb_node *args_of(const struct hb_node *root)
{
    const struct hb_node *inner = hb_node_find(root, "MODEL_ARGS");
    return inner && inner->kind == HB_NODE_MAP ? inner : root;
}

bool hb_import_is_megatron(const struct hb_node *root)
{
    const struct hb_node *model = hb_node_find(root, "model");
    if (hb_node_find(model, "num_layers") && hb_node_find(model, "hidden_size"))
        return true;
    for (const struct hb_node *n = args_of(root)->first; n; n = n->next)
        if (n->key && hb_str_starts(n->key, "--"))
            return true;
    return hb_node_find(root, "num_layers") && hb_node_find(root, "num_attention_heads");
}

/* "--num-layers" is num_layers; sections of a nested configuration are laid flat. */
static void flatten(struct hb_foreign *f, const struct hb_node *map, struct hb_node *flat)
{
    for (const struct hb_node *n = map->first; n; n = n->next) {
        char *key = hb_arena_strdup(f->arena, n->key);
        while (*key == '-')
            key++;
        for (char *c = key; *c; c++)
            *c = *c == '-' ? '_' : *c;
        if (n->kind == HB_NODE_MAP)
            flatten(f, n, flat);
        else if (!hb_node_find(flat, key))
            hb_node_put(flat, key, n->key_loc, hb_node_copy(f->arena, n));
    }
}

static const char *const quiet[] = {"log_*",
                                    "tensorboard_*",
                                    "train_iters",
                                    "train_samples",
                                    "timing_*",
                                    "lr*",
                                    "save*",
                                    "load*",
                                    "data_*",
                                    "vocab_file",
                                    "merge_file",
                                    "split",
                                    "distributed_*",
                                    "min_lr",
                                    "weight_decay*",
                                    "eval_*",
                                    "use_mcore_models",
                                    "ckpt_*",
                                    "async_save",
                                    "use_persistent_*",
                                    "deterministic_mode",
                                    "attention_softmax_in_fp32",
                                    "adam_*",
                                    "beta*",
                                    "override_*",
                                    "exit_*",
                                    "finetune",
                                    "seed",
                                    "init_method_*",
                                    "tokenizer_*",
                                    "node_rank",
                                    "master_*",
                                    "rdzv_*",
                                    "overlap_*",
                                    "wandb_*",
                                    "no_load_*",
                                    "no_save_*",
                                    "rotary_*",
                                    "no_masked_softmax_fusion",
                                    "no_bias_*",
                                    "no_position_embedding",
                                    "moe_aux_loss_coeff",
                                    "moe_router_load_balancing_type",
                                    "moe_z_loss_coeff",
                                    "moe_router_score_function",
                                    "moe_router_topk_scaling_factor",
                                    "moe_router_group_topk",
                                    "moe_router_num_groups",
                                    "moe_router_bias_update_rate",
                                    "moe_permute_fusion",
                                    "moe_router_pre_softmax",
                                    "moe_per_layer_logging",
                                    "mock_data",
                                    "num_workers",
                                    "no_mmap_*",
                                    "no_create_*",
                                    "manual_gc*",
                                    "empty_unused_*",
                                    "profile*",
                                    "apply_layernorm_1p",
                                    "decoupled_*",
                                    "calculate_per_token_loss",
                                    "mscale*",
                                    "norm_epsilon",
                                    "layernorm_epsilon",
                                    "check_*",
                                    "dist_ckpt_*",
                                    "auto_detect_*",
                                    "make_vocab_size_divisible_by",
                                    "dataloader_type",
                                    "eod_*",
                                    "reset_*",
                                    "rope_*",
                                    "use_rope_scaling",
                                    "hidden_act",
                                    "transformer_impl",
                                    "rerun_*",
                                    "test_mode",
                                    "no_*checkpoint*",
                                    "kv_channels",
                                    "use_rotary_position_embeddings",
                                    "_target_",
                                    "name",
                                    "seq_length",
                                    "nccl_*",
                                    "use_tp_pp_dp_mapping",
                                    "enable_*_logging",
                                    "moe_router_dtype",
                                    "moe_router_fusion",
                                    "moe_router_seq_aux*",
                                    "gradient_reduce_div_fusion",
                                    "average_in_collective",
                                    "align_param_gather",
                                    "bucket_*",
                                    "attention_softmax*",
                                    "accumulate_allreduce_*",
                                    "external_cuda_graph",
                                    "cross_entropy_fusion_impl",
                                    "fp8_amax_*",
                                    "fp8_margin",
                                    "fp8_interval",
                                    "te_rng_*",
                                    "disable_straggler*",
                                    "use_checkpoint_*",
                                    "one_logger_*",
                                    NULL};

/* ---- the model */

static int64_t take_vocab(struct hb_foreign *f, const struct hb_node *c, int64_t tensor)
{
    int64_t padded = hb_take_int(f, c, "padded_vocab_size", 0);
    int64_t plain = hb_take_int(f, c, "vocab_size", 0);
    int64_t multiple = hb_take_int(f, c, "make_vocab_size_divisible_by", 128);
    const char *kind = hb_take_text(f, c, "tokenizer_type", "");
    const char *name = hb_take_text(f, c, "tokenizer_model|tokenizer_name_or_path", "");
    if (padded)
        return padded;
    if (!plain && (hb_node_find(c, "merge_file") || hb_str_starts(kind, "GPT2"))) {
        plain = 50257;
        hb_assume(f, "vocabulary: GPT-2's 50257 words, since a merge file is given");
    }
    if (!plain && hb_str_starts(kind, "Llama2")) {
        plain = 32000;
        hb_assume(f, "vocabulary: Llama 2's 32000 words, by the tokenizer");
    }
    if (!plain)
        plain = hb_take_tokenizer(f, name);
    if (!plain)
        hb_error(f->diag, c->loc,
                 "vocab-size is missing (it stands in the tokenizer alone); add "
                 "vocab_size=N to the command");
    if (hb_take_bool(f, c, "should_pad_vocab", true) && multiple > 0)
        plain = hb_round_up(plain, hb_mul_sat(multiple, tensor > 0 ? tensor : 1));
    return plain;
}

static void take_mlp(struct hb_foreign *f, const struct hb_node *c, struct hb_shape *s)
{
    const char *act = hb_take_text(f, c, "activation_func", "");
    bool gated = hb_take_bool(f, c, "swiglu|gated_linear_unit", false);
    bool geglu =
        hb_take_bool(f, c, "use_gated_gelu|geglu", false) || (gated && strstr(act, "gelu"));
    bool squared = hb_take_bool(f, c, "squared_relu", strstr(act, "squared_relu") != NULL);
    s->mlp = geglu ? "geglu" : gated ? "swiglu" : squared ? "relu2" : "gelu";
    s->d_ff = hb_take_int(f, c, "ffn_hidden_size", 0);
    if (!s->d_ff)
        s->d_ff = gated ? hb_mul_sat(s->d_model, 8) / 3 / 64 * 64 : hb_mul_sat(s->d_model, 4);
}

static void take_attention(struct hb_foreign *f, const struct hb_node *c, struct hb_shape *s)
{
    bool grouped = hb_take_bool(f, c, "group_query_attention", hb_node_find(c, "num_query_groups"));
    int64_t groups = hb_take_int(f, c, "num_query_groups", 0);
    s->heads = hb_take_int(f, c, "num_attention_heads", 0);
    s->kv_heads = grouped && groups ? groups : s->heads;
    s->head_dim = hb_take_int(f, c, "kv_channels", 0);
    if (!s->head_dim && s->heads > 0)
        s->head_dim = s->d_model / s->heads;
    bool plain = hb_take_bool(f, c, "disable_bias_linear", false) ||
                 !hb_take_bool(f, c, "add_bias_linear", true);
    bool qkv = hb_take_bool(f, c, "add_qkv_bias", false);
    s->bias = !plain ? "true" : qkv ? "qkv" : NULL;
    s->mlp_bias = !plain;
    s->qk_norm = hb_take_bool(f, c, "qk_layernorm", false) ? "true" : NULL;
    s->attention_dropout = hb_take_real(f, c, "attention_dropout", 0.1);
    s->dropout = hb_take_real(f, c, "hidden_dropout", 0.1);
    s->softcap = hb_take_real(f, c, "attn_logit_softcapping", 0);
    if (!hb_take_bool(f, c, "multi_latent_attention", false))
        return;
    s->q_lora_rank = hb_take_int(f, c, "q_lora_rank", 0);
    s->kv_lora_rank = hb_take_int(f, c, "kv_lora_rank", 32);
    s->qk_nope_head_dim = hb_take_int(f, c, "qk_head_dim", 128);
    s->qk_rope_head_dim = hb_take_int(f, c, "qk_pos_emb_head_dim", 64);
    s->v_head_dim = hb_take_int(f, c, "v_head_dim", 128);
}

/* "[0,1]*24": the list so many times, from *at on; false where none stands there. */
static bool take_term(const char **at, struct hb_shape *s, int64_t *layer)
{
    char list[256];
    size_t len = 0;
    const char *c = *at + strcspn(*at, "[01");
    bool open = *c == '[';
    for (c += open; *c && *c != ']' && *c != '+' && (open || *c != ','); c++)
        if ((*c == '0' || *c == '1') && len < sizeof list)
            list[len++] = *c;
    c += *c == ']' || *c == ',';
    long times = *c == '*' ? strtol(c + 1, NULL, 10) : 1;
    *at = *c == '*' ? c + 1 + strspn(c + 1, "0123456789") : c;
    for (; times > 0 && *layer < s->layers; times--)
        for (size_t i = 0; i < len && *layer < s->layers; i++)
            s->each[(*layer)++].moe = list[i] == '1';
    return len > 0;
}

/* moe-layer-freq: N (each N-th has experts), a list of 0 and 1, or "([0]*3+[1]*58)". */
static void take_freq(struct hb_foreign *f, const struct hb_node *c, struct hb_shape *s)
{
    const struct hb_node *node = hb_take(f, c, "moe_layer_freq");
    int64_t layer = 0;
    double every = 1;
    if (!node || hb_number(node, &every)) {
        for (; layer < s->layers; layer++)
            s->each[layer].moe = every <= 1 || layer % hb_clipped(every) == 0;
        return;
    }
    for (const struct hb_node *n = node->first; n && layer < s->layers; n = n->next)
        s->each[layer++].moe = n->kind == HB_NODE_SCALAR && hb_str_same(n->text, "1");
    const char *at = node->kind == HB_NODE_SCALAR ? node->text : "";
    while (layer < s->layers && take_term(&at, s, &layer))
        ;
    if (layer < s->layers)
        hb_error(f->diag, node->loc, "moe-layer-freq: says %" PRId64 " of %" PRId64 " layers",
                 layer, s->layers);
}

static void take_experts(struct hb_foreign *f, const struct hb_node *c, struct hb_shape *s)
{
    s->experts = hb_take_int(f, c, "num_experts|num_moe_experts", 0);
    if (!s->experts)
        return;
    s->top_k = hb_take_int(f, c, "moe_router_topk", 2);
    s->moe_d_ff = hb_take_int(f, c, "moe_ffn_hidden_size", s->d_ff);
    s->shared_d_ff = hb_take_int(f, c, "moe_shared_expert_intermediate_size", 0);
    s->shared_experts = s->shared_d_ff ? 1 : 0;
    s->router_bias = hb_take_bool(f, c, "moe_router_enable_expert_bias", false);
    take_freq(f, c, s);
}

/* What stands where num-layers is wanted. */
static bool fail_layers(struct hb_foreign *f, const struct hb_node *c)
{
    static const struct {
        const char *key, *why;
    } others[] = {{"hybrid_layer_pattern", "Mamba layers are not simulated"},
                  {"hybrid_override_pattern", "Mamba layers are not simulated"},
                  {"is_hybrid_model", "Mamba layers are not simulated"},
                  {"spec", "layers by a specification of their own are not simulated"},
                  {"encoder_num_layers", "encoders with decoders are not simulated"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const struct hb_node *node = hb_node_find(c, others[i].key);
        if (node)
            return hb_error(f->diag, node->loc, "%s: %s", others[i].key, others[i].why);
    }
    return hb_error(f->diag, c->loc, "num-layers is missing, or not within 1 to 100000");
}

static bool put_model(struct hb_foreign *f, const struct hb_node *c, int64_t tensor)
{
    struct hb_shape s = {.name = "megatron"};
    s.layers = hb_take_int(f, c, "num_layers", 0);
    s.d_model = hb_take_int(f, c, "hidden_size", 0);
    if (s.layers < 1 || s.layers > 100000)
        return fail_layers(f, c);
    s.each = hb_arena_alloc(f->arena, (size_t)s.layers, sizeof *s.each);
    s.vocab = take_vocab(f, c, tensor);
    take_mlp(f, c, &s);
    take_attention(f, c, &s);
    take_experts(f, c, &s);
    s.layernorm = !strstr(hb_take_text(f, c, "normalization", "LayerNorm"), "RMS");
    s.tied = !hb_take_bool(f, c, "untie_embeddings_and_output_weights", false) &&
             hb_take_bool(f, c, "share_embeddings_and_output_weights", true);
    const char *position = hb_take_text(f, c, "position_embedding_type", "learned_absolute");
    int64_t rows = hb_take_int(f, c, "max_position_embeddings", 0);
    bool learned = hb_str_same(position, "learned_absolute");
    s.positions = learned ? rows : 0;
    s.no_rope = !s.kv_lora_rank && !strstr(position, "rope");
    s.mtp = hb_take_int(f, c, "mtp_num_layers", 0);
    const struct hb_node *window = hb_take(f, c, "window_size");
    double width = 0;
    if (window && hb_number(window->first ? window->first : window, &width) && width > 0)
        for (int64_t i = 0; i < s.layers; i++)
            s.each[i].window = hb_clipped(width) + 1;
    return hb_put_model(f, &s, c->loc);
}

/* ---- the run */

/* Devices along each axis; batch and pipeline follow from them. */
struct run {
    int64_t world, tensor, stages, context, expert, ranks; /* ranks: of the batch */
};

static void take_run(struct hb_foreign *f, const struct hb_node *c, struct run *run)
{
    int64_t each = hb_take_int(f, c, "nproc_per_node|gpus_per_node", 0);
    int64_t nodes = hb_take_int(f, c, "nnodes|num_nodes", 1);
    run->tensor = hb_take_int(f, c, "tensor_model_parallel_size", 1);
    run->stages = hb_take_int(f, c, "pipeline_model_parallel_size", 1);
    run->context = hb_take_int(f, c, "context_parallel_size", 1);
    run->expert = hb_take_int(f, c, "expert_model_parallel_size", 1);
    run->world = hb_take_int(f, c, "world_size", hb_mul_sat(each, nodes));
    int64_t least = hb_mul_sat(hb_mul_sat(run->tensor, run->stages), run->context);
    if (run->tensor < 1 || run->stages < 1 || run->context < 1 || run->expert < 1) {
        hb_error(f->diag, c->loc, "a parallel size below 1");
        *run = (struct run){1, 1, 1, 1, 1, 1};
        return;
    }
    if (run->world < 1) {
        int64_t wanted = hb_mul_sat(least, run->expert);
        run->world = wanted < 8 ? hb_round_up(8, wanted) : wanted;
        hb_assume(f, "%" PRId64 " devices: nothing says how many; world_size=N does", run->world);
    }
    if (run->world % least)
        hb_error(f->diag, c->loc,
                 "%" PRId64 " devices are no multiple of tensor x pipeline x context = %" PRId64
                 "; world_size=N on the command says another number",
                 run->world, least);
    run->ranks = run->world / least > 0 ? run->world / least : 1;
}

static void put_mesh(struct hb_foreign *f, const struct hb_node *c, const struct run *run)
{
    bool fsdp = hb_take_bool(f, c, "use_megatron_fsdp|use_custom_fsdp|use_torch_fsdp2", false);
    const char *strategy = hb_take_text(f, c, "data_parallel_sharding_strategy",
                                        fsdp ? "optim_grads_params" : "no_shard");
    bool whole = fsdp && strstr(strategy, "params");
    bool split = hb_take_bool(f, c, "use_distributed_optimizer", false);
    /* experts lie over tensor ranks too where expert-tensor-parallel-size leaves them room */
    int64_t etp = hb_take_int(f, c, "expert_tensor_parallel_size", run->tensor);
    bool experts = hb_take_int(f, c, "num_experts|num_moe_experts", 0) > 0;
    int64_t ways = hb_mul_sat(run->expert, etp > 0 ? etp : 1);
    int64_t expert = experts && ways > run->tensor ? ways / run->tensor : 1;
    int64_t instances = hb_take_int(f, c, "num_distributed_optimizer_instances", 1);
    if (instances > 1)
        hb_missing(f,
                   "num_distributed_optimizer_instances %" PRId64
                   ": states are split over all data ranks",
                   instances);
    int64_t rest = run->ranks % expert ? run->ranks : run->ranks / expert;
    if (run->ranks % expert)
        hb_error(f->diag, c->loc,
                 "expert-model-parallel-size %" PRId64 " does not divide the %" PRId64
                 " data ranks",
                 run->expert, run->ranks);
    hb_put_int(f, "mesh.data", whole ? 1 : rest);
    hb_put_int(f, "mesh.fsdp", whole ? rest : 1);
    hb_put_int(f, "mesh.tensor", run->tensor);
    hb_put_int(f, "mesh.sequence", run->context);
    hb_put_int(f, "mesh.expert", expert);
    hb_put_int(f, "mesh.pipeline", run->stages);
    hb_put_int(f, "hardware.count", run->world);
    if (whole && run->expert > 1)
        hb_put_bool(f, "sharding.dense_over_expert", true);
    if (!whole)
        hb_put_bool(f, "sharding.optimizer_over_data",
                    split || (fsdp && strstr(strategy, "optim")));
    if (fsdp && strstr(strategy, "optim_grads") && !whole)
        hb_put_bool(f, "sharding.grads_over_data", true);
    bool split_residual = hb_take_bool(f, c, "sequence_parallel", false) && run->tensor > 1;
    hb_put_bool(f, "sharding.residual_over_tensor", split_residual);
    if (hb_take_bool(f, c, "tp_comm_overlap", false) && split_residual)
        hb_put_bool(f, "runtime.async_tp", true);
    if (run->context > 1)
        hb_put_bool(f, "sharding.states_over_sequence", split || whole);
    if (experts && etp > 0 && etp != run->tensor)
        hb_put_int(f, "sharding.expert_tensor", etp);
}

enum { MOST_CHUNKS = 4096, LONGEST_LAYOUT = 1000 };

/* pipeline-model-parallel-layout, "Et*3|(tt|)*6tL": chunks between bars, t a layer, *N again what
 * stands before. The layers of each chunk into out; how many chunks, 0 where it is none. */
static int64_t read_layout(const char *at, const char *end, int64_t *out, int64_t chunk)
{
    while (at < end) {
        const char *start = at;
        const char *close = at + 1;
        if (*at == '(')
            for (int depth = 1; close < end && depth > 0; close++)
                depth += (*close == '(') - (*close == ')');
        bool group = *at == '(';
        at = close;
        int64_t times = at < end && *at == '*' ? strtol(at + 1, NULL, 10) : 1;
        at += at < end && *at == '*' ? 1 + strspn(at + 1, "0123456789") : 0;
        for (int64_t i = 0; i < times && i < MOST_CHUNKS && chunk < MOST_CHUNKS - 1; i++) {
            if (group)
                chunk = read_layout(start + 1, close - 1, out, chunk);
            else if (*start == '|')
                chunk++;
            else
                out[chunk] += *start == 't';
        }
    }
    return chunk;
}

/* Whether the layout says the chunks; *out_repeats: of each stage. */
static bool put_layout(struct hb_foreign *f, const struct hb_node *c, int64_t stages,
                       int64_t *out_repeats)
{
    const char *text = hb_take_text(f, c, "pipeline_model_parallel_layout", "");
    int64_t *layers = hb_arena_alloc(f->arena, MOST_CHUNKS, sizeof *layers);
    if (!text[0])
        return false;
    if (strlen(text) > LONGEST_LAYOUT)
        return hb_error(f->diag, c->loc,
                        "pipeline-model-parallel-layout: longer than %d characters",
                        LONGEST_LAYOUT);
    int64_t chunks = read_layout(text, text + strlen(text), layers, 0) + 1;
    const char **words = hb_arena_alloc(f->arena, (size_t)chunks, sizeof *words);
    for (int64_t i = 0; i < chunks; i++)
        words[i] = hb_arena_printf(f->arena, "%" PRId64, layers[i]);
    hb_put_words(f, "pipeline.layers", words, (int)chunks);
    *out_repeats = chunks / stages;
    return true;
}

/* Stages where embedding or loss count as a layer, or whose first or last is given its own. */
static void put_uneven(struct hb_foreign *f, const struct hb_node *c, int64_t chunks,
                       int64_t layers)
{
    int64_t first = hb_take_int(f, c,
                                "decoder_first_pipeline_num_layers|"
                                "num_layers_in_first_pipeline_stage",
                                -1);
    int64_t last = hb_take_int(f, c,
                               "decoder_last_pipeline_num_layers|"
                               "num_layers_in_last_pipeline_stage",
                               -1);
    int64_t embedding = hb_take_bool(f, c, "account_for_embedding_in_pipeline_split", false);
    int64_t loss = hb_take_bool(f, c, "account_for_loss_in_pipeline_split", false);
    int64_t each = (layers + embedding + loss) / chunks;
    int64_t ends = (first >= 0) + (last >= 0);
    if (ends && chunks > ends)
        each = (layers - (first > 0 ? first : 0) - (last > 0 ? last : 0)) / (chunks - ends);
    if ((!ends && !embedding && !loss) || chunks > MOST_CHUNKS)
        return;
    const char **words = hb_arena_alloc(f->arena, (size_t)chunks, sizeof *words);
    for (int64_t i = 0; i < chunks; i++) {
        int64_t own = i == 0            ? first >= 0 ? first : each - embedding
                      : i == chunks - 1 ? last >= 0 ? last : each - loss
                                        : each;
        words[i] = hb_arena_printf(f->arena, "%" PRId64, own);
    }
    hb_put_words(f, "pipeline.layers", words, (int)chunks);
}

/* "0:384 200B:768 400B:1152": what the schedule of batches ends with. */
static int64_t last_batch(struct hb_foreign *f, const struct hb_node *c, int64_t absent)
{
    const struct hb_node *node = hb_take(f, c, "step_batch_size_schedule");
    const struct hb_node *last = node && node->last ? node->last : node;
    const char *colon = last && last->kind == HB_NODE_SCALAR ? strrchr(last->text, ':') : NULL;
    double value = 0;
    struct hb_node number = {.kind = HB_NODE_SCALAR, .text = colon ? colon + 1 : ""};
    return hb_number(&number, &value) && value >= 1 && value < 0x1p40 ? (int64_t)value : absent;
}

static void put_batch(struct hb_foreign *f, const struct hb_node *c, const struct run *run)
{
    int64_t micro = hb_take_int(f, c, "micro_batch_size", 1);
    int64_t round = hb_mul_sat(micro, run->ranks);
    int64_t global = hb_take_int(f, c, "global_batch_size", last_batch(f, c, round));
    int64_t parts = round > 0 ? global / round : 0;
    if (parts < 1 || global % round) {
        hb_error(f->diag, c->loc,
                 "global-batch-size %" PRId64 " is no multiple of micro-batch-size x data ranks = "
                 "%" PRId64,
                 global, round);
        return;
    }
    hb_put_int(f, "batch.global", global);
    hb_put_int(f, "batch.seq", hb_take_int(f, c, "seq_length|sequence_length", 2048));
    hb_put_int(f, "batch.accumulate", run->stages > 1 ? 1 : parts);
    if (run->stages == 1)
        return;
    int64_t layers = hb_take_int(f, c, "num_layers", 1);
    int64_t chunk = hb_take_int(f, c, "num_layers_per_virtual_pipeline_stage", 0);
    int64_t repeats = hb_take_int(
        f, c, "num_virtual_stages_per_pipeline_rank|virtual_pipeline_model_parallel_size", 1);
    if (chunk > 0)
        repeats = layers / run->stages / chunk;
    if (!put_layout(f, c, run->stages, &repeats))
        put_uneven(f, c, hb_mul_sat(run->stages, repeats > 0 ? repeats : 1), layers);
    hb_put_int(f, "pipeline.microbatches", parts);
    hb_put_int(f, "pipeline.repeats", repeats > 0 ? repeats : 1);
    hb_put(f, "pipeline.schedule", repeats > 1 ? "interleaved" : "1f1b");
    int64_t group = hb_take_int(f, c,
                                "microbatch_group_size_per_vp_stage|"
                                "microbatch_group_size_per_virtual_pipeline_stage",
                                0);
    if (group > 0 && repeats > 1)
        hb_put_int(f, "pipeline.group", group);
}

static const char *put_precision(struct hb_foreign *f, const struct hb_node *c)
{
    bool bf16 = hb_take_bool(f, c, "bf16", false);
    bool fp16 = hb_take_bool(f, c, "fp16", false);
    const char *mixed = hb_take_text(f, c, "mixed_precision", "");
    bf16 = bf16 || strstr(mixed, "bf16");
    const char *type = bf16 ? "bf16" : fp16 ? "f16" : "f32";
    bool narrow = hb_take_bool(f, c, "grad_reduce_in_bf16", false) ||
                  !hb_take_bool(f, c, "grad_reduce_in_fp32", true);
    hb_put(f, "precision.params", type);
    hb_put(f, "precision.compute", type);
    if (bf16 || fp16)
        hb_put(f, "precision.master", "f32");
    hb_put(f, "precision.grads", bf16 && !narrow ? "f32" : "params");
    const char *fp8 = hb_take_text(f, c, "fp8_format|fp8", "");
    const char *recipe = hb_take_text(f, c, "fp8_recipe", "delayed");
    if (fp8[0] && !hb_str_same(fp8, "false"))
        hb_put(f, "precision.fp8",
               strstr(recipe, "mx")      ? "mxfp8"
               : strstr(recipe, "block") ? "blockwise"
                                         : "tensorwise");
    if (hb_take_bool(f, c, "fp8_param_gather|fp8_param", false))
        hb_put_bool(f, "precision.fp8_params", true);
    return type;
}

static void put_optimizer(struct hb_foreign *f, const struct hb_node *c)
{
    const char *name = hb_take_text(f, c, "optimizer", "adam");
    bool sgd = hb_str_same(name, "sgd");
    bool muon = strstr(name, "muon") != NULL;
    hb_put(f, "optimizer.name", sgd ? "momentum" : muon ? "muon" : "adamw");
    hb_put_bool(f, "optimizer.clip", hb_take_real(f, c, "clip_grad", 1) > 0);
    if (hb_take_bool(f, c, "optimizer_cpu_offload", false))
        hb_put(f, "optimizer.offload", "pinned_host");
    const char *moment = hb_take_text(f, c, "exp_avg_dtype", "fp32");
    const char *second = hb_take_text(f, c, "exp_avg_sq_dtype", "fp32");
    const char *both[] = {strstr(moment, "bf16") ? "bf16" : "f32",
                          strstr(second, "bf16") ? "bf16" : "f32"};
    if (!sgd && !muon)
        hb_put_words(f, "optimizer.moments", both, 2);
}

enum { MOST_MODULES = 16 };

/* Of "[mlp moe_act]", as its functional tests write lists. */
static int cut_words(struct hb_arena *arena, const char *text, const char **words)
{
    static const char between[] = "[], ";
    int count = 0;
    for (text += strspn(text, between); *text && count < MOST_MODULES;) {
        size_t length = strcspn(text, between);
        words[count++] = hb_arena_printf(arena, "%.*s", (int)length, text);
        text += length + strspn(text + length, between);
    }
    return count;
}

static void put_remat(struct hb_foreign *f, const struct hb_node *c)
{
    static const char *const core[] = {"core_attn"};
    bool plain = hb_take_bool(f, c, "recompute_activations", false);
    const char *grain = hb_take_text(f, c, "recompute_granularity", plain ? "selective" : "");
    const char *method = hb_take_text(f, c, "recompute_method", "uniform");
    int64_t every = hb_take_int(f, c, "recompute_num_layers", 1);
    const struct hb_node *modules = hb_take(f, c, "recompute_modules");
    const char *words[MOST_MODULES] = {0};
    int count = 0;
    hb_put(f, "remat.policy", hb_str_same(grain, "full") ? "full" : "none");
    if (hb_str_same(grain, "full") && (!hb_str_same(method, "uniform") || every != 1))
        hb_missing(f, "recompute_method %s of %" PRId64 " layers: each layer is recomputed alone",
                   method, every);
    if (!hb_str_same(grain, "selective"))
        return;
    if (modules && modules->kind == HB_NODE_SCALAR)
        count = cut_words(f->arena, modules->text, words);
    for (const struct hb_node *n = modules ? modules->first : NULL; n && count < MOST_MODULES;
         n = n->next)
        words[count++] = n->kind == HB_NODE_SCALAR ? n->text : "";
    hb_put_words(f, "remat.modules", count ? words : core, count ? count : 1);
}

static void put_kernels(struct hb_foreign *f, const struct hb_node *c, const char *type)
{
    const char *backend = hb_take_text(f, c, "attention_backend", "auto");
    const char *impl = hb_take_text(f, c, "transformer_impl", "transformer_engine");
    bool flash = hb_take_bool(f, c, "use_flash_attn", false);
    bool off = hb_str_same(hb_take_text(f, c, "NVTE_FLASH_ATTN", ""), "0") &&
               hb_str_same(hb_take_text(f, c, "NVTE_FUSED_ATTN", ""), "0");
    bool naive = hb_str_same(backend, "unfused") || hb_str_same(backend, "local") || off ||
                 (hb_str_same(impl, "local") && !flash);
    if (naive) {
        hb_put_in_blocks(f, "attention", "kernel", "naive");
        hb_put_in_blocks(f, "attention", "softmax", type);
    }
    const char *dispatch = hb_take_text(f, c, "moe_token_dispatcher_type", "allgather");
    hb_put_in_blocks(f, "moe", "dispatch",
                     hb_str_same(dispatch, "allgather") ? "allgather" : "ragged");
    if (hb_take_bool(f, c, "moe_grouped_gemm", false) && hb_str_same(dispatch, "allgather"))
        hb_put_bool(f, "runtime.grouped_gemm", true);
    const char *router = hb_take_text(f, c, "moe_router_dtype", "");
    hb_put_in_blocks(f, "moe", "router_dtype", strstr(router, "32") ? "f32" : type);
    double capacity = hb_take_real(f, c, "moe_expert_capacity_factor", 0);
    if (capacity > 0) {
        hb_put_in_blocks(f, "moe", "capacity_factor", hb_arena_printf(f->arena, "%.10g", capacity));
        if (hb_take_bool(f, c, "moe_pad_expert_input_to_capacity", false))
            hb_put_in_blocks(f, "moe", "pad_to_capacity", "true");
    }
    hb_put(f, "loss.dot", type);
    const char *impl_of_loss = hb_take_text(f, c, "cross_entropy_fusion_impl", "native");
    bool fused = hb_take_bool(f, c, "cross_entropy_loss_fusion", false);
    hb_put(f, "loss.kernel",
           !fused                                ? "eager"
           : hb_str_same(impl_of_loss, "native") ? "jit"
                                                 : "fused");
    hb_put_bool(f, "runtime.grad_fusion",
                !hb_take_bool(f, c, "no_gradient_accumulation_fusion", false) &&
                    hb_take_bool(f, c, "gradient_accumulation_fusion", true));
}

/* Variables of a functional test's environment that say something about memory. */
static void take_env(struct hb_foreign *f, const struct hb_node *env, struct hb_node *flat)
{
    static const char *const names[] = {"NVTE_FLASH_ATTN", "NVTE_FUSED_ATTN",
                                        "PYTORCH_CUDA_ALLOC_CONF", "CUBLAS_WORKSPACE_CONFIG", NULL};
    for (int i = 0; names[i] && env && env->kind == HB_NODE_MAP; i++) {
        const struct hb_node *n = hb_node_find(env, names[i]);
        if (n && !hb_node_find(flat, names[i]))
            hb_node_put(flat, names[i], n->key_loc, hb_node_copy(f->arena, n));
    }
}

bool hb_import_megatron(struct hb_foreign *f, const struct hb_node *root)
{
    struct hb_node *c = hb_node_new(f->arena, HB_NODE_MAP, root->loc);
    if (f->said)
        flatten(f, f->said, c);
    flatten(f, args_of(root), c);
    take_env(f, hb_node_find(root, "ENV_VARS"), c);
    return hb_import_megatron_flat(f, c, "Megatron's arguments");
}

/* ":4096:2:16:8" is 2 of 4096 KiB and 8 of 16. */
static void put_workspace(struct hb_foreign *f, const char *text)
{
    int64_t kib = 0;
    for (char *end; *text == ':'; text = end) {
        int64_t each = strtol(text + 1, &end, 10),
                count = *end == ':' ? strtol(end + 1, &end, 10) : 0;
        kib = hb_add_sat(kib, hb_mul_sat(each, count));
    }
    if (kib > 0)
        hb_put(f, "runtime.blas_workspace", hb_arena_printf(f->arena, "%" PRId64 "KiB", kib));
}

bool hb_import_megatron_flat(struct hb_foreign *f, const struct hb_node *c, const char *what)
{
    struct run run;
    f->out->what = what;
    take_run(f, c, &run);
    if (!put_model(f, c, run.tensor))
        return false;
    put_mesh(f, c, &run);
    put_batch(f, c, &run);
    const char *type = put_precision(f, c);
    put_optimizer(f, c);
    put_remat(f, c);
    hb_put(f, "stack.form", "loop");
    hb_put(f, "hardware.device", hb_take_text(f, c, "device", "nvidia-h100"));
    if (!hb_node_find(f->said, "device"))
        hb_assume(f, "hardware.device nvidia-h100: nothing says which; device=NAME does");
    hb_put(f, "compiler", "torch");
    hb_put(f, "runtime.framework", "megatron");
    put_kernels(f, c, type);
    put_workspace(f, hb_take_text(f, c, "CUBLAS_WORKSPACE_CONFIG", ""));
    if (strstr(hb_take_text(f, c, "PYTORCH_CUDA_ALLOC_CONF", ""), "expandable_segments:True"))
        hb_put_bool(f, "runtime.expandable_segments", true);
    hb_tell_rest(f, c, "", quiet);
    return !f->diag->errors;
}
