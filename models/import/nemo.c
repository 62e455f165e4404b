/* NeMo's configuration of megatron_gpt_pretraining (sections trainer and model), whose model and
 * parallelism are Megatron's under other names: it is laid flat, put into Megatron's words and read
 * as its arguments. Names and what they do: examples/nlp/language_modeling/conf/
 * megatron_gpt_config.yaml and nlp/models/language_modeling/megatron_gpt_model.py of NeMo 1.23; the
 * published configurations of NeMo-Framework-Launcher are in the tests. */
#include "models/import/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"

static const struct hb_node *model_of(const struct hb_node *root)
{
    return hb_node_find(root, "model");
}

bool hb_import_is_nemo(const struct hb_node *root)
{
    const struct hb_node *model = model_of(root);
    return hb_node_find(model, "num_layers") && hb_node_find(model, "hidden_size") &&
           (hb_node_find(model, "encoder_seq_length") ||
            hb_node_find(model, "tensor_model_parallel_size"));
}

/* The same under Megatron's names. */
static const char *const renamed[][2] = {
    {"devices", "gpus_per_node"},
    {"gradient_clip_val", "clip_grad"},
    {"encoder_seq_length", "seq_length"},
    {"activations_checkpoint_granularity", "recompute_granularity"},
    {"activations_checkpoint_method", "recompute_method"},
    {"activations_checkpoint_num_layers", "recompute_num_layers"},
    {"qkv_bias", "add_qkv_bias"},
    {"override_vocab_size", "vocab_size"},
    {"use_flash_attention", "use_flash_attn"},
};

/* Changes no memory, or is read below. */
static const char *const quiet[] = {"activation",
                                    "activations_checkpoint_layers_*",
                                    "apex_*",
                                    "apply_*",
                                    "attention_type",
                                    "batch_p2p_comm",
                                    "bias",
                                    "bias_*",
                                    "cpu_*",
                                    "defer_*",
                                    "deteministic_mode",
                                    "do_layer_norm_*",
                                    "enable_*",
                                    "ffn_dropout",
                                    "fp16_lm_*",
                                    "fp32_residual_*",
                                    "fp8*",
                                    "fsdp*",
                                    "gc_interval",
                                    "get_attention_*",
                                    "grad_*",
                                    "gradient_as_*",
                                    "headscale",
                                    "hysteresis",
                                    "init_method_*",
                                    "layernorm_*",
                                    "masked_softmax_*",
                                    "mcore_*",
                                    "megatron_*",
                                    "native_amp_*",
                                    "normalize_*",
                                    "num_micro_*",
                                    "onnx_safe",
                                    "openai_gelu",
                                    "persist_*",
                                    "post_process",
                                    "pre_process",
                                    "precision",
                                    "rampup_*",
                                    "reduce_amax",
                                    "resume_*",
                                    "scale_positional*",
                                    "seq_len_*",
                                    "sharp",
                                    "sync_batch_comm",
                                    "tp_comm_*",
                                    "transformer_*",
                                    "ub_*",
                                    "use_cpu_*",
                                    "use_emha",
                                    "use_scaled_*",
                                    "use_te_*",
                                    "validation_*",
                                    "wgrad_*",
                                    NULL};

static bool is_quiet(const char *key)
{
    for (int i = 0; quiet[i]; i++) {
        size_t len = strlen(quiet[i]) - 1;
        if (quiet[i][len] == '*' ? strncmp(key, quiet[i], len) == 0 : hb_str_same(key, quiet[i]))
            return true;
    }
    return false;
}

/* "${.hidden_size}", "${model.hidden_size}", "${multiply:4, ${.hidden_size}}" as numbers; 0: none
 * of these. */
static int64_t resolve(const struct hb_node *model, const char *text, int depth)
{
    static const char product[] = "${multiply:";
    struct hb_node number = {.kind = HB_NODE_SCALAR, .text = text};
    double value = 0;
    if (hb_number(&number, &value) && value >= 1 && value < 0x1p53)
        return (int64_t)value;
    if (depth > 4 || !hb_str_starts(text, "${"))
        return 0;
    if (hb_str_starts(text, product)) {
        char *end = NULL;
        int64_t factor = strtoll(text + strlen(product), &end, 10);
        const char *rest = end + strspn(end, ", ");
        return factor > 0 ? hb_mul_sat(factor, resolve(model, rest, depth + 1)) : 0;
    }
    char key[64] = "";
    size_t len = strcspn(text, "}");
    const char *at = text + len;
    while (at > text && at[-1] != '.' && at[-1] != '{')
        at--;
    len -= (size_t)(at - text);
    if (len == 0 || len >= sizeof key)
        return 0;
    memcpy(key, at, len);
    const struct hb_node *node = hb_node_find(model, key);
    return node && node->kind == HB_NODE_SCALAR ? resolve(model, node->text, depth + 1) : 0;
}

/* A copy of the value with its interpolation done. */
static struct hb_node *value_of(struct hb_foreign *f, const struct hb_node *model,
                                const struct hb_node *node)
{
    struct hb_node *copy = hb_node_copy(f->arena, node);
    int64_t value = node->kind == HB_NODE_SCALAR && hb_str_starts(node->text, "${")
                        ? resolve(model, node->text, 0)
                        : 0;
    if (value > 0)
        copy->text = hb_arena_printf(f->arena, "%" PRId64, value);
    return copy;
}

static const char *megatron_name(const char *key)
{
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (hb_str_same(renamed[i][0], key))
            return renamed[i][1];
    return key;
}

/* Keys of one section, but maps, into Megatron's; what is there already is stronger. */
static void lay(struct hb_foreign *f, const struct hb_node *model, const struct hb_node *map,
                struct hb_node *flat)
{
    for (const struct hb_node *n = map ? map->first : NULL; n; n = n->next) {
        const char *dot = strrchr(n->key, '.');
        const char *key = megatron_name(dot ? dot + 1 : n->key);
        if (n->kind == HB_NODE_MAP || is_quiet(key) || hb_node_find(flat, key))
            continue;
        hb_node_put(flat, hb_arena_strdup(f->arena, key), n->key_loc, value_of(f, model, n));
    }
}

static void put_flag(struct hb_foreign *f, struct hb_node *flat, const char *key, const char *text,
                     struct hb_loc loc)
{
    if (!hb_node_find(flat, key))
        hb_node_put(flat, key, loc, hb_node_scalar(f->arena, loc, text, false));
}

static void lay_model(struct hb_foreign *f, const struct hb_node *m, struct hb_node *flat)
{
    const char *act = hb_take_text(f, m, "activation", "gelu");
    if (strstr(act, "swiglu"))
        put_flag(f, flat, "swiglu", "true", m->loc);
    else if (strstr(act, "geglu"))
        put_flag(f, flat, "geglu", "true", m->loc);
    else if (strstr(act, "squared-relu") || strstr(act, "squared_relu"))
        put_flag(f, flat, "squared_relu", "true", m->loc);
    else if (!strstr(act, "gelu"))
        hb_missing(f, "activation: %s; gelu is counted", act);
    if (!hb_take_bool(f, m, "bias", true))
        put_flag(f, flat, "disable_bias_linear", "true", m->loc);
    bool rms = strstr(hb_take_text(f, m, "normalization", "layernorm"), "rms") != NULL;
    hb_node_put(flat, "normalization", m->loc,
                hb_node_scalar(f->arena, m->loc, rms ? "RMSNorm" : "LayerNorm", true));
    if (!hb_take_bool(f, m, "transformer_engine", false))
        put_flag(f, flat, "transformer_impl", "local", m->loc);
    put_flag(f, flat, "gradient_accumulation_fusion", "false", m->loc);
    const struct hb_node *tokenizer = hb_take(f, m, "tokenizer");
    const char *type = hb_take_text(f, tokenizer, "type", "");
    if (hb_str_starts(type, "GPT2"))
        put_flag(f, flat, "tokenizer_type", type, m->loc);
    if (hb_take_bool(f, m, "cpu_offloading", false))
        hb_missing(f, "cpu_offloading: activations stay on the device here");
}

static void lay_precision(struct hb_foreign *f, const struct hb_node *trainer,
                          const struct hb_node *m, struct hb_node *flat)
{
    const char *type = hb_take_text(f, m, "precision", hb_take_text(f, trainer, "precision", "32"));
    bool bf16 = strstr(type, "bf16") != NULL, fp16 = !bf16 && strstr(type, "16") != NULL;
    if (bf16 || fp16)
        put_flag(f, flat, bf16 ? "bf16" : "fp16", "true", m->loc);
    if ((bf16 || fp16) && !hb_take_bool(f, m, "megatron_amp_O2", false))
        hb_missing(f, "megatron_amp_O2: false; parameters in 16 bits with a master copy are "
                      "counted, as with true");
    if (hb_take_bool(f, m, "fp8", false))
        put_flag(f, flat, "fp8_format", hb_take_bool(f, m, "fp8_hybrid", false) ? "hybrid" : "e4m3",
                 m->loc);
    if (hb_take_bool(f, m, "fp8_params", false))
        put_flag(f, flat, "fp8_param", "true", m->loc);
}

static void lay_sharding(struct hb_foreign *f, const struct hb_node *m, struct hb_node *flat)
{
    const struct hb_node *optim = hb_take(f, m, "optim");
    const char *name = hb_take_text(f, optim, "name", "fused_adam");
    const char *sync = hb_take_text(f, optim, "grad_sync_dtype", "fp32");
    if (strstr(name, "distributed"))
        put_flag(f, flat, "use_distributed_optimizer", "true", m->loc);
    if (hb_str_same(name, "distributed_fused_adam"))
        hb_assume(f, "a master copy of 4 bytes; distributed_fused_adam may keep 2 of them");
    if (hb_str_same(name, "sgd"))
        put_flag(f, flat, "optimizer", "sgd", m->loc);
    else if (!strstr(name, "adam") && !hb_str_same(name, "mcore_distributed_optim"))
        hb_missing(f, "optim.name: %s; adam's states are counted", name);
    if (hb_take_bool(f, m, "fsdp", false)) {
        const char *how = hb_take_text(f, m, "fsdp_sharding_strategy", "full");
        sync = hb_take_text(f, m, "fsdp_grad_reduce_dtype", sync);
        put_flag(f, flat, "use_torch_fsdp2", "true", m->loc);
        put_flag(f, flat, "data_parallel_sharding_strategy",
                 hb_str_same(how, "grad") ? "optim_grads" : "optim_grads_params", m->loc);
        if (hb_str_same(how, "hybrid"))
            hb_missing(f, "fsdp_sharding_strategy: hybrid; full is counted");
    }
    if (strstr(sync, "bf16"))
        put_flag(f, flat, "grad_reduce_in_bf16", "true", m->loc);
    if (hb_take_bool(f, m, "ub_tp_comm_overlap", false))
        put_flag(f, flat, "tp_comm_overlap", "true", m->loc);
}

/* The model with what the command line says of it: model.micro_batch_size=2, activation=gelu. */
static const struct hb_node *with_said(struct hb_foreign *f, const struct hb_node *model)
{
    struct hb_node *own = hb_node_copy(f->arena, model);
    for (const struct hb_node *n = f->said ? f->said->first : NULL; n; n = n->next) {
        const char *dot = strrchr(n->key, '.');
        hb_node_put(own, dot ? dot + 1 : n->key, n->key_loc, hb_node_copy(f->arena, n));
    }
    return own;
}

bool hb_import_nemo(struct hb_foreign *f, const struct hb_node *root)
{
    const struct hb_node *m = with_said(f, model_of(root)),
                         *trainer = hb_node_find(root, "trainer");
    struct hb_node *flat = hb_node_new(f->arena, HB_NODE_MAP, root->loc);
    struct hb_node *count = hb_node_new(f->arena, HB_NODE_MAP, root->loc);
    static const char *const of_trainer[] = {"num_nodes", "devices", "gradient_clip_val"};
    lay(f, m, f->said, flat);
    lay(f, m, m, flat);
    for (size_t i = 0; i < sizeof of_trainer / sizeof of_trainer[0]; i++) {
        const struct hb_node *node = hb_node_find(trainer, of_trainer[i]);
        if (node)
            hb_node_put(count, node->key, node->key_loc, hb_node_copy(f->arena, node));
    }
    lay(f, m, count, flat);
    lay_model(f, m, flat);
    lay_precision(f, trainer, m, flat);
    lay_sharding(f, m, flat);
    return hb_import_megatron_flat(f, flat, "NeMo's configuration");
}
