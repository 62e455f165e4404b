/* HIP: names and numbers of the runtime, hipRTC and rocBLAS, as in AMD's headers of ROCm 5 to 7
 * (hip_runtime_api.h, hiprtc.h, rocblas-types.h). No header of theirs is needed to build. */
#include "base/arena.h"
#include "base/env.h"
#include "hw/probe_gpu.h"

#define CALL(member) offsetof(struct hb_gpu_calls, member)
#define RTC(member)  offsetof(struct hb_rtc_calls, member)

static const char *const driver_names[] = {"libamdhip64.so.7", "libamdhip64.so.6",
                                           "libamdhip64.so.5", "libamdhip64.so", NULL};
/* Older releases keep hipRTC in the runtime itself. */
static const char *const rtc_names[] = {"libhiprtc.so.7", "libhiprtc.so.6",   "libhiprtc.so.5",
                                        "libhiprtc.so",   "libamdhip64.so.5", NULL};
static const char *const blas_names[] = {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3",
                                         "librocblas.so.0", "librocblas.so",   NULL};

static const struct hb_dl_bind driver_table[] = {
    {"hipInit", CALL(init), false},
    {"hipDriverGetVersion", CALL(driver_version), false},
    {"hipGetDeviceCount", CALL(device_count), false},
    {"hipDeviceGet", CALL(device_get), false},
    {"hipDeviceGetName", CALL(device_name), false},
    {"hipDeviceGetAttribute", CALL(device_attribute), false},
    {"hipMemGetInfo", CALL(mem_info), false},
    {"hipMalloc", CALL(mem_alloc), false},
    {"hipFree", CALL(mem_free), false},
    {"hipHostMalloc", CALL(host_alloc), false},
    {"hipHostFree", CALL(host_free), false},
    {"hipMemcpyHtoDAsync", CALL(copy_up), false},
    {"hipMemcpyDtoHAsync", CALL(copy_down), false},
    {"hipMemcpyDtoDAsync", CALL(copy_within), false},
    {"hipStreamCreateWithFlags", CALL(stream_create), false},
    {"hipStreamDestroy", CALL(stream_destroy), false},
    {"hipStreamSynchronize", CALL(stream_wait), false},
    {"hipEventCreateWithFlags", CALL(event_create), false},
    {"hipEventDestroy", CALL(event_destroy), false},
    {"hipEventRecord", CALL(event_record), false},
    {"hipEventSynchronize", CALL(event_wait), false},
    {"hipEventElapsedTime", CALL(event_elapsed), false},
    {"hipModuleLoadData", CALL(module_load), false},
    {"hipModuleGetFunction", CALL(module_function), false},
    {"hipModuleUnload", CALL(module_unload), false},
    {"hipModuleLaunchKernel", CALL(launch), false},
    {"hipSetDevice", CALL(device_set), false},
    {"hipGetErrorString", CALL(error_text), false},
    {0},
};

static const struct hb_dl_bind rtc_table[] = {
    {"hiprtcVersion", RTC(version), false},
    {"hiprtcCreateProgram", RTC(create), false},
    {"hiprtcCompileProgram", RTC(compile), false},
    {"hiprtcGetCodeSize", RTC(code_size), false},
    {"hiprtcGetCode", RTC(code), false},
    {"hiprtcGetProgramLogSize", RTC(log_size), false},
    {"hiprtcGetProgramLog", RTC(log), false},
    {"hiprtcDestroyProgram", RTC(destroy), false},
    {0},
};

/* rocblas_datatype, rocblas_operation, rocblas_gemm_algo, rocblas_math_mode. */
enum {
    TYPE_F16 = 150,
    TYPE_F32 = 151,
    TYPE_F64 = 152,
    TYPE_BF16 = 168,
    OP_NONE = 111,
    ALGO_STANDARD = 0,
    MATH_DEFAULT = 0,
    MATH_XF32 = 1
};

static const struct {
    int type;
    int compute; /* 0: rocBLAS has no such product */
} rates[HB_RATE_COUNT] = {
    [HB_RATE_F64] = {TYPE_F64, TYPE_F64},
    [HB_RATE_F32] = {TYPE_F32, TYPE_F32},
    [HB_RATE_TF32] = {TYPE_F32, TYPE_F32},
    [HB_RATE_BF16] = {TYPE_BF16, TYPE_F32},
    [HB_RATE_F16] = {TYPE_F16, TYPE_F32},
    [HB_RATE_FP8] = {0, 0},
    [HB_RATE_FP4] = {0, 0},
    [HB_RATE_INT8] = {0, 0},
};

struct rocblas {
    struct hb_blas blas;
    int (*set_math)(void *handle, int mode);
    int (*product)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                   const void *a, int a_type, int a_ld, int64_t a_step, const void *b, int b_type,
                   int b_ld, int64_t b_step, const void *beta, const void *c, int c_type, int c_ld,
                   int64_t c_step, void *d, int d_type, int d_ld, int64_t d_step, int batch,
                   int compute, int algo, int32_t solution, uint32_t flags);
};

#define BLAS(member) offsetof(struct rocblas, member)
static const struct hb_dl_bind blas_table[] = {
    {"rocblas_create_handle", BLAS(blas.create), false},
    {"rocblas_destroy_handle", BLAS(blas.destroy), false},
    {"rocblas_set_stream", BLAS(blas.set_stream), false},
    {"rocblas_set_math_mode", BLAS(set_math), true},
    {"rocblas_gemm_strided_batched_ex", BLAS(product), false},
    {0},
};

static bool enter(struct hb_gpu *gpu)
{
    int code = gpu->calls.device_set(gpu->device);
    return code == 0 || hb_gpu_fail(gpu, "opening the device", code);
}

/* The runtime keeps its context until the process ends; resetting the device is not ours to do. */
static void leave(struct hb_gpu *gpu)
{
    (void)gpu;
}

static const char *error_text(struct hb_gpu *gpu, int code)
{
    const char *text = gpu->calls.error_text(code);
    return text ? text : "unknown error";
}

static bool blas_open(struct hb_gpu *gpu)
{
    struct rocblas *blas = hb_arena_alloc(gpu->probe.env->arena, 1, sizeof *blas);
    if (!hb_blas_open(gpu, "rocBLAS", blas_names, blas_table, &blas->blas))
        return false;
    gpu->blas = blas;
    return true;
}

static void blas_close(struct hb_gpu *gpu)
{
    struct rocblas *blas = gpu->blas;
    hb_blas_close(&blas->blas);
    gpu->blas = NULL;
}

/* xf32 is a unit of CDNA 3 (gfx942) alone; the capability is told as 9.4 there. */
static bool can(struct hb_gpu *gpu, enum hb_rate rate)
{
    if (rate == HB_RATE_TF32)
        return gpu->major == 9 && gpu->minor == 4;
    return rates[rate].compute != 0;
}

/* Row-major c = a b is column-major c^T = b^T a^T. */
static bool product(struct hb_gpu *gpu, const struct hb_product *p)
{
    struct rocblas *blas = gpu->blas;
    const void *alpha = hb_blas_factor(p->rate, 1);
    const void *beta = hb_blas_factor(p->rate, 0);
    int type = rates[p->rate].type;
    int64_t step = (int64_t)p->m * p->n;
    if (p->rate == HB_RATE_TF32 && !blas->set_math) {
        gpu->probe.error = "this rocBLAS cannot be asked for xf32";
        return false;
    }
    if (blas->set_math)
        blas->set_math(blas->blas.handle, p->rate == HB_RATE_TF32 ? MATH_XF32 : MATH_DEFAULT);
    int code = blas->product(blas->blas.handle, OP_NONE, OP_NONE, p->n, p->m, p->k, alpha,
                             (const void *)p->b, type, p->n, (int64_t)p->k * p->n,
                             (const void *)p->a, type, p->k, (int64_t)p->m * p->k, beta,
                             (const void *)p->c, type, p->n, step, (void *)p->c, type, p->n, step,
                             p->batch, rates[p->rate].compute, ALGO_STANDARD, 0, 0);
    return hb_blas_done(gpu, "a product of rocBLAS", code);
}

/* Attribute numbers: hipDeviceAttribute_t, whose places have stayed since ROCm 5.0. */
const struct hb_gpu_kind hb_gpu_hip = {
    .backend = "hip",
    .vendor = HB_VENDOR_AMD,
    .driver_names = driver_names,
    .rtc_names = rtc_names,
    .driver_table = driver_table,
    .rtc_table = rtc_table,
    .rtc_option = NULL,
    .oldest_driver = 0,
    .attribute_cores = 63,
    .attribute_clock = 5,
    .attribute_bus = 59,
    .attribute_memory_clock = 60,
    .attribute_cache = 19,
    .attribute_ecc = 0,
    .attribute_major = 23,
    .attribute_minor = 61,
    .enter = enter,
    .leave = leave,
    .error_text = error_text,
    .blas_open = blas_open,
    .blas_close = blas_close,
    .product = product,
    .can = can,
};
