/* The kernel of attention, which makes the result of q, k and v as a device has them: flash (keeps
 * its operands, its result and the log-sum-exp), naive (materialises scores and probabilities), or
 * blocked by queries. Layouts are those read in the compilers' schedules: a kernel's operands are
 * [batch, heads, seq, head_dim] with head_dim along the lanes. */
#ifndef HB_SIM_IR_ATTENTION_KERNEL_H
#define HB_SIM_IR_ATTENTION_KERNEL_H

#include "sim/ir/layer.h"

/* Sizes of attention on one device. */
struct hb_attention_heads {
    int64_t batch;
    int64_t seq;    /* queries on this device */
    int64_t kv_seq; /* keys: gathered over the sequence axis */
    int64_t q;      /* query heads on this device */
    int64_t kv;     /* key heads on this device */
    int64_t qk_dim;
    int64_t v_dim;
    int64_t kv_ways;
    bool fused_kernel;
};

/* [batch, heads, seq, dim], as kernels want it. */
struct hb_value hb_attention_kernel_value(const struct hb_lower *lo, const char *name,
                                          uint32_t tags, const struct hb_attention_heads *h,
                                          int64_t heads, int64_t dim);
/* From values q, k and v to the result, laid out as they are. */
int hb_attention_kernel(struct hb_lower *lo, struct hb_layer *y, const struct hb_attention_heads *h,
                        int q, int k, int v);

#endif
