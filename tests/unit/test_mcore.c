/* sim/eager/mcore: what stands between Megatron's steps, what its layers keep, and how many
 * microbatches are alive on each rank of a pipeline, against arithmetic by hand. */
#include "tests/unit/each.h"

#include "models/support.h"
#include "sim/eager/mcore_plan.h"
#include "sim/eager/memory.h"
#include "sim/engine/check.h"
#include "sim/engine/run.h"
#include "sim/engine/step.h"
#include "tests/unit/unit_spec.h"

enum { D = 1024, FF = 4096, WORDS = 32000, SEQ = 2048, LAYERS = 8 };
static const int64_t mib = 1 << 20;

/* 8 layers on 8 devices; more: further keys, one a line, mesh among them. */
static struct hb_spec read_spec(const char *more)
{
    const char *text = hb_arena_printf(
        u.env.arena,
        "model:\n"
        "  d_model: 1024\n"
        "  vocab: 32000\n"
        "  blocks:\n"
        "    - {name: dense, repeat: 8, attention: {heads: 16, kv_heads: 4, head_dim: 64},\n"
        "       mlp: {kind: swiglu, d_ff: 4096}}\n"
        "batch: {global: 64, seq: 2048}\n"
        "precision: {params: bf16, master: f32, compute: bf16, grads: f32}\n"
        "hardware: {device: nvidia-h100, count: 8}\n"
        "compiler: torch\n%s%s",
        strstr(more, "runtime") ? "" : "runtime: {framework: megatron, grad_fusion: false}\n",
        more);
    return unit_spec(&u, text);
}

static struct hb_memory run_spec(const struct hb_spec *spec)
{
    struct hb_memory m = {0};
    struct hb_program p;
    assert_true(hb_spec_supported(&u.diag, NULL, spec));
    assert_true(hb_step_run(u.env.arena, &u.diag, spec, &p, &m));
    hb_program_check(&p);
    int64_t sum = 0;
    for (int c = 0; c < HB_CATEGORY_COUNT; c++)
        sum += m.category_bytes[c];
    assert_int_equal(sum, m.peak_bytes);
    return m;
}

static struct hb_memory run_keys(const char *more)
{
    struct hb_spec spec = read_spec(more);
    return run_spec(&spec);
}

/* A layer's parameters, split over so many. */
static int64_t layer_count(int64_t ways)
{
    return (D * (2 * 1024 + 2 * 256) + 3 * D * FF) / ways + 2 * D;
}

static const char *const eight = "mesh: {data: 8}\nremat: {policy: none}\n";

/* A rest that is not split off a block counts with it. */
static void assert_near(int64_t bytes, int64_t wanted)
{
    assert_true(bytes >= wanted && bytes <= wanted + 5 * mib);
}

static void buffers_between_steps(void **state)
{
    (void)state;
    int64_t n = LAYERS * layer_count(1) + 2 * WORDS * (int64_t)D + D;
    assert_near(run_keys(eight).argument_bytes, (18 * n + 105 * mib));
    struct hb_memory m = run_keys("mesh: {data: 8}\nremat: {policy: none}\n"
                                  "sharding: {optimizer_over_data: true}\n");
    assert_near(m.argument_bytes, (6 * n + 12 * n / 8 + 105 * mib));
    m = run_keys("mesh: {fsdp: 8}\nremat: {policy: none}\n"); /* Megatron-FSDP */
    assert_near(m.argument_bytes, 18 * n / 8 + 105 * mib);
    assert_true(m.category_bytes[HB_CAT_COMMUNICATION] == 2 * WORDS * (int64_t)D);
    m = run_keys("mesh: {data: 4, tensor: 2}\nremat: {policy: none}\n");
    n = LAYERS * layer_count(2) + WORDS * (int64_t)D + D;
    assert_near(m.argument_bytes, (18 * n + 105 * mib));
}

/* Of cuBLAS for either pass, of Transformer Engine, and four more of it with grouped products. */
static void workspaces_by_device(void **state)
{
    (void)state;
    struct hb_spec spec = read_spec(eight);
    int64_t newer = run_spec(&spec).argument_bytes;
    spec.hardware.device = "nvidia-a100-80gb";
    int64_t older = run_spec(&spec).argument_bytes;
    assert_near(newer - older, 2 * (32768 - 8320) * 1024 + (32 - 4) * mib);
    spec.runtime.blas_workspace = 32 * mib;
    assert_near(run_spec(&spec).argument_bytes - older, 2 * (32768 - 8320) * 1024);
    struct hb_block block = spec.model.blocks[0];
    block.moe = (struct hb_moe){.experts = 8,
                                .top_k = 1,
                                .d_ff = FF,
                                .kind = HB_MLP_SWIGLU,
                                .dispatch = HB_DISPATCH_ALLGATHER,
                                .router_dtype = HB_DT_F32};
    spec.model.blocks = &block;
    int64_t loop = run_spec(&spec).argument_bytes;
    spec.runtime.grouped_gemm = true;
    assert_int_equal(run_spec(&spec).argument_bytes - loop, 16 * mib);
}

/* Transformer Engine's stand-ins: one a shape, and the head's. */
static void fused_accumulation_keeps_stand_ins(void **state)
{
    (void)state;
    int64_t without = run_keys(eight).argument_bytes;
    int64_t with = run_keys("runtime: {framework: megatron, grad_fusion: true}\n"
                            "mesh: {data: 8}\nremat: {policy: none}\n")
                       .argument_bytes;
    int64_t shapes = D * (1536 + 1024 + 2 * FF + FF) + (int64_t)WORDS * D;
    assert_near(with - without, 2 * shapes);
}

/* The head's logits in two bytes and four; compiled with the exponentials in four beside them;
 * fused in two and two. */
static void logits_of_each_kernel(void **state)
{
    (void)state;
    const int64_t once = (int64_t)8 * SEQ * WORDS;
    struct hb_memory m = run_keys(eight);
    assert_int_equal(m.category_bytes[HB_CAT_LOGITS], 6 * once);
    m = run_keys("mesh: {data: 8}\nremat: {policy: none}\nloss: {kernel: jit}\n");
    assert_int_equal(m.category_bytes[HB_CAT_LOGITS], 10 * once);
    m = run_keys("mesh: {data: 8}\nremat: {policy: none}\nloss: {kernel: fused}\n");
    assert_int_equal(m.category_bytes[HB_CAT_LOGITS], 4 * once);
}

/* Norm's input and output twice, q, k, v, attention's output, gate, up and their product. */
static void what_a_layer_keeps(void **state)
{
    (void)state;
    const int64_t tokens = 8 * SEQ;
    int64_t layer = 8 * D + 2 * 1536 + 2 * 1024 + 4 * 16 + 6 * FF;
    int64_t saved = run_keys(eight).category_bytes[HB_CAT_SAVED];
    int64_t wanted = tokens * (LAYERS * layer + 4 * D); /* and the last norm's */
    assert_true(llabs(saved - wanted) <= wanted / 200);
    saved = run_keys("mesh: {data: 8}\nremat: {policy: full}\n").category_bytes[HB_CAT_SAVED];
    assert_int_equal(saved, tokens * (LAYERS * 2 * D + 4 * D));
    /* Norms of q and k keep the product's output whole, where v stays. */
    struct hb_spec spec = read_spec(eight);
    struct hb_block block = spec.model.blocks[0];
    block.attention.qk_norm = HB_QKN_LEARNED;
    spec.model.blocks = &block;
    saved = run_spec(&spec).category_bytes[HB_CAT_SAVED];
    wanted = tokens * (LAYERS * (layer + 2 * 1280) + 4 * D);
    assert_true(llabs(saved - wanted) <= wanted / 200);
}

/* Of 1F1B: as many microbatches as ranks from here to the end, no more than there are. */
static void ranks_hold_what_their_warm_up_says(void **state)
{
    (void)state;
    struct hb_memory m = run_keys("mesh: {data: 2, pipeline: 4}\nremat: {policy: full}\n"
                                  "pipeline: {schedule: 1f1b, microbatches: 16}\n");
    assert_int_equal(m.rank_count, 4);
    struct hb_spec spec = read_spec("mesh: {data: 2, pipeline: 4}\nremat: {policy: none}\n"
                                    "pipeline: {schedule: 1f1b, microbatches: 16}\n");
    for (int64_t rank = 0; rank < 4; rank++) {
        struct hb_mcore_plan plan;
        int64_t alive = 0, most = 0;
        hb_mcore_plan_make(u.env.arena, &spec, rank, &plan);
        for (uint32_t i = 0; i < plan.pass_count; i++) {
            alive += plan.passes[i].backward ? -1 : 1;
            most = alive > most ? alive : most;
        }
        assert_int_equal(alive, 0);
        assert_int_equal(most, 4 - rank);
    }
    int64_t once = 2 * SEQ * 2 * (2 * D) * 2; /* 2 sequences, 2 layers' inputs */
    assert_true(m.rank_peaks[1] - m.rank_peaks[2] >= once / 2);
}

/* The worked record: [0,1,1,1,1,1,1,0] over 4 ranks in 2 chunks. */
static void interleaved_chunks_go_in_groups(void **state)
{
    (void)state;
    struct hb_spec spec = read_spec("mesh: {data: 2, pipeline: 4}\nremat: {policy: none}\n"
                                    "pipeline: {schedule: interleaved, microbatches: 8, "
                                    "repeats: 2, layers: [0, 1, 1, 2, 1, 1, 2, 0]}\n");
    struct hb_mcore_plan plan;
    hb_mcore_plan_make(u.env.arena, &spec, 3, &plan);
    assert_int_equal(plan.chunk_count, 2);
    assert_int_equal(plan.chunks[0].end - plan.chunks[0].first, 2);
    assert_int_equal(plan.chunks[1].end - plan.chunks[1].first, 0);
    assert_true(plan.chunks[1].heads && !plan.chunks[0].embeds);
    for (int i = 0; i < 5; i++) { /* warm-up of 4, and one */
        assert_false(plan.passes[i].backward);
        assert_int_equal(plan.passes[i].chunk, i / 4);
    }
    assert_true(plan.passes[5].backward);
    assert_int_equal(plan.passes[5].chunk, 1);
}

static void gpipe_holds_all(void **state)
{
    (void)state;
    struct hb_memory gpipe = run_keys("mesh: {data: 2, pipeline: 4}\nremat: {policy: none}\n"
                                      "pipeline: {schedule: gpipe, microbatches: 16}\n");
    struct hb_memory other = run_keys("mesh: {data: 2, pipeline: 4}\nremat: {policy: none}\n"
                                      "pipeline: {schedule: 1f1b, microbatches: 16}\n");
    for (int i = 0; i < 4; i++)
        assert_true(gpipe.rank_peaks[i] > other.rank_peaks[i]);
}

/* Steady passes are told twice; as many more change nothing. */
static void further_microbatches_change_nothing(void **state)
{
    (void)state;
    struct hb_memory few = run_keys("mesh: {data: 1, pipeline: 8}\nremat: {policy: none}\n"
                                    "pipeline: {schedule: 1f1b, microbatches: 64}\n");
    struct hb_memory more = run_keys("mesh: {data: 1, pipeline: 8}\nremat: {policy: none}\n"
                                     "pipeline: {schedule: 1f1b, microbatches: 32}\n"
                                     "sharding: {optimizer_over_data: false}\n");
    assert_true(few.peak_bytes < more.peak_bytes); /* half the sequences each */
}

/* Of what the program keeps from step to step; no rest of a block counts. */
static int64_t static_bytes(const struct hb_spec *spec)
{
    struct hb_program p;
    int64_t sum = 0;
    assert_true(hb_spec_supported(&u.diag, NULL, spec));
    assert_true(hb_step_lower(u.env.arena, &u.diag, spec, &(struct hb_rank_ask){0}, &p));
    for (uint32_t i = 0; i < p.buf_count; i++)
        sum += p.bufs[i].output ? p.bufs[i].bytes : 0;
    return sum;
}

static int64_t category(const char *keys, enum hb_category which)
{
    return run_keys(keys).category_bytes[which];
}

/* Of a layer an MLP leaves its input alone, which the residual keeps; fp8 keeps inputs of products
 * in a byte, attention's output beside it. */
static void parts_that_run_again_and_eight_bits(void **state)
{
    (void)state;
    const int64_t tokens = 8 * SEQ, slack = tokens * D / 4;
    struct hb_spec fp8 = read_spec(eight);
    fp8.precision.fp8 = HB_FP8_TENSORWISE;
    int64_t all = category(eight, HB_CAT_SAVED);
    int64_t less =
        category("mesh: {data: 8}\nremat: {policy: none, modules: [mlp]}\n", HB_CAT_SAVED);
    assert_true(llabs(all - less - tokens * LAYERS * (2 * D + 6 * FF)) < slack);
    less = category("mesh: {data: 8}\nremat: {policy: none, modules: [layernorm]}\n", HB_CAT_SAVED);
    assert_int_equal(all, less); /* norms are in the products that follow */
    int64_t narrow = tokens * LAYERS * (2 * D + FF - 1024); /* what a byte each saves, and costs */
    less = run_spec(&fp8).category_bytes[HB_CAT_SAVED];
    assert_true(llabs(all - less - narrow) < slack);
}

/* The norm before experts goes where both it and they are made again: the experts' run reads what
 * was made then. */
static void norms_of_experts_that_run_again(void **state)
{
    (void)state;
    struct hb_spec spec = read_spec("mesh: {data: 8}\nremat: {policy: none}\n");
    struct hb_block b = spec.model.blocks[0];
    b.mlp.d_ff = 0;
    b.moe = (struct hb_moe){.experts = 8,
                            .top_k = 2,
                            .d_ff = 512,
                            .kind = HB_MLP_SWIGLU,
                            .dispatch = HB_DISPATCH_RAGGED,
                            .capacity_factor = 1};
    spec.model.blocks = &b;
    spec.remat.modules = 1u << HB_RM_MOE;
    int64_t experts = run_spec(&spec).peak_bytes;
    spec.remat.modules |= 1u << HB_RM_LAYERNORM;
    assert_int_equal(experts - run_spec(&spec).peak_bytes, LAYERS * 8 * SEQ * 2 * D);
}

/* Weights of products by row and by column; stored in 8 bits they have no other copy. */
static void weights_in_eight_bits(void **state)
{
    (void)state;
    int64_t linear = LAYERS * (layer_count(1) - 2 * D);
    struct hb_spec spec = read_spec(eight);
    int64_t plain = static_bytes(&spec);
    spec.precision.fp8 = HB_FP8_TENSORWISE;
    assert_int_equal(static_bytes(&spec) - plain, 2 * linear);
    spec.precision.fp8_params = true;
    assert_int_equal(static_bytes(&spec) - plain, 0);
    spec.hardware.device = "nvidia-b200"; /* no second layout */
    assert_int_equal(static_bytes(&spec) - plain, -linear);
    spec.precision.fp8 = HB_FP8_MXFP8;
    assert_int_equal(static_bytes(&spec) - plain, 0);
}

/* A depth: a layer, its product with the embedding, three norms; of its own logits
 * the f32 ones alone are there when the model's are. */
static void further_tokens(void **state)
{
    (void)state;
    struct hb_spec spec = read_spec(eight);
    int64_t plain = static_bytes(&spec), logits = run_spec(&spec).category_bytes[HB_CAT_LOGITS];
    spec.model.mtp = 2;
    assert_int_equal(static_bytes(&spec) - plain, 18 * 2 * (layer_count(1) + 2 * D * D + 3 * D));
    assert_int_equal(run_spec(&spec).category_bytes[HB_CAT_LOGITS], logits / 6 * (4 + 4 + 6));
}

/* Megatron's SGD with momentum keeps one state of each parameter; its distributed optimizer takes
 * Adam alone. */
static void momentum_keeps_one_state(void **state)
{
    (void)state;
    static const char whole[] = "mesh: {data: 8}\n";
    const int64_t all = 8 * layer_count(1) + 2 * 32000 * D + D;
    struct hb_spec adam = read_spec(whole),
                   momentum = read_spec("mesh: {data: 8}\noptimizer: {name: momentum}\n");
    assert_int_equal(static_bytes(&adam) - static_bytes(&momentum), 4 * all);
    momentum.sharding.optimizer_over_data = true;
    hb_diag_init(&u.diag, u.env.arena);
    assert_false(hb_spec_supported(&u.diag, NULL, &momentum));
    assert_non_null(strstr(u.diag.entries[0].text, "optimizer.name: Megatron's distributed"));
    hb_diag_init(&u.diag, u.env.arena);
}

static void what_is_not_known_is_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "mesh: {data: 8}\nremat: {policy: names, save: [], offload: [layer_in]}\n",
        "mesh: {data: 4, pipeline: 2}\n"
        "pipeline: {schedule: interleaved, repeats: 2, microbatches: 8, group: 3}\n",
        "mesh: {data: 8}\nloss: {kernel: linear}\n",
        "mesh: {data: 4, pipeline: 2}\npipeline: {schedule: zero_bubble}\n",
        "runtime: {framework: megatron, allocator: max_reserved}\nmesh: {data: 8}\n",
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
    struct hb_spec spec = read_spec(eight);
    spec.precision.fp8 = HB_FP8_ROWWISE;
    assert_false(hb_spec_supported(&u.diag, NULL, &spec));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(buffers_between_steps),
        TEST(workspaces_by_device),
        TEST(fused_accumulation_keeps_stand_ins),
        TEST(logits_of_each_kernel),
        TEST(what_a_layer_keeps),
        TEST(ranks_hold_what_their_warm_up_says),
        TEST(interleaved_chunks_go_in_groups),
        TEST(gpipe_holds_all),
        TEST(further_microbatches_change_nothing),
        TEST(parts_that_run_again_and_eight_bits),
        TEST(norms_of_experts_that_run_again),
        TEST(weights_in_eight_bits),
        TEST(further_tokens),
        TEST(momentum_keeps_one_state),
        TEST(what_is_not_known_is_refused),
    };
    return cmocka_run_group_tests_name("mcore", tests, NULL, NULL);
}
