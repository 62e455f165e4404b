/* What is proven of cells: see proof.h. */
#include "solver/proof.h"

#include <math.h>

#include "base/size.h"
#include "solver/nodes.h"

static const struct hb_node_floor *find_floor(const struct hb_search_node *node,
                                              const struct hb_cell *cell)
{
    enum hb_form form = cell->form == HB_FORM_NESTED ? HB_FORM_SCAN : cell->form;
    for (uint32_t i = 0; i < node->floor_count; i++) {
        const struct hb_node_floor *f = &node->floors[i];
        if (f->loss_chunks == cell->loss_chunks && f->form == form &&
            f->place == cell->optimizer_offload)
            return f->refused ? NULL : f;
    }
    return NULL;
}

const struct hb_search_node *hb_proof_node(const struct hb_plan *plan, uint32_t cell)
{
    return hb_nodes_around(plan->nodes, plan->node_count, cell);
}

/* Of the step of any of the cell's configurations under policies of the menus. */
static int64_t least_ns(const struct hb_plan *plan, const struct hb_search_node *node,
                        uint32_t index)
{
    const struct hb_cell *cell = &plan->space.cells[index];
    const struct hb_node_floor *f = find_floor(node, cell);
    bool again = cell->form == HB_FORM_NESTED && plan->space.base->remat.outer;
    int64_t again_ns = again ? node->floor.forward_ns : 0;
    int64_t path_ns = cell->form == HB_FORM_LOOP ? 0 : hb_add_sat(node->floor_ns, again_ns);
    int64_t ns = hb_larger(node->floor.bound_ns, path_ns);
    if (f)
        ns = hb_larger(ns, hb_add_sat(f->floor.bound_ns, again_ns));
    if (cell->form != HB_FORM_SCAN)
        return ns;
    ns = hb_larger(ns, hb_larger(node->relax_ns, plan->relax_ns[index]));
    int64_t turns_ns = node->turns_ns[cell->optimizer_offload][cell->loss_chunks > 1];
    int64_t layers_ns = hb_larger(path_ns, hb_larger(node->layers_ns, turns_ns));
    int64_t ends_ns = f ? hb_add_sat(f->floor.ends_ns, f->floor.tail_ns) : 0;
    return hb_larger(ns, hb_add_sat(layers_ns, ends_ns));
}

/* Where the objective is time: of an amount of it, in the cell. */
static double value_ns(const struct hb_plan_ask *ask, const struct hb_plan *plan, uint32_t cell,
                       int64_t ns)
{
    struct hb_plan copy = *plan;
    struct hb_search s = {.ask = ask, .plan = &copy};
    return hb_search_value(&s, cell, ns, ns);
}

int64_t hb_proof_peak_bytes(const struct hb_plan_ask *ask, const struct hb_plan *plan,
                            uint32_t cell)
{
    struct hb_plan copy = *plan;
    struct hb_search s = {.ask = ask, .plan = &copy};
    return hb_search_peak_bytes(&s, cell);
}

double hb_proof_value(const struct hb_plan_ask *ask, const struct hb_plan *plan,
                      const struct hb_search_node *node, uint32_t cell)
{
    const struct hb_cell_row *row = &plan->rows[cell];
    const struct hb_node_floor *f = find_floor(node, &plan->space.cells[cell]);
    if (row->fate == HB_FATE_REFUSED || row->fate == HB_FATE_MEMORY)
        return INFINITY;
    if (ask->objective == HB_OBJ_MEMORY)
        return (double)hb_larger(node->floor.live_bytes, f ? f->floor.live_bytes : 0);
    int64_t ns = least_ns(plan, node, cell);
    if (ns == INT64_MAX)
        return INFINITY;
    double value = value_ns(ask, plan, cell, ns);
    bool program = row->fate == HB_FATE_ILP_BOUND || row->fate == HB_FATE_ILP_EMPTY;
    return program ? fmax(value, row->value) : value;
}

bool hb_proof_is_left(const struct hb_plan_ask *ask, const struct hb_plan *plan,
                      const struct hb_search_node *node, uint32_t cell)
{
    return plan->settled && hb_proof_value(ask, plan, node, cell) < plan->best.value;
}
