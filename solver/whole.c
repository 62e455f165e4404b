/* Bounds over all policies: see whole.h. */
#include "solver/whole.h"

#include <math.h>

#include "base/arena.h"
#include "base/size.h"
#include "solver/nodes.h"
#include "solver/relax.h"

/* floor: the cell's; null: of a node's layers alone. */
static struct hb_relax relax(struct hb_search *s, const struct hb_spec *spec,
                             const struct hb_floor *floor, int64_t peak_bytes)
{
    struct hb_plan_counts *k = &s->plan->counts;
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_relax_ask ask = {.cell_spec = spec,
                               .device = s->ask->device,
                               .budget_bytes = peak_bytes,
                               .host_bytes = s->ask->host_bytes,
                               .floor = floor,
                               .layers_only = !floor};
    struct hb_relax found;
    hb_relax_find(s->scratch, &ask, &found);
    hb_arena_rewind(s->scratch, mark);
    k->lps += found.rows > 0;
    k->lp_rows = found.rows > k->lp_rows ? found.rows : k->lp_rows;
    k->lp_columns = found.columns > k->lp_columns ? found.columns : k->lp_columns;
    return found;
}

void hb_whole_relax_node(struct hb_search *s, struct hb_search_node *node)
{
    struct hb_spec spec;
    if (node->relaxed || hb_search_by_memory(s) || hb_stop_now(s->ask->stop))
        return;
    hb_nodes_floor_spec(s, node, &spec);
    node->relax_ns = relax(s, &spec, NULL, hb_search_node_peak_bytes(s, node)).bound_ns;
    node->relaxed = true;
}

double hb_whole_cell_value(struct hb_search *s, struct hb_search_node *node, uint32_t index,
                           double best)
{
    const struct hb_cell *cell = &s->plan->space.cells[index];
    const struct hb_node_floor *f = hb_nodes_find_floor(s, node, cell);
    bool again = cell->form == HB_FORM_NESTED && s->ask->spec->remat.outer;
    struct hb_spec spec;
    if (f->refused)
        return INFINITY;
    if (f->floor.live_bytes > hb_search_peak_bytes(s, index)) {
        hb_search_settle(s, index, HB_FATE_MEMORY, INFINITY);
        return INFINITY;
    }
    int64_t ns = hb_add_sat(f->floor.bound_ns, again ? node->floor.forward_ns : 0);
    double value = hb_search_value(s, index, ns, f->floor.live_bytes);
    if (value >= best || hb_search_by_memory(s) || cell->form != HB_FORM_SCAN)
        return value;
    hb_search_cell_spec(s, index, &spec);
    int64_t relaxed = relax(s, &spec, &f->floor, hb_search_peak_bytes(s, index)).bound_ns;
    s->plan->relax_ns[index] = hb_larger(s->plan->relax_ns[index], relaxed);
    if (relaxed == INT64_MAX)
        return INFINITY;
    return fmax(value, hb_search_value(s, index, relaxed, 0));
}

/* What is known of a cell by its node alone. */
static double node_value(const struct hb_search *s, const struct hb_search_node *node,
                         uint32_t index)
{
    const struct hb_cell *cell = &s->plan->space.cells[index];
    double value = node->floor_value;
    if (hb_search_by_memory(s))
        return value;
    if (cell->form == HB_FORM_NESTED && s->ask->spec->remat.outer)
        return fmax(value, hb_search_value(s, index,
                                           hb_add_sat(node->floor_ns, node->floor.forward_ns), 0));
    if (cell->form != HB_FORM_SCAN)
        return value;
    return node->relax_ns == INT64_MAX ? INFINITY
                                       : fmax(value, hb_search_value(s, index, node->relax_ns, 0));
}

double hb_whole_bound(struct hb_search *s, double best)
{
    double least = best;
    for (uint32_t i = 0; i < s->node_count; i++) {
        struct hb_search_node *node = &s->nodes[i];
        if (hb_nodes_is_out(s, node) || node->floor_value >= least)
            continue;
        hb_nodes_time(s, node);
        if (hb_nodes_is_out(s, node) || node->floor_value >= least)
            continue;
        hb_whole_relax_node(s, node);
        for (uint32_t k = node->first; k < node->end; k++)
            if (node_value(s, node, k) < least)
                least = hb_stop_now(s->ask->stop)
                            ? node_value(s, node, k)
                            : fmin(least, hb_whole_cell_value(s, node, k, least));
    }
    return least;
}
