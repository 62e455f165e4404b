/* This machine's processor as a device to calibrate: see probe.h. */
#ifndef HB_HW_PROBE_CPU_H
#define HB_HW_PROBE_CPU_H

#include "hw/probe.h"

/* Null: *out_reason says why not. */
struct hb_probe *hb_cpu_open(struct hb_env *env, const char **out_reason);

#endif
