/* What the dispatches of a mixture share: sizes of what is routed, values mixed of others, the
 * experts' products, and collectives over the expert axis. */
#ifndef HB_SIM_IR_MOE_EXPERTS_H
#define HB_SIM_IR_MOE_EXPERTS_H

#include "sim/ir/layer.h"

/* Sizes of the routed part on one device. */
struct hb_moe_routed {
    int64_t batch; /* sequences */
    int64_t seq;
    int64_t tokens;
    int64_t experts; /* whose work this device does */
    int64_t masked;  /* for which it makes dispatch masks */
    int64_t capacity;
    int64_t rows; /* of all experts here, a token counted top_k times */
    int64_t width;
    int64_t expert_batch; /* sequences that reach this device's experts */
    bool joins;           /* as tokens, for masks that are made here */
};

int64_t hb_moe_ways(const struct hb_lower *lo);
struct hb_value hb_moe_value(const struct hb_lower *lo, const char *name, uint32_t tags,
                             enum hb_dtype dtype, const int64_t *dims);
/* Whether an einsum's masks are made where its experts are. */
bool hb_moe_goes_round(const struct hb_lower *lo, const struct hb_layer *y);
bool hb_moe_in_list(const struct hb_lower *lo, const struct hb_layer *y);
bool hb_moe_is_own_einsum(const struct hb_lower *lo, const struct hb_layer *y);
/* Whether a layer's backward loop goes in the order of XLA's schedulers, which the graph tells. */
bool hb_moe_is_ordered(const struct hb_lower *lo, const struct hb_layer *y);
/* How the gradient of what puts outputs together is read where it is put off. */
enum hb_for_ring hb_moe_mask_for(const struct hb_lower *lo);
/* Products of all experts with their rows. */
int hb_moe_experts(struct hb_lower *lo, struct hb_layer *y, int in, const int64_t *wide,
                   const int64_t *narrow);
/* Rows to the devices of their experts, or back. */
int hb_moe_exchange(struct hb_lower *lo, struct hb_layer *y, int in, struct hb_value v);
/* The whole axis's tokens, seq of each sequence. */
int hb_moe_gather_tokens(struct hb_lower *lo, struct hb_layer *y, int in, int64_t seq,
                         const struct hb_moe_routed *r);

#endif
