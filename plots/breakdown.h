/* What stands at the peak, as one bar a configuration: by category, with the budget, and each
 * bar's difference to the first written out. */
#ifndef HB_PLOTS_BREAKDOWN_H
#define HB_PLOTS_BREAKDOWN_H

#include "plots/canvas.h"
#include "plots/outcome.h"

/* count >= 1. */
void hb_breakdown_draw(struct hb_canvas *c, const struct hb_outcome *outcomes, uint32_t count);
const char *hb_breakdown_title(struct hb_arena *arena, const struct hb_outcome *outcomes,
                               uint32_t count);

#endif
