/* sim/eager: what a rank of several allocates under torch (DDP, both FSDPs, ZeRO, experts, parts of
 * a sequence), against arithmetic by hand and peaks of the bench. */
#include "tests/unit/torch_step.h"

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
    run_keys(hb_arena_printf(u.env.arena, "%soptimizer: {name: lion}\n", second), &p);
    assert_int_equal(largest(&p, "first moment"), hb_div_up(all, 8) * 4);
    assert_int_equal(largest(&p, "second moment"), 0);
    run_keys(hb_arena_printf(u.env.arena, "%soptimizer: {name: sgd}\n", second), &p);
    assert_int_equal(largest(&p, "first moment"), 0);
    int64_t part = hb_div_up(all, 8);
    run_keys(hb_arena_printf(u.env.arena, "%soptimizer: {moments: [q8, q8]}\n", second), &p);
    assert_int_equal(largest(&p, "first moment"),
                     part % 256 ? part * 4 : part + (part / 256 + 256) * 4);
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

/* A graph's passes have pools of their own, in each of the two steps, the update and what stays has
 * not; gradients are there from the first step on, and the second's are added to them. */
static void graphs_own_their_passes(void **state)
{
    (void)state;
    enum { WARM = 16, GRAPH = 32 };
    struct hb_program plain, graph;
    struct hb_memory without = run_keys("runtime: {cuda_graphs: false}\n", &plain);
    struct hb_memory with = run_keys("runtime: {cuda_graphs: true}\n", &graph);
    int64_t grads = 0;
    int logits[3] = {0};
    assert_int_equal(plain.buf_count, graph.buf_count);
    for (uint32_t i = 0; i < with.live_count; i++) {
        uint32_t buf = with.live[i].buf;
        const struct hb_buf *b = &graph.bufs[buf];
        bool stays = b->argument || b->category == HB_CAT_OPTIMIZER;
        bool second = (int32_t)graph.caching.second_op <= with.live[i].start;
        if (strstr(b->name, "sharded gradients") && !second)
            grads += b->bytes;
        if (strcmp(b->name, "logits") == 0)
            logits[with.live[i].pool / WARM]++;
        assert_int_equal(with.live[i].pool / WARM * WARM, stays ? 0 : second ? GRAPH : WARM);
        assert_int_equal(with.live[i].pool % WARM, plain.lives[buf].pool);
    }
    assert_true(logits[0] == 0 && logits[1] == 1 && logits[2] == 1 && grads > 0);
    int64_t more = with.peak_bytes - without.peak_bytes; /* blocks of other pools are cut apart */
    assert_true(more >= grads && more < grads + (2 << 20));
    assert_true(graph.caching.captures && !plain.caching.captures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(experts_as_the_bench_has_them), TEST(without_fsdp_all_is_whole),
        TEST(sequences_that_ranks_share),    TEST(states_that_ranks_split),
        TEST(weights_that_modules_gather),   TEST(experts_in_stages),
        TEST(flat_parameters_of_fsdp1),      TEST(gathers_in_eight_bits),
        TEST(graphs_own_their_passes),
    };
    return cmocka_run_group_tests_name("torch sharding", tests, NULL, NULL);
}
