/* What the parts of the search share: see search.h. The values of the objective, the bytes that a
 * cell may take, the bounds that a run must not be below, and the effort that is spent. */
#include "solver/search.h"

#include <string.h>

#include "base/diag.h"
#include "base/size.h"
#include "sim/engine/interval.h"
#include "solver/menu.h"
#include "solver/nodes.h"

bool hb_search_by_memory(const struct hb_search *s)
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

double hb_search_value_of(const struct hb_search *s, const struct hb_choice *c)
{
    return hb_search_value(s, c->cell, c->step_ns, c->peak_bytes);
}

int64_t hb_search_ceiling(const struct hb_search *s, uint32_t cell)
{
    bool per_token = s->ask->objective == HB_OBJ_TOKENS || s->ask->objective == HB_OBJ_DEVICES;
    double most = s->incumbent * (per_token ? tokens_of(s, cell) : 1);
    return most < 9e18 ? (int64_t)most + 1 : INT64_MAX;
}

/* So that the upper end is within the whole, by the cell's kind. */
static int64_t confident_bytes(const struct hb_search *s, uint32_t cell)
{
    const struct hb_plan_ask *ask = s->ask;
    struct hb_plan_limits *limits = s->plan->limits;
    struct hb_spec spec;
    if (!(ask->confidence > 0))
        return INT64_MAX;
    hb_search_cell_spec(s, cell, &spec);
    uint32_t kind = hb_interval_kind(&spec);
    for (uint32_t i = 0; i < limits->count; i++)
        if (limits->kinds[i] == kind)
            return limits->bytes[i];
    int64_t bytes = hb_interval_most_peak(&spec, ask->confidence, ask->whole_bytes);
    if (limits->count < HB_PLAN_KINDS) {
        limits->kinds[limits->count] = kind;
        limits->bytes[limits->count++] = bytes;
    }
    return bytes;
}

int64_t hb_search_peak_bytes(const struct hb_search *s, uint32_t cell)
{
    const struct hb_lessons *lessons = &s->ask->lessons;
    int64_t budget = s->ask->budget_bytes;
    if (lessons->count)
        budget -= hb_lessons_more(lessons, hb_cell_kind(&s->plan->space.cells[cell]));
    return hb_smaller(hb_larger(budget, 0), confident_bytes(s, cell));
}

int64_t hb_search_node_peak_bytes(const struct hb_search *s, const struct hb_search_node *node)
{
    int64_t most = 0;
    for (uint32_t i = node->first; i < node->end; i++) {
        const struct hb_cell *cell = &s->plan->space.cells[i], *last = cell - 1;
        if (i == node->first || last->form != cell->form ||
            last->optimizer_offload != cell->optimizer_offload)
            most = hb_larger(most, hb_search_peak_bytes(s, i));
    }
    return most;
}

/* What comes of it is taken for cells of other kinds too: the whole budget. */
struct hb_layers_ask hb_search_layers_ask(const struct hb_search *s, uint32_t cell,
                                          const struct hb_spec *cell_spec, int64_t peak_bytes)
{
    return (struct hb_layers_ask){.cell_spec = cell_spec,
                                  .menus = s->plan->searched,
                                  .device = s->ask->device,
                                  .budget_bytes = peak_bytes,
                                  .host_bytes = s->ask->host_bytes,
                                  .most_ns = hb_search_ceiling(s, cell),
                                  .stop = s->ask->stop};
}

void hb_search_cell_spec(const struct hb_search *s, uint32_t cell, struct hb_spec *out)
{
    hb_space_cell_spec(s->plan->space.base, &s->plan->space.cells[cell], out);
}

bool hb_search_is_asked(const struct hb_search *s)
{
    return s->plan->space.base->share == HB_SHARE_ASKED &&
           s->plan->space.base->compiler == HB_XLA_GPU;
}

void hb_search_priced_spec(const struct hb_search *s, uint32_t cell, enum hb_share share,
                           struct hb_spec *out)
{
    hb_search_cell_spec(s, cell, out);
    if (hb_search_is_asked(s))
        out->share = share == HB_SHARE_EXCEEDED ? HB_SHARE_EXCEEDED : HB_SHARE_KEPT;
}

/* Where nothing is spread what is beyond the share needs less, and takes as long but for the order
 * of its ops: that serves for both where not all is to be searched. */
enum hb_share hb_search_first_share(const struct hb_search *s, enum hb_share made)
{
    bool beyond = !hb_search_is_exact(s) && (!s->spreads || s->unwritten || made > HB_SHARE_KEPT);
    return hb_search_is_asked(s) && beyond ? HB_SHARE_EXCEEDED : HB_SHARE_ASKED;
}

bool hb_search_is_priced(const struct hb_choice *c)
{
    bool written = c->made <= HB_SHARE_KEPT;
    return written ? c->share <= HB_SHARE_KEPT : c->share == c->made;
}

bool hb_search_keeps_near(const struct hb_search *s)
{
    return s->ask->polish && !s->ask->value_only && !hb_search_is_asked(s);
}

int64_t hb_search_near(const struct hb_search *s, int64_t ceiling, int64_t percent)
{
    return hb_search_keeps_near(s) ? hb_add_sat(ceiling, ceiling / 100 * percent) : ceiling;
}

void hb_search_settle(struct hb_search *s, uint32_t cell, enum hb_cell_fate fate, double value)
{
    s->plan->rows[cell].fate = fate;
    s->plan->rows[cell].value = value;
}

/* Whether the row bounds all configurations of the menus by what is exact: integer programs have
 * memory in whole MiB. */
static bool is_exact_row(const struct hb_search *s, const struct hb_cell_row *row)
{
    return row->fate == HB_FATE_NODE_BOUND || row->fate == HB_FATE_CELL_BOUND ||
           (row->fate == HB_FATE_LAYER_BOUND && s->plan->counts.ilps == 0) ||
           (row->fate == HB_FATE_SEARCHED && s->plan->counts.ilps == 0);
}

const char *hb_search_fault(const struct hb_search *s, const struct hb_choice *c, bool listed)
{
    double value = hb_search_value_of(s, c);
    if (c->bound_ns > c->step_ns)
        return "it takes less than its own bound";
    if (c->live_bytes > c->peak_bytes)
        return "its peak is below its live bytes";
    if (value < hb_nodes_around(s->nodes, s->node_count, c->cell)->floor_value)
        return "it is below the floor of its node";
    const struct hb_cell_row *row = &s->plan->rows[c->cell];
    return listed && is_exact_row(s, row) && value < row->value ? "it is below its cell's bound"
                                                                : NULL;
}

void hb_search_check(const struct hb_search *s, const struct hb_choice *c, bool listed)
{
    const char *fault = hb_search_fault(s, c, listed);
    if (fault)
        HB_BUG("cell %u, %lld ns (bound %lld), %lld bytes (live %lld): %s", c->cell,
               (long long)c->step_ns, (long long)c->bound_ns, (long long)c->peak_bytes,
               (long long)c->live_bytes, fault);
}

/* The policy's place in the plan's menu of the block; at its end where it was not there. */
static uint32_t place_policy(struct hb_search *s, uint32_t block, const struct hb_remat *remat)
{
    uint32_t blocks = (uint32_t)s->ask->spec->model.block_count;
    const struct hb_menu *old = &s->plan->menus[block];
    uint32_t known = hb_menu_place(old, remat), count = old->count;
    if (known != HB_NONE)
        return known;
    struct hb_menu *menus = hb_arena_alloc(s->arena, blocks, sizeof *menus);
    struct hb_remat *list = hb_arena_alloc(s->arena, count + 1, sizeof *list);
    memcpy(menus, s->plan->menus, blocks * sizeof *menus);
    memcpy(list, old->policies, count * sizeof *list);
    list[count] = *remat;
    menus[block] = (struct hb_menu){list, count + 1};
    s->plan->menus = menus;
    return count;
}

const struct hb_run *hb_search_adopt(struct hb_search *s, const struct hb_menu *menus,
                                     const struct hb_run *runs, uint32_t count)
{
    struct hb_run *own = hb_arena_alloc(s->arena, count, sizeof *own);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t block = runs[i].block;
        own[i] = runs[i];
        own[i].policy = place_policy(s, block, &menus[block].policies[runs[i].policy]);
    }
    return own;
}

void hb_search_spend(struct hb_search *s, uint64_t runs)
{
    s->effort += runs;
}

/* Priced in the time of one run. */
enum { PRICES_A_RUN = 8192 };

static uint32_t count_policies(const struct hb_search *s)
{
    uint32_t count = 0;
    for (int i = 0; i < s->ask->spec->model.block_count; i++)
        count += s->plan->searched[i].count;
    return count;
}

/* Of 32 policies 12 runs, of 96 (DeepSeek-V3) three times as many. */
void hb_search_spend_segment(struct hb_search *s)
{
    hb_search_spend(s, (count_policies(s) * 3 + 7) / 8);
}

void hb_search_spend_prices(struct hb_search *s, double prices)
{
    hb_search_spend(s, (uint64_t)(prices / PRICES_A_RUN));
}

enum { CUTS_TRIED = 8 };

bool hb_search_is_whole(const struct hb_search *s)
{
    return !s->ask->polish || !s->ask->most_effort;
}

bool hb_search_is_exact(const struct hb_search *s)
{
    return hb_search_is_whole(s) || !s->plan->space.remat;
}

struct hb_cuts *hb_search_cuts(const struct hb_search *s, uint32_t cell, enum hb_share share)
{
    return &s->cuts[2 * (size_t)cell + (share == HB_SHARE_EXCEEDED)];
}

int64_t hb_search_cut_bytes(const struct hb_search *s, uint32_t cell, enum hb_share share)
{
    const struct hb_cuts *cuts = hb_search_cuts(s, cell, share);
    bool all = hb_search_is_whole(s) || cuts->count < CUTS_TRIED;
    return all ? INT64_MAX : cuts->least_bytes;
}

struct hb_candidate hb_search_candidate(const struct hb_choice *c, double value)
{
    return (struct hb_candidate){c->cell,       c->runs,       c->run_count, c->step_ns,
                                 c->peak_bytes, c->live_bytes, c->bound_ns,  value};
}
