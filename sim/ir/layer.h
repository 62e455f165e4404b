/* One layer as values and steps: what is computed from what, on one device, before anything is
 * said about where it is kept. A value is a tensor; a step makes values from values and at most
 * one weight, and knows which of them its backward pass reads. The forward pass, what is saved
 * and made again, and the backward pass all follow from this one description. */
#ifndef HB_SIM_IR_LAYER_H
#define HB_SIM_IR_LAYER_H

#include "sim/ir/lowering.h"

enum { HB_STEP_IN = 6, HB_STEP_OUT = 6, HB_SCRATCH = 4 };

enum hb_step_kind {
    HB_STEP_MIX,     /* anything that computes, but: */
    HB_STEP_PRODUCT, /* by a weight: backward is two products */
    HB_STEP_ADD,     /* residual sum: its gradient passes through */
    HB_STEP_MOVE     /* a collective on activations: backward is its opposite */
};

/* What is copied to another layout. */
enum hb_for_ring {
    HB_RING_AS_IS,
    HB_RING_MASK,     /* the gradient that is put off */
    HB_RING_GRADIENT, /* the gradient, where it is made */
    HB_RING_VALUE     /* the value, where it is made again */
};

struct hb_value {
    const char *name;
    uint32_t tags; /* names by which a policy can ask for it: mask of 1u << HB_TN_* */
    struct hb_shape shape;
    enum hb_tiling tiling;
    int producer;      /* index of its step; -1: the layer's input */
    bool fused;        /* never a buffer: readers make it again from its producer's inputs */
    bool dot;          /* result of a product without batch dimensions */
    bool batch_dot;    /* result of a product with batch dimensions */
    bool cheap;        /* an iteration of a pipeline makes it again when its backward reads it */
    bool dots_only;    /* a product inside its step, which policy dots keeps and no other */
    bool trace_only;   /* a residual that only policy none keeps, under a scan; not fused: and what
                          is made again for a backward pass that reads it */
    bool unseen;       /* of the partitioner: no policy keeps it */
    bool wide;         /* in f32 where its gradient is not */
    bool relaid;       /* what it is made of, in another layout: policy none keeps one of them */
    int turned;        /* the value that this is a copy of, in another layout; 0: it is none */
    bool restacked;    /* its stack is copied whole into another layout between the passes */
    bool read_stacked; /* kept in a loop's stack, its readers take their layer's out of that */
    bool in_parts;     /* its stack has this device's part over the sequence axis */
    bool weighs;       /* a mask that serves as the weights, too: what flows back into them */
    bool mask;         /* a predicate where it is made again, in its own dtype where it is kept */
    bool wide_mask;    /* no predicate there either */
    int back_as;       /* the value that a backward pass reads in its stead; 0: none */
    enum hb_for_ring for_ring;
};

struct hb_step_op {
    enum hb_step_kind kind;
    enum hb_op_kind op;
    const char *name;
    int in[HB_STEP_IN];
    int in_count;
    int out[HB_STEP_OUT];
    int out_count;
    uint32_t leaf; /* weight, or HB_NONE */
    double flops;
    double back_flops; /* of its backward pass, where not twice those */
    int64_t rows, cols, depth;
    double batch;
    uint32_t back_in;  /* bits of in[] that the backward pass reads */
    bool trace_serves; /* what only policy none keeps of it serves the backward pass, not in[] */
    uint32_t back_out; /* bits of out[] that it reads */
    bool mask_read;    /* reads the mask that is materialised before the loop */
    bool grad_follows; /* the gradient of in[0] takes the place of that of out[0] */
    bool grad_fused;   /* of an activation: its inputs' gradients are made inside their readers, so
                          that the gradient of out[0] stays until those are done */
    uint32_t grad_in_place; /* bits of in[]: its gradient takes the value's own place */
    struct hb_shape scratch[HB_SCRATCH]; /* working tensors during the step */
    int scratch_count;
    struct hb_shape back_scratch[HB_SCRATCH];
    int back_scratch_count;
    double moved_bytes, back_moved_bytes; /* 0: each operand, result and scratch once */
    bool back_scratch_after;              /* made of the inputs' gradients, when they are there */
    enum hb_axis axis;                    /* of a MOVE, and of the sum of a product's parts */
    int64_t spread;          /* of a ragged product: over so many experts are its operands spread */
    bool sum_parts;          /* a product's results are summed over `axis` */
    bool grad_sum_parts;     /* its input's gradient is summed over `axis` */
    bool eager;              /* its backward pass runs as soon as its readers are done */
    bool grad_inline;        /* of a product: its input's gradient is made inside its reader */
    bool no_grad;            /* indices, masks: nothing flows back */
    bool with_next;          /* made again, the next step's result is made with its own */
    int before;              /* a value that is made again before it; 0: none */
    bool experts_there;      /* the experts' gathered weights are there before it */
    bool grad_by_size;       /* of experts: their weight's gradient has its place by its size */
    bool parts_beside;       /* of its input's gradient: both are read by what follows */
    bool grad_late;          /* of a product: its weight's gradient waits for the layer's end */
    bool off_early;          /* the other's comes with those of the activation ... */
    bool makes_off;          /* ... which is this */
    bool listed;             /* behind it the list of least memory places the experts' rings ... */
    bool late_first;         /* ... those that wait, too ... */
    bool outputs_again;      /* ... and makes their outputs again */
    bool first_last;         /* of its inputs' gradients, the first's: where it is read */
    bool scratch_told;       /* what it is fused into has it */
    enum hb_op_kind back_op; /* of a MOVE: the opposite collective ... */
    double sent_bytes;       /* ... and what either sends; 0: as its result says */
};

struct hb_layer {
    const struct hb_block *block;
    const char *name;
    int64_t at;       /* layer of the unit that is being made */
    int64_t together; /* layers of a stage, side by side; 0: not so ... */
    int64_t behind;   /* ... and those of them that go backwards before it */
    struct hb_value *values;
    uint32_t value_count, value_cap;
    struct hb_step_op *steps;
    uint32_t step_count, step_cap;
    struct hb_shape mask_shape;    /* of naive scores; rank 0: no naive attention */
    int input;                     /* value index: what the layer is given */
    int output;                    /* value index: what it hands on */
    uint32_t first_leaf, end_leaf; /* its weights */
    int64_t stack[2];              /* leading dimensions of its leaves; 0: none */
    bool expert_leaf;              /* the leaves added now are experts' */
};

/* Adds the leaves of one block's layers; stack[] are its leading dimensions (0: none). */
void hb_layer_leaves(struct hb_lower *lo, const struct hb_block *block, const char *name,
                     const int64_t stack[2], struct hb_layer *y);
/* Fills values and steps; the leaves must be there. batch: sequences in the layer here. */
void hb_layer_build(struct hb_lower *lo, struct hb_layer *y, int64_t batch);

/* For the parts of a layer (attention.c, mlp.c, moe.c). */
/* XLA:GPU: a unit of several layers is made again as one, with what leads from each to the next. */
bool hb_layer_made_whole(const struct hb_lower *lo, const struct hb_layer *y);
struct hb_value hb_layer_tensor(const struct hb_lower *lo, const char *name, uint32_t tags,
                                struct hb_shape shape);
/* In the compute dtype, as a product with a weight makes it. */
struct hb_value hb_layer_dot(const struct hb_lower *lo, const char *name, uint32_t tags,
                             const int64_t *dims);
int hb_layer_value(struct hb_lower *lo, struct hb_layer *y, struct hb_value v);
struct hb_step_op *hb_layer_step(struct hb_lower *lo, struct hb_layer *y, struct hb_step_op s);
/* v, made without a weight by step s, which says of what and how; its name is v's unless told. */
int hb_layer_make(struct hb_lower *lo, struct hb_layer *y, struct hb_value v, struct hb_step_op s);
/* value in; v made of it over axis: by a collective, or (HB_OP_COPY) a device's own part. */
int hb_layer_move(struct hb_lower *lo, struct hb_layer *y, enum hb_op_kind op, enum hb_axis axis,
                  int in, struct hb_value v);
/* value in; value out, made by a product with the layer's weight of that name. */
int hb_layer_product(struct hb_lower *lo, struct hb_layer *y, int in, const char *weight,
                     struct hb_value value);
/* How many of it the residual of a device's sequences is, split over tensor or not. */
double hb_layer_shares(const struct hb_lower *lo, struct hb_shape share);
/* The product just added makes parts of a sum over tensor: of all positions, kept or not. */
void hb_layer_sum_parts(const struct hb_lower *lo, struct hb_layer *y);
/* Normalises by the leaf of the same name. */
/* Side by side between rings, with nothing made again: the kernel's log-sum-exp waits as it left
 * it, a lane for each, and the second norm's input in f32 (ring/f16,loop,none: f32[32,4096,128]
 * four times and f32[1,4096,4096] three times at the loss). */
bool hb_layer_keeps_wide(const struct hb_lower *lo, const struct hb_layer *y);
/* What policy none keeps of a norm of in in f32, as further results of the step. */
void hb_layer_norm_parts(struct hb_lower *lo, struct hb_layer *y, int in, const char *name,
                         struct hb_step_op *s);
int hb_layer_norm(struct hb_lower *lo, struct hb_layer *y, int in, const char *name);
/* Sum of the residual and a branch. */
int hb_layer_add(struct hb_lower *lo, struct hb_layer *y, int residual, int branch,
                 const char *name);
/* A weight of the layer: a matrix is cast for products, a vector (norm, bias) is not. gather_dim:
 * the dimension that fsdp splits; -1: none. */
uint32_t hb_layer_matrix(struct hb_lower *lo, struct hb_layer *y, const char *name,
                         const struct hb_split *dims, int rank, int gather_dim);
uint32_t hb_layer_vector(struct hb_lower *lo, struct hb_layer *y, const char *name,
                         const struct hb_split *dims, int rank, int gather_dim);
/* A vector of that size, over so many devices. */
void hb_layer_bias(struct hb_lower *lo, struct hb_layer *y, const char *name, int64_t size,
                   int64_t ways);
/* The bias of what is added to the residual. */
void hb_layer_output_bias(struct hb_lower *lo, struct hb_layer *y, const char *name);
uint32_t hb_layer_find_leaf(const struct hb_lower *lo, const struct hb_layer *y, const char *name);
int hb_layer_attention(struct hb_lower *lo, struct hb_layer *y, int in, int64_t batch);
int hb_layer_mlp(struct hb_lower *lo, struct hb_layer *y, int in, int64_t batch);
int hb_layer_moe(struct hb_lower *lo, struct hb_layer *y, int in, int64_t batch);
/* The experts' products are ragged: of a device's own rows, or of all of the axis. */
bool hb_layer_sorts_rows(const struct hb_moe *m);
/* Rows of a ragged dispatch travel to the experts' devices and back. */
bool hb_layer_exchanges_rows(const struct hb_lower *lo, const struct hb_moe *m);
/* An MLP with its own width and name prefix. */
struct hb_mlp_part {
    const struct hb_mlp *mlp;
    const char *prefix;
    const uint32_t *tags; /* of gate, up, activation and output */
};
int hb_mlp_build(struct hb_lower *lo, struct hb_layer *y, int in, int64_t batch,
                 const struct hb_mlp_part *part);
void hb_mlp_leaves(struct hb_lower *lo, struct hb_layer *y, const struct hb_mlp *m,
                   const char *prefix);
/* gate: -1 for an MLP without. */
struct hb_activation {
    enum hb_mlp_kind kind;
    int gate, up; /* no gate: -1 */
    const char *name;
    uint32_t tags;
};
int hb_layer_activation(struct hb_lower *lo, struct hb_layer *y, const struct hb_activation *a);
void hb_layer_attention_leaves(struct hb_lower *lo, struct hb_layer *y);
void hb_layer_moe_leaves(struct hb_lower *lo, struct hb_layer *y);

#endif
