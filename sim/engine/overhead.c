/* See overhead.h. */
#include "sim/engine/overhead.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"

/* Of predictions: below this part of the largest between smallest and largest, all are of one size.
 */
static const double least_spread = 0.1;
static const double normal_95 = 1.96;
static const double robust_deviation = 1.4826; /* median distance of a normal distribution */
static const double far_deviations = 5;
static const double page_bytes = 4096; /* closer nobody measures: less is no outlier */

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of a sorted row, between the two nearest. */
static double middle_of(const double *sorted, uint32_t n)
{
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* The median with the values `away` ranks from the middle on both sides. Sorts. */
static struct hb_fit_interval median_within(double *values, uint32_t n, double away)
{
    qsort(values, n, sizeof *values, compare_values);
    double first = floor(((double)n - 1) / 2 - away), last = ceil(((double)n - 1) / 2 + away);
    return (struct hb_fit_interval){
        .value = middle_of(values, n),
        .low = values[first > 0 ? (uint32_t)first : 0],
        .high = values[last < (double)n - 1 ? (uint32_t)last : n - 1],
    };
}

struct sample {
    const struct hb_overhead_point *points;
    uint32_t count;
    double *values; /* room for all pairs, and for all points */
};

struct fit {
    struct hb_fit_interval reserve;
    struct hb_fit_interval slack;
    double used_slack;
    bool slack_known;
};

static bool is_spread(const struct sample *s)
{
    double low = INFINITY, high = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        low = fmin(low, s->points[i].predicted_bytes);
        high = fmax(high, s->points[i].predicted_bytes);
    }
    return high - low >= least_spread * high;
}

/* Slopes of what is beside the prediction, through all pairs of different sizes. */
static struct hb_fit_interval fit_slack(const struct sample *s)
{
    uint32_t pairs = 0;
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t k = i + 1; k < s->count; k++) {
            const struct hb_overhead_point *a = &s->points[i], *b = &s->points[k];
            double run = b->predicted_bytes - a->predicted_bytes;
            if (fabs(run) > 0)
                s->values[pairs++] = (b->measured_bytes - a->measured_bytes) / run - 1;
        }
    double n = s->count;
    return median_within(s->values, pairs, normal_95 * sqrt(n * (n - 1) * (2 * n + 5) / 18) / 2);
}

static double rest_of(const struct hb_overhead_point *p, double slack)
{
    return p->measured_bytes - (1 + slack) * p->predicted_bytes;
}

static struct fit fit_sample(const struct sample *s)
{
    struct fit f = {.slack_known = s->count >= HB_OVERHEAD_FEWEST_SLACK && is_spread(s)};
    if (f.slack_known)
        f.slack = fit_slack(s);
    if (f.slack.low > 0)
        f.used_slack = f.slack.value;
    for (uint32_t i = 0; i < s->count; i++)
        s->values[i] = rest_of(&s->points[i], f.used_slack);
    f.reserve = median_within(s->values, s->count, normal_95 * sqrt(s->count) / 2);
    return f;
}

static struct hb_overhead_errors sum_up(double *errors, uint32_t n)
{
    qsort(errors, n, sizeof *errors, compare_values);
    return (struct hb_overhead_errors){middle_of(errors, n), errors[n - 1]};
}

static double error_pct(const struct hb_overhead_point *p, double prediction)
{
    return 100 * fabs(prediction / p->measured_bytes - 1);
}

static uint32_t mark_outliers(const struct sample *s, struct hb_overhead_point *points,
                              const struct fit *f)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++)
        s->values[i] = fabs(rest_of(&points[i], f->used_slack) - f->reserve.value);
    qsort(s->values, s->count, sizeof *s->values, compare_values);
    double spread = middle_of(s->values, s->count);
    double limit = fmax(far_deviations * robust_deviation * spread, page_bytes);
    for (uint32_t i = 0; i < s->count; i++) {
        double away = fabs(rest_of(&points[i], f->used_slack) - f->reserve.value);
        points[i].outlier = away > limit;
        count += points[i].outlier;
    }
    return count;
}

void hb_overhead_fit(struct hb_arena *scratch, struct hb_overhead_point *points, uint32_t count,
                     struct hb_overhead *out)
{
    if (count < HB_OVERHEAD_FEWEST || count > HB_OVERHEAD_MOST)
        HB_BUG("a fit to %u records", count);
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct sample s = {points, count, NULL};
    s.values = hb_arena_alloc(scratch, (size_t)count * (count - 1) / 2 + count, sizeof *s.values);
    double *before = hb_arena_alloc(scratch, count, sizeof *before);
    double *crossed = hb_arena_alloc(scratch, count, sizeof *crossed);
    struct fit all = fit_sample(&s);
    *out = (struct hb_overhead){.reserve_bytes = all.reserve,
                                .slack = all.slack,
                                .used_slack = all.used_slack,
                                .slack_known = all.slack_known};
    out->outliers = mark_outliers(&s, points, &all);
    struct hb_overhead_point *rest = hb_arena_alloc(scratch, count, sizeof *rest);
    memcpy(rest, points, count * sizeof *rest);
    s = (struct sample){rest, count - 1, s.values};
    for (uint32_t i = 0; i < count; i++) {
        rest[i] = points[count - 1]; /* in the place of the one that is told by all others */
        struct fit f = fit_sample(&s);
        rest[i] = points[i];
        double x = points[i].predicted_bytes;
        before[i] = error_pct(&points[i], x);
        crossed[i] = error_pct(&points[i], f.reserve.value + (1 + f.used_slack) * x);
    }
    out->before = sum_up(before, count);
    out->crossed = sum_up(crossed, count);
    hb_arena_rewind(scratch, mark);
}
