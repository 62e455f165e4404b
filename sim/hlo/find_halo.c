/* What a partitioner makes of pads, shifted slices and concatenations of sharded arrays: it joins
 * slabs of the neighbours to the shard, pads, and cuts at the device's own place; or it makes the
 * dimension whole, joins, and divides it again.
 *
 *   partition-id -> small numbers -------------------v
 *   x -> slice -> permute -> concatenate -> pad -> dynamic-slice -> select(mask, ., zeros)
 *   x -> all-to-all -> concatenate -> all-to-all
 *
 * A cut at a place that depends on the device, of what was padded or joined, gives the first away;
 * from there the search goes back and forth over operations that only move numbers. */
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/hlo/finder.h"
#include "sim/hlo/halo.h"

enum { SMALL = 64, MAX_STEPS = 256 };

enum {
    PLACED = 1, /* small, and another on each device */
    MASK = 2,   /* large, made of such */
    HALO = 4    /* part of an exchange */
};

struct search {
    struct hb_hlo_finder *x;
    const struct hb_hlo_module *m;
    uint8_t *is;      /* by instruction */
    uint32_t *caller; /* by computation: fusion that calls it; HB_NONE */
    uint8_t *node_is; /* by node: see below */
    struct hb_hlo_halo_ops made;
    uint32_t concatenates;
};

/* Of nodes. */
enum {
    MOVES = 1,   /* only moves numbers, for an exchange */
    TOUCHES = 2, /* has an exchange in it */
    SENT = 4     /* a slab for a permute, or what came of one */
};

static int64_t elements_of(const struct hb_hlo_module *m, uint32_t inst)
{
    const struct hb_hlo_shape *s = hb_hlo_shape_of(m, inst);
    return s->type == HB_HLO_TUPLE ? 0 : s->elements;
}

static bool is_permute(enum hb_hlo_op op)
{
    return op == HB_HLO_OP_COLLECTIVE_PERMUTE || op == HB_HLO_OP_COLLECTIVE_PERMUTE_START ||
           op == HB_HLO_OP_COLLECTIVE_PERMUTE_DONE;
}

static bool is_gather(enum hb_hlo_op op)
{
    return op == HB_HLO_OP_ALL_GATHER || op == HB_HLO_OP_ALL_GATHER_START ||
           op == HB_HLO_OP_ALL_GATHER_DONE;
}

/* Stands for the computation that it calls. */
static bool is_wrapper(enum hb_hlo_op op)
{
    return op == HB_HLO_OP_FUSION || op == HB_HLO_OP_ASYNC_START;
}

/* TPU: an f64 is two f32, taken apart and put together by custom calls. */
static bool is_half(const struct hb_hlo_module *m, uint32_t inst)
{
    struct hb_hlo_span target = {0};
    if (hb_hlo_op_of(m, inst) == HB_HLO_OP_CUSTOM_CALL)
        target = hb_hlo_attr(m, inst, "custom_call_target");
    return target.at && hb_hlo_span_find(target, "X64");
}

/* Hands the same numbers on, in another order, fewer of them, or more beside them. */
static bool moves(enum hb_hlo_op op)
{
    return op == HB_HLO_OP_BITCAST || op == HB_HLO_OP_COPY || op == HB_HLO_OP_RESHAPE ||
           op == HB_HLO_OP_TRANSPOSE || op == HB_HLO_OP_SLICE || op == HB_HLO_OP_PAD ||
           op == HB_HLO_OP_CONCATENATE || op == HB_HLO_OP_DYNAMIC_SLICE ||
           op == HB_HLO_OP_DYNAMIC_UPDATE_SLICE || op == HB_HLO_OP_SELECT ||
           op == HB_HLO_OP_BROADCAST || op == HB_HLO_OP_IOTA || op == HB_HLO_OP_PARAMETER ||
           op == HB_HLO_OP_CONSTANT || op == HB_HLO_OP_TUPLE || op == HB_HLO_OP_GET_TUPLE_ELEMENT ||
           op == HB_HLO_OP_CONVERT;
}

/* ---- numbers that tell a device's place ---- */

static uint8_t find_place(const struct search *s, uint32_t inst)
{
    const struct hb_hlo_module *m = s->m;
    enum hb_hlo_op op = hb_hlo_op_of(m, inst);
    const struct hb_hlo_inst *at = &m->insts[inst];
    if (op == HB_HLO_OP_PARTITION_ID || op == HB_HLO_OP_REPLICA_ID)
        return PLACED;
    bool small = elements_of(m, inst) <= SMALL && hb_hlo_shape_of(m, inst)->type != HB_HLO_TUPLE;
    if (op == HB_HLO_OP_PARAMETER && s->caller[at->comp] != HB_NONE &&
        at->number < m->insts[s->caller[at->comp]].operand_count)
        return s->is[hb_hlo_operand(m, s->caller[at->comp], at->number)] & (PLACED | MASK);
    bool plain = hb_hlo_op_has(op, HB_HLO_ELEMENTWISE) || op == HB_HLO_OP_BROADCAST || small;
    for (uint32_t i = 0; i < at->operand_count && plain; i++) {
        uint8_t from = s->is[hb_hlo_operand(m, inst, i)];
        enum hb_hlo_type type = hb_hlo_shape_of(m, inst)->type;
        if (small && (from & PLACED))
            return PLACED;
        if (!small && (from & (PLACED | MASK)) && type <= HB_HLO_U64)
            return MASK;
    }
    return 0;
}

static void find_places(struct search *s)
{
    const struct hb_hlo_module *m = s->m;
    for (uint32_t i = 0; i < m->inst_count; i++)
        if (is_wrapper(hb_hlo_op_of(m, i)) && m->insts[i].call_count)
            s->caller[hb_hlo_called(m, i, 0)] = i;
    for (uint32_t c = m->comp_count; c-- > 0;) /* callers stand behind what they call */
        for (uint32_t i = 0; i < m->comps[c].inst_count; i++)
            s->is[m->comps[c].first_inst + i] = find_place(s, m->comps[c].first_inst + i);
}

/* ---- operations of the exchange ---- */

/* Where an operand's numbers come from, through one step; HB_NONE: no further. */
static uint32_t step_back(const struct search *s, uint32_t inst)
{
    const struct hb_hlo_module *m = s->m;
    const struct hb_hlo_inst *at = &m->insts[inst];
    enum hb_hlo_op op = hb_hlo_op_of(m, inst);
    if (op == HB_HLO_OP_PARAMETER)
        return s->caller[at->comp] != HB_NONE &&
                       at->number < m->insts[s->caller[at->comp]].operand_count
                   ? hb_hlo_operand(m, s->caller[at->comp], at->number)
                   : HB_NONE;
    if (is_wrapper(op) && at->call_count)
        return m->comps[hb_hlo_called(m, inst, 0)].root;
    if (op == HB_HLO_OP_SELECT && at->operand_count == 3)
        return hb_hlo_operand(m, inst, 1);
    if (op == HB_HLO_OP_BITCAST || op == HB_HLO_OP_COPY || op == HB_HLO_OP_RESHAPE ||
        op == HB_HLO_OP_TRANSPOSE || op == HB_HLO_OP_SLICE || op == HB_HLO_OP_DYNAMIC_SLICE ||
        op == HB_HLO_OP_CONVERT || op == HB_HLO_OP_GET_TUPLE_ELEMENT || op == HB_HLO_OP_ASYNC_DONE)
        return at->operand_count ? hb_hlo_operand(m, inst, 0) : HB_NONE;
    return HB_NONE;
}

static uint32_t largest_operand(const struct hb_hlo_module *m, uint32_t inst)
{
    uint32_t largest = HB_NONE;
    for (uint32_t i = 0; i < m->insts[inst].operand_count; i++) {
        uint32_t from = hb_hlo_operand(m, inst, i);
        if (largest == HB_NONE || elements_of(m, from) > elements_of(m, largest))
            largest = from;
    }
    return largest;
}

static bool joins(enum hb_hlo_op op)
{
    return op == HB_HLO_OP_PAD || op == HB_HLO_OP_CONCATENATE;
}

/* The pad or concatenation that a value was cut from; HB_NONE. */
static uint32_t find_joined(const struct search *s, uint32_t inst)
{
    for (int step = 0; step < MAX_STEPS && inst != HB_NONE; step++) {
        if (joins(hb_hlo_op_of(s->m, inst)))
            return inst;
        inst = step_back(s, inst);
    }
    return HB_NONE;
}

/* Less is added than is there: a halo, and no shard beside a shard. */
static bool is_narrow(const struct hb_hlo_module *m, uint32_t inst)
{
    uint32_t main = largest_operand(m, inst);
    return main != HB_NONE && elements_of(m, inst) < 2 * elements_of(m, main);
}

static bool cuts_by_place(const struct search *s, uint32_t inst)
{
    const struct hb_hlo_module *m = s->m;
    if (hb_hlo_op_of(m, inst) != HB_HLO_OP_DYNAMIC_SLICE || elements_of(m, inst) <= SMALL)
        return false;
    for (uint32_t i = 1; i < m->insts[inst].operand_count; i++)
        if (s->is[hb_hlo_operand(m, inst, i)] & PLACED)
            return true;
    return false;
}

/* Pads and concatenations on the way from a joined value back. */
static void mark_joined(struct search *s, uint32_t inst)
{
    for (int step = 0; step < MAX_STEPS && inst != HB_NONE; step++) {
        bool joined = joins(hb_hlo_op_of(s->m, inst));
        if (joined && (s->is[inst] & HALO))
            return;
        if (joined)
            s->is[inst] |= HALO;
        inst = joined ? largest_operand(s->m, inst) : step_back(s, inst);
    }
}

/* Whether what is joined came out of an all-to-all. */
static bool comes_from_exchange(const struct search *s, uint32_t inst)
{
    for (int step = 0; step < MAX_STEPS && inst != HB_NONE; step++) {
        enum hb_hlo_op op = hb_hlo_op_of(s->m, inst);
        if (op == HB_HLO_OP_ALL_TO_ALL)
            return true;
        inst = joins(op) ? largest_operand(s->m, inst) : step_back(s, inst);
    }
    return false;
}

/* Masks of an exchange, back to what they are made of. */
static void mark_mask(struct search *s, uint32_t inst)
{
    const struct hb_hlo_module *m = s->m;
    if ((s->is[inst] & HALO) || elements_of(m, inst) <= SMALL ||
        hb_hlo_op_of(m, inst) == HB_HLO_OP_PARAMETER)
        return;
    s->is[inst] |= HALO;
    for (uint32_t i = 0; i < m->insts[inst].operand_count; i++)
        mark_mask(s, hb_hlo_operand(m, inst, i));
}

static void mark_select(struct search *s, uint32_t inst)
{
    const struct hb_hlo_module *m = s->m;
    if (hb_hlo_op_of(m, inst) != HB_HLO_OP_SELECT || m->insts[inst].operand_count != 3 ||
        !(s->is[hb_hlo_operand(m, inst, 0)] & (PLACED | MASK)))
        return;
    bool ours = false;
    for (uint32_t side = 1; side < 3; side++) {
        uint32_t at = hb_hlo_operand(m, inst, side);
        for (int step = 0; step < MAX_STEPS && at != HB_NONE && !ours; step++) {
            ours = (s->is[at] & HALO) || is_permute(hb_hlo_op_of(m, at));
            at = step_back(s, at);
        }
    }
    if (!ours)
        return;
    s->is[inst] |= HALO;
    mark_mask(s, hb_hlo_operand(m, inst, 0));
    for (uint32_t side = 1; side < 3; side++)
        if (hb_hlo_op_of(m, hb_hlo_operand(m, inst, side)) == HB_HLO_OP_BROADCAST)
            s->is[hb_hlo_operand(m, inst, side)] |= HALO;
}

static void mark_ops(struct search *s)
{
    const struct hb_hlo_module *m = s->m;
    for (uint32_t i = 0; i < m->inst_count; i++) {
        bool divides = hb_hlo_op_of(m, i) == HB_HLO_OP_ALL_TO_ALL && m->insts[i].operand_count;
        if (!divides && !cuts_by_place(s, i))
            continue;
        uint32_t joined = find_joined(s, hb_hlo_operand(m, i, 0));
        if (joined == HB_NONE || !is_narrow(m, joined) ||
            (divides && !comes_from_exchange(s, largest_operand(m, joined))))
            continue;
        s->is[i] |= HALO;
        mark_joined(s, joined);
    }
    for (uint32_t i = 0; i < m->inst_count; i++)
        mark_select(s, i);
}

/* ---- nodes ---- */

static bool moves_only(const struct search *s, uint32_t inst)
{
    const struct hb_hlo_module *m = s->m;
    enum hb_hlo_op op = hb_hlo_op_of(m, inst);
    enum hb_hlo_type type = hb_hlo_shape_of(m, inst)->type;
    if (is_wrapper(op) && s->m->insts[inst].call_count) {
        const struct hb_hlo_comp *comp = &m->comps[hb_hlo_called(m, inst, 0)];
        for (uint32_t i = 0; i < comp->inst_count; i++)
            if (is_wrapper(hb_hlo_op_of(m, comp->first_inst + i)) ||
                !moves_only(s, comp->first_inst + i))
                return false;
        return true;
    }
    return moves(op) || is_gather(op) || op == HB_HLO_OP_ALL_TO_ALL || op == HB_HLO_OP_ASYNC_DONE ||
           is_half(m, inst) || elements_of(m, inst) <= SMALL ||
           (hb_hlo_op_has(op, HB_HLO_ELEMENTWISE) && type <= HB_HLO_U64);
}

static bool has_halo(const struct search *s, uint32_t inst)
{
    const struct hb_hlo_module *m = s->m;
    if (s->is[inst] & HALO)
        return true;
    if (!is_wrapper(hb_hlo_op_of(m, inst)) || !m->insts[inst].call_count)
        return false;
    const struct hb_hlo_comp *comp = &m->comps[hb_hlo_called(m, inst, 0)];
    for (uint32_t i = 0; i < comp->inst_count; i++)
        if (s->is[comp->first_inst + i] & HALO)
            return true;
    return false;
}

static bool is_large_value(const struct search *s, uint32_t v)
{
    const struct hb_hlo_shape *shape = &s->m->shapes.items[s->x->f->values[v].shape];
    return shape->type != HB_HLO_TUPLE && shape->elements > SMALL;
}

/* Whether a node makes any value of its own; a bitcast does not. */
static bool makes(const struct hb_hlo_flow *f, uint32_t node)
{
    for (uint32_t i = f->first_slot[node]; i < f->first_slot[node + 1]; i++)
        if (f->values[f->value_at[i]].node == node)
            return true;
    return false;
}

/* How many nodes take a value and have one of the flags; -1: one has none, or the caller takes it.
 */
static int value_users_are(const struct search *s, uint32_t v, uint8_t flags)
{
    const struct hb_hlo_finder *x = s->x;
    int count = 0;
    if (x->hp->buf_of[v] != HB_NONE && x->hp->program.bufs[x->hp->buf_of[v]].output)
        return -1;
    for (uint32_t u = x->first_use[v]; u < x->first_use[v + 1]; u++) {
        if (!makes(x->f, x->uses[u]))
            continue; /* its users take the same value */
        if (!(s->node_is[x->uses[u]] & flags))
            return -1;
        count++;
    }
    return count;
}

/* The same of all that a node makes; at least one is taken. */
static bool all_users_are(const struct search *s, uint32_t node, uint8_t flags)
{
    const struct hb_hlo_flow *f = s->x->f;
    int sum = 0;
    for (uint32_t i = f->first_slot[node]; i < f->first_slot[node + 1]; i++) {
        uint32_t v = f->value_at[i];
        int count = f->values[v].node == node ? value_users_are(s, v, flags) : 0;
        if (count < 0)
            return false;
        sum += count;
    }
    return sum > 0;
}

/* Could be computed again where it is used. */
static bool is_cheap(const struct search *s, uint32_t inst)
{
    enum hb_hlo_op op = hb_hlo_op_of(s->m, inst);
    return op != HB_HLO_OP_CONSTANT &&
           (hb_hlo_op_has(op, HB_HLO_ELEMENTWISE) ||
            (op == HB_HLO_OP_FUSION && s->m->insts[inst].fusion == HB_HLO_LOOP));
}

/* Nodes in the order of time, back: what is only made for the exchange. */
static void mark_back(struct search *s)
{
    const struct hb_hlo_finder *x = s->x;
    for (int32_t t = x->f->end_time; t-- > 0;) {
        uint32_t node = x->hp->node_at[t], inst = hb_hlo_node_inst(x->f, node);
        enum hb_hlo_op op = hb_hlo_op_of(s->m, inst);
        if (is_permute(op))
            s->node_is[node] = SENT;
        else if (has_halo(s, inst))
            s->node_is[node] = TOUCHES | (moves_only(s, inst) ? MOVES : 0);
        else if (op != HB_HLO_OP_PARAMETER && op != HB_HLO_OP_TUPLE && moves_only(s, inst) &&
                 all_users_are(s, node, MOVES | SENT | TOUCHES))
            s->node_is[node] = all_users_are(s, node, SENT) ? SENT : MOVES;
        else if (is_cheap(s, inst) && all_users_are(s, node, MOVES | SENT | TOUCHES))
            s->node_is[node] = MOVES;
    }
}

/* Whether an operation is there for the sake of the one before it: the compiler's own, which has no
 * name in the user's program or the same, or a constraint. */
static bool follows(const struct search *s, uint32_t inst, uint32_t before)
{
    struct hb_hlo_span name = hb_hlo_finder_op_name(s->x, inst);
    struct hb_hlo_span other = hb_hlo_finder_op_name(s->x, before);
    return !name.len || hb_hlo_span_find(name, "sharding_constraint") ||
           (other.len == name.len && memcmp(name.at, other.at, name.len) == 0);
}

/* Results that no longer divide evenly are gathered, and cut to size. */
static void mark_forth(struct search *s)
{
    const struct hb_hlo_finder *x = s->x;
    for (int32_t t = 0; t < x->f->end_time; t++) {
        uint32_t node = x->hp->node_at[t], inst = hb_hlo_node_inst(x->f, node);
        if (s->node_is[node] || !moves_only(s, inst) || !s->m->insts[inst].operand_count ||
            hb_hlo_op_of(s->m, inst) == HB_HLO_OP_TUPLE)
            continue;
        uint32_t v = x->f->value_at[x->f->first_slot[hb_hlo_node_operand(x->f, node, 0)]];
        uint32_t from = x->f->values[v].node;
        if ((s->node_is[from] & MOVES) &&
            (follows(s, inst, hb_hlo_node_inst(x->f, from)) || is_half(s->m, inst)))
            s->node_is[node] = MOVES;
    }
}

/* ---- what it costs ---- */

static void count_op(struct search *s, uint32_t inst)
{
    enum hb_hlo_op op = hb_hlo_op_of(s->m, inst);
    s->made.broadcasts += op == HB_HLO_OP_BROADCAST;
    s->made.pads += op == HB_HLO_OP_PAD;
    s->made.dynamic_slices += op == HB_HLO_OP_DYNAMIC_SLICE;
    s->made.selects += op == HB_HLO_OP_SELECT;
    s->concatenates += op == HB_HLO_OP_CONCATENATE;
}

/* Looking up the device's place is a dynamic-slice as well. */
static void count_ops(struct search *s)
{
    const struct hb_hlo_module *m = s->m;
    for (uint32_t c = 0; c < m->comp_count; c++) {
        uint32_t lookups = 0, found = 0;
        for (uint32_t i = m->comps[c].first_inst;
             i < m->comps[c].first_inst + m->comps[c].inst_count; i++) {
            enum hb_hlo_op op = hb_hlo_op_of(m, i);
            s->made.permutes +=
                op == HB_HLO_OP_COLLECTIVE_PERMUTE || op == HB_HLO_OP_COLLECTIVE_PERMUTE_START;
            lookups += op == HB_HLO_OP_DYNAMIC_SLICE && (s->is[i] & PLACED);
            if (!(s->is[i] & HALO))
                continue;
            count_op(s, i);
            found++;
        }
        s->made.dynamic_slices += found ? lookups : 0;
    }
}

/* The node that makes a node's largest operand, masks and indices aside; HB_NONE. */
static uint32_t find_origin(const struct search *s, uint32_t node)
{
    const struct hb_hlo_finder *x = s->x;
    uint32_t inst = hb_hlo_node_inst(x->f, node), best = HB_NONE;
    int64_t most = SMALL;
    for (uint32_t i = 0; i < s->m->insts[inst].operand_count; i++) {
        uint32_t v = x->f->value_at[x->f->first_slot[hb_hlo_node_operand(x->f, node, i)]];
        const struct hb_hlo_shape *shape = &s->m->shapes.items[x->f->values[v].shape];
        bool data = shape->type > HB_HLO_U64 || shape->type == hb_hlo_shape_of(s->m, inst)->type;
        if (shape->type == HB_HLO_TUPLE || !data || shape->elements <= most)
            continue;
        most = shape->elements;
        best = x->f->values[v].node;
    }
    return best;
}

/* The divided result that gathers at its end began with. */
static uint32_t find_shard(const struct search *s, uint32_t node)
{
    for (int step = 0; step < MAX_STEPS; step++) {
        if ((s->node_is[node] & TOUCHES) || is_half(s->m, hb_hlo_node_inst(s->x->f, node)))
            break;
        uint32_t from = find_origin(s, node);
        if (from == HB_NONE || !s->node_is[from])
            break;
        node = from;
    }
    return node;
}

/* What an exchange begins with. */
static uint32_t find_source(const struct search *s, uint32_t node)
{
    for (int step = 0; step < MAX_STEPS && s->node_is[node]; step++) {
        uint32_t from = find_origin(s, node);
        if (from == HB_NONE)
            return HB_NONE;
        node = from;
    }
    return node;
}

/* A value that is stored only because slabs of it are sent. */
static bool serves(const struct search *s, uint32_t v)
{
    const struct hb_hlo_finder *x = s->x;
    uint32_t node = x->f->values[v].node, inst = hb_hlo_node_inst(x->f, node);
    enum hb_hlo_op op = hb_hlo_op_of(s->m, inst);
    return s->node_is[node] != SENT && is_cheap(s, inst) && op != HB_HLO_OP_PARAMETER &&
           value_users_are(s, v, MOVES | SENT | TOUCHES) > 0;
}

/* Whether a value of an exchange is what the rest of the program wants of it. */
static bool leaves(const struct search *s, uint32_t buf)
{
    return value_users_are(s, s->x->hp->value_of[buf], MOVES | SENT | TOUCHES) <= 0;
}

/* How many different places a table of each device's holds, counted from 0; 0: it is none. */
static int64_t read_places(const struct hb_hlo_module *m, uint32_t constant)
{
    enum { MOST = 512 };
    int64_t numbers[MOST], most = -1;
    struct hb_hlo_span text = hb_hlo_constant(m, constant);
    uint32_t count = text.at ? hb_hlo_numbers(text, numbers, MOST) : 0;
    for (uint32_t i = 0; i < count; i++)
        most = numbers[i] > most ? numbers[i] : most;
    return count == m->partitions && most < m->partitions ? most + 1 : 0;
}

/* From a placed number to what it is made of, in the end to the table that it is looked up in. */
static uint32_t step_to_table(const struct search *s, uint32_t inst)
{
    const struct hb_hlo_module *m = s->m;
    enum hb_hlo_op op = hb_hlo_op_of(m, inst);
    uint32_t operands = m->insts[inst].operand_count, next = HB_NONE;
    if (op == HB_HLO_OP_PARAMETER || is_wrapper(op))
        return step_back(s, inst);
    if (op == HB_HLO_OP_DYNAMIC_SLICE && operands == 2)
        return hb_hlo_operand(m, inst, 0);
    for (uint32_t i = 0; i < operands; i++)
        if (s->is[hb_hlo_operand(m, inst, i)] & PLACED)
            next = hb_hlo_operand(m, inst, i);
    return next;
}

/* How many places the table has that a placed number is looked up in; 0: not known. */
static int64_t count_places(const struct search *s, uint32_t inst)
{
    for (int step = 0; step < MAX_STEPS && inst != HB_NONE; step++) {
        if (hb_hlo_op_of(s->m, inst) == HB_HLO_OP_CONSTANT)
            return read_places(s->m, inst);
        inst = step_to_table(s, inst);
    }
    return 0;
}

/* Into how many parts the cuts of an exchange go, along a dimension. */
static int64_t count_cuts(const struct search *s, int rank, int dim)
{
    for (uint32_t i = 0; i < s->m->inst_count; i++) {
        if (!(s->is[i] & HALO) || hb_hlo_op_of(s->m, i) != HB_HLO_OP_DYNAMIC_SLICE ||
            hb_hlo_shape_of(s->m, i)->rank != rank ||
            s->m->insts[i].operand_count != (uint32_t)rank + 1)
            continue;
        uint32_t index = hb_hlo_operand(s->m, i, (uint32_t)dim + 1);
        int64_t places = s->is[index] & PLACED ? count_places(s, index) : 0;
        if (places > 1)
            return places;
    }
    return 0;
}

/* Into how many parts a dimension of the array at a node is cut; 0: not known. */
static int64_t count_parts(const struct search *s, uint32_t node, int dim, int dims)
{
    int64_t parts[HB_HLO_HALO_RANK + 1], root = 1;
    uint32_t inst = hb_hlo_node_inst(s->x->f, node);
    int rank = hb_hlo_shape_of(s->m, inst)->rank;
    if (hb_hlo_sharding_parts(s->m, inst, rank, parts))
        return parts[dim];
    int64_t cuts = count_cuts(s, rank, dim);
    if (cuts)
        return cuts;
    while (root * root < s->m->partitions)
        root++;
    if (dims == 1) /* one axis, if there can be no other */
        return s->m->partitions < 4 ? s->m->partitions : 0;
    return dims == 2 && root * root == s->m->partitions ? root : 0;
}

/* The exchange in terms of whole arrays, from a result and what it was made of. */
static bool find_halo(const struct search *s, uint32_t buf, struct hb_hlo_halo *out)
{
    const struct hb_hlo_finder *x = s->x;
    uint32_t result = x->f->values[x->hp->value_of[buf]].node;
    uint32_t shard = find_shard(s, result), source = find_source(s, shard);
    if (source == HB_NONE)
        return false;
    uint32_t from = s->m->insts[hb_hlo_node_inst(x->f, source)].shape;
    uint32_t to = s->m->insts[hb_hlo_node_inst(x->f, shard)].shape;
    if (shard == result && x->hp->program.bufs[buf].output) /* as the caller sees it */
        to = s->m->insts[s->m->comps[s->m->entry].root].shape;
    const struct hb_hlo_shape *a = &s->m->shapes.items[from], *b = &s->m->shapes.items[to];
    int grown = 0;
    if (a->type != b->type || a->rank != b->rank || a->rank < 1 || a->rank > HB_HLO_HALO_RANK)
        return false;
    *out = (struct hb_hlo_halo){.type = a->type, .rank = a->rank};
    for (int d = 0; d < a->rank; d++)
        grown += hb_hlo_shape_dim(&s->m->shapes, to, d) > hb_hlo_shape_dim(&s->m->shapes, from, d);
    for (int d = 0; d < a->rank; d++) {
        int64_t size = hb_hlo_shape_dim(&s->m->shapes, from, d);
        int64_t more = hb_hlo_shape_dim(&s->m->shapes, to, d) - size;
        out->parts[d] = more ? count_parts(s, source, d, grown) : 1;
        if (more < 0 || !out->parts[d])
            return false;
        out->dims[d] = size * out->parts[d];
        out->low[d] = more * out->parts[d] / 2;
        out->high[d] = more * out->parts[d] - out->low[d];
    }
    return grown > 0;
}

/* ---- the finding ---- */

struct cost {
    struct hb_hlo_catch catch; /* without the exchange, but for its slabs */
    uint32_t result, results;  /* a buffer; how many there are */
    bool gathered;
};

static void catch_buf(struct search *s, struct cost *k, uint32_t buf)
{
    const struct hb_hlo_finder *x = s->x;
    uint32_t v = x->hp->value_of[buf], node = x->f->values[v].node;
    bool moved = (s->node_is[node] & MOVES) != 0;
    if (!is_large_value(s, v) || x->hp->program.bufs[buf].space != HB_SPACE_HBM ||
        x->hp->program.bufs[buf].argument || (!moved && !serves(s, v)))
        return;
    int64_t stays = 0;
    if (leaves(s, buf)) {
        uint32_t shard = find_shard(s, node);
        const struct hb_hlo_shape *shape = hb_hlo_shape_of(s->m, hb_hlo_node_inst(x->f, shard));
        stays = shape->type == HB_HLO_TUPLE ? INT64_MAX : shape->bytes;
        k->gathered = k->gathered || shard != node;
        k->result = buf;
        k->results++;
    }
    hb_hlo_catch_add(s->x, &k->catch, buf);
    hb_hlo_edit_shrink(k->catch.edit, buf, stays);
}

/* The program with permutes of slabs in the exchange's place; 0: it cannot be said. */
static int64_t try_permutes(struct search *s, const struct cost *k, int64_t *out_width)
{
    struct hb_hlo_finder *x = s->x;
    const struct hb_hlo_dialect *dialect = s->m->dialect;
    struct hb_hlo_halo halo;
    struct hb_hlo_figures figures;
    struct hb_hlo_halo_ops ops;
    if (k->results != 1 || !find_halo(s, k->result, &halo) ||
        !hb_hlo_halo_try(x->arena, dialect, &halo, HB_HLO_HALO_PERMUTE, &figures, &ops))
        return 0;
    struct hb_hlo_edit edit = hb_hlo_edit_begin(x->arena, x->hp);
    hb_hlo_edit_copy(&edit, k->catch.edit);
    for (uint32_t i = 0; i < x->hp->program.buf_count; i++) {
        if (s->node_is[x->f->values[x->hp->value_of[i]].node] == SENT)
            hb_hlo_edit_shrink(&edit, i, 0);
    }
    edit.bytes[k->result] = figures.output_bytes;
    for (int d = 0; d < halo.rank; d++)
        *out_width = halo.low[d] > *out_width ? halo.low[d] : *out_width;
    return hb_add_sat(hb_hlo_finder_try(x, &edit), figures.temp_bytes);
}

static const char *describe(struct search *s, int64_t total, int64_t width)
{
    const char *without = "without it the total would be";
    if (width)
        without = hb_arena_printf(s->x->arena,
                                  "with collective permutes of slabs %lld wide, kept around each "
                                  "shard, the total would be",
                                  (long long)width);
    else if (s->made.permutes)
        without = "with nothing but the slabs of its permutes the total would be";
    return hb_arena_printf(
        s->x->arena,
        "padding, shifting or joining sharded arrays became %u broadcasts, %u pads, %u "
        "dynamic-slices, %u selects, %u concatenates and %u collective permutes; %s %s",
        s->made.broadcasts, s->made.pads, s->made.dynamic_slices, s->made.selects, s->concatenates,
        s->made.permutes, without, hb_hlo_finder_size(s->x, total));
}

static void end_finding(struct search *s, struct cost *k)
{
    struct hb_hlo_finder *x = s->x;
    int64_t width = 0, other = try_permutes(s, k, &width);
    int64_t total = other ? other : x->total_bytes;
    if (!other && k->catch.count)
        total = hb_hlo_finder_try(x, k->catch.edit);
    const char *advice =
        k->gathered
            ? "pad to a size that the mesh axis divides, so that the result stays sharded; or keep "
              "a halo in each shard, exchanged by ppermute inside of shard_map"
            : "keep a halo in each shard, exchanged by ppermute inside of shard_map, or "
              "concatenate zeros where nothing is exchanged";
    if (!other && total == x->total_bytes)
        advice = "nothing: it fuses, and nothing of it is stored at the peak";
    else if (total >= x->total_bytes)
        advice = "leave it: here the compiler's way takes no more than the alternative";
    hb_hlo_catch_tell(x, &k->catch, HB_HLO_FIND_HALO, total, describe(s, total, width), advice);
}

void hb_hlo_find_halo(struct hb_hlo_finder *x)
{
    const struct hb_hlo_module *m = x->m;
    if (m->partitions < 2)
        return;
    struct search s = {.x = x,
                       .m = m,
                       .is = hb_arena_alloc(x->arena, m->inst_count, sizeof *s.is),
                       .caller = hb_arena_alloc(x->arena, m->comp_count, sizeof *s.caller),
                       .node_is = hb_arena_alloc(x->arena, x->f->node_count, sizeof *s.node_is)};
    memset(s.caller, 0xff, m->comp_count * sizeof *s.caller);
    find_places(&s);
    mark_ops(&s);
    count_ops(&s);
    if (!s.made.pads && !s.concatenates)
        return;
    mark_back(&s);
    mark_forth(&s);
    struct cost k = {.catch = hb_hlo_catch_begin(x), .result = HB_NONE};
    for (uint32_t i = 0; i < x->hp->program.buf_count; i++)
        catch_buf(&s, &k, i);
    if (k.catch.count && hb_hlo_catch_held(x, &k.catch) >= x->least_bytes)
        end_finding(&s, &k);
}
