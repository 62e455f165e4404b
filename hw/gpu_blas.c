/* Matrix products: see gpu_blas.h. Row-major c = a b is column-major c^T = b^T a^T. */
#include "hw/gpu_blas.h"

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "base/str.h"
#include "hw/probe_gpu.h"

/* Numbers that both vendors share: preference attribute, modes of factors, algorithms. */
enum {
    LT_MAX_WORKSPACE = 1,
    LT_MODE_A = 31,
    LT_MODE_B = 32,
    CUBLAS_DEFAULT = -1,
    ROCBLAS_STANDARD = 0,
    ROCBLAS_MATH_DEFAULT = 0,
    ROCBLAS_MATH_XF32 = 1
};
/* PyTorch's workspace on Hopper; a framework's own memory, not the library's. */
static const int64_t workspace_bytes = 32 << 20;
/* Factors of the largest operand: 28672 x 8192 elements in blocks of 16. */
static const int64_t ones_bytes = 32 << 20;

/* ---- loading ---- */

static bool load_plain(struct hb_gpu *gpu, const struct hb_gpu_family *family, const char **reason)
{
    struct hb_arena *arena = gpu->probe.env->arena;
    struct hb_blas *blas = &gpu->blas;
    blas->lib = hb_dl_open(arena, gpu->libs->folders, family->blas, reason);
    if (blas->lib && hb_dl_bind(blas->lib, arena, gpu->kind->blas_table, &blas->calls, reason))
        return true;
    hb_dl_close(blas->lib);
    blas->lib = NULL;
    return false;
}

static bool load_lt(struct hb_gpu *gpu, const struct hb_gpu_family *family, const char **reason)
{
    struct hb_arena *arena = gpu->probe.env->arena;
    struct hb_blas *blas = &gpu->blas;
    blas->lt_lib = hb_dl_open(arena, gpu->libs->folders, family->lt, reason);
    if (blas->lt_lib && hb_dl_bind(blas->lt_lib, arena, gpu->kind->lt_table, &blas->lt, reason))
        return true;
    hb_dl_close(blas->lt_lib);
    blas->lt_lib = NULL;
    return false;
}

/* The planning one first: the other needs it, and finds it by its name once it is loaded. */
bool hb_blas_load(struct hb_gpu *gpu, const struct hb_gpu_family *family, const char **out_reason)
{
    const char *why_lt = "";
    const char *why = "";
    bool lt = load_lt(gpu, family, &why_lt);
    bool plain = load_plain(gpu, family, &why);
    if (!lt && !plain)
        *out_reason = hb_arena_printf(gpu->probe.env->arena, "%s; %s", why, why_lt);
    return lt || plain;
}

static bool begin_plain(struct hb_gpu *gpu, const char **out_reason)
{
    struct hb_blas *blas = &gpu->blas;
    int code = blas->calls.create(&blas->handle);
    if (code == 0)
        code = blas->calls.set_stream(blas->handle, gpu->stream[HB_LANE_COMPUTE]);
    if (code == 0)
        return true;
    *out_reason = hb_arena_printf(gpu->probe.env->arena, "%s cannot start (status %d)",
                                  gpu->kind->gemm.title, code);
    return false;
}

static bool begin_lt(struct hb_gpu *gpu, const char **out_reason)
{
    int code = gpu->blas.lt.create(&gpu->blas.lt_handle);
    if (code == 0)
        return true;
    gpu->blas.lt_handle = NULL;
    *out_reason = hb_arena_printf(gpu->probe.env->arena, "%s cannot start (status %d)",
                                  gpu->kind->gemm.lt_title, code);
    return false;
}

bool hb_blas_start(struct hb_gpu *gpu, const char **out_reason)
{
    struct hb_blas *blas = &gpu->blas;
    if ((blas->lib && !begin_plain(gpu, out_reason)) ||
        (blas->lt_lib && !begin_lt(gpu, out_reason)))
        return false;
    size_t before = 0;
    size_t after = 0;
    size_t total;
    gpu->calls.mem_info(&before, &total);
    int code = gpu->calls.mem_alloc(&blas->workspace, (size_t)workspace_bytes);
    gpu->calls.mem_info(&after, &total);
    gpu->probe.info.own_bytes = before > after ? (int64_t)(before - after) : 0;
    if (code == 0 && blas->lib && blas->calls.set_workspace) /* set_stream would undo it */
        code = blas->calls.set_workspace(blas->handle, (void *)blas->workspace,
                                         (size_t)workspace_bytes);
    if (code != 0)
        *out_reason =
            hb_arena_printf(gpu->probe.env->arena, "no workspace for matrix products (%d)", code);
    return code == 0;
}

/* ---- plans ---- */

static void drop_plan(struct hb_blas *blas)
{
    struct hb_lt_plan *plan = &blas->plan;
    void *layouts[] = {plan->a, plan->b, plan->c};
    if (plan->wish)
        blas->lt.wish_destroy(plan->wish);
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            blas->lt.layout_destroy(layouts[i]);
    if (plan->desc)
        blas->lt.desc_destroy(plan->desc);
    *plan = (struct hb_lt_plan){.made = false};
}

/* Numbers of at most eight bits are multiplied with both operands' rows along k. */
static bool is_narrow(enum hb_rate rate)
{
    return rate == HB_RATE_FP8 || rate == HB_RATE_FP4 || rate == HB_RATE_INT8;
}

/* Ones, since factors must be there: a row of k / block of them for each row, in tiles of 128 x 4.
 */
static int set_factors(struct hb_gpu *gpu, const struct hb_product *p, void *desc)
{
    const struct hb_gemm_kind *gemm = &gpu->kind->gemm;
    struct hb_blas *blas = &gpu->blas;
    int mode = gemm->fp4_mode;
    int64_t rows = hb_round_up(p->m > p->n ? p->m : p->n, 128);
    if (rows * hb_round_up(p->k / gemm->fp4_block + 1, 4) > ones_bytes)
        return -1;
    if (!blas->ones) {
        int code = gpu->calls.mem_alloc(&blas->ones, (size_t)ones_bytes);
        if (code != 0 || !hb_gpu_launch_fill(gpu, blas->ones, ones_bytes / 4, gemm->fp4_ones))
            return code ? code : -1;
        gpu->probe.info.own_bytes += ones_bytes;
    }
    int code = blas->lt.desc_set(desc, LT_MODE_A, &mode, sizeof mode);
    code = code ? code : blas->lt.desc_set(desc, LT_MODE_B, &mode, sizeof mode);
    code = code ? code : blas->lt.desc_set(desc, gemm->scale_a, &blas->ones, sizeof blas->ones);
    return code ? code : blas->lt.desc_set(desc, gemm->scale_b, &blas->ones, sizeof blas->ones);
}

static int describe(struct hb_gpu *gpu, const struct hb_product *p, const struct hb_gemm_form *form)
{
    const struct hb_gemm_kind *gemm = &gpu->kind->gemm;
    const struct hb_lt_calls *lt = &gpu->blas.lt;
    struct hb_lt_plan *plan = &gpu->blas.plan;
    int op = gemm->op_t;
    int8_t fast = 1;
    int code = lt->desc_create(&plan->desc, form->compute, form->scale);
    if (code == 0 && is_narrow(p->rate))
        code = lt->desc_set(plan->desc, gemm->trans_a, &op, sizeof op);
    if (code == 0 && p->fast)
        code = lt->desc_set(plan->desc, gemm->fast, &fast, sizeof fast);
    if (code == 0 && p->rate == HB_RATE_FP4)
        code = set_factors(gpu, p, plan->desc);
    return code;
}

static int lay_out(struct hb_gpu *gpu, const struct hb_product *p, const struct hb_gemm_form *form)
{
    const struct hb_lt_calls *lt = &gpu->blas.lt;
    struct hb_lt_plan *plan = &gpu->blas.plan;
    uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k;
    bool turned = is_narrow(p->rate);
    int code = lt->layout_create(&plan->a, form->type, turned ? k : n, turned ? n : k,
                                 turned ? p->k : p->n);
    code = code ? code : lt->layout_create(&plan->b, form->type, k, m, p->k);
    return code ? code : lt->layout_create(&plan->c, form->out, n, m, p->n);
}

/* -1: the library knows no way. */
static int choose(struct hb_gpu *gpu)
{
    const struct hb_lt_calls *lt = &gpu->blas.lt;
    struct hb_lt_plan *plan = &gpu->blas.plan;
    uint64_t room = (uint64_t)workspace_bytes;
    int found = 0;
    int code = lt->wish_create(&plan->wish);
    code = code ? code : lt->wish_set(plan->wish, LT_MAX_WORKSPACE, &room, sizeof room);
    code = code ? code
                : lt->choose(gpu->blas.lt_handle, plan->desc, plan->a, plan->b, plan->c, plan->c,
                             plan->wish, 1, &plan->choice, &found);
    return code ? code : found ? 0 : -1;
}

static bool is_planned(const struct hb_lt_plan *plan, const struct hb_product *p)
{
    const struct hb_product *q = &plan->product;
    return plan->made && q->rate == p->rate && q->m == p->m && q->n == p->n && q->k == p->k &&
           q->fast == p->fast;
}

/* Once per shape: repetitions find it there. */
static int make_plan(struct hb_gpu *gpu, const struct hb_product *p,
                     const struct hb_gemm_form *form)
{
    struct hb_lt_plan *plan = &gpu->blas.plan;
    if (is_planned(plan, p))
        return 0;
    drop_plan(&gpu->blas);
    int code = describe(gpu, p, form);
    code = code ? code : lay_out(gpu, p, form);
    code = code ? code : choose(gpu);
    if (code != 0) {
        drop_plan(&gpu->blas);
        return code;
    }
    plan->product = *p;
    plan->made = true;
    return 0;
}

/* ---- products ---- */

static const void *factor(enum hb_rate rate, int value)
{
    static const float narrow[] = {0, 1};
    static const double wide[] = {0, 1};
    static const int32_t whole[] = {0, 1};
    return rate == HB_RATE_F64    ? (const void *)&wide[value]
           : rate == HB_RATE_INT8 ? (const void *)&whole[value]
                                  : (const void *)&narrow[value];
}

static int run_lt(struct hb_gpu *gpu, const struct hb_product *p, const struct hb_gemm_form *form)
{
    struct hb_blas *blas = &gpu->blas;
    int code = make_plan(gpu, p, form);
    if (code != 0)
        return code;
    const struct hb_lt_plan *plan = &blas->plan;
    return blas->lt.run(blas->lt_handle, plan->desc, factor(p->rate, 1), (const void *)p->b,
                        plan->a, (const void *)p->a, plan->b, factor(p->rate, 0),
                        (const void *)p->c, plan->c, (void *)p->c, plan->c, plan->choice.all,
                        (void *)blas->workspace, (size_t)workspace_bytes,
                        gpu->stream[HB_LANE_COMPUTE]);
}

static int run_plain(struct hb_gpu *gpu, const struct hb_product *p,
                     const struct hb_gemm_form *form)
{
    const struct hb_blas_calls *calls = &gpu->blas.calls;
    void *handle = gpu->blas.handle;
    const void *one = factor(p->rate, 1);
    const void *zero = factor(p->rate, 0);
    int op = gpu->kind->gemm.op_n;
    if (calls->cublas_product)
        return calls->cublas_product(handle, op, op, p->n, p->m, p->k, one, (const void *)p->b,
                                     form->type, p->n, (const void *)p->a, form->type, p->k, zero,
                                     (void *)p->c, form->out, p->n, form->compute, CUBLAS_DEFAULT);
    if (calls->set_math)
        calls->set_math(handle, p->rate == HB_RATE_TF32 ? ROCBLAS_MATH_XF32 : ROCBLAS_MATH_DEFAULT);
    return calls->rocblas_product(handle, op, op, p->n, p->m, p->k, one, (const void *)p->b,
                                  form->type, p->n, (const void *)p->a, form->type, p->k, zero,
                                  (const void *)p->c, form->out, p->n, (void *)p->c, form->out,
                                  p->n, form->compute, ROCBLAS_STANDARD, 0, 0);
}

/* Whether a library can be asked for it at all. */
static bool is_there(const struct hb_gpu *gpu, enum hb_rate rate, bool lt)
{
    if (lt ? !gpu->blas.lt_handle : !gpu->blas.handle)
        return false;
    if (!lt && rate == HB_RATE_TF32 && gpu->blas.calls.rocblas_product && !gpu->blas.calls.set_math)
        return false;
    return gpu->kind->gemm.form(gpu, rate, lt).there;
}

static bool usual_is_lt(const struct hb_gpu *gpu, enum hb_rate rate)
{
    bool lt = is_there(gpu, rate, true);
    return lt && (gpu->kind->gemm.lt_first || !is_there(gpu, rate, false));
}

unsigned hb_blas_can(const struct hb_gpu *gpu, enum hb_rate rate)
{
    bool lt = is_there(gpu, rate, true);
    bool plain = is_there(gpu, rate, false);
    bool fast = rate == HB_RATE_FP8 && lt && gpu->kind->gemm.fast >= 0;
    return (lt || plain ? HB_CAN_MULTIPLY : 0u) | (lt && plain ? HB_CAN_BESIDE : 0u) |
           (fast ? HB_CAN_FAST : 0u);
}

bool hb_blas_product(struct hb_gpu *gpu, const struct hb_product *p)
{
    const struct hb_gemm_kind *gemm = &gpu->kind->gemm;
    bool lt = usual_is_lt(gpu, p->rate) != p->beside;
    struct hb_gemm_form form = gemm->form(gpu, p->rate, lt);
    int code = lt ? run_lt(gpu, p, &form) : run_plain(gpu, p, &form);
    if (code == 0)
        return true;
    gpu->probe.error = hb_arena_printf(
        gpu->probe.env->arena, "a product of %s in %s %s", lt ? gemm->lt_title : gemm->title,
        hb_rate_name(p->rate),
        code == -1 ? "has no way to be computed"
                   : hb_arena_printf(gpu->probe.env->arena, "failed (status %d)", code));
    return false;
}

enum hb_fill hb_blas_fill(const struct hb_gpu *gpu, enum hb_rate rate)
{
    return gpu->kind->gemm.form(gpu, rate, true).fill;
}

/* ---- ending ---- */

void hb_blas_stop(struct hb_gpu *gpu)
{
    struct hb_blas *blas = &gpu->blas;
    drop_plan(blas);
    if (blas->ones)
        gpu->calls.mem_free(blas->ones);
    if (blas->handle)
        blas->calls.destroy(blas->handle);
    if (blas->lt_handle)
        blas->lt.destroy(blas->lt_handle);
    if (blas->workspace)
        gpu->calls.mem_free(blas->workspace);
    blas->ones = blas->workspace = 0;
    blas->handle = blas->lt_handle = NULL;
}

void hb_blas_unload(struct hb_gpu *gpu)
{
    hb_dl_close(gpu->blas.lib);
    hb_dl_close(gpu->blas.lt_lib);
    gpu->blas = (struct hb_blas){.handle = NULL};
}

const char *hb_blas_versions(const struct hb_gpu *gpu)
{
    const struct hb_blas *blas = &gpu->blas;
    struct hb_str s;
    int version = 0;
    hb_str_init(&s, gpu->probe.env->arena);
    if (blas->lib)
        hb_str_addf(&s, ", %s", hb_dl_name(blas->lib));
    if (blas->lib && blas->calls.version && blas->calls.version(blas->handle, &version) == 0)
        hb_str_addf(&s, " %d", version);
    if (blas->lt_lib)
        hb_str_addf(&s, ", %s", hb_dl_name(blas->lt_lib));
    if (blas->lt_lib && blas->lt.version && blas->lt.version(blas->lt_handle, &version) == 0)
        hb_str_addf(&s, " %d", version);
    return s.text;
}
