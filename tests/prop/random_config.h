/* Random configurations that are valid: a list of KEY=VALUE as after --set, drawn so that most pass
 * the schema's checks; those that do not are drawn again. Words and switches come from the schema's
 * own table, so that a new one is drawn as soon as it is there; sizes are drawn here, because they
 * must divide one another. */
#ifndef HB_TESTS_RANDOM_CONFIG_H
#define HB_TESTS_RANDOM_CONFIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "base/size.h"
#include "models/schema.h"
#include "models/schema_key.h"
#include "models/support.h"

struct config {
    struct hb_arena *arena;
    struct hb_rng rng;
    const uint8_t *bytes; /* decide before rng does, one a draw: a fuzzer's */
    size_t byte_count;
    const char **sets;
    uint32_t count, cap;
    int64_t mesh[HB_AX_COUNT];
    int64_t expert_tensor;
    int64_t d_model;
    int64_t microbatches;
    int64_t chunk; /* layers of one chunk of the pipeline */
    int blocks;
    bool loop; /* every layer stands in the program: few of them */
    bool gpu;
};

/* In [low, high]. */
static inline int64_t draw(struct config *c, int64_t low, int64_t high)
{
    if (!c->byte_count)
        return hb_rng_range(&c->rng, low, high);
    c->byte_count--;
    return low + *c->bytes++ % (high - low + 1);
}

static inline int64_t pick(struct config *c, const int64_t *from, int count)
{
    return from[draw(c, 0, count - 1)];
}

#define PICK(c, ...)                                                                               \
    pick(c, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static inline bool chance(struct config *c, int percent)
{
    return draw(c, 0, 99) < percent;
}

static inline void put_text(struct config *c, const char *text)
{
    c->sets = hb_grow(c->arena, c->sets, c->count, &c->cap, sizeof *c->sets);
    c->sets[c->count++] = text;
}

static inline void put(struct config *c, const char *path, int64_t value)
{
    put_text(c, hb_arena_printf(c->arena, "%s=%lld", path, (long long)value));
}

static inline const char *in_block(struct config *c, int block, const char *key)
{
    return hb_arena_printf(c->arena, "model.blocks[%d].%s", block, key);
}

/* Keys of words that are drawn by hand or not simulated. */
static inline bool is_left_out(const char *path)
{
    static const char *const paths[] = {
        "compiler",    "precision.fp8", "precision.fp8_gather", "precision.fp8_params",
        "loss.kernel", "loss.kind",     "loss.reference",       "loss.entropy",
        "loss.value",  "remat.policy",  "pipeline.schedule"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strcmp(paths[i], path) == 0)
            return true;
    return strstr(path, "attention.kind") || strstr(path, "].pipelined");
}

/* Some of the section's words and switches. */
static inline void put_words(struct config *c, enum hb_section_id id, const char *prefix)
{
    const struct hb_section *s = hb_section(id);
    for (int i = 0; i < s->key_count; i++) {
        const struct hb_key *k = &s->keys[i];
        const char *path = hb_arena_printf(c->arena, "%s%s%s", prefix, *prefix ? "." : "", k->name);
        int words = 0;
        while (k->kind == HB_KEY_ENUM && k->words[words].text)
            words++;
        if ((k->kind != HB_KEY_BOOL && k->kind != HB_KEY_ENUM) || is_left_out(path) ||
            !chance(c, 35))
            continue;
        const char *value = draw(c, 0, 1) ? "true" : "false";
        if (k->kind == HB_KEY_ENUM)
            value = k->words[draw(c, 0, words - 1)].text;
        put_text(c, hb_arena_printf(c->arena, "%s=%s", path, value));
    }
}

static inline int64_t ways(const struct config *c, enum hb_axis a, enum hb_axis b)
{
    return c->mesh[a] * c->mesh[b];
}

static inline void put_mesh(struct config *c)
{
    static const char *const names[] = {"data", "fsdp", "tensor", "sequence", "expert", "pipeline"};
    int64_t product = 1;
    for (int a = 0; a < HB_AX_COUNT; a++) {
        c->mesh[a] = chance(c, 45) ? PICK(c, 2, 2, 3, 4, 8, 16, 64) : 1;
        if (product * c->mesh[a] > 4096)
            c->mesh[a] = 1;
        product *= c->mesh[a];
        if (c->mesh[a] > 1 || chance(c, 50))
            put(c, hb_arena_printf(c->arena, "mesh.%s", names[a]), c->mesh[a]);
    }
    if (product == 1)
        put(c, "mesh.data", 1); /* without a mesh there would be eight devices */
    if (chance(c, 20))
        put(c, "hardware.count", product);
    c->expert_tensor = c->mesh[HB_AX_TENSOR];
    if (chance(c, 25)) {
        c->expert_tensor = chance(c, 50) ? 1 : c->mesh[HB_AX_TENSOR];
        put(c, "sharding.expert_tensor", c->expert_tensor);
    }
}

static inline void put_hardware(struct config *c)
{
    static const char *const tpus[] = {"tpu-v5p", "tpu-v5e", "tpu-v6e"};
    static const char *const gpus[] = {"nvidia-h100", "amd-mi300x", "nvidia-a100-80gb",
                                       "nvidia-b200"};
    bool gpu = c->gpu = chance(c, 50);
    bool own = c->rng.state & 8; /* no draw of its own */
    put_text(c, own ? "compiler=xla" : gpu ? "compiler=xla-gpu" : "compiler=xla-tpu");
    put_text(c, hb_arena_printf(c->arena, "hardware.device=%s",
                                gpu ? gpus[draw(c, 0, 3)] : tpus[draw(c, 0, 2)]));
    if (chance(c, 10))
        put_text(c, "hardware.hbm=24GiB");
    if (chance(c, 10)) {
        put_text(c, "hardware.reserve=1GiB");
        put_text(c, "hardware.host_memory=512GiB");
        put_text(c, "hardware.host_reserve=2GiB");
        put_text(c, "force_compiler=true"); /* which changes nothing with the device's own */
    }
}

static inline void put_attention(struct config *c, int block, int64_t unit)
{
    int64_t step = ways(c, HB_AX_TENSOR, HB_AX_SEQUENCE);
    int64_t groups = PICK(c, 1, 2, 4, 5), heads = step * groups * PICK(c, 1, 2, 3);
    put_words(c, HB_SEC_ATTENTION, in_block(c, block, "attention"));
    put(c, in_block(c, block, "attention.heads"), heads);
    if (groups == 5)
        put(c, in_block(c, block, "attention.dq_parts"), heads / groups);
    if (chance(c, 20))
        put(c, in_block(c, block, "attention.block"), PICK(c, 64, 128, 1 << 30));
    if (chance(c, 15))
        put_text(c, in_block(c, block, "attention.softcap=50"));
    if (chance(c, 10))
        put_text(c, in_block(c, block, "attention.dropout=0.1"));
    if (chance(c, 25)) {
        const char *list = "128";
        for (int64_t u = 1; u < unit; u++)
            list = hb_arena_printf(c->arena, "%s, %d", list, (int)PICK(c, 0, 64, 4096));
        put_text(c, hb_arena_printf(c->arena, "%s=%s%s%s", in_block(c, block, "attention.window"),
                                    unit > 1 ? "[" : "", list, unit > 1 ? "]" : ""));
    }
    if (chance(c, 20)) {
        put_text(c, in_block(c, block, "attention.kind=mla"));
        put(c, in_block(c, block, "attention.q_lora_rank"), PICK(c, 0, 96, 1536));
        put(c, in_block(c, block, "attention.kv_lora_rank"), PICK(c, 64, 512));
        put(c, in_block(c, block, "attention.qk_nope_head_dim"), PICK(c, 64, 128));
        put(c, in_block(c, block, "attention.qk_rope_head_dim"), PICK(c, 0, 32, 64));
        put(c, in_block(c, block, "attention.v_head_dim"), PICK(c, 64, 128, 192));
        return;
    }
    if (chance(c, 10))
        put_text(c,
                 in_block(c, block, chance(c, 50) ? "attention.kind=none" : "attention.kind=gqa"));
    if (chance(c, 60))
        put(c, in_block(c, block, "attention.kv_heads"), chance(c, 50) ? groups : 1);
    if (c->d_model % heads || chance(c, 60))
        put(c, in_block(c, block, "attention.head_dim"), PICK(c, 32, 64, 80, 128, 256));
}

static inline void put_moe(struct config *c, int block)
{
    int64_t tensor = c->mesh[HB_AX_TENSOR];
    int64_t experts = c->mesh[HB_AX_EXPERT] * (tensor / c->expert_tensor) * PICK(c, 1, 2, 3, 8);
    int64_t most = experts < 8 ? experts : 8;
    put_words(c, HB_SEC_MOE, in_block(c, block, "moe"));
    put(c, in_block(c, block, "moe.experts"), experts);
    put(c, in_block(c, block, "moe.top_k"), draw(c, 1, most));
    put(c, in_block(c, block, "moe.d_ff"), tensor * PICK(c, 24, 96, 128, 512));
    if (chance(c, 40)) {
        put(c, in_block(c, block, "moe.shared_experts"), PICK(c, 1, 2));
        if (chance(c, 50))
            put(c, in_block(c, block, "moe.shared_d_ff"), tensor * PICK(c, 64, 200));
    }
    if (chance(c, 30))
        put_text(c, in_block(c, block, "moe.capacity_factor=2"));
    if (chance(c, 30))
        put_text(c, in_block(c, block, "moe.buffer_factor=1.5"));
}

/* Layers of a block: in a pipeline each chunk has the same whole number of scan steps. */
static inline int64_t layer_count(struct config *c, bool pipelined, int64_t repeats, int64_t unit)
{
    int64_t steps = c->loop ? PICK(c, 1, 2, 3) : PICK(c, 1, 2, 3, 4, 7, 12, 16, 32, 80);
    if (pipelined)
        c->chunk = steps * unit;
    return steps * unit * (pipelined ? c->mesh[HB_AX_PIPELINE] * repeats : 1);
}

static inline void put_block(struct config *c, int block, int pipelined, int64_t repeats)
{
    int64_t unit = chance(c, 20) ? PICK(c, 2, 3) : 1;
    bool inside = c->mesh[HB_AX_PIPELINE] > 1 && block == pipelined;
    put_words(c, HB_SEC_BLOCK, hb_arena_printf(c->arena, "model.blocks[%d]", block));
    if (unit > 1)
        put(c, in_block(c, block, "unit"), unit);
    put(c, in_block(c, block, "repeat"), layer_count(c, inside, repeats, unit));
    if ((c->mesh[HB_AX_PIPELINE] > 1 && !inside) || chance(c, 5))
        put_text(c, in_block(c, block, inside ? "pipelined=true" : "pipelined=false"));
    if (chance(c, 30))
        put_text(c, hb_arena_printf(c->arena, "model.blocks[%d].name=part%d", block, block));
    if (chance(c, 10))
        put_text(c, in_block(c, block, "dropout=0.1"));
    put_attention(c, block, unit);
    if (chance(c, 40)) {
        put_moe(c, block);
        return;
    }
    put_words(c, HB_SEC_MLP, in_block(c, block, "mlp"));
    put(c, in_block(c, block, "mlp.d_ff"), c->mesh[HB_AX_TENSOR] * PICK(c, 64, 172, 512, 1376));
}

static inline void put_model(struct config *c, int64_t repeats)
{
    c->d_model = PICK(c, 64, 96, 128, 256, 512, 1024, 2048, 4096);
    c->blocks = chance(c, 30) ? (int)PICK(c, 2, 3) : 1;
    put(c, "model.d_model", c->d_model);
    put(c, "model.vocab", PICK(c, 1000, 32000, 50257, 128256));
    if (chance(c, 20))
        put_text(c, "model.tied_embeddings=true");
    if (chance(c, 15))
        put(c, "model.positions", PICK(c, 1024, 8192));
    if (chance(c, 20))
        put_text(c, "model.name=drawn");
    static const char *const empty[] = {"[{}]", "[{}, {}]", "[{}, {}, {}]"};
    put_text(c, hb_arena_printf(c->arena, "model.blocks=%s", empty[c->blocks - 1]));
    int pipelined = (int)draw(c, 0, c->blocks - 1);
    for (int b = 0; b < c->blocks; b++)
        put_block(c, b, pipelined, repeats);
}

/* Names of tensors, each with some chance, none of those in `not`. */
static inline const char *draw_names(struct config *c, int percent, uint32_t not, uint32_t *out)
{
    static const char *const names[] = {
#define HB_ENUM(name, text) text,
        HB_LAYER_TENSORS(HB_ENUM)
#undef HB_ENUM
    };
    const char *list = "";
    *out = 0;
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((not >> i & 1) || !chance(c, percent))
            continue;
        *out |= 1u << i;
        list = hb_arena_printf(c->arena, "%s%s%s", list, *list ? ", " : "", names[i]);
    }
    return list;
}

static inline void put_policy(struct config *c, const char *prefix)
{
    static const char *const plain[] = {"none", "full", "dots", "dots_no_batch"};
    uint32_t save, offload;
    if (!chance(c, 45)) {
        int which = (int)draw(c, 0, 3);
        put_text(c, hb_arena_printf(c->arena, "%s.policy=%s", prefix, plain[which]));
        if (which > 0 && chance(c, 20))
            put_text(c, hb_arena_printf(c->arena, "%s.offload=[layer_in]", prefix));
        return;
    }
    put_text(c, hb_arena_printf(c->arena, "%s.policy=names", prefix));
    const char *list = draw_names(c, 30, 0, &save);
    put_text(c, hb_arena_printf(c->arena, "%s.save=[%s]", prefix, list));
    list = draw_names(c, 15, save, &offload);
    if (chance(c, 50))
        put_text(c, hb_arena_printf(c->arena, "%s.offload=[%s]", prefix, list));
}

static inline void put_modules(struct config *c)
{
    static const char *const lists[] = {"core_attn, mla_up_proj", "mlp, moe", "moe_act, layernorm"};
    put_text(c, "remat.policy=none");
    put_text(c, hb_arena_printf(c->arena, "remat.modules=[%s]", lists[draw(c, 0, 2)]));
}

static inline void put_remat(struct config *c)
{
    put_words(c, HB_SEC_REMAT, "remat");
    if (chance(c, 70))
        put_policy(c, "remat");
    else if (chance(c, 30))
        put_modules(c);
    if (chance(c, 10)) {
        put(c, "remat.every", 2);
        put_text(c, "remat.budget=1"); /* less is torch's */
    }
    for (int b = 0; b < c->blocks; b++)
        if (chance(c, 15)) {
            put_text(c, hb_arena_printf(c->arena, "model.blocks[%d].name=own%d", b, b));
            put_policy(c, hb_arena_printf(c->arena, "remat.per_block.own%d", b));
        }
}

static inline void put_batch(struct config *c)
{
    int64_t accumulate = chance(c, 25) ? PICK(c, 2, 4) : 1;
    int64_t global = c->mesh[HB_AX_DATA] * ways(c, HB_AX_FSDP, HB_AX_EXPERT) * accumulate;
    if (c->mesh[HB_AX_PIPELINE] > 1)
        global *= c->microbatches;
    put(c, "batch.global", global * PICK(c, 1, 1, 2, 3, 4));
    put(c, "batch.seq",
        ways(c, HB_AX_TENSOR, HB_AX_SEQUENCE) * PICK(c, 64, 96, 128, 256, 512, 2048));
    if (accumulate > 1 || chance(c, 10))
        put(c, "batch.accumulate", accumulate);
    put_words(c, HB_SEC_LOSS, "loss");
    if (chance(c, 25))
        put(c, "loss.chunks", PICK(c, 2, 4, 8, 16));
    if (chance(c, 10))
        put_text(c, "loss.softcap=30");
}

static inline void put_optimizer(struct config *c)
{
    static const struct {
        const char *name;
        int moments;
    } rules[] = {{"sgd", 0},       {"momentum", 1}, {"adamw", 2},    {"lion", 1},
                 {"adafactor", 0}, {"muon", 1},     {"adafactor", 1}};
    static const char *const dtypes[] = {"f32", "bf16", "f16", "f64", "q8", "q4"};
    put_words(c, HB_SEC_OPTIMIZER, "optimizer");
    if (!chance(c, 70))
        return;
    int which = (int)draw(c, 0, 6);
    put_text(c, hb_arena_printf(c->arena, "optimizer.name=%s", rules[which].name));
    const char *list = "";
    for (int i = 0; i < rules[which].moments; i++)
        list = hb_arena_printf(c->arena, "%s%s%s", list, i ? ", " : "", dtypes[draw(c, 0, 5)]);
    put_text(c, hb_arena_printf(c->arena, "optimizer.moments=[%s]", list));
}

/* Chunks are even; here they are counted out. Only where the number of layers is known. */
static inline void put_chunks(struct config *c, int64_t repeats)
{
    const char *list = "";
    for (int64_t i = 0; i < c->mesh[HB_AX_PIPELINE] * repeats; i++)
        list = hb_arena_printf(c->arena, "%s%s%lld", list, i ? ", " : "", (long long)c->chunk);
    put_text(c, hb_arena_printf(c->arena, "pipeline.layers=[%s]", list));
}

static inline void put_pipeline(struct config *c, int64_t repeats)
{
    static const char *const kept[] = {"", "layer_in", "iter_in", "iter_in, layer_in"};
    int64_t stages = c->mesh[HB_AX_PIPELINE];
    put_words(c, HB_SEC_PIPELINE, "pipeline");
    put(c, "pipeline.microbatches", c->microbatches);
    if (repeats > 1)
        put(c, "pipeline.repeats", repeats);
    if (chance(c, 60))
        put_text(c, hb_arena_printf(c->arena, "pipeline.iteration_save=[%s]", kept[draw(c, 0, 3)]));
    if (chance(c, 10))
        put(c, "pipeline.group", draw(c, 0, 8));
    if (stages == 1 && chance(c, 20))
        put_text(c, "pipeline.schedule=spmd");
    if (stages > 1 && chance(c, 15))
        put_chunks(c, repeats);
    if (chance(c, 10))
        put(c, "pipeline.rank", draw(c, 0, stages - 1));
    if (stages == 1 && chance(c, 20))
        put_text(c, chance(c, 50) ? "pipeline.schedule=gpipe" : "pipeline.schedule=1f1b");
    if (stages == 1 && chance(c, 20))
        put_text(c,
                 chance(c, 50) ? "pipeline.schedule=interleaved" : "pipeline.schedule=zero_bubble");
    if (stages == 1 && chance(c, 20))
        put_text(c, chance(c, 50) ? "pipeline.schedule=zbv" : "pipeline.schedule=dualpipe_v");
}

static inline void put_stack(struct config *c)
{
    static const char *const forms[] = {"scan", "nested"};
    const char *form = forms[0];
    if (c->loop || chance(c, 50)) {
        form = c->loop ? "loop" : forms[draw(c, 0, 1)];
        put_text(c, hb_arena_printf(c->arena, "stack.form=%s", form));
    }
    if (chance(c, 10))
        put(c, "stack.outer", PICK(c, 1, 2, 4));
    if (chance(c, 15)) {
        int64_t unroll = PICK(c, 2, 4);
        if (form != forms[1]) /* of nested scans not simulated */
            put(c, "stack.unroll", unroll);
    }
    if (chance(c, 10))
        put(c, "stack.axis", PICK(c, 1, 2));
    if (chance(c, 40))
        put_text(c, chance(c, 50) ? "runtime.framework=jax" : "runtime.framework=maxtext");
}

static inline void put_load(struct config *c)
{
    static const char *const methods[] = {"sharded", "device_put", "callback"};
    put_text(c, hb_arena_printf(c->arena, "load.method=%s", methods[draw(c, 0, 2)]));
    put(c, "load.processes", PICK(c, 1, 2, 16));
    if (chance(c, 30))
        put_text(c, "load.largest_array=1GiB");
}

/* One draw, valid or not. */
static inline void draw_sets(struct config *c)
{
    c->count = 0;
    c->loop = chance(c, 20);
    put_mesh(c);
    int64_t stages = c->mesh[HB_AX_PIPELINE];
    int64_t repeats = stages > 1 && chance(c, 40) ? PICK(c, 2, 3) : 1;
    c->microbatches = repeats > 1 ? stages * PICK(c, 1, 2) : PICK(c, 1, 2, 4, 8);
    put_hardware(c);
    put_words(c, HB_SEC_SHARDING, "sharding");
    put_model(c, repeats);
    put_words(c, HB_SEC_PRECISION, "precision");
    put_batch(c);
    put_optimizer(c);
    put_stack(c);
    put_remat(c);
    put_words(c, HB_SEC_EMBEDDING, "embedding");
    put_words(c, HB_SEC_STEP, "step");
    if (stages > 1 || chance(c, 20))
        put_pipeline(c, repeats);
    if (chance(c, 15))
        put_load(c);
    if (stages == 1 && chance(c, 10))
        put(c, "model.mtp", PICK(c, 1, 2));
    else if (stages == 1 && !c->gpu && chance(c, 12)) /* of experts with dispatch: ragged alone */
        put_text(c, draw(c, 0, 1) ? "precision.fp8=rowwise" : "precision.fp8=tensorwise");
}

/* What the sets say, read as any file is; false where it is not valid. why: of the first error. */
static inline bool read_sets(struct hb_arena *arena, const char *const *sets, uint32_t count,
                             struct hb_spec *out, const char **why)
{
    struct hb_diag diag;
    hb_diag_init(&diag, arena);
    struct hb_node *root = hb_node_new(arena, HB_NODE_MAP, (struct hb_loc){0});
    bool ok = true;
    for (uint32_t i = 0; i < count && ok; i++)
        ok = hb_schema_set(arena, &diag, root, sets[i]);
    ok = ok && hb_schema_from_node(arena, &diag, root, HB_SOURCE_DIR, out) &&
         hb_spec_supported(&diag, NULL, out);
    *why = ok ? "" : diag.entries[0].text;
    return ok;
}

enum { CONFIG_DRAWS = 200 };

/* A valid one; returns how many draws it took. */
static inline int random_config(struct hb_arena *arena, uint64_t seed, struct config *c,
                                struct hb_spec *out)
{
    const char *why = "";
    *c = (struct config){.arena = arena, .rng = hb_rng_seed(seed)};
    for (int draws = 1; draws <= CONFIG_DRAWS; draws++) {
        draw_sets(c);
        if (read_sets(arena, c->sets, c->count, out, &why))
            return draws;
        if (getenv("HB_SHOW_REJECTED"))
            fprintf(stderr, "# rejected: %s\n", why);
    }
    fprintf(stderr, "# seed %llu: %d draws, none valid: %s\n", (unsigned long long)seed,
            CONFIG_DRAWS, why);
    abort();
}

#endif
