/* How long one op takes on a device, alone on its stream: a roofline of arithmetic and memory with
 * the device's measured efficiencies, links by collective and group, host copies. */
#ifndef HB_SIM_ENGINE_COST_H
#define HB_SIM_ENGINE_COST_H

#include "hw/device.h"
#include "sim/ir/program.h"

struct hb_cost {
    const struct hb_device *device;
    const struct hb_program *p;
    int64_t stride[HB_AX_COUNT]; /* devices between neighbours along an axis */
    int64_t total;               /* devices of the mesh */
    /* Loops (by index + 1; 0: the entry) with copies up and down that are not waited for at once.
     */
    uint64_t copies[2];
};

void hb_cost_init(struct hb_cost *cost, const struct hb_program *p, const struct hb_device *device);
/* From 0 (a mark, a wait, a collective of one) to HB_COST_MAX_NS, whatever the op says. */
int64_t hb_cost_op_ns(const struct hb_cost *cost, uint32_t index);
/* What a product or an attention kernel of so much arithmetic takes at least, whatever the
 * sequences in it; 0 of other ops. */
double hb_cost_least_ns(const struct hb_cost *cost, uint32_t index);
/* The rate at which products of this type run at best, for model FLOPs utilisation. */
double hb_cost_peak_flops(const struct hb_cost *cost, enum hb_dtype dtype);

/* 104 days; sums of 2^10 such ops still fit. */
#define HB_COST_MAX_NS (INT64_C(1) << 53)

#endif
