/* What a machine takes beside a program, from measured peaks: measured = reserve + (1 + slack) x
 * predicted. Slack is the Theil-Sen slope less one (the median of the slopes through all pairs of
 * records; up to 29 % of them may be wrong), with Sen's 95 % interval (JASA 63, 1968: from
 * Kendall's variance); reserve the median of what remains, with the interval of order statistics. A
 * slack that the records do not tell from none is taken as none. */
#ifndef HB_SIM_ENGINE_OVERHEAD_H
#define HB_SIM_ENGINE_OVERHEAD_H

#include <stdbool.h>
#include <stdint.h>

struct hb_arena;

struct hb_overhead_point {
    const char *id;
    double predicted_bytes;
    double measured_bytes;
    bool outlier; /* set by the fit: further than five robust deviations from it */
};

struct hb_fit_interval {
    double value;
    double low;
    double high;
};

/* Absolute errors of predictions, in per cent of what was measured. */
struct hb_overhead_errors {
    double median_pct;
    double max_pct;
};

struct hb_overhead {
    struct hb_fit_interval reserve_bytes;
    struct hb_fit_interval slack; /* what the records say, ... */
    double used_slack; /* ... and what is used: 0 where that interval has 0 or lies below */
    bool slack_known;  /* false: too few records, or all of one size */
    uint32_t outliers;
    struct hb_overhead_errors before;  /* of predictions alone */
    struct hb_overhead_errors crossed; /* each record predicted from a fit to all others */
};

enum { HB_OVERHEAD_FEWEST = 3, HB_OVERHEAD_FEWEST_SLACK = 5, HB_OVERHEAD_MOST = 2000 };

/* count from HB_OVERHEAD_FEWEST to HB_OVERHEAD_MOST; predictions and measurements above 0. */
void hb_overhead_fit(struct hb_arena *scratch, struct hb_overhead_point *points, uint32_t count,
                     struct hb_overhead *out);

#endif
