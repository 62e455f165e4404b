/* The first dive: see dive.h. */
#include "solver/dive.h"

#include <math.h>

#include "base/arena.h"
#include "solver/carry.h"
#include "solver/cells.h"
#include "solver/menu.h"
#include "solver/nodes.h"
#include "solver/polish.h"
#include "solver/whole.h"
#include "base/diag.h"
#include "base/size.h"
#include "sim/graph/link.h"

/* How many nodes are looked at, and of those that may fit how many are dived into once something
 * fits: scans, and pipelines. */
enum {
    MOST_LOOKS = 256,
    LEAST_FIT = 8,
    MOST_ESTIMATES = 64,
    MOST_SCANS = 12,
    MOST_PIPELINES = 2,
    MOST_NEAR = MOST_SCANS + MOST_PIPELINES,
    MOST_CELLS = 3,
    MOST_OF_PLACE = 2 /* of these: bounds know little of what waits for states from the host */
};
/* What is kept of it, and how much of that is looked at with the menus. */
enum { MOST_DIVES = 16, MOST_AGAIN = 6 };
/* Estimates are no bounds: nodes beyond this much of the best are left out. */
static const double far = 1.3;

static bool is_late(const struct hb_search *s)
{
    return hb_stop_now(s->ask->stop);
}

/* The best come first. */
static void keep(struct hb_search *s, const struct hb_choice *c)
{
    uint32_t at = s->dive_count < MOST_DIVES ? s->dive_count++ : MOST_DIVES - 1;
    for (; at > 0 && hb_search_value_of(s, c) < hb_search_value_of(s, &s->dives[at - 1]); at--)
        s->dives[at] = s->dives[at - 1];
    s->dives[at] = *c;
}

/* --- lean looks --- */

/* A scan of a node in so many chunks of the loss, its states where they take least. */
static struct hb_cell lean_cell(const struct hb_search *s, const struct hb_search_node *node,
                                int64_t chunks)
{
    struct hb_cell lean = s->plan->space.cells[node->first];
    lean.form = lean.form == HB_FORM_NESTED ? HB_FORM_SCAN : lean.form;
    lean.outer = 0;
    lean.loss_chunks = chunks;
    for (uint32_t i = node->first; i < node->end; i++)
        if (s->plan->space.cells[i].optimizer_offload == HB_PLACE_PINNED_HOST)
            lean.optimizer_offload = HB_PLACE_PINNED_HOST;
    return lean;
}

/* On the lowest rung: memory says whether it may fit, time how long compute waits. Where it does
 * not, whether that is so whatever the chunks. */
static bool look_at_cell(struct hb_search *s, const struct hb_cell *cell, int64_t peak_bytes,
                         int64_t *waits_ns, bool *any_chunks)
{
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_spec spec, lean;
    struct hb_diag diag;
    struct hb_program p;
    struct hb_memory m;
    struct hb_run runs[HB_PARTS_MAX];
    uint32_t blocks = (uint32_t)s->ask->spec->model.block_count;
    hb_space_cell_spec(s->ask->spec, cell, &spec);
    for (uint32_t i = 0; i < blocks; i++)
        runs[i] = (struct hb_run){i, 0, hb_block_steps(&spec.model.blocks[i])};
    hb_space_parts_spec(s->scratch, &spec, s->dive_menus, runs, blocks, &lean);
    hb_diag_init(&diag, s->scratch);
    bool fits = hb_link_lower(s->scratch, &diag, &lean, &p);
    if (fits) {
        hb_run_memory_live(s->scratch, &p, &m);
        fits = m.peak_bytes <= peak_bytes;
        *any_chunks = hb_search_fills_layers(&p, &m);
    }
    if (fits) {
        struct hb_timing t;
        hb_run_timing(s->scratch, &p, s->ask->device, &t);
        *waits_ns = t.step_ns - t.busy_ns[HB_STREAM_COMPUTE];
    }
    hb_arena_rewind(s->scratch, mark);
    return fits;
}

static bool is_chunks_known(const struct hb_search *s, const struct hb_search_node *node,
                            uint32_t cell)
{
    const struct hb_cell *cells = s->plan->space.cells;
    bool known = false;
    for (uint32_t i = cell + 1; i < node->end; i++)
        known = known || cells[i].loss_chunks == cells[cell].loss_chunks;
    return known;
}

/* More chunks are mostly leaner, but few tokens a chunk may end the rings of a head, which is then
 * gathered for each (8B over 16 v5e, 8192 tokens: 12.2 GiB in 8 chunks, 14.0 in 16). */
static bool look(struct hb_search *s, struct hb_search_node *node)
{
    bool fits = false, full = false;
    int64_t peak_bytes = hb_search_node_peak_bytes(s, node);
    for (uint32_t i = node->end; i-- > node->first && !fits && !full;) {
        struct hb_cell cell = lean_cell(s, node, s->plan->space.cells[i].loss_chunks);
        fits = !is_chunks_known(s, node, i) &&
               look_at_cell(s, &cell, peak_bytes, &node->waits_ns, &full);
    }
    return fits;
}

/* --- a node --- */

/* In the queue by its floor, or by its linear program, too. */
enum { FLOORED_CELL, RELAXED_CELL };

/* By what it takes at least. */
static void put_cell(struct hb_search *s, struct hb_search_node *node, uint32_t cell, int kind,
                     struct hb_queue *out)
{
    double most = kind == RELAXED_CELL ? s->incumbent : 0;
    hb_queue_put(out, hb_whole_cell_value(s, node, cell, most), kind, cell);
}

static void list_cells(struct hb_search *s, struct hb_search_node *node, struct hb_queue *out)
{
    for (uint32_t i = node->first; i < node->end && !is_late(s); i++)
        if (s->plan->space.cells[i].form != HB_FORM_NESTED &&
            hb_whole_node_value(s, node, i) < s->incumbent)
            put_cell(s, node, i, FLOORED_CELL, out);
}

/* By place: what a dive cost that found nothing though all that it tried had its peak in the
 * layers' loops; 0: none did. And how many had nothing to try, one after another: nothing within
 * the limits is nearly as good as the best so far. */
struct vain {
    uint64_t effort[HB_PLACE_COUNT];
    uint32_t empty[HB_PLACE_COUNT];
};

/* More chunks leave more room, and take longer: what is not in two numbers of them is in none (60
 * searches that dived into all others, too, found the same). */
enum { MOST_EMPTY = 2 };

/* What layers hold does not follow from the chunks. What is left out counts as if it was done, so
 * that the search is as large as it was. */
static bool dive_cell(struct hb_search *s, struct vain *vain, uint32_t cell, struct hb_choice *out)
{
    const struct hb_cell *c = &s->plan->space.cells[cell];
    uint64_t *effort = &vain->effort[c->optimizer_offload], before = s->effort;
    uint32_t *empty = &vain->empty[c->optimizer_offload], runs = s->plan->counts.runs;
    bool any_fits = s->incumbent < INFINITY;
    if (*effort > 0 && c->form == HB_FORM_SCAN) {
        hb_search_spend(s, *effort);
        return false;
    }
    bool found = hb_cells_dive(s, cell, out);
    if (!found && s->full == HB_FULL_LAYERS)
        *effort = s->effort - before;
    *empty = any_fits && s->plan->counts.runs == runs ? *empty + 1 : 0;
    return found;
}

static void dive_node(struct hb_search *s, struct hb_search_node *node)
{
    struct hb_queue cells = {.arena = s->arena};
    struct hb_queue_entry e;
    uint32_t found[HB_PLACE_COUNT] = {0}, all = 0;
    struct vain vain = {{0}, {0}};
    list_cells(s, node, &cells);
    while (all < MOST_CELLS && !is_late(s) && hb_queue_take(&cells, &e)) {
        struct hb_choice c;
        enum hb_place place = s->plan->space.cells[e.index].optimizer_offload;
        if (e.value >= s->incumbent)
            return;
        if (found[place] == MOST_OF_PLACE || vain.empty[place] == MOST_EMPTY)
            continue;
        if (e.kind == FLOORED_CELL) {
            put_cell(s, node, e.index, RELAXED_CELL, &cells);
            continue;
        }
        if (!dive_cell(s, &vain, e.index, &c))
            continue;
        keep(s, &c);
        found[place]++;
        all++;
    }
}

/* --- all of them --- */

static void list_node(struct hb_search *s, uint32_t index, struct hb_queue *out)
{
    const struct hb_search_node *node = &s->nodes[index];
    int64_t links_ns = node->floor.links_ns / 4;
    hb_queue_put(out, node->value + hb_search_value(s, node->first, links_ns, 0), 0, index);
}

/* Nodes that were not looked at, and those that may fit. */
struct looks {
    struct hb_queue nodes, fit;
    double near[MOST_NEAR + 1]; /* the least that any of these may come to, in order */
    uint32_t near_count, count, fits;
    bool all; /* not only what may come before them */
};

static void put_fit(struct looks *l, double value, uint32_t index)
{
    uint32_t at = l->near_count;
    for (; at > 0 && value < l->near[at - 1]; at--)
        l->near[at] = l->near[at - 1];
    l->near[at] = value;
    l->near_count += l->near_count < MOST_NEAR;
    l->fits++;
    hb_queue_put(&l->fit, value, 0, index);
}

/* Whether as many as are dived into come before, or what was found does by far: behind it in the
 * queue is nothing nearer. */
static bool is_behind(const struct hb_search *s, const struct looks *l, double value)
{
    return value > s->incumbent * far ||
           (!l->all && l->near_count == MOST_NEAR && value > l->near[MOST_NEAR - 1]);
}

/* The next by its floor and a part of what its links have to do, of those that may be better than
 * what was found. */
static bool take_node(struct hb_search *s, struct looks *l, uint32_t *out)
{
    struct hb_queue_entry e;
    while (l->nodes.count && !is_behind(s, l, l->nodes.heap[0].value) &&
           hb_queue_take(&l->nodes, &e)) {
        struct hb_search_node *node = &s->nodes[e.index];
        *out = e.index;
        if (node->value >= s->incumbent)
            continue;
        if (node->forward)
            return true;
        hb_nodes_time(s, node);
        if (!hb_nodes_is_out(s, node))
            list_node(s, e.index, &l->nodes);
    }
    return false;
}

/* What a node may come to: what the linear program says, and what compute waits for beside it. */
static double estimate(struct hb_search *s, struct hb_search_node *node)
{
    double least = node->value;
    hb_whole_relax_node(s, node);
    if (node->relax_ns == INT64_MAX)
        return INFINITY;
    least = fmax(least, hb_search_value(s, node->first, node->relax_ns, 0));
    return least + hb_search_value(s, node->first, node->waits_ns, 0);
}

/* Until so many may fit; those of the first by what they may come to. */
static void look_at_nodes(struct hb_search *s, struct looks *l, uint32_t fits, struct hb_queue *out)
{
    struct hb_queue_entry e;
    uint32_t index;
    for (; (l->count < MOST_LOOKS || l->fits < LEAST_FIT) && l->fits < fits && !is_late(s) &&
           take_node(s, l, &index);
         l->count++) {
        struct hb_search_node *node = &s->nodes[index];
        if (look(s, node))
            put_fit(l, node->value + hb_search_value(s, node->first, node->waits_ns, 0), index);
    }
    while (out->count < MOST_ESTIMATES && !is_late(s) && hb_queue_take(&l->fit, &e)) {
        struct hb_search_node *node = &s->nodes[e.index];
        double value = node->value < s->incumbent ? estimate(s, node) : INFINITY;
        if (value < INFINITY)
            hb_queue_put(out, value, 0, e.index);
    }
}

/* How many were dived into: scans, and pipelines. */
struct dived {
    uint32_t scans, pipelines;
};

/* The first of them: of scans a few, of pipelines fewer; as many as it takes until something fits.
 */
static void dive_nodes(struct hb_search *s, struct hb_queue *nodes, struct dived *dived,
                       uint32_t most)
{
    struct hb_queue_entry e;
    while (most > 0 && !is_late(s) && hb_queue_take(nodes, &e)) {
        struct hb_search_node *node = &s->nodes[e.index];
        bool stages = s->plan->space.cells[node->first].mesh[HB_AX_PIPELINE] > 1;
        uint32_t *own = stages ? &dived->pipelines : &dived->scans;
        if (s->dive_count > 0 &&
            (*own >= (stages ? MOST_PIPELINES : MOST_SCANS) || e.value > s->incumbent * far))
            continue;
        dive_node(s, node);
        ++*own;
        most--;
    }
}

void hb_dive(struct hb_search *s)
{
    struct hb_queue nodes = {.arena = s->arena};
    struct looks l = {.nodes = {.arena = s->arena}, .fit = {.arena = s->arena}};
    struct dived dived = {0, 0};
    struct hb_spec spec;
    if (!s->ask->polish || !s->plan->space.remat || hb_search_by_memory(s) || !s->queue.count)
        return;
    hb_search_priced_spec(s, s->nodes[s->queue.heap[0].index].first, HB_SHARE_KEPT, &spec);
    s->dive_menus = s->plan->menus = s->plan->searched = hb_menu_ladder(s->arena, &spec);
    s->dives = hb_arena_alloc(s->arena, MOST_DIVES, sizeof *s->dives);
    for (uint32_t i = 0; i < s->queue.count; i++)
        list_node(s, s->queue.heap[i].index, &l.nodes);
    /* What the first few come to leaves the others few to look at. */
    look_at_nodes(s, &l, LEAST_FIT, &nodes);
    dive_nodes(s, &nodes, &dived, 1);
    for (int pass = 0; pass < 2 && !(s->incumbent < INFINITY && pass > 0); pass++) {
        l.all = pass > 0;
        look_at_nodes(s, &l, UINT32_MAX, &nodes);
        dive_nodes(s, &nodes, &dived, UINT32_MAX);
    }
}

/* With its policies in the plan's menus. */
static void put(struct hb_search *s, struct hb_choice c)
{
    c.runs = hb_search_adopt(s, s->dive_menus, c.runs, c.run_count);
    hb_cells_put_run(s, &c);
}

static bool was_before(const struct hb_search *s, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (s->dives[i].cell == s->dives[index].cell)
            return true;
    return false;
}

/* Of those that were put from the first on. */
static uint32_t find_best(const struct hb_search *s, uint32_t first)
{
    uint32_t best = first;
    for (uint32_t i = first; i < s->choice_count; i++)
        if (hb_search_value_of(s, &s->choices[i]) < hb_search_value_of(s, &s->choices[best]))
            best = i;
    return best;
}

void hb_dive_again(struct hb_search *s)
{
    uint32_t first = s->choice_count;
    for (uint32_t i = 0; i < s->dive_count; i++)
        put(s, s->dives[i]);
    for (uint32_t i = 0; i < s->dive_count && i < MOST_AGAIN && !is_late(s); i++) {
        struct hb_choice c;
        if (!was_before(s, i) && hb_cells_dive(s, s->dives[i].cell, &c))
            hb_cells_put_run(s, &c);
    }
    if (!s->dive_count || is_late(s))
        return;
    uint32_t best = find_best(s, first);
    while (hb_polish(s, best) && hb_carry(s, find_best(s, best)))
        best = find_best(s, best);
}
