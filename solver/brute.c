/* The walk over a cell's configurations, and the best of it: see brute.h. */
#include "solver/brute.h"

#include <string.h>

#include "base/arena.h"
#include "solver/least.h"
#include "solver/replay.h"
#include "solver/screen.h"
#include "solver/segment_order.h"

struct walk {
    const struct hb_segment *s;
    const struct hb_spec *spec;
    hb_brute_visit *visit;
    void *context;
    struct hb_part parts[HB_PARTS_MAX];
    bool ended;
    bool split;
    bool wanted;  /* whole configurations that are odd, or those that are not */
    bool ordered; /* of splits those in the segment's order alone; else the visit sees to it */
    /* Where both are there, what cannot come below the ceiling is not gone through; where places
     * matter it counts as if it were. */
    const struct hb_least *least;
    const int64_t *ceiling;
    const struct hb_brute_limits *limits; /* what needs more than these in this slot, too */
    const uint32_t *tight_slot;
    uint64_t *place; /* the next one's; null: they do not matter */
};

static void walk_block(struct walk *w, int block, uint32_t count, bool may_split);

static uint32_t block_at(const struct walk *w, uint32_t part)
{
    return w->s->items[w->parts[part].item].block;
}

/* Of the blocks that are whole, and of all together in which order the step is. */
static bool any_odd(const struct walk *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool split = (i > 0 && block_at(w, i - 1) == block_at(w, i)) ||
                     (i + 1 < count && block_at(w, i + 1) == block_at(w, i));
        if (!split && w->s->odd_whole[w->parts[i].item])
            return true;
    }
    return (!w->split || w->ordered) && !hb_segment_in_order(w->s, w->parts, count);
}

/* Of the path alone: no more than the bound, and cheap. */
static int64_t path_ns(const struct hb_segment *s, const struct hb_part *parts, uint32_t count)
{
    int64_t sum = s->bound_ns[0];
    for (uint32_t i = 0; i < count; i++) {
        const int64_t *by_steps = s->items[parts[i].item].bound_ns[0];
        sum += by_steps ? by_steps[parts[i].steps] : 0;
    }
    return sum;
}

/* Whether parts, and then at least so much, may stay below the ceiling. */
static bool is_worth(const struct walk *w, uint32_t count, int64_t more_ns)
{
    return !w->least || path_ns(w->s, w->parts, count) <= *w->ceiling - more_ns;
}

static bool is_pair_worth(const struct walk *w, int block, uint32_t count, uint32_t one,
                          uint32_t other)
{
    if (!w->least)
        return true;
    int64_t pair = w->least->pair_ns[(size_t)one * w->least->item_count + other];
    return pair < INT64_MAX && is_worth(w, count, pair + w->least->rest_ns[block + 1]);
}

/* How many configurations the blocks from this one on have, each of them whole. */
static uint64_t count_whole(const struct walk *w, int block)
{
    uint64_t count = 1;
    for (; block < w->spec->model.block_count; block++) {
        uint32_t items = w->s->first_item[block + 1] - w->s->first_item[block];
        count *= items ? items : 1;
    }
    return count;
}

static void pass_over(const struct walk *w, int next, uint64_t times)
{
    if (w->place)
        *w->place += times * count_whole(w, next);
}

static uint64_t count_cuts(const struct walk *w, int32_t steps)
{
    uint64_t count = 0;
    for (int32_t n = 1; n < steps; n++)
        count += w->s->admits[n] && w->s->admits[steps - n];
    return count;
}

static void walk_pair(struct walk *w, int block, uint32_t count, uint32_t one, uint32_t other)
{
    int32_t steps = hb_block_steps(&w->spec->model.blocks[block]);
    bool last = w->least && block + 1 == w->spec->model.block_count;
    struct hb_cuts_ask ask = {w->s, w->parts, count, one, other};
    struct hb_segment_cuts cuts = {.slot = HB_NONE};
    for (int32_t n = 1; n < steps && !w->ended; n++) {
        if (!w->s->admits[n] || !w->s->admits[steps - n])
            continue;
        if (last && cuts.slot != *w->tight_slot)
            hb_segment_cuts_open(&ask, *w->tight_slot, &cuts);
        if (last && (hb_segment_cut_ns(&cuts, n, steps - n) > *w->ceiling ||
                     hb_segment_cut_bytes(&cuts, n, steps - n) > w->limits->budget_bytes)) {
            pass_over(w, block + 1, 1);
            continue;
        }
        w->parts[count] = (struct hb_part){one, n};
        w->parts[count + 1] = (struct hb_part){other, steps - n};
        w->split = true;
        walk_block(w, block + 1, count + 2, false);
        w->split = false;
    }
}

static void walk_block(struct walk *w, int block, uint32_t count, bool may_split)
{
    if (w->ended)
        return;
    if (block == w->spec->model.block_count) {
        if (w->wanted == any_odd(w, count))
            w->ended = !w->visit(w->context, w->parts, count);
        else if (w->split)
            pass_over(w, block, 1);
        return;
    }
    bool may_pass = w->split || !w->place;
    if (w->least && may_pass && !is_worth(w, count, w->least->rest_ns[block])) {
        pass_over(w, block, 1);
        return;
    }
    uint32_t first = w->s->first_item[block], end = w->s->first_item[block + 1];
    int32_t steps = hb_block_steps(&w->spec->model.blocks[block]);
    uint64_t cuts = w->place && may_split ? count_cuts(w, steps) : 0;
    if (first == end)
        walk_block(w, block + 1, count, may_split);
    for (uint32_t i = first; i < end; i++) {
        w->parts[count] = (struct hb_part){i, steps};
        walk_block(w, block + 1, count + 1, may_split);
    }
    for (uint32_t i = first; i < end && may_split; i++)
        for (uint32_t k = i + 1; k < end; k++) {
            if (hb_segment_is_odd(w->s, i, k))
                continue;
            if (is_pair_worth(w, block, count, i, k))
                walk_pair(w, block, count, i, k);
            else
                pass_over(w, block + 1, cuts);
        }
}

void hb_brute_each(const struct hb_segment *s, const struct hb_spec *spec, hb_brute_visit *visit,
                   void *context)
{
    struct walk w = {.s = s, .spec = spec, .visit = visit, .context = context, .ordered = true};
    walk_block(&w, 0, 0, true);
}

void hb_brute_each_odd(const struct hb_segment *s, const struct hb_spec *spec,
                       hb_brute_visit *visit, void *context)
{
    struct walk w = {.s = s, .spec = spec, .visit = visit, .context = context, .wanted = true};
    walk_block(&w, 0, 0, false);
}

uint32_t hb_brute_runs(const struct hb_segment *s, const struct hb_spec *spec,
                       const struct hb_part *parts, uint32_t count, struct hb_run *out)
{
    uint32_t made = 0, at = 0;
    for (int i = 0; i < spec->model.block_count; i++) {
        if (s->first_item[i] == s->first_item[i + 1])
            out[made++] = (struct hb_run){(uint32_t)i, 0, hb_block_steps(&spec->model.blocks[i])};
        for (; at < count && s->items[parts[at].item].block == (uint32_t)i; at++)
            out[made++] =
                (struct hb_run){(uint32_t)i, s->items[parts[at].item].policy, parts[at].steps};
    }
    return made;
}

const struct hb_run *hb_brute_copy_runs(struct hb_arena *arena, const struct hb_run *runs,
                                        uint32_t count)
{
    struct hb_run *copy = hb_arena_alloc(arena, count, sizeof *copy);
    if (count)
        memcpy(copy, runs, count * sizeof *copy);
    return copy;
}

double hb_brute_count(const struct hb_spec *spec, const struct hb_menu *menus, bool splits)
{
    double whole = 1, split = 0;
    for (int i = 0; i < spec->model.block_count; i++)
        whole *= (double)menus[i].count;
    for (int i = 0; i < spec->model.block_count && splits; i++)
        split += whole * ((double)menus[i].count - 1) / 2 *
                 (double)(hb_block_steps(&spec->model.blocks[i]) - 1);
    return whole + split;
}

/* --- cells without segments --- */

enum { RUN_POLICIES = 6 };

static bool is_run(const struct hb_menu *menu, uint32_t policy)
{
    if (menu->count <= RUN_POLICIES)
        return true;
    uint32_t at = policy * (RUN_POLICIES - 1) / (menu->count - 1);
    return policy == (at * (menu->count - 1) + RUN_POLICIES - 2) / (RUN_POLICIES - 1);
}

struct combine {
    const struct hb_spec *spec;
    const struct hb_menu *menus;
    hb_brute_visit_runs *visit;
    void *context;
    struct hb_run runs[HB_PARTS_MAX];
};

static void combine_from(struct combine *c, uint32_t block)
{
    if (block == (uint32_t)c->spec->model.block_count) {
        c->visit(c->context, c->runs, block);
        return;
    }
    int32_t steps = hb_block_steps(&c->spec->model.blocks[block]);
    for (uint32_t k = 0; k < c->menus[block].count; k++) {
        if (!is_run(&c->menus[block], k))
            continue;
        c->runs[block] = (struct hb_run){block, k, steps};
        combine_from(c, block + 1);
    }
}

void hb_brute_each_combination(const struct hb_spec *spec, const struct hb_menu *menus,
                               hb_brute_visit_runs *visit, void *context)
{
    struct combine c = {.spec = spec, .menus = menus, .visit = visit, .context = context};
    combine_from(&c, 0);
}

double hb_brute_count_combinations(const struct hb_spec *spec, const struct hb_menu *menus)
{
    double count = 1;
    for (int i = 0; i < spec->model.block_count; i++)
        count *= menus[i].count < RUN_POLICIES ? menus[i].count : RUN_POLICIES;
    return count;
}

/* --- the best --- */

/* Configurations between two looks at the clock, which costs more than most of them. */
enum { LOOK_EACH = 64 };

struct best {
    const struct hb_segment *s;
    const struct hb_spec *spec; /* of the walk over all of a cell; null: another walk */
    const struct hb_brute_walk *walk;
    const struct hb_brute_limits *limits;
    struct hb_arena *arena;
    struct hb_replay *replay; /* null: times by the sums */
    struct hb_screen *screen; /* what spares most of that; null: none yet */
    bool alone;               /* the one best, and no place to keep */
    int64_t ceiling;          /* what is above is not wanted */
    int64_t most_ns;          /* nor what is above this one, of those that come now */
    uint32_t tight_slot;      /* where the last that did not fit had its peak */
    struct hb_brute_choice *list;
    uint32_t count;
    uint32_t most;
    uint64_t place;
};

static bool before(int64_t value, uint64_t place, int64_t other_value, uint64_t other_place)
{
    return value < other_value || (value == other_value && place < other_place);
}

static void insert_choice(struct best *b, const struct hb_brute_choice *choice,
                          const struct hb_part *parts)
{
    uint32_t at = b->count < b->most ? b->count++ : b->most - 1;
    struct hb_part *room = b->list[at].parts;
    for (; at > 0 &&
           before(choice->value, choice->place, b->list[at - 1].value, b->list[at - 1].place);
         at--)
        b->list[at] = b->list[at - 1];
    b->list[at] = *choice;
    b->list[at].parts = room;
    memcpy(room, parts, choice->count * sizeof *parts);
    if (b->count == b->most && b->list[b->most - 1].value <= b->most_ns)
        b->most_ns = b->list[b->most - 1].value - 1;
}

/* Whether a value that is no less than this one may still be wanted. */
static bool may_enter(const struct best *b, int64_t value, uint64_t place)
{
    const struct hb_brute_choice *worst = b->count == b->most ? &b->list[b->most - 1] : NULL;
    return value <= b->ceiling && (!worst || before(value, place, worst->value, worst->place));
}

/* Within the limits of memory; what costs least comes first. */
static bool is_small(struct best *b, const struct hb_part *parts, uint32_t count,
                     struct hb_price *price)
{
    const struct hb_brute_limits *l = b->limits;
    return hb_segment_fits(b->s, parts, count, l->budget_bytes, &b->tight_slot, price) &&
           price->host_bytes <= l->host_bytes;
}

static struct hb_screen *open_screen(const struct best *b, struct hb_replay *replay,
                                     const struct hb_part *parts, uint32_t count)
{
    return hb_screen_open(b->arena, replay, b->limits->time == HB_TIME_TURNS, parts, count);
}

/* Whether what is replayed may come to a value that is wanted. Where no screen is there yet it is
 * the first one's. */
static bool may_pass(struct best *b, const struct hb_part *parts, uint32_t count, uint64_t place)
{
    if (!b->screen)
        b->screen = open_screen(b, b->replay, parts, count);
    return may_enter(b, hb_screen_ns(b->screen, parts, count), place);
}

static int64_t replay_ns(const struct best *b, const struct hb_part *parts, uint32_t count)
{
    return b->limits->time == HB_TIME_TURNS ? hb_replay_turns_ns(b->replay, parts, count)
                                            : hb_replay_bound_ns(b->replay, parts, count);
}

static bool visit_best(void *context, const struct hb_part *parts, uint32_t count)
{
    struct best *b = context;
    const struct hb_brute_limits *l = b->limits;
    struct hb_brute_choice c = {.place = b->place++, .count = count};
    bool by_time = l->goal == HB_GOAL_TIME;
    if (c.place % LOOK_EACH == 0 && hb_stop_now(l->stop))
        return false;
    if (by_time && !may_enter(b, path_ns(b->s, parts, count), c.place))
        return true;
    c.price.bound_ns = hb_segment_bound_ns(b->s, parts, count);
    if (by_time && !may_enter(b, c.price.bound_ns, c.place))
        return true;
    if (!is_small(b, parts, count, &c.price) || !hb_segment_in_order(b->s, parts, count))
        return true;
    if (by_time && b->replay) {
        if (!may_pass(b, parts, count, c.place))
            return true;
        int64_t ns = replay_ns(b, parts, count);
        c.price.bound_ns = ns > c.price.bound_ns ? ns : c.price.bound_ns;
    }
    c.value = by_time ? c.price.bound_ns : c.price.live_bytes;
    if (!may_enter(b, c.value, c.place) ||
        !before(l->after_value, l->after_place, c.value, c.place))
        return true;
    insert_choice(b, &c, parts);
    if (b->alone) { /* what is better is like it */
        b->ceiling = c.value;
        b->screen = b->replay ? open_screen(b, b->replay, parts, count) : NULL;
    }
    return true;
}

/* What is above the ceiling, or the worst of the best so far, is left out. */
static void walk_below(struct hb_arena *arena, struct best *b)
{
    struct hb_least least;
    b->most_ns = b->ceiling;
    if (!b->spec) {
        b->walk->each(b->walk->context, visit_best, b);
        return;
    }
    hb_least_find(arena, b->s, b->spec, &least);
    struct walk w = {.s = b->s,
                     .spec = b->spec,
                     .visit = visit_best,
                     .context = b,
                     .least = &least,
                     .ceiling = &b->most_ns,
                     .limits = b->limits,
                     .tight_slot = &b->tight_slot,
                     .place = b->alone ? NULL : &b->place};
    walk_block(&w, 0, 0, true);
}

/* Where no ceiling is known: the worst of the best by their sums, replayed. It spares the replay of
 * most of the others. */
static void find_ceiling(struct hb_arena *arena, struct best *b)
{
    struct hb_replay *replay = b->replay;
    int64_t worst = -1, least = INT64_MAX;
    uint32_t best = 0;
    b->replay = NULL;
    walk_below(arena, b);
    for (uint32_t i = 0; i < b->count && !hb_stop_now(b->limits->stop); i++) {
        int64_t ns = hb_replay_bound_ns(replay, b->list[i].parts, b->list[i].count);
        ns = ns > b->list[i].value ? ns : b->list[i].value;
        worst = ns > worst ? ns : worst;
        best = ns < least ? i : best;
        least = ns < least ? ns : least;
    }
    if (b->count)
        b->screen = open_screen(b, replay, b->list[best].parts, b->list[best].count);
    b->ceiling = b->count == b->most && worst < b->ceiling ? worst : b->ceiling;
    b->replay = replay;
    b->count = 0;
    b->place = 0;
}

static void find_best(struct hb_arena *arena, struct best *b, size_t most_parts)
{
    const struct hb_brute_limits *l = b->limits;
    for (uint32_t i = 0; i < b->most; i++)
        b->list[i].parts = hb_arena_alloc(arena, most_parts, sizeof *b->list[i].parts);
    b->ceiling = l->most_value;
    b->alone = l->goal == HB_GOAL_TIME && l->time != HB_TIME_REPLAY && b->most == 1;
    if (l->goal == HB_GOAL_TIME && l->time != HB_TIME_SUMS)
        b->replay = b->s->replay ? b->s->replay : hb_replay_open(arena, b->s);
    if (b->replay && !b->alone && l->after_value < 0)
        find_ceiling(arena, b);
    if (l->goal == HB_GOAL_TIME || !b->spec)
        walk_below(arena, b);
    else
        hb_brute_each(b->s, b->spec, visit_best, b);
}

uint32_t hb_brute_best(struct hb_arena *arena, const struct hb_segment *s,
                       const struct hb_spec *spec, const struct hb_brute_limits *limits,
                       uint32_t most, struct hb_brute_choice *out)
{
    struct best b = {
        .arena = arena, .s = s, .spec = spec, .limits = limits, .list = out, .most = most};
    find_best(arena, &b, (size_t)spec->model.block_count + 1);
    return b.count;
}

uint32_t hb_brute_best_of(struct hb_arena *arena, const struct hb_segment *s,
                          const struct hb_brute_walk *walk, const struct hb_brute_limits *limits,
                          uint32_t most, struct hb_brute_choice *out)
{
    struct best b = {
        .arena = arena, .s = s, .walk = walk, .limits = limits, .list = out, .most = most};
    find_best(arena, &b, HB_PARTS_MAX);
    return b.count;
}
