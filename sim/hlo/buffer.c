/* Sets are merged by union-find over the values; then allocations are made greedily, largest
 * first, as the compiler does: a CPU or GPU module lets temporaries lie in its outputs. */
#include "sim/hlo/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"

int64_t hb_hlo_value_bytes(const struct hb_hlo_flow *f, uint32_t value)
{
    const struct hb_hlo_shape *shape = &f->m->shapes.items[f->values[value].shape];
    const struct hb_hlo_dialect *d = f->m->dialect;
    if (shape->type != HB_HLO_TUPLE)
        return hb_round_up(shape->bytes, d->leaf_align_bytes);
    return hb_round_up((int64_t)shape->child_count * d->pointer_bytes, d->table_align_bytes);
}

/* Whether a value is working memory of an asynchronous call, outside of the heap. */
static bool is_context(const struct hb_hlo_flow *f, uint32_t v)
{
    enum { CONTEXT_CHILD = 2 };
    const struct hb_hlo_value *value = &f->values[v];
    uint32_t inst = hb_hlo_node_inst(f, value->node), shape = f->m->insts[inst].shape;
    const struct hb_hlo_shape *part = &f->m->shapes.items[value->shape];
    return f->m->dialect->backend == HB_HLO_TPU &&
           hb_hlo_op_of(f->m, inst) == HB_HLO_OP_ASYNC_START && part->type != HB_HLO_TUPLE &&
           !part->space && part->bytes &&
           hb_hlo_shape_of(f->m, inst)->child_count > CONTEXT_CHILD &&
           value->slot >= hb_hlo_shape_child_slot(&f->m->shapes, shape, CONTEXT_CHILD);
}

static bool is_argument(const struct hb_hlo_flow *f, uint32_t v)
{
    uint32_t node = f->values[v].node;
    return f->scope_of[node] == 0 &&
           hb_hlo_op_of(f->m, hb_hlo_node_inst(f, node)) == HB_HLO_OP_PARAMETER;
}

struct merge {
    struct hb_hlo_buffers *b;
    const struct hb_hlo_flow *f;
    struct hb_hlo_alias *alias;
    struct hb_arena *arena;
    uint32_t *parent;   /* by value */
    uint32_t *argument; /* of a set, by the value that names it; HB_NONE: it has none */
};

static uint32_t find_set(struct merge *g, uint32_t value)
{
    while (g->parent[value] != value) {
        g->parent[value] = g->parent[g->parent[value]];
        value = g->parent[value];
    }
    return value;
}

/* Two arguments are two buffers: where a branch or a loop hands both on, XLA copies. */
static void join_values(struct merge *g, uint32_t a, uint32_t b)
{
    a = find_set(g, a);
    b = find_set(g, b);
    uint32_t first = a > b ? b : a, second = a > b ? a : b;
    bool apart = g->argument[a] != HB_NONE && g->argument[b] != HB_NONE;
    if (a == b || apart)
        return;
    g->parent[second] = first;
    if (g->argument[first] == HB_NONE)
        g->argument[first] = g->argument[second];
}

/* All slots of two nodes, as far as both have them. */
static void join_nodes(struct merge *g, uint32_t a, uint32_t b)
{
    const struct hb_hlo_flow *f = g->f;
    if (hb_hlo_node_slots(f, a) != hb_hlo_node_slots(f, b))
        return;
    for (uint32_t s = 0; s < hb_hlo_node_slots(f, a); s++)
        join_values(g, f->value_at[f->first_slot[a] + s], f->value_at[f->first_slot[b] + s]);
}

/* Rules 1 and 9: a loop's initial value, parameters, root and result; branches' roots. */
static void join_flow(struct merge *g, uint32_t node, enum hb_hlo_op op)
{
    const struct hb_hlo_flow *f = g->f;
    if (op == HB_HLO_OP_WHILE)
        join_nodes(g, node, hb_hlo_node_operand(f, node, 0));
    for (uint32_t s = f->child_scope[node]; s != HB_NONE; s = f->scopes[s].next) {
        const struct hb_hlo_comp *comp = &f->m->comps[f->scopes[s].comp];
        if (op == HB_HLO_OP_WHILE && comp->param_count)
            join_nodes(g, node,
                       f->scopes[s].first_node +
                           (f->m->params[comp->params_at] - comp->first_inst));
        if (op == HB_HLO_OP_CONDITIONAL || f->scopes[s].branch == 1)
            join_nodes(g, node, hb_hlo_scope_root(f, s));
    }
}

/* Rule 8. */
static void join_in_place(struct merge *g, uint32_t node)
{
    const struct hb_hlo_flow *f = g->f;
    struct hb_hlo_in_place few[HB_HLO_MAX_IN_PLACE], *pairs = few;
    uint32_t inst = hb_hlo_node_inst(f, node);
    uint32_t count = hb_hlo_in_place(g->alias, inst, few, HB_HLO_MAX_IN_PLACE);
    struct hb_arena_mark mark = hb_arena_mark(g->arena);
    if (count > HB_HLO_MAX_IN_PLACE) {
        pairs = hb_arena_alloc(g->arena, count, sizeof *pairs);
        hb_hlo_in_place(g->alias, inst, pairs, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = hb_hlo_node_operand(f, node, pairs[i].operand);
        if (pairs[i].operand_slot < hb_hlo_node_slots(f, from) &&
            pairs[i].output_slot < hb_hlo_node_slots(f, node))
            join_values(g, f->value_at[f->first_slot[from] + pairs[i].operand_slot],
                        f->value_at[f->first_slot[node] + pairs[i].output_slot]);
    }
    hb_arena_rewind(g->arena, mark);
}

/* Working memories of asynchronous calls on TPU, in the third part of what a start returns or
 * behind it: those of one scope and size are one (seen in every dump with such calls). */
static void join_contexts(struct merge *g)
{
    const struct hb_hlo_flow *f = g->f;
    uint32_t last[64] = {0}, count = 0; /* a value of each scope and size, found anew when full */
    for (uint32_t v = 0; v < f->value_count; v++) {
        if (!is_context(f, v))
            continue;
        uint32_t i = 0;
        while (i < count &&
               (f->scope_of[f->values[last[i]].node] != f->scope_of[f->values[v].node] ||
                hb_hlo_value_bytes(f, last[i]) != hb_hlo_value_bytes(f, v)))
            i++;
        if (i < count)
            join_values(g, last[i], v);
        else
            last[count < 64 ? count++ : 63] = v;
    }
}

static void join_all(struct merge *g)
{
    const struct hb_hlo_flow *f = g->f;
    for (uint32_t node = 0; node < f->node_count; node++) {
        enum hb_hlo_op op = hb_hlo_op_of(f->m, hb_hlo_node_inst(f, node));
        if (op == HB_HLO_OP_WHILE || op == HB_HLO_OP_CONDITIONAL)
            join_flow(g, node, op);
        else
            join_in_place(g, node);
    }
    join_contexts(g);
    for (uint32_t d = 0; d < f->m->donation_count; d++) {
        uint32_t param, output;
        if (hb_hlo_donation_slots(f, &f->m->donations[d], &param, &output))
            join_values(g, f->value_at[param], f->value_at[output]);
    }
}

struct ordered {
    int64_t key[3];
    uint32_t index;
};

static int compare_ordered(const void *a, const void *b)
{
    const struct ordered *left = a, *right = b;
    for (int i = 0; i < 3; i++)
        if (left->key[i] != right->key[i])
            return left->key[i] < right->key[i] ? -1 : 1;
    return left->index < right->index ? -1 : left->index > right->index;
}

/* Values sorted by buffer, and in it by number or by range. */
static struct ordered *sort_values(struct merge *g, bool by_range)
{
    const struct hb_hlo_flow *f = g->f;
    struct ordered *sorted = hb_arena_alloc(g->arena, f->value_count, sizeof *sorted);
    for (uint32_t v = 0; v < f->value_count; v++) {
        const struct hb_hlo_range *r = &g->b->ranges[v];
        sorted[v] = (struct ordered){{g->b->buffer_of[v], 0, 0}, v};
        if (by_range) {
            sorted[v].key[1] = r->start;
            sorted[v].key[2] = r->end;
        }
    }
    if (f->value_count)
        qsort(sorted, f->value_count, sizeof *sorted, compare_ordered);
    return sorted;
}

/* Buffers in the order of their first value, which the sets are named by. */
static void number_buffers(struct merge *g)
{
    struct hb_hlo_buffers *b = g->b;
    for (uint32_t v = 0; v < g->f->value_count; v++) {
        uint32_t set = find_set(g, v);
        b->buffer_of[v] = set == v ? b->count++ : b->buffer_of[set];
    }
}

static void list_values(struct merge *g)
{
    struct hb_hlo_buffers *b = g->b;
    const struct hb_hlo_flow *f = g->f;
    struct ordered *sorted = sort_values(g, false);
    for (uint32_t i = 0; i < b->count; i++)
        b->items[i] = (struct hb_hlo_buffer){.argument = HB_NONE, .alloc = HB_NONE};
    for (uint32_t i = 0; i < f->value_count; i++) {
        uint32_t v = sorted[i].index, inst = hb_hlo_node_inst(f, f->values[v].node);
        struct hb_hlo_buffer *buffer = &b->items[b->buffer_of[v]];
        const struct hb_hlo_shape *shape = &f->m->shapes.items[f->values[v].shape];
        enum hb_hlo_op op = hb_hlo_op_of(f->m, inst);
        b->list[i] = v;
        if (!buffer->count++)
            buffer->first = i;
        int64_t bytes = hb_hlo_value_bytes(f, v);
        buffer->bytes = bytes > buffer->bytes ? bytes : buffer->bytes;
        buffer->space = shape->space ? shape->space : buffer->space;
        buffer->table = buffer->table || shape->type == HB_HLO_TUPLE;
        buffer->constant = buffer->constant || op == HB_HLO_OP_CONSTANT;
        if (is_argument(f, v))
            buffer->argument = v;
    }
    uint32_t root = hb_hlo_scope_root(f, 0);
    for (uint32_t s = f->first_slot[root]; s < f->first_slot[root + 1]; s++)
        b->items[b->buffer_of[f->value_at[s]]].live_out = true;
}

/* NormalizeAliasedBuffers: a value of a buffer ends where the next one starts; what outlives it
 * hands its end on. */
static void normalise_ranges(struct merge *g)
{
    struct hb_hlo_buffers *b = g->b;
    struct ordered *sorted = sort_values(g, true);
    for (uint32_t i = 0; i + 1 < g->f->value_count; i++) {
        struct hb_hlo_range *first = &b->ranges[sorted[i].index];
        struct hb_hlo_range *second = &b->ranges[sorted[i + 1].index];
        if (b->buffer_of[sorted[i].index] != b->buffer_of[sorted[i + 1].index])
            continue;
        second->end = first->end > second->end ? first->end : second->end;
        first->end = first->end < second->start ? first->end : second->start;
    }
}

/* ---- allocations ---- */

struct assign {
    struct hb_hlo_buffers *b;
    const struct hb_hlo_flow *f;
    struct hb_hlo_alias *alias;
    struct hb_arena *arena;
    bool *donated;    /* by value */
    uint32_t *shared; /* allocations that others may be put in, in the order of making */
    uint32_t shared_count;
    uint32_t *open; /* of these, those that are not taken at all times */
    uint32_t open_count;
    int32_t last; /* the last end of all values */
};

/* Moves on what is covered without a hole as far as one walk over the tenants can. */
static bool extend_cover(const struct hb_hlo_buffers *b, struct hb_hlo_alloc *in)
{
    int32_t before = in->covered;
    for (uint32_t at = in->first_buffer; at != HB_NONE; at = b->next[at])
        for (uint32_t k = 0; k < b->items[at].count; k++) {
            const struct hb_hlo_range *range = &b->ranges[b->list[b->items[at].first + k]];
            if (range->start <= in->covered && range->end > in->covered)
                in->covered = range->end;
        }
    return in->covered > before;
}

/* A place that is taken at all times is not offered again: a walk over all of them for each buffer
 * is what a step of many donated parameters would spend its time on. */
static void close_if_full(struct assign *a, uint32_t alloc)
{
    struct hb_hlo_alloc *in = &a->b->allocs[alloc];
    while (in->covered < a->last && extend_cover(a->b, in))
        continue;
    for (uint32_t i = a->open_count; in->covered >= a->last && i-- > 0;)
        if (a->open[i] == alloc) {
            memmove(a->open + i, a->open + i + 1, (a->open_count - i - 1) * sizeof *a->open);
            a->open_count--;
            return;
        }
}

static void put(struct assign *a, uint32_t buffer, uint32_t alloc)
{
    struct hb_hlo_buffers *b = a->b;
    b->items[buffer].alloc = alloc;
    b->next[buffer] = b->allocs[alloc].first_buffer;
    b->allocs[alloc].first_buffer = buffer;
}

static void make_alloc(struct assign *a, uint32_t buffer, enum hb_hlo_alloc_kind kind)
{
    struct hb_hlo_buffers *b = a->b;
    const struct hb_hlo_buffer *of = &b->items[buffer];
    bool kept = kind == HB_HLO_ARGUMENT && !a->donated[of->argument];
    b->allocs[b->alloc_count] = (struct hb_hlo_alloc){
        .kind = kind,
        .bytes = of->bytes,
        .space = of->space,
        .read_only = kind == HB_HLO_CONSTANT_DATA || kind == HB_HLO_TABLE || kept,
        .live_out = of->live_out,
        .first_buffer = HB_NONE,
    };
    put(a, buffer, b->alloc_count);
    if (kind == HB_HLO_RESULT || kind == HB_HLO_CONTEXT || (kind == HB_HLO_ARGUMENT && !kept))
        a->open[a->open_count++] = a->shared[a->shared_count++] = b->alloc_count;
    close_if_full(a, b->alloc_count++);
}

/* Whether user's value, which starts as operand's ends, may not take its place. */
static bool clash_at_end(struct assign *a, uint32_t operand, uint32_t user)
{
    const struct hb_hlo_flow *f = a->f;
    const struct hb_hlo_range *range = &a->b->ranges[operand];
    const struct hb_hlo_value *to = &f->values[user];
    uint32_t user_inst = hb_hlo_node_inst(f, to->node);
    uint32_t end_inst = hb_hlo_node_inst(f, range->end_node);
    return hb_hlo_op_of(f->m, user_inst) == HB_HLO_OP_COPY ||
           f->scope_of[to->node] != f->scope_of[range->end_node] ||
           !hb_hlo_may_share(a->alias, end_inst, range->end_slot, user_inst, to->slot);
}

static bool clash(struct assign *a, uint32_t v, uint32_t w)
{
    const struct hb_hlo_range *one = &a->b->ranges[v], *two = &a->b->ranges[w];
    if (one->start > two->end || two->start > one->end)
        return false;
    if (one->end == two->start)
        return clash_at_end(a, v, w);
    if (two->end == one->start)
        return clash_at_end(a, w, v);
    return true;
}

/* A copy does not lie in what it copies, wherever that stands. */
static bool copies_from(const struct assign *a, uint32_t copy, uint32_t value)
{
    const struct hb_hlo_flow *f = a->f;
    uint32_t node = f->values[copy].node;
    if (hb_hlo_op_of(f->m, hb_hlo_node_inst(f, node)) != HB_HLO_OP_COPY)
        return false;
    uint32_t from = hb_hlo_node_operand(f, node, 0);
    for (uint32_t s = f->first_slot[from]; s < f->first_slot[from + 1]; s++)
        if (f->value_at[s] == value)
            return true;
    return false;
}

/* Whether a value may not lie where any of another buffer does. */
static bool clashes(struct assign *a, uint32_t value, uint32_t other)
{
    const struct hb_hlo_buffers *b = a->b;
    for (uint32_t i = 0; i < b->items[other].count; i++) {
        uint32_t theirs = b->list[b->items[other].first + i];
        if (clash(a, value, theirs) || copies_from(a, value, theirs))
            return true;
    }
    return false;
}

static bool fits(struct assign *a, uint32_t buffer, uint32_t alloc)
{
    struct hb_hlo_buffers *b = a->b;
    const struct hb_hlo_buffer *of = &b->items[buffer];
    const struct hb_hlo_alloc *in = &b->allocs[alloc];
    if (in->read_only || in->space != of->space || of->bytes > in->bytes ||
        (of->live_out && in->bytes != of->bytes))
        return false;
    for (uint32_t other = in->first_buffer; other != HB_NONE; other = b->next[other])
        for (uint32_t k = 0; k < of->count; k++)
            if (clashes(a, b->list[of->first + k], other))
                return false;
    return true;
}

/* Whether all its values start and end at one place. */
static bool is_brief(const struct assign *a, uint32_t buffer)
{
    const struct hb_hlo_buffer *of = &a->b->items[buffer];
    for (uint32_t k = 0; k < of->count; k++) {
        const struct hb_hlo_range *range = &a->b->ranges[a->b->list[of->first + k]];
        if (range->start != range->end)
            return false;
    }
    return true;
}

/* First where an operand lies, then the other allocations from the one made last. */
static bool reuse_alloc(struct assign *a, uint32_t buffer)
{
    struct hb_hlo_buffers *b = a->b;
    const struct hb_hlo_flow *f = a->f;
    const struct hb_hlo_buffer *of = &b->items[buffer];
    for (uint32_t k = 0; k < of->count; k++) {
        const struct hb_hlo_value *value = &f->values[b->list[of->first + k]];
        uint32_t inst = hb_hlo_node_inst(f, value->node);
        for (uint32_t i = 0; !value->slot && i < f->m->insts[inst].operand_count; i++) {
            uint32_t from = hb_hlo_node_operand(f, value->node, i);
            uint32_t alloc = b->items[b->buffer_of[f->value_at[f->first_slot[from]]]].alloc;
            if (alloc != HB_NONE && fits(a, buffer, alloc)) {
                put(a, buffer, alloc);
                close_if_full(a, alloc);
                return true;
            }
        }
    }
    bool brief = is_brief(a, buffer); /* fits between two that meet */
    const uint32_t *list = brief ? a->shared : a->open;
    for (uint32_t i = brief ? a->shared_count : a->open_count; i-- > 0;)
        if (fits(a, buffer, list[i])) {
            uint32_t alloc = list[i];
            put(a, buffer, alloc);
            close_if_full(a, alloc);
            return true;
        }
    return false;
}

/* First start and last end of a buffer's values. */
static struct hb_hlo_range hull_of(const struct assign *a, uint32_t buffer)
{
    const struct hb_hlo_buffer *of = &a->b->items[buffer];
    struct hb_hlo_range hull = {.start = INT32_MAX, .end = -1};
    for (uint32_t k = 0; k < of->count; k++) {
        const struct hb_hlo_range *range = &a->b->ranges[a->b->list[of->first + k]];
        hull.start = range->start < hull.start ? range->start : hull.start;
        hull.end = range->end > hull.end ? range->end : hull.end;
    }
    return hull;
}

/* The smallest context that is free by then and holds the buffer. */
static bool borrow_context(struct assign *a, uint32_t buffer)
{
    struct hb_hlo_buffers *b = a->b;
    struct hb_hlo_range hull = hull_of(a, buffer);
    uint32_t best = HB_NONE;
    for (uint32_t i = 0; i < a->shared_count; i++) {
        const struct hb_hlo_alloc *in = &b->allocs[a->shared[i]];
        if (in->kind == HB_HLO_CONTEXT && in->end <= hull.start &&
            (best == HB_NONE || in->bytes < b->allocs[best].bytes) && fits(a, buffer, a->shared[i]))
            best = a->shared[i];
    }
    if (best == HB_NONE)
        return false;
    put(a, buffer, best);
    b->allocs[best].end = hull.end;
    return true;
}

static void assign_on_tpu(struct assign *a, uint32_t buffer)
{
    if (is_context(a->f, a->b->list[a->b->items[buffer].first])) {
        make_alloc(a, buffer, HB_HLO_CONTEXT);
        a->b->allocs[a->b->alloc_count - 1].end = hull_of(a, buffer).end;
    } else if (!borrow_context(a, buffer) && a->b->items[buffer].live_out) {
        make_alloc(a, buffer, HB_HLO_RESULT);
    }
}

static void assign_buffer(struct assign *a, uint32_t buffer)
{
    const struct hb_hlo_buffer *of = &a->b->items[buffer];
    if (of->argument != HB_NONE) /* a constant beside it in a loop's state is copied there */
        make_alloc(a, buffer, HB_HLO_ARGUMENT);
    else if (of->constant)
        make_alloc(a, buffer, HB_HLO_CONSTANT_DATA);
    else if (of->table)
        make_alloc(a, buffer, HB_HLO_TABLE);
    else if (a->f->m->dialect->backend == HB_HLO_TPU)
        assign_on_tpu(a, buffer);
    else if (!reuse_alloc(a, buffer) && of->live_out)
        make_alloc(a, buffer, HB_HLO_RESULT);
}

/* Place in XLA's post-order. What "all-to-all-start" and its like make is the result of an
 * operation in a computation that the text leaves out, which comes after all of its callers. */
static uint32_t place_of(const struct hb_hlo_flow *f, uint32_t v)
{
    const struct hb_hlo_value *value = &f->values[v];
    uint32_t inst = hb_hlo_node_inst(f, value->node), place = f->post_order[value->node];
    bool unwritten = hb_hlo_op_of(f->m, inst) == HB_HLO_OP_ASYNC_START &&
                     !f->m->insts[inst].call_count && value->slot;
    return unwritten ? f->node_count + place : place;
}

static void assign_all(struct assign *a)
{
    struct hb_hlo_buffers *b = a->b;
    struct ordered *sorted = hb_arena_alloc(a->arena, b->count, sizeof *sorted);
    for (uint32_t i = 0; i < b->count; i++) {
        const struct hb_hlo_buffer *of = &b->items[i];
        uint32_t place = UINT32_MAX;
        for (uint32_t k = 0; k < of->count; k++) {
            uint32_t at = place_of(a->f, b->list[of->first + k]);
            place = at < place ? at : place;
        }
        sorted[i] = (struct ordered){{-of->bytes, !of->live_out, place}, i};
        if (a->f->m->dialect->backend == HB_HLO_TPU)
            sorted[i] = (struct ordered){{hull_of(a, i).start, -of->bytes, !of->live_out}, i};
    }
    if (b->count)
        qsort(sorted, b->count, sizeof *sorted, compare_ordered);
    for (uint32_t i = 0; i < b->count; i++)
        assign_buffer(a, sorted[i].index);
}

void hb_hlo_buffers_find(struct hb_arena *arena, const struct hb_hlo_flow *f,
                         struct hb_hlo_alias *alias, struct hb_hlo_buffers *out)
{
    *out = (struct hb_hlo_buffers){.f = f};
    struct merge g = {.b = out, .f = f, .alias = alias, .arena = arena};
    out->ranges = hb_hlo_range_find(arena, f);
    out->buffer_of = hb_arena_alloc(arena, f->value_count, sizeof *out->buffer_of);
    out->list = hb_arena_alloc(arena, f->value_count, sizeof *out->list);
    g.parent = hb_arena_alloc(arena, f->value_count, sizeof *g.parent);
    g.argument = hb_arena_alloc(arena, f->value_count, sizeof *g.argument);
    for (uint32_t v = 0; v < f->value_count; v++) {
        g.parent[v] = v;
        g.argument[v] = is_argument(f, v) ? v : HB_NONE;
    }
    join_all(&g);
    number_buffers(&g);
    out->items = hb_arena_alloc(arena, out->count, sizeof *out->items);
    out->next = hb_arena_alloc(arena, out->count, sizeof *out->next);
    out->allocs = hb_arena_alloc(arena, out->count, sizeof *out->allocs);
    list_values(&g);
    normalise_ranges(&g);
    struct assign a = {.b = out,
                       .f = f,
                       .alias = alias,
                       .arena = arena,
                       .donated = hb_hlo_donated(arena, f),
                       .shared = hb_arena_alloc(arena, out->count, sizeof *a.shared),
                       .open = hb_arena_alloc(arena, out->count, sizeof *a.open)};
    for (uint32_t v = 0; v < f->value_count; v++)
        a.last = out->ranges[v].end > a.last ? out->ranges[v].end : a.last;
    assign_all(&a);
}
