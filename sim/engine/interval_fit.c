/* Proportional fitting of factors, and scores out of their folds: see interval_fit.h. */
#include "sim/engine/interval_fit.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"

enum { PPM = 1000000, TURNS = 20 };

/* One record that is off by more says no more of its like; none is so well known that its like
 * cannot be off by this. */
static const double most_error = 0.15, least_error = 0.003;

static double error_of(const struct hb_interval_error *e)
{
    double error = fabs(e->part);
    return (error < most_error ? error : most_error) + least_error;
}

static int32_t to_ppm(double value)
{
    static const double most = 2000; /* off by more is as bad; it stays within its type */
    double kept = value < most ? value : most;
    return (int32_t)lround((kept > -most ? kept : -most) * PPM);
}

/* Without those of the fold. */
struct fit {
    const struct hb_interval_error *errors;
    uint32_t count;
    uint32_t fold;
};

static double mean_error(const struct fit *f)
{
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->count; i++)
        if (i % HB_INTERVAL_FOLDS != f->fold) {
            sum += error_of(&f->errors[i]);
            n++;
        }
    return n ? sum / n : least_error;
}

static void turn_fact(const struct fit *f, double mean, enum hb_interval_fact fact,
                      struct hb_interval_family *out)
{
    double found[HB_INTERVAL_VALUES], told[HB_INTERVAL_VALUES];
    for (int v = 0; v < HB_INTERVAL_VALUES; v++) {
        found[v] = told[v] = HB_INTERVAL_PULL * mean;
        out->factors_ppm[fact][v] = PPM;
    }
    for (uint32_t i = 0; i < f->count; i++) {
        uint32_t value = hb_interval_value(f->errors[i].kind, fact);
        if (i % HB_INTERVAL_FOLDS == f->fold)
            continue;
        found[value] += error_of(&f->errors[i]);
        told[value] += hb_interval_spread(out, f->errors[i].kind);
    }
    for (int v = 0; v < HB_INTERVAL_VALUES; v++)
        out->factors_ppm[fact][v] = to_ppm(found[v] / told[v]);
}

static struct hb_interval_family fit_factors(const struct hb_interval_error *errors, uint32_t count,
                                             uint32_t fold)
{
    struct fit f = {errors, count, fold};
    double mean = mean_error(&f);
    struct hb_interval_family out = {.spread_ppm = to_ppm(mean)};
    for (int k = 0; k < HB_FACT_COUNT; k++)
        for (int v = 0; v < HB_INTERVAL_VALUES; v++)
            out.factors_ppm[k][v] = PPM;
    for (int turn = 0; turn < TURNS; turn++)
        for (int k = 0; k < HB_FACT_COUNT; k++)
            turn_fact(&f, mean, (enum hb_interval_fact)k, &out);
    return out;
}

static int by_value(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int32_t *find_scores(struct hb_arena *arena, const struct hb_interval_error *errors,
                            uint32_t count)
{
    int32_t *scores = hb_arena_alloc(arena, count, sizeof *scores);
    for (uint32_t fold = 0; fold < HB_INTERVAL_FOLDS; fold++) {
        struct hb_interval_family others = fit_factors(errors, count, fold);
        for (uint32_t i = fold; i < count; i += HB_INTERVAL_FOLDS)
            scores[i] = to_ppm(errors[i].part / hb_interval_spread(&others, errors[i].kind));
    }
    qsort(scores, count, sizeof *scores, by_value);
    return scores;
}

void hb_interval_fit(struct hb_arena *arena, const struct hb_interval_error *errors, uint32_t count,
                     uint32_t family, struct hb_interval_family *out)
{
    struct hb_interval_error *own = hb_arena_alloc(arena, count, sizeof *own);
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (hb_interval_family_of(errors[i].kind) == family)
            own[n++] = errors[i];
    *out = (struct hb_interval_family){0};
    if (!n)
        return;
    *out = fit_factors(own, n, HB_INTERVAL_FOLDS); /* none is left out */
    out->scores_ppm = find_scores(arena, own, n);
    out->count = n;
}
