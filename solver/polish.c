/* Neighbours of a configuration: see polish.h. */
#include "solver/polish.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/str.h"
#include "solver/bare.h"
#include "solver/cells.h"
#include "solver/menu.h"
#include "solver/moves.h"
#include "solver/replay.h"
#include "solver/sized.h"

enum {
    MOST_ROUNDS = 16,
    MOST_TRIED = 24,   /* runs of the engine in one round */
    MOST_LISTED = 512, /* of other runs, by their price ... */
    MOST_MOVED = 48,   /* ... until so many of them were run */
    MOST_FAILED = 6,   /* ... and of one kind did not fit */
    KNOWN_ROOM = 8192, /* of those that were run */
    MOST_MORE_RUNS = 3 /* than blocks */
};

/* Behind the distances one and two. */
enum { GUESSED = 3 };

/* What the engine found of a configuration; by key_of, and what is free next to it. */
struct hb_polish_known_run {
    uint64_t key;    /* 0: free */
    int64_t step_ns; /* 0: it does not fit */
    int64_t peak_bytes;
    enum hb_share made;
};

static int state_of(const struct hb_remat *r, int tensor)
{
    return r->offload >> tensor & 1 ? 2 : (int)(r->save >> tensor & 1);
}

struct hb_remat hb_polish_moved(struct hb_remat r, struct hb_polish_move m)
{
    uint32_t bit = 1u << m.tensor;
    r.save = (r.save & ~bit) | (m.state == 1 ? bit : 0);
    r.offload = (r.offload & ~bit) | (m.state == 2 ? bit : 0);
    r.policy = r.save | r.offload ? HB_POLICY_NAMES : HB_POLICY_FULL;
    return r;
}

struct hb_remat hb_polish_as_names(const struct hb_remat *r, uint32_t tensors)
{
    if (r->policy == HB_POLICY_NAMES || r->policy == HB_POLICY_FULL)
        return *r;
    return (struct hb_remat){HB_POLICY_NAMES, tensors & ~r->offload, r->offload};
}

bool hb_polish_is_free(const struct hb_polishing *p, uint32_t block)
{
    const struct hb_block *b = &p->spec.model.blocks[block];
    return b->repeat > b->unit; /* one step is not rematerialised */
}

uint32_t hb_polish_list_moves(const struct hb_polishing *p, uint32_t block,
                              const struct hb_remat *own, struct hb_polish_move *out)
{
    const struct hb_block *b = &p->spec.model.blocks[block];
    uint32_t tensors = hb_menu_tensors(b) | 1u << HB_TN_LAYER_IN, count = 0;
    for (int t = 0; t < HB_TN_COUNT; t++)
        for (int state = 0; state < 3; state++) {
            bool same = state == state_of(own, t);
            if ((tensors >> t & 1) && !same)
                out[count++] = (struct hb_polish_move){t, state};
        }
    return count;
}

void hb_polish_add_try(const struct hb_polishing *p, uint32_t block, struct hb_remat r)
{
    struct hb_polish_tries *t = &p->tries[block];
    uint32_t known = hb_menu_place(&p->s->plan->menus[block], &r), at = t->count;
    for (uint32_t i = 0; i < t->count; i++)
        if (hb_remat_same(&t->list[i], &r))
            return;
    if (t->count == HB_POLISH_NEIGHBOURS || !hb_menu_compiles(&p->spec, &r))
        return;
    for (; at > 0 && known < t->known[at - 1]; at--) {
        t->list[at] = t->list[at - 1];
        t->known[at] = t->known[at - 1];
    }
    t->list[at] = r;
    t->known[at] = known;
    t->count++;
}

/* What differs from a policy of the block in so many tensors; of two, one is made again and the
 * other is not. */
static void add_moved(const struct hb_polishing *p, uint32_t block, const struct hb_remat *base,
                      int depth)
{
    struct hb_polish_move moves[HB_POLISH_MOVES];
    uint32_t made = hb_polish_list_moves(p, block, base, moves);
    for (uint32_t k = 0; k < made; k++) {
        struct hb_remat one = hb_polish_moved(*base, moves[k]);
        if (depth == 1)
            hb_polish_add_try(p, block, one);
        for (uint32_t l = 0; l < k && depth == 2; l++)
            if (moves[k].tensor != moves[l].tensor &&
                (moves[k].state == 0) != (moves[l].state == 0))
                hb_polish_add_try(p, block, hb_polish_moved(one, moves[l]));
    }
}

/* A policy that differs in one tensor or two, by what each of them brings. */
struct guess {
    struct hb_remat remat;
    int64_t ns;
    int64_t bytes;
    bool taken;
};

/* Those whose tensors' gains are known; how many. */
static uint32_t list_guesses(const struct hb_polishing *p, uint32_t block,
                             const struct hb_remat *base, struct guess *out)
{
    struct hb_polish_move moves[HB_POLISH_MOVES];
    struct hb_polish_gain(*gains)[3] = p->gains[block];
    uint32_t made = hb_polish_list_moves(p, block, base, moves), count = 0;
    for (uint32_t k = 0; k < made; k++) {
        struct hb_polish_gain own = gains[moves[k].tensor][moves[k].state];
        struct hb_remat one = hb_polish_moved(*base, moves[k]);
        if (!own.known)
            continue;
        out[count++] = (struct guess){one, own.ns, own.bytes, false};
        for (uint32_t l = 0; l < k; l++) {
            struct hb_polish_gain more = gains[moves[l].tensor][moves[l].state];
            if (more.known && moves[k].tensor != moves[l].tensor)
                out[count++] = (struct guess){hb_polish_moved(one, moves[l]), own.ns + more.ns,
                                              own.bytes + more.bytes, false};
        }
    }
    return count;
}

static bool is_beaten(const struct guess *all, uint32_t count, uint32_t own)
{
    const struct guess *a = &all[own];
    for (uint32_t i = 0; i < count; i++) {
        const struct guess *b = &all[i];
        bool no_worse = b->ns <= a->ns && b->bytes <= a->bytes;
        bool better = b->ns < a->ns || b->bytes < a->bytes || i < own;
        if (!b->taken && i != own && no_worse && better)
            return true;
    }
    return false;
}

/* Of one run under two policies one gives what the other takes: those first that no other beats in
 * time and bytes, then those that none of the rest beats, as many as there is room for. */
static void add_guesses(const struct hb_polishing *p, uint32_t block, const struct hb_remat *base)
{
    enum { MOST_GUESSES = HB_POLISH_MOVES + HB_POLISH_MOVES * (HB_POLISH_MOVES - 1) / 2 };
    struct hb_arena_mark mark = hb_arena_mark(p->s->scratch);
    struct guess *all = hb_arena_alloc(p->s->scratch, MOST_GUESSES, sizeof *all);
    bool *layer = hb_arena_alloc(p->s->scratch, MOST_GUESSES, sizeof *layer);
    uint32_t count = list_guesses(p, block, base, all), left = count;
    while (left > 0 && p->tries[block].count < HB_POLISH_NEIGHBOURS) {
        for (uint32_t i = 0; i < count; i++)
            layer[i] = !all[i].taken && !is_beaten(all, count, i);
        for (uint32_t i = 0; i < count; i++)
            if (layer[i]) {
                all[i].taken = true;
                hb_polish_add_try(p, block, all[i].remat);
                left--;
            }
    }
    hb_arena_rewind(p->s->scratch, mark);
}

void hb_polish_make_tries(struct hb_polishing *p, uint32_t block)
{
    p->tries[block].count = 0;
    for (uint32_t i = 0; i < p->now.run_count; i++)
        if (p->now.runs[i].block == block)
            hb_polish_add_try(p, block, p->s->plan->menus[block].policies[p->now.runs[i].policy]);
    p->menus[block] = (struct hb_menu){p->tries[block].list, p->tries[block].count};
}

/* Also what lies around them. */
static void add_tries(struct hb_polishing *p, uint32_t block, int depth)
{
    struct hb_remat own[HB_PARTS_MAX] = {{0}};
    uint32_t count = 0, main = 0;
    int32_t most = 0;
    for (uint32_t i = 0; i < p->now.run_count; i++)
        if (p->now.runs[i].block == block) {
            main = p->now.runs[i].steps > most ? count : main;
            most = p->now.runs[i].steps > most ? p->now.runs[i].steps : most;
            own[count++] = p->s->plan->menus[block].policies[p->now.runs[i].policy];
        }
    uint32_t tensors = hb_menu_tensors(&p->spec.model.blocks[block]);
    for (uint32_t i = 0; i < count; i++) {
        struct hb_remat base = hb_polish_as_names(&own[i], tensors);
        if (depth < GUESSED)
            add_moved(p, block, &base, depth);
        else if (i == main)
            add_guesses(p, block, &base);
    }
    p->menus[block].count = p->tries[block].count;
}

/* --- what is better --- */

/* The runs, of this round's menus, as runs of the plan's: with what is new appended to those. */
static struct hb_choice adopt(struct hb_polishing *p, const struct hb_run *runs, uint32_t count)
{
    return (struct hb_choice){.cell = p->now.cell,
                              .runs = hb_search_adopt(p->s, p->menus, runs, count),
                              .run_count = count};
}

/* Of a configuration of the cell, by its runs and their policies. */
static uint64_t key_of(const struct hb_polishing *p, const struct hb_run *runs, uint32_t count)
{
    uint64_t hash = HB_HASH_START;
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_remat *r = &p->menus[runs[i].block].policies[runs[i].policy];
        const uint64_t parts[] = {runs[i].block, (uint64_t)runs[i].steps, (uint64_t)r->policy,
                                  r->save, r->offload};
        for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
            hash = hb_hash(hash, parts[k]);
    }
    return hash ? hash : 1;
}

/* Its key is 0 where the configuration was not run. */
static struct hb_polish_known_run *find_run(const struct hb_polishing *p, uint64_t key)
{
    uint64_t at = key % KNOWN_ROOM;
    while (p->known[at].key && p->known[at].key != key)
        at = (at + 1) % KNOWN_ROOM;
    return &p->known[at];
}

/* A round comes by many that were run in one before. */
static struct hb_polish_known_run run_once(struct hb_polishing *p, const struct hb_choice *c)
{
    struct hb_search *s = p->s;
    uint64_t key = key_of(p, c->runs, c->run_count);
    struct hb_polish_known_run *known = find_run(p, key), own = *known;
    if (known->key)
        return own;
    const struct hb_menu *plans = s->plan->menus;
    struct hb_choice ran = *c;
    struct hb_memory memory = {0};
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    s->plan->menus = p->menus;
    bool fits = hb_search_run(s, &ran, &memory, &ran.step_ns);
    s->plan->menus = plans;
    ran.peak_bytes = memory.peak_bytes;
    if (fits)
        hb_search_check(s, &ran, false);
    hb_arena_rewind(s->scratch, mark);
    p->ran++;
    s->plan->counts.polish_runs++;
    own = (struct hb_polish_known_run){key, ran.step_ns, ran.peak_bytes, ran.made};
    if (p->known_count < KNOWN_ROOM / 2) {
        *known = own;
        p->known_count++;
    }
    return own;
}

bool hb_polish_is_better(struct hb_polishing *p, const struct hb_run *runs, uint32_t count,
                         struct hb_choice *out)
{
    *out = (struct hb_choice){.cell = p->now.cell, .runs = runs, .run_count = count};
    struct hb_polish_known_run ran = run_once(p, out);
    out->step_ns = ran.step_ns;
    out->peak_bytes = ran.peak_bytes;
    out->made = ran.made;
    p->fits = ran.step_ns > 0;
    double value = hb_search_value_of(p->s, out);
    return ran.step_ns > 0 && value < p->value * (1 - p->least_part);
}

void hb_polish_take_up(struct hb_polishing *p, const struct hb_choice *better)
{
    struct hb_choice c = adopt(p, better->runs, better->run_count);
    c.live_bytes = better->live_bytes;
    c.bound_ns = better->bound_ns;
    c.step_ns = better->step_ns;
    c.peak_bytes = better->peak_bytes;
    c.made = better->made;
    p->now = c;
    p->value = hb_search_value_of(p->s, &c);
}

uint32_t hb_polish_most_runs(const struct hb_polishing *p)
{
    return (uint32_t)p->spec.model.block_count + MOST_MORE_RUNS;
}

/* What is worth a run of the engine, up to this value of its price. */
static struct hb_brute_limits limits_below(const struct hb_polishing *p, int64_t most_value)
{
    struct hb_search *s = p->s;
    return (struct hb_brute_limits){.goal = hb_search_by_memory(s) ? HB_GOAL_MEMORY : HB_GOAL_TIME,
                                    .budget_bytes = hb_search_peak_bytes(s, p->now.cell),
                                    .host_bytes = s->ask->host_bytes,
                                    .most_value = most_value,
                                    .after_value = -1,
                                    .stop = s->ask->stop};
}

/* Takes the configuration of this round's menus up if it is better. */
static bool run_choice(struct hb_polishing *p, const struct hb_segment *segment,
                       const struct hb_brute_choice *choice, struct hb_choice *out)
{
    struct hb_run runs[HB_PARTS_MAX];
    uint32_t made = hb_brute_runs(segment, &p->spec, choice->parts, choice->count, runs);
    p->least_part = made > p->now.run_count ? HB_POLISH_WORTH_A_RUN : 0;
    bool better = hb_polish_is_better(p, runs, made, out);
    p->least_part = 0;
    out->share = p->share;
    if (hb_search_is_priced(out)) {
        out->live_bytes = choice->price.live_bytes;
        out->bound_ns = choice->price.bound_ns;
    }
    if (better)
        hb_polish_take_up(p, out);
    return better;
}

/* By its price it may be. */
static bool may_be_better(const struct hb_polishing *p, const struct hb_brute_choice *choice)
{
    return hb_search_value(p->s, p->now.cell, choice->value, choice->value) < p->value;
}

static bool try_segment(struct hb_polishing *p, const struct hb_segment *segment)
{
    bool memory = hb_search_by_memory(p->s);
    struct hb_brute_limits limits = limits_below(p, memory ? p->now.peak_bytes : p->now.step_ns);
    struct hb_brute_choice best[MOST_TRIED];
    uint32_t count = hb_brute_best(p->s->scratch, segment, &p->spec, &limits, MOST_TRIED, best);
    p->s->plan->counts.turned += (uint64_t)hb_brute_count(&p->spec, p->menus, true);
    for (uint32_t i = 0; i < count && may_be_better(p, &best[i]); i++) {
        struct hb_choice ran;
        if (run_choice(p, segment, &best[i], &ran))
            return true;
    }
    return false;
}

/* The runs as parts of this round's segment, and their price; false: it is above what the engine
 * finds. */
static bool price_now(const struct hb_polishing *p, const struct hb_segment *segment,
                      struct hb_part *parts, uint32_t *out_count, struct hb_price *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->now.run_count; i++) {
        const struct hb_run *r = &p->now.runs[i];
        const struct hb_remat *own = &p->s->plan->menus[r->block].policies[r->policy];
        uint32_t first = segment->first_item[r->block], end = segment->first_item[r->block + 1];
        uint32_t policy = hb_menu_place(&p->menus[r->block], own);
        if (first == end)
            continue;
        if (policy == HB_NONE || !segment->admits[r->steps])
            return false;
        parts[count++] = (struct hb_part){first + policy, r->steps};
    }
    hb_segment_price(segment, parts, count, out);
    out->bound_ns = hb_larger(out->bound_ns, hb_replay_bound_ns(segment->replay, parts, count));
    *out_count = count;
    return out->live_bytes <= p->now.peak_bytes && out->bound_ns <= p->now.step_ns;
}

/* The one tensor in which a policy differs from another. */
static bool find_move(const struct hb_remat *from, const struct hb_remat *to,
                      struct hb_polish_move *out)
{
    int found = 0;
    for (int t = 0; t < HB_TN_COUNT; t++)
        if (state_of(from, t) != state_of(to, t)) {
            *out = (struct hb_polish_move){t, state_of(to, t)};
            found++;
        }
    return found == 1;
}

/* By the prices of this round's segment, of one tensor in each policy. */
static void find_gains(struct hb_polishing *p, const struct hb_segment *segment, uint32_t block)
{
    struct hb_part parts[HB_PARTS_MAX];
    struct hb_price now, one;
    struct hb_polish_move move;
    uint32_t count, main = HB_NONE;
    if (hb_search_by_memory(p->s) || !price_now(p, segment, parts, &count, &now))
        return;
    for (uint32_t i = 0; i < count; i++)
        if (segment->items[parts[i].item].block == block &&
            (main == HB_NONE || parts[i].steps > parts[main].steps))
            main = i;
    if (main == HB_NONE)
        return;
    const struct hb_remat *list = p->menus[block].policies;
    struct hb_remat base = hb_polish_as_names(&list[segment->items[parts[main].item].policy],
                                              hb_menu_tensors(&p->spec.model.blocks[block]));
    for (uint32_t k = segment->first_item[block]; k < segment->first_item[block + 1]; k++) {
        if (!find_move(&base, &list[segment->items[k].policy], &move))
            continue;
        parts[main].item = k;
        hb_segment_price(segment, parts, count, &one);
        one.bound_ns = hb_larger(one.bound_ns, hb_replay_bound_ns(segment->replay, parts, count));
        p->gains[block][move.tensor][move.state] = (struct hb_polish_gain){
            one.bound_ns - now.bound_ns, one.live_bytes - now.live_bytes, true};
    }
}

/* Runs of the same policies one after another, whatever their steps. */
struct kind {
    uint32_t items[HB_PARTS_MAX];
    uint32_t count;
    uint32_t failed; /* so many did not fit */
    uint32_t passed; /* of those that come next are passed over */
    bool over;
};

struct kinds {
    struct kind list[MOST_MOVED];
    uint32_t count;
    uint32_t ran;
};

/* Null: there are enough. */
static struct kind *find_kind(struct kinds *k, const struct hb_brute_choice *choice)
{
    for (uint32_t i = 0; i < k->count; i++) {
        uint32_t same = 0;
        while (same < choice->count && same < k->list[i].count &&
               k->list[i].items[same] == choice->parts[same].item)
            same++;
        if (same == choice->count && same == k->list[i].count)
            return &k->list[i];
    }
    if (k->count == MOST_MOVED)
        return NULL;
    struct kind *own = &k->list[k->count++];
    *own = (struct kind){.count = choice->count};
    for (uint32_t i = 0; i < choice->count; i++)
        own->items[i] = choice->parts[i].item;
    return own;
}

/* Whether it is the turn of one more of a kind. Packing takes what no price says, and other steps
 * may leave room for it: of those that do not fit twice as many are passed over each time. */
static bool is_turn(struct kind *k)
{
    if (k->over)
        return false;
    if (k->passed == 0)
        return true;
    k->passed--;
    return false;
}

/* Of these, best first; one that fits and is no better is the last of its kind. */
static bool try_listed(struct hb_polishing *p, const struct hb_segment *segment,
                       const struct hb_brute_choice *list, uint32_t count, struct kinds *kinds)
{
    for (uint32_t i = 0; i < count && kinds->ran < MOST_MOVED; i++) {
        struct kind *kind = find_kind(kinds, &list[i]);
        struct hb_choice ran;
        if (!kind || !is_turn(kind))
            continue;
        kinds->ran++;
        if (run_choice(p, segment, &list[i], &ran))
            return true;
        kind->over = ran.step_ns > 0 || kind->failed == MOST_FAILED;
        kind->passed = (1u << kind->failed++) - 1;
    }
    return false;
}

/* What takes less than these runs do by their price. */
static bool try_moves(struct hb_polishing *p, const struct hb_segment *segment, uint32_t block)
{
    struct hb_part parts[HB_PARTS_MAX];
    struct hb_brute_choice list[MOST_LISTED];
    struct kinds kinds = {.count = 0};
    struct hb_moves moves = {.segment = segment,
                             .now = parts,
                             .block = block,
                             .least_steps = hb_sized_least_run(&p->spec)};
    const struct hb_brute_walk walk = {hb_moves_each, &moves};
    struct hb_price now;
    p->priced = !hb_search_by_memory(p->s) && price_now(p, segment, parts, &moves.count, &now);
    if (!p->priced)
        return false;
    moves.most_parts =
        hb_sized_may_split(&p->spec) ? hb_polish_most_runs(p) + moves.count - p->now.run_count : 0;
    struct hb_brute_limits limits = limits_below(p, now.bound_ns - 1);
    uint32_t count = hb_brute_best_of(p->s->scratch, segment, &walk, &limits, MOST_LISTED, list);
    p->s->plan->counts.turned += moves.visited;
    return try_listed(p, segment, list, count, &kinds);
}

/* One block's neighbours at one distance, or those that are guessed. */
static bool try_block(struct hb_polishing *p, uint32_t block, int depth)
{
    struct hb_search *s = p->s;
    uint32_t blocks = (uint32_t)p->spec.model.block_count;
    struct hb_segment segment;
    const char *why;
    for (uint32_t i = 0; i < blocks; i++)
        hb_polish_make_tries(p, i);
    add_tries(p, block, depth);
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    struct hb_segment_ask ask = {.spec = &p->spec,
                                 .menus = p->menus,
                                 .device = s->ask->device,
                                 .unchecked = true,
                                 .bytes_only = hb_search_by_memory(s)};
    bool built = hb_segment_build(s->scratch, &ask, &segment, &why);
    if (built && !ask.bytes_only) /* one for all: it keeps what it made of each run */
        segment.replay = hb_replay_open(s->scratch, &segment);
    if (built && depth == 1)
        find_gains(p, &segment, block);
    bool better = built && (try_segment(p, &segment) || try_moves(p, &segment, block));
    hb_arena_rewind(s->scratch, mark);
    return better;
}

/* One tensor of each block in turn, then two, then what is guessed of both; then one by one. */
static bool try_round(struct hb_polishing *p)
{
    p->priced = false;
    p->ran = p->s->spreads ? p->ran : 0; /* there most is run without a price */
    memset(p->gains, 0, (size_t)p->spec.model.block_count * sizeof *p->gains);
    for (int depth = 1; depth <= GUESSED && !hb_bare_has_short(p); depth++)
        for (uint32_t i = 0; i < (uint32_t)p->spec.model.block_count; i++)
            if (hb_polish_is_free(p, i) && !hb_stop_now(p->s->ask->stop) && try_block(p, i, depth))
                return true;
    return hb_bare(p);
}

/* From the choice; the best that a search around it comes to is the cell's. True: it is better. */
static bool search_around(struct hb_polishing *p, uint32_t index,
                          bool (*round)(struct hb_polishing *))
{
    struct hb_search *s = p->s;
    const struct hb_choice *from = &s->choices[index];
    double before = hb_search_value_of(s, from);
    size_t blocks = (size_t)s->ask->spec->model.block_count;
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    p->now = *from;
    p->value = before;
    p->menus = hb_arena_alloc(s->scratch, blocks, sizeof *p->menus);
    p->tries = hb_arena_alloc(s->scratch, blocks, sizeof *p->tries);
    p->gains = hb_arena_alloc(s->scratch, blocks, sizeof *p->gains);
    p->known = hb_arena_alloc(s->scratch, KNOWN_ROOM, sizeof *p->known);
    for (int i = 0; i < MOST_ROUNDS && round(p); i++)
        ;
    hb_arena_rewind(s->scratch, mark);
    s->polished[p->now.cell] = p->value;
    if (p->value >= before)
        return false;
    hb_cells_put_run(s, &p->now);
    return true;
}

static struct hb_polishing polishing_of(struct hb_search *s, const struct hb_choice *from)
{
    struct hb_polishing p = {.s = s, .share = hb_search_first_share(s, from->made)};
    hb_search_priced_spec(s, from->cell, p.share, &p.spec);
    p.least_steps = hb_sized_least_run(&p.spec);
    return p;
}

bool hb_polish(struct hb_search *s, uint32_t index)
{
    const struct hb_choice *from = &s->choices[index];
    double *polished = &s->polished[from->cell];
    if (!s->ask->polish || !s->plan->space.remat ||
        (*polished > 0 && *polished <= hb_search_value_of(s, from)))
        return false;
    struct hb_polishing p = polishing_of(s, from);
    s->plan->counts.polished += !(*polished > 0);
    return search_around(&p, index, try_round);
}

static bool try_bare(struct hb_polishing *p)
{
    p->ran = 0;
    return hb_bare(p);
}

bool hb_polish_short(struct hb_search *s, uint32_t index)
{
    const struct hb_choice *from = &s->choices[index];
    double value = hb_search_value_of(s, from);
    if (!s->ask->polish || !s->plan->space.remat || hb_search_by_memory(s) || s->cut_short == value)
        return false;
    struct hb_polishing p = polishing_of(s, from);
    p.least_steps = hb_sized_least_loop(&p.spec);
    bool better = p.least_steps < hb_sized_least_run(&p.spec) && hb_sized_may_split(&p.spec) &&
                  search_around(&p, index, try_bare);
    s->cut_short = better ? p.value : value;
    return better;
}
