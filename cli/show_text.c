/* simulate's text: see show.h. Verdict first, then what peaks, when, why, and the time. */
#include <inttypes.h>
#include <math.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/show.h"
#include "models/schema.h"
#include "models/spec_names.h"

struct page {
    const struct hb_env *env;
    FILE *out;
    const struct hb_result *r;
};

enum { LARGEST = 5, BAR_WIDTH = 30 };
/* What context and libraries leave of a GPU that nobody else uses. */
#define MOST_FRACTION 0.92

static const char *size_text(const struct page *g, int64_t bytes)
{
    return hb_size_print(bytes, hb_arena_alloc(g->env->arena, HB_SIZE_TEXT, 1));
}

static const char *time_text(const struct page *g, int64_t ns)
{
    return hb_time_print(ns, hb_arena_alloc(g->env->arena, HB_SIZE_TEXT, 1));
}

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

static void show_verdict(const struct page *g, enum hb_verdict verdict, const char *text)
{
    static const char *const colours[] = {"\033[1;32m", "\033[1;33m", "\033[1;31m"};
    const char *colour = colours[verdict];
    fprintf(g->out, "%s%s%s", g->env->colour ? colour : "", text, g->env->colour ? "\033[0m" : "");
}

static void show_head(const struct page *g)
{
    const struct hb_spec *s = g->r->spec;
    fprintf(g->out, "%s on %lld x %s, %s; ", s->model.name, (long long)s->hardware.count,
            g->r->device->name, hb_compiler_name(s->compiler));
    const char *comma = "";
    for (int a = 0; a < HB_AX_COUNT; a++) {
        if (s->mesh[a] <= 1)
            continue;
        fprintf(g->out, "%s%s %lld", comma, hb_axis_names[a], (long long)s->mesh[a]);
        comma = ", ";
    }
    fprintf(g->out, "%s%lld sequences of %lld tokens a step\n\n", *comma ? "; " : "",
            (long long)s->batch.global, (long long)s->batch.seq);
}

/* " (53.9 GiB to 56.8 GiB; 95 % of 61 records like this)"; "" where nothing is known. */
static const char *show_interval(struct hb_arena *arena, const struct hb_interval *i)
{
    char low[HB_SIZE_TEXT];
    char high[HB_SIZE_TEXT];
    if (!i->records)
        return " (not calibrated)";
    return hb_arena_printf(arena, " (%s to %s; %.3g %% of %u records like this)",
                           hb_size_print(i->low_bytes, low), hb_size_print(i->high_bytes, high),
                           100 * i->confidence, i->records);
}

static void show_fit(const struct page *g)
{
    static const char *const words[] = {"FITS", "TIGHT: MAY NOT FIT", "DOES NOT FIT"};
    const struct hb_result *r = g->r;
    int64_t spare = r->budget_bytes - r->memory.peak_bytes;
    show_verdict(g, r->step_verdict, words[r->step_verdict]);
    if (!r->host_fits)
        fputs(" into the host's memory", g->out);
    fprintf(g->out, ": %s%s%sof %s on each device, ", size_text(g, r->memory.peak_bytes),
            show_interval(g->env->arena, &r->interval), r->interval.records ? "\n      " : " ",
            size_text(g, r->budget_bytes));
    if (spare >= 0)
        fprintf(g->out, "%s free (%.0f %%)\n", size_text(g, spare),
                floor(percent(spare, r->budget_bytes)));
    else
        fprintf(g->out, "%s too much\n", size_text(g, -spare));
    const char *why = hb_budget_words(g->env->arena, &r->budget);
    fprintf(g->out, "%s%s%s", *why ? "      " : "", why, *why ? "\n" : "");
    int64_t more = (int64_t)((double)r->budget.device_bytes * MOST_FRACTION);
    if (r->step_verdict != HB_VERDICT_FITS && r->host_fits && r->budget.fraction < MOST_FRACTION &&
        r->memory.peak_bytes <= more)
        fprintf(g->out, "      runtime.memory_fraction=%g would leave it %s\n", MOST_FRACTION,
                size_text(g, more));
    fputs("\n", g->out);
}

static void show_host(const struct page *g)
{
    const struct hb_budget *b = &g->r->budget;
    int64_t own = g->r->memory.host_bytes;
    if (!own)
        return;
    fprintf(g->out, "      %s in host memory for each device, %s for the %lld of a host",
            size_text(g, own), size_text(g, hb_mul_sat(own, b->host_devices)),
            (long long)b->host_devices);
    if (b->host_bytes < INT64_MAX)
        fprintf(g->out, own > b->host_bytes ? ": MORE THAN ITS %s%s" : " (of %s%s)",
                size_text(g, hb_mul_sat(hb_add_sat(b->host_bytes, b->host_reserve_bytes),
                                        b->host_devices)),
                hb_budget_host_words(g->env->arena, b));
    fputs("\n", g->out);
    const char *pool = hb_budget_pool_words(g->env->arena, g->r->spec, b, own);
    if (*pool)
        fprintf(g->out, "      %s\n", pool);
}

static void show_peak(const struct page *g)
{
    const struct hb_memory *m = &g->r->memory;
    const struct hb_program *p = &g->r->program;
    int64_t still = m->peak_bytes - m->temp_bytes;
    fprintf(g->out, "Peak  %s\n", hb_show_place(g->env->arena, p, m->peak_op));
    fprintf(g->out, "      %s stays all through the step; %s is alive just then",
            size_text(g, still), size_text(g, m->live_temp_bytes));
    if (m->temp_bytes > m->live_temp_bytes)
        fprintf(g->out, "; %s lies idle between", size_text(g, m->temp_bytes - m->live_temp_bytes));
    fputs("\n", g->out);
    show_host(g);
}

static void show_categories(const struct page *g)
{
    const struct hb_memory *m = &g->r->memory;
    fputs("\nWhat stands there\n", g->out);
    for (int c = 0; c < HB_CATEGORY_COUNT; c++) {
        if (!m->category_bytes[c])
            continue;
        double part = percent(m->category_bytes[c], m->peak_bytes);
        int bar = (int)(part * BAR_WIDTH / 100 + 0.5);
        fprintf(g->out, "  %-14s %11s %6.1f %%%s", hb_category_name((enum hb_category)c),
                size_text(g, m->category_bytes[c]), part, bar ? "  " : "");
        while (bar-- > 0)
            fputc('#', g->out);
        fputc('\n', g->out);
    }
}

static void show_largest(const struct page *g)
{
    const struct hb_memory *m = &g->r->memory;
    if (m->at_peak_count)
        fputs("\nThe largest of it\n", g->out);
    for (uint32_t i = 0; i < m->at_peak_count && i < LARGEST; i++) {
        const struct hb_buf *b = &g->r->program.bufs[m->at_peak[i].buf];
        const char *shape = hb_show_shape(g->env->arena, b);
        fprintf(g->out, "  %11s  %s%s%s\n", size_text(g, m->at_peak[i].bytes), b->name,
                *shape ? "  " : "", shape);
        if (b->why && *b->why)
            fprintf(g->out, "  %11s  %s\n", "", b->why);
    }
}

/* The row of MaxText's print_compiled_memory_stats, whose GB are 2^30 bytes. */
static void show_maxtext(const struct page *g)
{
    const struct hb_memory *m = &g->r->memory;
    fputs("\nAs MaxText prints it (its GB are 2^30 bytes)\n", g->out);
    fprintf(g->out,
            "  Total memory size: %.1f GB, Output size: %.1f GB, Temp size: %.1f GB, "
            "Argument size: %.1f GB, Host temp size: %.1f GB.\n",
            (double)m->peak_bytes / 0x1p30, (double)m->output_bytes / 0x1p30,
            (double)m->temp_bytes / 0x1p30, (double)m->argument_bytes / 0x1p30,
            (double)m->host_bytes / 0x1p30);
}

/* The rows of torch.cuda.memory_summary that people quote. */
static void show_caching(const struct page *g)
{
    const struct hb_memory *m = &g->r->memory;
    fprintf(g->out,
            "\nAs PyTorch's allocator counts it\n  max allocated %s, max reserved %s; %s between "
            "steps\n",
            size_text(g, m->allocated_bytes), size_text(g, m->reserved_bytes),
            size_text(g, m->argument_bytes));
    if (m->retries)
        fprintf(g->out,
                "  cached segments go back %" PRId64 " time%s, so that a request finds room "
                "(num_alloc_retries)\n",
                m->retries, m->retries == 1 ? "" : "s");
}

/* Each rank of the pipeline; what stands above is of one of them. */
static void show_ranks(const struct page *g)
{
    const struct hb_memory *m = &g->r->memory;
    int64_t heaviest = 0;
    for (int64_t i = 0; i < m->rank_count; i++)
        if (m->rank_peaks[i] > m->rank_peaks[heaviest])
            heaviest = i;
    fputs("\nRanks of the pipeline\n", g->out);
    for (int64_t i = 0; i < m->rank_count; i++)
        fprintf(g->out, "  %4lld %12s%s%s\n", (long long)i, size_text(g, m->rank_peaks[i]),
                i == heaviest ? "  the heaviest" : "", i == m->rank ? "  told above" : "");
}

static void show_streams(const struct page *g)
{
    const struct hb_timing *t = &g->r->timing;
    fprintf(g->out, "  %-16s %10s %9s %10s\n", "stream", "busy", "of step", "exposed");
    for (int s = 0; s < HB_STREAM_COUNT; s++) {
        if (!t->busy_ns[s] && s != HB_STREAM_COMPUTE)
            continue;
        fprintf(g->out, "  %-16s %10s %7.1f %%", hb_stream_name((enum hb_stream)s),
                time_text(g, t->busy_ns[s]), percent(t->busy_ns[s], t->step_ns));
        if (s != HB_STREAM_COMPUTE)
            fprintf(g->out, " %10s", time_text(g, t->exposed_ns[s]));
        fputc('\n', g->out);
    }
    fputs("  exposed: compute stands still and waits for it\n", g->out);
}

static void show_time(const struct page *g)
{
    const struct hb_result *r = g->r;
    fprintf(g->out, "\nStep  %s", time_text(g, r->timing.step_ns));
    if (r->step_seconds > 0)
        fprintf(g->out,
                ", %.0f tokens/s (%.0f on each device), MFU %.1f %%, with recomputation %.1f %%",
                r->tokens_per_second, r->tokens_per_second / (double)r->spec->hardware.count,
                100 * r->mfu, 100 * r->hfu);
    fputc('\n', g->out);
    show_streams(g);
}

static void show_load(const struct page *g)
{
    static const char *const methods[] = {"sharded", "device_put", "callback"};
    const struct hb_result *r = g->r;
    fprintf(g->out,
            "\nLoading with %s before step 1, %lld processes: ", methods[r->spec->load.method],
            (long long)r->load.processes);
    show_verdict(g, r->load.fits ? HB_VERDICT_FITS : HB_VERDICT_NOT,
                 r->load.fits ? "FITS" : "DOES NOT FIT");
    fprintf(g->out, "\n  %9s %14s %14s\n", "processes", "each device", "each process");
    for (uint32_t i = 0; i < r->load_row_count; i++) {
        const struct hb_load_row *row = &r->load_rows[i];
        fprintf(g->out, "  %9lld %14s %14s  %s%s\n", (long long)row->processes,
                size_text(g, row->device_peak_bytes), size_text(g, row->host_peak_bytes),
                row->fits ? "fits" : "does not fit",
                row->processes == r->load.processes ? "  <- yours" : "");
    }
    fputs("  each process: host memory that the transient takes\n", g->out);
}

void hb_show_text(const struct hb_env *env, FILE *out, const struct hb_result *r)
{
    struct page g = {env, out, r};
    show_head(&g);
    show_fit(&g);
    show_peak(&g);
    show_categories(&g);
    show_largest(&g);
    if (r->program.caching.on)
        show_caching(&g);
    else
        show_maxtext(&g);
    if (r->memory.rank_count)
        show_ranks(&g);
    show_time(&g);
    if (r->spec->load.present)
        show_load(&g);
}
