/* Best-first search: see plan.h. */
#include "solver/plan.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/env.h"
#include "base/str.h"
#include "sim/ir/lower.h"
#include "solver/bound.h"
#include "solver/ilp.h"
#include "solver/menu.h"
#include "solver/search.h"

enum entry_kind { NODE, CELL, SEGMENT, CHOICE, RUN };
enum { FIRST_BATCH = 16, MOST_BATCH = 1024 };

static bool by_memory(const struct hb_search *s)
{
    return s->ask->objective == HB_OBJ_MEMORY;
}

/* --- values of the objective --- */

static double tokens_of(const struct hb_search *s, uint32_t cell)
{
    return (double)s->plan->space.cells[cell].batch_global * (double)s->ask->spec->batch.seq;
}

double hb_search_value(const struct hb_search *s, uint32_t cell, int64_t ns, int64_t bytes)
{
    switch (s->ask->objective) {
    case HB_OBJ_MEMORY:
        return (double)bytes;
    case HB_OBJ_STEP_TIME:
        return (double)ns;
    case HB_OBJ_TOKENS:
    case HB_OBJ_DEVICES:
        return (double)ns / tokens_of(s, cell);
    }
    return 0;
}

void hb_search_cell_spec(const struct hb_search *s, uint32_t cell, struct hb_spec *out)
{
    hb_space_cell_spec(s->ask->spec, &s->plan->space.cells[cell], out);
}

static void settle(struct hb_search *s, uint32_t cell, enum hb_cell_fate fate, double value)
{
    s->plan->rows[cell].fate = fate;
    s->plan->rows[cell].value = value;
}

/* --- nodes --- */

static bool same_node(const struct hb_cell *a, const struct hb_cell *b)
{
    return memcmp(a->mesh, b->mesh, sizeof a->mesh) == 0 && a->batch_global == b->batch_global &&
           a->accumulate == b->accumulate && a->microbatches == b->microbatches;
}

static void find_nodes(struct hb_search *s)
{
    const struct hb_plan_space *space = &s->plan->space;
    for (uint32_t i = 0; i < space->cell_count; i++) {
        if (i == 0 || !same_node(&space->cells[i], &space->cells[i - 1])) {
            s->nodes = hb_grow(s->arena, s->nodes, s->node_count, &s->node_cap, sizeof *s->nodes);
            s->nodes[s->node_count++] = (struct hb_search_node){.first = i, .end = i};
        }
        s->nodes[s->node_count - 1].end = i + 1;
    }
}

/* What all cells of the node have in common at least. */
static void floor_spec(const struct hb_search *s, const struct hb_search_node *node,
                       struct hb_spec *out)
{
    const struct hb_plan_space *space = &s->plan->space;
    struct hb_cell least = space->cells[node->first];
    least.loss_chunks = 1;
    least.form = least.form == HB_FORM_NESTED ? HB_FORM_SCAN : least.form;
    for (uint32_t i = node->first; i < node->end; i++)
        if (space->cells[i].optimizer_offload == HB_PLACE_PINNED_HOST)
            least.optimizer_offload = HB_PLACE_PINNED_HOST;
    hb_space_cell_spec(s->ask->spec, &least, out);
}

static void settle_node(struct hb_search *s, const struct hb_search_node *node,
                        enum hb_cell_fate fate, double value)
{
    for (uint32_t i = node->first; i < node->end; i++)
        settle(s, i, fate, value);
}

static void put_node(struct hb_search *s, uint32_t index)
{
    struct hb_search_node *node = &s->nodes[index];
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_spec spec;
    struct hb_floor floor;
    floor_spec(s, node, &spec);
    bool ok = hb_bound_node(s->scratch, &spec, s->ask->device, &floor);
    hb_arena_rewind(s->scratch, mark);
    s->plan->counts.node_floors++;
    node->forward_ns = floor.forward_ns;
    if (!ok) {
        settle_node(s, node, HB_FATE_REFUSED, INFINITY);
    } else if (floor.live_bytes > s->ask->budget_bytes) {
        settle_node(s, node, HB_FATE_MEMORY, (double)floor.live_bytes);
    } else {
        double value = hb_search_value(s, node->first, floor.bound_ns, floor.live_bytes);
        settle_node(s, node, HB_FATE_NODE_BOUND, value);
        node->value = node->floor_value = value;
        hb_queue_put(&s->queue, value, NODE, index);
    }
}

/* --- cells --- */

static void put_open(struct hb_search *s, uint32_t cell, double bound)
{
    s->open = hb_grow(s->arena, s->open, s->open_count, &s->open_cap, sizeof *s->open);
    s->open[s->open_count] = (struct hb_open_cell){cell, bound, FIRST_BATCH, -1, 0};
    hb_queue_put(&s->queue, bound, CELL, s->open_count++);
}

/* Floors of a node's cells, by what they differ in: chunks and place. */
struct floors {
    struct hb_cell cell;
    struct hb_floor floor;
    bool ok;
};

enum { MOST_FLOORS = 256 };

/* The floor of a cell's scan. Nested scans hold no less beside what they keep and take longer: by
 * the whole forward pass, where the outer blocks are made again. */
static const struct floors *find_floor(struct hb_search *s, const struct hb_cell *cell,
                                       struct floors *list, uint32_t *count)
{
    struct hb_cell scan = *cell;
    scan.form = cell->form == HB_FORM_NESTED ? HB_FORM_SCAN : cell->form;
    scan.outer = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (list[i].cell.loss_chunks == scan.loss_chunks && list[i].cell.form == scan.form &&
            list[i].cell.optimizer_offload == scan.optimizer_offload)
            return &list[i];
    struct floors *f = &list[*count < MOST_FLOORS ? (*count)++ : MOST_FLOORS - 1];
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_spec spec;
    f->cell = scan;
    hb_space_cell_spec(s->ask->spec, &scan, &spec);
    f->ok = hb_bound_cell(s->scratch, &spec, s->ask->device, &f->floor);
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

/* Puts the node back with what is known of its cells now. */
static void raise_node(struct hb_search *s, uint32_t index, enum hb_cell_fate fate)
{
    struct hb_search_node *node = &s->nodes[index];
    int64_t least = INT64_MAX;
    for (uint32_t i = node->first; i < node->end; i++) {
        bool nested = s->plan->space.cells[i].form == HB_FORM_NESTED;
        int64_t again = nested && s->ask->spec->remat.outer ? node->forward_ns : 0;
        int64_t scanned = node->layers_ns > node->floor_ns ? node->layers_ns : node->floor_ns;
        int64_t ns = nested ? node->floor_ns + again : scanned;
        least = ns < least ? ns : least;
    }
    if (least == INT64_MAX) {
        settle_node(s, node, HB_FATE_LAYER_BOUND, INFINITY);
        return;
    }
    double value = by_memory(s) ? node->value : hb_search_value(s, node->first, least, 0);
    if (value > node->value) {
        node->value = value;
        settle_node(s, node, fate, value);
    }
    hb_queue_put(&s->queue, node->value, NODE, index);
}

static void floor_node(struct hb_search *s, uint32_t index)
{
    struct hb_search_node *node = &s->nodes[index];
    struct hb_cell cell = plain_cell(s, node);
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_spec spec;
    struct hb_floor floor;
    hb_space_cell_spec(s->ask->spec, &cell, &spec);
    if (hb_bound_cell(s->scratch, &spec, s->ask->device, &floor))
        node->floor_ns = floor.layers_ns;
    hb_arena_rewind(s->scratch, mark);
    s->plan->counts.cell_floors++;
    raise_node(s, index, HB_FATE_NODE_BOUND);
    node->floor_value = node->value;
}

/* With the bytes that are fixed in the node's leanest cells. */
static void fit_node(struct hb_search *s, uint32_t index)
{
    struct hb_search_node *node = &s->nodes[index];
    struct hb_cell cell = plain_cell(s, node);
    if (by_memory(s) || s->ask->budget_bytes == INT64_MAX || cell.mesh[HB_AX_PIPELINE] > 1) {
        raise_node(s, index, HB_FATE_NODE_BOUND);
        return;
    }
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_spec spec;
    struct hb_floor floor;
    int64_t fixed = 0;
    floor_spec(s, node, &spec);
    if (hb_bound_node(s->scratch, &spec, s->ask->device, &floor))
        fixed = floor.fixed_bytes;
    hb_space_cell_spec(s->ask->spec, &cell, &spec);
    node->layers_ns = hb_bound_layers(s->scratch, &spec, s->plan->menus, s->ask->device, fixed,
                                      s->ask->budget_bytes);
    hb_arena_rewind(s->scratch, mark);
    s->plan->counts.layer_bounds++;
    raise_node(s, index, HB_FATE_LAYER_BOUND);
}

static void open_cell_of(struct hb_search *s, const struct hb_search_node *node, uint32_t i,
                         const struct floors *f)
{
    int64_t layers_ns = node->layers_ns;
    const struct hb_cell *cell = &s->plan->space.cells[i];
    bool nested = cell->form == HB_FORM_NESTED;
    int64_t ns = f->floor.bound_ns + (nested && s->ask->spec->remat.outer ? node->forward_ns : 0);
    enum hb_cell_fate fate = HB_FATE_CELL_BOUND;
    if (cell->form == HB_FORM_SCAN && layers_ns == INT64_MAX) {
        settle(s, i, HB_FATE_LAYER_BOUND, INFINITY);
        return;
    }
    if (cell->form == HB_FORM_SCAN && layers_ns + f->floor.ends_ns > ns) {
        ns = layers_ns + f->floor.ends_ns;
        fate = HB_FATE_LAYER_BOUND;
    }
    double value = hb_search_value(s, i, ns, f->floor.live_bytes);
    value = value > s->plan->rows[i].value ? value : s->plan->rows[i].value;
    if (!f->ok) {
        settle(s, i, HB_FATE_REFUSED, INFINITY);
    } else if (f->floor.live_bytes > s->ask->budget_bytes) {
        settle(s, i, HB_FATE_MEMORY, (double)f->floor.live_bytes);
    } else {
        settle(s, i, fate, value);
        put_open(s, i, value);
    }
}

static void open_node(struct hb_search *s, const struct hb_search_node *node)
{
    struct floors *list = hb_arena_alloc(s->arena, MOST_FLOORS, sizeof *list);
    const struct floors **of = hb_arena_alloc(s->arena, node->end - node->first, sizeof *of);
    uint32_t count = 0;
    for (uint32_t i = node->first; i < node->end; i++)
        of[i - node->first] = find_floor(s, &s->plan->space.cells[i], list, &count);
    for (uint32_t i = node->first; i < node->end; i++)
        open_cell_of(s, node, i, of[i - node->first]);
}

static void take_node(struct hb_search *s, uint32_t index)
{
    switch (s->nodes[index].stage++) {
    case 0:
        floor_node(s, index);
        return;
    case 1:
        fit_node(s, index);
        return;
    }
    open_node(s, &s->nodes[index]);
}

static struct hb_brute_limits limits_of(const struct hb_search *s)
{
    return (struct hb_brute_limits){.goal = by_memory(s) ? HB_GOAL_MEMORY : HB_GOAL_TIME,
                                    .budget_bytes = s->ask->budget_bytes,
                                    .host_bytes = s->ask->host_bytes,
                                    .after_value = -1};
}

static uint32_t put_choice(struct hb_search *s, struct hb_choice c, double value)
{
    s->choices = hb_grow(s->arena, s->choices, s->choice_count, &s->choice_cap, sizeof c);
    s->choices[s->choice_count] = c;
    hb_queue_put(&s->queue, value, CHOICE, s->choice_count);
    return s->choice_count++;
}

/* --- cells without segments: every combination of policies is run --- */

/* Of such a cell's menus, which are tried: so many at most, evenly apart, the leanest and the last
 * (the file's own, where it is not worth it) among them. */
enum { RUN_POLICIES = 6 };

bool hb_search_is_run(const struct hb_menu *menu, uint32_t policy)
{
    if (menu->count <= RUN_POLICIES)
        return true;
    uint32_t at = policy * (RUN_POLICIES - 1) / (menu->count - 1);
    return policy == (at * (menu->count - 1) + RUN_POLICIES - 2) / (RUN_POLICIES - 1);
}

static uint32_t count_run(const struct hb_menu *menu)
{
    return menu->count < RUN_POLICIES ? menu->count : RUN_POLICIES;
}

static void put_combinations(struct hb_search *s, uint32_t cell, double bound, struct hb_run *runs,
                             uint32_t block)
{
    const struct hb_spec *spec = s->ask->spec;
    if (block == (uint32_t)spec->model.block_count) {
        struct hb_choice c = {.cell = cell, .run_count = block};
        c.runs = hb_arena_alloc(s->arena, block, sizeof *c.runs);
        memcpy(c.runs, runs, block * sizeof *runs);
        put_choice(s, c, bound);
        return;
    }
    const struct hb_block *b = &spec->model.blocks[block];
    for (uint32_t k = 0; k < s->plan->menus[block].count; k++) {
        if (!hb_search_is_run(&s->plan->menus[block], k))
            continue;
        runs[block] = (struct hb_run){block, k, (int32_t)(b->repeat / b->unit)};
        put_combinations(s, cell, bound, runs, block + 1);
    }
}

/* --- cells with segments --- */

struct put_odd {
    struct hb_search *s;
    const struct hb_segment *segment;
    uint32_t cell;
    double bound;
};

static bool visit_odd(void *context, const struct hb_part *parts, uint32_t count)
{
    struct put_odd *o = context;
    struct hb_run runs[HB_PARTS_MAX];
    struct hb_choice c = {.cell = o->cell};
    c.run_count = hb_brute_runs(o->segment, o->s->ask->spec, parts, count, runs);
    c.runs = hb_arena_alloc(o->s->arena, c.run_count, sizeof *c.runs);
    memcpy(c.runs, runs, c.run_count * sizeof *runs);
    put_choice(o->s, c, o->bound);
    return true;
}

static const char *lp_path(struct hb_search *s)
{
    if (!s->lp_stem)
        return NULL;
    return hb_arena_printf(s->scratch, "%s-%u.lp", s->lp_stem, ++s->lp_count);
}

/* Cells with more configurations than this get an integer program before they are walked. */
static const double walked_at_once = 60000;

static void walk_cell(struct hb_search *s, uint32_t index, const struct hb_spec *spec,
                      const struct hb_segment *segment);

static void open_cell(struct hb_search *s, uint32_t index)
{
    struct hb_open_cell *o = &s->open[index];
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_spec spec;
    struct hb_segment segment;
    struct hb_ilp_answer answer;
    const char *why;
    hb_search_cell_spec(s, o->cell, &spec);
    struct hb_segment_ask ask = {&spec, s->plan->menus, s->ask->device, false, false};
    if (!hb_segment_build(s->scratch, &ask, &segment, &why)) {
        struct hb_run runs[HB_PARTS_MAX];
        settle(s, o->cell, HB_FATE_SEARCHED, o->bound);
        put_combinations(s, o->cell, o->bound, runs, 0);
        hb_arena_rewind(s->scratch, mark);
        return;
    }
    struct put_odd odd = {s, &segment, o->cell, o->bound};
    hb_brute_each_odd(&segment, &spec, visit_odd, &odd);
    s->plan->counts.segments++;
    if (!s->lp_stem && hb_brute_count(&spec, s->plan->menus, true) <= walked_at_once) {
        walk_cell(s, index, &spec, &segment);
        hb_arena_rewind(s->scratch, mark);
        return;
    }
    struct hb_ilp_ask ilp = {.segment = &segment,
                             .spec = &spec,
                             .leave_out = hb_menu_find_beaten(s->scratch, &segment),
                             .limits = limits_of(s),
                             .lp_file = lp_path(s)};
    hb_ilp_solve(s->scratch, &ilp, &answer);
    hb_arena_rewind(s->scratch, mark);
    s->plan->counts.ilps++;
    if (answer.status == HB_ILP_INFEASIBLE) {
        settle(s, o->cell, HB_FATE_ILP_EMPTY, INFINITY);
        return;
    }
    if (answer.status == HB_ILP_OPTIMAL) {
        double value = hb_search_value(s, o->cell, answer.bound, answer.bound);
        o->bound = value > o->bound ? value : o->bound;
        settle(s, o->cell, HB_FATE_ILP_BOUND, o->bound);
    }
    hb_queue_put(&s->queue, o->bound, SEGMENT, index);
}

static void put_brute_choice(struct hb_search *s, uint32_t cell, const struct hb_segment *segment,
                             const struct hb_brute_choice *b)
{
    struct hb_run runs[HB_PARTS_MAX];
    struct hb_choice c = {
        .cell = cell, .live_bytes = b->price.live_bytes, .bound_ns = b->price.bound_ns};
    c.run_count = hb_brute_runs(segment, s->ask->spec, b->parts, b->count, runs);
    c.runs = hb_arena_alloc(s->arena, c.run_count, sizeof *c.runs);
    memcpy(c.runs, runs, c.run_count * sizeof *runs);
    put_choice(s, c, hb_search_value(s, cell, b->price.bound_ns, b->price.live_bytes));
}

/* The next best configurations of a cell; the cell waits for its turn with the worst of them. */
static void walk_cell(struct hb_search *s, uint32_t index, const struct hb_spec *spec,
                      const struct hb_segment *segment)
{
    struct hb_open_cell *o = &s->open[index];
    struct hb_brute_limits limits = limits_of(s);
    limits.after_value = o->after_value;
    limits.after_place = o->after_place;
    struct hb_brute_choice *best = hb_arena_alloc(s->scratch, o->batch, sizeof *best);
    uint32_t count = hb_brute_best(s->scratch, segment, spec, &limits, o->batch, best);
    s->plan->counts.priced += (uint64_t)hb_brute_count(spec, s->plan->menus, true);
    for (uint32_t i = 0; i < count; i++)
        put_brute_choice(s, o->cell, segment, &best[i]);
    settle(s, o->cell, HB_FATE_SEARCHED, o->bound);
    if (count < o->batch)
        return;
    o->after_value = best[count - 1].value;
    o->after_place = best[count - 1].place;
    o->batch = o->batch < MOST_BATCH ? 4 * o->batch : MOST_BATCH;
    hb_queue_put(&s->queue, hb_search_value(s, o->cell, o->after_value, o->after_value), SEGMENT,
                 index);
}

static void take_batch(struct hb_search *s, uint32_t index)
{
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_spec spec;
    struct hb_segment segment;
    const char *why;
    hb_search_cell_spec(s, s->open[index].cell, &spec);
    struct hb_segment_ask ask = {&spec, s->plan->menus, s->ask->device, false, false};
    if (!hb_segment_build(s->scratch, &ask, &segment, &why))
        HB_BUG("segments of a cell that had them: %s", why);
    s->plan->counts.segments++;
    walk_cell(s, index, &spec, &segment);
    hb_arena_rewind(s->scratch, mark);
}

/* --- configurations --- */

bool hb_search_run(struct hb_search *s, const struct hb_choice *c, struct hb_memory *memory,
                   struct hb_timing *timing)
{
    struct hb_spec cell, spec;
    struct hb_program p;
    struct hb_diag diag;
    hb_search_cell_spec(s, c->cell, &cell);
    hb_space_parts_spec(s->scratch, &cell, s->plan->menus, c->runs, c->run_count, &spec);
    hb_diag_init(&diag, s->scratch);
    if (!hb_lower(s->scratch, &diag, &spec, &p))
        return false;
    hb_run_memory(s->scratch, &p, memory);
    bool fits =
        memory->peak_bytes <= s->ask->budget_bytes && memory->host_bytes <= s->ask->host_bytes;
    if (fits)
        hb_run_timing(s->scratch, &p, s->ask->device, timing);
    return fits;
}

static void run_entry(struct hb_search *s, uint32_t index)
{
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_memory memory = {0};
    struct hb_timing timing;
    struct hb_choice *c = &s->choices[index];
    bool fits = hb_search_run(s, c, &memory, &timing);
    s->plan->counts.runs++;
    s->plan->rows[c->cell].runs++;
    if (fits) {
        c->step_ns = timing.step_ns;
        c->peak_bytes = memory.peak_bytes;
        hb_queue_put(&s->queue, hb_search_value(s, c->cell, c->step_ns, c->peak_bytes), RUN, index);
    } else {
        s->plan->counts.cuts++;
    }
    hb_arena_rewind(s->scratch, mark);
}

struct hb_candidate hb_search_candidate(const struct hb_choice *c, double value)
{
    return (struct hb_candidate){c->cell,       c->runs,       c->run_count, c->step_ns,
                                 c->peak_bytes, c->live_bytes, c->bound_ns,  value};
}

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
    if (!same_node(x, y) || x->form != y->form || x->optimizer_offload != y->optimizer_offload ||
        (x->loss_chunks > 1) != (y->loss_chunks > 1))
        return false;
    for (uint32_t k = 0; k < (uint32_t)s->ask->spec->model.block_count; k++)
        if (main_policy(a->runs, a->run_count, k) != main_policy(b->runs, b->run_count, k))
            return false;
    return true;
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
        return;
    }
    if (same_kind(s, &p->best, c))
        return;
    for (uint32_t i = 0; i < p->alternative_count; i++)
        if (same_kind(s, &p->alternatives[i], c))
            return;
    p->alternatives[p->alternative_count++] = hb_search_candidate(c, value);
    s->done = p->alternative_count == s->ask->most_alternatives;
}

/* --- the search --- */

static void take_entry(struct hb_search *s, const struct hb_queue_entry *e)
{
    switch ((enum entry_kind)e->kind) {
    case NODE:
        take_node(s, e->index);
        return;
    case CELL:
        open_cell(s, e->index);
        return;
    case SEGMENT:
        take_batch(s, e->index);
        return;
    case CHOICE:
        if (s->probing) { /* cells without segments have no price, and tell nothing */
            s->done = s->choices[e->index].bound_ns > 0;
            s->probed = s->done ? s->choices[e->index].cell : s->probed;
            return;
        }
        run_entry(s, e->index);
        return;
    case RUN:
        accept(s, e->index, e->value);
        return;
    }
}

/* Once the plan is there, alternatives are worth so many runs more, and a fraction of the value. */
enum { RUNS_FOR_ALTERNATIVES = 200 };
static const double worst_alternative = 1.5;

static void search_all(struct hb_search *s)
{
    struct hb_queue_entry e;
    uint32_t runs_at_plan = 0;
    while (!s->done && hb_queue_take(&s->queue, &e)) {
        bool found = s->plan->found;
        bool late = s->until_ns && s->ask->env->now_ns() > s->until_ns;
        take_entry(s, &e);
        if (!found && s->plan->found)
            runs_at_plan = s->plan->counts.runs;
        if (late && s->plan->found)
            return;
        bool many = s->ask->most_runs && s->plan->counts.runs >= s->ask->most_runs;
        if (!s->plan->found && (late || many)) {
            s->plan->status = HB_PLAN_LIMIT;
            s->plan->gap = INFINITY;
            return;
        }
        if (s->plan->found && (s->plan->counts.runs > runs_at_plan + RUNS_FOR_ALTERNATIVES ||
                               e.value > s->plan->best.value * worst_alternative))
            return;
    }
}

static void make_menus(struct hb_search *s, uint32_t cell, uint32_t most)
{
    struct hb_spec spec;
    hb_search_cell_spec(s, cell, &spec);
    uint32_t tried = 0;
    s->plan->menus =
        hb_menu_make(s->arena, &spec, s->ask->device, s->plan->space.remat ? most : 1, &tried);
    s->plan->counts.policies_tried += tried;
}

/* What a search with other policies found out about a node, but for its floor. */
static void forget_node(struct hb_search *s, uint32_t index)
{
    struct hb_search_node *node = &s->nodes[index];
    enum hb_cell_fate fate = s->plan->rows[node->first].fate;
    bool out = node->stage == 0 && (fate == HB_FATE_REFUSED || fate == HB_FATE_MEMORY);
    if (out)
        return;
    node->stage = node->stage > 0 ? 1 : 0;
    node->layers_ns = 0;
    node->value = node->floor_value;
    settle_node(s, node, HB_FATE_NODE_BOUND, node->value);
    for (uint32_t i = node->first; i < node->end; i++)
        s->plan->rows[i].runs = 0;
}

/* All nodes again, as their floors have them. */
static void put_nodes(struct hb_search *s)
{
    s->queue.count = 0;
    s->open_count = s->choice_count = 0;
    s->done = false;
    for (uint32_t i = 0; i < s->node_count; i++) {
        struct hb_search_node *node = &s->nodes[i];
        if (s->plan->rows[node->first].fate == HB_FATE_REFUSED ||
            s->plan->rows[node->first].fate == HB_FATE_MEMORY)
            continue;
        hb_queue_put(&s->queue, node->value, NODE, i);
    }
}

/* Which policies are worth it is seen on two cells: that with the least floor, and that of the
 * first configuration that may fit with those policies, which is near where the plan will be. */
static void choose_menus(struct hb_search *s)
{
    uint32_t most = s->ask->most_policies ? s->ask->most_policies : HB_MENU_MOST;
    struct hb_queue_entry e;
    if (!hb_queue_take(&s->queue, &e)) { /* nothing can fit: any cell will do */
        make_menus(s, 0, most);
        return;
    }
    hb_queue_put(&s->queue, e.value, e.kind, e.index);
    bool small = !s->plan->space.remat || s->ask->most_policies > 0;
    make_menus(s, s->nodes[e.index].first, small ? most : most / 2);
    if (small)
        return;
    const char *lp_stem = s->lp_stem;
    s->lp_stem = NULL;
    s->probing = true;
    s->probed = s->nodes[e.index].first;
    while (!s->done && hb_queue_take(&s->queue, &e))
        take_entry(s, &e);
    s->probing = false;
    s->lp_stem = lp_stem;
    const struct hb_menu *first = s->plan->menus;
    make_menus(s, s->probed, most / 2);
    s->plan->menus = hb_menu_join(s->arena, s->ask->spec->model.block_count, s->plan->menus, first);
    for (uint32_t i = 0; i < s->node_count; i++)
        forget_node(s, i);
    put_nodes(s);
}

static double raw_count(const struct hb_search *s)
{
    double raw = 0;
    for (uint32_t i = 0; i < s->plan->space.cell_count; i++) {
        const struct hb_cell *c = &s->plan->space.cells[i];
        if (c->mesh[HB_AX_PIPELINE] == 1 && c->form != HB_FORM_LOOP) {
            raw += hb_brute_count(s->ask->spec, s->plan->menus, true);
            continue;
        }
        double whole = 1;
        for (int k = 0; k < s->ask->spec->model.block_count; k++)
            whole *= (double)count_run(&s->plan->menus[k]);
        raw += whole;
    }
    return raw;
}

bool hb_plan_find(struct hb_arena *arena, const struct hb_plan_ask *ask, struct hb_plan *out)
{
    int64_t start_ns = ask->env->now_ns();
    *out = (struct hb_plan){.status = HB_PLAN_INFEASIBLE};
    if (!hb_space_make(arena, ask->spec, ask->device, ask->devices, &out->space))
        return hb_error(ask->env->diag, (struct hb_loc){0},
                        "plan: no mesh of %lld devices that the model and the limits of plan.keep "
                        "admit",
                        (long long)ask->devices);
    struct hb_search s = {.arena = arena,
                          .scratch = hb_arena_new(),
                          .ask = ask,
                          .plan = out,
                          .lp_stem = ask->lp_stem,
                          .until_ns = ask->most_ns ? start_ns + ask->most_ns : 0};
    s.queue.arena = arena;
    out->rows = hb_arena_alloc(arena, out->space.cell_count, sizeof *out->rows);
    out->alternatives =
        hb_arena_alloc(arena, (size_t)ask->most_alternatives + 1, sizeof *out->alternatives);
    find_nodes(&s);
    for (uint32_t i = 0; i < s.node_count; i++)
        put_node(&s, i);
    choose_menus(&s);
    out->counts.raw = raw_count(&s);
    out->counts.cells = out->space.cell_count;
    out->counts.nodes = s.node_count;
    search_all(&s);
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
}

/* --- names --- */

const char *hb_plan_status_name(enum hb_plan_status status)
{
    static const char *const names[] = {"optimal", "infeasible", "limit"};
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
                                        "searched",
                                        "sizes beyond the range"};
    return names[fate];
}
