/* For the tests of sim/ir/lower: a text with some keys set, as a program and its memory, and where
 * its buffers and ops are found by their names. A buffer's life is read off the positions of the
 * ops that write and read it. */
#ifndef HB_TESTS_UNIT_LOWERED_H
#define HB_TESTS_UNIT_LOWERED_H

#include "tests/unit/each.h"

#include "base/yaml.h"
#include "models/schema.h"
#include "models/support.h"
#include "sim/engine/run.h"
#include "sim/graph/link.h"

#define TPU  "compiler=xla-tpu"
#define CUDA "compiler=xla-gpu", "hardware.device=nvidia-h100"
#define ROCM "compiler=xla-gpu", "hardware.device=amd-mi300x"

struct low {
    struct hb_spec spec;
    struct hb_program p;
    struct hb_memory m;
};

/* text with sets, a list that ends with null. */
static inline struct low lower_text(const char *text, const char *const *sets)
{
    struct low l;
    struct hb_node *root;
    assert_true(hb_yaml_parse(u.env.arena, &u.diag, "base", text, strlen(text), &root));
    for (; *sets; sets++)
        assert_true(hb_schema_set(u.env.arena, &u.diag, root, *sets));
    bool ok = hb_schema_from_node(u.env.arena, &u.diag, root, HB_SOURCE_DIR, &l.spec) &&
              hb_spec_supported(&u.diag, NULL, &l.spec);
    if (!ok)
        fail_msg("%s", u.diag.entries[0].text);
    assert_true(hb_link_lower(u.env.arena, &u.diag, &l.spec, &l.p));
    hb_run_memory(u.env.arena, &l.p, &l.m);
    return l;
}

/* Steps of four layers on one device, and of eight in a pipeline of four stages; mlp: the line of
 * their MLP or experts. */
#define LAYERS_OF(repeat, mlp)                                                                     \
    "model:\n"                                                                                     \
    "  d_model: 1024\n"                                                                            \
    "  vocab: 32000\n"                                                                             \
    "  blocks:\n"                                                                                  \
    "    - name: block\n"                                                                          \
    "      attention: {heads: 8, kv_heads: 8, head_dim: 128}\n"                                    \
    "      repeat: " repeat "\n"                                                                   \
    "      " mlp "\n"
#define FOUR_LAYERS(mlp)                                                                           \
    LAYERS_OF("4", mlp)                                                                            \
    "batch: {global: 8, seq: 2048}\n"                                                              \
    "mesh: {data: 1}\n"
#define FOUR_STAGES(mlp)                                                                           \
    LAYERS_OF("8", mlp)                                                                            \
    "      pipelined: true\n"                                                                      \
    "batch: {global: 32, seq: 2048}\n"                                                             \
    "mesh: {pipeline: 4}\n"
#define DENSE_MLP  "mlp: {d_ff: 2816}"
#define MOE_EINSUM "moe: {experts: 8, top_k: 2, d_ff: 1408, dispatch: einsum}"
#define ON_V5P     "hardware: {device: tpu-v5p}\ncompiler: xla-tpu\n"
#define TPU_DENSE  FOUR_LAYERS(DENSE_MLP) ON_V5P
#define TPU_STAGES FOUR_STAGES(DENSE_MLP) ON_V5P "pipeline: {microbatches: 8}\n"
/* Stages of experts, unrolled. */
#define GPU_STAGES                                                                                 \
    FOUR_STAGES(MOE_EINSUM)                                                                        \
    "stack: {form: loop}\n"                                                                        \
    "pipeline: {microbatches: 4, remat_iteration: true,\n"                                         \
    "           remat_layer: false, iteration_save: [iter_in]}\n"

/* The first buffer of its own with this text in its name; HB_NONE: none. */
static inline uint32_t find(const struct low *l, const char *text)
{
    for (uint32_t i = 0; i < l->p.buf_count; i++)
        if (l->p.bufs[i].alias_of == HB_NONE && strstr(l->p.bufs[i].name, text))
            return i;
    return HB_NONE;
}

/* The same; fails where there is none. */
static inline const struct hb_buf *buf_of(const struct low *l, const char *text)
{
    uint32_t b = find(l, text);
    if (b == HB_NONE)
        fail_msg("no buffer is named '%s'", text);
    return &l->p.bufs[b];
}

static inline int64_t bytes_of(const struct low *l, const char *text)
{
    return buf_of(l, text)->plain_bytes;
}

/* The first op of this name or, where none is called so, with this text in it; fails where there is
 * none. */
static inline uint32_t find_op(const struct low *l, const char *text)
{
    for (uint32_t i = 0; i < l->p.op_count; i++)
        if (strcmp(l->p.ops[i].name, text) == 0)
            return i;
    for (uint32_t i = 0; i < l->p.op_count; i++)
        if (strstr(l->p.ops[i].name, text))
            return i;
    fail_msg("no op is named '%s'", text);
    return HB_NONE;
}

/* The last one; fails where there is none. */
static inline uint32_t find_last_op(const struct low *l, const char *text)
{
    uint32_t last = find_op(l, text);
    for (uint32_t i = last; i < l->p.op_count; i++)
        if (strstr(l->p.ops[i].name, text))
            last = i;
    return last;
}

/* The first and the last op that name the buffer or what lies in its place. */
static inline void life(const struct low *l, uint32_t buf, uint32_t *out_first, uint32_t *out_last)
{
    *out_first = HB_NONE;
    *out_last = 0;
    for (uint32_t i = 0; i < l->p.op_count; i++) {
        const struct hb_op *op = &l->p.ops[i];
        for (uint32_t k = 0; k < op->read_count + op->write_count; k++) {
            if (hb_program_root(&l->p, l->p.refs[op->refs_at + k]) != buf)
                continue;
            *out_first = *out_first == HB_NONE ? i : *out_first;
            *out_last = i;
        }
    }
}

/* Whether the first buffer of that name is alive at the op. */
static inline bool lives_at(const struct low *l, const char *buffer, const char *op)
{
    uint32_t at = find_op(l, op), first, last;
    life(l, (uint32_t)(buf_of(l, buffer) - l->p.bufs), &first, &last);
    return first <= at && at <= last;
}

/* Bytes of what waits for the backward pass in a space. */
static inline int64_t saved(const struct low *l, enum hb_space space)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < l->p.buf_count; i++)
        if (l->p.bufs[i].category == HB_CAT_SAVED && l->p.bufs[i].space == space)
            sum += l->p.bufs[i].plain_bytes;
    return sum;
}

static inline int count_kind(const struct low *l, enum hb_op_kind kind, enum hb_axis axis)
{
    int count = 0;
    for (uint32_t i = 0; i < l->p.op_count; i++)
        count += l->p.ops[i].kind == kind && l->p.ops[i].axis == axis;
    return count;
}

static inline int64_t trips_of(const struct low *l, const char *text)
{
    for (uint32_t i = 0; i < l->p.loop_count; i++)
        if (strstr(l->p.loops[i].name, text))
            return l->p.loops[i].trips;
    fail_msg("no loop is named '%s'", text);
    return 0;
}

/* Parameters, each of four bytes. */
static inline int64_t params(const struct low *l)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < l->p.buf_count; i++)
        if (l->p.bufs[i].argument && l->p.bufs[i].category == HB_CAT_PARAMS)
            sum += l->p.bufs[i].plain_bytes / 4;
    return sum;
}

#endif
