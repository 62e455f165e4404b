/* Calibration on a GPU, for CUDA and HIP alike: their driver entry points take the same arguments,
 * so one table of functions, filled from either library, serves one body of code. What differs
 * (names, attribute numbers, contexts, the product library) stands in struct hb_gpu_kind. */
#ifndef HB_HW_PROBE_GPU_H
#define HB_HW_PROBE_GPU_H

#include <stddef.h>

#include "hw/dl.h"
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
    /* One of each pair: CUDA's and HIP's. */
    int (*context_retain)(void **out_context, int device);
    int (*context_set)(void *context);
    int (*context_release)(int device);
    int (*device_set)(int device);
    int (*error_text_at)(int code, const char **out_text);
    const char *(*error_text)(int code);
};

/* The run-time compiler's functions. */
struct hb_rtc_calls {
    int (*version)(int *out_major, int *out_minor);
    int (*create)(void **out_program, const char *text, const char *name, int headers,
                  const char *const *header_texts, const char *const *header_names);
    int (*compile)(void *program, int options, const char *const *texts);
    int (*code_size)(void *program, size_t *out_bytes);
    int (*code)(void *program, char *to);
    int (*log_size)(void *program, size_t *out_bytes);
    int (*log)(void *program, char *to);
    int (*destroy)(void **program);
};

/* What each product library has; the struct that a kind binds its own to begins with it. */
struct hb_blas {
    struct hb_dl *lib;
    void *handle;
    int (*create)(void **out_handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, void *stream);
};

struct hb_gpu;

struct hb_gpu_kind {
    const char *backend;
    enum hb_vendor vendor;
    const char *const *driver_names;
    const char *const *rtc_names;
    const struct hb_dl_bind *driver_table; /* into struct hb_gpu_calls */
    const struct hb_dl_bind *rtc_table;    /* into struct hb_rtc_calls */
    const char *rtc_option;                /* with two %d for the capability; null: none */
    int oldest_driver;                     /* as driver_version tells it */
    int attribute_cores, attribute_clock, attribute_bus, attribute_memory_clock;
    int attribute_cache, attribute_ecc, attribute_major, attribute_minor;
    bool (*enter)(struct hb_gpu *gpu);
    void (*leave)(struct hb_gpu *gpu);
    const char *(*error_text)(struct hb_gpu *gpu, int code);
    /* The product library; open is called at the first product. */
    bool (*blas_open)(struct hb_gpu *gpu);
    void (*blas_close)(struct hb_gpu *gpu);
    bool (*product)(struct hb_gpu *gpu, const struct hb_product *product);
    bool (*can)(struct hb_gpu *gpu, enum hb_rate rate);
};

struct hb_gpu {
    struct hb_probe probe;
    const struct hb_gpu_kind *kind;
    struct hb_gpu_calls calls;
    struct hb_rtc_calls rtc;
    struct hb_dl *driver_lib, *rtc_lib;
    const char *libs; /* folder looked in first; null */
    int device;
    int major, minor; /* compute capability */
    void *context;    /* CUDA */
    bool entered;
    void *stream[HB_LANE_COUNT];
    void *event[HB_LANE_COUNT][2];
    void *module;
    void *function[HB_KERNEL_COUNT];
    void *blas;       /* of the kind; null before the first product */
    uintptr_t *taken; /* live device memory */
    uint32_t taken_count, taken_cap;
    void **pinned; /* live pinned memory */
    uint32_t pinned_count, pinned_cap;
};

/* Opens this kind of GPU; null with a sentence. */
struct hb_probe *hb_gpu_open(struct hb_env *env, const struct hb_gpu_kind *kind,
                             const struct hb_probe_wish *wish, const char **out_reason);
/* Leaves "what: text (code)" in the probe; returns false. */
bool hb_gpu_fail(struct hb_gpu *gpu, const char *what, int code);

/* Binds table, whose places count from blas, to the library of these names and starts it. */
bool hb_blas_open(struct hb_gpu *gpu, const char *title, const char *const *names,
                  const struct hb_dl_bind *table, struct hb_blas *blas);
void hb_blas_close(struct hb_blas *blas);
/* 0 or 1 as a factor of a product at this rate. */
const void *hb_blas_factor(enum hb_rate rate, int value);
/* Of a product's status: true for 0, or what failed left in the probe. */
bool hb_blas_done(struct hb_gpu *gpu, const char *what, int status);

/* The kernels as text, as the run-time compiler gets them. */
const char *hb_gpu_kernels(void);

extern const struct hb_gpu_kind hb_gpu_cuda;
extern const struct hb_gpu_kind hb_gpu_hip;

#endif
