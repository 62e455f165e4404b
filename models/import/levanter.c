/* Levanter's yml (stanford-crfm/levanter, now marin-community/marin): model (models/llama.py,
 * gpt2.py, mistral.py, mixtral.py, gemma.py, qwen.py, olmo.py), trainer (trainer.py) with its mesh
 * (utils/mesh.py) and haliax's policy of a scan (haliax/_src/scan.py) under
 * model.gradient_checkpointing. The vocabulary is the tokenizer's, which the file only names. */
#include "models/import/source.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/size.h"

bool hb_import_is_levanter(const struct hb_node *root)
{
    const struct hb_node *model = hb_node_find(root, "model");
    const struct hb_node *trainer = hb_node_find(root, "trainer");
    bool run = hb_node_find(root, "model") || hb_node_find(root, "initialize_from_hf");
    return (trainer && trainer->kind == HB_NODE_MAP && run) ||
           (hb_node_find(model, "hidden_dim") && hb_node_find(model, "num_layers"));
}

static const char *const quiet[] = {
    "data",          "optimizer",     "use_hf_*",      "hf_*",        "initialize_from*",
    "data_seed",     "eval_harness*", "z_loss_weight", "log_entropy", "epoch",
    "train_seq_len", "tokenizer",     "save_freq",     NULL};
static const char *const quiet_trainer[] = {"tracker",
                                            "wandb",
                                            "num_train_steps",
                                            "steps_per_*",
                                            "checkpointer",
                                            "id",
                                            "log_*",
                                            "load_*",
                                            "jax_*",
                                            "max_eval_*",
                                            "per_device_eval_*",
                                            "profiler*",
                                            "ray",
                                            "require_accelerator",
                                            "seed",
                                            "shutdown_*",
                                            "batch_axis",
                                            "initialize_from",
                                            "axis_resources",
                                            "parameter_axis_resources",
                                            "distributed",
                                            "fsdp_axis",
                                            "crash_on_*",
                                            "use_explicit_*",
                                            "watch",
                                            "allow_*",
                                            "backend",
                                            "metric_hooks",
                                            NULL};
static const char *const quiet_model[] = {"initializer_range",
                                          "activation_function",
                                          "layer_norm_epsilon",
                                          "reference_*",
                                          "rope*",
                                          "upcast_attn",
                                          "scan_layers",
                                          "flash_attention_block_size",
                                          "use_layer_norm_weight",
                                          "scale_attn_*",
                                          "use_flash_attention",
                                          "embed_pdrop",
                                          "resid_pdrop",
                                          "attn_pdrop",
                                          "tokenizer",
                                          "partial_rotary_*",
                                          "router_*",
                                          "lbl_coef",
                                          "rzl_coef",
                                          "input_embedding_norm",
                                          NULL};

static const struct {
    const char *type;
    const char *mlp;
    const char *bias;
    const char *qk_norm;
    bool layernorm, post_norm, learned;
} types[] = {{"llama", "swiglu", NULL, NULL, false, false, false},
             {"mistral", "swiglu", NULL, NULL, false, false, false},
             {"mixtral", "swiglu", NULL, NULL, false, false, false},
             {"gemma", "geglu", NULL, NULL, false, false, false},
             {"gemma2", "geglu", NULL, NULL, false, true, false},
             {"gemma3", "geglu", NULL, "true", false, true, false},
             {"qwen", "swiglu", "qkv", NULL, false, false, false},
             {"qwen3", "swiglu", NULL, "true", false, false, false},
             {"olmo2", "swiglu", NULL, "true", false, false, false},
             {"gpt2", "gelu", "true", NULL, true, false, true}};
enum { TYPES = sizeof types / sizeof types[0] };

static bool is_beside(const char *path)
{
    return path[0] && path[0] != '/' && !strstr(path, "..");
}

/* What stands under "data", in the file that it includes, too; null: there is none. */
static const struct hb_node *find_data(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *data = hb_node_find(c, "data");
    struct hb_node *root = NULL;
    struct hb_diag unheard;
    if (!data || data->kind != HB_NODE_SCALAR)
        return data;
    hb_diag_init(&unheard, f->arena);
    if (!is_beside(data->text) || hb_str_same(f->path, "-") ||
        !hb_import_load(
            f->arena, &unheard,
            hb_arena_printf(f->arena, "%s/%s", hb_file_folder(f->arena, f->path), data->text),
            &root))
        return NULL;
    return root;
}

static int64_t take_vocab(struct hb_foreign *f, const struct hb_node *c)
{
    int64_t vocab = hb_take_int(f, f->said, "vocab_size|model.vocab_size", 0);
    const struct hb_node *data = find_data(f, c);
    const char *name = hb_take_text(
        f, data, "tokenizer",
        hb_take_text(f, c, "tokenizer", data && hb_node_find(c, "data") ? "gpt2" : ""));
    if (!vocab)
        vocab = hb_take_int(f, data, "vocab_size", 0);
    if (!vocab)
        vocab = hb_take_tokenizer(f, name);
    if (!vocab)
        hb_error(f->diag, c->loc,
                 "the vocabulary stands in the tokenizer alone; add vocab_size=N "
                 "to the command");
    return vocab;
}

/* Its loss goes over blocks of the vocabulary, ours over chunks of the tokens: as many, or as many
 * more as divide the sequence, have logits of the same size. */
static void put_blocks(struct hb_foreign *f, const struct hb_node *m, int64_t vocab, int64_t seq)
{
    enum { MOST = 4096 };
    int64_t words = hb_take_int(f, m, "cross_entropy_block_size", 0);
    if (words < 0)
        hb_error(f->diag, hb_node_find(m, "cross_entropy_block_size")->loc,
                 "model.cross_entropy_block_size: allowed: 0 or more");
    if (words < 1 || words >= vocab)
        return;
    int64_t blocks = hb_div_up(vocab, words), chunks = blocks;
    while (chunks < MOST && seq % chunks != 0)
        chunks++;
    if (seq % chunks != 0) {
        hb_missing(f,
                   "model.cross_entropy_block_size: %" PRId64 " blocks; loss.chunks would be more "
                   "than %d",
                   blocks, MOST);
        return;
    }
    hb_put_int(f, "loss.chunks", chunks);
    hb_assume(f,
              "cross_entropy_block_size: %" PRId64 " blocks of the vocabulary count as %" PRId64
              " chunks of the tokens",
              blocks, chunks);
}

static bool put_model(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *m = hb_take(f, c, "model"), *hf = hb_node_find(c, "initialize_from_hf");
    if (!m && hf)
        return hb_error(
            f->diag, hf->loc,
            "initialize_from_hf: the model stands in the config.json of %s; import that",
            hb_node_show(f->arena, hf));
    const char *type = hb_take_text(f, m, "type", "gpt2");
    int kind = 0;
    while (kind < TYPES && !hb_str_same(types[kind].type, type))
        kind++;
    if (kind == TYPES)
        return hb_error(f->diag, m ? m->loc : c->loc,
                        "model.type: '%s' is not known; known: llama, mistral, mixtral, gemma, "
                        "gemma2, gemma3, qwen, qwen3, olmo2, gpt2",
                        type);
    f->out->what = hb_arena_printf(f->arena, "Levanter's configuration, model %s", type);
    struct hb_shape s = {.name = type, .mlp = types[kind].mlp, .qk_norm = types[kind].qk_norm};
    bool bias = hb_take_bool(f, m, "use_bias", types[kind].learned);
    s.layernorm = types[kind].layernorm;
    s.post_norm = types[kind].post_norm;
    s.no_rope = types[kind].learned;
    s.bias = bias ? "true" : types[kind].learned ? NULL : types[kind].bias;
    s.mlp_bias = bias;
    s.d_model = hb_take_int(f, m, "hidden_dim", 768);
    s.layers = hb_take_int(f, m, "num_layers", 12);
    s.heads = hb_take_int(f, m, "num_heads", 12);
    s.kv_heads = hb_take_int(f, m, "num_kv_heads", s.heads);
    s.head_dim = hb_take_int(f, m, "head_dim", s.heads > 0 ? s.d_model / s.heads : 0);
    s.d_ff = hb_take_int(f, m, "intermediate_dim", 0);
    if (!s.d_ff)
        s.d_ff = s.d_model * hb_take_int(f, m, "mlp_scale", 4);
    if (hb_take_bool(f, m, "use_qk_norm", false))
        s.qk_norm = "true";
    s.tied = hb_take_bool(f, m, "tie_word_embeddings",
                          types[kind].learned || strstr(type, "gemma") != NULL);
    int64_t seq = hb_take_int(f, m, "seq_len|max_seq_len", 1024);
    seq = hb_take_int(f, c, "train_seq_len", seq);
    s.positions = types[kind].learned ? seq : 0;
    s.vocab = take_vocab(f, c);
    s.experts = hb_take_int(f, m, "n_routed_experts", hb_str_same(type, "mixtral") ? 8 : 0);
    s.top_k = hb_take_int(f, m, "num_experts_per_tok", 2);
    s.moe_d_ff = s.d_ff;
    int64_t window = hb_take_int(f, m, "sliding_window", 0);
    if (s.layers < 1 || s.layers > 100000)
        return hb_error(f->diag, c->loc, "model.num_layers: allowed: 1 to 100000");
    s.each = hb_arena_alloc(f->arena, (size_t)s.layers, sizeof *s.each);
    for (int64_t i = 0; i < s.layers; i++)
        s.each[i] = (struct hb_layer){window, s.experts > 0};
    hb_put_int(f, "batch.seq", seq);
    put_blocks(f, m, s.vocab, seq);
    return hb_put_model(f, &s, c->loc);
}

/* ---- the run */

/* "compute=bfloat16,params=float32" or "p=f32,c=bf16"; TrainerConfig's own is "f32". Narrow
 * parameters do not stay: an update times an f32 learning rate is f32, so after the first step they
 * and the first moment are, and only the second, cast as it was, is not. */
static void put_precision(struct hb_foreign *f, const struct hb_node *t, bool adam)
{
    static const char *const moments[] = {"f32", "bf16"};
    const char *mp = hb_take_text(f, t, "mp", "f32");
    const char *params = strstr(mp, "p=") ? strstr(mp, "p=") : strstr(mp, "params=");
    const char *compute = strstr(mp, "c=") ? strstr(mp, "c=") : strstr(mp, "compute=");
    bool narrow = params && strncmp(strchr(params, '=') + 1, "bf", 2) == 0;
    bool half = compute && strncmp(strchr(compute, '=') + 1, "bf", 2) == 0;
    if (!strchr(mp, '='))
        half = narrow = strstr(mp, "bf") != NULL;
    if (narrow && adam)
        hb_put_words(f, "optimizer.moments", moments, 2);
    if (narrow)
        hb_assume(f, "mp: bf16 parameters become f32 with the first update");
    hb_put(f, "precision.params", "f32");
    hb_put(f, "precision.compute", half ? "bf16" : "f32");
    hb_put(f, "loss.dot", half ? "bf16" : "f32");
    const struct hb_node *quantization = hb_take(f, t, "quantization");
    if (quantization)
        hb_missing(f, "trainer.quantization");
}

static bool names_axis(const struct hb_node *list, const char *axis)
{
    for (const struct hb_node *n = list ? list->first : NULL; n; n = n->next)
        if (n->kind == HB_NODE_SCALAR && hb_str_same(n->text, axis))
            return true;
    return false;
}

/* What lies over model: with a mesh mlp and heads where nobody says, without one nothing. Queries,
 * keys and values have no axis `heads` (layers/attention.py: kv_head, q_heads_per_group). */
static void put_tensor_axes(struct hb_foreign *f, const struct hb_node *t)
{
    const struct hb_node *list = hb_take(f, t, "tensor_parallel_axes");
    if (!list)
        list = hb_take(f, hb_node_find(t, "mesh"), "tensor_parallel_axes");
    hb_put_bool(f, "sharding.vocab_over_tensor", names_axis(list, "vocab"));
    if (!names_axis(list, "kv_head"))
        hb_missing(f, "trainer.tensor_parallel_axes: without kv_head queries, keys and values are "
                      "whole on each device of model; they count as split");
}

/* Devices: replica (data), data (fsdp) and model (tensor), or in older files model_axis_size. */
static int64_t put_mesh(struct hb_foreign *f, const struct hb_node *t)
{
    const struct hb_node *mesh = hb_take(f, hb_take(f, t, "mesh"), "axes");
    int64_t devices = hb_take_int(f, f->said, "devices|hardware.count", 0);
    int64_t replicas = hb_take_int(f, mesh, "replica", 1);
    int64_t slices = hb_take_int(f, t, "replica_dcn_axis_size", 1); /* -1: however many there are */
    replicas =
        hb_mul_sat(hb_take_int(f, t, "replica_ici_axis_size", replicas), slices < 1 ? 1 : slices);
    int64_t fsdp = hb_take_int(f, mesh, "data", -1);
    int64_t tensor = hb_take_int(f, mesh, "model", hb_take_int(f, t, "model_axis_size", 1));
    if (tensor > 1)
        put_tensor_axes(f, t);
    else
        hb_take(f, t, "tensor_parallel_axes");
    if (replicas < 1)
        replicas = 1;
    if (tensor < 1)
        tensor = 1;
    int64_t others = hb_mul_sat(replicas, tensor);
    if (!devices) {
        devices = fsdp > 0 ? hb_mul_sat(others, fsdp) : others < 8 ? 8 / others * others : others;
        if (fsdp < 1)
            hb_assume(f, "%" PRId64 " devices: the file does not say how many; devices=N does",
                      devices);
    }
    if (fsdp < 1)
        fsdp = devices / others > 0 ? devices / others : 1;
    hb_put_int(f, "mesh.data", replicas);
    hb_put_int(f, "mesh.fsdp", fsdp);
    hb_put_int(f, "mesh.tensor", tensor);
    hb_put_int(f, "hardware.count", hb_mul_sat(others, fsdp));
    return hb_mul_sat(replicas, fsdp);
}

static void put_names(struct hb_foreign *f, const struct hb_node *map, const char *key,
                      const char *first, const char *path)
{
    const char *words[32];
    int count = 0;
    const struct hb_node *list = hb_take(f, map, key);
    if (first)
        words[count++] = first;
    for (const struct hb_node *n = list ? list->first : NULL; n && count < 32; n = n->next)
        words[count++] = n->kind == HB_NODE_SCALAR ? n->text : "";
    hb_put_words(f, path, words, count);
}

/* A policy as a map: what is saved, and where. */
static void put_policy(struct hb_foreign *f, const struct hb_node *g)
{
    const char *carries = hb_take_text(f, g, "save_carries", "true");
    bool host = hb_str_same(carries, "offload");
    const struct hb_node *nested = hb_take(f, g, "nested");
    double outer = 0;
    bool names = hb_node_find(g, "save_block_internals") != NULL;
    hb_put(f, "remat.policy",
           names || hb_node_find(g, "offload_block_internals") ? "names" : "full");
    put_names(f, g, "save_block_internals", host || !names ? NULL : "layer_in", "remat.save");
    put_names(f, g, "offload_block_internals", host ? "layer_in" : NULL, "remat.offload");
    if (nested && !hb_str_same(nested->text ? nested->text : "", "false"))
        hb_put(f, "stack.form", "nested");
    if (hb_number(nested, &outer) && outer > 0)
        hb_put_int(f, "stack.outer", hb_clipped(outer));
}

static void put_remat(struct hb_foreign *f, const struct hb_node *m)
{
    const struct hb_node *g = hb_take(f, m, "gradient_checkpointing");
    const char *word = g && g->kind == HB_NODE_SCALAR ? g->text : "true";
    if (g && g->kind == HB_NODE_MAP) {
        put_policy(f, g);
    } else if (hb_str_same(word, "offload")) {
        static const char *const input[] = {"layer_in"};
        hb_put(f, "remat.policy", "full");
        hb_put_words(f, "remat.offload", input, 1);
    } else if (hb_str_same(word, "nested")) {
        hb_put(f, "remat.policy", "full");
        hb_put(f, "stack.form", "nested");
    } else {
        bool none = hb_str_same(word, "false") || hb_str_same(word, "save_all");
        hb_put(f, "remat.policy", none ? "none" : "full");
    }
}

/* Whether its states are Adam's. */
static bool put_optimizer(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *o = hb_take(f, c, "optimizer");
    const char *type = hb_take_text(f, o, "type", "adam");
    bool muon = strstr(type, "muon") != NULL;
    if (!muon && !strstr(type, "adam"))
        hb_missing(f, "optimizer.type: %s; adamw's states are counted", type);
    hb_put(f, "optimizer.name", muon ? "muon" : "adamw");
    hb_put_bool(f, "optimizer.clip", hb_take_real(f, o, "max_grad_norm", 1) > 0);
    const struct hb_node *ema = hb_take(f, hb_node_find(c, "trainer"), "model_averaging");
    if (ema)
        hb_put(f, "optimizer.ema", "device");
    return !muon;
}

/* A number, or a schedule [{start: 0, value: 512}, ...], of which the largest counts. */
static int64_t take_batch(struct hb_foreign *f, const struct hb_node *t)
{
    const struct hb_node *node = hb_node_find(t, "train_batch_size");
    double most = 0, value = 0;
    if (!node || node->kind != HB_NODE_LIST)
        return hb_take_int(f, t, "train_batch_size", 512);
    hb_take(f, t, "train_batch_size");
    for (const struct hb_node *n = node->first; n; n = n->next)
        if (hb_number(n->kind == HB_NODE_MAP ? hb_node_find(n, "value") : n, &value))
            most = value > most ? value : most;
    hb_assume(f, "train_batch_size: the largest of its schedule");
    return most >= 1 && most < 0x1p53 ? (int64_t)most : 512;
}

static void put_batch(struct hb_foreign *f, const struct hb_node *t, int64_t ranks)
{
    int64_t batch = take_batch(f, t);
    int64_t each = hb_take_int(f, t, "per_device_parallelism", -1);
    int64_t round = hb_mul_sat(ranks, each > 0 ? each : 1);
    hb_put_int(f, "batch.global", batch);
    if (each > 0 && round > 0 && batch % round == 0)
        hb_put_int(f, "batch.accumulate", batch / round);
    else if (each > 0)
        hb_error(f->diag, t->loc,
                 "trainer.train_batch_size %" PRId64 " is no multiple of per_device_parallelism x "
                 "data ranks = %" PRId64,
                 batch, round);
}

/* What its train step does whoever runs it: the whole model is cast before the layers
 * (WrappedLossFunction), weights' embed lies over data, norms' too, heads have a dimension of their
 * own, and the loss takes one-hot targets from logits in the compute type (models/loss.py). */
static void put_step(struct hb_foreign *f)
{
    hb_put(f, "runtime.framework", "jax");
    hb_put(f, "step.cast", "upfront");
    hb_put(f, "sharding.norms", "fsdp");
    hb_put_bool(f, "loss.onehot", true);
    hb_put_in_blocks(f, "attention", "split_heads", "true");
}

bool hb_import_levanter(struct hb_foreign *f, const struct hb_node *root)
{
    struct hb_node *c = hb_node_copy(f->arena, root);
    if (!put_model(f, c))
        return false;
    struct hb_node *t = hb_node_find(c, "trainer");
    if (!t)
        t = hb_node_new(f->arena, HB_NODE_MAP, root->loc);
    hb_take(f, c, "trainer");
    const struct hb_node *m = hb_node_find(c, "model");
    put_precision(f, t, put_optimizer(f, c));
    put_batch(f, t, put_mesh(f, t));
    put_remat(f, m);
    put_step(f);
    if (hb_node_find(hb_node_find(f->out->root, "mesh"), "tensor"))
        hb_put(f, "hardware.device", hb_take_text(f, f->said, "device", "tpu-v5p"));
    if (!hb_node_find(f->said, "device"))
        hb_assume(f, "hardware.device tpu-v5p: the file does not say which; device=NAME does");
    const char *kernel = hb_take_text(f, m, "attn_backend", "default");
    if (hb_str_same(kernel, "vanilla") || hb_str_same(kernel, "VANILLA"))
        hb_put_in_blocks(f, "attention", "kernel", "naive");
    hb_tell_rest(f, c, "", quiet);
    hb_tell_rest(f, t, "trainer.", quiet_trainer);
    hb_tell_rest(f, m, "model.", quiet_model);
    return !f->diag->errors;
}
