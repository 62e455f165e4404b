/* hw/dl, hw/probe: libraries that are not there are told in a sentence; the processor's back end
 * computes what it says and keeps no memory; the text of the GPU kernels compiles with the real
 * run-time compiler, where this machine has one. */
#include "tests/unit/unit.h"

#include <math.h>

#include "base/str.h"
#include "hw/dl.h"
#include "hw/probe.h"
#include "hw/probe_gpu.h"

struct maths {
    double (*cosine)(double x);
    double (*nothing)(double x);
};

static void a_library_that_is_there_is_bound(void **state)
{
    (void)state;
    static const char *const names[] = {"libhbm-absent.so.1", "libm.so.6", NULL};
    static const struct hb_dl_bind table[] = {
        {"cos", offsetof(struct maths, cosine), false},
        {"hbm_absent", offsetof(struct maths, nothing), true},
        {0},
    };
    struct unit u;
    unit_start(&u);
    const char *reason = "";
    struct maths maths = {0};
    struct hb_dl *lib = hb_dl_open(u.env.arena, "/absent", names, &reason);
    assert_non_null(lib);
    assert_string_equal(hb_dl_name(lib), "libm.so.6");
    assert_true(hb_dl_bind(lib, u.env.arena, table, &maths, &reason));
    assert_true(maths.cosine(0) == 1);
    assert_null(maths.nothing);
    hb_dl_close(lib);
    hb_dl_close(lib); /* once is enough, twice does no harm */
    hb_dl_close(NULL);
    unit_end(&u);
}

static void a_library_that_lacks_something_is_told(void **state)
{
    (void)state;
    static const char *const absent[] = {"libhbm-absent.so.1", "libhbm-absent.so", NULL};
    static const char *const present[] = {"libm.so.6", NULL};
    static const struct hb_dl_bind table[] = {{"hbm_absent", 0, false}, {0}};
    struct unit u;
    unit_start(&u);
    const char *reason = "";
    struct maths maths;
    assert_null(hb_dl_open(u.env.arena, NULL, absent, &reason));
    assert_non_null(strstr(reason, "libhbm-absent.so.1, libhbm-absent.so"));
    struct hb_dl *lib = hb_dl_open(u.env.arena, NULL, present, &reason);
    assert_non_null(lib);
    assert_false(hb_dl_bind(lib, u.env.arena, table, &maths, &reason));
    assert_string_equal(reason, "libm.so.6 has no function hbm_absent; is its version too old?");
    hb_dl_close(lib);
    unit_end(&u);
}

static struct hb_probe *open_cpu(struct unit *u)
{
    const struct hb_probe_wish wish = {.backend = "cpu"};
    const char *reason = "";
    struct hb_probe *p = hb_probe_open(&u->env, &wish, &reason);
    assert_non_null(p);
    return p;
}

enum { N = 4096 };

static uintptr_t take(struct hb_probe *p, float **out_at)
{
    uintptr_t at;
    assert_true(p->ops->alloc(p, N * 4, &at));
    *out_at = (float *)at;
    return at;
}

static void kernels_of_the_processor_compute(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_probe *p = open_cpu(&u);
    float *a;
    float *b;
    float *c;
    uintptr_t at[] = {take(p, &a), take(p, &b), take(p, &c)};
    for (int i = 1; i < 3; i++)
        assert_true(p->ops->kernel(p, HB_KERNEL_FILL, at[i], 0, 0, N));
    for (int i = 0; i < N; i++)
        assert_true(isfinite(b[i]) && fabsf(b[i]) < 1e3f && b[i] != 0);
    assert_true(p->ops->kernel(p, HB_KERNEL_COPY, at[0], at[1], 0, N));
    assert_memory_equal(a, b, N * 4);
    assert_true(p->ops->kernel(p, HB_KERNEL_TRIAD, at[0], at[1], at[2], N));
    assert_true(a[77] == b[77] + 1.5f * c[77]);
    b[0] = 0;
    b[1] = 20;
    assert_true(p->ops->kernel(p, HB_KERNEL_GELU, at[0], at[1], 0, N));
    assert_true(a[0] == 0 && a[1] == 20);
    for (int i = 0; i < N; i++)
        b[i] = 1;
    assert_true(p->ops->kernel(p, HB_KERNEL_REDUCE, at[0], at[1], 0, N));
    assert_true(a[0] == 1024 && a[3] == 1024);
    assert_true(p->ops->kernel(p, HB_KERNEL_READ, at[0], at[1], 0, N));
    assert_true(a[0] == N);
    assert_true(p->ops->kernel(p, HB_KERNEL_CHAIN, at[0], at[1], 0, N));
    assert_true(a[5] > 100 && a[5] < 500); /* on its way to 500 = 0.5 / 0.001 */
    assert_true(p->ops->kernel(p, HB_KERNEL_EMPTY, at[0], at[1], at[2], N));
    hb_probe_close(p);
    unit_end(&u);
}

static void products_of_the_processor_are_right(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_probe *p = open_cpu(&u);
    float *a;
    float *b;
    float *c;
    struct hb_product x = {HB_RATE_F32, 3, 5, 70, 2, take(p, &a), take(p, &b), take(p, &c)};
    for (int i = 0; i < 2 * 3 * 70; i++)
        a[i] = (float)(i % 7 - 3);
    for (int i = 0; i < 2 * 70 * 5; i++)
        b[i] = (float)(i % 5 - 2);
    assert_true(p->ops->product(p, &x));
    for (int batch = 0; batch < 2; batch++)
        for (int at = 0; at < 15; at++) {
            float want = 0;
            for (int l = 0; l < 70; l++)
                want += a[batch * 210 + at / 5 * 70 + l] * b[batch * 350 + l * 5 + at % 5];
            assert_true(c[batch * 15 + at] == want);
        }
    assert_true(p->ops->can(p, HB_RATE_F32));
    assert_false(p->ops->can(p, HB_RATE_BF16));
    hb_probe_close(p);
    unit_end(&u);
}

static void the_processor_tells_of_itself(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_probe *p = open_cpu(&u);
    int64_t free_bytes;
    int64_t total;
    uintptr_t at;
    double ns;
    assert_true(p->ops->memory(p, &free_bytes, &total));
    assert_true(free_bytes > 0 && free_bytes <= total);
    assert_int_equal(p->info.kind, HB_KIND_CPU);
    assert_true(p->info.cores >= 1);
    assert_false(p->ops->alloc(p, INT64_MAX / 2, &at)); /* more than there can be */
    assert_null(p->error);
    assert_true(p->ops->mark(p, HB_LANE_UP, 0));
    unit_clock_ns += 5000;
    assert_true(p->ops->mark(p, HB_LANE_UP, 1));
    assert_true(p->ops->elapsed(p, HB_LANE_UP, HB_LANE_UP, &ns));
    assert_true(ns == 5000);
    hb_probe_close(p);
    unit_end(&u);
}

static void elements_have_their_size(void **state)
{
    (void)state;
    assert_int_equal(hb_rate_bytes(HB_RATE_F64), 8);
    assert_int_equal(hb_rate_bytes(HB_RATE_TF32), 4);
    assert_int_equal(hb_rate_bytes(HB_RATE_BF16), 2);
    assert_int_equal(hb_rate_bytes(HB_RATE_FP8), 1);
}

static void compile_for(const struct hb_rtc_calls *rtc, const char *option)
{
    void *program = NULL;
    size_t bytes = 0;
    char log[4096] = "";
    assert_int_equal(rtc->create(&program, hb_gpu_kernels(), "hbmsim.c", 0, NULL, NULL), 0);
    if (rtc->compile(program, 1, &option) != 0) {
        if (rtc->log_size(program, &bytes) == 0 && bytes < sizeof log)
            rtc->log(program, log);
        fail_msg("%s: %s", option, log);
    }
    assert_int_equal(rtc->code_size(program, &bytes), 0);
    char *code = calloc(1, bytes + 1);
    assert_non_null(code);
    assert_int_equal(rtc->code(program, code), 0);
#define ENTRY(name, text) assert_non_null(strstr(code, ".entry " text "("));
    HB_KERNELS(ENTRY)
    free(code);
    rtc->destroy(&program);
}

static void the_real_compiler_takes_the_kernels(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    const char *reason = "";
    struct hb_rtc_calls rtc;
    struct hb_dl *lib = hb_dl_open(u.env.arena, NULL, hb_gpu_cuda.rtc_names, &reason);
    if (!lib) {
        unit_end(&u);
        skip();
    }
    assert_true(hb_dl_bind(lib, u.env.arena, hb_gpu_cuda.rtc_table, &rtc, &reason));
    int major = 0;
    int minor = 0;
    assert_int_equal(rtc.version(&major, &minor), 0);
    compile_for(&rtc, "--gpu-architecture=compute_80");
    compile_for(&rtc, "--gpu-architecture=compute_90");
    if (major > 12 || (major == 12 && minor >= 8))
        compile_for(&rtc, "--gpu-architecture=compute_100");
    unit_end(&u); /* the library stays: its threads do not like to go */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_that_is_there_is_bound),
        cmocka_unit_test(a_library_that_lacks_something_is_told),
        cmocka_unit_test(kernels_of_the_processor_compute),
        cmocka_unit_test(products_of_the_processor_are_right),
        cmocka_unit_test(the_processor_tells_of_itself),
        cmocka_unit_test(elements_have_their_size),
        cmocka_unit_test(the_real_compiler_takes_the_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
