/* One body of code for both kinds of GPU: see probe_gpu.h. */
#include "hw/probe_gpu.h"

#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/str.h"
#include "hw/gpu_together.h"

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
    if (!ok(gpu, gpu->calls.host_alloc(&at, (size_t)bytes, gpu->pinned_flags),
            "allocating pinned memory"))
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

bool hb_gpu_place(struct hb_gpu *gpu, int node, unsigned *out_flags)
{
    *out_flags = 0;
    if (!gpu->placed)
        return false;
    if (node < 0)
        return hb_numa_restore(&gpu->host_policy);
    *out_flags = gpu->kind->placed_flag;
    return hb_numa_prefer(node);
}

static bool gpu_host_prefer(struct hb_probe *p, int node)
{
    return hb_gpu_place(of(p), node, &of(p)->pinned_flags);
}

static int gpu_host_node(struct hb_probe *p, void *at)
{
    (void)p;
    return hb_numa_of(at);
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

static bool launch(struct hb_gpu *gpu, const struct hb_kernel_call *call, int form)
{
    uintptr_t a = call->a, b = call->b, c = call->c;
    long long count = call->n;
    void *params[] = {&a, &b, &c, &count, &form};
    int64_t cores = gpu->probe.info.cores > 0 ? gpu->probe.info.cores : 1;
    int64_t blocks = count / BLOCK_THREADS + 1;
    if (blocks > cores * BLOCKS_PER_CORE)
        blocks = cores * BLOCKS_PER_CORE;
    return ok(gpu,
              gpu->calls.launch(gpu->function[call->kernel], (unsigned)blocks, 1, 1, BLOCK_THREADS,
                                1, 1, 0, gpu->stream[HB_LANE_COMPUTE], params, NULL),
              "launching a kernel");
}

bool hb_gpu_launch_fill(struct hb_gpu *gpu, uintptr_t at, int64_t n, enum hb_fill form)
{
    struct hb_kernel_call call = {.kernel = HB_KERNEL_FILL, .a = at, .n = n};
    return launch(gpu, &call, (int)form);
}

static bool gpu_kernel(struct hb_probe *p, const struct hb_kernel_call *call)
{
    bool fill = call->kernel == HB_KERNEL_FILL;
    return launch(of(p), call, fill ? (int)hb_blas_fill(of(p), call->rate) : 0);
}

static bool gpu_product(struct hb_probe *p, const struct hb_product *product)
{
    return hb_blas_product(of(p), product);
}

static unsigned gpu_can(struct hb_probe *p, enum hb_rate rate)
{
    return hb_blas_can(of(p), rate);
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

static bool gpu_health(struct hb_probe *p, struct hb_health *out)
{
    if (!of(p)->smi)
        return false;
    hb_smi_read(of(p)->smi, out);
    return true;
}

static bool gpu_wait(struct hb_probe *p)
{
    struct hb_gpu *gpu = of(p);
    for (int lane = 0; lane < HB_LANE_COUNT; lane++)
        if (gpu->stream[lane] &&
            !ok(gpu, gpu->calls.stream_wait(gpu->stream[lane]), "waiting for the device"))
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
        hb_gpu_together_close(p);
        gpu_wait(p);
        while (gpu->taken_count)
            gpu->calls.mem_free(gpu->taken[--gpu->taken_count]);
        while (gpu->pinned_count)
            gpu->calls.host_free(gpu->pinned[--gpu->pinned_count]);
        hb_gpu_drop_family(gpu);
        close_lanes(gpu);
        gpu->kind->leave(gpu);
    } else {
        hb_gpu_drop_family(gpu);
    }
    hb_smi_close(gpu->smi);
    hb_dl_close(gpu->driver_lib);
}

static const struct hb_probe_ops gpu_ops = {
    .memory = gpu_memory,
    .alloc = gpu_alloc,
    .release = gpu_release,
    .host_alloc = gpu_host_alloc,
    .host_release = gpu_host_release,
    .host_prefer = gpu_host_prefer,
    .host_node = gpu_host_node,
    .copy = gpu_copy,
    .kernel = gpu_kernel,
    .product = gpu_product,
    .can = gpu_can,
    .mark = gpu_mark,
    .elapsed = gpu_elapsed,
    .health = gpu_health,
    .together_open = hb_gpu_together_open,
    .together = hb_gpu_together,
    .together_close = hb_gpu_together_close,
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
    gpu->version = version;
    p->info.device_count = count;
    return ok(gpu, gpu->calls.device_get(&gpu->device, wished), "choosing a device");
}

/* HBM3 of gfx942 and gfx950 moves four bits a pin in each clock that HIP tells: 1300 MHz and 8192
 * bits are 5.3 TB/s on MI300X. What other AMD devices tell is right for the MI210 and MI250X
 * (gfx90a, 1600 MHz); others are not believed. The Infinity Cache is not told at all. */
static void correct_amd(struct hb_probe_info *info)
{
    bool three = hb_str_starts(info->arch, "gfx942") || hb_str_starts(info->arch, "gfx950");
    if (three) {
        info->hbm_bytes_per_s *= 2;
        info->hidden_cache_bytes = 256 << 20;
    } else if (!hb_str_starts(info->arch, "gfx90a")) {
        info->hbm_bytes_per_s = 0;
    }
}

bool hb_gpu_bus(struct hb_gpu *gpu, int device, char out_bus[HB_GPU_BUS])
{
    return gpu->calls.device_bus && gpu->calls.device_bus(out_bus, HB_GPU_BUS - 1, device) == 0;
}

/* Memory that is the host's too has no way to it that a node could shorten. */
static void find_host_nodes(struct hb_gpu *gpu)
{
    struct hb_probe_info *info = &gpu->probe.info;
    struct hb_arena *arena = gpu->probe.env->arena;
    int *nodes = hb_arena_alloc(arena, HB_NUMA_MOST, sizeof *nodes);
    char bus[HB_GPU_BUS] = "";
    info->host_nodes = nodes;
    gpu->placed = hb_numa_policy(&gpu->host_policy);
    info->host_node_count = info->shared ? 0 : hb_numa_nodes(arena, nodes);
    info->host_node_beside = hb_gpu_bus(gpu, gpu->device, bus) ? hb_numa_beside(arena, bus) : -1;
}

/* Partitions that are whole need no word. */
static void open_health(struct hb_gpu *gpu)
{
    struct hb_probe_info *info = &gpu->probe.info;
    char bus[HB_GPU_BUS] = "";
    info->partition = info->untold = "";
    if (!hb_gpu_bus(gpu, gpu->device, bus))
        info->untold = "the driver does not tell the device's bus";
    else
        gpu->smi = hb_smi_open(gpu->probe.env->arena, gpu->libs, info->vendor, bus, &info->untold);
    if (!gpu->smi)
        return;
    info->untold = "";
    const char *partition = hb_smi_partition(gpu->smi);
    if (*partition && !hb_str_same(partition, "SPX/NPS1"))
        info->partition = partition;
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
    info->context_bytes = info->total_bytes - free_bytes;
    info->name = hb_arena_strdup(gpu->probe.env->arena, name[0] ? name : "unnamed device");
    info->vendor = kind->vendor;
    info->kind = HB_KIND_GPU;
    info->cores = attribute(gpu, kind->attribute.cores);
    info->clock_hz = attribute(gpu, kind->attribute.clock) * 1e3;
    info->cache_bytes = attribute(gpu, kind->attribute.cache);
    info->ecc = attribute(gpu, kind->attribute.ecc) != 0;
    info->slice = strstr(name, " MIG ") != NULL;
    gpu->major = attribute(gpu, kind->attribute.major);
    gpu->minor = attribute(gpu, kind->attribute.minor);
    kind->target(gpu, &gpu->target);
    info->arch = gpu->target.arch;
    /* Double data rate: two transfers a clock; the clock is told in kHz, the bus in bits. */
    info->hbm_bytes_per_s = 2e3 * attribute(gpu, kind->attribute.memory_clock) *
                            (attribute(gpu, kind->attribute.bus) / 8.);
    info->shared = attribute(gpu, kind->attribute.integrated) != 0 ||
                   attribute(gpu, kind->attribute.host_pages) != 0;
    if (kind->vendor == HB_VENDOR_AMD)
        correct_amd(info);
    open_health(gpu);
    find_host_nodes(gpu);
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

bool hb_gpu_start(struct hb_gpu *gpu, int wished)
{
    if (!find_device(gpu, wished) || !gpu->kind->enter(gpu))
        return false;
    gpu->entered = true;
    return describe_device(gpu) && open_lanes(gpu);
}

struct hb_probe *hb_gpu_open(struct hb_env *env, const struct hb_gpu_kind *kind,
                             const struct hb_probe_wish *wish, const char **out_reason)
{
    struct hb_gpu *gpu = hb_arena_alloc(env->arena, 1, sizeof *gpu);
    gpu->probe = (struct hb_probe){.ops = &gpu_ops, .env = env, .state = gpu};
    gpu->kind = kind;
    gpu->libs = wish->libs;
    if (hb_gpu_find_family(gpu, wish->device, out_reason))
        return &gpu->probe;
    gpu_close(&gpu->probe);
    return NULL;
}
