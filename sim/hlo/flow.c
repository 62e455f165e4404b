/* Three passes: scopes are opened depth first and slots filled in the order of the text; phis
 * that turn out to stand for one value only are replaced by it; then times and XLA's orders are
 * given. Computations stand above their callers, so sizes are known before anything is opened. */
#include "sim/hlo/flow.h"

#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/hlo/order.h"

enum {
    MAX_DEPTH = 200,        /* of calls in calls */
    MAX_UNROLLED = 1 << 26, /* nodes, and slots */
    MAX_PASSES = 64         /* over the phis */
};

struct phi {
    uint32_t value;
    uint32_t input_at; /* into inputs */
    uint32_t input_count;
};

struct builder {
    struct hb_hlo_flow *f;
    const struct hb_hlo_module *m;
    struct hb_arena *arena;
    struct phi *phis;
    uint32_t phi_count, phi_cap;
    uint32_t *inputs;
    uint32_t input_count, input_cap;
};

static const struct hb_hlo_shape *shape_at(const struct builder *b, uint32_t shape)
{
    return &b->m->shapes.items[shape];
}

static uint32_t inst_shape(const struct builder *b, uint32_t node)
{
    return b->m->insts[hb_hlo_node_inst(b->f, node)].shape;
}

/* ---- sizes, before anything is opened ---- */

static bool check_sizes(struct builder *b, struct hb_diag *diag)
{
    const struct hb_hlo_module *m = b->m;
    struct size {
        int64_t nodes, slots;
        int depth;
    } *sizes = hb_arena_alloc(b->arena, m->comp_count, sizeof *sizes);
    for (uint32_t c = 0; c < m->comp_count; c++) {
        const struct hb_hlo_comp *comp = &m->comps[c];
        struct size *size = &sizes[c];
        size->nodes = comp->inst_count;
        for (uint32_t i = comp->first_inst; i < comp->first_inst + comp->inst_count; i++) {
            size->slots = hb_add_sat(size->slots, hb_hlo_shape_of(m, i)->slots);
            if (!hb_hlo_op_has(hb_hlo_op_of(m, i), HB_HLO_CALLS))
                continue;
            for (uint32_t k = 0; k < m->insts[i].call_count; k++) {
                const struct size *called = &sizes[hb_hlo_called(m, i, k)];
                size->nodes = hb_add_sat(size->nodes, called->nodes);
                size->slots = hb_add_sat(size->slots, called->slots);
                size->depth = called->depth + 1 > size->depth ? called->depth + 1 : size->depth;
            }
        }
    }
    const struct size *entry = &sizes[m->entry];
    struct hb_loc loc = hb_hlo_text_loc(&m->text, m->comps[m->entry].name.at);
    if (entry->depth > MAX_DEPTH)
        return hb_error(diag, loc, "calls are nested deeper than %d", MAX_DEPTH);
    if (entry->nodes > MAX_UNROLLED || entry->slots > MAX_UNROLLED)
        return hb_error(diag, loc, "calls unroll to more than %d instructions or parts of shapes",
                        MAX_UNROLLED);
    b->f->node_cap = (uint32_t)entry->nodes;
    b->f->value_cap = (uint32_t)entry->slots;
    return true;
}

/* ---- values ---- */

static uint32_t add_value(struct builder *b, uint32_t node, uint32_t slot, uint32_t shape)
{
    struct hb_hlo_flow *f = b->f;
    f->values = hb_grow(b->arena, f->values, f->value_count, &f->value_cap, sizeof *f->values);
    f->values[f->value_count] = (struct hb_hlo_value){.node = node, .slot = slot, .shape = shape};
    return f->value_count++;
}

static uint32_t *slot_at(struct builder *b, uint32_t node, uint32_t slot)
{
    return &b->f->value_at[b->f->first_slot[node] + slot];
}

static void define_slot(struct builder *b, uint32_t node, uint32_t slot, uint32_t shape)
{
    *slot_at(b, node, slot) = add_value(b, node, slot, shape);
}

/* Defines slot and what is inside of it. */
static void define_all(struct builder *b, uint32_t node, uint32_t slot, uint32_t shape)
{
    define_slot(b, node, slot, shape);
    uint32_t count = shape_at(b, shape)->child_count;
    for (uint32_t i = 0; i < count; i++)
        define_all(b, node, slot + hb_hlo_shape_child_slot(&b->m->shapes, shape, i),
                   hb_hlo_shape_child(&b->m->shapes, shape, i));
}

/* A part of a node's shape, and where its values come from. */
struct part {
    uint32_t node, slot, shape;
};

static struct part whole(struct builder *b, uint32_t node)
{
    return (struct part){node, 0, inst_shape(b, node)};
}

/* The child of a part; false if its shape has none there. */
static bool take_child(struct builder *b, struct part of, uint32_t child, struct part *out)
{
    if (child >= shape_at(b, of.shape)->child_count)
        return false;
    *out = (struct part){of.node, of.slot + hb_hlo_shape_child_slot(&b->m->shapes, of.shape, child),
                         hb_hlo_shape_child(&b->m->shapes, of.shape, child)};
    return true;
}

/* The values of from, tables included; shapes that do not match define their own. */
static void forward(struct builder *b, struct part to, struct part from)
{
    if (shape_at(b, to.shape)->slots != shape_at(b, from.shape)->slots) {
        define_all(b, to.node, to.slot, to.shape);
        return;
    }
    memmove(slot_at(b, to.node, to.slot), slot_at(b, from.node, from.slot),
            shape_at(b, to.shape)->slots * sizeof(uint32_t));
}

/* Arrays of from; tables are made anew. */
static void forward_arrays(struct builder *b, struct part to, struct part from)
{
    if (shape_at(b, to.shape)->type != HB_HLO_TUPLE ||
        shape_at(b, to.shape)->child_count != shape_at(b, from.shape)->child_count) {
        forward(b, to, from);
        return;
    }
    define_slot(b, to.node, to.slot, to.shape);
    for (uint32_t i = 0; i < shape_at(b, to.shape)->child_count; i++) {
        struct part into, of;
        if (take_child(b, to, i, &into) && take_child(b, from, i, &of))
            forward_arrays(b, into, of);
    }
}

/* ---- phis ---- */

static void add_input(struct builder *b, uint32_t value)
{
    b->inputs = hb_grow(b->arena, b->inputs, b->input_count, &b->input_cap, sizeof *b->inputs);
    b->inputs[b->input_count++] = value;
}

/* A phi in each slot of to; inputs come later, as many for each. */
static uint32_t define_phis(struct builder *b, struct part to, uint32_t input_count)
{
    uint32_t first = b->phi_count, slots = shape_at(b, to.shape)->slots;
    define_all(b, to.node, to.slot, to.shape);
    for (uint32_t i = 0; i < slots; i++) {
        b->phis = hb_grow(b->arena, b->phis, b->phi_count, &b->phi_cap, sizeof *b->phis);
        b->phis[b->phi_count++] =
            (struct phi){*slot_at(b, to.node, to.slot + i), b->input_count, input_count};
        for (uint32_t k = 0; k < input_count; k++)
            add_input(b, HB_NONE);
    }
    return first;
}

static void set_inputs(struct builder *b, uint32_t first_phi, uint32_t nth, struct part to,
                       struct part from)
{
    if (shape_at(b, to.shape)->slots != shape_at(b, from.shape)->slots)
        return;
    for (uint32_t i = 0; i < shape_at(b, to.shape)->slots; i++)
        b->inputs[b->phis[first_phi + i].input_at + nth] = *slot_at(b, from.node, from.slot + i);
}

/* What value each phi stands for: HB_NONE while unknown, itself where inputs differ. Unknown
 * inputs agree with anything, so loops that only hand a value on do not hide it. */
static bool pass_over_phis(struct builder *b, uint32_t *stands_for)
{
    bool changed = false;
    for (uint32_t p = 0; p < b->phi_count; p++) {
        const struct phi *phi = &b->phis[p];
        uint32_t common = HB_NONE;
        for (uint32_t i = 0; i < phi->input_count; i++) {
            uint32_t input = b->inputs[phi->input_at + i];
            uint32_t value = input == HB_NONE ? HB_NONE : stands_for[input];
            if (value == HB_NONE || value == phi->value)
                continue;
            if (common != HB_NONE && common != value) {
                common = phi->value;
                break;
            }
            common = value;
        }
        changed = changed || stands_for[phi->value] != common;
        stands_for[phi->value] = common;
    }
    return changed;
}

static void replace_phis(struct builder *b)
{
    struct hb_hlo_flow *f = b->f;
    uint32_t *stands_for = hb_arena_alloc(b->arena, f->value_count, sizeof *stands_for);
    for (uint32_t v = 0; v < f->value_count; v++)
        stands_for[v] = v;
    for (uint32_t p = 0; p < b->phi_count; p++)
        stands_for[b->phis[p].value] = HB_NONE;
    int pass = 0;
    while (pass_over_phis(b, stands_for) && ++pass < MAX_PASSES)
        ;
    for (uint32_t p = 0; p < b->phi_count; p++)
        if (pass == MAX_PASSES || stands_for[b->phis[p].value] == HB_NONE)
            stands_for[b->phis[p].value] = b->phis[p].value;
    uint32_t *moved = hb_arena_alloc(b->arena, f->value_count, sizeof *moved), kept = 0;
    for (uint32_t v = 0; v < f->value_count; v++)
        if (stands_for[v] == v) {
            moved[v] = kept;
            f->values[kept++] = f->values[v];
        }
    f->value_count = kept;
    for (uint32_t s = 0; s < f->slot_count; s++)
        f->value_at[s] = moved[stands_for[f->value_at[s]]];
}

/* ---- scopes ---- */

static uint32_t open_scope(struct builder *b, uint32_t comp, uint32_t caller, uint32_t branch)
{
    struct hb_hlo_flow *f = b->f;
    const struct hb_hlo_comp *of = &b->m->comps[comp];
    f->scopes = hb_grow(b->arena, f->scopes, f->scope_count, &f->scope_cap, sizeof *f->scopes);
    f->scopes[f->scope_count] = (struct hb_hlo_scope){.comp = comp,
                                                      .caller = caller,
                                                      .branch = branch,
                                                      .next = HB_NONE,
                                                      .first_node = f->node_count,
                                                      .async_done = HB_NONE};
    for (uint32_t i = 0; i < of->inst_count; i++) {
        uint32_t node = f->node_count++;
        f->scope_of[node] = f->scope_count;
        f->child_scope[node] = HB_NONE;
        f->first_slot[node] = f->slot_count;
        f->slot_count += hb_hlo_shape_of(b->m, of->first_inst + i)->slots;
    }
    f->first_slot[f->node_count] = f->slot_count;
    if (caller != HB_NONE) { /* behind its elder siblings */
        uint32_t *link = &f->child_scope[caller];
        while (*link != HB_NONE)
            link = &f->scopes[*link].next;
        *link = f->scope_count;
    }
    return f->scope_count++;
}

static void fill_scope(struct builder *b, uint32_t scope);

static uint32_t param_node(const struct builder *b, uint32_t scope, uint32_t number)
{
    const struct hb_hlo_scope *at = &b->f->scopes[scope];
    const struct hb_hlo_comp *comp = &b->m->comps[at->comp];
    return at->first_node + (b->m->params[comp->params_at + number] - comp->first_inst);
}

static uint32_t param_count(const struct builder *b, uint32_t scope)
{
    return b->m->comps[b->f->scopes[scope].comp].param_count;
}

static void fill_while(struct builder *b, uint32_t node)
{
    uint32_t inst = hb_hlo_node_inst(b->f, node), phis[2] = {0};
    struct part init = whole(b, hb_hlo_node_operand(b->f, node, 0)), to = whole(b, node), root;
    uint32_t scopes[2];
    for (uint32_t i = 0; i < 2; i++) {
        scopes[i] = open_scope(b, hb_hlo_called(b->m, inst, i), node, i);
        for (uint32_t p = 0; p < param_count(b, scopes[i]); p++) {
            struct part param = whole(b, param_node(b, scopes[i], p));
            if (p == 0) {
                phis[i] = define_phis(b, param, 2);
                set_inputs(b, phis[i], 0, param, init);
            } else {
                define_all(b, param.node, 0, param.shape);
            }
        }
        fill_scope(b, scopes[i]);
    }
    root = whole(b, hb_hlo_scope_root(b->f, scopes[1]));
    for (uint32_t i = 0; i < 2; i++)
        if (param_count(b, scopes[i]))
            set_inputs(b, phis[i], 1, whole(b, param_node(b, scopes[i], 0)), root);
    uint32_t out = define_phis(b, to, 2);
    set_inputs(b, out, 0, to, init);
    set_inputs(b, out, 1, to, root);
}

static void fill_conditional(struct builder *b, uint32_t node)
{
    uint32_t inst = hb_hlo_node_inst(b->f, node), count = b->m->insts[inst].call_count;
    struct part to = whole(b, node);
    uint32_t first_scope = HB_NONE, scope = HB_NONE;
    for (uint32_t i = 0; i < count; i++) {
        scope = open_scope(b, hb_hlo_called(b->m, inst, i), node, i);
        first_scope = i ? first_scope : scope;
        struct part from = whole(b, hb_hlo_node_operand(b->f, node, i + 1));
        for (uint32_t p = 0; p < param_count(b, scope); p++)
            forward(b, whole(b, param_node(b, scope, p)), from);
        fill_scope(b, scope);
    }
    uint32_t out = define_phis(b, to, count);
    scope = first_scope;
    for (uint32_t i = 0; i < count; i++, scope = b->f->scopes[scope].next)
        set_inputs(b, out, i, to, whole(b, hb_hlo_scope_root(b->f, scope)));
}

static void fill_call(struct builder *b, uint32_t node)
{
    uint32_t inst = hb_hlo_node_inst(b->f, node);
    uint32_t scope = open_scope(b, hb_hlo_called(b->m, inst, 0), node, 0);
    for (uint32_t p = 0; p < param_count(b, scope); p++) {
        struct part to = whole(b, param_node(b, scope, p));
        if (p < b->m->insts[inst].operand_count)
            forward(b, to, whole(b, hb_hlo_node_operand(b->f, node, p)));
        else
            define_all(b, to.node, 0, to.shape);
    }
    fill_scope(b, scope);
    forward(b, whole(b, node), whole(b, hb_hlo_scope_root(b->f, scope)));
}

/* ---- asynchronous pairs: start (operands, result, contexts), updates, done ---- */

static bool is_async_link(const struct builder *b, uint32_t node)
{
    enum hb_hlo_op op = hb_hlo_op_of(b->m, hb_hlo_node_inst(b->f, node));
    return op == HB_HLO_OP_ASYNC_START || op == HB_HLO_OP_ASYNC_UPDATE;
}

static uint32_t operand_count(const struct builder *b, uint32_t node)
{
    return b->m->insts[hb_hlo_node_inst(b->f, node)].operand_count;
}

/* The link before this one; HB_NONE at the start. */
static uint32_t async_before(const struct builder *b, uint32_t node)
{
    enum hb_hlo_op op = hb_hlo_op_of(b->m, hb_hlo_node_inst(b->f, node));
    if (op == HB_HLO_OP_ASYNC_START || !operand_count(b, node))
        return HB_NONE;
    uint32_t before = hb_hlo_node_operand(b->f, node, 0);
    return is_async_link(b, before) ? before : HB_NONE;
}

/* The nth operand bound by this link or an earlier one; HB_NONE: not bound yet. */
static uint32_t find_bound(const struct builder *b, uint32_t node, uint32_t nth)
{
    uint32_t chain[3] = {node, HB_NONE, HB_NONE};
    for (int i = 0; i < 2 && chain[i] != HB_NONE; i++)
        chain[i + 1] = async_before(b, chain[i]);
    for (int i = 2; i >= 0; i--) {
        if (chain[i] == HB_NONE)
            continue;
        uint32_t skip = async_before(b, chain[i]) != HB_NONE;
        uint32_t count = operand_count(b, chain[i]) - skip;
        if (nth < count)
            return hb_hlo_node_operand(b->f, chain[i], nth + skip);
        nth -= count;
    }
    return HB_NONE;
}

/* The scope wrapped by this chain, opened where its operands are all bound; HB_NONE: none. */
static uint32_t find_wrapped(struct builder *b, uint32_t node, bool last)
{
    uint32_t start = node;
    for (uint32_t at = node; at != HB_NONE; at = async_before(b, at)) {
        if (b->f->child_scope[at] != HB_NONE)
            return b->f->child_scope[at];
        start = at;
    }
    uint32_t inst = hb_hlo_node_inst(b->f, start);
    if (hb_hlo_op_of(b->m, inst) != HB_HLO_OP_ASYNC_START || !b->m->insts[inst].call_count)
        return HB_NONE;
    uint32_t comp = hb_hlo_called(b->m, inst, 0), params = b->m->comps[comp].param_count;
    if (!last && params && find_bound(b, node, params - 1) == HB_NONE)
        return HB_NONE;
    uint32_t scope = open_scope(b, comp, node, 0);
    for (uint32_t p = 0; p < params; p++) {
        struct part to = whole(b, param_node(b, scope, p));
        uint32_t bound = find_bound(b, node, p);
        if (bound != HB_NONE)
            forward(b, to, whole(b, bound));
        else
            define_all(b, to.node, 0, to.shape);
    }
    fill_scope(b, scope);
    return scope;
}

static void fill_async_operands(struct builder *b, struct part to, uint32_t node)
{
    define_slot(b, to.node, to.slot, to.shape);
    for (uint32_t i = 0; i < shape_at(b, to.shape)->child_count; i++) {
        struct part child;
        uint32_t bound = find_bound(b, node, i);
        if (!take_child(b, to, i, &child))
            continue;
        if (bound != HB_NONE)
            forward_arrays(b, child, whole(b, bound));
        else
            define_all(b, child.node, child.slot, child.shape);
    }
}

static void fill_async_link(struct builder *b, uint32_t node)
{
    struct part to = whole(b, node), child, from;
    uint32_t before = async_before(b, node), scope = find_wrapped(b, node, false);
    define_slot(b, node, 0, to.shape);
    for (uint32_t i = 0; take_child(b, to, i, &child); i++) {
        if (i == 0 && shape_at(b, child.shape)->type == HB_HLO_TUPLE)
            fill_async_operands(b, child, node);
        else if (i == 1 && scope != HB_NONE)
            forward_arrays(b, child, whole(b, hb_hlo_scope_root(b->f, scope)));
        else if (before != HB_NONE && take_child(b, whole(b, before), i, &from))
            forward_arrays(b, child, from);
        else
            define_all(b, node, child.slot, child.shape);
    }
}

static void fill_async_done(struct builder *b, uint32_t node)
{
    struct part to = whole(b, node), from;
    uint32_t before = operand_count(b, node) ? hb_hlo_node_operand(b->f, node, 0) : HB_NONE;
    if (before == HB_NONE) {
        define_all(b, node, 0, to.shape);
        return;
    }
    uint32_t scope = is_async_link(b, before) ? find_wrapped(b, node, true) : HB_NONE;
    if (scope != HB_NONE)
        b->f->scopes[scope].async_done = node;
    if (scope != HB_NONE && b->f->scopes[scope].caller == node)
        forward_arrays(b, to, whole(b, hb_hlo_scope_root(b->f, scope)));
    else if (take_child(b, whole(b, before), 1, &from))
        forward_arrays(b, to, from);
    else
        define_all(b, node, 0, to.shape);
}

/* ---- nodes ---- */

/* The operands' child where there are several: a tuple of them, or of the first for a
 * collective-permute-start, which makes no table. */
static void fill_operands(struct builder *b, uint32_t node, struct part child)
{
    struct part inner;
    uint32_t operands = operand_count(b, node);
    if (hb_hlo_op_of(b->m, hb_hlo_node_inst(b->f, node)) == HB_HLO_OP_COLLECTIVE_PERMUTE_START)
        *slot_at(b, node, child.slot) = *slot_at(b, hb_hlo_node_operand(b->f, node, 0), 0);
    else
        define_slot(b, node, child.slot, child.shape);
    for (uint32_t k = 0; take_child(b, child, k, &inner); k++)
        if (k < operands)
            forward_arrays(b, inner, whole(b, hb_hlo_node_operand(b->f, node, k)));
        else
            define_all(b, node, inner.slot, inner.shape);
}

/* Starts whose result tuple is (operand.., result.., contexts): XLA's own asynchronous ops. */
static void fill_start(struct builder *b, uint32_t node, uint32_t operand_child)
{
    struct part to = whole(b, node), child;
    uint32_t operands = operand_count(b, node);
    define_slot(b, node, 0, to.shape);
    for (uint32_t i = 0; take_child(b, to, i, &child); i++) {
        if (i != operand_child || !operands) {
            define_all(b, node, child.slot, child.shape);
        } else if (operands == 1 || shape_at(b, child.shape)->type != HB_HLO_TUPLE) {
            forward_arrays(b, child, whole(b, hb_hlo_node_operand(b->f, node, 0)));
        } else {
            fill_operands(b, node, child);
        }
    }
}

/* Dones that hand on one child of what their start returned. */
static void fill_done(struct builder *b, uint32_t node, uint32_t child)
{
    struct part from;
    if (operand_count(b, node) &&
        take_child(b, whole(b, hb_hlo_node_operand(b->f, node, 0)), child, &from))
        forward_arrays(b, whole(b, node), from);
    else
        define_all(b, node, 0, inst_shape(b, node));
}

static void fill_tuple(struct builder *b, uint32_t node)
{
    struct part to = whole(b, node), child;
    define_slot(b, node, 0, to.shape);
    for (uint32_t i = 0; take_child(b, to, i, &child); i++)
        forward(b, child, whole(b, hb_hlo_node_operand(b->f, node, i)));
}

static void fill_element(struct builder *b, uint32_t node)
{
    struct part from = whole(b, hb_hlo_node_operand(b->f, node, 0)), child = from;
    take_child(b, from, b->m->insts[hb_hlo_node_inst(b->f, node)].number, &child);
    forward(b, whole(b, node), child);
}

/* copy: its own table or array, children handed on. */
static void fill_copy(struct builder *b, uint32_t node)
{
    struct part to = whole(b, node), from = whole(b, hb_hlo_node_operand(b->f, node, 0)), into, of;
    define_slot(b, node, 0, to.shape);
    for (uint32_t i = 0; take_child(b, to, i, &into); i++) {
        if (take_child(b, from, i, &of))
            forward(b, into, of);
        else
            define_all(b, node, into.slot, into.shape);
    }
}

/* recv-done: ({0} of recv, a token). */
static void fill_recv_done(struct builder *b, uint32_t node)
{
    struct part to = whole(b, node), child, from;
    define_slot(b, node, 0, to.shape);
    for (uint32_t i = 0; take_child(b, to, i, &child); i++) {
        if (i == 0 && operand_count(b, node) &&
            take_child(b, whole(b, hb_hlo_node_operand(b->f, node, 0)), 0, &from))
            forward(b, child, from);
        else
            define_all(b, node, child.slot, child.shape);
    }
}

/* Before partitioning, marks of where a tensor is to lie are calls of nothing. */
static bool is_mark(const struct builder *b, uint32_t inst)
{
    struct hb_hlo_span target = {0};
    if (hb_hlo_op_of(b->m, inst) == HB_HLO_OP_CUSTOM_CALL && !b->m->scheduled &&
        b->m->insts[inst].operand_count == 1)
        target = hb_hlo_attr(b->m, inst, "custom_call_target");
    return target.at && hb_hlo_span_find(target, "Sharding") != NULL;
}

bool hb_hlo_starts_pair(const struct hb_hlo_module *m, uint32_t inst)
{
    const struct hb_hlo_shape *shape = &m->shapes.items[m->insts[inst].shape];
    uint32_t operands = m->insts[inst].operand_count;
    if (hb_hlo_op_of(m, inst) != HB_HLO_OP_ALL_REDUCE_START || !operands || shape->child_count != 2)
        return false;
    uint32_t given = m->insts[hb_hlo_operand(m, inst, 0)].shape;
    uint32_t first = hb_hlo_shape_child(&m->shapes, m->insts[inst].shape, 0);
    bool tuples = m->shapes.items[first].type == HB_HLO_TUPLE;
    return m->shapes.items[given].type != HB_HLO_TUPLE && tuples == (operands > 1);
}

/* What an all-reduce-done waits for. */
static bool is_done_of_pair(const struct builder *b, uint32_t inst)
{
    return b->m->insts[inst].operand_count &&
           hb_hlo_starts_pair(b->m, hb_hlo_operand(b->m, inst, 0));
}

static void fill_node(struct builder *b, uint32_t node)
{
    uint32_t inst = hb_hlo_node_inst(b->f, node);
    uint32_t scope = b->f->scope_of[node];
    enum hb_hlo_op op = hb_hlo_op_of(b->m, inst);
    if (op == HB_HLO_OP_PARAMETER) {
        if (b->f->scopes[scope].caller == HB_NONE) /* else its caller filled it */
            define_all(b, node, 0, inst_shape(b, node));
    } else if (op == HB_HLO_OP_GET_TUPLE_ELEMENT) {
        fill_element(b, node);
    } else if (op == HB_HLO_OP_TUPLE) {
        fill_tuple(b, node);
    } else if (op == HB_HLO_OP_BITCAST || op == HB_HLO_OP_OPT_BARRIER || op == HB_HLO_OP_DOMAIN ||
               op == HB_HLO_OP_ADD_DEPENDENCY || is_mark(b, inst) ||
               (op == HB_HLO_OP_ALL_REDUCE_DONE && operand_count(b, node) &&
                !is_done_of_pair(b, inst))) {
        forward(b, whole(b, node), whole(b, hb_hlo_node_operand(b->f, node, 0)));
    } else if (op == HB_HLO_OP_COPY) {
        fill_copy(b, node);
    } else if (op == HB_HLO_OP_WHILE) {
        fill_while(b, node);
    } else if (op == HB_HLO_OP_CONDITIONAL) {
        fill_conditional(b, node);
    } else if (op == HB_HLO_OP_CALL) {
        fill_call(b, node);
    } else if (op == HB_HLO_OP_ASYNC_START || op == HB_HLO_OP_ASYNC_UPDATE) {
        fill_async_link(b, node);
    } else if (op == HB_HLO_OP_ASYNC_DONE) {
        fill_async_done(b, node);
    } else if (op == HB_HLO_OP_COPY_START) {
        fill_start(b, node, 1);
    } else if (op == HB_HLO_OP_ALL_GATHER_START || op == HB_HLO_OP_COLLECTIVE_PERMUTE_START ||
               op == HB_HLO_OP_SEND || hb_hlo_starts_pair(b->m, inst)) {
        fill_start(b, node, 0);
    } else if (op == HB_HLO_OP_ALL_GATHER_DONE || op == HB_HLO_OP_COLLECTIVE_PERMUTE_DONE ||
               op == HB_HLO_OP_ALL_REDUCE_DONE) {
        fill_done(b, node, 1);
    } else if (op == HB_HLO_OP_COPY_DONE) {
        fill_done(b, node, 0);
    } else if (op == HB_HLO_OP_RECV_DONE) {
        fill_recv_done(b, node);
    } else {
        define_all(b, node, 0, inst_shape(b, node));
    }
}

static void fill_scope(struct builder *b, uint32_t scope)
{
    uint32_t first = b->f->scopes[scope].first_node;
    uint32_t count = b->m->comps[b->f->scopes[scope].comp].inst_count;
    for (uint32_t node = first; node < first + count; node++)
        fill_node(b, node);
}

/* ---- times: callees before their caller ---- */

static void time_scope(struct hb_hlo_flow *f, const uint32_t *order, uint32_t scope)
{
    struct hb_hlo_scope *at = &f->scopes[scope];
    const struct hb_hlo_comp *comp = &f->m->comps[at->comp];
    at->start = f->end_time;
    for (uint32_t i = 0; i < comp->inst_count; i++) {
        uint32_t inst = order ? order[comp->first_inst + i] : comp->first_inst + i;
        uint32_t node = at->first_node + (inst - comp->first_inst);
        for (uint32_t s = f->child_scope[node]; s != HB_NONE; s = f->scopes[s].next)
            time_scope(f, order, s);
        f->time[node] = f->end_time++;
    }
    at->end = f->end_time;
}

uint32_t hb_hlo_path_slot(const struct hb_hlo_shapes *shapes, uint32_t shape, const uint32_t *path,
                          uint32_t len)
{
    uint32_t slot = 0;
    for (uint32_t i = 0; i < len; i++) {
        if (path[i] >= shapes->items[shape].child_count)
            return HB_NONE;
        slot += hb_hlo_shape_child_slot(shapes, shape, path[i]);
        shape = hb_hlo_shape_child(shapes, shape, path[i]);
    }
    return slot;
}

bool hb_hlo_donation_slots(const struct hb_hlo_flow *f, const struct hb_hlo_donation *donation,
                           uint32_t *out_param, uint32_t *out_output)
{
    const struct hb_hlo_module *m = f->m;
    const struct hb_hlo_comp *entry = &m->comps[m->entry];
    if (donation->param >= entry->param_count)
        return false;
    uint32_t inst = m->params[entry->params_at + donation->param];
    uint32_t in = hb_hlo_path_slot(&m->shapes, m->insts[inst].shape, donation->param_path,
                                   donation->param_len);
    uint32_t out = hb_hlo_path_slot(&m->shapes, m->insts[entry->root].shape, donation->out_path,
                                    donation->out_len);
    if (in == HB_NONE || out == HB_NONE)
        return false;
    *out_param = f->first_slot[inst - entry->first_inst] + in;
    *out_output = f->first_slot[entry->root - entry->first_inst] + out;
    return true;
}

bool *hb_hlo_donated(struct hb_arena *arena, const struct hb_hlo_flow *f)
{
    bool *donated = hb_arena_alloc(arena, f->value_count, sizeof *donated);
    for (uint32_t d = 0; d < f->m->donation_count; d++) {
        uint32_t param, output;
        if (hb_hlo_donation_slots(f, &f->m->donations[d], &param, &output))
            donated[f->value_at[param]] = true;
    }
    return donated;
}

bool hb_hlo_flow_find(struct hb_arena *arena, struct hb_diag *diag, const struct hb_hlo_module *m,
                      const uint32_t *order, struct hb_hlo_flow *out_flow)
{
    struct hb_hlo_flow *f = out_flow;
    *f = (struct hb_hlo_flow){.m = m, .arena = arena};
    struct builder b = {.f = f, .m = m, .arena = arena};
    if (!check_sizes(&b, diag))
        return false;
    f->scope_of = hb_arena_alloc(arena, f->node_cap, sizeof *f->scope_of);
    f->child_scope = hb_arena_alloc(arena, f->node_cap, sizeof *f->child_scope);
    f->first_slot = hb_arena_alloc(arena, (size_t)f->node_cap + 1, sizeof *f->first_slot);
    f->time = hb_arena_alloc(arena, f->node_cap, sizeof *f->time);
    f->value_at = hb_arena_alloc(arena, f->value_cap, sizeof *f->value_at);
    f->value_cap = 0;
    fill_scope(&b, open_scope(&b, m->entry, HB_NONE, 0));
    replace_phis(&b);
    time_scope(f, order, 0);
    hb_hlo_order_nodes(f);
    return true;
}
