/* hbmsim calibrate --fit: from measured peaks of this machine to its profile. */
#ifndef HB_CLI_CALIBRATE_FIT_H
#define HB_CLI_CALIBRATE_FIT_H

#include "hw/device.h"

struct hb_env;
struct hb_overhead_point;

struct hb_fit_ask {
    const char *records; /* file of measured records */
    const char *base;    /* profile to start from; null: the one that the records name */
    const char *date;
};

/* Fills out_dev; what was found, and which records do not count, is said on env->err. False: bad
 * input, told. */
bool hb_calibrate_fit(struct hb_env *env, const struct hb_fit_ask *ask, struct hb_device *out_dev);

/* The same of points that were just measured, at least HB_OVERHEAD_FEWEST; dev is the base. */
bool hb_calibrate_fit_points(struct hb_env *env, struct hb_overhead_point *points, uint32_t count,
                             const char *date, struct hb_device *dev);

#endif
