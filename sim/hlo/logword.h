/* A stretch of log text as words, amounts and breaks: what a sentence is made of, whoever wrote
 * it. "OutOfMemoryError", "OUT_OF_MEMORY" and "Out of memory" are the same words. */
#ifndef HB_SIM_HLO_LOGWORD_H
#define HB_SIM_HLO_LOGWORD_H

#include "sim/hlo/logtext.h"

enum hb_word_kind {
    HB_WORD_TEXT,
    HB_WORD_NUMBER, /* an amount, or a number that is none */
    HB_WORD_PAUSE,  /* a comma, a bracket: the clause ends, not the sentence */
    HB_WORD_END     /* of the sentence */
};

enum { HB_WORD_CAP = 16 };

struct hb_word {
    enum hb_word_kind kind;
    char text[HB_WORD_CAP];  /* letters in lower case; of a number its first digits, and its sign */
    struct hb_amount amount; /* bytes -1: a number that can be no amount */
    bool has_unit;
    bool keys; /* ':' or '=' stands behind it */
    struct hb_span span;
};

/* Splits s; returns how many, at most cap. */
int hb_words_of(struct hb_span s, struct hb_word *out, int cap);

#endif
