/* Stand-ins for the libraries of a GPU, for CUDA (STANDIN_CUDA) or HIP: this is the driver. They
 * have the real entry points and a clock of their own, so that the real code path of calibrate runs
 * on a machine without a device. Addresses are checked against what was allocated; what is not
 * given back ends the program when the library is unloaded, and so do two HIP runtimes in one
 * process. HBM_STANDIN is a comma list of troubles: nodevice, version, driver=MAJOR, newdevice,
 * oom=N, launch=N, event=N, fail=N (the N-th call of any library), blas, compile[=MAJOR], slow,
 * multi, mig, busy, shared, frag, throttle, gfx950, gfx90a, partition, nosmi, interrupt=N. Like a
 * driver it has a thread of its own. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "tests/standin/standin.h"

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
    int allocs, launches, kernels, records, calls;
    double hot_ns;
    unsigned noise;
    double slow;
    pthread_t thread;
    int has_thread;
    int broken; /* after a failed launch nothing works any more */
} gpu = {.taken = CONTEXT, .next = (uintptr_t)1 << 40, .slow = 1};

void standin_die(const char *what)
{
    fprintf(stderr, "standin: %s\n", what);
    abort();
}

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
        standin_die("no such stream");
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

void standin_product(void *stream, double ns)
{
    gpu.hot_ns += ns;
    standin_work(stream, ns * (standin_trouble("throttle") && gpu.hot_ns > 2e7 ? 1.1 : 1));
}

int standin_fails(void)
{
    return ++gpu.calls == standin_trouble("fail");
}

const char *standin_arch(void)
{
    return standin_trouble("gfx950")   ? "gfx950:sramecc+:xnack-"
           : standin_trouble("gfx90a") ? "gfx90a:sramecc+:xnack-"
                                       : "gfx942:sramecc+:xnack-";
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
    standin_die(what);
}

/* Of the busy stream 1, products: copies are slower beside them; and those of several devices
 * beside each other. */
static double copy_ns(size_t bytes, double rate, void *stream)
{
    double busy = index_of(stream) > 2 ? 0.5 : gpu.stream_ns[0] > gpu.host_ns ? 0.8 : 1;
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
        standin_die("something was not given back");
}

#ifndef STANDIN_CUDA
static int count_runtime(struct dl_phdr_info *info, size_t bytes, void *count)
{
    (void)bytes;
    *(int *)count += strstr(info->dlpi_name, "/libamdhip64.so") != NULL;
    return 0;
}
#endif

int NAME(cuInit, hipInit)(unsigned flags)
{
#ifndef STANDIN_CUDA
    int runtimes = 0;
    dl_iterate_phdr(count_runtime, &runtimes);
    if (runtimes > 1)
        standin_die("two runtimes in one process");
#endif
    MAY_FAIL();
    gpu.has_thread = pthread_create(&gpu.thread, NULL, sleep_on, NULL) == 0;
    return flags || !gpu.has_thread ? 1 : 0;
}

int NAME(cuDriverGetVersion, hipDriverGetVersion)(int *version)
{
    int major = standin_trouble("driver");
    MAY_FAIL();
    *version = standin_trouble("version") ? 9000 : major ? major * 1000 : NAME(12080, 60342131);
    return 0;
}

int NAME(cuDeviceGetCount, hipGetDeviceCount)(int *count)
{
    MAY_FAIL();
    *count = standin_trouble("nodevice") ? 0 : standin_trouble("multi") ? 4 : 1;
    return 0;
}

int NAME(cuDeviceGet, hipDeviceGet)(int *device, int ordinal)
{
    MAY_FAIL();
    *device = ordinal;
    return 0;
}

int NAME(cuDeviceGetName, hipDeviceGetName)(char *name, int room, int device)
{
    MAY_FAIL();
    (void)device;
    snprintf(name, (size_t)room, "%s",
             standin_trouble("mig") ? "Stand-in GPU MIG 1g.4gb" : "Stand-in GPU");
    return 0;
}

int NAME(cuDeviceGetAttribute, hipDeviceGetAttribute)(int *value, int which, int device)
{
    int clock = NAME(2000000, standin_trouble("gfx90a") ? 2000000 : 1000000);
    int shared = standin_trouble("shared");
    const struct {
        int cuda, hip, value;
    } table[] = {
        {16, 63, 100},
        {13, 5, 1500000},
        {37, 59, 4096},
        {36, 60, clock},
        {38, 19, NAME(32, 4) << 20},
        {32, 0, 1},
        {75, 23, NAME(standin_trouble("newdevice") ? 12 : 9, 9)},
        {76, 61, NAME(standin_trouble("newdevice") ? 1 : 0, 4)},
        {18, 16, shared},
        {100, 66, shared},
    };
    MAY_FAIL();
    (void)device;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (which == NAME(table[i].cuda, table[i].hip)) {
            *value = table[i].value;
            return 0;
        }
    return 1;
}

int NAME(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId)(char *out, int room, int device)
{
    MAY_FAIL();
    snprintf(out, (size_t)room, "0000:c1:00.%d", device);
    return 0;
}

#ifndef STANDIN_CUDA
int hipGetDevicePropertiesR0600(void *properties, int device)
{
    MAY_FAIL();
    memset(properties, 0, 1472);
    snprintf((char *)properties + 1160, 256, "%s", standin_arch());
    return device < 0;
}
#endif

int NAME(cuMemGetInfo_v2, hipMemGetInfo)(size_t *free_bytes, size_t *total)
{
    MAY_FAIL();
    long long busy = standin_trouble("busy") ? 2LL << 30 : 0;
    *free_bytes = (size_t)(TOTAL - gpu.taken - busy);
    *total = (size_t)TOTAL;
    return 0;
}

int NAME(cuMemAlloc_v2, hipMalloc)(address *out, size_t bytes)
{
    MAY_FAIL();
    long long size = ((long long)bytes + PAGE - 1) / PAGE * PAGE;
    long long busy = standin_trouble("busy") ? 2LL << 30 : 0;
    gpu.allocs++;
    if (!bytes || gpu.broken)
        return gpu.broken ? LAUNCH_FAILED : 1;
    if (gpu.allocs == standin_trouble("oom") || size > TOTAL - gpu.taken - busy ||
        (standin_trouble("frag") && gpu.allocs > 4 && size > 64 << 20))
        return OUT_OF_MEMORY;
    if (gpu.blocks == BLOCKS)
        standin_die("too many blocks");
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
    standin_die("freed what was not allocated");
    return 1;
}

int NAME(cuMemHostAlloc, hipHostMalloc)(void **at, size_t bytes, unsigned flags)
{
    MAY_FAIL();
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
    MAY_FAIL();
    volatile char last = ((const char *)from)[bytes - 1];
    (void)last;
    standin_check((uintptr_t)to, (double)bytes, "copy up beyond an allocation");
    standin_work(stream, copy_ns(bytes, 20e9, stream));
    return 0;
}

int NAME(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void *to, address from, size_t bytes,
                                                   void *stream)
{
    MAY_FAIL();
    ((char *)to)[bytes - 1] = 1;
    standin_check((uintptr_t)from, (double)bytes, "copy down beyond an allocation");
    standin_work(stream, copy_ns(bytes, 25e9, stream));
    return 0;
}

int NAME(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(address to, address from, size_t bytes,
                                                   void *stream)
{
    MAY_FAIL();
    standin_check((uintptr_t)to, (double)bytes, "copy beyond an allocation");
    standin_check((uintptr_t)from, (double)bytes, "copy beyond an allocation");
    standin_work(stream, (double)bytes / 1e12 * 1e9);
    return 0;
}

int NAME(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer)(int *can, int device, int peer)
{
    MAY_FAIL();
    *can = device != peer;
    return 0;
}

int NAME(cuCtxEnablePeerAccess(void *peer, unsigned flags),
         hipDeviceEnablePeerAccess(int peer, unsigned flags))
{
    (void)peer;
    return flags != 0;
}

int NAME(cuMemcpyPeerAsync(address to, void *to_context, address from, void *from_context,
                           size_t bytes, void *stream),
         hipMemcpyPeerAsync(address to, int to_context, const void *from, int from_context,
                            size_t bytes, void *stream))
{
    (void)to_context;
    (void)from_context;
    MAY_FAIL();
    standin_check((uintptr_t)to, (double)bytes, "copy to a peer beyond an allocation");
    standin_check((uintptr_t)from, (double)bytes, "copy from a peer beyond an allocation");
    standin_work(stream, 3000 + (double)bytes / 200e9 * 1e9);
    return 0;
}

int NAME(cuStreamCreate, hipStreamCreateWithFlags)(void **stream, unsigned flags)
{
    MAY_FAIL();
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
    MAY_FAIL();
    double at = gpu.stream_ns[index_of(stream)];
    gpu.host_ns = at > gpu.host_ns ? at : gpu.host_ns;
    gpu.hot_ns = 0; /* who waits for all lets the device rest */
    return gpu.broken ? LAUNCH_FAILED : 0;
}

struct event {
    double ns;
    int recorded;
};

int NAME(cuEventCreate, hipEventCreateWithFlags)(void **event, unsigned flags)
{
    MAY_FAIL();
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
    MAY_FAIL();
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
    MAY_FAIL();
    const struct event *e = event;
    gpu.host_ns = e->ns > gpu.host_ns ? e->ns : gpu.host_ns;
    return gpu.broken ? LAUNCH_FAILED : e->recorded ? 0 : 1;
}

#ifndef WITHOUT_ELAPSED
int NAME(cuEventElapsedTime, hipEventElapsedTime)(float *ms, void *begin, void *end)
{
    MAY_FAIL();
    const struct event *a = begin;
    const struct event *b = end;
    *ms = (float)((b->ns - a->ns) * 1e-6);
    return a->recorded && b->recorded ? 0 : 1;
}
#endif

int NAME(cuModuleLoadData, hipModuleLoadData)(void **module, const void *image)
{
    MAY_FAIL();
    const char *text = image;
    const char *arch_at;
    int driver = standin_trouble("driver");
    int major = 0;
    int arch = 0;
    if (strncmp(text, "standin ", 8) != 0)
        return 200;
    major = (int)strtol(text + 8, NULL, 10);
    arch_at = strchr(text, '_');
    arch = arch_at ? (int)strtol(arch_at + 1, NULL, 10) : 0;
    if (major > (driver ? driver : 12))
        return strstr(text, "PTX") ? 222 : 200;
    if (NAME(!strstr(text, "PTX") && arch != (standin_trouble("newdevice") ? 121 : 90), 0))
        return 209;
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
    {"hb_empty", 0, 0, 0, 0, 0}, {"hb_fill", 4, 4, 4, 0, 0},    {"hb_read", 4, 1, 0, 4, 0},
    {"hb_write", 4, 0, 4, 0, 0}, {"hb_copy", 8, 0, 4, 4, 0},    {"hb_triad", 12, 2, 4, 4, 4},
    {"hb_gelu", 8, 30, 4, 4, 0}, {"hb_reduce", 4, 1, 0, 4, 0},  {"hb_softmax", 10, 9, 4, 4, 0},
    {"hb_norm", 9, 4, 4, 4, 0},  {"hb_adam", 28, 12, 12, 4, 0}, {"hb_chain", 8, 1024, 4, 4, 0},
};

int NAME(cuModuleGetFunction, hipModuleGetFunction)(void **function, void *module, const char *name)
{
    MAY_FAIL();
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
    MAY_FAIL();
    const struct kernel *k = function;
    double n = (double)*(long long *)params[3];
    const int per[] = {k->a, k->b, k->c};
    if (!gx || gy != 1 || gz != 1 || bx != 256 || by != 1 || bz != 1 || shared || extra)
        return 1;
    if (n > 1 && ++gpu.kernels == standin_trouble("interrupt"))
        kill(getpid(), SIGINT);
    gpu.broken |= ++gpu.launches == standin_trouble("launch");
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
    MAY_FAIL();
    *context = &gpu;
    gpu.contexts++;
    return device < 0;
}

int cuCtxSetCurrent(void *context)
{
    if (context)
        MAY_FAIL();
    return context && context != &gpu;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    gpu.contexts--;
    return device < 0;
}

int cuGetErrorString(int code, const char **text)
{
    *text = code == LAUNCH_FAILED ? "unspecified launch failure"
            : code == 222         ? "the provided PTX was compiled with an unsupported toolchain"
            : code == 200         ? "device kernel image is invalid"
                                  : "invalid argument";
    return 0;
}
#else
int hipSetDevice(int device)
{
    MAY_FAIL();
    return device < 0;
}

const char *hipGetErrorString(int code)
{
    return code == LAUNCH_FAILED ? "unspecified launch failure"
           : code == 222         ? "the provided PTX was compiled with an unsupported toolchain"
           : code == 200         ? "device kernel image is invalid"
                                 : "invalid argument";
}
#endif
