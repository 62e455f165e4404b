/* The measuring programme of `calibrate`: which quantities, in which order, over which sizes, and
 * how they become a device profile. Works on any probe; allocates plainly, gives everything back,
 * never resets or reconfigures a device. */
#ifndef HB_HW_MEASURE_H
#define HB_HW_MEASURE_H

#include "base/str.h"
#include "hw/probe.h"

struct hb_measure_wish {
    int64_t budget_ns;
    const char *date;             /* written into the profile */
    bool no_capacity;             /* memory is not taken until it is refused */
    const struct hb_device *base; /* what cannot be measured comes from here; null */
};

struct hb_measure_result {
    struct hb_device device;
    struct hb_str remarks; /* sentences for the user, one a line */
    bool complete;         /* false: the essentials are missing, the profile cannot be used */
    bool interrupted;      /* Ctrl-C */
    bool lost;             /* the device failed and no longer answers */
};

/* What hb_measure_run would do, a line each. */
void hb_measure_list(const struct hb_measure_wish *wish, struct hb_str *to);
void hb_measure_run(struct hb_env *env, struct hb_probe *probe, const struct hb_measure_wish *wish,
                    struct hb_measure_result *out);

#endif
