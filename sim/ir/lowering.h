/* What the parts of the lowering share: the step being built, its sizes on one device, and the
 * small verbs that add buffers and ops. Private to sim/ir; the way in is lower.h.
 *
 *   lower ─► leaf (weights, their states) ─► ends (embedding) ─► stack / pipeline ─► ends (loss)
 *               layer ─► attention, mlp, moe: values and steps of one layer
 *               saved: what the backward pass keeps or makes again ─► emit forward, emit backward
 *          ─► optim (update) */
#ifndef HB_SIM_IR_LOWERING_H
#define HB_SIM_IR_LOWERING_H

#include "models/spec.h"
#include "sim/ir/habits.h"
#include "sim/ir/program.h"
#include "sim/ir/shape.h"

enum hb_weight_mode {
    HB_WEIGHT_LOCAL, /* whole on the device, or split over tensor or expert only */
    HB_WEIGHT_RING,  /* split over fsdp; products go round in permutes, never gathered */
    HB_WEIGHT_GATHER /* split over fsdp; gathered for each product */
};

/* How XLA:TPU gathers and when it sums weight gradients; other compilers: plain. */
enum hb_gather_form {
    HB_GATHER_PLAIN,  /* one result; the gradients of a layer wait whole for its end */
    HB_GATHER_PADDED, /* zeros, the own part put into them, then a sum: two whole tensors */
    HB_GATHER_BESIDE, /* beside the products; whole gradients wait for sums that run beside, too */
    HB_GATHER_LATE    /* one result; weight gradients made one by one at the layer's end */
};

/* How one dimension of a tensor is split. */
struct hb_split {
    int64_t size; /* unsharded */
    int64_t ways; /* devices that share it; >= 1 */
};

enum { HB_LEAF_RANK = 3, HB_LEAF_STATES = 5 };

/* A weight over all its runs of layers. */
struct hb_leaf_kind {
    uint32_t first; /* leaf */
    int64_t bytes;  /* in f32 */
    int zeros_at;   /* of its gradient, where the step's tail is known: enum hb_zeros_at */
    unsigned apart; /* 1u << state: renewed in an op of its own, not with the weight */
};

/* A weight of the step: one leaf of the parameter tree, with everything that follows it. */
struct hb_leaf {
    const char *name;
    struct hb_split dim[HB_LEAF_RANK]; /* of one layer, stack dimensions not counted */
    int rank;
    int summed;     /* its product sums over so many dimensions from the first; 0: the last but 1 */
    int gather_dim; /* dimension split over fsdp; -1: none */
    int64_t fsdp_ways; /* by how much gathering multiplies it */
    int64_t stack[2];  /* leading dimensions: layers, or outer and inner blocks; 0: none */
    int64_t copies;    /* equal leaves side by side (unrolled layers share one record); >= 1 */
    bool matrix;       /* cast to the compute dtype for products */
    bool narrow;       /* ... which are made in 8 bit */
    bool experts;      /* of grouped products */
    bool end;          /* embedding or head, not a layer's */
    uint32_t kind;     /* of lo->kinds */
    uint32_t arg;      /* argument buffers; HB_NONE where there is none */
    uint32_t master;
    uint32_t moment[2];
    uint32_t ema;
    uint32_t host[HB_LEAF_STATES];    /* weight, master, moments, ema: homes of those fetched */
    uint32_t renewed[HB_LEAF_STATES]; /* the same after the update; HB_NONE */
    uint32_t whole;                   /* stack gathered before a pipeline's loop; HB_NONE */
    uint32_t cast;                    /* hoisted copy in the compute dtype; HB_NONE */
    uint32_t kept;          /* stack of the casts of the forward pass, kept for backward; HB_NONE */
    uint32_t transposed;    /* whole copy for gathers over a minor dimension; HB_NONE */
    uint32_t grad;          /* gradient (of the whole stack); HB_NONE before it exists */
    uint32_t nan_zero;      /* zeros that nan_to_num compares and replaces with; HB_NONE */
    bool nan_with_grad;     /* a fusion of all zeros of a shape makes them */
    uint32_t grad_half;     /* a ring's second accumulator, summed by the update; HB_NONE */
    uint32_t momentum_copy; /* muon over rings; HB_NONE */
    uint32_t param_copy;    /* f32, in the layout of the split gradient; HB_NONE */
    uint32_t iterate[2];    /* muon: the gathered momentum and its transpose; HB_NONE */
    int muon_passes;        /* of its iteration, done */
    uint32_t accum;         /* f32 accumulator over microbatches; HB_NONE */
    bool added;             /* this microbatch's gradient, to that */
    uint32_t gathered;      /* full weight now on the device; HB_NONE */
    int64_t expert_ways;    /* gathered over as many in its first dimension, too; 0: not */
    int64_t einsum_batch;   /* sequences in the einsum that an expert's weight meets; 0: none */
    bool row_major;         /* its stacks lie with the last dimension along the lanes */
    bool held;              /* its gathered copy serves recomputation and backward alike */
    bool grad_fused;        /* the update follows at once: no gradient buffer */
    double params;          /* unsharded count, all copies */
};

/* How the sequences in a mixture's layer lie over the expert axis. */
enum hb_expert_batch {
    HB_EXPERTS_EXCHANGED, /* split; each device hands its tokens to the experts' devices */
    HB_EXPERTS_JOINED,    /* split; each device gathers the tokens, for its own experts' masks */
    HB_EXPERTS_LOCAL,     /* on all of its devices, each with the masks of its own experts */
    HB_EXPERTS_GATHERED   /* on all of its devices, with the masks of all experts */
};

/* Sizes on one device. */
struct hb_local {
    int64_t batch; /* sequences of one microbatch of accumulation */
    int64_t seq;
    int64_t tokens;      /* batch x seq */
    int64_t resid_seq;   /* sequence length of the residual (split over tensor with it) */
    int64_t resid_width; /* features of the residual on this device */
    int64_t batch_ways;  /* devices over which the batch is split */
    int64_t input_ways;  /* of the tokens that the caller hands in */
    int64_t vocab;
};

/* Where XLA:CUDA's latency hiding puts what it moves at the end of a step: see tail.h. */
struct hb_tail {
    bool known;
    bool gather_early; /* of the head, for the way back: before the gradient of the logits */
    bool head_waits;   /* the head's gradient for the layers' backward loop */
    bool sum_waits;    /* else that gradient, for its sum over the devices */
    bool value_late;   /* the loop over chunks that adds up the loss, behind that loop */
    int table;         /* enum hb_zeros_at of the table's, < 0: where it is scattered into */
};

/* Operands of a head gradient that is due. */
struct hb_further {
    uint32_t x, dlogits;
};

struct hb_copies;

/* What is added up so far, of so many. */
struct hb_waits {
    uint32_t leaf_count, buf_count;
    int64_t leaf_bytes, argument_bytes;
};
struct hb_stack_plan;

struct hb_lower {
    struct hb_arena *arena;
    struct hb_diag *diag;
    const struct hb_spec *spec;
    const struct hb_spec *whole; /* the same, or that which a planner's sample stands for */
    const struct hb_habits *habits;
    const struct hb_chip *chip;
    struct hb_program *p;
    struct hb_local local;
    enum hb_phase phase;
    struct hb_leaf *leaves; /* embedding, head, final norm, then each block's */
    uint32_t leaf_count, leaf_cap;
    struct hb_leaf_kind *kinds; /* weights, whatever runs of layers have them */
    uint32_t kind_count, kind_cap;
    uint32_t embed, norm, head, positions; /* indices of leaves; HB_NONE */
    uint32_t labels;
    uint32_t loss;              /* the output */
    struct hb_further *further; /* head gradients of depths that wait, by depth */
    int64_t further_count;
    uint32_t tokens;
    enum hb_weight_mode fsdp_mode;
    bool experts_own;    /* the einsum makes the masks of a device's own experts */
    bool experts_round;  /* their weights go in rings of more than four ... */
    bool experts_listed; /* ... that the list of least memory places */
    enum hb_gather_form gather_form;
    enum hb_expert_batch expert_batch;
    bool acts_stay;    /* the MLP's activation waits for a late weight gradient */
    bool maxtext;      /* MaxText's own step, not the lab's: see lower.c */
    bool batch_whole;  /* layers see fsdp's whole batch, each device its own features of it */
    int64_t hbm_bytes; /* of the device; INT64_MAX where nobody says */
    bool spreads;      /* ragged products, over the experts: see spread.c */
    bool unit_waits;   /* weight gradients, through a unit of layers */
    bool made_again;   /* ops are, beyond the share of it; not in what is priced by sums */
    enum hb_dtype compute;
    bool too_large;             /* a size left the range: reported once */
    int64_t stacked_grad_bytes; /* gradients of all stacked weights: decides orders */
    int64_t input_bytes;        /* inputs of all layers: decides orders */
    struct hb_tail tail;
    struct hb_copies *copies;           /* of the optimizer's states, where they are queued */
    struct hb_waits *waits;             /* see head.c */
    const struct hb_stack_plan *layers; /* those outside a pipeline */
};

static inline bool hb_accumulates(const struct hb_lower *lo)
{
    return lo->spec->batch.accumulate > 1;
}

/* The loss goes in chunks of the tokens. */
static inline bool hb_in_chunks(const struct hb_lower *lo)
{
    return lo->spec->loss.chunks > 1;
}

/* The first block has experts. */
static inline bool hb_begins_mixed(const struct hb_lower *lo)
{
    return hb_block_mixes(&lo->spec->model.blocks[0]);
}

/* Weights go round in rings of collective permutes, product by product. */
static inline bool hb_in_rings(const struct hb_lower *lo)
{
    return lo->fsdp_mode == HB_WEIGHT_RING;
}

/* XLA:GPU, whose fusions take slices out of stacks. */
static inline bool hb_fuses_slices(const struct hb_lower *lo)
{
    return !lo->habits->rings;
}

/* Over an axis of its own. */
static inline bool hb_splits_sequence(const struct hb_lower *lo)
{
    return lo->local.seq < lo->spec->batch.seq;
}

static inline bool hb_gathers_weights(const struct hb_lower *lo)
{
    return lo->fsdp_mode == HB_WEIGHT_GATHER;
}

/* They are gathered one after another, late: see enum hb_gather_form. */
static inline bool hb_gathers_late(const struct hb_lower *lo)
{
    return lo->gather_form == HB_GATHER_LATE;
}
static inline bool hb_gathers_padded(const struct hb_lower *lo)
{
    return lo->gather_form == HB_GATHER_PADDED;
}
static inline bool hb_gathers_beside(const struct hb_lower *lo)
{
    return lo->gather_form == HB_GATHER_BESIDE;
}

/* --- emit.c: verbs --- */

enum { HB_EMIT_REFS = 24 };

struct hb_emit {
    const char *name;
    enum hb_op_kind kind;
    enum hb_stream stream;
    uint32_t read[HB_EMIT_REFS];
    uint32_t read_count;
    uint32_t write[HB_EMIT_REFS];
    uint32_t write_count;
    double flops;
    double moved_bytes;
    int64_t rows, cols, depth;
    double batch;
    bool adjoint;
    enum hb_axis axis;
    int64_t group;
    double sent_bytes;
    bool over_data;
};

/* A temporary in HBM. dims as for hb_shape_make. HB_NONE reads and writes are left out by emit, so
 * that optional tensors need no branches. */
uint32_t hb_temp(struct hb_lower *lo, const char *name, enum hb_category category,
                 struct hb_shape shape);
uint32_t hb_temp_tiled(struct hb_lower *lo, const char *name, enum hb_category category,
                       struct hb_shape shape, enum hb_tiling tiling);
/* A new value in the memory of an old one. */
uint32_t hb_temp_in_place(struct hb_lower *lo, const char *name, enum hb_category category,
                          uint32_t place);
uint32_t hb_argument(struct hb_lower *lo, const char *name, enum hb_category category,
                     struct hb_shape shape, enum hb_space space);
void hb_emit_read(struct hb_emit *e, uint32_t buf);
void hb_emit_write(struct hb_emit *e, uint32_t buf);
uint32_t hb_emit(struct hb_lower *lo, const struct hb_emit *e);
/* Shorthands for ops of one read and one write. */
uint32_t hb_emit_simple(struct hb_lower *lo, enum hb_op_kind kind, const char *name, uint32_t read,
                        uint32_t write);
/* Of two. */
uint32_t hb_emit_sum(struct hb_lower *lo, const char *name, uint32_t a, uint32_t b, uint32_t write);
uint32_t hb_emit_mark(struct hb_lower *lo, const char *name, uint32_t read, uint32_t write);
/* Sums a gradient over fsdp into parts, and these over data, where both are asked. */
uint32_t hb_emit_grad_sum(struct hb_lower *lo, const char *name, uint32_t full, uint32_t sum);
/* A collective over an axis; bytes is the full tensor's payload. */
uint32_t hb_emit_collective(struct hb_lower *lo, enum hb_op_kind kind, enum hb_axis axis,
                            const char *name, uint32_t read, uint32_t write);
/* What a collective over group devices sends in all, by its largest operand on one device. */
double hb_payload_bytes(enum hb_op_kind kind, int64_t bytes, int64_t group);
struct hb_shape hb_buf_shape(const struct hb_lower *lo, uint32_t buf);
/* So many HB_NONE. */
uint32_t *hb_none_list(struct hb_lower *lo, uint32_t count);
/* One behind the other; at most so many. */
enum { HB_NAME_PARTS = 4 };
const char *hb_name_of(struct hb_lower *lo, const char *const *parts, uint32_t count);
const char *hb_name(struct hb_lower *lo, const char *a, const char *b);
int64_t hb_ways(const struct hb_lower *lo, enum hb_axis axis);
/* Of a device's logits, of that many bytes each. */
int64_t hb_logit_bytes(const struct hb_lower *lo, int64_t width);
/* Nested scans whose outer blocks are made again. */
bool hb_in_blocks(const struct hb_lower *lo);
/* Whether layers send some of what they keep to the host between the passes. An outer block that is
 * made again does so for itself (24 layers of 4,096 by 4, v5p, data 2 and fsdp 32:
 * f32[2,8192,100352] to 131 of 266, as a scan to 592 of 727). */
bool hb_sends(const struct hb_lower *lo, int block);
/* The first run of layers: before it one may stand alone, which is no loop (deepseek-moe-16b of 1,
 * 3 and 2 layers over 4 of v6e, q, k, v on the host: the logits to 4068 of 4527). */
static inline int hb_first_run(const struct hb_lower *lo)
{
    const struct hb_model *m = &lo->spec->model;
    return m->block_count > 1 && hb_block_steps(&m->blocks[0]) == 1;
}
bool hb_offloads(const struct hb_lower *lo);
/* Whether nothing is split: a step of one device. */
bool hb_alone(const struct hb_lower *lo);
/* One-hot masks read no logits. */
bool hb_gathers_labels(const struct hb_lower *lo);
/* Whether no update can follow its gradient at once: a norm or a sum of several steps is due. */
bool hb_updates_wait(const struct hb_lower *lo);
/* The same, or Muon's whole matrices. */
bool hb_updates_together(const struct hb_lower *lo);
/* Over how many devices fsdp (and what is split along with it) divides a weight. */
int64_t hb_fsdp_ways(const struct hb_lower *lo, bool expert);
/* A ring of four is no loop (mistral-7b, v5e, fsdp 4 and tensor 4). Of the head's there is no copy
 * of the logits' gradient, and its own is collected in four parts, f32 (ring/f4t4:
 * f32[2,1024,8000] and two more of half that). */
static inline bool hb_in_short_ring(const struct hb_lower *lo)
{
    enum { SHORT_RING = 5 };
    return hb_fsdp_ways(lo, false) < SHORT_RING;
}

static inline bool hb_is_unrolled(const struct hb_lower *lo)
{
    return lo->spec->stack.form == HB_FORM_LOOP;
}

/* --- leaf.c --- */
uint32_t hb_leaf_add(struct hb_lower *lo, struct hb_leaf leaf);
void hb_leaf_arguments(struct hb_lower *lo);
/* Shape on the device of the whole leaf, of one layer's part, and of that part gathered. */
struct hb_shape hb_leaf_shape(const struct hb_leaf *l, enum hb_dtype dtype);
/* Of the gradient of the whole leaf: MaxText splits it over data like the optimizer's states. */
struct hb_shape hb_leaf_grad_shape(const struct hb_lower *lo, const struct hb_leaf *l,
                                   enum hb_dtype dtype);
struct hb_shape hb_leaf_layer_shape(const struct hb_leaf *l, enum hb_dtype dtype, bool gathered);
/* Weight, master, moments, ema: the buffer that is read as it, and whether that is on the host. */
uint32_t *hb_leaf_state(struct hb_leaf *l, int state);
bool hb_leaf_on_host(const struct hb_lower *lo, struct hb_leaf *l, int state);
/* Whether both have the same shape over all devices, and both are ends or neither. */
bool hb_leaf_is_alike(const struct hb_leaf *a, const struct hb_leaf *b);
/* The kind that a weight, also of another lowering, is of: "dense_1.w_gate" and "dense_2.w_gate"
 * are one. kind_count: none. */
uint32_t hb_leaf_kind(const struct hb_lower *lo, const struct hb_leaf *weight);
/* The leaf of a weight's first run of layers. */
uint32_t hb_leaf_first(const struct hb_lower *lo, uint32_t leaf);
/* Of a weight over all its runs of layers, f32; once hb_leaf_weigh ran, over all of whole. */
int64_t hb_leaf_all_bytes(const struct hb_lower *lo, uint32_t leaf);
void hb_leaf_weigh(struct hb_lower *lo, const struct hb_lower *whole);

#endif
