/* Power, clocks and partitions of a GPU, as NVML or AMD SMI tells them. A machine without them is
 * measured all the same; nothing is set. */
#ifndef HB_HW_GPU_SMI_H
#define HB_HW_GPU_SMI_H

#include "hw/probe.h"

struct hb_arena;
struct hb_libs;
struct hb_smi;

/* The device of that PCI bus id ("0000:c1:00.0"). Null: *out_reason says why there is none. */
struct hb_smi *hb_smi_open(struct hb_arena *arena, const struct hb_libs *libs,
                           enum hb_vendor vendor, const char *bus, const char **out_reason);
/* What is not told stays 0. */
void hb_smi_read(struct hb_smi *smi, struct hb_health *out);
/* "SPX/NPS1"; "" where there are none. */
const char *hb_smi_partition(struct hb_smi *smi);
void hb_smi_close(struct hb_smi *smi);

#endif
