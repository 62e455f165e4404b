/* Words of a sentence: see logword.h. */
#include "sim/hlo/logword.h"

#include <string.h>

#include "base/size.h"
#include "base/str.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_letter(char c)
{
    return is_upper(c) || (c >= 'a' && c <= 'z');
}

static char lower(char c)
{
    return is_upper(c) ? (char)(c - 'A' + 'a') : c;
}

/* Whether a word of an identifier ends between at[-1] and at[0]: "Of|Memory", "OOM|Killed". */
static bool is_hump(struct hb_span s, const char *at)
{
    if (!is_upper(*at) || (at[-1] == 'V' && hb_span_starts((struct hb_span){at, s.end}, "Ram")))
        return false;
    struct hb_span rest = {at + 1, s.end};
    bool next_lower = at + 1 < s.end && is_letter(at[1]) && !is_upper(at[1]);
    static const char *const verbs[] = {"s", "ed", "ing", "kill"}; /* "OOMed" */
    return !is_upper(at[-1]) || (next_lower && !HB_SPAN_STARTS_ANY(rest, verbs));
}

static void copy_lower(struct hb_span s, char *text)
{
    size_t len = 0;
    for (; s.at < s.end && len + 1 < HB_WORD_CAP; s.at++)
        if (*s.at != '\'')
            text[len++] = lower(*s.at);
    text[len] = '\0';
}

/* "can't" is one word. */
static bool is_joining(struct hb_span s, const char *at)
{
    return *at == '\'' && at > s.at && lower(at[-1]) == 'n' && at + 1 < s.end && at[1] == 't';
}

static struct hb_word take_text(struct hb_span *s)
{
    struct hb_span all = *s;
    struct hb_word word = {.kind = HB_WORD_TEXT, .amount = {-1, 1}};
    const char *start = s->at++;
    while (s->at < s->end && (is_letter(*s->at) || is_joining(all, s->at)) && !is_hump(all, s->at))
        s->at++;
    word.span = (struct hb_span){start, s->at};
    copy_lower(word.span, word.text);
    return word;
}

/* "128,128", "64,64,64": a shape, whose parts are alike. */
static bool is_shape(struct hb_span s)
{
    const char *comma = memchr(s.at, ',', (size_t)(s.end - s.at));
    size_t len = comma ? (size_t)(comma - s.at) : 0;
    for (const char *at = comma; at && at < s.end; at += len + 1)
        if (*at != ',' || (size_t)(s.end - at) <= len || memcmp(s.at, at + 1, len) != 0)
            return false;
    return comma;
}

/* What is glued to a number that makes it no amount: a share, a shape, a rate, a name. */
static bool is_glued(struct hb_span rest)
{
    if (rest.at >= rest.end)
        return false;
    bool shape = (*rest.at == 'x' || *rest.at == 'X' || *rest.at == '*') &&
                 rest.end - rest.at > 1 && is_digit(rest.at[1]);
    return shape || *rest.at == '_' || hb_span_starts(rest, "/s");
}

static bool ends_in_letter(struct hb_span s)
{
    return s.end > s.at && is_letter(s.end[-1]);
}

/* From a digit on. */
static struct hb_word take_number(struct hb_span *s, bool negative)
{
    struct hb_word word = {.kind = HB_WORD_NUMBER, .amount = {-1, 1}};
    struct hb_span rest = *s;
    struct hb_span digits = *s;
    while (digits.at < digits.end && (is_digit(*digits.at) || *digits.at == '.'))
        digits.at++;
    word.text[0] = '-';
    copy_lower((struct hb_span){s->at, digits.at}, word.text);
    if (negative) {
        memmove(word.text + 1, word.text, HB_WORD_CAP - 2);
        word.text[HB_WORD_CAP - 1] = '\0';
        word.text[0] = '-';
    }
    bool read = hb_span_amount(&rest, 1, &word.amount);
    word.has_unit =
        read && (ends_in_letter((struct hb_span){s->at, rest.at}) || rest.at[-1] == ')');
    word.span = (struct hb_span){s->at, read ? rest.at : digits.at};
    s->at = word.span.end;
    bool named = !word.has_unit && s->at < s->end && is_letter(*s->at);
    bool shape = !word.has_unit && is_shape(word.span);
    if (!read || negative || named || shape || is_glued(*s))
        word.amount.bytes = -1;
    if (s->at < s->end && *s->at == '%') {
        word.amount.bytes = -1;
        word.text[0] = '%';
        word.text[1] = '\0';
    }
    return word;
}

/* "0x30d40 bytes", not an address: bytes are said behind it, or of the number before it. */
static bool take_hex(struct hb_span *s, bool of_bytes, struct hb_word *out)
{
    struct hb_span rest = *s;
    int64_t value = 0;
    if (!hb_span_starts(rest, "0x"))
        return false;
    for (rest.at += 2; rest.at < rest.end && hb_hex_digit(*rest.at) >= 0; rest.at++)
        if (!hb_mul_i64(value, 16, &value) || !hb_add_i64(value, hb_hex_digit(*rest.at), &value))
            return false;
    struct hb_span digits = rest;
    hb_span_skip(&rest, " ");
    bool unit = hb_span_starts(rest, "byte");
    if ((!unit && !of_bytes) || !hb_size_ok(value))
        return false;
    if (!unit)
        rest = digits;
    while (rest.at < rest.end && is_letter(*rest.at))
        rest.at++;
    *out = (struct hb_word){.kind = HB_WORD_NUMBER, .amount = {value, 1}, .has_unit = true};
    out->span = (struct hb_span){s->at, rest.at};
    memcpy(out->text, "0x", sizeof "0x");
    s->at = rest.at;
    return true;
}

/* Whether the number before, of which only a comma is behind, was one of bytes in this notation. */
static bool follows_hex(const struct hb_word *word, int count)
{
    int k = count > 0 && word[count - 1].kind == HB_WORD_PAUSE ? count - 2 : count - 1;
    return k >= 0 && word[k].kind == HB_WORD_NUMBER && strcmp(word[k].text, "0x") == 0;
}

/* "GPU0", "fp16", "0x7f2a": digits that are a part of a name. */
static void skip_name(struct hb_span *s)
{
    while (s->at < s->end && (is_letter(*s->at) || is_digit(*s->at)))
        s->at++;
}

/* Where "https://host/1234/a-page" ends: numbers in it are none. */
static const char *end_of_address(struct hb_span s)
{
    const char *at = s.at;
    if (!hb_span_starts(s, "http://") && !hb_span_starts(s, "https://"))
        return s.at;
    while (at < s.end && !strchr(" \t<>()[]\"'", *at))
        at++;
    return at;
}

/* What a byte that is neither letter nor digit means. HB_WORD_TEXT: nothing. */
static enum hb_word_kind mark_of(struct hb_span s)
{
    static const char *const wide[] = {"\uff1f", "\u3002", "\uff01"}; /* ends in Chinese */
    if (HB_SPAN_STARTS_ANY(s, wide))
        return HB_WORD_END;
    static const char pauses[] = ",()[]{}<>\"`";
    static const char ends[] = ";|!?\r\n";
    if (*s.at && strchr(pauses, *s.at))
        return HB_WORD_PAUSE;
    if (*s.at && strchr(ends, *s.at))
        return HB_WORD_END;
    bool last = s.end - s.at < 2 || s.at[1] == ' ' || is_upper(s.at[1]);
    return *s.at == '.' && last ? HB_WORD_END : HB_WORD_TEXT;
}

/* A byte that is neither letter nor digit: a word of its own, or what makes the last one a key. */
static int take_mark(struct hb_span *s, struct hb_word *out, int count)
{
    enum hb_word_kind mark = mark_of(*s);
    if (count && (*s->at == ':' || *s->at == '='))
        out[count - 1].keys = true;
    if (mark != HB_WORD_TEXT)
        out[count++] = (struct hb_word){.kind = mark, .span = {s->at, s->at + 1}};
    s->at++;
    return count;
}

int hb_words_of(struct hb_span s, struct hb_word *out, int cap)
{
    int count = 0;
    const char *start = s.at, *address = s.at;
    while (s.at < s.end && count < cap) {
        char before = s.at > start ? s.at[-1] : ' ';
        if (s.at >= address && !is_letter(before))
            address = end_of_address(s);
        if (!is_letter(before) && take_hex(&s, follows_hex(out, count), &out[count])) {
            count++;
        } else if (is_digit(*s.at) && (s.at < address || is_letter(before) || before == '_' ||
                                       hb_span_starts(s, "0x"))) {
            skip_name(&s);
        } else if (is_digit(*s.at)) {
            bool negative = before == '-' && (s.at - start < 2 || !is_digit(s.at[-2]));
            out[count++] = take_number(&s, negative);
        } else if (is_letter(*s.at)) {
            out[count++] = take_text(&s);
        } else {
            count = take_mark(&s, out, count);
        }
    }
    return count;
}
