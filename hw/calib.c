/* Robust repetition: see calib.h. The interval of the median is the one from order statistics:
 * ranks n/2 +- 0.98 sqrt(n) (binomial, 95 %), which needs no assumption about the distribution. */
#include "hw/calib.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"

enum { MOST_SAMPLES = 400, WARM_UPS = 2 };
enum { SHORTEST_SAMPLE_NS = 300000, MOST_REPEATS = 1 << 20 };

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of a sorted row, between the two nearest. */
static double quantile(const double *sorted, int count, double part)
{
    double at = part * (count - 1);
    int below = (int)at;
    int above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

static double median_of(const double *values, int count)
{
    double sorted[MOST_SAMPLES];
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_values);
    return quantile(sorted, count, 0.5);
}

static int count_outliers(const double *values, int count, double median)
{
    double away[MOST_SAMPLES] = {0};
    for (int i = 0; i < count; i++)
        away[i] = fabs(values[i] - median);
    /* 1.4826: the median distance of a normal distribution as its standard deviation. */
    double limit = 5 * 1.4826 * median_of(away, count);
    int far = 0;
    for (int i = 0; i < count; i++)
        far += fabs(values[i] - median) > limit && limit > 0;
    return far;
}

struct hb_sample hb_sample_of(const double *values, int count)
{
    double sorted[MOST_SAMPLES];
    if (count < 1 || count > MOST_SAMPLES)
        HB_BUG("statistics of %d values", count);
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_values);
    struct hb_sample s = {
        .count = count,
        .median = quantile(sorted, count, 0.5),
        .low = quantile(sorted, count, 0.05),
        .high = quantile(sorted, count, 0.95),
    };
    int away = (int)ceil(0.98 * sqrt(count));
    int first = (count - 1) / 2 - away;
    int last = count / 2 + away;
    double width = sorted[last < count ? last : count - 1] - sorted[first > 0 ? first : 0];
    s.spread = s.median > 0 ? width / 2 / s.median : 0;
    s.outliers = count_outliers(values, count, s.median);
    int third = count / 3;
    if (third > 0) {
        double begin = median_of(values, third);
        s.drift = begin > 0 ? median_of(values + count - third, third) / begin - 1 : 0;
    }
    return s;
}

static void mask_interrupt(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(how, &set, NULL);
}

void hb_calib_hold(void)
{
    mask_interrupt(SIG_BLOCK);
}

void hb_calib_start(struct hb_calib *c, struct hb_env *env, int64_t budget_ns)
{
    *c = (struct hb_calib){
        .env = env,
        .deadline_ns = env->now_ns() + budget_ns,
        .share_ns = budget_ns / 100,
        .tight = 0.005,
        .least = 7,
        .most = MOST_SAMPLES,
    };
    hb_calib_hold();
}

/* A pending Ctrl-C has done its work: it is taken off before the signal is let through again. */
void hb_calib_end(struct hb_calib *c)
{
    sigset_t set;
    int taken;
    if (hb_calib_stopped(c) && c->interrupted) {
        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigwait(&set, &taken);
    }
    mask_interrupt(SIG_UNBLOCK);
}

bool hb_calib_stopped(struct hb_calib *c)
{
    sigset_t pending;
    if (sigpending(&pending) == 0 && sigismember(&pending, SIGINT) == 1)
        c->interrupted = true;
    return c->interrupted || (!c->essential && c->env->now_ns() >= c->deadline_ns);
}

/* So many repetitions that a sample is long against the clock's grain and the cost of marks. */
static bool choose_repeats(struct hb_calib *c, hb_calib_work *work, void *ctx, double least_ns,
                           int *out_repeats)
{
    int repeats = 1;
    double ns;
    for (int i = 0; i < WARM_UPS; i++)
        if (!work(ctx, 1, &ns))
            return false;
    while (ns < least_ns && repeats < MOST_REPEATS && !hb_calib_stopped(c)) {
        double want = least_ns / (ns > 1 ? ns : 1) * repeats * 1.2;
        repeats = want > repeats * 16. ? repeats * 16
                  : want > repeats     ? (int)want + 1
                                       : repeats * 2;
        if (!work(ctx, repeats, &ns))
            return false;
    }
    *out_repeats = repeats;
    return true;
}

/* A quantity's share is short, and this process may be put aside for as long by others: what was
 * measured then must not stand alone. A median of three survives it. */
static bool may_go_on(struct hb_calib *c, int count, int64_t end_ns)
{
    enum { FEWEST = 3 };
    int64_t now = c->env->now_ns();
    return now < end_ns || (count < FEWEST && now < c->deadline_ns);
}

bool hb_calib_measure(struct hb_calib *c, hb_calib_work *work, void *ctx, struct hb_sample *out)
{
    double values[MOST_SAMPLES];
    int repeats = 1;
    int count = 0;
    if (hb_calib_stopped(c) || !choose_repeats(c, work, ctx, SHORTEST_SAMPLE_NS, &repeats))
        return false;
    int64_t end_ns = c->env->now_ns() + c->share_ns;
    do {
        double ns;
        if (!work(ctx, repeats, &ns))
            return false;
        values[count++] = ns / repeats;
        *out = hb_sample_of(values, count);
        if (count >= c->least && out->spread <= c->tight)
            break;
    } while (count < c->most && may_go_on(c, count, end_ns) && !hb_calib_stopped(c));
    return true;
}

/* Twice as many samples would fit, so that a device which gets faster does not end it early. */
bool hb_calib_stretch(struct hb_calib *c, hb_calib_work *work, void *ctx, double ns,
                      struct hb_stretch *out)
{
    double values[MOST_SAMPLES];
    double least_ns = fmax(SHORTEST_SAMPLE_NS, 2 * ns / MOST_SAMPLES);
    int repeats = 1;
    int count = 0;
    *out = (struct hb_stretch){.ns = 0};
    if (hb_calib_stopped(c) || !choose_repeats(c, work, ctx, least_ns, &repeats))
        return false;
    int64_t end_ns = c->env->now_ns() + (int64_t)(2 * ns);
    do {
        double took;
        if (!work(ctx, repeats, &took))
            return false;
        values[count++] = took / repeats;
        out->ns += took;
    } while (count < MOST_SAMPLES && out->ns < ns && c->env->now_ns() < end_ns &&
             !hb_calib_stopped(c));
    int half = count / 2;
    out->all = hb_sample_of(values, count);
    out->burst = out->all.low;
    out->sustained = median_of(values + half, count - half);
    return true;
}
