/* Spans of log text: see logtext.h. */
#include "sim/hlo/logtext.h"

#include <math.h>
#include <string.h>

#include "base/size.h"

static size_t span_len(struct hb_span s)
{
    return (size_t)(s.end - s.at);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

struct hb_span hb_span_of(const char *text)
{
    return (struct hb_span){text, text + strlen(text)};
}

bool hb_span_find(struct hb_span *s, const char *word)
{
    size_t len = strlen(word);
    struct hb_span rest = *s;
    while (span_len(rest) >= len) {
        const char *hit = memchr(rest.at, word[0], span_len(rest) - len + 1);
        if (!hit)
            return false;
        if (memcmp(hit, word, len) == 0) {
            s->at = hit + len;
            return true;
        }
        rest.at = hit + 1;
    }
    return false;
}

bool hb_span_has(struct hb_span s, const char *word)
{
    return hb_span_find(&s, word);
}

bool hb_span_starts_any(struct hb_span s, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (hb_span_starts(s, words[i]))
            return true;
    return false;
}

bool hb_span_has_any(struct hb_span s, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (hb_span_has(s, words[i]))
            return true;
    return false;
}

struct hb_span hb_span_first(struct hb_span s, ptrdiff_t bytes)
{
    return s.end - s.at > bytes ? (struct hb_span){s.at, s.at + bytes} : s;
}

struct hb_span hb_span_last(struct hb_span s, ptrdiff_t bytes)
{
    return s.end - s.at > bytes ? (struct hb_span){s.end - bytes, s.end} : s;
}

void hb_span_skip(struct hb_span *s, const char *set)
{
    while (s->at < s->end && *s->at && strchr(set, *s->at))
        s->at++;
}

/* Three digits follow a comma. */
static bool is_group(struct hb_span s)
{
    return span_len(s) >= 4 && *s.at == ',' && is_digit(s.at[1]) && is_digit(s.at[2]) &&
           is_digit(s.at[3]) && (span_len(s) == 4 || !is_digit(s.at[4]));
}

/* A whole number; with grouped, commas between groups of three digits belong to it. */
static bool take_int(struct hb_span *s, bool grouped, int64_t *out)
{
    struct hb_span rest = *s;
    int64_t value = 0;
    if (rest.at == rest.end || !is_digit(*rest.at))
        return false;
    for (; rest.at < rest.end; rest.at++) {
        if (grouped && is_group(rest))
            rest.at++;
        if (!is_digit(*rest.at))
            break;
        if (!hb_mul_i64(value, 10, &value) || !hb_add_i64(value, *rest.at - '0', &value))
            return false;
    }
    s->at = rest.at;
    *out = value;
    return true;
}

bool hb_span_int(struct hb_span *s, int64_t *out)
{
    return take_int(s, false, out);
}

static const struct {
    const char *name;
    int64_t bytes;
} units[] = {
    {"B", 1},
    {"bytes", 1},
    {"byte", 1},
    {"Bytes", 1},
    {"K", INT64_C(1) << 10},
    {"KB", 1 << 10},
    {"kB", 1 << 10},
    {"kb", 1 << 10},
    {"Ki", 1 << 10},
    {"KiB", 1 << 10},
    {"M", INT64_C(1) << 20},
    {"MB", 1 << 20},
    {"Mb", 1 << 20},
    {"mb", 1 << 20},
    {"Mi", 1 << 20},
    {"MiB", 1 << 20},
    {"Mib", 1 << 20},
    {"megabytes", 1 << 20},
    {"mib", 1 << 20},
    {"G", 1 << 30},
    {"GB", 1 << 30},
    {"Gb", 1 << 30},
    {"gb", 1 << 30},
    {"Gi", 1 << 30},
    {"GiB", 1 << 30},
    {"Gib", 1 << 30},
    {"gigabytes", 1 << 30},
    {"gib", 1 << 30},
    {"T", INT64_C(1) << 40},
    {"TB", INT64_C(1) << 40},
    {"TiB", INT64_C(1) << 40},
    {"PB", INT64_C(1) << 50},
    {"PiB", INT64_C(1) << 50},
};

/* "126.25 MiBfree", as some copy it */
static int64_t take_glued_unit(struct hb_span *s, struct hb_span rest)
{
    bool glued = span_len(rest) > 3 && rest.at[1] == 'i' && rest.at[2] == 'B' &&
                 rest.at[3] >= 'a' && rest.at[3] <= 'z';
    for (size_t i = 0; glued && i < sizeof units / sizeof units[0]; i++) {
        if (strlen(units[i].name) != 3 || memcmp(units[i].name, rest.at, 3) != 0)
            continue;
        s->at = rest.at + 3;
        return units[i].bytes;
    }
    return 0;
}

/* The unit at the span's start, behind blanks; 0 (and s where it was) where there is none. */
static int64_t take_unit(struct hb_span *s)
{
    struct hb_span rest = *s;
    hb_span_skip(&rest, " ");
    size_t len = 0;
    while (rest.at + len < rest.end && is_letter(rest.at[len]))
        len++;
    for (size_t i = 0; i < sizeof units / sizeof units[0] && len; i++) {
        if (!hb_span_starts(rest, units[i].name) || strlen(units[i].name) != len)
            continue;
        s->at = rest.at + len;
        return units[i].bytes;
    }
    return take_glued_unit(s, rest);
}

enum { MAX_DECIMALS = 9 };

/* "1900,00 MiB", as some languages write it: one or two digits and a unit behind a comma. */
static bool is_comma_point(struct hb_span s)
{
    size_t digits = 0;
    if (span_len(s) < 2 || *s.at != ',')
        return false;
    s.at++;
    while (s.at + digits < s.end && is_digit(s.at[digits]))
        digits++;
    s.at += digits;
    return (digits == 1 || digits == 2) && take_unit(&s) > 1;
}

/* The digits behind a point: value and how many count; further ones are skipped. */
static int take_decimals(struct hb_span *s, int64_t *out)
{
    int count = 0;
    *out = 0;
    if (span_len(*s) < 2 || (*s->at != '.' && !is_comma_point(*s)) || !is_digit(s->at[1]))
        return 0;
    for (s->at++; s->at < s->end && is_digit(*s->at); s->at++) {
        if (count == MAX_DECIMALS)
            continue;
        *out = *out * 10 + (*s->at - '0');
        count++;
    }
    return count;
}

/* "926. GiB", as numpy prints three digits: the point belongs to the number where a unit follows.
 */
static int64_t take_dotted_unit(struct hb_span *s)
{
    struct hb_span rest = *s;
    if (!hb_span_starts(rest, ". "))
        return take_unit(s);
    rest.at++;
    int64_t unit = take_unit(&rest);
    if (unit <= 1)
        return 0;
    *s = rest;
    return unit;
}

/* "153,700,88": behind groups of three a comma and other digits, a number that somebody mangled. */
static bool is_mangled(struct hb_span number, struct hb_span rest)
{
    return memchr(number.at, ',', (size_t)(rest.at - number.at)) && span_len(rest) > 1 &&
           *rest.at == ',' && is_digit(rest.at[1]);
}

static bool take_printed(struct hb_span *s, int64_t unit_bytes, struct hb_amount *out)
{
    struct hb_span rest = *s;
    int64_t whole;
    int64_t decimals;
    int64_t bytes;
    if (!take_int(&rest, true, &whole))
        return false;
    if (is_mangled(*s, rest))
        return false;
    int count = take_decimals(&rest, &decimals);
    int64_t unit = count ? take_unit(&rest) : take_dotted_unit(&rest);
    if (!unit && unit_bytes == 1 && count)
        return false; /* "12.3" of what? */
    if (!unit)
        unit = unit_bytes;
    double digit = (double)unit / pow(10, count);
    if (!hb_mul_i64(whole, unit, &bytes) ||
        !hb_add_i64(bytes, llround(digit * (double)decimals), &bytes) || !hb_size_ok(bytes))
        return false;
    *out = (struct hb_amount){bytes, digit >= 2 ? llround(digit) : 1};
    *s = rest;
    return true;
}

/* "(11429599132 bytes)", "(165425291480B)", "(rounded to 51712165888)". */
static bool take_exact(struct hb_span *s, struct hb_amount *out)
{
    struct hb_span rest = *s;
    int64_t bytes;
    hb_span_skip(&rest, " ");
    if (!hb_span_starts(rest, "("))
        return false;
    rest.at++;
    bool rounded = hb_span_starts(rest, "rounded to ") && hb_span_find(&rest, "rounded to ");
    if (!hb_span_int(&rest, &bytes) || !hb_size_ok(bytes))
        return false;
    if (take_unit(&rest) != 1 && !rounded)
        return false;
    hb_span_skip(&rest, ")");
    *out = (struct hb_amount){bytes, 1};
    *s = rest;
    return true;
}

bool hb_span_amount(struct hb_span *s, int64_t unit_bytes, struct hb_amount *out)
{
    struct hb_span rest = *s;
    hb_span_skip(&rest, " \t:='\",.\\()");
    if (!take_printed(&rest, unit_bytes, out))
        return false;
    struct hb_amount first = *out;
    if (take_exact(&rest, out) && first.step_bytes == 1)
        *out = first; /* what was asked for, not to what the allocator rounds it up */
    *s = rest;
    return true;
}

bool hb_span_is_absurd(struct hb_span s)
{
    const double most = 1e18;
    double value = 0;
    int64_t decimals;
    hb_span_skip(&s, " \t:='\",.\\()");
    for (; s.at < s.end && is_digit(*s.at); s.at++)
        value = value * 10 + (*s.at - '0');
    take_decimals(&s, &decimals);
    int64_t unit = take_unit(&s);
    return value * (double)(unit ? unit : 1) >= most;
}

bool hb_span_amount_last(struct hb_span s, struct hb_amount *out)
{
    const char *start = s.at;
    while (s.end > start && s.end[-1] == ' ')
        s.end--;
    struct hb_span word = {s.end, s.end};
    while (word.at > start && is_letter(word.at[-1]))
        word.at--;
    while (word.at > start && word.at[-1] == ' ')
        word.at--;
    while (word.at > start && (is_digit(word.at[-1]) || word.at[-1] == '.' || word.at[-1] == ','))
        word.at--;
    hb_span_skip(&word, ".,");
    return take_printed(&word, 1, out) && word.at == word.end;
}

static char printable(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f ? '?' : c;
}

void hb_span_copy(struct hb_span *s, const char *stops, char *text, size_t cap)
{
    size_t len = 0;
    for (; s->at < s->end; s->at++) {
        if (*s->at && strchr(stops, *s->at))
            break;
        if (len + 1 < cap)
            text[len++] = printable(*s->at);
    }
    text[len] = '\0';
}
