/* FSDP2's units (torch/distributed/fsdp/_fully_shard): parameters that are gathered into one
 * buffer, copied out of it, given back, and whose gradients are reduced together. Who owns what:
 *
 *   all-gather stream       the unit's own parts in compute's dtype, and the gathered buffer
 *   default stream          the copied-out parameters; the input of the reduction, in f32
 *   reduce-scatter stream   its output: the sharded gradients, until the update
 *
 * With replicas of the shards (HSDP) the sums go on through an all-reduce stream, in place, which
 * owns what a conversion to the parameters' dtype makes.
 *
 * FSDP1 (torch/distributed/fsdp, flat parameters): a unit's parameters are one, of which weights
 * are views. It is gathered from a part in compute's dtype (a stream of its own) into one storage,
 * owned by the unshard stream, that is given back when the layer is done; nothing is gathered ahead
 * in the forward pass, the next unit in the backward pass. Gradients are put into one (default
 * stream), converted and reduced in the post-backward stream, and what was converted goes at once.
 *
 * A stream's free memory serves no other (hb_live.pool). In the forward pass a gathered buffer
 * lives until the next unit is copied out, in the backward pass until its own is, the next unit's
 * gather being issued then; a reduction's input lives until the next unit's is made. */
#ifndef HB_SIM_EAGER_FSDP_H
#define HB_SIM_EAGER_FSDP_H

#include "sim/eager/ops.h"

enum {
    HB_POOL_DEFAULT,
    HB_POOL_GATHER,
    HB_POOL_REDUCE,
    HB_POOL_ALL_REDUCE,
    HB_POOL_OWN_PART = HB_POOL_ALL_REDUCE /* of FSDP1, which has no all-reduce here */
};

/* Weights of one mesh. A unit of two meshes (experts are shared by fewer ranks than the rest of
 * their layer) is two of these: gathered in this order, one ahead in the backward pass and reduced
 * in the other. */
struct hb_unit {
    const char *where; /* "layers[3]." */
    struct hb_weight *weights;
    int count;
    bool keeps;        /* not given back after the forward pass */
    bool whole;        /* copied out */
    uint32_t gathered; /* buffer of a gather that was issued; HB_NONE */
    uint32_t sharded;  /* gradients; HB_NONE */
    uint32_t summed;   /* over replicas, held; HB_NONE */
    struct hb_unit *summed_before;
    struct hb_unit *more;  /* of the unit: on the other mesh; null */
    struct hb_unit *ahead; /* whose gather is issued in the forward pass meanwhile; null: none */
};

struct hb_fsdp {
    struct hb_tape *t;
    bool flat;           /* FSDP1 */
    bool narrow;         /* weights of products are gathered in 8 bits (torchao) */
    bool defers;         /* units stay whole in the backward pass, and so do their gradients */
    bool frozen;         /* of a model in compute's dtype, which runs forwards and is split again */
    bool here;           /* gathers are of the default stream: asked for by the program itself */
    uint8_t first_pool;  /* of this stage's streams, beyond the default one */
    bool plain;          /* no FSDP: parameters are whole, and keep their gradients */
    int64_t ranks;       /* that share a shard */
    int64_t param_bytes; /* an element, as stored: 4 or 2 */
    int64_t reduce_bytes; /* an element of what is reduced ... */
    int64_t grad_bytes;   /* ... and of the gradients that stay, as the parameters are */
    bool replicas;        /* of the shards: HSDP */
    int64_t kept_ranks;   /* after the forward pass units stay split over so many; 0: over all */
    bool on_host;         /* CPUOffloadPolicy: parameters and reduced gradients live there */
    uint32_t last_gather; /* of the forward pass, not let go yet; HB_NONE */
    uint32_t last_reduced[2];    /* inputs of the last unit's reductions; HB_NONE */
    struct hb_unit *last_summed; /* of the units whose sums are held */
    void (*update)(void *context, const struct hb_unit *u); /* with a unit's gradients, which go
                                                               then; null: they stay */
    void *context;
};

/* Elements of a rank's part of a unit, padding included. */
int64_t hb_fsdp_part(const struct hb_fsdp *f, const struct hb_unit *u);
/* Rows of a rank's part, of parameters whose rows do not divide as well. */
int64_t hb_fsdp_rows(const struct hb_fsdp *f, const struct hb_weight *w);
void hb_fsdp_before_forward(struct hb_fsdp *f, struct hb_unit *u);
void hb_fsdp_after_forward(struct hb_fsdp *f, struct hb_unit *u);
/* The forward pass of the root is over. */
void hb_fsdp_forward_end(struct hb_fsdp *f);
/* next: the unit whose gather is issued meanwhile, null: none. */
void hb_fsdp_before_backward(struct hb_fsdp *f, struct hb_unit *u, struct hb_unit *next);
void hb_fsdp_after_backward(struct hb_fsdp *f, struct hb_unit *u);
void hb_fsdp_backward_end(struct hb_fsdp *f);
/* By the program itself: a gather that is waited for later; a unit given back. */
void hb_fsdp_unshard(struct hb_fsdp *f, struct hb_unit *u);
void hb_fsdp_wait_unshard(struct hb_fsdp *f, struct hb_unit *u);
/* What was deferred: `more` first, whose packed gradients go before the unit's own are packed; with
 * replicas as after a pass (torch-experts, moe-pipes/06). */
void hb_fsdp_reduce_whole(struct hb_fsdp *f, struct hb_unit *u);
/* Its gradients are reduced; nothing is given back. before: whose sum over replicas goes for this
 * one's (FSDPParamGroup._all_reduce_state); null: none. */
void hb_fsdp_reduce(struct hb_fsdp *f, struct hb_unit *u, struct hb_unit *before);
void hb_fsdp_reshard(struct hb_fsdp *f, struct hb_unit *u);

#endif
