/* See lex.h. Classes of bytes are one table, so that a step is a look-up. */
#include "sim/hlo/lex.h"

#include <string.h>

#include "base/size.h"

enum { NAME = 1, BLANK = 2, OPEN = 4, CLOSE = 8, QUOTE = 16, STOP = 32, LINE = 64, SLASH = 128 };

#define NAMES_4(c) [c] = NAME, [c + 1] = NAME, [c + 2] = NAME, [c + 3] = NAME
#define NAMES_26(c)                                                                                \
    NAMES_4(c), NAMES_4(c + 4), NAMES_4(c + 8), NAMES_4(c + 12), NAMES_4(c + 16), NAMES_4(c + 20), \
        [c + 24] = NAME, [c + 25] = NAME
#define DIGITS_2(c) [c] = NAME, [c + 1] = NAME

static const unsigned char class_of[256] = {
    NAMES_26('a'),  NAMES_26('A'), DIGITS_2('0'), DIGITS_2('2'),  DIGITS_2('4'), DIGITS_2('6'),
    DIGITS_2('8'),  ['_'] = NAME,  ['-'] = NAME,  ['.'] = NAME,   [' '] = BLANK, ['\t'] = BLANK,
    ['\r'] = BLANK, ['\n'] = LINE, ['('] = OPEN,  ['{'] = OPEN,   ['['] = OPEN,  [')'] = CLOSE,
    ['}'] = CLOSE,  [']'] = CLOSE, ['"'] = QUOTE, ['\''] = QUOTE, [','] = STOP,  ['/'] = SLASH,
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

/* Over the comment that begins at a slash: in stars to their end, else to the line's; a lone slash
 * is a byte. */
static const char *skip_slash(const char *at, const char *end)
{
    if (end - at < 2 || (at[1] != '*' && at[1] != '/'))
        return at + 1;
    if (at[1] == '/') {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        return line_end ? line_end : end;
    }
    for (at += 2; end - at >= 2; at++)
        if (at[0] == '*' && at[1] == '/')
            return at + 2;
    return end;
}

void hb_hlo_skip_all_space(struct hb_hlo_lex *lex)
{
    for (;;) {
        while (lex->at < lex->end && look(lex->at) & (BLANK | LINE))
            lex->at++;
        if (lex->end - lex->at < 2 || lex->at[0] != '/' || (lex->at[1] != '*' && lex->at[1] != '/'))
            return;
        lex->at = skip_slash(lex->at, lex->end);
    }
}

bool hb_hlo_take_int(struct hb_hlo_lex *lex, int64_t *out)
{
    hb_hlo_skip_space(lex);
    const char *first = lex->at;
    int64_t value = 0;
    for (; lex->at < lex->end && *lex->at >= '0' && *lex->at <= '9'; lex->at++)
        if (!hb_mul_i64(value, 10, &value) || !hb_add_i64(value, *lex->at - '0', &value))
            return false;
    if (lex->at == first)
        return false;
    *out = value;
    return true;
}

struct hb_hlo_span hb_hlo_take_name(struct hb_hlo_lex *lex)
{
    const char *first = lex->at, *end = lex->end;
    first += first < end && *first == '%';
    const char *at = first;
    while (at < end && look(at) & NAME)
        at++;
    lex->at = at;
    return (struct hb_hlo_span){first, (size_t)(at - first)};
}

/* From a quote to behind the closing one of its kind; to the end where there is none. */
static const char *skip_string(const char *at, const char *end)
{
    const char *first = at + 1, *close = first;
    while ((close = memchr(close, *at, (size_t)(end - close)))) {
        const char *stroke = close;
        while (stroke > first && stroke[-1] == '\\')
            stroke--;
        close++;
        if ((close - stroke) % 2) /* not escaped: an even number of strokes before it */
            return close;
    }
    return end;
}

bool hb_hlo_skip_brackets(struct hb_hlo_lex *lex)
{
    int64_t depth = 0;
    const char *at = lex->at;
    while (at < lex->end) {
        unsigned char kind = look(at);
        if (!(kind & (QUOTE | SLASH | OPEN | CLOSE))) {
            at++;
            if (depth <= 0)
                break;
        } else if (kind & (QUOTE | SLASH)) {
            at = kind & QUOTE ? skip_string(at, lex->end) : skip_slash(at, lex->end);
        } else {
            at++;
            depth += kind & OPEN ? 1 : -1;
            if (depth <= 0)
                break;
        }
    }
    lex->at = at;
    return depth == 0;
}

/* Whether a value goes on behind the space at `at`: with a bracket or an arrow, as in
 * `f32[8] {0}`. What else comes is of the next thing. */
static bool goes_on(const char *at, const char *end, const char **out_next)
{
    struct hb_hlo_lex lex = {at, end};
    hb_hlo_skip_space(&lex);
    *out_next = lex.at;
    if (lex.at >= end)
        return false;
    return look(lex.at) & OPEN || *lex.at == '<' ||
           (*lex.at == '-' && end - lex.at > 1 && lex.at[1] == '>');
}

/* literal=f32[] 0.5: the value stands behind its shape. */
static const char *skip_literal(const char *at, const char *end)
{
    struct hb_hlo_lex lex = {at, end};
    hb_hlo_skip_space(&lex);
    while (lex.at < end && !(look(lex.at) & (STOP | CLOSE | BLANK | LINE)))
        lex.at++;
    return lex.at;
}

bool hb_hlo_take_attr(struct hb_hlo_lex *lex, struct hb_hlo_span *out_key,
                      struct hb_hlo_span *out_value)
{
    hb_hlo_skip_space(lex);
    *out_key = hb_hlo_take_name(lex);
    if (!out_key->len || !hb_hlo_take(lex, '='))
        return false;
    hb_hlo_skip_space(lex);
    const char *first = lex->at, *at = first;
    int64_t depth = 0;
    while (at < lex->end) {
        unsigned char kind = look(at);
        if (!(kind & ~NAME)) {
            at++;
            continue;
        }
        if (kind & (QUOTE | SLASH)) {
            at = kind & QUOTE ? skip_string(at, lex->end) : skip_slash(at, lex->end);
            continue;
        }
        if (depth == 0 && kind & (STOP | LINE | BLANK | CLOSE)) {
            const char *next;
            if (!(kind & (LINE | BLANK)) || !goes_on(at, lex->end, &next))
                break;
            at = next;
            continue;
        }
        depth += (kind & OPEN) != 0;
        depth -= (kind & CLOSE) != 0;
        at++;
    }
    if (depth == 0 && hb_hlo_span_is(*out_key, "literal"))
        at = skip_literal(at, lex->end);
    lex->at = at;
    *out_value = (struct hb_hlo_span){first, (size_t)(at - first)};
    return depth == 0;
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
