/* What differs between CUDA and HIP: names of libraries and functions, numbers of their enums; one
 * body of code (probe_gpu.c, gpu_blas.c) does the rest. Read in cuda.h, nvrtc.h, cublas_api.h,
 * cublasLt.h and library_types.h of CUDA 13.0; hip_runtime_api.h of ROCm 5.2 and 6.3, hiprtc.h,
 * rocblas-types.h, hipblaslt.h of 0.10 and library_types.h of ROCm 6.3 and 7.0. No header of theirs
 * is needed to build. */
#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/str.h"
#include "hw/gpu_blas.h"
#include "hw/probe_gpu.h"

#define CALL(member) offsetof(struct hb_gpu_calls, member)
#define RTC(member)  offsetof(struct hb_rtc_calls, member)
#define BLAS(member) offsetof(struct hb_blas_calls, member)
#define LT(member)   offsetof(struct hb_lt_calls, member)

static const char *error_text(struct hb_gpu *gpu, int code)
{
    const char *text = NULL;
    if (gpu->calls.error_text)
        text = gpu->calls.error_text(code);
    else if (gpu->calls.error_text_at(code, &text) != 0)
        text = NULL;
    return text ? text : "unknown error";
}

/* ---- CUDA ---- */

static const struct hb_dl_bind cuda_calls[] = {
    {"cuInit", CALL(init), false},
    {"cuDriverGetVersion", CALL(driver_version), false},
    {"cuDeviceGetCount", CALL(device_count), false},
    {"cuDeviceGet", CALL(device_get), false},
    {"cuDeviceGetName", CALL(device_name), false},
    {"cuDeviceGetAttribute", CALL(device_attribute), false},
    {"cuDeviceGetPCIBusId", CALL(device_bus), true},
    {"cuMemGetInfo_v2", CALL(mem_info), false},
    {"cuMemAlloc_v2", CALL(mem_alloc), false},
    {"cuMemFree_v2", CALL(mem_free), false},
    {"cuMemHostAlloc", CALL(host_alloc), false},
    {"cuMemFreeHost", CALL(host_free), false},
    {"cuMemcpyHtoDAsync_v2", CALL(copy_up), false},
    {"cuMemcpyDtoHAsync_v2", CALL(copy_down), false},
    {"cuMemcpyDtoDAsync_v2", CALL(copy_within), false},
    {"cuStreamCreate", CALL(stream_create), false},
    {"cuStreamDestroy_v2", CALL(stream_destroy), false},
    {"cuStreamSynchronize", CALL(stream_wait), false},
    {"cuEventCreate", CALL(event_create), false},
    {"cuEventDestroy_v2", CALL(event_destroy), false},
    {"cuEventRecord", CALL(event_record), false},
    {"cuEventSynchronize", CALL(event_wait), false},
    {"cuEventElapsedTime", CALL(event_elapsed), false},
    {"cuModuleLoadData", CALL(module_load), false},
    {"cuModuleGetFunction", CALL(module_function), false},
    {"cuModuleUnload", CALL(module_unload), false},
    {"cuLaunchKernel", CALL(launch), false},
    {"cuDeviceCanAccessPeer", CALL(can_access), true},
    {"cuCtxEnablePeerAccess", CALL(context_join), true},
    {"cuMemcpyPeerAsync", CALL(context_copy), true},
    {"cuDevicePrimaryCtxRetain", CALL(context_retain), false},
    {"cuCtxSetCurrent", CALL(context_set), false},
    {"cuDevicePrimaryCtxRelease_v2", CALL(context_release), false},
    {"cuGetErrorString", CALL(error_text_at), false},
    {0},
};

static const struct hb_dl_bind cuda_rtc[] = {
    {"nvrtcVersion", RTC(version), false},
    {"nvrtcCreateProgram", RTC(create), false},
    {"nvrtcCompileProgram", RTC(compile), false},
    {"nvrtcGetPTXSize", RTC(code_size), false},
    {"nvrtcGetPTX", RTC(code), false},
    {"nvrtcGetCUBINSize", RTC(own_size), true},
    {"nvrtcGetCUBIN", RTC(own), true},
    {"nvrtcGetNumSupportedArchs", RTC(arch_count), true},
    {"nvrtcGetSupportedArchs", RTC(archs), true},
    {"nvrtcGetProgramLogSize", RTC(log_size), false},
    {"nvrtcGetProgramLog", RTC(log), false},
    {"nvrtcDestroyProgram", RTC(destroy), false},
    {0},
};

static const struct hb_dl_bind cuda_blas[] = {
    {"cublasCreate_v2", BLAS(create), false},
    {"cublasDestroy_v2", BLAS(destroy), false},
    {"cublasSetStream_v2", BLAS(set_stream), false},
    {"cublasSetWorkspace_v2", BLAS(set_workspace), true},
    {"cublasGetVersion_v2", BLAS(version), true},
    {"cublasGemmEx", BLAS(cublas_product), false},
    {0},
};

static const struct hb_dl_bind cuda_lt[] = {
    {"cublasLtCreate", LT(create), false},
    {"cublasLtDestroy", LT(destroy), false},
    {"cublasLtMatmulDescCreate", LT(desc_create), false},
    {"cublasLtMatmulDescSetAttribute", LT(desc_set), false},
    {"cublasLtMatmulDescDestroy", LT(desc_destroy), false},
    {"cublasLtMatrixLayoutCreate", LT(layout_create), false},
    {"cublasLtMatrixLayoutDestroy", LT(layout_destroy), false},
    {"cublasLtMatmulPreferenceCreate", LT(wish_create), false},
    {"cublasLtMatmulPreferenceSetAttribute", LT(wish_set), false},
    {"cublasLtMatmulPreferenceDestroy", LT(wish_destroy), false},
    {"cublasLtMatmulAlgoGetHeuristic", LT(choose), false},
    {"cublasLtMatmul", LT(run), false},
    {0},
};

/* cudaDataType_t and cublasComputeType_t, the same in cuBLAS and cuBLASLt. */
enum {
    F32 = 0,
    F64 = 1,
    F16 = 2,
    I8 = 3,
    I32 = 10,
    BF16 = 14,
    E4M3 = 28,
    E2M1 = 33,
    CUDA_BY_F32 = 68,
    CUDA_BY_F64 = 70,
    CUDA_BY_I32 = 72,
    CUDA_BY_TF32 = 77
};

static const struct hb_gemm_form cuda_forms[HB_RATE_COUNT] = {
    [HB_RATE_F64] = {true, F64, CUDA_BY_F64, F64, F64, HB_FILL_F64},
    [HB_RATE_F32] = {true, F32, CUDA_BY_F32, F32, F32, HB_FILL_F32},
    [HB_RATE_TF32] = {true, F32, CUDA_BY_TF32, F32, F32, HB_FILL_F32},
    [HB_RATE_BF16] = {true, BF16, CUDA_BY_F32, F32, BF16, HB_FILL_BF16},
    [HB_RATE_F16] = {true, F16, CUDA_BY_F32, F32, F16, HB_FILL_F16},
    [HB_RATE_FP8] = {true, E4M3, CUDA_BY_F32, F32, BF16, HB_FILL_E4M3},
    [HB_RATE_FP4] = {true, E2M1, CUDA_BY_F32, F32, BF16, HB_FILL_E2M1},
    [HB_RATE_INT8] = {true, I8, CUDA_BY_I32, I32, I32, HB_FILL_INT8},
};

/* The first compute capability whose matrix unit (for f64 and f32: whose libraries) has the type.
 */
static struct hb_gemm_form cuda_form(const struct hb_gpu *gpu, enum hb_rate rate, bool lt)
{
    static const int oldest[HB_RATE_COUNT] = {
        [HB_RATE_F64] = 60, [HB_RATE_F32] = 30, [HB_RATE_TF32] = 80, [HB_RATE_BF16] = 80,
        [HB_RATE_F16] = 60, [HB_RATE_FP8] = 89, [HB_RATE_FP4] = 100, [HB_RATE_INT8] = 75,
    };
    struct hb_gemm_form form = cuda_forms[rate];
    form.there = gpu->major * 10 + gpu->minor >= oldest[rate];
    if (!lt && (rate == HB_RATE_FP8 || rate == HB_RATE_FP4 || rate == HB_RATE_INT8))
        form.there = false;
    return form;
}

static bool cuda_enter(struct hb_gpu *gpu)
{
    int code = gpu->calls.context_retain(&gpu->context, gpu->device);
    if (code != 0)
        return hb_gpu_fail(gpu, "opening the device", code);
    code = gpu->calls.context_set(gpu->context);
    if (code == 0)
        return true;
    gpu->calls.context_release(gpu->device);
    return hb_gpu_fail(gpu, "opening the device", code);
}

static void cuda_leave(struct hb_gpu *gpu)
{
    gpu->calls.context_set(NULL);
    gpu->calls.context_release(gpu->device);
}

static void cuda_target(struct hb_gpu *gpu, struct hb_rtc_target *out)
{
    *out = (struct hb_rtc_target){gpu->major * 10 + gpu->minor, ""};
}

#define NAMES(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/* NVRTC's names had the minor version until 11.2, which all later 11 kept. */
static const struct hb_gpu_family cuda_families[] = {
    {13, NULL, NAMES("libnvrtc.so.13"), NAMES("libcublas.so.13"), NAMES("libcublasLt.so.13")},
    {12, NULL, NAMES("libnvrtc.so.12"), NAMES("libcublas.so.12"), NAMES("libcublasLt.so.12")},
    {11, NULL, NAMES("libnvrtc.so.11.2", "libnvrtc.so.11.1", "libnvrtc.so.11.0"),
     NAMES("libcublas.so.11"), NAMES("libcublasLt.so.11")},
    {0, NULL, NAMES("libnvrtc.so"), NAMES("libcublas.so"), NAMES("libcublasLt.so")},
    {-1, NULL, NULL, NULL, NULL},
};

/* CUdevice_attribute; cublasLtMatmulDescAttributes_t; cublasOperation_t. 11.0 brought the compute
 * types. A version is 1000 x major + 10 x minor. */
const struct hb_gpu_kind hb_gpu_cuda = {
    .backend = "cuda",
    .vendor = HB_VENDOR_NVIDIA,
    .driver_names = NAMES("libcuda.so.1", "libcuda.so"),
    .families = cuda_families,
    .driver_table = cuda_calls,
    .rtc_table = cuda_rtc,
    .blas_table = cuda_blas,
    .lt_table = cuda_lt,
    .oldest_driver = 11000,
    .version_unit = 1000,
    .attribute = {.cores = 16,
                  .clock = 13,
                  .bus = 37,
                  .memory_clock = 36,
                  .cache = 38,
                  .ecc = 32,
                  .major = 75,
                  .minor = 76,
                  .integrated = 18,
                  .host_pages = 100},
    .gemm = {.title = "cuBLAS",
             .lt_title = "cuBLASLt",
             .lt_first = false,
             .trans_a = 3,
             .fast = 25,
             .scale_a = 17,
             .scale_b = 18,
             .op_n = 0,
             .op_t = 1,
             .fp4_mode = 1,
             .fp4_block = 16,
             .fp4_ones = HB_FILL_ONES_E4M3,
             .form = cuda_form},
    .enter = cuda_enter,
    .leave = cuda_leave,
    .target = cuda_target,
    .error_text = error_text,
};

/* ---- HIP ---- */

static const struct hb_dl_bind hip_calls[] = {
    {"hipInit", CALL(init), false},
    {"hipDriverGetVersion", CALL(driver_version), false},
    {"hipGetDeviceCount", CALL(device_count), false},
    {"hipDeviceGet", CALL(device_get), false},
    {"hipDeviceGetName", CALL(device_name), false},
    {"hipDeviceGetAttribute", CALL(device_attribute), false},
    {"hipDeviceGetPCIBusId", CALL(device_bus), true},
    {"hipGetDevicePropertiesR0600", CALL(properties_6), true},
    {"hipGetDeviceProperties", CALL(properties_5), true},
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
    {"hipDeviceCanAccessPeer", CALL(can_access), true},
    {"hipDeviceEnablePeerAccess", CALL(device_join), true},
    {"hipMemcpyPeerAsync", CALL(device_copy), true},
    {"hipSetDevice", CALL(device_set), false},
    {"hipGetErrorString", CALL(error_text), false},
    {0},
};

static const struct hb_dl_bind hip_rtc[] = {
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

static const struct hb_dl_bind hip_blas[] = {
    {"rocblas_create_handle", BLAS(create), false},
    {"rocblas_destroy_handle", BLAS(destroy), false},
    {"rocblas_set_stream", BLAS(set_stream), false},
    {"rocblas_set_workspace", BLAS(set_workspace), true},
    {"rocblas_set_math_mode", BLAS(set_math), true},
    {"rocblas_gemm_ex", BLAS(rocblas_product), false},
    {0},
};

static const struct hb_dl_bind hip_lt[] = {
    {"hipblasLtCreate", LT(create), false},
    {"hipblasLtDestroy", LT(destroy), false},
    {"hipblasLtGetVersion", LT(version), true},
    {"hipblasLtMatmulDescCreate", LT(desc_create), false},
    {"hipblasLtMatmulDescSetAttribute", LT(desc_set), false},
    {"hipblasLtMatmulDescDestroy", LT(desc_destroy), false},
    {"hipblasLtMatrixLayoutCreate", LT(layout_create), false},
    {"hipblasLtMatrixLayoutDestroy", LT(layout_destroy), false},
    {"hipblasLtMatmulPreferenceCreate", LT(wish_create), false},
    {"hipblasLtMatmulPreferenceSetAttribute", LT(wish_set), false},
    {"hipblasLtMatmulPreferenceDestroy", LT(wish_destroy), false},
    {"hipblasLtMatmulAlgoGetHeuristic", LT(choose), false},
    {"hipblasLtMatmul", LT(run), false},
    {0},
};

/* hipDataType has CUDA's numbers, and E4M3 of the fnuz kind; hipblasComputeType_t since ROCm 6.0;
 * rocblas_datatype. */
enum {
    E4M3_FNUZ = 1000,
    HIP_BY_F32 = 2,
    HIP_BY_TF32 = 6,
    HIP_BY_I32 = 9,
    ROC_F16 = 150,
    ROC_F32 = 151,
    ROC_F64 = 152,
    ROC_BF16 = 168
};

static const struct hb_gemm_form hip_forms[HB_RATE_COUNT] = {
    [HB_RATE_F64] = {false, 0, 0, 0, 0, HB_FILL_F64}, /* hipBLASLt has none */
    [HB_RATE_F32] = {true, F32, HIP_BY_F32, F32, F32, HB_FILL_F32},
    [HB_RATE_TF32] = {true, F32, HIP_BY_TF32, F32, F32, HB_FILL_F32},
    [HB_RATE_BF16] = {true, BF16, HIP_BY_F32, F32, BF16, HB_FILL_BF16},
    [HB_RATE_F16] = {true, F16, HIP_BY_F32, F32, F16, HB_FILL_F16},
    [HB_RATE_FP8] = {true, E4M3, HIP_BY_F32, F32, BF16, HB_FILL_E4M3},
    [HB_RATE_FP4] = {true, E2M1, HIP_BY_F32, F32, BF16, HB_FILL_E2M1},
    [HB_RATE_INT8] = {true, I8, HIP_BY_I32, I32, I32, HB_FILL_INT8},
};

static const struct hb_gemm_form roc_forms[HB_RATE_COUNT] = {
    [HB_RATE_F64] = {true, ROC_F64, ROC_F64, ROC_F64, ROC_F64, HB_FILL_F64},
    [HB_RATE_F32] = {true, ROC_F32, ROC_F32, ROC_F32, ROC_F32, HB_FILL_F32},
    [HB_RATE_TF32] = {true, ROC_F32, ROC_F32, ROC_F32, ROC_F32, HB_FILL_F32},
    [HB_RATE_BF16] = {true, ROC_BF16, ROC_F32, ROC_F32, ROC_BF16, HB_FILL_BF16},
    [HB_RATE_F16] = {true, ROC_F16, ROC_F32, ROC_F32, ROC_F16, HB_FILL_F16},
};

/* Eight bit floats are fnuz on gfx942 alone, OCP's on gfx950 and gfx12; xf32 is a unit of gfx942;
 * four bits of gfx950. hipBLASLt's own table of types says so. */
static struct hb_gemm_form hip_form(const struct hb_gpu *gpu, enum hb_rate rate, bool lt)
{
    const char *arch = gpu->target.arch;
    bool fnuz = hb_str_starts(arch, "gfx942");
    bool four = hb_str_starts(arch, "gfx950");
    struct hb_gemm_form form = (lt ? hip_forms : roc_forms)[rate];
    if (rate == HB_RATE_FP8 && fnuz) {
        form.type = E4M3_FNUZ;
        form.fill = HB_FILL_E4M3_FNUZ;
    }
    if (rate == HB_RATE_FP8 && !fnuz && !four && !hb_str_starts(arch, "gfx12"))
        form.there = false;
    if ((rate == HB_RATE_TF32 && !fnuz) || (rate == HB_RATE_FP4 && !four))
        form.there = false;
    return form;
}

static bool hip_enter(struct hb_gpu *gpu)
{
    int code = gpu->calls.device_set(gpu->device);
    return code == 0 || hb_gpu_fail(gpu, "opening the device", code);
}

/* The runtime keeps its context until the process ends; resetting the device is not ours to do. */
static void hip_leave(struct hb_gpu *gpu)
{
    (void)gpu;
}

/* Places of gcnArchName in hipDeviceProp_tR0600 (ROCm 6 on) and in the one before. */
enum { ARCH_6 = 1160, ARCH_5 = 396, ARCH_BYTES = 256, PROPERTY_BYTES = 4096 };

static void hip_target(struct hb_gpu *gpu, struct hb_rtc_target *out)
{
    char *all = hb_arena_alloc(gpu->probe.env->arena, PROPERTY_BYTES, 1);
    bool six = gpu->calls.properties_6 != NULL;
    int code = six                       ? gpu->calls.properties_6(all, gpu->device)
               : gpu->calls.properties_5 ? gpu->calls.properties_5(all, gpu->device)
                                         : -1;
    const char *arch = all + (six ? ARCH_6 : ARCH_5);
    bool told = code == 0 && hb_str_starts(arch, "gfx") && memchr(arch, '\0', ARCH_BYTES);
    *out = (struct hb_rtc_target){0, told ? arch : ""};
}

/* One ROCm each: the runtime is a library of the family, so that no two come into one process.
 * PyTorch's wheels keep theirs without a version. */
static const struct hb_gpu_family hip_families[] = {
    {7, NAMES("libamdhip64.so.7"), NAMES("libhiprtc.so.7"), NAMES("librocblas.so.5"),
     NAMES("libhipblaslt.so.1")},
    {6, NAMES("libamdhip64.so.6"), NAMES("libhiprtc.so.6"), NAMES("librocblas.so.4"),
     NAMES("libhipblaslt.so.0")},
    {5, NAMES("libamdhip64.so.5"), NAMES("libhiprtc.so.5", "libamdhip64.so.5"),
     NAMES("librocblas.so.3", "librocblas.so.0"), NAMES("libhipblaslt.so.0")},
    {0, NAMES("libamdhip64.so"), NAMES("libhiprtc.so"), NAMES("librocblas.so"),
     NAMES("libhipblaslt.so")},
    {-1, NULL, NULL, NULL, NULL},
};

/* hipDeviceAttribute_t, whose places have stayed since ROCm 5.0; hipblasLtMatmulDescAttributes_t;
 * hipblasOperation_t, which is rocblas_operation. */
const struct hb_gpu_kind hb_gpu_hip = {
    .backend = "hip",
    .vendor = HB_VENDOR_AMD,
    .driver_names = NULL,
    .families = hip_families,
    .driver_table = hip_calls,
    .rtc_table = hip_rtc,
    .blas_table = hip_blas,
    .lt_table = hip_lt,
    .oldest_driver = 0,
    .placed_flag = 0x20000000, /* hipHostMallocNumaUser */
    .version_unit = 10000000,
    .attribute = {.cores = 63,
                  .clock = 5,
                  .bus = 59,
                  .memory_clock = 60,
                  .cache = 19,
                  .ecc = 0,
                  .major = 23,
                  .minor = 61,
                  .integrated = 16,
                  .host_pages = 66},
    .gemm = {.title = "rocBLAS",
             .lt_title = "hipBLASLt",
             .lt_first = true,
             .trans_a = 0,
             .fast = -1,
             .scale_a = 5,
             .scale_b = 6,
             .op_n = 111,
             .op_t = 112,
             .fp4_mode = 2,
             .fp4_block = 32,
             .fp4_ones = HB_FILL_ONES_E8M0,
             .form = hip_form},
    .enter = hip_enter,
    .leave = hip_leave,
    .target = hip_target,
    .error_text = error_text,
};
