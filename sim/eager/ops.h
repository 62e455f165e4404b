/* PyTorch's eager ops as they allocate, forwards and backwards, one function for each that a
 * transformer needs: what each makes, in which order, and what it keeps (torch 2.15, read off
 * fake tensors; norm and rope are the single ops of torchtitan's model). Sizes are of one device.
 * Gradients of weights go to their weight, which FSDP or the like takes them from. */
#ifndef HB_SIM_EAGER_OPS_H
#define HB_SIM_EAGER_OPS_H

#include "sim/eager/tape.h"

struct hb_zero3;

/* DeepSpeed's ZeRO: a weight's gradient is copied into a buffer that is reduced when it is full,
 * and of which the rank keeps its own part until the update. */
struct hb_zero {
    int64_t room;   /* of the buffer, elements */
    int64_t filled; /* of it */
    int64_t element_bytes;
    uint32_t large;  /* a gradient larger than that, which is in no buffer; HB_NONE */
    uint32_t buffer; /* made for the first gradient; HB_NONE: there was none yet */
    int64_t part_bytes;
    uint32_t part;  /* of the microbatch's; HB_NONE: nothing was reduced yet */
    uint32_t sum;   /* of the microbatches before; HB_NONE */
    int64_t ranks;  /* ZeRO-3: that gradients are scattered over, each by itself; else 0 */
    int64_t padded; /* elements of the buffer's gradients, each a multiple of them */
    int64_t count;  /* of the buffer's gradients */
};

/* A parameter as a unit has it: rows are what sharding splits. */
struct hb_weight {
    const char *name;
    int64_t rows;
    int64_t cols;
    int64_t ranks;          /* that share it; 0: those of the unit's FSDP */
    bool narrow;            /* of a product that may be in 8 bits */
    struct hb_weight *bias; /* of its product, which is then one op (addmm); null: none */
    bool across;            /* split along its second dimension (Shard(1)), as `rows` says */
    uint32_t copy;          /* autocast's, in compute's dtype, until the context ends; HB_NONE */
    uint32_t copy_grad;     /* its gradient, not converted yet; HB_NONE */
    uint32_t whole;         /* gathered, in compute's dtype; HB_NONE: not there */
    uint32_t grad;          /* not reduced yet; HB_NONE */
    uint32_t part;          /* of `whole`, kept after the forward pass to gather from; HB_NONE */
    bool updates;           /* as soon as its gradient is whole, which then goes ... */
    struct hb_zero *zero;   /* ... into this; null: nowhere */
    struct hb_zero3 *zero3; /* what gathers it where its module is entered; null: nothing does */
    uint32_t at;            /* of its parameters */
    bool wide;        /* kept in f32 until it is reduced, what further ones are added to ... */
    bool each_wide;   /* ... once they are in f32, too */
    bool unowed;      /* of a pass in two it gets none */
    bool late;        /* a gradient goes on with hb_ops_late_gradient alone ... */
    uint32_t waiting; /* ... until when it is here; HB_NONE */
    int64_t uses;     /* gradients that make it whole; 0 as 1 */
    int64_t seen;     /* of them, so far ... */
    uint32_t sum;     /* ... together; HB_NONE */
};

struct hb_weight hb_ops_weight(const char *name, int64_t rows, int64_t cols);

/* What selective checkpointing keeps of a layer, in order; taken again where the layer is run
 * again. */
enum { HB_KEPT = 16 };
struct hb_kept {
    uint32_t storages[HB_KEPT];
    int count;
    int next;
    int products; /* counted so far: every second one is kept, or those that this names: */
    const struct hb_remat *names; /* null: there is none */
    bool again;
};

struct hb_linear {
    const char *name;
    int64_t rows; /* tokens */
    int64_t in;
    int64_t out;
    int64_t groups; /* of rows, each with a part of the weight of its own; 0 as 1 */
    struct hb_weight *weight;
    struct hb_kept *kept; /* null: nothing is kept for recomputation */
};

/* A storage that belongs to no kind but the step's own work. */
uint32_t hb_ops_work(struct hb_tape *t, const char *op, const char *name, int64_t bytes);
/* Of the whole storage, or of the part that it is a view of. */
int64_t hb_ops_value_bytes(const struct hb_tape *t, uint32_t value);
/* In a dtype that makes it so large: another storage, or the same once more where it is so
 * already. */
uint32_t hb_ops_convert(struct hb_tape *t, uint32_t storage, struct hb_made made);
/* Into what the pass works with. */
uint32_t hb_ops_convert_work(struct hb_tape *t, uint32_t storage, const char *op, const char *name,
                             int64_t bytes);
/* `bytes` are those of a view of the storage. */
uint32_t hb_ops_convert_view(struct hb_tape *t, uint32_t storage, int64_t bytes,
                             struct hb_made made);
/* autocast ends: its copy of the weight is no one's but who saved it. */
void hb_ops_forget_copy(struct hb_tape *t, struct hb_weight *w);
/* As hb_tape_make, unless the policy has kept it. */
uint32_t hb_ops_make_or_take(struct hb_tape *t, struct hb_kept *kept, struct hb_made made);
/* What the node saved is given up; in a pass backwards in two with the gradient of its weight. */
void hb_ops_give_up_all(struct hb_tape *t, struct hb_taped *n);
void hb_ops_give_up_own(struct hb_tape *t, struct hb_taped *n);
/* The weight whose gradient comes later; null: there is none. */
const void *hb_ops_owed_weight(const struct hb_taped *n);
/* A weight's gradient in f32; the other goes. */
uint32_t hb_ops_widened(struct hb_tape *t, uint32_t grad);
/* Of a pass backwards in two: what the node's weight's gradient is made of, held; what the node
 * saved there is its op's. */
void hb_ops_owe(struct hb_tape *t, const struct hb_taped *n, struct hb_owed o);
/* The second part's, not given to the weight. */
uint32_t hb_ops_owed_gradient(struct hb_tape *t, const struct hb_owed *o);
/* That, once what its op saved is gone, on to the weight. Held once more: by the code that added
 * it. */
uint32_t hb_ops_weight_grad_alone(struct hb_tape *t, const struct hb_owed *o, uint32_t grad);
uint32_t hb_ops_linear(struct hb_tape *t, uint32_t x, struct hb_linear l);
/* A last product of a layer that is run again is not computed: its input is all that is wanted. */
uint32_t hb_ops_linear_left_out(struct hb_tape *t, uint32_t x, struct hb_linear l);
/* rows vectors, as wide as the weight; in f32, op by op. */
uint32_t hb_ops_norm(struct hb_tape *t, uint32_t x, int64_t rows, struct hb_weight *weight);
/* The same up to what it keeps: the last of a layer that is run again. */
uint32_t hb_ops_norm_left_out(struct hb_tape *t, uint32_t x, int64_t rows,
                              struct hb_weight *weight);
/* The same in one kernel, as torch.compile and fused libraries have it: the input is kept. */
uint32_t hb_ops_norm_fused(struct hb_tape *t, uint32_t x, int64_t rows, int64_t width,
                           struct hb_weight *weight);
/* LayerNorm: one kernel, which keeps its input, means and scales; the weight has a bias. */
uint32_t hb_ops_layernorm(struct hb_tape *t, uint32_t x, int64_t rows, struct hb_weight *weight);
/* A mask of a byte for each of so many elements is kept. */
uint32_t hb_ops_dropout(struct hb_tape *t, uint32_t x, int64_t elements);
/* Views of parts of x, which share its storage; their gradients are put together. */
void hb_ops_split(struct hb_tape *t, uint32_t x, uint32_t *pieces, const int64_t *bytes, int count);
/* Two in one; their gradients are views of its. */
uint32_t hb_ops_cat(struct hb_tape *t, uint32_t a, uint32_t b, int64_t bytes, const char *name);
/* Rope, or any map that needs nothing for its backward pass, in one kernel. */
uint32_t hb_ops_map_fused(struct hb_tape *t, uint32_t x, const char *name);
/* act(gate) * up in one kernel, which keeps both. */
uint32_t hb_ops_gated_fused(struct hb_tape *t, uint32_t gate, uint32_t up);
/* table_bytes: of the frequencies, copied in the backward pass. */
uint32_t hb_ops_rope(struct hb_tape *t, uint32_t x, int64_t table_bytes, const char *name);
/* Key or value heads repeated to those of q; free where there is one of them. */
uint32_t hb_ops_repeat(struct hb_tape *t, uint32_t x, int64_t times, bool one, const char *name);

struct hb_sdpa {
    uint32_t q, k, v; /* values */
    int64_t rows;
    int64_t heads;
    int64_t width;
    int64_t v_width; /* of v and the output; 0: as width */
    struct hb_kept *kept;
    int64_t ways;  /* ranks that share the sequence; 0 as 1 */
    bool gathers;  /* k and v of all of them at once, not from rank to rank */
    bool balanced; /* each rank has an early and a late part of it */
};
uint32_t hb_ops_sdpa(struct hb_tape *t, struct hb_sdpa a);
/* Its input is kept. */
enum hb_activation { HB_SILU, HB_GELU };
uint32_t hb_ops_activation(struct hb_tape *t, uint32_t x, enum hb_activation kind);
uint32_t hb_ops_mul(struct hb_tape *t, uint32_t a, uint32_t b);
uint32_t hb_ops_add(struct hb_tape *t, uint32_t a, uint32_t b);
/* Sequence parallelism: the sequence gathered over `ways` ranks, and its sum scattered. */
struct hb_gather {
    int64_t ways;
    bool one;  /* a single sequence a rank */
    bool flat; /* tokens are the first dimension: nothing is put together to be sent, either */
};
uint32_t hb_ops_gather(struct hb_tape *t, uint32_t x, struct hb_gather g);
uint32_t hb_ops_scatter(struct hb_tape *t, uint32_t x, struct hb_gather g, struct hb_kept *kept);
/* The storage that gathering a gradient makes; the gradient stays. */
uint32_t hb_ops_gather_storage(struct hb_tape *t, uint32_t x, struct hb_gather g);
/* What is in the buffer goes, and the rank's own part of it stays. */
void hb_ops_reduce_bucket(struct hb_tape *t, struct hb_zero *z);
void hb_ops_late_gradient(struct hb_tape *t, struct hb_weight *w);
/* From a storage whose gradient is `grad` on to the weight. */
void hb_ops_weight_grad(struct hb_tape *t, struct hb_weight *w, uint32_t grad);

#endif
