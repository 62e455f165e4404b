/* A path, and what parts add to it: see screen.h. */
#include "solver/screen.h"

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "solver/replay_matrix.h"

/* Where a block's turn begins, where one of its runs ends and another begins, where it ends. */
enum { ENTER, INNER, LEAVE, PLACES };

/* Runs of a block: whether one is before, and one behind it. */
enum { RUN_KINDS = 4 };

/* A matrix of the first configuration, and the place behind it. */
struct step {
    const struct hb_matrix *m; /* null: an edge, at which compute's time is the edge's */
    int64_t times;             /* it is passed so often; between two of them, on compute */
    int *enter, *leave;        /* where the stream before and behind it is to be kept; or null */
    bool turns;                /* a turn is before it or behind it */
    bool resets;               /* what is passed more than once begins or ends here */
    int64_t left_ns[HB_REPLAY_TIMES]; /* behind it, from each stream on */
    int at;                           /* the path's stream behind it */
};

/* A slot of turns. */
struct crossing {
    uint32_t slot;
    int64_t times;
    int *at; /* [block x PLACES + place]: streams */
};

struct hb_screen {
    struct hb_arena *arena;
    struct hb_replay *replay;
    const struct hb_segment *s;
    struct step *steps; /* the first is before all */
    uint32_t step_count, step_cap;
    struct crossing *crossings;
    uint32_t crossing_count, crossing_cap;
    int64_t ends_ns;
    int64_t **sums; /* [item x RUN_KINDS + kind]: by steps; null: none yet */
};

static const int64_t unknown = INT64_MAX; /* of a part: not looked at yet */

static bool is_known(int64_t ns)
{
    return ns > HB_REPLAY_NEVER / 2;
}

static uint32_t block_of(const struct hb_screen *c, const struct hb_part *part)
{
    return c->s->items[part->item].block;
}

static int64_t entry_of(const struct hb_matrix *m, int from, int to)
{
    if (!m)
        return from == (to == HB_REPLAY_EDGE ? HB_STREAM_COMPUTE : to) ? 0 : HB_REPLAY_NEVER;
    if (!m->moved[to])
        return to == from ? 0 : HB_REPLAY_NEVER;
    for (uint32_t i = 0; i < m->count; i++)
        if (m->entries[i].from == from && m->entries[i].to == to)
            return m->entries[i].ns;
    return HB_REPLAY_NEVER;
}

/* --- the steps --- */

static struct step *add_step(struct hb_screen *c, const struct hb_matrix *m, int64_t times)
{
    c->steps = hb_grow(c->arena, c->steps, c->step_count, &c->step_cap, sizeof *c->steps);
    c->steps[c->step_count] = (struct step){.m = m, .times = times};
    return &c->steps[c->step_count++];
}

static void add_turns(struct hb_screen *c, uint32_t slot, int64_t times,
                      const struct hb_part *parts, uint32_t count)
{
    bool rising = c->s->slots[slot].rising, follows = false;
    uint32_t blocks = count ? block_of(c, &parts[count - 1]) + 1 : 0;
    c->crossings =
        hb_grow(c->arena, c->crossings, c->crossing_count, &c->crossing_cap, sizeof *c->crossings);
    int *at = hb_arena_alloc(c->arena, (size_t)blocks * PLACES, sizeof *at);
    c->crossings[c->crossing_count++] = (struct crossing){slot, times, at};
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_part *part = &parts[rising ? i : count - 1 - i];
        const struct hb_part *next = i + 1 == count ? NULL : rising ? part + 1 : part - 1;
        const struct hb_matrix *m = hb_replay_turn(c->replay, slot, part->item, part->steps);
        bool inner = next && block_of(c, next) == block_of(c, part);
        c->steps[c->step_count - 1].turns = true;
        struct step *step = add_step(c, m, times);
        step->turns = true;
        step->leave = &at[block_of(c, part) * PLACES + (inner ? INNER : LEAVE)];
        step->enter = follows ? NULL : &at[block_of(c, part) * PLACES + ENTER];
        follows = inner;
    }
}

static void add_slots(struct hb_screen *c, uint32_t first, uint32_t end, int64_t times,
                      const struct hb_part *parts, uint32_t count)
{
    for (uint32_t q = first; q < end; q++)
        if (c->s->slots[q].turns)
            add_turns(c, q, times, parts, count);
        else
            add_step(c, hb_replay_ends(c->replay, q), times);
}

/* The first and the last trip by themselves, those between as one. */
static void add_shared(struct hb_screen *c, uint32_t first, uint32_t end, int64_t trips,
                       const struct hb_part *parts, uint32_t count)
{
    for (int64_t done = 0; done < trips;) {
        int64_t times = done > 0 && done < trips - 1 ? trips - 2 : 1;
        add_step(c, NULL, 1)->resets = times > 1;
        add_slots(c, first, end, times, parts, count);
        c->steps[c->step_count - 1].resets = times > 1;
        done += times;
    }
    add_step(c, NULL, 1);
}

/* Each slot of turns by itself, from compute to compute. */
static void add_apart(struct hb_screen *c, const struct hb_part *parts, uint32_t count)
{
    for (uint32_t q = 0; q < c->s->slot_count; q++) {
        if (!c->s->slots[q].turns)
            continue;
        c->steps[c->step_count - 1].resets = true;
        add_turns(c, q, hb_replay_times(c->replay, q), parts, count);
        c->steps[c->step_count - 1].resets = true;
    }
}

static void add_all(struct hb_screen *c, bool apart, const struct hb_part *parts, uint32_t count)
{
    const struct hb_program *p = c->s->timed->p;
    add_step(c, NULL, 1);
    if (apart) {
        add_apart(c, parts, count);
        return;
    }
    for (uint32_t q = 0, end; q < c->s->slot_count; q = end) {
        uint32_t loop = hb_replay_shared(c->replay, q);
        for (end = q + 1; loop != HB_NONE && end < c->s->slot_count &&
                          c->s->slots[end].first_op < p->loops[loop].end_op;)
            end++;
        if (loop == HB_NONE)
            add_slots(c, q, end, 1, parts, count);
        else
            add_shared(c, q, end, p->loops[loop].trips, parts, count);
    }
}

/* --- the path --- */

/* Of a turn nothing may follow from the edge before it. */
static void close_places(struct step *step)
{
    for (int i = 0; i < HB_REPLAY_TIMES; i++)
        if ((i == HB_REPLAY_EDGE && step->turns) || (i != HB_STREAM_COMPUTE && step->resets))
            step->left_ns[i] = HB_REPLAY_NEVER;
}

/* Before a step, from one stream on. */
static int64_t left_from(const struct step *behind, int from)
{
    int64_t most = HB_REPLAY_NEVER;
    for (int to = 0; to < HB_REPLAY_TIMES; to++) {
        int64_t ns = entry_of(behind->m, from, to);
        if (is_known(ns) && is_known(behind->left_ns[to]))
            most = hb_larger(most, hb_add_sat(ns, behind->left_ns[to]));
    }
    return most;
}

/* From the end to the beginning. */
static void find_left(struct hb_screen *c)
{
    c->steps[c->step_count - 1].left_ns[HB_REPLAY_EDGE] = HB_REPLAY_NEVER;
    close_places(&c->steps[c->step_count - 1]);
    for (uint32_t k = c->step_count; k-- > 1;) {
        for (int from = 0; from < HB_REPLAY_TIMES; from++)
            c->steps[k - 1].left_ns[from] = left_from(&c->steps[k], from);
        close_places(&c->steps[k - 1]);
    }
}

/* At the beginning no stream is used. */
static void find_path(struct hb_screen *c)
{
    for (uint32_t k = 0; k < c->step_count; k++) {
        struct step *step = &c->steps[k];
        int64_t most = HB_REPLAY_NEVER;
        step->at = HB_STREAM_COMPUTE;
        for (int to = 0; to < HB_REPLAY_TIMES; to++) {
            int64_t ns = k ? entry_of(step->m, step[-1].at, to) : 0;
            if (!is_known(ns) || !is_known(step->left_ns[to]) || ns + step->left_ns[to] <= most)
                continue;
            most = ns + step->left_ns[to];
            step->at = to;
        }
        if (step->enter)
            *step->enter = step[-1].at;
        if (step->leave)
            *step->leave = step->at;
        else if (k)
            c->ends_ns = hb_add_sat(
                c->ends_ns, hb_mul_sat(entry_of(step->m, step[-1].at, step->at), step->times));
    }
}

struct hb_screen *hb_screen_open(struct hb_arena *arena, struct hb_replay *replay, bool apart,
                                 const struct hb_part *parts, uint32_t count)
{
    struct hb_screen *c = hb_arena_alloc(arena, 1, sizeof *c);
    *c = (struct hb_screen){.arena = arena, .replay = replay, .s = hb_replay_segment(replay)};
    c->sums = hb_arena_alloc(arena, (size_t)c->s->item_count * RUN_KINDS, sizeof *c->sums);
    add_all(c, apart, parts, count);
    find_left(c);
    find_path(c);
    return c;
}

/* --- parts --- */

/* kind: 1: no run of its block comes behind it; 2: none before. */
static int64_t sum_part(struct hb_screen *c, const struct hb_part *part, uint32_t kind)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < c->crossing_count && is_known(sum); i++) {
        const struct crossing *x = &c->crossings[i];
        const int *at = x->at + (size_t)block_of(c, part) * PLACES;
        bool rising = c->s->slots[x->slot].rising;
        int from = at[kind & (rising ? 2 : 1) ? ENTER : INNER];
        int to = at[kind & (rising ? 1 : 2) ? LEAVE : INNER];
        int64_t ns = hb_replay_turn_ns(c->replay, part, x->slot, from, to);
        sum = is_known(ns) ? hb_add_sat(sum, hb_mul_sat(ns, x->times)) : HB_REPLAY_NEVER;
    }
    return sum;
}

static int64_t part_ns(struct hb_screen *c, const struct hb_part *part, uint32_t kind)
{
    int64_t **sums = &c->sums[(size_t)part->item * RUN_KINDS + kind];
    if (!*sums) {
        *sums = hb_arena_raw(c->arena, (size_t)c->s->max_steps + 1, sizeof **sums);
        for (int64_t n = 0; n <= c->s->max_steps; n++)
            (*sums)[n] = unknown;
    }
    if ((*sums)[part->steps] == unknown)
        (*sums)[part->steps] = sum_part(c, part, kind);
    return (*sums)[part->steps];
}

int64_t hb_screen_ns(struct hb_screen *c, const struct hb_part *parts, uint32_t count)
{
    int64_t sum = c->ends_ns;
    bool first = true, last;
    for (uint32_t i = 0; i < count && is_known(sum); i++, first = last) {
        last = i + 1 == count || block_of(c, &parts[i + 1]) != block_of(c, &parts[i]);
        int64_t own = part_ns(c, &parts[i], (first ? 2u : 0u) | (last ? 1u : 0u));
        sum = is_known(own) ? hb_add_sat(sum, own) : HB_REPLAY_NEVER;
    }
    return is_known(sum) ? sum : INT64_MIN;
}
