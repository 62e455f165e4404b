/* What cairo 1.16 leaves to be mended in an SVG: ids that count over the process, six decimals,
 * no title for screen readers; and text that stays text. Plain text work, no cairo. */
#ifndef HB_PLOTS_SVG_H
#define HB_PLOTS_SVG_H

#include "plots/draw.h"

struct hb_svg_form {
    const char *prefix; /* of ids: prefix0, prefix1, ... in order of appearance */
    const char *title;  /* for screen readers */
    int decimals;       /* of numbers, at most */
};

/* Appends to out the document in raw, mended, with texts before its end. */
void hb_svg_tidy(struct hb_arena *arena, const struct hb_str *raw, const struct hb_str *texts,
                 const struct hb_svg_form *form, struct hb_str *out);
/* Appends a <text> element; ascent: baseline below the top of a line, in ems. */
void hb_svg_text(struct hb_str *out, const char *text, struct hb_box box, struct hb_font font,
                 double ascent);
/* Text with &, <, > and " written as XML and HTML want them; control characters as '?'. */
void hb_svg_escape(struct hb_str *out, const char *text);
/* The document without its XML declaration, as HTML takes it. */
const char *hb_svg_inline(const char *svg);

#endif
