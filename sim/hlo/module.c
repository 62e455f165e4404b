/* One pass over the text. Names are found by a hash table that holds one computation at a time:
 * an entry of an earlier computation counts as empty, so nothing is ever cleared. Computations
 * stand above those that call them, as in XLA's own parser, so calls cannot go in circles. */
#include "sim/hlo/module.h"

#include <string.h>

#include "base/arena.h"
#include "base/str.h"

enum { OP_CACHE = 1024, MAX_NAME = UINT16_MAX };

struct reader {
    struct hb_hlo_module *m;
    struct hb_diag *diag;
    struct hb_hlo_lex lex;
    uint32_t *names; /* hash table: instruction + 1 */
    uint32_t name_cap;
    uint32_t *comp_names; /* hash table: computation + 1 */
    uint32_t comp_name_cap;
    bool has_entry;
    struct {
        struct hb_hlo_span name;
        enum hb_hlo_op op;
    } op_cache[OP_CACHE];
};

static struct hb_loc place(const struct reader *r, const char *at)
{
    return hb_hlo_text_loc(&r->m->text, at);
}

/* How much of the text a message shows. */
static int shown(struct hb_hlo_span span)
{
    enum { MOST = 60 };
    return span.len < MOST ? (int)span.len : MOST;
}

static bool fail_at(struct reader *r, const char *at, const char *what)
{
    if (at >= r->lex.end)
        return hb_error(r->diag, place(r, r->lex.end), "the file ends too early: %s", what);
    return hb_error(r->diag, place(r, at), "%s", what);
}

static uint32_t hash_name(struct hb_hlo_span name)
{
    uint64_t hash = 0x9e3779b97f4a7c15u ^ name.len;
    size_t i = 0;
    for (; i + 8 <= name.len; i += 8) {
        uint64_t eight;
        memcpy(&eight, name.at + i, sizeof eight);
        hash = (hash ^ eight) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    for (; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.at[i]) * 1099511628211u;
    return (uint32_t)(hash ^ hash >> 31);
}

static bool same_text(struct hb_hlo_span a, struct hb_hlo_span b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

/* ---- names of the computation that is being read ---- */

static uint32_t *find_name(struct reader *r, struct hb_hlo_span name)
{
    const struct hb_hlo_module *m = r->m;
    uint32_t mask = r->name_cap - 1, comp = m->comp_count - 1;
    for (uint32_t i = hash_name(name) & mask;; i = (i + 1) & mask) {
        uint32_t at = r->names[i];
        if (!at || m->insts[at - 1].comp != comp || same_text(hb_hlo_name_of(m, at - 1), name))
            return &r->names[i];
    }
}

static bool is_known(const struct reader *r, const uint32_t *slot)
{
    return *slot && r->m->insts[*slot - 1].comp == r->m->comp_count - 1;
}

static void grow_names(struct reader *r)
{
    const struct hb_hlo_comp *comp = &r->m->comps[r->m->comp_count - 1];
    r->name_cap = r->name_cap ? r->name_cap * 2 : 256;
    r->names = hb_arena_alloc(r->m->arena, r->name_cap, sizeof *r->names);
    for (uint32_t i = 0; i < comp->inst_count; i++)
        *find_name(r, hb_hlo_name_of(r->m, comp->first_inst + i)) = comp->first_inst + i + 1;
}

static void add_arg(struct hb_hlo_module *m, uint32_t arg)
{
    m->args = hb_grow(m->arena, m->args, m->arg_count, &m->arg_cap, sizeof *m->args);
    m->args[m->arg_count++] = arg;
}

/* ---- operands ---- */

/* `%a`, `f32[8]{0} %a`, `/+index=5+/%a` or `a`: the last word before the comma is the name. */
static bool read_operand(struct reader *r)
{
    struct hb_hlo_lex *lex = &r->lex;
    struct hb_hlo_span name = {0};
    hb_hlo_skip_space(lex);
    if (lex->at < lex->end && *lex->at == '(' && !hb_hlo_skip_brackets(lex))
        return fail_at(r, lex->end, "a bracket stays open");
    for (;;) {
        hb_hlo_skip_space(lex);
        if (lex->at >= lex->end)
            return fail_at(r, lex->at, "the operands are not closed");
        if (*lex->at == ',' || *lex->at == ')')
            break;
        name = hb_hlo_take_name(lex);
        if (lex->at < lex->end && (*lex->at == '[' || *lex->at == '{')) {
            if (!hb_hlo_skip_brackets(lex))
                return fail_at(r, lex->end, "a bracket stays open");
        } else if (!name.len) {
            return fail_at(r, lex->at, "an operand is wanted here, as in add(%x, %y)");
        }
    }
    uint32_t *slot = find_name(r, name);
    if (!name.len || !is_known(r, slot))
        return hb_error(r->diag, place(r, name.len ? name.at : lex->at),
                        "operand '%.*s' is not defined above in this computation", shown(name),
                        name.len ? name.at : "");
    add_arg(r->m, *slot - 1);
    return true;
}

static bool read_operands(struct reader *r, struct hb_hlo_inst *inst)
{
    const char *open = r->lex.at - 1;
    hb_hlo_skip_space(&r->lex);
    if (inst->op == HB_HLO_OP_CONSTANT) { /* a literal: its value is of no interest */
        r->lex.at = open;
        return hb_hlo_skip_brackets(&r->lex) ||
               fail_at(r, r->lex.end, "the constant is not closed");
    }
    if (inst->op == HB_HLO_OP_PARAMETER) {
        int64_t number;
        const char *at = r->lex.at;
        if (!hb_hlo_take_int(&r->lex, &number) || number >= INT32_MAX || !hb_hlo_take(&r->lex, ')'))
            return fail_at(r, at, "a parameter number is wanted here, as in parameter(0)");
        inst->number = (uint32_t)number;
        return true;
    }
    if (hb_hlo_take(&r->lex, ')'))
        return true;
    do {
        if (!read_operand(r))
            return false;
        inst->operand_count++;
    } while (hb_hlo_take(&r->lex, ','));
    return hb_hlo_take(&r->lex, ')') || fail_at(r, r->lex.at, "')' is wanted here");
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
    static const struct {
        const char *key;
        size_t offset;
    } rows[] = {
        {"calls", offsetof(struct attrs, called[0])},
        {"to_apply", offsetof(struct attrs, called[0])},
        {"condition", offsetof(struct attrs, called[0])},
        {"body", offsetof(struct attrs, called[1])},
        {"branch_computations", offsetof(struct attrs, called[0])},
        {"true_computation", offsetof(struct attrs, called[0])},
        {"false_computation", offsetof(struct attrs, called[1])},
        {"called_computations", offsetof(struct attrs, called[0])},
        {"select", offsetof(struct attrs, called[0])},
        {"scatter", offsetof(struct attrs, called[1])},
        {"control-predecessors", offsetof(struct attrs, preds)},
        {"index", offsetof(struct attrs, index)},
        {"kind", offsetof(struct attrs, kind)},
    };
    if (!strchr("ctbfsik", *key.at))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (hb_hlo_span_is(key, rows[i].key)) {
            memcpy((char *)a + rows[i].offset, &value, sizeof value);
            return;
        }
}

static bool read_preds(struct reader *r, struct hb_hlo_inst *inst, struct hb_hlo_span preds)
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
            return fail_at(r, at, "this control predecessor is not defined above");
        if (inst->pred_count == UINT16_MAX)
            return fail_at(r, at, "more than 65535 control predecessors");
        add_arg(r->m, *slot - 1);
        inst->pred_count++;
        hb_hlo_take(&lex, ',');
    }
    return true;
}

static uint32_t *find_comp(struct reader *r, struct hb_hlo_span name)
{
    uint32_t mask = r->comp_name_cap - 1;
    for (uint32_t i = hash_name(name) & mask;; i = (i + 1) & mask) {
        uint32_t at = r->comp_names[i];
        if (!at || same_text(r->m->comps[at - 1].name, name))
            return &r->comp_names[i];
    }
}

/* A name, or several in braces. */
static bool read_called(struct reader *r, struct hb_hlo_inst *inst, struct hb_hlo_span called)
{
    struct hb_hlo_lex lex = hb_hlo_lex_span(called);
    bool list = called.at && hb_hlo_take(&lex, '{');
    while (called.at) {
        hb_hlo_skip_space(&lex);
        if (list && hb_hlo_take(&lex, '}'))
            break;
        const char *at = lex.at;
        struct hb_hlo_span name = hb_hlo_take_name(&lex);
        uint32_t comp = name.len ? *find_comp(r, name) : 0;
        if (!comp || comp == r->m->comp_count)
            return hb_error(r->diag, place(r, at), "no computation '%.*s' above this one",
                            shown(name), name.at);
        if (inst->call_count == UINT16_MAX)
            return fail_at(r, at, "more than 65535 called computations");
        add_arg(r->m, comp - 1);
        inst->call_count++;
        if (!list)
            break;
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

static bool read_attrs(struct reader *r, struct hb_hlo_inst *inst)
{
    struct attrs attrs = {.index = {0}};
    const char *first = r->lex.at;
    hb_hlo_skip_blanks(&r->lex);
    while (r->lex.at < r->lex.end && *r->lex.at == ',') {
        struct hb_hlo_span key, value;
        r->lex.at++;
        const char *at = r->lex.at;
        if (!hb_hlo_take_attr(&r->lex, &key, &value))
            return fail_at(r, r->lex.at >= r->lex.end ? r->lex.end : at,
                           "an attribute is wanted here, as in key=value");
        note_attr(&attrs, key, value);
    }
    inst->attrs_at = (uint32_t)(first - r->m->text.bytes);
    inst->attrs_len = (uint32_t)(r->lex.at - first);
    hb_hlo_skip_blanks(&r->lex);
    if (r->lex.at < r->lex.end && *r->lex.at != '\n')
        return fail_at(r, r->lex.at, "the line should end here");
    inst->fusion = (uint8_t)find_fusion(attrs.kind);
    int64_t index = 0;
    if (inst->op == HB_HLO_OP_GET_TUPLE_ELEMENT) {
        struct hb_hlo_lex lex = hb_hlo_lex_span(attrs.index);
        if (!attrs.index.at || !hb_hlo_take_int(&lex, &index) || index >= INT32_MAX)
            return fail_at(r, first, "get-tuple-element wants an index=number");
        inst->number = (uint32_t)index;
    }
    return read_preds(r, inst, attrs.preds) && read_called(r, inst, attrs.called[0]) &&
           read_called(r, inst, attrs.called[1]);
}

/* ---- instructions ---- */

static enum hb_hlo_op find_op(struct reader *r, struct hb_hlo_span name)
{
    uint32_t i = hash_name(name) % OP_CACHE;
    if (!r->op_cache[i].name.at || !same_text(r->op_cache[i].name, name)) {
        r->op_cache[i].name = name;
        r->op_cache[i].op = hb_hlo_op_find(name);
    }
    return r->op_cache[i].op;
}

/* What the rest of the program relies on without asking again. */
static bool check_inst(struct reader *r, const struct hb_hlo_inst *inst, const char *at)
{
    const struct hb_hlo_module *m = r->m;
    const struct hb_hlo_shape *shape = &m->shapes.items[inst->shape];
    static const enum hb_hlo_op unary[] = {
        HB_HLO_OP_GET_TUPLE_ELEMENT, HB_HLO_OP_BITCAST,     HB_HLO_OP_COPY,  HB_HLO_OP_COPY_START,
        HB_HLO_OP_COPY_DONE,         HB_HLO_OP_OPT_BARRIER, HB_HLO_OP_WHILE, HB_HLO_OP_DOMAIN,
        HB_HLO_OP_ADD_DEPENDENCY};
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
        if (inst->op == unary[i] && !inst->operand_count)
            return fail_at(r, at, "this operation wants an operand");
    if (inst->op == HB_HLO_OP_GET_TUPLE_ELEMENT) {
        const struct hb_hlo_shape *from = hb_hlo_shape_of(m, m->args[inst->args_at]);
        if (inst->number >= from->child_count)
            return fail_at(r, at, "index beyond the operand's tuple");
    }
    if (inst->op == HB_HLO_OP_TUPLE &&
        (shape->type != HB_HLO_TUPLE || shape->child_count != inst->operand_count))
        return fail_at(r, at, "a tuple's shape has as many elements as it has operands");
    if (inst->op == HB_HLO_OP_WHILE && inst->call_count != 2)
        return fail_at(r, at, "while wants condition= and body=");
    if (inst->op == HB_HLO_OP_CONDITIONAL && inst->operand_count != inst->call_count + 1u)
        return fail_at(r, at, "conditional wants one operand for each branch, and the selector");
    if ((inst->op == HB_HLO_OP_CALL || inst->op == HB_HLO_OP_FUSION) && inst->call_count != 1)
        return fail_at(r, at, "a call or fusion wants one computation");
    return true;
}

static bool add_inst(struct reader *r, struct hb_hlo_inst inst, struct hb_hlo_span name)
{
    struct hb_hlo_module *m = r->m;
    struct hb_hlo_comp *comp = &m->comps[m->comp_count - 1];
    if (m->inst_count == UINT32_MAX / 4)
        return fail_at(r, name.at, "too many instructions");
    m->insts = hb_grow(m->arena, m->insts, m->inst_count, &m->inst_cap, sizeof inst);
    m->insts[m->inst_count++] = inst;
    comp->inst_count++;
    if (comp->inst_count * 2 > r->name_cap) {
        grow_names(r);
        return true;
    }
    uint32_t *slot = find_name(r, name);
    if (is_known(r, slot))
        return hb_error(r->diag, place(r, name.at), "'%.*s' is defined twice in this computation",
                        shown(name), name.at);
    *slot = m->inst_count;
    return true;
}

static bool read_inst(struct reader *r)
{
    struct hb_hlo_module *m = r->m;
    struct hb_hlo_lex *lex = &r->lex;
    struct hb_hlo_inst inst = {.comp = m->comp_count - 1};
    const char *first = lex->at;
    struct hb_hlo_span name = hb_hlo_take_name(lex);
    bool root = *first != '%' && hb_hlo_span_is(name, "ROOT");
    if (root) {
        hb_hlo_skip_blanks(lex);
        first = lex->at;
        name = hb_hlo_take_name(lex);
    }
    if (!name.len || !hb_hlo_take(lex, '='))
        return fail_at(r, lex->at >= lex->end ? lex->end : first,
                       "an instruction is wanted here, as in %x = f32[8]{0} add(%a, %b)");
    if (name.len > MAX_NAME)
        return fail_at(r, name.at, "a name longer than 65535 bytes");
    hb_hlo_skip_space(lex);
    const char *shape_at = lex->at;
    if (!hb_hlo_shape_read(&m->shapes, lex, &inst.shape))
        return fail_at(r, lex->at >= lex->end ? lex->end : shape_at,
                       "a shape is wanted here, as in f32[8,128]{1,0}");
    hb_hlo_skip_space(lex);
    const char *op_at = lex->at;
    struct hb_hlo_span op = hb_hlo_take_name(lex);
    if (!op.len || !hb_hlo_take(lex, '('))
        return fail_at(r, lex->at >= lex->end ? lex->end : op_at,
                       "an operation is wanted here, as in add(%a, %b)");
    inst.op = (uint8_t)find_op(r, op);
    inst.name_at = (uint32_t)(name.at - m->text.bytes);
    inst.name_len = (uint16_t)name.len;
    inst.args_at = m->arg_count;
    if (!read_operands(r, &inst) || !read_attrs(r, &inst) || !check_inst(r, &inst, op_at))
        return false;
    if (root)
        m->comps[inst.comp].root = m->inst_count;
    return add_inst(r, inst, name);
}

/* ---- computations ---- */

/* Parameters by number: each once, none left out. */
static bool list_params(struct reader *r, struct hb_hlo_comp *comp)
{
    struct hb_hlo_module *m = r->m;
    comp->params_at = m->param_count;
    for (uint32_t i = 0; i < comp->inst_count; i++)
        comp->param_count += m->insts[comp->first_inst + i].op == HB_HLO_OP_PARAMETER;
    for (uint32_t i = 0; i < comp->param_count; i++) {
        m->params = hb_grow(m->arena, m->params, m->param_count, &m->param_cap, sizeof *m->params);
        m->params[m->param_count++] = HB_NONE;
    }
    for (uint32_t i = comp->first_inst; i < comp->first_inst + comp->inst_count; i++) {
        const struct hb_hlo_inst *inst = &m->insts[i];
        if (inst->op != HB_HLO_OP_PARAMETER)
            continue;
        if (inst->number >= comp->param_count ||
            m->params[comp->params_at + inst->number] != HB_NONE)
            return hb_error(r->diag, place(r, m->text.bytes + inst->name_at),
                            "parameter(%u) is out of range or there twice", inst->number);
        m->params[comp->params_at + inst->number] = i;
    }
    return true;
}

static bool read_body(struct reader *r)
{
    struct hb_hlo_module *m = r->m;
    for (;;) {
        hb_hlo_skip_space(&r->lex);
        if (r->lex.at >= r->lex.end)
            return fail_at(r, r->lex.end, "a computation is not closed by '}'");
        if (*r->lex.at == '}')
            break;
        if (!read_inst(r))
            return false;
    }
    struct hb_hlo_comp *comp = &m->comps[m->comp_count - 1];
    if (!comp->inst_count)
        return fail_at(r, r->lex.at, "this computation has no instructions");
    if (comp->root == HB_NONE)
        comp->root = comp->first_inst + comp->inst_count - 1;
    const char *line_end = memchr(r->lex.at, '\n', (size_t)(r->lex.end - r->lex.at));
    r->lex.at = line_end ? line_end : r->lex.end; /* `}, execution_thread="..."` */
    return list_params(r, comp);
}

static bool add_comp(struct reader *r, struct hb_hlo_span name)
{
    struct hb_hlo_module *m = r->m;
    m->comps = hb_grow(m->arena, m->comps, m->comp_count, &m->comp_cap, sizeof *m->comps);
    m->comps[m->comp_count++] =
        (struct hb_hlo_comp){.name = name, .first_inst = m->inst_count, .root = HB_NONE};
    if (m->comp_count * 2 > r->comp_name_cap) {
        r->comp_name_cap = r->comp_name_cap ? r->comp_name_cap * 2 : 256;
        r->comp_names = hb_arena_alloc(m->arena, r->comp_name_cap, sizeof *r->comp_names);
        for (uint32_t i = 0; i + 1 < m->comp_count; i++)
            *find_comp(r, m->comps[i].name) = i + 1;
    }
    uint32_t *slot = find_comp(r, name);
    if (*slot)
        return hb_error(r->diag, place(r, name.at), "computation '%.*s' is there twice",
                        shown(name), name.at);
    *slot = m->comp_count;
    if (!r->name_cap)
        grow_names(r);
    return true;
}

/* `[ENTRY] %name [(parameters) -> result] {`: parameters are told again by the instructions. */
static bool read_comp(struct reader *r)
{
    struct hb_hlo_module *m = r->m;
    const char *first = r->lex.at;
    struct hb_hlo_span name = hb_hlo_take_name(&r->lex);
    bool entry = *first != '%' && hb_hlo_span_is(name, "ENTRY");
    if (entry) {
        hb_hlo_skip_blanks(&r->lex);
        name = hb_hlo_take_name(&r->lex);
    }
    const char *line_end = memchr(r->lex.at, '\n', (size_t)(r->lex.end - r->lex.at));
    const char *last = line_end ? line_end : r->lex.end;
    while (last > r->lex.at && (last[-1] == ' ' || last[-1] == '\r'))
        last--;
    if (!name.len || last == r->lex.at || last[-1] != '{')
        return fail_at(r, line_end ? first : r->lex.end,
                       "a computation is wanted here, as in %name (p: f32[8]) -> f32[8] {");
    if (entry && r->has_entry)
        return fail_at(r, first, "a module has one ENTRY");
    if (!add_comp(r, name))
        return false;
    if (entry) {
        m->entry = m->comp_count - 1;
        m->partitioned = hb_hlo_span_find(name, "_spmd") != NULL;
        r->has_entry = true;
    }
    r->lex.at = last;
    return read_body(r);
}

/* ---- the module's head ---- */

/* `{ {0}: (0, {}, may-alias), {1}: (2, {1}, must-alias) }` */
static bool read_donations(struct hb_hlo_module *m, struct hb_hlo_span value)
{
    struct hb_hlo_lex lex = hb_hlo_lex_span(value);
    if (!hb_hlo_take(&lex, '{'))
        return false;
    while (!hb_hlo_take(&lex, '}')) {
        struct hb_hlo_donation d = {.param = 0};
        int64_t param;
        if (!hb_hlo_take_path(&lex, d.out_path, &d.out_len) || !hb_hlo_take(&lex, ':') ||
            !hb_hlo_take(&lex, '(') || !hb_hlo_take_int(&lex, &param) || param >= INT32_MAX ||
            !hb_hlo_take(&lex, ',') || !hb_hlo_take_path(&lex, d.param_path, &d.param_len))
            return false;
        d.param = (uint32_t)param;
        if (hb_hlo_take(&lex, ',')) {
            hb_hlo_skip_space(&lex);
            hb_hlo_take_name(&lex);
        }
        if (!hb_hlo_take(&lex, ')'))
            return false;
        m->donations = hb_grow(m->arena, m->donations, m->donation_count, &m->donation_cap,
                               sizeof *m->donations);
        m->donations[m->donation_count++] = d;
        hb_hlo_take(&lex, ',');
    }
    return true;
}

static bool read_head(struct reader *r)
{
    struct hb_hlo_module *m = r->m;
    hb_hlo_skip_space(&r->lex);
    const char *first = r->lex.at;
    struct hb_hlo_span word = hb_hlo_take_name(&r->lex);
    hb_hlo_skip_blanks(&r->lex);
    m->name = hb_hlo_take_name(&r->lex);
    if (!hb_hlo_span_is(word, "HloModule") || !m->name.len)
        return fail_at(
            r, r->lex.at >= r->lex.end ? r->lex.end : first,
            "an HLO text begins with 'HloModule NAME' (a proto or StableHLO is not read)");
    m->partitions = 1;
    hb_hlo_skip_blanks(&r->lex);
    while (r->lex.at < r->lex.end && *r->lex.at == ',') {
        struct hb_hlo_span key, value;
        const char *at = ++r->lex.at;
        if (!hb_hlo_take_attr(&r->lex, &key, &value))
            return fail_at(r, r->lex.at >= r->lex.end ? r->lex.end : at,
                           "an attribute is wanted here, as in key=value");
        struct hb_hlo_lex number = hb_hlo_lex_span(value);
        if (hb_hlo_span_is(key, "is_scheduled"))
            m->scheduled = hb_hlo_span_is(value, "true");
        else if (hb_hlo_span_is(key, "num_partitions"))
            hb_hlo_take_int(&number, &m->partitions);
        else if (hb_hlo_span_is(key, "input_output_alias") && !read_donations(m, value))
            return fail_at(r, value.at, "input_output_alias={ {output}: (parameter, {path}), ...}");
        hb_hlo_skip_blanks(&r->lex);
    }
    return true;
}

/* ---- tables of the user's source ---- */

/* The value of `key=` in a row, or 0. */
static int64_t find_field(struct hb_hlo_span row, const char *key)
{
    const char *at = hb_hlo_span_find(row, key);
    int64_t value = 0;
    if (at) {
        struct hb_hlo_lex lex = {at + strlen(key), row.at + row.len};
        hb_hlo_take_int(&lex, &value);
    }
    return value;
}

static uint32_t find_index(struct hb_hlo_span row, const char *key)
{
    int64_t value = find_field(row, key);
    return value < INT32_MAX ? (uint32_t)value : 0;
}

static void add_row(struct hb_hlo_module *m, char table, struct hb_hlo_span row)
{
    if (table == 'i') { /* FileNames */
        const char *open = hb_hlo_span_find(row, "\"");
        struct hb_hlo_span name = {0};
        if (open && row.at[row.len - 1] == '"' && row.at + row.len - 1 > open)
            name = (struct hb_hlo_span){open + 1, (size_t)(row.at + row.len - 2 - open)};
        m->files = hb_grow(m->arena, m->files, m->file_count, &m->file_cap, sizeof *m->files);
        m->files[m->file_count++] = name;
    } else if (table == 'L') { /* FileLocations */
        m->locations = hb_grow(m->arena, m->locations, m->location_count, &m->location_cap,
                               sizeof *m->locations);
        m->locations[m->location_count++] =
            (struct hb_hlo_frame){find_index(row, "file_name_id="), find_field(row, " line="), 0};
    } else if (table == 'S') { /* StackFrames */
        m->frames = hb_grow(m->arena, m->frames, m->frame_count, &m->frame_cap, sizeof *m->frames);
        m->frames[m->frame_count++] = (struct hb_hlo_frame){find_index(row, "file_location_id="), 0,
                                                            find_index(row, "parent_frame_id=")};
    }
}

/* A heading alone in its line, then rows that begin with their number; false if none is here. */
static bool read_table(struct reader *r)
{
    static const struct {
        const char *heading;
        char table;
    } tables[] = {
        {"FileNames", 'i'}, {"FunctionNames", 'f'}, {"FileLocations", 'L'}, {"StackFrames", 'S'}};
    struct hb_hlo_lex lex = r->lex;
    struct hb_hlo_span word = hb_hlo_take_name(&lex);
    char table = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (hb_hlo_span_is(word, tables[i].heading))
            table = tables[i].table;
    hb_hlo_skip_blanks(&lex);
    if (!table || (lex.at < lex.end && *lex.at != '\n'))
        return false;
    for (;;) {
        hb_hlo_skip_space(&lex);
        if (lex.at >= lex.end || *lex.at < '0' || *lex.at > '9')
            break;
        const char *line_end = memchr(lex.at, '\n', (size_t)(lex.end - lex.at));
        line_end = line_end ? line_end : lex.end;
        add_row(r->m, table, (struct hb_hlo_span){lex.at, (size_t)(line_end - lex.at)});
        lex.at = line_end;
    }
    r->lex.at = lex.at;
    return true;
}

bool hb_hlo_module_read(struct hb_arena *arena, struct hb_diag *diag,
                        const struct hb_hlo_text *text, struct hb_hlo_module *out_module)
{
    struct reader *r = hb_arena_alloc(arena, 1, sizeof *r);
    struct hb_hlo_module *m = hb_arena_alloc(arena, 1, sizeof *m);
    *r = (struct reader){.m = m, .diag = diag, .lex = {text->bytes, text->bytes + text->len}};
    *m = (struct hb_hlo_module){.arena = arena, .text = *text};
    hb_hlo_shapes_init(&m->shapes, arena);
    if (!read_head(r))
        return false;
    for (;;) {
        hb_hlo_skip_space(&r->lex);
        if (r->lex.at >= r->lex.end)
            break;
        if (!read_table(r) && !read_comp(r))
            return false;
    }
    if (!m->comp_count)
        return fail_at(r, r->lex.end, "the module has no computations");
    if (!r->has_entry)
        m->entry = m->comp_count - 1;
    m->dialect = hb_hlo_dialect_guess(m);
    *out_module = *m;
    return true;
}
