/* XLA's latency-hiding scheduler on what the optimizer does with states on the host: see copies.h.
 *
 * The step's end is a row of ops: the loss, the layers' backward pass, the head's product, the
 * exchange of the table's rows, the gradients' norm, then
 *
 *   fetch m, m is there, fetch v, v is there, update w, send m, m is gone, send v, v is gone, ...
 *
 * in the memory scheduler's order (order_depth.c in sim/graph has it for whole graphs): results by
 * what is above them. It is gone through from behind, with a clock that runs backwards. Of the ops
 * whose users all have their place, next is (latency_hiding_scheduler.cc, ReadySetLt):
 *
 *   the end of a copy, while less than five are under way, on v5e of the longest one, elsewhere of
 *   the last in the row; else what waits least: a copy's start, until the copy's time is over, for
 *   what it moves; else a start that lets another copy's end be placed; an op that a copy's end
 *   stands before; and of equals the last in the row.
 *
 * The layers' loop, which has collectives in it, counts as an end where its time has come. Times
 * are the compiler's own, as its log tells them (vmodule latency_hiding_scheduler=5). */
#include "sim/ir/copies.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/ir/head.h"
#include "sim/ir/order.h"
#include "sim/ir/sequence.h"
#include "sim/ir/stack.h"
#include "sim/ir/weight.h"

static const double LONG = 1e18; /* over any copy: the layers' way */
/* A copy of less takes as long (24 modules: pairs of copies in order 99.1 of 100, else 97.0). */
static const double LEAST_BYTES = 3 << 20;

enum {
    MOMENT = 2,    /* of a leaf's states the first one's */
    LOGITS = 6,    /* bytes each, in f32 and bf16 */
    AT_ONCE = 5,   /* copies between host and device under way */
    EXCHANGED = 4, /* so many bytes of rows are exchanged while one is on its way to the host ... */
    SUMMED = 16    /* ... and of a weight's or the table's whole gradient summed */
};

bool hb_copies_queued(const struct hb_lower *lo)
{
    const struct hb_optim *o = &lo->spec->optimizer;
    return lo->habits->rings && o->offload == HB_PLACE_PINNED_HOST && o->name != HB_OPT_MUON;
}

/* --- the row --- */

/* Of a weight among the program's arguments: by name, the head's last. */
enum rank { TABLE, VECTORS, DOWN, GATE, KEYS, OUT, QUERIES, ROUTER, UP, VALUES, HEAD };

static enum rank rank_of(const struct hb_lower *lo, uint32_t i)
{
    static const struct {
        const char *name;
        enum rank rank;
    } names[] = {{"w_down", DOWN}, {"e_down", DOWN}, {"w_gate", GATE}, {"e_gate", GATE},
                 {"wk", KEYS},     {"wo", OUT},      {"wq", QUERIES},  {"w_up", UP},
                 {"e_up", UP},     {"wv", VALUES}};
    const struct hb_leaf *l = &lo->leaves[i];
    const char *name = strrchr(l->name, '.');
    if (i == lo->embed || i == lo->head)
        return i == lo->embed ? TABLE : HEAD;
    if (!l->matrix || !name)
        return VECTORS;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (hb_str_same(name + 1, names[k].name))
            return names[k].rank;
    return ROUTER;
}

enum node_kind { GRADIENT, LOSS, LAYERS, FETCH, FETCHED, UPDATE, SEND, SENT };

/* States of an update's two weights, in a row; the update of all that none makes alone is 0. */
enum { SLOTS = 2 * HB_LEAF_STATES };

/* An op of the row. */
struct node {
    enum node_kind kind;
    uint32_t leaf, mate;
    int state;              /* of an update: 0, or the one that it alone makes */
    uint32_t before[SLOTS]; /* ops that it reads */
    uint32_t before_count;
    uint32_t users; /* without a place so far */
    double bytes;   /* that it moves */
    double cost;    /* in bytes over the host's link */
    double ready;   /* on the clock */
};

/* What updates are of: a weight, and another of its shape in the same (HB_NONE: none). */
struct weight {
    uint32_t leaf[2]; /* the first of each */
    enum rank rank[2];
    int64_t bytes[SLOTS];                   /* 0: there is no such state */
    bool host[SLOTS], apart[SLOTS];         /* a state is there; an update makes it alone */
    uint32_t fetched[SLOTS], update[SLOTS]; /* nodes */
    int64_t above[SLOTS], users[SLOTS];     /* of an update, see weigh_update; 0: not known */
    bool met[SLOTS];                        /* a state's copy is counted */
};

/* What the step returns: a weight's new state, or the weight. */
struct result {
    uint32_t weight;
    int slot;
    int64_t users, bytes; /* above it */
};

struct row {
    struct hb_lower *lo;
    struct node *nodes;
    uint32_t count;
    struct weight *weights; /* in the order of their updates */
    uint32_t weight_count;
    struct result *results;
    uint32_t result_count;
    int64_t forward, begun, made; /* bytes before the loss, before updates, and with some of them */
    int64_t rows;                 /* that the table's gradient is made through */
    enum hb_sequence sequence;
    bool loop;       /* over microbatches */
    bool waits;      /* updates wait for the gradients' norm */
    uint32_t layers; /* nodes */
    uint32_t loss, table, head, norm;
};

static uint32_t add_node(struct row *r, struct node n)
{
    r->nodes[r->count] = n;
    return r->count++;
}

static void add_before(struct row *r, uint32_t node, uint32_t before)
{
    struct node *n = &r->nodes[node];
    n->before[n->before_count++] = before;
    r->nodes[before].users++;
}

/* With experts and without tensor parallelism a list in seven of eight dumps. */
static enum hb_sequence find_sequence(const struct hb_lower *lo)
{
    enum hb_sequence known = hb_sequence_known(lo) ? hb_sequence_find(lo) : HB_SEQUENCE_DEPTH;
    if (known == HB_SEQUENCE_LIST || hb_alone(lo) ||
        (hb_begins_mixed(lo) && hb_ways(lo, HB_AX_TENSOR) == 1) || hb_sequence_hosted_list(lo))
        return HB_SEQUENCE_LIST;
    bool post = hb_sequence_post_tensor(lo) && !hb_sequence_tensor_known(lo);
    post |= known == HB_SEQUENCE_POST && hb_accumulates(lo);
    return post || (hb_sequence_gathers_taken(lo) & HB_GATHERS_POST) ? HB_SEQUENCE_POST
                                                                     : HB_SEQUENCE_DEPTH;
}

/* Between rings of fsdp alone a weight's f32 gradient is summed before its update, in a ring. */
static bool sums_late(const struct row *r)
{
    const struct hb_lower *lo = r->lo;
    return hb_in_rings(lo) && lo->local.vocab == lo->spec->model.vocab && !r->loop &&
           lo->head != lo->embed && hb_weight_grad_dtype(lo) != lo->compute;
}

/* One pass makes all that an update gives, unless the gradient is scaled in it, by the norm or by
 * the number of microbatches: then a moment in f32 comes apart from one in bf16 and the weight, and
 * of a gradient in bf16 each by itself (24 steps of v5e, v5p and v6e), as Lion's moment is. */
static bool is_apart(const struct hb_lower *lo, int state)
{
    const struct hb_optim *o = &lo->spec->optimizer;
    int k = state - MOMENT;
    if (k < 0)
        return false;
    if (o->name == HB_OPT_LION)
        return true;
    bool mixed = o->moment_count > 1 && o->moments[0] != o->moments[1];
    if (!hb_updates_wait(lo) || (!mixed && o->moments[0] == HB_DT_F32))
        return false;
    if (!hb_accumulates(lo) && hb_weight_grad_dtype(lo) != HB_DT_F32)
        return true;
    return k < HB_MOMENTS && o->moments[k] == HB_DT_F32; /* the weights' average comes with them */
}

typedef bool before_fn(const struct row *r, const struct weight *a, const struct weight *b);

/* A list has small weights first. */
static bool is_smaller(const struct row *r, const struct weight *a, const struct weight *b)
{
    int64_t x = hb_leaf_all_bytes(r->lo, a->leaf[0]), y = hb_leaf_all_bytes(r->lo, b->leaf[0]);
    return x != y ? x < y : a->rank[0] < b->rank[0];
}

static bool is_named_after(const struct row *r, const struct weight *a, const struct weight *b)
{
    (void)r;
    return a->rank[0] > b->rank[0];
}

static void sort_weights(struct row *r, before_fn *before)
{
    for (uint32_t i = 1; i < r->weight_count; i++) {
        struct weight own = r->weights[i];
        uint32_t at = i;
        for (; at > 0 && before(r, &own, &r->weights[at - 1]); at--)
            r->weights[at] = r->weights[at - 1];
        r->weights[at] = own;
    }
}

static bool is_mate(const struct row *r, uint32_t a, uint32_t b)
{
    struct hb_lower *lo = r->lo;
    const struct hb_leaf *x = &lo->leaves[a], *y = &lo->leaves[b];
    struct hb_shape p = hb_leaf_shape(x, HB_DT_F32), q = hb_leaf_shape(y, HB_DT_F32);
    return hb_shape_same_dims(&p, &q);
}

static uint32_t leaf_of(const struct weight *w, int slot)
{
    return w->leaf[slot / HB_LEAF_STATES];
}

static void know_states(struct hb_lower *lo, struct weight *w)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        uint32_t leaf = leaf_of(w, slot);
        int state = slot % HB_LEAF_STATES;
        w->bytes[slot] = 0;
        w->host[slot] = w->apart[slot] = false;
        if (leaf == HB_NONE || *hb_leaf_state(&lo->leaves[leaf], state) == HB_NONE)
            continue;
        uint32_t buf = *hb_leaf_state(&lo->leaves[leaf], state);
        w->bytes[slot] = hb_leaf_all_bytes(lo, leaf) / 32 * hb_dtype_bits(lo->p->bufs[buf].dtype);
        w->host[slot] = hb_leaf_on_host(lo, &lo->leaves[leaf], state);
        w->apart[slot] = is_apart(lo, state);
        lo->kinds[lo->leaves[leaf].kind].apart |= (unsigned)w->apart[slot] << state;
    }
}

/* v6e adds the last microbatch's gradients of two weights of a shape, and updates them, at once, by
 * their names from the last on (wu with wg, wv with wk, wq with wo where these are square, and with
 * wv where all heads have keys; and one over sequence 2; none on v5e and v5p). */
static void join_mates(struct row *r)
{
    if (!r->lo->chip->updates_joined || (!r->loop && hb_ways(r->lo, HB_AX_SEQUENCE) == 1))
        return;
    for (uint32_t i = 0; i < r->weight_count; i++)
        for (uint32_t k = i + 1; k < r->weight_count; k++) {
            if (!is_mate(r, r->weights[i].leaf[0], r->weights[k].leaf[0]))
                continue;
            r->weights[i].leaf[1] = r->weights[k].leaf[0];
            r->weights[i].rank[1] = r->weights[k].rank[0];
            know_states(r->lo, &r->weights[i]);
            r->weight_count--;
            memmove(&r->weights[k], &r->weights[k + 1], (r->weight_count - k) * sizeof *r->weights);
            break;
        }
}

static void list_weights(struct row *r)
{
    struct hb_lower *lo = r->lo;
    r->weights = hb_arena_raw(lo->arena, lo->leaf_count, sizeof *r->weights);
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        if (hb_leaf_first(lo, i) != i)
            continue;
        struct weight own = {.leaf = {i, HB_NONE}, .rank = {rank_of(lo, i)}};
        know_states(lo, &own);
        for (int k = 0; k < SLOTS; k++)
            own.fetched[k] = own.update[k] = HB_NONE;
        r->weights[r->weight_count++] = own;
    }
    sort_weights(r, is_named_after);
    join_mates(r);
}

/* The update that makes a state. */
static int update_of(const struct weight *w, int slot)
{
    return w->apart[slot] ? slot : 0;
}

/* The weight's new value comes from all states. */
static bool reads(const struct weight *w, int update, int slot)
{
    return w->bytes[slot] > 0 && (update == 0 || update == slot);
}

/* --- ops --- */

static uint32_t add_place(struct row *r, enum node_kind kind, double cost)
{
    struct node n = {.kind = kind, .leaf = HB_NONE, .mate = HB_NONE, .cost = cost};
    return add_node(r, n);
}

static uint32_t add_move(struct row *r, enum node_kind kind, const struct weight *w, int slot)
{
    struct node n = {.kind = kind, .leaf = leaf_of(w, slot), .state = slot % HB_LEAF_STATES};
    n.bytes = (double)w->bytes[slot];
    return add_node(r, n);
}

static void fetch_state(struct row *r, struct weight *w, int slot)
{
    if (w->fetched[slot] != HB_NONE || !w->host[slot])
        return;
    uint32_t fetch = add_move(r, FETCH, w, slot);
    w->fetched[slot] = add_move(r, FETCHED, w, slot);
    add_before(r, w->fetched[slot], fetch);
}

/* Of the table's gradient, in bf16, or of the head's. */
static int64_t table_bytes(const struct hb_lower *lo)
{
    return hb_mul_sat(2 * lo->local.vocab, lo->spec->model.d_model);
}

/* One product makes the head's gradient behind the loss, of a table that is the head's, too, where
 * no ring does; else for the head alone. */
static bool makes_head(const struct row *r)
{
    bool own = r->lo->head != r->lo->embed;
    return !r->loop && !hb_in_chunks(r->lo) && (own || !hb_head_ring(r->lo));
}

static bool is_head_alone(const struct row *r)
{
    return makes_head(r) && r->lo->head != r->lo->embed;
}

/* The head's product makes again what the last norm gives, from its weight where that is no cast:
 * the update in the weight's place waits for it. */
static bool holds_norm(const struct hb_lower *lo)
{
    return lo->spec->precision.params != lo->compute;
}

static uint32_t head_product(struct row *r)
{
    if (r->head == HB_NONE) {
        double flops = (double)r->lo->local.tokens * (double)table_bytes(r->lo);
        r->head = add_place(r, GRADIENT, flops / r->lo->chip->host_flops);
        add_before(r, r->head, r->loss);
    }
    return r->head;
}

/* The head's gradient summed over fsdp, in f32 each device's part or in bf16 the whole, which takes
 * twice as long, along all sides of a whole slice's torus at once, else one (f32[4096,128256] over
 * 4 of v5p 72.0 MB of the host's link, over 2 144.1, bf16[4096,32000] over 64 12.0). */
static double sum_cost(const struct hb_lower *lo)
{
    int64_t ways = hb_fsdp_ways(lo, false);
    bool whole = ways == lo->spec->hardware.count;
    double sides = !whole ? 1 : lo->chip->flat || ways < 8 ? 2 : 3;
    return 2 * (double)table_bytes(lo) / lo->chip->host_sums / sides;
}

/* Of the head, summed where no ring makes it, or of the last norm: behind the layers, too. */
static uint32_t end_gradient(struct row *r, bool product, bool sum)
{
    uint32_t node = add_place(r, GRADIENT, sum ? sum_cost(r->lo) : 0);
    add_before(r, node, product ? head_product(r) : r->loss);
    add_before(r, node, r->layers);
    return node;
}

static uint32_t gradient_of(struct row *r, uint32_t leaf)
{
    if (r->waits)
        return r->norm;
    if (leaf == r->lo->embed) /* a tied head's is summed with the table's */
        return r->table;
    if (is_head_alone(r) && leaf == r->lo->head)
        return end_gradient(r, true, !hb_head_ring(r->lo));
    if (makes_head(r) && leaf == r->lo->norm)
        return end_gradient(r, holds_norm(r->lo), false);
    if (leaf == r->lo->head || !sums_late(r))
        return r->layers;
    double others = (double)hb_fsdp_ways(r->lo, false) - 1;
    double bytes = (double)hb_leaf_all_bytes(r->lo, leaf) * others / 2;
    uint32_t sum = add_place(r, GRADIENT, bytes / SUMMED);
    add_before(r, sum, r->layers);
    return sum;
}

/* What two updates read is fetched first. */
static uint32_t add_update(struct row *r, struct weight *w, int update)
{
    uint32_t gradient = gradient_of(r, w->leaf[0]);
    for (int i = 0; i < SLOTS; i++) {
        int slot = i / 2 + i % 2 * HB_LEAF_STATES; /* of both weights in turn */
        if (reads(w, update, slot))
            fetch_state(r, w, slot);
    }
    struct node n = {.kind = UPDATE, .leaf = leaf_of(w, update), .mate = HB_NONE};
    n.state = update % HB_LEAF_STATES;
    double moved = (double)hb_leaf_all_bytes(r->lo, n.leaf); /* of its gradient */
    n.mate = update ? HB_NONE : w->leaf[1];
    for (int k = 0; k < SLOTS; k++)
        if (reads(w, update, k))
            moved += 2 * (double)w->bytes[k];
    n.cost = moved / r->lo->chip->host_passes;
    uint32_t node = add_node(r, n);
    for (int k = 0; k < SLOTS; k++)
        if (reads(w, update, k) && w->fetched[k] != HB_NONE)
            add_before(r, node, w->fetched[k]);
    add_before(r, node, gradient);
    return node;
}

static void add_result(struct row *r, struct weight *w, int slot)
{
    int update = update_of(w, slot);
    if (w->update[update] == HB_NONE)
        w->update[update] = add_update(r, w, update);
    if (!w->host[slot])
        return;
    uint32_t send = add_move(r, SEND, w, slot);
    add_before(r, send, w->update[update]);
    add_before(r, add_move(r, SENT, w, slot), send);
}

/* The table's gradient is made through two forms of the whole, which are summed, or of a device's
 * rows, which are exchanged. */
static double find_rows(struct row *r)
{
    const struct hb_lower *lo = r->lo;
    int64_t tokens = hb_mul_sat(lo->local.batch, lo->spec->batch.seq);
    bool whole = hb_order_rows_stay(lo);
    int64_t form = whole ? table_bytes(lo) : hb_mul_sat(2 * tokens, lo->spec->model.d_model);
    r->rows = hb_mul_sat(2, form);
    return (double)form / (whole ? SUMMED : EXCHANGED);
}

/* What is before the updates. */
static void add_gradients(struct row *r)
{
    r->loss = add_place(r, LOSS, 0);
    r->head = HB_NONE;
    if (makes_head(r) && !hb_head_waits(r->lo))
        head_product(r);
    r->layers = add_place(r, LAYERS, LONG);
    add_before(r, r->layers, r->loss);
    r->table = r->layers;
    if (!r->loop) {
        r->table = add_place(r, GRADIENT, find_rows(r));
        add_before(r, r->table, r->layers);
        if (makes_head(r) && !is_head_alone(r))
            add_before(r, r->table, end_gradient(r, true, true));
    }
    if (r->waits) {
        r->norm = add_place(r, GRADIENT, 0);
        if (is_head_alone(r))
            add_before(r, r->norm, end_gradient(r, true, !hb_head_ring(r->lo)));
        add_before(r, r->norm, r->table);
        add_before(r, r->norm, r->layers);
    }
}

/* --- a list --- */

/* Weights of one size, from one on. */
static uint32_t end_of_size(const struct row *r, uint32_t first)
{
    int64_t bytes = hb_leaf_all_bytes(r->lo, r->weights[first].leaf[0]);
    uint32_t end = first + 1;
    while (end < r->weight_count && hb_leaf_all_bytes(r->lo, r->weights[end].leaf[0]) == bytes)
        end++;
    return end;
}

/* A list begins with what needs nothing, the smallest first: copies from the host, and what the
 * first loop needs, which then comes before the list goes on: accumulators of gradients, or the
 * room for all layers' inputs (mixtral on v5p, 2048 MiB in all: 896 before it; over 32, e_down's
 * accumulator in rows of lanes, 2304: all moments of 1152). Behind that loop come those of less
 * than the f32 logits, or the largest zeros of the next (8B over 4, logits of 2004 MiB: 1792). */
static int64_t early_bytes(const struct row *r)
{
    const struct hb_lower *lo = r->lo;
    int64_t most = r->loop || hb_in_chunks(lo) ? 0 : hb_logit_bytes(lo, 4);
    int bits = hb_dtype_bits(hb_weight_grad_dtype(lo));
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        int64_t zeros = lo->leaves[i].end ? 0 : hb_leaf_all_bytes(lo, i) / 32 * bits;
        most = hb_larger(most, r->loop ? lo->p->bufs[lo->leaves[i].accum].bytes : zeros);
    }
    return r->loop ? most : hb_larger(most, hb_add_sat(lo->input_bytes, 1));
}

/* Of both weights of each update from one on. */
static void fetch_states(struct row *r, uint32_t first, uint32_t end, int state)
{
    for (uint32_t w = first; w < end; w++)
        for (int slot = state; slot < SLOTS; slot += HB_LEAF_STATES)
            fetch_state(r, &r->weights[w], slot);
}

static void fetch_early(struct row *r)
{
    int64_t most = early_bytes(r);
    for (uint32_t i = 0, end; i < r->weight_count; i = end) {
        bool early = hb_leaf_all_bytes(r->lo, r->weights[i].leaf[0]) < most;
        end = end_of_size(r, i);
        for (int k = 0; k < HB_LEAF_STATES && early; k++)
            fetch_states(r, i, end, k);
    }
}

static void add_weight(struct row *r, struct weight *w)
{
    for (int k = 0; k < SLOTS; k++)
        if (w->bytes[k] > 0)
            add_result(r, w, k);
}

static void add_list(struct row *r)
{
    for (uint32_t i = 0, end; i < r->weight_count; i = end) {
        end = end_of_size(r, i);
        fetch_states(r, i, end, MOMENT);
        for (uint32_t w = i; w < end; w++)
            add_weight(r, &r->weights[w]);
    }
}

/* --- depth-first and post-order --- */

/* Before the loss: both forms of the layers' stacks and of the head's gradient, logits and casts;
 * then of the layers' gradients, with the table's, or of the loop's accumulators. */
static void weigh_step(struct row *r)
{
    const struct hb_lower *lo = r->lo;
    int bits = hb_dtype_bits(r->loop ? HB_DT_F32 : hb_weight_grad_dtype(lo));
    int64_t grads = r->loop ? 0 : 2 * table_bytes(lo);
    int64_t stacks = hb_mul_sat(2, hb_add_sat(hb_sequence_kept_bytes(lo), table_bytes(lo)));
    r->forward = r->loop ? 0 : hb_add_sat(stacks, hb_logit_bytes(lo, LOGITS));
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        int64_t bytes = hb_leaf_first(lo, i) == i ? hb_leaf_all_bytes(lo, i) : 0;
        r->forward = hb_add_sat(r->forward, lo->leaves[i].cast == HB_NONE ? 0 : bytes / 2);
        bool counts = r->loop || !lo->leaves[i].end;
        grads = hb_add_sat(grads, counts ? hb_mul_sat(bytes / 16, bits) : 0);
    }
    r->begun = r->made = hb_add_sat(r->forward, grads);
}

/* All that the step made, and of a table the sum that is whole, or both forms of what lies turned;
 * a head's comes out of the loss alone, unless a ring makes it. */
static int64_t above_gradient(struct row *r, uint32_t leaf)
{
    const struct hb_lower *lo = r->lo;
    if (leaf == lo->embed) {
        int64_t own = r->loop ? 0 : r->rows;
        r->made = hb_add_sat(r->made, own);
        return hb_add_sat(r->begun, own);
    }
    if (is_head_alone(r) && leaf == lo->norm) {
        int64_t forms = hb_add_sat(3 * table_bytes(lo), hb_logit_bytes(lo, 4));
        return hb_add_sat(r->forward, holds_norm(lo) ? forms : 0);
    }
    /* The logits are above the head's product along two ways and more, all sums of which end at
     * what was made so far: where that is little else it is the first of all (four layers of 1,024,
     * 32,000 words, tensor 8: the product at 134, the layers at 194). */
    if (is_head_alone(r) && leaf == lo->head && hb_mul_sat(2, r->forward) > r->made)
        return r->made;
    if (r->loop || leaf != lo->head)
        return r->begun;
    bool ring = hb_head_ring(lo) && !hb_in_chunks(lo);
    return ring ? hb_add_sat(r->begun, hb_logit_bytes(lo, 4)) : r->forward;
}

/* What is above an update: users but one of each op, and bytes, along every path and so often more
 * than once, though no more than were made so far. The gradients, and the norm once more, have all
 * that the step made above them: in one microbatch so many users that they are not told apart. Most
 * is above the last norm of a head that is the table, then above that (25 logs of 25). Rings of
 * sums behind the layers' loop, of a trip that is taken out and v6e's, have all above them that was
 * made; else larger weights come first (8B over 8 and 16 of v5p in 4 chunks: w_down, table, gate,
 * up, wo and so on, the head behind the loop that adds up the loss). */
static void weigh_update(struct row *r, struct weight *w, int update)
{
    int64_t own = r->waits ? r->begun : 0, users = -1;
    for (int slot = 0; slot < SLOTS; slot++) {
        if (leaf_of(w, slot) != HB_NONE && slot % HB_LEAF_STATES == 0) {
            own = hb_add_sat(own, above_gradient(r, leaf_of(w, slot)));
            users += r->weight_count;
        }
        if (!reads(w, update, slot))
            continue;
        bool host = w->host[slot], makes = update_of(w, slot) == update;
        int64_t bytes = w->bytes[slot];
        own = hb_add_sat(own, (makes + host) * bytes);
        r->made = hb_add_sat(r->made, (makes + (host && !w->met[slot])) * bytes);
        w->met[slot] = host;
        users += makes + 2 * (update_of(w, slot) != 0); /* of the state, of its gradient */
    }
    w->users[update] = r->waits ? 0 : users;
    bool outside = hb_offloads(r->lo) || r->lo->chip->ring_columns_at_once;
    bool late = sums_late(r) && outside && w->leaf[0] != r->lo->head;
    w->above[update] = late || own > r->made ? r->made : own;
    if (makes_head(r) && !is_head_alone(r) && !r->waits && r->lo->leaves[w->leaf[0]].end)
        w->above[update] = INT64_MAX / 2 - (w->leaf[0] == r->lo->embed);
}

/* In the order of the step's results. */
static void weigh_result(struct row *r, uint32_t weight, int slot)
{
    struct weight *w = &r->weights[weight];
    int update = update_of(w, slot);
    if (w->above[update] == 0)
        weigh_update(r, w, update);
    int64_t sent = w->host[slot] ? w->bytes[slot] : 0;
    r->made = hb_add_sat(r->made, sent);
    int64_t above = hb_add_sat(w->above[update], sent);
    r->results[r->result_count++] = (struct result){weight, slot, w->users[update], above};
}

/* Of all weights by their names. */
static void weigh_state(struct row *r, int state)
{
    for (int rank = TABLE; rank <= HEAD; rank++)
        for (uint32_t i = 0; i < 2 * r->weight_count; i++) {
            int slot = state + (int)(i % 2) * HB_LEAF_STATES;
            const struct weight *w = &r->weights[i / 2];
            if (w->bytes[slot] > 0 && (int)w->rank[i % 2] == rank)
                weigh_result(r, i / 2, slot);
        }
}

/* States by their names, weights last; depth-first visits first what has most above it. */
static void add_results(struct row *r)
{
    static const int states[HB_LEAF_STATES] = {HB_LEAF_STATES - 1, 1, MOMENT, MOMENT + 1, 0};
    size_t most = (size_t)r->lo->leaf_count * HB_LEAF_STATES;
    r->results = hb_arena_raw(r->lo->arena, most, sizeof *r->results);
    weigh_step(r);
    for (int i = 0; i < HB_LEAF_STATES; i++)
        weigh_state(r, states[i]);
    for (uint32_t i = 1; i < r->result_count && r->sequence == HB_SEQUENCE_DEPTH; i++) {
        struct result own = r->results[i], *at = &r->results[i];
        for (; at > r->results &&
               (own.users != at[-1].users ? own.users > at[-1].users : own.bytes > at[-1].bytes);
             at--)
            *at = at[-1];
        *at = own;
    }
    for (uint32_t i = 0; i < r->result_count; i++)
        add_result(r, &r->weights[r->results[i].weight], r->results[i].slot);
}

/* --- the walk --- */

/* An op whose users all have their place, but the end of a copy. */
struct ready {
    uint32_t node;
    bool start;   /* of a copy */
    bool loop;    /* with collectives in it, which counts as an end */
    bool unlocks; /* the end of a copy stands before it */
    double at;    /* on the clock */
};

struct walk {
    struct row *r;
    struct ready *ready;
    uint32_t *ends;   /* of copies, whose users all have their place: what comes first is last */
    uint32_t *placed; /* from the last on */
    uint32_t ready_count, end_count, placed_count, under_way;
    double now;
};

static bool is_end(const struct node *n)
{
    return n->kind == FETCHED || n->kind == SENT;
}

static bool is_start(const struct node *n)
{
    return n->kind == FETCH || n->kind == SEND;
}

static bool is_end_before(const struct walk *w, uint32_t x, uint32_t y)
{
    double p = w->r->nodes[x].bytes, q = w->r->nodes[y].bytes;
    bool longest = w->r->lo->chip->longest_copy && (p < q || q < p);
    return longest ? p > q : x > y;
}

static void add_ready(struct walk *w, uint32_t node)
{
    const struct node *n = &w->r->nodes[node];
    if (is_end(n)) {
        uint32_t at = w->end_count++;
        for (; at > 0 && is_end_before(w, w->ends[at - 1], node); at--)
            w->ends[at] = w->ends[at - 1];
        w->ends[at] = node;
        return;
    }
    bool unlocks = n->before_count > 0 && is_end(&w->r->nodes[n->before[0]]);
    w->ready[w->ready_count++] =
        (struct ready){node, is_start(n), n->kind == LAYERS, unlocks, n->ready};
}

static bool is_better(const struct walk *w, bool held_up, const struct ready *x,
                      const struct ready *y)
{
    double p = x->at > w->now ? x->at : w->now, q = y->at > w->now ? y->at : w->now;
    if (p < q || q < p)
        return p < q;
    if (x->loop != y->loop && x->start != y->start)
        return x->loop;
    if (held_up && x->start != y->start)
        return x->start;
    return x->unlocks != y->unlocks ? x->unlocks : x->node > y->node;
}

static uint32_t take_best(struct walk *w)
{
    bool held_up = w->end_count > 0;
    uint32_t best = 0;
    if (held_up && w->under_way < AT_ONCE)
        return w->ends[--w->end_count];
    for (uint32_t i = 1; i < w->ready_count; i++)
        if (is_better(w, held_up, &w->ready[i], &w->ready[best]))
            best = i;
    uint32_t node = w->ready[best].node;
    w->ready[best] = w->ready[--w->ready_count];
    return node;
}

static void place(struct walk *w, uint32_t node)
{
    struct node *n = &w->r->nodes[node];
    w->placed[w->placed_count++] = node;
    if (n->ready > w->now)
        w->now = n->ready;
    w->now += n->cost;
    w->under_way += is_end(n);
    w->under_way -= is_start(n);
    for (uint32_t i = 0; i < n->before_count; i++) {
        struct node *b = &w->r->nodes[n->before[i]];
        if (--b->users > 0)
            continue;
        b->ready = w->now + (is_start(b) ? fmax(b->bytes, LEAST_BYTES) : 0);
        add_ready(w, n->before[i]);
    }
}

static void keep_event(struct hb_copies *c, const struct node *n)
{
    static const enum hb_copies_kind kinds[] = {[LOSS] = HB_COPIES_LOSS,
                                                [LAYERS] = HB_COPIES_LAYERS,
                                                [FETCH] = HB_COPIES_FETCH,
                                                [UPDATE] = HB_COPIES_UPDATE,
                                                [SENT] = HB_COPIES_SEND};
    if (n->kind == GRADIENT || n->kind == FETCHED || n->kind == SEND)
        return;
    struct hb_copies_event e = {.kind = kinds[n->kind], .leaf = n->leaf, .state = n->state};
    c->events[c->count++] = e;
    if (n->kind == UPDATE && n->mate != HB_NONE) {
        e.leaf = n->mate;
        c->events[c->count++] = e;
    }
}

void hb_copies_find(struct hb_lower *lo)
{
    enum { PLACES = 9, OF_STATE = 5, OF_WEIGHT = 2 };
    struct row r = {.lo = lo,
                    .sequence = find_sequence(lo),
                    .loop = hb_accumulates(lo),
                    .waits = lo->spec->optimizer.clip};
    list_weights(&r);
    size_t most = PLACES + (size_t)lo->leaf_count * (OF_STATE * HB_LEAF_STATES + OF_WEIGHT);
    r.nodes = hb_arena_raw(lo->arena, most, sizeof *r.nodes);
    if (r.sequence == HB_SEQUENCE_LIST) {
        sort_weights(&r, is_smaller);
        fetch_early(&r);
    }
    add_gradients(&r);
    if (r.sequence == HB_SEQUENCE_LIST)
        add_list(&r);
    else
        add_results(&r);
    lo->copies = hb_arena_alloc(lo->arena, 1, sizeof *lo->copies);
    lo->copies->list = r.sequence == HB_SEQUENCE_LIST;
    struct walk w = {.r = &r,
                     .ready = hb_arena_raw(lo->arena, r.count, sizeof(struct ready)),
                     .ends = hb_arena_raw(lo->arena, r.count, sizeof(uint32_t)),
                     .placed = hb_arena_raw(lo->arena, r.count, sizeof(uint32_t))};
    for (uint32_t i = 0; i < r.count; i++)
        if (r.nodes[i].users == 0)
            add_ready(&w, i);
    while (w.ready_count + w.end_count > 0)
        place(&w, take_best(&w));
    lo->copies->events = hb_arena_raw(lo->arena, 2 * (size_t)r.count, sizeof *lo->copies->events);
    for (uint32_t i = w.placed_count, behind = 0; i-- > 0; behind |= w.placed[i] == r.layers) {
        keep_event(lo->copies, &r.nodes[w.placed[i]]);
        lo->copies->head_behind |= behind && w.placed[i] == r.head;
    }
}
