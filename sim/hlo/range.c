/* Three reasons keep a value: it stands at a later place (tuples, bitcasts, returned values), it
 * is used, or something runs asynchronously with it. */
#include "sim/hlo/range.h"

#include "base/arena.h"

static void lengthen(struct hb_hlo_range *range, int32_t time)
{
    if (time > range->end)
        range->end = time;
}

/* The done that ends the asynchronous wrap around each scope; HB_NONE: not wrapped. */
static uint32_t *find_contexts(struct hb_arena *arena, const struct hb_hlo_flow *f)
{
    uint32_t *context = hb_arena_alloc(arena, f->scope_count, sizeof *context);
    for (uint32_t s = 0; s < f->scope_count; s++) {
        const struct hb_hlo_scope *scope = &f->scopes[s];
        context[s] = scope->async_done;
        if (context[s] == HB_NONE && scope->caller != HB_NONE)
            context[s] = context[f->scope_of[scope->caller]];
    }
    return context;
}

/* When what stands at a node in its own right ends: a root's with its computation. */
static int32_t place_time(const struct hb_hlo_flow *f, uint32_t node)
{
    return hb_hlo_node_is_root(f, node) ? f->scopes[f->scope_of[node]].end : f->time[node];
}

static void start_ranges(struct hb_arena *arena, const struct hb_hlo_flow *f,
                         struct hb_hlo_range *ranges)
{
    const uint32_t *context = find_contexts(arena, f);
    for (uint32_t v = 0; v < f->value_count; v++) {
        uint32_t node = f->values[v].node, scope = f->scope_of[node];
        bool is_param = hb_hlo_op_of(f->m, hb_hlo_node_inst(f, node)) == HB_HLO_OP_PARAMETER;
        ranges[v] = (struct hb_hlo_range){
            .start = is_param ? f->scopes[scope].start : f->time[node],
            .end = place_time(f, node),
            .end_node = node,
            .end_slot = f->values[v].slot,
        };
        if (context[scope] != HB_NONE)
            lengthen(&ranges[v], f->time[context[scope]]);
    }
}

static void follow_places(const struct hb_hlo_flow *f, struct hb_hlo_range *ranges)
{
    for (uint32_t node = 0; node < f->node_count; node++) {
        int32_t time = place_time(f, node);
        for (uint32_t s = f->first_slot[node]; s < f->first_slot[node + 1]; s++) {
            struct hb_hlo_range *range = &ranges[f->value_at[s]];
            if (f->values[f->value_at[s]].node == node || time <= range->end)
                continue;
            range->end = time;
            range->end_node = node;
            range->end_slot = s - f->first_slot[node];
        }
    }
}

/* When a node uses its operands; -1: it only hands them on. A while reads its initial value as
 * its body starts; what a call uses is told by the uses inside of it. */
static int32_t use_time(const struct hb_hlo_flow *f, uint32_t node)
{
    uint32_t inst = hb_hlo_node_inst(f, node), body = f->child_scope[node];
    enum hb_hlo_op op = hb_hlo_op_of(f->m, inst);
    if (op == HB_HLO_OP_TUPLE || op == HB_HLO_OP_DOMAIN ||
        (op == HB_HLO_OP_CALL && body != HB_NONE))
        return -1;
    if (op != HB_HLO_OP_WHILE || body == HB_NONE)
        return f->time[node];
    body = f->scopes[body].next != HB_NONE ? f->scopes[body].next : body;
    const struct hb_hlo_comp *comp = &f->m->comps[f->scopes[body].comp];
    if (!comp->param_count)
        return f->scopes[body].start;
    return f->time[f->scopes[body].first_node + (f->m->params[comp->params_at] - comp->first_inst)];
}

static void follow_uses(const struct hb_hlo_flow *f, struct hb_hlo_range *ranges)
{
    for (uint32_t node = 0; node < f->node_count; node++) {
        uint32_t inst = hb_hlo_node_inst(f, node);
        enum hb_hlo_op op = hb_hlo_op_of(f->m, inst);
        int32_t time = use_time(f, node);
        bool top_only = op == HB_HLO_OP_GET_TUPLE_ELEMENT || op == HB_HLO_OP_COPY;
        if (time < 0)
            continue;
        for (uint32_t i = 0; i < f->m->insts[inst].operand_count; i++) {
            uint32_t from = hb_hlo_node_operand(f, node, i);
            uint32_t end = top_only ? f->first_slot[from] + 1 : f->first_slot[from + 1];
            for (uint32_t s = f->first_slot[from]; s < end; s++)
                lengthen(&ranges[f->value_at[s]], time);
        }
    }
}

/* An argument that the caller keeps lives on. */
static void keep_arguments(struct hb_arena *arena, const struct hb_hlo_flow *f,
                           struct hb_hlo_range *ranges)
{
    bool *donated = hb_hlo_donated(arena, f);
    for (uint32_t v = 0; v < f->value_count; v++) {
        const struct hb_hlo_value *value = &f->values[v];
        if (f->scope_of[value->node] == 0 && !donated[v] &&
            hb_hlo_op_of(f->m, hb_hlo_node_inst(f, value->node)) == HB_HLO_OP_PARAMETER)
            ranges[v].end = f->end_time;
    }
}

struct hb_hlo_range *hb_hlo_range_find(struct hb_arena *arena, const struct hb_hlo_flow *f)
{
    struct hb_hlo_range *ranges = hb_arena_alloc(arena, f->value_count, sizeof *ranges);
    start_ranges(arena, f, ranges);
    follow_places(f, ranges);
    follow_uses(f, ranges);
    keep_arguments(arena, f, ranges);
    return ranges;
}
