/* Repeating a measurement until it can be believed: warm-up, repeats until the median is known
 * tightly or time is up, quantiles, outliers, drift. Knows nothing of devices. */
#ifndef HB_HW_CALIB_H
#define HB_HW_CALIB_H

#include <stdbool.h>
#include <stdint.h>

struct hb_env;

/* One measured quantity, per repetition. */
struct hb_sample {
    int count;
    double median;
    double low;    /* 5 % quantile */
    double high;   /* 95 % quantile */
    double spread; /* half the 95 % interval of the median, as a part of it */
    double drift;  /* last third against first third, as a part; > 0: got slower */
    int outliers;  /* further than five robust deviations from the median */
};

/* One thing done again and again for seconds. */
struct hb_stretch {
    struct hb_sample all;
    double burst;     /* the fastest twentieth: what a short measurement reads */
    double sustained; /* median of the second half */
    double ns;        /* how long it was under way */
};

struct hb_calib {
    struct hb_env *env;
    int64_t deadline_ns; /* on env's clock: nothing starts after it, unless ... */
    bool essential;      /* ... it is what a profile must have: one sample of that is taken */
    int64_t share_ns;    /* longest that one quantity takes, but for three samples */
    double tight;        /* spread that is tight enough, 0.005 */
    int least;           /* samples at least, unless time is up */
    int most;
    bool interrupted; /* Ctrl-C was seen */
};

/* Does the work `repeats` times and says how long that took. False: it cannot be done. */
typedef bool hb_calib_work(void *ctx, int repeats, double *out_ns);

/* From here on Ctrl-C no longer ends the program: hb_calib_stopped tells of it. To be called before
 * a driver starts threads of its own: they take over what holds now. */
void hb_calib_hold(void);
/* Holds Ctrl-C too. */
void hb_calib_start(struct hb_calib *c, struct hb_env *env, int64_t budget_ns);
/* Ctrl-C ends the program again. */
void hb_calib_end(struct hb_calib *c);
/* Time is up, or the user has had enough. */
bool hb_calib_stopped(struct hb_calib *c);
/* False: the work failed, or time was up before the first sample. */
bool hb_calib_measure(struct hb_calib *c, hb_calib_work *work, void *ctx, struct hb_sample *out);
/* The same for so many ns, or until time is up. */
bool hb_calib_stretch(struct hb_calib *c, hb_calib_work *work, void *ctx, double ns,
                      struct hb_stretch *out);
/* Statistics of values in the order they were taken; sorts a copy. count >= 1. */
struct hb_sample hb_sample_of(const double *values, int count);

#endif
