/* CUDA: names and numbers of the driver API, NVRTC and cuBLAS, as in NVIDIA's documentation of
 * them (CUDA Driver API, NVRTC, cuBLAS; version 11 to 13). No header of theirs is needed. */
#include "base/arena.h"
#include "base/env.h"
#include "hw/probe_gpu.h"

#define CALL(member) offsetof(struct hb_gpu_calls, member)
#define RTC(member)  offsetof(struct hb_rtc_calls, member)

static const char *const driver_names[] = {"libcuda.so.1", "libcuda.so", NULL};
static const char *const rtc_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                        "libnvrtc.so", NULL};
static const char *const blas_names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                         "libcublas.so", NULL};
static const char *const blas_lt_names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                            "libcublasLt.so.11", "libcublasLt.so", NULL};

static const struct hb_dl_bind driver_table[] = {
    {"cuInit", CALL(init), false},
    {"cuDriverGetVersion", CALL(driver_version), false},
    {"cuDeviceGetCount", CALL(device_count), false},
    {"cuDeviceGet", CALL(device_get), false},
    {"cuDeviceGetName", CALL(device_name), false},
    {"cuDeviceGetAttribute", CALL(device_attribute), false},
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
    {"cuDevicePrimaryCtxRetain", CALL(context_retain), false},
    {"cuCtxSetCurrent", CALL(context_set), false},
    {"cuDevicePrimaryCtxRelease_v2", CALL(context_release), false},
    {"cuGetErrorString", CALL(error_text_at), false},
    {0},
};

static const struct hb_dl_bind rtc_table[] = {
    {"nvrtcVersion", RTC(version), false},
    {"nvrtcCreateProgram", RTC(create), false},
    {"nvrtcCompileProgram", RTC(compile), false},
    {"nvrtcGetPTXSize", RTC(code_size), false},
    {"nvrtcGetPTX", RTC(code), false},
    {"nvrtcGetProgramLogSize", RTC(log_size), false},
    {"nvrtcGetProgramLog", RTC(log), false},
    {"nvrtcDestroyProgram", RTC(destroy), false},
    {0},
};

/* cudaDataType_t, cublasComputeType_t, cublasOperation_t, cublasGemmAlgo_t. */
enum {
    TYPE_F32 = 0,
    TYPE_F64 = 1,
    TYPE_F16 = 2,
    TYPE_BF16 = 14,
    TYPE_E4M3 = 28,
    COMPUTE_F32 = 68,
    COMPUTE_F64 = 70,
    COMPUTE_TF32 = 77,
    OP_N = 0,
    OP_T = 1,
    ALGO_DEFAULT = -1
};

static const struct {
    int type;
    int compute;
    int oldest; /* compute capability x 10 */
} rates[HB_RATE_COUNT] = {
    [HB_RATE_F64] = {TYPE_F64, COMPUTE_F64, 60},
    [HB_RATE_F32] = {TYPE_F32, COMPUTE_F32, 30},
    [HB_RATE_TF32] = {TYPE_F32, COMPUTE_TF32, 80},
    [HB_RATE_BF16] = {TYPE_BF16, COMPUTE_F32, 80},
    [HB_RATE_F16] = {TYPE_F16, COMPUTE_F32, 60},
    [HB_RATE_FP8] = {TYPE_E4M3, COMPUTE_F32, 89},
    [HB_RATE_FP4] = {0, 0, 9999},
    [HB_RATE_INT8] = {0, 0, 9999},
};

/* Eight bit products go through cuBLASLt alone. Attribute numbers: CUBLASLT_MATMUL_DESC_TRANSA 3,
 * CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES 1. */
enum { LT_TRANS_A = 3, LT_MAX_WORKSPACE = 1, LT_WORKSPACE_BYTES = 32 << 20 };

struct lt_choice {
    uint64_t algo[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

struct lt_calls {
    int (*create)(void **out_handle);
    int (*destroy)(void *handle);
    int (*desc_create)(void **out_desc, int compute, int scale_type);
    int (*desc_set)(void *desc, int attribute, const void *value, size_t bytes);
    int (*desc_destroy)(void *desc);
    int (*layout_create)(void **out_layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
    int (*layout_destroy)(void *layout);
    int (*wish_create)(void **out_wish);
    int (*wish_set)(void *wish, int attribute, const void *value, size_t bytes);
    int (*wish_destroy)(void *wish);
    int (*choose)(void *handle, void *desc, void *a, void *b, void *c, void *d, void *wish,
                  int asked, struct lt_choice *out_choices, int *out_count);
    int (*run)(void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
               const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
               void *d, void *d_layout, const uint64_t *algo, void *workspace, size_t bytes,
               void *stream);
};

#define LT(member) offsetof(struct lt_calls, member)
static const struct hb_dl_bind lt_table[] = {
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

struct cublas {
    struct hb_blas blas;
    struct hb_dl *lt_lib;
    void *lt_handle;
    uintptr_t workspace; /* for cublasLt */
    struct lt_calls lt;
    int (*product)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                   const void *a, int a_type, int a_ld, long long a_step, const void *b, int b_type,
                   int b_ld, long long b_step, const void *beta, void *c, int c_type, int c_ld,
                   long long c_step, int batch, int compute, int algo);
};

#define BLAS(member) offsetof(struct cublas, member)
static const struct hb_dl_bind blas_table[] = {
    {"cublasCreate_v2", BLAS(blas.create), false},
    {"cublasDestroy_v2", BLAS(blas.destroy), false},
    {"cublasSetStream_v2", BLAS(blas.set_stream), false},
    {"cublasGemmStridedBatchedEx", BLAS(product), false},
    {0},
};

static bool enter(struct hb_gpu *gpu)
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

static void leave(struct hb_gpu *gpu)
{
    gpu->calls.context_set(NULL);
    gpu->calls.context_release(gpu->device);
}

static const char *error_text(struct hb_gpu *gpu, int code)
{
    const char *text = NULL;
    if (gpu->calls.error_text_at(code, &text) != 0 || !text)
        return "unknown error";
    return text;
}

/* Without it only eight bit products are left out. */
static void open_lt(struct hb_gpu *gpu, struct cublas *blas)
{
    struct hb_arena *arena = gpu->probe.env->arena;
    const char *reason;
    blas->lt_lib = hb_dl_open(arena, gpu->libs, blas_lt_names, &reason);
    if (!blas->lt_lib)
        return;
    bool bound = hb_dl_bind(blas->lt_lib, arena, lt_table, &blas->lt, &reason);
    if (bound && blas->lt.create(&blas->lt_handle) == 0 &&
        gpu->calls.mem_alloc(&blas->workspace, LT_WORKSPACE_BYTES) == 0)
        return;
    if (blas->lt_handle)
        blas->lt.destroy(blas->lt_handle);
    blas->lt_handle = NULL;
}

static bool blas_open(struct hb_gpu *gpu)
{
    struct cublas *blas = hb_arena_alloc(gpu->probe.env->arena, 1, sizeof *blas);
    if (!hb_blas_open(gpu, "cuBLAS", blas_names, blas_table, &blas->blas))
        return false;
    open_lt(gpu, blas);
    gpu->blas = blas;
    return true;
}

static void blas_close(struct hb_gpu *gpu)
{
    struct cublas *blas = gpu->blas;
    if (blas->workspace)
        gpu->calls.mem_free(blas->workspace);
    if (blas->lt_handle)
        blas->lt.destroy(blas->lt_handle);
    hb_dl_close(blas->lt_lib);
    hb_blas_close(&blas->blas);
    gpu->blas = NULL;
}

static bool can(struct hb_gpu *gpu, enum hb_rate rate)
{
    return gpu->major * 10 + gpu->minor >= rates[rate].oldest;
}

struct lt_plan {
    void *desc, *a, *b, *c, *wish;
    struct lt_choice choice;
};

/* c^T (n x m) = b^T a^T with the first operand transposed, the only form for eight bits. */
static int plan_lt(const struct cublas *blas, const struct hb_product *p, struct lt_plan *plan)
{
    const struct lt_calls *lt = &blas->lt;
    int op = OP_T;
    size_t room = LT_WORKSPACE_BYTES;
    int found = 0;
    uint64_t m = (uint64_t)p->m;
    uint64_t n = (uint64_t)p->n;
    uint64_t k = (uint64_t)p->k;
    int code = lt->desc_create(&plan->desc, COMPUTE_F32, TYPE_F32);
    code = code ? code : lt->desc_set(plan->desc, LT_TRANS_A, &op, sizeof op);
    code = code ? code : lt->layout_create(&plan->a, TYPE_E4M3, k, n, p->k);
    code = code ? code : lt->layout_create(&plan->b, TYPE_E4M3, k, m, p->k);
    code = code ? code : lt->layout_create(&plan->c, TYPE_BF16, n, m, p->n);
    code = code ? code : lt->wish_create(&plan->wish);
    code = code ? code : lt->wish_set(plan->wish, LT_MAX_WORKSPACE, &room, sizeof room);
    code = code ? code
                : lt->choose(blas->lt_handle, plan->desc, plan->a, plan->b, plan->c, plan->c,
                             plan->wish, 1, &plan->choice, &found);
    return code ? code : found ? 0 : -1;
}

static void drop_lt(const struct cublas *blas, struct lt_plan *plan)
{
    if (plan->wish)
        blas->lt.wish_destroy(plan->wish);
    void *layouts[] = {plan->a, plan->b, plan->c};
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            blas->lt.layout_destroy(layouts[i]);
    if (plan->desc)
        blas->lt.desc_destroy(plan->desc);
}

static bool product_lt(struct hb_gpu *gpu, const struct hb_product *p)
{
    struct cublas *blas = gpu->blas;
    struct lt_plan plan = {0};
    const float one = 1;
    const float zero = 0;
    if (!blas->lt_handle) {
        gpu->probe.error = "cuBLASLt is not there, so eight bit products are left out";
        return false;
    }
    int code = plan_lt(blas, p, &plan);
    if (code == 0)
        code = blas->lt.run(blas->lt_handle, plan.desc, &one, (const void *)p->b, plan.a,
                            (const void *)p->a, plan.b, &zero, (const void *)p->c, plan.c,
                            (void *)p->c, plan.c, plan.choice.algo, (void *)blas->workspace,
                            LT_WORKSPACE_BYTES, gpu->stream[HB_LANE_COMPUTE]);
    drop_lt(blas, &plan);
    return hb_blas_done(gpu, "an eight bit product", code);
}

/* Row-major c = a b is column-major c^T = b^T a^T. */
static bool product(struct hb_gpu *gpu, const struct hb_product *p)
{
    struct cublas *blas = gpu->blas;
    if (p->rate == HB_RATE_FP8)
        return product_lt(gpu, p);
    const void *alpha = hb_blas_factor(p->rate, 1);
    const void *beta = hb_blas_factor(p->rate, 0);
    int type = rates[p->rate].type;
    int code =
        blas->product(blas->blas.handle, OP_N, OP_N, p->n, p->m, p->k, alpha, (const void *)p->b,
                      type, p->n, (long long)p->k * p->n, (const void *)p->a, type, p->k,
                      (long long)p->m * p->k, beta, (void *)p->c, type, p->n,
                      (long long)p->m * p->n, p->batch, rates[p->rate].compute, ALGO_DEFAULT);
    return hb_blas_done(gpu, "a product of cuBLAS", code);
}

/* Attribute numbers: CUdevice_attribute. cuEventElapsedTime and primary contexts are there since
 * 7.0; 11.0 brought the compute types. */
const struct hb_gpu_kind hb_gpu_cuda = {
    .backend = "cuda",
    .vendor = HB_VENDOR_NVIDIA,
    .driver_names = driver_names,
    .rtc_names = rtc_names,
    .driver_table = driver_table,
    .rtc_table = rtc_table,
    .rtc_option = "--gpu-architecture=compute_",
    .oldest_driver = 11000,
    .attribute_cores = 16,
    .attribute_clock = 13,
    .attribute_bus = 37,
    .attribute_memory_clock = 36,
    .attribute_cache = 38,
    .attribute_ecc = 32,
    .attribute_major = 75,
    .attribute_minor = 76,
    .enter = enter,
    .leave = leave,
    .error_text = error_text,
    .blas_open = blas_open,
    .blas_close = blas_close,
    .product = product,
    .can = can,
};
