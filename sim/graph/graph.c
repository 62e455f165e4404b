/* Arrays that grow, then users by counting. */
#include "sim/graph/graph.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"

void hb_graph_init(struct hb_graph *g, struct hb_arena *arena)
{
    *g = (struct hb_graph){.arena = arena};
}

uint32_t hb_graph_add_comp(struct hb_graph *g)
{
    g->comps = hb_grow(g->arena, g->comps, g->comp_count, &g->comp_cap, sizeof *g->comps);
    g->comps[g->comp_count] =
        (struct hb_graph_comp){.first_op = g->op_count, .root = HB_NONE, .caller = HB_NONE};
    return g->comp_count++;
}

uint32_t hb_graph_add_op(struct hb_graph *g)
{
    g->ops = hb_grow(g->arena, g->ops, g->op_count, &g->op_cap, sizeof *g->ops);
    struct hb_graph_op *op = &g->ops[g->op_count];
    *op = (struct hb_graph_op){
        .comp = g->comp_count - 1, .first_value = g->value_count, .rank = g->op_count};
    for (int kind = 0; kind <= HB_GRAPH_REF_KINDS; kind++)
        op->refs_at[kind] = g->ref_count;
    g->comps[op->comp].op_count++;
    return g->op_count++;
}

void hb_graph_add_ref(struct hb_graph *g, enum hb_graph_ref kind, uint32_t what)
{
    struct hb_graph_op *op = &g->ops[g->op_count - 1];
    if (op->refs_at[kind + 1] != g->ref_count)
        HB_BUG("references of an op are added out of order");
    g->refs = hb_grow(g->arena, g->refs, g->ref_count, &g->ref_cap, sizeof *g->refs);
    g->refs[g->ref_count++] = what;
    for (int k = (int)kind + 1; k <= HB_GRAPH_REF_KINDS; k++)
        op->refs_at[k] = g->ref_count;
}

uint32_t hb_graph_add_value(struct hb_graph *g, int64_t bytes)
{
    g->values = hb_grow(g->arena, g->values, g->value_count, &g->value_cap, sizeof *g->values);
    g->values[g->value_count] =
        (struct hb_graph_value){.bytes = bytes, .op = g->op_count - 1, .place = g->value_count};
    g->ops[g->op_count - 1].value_count++;
    return g->value_count++;
}

void hb_graph_touch(struct hb_graph *g, uint32_t value, enum hb_graph_until until, uint32_t at)
{
    g->touches = hb_grow(g->arena, g->touches, g->touch_count, &g->touch_cap, sizeof *g->touches);
    g->touches[g->touch_count++] = (struct hb_graph_touch){value, at, until};
}

void hb_graph_add_heir(struct hb_graph *g, uint32_t value, uint32_t from)
{
    if (g->heir_count && g->heirs[g->heir_count - 1].value > value)
        HB_BUG("heirs are added out of order");
    g->heirs = hb_grow(g->arena, g->heirs, g->heir_count, &g->heir_cap, sizeof *g->heirs);
    g->heirs[g->heir_count++] = (struct hb_graph_heir){value, from};
}

/* Counts, or where places are given, notes who refers to each op in this way. */
static void pass_users(const struct hb_graph *g, enum hb_graph_ref kind, uint32_t *count,
                       uint32_t *last, uint32_t *list)
{
    for (uint32_t op = 0; op < g->op_count; op++)
        last[op] = HB_NONE;
    for (uint32_t op = 0; op < g->op_count; op++)
        for (uint32_t i = 0; i < hb_graph_ref_count(g, op, kind); i++) {
            uint32_t to = hb_graph_refs(g, op, kind)[i];
            if (last[to] == op)
                continue;
            last[to] = op;
            if (list)
                list[count[to]++] = op;
            else
                count[to + 1]++;
        }
}

static void find_users(struct hb_graph *g, enum hb_graph_ref kind, uint32_t **out_first,
                       uint32_t **out_list)
{
    uint32_t *first = hb_arena_alloc(g->arena, (size_t)g->op_count + 1, sizeof *first);
    uint32_t *next = hb_arena_alloc(g->arena, g->op_count, sizeof *next);
    uint32_t *last = hb_arena_alloc(g->arena, g->op_count, sizeof *last);
    pass_users(g, kind, first, last, NULL);
    for (uint32_t op = 0; op < g->op_count; op++) {
        first[op + 1] += first[op];
        next[op] = first[op];
    }
    uint32_t *list = hb_arena_alloc(g->arena, (size_t)first[g->op_count] + 1, sizeof *list);
    pass_users(g, kind, next, last, list);
    *out_first = first;
    *out_list = list;
}

static void sort_touches(struct hb_graph *g)
{
    uint32_t *first = hb_arena_alloc(g->arena, (size_t)g->value_count + 2, sizeof *first);
    struct hb_graph_touch *sorted =
        hb_arena_alloc(g->arena, (size_t)g->touch_count + 1, sizeof *sorted);
    for (uint32_t t = 0; t < g->touch_count; t++)
        first[g->touches[t].value + 2]++;
    for (uint32_t v = 1; v <= g->value_count; v++)
        first[v + 1] += first[v];
    for (uint32_t t = 0; t < g->touch_count; t++)
        sorted[first[g->touches[t].value + 1]++] = g->touches[t];
    g->touches = sorted;
    g->first_touch = first;
}

static void find_callers(struct hb_graph *g)
{
    for (uint32_t op = 0; op < g->op_count; op++)
        for (uint32_t i = 0; i < hb_graph_ref_count(g, op, HB_GRAPH_RUNS); i++) {
            uint32_t comp = hb_graph_refs(g, op, HB_GRAPH_RUNS)[i];
            if (comp <= g->ops[op].comp)
                HB_BUG("a computation runs one that stands before it");
            g->comps[comp].caller = op;
        }
}

void hb_graph_close(struct hb_graph *g)
{
    sort_touches(g);
    find_callers(g);
    find_users(g, HB_GRAPH_OPERAND, &g->first_user, &g->users);
    find_users(g, HB_GRAPH_AFTER, &g->first_after, &g->after);
}
