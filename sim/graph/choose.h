/* What an order of a graph would need, and which of XLA's three it takes: the whole module is
 * replayed on a heap without fragmentation (HeapSimulator::MinimumMemoryForModule over
 * hlo_live_range.cc), the least is kept, the list where it is one of them, then depth first. */
#ifndef HB_SIM_GRAPH_CHOOSE_H
#define HB_SIM_GRAPH_CHOOSE_H

#include "sim/graph/order.h"

/* The most that is alive at once. Values of one place follow each other: where one ends as the
 * next begins (a loop's start and what its body finds) both count for that moment. */
int64_t hb_graph_estimate(struct hb_arena *scratch, const struct hb_graph *g,
                          const uint32_t *order);

struct hb_order_choice {
    uint32_t *orders[HB_ORDER_KINDS];
    int64_t bytes[HB_ORDER_KINDS];
    enum hb_order_kind least;
};

void hb_graph_choose(struct hb_arena *arena, const struct hb_graph *g, struct hb_order_choice *out);

#endif
