/* Matrix products on a GPU: the plain library (cuBLAS, rocBLAS) and the one that plans each product
 * (cuBLASLt, hipBLASLt), whose functions take the same arguments in both worlds. */
#ifndef HB_HW_GPU_BLAS_H
#define HB_HW_GPU_BLAS_H

#include <stddef.h>

#include "hw/dl.h"
#include "hw/gpu_kernels.h"

struct hb_gpu;
struct hb_gpu_family;

struct hb_blas_calls {
    int (*create)(void **out_handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, void *stream);
    int (*set_workspace)(void *handle, void *at, size_t bytes); /* null: none */
    int (*version)(void *handle, int *out);                     /* null: none */
    int (*set_math)(void *handle, int mode);                    /* rocBLAS */
    int (*cublas_product)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                          const void *a, int a_type, int a_ld, const void *b, int b_type, int b_ld,
                          const void *beta, void *c, int c_type, int c_ld, int compute, int algo);
    int (*rocblas_product)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                           const void *a, int a_type, int a_ld, const void *b, int b_type, int b_ld,
                           const void *beta, const void *c, int c_type, int c_ld, void *d,
                           int d_type, int d_ld, int compute, int algo, int32_t solution,
                           uint32_t flags);
};

/* The plan that a heuristic chose: both libraries' results begin with it, and fit in here. */
struct hb_lt_choice {
    uint64_t all[32];
};

struct hb_lt_calls {
    int (*create)(void **out_handle);
    int (*destroy)(void *handle);
    int (*version)(void *handle, int *out); /* null: none */
    int (*desc_create)(void **out_desc, int compute, int scale_type);
    int (*desc_set)(void *desc, int attribute, const void *value, size_t bytes);
    int (*desc_destroy)(void *desc);
    int (*layout_create)(void **out_layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
    int (*layout_destroy)(void *layout);
    int (*wish_create)(void **out_wish);
    int (*wish_set)(void *wish, int attribute, const void *value, size_t bytes);
    int (*wish_destroy)(void *wish);
    int (*choose)(void *handle, void *desc, void *a, void *b, void *c, void *d, void *wish,
                  int asked, struct hb_lt_choice *out, int *out_count);
    int (*run)(void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
               const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
               void *d, void *d_layout, const void *algo, void *workspace, size_t bytes,
               void *stream);
};

/* A rate in a library's numbers. */
struct hb_gemm_form {
    bool there;  /* library and device have it */
    int type;    /* of the operands */
    int compute; /* how it is added up */
    int scale;   /* of alpha and beta; rocBLAS: as compute */
    int out;     /* of the result */
    enum hb_fill fill;
};

/* What differs between the vendors' libraries. */
struct hb_gemm_kind {
    const char *title, *lt_title;
    bool lt_first; /* frameworks use the planning one where it has the rate */
    int trans_a;   /* attribute numbers of a product's description */
    int fast;      /* -1: no such thing */
    int scale_a, scale_b;
    int op_n, op_t;
    int fp4_mode;          /* factors of blocks along k: how they are told, */
    int fp4_block;         /* of how many elements, */
    enum hb_fill fp4_ones; /* and a one as the factor */
    struct hb_gemm_form (*form)(const struct hb_gpu *gpu, enum hb_rate rate, bool lt);
};

struct hb_lt_plan {
    void *desc, *a, *b, *c, *wish;
    struct hb_lt_choice choice;
    struct hb_product product; /* it is for; addresses do not count */
    bool made;
};

struct hb_blas {
    struct hb_dl *lib, *lt_lib; /* either may be null */
    struct hb_blas_calls calls;
    struct hb_lt_calls lt;
    void *handle, *lt_handle;
    uintptr_t workspace; /* for both: they run one after the other */
    uintptr_t ones;      /* factors of blocks of four bit numbers; 0: not yet */
    struct hb_lt_plan plan;
};

/* Loads and binds the family's libraries. False: neither is there. */
bool hb_blas_load(struct hb_gpu *gpu, const struct hb_gpu_family *family, const char **out_reason);
/* Starts them on the open device, then takes their workspace, which is ours to count. */
bool hb_blas_start(struct hb_gpu *gpu, const char **out_reason);
/* Which of HB_CAN_*. */
unsigned hb_blas_can(const struct hb_gpu *gpu, enum hb_rate rate);
/* False: what failed is left in the probe. */
bool hb_blas_product(struct hb_gpu *gpu, const struct hb_product *product);
/* How operands of this rate are filled. */
enum hb_fill hb_blas_fill(const struct hb_gpu *gpu, enum hb_rate rate);
/* Ends what start began; unloads. */
void hb_blas_stop(struct hb_gpu *gpu);
void hb_blas_unload(struct hb_gpu *gpu);
/* ", libcublas.so.12 12.8.4, libcublasLt.so.12" */
const char *hb_blas_versions(const struct hb_gpu *gpu);

#endif
