/* See gpu_together.h. One process drives all devices, as NCCL's ncclCommInitAll has it; prototypes
 * and numbers as in nccl.h of 2.28, which RCCL's rccl.h repeats. */
#include "hw/gpu_together.h"

#include <math.h>

#include "base/arena.h"
#include "base/env.h"
#include "hw/dl.h"
#include "hw/libs.h"
#include "hw/probe_gpu.h"

enum { MOST_DEVICES = 16, NCCL_INT8 = 0, NCCL_BF16 = 9, NCCL_SUM = 0, PEER_ENABLED = 704 };

struct nccl_calls {
    int (*init_all)(void **out_comms, int count, const int *devices);
    int (*destroy)(void *comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_gather)(const void *from, void *to, size_t count, int type, void *comm, void *stream);
    int (*reduce_scatter)(const void *from, void *to, size_t count, int type, int op, void *comm,
                          void *stream);
    int (*send)(const void *from, size_t count, int type, int peer, void *comm, void *stream);
    int (*recv)(void *to, size_t count, int type, int peer, void *comm, void *stream);
};

#define CALL(member) offsetof(struct nccl_calls, member)
static const struct hb_dl_bind nccl_table[] = {
    {"ncclCommInitAll", CALL(init_all), false},
    {"ncclCommDestroy", CALL(destroy), false},
    {"ncclGroupStart", CALL(group_start), false},
    {"ncclGroupEnd", CALL(group_end), false},
    {"ncclAllGather", CALL(all_gather), false},
    {"ncclReduceScatter", CALL(reduce_scatter), false},
    {"ncclSend", CALL(send), false},
    {"ncclRecv", CALL(recv), false},
    {0},
};
static const char *const nccl_names[] = {"libnccl.so.2", "libnccl.so", NULL};
static const char *const rccl_names[] = {"librccl.so.1", "librccl.so", NULL};

/* One device of them. */
struct member {
    int device;
    bool entered;
    void *context;
    void *stream;
    void *event[2];
    uintptr_t from, to;
    void *host;
};

struct hb_gpu_together {
    struct member member[MOST_DEVICES];
    int count;
    int64_t bytes; /* of each buffer */
    struct hb_dl *lib;
    struct nccl_calls nccl;
    void *comm[MOST_DEVICES];
    bool has_comms;
};

static bool check(struct hb_gpu *gpu, int code, const char *what)
{
    return code == 0 || hb_gpu_fail(gpu, what, code);
}

static bool look_at(struct hb_gpu *gpu, const struct member *m)
{
    return check(gpu,
                 gpu->calls.context_set ? gpu->calls.context_set(m->context)
                                        : gpu->calls.device_set(m->device),
                 "turning to a device");
}

static bool enter(struct hb_gpu *gpu, struct member *m, int ordinal)
{
    if (!check(gpu, gpu->calls.device_get(&m->device, ordinal), "choosing a device"))
        return false;
    if (gpu->calls.context_retain &&
        !check(gpu, gpu->calls.context_retain(&m->context, m->device), "opening a device"))
        return false;
    m->entered = true;
    return look_at(gpu, m);
}

/* Of the node beside the device, as processes have it that are bound to their devices. */
static bool take_pinned(struct hb_gpu *gpu, struct member *m, size_t size)
{
    char bus[HB_GPU_BUS] = "";
    int node = hb_gpu_bus(gpu, m->device, bus) ? hb_numa_beside(gpu->probe.env->arena, bus) : -1;
    unsigned flags;
    hb_gpu_place(gpu, node, &flags);
    int code = gpu->calls.host_alloc(&m->host, size, flags);
    hb_gpu_place(gpu, -1, &flags);
    return check(gpu, code, "allocating pinned memory");
}

static bool equip(struct hb_gpu *gpu, struct member *m, int64_t bytes)
{
    const struct hb_gpu_calls *c = &gpu->calls;
    size_t size = (size_t)bytes;
    return check(gpu, c->stream_create(&m->stream, 1), "making a stream") &&
           check(gpu, c->event_create(&m->event[0], 0), "making an event") &&
           check(gpu, c->event_create(&m->event[1], 0), "making an event") &&
           check(gpu, c->mem_alloc(&m->from, size), "allocating device memory") &&
           check(gpu, c->mem_alloc(&m->to, size), "allocating device memory") &&
           take_pinned(gpu, m, size);
}

/* Where it is not possible copies go through the host, which is what would be measured. */
static void join(struct hb_gpu *gpu, struct hb_gpu_together *t)
{
    for (int i = 0; i < t->count; i++)
        for (int k = 0; k < t->count; k++) {
            int can = 0;
            if (i == k || !gpu->calls.can_access || !look_at(gpu, &t->member[i]) ||
                gpu->calls.can_access(&can, t->member[i].device, t->member[k].device) != 0 || !can)
                continue;
            if (gpu->calls.context_join)
                gpu->calls.context_join(t->member[k].context, 0);
            else if (gpu->calls.device_join)
                gpu->calls.device_join(t->member[k].device, 0);
        }
}

static bool open_nccl(struct hb_gpu *gpu, struct hb_gpu_together *t)
{
    struct hb_arena *arena = gpu->probe.env->arena;
    int ordinals[MOST_DEVICES];
    const char *reason = "";
    bool amd = gpu->kind->vendor == HB_VENDOR_AMD;
    for (int i = 0; i < t->count; i++)
        ordinals[i] = i;
    t->lib = hb_dl_open(arena, gpu->libs->folders, amd ? rccl_names : nccl_names, &reason);
    if (t->lib && hb_dl_bind(t->lib, arena, nccl_table, &t->nccl, &reason)) {
        int code = t->nccl.init_all(t->comm, t->count, ordinals);
        t->has_comms = code == 0;
        reason = hb_arena_printf(arena, "%s does not start (%d)", hb_dl_name(t->lib), code);
    }
    if (!t->has_comms)
        gpu->probe.error = reason;
    return t->has_comms;
}

bool hb_gpu_together_open(struct hb_probe *p, int64_t bytes, int *out_devices)
{
    struct hb_gpu *gpu = p->state;
    struct hb_gpu_together *t = hb_arena_alloc(p->env->arena, 1, sizeof *t);
    gpu->together = t;
    t->bytes = bytes;
    int count = p->info.device_count < MOST_DEVICES ? p->info.device_count : MOST_DEVICES;
    for (int i = 0; i < count; i++) {
        t->count = i + 1;
        if (!enter(gpu, &t->member[i], i) || !equip(gpu, &t->member[i], bytes))
            return false;
    }
    join(gpu, t);
    open_nccl(gpu, t); /* without it only collectives are left out, which is told */
    *out_devices = t->count;
    return true;
}

/* ---- work ---- */

static int peer_copy(struct hb_gpu *gpu, const struct member *a, const struct member *b,
                     size_t bytes)
{
    if (gpu->calls.context_copy)
        return gpu->calls.context_copy(b->to, b->context, a->from, a->context, bytes, a->stream);
    return gpu->calls.device_copy
               ? gpu->calls.device_copy((void *)b->to, b->device, (const void *)a->from, a->device,
                                        bytes, a->stream)
               : -1;
}

/* What member i does of a collective over n devices. bytes: as hb_link_collective_ns has it. */
static int take_part(const struct hb_gpu_together *t, const struct hb_together *what, int i)
{
    const struct nccl_calls *c = &t->nccl;
    const struct member *m = &t->member[i];
    const void *from = (const void *)m->from;
    void *to = (void *)m->to;
    size_t n = (size_t)t->count;
    size_t bytes = (size_t)what->bytes;
    int code = 0;
    switch (what->what) {
    case HB_TOGETHER_ALL_GATHER:
        return c->all_gather(from, to, bytes / n, NCCL_INT8, t->comm[i], m->stream);
    case HB_TOGETHER_REDUCE_SCATTER:
        return c->reduce_scatter(from, to, bytes / 2 / n, NCCL_BF16, NCCL_SUM, t->comm[i],
                                 m->stream);
    case HB_TOGETHER_ALL_TO_ALL:
        for (size_t k = 0; k < n && code == 0; k++) {
            code = c->send(from, bytes / n / n, NCCL_INT8, (int)k, t->comm[i], m->stream);
            code =
                code ? code : c->recv(to, bytes / n / n, NCCL_INT8, (int)k, t->comm[i], m->stream);
        }
        return code;
    case HB_TOGETHER_PERMUTE:
        code = c->send(from, bytes, NCCL_INT8, (i + 1) % t->count, t->comm[i], m->stream);
        return code ? code
                    : c->recv(to, bytes, NCCL_INT8, (i + t->count - 1) % t->count, t->comm[i],
                              m->stream);
    case HB_TOGETHER_PEER:
    case HB_TOGETHER_UP:
    case HB_TOGETHER_DOWN:
        break;
    }
    return -1;
}

static bool issue_collective(struct hb_gpu *gpu, const struct hb_together *what)
{
    const struct hb_gpu_together *t = gpu->together;
    if (!t->has_comms) {
        gpu->probe.error = "there is no library for collectives";
        return false;
    }
    int code = t->nccl.group_start();
    for (int i = 0; i < t->count && code == 0; i++)
        code = take_part(t, what, i);
    int end = t->nccl.group_end();
    if (code == 0 && end == 0)
        return true;
    gpu->probe.error =
        hb_arena_printf(gpu->probe.env->arena, "a collective failed (%d)", code ? code : end);
    return false;
}

static bool issue_copies(struct hb_gpu *gpu, const struct hb_together *what)
{
    const struct hb_gpu_together *t = gpu->together;
    size_t bytes = (size_t)what->bytes;
    if (what->what == HB_TOGETHER_PEER)
        return check(gpu, peer_copy(gpu, &t->member[0], &t->member[1], bytes),
                     "copying between devices");
    for (int i = 0; i < t->count; i++) {
        const struct member *m = &t->member[i];
        if (!look_at(gpu, m) ||
            !check(gpu,
                   what->what == HB_TOGETHER_UP
                       ? gpu->calls.copy_up(m->to, m->host, bytes, m->stream)
                       : gpu->calls.copy_down(m->host, m->from, bytes, m->stream),
                   "copying beside the other devices"))
            return false;
    }
    return true;
}

static bool mark(struct hb_gpu *gpu, int which)
{
    const struct hb_gpu_together *t = gpu->together;
    for (int i = 0; i < t->count; i++)
        if (!look_at(gpu, &t->member[i]) ||
            !check(gpu, gpu->calls.event_record(t->member[i].event[which], t->member[i].stream),
                   "recording an event"))
            return false;
    return true;
}

/* The slowest of them. */
bool hb_gpu_together(struct hb_probe *p, const struct hb_together *what, int repeats,
                     double *out_ns)
{
    struct hb_gpu *gpu = p->state;
    const struct hb_gpu_together *t = gpu->together;
    bool copies = what->what >= HB_TOGETHER_PEER;
    if (what->bytes > t->bytes || !mark(gpu, 0))
        return false;
    for (int i = 0; i < repeats; i++)
        if (!(copies ? issue_copies(gpu, what) : issue_collective(gpu, what)))
            return false;
    if (!mark(gpu, 1))
        return false;
    *out_ns = 0;
    for (int i = 0; i < t->count; i++) {
        const struct member *m = &t->member[i];
        float ms = 0;
        if (!look_at(gpu, m) ||
            !check(gpu, gpu->calls.event_wait(m->event[1]), "waiting for a device") ||
            !check(gpu, gpu->calls.event_elapsed(&ms, m->event[0], m->event[1]),
                   "reading the time between events"))
            return false;
        *out_ns = fmax(*out_ns, (double)ms * 1e6);
    }
    return true;
}

/* ---- closing ---- */

static void leave(struct hb_gpu *gpu, struct member *m)
{
    const struct hb_gpu_calls *c = &gpu->calls;
    const char *before = gpu->probe.error;
    if (!m->entered)
        return;
    look_at(gpu, m);
    if (m->stream)
        c->stream_wait(m->stream);
    if (m->host)
        c->host_free(m->host);
    if (m->to)
        c->mem_free(m->to);
    if (m->from)
        c->mem_free(m->from);
    for (int i = 0; i < 2; i++)
        if (m->event[i])
            c->event_destroy(m->event[i]);
    if (m->stream)
        c->stream_destroy(m->stream);
    if (c->context_release)
        c->context_release(m->device);
    gpu->probe.error = before;
}

void hb_gpu_together_close(struct hb_probe *p)
{
    struct hb_gpu *gpu = p->state;
    struct hb_gpu_together *t = gpu->together;
    if (!t)
        return;
    for (int i = 0; i < t->count && t->has_comms; i++)
        t->nccl.destroy(t->comm[i]);
    hb_dl_close(t->lib);
    for (int i = t->count; i-- > 0;)
        leave(gpu, &t->member[i]);
    gpu->together = NULL;
    const struct member own = {.device = gpu->device, .context = gpu->context};
    look_at(gpu, &own);
}
