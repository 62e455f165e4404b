/* Cells: see cells.h. */
#include "solver/cells.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/engine/interval.h"
#include "sim/engine/step.h"
#include "solver/bound.h"
#include "solver/ilp.h"
#include "solver/menu.h"
#include "solver/nodes.h"

enum { FIRST_BATCH = 16, MOST_BATCH = 1024 };

void hb_cells_put(struct hb_search *s, const struct hb_open_cell *cell)
{
    s->open = hb_grow(s->arena, s->open, s->open_count, &s->open_cap, sizeof *s->open);
    s->open[s->open_count] = *cell;
    s->open[s->open_count].batch = FIRST_BATCH;
    s->open[s->open_count].after_value = -1;
    s->open[s->open_count].share = hb_search_first_share(s, HB_SHARE_ASKED);
    hb_queue_put(&s->queue, cell->bound, HB_ENTRY_BARE, s->open_count++);
}

static struct hb_brute_limits limits_of(const struct hb_search *s, uint32_t cell,
                                        enum hb_share share)
{
    bool memory = hb_search_by_memory(s);
    int64_t peak_bytes = hb_search_peak_bytes(s, cell);
    int64_t cut_bytes = hb_search_cut_bytes(s, cell, share);
    return (struct hb_brute_limits){.goal = memory ? HB_GOAL_MEMORY : HB_GOAL_TIME,
                                    .budget_bytes = hb_smaller(peak_bytes, cut_bytes - 1),
                                    .host_bytes = s->ask->host_bytes,
                                    .most_value = hb_search_ceiling(s, cell),
                                    .after_value = -1,
                                    .stop = s->ask->stop};
}

static struct hb_segment_ask segment_ask_of(const struct hb_search *s, const struct hb_spec *spec)
{
    return (struct hb_segment_ask){.spec = spec,
                                   .menus = s->plan->searched,
                                   .device = s->ask->device,
                                   .bytes_only = hb_search_by_memory(s)};
}

static bool is_of(const struct hb_kept_segment *k, const struct hb_search *s, uint32_t cell,
                  enum hb_share share)
{
    return k->arena && k->menus == s->plan->searched && k->cell == cell && k->share == share;
}

/* The cell's, else that which was not asked for the longest. */
static struct hb_kept_segment *find_kept(struct hb_search *s, uint32_t cell, enum hb_share share)
{
    struct hb_kept_segment *oldest = &s->kept[0];
    for (int i = 0; i < HB_KEPT_SEGMENTS; i++) {
        if (is_of(&s->kept[i], s, cell, share))
            return &s->kept[i];
        oldest = s->kept[i].turn < oldest->turn ? &s->kept[i] : oldest;
    }
    return oldest;
}

static void build_kept(struct hb_search *s, struct hb_kept_segment *k, uint32_t cell,
                       enum hb_share share)
{
    const char *why;
    if (!k->arena) {
        k->arena = hb_arena_new();
        k->start = hb_arena_mark(k->arena);
    }
    hb_arena_rewind(k->arena, k->start);
    hb_search_priced_spec(s, cell, share, &k->spec);
    struct hb_segment_ask ask = segment_ask_of(s, &k->spec);
    ask.untried = s->spreads && share == HB_SHARE_EXCEEDED; /* no price holds: hb_search_is_asked */
    k->built = hb_segment_build(k->arena, &ask, &k->segment, &why);
    k->menus = s->plan->searched;
    k->cell = cell;
    k->share = share;
}

/* The cell's segment; null: it has none. */
static const struct hb_kept_segment *find_segment(struct hb_search *s, uint32_t cell,
                                                  enum hb_share share)
{
    struct hb_kept_segment *k = find_kept(s, cell, share);
    if (!is_of(k, s, cell, share))
        build_kept(s, k, cell, share);
    k->turn = ++s->turns;
    return k->built ? k : NULL;
}

void hb_cells_forget(struct hb_search *s)
{
    for (int i = 0; i < HB_KEPT_SEGMENTS; i++)
        hb_arena_free(s->kept[i].arena);
}

/* Its runs are copied. */
static void put_choice(struct hb_search *s, struct hb_choice c, double value)
{
    c.runs = hb_brute_copy_runs(s->arena, c.runs, c.run_count);
    s->choices = hb_grow(s->arena, s->choices, s->choice_count, &s->choice_cap, sizeof c);
    s->choices[s->choice_count] = c;
    hb_queue_put(&s->queue, value, HB_ENTRY_CHOICE, s->choice_count++);
}

/* Choices without a price. */
struct put_bare {
    struct hb_search *s;
    const struct hb_segment *segment; /* null: the cell has none */
    uint32_t cell;
    double bound;
};

static void put_runs(void *context, const struct hb_run *runs, uint32_t count)
{
    struct put_bare *p = context;
    struct hb_choice c = {.cell = p->cell, .runs = runs, .run_count = count};
    put_choice(p->s, c, p->bound);
}

static bool put_odd(void *context, const struct hb_part *parts, uint32_t count)
{
    struct put_bare *p = context;
    struct hb_run runs[HB_PARTS_MAX];
    put_runs(p, runs, hb_brute_runs(p->segment, p->s->ask->spec, parts, count, runs));
    return true;
}

/* Where only the best value is asked for: the search that has to run or to price so many more is
 * given up, whatever they come to. */
static bool is_too_much(struct hb_search *s, double runs, double prices)
{
    const struct hb_plan_counts *c = &s->plan->counts;
    const struct hb_plan_ask *ask = s->ask;
    if (ask->value_only)
        s->given_up = (ask->most_runs && c->runs + runs >= ask->most_runs) ||
                      (ask->most_priced && (double)c->priced + prices >= (double)ask->most_priced);
    return s->given_up;
}

/* --- cells with segments --- */

static const char *lp_path(struct hb_search *s)
{
    if (!s->lp_stem)
        return NULL;
    return hb_arena_printf(s->scratch, "%s-%u.lp", s->lp_stem, ++s->lp_count);
}

/* Cells with more configurations than this get an integer program before they are walked. */
static const double walked_at_once = 2e6;

static void put_brute_choice(struct hb_search *s, const struct hb_open_cell *o,
                             const struct hb_segment *segment, const struct hb_brute_choice *b)
{
    uint32_t cell = o->cell;
    struct hb_run runs[HB_PARTS_MAX];
    struct hb_choice c = {.cell = cell,
                          .runs = runs,
                          .share = o->share,
                          .live_bytes = b->price.live_bytes,
                          .bound_ns = b->price.bound_ns};
    c.run_count = hb_brute_runs(segment, s->ask->spec, b->parts, b->count, runs);
    put_choice(s, c, hb_search_value(s, cell, b->price.bound_ns, b->price.live_bytes));
}

/* The next best configurations of a cell; the cell waits for its turn with the worst of them. */
static void walk_cell(struct hb_search *s, uint32_t index, const struct hb_spec *spec,
                      const struct hb_segment *segment)
{
    struct hb_open_cell *o = &s->open[index];
    struct hb_brute_limits limits = limits_of(s, o->cell, o->share);
    limits.most_value = hb_search_near(s, limits.most_value, HB_NEAR_PLAN);
    limits.after_value = o->after_value;
    limits.after_place = o->after_place;
    struct hb_brute_choice *best = hb_arena_alloc(s->scratch, o->batch, sizeof *best);
    double all = hb_brute_count(spec, s->plan->searched, true);
    s->plan->counts.priced += (uint64_t)all;
    hb_search_spend_prices(s, all);
    uint32_t count = hb_brute_best(s->scratch, segment, spec, &limits, o->batch, best);
    for (uint32_t i = 0; i < count; i++)
        put_brute_choice(s, o, segment, &best[i]);
    if (hb_stop_now(s->ask->stop)) /* there may be better ones */
        return;
    hb_search_settle(s, o->cell, HB_FATE_SEARCHED, o->bound);
    if (count < o->batch)
        return;
    o->after_value = best[count - 1].value;
    o->after_place = best[count - 1].place;
    o->batch = o->batch < MOST_BATCH ? 4 * o->batch : MOST_BATCH;
    hb_queue_put(&s->queue, hb_search_value(s, o->cell, o->after_value, o->after_value),
                 HB_ENTRY_SEGMENT, index);
}

/* Whether its node's layers were looked at more closely since it was put into the queue: then it
 * goes back to where it belongs now. */
static bool raise_cell(struct hb_search *s, uint32_t index)
{
    struct hb_open_cell *o = &s->open[index];
    double value = hb_nodes_cell_bound(s, o);
    if (value <= o->bound)
        return false;
    o->bound = value;
    hb_search_settle(s, o->cell, HB_FATE_LAYER_BOUND, value);
    if (value < INFINITY)
        hb_queue_put(&s->queue, value, HB_ENTRY_CELL, index);
    return true;
}

/* What the turns of the layers take in any scan of the node with that place, whatever its chunks;
 * with states on the host more of them may come before the layers beside whole logits than beside
 * chunks. Not where some item is not what the sums say. */
static void look_closely(struct hb_search *s, const struct hb_open_cell *o,
                         const struct hb_segment *segment)
{
    struct hb_search_node *node = &s->nodes[o->node];
    struct hb_cell cell = s->plan->space.cells[o->cell];
    int64_t *turns_ns = node->turns_ns[cell.optimizer_offload];
    bool chunks = cell.loss_chunks > 1, alike = cell.optimizer_offload == HB_PLACE_NONE;
    bool holds = cell.form == HB_FORM_SCAN && node->layers_ns > 0 && turns_ns[chunks] == 0 &&
                 !hb_search_is_asked(s);
    for (uint32_t i = 0; i < segment->item_count; i++)
        holds = holds && !segment->odd_whole[i] && !segment->odd_split[i];
    if (!holds)
        return;
    struct hb_bound_limits none = {.known_bytes = INT64_MAX}; /* no times */
    struct hb_spec spec;
    struct hb_floor floor;
    cell.loss_chunks = 1;
    hb_space_cell_spec(s->plan->space.base, &cell, &spec);
    if (!hb_bound_node(s->scratch, &spec, s->ask->device, none, &floor))
        return;
    struct hb_layers_ask ask =
        hb_search_layers_ask(s, o->cell, &spec, hb_search_node_peak_bytes(s, node));
    ask.fixed_bytes = floor.fixed_bytes;
    turns_ns[chunks] = hb_bound_turns(s->scratch, segment, &ask);
    if (alike)
        turns_ns[!chunks] = turns_ns[chunks];
}

/* The optimum of its integer program raises its bound. */
static void solve_cell(struct hb_search *s, uint32_t index, const struct hb_spec *spec,
                       const struct hb_segment *segment)
{
    struct hb_open_cell *o = &s->open[index];
    struct hb_ilp_answer answer;
    struct hb_ilp_ask ilp = {.segment = segment,
                             .spec = spec,
                             .leave_out = hb_menu_find_beaten(s->scratch, segment),
                             .limits = limits_of(s, o->cell, o->share),
                             .lp_file = lp_path(s)};
    hb_ilp_solve(s->scratch, &ilp, &answer);
    s->plan->counts.ilps++;
    s->plan->counts.ilps_proven += answer.proven;
    s->plan->rows[o->cell].proven = answer.proven;
    if (answer.status == HB_ILP_INFEASIBLE) {
        hb_search_settle(s, o->cell, HB_FATE_ILP_EMPTY, INFINITY);
        return;
    }
    if (answer.status == HB_ILP_OPTIMAL) {
        double value = hb_search_value(s, o->cell, answer.bound, answer.bound);
        o->bound = value > o->bound ? value : o->bound;
        hb_search_settle(s, o->cell, HB_FATE_ILP_BOUND, o->bound);
    }
    hb_queue_put(&s->queue, o->bound, HB_ENTRY_SEGMENT, index);
}

/* What is known of a node's nested scans in so many outer steps; made where there is nothing. */
static struct hb_nested_out *nested_out(struct hb_search *s, struct hb_search_node *node,
                                        int64_t outer)
{
    for (uint32_t i = 0; i < node->nested_count; i++)
        if (node->nested[i].outer == outer)
            return &node->nested[i];
    node->nested = hb_grow(s->arena, node->nested, node->nested_count, &node->nested_cap,
                           sizeof *node->nested);
    node->nested[node->nested_count] = (struct hb_nested_out){.outer = outer};
    return &node->nested[node->nested_count++];
}

/* Whether a nested scan's layers alone, with what is fixed in the node's leanest cells, take too
 * long or too much under every policy of the menus: then so do those of as many outer steps within
 * no more, whatever the chunks and the place. */
static bool is_nested_out(struct hb_search *s, const struct hb_open_cell *o)
{
    struct hb_search_node *node = &s->nodes[o->node];
    struct hb_cell cell = s->plan->space.cells[o->cell];
    struct hb_bound_limits none = {.known_bytes = INT64_MAX}; /* no times */
    struct hb_spec spec;
    struct hb_floor floor;
    if (cell.form != HB_FORM_NESTED || hb_search_by_memory(s) || s->filling ||
        !hb_nodes_has_layers(s))
        return false;
    int64_t most_bytes = hb_search_peak_bytes(s, o->cell);
    struct hb_nested_out *known = nested_out(s, node, cell.outer);
    if (most_bytes <= known->most_bytes)
        return known->out;
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    hb_nodes_floor_spec(s, node, &spec);
    known->most_bytes = most_bytes;
    known->out = hb_bound_node(s->scratch, &spec, s->ask->device, none, &floor);
    if (known->out) {
        cell.loss_chunks = 1;
        cell.optimizer_offload = HB_PLACE_NONE;
        hb_space_cell_spec(s->plan->space.base, &cell, &spec);
        struct hb_layers_ask ask = hb_search_layers_ask(s, o->cell, &spec, most_bytes);
        ask.fixed_bytes = floor.fixed_bytes;
        int64_t layers_ns = hb_nodes_layers_ns(s, &ask, ask.most_ns);
        known->out = layers_ns == INT64_MAX || layers_ns > ask.most_ns;
    }
    hb_arena_rewind(s->scratch, mark);
    s->plan->counts.layer_bounds++;
    hb_search_spend(s, HB_EFFORT_LAYERS);
    return known->out;
}

/* --- configurations --- */

static bool lower_choice(struct hb_search *s, const struct hb_choice *c, struct hb_spec *spec,
                         struct hb_program *out)
{
    struct hb_spec cell;
    struct hb_diag diag;
    hb_search_cell_spec(s, c->cell, &cell);
    hb_space_parts_spec(s->scratch, &cell, s->plan->menus, c->runs, c->run_count, spec);
    hb_diag_init(&diag, s->scratch);
    return hb_step_link(s->scratch, &diag, spec, out);
}

/* With its upper end where that is asked for. */
static bool is_within(const struct hb_search *s, uint32_t cell, const struct hb_spec *spec,
                      int64_t peak_bytes)
{
    const struct hb_plan_ask *ask = s->ask;
    return peak_bytes <= hb_search_peak_bytes(s, cell) &&
           (!(ask->confidence > 0) ||
            hb_interval_high(spec, ask->confidence, peak_bytes) <= ask->whole_bytes);
}

/* For the certificate. */
static void record(struct hb_search *s, const struct hb_choice *c, const struct hb_spec *spec,
                   const struct hb_memory *memory, bool fits, int64_t step_ns)
{
    struct hb_plan *p = s->plan;
    double confidence = s->ask->confidence;
    if (!s->ask->keep_runs)
        return;
    p->ran = hb_grow(s->arena, p->ran, p->ran_count, &p->ran_cap, sizeof *p->ran);
    struct hb_ran *r = &p->ran[p->ran_count++];
    *r = (struct hb_ran){.cell = c->cell,
                         .part_count = c->run_count,
                         .fits = fits,
                         .step_ns = step_ns,
                         .peak_bytes = memory->peak_bytes,
                         .limit_bytes = hb_search_peak_bytes(s, c->cell),
                         .host_bytes = memory->host_bytes};
    if (confidence > 0)
        r->high_bytes = hb_interval_high(spec, confidence, memory->peak_bytes);
    r->parts = hb_arena_alloc(s->arena, c->run_count, sizeof *r->parts);
    for (uint32_t i = 0; i < c->run_count; i++) {
        const struct hb_run *run = &c->runs[i];
        r->parts[i] = (struct hb_ran_part){run->block, run->steps,
                                           p->menus[run->block].policies[run->policy]};
    }
}

bool hb_search_fills_layers(const struct hb_program *p, const struct hb_memory *memory)
{
    uint32_t loop = memory->peak_op < 0 ? HB_NONE : p->ops[memory->peak_op].loop;
    return loop != HB_NONE && !hb_str_same(p->loops[loop].name, "microbatches") &&
           !hb_str_starts(p->loops[loop].name, "loss chunks");
}

bool hb_search_run(struct hb_search *s, struct hb_choice *c, struct hb_memory *memory,
                   int64_t *out_step_ns)
{
    struct hb_program p;
    struct hb_spec spec;
    if (!lower_choice(s, c, &spec, &p))
        return false;
    c->made = p.share;
    if (!hb_search_is_priced(c))
        c->live_bytes = c->bound_ns = 0;
    hb_run_memory_live(s->scratch, &p, memory);
    c->fills_layers = hb_search_fills_layers(&p, memory);
    if (!is_within(s, c->cell, &spec, memory->peak_bytes)) {
        record(s, c, &spec, memory, false, 0);
        return false;
    }
    hb_run_memory_pack(s->scratch, &p, memory);
    bool fits = is_within(s, c->cell, &spec, memory->peak_bytes) &&
                memory->host_bytes <= s->ask->host_bytes;
    if (fits)
        *out_step_ns = hb_run_step_ns(s->scratch, &p, s->ask->device);
    record(s, c, &spec, memory, fits, fits ? *out_step_ns : 0);
    return fits;
}

/* Of splits the sums are tried on some pairs of policies (segment_check.c): one that the engine
 * finds otherwise is another odd one, and what was said of it is dropped. */
static bool is_odd_split(const struct hb_search *s, const struct hb_choice *c)
{
    return c->run_count > (uint32_t)s->ask->spec->model.block_count &&
           (c->bound_ns > c->step_ns || c->live_bytes > c->peak_bytes);
}

/* What was found around a plan stands in its menus behind those that were searched. */
static bool is_listed(const struct hb_search *s, const struct hb_choice *c)
{
    for (uint32_t i = 0; i < c->run_count; i++)
        if (c->runs[i].policy >= s->plan->searched[c->runs[i].block].count)
            return false;
    return true;
}

bool hb_cells_try(struct hb_search *s, struct hb_choice *c)
{
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_memory memory = {0};
    int64_t priced_bytes = c->live_bytes;
    bool fits = hb_search_run(s, c, &memory, &c->step_ns);
    c->peak_bytes = memory.peak_bytes;
    if (fits) {
        bool odd = is_odd_split(s, c);
        if (odd) {
            c->live_bytes = c->bound_ns = 0;
            s->plan->counts.odd++;
        }
        hb_search_check(s, c, !odd && is_listed(s, c));
        double value = hb_search_value_of(s, c);
        s->incumbent = value < s->incumbent && !s->filling ? value : s->incumbent;
    }
    hb_arena_rewind(s->scratch, mark);
    s->plan->counts.runs++;
    s->plan->counts.cuts += !fits;
    hb_search_spend(s, 1);
    if (!fits && priced_bytes > 0) {
        struct hb_cuts *cuts = hb_search_cuts(s, c->cell, c->share);
        cuts->least_bytes =
            cuts->count++ ? hb_smaller(cuts->least_bytes, priced_bytes) : priced_bytes;
    }
    return fits;
}

/* Where the least peak is looked for, a choice without a price waits for its turn with its live
 * bytes, which are found without packing and without times. */
static bool put_back(struct hb_search *s, uint32_t index)
{
    struct hb_choice *c = &s->choices[index];
    if (!hb_search_by_memory(s) || c->live_bytes > 0 || c->floor_bytes > 0)
        return false;
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_program p;
    struct hb_spec spec;
    struct hb_memory memory;
    if (lower_choice(s, c, &spec, &p)) {
        hb_run_memory_live(s->scratch, &p, &memory);
        c->floor_bytes = memory.peak_bytes;
    }
    hb_arena_rewind(s->scratch, mark);
    if (c->floor_bytes > 0)
        hb_queue_put(&s->queue, (double)c->floor_bytes, HB_ENTRY_CHOICE, index);
    return c->floor_bytes > 0;
}

void hb_cells_run(struct hb_search *s, uint32_t index)
{
    struct hb_choice *c = &s->choices[index];
    if (put_back(s, index) || c->live_bytes >= hb_search_cut_bytes(s, c->cell, c->share))
        return;
    s->plan->rows[c->cell].runs++;
    if (hb_cells_try(s, c))
        hb_queue_put(&s->queue, hb_search_value_of(s, c), HB_ENTRY_RUN, index);
}

void hb_cells_put_run(struct hb_search *s, const struct hb_choice *c)
{
    double value = hb_search_value_of(s, c);
    s->choices = hb_grow(s->arena, s->choices, s->choice_count, &s->choice_cap, sizeof *c);
    s->choices[s->choice_count] = *c;
    s->incumbent = value < s->incumbent && !s->filling ? value : s->incumbent;
    hb_queue_put(&s->queue, value, HB_ENTRY_RUN, s->choice_count++);
}

/* How many of a cell are run in one round of a dive, how many rounds there are, and how many are
 * looked for at once. */
enum { DIVE_TRIES = 4, DIVE_ROUNDS = 6, DIVE_LISTED = 16, DIVE_RUNGS = 6 };

/* Tries the best by their prices, one after another. False: none fits, and by how much the one that
 * came nearest exceeds the limit. */
static bool dive_round(struct hb_search *s, const struct hb_segment *segment,
                       const struct hb_brute_choice *best, uint32_t count, struct hb_choice *c,
                       int64_t *over)
{
    bool checked = !s->ask->polish;
    int64_t limit = hb_search_peak_bytes(s, c->cell);
    *over = INT64_MAX;
    for (uint32_t i = 0; i < count && !hb_stop_now(s->ask->stop); i++) {
        struct hb_run runs[HB_PARTS_MAX];
        c->runs = runs;
        c->live_bytes = checked ? best[i].price.live_bytes : 0;
        c->bound_ns = checked ? best[i].price.bound_ns : 0;
        c->run_count = hb_brute_runs(segment, s->ask->spec, best[i].parts, best[i].count, runs);
        if (hb_cells_try(s, c)) {
            c->runs = hb_brute_copy_runs(s->arena, runs, c->run_count);
            return true;
        }
        *over = hb_smaller(*over, c->peak_bytes - limit);
        s->full |= c->fills_layers ? HB_FULL_LAYERS : HB_FULL_ENDS;
        c->runs = NULL;
    }
    return false;
}

/* The best of a dive's next round: of a list that has the best within more than is allowed now,
 * those that are within this are the best of it. */
struct dive_list {
    struct hb_brute_choice all[DIVE_LISTED];
    uint32_t count;
    bool known;
};

/* Moves them to the front; false: there may be others, too. */
static bool take_within(struct dive_list *l, int64_t budget_bytes)
{
    bool whole = l->count < DIVE_LISTED;
    uint32_t left = 0;
    for (uint32_t i = 0; i < l->count; i++)
        if (l->all[i].price.live_bytes <= budget_bytes)
            l->all[left++] = l->all[i];
    l->count = left;
    return whole || left >= DIVE_TRIES;
}

static void list_within(struct hb_search *s, const struct hb_segment *segment,
                        const struct hb_spec *spec, const struct hb_brute_limits *limits,
                        struct dive_list *l)
{
    if (!l->known || !take_within(l, limits->budget_bytes)) {
        l->count = hb_brute_best(s->scratch, segment, spec, limits, DIVE_LISTED, l->all);
        s->plan->counts.dived += (uint64_t)hb_brute_count(spec, s->plan->searched, true);
    }
    l->known = true;
}

/* What fills the limit to the byte by its live bytes does not once packed: as much less is allowed
 * in the next round as there was too much, and a little. */
static bool dive_segment(struct hb_search *s, const struct hb_choice *from,
                         const struct hb_spec *spec, const struct hb_segment *segment,
                         struct hb_choice *out)
{
    struct hb_brute_limits limits = limits_of(s, from->cell, from->share);
    limits.most_value = hb_search_near(s, limits.most_value, HB_NEAR_DIVE);
    struct hb_choice c = *from;
    struct dive_list list = {.known = false};
    bool fits = false;
    for (int round = 0; round < DIVE_ROUNDS && !fits; round++) {
        int64_t over, least = limits.budget_bytes / 64;
        list_within(s, segment, spec, &limits, &list);
        uint32_t count = list.count < DIVE_TRIES ? list.count : DIVE_TRIES;
        fits = dive_round(s, segment, list.all, count, &c, &over);
        if (over == INT64_MAX) /* there are none, or it is late */
            break;
        limits.budget_bytes -= hb_larger(over, least);
    }
    if (fits)
        *out = c;
    return fits;
}

/* All blocks under the same rung of their menus, from what keeps nothing (0) up. */
static bool dive_rung(struct hb_search *s, uint32_t rung, struct hb_choice *c)
{
    const struct hb_model *m = &s->ask->spec->model;
    struct hb_run runs[HB_PARTS_MAX];
    c->runs = runs;
    c->run_count = (uint32_t)m->block_count;
    for (uint32_t i = 0; i < c->run_count; i++) {
        uint32_t last = s->plan->menus[i].count - 1;
        runs[i] = (struct hb_run){i, rung < last ? rung : last, hb_block_steps(&m->blocks[i])};
    }
    bool fits = hb_cells_try(s, c);
    c->runs = fits ? hb_brute_copy_runs(s->arena, runs, c->run_count) : NULL;
    return fits;
}

/* A rung that fits, the highest from the first of a few on that does, by halves: menus are in the
 * order of another cell's bytes. None where those that are tried first take more and more. */
static bool dive_bare(struct hb_search *s, uint32_t cell, struct hb_choice *out)
{
    uint32_t low = 0, high = 0;
    int64_t peak_bytes = INT64_MAX;
    struct hb_choice c = {.cell = cell};
    for (int i = 0; i < s->ask->spec->model.block_count; i++)
        high = s->plan->menus[i].count > high ? s->plan->menus[i].count : high;
    *out = c;
    while (!dive_rung(s, low, out)) {
        low += high / DIVE_RUNGS + 1;
        if (low >= high || out->peak_bytes >= peak_bytes || hb_stop_now(s->ask->stop))
            return false;
        peak_bytes = out->peak_bytes;
    }
    while (high - low > 1 && !hb_stop_now(s->ask->stop)) {
        uint32_t middle = low + (high - low) / 2;
        bool fits = dive_rung(s, middle, &c);
        low = fits ? middle : low;
        high = fits ? high : middle;
        if (fits && c.step_ns < out->step_ns)
            *out = c;
    }
    return true;
}

static bool dive_as(struct hb_search *s, uint32_t cell, enum hb_share share, struct hb_choice *out)
{
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_choice from = {.cell = cell, .share = share};
    struct hb_spec spec;
    struct hb_segment segment;
    const char *why;
    hb_search_priced_spec(s, cell, share, &spec);
    struct hb_segment_ask ask = segment_ask_of(s, &spec);
    ask.unchecked = s->ask->polish;
    bool found = hb_segment_build(s->scratch, &ask, &segment, &why)
                     ? dive_segment(s, &from, &spec, &segment, out)
                     : s->ask->polish && dive_bare(s, cell, out);
    hb_arena_rewind(s->scratch, mark);
    return found;
}

static bool is_twofold(const struct hb_search *s)
{
    return hb_search_is_asked(s) && (s->spreads || hb_search_is_exact(s));
}

bool hb_cells_dive(struct hb_search *s, uint32_t cell, struct hb_choice *out)
{
    struct hb_choice other;
    s->full = 0;
    bool found = dive_as(s, cell, hb_search_first_share(s, HB_SHARE_ASKED), out);
    if (!is_twofold(s) || !dive_as(s, cell, HB_SHARE_EXCEEDED, &other))
        return found;
    if (!found || other.step_ns < out->step_ns)
        *out = other;
    return true;
}

/* --- opened --- */

/* Where not all is to be searched, the best rung that fits, instead of each of some policies of
 * each block with each: around the best of all is polished. */
static void dive_again(struct hb_search *s, const struct hb_open_cell *o)
{
    struct hb_choice c;
    if (!s->probing && dive_bare(s, o->cell, &c))
        hb_cells_put_run(s, &c);
}

static bool may_dive(const struct hb_search *s)
{
    return !hb_search_is_whole(s) && !hb_search_by_memory(s);
}

/* More odd ones than this are not run one by one. */
enum { MOST_ODD = 8 };

static bool count_odd(void *context, const struct hb_part *parts, uint32_t count)
{
    uint32_t *odd = context;
    (void)parts;
    (void)count;
    return ++*odd <= MOST_ODD;
}

/* What the sums do not hold for. */
static void open_odd(struct hb_search *s, const struct hb_open_cell *o, const struct hb_spec *spec,
                     const struct hb_segment *segment)
{
    struct put_bare odd = {s, segment, o->cell, o->bound};
    uint32_t count = 0;
    if (may_dive(s))
        hb_brute_each_odd(segment, spec, count_odd, &count);
    if (count > MOST_ODD)
        dive_again(s, o);
    else
        hb_brute_each_odd(segment, spec, put_odd, &odd);
}

static void open_segment(struct hb_search *s, uint32_t index, const struct hb_spec *spec,
                         const struct hb_segment *segment)
{
    const struct hb_open_cell *o = &s->open[index];
    s->plan->counts.segments++;
    hb_search_spend_segment(s);
    look_closely(s, o, segment);
    open_odd(s, o, spec, segment);
    if (!s->lp_stem && hb_brute_count(spec, s->plan->searched, true) <= walked_at_once)
        walk_cell(s, index, spec, segment);
    else
        solve_cell(s, index, spec, segment);
}

/* A cell without prices. */
static void open_bare(struct hb_search *s, const struct hb_open_cell *o)
{
    struct put_bare bare = {s, NULL, o->cell, o->bound};
    struct hb_spec spec;
    hb_search_cell_spec(s, o->cell, &spec);
    if (may_dive(s))
        dive_again(s, o);
    else if (!is_too_much(s, hb_brute_count_combinations(&spec, s->plan->searched), 0))
        hb_brute_each_combination(&spec, s->plan->searched, put_runs, &bare);
}

/* The cell's steps beyond the compiler's share. */
static void put_beyond(struct hb_search *s, const struct hb_open_cell *o)
{
    struct hb_open_cell again = *o;
    again.share = HB_SHARE_EXCEEDED;
    s->open = hb_grow(s->arena, s->open, s->open_count, &s->open_cap, sizeof *s->open);
    s->open[s->open_count] = again;
    hb_queue_put(&s->queue, again.bound, HB_ENTRY_CELL, s->open_count++);
}

/* Each of the cell's, without a price. */
static void open_each(struct hb_search *s, const struct hb_open_cell *o, const struct hb_spec *spec,
                      const struct hb_segment *segment)
{
    struct put_bare all = {s, segment, o->cell, o->bound};
    hb_search_settle(s, o->cell, HB_FATE_SEARCHED, o->bound);
    if (is_too_much(s, hb_brute_count(spec, s->plan->searched, true), 0))
        return;
    hb_brute_each(segment, spec, put_odd, &all);
    hb_brute_each_odd(segment, spec, put_odd, &all);
}

void hb_cells_open(struct hb_search *s, uint32_t index)
{
    if (raise_cell(s, index))
        return;
    const struct hb_open_cell *o = &s->open[index];
    if (is_nested_out(s, o)) { /* nothing of it is within the limits and below the plan */
        hb_search_settle(s, o->cell, HB_FATE_SEARCHED, o->bound);
        return;
    }
    if (is_too_much(s, 0, hb_brute_count(s->ask->spec, s->plan->searched, true)))
        return;
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    const struct hb_kept_segment *own = find_segment(s, o->cell, o->share);
    if (own && hb_search_is_asked(s) && s->spreads && hb_search_is_exact(s)) {
        open_each(s, o, &own->spec, &own->segment);
    } else if (own) {
        if (is_twofold(s) && o->share != HB_SHARE_EXCEEDED)
            put_beyond(s, o);
        open_segment(s, index, &own->spec, &own->segment);
    } else {
        hb_search_settle(s, o->cell, HB_FATE_SEARCHED, o->bound);
        open_bare(s, o);
    }
    hb_arena_rewind(s->scratch, mark);
}

void hb_cells_walk(struct hb_search *s, uint32_t index)
{
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    const struct hb_open_cell *o = &s->open[index];
    const struct hb_kept_segment *own = find_segment(s, o->cell, o->share);
    if (!own)
        HB_BUG("a cell that had segments has none");
    s->plan->counts.segments++;
    hb_search_spend_segment(s);
    walk_cell(s, index, &own->spec, &own->segment);
    hb_arena_rewind(s->scratch, mark);
}
