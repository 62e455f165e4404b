/* Predicted against measured: one record at a time, then statistics over many. */
#ifndef HB_SIM_ENGINE_VALIDATE_H
#define HB_SIM_ENGINE_VALIDATE_H

#include "models/record.h"
#include "sim/engine/interval.h"
#include "sim/engine/run.h"

struct hb_device;

/* Parts of the total that are compared one by one. */
enum hb_part { HB_PART_ARGUMENT, HB_PART_OUTPUT, HB_PART_TEMP, HB_PART_HOST, HB_PART_COUNT };

struct hb_case {
    const char *id;
    const char *group;
    const char *device;   /* name of its profile */
    const char *failed;   /* why there is no prediction; null: there is one */
    bool speed;           /* seconds are compared, not bytes */
    bool verdict;         /* whether it fits is compared, and nothing else */
    enum hb_verdict word; /* of a verdict: with the interval */
    int64_t budget_bytes; /* of a verdict: what a program may use of the device */
    int64_t measured_bytes;
    int64_t predicted_bytes;
    int64_t low_bytes; /* of the prediction's interval */
    int64_t high_bytes;
    uint32_t kind;       /* hb_interval_kind */
    const char *like;    /* the records that the interval is from; null: none is told */
    int64_t usual_bytes; /* the usual formula: state, gradients, saved activations, logits */
    int64_t measured_part[HB_PART_COUNT]; /* -1: not measured */
    int64_t predicted_part[HB_PART_COUNT];
    double measured_seconds;
    double predicted_seconds;
    double error_pct;
    double usual_error_pct;
    int fits_measured; /* 1, 0; -1: not known */
    int fits_predicted;
    int verdicts_right; /* of HB_VERDICTS budgets around the measured peak */
    double seconds;     /* that the prediction took */
};

/* Arguments, outputs and host bytes are bookkeeping: off means by more than this and by more than
 * a thousandth. */
enum { HB_VERDICTS = 4, HB_PART_SLACK_BYTES = 4096 };

struct hb_stats {
    uint32_t n;      /* with a prediction */
    uint32_t peaks;  /* of n: of bytes, not of seconds */
    uint32_t failed; /* without */
    double median_abs_pct;
    double p90_abs_pct;
    double p95_abs_pct;
    double max_abs_pct;
    double bias_pct;
    uint32_t part_off[HB_PART_COUNT]; /* cases whose part is off, see HB_PART_SLACK_BYTES */
    double coverage;                  /* share of peaks within their interval */
    double median_width_pct;          /* of the interval, in parts of the prediction */
    double fit_agreement; /* share of right verdicts at 0.8, 0.9, 1.1, 1.25 x the measured peak */
};

/* Predicts a record that was read. device: for records of speed, may be null otherwise. The
 * program and its memory are left in the arena for those who want to explain them. */
void hb_validate_case(struct hb_arena *arena, const struct hb_record *record,
                      const struct hb_device *device, struct hb_case *out,
                      struct hb_program *program, struct hb_memory *memory);
/* usual: of the usual formula's errors instead of ours. */
struct hb_stats hb_validate_stats(struct hb_arena *scratch, const struct hb_case *const *cases,
                                  uint32_t count, bool usual);
/* Spearman's rank correlation of measured and predicted seconds, equal ones sharing their mean
 * rank. False where there is none: fewer than three predictions, or one side all equal. */
bool hb_validate_rank(struct hb_arena *scratch, const struct hb_case *const *cases, uint32_t count,
                      double *out);

#endif
