/* Which sequence XLA:GPU takes: the same choice of three as XLA:TPU's (sequence.h), by what each
 * holds at the loss and in the layers' backward pass. Private to the lowering. */
#ifndef HB_SIM_IR_SEQUENCE_GPU_H
#define HB_SIM_IR_SEQUENCE_GPU_H

#include "sim/ir/lowering.h"
#include "sim/ir/sequence.h"

/* Whether the three were read off for such a step (ROCm; on CUDA collectives are moved again). */
bool hb_sequence_gpu_known(const struct hb_lower *lo);
/* The list: zeros of all gradients and of the table's from the start, the head's gradient at once
 * where it frees more than it makes. Depth-first: zeros where they are added to, the head's
 * gradient after the layers; in post-order before that of its input. */
enum hb_sequence hb_sequence_gpu_find(const struct hb_lower *lo);
/* Whether the head's gradient is made after the layers' backward pass: in the list only if it takes
 * more than it frees and a layer's pass holds. */
bool hb_sequence_gpu_waits(const struct hb_lower *lo);

#endif
