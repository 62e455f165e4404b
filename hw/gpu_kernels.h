/* The kernels of a calibration, in the C++ that both run-time compilers take. */
#ifndef HB_HW_GPU_KERNELS_H
#define HB_HW_GPU_KERNELS_H

#include "hw/probe.h"

/* What hb_fill writes, by its last argument: normal numbers in a type, or ones as factors of
 * blocks.
 */
enum hb_fill {
    HB_FILL_F32,
    HB_FILL_F64,
    HB_FILL_BF16,
    HB_FILL_F16,
    HB_FILL_E4M3,
    HB_FILL_E4M3_FNUZ,
    HB_FILL_E2M1,
    HB_FILL_INT8,
    HB_FILL_ONES_E4M3,
    HB_FILL_ONES_E8M0
};

/* The text of all of them. */
const char *hb_gpu_kernels(struct hb_arena *arena);
const char *hb_gpu_kernel_name(enum hb_kernel which);

#endif
