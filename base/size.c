/* Checked sizes and their text: see size.h. */
#include "base/size.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hb_add_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

bool hb_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

bool hb_size_ok(int64_t bytes)
{
    return bytes >= 0 && bytes < INT64_MAX / 4;
}

static const struct {
    const char *name;
    double bytes;
} units[] = {
    {"", 1},     {"B", 1},     {"k", 1e3},      {"kB", 1e3},       {"KB", 1e3},     {"MB", 1e6},
    {"GB", 1e9}, {"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
};

bool hb_size_parse(const char *text, int64_t *out_bytes)
{
    char *end;
    if (!isdigit((unsigned char)text[0]) && text[0] != '.')
        return false;
    double value = strtod(text, &end);
    while (*end == ' ')
        end++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].name) != 0)
            continue;
        double bytes = value * units[i].bytes;
        if (!(bytes >= 0 && bytes < 0x1p62))
            return false;
        *out_bytes = (int64_t)llround(bytes);
        return true;
    }
    return false;
}

struct scale {
    double from;
    const char *unit;
};

/* Three significant digits or more, from the largest unit that fits. */
static const char *print_scaled(double value, const struct scale *scales, char *text)
{
    double sign = value < 0 ? -1 : 1;
    double magnitude = fabs(value);
    while (scales[1].unit && magnitude < scales[0].from)
        scales++;
    double shown = magnitude / scales[0].from;
    int digits = shown == floor(shown) && scales[0].from <= 1 ? 0 : shown < 100 ? 2 : 1;
    snprintf(text, HB_SIZE_TEXT, "%.*f %s", digits, sign * shown, scales[0].unit);
    return text;
}

const char *hb_size_print(int64_t bytes, char *text)
{
    static const struct scale scales[] = {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"},
                                          {1024.0, "KiB"}, {1, "B"},        {0, NULL}};
    return print_scaled((double)bytes, scales, text);
}

const char *hb_time_print(int64_t ns, char *text)
{
    static const struct scale scales[] = {
        {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}, {0, NULL}};
    return print_scaled((double)ns, scales, text);
}

const char *hb_count_print(double count, char *text)
{
    static const struct scale scales[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"},
                                          {1e3, "k"},  {1, ""},    {0, NULL}};
    print_scaled(count, scales, text);
    size_t len = strlen(text);
    if (len && text[len - 1] == ' ')
        text[len - 1] = '\0';
    return text;
}
