/* What a report finds out beside the one configuration: the sizes around it, the plan, the levers.
 * Each in a bounded time; what was cut off or could not be is told in words. */
#ifndef HB_CLI_REPORT_RUNS_H
#define HB_CLI_REPORT_RUNS_H

#include "plots/html.h"

struct hb_env;
struct hb_spec;
struct hb_device;

/* batch.global and batch.seq from an eighth to eight times the configuration's. */
void hb_report_sweep(struct hb_env *env, const struct hb_spec *spec, struct hb_html *report);
/* The search gives up after so many seconds. */
void hb_report_plan(struct hb_env *env, const struct hb_spec *spec, const struct hb_device *device,
                    double seconds, struct hb_html *report);
void hb_report_levers(struct hb_env *env, const struct hb_spec *spec,
                      const struct hb_device *device, struct hb_html *report);

#endif
