/* Memory over one step, stacked by category, with phases, the peak and its tensors, the budget,
 * and the streams below on the same axis of time. */
#ifndef HB_PLOTS_STEPVIEW_H
#define HB_PLOTS_STEPVIEW_H

#include "plots/canvas.h"
#include "plots/outcome.h"

/* o->sample_count > 0. */
void hb_stepview_draw(struct hb_canvas *c, const struct hb_outcome *o);
/* "fits: peak 71.2 GiB of 80 GiB, 8.8 GiB free; highest in backward at 412 ms". */
const char *hb_stepview_title(struct hb_arena *arena, const struct hb_outcome *o);

#endif
