/* See lex.h. Classes of bytes are one table, so that a step is a look-up. */
#include "sim/hlo/lex.h"

#include <string.h>

#include "base/size.h"

enum { NAME = 1, BLANK = 2, OPEN = 4, CLOSE = 8, QUOTE = 16, STOP = 32, LINE = 64, DIGIT = 128 };

#define NAMES_4(c) [c] = NAME, [c + 1] = NAME, [c + 2] = NAME, [c + 3] = NAME
#define NAMES_26(c)                                                                                \
    NAMES_4(c), NAMES_4(c + 4), NAMES_4(c + 8), NAMES_4(c + 12), NAMES_4(c + 16), NAMES_4(c + 20), \
        [c + 24] = NAME, [c + 25] = NAME
#define DIGITS_2(c) [c] = NAME | DIGIT, [c + 1] = NAME | DIGIT

static const unsigned char class_of[256] = {
    NAMES_26('a'),  NAMES_26('A'), DIGITS_2('0'), DIGITS_2('2'), DIGITS_2('4'), DIGITS_2('6'),
    DIGITS_2('8'),  ['_'] = NAME,  ['-'] = NAME,  ['.'] = NAME,  [' '] = BLANK, ['\t'] = BLANK,
    ['\r'] = BLANK, ['\n'] = LINE, ['('] = OPEN,  ['{'] = OPEN,  ['['] = OPEN,  [')'] = CLOSE,
    ['}'] = CLOSE,  [']'] = CLOSE, ['"'] = QUOTE, [','] = STOP,
};

static unsigned char look(const char *at)
{
    return class_of[(unsigned char)*at];
}

void hb_hlo_skip_blanks(struct hb_hlo_lex *lex)
{
    while (lex->at < lex->end && look(lex->at) & BLANK)
        lex->at++;
}

void hb_hlo_skip_space(struct hb_hlo_lex *lex)
{
    for (;;) {
        while (lex->at < lex->end && look(lex->at) & (BLANK | LINE))
            lex->at++;
        if (lex->end - lex->at < 2 || lex->at[0] != '/' || lex->at[1] != '*')
            return;
        const char *c = lex->at + 2;
        while (lex->end - c >= 2 && (c[0] != '*' || c[1] != '/'))
            c++;
        lex->at = lex->end - c >= 2 ? c + 2 : lex->end;
    }
}

bool hb_hlo_take(struct hb_hlo_lex *lex, char c)
{
    hb_hlo_skip_space(lex);
    if (lex->at >= lex->end || *lex->at != c)
        return false;
    lex->at++;
    return true;
}

bool hb_hlo_take_int(struct hb_hlo_lex *lex, int64_t *out)
{
    hb_hlo_skip_space(lex);
    const char *first = lex->at;
    int64_t value = 0;
    for (; lex->at < lex->end && look(lex->at) & DIGIT; lex->at++)
        if (!hb_mul_i64(value, 10, &value) || !hb_add_i64(value, *lex->at - '0', &value))
            return false;
    if (lex->at == first)
        return false;
    *out = value;
    return true;
}

struct hb_hlo_span hb_hlo_take_name(struct hb_hlo_lex *lex)
{
    if (lex->at < lex->end && *lex->at == '%')
        lex->at++;
    const char *first = lex->at;
    while (lex->at < lex->end && look(lex->at) & NAME)
        lex->at++;
    return (struct hb_hlo_span){first, (size_t)(lex->at - first)};
}

/* From a quote to behind the closing one; to the end where there is none. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\' && end - at > 1)
            at++;
    return at < end ? at + 1 : end;
}

bool hb_hlo_skip_brackets(struct hb_hlo_lex *lex)
{
    int64_t depth = 0;
    const char *at = lex->at;
    while (at < lex->end) {
        unsigned char kind = look(at);
        if (kind & QUOTE) {
            at = skip_string(at, lex->end);
            continue;
        }
        at++;
        depth += (kind & OPEN) != 0;
        depth -= (kind & CLOSE) != 0;
        if (depth <= 0)
            break;
    }
    lex->at = at;
    return depth == 0;
}

bool hb_hlo_take_attr(struct hb_hlo_lex *lex, struct hb_hlo_span *out_key,
                      struct hb_hlo_span *out_value)
{
    hb_hlo_skip_blanks(lex);
    *out_key = hb_hlo_take_name(lex);
    if (!out_key->len || lex->at >= lex->end || *lex->at != '=')
        return false;
    const char *first = ++lex->at, *at = first;
    int64_t depth = 0;
    while (at < lex->end) {
        unsigned char kind = look(at);
        if (!(kind & (OPEN | CLOSE | QUOTE | STOP | LINE))) {
            at++;
            continue;
        }
        if (kind & QUOTE) {
            at = skip_string(at, lex->end);
            continue;
        }
        if (depth == 0 && kind & (STOP | LINE | CLOSE))
            break;
        depth += (kind & OPEN) != 0;
        depth -= (kind & CLOSE) != 0;
        at++;
    }
    *out_value = (struct hb_hlo_span){first, (size_t)(at - first)};
    lex->at = at;
    return depth == 0;
}

bool hb_hlo_span_is(struct hb_hlo_span span, const char *word)
{
    size_t len = strlen(word);
    return span.len == len && memcmp(span.at, word, len) == 0;
}

const char *hb_hlo_span_find(struct hb_hlo_span span, const char *word)
{
    size_t len = strlen(word);
    if (span.len < len)
        return NULL;
    const char *last = span.at + span.len - len;
    for (const char *at = span.at; at <= last; at++) {
        at = memchr(at, *word, (size_t)(last - at) + 1);
        if (!at)
            return NULL;
        if (memcmp(at, word, len) == 0)
            return at;
    }
    return NULL;
}

struct hb_hlo_lex hb_hlo_lex_span(struct hb_hlo_span span)
{
    const char *at = span.at ? span.at : "";
    return (struct hb_hlo_lex){at, at + span.len};
}
