/* Words and amounts in a stretch of log text that is not terminated and not trusted: it may hold
 * any byte. All functions stay within [at, end).
 * The tools whose prints are read here (XLA, PyTorch, Megatron, DeepSpeed, MaxText) divide by
 * 1024 whatever they call the unit, so "17.62G", "59.8 GB" and "59.8 GiB" are all binary. */
#ifndef HB_SIM_HLO_LOGTEXT_H
#define HB_SIM_HLO_LOGTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hb_span {
    const char *at;
    const char *end;
};

/* A size as it was printed. */
struct hb_amount {
    int64_t bytes;
    int64_t step_bytes; /* what the last printed digit is worth; 1: exact */
};

struct hb_span hb_span_of(const char *text);
/* Most do not in their first byte, and are asked for at each. */
static inline bool hb_span_starts(struct hb_span s, const char *word)
{
    for (; *word; word++, s.at++)
        if (s.at >= s.end || *s.at != *word)
            return false;
    return true;
}
/* With one of them. */
bool hb_span_starts_any(struct hb_span s, const char *const *words, size_t count);
#define HB_SPAN_STARTS_ANY(s, words) hb_span_starts_any(s, words, sizeof(words) / sizeof *(words))
/* Goes behind the next word; false (and s where it was) where there is none. */
bool hb_span_find(struct hb_span *s, const char *word);
bool hb_span_has(struct hb_span s, const char *word);
/* One of them. */
bool hb_span_has_any(struct hb_span s, const char *const *words, size_t count);
#define HB_SPAN_HAS_ANY(s, words) hb_span_has_any(s, words, sizeof(words) / sizeof *(words))
/* So many bytes of its beginning or end; all of it where it has fewer. */
struct hb_span hb_span_first(struct hb_span s, ptrdiff_t bytes);
struct hb_span hb_span_last(struct hb_span s, ptrdiff_t bytes);
/* Skips bytes that are in set. */
void hb_span_skip(struct hb_span *s, const char *set);
/* A whole number. Goes behind it. */
bool hb_span_int(struct hb_span *s, int64_t *out);
/* "17.62G", "2.00 GiB", "512", "137,430,636,656 bytes" from here on, behind blanks, quotes, dots
 * and signs of assignment; no unit: unit_bytes each. An exact figure that follows, as in "10.64GiB
 * (11429599132 bytes)" or "(rounded to 256)", is taken instead. Goes behind it. */
bool hb_span_amount(struct hb_span *s, int64_t unit_bytes, struct hb_amount *out);
/* Whether 19 digits or more come: a count of bytes that no machine has. */
bool hb_span_is_absurd(struct hb_span s);
/* The amount that ends the span, blanks aside, as in "1.04 GiB " before "is free". */
bool hb_span_amount_last(struct hb_span s, struct hb_amount *out);
/* Copies what stands before any byte of stops (or all) into text of cap bytes, terminated;
 * control bytes become '?'. Goes behind what was read. */
void hb_span_copy(struct hb_span *s, const char *stops, char *text, size_t cap);

#endif
