/* torchtitan: the toml of its releases up to February 2026 and the JSON dumps of its configuration
 * since (debug.save_config_file). Sections and defaults: torchtitan/config/job_config.py before
 * 9810191 and torchtitan/config/configs.py at b5bcd76 (August 2026); flavors: models/NAME. What
 * they do to memory: tests/golden/torch-titan.jsonl. */
#include "models/import/source.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "models/emit_parts.h"

bool hb_import_is_titan(const struct hb_node *root)
{
    const struct hb_node *spec = hb_node_find(root, "model_spec");
    const struct hb_node *model = hb_node_find(root, "model");
    return hb_node_find(spec, "flavor") || hb_node_find(model, "flavor") ||
           hb_node_find(hb_node_find(root, "parallelism"), "data_parallel_shard_degree") ||
           (hb_node_find(root, "job") && hb_node_find(root, "training"));
}

/* Sections that have no influence. */
static const char *const quiet[] = {"job",
                                    "profiling",
                                    "profiler",
                                    "metrics",
                                    "lr_scheduler",
                                    "checkpoint",
                                    "comm",
                                    "validation",
                                    "validator",
                                    "memory_estimation",
                                    "fault_tolerance",
                                    "experimental",
                                    "debug",
                                    "dataloader",
                                    "hf_assets_path",
                                    "dump_folder",
                                    "tokenizer",
                                    "override",
                                    "renderer",
                                    NULL};
static const char *const quiet_training[] = {"dataset",    "dataset_path", "steps",
                                             "gc_*",       "warmup_steps", "mixed_precision_reduce",
                                             "dataloader", "seed",         "deterministic*",
                                             NULL};
static const char *const quiet_parallelism[] = {"disable_loss_parallel",
                                                "spmd_backend",
                                                "enable_fsdp_symm_mem",
                                                "pipeline_parallel_schedule_csv",
                                                "pipeline_parallel_expert_parallel_overlap",
                                                "expert_parallel_comm_backend",
                                                "context_parallel_ptrr_mask_key",
                                                "module_fqns_per_model_part",
                                                "pipeline_parallel_first_stage_less_layers",
                                                "pipeline_parallel_last_stage_less_layers",
                                                NULL};
static const char *const quiet_optimizer[] = {
    "lr", "eps", "beta*", "weight_decay", "implementation", "optimizer_factory_kwargs_by_name",
    NULL};
static const char *const quiet_average[] = {"decay",     "half_life_fraction",   "start_step",
                                            "step_bias", "update_every_n_steps", NULL};
static const char *const quiet_model[] = {"hf_assets_path",
                                          "tokenizer_path",
                                          "print_after_conversion",
                                          "norm_type",
                                          "*_fn",
                                          "state_dict_adapter",
                                          "parallelize_fn",
                                          "pipelining_fn",
                                          "post_optimizer_build_fn",
                                          "model",
                                          NULL};

/* A flavor's card: by its letters, without _flex, _varlen and their like. */
static const struct {
    const char *model;
    const char *flavor;
    const char *zoo;
} flavors[] = {{"llama3", "1B", "llama3.2-1b"},
               {"llama3", "3B", "llama3.2-3b"},
               {"llama3", "8B", "llama3.1-8b"},
               {"llama3", "70B", "llama3.1-70b"},
               {"llama3", "405B", "llama3.1-405b"},
               {"deepseek_v3", "16B", "deepseek-v2-lite"},
               {"deepseek_v3", "236B", "deepseek-v2"},
               {"deepseek_v3", "671B", "deepseek-v3"},
               {"qwen3", "0.6B", "qwen3-0.6b"},
               {"qwen3", "1.7B", "qwen3-1.7b"},
               {"qwen3", "4B", "qwen3-4b"},
               {"qwen3", "8B", "qwen3-8b"},
               {"qwen3", "14B", "qwen3-14b"},
               {"qwen3", "32B", "qwen3-32b"},
               {"qwen3", "30B-A3B", "qwen3-30b-a3b"},
               {"qwen3", "235B-A22B", "qwen3-235b-a22b"},
               {"llama4", "17bx16e", "llama4-scout"},
               {"llama4", "17bx128e", "llama4-maverick"},
               {"gpt_oss", "20b", "gpt-oss-20b"},
               {"gpt_oss", "120b", "gpt-oss-120b"}};
enum { FLAVORS = sizeof flavors / sizeof flavors[0] };

bool hb_titan_flavor(struct hb_arena *arena, const struct hb_model *model, const char *data_dir,
                     const char **out_name, const char **out_flavor)
{
    for (int named = 1; named >= 0; named--) /* its own name first: cards may be alike */
        for (int i = 0; i < FLAVORS; i++)
            if (hb_str_same(model->name, flavors[i].zoo) == (named == 1) &&
                hb_is_card(arena, model, flavors[i].zoo, data_dir)) {
                *out_name = flavors[i].model;
                *out_flavor = flavors[i].flavor;
                return true;
            }
    return false;
}

static bool put_model(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *spec = hb_take_any(f, c, "model_spec|model");
    const char *name = hb_take_text(f, spec, "name", "llama3");
    const char *flavor = hb_take_text(f, spec, "flavor", "debugmodel");
    size_t len = strcspn(flavor, "_");
    struct hb_loc loc = spec ? spec->loc : c->loc;
    struct hb_str known;
    hb_str_init(&known, f->arena);
    f->out->what = hb_arena_printf(f->arena, "torchtitan's configuration, %s %s", name, flavor);
    for (int i = 0; i < FLAVORS; i++) {
        if (!hb_str_same(flavors[i].model, name))
            continue;
        hb_str_addf(&known, "%s%s", known.len ? ", " : "", flavors[i].flavor);
        if (strlen(flavors[i].flavor) == len && strncmp(flavors[i].flavor, flavor, len) == 0)
            return hb_put_card(f, flavors[i].zoo, loc);
    }
    if (hb_str_same(name, "llama3") && strncmp(flavor, "debugmodel", 10) == 0) {
        struct hb_shape s = {.d_model = 256,
                             .vocab = 2048,
                             .layers = 6,
                             .heads = 16,
                             .head_dim = 16,
                             .d_ff = 768,
                             .mlp = "swiglu",
                             .name = "llama3 debugmodel"};
        return hb_put_model(f, &s, loc);
    }
    return hb_error(f->diag, loc, "model %s: no flavor '%s' is known; known: %s", name, flavor,
                    known.len ? known.text : "models llama3, deepseek_v3, qwen3, llama4, gpt_oss");
}

/* ---- mesh and batch */

struct axes {
    int64_t world, replicate, shard, tensor, context, stages;
    int64_t expert;        /* ranks of the batch that have different experts */
    int64_t expert_tensor; /* ranks of the tensor axis that split one */
};

/* At least 1, whatever the file says: what is wrong has its message, and the rest goes on. */
static int64_t take_degree(struct hb_foreign *f, const struct hb_node *p, const char *key)
{
    int64_t degree = hb_take_int(f, p, key, 1);
    if (degree >= 1)
        return degree;
    hb_error(f->diag, hb_node_find(p, key)->loc, "parallelism: %s is below 1", key);
    return 1;
}

static void take_axes(struct hb_foreign *f, const struct hb_node *c, struct axes *a)
{
    const struct hb_node *p = hb_take(f, c, "parallelism");
    if (!p) /* of 2024: under training and experimental */
        p = hb_take(f, c, "training");
    a->replicate = take_degree(f, p, "data_parallel_replicate_degree");
    a->shard = hb_take_int(f, p, "data_parallel_shard_degree|data_parallel_degree", -1);
    a->tensor = take_degree(f, p, "tensor_parallel_degree");
    a->context = take_degree(f, p, "context_parallel_degree");
    a->stages = take_degree(f, p, "pipeline_parallel_degree");
    a->expert = take_degree(f, p, "expert_parallel_degree");
    a->expert_tensor = take_degree(f, p, "expert_tensor_parallel_degree");
    if (a->expert > 1 && a->tensor > 1 && a->expert_tensor == 1) { /* over tensor's ranks first */
        if (a->expert % a->tensor)
            hb_error(f->diag, c->loc,
                     "parallelism: expert_parallel_degree is no multiple of "
                     "tensor_parallel_degree");
        a->expert = a->expert / a->tensor > 0 ? a->expert / a->tensor : 1;
    } else if (a->expert == 1) {
        a->expert_tensor = a->tensor;
    }
    a->world = hb_take_int(f, c, "world_size|NGPU|ngpu|nproc_per_node", 0);
    int64_t others =
        hb_mul_sat(hb_mul_sat(a->replicate, a->tensor), hb_mul_sat(a->context, a->stages));
    if (a->world < 1) {
        int64_t shard = a->shard > 0 ? a->shard : others < 8 && 8 % others == 0 ? 8 / others : 8;
        a->world = hb_mul_sat(others, shard);
        if (a->shard < 1)
            hb_assume(f, "%" PRId64 " devices: no file says how many; NGPU=N does", a->world);
    }
    if (a->shard < 1)
        a->shard = a->world / others;
    if (hb_mul_sat(a->shard, others) != a->world)
        hb_error(f->diag, c->loc,
                 "parallelism: the degrees' product is not the %" PRId64 " devices", a->world);
    if (a->shard < 1 || a->shard % a->expert)
        hb_error(f->diag, c->loc,
                 "parallelism: expert_parallel_degree does not divide "
                 "data_parallel_shard_degree");
}

static void put_mesh(struct hb_foreign *f, const struct hb_node *c, const struct axes *a)
{
    const struct hb_node *p = hb_take(f, c, "parallelism");
    hb_put_int(f, "mesh.data", a->replicate);
    hb_put_int(f, "mesh.fsdp", a->shard / a->expert);
    hb_put_int(f, "mesh.tensor", a->tensor);
    hb_put_int(f, "mesh.sequence", a->context);
    hb_put_int(f, "mesh.expert", a->expert);
    hb_put_int(f, "mesh.pipeline", a->stages);
    hb_put_int(f, "hardware.count", a->world);
    const char *reshard = hb_take_text(f, p, "fsdp_reshard_after_forward", "default");
    bool keep = hb_str_same(reshard, "never") || (hb_str_same(reshard, "default") && a->stages > 1);
    hb_put_bool(f, "sharding.reshard_after_forward", !keep);
    if (a->tensor > 1)
        hb_put_bool(f, "sharding.residual_over_tensor",
                    hb_take_bool(f, p, "enable_sequence_parallel", true));
    hb_take(f, p, "enable_sequence_parallel");
    if (a->expert > 1)
        hb_put_bool(f, "sharding.dense_over_expert", true);
    if (a->expert_tensor != a->tensor && a->tensor > 1)
        hb_put_int(f, "sharding.expert_tensor", a->expert_tensor);
    const char *rotate = hb_take_text(f, p, "context_parallel_rotate_method", "allgather");
    const char *balance = hb_take_text(f, p, "context_parallel_load_balancer", "headtail");
    if (a->context > 1) {
        hb_put_bool(f, "sharding.states_over_sequence", true);
        hb_put(f, "sharding.sequence_kind",
               hb_str_same(rotate, "allgather") ? "all_gather" : "ring");
        hb_put_bool(f, "sharding.sequence_balance", balance[0] != '\0');
    }
}

static void put_pipeline(struct hb_foreign *f, const struct hb_node *c, const struct axes *a,
                         int64_t local)
{
    const struct hb_node *p = hb_take(f, c, "parallelism");
    const char *schedule = hb_take_text(f, p, "pipeline_parallel_schedule", "1F1B");
    int64_t size = hb_take_int(f, p, "pipeline_parallel_microbatch_size", 1);
    int64_t parts = hb_take_int(f, p, "num_pp_microbatches", size > 0 ? local / size : 1);
    int64_t each = hb_take_int(f, p, "pipeline_parallel_layers_per_stage", 0);
    if (a->stages == 1)
        return;
    bool many = strstr(schedule, "nterleaved") != NULL;
    bool zero = strstr(schedule, "Zero") != NULL, zbv = strstr(schedule, "ZBV") != NULL;
    bool dual = strstr(schedule, "DualPipe") != NULL;
    hb_put(f, "pipeline.schedule",
           dual                        ? "dualpipe_v"
           : zbv                       ? "zbv"
           : zero                      ? "zero_bubble"
           : many                      ? "interleaved"
           : strstr(schedule, "GPipe") ? "gpipe"
                                       : "1f1b");
    hb_put_int(f, "pipeline.microbatches", parts > 0 ? parts : 1);
    hb_put_int(f, "pipeline.repeats", many || zero || dual ? 2 : 1);
    if (each)
        hb_missing(f, "parallelism.pipeline_parallel_layers_per_stage: %" PRId64, each);
}

static void put_batch(struct hb_foreign *f, const struct hb_node *c, const struct axes *a)
{
    const struct hb_node *t = hb_take(f, c, "training");
    int64_t ranks = hb_mul_sat(a->replicate, a->shard);
    int64_t seq = hb_take_int(f, t, "seq_len|max_context_length", 2048);
    int64_t tokens = hb_take_int(f, t, "num_tokens_per_microbatch_per_dp_rank", 0);
    int64_t step = hb_take_int(f, t, "num_tokens_per_train_step", -1);
    int64_t local =
        hb_take_int(f, t, "local_batch_size|batch_size", tokens > 0 && seq > 0 ? tokens / seq : 8);
    if (tokens > 0 && a->stages > 1) /* those are of one of the pipeline's microbatches */
        local = hb_mul_sat(local,
                           hb_take_int(f, hb_take(f, c, "parallelism"), "num_pp_microbatches", 1));
    int64_t global = hb_take_int(f, t, "global_batch_size", -1);
    int64_t round = hb_mul_sat(local, ranks);
    if (global < 0)
        global = step > 0 && seq > 0 ? step / seq : round;
    if (round < 1 || global % round)
        hb_error(f->diag, c->loc,
                 "training.global_batch_size %" PRId64 " is no multiple of local_batch_size x data "
                 "ranks = %" PRId64,
                 global, round);
    else
        hb_put_int(f, "batch.accumulate", global / round);
    hb_put_int(f, "batch.global", global);
    hb_put_int(f, "batch.seq", seq);
    put_pipeline(f, c, a, local);
}

/* ---- the rest */

/* A map somewhere below that has both keys; dumps have each module's configuration. */
static bool has_both(const struct hb_node *node, const char *one, const char *other)
{
    if (hb_node_find(node, one) && hb_node_find(node, other))
        return true;
    for (const struct hb_node *n = node ? node->first : NULL; n; n = n->next)
        if (has_both(n, one, other))
            return true;
    return false;
}

/* What converters made of the dump's linear modules. */
static void put_converted(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *model = hb_node_find(hb_node_find(c, "model_spec"), "model");
    if (has_both(model, "_torchao_config", "in_features"))
        hb_put(f, "precision.fp8", "rowwise");
    if (has_both(model, "rank", "alpha"))
        hb_missing(f, "LoRA: all parameters are trained here");
}

/* FSDP without other ranks casts as torch.autocast does, and gradients are as their parameters. */
static bool has_fsdp(const struct axes *a)
{
    return hb_mul_sat(a->shard, a->context) > 1;
}

static void put_precision(struct hb_foreign *f, const struct hb_node *c, const struct axes *a)
{
    const struct hb_node *t = hb_take(f, c, "training");
    bool narrow = hb_str_same(hb_take_text(f, t, "dtype", "float32"), "bfloat16");
    bool mixed = hb_str_same(hb_take_text(f, t, "mixed_precision_param", "bfloat16"), "bfloat16");
    hb_put(f, "precision.params", narrow ? "bf16" : "f32");
    hb_put(f, "precision.compute", mixed ? "bf16" : "f32");
    hb_put(f, "precision.grads", narrow || !has_fsdp(a) ? "params" : "f32");
    hb_put(f, "loss.dot", mixed ? "bf16" : "f32");
    const struct hb_node *list = hb_take(f, hb_take_any(f, c, "model"), "converters");
    const struct hb_node *quantize = hb_take(f, c, "quantize");
    const struct hb_node *linear = hb_node_find(quantize, "linear");
    const struct hb_node *float8 = hb_node_find(linear, "float8");
    if (!float8)
        float8 = hb_take(f, c, "float8");
    for (const struct hb_node *n = list ? list->first : NULL; n; n = n->next) {
        const char *word = n->kind == HB_NODE_SCALAR ? n->text : "";
        const char *recipe = hb_take_text(f, float8, "recipe_name", "tensorwise");
        if (strstr(word, "float8"))
            hb_put(f, "precision.fp8", strstr(recipe, "row") ? "rowwise" : "tensorwise");
        else if (strstr(word, "mx"))
            hb_put(f, "precision.fp8", "mxfp8");
        else
            hb_missing(f, "model.converters: %s", word);
        if (strstr(word, "float8") &&
            hb_take_bool(f, float8, "enable_fsdp_float8_all_gather", false))
            hb_put_bool(f, "precision.fp8_gather", true);
    }
}

/* The optimizer's name, in dumps by groups of parameters: that of one which is no Adam. */
static const char *take_optimizer(struct hb_foreign *f, const struct hb_node *o)
{
    const char *name = hb_take_text(f, o, "name", "AdamW");
    const struct hb_node *groups = hb_take(f, o, "param_groups");
    for (const struct hb_node *n = groups ? groups->first : NULL; n; n = n->next) {
        const char *own = hb_take_text(f, n, "optimizer_name", name);
        name = strstr(own, "Adam") ? name : own;
    }
    return name;
}

static void put_average(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *a = hb_take(f, c, "ema_weights");
    bool host = hb_take_bool(f, a, "offload_to_cpu", false);
    if (hb_take_bool(f, a, "enable", false))
        hb_put(f, "optimizer.ema", host ? "pinned_host" : "device");
    hb_tell_rest(f, a, "ema_weights.", quiet_average);
}

static void put_optimizer(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *o = hb_take(f, c, "optimizer");
    const struct hb_node *t = hb_take(f, c, "training");
    const char *name = take_optimizer(f, o);
    bool adam = hb_str_same(name, "AdamW") || hb_str_same(name, "Adam");
    bool muon = strstr(name, "uon") != NULL;
    if (!adam && !muon)
        hb_missing(f, "optimizer.name: %s; adamw's states are counted", name);
    hb_put(f, "optimizer.name", muon ? "muon" : "adamw");
    hb_put_bool(f, "optimizer.clip", hb_take_real(f, t, "max_norm", 1) > 0);
    if (hb_take_bool(f, o, "early_step_in_backward", false))
        hb_put_bool(f, "optimizer.in_backward", true);
    if (hb_take_bool(f, t, "enable_cpu_offload", false)) {
        hb_put(f, "optimizer.offload", "pinned_host");
        hb_put(f, "optimizer.params_offload", "pinned_host");
    }
    hb_tell_rest(f, o, "optimizer.", quiet_optimizer);
    put_average(f, c);
}

/* What selective checkpointing by operation keeps: every second product, and attention. */
static void put_selective(struct hb_foreign *f)
{
    static const char *const kept[] = {"q", "v", "attn_ctx", "mlp_gate", "mlp_down"};
    hb_put(f, "remat.policy", "names");
    hb_put_words(f, "remat.save", kept, 5);
}

static void put_remat(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *a = hb_take(f, c, "activation_checkpoint");
    const char *mode = hb_take_text(f, a, "mode", "selective");
    const struct hb_node *option = hb_take(f, a, "selective_ac_option");
    double every = 0;
    if (a && !hb_node_find(a, "mode")) /* a dump since 2026: the class is told by its keys */
        mode = hb_node_find(a, "memory_budget")                       ? "memory_budget"
               : hb_node_find(a, "force_recompute_mm_shapes_by_fqns") ? "selective"
                                                                      : "full";
    if (!a && hb_node_find(c, "model_spec") && hb_node_find(c, "activation_checkpoint"))
        mode = "none"; /* null */
    if (hb_str_same(mode, "full") || hb_str_same(mode, "none")) {
        hb_put(f, "remat.policy", mode);
    } else if (hb_str_same(mode, "selective") && hb_number(option, &every) && every >= 1) {
        hb_put(f, "remat.policy", "full");
        hb_put_int(f, "remat.every", hb_clipped(every));
    } else if (hb_str_same(mode, "memory_budget")) {
        hb_put(f, "remat.policy", "none");
        hb_put_real(f, "remat.budget", hb_take_real(f, a, "memory_budget", 0.5));
    } else {
        put_selective(f);
        if (!hb_str_same(mode, "selective"))
            hb_missing(f, "activation_checkpoint.mode: %s; selective by operation is taken", mode);
    }
}

static void put_compile(struct hb_foreign *f, const struct hb_node *c)
{
    const struct hb_node *k = hb_take(f, c, "compile");
    bool on = hb_take_bool(f, k, "enable", false);
    const struct hb_node *parts = hb_take(f, k, "components");
    bool model = !parts;
    bool loss = !parts;
    for (const struct hb_node *n = parts ? parts->first : NULL; n; n = n->next) {
        model |= n->kind == HB_NODE_SCALAR && hb_str_same(n->text, "model");
        loss |= n->kind == HB_NODE_SCALAR && hb_str_same(n->text, "loss");
    }
    const struct hb_node *p = hb_take(f, c, "parallelism");
    bool async = hb_take_bool(f, p, "enable_async_tensor_parallel", false) &&
                 hb_take_int(f, p, "tensor_parallel_degree", 1) > 1;
    hb_put_bool(f, "runtime.compile", on && model);
    const struct hb_node *t = hb_take(f, c, "training");
    bool graphs =
        hb_node_find(t, "disable_cuda_graphs") && !hb_take_bool(f, t, "disable_cuda_graphs", false);
    if (graphs &&
        hb_take_int(f, p, "expert_parallel_degree", 1) > 1) /* HybridEP's, MinimalAsyncEP's */
        hb_missing(f,
                   "training.disable_cuda_graphs: false; what the graphs of passes that exchange "
                   "tokens keep is not counted");
    else if (graphs)
        hb_put_bool(f, "runtime.cuda_graphs", true);
    if (async && on && model)
        hb_put_bool(f, "runtime.async_tp", true);
    hb_put(f, "loss.kernel", on && loss ? "compiled" : "eager");
    const struct hb_node *l = hb_take(f, c, "loss");
    int64_t chunks = hb_take_int(f, l, "num_chunks", hb_node_find(l, "loss_fn") ? 8 : 1);
    if (chunks > 1)
        hb_put_int(f, "loss.chunks", chunks);
}

static struct hb_node *section_of(struct hb_foreign *f, struct hb_node *map, const char *key)
{
    struct hb_node *inner = hb_node_find(map, key);
    if (!inner || inner->kind != HB_NODE_MAP) {
        inner = hb_node_new(f->arena, HB_NODE_MAP, map->loc);
        hb_node_put(map, key, map->loc, inner);
    }
    return inner;
}

/* --training.seq_len=4096 into its section. */
static struct hb_node *with_said(struct hb_foreign *f, const struct hb_node *root)
{
    struct hb_node *c = hb_node_copy(f->arena, root);
    for (const struct hb_node *n = f->said ? f->said->first : NULL; n; n = n->next) {
        const char *word = n->key;
        struct hb_node *map = c;
        for (const char *dot; (dot = strchr(word, '.')); word = dot + 1)
            map = section_of(f, map, hb_arena_strndup(f->arena, word, (size_t)(dot - word)));
        hb_node_put(map, word, n->key_loc, hb_node_copy(f->arena, n));
    }
    return c;
}

bool hb_import_titan(struct hb_foreign *f, const struct hb_node *root)
{
    struct hb_node *c = with_said(f, root);
    struct axes a;
    if (!put_model(f, c))
        return false;
    take_axes(f, c, &a);
    if (f->diag->errors)
        return false;
    put_mesh(f, c, &a);
    put_batch(f, c, &a);
    put_precision(f, c, &a);
    put_converted(f, c);
    put_optimizer(f, c);
    put_remat(f, c);
    put_compile(f, c);
    hb_put(f, "stack.form", "loop");
    hb_put(f, "hardware.device", hb_take_text(f, c, "device", "nvidia-h100"));
    if (!hb_node_find(c, "device"))
        hb_assume(f, "hardware.device nvidia-h100: no file says which; device=NAME does");
    hb_put(f, "compiler", "torch");
    hb_put(f, "runtime.framework", "torchtitan");
    hb_tell_rest(f, c, "", quiet);
    hb_tell_rest(f, hb_node_find(c, "training"), "training.", quiet_training);
    hb_tell_rest(f, hb_node_find(c, "parallelism"), "parallelism.", quiet_parallelism);
    hb_tell_rest(f, hb_node_find(c, "model"), "model.", quiet_model);
    return !f->diag->errors;
}
