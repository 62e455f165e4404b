/* Loading a state: the peak of a device, and of a host, against the number of processes. */
#ifndef HB_PLOTS_LOADVIEW_H
#define HB_PLOTS_LOADVIEW_H

#include "plots/canvas.h"
#include "plots/outcome.h"

/* o->load_count > 0. */
void hb_loadview_draw(struct hb_canvas *c, const struct hb_outcome *o);
const char *hb_loadview_title(struct hb_arena *arena, const struct hb_outcome *o);

#endif
