/* See alias.h. What must share is asked of the root of a fusion, followed back through tuples and
 * bitcasts to a parameter; what may share depends on the backend. */
#include "sim/hlo/alias.h"

#include "base/arena.h"

enum { MAX_STEPS = 4096 }; /* back through tuples and bitcasts */

void hb_hlo_alias_init(struct hb_hlo_alias *a, struct hb_arena *arena,
                       const struct hb_hlo_module *m)
{
    *a = (struct hb_hlo_alias){.m = m, .arena = arena};
    a->users.first = hb_arena_alloc(arena, (size_t)m->inst_count + 1, sizeof *a->users.first);
    a->mark = hb_arena_alloc(arena, m->inst_count, sizeof *a->mark);
    a->queue = hb_arena_alloc(arena, m->inst_count, sizeof *a->queue);
    uint32_t *first = a->users.first, edges = 0;
    for (uint32_t i = 0; i < m->inst_count; i++)
        for (uint32_t k = 0; k < m->insts[i].operand_count; k++, edges++)
            first[hb_hlo_operand(m, i, k)]++;
    for (uint32_t i = 0, at = 0; i <= m->inst_count; i++) {
        uint32_t count = first[i];
        first[i] = at; /* for now where the next user goes */
        at += count;
    }
    a->users.list = hb_arena_alloc(arena, edges, sizeof *a->users.list);
    for (uint32_t i = 0; i < m->inst_count; i++)
        for (uint32_t k = 0; k < m->insts[i].operand_count; k++)
            a->users.list[first[hb_hlo_operand(m, i, k)]++] = i;
    for (uint32_t i = m->inst_count; i > 0; i--)
        first[i] = first[i - 1];
    first[0] = 0;
}

/* ---- must ---- */

/* A slot of an instruction's result. */
struct at {
    uint32_t inst, slot;
};

static const struct hb_hlo_shape *shape_of(const struct hb_hlo_alias *a, uint32_t inst)
{
    return hb_hlo_shape_of(a->m, inst);
}

/* Where a slot's value comes from, back through tuples, elements and bitcasts. */
static struct at follow_back(const struct hb_hlo_alias *a, struct at at)
{
    const struct hb_hlo_module *m = a->m;
    for (int step = 0; step < MAX_STEPS; step++) {
        enum hb_hlo_op op = hb_hlo_op_of(m, at.inst);
        uint32_t shape = m->insts[at.inst].shape;
        if (op == HB_HLO_OP_TUPLE && at.slot) {
            uint32_t child = 0, count = shape_of(a, at.inst)->child_count;
            while (child + 1 < count &&
                   hb_hlo_shape_child_slot(&m->shapes, shape, child + 1) <= at.slot)
                child++;
            at.slot -= hb_hlo_shape_child_slot(&m->shapes, shape, child);
            at.inst = hb_hlo_operand(m, at.inst, child);
        } else if (op == HB_HLO_OP_GET_TUPLE_ELEMENT) {
            uint32_t from = hb_hlo_operand(m, at.inst, 0);
            at.slot +=
                hb_hlo_shape_child_slot(&m->shapes, m->insts[from].shape, m->insts[at.inst].number);
            at.inst = from;
        } else if (op == HB_HLO_OP_BITCAST && !at.slot) {
            at.inst = hb_hlo_operand(m, at.inst, 0);
        } else {
            break;
        }
    }
    return at;
}

static uint32_t add_pair(struct hb_hlo_in_place *out, uint32_t count, uint32_t max,
                         struct hb_hlo_in_place pair)
{
    if (count < max)
        out[count] = pair;
    return count + 1;
}

/* `output_to_operand_aliasing={{0}: (1, {}), {}: (2, {0})}` */
static uint32_t read_aliasing(const struct hb_hlo_alias *a, uint32_t inst,
                              struct hb_hlo_in_place *out, uint32_t max)
{
    const struct hb_hlo_module *m = a->m;
    struct hb_hlo_span text = hb_hlo_attr(m, inst, "output_to_operand_aliasing");
    struct hb_hlo_lex lex = hb_hlo_lex_span(text);
    uint32_t count = 0;
    if (!text.at || !hb_hlo_take(&lex, '{'))
        return 0;
    while (!hb_hlo_take(&lex, '}')) {
        uint32_t to[HB_HLO_MAX_PATH], from[HB_HLO_MAX_PATH], to_len, from_len;
        int64_t operand;
        if (!hb_hlo_take_path(&lex, to, &to_len) || !hb_hlo_take(&lex, ':') ||
            !hb_hlo_take(&lex, '(') || !hb_hlo_take_int(&lex, &operand) ||
            !hb_hlo_take(&lex, ',') || !hb_hlo_take_path(&lex, from, &from_len) ||
            !hb_hlo_take(&lex, ')') || operand >= m->insts[inst].operand_count)
            return count;
        hb_hlo_take(&lex, ',');
        struct hb_hlo_in_place pair = {.operand = (uint32_t)operand};
        pair.output_slot = hb_hlo_path_slot(&m->shapes, m->insts[inst].shape, to, to_len);
        pair.operand_slot = hb_hlo_path_slot(
            &m->shapes, m->insts[hb_hlo_operand(m, inst, pair.operand)].shape, from, from_len);
        if (pair.output_slot != HB_NONE && pair.operand_slot != HB_NONE)
            count = add_pair(out, count, max, pair);
    }
    return count;
}

/* The first `operands` operands lie where the outputs lie: the result itself, or its elements. */
static uint32_t pair_operands(const struct hb_hlo_alias *a, uint32_t inst, uint32_t operands,
                              struct hb_hlo_in_place *out, uint32_t max)
{
    uint32_t shape = a->m->insts[inst].shape;
    if (operands == 1)
        return add_pair(out, 0, max, (struct hb_hlo_in_place){0, 0, 0});
    uint32_t count = 0;
    for (uint32_t i = 0; i < operands && i < shape_of(a, inst)->child_count; i++)
        count = add_pair(
            out, count, max,
            (struct hb_hlo_in_place){i, 0, hb_hlo_shape_child_slot(&a->m->shapes, shape, i)});
    return count;
}

/* Pairs of an instruction that is no fusion. */
static uint32_t pair_plain(const struct hb_hlo_alias *a, uint32_t inst, struct hb_hlo_in_place *out,
                           uint32_t max)
{
    uint32_t operands = a->m->insts[inst].operand_count;
    enum hb_hlo_op op = hb_hlo_op_of(a->m, inst);
    if (!operands)
        return 0;
    if (op == HB_HLO_OP_DYNAMIC_UPDATE_SLICE || op == HB_HLO_OP_SET_DIMENSION_SIZE)
        return pair_operands(a, inst, 1, out, max);
    if (op == HB_HLO_OP_SCATTER)
        return pair_operands(a, inst, (operands - 1) / 2, out, max);
    if (op == HB_HLO_OP_ALL_REDUCE_START && !hb_hlo_starts_pair(a->m, inst))
        return pair_operands(a, inst, operands, out, max);
    if (op == HB_HLO_OP_COLLECTIVE_PERMUTE && operands == 4)
        return add_pair(out, 0, max, (struct hb_hlo_in_place){1, 0, 0});
    if (op == HB_HLO_OP_RAGGED_ALL_TO_ALL && operands > 1)
        return add_pair(out, 0, max, (struct hb_hlo_in_place){1, 0, 0});
    if (op == HB_HLO_OP_CUSTOM_CALL || op == HB_HLO_OP_ASYNC_START || op == HB_HLO_OP_ASYNC_UPDATE)
        return read_aliasing(a, inst, out, max);
    return 0;
}

static uint32_t pair_any(const struct hb_hlo_alias *a, uint32_t inst, int depth,
                         struct hb_hlo_in_place *out, uint32_t max);

/* The pair of one output of a fusion, if its source is an operation in place. */
static bool pair_output(const struct hb_hlo_alias *a, struct at fusion, int depth,
                        struct hb_hlo_in_place *out)
{
    struct hb_hlo_in_place pairs[HB_HLO_MAX_IN_PLACE];
    const struct hb_hlo_module *m = a->m;
    struct at source = {m->comps[hb_hlo_called(m, fusion.inst, 0)].root, fusion.slot};
    source = follow_back(a, source);
    uint32_t count = pair_any(a, source.inst, depth + 1, pairs, HB_HLO_MAX_IN_PLACE);
    for (uint32_t i = 0; i < count && i < HB_HLO_MAX_IN_PLACE; i++) {
        if (pairs[i].output_slot != source.slot)
            continue;
        struct at input = {hb_hlo_operand(m, source.inst, pairs[i].operand), pairs[i].operand_slot};
        input = follow_back(a, input);
        uint32_t param = m->insts[input.inst].number;
        if (hb_hlo_op_of(m, input.inst) != HB_HLO_OP_PARAMETER ||
            param >= m->insts[fusion.inst].operand_count)
            return false;
        *out = (struct hb_hlo_in_place){param, input.slot, fusion.slot};
        return true;
    }
    return false;
}

static uint32_t pair_any(const struct hb_hlo_alias *a, uint32_t inst, int depth,
                         struct hb_hlo_in_place *out, uint32_t max)
{
    enum { MAX_DEPTH = 3 }; /* of fusions in fusions */
    if (hb_hlo_op_of(a->m, inst) != HB_HLO_OP_FUSION)
        return pair_plain(a, inst, out, max);
    uint32_t count = read_aliasing(a, inst, out, max), shape = a->m->insts[inst].shape;
    uint32_t slots = shape_of(a, inst)->slots;
    if (depth > MAX_DEPTH ||
        shape_of(a, a->m->comps[hb_hlo_called(a->m, inst, 0)].root)->slots != slots)
        return count;
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct hb_hlo_in_place pair;
        uint32_t part = hb_hlo_shape_at_slot(&a->m->shapes, shape, slot);
        if (a->m->shapes.items[part].type != HB_HLO_TUPLE &&
            pair_output(a, (struct at){inst, slot}, depth, &pair))
            count = add_pair(out, count, max, pair);
    }
    return count;
}

uint32_t hb_hlo_in_place(const struct hb_hlo_alias *a, uint32_t inst, struct hb_hlo_in_place *out,
                         uint32_t max)
{
    return pair_any(a, inst, 0, out, max);
}

/* ---- may: what an elementwise walk from a fusion's parameter meets ---- */

static bool is_elementwise(const struct hb_hlo_alias *a, uint32_t inst)
{
    const struct hb_hlo_module *m = a->m;
    enum hb_hlo_op op = hb_hlo_op_of(m, inst);
    if (op != HB_HLO_OP_FUSION)
        return hb_hlo_op_has(op, HB_HLO_ELEMENTWISE);
    if (m->insts[inst].fusion != HB_HLO_LOOP)
        return false;
    const struct hb_hlo_comp *comp = &m->comps[hb_hlo_called(m, inst, 0)];
    for (uint32_t i = comp->first_inst; i < comp->first_inst + comp->inst_count; i++)
        if (hb_hlo_op_of(m, i) != HB_HLO_OP_PARAMETER &&
            (hb_hlo_op_of(m, i) == HB_HLO_OP_FUSION || !is_elementwise(a, i)))
            return false;
    return true;
}

static bool is_elementwise_on(const struct hb_hlo_alias *a, uint32_t inst, uint32_t operand)
{
    if (hb_hlo_op_of(a->m, inst) == HB_HLO_OP_DYNAMIC_UPDATE_SLICE)
        return hb_hlo_operand(a->m, inst, 0) == operand;
    return is_elementwise(a, inst);
}

static uint32_t count_operand(const struct hb_hlo_alias *a, uint32_t inst, uint32_t operand,
                              uint32_t *out_first)
{
    uint32_t count = 0;
    for (uint32_t i = a->m->insts[inst].operand_count; i-- > 0;)
        if (hb_hlo_operand(a->m, inst, i) == operand) {
            *out_first = i;
            count++;
        }
    return count;
}

/* A search marks what it meets. */
static void start_search(struct hb_hlo_alias *a, uint32_t inst, uint32_t *count)
{
    a->search++;
    a->mark[inst] = a->search;
    a->queue[0] = inst;
    *count = 1;
}

static void meet(struct hb_hlo_alias *a, uint32_t inst, uint32_t *count)
{
    if (a->mark[inst] == a->search)
        return;
    a->mark[inst] = a->search;
    a->queue[(*count)++] = inst;
}

/* All that a fusion's parameter leads to is elementwise, or a tuple where that is allowed. */
static bool is_elementwise_below(struct hb_hlo_alias *a, uint32_t param, bool tuples)
{
    uint32_t count;
    start_search(a, param, &count);
    for (uint32_t at = 0; at < count; at++) {
        uint32_t inst = a->queue[at];
        for (uint32_t u = a->users.first[inst]; u < a->users.first[inst + 1]; u++) {
            uint32_t user = a->users.list[u];
            bool tuple = hb_hlo_op_of(a->m, user) == HB_HLO_OP_TUPLE;
            if (tuple ? !tuples : !is_elementwise_on(a, user, inst))
                return false;
            meet(a, user, &count);
        }
    }
    return true;
}

/* Back from an output through what has one operand to the reduction behind it; HB_NONE: none. */
static uint32_t find_reduction(const struct hb_hlo_alias *a, uint32_t output)
{
    for (int step = 0; step < MAX_STEPS; step++) {
        enum hb_hlo_op op = hb_hlo_op_of(a->m, output);
        if (op == HB_HLO_OP_REDUCE)
            return output;
        if ((op != HB_HLO_OP_BITCAST && !hb_hlo_op_has(op, HB_HLO_ELEMENTWISE)) ||
            a->m->insts[output].operand_count != 1)
            return HB_NONE;
        output = hb_hlo_operand(a->m, output, 0);
    }
    return HB_NONE;
}

/* The reduction that a fusion is built around, computed before all its other outputs. */
static uint32_t find_hero(const struct hb_hlo_alias *a, uint32_t fusion)
{
    const struct hb_hlo_module *m = a->m;
    uint32_t root = m->comps[hb_hlo_called(m, fusion, 0)].root, hero = HB_NONE;
    if (m->insts[fusion].fusion == HB_HLO_CUSTOM)
        return HB_NONE;
    if (hb_hlo_op_of(m, root) != HB_HLO_OP_TUPLE)
        return find_reduction(a, root);
    for (uint32_t i = 0; i < m->insts[root].operand_count && hero == HB_NONE; i++)
        hero = find_reduction(a, hb_hlo_operand(m, root, i));
    return hero;
}

/* The instruction in a fusion that makes an output slot. */
static uint32_t find_output(const struct hb_hlo_alias *a, uint32_t fusion, uint32_t slot)
{
    struct at at = {a->m->comps[hb_hlo_called(a->m, fusion, 0)].root, slot};
    while (hb_hlo_op_of(a->m, at.inst) == HB_HLO_OP_TUPLE && at.slot) {
        uint32_t child = 0, shape = a->m->insts[at.inst].shape;
        while (child + 1 < shape_of(a, at.inst)->child_count &&
               hb_hlo_shape_child_slot(&a->m->shapes, shape, child + 1) <= at.slot)
            child++;
        at.slot -= hb_hlo_shape_child_slot(&a->m->shapes, shape, child);
        at.inst = hb_hlo_operand(a->m, at.inst, child);
    }
    return at.inst;
}

struct gpu_walk {
    struct hb_hlo_alias *a;
    uint32_t output; /* that wants the place, and behind its bitcast: */
    uint32_t maker;
    uint32_t hero;
    uint32_t user_slot;
};

/* A slice read where the update writes the same slice. */
static bool reads_own_slice(const struct gpu_walk *w, uint32_t slice)
{
    const struct hb_hlo_module *m = w->a->m;
    if (hb_hlo_op_of(m, w->maker) != HB_HLO_OP_DYNAMIC_UPDATE_SLICE ||
        hb_hlo_op_of(m, slice) != HB_HLO_OP_DYNAMIC_SLICE ||
        m->insts[w->maker].operand_count != m->insts[slice].operand_count + 1u)
        return false;
    return hb_hlo_operand(m, w->maker, 0) == hb_hlo_operand(m, slice, 0) &&
           hb_hlo_shape_same(&m->shapes, m->insts[slice].shape,
                             m->insts[hb_hlo_operand(m, w->maker, 1)].shape);
}

static bool slices_agree(const struct gpu_walk *w, uint32_t slice)
{
    const struct hb_hlo_module *m = w->a->m;
    if (hb_hlo_shape_of(m, slice)->elements == 1)
        return true;
    for (uint32_t i = 1; i < m->insts[slice].operand_count; i++)
        if (hb_hlo_operand(m, slice, i) != hb_hlo_operand(m, w->maker, i + 1))
            return false;
    return true;
}

/* Whether the walk may pass from an instruction to one of its users. */
static bool may_pass(const struct gpu_walk *w, uint32_t from, uint32_t user)
{
    const struct hb_hlo_module *m = w->a->m;
    enum hb_hlo_op op = hb_hlo_op_of(m, user);
    uint32_t first = 0, uses = count_operand(w->a, user, from, &first);
    if (user == w->maker && op == HB_HLO_OP_SCATTER && uses == 1 &&
        first < (m->insts[user].operand_count - 1) / 2)
        return true;
    if (user == w->maker && op == HB_HLO_OP_SORT && uses == 1)
        return w->user_slot == (m->insts[user].operand_count == 1 ? 0 : first + 1);
    if (reads_own_slice(w, user))
        return slices_agree(w, user);
    if ((is_elementwise_on(w->a, user, from) && op != HB_HLO_OP_COPY) || op == HB_HLO_OP_BITCAST ||
        op == HB_HLO_OP_TUPLE || user == w->hero)
        return true;
    return user == w->maker && op == HB_HLO_OP_DYNAMIC_UPDATE_SLICE && first == 1;
}

/* Roots of the fusion other than the output that the search met: all must run in its order. */
static bool others_agree(const struct gpu_walk *w, uint32_t fusion)
{
    const struct hb_hlo_module *m = w->a->m;
    uint32_t root = m->comps[hb_hlo_called(m, fusion, 0)].root;
    bool other = false, transposed = false;
    if (hb_hlo_op_of(m, root) != HB_HLO_OP_TUPLE)
        return true;
    for (uint32_t i = 0; i < m->insts[root].operand_count; i++) {
        uint32_t at = hb_hlo_operand(m, root, i);
        if (w->a->mark[at] != w->a->search)
            continue;
        other = other || at != w->output;
        transposed = transposed || hb_hlo_op_of(m, at) == HB_HLO_OP_TRANSPOSE ||
                     hb_hlo_op_of(m, at) == HB_HLO_OP_COPY;
    }
    return !other || (is_elementwise(w->a, w->maker) && !transposed);
}

static bool may_share_gpu_fusion(struct hb_hlo_alias *a, uint32_t operand, uint32_t user,
                                 uint32_t user_slot, uint32_t nth)
{
    const struct hb_hlo_module *m = a->m;
    const struct hb_hlo_shape *from = hb_hlo_shape_of(m, operand);
    uint32_t out_shape = hb_hlo_shape_at_slot(&m->shapes, m->insts[user].shape, user_slot);
    const struct hb_hlo_shape *to = &m->shapes.items[out_shape];
    const struct hb_hlo_comp *comp = &m->comps[hb_hlo_called(m, user, 0)];
    if (!hb_hlo_shape_same(&m->shapes, m->insts[operand].shape, out_shape) &&
        (from->type == HB_HLO_TUPLE || to->type == HB_HLO_TUPLE || from->elements != to->elements ||
         hb_hlo_type_bits(from->type) != hb_hlo_type_bits(to->type)))
        return false;
    if (nth >= comp->param_count)
        return false;
    struct gpu_walk w = {.a = a, .output = find_output(a, user, user_slot), .user_slot = user_slot};
    w.maker = w.output;
    if (hb_hlo_op_of(m, w.maker) == HB_HLO_OP_BITCAST)
        w.maker = hb_hlo_operand(m, w.maker, 0);
    w.hero = find_hero(a, user);
    bool found = false;
    uint32_t count;
    start_search(a, m->params[comp->params_at + nth], &count);
    for (uint32_t at = 0; at < count; at++) {
        uint32_t inst = a->queue[at];
        found = found || inst == w.output;
        if (inst == w.hero)
            continue;
        for (uint32_t u = a->users.first[inst]; u < a->users.first[inst + 1]; u++) {
            meet(a, a->users.list[u], &count);
            if (!may_pass(&w, inst, a->users.list[u]))
                return false;
        }
    }
    return found && others_agree(&w, user);
}

/* ---- may: backends' own ---- */

enum answer { NO, YES, NOT_TOLD };

/* A cuBLAS call adds onto its third operand where beta is not 0; cholesky works in place. */
static enum answer ask_gpu_call(const struct hb_hlo_alias *a, uint32_t operand, uint32_t user,
                                uint32_t user_slot)
{
    struct hb_hlo_span target = hb_hlo_attr(a->m, user, "custom_call_target");
    if (!target.at)
        return NO;
    if (hb_hlo_span_find(target, "cholesky"))
        return user_slot == 1 ? YES : NO;
    if (!hb_hlo_span_find(target, "__cublas$"))
        return NO;
    struct hb_hlo_span config = hb_hlo_attr(a->m, user, "backend_config");
    const char *beta = config.at ? hb_hlo_span_find(config, "\"beta\":") : NULL;
    int64_t digits[2] = {0};
    if (!beta || a->m->insts[user].operand_count < 3)
        return NO;
    struct hb_hlo_span rest = {beta, (size_t)(config.at + config.len - beta)};
    const char *stop = hb_hlo_span_find(rest, ",");
    rest.len = stop ? (size_t)(stop - beta) : rest.len;
    uint32_t found = hb_hlo_numbers(rest, digits, 2);
    bool zero = (found < 1 || !digits[0]) && (found < 2 || !digits[1]);
    return !zero && hb_hlo_operand(a->m, user, 2) == operand ? YES : NO;
}

static enum answer ask_gpu(struct hb_hlo_alias *a, uint32_t operand, uint32_t user,
                           uint32_t user_slot, uint32_t nth)
{
    enum hb_hlo_op op = hb_hlo_op_of(a->m, user);
    if (op == HB_HLO_OP_FUSION)
        return may_share_gpu_fusion(a, operand, user, user_slot, nth) ? YES : NO;
    if (op == HB_HLO_OP_ALL_REDUCE)
        return a->m->insts[user].operand_count == 1 || user_slot == nth + 1 ? YES : NO;
    return op == HB_HLO_OP_CUSTOM_CALL ? ask_gpu_call(a, operand, user, user_slot) : NOT_TOLD;
}

/* Place of a leaf slot among the leaves of a shape. */
static uint32_t leaf_of(const struct hb_hlo_alias *a, uint32_t shape, uint32_t slot)
{
    uint32_t leaf = 0;
    for (uint32_t s = 0; s < slot; s++)
        leaf +=
            a->m->shapes.items[hb_hlo_shape_at_slot(&a->m->shapes, shape, s)].type != HB_HLO_TUPLE;
    return leaf;
}

/* `"aliasing_operands":{"lists":[{"indices":["0","4"]}]}`: operands, each counted once, then the
 * outputs' leaves. */
static enum answer ask_tpu(const struct hb_hlo_alias *a, uint32_t operand, uint32_t user,
                           uint32_t user_slot)
{
    enum { MOST = 64 };
    struct hb_hlo_span config = hb_hlo_attr(a->m, user, "backend_config");
    const char *lists = config.at ? hb_hlo_span_find(config, "\"aliasing_operands\"") : NULL;
    if (!lists)
        return NOT_TOLD;
    uint32_t unique = 0, nth = HB_NONE;
    for (uint32_t i = 0; i < a->m->insts[user].operand_count; i++) {
        uint32_t at = hb_hlo_operand(a->m, user, i), first = i;
        count_operand(a, user, at, &first);
        if (at == operand && nth == HB_NONE)
            nth = unique;
        unique += first == i;
    }
    int64_t output = (int64_t)unique + leaf_of(a, a->m->insts[user].shape, user_slot);
    struct hb_hlo_lex lex = {lists + sizeof "\"aliasing_operands\":" - 1, config.at + config.len};
    const char *first = lex.at;
    hb_hlo_skip_brackets(&lex);
    struct hb_hlo_span rest = {first, (size_t)(lex.at - first)};
    for (const char *at; (at = hb_hlo_span_find(rest, "\"indices\":["));) {
        rest.len -= (size_t)(at + 11 - rest.at);
        rest.at = at + 11;
        const char *close = hb_hlo_span_find(rest, "]");
        int64_t numbers[MOST];
        struct hb_hlo_span list = {rest.at, close ? (size_t)(close - rest.at) : rest.len};
        uint32_t count = hb_hlo_numbers(list, numbers, MOST);
        bool has_operand = false, has_output = false;
        for (uint32_t i = 0; i < count; i++) {
            has_operand = has_operand || numbers[i] == (int64_t)nth;
            has_output = has_output || numbers[i] == output;
        }
        if (has_operand && has_output)
            return YES;
    }
    return NO;
}

/* ---- may: what holds everywhere ---- */

/* An output fusion add(dot, x) may lie in x. */
static bool is_added_operand(const struct hb_hlo_alias *a, uint32_t user, uint32_t nth)
{
    const struct hb_hlo_module *m = a->m;
    const struct hb_hlo_comp *comp = &m->comps[hb_hlo_called(m, user, 0)];
    if (hb_hlo_op_of(m, comp->root) != HB_HLO_OP_ADD || nth >= comp->param_count ||
        m->insts[comp->root].operand_count != 2)
        return false;
    uint32_t param = m->params[comp->params_at + nth];
    for (uint32_t i = 0; i < 2; i++) {
        enum hb_hlo_op op = hb_hlo_op_of(m, hb_hlo_operand(m, comp->root, i));
        if (op == HB_HLO_OP_DOT || op == HB_HLO_OP_CONVOLUTION)
            return hb_hlo_operand(m, comp->root, 1 - i) == param &&
                   a->users.first[param + 1] - a->users.first[param] == 1;
    }
    return false;
}

static bool may_share_fusion(struct hb_hlo_alias *a, uint32_t user, uint32_t nth)
{
    const struct hb_hlo_module *m = a->m;
    const struct hb_hlo_comp *comp = &m->comps[hb_hlo_called(m, user, 0)];
    if (nth >= comp->param_count)
        return false;
    if (m->insts[user].fusion == HB_HLO_OUTPUT && hb_hlo_op_of(m, comp->root) == HB_HLO_OP_ADD)
        return is_added_operand(a, user, nth);
    bool tuples = m->insts[user].fusion == HB_HLO_LOOP || m->insts[user].fusion == HB_HLO_INPUT;
    return is_elementwise_below(a, m->params[comp->params_at + nth], tuples);
}

/* The result of a call lies in an operand that only the call and its elementwise root use. */
static bool may_share_call(const struct hb_hlo_alias *a, uint32_t operand, uint32_t user,
                           uint32_t nth)
{
    const struct hb_hlo_module *m = a->m;
    const struct hb_hlo_comp *comp = &m->comps[hb_hlo_called(m, user, 0)];
    if (nth >= comp->param_count || a->users.first[operand + 1] - a->users.first[operand] != 1)
        return false;
    uint32_t param = m->params[comp->params_at + nth];
    return a->users.first[param + 1] - a->users.first[param] == 1 &&
           a->users.list[a->users.first[param]] == comp->root &&
           is_elementwise_on(a, comp->root, param);
}

static bool may_share_plain(struct hb_hlo_alias *a, uint32_t operand, uint32_t user,
                            uint32_t user_slot, uint32_t nth)
{
    enum hb_hlo_op op = hb_hlo_op_of(a->m, user);
    uint32_t first = nth, uses = count_operand(a, user, operand, &first);
    if (op == HB_HLO_OP_FUSION)
        return may_share_fusion(a, user, nth);
    if (op == HB_HLO_OP_WHILE || op == HB_HLO_OP_CONDITIONAL)
        return true;
    if (op == HB_HLO_OP_DYNAMIC_UPDATE_SLICE || op == HB_HLO_OP_SCATTER ||
        op == HB_HLO_OP_SET_DIMENSION_SIZE)
        return uses == 1 && first == 0;
    if (op == HB_HLO_OP_TRIANGULAR_SOLVE)
        return uses == 1 && first == 1;
    if (op == HB_HLO_OP_SORT)
        return a->users.first[operand + 1] - a->users.first[operand] == 1 &&
               (a->m->insts[user].operand_count == 1 || (uses == 1 && user_slot == first + 1));
    if (op == HB_HLO_OP_CALL)
        return may_share_call(a, operand, user, nth);
    return is_elementwise_on(a, user, operand);
}

static bool must_share(const struct hb_hlo_alias *a, uint32_t operand, uint32_t operand_slot,
                       uint32_t user, uint32_t user_slot)
{
    struct hb_hlo_in_place pairs[HB_HLO_MAX_IN_PLACE];
    uint32_t count = hb_hlo_in_place(a, user, pairs, HB_HLO_MAX_IN_PLACE);
    for (uint32_t i = 0; i < count && i < HB_HLO_MAX_IN_PLACE; i++)
        if (pairs[i].output_slot == user_slot && pairs[i].operand_slot == operand_slot &&
            hb_hlo_operand(a->m, user, pairs[i].operand) == operand)
            return true;
    return false;
}

bool hb_hlo_may_share(struct hb_hlo_alias *a, uint32_t operand, uint32_t operand_slot,
                      uint32_t user, uint32_t user_slot)
{
    const struct hb_hlo_module *m = a->m;
    uint32_t nth = HB_NONE;
    if (hb_hlo_op_of(m, operand) == HB_HLO_OP_CONSTANT || !count_operand(a, user, operand, &nth))
        return false;
    bool same = hb_hlo_shape_same(
        &m->shapes, hb_hlo_shape_at_slot(&m->shapes, m->insts[operand].shape, operand_slot),
        hb_hlo_shape_at_slot(&m->shapes, m->insts[user].shape, user_slot));
    if (same && must_share(a, operand, operand_slot, user, user_slot))
        return true;
    enum answer told = NOT_TOLD;
    if (m->dialect->backend == HB_HLO_GPU)
        told = ask_gpu(a, operand, user, user_slot, nth);
    else if (m->dialect->backend == HB_HLO_TPU)
        told = ask_tpu(a, operand, user, user_slot);
    if (told != NOT_TOLD)
        return told == YES;
    return same && may_share_plain(a, operand, user, user_slot, nth);
}
