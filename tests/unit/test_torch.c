/* sim/eager/memory and sim/engine/caching: what the program of two steps allocates, against
 * arithmetic by hand, and laws that hold whatever the configuration: layers, the optimizer, the
 * host, the allocator, refusals (test_torch_loss.c: the loss; test_torch_sharding.c: what ranks
 * share). The records of the bench are in tests/golden/torch-lab.jsonl. */
#include "tests/unit/torch_step.h"

#include "hw/device.h"
#include "sim/engine/measure.h"

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
    "remat: {policy: full}\noptimizer: {in_backward: true}\n",
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

/* What a norm's weight is multiplied with is kept, in bf16 where the model writes its norms out: a
 * token's 2 d less a norm. What comes of the last op is that, once, and its gradient. */
static void norms_are_written_out(void **state)
{
    (void)state;
    struct hb_program p;
    const int64_t narrow = (int64_t)2 * 1024 * 2048, norms = 2 * 4 + 1;
    int64_t ops = run_keys("remat: {policy: none}\nruntime: {fused_norm: false}\n", &p).peak_bytes;
    int64_t written =
        run_keys("remat: {policy: none}\nruntime: {written_norm: true}\n", &p).peak_bytes;
    assert_int_equal(ops - written, norms * narrow);
    int outputs = 0, wide = 0;
    for (uint32_t i = 0; i < p.buf_count; i++) {
        outputs += hb_str_ends(p.bufs[i].name, "norm's output") && p.bufs[i].bytes == narrow;
        wide += hb_str_ends(p.bufs[i].name, "norm's output in f32");
    }
    assert_int_equal(outputs, 2 * norms);
    assert_int_equal(wide, 0);
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

static const int64_t tune_params =
    4 * (3 * INT64_C(1024) * 4096 + 1024 * (2 * 1024 + 2 * 256) + 2 * 1024) +
    2 * INT64_C(32000) * 1024 + 1024;

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

/* With FSDP2 a unit's update follows its reduction on that one's stream: the states are of its
 * pool, and of the sharded gradients those of one unit are there at a time. */
static void shards_are_updated_in_the_pass(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m = run_keys("remat: {policy: full}\noptimizer: {in_backward: true}\n", &p);
    int32_t last_end = 0;
    int gradients = 0, states = 0;
    for (uint32_t k = 0; k < m.live_count; k++) {
        const struct hb_buf *b = &p.bufs[m.live[k].buf];
        if (strstr(b->name, "sharded gradients")) {
            gradients++;
            assert_true(m.live[k].start >= last_end && !b->output);
            last_end = m.live[k].end;
        }
        if (!strstr(b->name, "moment"))
            continue;
        states++;
        assert_true(m.live[k].pool > 0 && m.live[k].start <= last_end);
    }
    assert_int_equal(gradients, 2 * (4 + 2));
    assert_int_equal(states, 2 * (4 * 9 + 3));
    assert_int_equal(last_end > 0, 1);
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
    p.bufs[buf].bytes = p.lives[buf].bytes = 0;
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
            assert_true(m.parts[i].span.end < (int32_t)p.op_count); /* what is kept, too */
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
        "remat: {policy: names, save: [q, mlp_act]}\n",
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

static void both_are_told_as_each_alone(void **state)
{
    (void)state;
    struct hb_device device;
    struct hb_spec spec = read_spec("remat: {policy: full}\n");
    int64_t bytes = -1, ns = -1, peak_bytes, step_ns;
    assert_true(hb_device_load(u.env.arena, &u.diag, HB_SOURCE_DIR, "nvidia-h100",
                               (struct hb_loc){0}, &device));
    assert_true(hb_measure_peak(u.env.arena, &spec, &peak_bytes));
    assert_true(hb_measure_step(u.env.arena, &spec, &device, &step_ns));
    assert_true(hb_measure_both(u.env.arena, &u.diag, &spec, &device, &bytes, &ns));
    assert_int_equal(bytes, peak_bytes);
    assert_int_equal(ns, step_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(categories_sum_to_the_peak),
        TEST(steps_begin_with_parameters_and_states),
        TEST(what_layers_keep),
        TEST(norms_in_one_kernel),
        TEST(norms_are_written_out),
        TEST(products_take_workspaces),
        TEST(levers_move_the_peak),
        TEST(states_in_eight_bits),
        TEST(inputs_go_to_the_host),
        TEST(shards_are_updated_in_the_pass),
        TEST(shards_on_the_host),
        TEST(blocks_above_a_size_are_not_split),
        TEST(casts_are_of_what_has_another_type),
        TEST(segments_lie_side_by_side),
        TEST(nothing_is_taken_for_nothing),
        TEST(what_is_not_known_is_refused),
        TEST(both_are_told_as_each_alone),
    };
    return cmocka_run_group_tests_name("torch", tests, NULL, NULL);
}
