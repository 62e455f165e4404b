/* A step of an eager framework as it allocates: ops in the order in which the host issues them,
 * each making one storage, and autograd's tape of what was kept for the backward pass. A storage
 * is counted once however many hold it (a view is free) and dies with its last holder, after the
 * op that was issued last; the caching allocator sees exactly that order.
 *
 *   forward     op ─► storage, held by the code; a node of the tape holds what it will need
 *   backward    nodes from the last to the first: gradients in, gradients out, holds given up
 *
 * Order and holders were read off PyTorch's own FSDP2, tensor-parallel and checkpoint code run on
 * fake tensors (torch 2.15), allocation by allocation. */
#ifndef HB_SIM_EAGER_TAPE_H
#define HB_SIM_EAGER_TAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/ir/program.h"

struct hb_arena;
struct hb_reel;
struct hb_tape;

/* A node of the tape: what back does with the gradient of `out`, which it drops. */
enum { HB_TAPED_INPUTS = 3, HB_TAPED_SAVED = 6, HB_TAPED_NUMBERS = 6 };
struct hb_taped {
    void (*back)(struct hb_tape *t, struct hb_taped *n, uint32_t grad);
    uint32_t out;                   /* value whose gradient it takes; HB_NONE: none */
    uint32_t in[HB_TAPED_INPUTS];   /* values that get gradients; HB_NONE: none */
    uint32_t saved[HB_TAPED_SAVED]; /* storages held until it has run; HB_NONE: none */
    int64_t number[HB_TAPED_NUMBERS];
    const void *thing; /* of its owner */
    const void *under; /* what alone holds it where its layer is a stage's last one: a weight's op,
                          or, told by the layer, what that hands on; null: others, too */
};

/* A pass backwards in two, the gradient of the input first, those of the weights later: what each
 * weight's will be made of, and what the nodes that have run still hold. */
enum hb_owed_kind { HB_OWED_PRODUCT, HB_OWED_NORM, HB_OWED_FUSED_NORM };
struct hb_owed {
    enum hb_owed_kind kind;
    const void *weight;
    uint32_t grad; /* held: of what the weight's op made */
    int64_t number[4];
    bool wide;      /* a product in f32, whose gradient is made narrow */
    uint8_t places; /* of the node: what the weight's op saved */
    void *run;      /* that is run again for it; null: it is not */
};
struct hb_left {
    uint32_t storage;
    const void *with; /* goes with this weight's gradient; null: with all of them */
    const void *under;
};
struct hb_split {
    struct hb_owed *owed;
    uint32_t owed_count, owed_cap;
    struct hb_left *left;
    uint32_t left_count, left_cap;
    bool keeps;       /* nodes that run give nothing up */
    const void *with; /* whose op runs */
    void *run;
};

/* A tensor of the code: its storage, and in the backward pass its gradient's. */
struct hb_value {
    uint32_t storage;
    uint32_t grad;       /* HB_NONE: none yet */
    int64_t piece_bytes; /* of a view of a part of it; 0: of all */
};

/* Its index is that of its buffer in the program. */
struct hb_storage {
    int64_t bytes;
    int32_t holders;
    uint32_t served; /* by what serves it; HB_NONE: nothing does */
    uint8_t pool;
    bool stays; /* an argument, or kept for later steps */
};

/* What a server is asked of in sum, kept by it; what was left out is added (alike.h). */
struct hb_sums {
    int64_t alive_bytes; /* now */
    int64_t most_bytes;
    int64_t asked_bytes;
    uint32_t asked_count;
    bool repeats;  /* what is asked for now stands for what is left out later */
    bool left_out; /* something was */
    bool alone;    /* nothing but sums is asked: no block is larger than its request */
};

/* A storage comes that takes so many bytes, and counts as so many that were asked for. */
void hb_sums_take(struct hb_sums *s, int64_t bytes, int64_t counted_bytes);

/* An allocator that is asked for storages as they come and go, in place of a program of them: all
 * that a peak takes. A storage of no bytes is not asked for. */
struct hb_server {
    void *context;
    uint32_t (*take)(void *context, int64_t bytes, uint8_t pool);
    void (*give)(void *context, const struct hb_storage *s);
    void (*release)(void *context); /* what it has cached; null: nothing */
    struct hb_sums *sums;           /* null: each storage has to be asked for */
};

struct hb_tape {
    struct hb_arena *arena; /* goes with the tape: what is the program's lies in the program's */
    struct hb_program *p;
    const struct hb_server *server; /* null: all goes to the program; else no op or buffer does */
    const char *where;              /* before the names of storages: "layers[3]." */
    enum hb_phase phase;
    uint8_t pool;       /* of the allocator: 0 is the default stream's ... */
    uint8_t first_pool; /* ... of these: those of a graph's passes are others */
    uint8_t width;      /* bytes of an element in compute's dtype */
    bool autocast; /* products alone are in it, of copies; what they take and weights are in f32 */
    bool grad;     /* ops are recorded */
    bool written_norms; /* RMSNorm's output is in compute's dtype before its weight comes */
    struct hb_storage *storages;
    uint32_t storage_count, storage_cap;
    struct hb_taped_name *names; /* of storages, made before */
    struct hb_value *values;
    uint32_t value_count, value_cap;
    struct hb_taped *nodes;
    uint32_t node_count, node_cap;
    struct hb_op op; /* issued last, not in the program yet: what dies after it is added */
    bool open;
    uint32_t written;
    uint32_t *dead; /* storages */
    uint32_t dead_count, dead_cap;
    bool too_large;          /* a size left the range */
    int64_t workspace_bytes; /* that a BLAS handle takes with its first product; 0: none */
    bool has_workspace, has_workspace_back; /* the forward pass's thread, the backward pass's */
    struct hb_split *split;                 /* null: passes backwards are whole */
    struct hb_reel *reel;                   /* what is issued is recorded in it; null: it is not */
};

/* What an op is, and what it makes. */
struct hb_made {
    const char *op;   /* "mm" */
    const char *name; /* "q" */
    int64_t bytes;
    enum hb_category category;
    double flops;
};

/* The allocator gives back to the device what it has cached. */
void hb_tape_release(struct hb_tape *t);
void hb_tape_init(struct hb_tape *t, struct hb_arena *arena, struct hb_program *p);
/* Room for so many storages, and for the program of them. */
void hb_tape_reserve(struct hb_tape *t, uint32_t storages);
/* The last op goes to the program. */
void hb_tape_end(struct hb_tape *t);
/* None comes behind it: what stays lives to the end. */
void hb_tape_end_program(struct hb_tape *t);
/* HB_BUG where a storage is held in the end that does not stay: a server serves it to the end, in a
 * program it lives for one op. */
void hb_tape_check_end(const struct hb_tape *t);
/* Issues an op that makes a storage, held once. */
uint32_t hb_tape_make(struct hb_tape *t, struct hb_made made);
/* A storage that stands from before the first op to the end. */
uint32_t hb_tape_argument(struct hb_tape *t, const char *name, int64_t bytes,
                          enum hb_category category);
void hb_tape_count_as(struct hb_tape *t, uint32_t storage, enum hb_category category);
/* One that a step made and later ones keep. */
void hb_tape_keep(struct hb_tape *t, uint32_t storage);
void hb_tape_hold(struct hb_tape *t, uint32_t storage);
/* HB_NONE: nothing. */
void hb_tape_drop(struct hb_tape *t, uint32_t storage);
int64_t hb_tape_bytes(const struct hb_tape *t, uint32_t storage);
/* Of the default stream's storages that are held now. */
int64_t hb_tape_held_bytes(const struct hb_tape *t);

uint32_t hb_tape_value(struct hb_tape *t, uint32_t storage);
/* Makes a storage and a value of it. */
uint32_t hb_tape_new(struct hb_tape *t, struct hb_made made);
void hb_tape_drop_value(struct hb_tape *t, uint32_t value);
/* A node with nothing in it but these; added only where ops are recorded: null elsewhere. */
struct hb_taped *hb_tape_node(struct hb_tape *t,
                              void (*back)(struct hb_tape *, struct hb_taped *, uint32_t),
                              uint32_t out);
/* Nodes from `first` on are held by that alone: hb_taped.under. */
void hb_tape_hold_under(struct hb_tape *t, uint32_t first, const void *under);
/* The node holds a storage, which is from now on counted as saved for the backward pass. */
void hb_tape_save(struct hb_tape *t, struct hb_taped *n, uint32_t storage);
/* These, each in its place; HB_NONE leaves it empty. */
void hb_tape_save_in_order(struct hb_tape *t, struct hb_taped *n, const uint32_t *storages,
                           int count);
/* The node has no more use for what it saved there. */
void hb_tape_give_up(struct hb_tape *t, struct hb_taped *n, int place);
/* A gradient for a value; a second one is added to the first, in a storage of its own. */
void hb_tape_give(struct hb_tape *t, uint32_t value, uint32_t grad);
/* Runs the nodes from the last down to `first`, and takes them off. */
void hb_tape_back(struct hb_tape *t, uint32_t first);

/* Bytes of a product of sizes: marks the tape where they leave the range. */
int64_t hb_tape_size(struct hb_tape *t, int64_t a, int64_t b, int64_t c);

#endif
