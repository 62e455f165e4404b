/* What is known of the error of a predicted peak: an interval from the errors on measured records
 * that no rule was learnt from (tests/calibration). Normalised split conformal prediction: a step
 * has a spread, in bytes, that says how hard it is; the score of a record is its error in spreads.
 * Of n scores, those of certain ranks bound the interval of confidence c, so that (n + 1) (1 - c)
 * of them may lie outside: where the records and the question are drawn alike it holds the truth
 * with at least that probability, whatever the model's errors are and however good the spread is (a
 * bad one only makes it wide). A quarter of what may lie outside is below, the rest above: a plan
 * asks the upper end, and a lower end that is nearer would make none better.
 *
 * spread = scale of its kind x (3/10 of the peak + working values and communication at the peak)
 *
 * What is alive within one layer's pass only is what another order, fusion or life would change;
 * arguments and what is kept are bookkeeping. The scale is the mean of |error| / (the bracket) on
 * records that rules were learnt from (tests/golden): they would flatter an interval, but tell
 * easy from hard, and are none of those whose scores are ranked. A kind is one of the compiler, of
 * the chip, and of whether it has experts, is of a form that is known to be hard, has few layers,
 * has rare knobs; each of these narrows the kind of before it, and a scale counts as many records
 * of the wider kind's as HB_INTERVAL_PULL beside its own.
 *
 * The upper end rises with the peak and with what is working, so that a search can turn a bound on
 * one into a bound on the other. */
#ifndef HB_SIM_ENGINE_INTERVAL_H
#define HB_SIM_ENGINE_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "models/spec.h"

struct hb_arena;
struct hb_memory;

/* The mean error of a kind, of its first traits alone (HB_INTERVAL_LEVELS: of all). */
struct hb_interval_scale {
    uint32_t level;    /* how many of the traits count, from 0 */
    uint32_t kind;     /* hb_interval_kind, the others 0 */
    int32_t scale_ppm; /* of what hb_interval_loose says */
    uint32_t records;
};
/* interval_table.c, written by `hbmsim validate --calibration`. */
struct hb_interval_table {
    const struct hb_interval_scale *scales; /* by level, then by kind; the first has level 0 */
    uint32_t scale_count;
    const int32_t *scores_ppm; /* rising: (measured - predicted) / spread, in millionths */
    uint32_t count;
    int32_t usual_ppm;      /* the median spread of those, in parts of the peak */
    const char *first_date; /* of the records: "2026-11-22" */
    const char *last_date;
};
extern const struct hb_interval_table hb_interval_table;

enum { HB_INTERVAL_LEVELS = 6, HB_INTERVAL_PULL = 40 };

struct hb_interval {
    int64_t low_bytes;  /* low <= peak <= high */
    int64_t high_bytes; /* what verdicts and plans ask */
    double confidence;  /* of what is known: what was asked for or, where records are too few, less;
                           0: nothing is known, both ends are the peak */
    uint32_t records;   /* that it is from */
    const char *width;  /* beside others: "narrow", "usual", "wide"; "" with none */
    const char *like;   /* which kind of step: "xla-tpu, v5p, dense, 9 % working"; "" with none */
};

enum hb_verdict { HB_VERDICT_FITS, HB_VERDICT_TIGHT, HB_VERDICT_NOT };

/* What of a configuration decides its scale; cells of a search settle it. */
uint32_t hb_interval_kind(const struct hb_spec *spec);
/* Of a kind; false: nothing is known of it. */
bool hb_interval_is_known(uint32_t kind);
/* Its first traits alone: those that a scale of that level is of. */
uint32_t hb_interval_kind_at(uint32_t kind, uint32_t level);
const char *hb_interval_kind_words(struct hb_arena *arena, uint32_t kind);
/* The bracket above, in bytes. */
double hb_interval_loose(const struct hb_memory *memory);
/* That a table has for a kind: of the narrowest that has records. */
double hb_interval_scale(const struct hb_interval_scale *scales, uint32_t count, uint32_t kind);

/* confidence: above 0, below 1. */
void hb_interval_make(struct hb_arena *arena, const struct hb_spec *spec, double confidence,
                      const struct hb_memory *memory, struct hb_interval *out);
/* high_bytes of a configuration; a peak of INT64_MAX stays. */
int64_t hb_interval_high(const struct hb_spec *spec, double confidence,
                         const struct hb_memory *memory);
/* No larger peak has its high_bytes within the budget, of configurations of that kind, whatever is
 * working: what a search may exclude by. */
int64_t hb_interval_most_peak(const struct hb_spec *spec, double confidence, int64_t budget_bytes);

enum hb_verdict hb_interval_verdict(const struct hb_interval *i, int64_t budget_bytes);
/* "fits", "tight", "does not fit". */
const char *hb_verdict_name(enum hb_verdict verdict);

#endif
