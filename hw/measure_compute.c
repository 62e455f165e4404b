/* Steps that time products and kernels on the device. A curve is what a device keeps up over
 * seconds; the gap between two kernels, which the simulator adds to each operation, is taken off.
 */
#include <math.h>

#include "base/arena.h"
#include "base/env.h"
#include "hw/measure_run.h"

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
/* From here on a product is repeated for seconds: 4096 x 14336 x 4096. */
static const double large_flops = 4e11;

struct point {
    double x;
    double flops;
};

/* What the products of one rate showed. */
struct rate_run {
    enum hb_rate rate;
    struct point points[SHAPES];
    int count;
    struct hb_product largest; /* that was measured */
    double best;               /* the fastest of them, alone */
    double burst;              /* of the largest that ran for seconds; 0: none did */
    double sustained;
    double seconds;
};

static bool measure_short(struct hb_run *r, struct hb_product x, double *out_flops)
{
    struct hb_task t = hb_task_product(r, x);
    struct hb_sample s;
    if (!hb_run_measure(r, hb_task_run, &t, &s))
        return false;
    *out_flops = hb_product_flops(&x) / hb_run_without_gap(r, s.median) * 1e9;
    return true;
}

static bool measure_long(struct hb_run *r, struct hb_product x, struct rate_run *run)
{
    struct hb_task t = hb_task_product(r, x);
    struct hb_stretch s;
    if (!hb_run_stretch(r, &t, &s))
        return false;
    run->burst = hb_product_flops(&x) / hb_run_without_gap(r, s.burst) * 1e9;
    run->sustained = hb_product_flops(&x) / hb_run_without_gap(r, s.sustained) * 1e9;
    run->seconds = s.ns * 1e-9;
    return true;
}

static void collect_points(struct hb_run *r, struct rate_run *run)
{
    bool gpu = r->p->info.kind == HB_KIND_GPU;
    double ns_per_flop = 0;
    for (int i = gpu ? SMALLEST_ON_GPU : 0; i < SHAPES; i++) {
        struct hb_product x = {
            .rate = run->rate, .m = shapes[i].m, .n = shapes[i].n, .k = shapes[i].k};
        bool large = gpu && hb_product_flops(&x) >= large_flops;
        double flops = 0;
        if (hb_product_flops(&x) * ns_per_flop > (double)r->calib.share_ns / 3 ||
            !hb_product_fits(r, &x) ||
            !(large ? measure_long(r, x, run) : measure_short(r, x, &flops)))
            break;
        if (large)
            flops = run->sustained;
        ns_per_flop = 1e9 / flops;
        run->largest = x;
        run->points[run->count++] = (struct point){cbrt((double)x.m * x.n * x.k), flops};
        run->best = fmax(run->best, large ? run->burst : flops);
    }
    r->best[run->rate] = fmax(r->best[run->rate], run->best);
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

/* The same by another road: the other library, or with sums in fewer bits. */
static void add_variant(struct hb_run *r, const struct rate_run *run, bool fast,
                        struct hb_str *note)
{
    struct hb_product x = run->largest;
    double flops;
    x.fast = fast;
    x.beside = !fast;
    if (measure_short(r, x, &flops))
        hb_str_addf(note, "; %s %.4g", fast ? "with fast accumulation" : "by the other library",
                    flops);
    else
        hb_run_failure(r, hb_rate_name(run->rate));
}

static const char *describe_rate(struct hb_run *r, const struct rate_run *run)
{
    unsigned can = r->p->ops->can(r->p, run->rate);
    struct hb_str note;
    hb_str_init(&note, r->env->arena);
    if (run->burst > 0)
        hb_str_addf(&note,
                    "sustained for %.2g s each from 4e11 operations on: %.4g a second, %.4g in a "
                    "burst%s",
                    run->seconds, run->sustained, run->burst,
                    run->seconds < 1 ? " (too short to be sure: give more --seconds)" : "");
    else
        hb_str_addf(&note, "products too small to run for seconds; at best %.4g", run->best);
    if (can & HB_CAN_BESIDE)
        add_variant(r, run, false, &note);
    if (can & HB_CAN_FAST)
        add_variant(r, run, true, &note);
    return note.text;
}

static void measure_products(struct hb_run *r, enum hb_rate rate)
{
    struct rate_run run = {.rate = rate};
    if (!hb_run_fill(r, rate)) {
        hb_run_failure(r, hb_rate_name(rate));
        return;
    }
    collect_points(r, &run);
    hb_run_failure(r, hb_rate_name(rate));
    if (!run.count)
        return;
    double peak = settle_peak(r, rate);
    r->dev->matmul_curve[rate] = curve_of(run.points, run.count, peak);
    hb_run_fact(r, rate_key(r, "matmul_curve_", rate), r->source, describe_rate(r, &run));
    if (rate == HB_RATE_BF16 && run.burst > 0) {
        r->dev->product_burst = fmax(0.5, fmin(3, run.burst / run.sustained));
        hb_run_fact(r, "product_burst", r->source, "the largest bf16 product");
    }
}

void hb_step_products(struct hb_run *r)
{
    static const enum hb_rate order[] = {HB_RATE_BF16, HB_RATE_FP8,  HB_RATE_F32, HB_RATE_F16,
                                         HB_RATE_TF32, HB_RATE_INT8, HB_RATE_FP4};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (r->p->ops->can(r->p, order[i]) && !hb_calib_stopped(&r->calib))
            measure_products(r, order[i]);
    if (!r->p->ops->can(r->p, HB_RATE_BF16) && !r->wish->base)
        r->dev->peak_flops[HB_RATE_BF16] = r->dev->peak_flops[HB_RATE_F32];
    if (!hb_run_fill(r, HB_RATE_F32))
        hb_run_failure(r, "numbers for the kernels");
}

static void measure_reference(struct hb_run *r, int which)
{
    struct hb_task t = hb_task_product(r, hb_run_reference(r));
    struct hb_sample s;
    if (hb_product_fits(r, &t.product) && hb_run_fill(r, t.product.rate) &&
        hb_run_measure(r, hb_task_run, &t, &s))
        r->reference_ns[which] = s.median;
    else
        hb_run_failure(r, "the reference product");
}

static bool quick_product(struct hb_run *r, enum hb_rate rate)
{
    struct hb_product x = hb_run_reference(r);
    double flops;
    x.rate = rate;
    if (!r->p->ops->can(r->p, rate) || !hb_product_fits(r, &x) || !hb_run_fill(r, rate) ||
        !measure_short(r, x, &flops))
        return false;
    r->best[rate] = fmax(r->best[rate], flops);
    settle_peak(r, rate);
    return true;
}

/* Free memory around the first product and kernel: what libraries take beside what they took when
 * they started. */
void hb_step_product_essentials(struct hb_run *r)
{
    int64_t before = 0;
    int64_t after = 0;
    int64_t total;
    bool told = r->p->ops->memory(r->p, &before, &total);
    measure_reference(r, 0);
    if (told && r->p->info.kind == HB_KIND_GPU && r->p->ops->memory(r->p, &after, &total)) {
        r->library_bytes = r->p->info.library_bytes + (before > after ? before - after : 0);
        r->dev->library_bytes = r->library_bytes;
        hb_run_fact(r, "library_bytes", r->source,
                    "taken by the libraries for products; their workspace is a framework's own");
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
    r->dev->vector_flops = (double)n * HB_CHAIN_FLOPS / hb_run_without_gap(r, s.median) * 1e9;
    hb_run_fact(r, "vector_f32_flops", r->source, hb_run_describe(r, &s));
}

/* Kernels of a step that no product hides: what part of the memory's peak they reach. */
void hb_step_elementwise(struct hb_run *r)
{
    static const struct {
        enum hb_kernel kernel;
        const char *name, *key;
        int bytes;  /* moved per element */
        int arrays; /* as long as n, at the first address */
    } kernels[] = {
        {HB_KERNEL_GELU, "gelu", NULL, 8, 1},
        {HB_KERNEL_REDUCE, "sums of 1024", NULL, 4, 1},
        {HB_KERNEL_SOFTMAX, "softmax", "softmax_part", 8, 1},
        {HB_KERNEL_NORM, "norm", "norm_part", 8, 1},
        {HB_KERNEL_ADAM, "Adam", "adam_part", 28, 3},
    };
    double *parts[] = {NULL, NULL, &r->dev->softmax_part, &r->dev->norm_part, &r->dev->adam_part};
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        int64_t n = r->room / 4 / kernels[i].arrays / 4096 * 4096;
        struct hb_task t = hb_task_kernel(r, kernels[i].kernel, n);
        struct hb_sample s;
        if (!hb_run_measure(r, hb_task_run, &t, &s)) {
            hb_run_failure(r, kernels[i].name);
            continue;
        }
        double rate = (double)n * kernels[i].bytes / hb_run_without_gap(r, s.median) * 1e9;
        double part = rate / r->dev->hbm_bytes_per_s;
        hb_str_addf(&r->out->remarks, "%s: %.4g bytes a second, %.3g of the peak\n",
                    kernels[i].name, rate, part);
        if (!parts[i])
            continue;
        *parts[i] = fmax(1e-6, fmin(2, part));
        hb_run_fact(r, kernels[i].key, r->source, hb_run_describe(r, &s));
    }
}

/* ---- gaps ---- */

/* One kernel of arithmetic, then as much in PIECES of them: what they take longer is the gaps
 * between. Each piece keeps every thread equally busy, and outlasts its launch. */
enum { PIECES = 8, ROUNDS = 8, THREADS_OF_CORE = 4096 };

void hb_step_launch(struct hb_run *r)
{
    int64_t cores = r->p->info.cores > 0 ? r->p->info.cores : 1;
    int64_t piece = cores * THREADS_OF_CORE * ROUNDS;
    struct hb_sample whole;
    struct hb_sample pieces;
    struct hb_sample empty;
    if (r->p->info.kind == HB_KIND_CPU)
        return;
    while (piece * PIECES * 4 > r->room)
        piece /= 2;
    struct hb_task t = hb_task_kernel(r, HB_KERNEL_CHAIN, piece * PIECES);
    struct hb_task cut = hb_task_kernel(r, HB_KERNEL_CHAIN, piece);
    struct hb_task nothing = hb_task_kernel(r, HB_KERNEL_EMPTY, 1);
    cut.pieces = PIECES;
    if (!hb_run_measure(r, hb_task_run, &t, &whole) ||
        !hb_run_measure(r, hb_task_run, &cut, &pieces) ||
        !hb_run_measure(r, hb_task_run, &nothing, &empty)) {
        hb_run_failure(r, "launches");
        return;
    }
    r->gap_ns = fmax(0, (pieces.median - whole.median) / (PIECES - 1));
    r->dev->op_latency_ns = (int64_t)llround(r->gap_ns);
    hb_run_fact(r, "op_latency_ns", r->source,
                hb_arena_printf(r->env->arena,
                                "one kernel against eight of an eighth each; empty kernels follow "
                                "each other by %.4g ns",
                                empty.median));
}

void hb_step_last_reference(struct hb_run *r)
{
    measure_reference(r, 1);
}
