/* Which value stands where: XLA's dataflow analysis (xla/hlo/analysis/hlo_dataflow_analysis.cc) on
 * the module unrolled into scopes. A scope is one call of a computation by control flow (call,
 * while, conditional, async-start); a node is an instruction in a scope; a node has a slot for
 * each part of its shape; a slot holds a value; a value is defined at one slot and forwarded
 * through tuples, bitcasts, calls. Where loops or branches meet, a phi value stands for either.
 *
 *   entry scope:  x   t=tuple(x)     w=while(t)          slots of w: {table}, {0}
 *   body scope:         p=parameter(0)   r=tuple(f(p.0))     p.0 = phi(x, f)    */
#ifndef HB_SIM_HLO_FLOW_H
#define HB_SIM_HLO_FLOW_H

#include "sim/hlo/module.h"

struct hb_hlo_scope {
    uint32_t comp;
    uint32_t caller;     /* node; HB_NONE: the entry */
    uint32_t branch;     /* which of the caller's computations */
    uint32_t next;       /* of the same caller; HB_NONE: last */
    uint32_t first_node; /* nodes stand as the computation's instructions do */
    int32_t start, end;  /* times of its first instruction, and behind its last */
    uint32_t async_done; /* node that ends an asynchronous wrap around it; HB_NONE */
};

struct hb_hlo_value {
    uint32_t node;
    uint32_t slot; /* within the node */
    uint32_t shape;
};

struct hb_hlo_flow {
    const struct hb_hlo_module *m;
    struct hb_arena *arena;
    struct hb_hlo_scope *scopes;
    uint32_t scope_count, scope_cap;
    uint32_t *scope_of;    /* by node */
    uint32_t *first_slot;  /* by node; one more at the end */
    uint32_t *child_scope; /* by node: first scope that it calls; HB_NONE */
    int32_t *time;         /* by node: place in the flattened schedule */
    uint32_t node_count, node_cap;
    uint32_t *value_at; /* by slot */
    uint32_t slot_count;
    struct hb_hlo_value *values;
    uint32_t value_count, value_cap;
    uint32_t *post_order; /* by node: place in XLA's post-order, the entry's nodes first */
    int32_t end_time;     /* number of nodes in the schedule */
};

/* order (by computation, then by place) is the order in which instructions run; null: as they
 * stand. False with an error where calls go in circles or unroll beyond what is held. */
bool hb_hlo_flow_find(struct hb_arena *arena, struct hb_diag *diag, const struct hb_hlo_module *m,
                      const uint32_t *order, struct hb_hlo_flow *out_flow);

static inline uint32_t hb_hlo_node_inst(const struct hb_hlo_flow *f, uint32_t node)
{
    const struct hb_hlo_scope *scope = &f->scopes[f->scope_of[node]];
    return f->m->comps[scope->comp].first_inst + (node - scope->first_node);
}
/* The node of an instruction of the same computation. */
static inline uint32_t hb_hlo_sibling(const struct hb_hlo_flow *f, uint32_t node, uint32_t inst)
{
    const struct hb_hlo_scope *scope = &f->scopes[f->scope_of[node]];
    return scope->first_node + (inst - f->m->comps[scope->comp].first_inst);
}
static inline uint32_t hb_hlo_node_operand(const struct hb_hlo_flow *f, uint32_t node, uint32_t i)
{
    return hb_hlo_sibling(f, node, hb_hlo_operand(f->m, hb_hlo_node_inst(f, node), i));
}
static inline uint32_t hb_hlo_node_slots(const struct hb_hlo_flow *f, uint32_t node)
{
    return f->first_slot[node + 1] - f->first_slot[node];
}
/* The root's node of a scope. */
static inline uint32_t hb_hlo_scope_root(const struct hb_hlo_flow *f, uint32_t scope)
{
    const struct hb_hlo_comp *comp = &f->m->comps[f->scopes[scope].comp];
    return f->scopes[scope].first_node + (comp->root - comp->first_inst);
}
static inline bool hb_hlo_node_is_root(const struct hb_hlo_flow *f, uint32_t node)
{
    return node == hb_hlo_scope_root(f, f->scope_of[node]);
}
/* An all-reduce-start as older dumps have it: a tuple of what it is given, which it hands on, and
 * of what it makes. Newer ones have the results alone, in the place of the operands. */
bool hb_hlo_starts_pair(const struct hb_hlo_module *m, uint32_t inst);
/* Slot within a node's shape at a path of tuple indices; HB_NONE: there is none. */
uint32_t hb_hlo_path_slot(const struct hb_hlo_shapes *shapes, uint32_t shape, const uint32_t *path,
                          uint32_t len);
/* The slots, among all, that a donation of the module ties together; false: it names none. */
bool hb_hlo_donation_slots(const struct hb_hlo_flow *f, const struct hb_hlo_donation *donation,
                           uint32_t *out_param, uint32_t *out_output);
/* By value: an argument that the caller gives away. */
bool *hb_hlo_donated(struct hb_arena *arena, const struct hb_hlo_flow *f);

#endif
