/* What the parts of torchtitan's step share: its layers (titan_layer.c), embedding, head and loss
 * (titan_ends.c), and what puts two steps together of them (titan.c). Private to
 * sim/eager/titan*.c. */
#ifndef HB_SIM_EAGER_TITAN_PARTS_H
#define HB_SIM_EAGER_TITAN_PARTS_H

#include "models/spec.h"
#include "sim/eager/actions.h"
#include "sim/eager/fsdp.h"
#include "sim/eager/reel.h"
#include "sim/eager/zero3.h"

struct hb_short;

/* Where a layer's checkpoint stands. */
enum hb_titan_mode { HB_TITAN_PLAIN, HB_TITAN_FULL, HB_TITAN_OPS };

enum {
    HB_TITAN_W_Q,
    HB_TITAN_W_K,
    HB_TITAN_W_V,
    HB_TITAN_W_O,
    HB_TITAN_W_QB,
    HB_TITAN_W_KB,
    HB_TITAN_W_VB,
    HB_TITAN_W_QKV,
    HB_TITAN_W_QKVB,
    HB_TITAN_W_OB,
    HB_TITAN_W_SINKS,
    HB_TITAN_W_Q_DOWN,
    HB_TITAN_W_KV_DOWN,
    HB_TITAN_W_KV_UP,
    HB_TITAN_W_QN, /* of q's heads, or of its low rank */
    HB_TITAN_W_KN,
    HB_TITAN_W_GATE,
    HB_TITAN_W_DOWN,
    HB_TITAN_W_UP,
    HB_TITAN_W_UPB,
    HB_TITAN_W_DOWNB,
    HB_TITAN_W_EXPERT_GATE,
    HB_TITAN_W_EXPERT_DOWN,
    HB_TITAN_W_EXPERT_UP,
    HB_TITAN_W_EXPERT_GATEB,
    HB_TITAN_W_EXPERT_DOWNB,
    HB_TITAN_W_ROUTER,
    HB_TITAN_W_ROUTERB,
    HB_TITAN_W_NORM1,
    HB_TITAN_W_NORM2,
    HB_TITAN_W_NORM1B,
    HB_TITAN_W_NORM2B,
    HB_TITAN_W_POST1,
    HB_TITAN_W_POST2,
    HB_TITAN_W_COUNT
};

enum { HB_TITAN_EXPERT_WEIGHTS = 4 };

/* The table, positions, the last norm and its bias, the head. */
enum { HB_TITAN_ENDS = 5 };

struct hb_titan;

struct hb_titan_layer {
    struct hb_titan *e;
    const struct hb_block *block;
    struct hb_unit unit;
    struct hb_unit experts; /* unit.more: those of experts that are sent to; null: in the unit */
    struct hb_weight weights[HB_TITAN_W_COUNT];
    struct hb_weight expert_weights[HB_TITAN_EXPERT_WEIGHTS];
    bool sends;  /* tokens to the ranks that have their experts */
    bool parted; /* each expert over the tensor axis, whose ranks gather the tokens for it */
    struct hb_weight *by_role[HB_TITAN_W_COUNT]; /* null: not there */
    enum hb_titan_mode mode;
    struct hb_remat remat;  /* of its block, or what its budget comes to */
    int64_t at;             /* of the model's layers */
    struct hb_unit *before; /* whose gather follows in the backward pass; null */
    uint32_t in;            /* values of the microbatch that runs */
    uint32_t out;
    uint32_t half; /* run again: the residual after attention, the last product */
    uint32_t last;
    uint32_t own;          /* of experts: the shared one's last product */
    struct hb_reels reels; /* of its passes */
    struct hb_owed *owed;  /* by its pass backwards, as recorded */
    int64_t left_out;      /* of a short program: layers of its kind that are not run ... */
    int64_t rest_bytes;    /* ... and what each leaves for the backward pass */
};

enum { HB_TITAN_STASH = 5 };

/* Of a pipeline: layers first .. end of those of the rank. */
struct hb_titan_stage {
    int64_t stage;
    int64_t first;
    int64_t end;
    bool embeds;
    bool heads;
    bool waits; /* for gathers of its units */
};

/* A part of the tokens that goes through head and loss by itself. */
struct hb_titan_chunk {
    int64_t rows;
    uint32_t *by_sequence; /* storages of grpo: log-probabilities of each; null: not that loss */
    uint32_t in;           /* value: its part of the last norm's output */
    uint32_t logits;       /* value */
    uint32_t kept;         /* storage: for the loss's backward pass */
    uint32_t held;         /* storage of logits that the program holds beyond it; HB_NONE */
};

/* What was asked for in a pipeline's passes. */
struct hb_passed {
    int64_t bytes;
    uint32_t count;
};

/* What the code of an optimizer's step calls what it makes. */
enum hb_titan_update_name {
    HB_TITAN_UPDATE,
    HB_TITAN_SQUARE,
    HB_TITAN_FOURTH,
    HB_TITAN_SQUARED,
    HB_TITAN_UPDATE_NAMES
};

struct hb_titan {
    struct hb_tape *t;
    const struct hb_spec *spec;
    struct hb_fsdp fsdp;
    struct hb_titan_layer *layers;
    int64_t layer_count;
    struct hb_pipeline pipeline;      /* ranks 1: none */
    int64_t rank;                     /* of it */
    const struct hb_actions *actions; /* by rank, of schedules that are `many`; null: not made */
    struct hb_titan_stage *stages;
    bool first_step;                             /* nothing stands that a step before made */
    struct hb_passed passed;                     /* of its passes */
    bool embeds, heads;                          /* the rank has the embedding; norm and head */
    struct hb_weight end_weights[HB_TITAN_ENDS]; /* in the order of the model's parameters */
    int end_count;
    struct hb_weight *norm, *head; /* of them: the last one's, and the last, which a tied model
                                      has no use for */
    struct hb_unit first, last, root;
    bool
        by_chunk; /* head and loss run chunk by chunk, before the pass backwards; the last unit's */
    struct hb_unit norm_alone, head_alone; /* gradients are reduced in two */
    uint32_t hidden;                       /* value: what they took; a pipeline holds it */
    bool has_root;                         /* the ends are the root's own, whole all through */
    int64_t sequences;                     /* of a microbatch, on the device ... */
    int64_t tokens;                        /* ... and their tokens */
    int64_t stream_bytes;                  /* an element of the residual */
    int64_t rows;            /* of the residual: a part of them under sequence parallelism */
    int64_t ways;            /* tensor axis */
    struct hb_gather gather; /* over it */
    int64_t microbatch;
    bool tune; /* torchtune's step: heads repeated before any attention, the loss compiled too */
    uint32_t *stash; /* inputs of layers on their way to the host; null: they stay */
    int stash_count;
    struct hb_titan_again *spare_again; /* of layers run again for their weights' gradients ... */
    struct hb_saves saves;              /* ... and what the one that runs saved */
    uint32_t update_names[HB_TITAN_UPDATE_NAMES]; /* storages; HB_NONE */
    uint32_t *copies;                             /* of parameters, on their way to the host */
    uint32_t copy_count;
    struct hb_zero *zero;   /* DeepSpeed's ZeRO; null: not this */
    struct hb_zero3 *zero3; /* ... its third stage; null: not this */
    struct hb_titan_chunk *chunks;
    int64_t chunk_count;
    bool grpo;                   /* the loss is of log-probabilities by sequence */
    struct hb_titan *value;      /* PPO's model beside it, trained before it; null: none */
    const char *name;            /* before those of its weights: "", "value." */
    struct hb_short *cut;        /* null: the program is a whole one */
    int64_t left_out_grad_bytes; /* sharded gradients of layers that are not run */
};

/* The whole program holds this much more from here on: the layers left out have run forwards
 * (rest), or backwards, too (grads). */
void hb_titan_mark(struct hb_titan *e, bool rest, bool grads);
/* autocast ends, for this layer's weights. */
void hb_titan_forget_copies(struct hb_titan_layer *l);
uint32_t hb_titan_gathered(struct hb_titan *e, uint32_t x);
void hb_titan_drop_both(struct hb_tape *t, uint32_t a, uint32_t b);
void hb_titan_set_thing(struct hb_taped *n, const void *thing);
/* In a stage's last layer the last node is held by that weight's op alone. */
void hb_titan_hold_last(struct hb_titan_layer *l, int role);
/* The second product too; run again, all but it. */
uint32_t hb_titan_run_mlp(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept, bool again);
/* The mixture in its place: see titan_experts.c. */
uint32_t hb_titan_run_experts(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept,
                              bool again);
void hb_titan_add_weights(struct hb_titan_layer *l);
/* Weights that all experts of a layer are. */
int hb_titan_expert_weights(const struct hb_moe *m);
struct hb_linear hb_titan_linear(struct hb_titan_layer *l, int role, const char *name,
                                 struct hb_kept *kept);
/* A product of the routed copies, so many on the rank, with each expert's part of the weight. */
int64_t hb_titan_chosen(const struct hb_titan_layer *l);
uint32_t hb_titan_grouped(struct hb_titan_layer *l, int role, uint32_t x, const char *name);
/* gpt-oss: see titan_sinks.c. Attention from q, k and v on; parts of one product, each copied; */
uint32_t hb_titan_run_sinks(struct hb_titan_layer *l, uint32_t qkv[3], struct hb_kept *kept);
void hb_titan_copy_apart(struct hb_tape *t, uint32_t whole, uint32_t out[3],
                         const int64_t bytes[3]);
/* the products of experts that have biases. */
uint32_t hb_titan_run_biased(struct hb_titan_layer *l, uint32_t rows);
enum hb_norm hb_titan_last_norm(const struct hb_titan *e);
/* The model's table of rope, where it has one. */
void hb_titan_add_rope(struct hb_titan *e);
/* Width that rope turns of each head; 0: none. */
int64_t hb_titan_rope_width(const struct hb_attention *a);
/* Experts that the rank has, and the width of what it has of each. */
int64_t hb_titan_own_experts(const struct hb_titan_layer *l);
int64_t hb_titan_expert_width(const struct hb_titan_layer *l);
/* How the layer's second half brings the sequence together, and apart. */
struct hb_gather hb_titan_gather(const struct hb_titan_layer *l);
/* A pass over a layer that is checkpointed: what it keeps of itself. */
struct hb_titan_run {
    struct hb_titan_layer *layer;
    struct hb_kept kept;
    uint32_t in;                  /* value */
    struct hb_titan_again *again; /* null: not run again for a weight's gradient */
};
/* What is recorded of a layer: BACK with the run before it. */
enum hb_titan_pass { HB_TITAN_FORWARD, HB_TITAN_AGAIN, HB_TITAN_BACK, HB_TITAN_PAID = 4 };
/* Null: there is none. */
struct hb_reel *hb_titan_find_reel(struct hb_titan_layer *l, uint32_t pass);
/* The layer's ops alone; run: null, or what the pass keeps. */
void hb_titan_run_ops(struct hb_titan_layer *l, struct hb_titan_run *run, bool again);
bool hb_titan_is_fused(const struct hb_titan *e);
bool hb_titan_is_layernorm(const struct hb_titan_layer *l);
/* Of what a checkpointed layer saved: see titan_again.c. */
void hb_titan_back_checkpoint(struct hb_tape *t, struct hb_taped *n, uint32_t grad);
/* A layer with its unit, whole or checkpointed: the value it hands on. */
uint32_t hb_titan_run_layer(struct hb_titan_layer *l, uint32_t x);
/* Gradients of all weights of the layer, by one op each from what the split owes, the last of them
 * held by dw: as the microbatch before had them. False: they are to be made one by one, and to be
 * recorded by hb_titan_note_paid where there is a reel then. */
struct hb_titan_payment {
    struct hb_reel *reel; /* null: it is not the same each time */
    struct hb_outer outer;
    struct hb_owed *owed[HB_REEL_OUTER];
    uint32_t owed_count;
    struct hb_weight *weights; /* as they were; recorded where they stay so */
};
bool hb_titan_pay_again(struct hb_titan_layer *l, struct hb_split *split, uint32_t *dw, bool last,
                        struct hb_titan_payment *out);
void hb_titan_note_paid(struct hb_titan_layer *l, const struct hb_titan_payment *p, uint32_t dw);
/* The gradient of a weight of a layer that is checkpointed, whose input's is made already: the
 * layer is run again for it. What that leaves goes with the nodes: those that only this weight's op
 * holds with it, where no later layer of the stage holds them (`last`); */
uint32_t hb_titan_run_for(struct hb_tape *t, const struct hb_owed *o, bool last);
void hb_titan_forget_under(struct hb_tape *t, const struct hb_owed *o);
/* all others in the end. */
void hb_titan_forget_runs(struct hb_tape *t, const struct hb_owed *o);
/* Lets go of the first of those on their way to the host. */
void hb_titan_unstash(struct hb_titan *e, int count);
uint32_t hb_titan_embed(struct hb_titan *e);
/* Of a gradient of the whole table, which goes: the rank's part of the vocabulary. */
uint32_t hb_titan_own_table(struct hb_titan *e, uint32_t table);
/* Without FSDP: at the update. */
void hb_titan_share_table(struct hb_titan *e);
/* The last norm and the head: the logits of each chunk. */
void hb_titan_head(struct hb_titan *e, uint32_t x);
/* Forwards chunk by chunk; then the logits are let go. */
void hb_titan_loss(struct hb_titan *e);
/* A pass forwards of the reference, which has the policy's shapes: its units' streams are others.
 */
void hb_titan_run_reference(struct hb_titan *e);
void hb_titan_add_reference(struct hb_titan *e);
/* grpo: log-probabilities of the logits, which go; their gradient, in the logits' dtype. */
void hb_titan_log_probabilities(struct hb_titan *e, struct hb_titan_chunk *c);
uint32_t hb_titan_back_log_probabilities(struct hb_titan *e, struct hb_titan_chunk *c);
/* The gradients of the logits, from the last chunk, all of which autograd runs before it goes on to
 * the head. */
void hb_titan_back_loss(struct hb_titan *e);
int hb_titan_weight_count(const struct hb_titan_layer *l);
const struct hb_weight *hb_titan_weight_at(const struct hb_titan_layer *l, int at);
/* Each unit's weights, in the order of the model's parameters. */
void hb_titan_each_weight(struct hb_titan *e,
                          void (*visit)(struct hb_titan *, const struct hb_weight *));
/* Of a rank's part of a weight, an element so wide. */
int64_t hb_titan_shard_bytes(struct hb_titan *e, const struct hb_weight *w, int64_t width);
/* optimizer.ema, before the first step; left_out: elements of layers that are not run. */
void hb_titan_add_average(struct hb_titan *e, int64_t left_out);
/* The optimizer's step: see titan_update.c. */
void hb_titan_update(struct hb_titan *e);
void hb_titan_add_states(struct hb_titan *e, const struct hb_weight *w);
/* Elements of the model's weights on the rank, those of layers that are not run among them. */
int64_t hb_titan_elements(struct hb_titan *e);
/* Of a state of so many elements. In 8 bit: codes with an f32 scale for each 256 of them and a
 * table of what the codes mean; small and odd tensors stay as their parameters are, of so many
 * bytes an element (torchao's low_bit_optim, bitsandbytes alike). */
int64_t hb_titan_state_bytes(struct hb_titan *e, int64_t count, enum hb_dtype dtype, int64_t plain);
/* which: of the moments. */
void hb_titan_add_state(struct hb_titan *e, int which, int64_t bytes);
/* Has a backward pass that enters a module without parameters: see zero3.h. */
void hb_titan_note_module(struct hb_titan *e);
/* ZeRO: the weights' gradients go into the buffer; the parts that stay; */
void hb_titan_reduce_in_buckets(struct hb_titan *e);
void hb_titan_add_zero(struct hb_titan *e);
/* a microbatch begins, or its backward pass is over; the update. */
void hb_titan_begin_zero(struct hb_titan *e);
void hb_titan_close_bucket(struct hb_titan *e);
void hb_titan_update_zero(struct hb_titan *e, bool first);
/* All microbatches of a pipeline's step on the rank. */
void hb_titan_run_pipeline(struct hb_titan *e);
/* Those that the program still holds. */
void hb_titan_forget_logits(struct hb_titan *e);

#endif
