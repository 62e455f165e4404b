/* The plan by brute force: every configuration of the space is run. See plan.h. */
#include <math.h>

#include "base/arena.h"
#include "solver/search.h"
#include "solver/torch_plan.h"

struct exhaust {
    struct hb_search *s;
    const struct hb_segment *segment;
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

static bool visit_exhaust(void *context, const struct hb_part *parts, uint32_t count)
{
    struct exhaust *x = context;
    struct hb_run runs[HB_PARTS_MAX];
    try_exhaust(x, runs, hb_brute_runs(x->segment, x->s->ask->spec, parts, count, runs));
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
    for (uint32_t i = 0; i < plan->space.cell_count && ok; i++) {
        struct hb_spec spec;
        struct hb_segment segment;
        const char *why;
        struct hb_arena_mark mark = hb_arena_mark(s.scratch);
        x.cell = i;
        hb_search_priced_spec(&s, i, HB_SHARE_KEPT, &spec);
        struct hb_segment_ask segments = {.spec = &spec,
                                          .menus = copy.menus,
                                          .device = ask->device,
                                          .bytes_only = hb_search_by_memory(&s)};
        if (is_choice(&spec, copy.menus) &&
            hb_segment_build(s.scratch, &segments, &segment, &why)) {
            x.segment = &segment;
            hb_brute_each(&segment, &spec, visit_exhaust, &x);
            hb_brute_each_odd(&segment, &spec, visit_exhaust, &x);
        } else {
            hb_brute_each_combination(&spec, copy.menus, try_exhaust, &x);
        }
        hb_arena_rewind(s.scratch, mark);
    }
    hb_arena_free(s.scratch);
    *out_found = x.found;
    return ok;
}
