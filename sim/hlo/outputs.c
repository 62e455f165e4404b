/* What copy insertion does to the outputs of a module that is not scheduled yet
 * (xla/service/copy_insertion.cc, AddSpecialCaseCopies, AddCopiesForWhile): each output is a buffer
 * of its own, so a value that is returned twice, a constant, and a parameter that is returned
 * without being donated to that output, are copied, also where a loop began with them. A scheduled
 * module has these copies in its text. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "sim/hlo/reader.h"

struct source {
    uint32_t inst, slot;
};

/* From a tuple's slot to the element that it is, as far as tuples go. */
static struct source find_element(const struct hb_hlo_module *m, struct source at)
{
    while (hb_hlo_op_of(m, at.inst) == HB_HLO_OP_TUPLE && at.slot) {
        uint32_t shape = m->insts[at.inst].shape, child = m->insts[at.inst].operand_count;
        while (hb_hlo_shape_child_slot(&m->shapes, shape, --child) > at.slot)
            continue;
        at.slot -= hb_hlo_shape_child_slot(&m->shapes, shape, child);
        at.inst = hb_hlo_operand(m, at.inst, child);
    }
    return at;
}

static struct source find_source(const struct hb_hlo_module *m, uint32_t inst)
{
    struct source at = {inst, 0};
    for (;;) {
        enum hb_hlo_op op = hb_hlo_op_of(m, at.inst);
        if (op == HB_HLO_OP_WHILE) { /* in place, from what it began with */
            at = find_element(m, (struct source){hb_hlo_operand(m, at.inst, 0), at.slot});
            continue;
        }
        if (op != HB_HLO_OP_GET_TUPLE_ELEMENT && op != HB_HLO_OP_BITCAST)
            return at;
        uint32_t from = hb_hlo_operand(m, at.inst, 0);
        if (op == HB_HLO_OP_GET_TUPLE_ELEMENT)
            at.slot +=
                hb_hlo_shape_child_slot(&m->shapes, m->insts[from].shape, m->insts[at.inst].number);
        at.inst = from;
    }
}

/* Whether output i (HB_NONE: the only one) lies in that parameter. */
static bool is_donated(const struct hb_hlo_module *m, uint32_t param, uint32_t i)
{
    for (uint32_t d = 0; d < m->donation_count; d++) {
        const struct hb_hlo_donation *one = &m->donations[d];
        bool here = i == HB_NONE ? !one->out_len : one->out_len == 1 && one->out_path[0] == i;
        if (here && one->param == param)
            return true;
    }
    return false;
}

static bool is_array(const struct hb_hlo_module *m, uint32_t inst)
{
    return hb_hlo_shape_of(m, inst)->type != HB_HLO_TUPLE;
}

static bool wants_copy(const struct hb_hlo_module *m, struct source at, uint32_t i)
{
    const struct hb_hlo_inst *inst = &m->insts[at.inst];
    return inst->op == HB_HLO_OP_CONSTANT ||
           (inst->op == HB_HLO_OP_PARAMETER && !is_donated(m, inst->number, i));
}

/* Room for count instructions before `at`, which moves behind them. */
static void make_room(struct hb_hlo_module *m, uint32_t at, uint32_t count)
{
    struct hb_hlo_inst *insts = hb_arena_alloc(m->arena, m->inst_count + count, sizeof *insts);
    for (uint32_t i = 0; i < m->inst_count; i++) {
        uint32_t first = m->insts[i].args_at;
        uint32_t own = m->insts[i].operand_count + m->insts[i].pred_count;
        for (uint32_t a = first; a < first + own; a++)
            m->args[a] += m->args[a] >= at ? count : 0;
        insts[i >= at ? i + count : i] = m->insts[i];
    }
    for (uint32_t i = 0; i < m->param_count; i++)
        m->params[i] += m->params[i] >= at ? count : 0;
    for (uint32_t c = 0; c < m->comp_count; c++) {
        m->comps[c].first_inst += m->comps[c].first_inst > at ? count : 0;
        m->comps[c].root += m->comps[c].root >= at ? count : 0;
    }
    m->insts = insts;
    m->inst_cap = m->inst_count += count;
    m->comps[m->entry].inst_count += count;
}

static void write_inst(struct hb_hlo_module *m, uint32_t at, enum hb_hlo_op op, uint32_t from)
{
    m->insts[at] = m->insts[from]; /* its name and place in the text */
    m->insts[at].op = (uint8_t)op;
    m->insts[at].fusion = HB_HLO_NO_FUSION;
    m->insts[at].attrs_len = 0;
    m->insts[at].args_at = m->arg_count;
    m->insts[at].operand_count = 0;
    m->insts[at].pred_count = m->insts[at].call_count = 0;
    m->insts[at].number = 0;
}

static void write_operand(struct hb_hlo_module *m, uint32_t at, uint32_t operand)
{
    m->args = hb_grow(m->arena, m->args, m->arg_count, &m->arg_cap, sizeof *m->args);
    m->args[m->arg_count++] = operand;
    m->insts[at].operand_count++;
}

static void write_copy(struct hb_hlo_module *m, uint32_t at, uint32_t from)
{
    write_inst(m, at, HB_HLO_OP_COPY, from);
    write_operand(m, at, from);
}

/* Which operands of the root tuple are to be copied; returns how many. */
static uint32_t mark_operands(const struct hb_hlo_module *m, uint32_t root, bool *out_copied)
{
    uint32_t marks = 0, base = m->comps[m->entry].first_inst;
    uint32_t *seen = hb_arena_alloc(m->arena, m->comps[m->entry].inst_count, sizeof *seen);
    for (uint32_t i = 0; i < m->insts[root].operand_count; i++) {
        uint32_t operand = hb_hlo_operand(m, root, i);
        struct source at = find_source(m, operand);
        bool again = seen[operand - base]++ ||
                     (at.inst != operand && seen[at.inst - base] && is_array(m, at.inst));
        seen[at.inst - base] += at.inst != operand && is_array(m, at.inst);
        out_copied[i] = is_array(m, operand) && (again || wants_copy(m, at, i));
        marks += out_copied[i];
    }
    return marks;
}

/* A loop that is the root, as a tuple of what it returns; the entry's new root. */
static uint32_t spread_loop(struct hb_hlo_module *m, uint32_t loop)
{
    uint32_t shape = m->insts[loop].shape, count = hb_hlo_shape_of(m, loop)->child_count,
             root = loop + count + 1;
    if (hb_hlo_op_of(m, loop) != HB_HLO_OP_WHILE || !count ||
        count > UINT32_MAX / 4 - m->inst_count)
        return loop;
    make_room(m, loop + 1, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        write_inst(m, loop + 1 + i, HB_HLO_OP_GET_TUPLE_ELEMENT, loop);
        write_operand(m, loop + 1 + i, loop);
        m->insts[loop + 1 + i].number = i;
        m->insts[loop + 1 + i].shape = hb_hlo_shape_child(&m->shapes, shape, i);
    }
    write_inst(m, root, HB_HLO_OP_TUPLE, loop);
    for (uint32_t i = 0; i < count; i++)
        write_operand(m, root, loop + 1 + i);
    return m->comps[m->entry].root = root;
}

void hb_hlo_copy_outputs(struct hb_hlo_module *m)
{
    uint32_t root = spread_loop(m, m->comps[m->entry].root);
    if (hb_hlo_op_of(m, root) == HB_HLO_OP_TUPLE) {
        uint32_t operands = m->insts[root].operand_count;
        bool *copied = hb_arena_alloc(m->arena, operands + 1, sizeof *copied);
        uint32_t count = mark_operands(m, root, copied), at = root;
        if (!count || count > UINT32_MAX / 4 - m->inst_count)
            return;
        make_room(m, root, count);
        root += count;
        for (uint32_t i = 0; i < operands; i++)
            if (copied[i]) {
                write_copy(m, at, hb_hlo_operand(m, root, i));
                m->args[m->insts[root].args_at + i] = at++;
            }
    } else if (is_array(m, root) && wants_copy(m, find_source(m, root), HB_NONE)) {
        make_room(m, root + 1, 1);
        write_copy(m, root + 1, root);
        m->comps[m->entry].root = root + 1;
    }
}
