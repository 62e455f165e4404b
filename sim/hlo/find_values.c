/* Findings that are seen in one value at a time: a table of rules, each asked of every large value
 * that is alive in device memory. A rule that catches a value edits it away. */
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/hlo/finder.h"

enum {
    MAX_STEPS = 4096,
    EACH_SHARE = 16, /* one value of a finding: this share of the least */
    MAX_NUMBERS = 32,
    LEAST_WORDS = 1024 /* a vocabulary, or a device's part of it */
};

/* ---- what a fused computation does to what it is given ---- */

struct trace {
    uint32_t operand; /* of the outer instruction; HB_NONE: not handed through */
    bool converts;
};

static bool hands_through(enum hb_hlo_op op)
{
    return op == HB_HLO_OP_CONVERT || op == HB_HLO_OP_COPY || op == HB_HLO_OP_BITCAST ||
           op == HB_HLO_OP_TRANSPOSE || op == HB_HLO_OP_RESHAPE;
}

/* The instruction that makes a slot of an instruction: itself, or one in its fusion. */
static uint32_t find_maker(const struct hb_hlo_module *m, uint32_t inst, uint32_t slot)
{
    if (hb_hlo_op_of(m, inst) != HB_HLO_OP_FUSION)
        return inst;
    uint32_t root = m->comps[hb_hlo_called(m, inst, 0)].root;
    if (!slot || hb_hlo_op_of(m, root) != HB_HLO_OP_TUPLE || slot > m->insts[root].operand_count)
        return root;
    return hb_hlo_operand(m, root, slot - 1);
}

/* Back from a slot through operations that keep the numbers, to an operand. */
static struct trace trace_back(const struct hb_hlo_module *m, uint32_t inst, uint32_t slot)
{
    struct trace t = {HB_NONE, false};
    uint32_t at = find_maker(m, inst, slot);
    for (int step = 0; step < MAX_STEPS && hands_through(hb_hlo_op_of(m, at)); step++) {
        t.converts = t.converts || hb_hlo_op_of(m, at) == HB_HLO_OP_CONVERT;
        if (!m->insts[at].operand_count)
            return t;
        if (at == inst) {
            t.operand = 0;
            return t;
        }
        at = hb_hlo_operand(m, at, 0);
    }
    if (hb_hlo_op_of(m, at) == HB_HLO_OP_PARAMETER && at != inst &&
        m->insts[at].number < m->insts[inst].operand_count)
        t.operand = m->insts[at].number;
    return t;
}

static bool has_op(const struct hb_hlo_module *m, uint32_t inst, enum hb_hlo_op op)
{
    if (hb_hlo_op_of(m, inst) != HB_HLO_OP_FUSION)
        return hb_hlo_op_of(m, inst) == op;
    const struct hb_hlo_comp *comp = &m->comps[hb_hlo_called(m, inst, 0)];
    for (uint32_t i = comp->first_inst; i < comp->first_inst + comp->inst_count; i++)
        if (hb_hlo_op_of(m, i) == op)
            return true;
    return false;
}

/* Whether an instruction makes its result of nothing but small numbers: iotas and constants. */
static bool makes_from_nothing(const struct hb_hlo_module *m, uint32_t inst)
{
    enum { SMALL = 64 };
    for (uint32_t i = 0; i < m->insts[inst].operand_count; i++) {
        const struct hb_hlo_shape *s = hb_hlo_shape_of(m, hb_hlo_operand(m, inst, i));
        if (s->type == HB_HLO_TUPLE || s->elements > SMALL)
            return false;
    }
    return true;
}

/* ---- rules: true if the value is caught; the edit then lacks it ---- */

/* What logits look like in this module. */
struct logits {
    int64_t words;                 /* size of the vocabulary; 0: none */
    int64_t width;                 /* of the table that is looked up; 0: not known */
    bool parts;                    /* a device has a part of the words */
    int64_t products[MAX_NUMBERS]; /* elements of products with it */
    int product_count;
    int64_t wholes[MAX_NUMBERS]; /* elements of its weights, made whole from parts */
    int whole_count;
};

struct value {
    uint32_t buf, v, node, inst, slot;
    const struct hb_hlo_shape *shape;
    const struct logits *logits;
};

typedef bool rule_fn(struct hb_hlo_finder *x, struct hb_hlo_edit *edit, const struct value *at);

static bool catch_wide_copy(struct hb_hlo_finder *x, struct hb_hlo_edit *edit,
                            const struct value *at)
{
    if (at->shape->type != HB_HLO_F32)
        return false;
    struct trace t = trace_back(x->m, at->inst, at->slot);
    if (t.operand == HB_NONE || !t.converts)
        return false;
    const struct hb_hlo_shape *from =
        hb_hlo_shape_of(x->m, hb_hlo_operand(x->m, at->inst, t.operand));
    if (from->type != HB_HLO_BF16 || from->elements != at->shape->elements)
        return false;
    hb_hlo_edit_shrink(edit, at->buf, 0);
    hb_hlo_edit_keep(edit, hb_hlo_finder_operand(x, at->node, t.operand), edit->end[at->buf]);
    return true;
}

/* A converted stack that a loop is given whole, to slice it: a slice converted in each trip does.
 */
static bool catch_hoisted(struct hb_hlo_finder *x, struct hb_hlo_edit *edit, const struct value *at)
{
    if (x->loop_of[at->v] == HB_NONE || at->shape->rank < 2)
        return false;
    int64_t layers = x->m->shapes.nums[at->shape->dims_at];
    struct trace t = trace_back(x->m, at->inst, at->slot);
    if (layers < 2 || t.operand == HB_NONE)
        return false;
    uint32_t from = hb_hlo_operand(x->m, at->inst, t.operand);
    bool converts = t.converts || trace_back(x->m, from, 0).converts;
    if (!converts)
        return false;
    hb_hlo_edit_shrink(edit, at->buf, at->shape->bytes / layers);
    hb_hlo_edit_keep(edit, hb_hlo_finder_operand(x, at->node, t.operand), edit->end[at->buf]);
    return true;
}

/* A copy that a body makes of what it carries: what is copied and the copy are one. */
static bool catch_carry(struct hb_hlo_finder *x, struct hb_hlo_edit *edit, const struct value *at)
{
    const struct hb_hlo_flow *f = x->f;
    const struct hb_hlo_scope *scope = &f->scopes[f->scope_of[at->node]];
    enum hb_hlo_op op = hb_hlo_op_of(x->m, at->inst);
    if (scope->caller == HB_NONE || scope->branch != 1 || op != HB_HLO_OP_COPY ||
        hb_hlo_op_of(x->m, hb_hlo_node_inst(f, scope->caller)) != HB_HLO_OP_WHILE)
        return false;
    uint32_t from = hb_hlo_node_operand(f, at->node, 0),
             root = hb_hlo_scope_root(f, f->scope_of[at->node]);
    uint32_t origin = f->values[f->value_at[f->first_slot[from]]].node;
    bool carried = hb_hlo_op_of(x->m, hb_hlo_node_inst(f, origin)) == HB_HLO_OP_PARAMETER;
    for (uint32_t s = f->first_slot[root]; s < f->first_slot[root + 1]; s++)
        carried = carried || f->value_at[s] == at->v;
    if (!carried)
        return false;
    uint32_t operand = hb_hlo_finder_operand(x, at->node, 0);
    bool alone = x->hp->buffers.items[x->hp->buffers.buffer_of[at->v]].count == 1;
    if (!alone && operand != HB_NONE) { /* the operand is written to the carry's place at once */
        edit->start[at->buf] = edit->start[operand] < edit->start[at->buf] ? edit->start[operand]
                                                                           : edit->start[at->buf];
        hb_hlo_edit_shrink(edit, operand, 0);
    } else {
        hb_hlo_edit_shrink(edit, at->buf, 0);
        hb_hlo_edit_keep(edit, operand, edit->end[at->buf]);
    }
    return true;
}

static bool catch_constraint(struct hb_hlo_finder *x, struct hb_hlo_edit *edit,
                             const struct value *at)
{
    struct trace t = trace_back(x->m, at->inst, at->slot);
    if (t.operand == HB_NONE || t.converts ||
        !hb_hlo_finder_op_name_has(x, at->inst, "sharding_constraint"))
        return false;
    hb_hlo_edit_shrink(edit, at->buf, 0);
    hb_hlo_edit_keep(edit, hb_hlo_finder_operand(x, at->node, t.operand), edit->end[at->buf]);
    return true;
}

/* compare(indices, iota), EQ, as a number: rows of a unit matrix. */
static bool is_one_hot(const struct hb_hlo_finder *x, const struct value *at)
{
    const struct hb_hlo_module *m = x->m;
    if (hb_hlo_op_has(hb_hlo_op_of(m, at->inst), HB_HLO_COLLECTIVE))
        return false;
    if (hb_hlo_finder_op_name_has(x, at->inst, "one_hot"))
        return true;
    uint32_t maker = find_maker(m, at->inst, at->slot);
    for (int step = 0; step < MAX_STEPS && hands_through(hb_hlo_op_of(m, maker)); step++) {
        if (!m->insts[maker].operand_count)
            return false;
        maker = hb_hlo_operand(m, maker, 0);
    }
    struct hb_hlo_span direction = {0};
    if (hb_hlo_op_of(m, maker) == HB_HLO_OP_COMPARE)
        direction = hb_hlo_attr(m, maker, "direction");
    if (!direction.at || !hb_hlo_span_is(direction, "EQ"))
        return false;
    for (uint32_t i = 0; i < m->insts[maker].operand_count; i++) {
        uint32_t side = hb_hlo_operand(m, maker, i);
        if (hb_hlo_op_of(m, side) == HB_HLO_OP_BROADCAST && m->insts[side].operand_count)
            side = hb_hlo_operand(m, side, 0);
        if (hb_hlo_op_of(m, side) == HB_HLO_OP_IOTA)
            return !makes_from_nothing(m, at->inst);
    }
    return false;
}

static bool catch_one_hot(struct hb_hlo_finder *x, struct hb_hlo_edit *edit, const struct value *at)
{
    if (at->shape->rank < 2 || !is_one_hot(x, at))
        return false;
    hb_hlo_edit_shrink(edit, at->buf, 0);
    return true;
}

static bool catch_mask(struct hb_hlo_finder *x, struct hb_hlo_edit *edit, const struct value *at)
{
    enum hb_hlo_op op = hb_hlo_op_of(x->m, at->inst);
    bool compares =
        has_op(x->m, at->inst, HB_HLO_OP_COMPARE) || has_op(x->m, at->inst, HB_HLO_OP_IOTA);
    bool spreads = op == HB_HLO_OP_BROADCAST && at->shape->type == HB_HLO_PRED;
    if (at->shape->rank < 2 || op == HB_HLO_OP_PARAMETER || (!compares && !spreads) ||
        (compares && !makes_from_nothing(x->m, at->inst)))
        return false;
    hb_hlo_edit_shrink(edit, at->buf, 0);
    return true;
}

/* ---- logits ---- */

static bool is_float(const struct hb_hlo_shape *s)
{
    return s->type >= HB_HLO_F16 && s->type <= HB_HLO_F64;
}

static void note_number(int64_t *list, int *count, int64_t number)
{
    for (int i = 0; i < *count; i++)
        if (list[i] == number)
            return;
    if (*count < MAX_NUMBERS)
        list[(*count)++] = number;
}

/* Whether a matrix is an argument, or one made whole from the parts of all devices. */
static bool is_argument_like(const struct hb_hlo_module *m, const struct hb_hlo_shape *shape)
{
    const struct hb_hlo_comp *entry = &m->comps[m->entry];
    const int64_t *dims = m->shapes.nums + shape->dims_at;
    for (uint32_t p = 0; p < entry->param_count; p++) {
        const struct hb_hlo_shape *s = hb_hlo_shape_of(m, m->params[entry->params_at + p]);
        const int64_t *part = m->shapes.nums + s->dims_at;
        if (s->type != HB_HLO_TUPLE && is_float(s) && s->rank == 2 && s->elements > 0 &&
            dims[0] % part[0] == 0 && dims[1] % part[1] == 0 &&
            (dims[0] / part[0]) * (dims[1] / part[1]) <= m->partitions)
            return true;
    }
    return false;
}

/* The vocabulary, or what a device has of it: rows of the longest table that is looked up; where
 * none is, the largest dimension of any argument. */
static void find_words(const struct hb_hlo_module *m, struct logits *out)
{
    const struct hb_hlo_comp *entry = &m->comps[m->entry];
    int64_t most = 0;
    for (uint32_t i = 0; i < m->inst_count; i++) {
        if (hb_hlo_op_of(m, i) != HB_HLO_OP_GATHER || !m->insts[i].operand_count)
            continue;
        const struct hb_hlo_shape *s = hb_hlo_shape_of(m, hb_hlo_operand(m, i, 0));
        if (s->type == HB_HLO_TUPLE || !is_float(s) || s->rank != 2 ||
            m->shapes.nums[s->dims_at] <= out->words || !is_argument_like(m, s))
            continue;
        out->words = m->shapes.nums[s->dims_at];
        out->width = m->shapes.nums[s->dims_at + 1];
    }
    for (uint32_t p = 0; p < entry->param_count; p++) {
        const struct hb_hlo_shape *s = hb_hlo_shape_of(m, m->params[entry->params_at + p]);
        for (int d = 0; d < s->rank && is_float(s) && s->rank >= 2; d++)
            if (m->shapes.nums[s->dims_at + (uint32_t)d] > most)
                most = m->shapes.nums[s->dims_at + (uint32_t)d];
    }
    if (out->words < LEAST_WORDS)
        out->words = most >= 4 * LEAST_WORDS ? most : 0;
}

/* The dimension that is the vocabulary, the whole of it where a part was looked up, or a part
 * where the whole was; 0: none. */
static int64_t find_words_of(const struct hb_hlo_module *m, const struct logits *l,
                             const struct hb_hlo_shape *s)
{
    for (int d = 0; d < s->rank && l->words; d++) {
        int64_t dim = m->shapes.nums[s->dims_at + (uint32_t)d];
        if (!l->parts && dim && dim % l->words == 0 && dim / l->words <= m->partitions)
            return dim;
        if (l->parts && dim >= LEAST_WORDS && dim != l->width && l->words % dim == 0 &&
            l->words / dim <= m->partitions)
            return dim;
    }
    return 0;
}

static bool has_shape_of_argument(const struct hb_hlo_module *m, const struct hb_hlo_shape *shape)
{
    const struct hb_hlo_comp *entry = &m->comps[m->entry];
    for (uint32_t p = 0; p < entry->param_count; p++)
        if (hb_hlo_shape_of(m, m->params[entry->params_at + p])->elements == shape->elements)
            return true;
    return false;
}

static bool multiplies(const struct hb_hlo_module *m, uint32_t inst)
{
    enum hb_hlo_op op = hb_hlo_op_of(m, inst);
    struct hb_hlo_span target = {0};
    if (op == HB_HLO_OP_CUSTOM_CALL)
        target = hb_hlo_attr(m, inst, "custom_call_target");
    return op == HB_HLO_OP_DOT || op == HB_HLO_OP_CONVOLUTION ||
           (target.at && (hb_hlo_span_find(target, "gemm") || hb_hlo_span_find(target, "matmul")));
}

/* Elements of the weights that all-gathers make whole and that have the vocabulary in their shape.
 */
static void find_wholes(const struct hb_hlo_module *m, struct logits *l)
{
    l->whole_count = 0;
    for (uint32_t i = 0; i < m->inst_count; i++) {
        enum hb_hlo_op op = hb_hlo_op_of(m, i);
        if (op != HB_HLO_OP_ALL_GATHER && op != HB_HLO_OP_ALL_GATHER_START)
            continue;
        uint32_t slots = hb_hlo_shape_of(m, i)->slots;
        for (uint32_t slot = 0; slot < slots; slot++) {
            const struct hb_hlo_shape *s =
                &m->shapes.items[hb_hlo_shape_at_slot(&m->shapes, m->insts[i].shape, slot)];
            if (s->type != HB_HLO_TUPLE && s->rank >= 2 && find_words_of(m, l, s))
                note_number(l->wholes, &l->whole_count, s->elements);
        }
    }
}

static bool is_whole(const struct logits *l, int64_t elements)
{
    for (int i = 0; i < l->whole_count; i++)
        if (l->wholes[i] == elements)
            return true;
    return false;
}

/* Products that have the vocabulary in their shape, other than gradients of its weights: those are
 * as large as an argument, or as one made whole (which logits may be by chance). */
static void find_products(const struct hb_hlo_module *m, struct logits *out, bool chance)
{
    find_wholes(m, out);
    for (uint32_t i = 0; i < m->inst_count && out->words; i++) {
        uint32_t shape = m->insts[i].shape;
        if (!multiplies(m, i))
            continue;
        if (m->shapes.items[shape].type == HB_HLO_TUPLE && m->shapes.items[shape].child_count)
            shape = hb_hlo_shape_child(&m->shapes, shape, 0);
        const struct hb_hlo_shape *s = &m->shapes.items[shape];
        if (s->rank >= 2 && find_words_of(m, out, s) && !has_shape_of_argument(m, s) &&
            (chance || !is_whole(out, s->elements)))
            note_number(out->products, &out->product_count, s->elements);
    }
}

/* Tokens times words, in f32: an eighth stays where the loss is taken in eight chunks. */
static bool catch_logits(struct hb_hlo_finder *x, struct hb_hlo_edit *edit, const struct value *at)
{
    enum { CHUNKS = 8 };
    const struct logits *l = at->logits;
    bool product = false;
    if (at->shape->type != HB_HLO_F32 || at->shape->rank < 2)
        return false;
    int64_t words = find_words_of(x->m, l, at->shape), elements = at->shape->elements;
    for (int i = 0; i < l->product_count; i++) /* a token less is as much */
        product = product || (elements <= l->products[i] && elements > l->products[i] / 10 * 9);
    if (!words || !product || elements / words < CHUNKS || has_shape_of_argument(x->m, at->shape))
        return false;
    hb_hlo_edit_shrink(edit, at->buf, at->shape->bytes / CHUNKS);
    return true;
}

/* All that one all-gather returns, outside of loops, of at least a whole mesh axis. */
static bool catch_gathered(struct hb_hlo_finder *x, struct hb_hlo_edit *edit,
                           const struct value *at)
{
    enum hb_hlo_op op = hb_hlo_op_of(x->m, at->inst);
    if ((op != HB_HLO_OP_ALL_GATHER && op != HB_HLO_OP_ALL_GATHER_START) ||
        x->f->scope_of[at->node] != 0)
        return false;
    const struct hb_hlo_shape *from = hb_hlo_shape_of(x->m, hb_hlo_operand(x->m, at->inst, 0));
    if (from->type == HB_HLO_TUPLE || from->elements <= 0 ||
        at->shape->elements / from->elements < 2)
        return false;
    hb_hlo_edit_shrink(edit, at->buf, at->shape->bytes / (at->shape->elements / from->elements));
    return true;
}

static const struct {
    enum hb_hlo_finding_kind kind;
    rule_fn *rule;
    const char *what;
    const char *advice;
} rules[] = {
    {HB_HLO_FIND_WIDE_COPY, catch_wide_copy, "f32 copies of bf16 tensors are stored",
     "convert where the value is used, so that it fuses; keep norms' and losses' f32 inside of one "
     "fusion; on CPU bf16 is emulated and this cannot be helped"},
    {HB_HLO_FIND_HOISTED, catch_hoisted,
     "a whole stack of layers is converted before the loop and alive until its end",
     "convert inside of the loop: an optimization barrier on the slice, a smaller "
     "xla_tpu_licm_size_inflation_ratio, or parameters stored in the compute dtype"},
    {HB_HLO_FIND_CARRY, catch_carry, "what a loop carries is copied in each trip",
     "let the carry's old value be dead before its new one is made, or keep it out of the carry"},
    {HB_HLO_FIND_CONSTRAINT, catch_constraint,
     "sharding constraints that change nothing became copies",
     "drop with_sharding_constraint where the sharding is already so"},
    {HB_HLO_FIND_ONE_HOT, catch_one_hot, "one-hot matrices are materialised",
     "look rows up with a gather (take, take_along_axis) instead of a product with one_hot"},
    {HB_HLO_FIND_MASK, catch_mask, "masks or index grids that depend on no data are stored",
     "make the mask inside of the kernel (causal=True of the attention kernel), or from two iotas "
     "next to its use"},
    {HB_HLO_FIND_LOGITS, catch_logits, "logits of many tokens are held at once in f32",
     "take the loss in chunks of tokens (8 chunks were tried here), or shard the vocabulary"},
    {HB_HLO_FIND_GATHERED, catch_gathered, "all-gathers outside of loops make whole arrays",
     "keep the result sharded: a sharding constraint on the output, dimensions that their mesh "
     "axes divide, or the gather inside of the loop, one layer at a time"},
};

void hb_hlo_find_values(struct hb_hlo_finder *x)
{
    const struct hb_program *p = &x->hp->program;
    struct logits *logits = hb_arena_alloc(x->arena, 1, sizeof *logits);
    find_words(x->m, logits);
    for (int how = 0; how < 4 && !logits->product_count; how++) {
        logits->parts = how / 2;
        find_products(x->m, logits, how % 2);
    }
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        struct hb_hlo_catch c = hb_hlo_catch_begin(x);
        for (uint32_t i = 0; i < p->buf_count; i++) {
            const struct hb_hlo_value *value = &x->f->values[x->hp->value_of[i]];
            struct value at = {.buf = i,
                               .v = x->hp->value_of[i],
                               .node = value->node,
                               .inst = hb_hlo_node_inst(x->f, value->node),
                               .slot = value->slot,
                               .shape = hb_hlo_finder_shape(x, i),
                               .logits = logits};
            if (p->bufs[i].space == HB_SPACE_HBM && !p->bufs[i].argument &&
                p->bufs[i].bytes >= x->least_bytes / EACH_SHARE && rules[r].rule(x, c.edit, &at))
                hb_hlo_catch_add(x, &c, i);
        }
        hb_hlo_catch_end(x, &c, rules[r].kind, rules[r].what, rules[r].advice);
    }
}
