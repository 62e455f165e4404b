/* The tables of bytes: what lives of the ends and of each group, slot by slot. */
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "solver/segment_build.h"

/* --- the ends --- */

/* Of what lives in a slot some may lie in memory that is counted among the arguments and outputs
 * already (lend.h): which follows from the sizes of all that is there, so all that there is room
 * for is taken away, and the sum is below the engine's by no more than that (12 layers with 16-bit
 * parameters and a master copy: norms' parameters, which no op reads, hold the gradients of two
 * layers, not of three). */
static void lend_end(struct hb_building *w, uint32_t root)
{
    for (uint32_t q = 0; q < w->s->slot_count; q++)
        if (hb_building_lends(w, root, q))
            w->s->live[HB_BYTES_DEVICE][q] -= hb_lend_bytes(&w->lends[root]);
}

/* Adds a root of the ends to what lives at each op. */
static bool add_end(struct hb_building *w, const struct hb_outline_root *r, int64_t *const *at)
{
    int kind = hb_building_kind(w, r->buf);
    if (!hb_building_counts(w, r->buf))
        return true;
    if (hb_building_moves(w, r->buf)) {
        w->why = "a buffer of the ends that follows the layers";
        return false;
    }
    int64_t bytes = hb_building_still_bytes(w, r->buf);
    if (hb_building_is_static(w, r->buf)) {
        w->s->fixed[kind] += bytes;
        return true;
    }
    at[kind][r->start < 0 ? 0 : r->start] += bytes;
    if (r->end < (int32_t)w->a.op_count)
        at[kind][r->end + 1] -= bytes;
    return true;
}

/* The most of the ends in a slot; in turns of the groups it must not change. */
static bool sum_slot(struct hb_building *w, uint32_t slot, int kind, const int64_t *at)
{
    const struct hb_slot *q = &w->s->slots[slot];
    int64_t *most = &w->s->live[kind][slot];
    for (uint32_t t = q->first_op; t < q->end_op; t++) {
        if (q->turns && at[t] != at[q->first_op]) {
            w->why = "a buffer of the ends that comes or goes in a turn of the layers";
            return false;
        }
        *most = at[t] > *most ? at[t] : *most;
    }
    return true;
}

static bool sum_ends(struct hb_building *w)
{
    uint32_t groups = w->o.pair.group_count, ops = w->a.op_count;
    struct hb_segment *s = w->s;
    int64_t *at[HB_BYTES_KINDS];
    for (int k = 0; k < HB_BYTES_KINDS; k++) {
        at[k] = hb_arena_alloc(w->arena, (size_t)ops + 1, sizeof *at[k]);
        s->live[k] = hb_arena_alloc(w->arena, s->slot_count, sizeof *s->live[k]);
    }
    s->fixed[HB_BYTES_DEVICE] = w->a.argument_extra_bytes;
    for (uint32_t i = w->first_root[groups]; i < w->first_root[groups + 1]; i++)
        if (!add_end(w, &w->o.roots[w->roots_of[i]], at))
            return false;
    for (int k = 0; k < HB_BYTES_KINDS; k++) {
        for (uint32_t t = 1; t < ops; t++)
            at[k][t] += at[k][t - 1];
        for (uint32_t q = 0; q < s->slot_count; q++)
            if (!sum_slot(w, q, k, at[k]))
                return false;
    }
    for (uint32_t i = w->first_root[groups]; i < w->first_root[groups + 1]; i++)
        lend_end(w, w->o.roots[w->roots_of[i]].buf);
    return true;
}

/* --- the groups --- */

/* Where a root is alive in a slot, seen from its owner's turn. */
struct stay {
    bool state[HB_PART_STATES]; /* OWN: throughout the turn */
    bool partial;               /* a part of the turn, from .. to (ops of it) */
    uint32_t from;
    uint32_t to;
    bool broken; /* comes or goes in another's turn */
};

static struct stay find_stay(const struct hb_building *w, const struct hb_outline_root *r,
                             uint32_t slot, uint32_t group)
{
    const struct hb_slot *q = &w->o.slots[slot];
    struct stay stay = {{false}, false, 0, 0, false};
    int64_t first = q->first_op, last = (int64_t)q->end_op - 1, start = r->start, end = r->end;
    bool whole = start <= first && end >= last;
    if (!q->turns) {
        stay.state[HB_PART_OWN] = whole;
        stay.broken = !whole;
        return stay;
    }
    size_t at = (size_t)slot * w->o.pair.group_count + group;
    int64_t own = w->o.turn_first[at], own_end = w->o.turn_end[at];
    if (own == own_end) { /* no turn here: alive throughout, or not at all */
        stay.state[HB_PART_BEFORE] = stay.state[HB_PART_AFTER] = whole;
        stay.broken = !whole;
        return stay;
    }
    bool before = start < own, after = end >= own_end;
    stay.state[HB_PART_BEFORE] = before && start <= first;
    stay.state[HB_PART_AFTER] = after && end >= last;
    stay.broken = before != stay.state[HB_PART_BEFORE] || after != stay.state[HB_PART_AFTER] ||
                  start >= own_end || end < own;
    stay.state[HB_PART_OWN] = start <= own && end >= own_end - 1;
    stay.partial = !stay.state[HB_PART_OWN];
    stay.from = (uint32_t)((start > own ? start : own) - own);
    stay.to = (uint32_t)((end < own_end - 1 ? end : own_end - 1) - own);
    return stay;
}

/* The highest point of one group's turn, by steps. Roots that are alive throughout are added by
 * the caller. */
struct profile {
    struct hb_building *w;
    uint32_t op_count;
    int64_t *still;       /* [op]: what begins there, less what ended before */
    uint32_t *begin;      /* [op]: list of moving roots that begin there */
    uint32_t *finish;     /* [op]: list of those that end there */
    uint32_t *next_begin; /* by place in the list of moving roots */
    uint32_t *next_finish;
    const int64_t **moving;
    uint32_t moving_count;
    bool any; /* it was opened */
};

static struct profile open_profile(struct hb_building *w, uint32_t ops, uint32_t roots)
{
    struct profile f = {.w = w, .op_count = ops, .any = true};
    f.still = hb_arena_alloc(w->arena, (size_t)ops + 1, sizeof *f.still);
    f.begin = hb_arena_alloc(w->arena, ops, sizeof *f.begin);
    f.finish = hb_arena_alloc(w->arena, ops, sizeof *f.finish);
    f.next_begin = hb_arena_alloc(w->arena, roots, sizeof *f.next_begin);
    f.next_finish = hb_arena_alloc(w->arena, roots, sizeof *f.next_finish);
    f.moving = hb_arena_alloc(w->arena, roots, sizeof *f.moving);
    for (uint32_t i = 0; i < ops; i++)
        f.begin[i] = f.finish[i] = HB_NONE;
    return f;
}

static void add_partial(struct profile *f, uint32_t root, const struct stay *stay)
{
    if (!hb_building_moves(f->w, root)) {
        int64_t bytes = hb_building_still_bytes(f->w, root);
        f->still[stay->from] += bytes;
        f->still[stay->to + 1] -= bytes;
        return;
    }
    uint32_t at = f->moving_count++;
    f->moving[at] = hb_building_moving_bytes(f->w, root);
    f->next_begin[at] = f->begin[stay->from];
    f->begin[stay->from] = at;
    f->next_finish[at] = f->finish[stay->to];
    f->finish[stay->to] = at;
}

/* Rows begin where tables by steps are wanted (hb_segment_at). */
static void raise_to(const struct hb_segment *s, int64_t *restrict high,
                     const int64_t *restrict now, int64_t still)
{
    size_t end = hb_segment_row(s);
    for (size_t i = 1; i < end; i++) {
        int64_t live = now[i] + still;
        high[i] = live > high[i] ? live : high[i];
    }
}

static void add_row(const struct hb_segment *s, int64_t *restrict to, const int64_t *restrict row)
{
    size_t end = hb_segment_row(s);
    for (size_t i = 1; i < end; i++)
        to[i] += row[i];
}

static void add_table(const struct hb_segment *s, int64_t *restrict to,
                      const int64_t *restrict by_steps)
{
    size_t end = hb_segment_row(s), least = (size_t)s->least_steps - 1;
    for (size_t i = 1; i < end; i++)
        to[i] += by_steps[least + i];
}

static void take_off_table(const struct hb_segment *s, int64_t *restrict from,
                           const int64_t *restrict by_steps)
{
    size_t end = hb_segment_row(s), least = (size_t)s->least_steps - 1;
    for (size_t i = 1; i < end; i++)
        from[i] -= by_steps[least + i];
}

/* Walks the turn: between two changes of what moves, only the highest sum of the rest counts. */
static void close_profile(struct profile *f, int64_t *own)
{
    const struct hb_segment *s = f->w->s;
    int64_t still = 0, high_still = 0;
    int64_t *now = hb_arena_alloc(f->w->arena, hb_segment_row(s), sizeof *now);
    int64_t *high = hb_arena_alloc(f->w->arena, hb_segment_row(s), sizeof *high);
    for (uint32_t t = 0; t < f->op_count; t++) {
        if (f->begin[t] != HB_NONE) {
            raise_to(s, high, now, high_still);
            for (uint32_t i = f->begin[t]; i != HB_NONE; i = f->next_begin[i])
                add_table(s, now, f->moving[i]);
            high_still = 0;
        }
        still += f->still[t];
        high_still = still > high_still ? still : high_still;
        if (f->finish[t] == HB_NONE)
            continue;
        raise_to(s, high, now, high_still);
        for (uint32_t i = f->finish[t]; i != HB_NONE; i = f->next_finish[i])
            take_off_table(s, now, f->moving[i]);
        high_still = still + f->still[t + 1];
    }
    raise_to(s, high, now, high_still);
    add_row(s, own, high);
}

static int64_t *state_table(const struct hb_building *w, struct hb_item *item, int kind,
                            uint32_t slot, int state)
{
    return item->live[kind] +
           ((size_t)slot * HB_PART_STATES + (size_t)state) * hb_segment_row(w->s);
}

/* A row that is being summed up: what moves, and apart from it what does not. */
struct sum {
    int64_t *row;
    int64_t still;
};

static void add_root(struct hb_building *w, struct sum *to, uint32_t root)
{
    if (hb_building_moves(w, root))
        add_table(w->s, to->row, hb_building_moving_bytes(w, root));
    else
        to->still += hb_building_still_bytes(w, root);
}

static void close_sum(const struct hb_segment *s, const struct sum *sum)
{
    size_t end = sum->still ? hb_segment_row(s) : 0;
    int64_t *row = sum->row, still = sum->still;
    for (size_t i = 1; i < end; i++)
        row[i] += still;
}

/* What is summed up of a group in a slot. Most roots that live in several slots live through most
 * of those: they are told where that begins and ends.
 *
 *   slot      0   1   2   3   4          a root from within 0 to within 4
 *   change        +           -          lives through 1, 2, 3                                   */
struct slot_sums {
    struct profile profiles[HB_BYTES_KINDS];
    struct sum sums[HB_BYTES_KINDS][HB_PART_STATES];
    struct sum change[HB_BYTES_KINDS];
};

static uint32_t op_count_in(const struct hb_building *w, uint32_t group, uint32_t slot)
{
    size_t at = (size_t)slot * w->o.pair.group_count + group;
    return w->o.turn_end[at] - w->o.turn_first[at];
}

/* A root in one slot in which it lives. False: it comes or goes in another's turn. */
static bool add_stay(struct hb_building *w, struct slot_sums *to, const struct hb_outline_root *r,
                     uint32_t slot, uint32_t group)
{
    int kind = hb_building_kind(w, r->buf);
    struct stay stay = find_stay(w, r, slot, group);
    if (stay.broken)
        return false;
    for (int k = 0; k < HB_PART_STATES; k++)
        if (stay.state[k])
            add_root(w, &to->sums[kind][k], r->buf);
    if (!stay.partial)
        return true;
    struct profile *f = &to->profiles[kind];
    if (!f->any)
        *f = open_profile(w, op_count_in(w, group, slot),
                          w->first_root[group + 1] - w->first_root[group]);
    add_partial(f, r->buf, &stay);
    return true;
}

/* Through the slots [from, to), of which it sees neither end. */
static void add_through(struct hb_building *w, struct slot_sums *slots, uint32_t root,
                        uint32_t from, uint32_t to)
{
    int kind = hb_building_kind(w, root);
    struct sum *begin = &slots[from].change[kind], *end = &slots[to].change[kind];
    if (from >= to)
        return;
    if (!hb_building_moves(w, root)) {
        begin->still += hb_building_still_bytes(w, root);
        end->still -= hb_building_still_bytes(w, root);
        return;
    }
    add_table(w->s, begin->row, hb_building_moving_bytes(w, root));
    take_off_table(w->s, end->row, hb_building_moving_bytes(w, root));
}

/* Adds what lives through slots to each of them, and forgets it. */
static void close_through(struct hb_building *w, struct slot_sums *slots, uint32_t group, int kind)
{
    static const struct hb_outline_root always = {.start = -1, .end = INT32_MAX};
    size_t room = hb_segment_row(w->s) * sizeof(int64_t);
    struct sum now = {hb_arena_alloc(w->arena, hb_segment_row(w->s), sizeof(int64_t)), 0};
    for (uint32_t q = 0; q < w->s->slot_count; q++) {
        struct sum *change = &slots[q].change[kind];
        struct stay stay = find_stay(w, &always, q, group);
        add_row(w->s, now.row, change->row);
        now.still += change->still;
        memset(change->row, 0, room);
        change->still = 0;
        for (int k = 0; k < HB_PART_STATES; k++) {
            struct sum *to = &slots[q].sums[kind][k];
            if (!stay.state[k])
                continue;
            add_row(w->s, to->row, now.row);
            to->still += now.still;
        }
    }
}

/* A root in all slots in which it lives. */
static bool add_life(struct hb_building *w, struct slot_sums *slots,
                     const struct hb_outline_root *r, uint32_t group)
{
    int32_t last_op = (int32_t)w->a.op_count - 1;
    uint32_t first = w->slot_of[r->start < 0 ? 0 : r->start];
    uint32_t last = w->slot_of[r->end < last_op ? r->end : last_op];
    add_through(w, slots, r->buf, first + 1, last);
    return add_stay(w, &slots[first], r, first, group) &&
           (last == first || add_stay(w, &slots[last], r, last, group));
}

static void close_slot(struct hb_building *w, const struct hb_item *item, struct slot_sums *to)
{
    for (int k = 0; k < HB_BYTES_KINDS && item->live[k]; k++) {
        for (int state = 0; state < HB_PART_STATES; state++)
            close_sum(w->s, &to->sums[k][state]);
        if (to->profiles[k].any)
            close_profile(&to->profiles[k], to->sums[k][HB_PART_OWN].row);
    }
}

/* As the heap counts it. */
static void take_table(const struct hb_building *w, int64_t *from, const int64_t *by_steps)
{
    for (size_t i = 1; i < hb_segment_row(w->s); i++)
        from[i] -= hb_round_up(by_steps[(size_t)w->s->least_steps - 1 + i],
                               w->heap_align[HB_BYTES_DEVICE]);
}

/* What a group's root may hold, in each slot and state. */
static void lend_root(struct hb_building *w, struct slot_sums *slots, uint32_t root)
{
    if (!w->lends || hb_lend_bytes(&w->lends[root]) == 0)
        return;
    bool moves = hb_building_moves(w, root);
    for (uint32_t q = 0; q < w->s->slot_count; q++)
        for (int k = 0; k < HB_PART_STATES && hb_building_lends(w, root, q); k++) {
            struct sum *to = &slots[q].sums[HB_BYTES_DEVICE][k];
            if (moves)
                take_table(w, to->row, hb_building_moving_bytes(w, root));
            else
                to->still -= hb_lend_bytes(&w->lends[root]);
        }
}

/* One group: each root in the slots between its first and its last op. */
static bool sum_group(struct hb_building *w, uint32_t group, struct slot_sums *slots)
{
    struct hb_item *item = &w->items[group];
    for (uint32_t q = 0; q < w->s->slot_count; q++)
        for (int k = 0; k < HB_BYTES_KINDS && item->live[k]; k++) {
            slots[q].profiles[k].any = false;
            for (int state = 0; state < HB_PART_STATES; state++)
                slots[q].sums[k][state] = (struct sum){state_table(w, item, k, q, state), 0};
        }
    for (uint32_t i = w->first_root[group]; i < w->first_root[group + 1]; i++) {
        const struct hb_outline_root *r = &w->o.roots[w->roots_of[i]];
        lend_root(w, slots, r->buf);
        if (!hb_building_counts(w, r->buf) || hb_building_is_static(w, r->buf))
            continue;
        if (!add_life(w, slots, r, group)) {
            w->why = "a buffer of a group that comes or goes in another's turn";
            return false;
        }
    }
    for (int k = 0; k < HB_BYTES_KINDS && item->live[k]; k++)
        close_through(w, slots, group, k);
    for (uint32_t q = 0; q < w->s->slot_count; q++)
        close_slot(w, item, &slots[q]);
    return true;
}

static void sum_fixed(struct hb_building *w, uint32_t group)
{
    struct sum sums[HB_BYTES_KINDS];
    for (int k = 0; k < HB_BYTES_KINDS; k++) {
        int64_t *row = hb_arena_alloc(w->arena, hb_segment_row(w->s), sizeof *row);
        w->items[group].fixed[k] = row;
        sums[k] = (struct sum){.row = row};
    }
    for (uint32_t i = w->first_root[group]; i < w->first_root[group + 1]; i++) {
        uint32_t root = w->o.roots[w->roots_of[i]].buf;
        if (hb_building_counts(w, root) && hb_building_is_static(w, root))
            add_root(w, &sums[hb_building_kind(w, root)], root);
    }
    for (int k = 0; k < HB_BYTES_KINDS; k++)
        close_sum(w->s, &sums[k]);
}

static bool has_host(const struct hb_building *w)
{
    for (uint32_t i = 0; i < w->o.root_count; i++)
        if (w->a.bufs[w->o.roots[i].buf].space == HB_SPACE_HOST)
            return true;
    return false;
}

static bool sum_items(struct hb_building *w)
{
    w->s->has_host = has_host(w);
    struct hb_segment *s = w->s;
    size_t tables = (size_t)s->slot_count * HB_PART_STATES * hb_segment_row(s);
    struct slot_sums *slots = hb_arena_alloc(w->arena, s->slot_count, sizeof *slots);
    for (uint32_t q = 0; q < s->slot_count; q++)
        for (int k = 0; k < HB_BYTES_KINDS; k++)
            slots[q].change[k].row = hb_arena_alloc(w->arena, hb_segment_row(s), sizeof(int64_t));
    for (uint32_t g = 0; g < s->item_count; g++) {
        for (int k = 0; k < HB_BYTES_KINDS; k++)
            if (k == HB_BYTES_DEVICE || s->has_host)
                w->items[g].live[k] = hb_arena_alloc(w->arena, tables, sizeof(int64_t));
        sum_fixed(w, g);
        if (!sum_group(w, g, slots))
            return false;
    }
    return true;
}

/* --- all --- */

static void place_ops(struct hb_building *w)
{
    w->slot_of = hb_arena_alloc(w->arena, (size_t)w->a.op_count + 1, sizeof *w->slot_of);
    for (uint32_t q = 0; q < w->s->slot_count; q++)
        for (uint32_t op = w->s->slots[q].first_op; op < w->s->slots[q].end_op; op++)
            w->slot_of[op] = q;
}

bool hb_building_sum(struct hb_building *w)
{
    struct hb_segment *out = w->s;
    out->slots = w->o.slots;
    out->slot_count = w->o.slot_count;
    out->least_steps = w->sized.least_steps;
    out->max_steps = w->sized.max_steps;
    out->admits = w->sized.admits;
    out->odd_whole = hb_arena_alloc(w->arena, out->item_count, sizeof *out->odd_whole);
    out->odd_split = hb_arena_alloc(w->arena, out->item_count, sizeof *out->odd_split);
    out->odd_last = hb_arena_alloc(w->arena, out->item_count, sizeof *out->odd_last);
    hb_building_find_roots(w);
    place_ops(w);
    if (!sum_ends(w) || !sum_items(w))
        return false;
    hb_segment_find_high(w->arena, out);
    return true;
}
