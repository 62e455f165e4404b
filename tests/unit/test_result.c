/* sim/engine/result: budgets, verdicts, rates, loading, on the example of the quick start. */
#include "tests/unit/each.h"

#include <math.h>

#include "models/params.h"
#include "models/schema.h"
#include "sim/engine/budget.h"
#include "sim/engine/result.h"

static struct hb_spec spec;
static struct hb_device device;
static struct hb_result result;

static void run(const char *const *sets, int count)
{
    struct hb_schema_source source = {.arena = u.env.arena,
                                      .diag = &u.diag,
                                      .path = HB_SOURCE_DIR "/examples/quickstart/model.yaml",
                                      .sets = sets,
                                      .set_count = count,
                                      .data_dir = HB_SOURCE_DIR};
    assert_true(hb_schema_read(&source, &spec));
    assert_true(hb_device_load(u.env.arena, &u.diag, HB_SOURCE_DIR, spec.hardware.device,
                               (struct hb_loc){0}, &device));
    spec.hardware.memory_bytes = hb_budget_device_bytes(&spec, &device);
    assert_true(hb_result_run(u.env.arena, &u.diag, &spec, &device, &result));
    struct hb_result brief; /* says the same */
    assert_true(hb_result_brief(u.env.arena, &u.diag, &spec, &device, &brief));
    assert_true(brief.fits == result.fits && brief.step_fits == result.step_fits);
    assert_int_equal(brief.memory.peak_bytes, result.memory.peak_bytes);
    assert_int_equal(brief.timing.step_ns, result.timing.step_ns);
    assert_true(spec.compiler == HB_TORCH || brief.timing.span_count == 0);
    assert_true(result.timing.span_count > 0);
}

static bool loads(int64_t processes)
{
    spec.load.processes = processes;
    return hb_result_run(u.env.arena, &u.diag, &spec, &device, &result);
}

/* Between two powers of which the first can be loaded and what is asked for cannot. */
static void a_load_beyond_the_range_is_told(void **state)
{
    (void)state;
    static const char *const sets[] = {"load.method=device_put"};
    int64_t n = 1;
    run(sets, 1);
    while (n < INT64_C(1) << 40 && loads(n))
        n *= 2;
    assert_in_range(n, 2, INT64_C(1) << 39); /* n is too many, but for what is told of 2 n */
    for (int64_t asked = n; asked <= 2 * n; asked += n / 8)
        assert_false(loads(asked));
}

/* What cannot be lowered has no result, and one word for it: nothing is asked of it. */
static void a_step_beyond_the_range_is_told(void **state)
{
    (void)state;
    run(NULL, 0);
    spec.batch.global = INT64_C(1) << 50;
    assert_false(hb_result_run(u.env.arena, &u.diag, &spec, &device, &result));
    assert_non_null(strstr(u.diag.entries[0].text, "exceeds 2^61 bytes"));
    assert_int_equal(u.diag.errors, 1);
    assert_false(hb_result_brief(u.env.arena, &u.diag, &spec, &device, &result));
    assert_int_equal(u.diag.errors, 2);
}

static void the_budget_has_three_sources(void **state)
{
    (void)state;
    static const char *const own[] = {"hardware.hbm=0"};
    run(own, 1);
    assert_int_equal(result.budget_bytes, hb_device_usable_bytes(&device) * 3 / 4);
    assert_true(result.fits && result.step_fits);
    static const char *const reserve[] = {"hardware.reserve=1GiB"};
    run(reserve, 1);
    assert_int_equal(result.budget_bytes, device.hbm_bytes - (INT64_C(1) << 30));
    static const char *const given[] = {"hardware.hbm=20GiB"};
    run(given, 1);
    assert_int_equal(result.budget_bytes, INT64_C(20) << 30);
    assert_false(result.fits || result.step_fits);
}

/* However the weights of heads are stored. */
static void the_work_is_the_same(void **state)
{
    (void)state;
    static const char *const apart[] = {"model.blocks[0].attention.split_heads=true"};
    run(NULL, 0);
    double flops = result.timing.flops;
    run(apart, 1);
    assert_true(result.timing.flops > 0.999 * flops && result.timing.flops < 1.001 * flops);
}

/* What a token needs, by hand: its products, and half of the squares of scores of both kinds'
 * widths. */
static double flops_by_hand(double width)
{
    struct hb_params params;
    hb_params_count(&spec, &params);
    return 6 * (double)(params.active - params.embedding - params.norm) +
           6 * 32 * 32 * width * 4096;
}

static void mfu_counts_what_the_mask_leaves(void **state)
{
    (void)state;
    static const char *const mla[] = {"model.blocks[0].attention.kind=mla",
                                      "model.blocks[0].attention.kv_lora_rank=512",
                                      "model.blocks[0].attention.qk_nope_head_dim=128",
                                      "model.blocks[0].attention.qk_rope_head_dim=64",
                                      "model.blocks[0].attention.v_head_dim=96",
                                      "model.blocks[0].attention.head_dim=192",
                                      "model.blocks[0].attention.kv_heads=32"};
    run(NULL, 0);
    double plain = result.mfu * result.step_seconds / flops_by_hand(128 + 128);
    run(mla, 7);
    double latent = result.mfu * result.step_seconds / flops_by_hand(128 + 64 + 96);
    assert_true(fabs(latent / plain - 1) < 1e-9);
}

static struct hb_budget budget_of(const struct hb_spec *of)
{
    struct hb_budget budget;
    hb_budget_make(of, &device, &budget);
    assert_int_equal(budget.device_bytes, device.hbm_bytes - device.reserve_bytes);
    return budget;
}

static const char *words_of(const struct hb_spec *of)
{
    struct hb_budget budget = budget_of(of);
    return hb_budget_words(u.env.arena, &budget);
}

/* Torch's own figures leave out context, libraries and, with several devices, communicators; an
 * allocator's slack is taken off for all. */
static void the_budget_is_without_what_stands_beside(void **state)
{
    (void)state;
    static const char *const own[] = {"hardware.hbm=0"};
    run(own, 1);
    int64_t usable = hb_device_usable_bytes(&device);
    int64_t beside = device.context_bytes + device.library_bytes;
    struct hb_spec torch = spec;
    assert_true(device.collective_bytes > 0 && beside > 0);
    torch.compiler = HB_XLA_TPU;
    assert_int_equal(budget_of(&torch).bytes, usable);
    torch.compiler = HB_TORCH;
    assert_int_equal(budget_of(&torch).bytes, usable - beside - device.collective_bytes);
    torch.hardware.count = 1;
    assert_int_equal(budget_of(&torch).bytes, usable - beside);
    assert_null(strstr(words_of(&torch), "fraction"));
    assert_non_null(strstr(words_of(&torch), " of context, libraries"));
    /* Userbuffers of ten products' rows: two bytes each, or one of the six that are gathered. */
    struct hb_spec async = torch;
    int64_t rows_bytes = INT64_C(4) * 8192 * 4096;
    async.runtime.framework = HB_FW_MEGATRON;
    async.runtime.async_tp = true;
    assert_int_equal(budget_of(&torch).bytes - budget_of(&async).bytes, 20 * rows_bytes);
    async.precision.fp8 = HB_FP8_TENSORWISE;
    assert_int_equal(budget_of(&torch).bytes - budget_of(&async).bytes, 14 * rows_bytes);
    /* A share is of the whole device: what stands beside the allocator lies in the rest of it. */
    torch.runtime.memory_fraction = 0.5;
    assert_int_equal(budget_of(&torch).bytes, usable / 2);
    assert_non_null(strstr(words_of(&torch), "0.5 of "));
    assert_non_null(strstr(words_of(&torch), "torch.cuda.set_per_process_memory_fraction"));
    assert_null(strstr(words_of(&torch), "context"));
    torch.runtime.memory_fraction = 0.9999;
    assert_int_equal(budget_of(&torch).bytes, usable - beside);
    assert_null(strstr(words_of(&torch), "fraction"));
    torch.runtime.memory_fraction = 0;
    device.context_bytes = device.hbm_bytes;
    assert_int_equal(budget_of(&torch).bytes, 0);
    device.allocator_slack = 0.25;
    torch.compiler = HB_XLA_TPU;
    assert_int_equal(budget_of(&torch).bytes, usable * 4 / 5);
}

/* JAX gives programs three quarters of a GPU unless told otherwise; what is written, or fitted to
 * runs, comes first. */
static void a_runtime_gives_a_share(void **state)
{
    (void)state;
    static const char *const own[] = {"hardware.hbm=0"};
    run(own, 1);
    int64_t usable = hb_device_usable_bytes(&device);
    struct hb_spec jax = spec;
    jax.compiler = HB_XLA_GPU;
    assert_int_equal(budget_of(&jax).bytes, usable * 3 / 4);
    assert_non_null(strstr(hb_budget_words(u.env.arena, &(struct hb_budget){.device_bytes = 1 << 30,
                                                                            .fraction = 0.75}),
                           "0.75 of 1.00 GiB"));
    jax.runtime.memory_fraction = 0.5;
    assert_int_equal(budget_of(&jax).bytes, usable / 2);
    jax.runtime.memory_fraction = 0;
    device.facts[1].source = HB_DEVICE_FIT_SOURCE " of 6 records";
    assert_true(hb_device_reserve_is_fitted(&device));
    assert_int_equal(budget_of(&jax).bytes, usable);
    device.facts[1].source = "a data sheet";
    jax.hardware.hbm_bytes = 12345;
    assert_int_equal(budget_of(&jax).bytes, 12345);
}

/* hardware.host_memory is of a host, whose devices share it. */
static void a_host_is_shared(void **state)
{
    (void)state;
    static const char *const own[] = {"hardware.hbm=0"};
    run(own, 1);
    struct hb_spec s = spec;
    device.host_memory_bytes = 25ll << 30;
    device.host_devices = 0; /* not told: one */
    assert_int_equal(budget_of(&s).host_reserve_bytes, (25ll << 30) / 100 * 5 + (380ll << 20));
    device.host_devices = 4;
    int64_t kept = ((100ll << 30) / 100 * 5 + (380ll << 20)) / 4;
    assert_int_equal(budget_of(&s).host_reserve_bytes, kept);
    assert_int_equal(budget_of(&s).host_bytes, (25ll << 30) - kept);
    s.hardware.host_reserve_bytes = 4 << 20;
    assert_int_equal(budget_of(&s).host_bytes, (25ll << 30) - (1 << 20));
    s.hardware.host_reserve_bytes = 200ll << 30; /* more than there is */
    assert_int_equal(budget_of(&s).host_bytes, 0);
    s.hardware.host_reserve_bytes = -1;
    s.hardware.host_memory_bytes = 1000;
    s.hardware.count = 16;
    assert_int_equal(budget_of(&s).host_bytes, 250);
    s.hardware.count = 2;
    assert_int_equal(budget_of(&s).host_bytes, 500);
    s.hardware.host_memory_bytes = 0;
    device.host_memory_bytes = 0;
    assert_true(budget_of(&s).host_bytes == INT64_MAX);
    assert_int_equal(budget_of(&s).host_reserve_bytes, 0);
}

/* Nothing kept back is a word too: then a program may have all of it. */
static void nothing_kept_back_is_told(void **state)
{
    (void)state;
    static const char *const own[] = {"hardware.hbm=0"};
    static const enum hb_compiler compilers[] = {HB_XLA_TPU, HB_XLA_GPU, HB_TORCH};
    struct hb_budget budget;
    run(own, 1);
    struct hb_spec s = spec;
    s.hardware.reserve_bytes = 0;
    for (int i = 0; i < 3; i++) {
        s.compiler = compilers[i];
        hb_budget_make(&s, &device, &budget);
        assert_int_equal(budget.bytes, device.hbm_bytes);
        assert_int_equal(hb_budget_found_bytes(&s, &device), device.hbm_bytes);
        assert_string_equal(hb_budget_words(u.env.arena, &budget), "");
    }
    device.host_memory_bytes = 25ll << 30;
    device.host_devices = 4;
    s.hardware.host_reserve_bytes = 4 << 20;
    hb_budget_make(&s, &device, &budget);
    assert_string_equal(hb_budget_host_words(u.env.arena, &budget),
                        " less 4.00 MiB for its system, hardware.host_reserve");
    s.hardware.host_reserve_bytes = 0;
    hb_budget_make(&s, &device, &budget);
    assert_int_equal(budget.host_bytes, 25ll << 30);
    assert_string_equal(hb_budget_host_words(u.env.arena, &budget), "");
}

/* A share that is just what the rest of the device is beside the allocator is told as a share. */
static void a_share_and_the_rest_may_be_equal(void **state)
{
    (void)state;
    static const char *const own[] = {"hardware.hbm=0"};
    run(own, 1);
    struct hb_spec s = spec;
    int64_t usable = hb_device_usable_bytes(&device);
    s.compiler = HB_TORCH;
    s.hardware.count = 1;
    s.runtime.memory_fraction = 0.75;
    device.library_bytes = 0;
    device.context_bytes = usable - (int64_t)((double)usable * 0.75);
    assert_int_equal(budget_of(&s).bytes, (int64_t)((double)usable * 0.75));
    assert_int_equal(hb_budget_found_bytes(&s, &device), budget_of(&s).bytes);
    assert_non_null(strstr(words_of(&s), "0.75 of "));
    assert_null(strstr(words_of(&s), "context"));
}

/* JAX pins 64 GiB of a GPU process, unless it is told to pin more. */
static void a_pool_is_wanted(void **state)
{
    (void)state;
    struct hb_spec s = {.compiler = HB_XLA_GPU};
    struct hb_budget eight = {.host_devices = 8};
    assert_string_equal(hb_budget_pool_words(u.env.arena, &s, &eight, 8ll << 30), "");
    assert_non_null(strstr(hb_budget_pool_words(u.env.arena, &s, &eight, (8ll << 30) + 1),
                           "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=65 "));
    s.compiler = HB_XLA_TPU;
    assert_string_equal(hb_budget_pool_words(u.env.arena, &s, &eight, 9ll << 30), "");
}

static void the_budget_itself_fits(void **state)
{
    (void)state;
    run(NULL, 0);
    int64_t peak = result.memory.peak_bytes;
    const char *exact = hb_arena_printf(u.env.arena, "hardware.hbm=%lld", (long long)peak);
    const char *less = hb_arena_printf(u.env.arena, "hardware.hbm=%lld", (long long)peak - 1);
    run(&exact, 1);
    assert_true(result.fits);
    run(&less, 1);
    assert_false(result.fits);
}

/* 8,030,261,248 parameters less the table of 128256 x 4096 and 65 norms; 32 layers of 32 heads x
 * 128, which see half of 8192. */
static void model_flops_are_counted(void **state)
{
    (void)state;
    run(NULL, 0);
    double parameters = 8030261248.0 - 128256.0 * 4096.0 - 65 * 4096.0;
    double per_token = 6 * parameters + 12.0 * 32 * 32 * 128 * 4096;
    double tokens = 32.0 * 8192.0;
    double expected = per_token * tokens / 8 / (result.step_seconds * 9.894e14);
    assert_true(fabs(result.mfu - expected) < 1e-9);
    assert_true(fabs(result.tokens_per_second - tokens / result.step_seconds) < 1e-3);
    assert_true(result.hfu > 0 && result.hfu < 1);
}

/* Layers in f64 and the head in bf16: against the rate of f64 alone the step was above it (118 %).
 */
static void the_fastest_type_is_the_peak(void **state)
{
    (void)state;
    static const char *const sets[] = {"precision.compute=f64", "loss.dot=bf16"};
    run(NULL, 0);
    double needed = result.mfu * result.step_seconds;
    run(sets, 2);
    assert_true(fabs(result.mfu * result.step_seconds - needed) < 1e-9);
}

/* A table of positions is looked up: none of its rows is multiplied with anything. */
static void positions_are_no_products(void **state)
{
    (void)state;
    static const char *const tied[] = {"model.tied_embeddings=true"};
    static const char *const both[] = {"model.tied_embeddings=true", "model.positions=1000000"};
    run(tied, 1);
    double without = result.mfu * result.step_seconds;
    run(both, 2);
    assert_true(fabs(result.mfu * result.step_seconds - without) < 1e-9);
}

static void windows_count_what_they_see(void **state)
{
    (void)state;
    run(NULL, 0);
    double full = result.mfu * result.step_seconds;
    static const char *const sets[] = {"model.blocks[0].attention.window=1024"};
    run(sets, 1);
    double less = result.mfu * result.step_seconds;
    double seen = 1024 - 1024.0 * 1024 / (2 * 8192);
    double difference = 12.0 * 32 * 32 * 128 * (4096 - seen) * 32 * 8192 / 8 / 9.894e14;
    assert_true(fabs(full - less - difference) < 1e-9);
}

static double products_of(const char *repeat, const char *form, const char *outer)
{
    const char *const sets[] = {repeat, form, outer};
    run(sets, 3);
    assert_true(result.mfu > 0 && result.mfu < 1);
    return result.timing.flops;
}

/* Whatever the count of outer blocks each layer runs forwards, twice again and backwards; one block
 * of all layers once lost the layers (MFU 586 %). Blocks of one layer make them again once: the
 * program's two loops of eight layers, where one block's has three (XLA for v5p, H100, MI300X). */
static void nested_scans_lose_no_layer(void **state)
{
    (void)state;
    static const char all[] = "model.blocks[0].repeat=32", nested[] = "stack.form=nested";
    double scan = products_of(all, "stack.form=scan", "stack.outer=0");
    double four = products_of(all, nested, "stack.outer=4");
    assert_true(four > scan);
    assert_true(products_of(all, nested, "stack.outer=1") == four);
    assert_true(products_of(all, nested, "stack.outer=16") == four);
    assert_true(products_of(all, nested, "stack.outer=32") == scan);
    double prime = products_of("model.blocks[0].repeat=31", nested, "stack.outer=0");
    assert_true(prime < four && prime > four * 30 / 32);
}

/* A step is not of more use than what the device can do: tokens that a capacity drops are none that
 * experts multiplied, what is masked is no work, and 4-bit products have a peak of their own. */
static void no_step_is_above_the_peak(void **state)
{
    (void)state;
    static const char *const dropped[] = {"model.preset=mixtral-8x7b",
                                          "model.blocks[0].moe.dispatch=einsum",
                                          "model.blocks[0].moe.capacity_factor=0.01"};
    static const char *const kept[] = {"model.preset=mixtral-8x7b",
                                       "model.blocks[0].moe.dispatch=einsum",
                                       "model.blocks[0].moe.capacity_factor=1"};
    static const char *const ragged[] = {"model.preset=mixtral-8x7b",
                                         "model.blocks[0].moe.dispatch=ragged"};
    static const char *const masked[] = {"compiler=torch", "remat.policy=none",
                                         "batch.seq=1048576"};
    static const char *const narrow[] = {"compiler=torch", "remat.policy=none",
                                         "precision.fp8=rowwise"};
    run(ragged, 2);
    double all = result.mfu * result.step_seconds;
    run(kept, 3);
    assert_true(fabs(result.mfu * result.step_seconds / all - 1) < 1e-9);
    run(dropped, 3);
    assert_true(result.mfu < result.hfu && result.hfu < 1);
    /* room for 24 of 8192 x 2 / 8 choices */
    struct hb_params params;
    hb_params_count(&spec, &params);
    double expert = 6 * 2 * (double)hb_params_expert(&spec.model, &spec.model.blocks[0]) * 32;
    double lost = expert * (1 - 24 / 2048.0) * 32 * 8192 / 8 / 9.894e14;
    assert_true(fabs(result.mfu * result.step_seconds + lost - all) < 1e-9 * all);
    run(masked, 3);
    assert_true(result.mfu < result.hfu && result.hfu < 1);
    run(narrow, 3);
    assert_true(result.mfu < result.hfu && result.hfu < 0.5);
}

static void loading_can_be_what_does_not_fit(void **state)
{
    (void)state;
    static const char *const sets[] = {"load.method=device_put", "load.processes=48",
                                       "load.largest_array=1050673152"};
    run(sets, 3);
    assert_true(result.step_fits && result.fits);
    assert_int_equal(result.load.processes, 48);
    static const int64_t rows[] = {1, 2, 4, 8, 16, 32, 48, 96};
    assert_int_equal(result.load_row_count, 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(result.load_rows[i].processes, rows[i]);
        assert_int_equal(result.load_rows[i].fits,
                         result.load_rows[i].device_peak_bytes <= result.budget_bytes);
    }
    assert_true(result.load_rows[6].fits && !result.load_rows[7].fits);
    static const char *const more[] = {"load.method=device_put", "load.processes=128",
                                       "load.largest_array=1050673152"};
    run(more, 3);
    assert_true(result.step_fits && !result.fits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_step_beyond_the_range_is_told),
        TEST(a_load_beyond_the_range_is_told),
        TEST(the_budget_has_three_sources),
        TEST(the_work_is_the_same),
        TEST(mfu_counts_what_the_mask_leaves),
        TEST(the_budget_is_without_what_stands_beside),
        TEST(a_runtime_gives_a_share),
        TEST(a_host_is_shared),
        TEST(nothing_kept_back_is_told),
        TEST(a_share_and_the_rest_may_be_equal),
        TEST(a_pool_is_wanted),
        TEST(the_budget_itself_fits),
        TEST(model_flops_are_counted),
        TEST(the_fastest_type_is_the_peak),
        TEST(positions_are_no_products),
        TEST(windows_count_what_they_see),
        TEST(loading_can_be_what_does_not_fit),
        TEST(nested_scans_lose_no_layer),
        TEST(no_step_is_above_the_peak),
    };
    return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
