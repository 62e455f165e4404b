/* sim/eager/eager, sim/eager/timed: what the program of an eager framework's step counts, against
 * arithmetic by hand, and what each key costs. */
#include "tests/unit/unit.h"

#include <math.h>

#include "base/str.h"
#include "hw/device.h"
#include "models/support.h"
#include "sim/engine/run.h"
#include "sim/eager/timed.h"
#include "tests/unit/unit_spec.h"

static struct unit u;
static struct hb_device dev;

static int start(void **state)
{
    (void)state;
    unit_start(&u);
    assert_true(hb_device_load(u.env.arena, &u.diag, HB_SOURCE_DIR, "nvidia-h100",
                               (struct hb_loc){0}, &dev));
    return 0;
}

static int end(void **state)
{
    (void)state;
    unit_end(&u);
    return 0;
}

/* A dense model of 8 layers on 8 devices; more: further keys, one a line. */
static struct hb_spec read_spec(const char *mesh, const char *more)
{
    const char *text = hb_arena_printf(
        u.env.arena,
        "model:\n"
        "  d_model: 4096\n"
        "  vocab: 32000\n"
        "  blocks:\n"
        "    - {name: dense, repeat: 8, attention: {heads: 32, kv_heads: 8, kernel: flash},\n"
        "       mlp: {kind: swiglu, d_ff: 14336}}\n"
        "batch: {global: 64, seq: 4096%s}\n"
        "hardware: {device: nvidia-h100, count: 8}\n"
        "compiler: torch\n"
        "mesh: {%s}\n%s",
        more, mesh, strstr(more, "remat") ? "" : "remat: {policy: none}\n");
    return unit_spec(&u, text);
}

static struct hb_timing run_spec(const struct hb_spec *spec, struct hb_program *p)
{
    struct hb_timing t;
    assert_true(hb_spec_timed(&u.diag, NULL, spec));
    assert_true(hb_timed_lower(u.env.arena, &u.diag, spec, p));
    hb_run_timing(u.env.arena, p, &dev, &t);
    return t;
}

static double seconds(const char *mesh, const char *more)
{
    struct hb_program p;
    struct hb_spec spec = read_spec(mesh, more);
    return (double)run_spec(&spec, &p).step_ns * 1e-9;
}

static double flops(const char *mesh, const char *more)
{
    struct hb_program p;
    struct hb_spec spec = read_spec(mesh, more);
    return run_spec(&spec, &p).flops;
}

static double sum_sent(const struct hb_program *p, enum hb_op_kind kind, enum hb_axis axis)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->op_count; i++) {
        double times = 1;
        for (uint32_t loop = p->ops[i].loop; loop != HB_NONE; loop = p->loops[loop].parent)
            times *= (double)p->loops[loop].trips;
        if (p->ops[i].kind == kind && p->ops[i].axis == axis)
            sum += times * p->ops[i].sent_bytes;
    }
    return sum;
}

/* 6 operations a weight and token in products, 7 x s / 2 x 2 x width in attention. */
static const double layer_weights = 4096.0 * (4096 + 2 * 1024 + 4096) + 3.0 * 4096 * 14336;
static const double tables = 2 * 32000.0 * 4096; /* embedding and head */
static const double tokens = 8.0 * 4096;
enum { LAYERS = 8 };

static double expected_flops(double remat)
{
    double products = tokens * ((6 + 2 * remat) * LAYERS * layer_weights + 6 * 4096.0 * 32000);
    double scores = LAYERS * tokens * 2 * (4096 / 2) * 2 * 4096.0;
    return products + scores * (3.5 + remat);
}

static void products_count_six_operations_a_weight(void **state)
{
    (void)state;
    assert_true(fabs(flops("fsdp: 8", "") / expected_flops(0) - 1) < 1e-9);
    assert_true(fabs(flops("data: 8", ", accumulate: 4") / expected_flops(0) - 1) < 1e-9);
    assert_true(fabs(flops("data: 2, tensor: 4", "") / expected_flops(0) - 1) < 1e-9);
    assert_true(fabs(flops("data: 2, sequence: 4", "") / expected_flops(0) - 1) < 1e-9);
}

/* Torch's checkpoint leaves out what nothing reads, from the last product on; Megatron's does not.
 */
static void remat_runs_the_forward_pass_again(void **state)
{
    (void)state;
    double last = 2 * tokens * LAYERS * 4096.0 * 14336;
    double titan = flops("fsdp: 8", "}\nremat: {policy: full");
    double megatron = flops("fsdp: 8", "}\nruntime: {framework: megatron}\nremat: {policy: full");
    double half = flops("fsdp: 8", "}\nruntime: {framework: megatron}\n"
                                   "remat: {policy: full, every: 2");
    assert_true(fabs(titan / (expected_flops(1) - last) - 1) < 1e-9);
    assert_true(fabs(megatron / expected_flops(1) - 1) < 1e-9);
    assert_true(fabs(half / ((expected_flops(0) + expected_flops(1)) / 2) - 1) < 1e-9);
    double names =
        flops("fsdp: 8", "}\nremat: {policy: names, save: [q, k, v, attn_ctx, attn_out, mlp_up]");
    double gate = 2 * tokens * LAYERS * 4096.0 * 14336;
    assert_true(fabs(names / (expected_flops(0) + gate) - 1) < 1e-9);
}

/* Every layer's weights once more than there are layers (one ahead), each way. */
static void fsdp_gathers_each_way(void **state)
{
    (void)state;
    struct hb_program p;
    double layer = 2 * (layer_weights + 2 * 4096);
    struct hb_spec spec = read_spec("fsdp: 8", "");
    run_spec(&spec, &p);
    double both = 2 * (LAYERS + 1) * layer; /* embedding and head stay from forward to backward */
    assert_true(fabs(sum_sent(&p, HB_OP_ALL_GATHER, HB_AX_FSDP) / (both + 2 * tables) - 1) < 1e-9);
    double sums = sum_sent(&p, HB_OP_REDUCE_SCATTER, HB_AX_FSDP);
    assert_true(fabs(sums / (LAYERS * 2 * layer + 4 * tables) - 1) < 1e-9);
    spec = read_spec("fsdp: 8", "}\nsharding: {reshard_after_forward: false");
    run_spec(&spec, &p);
    assert_true(fabs(sum_sent(&p, HB_OP_ALL_GATHER, HB_AX_FSDP) / (both / 2 + 2 * tables) - 1) <
                1e-9);
    spec = read_spec("fsdp: 8", "");
    spec.model.tied_embeddings = true;
    run_spec(&spec, &p);
    assert_true(fabs(sum_sent(&p, HB_OP_ALL_GATHER, HB_AX_FSDP) / (both + tables) - 1) < 1e-9);
}

/* Gradients are summed over data once a step, however many microbatches there are. */
static void data_is_summed_in_the_last_microbatch(void **state)
{
    (void)state;
    struct hb_program one, four;
    struct hb_spec spec = read_spec("data: 8", "");
    run_spec(&spec, &one);
    spec = read_spec("data: 8", ", accumulate: 4");
    run_spec(&spec, &four);
    double sent = sum_sent(&one, HB_OP_ALL_REDUCE, HB_AX_DATA);
    assert_true(fabs(sent / (4 * (LAYERS * (layer_weights + 2 * 4096) + tables)) - 1) < 1e-9);
    assert_true(sum_sent(&four, HB_OP_ALL_REDUCE, HB_AX_DATA) == sent);
    spec = read_spec("data: 8", "}\nsharding: {optimizer_over_data: true");
    run_spec(&spec, &one);
    assert_true(sum_sent(&one, HB_OP_ALL_REDUCE, HB_AX_DATA) == 0);
    assert_true(sum_sent(&one, HB_OP_REDUCE_SCATTER, HB_AX_DATA) == sent);
    assert_true(fabs(sum_sent(&one, HB_OP_ALL_GATHER, HB_AX_DATA) / sent - 1) < 1e-9);
}

/* Megatron overlaps the sum with the backward pass only under its distributed optimizer, and what
 * that has updated is gathered one layer ahead in the pass forwards: then no more than a layer's
 * way and the ends' are waited for. */
static void megatron_sums_after_the_backward_pass(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_spec spec = read_spec("data: 8", "}\nruntime: {framework: megatron");
    struct hb_timing late = run_spec(&spec, &p);
    double sent = sum_sent(&p, HB_OP_ALL_REDUCE, HB_AX_DATA);
    assert_true(fabs(sent / (4 * (LAYERS * (layer_weights + 2 * 4096) + tables)) - 1) < 1e-9);
    enum hb_stream stream = HB_STREAM_COLLECTIVE + HB_AX_DATA;
    assert_true((double)late.exposed_ns[stream] > 0.9 * (double)late.busy_ns[stream]);
    spec.sharding.optimizer_over_data = true;
    struct hb_timing split = run_spec(&spec, &p);
    assert_true(split.exposed_ns[stream] * 4 < split.busy_ns[stream]);
    assert_true(split.step_ns < late.step_ns);
}

/* Two layers a stage in two chunks: the same work, and the same is sent; all but the first chunk's
 * sums (the last in time), the head's and the table's hide behind other chunks. */
static void megatron_sums_a_chunk_beside_the_next(void **state)
{
    (void)state;
    static const char form[] =
        "}\npipeline: {schedule: interleaved, microbatches: 16, repeats: 2}\n"
        "runtime: {framework: megatron}\n"
        "sharding: {optimizer_over_data: %s";
    const char *split = hb_arena_printf(u.env.arena, form, "true");
    const char *whole = hb_arena_printf(u.env.arena, form, "false");
    static const char mesh[] = "data: 2, pipeline: 4";
    struct hb_program p;
    struct hb_spec spec = read_spec(mesh, whole);
    struct hb_timing late = run_spec(&spec, &p);
    double sent = sum_sent(&p, HB_OP_ALL_REDUCE, HB_AX_DATA);
    spec = read_spec(mesh, split);
    struct hb_timing rounds = run_spec(&spec, &p);
    assert_true(fabs(sum_sent(&p, HB_OP_REDUCE_SCATTER, HB_AX_DATA) / sent - 1) < 1e-9);
    assert_true(fabs(sum_sent(&p, HB_OP_ALL_GATHER, HB_AX_DATA) / sent - 1) < 1e-9);
    assert_true(fabs(rounds.flops / late.flops - 1) < 1e-9);
    enum hb_stream stream = HB_STREAM_COLLECTIVE + HB_AX_DATA;
    double chunk = (layer_weights + 2 * 4096) / (2 * (layer_weights + 2 * 4096) + tables / 2);
    double ends = tables / 2 / (2 * (layer_weights + 2 * 4096) + tables / 2);
    assert_true((double)rounds.exposed_ns[stream] <
                (chunk + ends) * (double)rounds.busy_ns[stream]);
    assert_true(rounds.step_ns < late.step_ns);
}

/* Work as a multiple of the microbatches': (m + (P - 1) / v) / m. */
static void a_pipeline_fills_and_drains(void **state)
{
    (void)state;
    static const char form[] = "}\npipeline: {schedule: %s, microbatches: 16, repeats: %d";
    const char *plain = hb_arena_printf(u.env.arena, form, "1f1b", 1);
    const char *inter = hb_arena_printf(u.env.arena, form, "interleaved", 2);
    const char *zero = hb_arena_printf(u.env.arena, form, "zero_bubble", 1);
    double head = 6 * tokens * 4 * 4096.0 * 32000; /* the last stage's alone, all microbatches */
    double layers = (expected_flops(0) - head / 4);
    assert_true(fabs(flops("data: 2, pipeline: 4", plain) / (layers * 19 / 16 + head) - 1) < 1e-9);
    assert_true(fabs(flops("data: 2, pipeline: 4", inter) / (layers * 17.5 / 16 + head) - 1) <
                1e-9);
    assert_true(seconds("data: 2, pipeline: 4", inter) < seconds("data: 2, pipeline: 4", plain));
    assert_true(seconds("data: 2, pipeline: 4", zero) < seconds("data: 2, pipeline: 4", plain));
}

static void what_keys_cost(void **state)
{
    (void)state;
    double plain = seconds("fsdp: 8", "");
    assert_true(seconds("fsdp: 8", "}\nprecision: {fp8: tensorwise") < 0.9 * plain);
    assert_true(seconds("fsdp: 8", "}\nruntime: {compile: true") < plain);
    assert_true(seconds("fsdp: 8", "}\nloss: {kernel: fused") < plain);
    assert_true(seconds("fsdp: 8", "}\nremat: {policy: full") > 1.2 * plain);
    /* Tensor parallelism waits for its collectives, Megatron hides half of the way back. */
    static const char split[] = "}\nsharding: {residual_over_tensor: true";
    static const char megatron[] = "}\nruntime: {framework: megatron, compile: true}\n"
                                   "sharding: {residual_over_tensor: true";
    static const char titan[] = "}\nruntime: {compile: true}\n"
                                "sharding: {residual_over_tensor: true";
    assert_true(seconds("tensor: 8", split) > plain);
    assert_true(seconds("tensor: 8", megatron) < seconds("tensor: 8", titan));
    /* A reference runs forwards, a third of a step. */
    double alone = seconds("fsdp: 8", "}\nloss: {kind: grpo, reference: false");
    double both = seconds("fsdp: 8", "}\nloss: {kind: grpo");
    assert_true(both > 1.2 * alone && both < 1.4 * alone);
    assert_true(seconds("fsdp: 8", "}\nloss: {kind: grpo, entropy: false") < both);
    /* A value model runs both ways, without logits. */
    double value = seconds("fsdp: 8", "}\nloss: {kind: grpo, reference: false, value: true");
    assert_true(value > 1.6 * alone && value < 2 * alone);
    /* Asynchronous: the same is sent, beside the products; Megatron hid half of the way back. */
    static const char beside[] = "}\nruntime: {framework: megatron, async_tp: true}\n"
                                 "sharding: {residual_over_tensor: true";
    assert_true(seconds("tensor: 8", beside) < 0.95 * seconds("tensor: 8", megatron));
    static const char async[] = "}\nruntime: {compile: true, async_tp: true}\n"
                                "sharding: {residual_over_tensor: true";
    struct hb_program waits, hides;
    struct hb_spec one = read_spec("tensor: 8", titan), other = read_spec("tensor: 8", async);
    int64_t slow_ns = run_spec(&one, &waits).step_ns, fast_ns = run_spec(&other, &hides).step_ns;
    assert_true(fast_ns < slow_ns * 9 / 10);
    for (int k = 0; k < 2; k++) {
        enum hb_op_kind kind = k ? HB_OP_ALL_GATHER : HB_OP_REDUCE_SCATTER;
        assert_true(
            fabs(sum_sent(&waits, kind, HB_AX_TENSOR) - sum_sent(&hides, kind, HB_AX_TENSOR)) < 1);
        assert_true(sum_sent(&hides, kind, HB_AX_TENSOR) > 0);
    }
}

/* Beside collectives computing is slower; without them the key does nothing. */
static void overlap_slows_computing(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_spec alone = read_spec("data: 8", "");
    alone.mesh[HB_AX_DATA] = alone.hardware.count = 1;
    double fsdp = seconds("fsdp: 8", "");
    int64_t before_ns = run_spec(&alone, &p).step_ns;
    dev.overlap_slowdown = 0;

    assert_true(seconds("fsdp: 8", "") < 0.999 * fsdp);
    assert_int_equal(run_spec(&alone, &p).step_ns, before_ns);
}

static void memory_is_refused_where_only_time_is_known(void **state)
{
    (void)state;
    struct hb_spec spec = read_spec("fsdp: 8", "");
    assert_false(spec.model.tied_embeddings);
    spec.optimizer.name = HB_OPT_MUON;
    assert_true(hb_spec_timed(&u.diag, NULL, &spec));
    assert_false(hb_spec_supported(&u.diag, NULL, &spec));
    assert_non_null(strstr(u.diag.entries[0].text, "optimizer.name: torch.optim.Muon is"));
}

/* Of XLA programs: 8 bits speed up the layers' products alone, a depth of multi-token prediction is
 * a layer and a pass of the head more. */
static void xla_steps_beyond_memory(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_spec spec = read_spec("fsdp: 8", "");
    spec.compiler = HB_XLA_GPU;
    spec.stack.form = HB_FORM_SCAN;
    struct hb_timing plain = run_spec(&spec, &p);
    double wide = sum_sent(&p, HB_OP_ALL_GATHER, HB_AX_FSDP);
    spec.precision.fp8 = HB_FP8_TENSORWISE;
    struct hb_timing narrow = run_spec(&spec, &p);
    assert_true(narrow.flops == plain.flops);
    assert_true((double)narrow.step_ns < 0.9 * (double)plain.step_ns);
    double gathered = sum_sent(&p, HB_OP_ALL_GATHER, HB_AX_FSDP);
    double ends = 2 * 2 * 32000 * 4096.0; /* table and head stay in bf16 */
    assert_true(fabs((gathered - ends) * 2 / (wide - ends) - 1) < 0.2);
    spec.precision.fp8_gather = true; /* of experts alone */
    run_spec(&spec, &p);
    assert_true(fabs(sum_sent(&p, HB_OP_ALL_GATHER, HB_AX_FSDP) / gathered - 1) < 1e-9);
    spec.precision.fp8 = HB_FP8_NONE;
    spec.precision.fp8_gather = false;
    spec.model.mtp = 1;
    struct hb_timing more = run_spec(&spec, &p);
    double layer = tokens * 6 * layer_weights, head = tokens * 6 * 4096.0 * 32000;
    double scores = tokens * 2 * (4096 / 2 + 64) * 2 * 4096.0 * 3.5;
    double joint = tokens * 6 * 2 * 4096.0 * 4096;
    assert_true(fabs((more.flops - plain.flops) / (layer + head + scores + joint) - 1) < 1e-3);
}

static double sum_moved(const struct hb_program *p, const char *name)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->op_count; i++)
        if (hb_str_same(p->ops[i].name, name))
            sum += p->ops[i].moved_bytes;
    return sum;
}

static double quantised(const char *fp8, const char *framework, const char *device)
{
    struct hb_program p;
    struct hb_spec spec = read_spec(
        "fsdp: 8", hb_arena_printf(u.env.arena, "}\nprecision: {fp8: %s}\nruntime: {framework: %s",
                                   fp8, framework));
    spec.hardware.device = device;
    run_spec(&spec, &p);
    return sum_moved(&p, "quantise");
}

/* Bytes an element for one layer's products: forwards 5 of the input and, outside Megatron, 5 of
 * the weight; backwards 5 of the output's gradient, and 2 of each transposed copy but on Blackwell;
 * what torchao keeps in high precision it quantises again. Scales a row: 4 of each gradient that
 * the backward pass makes, scaled after the product. */
static void quantising_passes(void **state)
{
    (void)state;
    double in = tokens * (4 * 4096.0 + 2 * 4096 + 14336), w = layer_weights;
    double out = tokens * (4096.0 + 2 * 1024 + 4096 + 2 * 14336 + 4096);
    double fused_in = tokens * (2 * 4096.0 + 4096 + 14336);
    const struct {
        const char *fp8, *framework, *device;
        double bytes;
    } cases[] = {
        {"tensorwise", "torchtitan", "nvidia-h100", 12 * in + 12 * w + 7 * out},
        {"tensorwise", "torchtitan", "nvidia-b200", 10 * in + 10 * w + 5 * out},
        {"rowwise", "torchtitan", "nvidia-h100", 12 * in + 12 * w + 8 * out},
        {"tensorwise", "megatron", "nvidia-h100", 7 * fused_in + 2 * w + 7 * out},
        {"mxfp8", "torchtitan", "nvidia-b200", 6 * in + 6 * w + 6 * out},
        {"mxfp8", "megatron", "nvidia-b200", 4 * fused_in + 4 * out},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(
            fabs(quantised(cases[i].fp8, cases[i].framework, cases[i].device) / cases[i].bytes -
                 1) < 1e-9);
}

/* torchtitan's ring in f32, of four ranks: three joinings, and casts once; Megatron's kernel has
 * none. What goes round has as many heads as the queries, and nothing hides it when compiled: torch
 * waits for a traced collective where it starts. */
static void rings_are_joined_by_kernels(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_spec spec = read_spec("fsdp: 2, sequence: 4", "");
    spec.runtime.framework = HB_FW_TORCHTITAN;
    struct hb_timing t = run_spec(&spec, &p);
    double elements = tokens * 4096.0;
    assert_true(fabs(sum_moved(&p, "the ring's steps joined") / (3 * 128 * elements) - 1) < 1e-9);
    enum { RING = HB_STREAM_COLLECTIVE + HB_AX_SEQUENCE };
    assert_true(t.exposed_ns[RING] < t.busy_ns[RING]);
    assert_true(fabs(sum_moved(&p, "the ring's casts") / (30 * elements) - 1) < 1e-9);
    double sent = sum_sent(&p, HB_OP_ALL_GATHER, HB_AX_SEQUENCE);
    spec.runtime.compile = true;
    t = run_spec(&spec, &p);
    assert_true(t.exposed_ns[RING] == t.busy_ns[RING] && t.busy_ns[RING] > 0);
    assert_true(fabs(sum_moved(&p, "the ring's steps joined") / (3 * 78 * elements) - 1) < 1e-9);
    double sums = sum_sent(&p, HB_OP_REDUCE_SCATTER, HB_AX_SEQUENCE); /* in f32; two gathers */
    assert_true(fabs(sums / sent - 1) < 1e-9);
    spec.runtime.compile = false;
    spec.runtime.framework = HB_FW_MEGATRON;
    run_spec(&spec, &p);
    assert_true(sum_moved(&p, "the ring's steps joined") == 0);
    assert_true(fabs(sum_sent(&p, HB_OP_ALL_GATHER, HB_AX_SEQUENCE) * 4 / sent - 1) < 1e-9);
}

/* A sum of its own in eager torch only: of q, k, v, both halves of the MLP and both outputs. */
static void biases_have_gradients(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_spec spec = read_spec("fsdp: 8", "");
    struct hb_block block = spec.model.blocks[0];
    run_spec(&spec, &p);
    assert_true(sum_moved(&p, "gradient of the bias") == 0);
    spec.model.blocks = &block;
    block.attention.bias = HB_BIAS_ALL;
    block.mlp.bias = true;
    run_spec(&spec, &p);
    double elements = tokens * (4096.0 + 2 * 1024 + 4096 + 14336 + 4096);
    assert_true(fabs(sum_moved(&p, "gradient of the bias") / (2 * elements) - 1) < 1e-9);
    spec.runtime.compile = true;
    run_spec(&spec, &p);
    assert_true(sum_moved(&p, "gradient of the bias") == 0);
}

/* 128 queries that each see 128 keys back meet two tiles of 128. */
static void windows_meet_whole_tiles(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_spec spec = read_spec("fsdp: 8", "");
    double whole = run_spec(&spec, &p).flops;
    int64_t window[] = {128};
    struct hb_block block = spec.model.blocks[0];
    block.attention.windows = window;
    block.attention.window_count = 1;
    spec.model.blocks = &block;
    double less = whole - run_spec(&spec, &p).flops;
    double keys = 4096 / 2 - (128 + 128 - 128 * 128 / (2 * 4096.0));
    assert_true(fabs(less / (3.5 * LAYERS * tokens * 2 * keys * 2 * 4096) - 1) < 1e-9);
}

/* Tiles of 512 rows that two experts share are worked on twice; so many products of a layer: three
 * forwards, six backwards. */
static enum hb_flash_kernel flash_of(const char *more)
{
    struct hb_program p;
    struct hb_spec spec = read_spec("fsdp: 8", more);
    spec.model.positions = 4096;
    run_spec(&spec, &p);
    return p.flash;
}

static void kernels_by_framework(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_spec spec = read_spec("fsdp: 8", "");
    run_spec(&spec, &p);
    assert_int_equal(p.flash, HB_FLASH_TORCH);
    assert_int_equal(flash_of(""), HB_FLASH_TRITON);
    assert_int_equal(flash_of("}\nruntime: {compile: true"), HB_FLASH_TORCH);
    assert_int_equal(flash_of("}\nruntime: {framework: megatron"), HB_FLASH_LIBRARY);
}

/* Before and after the experts, both ways, where a device holds several and they lie apart. */
static void rows_are_sorted_by_local_expert(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_spec spec = read_spec("expert: 8", "}\nruntime: {framework: megatron");
    struct hb_block block = spec.model.blocks[0];
    block.moe = (struct hb_moe){.experts = 16, .top_k = 2, .d_ff = 1024, .kind = block.mlp.kind};
    spec.model.blocks = &block;
    spec.sharding.expert_tensor = 1;
    run_spec(&spec, &p);
    double pass = 4 * 2 * tokens * 4096;
    assert_true(fabs(sum_moved(&p, "sort rows by local expert") / (4 * pass) - 1) < 1e-9);
    block.moe.experts = 8;
    run_spec(&spec, &p);
    assert_true(sum_moved(&p, "sort rows by local expert") == 0);
}

static const struct hb_op *find_op(const struct hb_program *p, const char *name)
{
    for (uint32_t i = 0; i < p->op_count; i++)
        if (hb_str_same(p->ops[i].name, name))
            return &p->ops[i];
    return NULL;
}

/* The batch of all devices, gathered for the experts' inputs, is a place in memory, no traffic. */
/* Eight experts on two ranks, each split by the tensor axis. */
static struct hb_spec read_experts(const char *framework, struct hb_block *block)
{
    struct hb_spec spec = read_spec("data: 2, expert: 2, tensor: 2",
                                    hb_arena_printf(u.env.arena,
                                                    "}\nruntime: {framework: %s}\n"
                                                    "sharding: {residual_over_tensor: true",
                                                    framework));
    *block = spec.model.blocks[0];
    block->moe = (struct hb_moe){
        .experts = 8, .top_k = 2, .d_ff = 4096, .kind = block->mlp.kind, .router_dtype = HB_DT_F32};
    spec.model.blocks = block;
    spec.sharding.expert_tensor = 2;
    return spec;
}

/* Megatron exchanges what a rank has of the sequence and gathers it behind that, both ways; others
 * send all rows from each rank of the tensor axis. Four exchanges a layer. */
static void experts_rows_are_gathered_behind_the_exchange(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_block block;
    struct hb_spec spec = read_experts("torchtitan", &block);
    run_spec(&spec, &p);
    double rows = 16 * 4096.0 * 2, row = 2 * 4096; /* of two sequences of eight times two experts */
    assert_true(fabs(sum_sent(&p, HB_OP_ALL_TO_ALL, HB_AX_EXPERT) / (4 * LAYERS * rows * row * 2) -
                     1) < 1e-9);
    double before = sum_sent(&p, HB_OP_ALL_GATHER, HB_AX_TENSOR);
    spec.runtime.framework = HB_FW_MEGATRON;
    run_spec(&spec, &p);
    assert_true(
        fabs(sum_sent(&p, HB_OP_ALL_TO_ALL, HB_AX_SEQUENCE) / (4 * LAYERS * rows / 2 * row * 2) -
             1) < 1e-9);
    double gathered = sum_sent(&p, HB_OP_ALL_GATHER, HB_AX_TENSOR) - before;
    double again = LAYERS * 16 * 4096.0 * row; /* Megatron gathers the residual again backwards */
    assert_true(fabs(gathered / (2 * LAYERS * rows * row + again) - 1) < 1e-9);
    assert_true(find_op(&p, "sum of the experts' shares")->group == 2);
    const struct hb_op *sent = find_op(&p, "tokens to the experts"); /* as cp's: behind tensor */
    assert_true(sent->group == 2 && sent->stream == HB_STREAM_COLLECTIVE + HB_AX_EXPERT);
    spec.sharding.expert_tensor = 1; /* over tensor's ranks, too, and nothing is gathered */
    run_spec(&spec, &p);
    sent = find_op(&p, "tokens to the experts");
    assert_true(sent->group == 4 && sent->axis == HB_AX_TENSOR);
    assert_true(fabs((sum_sent(&p, HB_OP_ALL_GATHER, HB_AX_TENSOR) - before) / again - 1) < 1e-9);
}

/* Megatron's router multiplies in the layer's type whatever its scores are in. */
static void megatron_routes_in_the_layers_type(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_block block;
    struct hb_spec spec = read_experts("megatron", &block);
    run_spec(&spec, &p);
    assert_int_equal(find_op(&p, "router")->dtype, HB_DT_BF16);
    double elements = 16 * 4096.0 / 2 * 4096;
    assert_true(fabs(sum_moved(&p, "router") / ((2 + 2 + 20) * elements) - 1) < 1e-9);
    block.moe.router_dtype = HB_DT_F64;
    run_spec(&spec, &p);
    assert_int_equal(find_op(&p, "router")->dtype, HB_DT_F64);
    spec = read_experts("torchtitan", &block);
    run_spec(&spec, &p);
    assert_int_equal(find_op(&p, "router")->dtype, HB_DT_F32);
}

/* In f32, times the token's weight: 28 bytes an element and 40 backwards. */
static void experts_biases_are_weighed(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_block block;
    struct hb_spec spec = read_experts("megatron", &block);
    run_spec(&spec, &p);
    assert_true(sum_moved(&p, "bias of the experts, weighed") == 0);
    block.moe.bias = true;
    run_spec(&spec, &p);
    double elements = 16 * 4096.0 * 2 * 4096;
    assert_true(fabs(sum_moved(&p, "bias of the experts, weighed") / (68 * elements) - 1) < 1e-9);
}

static void a_gathered_batch_is_not_walked_over(void **state)
{
    (void)state;
    static const char form[] =
        "model:\n  d_model: 1024\n  vocab: 32000\n  blocks:\n"
        "    - {name: m, repeat: 2, attention: {heads: 8, kernel: flash},\n"
        "       moe: {experts: 16, top_k: 2, d_ff: 1024, dispatch: einsum, capacity_factor: 1}}\n"
        "batch: {global: %d, seq: 2048}\nremat: {policy: none}\ncompiler: xla-tpu\n"
        "mesh: {fsdp: %d, expert: 2}\nhardware: {device: tpu-v6e, count: %d}\n";
    double bytes[2];
    for (int i = 0; i < 2; i++) {
        int fsdp = 8 << 2 * i;
        struct hb_spec spec;
        struct hb_node *root;
        struct hb_program p;
        const char *text = hb_arena_printf(u.env.arena, form, 2 * fsdp, fsdp, 2 * fsdp);
        assert_true(hb_yaml_parse(u.env.arena, &u.diag, "test", text, strlen(text), &root));
        assert_true(hb_schema_from_node(u.env.arena, &u.diag, root, HB_SOURCE_DIR, &spec));
        run_spec(&spec, &p);
        const struct hb_op *op = find_op(&p, "backward of expert inputs");
        assert_non_null(op);
        bytes[i] = op->moved_bytes;
    }
    assert_true(bytes[0] == bytes[1]);
    /* of the two sequences of the expert axis tokens, the rows of 8 experts, places for 256 of each
     * (2 of 16 experts a token), and the masks that say which */
    assert_true(bytes[0] == 2 * 2 * ((2048.0 + 8 * 256) * 1024 + 2048 * 8 * 256));
}

/* Two layers on v6e, with two sequences of 2048 tokens on a device. */
static struct hb_spec xla_spec(const char *mlp, const char *mesh, const char *fp8)
{
    return unit_spec(
        &u, hb_arena_printf(u.env.arena,
                            "model:\n  d_model: 1024\n  vocab: 32000\n  blocks:\n"
                            "    - {name: m, repeat: 2, attention: {heads: 8, kernel: flash},\n"
                            "       %s}\n"
                            "batch: {global: %d, seq: 2048}\nremat: {policy: none}\n"
                            "precision: {params: f32, compute: bf16, fp8: %s}\n"
                            "compiler: xla-tpu\nmesh: {%s}\n"
                            "hardware: {device: tpu-v6e, count: %d}\n",
                            mlp, strstr(mesh, "data") ? 32 : 16, *fp8 ? fp8 : "none", mesh,
                            strstr(mesh, "data") ? 16 : 8));
}

static void grouped_products_visit_shared_tiles(void **state)
{
    (void)state;
    static const char form[] =
        "model:\n  d_model: 1024\n  vocab: 32000\n  blocks:\n"
        "    - {name: m, repeat: 2, attention: {heads: 8, kernel: flash},\n"
        "       moe: {experts: 16, top_k: 2, d_ff: 1024, kernel: %s, dispatch: ragged}}\n"
        "batch: {global: 4, seq: 2048}\nremat: {policy: none}\ncompiler: xla-tpu\n"
        "hardware: {device: tpu-v6e, count: 1}\n";
    static const char *const kernels[] = {"gmm", "tokamax", "ragged_dot"};
    double got[3];
    for (int i = 0; i < 3; i++) {
        struct hb_spec spec;
        struct hb_node *root;
        struct hb_program p;
        const char *text = hb_arena_printf(u.env.arena, form, kernels[i]);
        assert_true(hb_yaml_parse(u.env.arena, &u.diag, "test", text, strlen(text), &root));
        assert_true(hb_schema_from_node(u.env.arena, &u.diag, root, HB_SOURCE_DIR, &spec));
        got[i] = run_spec(&spec, &p).flops;
    }
    double more = 2 * 9 * 2 * (15.0 * 512) * 1024 * 1024;
    assert_true(fabs((got[0] - got[2]) / more - 1) < 1e-9);
    assert_true(got[1] == got[0]);
}

/* XLA: those who share a gradient sum it, and then its copies do: of all layers, embedding or head.
 */
static void xla_sums_over_fsdp_and_data(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_spec spec = xla_spec("mlp: {d_ff: 4096}", "data: 2, fsdp: 8", "");
    run_spec(&spec, &p);
    double sums = 0;
    for (uint32_t i = 0; i < p.op_count; i++) {
        const struct hb_op *op = &p.ops[i];
        bool gradient = op->kind == HB_OP_REDUCE_SCATTER && op->phase != HB_PHASE_FORWARD;
        assert_int_equal(op->over_data, gradient);
        sums += op->over_data ? op->sent_bytes * (double)hb_program_times(&p, op) : 0;
    }
    double layer = 4 * 1024.0 * 1024 + 3 * 1024.0 * 4096;
    assert_true(sums >= 2 * (2 * layer + 32000.0 * 1024));
}

static double quantising_bytes(const char *fp8)
{
    struct hb_program p;
    struct hb_spec spec =
        xla_spec("moe: {experts: 16, top_k: 2, d_ff: 512, dispatch: ragged}", "fsdp: 8", fp8);
    double sum = 0;
    run_spec(&spec, &p);
    for (uint32_t i = 0; i < p.op_count; i++)
        if (p.ops[i].kind == HB_OP_ELEMENTWISE && strncmp(p.ops[i].name, "quantise", 8) == 0)
            sum += p.ops[i].moved_bytes * (double)hb_program_times(&p, &p.ops[i]);
    return sum;
}

/* Three bytes an element: rows as they were sorted, and weights each time that they come over the
 * links, but not in eight bits; four: gradients as they were sorted back, which become two. */
static void experts_operands_are_quantised_in_passes(void **state)
{
    (void)state;
    double rows = 2 * 2048 * 2, weights = 3 * 16 * 512;
    assert_true(quantising_bytes("none") == 0);
    assert_true(quantising_bytes("tensorwise, fp8_gather: true") == 2 * (3 + 4) * rows * 1024);
    assert_true(quantising_bytes("tensorwise") == 2 * ((3 + 4) * rows + 2 * 3 * weights) * 1024);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(products_count_six_operations_a_weight),
                                       TEST(remat_runs_the_forward_pass_again),
                                       TEST(fsdp_gathers_each_way),
                                       TEST(data_is_summed_in_the_last_microbatch),
                                       TEST(megatron_sums_after_the_backward_pass),
                                       TEST(megatron_sums_a_chunk_beside_the_next),
                                       TEST(a_pipeline_fills_and_drains),
                                       TEST(what_keys_cost),
                                       TEST(overlap_slows_computing),
                                       TEST(memory_is_refused_where_only_time_is_known),
                                       TEST(xla_steps_beyond_memory),
                                       TEST(grouped_products_visit_shared_tiles),
                                       TEST(xla_sums_over_fsdp_and_data),
                                       TEST(experts_operands_are_quantised_in_passes),
                                       TEST(quantising_passes),
                                       TEST(rings_are_joined_by_kernels),
                                       TEST(biases_have_gradients),
                                       TEST(windows_meet_whole_tiles),
                                       TEST(kernels_by_framework),
                                       TEST(rows_are_sorted_by_local_expert),
                                       TEST(experts_rows_are_gathered_behind_the_exchange),
                                       TEST(megatron_routes_in_the_layers_type),
                                       TEST(experts_biases_are_weighed),
                                       TEST(a_gathered_batch_is_not_walked_over)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
