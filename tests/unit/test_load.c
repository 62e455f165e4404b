/* sim/ir/load: what each way of loading takes, worked by hand, and the report that it explains. */
#include "tests/unit/each.h"

#include "sim/engine/check.h"
#include "sim/engine/run.h"
#include "sim/engine/load.h"

static const int64_t gib = INT64_C(1) << 30;

static struct hb_memory run(const struct hb_load_plan *plan, enum hb_load_method method,
                            int64_t processes)
{
    struct hb_program p;
    struct hb_memory m;
    assert_true(hb_load_program(u.env.arena, &u.diag, plan, method, processes, &p));
    hb_program_check(&p);
    hb_run_memory(u.env.arena, &p, &m);
    return m;
}

static const struct hb_load_plan plan = {.array_bytes = 1 << 20,
                                         .part_bytes = 1 << 17,
                                         .others_bytes = 1 << 19,
                                         .states_bytes = 1 << 16,
                                         .devices = 8,
                                         .item_bytes = 4,
                                         .compiler = HB_XLA_GPU};

static void device_put_gathers_every_process(void **state)
{
    (void)state;
    const int64_t a = plan.array_bytes, before = plan.others_bytes;
    for (int64_t n = 2; n <= 64; n *= 2) {
        struct hb_memory m = run(&plan, HB_LOAD_DEVICE_PUT, n);
        assert_int_equal(m.peak_bytes, before + a + n * a);
        assert_int_equal(m.category_bytes[HB_CAT_COMMUNICATION], n * a);
        /* the array, what was gathered, what is expected, a byte for each element */
        assert_int_equal(m.host_bytes, a + n * a + n * a + n * a / 4);
    }
}

static void one_process_compares_nothing(void **state)
{
    (void)state;
    struct hb_memory m = run(&plan, HB_LOAD_DEVICE_PUT, 1);
    assert_int_equal(m.peak_bytes, plan.others_bytes + plan.array_bytes + plan.part_bytes);
    assert_int_equal(m.host_bytes, plan.array_bytes);
}

static void callback_and_sharded_put_parts(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 8; n *= 2) {
        struct hb_memory callback = run(&plan, HB_LOAD_CALLBACK, n);
        struct hb_memory sharded = run(&plan, HB_LOAD_SHARDED, n);
        int64_t device = plan.others_bytes + plan.part_bytes + plan.states_bytes;
        assert_int_equal(callback.peak_bytes, device);
        assert_int_equal(sharded.peak_bytes, device);
        assert_int_equal(callback.host_bytes, plan.array_bytes);
        assert_int_equal(sharded.host_bytes, plan.part_bytes * (8 / n));
    }
}

/* An embedding of 128256 x 2048 f32 over 64 processes asked for 62.62 GiB on each device and
 * died; 32 processes lived. */
static void the_reported_request(void **state)
{
    (void)state;
    struct hb_load_plan embedding = {.array_bytes = INT64_C(128256) * 2048 * 4,
                                     .devices = 256,
                                     .item_bytes = 4,
                                     .compiler = HB_XLA_GPU};
    struct hb_memory dies = run(&embedding, HB_LOAD_DEVICE_PUT, 64);
    struct hb_memory lives = run(&embedding, HB_LOAD_DEVICE_PUT, 32);
    assert_int_equal(dies.at_peak[0].bytes * 100 / gib, 6262);
    assert_true(dies.peak_bytes > 60 * gib);
    assert_true(lives.peak_bytes < 33 * gib);
}

static void absurd_sizes_are_refused(void **state)
{
    (void)state;
    struct hb_load_plan huge = plan;
    struct hb_program p;
    huge.array_bytes = INT64_C(1) << 58;
    assert_false(hb_load_program(u.env.arena, &u.diag, &huge, HB_LOAD_DEVICE_PUT, 1000, &p));
    assert_int_equal(u.diag.errors, 1);
    assert_non_null(strstr(u.diag.entries[0].text, "leave the range of sizes"));
}

static void the_plan_comes_from_the_step(void **state)
{
    (void)state;
    static const int64_t windows[] = {0};
    struct hb_block block = {.name = "b", .repeat = 6, .unit = 1, .mlp = {.d_ff = 300}};
    block.attention = (struct hb_attention){
        .heads = 4, .kv_heads = 4, .head_dim = 25, .windows = windows, .window_count = 1};
    struct hb_spec spec = {
        .model = {.name = "m", .d_model = 100, .vocab = 500, .blocks = &block, .block_count = 1}};
    spec.precision.params = HB_DT_BF16;
    spec.hardware.count = 16;
    spec.load.processes = 4;
    struct hb_program step;
    hb_program_init(&step, u.env.arena, "step", HB_XLA_TPU);
    static const int64_t bytes[] = {700, 900, 5000, 80};
    static const enum hb_category kinds[] = {HB_CAT_PARAMS, HB_CAT_PARAMS, HB_CAT_OPTIMIZER,
                                             HB_CAT_INPUTS};
    for (int i = 0; i < 4; i++)
        hb_program_add_buf(&step, (struct hb_buf){.name = "a",
                                                  .why = "",
                                                  .bytes = bytes[i],
                                                  .category = kinds[i],
                                                  .argument = true,
                                                  .alias_of = HB_NONE});
    spec.stack.form = HB_FORM_SCAN;
    struct hb_load_plan scan = hb_load_plan_make(&spec, &step);
    assert_int_equal(scan.array_bytes, 2 * 6 * 100 * 300); /* six layers are one array */
    assert_int_equal(scan.item_bytes, 2);
    assert_int_equal(scan.part_bytes, 900);
    assert_int_equal(scan.others_bytes, 700);
    assert_int_equal(scan.states_bytes, 5000);
    assert_int_equal(scan.devices, 16);
    spec.stack.form = HB_FORM_LOOP;
    assert_int_equal(hb_load_plan_make(&spec, &step).array_bytes, 2 * 500 * 100);
    spec.model.vocab = 100;
    block.attention.fused_qkv = true; /* q, k and v are one array, wider than the MLP's */
    block.mlp.d_ff = 200;
    assert_int_equal(hb_load_plan_make(&spec, &step).array_bytes, 2 * 100 * 3 * 100);
    block.attention.fused_qkv = false;
    assert_int_equal(hb_load_plan_make(&spec, &step).array_bytes, 2 * 100 * 200);
    block.moe = (struct hb_moe){.experts = 8, .d_ff = 200};
    assert_int_equal(hb_load_plan_make(&spec, &step).array_bytes, 2 * 8 * 100 * 200);
    spec.load.largest_array = 12345;
    assert_int_equal(hb_load_plan_make(&spec, &step).array_bytes, 12345);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(device_put_gathers_every_process), TEST(one_process_compares_nothing),
        TEST(callback_and_sharded_put_parts),   TEST(the_reported_request),
        TEST(absurd_sizes_are_refused),         TEST(the_plan_comes_from_the_step),
    };
    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
