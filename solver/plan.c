/* Best-first search: see plan.h. */
#include "solver/plan.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/env.h"
#include "hw/device.h"
#include "sim/engine/result.h"
#include "sim/ir/lower.h"
#include "solver/carry.h"
#include "solver/cells.h"
#include "solver/dive.h"
#include "solver/menu.h"
#include "solver/nodes.h"
#include "solver/polish.h"
#include "solver/proof.h"
#include "solver/torch_plan.h"
#include "solver/whole.h"

/* The policy under which most steps of a block run. */
static uint32_t main_policy(const struct hb_run *runs, uint32_t count, uint32_t block)
{
    uint32_t policy = 0;
    int32_t most = -1;
    for (uint32_t i = 0; i < count; i++)
        if (runs[i].block == block && runs[i].steps > most) {
            most = runs[i].steps;
            policy = runs[i].policy;
        }
    return policy;
}

/* Of another kind: another mesh, accumulation, stack form, place, or main policy. */
static bool same_kind(const struct hb_search *s, const struct hb_candidate *a,
                      const struct hb_choice *b)
{
    const struct hb_cell *x = &s->plan->space.cells[a->cell];
    const struct hb_cell *y = &s->plan->space.cells[b->cell];
    if (!hb_nodes_same(x, y) || x->form != y->form ||
        x->optimizer_offload != y->optimizer_offload ||
        (x->loss_chunks > 1) != (y->loss_chunks > 1))
        return false;
    for (uint32_t k = 0; k < (uint32_t)s->ask->spec->model.block_count; k++)
        if (main_policy(a->runs, a->run_count, k) != main_policy(b->runs, b->run_count, k))
            return false;
    return true;
}

static bool is_known(const struct hb_search *s, const struct hb_choice *c)
{
    const struct hb_plan *p = s->plan;
    bool known = same_kind(s, &p->best, c);
    for (uint32_t i = 0; i < p->alternative_count && !known; i++)
        known = same_kind(s, &p->alternatives[i], c);
    return known;
}

static void accept(struct hb_search *s, uint32_t index, double value)
{
    const struct hb_choice *c = &s->choices[index];
    struct hb_plan *p = s->plan;
    if (!p->found) {
        p->found = true;
        p->status = HB_PLAN_OPTIMAL;
        p->best = hb_search_candidate(c, value);
        s->done = s->ask->most_alternatives == 0;
        s->filling = true;
        s->effort = 0;
        s->incumbent = INFINITY;
        return;
    }
    if (value < p->best.value)
        HB_BUG("an alternative is better than the plan: %.17g, %.17g", value, p->best.value);
    if (is_known(s, c))
        return;
    p->alternatives[p->alternative_count++] = hb_search_candidate(c, value);
    s->done = p->alternative_count == s->ask->most_alternatives;
}

/* --- the search --- */

static void take_choice(struct hb_search *s, uint32_t index)
{
    const struct hb_choice *c = &s->choices[index];
    if (s->probing) { /* cells without segments have no price, and tell nothing */
        s->done = c->live_bytes > 0;
        s->probed = s->done ? c->cell : s->probed;
        return;
    }
    if (s->filling && is_known(s, c))
        return;
    hb_cells_run(s, index);
}

static bool is_late(const struct hb_search *s)
{
    return hb_stop_now(s->ask->stop);
}

/* What was run, or may come to so much by its price; INFINITY: neither. */
static double value_near(const struct hb_search *s, const struct hb_choice *c)
{
    bool fits = c->step_ns > 0;
    bool waits = hb_search_keeps_near(s) && c->peak_bytes == 0 && c->bound_ns > 0;
    if (s->polished[c->cell] > 0 || !(fits || waits))
        return INFINITY;
    return fits ? hb_search_value_of(s, c)
                : hb_search_value(s, c->cell, c->bound_ns, c->live_bytes);
}

/* Around the best of one cell more, where it is near: what is gained there may be more than around
 * the plan. */
static bool is_beaten_beside(struct hb_search *s, double value)
{
    uint32_t best = HB_NONE;
    while (!is_late(s)) {
        double least = value * (100 + HB_NEAR_PLAN) / 100;
        best = HB_NONE;
        for (uint32_t i = 0; i < s->choice_count; i++) {
            double own = value_near(s, &s->choices[i]);
            best = own < least ? i : best;
            least = own < least ? own : least;
        }
        if (best == HB_NONE || s->choices[best].step_ns > 0)
            break;
        hb_cells_run(s, best);
        if (s->choices[best].peak_bytes == 0) /* it is not worth a run */
            s->choices[best].bound_ns = 0;
    }
    s->beside = true;
    if (best != HB_NONE && s->choices[best].step_ns > 0) /* else it is late */
        (void)hb_polish(s, best);
    return s->incumbent < value;
}

/* A search around one that is run without a price takes long: first whether another cell has it
 * better. */
static bool is_beaten(struct hb_search *s, const struct hb_queue_entry *e)
{
    return (s->spreads && hb_carry(s, e->index)) || hb_polish(s, e->index) ||
           hb_carry(s, e->index) || (!s->beside && is_beaten_beside(s, e->value)) ||
           hb_polish_short(s, e->index);
}

static void take_entry(struct hb_search *s, const struct hb_queue_entry *e)
{
    switch ((enum hb_entry_kind)e->kind) {
    case HB_ENTRY_NODE:
        hb_nodes_take(s, e->index);
        return;
    case HB_ENTRY_BARE:
        hb_nodes_floor_cell(s, e->index);
        return;
    case HB_ENTRY_CELL:
        hb_cells_open(s, e->index);
        return;
    case HB_ENTRY_SEGMENT:
        if (!s->filling) /* the rest of a cell is of a kind that is known */
            hb_cells_walk(s, e->index);
        return;
    case HB_ENTRY_CHOICE:
        take_choice(s, e->index);
        return;
    case HB_ENTRY_RUN:
        if (!s->filling && is_beaten(s, e)) /* what is better comes first */
            hb_queue_put(&s->queue, e->value, HB_ENTRY_RUN, e->index);
        else
            accept(s, e->index, e->value);
        return;
    }
}

/* Once the plan is there, alternatives are worth so many runs and so many looks at nodes and cells,
 * and a fraction of the value. */
enum { RUNS_FOR_ALTERNATIVES = 200, LOOKS_FOR_ALTERNATIVES = 40, EFFORT_FOR_ALTERNATIVES = 60 };
static const double worst_alternative = 1.5;

struct effort {
    uint32_t runs;
    uint32_t looks;
};

static bool is_enough(const struct hb_search *s, const struct effort *e, double value)
{
    bool spent = s->ask->polish && s->ask->most_effort && s->effort > EFFORT_FOR_ALTERNATIVES;
    return spent || is_late(s) || e->runs > RUNS_FOR_ALTERNATIVES ||
           e->looks > LOOKS_FOR_ALTERNATIVES || value > s->plan->best.value * worst_alternative;
}

static void find_alternatives(struct hb_search *s)
{
    struct hb_queue_entry e;
    struct effort effort = {0};
    bool enough = false;
    while (!s->done && hb_queue_take(&s->queue, &e)) {
        enough = enough || is_enough(s, &effort, e.value);
        bool run = e.kind == HB_ENTRY_RUN;
        effort.runs += e.kind == HB_ENTRY_CHOICE && !enough;
        bool look = e.kind == HB_ENTRY_CELL || e.kind == HB_ENTRY_SEGMENT ||
                    (e.kind == HB_ENTRY_NODE && hb_nodes_is_next(s, e.index));
        effort.looks += look && !enough;
        if (run || !enough) /* in the end, the best of what was run on the way */
            take_entry(s, &e);
    }
}

/* The best that was run and fits is the plan. */
static void cut_off(struct hb_search *s, double open_value)
{
    const struct hb_queue_entry *best = NULL;
    struct hb_plan *p = s->plan;
    p->status = HB_PLAN_LIMIT;
    p->gap = INFINITY;
    s->open_value = open_value;
    for (uint32_t i = 0; i < s->queue.count; i++) {
        const struct hb_queue_entry *e = &s->queue.heap[i];
        s->open_value = fmin(s->open_value, e->value);
        if (e->kind == HB_ENTRY_RUN && (!best || e->value < best->value))
            best = e;
    }
    p->found = best != NULL;
    if (best)
        p->best = hb_search_candidate(&s->choices[best->index], best->value);
}

/* Only what was run stays: the best of it is the plan. What may be better by its bound is left. */
static void settle_for_best(struct hb_search *s)
{
    struct hb_queue *q = &s->queue;
    uint32_t count = q->count;
    struct hb_queue_entry *all = hb_arena_alloc(s->arena, count, sizeof *all);
    memcpy(all, q->heap, count * sizeof *all);
    q->count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (all[i].kind == HB_ENTRY_RUN)
            hb_queue_put(q, all[i].value, HB_ENTRY_RUN, all[i].index);
    s->plan->settled = true;
}

/* Cells that were not searched, though their bounds are below the plan; the least of those bounds.
 */
static uint32_t count_left(const struct hb_search *s, double *out_least)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < s->node_count && s->plan->settled; i++)
        for (uint32_t k = s->nodes[i].first; k < s->nodes[i].end; k++)
            if (hb_proof_is_left(s->ask, s->plan, &s->nodes[i], k)) {
                *out_least = fmin(*out_least, hb_proof_value(s->ask, s->plan, &s->nodes[i], k));
                left++;
            }
    return left;
}

static bool is_excluded(const struct hb_search *s, const struct hb_search_node *node, uint32_t cell)
{
    enum hb_cell_fate fate = s->plan->rows[cell].fate;
    return fate == HB_FATE_MEMORY || fate == HB_FATE_REFUSED || node->relax_ns == INT64_MAX ||
           s->plan->relax_ns[cell] == INT64_MAX;
}

/* Of a search that found nothing, cells that no bound excludes over all policies: there only those
 * of the menus were looked at, and not all of them. Where nothing else is in the space, none; and
 * where steps are as they are written, all of the menus were priced. What the menus alone excluded
 * is asked for here, up to the first that stays: then nothing is proven. */
static uint32_t count_unproven(struct hb_search *s)
{
    uint32_t open = 0;
    bool exact = hb_search_is_exact(s) || !hb_search_is_asked(s);
    for (uint32_t i = 0; i < s->node_count && !exact; i++)
        for (uint32_t k = s->nodes[i].first; k < s->nodes[i].end; k++) {
            bool out = is_excluded(s, &s->nodes[i], k);
            if (!out && open == 0 && !is_late(s))
                out = !(hb_whole_cell_value(s, &s->nodes[i], k, INFINITY) < INFINITY);
            open += !out;
        }
    return open;
}

/* Where policies are not free a search may well end: it is worth as many times the effort. */
enum { MORE_BY_MESH = 4 };

static bool is_spent(const struct hb_search *s)
{
    uint64_t most = (uint64_t)s->ask->most_effort * (s->plan->space.remat ? 1 : MORE_BY_MESH);
    return s->ask->polish && s->ask->most_effort && s->effort >= most && s->incumbent < INFINITY &&
           !s->plan->settled;
}

static bool is_given_up(const struct hb_search *s)
{
    const struct hb_plan_counts *c = &s->plan->counts;
    return s->given_up || (s->ask->most_runs && c->runs >= s->ask->most_runs) ||
           (s->ask->most_priced && c->priced >= s->ask->most_priced);
}

/* Where prices do not hold as many runs may be tried in vain as there are: it is worth so many
 * times the effort. */
enum { MORE_IN_VAIN = 2 };

static bool is_in_vain(const struct hb_search *s)
{
    return s->spreads && s->ask->polish && s->ask->most_effort && !(s->incumbent < INFINITY) &&
           s->effort >= (uint64_t)s->ask->most_effort * MORE_IN_VAIN;
}

static void search_all(struct hb_search *s)
{
    struct hb_queue_entry e;
    if (is_late(s)) { /* not all of the space is in the queue */
        cut_off(s, 0);
        return;
    }
    if (is_spent(s))
        settle_for_best(s);
    while (!s->plan->found && !is_in_vain(s) && hb_queue_take(&s->queue, &e)) {
        if (s->ask->beat > 0 && e.value >= s->ask->beat)
            return; /* the least that is left */
        take_entry(s, &e);
        if (is_spent(s))
            settle_for_best(s);
        if (!s->plan->found && (is_given_up(s) || is_late(s))) {
            cut_off(s, e.value);
            return;
        }
    }
    if (s->plan->found)
        find_alternatives(s);
}

/* To the best that the whole space may have; the menus are the whole where policies are not free.
 */
static void find_gap(struct hb_search *s)
{
    struct hb_plan *p = s->plan;
    bool menus = (!s->ask->polish || !p->space.remat) && !p->counts.odd;
    double open = p->status == HB_PLAN_LIMIT ? s->open_value : INFINITY;
    bool ended = p->status != HB_PLAN_LIMIT;
    p->counts.left = p->found ? count_left(s, &open) : ended ? count_unproven(s) : 0;
    if (!p->found && p->counts.left)
        p->status = HB_PLAN_LIMIT;
    if (!p->found || s->ask->value_only ||
        (p->status == HB_PLAN_OPTIMAL && menus && !p->counts.left))
        return;
    double least = hb_whole_bound(s, p->best.value);
    p->counts.left = count_left(s, &open); /* more is known now */
    if (menus)
        least = fmax(least, fmin(open, p->best.value));
    p->gap = 1 - least / p->best.value;
    if (p->status == HB_PLAN_LIMIT || (p->gap > 0 && is_late(s)))
        p->status = HB_PLAN_LIMIT;
    else
        p->status = p->gap > 0 ? HB_PLAN_BEST : HB_PLAN_OPTIMAL;
}

/* --- policies --- */

/* Of the cell's steps as they are written, whatever is priced. */
static void make_menus(struct hb_search *s, uint32_t cell, uint32_t most)
{
    struct hb_spec spec;
    uint32_t tried;
    hb_search_priced_spec(s, cell, HB_SHARE_KEPT, &spec);
    s->plan->menus = s->plan->searched = hb_menu_make(s->arena, s->scratch, &spec, s->ask->device,
                                                      s->plan->space.remat ? most : 1, &tried);
    s->plan->counts.policies_tried += tried;
}

/* How many nodes are looked at closely to find one that is near the plan. */
enum { MOST_PROBES = 12 };

/* Looks for a cell near where the plan will be: that of the first configuration that may fit or,
 * where that takes long, of the best of the nodes that were looked at. */
static void probe(struct hb_search *s)
{
    struct hb_queue_entry e;
    const char *lp_stem = s->lp_stem;
    uint32_t before = s->plan->counts.layer_bounds;
    s->lp_stem = NULL;
    s->probing = true;
    while (!s->done && s->plan->counts.layer_bounds - before < MOST_PROBES && !is_late(s) &&
           hb_queue_take(&s->queue, &e))
        take_entry(s, &e);
    double best = INFINITY;
    for (uint32_t i = 0; i < s->node_count && !s->done; i++)
        if (s->nodes[i].stage == HB_STAGE_OPEN && s->nodes[i].layers_ns < INT64_MAX &&
            s->nodes[i].value < best) {
            best = s->nodes[i].value;
            s->probed = s->nodes[i].first;
        }
    s->probing = false;
    s->lp_stem = lp_stem;
}

/* Which policies are worth it is seen on two cells: that with the least floor, and one near where
 * the plan will be with those policies. */
static void choose_menus(struct hb_search *s)
{
    uint32_t most = s->ask->most_policies ? s->ask->most_policies : HB_MENU_MOST;
    struct hb_queue_entry e;
    s->probed = HB_NONE;
    if (s->ask->menus) {
        s->plan->menus = s->plan->searched = s->ask->menus;
        return;
    }
    if (is_late(s)) { /* what the dive had, or the file's own, will do */
        if (!s->plan->menus)
            make_menus(s, 0, 1);
        return;
    }
    if (s->dive_count) {
        s->probed = s->dives[0].cell;
        make_menus(s, s->probed, most);
        return;
    }
    if (!hb_queue_take(&s->queue, &e)) { /* nothing can fit: any cell will do */
        make_menus(s, 0, most);
        return;
    }
    while (hb_search_by_memory(s) && s->nodes[e.index].stage == HB_STAGE_TIMES) {
        hb_nodes_take(s, e.index); /* its bytes closely, and back */
        if (!hb_queue_take(&s->queue, &e)) {
            make_menus(s, 0, most);
            return;
        }
    }
    hb_queue_put(&s->queue, e.value, e.kind, e.index);
    bool small = !s->plan->space.remat || s->ask->most_policies > 0;
    uint32_t least = s->probed = s->nodes[e.index].first;
    make_menus(s, s->probed, small ? most : most / 2);
    if (small)
        return;
    probe(s);
    if (is_late(s))
        return;
    const struct hb_menu *first = s->plan->menus;
    if (s->probed != least) { /* else they are the same again */
        make_menus(s, s->probed, most / 2);
        s->plan->menus = s->plan->searched =
            hb_menu_join(s->arena, s->ask->spec->model.block_count, s->plan->menus, first);
    }
    hb_nodes_restart(s);
}

static bool dive_at(struct hb_search *s, uint32_t cell)
{
    struct hb_choice c;
    bool found = hb_cells_dive(s, cell, &c);
    if (found && s->ask->polish)
        hb_cells_put_run(s, &c);
    return found;
}

/* A configuration that fits, from the cells beside the probed one, and what lies around it. */
static void find_incumbent(struct hb_search *s)
{
    uint32_t before = s->choice_count;
    if (s->probed != HB_NONE && !is_late(s)) {
        const struct hb_search_node *node = hb_nodes_around(s->nodes, s->node_count, s->probed);
        dive_at(s, s->probed);
        for (uint32_t k = node->first; k < node->end && s->incumbent >= INFINITY && !is_late(s);
             k++)
            if (s->plan->space.cells[k].form == HB_FORM_SCAN && k != s->probed)
                dive_at(s, k);
    }
    if (s->choice_count > before && !is_late(s))
        hb_polish(s, before);
}

static double raw_count(const struct hb_search *s)
{
    double raw = 0, all = hb_brute_count(s->ask->spec, s->plan->searched, true);
    double few = hb_brute_count_combinations(s->ask->spec, s->plan->searched);
    for (uint32_t i = 0; i < s->plan->space.cell_count; i++) {
        const struct hb_cell *c = &s->plan->space.cells[i];
        bool segments = c->mesh[HB_AX_PIPELINE] == 1 && c->form != HB_FORM_LOOP;
        raw += segments ? all : few;
    }
    return raw;
}

/* Runs of the engine before a search gives up, about a minute; and before it takes the best so far,
 * about a second. The quickstart's space is searched whole by then; with a quarter of it its plan
 * was 1 % slower. */
enum { MOST_EFFORT = 1600 };
enum { MOST_RUNS = 100000, MOST_ALTERNATIVES = 5 };

void hb_plan_ask_make(struct hb_env *env, const struct hb_spec *spec,
                      const struct hb_device *device, struct hb_plan_ask *out)
{
    struct hb_budget budget;
    hb_budget_make(spec, device, &budget);
    *out = (struct hb_plan_ask){.env = env,
                                .spec = spec,
                                .device = device,
                                .devices = spec->hardware.count,
                                .objective = spec->plan.objective,
                                .budget_bytes = budget.bytes,
                                .whole_bytes = budget.bytes,
                                .host_bytes = budget.host_bytes,
                                .most_alternatives = MOST_ALTERNATIVES,
                                .polish = true,
                                .most_effort = MOST_EFFORT,
                                .most_runs = MOST_RUNS};
}

/* --- the whole --- */

static void count_in(struct hb_plan_counts *all, const struct hb_plan_counts *own)
{
    all->dived += own->priced + own->dived;
    all->turned += own->turned;
    all->polished += own->polished;
    all->polish_runs += own->polish_runs;
}

/* Where prices say little of what is made otherwise, the plan among steps as written, as the engine
 * runs it, is one to begin with. Steps as written are among all: what bounds those holds here; and
 * with the same menus, where none of them fits none is priced again. */
static void begin_as_written(struct hb_search *s)
{
    struct hb_plan_ask own = *s->ask;
    struct hb_plan first;
    struct hb_memory memory = {0};
    own.as_written = true;
    own.beat = s->incumbent < INFINITY ? s->incumbent : 0;
    own.keep_runs = false;
    own.value_only = true;
    own.most_alternatives = 0;
    own.lp_stem = NULL;
    own.other = s->plan;
    own.menus = s->plan->searched;
    if (!s->spreads || hb_search_is_exact(s) || is_late(s) || !hb_plan_find(s->arena, &own, &first))
        return;
    count_in(&s->plan->counts, &first.counts);
    s->unwritten = first.status == HB_PLAN_INFEASIBLE && own.beat == 0;
    if (!first.found)
        return;
    const struct hb_candidate *best = &first.best;
    struct hb_choice c = {.cell = best->cell,
                          .runs = hb_search_adopt(s, first.menus, best->runs, best->run_count),
                          .run_count = best->run_count};
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    bool fits = hb_search_run(s, &c, &memory, &c.step_ns);
    hb_arena_rewind(s->scratch, mark);
    c.peak_bytes = memory.peak_bytes;
    if (!fits)
        return;
    hb_search_check(s, &c, false);
    hb_cells_put_run(s, &c);
}

/* Of the plan they are, too, from the beginning: another search may take what they say. */
static void tell_nodes(struct hb_search *s)
{
    s->plan->nodes = s->nodes;
    s->plan->node_count = s->node_count;
}

static void start_search(struct hb_search *s)
{
    hb_nodes_find(s);
    tell_nodes(s);
    if (s->ask->other)
        hb_nodes_take_floors(s, s->ask->other);
    for (uint32_t i = 0; i < s->node_count && !is_late(s); i++)
        hb_nodes_put(s, i);
    hb_dive(s);
    choose_menus(s);
    if (s->dive_count)
        hb_dive_again(s);
    else
        find_incumbent(s);
    begin_as_written(s);
}

/* As the other search had it, whose plan is one of this too. */
static void follow_search(struct hb_search *s, const struct hb_plan *like)
{
    s->nodes = hb_arena_alloc(s->arena, like->node_count, sizeof *s->nodes);
    const struct hb_plan *nodes_of = s->ask->above ? s->ask->above : like;
    memcpy(s->nodes, nodes_of->nodes, nodes_of->node_count * sizeof *s->nodes);
    s->node_count = like->node_count;
    tell_nodes(s);
    for (uint32_t i = 0; i < s->node_count; i++)
        s->nodes[i].relaxed = false, s->nodes[i].relax_ns = 0;
    s->plan->menus = s->plan->searched = like->menus;
    s->incumbent = like->found ? like->best.value : INFINITY;
    hb_nodes_restart(s);
    s->queue.count = s->ask->near ? 0 : s->queue.count;
    if (like->found && like->counts.polished) { /* it may not be one of the walk's */
        struct hb_choice c = {.cell = like->best.cell,
                              .runs = like->best.runs,
                              .run_count = like->best.run_count,
                              .live_bytes = like->best.live_bytes,
                              .bound_ns = like->best.bound_ns,
                              .step_ns = like->best.step_ns,
                              .peak_bytes = like->best.peak_bytes};
        hb_cells_put_run(s, &c);
    }
    if (s->ask->near) {
        const struct hb_search_node *node =
            hb_nodes_around(s->nodes, s->node_count, like->best.cell);
        hb_queue_put(&s->queue, node->value, HB_ENTRY_NODE, (uint32_t)(node - s->nodes));
    }
}

/* A step that does not fit as it is written may fit as the compiler makes it that finds too little
 * memory for it, which is then what is run. The smallest peak is that of steps as written. */
static struct hb_spec *with_share(struct hb_arena *arena, const struct hb_plan_ask *ask)
{
    struct hb_spec *own = hb_arena_alloc(arena, 1, sizeof *own);
    bool kept = ask->as_written || ask->objective == HB_OBJ_MEMORY ||
                hb_lower_share_bytes(ask->spec) == INT64_MAX;
    *own = *ask->spec;
    own->share = kept ? HB_SHARE_KEPT : HB_SHARE_ASKED;
    return own;
}

/* Of its first cell; whether a program has spread products follows from the model. */
static bool has_spreads(struct hb_search *s)
{
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_spec spec;
    struct hb_program p;
    struct hb_diag diag;
    if (!hb_search_is_asked(s))
        return false;
    hb_diag_init(&diag, s->scratch);
    hb_search_cell_spec(s, 0, &spec);
    bool spreads = hb_lower_sample(s->scratch, &diag, &spec, &spec, &p) && p.spreads;
    hb_arena_rewind(s->scratch, mark);
    return spreads;
}

bool hb_plan_find(struct hb_arena *arena, const struct hb_plan_ask *ask, struct hb_plan *out)
{
    int64_t start_ns = ask->env->now_ns();
    if (ask->spec->compiler == HB_TORCH)
        return hb_torch_plan_find(arena, ask, out);
    *out = (struct hb_plan){.status = HB_PLAN_INFEASIBLE};
    out->limits = hb_arena_alloc(arena, 1, sizeof *out->limits);
    if (ask->like)
        out->space = ask->like->space;
    else if (!hb_space_make(arena, with_share(arena, ask), ask->device, ask->devices, &out->space))
        return hb_error(ask->env->diag, (struct hb_loc){0},
                        "plan: no mesh of %lld devices that the model and the limits of plan.keep "
                        "admit%s",
                        (long long)ask->devices,
                        ask->spec->plan.says ? ", and that --emit's program can say" : "");
    struct hb_search s = {.arena = arena,
                          .scratch = hb_arena_new(),
                          .ask = ask,
                          .plan = out,
                          .incumbent = ask->beat > 0 ? ask->beat : INFINITY,
                          .lp_stem = ask->lp_stem};
    s.queue.arena = arena;
    s.spreads = has_spreads(&s);
    out->rows = hb_arena_alloc(arena, out->space.cell_count, sizeof *out->rows);
    out->relax_ns = hb_arena_alloc(arena, out->space.cell_count, sizeof *out->relax_ns);
    s.relaxed = hb_arena_alloc(arena, out->space.cell_count, sizeof *s.relaxed);
    s.polished = hb_arena_alloc(arena, out->space.cell_count, sizeof *s.polished);
    s.cuts = hb_arena_alloc(arena, 2 * (size_t)out->space.cell_count, sizeof *s.cuts);
    out->alternatives =
        hb_arena_alloc(arena, (size_t)ask->most_alternatives + 1, sizeof *out->alternatives);
    if (ask->like)
        follow_search(&s, ask->like);
    else
        start_search(&s);
    out->counts.raw = raw_count(&s);
    out->counts.cells = out->space.cell_count;
    out->counts.nodes = out->node_count;
    search_all(&s);
    find_gap(&s);
    hb_cells_forget(&s);
    hb_arena_free(s.scratch);
    out->seconds = (double)(ask->env->now_ns() - start_ns) * 1e-9;
    return true;
}

void hb_plan_spec(struct hb_arena *arena, const struct hb_plan *plan,
                  const struct hb_candidate *candidate, struct hb_spec *out)
{
    struct hb_spec cell;
    hb_space_cell_spec(plan->space.base, &plan->space.cells[candidate->cell], &cell);
    hb_space_parts_spec(arena, &cell, plan->menus, candidate->runs, candidate->run_count, out);
    out->share = HB_SHARE_ASKED;
}

/* --- names --- */

const char *hb_plan_status_name(enum hb_plan_status status)
{
    static const char *const names[] = {"optimal", "best", "infeasible", "limit"};
    return names[status];
}

const char *hb_cell_fate_name(enum hb_cell_fate fate)
{
    static const char *const names[] = {"floor of the layers' loops",
                                        "floor of the step",
                                        "the layers' part of what could fit",
                                        "optimum of the integer program",
                                        "the integer program has no solution",
                                        "arguments and gradients alone exceed the budget",
                                        "its step",
                                        "what a rank takes at least exceeds the budget",
                                        "searched",
                                        "sizes beyond the range"};
    return names[fate];
}
