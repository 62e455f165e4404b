/* For the tests of sim/eager: a configuration of four layers under torch with further keys, the
 * program of its two steps and what that allocates. Include it first, in place of
 * each.h, whose u would shadow that of unit_spec.h. */
#ifndef HB_TESTS_TORCH_STEP_H
#define HB_TESTS_TORCH_STEP_H

#include "tests/unit/unit.h"

#include "tests/unit/unit_spec.h"

#include "tests/unit/each.h"

#include "base/size.h"
#include "base/str.h"
#include "models/support.h"
#include "sim/eager/memory.h"
#include "sim/engine/check.h"
#include "sim/engine/live.h"
#include "sim/engine/run.h"

/* 4 layers of width 1024 on 8 devices; more: further keys, one a line. */
static inline struct hb_spec read_spec(const char *more)
{
    const char *text = hb_arena_printf(
        u.env.arena,
        "model:\n"
        "  d_model: 1024\n"
        "  tied_embeddings: %s\n"
        "  vocab: 32000\n"
        "  blocks:\n"
        "    - {name: dense, repeat: %d, attention: {heads: 16, kv_heads: 4, head_dim: 64},\n"
        "       mlp: {kind: swiglu, d_ff: 4096}}\n"
        "%s"
        "%s"
        "compiler: torch\n%s%s",
        strstr(more, "tied: true") ? "true" : "false", strstr(more, "fsdp1: true") ? 3 : 4,
        strstr(more, "batch") ? "" : "batch: {global: 8, seq: 2048}\n",
        strstr(more, "hardware") ? "" : "hardware: {device: nvidia-h100, count: 8}\n",
        strstr(more, "mesh") ? "" : "mesh: {fsdp: 8}\n", more);
    return unit_spec(&u, text);
}

/* From the first op that touches a buffer to the last. */
static inline void check_lives(const struct hb_program *p)
{
    int32_t *first = hb_arena_alloc(u.env.arena, p->buf_count, sizeof *first);
    int32_t *last = hb_arena_alloc(u.env.arena, p->buf_count, sizeof *last);
    for (uint32_t op = p->op_count; op-- > 0;)
        for (uint32_t k = 0; k < p->ops[op].read_count + p->ops[op].write_count; k++) {
            uint32_t b = p->refs[p->ops[op].refs_at + k];
            first[b] = (int32_t)op;
            last[b] = last[b] ? last[b] : (int32_t)op;
        }
    for (uint32_t i = 0; i < p->buf_count; i++) {
        const struct hb_buf *b = &p->bufs[i];
        const struct hb_live *l = &p->lives[i];
        assert_int_equal(l->buf, i);
        assert_int_equal(l->start, b->argument ? -1 : first[i]);
        assert_int_equal(l->end, b->output ? (int32_t)p->op_count : last[i]);
        assert_int_equal(l->bytes, b->bytes);
    }
}

static inline struct hb_memory run_keys(const char *more, struct hb_program *p)
{
    struct hb_memory m = {0};
    struct hb_spec spec = read_spec(more);
    assert_true(hb_spec_supported(&u.diag, NULL, &spec));
    assert_true(hb_step_lower(u.env.arena, &u.diag, &spec, &(struct hb_rank_ask){0}, p));
    hb_program_check(p);
    check_lives(p);
    hb_run_memory(u.env.arena, p, &m);
    return m;
}

static inline int64_t peak(const char *more)
{
    struct hb_program p;
    return run_keys(more, &p).peak_bytes;
}

/* One device in bf16 as torchtune has it; more: further keys. */
static inline struct hb_memory run_tune(const char *more)
{
    struct hb_program p;
    return run_keys(hb_arena_printf(u.env.arena,
                                    "hardware: {device: nvidia-a100-80gb, count: 1}\n"
                                    "mesh: {fsdp: 1}\nbatch: {global: 1, seq: 4096}\n"
                                    "precision: {params: bf16, grads: params}\n"
                                    "runtime: {framework: torchtune, compile: true, "
                                    "expandable_segments: true}\n%s",
                                    more),
                    &p);
}

/* The largest storage of a name; 0: there is none. */
static inline int64_t largest(const struct hb_program *p, const char *name)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (hb_str_ends(p->bufs[i].name, name) && p->bufs[i].bytes > bytes)
            bytes = p->bufs[i].bytes;
    return bytes;
}

#endif
