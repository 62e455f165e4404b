/* What happens in a run, in the order of (time, sequence): ops that start and end. */
#ifndef HB_SIM_ENGINE_EVENT_H
#define HB_SIM_ENGINE_EVENT_H

#include "sim/engine/run.h"

struct hb_event {
    int64_t time_ns;
    uint32_t seq; /* of equals, the order in which they happen */
    uint32_t op;
    int64_t trip;
    bool end; /* else start */
};

/* Two for each span of the timing; returns their number. */
uint32_t hb_event_list(struct hb_arena *arena, const struct hb_timing *timing,
                       struct hb_event **out);

#endif
