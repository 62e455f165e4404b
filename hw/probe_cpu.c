/* The processor of this machine as a device, on one thread: so that the whole path of calibration
 * runs anywhere. Device memory is the machine's memory; lanes do their work at once. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "hw/probe_cpu.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/str.h"

/* Every mapping, so that close gives back what is left. */
struct block {
    void *at;
    size_t bytes;
};

struct cpu {
    struct hb_probe probe;
    struct block *blocks;
    uint32_t count, cap;
    int64_t marks[HB_LANE_COUNT][2];
};

static bool cpu_memory(struct hb_probe *p, int64_t *out_free, int64_t *out_total)
{
    long page = sysconf(_SC_PAGESIZE);
    long all = sysconf(_SC_PHYS_PAGES);
    long left = sysconf(_SC_AVPHYS_PAGES);
    if (page <= 0 || all <= 0 || left < 0) {
        p->error = "the system does not tell how much memory there is";
        return false;
    }
    *out_total = (int64_t)all * page;
    *out_free = (int64_t)left * page;
    return true;
}

static bool cpu_alloc(struct hb_probe *p, int64_t bytes, uintptr_t *out_at)
{
    struct cpu *cpu = p->state;
    p->error = NULL;
    void *at =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        if (errno != ENOMEM && errno != EINVAL) /* too large is either, by the system */
            p->error = hb_arena_printf(p->env->arena, "mapping memory failed: %s", strerror(errno));
        return false;
    }
    cpu->blocks = hb_grow(p->env->arena, cpu->blocks, cpu->count, &cpu->cap, sizeof *cpu->blocks);
    cpu->blocks[cpu->count++] = (struct block){at, (size_t)bytes};
    *out_at = (uintptr_t)at;
    return true;
}

static void cpu_release(struct hb_probe *p, uintptr_t at)
{
    struct cpu *cpu = p->state;
    for (uint32_t i = cpu->count; i-- > 0;)
        if ((uintptr_t)cpu->blocks[i].at == at) {
            munmap(cpu->blocks[i].at, cpu->blocks[i].bytes);
            cpu->blocks[i] = cpu->blocks[--cpu->count];
            return;
        }
    HB_BUG("memory is given back that was not taken");
}

static bool cpu_host_alloc(struct hb_probe *p, int64_t bytes, bool pinned, void **out_at)
{
    uintptr_t at;
    (void)pinned;
    if (!cpu_alloc(p, bytes, &at))
        return false;
    *out_at = (void *)at;
    return true;
}

static void cpu_host_release(struct hb_probe *p, void *at, bool pinned)
{
    (void)pinned;
    cpu_release(p, (uintptr_t)at);
}

static bool cpu_copy(struct hb_probe *p, enum hb_lane lane, enum hb_copy way, uintptr_t at,
                     void *host, int64_t bytes)
{
    (void)p;
    (void)lane;
    bool down = way == HB_COPY_DOWN;
    memcpy(down ? host : (void *)at, down ? (void *)at : host, (size_t)bytes);
    return true;
}

/* Normal numbers, the sum of four uniform ones: bits that do not change draw less power. */
static void fill(float *a, int64_t n)
{
    uint32_t h = 1;
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int k = 0; k < 4; k++) {
            h = h * 1664525u + 1013904223u;
            sum += (float)(h >> 8) * 0x1p-24f - 0.5f;
        }
        a[i] = sum * 1.7320508f;
    }
}

static float sum_floats(const float *b, int64_t n)
{
    float part[16] = {0};
    for (int64_t i = 0; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++)
            part[k] += b[i + k];
    float sum = 0;
    for (int k = 0; k < 16; k++)
        sum += part[k];
    return sum;
}

static void chain(float *restrict a, const float *restrict b, int64_t n)
{
    for (int64_t i = 0; i + 16 <= n; i += 16) {
        float x[16];
        for (int k = 0; k < 16; k++)
            x[k] = b[i + k];
        for (int step = 0; step < 512; step++)
            for (int k = 0; k < 16; k++)
                x[k] = x[k] * 0.999f + 0.5f;
        for (int k = 0; k < 16; k++)
            a[i + k] = x[k];
    }
}

static void triad(float *restrict a, const float *restrict b, const float *restrict c, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        a[i] = b[i] + 1.5f * c[i];
}

enum { ROW = 4096 };

static void softmax(float *a, const float *b, int64_t n)
{
    for (int64_t r = 0; r + ROW <= n; r += ROW) {
        float top = b[r];
        float sum = 0;
        for (int i = 0; i < ROW; i++)
            top = fmaxf(top, b[r + i]);
        for (int i = 0; i < ROW; i++)
            sum += a[r + i] = expf(b[r + i] - top);
        for (int i = 0; i < ROW; i++)
            a[r + i] /= sum;
    }
}

static void norm(float *a, const float *b, const float *c, int64_t n)
{
    for (int64_t r = 0; r + ROW <= n; r += ROW) {
        float sum = 0;
        for (int i = 0; i < ROW; i++)
            sum += b[r + i] * b[r + i];
        sum = 1 / sqrtf(sum / ROW + 1e-6f);
        for (int i = 0; i < ROW; i++)
            a[r + i] = b[r + i] * sum * c[i];
    }
}

static void adam(float *a, const float *g, int64_t n)
{
    float *m = a + n;
    float *v = m + n;
    for (int64_t i = 0; i < n; i++) {
        m[i] = 0.9f * m[i] + 0.1f * g[i];
        v[i] = 0.95f * v[i] + 0.05f * g[i] * g[i];
        a[i] -= 1e-4f * (m[i] / (sqrtf(fabsf(v[i])) + 1e-8f) + 0.1f * a[i]);
    }
}

static void gelu(float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        a[i] = 0.5f * b[i] * (1 + erff(0.70710678f * b[i]));
}

static void reduce(float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n / 1024; i++)
        a[i] = sum_floats(b + i * 1024, 1024);
}

static bool cpu_kernel(struct hb_probe *p, const struct hb_kernel_call *call)
{
    float *a = (float *)call->a;
    const float *b = (const float *)call->b;
    const float *c = (const float *)call->c;
    int64_t n = call->n;
    (void)p;
    switch (call->kernel) {
    case HB_KERNEL_EMPTY:
    case HB_KERNEL_COUNT:
        break;
    case HB_KERNEL_FILL:
        fill(a, n);
        break;
    case HB_KERNEL_READ:
        a[0] = sum_floats(b, n);
        break;
    case HB_KERNEL_WRITE:
        for (int64_t i = 0; i < n; i++)
            a[i] = (float)i;
        break;
    case HB_KERNEL_COPY:
        memcpy(a, b, (size_t)n * sizeof *a);
        break;
    case HB_KERNEL_TRIAD:
        triad(a, b, c, n);
        break;
    case HB_KERNEL_GELU:
        gelu(a, b, n);
        break;
    case HB_KERNEL_REDUCE:
        reduce(a, b, n);
        break;
    case HB_KERNEL_SOFTMAX:
        softmax(a, b, n);
        break;
    case HB_KERNEL_NORM:
        norm(a, b, c, n);
        break;
    case HB_KERNEL_ADAM:
        adam(a, b, n);
        break;
    case HB_KERNEL_CHAIN:
        chain(a, b, n);
        break;
    }
    return true;
}

/* out += f row */
static void add_row(float *restrict out, const float *restrict row, float f, int n)
{
    for (int j = 0; j < n; j++)
        out[j] += f * row[j];
}

/* c = a b, by blocks of 64 rows of b, which stay in the cache: plain loops that the compiler makes
 * wide. */
static void multiply(const float *a, const float *b, float *c, int m, int n, int k)
{
    memset(c, 0, (size_t)m * (size_t)n * sizeof *c);
    for (int k0 = 0; k0 < k; k0 += 64) {
        int end = k0 + 64 < k ? k0 + 64 : k;
        for (int i = 0; i < m; i++)
            for (int l = k0; l < end; l++)
                add_row(c + (size_t)i * (size_t)n, b + (size_t)l * (size_t)n,
                        a[(size_t)i * (size_t)k + (size_t)l], n);
    }
}

static bool cpu_product(struct hb_probe *p, const struct hb_product *x)
{
    (void)p;
    multiply((const float *)x->a, (const float *)x->b, (float *)x->c, x->m, x->n, x->k);
    return true;
}

static unsigned cpu_can(struct hb_probe *p, enum hb_rate rate)
{
    (void)p;
    return rate == HB_RATE_F32 ? HB_CAN_MULTIPLY : 0;
}

static bool cpu_mark(struct hb_probe *p, enum hb_lane lane, int which)
{
    struct cpu *cpu = p->state;
    cpu->marks[lane][which] = p->env->now_ns();
    return true;
}

static bool cpu_elapsed(struct hb_probe *p, enum hb_lane from, enum hb_lane lane, double *out_ns)
{
    const struct cpu *cpu = p->state;
    *out_ns = (double)(cpu->marks[lane][1] - cpu->marks[from][0]);
    return true;
}

static bool cpu_health(struct hb_probe *p, struct hb_health *out)
{
    (void)p;
    (void)out;
    return false;
}

static bool cpu_wait(struct hb_probe *p)
{
    (void)p;
    return true;
}

static void cpu_close(struct hb_probe *p)
{
    struct cpu *cpu = p->state;
    while (cpu->count) {
        cpu->count--;
        munmap(cpu->blocks[cpu->count].at, cpu->blocks[cpu->count].bytes);
    }
}

static const struct hb_probe_ops cpu_ops = {
    .memory = cpu_memory,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .host_alloc = cpu_host_alloc,
    .host_release = cpu_host_release,
    .copy = cpu_copy,
    .kernel = cpu_kernel,
    .product = cpu_product,
    .can = cpu_can,
    .mark = cpu_mark,
    .elapsed = cpu_elapsed,
    .health = cpu_health,
    .wait = cpu_wait,
    .close = cpu_close,
};

struct hb_probe *hb_cpu_open(struct hb_env *env, const char **out_reason)
{
    struct cpu *cpu = hb_arena_alloc(env->arena, 1, sizeof *cpu);
    struct utsname machine;
    int64_t free_bytes;
    cpu->probe = (struct hb_probe){.ops = &cpu_ops, .env = env, .state = cpu};
    struct hb_probe_info *info = &cpu->probe.info;
    if (!cpu_memory(&cpu->probe, &free_bytes, &info->total_bytes)) {
        *out_reason = cpu->probe.error;
        return NULL;
    }
    bool known = uname(&machine) >= 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    info->name = hb_arena_printf(env->arena, "%s processor, one thread",
                                 known ? machine.machine : "this machine's");
    info->driver = known ? hb_arena_printf(env->arena, "%s %s", machine.sysname, machine.release)
                         : "unknown system";
    info->arch = info->partition = info->untold = "";
    info->vendor = HB_VENDOR_HOST;
    info->kind = HB_KIND_CPU;
    info->device_count = 1;
    info->cores = cores > 0 ? cores : 1;
    return &cpu->probe;
}
