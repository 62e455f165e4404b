/* Instructions: `[ROOT] name = [shape] operation(operands), attributes`, over as many lines as it
 * takes. An operand is a name, with or without its shape, or an operation of its own, without
 * attributes (hlo_parser.cc: ParseInstructionRhs, ParseOperands).
 *
 * Names are found by a hash table that holds one computation at a time: an entry of an earlier
 * computation counts as empty, so nothing is ever cleared. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "sim/hlo/reader.h"

enum { MAX_NAME = UINT16_MAX, MAX_DEPTH = 64 };

/* ---- names of the computation that is being read ---- */

static uint32_t *find_name(struct hb_hlo_reader *r, struct hb_hlo_span name)
{
    const struct hb_hlo_module *m = r->m;
    uint32_t mask = r->name_cap - 1, comp = m->comp_count - 1;
    for (uint32_t i = hb_hlo_hash_name(name) & mask;; i = (i + 1) & mask) {
        uint32_t at = r->names[i];
        if (!at || m->insts[at - 1].comp != comp ||
            hb_hlo_same_text(hb_hlo_name_of(m, at - 1), name))
            return &r->names[i];
    }
}

static bool is_known(const struct hb_hlo_reader *r, const uint32_t *slot)
{
    return *slot && r->m->insts[*slot - 1].comp == r->m->comp_count - 1;
}

/* Operations among operands have no name; what stands for it is their word. */
static bool is_named(const struct hb_hlo_module *m, uint32_t inst)
{
    struct hb_hlo_span name = hb_hlo_name_of(m, inst);
    struct hb_hlo_lex lex = {name.at + name.len, m->text.bytes + m->text.len};
    return hb_hlo_take(&lex, '=');
}

static void grow_names(struct hb_hlo_reader *r)
{
    const struct hb_hlo_comp *comp = &r->m->comps[r->m->comp_count - 1];
    r->name_cap = r->name_cap ? r->name_cap * 2 : 256;
    r->names = hb_arena_alloc(r->m->arena, r->name_cap, sizeof *r->names);
    for (uint32_t i = comp->first_inst; i < comp->first_inst + comp->inst_count; i++)
        if (is_named(r->m, i))
            *find_name(r, hb_hlo_name_of(r->m, i)) = i + 1;
}

void hb_hlo_begin_names(struct hb_hlo_reader *r)
{
    if (!r->name_cap)
        grow_names(r);
}

static void add_arg(struct hb_hlo_module *m, uint32_t arg)
{
    m->args = hb_grow(m->arena, m->args, m->arg_count, &m->arg_cap, sizeof *m->args);
    m->args[m->arg_count++] = arg;
}

/* ---- operands ---- */

/* What is known of an instruction before its right-hand side. */
struct left {
    struct hb_hlo_span name; /* empty: an operation among operands */
    int depth;
    bool root;
};

static bool read_right(struct hb_hlo_reader *r, struct left left);

static void push_operand(struct hb_hlo_reader *r, uint32_t inst)
{
    r->stack = hb_grow(r->m->arena, r->stack, r->stack_count, &r->stack_cap, sizeof *r->stack);
    r->stack[r->stack_count++] = inst;
}

/* Adds an instruction; one with a name can be found by it. */
static bool add_inst(struct hb_hlo_reader *r, struct hb_hlo_inst inst, struct hb_hlo_span name)
{
    struct hb_hlo_module *m = r->m;
    struct hb_hlo_comp *comp = &m->comps[m->comp_count - 1];
    if (m->inst_count == UINT32_MAX / 4)
        return hb_hlo_fail(r, m->text.bytes + inst.name_at, "too many instructions");
    m->insts = hb_grow(m->arena, m->insts, m->inst_count, &m->inst_cap, sizeof inst);
    m->insts[m->inst_count++] = inst;
    comp->inst_count++;
    if (comp->inst_count * 2 > r->name_cap) {
        grow_names(r);
        return true;
    }
    if (!name.len)
        return true;
    uint32_t *slot = find_name(r, name);
    if (is_known(r, slot))
        return hb_error(r->diag, hb_hlo_place(r, name.at),
                        "'%.*s' is defined twice in this computation", hb_hlo_shown(name), name.at);
    *slot = m->inst_count;
    return true;
}

/* `#1#0` behind an operand: elements of its tuple, each an instruction of its own. */
static bool read_elements(struct hb_hlo_reader *r, struct hb_hlo_span name, uint32_t *inst)
{
    struct hb_hlo_module *m = r->m;
    while (hb_hlo_take(&r->lex, '#')) {
        int64_t index;
        const char *at = r->lex.at;
        const struct hb_hlo_shape *from = hb_hlo_shape_of(m, *inst);
        if (!hb_hlo_take_int(&r->lex, &index) || index >= (int64_t)from->child_count)
            return hb_hlo_fail(r, at, "index beyond the operand's tuple");
        struct hb_hlo_inst element = {
            .name_at = (uint32_t)(name.at - m->text.bytes),
            .name_len = (uint16_t)name.len,
            .attrs_at = (uint32_t)(r->lex.at - m->text.bytes),
            .shape = hb_hlo_shape_child(&m->shapes, m->insts[*inst].shape, (uint32_t)index),
            .comp = m->comp_count - 1,
            .args_at = m->arg_count,
            .operand_count = 1,
            .number = (uint32_t)index,
            .op = HB_HLO_OP_GET_TUPLE_ELEMENT,
        };
        add_arg(m, *inst);
        if (!add_inst(r, element, (struct hb_hlo_span){0}))
            return false;
        *inst = m->inst_count - 1;
    }
    return true;
}

static bool push_named(struct hb_hlo_reader *r, struct hb_hlo_span name)
{
    uint32_t *slot = find_name(r, name);
    bool known = name.len && is_known(r, slot);
    if (!known && name.len && name.at + name.len < r->lex.end && name.at[name.len] == '[')
        return hb_error(r->diag, hb_hlo_place(r, name.at),
                        "an operand is a shape without a name: which value is meant is not told");
    if (!known)
        return hb_error(r->diag, hb_hlo_place(r, name.len ? name.at : r->lex.at),
                        "operand '%.*s' is not defined above in this computation",
                        hb_hlo_shown(name), name.len ? name.at : "");
    uint32_t inst = *slot - 1;
    if (r->lex.at < r->lex.end && *r->lex.at == '#' && !read_elements(r, name, &inst))
        return false;
    push_operand(r, inst);
    return true;
}

/* An operation among the operands, from where its shape or its word begins. */
static bool push_nested(struct hb_hlo_reader *r, const char *first, int depth)
{
    if (depth >= MAX_DEPTH)
        return hb_hlo_fail(r, first, "operations within operands deeper than 64");
    r->lex.at = first;
    if (!read_right(r, (struct left){.depth = depth + 1}))
        return false;
    push_operand(r, r->m->inst_count - 1);
    return true;
}

/* Whether a shape stands here: brackets of a tuple, a word and square ones, or `b(`. */
static bool is_shape(struct hb_hlo_lex lex)
{
    if (lex.at < lex.end && *lex.at == '(')
        return true;
    struct hb_hlo_span word = hb_hlo_take_name(&lex);
    hb_hlo_skip_blanks(&lex);
    return word.len && lex.at < lex.end &&
           (*lex.at == '[' || (*lex.at == '(' && hb_hlo_span_is(word, "b")));
}

/* What the only instruction of a text reads does not stand above it: `f32[8]` and `f32[8] %a` are
 * parameters then (hlo_parser.cc: create_missing_instruction_). False: neither is here. */
static bool take_missing(struct hb_hlo_reader *r)
{
    struct hb_hlo_module *m = r->m;
    struct hb_hlo_lex lex = r->lex;
    struct hb_hlo_inst param = {.comp = m->comp_count - 1, .op = HB_HLO_OP_PARAMETER};
    if (!is_shape(lex) || !hb_hlo_shape_read(&m->shapes, &lex, &param.shape) ||
        m->shapes.items[param.shape].huge)
        return false;
    hb_hlo_skip_space(&lex);
    struct hb_hlo_span name = hb_hlo_take_name(&lex);
    hb_hlo_skip_space(&lex);
    bool ends = lex.at < lex.end && (*lex.at == ',' || *lex.at == ')');
    if (!ends || name.len > MAX_NAME || (name.len && is_known(r, find_name(r, name))))
        return false;
    param.name_at = (uint32_t)((name.len ? name.at : r->lex.at) - m->text.bytes);
    param.name_len = (uint16_t)name.len;
    param.attrs_at = (uint32_t)(lex.at - m->text.bytes);
    param.args_at = m->arg_count;
    param.number = r->missing++;
    r->lex = lex;
    push_operand(r, m->inst_count);
    return add_inst(r, param, name);
}

/* `%a`, `f32[8]{0} %a`, a comment and `a`, `%t#1`, `f32[8] negate(%a)`: the last word before the
 * comma is the name. */
static bool read_operand(struct hb_hlo_reader *r, int depth)
{
    struct hb_hlo_lex *lex = &r->lex;
    struct hb_hlo_span name = {0};
    hb_hlo_skip_space(lex);
    if (r->single && take_missing(r))
        return true;
    const char *first = lex->at;
    if (lex->at < lex->end && *lex->at == '(' && !hb_hlo_skip_brackets(lex))
        return hb_hlo_fail(r, lex->end, "a bracket stays open");
    for (;;) {
        hb_hlo_skip_space(lex);
        if (lex->at >= lex->end)
            return hb_hlo_fail(r, lex->at, "the operands are not closed");
        if (*lex->at == ',' || *lex->at == ')' || (*lex->at == '#' && name.len))
            break;
        if (*lex->at == '(' && name.len && !hb_hlo_span_is(name, "b"))
            return push_nested(r, first, depth);
        if (*lex->at == '[' || *lex->at == '{' || (*lex->at == '(' && name.len)) {
            if (!hb_hlo_skip_brackets(lex))
                return hb_hlo_fail(r, lex->end, "a bracket stays open");
            continue;
        }
        name = hb_hlo_take_name(lex);
        if (!name.len)
            return hb_hlo_fail(r, lex->at, "an operand is wanted here, as in add(%x, %y)");
    }
    return push_named(r, name);
}

static bool read_operands(struct hb_hlo_reader *r, struct hb_hlo_inst *inst, int depth)
{
    const char *open = r->lex.at - 1;
    hb_hlo_skip_space(&r->lex);
    if (inst->op == HB_HLO_OP_CONSTANT) { /* a literal: its value is of no interest */
        r->lex.at = open;
        return hb_hlo_skip_brackets(&r->lex) ||
               hb_hlo_fail(r, r->lex.end, "the constant is not closed");
    }
    if (inst->op == HB_HLO_OP_PARAMETER) {
        int64_t number;
        const char *at = r->lex.at;
        if (!hb_hlo_take_int(&r->lex, &number) || number >= INT32_MAX || !hb_hlo_take(&r->lex, ')'))
            return hb_hlo_fail(r, at, "a parameter number is wanted here, as in parameter(0)");
        inst->number = (uint32_t)number;
        return true;
    }
    if (hb_hlo_take(&r->lex, ')'))
        return true;
    do {
        if (!read_operand(r, depth))
            return false;
        inst->operand_count++;
    } while (hb_hlo_take(&r->lex, ','));
    return hb_hlo_take(&r->lex, ')') || hb_hlo_fail(r, r->lex.at, "')' is wanted here");
}

/* From the stack of open operands into args, in one piece. */
static void take_operands(struct hb_hlo_reader *r, struct hb_hlo_inst *inst)
{
    inst->args_at = r->m->arg_count;
    r->stack_count -= inst->operand_count;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        add_arg(r->m, r->stack[r->stack_count + i]);
}

/* ---- attributes that every reader of the module needs ---- */

struct attrs {
    struct hb_hlo_span preds;
    struct hb_hlo_span called[2]; /* condition, body; true, false; or the only list */
    struct hb_hlo_span index;
    struct hb_hlo_span kind;
};

static void note_attr(struct attrs *a, struct hb_hlo_span key, struct hb_hlo_span value)
{
#define ROW(word, field)                                                                           \
    {                                                                                              \
        word, sizeof word - 1, offsetof(struct attrs, field)                                       \
    }
    static const struct {
        const char *key;
        size_t len;
        size_t offset;
    } rows[] = {
        ROW("calls", called[0]),
        ROW("to_apply", called[0]),
        ROW("condition", called[0]),
        ROW("body", called[1]),
        ROW("branch_computations", called[0]),
        ROW("true_computation", called[0]),
        ROW("false_computation", called[1]),
        ROW("called_computations", called[0]),
        ROW("select", called[0]),
        ROW("scatter", called[1]),
        ROW("control-predecessors", preds),
        ROW("index", index),
        ROW("kind", kind),
    };
#undef ROW
    if (!strchr("ctbfsik", *key.at))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (key.len == rows[i].len && memcmp(key.at, rows[i].key, key.len) == 0) {
            memcpy((char *)a + rows[i].offset, &value, sizeof value);
            return;
        }
}

/* A computation that is not there yet, or one written in braces where its name might stand. */
static void add_pending(struct hb_hlo_reader *r, struct hb_hlo_inst *inst, struct hb_hlo_span text,
                        bool body)
{
    struct hb_hlo_pending one = {
        .arg = r->m->arg_count, .comp = HB_NONE, .text = text, .body = body};
    r->pending = hb_grow(r->m->arena, r->pending, r->pending_count, &r->pending_cap, sizeof one);
    r->pending[r->pending_count++] = one;
    add_arg(r->m, HB_NONE);
    inst->call_count++;
}

/* Whether a brace opens a computation and no list of names. */
static bool is_body(struct hb_hlo_lex lex)
{
    if (!hb_hlo_take(&lex, '{'))
        return false;
    hb_hlo_skip_space(&lex);
    struct hb_hlo_span name = hb_hlo_take_name(&lex);
    hb_hlo_skip_space(&lex);
    if (hb_hlo_span_is(name, "ROOT")) {
        name = hb_hlo_take_name(&lex);
        hb_hlo_skip_space(&lex);
    }
    return name.len && lex.at < lex.end && *lex.at == '=';
}

static bool read_call(struct hb_hlo_reader *r, struct hb_hlo_inst *inst, struct hb_hlo_lex *lex)
{
    hb_hlo_skip_space(lex);
    const char *at = lex->at;
    if (inst->call_count == UINT16_MAX)
        return hb_hlo_fail(r, at, "more than 65535 called computations");
    if (is_body(*lex)) {
        hb_hlo_skip_brackets(lex);
        add_pending(r, inst, (struct hb_hlo_span){at, (size_t)(lex->at - at)}, true);
        return true;
    }
    struct hb_hlo_span name = hb_hlo_take_name(lex);
    if (!name.len)
        return hb_hlo_fail(r, at, "a computation's name is wanted here, as in calls=%f");
    uint32_t comp = *hb_hlo_find_comp(r, name);
    if (!comp || comp == r->m->comp_count) {
        add_pending(r, inst, name, false);
        return true;
    }
    add_arg(r->m, comp - 1);
    inst->call_count++;
    return true;
}

/* A name, or several in braces; a computation in braces for a name. */
static bool read_called(struct hb_hlo_reader *r, struct hb_hlo_inst *inst,
                        struct hb_hlo_span called)
{
    struct hb_hlo_lex lex = hb_hlo_lex_span(called);
    if (!called.at)
        return true;
    if (is_body(lex) || !hb_hlo_take(&lex, '{'))
        return read_call(r, inst, &lex);
    while (!hb_hlo_take(&lex, '}')) {
        if (!read_call(r, inst, &lex))
            return false;
        hb_hlo_take(&lex, ',');
    }
    return true;
}

static bool read_preds(struct hb_hlo_reader *r, struct hb_hlo_inst *inst, struct hb_hlo_span preds)
{
    struct hb_hlo_lex lex = hb_hlo_lex_span(preds);
    if (!preds.at)
        return true;
    hb_hlo_take(&lex, '{');
    while (!hb_hlo_take(&lex, '}')) {
        hb_hlo_skip_space(&lex);
        const char *at = lex.at;
        struct hb_hlo_span name = hb_hlo_take_name(&lex);
        uint32_t *slot = find_name(r, name);
        if (!name.len || !is_known(r, slot))
            return hb_hlo_fail(r, at, "this control predecessor is not defined above");
        if (inst->pred_count == UINT16_MAX)
            return hb_hlo_fail(r, at, "more than 65535 control predecessors");
        add_arg(r->m, *slot - 1);
        inst->pred_count++;
        hb_hlo_take(&lex, ',');
    }
    return true;
}

static enum hb_hlo_fusion find_fusion(struct hb_hlo_span kind)
{
    static const char *const names[] = {[HB_HLO_LOOP] = "kLoop",
                                        [HB_HLO_INPUT] = "kInput",
                                        [HB_HLO_OUTPUT] = "kOutput",
                                        [HB_HLO_CUSTOM] = "kCustom"};
    for (int i = HB_HLO_LOOP; i <= HB_HLO_CUSTOM; i++)
        if (kind.at && hb_hlo_span_is(kind, names[i]))
            return (enum hb_hlo_fusion)i;
    return HB_HLO_NO_FUSION;
}

/* `, key=value` as often as it comes; behind the last one. */
static bool list_attrs(struct hb_hlo_reader *r, struct hb_hlo_inst *inst, struct attrs *attrs)
{
    const char *first = r->lex.at, *last = first;
    inst->attrs_at = (uint32_t)(first - r->m->text.bytes);
    while (hb_hlo_take(&r->lex, ',')) {
        struct hb_hlo_span key, value;
        const char *at = r->lex.at;
        if (!hb_hlo_take_attr(&r->lex, &key, &value))
            return hb_hlo_fail(r, r->lex.at >= r->lex.end ? r->lex.end : at,
                               "an attribute is wanted here, as in key=value");
        note_attr(attrs, key, value);
        last = r->lex.at;
    }
    inst->attrs_len = (uint32_t)(last - first);
    return true;
}

static bool read_attrs(struct hb_hlo_reader *r, struct hb_hlo_inst *inst, bool nested)
{
    struct attrs attrs = {.index = {0}};
    const char *first = r->lex.at;
    inst->attrs_at = (uint32_t)(first - r->m->text.bytes);
    if (!nested && !list_attrs(r, inst, &attrs)) /* a comma behind a nested one is its user's */
        return false;
    inst->fusion = (uint8_t)find_fusion(attrs.kind);
    int64_t index = 0;
    if (inst->op == HB_HLO_OP_GET_TUPLE_ELEMENT) {
        struct hb_hlo_lex lex = hb_hlo_lex_span(attrs.index);
        if (!attrs.index.at || !hb_hlo_take_int(&lex, &index) || index >= INT32_MAX)
            return hb_hlo_fail(r, first, "get-tuple-element wants an index=number");
        inst->number = (uint32_t)index;
    }
    return read_preds(r, inst, attrs.preds) && read_called(r, inst, attrs.called[0]) &&
           read_called(r, inst, attrs.called[1]);
}

/* ---- instructions ---- */

static enum hb_hlo_op find_op(struct hb_hlo_reader *r, struct hb_hlo_span name)
{
    uint32_t i = hb_hlo_hash_name(name) % HB_HLO_OP_CACHE;
    if (!r->op_cache[i].name.at || !hb_hlo_same_text(r->op_cache[i].name, name)) {
        r->op_cache[i].name = name;
        r->op_cache[i].op = hb_hlo_op_find(name);
    }
    return r->op_cache[i].op;
}

/* What the rest of the program relies on without asking again. */
static bool check_inst(struct hb_hlo_reader *r, const struct hb_hlo_inst *inst, const char *at)
{
    const struct hb_hlo_module *m = r->m;
    const struct hb_hlo_shape *shape = &m->shapes.items[inst->shape];
    static const enum hb_hlo_op unary[] = {
        HB_HLO_OP_GET_TUPLE_ELEMENT, HB_HLO_OP_BITCAST,     HB_HLO_OP_COPY,  HB_HLO_OP_COPY_START,
        HB_HLO_OP_COPY_DONE,         HB_HLO_OP_OPT_BARRIER, HB_HLO_OP_WHILE, HB_HLO_OP_DOMAIN,
        HB_HLO_OP_ADD_DEPENDENCY};
    for (size_t i = 0; !inst->operand_count && i < sizeof unary / sizeof *unary; i++)
        if (inst->op == unary[i])
            return hb_hlo_fail(r, at, "this operation wants an operand");
    if (inst->op == HB_HLO_OP_GET_TUPLE_ELEMENT) {
        const struct hb_hlo_shape *from = hb_hlo_shape_of(m, m->args[inst->args_at]);
        if (inst->number >= from->child_count)
            return hb_hlo_fail(r, at, "index beyond the operand's tuple");
    }
    if (inst->op == HB_HLO_OP_TUPLE &&
        (shape->type != HB_HLO_TUPLE || shape->child_count != inst->operand_count))
        return hb_hlo_fail(r, at, "a tuple's shape has as many elements as it has operands");
    if (inst->op == HB_HLO_OP_WHILE && inst->call_count != 2)
        return hb_hlo_fail(r, at, "while wants condition= and body=");
    if (inst->op == HB_HLO_OP_CONDITIONAL && inst->operand_count != inst->call_count + 1u)
        return hb_hlo_fail(r, at,
                           "conditional wants one operand for each branch, and the selector");
    if ((inst->op == HB_HLO_OP_CALL || inst->op == HB_HLO_OP_FUSION) && inst->call_count != 1)
        return hb_hlo_fail(r, at, "a call or fusion wants one computation");
    return true;
}

static bool read_shape(struct hb_hlo_reader *r, struct hb_hlo_inst *inst, bool *out_given)
{
    struct hb_hlo_lex *lex = &r->lex;
    hb_hlo_skip_space(lex);
    const char *at = lex->at;
    *out_given = is_shape(*lex);
    if (!*out_given)
        return true;
    if (!hb_hlo_shape_read(&r->m->shapes, lex, &inst->shape))
        return hb_hlo_fail(r, lex->at >= lex->end ? lex->end : at,
                           "a shape is wanted here, as in f32[8,128]{1,0}");
    if (r->m->shapes.items[inst->shape].huge)
        return hb_hlo_fail(r, at, "this shape takes 2^60 bytes or more, which no device has");
    return true;
}

/* `[shape] operation(operands), attributes`. */
static bool read_right(struct hb_hlo_reader *r, struct left left)
{
    struct hb_hlo_module *m = r->m;
    struct hb_hlo_lex *lex = &r->lex;
    struct hb_hlo_inst inst = {.comp = m->comp_count - 1};
    bool given;
    if (!read_shape(r, &inst, &given))
        return false;
    hb_hlo_skip_space(lex);
    const char *op_at = lex->at;
    struct hb_hlo_span op = hb_hlo_take_name(lex);
    if (!op.len || !hb_hlo_take(lex, '('))
        return hb_hlo_fail(r, lex->at >= lex->end ? lex->end : op_at,
                           "an operation is wanted here, as in f32[8] add(%a, %b)");
    struct hb_hlo_span name = left.name.len ? left.name : op;
    inst.op = (uint8_t)find_op(r, op);
    if (inst.op == HB_HLO_OP_UNKNOWN)
        return hb_error(r->diag, hb_hlo_place(r, op_at), "HLO has no operation '%.*s'",
                        hb_hlo_shown(op), op.at);
    inst.name_at = (uint32_t)(name.at - m->text.bytes);
    inst.name_len = (uint16_t)name.len;
    if (!read_operands(r, &inst, left.depth))
        return false;
    take_operands(r, &inst);
    if (!read_attrs(r, &inst, left.depth > 0) ||
        (!given && !hb_hlo_infer(r, &inst, op_at, &inst.shape)) || !check_inst(r, &inst, op_at))
        return false;
    if (left.root) {
        if (m->comps[inst.comp].root != HB_NONE)
            return hb_hlo_fail(r, left.name.at, "a computation has one ROOT");
        m->comps[inst.comp].root = m->inst_count;
    }
    return add_inst(r, inst, left.name);
}

bool hb_hlo_read_inst(struct hb_hlo_reader *r)
{
    struct hb_hlo_lex *lex = &r->lex;
    const char *first = lex->at;
    struct left left = {.name = hb_hlo_take_name(lex)};
    left.root = *first != '%' && hb_hlo_span_is(left.name, "ROOT");
    if (left.root) {
        hb_hlo_skip_space(lex);
        first = lex->at;
        left.name = hb_hlo_take_name(lex);
    }
    if (!left.name.len || !hb_hlo_take(lex, '='))
        return hb_hlo_fail(r, lex->at >= lex->end ? lex->end : first,
                           "an instruction is wanted here, as in %x = f32[8]{0} add(%a, %b)");
    if (left.name.len > MAX_NAME)
        return hb_hlo_fail(r, left.name.at, "a name longer than 65535 bytes");
    return read_right(r, left);
}

bool hb_hlo_read_single(struct hb_hlo_reader *r, bool named)
{
    r->single = true;
    bool ok = named ? hb_hlo_read_inst(r) : read_right(r, (struct left){0});
    r->single = false;
    return ok;
}
