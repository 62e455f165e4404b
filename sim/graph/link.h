/* A step's program in the order that XLA's memory schedulers choose for it (order.h, choose.h).
 *
 * Which of the three is least is found of the program under its first policy, whatever follows it;
 * what each of them does, of the same step whose layers keep nothing, their products or all,
 * whichever that policy is like: an order is one of nine of a mesh, a batch and a model, so that
 * samples of a configuration can follow it, and the planner's floors hold for each.
 *
 *   emitted   zeros of the layers | cast, gather head | stacks, loop | logits | ... | updates
 *   clusters  0                     1     2             3       4      5        ...   9
 *   order     1 2 3 4 5 0 ...
 *
 * A cluster is an op of the model's ends, or neighbours of one kind that belong to the layers. */
#ifndef HB_SIM_GRAPH_LINK_H
#define HB_SIM_GRAPH_LINK_H

#include "sim/graph/step.h"

struct hb_diag;

enum { HB_LINK_KNOWN = 64 };
enum { HB_LINK_CLASSES = 3, HB_LINK_ORDERS = HB_LINK_CLASSES * HB_ORDER_KINDS };

/* Which of the three is least where layers have that policy first. */
struct hb_link_least {
    struct hb_remat policy;
    bool merged; /* as the spec's */
    enum hb_order_kind kind;
};

/* What the orders do, of all configurations of a cell: its mesh, batch and model. */
struct hb_link {
    struct hb_arena *arena;
    const struct hb_spec *cell;
    bool known; /* ROCm's scans (hb_habits_ordered), unless as written */
    bool ready[HB_LINK_CLASSES];
    struct hb_program wholes[HB_LINK_CLASSES];
    struct hb_step_graph graphs[HB_LINK_CLASSES];
    const struct hb_link_rows *orders[HB_LINK_ORDERS]; /* that were asked for; else null */
    struct hb_link_least least[HB_LINK_KNOWN];         /* the last that were asked for */
    uint32_t least_count;
};

/* The cell stays where it is. */
void hb_link_open(struct hb_arena *arena, const struct hb_spec *cell, struct hb_link *out);
/* Whether its steps' layers may be in one of XLA's orders, and in which a spec's are. */
bool hb_link_is_inside(const struct hb_spec *cell);
enum hb_order_kind hb_link_layers(struct hb_link *l, const struct hb_spec *spec);
/* What it needs of a spec of that cell, and in which order it is. False: none is known. */
bool hb_link_ready(struct hb_link *l, const struct hb_spec *spec, int *out_index);
/* Of what hb_lower made of a spec of that cell; the same where no order is known. */
void hb_link_put(struct hb_arena *arena, struct hb_link *l, const struct hb_spec *spec,
                 struct hb_program *p);
/* hb_lower of a spec of that cell, and in order where one is known. */
bool hb_link_lower_in(struct hb_arena *arena, struct hb_diag *diag, struct hb_link *l,
                      const struct hb_spec *spec, struct hb_program *out);
/* Makes ready all orders of the cell's steps, each once, as spec.as_order has them; how many. */
int hb_link_all(struct hb_link *l, int out[HB_LINK_ORDERS]);
void hb_link_order(struct hb_arena *arena, const struct hb_spec *spec, struct hb_program *p);
/* The same of a spec whose cell is its own. */
bool hb_link_lower(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                   struct hb_program *out);

#endif
