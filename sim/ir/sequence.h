/* Which of XLA:TPU's sequences a step runs in. The compiler puts a step in order three ways, counts
 * what is alive in each, and takes the least. Answers follow from sizes, by family: rings, rings
 * beside tensor parallelism, that alone, gathers, one device, stages; others are not known. */
#ifndef HB_SIM_IR_SEQUENCE_H
#define HB_SIM_IR_SEQUENCE_H

#include "sim/ir/lower.h"
#include "sim/ir/lowering.h"

enum hb_sequence {
    HB_SEQUENCE_LIST,  /* next what frees most: the head's gradient last, what it reads in bf16 */
    HB_SEQUENCE_DEPTH, /* each product's reader next: that gradient at once, labels' logits last */
    HB_SEQUENCE_POST   /* both last */
};

/* The choice as a number: spec.as_order less one where that is set (a search puts all of a segment
 * in one order), else what the sizes of all blocks' stacks make of it. */
enum { HB_SEQUENCE_KEYS = 256 }; /* all are below */
int hb_sequence_key(const struct hb_lower *lo);
/* Where it moves ops of the layers themselves, whose path is another then: a choice of each kind,
 * that with the least path and the least bytes of all beside them; how many, 0: they stand in all
 * as in any. */
int hb_sequence_kinds(const struct hb_lower *lo, int out[HB_LOWER_KINDS]);

enum { HB_SEQUENCE_LEAST_WAYS = 8 }; /* of a ring; fewer go round one way (gate/f5, f7) */

/* Whether the compiler was seen to choose: one sequence a device between rings of fsdp alone, in a
 * loop over microbatches where labels' logits come last. */
bool hb_sequence_known(const struct hb_lower *lo);
enum hb_sequence hb_sequence_find(const struct hb_lower *lo);
/* Whether depth-first comes out as post-order does; the compiler then takes the former. */
bool hb_sequence_depth_is_post(const struct hb_lower *lo);
/* Between gathers: over fsdp, padded or late ones, and in accumulation loops any others, too. */
enum hb_gathers_order {
    HB_GATHERS_DEPTH = 1,       /* depth-first */
    HB_GATHERS_SUM_WAITS = 2,   /* the head's gradient comes at once, its sum after the layers */
    HB_GATHERS_FIRST = 4,       /* it comes before that of its input */
    HB_GATHERS_LOGITS_WAIT = 8, /* both come after them */
    HB_GATHERS_POST = 16        /* post-order: in bf16 the logits' gradient waits as well */
};

/* A tied head that comes by rows: its gradient waits for the layers unless the list is taken (2,560
 * to 3,840 wide, fsdp 64 to 256 of v6e: six of six in post-order or depth-first; eight of 2,048
 * tokens, list, depth, post 14.04 14.84 14.88 GiB: at once). */
bool hb_sequence_both_by_rows(const struct hb_lower *lo);
bool hb_sequence_gathers_known(const struct hb_lower *lo);
/* A mask of those; where it is known, else 0. */
int hb_sequence_gathers_taken(const struct hb_lower *lo);
/* What a layer's backward pass holds between gathers, if contexts are kept. */
double hb_sequence_layer_bytes(const struct hb_lower *lo, bool contexts);
/* Whether the list is taken and makes the head's gradient at once (v5e's gathers, too). */
bool hb_sequence_gathers_at_once(const struct hb_lower *lo);
/* The same beside tensor parallelism: whether post-order is least, so that the logits wait; and
 * whether that alone decides, between rings with one sequence. */
bool hb_sequence_tensor_known(const struct hb_lower *lo);
bool hb_sequence_post_tensor(const struct hb_lower *lo);
/* Whether the list is least with states on the host between plain gathers; what layers keep. */
bool hb_sequence_hosted_list(const struct hb_lower *lo);
int64_t hb_sequence_kept_bytes(const struct hb_lower *lo);
/* Whether the loop over a loss's chunks that adds the loss up comes last of all: depth-first, on
 * one TPU or in stages alone, and wherever the batch is split. */
bool hb_sequence_loss_last(const struct hb_lower *lo);

#endif
