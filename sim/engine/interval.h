/* What is known of the error of a predicted peak: an interval from the errors on measured records
 * that no rule was learnt from (tests/calibration). Normalised split conformal prediction: a step
 * has a spread, in parts of its peak, that says how hard it is; the score of a record is its error
 * in spreads. Of n scores those of certain ranks bound the interval of confidence c, so that
 * (n + 1) (1 - c) of them lie outside: where the records and the question are drawn alike it holds
 * the truth with at least that probability, whatever the model's errors are and however good the
 * spread is (a bad one only makes it wide). A third of what may lie outside is below, the rest
 * above: a search asks the upper end, and the errors that are large are mostly above on TPU.
 *
 * spread = mean error of the compiler's records x a factor for each fact that it is known by
 *
 * Facts: chip, kind of experts, few layers, form (nested scans, loops, pipelines, split sequences),
 * an optimizer or a kernel that is rare, no activation constraints, states on the host, MaxText's
 * own program, sequences of a microbatch on a device. Factors are fitted to the same records
 * (interval_fit.h), each one's score with those that were fitted without it (cross-conformal
 * prediction). Chosen by cross-validation within the records that the table is from: policies,
 * axes, sizes, where the peak is and what of it works told hardly more, a random forest over all
 * that the program knows and its peaks in other orders no more of TPU's errors.
 *
 * The ends are the peak times a factor that depends on the configuration alone, not on the peak, so
 * that a search can turn a bound on one into a bound on the other. A step fits where the upper end
 * does. */
#ifndef HB_SIM_ENGINE_INTERVAL_H
#define HB_SIM_ENGINE_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "models/spec.h"

struct hb_arena;

/* Of a kind, beside the family (of compilers). */
enum hb_interval_fact {
    HB_FACT_CHIP,
    HB_FACT_EXPERTS,
    HB_FACT_LAYERS,
    HB_FACT_FORM,
    HB_FACT_KNOBS,
    HB_FACT_FREE,
    HB_FACT_HOST,
    HB_FACT_PROGRAM,
    HB_FACT_SEQUENCES,
    HB_FACT_COUNT
};
enum { HB_INTERVAL_FAMILIES = 3, HB_INTERVAL_VALUES = 4 };

/* What hb_interval_fit makes of the records of one compiler's family. */
struct hb_interval_family {
    int32_t spread_ppm; /* mean error; 0: there are no records */
    int32_t factors_ppm[HB_FACT_COUNT][HB_INTERVAL_VALUES];
    const int32_t *scores_ppm; /* rising: (measured / predicted - 1) / spread */
    uint32_t count;
};
/* interval_table.c, written by `hbmsim validate --calibration`. */
struct hb_interval_table {
    const struct hb_interval_family *families;
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
    const char *like;   /* what kind of step it is: "xla-tpu, v5p, dense"; "" where none is known */
};

enum hb_verdict { HB_VERDICT_FITS, HB_VERDICT_TIGHT, HB_VERDICT_NOT };

/* What of a configuration decides its spread; cells of a search settle it. */
uint32_t hb_interval_kind(const struct hb_spec *spec);
/* Of a kind. HB_INTERVAL_FAMILIES: none is known of it. */
uint32_t hb_interval_family_of(uint32_t kind);
/* Below HB_INTERVAL_VALUES. */
uint32_t hb_interval_value(uint32_t kind, enum hb_interval_fact fact);
/* In parts of the peak. */
double hb_interval_spread(const struct hb_interval_family *family, uint32_t kind);

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
