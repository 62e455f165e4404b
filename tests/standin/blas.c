/* Matrix products: cuBLAS or rocBLAS (PART_BLAS), cuBLASLt or hipBLASLt (PART_LT). A planned
 * product must be planned once: the same one twice in a row ends the program. */
#include "tests/standin/standin.h"

struct handle {
    void *stream;
    int xf32;
};

/* Half the peak at a side of 512. */
static double product_ns(double m, double n, double k, double peak)
{
    double side = cbrt(m * n * k);
    return 2000 + 2 * m * n * k / (peak * side / (side + 512)) * 1e9;
}

#ifdef PART_BLAS

int NAME(cublasCreate_v2, rocblas_create_handle)(void **out)
{
    MAY_FAIL();
    if (standin_trouble("blas"))
        return 1;
    standin_take(64LL << 20);
    *out = calloc(1, sizeof(struct handle));
    return 0;
}

int NAME(cublasDestroy_v2, rocblas_destroy_handle)(void *handle)
{
    standin_take(-(64LL << 20));
    free(handle);
    return 0;
}

int NAME(cublasSetStream_v2, rocblas_set_stream)(void *handle, void *stream)
{
    MAY_FAIL();
    ((struct handle *)handle)->stream = stream;
    return 0;
}

int NAME(cublasSetWorkspace_v2, rocblas_set_workspace)(void *handle, void *at, size_t bytes)
{
    (void)handle;
    MAY_FAIL();
    standin_check((uintptr_t)at, (double)bytes, "a workspace beyond an allocation");
    return 0;
}

static int multiply(const struct handle *h, const int *size, const void *const *at, double bytes,
                    double peak)
{
    double m = size[0], n = size[1], k = size[2];
    standin_check((uintptr_t)at[0], m * k * bytes, "a product beyond an allocation");
    standin_check((uintptr_t)at[1], k * n * bytes, "a product beyond an allocation");
    standin_check((uintptr_t)at[2], m * n * bytes, "a product beyond an allocation");
    standin_product(h->stream, product_ns(m, n, k, peak));
    return 0;
}

#ifdef STANDIN_CUDA
int cublasGetVersion_v2(void *handle, int *version)
{
    (void)handle;
    MAY_FAIL();
    *version = MAJOR * 10000 + 805;
    return 0;
}

int cublasGemmEx(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                 const void *a, int a_type, int a_ld, const void *b, int b_type, int b_ld,
                 const void *beta, void *c, int c_type, int c_ld, int compute, int algo)
{
    int size[] = {m, n, k};
    const void *at[] = {a, b, c};
    double bytes = a_type == 0 ? 4 : a_type == 1 ? 8 : 2;
    double peak = compute == 77 ? 150e12 : a_type == 0 ? 20e12 : 300e12;
    MAY_FAIL();
    if (op_a || op_b || a_ld != m || b_ld != k || c_ld != m || a_type != b_type ||
        a_type != c_type || algo != -1 || *(const float *)alpha != 1 || *(const float *)beta != 0 ||
        (compute != 68 && compute != 77))
        return 7;
    return multiply(handle, size, at, bytes, peak);
}
#else
int rocblas_set_math_mode(void *handle, int mode)
{
    MAY_FAIL();
    ((struct handle *)handle)->xf32 = mode == 1;
    return 0;
}

int rocblas_gemm_ex(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                    const void *a, int a_type, int a_ld, const void *b, int b_type, int b_ld,
                    const void *beta, const void *c, int c_type, int c_ld, void *d, int d_type,
                    int d_ld, int compute, int algo, int32_t solution, uint32_t flags)
{
    const struct handle *h = handle;
    int size[] = {m, n, k};
    const void *at[] = {a, b, c};
    double bytes = a_type == 151 ? 4 : 2;
    double peak = a_type != 151 ? 200e12 : h->xf32 ? 150e12 : 20e12;
    MAY_FAIL();
    if (op_a != 111 || op_b != 111 || a_ld != m || b_ld != k || c_ld != m || d_ld != m ||
        a_type != b_type || a_type != c_type || a_type != d_type || c != d || algo || solution ||
        flags || compute != 151 || *(const float *)alpha != 1 || *(const float *)beta != 0)
        return 3;
    return multiply(handle, size, at, bytes, peak);
}
#endif
#endif /* PART_BLAS */

#ifdef PART_LT

enum { TRANS_A = NAME(3, 0), SCALE_A = NAME(17, 5), SCALE_B = NAME(18, 6), FAST = 25 };

struct desc {
    int compute, scale, turned, fast, modes[2];
    uintptr_t factors[2];
};

struct layout {
    int type;
    uint64_t rows, cols;
    int64_t ld;
};

int NAME(cublasLtCreate, hipblasLtCreate)(void **handle)
{
    MAY_FAIL();
    *handle = calloc(1, 1);
    return 0;
}

int NAME(cublasLtDestroy, hipblasLtDestroy)(void *handle)
{
    free(handle);
    return 0;
}

int NAME(cublasLtMatmulDescCreate, hipblasLtMatmulDescCreate)(void **out, int compute, int scale)
{
    struct desc *d;
    MAY_FAIL();
    d = calloc(1, sizeof *d);
    d->compute = compute;
    d->scale = scale;
    *out = d;
    return 0;
}

int NAME(cublasLtMatmulDescSetAttribute,
         hipblasLtMatmulDescSetAttribute)(void *desc, int which, const void *value, size_t bytes)
{
    struct desc *d = desc;
    MAY_FAIL();
    if (which == TRANS_A && bytes == 4)
        return memcpy(&d->turned, value, 4), d->turned != NAME(1, 112);
    if (NAME(which == FAST && bytes == 1, 0))
        return d->fast = *(const int8_t *)value, 0;
    if ((which == 31 || which == 32) && bytes == 4)
        return memcpy(&d->modes[which - 31], value, 4), 0;
    if ((which == SCALE_A || which == SCALE_B) && bytes == sizeof(uintptr_t))
        return memcpy(&d->factors[which == SCALE_B], value, bytes), 0;
    return 7;
}

int NAME(cublasLtMatmulDescDestroy, hipblasLtMatmulDescDestroy)(void *desc)
{
    free(desc);
    return 0;
}

int NAME(cublasLtMatrixLayoutCreate, hipblasLtMatrixLayoutCreate)(void **out, int type,
                                                                  uint64_t rows, uint64_t cols,
                                                                  int64_t ld)
{
    struct layout *l;
    MAY_FAIL();
    l = calloc(1, sizeof *l);
    *l = (struct layout){type, rows, cols, ld};
    *out = l;
    return ld != (int64_t)rows;
}

int NAME(cublasLtMatrixLayoutDestroy, hipblasLtMatrixLayoutDestroy)(void *layout)
{
    free(layout);
    return 0;
}

int NAME(cublasLtMatmulPreferenceCreate, hipblasLtMatmulPreferenceCreate)(void **wish)
{
    MAY_FAIL();
    *wish = calloc(1, 1);
    return 0;
}

int NAME(cublasLtMatmulPreferenceSetAttribute,
         hipblasLtMatmulPreferenceSetAttribute)(void *wish, int which, const void *value,
                                                size_t bytes)
{
    (void)wish;
    MAY_FAIL();
    return which != 1 || bytes != 8 || *(const uint64_t *)value != 32 << 20;
}

int NAME(cublasLtMatmulPreferenceDestroy, hipblasLtMatmulPreferenceDestroy)(void *wish)
{
    free(wish);
    return 0;
}

/* Types as the real libraries take them: operand, sums, factors, result. */
static int is_known(const struct desc *d, int type, int out)
{
    int by_f32 = NAME(68, 2), by_i32 = NAME(72, 9), by_tf32 = NAME(77, 6);
    int eight = NAME(28, strncmp(standin_arch(), "gfx942", 6) == 0 ? 1000 : 28);
    int four = d->modes[0] == NAME(1, 2) && d->modes[1] == NAME(1, 2);
    if (type == 3)
        return d->compute == by_i32 && d->scale == 10 && out == 10 && d->turned;
    if (d->scale != 0)
        return 0;
    if (type == 33)
        return four && d->compute == by_f32 && out == 14 && d->turned;
    if (type == eight)
        return d->compute == by_f32 && out == 14 && d->turned;
    return (type == 14 || type == 2 || type == 0) && out == type && !d->turned &&
           (d->compute == by_f32 || (type == 0 && d->compute == by_tf32));
}

struct choice { /* cuBLASLt's; hipBLASLt's is shorter */
    uint64_t algo[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

int NAME(cublasLtMatmulAlgoGetHeuristic,
         hipblasLtMatmulAlgoGetHeuristic)(void *handle, void *desc, void *a, void *b, void *c,
                                          void *d, void *wish, int asked, struct choice *out,
                                          int *count)
{
    static struct {
        int type, fast, out;
        uint64_t m, n, k;
    } last, now;
    const struct desc *x = desc;
    const struct layout *la = a, *lb = b, *lc = c;
    (void)handle;
    (void)wish;
    MAY_FAIL();
    *count = 0;
    if (c != d || lc->cols != lb->cols || la->type != lb->type || asked != 1 ||
        (x->turned ? la->cols : la->rows) != lc->rows ||
        (x->turned ? la->rows : la->cols) != lb->rows)
        return 7;
    if (!is_known(x, la->type, lc->type))
        return 15;
    memset(&now, 0, sizeof now);
    now.type = la->type + (x->compute << 16);
    now.fast = x->fast;
    now.m = lc->rows;
    now.n = lc->cols;
    now.k = lb->rows;
    if (memcmp(&now, &last, sizeof now) == 0)
        standin_die("a product is planned twice");
    last = now;
    out->algo[0] = 77;
    *count = 1;
    return 0;
}

static double bytes_of(int type)
{
    return type == 33 ? 0.5 : type == 14 || type == 2 ? 2 : type == 0 || type == 10 ? 4 : 1;
}

int NAME(cublasLtMatmul,
         hipblasLtMatmul)(void *handle, void *desc, const void *alpha, const void *a,
                          void *a_layout, const void *b, void *b_layout, const void *beta,
                          const void *c, void *c_layout, void *d, void *d_layout,
                          const uint64_t *algo, void *workspace, size_t bytes, void *stream)
{
    const struct desc *x = desc;
    const struct layout *la = a_layout, *lb = b_layout, *lc = c_layout;
    double m = (double)lc->rows, n = (double)lc->cols, k = (double)lb->rows;
    double of = bytes_of(la->type);
    double one = la->type == 3 ? *(const int32_t *)alpha : *(const float *)alpha;
    double peak =
        of >= 4 ? (x->compute == NAME(77, 6) ? 150e12 : 20e12) : 600e12 / of * (of < 2 ? 1 : 1);
    (void)handle;
    MAY_FAIL();
    if (algo[0] != 77 || c != d || c_layout != d_layout || one != 1 || *(const float *)beta != 0)
        return 7;
    standin_check((uintptr_t)workspace, (double)bytes, "a workspace beyond an allocation");
    standin_check((uintptr_t)a, m * k * of, "a product beyond an allocation");
    standin_check((uintptr_t)b, n * k * of, "a product beyond an allocation");
    standin_check((uintptr_t)d, m * n * bytes_of(lc->type), "a product beyond an allocation");
    for (int i = 0; i < 2 && la->type == 33; i++)
        standin_check(x->factors[i], (i ? n : m) * k / NAME(16, 32),
                      "factors beyond an allocation");
    if (x->fast)
        peak *= 1.2;
    standin_product(stream, product_ns(m, n, k, peak));
    return 0;
}
#endif /* PART_LT */
