/* The model's layers: each block as a scan, as nested scans, or layer by layer; and backward. */
#ifndef HB_SIM_IR_STACK_H
#define HB_SIM_IR_STACK_H

#include "sim/ir/body.h"

/* Stacks that a group may copy: of attention contexts, layer inputs, attention outputs. */
enum { HB_TURNED = 3 };

/* One block, or one layer of an unrolled block. */
struct hb_group {
    struct hb_layer layer;
    struct hb_saved saved;
    struct hb_body body;
    int64_t trips; /* of the (outer) loop; 1 with unrolled layers */
    int64_t inner; /* trips of the inner loop of nested scans; 0: none */
    bool looped;
    uint32_t outer_stack; /* nested, rematerialised: inputs of the outer blocks */
    uint32_t *last;       /* what its last layer sends to the host, still on the device; or null */
    uint32_t room;        /* on v5e: for what its backward rings collect; HB_NONE */
    bool pipelined;
    bool merged; /* a scan unrolled whole: one program, in which nothing is made again */
    uint32_t turned[HB_TURNED]; /* copies of stacks, made before the loop; HB_NONE */
    uint32_t *held; /* what the last trip's weight gradients read; HB_NONE, or null: they came */
};

struct hb_stack_plan {
    struct hb_group *groups;
    uint32_t count, cap;
    bool held;     /* all of them wait for hb_side_finish */
    uint32_t late; /* groups below this one still have gradients that wait: side.h */
};

/* Adds the leaves of all blocks. */
void hb_stack_leaves(struct hb_lower *lo, struct hb_stack_plan *plan);
/* Those of one layer by itself. */
void hb_stack_one_layer(struct hb_lower *lo, struct hb_stack_plan *plan,
                        const struct hb_block *block);
/* Fills in what each layer computes and keeps; after the leaves are arguments. */
void hb_stack_build(struct hb_lower *lo, struct hb_stack_plan *plan);
/* Inputs of all layers, whatever else a policy keeps; a sample's are those of the configuration. */
int64_t hb_stack_input_bytes(const struct hb_lower *lo);
/* Outer blocks that are made again, of so many layers; 0: none are. */
int64_t hb_stack_outer(const struct hb_lower *lo, int64_t layers);
/* Stacks that are there before anything else of the step. */
void hb_stack_reserve(struct hb_lower *lo, struct hb_stack_plan *plan);
uint32_t hb_stack_forward(struct hb_lower *lo, struct hb_stack_plan *plan, uint32_t x);
uint32_t hb_stack_backward(struct hb_lower *lo, struct hb_stack_plan *plan, uint32_t grad);

/* Lifts the causal mask out of the group's next loop where the compiler does. */
void hb_stack_hoist_mask(struct hb_lower *lo, struct hb_group *g);
/* Between the passes: stacks that the backward loop reads in another layout are copied. */
void hb_stack_restack(struct hb_lower *lo, struct hb_body *b);
/* The gradient that a trip made, in the place of the one it was handed. */
uint32_t hb_stack_carried(struct hb_lower *lo, uint32_t out, uint32_t carry);
/* What goes to the host a trip later, in a loop that is open; and where the loop backwards, which
 * starts from it, ends its trip. */
void hb_stack_carry_sent(struct hb_lower *lo, struct hb_group *g);
void hb_stack_end_sent(struct hb_lower *lo, const struct hb_group *g);

#endif
