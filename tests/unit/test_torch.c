/* sim/eager/memory and sim/engine/caching: what the program of two steps allocates, against
 * arithmetic by hand, and laws that hold whatever the configuration. The records of the bench are
 * in tests/golden/torch-lab.jsonl. */
#include "tests/unit/unit.h"

#include "base/size.h"
#include "base/str.h"
#include "models/support.h"
#include "sim/eager/memory.h"
#include "sim/engine/live.h"
#include "sim/engine/run.h"
#include "tests/unit/unit_spec.h"

static struct unit u;

static int start(void **state)
{
    (void)state;
    unit_start(&u);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unit_end(&u);
    return 0;
}

/* 4 layers of width 1024 on 8 devices; more: further keys, one a line. */
static struct hb_spec read_spec(const char *more)
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

static struct hb_memory run_keys(const char *more, struct hb_program *p)
{
    struct hb_memory m = {0};
    struct hb_spec spec = read_spec(more);
    assert_true(hb_spec_supported(&u.diag, NULL, &spec));
    assert_true(hb_step_lower(u.env.arena, &u.diag, &spec, &(struct hb_rank_ask){0}, p));
    hb_program_check(p);
    hb_run_memory(u.env.arena, p, &m);
    return m;
}

static int64_t peak(const char *more)
{
    struct hb_program p;
    return run_keys(more, &p).peak_bytes;
}

static const char *const keys[] = {
    "remat: {policy: none}\n",
    "remat: {policy: full}\n",
    "remat: {policy: full, every: 2}\n",
    "remat: {policy: names, save: [q, v, attn_ctx, mlp_gate, mlp_down]}\n",
    "remat: {policy: full}\nruntime: {wrap: root}\n",
    "remat: {policy: none}\nruntime: {compile: true}\nloss: {kernel: compiled}\n",
    "remat: {policy: full}\nruntime: {allocator: max_reserved}\n",
    "remat: {policy: none}\nruntime: {allocator: max_reserved, expandable_segments: true}\n",
    "remat: {policy: none}\nmesh: {fsdp: 2, tensor: 4}\nsharding: {residual_over_tensor: true}\n",
    "remat: {policy: full}\nsharding: {reshard_after_forward: false}\n",
};
enum { KEYS = sizeof keys / sizeof keys[0] };

static void categories_sum_to_the_peak(void **state)
{
    (void)state;
    for (int i = 0; i < KEYS; i++) {
        struct hb_program p;
        struct hb_memory m = run_keys(keys[i], &p);
        int64_t kinds = 0, tensors = 0;
        for (int c = 0; c < HB_CATEGORY_COUNT; c++)
            kinds += m.category_bytes[c];
        for (uint32_t k = 0; k < m.at_peak_count; k++) {
            tensors += m.at_peak[k].bytes;
            assert_true(*p.bufs[m.at_peak[k].buf].name);
        }
        assert_int_equal(kinds, m.peak_bytes);
        assert_int_equal(tensors, m.peak_bytes - m.category_bytes[HB_CAT_FRAGMENTATION]);
        assert_true(m.allocated_bytes <= m.reserved_bytes);
    }
}

/* What a step made is given back by its end; the next one begins with what the first one kept. */
static void steps_begin_with_parameters_and_states(void **state)
{
    (void)state;
    const int64_t ff = 3 * 1024 * 4096, attn = 1024 * (2 * 1024 + 2 * 256), norms = 2 * 1024;
    const int64_t params = 4 * (ff + attn + norms) + 2 * 32000 * 1024 + 1024;
    const int64_t rope = 2048 * 32 * 8;
    for (int i = 0; i < KEYS; i++) {
        struct hb_program p;
        struct hb_memory m = run_keys(keys[i], &p);
        if (strstr(keys[i], "mesh")) /* norms are whole on each tensor rank */
            continue;
        int64_t static_bytes = 12 * params / 8 + rope; /* a block that is not split may be more */
        bool exact = strstr(keys[i], "expandable_segments") != NULL;
        assert_true(exact ? m.argument_bytes == static_bytes : m.argument_bytes >= static_bytes);
        int64_t kept = 0, made = 0;
        for (uint32_t b = 0; b < p.buf_count; b++) {
            kept += p.bufs[b].output ? p.bufs[b].bytes : 0;
            made += !p.bufs[b].output;
        }
        assert_int_equal(kept, static_bytes);
        assert_true(made > 100);
        for (uint32_t k = 0; k < m.live_count; k++)
            assert_true(p.bufs[m.live[k].buf].output || m.live[k].end < (int32_t)p.op_count);
    }
}

/* Peaks of the bench (PyTorch 2.15's FSDP2, selective checkpointing and autograd on fake tensors,
 * two steps) of torchtitan's mixture: a dense layer and three of 8 experts, two of them a token. */
static void experts_as_the_bench_has_them(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        const char *more; /* of the mixture */
        int64_t peak_bytes;
    } told[] = {
        {"mesh: {fsdp: 8}\nremat: {policy: none}\n", "", 1504749568},
        {"mesh: {fsdp: 8}\nremat: {policy: none}\n", ", shared_experts: 1, shared_d_ff: 1024",
         1581824512},
        {"mesh: {fsdp: 2, expert: 4}\nremat: {policy: none}\n", "", 1504847872},
        {"mesh: {fsdp: 2, expert: 4}\nremat: {policy: none}\n",
         ", shared_experts: 1, shared_d_ff: 1024", 1581922816},
        {"mesh: {fsdp: 1, expert: 8}\nremat: {policy: none}\n", "", 1504847872},
        {"mesh: {fsdp: 2, expert: 4}\nremat: {policy: full}\n", "", 1079890432},
        {"mesh: {fsdp: 2, expert: 4}\nremat: {policy: full}\n",
         ", shared_experts: 1, shared_d_ff: 512", 1086972928},
        {"mesh: {fsdp: 2, expert: 4}\n"
         "remat: {policy: names, save: [q, v, attn_ctx, mlp_gate, mlp_down]}\n",
         ", shared_experts: 1, shared_d_ff: 512", 1215576576},
        {"remat: {policy: names, save: [q, v, attn_ctx, mlp_gate, mlp_down]}\nmesh: {fsdp: 8}\n",
         "", 1139286528},
    };
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        struct hb_spec spec = unit_spec(
            &u, hb_arena_printf(
                    u.env.arena,
                    "model:\n  d_model: 1024\n  vocab: 32000\n  blocks:\n"
                    "    - {name: dense, repeat: 1, attention: {heads: 16, kv_heads: 4,\n"
                    "       head_dim: 64}, mlp: {kind: swiglu, d_ff: 4096}}\n"
                    "    - {name: moe, repeat: 3, attention: {heads: 16, kv_heads: 4,\n"
                    "       head_dim: 64}, moe: {experts: 8, top_k: 2, d_ff: 512%s}}\n"
                    "sharding: {dense_over_expert: %s}\ncompiler: torch\n"
                    "runtime: {expandable_segments: true, fused_norm: false}\n"
                    "batch: {global: 8, seq: 2048}\nhardware: {device: nvidia-h100, count: 8}\n%s",
                    told[i].more, strstr(told[i].keys, "expert") ? "true" : "false", told[i].keys));
        struct hb_program p;
        struct hb_memory m;
        assert_true(hb_spec_supported(&u.diag, NULL, &spec));
        assert_true(hb_step_lower(u.env.arena, &u.diag, &spec, &(struct hb_rank_ask){0}, &p));
        hb_program_check(&p);
        hb_run_memory(u.env.arena, &p, &m);
        assert_true(llabs(m.peak_bytes - told[i].peak_bytes) <= told[i].peak_bytes / 10000);
    }
}

/* An eager loss: log-probabilities, their gradient and that of the logits, each in f32. */
static void logits_stand_three_times(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m = run_keys("remat: {policy: full}\n", &p);
    const int64_t once = 2048 * (int64_t)32000 * 4;
    assert_int_equal(m.category_bytes[HB_CAT_LOGITS], 3 * once);
    m = run_keys("remat: {policy: full}\nloss: {kernel: compiled}\n", &p);
    assert_int_equal(m.category_bytes[HB_CAT_LOGITS], 3 * once / 2);
}

/* Saved a token and layer, without and with norms, rope and products fused by the compiler. */
static void what_layers_keep(void **state)
{
    (void)state;
    struct hb_program p;
    const int64_t d = 1024, q = 1024, ff = 4096, heads = 16, tokens = 2048 * 4;
    static const char ops[] = "remat: {policy: none}\nruntime: {fused_norm: false}\n";
    int64_t eager = run_keys(ops, &p).category_bytes[HB_CAT_SAVED];
    int64_t one = tokens * (20 * d + 8 * q + 8 * ff + 4 * heads);
    assert_true(llabs(eager - one) < one / 20); /* and the ends: a norm, a head's input */
    int64_t fused = run_keys("remat: {policy: none}\nruntime: {compile: true}\n", &p)
                        .category_bytes[HB_CAT_SAVED];
    one = tokens * (8 * d + 6 * q + 2 * q + 6 * ff + 4 * heads); /* k, v repeated */
    assert_true(llabs(fused - one) < one / 10);
    int64_t full = run_keys("remat: {policy: full}\n", &p).category_bytes[HB_CAT_SAVED];
    assert_true(full < tokens * 2 * d * 3);
}

/* A token's 12 d of f32 copies a layer (two norms), and 6 d of the last norm, are not kept. */
static void norms_in_one_kernel(void **state)
{
    (void)state;
    struct hb_program p;
    int64_t copies = (4 * 12 + 6) * (int64_t)1024 * 2048;
    int64_t one = run_keys("remat: {policy: none}\n", &p).peak_bytes;
    int64_t ops = run_keys("remat: {policy: none}\nruntime: {fused_norm: false}\n", &p).peak_bytes;
    assert_int_equal(ops - one, copies);
}

/* One of the forward pass's products, one of the backward pass's, for good. */
static void products_take_workspaces(void **state)
{
    (void)state;
    struct hb_program p;
    const int64_t each = (int64_t)32 << 20;
    static const char *const forms[] = {"remat: {policy: full}\n", "remat: {policy: none}\n"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        int64_t without = run_keys(forms[i], &p).peak_bytes;
        const char *more =
            hb_arena_printf(u.env.arena, "%sruntime: {blas_workspace: 32MiB}\n", forms[i]);
        /* A block that is a little too large (below 1 MiB) is not split. */
        int64_t grown = run_keys(more, &p).peak_bytes - without;
        assert_true(grown >= 2 * each && grown < 2 * each + ((int64_t)1 << 20));
        int found = 0;
        for (uint32_t b = 0; b < p.buf_count; b++)
            found += p.bufs[b].bytes == each && strstr(p.bufs[b].name, "workspace") != NULL;
        assert_int_equal(found, 2);
    }
}

static void levers_move_the_peak(void **state)
{
    (void)state;
    assert_true(peak("remat: {policy: full}\n") < peak("remat: {policy: full, every: 2}\n"));
    assert_true(peak("remat: {policy: full, every: 2}\n") < peak("remat: {policy: none}\n"));
    assert_true(peak(keys[3]) < peak("remat: {policy: none}\n"));
    assert_true(peak(keys[1]) < peak(keys[4])); /* a root stays gathered */
    assert_true(peak(keys[1]) < peak(keys[9])); /* so do all units */
    assert_true(peak("remat: {policy: full}\nbatch: {accumulate: 4, global: 32, seq: 2048}\n") >=
                peak(keys[1]));
    int64_t four = peak("remat: {policy: full}\nbatch: {accumulate: 4, global: 32, seq: 2048}\n");
    assert_int_equal(peak("remat: {policy: full}\nbatch: {accumulate: 9, global: 72, seq: 2048}\n"),
                     four);
}

/* Without FSDP: whole parameters, their gradients, states; copies add DDP's buckets. */
static void without_fsdp_all_is_whole(void **state)
{
    (void)state;
    static const char plain[] = "hardware: {device: nvidia-h100, count: 1}\n"
                                "mesh: {fsdp: 1}\nbatch: {global: 1, seq: 512}\n"
                                "precision: {params: bf16, grads: params}\n"
                                "optimizer: {name: adamw, moments: [bf16, bf16]}\n"
                                "runtime: {expandable_segments: true}\n";
    const int64_t layer = 3 * 1024 * 4096 + 1024 * (2 * 1024 + 2 * 256) + 2 * 1024;
    const int64_t params = 4 * layer + 2 * 32000 * 1024 + 1024, rope = 512 * 32 * 8;
    struct hb_program p;
    struct hb_memory m = run_keys(plain, &p);
    assert_true(m.argument_bytes == 6 * params + rope);
    int64_t one = m.peak_bytes;
    assert_true(one >= 8 * params + rope); /* at the end of the backward pass */
    m = run_keys(hb_arena_printf(u.env.arena, "%s%s", "hardware: {device: nvidia-h100, count: 2}\n",
                                 "mesh: {data: 2}\nbatch: {global: 2, seq: 512}\n"
                                 "precision: {params: bf16, grads: params}\n"
                                 "optimizer: {name: adamw, moments: [bf16, bf16]}\n"
                                 "runtime: {expandable_segments: true}\n"),
                 &p);
    assert_int_equal(m.peak_bytes - one, hb_round_up(2 * params, 512));
    int64_t tied =
        run_keys(hb_arena_printf(u.env.arena, "%s%s", plain, "# tied: true\n"), &p).argument_bytes;
    assert_int_equal(6 * params + rope - tied, 6 * (int64_t)32000 * 1024);
}

/* One device in bf16 as torchtune has it; more: further keys. */
static struct hb_memory run_tune(const char *more)
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

static const int64_t tune_params =
    4 * (3 * INT64_C(1024) * 4096 + 1024 * (2 * 1024 + 2 * 256) + 2 * 1024) +
    2 * INT64_C(32000) * 1024 + 1024;

/* All chunks' gradients stand before the head's first product: no f32 copy of all tokens. */
static void chunks_of_the_loss(void **state)
{
    (void)state;
    const int64_t logits = 4096 * INT64_C(32000) * 2;
    int64_t one = run_tune("optimizer: {in_backward: true}\nremat: {policy: full}\n").peak_bytes;
    struct hb_memory m = run_tune("optimizer: {in_backward: true}\nremat: {policy: full}\n"
                                  "loss: {chunks: 8}\n");
    assert_true(m.category_bytes[HB_CAT_LOGITS] <= logits + 3 * logits / 8);
    assert_true(m.category_bytes[HB_CAT_LOGITS] >= logits - logits / 4);
    assert_true(m.peak_bytes < one - logits);
}

/* Head and loss in one op: a piece of 64 tokens, as 32000 words are 32 times the width. */
static void head_and_loss_in_one(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m = run_keys("remat: {policy: full}\nloss: {kernel: linear}\n", &p);
    int pieces = 0;
    for (uint32_t b = 0; b < p.buf_count; b++) {
        if (p.bufs[b].category != HB_CAT_LOGITS)
            continue;
        pieces++;
        assert_int_equal(p.bufs[b].bytes, 64 * 32000 * 2);
    }
    assert_int_equal(pieces, 2); /* one a step */
    assert_true(m.peak_bytes < peak("remat: {policy: full}\nloss: {kernel: compiled}\n"));
}

/* Codes, an f32 scale for 256 of them and a table for each tensor; norms stay in bf16. Paged ones
 * are none of the allocator's. */
static void states_in_eight_bits(void **state)
{
    (void)state;
    const int64_t norms = (2 * 4 + 1) * 1024, large = tune_params - norms, tensors = 7 * 4 + 2;
    const int64_t rope = 4096 * 32 * 8;
    struct hb_memory m = run_tune("optimizer: {moments: [q8, q8]}\n");
    assert_int_equal(m.argument_bytes, 2 * tune_params + rope + 2 * large + 2 * large / 256 * 4 +
                                           2 * tensors * 1024 + 2 * norms * 2);
    m = run_tune("optimizer: {moments: [q8, q8], offload: pinned_host}\n");
    assert_int_equal(m.argument_bytes, 2 * tune_params + rope);
}

/* Inputs of layers on the host: of four one is still on its way when the loss comes. */
static void inputs_go_to_the_host(void **state)
{
    (void)state;
    const int64_t input = 4096 * 1024 * 2;
    static const char tail[] = "optimizer: {in_backward: true}\nloss: {chunks: 8}\n";
    int64_t stay =
        run_tune(hb_arena_printf(u.env.arena, "remat: {policy: full}\n%s", tail)).peak_bytes;
    int64_t gone = run_tune(hb_arena_printf(u.env.arena,
                                            "remat: {policy: names, save: [], offload: "
                                            "[layer_in]}\n%s",
                                            tail))
                       .peak_bytes;
    assert_int_equal(stay - gone, 3 * input);
}

/* FSDP2's CPUOffloadPolicy: no parameter, no state, no gradient stays on the device. */
static void shards_on_the_host(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m = run_keys("remat: {policy: full}\noptimizer: {offload: pinned_host, "
                                  "params_offload: pinned_host}\n"
                                  "runtime: {expandable_segments: true}\n",
                                  &p);
    assert_int_equal(m.argument_bytes, 2048 * 32 * 8); /* rope's table */
    assert_int_equal(m.category_bytes[HB_CAT_OPTIMIZER], 0);
    assert_true(m.peak_bytes < peak(keys[1]));
}

/* The largest storage of a name; 0: there is none. */
static int64_t largest(const struct hb_program *p, const char *name)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (hb_str_ends(p->bufs[i].name, name) && p->bufs[i].bytes > bytes)
            bytes = p->bufs[i].bytes;
    return bytes;
}

/* States are split over the ranks of a sequence as over those of fsdp. Attention gathers keys and
 * values of all ranks at once, or takes them from one rank after another. */
static void sequences_that_ranks_share(void **state)
{
    (void)state;
    static const char all[] =
        "mesh: {fsdp: 1, sequence: 8}\nbatch: {global: 1, seq: 32768}\nremat: {policy: full}\n"
        "loss: {kernel: linear}\nsharding: {states_over_sequence: true, sequence_kind: all_gather, "
        "sequence_balance: true}\n";
    static const char ring[] =
        "mesh: {fsdp: 1, sequence: 8}\nbatch: {global: 1, seq: 32768}\nremat: {policy: full}\n"
        "loss: {kernel: linear}\nsharding: {states_over_sequence: true, sequence_balance: true}\n";
    static const char alone[] = "mesh: {fsdp: 8}\nbatch: {global: 8, seq: 4096}\n"
                                "remat: {policy: full}\nloss: {kernel: linear}\n";
    const int64_t own = 4096 * 1024 * 2; /* heads are repeated before */
    struct hb_program p;
    struct hb_memory m = run_keys(all, &p);
    assert_int_equal(largest(&p, "k and v of all ranks"), 8 * 2 * own);
    assert_int_equal(largest(&p, "merged output in f32"), 2 * own);
    assert_int_equal(largest(&p, "gradients of k and v received"), 4 * own);
    struct hb_memory turns = run_keys(ring, &p);
    assert_int_equal(largest(&p, "k and v of all ranks"), 0);
    assert_int_equal(largest(&p, "k and v of the next rank"), 2 * own);
    struct hb_memory none = run_keys(alone, &p);
    assert_int_equal(largest(&p, "merged output in f32"), 0);
    assert_true(none.peak_bytes < turns.peak_bytes);
    assert_true(turns.peak_bytes < m.peak_bytes);
    assert_int_equal(m.category_bytes[HB_CAT_OPTIMIZER], none.category_bytes[HB_CAT_OPTIMIZER]);
}

#define ZERO_KEYS                                                                                  \
    "mesh: {data: 8}\nprecision: {params: bf16, master: f32, grads: params}\n"                     \
    "remat: {policy: full}\nloss: {kernel: linear}\n"

/* ZeRO: weights are whole, of all else a rank has its part; the first keeps whole gradients of what
 * begins in it. Stage 1 keeps all gradients between microbatches. */
static void states_that_ranks_split(void **state)
{
    (void)state;
    static const char second[] =
        ZERO_KEYS "batch: {global: 16, seq: 2048, accumulate: 2}\n"
                  "sharding: {optimizer_over_data: true, grads_over_data: true}\n";
    static const char first[] = ZERO_KEYS "batch: {global: 16, seq: 2048, accumulate: 2}\n"
                                          "sharding: {optimizer_over_data: true}\n";
    static const char small[] = ZERO_KEYS
        "batch: {global: 16, seq: 2048, accumulate: 2}\nruntime: {reduce_bucket: 1000000}\n"
        "sharding: {optimizer_over_data: true, grads_over_data: true}\n";
    const int64_t layer = 2 * 1024 * 1024 + 2 * 1024 * 256 + 3 * 1024 * 4096 + 2 * 1024;
    const int64_t table = INT64_C(32000) * 1024, all = 2 * table + 4 * layer + 1024;
    struct hb_program p;
    struct hb_memory m = run_keys(second, &p);
    assert_int_equal(largest(&p, "own part of the weights in f32"), hb_div_up(all, 8) * 4);
    assert_int_equal(largest(&p, "second moment"), hb_div_up(all, 8) * 4);
    assert_int_equal(largest(&p, "own part of the gradients"), table * 2);
    assert_int_equal(largest(&p, "buffer of gradients to reduce"), INT64_C(1000000000));
    assert_true(m.peak_bytes < peak(first));
    assert_true(peak(small) + 900000000 < m.peak_bytes);
}

#define ZERO3_KEYS                                                                                 \
    "mesh: {fsdp: 8}\nprecision: {params: bf16, master: f32, grads: params}\n"                     \
    "batch: {global: 16, seq: 2048, accumulate: 2}\n"

/* ZeRO-3: of weights, too, a rank has its part; what is gathered ahead, stays for its next use or
 * for good is DeepSpeed's to say. */
static void weights_that_modules_gather(void **state)
{
    (void)state;
    const int64_t layer = 2 * 1024 * 1024 + 2 * 1024 * 256 + 3 * 1024 * 4096 + 2 * 1024;
    const int64_t table = INT64_C(32000) * 1024, all = 2 * table + 4 * layer + 1024;
    struct hb_program p;
    struct hb_memory m = run_keys(ZERO3_KEYS "runtime: {reduce_bucket: 1000}\n", &p);
    assert_int_equal(largest(&p, "own part of the weights"), all / 8 * 2);
    assert_int_equal(largest(&p, "own part of the weights in f32"), all / 8 * 4);
    assert_int_equal(largest(&p, "own part of the gradients"), all / 8 * 2);
    assert_int_equal(largest(&p, "second moment"), all / 8 * 4);
    assert_int_equal(largest(&p, "gradients to reduce, in one"), 0); /* each waits alone */
    int64_t far = peak(ZERO3_KEYS "runtime: {reduce_bucket: 1000, live_parameters: 0}\n");
    int64_t none =
        peak(ZERO3_KEYS "runtime: {reduce_bucket: 1000, reuse_distance: 0, prefetch_bucket: 0}\n");
    assert_true(far - none > 3 * layer); /* all weights stay till the backward pass */
    assert_int_equal(m.peak_bytes, far); /* and so are asked for in time */
    m = run_keys(ZERO3_KEYS "runtime: {reduce_bucket: 20000000, update_group: 1000000}\n", &p);
    assert_in_range(largest(&p, "own gradients in f32"), table / 8 * 4, (table + layer) / 8 * 4);
    assert_true(largest(&p, "gradients to reduce, in one") > 0);
    run_keys(ZERO3_KEYS "optimizer: {offload: pinned_host, params_offload: pinned_host}\n", &p);
    assert_int_equal(largest(&p, "own part of the weights"), 0);
    assert_int_equal(largest(&p, "own part of the gradients"), 0);
    assert_int_equal(largest(&p, "second moment"), 0);
    assert_true(largest(&p, "own weights to gather") > 0);
}

/* Experts in a pipeline: a rank has its stages' of them, whole until the step's last pass with all
 * other weights, and their gradients beside them in f32. */
static void experts_in_stages(void **state)
{
    (void)state;
    const int64_t own = 4 * INT64_C(1024) * 512; /* elements of a weight of the rank's experts */
    struct hb_program p;
    struct hb_spec spec = unit_spec(
        &u, "model:\n  d_model: 1024\n  vocab: 32000\n  blocks:\n"
            "    - {name: moe, repeat: 4, attention: {heads: 16, kv_heads: 4, head_dim: 64},\n"
            "       moe: {experts: 8, top_k: 2, d_ff: 512}}\n"
            "sharding: {dense_over_expert: true, reshard_after_forward: false}\n"
            "mesh: {fsdp: 4, expert: 2, pipeline: 2}\nbatch: {global: 32, seq: 2048}\n"
            "pipeline: {schedule: 1f1b, microbatches: 4}\nremat: {policy: full}\n"
            "compiler: torch\nhardware: {device: nvidia-h100, count: 16}\n");
    assert_true(hb_spec_supported(&u.diag, NULL, &spec));
    assert_true(hb_step_lower(u.env.arena, &u.diag, &spec, &(struct hb_rank_ask){0}, &p));
    hb_program_check(&p);
    assert_int_equal(largest(&p, "experts' w_gate"), own * 2);
    int summed = 0;
    for (uint32_t i = 0; i < p.buf_count; i++)
        summed +=
            hb_str_ends(p.bufs[i].name, "weight's gradient in f32") && p.bufs[i].bytes == own * 4;
    assert_int_equal(summed, 2 * 2 * 3); /* of two layers, in two steps: of all microbatches */
}

/* GRPO: log-probabilities stay sequence by sequence in the logits' dtype, a reference stands beside
 * the policy in compute's. */
static void log_probabilities_by_sequence(void **state)
{
    (void)state;
    static const char grpo[] = "remat: {policy: full}\nbatch: {global: 32, seq: 2048}\n"
                               "loss: {kind: grpo}\n";
    static const char alone[] = "remat: {policy: full}\nbatch: {global: 32, seq: 2048}\n"
                                "loss: {kind: grpo, reference: false}\n";
    const int64_t once = 2048 * INT64_C(32000) * 2;
    struct hb_program p;
    struct hb_memory m = run_keys(grpo, &p);
    assert_int_equal(largest(&p, "log-probabilities of a sequence"), once);
    assert_int_equal(largest(&p, "a part's entropy by word"), once / 16);
    int64_t policy = 0, reference = 0, parts = 0;
    for (uint32_t i = 0; i < p.buf_count; i++) {
        if (p.bufs[i].category == HB_CAT_PARAMS && strncmp(p.bufs[i].name, "reference.", 10) == 0)
            reference += p.bufs[i].bytes;
        else if (p.bufs[i].category == HB_CAT_PARAMS)
            policy += p.bufs[i].bytes;
        parts += hb_str_ends(p.bufs[i].name, "gradient of a sequence's logits");
    }
    const int64_t table = 2048 * 32 * 8; /* of rope, of each */
    assert_int_equal(policy - table, 2 * (reference - table));
    assert_int_equal(parts, 2 * 4); /* in two steps */
    assert_true(m.category_bytes[HB_CAT_LOGITS] <= 2 * 4 * once + once / 4);
    int64_t more = m.peak_bytes - run_keys(alone, &p).peak_bytes;
    assert_in_range(more, reference, reference + 512 * 1024); /* blocks that are not split */
}

/* PPO's value model: the policy's weights again but for its head, of one row; its moments too, its
 * streams its own. */
static void value_model_beside_the_policy(void **state)
{
    (void)state;
    static const char both[] = "remat: {policy: full}\nbatch: {global: 32, seq: 2048}\n"
                               "loss: {kind: grpo, value: true}\n";
    static const char alone[] = "remat: {policy: full}\nbatch: {global: 32, seq: 2048}\n"
                                "loss: {kind: grpo}\n";
    struct hb_program p;
    int64_t before = run_keys(alone, &p).argument_bytes, value = 0, policy = 0, head = 0;
    struct hb_memory m = run_keys(both, &p);
    unsigned pools = 0;
    for (uint32_t i = 0; i < p.buf_count; i++) {
        bool own = strncmp(p.bufs[i].name, "value.", 6) == 0;
        bool other = strncmp(p.bufs[i].name, "reference.", 10) == 0;
        pools |= 1u << p.bufs[i].pool;
        if (p.bufs[i].category != HB_CAT_PARAMS || other ||
            strcmp(p.bufs[i].name, "table of rope") == 0)
            continue;
        *(own ? &value : &policy) += p.bufs[i].bytes;
        if (strcmp(p.bufs[i].name, "head") == 0)
            head = p.bufs[i].bytes;
    }
    const int64_t row = 1024 * 4, rope = 2048 * 32 * 8;
    assert_int_equal(value, policy - head + row);
    assert_in_range(m.argument_bytes - before, 3 * value + rope, 3 * value + rope + 1024 * 1024);
    assert_int_equal(pools, 1u << 0 | 3u << 1 | 1u << 4 | 3u << 7);
}

/* A name that is kept holds the logits of a step until the next one's are made. */
static void logits_that_are_held(void **state)
{
    (void)state;
    struct hb_program p;
    const int64_t once = 2048 * INT64_C(32000) * 4;
    struct hb_memory m = run_keys("remat: {policy: full}\nloss: {held: f32}\n", &p);
    assert_int_equal(m.category_bytes[HB_CAT_LOGITS], 4 * once);
    m = run_keys("remat: {policy: full}\nloss: {held: compute}\n", &p);
    assert_int_equal(m.category_bytes[HB_CAT_LOGITS], 3 * once + once / 2);
}

/* Large blocks that are not split serve large requests alone: no less is held for it. */
static void blocks_above_a_size_are_not_split(void **state)
{
    (void)state;
    static const char all[] = "remat: {policy: none}\n"
                              "runtime: {allocator: max_reserved}\n";
    static const char some[] = "remat: {policy: none}\n"
                               "runtime: {allocator: max_reserved, max_split_size: 32MiB}\n";
    struct hb_program p;
    struct hb_memory m = run_keys(all, &p), split = run_keys(some, &p);
    assert_int_equal(p.caching.max_split_bytes, 32 << 20);
    assert_true(split.allocated_bytes >= m.allocated_bytes);
    assert_true(split.reserved_bytes != m.reserved_bytes);
}

/* Peaks of the bench (PyTorch 2.15's own FullyShardedDataParallel on fake tensors, two steps), as
 * allocated: 3 layers of width 1024, all checkpointed, or none, or with two microbatches reduced in
 * bf16. Its accumulation holds 0.5 MB that is not simulated. */
static void flat_parameters_of_fsdp1(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        int64_t peak_bytes;
    } told[] = {
        {"remat: {policy: full}\n", 1118367744},
        {"remat: {policy: none}\n", 1483717632},
        {"remat: {policy: full}\nbatch: {global: 16, seq: 2048, accumulate: 2}\n"
         "precision: {grads: bf16}\n",
         1177867776},
    };
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        struct hb_program p;
        struct hb_memory m = {0};
        struct hb_spec spec = read_spec(hb_arena_printf(
            u.env.arena, "%sruntime: {fsdp1: true, fused_norm: false, expandable_segments: %s}\n",
            told[i].keys, i < 2 ? "true" : "false"));
        assert_true(hb_spec_supported(&u.diag, NULL, &spec));
        assert_true(hb_step_lower(u.env.arena, &u.diag, &spec, &(struct hb_rank_ask){0}, &p));
        hb_run_memory(u.env.arena, &p, &m);
        assert_true(llabs(m.peak_bytes - told[i].peak_bytes) < told[i].peak_bytes / 2000);
    }
}

/* What has no bytes has no place, and frees none. */
static void nothing_is_taken_for_nothing(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m = run_keys("remat: {policy: full}\n", &p), less = {0};
    uint32_t buf = 0;
    for (uint32_t i = 0; i < m.part_count; i++)
        if (!p.bufs[m.live[m.parts[i].live].buf].argument)
            buf = m.live[m.parts[i].live].buf;
    assert_true(p.bufs[buf].bytes > 0 && m.offset_of[buf] >= 0);
    p.bufs[buf].bytes = 0;
    hb_run_memory(u.env.arena, &p, &less);
    assert_int_equal(less.offset_of[buf], -1);
    assert_true(less.allocated_bytes <= m.allocated_bytes);
}

/* Each segment lies behind the one before it: two that live at once never share a byte, the first
 * begins at 0, and what is reserved is as much as is told. */
static void segments_lie_side_by_side(void **state)
{
    (void)state;
    static const char *const told[] = {
        "remat: {policy: full}\n", "remat: {policy: none}\nruntime: {expandable_segments: true}\n",
        "sharding: {reshard_after_forward: false}\n"};
    for (size_t k = 0; k < sizeof told / sizeof *told; k++) {
        struct hb_program p;
        struct hb_memory m = run_keys(told[k], &p);
        int64_t least = INT64_MAX, most = 0;
        for (uint32_t i = 0; i < m.part_count; i++) {
            const struct hb_live *a = &m.live[m.parts[i].live];
            int64_t from = m.offset_of[a->buf];
            if (from < 0)
                continue;
            least = hb_smaller(least, from);
            most = hb_larger(most, from + a->bytes);
            for (uint32_t n = 0; n < i; n++) {
                const struct hb_live *b = &m.live[m.parts[n].live];
                int64_t other = m.offset_of[b->buf];
                bool together = other >= 0 && m.parts[i].span.start <= m.parts[n].span.end &&
                                m.parts[n].span.start <= m.parts[i].span.end;
                assert_false(together && other < from + a->bytes && from < other + b->bytes);
            }
        }
        assert_int_equal(least, 0);
        assert_in_range(most, m.allocated_bytes, m.reserved_bytes);
    }
}

/* Weights of products are gathered in a byte an element: the head and the norms are not. */
static void gathers_in_eight_bits(void **state)
{
    (void)state;
    static const char *const told =
        "remat: {policy: full}\nsharding: {reshard_after_forward: false}\n"
        "precision: {fp8: tensorwise, fp8_gather: ";
    int64_t wide = peak(hb_arena_printf(u.env.arena, "%sfalse}\n", told));
    int64_t narrow = peak(hb_arena_printf(u.env.arena, "%strue}\n", told));
    assert_int_equal(wide - narrow, 4 * (1024 * (2 * 1024 + 2 * 256) + 3 * 1024 * 4096));
}

static int named(const char *more, const char *name)
{
    struct hb_program p;
    int count = 0;
    run_keys(more, &p);
    for (uint32_t i = 0; i < p.buf_count; i++)
        count += strstr(p.bufs[i].name, name) != NULL;
    return count;
}

/* Two steps; seven products a layer and the head. A layer that is run again copies anew: the
 * context is over. */
static void casts_are_of_what_has_another_type(void **state)
{
    (void)state;
    const char *copy = "autocast's copy", *own = "own weights to";
    assert_int_equal(named("remat: {policy: none}\nmesh: {data: 8}\n", copy), 2 * (4 * 7 + 1));
    assert_int_equal(named("remat: {policy: full}\nmesh: {data: 8}\n", copy), 2 * (8 * 7 + 1));
    assert_true(named("remat: {policy: none}\n", own) > 0);
    assert_int_equal(named("precision: {params: bf16}\n", own), 0);
    assert_int_equal(named("precision: {compute: f32}\n", own), 0);
}

#define PIPE  "mesh: {fsdp: 4, pipeline: 2}\npipeline: "
#define KEEPS "mesh: {fsdp: 4, pipeline: 2}\nsharding: {reshard_after_forward: false}\npipeline: "
static void what_is_not_known_is_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "mesh: {data: 8}\nloss: {chunks: 2}\n",
        "precision: {compute: f32}\nruntime: {compile: true}\n",
        "mesh: {data: 8}\nprecision: {params: bf16, grads: f32}\n",
        "mesh: {data: 4, tensor: 2}\nprecision: {params: bf16, grads: params}\n",
        "mesh: {fsdp: 4, pipeline: 2}\npipeline: {microbatches: 2}\n",
        "mesh: {fsdp: 4, expert: 2}\n",
        "mesh: {data: 8}\nprecision: {params: bf16, master: f32}\n",
        "mesh: {data: 8}\nprecision: {params: bf16}\nsharding: {optimizer_over_data: true}\n",
        "mesh: {data: 8}\nprecision: {params: bf16}\nsharding: {grads_over_data: true}\n",
        "sharding: {optimizer_over_data: true}\n",
        "mesh: {fsdp: 4, sequence: 2}\n",
        "mesh: {fsdp: 4, sequence: 2}\nsharding: {states_over_sequence: true, sequence_kind: "
        "all_to_all}\n",
        "mesh: {fsdp: 4, tensor: 2}\n",
        "optimizer: {name: muon}\n",
        "optimizer: {offload: pinned_host}\n",
        "precision: {params: f16}\n",
        "loss: {chunks: 8, held: compute}\n",
        "loss: {kernel: linear, held: f32}\n",
        "mesh: {fsdp: 4, tensor: 2}\nsharding: {residual_over_tensor: true}\n"
        "loss: {kernel: linear}\n",
        "loss: {kernel: compiled, held: f32}\n",
        "sharding: {reshard_ranks: 3}\n",
        "mesh: {fsdp: 4, tensor: 2}\nsharding: {residual_over_tensor: true, reshard_ranks: 2}\n",
        "remat: {policy: names, save: [], offload: [layer_in]}\n",
        "remat: {policy: names, save: [q]}\n",
        "remat: {policy: dots}\n",
        "mesh: {fsdp: 4, data: 2}\nruntime: {fsdp1: true}\n",
        "runtime: {fsdp1: true, wrap: root}\n",
        "mesh: {data: 8}\nprecision: {params: bf16}\nruntime: {fsdp1: true}\n",
        "precision: {fp8: rowwise, fp8_gather: true}\n",
        "precision: {fp8: tensorwise, fp8_params: true}\n",
        "runtime: {framework: torchtune}\n",
        PIPE "{schedule: 1f1b, microbatches: 1}\n",
        PIPE "{schedule: interleaved, microbatches: 2}\n",
        PIPE "{schedule: interleaved, microbatches: 2, repeats: 2, group: 2}\n",
        PIPE "{schedule: zero_bubble, microbatches: 2, repeats: 2}\n",
        KEEPS "{schedule: zbv, microbatches: 2, repeats: 2}\nruntime: {compile: true}\n",
        KEEPS "{schedule: zbv, microbatches: 2, repeats: 2}\nremat: {policy: names, save: [q, v, "
              "attn_ctx, mlp_gate, mlp_down]}\n",
        KEEPS "{schedule: dualpipe_v, microbatches: 2, repeats: 2}\n",
        PIPE "{schedule: 1f1b, microbatches: 2}\nloss: {held: compute}\n",
        PIPE "{schedule: 1f1b, microbatches: 2, layers: [0, 4]}\n",
        "mesh: {pipeline: 8}\npipeline: {schedule: 1f1b, microbatches: 8, layers: [1, 1, 1, 1, 0, "
        "0, 0, "
        "0]}\nprecision: {params: bf16}\n",
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct hb_spec spec = read_spec(refused[i]);
        hb_diag_init(&u.diag, u.env.arena);
        if (hb_spec_supported(&u.diag, NULL, &spec))
            fail_msg("not refused: %s", refused[i]);
        for (int k = 0, count = u.diag.count; k < count; k++)
            unit_names_a_key(&u, u.diag.entries[k].text);
        hb_diag_init(&u.diag, u.env.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(categories_sum_to_the_peak, start, end),
        cmocka_unit_test_setup_teardown(steps_begin_with_parameters_and_states, start, end),
        cmocka_unit_test_setup_teardown(experts_as_the_bench_has_them, start, end),
        cmocka_unit_test_setup_teardown(logits_stand_three_times, start, end),
        cmocka_unit_test_setup_teardown(what_layers_keep, start, end),
        cmocka_unit_test_setup_teardown(norms_in_one_kernel, start, end),
        cmocka_unit_test_setup_teardown(products_take_workspaces, start, end),
        cmocka_unit_test_setup_teardown(levers_move_the_peak, start, end),
        cmocka_unit_test_setup_teardown(without_fsdp_all_is_whole, start, end),
        cmocka_unit_test_setup_teardown(chunks_of_the_loss, start, end),
        cmocka_unit_test_setup_teardown(head_and_loss_in_one, start, end),
        cmocka_unit_test_setup_teardown(states_in_eight_bits, start, end),
        cmocka_unit_test_setup_teardown(inputs_go_to_the_host, start, end),
        cmocka_unit_test_setup_teardown(shards_on_the_host, start, end),
        cmocka_unit_test_setup_teardown(sequences_that_ranks_share, start, end),
        cmocka_unit_test_setup_teardown(states_that_ranks_split, start, end),
        cmocka_unit_test_setup_teardown(weights_that_modules_gather, start, end),
        cmocka_unit_test_setup_teardown(experts_in_stages, start, end),
        cmocka_unit_test_setup_teardown(log_probabilities_by_sequence, start, end),
        cmocka_unit_test_setup_teardown(value_model_beside_the_policy, start, end),
        cmocka_unit_test_setup_teardown(logits_that_are_held, start, end),
        cmocka_unit_test_setup_teardown(blocks_above_a_size_are_not_split, start, end),
        cmocka_unit_test_setup_teardown(flat_parameters_of_fsdp1, start, end),
        cmocka_unit_test_setup_teardown(gathers_in_eight_bits, start, end),
        cmocka_unit_test_setup_teardown(casts_are_of_what_has_another_type, start, end),
        cmocka_unit_test_setup_teardown(segments_lie_side_by_side, start, end),
        cmocka_unit_test_setup_teardown(nothing_is_taken_for_nothing, start, end),
        cmocka_unit_test_setup_teardown(what_is_not_known_is_refused, start, end),
    };
    return cmocka_run_group_tests_name("torch", tests, NULL, NULL);
}
