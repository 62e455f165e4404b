/* A run of Hugging Face's Trainer: its arguments (training_args.json or yaml), accelerate's
 * configuration and DeepSpeed's json laid over one another, with the model's config.json among the
 * files; LLaMA-Factory's and axolotl's yml say the same in words of their own. Keys:
 * transformers/training_args.py 5.23, accelerate's ClusterConfig and FSDP plugin, DeepSpeed's
 * config-json page. Memory is that of PyTorch's FSDP2 as torchtitan has it; what only replicates or
 * follows ZeRO is written down, and refused where it is not simulated. */
#include "models/import/source.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/size.h"

bool hb_import_is_trainer(const struct hb_node *root)
{
    static const char *const keys[] = {"per_device_train_batch_size",
                                       "zero_optimization",
                                       "train_micro_batch_size_per_gpu",
                                       "distributed_type",
                                       "fsdp_config",
                                       "deepspeed_config",
                                       "gradient_checkpointing",
                                       "base_model"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (hb_node_find(root, keys[i]))
            return true;
    return false;
}

/* How the state is divided. */
struct sharding {
    int64_t devices;
    int stage; /* ZeRO: 0 to 3 */
    bool host_states, host_params;
    bool flat; /* FullyShardedDataParallel, FSDP's first version */
};

/* A number, where the file may say "auto". */
static int64_t take_auto(struct hb_foreign *f, const struct hb_node *map, const char *names,
                         int64_t absent)
{
    const struct hb_node *node = hb_take_any(f, map, names);
    double value = 0;
    return hb_number(node, &value) && value >= 0 && value < 0x1p53 ? (int64_t)value : absent;
}

/* true, or {enabled: true}. */
static bool take_switch(struct hb_foreign *f, const struct hb_node *c, const char *key)
{
    const struct hb_node *node = hb_node_find(c, key);
    if (node && node->kind == HB_NODE_MAP) {
        const char *word = hb_take_text(f, hb_take(f, c, key), "enabled", "false");
        return hb_str_same(word, "true") || hb_str_same(word, "auto");
    }
    const char *word = node && node->kind == HB_NODE_SCALAR ? node->text : "";
    if (hb_str_same(word, "auto") || hb_str_same(word, "full")) /* axolotl's */
        return hb_take(f, c, key) != NULL;
    return hb_take_bool(f, c, key, false);
}

static bool on_host(struct hb_foreign *f, const struct hb_node *map, const char *key,
                    const char *flat)
{
    const struct hb_node *inner = hb_take(f, map, key);
    const char *place = hb_take_text(f, inner, "device", hb_take_text(f, map, flat, "none"));
    return hb_str_same(place, "cpu") || hb_str_same(place, "nvme");
}

/* A count of elements; "auto" is the Trainer's, made from the model's width
 * (transformers/integrations/deepspeed.py: trainer_config_finalize). -1: not said. */
static double take_elements(struct hb_foreign *f, const struct hb_node *zero, const char *names,
                            double of_width, bool squared)
{
    const struct hb_node *size = hb_take_any(f, zero, names);
    const struct hb_node *width = hb_node_find(hb_node_find(f->out->root, "model"), "d_model");
    double elements = 0, d = 0;
    if (!size || hb_number(size, &elements))
        return size ? elements : -1;
    if (hb_number(width, &d))
        return floor(of_width * d * (squared ? d : 1));
    hb_assume(f, "%s: auto, and no width to make it from: DeepSpeed's own", names);
    return -1;
}

static void put_elements(struct hb_foreign *f, const char *key, double elements)
{
    if (elements >= 0 && elements <= 1e12)
        hb_put_int(f, key, hb_clipped(elements));
}

static void put_bucket(struct hb_foreign *f, const struct hb_node *zero, int stage)
{
    double elements = take_elements(f, zero, "reduce_bucket_size", 1, true);
    bool beside = hb_take_bool(f, zero, "overlap_comm", false);
    if (stage < 3 && beside)
        elements = 2 * (elements < 0 ? 5e8 : elements);
    if (elements != 0)
        put_elements(f, "runtime.reduce_bucket", elements);
}

static void put_modules(struct hb_foreign *f, const struct hb_node *zero)
{
    put_elements(
        f, "runtime.prefetch_bucket",
        take_elements(f, zero, "stage3_prefetch_bucket_size|prefetch_bucket_size", 0.9, true));
    put_elements(f, "runtime.persist_below",
                 take_elements(f, zero,
                               "stage3_param_persistence_threshold|param_persistence_threshold", 10,
                               false));
    put_elements(
        f, "runtime.live_parameters",
        take_elements(f, zero, "stage3_max_live_parameters|max_live_parameters", 0, false));
    put_elements(f, "runtime.reuse_distance",
                 take_elements(f, zero, "stage3_max_reuse_distance|max_reuse_distance", 0, false));
    double group = take_elements(f, zero, "sub_group_size", 0, false);
    if (group >= 1)
        put_elements(f, "runtime.update_group", group);
}

static void take_zero(struct hb_foreign *f, const struct hb_node *c, struct sharding *s)
{
    const struct hb_node *own = hb_take_any(f, c, "deepspeed_config|deepspeed");
    const struct hb_node *map = own && own->kind == HB_NODE_MAP ? own : NULL;
    const struct hb_node *zero = hb_take(f, c, "zero_optimization");
    if (!zero && own && !map && own->kind == HB_NODE_SCALAR && own->text[0])
        hb_missing(f, "deepspeed: %s is a file of its own; name it beside this one", own->text);
    if (!zero)
        zero = hb_take(f, map, "zero_optimization");
    if (!zero)
        zero = map;
    s->stage = (int)hb_take_int(f, zero, "stage|zero_stage", 0);
    if (s->stage > 0)
        put_bucket(f, zero, s->stage);
    if (s->stage == 3)
        put_modules(f, zero);
    s->host_states = on_host(f, zero, "offload_optimizer", "offload_optimizer_device");
    s->host_params = on_host(f, zero, "offload_param", "offload_param_device");
}

static void take_fsdp(struct hb_foreign *f, const struct hb_node *c, struct sharding *s)
{
    const struct hb_node *map = hb_take(f, c, "fsdp_config");
    const struct hb_node *words = hb_take(f, c, "fsdp");
    const char *type = hb_take_text(f, c, "distributed_type", "");
    const char *how = hb_take_text(f, map, "fsdp_sharding_strategy", "FULL_SHARD");
    bool asked = hb_str_same(type, "FSDP") ||
                 (words && (words->kind != HB_NODE_SCALAR ||
                            (words->text[0] && !hb_str_same(words->text, "false"))));
    if (!asked)
        return;
    bool grads = strstr(how, "GRAD_OP") || hb_str_same(how, "2");
    bool none = strstr(how, "NO_SHARD") || hb_str_same(how, "3");
    s->stage = none ? 0 : 3;
    bool reshard = hb_take_bool(f, map, "fsdp_reshard_after_forward|reshard_after_forward", !grads);
    hb_put_bool(f, "sharding.reshard_after_forward", reshard);
    s->host_states = hb_take_bool(f, map, "fsdp_offload_params|offload_params|cpu_offload", false);
    s->host_params = s->host_states;
    s->flat = hb_take_int(f, map, "fsdp_version|version", 1) == 1 && s->stage == 3;
}

static bool has_experts(const struct hb_foreign *f)
{
    const struct hb_node *blocks = hb_node_find(hb_node_find(f->out->root, "model"), "blocks");
    for (const struct hb_node *b = blocks ? blocks->first : NULL; b; b = b->next)
        if (hb_node_find(b, "moe"))
            return true;
    return false;
}

static void put_sharding(struct hb_foreign *f, const struct sharding *s)
{
    hb_put_int(f, "mesh.data", s->stage == 3 ? 1 : s->devices);
    hb_put_int(f, "mesh.fsdp", s->stage == 3 ? s->devices : 1);
    hb_put_int(f, "hardware.count", s->devices);
    if (s->stage == 1 || s->stage == 2)
        hb_put_bool(f, "sharding.optimizer_over_data", true);
    if (s->stage == 2)
        hb_put_bool(f, "sharding.grads_over_data", true);
    bool told = !s->host_states && !has_experts(f);
    if (s->flat && told)
        hb_put_bool(f, "runtime.fsdp1", true);
    else if (s->flat)
        hb_assume(f, "FSDP's first version: experts and offload are simulated as the second's");
    if (s->host_states)
        hb_put(f, "optimizer.offload", "pinned_host");
    if (s->host_params)
        hb_put(f, "optimizer.params_offload", "pinned_host");
}

static void put_precision(struct hb_foreign *f, const struct hb_node *c, bool zero)
{
    const char *mixed = hb_take_text(f, c, "mixed_precision", "no");
    bool bf16 = take_switch(f, c, "bf16") || hb_str_same(mixed, "bf16");
    bool fp16 = take_switch(f, c, "fp16") || hb_str_same(mixed, "fp16");
    const struct hb_node *told = hb_node_find(c, "fp16"); /* bf16 "auto" beside it is off */
    bool half = told && told->kind == HB_NODE_SCALAR && fp16;
    bf16 = bf16 && !(half && hb_node_find(hb_node_find(c, "bf16"), "enabled"));
    const char *type = bf16 ? "bf16" : fp16 ? "f16" : "f32";
    hb_put(f, "precision.params", zero ? type : "f32");
    hb_put(f, "precision.compute", type);
    if (zero && (bf16 || fp16))
        hb_put(f, "precision.master", "f32");
    hb_put(f, "precision.grads", zero ? "params" : "f32");
    hb_put(f, "loss.dot", type);
    if (!bf16 && !fp16)
        hb_assume(f, "float32 throughout: neither bf16 nor fp16 is asked for");
}

static void put_batch(struct hb_foreign *f, const struct hb_node *c, int64_t devices)
{
    bool axolotl = hb_node_find(c, "base_model") != NULL;
    int64_t each = take_auto(
        f, c, "per_device_train_batch_size|train_micro_batch_size_per_gpu|micro_batch_size",
        axolotl ? 1 : 8);
    int64_t accumulate = take_auto(f, c, "gradient_accumulation_steps", 1);
    int64_t seq = take_auto(
        f, c, "max_seq_length|max_length|block_size|cutoff_len|seq_length|sequence_len", 0);
    take_auto(f, c, "train_batch_size", 0);
    if (!seq) {
        seq = 4096;
        hb_assume(f, "sequences of 4096 tokens: nothing says how long; max_seq_length=N does");
    }
    hb_put_int(f, "batch.global", hb_mul_sat(hb_mul_sat(each, accumulate), devices));
    hb_put_int(f, "batch.accumulate", accumulate);
    hb_put_int(f, "batch.seq", seq);
}

static void put_optimizer(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *own = hb_take(f, c, "optimizer");
    const char *told = own && own->kind == HB_NODE_SCALAR ? own->text : "adamw_torch";
    const char *name = hb_take_text(f, c, "optim", hb_take_text(f, own, "type", told));
    bool small = strstr(name, "8bit") != NULL;
    bool factored = strstr(name, "adafactor") != NULL;
    bool sgd = hb_str_same(name, "sgd");
    bool lion = strstr(name, "lion") != NULL;
    static const char *const bytes[] = {"q8", "q8"};
    hb_put(f, "optimizer.name", factored ? "adafactor" : sgd ? "sgd" : lion ? "lion" : "adamw");
    if (small)
        hb_put_words(f, "optimizer.moments", bytes, lion ? 1 : 2);
    if (!factored && !sgd && !lion && !strstr(name, "dam"))
        hb_missing(f, "optim: %s; adamw's states are counted", name);
    hb_put_bool(f, "optimizer.clip",
                hb_take_real(f, c, "max_grad_norm", 1) > 0 ||
                    take_auto(f, c, "gradient_clipping", 0) > 0);
}

static const char *text_of(const struct hb_node *map, const char *key)
{
    const struct hb_node *n = hb_node_find(map, key);
    return n && n->kind == HB_NODE_SCALAR ? n->text : "";
}

/* ... most as Llama's, narrow before the weight comes; Gemma's, OLMo's and gpt-oss's weigh in f32
 * (transformers: "main diff with Llama"), as torch's own do. */
static bool norms_are_llamas(const struct hb_foreign *f)
{
    const struct hb_node *model = hb_node_find(f->out->root, "model");
    const struct hb_node *blocks = hb_node_find(model, "blocks"), *b;
    const char *name = text_of(model, "name");
    for (int64_t i = 0; (b = hb_node_at(blocks, i)) != NULL; i++) {
        const char *mlp = text_of(hb_node_find(b, "mlp"), "kind");
        if (!hb_str_same(text_of(b, "norm"), "rmsnorm") || hb_str_same(mlp, "geglu") ||
            hb_node_find(b, "post_norm") || hb_node_find(hb_node_find(b, "attention"), "sinks"))
            return false;
    }
    return blocks && !strstr(name, "olmo");
}

static void put_rest(struct hb_foreign *f, const struct hb_node *c, bool zero3)
{
    const struct hb_node *fsdp = hb_node_find(c, "fsdp_config");
    bool factory = hb_node_find(c, "finetuning_type") != NULL; /* LLaMA-Factory's own default */
    bool full =
        hb_take_bool(f, c, "gradient_checkpointing", false) ||
        (factory && !hb_take_bool(f, c, "disable_gradient_checkpointing", false)) ||
        hb_take_bool(f, fsdp, "fsdp_activation_checkpointing|activation_checkpointing", false);
    hb_put(f, "remat.policy", full ? "full" : "none");
    hb_put(f, "stack.form", "loop");
    bool compile = hb_take_bool(f, c, "torch_compile", false);
    hb_put_bool(f, "runtime.compile", compile);
    if (hb_take_bool(f, c, "use_liger_kernel", false))
        hb_put(f, "loss.kernel", "linear");
    hb_put(f, "compiler", "torch");
    hb_put(f, "runtime.framework", "torchtitan");
    hb_put_bool(f, "runtime.fused_norm", false); /* its models write RMSNorm out ... */
    if (!compile && !zero3 && norms_are_llamas(f))
        hb_put_bool(f, "runtime.written_norm", true);
    hb_put(f, "hardware.device", hb_take_text(f, c, "device", "nvidia-h100"));
    if (!hb_node_find(c, "device"))
        hb_assume(f, "hardware.device nvidia-h100: nothing says which; device=NAME does");
    hb_assume(f, "PyTorch's memory as torchtitan's FSDP2 has it");
    static const char *const lora[] = {"use_peft",     "lora_r",       "lora_rank",
                                       "load_in_4bit", "load_in_8bit", "adapter"};
    for (size_t i = 0; i < sizeof lora / sizeof lora[0]; i++)
        if (hb_node_find(c, lora[i]))
            hb_missing(f, "%s: all parameters are trained here", lora[i]);
    const char *tuned = hb_take_text(f, c, "finetuning_type", "full");
    if (!hb_str_same(tuned, "full"))
        hb_missing(f, "finetuning_type: %s; all parameters are trained here", tuned);
    static const char *const others[] = {"use_muon",  "use_galore",    "use_apollo",
                                         "use_badam", "use_adam_mini", "fp8"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (hb_take_bool(f, c, others[i], false))
            hb_missing(f, "%s: adamw in 16 and 32 bits is counted", others[i]);
}

enum { DATE = 5 }; /* "-2507" */

/* Letters and digits alone, lower case, up to what marks a variant or a date. */
static char *bare_name(struct hb_foreign *f, const char *name)
{
    static const char *const ends[] = {"instruct", "hf", "base", "chat", "pt", "it", "v01"};
    const char *slash = strrchr(name, '/');
    char *bare = hb_arena_strdup(f->arena, slash ? slash + 1 : name);
    size_t len = strlen(bare);
    if (len > DATE && bare[len - DATE] == '-' &&
        strspn(bare + len - DATE + 1, "0123456789") == DATE - 1)
        bare[len - DATE] = '\0';
    char *to = bare;
    for (const char *from = bare; *from; from++)
        if (isalnum((unsigned char)*from))
            *to++ = (char)tolower((unsigned char)*from);
    *to = '\0';
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (hb_str_ends(bare, ends[i]))
            bare[strlen(bare) - strlen(ends[i])] = '\0';
    return strncmp(bare, "meta", 4) == 0 ? bare + 4 : bare;
}

/* The zoo's card that meta-llama/Llama-3.1-8B-Instruct means; null: there is none. */
static const char *nearest_card(struct hb_foreign *f, const char *name)
{
    const char *folder = hb_arena_printf(f->arena, "%s/models/zoo", f->data_dir);
    const char *bare = bare_name(f, name);
    for (const char *const *card = hb_file_list(f->arena, folder, ".yaml"); *card; card++)
        if (hb_str_same(bare_name(f, *card), bare))
            return *card;
    return NULL;
}

/* The model: of a config.json among the files, or the zoo's card that the run names. */
static bool put_model(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *name =
        hb_take_any(f, c, "model_name_or_path|model_name|base_model|model");
    if (hb_node_find(c, "model_type") && !hb_node_find(c, "base_model")) {
        struct hb_notes missing = f->out->missing;
        struct hb_notes assumed = f->out->assumed;
        if (!hb_import_hf(f, c))
            return false;
        f->out->missing = missing;
        f->out->assumed = assumed;
        return true;
    }
    if (name && name->kind == HB_NODE_SCALAR) {
        const char *card = nearest_card(f, name->text);
        return card ? hb_put_card(f, card, name->loc)
                    : hb_error(f->diag, name->loc,
                               "%s: no card %s (`hbmsim models` lists what there is); name its "
                               "config.json among the files",
                               name->key, hb_node_show(f->arena, name));
    }
    return hb_error(f->diag, c->loc,
                    "these files say nothing of the model; name its config.json "
                    "among them, or model_name_or_path=NAME of the model zoo");
}

bool hb_import_trainer(struct hb_foreign *f, const struct hb_node *root)
{
    struct hb_node *c = hb_node_copy(f->arena, root);
    struct sharding s = {0};
    if (f->said)
        hb_node_overlay(c, hb_node_copy(f->arena, f->said));
    if (!put_model(f, c))
        return false;
    f->out->what = "a run of Hugging Face's Trainer";
    s.devices = take_auto(f, c, "num_processes|world_size|devices", 0);
    if (s.devices < 1) {
        s.devices = 8;
        hb_assume(f, "8 devices: nothing says how many; num_processes=N does");
    }
    take_zero(f, c, &s);
    bool zero = s.stage > 0;
    take_fsdp(f, c, &s);
    put_sharding(f, &s);
    put_precision(f, c, zero);
    put_batch(f, c, s.devices);
    put_optimizer(f, c);
    put_rest(f, c, zero && s.stage == 3);
    return !f->diag->errors;
}
