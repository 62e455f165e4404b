/* Calibration on a GPU, for CUDA and HIP alike: their driver entry points take the same arguments,
 * so one table of functions, filled from either library, serves one body of code. What differs
 * (names, numbers, contexts) stands in struct hb_gpu_kind. */
#ifndef HB_HW_PROBE_GPU_H
#define HB_HW_PROBE_GPU_H

#include <stddef.h>

#include "hw/dl.h"
#include "hw/gpu_blas.h"
#include "hw/gpu_rtc.h"
#include "hw/gpu_smi.h"
#include "hw/libs.h"
#include "hw/numa.h"
#include "hw/probe.h"

/* Driver functions: 0 is success. Streams, events, modules are opaque pointers; device addresses
 * are 64 bits wide in both. */
struct hb_gpu_calls {
    int (*init)(unsigned flags);
    int (*driver_version)(int *out_version);
    int (*device_count)(int *out_count);
    int (*device_get)(int *out_device, int ordinal);
    int (*device_name)(char *name, int room, int device);
    int (*device_attribute)(int *out_value, int attribute, int device);
    int (*device_bus)(char *out, int room, int device); /* "0000:c1:00.0"; may be null */
    int (*properties_6)(void *out, int device);         /* HIP's, by age; may be null */
    int (*properties_5)(void *out, int device);
    int (*mem_info)(size_t *out_free, size_t *out_total);
    int (*mem_alloc)(uintptr_t *out_at, size_t bytes);
    int (*mem_free)(uintptr_t at);
    int (*host_alloc)(void **out_at, size_t bytes, unsigned flags);
    int (*host_free)(void *at);
    int (*copy_up)(uintptr_t to, const void *from, size_t bytes, void *stream);
    int (*copy_down)(void *to, uintptr_t from, size_t bytes, void *stream);
    int (*copy_within)(uintptr_t to, uintptr_t from, size_t bytes, void *stream);
    int (*stream_create)(void **out_stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream);
    int (*event_create)(void **out_event, unsigned flags);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_wait)(void *event);
    int (*event_elapsed)(float *out_ms, void *begin, void *end);
    int (*module_load)(void **out_module, const void *image);
    int (*module_function)(void **out_function, void *module, const char *name);
    int (*module_unload)(void *module);
    int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                  unsigned bz, unsigned shared, void *stream, void **params, void **extra);
    int (*can_access)(int *out_can, int device, int peer); /* may be null, as all below */
    int (*context_join)(void *context, unsigned flags);
    int (*device_join)(int device, unsigned flags);
    int (*context_copy)(uintptr_t to, void *to_context, uintptr_t from, void *from_context,
                        size_t bytes, void *stream);
    int (*device_copy)(void *to, int to_device, const void *from, int from_device, size_t bytes,
                       void *stream);
    /* One of each pair: CUDA's and HIP's. */
    int (*context_retain)(void **out_context, int device);
    int (*context_set)(void *context);
    int (*context_release)(int device);
    int (*device_set)(int device);
    int (*error_text_at)(int code, const char **out_text);
    const char *(*error_text)(int code);
};

struct hb_gpu;

/* Libraries of one major version, which go into a process together. Lists end with null. */
struct hb_gpu_family {
    int major; /* 0: files without a version in their names; -1: the end of a table */
    const char *const *runtime; /* HIP's; null: the driver's library is apart */
    const char *const *rtc;
    const char *const *blas;
    const char *const *lt;
};

struct hb_gpu_kind {
    const char *backend;
    enum hb_vendor vendor;
    const char *const *driver_names;       /* null: of the family */
    const struct hb_gpu_family *families;  /* newest first */
    const struct hb_dl_bind *driver_table; /* into struct hb_gpu_calls */
    const struct hb_dl_bind *rtc_table;    /* into struct hb_rtc_calls */
    const struct hb_dl_bind *blas_table;   /* into struct hb_blas_calls */
    const struct hb_dl_bind *lt_table;     /* into struct hb_lt_calls */
    int oldest_driver;                     /* as driver_version tells it */
    int version_unit;                      /* of a major version in it */
    unsigned placed_flag;                  /* pinned memory comes from the thread's node */
    struct {
        int cores, clock, bus, memory_clock, cache, ecc, major, minor;
        int integrated, host_pages; /* memory is the host's; is reached by its page tables */
    } attribute;
    struct hb_gemm_kind gemm;
    bool (*enter)(struct hb_gpu *gpu);
    void (*leave)(struct hb_gpu *gpu);
    void (*target)(struct hb_gpu *gpu, struct hb_rtc_target *out);
    const char *(*error_text)(struct hb_gpu *gpu, int code);
};

struct hb_gpu {
    struct hb_probe probe;
    const struct hb_gpu_kind *kind;
    const struct hb_libs *libs;
    struct hb_gpu_calls calls;
    struct hb_rtc_calls rtc;
    struct hb_dl *driver_lib, *rtc_lib;
    int version; /* of the driver */
    int device;
    int major, minor; /* compute capability */
    struct hb_rtc_target target;
    const char *form; /* of the kernels' code */
    void *context;    /* CUDA */
    bool entered;
    void *stream[HB_LANE_COUNT];
    void *event[HB_LANE_COUNT][2];
    void *module;
    void *function[HB_KERNEL_COUNT];
    struct hb_blas blas;
    struct hb_smi *smi;               /* null: none */
    struct hb_gpu_together *together; /* null: not open */
    uintptr_t *taken;                 /* live device memory */
    uint32_t taken_count, taken_cap;
    void **pinned; /* live pinned memory */
    uint32_t pinned_count, pinned_cap;
    unsigned pinned_flags; /* of those that are taken next */
    bool placed;           /* host_policy is known, so that it can be restored */
    struct hb_numa_policy host_policy;
};

/* Opens this kind of GPU; null with a sentence. */
struct hb_probe *hb_gpu_open(struct hb_env *env, const struct hb_gpu_kind *kind,
                             const struct hb_probe_wish *wish, const char **out_reason);
enum { HB_GPU_BUS = 64 };
/* The device's PCI bus id; false: the driver does not tell it. */
bool hb_gpu_bus(struct hb_gpu *gpu, int device, char out_bus[HB_GPU_BUS]);
/* This thread's new pinned memory is of that node, if allocated with these flags; -1: as it comes.
 * False: the machine does not allow it. */
bool hb_gpu_place(struct hb_gpu *gpu, int node, unsigned *out_flags);
/* Leaves "what: text (code)" in the probe; returns false. */
bool hb_gpu_fail(struct hb_gpu *gpu, const char *what, int code);
/* Fills n words of four bytes. */
bool hb_gpu_launch_fill(struct hb_gpu *gpu, uintptr_t at, int64_t n, enum hb_fill form);

/* The libraries of one family after the other, those that fit the driver first, until one is
 * whole: it compiles the kernels, the device takes them, products start. False: *out_reason has
 * what each of them lacked. */
bool hb_gpu_find_family(struct hb_gpu *gpu, int wished, const char **out_reason);
void hb_gpu_drop_family(struct hb_gpu *gpu);
/* Opens the device of this number once the driver is loaded. */
bool hb_gpu_start(struct hb_gpu *gpu, int wished);

extern const struct hb_gpu_kind hb_gpu_cuda;
extern const struct hb_gpu_kind hb_gpu_hip;

#endif
