/* XLA's three memory schedulers (xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc), on a
 * graph: each puts the ops of every computation in a row. Ties are broken as there:
 *
 *   list   of what is ready, what frees most bytes less what it makes; then most users; then what
 *          became ready, or changed, last. Scalars at once. What a loop
 *          or call makes is what its computation holds while it runs, its own values alone.
 *   depth  operands before their user, those with more "extra users" above them first, then those
 *          with more bytes above them, then by name
 *   post   operands before their user, what it only runs after first (the last of it first), then
 *          operands left to right
 *
 * In each, XLA:GPU then starts collectives as soon and awaits them as late as it can
 * (gpu_hlo_schedule.cc, PostprocessorToScheduleAsEarlyOrLateAsPossible). */
#ifndef HB_SIM_GRAPH_ORDER_H
#define HB_SIM_GRAPH_ORDER_H

#include "sim/graph/graph.h"

enum hb_order_kind { HB_ORDER_LIST, HB_ORDER_DEPTH, HB_ORDER_POST, HB_ORDER_KINDS };

/* Ops by computation (from its first_op on), then by place. Of a closed graph. */
uint32_t *hb_graph_order_make(struct hb_arena *arena, const struct hb_graph *g,
                              enum hb_order_kind kind);
const char *hb_graph_order_name(enum hb_order_kind kind);

/* The list does all computations, those inside first, the others one. out has room for the ops. */
void hb_graph_order_list(struct hb_arena *scratch, const struct hb_graph *g, uint32_t *out);
void hb_graph_order_depth(struct hb_arena *scratch, const struct hb_graph *g, uint32_t comp,
                          uint32_t *out);
void hb_graph_order_post(struct hb_arena *scratch, const struct hb_graph *g, uint32_t comp,
                         uint32_t *out);
/* Moves what is soon or late in a computation's row. */
void hb_graph_order_async(struct hb_arena *scratch, const struct hb_graph *g, uint32_t comp,
                          uint32_t *row);

#endif
