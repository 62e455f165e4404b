/* The levers of `advise`: what each frees at the peak, and what it costs in step time.
 * JSON, as `advise --json` writes it:
 *   {"name": text, "peak_bytes": bytes, "budget_bytes": bytes, "step_seconds": s,
 *    "levers": [{"name": "remat.policy=full", "freed_bytes": bytes (below 0: takes more),
 *                "cost_seconds": s (below 0: faster), "why": text,
 *                "applies": false where it does nothing here}, ...],
 *    "pairs": [same, ...]}                                               optional */
#ifndef HB_PLOTS_TORNADO_H
#define HB_PLOTS_TORNADO_H

#include "plots/canvas.h"

struct hb_advice_list;
struct hb_node;
struct hb_diag;

struct hb_lever {
    const char *name;
    const char *why;
    int64_t freed_bytes;
    double cost_seconds;
    bool pair; /* two knobs together */
};

struct hb_tornado {
    const char *name;
    const char *place; /* see plots/place.h; null or "": not told */
    int64_t peak_bytes;
    int64_t budget_bytes;    /* 0: none */
    double step_seconds;     /* 0: not told */
    struct hb_lever *levers; /* most freed first; after them those that do nothing here */
    uint32_t count;          /* of the first */
    uint32_t idle_count;     /* of the others: not drawn */
};

void hb_tornado_make(struct hb_arena *arena, const char *name, const struct hb_advice_list *list,
                     struct hb_tornado *out);
bool hb_tornado_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *json,
                     struct hb_tornado *out);
const char *hb_tornado_title(struct hb_arena *arena, const struct hb_tornado *t);
void hb_tornado_draw(struct hb_canvas *c, const struct hb_tornado *t);

#endif
