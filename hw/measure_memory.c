/* Steps about the device's memory: how fast it is, and how much of it a program gets. */
#include <math.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "hw/measure_run.h"

enum { MOST_POINTS = 24, MOST_BLOCKS = 2048 };

/* ---- rates ---- */

static const struct {
    const char *name;
    enum hb_kernel kernel;
    int bytes; /* moved per element */
} streams[] = {
    {"read", HB_KERNEL_READ, 4},
    {"write", HB_KERNEL_WRITE, 4},
    {"copy", HB_KERNEL_COPY, 8},
    {"triad", HB_KERNEL_TRIAD, 12},
};

static bool measure_stream(struct hb_run *r, int which, int64_t n, double *out_rate)
{
    struct hb_task t = hb_task_kernel(r, streams[which].kernel, n);
    struct hb_sample s;
    if (!hb_run_measure(r, hb_task_run, &t, &s))
        return false;
    *out_rate = (double)n * streams[which].bytes / hb_run_without_gap(r, s.median) * 1e9;
    r->best_memory = fmax(r->best_memory, *out_rate);
    return true;
}

/* What a driver tells is believed where it is not less than what was measured; clocks alone do not
 * tell AMD's, so there the base's figure comes first. */
static void set_memory_peak(struct hb_run *r, const char *note)
{
    double told = r->p->info.hbm_bytes_per_s;
    bool amd = r->p->info.vendor == HB_VENDOR_AMD;
    if (r->wish->base && (amd || told <= 0))
        return;
    if (told > 0 && told >= r->best_memory) {
        r->dev->hbm_bytes_per_s = told;
        hb_run_fact(r, "hbm_bytes_per_s",
                    amd ? "the driver: memory clock x bus width, by the transfers of its memory"
                        : "the driver: memory clock x bus width x 2",
                    note);
        return;
    }
    r->dev->hbm_bytes_per_s = r->best_memory;
    hb_run_fact(r, "hbm_bytes_per_s", r->source,
                told > 0 ? hb_arena_printf(r->env->arena,
                                           "the best measured; the driver tells less, %.4g: %s",
                                           told, note)
                         : hb_arena_printf(r->env->arena, "the best measured: %s", note));
}

void hb_step_memory_essentials(struct hb_run *r)
{
    double rate;
    if (measure_stream(r, 3, r->room / 4, &rate))
        set_memory_peak(r, "triad");
    else
        hb_run_failure(r, "memory rate");
}

static int64_t last_cache(struct hb_run *r)
{
    const struct hb_probe_info *info = &r->p->info;
    int64_t cache = info->cache_bytes > 0 ? info->cache_bytes : 8 << 20;
    if (info->hidden_cache_bytes > cache)
        cache = info->hidden_cache_bytes;
    if (r->wish->base && r->wish->base->cache_bytes > cache)
        cache = r->wish->base->cache_bytes;
    return cache;
}

static int collect_rates(struct hb_run *r, int64_t cache, double *x, double *rate)
{
    int count = 0;
    for (int64_t bytes = 1 << 20; bytes <= r->room && count < MOST_POINTS; bytes *= 2)
        if (bytes > 2 * cache || bytes * 2 > r->room) {
            if (!measure_stream(r, 3, bytes / 4, &rate[count]))
                break;
            x[count++] = (double)bytes * 3;
        }
    return count;
}

/* Sizes that a cache holds say nothing of the memory behind it. */
void hb_step_memory(struct hb_run *r)
{
    struct hb_curve curve = {0};
    double x[MOST_POINTS];
    double rate[MOST_POINTS];
    int64_t cache = last_cache(r);
    int count = collect_rates(r, cache, x, rate);
    struct hb_str note;
    hb_str_init(&note, r->env->arena);
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
    hb_run_fact(
        r, "hbm_curve", r->source,
        hb_arena_printf(r->env->arena, "triad; arrays above twice the last cache of %lld MiB%s",
                        (long long)(cache >> 20),
                        2 * cache >= r->room ? ", which are more than there is room for" : ""));
    if (r->p->info.kind == HB_KIND_GPU) {
        r->dev->cache_bytes = cache;
        hb_run_fact(r, "cache_bytes", r->source,
                    r->p->info.hidden_cache_bytes ? "known of this architecture; the driver tells "
                                                    "of the one before it"
                                                  : "as the driver tells it");
    }
}

/* ---- capacity ---- */

struct blocks {
    uintptr_t at[MOST_BLOCKS];
    int64_t bytes[MOST_BLOCKS];
    int count;
    int64_t taken_bytes;
};

/* False: it did not come to a refusal: time was up, or something failed. */
static bool take_until_refused(struct hb_run *r, struct blocks *b, int64_t smallest)
{
    for (int64_t bytes = INT64_C(1) << 30; bytes >= smallest;) {
        if (hb_calib_stopped(&r->calib) || b->count == MOST_BLOCKS)
            return false;
        if (r->p->ops->alloc(r->p, bytes, &b->at[b->count])) {
            b->bytes[b->count++] = bytes;
            b->taken_bytes += bytes;
        } else if (r->p->error) {
            return false;
        } else {
            bytes /= 2;
        }
    }
    return true;
}

static void give_back(struct hb_run *r, struct blocks *b)
{
    while (b->count)
        r->p->ops->release(r->p, b->at[--b->count]);
}

/* How far free memory falls for one byte. */
static int64_t find_page(struct hb_run *r)
{
    int64_t before;
    int64_t after;
    int64_t total;
    uintptr_t at;
    if (!r->p->ops->memory(r->p, &before, &total) || !r->p->ops->alloc(r->p, 1, &at))
        return 0;
    bool told = r->p->ops->memory(r->p, &after, &total);
    r->p->ops->release(r->p, at);
    return told && before > after ? before - after : 0;
}

/* Every other block is given back: is half of what is then free granted in one piece? Drivers that
 * map pages do, others do not. */
static const char *try_fragments(struct hb_run *r, struct blocks *b)
{
    uintptr_t whole;
    int kept = 0;
    int64_t freed = 0;
    for (int i = 0; i < b->count; i++)
        if (i % 2) {
            r->p->ops->release(r->p, b->at[i]);
            freed += b->bytes[i];
        } else {
            b->at[kept++] = b->at[i];
        }
    b->count = kept;
    bool granted = freed > 0 && r->p->ops->alloc(r->p, freed / 2, &whole);
    if (granted)
        r->p->ops->release(r->p, whole);
    return granted ? "scattered free pages can serve one large block"
                   : "scattered free pages cannot serve one large block: fragments are lost";
}

/* Why memory is not taken until it is refused. Null: nothing is against it. */
static const char *forbidden(const struct hb_run *r)
{
    if (r->wish->no_capacity)
        return "as wished";
    if (r->p->info.shared)
        return "this device's memory is the host's too, and others would suffer";
    if (r->in_use)
        return "the device is in use, and others would suffer";
    return NULL;
}

static void set_reserve(struct hb_run *r, int64_t usable)
{
    int64_t rest =
        r->total_bytes - usable - r->context_bytes - r->library_bytes - r->p->info.own_bytes;
    r->dev->reserve_bytes = rest > 0 ? rest : 0;
    hb_run_fact(r, "reserve_bytes", r->source,
                hb_arena_printf(r->env->arena,
                                "%lld bytes were granted in plain allocations; context and "
                                "libraries are counted apart",
                                (long long)usable));
}

void hb_step_capacity(struct hb_run *r)
{
    struct blocks *b = hb_arena_alloc(r->env->arena, 1, sizeof *b);
    if (r->p->info.kind == HB_KIND_CPU)
        return;
    const char *against = forbidden(r);
    int64_t page = find_page(r);
    if (page > 0) {
        r->dev->page_bytes = page;
        hb_run_fact(r, "page_bytes", r->source, "free memory falls by it for one byte");
    }
    if (against) {
        hb_str_addf(&r->out->remarks, "how much is granted is not measured: %s\n", against);
    } else if (take_until_refused(r, b, page > 0 ? page : 1 << 20)) {
        set_reserve(r, b->taken_bytes);
        if (page > 0)
            hb_run_fact(r, "page_bytes", r->source, try_fragments(r, b));
    } else if (!r->p->error && !r->calib.interrupted) {
        hb_run_remark(r, "how much is granted is not measured: time was up");
    }
    give_back(r, b);
    hb_run_failure(r, "capacity");
}
