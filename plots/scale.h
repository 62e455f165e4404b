/* From data to places on the canvas, and the ticks that a person would have written: 0, 20, 40
 * GiB; 2k, 8k, 128k; 1, 2, 4 ... processes. */
#ifndef HB_PLOTS_SCALE_H
#define HB_PLOTS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

enum hb_unit { HB_UNIT_NUMBER, HB_UNIT_BYTES, HB_UNIT_SECONDS, HB_UNIT_PERCENT };

/* low maps to from_px, high to to_px (to_px < from_px on an axis that grows upwards).
 * low < high; logarithmic: low > 0. */
struct hb_scale {
    double low;
    double high;
    double from_px;
    double to_px;
    bool logarithmic;
    enum hb_unit unit;
};

enum { HB_TICK_MAX = 40, HB_TICK_TEXT = 32 };

struct hb_tick {
    double value;
    double px;
    char text[HB_TICK_TEXT];
};

struct hb_ticks {
    int count;
    struct hb_tick tick[HB_TICK_MAX];
    const char *unit; /* "GiB" where all labels share it; "" where each has its own or none */
};

double hb_scale_at(const struct hb_scale *scale, double value);
double hb_scale_span_px(const struct hb_scale *scale);
/* A scale that shows all of low..high with a little air, made fit for the two kinds. */
struct hb_scale hb_scale_make(double low, double high, enum hb_unit unit, bool logarithmic);

/* At most want (2..HB_TICK_MAX) ticks, inside low..high, rising. */
void hb_scale_ticks(const struct hb_scale *scale, int want, struct hb_ticks *out);

/* 512, 2k, 128k, 1M where that is exact in powers of two; else the digits. */
const char *hb_human_print(double value, char text[HB_TICK_TEXT]);
/* The unit in which values up to high are best told, and its size: "GiB", 2^30. */
const char *hb_unit_for(enum hb_unit unit, double high, double *out_size);
/* A value with its unit: "11.3 GiB", "1.23 s", "4.2 %". */
const char *hb_unit_print(enum hb_unit unit, double value, char text[HB_TICK_TEXT]);

#endif
