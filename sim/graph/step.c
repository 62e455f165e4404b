/* Computations are made outermost first, those of one depth in order; each knows from its loop
 * which buffers come from outside and with what value. Buffers are told apart by the memory that
 * they lie in (their root). */
#include "sim/graph/step.h"

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"

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

struct maker {
    struct hb_arena *arena;
    const struct hb_program *p;
    struct hb_graph *g;
    uint32_t *root;   /* by buffer */
    uint32_t *first;  /* by root, op that touches it first; 0: an argument */
    uint32_t *last;   /* by root, one past the op that touches it last; HB_NONE: an output */
    uint32_t *value;  /* by root: what it has now, in the computation at hand; HB_NONE */
    uint32_t *holder; /* by root: op of that computation that hands it out */
    uint32_t *seen;   /* by root: stamp of who met it last */
    uint32_t *slot;   /* by root so met: its number among these */
    uint32_t *roots;  /* a list */
    uint32_t stamp;
    uint32_t *cast_of;   /* by root: what an op made of it alone, in the computation at hand ... */
    uint32_t *cast_from; /* ... when it had this value */
    uint32_t *op_of;     /* by op of the program: the graph's */
    bool *turned;        /* by root: its stack is copied in another layout for the loops */
    uint32_t mean;       /* op that has the last norm's mean, in the computation at hand; HB_NONE */
    uint32_t scale;      /* and its inverse root */
    uint32_t labels;     /* and the labels' logits, which are the loss */
    uint32_t norm;       /* op of the graph; HB_NONE */
    uint32_t column_sum; /* the same, over devices, of all gradients' columns */
    uint32_t product;    /* without a buffer of its own: the op behind it reads it; HB_NONE */
    struct frame *frames;
    uint32_t frame_count, frame_cap;
    uint32_t *item; /* as hb_step_graph's */
    uint32_t item_cap;
};

static const uint32_t *refs_of(const struct maker *m, const struct hb_op *op)
{
    return m->p->refs + op->refs_at;
}

static uint32_t ref_count(const struct hb_op *op)
{
    return op->read_count + op->write_count;
}

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
        for (uint32_t r = 0; r < ref_count(&p->ops[i]); r++) {
            uint32_t root = m->root[refs_of(m, &p->ops[i])[r]];
            m->first[root] = m->first[root] < i + 1 ? m->first[root] : i + 1;
            m->last[root] = m->last[root] > i + 1 ? m->last[root] : i + 1;
        }
}

/* --- ops --- */

static uint32_t add_op(struct maker *m, uint32_t item)
{
    uint32_t op = hb_graph_add_op(m->g);
    m->item = hb_grow(m->arena, m->item, op, &m->item_cap, sizeof *m->item);
    m->item[op] = item;
    return op;
}

/* In a buffer's place. XLA:TPU's estimate has no eye for spaces: what is on the host counts
 * as well (30 dumps with offloaded stacks). */
static void make_value(struct maker *m, uint32_t root, uint32_t op)
{
    const struct hb_buf *b = &m->p->bufs[root];
    bool all = m->p->compiler == HB_XLA_TPU;
    int64_t bytes = b->space == HB_SPACE_HBM || all ? b->bytes : 0;
    m->value[root] = hb_graph_add_value(m->g, bytes);
    m->g->values[m->value[root]].place = root;
    m->holder[root] = op;
}

static void add_uses(struct maker *m, uint32_t op, const uint32_t *roots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (m->value[roots[i]] != HB_NONE) {
            hb_graph_add_ref(m->g, HB_GRAPH_USES, m->value[roots[i]]);
            hb_graph_touch(m->g, m->value[roots[i]], HB_GRAPH_OP, op);
        }
}

/* The op reads these, each once, or hands them on. */
static void add_operands(struct maker *m, uint32_t op, const uint32_t *roots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (m->value[roots[i]] != HB_NONE)
            hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->holder[roots[i]]);
    add_uses(m, op, roots, count);
}

/* Roots of what an op touches, each once; what it writes into comes first, as in XLA's updates and
 * scatters. */
static uint32_t list_roots(struct maker *m, const struct hb_op *op, uint32_t *out)
{
    uint32_t count = 0;
    m->stamp++;
    for (uint32_t i = 0; i < ref_count(op); i++) {
        uint32_t at = (i + op->read_count) % ref_count(op), root = m->root[refs_of(m, op)[at]];
        if (m->seen[root] != m->stamp)
            out[count++] = root;
        m->seen[root] = m->stamp;
    }
    return count;
}

/* A pass over a tensor in its place, which XLA has inside of who reads it: no value of its own. */
static bool is_pass(const struct maker *m, const struct hb_op *op, uint32_t root)
{
    bool pass = op->kind == HB_OP_ELEMENTWISE || op->kind == HB_OP_REDUCE;
    return pass && m->value[root] != HB_NONE && !m->p->bufs[root].argument &&
           op->phase == HB_PHASE_LOSS;
}

static void make_written(struct maker *m, const struct hb_op *op, uint32_t at, uint32_t only)
{
    m->stamp++;
    for (uint32_t i = op->read_count; i < ref_count(op); i++) {
        uint32_t root = m->root[refs_of(m, op)[i]];
        if (only != HB_NONE && root != only)
            continue;
        if (m->seen[root] != m->stamp && is_pass(m, op, root))
            m->holder[root] = at;
        else if (m->seen[root] != m->stamp)
            make_value(m, root, at);
        m->seen[root] = m->stamp;
    }
}

static bool is_scalar(const struct maker *m, const struct hb_op *op)
{
    enum { SCALAR_BYTES = 4 };
    for (uint32_t i = op->read_count; i < ref_count(op); i++)
        if (m->p->bufs[refs_of(m, op)[i]].bytes > SCALAR_BYTES)
            return false;
    return true;
}

/* What is under way is kept until it is done. */
static void wait_for(struct maker *m, const struct hb_op *start, uint32_t at)
{
    for (uint32_t r = 0; r < ref_count(start); r++) {
        uint32_t value = m->value[m->root[refs_of(m, start)[r]]];
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
    uint32_t at = add_op(m, HB_NONE), count = list_roots(m, op, m->roots);
    m->g->ops[start].soon = m->g->ops[at].late = true;
    hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, start);
    for (uint32_t i = 0; i < count; i++)
        if (m->value[m->roots[i]] != HB_NONE)
            hb_graph_add_ref(m->g, HB_GRAPH_USES, m->value[m->roots[i]]);
    wait_for(m, op, at);
    for (uint32_t i = op->read_count; i < ref_count(op); i++)
        m->holder[m->root[refs_of(m, op)[i]]] = at;
}

/* Two casts of one value are one (HloCSE); gathers are not, each has a channel of its own. */
static bool is_made_already(struct maker *m, uint32_t i)
{
    const struct hb_op *op = &m->p->ops[i];
    if (op->kind != HB_OP_ELEMENTWISE || op->read_count != 1 || op->write_count != 1)
        return false;
    uint32_t from = m->root[refs_of(m, op)[0]], to = refs_of(m, op)[1];
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
    return op->kind == HB_OP_REDUCE && op->read_count > 1 && is_scalar(m, op);
}

/* The norm of all gradients, a number that the program does not name: updates wait for it. */
static bool is_norm(const struct hb_op *op)
{
    return op->phase == HB_PHASE_OPTIMIZER && op->kind == HB_OP_REDUCE && op->write_count == 0;
}

static bool is_alone(const struct maker *m)
{
    for (uint32_t i = 0; i < m->p->op_count; i++)
        if (m->p->ops[i].group > 1)
            return false;
    return true;
}

/* An op that adds up to two others' results; HB_NONE: none. */
static uint32_t add_reader(struct maker *m, uint32_t one, uint32_t two)
{
    uint32_t at = add_op(m, HB_NONE);
    if (one != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, one);
    if (two != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, two);
    return at;
}

/* Each tensor's own number. XLA:TPU has them in the order of the parameters, whose last the program
 * reads first; one collective adds up all of them over the devices, on one device each is added to
 * those before (what its heap simulator prints, heap_simulator=3). Returns the op that has all. */
static uint32_t add_partial_sums(struct maker *m, uint32_t count)
{
    bool turned = m->p->compiler == HB_XLA_TPU, chain = turned && is_alone(m);
    uint32_t *parts = hb_arena_raw(m->arena, count, sizeof *parts), sum = HB_NONE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t root = m->roots[turned ? count - 1 - i : i];
        parts[i] = add_op(m, HB_NONE);
        add_operands(m, parts[i], &root, 1);
        if (chain)
            sum = sum == HB_NONE ? parts[i] : add_reader(m, sum, parts[i]);
    }
    if (chain)
        return sum;
    sum = add_op(m, HB_NONE);
    for (uint32_t i = 0; i < count; i++)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, parts[i]);
    return sum;
}

/* The loss as XLA has it. How often a value is read decides what depth-first visits first, and
 * along a path all of it multiplies, so the small ops count. Logits come with their maxima (on TPU
 * with a part that is finite), the sum of exponentials and the label's own logit; a norm with its
 * mean of squares, on TPU inside of who reads it, on GPU behind an op of its own; going back with a
 * sum more. */
struct parts {
    uint32_t ops[3]; /* what the op at hand reads besides */
    int count;
};

static uint32_t read_with(struct maker *m, uint32_t root, uint32_t one, uint32_t two)
{
    uint32_t at = add_reader(m, m->holder[root], one);
    if (two != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, two);
    hb_graph_add_ref(m->g, HB_GRAPH_USES, m->value[root]);
    hb_graph_touch(m->g, m->value[root], HB_GRAPH_OP, at);
    return at;
}

static uint32_t read_value(struct maker *m, uint32_t root, uint32_t with)
{
    return read_with(m, root, with, HB_NONE);
}

static struct parts add_softmax(struct maker *m, uint32_t logits)
{
    uint32_t most = add_reader(m, m->holder[logits], HB_NONE);
    if (m->p->compiler == HB_XLA_GPU) {
        uint32_t sum = read_value(m, logits, most), label = read_with(m, logits, sum, most);
        m->labels = label;
        return (struct parts){{label, most}, 2};
    }
    m->holder[logits] = read_value(m, logits, HB_NONE);
    uint32_t finite = add_reader(m, most, HB_NONE), sum = read_value(m, logits, finite);
    uint32_t label = read_value(m, logits, most);
    return (struct parts){{add_reader(m, label, sum), finite}, 2};
}

static struct parts add_norm(struct maker *m, const struct hb_op *op)
{
    const uint32_t *refs = refs_of(m, op);
    bool gpu = m->p->compiler == HB_XLA_GPU, back = op->read_count > 1;
    uint32_t from = m->root[refs[0]], x = gpu && back ? m->root[refs[1]] : from;
    if (m->mean == HB_NONE) {
        m->mean = add_reader(m, m->holder[x], HB_NONE);
        m->scale = gpu ? add_reader(m, m->mean, HB_NONE) : m->mean;
    }
    if (!back)
        return (struct parts){{m->scale}, 1};
    uint32_t sum = add_reader(m, m->holder[from], gpu ? m->holder[x] : m->mean);
    if (!gpu)
        return (struct parts){{m->mean, sum}, 2};
    uint32_t all = add_reader(m, m->scale, sum);
    hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->mean);
    return (struct parts){{all, m->scale}, 2};
}

static struct parts add_loss_parts(struct maker *m, const struct hb_op *op)
{
    if (op->phase != HB_PHASE_LOSS || op->read_count == 0)
        return (struct parts){.count = 0};
    uint32_t first = refs_of(m, op)[0];
    if (op->kind == HB_OP_REDUCE && op->read_count > 1 && op->write_count > 0 &&
        m->value[m->root[first]] != HB_NONE)
        return add_softmax(m, m->root[first]);
    if (op->kind == HB_OP_ELEMENTWISE && m->p->bufs[first].category != HB_CAT_LOGITS)
        return add_norm(m, op);
    return (struct parts){.count = 0};
}

/* A pass over a tensor may write its result over what it read, where that is over. */
static void add_heirs(struct maker *m, const struct hb_op *op, uint32_t at)
{
    if (op->kind != HB_OP_ELEMENTWISE && op->kind != HB_OP_REDUCE)
        return;
    const uint32_t *refs = refs_of(m, op);
    for (uint32_t w = op->read_count; w < ref_count(op); w++)
        for (uint32_t r = 0; r < op->read_count; r++) {
            uint32_t to = m->value[m->root[refs[w]]], from = m->value[m->root[refs[r]]];
            if (from != HB_NONE && from < to && m->g->values[to].op == at &&
                m->g->values[from].bytes == m->g->values[to].bytes)
                hb_graph_add_heir(m->g, to, from);
        }
}

/* Of an update's tuple each part is an op, too. */
static void hand_out_parts(struct maker *m, const struct hb_op *op, uint32_t at)
{
    if (m->g->ops[at].value_count < 2 || op->phase != HB_PHASE_OPTIMIZER)
        return;
    for (uint32_t i = op->read_count; i < ref_count(op); i++) {
        uint32_t root = m->root[refs_of(m, op)[i]];
        if (m->holder[root] == at)
            m->holder[root] = read_value(m, root, HB_NONE);
    }
}

static void note_turned(struct maker *m, const struct hb_op *op)
{
    const uint32_t *refs = refs_of(m, op);
    if (m->p->compiler == HB_XLA_GPU && op->kind == HB_OP_COPY && op->loop == HB_NONE &&
        op->read_count == 1 && op->write_count == 1 &&
        m->p->bufs[refs[0]].category == HB_CAT_PARAMS &&
        m->p->bufs[refs[0]].bytes == m->p->bufs[refs[1]].bytes)
        m->turned[m->root[refs[0]]] = true;
}

/* Of an update, the weight whose stack lies turned in the loops. */
static uint32_t turned_weight(const struct maker *m, const struct hb_op *op)
{
    for (uint32_t i = op->read_count; i < ref_count(op) && op->phase == HB_PHASE_OPTIMIZER; i++)
        if (m->turned[m->root[refs_of(m, op)[i]]])
            return m->root[refs_of(m, op)[i]];
    return HB_NONE;
}

/* Its gradient does, too: the moments are made by an op that turns it, and the weight by another,
 * which reads those (24 dumps of ROCm's scans). Makes the first; returns how many roots are left
 * to the second. */
static uint32_t add_moments(struct maker *m, const struct hb_op *op, uint32_t weight,
                            uint32_t count)
{
    uint32_t at = add_op(m, HB_NONE), kept = 0;
    if (m->norm != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->norm);
    for (uint32_t i = 0; i < count; i++)
        if (m->roots[i] != weight)
            m->roots[kept++] = m->roots[i];
    add_operands(m, at, m->roots, kept);
    for (uint32_t i = op->read_count; i < ref_count(op); i++)
        if (m->root[refs_of(m, op)[i]] != weight)
            make_value(m, m->root[refs_of(m, op)[i]], at);
    hand_out_parts(m, op, at);
    m->roots[0] = weight;
    count = 1;
    for (uint32_t i = op->read_count; i < ref_count(op); i++)
        if (m->root[refs_of(m, op)[i]] != weight)
            m->roots[count++] = m->root[refs_of(m, op)[i]];
    return count;
}

/* An update whose states are means over rows and over columns. */
struct factored {
    uint32_t weight, grad;  /* roots; weight HB_NONE: it is none */
    uint32_t rows, columns; /* roots of the new ones */
};

static bool is_state(const struct maker *m, uint32_t root)
{
    return m->p->bufs[root].category == HB_CAT_OPTIMIZER;
}

static struct factored find_factored(const struct maker *m, const struct hb_op *op)
{
    enum { WRITES = 3 };
    struct factored f = {HB_NONE, HB_NONE, HB_NONE, HB_NONE};
    const uint32_t *refs = refs_of(m, op), *made = refs + op->read_count;
    bool gpu = m->p->compiler == HB_XLA_GPU;
    if (!gpu || op->phase != HB_PHASE_OPTIMIZER || op->write_count != WRITES)
        return f;
    for (uint32_t i = 0; i < op->read_count; i++)
        if (m->p->bufs[refs[i]].category == HB_CAT_GRADIENTS)
            f.grad = m->root[refs[i]];
    f.rows = m->root[made[1]], f.columns = m->root[made[2]];
    if (f.grad != HB_NONE && m->value[f.grad] != HB_NONE && is_state(m, f.columns) &&
        m->p->bufs[f.rows].rank < m->p->bufs[made[0]].rank)
        f.weight = m->root[made[0]];
    return f;
}

/* Sums over columns that lie on several devices: one collective has those of all leaves. */
static uint32_t add_column_sums(struct maker *m, uint32_t first)
{
    const struct hb_program *p = m->p;
    bool whole = p->mesh[HB_AX_FSDP] <= 1 && p->mesh[HB_AX_TENSOR] <= 1;
    if (whole || m->column_sum != HB_NONE)
        return m->column_sum;
    uint32_t *parts = hb_arena_raw(m->arena, p->op_count, sizeof *parts), count = 0;
    for (uint32_t i = first; i < p->op_count; i++) {
        struct factored f = find_factored(m, &p->ops[i]);
        if (f.weight != HB_NONE)
            parts[count++] = read_value(m, f.grad, m->norm);
    }
    m->column_sum = add_op(m, HB_NONE);
    for (uint32_t i = 0; i < count; i++)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, parts[i]);
    return m->column_sum;
}

/* With what was there it is a new state. */
static uint32_t add_mean(struct maker *m, uint32_t sum, uint32_t state)
{
    uint32_t at = add_reader(m, sum, HB_NONE);
    make_value(m, state, at);
    return at;
}

/* The gradient is read for either mean, for the size of the update that these make, and by the
 * update (8B on an H100, 8 layers, q, k, v, attn_out on the host: depth-first 28.30 GiB, by the
 * compiler's log 28.30; as one op 32.87). Returns what the op of the program reads besides. */
static struct parts add_factored(struct maker *m, struct factored f, uint32_t i, uint32_t *io_count)
{
    uint32_t sum = add_column_sums(m, i), kept = 0;
    add_mean(m, sum == HB_NONE ? read_value(m, f.grad, m->norm) : sum, f.columns);
    uint32_t columns = m->holder[f.columns] = read_value(m, f.columns, HB_NONE);
    uint32_t rows = add_reader(m, add_mean(m, read_value(m, f.grad, m->norm), f.rows), HB_NONE);
    uint32_t size = read_with(m, f.grad, columns, rows);
    for (int k = 0; k < 3; k++) /* in two steps, and its root */
        size = add_reader(m, size, HB_NONE);
    for (uint32_t k = 0; k < *io_count; k++)
        if (!is_state(m, m->roots[k]))
            m->roots[kept++] = m->roots[k];
    *io_count = kept;
    return (struct parts){{size, columns, rows}, 3};
}

static void add_program_op(struct maker *m, uint32_t i)
{
    const struct hb_op *op = &m->p->ops[i];
    if (is_made_already(m, i))
        return;
    uint32_t count = list_roots(m, op, m->roots);
    uint32_t sum = is_sum_of_many(m, op) ? add_partial_sums(m, count) : HB_NONE;
    struct factored factored = find_factored(m, op);
    bool apart = factored.weight != HB_NONE;
    struct parts parts = apart ? add_factored(m, factored, i, &count) : add_loss_parts(m, op);
    uint32_t weight = apart                 ? factored.weight
                      : op->write_count > 1 ? turned_weight(m, op)
                                            : HB_NONE;
    if (weight != HB_NONE && !apart)
        count = add_moments(m, op, weight, count);
    note_turned(m, op);
    uint32_t at = add_op(m, i);
    for (int k = 0; k < parts.count; k++)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, parts.ops[k]);
    m->op_of[i] = at;
    m->g->ops[at].scalar = is_scalar(m, op);
    if (op->kind == HB_OP_DONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->op_of[op->start]);
    if (m->norm != HB_NONE && op->phase == HB_PHASE_OPTIMIZER && op->loop == HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->norm);
    if (m->product != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->product);
    m->product = op->kind == HB_OP_MATMUL && op->write_count == 0 ? at : HB_NONE;
    m->norm = is_norm(op) ? at : m->norm;
    if (sum != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, sum);
    else
        add_operands(m, at, m->roots, count);
    if (op->kind == HB_OP_DONE)
        wait_for(m, &m->p->ops[op->start], at);
    make_written(m, op, at, weight);
    add_heirs(m, op, at);
    hand_out_parts(m, op, at);
    if (is_async(m, op))
        add_done(m, op, at);
}

/* --- loops --- */

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
        for (uint32_t r = 0; r < ref_count(&m->p->ops[i]); r++) {
            uint32_t root = m->root[refs_of(m, &m->p->ops[i])[r]];
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
        for (uint32_t r = m->p->ops[i].read_count; r < ref_count(&m->p->ops[i]); r++) {
            uint32_t root = m->root[refs_of(m, &m->p->ops[i])[r]];
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

/* A part of what a tuple op has: nothing of its own. The list thinks that it needs all of it. */
static void hand_out(struct maker *m, uint32_t root, uint32_t from)
{
    uint32_t at = add_op(m, HB_NONE);
    const struct hb_graph_op *tuple = &m->g->ops[from];
    hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, from);
    for (uint32_t v = 0; v < tuple->value_count; v++)
        hb_graph_add_ref(m->g, HB_GRAPH_USES, tuple->first_value + v);
    hb_graph_touch(m->g, m->value[root], HB_GRAPH_OP, at);
    m->holder[root] = at;
}

/* A tuple of all that it finds, the loop, and what is used of it afterwards. */
static void add_loop(struct maker *m, uint32_t loop)
{
    struct frame f;
    find_shared(m, loop, &f);
    uint32_t body = m->frame_count, tuple = add_op(m, HB_NONE);
    list_shared(m, &f);
    add_operands(m, tuple, m->roots, f.shared_count);
    uint32_t at = add_op(m, m->p->op_count + loop);
    hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, tuple);
    for (uint32_t i = 0; i < f.shared_count; i++)
        if (f.shared[i].value != HB_NONE) {
            hb_graph_add_ref(m->g, HB_GRAPH_USES, f.shared[i].value);
            hb_graph_touch(m->g, f.shared[i].value, HB_GRAPH_START, body);
            if (!f.shared[i].carried)
                hb_graph_touch(m->g, f.shared[i].value, HB_GRAPH_OP, at);
        }
    hb_graph_add_ref(m->g, HB_GRAPH_RUNS, body);
    for (uint32_t i = 0; i < f.shared_count; i++)
        if (f.shared[i].carried)
            make_value(m, f.shared[i].root, at);
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

static uint32_t add_given(struct maker *m)
{
    uint32_t at = add_op(m, HB_NONE);
    m->g->ops[at].given = m->g->ops[at].early = true;
    return at;
}

/* Those that the step does not hand back in their own place stay the caller's. */
static void add_arguments(struct maker *m, struct hb_step_graph *out)
{
    const struct hb_program *p = m->p;
    for (uint32_t b = 0; b < p->buf_count; b++)
        if (p->bufs[b].argument && m->root[b] == b) {
            make_value(m, b, add_given(m));
            out->argument_bytes = hb_add_sat(out->argument_bytes, m->g->values[m->value[b]].bytes);
            if (m->last[b] != HB_NONE)
                hb_graph_touch(m->g, m->value[b], HB_GRAPH_END, 0);
        }
}

/* Everything shared, as the body finds it at the start of a trip. */
static void add_found(struct maker *m, const struct frame *f)
{
    uint32_t at = add_given(m);
    for (uint32_t i = 0; i < f->shared_count; i++) {
        m->value[f->shared[i].root] = f->shared[i].value;
        if (f->shared[i].value == HB_NONE)
            continue;
        if (f->shared[i].carried)
            make_value(m, f->shared[i].root, at);
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
    uint32_t at = add_op(m, HB_NONE);
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
    enum { STATES = 4 };
    const struct hb_program *p = m->p;
    uint32_t count = 0;
    for (uint32_t turn = 1; turn <= STATES; turn++)
        for (uint32_t b = 0, nth = 0; b < p->buf_count; b++) {
            if (m->root[b] != b || m->last[b] != HB_NONE)
                continue;
            bool state = p->bufs[b].category == HB_CAT_OPTIMIZER;
            nth = state ? nth + 1 : 0;
            if (turn < STATES ? nth == turn : nth == 0 || nth >= STATES)
                m->roots[count++] = b;
        }
    return count;
}

static void add_entry(struct maker *m, struct hb_step_graph *out)
{
    add_arguments(m, out);
    add_ops(m, HB_NONE);
    add_root(m, 0, list_outputs(m));
}

static void add_body(struct maker *m, uint32_t comp)
{
    struct frame f = m->frames[comp];
    m->mean = m->labels = HB_NONE;
    for (uint32_t b = 0; b < m->p->buf_count; b++)
        m->value[b] = m->cast_of[b] = HB_NONE;
    add_found(m, &f);
    add_ops(m, f.loop);
    list_shared(m, &f);
    add_root(m, comp, f.shared_count);
}

static uint32_t *by_buf(const struct maker *m)
{
    return hb_arena_alloc(m->arena, m->p->buf_count, sizeof(uint32_t));
}

void hb_step_graph_make(struct hb_arena *arena, const struct hb_program *p,
                        struct hb_step_graph *out)
{
    struct maker m = {.arena = arena, .p = p, .g = &out->graph};
    m.norm = m.column_sum = m.mean = m.labels = m.product = HB_NONE;
    *out = (struct hb_step_graph){0};
    hb_graph_init(&out->graph, arena);
    out->graph.loops_even = p->compiler == HB_XLA_TPU;
    m.root = by_buf(&m), m.first = by_buf(&m), m.last = by_buf(&m), m.value = by_buf(&m);
    m.cast_of = by_buf(&m), m.cast_from = by_buf(&m);
    m.holder = by_buf(&m), m.seen = by_buf(&m), m.slot = by_buf(&m), m.roots = by_buf(&m);
    m.op_of = hb_arena_alloc(arena, p->op_count, sizeof *m.op_of);
    m.turned = hb_arena_alloc(arena, p->buf_count, sizeof *m.turned);
    find_spans(&m);
    for (uint32_t b = 0; b < p->buf_count; b++)
        m.value[b] = m.cast_of[b] = HB_NONE;
    m.frames = hb_grow(arena, m.frames, 0, &m.frame_cap, sizeof *m.frames);
    m.frames[m.frame_count++] = (struct frame){.loop = HB_NONE};
    for (uint32_t c = 0; c < m.frame_count; c++) {
        hb_graph_add_comp(&out->graph);
        if (c == 0)
            add_entry(&m, out);
        else
            add_body(&m, c);
    }
    hb_graph_close(&out->graph);
    out->item = m.item;
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
