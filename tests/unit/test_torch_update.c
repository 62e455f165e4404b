/* sim/eager/titan_update.c: rules that torch runs op by op, and torchtitan's average, against
 * arithmetic by hand; pipelines of whole weights. */
#include "tests/unit/torch_step.h"

enum { LAYERS = 4, D = 1024, FF = 4096, KV = 256, VOCAB = 32000, STEPS = 2 };

/* In the order of the model's parameters: rows, columns. */
static const int64_t layer[][2] = {{D, D},  {KV, D}, {KV, D}, {D, D}, {FF, D},
                                   {D, FF}, {FF, D}, {D, 1},  {D, 1}};
enum { WEIGHTS = sizeof layer / sizeof *layer };

static int64_t layer_count(void)
{
    int64_t sum = 0;
    for (int i = 0; i < WEIGHTS; i++)
        sum += layer[i][0] * layer[i][1];
    return sum;
}

static int64_t model_count(void)
{
    return LAYERS * layer_count() + 2 * (int64_t)VOCAB * D + D;
}

static uint32_t count_named(const struct hb_program *p, const char *name)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->buf_count; i++)
        count += hb_str_ends(p->bufs[i].name, name);
    return count;
}

static int64_t sum_named(const struct hb_program *p, const char *name)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->buf_count; i++)
        sum += hb_str_ends(p->bufs[i].name, name) ? p->bufs[i].bytes : 0;
    return sum;
}

/* Blocks are as large as requests. */
#define GROWS "runtime: {expandable_segments: true}\n"
#define ONE                                                                                        \
    "hardware: {device: nvidia-h100, count: 1}\nmesh: {fsdp: 1}\n"                                 \
    "batch: {global: 1, seq: 512}\nprecision: {params: bf16, grads: params}\n"

/* A copy of the rank's part of each weight, in its dtype, from the start; kept on the host one that
 * it is made in, from the first step's end on, and copies before. */
static void an_average_is_a_copy(void **state)
{
    (void)state;
    struct hb_program p;
    int64_t part = model_count() / 8 * 4;
    struct hb_memory none = run_keys(GROWS, &p);
    assert_int_equal(count_named(&p, ", ema"), 0);
    struct hb_memory here = run_keys(GROWS "optimizer: {ema: device}\n", &p);
    assert_int_equal(sum_named(&p, ", ema"), part);
    assert_int_equal(here.argument_bytes - none.argument_bytes, part);
    assert_int_equal(here.category_bytes[HB_CAT_EMA], part);
    struct hb_memory away = run_keys(GROWS "optimizer: {ema: pinned_host}\n", &p);
    assert_int_equal(sum_named(&p, ", ema"), 2 * part);
    assert_int_equal(away.argument_bytes, here.argument_bytes);
    assert_string_equal(p.ops[0].name, "clone");
    int64_t whole = run_keys(ONE GROWS, &p).argument_bytes;
    struct hb_memory one = run_keys(ONE GROWS "optimizer: {ema: device}\n", &p);
    assert_int_equal(one.argument_bytes - whole, 2 * model_count());
}

/* Kernels make nothing but the state; torch's own ops of shards two more for each weight. */
static void lion_of_shards_makes_two(void **state)
{
    (void)state;
    struct hb_program p;
    const uint32_t weights = LAYERS * WEIGHTS + 3;
    run_keys("optimizer: {name: lion}\n", &p);
    assert_int_equal(count_named(&p, "first moment"), weights);
    assert_int_equal(count_named(&p, "update"), STEPS * weights);
    assert_int_equal(count_named(&p, "average of the gradients, copied"), STEPS * weights);
    assert_int_equal(largest(&p, "update"), (int64_t)VOCAB * D / 8 * 4);
    run_keys("mesh: {fsdp: 4, tensor: 2}\nsharding: {residual_over_tensor: true}\n"
             "optimizer: {name: lion}\n",
             &p);
    assert_int_equal(count_named(&p, "update"), STEPS * weights);
    run_keys(ONE "optimizer: {name: lion}\n", &p);
    assert_int_equal(count_named(&p, "first moment"), weights);
    assert_int_equal(count_named(&p, "update"), 0);
}

/* Of matrices of layers: momentum, and five times two squares of the shorter side and an iterate;
 * all others have AdamW's two states. */
static void muon_turns_whole_matrices(void **state)
{
    (void)state;
    enum { MATRICES = 7, PASSES = 5 };
    struct hb_program p;
    run_keys(ONE "optimizer: {name: muon, others: adamw}\n", &p);
    int64_t squares = 0, turned = 0;
    for (int i = 0; i < MATRICES; i++) {
        int64_t side = layer[i][0] < layer[i][1] ? layer[i][0] : layer[i][1];
        squares += side * side * 2;
        turned += layer[i][0] * layer[i][1] * 2;
    }
    assert_int_equal(sum_named(&p, "square of the muon square"), STEPS * LAYERS * PASSES * squares);
    assert_int_equal(sum_named(&p, "muon next iterate"), STEPS * LAYERS * PASSES * turned);
    assert_int_equal(sum_named(&p, "momentum, a step ahead"), STEPS * LAYERS * turned);
    assert_int_equal(sum_named(&p, "first moment"), 2 * model_count());
    assert_int_equal(sum_named(&p, "second moment"),
                     2 * (2 * (int64_t)VOCAB * D + D + LAYERS * 2 * D));
    assert_int_equal(count_named(&p, "second moment"), 3 + 2 * LAYERS);
}

/* Variances by row and by column, and for each weight an estimate as large as it is, which is let
 * go for the next one's, or in the end. */
static void adafactor_keeps_factors(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m = run_keys(ONE "optimizer: {name: adafactor}\n", &p);
    int64_t rows = 2 * (int64_t)VOCAB, cols = 2 * (int64_t)D, vectors = D + LAYERS * 2 * D;
    for (int i = 0; i < WEIGHTS; i++)
        if (layer[i][1] > 1) {
            rows += LAYERS * layer[i][0];
            cols += LAYERS * layer[i][1];
        }
    assert_int_equal(sum_named(&p, "variance of the rows"), 2 * rows);
    assert_int_equal(sum_named(&p, "variance of the columns"), 2 * cols);
    assert_int_equal(sum_named(&p, "variances"), 2 * vectors);
    assert_int_equal(sum_named(&p, "estimate of the variance"), STEPS * 2 * model_count());
    assert_int_equal(count_named(&p, "squares of the gradient"), STEPS * (2 * LAYERS + 1));
    assert_true(m.argument_bytes < 2 * model_count() + 4 * (rows + cols) + (1 << 20));
}

/* torch's pipelines without FSDP: a rank's weights are there whole and their gradients stay, and
 * what goes between ranks is as wide as they are. */
static void stages_of_whole_weights(void **state)
{
    (void)state;
#define STAGES                                                                                     \
    "hardware: {device: nvidia-h100, count: 2}\nmesh: {pipeline: 2, fsdp: 1}\n"                    \
    "batch: {global: 4, seq: 512}\npipeline: {schedule: 1f1b, microbatches: 4}\n" GROWS
    struct hb_program p;
    const int64_t half = 2 * layer_count() + (int64_t)VOCAB * D, rope = 512 * 32 * 8;
    struct hb_memory m = run_keys(STAGES "precision: {params: bf16, grads: params}\n", &p);
    assert_int_equal(m.argument_bytes, 3 * 2 * half + rope);
    assert_int_equal(largest(&p, "gathered weights in one buffer"), 0);
    assert_int_equal(largest(&p, "gradients to reduce"), 0);
    assert_int_equal(largest(&p, "gradient from the next stage"), 512 * D * 2);
    assert_true(m.peak_bytes >= 4 * 2 * half);
    m = run_keys(STAGES "precision: {params: f32, compute: f32, grads: params}\n", &p);
    assert_int_equal(m.argument_bytes, 3 * 4 * half + rope);
    assert_int_equal(largest(&p, "gradient from the next stage"), 512 * D * 4);
    m = run_keys("hardware: {device: nvidia-h100, count: 4}\n"
                 "mesh: {pipeline: 2, fsdp: 1, tensor: 2}\nbatch: {global: 4, seq: 512}\n"
                 "pipeline: {schedule: 1f1b, microbatches: 4}\n"
                 "sharding: {residual_over_tensor: true}\n" GROWS
                 "precision: {params: bf16, grads: params}\n",
                 &p);
    const int64_t norms = 2 * 2 * D;
    assert_int_equal(m.argument_bytes, 3 * 2 * ((half - norms) / 2 + norms) + rope);
    assert_int_equal(largest(&p, "gradient from the next stage"), 512 / 2 * D * 2);
    assert_int_equal(largest(&p, "own part of the gradient"), (int64_t)VOCAB * D);
    run_keys("mesh: {pipeline: 2, fsdp: 4}\nbatch: {global: 16, seq: 512}\n"
             "pipeline: {schedule: 1f1b, microbatches: 4}\nprecision: {compute: f32}\n",
             &p);
    assert_int_equal(largest(&p, "gradient from the next stage"), 512 * D * 4);
}

static void refused(const char *more, const char *says)
{
    struct hb_spec spec = read_spec(more);
    u.diag.count = 0;
    assert_false(hb_spec_supported(&u.diag, NULL, &spec));
    assert_non_null(strstr(u.diag.entries[0].text, says));
    u.diag.count = 0;
}

static void what_torch_has_not_is_refused(void **state)
{
    (void)state;
    refused("optimizer: {name: adafactor}\n", "refuses shards of FSDP2");
    refused("optimizer: {name: muon, others: adamw}\n", "of whole weights only");
    refused(ONE "optimizer: {name: muon}\n", "optimizer.others: torch.optim.Muon takes no norms");
    refused(ONE "optimizer: {name: adafactor, moments: [bf16]}\n", "has no momentum");
    refused(ONE "optimizer: {name: muon, others: adamw, moments: [f32]}\n", "as the parameters");
    refused("optimizer: {name: lion, moments: [q8]}\n", "lion-pytorch's");
    refused("optimizer: {name: lion, in_backward: true}\n", "not simulated with lion");
    refused("optimizer: {ema: device, in_backward: true}\n", "after the optimizer's step");
    refused("optimizer: {ema: device}\nruntime: {framework: megatron}\n", "as torchtitan has it");
    refused(STAGES "precision: {params: f32, grads: params}\n", "turns mixed precision off");
    refused("hardware: {device: nvidia-h100, count: 4}\nmesh: {pipeline: 2, data: 2, fsdp: 1}\n"
            "batch: {global: 8, seq: 512}\npipeline: {schedule: 1f1b, microbatches: 4}\n"
            "precision: {params: bf16, grads: params}\n",
            "DistributedDataParallel has no other axis");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_average_is_a_copy),      TEST(lion_of_shards_makes_two),
        TEST(muon_turns_whole_matrices), TEST(adafactor_keeps_factors),
        TEST(stages_of_whole_weights),   TEST(what_torch_has_not_is_refused),
    };
    return cmocka_run_group_tests_name("torch update", tests, NULL, NULL);
}
