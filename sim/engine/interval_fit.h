/* What the table of intervals is made from: the factors of facts and the scores of records of one
 * family of compilers. See interval.h.
 *
 * Factors multiply to the mean error of their records: in turns, each is what the records of its
 * value are off by over what the others say of them, pulled to 1 by as many usual records as
 * HB_INTERVAL_PULL. Each record's score is in the spread of factors that were fitted without it:
 * of every HB_INTERVAL_FOLDS one is left out. */
#ifndef HB_SIM_ENGINE_INTERVAL_FIT_H
#define HB_SIM_ENGINE_INTERVAL_FIT_H

#include "sim/engine/interval.h"

enum { HB_INTERVAL_PULL = 5, HB_INTERVAL_FOLDS = 8 };

struct hb_interval_error {
    uint32_t kind;
    double part; /* measured / predicted - 1 */
};

/* Of those of the family, whose order does not matter but for the folds. */
void hb_interval_fit(struct hb_arena *arena, const struct hb_interval_error *errors, uint32_t count,
                     uint32_t family, struct hb_interval_family *out);

#endif
