/* Walking over HLO text: white space and comments, words, numbers, bracketed pieces.
 * Every step checks the end, so any bytes may come. */
#ifndef HB_SIM_HLO_LEX_H
#define HB_SIM_HLO_LEX_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sim/hlo/text.h"

struct hb_hlo_lex {
    const char *at;
    const char *end;
};

void hb_hlo_skip_all_space(struct hb_hlo_lex *lex);
/* Over blanks, line ends and comments, those from two slashes to the line's end as well. Mostly
 * none or one blank stands there: that ends here. */
static inline void hb_hlo_skip_space(struct hb_hlo_lex *lex)
{
    if (lex->at < lex->end && *lex->at == ' ')
        lex->at++;
    if (lex->at < lex->end && ((unsigned char)*lex->at <= ' ' || *lex->at == '/'))
        hb_hlo_skip_all_space(lex);
}
/* Over blanks only, up to the line's end. */
void hb_hlo_skip_blanks(struct hb_hlo_lex *lex);
/* Space, then c if it comes next. */
static inline bool hb_hlo_take(struct hb_hlo_lex *lex, char c)
{
    if (lex->at >= lex->end || *lex->at != c)
        hb_hlo_skip_space(lex);
    if (lex->at >= lex->end || *lex->at != c)
        return false;
    lex->at++;
    return true;
}
/* Space, then a decimal number that fits. */
bool hb_hlo_take_int(struct hb_hlo_lex *lex, int64_t *out);
/* A name: letters, digits and _ - . after an optional %, which is left out. Empty if none. */
struct hb_hlo_span hb_hlo_take_name(struct hb_hlo_lex *lex);
/* From an opening bracket to behind its match, strings inside respected; false at the end. */
bool hb_hlo_skip_brackets(struct hb_hlo_lex *lex);
/* `key=value` of a list divided by commas: a word, a string, what stands in brackets, and brackets
 * behind, over as many lines as it takes. False where no key begins, or brackets stay open. */
bool hb_hlo_take_attr(struct hb_hlo_lex *lex, struct hb_hlo_span *out_key,
                      struct hb_hlo_span *out_value);

static inline bool hb_hlo_span_is(struct hb_hlo_span span, const char *word)
{
    size_t len = strlen(word); /* known where the word is written out */
    return span.len == len && memcmp(span.at, word, len) == 0;
}
/* Where word stands in span; null: nowhere. */
const char *hb_hlo_span_find(struct hb_hlo_span span, const char *word);
struct hb_hlo_lex hb_hlo_lex_span(struct hb_hlo_span span);

#endif
