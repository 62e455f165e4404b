/* A line of a log, taken apart: its words, what each may mean, and questions about what stands
 * where. Words that lie beyond the line are no words. */
#ifndef HB_SIM_HLO_LOGSENTENCE_H
#define HB_SIM_HLO_LOGSENTENCE_H

#include <string.h>

#include "sim/hlo/logmeaning.h"
#include "sim/hlo/logword.h"

enum { HB_SENTENCE_WORDS = 512 };

struct hb_sentence {
    struct hb_span span;
    struct hb_word word[HB_SENTENCE_WORDS];
    int bits[HB_SENTENCE_WORDS];
    bool taken[HB_SENTENCE_WORDS]; /* a word that told an amount's meaning tells no other's */
    int count;
};

void hb_sentence_read(struct hb_span s, struct hb_sentence *line);
/* The words between the ends around word i of line. */
void hb_sentence_around(const struct hb_sentence *line, int i, struct hb_sentence *part);
/* Most words differ in their first letter, and each word of a line is asked for hundreds. */
static inline bool hb_sentence_is(const struct hb_sentence *l, int i, const char *text)
{
    return i >= 0 && i < l->count && l->word[i].text[0] == text[0] &&
           l->word[i].kind == HB_WORD_TEXT && strcmp(l->word[i].text, text) == 0;
}
/* Any of words, which end with NULL. */
bool hb_sentence_is_any(const struct hb_sentence *l, int i, const char *const *words);
/* The first word with any of the bits among the next `far` ahead of i, in the same sentence; -1. */
int hb_sentence_ahead(const struct hb_sentence *l, int i, int far, int bits);
/* The same among those before it. */
int hb_sentence_behind(const struct hb_sentence *l, int i, int far, int bits);
/* The nearest of words, which end with NULL, among the `far` before i, in the same sentence; -1. */
int hb_sentence_nearest(const struct hb_sentence *l, int i, int far, const char *const *words);
/* The same among those ahead of it. */
int hb_sentence_next(const struct hb_sentence *l, int i, int far, const char *const *words);
bool hb_sentence_has(const struct hb_sentence *l, int bits);
bool hb_sentence_has_pair(const struct hb_sentence *l, const char *first, const char *second);
bool hb_sentence_has_word(const struct hb_sentence *l, const char *text);
/* Where the quotation that word i stands in begins, its mark's index, if it is part of a sentence:
 * of a message that the sentence only names. -1: it is none, or is what a key is of. */
int hb_sentence_quoted(const struct hb_sentence *l, int i);
/* "... for the job", "to each pod": for what somebody asks the machine's memory. */
bool hb_sentence_is_job(const struct hb_sentence *l, int i);
/* Whether "not" or the like is among the `far` words before i. */
bool hb_sentence_negates(const struct hb_sentence *l, int i, int far);

#endif
