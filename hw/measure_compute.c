/* Steps that time work on the device: memory rates, matrix products, attention, small kernels. */
#include <math.h>

#include "base/arena.h"
#include "base/env.h"
#include "hw/measure_run.h"

enum { HEAD_DIM = 128, MOST_POINTS = 24 };

/* ---- memory rates ---- */

static const struct {
    const char *name;
    enum hb_kernel kernel;
    int bytes; /* moved per element */
} streams[] = {
    {"read", HB_KERNEL_READ, 4},
    {"write", HB_KERNEL_FILL, 4},
    {"copy", HB_KERNEL_COPY, 8},
    {"triad", HB_KERNEL_TRIAD, 12},
};

static bool measure_stream(struct hb_run *r, int which, int64_t n, double *out_rate)
{
    struct hb_task t = hb_task_kernel(r, streams[which].kernel, n);
    struct hb_sample s;
    if (!hb_run_measure(r, hb_task_run, &t, &s))
        return false;
    *out_rate = (double)n * streams[which].bytes / s.median * 1e9;
    r->best_memory = fmax(r->best_memory, *out_rate);
    return true;
}

/* The peak: from the driver's clocks, else the base's, else the best that was measured. */
static void set_memory_peak(struct hb_run *r, const char *note)
{
    double told = r->p->info.hbm_bytes_per_s;
    if (told > 0) {
        r->dev->hbm_bytes_per_s = told;
        hb_run_fact(r, "hbm_bytes_per_s", "the driver: memory clock x bus width x 2", note);
    } else if (!r->wish->base) {
        r->dev->hbm_bytes_per_s = r->best_memory;
        hb_run_fact(r, "hbm_bytes_per_s", r->source, note);
    }
}

void hb_step_memory_essentials(struct hb_run *r)
{
    double rate;
    if (measure_stream(r, 3, r->room / 4, &rate))
        set_memory_peak(r, "triad");
    else
        hb_run_failure(r, "memory rate");
}

/* Sizes that a cache holds say nothing of the memory behind it. */
void hb_step_memory(struct hb_run *r)
{
    struct hb_curve curve = {0};
    double x[MOST_POINTS];
    double rate[MOST_POINTS];
    int count = 0;
    int64_t cache = r->p->info.cache_bytes > 0 ? r->p->info.cache_bytes : 8 << 20;
    struct hb_str note;
    hb_str_init(&note, r->env->arena);
    for (int64_t bytes = 1 << 20; bytes <= r->room && count < MOST_POINTS; bytes *= 2)
        if (bytes > 2 * cache || bytes * 2 > r->room) {
            if (!measure_stream(r, 3, bytes / 4, &rate[count]))
                break;
            x[count++] = (double)bytes * 3;
        }
    for (int i = 0; i < 4; i++) {
        double top;
        if (measure_stream(r, i, r->room / 4, &top))
            hb_str_addf(&note, "%s%s %.4g", i ? ", " : "bytes a second: ", streams[i].name, top);
    }
    hb_run_failure(r, "memory rate");
    if (!count)
        return;
    set_memory_peak(r, note.text);
    for (int i = 0; i < count; i++) {
        curve.x[i] = x[i];
        curve.y[i] = fmin(2, rate[i] / r->dev->hbm_bytes_per_s);
    }
    curve.count = count;
    r->dev->hbm_curve = curve;
    hb_run_fact(r, "hbm_curve", r->source, "triad; sizes above twice the cache");
}

/* ---- products ---- */

/* Squares, then shapes of transformers (tokens x width x inner): projections with few key heads,
 * square ones, MLPs of 8 and 70 billion parameters; in order of work. */
static const struct {
    int m, n, k;
} shapes[] = {
    {64, 64, 64},          {128, 128, 128},     {256, 256, 256},    {512, 512, 512},
    {1024, 1024, 1024},    {2048, 2048, 2048},  {4096, 1024, 4096}, {4096, 4096, 4096},
    {8192, 1024, 8192},    {4096, 14336, 4096}, {8192, 8192, 8192}, {8192, 28672, 8192},
    {16384, 16384, 16384},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0], SMALLEST_ON_GPU = 3 };

struct point {
    double x;
    double flops;
};

static int collect_points(struct hb_run *r, enum hb_rate rate, struct point *points)
{
    double ns_per_flop = 0;
    int count = 0;
    for (int i = r->p->info.kind == HB_KIND_CPU ? 0 : SMALLEST_ON_GPU; i < SHAPES; i++) {
        struct hb_product x = {
            .rate = rate, .m = shapes[i].m, .n = shapes[i].n, .k = shapes[i].k, .batch = 1};
        bool slow = hb_product_flops(&x) * ns_per_flop > (double)r->calib.share_ns / 3;
        struct hb_task t = hb_task_product(r, x);
        struct hb_sample s;
        if (slow || !hb_product_fits(r, &x) || !hb_run_measure(r, hb_task_run, &t, &s))
            break;
        ns_per_flop = s.median / hb_product_flops(&x);
        points[count++] = (struct point){cbrt((double)x.m * x.n * x.k), 1e9 / ns_per_flop};
        r->best[rate] = fmax(r->best[rate], 1e9 / ns_per_flop);
    }
    return count;
}

/* In order of size; neighbours within 5 % become one point at their mean. */
static struct hb_curve curve_of(struct point *points, int count, double peak)
{
    struct hb_curve curve = {0};
    int alike = 0;
    for (int i = 0; i < count; i++) { /* already nearly sorted: insertion */
        struct point p = points[i];
        int j = i;
        for (; j > 0 && points[j - 1].x > p.x; j--)
            points[j] = points[j - 1];
        points[j] = p;
    }
    for (int i = 0; i < count; i++) {
        double y = fmax(1e-6, fmin(2, points[i].flops / peak));
        int last = curve.count - 1;
        if (last >= 0 && points[i].x < curve.x[last] * 1.05) {
            alike++;
            curve.y[last] += (y - curve.y[last]) / (alike + 1);
            continue;
        }
        alike = 0;
        curve.x[curve.count] = points[i].x;
        curve.y[curve.count++] = y;
    }
    return curve;
}

static const char *rate_key(struct hb_run *r, const char *form, enum hb_rate rate)
{
    return hb_arena_printf(r->env->arena, "%s%s%s", form, hb_rate_name(rate),
                           form[0] == 'p' ? "_flops" : "");
}

/* A peak that the base does not give is the fastest product. */
static double settle_peak(struct hb_run *r, enum hb_rate rate)
{
    double *peak = &r->dev->peak_flops[rate];
    if (r->wish->base && *peak > 0)
        return *peak;
    *peak = r->best[rate];
    hb_run_fact(r, rate_key(r, "peak_", rate), r->source, "the fastest product measured");
    return *peak;
}

static void measure_products(struct hb_run *r, enum hb_rate rate)
{
    struct point points[SHAPES];
    int count = collect_points(r, rate, points);
    hb_run_failure(r, rate_key(r, "products in ", rate));
    if (!count)
        return;
    r->dev->matmul_curve[rate] = curve_of(points, count, settle_peak(r, rate));
    hb_run_fact(r, rate_key(r, "matmul_curve_", rate), r->source,
                "squares and shapes of transformers");
}

void hb_step_products(struct hb_run *r)
{
    static const enum hb_rate order[] = {HB_RATE_BF16, HB_RATE_F32, HB_RATE_F16, HB_RATE_TF32,
                                         HB_RATE_FP8};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (r->p->ops->can(r->p, order[i]))
            measure_products(r, order[i]);
    if (!r->p->ops->can(r->p, HB_RATE_BF16) && !r->wish->base)
        r->dev->peak_flops[HB_RATE_BF16] = r->dev->peak_flops[HB_RATE_F32];
}

static void measure_reference(struct hb_run *r, int which)
{
    struct hb_task t = hb_task_product(r, hb_run_reference(r));
    struct hb_sample s;
    if (hb_product_fits(r, &t.product) && hb_run_measure(r, hb_task_run, &t, &s))
        r->reference_ns[which] = s.median;
    else
        hb_run_failure(r, "the reference product");
}

static bool quick_product(struct hb_run *r, enum hb_rate rate)
{
    struct hb_product x = hb_run_reference(r);
    struct hb_sample s;
    x.rate = rate;
    struct hb_task t = hb_task_product(r, x);
    if (!r->p->ops->can(r->p, rate) || !hb_product_fits(r, &x) ||
        !hb_run_measure(r, hb_task_run, &t, &s))
        return false;
    r->best[rate] = fmax(r->best[rate], hb_product_flops(&x) / s.median * 1e9);
    settle_peak(r, rate);
    return true;
}

/* Free memory around the first product and kernel: what libraries take. */
void hb_step_product_essentials(struct hb_run *r)
{
    int64_t before = 0;
    int64_t after = 0;
    int64_t total;
    bool told = r->p->ops->memory(r->p, &before, &total);
    measure_reference(r, 0);
    if (told && r->p->info.kind == HB_KIND_GPU && r->p->ops->memory(r->p, &after, &total)) {
        r->library_bytes = before > after ? before - after : 0;
        r->dev->library_bytes = r->library_bytes;
        hb_run_fact(r, "library_bytes", r->source, "taken by the first matrix product");
    }
    if (!quick_product(r, HB_RATE_F32))
        hb_run_failure(r, "products in f32");
    if (!quick_product(r, HB_RATE_BF16) && r->best[HB_RATE_F32] > 0 && !r->wish->base) {
        r->dev->peak_flops[HB_RATE_BF16] = r->best[HB_RATE_F32];
        hb_run_fact(r, "peak_bf16_flops", r->source, "not measured: taken as f32");
    }
    r->p->error = NULL;
}

/* ---- other kernels ---- */

void hb_step_vector(struct hb_run *r)
{
    int64_t n = r->p->info.kind == HB_KIND_CPU ? 1 << 16 : 1 << 24;
    struct hb_task t = hb_task_kernel(r, HB_KERNEL_CHAIN, n);
    struct hb_sample s;
    if (n * 4 > r->room || !hb_run_measure(r, hb_task_run, &t, &s)) {
        hb_run_failure(r, "arithmetic rate");
        return;
    }
    r->dev->vector_flops = (double)n * HB_CHAIN_FLOPS / s.median * 1e9;
    hb_run_fact(r, "vector_f32_flops", r->source, hb_run_describe(r, &s));
}

void hb_step_elementwise(struct hb_run *r)
{
    static const enum hb_kernel kernels[] = {HB_KERNEL_GELU, HB_KERNEL_REDUCE};
    static const char *const names[] = {"gelu", "sums of 1024"};
    static const double bytes[] = {8, 4};
    int64_t n = r->room / 4;
    for (int i = 0; i < 2; i++) {
        struct hb_task t = hb_task_kernel(r, kernels[i], n);
        struct hb_sample s;
        if (!hb_run_measure(r, hb_task_run, &t, &s)) {
            hb_run_failure(r, names[i]);
            continue;
        }
        double rate = (double)n * bytes[i] / s.median * 1e9;
        hb_str_addf(&r->out->remarks, "%s: %.4g bytes a second, %.3g of the peak\n", names[i], rate,
                    rate / r->dev->hbm_bytes_per_s);
    }
}

void hb_step_launch(struct hb_run *r)
{
    struct hb_task t = hb_task_kernel(r, HB_KERNEL_EMPTY, 1);
    struct hb_sample s;
    if (r->p->info.kind == HB_KIND_CPU || !hb_run_measure(r, hb_task_run, &t, &s)) {
        hb_run_failure(r, "launches");
        return;
    }
    r->dev->op_latency_ns = (int64_t)llround(s.median);
    hb_run_fact(r, "op_latency_ns", r->source, "empty kernels one after another");
}

/* Scores and context of attention as two batched products; no softmax, so it stands above what a
 * kernel reaches. */
static bool measure_attention(struct hb_run *r, int seq, double *out_flops)
{
    double per_head = (double)seq * seq * 2;
    int batch = (int)fmin(64, (double)r->room / per_head);
    struct hb_product scores = {HB_RATE_BF16, seq, seq, HEAD_DIM, batch, 0, 0, 0};
    struct hb_product context = {HB_RATE_BF16, seq, HEAD_DIM, seq, batch, 0, 0, 0};
    struct hb_sample s[2];
    if (batch < 1 || !hb_product_fits(r, &scores) || !hb_product_fits(r, &context))
        return false;
    struct hb_task first = hb_task_product(r, scores);
    struct hb_task second = hb_task_product(r, context);
    if (!hb_run_measure(r, hb_task_run, &first, &s[0]) ||
        !hb_run_measure(r, hb_task_run, &second, &s[1]))
        return false;
    *out_flops = 2 * hb_product_flops(&scores) / (s[0].median + s[1].median) * 1e9;
    return true;
}

void hb_step_attention(struct hb_run *r)
{
    struct hb_curve curve = {0};
    double peak = r->dev->peak_flops[HB_RATE_BF16];
    if (!r->p->ops->can(r->p, HB_RATE_BF16) || !(peak > 0))
        return;
    for (int seq = 512; seq <= 8192; seq *= 2) {
        double flops;
        if (!measure_attention(r, seq, &flops))
            break;
        curve.x[curve.count] = seq;
        curve.y[curve.count++] = fmax(1e-6, fmin(2, flops / peak));
    }
    hb_run_failure(r, "attention");
    if (!curve.count)
        return;
    hb_str_addf(&r->out->remarks, "attention's two products reach %.3g of the bf16 peak at %g\n",
                curve.y[curve.count - 1], curve.x[curve.count - 1]);
    if (r->wish->base)
        return; /* a figure of a real kernel is better */
    r->dev->attention_forward_curve = curve;
    r->dev->attention_backward_curve = curve;
    hb_run_fact(r, "attention_forward_curve", r->source, "its two batched products, no softmax");
    hb_run_fact(r, "attention_backward_curve", r->source, "as forward; not measured");
}

void hb_step_last_reference(struct hb_run *r)
{
    measure_reference(r, 1);
}
