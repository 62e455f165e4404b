/* What calibration asks of a device: memory, copies, small kernels and matrix products on a few
 * lanes of work, and the time between two marks. One record of functions per back end: CUDA, HIP
 * and this machine's processor. All allocations are plain; whatever was taken is given back by
 * close. A function that fails leaves a sentence in probe->error. */
#ifndef HB_HW_PROBE_H
#define HB_HW_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/device.h"

struct hb_arena;
struct hb_env;
struct hb_libs;
struct hb_str;

/* Streams: work on one is in order, lanes run side by side where the device can. */
enum hb_lane { HB_LANE_COMPUTE, HB_LANE_UP, HB_LANE_DOWN, HB_LANE_COUNT };

enum hb_copy { HB_COPY_UP, HB_COPY_DOWN, HB_COPY_WITHIN };

/* Element-wise kernels over f32 arrays a (written), b and c of n elements. */
#define HB_KERNELS(X)                                                                              \
    X(EMPTY, "hb_empty")     /* nothing: the cost of a launch */                                   \
    X(FILL, "hb_fill")       /* a = normal random numbers of the type told by `rate` */            \
    X(READ, "hb_read")       /* b is read, a[0] may be written */                                  \
    X(WRITE, "hb_write")     /* a is written */                                                    \
    X(COPY, "hb_copy")       /* a = b */                                                           \
    X(TRIAD, "hb_triad")     /* a = b + 1.5 c */                                                   \
    X(GELU, "hb_gelu")       /* a = gelu(b): transcendental */                                     \
    X(REDUCE, "hb_reduce")   /* sums of 1024 neighbours of b */                                    \
    X(SOFTMAX, "hb_softmax") /* a = softmax of b's rows of 4096 */                                 \
    X(NORM, "hb_norm")   /* a = b's rows of 4096 by their root mean square, times c's first row */ \
    X(ADAM, "hb_adam")   /* weights and moments (3 n at a) after gradients b */                    \
    X(CHAIN, "hb_chain") /* 512 dependent multiply-adds per element: arithmetic alone */

enum hb_kernel {
#define HB_ENUM(name, text) HB_KERNEL_##name,
    HB_KERNELS(HB_ENUM)
#undef HB_ENUM
        HB_KERNEL_COUNT
};
enum { HB_CHAIN_FLOPS = 2 * 512 }; /* of one element */

/* c = a b, row by row; addresses are of device memory. */
struct hb_product {
    enum hb_rate rate;
    int m, n, k;
    bool beside; /* by the other of two libraries, not the one that frameworks use */
    bool fast;   /* eight bits: sums kept in fewer bits, as frameworks may ask for */
    uintptr_t a, b, c;
};

/* What a device can do at a rate. */
enum { HB_CAN_MULTIPLY = 1, HB_CAN_BESIDE = 2, HB_CAN_FAST = 4 };

/* What the driver says of the device. */
struct hb_probe_info {
    const char *name;
    const char *driver; /* with versions of the libraries */
    const char *arch;   /* "sm_90", "gfx942:sramecc+:xnack-"; "" where there is none */
    enum hb_vendor vendor;
    enum hb_device_kind kind;
    int device_count;
    int64_t total_bytes;
    int64_t cache_bytes;
    int64_t cores;
    double clock_hz;            /* 0: not told */
    double hbm_bytes_per_s;     /* from memory clock and bus width; 0: not told */
    int64_t hidden_cache_bytes; /* behind the last cache that the driver tells of */
    bool ecc;
    bool slice;            /* a part of a device (MIG) */
    const char *partition; /* "CPX/NPS4": how an AMD device is cut; "" where it is whole */
    const char *untold;    /* why there are no power and clocks; "" */
    bool shared;           /* its memory is the host's too: taking it all takes it from others */
    int64_t context_bytes; /* taken when the device was opened; GPU only, as all below */
    int64_t library_bytes; /* by the libraries for products before the first of them */
    int64_t own_bytes;     /* by our workspace for them */
    const int *host_nodes; /* numbers of the nodes of the host's memory */
    int host_node_count;   /* 0: nobody tells, or pinned memory is not placed */
    int host_node_beside;  /* the one beside the device; -1: nobody tells */
};

/* How a device stands while it works; 0 or false: not told. */
struct hb_health {
    double watts, limit_watts;
    double clock_hz, memory_hz;
    bool power_held, heat_held; /* clocks are lower than they might be, for that */
};

/* What all devices of the host do at once: bytes of each as hb_link_collective_ns has them (the
 * whole tensor; of PERMUTE and of copies what one device sends). PEER is one copy from one to the
 * next. */
enum hb_together_kind {
    HB_TOGETHER_ALL_GATHER,
    HB_TOGETHER_REDUCE_SCATTER,
    HB_TOGETHER_ALL_TO_ALL,
    HB_TOGETHER_PERMUTE,
    HB_TOGETHER_PEER, /* copies from here on */
    HB_TOGETHER_UP,
    HB_TOGETHER_DOWN
};

struct hb_together {
    enum hb_together_kind what;
    int64_t bytes;
};

/* n: elements of four bytes, of which a, b and c each have at least so many. */
struct hb_kernel_call {
    enum hb_kernel kernel;
    uintptr_t a, b, c;
    int64_t n;
    enum hb_rate rate; /* of HB_KERNEL_FILL */
};

struct hb_probe;

struct hb_probe_ops {
    bool (*memory)(struct hb_probe *p, int64_t *out_free, int64_t *out_total);
    /* False without an error sentence where the device has no more. */
    bool (*alloc)(struct hb_probe *p, int64_t bytes, uintptr_t *out_at);
    void (*release)(struct hb_probe *p, uintptr_t at);
    bool (*host_alloc)(struct hb_probe *p, int64_t bytes, bool pinned, void **out_at);
    void (*host_release)(struct hb_probe *p, void *at, bool pinned);
    /* Pinned memory is taken from this node from here on; -1: as it comes. False, without an error
     * sentence: the machine does not allow it. */
    bool (*host_prefer)(struct hb_probe *p, int node);
    int (*host_node)(struct hb_probe *p, void *at); /* on which that memory is; -1: not told */
    /* host is a host address for UP and DOWN, a device address for WITHIN (to `at` from `host`). */
    bool (*copy)(struct hb_probe *p, enum hb_lane lane, enum hb_copy way, uintptr_t at, void *host,
                 int64_t bytes);
    bool (*kernel)(struct hb_probe *p, const struct hb_kernel_call *call);
    bool (*product)(struct hb_probe *p, const struct hb_product *product);
    unsigned (*can)(struct hb_probe *p, enum hb_rate rate); /* HB_CAN_* */
    /* Two marks per lane: 0 begins, 1 ends. */
    bool (*mark)(struct hb_probe *p, enum hb_lane lane, int which);
    /* Waits for mark 1 of the lane; time from mark 0 of lane `from` to it. */
    bool (*elapsed)(struct hb_probe *p, enum hb_lane from, enum hb_lane lane, double *out_ns);
    /* False, without an error sentence: nothing tells. */
    bool (*health)(struct hb_probe *p, struct hb_health *out);
    /* All devices with two buffers of so many bytes each; null: there is only one. A library that
     * is missing for collectives is left as error, and copies still work. Close is due in any case.
     */
    bool (*together_open)(struct hb_probe *p, int64_t bytes, int *out_devices);
    bool (*together)(struct hb_probe *p, const struct hb_together *what, int repeats,
                     double *out_ns);
    void (*together_close)(struct hb_probe *p);
    /* All lanes stand still. */
    bool (*wait)(struct hb_probe *p);
    void (*close)(struct hb_probe *p);
};

struct hb_probe {
    const struct hb_probe_ops *ops;
    struct hb_env *env;
    struct hb_probe_info info;
    const char *error; /* of the last failure; null: none */
    void *state;       /* the back end's own */
};

struct hb_probe_wish {
    const char *backend;        /* cuda, hip, cpu; null: the first of them that is there */
    int device;                 /* index among those that the driver shows */
    const struct hb_libs *libs; /* where libraries are looked for before the system's places */
};

/* Opens a device. Null: *out_reason is a sentence for the user (no driver, no such device, ...). */
struct hb_probe *hb_probe_open(struct hb_env *env, const struct hb_probe_wish *wish,
                               const char **out_reason);
/* Which libraries would be looked at and which of them are in the folders, a line each; opens and
 * loads nothing. */
void hb_probe_list(struct hb_env *env, const struct hb_probe_wish *wish, struct hb_str *to);
/* Gives back everything. */
void hb_probe_close(struct hb_probe *p);

/* Bytes of one element of this rate's operands. */
int hb_rate_bytes(enum hb_rate rate);

#endif
