/* All devices of one kind on this host at work together: copies between two, collectives by NCCL or
 * RCCL, host copies of all at once. */
#ifndef HB_HW_GPU_TOGETHER_H
#define HB_HW_GPU_TOGETHER_H

#include "hw/probe.h"

struct hb_gpu;
struct hb_gpu_together;

/* As hb_probe_ops has them. */
bool hb_gpu_together_open(struct hb_probe *p, int64_t bytes, int *out_devices);
bool hb_gpu_together(struct hb_probe *p, const struct hb_together *what, int repeats,
                     double *out_ns);
void hb_gpu_together_close(struct hb_probe *p);

#endif
