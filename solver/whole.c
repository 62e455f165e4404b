/* Bounds over all policies: see whole.h. */
#include "solver/whole.h"

#include <math.h>

#include "base/arena.h"
#include "base/size.h"
#include "solver/nodes.h"
#include "solver/proof.h"
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
                           double most)
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
    if (value >= most || hb_search_by_memory(s) || cell->form != HB_FORM_SCAN)
        return value;
    if (!s->relaxed[index]) {
        hb_search_cell_spec(s, index, &spec);
        s->plan->relax_ns[index] =
            relax(s, &spec, &f->floor, hb_search_peak_bytes(s, index)).bound_ns;
        s->relaxed[index] = true;
    }
    if (s->plan->relax_ns[index] == INT64_MAX)
        return INFINITY;
    return fmax(value, hb_search_value(s, index, s->plan->relax_ns[index], 0));
}

double hb_whole_node_value(const struct hb_search *s, const struct hb_search_node *node,
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

/* What is in the queue by what is known of it so far: a node, a cell by its node alone, with its
 * own floor, or with all. */
enum { OPEN_NODE, OPEN_CELL, FLOORED_CELL, CLOSED_CELL };

/* Asks more of a node and puts it back, or its cells. */
static void open_node(struct hb_search *s, struct hb_queue *q, uint32_t index, double best)
{
    struct hb_search_node *node = &s->nodes[index];
    if (hb_nodes_is_out(s, node))
        return;
    if (!node->forward) {
        hb_nodes_time(s, node);
        if (!hb_nodes_is_out(s, node))
            hb_queue_put(q, node->floor_value, OPEN_NODE, index);
        return;
    }
    hb_whole_relax_node(s, node);
    for (uint32_t k = node->first; k < node->end; k++) {
        double value = hb_whole_node_value(s, node, k);
        if (value < best)
            hb_queue_put(q, value, OPEN_CELL, k);
    }
}

/* One more thing that is known of it. */
static void close_cell(struct hb_search *s, struct hb_queue *q, const struct hb_queue_entry *e,
                       double best)
{
    uint32_t node = (uint32_t)(hb_proof_node(s->plan, e->index) - s->plan->nodes);
    double most = e->kind == OPEN_CELL ? 0 : best;
    double value = hb_whole_cell_value(s, &s->nodes[node], e->index, most);
    hb_queue_put(q, fmax(e->value, value), e->kind + 1, e->index);
}

/* Who may be least comes first, so that of most nothing more is asked. */
double hb_whole_bound(struct hb_search *s, double best)
{
    struct hb_queue q = {.arena = s->arena};
    struct hb_queue_entry e;
    for (uint32_t i = 0; i < s->node_count; i++)
        if (!hb_nodes_is_out(s, &s->nodes[i]) && s->nodes[i].floor_value < best)
            hb_queue_put(&q, s->nodes[i].floor_value, OPEN_NODE, i);
    while (hb_queue_take(&q, &e) && e.value < best) {
        if (e.kind == OPEN_NODE) {
            open_node(s, &q, e.index, best);
            continue;
        }
        if (e.kind == CLOSED_CELL || hb_stop_now(s->ask->stop))
            return e.value;
        close_cell(s, &q, &e, best);
    }
    return best;
}
