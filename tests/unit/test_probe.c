/* hw/dl, hw/probe: libraries that are not there are told in a sentence; the processor's back end
 * computes what it says and keeps no memory; the text of the GPU kernels compiles with the real
 * run-time compiler, where this machine has one. */
#include "tests/unit/unit.h"

#include <math.h>
#include <sys/stat.h>

#include "base/str.h"
#include "hw/dl.h"
#include "hw/gpu_rtc.h"
#include "hw/libs.h"
#include "hw/probe.h"
#include "hw/probe_gpu.h"

static const char *const system_place[] = {"", NULL};

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
    static const char *const places[] = {"/absent", "", NULL};
    struct unit u;
    unit_start(&u);
    const char *reason = "";
    struct maths maths = {0};
    struct hb_dl *lib = hb_dl_open(u.env.arena, places, names, &reason);
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
    assert_null(hb_dl_open(u.env.arena, system_place, absent, &reason));
    assert_non_null(strstr(reason, "libhbm-absent.so.1, libhbm-absent.so"));
    struct hb_dl *lib = hb_dl_open(u.env.arena, system_place, present, &reason);
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

static void run_kernel(struct hb_probe *p, enum hb_kernel kernel, const uintptr_t *at, int64_t n)
{
    struct hb_kernel_call call = {.kernel = kernel, .a = at[0], .b = at[1], .c = at[2], .n = n};
    assert_true(p->ops->kernel(p, &call));
}

/* Mean and deviation of normal numbers, and that they are not all alike. */
static void is_normal(const float *x)
{
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < N; i++) {
        assert_true(isfinite(x[i]) && fabsf(x[i]) < 8);
        sum += x[i];
        squares += (double)x[i] * x[i];
    }
    assert_true(fabs(sum / N) < 0.1);
    assert_true(fabs(squares / N - 1) < 0.1);
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
        run_kernel(p, HB_KERNEL_FILL, (uintptr_t[]){at[i], 0, 0}, N);
    is_normal(b);
    run_kernel(p, HB_KERNEL_COPY, at, N);
    assert_memory_equal(a, b, N * 4);
    run_kernel(p, HB_KERNEL_TRIAD, at, N);
    assert_true(a[77] == b[77] + 1.5f * c[77]);
    run_kernel(p, HB_KERNEL_WRITE, at, N);
    assert_true(a[77] == 77);
    b[0] = 0;
    b[1] = 20;
    run_kernel(p, HB_KERNEL_GELU, at, N);
    assert_true(a[0] == 0 && a[1] == 20);
    for (int i = 0; i < N; i++)
        b[i] = c[i] = 1;
    run_kernel(p, HB_KERNEL_REDUCE, at, N);
    assert_true(a[0] == 1024 && a[3] == 1024);
    run_kernel(p, HB_KERNEL_READ, at, N);
    assert_true(a[0] == N);
    run_kernel(p, HB_KERNEL_CHAIN, at, N);
    assert_true(a[5] > 100 && a[5] < 500); /* on its way to 500 = 0.5 / 0.001 */
    run_kernel(p, HB_KERNEL_EMPTY, at, N);
    hb_probe_close(p);
    unit_end(&u);
}

/* A row of 4096 each: parts sum to one, squares to 4096, a weight moves against its gradient. */
static void kernels_of_a_step_compute(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_probe *p = open_cpu(&u);
    float *a;
    float *b;
    float *c;
    uintptr_t at[] = {take(p, &a), take(p, &b), take(p, &c)};
    double sum = 0;
    run_kernel(p, HB_KERNEL_FILL, (uintptr_t[]){at[1], 0, 0}, N);
    run_kernel(p, HB_KERNEL_SOFTMAX, at, N);
    for (int i = 0; i < N; i++)
        sum += a[i];
    assert_true(fabs(sum - 1) < 1e-3);
    assert_true(fabsf(logf(a[1] / a[0]) - (b[1] - b[0])) < 1e-3f);
    for (int i = 0; i < N; i++)
        c[i] = 2;
    run_kernel(p, HB_KERNEL_NORM, at, N);
    sum = 0;
    for (int i = 0; i < N; i++)
        sum += (double)a[i] * a[i];
    assert_true(fabs(sum / N - 4) < 1e-2);
    for (int i = 0; i < N; i++)
        a[i] = 0;
    run_kernel(p, HB_KERNEL_ADAM, at, N / 3);
    assert_true(b[7] * a[7] < 0);
    assert_true(fabsf(a[N / 3 + 7] - 0.1f * b[7]) < 1e-6f);
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
    struct hb_product x = {.rate = HB_RATE_F32, .m = 3, .n = 5, .k = 70};
    x.a = take(p, &a);
    x.b = take(p, &b);
    x.c = take(p, &c);
    for (int i = 0; i < 3 * 70; i++)
        a[i] = (float)(i % 7 - 3);
    for (int i = 0; i < 70 * 5; i++)
        b[i] = (float)(i % 5 - 2);
    assert_true(p->ops->product(p, &x));
    for (int at = 0; at < 15; at++) {
        float want = 0;
        for (int l = 0; l < 70; l++)
            want += a[at / 5 * 70 + l] * b[l * 5 + at % 5];
        assert_true(c[at] == want);
    }
    assert_int_equal(p->ops->can(p, HB_RATE_F32), HB_CAN_MULTIPLY);
    assert_int_equal(p->ops->can(p, HB_RATE_BF16), 0);
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

/* The first of this kind that this machine or its Python has; null: none. */
static struct hb_dl *find_rtc(struct unit *u, const struct hb_gpu_kind *kind,
                              struct hb_rtc_calls *rtc)
{
    const struct hb_libs_ask ask = {.python = "python3", .root = "", .now_ns = unit_now_ns};
    struct hb_libs libs;
    const char *reason = "";
    struct hb_dl *lib = NULL;
    hb_libs_find(u->env.arena, &ask, &libs);
    for (const struct hb_gpu_family *f = kind->families; f->major >= 0 && !lib; f++)
        lib = hb_dl_open(u->env.arena, libs.folders, f->rtc, &reason);
    if (lib)
        assert_true(hb_dl_bind(lib, u->env.arena, kind->rtc_table, rtc, &reason));
    return lib;
}

static void build(struct unit *u, const struct hb_rtc_calls *rtc, int capability, const char *form,
                  const char *begins)
{
    const struct hb_rtc_target target = {capability, ""};
    struct hb_rtc_image image;
    const char *reason = "";
    if (!hb_rtc_build(u->env.arena, rtc, &target, &image, &reason))
        fail_msg("%s", reason);
    assert_string_equal(image.form, form);
    assert_memory_equal(image.bytes, begins, strlen(begins));
}

/* Each device that it knows gets its own code; one that is newer, code that its driver compiles. */
static void the_real_compiler_takes_the_kernels(void **state)
{
    (void)state;
    struct unit u;
    int archs[256];
    int count = 0;
    struct hb_rtc_calls rtc;
    unit_start(&u);
    if (!find_rtc(&u, &hb_gpu_cuda, &rtc)) {
        unit_end(&u);
        skip();
    }
    if (!rtc.own || !rtc.arch_count || rtc.arch_count(&count) != 0 || count > 256) {
        unit_end(&u);
        skip();
    }
    assert_int_equal(rtc.archs(archs), 0);
    for (int i = 0; i < count; i++)
        build(&u, &rtc, archs[i], hb_arena_printf(u.env.arena, "sm_%d", archs[i]), "\177ELF");
    build(&u, &rtc, 999, hb_arena_printf(u.env.arena, "PTX of compute_%d", archs[count - 1]), "//");
    unit_end(&u); /* the library stays: its threads do not like to go */
}

/* AMD's needs no device either; every release since 5 knows this one. */
static void the_real_compiler_of_hip_takes_the_kernels(void **state)
{
    (void)state;
    struct unit u;
    struct hb_rtc_calls rtc;
    struct hb_rtc_image image;
    const struct hb_rtc_target target = {0, "gfx90a:sramecc+:xnack-"};
    const char *reason = "";
    unit_start(&u);
    if (!find_rtc(&u, &hb_gpu_hip, &rtc)) {
        unit_end(&u);
        skip();
    }
    if (!hb_rtc_build(u.env.arena, &rtc, &target, &image, &reason))
        fail_msg("%s", reason);
    assert_string_equal(image.form, target.arch);
    assert_true(memcmp(image.bytes, "\177ELF", 4) == 0 ||
                memcmp(image.bytes, "__CLANG_OFFLOAD_BUNDLE__", 24) == 0);
    unit_end(&u);
}

/* Folders of a toolkit and of a Python, each once; what is no absolute path is not taken. */
static void libraries_are_looked_for_where_people_have_them(void **state)
{
    (void)state;
    struct unit u;
    char root[] = "/tmp/hbm-libs-XXXXXX";
    unit_start(&u);
    struct hb_arena *arena = u.env.arena;
    assert_non_null(mkdtemp(root));
    const char *const parts[] = {
        "usr", "usr/local",      "usr/local/cuda-99.1", "usr/local/cuda-99.1/lib64",
        "opt", "opt/rocm-9.9.0", "opt/rocm-9.9.0/lib"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        assert_int_equal(mkdir(hb_arena_printf(arena, "%s/%s", root, parts[i]), 0700), 0);
    const char *python = hb_arena_printf(arena, "%s/python", root);
    FILE *f = fopen(python, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\nprintf '/a/nvidia/cublas/lib\\nb\\n/a/torch/lib\\n/a/torch/lib\\n'\n");
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(python, 0700), 0);
    struct hb_libs_ask ask = {.python = python, .root = root, .now_ns = unit_now_ns};
    struct hb_libs libs;
    hb_libs_find(arena, &ask, &libs);
    assert_string_equal(libs.folders[0], "/a/nvidia/cublas/lib");
    assert_string_equal(libs.folders[1], "/a/torch/lib");
    assert_non_null(strstr(libs.folders[2], "cuda-99.1/lib64"));
    assert_non_null(strstr(libs.folders[3], "rocm-9.9.0/lib"));
    assert_string_equal(libs.folders[4], "");
    assert_null(libs.folders[5]);
    assert_string_equal(libs.given[0], "");
    const char *const own[] = {"/x", "/y"};
    ask.given = own;
    ask.given_count = 2;
    hb_libs_find(arena, &ask, &libs); /* instead of all that */
    assert_string_equal(libs.folders[1], "/y");
    assert_null(libs.folders[2]);
    assert_string_equal(libs.given[2], "");
    assert_null(libs.given[3]);
    unlink(python);
    for (size_t i = sizeof parts / sizeof parts[0]; i-- > 0;)
        rmdir(hb_arena_printf(arena, "%s/%s", root, parts[i]));
    rmdir(root);
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_that_is_there_is_bound),
        cmocka_unit_test(a_library_that_lacks_something_is_told),
        cmocka_unit_test(kernels_of_the_processor_compute),
        cmocka_unit_test(kernels_of_a_step_compute),
        cmocka_unit_test(products_of_the_processor_are_right),
        cmocka_unit_test(the_processor_tells_of_itself),
        cmocka_unit_test(elements_have_their_size),
        cmocka_unit_test(libraries_are_looked_for_where_people_have_them),
        cmocka_unit_test(the_real_compiler_takes_the_kernels),
        cmocka_unit_test(the_real_compiler_of_hip_takes_the_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
