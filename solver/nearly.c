/* Refused for memory: see nearly.h. */
#include "solver/nearly.h"

#include "base/diag.h"
#include "base/size.h"
#include "sim/engine/result.h"
#include "solver/search.h"

/* Of those that were refused so many are run whole, the least above their limits first, each by a
 * 200th of the budget above the one before; what is told is each faster by a thousandth. */
enum { MOST_LOOKED = 12, STEPS = 200, ROOM = 50 };
static const double least_gain = 0.001, most_loss = 0.01;

struct looker {
    struct hb_arena *arena, *scratch;
    struct hb_search search; /* of nothing: for values, limits and policies of the plan */
    struct hb_plan plan;
    const struct hb_plan_ask *ask;
    struct hb_nearly_one found[MOST_LOOKED + 1]; /* in the order of what is too much */
    uint32_t count;
};

/* Above what was asked for; 0 or less: it was refused for something else. */
static int64_t above(const struct hb_plan_ask *ask, int64_t peak_bytes, int64_t limit_bytes,
                     int64_t high_bytes)
{
    int64_t more = peak_bytes - limit_bytes;
    return ask->confidence > 0 ? hb_larger(more, high_bytes - ask->whole_bytes) : more;
}

/* The least above, and above least; null: none is left. */
static const struct hb_ran *next_refused(const struct looker *l, int64_t least, int64_t *out_more)
{
    const struct hb_ran *best = NULL;
    for (uint32_t i = 0; i < l->plan.ran_count; i++) {
        const struct hb_ran *r = &l->plan.ran[i];
        int64_t more = above(l->ask, r->peak_bytes, r->limit_bytes, r->high_bytes);
        if (!r->fits && more > least && (!best || more < *out_more)) {
            best = r;
            *out_more = more;
        }
    }
    return best;
}

/* Runs it as a candidate of the plan. */
static bool run(struct looker *l, struct hb_candidate *c, struct hb_interval *out_interval)
{
    struct hb_result r;
    struct hb_spec spec;
    struct hb_diag quiet;
    struct hb_arena_mark mark = hb_arena_mark(l->scratch);
    hb_plan_spec(l->scratch, &l->plan, c, &spec);
    hb_diag_init(&quiet, l->scratch);
    bool made = hb_result_brief(l->scratch, &quiet, &spec, l->ask->device, &r);
    hb_arena_rewind(l->scratch, mark);
    if (!made)
        return false;
    c->peak_bytes = r.memory.peak_bytes;
    c->step_ns = r.timing.step_ns;
    c->value = hb_search_value(&l->search, c->cell, c->step_ns, c->peak_bytes);
    *out_interval = r.interval;
    return true;
}

/* Puts it in its place by what is too much. */
static void look(struct looker *l, struct hb_candidate c)
{
    struct hb_interval i;
    if (!run(l, &c, &i))
        return;
    int64_t limit = hb_search_peak_bytes(&l->search, c.cell);
    struct hb_nearly_one one = {.candidate = c,
                                .high_bytes = i.high_bytes,
                                .verdict = hb_interval_verdict(&i, l->ask->whole_bytes)};
    one.too_much_bytes = above(l->ask, c.peak_bytes, limit, one.high_bytes);
    if (one.too_much_bytes <= 0)
        return;
    uint32_t at = l->count++;
    for (; at > 0 && one.too_much_bytes < l->found[at - 1].too_much_bytes; at--)
        l->found[at] = l->found[at - 1];
    l->found[at] = one;
}

static struct hb_candidate candidate_of(struct looker *l, const struct hb_ran *ran)
{
    struct hb_candidate c = {.cell = ran->cell, .run_count = ran->part_count};
    struct hb_run *runs = hb_arena_alloc(l->arena, ran->part_count, sizeof *runs);
    struct hb_remat *list = hb_arena_alloc(l->arena, ran->part_count, sizeof *list);
    uint32_t blocks = (uint32_t)l->ask->spec->model.block_count;
    struct hb_menu *menus = hb_arena_alloc(l->arena, blocks, sizeof *menus);
    for (uint32_t i = 0; i < ran->part_count; i++) {
        const struct hb_ran_part *p = &ran->parts[i];
        list[i] = p->remat;
        runs[i] = (struct hb_run){p->block, i, p->steps};
        menus[p->block] = (struct hb_menu){list, ran->part_count};
    }
    c.runs = hb_search_adopt(&l->search, menus, runs, ran->part_count);
    return c;
}

static void look_at_bare(struct looker *l, const struct hb_plan *bare)
{
    struct hb_candidate c = bare->best;
    c.runs = hb_search_adopt(&l->search, bare->menus, c.runs, c.run_count);
    look(l, c);
}

/* What must be within the budget. */
static int64_t needed(const struct hb_ran *r)
{
    return hb_larger(r->peak_bytes, r->high_bytes);
}

static bool is_best(const struct hb_plan *plan, const struct hb_ran *r)
{
    const struct hb_candidate *best = &plan->best;
    return r->fits && r->cell == best->cell && r->peak_bytes == best->peak_bytes &&
           r->step_ns == best->step_ns;
}

static int64_t needed_of_best(const struct hb_plan *plan)
{
    for (uint32_t i = 0; i < plan->ran_count; i++)
        if (is_best(plan, &plan->ran[i]))
            return needed(&plan->ran[i]);
    return 0;
}

static const struct hb_ran *find_roomier(const struct looker *l)
{
    int64_t least = needed_of_best(&l->plan) - l->ask->whole_bytes / ROOM;
    double most = l->plan.best.value * (1 + most_loss);
    const struct hb_ran *found = NULL;
    for (uint32_t i = 0; i < l->plan.ran_count; i++) {
        const struct hb_ran *r = &l->plan.ran[i];
        if (r->fits && needed(r) < least &&
            hb_search_value(&l->search, r->cell, r->step_ns, r->peak_bytes) <= most) {
            found = r;
            least = needed(r);
        }
    }
    return found;
}

/* Where there is no room for all, the last place is the fastest's. */
static void tell(const struct looker *l, struct hb_nearly *out)
{
    double value = l->plan.best.value;
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->found[i].candidate.value >= value * (1 - least_gain))
            continue;
        value = l->found[i].candidate.value;
        uint32_t at = out->count < HB_NEARLY_MOST ? out->count : HB_NEARLY_MOST - 1;
        out->list[at] = l->found[i];
        out->count = at + 1;
    }
}

/* For values, limits and policies: what is tried adds to the plan's menus, so it has its own. */
static struct looker *open_looker(struct hb_arena *arena, const struct hb_plan_ask *ask,
                                  const struct hb_plan *plan)
{
    struct looker *l = hb_arena_alloc(arena, 1, sizeof *l);
    *l = (struct looker){.arena = arena, .scratch = hb_arena_new(), .plan = *plan, .ask = ask};
    l->search = (struct hb_search){.arena = arena, .ask = ask, .plan = &l->plan};
    return l;
}

void hb_nearly_roomier(struct hb_arena *arena, const struct hb_plan_ask *ask,
                       const struct hb_plan *plan, struct hb_roomier *out)
{
    struct looker *l = open_looker(arena, ask, plan);
    struct hb_interval interval;
    const struct hb_ran *ran = find_roomier(l);
    *out = (struct hb_roomier){.plan = &l->plan};
    if (ran) {
        out->candidate = candidate_of(l, ran);
        out->found = run(l, &out->candidate, &interval);
    }
    hb_arena_free(l->scratch);
}

void hb_nearly_find(struct hb_arena *arena, const struct hb_plan_ask *ask,
                    const struct hb_plan *plan, const struct hb_plan *bare, struct hb_nearly *out)
{
    struct looker *l = open_looker(arena, ask, plan);
    int64_t more = 0;
    for (int i = 0; i < MOST_LOOKED; i++) {
        const struct hb_ran *ran = next_refused(l, more, &more);
        if (!ran)
            break;
        look(l, candidate_of(l, ran));
        more += ask->whole_bytes / STEPS;
    }
    if (bare)
        look_at_bare(l, bare);
    *out = (struct hb_nearly){.plan = &l->plan};
    tell(l, out);
    hb_arena_free(l->scratch);
}
