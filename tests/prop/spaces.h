/* Random small spaces for the planner's property tests: a model of each kind that the zoo has, in
 * few narrow layers, on a device of each family, and a search over a few cells of it. Seeded. */
#ifndef HB_TESTS_SPACES_H
#define HB_TESTS_SPACES_H

#include "tests/prop/zoo_specs.h"

#include "hw/device.h"
#include "solver/plan.h"

enum space_kind {
    SPACE_DENSE,
    SPACE_WINDOWS,
    SPACE_TIED,
    SPACE_MLA,
    SPACE_RAGGED,
    SPACE_EINSUM,
    SPACE_ALLGATHER,
    SPACE_ALL_EXPERTS,
    SPACE_MIXED,
    SPACE_KINDS
};
static const char *const space_kind_names[SPACE_KINDS] = {
    "dense", "windows", "tied", "mla", "ragged", "einsum", "allgather", "all experts", "mixed"};
static const char *const space_devices[] = {"tpu-v5e",     "tpu-v5p",    "tpu-v6e",
                                            "nvidia-h100", "amd-mi300x", "nvidia-b200"};
enum { SPACE_DEVICES = sizeof space_devices / sizeof space_devices[0] };

struct space {
    const char *text;
    enum space_kind kind;
    int device_index;
    struct hb_spec spec;
    struct hb_device device;
};

static inline bool space_has_experts(enum space_kind kind)
{
    return kind >= SPACE_RAGGED;
}

static inline void add_attention(struct hb_str *s, enum space_kind kind, long long heads,
                                 struct hb_rng *rng)
{
    if (kind == SPACE_MLA)
        hb_str_addf(s,
                    "attention: {kind: mla, heads: %lld, q_lora_rank: %d, kv_lora_rank: 128, "
                    "qk_nope_head_dim: 64, qk_rope_head_dim: 32, v_head_dim: 64}",
                    heads, chance(rng, 50) ? 192 : 0);
    else
        hb_str_addf(s, "attention: {heads: %lld, kv_heads: %lld%s%s}", heads,
                    chance(rng, 60) ? heads / 2 : heads,
                    kind == SPACE_WINDOWS ? ", window: [256, 0]" : "",
                    chance(rng, 15) ? ", fused_qkv: true" : "");
}

static inline void add_moe(struct hb_str *s, enum space_kind kind, struct hb_rng *rng)
{
    static const char *const dispatch[SPACE_KINDS] = {
        [SPACE_EINSUM] = "einsum", [SPACE_ALLGATHER] = "allgather", [SPACE_ALL_EXPERTS] = "dense"};
    hb_str_addf(s, "moe: {experts: 4, top_k: 2, d_ff: %d%s%s%s}", chance(rng, 50) ? 512 : 1024,
                dispatch[kind] ? ", dispatch: " : "", dispatch[kind] ? dispatch[kind] : "",
                kind == SPACE_MIXED ? ", shared_experts: 1" : "");
}

static inline void add_model(struct hb_str *s, enum space_kind kind, struct hb_rng *rng)
{
    long long heads = 1ll << hb_rng_range(rng, 1, 3), unit = kind == SPACE_WINDOWS ? 2 : 1;
    hb_str_addf(s, "model:\n  d_model: %lld\n  vocab: %lld\n  tied_embeddings: %s\n  blocks:\n",
                heads * 64 * (long long)hb_rng_range(rng, 1, 4),
                (long long)(1024 * hb_rng_range(rng, 1, 16)),
                kind == SPACE_TIED ? "true" : "false");
    if (kind == SPACE_MIXED) {
        hb_str_addf(s, "    - {name: first, repeat: %d, ", chance(rng, 50) ? 1 : 2);
        add_attention(s, kind, heads, rng);
        hb_str_add(s, ", mlp: {d_ff: 1024}}\n");
    }
    hb_str_addf(s, "    - {name: main, repeat: %lld, unit: %lld, %s",
                unit * (long long)hb_rng_range(rng, 2, 5), unit,
                chance(rng, 20) ? "post_norm: true, " : "");
    add_attention(s, kind, heads, rng);
    hb_str_add(s, ", ");
    if (space_has_experts(kind))
        add_moe(s, kind, rng);
    else
        hb_str_addf(s, "mlp: {d_ff: 2048%s}", chance(rng, 25) ? ", kind: gelu, bias: true" : "");
    hb_str_add(s, "}\n");
}

static inline void add_search(struct hb_str *s, enum space_kind kind, struct hb_rng *rng)
{
    hb_str_add(s, "  search: {remat: true");
    if (chance(rng, 60))
        hb_str_addf(s, ", mesh: [fsdp, tensor, %s]",
                    space_has_experts(kind) && chance(rng, 50) ? "expert"
                    : chance(rng, 50)                          ? "pipeline"
                                                               : "data");
    if (chance(rng, 30))
        hb_str_add(s, ", stack: [scan, nested]");
    if (chance(rng, 30))
        hb_str_add(s, ", optimizer_offload: [none, pinned_host]");
    if (chance(rng, 30))
        hb_str_add(s, ", loss_chunks: [1, 4]");
    if (chance(rng, 40))
        hb_str_add(s, ", batch: {accumulate: [1, 2]}");
    hb_str_add(s, "}\n");
}

/* One try: false where it cannot be read or is not simulated. */
static inline bool draw_space(struct hb_arena *arena, struct hb_rng *rng, struct space *out)
{
    static const char *const objectives[] = {"tokens_per_second", "step_time", "memory"};
    long long count = 1ll << hb_rng_range(rng, 0, 3);
    struct hb_str s;
    struct hb_diag diag;
    struct hb_node *root;
    hb_str_init(&s, arena);
    hb_diag_init(&diag, arena);
    out->kind = (enum space_kind)hb_rng_range(rng, 0, SPACE_KINDS - 1);
    out->device_index = (int)hb_rng_range(rng, 0, SPACE_DEVICES - 1);
    const char *device = space_devices[out->device_index];
    add_model(&s, out->kind, rng);
    hb_str_addf(&s, "batch: {global: %lld, seq: %lld}\nmesh: {fsdp: %lld}\n", count * 8,
                256ll << hb_rng_range(rng, 0, 3), count);
    hb_str_addf(&s, "hardware: {device: %s, count: %lld}\ncompiler: %s\n", device, count,
                strncmp(device, "tpu", 3) == 0 ? "xla-tpu" : "xla-gpu");
    hb_str_addf(&s, "step: {cast: %s}\noptimizer: {clip: %s}\nplan:\n  objective: %s\n",
                chance(rng, 20) ? "upfront" : "in_layer", chance(rng, 25) ? "true" : "false",
                objectives[hb_rng_range(rng, 0, 2)]);
    add_search(&s, out->kind, rng);
    out->text = s.text;
    return hb_yaml_parse(arena, &diag, "random", s.text, strlen(s.text), &root) &&
           hb_schema_from_node(arena, &diag, root, HB_SOURCE_DIR, &out->spec) &&
           hb_spec_supported(&diag, NULL, &out->spec) &&
           hb_device_load(arena, &diag, HB_SOURCE_DIR, device, (struct hb_loc){0}, &out->device);
}

/* A budget between what the leanest and what the fastest configuration take. */
static inline int64_t random_budget(struct hb_arena *arena, struct hb_rng *rng,
                                    struct hb_plan_ask ask)
{
    struct hb_plan least, fastest;
    ask.budget_bytes = INT64_MAX;
    ask.objective = HB_OBJ_MEMORY;
    assert_true(hb_plan_find(arena, &ask, &least));
    ask.objective = HB_OBJ_STEP_TIME;
    assert_true(hb_plan_find(arena, &ask, &fastest));
    int64_t low = least.best.peak_bytes - least.best.peak_bytes / 50;
    int64_t high = fastest.best.peak_bytes > low ? fastest.best.peak_bytes : low;
    return hb_rng_range(rng, low, high);
}

/* XLA:GPU's memory such that some steps about the budget are beyond what it leaves a step, 0.76 of
 * the memory: those are made otherwise than they are written. The smallest peak is not asked so. */
static inline void draw_memory(struct hb_rng *rng, struct hb_spec *spec, int64_t budget_bytes)
{
    bool asks = spec->compiler == HB_XLA_GPU && spec->plan.objective != HB_OBJ_MEMORY;
    if (asks && chance(rng, 60))
        spec->hardware.memory_bytes = budget_bytes / 76 * hb_rng_range(rng, 60, 140);
}

#endif
