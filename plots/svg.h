/* What cairo 1.16 leaves to be mended in an SVG: ids that count over the process, six decimals,
 * no title for screen readers; and text that stays text. Plain text work, no cairo. */
#ifndef HB_PLOTS_SVG_H
#define HB_PLOTS_SVG_H

#include "plots/draw.h"

/* Appends to out the document in raw with ids renamed to prefix0, prefix1, ... in order of
 * appearance, numbers with at most two decimals, a <title>, and texts before its end. */
void hb_svg_tidy(struct hb_arena *arena, const struct hb_str *raw, const struct hb_str *texts,
                 const char *prefix, const char *title, struct hb_str *out);
/* Appends a <text> element; ascent: baseline below the top of a line, in ems. */
void hb_svg_text(struct hb_str *out, const char *text, struct hb_box box, struct hb_font font,
                 double ascent);
/* Text with &, <, > and " written as XML and HTML want them; control characters as '?'. */
void hb_svg_escape(struct hb_str *out, const char *text);
/* The document without its XML declaration, as HTML takes it. */
const char *hb_svg_inline(const char *svg);

#endif
