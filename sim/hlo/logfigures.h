/* What the amounts of a sentence mean ("needed", "free", "at most", "held"), by the words beside
 * them. A figure whose meaning no word tells is left out. */
#ifndef HB_SIM_HLO_LOGFIGURES_H
#define HB_SIM_HLO_LOGFIGURES_H

#include "sim/hlo/logsentence.h"

/* Bytes -1: not told. */
struct hb_figures {
    struct hb_amount wanted;
    struct hb_amount free;
    struct hb_amount limit;
    struct hb_amount total;
    struct hb_amount held;
};

/* Marks the words that told as taken. */
struct hb_figures hb_figures_read(struct hb_sentence *l);
/* "cannot allocate over 4 GB", "more than 4 GB": the most that is given. i is the amount. */
bool hb_figures_is_most(const struct hb_sentence *l, int i);

#endif
