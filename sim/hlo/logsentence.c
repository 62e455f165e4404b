/* Sentences: see logsentence.h. */
#include "sim/hlo/logsentence.h"

#include <string.h>

void hb_sentence_read(struct hb_span s, struct hb_sentence *line)
{
    line->span = s;
    line->count = hb_words_of(s, line->word, HB_SENTENCE_WORDS);
    for (int i = 0; i < line->count; i++) {
        bool text = line->word[i].kind == HB_WORD_TEXT;
        line->bits[i] = text ? hb_meaning_of(line->word[i].text) : 0;
        line->taken[i] = false;
        if (hb_sentence_is(line, i, "most") && !hb_sentence_is(line, i - 1, "at"))
            line->bits[i] = 0; /* "Traceback (most recent call last)" */
        bool fixed = hb_sentence_is(line, i, "by") || hb_sentence_is(line, i, "to");
        if (fixed && hb_sentence_is(line, i - 1, "pinned"))
            line->bits[i - 1] = 0; /* "versions pinned by the project" */
        if (hb_sentence_is(line, i, "cm") && hb_sentence_is(line, i - 1, "ro"))
            line->bits[i] = DEVICE; /* "ROCm", whose humps part it */
        bool many = hb_sentence_is(line, i - 1, "multi") || hb_sentence_is(line, i - 1, "single");
        bool counted = many && line->bits[i] & DEVICE && line->word[i].span.at[-1] == '-';
        if (counted)
            line->bits[i] = 0;
    }
}

void hb_sentence_around(const struct hb_sentence *line, int i, struct hb_sentence *part)
{
    int first = i, end = i;
    while (first > 0 && line->word[first - 1].kind != HB_WORD_END)
        first--;
    while (end < line->count && line->word[end].kind != HB_WORD_END)
        end++;
    part->count = end - first;
    part->span = (struct hb_span){line->word[first].span.at, line->word[end - 1].span.end};
    for (int k = 0; k < part->count; k++) {
        part->word[k] = line->word[first + k];
        part->bits[k] = line->bits[first + k];
        part->taken[k] = false;
    }
}

bool hb_sentence_is_any(const struct hb_sentence *l, int i, const char *const *words)
{
    if (i < 0 || i >= l->count || l->word[i].kind != HB_WORD_TEXT)
        return false;
    const char *text = l->word[i].text;
    for (; *words; words++)
        if (**words == *text && strcmp(*words, text) == 0)
            return true;
    return false;
}

int hb_sentence_ahead(const struct hb_sentence *l, int i, int far, int bits)
{
    for (int k = i + 1; k <= i + far && k < l->count && l->word[k].kind != HB_WORD_END; k++)
        if (l->bits[k] & bits)
            return k;
    return -1;
}

int hb_sentence_behind(const struct hb_sentence *l, int i, int far, int bits)
{
    for (int k = i - 1; k >= i - far && k >= 0 && l->word[k].kind != HB_WORD_END; k--)
        if (l->bits[k] & bits)
            return k;
    return -1;
}

int hb_sentence_nearest(const struct hb_sentence *l, int i, int far, const char *const *words)
{
    for (int k = i - 1; k >= 0 && k >= i - far && l->word[k].kind != HB_WORD_END; k--)
        if (hb_sentence_is_any(l, k, words))
            return k;
    return -1;
}

int hb_sentence_next(const struct hb_sentence *l, int i, int far, const char *const *words)
{
    for (int k = i + 1; k <= i + far && k < l->count && l->word[k].kind == HB_WORD_TEXT; k++)
        if (hb_sentence_is_any(l, k, words))
            return k;
    return -1;
}

bool hb_sentence_has(const struct hb_sentence *l, int bits)
{
    for (int i = 0; i < l->count; i++)
        if (l->bits[i] & bits)
            return true;
    return false;
}

bool hb_sentence_has_pair(const struct hb_sentence *l, const char *first, const char *second)
{
    for (int i = 0; i + 1 < l->count; i++)
        if (hb_sentence_is(l, i, first) && hb_sentence_is(l, i + 1, second))
            return true;
    return false;
}

bool hb_sentence_has_word(const struct hb_sentence *l, const char *text)
{
    for (int i = 0; i < l->count; i++)
        if (hb_sentence_is(l, i, text))
            return true;
    return false;
}

static bool is_quote(const struct hb_sentence *l, int i, char mark)
{
    return l->word[i].kind == HB_WORD_PAUSE && *l->word[i].span.at == mark;
}

int hb_sentence_quoted(const struct hb_sentence *l, int i)
{
    static const char marks[] = "\"`";
    for (const char *mark = marks; *mark; mark++) {
        int open = -1, close = i + 1;
        for (int k = 0; k < i; k++)
            if (is_quote(l, k, *mark))
                open = open < 0 ? k : -1;
        while (close < l->count && !is_quote(l, close, *mark))
            close++;
        if (open > 0 && close < l->count && l->word[open - 1].kind == HB_WORD_TEXT &&
            !l->word[open - 1].keys)
            return open;
    }
    return -1;
}

bool hb_sentence_is_job(const struct hb_sentence *l, int i)
{
    static const char *const jobs[] = {"job", "jobs", "container", "containers",
                                       "pod", "pods", NULL};
    static const char *const articles[] = {"the", "my", "each", "a", "this", "our", NULL};
    int to = hb_sentence_is_any(l, i - 1, articles) ? i - 2 : i - 1;
    return hb_sentence_is_any(l, i, jobs) &&
           (hb_sentence_is(l, to, "for") || hb_sentence_is(l, to, "to"));
}

/* "not", and what ends in it. */
static bool is_not(const struct hb_sentence *l, int i)
{
    static const char *const words[] = {"not", "no", "doesnt", "dont", "isnt", "hasnt", NULL};
    return hb_sentence_is_any(l, i, words);
}

bool hb_sentence_negates(const struct hb_sentence *l, int i, int far)
{
    for (int k = i - 1; k >= 0 && k >= i - far && l->word[k].kind != HB_WORD_END; k--)
        if (is_not(l, k))
            return true;
    return false;
}
