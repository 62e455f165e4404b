/* An order for modules that have none: those before optimisation. Not what the compiler will do
 * (it fuses first), but one that a sensible compiler would not do worse than. */
#ifndef HB_SIM_HLO_SCHEDULE_H
#define HB_SIM_HLO_SCHEDULE_H

#include "sim/hlo/module.h"

enum hb_hlo_scheduling {
    HB_HLO_AS_PRINTED,
    HB_HLO_POST_ORDER, /* depth first, operands left to right */
    HB_HLO_LIST,       /* of what is ready, that which leaves the least alive */
    HB_HLO_SCHEDULINGS
};

/* By computation, then by place: the instruction that runs there (see hb_hlo_flow_find). */
uint32_t *hb_hlo_schedule(struct hb_arena *arena, const struct hb_hlo_module *m,
                          enum hb_hlo_scheduling how);
const char *hb_hlo_scheduling_name(enum hb_hlo_scheduling how);

#endif
