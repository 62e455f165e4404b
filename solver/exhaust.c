/* The plan by brute force: every configuration of the space is run. See plan.h. */
#include <math.h>

#include "base/arena.h"
#include "solver/search.h"
#include "solver/torch_plan.h"

struct exhaust {
    struct hb_search *s;
    uint32_t cell;
    struct hb_candidate *best;
    bool found;
};

static void try_exhaust(void *context, const struct hb_run *runs, uint32_t count)
{
    struct exhaust *x = context;
    struct hb_arena_mark mark = hb_arena_mark(x->s->scratch);
    struct hb_memory memory = {0};
    struct hb_choice c = {.cell = x->cell, .runs = runs, .run_count = count};
    bool fits = hb_search_run(x->s, &c, &memory, &c.step_ns);
    double value = fits ? hb_search_value(x->s, c.cell, c.step_ns, memory.peak_bytes) : INFINITY;
    if (fits && (!x->found || value < x->best->value)) {
        c.peak_bytes = memory.peak_bytes;
        *x->best = hb_search_candidate(&c, value);
        x->best->runs = hb_brute_copy_runs(x->s->arena, runs, count);
        x->found = true;
    }
    hb_arena_rewind(x->s->scratch, mark);
}

/* Of a cell with sums. */
struct parts_of {
    struct exhaust *x;
    const struct hb_segment *segment;
};

static bool visit_exhaust(void *context, const struct hb_part *parts, uint32_t count)
{
    struct parts_of *own = context;
    struct hb_run runs[HB_PARTS_MAX];
    count = hb_brute_runs(own->segment, own->x->s->ask->spec, parts, count, runs);
    try_exhaust(own->x, runs, count);
    return true;
}

/* Of one policy for each block there is one configuration, whatever its layers' sums. */
static bool is_choice(const struct hb_spec *spec, const struct hb_menu *menus)
{
    for (int i = 0; i < spec->model.block_count; i++)
        if (menus[i].count > 1)
            return true;
    return false;
}

/* As the step is priced at this share of the memory; false: it has no sums there. */
static bool walk_segment(struct exhaust *x, enum hb_share share)
{
    struct hb_search *s = x->s;
    struct hb_spec spec;
    struct hb_segment segment;
    const char *why;
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    hb_search_priced_spec(s, x->cell, share, &spec);
    struct hb_segment_ask ask = {.spec = &spec,
                                 .menus = s->plan->menus,
                                 .device = s->ask->device,
                                 .bytes_only = hb_search_by_memory(s)};
    bool built = is_choice(&spec, ask.menus) && hb_segment_build(s->scratch, &ask, &segment, &why);
    if (built) {
        struct parts_of own = {x, &segment};
        hb_brute_each(&segment, &spec, visit_exhaust, &own);
        hb_brute_each_odd(&segment, &spec, visit_exhaust, &own);
    }
    hb_arena_rewind(s->scratch, mark);
    return built;
}

/* Which splits are no sums differs between a step as it is written and one beyond the share: the
 * space has those of either. */
static void walk_cell(struct exhaust *x)
{
    bool built = walk_segment(x, HB_SHARE_KEPT);
    if (hb_search_is_asked(x->s))
        built = walk_segment(x, HB_SHARE_EXCEEDED) || built;
    if (!built) {
        struct hb_spec spec;
        hb_search_cell_spec(x->s, x->cell, &spec);
        hb_brute_each_combination(&spec, x->s->plan->menus, try_exhaust, x);
    }
}

bool hb_plan_exhaust(struct hb_arena *arena, const struct hb_plan_ask *ask,
                     const struct hb_plan *plan, double most, struct hb_candidate *out_best,
                     bool *out_found)
{
    if (ask->spec->compiler == HB_TORCH)
        return hb_torch_plan_exhaust(arena, ask, plan, most, out_best, out_found);
    struct hb_plan copy = *plan;
    copy.menus = plan->searched;
    struct hb_plan_ask quiet = *ask;
    quiet.keep_runs = false;
    struct hb_search s = {.arena = arena, .scratch = hb_arena_new(), .ask = &quiet, .plan = &copy};
    struct exhaust x = {.s = &s, .best = out_best};
    bool ok = plan->counts.raw <= most;
    copy.rows = hb_arena_alloc(arena, plan->space.cell_count, sizeof *copy.rows);
    for (x.cell = 0; x.cell < plan->space.cell_count && ok; x.cell++)
        walk_cell(&x);
    hb_arena_free(s.scratch);
    *out_found = x.found;
    return ok;
}
