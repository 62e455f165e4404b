/* What exists and what needs what, without an order: ops that make values out of values, in
 * computations that ops of others run. Dumps and steps become it alike; order.h puts it in order
 * as XLA does, choose.h says what each order would need.
 *
 *   entry:  x = given     w = loop(x) runs body     y = op(w)
 *   body:   p = given     q = op(p)                 (q lies in p's place)
 *
 * Parts refer to each other by index. Ops of a computation stand in a row, the oldest first, each
 * behind its operands. */
#ifndef HB_SIM_GRAPH_GRAPH_H
#define HB_SIM_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/ir/program.h"

struct hb_graph_value {
    int64_t bytes;
    uint32_t op;    /* that makes it */
    uint32_t place; /* values of one place must lie in the same memory; any number */
    bool constant;  /* in no order's estimate */
};

/* Kinds of what an op refers to, in the order in which they are added. */
enum hb_graph_ref {
    HB_GRAPH_OPERAND, /* an op whose result it reads; may stand twice */
    HB_GRAPH_AFTER,   /* an op that runs before it all the same */
    HB_GRAPH_USES,    /* a value that it needs, handed on or not; once */
    HB_GRAPH_RUNS,    /* a computation, which runs just before it */
    HB_GRAPH_REF_KINDS
};

struct hb_graph_op {
    uint32_t comp;
    uint32_t refs_at[HB_GRAPH_REF_KINDS + 1]; /* into refs, the last is the end */
    uint32_t first_value, value_count;        /* what it makes */
    uint32_t rank;                            /* of its name among those of the graph */
    bool given;  /* from outside, or a constant: what it makes weighs nothing */
    bool early;  /* its values are there when its computation starts */
    bool scalar; /* a list takes it as soon as it can run */
    bool ring;   /* a loop, though it runs no computation that is known */
    bool soon;   /* starts something asynchronous: is moved to where what it reads is there */
    bool late;   /* waits for it: is moved to its first user */
};

struct hb_graph_comp {
    uint32_t first_op, op_count;
    uint32_t root;   /* op whose values outlive it; HB_NONE: none does */
    uint32_t caller; /* op that runs it, of a computation that stands before; HB_NONE: entry */
};

/* A reason to keep a value: until an op, the start of a computation, or its end. */
enum hb_graph_until { HB_GRAPH_OP, HB_GRAPH_START, HB_GRAPH_END };

struct hb_graph_touch {
    uint32_t value;
    uint32_t at; /* op or computation */
    enum hb_graph_until until;
};

/* A value may take the place of another that dies where it is made. */
struct hb_graph_heir {
    uint32_t value, from;
};

struct hb_graph {
    struct hb_arena *arena;
    struct hb_graph_op *ops;
    uint32_t op_count, op_cap;
    struct hb_graph_value *values;
    uint32_t value_count, value_cap;
    struct hb_graph_comp *comps;
    uint32_t comp_count, comp_cap;
    uint32_t *refs;
    uint32_t ref_count, ref_cap;
    struct hb_graph_touch *touches;
    uint32_t touch_count, touch_cap;
    struct hb_graph_heir *heirs; /* by value, rising */
    uint32_t heir_count, heir_cap;
    uint32_t entry;  /* computation */
    bool loops_even; /* what a loop hands back is what it is given: to a list it weighs nothing */
    uint32_t *first_user;  /* by op, one more at the end */
    uint32_t *users;       /* ops that read it, each once, the oldest first */
    uint32_t *first_after; /* the same of those that only run after it */
    uint32_t *after;
    uint32_t *first_touch; /* by value, one more at the end: into touches, which are sorted */
};

void hb_graph_init(struct hb_graph *g, struct hb_arena *arena);
/* Ops added from here on are the computation's. */
uint32_t hb_graph_add_comp(struct hb_graph *g);
uint32_t hb_graph_add_op(struct hb_graph *g);
/* To the last op, in the order of kinds. */
void hb_graph_add_ref(struct hb_graph *g, enum hb_graph_ref kind, uint32_t what);
/* Made by the last op. */
uint32_t hb_graph_add_value(struct hb_graph *g, int64_t bytes);
void hb_graph_touch(struct hb_graph *g, uint32_t value, enum hb_graph_until until, uint32_t at);
void hb_graph_add_heir(struct hb_graph *g, uint32_t value, uint32_t from);
/* Finds users and callers, sorts the touches by value. Nothing may be added afterwards. */
void hb_graph_close(struct hb_graph *g);

static inline uint32_t hb_graph_ref_count(const struct hb_graph *g, uint32_t op,
                                          enum hb_graph_ref kind)
{
    return g->ops[op].refs_at[kind + 1] - g->ops[op].refs_at[kind];
}
static inline const uint32_t *hb_graph_refs(const struct hb_graph *g, uint32_t op,
                                            enum hb_graph_ref kind)
{
    return g->refs ? g->refs + g->ops[op].refs_at[kind] : NULL;
}
static inline uint32_t hb_graph_user_count(const struct hb_graph *g, uint32_t op)
{
    return g->first_user[op + 1] - g->first_user[op];
}

#endif
