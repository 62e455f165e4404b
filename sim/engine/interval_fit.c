/* Means pulled to those of wider kinds, and scores in their spreads: see interval_fit.h. */
#include "sim/engine/interval_fit.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"

enum { PPM = 1000000 };

/* One record that is off by more says no more; none is so well known that its like cannot be off
 * by this. Errors in parts of what is loose. */
static const double most_error = 0.6, least_error = 0.02;

static double error_of(const struct hb_interval_error *e)
{
    double error = fabs(e->part) / e->loose;
    return (error < most_error ? error : most_error) + least_error;
}

/* Of the level before; of the first, what pulls to nothing. */
static struct hb_interval_scale make_scale(const struct hb_interval_fit *f,
                                           const struct hb_interval_error *errors, uint32_t count,
                                           uint32_t level, uint32_t kind)
{
    double sum = 0, pull = level ? HB_INTERVAL_PULL : 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (hb_interval_kind_at(errors[i].kind, level) == kind) {
            sum += error_of(&errors[i]);
            n++;
        }
    if (level)
        sum += pull * hb_interval_scale(f->scales, f->scale_count, kind);
    return (struct hb_interval_scale){level, kind, (int32_t)(sum / (n + pull) * PPM + 0.5), n};
}

static int by_kind(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void fit_level(struct hb_interval_fit *f, const struct hb_interval_error *errors,
                      uint32_t count, uint32_t level, uint32_t *kinds)
{
    for (uint32_t i = 0; i < count; i++)
        kinds[i] = hb_interval_kind_at(errors[i].kind, level);
    qsort(kinds, count, sizeof *kinds, by_kind);
    uint32_t before = f->scale_count;
    struct hb_interval_fit wider = *f;
    for (uint32_t i = 0; i < count; i++)
        if (!i || kinds[i] != kinds[i - 1])
            f->scales[before++] = make_scale(&wider, errors, count, level, kinds[i]);
    f->scale_count = before;
}

static int by_value(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int32_t to_ppm(double value)
{
    static const double most = 2000; /* off by more is as bad; it stays within its type */
    double kept = value < most ? value : most;
    return (int32_t)lround((kept > -most ? kept : -most) * PPM);
}

static void fit_scores(struct hb_arena *arena, const struct hb_interval_error *unseen,
                       uint32_t count, struct hb_interval_fit *out)
{
    int32_t *spreads = hb_arena_alloc(arena, count + 1, sizeof *spreads);
    out->scores_ppm = hb_arena_alloc(arena, count + 1, sizeof *out->scores_ppm);
    out->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_interval_error *e = &unseen[i];
        double spread = e->loose * hb_interval_scale(out->scales, out->scale_count, e->kind);
        spreads[i] = to_ppm(spread);
        out->scores_ppm[i] = to_ppm(e->part / spread);
    }
    qsort(out->scores_ppm, count, sizeof *out->scores_ppm, by_value);
    qsort(spreads, count, sizeof *spreads, by_value);
    out->usual_ppm = count ? spreads[count / 2] : PPM;
}

void hb_interval_fit(struct hb_arena *arena, const struct hb_interval_error *golden,
                     uint32_t golden_count, const struct hb_interval_error *unseen,
                     uint32_t unseen_count, struct hb_interval_fit *out)
{
    uint32_t *kinds = hb_arena_alloc(arena, golden_count + 1, sizeof *kinds);
    *out = (struct hb_interval_fit){0};
    out->scales = hb_arena_alloc(arena, (size_t)golden_count * (HB_INTERVAL_LEVELS + 1) + 1,
                                 sizeof *out->scales);
    for (uint32_t level = 0; level <= HB_INTERVAL_LEVELS; level++)
        fit_level(out, golden, golden_count, level, kinds);
    fit_scores(arena, unseen, unseen_count, out);
}
