/* What XLA has of a step that its program does not name: the small ops of loss, norms and updates,
 * and the order in which weights are handed over. */
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/graph/maker.h"

/* --- trees --- */

/* A tree is handed over in the order of its names: as the reference step has them, embed,
 * final_norm, layers (ln1, ln2, wd, wg, wk, wo, wq, wr, wu, wv), unembed. */
int hb_tree_rank(const char *name)
{
    static const char *const parts[] = {
        "embedding", "final norm", "norm1", "norm2",  "w_down", "e_down", "w_gate", "e_gate",
        "wk",        "wo",         "wq",    "router", "w_up",   "e_up",   "wv",     "head"};
    enum { PARTS = sizeof parts / sizeof *parts };
    const char *dot = strchr(name, '.'), *part = dot ? dot + 1 : name;
    for (int i = 0; i < PARTS; i++)
        if (strncmp(part, parts[i], strlen(parts[i])) == 0)
            return i;
    return PARTS;
}

uint32_t *hb_tree_find(struct maker *m)
{
    const struct hb_program *p = m->p;
    uint32_t *out = hb_arena_alloc(m->arena, p->buf_count, sizeof *out);
    for (uint32_t b = 0; b < p->buf_count && p->compiler == HB_XLA_TPU; b++)
        out[b] = (uint32_t)hb_tree_rank(p->bufs[b].name);
    return out;
}

void hb_tree_sort(const struct maker *m, uint32_t *roots, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t root = roots[i], k = i;
        for (; k > 0 && m->tree[roots[k - 1]] > m->tree[root]; k--)
            roots[k] = roots[k - 1];
        roots[k] = root;
    }
}

/* --- ops --- */

/* An op that adds up to two others' results; HB_NONE: none. */
uint32_t hb_parts_add_reader(struct maker *m, uint32_t one, uint32_t two)
{
    uint32_t at = hb_maker_add_op(m, HB_NONE);
    if (one != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, one);
    if (two != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, two);
    return at;
}

/* The parts of the norm of all gradients, too, so that depth-first and in post-order the labels'
 * logits come behind all gradients (16 layers of 2,048 over fsdp 8 of v5p, one sequence, clipped:
 * %all-reduce.22 has nine numbers; depth 3.25 GiB, without it 2.78). */
void hb_parts_join(struct maker *m, const uint32_t *parts, uint32_t count)
{
    m->joined = hb_parts_add_reader(m, m->labels, m->norm_back);
    for (uint32_t i = 0; i < count; i++)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, parts[i]);
    m->labels = hb_parts_add_reader(m, m->joined, HB_NONE);
}

/* Each tensor's own number, and one op that has all. XLA:TPU has them in the order of the
 * parameters, whose last the program reads first. */
uint32_t hb_parts_of_sum(struct maker *m, uint32_t count)
{
    bool turned = m->p->compiler == HB_XLA_TPU;
    uint32_t *parts = hb_arena_raw(m->arena, count, sizeof *parts);
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = hb_maker_add_op(m, HB_NONE);
        hb_maker_add_operands(m, parts[i], &m->roots[turned ? count - 1 - i : i], 1);
    }
    bool joins = m->norm_back != HB_NONE && m->joined == HB_NONE;
    if (joins)
        hb_parts_join(m, parts, count);
    uint32_t sum = hb_maker_add_op(m, HB_NONE);
    for (uint32_t i = 0; i < count && !joins; i++)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, parts[i]);
    if (m->joined != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->joined);
    return sum;
}

static uint32_t read_with(struct maker *m, uint32_t root, uint32_t one, uint32_t two)
{
    uint32_t at = hb_parts_add_reader(m, m->holder[root], one);
    if (two != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, two);
    hb_graph_add_ref(m->g, HB_GRAPH_USES, m->value[root]);
    hb_graph_touch(m->g, m->value[root], HB_GRAPH_OP, at);
    return at;
}

uint32_t hb_parts_read(struct maker *m, uint32_t root, uint32_t with)
{
    return read_with(m, root, with, HB_NONE);
}

/* The loss as XLA has it. How often a value is read decides what depth-first visits first, and
 * along a path all of it multiplies, so the small ops count. Logits come with their maxima (on TPU
 * with a part that is finite), the sum of exponentials and the label's own logit; a norm with its
 * mean of squares and that one's root; going back with a sum more. */

static bool is_in_place(const struct maker *m, const struct hb_op *op)
{
    return m->root[hb_maker_refs(m, op)[0]] == m->root[hb_maker_refs(m, op)[op->read_count]];
}

/* Of one sequence a TPU's products need the sum of exponentials, and the loss alone the labels'
 * logits; of more they read the loss's own result, which has both. A microbatch's labels come out
 * of the loss's own fusion (%fusion.714 on v5p, v5e; not on v6e), and where the vocabulary is split
 * a logit is found by a mask, with the sum, before the gradient takes another place. */
static bool is_loss_apart(const struct maker *m, const struct hb_op *op, uint32_t logits)
{
    enum { WITH_BATCH = 3 };
    const struct hb_buf *b = &m->p->bufs[logits];
    bool one = b->rank < WITH_BATCH || b->dim[0] == 1;
    return one && (op->loop == HB_NONE || m->p->labels_alone) &&
           (is_in_place(m, op) || m->p->mesh[HB_AX_TENSOR] <= 1);
}

/* Of one value a token, which a list weighs: the labels' logits are less (a start on the sparse
 * cores), come first, and so wait for no loop (qwen3-32b over 8 and data 2, v5p, states on the
 * host: freed -32768, -32768, -64; list 87.6 GiB, as without this 92.2). */
static void make_means(struct maker *m, uint32_t logits)
{
    const struct hb_buf *b = &m->p->bufs[logits];
    hb_graph_add_value(m->g, b->bytes / hb_larger(b->rank ? b->dim[b->rank - 1] : 0, 1));
}

static struct hb_parts add_softmax(struct maker *m, const struct hb_op *op)
{
    uint32_t logits = m->root[hb_maker_refs(m, op)[0]];
    uint32_t most = hb_parts_add_reader(m, m->holder[logits], HB_NONE);
    if (m->p->compiler == HB_XLA_GPU) {
        uint32_t sum = hb_parts_read(m, logits, most), label = read_with(m, logits, sum, most);
        m->labels = label;
        return (struct hb_parts){{label, most}, 2};
    }
    m->holder[logits] = hb_parts_read(m, logits, HB_NONE);
    uint32_t finite = hb_parts_add_reader(m, most, HB_NONE);
    make_means(m, logits);
    uint32_t sum = hb_parts_read(m, logits, finite);
    make_means(m, logits);
    uint32_t label = hb_parts_read(m, logits, most);
    uint32_t loss = hb_parts_add_reader(m, label, sum);
    bool apart = is_loss_apart(m, op, logits);
    m->labels = apart ? loss : m->labels;
    if (!is_in_place(m, op))
        return (struct hb_parts){{apart ? sum : loss, finite}, 2};
    m->read_again = (struct hb_read_again){.root = logits, .ops = {apart ? sum : loss, finite}};
    return (struct hb_parts){.count = 0};
}

static struct hb_parts add_norm(struct maker *m, const struct hb_op *op)
{
    const uint32_t *refs = hb_maker_refs(m, op);
    bool back = op->read_count > 1;
    uint32_t from = m->root[refs[0]], x = back ? m->root[refs[1]] : from;
    if (m->mean == HB_NONE) {
        m->mean = hb_parts_add_reader(m, m->holder[x], HB_NONE);
        m->scale = hb_parts_add_reader(m, m->mean, HB_NONE);
    }
    if (!back)
        return (struct hb_parts){{m->scale}, 1};
    uint32_t sum = hb_parts_add_reader(m, m->holder[from], m->holder[x]);
    uint32_t all = hb_parts_add_reader(m, m->scale, sum);
    hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->mean);
    return (struct hb_parts){{all, m->scale}, 2};
}

struct hb_parts hb_parts_of_loss(struct maker *m, const struct hb_op *op)
{
    if (op->phase != HB_PHASE_LOSS || op->read_count == 0)
        return (struct hb_parts){.count = 0};
    uint32_t first = hb_maker_refs(m, op)[0];
    if (op->kind == HB_OP_REDUCE && op->read_count > 1 && op->write_count > 0 &&
        m->value[m->root[first]] != HB_NONE)
        return add_softmax(m, op);
    if (op->kind == HB_OP_ELEMENTWISE && m->p->bufs[first].category != HB_CAT_PARAMS)
        return add_norm(m, op);
    return (struct hb_parts){.count = 0};
}

/* Of an update's tuple each part is an op, too. Who reads the head's ring reads both directions:
 * all above counts twice (159 users, %multiply_subtract_fusion.5 all of 317). */
void hb_parts_hand_out(struct maker *m, const struct hb_op *op, uint32_t at)
{
    bool ring =
        op->kind == HB_OP_MATMUL && m->p->bufs[hb_maker_refs(m, op)[0]].category == HB_CAT_LOGITS;
    if (m->g->ops[at].value_count < 2 || (op->phase != HB_PHASE_OPTIMIZER && !ring))
        return;
    uint32_t last = HB_NONE, end = op->read_count + (ring ? 2 : op->write_count);
    for (uint32_t i = op->read_count; i < end; i++) {
        uint32_t root = m->root[hb_maker_refs(m, op)[i]];
        if (m->holder[root] == at)
            m->holder[root] = last = hb_parts_read(m, root, ring ? last : HB_NONE);
    }
    for (uint32_t i = op->read_count; ring && i < hb_maker_ref_count(op); i++)
        m->holder[m->root[hb_maker_refs(m, op)[i]]] = last;
}

void hb_parts_note_turned(struct maker *m, const struct hb_op *op)
{
    const uint32_t *refs = hb_maker_refs(m, op);
    if (op->kind == HB_OP_COPY && op->loop == HB_NONE &&
        m->p->bufs[refs[0]].bytes == m->p->bufs[refs[1]].bytes)
        m->turned[m->root[refs[0]]] = true;
}

/* Of an update, the weight whose stack lies turned in the loops. */
uint32_t hb_parts_turned_weight(const struct maker *m, const struct hb_op *op)
{
    for (uint32_t i = op->read_count; i < hb_maker_ref_count(op); i++)
        if (m->turned[m->root[hb_maker_refs(m, op)[i]]])
            return m->root[hb_maker_refs(m, op)[i]];
    return HB_NONE;
}

/* Its gradient does, too: the moments are made by an op that turns it, and the weight by another,
 * which reads those (24 dumps of ROCm's scans). Makes the first; returns what is left to the other.
 */
uint32_t hb_parts_add_moments(struct maker *m, const struct hb_op *op, uint32_t weight,
                              uint32_t count)
{
    uint32_t at = hb_maker_add_op(m, HB_NONE);
    if (m->norm != HB_NONE)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, m->norm);
    hb_maker_add_operands(m, at, m->roots, count);
    for (uint32_t i = op->read_count; i < hb_maker_ref_count(op); i++)
        if (m->root[hb_maker_refs(m, op)[i]] != weight)
            hb_maker_make_value(m, m->root[hb_maker_refs(m, op)[i]], at);
    hb_parts_hand_out(m, op, at);
    for (uint32_t i = 0; i < op->write_count; i++)
        m->roots[i] = m->root[hb_maker_refs(m, op)[op->read_count + i]];
    return op->write_count;
}

struct hb_factored hb_parts_find_factored(const struct maker *m, const struct hb_op *op)
{
    enum { WRITES = 3 };
    struct hb_factored f = {HB_NONE, HB_NONE, HB_NONE, HB_NONE};
    const uint32_t *refs = hb_maker_refs(m, op), *made = refs + op->read_count;
    if (m->p->compiler != HB_XLA_GPU || op->write_count != WRITES)
        return f;
    for (uint32_t i = 0; i < op->read_count; i++)
        if (m->p->bufs[refs[i]].category == HB_CAT_GRADIENTS)
            f.grad = m->root[refs[i]];
    f.rows = m->root[made[1]], f.columns = m->root[made[2]];
    if (f.grad != HB_NONE && m->value[f.grad] != HB_NONE &&
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
        struct hb_factored f = hb_parts_find_factored(m, &p->ops[i]);
        if (f.weight != HB_NONE)
            parts[count++] = hb_parts_read(m, f.grad, m->norm);
    }
    m->column_sum = hb_maker_add_op(m, HB_NONE);
    for (uint32_t i = 0; i < count; i++)
        hb_graph_add_ref(m->g, HB_GRAPH_OPERAND, parts[i]);
    return m->column_sum;
}

/* With what was there it is a new state. */
static uint32_t add_mean(struct maker *m, uint32_t sum, uint32_t state)
{
    uint32_t at = hb_parts_add_reader(m, sum, HB_NONE);
    hb_maker_make_value(m, state, at);
    return at;
}

/* The gradient is read for either mean, for the size of the update that these make, and by the
 * update (8B on an H100, 8 layers, q, k, v, attn_out on the host: depth-first 28.30 GiB, by the
 * compiler's log 28.30; as one op 32.87). Returns what the op of the program reads besides. */
struct hb_parts hb_parts_add_factored(struct maker *m, struct hb_factored f, uint32_t i)
{
    uint32_t sum = add_column_sums(m, i);
    add_mean(m, sum == HB_NONE ? hb_parts_read(m, f.grad, m->norm) : sum, f.columns);
    uint32_t columns = m->holder[f.columns] = hb_parts_read(m, f.columns, HB_NONE);
    uint32_t rows =
        hb_parts_add_reader(m, add_mean(m, hb_parts_read(m, f.grad, m->norm), f.rows), HB_NONE);
    uint32_t size = read_with(m, f.grad, columns, rows);
    for (int k = 0; k < 3; k++) /* in two steps, and its root */
        size = hb_parts_add_reader(m, size, HB_NONE);
    return (struct hb_parts){{size, columns, rows}, 3};
}
