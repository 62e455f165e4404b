/* The program of a step taken as a graph: its ops become ops, its loops computations that an op of
 * the outer one runs, each writing of a buffer a value in the place of the one before. The order in
 * which the program was written down is forgotten but for ties (an op's age).
 *
 * A loop is as XLA has it: a tuple of what it finds, the loop, what it hands on; inside, what it is
 * given and a tuple of what the next trip finds. What no trip changes passes through untouched. */
#ifndef HB_SIM_GRAPH_STEP_H
#define HB_SIM_GRAPH_STEP_H

#include "sim/graph/choose.h"

struct hb_step_graph {
    struct hb_graph graph;
    uint32_t *item; /* by op of the graph: the program's, or its loop; HB_NONE: of neither */
    int64_t argument_bytes; /* in every order's estimate */
};

void hb_step_graph_make(struct hb_arena *arena, const struct hb_program *p,
                        struct hb_step_graph *out);

struct hb_step_inside {
    int64_t layers; /* stacks weigh as if they had so many slices, whatever trips a sample has */
    const uint32_t *loops;
    uint32_t count;
};

/* For the order inside of these loops alone. */
void hb_step_graph_inside(struct hb_arena *arena, const struct hb_program *p,
                          const struct hb_step_inside *in, struct hb_step_graph *out);

struct hb_step_orders {
    struct hb_step_graph step;
    struct hb_order_choice choice;
    int64_t written_bytes; /* of the order in which the program stands */
};

/* What XLA's three orders of the program would need, and which it takes. */
void hb_step_orders_find(struct hb_arena *arena, const struct hb_program *p,
                         struct hb_step_orders *out);

#endif
