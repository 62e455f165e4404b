/* A node of the flow becomes an op, its values keep what they are. The age of an instruction is
 * lost in a text; it is taken to be its place in post-order. */
#include "sim/hlo/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "sim/hlo/buffer.h"
#include "sim/hlo/order.h"

struct maker {
    struct hb_arena *arena;
    const struct hb_hlo_module *m;
    struct hb_hlo_flow flow;
    struct hb_hlo_alias alias;
    struct hb_hlo_buffers buffers;
    struct hb_graph graph;
    uint32_t *op_of;    /* by node */
    uint32_t *node_of;  /* by op */
    uint32_t *first_of; /* by node, one more at the end: into list */
    uint32_t *list;     /* the flow's values by node */
    uint32_t *value_of; /* of the graph, by the flow's */
    uint32_t *marks;    /* by the flow's value: node + 1 that met it last */
    uint32_t *ranks;    /* by node */
    bool moves_async;   /* XLA:GPU */
};

static enum hb_hlo_op op_at(const struct maker *k, uint32_t node)
{
    return hb_hlo_op_of(k->m, hb_hlo_node_inst(&k->flow, node));
}

/* --- numbers --- */

struct named {
    struct hb_hlo_span name;
    uint32_t node;
};

static int compare_names(const void *a, const void *b)
{
    const struct named *left = a, *right = b;
    size_t len = left->name.len < right->name.len ? left->name.len : right->name.len;
    int order = memcmp(left->name.at, right->name.at, len);
    if (order || left->name.len == right->name.len)
        return order ? order : left->node < right->node ? -1 : left->node > right->node;
    return left->name.len < right->name.len ? -1 : 1;
}

static void rank_names(struct maker *k)
{
    struct named *names = hb_arena_raw(k->arena, k->flow.node_count, sizeof *names);
    for (uint32_t i = 0; i < k->flow.node_count; i++)
        names[i] = (struct named){hb_hlo_name_of(k->m, hb_hlo_node_inst(&k->flow, i)), i};
    if (k->flow.node_count)
        qsort(names, k->flow.node_count, sizeof *names, compare_names);
    for (uint32_t i = 0; i < k->flow.node_count; i++)
        k->ranks[names[i].node] = i;
}

/* Ops by scope, in each by age. */
static void number_ops(struct maker *k)
{
    uint32_t *insts = hb_arena_raw(k->arena, k->m->inst_count, sizeof *insts), op = 0;
    for (uint32_t s = 0; s < k->flow.scope_count; s++) {
        const struct hb_hlo_scope *scope = &k->flow.scopes[s];
        const struct hb_hlo_comp *comp = &k->m->comps[scope->comp];
        hb_hlo_post_order(k->arena, k->m, scope->comp, insts);
        for (uint32_t i = 0; i < comp->inst_count; i++, op++) {
            k->node_of[op] = scope->first_node + (insts[i] - comp->first_inst);
            k->op_of[k->node_of[op]] = op;
        }
    }
}

static void list_values(struct maker *k)
{
    const struct hb_hlo_flow *f = &k->flow;
    for (uint32_t v = 0; v < f->value_count; v++)
        k->first_of[f->values[v].node + 1]++;
    for (uint32_t i = 0; i < f->node_count; i++)
        k->first_of[i + 1] += k->first_of[i];
    for (uint32_t v = f->value_count; v-- > 0;)
        k->list[--k->first_of[f->values[v].node + 1]] = v;
    for (uint32_t i = 0; i < f->node_count; i++) /* each stands at its start again */
        k->first_of[i] = k->first_of[i + 1];
    k->first_of[f->node_count] = f->value_count;
}

static void open_maker(struct maker *k)
{
    const struct hb_hlo_flow *f = &k->flow;
    k->op_of = hb_arena_alloc(k->arena, f->node_count, sizeof *k->op_of);
    k->node_of = hb_arena_alloc(k->arena, f->node_count, sizeof *k->node_of);
    k->ranks = hb_arena_alloc(k->arena, f->node_count, sizeof *k->ranks);
    k->first_of = hb_arena_alloc(k->arena, (size_t)f->node_count + 1, sizeof *k->first_of);
    k->list = hb_arena_alloc(k->arena, f->value_count, sizeof *k->list);
    k->value_of = hb_arena_alloc(k->arena, f->value_count, sizeof *k->value_of);
    k->marks = hb_arena_alloc(k->arena, f->value_count, sizeof *k->marks);
    hb_hlo_alias_init(&k->alias, k->arena, k->m);
    hb_hlo_buffers_find(k->arena, f, &k->alias, &k->buffers);
    number_ops(k);
    list_values(k);
    rank_names(k);
    hb_graph_init(&k->graph, k->arena);
    k->moves_async = k->m->dialect == hb_hlo_dialect_find("gpu");
    k->graph.loops_even = k->m->dialect->backend == HB_HLO_TPU;
}

/* --- ops and values --- */

static void add_refs(struct maker *k, uint32_t node)
{
    const struct hb_hlo_flow *f = &k->flow;
    uint32_t inst = hb_hlo_node_inst(f, node), operands = k->m->insts[inst].operand_count;
    for (uint32_t i = 0; i < operands; i++)
        hb_graph_add_ref(&k->graph, HB_GRAPH_OPERAND, k->op_of[hb_hlo_node_operand(f, node, i)]);
    for (uint32_t i = 0; i < k->m->insts[inst].pred_count; i++)
        hb_graph_add_ref(&k->graph, HB_GRAPH_AFTER,
                         k->op_of[hb_hlo_sibling(f, node, hb_hlo_pred(k->m, inst, i))]);
    for (uint32_t i = 0; i < operands; i++) {
        uint32_t from = hb_hlo_node_operand(f, node, i);
        for (uint32_t s = f->first_slot[from]; s < f->first_slot[from + 1]; s++) {
            uint32_t v = f->value_at[s];
            if (k->marks[v] != node + 1)
                hb_graph_add_ref(&k->graph, HB_GRAPH_USES, k->value_of[v]);
            k->marks[v] = node + 1;
        }
    }
    for (uint32_t s = f->child_scope[node]; s != HB_NONE; s = f->scopes[s].next)
        hb_graph_add_ref(&k->graph, HB_GRAPH_RUNS, s);
}

static bool is_start(enum hb_hlo_op op)
{
    return op == HB_HLO_OP_ASYNC_START || op == HB_HLO_OP_ALL_GATHER_START ||
           op == HB_HLO_OP_ALL_REDUCE_START || op == HB_HLO_OP_COLLECTIVE_PERMUTE_START;
}

static bool is_done(enum hb_hlo_op op)
{
    return op == HB_HLO_OP_ASYNC_DONE || op == HB_HLO_OP_ALL_GATHER_DONE ||
           op == HB_HLO_OP_ALL_REDUCE_DONE || op == HB_HLO_OP_COLLECTIVE_PERMUTE_DONE;
}

static void add_op(struct maker *k, uint32_t node)
{
    uint32_t inst = hb_hlo_node_inst(&k->flow, node), op = hb_graph_add_op(&k->graph);
    const struct hb_hlo_shape *shape = hb_hlo_shape_of(k->m, inst);
    struct hb_graph_op *at = &k->graph.ops[op];
    enum hb_hlo_op kind = op_at(k, node);
    at->early = kind == HB_HLO_OP_PARAMETER;
    at->given = at->early || kind == HB_HLO_OP_CONSTANT;
    at->scalar = shape->type != HB_HLO_TUPLE && shape->elements == 1;
    at->rank = k->ranks[node];
    at->soon = k->moves_async && is_start(kind);
    at->late = k->moves_async && is_done(kind);
    for (uint32_t i = k->first_of[node]; i < k->first_of[node + 1]; i++) {
        uint32_t made = k->value_of[k->list[i]];
        hb_graph_add_value(&k->graph, hb_hlo_value_bytes(&k->flow, k->list[i]));
        struct hb_graph_value *value = &k->graph.values[made];
        value->place = k->buffers.buffer_of[k->list[i]];
        value->constant = kind == HB_HLO_OP_CONSTANT;
    }
    add_refs(k, node);
}

static void number_values(struct maker *k)
{
    uint32_t made = 0;
    for (uint32_t op = 0; op < k->flow.node_count; op++)
        for (uint32_t i = k->first_of[k->node_of[op]]; i < k->first_of[k->node_of[op] + 1]; i++)
            k->value_of[k->list[i]] = made++;
}

static void add_ops(struct maker *k)
{
    uint32_t op = 0;
    number_values(k);
    for (uint32_t s = 0; s < k->flow.scope_count; s++) {
        uint32_t comp = hb_graph_add_comp(&k->graph);
        for (uint32_t i = 0; i < k->m->comps[k->flow.scopes[s].comp].inst_count; i++)
            add_op(k, k->node_of[op++]);
        k->graph.comps[comp].root = k->op_of[hb_hlo_scope_root(&k->flow, s)];
    }
    memset(k->marks, 0, k->flow.value_count * sizeof *k->marks);
}

/* --- lives (as range.c finds them for one order) --- */

static void touch_places(struct maker *k, uint32_t node)
{
    const struct hb_hlo_flow *f = &k->flow;
    bool root = hb_hlo_node_is_root(f, node);
    for (uint32_t s = f->first_slot[node]; s < f->first_slot[node + 1]; s++) {
        uint32_t v = f->value_at[s];
        if (k->marks[v] == node + 1)
            continue;
        k->marks[v] = node + 1;
        if (root)
            hb_graph_touch(&k->graph, k->value_of[v], HB_GRAPH_END, f->scope_of[node]);
        else if (f->values[v].node != node)
            hb_graph_touch(&k->graph, k->value_of[v], HB_GRAPH_OP, k->op_of[node]);
    }
}

/* A while reads its initial value as its body starts; what a call uses is told inside of it. */
static void touch_operands(struct maker *k, uint32_t node)
{
    const struct hb_hlo_flow *f = &k->flow;
    enum hb_hlo_op kind = op_at(k, node);
    uint32_t body = f->child_scope[node], operands;
    bool loop = kind == HB_HLO_OP_WHILE && body != HB_NONE;
    bool top_only = kind == HB_HLO_OP_GET_TUPLE_ELEMENT || kind == HB_HLO_OP_COPY;
    if (kind == HB_HLO_OP_TUPLE || kind == HB_HLO_OP_DOMAIN ||
        (kind == HB_HLO_OP_CALL && body != HB_NONE))
        return;
    if (loop && f->scopes[body].next != HB_NONE)
        body = f->scopes[body].next;
    operands = k->m->insts[hb_hlo_node_inst(f, node)].operand_count;
    for (uint32_t i = 0; i < operands; i++) {
        uint32_t from = hb_hlo_node_operand(f, node, i);
        uint32_t end = top_only ? f->first_slot[from] + 1 : f->first_slot[from + 1];
        for (uint32_t s = f->first_slot[from]; s < end; s++)
            hb_graph_touch(&k->graph, k->value_of[f->value_at[s]],
                           loop ? HB_GRAPH_START : HB_GRAPH_OP, loop ? body : k->op_of[node]);
    }
}

/* An asynchronous call holds what is inside until it is done. */
static void touch_context(struct maker *k, uint32_t node)
{
    const struct hb_hlo_flow *f = &k->flow;
    uint32_t scope = f->scope_of[node], done = f->scopes[scope].async_done;
    while (done == HB_NONE && f->scopes[scope].caller != HB_NONE) {
        scope = f->scope_of[f->scopes[scope].caller];
        done = f->scopes[scope].async_done;
    }
    for (uint32_t i = k->first_of[node]; done != HB_NONE && i < k->first_of[node + 1]; i++)
        hb_graph_touch(&k->graph, k->value_of[k->list[i]], HB_GRAPH_OP, k->op_of[done]);
}

static bool is_user(const struct maker *k, uint32_t node, uint32_t of)
{
    uint32_t operands = k->m->insts[hb_hlo_node_inst(&k->flow, node)].operand_count;
    for (uint32_t i = 0; i < operands; i++)
        if (hb_hlo_node_operand(&k->flow, node, i) == of)
            return true;
    return false;
}

/* What a value may take the place of: the operands' own results. */
static void add_heirs(struct maker *k, uint32_t node)
{
    const struct hb_hlo_flow *f = &k->flow;
    uint32_t inst = hb_hlo_node_inst(f, node), operands = k->m->insts[inst].operand_count;
    if (op_at(k, node) == HB_HLO_OP_COPY)
        return;
    for (uint32_t i = k->first_of[node]; i < k->first_of[node + 1]; i++)
        for (uint32_t o = 0; o < operands; o++) {
            uint32_t from = f->value_at[f->first_slot[hb_hlo_node_operand(f, node, o)]];
            const struct hb_hlo_value *old = &f->values[from];
            if (is_user(k, node, old->node) &&
                hb_hlo_may_share(&k->alias, hb_hlo_node_inst(f, old->node), old->slot, inst,
                                 f->values[k->list[i]].slot))
                hb_graph_add_heir(&k->graph, k->value_of[k->list[i]], k->value_of[from]);
        }
}

/* An argument that the caller keeps lives on. */
static void touch_arguments(struct maker *k)
{
    const struct hb_hlo_flow *f = &k->flow;
    bool *donated = hb_hlo_donated(k->arena, f);
    for (uint32_t v = 0; v < f->value_count; v++)
        if (f->scope_of[f->values[v].node] == 0 && !donated[v] &&
            op_at(k, f->values[v].node) == HB_HLO_OP_PARAMETER)
            hb_graph_touch(&k->graph, k->value_of[v], HB_GRAPH_END, 0);
}

static void make_graph(struct maker *k)
{
    open_maker(k);
    add_ops(k);
    for (uint32_t op = 0; op < k->flow.node_count; op++) {
        touch_places(k, k->node_of[op]);
        touch_operands(k, k->node_of[op]);
        touch_context(k, k->node_of[op]);
        add_heirs(k, k->node_of[op]);
    }
    touch_arguments(k);
    hb_graph_close(&k->graph);
}

/* --- what comes out --- */

static bool is_work(enum hb_hlo_op op)
{
    return op != HB_HLO_OP_PARAMETER && op != HB_HLO_OP_CONSTANT && op != HB_HLO_OP_TUPLE &&
           op != HB_HLO_OP_GET_TUPLE_ELEMENT && op != HB_HLO_OP_BITCAST;
}

/* The longest row that both orders have: ends[n], the least place in the text at which a row of n
 * can end. */
static struct hb_hlo_common compare_order(const struct maker *k, const uint32_t *order,
                                          uint32_t comp)
{
    const struct hb_graph_comp *of = &k->graph.comps[comp];
    uint32_t *ends = hb_arena_raw(k->arena, (size_t)of->op_count + 1, sizeof *ends);
    struct hb_hlo_common common = {0, 0};
    for (uint32_t i = of->first_op; i < of->first_op + of->op_count; i++) {
        uint32_t node = k->node_of[order[i]], low = 0, high = common.same;
        if (!is_work(op_at(k, node)))
            continue;
        common.of++;
        while (low < high) {
            uint32_t middle = (low + high) / 2;
            if (ends[middle] < node)
                low = middle + 1;
            else
                high = middle;
        }
        ends[low] = node;
        common.same += low == common.same;
    }
    return common;
}

/* A computation that several call is put in order once. */
static uint32_t *inst_order(const struct maker *k, const uint32_t *order)
{
    const struct hb_hlo_module *m = k->m;
    uint32_t *insts = hb_arena_alloc(k->arena, m->inst_count, sizeof *insts);
    for (uint32_t i = 0; i < m->inst_count; i++)
        insts[i] = i;
    for (uint32_t s = 0; s < k->flow.scope_count; s++) {
        const struct hb_hlo_comp *comp = &m->comps[k->flow.scopes[s].comp];
        const uint32_t *row = order + k->graph.comps[s].first_op;
        for (uint32_t i = 0; i < comp->inst_count; i++)
            insts[comp->first_inst + i] = hb_hlo_node_inst(&k->flow, k->node_of[row[i]]);
    }
    return insts;
}

static int64_t printed_bytes(const struct maker *k)
{
    uint32_t *order = hb_arena_raw(k->arena, k->flow.node_count, sizeof *order);
    for (uint32_t s = 0; s < k->flow.scope_count; s++)
        for (uint32_t i = 0; i < k->graph.comps[s].op_count; i++)
            order[k->graph.comps[s].first_op + i] = k->op_of[k->flow.scopes[s].first_node + i];
    return hb_graph_estimate(k->arena, &k->graph, order);
}

bool hb_hlo_orders_find(struct hb_arena *arena, struct hb_diag *diag, const struct hb_hlo_module *m,
                        struct hb_hlo_orders *out)
{
    struct maker k = {.arena = arena, .m = m};
    struct hb_order_choice choice;
    if (!hb_hlo_flow_find(arena, diag, m, NULL, &k.flow))
        return false;
    make_graph(&k);
    hb_graph_choose(arena, &k.graph, &choice);
    *out = (struct hb_hlo_orders){.least = choice.least, .printed_bytes = printed_bytes(&k)};
    for (int kind = 0; kind < HB_ORDER_KINDS; kind++) {
        out->insts[kind] = inst_order(&k, choice.orders[kind]);
        out->bytes[kind] = choice.bytes[kind];
        for (uint32_t s = 0; s < k.flow.scope_count; s++) {
            struct hb_hlo_common c = compare_order(&k, choice.orders[kind], s);
            struct hb_hlo_common *to = s ? &out->inside[kind] : &out->entry[kind];
            to->same += c.same;
            to->of += c.of;
        }
    }
    return true;
}

double hb_hlo_common_part(const struct hb_hlo_common *common)
{
    return common->of ? (double)common->same / common->of : 1;
}

const char *hb_hlo_order_title(enum hb_order_kind kind)
{
    static const char *const titles[] = {"list schedule", "depth first", "post-order",
                                         "as printed"};
    return titles[kind];
}
