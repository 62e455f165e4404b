/* Compact pictures for a terminal: block characters where it shows them, plain ASCII elsewhere.
 * No line is wider than the terminal. */
#ifndef HB_PLOTS_TERM_H
#define HB_PLOTS_TERM_H

#include "base/str.h"
#include "plots/fit.h"
#include "plots/outcome.h"
#include "plots/pareto.h"

struct hb_term {
    int width;    /* columns, at least 40 */
    bool unicode; /* the terminal shows more than ASCII */
    bool colour;  /* it takes ANSI colours */
};

/* Memory over the step, with the budget and the phases below. o->sample_count > 0. */
void hb_term_timeline(struct hb_str *out, const struct hb_term *t, const struct hb_outcome *o);
/* The fit map of each facet. */
void hb_term_fit(struct hb_str *out, const struct hb_term *t, const struct hb_fit_map *m);
/* Memory against step time, with the plan and its runners-up by number. */
void hb_term_pareto(struct hb_str *out, const struct hb_term *t, const struct hb_pareto *p);

#endif
