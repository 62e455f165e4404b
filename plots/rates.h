/* What part of its peaks a device reaches, by the size of the work: the curves of its profile, one
 * panel each for products, attention, memory and links. JSON: the profile, as `calibrate --json`
 * writes it. */
#ifndef HB_PLOTS_RATES_H
#define HB_PLOTS_RATES_H

#include "hw/device.h"
#include "plots/canvas.h"

struct hb_node;

/* False, with errors, where json is no profile or has no curve. */
bool hb_rates_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *json,
                   struct hb_device *out);
bool hb_rates_any(const struct hb_device *dev);
/* "products of 4096 reach 72 % of 989 TFLOP/s in bf16, memory reaches 83 % of 3.35 TB/s" */
const char *hb_rates_title(struct hb_arena *arena, const struct hb_device *dev);
void hb_rates_draw(struct hb_canvas *c, const struct hb_device *dev);

#endif
