/* When each value is alive, in places of the flattened schedule (rules 2, 3, 13;
 * xla/hlo/utils/hlo_live_range.cc): from its definition, or its computation's start for a
 * parameter, to its last use, or its computation's end where it is returned. */
#ifndef HB_SIM_HLO_RANGE_H
#define HB_SIM_HLO_RANGE_H

#include "sim/hlo/flow.h"

struct hb_hlo_range {
    int32_t start, end; /* both included; end may be end_time of the flow */
    uint32_t end_node;  /* the place where it stands last, */
    uint32_t end_slot;  /* and the slot there */
};

/* One for each value. Before normalising: values of one buffer may overlap. */
struct hb_hlo_range *hb_hlo_range_find(struct hb_arena *arena, const struct hb_hlo_flow *f);

#endif
