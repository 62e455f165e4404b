/* What makes a graph of a step's program (step.c), and of what it does not name (parts.c). */
#ifndef HB_SIM_GRAPH_MAKER_H
#define HB_SIM_GRAPH_MAKER_H

#include "sim/graph/step.h"

struct frame;

/* On a TPU the head's products make the logits' gradient inside, in their place, and read these. */
struct hb_read_again {
    uint32_t root; /* the logits'; HB_NONE: no such */
    uint32_t ops[2];
};

struct maker {
    struct hb_arena *arena;
    const struct hb_program *p;
    int64_t stacked; /* layers of which stacks are taken to be; 0: as they are */
    struct hb_graph *g;
    uint32_t *root;   /* by buffer */
    uint32_t *first;  /* by root, op that touches it first; 0: an argument */
    uint32_t *last;   /* by root, one past the op that touches it last; HB_NONE: an output */
    uint32_t *value;  /* by root: what it has now, in the computation at hand; HB_NONE */
    uint32_t *holder; /* by root: op of that computation that hands it out */
    uint32_t *seen;   /* by root: stamp of who met it last */
    uint32_t *slot;   /* by root so met: its number among these */
    uint32_t *roots;  /* a list */
    uint32_t *tree;   /* by root: its place in what the caller hands over */
    uint32_t stamp;
    uint32_t *cast_of;   /* by root: what an op made of it alone, in the computation at hand ... */
    uint32_t *cast_from; /* ... when it had this value */
    uint32_t *op_of;     /* by op of the program: the graph's */
    bool *turned;        /* by root: its stack is copied in another layout for the loops */
    uint32_t mean;       /* op that has the last norm's mean, in the computation at hand; HB_NONE */
    uint32_t scale;      /* and its inverse root */
    uint32_t labels;     /* and the labels' logits, which are the loss */
    struct hb_read_again read_again;
    uint32_t norm;       /* op of the graph; HB_NONE */
    uint32_t layers;     /* op of the entry's last loop; HB_NONE */
    uint32_t joined;     /* collective that sums the loss and the last norm's gradient; HB_NONE */
    uint32_t found;      /* op that has what a trip finds, on TPU; HB_NONE */
    uint32_t norm_back;  /* op that makes that one; HB_NONE */
    bool sums_all;       /* the entry has a norm of all gradients, which joins in */
    uint32_t column_sum; /* the same, over devices, of all gradients' columns */
    uint32_t product;    /* without a buffer of its own: the op behind it reads it; HB_NONE */
    struct frame *frames;
    uint32_t frame_count, frame_cap;
    uint32_t *item; /* as hb_step_graph's */
    uint32_t item_cap;
};

static inline const uint32_t *hb_maker_refs(const struct maker *m, const struct hb_op *op)
{
    return m->p->refs + op->refs_at;
}

static inline uint32_t hb_maker_ref_count(const struct hb_op *op)
{
    return op->read_count + op->write_count;
}

uint32_t hb_maker_add_op(struct maker *m, uint32_t item);
/* In a buffer's place. */
void hb_maker_make_value(struct maker *m, uint32_t root, uint32_t op);
/* The op reads these, each once, or hands them on. */
void hb_maker_add_operands(struct maker *m, uint32_t op, const uint32_t *roots, uint32_t count);

/* --- parts.c --- */

struct hb_parts {
    uint32_t ops[3]; /* what the op at hand reads besides */
    int count;
};

/* An update whose states are means over rows and over columns. */
struct hb_factored {
    uint32_t weight, grad;  /* roots; weight HB_NONE: it is none */
    uint32_t rows, columns; /* roots of the new ones */
};

/* An op that adds up to two others' results; HB_NONE: none. */
uint32_t hb_parts_add_reader(struct maker *m, uint32_t one, uint32_t two);
/* One that reads a value, and another op's result; HB_NONE: none. */
uint32_t hb_parts_read(struct maker *m, uint32_t root, uint32_t with);
/* One collective sums the loss, the last norm's gradient and, where there are, parts of a sum. */
void hb_parts_join(struct maker *m, const uint32_t *parts, uint32_t count);
/* Of a number out of many tensors, each one's own; returns the op that has all. */
uint32_t hb_parts_of_sum(struct maker *m, uint32_t count);
struct hb_parts hb_parts_of_loss(struct maker *m, const struct hb_op *op);
/* Of an update's tuple each part is an op, too. */
void hb_parts_hand_out(struct maker *m, const struct hb_op *op, uint32_t at);
void hb_parts_note_turned(struct maker *m, const struct hb_op *op);
/* Of an update, the weight whose stack lies turned in the loops. */
uint32_t hb_parts_turned_weight(const struct maker *m, const struct hb_op *op);
/* Makes the moments of such; returns how many roots are left to the weight's own op. */
uint32_t hb_parts_add_moments(struct maker *m, const struct hb_op *op, uint32_t weight,
                              uint32_t count);
struct hb_factored hb_parts_find_factored(const struct maker *m, const struct hb_op *op);
/* Returns what the op of the program reads besides. */
struct hb_parts hb_parts_add_factored(struct maker *m, struct hb_factored f, uint32_t i);

/* --- trees --- */

enum { HB_TREE_TABLE, HB_TREE_NORM };

/* Where a weight stands in a tree by its name; what has none there comes last. */
int hb_tree_rank(const char *name);
/* By buffer: states by their weights. XLA:GPU's as they stand. */
uint32_t *hb_tree_find(struct maker *m);
void hb_tree_sort(const struct maker *m, uint32_t *roots, uint32_t count);

#endif
