/* What the words of a log speak for, each by its weight: that a model is trained or run, that such
 * errors are explained to anybody, that they are only spoken of. The weights are learnt from texts
 * whose end is known (tests/golden/logs/weigh.py). */
#ifndef HB_SIM_HLO_EVIDENCE_H
#define HB_SIM_HLO_EVIDENCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "sim/hlo/logtext.h"

/* Weights are hundredths, in the logarithm of odds. */
struct hb_evidence_word {
    const char *text; /* a word; two neighbours with a space between; a stem, "infer*" */
    int trains;       /* above 0: it speaks for a step of training; below: for running a model */
    int teaches;      /* above 0: for a guide; below: for a report */
    int mentions;     /* above 0: such errors are spoken of; below: one was met */
};

extern const struct hb_evidence_word hb_evidence_words[];
extern const size_t hb_evidence_word_count;
/* Where no word is known. */
extern const struct hb_evidence_word hb_evidence_bias;

/* What a text has to show for a refusal that it speaks of. */
enum hb_report {
    HB_REPORT_NONE, /* only that there are such refusals */
    HB_REPORT_SAID, /* somebody says that memory is refused */
    HB_REPORT_TOLD  /* a program printed it, or somebody tells that he met it */
};

/* Sums of weights and bias. */
struct hb_evidence {
    int64_t trains;
    int64_t teaches;
    int64_t mentions;
    int64_t words; /* that have a weight for `trains` */
    int64_t told;  /* ... for `mentions` */
};

struct hb_evidence_reader;

struct hb_evidence_reader *hb_evidence_begin(struct hb_arena *arena);
/* Reads a line, or a part of one that ends between two words. */
void hb_evidence_take(struct hb_evidence_reader *reader, struct hb_span line);
struct hb_evidence hb_evidence_sum(const struct hb_evidence_reader *reader);

#endif
