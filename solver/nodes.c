/* Nodes: see nodes.h. */
#include "solver/nodes.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "solver/bound.h"
#include "solver/cells.h"
#include "solver/whole.h"

bool hb_nodes_same(const struct hb_cell *a, const struct hb_cell *b)
{
    return memcmp(a->mesh, b->mesh, sizeof a->mesh) == 0 && a->batch_global == b->batch_global &&
           a->accumulate == b->accumulate && a->microbatches == b->microbatches;
}

void hb_nodes_find(struct hb_search *s)
{
    const struct hb_plan_space *space = &s->plan->space;
    for (uint32_t i = 0; i < space->cell_count; i++) {
        if (i == 0 || !hb_nodes_same(&space->cells[i], &space->cells[i - 1])) {
            s->nodes = hb_grow(s->arena, s->nodes, s->node_count, &s->node_cap, sizeof *s->nodes);
            s->nodes[s->node_count++] = (struct hb_search_node){.first = i, .end = i};
        }
        s->nodes[s->node_count - 1].end = i + 1;
    }
}

const struct hb_search_node *hb_nodes_around(const struct hb_search_node *nodes, uint32_t count,
                                             uint32_t cell)
{
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (nodes[middle].first <= cell)
            low = middle;
        else
            high = middle;
    }
    return &nodes[low];
}

void hb_nodes_floor_spec(const struct hb_search *s, const struct hb_search_node *node,
                         struct hb_spec *out)
{
    const struct hb_plan_space *space = &s->plan->space;
    struct hb_cell least = space->cells[node->first];
    least.loss_chunks = 1;
    least.form = least.form == HB_FORM_NESTED ? HB_FORM_SCAN : least.form;
    for (uint32_t i = node->first; i < node->end; i++)
        if (space->cells[i].optimizer_offload == HB_PLACE_PINNED_HOST)
            least.optimizer_offload = HB_PLACE_PINNED_HOST;
    hb_space_cell_spec(s->plan->space.base, &least, out);
}

static void settle_node(struct hb_search *s, const struct hb_search_node *node,
                        enum hb_cell_fate fate, double value)
{
    for (uint32_t i = node->first; i < node->end; i++)
        hb_search_settle(s, i, fate, value);
}

/* By its floor; false: it is out of the search. */
static bool settle_floor(struct hb_search *s, const struct hb_search_node *node)
{
    if (node->refused)
        settle_node(s, node, HB_FATE_REFUSED, INFINITY);
    else if (node->floor.live_bytes > hb_search_node_peak_bytes(s, node))
        settle_node(s, node, HB_FATE_MEMORY, (double)node->floor.live_bytes);
    else if (node->value >= INFINITY) /* with a larger budget already */
        settle_node(s, node, HB_FATE_LAYER_BOUND, node->value);
    else {
        settle_node(s, node, HB_FATE_NODE_BOUND, node->value);
        return true;
    }
    return false;
}

/* Into the queue, or out of the search where its floor exceeds the budget. */
static void queue_node(struct hb_search *s, uint32_t index)
{
    if (settle_floor(s, &s->nodes[index]))
        hb_queue_put(&s->queue, s->nodes[index].value, HB_ENTRY_NODE, index);
}

static void take_floor(struct hb_search *s, struct hb_search_node *node,
                       const struct hb_floor *floor)
{
    node->floor = *floor;
    node->floor_value = hb_search_value(s, node->first, floor->bound_ns, floor->live_bytes);
    node->value = fmax(node->value, node->floor_value);
}

/* The last before it of its mesh whose own floor is known; null: there is none. */
static const struct hb_search_node *find_alike(const struct hb_search *s,
                                               const struct hb_search_node *node)
{
    const struct hb_cell *cells = s->plan->space.cells;
    for (const struct hb_search_node *other = node; other-- > s->nodes;) {
        if (memcmp(cells[node->first].mesh, cells[other->first].mesh, sizeof cells->mesh) != 0)
            return NULL;
        if (other->timed && !other->alike && !other->refused)
            return other;
    }
    return NULL;
}

/* Its first floor from another node, if that gives one: most nodes of a mesh are above the plan for
 * what the first of them has to compute. */
static bool take_alike(struct hb_search *s, struct hb_search_node *node)
{
    const struct hb_search_node *first = hb_search_by_memory(s) ? NULL : find_alike(s, node);
    struct hb_spec spec, first_spec;
    if (!first)
        return false;
    hb_nodes_floor_spec(s, node, &spec);
    hb_nodes_floor_spec(s, first, &first_spec);
    struct hb_floor floor = {.bound_ns = hb_bound_alike(&first->floor, &first_spec, &spec),
                             .live_bytes = first->floor.state_bytes,
                             .state_bytes = first->floor.state_bytes,
                             .fixed_bytes = first->floor.state_bytes};
    if (floor.bound_ns == 0)
        return false;
    node->measured = node->timed = node->alike = true;
    node->value = 0;
    take_floor(s, node, &floor);
    return true;
}

/* Most nodes are above the plan by their backward pass alone. */
static void measure_node(struct hb_search *s, struct hb_search_node *node)
{
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    int64_t budget = hb_search_node_peak_bytes(s, node);
    struct hb_spec spec;
    struct hb_floor floor;
    hb_nodes_floor_spec(s, node, &spec);
    node->refused = !hb_bound_backward(s->scratch, &spec, s->ask->device, budget, &floor);
    hb_arena_rewind(s->scratch, mark);
    s->plan->counts.node_floors++;
    node->measured = true;
    node->alike = false;
    node->timed = floor.live_bytes <= budget;
    node->value = 0;
    take_floor(s, node, &floor);
}

bool hb_nodes_is_out(const struct hb_search *s, const struct hb_search_node *node)
{
    return node->refused || node->floor.live_bytes > hb_search_node_peak_bytes(s, node);
}

void hb_nodes_time(struct hb_search *s, struct hb_search_node *node)
{
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_spec spec;
    struct hb_floor floor;
    bool memory = hb_search_by_memory(s);
    int64_t limit = hb_search_node_peak_bytes(s, node);
    struct hb_bound_limits limits = {memory ? 0 : limit, memory ? 0 : limit};
    if (node->forward || hb_nodes_is_out(s, node))
        return;
    if (node->alike) {
        measure_node(s, node);
        (void)settle_floor(s, node);
        return;
    }
    hb_nodes_floor_spec(s, node, &spec);
    node->refused = !hb_bound_node(s->scratch, &spec, s->ask->device, limits, &floor);
    hb_arena_rewind(s->scratch, mark);
    node->forward = true;
    if (node->refused) {
        node->value = node->floor_value = INFINITY;
        settle_node(s, node, HB_FATE_REFUSED, INFINITY);
        return;
    }
    if (floor.live_bytes > limit) {
        node->floor.live_bytes = floor.live_bytes;
        node->timed = node->forward = false;
        settle_node(s, node, HB_FATE_MEMORY, (double)floor.live_bytes);
        return;
    }
    if (memory)
        floor.bound_ns = node->floor.bound_ns, floor.links_ns = node->floor.links_ns;
    take_floor(s, node, &floor);
    settle_node(s, node, HB_FATE_NODE_BOUND, node->value);
}

/* What nodes of one mesh, which stand together, keep from step to step is the same. */
static bool is_too_large(const struct hb_search *s, uint32_t index)
{
    const struct hb_cell *cells = s->plan->space.cells;
    const struct hb_search_node *own = &s->nodes[index], *other = own - 1;
    return index > 0 && !other->refused &&
           other->floor.state_bytes > hb_search_node_peak_bytes(s, own) &&
           memcmp(cells[own->first].mesh, cells[other->first].mesh, sizeof cells->mesh) == 0;
}

void hb_nodes_take_floors(struct hb_search *s, const struct hb_plan *other)
{
    bool same = s->node_count == other->node_count;
    for (uint32_t i = 0; i < s->node_count && same; i++)
        same = s->nodes[i].first == other->nodes[i].first &&
               s->nodes[i].end == other->nodes[i].end &&
               hb_nodes_same(&s->plan->space.cells[s->nodes[i].first],
                             &other->space.cells[other->nodes[i].first]);
    for (uint32_t i = 0; i < s->node_count && same; i++) {
        const struct hb_search_node *from = &other->nodes[i];
        struct hb_search_node *node = &s->nodes[i];
        if (!hb_search_by_memory(s)) { /* there they are looked at more closely */
            node->floors = from->floors;
            node->floor_count = from->floor_count;
            node->floor_cap = from->floor_cap;
        }
        node->measured = from->measured;
        node->timed = from->timed;
        node->alike = from->alike;
        node->forward = from->forward && !hb_search_by_memory(s);
        node->refused = from->refused;
        node->floor = from->floor;
        node->relaxed = from->relaxed;
        node->relax_ns = from->relax_ns;
        node->value = hb_search_value(s, node->first, node->floor.bound_ns, node->floor.live_bytes);
        node->floor_value = node->value;
    }
}

/* Of the nodes of its mesh behind it the next that has the same but for more accumulation; null:
 * there is none. */
static struct hb_search_node *find_finer(struct hb_search *s, const struct hb_search_node *node)
{
    const struct hb_cell *cells = s->plan->space.cells, *own = &cells[node->first];
    for (uint32_t i = (uint32_t)(node - s->nodes); i < s->node_count; i++) {
        const struct hb_cell *other = &cells[s->nodes[i].first];
        if (memcmp(own->mesh, other->mesh, sizeof own->mesh) != 0)
            return NULL;
        if (own->batch_global == other->batch_global && own->microbatches == other->microbatches &&
            own->accumulate < other->accumulate)
            return &s->nodes[i];
    }
    return NULL;
}

static void know_node(struct hb_search *s, uint32_t index);

/* Where what is spread over the experts in a smaller microbatch is too much, it is so in its own:
 * those with most accumulation are looked at first. */
static bool is_too_spread(struct hb_search *s, struct hb_search_node *node)
{
    struct hb_search_node *finer = s->spreads ? find_finer(s, node) : NULL;
    struct hb_spec spec, finer_spec;
    if (!finer)
        return false;
    if (!finer->measured && finer->floor.live_bytes == 0)
        know_node(s, (uint32_t)(finer - s->nodes));
    hb_nodes_floor_spec(s, node, &spec);
    hb_nodes_floor_spec(s, finer, &finer_spec);
    int64_t bytes = hb_bound_spread(&finer->floor, &finer_spec, &spec);
    if (finer->refused || bytes <= hb_search_node_peak_bytes(s, node))
        return false;
    node->floor.live_bytes = bytes;
    node->floor.state_bytes = finer->floor.state_bytes;
    node->floor.spread_bytes = finer->floor.spread_bytes;
    return true;
}

static void know_node(struct hb_search *s, uint32_t index)
{
    struct hb_search_node *node = &s->nodes[index];
    if (is_too_large(s, index))
        node->floor.live_bytes = node->floor.state_bytes = s->nodes[index - 1].floor.state_bytes;
    else if (!is_too_spread(s, node))
        measure_node(s, node);
}

void hb_nodes_put(struct hb_search *s, uint32_t index)
{
    struct hb_search_node *node = &s->nodes[index];
    bool memory = hb_search_by_memory(s) && node->floor.live_bytes > 0; /* times are not wanted */
    if (node->timed || memory || node->floor.live_bytes > hb_search_node_peak_bytes(s, node)) {
        queue_node(s, index);
        return;
    }
    if (!take_alike(s, node))
        know_node(s, index);
    queue_node(s, index);
}

void hb_nodes_restart(struct hb_search *s)
{
    s->queue.count = 0;
    s->open_count = s->choice_count = 0;
    s->done = false;
    for (uint32_t i = 0; i < s->node_count; i++) {
        struct hb_search_node *node = &s->nodes[i];
        if (!s->ask->near && !node->timed &&
            node->floor.live_bytes <= hb_search_node_peak_bytes(s, node))
            measure_node(s, node);
        node->stage = node->stage < HB_STAGE_FITS ? node->stage : HB_STAGE_FITS;
        node->layers_ns = 0;
        node->nested_count = 0;
        memset(node->turns_ns, 0, sizeof node->turns_ns);
        node->value = s->ask->above ? node->value : node->floor_value;
        for (uint32_t k = node->first; k < node->end; k++)
            s->plan->rows[k].runs = 0;
        queue_node(s, i);
    }
}

/* --- floors of cells --- */

static enum hb_form scan_form(const struct hb_cell *cell)
{
    return cell->form == HB_FORM_NESTED ? HB_FORM_SCAN : cell->form;
}

/* Of the floor of a cell's scan; null: it was not asked for. */
static const struct hb_node_floor *known_floor(const struct hb_search_node *node,
                                               const struct hb_cell *scan)
{
    for (uint32_t i = 0; i < node->floor_count; i++) {
        const struct hb_node_floor *f = &node->floors[i];
        if (f->loss_chunks == scan->loss_chunks && f->form == scan->form &&
            f->place == scan->optimizer_offload)
            return f;
    }
    return NULL;
}

const struct hb_node_floor *hb_nodes_find_floor(struct hb_search *s, struct hb_search_node *node,
                                                const struct hb_cell *cell)
{
    struct hb_cell scan = *cell;
    scan.form = scan_form(cell);
    scan.outer = 0;
    const struct hb_node_floor *known = known_floor(node, &scan);
    if (known)
        return known;
    node->floors =
        hb_grow(s->arena, node->floors, node->floor_count, &node->floor_cap, sizeof *node->floors);
    struct hb_node_floor *f = &node->floors[node->floor_count++];
    *f = (struct hb_node_floor){scan.loss_chunks, scan.form, scan.optimizer_offload, {0}, false};
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_spec spec;
    hb_space_cell_spec(s->plan->space.base, &scan, &spec);
    int64_t known_bytes = hb_search_by_memory(s) ? 0 : hb_search_node_peak_bytes(s, node);
    f->refused = !hb_bound_cell(s->scratch, &spec, s->ask->device, known_bytes, &f->floor);
    f->floor.live_bytes = hb_larger(f->floor.live_bytes, node->floor.live_bytes);
    hb_arena_rewind(s->scratch, mark);
    s->plan->counts.cell_floors++;
    return f;
}

static struct hb_cell plain_cell(const struct hb_search *s, const struct hb_search_node *node)
{
    struct hb_cell cell = s->plan->space.cells[node->first];
    cell.form = cell.form == HB_FORM_NESTED ? HB_FORM_SCAN : cell.form;
    cell.outer = 0;
    cell.loss_chunks = 1;
    cell.optimizer_offload = HB_PLACE_NONE;
    return cell;
}

/* What is known of the time of a cell's layers; INT64_MAX: none could fit. What is found of scans
 * says nothing of unrolled layers. */
static int64_t layers_of(const struct hb_search *s, const struct hb_search_node *node,
                         const struct hb_cell *cell)
{
    int64_t turns_ns = node->turns_ns[cell->optimizer_offload][cell->loss_chunks > 1],
            most = node->floor_ns;
    if (cell->form == HB_FORM_LOOP)
        return 0;
    if (cell->form == HB_FORM_NESTED)
        return most + (s->ask->spec->remat.outer ? node->floor.forward_ns : 0);
    most = node->layers_ns > most ? node->layers_ns : most;
    return turns_ns > most ? turns_ns : most;
}

/* Of the whole step, by what is known of the node's layers. */
static int64_t least_of(const struct hb_search *s, const struct hb_search_node *node,
                        const struct hb_cell *cell)
{
    int64_t ns = layers_of(s, node, cell);
    return cell->form == HB_FORM_SCAN && node->relax_ns > ns ? node->relax_ns : ns;
}

/* Puts the node back with what is known of its cells now. */
static void raise_node(struct hb_search *s, uint32_t index, enum hb_cell_fate fate)
{
    struct hb_search_node *node = &s->nodes[index];
    int64_t least = INT64_MAX;
    for (uint32_t i = node->first; i < node->end; i++) {
        int64_t ns = least_of(s, node, &s->plan->space.cells[i]);
        least = ns < least ? ns : least;
    }
    if (least == INT64_MAX) {
        node->value = INFINITY;
        settle_node(s, node, HB_FATE_LAYER_BOUND, INFINITY);
        return;
    }
    double value = hb_search_by_memory(s) ? node->value : hb_search_value(s, node->first, least, 0);
    if (value > node->value) {
        node->value = value;
        settle_node(s, node, fate, value);
    }
    hb_queue_put(&s->queue, node->value, HB_ENTRY_NODE, index);
}

/* The layers' path in the plainest cell, without the rest of its floor unless that is known. */
static void floor_node(struct hb_search *s, uint32_t index)
{
    struct hb_search_node *node = &s->nodes[index];
    struct hb_cell cell = plain_cell(s, node);
    const struct hb_node_floor *known = known_floor(node, &cell);
    struct hb_floor path = {0};
    if (known) {
        path = known->floor;
    } else {
        struct hb_arena_mark mark = hb_arena_mark(s->scratch);
        struct hb_spec spec;
        hb_space_cell_spec(s->plan->space.base, &cell, &spec);
        if (!hb_bound_path(s->scratch, &spec, s->ask->device, &path))
            path = (struct hb_floor){0};
        hb_arena_rewind(s->scratch, mark);
    }
    node->floor_ns = hb_larger(node->floor_ns, path.layers_ns);
    node->floor.forward_ns = hb_larger(node->floor.forward_ns, path.again_ns);
    raise_node(s, index, HB_FATE_NODE_BOUND);
    node->floor_value = node->value;
}

bool hb_nodes_has_layers(const struct hb_search *s)
{
    return !hb_search_is_asked(s) || !s->spreads;
}

/* Steps that XLA:GPU may make otherwise for want of memory: the less of the two that prices hold
 * for, so that a first one no larger than what is known ends it. Dense ones at once. */
int64_t hb_nodes_layers_ns(const struct hb_search *s, const struct hb_layers_ask *ask,
                           int64_t known_ns)
{
    struct hb_spec spec = *ask->cell_spec;
    struct hb_layers_ask own = *ask;
    if (!hb_search_is_asked(s))
        return hb_bound_layers(s->scratch, ask);
    own.any_share = hb_bound_is_dense(&spec);
    if (own.any_share)
        return hb_bound_layers(s->scratch, &own);
    own.cell_spec = &spec;
    spec.share = HB_SHARE_EXCEEDED;
    int64_t beyond_ns = hb_bound_layers(s->scratch, &own);
    if (beyond_ns <= known_ns)
        return 0;
    spec.share = HB_SHARE_KEPT;
    return hb_smaller(beyond_ns, hb_bound_layers(s->scratch, &own));
}

/* With the bytes that are fixed in the node's leanest cells. */
static void fit_node(struct hb_search *s, uint32_t index)
{
    struct hb_search_node *node = &s->nodes[index];
    struct hb_cell cell = plain_cell(s, node);
    if (hb_search_by_memory(s) || cell.mesh[HB_AX_PIPELINE] > 1) {
        raise_node(s, index, HB_FATE_NODE_BOUND);
        return;
    }
    hb_whole_relax_node(s, node);
    if (node->relax_ns == INT64_MAX || !hb_nodes_has_layers(s) ||
        hb_search_value(s, node->first, node->relax_ns, 0) > s->incumbent) {
        raise_node(s, index, HB_FATE_LAYER_BOUND);
        return;
    }
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_spec spec;
    hb_space_cell_spec(s->plan->space.base, &cell, &spec);
    struct hb_layers_ask ask =
        hb_search_layers_ask(s, node->first, &spec, hb_search_node_peak_bytes(s, node));
    ask.fixed_bytes = node->floor.fixed_bytes;
    node->layers_ns = hb_nodes_layers_ns(s, &ask, node->floor_ns);
    hb_arena_rewind(s->scratch, mark);
    s->plan->counts.layer_bounds++;
    hb_search_spend(s, HB_EFFORT_LAYERS);
    raise_node(s, index, HB_FATE_LAYER_BOUND);
}

double hb_nodes_cell_bound(const struct hb_search *s, const struct hb_open_cell *o)
{
    const struct hb_cell *cell = &s->plan->space.cells[o->cell];
    int64_t ns = layers_of(s, &s->nodes[o->node], cell);
    if (ns == INT64_MAX)
        return INFINITY;
    return hb_search_by_memory(s) ? 0 : hb_search_value(s, o->cell, hb_add_sat(ns, o->ends_ns), 0);
}

/* Whether the search with a larger budget excluded it; then it stays out. (An integer program
 * without solution has none below what was wanted then; the value of a cell with runs is that of
 * what is left of it, and what was run may be the best here.) */
static bool is_out_above(const struct hb_search *s, uint32_t cell)
{
    if (!s->ask->above)
        return false;
    const struct hb_cell_row *row = &s->ask->above->rows[cell];
    return row->fate == HB_FATE_MEMORY || row->fate == HB_FATE_REFUSED ||
           (row->fate != HB_FATE_ILP_EMPTY && row->runs == 0 && row->value > s->incumbent);
}

static void open_node(struct hb_search *s, uint32_t index)
{
    const struct hb_search_node *node = &s->nodes[index];
    for (uint32_t i = node->first; i < node->end; i++) {
        struct hb_open_cell o = {.cell = i, .node = index, .bound = s->plan->rows[i].value};
        bool scan = s->plan->space.cells[i].form == HB_FORM_SCAN;
        int64_t ns = least_of(s, node, &s->plan->space.cells[i]);
        double value =
            fmax(hb_nodes_cell_bound(s, &o),
                 ns < INT64_MAX && !hb_search_by_memory(s) ? hb_search_value(s, i, ns, 0) : 0);
        if (is_out_above(s, i)) {
            s->plan->rows[i] = s->ask->above->rows[i];
            continue;
        }
        if (value > o.bound) {
            o.bound = value;
            hb_search_settle(s, i, scan ? HB_FATE_LAYER_BOUND : HB_FATE_NODE_BOUND, value);
        }
        if (value < INFINITY)
            hb_cells_put(s, &o);
    }
}

bool hb_nodes_is_next(const struct hb_search *s, uint32_t index)
{
    const struct hb_search_node *node = &s->nodes[index];
    return !node->alike && !(s->queue.count && node->value > s->queue.heap[0].value);
}

void hb_nodes_take(struct hb_search *s, uint32_t index)
{
    struct hb_search_node *node = &s->nodes[index];
    if (!node->alike && !hb_nodes_is_next(s, index)) {
        hb_queue_put(&s->queue, node->value, HB_ENTRY_NODE, index);
        return;
    }
    switch (node->stage) {
    case HB_STAGE_TIMES:
        node->stage = node->alike ? HB_STAGE_TIMES : HB_STAGE_FLOOR;
        hb_nodes_time(s, node);
        if (!hb_nodes_is_out(s, node))
            hb_queue_put(&s->queue, node->value, HB_ENTRY_NODE, index);
        return;
    case HB_STAGE_FLOOR:
        node->stage = HB_STAGE_FITS;
        floor_node(s, index);
        return;
    case HB_STAGE_FITS:
        node->stage = HB_STAGE_OPEN;
        fit_node(s, index);
        return;
    case HB_STAGE_OPEN:
        open_node(s, index);
        return;
    }
}

/* --- cells of an open node --- */

void hb_nodes_floor_cell(struct hb_search *s, uint32_t index)
{
    struct hb_open_cell *o = &s->open[index];
    const struct hb_search_node *node = &s->nodes[o->node];
    const struct hb_cell *cell = &s->plan->space.cells[o->cell];
    const struct hb_node_floor *f = hb_nodes_find_floor(s, &s->nodes[o->node], cell);
    const struct hb_floor *floor = &f->floor;
    bool nested = cell->form == HB_FORM_NESTED;
    int64_t again = nested && s->ask->spec->remat.outer ? node->floor.forward_ns : 0;
    if (f->refused) {
        hb_search_settle(s, o->cell, HB_FATE_REFUSED, INFINITY);
        return;
    }
    if (floor->live_bytes > hb_search_peak_bytes(s, o->cell)) {
        hb_search_settle(s, o->cell, HB_FATE_MEMORY, (double)floor->live_bytes);
        return;
    }
    double value = hb_search_value(s, o->cell, floor->bound_ns + again, floor->live_bytes);
    if (value > o->bound) {
        o->bound = value;
        hb_search_settle(s, o->cell, HB_FATE_CELL_BOUND, value);
    }
    /* The sum of a stream's tail (step_bound.h) has what the path has after the last loop, and
     * that is the same for every policy. */
    if (cell->form == HB_FORM_SCAN)
        o->ends_ns = floor->ends_ns + floor->tail_ns;
    hb_queue_put(&s->queue, o->bound, HB_ENTRY_CELL, index);
}
