/* Terms of the lower bounds: see step_bound.h for what they are and why they hold. */
#include "solver/step_bound.h"

#include "base/arena.h"
#include "base/size.h"
#include "sim/ir/habits.h"
#include "solver/critical.h"
#include "solver/last_loop.h"
#include "solver/merged.h"
#include "solver/replay.h"
#include "solver/trip_floor.h"

enum { PATH = 0, BUSY = 1, TAIL = HB_BOUND_TAILS };

struct bound {
    struct hb_arena *arena;
    const struct hb_sized *sized;
    const struct hb_outline *o;
    const struct hb_program *p;
    struct hb_segment *s;
    struct hb_op_costs costs;
    int64_t **times; /* by loop, [loop_count]: none: how often its ops run, by steps */
    struct hb_streams streams;
    bool *through; /* by slot: the path crosses its turns on the compute stream */
    struct hb_last_loop last;
    bool has_tail[HB_STREAM_COUNT]; /* the stream works then; never compute */
};

/* --- times an op is run --- */

static int64_t trips_at(const struct bound *b, uint32_t loop, int64_t n)
{
    switch (b->o->loop_follow[loop]) {
    case HB_FOLLOW_NOTHING:
        return b->p->loops[loop].trips;
    case HB_FOLLOW_OUTER:
        return b->sized->outer[n];
    case HB_FOLLOW_INNER:
        return b->sized->inner[n];
    }
    return 1;
}

/* Of the loops around `loop`, itself not. */
static int64_t times_around(const struct bound *b, uint32_t loop, int64_t n)
{
    int64_t times = 1;
    while (loop != HB_NONE && b->p->loops[loop].parent != HB_NONE) {
        loop = b->p->loops[loop].parent;
        times *= trips_at(b, loop, n);
    }
    return times;
}

static void find_times(struct bound *b)
{
    uint32_t loops = b->p->loop_count;
    b->times = hb_arena_alloc(b->arena, (size_t)loops + 1, sizeof *b->times);
    for (uint32_t i = 0; i <= loops; i++) {
        b->times[i] = hb_arena_alloc(b->arena, (size_t)b->s->max_steps + 1, sizeof **b->times);
        for (int64_t n = b->s->least_steps; n <= b->s->max_steps; n++)
            b->times[i][n] = i == loops ? 1 : times_around(b, i, n) * trips_at(b, i, n);
        b->times[i][1] = i == loops ? 1 : times_around(b, i, 1) * trips_at(b, i, 1);
    }
}

/* By steps. */
static const int64_t *times_of(const struct bound *b, uint32_t loop)
{
    return b->times[loop == HB_NONE ? b->p->loop_count : loop];
}

/* --- adding to the sums --- */

static int64_t *table_of(struct bound *b, struct hb_item *item, int variant)
{
    if (!item->bound_ns[variant])
        item->bound_ns[variant] =
            hb_arena_alloc(b->arena, (size_t)b->s->max_steps + 1, sizeof(int64_t));
    return item->bound_ns[variant];
}

/* The item of an op's group, or null: the ends, or a group that only makes up the number. */
static struct hb_item *item_of(const struct bound *b, uint32_t op)
{
    uint32_t owner = b->o->op_owner[op];
    return owner < b->s->item_count ? &b->s->items[owner] : NULL;
}

static bool is_filler(const struct bound *b, uint32_t op)
{
    uint32_t owner = b->o->op_owner[op];
    return owner != HB_ENDS && owner >= b->s->item_count;
}

/* An op that stands outside of the groups' loops, or anywhere for BUSY: cost x times. */
static void add_op(struct bound *b, uint32_t op, int variant)
{
    struct hb_item *item = item_of(b, op);
    uint32_t loop = b->p->ops[op].loop;
    if (is_filler(b, op) || (!b->costs.usual_ns[op] && !b->costs.by_steps[op]))
        return;
    if (!item) {
        b->s->bound_ns[variant] += b->costs.usual_ns[op] * times_of(b, loop)[1];
        return;
    }
    int64_t *table = table_of(b, item, variant);
    const int64_t *times = times_of(b, loop), *by_steps = b->costs.by_steps[op];
    for (int64_t n = b->s->least_steps; n <= b->s->max_steps && by_steps; n++)
        table[n] += by_steps[n] * times[n];
    for (int64_t n = b->s->least_steps; n <= b->s->max_steps && !by_steps; n++)
        table[n] += b->costs.usual_ns[op] * times[n];
}

static void add_path_op(struct bound *b, uint32_t op)
{
    add_op(b, op, PATH);
    if (b->last.before[op])
        for (int s = 0; s < HB_STREAM_COUNT; s++)
            if (b->has_tail[s])
                add_op(b, op, TAIL + s);
}

/* --- loops --- */

/* No op inside follows the steps: what would is not counted. */
static int64_t path_sum(const struct bound *b, const struct hb_critical *c, const uint8_t *passes)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < c->op_count; i++)
        if (passes[i] && !b->costs.by_steps[c->first_op + i])
            sum += passes[i] * b->costs.usual_ns[c->first_op + i];
    return sum;
}

/* Sums of the paths of 1 .. HB_CRITICAL_TRIPS trips and of the cycle. */
struct loop_sums {
    int64_t trips[HB_CRITICAL_TRIPS];
    int64_t cycle;
};

static struct loop_sums sum_loop(const struct bound *b, const struct hb_critical *c)
{
    struct loop_sums sums;
    for (int i = 0; i < HB_CRITICAL_TRIPS; i++)
        sums.trips[i] = path_sum(b, c, c->passes[i]);
    sums.cycle = path_sum(b, c, c->cycle);
    return sums;
}

static int64_t loop_ns(const struct loop_sums *sums, int64_t trips)
{
    if (trips <= HB_CRITICAL_TRIPS)
        return trips > 0 ? sums->trips[trips - 1] : 0;
    return sums->trips[HB_CRITICAL_TRIPS - 1] + (trips - HB_CRITICAL_TRIPS) * sums->cycle;
}

/* The sums that begin with the path. */
static bool is_path(const struct bound *b, int variant)
{
    return variant == PATH || (variant >= TAIL && b->has_tail[variant - TAIL]);
}

/* They stay when the rest of a loop's arena is given back. */
static void keep_path_tables(struct bound *b, struct hb_item *item)
{
    for (int variant = PATH; item && variant < HB_BOUNDS; variant++)
        if (is_path(b, variant))
            table_of(b, item, variant);
}

static void add_loop_ns(struct bound *b, uint32_t loop, struct hb_item *item,
                        const int64_t *by_steps)
{
    bool before = b->last.before[b->p->loops[loop].first_op];
    for (int variant = PATH; variant < HB_BOUNDS; variant++) {
        if (!is_path(b, variant) || (variant != PATH && !before))
            continue;
        if (!item) {
            b->s->bound_ns[variant] += by_steps[1];
            continue;
        }
        int64_t *table = table_of(b, item, variant);
        for (int64_t n = b->s->least_steps; n <= b->s->max_steps; n++)
            table[n] += by_steps[n];
    }
}

/* A loop without loops inside. */
static void add_flat_loop(struct bound *b, uint32_t loop)
{
    const struct hb_loop *l = &b->p->loops[loop];
    struct hb_item *item = item_of(b, l->first_op);
    if (is_filler(b, l->first_op))
        return;
    keep_path_tables(b, item);
    struct hb_arena_mark mark = hb_arena_mark(b->arena);
    struct hb_critical c;
    struct hb_critical_ask ask = {&b->streams, b->arena, l->first_op, l->end_op, HB_CRITICAL_TRIPS};
    hb_critical_find(&ask, &c);
    int64_t first = item ? b->s->least_steps : 1, most = item ? b->s->max_steps : 1;
    int64_t *ns = hb_arena_alloc(b->arena, (size_t)most + 1, sizeof *ns);
    struct loop_sums sums = sum_loop(b, &c);
    for (int64_t n = first; n <= most; n++)
        ns[n] = loop_ns(&sums, trips_at(b, loop, n)) * times_around(b, loop, n);
    add_loop_ns(b, loop, item, ns);
    hb_arena_rewind(b->arena, mark);
}

/* --- pieces between loops --- */

static bool on_compute(const struct bound *b, uint32_t op)
{
    return b->p->ops[op].stream == HB_STREAM_COMPUTE && b->p->ops[op].kind != HB_OP_MARK;
}

static bool costs_something(const struct bound *b, uint32_t op)
{
    return b->costs.usual_ns[op] > 0 || b->costs.by_steps[op];
}

/* Whether the path's steps into and out of ops [from, to) both lie on the compute stream. */
static bool crosses_on_compute(const struct bound *b, const struct hb_critical *c, uint32_t from,
                               uint32_t to)
{
    uint32_t before = from, after = to, end = c->first_op + c->op_count;
    while (before > c->first_op && !c->passes[0][before - 1 - c->first_op])
        before--;
    while (after < end && !c->passes[0][after - c->first_op])
        after++;
    if ((before > c->first_op && !on_compute(b, before - 1)) ||
        (after < end && !on_compute(b, after)))
        return false;
    for (uint32_t i = from; i < to; i++)
        if (costs_something(b, i) && (c->passes[0][i - c->first_op] > 0) != on_compute(b, i))
            return false;
    return true;
}

static void check_turns(struct bound *b, const struct hb_critical *c)
{
    uint32_t first = c->first_op, end = c->first_op + c->op_count;
    for (uint32_t q = 0; q < b->s->slot_count; q++) {
        const struct hb_slot *slot = &b->s->slots[q];
        uint32_t from = slot->first_op > first ? slot->first_op : first;
        uint32_t to = slot->end_op < end ? slot->end_op : end;
        if (slot->turns && from < to && !crosses_on_compute(b, c, from, to))
            b->through[q] = false;
    }
}

/* Ops [first, end) in no loop of an owner. Groups' own ops are added when all pieces are known. */
static void add_piece(struct bound *b, uint32_t first, uint32_t end)
{
    struct hb_arena_mark mark = hb_arena_mark(b->arena);
    struct hb_critical c;
    struct hb_critical_ask ask = {&b->streams, b->arena, first, end, 1};
    hb_critical_find(&ask, &c);
    check_turns(b, &c);
    for (uint32_t i = first; i < end; i++)
        if (b->o->op_owner[i] == HB_ENDS && c.passes[0][i - first])
            add_path_op(b, i);
    hb_arena_rewind(b->arena, mark);
}

/* --- the walk --- */

/* The outermost loop around op that has one owner; HB_NONE. */
static uint32_t owned_loop(const struct bound *b, uint32_t op)
{
    uint32_t found = HB_NONE;
    for (uint32_t l = b->p->ops[op].loop; l != HB_NONE; l = b->p->loops[l].parent)
        if (b->o->loop_owner[l] != HB_NONE)
            found = l;
    return found;
}

static uint32_t piece_end(const struct bound *b, uint32_t first)
{
    uint32_t end = first + 1;
    while (end < b->p->op_count && b->p->ops[end].loop == b->p->ops[first].loop)
        end++;
    return end;
}

/* Inside a loop of one owner whose body has loops: its pieces in between count with what the
 * compute stream does. */
static void add_nested_loop(struct bound *b, uint32_t loop)
{
    const struct hb_loop *l = &b->p->loops[loop];
    for (uint32_t i = loop; i < b->p->loop_count; i++)
        if (b->p->loops[i].first_op >= l->first_op && b->p->loops[i].end_op <= l->end_op &&
            !hb_trip_floor_has_inner(b->p, i) && i != loop)
            add_flat_loop(b, i);
    for (uint32_t i = l->first_op; i < l->end_op; i++)
        if (b->p->ops[i].loop != HB_NONE && hb_trip_floor_has_inner(b->p, b->p->ops[i].loop) &&
            on_compute(b, i))
            add_path_op(b, i);
}

static void walk_program(struct bound *b)
{
    for (uint32_t op = 0; op < b->p->op_count;) {
        uint32_t loop = owned_loop(b, op);
        if (loop == HB_NONE) {
            uint32_t end = piece_end(b, op);
            add_piece(b, op, end);
            op = end;
            continue;
        }
        if (hb_trip_floor_has_inner(b->p, loop))
            add_nested_loop(b, loop);
        else
            add_flat_loop(b, loop);
        op = b->p->loops[loop].end_op;
    }
}

/* What one trip of a loop does on the compute stream. */
static int64_t compute_ns(const struct bound *b, const struct hb_loop *l, int64_t n)
{
    int64_t sum = 0;
    for (uint32_t i = l->first_op; i < l->end_op; i++)
        if (on_compute(b, i))
            sum = hb_add_sat(sum, hb_op_cost_at(&b->costs, i, n));
    return sum;
}

/* What of a loop's floor is no work of the compute stream: policies that make values again or copy
 * them may fill it. */
static void add_waits(struct bound *b, uint32_t loop, const int64_t *ns)
{
    const struct hb_loop *l = &b->p->loops[loop];
    struct hb_item *item = item_of(b, l->first_op);
    const int64_t *times = times_of(b, loop);
    if (!item)
        return;
    bool backward = b->p->ops[l->first_op].phase == HB_PHASE_BACKWARD;
    int64_t *waits = backward ? item->wait_ns : item->idle_ns;
    for (int64_t n = b->s->least_steps; n <= b->s->max_steps; n++)
        if (b->sized->wanted[n])
            waits[n] += ns[n] - compute_ns(b, l, n) * times[n];
}

/* What the trips of a forward loop take where they are cut into loops of two and more. */
static void add_again(struct bound *b, uint32_t loop, int64_t n, int64_t least_ns)
{
    struct hb_item *item = item_of(b, b->p->loops[loop].first_op);
    if (item && b->p->ops[b->p->loops[loop].first_op].phase == HB_PHASE_FORWARD)
        item->again_ns[n] =
            hb_add_sat(item->again_ns[n], hb_mul_sat(least_ns, times_of(b, loop)[n]));
}

/* What the compute stream does in the turn that the loop is of, outside of loops: zeros of
 * gradients and the like. Between two runs of the block it comes while sums of the first one's
 * gradients are still on their way (phi-3.5-moe, tensor 2 x expert 8 of v5e, 30 layers and 2: 0.2
 * %). */
static int64_t *turn_ns(const struct bound *b, uint32_t loop)
{
    const struct hb_loop *l = &b->p->loops[loop];
    int64_t *ns = hb_arena_alloc(b->arena, (size_t)b->s->max_steps + 1, sizeof *ns);
    uint32_t slot = 0, group = b->o->op_owner[l->first_op];
    while (b->s->slots[slot].end_op <= l->first_op)
        slot++;
    size_t turn = (size_t)slot * b->o->pair.group_count + group;
    for (uint32_t i = b->o->turn_first[turn]; i < b->o->turn_end[turn]; i++)
        for (int64_t n = b->s->least_steps; n <= b->s->max_steps && on_compute(b, i); n++)
            if (b->p->ops[i].loop == l->parent)
                ns[n] = hb_add_sat(ns[n], hb_mul_sat(hb_op_cost_at(&b->costs, i, n),
                                                     times_of(b, b->p->ops[i].loop)[n]));
    return ns;
}

/* All trips of a loop without loops inside, as short as any policy has them. */
static void add_floor_loop(struct bound *b, struct hb_trip_floor *floor, uint32_t loop)
{
    struct hb_item *item = item_of(b, b->p->loops[loop].first_op);
    int64_t first = item ? b->s->least_steps : 1, most = item ? b->s->max_steps : 1;
    keep_path_tables(b, item);
    if (item && !item->wait_ns) {
        item->wait_ns = hb_arena_alloc(b->arena, (size_t)b->s->max_steps + 1, sizeof(int64_t));
        item->idle_ns = hb_arena_alloc(b->arena, (size_t)b->s->max_steps + 1, sizeof(int64_t));
        item->again_ns = hb_arena_alloc(b->arena, (size_t)b->s->max_steps + 1, sizeof(int64_t));
    }
    struct hb_arena_mark mark = hb_arena_mark(b->arena);
    int64_t *ns = hb_arena_alloc(b->arena, (size_t)most + 1, sizeof *ns);
    const int64_t *between_ns = item ? turn_ns(b, loop) : NULL;
    for (int64_t n = first; n <= most; n++) {
        if (item && !b->sized->wanted[n])
            continue;
        int64_t times = times_around(b, loop, n), trips = trips_at(b, loop, n);
        ns[n] = hb_mul_sat(hb_trip_floor_ns(floor, loop, n, trips), times);
        add_again(b, loop, n, floor->least_ns);
        if (item && between_ns[n] > 0)
            ns[n] = hb_larger(ns[n] - between_ns[n],
                              hb_mul_sat(hb_trip_floor_apart_ns(floor, loop, n, trips), times));
    }
    add_loop_ns(b, loop, item, ns);
    add_waits(b, loop, ns);
    hb_arena_rewind(b->arena, mark);
}

/* Whether a layer's ops may stand in another order than they do as written: where the step is
 * beyond the compiler's share, experts' products do (spread.h, moe_einsum.c: is_weights_last), and
 * of what is made again all that follows. */
static bool is_any_order(const struct hb_spec *spec)
{
    bool otherwise = false, dense = hb_habits_find(spec)->ragged_dense;
    for (int i = 0; i < spec->model.block_count; i++) {
        const struct hb_moe *m = &spec->model.blocks[i].moe;
        otherwise = otherwise || (m->experts > 0 && (dense || m->dispatch == HB_DISPATCH_EINSUM));
    }
    return otherwise && spec->compiler == HB_XLA_GPU && spec->share == HB_SHARE_ASKED;
}

/* Of a floor: between the loops the compute stream alone, since what it waits for there, and where,
 * follows from the policy. */
static void walk_floor(struct bound *b, const struct hb_spec *spec, const bool *optional)
{
    struct hb_trip_floor floor;
    hb_trip_floor_init(&floor, b->arena, b->p, b->o->root_of, &b->costs, optional);
    floor.any_order = is_any_order(spec);
    for (int i = 0; i < spec->model.block_count; i++)
        floor.several = floor.several || spec->model.blocks[i].unit > 1;
    for (uint32_t i = 0; i < b->p->op_count;) {
        uint32_t loop = b->p->ops[i].loop;
        if (loop != HB_NONE && !hb_trip_floor_has_inner(b->p, loop) &&
            b->o->loop_owner[loop] != HB_NONE) {
            if (!is_filler(b, i))
                add_floor_loop(b, &floor, loop);
            i = b->p->loops[loop].end_op;
            continue;
        }
        if (on_compute(b, i))
            add_path_op(b, i);
        i++;
    }
}

/* The groups' ops between loops, where the path crosses them on the compute stream. */
static void add_turns(struct bound *b)
{
    for (uint32_t q = 0; q < b->s->slot_count; q++)
        for (uint32_t i = b->s->slots[q].first_op;
             b->s->slots[q].turns && b->through[q] && i < b->s->slots[q].end_op; i++)
            if (owned_loop(b, i) == HB_NONE && on_compute(b, i))
                add_path_op(b, i);
}

static void add_busy(struct bound *b)
{
    for (uint32_t i = 0; i < b->p->op_count; i++) {
        add_op(b, i, BUSY + (int)b->p->ops[i].stream);
        if (b->last.behind[i] && b->has_tail[b->p->ops[i].stream])
            add_op(b, i, TAIL + (int)b->p->ops[i].stream);
    }
}

/* Ops that a policy can do without take no time, those of the forward pass no more than with what
 * they read made inside; of one that follows the steps what that adds is not known. */
static const bool *drop_optional_ops(struct bound *b, const struct hb_program *merged,
                                     const struct hb_device *device)
{
    bool *optional = hb_segment_optional_ops(b->arena, b->p);
    const int64_t *change = hb_merged_find(b->arena, b->p, merged, device);
    for (uint32_t i = 0; i < b->p->op_count; i++) {
        bool follows = b->costs.by_steps[i] != NULL;
        optional[i] |= follows ? change[i] < 0 : change[i] == HB_MERGED_AWAY;
        if (!follows)
            b->costs.usual_ns[i] = hb_merged_ns(b->costs.usual_ns[i], change[i]);
        if (optional[i]) {
            b->costs.usual_ns[i] = 0;
            b->costs.by_steps[i] = NULL;
        }
    }
    return optional;
}

/* Of a program in the order that it has; of a floor's, in that of any policy. */
static void find_last_loop(struct bound *b, const struct hb_segment_ask *ask)
{
    uint32_t count = b->p->op_count, final_op = 0;
    if (ask->floor) {
        hb_last_loop_find(b->arena, b->o, &b->last);
    } else {
        b->last.before = hb_arena_alloc(b->arena, count, sizeof *b->last.before);
        b->last.behind = hb_arena_alloc(b->arena, count, sizeof *b->last.behind);
        for (uint32_t i = 0; i < b->p->loop_count; i++)
            final_op = b->p->loops[i].end_op > final_op ? b->p->loops[i].end_op : final_op;
        for (uint32_t i = 0; i < count; i++)
            *(i < final_op ? &b->last.before[i] : &b->last.behind[i]) = true;
    }
    for (uint32_t i = 0; i < count && !ask->path_only; i++)
        if (b->last.behind[i])
            b->has_tail[b->p->ops[i].stream] = b->p->ops[i].stream != HB_STREAM_COMPUTE;
}

/* What is zero to begin with, just before its loop. */
static void free_zeros(struct bound *b)
{
    for (uint32_t i = 0; i < b->p->op_count; i++) {
        const struct hb_op *op = &b->p->ops[i];
        if (op->phase != HB_PHASE_BACKWARD || op->read_count > 0 || op->write_count == 0 ||
            b->p->bufs[hb_op_writes(b->p, op)[0]].category != HB_CAT_GRADIENTS)
            continue;
        b->costs.usual_ns[i] = 0;
        b->costs.by_steps[i] = NULL;
    }
}

void hb_step_bounds(struct hb_arena *arena, struct hb_sized *sized,
                    const struct hb_segment_ask *ask, const struct hb_program *merged,
                    struct hb_segment *s)
{
    struct bound b = {
        .arena = arena, .sized = sized, .o = sized->outline, .p = sized->outline->pair.a, .s = s};
    find_times(&b);
    hb_op_costs_find(arena, sized, ask->device, &b.costs);
    if (ask->zeros_free)
        free_zeros(&b);
    const bool *optional = ask->floor ? drop_optional_ops(&b, merged, ask->device) : NULL;
    struct hb_timed *timed = hb_arena_alloc(arena, 1, sizeof *timed);
    *timed = (struct hb_timed){b.p, b.o, sized, b.costs};
    s->timed = timed;
    hb_streams_init(&b.streams, arena, b.p, b.costs.usual_ns);
    b.through = hb_arena_alloc(arena, s->slot_count, sizeof *b.through);
    for (uint32_t q = 0; q < s->slot_count; q++)
        b.through[q] = true;
    find_last_loop(&b, ask);
    if (ask->floor) {
        walk_floor(&b, ask->spec, optional);
    } else {
        walk_program(&b);
        add_turns(&b);
    }
    if (!ask->path_only)
        add_busy(&b);
    hb_segment_find_bounds(s);
}
