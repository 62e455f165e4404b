/* Predicted against measured, with bands of 5 % and 10 %, by group, the worst cases named, and how
 * the errors spread. JSON: `validate --json` of the command line's contract. */
#ifndef HB_PLOTS_SCATTER_H
#define HB_PLOTS_SCATTER_H

#include "plots/canvas.h"

struct hb_node;
struct hb_diag;

struct hb_scatter_case {
    const char *id;
    uint32_t group; /* index into groups; set by hb_scatter_add, as error_pct */
    int64_t measured_bytes;
    int64_t predicted_bytes;
    double error_pct; /* 100 * (predicted / measured - 1) */
};

struct hb_scatter {
    struct hb_scatter_case *cases;
    uint32_t count, cap;
    const char **groups;
    uint32_t group_count, group_cap;
    uint32_t failed; /* cases without a prediction: not drawn, but told */
};

/* Adds a case of that group; without an answer (either size not above 0) it counts as failed. */
void hb_scatter_add(struct hb_arena *arena, struct hb_scatter *s, struct hb_scatter_case one,
                    const char *group);
bool hb_scatter_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *json,
                     struct hb_scatter *out);
const char *hb_scatter_title(struct hb_arena *arena, const struct hb_scatter *s);
void hb_scatter_draw(struct hb_canvas *c, const struct hb_scatter *all);

#endif
