/* What the table of intervals is made from: scales by kind out of records that rules were learnt
 * from, and the scores of those that none was. See interval.h. */
#ifndef HB_SIM_ENGINE_INTERVAL_FIT_H
#define HB_SIM_ENGINE_INTERVAL_FIT_H

#include <stdint.h>

#include "sim/engine/interval.h"

struct hb_interval_error {
    uint32_t kind;
    double part;  /* (measured - predicted) / predicted */
    double loose; /* hb_interval_loose, in parts of the predicted peak; above 0 */
};

struct hb_interval_fit {
    struct hb_interval_scale *scales;
    uint32_t scale_count;
    int32_t *scores_ppm;
    uint32_t count;
    int32_t usual_ppm;
};

/* golden: at least one. */
void hb_interval_fit(struct hb_arena *arena, const struct hb_interval_error *golden,
                     uint32_t golden_count, const struct hb_interval_error *unseen,
                     uint32_t unseen_count, struct hb_interval_fit *out);

#endif
