/* Neighbours one by one: see bare.h. */
#include "solver/bare.h"

#include <string.h>

#include "base/size.h"
#include "solver/menu.h"
#include "solver/polish.h"
#include "solver/sized.h"

/* Runs of the engine in one round, before what has no price. */
enum { MOST_RAN = 512 };

/* A run with its policy itself. */
struct piece {
    uint32_t block;
    int32_t steps;
    struct hb_remat remat;
};

static uint32_t list_pieces(const struct hb_polishing *p, struct piece *out)
{
    for (uint32_t i = 0; i < p->now.run_count; i++) {
        const struct hb_run *own = &p->now.runs[i];
        out[i] = (struct piece){own->block, own->steps,
                                p->s->plan->menus[own->block].policies[own->policy]};
    }
    return p->now.run_count;
}

static bool is_over(const struct hb_polishing *p)
{
    return p->ran >= MOST_RAN || hb_stop_now(p->s->ask->stop);
}

/* A run more is to be worth it. */
static bool try_pieces(struct hb_polishing *p, const struct piece *pieces, uint32_t count)
{
    struct hb_run runs[HB_PARTS_MAX];
    struct hb_choice better;
    uint32_t blocks = (uint32_t)p->spec.model.block_count;
    p->fits = false;
    for (uint32_t i = 0; i < blocks; i++)
        hb_polish_make_tries(p, i);
    for (uint32_t i = 0; i < count; i++)
        hb_polish_add_try(p, pieces[i].block, pieces[i].remat);
    for (uint32_t i = 0; i < blocks; i++)
        p->menus[i].count = p->tries[i].count;
    for (uint32_t i = 0; i < count; i++) {
        const struct piece *own = &pieces[i];
        uint32_t policy = hb_menu_place(&p->menus[own->block], &own->remat);
        if (policy == HB_NONE)
            return false;
        runs[i] = (struct hb_run){own->block, policy, own->steps};
    }
    p->least_part = count > p->now.run_count ? HB_POLISH_WORTH_A_RUN : 0;
    bool taken = !is_over(p) && hb_polish_is_better(p, runs, count, &better);
    p->least_part = 0;
    if (taken)
        hb_polish_take_up(p, &better);
    return taken;
}

/* --- steps that go from one run to the next --- */

/* So many from a run to the next of its block, or back. */
static bool try_shift(struct hb_polishing *p, uint32_t run, int32_t steps)
{
    struct piece pieces[HB_PARTS_MAX] = {{0}};
    uint32_t count = list_pieces(p, pieces);
    struct piece *one = &pieces[run], *other = &pieces[run + 1];
    one->steps += steps;
    other->steps -= steps;
    return one->block == other->block && one->steps >= p->least_steps &&
           other->steps >= p->least_steps && try_pieces(p, pieces, count);
}

/* On in the same direction, by twice as many while that is better. */
static void shift_on(struct hb_polishing *p, uint32_t run, int32_t steps)
{
    for (int32_t times = 2; times > 0;)
        times = try_shift(p, run, times * steps) ? 2 * times : times / 2;
}

static bool try_shifts(struct hb_polishing *p)
{
    static const int32_t by[] = {1, -1, 2, -2, 4, -4};
    for (uint32_t i = 0; i + 1 < p->now.run_count; i++)
        for (size_t k = 0; k < sizeof by / sizeof by[0]; k++)
            if (try_shift(p, i, by[k])) {
                shift_on(p, i, by[k]);
                return true;
            }
    return false;
}

/* --- steps at an end of a run --- */

/* Which: as few as are written as a loop, or more of them, too. */
enum ends { SHORT_ENDS, ALL_ENDS };

/* So many steps at one end of a run are a run of their own. */
static void cut(struct piece *pieces, uint32_t count, uint32_t run, bool first, int32_t steps)
{
    memmove(&pieces[run + 1], &pieces[run], (count - run) * sizeof *pieces);
    pieces[first ? run : run + 1].steps = steps;
    pieces[first ? run + 1 : run].steps -= steps;
}

static bool try_end(struct hb_polishing *p, uint32_t run, bool first, int32_t steps,
                    const struct hb_remat *remat)
{
    struct piece pieces[HB_PARTS_MAX];
    uint32_t count = list_pieces(p, pieces);
    cut(pieces, count, run, first, steps);
    pieces[first ? run : run + 1].remat = *remat;
    return try_pieces(p, pieces, count + 1);
}

/* At either end of a run. */
static bool try_ends(struct hb_polishing *p, uint32_t run, const struct hb_remat *remat,
                     enum ends ends)
{
    int32_t least = p->least_steps, all = p->now.runs[run].steps;
    int32_t some[] = {least, all / 4, all / 2};
    for (int i = 0; i < (ends == ALL_ENDS ? 6 : 2); i++)
        if (some[i / 2] >= least && all - some[i / 2] >= least &&
            (i < 2 || some[i / 2] > some[i / 2 - 1]) && try_end(p, run, i % 2, some[i / 2], remat))
            return true;
    return false;
}

/* Under the policies of the block's runs. */
static bool cut_run(struct hb_polishing *p, uint32_t run)
{
    struct piece pieces[HB_PARTS_MAX];
    uint32_t count = list_pieces(p, pieces);
    for (uint32_t i = 0; i < count && hb_polish_is_free(p, pieces[run].block); i++)
        if (pieces[i].block == pieces[run].block && try_ends(p, run, &pieces[i].remat, ALL_ENDS))
            return true;
    return false;
}

/* --- tensors --- */

static uint32_t list_turned(const struct hb_polishing *p, uint32_t run, struct hb_remat *out_base,
                            struct hb_polish_move *out)
{
    uint32_t block = p->now.runs[run].block;
    const struct hb_remat *own = &p->s->plan->menus[block].policies[p->now.runs[run].policy];
    *out_base = hb_polish_as_names(own, hb_menu_tensors(&p->spec.model.blocks[block]));
    return hb_polish_is_free(p, block) ? hb_polish_list_moves(p, block, out_base, out) : 0;
}

/* Each of a run by itself, from what is better on. */
static bool turn_run(struct hb_polishing *p, uint32_t run)
{
    struct piece pieces[HB_PARTS_MAX];
    struct hb_polish_move moves[HB_POLISH_MOVES];
    struct hb_remat own;
    uint32_t count = list_pieces(p, pieces), made = list_turned(p, run, &own, moves);
    bool better = false;
    for (uint32_t k = 0; k < made && !is_over(p); k++) {
        struct hb_remat r = hb_polish_moved(own, moves[k]);
        pieces[run].remat = r;
        if (hb_menu_compiles(&p->spec, &r) && try_pieces(p, pieces, count)) {
            own = r;
            better = true;
        }
    }
    return better;
}

/* Each by itself in steps at an end. */
static bool turn_ends(struct hb_polishing *p, uint32_t run, enum ends ends)
{
    struct hb_polish_move moves[HB_POLISH_MOVES];
    struct hb_remat own;
    uint32_t made = list_turned(p, run, &own, moves);
    for (uint32_t k = 0; k < made && !is_over(p); k++) {
        struct hb_remat r = hb_polish_moved(own, moves[k]);
        if (hb_menu_compiles(&p->spec, &r) && try_ends(p, run, &r, ends))
            return true;
    }
    return false;
}

/* --- runs that have no price --- */

bool hb_bare_has_short(const struct hb_polishing *p)
{
    int32_t least = hb_sized_least_run(&p->spec);
    bool any = false;
    for (uint32_t i = 0; i < p->now.run_count; i++) {
        const struct hb_run *own = &p->now.runs[i];
        int32_t all = hb_block_steps(&p->spec.model.blocks[own->block]);
        any = any || (own->steps < least && own->steps < all);
    }
    return any;
}

/* The policy of one of these, of the menu that was searched: the richest that fits, by halves. */
static bool try_rungs(struct hb_polishing *p, struct piece *pieces, uint32_t count, uint32_t at)
{
    const struct hb_menu *menu = &p->s->plan->searched[pieces[at].block];
    uint32_t low = 0, high = menu->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        pieces[at].remat = menu->policies[middle];
        if (try_pieces(p, pieces, count))
            return true;
        low = p->fits ? middle + 1 : low;
        high = p->fits ? high : middle;
    }
    return false;
}

/* As few steps as are written as a loop at an end of a run: the others go to the run beside it, or
 * they stay. */
static bool try_rich(struct hb_polishing *p, uint32_t run, bool first)
{
    int32_t some = p->least_steps;
    struct piece pieces[HB_PARTS_MAX];
    uint32_t count = list_pieces(p, pieces), block = pieces[run].block;
    uint32_t beside = first ? run + 1 : run - 1; /* before the first is none */
    if (!hb_polish_is_free(p, block))
        return false;
    if (beside < count && pieces[beside].block == block) {
        pieces[beside].steps += pieces[run].steps - some;
        pieces[run].steps = some;
        if (try_rungs(p, pieces, count, run))
            return true;
    }
    count = list_pieces(p, pieces);
    if (count >= hb_polish_most_runs(p) || pieces[run].steps < 2 * some)
        return false;
    cut(pieces, count, run, first, some);
    return try_rungs(p, pieces, count + 1, first ? run : run + 1);
}

/* At the ends of those that are there, and cuts under policies of the same block. */
static bool try_short(struct hb_polishing *p)
{
    for (uint32_t run = 0; run < p->now.run_count; run++)
        if (try_rich(p, run, true) || try_rich(p, run, false))
            return true;
    for (uint32_t run = 0; run < p->now.run_count && p->now.run_count < hb_polish_most_runs(p);
         run++)
        if (cut_run(p, run) || turn_ends(p, run, SHORT_ENDS))
            return true;
    return false;
}

static bool try_long(struct hb_polishing *p)
{
    for (uint32_t run = 0;
         run < p->now.run_count && !p->priced && p->now.run_count < hb_polish_most_runs(p); run++)
        if (turn_ends(p, run, ALL_ENDS))
            return true;
    return false;
}

bool hb_bare(struct hb_polishing *p)
{
    bool is_short = p->least_steps < hb_sized_least_run(&p->spec), better = false;
    for (uint32_t run = 0; run < p->now.run_count; run++)
        if (!is_short || hb_bare_has_short(p)) /* else they were turned before */
            better = turn_run(p, run) || better;
    if (better || !hb_sized_may_split(&p->spec))
        return better;
    return try_shifts(p) || (is_short ? try_short(p) : try_long(p));
}
