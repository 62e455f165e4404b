/* Random configurations over the model zoo, for the planner's property tests: a card, a device,
 * a mesh that it admits, and random settings. Seeded. */
#ifndef HB_TESTS_ZOO_SPECS_H
#define HB_TESTS_ZOO_SPECS_H

#include "base/file.h"
#include "base/rng.h"
#include "base/yaml.h"
#include "models/schema.h"
#include "models/support.h"
#include "sim/engine/run.h"
#include "sim/graph/link.h"
#include "solver/segment.h"
#include "tests/unit/unit.h"

static inline int64_t pick(struct hb_rng *rng, const int64_t *from, int count)
{
    return from[hb_rng_range(rng, 0, count - 1)];
}

static inline bool chance(struct hb_rng *rng, int percent)
{
    return hb_rng_range(rng, 1, 100) <= percent;
}

/* What is drawn from. */
struct zoo_draw {
    const char *const *names;
    int count;
    const char *device; /* null: any */
    bool pipelines;
};

/* One try: the text of a configuration, as YAML. */
static inline const char *zoo_text(struct hb_arena *arena, struct hb_rng *rng,
                                   const struct zoo_draw *draw)
{
    static const int64_t small[] = {1, 1, 1, 2, 4, 8}, wide[] = {1, 2, 4, 8, 16, 64, 128};
    static const char *const devices[] = {"tpu-v5e",     "tpu-v5p",    "tpu-v6e",
                                          "nvidia-h100", "amd-mi300x", "nvidia-b200"};
    const char *device = draw->device ? draw->device : devices[hb_rng_range(rng, 0, 5)];
    int64_t data = pick(rng, small, 6), fsdp = pick(rng, wide, 7), tensor = pick(rng, small, 6);
    int64_t sequence = pick(rng, small, 5), expert = pick(rng, small, 6);
    int64_t ranks = data * fsdp * expert, accumulate = pick(rng, small, 5);
    int64_t pipeline = draw->pipelines && chance(rng, 15) ? pick(rng, small + 3, 2) : 1;
    bool nested = chance(rng, 25), narrow = chance(rng, 20);
    struct hb_str s;
    hb_str_init(&s, arena);
    hb_str_addf(&s, "model: {preset: %s}\n", draw->names[hb_rng_range(rng, 0, draw->count - 1)]);
    hb_str_addf(&s, "batch: {global: %lld, seq: %lld, accumulate: %lld}\n",
                (long long)(ranks * accumulate * pipeline * hb_rng_range(rng, 1, 4)),
                (long long)(1024 << hb_rng_range(rng, 0, 3)), (long long)accumulate);
    hb_str_addf(&s, "mesh: {data: %lld, fsdp: %lld, tensor: %lld, sequence: %lld, expert: %lld",
                (long long)data, (long long)fsdp, (long long)tensor, (long long)sequence,
                (long long)expert);
    hb_str_addf(&s, ", pipeline: %lld}\n", (long long)pipeline);
    hb_str_addf(&s, "hardware: {device: %s, count: %lld}\ncompiler: %s\n", device,
                (long long)(data * fsdp * tensor * sequence * expert * pipeline),
                strncmp(device, "tpu", 3) == 0 ? "xla-tpu" : "xla-gpu");
    if (pipeline > 1)
        hb_str_addf(&s, "pipeline: {microbatches: %lld}\n", (long long)pipeline);
    hb_str_addf(&s, "stack: {form: %s}\n", nested ? "nested" : "scan");
    hb_str_addf(&s, "loss: {chunks: %d}\n", 1 << hb_rng_range(rng, 0, 3));
    hb_str_addf(&s, "optimizer: {offload: %s, clip: %s}\n",
                chance(rng, 25) ? "pinned_host" : "none", chance(rng, 25) ? "true" : "false");
    hb_str_addf(&s, "sharding: {residual_over_tensor: %s, optimizer_over_data: %s}\n",
                chance(rng, 30) ? "true" : "false", chance(rng, 20) ? "true" : "false");
    hb_str_addf(&s, "step: {cast: %s}\nprecision: {params: %s}\n",
                chance(rng, 20) ? "upfront" : "in_layer", narrow ? "bf16" : "f32");
    return s.text;
}

/* The next that reads and can be simulated; its text, for messages. */
static inline const char *read_zoo(struct hb_arena *arena, struct hb_rng *rng,
                                   const struct zoo_draw *draw, struct hb_spec *out)
{
    for (;;) {
        struct hb_diag diag;
        struct hb_node *root;
        hb_diag_init(&diag, arena);
        const char *text = zoo_text(arena, rng, draw);
        if (hb_yaml_parse(arena, &diag, "random", text, strlen(text), &root) &&
            hb_schema_from_node(arena, &diag, root, HB_SOURCE_DIR, out) &&
            hb_spec_supported(&diag, NULL, out))
            return text;
    }
}

/* Of any model of the zoo. */
static inline const char *zoo_spec(struct hb_arena *arena, struct hb_rng *rng, struct hb_spec *out)
{
    int count = 0;
    const char *const *names = hb_file_list(arena, HB_SOURCE_DIR "/models/zoo", ".yaml");
    while (names[count])
        count++;
    const struct zoo_draw draw = {names, count, NULL, false};
    return read_zoo(arena, rng, &draw, out);
}

/* A random policy for a block. */
static inline struct hb_remat zoo_remat(struct hb_rng *rng)
{
    struct hb_remat r = {.policy = (enum hb_policy)hb_rng_range(rng, 0, 4)};
    uint32_t any = (1u << HB_TN_ITER_IN) - 1;
    if (r.policy != HB_POLICY_NAMES)
        return r;
    r.save = (hb_rng_next(rng) | hb_rng_next(rng)) & any;
    if (chance(rng, 50))
        r.offload = hb_rng_next(rng) & hb_rng_next(rng) & any;
    r.save &= ~r.offload;
    return r;
}

/* So many of them for each block. */
static inline struct hb_menu *zoo_menus(struct hb_arena *arena, struct hb_rng *rng,
                                        const struct hb_model *model, uint32_t policies)
{
    struct hb_menu *menus = hb_arena_alloc(arena, (size_t)model->block_count, sizeof *menus);
    for (int i = 0; i < model->block_count; i++) {
        struct hb_remat *r = hb_arena_alloc(arena, policies, sizeof *r);
        for (uint32_t k = 0; k < policies; k++)
            r[k] = zoo_remat(rng);
        menus[i] = (struct hb_menu){r, policies};
    }
    return menus;
}

/* Memory about what the step takes, so that some policies are beyond what XLA:GPU leaves a step,
 * others not: those it makes otherwise. False: it is not lowered. */
static inline bool draw_memory_about(struct hb_arena *arena, struct hb_rng *rng,
                                     struct hb_spec *spec)
{
    struct hb_arena_mark mark = hb_arena_mark(arena);
    struct hb_diag diag;
    struct hb_program p;
    struct hb_memory m;
    hb_diag_init(&diag, arena);
    bool lowered = hb_link_lower(arena, &diag, spec, &p);
    if (lowered)
        hb_run_memory_live(arena, &p, &m);
    hb_arena_rewind(arena, mark);
    if (lowered && spec->compiler == HB_XLA_GPU && spec->share == HB_SHARE_ASKED)
        spec->hardware.memory_bytes = m.peak_bytes / 100 * hb_rng_range(rng, 30, 250);
    return lowered;
}

#endif
