/* What each compiler was seen to do with the same step: one table, one row a compiler, each field
 * with the measured pair that shows it (habits.c). The lowering asks the table, never the name. */
#ifndef HB_SIM_IR_HABITS_H
#define HB_SIM_IR_HABITS_H

#include <stdbool.h>
#include <stdint.h>

#include "models/spec.h"
#include "sim/ir/shape.h"

struct hb_habits {
    const char *name;
    enum hb_tiling tiling;        /* how arguments and temporaries are padded */
    enum hb_tiling kernel_tiling; /* of a flash kernel's operands: head_dim stays minor */
    int64_t lse_lanes;            /* copies of the log-sum-exp that a flash kernel hands out */
    bool casts_hoisted;           /* the compute-dtype copy of a whole stack is made once */
    bool rings;                   /* FSDP products become rings of permutes where they pay */
    bool masks_narrow;            /* one-hot masks of a dispatch are predicates */
    bool norms_fused;             /* normalised inputs are made inside the products */
    bool act_stored_for_dw;       /* the MLP's activation is a buffer for its weight gradient */
    int logits_copies;            /* f32 logits alive together in the loss */
    bool zeros_hoisted;           /* with fsdp, whatever their size */
    bool gathers_timed;           /* a gather starts as late as hides it */
    bool recompute_first;         /* all of a layer is made again before its backward pass */
    bool constraints_needed;      /* a pipeline's body without them splits the batch less */
    bool probabilities_remade;    /* in a pipeline's iteration, from the f32 scores */
    bool output_grads_gathered;   /* of a pipeline, whole, in each iteration */
    bool kernel_names_result;     /* as the context that a policy can name */
    int64_t group_tile;      /* rows of one step of the kernel for grouped products; 0: as one */
    int64_t attention_block; /* queries and keys of one step of the flash kernel */
    bool attention_split;    /* its backward pass is two kernels, dq and dk with dv */
    bool parts_apart;        /* of an input's gradient, one a product, added afterwards */
    bool sums_remade;        /* a residual's gradient is made again by a layer's last fusion */
    bool outputs_in_place;   /* of a pipeline: the loss reads them in the iterations' stack */
    bool muon_sums_squares;  /* over the dimension that is split, and gathers the other */
    bool weights_last;       /* a dispatch's get their gradient when they are gone */
    bool transposed_stacks;  /* weights gathered over a minor dimension are copied whole */
    bool donated_reuse;      /* without donation, temporaries lie in the output buffers */
    bool mask_hoisted;       /* a causal mask is materialised before the layer loop */
    bool softmax_apart;      /* of attention written out: maximum, sum and quotient are kernels */
    int naive_score_copies;  /* f32 scores alive in naive attention's backward */
    bool nan_zero_per_shape; /* nan_to_num keeps a zero tensor per gradient shape */
    bool ragged_dense;       /* ragged products are expanded over the experts */
    bool onehot_iota;        /* a one-hot lookup materialises s32[tokens, vocab] */
};

/* What of XLA:TPU's habits depends on the generation of the chip; where the evidence stands the
 * field is used. All false and 0 for what is no TPU. */
struct hb_chip {
    const char *device;
    int64_t memory_bytes;    /* that the compiler counts with; 0: unknown */
    int64_t head_ring_times; /* the head's, in times of what is usual */
    /* A sparse core puts the rows of a table's gradient in order, of 4 to 16 KiB each, from so many
     * on; 0: always, INT64_MAX: never. */
    int64_t sorted_long;
    int64_t window_least; /* lanes of a window in which each device sums its own part */
    /* Parts of so many lanes are taken of a ring's rows, whose other factor is turned; 0: none. */
    int64_t ring_lanes;
    bool gathers_padded;       /* of 64 ways and more */
    bool gathers_beside;       /* each weight's beside the other's product */
    bool ring_columns_at_once; /* of unrolled layers: when.c */
    bool ring_grads_at_once;   /* weight gradients in rings do not wait for the layers */
    bool ring_room_early;      /* room for what rings collect is there before the loss */
    bool labels_last;          /* depth-first, in a loop over microbatches: behind the layers */
    int chunk_beside;  /* the gathered head: a chunk's gradient 1, its sum as well 2; 0 none */
    bool turned_early; /* stacks are copied before the loss */
    bool flat;         /* a torus of two sides: eight are 2 by 4 */
    bool mlp_turned;   /* its products read rows of its tensors between gathers */
    /* The gradient of a dispatch's weights is turned for the router's (olmoe over 4, 8, 32, 256,
     * phimoe over 64: a copy of bf16[8,4096,64,640]; v5p and v5e: none). */
    bool masks_turned;
    bool updates_joined; /* of weights of a shape, behind an accumulation loop */
    bool longest_copy;   /* of copies to and from the host the longest ends last */
    /* Of products, bytes to and from the memory, and in f32 summed along a side of the torus, while
     * a byte is on its way to the host, as its scheduler takes them (its own log, vmodule
     * latency_hiding_scheduler=5). */
    double host_flops, host_passes, host_sums;
    bool own_loss_at_once; /* MaxText's */
    bool fused_backward;   /* flash attention's backward pass is one kernel */
    int64_t recipes_block; /* the least that the chip's published recipes set as attention_block */
};

const struct hb_habits *hb_habits_find(const struct hb_spec *spec);
const struct hb_chip *hb_habits_chip(const struct hb_spec *spec);
/* "another TPU" where its name is none of the table's. */
const struct hb_chip *hb_chip_find(const char *device);
/* Above this sum of all that is allocated the heap is packed anew, sorted; 0: it never is. */
int64_t hb_chip_repack_bytes(const struct hb_chip *of);
/* Whether its ops come in the order of XLA's memory schedulers alone (sim/graph/link.h): ROCm's
 * scans, and CUDA's on one device. What follows from no other op is written where it is used. */
/* That the axes of the mesh make. */
int64_t hb_habits_devices(const struct hb_spec *spec);
bool hb_habits_ordered(const struct hb_spec *spec);

#endif
