/* One body of code for both kinds of GPU: see probe_gpu.h. Kernels are C text, compiled on the
 * spot by NVRTC or hipRTC. */
#include "hw/probe_gpu.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/str.h"

/* Both compilers know this much without headers. Loads are four floats wide. */
static const char kernel_text[] =
    "typedef float4 v4;\n"
    "#define AT long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; \\\n"
    "        long long step = gridDim.x * (long long)blockDim.x;\n"
    "#define EACH(n) AT for (; i < (n); i += step)\n"
    "#define ARGS float *a, const float *b, const float *c, long long n\n"
    "extern \"C\" __global__ void hb_empty(ARGS) {}\n"
    "extern \"C\" __global__ void hb_fill(ARGS) {\n"
    "  EACH(n) { unsigned h = (unsigned)i * 2654435761u; h ^= h >> 15; h *= 2246822519u;\n"
    "    ((unsigned *)a)[i] = ((h ^ h >> 13) & 0x8f8f8f8fu) | 0x30303030u; } }\n"
    "extern \"C\" __global__ void hb_read(ARGS) { float s = 0;\n"
    "  EACH(n / 4) { v4 x = ((const v4 *)b)[i]; s += x.x + x.y + x.z + x.w; }\n"
    "  if (s == 12345.678f) a[0] = s; }\n"
    "extern \"C\" __global__ void hb_copy(ARGS) {\n"
    "  EACH(n / 4) ((v4 *)a)[i] = ((const v4 *)b)[i]; }\n"
    "extern \"C\" __global__ void hb_triad(ARGS) {\n"
    "  EACH(n / 4) { v4 x = ((const v4 *)b)[i], y = ((const v4 *)c)[i];\n"
    "    ((v4 *)a)[i] = make_float4(x.x + 1.5f * y.x, x.y + 1.5f * y.y,\n"
    "                               x.z + 1.5f * y.z, x.w + 1.5f * y.w); } }\n"
    "extern \"C\" __global__ void hb_gelu(ARGS) {\n"
    "  EACH(n) { float x = b[i]; a[i] = 0.5f * x * (1.0f + erff(0.70710678f * x)); } }\n"
    "extern \"C\" __global__ void hb_reduce(ARGS) { __shared__ float part[256];\n"
    "  for (long long r = blockIdx.x; r < n / 1024; r += gridDim.x) {\n"
    "    v4 x = ((const v4 *)(b + r * 1024))[threadIdx.x];\n"
    "    part[threadIdx.x] = x.x + x.y + x.z + x.w; __syncthreads();\n"
    "    for (int w = 128; w; w >>= 1) {\n"
    "      if (threadIdx.x < w) part[threadIdx.x] += part[threadIdx.x + w];\n"
    "      __syncthreads(); }\n"
    "    if (!threadIdx.x) a[r] = part[0];\n"
    "    __syncthreads(); } }\n"
    "extern \"C\" __global__ void hb_chain(ARGS) {\n"
    "  EACH(n) { float x = b[i], y = x + 1, z = x + 2, w = x + 3;\n"
    "    for (int k = 0; k < 128; k++) { x = x * 0.999f + 0.5f; y = y * 0.998f + 0.5f;\n"
    "      z = z * 0.997f + 0.5f; w = w * 0.996f + 0.5f; }\n"
    "    a[i] = x + y + z + w; } }\n";

const char *hb_gpu_kernels(void)
{
    return kernel_text;
}

static const char *const kernel_names[] = {
#define HB_ENUM(name, text) text,
    HB_KERNELS(HB_ENUM)
#undef HB_ENUM
};

enum { BLOCK_THREADS = 256, BLOCKS_PER_CORE = 16, OUT_OF_MEMORY = 2, STREAM_NON_BLOCKING = 1 };

bool hb_gpu_fail(struct hb_gpu *gpu, const char *what, int code)
{
    gpu->probe.error = hb_arena_printf(gpu->probe.env->arena, "%s failed: %s (%d)", what,
                                       gpu->kind->error_text(gpu, code), code);
    return false;
}

static bool ok(struct hb_gpu *gpu, int code, const char *what)
{
    return code == 0 || hb_gpu_fail(gpu, what, code);
}

static struct hb_gpu *of(struct hb_probe *p)
{
    return p->state;
}

/* ---- memory ---- */

static bool gpu_memory(struct hb_probe *p, int64_t *out_free, int64_t *out_total)
{
    size_t free_bytes;
    size_t total_bytes;
    if (!ok(of(p), of(p)->calls.mem_info(&free_bytes, &total_bytes), "asking for free memory"))
        return false;
    *out_free = (int64_t)free_bytes;
    *out_total = (int64_t)total_bytes;
    return true;
}

static bool gpu_alloc(struct hb_probe *p, int64_t bytes, uintptr_t *out_at)
{
    struct hb_gpu *gpu = of(p);
    uintptr_t at = 0;
    p->error = NULL;
    int code = gpu->calls.mem_alloc(&at, (size_t)bytes);
    if (code == OUT_OF_MEMORY)
        return false;
    if (!ok(gpu, code, "allocating device memory"))
        return false;
    gpu->taken =
        hb_grow(p->env->arena, gpu->taken, gpu->taken_count, &gpu->taken_cap, sizeof *gpu->taken);
    gpu->taken[gpu->taken_count++] = at;
    *out_at = at;
    return true;
}

static void gpu_release(struct hb_probe *p, uintptr_t at)
{
    struct hb_gpu *gpu = of(p);
    for (uint32_t i = gpu->taken_count; i-- > 0;)
        if (gpu->taken[i] == at) {
            gpu->taken[i] = gpu->taken[--gpu->taken_count];
            ok(gpu, gpu->calls.mem_free(at), "freeing device memory");
            return;
        }
    HB_BUG("device memory is given back that was not taken");
}

static bool gpu_host_alloc(struct hb_probe *p, int64_t bytes, bool pinned, void **out_at)
{
    struct hb_gpu *gpu = of(p);
    if (!pinned) {
        *out_at = hb_arena_alloc(p->env->arena, (size_t)bytes, 1);
        return true;
    }
    void *at = NULL;
    if (!ok(gpu, gpu->calls.host_alloc(&at, (size_t)bytes, 0), "allocating pinned memory"))
        return false;
    gpu->pinned = hb_grow(p->env->arena, gpu->pinned, gpu->pinned_count, &gpu->pinned_cap,
                          sizeof *gpu->pinned);
    gpu->pinned[gpu->pinned_count++] = at;
    *out_at = at;
    return true;
}

static void gpu_host_release(struct hb_probe *p, void *at, bool pinned)
{
    struct hb_gpu *gpu = of(p);
    for (uint32_t i = gpu->pinned_count; pinned && i-- > 0;)
        if (gpu->pinned[i] == at) {
            gpu->pinned[i] = gpu->pinned[--gpu->pinned_count];
            ok(gpu, gpu->calls.host_free(at), "freeing pinned memory");
            return;
        }
}

/* ---- work ---- */

static bool gpu_copy(struct hb_probe *p, enum hb_lane lane, enum hb_copy way, uintptr_t at,
                     void *host, int64_t bytes)
{
    struct hb_gpu *gpu = of(p);
    void *stream = gpu->stream[lane];
    size_t size = (size_t)bytes;
    switch (way) {
    case HB_COPY_UP:
        return ok(gpu, gpu->calls.copy_up(at, host, size, stream), "copying to the device");
    case HB_COPY_DOWN:
        return ok(gpu, gpu->calls.copy_down(host, at, size, stream), "copying from the device");
    case HB_COPY_WITHIN:
        return ok(gpu, gpu->calls.copy_within(at, (uintptr_t)host, size, stream),
                  "copying on the device");
    }
    return false;
}

static bool gpu_kernel(struct hb_probe *p, enum hb_kernel which, uintptr_t a, uintptr_t b,
                       uintptr_t c, int64_t n)
{
    struct hb_gpu *gpu = of(p);
    long long count = n;
    void *params[] = {&a, &b, &c, &count};
    int64_t cores = p->info.cores > 0 ? p->info.cores : 1;
    int64_t blocks = n / BLOCK_THREADS + 1;
    if (blocks > cores * BLOCKS_PER_CORE)
        blocks = cores * BLOCKS_PER_CORE;
    return ok(gpu,
              gpu->calls.launch(gpu->function[which], (unsigned)blocks, 1, 1, BLOCK_THREADS, 1, 1,
                                0, gpu->stream[HB_LANE_COMPUTE], params, NULL),
              "launching a kernel");
}

bool hb_blas_done(struct hb_gpu *gpu, const char *what, int status)
{
    if (status != 0)
        gpu->probe.error =
            hb_arena_printf(gpu->probe.env->arena, "%s failed (status %d)", what, status);
    return status == 0;
}

bool hb_blas_open(struct hb_gpu *gpu, const char *title, const char *const *names,
                  const struct hb_dl_bind *table, struct hb_blas *blas)
{
    struct hb_arena *arena = gpu->probe.env->arena;
    const char *reason = "";
    blas->lib = hb_dl_open(arena, gpu->libs, names, &reason);
    if (!blas->lib || !hb_dl_bind(blas->lib, arena, table, blas, &reason)) {
        hb_dl_close(blas->lib);
        gpu->probe.error = reason;
        return false;
    }
    int code = blas->create(&blas->handle);
    if (code == 0)
        code = blas->set_stream(blas->handle, gpu->stream[HB_LANE_COMPUTE]);
    if (code == 0)
        return true;
    gpu->probe.error = hb_arena_printf(arena, "%s cannot start (status %d)", title, code);
    hb_blas_close(blas);
    return false;
}

void hb_blas_close(struct hb_blas *blas)
{
    if (blas->handle)
        blas->destroy(blas->handle);
    hb_dl_close(blas->lib);
}

const void *hb_blas_factor(enum hb_rate rate, int value)
{
    static const float narrow[] = {0, 1};
    static const double wide[] = {0, 1};
    return rate == HB_RATE_F64 ? (const void *)&wide[value] : (const void *)&narrow[value];
}

static bool gpu_product(struct hb_probe *p, const struct hb_product *product)
{
    struct hb_gpu *gpu = of(p);
    return (gpu->blas || gpu->kind->blas_open(gpu)) && gpu->kind->product(gpu, product);
}

static bool gpu_can(struct hb_probe *p, enum hb_rate rate)
{
    return of(p)->kind->can(of(p), rate);
}

static bool gpu_mark(struct hb_probe *p, enum hb_lane lane, int which)
{
    struct hb_gpu *gpu = of(p);
    return ok(gpu, gpu->calls.event_record(gpu->event[lane][which], gpu->stream[lane]),
              "recording an event");
}

static bool gpu_elapsed(struct hb_probe *p, enum hb_lane from, enum hb_lane lane, double *out_ns)
{
    struct hb_gpu *gpu = of(p);
    float ms = 0;
    if (!ok(gpu, gpu->calls.event_wait(gpu->event[lane][1]), "waiting for the device") ||
        !ok(gpu, gpu->calls.event_elapsed(&ms, gpu->event[from][0], gpu->event[lane][1]),
            "reading the time between events"))
        return false;
    *out_ns = (double)ms * 1e6;
    return true;
}

static bool gpu_wait(struct hb_probe *p)
{
    struct hb_gpu *gpu = of(p);
    for (int lane = 0; lane < HB_LANE_COUNT; lane++)
        if (!ok(gpu, gpu->calls.stream_wait(gpu->stream[lane]), "waiting for the device"))
            return false;
    return true;
}

/* ---- opening and closing ---- */

static void close_lanes(struct hb_gpu *gpu)
{
    for (int lane = 0; lane < HB_LANE_COUNT; lane++) {
        for (int i = 0; i < 2; i++)
            if (gpu->event[lane][i])
                gpu->calls.event_destroy(gpu->event[lane][i]);
        if (gpu->stream[lane])
            gpu->calls.stream_destroy(gpu->stream[lane]);
    }
}

static void gpu_close(struct hb_probe *p)
{
    struct hb_gpu *gpu = of(p);
    if (gpu->entered) {
        gpu_wait(p);
        while (gpu->taken_count)
            gpu->calls.mem_free(gpu->taken[--gpu->taken_count]);
        while (gpu->pinned_count)
            gpu->calls.host_free(gpu->pinned[--gpu->pinned_count]);
        if (gpu->blas)
            gpu->kind->blas_close(gpu);
        if (gpu->module)
            gpu->calls.module_unload(gpu->module);
        close_lanes(gpu);
        gpu->kind->leave(gpu);
    }
    hb_dl_close(gpu->rtc_lib);
    hb_dl_close(gpu->driver_lib);
}

static const struct hb_probe_ops gpu_ops = {
    .memory = gpu_memory,
    .alloc = gpu_alloc,
    .release = gpu_release,
    .host_alloc = gpu_host_alloc,
    .host_release = gpu_host_release,
    .copy = gpu_copy,
    .kernel = gpu_kernel,
    .product = gpu_product,
    .can = gpu_can,
    .mark = gpu_mark,
    .elapsed = gpu_elapsed,
    .wait = gpu_wait,
    .close = gpu_close,
};

static int attribute(struct hb_gpu *gpu, int which)
{
    int value = 0;
    if (gpu->calls.device_attribute(&value, which, gpu->device) != 0)
        return 0; /* not told */
    return value;
}

static bool load_libraries(struct hb_gpu *gpu, const char **out_reason)
{
    struct hb_arena *arena = gpu->probe.env->arena;
    const struct hb_gpu_kind *kind = gpu->kind;
    gpu->driver_lib = hb_dl_open(arena, gpu->libs, kind->driver_names, out_reason);
    if (!gpu->driver_lib ||
        !hb_dl_bind(gpu->driver_lib, arena, kind->driver_table, &gpu->calls, out_reason))
        return false;
    gpu->rtc_lib = hb_dl_open(arena, gpu->libs, kind->rtc_names, out_reason);
    return gpu->rtc_lib && hb_dl_bind(gpu->rtc_lib, arena, kind->rtc_table, &gpu->rtc, out_reason);
}

static bool find_device(struct hb_gpu *gpu, int wished)
{
    struct hb_probe *p = &gpu->probe;
    int version = 0;
    int count = 0;
    if (!ok(gpu, gpu->calls.init(0), "starting the driver") ||
        !ok(gpu, gpu->calls.driver_version(&version), "asking for the driver's version") ||
        !ok(gpu, gpu->calls.device_count(&count), "counting devices"))
        return false;
    if (version < gpu->kind->oldest_driver) {
        p->error = hb_arena_printf(p->env->arena, "the driver is version %d; %d or newer is needed",
                                   version, gpu->kind->oldest_driver);
        return false;
    }
    if (wished >= count) {
        p->error = count ? hb_arena_printf(p->env->arena,
                                           "there is no device %d; the driver "
                                           "shows %d, from 0",
                                           wished, count)
                         : "the driver shows no device";
        return false;
    }
    p->info.device_count = count;
    p->info.driver = hb_arena_printf(p->env->arena, "%s driver %d", gpu->kind->backend, version);
    return ok(gpu, gpu->calls.device_get(&gpu->device, wished), "choosing a device");
}

static bool describe_device(struct hb_gpu *gpu)
{
    struct hb_probe_info *info = &gpu->probe.info;
    const struct hb_gpu_kind *kind = gpu->kind;
    char name[256] = "";
    int64_t free_bytes;
    if (!ok(gpu, gpu->calls.device_name(name, (int)sizeof name - 1, gpu->device),
            "asking for the device's name") ||
        !gpu_memory(&gpu->probe, &free_bytes, &info->total_bytes))
        return false;
    info->name = hb_arena_strdup(gpu->probe.env->arena, name[0] ? name : "unnamed device");
    info->vendor = kind->vendor;
    info->kind = HB_KIND_GPU;
    info->cores = attribute(gpu, kind->attribute_cores);
    info->clock_hz = attribute(gpu, kind->attribute_clock) * 1e3;
    info->cache_bytes = attribute(gpu, kind->attribute_cache);
    info->ecc = attribute(gpu, kind->attribute_ecc) != 0;
    info->slice = strstr(name, " MIG ") != NULL;
    gpu->major = attribute(gpu, kind->attribute_major);
    gpu->minor = attribute(gpu, kind->attribute_minor);
    /* Double data rate: two transfers a clock; the clock is told in kHz, the bus in bits. */
    info->hbm_bytes_per_s = 2e3 * attribute(gpu, kind->attribute_memory_clock) *
                            (attribute(gpu, kind->attribute_bus) / 8.);
    return true;
}

static bool open_lanes(struct hb_gpu *gpu)
{
    for (int lane = 0; lane < HB_LANE_COUNT; lane++) {
        if (!ok(gpu, gpu->calls.stream_create(&gpu->stream[lane], STREAM_NON_BLOCKING),
                "making a stream"))
            return false;
        for (int i = 0; i < 2; i++)
            if (!ok(gpu, gpu->calls.event_create(&gpu->event[lane][i], 0), "making an event"))
                return false;
    }
    return true;
}

static bool fail_compile(struct hb_gpu *gpu, void *program)
{
    struct hb_arena *arena = gpu->probe.env->arena;
    size_t bytes = 0;
    char *log = NULL;
    if (gpu->rtc.log_size(program, &bytes) == 0 && bytes && bytes < (1 << 20)) {
        log = hb_arena_alloc(arena, bytes + 1, 1);
        if (gpu->rtc.log(program, log) != 0)
            log[0] = '\0';
    }
    gpu->probe.error = hb_arena_printf(arena, "%s cannot compile the kernels: %.400s",
                                       hb_dl_name(gpu->rtc_lib), log && log[0] ? log : "no log");
    return false;
}

static bool build_image(struct hb_gpu *gpu, void *program, char **out_image)
{
    const char *option = NULL;
    if (gpu->kind->rtc_option) {
        struct hb_str s;
        hb_str_init(&s, gpu->probe.env->arena);
        hb_str_addf(&s, "%s%d%d", gpu->kind->rtc_option, gpu->major, gpu->minor);
        option = s.text;
    }
    size_t bytes = 0;
    if (gpu->rtc.compile(program, option ? 1 : 0, &option) != 0 ||
        gpu->rtc.code_size(program, &bytes) != 0 || !bytes)
        return fail_compile(gpu, program);
    char *image = hb_arena_alloc(gpu->probe.env->arena, bytes + 1, 1);
    if (gpu->rtc.code(program, image) != 0)
        return fail_compile(gpu, program);
    *out_image = image;
    return true;
}

static bool load_kernels(struct hb_gpu *gpu)
{
    void *program = NULL;
    char *image = NULL;
    if (gpu->rtc.create(&program, kernel_text, "hbmsim.c", 0, NULL, NULL) != 0) {
        gpu->probe.error = "the run-time compiler cannot start";
        return false;
    }
    bool built = build_image(gpu, program, &image);
    gpu->rtc.destroy(&program);
    if (!built || !ok(gpu, gpu->calls.module_load(&gpu->module, image), "loading the kernels"))
        return false;
    for (int i = 0; i < HB_KERNEL_COUNT; i++)
        if (!ok(gpu, gpu->calls.module_function(&gpu->function[i], gpu->module, kernel_names[i]),
                "finding a kernel"))
            return false;
    int major = 0;
    int minor = 0;
    if (gpu->rtc.version(&major, &minor) == 0)
        gpu->probe.info.driver =
            hb_arena_printf(gpu->probe.env->arena, "%s, %s %d.%d", gpu->probe.info.driver,
                            hb_dl_name(gpu->rtc_lib), major, minor);
    return true;
}

static bool start_device(struct hb_gpu *gpu, int wished)
{
    if (!find_device(gpu, wished) || !gpu->kind->enter(gpu))
        return false;
    gpu->entered = true;
    return describe_device(gpu) && open_lanes(gpu) && load_kernels(gpu);
}

struct hb_probe *hb_gpu_open(struct hb_env *env, const struct hb_gpu_kind *kind,
                             const struct hb_probe_wish *wish, const char **out_reason)
{
    struct hb_gpu *gpu = hb_arena_alloc(env->arena, 1, sizeof *gpu);
    gpu->probe = (struct hb_probe){.ops = &gpu_ops, .env = env, .state = gpu};
    gpu->kind = kind;
    gpu->libs = wish->libs;
    bool loaded = load_libraries(gpu, out_reason);
    if (loaded && start_device(gpu, wish->device))
        return &gpu->probe;
    if (loaded)
        *out_reason = gpu->probe.error;
    gpu_close(&gpu->probe);
    return NULL;
}
