/* A good configuration in other cells: see carry.h. */
#include "solver/carry.h"

#include <math.h>
#include <string.h>

#include "solver/brute.h"
#include "solver/cells.h"
#include "solver/sized.h"

/* How many cells, and how near the best of one has to be. */
enum { MOST_CELLS = 16 };
static const double near = 1.3;

struct cells {
    uint32_t list[MOST_CELLS]; /* best first */
    double best[MOST_CELLS];
    uint32_t count;
};

/* Each cell once, by its best; of more than there is room for the worst goes. */
static void put_cell(struct cells *c, uint32_t cell, double value)
{
    uint32_t at = 0;
    while (at < c->count && c->list[at] != cell)
        at++;
    if (at == MOST_CELLS)
        at--;
    else if (at == c->count)
        c->best[c->count++] = INFINITY;
    if (value >= c->best[at])
        return;
    for (; at > 0 && value < c->best[at - 1]; at--) {
        c->list[at] = c->list[at - 1];
        c->best[at] = c->best[at - 1];
    }
    c->list[at] = cell;
    c->best[at] = value;
}

static void try_in(struct hb_search *s, uint32_t cell, const struct hb_run *runs, uint32_t count,
                   double *best)
{
    struct hb_choice c = {.cell = cell, .runs = runs, .run_count = count};
    if (hb_stop_now(s->ask->stop) || !hb_cells_try(s, &c) || hb_search_value_of(s, &c) >= *best)
        return;
    c.runs = hb_brute_copy_runs(s->arena, runs, count);
    *best = hb_search_value_of(s, &c);
    hb_cells_put_run(s, &c);
}

/* Whether a run before it has the same policy. */
static bool was_before(const struct hb_choice *c, uint32_t run)
{
    for (uint32_t i = 0; i < run; i++)
        if (c->runs[i].policy == c->runs[run].policy)
            return true;
    return false;
}

/* Whether its runs, where they are less than a block, are such as the cell may have. */
static bool may_hold(const struct hb_search *s, uint32_t cell, const struct hb_choice *c)
{
    struct hb_spec spec;
    hb_search_cell_spec(s, cell, &spec);
    int32_t least = hb_sized_may_split(&spec) ? hb_sized_least_loop(&spec) : INT32_MAX;
    for (uint32_t i = 0; i < c->run_count; i++) {
        int32_t all = hb_block_steps(&spec.model.blocks[c->runs[i].block]);
        if (c->runs[i].steps < all && c->runs[i].steps < least)
            return false;
    }
    return true;
}

static void carry_to(struct hb_search *s, const struct hb_choice *from, uint32_t cell, double *best)
{
    const struct hb_model *m = &s->ask->spec->model;
    if (may_hold(s, cell, from))
        try_in(s, cell, from->runs, from->run_count, best);
    if (from->run_count == 1 || m->block_count > 1)
        return;
    for (uint32_t i = 0; i < from->run_count; i++) {
        struct hb_run whole = from->runs[i];
        whole.steps = hb_block_steps(&m->blocks[whole.block]);
        if (!was_before(from, i))
            try_in(s, cell, &whole, 1, best);
    }
}

/* Whether one mesh is the other but for a factor of two that another axis has. */
static bool is_next_mesh(const int64_t *a, const int64_t *b)
{
    int twice = 0, half = 0, others = 0;
    for (int i = 0; i < HB_AX_COUNT; i++) {
        twice += a[i] == 2 * b[i];
        half += 2 * a[i] == b[i];
        others += a[i] != b[i];
    }
    return others == 2 && twice == 1 && half == 1;
}

/* The same but for its mesh, or for half or twice the accumulation. */
static bool is_next(const struct hb_cell *a, const struct hb_cell *b)
{
    bool mesh = memcmp(a->mesh, b->mesh, sizeof a->mesh) == 0;
    bool batch = a->accumulate == 2 * b->accumulate || 2 * a->accumulate == b->accumulate;
    return a->batch_global == b->batch_global && a->microbatches == b->microbatches &&
           a->loss_chunks == b->loss_chunks && a->form == b->form && a->outer == b->outer &&
           a->optimizer_offload == b->optimizer_offload &&
           (mesh ? batch : a->accumulate == b->accumulate && is_next_mesh(a->mesh, b->mesh));
}

/* Where experts' products are spread no price says what fits beyond the compiler's share, so that
 * cells next to it may not have come to their turn: those that may be better by their nodes. */
static void put_next(const struct hb_search *s, uint32_t cell, double value, struct cells *cells)
{
    const struct hb_cell *all = s->plan->space.cells;
    for (uint32_t i = 0; i < s->node_count; i++)
        for (uint32_t k = s->nodes[i].first; k < s->nodes[i].end && s->nodes[i].value < value; k++)
            if (is_next(&all[k], &all[cell]))
                put_cell(cells, k, value);
}

bool hb_carry(struct hb_search *s, uint32_t index)
{
    const struct hb_choice from = s->choices[index];
    double value = hb_search_value_of(s, &from), least = value;
    struct cells cells = {.count = 0};
    if (!s->ask->polish || !s->plan->space.remat || s->carried == value)
        return false;
    s->carried = value;
    for (uint32_t i = 0; i < s->choice_count; i++) {
        const struct hb_choice *c = &s->choices[i];
        if (c->step_ns > 0 && c->cell != from.cell && hb_search_value_of(s, c) < near * value)
            put_cell(&cells, c->cell, hb_search_value_of(s, c));
    }
    if (s->spreads)
        put_next(s, from.cell, value, &cells);
    for (uint32_t i = 0; i < cells.count; i++) {
        carry_to(s, &from, cells.list[i], &cells.best[i]);
        least = cells.best[i] < least ? cells.best[i] : least;
    }
    return least < value;
}
