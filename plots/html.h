/* The report: one HTML file with the verdict, pictures and tables of a configuration. It needs no
 * network and no script; its script adds hover, sorting and filtering, nothing else. Pictures are
 * inline SVG with real text; each has its figures in a table or a caption as well. */
#ifndef HB_PLOTS_HTML_H
#define HB_PLOTS_HTML_H

#include "base/str.h"
#include "plots/fit.h"
#include "plots/outcome.h"
#include "plots/pareto.h"
#include "plots/tornado.h"

enum hb_html_theme { HB_HTML_AUTO, HB_HTML_LIGHT, HB_HTML_DARK }; /* auto: as the reader's system */

enum { HB_HTML_FLAGS = 4 };

/* Settings of a trainer, to paste. */
struct hb_html_flags {
    const char *title; /* "MaxText" */
    const char *text;
};

struct hb_html {
    const struct hb_outcome *outcome;
    const struct hb_fit_map *sweep; /* null: no such picture; as the next two */
    const struct hb_pareto *plan;
    const struct hb_tornado *advise;
    const char *sweep_note; /* what else is to be said of them, also where there is none; null */
    const char *plan_note;
    const char *levers_note;
    const char *cut_note;                      /* of a search that was cut off, said on top; null */
    struct hb_html_flags flags[HB_HTML_FLAGS]; /* of the plan; the first is shown open */
    uint32_t flag_count;
    const char *device;  /* "nvidia-h100-sxm x 64" */
    const char *yaml;    /* the configuration, complete */
    const char *filled;  /* the keys of it that are defaults and decide; null or "": none */
    const char *version; /* of hbmsim */
    const char *trust;   /* how far the figures may be believed; paragraphs parted by empty lines */
    enum hb_html_theme theme;
};

void hb_html_write(struct hb_arena *arena, const struct hb_html *report, struct hb_str *out);

/* Style sheet and script, as lines ended by null. */
extern const char *const hb_html_style[];
extern const char *const hb_html_script[];
extern const char *const hb_html_script_hash; /* "sha256-..." */

#endif
