/* See torch_plan.h. */
#include "solver/torch_plan.h"

#include <math.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/env.h"
#include "base/size.h"
#include "hw/device.h"
#include "sim/engine/floor.h"
#include "sim/engine/interval.h"
#include "sim/engine/measure.h"
#include "sim/engine/run.h"
#include "base/queue.h"
#include "solver/stop.h"
#include "solver/torch_space.h"

enum { ENTRY_FLOOR, ENTRY_RUN };
/* Once the plan is there, alternatives are worth so many runs, and so much of its value. */
enum { RUNS_FOR_ALTERNATIVES = 60 };
static const double worst_alternative = 1.5;

struct search {
    struct hb_arena *arena;
    struct hb_arena *scratch;
    const struct hb_plan_ask *ask;
    struct hb_plan *plan;
    struct hb_torch_policies policies;
    int64_t *ns;        /* by cell: of its step; INT64_MAX: sizes beyond the range */
    int64_t *peaks;     /* by cell: its floor, then its peak */
    int64_t most_bytes; /* that a peak may be */
    struct hb_queue queue;
};

static bool by_memory(const struct search *s)
{
    return s->ask->objective == HB_OBJ_MEMORY;
}

static void cell_spec(const struct search *s, uint32_t cell, struct hb_spec *out)
{
    const struct hb_cell *c = &s->plan->space.cells[cell];
    hb_space_cell_spec(s->ask->spec, c, out);
    out->model.blocks = s->policies.blocks[c->torch.policy];
}

static double value_of(const struct search *s, uint32_t cell, int64_t bytes)
{
    const struct hb_cell *c = &s->plan->space.cells[cell];
    if (by_memory(s))
        return (double)bytes;
    if (s->ask->objective == HB_OBJ_STEP_TIME)
        return (double)s->ns[cell];
    return (double)s->ns[cell] / ((double)c->batch_global * (double)s->ask->spec->batch.seq);
}

/* What is known of all configurations alike: no record is like one more than like another. */
static int64_t most_bytes(const struct hb_plan_ask *ask)
{
    int64_t most = ask->budget_bytes;
    if (!(ask->confidence > 0))
        return most;
    int64_t sure = hb_interval_most_peak(ask->spec, ask->confidence, ask->whole_bytes);
    return sure < most ? sure : most;
}

static void settle(struct search *s, uint32_t cell, enum hb_cell_fate fate, double value)
{
    s->plan->rows[cell].fate = fate;
    s->plan->rows[cell].value = value;
}

/* --- steps --- */

static void price_cell(struct search *s, uint32_t cell)
{
    struct hb_spec spec;
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    cell_spec(s, cell, &spec);
    if (!hb_measure_step(s->scratch, &spec, s->ask->device, &s->ns[cell]))
        s->ns[cell] = INT64_MAX;
    s->plan->counts.priced++;
    hb_arena_rewind(s->scratch, mark);
}

/* False: it was cut off. */
static bool price_cells(struct search *s)
{
    const struct hb_plan *like = s->ask->like;
    uint32_t count = s->plan->space.cell_count;
    s->ns = hb_arena_alloc(s->arena, count, sizeof *s->ns);
    s->plan->cell_ns = s->ns;
    for (uint32_t i = 0; i < count; i++) {
        if (hb_stop_now(s->ask->stop))
            return false;
        if (like && like->cell_ns)
            s->ns[i] = like->cell_ns[i];
        else
            price_cell(s, i);
    }
    return true;
}

/* --- memory --- */

static int64_t floor_of(struct search *s, uint32_t cell)
{
    struct hb_spec spec;
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    cell_spec(s, cell, &spec);
    int64_t bytes = hb_floor_bytes(s->scratch, &spec, s->most_bytes);
    s->plan->counts.cell_floors++;
    hb_arena_rewind(s->scratch, mark);
    return bytes;
}

static int64_t peak_of(struct search *s, uint32_t cell)
{
    struct hb_spec spec;
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    int64_t bytes = INT64_MAX;
    cell_spec(s, cell, &spec);
    hb_measure_peak(s->scratch, &spec, &bytes);
    s->plan->counts.runs++;
    s->plan->rows[cell].runs++;
    if (bytes < s->peaks[cell])
        HB_BUG("cell %u takes %lld bytes, below its floor of %lld", cell, (long long)bytes,
               (long long)s->peaks[cell]);
    hb_arena_rewind(s->scratch, mark);
    return bytes;
}

static struct hb_candidate candidate_of(const struct search *s, uint32_t cell, double value)
{
    uint32_t policy = s->plan->space.cells[cell].torch.policy;
    return (struct hb_candidate){.cell = cell,
                                 .runs = s->policies.runs[policy],
                                 .run_count = (uint32_t)s->ask->spec->model.block_count,
                                 .step_ns = s->ns[cell],
                                 .peak_bytes = s->peaks[cell],
                                 .bound_ns = s->ns[cell],
                                 .value = value};
}

/* By their steps or, for the smallest peak, by their floors. False: it was cut off. */
static bool put_cells(struct search *s)
{
    s->peaks = hb_arena_alloc(s->arena, s->plan->space.cell_count, sizeof *s->peaks);
    for (uint32_t i = 0; i < s->plan->space.cell_count; i++) {
        if (hb_stop_now(s->ask->stop))
            return false;
        if (s->ns[i] == INT64_MAX) {
            settle(s, i, HB_FATE_REFUSED, INFINITY);
            continue;
        }
        if (by_memory(s))
            s->peaks[i] = floor_of(s, i);
        settle(s, i, HB_FATE_STEP, value_of(s, i, s->peaks[i]));
        hb_queue_put(&s->queue, s->plan->rows[i].value, ENTRY_FLOOR, i);
    }
    return true;
}

static bool same_kind(const struct search *s, uint32_t a, uint32_t b)
{
    const struct hb_cell *x = &s->plan->space.cells[a], *y = &s->plan->space.cells[b];
    bool same = x->torch.policy == y->torch.policy && x->torch.schedule == y->torch.schedule &&
                x->batch_global == y->batch_global;
    for (int i = 0; i < HB_AX_COUNT; i++)
        same = same && x->mesh[i] == y->mesh[i];
    return same;
}

static bool is_known(const struct search *s, uint32_t cell)
{
    const struct hb_plan *p = s->plan;
    bool known = p->found && same_kind(s, p->best.cell, cell);
    for (uint32_t i = 0; i < p->alternative_count && !known; i++)
        known = same_kind(s, p->alternatives[i].cell, cell);
    return known;
}

static void accept(struct search *s, uint32_t cell, double value)
{
    struct hb_plan *p = s->plan;
    struct hb_candidate c = candidate_of(s, cell, value);
    if (p->found) {
        if (!is_known(s, cell))
            p->alternatives[p->alternative_count++] = c;
        return;
    }
    p->found = true;
    p->status = HB_PLAN_OPTIMAL;
    p->best = c;
}

/* Runs what its floor does not exclude; what fits waits at its value. */
static void look_at(struct search *s, const struct hb_queue_entry *e)
{
    uint32_t cell = e->index;
    if (!by_memory(s))
        s->peaks[cell] = floor_of(s, cell);
    if (s->peaks[cell] > s->most_bytes) {
        settle(s, cell, HB_FATE_RANK_FLOOR, INFINITY);
        return;
    }
    s->peaks[cell] = peak_of(s, cell);
    bool fits = s->peaks[cell] <= s->most_bytes;
    double value = fits ? value_of(s, cell, s->peaks[cell]) : INFINITY;
    settle(s, cell, HB_FATE_SEARCHED, value);
    s->plan->counts.cuts += !fits;
    if (fits)
        hb_queue_put(&s->queue, value, ENTRY_RUN, cell);
}

static bool is_enough(const struct search *s, uint32_t before, double value)
{
    const struct hb_plan *p = s->plan;
    return p->alternative_count >= s->ask->most_alternatives ||
           p->counts.runs - before > RUNS_FOR_ALTERNATIVES ||
           value > p->best.value * worst_alternative;
}

static void cut_off(struct search *s)
{
    s->plan->status = HB_PLAN_LIMIT;
    s->plan->gap = INFINITY;
}

static void search(struct search *s)
{
    struct hb_queue_entry e;
    uint32_t before = 0;
    while (hb_queue_take(&s->queue, &e)) {
        bool found = s->plan->found;
        if (found && is_enough(s, before, e.value))
            return;
        if (hb_stop_now(s->ask->stop)) {
            if (!found)
                cut_off(s);
            return;
        }
        if (e.kind == ENTRY_RUN)
            accept(s, e.index, e.value);
        else if (!found || !is_known(s, e.index))
            look_at(s, &e);
        if (!found && s->plan->found)
            before = s->plan->counts.runs;
    }
}

static bool make_space(struct hb_arena *arena, const struct hb_plan_ask *ask, struct hb_plan *out)
{
    if (ask->like) {
        out->space = ask->like->space;
        return true;
    }
    return hb_torch_space_make(arena, ask->spec, ask->device, ask->devices, &out->space) ||
           hb_error(ask->env->diag, (struct hb_loc){0},
                    "plan: no mesh of %lld devices that the model and the limits of plan.keep "
                    "admit",
                    (long long)ask->devices);
}

static struct search open_search(struct hb_arena *arena, const struct hb_plan_ask *ask,
                                 struct hb_plan *plan)
{
    struct search s = {.arena = arena,
                       .scratch = hb_arena_new(),
                       .ask = ask,
                       .plan = plan,
                       .most_bytes = most_bytes(ask)};
    s.queue.arena = arena;
    hb_torch_policies_make(arena, ask->spec, plan->space.remat, &s.policies);
    return s;
}

bool hb_torch_plan_find(struct hb_arena *arena, const struct hb_plan_ask *ask, struct hb_plan *out)
{
    int64_t start_ns = ask->env->now_ns();
    *out = (struct hb_plan){.status = HB_PLAN_INFEASIBLE};
    if (!make_space(arena, ask, out))
        return false;
    struct search s = open_search(arena, ask, out);
    uint32_t cells = out->space.cell_count;
    out->menus = out->searched = s.policies.menus;
    out->rows = hb_arena_alloc(arena, cells, sizeof *out->rows);
    out->alternatives =
        hb_arena_alloc(arena, (size_t)ask->most_alternatives + 1, sizeof *out->alternatives);
    out->counts.raw = (double)cells;
    out->counts.cells = cells;
    if (price_cells(&s) && put_cells(&s))
        search(&s);
    else
        cut_off(&s);
    hb_arena_free(s.scratch);
    out->seconds = (double)(ask->env->now_ns() - start_ns) * 1e-9;
    return true;
}

bool hb_torch_plan_exhaust(struct hb_arena *arena, const struct hb_plan_ask *ask,
                           const struct hb_plan *plan, double most, struct hb_candidate *out_best,
                           bool *out_found)
{
    struct hb_plan copy = *plan;
    uint32_t cells = plan->space.cell_count;
    *out_found = false;
    if ((double)cells > most)
        return false;
    struct search s = open_search(arena, ask, &copy);
    copy.rows = hb_arena_alloc(arena, cells, sizeof *copy.rows);
    s.ns = hb_arena_alloc(arena, cells, sizeof *s.ns);
    s.peaks = hb_arena_alloc(arena, cells, sizeof *s.peaks);
    for (uint32_t i = 0; i < cells; i++) {
        price_cell(&s, i);
        s.peaks[i] = s.ns[i] < INT64_MAX ? peak_of(&s, i) : INT64_MAX;
        double value = value_of(&s, i, s.peaks[i]);
        if (s.peaks[i] > s.most_bytes || (*out_found && value >= out_best->value))
            continue;
        *out_best = candidate_of(&s, i, value);
        *out_found = true;
    }
    hb_arena_free(s.scratch);
    return true;
}
