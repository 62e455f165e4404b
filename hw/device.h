/* What a device can do: one flat profile, read from hw/db/<name>.yaml or from a file that
 * `calibrate` wrote (the format is described in hw/db/README.md). A plain record; every number
 * keeps its place in the file and its source, so that `devices` can say where it comes from. */
#ifndef HB_HW_DEVICE_H
#define HB_HW_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct hb_arena;
struct hb_json;
struct hb_str;

/* Element types of the matrix unit. */
#define HB_RATES(X)                                                                                \
    X(F64, "f64")                                                                                  \
    X(F32, "f32")                                                                                  \
    X(TF32, "tf32")                                                                                \
    X(BF16, "bf16")                                                                                \
    X(F16, "f16")                                                                                  \
    X(FP8, "fp8")                                                                                  \
    X(FP4, "fp4")                                                                                  \
    X(INT8, "int8")

enum hb_rate {
#define HB_ENUM(name, text) HB_RATE_##name,
    HB_RATES(HB_ENUM)
#undef HB_ENUM
        HB_RATE_COUNT
};

enum hb_vendor { HB_VENDOR_NVIDIA, HB_VENDOR_AMD, HB_VENDOR_GOOGLE, HB_VENDOR_HOST };
enum hb_device_kind { HB_KIND_GPU, HB_KIND_TPU, HB_KIND_CPU };
enum hb_link_kind { HB_LINK_NONE, HB_LINK_NVLINK, HB_LINK_XGMI, HB_LINK_ICI, HB_LINK_PCIE };
enum hb_topology { HB_TOPOLOGY_NONE, HB_TOPOLOGY_SWITCH, HB_TOPOLOGY_MESH, HB_TOPOLOGY_TORUS };

enum { HB_CURVE_POINTS = 32 };

/* Part of a peak that is reached, by size: straight lines over log2 x, flat beyond the ends. */
struct hb_curve {
    int count;                 /* 0: not given, reads as 1 */
    double x[HB_CURVE_POINTS]; /* rising, > 0 */
    double y[HB_CURVE_POINTS]; /* > 0 */
};

/* Where one number of a profile comes from. */
struct hb_fact {
    struct hb_loc loc;  /* of its key; line 0: not in the file, the default holds */
    const char *source; /* text of the source; null: not in the file */
    const char *note;   /* "" where there is none */
};

struct hb_device {
    const char *name;
    const char *title;
    enum hb_vendor vendor;
    enum hb_device_kind kind;

    int64_t hbm_bytes;      /* memory of the device */
    int64_t reserve_bytes;  /* of it no program can have */
    double allocator_slack; /* part of what a program holds that the allocator takes on top */
    double hbm_bytes_per_s;
    int64_t cache_bytes;   /* last cache level; 0: none */
    int64_t onchip_bytes;  /* scratch memory that programs place themselves */
    int64_t align_bytes;   /* spacing of arguments */
    int64_t slot_bytes;    /* spacing of temporaries */
    int64_t page_bytes;    /* what the driver hands out */
    int64_t tile_sublanes; /* padding of the second minor dimension; 1: none */
    int64_t tile_lanes;    /* padding of the minor dimension; 1: none */

    int64_t cores;
    double clock_hz;
    int64_t mxu_dim; /* side of the matrix unit where operands are padded to it; 0: no padding */
    double peak_flops[HB_RATE_COUNT]; /* dense, per second; 0: the device has no such unit */
    double vector_flops;              /* f32 outside the matrix unit, per second */
    int64_t op_latency_ns;            /* idle time between two dependent operations */
    double product_burst;             /* a product's first moments against what it keeps up; 0 */
    double softmax_part;              /* of hbm_bytes_per_s that these kernels reach; 0: not told */
    double norm_part;
    double adam_part;

    enum hb_link_kind link_kind;
    enum hb_topology link_topology;
    int64_t link_domain;           /* devices so joined; 1: none */
    int64_t link_count;            /* links of one device */
    double link_bytes_per_s;       /* of one link in one direction */
    int64_t link_latency_ns;       /* each step of a collective */
    int64_t collective_latency_ns; /* once per collective */
    double overlap_slowdown;       /* part by which computing slows while a collective runs */
    double reduce_gain;            /* all-reduce is so much faster with reduction in the switch */
    int64_t reduce_gain_min;       /* from so many devices on */
    int64_t torus_dims;            /* 0: no torus */
    int64_t torus_wrap;            /* axes of a multiple of this close to a ring; 0: none */
    int64_t chip_devices;    /* devices of a chip, which share its links; 1: a device is one */
    double chip_bytes_per_s; /* between them, one direction */

    int64_t host_devices;      /* devices of one host */
    double net_bytes_per_s;    /* between domains, per device and direction */
    int64_t net_latency_ns;    /* each step */
    double net_efficiency;     /* part of the rate that a large collective reaches */
    struct hb_curve net_curve; /* of that, by bytes of a device's share; no points: all */

    double host_up_bytes_per_s;   /* host to device */
    double host_down_bytes_per_s; /* device to host */
    double host_efficiency;       /* part of these that pinned copies reach */
    double host_duplex;           /* part of the sum of both that is reached at once */
    double host_shared;           /* part of a device's rate while all of the host copy; 1 */
    int64_t host_latency_ns;      /* each copy */
    int64_t host_memory_bytes;    /* host memory per device */

    int64_t context_bytes;    /* taken by the driver's context ... */
    int64_t library_bytes;    /* ... by libraries' code and workspaces ... */
    int64_t collective_bytes; /* ... by communicators; all three outside the allocator */

    struct hb_curve matmul_curve[HB_RATE_COUNT]; /* by cube root of m n k */
    struct hb_curve grouped_curve; /* of the bf16 peak: products side by side, by the size of one */
    struct hb_curve attention_forward_curve; /* of the bf16 peak, by sequence length */
    struct hb_curve attention_backward_curve;
    struct hb_curve
        sdpa_forward_curve; /* of the kernel that torch picks; no points: as attention */
    struct hb_curve sdpa_backward_curve;
    double attention_width64;   /* part of these at heads 64 wide, of which they say 128 */
    struct hb_curve hbm_curve;  /* of hbm_bytes_per_s, by bytes that an operation moves */
    struct hb_curve link_curve; /* of the link rate, by bytes of the whole collective */

    /* Only in files that calibrate wrote; null elsewhere. */
    const char *measured_date;
    const char *measured_driver;
    const char *measured_clocks;
    const char *measured_spread;
    const char *measured_power; /* not in older files */

    struct hb_fact *facts; /* by index in hb_device_fields() */
};

enum hb_field_type {
    HB_FIELD_BYTES,  /* int64_t */
    HB_FIELD_COUNT_, /* int64_t */
    HB_FIELD_NS,     /* int64_t */
    HB_FIELD_RATE,   /* double, per second */
    HB_FIELD_PART,   /* double */
    HB_FIELD_LINK,   /* enum hb_link_kind */
    HB_FIELD_TOPOLOGY,
    HB_FIELD_CURVE
};

/* One key of the format: the table drives the reader, the printer, the writer and the docs. */
struct hb_field {
    const char *key;
    enum hb_field_type type;
    size_t offset; /* in struct hb_device */
    double low;    /* smallest value allowed (of y, for a curve) */
    double high;   /* largest */
    bool required; /* else 0, or the default that hb_device_init sets */
    bool starts;   /* first of its group in a print */
    const char *meaning;
};

/* All keys in the order of the files; *out_count of them. */
const struct hb_field *hb_device_fields(int *out_count);
/* A profile with nothing in it but defaults; facts are allocated. */
void hb_device_init(struct hb_arena *arena, struct hb_device *dev);

/* Reads data_dir/hw/db/<name>.yaml, or the file itself where the name has a slash or ends in
 * .yaml. On trouble leaves errors (at `loc` for a name that does not exist, with the nearest
 * that does) and returns false. */
bool hb_device_load(struct hb_arena *arena, struct hb_diag *diag, const char *data_dir,
                    const char *name, struct hb_loc loc, struct hb_device *out_dev);
/* Reads one profile from text; path is for messages. */
bool hb_device_parse(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                     const char *text, size_t len, struct hb_device *out_dev);
/* Names of the database in data_dir, sorted; the last is null. *out_count may be null. */
const char *const *hb_device_list(struct hb_arena *arena, const char *data_dir, int *out_count);
/* The name in the database that is meant by name: itself, or by a short name (h100, v5p); null:
 * there is none, and *out_near is the nearest or null. Where data_dir has no database every name
 * is taken as it is. */
const char *hb_device_resolve(struct hb_arena *arena, const char *data_dir, const char *name,
                              const char **out_near);
/* Whether a name is a file's: it has a slash or ends in .yaml. */
bool hb_device_is_path(const char *name);
/* The kind of a profile by its word ("gpu"). */
bool hb_device_kind_parse(const char *word, enum hb_device_kind *out_kind);
/* Where the number of this key comes from; an unknown key is our fault. */
void hb_device_set_fact(struct hb_device *dev, const char *key, const char *source,
                        const char *note);
/* A profile as a file of the same format (facts give sources and notes). */
void hb_device_write(const struct hb_device *dev, struct hb_str *to);
/* The members of an open object: a JSON Schema of the format. */
void hb_device_json_schema(struct hb_json *j);

/* What a program may use where the input does not say: hbm_bytes - reserve_bytes, less the
 * allocator's slack. */
int64_t hb_device_usable_bytes(const struct hb_device *dev);
/* How the source of what `calibrate --fit` wrote begins. */
#define HB_DEVICE_FIT_SOURCE "hbmsim calibrate --fit"
/* Whether reserve_bytes was fitted to measured runs, so that it holds all that a runtime takes. */
bool hb_device_reserve_is_fitted(const struct hb_device *dev);
/* y at x. */
double hb_curve_at(const struct hb_curve *curve, double x);
/* Operations a second reached by a product of m x n x k; 0 where the device lacks the type.
 * A type without a curve reads the bf16 one. */
double hb_device_matmul_flops(const struct hb_device *dev, enum hb_rate rate, double m, double n,
                              double k);
/* The most of the peak that a product of any size reaches. */
double hb_device_most_matmul_part(const struct hb_device *dev, enum hb_rate rate);
/* Part of that rate that one of many such products side by side reaches (experts' products): one
 * where the device has no curve for them. */
double hb_device_grouped_part(const struct hb_device *dev, double m, double n, double k);
/* Bytes a second of device memory reached by an operation that moves so many. */
double hb_device_hbm_rate(const struct hb_device *dev, double bytes);

const char *hb_rate_name(enum hb_rate rate);
const char *hb_vendor_name(enum hb_vendor vendor);
const char *hb_kind_name(enum hb_device_kind kind);
const char *hb_link_kind_name(enum hb_link_kind kind);
const char *hb_topology_name(enum hb_topology topology);

#endif
