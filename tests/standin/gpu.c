/* Stand-ins for the libraries of a GPU: driver, run-time compiler, matrix products; for CUDA
 * (STANDIN_CUDA) or HIP. They have the real entry points and a clock of their own, so that the
 * real code path of calibrate runs on a machine without a device. Addresses are checked against
 * what was allocated; what is not given back ends the program when the library is unloaded.
 * HBM_STANDIN is a comma list of troubles: nodevice, version, oom=N, launch=N, event=N, blas,
 * compile, slow, multi, mig, busy, frag, interrupt=N. Like a driver it has a thread of its own. One
 * of PART_DRIVER, PART_RTC, PART_BLAS, PART_LT says which library this is. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef STANDIN_CUDA
#define NAME(cuda, hip) cuda
typedef unsigned long long address;
#else
#define NAME(cuda, hip) hip
typedef void *address;
#endif

void standin_work(void *stream, double ns);
int standin_trouble(const char *name);
void standin_take(long long bytes);
void standin_check(uintptr_t at, double bytes, const char *what);

#ifdef PART_DRIVER

enum { STREAMS = 8, BLOCKS = 8192, OUT_OF_MEMORY = 2, LAUNCH_FAILED = 719 };
#define TOTAL   (4LL << 30)
#define PAGE    (2LL << 20)
#define CONTEXT (300LL << 20)

static struct {
    double host_ns;
    double stream_ns[STREAMS];
    int streams, events, modules, pinned, contexts;
    struct {
        uintptr_t at;
        long long bytes;
    } block[BLOCKS];
    int blocks;
    long long taken; /* context and libraries included */
    uintptr_t next;
    int allocs, launches, records;
    unsigned noise;
    double slow;
    pthread_t thread;
    int has_thread;
    int broken; /* after a failed launch nothing works any more */
} gpu = {.taken = CONTEXT, .next = (uintptr_t)1 << 40, .slow = 1};

static void die(const char *what)
{
    fprintf(stderr, "standin: %s\n", what);
    abort();
}

/* The number after `name=`, 1 for a bare name, 0 where it is absent. */
int standin_trouble(const char *name)
{
    const char *list = getenv("HBM_STANDIN");
    size_t len = strlen(name);
    while (list && *list) {
        if (strncmp(list, name, len) == 0 && (list[len] == '=' || !list[len] || list[len] == ','))
            return list[len] == '=' ? (int)strtol(list + len + 1, NULL, 10) : 1;
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    return 0;
}

static double noise(void)
{
    gpu.noise = gpu.noise * 1664525u + 1013904223u;
    double part = gpu.noise / 4294967296.;
    return part > 0.99 ? 2 : 0.997 + 0.006 * part;
}

static int index_of(void *stream)
{
    int i = (int)((char *)stream - (char *)NULL) - 1;
    if (i < 0 || i >= STREAMS)
        die("no such stream");
    return i;
}

void standin_work(void *stream, double ns)
{
    double *at = &gpu.stream_ns[index_of(stream)];
    if (standin_trouble("slow"))
        gpu.slow += 2e-6;
    *at = (*at > gpu.host_ns ? *at : gpu.host_ns) + ns * noise() * gpu.slow;
    gpu.host_ns += 100;
}

void standin_take(long long bytes)
{
    gpu.taken += bytes;
}

void standin_check(uintptr_t at, double bytes, const char *what)
{
    for (int i = 0; i < gpu.blocks; i++)
        if (at >= gpu.block[i].at &&
            (double)(at - gpu.block[i].at) + bytes <= (double)gpu.block[i].bytes)
            return;
    die(what);
}

/* Of the busy stream 1, products: copies are slower beside them. */
static double copy_ns(size_t bytes, double rate)
{
    double busy = gpu.stream_ns[0] > gpu.host_ns ? 0.8 : 1;
    return 3000 + (double)bytes / (rate * busy) * 1e9;
}

static void *sleep_on(void *arg)
{
    for (;;)
        pause();
    return arg;
}

__attribute__((destructor)) static void check_given_back(void)
{
    if (gpu.has_thread) {
        pthread_cancel(gpu.thread);
        pthread_join(gpu.thread, NULL);
    }
    if (gpu.blocks || gpu.streams || gpu.events || gpu.modules || gpu.pinned || gpu.contexts)
        die("something was not given back");
}

int NAME(cuInit, hipInit)(unsigned flags)
{
    gpu.has_thread = pthread_create(&gpu.thread, NULL, sleep_on, NULL) == 0;
    return flags || !gpu.has_thread ? 1 : 0;
}

int NAME(cuDriverGetVersion, hipDriverGetVersion)(int *version)
{
    *version = standin_trouble("version") ? 9000 : NAME(12080, 60342131);
    return 0;
}

int NAME(cuDeviceGetCount, hipGetDeviceCount)(int *count)
{
    *count = standin_trouble("nodevice") ? 0 : standin_trouble("multi") ? 4 : 1;
    return 0;
}

int NAME(cuDeviceGet, hipDeviceGet)(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

int NAME(cuDeviceGetName, hipDeviceGetName)(char *name, int room, int device)
{
    (void)device;
    snprintf(name, (size_t)room, "%s",
             standin_trouble("mig") ? "Stand-in GPU MIG 1g.4gb" : "Stand-in GPU");
    return 0;
}

int NAME(cuDeviceGetAttribute, hipDeviceGetAttribute)(int *value, int which, int device)
{
    static const struct {
        int cuda, hip, value;
    } table[] = {
        {16, 63, 100},      {13, 5, 1500000}, {37, 59, 4096}, {36, 60, 2000000},
        {38, 19, 32 << 20}, {32, 0, 1},       {75, 23, 9},    {76, 61, NAME(0, 4)},
    };
    (void)device;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (which == NAME(table[i].cuda, table[i].hip)) {
            *value = table[i].value;
            return 0;
        }
    return 1;
}

int NAME(cuMemGetInfo_v2, hipMemGetInfo)(size_t *free_bytes, size_t *total)
{
    long long busy = standin_trouble("busy") ? 2LL << 30 : 0;
    *free_bytes = (size_t)(TOTAL - gpu.taken - busy);
    *total = (size_t)TOTAL;
    return 0;
}

int NAME(cuMemAlloc_v2, hipMalloc)(address *out, size_t bytes)
{
    long long size = ((long long)bytes + PAGE - 1) / PAGE * PAGE;
    long long busy = standin_trouble("busy") ? 2LL << 30 : 0;
    gpu.allocs++;
    if (!bytes || gpu.broken)
        return gpu.broken ? LAUNCH_FAILED : 1;
    if (gpu.allocs == standin_trouble("oom") || size > TOTAL - gpu.taken - busy ||
        (standin_trouble("frag") && gpu.allocs > 4 && size > 64 << 20))
        return OUT_OF_MEMORY;
    if (gpu.blocks == BLOCKS)
        die("too many blocks");
    gpu.block[gpu.blocks].at = gpu.next;
    gpu.block[gpu.blocks++].bytes = (long long)bytes;
    *out = (address)gpu.next;
    gpu.next += (uintptr_t)size;
    gpu.taken += size;
    return 0;
}

int NAME(cuMemFree_v2, hipFree)(address at)
{
    for (int i = 0; i < gpu.blocks; i++)
        if (gpu.block[i].at == (uintptr_t)at) {
            gpu.taken -= (gpu.block[i].bytes + PAGE - 1) / PAGE * PAGE;
            gpu.block[i] = gpu.block[--gpu.blocks];
            return 0;
        }
    die("freed what was not allocated");
    return 1;
}

int NAME(cuMemHostAlloc, hipHostMalloc)(void **at, size_t bytes, unsigned flags)
{
    *at = flags ? NULL : calloc(1, bytes);
    gpu.pinned += *at != NULL;
    return *at ? 0 : OUT_OF_MEMORY;
}

int NAME(cuMemFreeHost, hipHostFree)(void *at)
{
    free(at);
    gpu.pinned--;
    return 0;
}

int NAME(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(address to, NAME(const void *, void *) from,
                                                   size_t bytes, void *stream)
{
    volatile char last = ((const char *)from)[bytes - 1];
    (void)last;
    standin_check((uintptr_t)to, (double)bytes, "copy up beyond an allocation");
    standin_work(stream, copy_ns(bytes, 20e9));
    return 0;
}

int NAME(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void *to, address from, size_t bytes,
                                                   void *stream)
{
    ((char *)to)[bytes - 1] = 1;
    standin_check((uintptr_t)from, (double)bytes, "copy down beyond an allocation");
    standin_work(stream, copy_ns(bytes, 25e9));
    return 0;
}

int NAME(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(address to, address from, size_t bytes,
                                                   void *stream)
{
    standin_check((uintptr_t)to, (double)bytes, "copy beyond an allocation");
    standin_check((uintptr_t)from, (double)bytes, "copy beyond an allocation");
    standin_work(stream, (double)bytes / 1e12 * 1e9);
    return 0;
}

int NAME(cuStreamCreate, hipStreamCreateWithFlags)(void **stream, unsigned flags)
{
    if (flags != 1 || gpu.streams == STREAMS)
        return 1;
    *stream = (char *)NULL + ++gpu.streams;
    return 0;
}

int NAME(cuStreamDestroy_v2, hipStreamDestroy)(void *stream)
{
    index_of(stream);
    gpu.streams--;
    return 0;
}

int NAME(cuStreamSynchronize, hipStreamSynchronize)(void *stream)
{
    double at = gpu.stream_ns[index_of(stream)];
    gpu.host_ns = at > gpu.host_ns ? at : gpu.host_ns;
    return gpu.broken ? LAUNCH_FAILED : 0;
}

struct event {
    double ns;
    int recorded;
};

int NAME(cuEventCreate, hipEventCreateWithFlags)(void **event, unsigned flags)
{
    *event = calloc(1, sizeof(struct event));
    gpu.events++;
    return flags ? 1 : 0;
}

int NAME(cuEventDestroy_v2, hipEventDestroy)(void *event)
{
    free(event);
    gpu.events--;
    return 0;
}

int NAME(cuEventRecord, hipEventRecord)(void *event, void *stream)
{
    struct event *e = event;
    double at = gpu.stream_ns[index_of(stream)];
    if (gpu.broken || ++gpu.records == standin_trouble("event"))
        return LAUNCH_FAILED;
    e->ns = at > gpu.host_ns ? at : gpu.host_ns;
    e->recorded = 1;
    return 0;
}

int NAME(cuEventSynchronize, hipEventSynchronize)(void *event)
{
    const struct event *e = event;
    gpu.host_ns = e->ns > gpu.host_ns ? e->ns : gpu.host_ns;
    return gpu.broken ? LAUNCH_FAILED : e->recorded ? 0 : 1;
}

#ifndef WITHOUT_ELAPSED
int NAME(cuEventElapsedTime, hipEventElapsedTime)(float *ms, void *begin, void *end)
{
    const struct event *a = begin;
    const struct event *b = end;
    *ms = (float)((b->ns - a->ns) * 1e-6);
    return a->recorded && b->recorded ? 0 : 1;
}
#endif

int NAME(cuModuleLoadData, hipModuleLoadData)(void **module, const void *image)
{
    if (strcmp(image, "standin image") != 0)
        return 200;
    *module = &gpu;
    gpu.modules++;
    return 0;
}

int NAME(cuModuleUnload, hipModuleUnload)(void *module)
{
    gpu.modules -= module == &gpu;
    return 0;
}

/* Bytes that a kernel moves per element, arithmetic per element, which addresses it uses. */
static const struct kernel {
    const char *name;
    double bytes, flops;
    int a, b, c; /* bytes per element */
} kernels[] = {
    {"hb_empty", 0, 0, 0, 0, 0},  {"hb_fill", 4, 4, 4, 0, 0},     {"hb_read", 4, 1, 0, 4, 0},
    {"hb_copy", 8, 0, 4, 4, 0},   {"hb_triad", 12, 2, 4, 4, 4},   {"hb_gelu", 8, 30, 4, 4, 0},
    {"hb_reduce", 4, 1, 0, 4, 0}, {"hb_chain", 8, 1024, 4, 4, 0},
};

int NAME(cuModuleGetFunction, hipModuleGetFunction)(void **function, void *module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (strcmp(kernels[i].name, name) == 0) {
            *function = (void *)(uintptr_t)&kernels[i];
            return 0;
        }
    return 500;
}

int NAME(cuLaunchKernel, hipModuleLaunchKernel)(void *function, unsigned gx, unsigned gy,
                                                unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                                unsigned shared, void *stream, void **params,
                                                void **extra)
{
    const struct kernel *k = function;
    double n = (double)*(long long *)params[3];
    const int per[] = {k->a, k->b, k->c};
    if (!gx || gy != 1 || gz != 1 || bx != 256 || by != 1 || bz != 1 || shared || extra)
        return 1;
    if (++gpu.launches == standin_trouble("interrupt"))
        kill(getpid(), SIGINT);
    gpu.broken |= gpu.launches == standin_trouble("launch");
    if (gpu.broken)
        return LAUNCH_FAILED;
    for (int i = 0; i < 3; i++)
        if (per[i])
            standin_check(*(uintptr_t *)params[i], n * per[i], "a kernel beyond an allocation");
    standin_work(stream, 1500 + fmax(n * k->bytes / 1.8e12, n * k->flops / 2e13) * 1e9);
    return 0;
}

#ifdef STANDIN_CUDA
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &gpu;
    gpu.contexts++;
    return device < 0;
}

int cuCtxSetCurrent(void *context)
{
    return context && context != &gpu;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    gpu.contexts--;
    return device < 0;
}

int cuGetErrorString(int code, const char **text)
{
    *text = code == LAUNCH_FAILED ? "unspecified launch failure" : "invalid argument";
    return 0;
}
#else
int hipSetDevice(int device)
{
    return device < 0;
}

const char *hipGetErrorString(int code)
{
    return code == LAUNCH_FAILED ? "unspecified launch failure" : "invalid argument";
}
#endif
#endif /* PART_DRIVER */

#ifdef PART_RTC

int NAME(nvrtcVersion, hiprtcVersion)(int *major, int *minor)
{
    *major = 12;
    *minor = 8;
    return 0;
}

int NAME(nvrtcCreateProgram, hiprtcCreateProgram)(void **program, const char *text,
                                                  const char *name, int headers,
                                                  NAME(const char *const *, const char **) texts,
                                                  NAME(const char *const *, const char **) names)
{
    (void)texts;
    (void)names;
    *program = (void *)(uintptr_t)text;
    return !text || !name || headers;
}

int NAME(nvrtcCompileProgram, hiprtcCompileProgram)(void *program, int count,
                                                    NAME(const char *const *, const char **)
                                                        options)
{
    if (count != NAME(1, 0) || (count && strcmp(options[0], "--gpu-architecture=compute_90") != 0))
        return 5;
    return standin_trouble("compile") || !strstr(program, "__global__ void hb_triad");
}

int NAME(nvrtcGetPTXSize, hiprtcGetCodeSize)(void *program, size_t *bytes)
{
    (void)program;
    *bytes = sizeof "standin image";
    return 0;
}

int NAME(nvrtcGetPTX, hiprtcGetCode)(void *program, char *to)
{
    (void)program;
    memcpy(to, "standin image", sizeof "standin image");
    return 0;
}

int NAME(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize)(void *program, size_t *bytes)
{
    (void)program;
    *bytes = sizeof "hbmsim.c(1): error: no";
    return 0;
}

int NAME(nvrtcGetProgramLog, hiprtcGetProgramLog)(void *program, char *to)
{
    (void)program;
    memcpy(to, "hbmsim.c(1): error: no", sizeof "hbmsim.c(1): error: no");
    return 0;
}

int NAME(nvrtcDestroyProgram, hiprtcDestroyProgram)(void **program)
{
    *program = NULL;
    return 0;
}
#endif /* PART_RTC */

#if defined PART_BLAS || defined PART_LT

struct handle {
    void *stream;
};

/* Half the peak at a side of 512. */
static double product_ns(double m, double n, double k, double batch, double peak)
{
    double side = cbrt(m * n * k);
    return 2000 + 2 * m * n * k * batch / (peak * side / (side + 512)) * 1e9;
}
#endif

#ifdef PART_BLAS

int NAME(cublasCreate_v2, rocblas_create_handle)(void **out)
{
    if (standin_trouble("blas"))
        return 1;
    standin_take(64LL << 20);
    *out = calloc(1, sizeof(struct handle));
    return 0;
}

int NAME(cublasDestroy_v2, rocblas_destroy_handle)(void *handle)
{
    standin_take(-(64LL << 20));
    free(handle);
    return 0;
}

int NAME(cublasSetStream_v2, rocblas_set_stream)(void *handle, void *stream)
{
    ((struct handle *)handle)->stream = stream;
    return 0;
}

static int multiply(const struct handle *h, const int *size, const void *const *at, double bytes,
                    double peak)
{
    double m = size[0], n = size[1], k = size[2], batch = size[3];
    standin_check((uintptr_t)at[0], m * k * batch * bytes, "a product beyond an allocation");
    standin_check((uintptr_t)at[1], k * n * batch * bytes, "a product beyond an allocation");
    standin_check((uintptr_t)at[2], m * n * batch * bytes, "a product beyond an allocation");
    standin_work(h->stream, product_ns(m, n, k, batch, peak));
    return 0;
}

#ifdef STANDIN_CUDA
int cublasGemmStridedBatchedEx(void *handle, int op_a, int op_b, int m, int n, int k,
                               const void *alpha, const void *a, int a_type, int a_ld,
                               long long a_step, const void *b, int b_type, int b_ld,
                               long long b_step, const void *beta, void *c, int c_type, int c_ld,
                               long long c_step, int batch, int compute, int algo)
{
    int size[] = {m, n, k, batch};
    const void *at[] = {a, b, c};
    double bytes = a_type == 0 ? 4 : a_type == 1 ? 8 : 2;
    double peak = compute == 77 ? 150e12 : a_type == 0 ? 20e12 : 300e12;
    if (op_a || op_b || a_ld != m || b_ld != k || c_ld != m || a_type != b_type ||
        a_type != c_type || a_step != (long long)m * k || b_step != (long long)k * n ||
        c_step != (long long)m * n || algo != -1 || *(const float *)alpha != 1 ||
        *(const float *)beta != 0 || (compute != 68 && compute != 77))
        return 7;
    return multiply(handle, size, at, bytes, peak);
}
#else
static int xf32;

int rocblas_set_math_mode(void *handle, int mode)
{
    (void)handle;
    xf32 = mode == 1;
    return 0;
}

int rocblas_gemm_strided_batched_ex(void *handle, int op_a, int op_b, int m, int n, int k,
                                    const void *alpha, const void *a, int a_type, int a_ld,
                                    int64_t a_step, const void *b, int b_type, int b_ld,
                                    int64_t b_step, const void *beta, const void *c, int c_type,
                                    int c_ld, int64_t c_step, void *d, int d_type, int d_ld,
                                    int64_t d_step, int batch, int compute, int algo,
                                    int32_t solution, uint32_t flags)
{
    int size[] = {m, n, k, batch};
    const void *at[] = {a, b, c};
    double bytes = a_type == 151 ? 4 : 2;
    double peak = a_type != 151 ? 300e12 : xf32 ? 150e12 : 20e12;
    if (op_a != 111 || op_b != 111 || a_ld != m || b_ld != k || c_ld != m || d_ld != m ||
        a_type != b_type || a_type != c_type || a_type != d_type || c != d ||
        a_step != (int64_t)m * k || b_step != (int64_t)k * n || c_step != (int64_t)m * n ||
        d_step != c_step || algo || solution || flags || compute != 151 ||
        *(const float *)alpha != 1 || *(const float *)beta != 0)
        return 3;
    return multiply(handle, size, at, bytes, peak);
}
#endif
#endif /* PART_BLAS */

#ifdef PART_LT

struct layout {
    int type;
    uint64_t rows, cols;
};

int cublasLtCreate(void **handle)
{
    *handle = calloc(1, 1);
    return 0;
}

int cublasLtDestroy(void *handle)
{
    free(handle);
    return 0;
}

int cublasLtMatmulDescCreate(void **desc, int compute, int scale)
{
    *desc = calloc(1, sizeof(int));
    return compute != 68 || scale != 0;
}

int cublasLtMatmulDescSetAttribute(void *desc, int which, const void *value, size_t bytes)
{
    if (which != 3 || bytes != sizeof(int))
        return 7;
    *(int *)desc = *(const int *)value;
    return 0;
}

int cublasLtMatmulDescDestroy(void *desc)
{
    free(desc);
    return 0;
}

int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
    struct layout *l = calloc(1, sizeof *l);
    *l = (struct layout){type, rows, cols};
    *out = l;
    return ld != (int64_t)rows;
}

int cublasLtMatrixLayoutDestroy(void *layout)
{
    free(layout);
    return 0;
}

int cublasLtMatmulPreferenceCreate(void **wish)
{
    *wish = calloc(1, 1);
    return 0;
}

int cublasLtMatmulPreferenceSetAttribute(void *wish, int which, const void *value, size_t bytes)
{
    (void)wish;
    return which != 1 || bytes != 8 || *(const uint64_t *)value != 32 << 20;
}

int cublasLtMatmulPreferenceDestroy(void *wish)
{
    free(wish);
    return 0;
}

struct choice {
    uint64_t algo[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d,
                                   void *wish, int asked, struct choice *out, int *count)
{
    const struct layout *la = a;
    const struct layout *lb = b;
    const struct layout *lc = c;
    (void)handle;
    (void)wish;
    *count = 0;
    if (*(int *)desc != 1 || la->type != 28 || lb->type != 28 || lc->type != 14 || c != d ||
        la->rows != lb->rows || la->cols != lc->rows || lb->cols != lc->cols || asked != 1)
        return 7;
    out->algo[0] = 77;
    *count = 1;
    return 0;
}

int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
                   const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                   void *d, void *d_layout, const uint64_t *algo, void *workspace, size_t bytes,
                   void *stream)
{
    const struct layout *la = a_layout;
    const struct layout *lb = b_layout;
    double m = (double)la->cols, n = (double)lb->cols, k = (double)la->rows;
    (void)handle;
    (void)desc;
    if (algo[0] != 77 || c != d || c_layout != d_layout || *(const float *)alpha != 1 ||
        *(const float *)beta != 0)
        return 7;
    standin_check((uintptr_t)workspace, (double)bytes, "a workspace beyond an allocation");
    standin_check((uintptr_t)a, m * k, "a product beyond an allocation");
    standin_check((uintptr_t)b, n * k, "a product beyond an allocation");
    standin_check((uintptr_t)d, m * n * 2, "a product beyond an allocation");
    standin_work(stream, product_ns(m, n, k, 1, 600e12));
    return 0;
}
#endif /* PART_LT */
