/* Scales and ticks: see scale.h. Steps of linear axes are 1, 2 or 5 times a power of ten of the
 * unit; those of logarithmic axes whole powers of two (or of ten beyond a thousandfold of want). */
#include "plots/scale.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

double hb_scale_at(const struct hb_scale *scale, double value)
{
    double low = scale->low;
    double high = scale->high;
    if (scale->logarithmic) {
        value = log2(value > low / 0x1p20 ? value : low / 0x1p20);
        low = log2(low);
        high = log2(high);
    }
    return scale->from_px + (value - low) / (high - low) * (scale->to_px - scale->from_px);
}

double hb_scale_span_px(const struct hb_scale *scale)
{
    return fabs(scale->to_px - scale->from_px);
}

struct hb_scale hb_scale_make(double low, double high, enum hb_unit unit, bool logarithmic)
{
    struct hb_scale scale = {.unit = unit, .logarithmic = logarithmic};
    if (logarithmic) {
        low = low > 0 ? low : 1e-9;
        high = high > low ? high : low;
        double air = pow(high / low, 0.04);
        air = air > 1.02 ? air : 1.02;
        scale.low = low / air;
        scale.high = high * air;
        return scale;
    }
    double span = high - low;
    if (!(span > 0))
        span = fabs(high) > 0 ? fabs(high) : 1;
    scale.low = low == 0 ? 0 : low - span * 0.04;
    scale.high = high == 0 && low < 0 ? 0 : high + span * 0.06;
    return scale;
}

struct unit_step {
    double size;
    double from; /* smallest high value that takes it */
    const char *name;
};

static const struct unit_step byte_units[] = {{0x1p40, 0x1p42, "TiB"},
                                              {0x1p30, 0x1p30, "GiB"},
                                              {0x1p20, 0x1p20, "MiB"},
                                              {0x1p10, 0x1p10, "KiB"},
                                              {1, 0, "B"}};
static const struct unit_step second_units[] = {
    {1, 1, "s"}, {1e-3, 1e-3, "ms"}, {1e-6, 1e-6, "us"}, {1e-9, 0, "ns"}};

const char *hb_unit_for(enum hb_unit unit, double high, double *out_size)
{
    const struct unit_step *step = NULL;
    switch (unit) {
    case HB_UNIT_BYTES:
        step = byte_units;
        break;
    case HB_UNIT_SECONDS:
        step = second_units;
        break;
    case HB_UNIT_NUMBER:
    case HB_UNIT_PERCENT:
        *out_size = 1;
        return unit == HB_UNIT_PERCENT ? "%" : "";
    }
    while (fabs(high) < step->from)
        step++;
    *out_size = step->size;
    return step->name;
}

const char *hb_human_print(double value, char text[HB_TICK_TEXT])
{
    if (value >= 0x1p20 && value < 0x1p40 && fmod(value, 0x1p20) == 0)
        snprintf(text, HB_TICK_TEXT, "%.0fM", value / 0x1p20);
    else if (value >= 0x1p10 && value < 0x1p40 && fmod(value, 0x1p10) == 0)
        snprintf(text, HB_TICK_TEXT, "%.0fk", value / 0x1p10);
    else if (fabs(value) < 1e15 && value == floor(value))
        snprintf(text, HB_TICK_TEXT, "%.0f", value);
    else
        snprintf(text, HB_TICK_TEXT, "%.4g", value);
    return text;
}

const char *hb_unit_print(enum hb_unit unit, double value, char text[HB_TICK_TEXT])
{
    double size;
    const char *name = hb_unit_for(unit, value, &size);
    double shown = value / size;
    if (unit == HB_UNIT_NUMBER)
        return hb_human_print(value, text);
    int digits = fabs(shown) >= 99.95 || (size == 1 && unit == HB_UNIT_BYTES) ? 0
                 : fabs(shown) >= 9.995                                       ? 1
                                                                              : 2;
    if (shown == floor(shown))
        digits = 0;
    else if (unit == HB_UNIT_PERCENT)
        digits = fabs(shown) >= 9.95 ? 0 : 1;
    snprintf(text, HB_TICK_TEXT, "%.*f %s", digits, shown, name);
    return text;
}

static double nice_step(double rough)
{
    double power = pow(10, floor(log10(rough)));
    double lead = rough / power;
    return power * (lead <= 1.0000001 ? 1 : lead <= 2.0000001 ? 2 : lead <= 5.0000001 ? 5 : 10);
}

/* Multiples of step in low..high. */
static double count_steps(double low, double high, double step)
{
    return floor(high / step + 1e-9) - ceil(low / step - 1e-9) + 1;
}

/* The finest of 1, 2 and 5 times a power of ten that gives at most want ticks. */
static double find_step(double low, double high, int want)
{
    double step = nice_step((high - low) / (want + 1));
    while (count_steps(low, high, step) > want)
        step = nice_step(step * 1.5);
    return step;
}

static void add_tick(const struct hb_scale *scale, struct hb_ticks *out, double value)
{
    struct hb_tick *tick = &out->tick[out->count++];
    tick->value = value;
    tick->px = hb_scale_at(scale, value);
}

static void make_linear(const struct hb_scale *scale, int want, struct hb_ticks *out)
{
    double size;
    double reach = fmax(fabs(scale->low), fabs(scale->high));
    out->unit = hb_unit_for(scale->unit, reach, &size);
    double low = scale->low / size;
    double high = scale->high / size;
    double step = find_step(low, high, want);
    double first = ceil(low / step - 1e-9);
    int count = (int)count_steps(low, high, step);
    int digits = step >= 0.9999 ? 0 : (int)ceil(-log10(step) - 1e-9);
    for (int i = 0; i < count; i++) {
        double k = first + i;
        add_tick(scale, out, k * step * size);
        struct hb_tick *tick = &out->tick[out->count - 1];
        snprintf(tick->text, sizeof tick->text, "%s%.*f", k < 0 ? "\xE2\x88\x92" : "",
                 digits < 9 ? digits : 9, fabs(k * step));
    }
}

/* The values of a narrow logarithmic axis: as a linear one's. */
static void make_narrow(const struct hb_scale *scale, int want, struct hb_ticks *out)
{
    struct hb_scale linear = *scale;
    linear.logarithmic = false;
    make_linear(&linear, want, out);
    for (int i = 0; i < out->count; i++)
        out->tick[i].px = hb_scale_at(scale, out->tick[i].value);
}

/* The short text of a power of a base: no digits behind the point where there need be none. */
static void print_power(enum hb_unit unit, double value, char text[HB_TICK_TEXT])
{
    double size;
    const char *name = hb_unit_for(unit, value * 1.0000001, &size);
    if (unit == HB_UNIT_NUMBER)
        hb_human_print(value, text);
    else
        snprintf(text, HB_TICK_TEXT, "%.4g %s", value / size, name);
}

static void make_log(const struct hb_scale *scale, int want, struct hb_ticks *out)
{
    double base = scale->unit == HB_UNIT_SECONDS || scale->unit == HB_UNIT_PERCENT ? 10 : 2;
    double first = ceil(log(scale->low) / log(base) - 1e-9);
    double last = floor(log(scale->high) / log(base) + 1e-9);
    if (last - first < 2) {
        make_narrow(scale, want, out);
        return;
    }
    double stride = ceil((last - first + 1) / want);
    out->unit = "";
    double from = ceil(first / stride) * stride;
    int count = (int)fmin(want, floor((last - from) / stride) + 1);
    for (int i = 0; i < count; i++) {
        double k = from + i * stride;
        add_tick(scale, out, pow(base, k));
        print_power(scale->unit, pow(base, k), out->tick[out->count - 1].text);
    }
}

void hb_scale_ticks(const struct hb_scale *scale, int want, struct hb_ticks *out)
{
    memset(out, 0, sizeof *out);
    want = want < 2 ? 2 : want > HB_TICK_MAX ? HB_TICK_MAX : want;
    if (scale->logarithmic)
        make_log(scale, want, out);
    else
        make_linear(scale, want, out);
}
