/* Running a layer inside a loop body (or side by side in an unrolled program): its forward steps,
 * and its backward pass, which makes values again when it first needs them.
 * The caller owns what crosses the body's edge: the input, the stacks of kept values, the
 * gradient that comes in. */
#ifndef HB_SIM_IR_BODY_H
#define HB_SIM_IR_BODY_H

#include "sim/ir/saved.h"

struct hb_body {
    struct hb_lower *lo;
    const struct hb_layer *y;
    const struct hb_saved *saved;
    uint32_t *stack;            /* by value: where kept values lie between the passes; HB_NONE */
    uint32_t *now;              /* by value: its buffer in this body; HB_NONE */
    uint32_t *room;             /* by value: made before, where it comes to lie; HB_NONE; or null */
    uint32_t made[HB_STEP_OUT]; /* by output of the forward step that runs; HB_NONE */
    uint32_t *grad;             /* by value: its gradient; HB_NONE */
    uint32_t *full_dw;          /* by leaf of the layer: whole gradients that wait for their sum */
    uint32_t *turned;           /* by leaf of the layer: its gathered weight in another layout */
    bool *made_first;           /* by leaf of the layer: whose gradient has been made */
    uint32_t *late; /* steps whose weight gradients are made at the layer's end, in order */
    uint32_t late_count;
    uint32_t late_done; /* of those */
    uint32_t joined;    /* what a move's gradient is gathered to, from before it; HB_NONE */
    uint32_t late_room; /* of unrolled layers: what their rings will collect; HB_NONE */
    bool *shared;    /* by value: its gradient is another's too; sums go to a place of their own */
    uint32_t remade; /* gradient of a sum that its next reader makes again; HB_NONE */
    uint32_t remade_from[3];    /* from these: what came in, the branch's, what the norm read */
    uint32_t parts[HB_STEP_IN]; /* of an input's gradient, that the next step reads beside it ... */
    int part_count;             /* ... how many there are */
    /* By value, where ragged products are spread over experts (spread.h): by expert, and as rows,
     * its own and its gradient; HB_NONE. */
    uint32_t *spread, *rows, *spread_grad, *rows_grad;
    uint32_t *narrow;           /* by value: its copy in 8 bit; HB_NONE */
    uint32_t (*narrow_grad)[2]; /* and those of its gradient, by row and by column */
    uint32_t *weights; /* by leaf: cast or gathered, between the passes of this layer; HB_NONE */
    const struct hb_step_op *inlined; /* product whose input's gradient the next step makes; null */
    uint32_t mask;                    /* hoisted causal mask and its fill value; HB_NONE */
    uint32_t fill;
    bool recomputed;  /* hb_body_recompute has run: the backward pass starts from now[] */
    bool defer;       /* weight gradients wait for hb_body_late */
    bool spread_wait; /* those of spread products do */
    bool meets_loss;  /* before the MLP's, at the layer's end, a loss in chunks is added up */
    bool sums_wait;   /* their sums over devices for hb_body_sums */
    bool own_weights; /* casts of the forward pass serve the backward pass too ... */
    bool sums_wide;   /* residuals' gradients are handed on in f32; see hand_on */
    bool restacked;   /* stacks that lie turned have been copied */
    bool own_stacks;  /* stack[] are this layer's own buffers, not slices of a loop's */
};

void hb_body_init(struct hb_body *b, struct hb_lower *lo, const struct hb_layer *y,
                  const struct hb_saved *saved);
/* Adds the buffers that keep values between the passes; lead[] are leading dimensions (0: none).
 * They are there from here on, or, without a name, from when each is written. */
void hb_body_stacks(struct hb_body *b, const int64_t *lead, const char *name);
/* The forward pass; in is the layer's input; returns its output, in the place of `place` unless
 * that is HB_NONE. keep: what is kept is written into its stacks. */
uint32_t hb_body_forward(struct hb_body *b, uint32_t in, uint32_t place, bool keep);
/* Makes again, in the order of the forward pass, all that the backward pass will read; for layers
 * side by side, whose recomputation runs before the backward pass of any of them. */
void hb_body_recompute(struct hb_body *b);
/* The backward pass from the gradient of the output to that of the input, which is returned. */
uint32_t hb_body_backward(struct hb_body *b, uint32_t grad_out);
/* The weight gradients that a body with `defer` left out. */
void hb_body_late(struct hb_body *b);
/* The sums over devices that one with `sums_wait` left out. */
void hb_body_sums(struct hb_body *b);

#endif
