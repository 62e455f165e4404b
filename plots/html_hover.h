/* What a report tells when a picture is pointed at, as JSON for its script. */
#ifndef HB_PLOTS_HTML_HOVER_H
#define HB_PLOTS_HTML_HOVER_H

#include "plots/canvas.h"
#include "plots/outcome.h"

/* Cells and points of the canvas's record: {"cells": [[x, y, w, h, text], ...]}. With timeline,
 * whose picture it is, also every sample of its bands: {"timeline": {"bands": [{"name", "runs":
 * [times, MiB, ...]}, ...], "seconds", "span", "high", "area", "tensors"}}. */
void hb_html_hover(const struct hb_canvas *c, const struct hb_outcome *timeline,
                   struct hb_str *out);

#endif
