/* Running records and counting errors: see validate.h. Quantiles are nearest-rank: the smallest
 * error that is not below the asked share of all. */
#include "sim/engine/validate.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "models/support.h"
#include "sim/eager/timed.h"
#include "sim/engine/budget.h"
#include "sim/engine/interval.h"
#include "sim/engine/step.h"

static const double verdict_budgets[HB_VERDICTS] = {0.8, 0.9, 1.1, 1.25};

static bool is_total(const struct hb_record *r)
{
    if (r->spec.compiler == HB_TORCH)
        return hb_str_same(r->kind, "max_allocated") || hb_str_same(r->kind, "max_reserved");
    return hb_str_same(r->kind, "xla_total") || hb_str_same(r->kind, "runtime_peak");
}

static int count_verdicts(int64_t measured, int64_t predicted)
{
    int right = 0;
    for (int i = 0; i < HB_VERDICTS; i++) {
        double budget = verdict_budgets[i] * (double)measured;
        right += ((double)predicted <= budget) == ((double)measured <= budget);
    }
    return right;
}

/* State, one set of gradients, what is saved for the backward pass, and the logits once in f32:
 * the estimate that people make by hand. */
static int64_t usual_formula(const struct hb_program *p, const struct hb_memory *m)
{
    int64_t bytes = m->argument_bytes;
    int64_t logits = 0;
    for (uint32_t i = 0; i < p->buf_count; i++) {
        const struct hb_buf *b = &p->bufs[i];
        if (b->space != HB_SPACE_HBM || b->alias_of != HB_NONE)
            continue;
        if (b->argument && b->category == HB_CAT_PARAMS)
            bytes = hb_add_sat(bytes, b->plain_bytes);
        if (!b->argument && b->category == HB_CAT_SAVED)
            bytes = hb_add_sat(bytes, b->plain_bytes);
        if (b->category == HB_CAT_LOGITS && b->plain_bytes > logits)
            logits = b->plain_bytes;
    }
    return hb_add_sat(bytes, logits);
}

static double error_pct(double predicted, double measured)
{
    return measured > 0 ? 100 * (predicted / measured - 1) : 0;
}

static void set_parts(const struct hb_record *r, const struct hb_memory *m, struct hb_case *out)
{
    const int64_t measured[] = {r->argument_bytes, r->output_bytes, r->temp_bytes, r->host_bytes};
    const int64_t predicted[] = {m->argument_bytes, m->output_bytes, m->temp_bytes, m->host_bytes};
    for (int i = 0; i < HB_PART_COUNT; i++) {
        out->measured_part[i] = measured[i];
        out->predicted_part[i] = predicted[i];
    }
}

static const char *first_error(struct hb_arena *arena, const struct hb_diag *diag)
{
    return diag->count ? hb_arena_strdup(arena, diag->entries[0].text) : "it cannot be simulated";
}

static void predict_bytes(struct hb_arena *arena, const struct hb_record *r, struct hb_case *out,
                          struct hb_program *program, struct hb_memory *memory)
{
    if (r->spec.hardware.hbm_bytes > 0)
        out->fits_predicted = memory->peak_bytes <= r->spec.hardware.hbm_bytes;
    out->predicted_bytes = memory->peak_bytes;
    set_parts(r, memory, out);
    struct hb_interval interval;
    hb_interval_make(arena, &r->spec, r->spec.plan.confidence, memory->peak_bytes, &interval);
    out->low_bytes = interval.low_bytes;
    out->high_bytes = interval.high_bytes;
    out->kind = hb_interval_kind(&r->spec);
    out->like = interval.like;
    out->error_pct = error_pct((double)memory->peak_bytes, (double)r->peak_bytes);
    out->usual_bytes = usual_formula(program, memory);
    out->usual_error_pct = error_pct((double)out->usual_bytes, (double)r->peak_bytes);
    out->verdicts_right = count_verdicts(r->peak_bytes, memory->peak_bytes);
}

/* Whether it fits what the device leaves to a program. */
static void predict_verdict(struct hb_arena *arena, const struct hb_record *r,
                            const struct hb_device *device, const struct hb_memory *memory,
                            struct hb_case *out)
{
    struct hb_budget budget;
    struct hb_interval interval;
    if (!device && r->spec.hardware.hbm_bytes <= 0) {
        out->failed = "its device has no profile";
        return;
    }
    hb_budget_make(&r->spec, device, &budget);
    hb_interval_make(arena, &r->spec, r->spec.plan.confidence, memory->peak_bytes, &interval);
    out->predicted_bytes = memory->peak_bytes;
    out->budget_bytes = budget.bytes;
    out->low_bytes = interval.low_bytes;
    out->high_bytes = interval.high_bytes;
    out->fits_predicted = memory->peak_bytes <= budget.bytes;
    out->word = hb_interval_verdict(&interval, budget.bytes);
}

static void predict_seconds(struct hb_arena *arena, const struct hb_device *device,
                            struct hb_case *out, const struct hb_program *program)
{
    struct hb_timing timing;
    hb_run_timing(arena, program, device, &timing);
    out->predicted_seconds = (double)timing.step_ns * 1e-9;
    out->error_pct = error_pct(out->predicted_seconds, out->measured_seconds);
}

void hb_validate_case(struct hb_arena *arena, const struct hb_record *r,
                      const struct hb_device *device, struct hb_case *out,
                      struct hb_program *program, struct hb_memory *memory)
{
    struct hb_diag diag;
    hb_diag_init(&diag, arena);
    *memory = (struct hb_memory){0};
    *out = (struct hb_case){.id = r->id,
                            .group = r->group,
                            .device = r->spec.hardware.device,
                            .measured_bytes = r->peak_bytes,
                            .measured_seconds = r->step_seconds,
                            .fits_measured = r->fits,
                            .fits_predicted = -1,
                            .speed = r->peak_bytes < 0 && !r->verdict,
                            .verdict = r->verdict};
    if (r->rematerialised)
        out->group = "compiler rematerialised";
    bool ok = out->speed ? hb_spec_timed(&diag, NULL, &r->spec) &&
                               hb_timed_lower(arena, &diag, &r->spec, program)
                         : hb_spec_supported(&diag, NULL, &r->spec) &&
                               hb_step_run(arena, &diag, &r->spec, program, memory);
    if (!ok)
        out->failed = first_error(arena, &diag);
    else if (out->verdict)
        predict_verdict(arena, r, device, memory, out);
    else if (!out->speed && !is_total(r))
        out->failed = hb_arena_printf(arena, "measured.kind '%s' is not predicted yet", r->kind);
    else if (!out->speed)
        predict_bytes(arena, r, out, program, memory);
    else if (!device)
        out->failed = "its device has no profile";
    else
        predict_seconds(arena, device, out, program);
}

static bool is_off(const struct hb_case *c, int part)
{
    int64_t measured = c->measured_part[part];
    int64_t difference = llabs(c->predicted_part[part] - measured);
    return measured >= 0 && difference > HB_PART_SLACK_BYTES && difference > measured / 1000;
}

static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Ranks from 1, equal values sharing their mean. */
static void find_ranks(const double *values, uint32_t n, double *ranks)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t below = 0, equal = 0;
        for (uint32_t k = 0; k < n; k++) {
            below += values[k] < values[i];
            equal += !(values[k] < values[i]) && !(values[k] > values[i]);
        }
        ranks[i] = (double)below + ((double)equal + 1) / 2;
    }
}

/* Of two lists of ranks, from their means. */
static double sum_products(const double *a, const double *b, uint32_t n)
{
    double mean = ((double)n + 1) / 2, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (a[i] - mean) * b[i];
    return sum;
}

bool hb_validate_rank(struct hb_arena *scratch, const struct hb_case *const *cases, uint32_t count,
                      double *out)
{
    enum { FEWEST = 3 };
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    double *values = hb_arena_alloc(scratch, (size_t)count * 4, sizeof *values);
    double *measured = values, *predicted = values + count;
    double *first = predicted + count, *second = first + count;
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (cases[i]->failed || !cases[i]->speed)
            continue;
        measured[n] = cases[i]->measured_seconds;
        predicted[n++] = cases[i]->predicted_seconds;
    }
    find_ranks(measured, n, first);
    find_ranks(predicted, n, second);
    double spread = sum_products(first, first, n) * sum_products(second, second, n);
    bool ok = n >= FEWEST && spread > 0;
    if (ok)
        *out = sum_products(first, second, n) / sqrt(spread);
    hb_arena_rewind(scratch, mark);
    return ok;
}

static double quantile(const double *sorted, uint32_t n, double share)
{
    uint32_t rank = (uint32_t)ceil(share * (double)n);
    return sorted[rank > 0 ? rank - 1 : 0];
}

/* How often the truth is within, and how wide that is. */
static void count_intervals(const struct hb_case *const *cases, uint32_t count, double *room,
                            struct hb_stats *s)
{
    uint32_t n = 0, within = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_case *c = cases[i];
        if (c->failed || c->speed || c->verdict || c->predicted_bytes <= 0)
            continue;
        within += c->low_bytes <= c->measured_bytes && c->measured_bytes <= c->high_bytes;
        room[n++] = 100 * (double)(c->high_bytes - c->low_bytes) / (double)c->predicted_bytes;
    }
    if (!n)
        return;
    qsort(room, n, sizeof *room, compare_reals);
    s->coverage = (double)within / (double)n;
    s->median_width_pct = quantile(room, n, 0.5);
}

struct hb_stats hb_validate_stats(struct hb_arena *scratch, const struct hb_case *const *cases,
                                  uint32_t count, bool usual)
{
    struct hb_stats s = {0};
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    double *errors = hb_arena_alloc(scratch, count, sizeof *errors);
    int right = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (cases[i]->failed) {
            s.failed++;
            continue;
        }
        if (cases[i]->verdict) /* counted apart */
            continue;
        if (usual && cases[i]->speed) /* it has no word on time */
            continue;
        s.peaks += !cases[i]->speed;
        double e = usual ? cases[i]->usual_error_pct : cases[i]->error_pct;
        for (int part = 0; part < HB_PART_COUNT && !cases[i]->speed; part++)
            s.part_off[part] += is_off(cases[i], part);
        s.bias_pct += e;
        errors[s.n++] = fabs(e);
        right += cases[i]->verdicts_right;
    }
    if (s.n) {
        qsort(errors, s.n, sizeof *errors, compare_reals);
        s.bias_pct /= (double)s.n;
        s.median_abs_pct = quantile(errors, s.n, 0.5);
        s.p90_abs_pct = quantile(errors, s.n, 0.9);
        s.p95_abs_pct = quantile(errors, s.n, 0.95);
        s.max_abs_pct = errors[s.n - 1];
    }
    if (!usual)
        count_intervals(cases, count, errors, &s);
    s.fit_agreement = s.peaks ? (double)right / (double)(s.peaks * HB_VERDICTS) : 0;
    hb_arena_rewind(scratch, mark);
    return s;
}
