/* Computations are made outermost first, those of one depth in order; each knows from its loop
 * which buffers come from outside and with what value. Buffers are told apart by their root. */
#include "sim/graph/step.h"

#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/graph/maker.h"

/* A buffer that a loop shares with what is around it. */
struct shared {
    uint32_t root;
    uint32_t value;  /* that the loop finds; HB_NONE: it is made inside */
    uint32_t holder; /* op around the loop that has it */
    bool carried;    /* a trip writes it */
};

/* A computation: the entry, or a loop's body. */
struct frame {
    uint32_t loop; /* HB_NONE: the entry */
    struct shared *shared;
    uint32_t shared_count;
};

static void find_spans(struct maker *m)
{
    const struct hb_program *p = m->p;
    for (uint32_t b = 0; b < p->buf_count; b++) {
        m->root[b] = hb_program_root(p, b);
        m->first[b] = HB_NONE;
    }
    for (uint32_t b = 0; b < p->buf_count; b++) {
        m->first[m->root[b]] = p->bufs[b].argument ? 0 : m->first[m->root[b]];
        m->last[m->root[b]] = p->bufs[b].output ? HB_NONE : m->last[m->root[b]];
    }
    for (uint32_t i = 0; i < p->op_count; i++)
        for (uint32_t r = 0; r < hb_maker_ref_count(&p->ops[i]); r++) {
            uint32_t root = m->root[hb_maker_refs(m, &p->ops[i])[r]];
            m->first[root] = m->first[root] < i + 1 ? m->first[root] : i + 1;
            m->last[root] = m->last[root] > i + 1 ? m->last[root] : i + 1;
        }
}

/* --- ops --- */

uint32_t hb_maker_add_op(struct maker *m, uint32_t item)
{
    uint32_t op = hb_graph_add_op(m->g);
    m->item = hb_grow(m->arena, m->item, op, &m->item_cap, sizeof *m->item);
    m->item[op] = item;
    return op;
}

/* In a buffer's place. XLA:TPU's estimate has no eye for spaces: what is on the host counts
 * as well (30 dumps with offloaded stacks). */
void hb_maker_make_value(struct maker *m, uint32_t root, uint32_t op)
{
    const struct hb_buf *b = &m->p->bufs[root];
    bool all = m->p->compiler == HB_XLA_TPU;
    int64_t bytes = b->space == HB_SPACE_HBM || all ? b->bytes : 0;
    if (m->stacked > 0 && b->slices > 0)
        bytes = hb_mul_sat(bytes / b->slices, m->stacked);
    m->value[root] = hb_graph_add_value(m->g, bytes);
    m->g->values[m->value[root]].place = root;
    m->holder[root] = op;
}

/* A product whose sum goes round in a ring, which is told behind it. */
static bool is_in_ring(const struct maker *m, uint32_t item)
{
    if (item >= m->p->op_count - 1) /* HB_NONE, or nothing behind it */
        return false;
    const struct hb_op *next = &m->p->ops[item + 1];
    return next->kind == HB_OP_REDUCE_SCATTER && hb_maker_ref_count(next) == 0;
}

/* Who makes what the next trip finds in its place runs behind all that read what this one found
 * (copy insertion's control edges: the add that ends a layer behind its input's way into the stack,
 * %add.1397 of llama2-7b over fsdp 8 and tensor 2 of v6e). Rings are loops, which nothing waits
 * for: there it is copied to its place at the trip's end (%copy.587 behind %while.167). */
static void wait_for_readers(struct maker *m, const struct hb_op *op)
{
    const struct hb_graph *g = m->g;
    for (uint32_t k = op->read_count; k < hb_maker_ref_count(op); k++) {
        uint32_t value = m->value[m->root[hb_maker_refs(m, op)[k]]];
        if (value == HB_NONE || g->values[value].op != m->found)
            continue;
        for (uint32_t t = 0; t < g->touch_count; t++)
            if (g->touches[t].value == value && g->touches[t].until == HB_GRAPH_OP &&
                !is_in_ring(m, m->item[g->touches[t].at]))
                hb_graph_add_ref(m->g, HB_GRAPH_AFTER, g->touches[t].at);
    }
}

static void add_uses(struct maker *m, uint32_t op, const uint32_t *roots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (m->value[roots[i]] != HB_NONE) {
            hb_graph_add_ref(m->g, HB_GRAPH_USES, m->value[roots[i]]);
            hb_graph_touch(m->g, m->value[roots[i]], HB_GRAPH_OP, op);
        }
}

static void add_holders(struct maker *m, const uint32_t *roots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (m->value[roots[i]] != HB_NONE)
            hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->holder[roots[i]]);
}

/* The op reads these, each once, or hands them on. */
void hb_maker_add_operands(struct maker *m, uint32_t op, const uint32_t *roots, uint32_t count)
{
    add_holders(m, roots, count);
    add_uses(m, op, roots, count);
}

/* Roots of what an op touches, each once; what it writes into first, as in XLA's updates. */
static uint32_t list_roots(struct maker *m, const struct hb_op *op, uint32_t *out)
{
    uint32_t count = 0;
    m->stamp++;
    for (uint32_t i = 0; i < hb_maker_ref_count(op); i++) {
        uint32_t at = (i + op->read_count) % hb_maker_ref_count(op),
                 root = m->root[hb_maker_refs(m, op)[at]];
        bool host = m->p->bufs[root].space != HB_SPACE_HBM;
        if (host && at >= op->read_count && op->loop == HB_NONE) /* a copy of its own */
            continue;
        if (m->seen[root] != m->stamp)
            out[count++] = root;
        m->seen[root] = m->stamp;
    }
    return count;
}

/* A pass over a tensor in its place, which XLA has inside of who reads it: no value of its own. */
static bool is_pass(const struct maker *m, const struct hb_op *op, uint32_t root)
{
    return op->kind == HB_OP_REDUCE && m->value[root] != HB_NONE;
}

static void make_written(struct maker *m, const struct hb_op *op, uint32_t at, uint32_t only)
{
    m->stamp++;
    for (uint32_t i = op->read_count; i < hb_maker_ref_count(op); i++) {
        uint32_t root = m->root[hb_maker_refs(m, op)[i]];
        if (only != HB_NONE && root != only)
            continue;
        if (m->seen[root] != m->stamp && is_pass(m, op, root))
            m->holder[root] = at;
        else if (m->seen[root] != m->stamp)
            hb_maker_make_value(m, root, at);
        m->seen[root] = m->stamp;
    }
}

static bool is_scalar(const struct maker *m, const struct hb_op *op)
{
    enum { SCALAR_BYTES = 4 };
    for (uint32_t i = op->read_count; i < hb_maker_ref_count(op); i++)
        if (m->p->bufs[hb_maker_refs(m, op)[i]].bytes > SCALAR_BYTES)
            return false;
    return true;
}

/* What is under way is kept until it is done. */
static void wait_for(struct maker *m, const struct hb_op *start, uint32_t at)
{
    for (uint32_t r = 0; r < hb_maker_ref_count(start); r++) {
        uint32_t value = m->value[m->root[hb_maker_refs(m, start)[r]]];
        if (value != HB_NONE)
            hb_graph_touch(m->g, value, HB_GRAPH_OP, at);
    }
}

/* XLA:GPU has each collective as a start and what waits for it, which keeps what it reads, too. */
static bool is_async(const struct maker *m, const struct hb_op *op)
{
    return m->p->compiler == HB_XLA_GPU && op->stream >= HB_STREAM_COLLECTIVE;
}

static void add_done(struct maker *m, const struct hb_op *op, uint32_t start)
{
    uint32_t at = hb_maker_add_op(m, HB_NONE), count = list_roots(m, op, m->roots);
    m->g->ops[start].soon = m->g->ops[at].late = true;
    hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, start);
    for (uint32_t i = 0; i < count; i++)
        if (m->value[m->roots[i]] != HB_NONE)
            hb_graph_add_ref(m->g, HB_GRAPH_USES, m->value[m->roots[i]]);
    wait_for(m, op, at);
    for (uint32_t i = op->read_count; i < hb_maker_ref_count(op); i++)
        m->holder[m->root[hb_maker_refs(m, op)[i]]] = at;
}

/* Two casts of one value are one (HloCSE); gathers are not, each has a channel of its own. */
static bool is_made_already(struct maker *m, uint32_t i)
{
    const struct hb_op *op = &m->p->ops[i];
    if (op->kind != HB_OP_ELEMENTWISE || op->read_count != 1 || op->write_count != 1)
        return false;
    uint32_t from = m->root[hb_maker_refs(m, op)[0]], to = hb_maker_refs(m, op)[1];
    if (m->value[from] == HB_NONE || m->value[m->root[to]] != HB_NONE)
        return false;
    uint32_t *cast = &m->cast_of[from];
    if (*cast != HB_NONE && m->cast_from[from] == m->value[from] &&
        m->p->bufs[*cast].plain_bytes == m->p->bufs[to].plain_bytes) {
        m->value[to] = m->value[*cast];
        m->holder[to] = m->holder[*cast];
        return true;
    }
    *cast = to;
    m->cast_from[from] = m->value[from];
    return false;
}

/* A number out of many tensors is made of one of each, where that is made. */
static bool is_sum_of_many(const struct maker *m, const struct hb_op *op)
{
    return op->kind == HB_OP_REDUCE && is_scalar(m, op);
}

/* The norm of all gradients, a number that the program does not name: updates wait for it. */
static bool is_norm(const struct hb_op *op)
{
    return op->kind == HB_OP_REDUCE && op->write_count == 0;
}

static void read_again(struct maker *m, const struct hb_op *op)
{
    for (uint32_t i = 0; i < op->read_count; i++)
        for (int k = 0; k < 2 && m->root[hb_maker_refs(m, op)[i]] == m->read_again.root; k++)
            hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->read_again.ops[k]);
}

/* It hands out where from, where to, and a mark, so a list has zeros of its size before it; of
 * equals the first of the tree goes first. */
static void note_copy(struct maker *m, const struct hb_op *op)
{
    enum { TABLE = 28 };
    hb_graph_add_value(m->g, TABLE);
    uint32_t root = m->root[hb_maker_refs(m, op)[op->read_count]],
             done = hb_parts_read(m, root, HB_NONE);
    m->g->ops[done].rank = 1 + m->tree[root];
    m->holder[root] = done;
}

/* Over several TPUs one collective sums the loss and the last norm's gradient, which comes with the
 * product before its backward pass (32 layers of 4,096 over 64 of v6e, one sequence: f32 logits
 * stand, depth-first, to the end of the layers, where no product reads them any more). */
static bool is_norm_back(const struct maker *m, const struct hb_op *op)
{
    return m->p->compiler == HB_XLA_TPU && op->loop == HB_NONE && m->labels != HB_NONE &&
           m->norm_back == HB_NONE && op->read_count > 1 &&
           m->p->bufs[hb_maker_refs(m, op)[0]].category != HB_CAT_LOGITS;
}

static bool is_norm_update(const struct maker *m, const struct hb_op *op)
{
    return op->write_count > 0 && op->kind != HB_OP_HOST_COPY &&
           hb_tree_rank(m->p->bufs[hb_maker_refs(m, op)[op->read_count]].name) == HB_TREE_NORM;
}

static uint32_t add_given(struct maker *m)
{
    uint32_t at = hb_maker_add_op(m, HB_NONE);
    m->g->ops[at].given = m->g->ops[at].early = true;
    return at;
}

/* A vector's gradient, too small for the program to say that a TPU's loop hands it on: zeros. */
static bool is_made_in_loop(const struct maker *m, const struct hb_op *op)
{
    if (m->p->compiler != HB_XLA_TPU || op->phase != HB_PHASE_OPTIMIZER || op->loop != HB_NONE)
        return false;
    for (uint32_t i = 0; i < op->read_count; i++) {
        uint32_t root = m->root[hb_maker_refs(m, op)[i]];
        uint32_t from = m->value[root] == HB_NONE ? HB_NONE : m->holder[root];
        if (from != HB_NONE && m->p->bufs[root].category == HB_CAT_GRADIENTS &&
            hb_graph_ref_count(m->g, from, HB_GRAPH_OPERAND) == 0)
            return true;
    }
    return false;
}

/* What it waits for beside what it reads. */
static void add_waits(struct maker *m, const struct hb_op *op)
{
    if (op->kind == HB_OP_MATMUL)
        read_again(m, op);
    if (m->joined != HB_NONE && is_norm_update(m, op))
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->joined);
    if (m->layers != HB_NONE && is_made_in_loop(m, op))
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->layers);
    if (op->kind == HB_OP_DONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->op_of[op->start]);
    if (m->norm != HB_NONE && op->loop == HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->norm);
    if (m->product != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->product);
}

static void add_program_op(struct maker *m, uint32_t i)
{
    const struct hb_op *op = &m->p->ops[i];
    if (is_made_already(m, i))
        return;
    uint32_t count = list_roots(m, op, m->roots);
    uint32_t sum = is_sum_of_many(m, op) ? hb_parts_of_sum(m, count) : HB_NONE;
    struct hb_factored factored = hb_parts_find_factored(m, op);
    bool apart = factored.weight != HB_NONE;
    struct hb_parts parts = apart ? hb_parts_add_factored(m, factored, i) : hb_parts_of_loss(m, op);
    uint32_t weight = apart                 ? factored.weight
                      : op->write_count > 1 ? hb_parts_turned_weight(m, op)
                                            : HB_NONE;
    if (weight != HB_NONE && !apart)
        count = hb_parts_add_moments(m, op, weight, count);
    hb_parts_note_turned(m, op);
    uint32_t at = hb_maker_add_op(m, i);
    for (int k = 0; k < parts.count; k++)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, parts.ops[k]);
    m->op_of[i] = at;
    m->g->ops[at].ring = is_in_ring(m, i);
    add_waits(m, op);
    m->product = op->kind == HB_OP_MATMUL && op->write_count == 0 ? at : HB_NONE;
    m->norm = is_norm(op) ? at : m->norm;
    if (sum != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, sum);
    else {
        add_holders(m, m->roots, count);
        wait_for_readers(m, op);
        add_uses(m, at, m->roots, count);
    }
    make_written(m, op, at, weight);
    if (op->kind == HB_OP_HOST_COPY)
        note_copy(m, op);
    hb_parts_hand_out(m, op, at);
    if (is_async(m, op))
        add_done(m, op, at);
    if (!is_norm_back(m, op))
        return;
    m->norm_back = m->holder[m->root[hb_maker_refs(m, op)[0]]];
    if (!m->sums_all)
        hb_parts_join(m, NULL, 0);
}

/* --- loops --- */

static uint32_t *by_buf(const struct maker *m)
{
    return hb_arena_alloc(m->arena, m->p->buf_count, sizeof(uint32_t));
}

/* As JAX hands it over: what goes from trip to trip, then what is only read. */
static void sort_shared(struct maker *m, struct frame *f)
{
    struct shared *sorted = hb_arena_raw(m->arena, f->shared_count + 1, sizeof *sorted);
    uint32_t count = 0;
    for (int turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; i < f->shared_count; i++)
            if (f->shared[i].carried == !turn)
                sorted[count++] = f->shared[i];
    f->shared = sorted;
}

/* Finds which memory the loop shares with what is around it. */
static void find_shared(struct maker *m, uint32_t loop, struct frame *out)
{
    const struct hb_loop *l = &m->p->loops[loop];
    uint32_t cap = 0;
    *out = (struct frame){.loop = loop};
    m->stamp++;
    for (uint32_t i = l->first_op; i < l->end_op; i++)
        for (uint32_t r = 0; r < hb_maker_ref_count(&m->p->ops[i]); r++) {
            uint32_t root = m->root[hb_maker_refs(m, &m->p->ops[i])[r]];
            bool inside = m->first[root] > l->first_op && m->last[root] <= l->end_op;
            if (inside || m->seen[root] == m->stamp)
                continue;
            m->seen[root] = m->stamp;
            m->slot[root] = out->shared_count;
            out->shared =
                hb_grow(m->arena, out->shared, out->shared_count, &cap, sizeof *out->shared);
            out->shared[out->shared_count++] =
                (struct shared){.root = root, .value = m->value[root]};
        }
    for (uint32_t i = l->first_op; i < l->end_op; i++)
        for (uint32_t r = m->p->ops[i].read_count; r < hb_maker_ref_count(&m->p->ops[i]); r++) {
            uint32_t root = m->root[hb_maker_refs(m, &m->p->ops[i])[r]];
            if (m->seen[root] != m->stamp)
                continue;
            out->shared[m->slot[root]].carried = true;
        }
    sort_shared(m, out);
}

static void list_shared(struct maker *m, const struct frame *f)
{
    for (uint32_t i = 0; i < f->shared_count; i++)
        m->roots[i] = f->shared[i].root;
}

/* A part of what a tuple op has: nothing of its own. The list thinks that it needs all of it, as
 * the part before it, whose references it shares: a loop of unrolled layers hands out thousands. */
static void hand_out(struct maker *m, uint32_t root, uint32_t from)
{
    uint32_t at = hb_maker_add_op(m, HB_NONE);
    const struct hb_graph_op *tuple = &m->g->ops[from];
    if (at > from + 1)
        memcpy(m->g->ops[at].refs_at, tuple[1].refs_at, sizeof tuple->refs_at);
    else
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, from);
    for (uint32_t v = 0; v < tuple->value_count && at == from + 1; v++)
        hb_graph_add_ref(m->g, HB_GRAPH_USES, tuple->first_value + v);
    hb_graph_touch(m->g, m->value[root], HB_GRAPH_OP, at);
    m->holder[root] = at;
}

/* A tuple of all that it finds, the loop, and what is used of it afterwards. */
static void add_loop(struct maker *m, uint32_t loop)
{
    struct frame f;
    find_shared(m, loop, &f);
    uint32_t body = m->frame_count, tuple = hb_maker_add_op(m, HB_NONE);
    list_shared(m, &f);
    hb_maker_add_operands(m, tuple, m->roots, f.shared_count);
    uint32_t at = hb_maker_add_op(m, m->p->op_count + loop);
    hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, tuple);
    for (uint32_t i = 0; i < f.shared_count; i++)
        if (f.shared[i].value != HB_NONE) {
            hb_graph_add_ref(m->g, HB_GRAPH_USES, f.shared[i].value);
            hb_graph_touch(m->g, f.shared[i].value, HB_GRAPH_START, body);
        }
    hb_graph_add_ref(m->g, HB_GRAPH_RUNS, body);
    m->layers = m->p->loops[loop].parent == HB_NONE ? at : m->layers;
    for (uint32_t i = 0; i < f.shared_count; i++)
        if (f.shared[i].carried)
            hb_maker_make_value(m, f.shared[i].root, at);
    for (uint32_t i = 0; i < f.shared_count; i++)
        if (f.shared[i].carried && m->last[f.shared[i].root] > m->p->loops[loop].end_op)
            hand_out(m, f.shared[i].root, at);
    m->frames = hb_grow(m->arena, m->frames, m->frame_count, &m->frame_cap, sizeof *m->frames);
    m->frames[m->frame_count++] = f;
}

/* The ops of a computation, loops directly within as one. */
static void add_ops(struct maker *m, uint32_t loop)
{
    const struct hb_program *p = m->p;
    uint32_t end = loop == HB_NONE ? p->op_count : p->loops[loop].end_op;
    for (uint32_t i = loop == HB_NONE ? 0 : p->loops[loop].first_op; i < end; i++) {
        uint32_t in = p->ops[i].loop;
        bool marks = p->ops[i].kind == HB_OP_MARK && p->ops[i].write_count == 0;
        if (in == loop) {
            if (!marks)
                add_program_op(m, i);
            continue;
        }
        while (p->loops[in].parent != loop)
            in = p->loops[in].parent;
        add_loop(m, in);
        i = p->loops[in].end_op - 1;
    }
}

/* --- computations --- */

/* Those that the step does not hand back in their own place stay the caller's. */
static void add_arguments(struct maker *m, struct hb_step_graph *out)
{
    const struct hb_program *p = m->p;
    uint32_t count = 0;
    for (uint32_t b = 0; b < p->buf_count; b++)
        if (p->bufs[b].argument && m->root[b] == b)
            m->roots[count++] = b;
    hb_tree_sort(m, m->roots, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t b = m->roots[i];
        hb_maker_make_value(m, b, add_given(m));
        out->argument_bytes = hb_add_sat(out->argument_bytes, m->g->values[m->value[b]].bytes);
        if (m->last[b] != HB_NONE)
            hb_graph_touch(m->g, m->value[b], HB_GRAPH_END, 0);
    }
}

/* Everything shared, as the body finds it at the start of a trip. */
static void add_found(struct maker *m, const struct frame *f)
{
    uint32_t at = add_given(m);
    m->found = m->p->compiler == HB_XLA_TPU ? at : HB_NONE;
    for (uint32_t i = 0; i < f->shared_count; i++) {
        m->value[f->shared[i].root] = f->shared[i].value;
        if (f->shared[i].value == HB_NONE)
            continue;
        if (f->shared[i].carried)
            hb_maker_make_value(m, f->shared[i].root, at);
        else
            hb_graph_touch(m->g, f->shared[i].value, HB_GRAPH_OP, at);
    }
    for (uint32_t i = 0; i < f->shared_count; i++)
        if (f->shared[i].value != HB_NONE)
            hand_out(m, f->shared[i].root, at);
}

/* The loss is what a loop over microbatches carries first, and what the step hands back last. */
static void add_root(struct maker *m, uint32_t comp, uint32_t count)
{
    uint32_t at = hb_maker_add_op(m, HB_NONE);
    if (comp > 0 && m->labels != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->labels);
    for (uint32_t i = 0; i < count; i++)
        if (m->value[m->roots[i]] != HB_NONE)
            hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->holder[m->roots[i]]);
    if (comp == 0 && m->labels != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->labels);
    add_uses(m, at, m->roots, count);
    for (uint32_t i = 0; i < count; i++)
        if (m->value[m->roots[i]] != HB_NONE)
            hb_graph_touch(m->g, m->value[m->roots[i]], HB_GRAPH_END, comp);
    m->g->comps[comp].root = at;
}

/* What the step hands back: a tree in the order of its names, all first moments, all second ones,
 * the weights; and the rest. */
static uint32_t list_outputs(struct maker *m)
{
    enum { TURNS = 4 };
    const struct hb_program *p = m->p;
    uint32_t count = 0;
    for (uint32_t turn = 1; turn <= TURNS; turn++) {
        uint32_t from = count;
        for (uint32_t b = 0, nth = 0; b < p->buf_count; b++) {
            if (m->root[b] != b || m->last[b] != HB_NONE)
                continue;
            bool state = p->bufs[b].category == HB_CAT_OPTIMIZER;
            nth = state ? nth + 1 : 0;
            if (nth % TURNS == turn % TURNS)
                m->roots[count++] = b;
        }
        hb_tree_sort(m, m->roots + from, count - from);
    }
    return count;
}

static void add_entry(struct maker *m, struct hb_step_graph *out)
{
    add_arguments(m, out);
    add_ops(m, HB_NONE);
    add_root(m, 0, list_outputs(m));
}

/* Of what the loop's ops touch. */
static void forget_values(struct maker *m, uint32_t loop)
{
    for (uint32_t i = m->p->loops[loop].first_op; i < m->p->loops[loop].end_op; i++)
        for (uint32_t r = 0; r < hb_maker_ref_count(&m->p->ops[i]); r++) {
            uint32_t buf = hb_maker_refs(m, &m->p->ops[i])[r];
            m->value[buf] = m->cast_of[buf] = HB_NONE;
            m->value[m->root[buf]] = m->cast_of[m->root[buf]] = HB_NONE;
        }
}

/* What a loop finds of what it touches, from outside. */
static void give_found(struct maker *m, const struct hb_loop *loop, uint32_t given)
{
    for (uint32_t i = loop->first_op; i < loop->end_op; i++)
        for (uint32_t r = 0; r < hb_maker_ref_count(&m->p->ops[i]); r++) {
            uint32_t root = m->root[hb_maker_refs(m, &m->p->ops[i])[r]];
            if (m->first[root] <= loop->first_op && m->value[root] == HB_NONE)
                hb_maker_make_value(m, root, given);
        }
}

/* Loops in nothing: what they find is given. */
static void add_loops(struct maker *m, const struct hb_step_inside *in)
{
    uint32_t given = add_given(m);
    for (uint32_t i = 0; i < in->count; i++)
        give_found(m, &m->p->loops[in->loops[i]], given);
    for (uint32_t i = 0; i < in->count; i++)
        add_loop(m, in->loops[i]);
    add_root(m, 0, 0);
}

static void add_body(struct maker *m, uint32_t comp)
{
    struct frame f = m->frames[comp];
    m->mean = m->labels = m->read_again.root = HB_NONE;
    forget_values(m, f.loop);
    add_found(m, &f);
    add_ops(m, f.loop);
    list_shared(m, &f);
    add_root(m, comp, f.shared_count);
}

static void make_graph(struct hb_arena *arena, const struct hb_program *p,
                       const struct hb_step_inside *in, struct hb_step_graph *out)
{
    struct maker m = {.arena = arena, .p = p, .g = &out->graph, .stacked = in ? in->layers : 0};
    m.found = m.norm_back = m.read_again.root = m.layers = m.joined = m.norm = m.column_sum =
        m.mean = m.labels = m.product = HB_NONE;
    *out = (struct hb_step_graph){0};
    hb_graph_init(&out->graph, arena);
    out->graph.loops_even = p->compiler == HB_XLA_TPU;
    m.root = by_buf(&m), m.first = by_buf(&m), m.last = by_buf(&m), m.value = by_buf(&m);
    m.cast_of = by_buf(&m), m.cast_from = by_buf(&m);
    m.holder = by_buf(&m), m.seen = by_buf(&m), m.slot = by_buf(&m), m.roots = by_buf(&m);
    m.op_of = hb_arena_alloc(arena, p->op_count, sizeof *m.op_of);
    m.turned = hb_arena_alloc(arena, p->buf_count, sizeof *m.turned);
    m.tree = hb_tree_find(&m);
    find_spans(&m);
    for (uint32_t i = 0; i < p->op_count; i++)
        m.sums_all |= p->ops[i].loop == HB_NONE && is_sum_of_many(&m, &p->ops[i]);
    for (uint32_t b = 0; b < p->buf_count; b++)
        m.value[b] = m.cast_of[b] = HB_NONE;
    m.frames = hb_grow(arena, m.frames, 0, &m.frame_cap, sizeof *m.frames);
    m.frames[m.frame_count++] = (struct frame){.loop = HB_NONE};
    hb_graph_add_comp(&out->graph);
    if (in)
        add_loops(&m, in);
    else
        add_entry(&m, out);
    for (uint32_t c = 1; c < m.frame_count; c++) {
        hb_graph_add_comp(&out->graph);
        add_body(&m, c);
    }
    hb_graph_close(&out->graph);
    out->item = m.item;
}

void hb_step_graph_make(struct hb_arena *arena, const struct hb_program *p,
                        struct hb_step_graph *out)
{
    make_graph(arena, p, NULL, out);
}

void hb_step_graph_inside(struct hb_arena *arena, const struct hb_program *p,
                          const struct hb_step_inside *in, struct hb_step_graph *out)
{
    make_graph(arena, p, in, out);
}

/* Ops of the graph are numbered as the program has them. */
static int64_t written_bytes(struct hb_arena *arena, const struct hb_graph *g)
{
    uint32_t *order = hb_arena_raw(arena, g->op_count, sizeof *order);
    for (uint32_t op = 0; op < g->op_count; op++)
        order[op] = op;
    return hb_graph_estimate(arena, g, order);
}

void hb_step_orders_find(struct hb_arena *arena, const struct hb_program *p,
                         struct hb_step_orders *out)
{
    hb_step_graph_make(arena, p, &out->step);
    hb_graph_choose(arena, &out->step.graph, &out->choice);
    out->written_bytes = written_bytes(arena, &out->step.graph);
}
