/* JAX on GPU hands its allocator a fraction of the device's memory when it starts, 0.75 unless
 * XLA_PYTHON_CLIENT_MEM_FRACTION (XLA_CLIENT_MEM_FRACTION since 2026) says otherwise, of the total
 * that the driver reports: "GPU memory allocation" of JAX's documentation. With
 * torch.cuda.set_per_process_memory_fraction torch's allocator does likewise, of the total as well
 * (setMemoryFraction of CUDACachingAllocator.cpp: what it has reserved is held against that, not
 * what stands beside it); unasked it takes all.
 * On TPU the compiler itself knows the limit, which is in the profile's reserve.
 *
 * A host's system keeps 280 MiB and 5 % of its memory, and below 100 MiB more programs are ended:
 * what Google documents of the nodes of its clusters ("Resources available for your workloads",
 * Distributed Cloud for VMware). JAX on GPU pins no more than 64 GiB of a process, which has all
 * devices of a host (GetGpuHostAllocator of XLA's gpu_helpers.cc; the message of its plugin:
 * "Please set the environment variable XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB to allocate larger host
 * memory than the default 64 GB"). */
#include "sim/engine/budget.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/eager/titan.h"

#define JAX_GPU_FRACTION 0.75

enum { SYSTEM_PERCENT = 5, SYSTEM_MIB = 280 + 100, JAX_PINS_GIB = 64 };

/* Asynchronous tensor parallelism, beside the allocator. torch: a workspace for its group, as large
 * as the largest that was asked for, which is that of a sum: two parts of a product's rows
 * (torch/distributed/_symmetric_memory: get_symm_mem_workspace, _pipelined_produce_and_all2all).
 * Transformer Engine: userbuffers of all rows for ten products, six of them gathered, in eight bits
 * where the products are (pytorch/module/base.py, initialize_ub; comm_gemm_overlap.cpp). */
static int64_t symmetric_bytes(const struct hb_spec *spec)
{
    enum { ELEMENT_BYTES = 2, PARTS = 2, GATHERED = 6, SUMMED = 4 };
    const int64_t *mesh = spec->mesh;
    int64_t rows =
        hb_mul_sat(hb_titan_sequences(spec), hb_div_up(spec->batch.seq, mesh[HB_AX_SEQUENCE]));
    int64_t narrow = spec->precision.fp8 == HB_FP8_NONE ? ELEMENT_BYTES : 1;
    if (spec->runtime.framework == HB_FW_MEGATRON)
        return hb_mul_sat(hb_mul_sat(rows, spec->model.d_model),
                          GATHERED * narrow + SUMMED * ELEMENT_BYTES);
    return hb_mul_sat(hb_mul_sat(hb_div_up(rows, mesh[HB_AX_TENSOR]), spec->model.d_model),
                      ELEMENT_BYTES * PARTS);
}

/* Torch's figures are its allocator's: what stands beside it on the device is not in them. */
static int64_t outside_allocator(const struct hb_spec *spec, const struct hb_device *device)
{
    if (spec->compiler != HB_TORCH)
        return 0;
    int64_t bytes = hb_add_sat(device->context_bytes, device->library_bytes);
    if (spec->runtime.async_tp)
        bytes = hb_add_sat(bytes, symmetric_bytes(spec));
    return spec->hardware.count > 1 ? hb_add_sat(bytes, device->collective_bytes) : bytes;
}

int64_t hb_budget_device_bytes(const struct hb_spec *spec, const struct hb_device *device)
{
    int64_t own = spec->hardware.reserve_bytes;
    int64_t rest = device->hbm_bytes - (own >= 0 ? own : device->reserve_bytes);
    return rest > 0 ? rest : 0;
}

/* What was fitted to runs, or written by hand, holds what the runtime kept from programs. */
static double fraction_of(const struct hb_spec *spec, const struct hb_device *device)
{
    if (spec->runtime.memory_fraction > 0)
        return spec->runtime.memory_fraction;
    bool told = spec->hardware.reserve_bytes >= 0 || hb_device_reserve_is_fitted(device);
    return spec->compiler == HB_XLA_GPU && !told ? JAX_GPU_FRACTION : 1;
}

/* For one device of those that the host has. */
static int64_t host_reserve(const struct hb_spec *spec, const struct hb_device *device)
{
    int64_t devices = device->host_devices > 0 ? device->host_devices : 1;
    int64_t all = hb_mul_sat(device->host_memory_bytes, devices);
    int64_t own = spec->hardware.host_reserve_bytes;
    if (own < 0)
        own = hb_add_sat(all / 100 * SYSTEM_PERCENT, (int64_t)SYSTEM_MIB << 20);
    return (own < all ? own : all) / devices;
}

static void set_host(const struct hb_spec *spec, const struct hb_device *device,
                     struct hb_budget *out)
{
    int64_t sharing = device->host_devices;
    if (sharing > spec->hardware.count)
        sharing = spec->hardware.count;
    out->host_devices = sharing > 0 ? sharing : 1;
    out->host_bytes = INT64_MAX;
    if (spec->hardware.host_memory_bytes > 0)
        out->host_bytes = spec->hardware.host_memory_bytes / out->host_devices;
    if (spec->hardware.host_memory_bytes > 0 || device->host_memory_bytes <= 0)
        return;
    out->host_reserve_bytes = host_reserve(spec, device);
    out->host_bytes = device->host_memory_bytes - out->host_reserve_bytes;
}

void hb_budget_make(const struct hb_spec *spec, const struct hb_device *device,
                    struct hb_budget *out)
{
    int64_t whole = hb_budget_device_bytes(spec, device);
    *out = (struct hb_budget){.bytes = spec->hardware.hbm_bytes,
                              .device_bytes = whole,
                              .fraction = 1,
                              .of_torch = spec->compiler == HB_TORCH};
    set_host(spec, device, out);
    if (out->bytes > 0)
        return;
    int64_t usable = spec->hardware.reserve_bytes >= 0 ? whole : hb_device_usable_bytes(device);
    out->fraction = fraction_of(spec, device);
    if (spec->hardware.reserve_bytes < 0)
        out->beside_bytes = outside_allocator(spec, device);
    int64_t share = (int64_t)((double)usable * out->fraction);
    int64_t rest = usable > out->beside_bytes ? usable - out->beside_bytes : 0;
    if (share <= rest)
        out->beside_bytes = 0;
    else
        out->fraction = 1;
    out->bytes = share <= rest ? share : rest;
}

int64_t hb_budget_found_bytes(const struct hb_spec *spec, const struct hb_device *device)
{
    struct hb_budget budget;
    if (spec->compiler != HB_TORCH)
        return hb_budget_device_bytes(spec, device);
    hb_budget_make(spec, device, &budget);
    return budget.bytes;
}

const char *hb_budget_words(struct hb_arena *arena, const struct hb_budget *budget)
{
    char whole[HB_SIZE_TEXT];
    char beside[HB_SIZE_TEXT];
    const char *share = "";
    const char *less = "";
    hb_size_print(budget->device_bytes, whole);
    hb_size_print(budget->beside_bytes, beside);
    if (budget->fraction < 1)
        share = hb_arena_printf(arena, "%g of ", budget->fraction);
    if (budget->beside_bytes)
        less = hb_arena_printf(arena, " less %s of context, libraries and communicators", beside);
    if (!*share && !*less)
        return "";
    if (*share)
        less = budget->of_torch
                   ? ", as torch.cuda.set_per_process_memory_fraction (runtime.memory_fraction)"
                   : ", as XLA_PYTHON_CLIENT_MEM_FRACTION (runtime.memory_fraction)";
    return hb_arena_printf(arena, "%s%s%s", share, whole, less);
}

const char *hb_budget_host_words(struct hb_arena *arena, const struct hb_budget *budget)
{
    char kept[HB_SIZE_TEXT];
    if (!budget->host_reserve_bytes)
        return "";
    hb_size_print(hb_mul_sat(budget->host_reserve_bytes, budget->host_devices), kept);
    return hb_arena_printf(arena, " less %s for its system, hardware.host_reserve", kept);
}

const char *hb_budget_pool_words(struct hb_arena *arena, const struct hb_spec *spec,
                                 const struct hb_budget *budget, int64_t own_bytes)
{
    int64_t gib = INT64_C(1) << 30, all = hb_mul_sat(own_bytes, budget->host_devices);
    if (spec->compiler != HB_XLA_GPU || all <= JAX_PINS_GIB * gib)
        return "";
    return hb_arena_printf(arena,
                           "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=%" PRId64
                           " is wanted: JAX pins %d GiB of a process unless told",
                           all / gib + (all % gib != 0), (int)JAX_PINS_GIB);
}
