/* Memory against step time of all configurations that were planned, with the front (none is both
 * faster and smaller), the budget, the plan and its runners-up.
 * JSON, as `plan --json` writes it; beyond the keys of the command line's contract:
 *   "alternatives": [{"name": text, "prediction": {"peak_bytes", "step_seconds"}}, ...] (or both
 *                    numbers beside the name)
 *   "points": [{"peak_bytes", "step_seconds", "name"}, ...]   all or a sample of what was priced
 *   "status": "limit"                  the search was cut off
 *   "plan_name": text                                          the plan in a few words */
#ifndef HB_PLOTS_PARETO_H
#define HB_PLOTS_PARETO_H

#include "plots/canvas.h"

struct hb_node;
struct hb_diag;

enum hb_pareto_rank { HB_RANK_OTHER, HB_RANK_RUNNER_UP, HB_RANK_PLAN };

struct hb_pareto_point {
    const char *name;
    int64_t peak_bytes;
    double step_seconds;
    enum hb_pareto_rank rank;
};

struct hb_pareto {
    const char *name;
    const char *place;    /* see plots/place.h; null or "": not told */
    int64_t budget_bytes; /* 0: none */
    struct hb_pareto_point *points;
    uint32_t count;
    uint32_t plan;     /* index; HB_NONE: nothing fits */
    bool cut_off;      /* the search ended before it knew */
    double considered; /* configurations behind the picture; 0: not told */
};

bool hb_pareto_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *json,
                    struct hb_pareto *out);
/* Indices of the points that no other beats in both, fastest first. */
uint32_t hb_pareto_front(struct hb_arena *arena, const struct hb_pareto *p, uint32_t **out);
const char *hb_pareto_title(struct hb_arena *arena, const struct hb_pareto *p);
void hb_pareto_draw(struct hb_canvas *c, const struct hb_pareto *p);

#endif
