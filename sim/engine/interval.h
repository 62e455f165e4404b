/* What is known of the error of a predicted peak: an interval from the errors on measured records
 * that no rule was learnt from (tests/calibration). Split conformal prediction: of n records like
 * this one, each with its ratio of measured to predicted peak, those of rank floor((n + 1) a / 2)
 * from below and from above bound the interval of confidence 1 - a. Where the records and the
 * question are drawn alike it holds the truth with at least that probability, whatever the model's
 * errors are. "Like this": in the narrowest of a few groupings that has records enough, for 95 % 39
 * of them or, so that the narrow ones count early, 19, which reach 90; what is reached is said. The
 * groupings (Mondrian categories) are by compiler; chip; whole or chunked logits; and sort of step:
 * usual dense ones, usual ones with experts, those with unusual knobs or few layers, those with
 * pipelines, loops, nested scans, split sequences or states on the host, those without activation
 * constraints. The widest is all of them. A step fits where the upper end does.
 *
 * The ends are the peak times a factor that depends on the configuration alone, not on the peak, so
 * that a search can turn a bound on one into a bound on the other. */
#ifndef HB_SIM_ENGINE_INTERVAL_H
#define HB_SIM_ENGINE_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "models/spec.h"

struct hb_arena;

/* One calibration record: interval_table.c has them by rising ratio, written by `hbmsim validate
 * --calibration`. */
struct hb_interval_row {
    uint32_t kind;     /* hb_interval_kind of its configuration */
    int32_t ratio_ppm; /* measured / predicted, in millionths */
};
struct hb_interval_table {
    const struct hb_interval_row *rows;
    uint32_t count;
    const char *first_date; /* of the records: "2026-11-22" */
    const char *last_date;
};
extern const struct hb_interval_table hb_interval_table;

struct hb_interval {
    int64_t low_bytes;  /* low <= peak <= high */
    int64_t high_bytes; /* what verdicts and plans ask */
    double confidence;  /* of what is known: what was asked for or, where records are too few, less;
                           0: nothing is known, both ends are the peak */
    uint32_t records;   /* that it is from */
    const char *like;   /* which they are: "xla-tpu, v5p, usual dense steps"; "" with none */
};

enum hb_verdict { HB_VERDICT_FITS, HB_VERDICT_TIGHT, HB_VERDICT_NOT };

/* What of a configuration decides which records are like it. */
uint32_t hb_interval_kind(const struct hb_spec *spec);
/* confidence: above 0, below 1. */
void hb_interval_make(struct hb_arena *arena, const struct hb_spec *spec, double confidence,
                      int64_t peak_bytes, struct hb_interval *out);
/* high_bytes of a configuration; INT64_MAX stays. */
int64_t hb_interval_high(const struct hb_spec *spec, double confidence, int64_t peak_bytes);
/* The largest peak whose high_bytes may be within the budget, of configurations of that kind: what
 * a search may exclude by, whose cells settle the kind. */
int64_t hb_interval_most_peak(const struct hb_spec *spec, double confidence, int64_t budget_bytes);

enum hb_verdict hb_interval_verdict(const struct hb_interval *i, int64_t budget_bytes);
/* "fits", "tight", "does not fit". */
const char *hb_verdict_name(enum hb_verdict verdict);

#endif
