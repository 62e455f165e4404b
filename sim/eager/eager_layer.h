/* One layer of an eager framework as a list of pieces: kernels and collectives of its forward pass,
 * each knowing what its backward pass takes. Private to sim/eager/eager*.c. */
#ifndef HB_SIM_EAGER_EAGER_LAYER_H
#define HB_SIM_EAGER_EAGER_LAYER_H

#include "models/spec.h"
#include "sim/ir/program.h"

/* The program being built and what is the same for all its layers, on one device. */
struct hb_eager {
    struct hb_arena *arena;
    const struct hb_spec *spec;
    struct hb_program *p;
    enum hb_phase phase;
    double batch;        /* sequences of one microbatch */
    double seq;          /* positions of them here */
    double tokens;       /* batch x seq */
    double resid_tokens; /* of them where the residual is split over tensor, too */
    bool fused;          /* element-wise chains are one kernel each: compiled, or Megatron's own */
    uint32_t x;          /* what one op hands to the next */
    uint32_t weights;    /* of the next layer, gathered */
    uint32_t grads;      /* of a layer, whole */
    uint32_t sums;       /* gradients, reduced */
    uint32_t updates;    /* of parameters, gathered */
    uint32_t keys;       /* keys and values of all ranks of the sequence axis */
};

/* What a piece does beside HB_OP_MATMUL and the like is in its kind; collectives are those of the
 * forward pass. */
struct hb_piece {
    const char *name;
    enum hb_op_kind kind;
    enum hb_op_kind back_kind; /* of a collective; HB_OP_MARK: none in that direction */
    enum hb_axis axis;
    int64_t group;
    double sent_bytes;      /* of a collective */
    double back_sent_bytes; /* backwards; 0: as forwards */
    double flops;
    double rows, cols, depth, batch; /* of a product; queries, keys, width of attention */
    double bytes;                    /* moved forwards ... */
    double back_bytes;               /* ... and backwards; of a product, for the weight gradient */
    double quantise_bytes;           /* before a product in 8 bit, forwards ... */
    double quantise_back_bytes;      /* ... and backwards */
    enum hb_dtype dtype;
    bool packed;  /* ranks side by side, or with those that split an expert between: Megatron's */
    bool beside;  /* a collective that the piece after the next waits for ... */
    bool waits;   /* ... or already the next */
    bool grouped; /* products of a batch run one by one */
    bool remade;  /* run again before the backward pass */
};

struct hb_eager_layer {
    struct hb_piece *pieces;
    uint32_t count;
    uint32_t cap;
};

/* What a layer of the block keeps: its own policy, or what its budget comes to. */
struct hb_remat hb_eager_remat(const struct hb_eager *e, const struct hb_block *block);
/* at: which of a unit's layers. remat: the layer is one of those that `remat` applies to. */
void hb_eager_layer_build(struct hb_eager *e, const struct hb_block *block, int64_t at, bool remat,
                          struct hb_eager_layer *out);
void hb_eager_layer_forward(struct hb_eager *e, const struct hb_eager_layer *layer);
/* What is made again, then the pieces from the last to the first. */
void hb_eager_layer_backward(struct hb_eager *e, const struct hb_eager_layer *layer);
/* One op of the main chain: it reads what the op before handed on, and `read` too; it hands on, or
 * writes `write`. HB_NONE: neither. */
void hb_eager_emit(struct hb_eager *e, struct hb_op op, uint32_t read, uint32_t write);
/* A piece that is no part of a layer, one way. */
void hb_eager_piece(struct hb_eager *e, const struct hb_piece *piece, bool backward);
int64_t hb_eager_ways(const struct hb_eager *e, enum hb_axis axis);
/* FLOPs of the forward pass. */
double hb_eager_layer_flops(const struct hb_eager_layer *layer);
/* Of one gradient as it is summed. */
double hb_eager_grad_bytes(const struct hb_spec *spec);
/* Read and written for one of the logits by the loss, both ways together ... */
double hb_eager_loss_bytes(const struct hb_loss *loss);
/* ... and for one parameter by the optimizer's step. */
double hb_eager_update_bytes(const struct hb_spec *spec);
/* Torch runs the optimizer's rule op by op. */
bool hb_eager_has_rule(const struct hb_spec *s);
/* What Muon's products of a layer's whole matrices come to. */
double hb_eager_muon_flops(const struct hb_spec *s, const struct hb_block *b);

#endif
