/* XLA's latency-hiding scheduler on what the optimizer does with states on the host: see copies.h.
 *
 * The step's end, as the memory scheduler left it, is a row of ops:
 *
 *   ... the loss, the layers' backward pass, the gradients' norm,
 *   fetch m, m is there, fetch v, v is there, update w, send m, m is gone, send v, v is gone, ...
 *
 * It is gone through from behind, with a clock that runs backwards. Of the ops whose users all have
 * their place, next is (latency_hiding_scheduler.cc, ReadySetLt, without its aggressive rules):
 *
 *   the end of a copy, while less than five are under way, on v5e of the longest one (17 of 17
 *   schedules; elsewhere of the last in the row, 16 of 16);
 *   else what waits least: a copy's start, until the copy's time is over, for what it moves;
 *   else a start that lets another copy's end be placed; an op that a copy's end stands before;
 *   and of equals the last in the row.
 *
 * So what is on its way over the layers' pass are the states of the weights that are updated first,
 * the largest mostly: their copies back were the last to be started (mistral-24b on v5p: of 5886
 * pairs of copies and updates 5879 stand as in the compiler's schedule; 70B on 256: 99 of 100). */
#include "sim/ir/copies.h"

#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/ir/sequence.h"
#include "sim/ir/weight.h"

static const double LONG = 1e18; /* over any copy: the layers' way */

enum {
    MOMENT = 2,  /* of a leaf's states the first one's */
    AT_ONCE = 5, /* copies between host and device under way */
    SLOWER = 4   /* a byte's way to the host is so many times as long as an all-reduce's */
};

bool hb_copies_queued(const struct hb_lower *lo)
{
    const struct hb_optim *o = &lo->spec->optimizer;
    return lo->habits->rings && o->offload == HB_PLACE_PINNED_HOST && o->name != HB_OPT_MUON;
}

/* --- the row --- */

/* Of a weight among the program's arguments: by name, the head's last. */
enum rank { TABLE, NORM, VECTORS, DOWN, GATE, KEYS, OUT, QUERIES, ROUTER, UP, VALUES, HEAD };

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
    if (i == lo->norm || !l->matrix || !name)
        return i == lo->norm ? NORM : VECTORS;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (hb_str_same(name + 1, names[k].name))
            return names[k].rank;
    return ROUTER;
}

enum node_kind { GRADIENT, LOSS, LAYERS, FETCH, FETCHED, UPDATE, SEND, SENT };

/* An op of the row. */
struct node {
    enum node_kind kind;
    uint32_t leaf, mate;
    int state;
    uint32_t before[2 * HB_LEAF_STATES + 1]; /* ops that it reads */
    uint32_t before_count;
    uint32_t users; /* without a place so far */
    double cost;    /* in bytes over the host's link */
    double ready;   /* on the clock */
};

/* What one update is of. */
struct weight {
    uint32_t leaf; /* its first */
    uint32_t mate; /* another's, of the same shape, in the same update; HB_NONE */
    enum rank rank;
    uint32_t fetched[2][HB_LEAF_STATES]; /* nodes */
    uint32_t update;
};

struct row {
    struct hb_lower *lo;
    struct node *nodes;
    uint32_t count;
    struct weight *weights; /* in the order of their updates */
    uint32_t weight_count;
    uint32_t *first_of; /* by leaf */
    bool list;          /* the memory scheduler's order; else depth-first */
    bool loop;          /* over microbatches */
    bool waits;         /* updates wait for the gradients' norm */
    uint32_t layers;    /* nodes */
    uint32_t table, norm;
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

/* The memory scheduler took a list: of 34 dumped modules depth-first 20, a list 11, post-order 3;
 * with experts and without tensor parallelism a list 7 of 8. */
static bool is_list(const struct hb_lower *lo)
{
    bool experts = hb_block_mixes(&lo->spec->model.blocks[0]);
    if (hb_sequence_known(lo))
        return hb_sequence_find(lo) == HB_SEQUENCE_LIST;
    return hb_alone(lo) || (experts && hb_ways(lo, HB_AX_TENSOR) == 1);
}

static bool is_last_after_loop(enum rank k)
{
    return k == DOWN || k == VECTORS || k == TABLE;
}

/* Between rings of fsdp alone, where no norm waits for it, the sum of a weight's gradient comes
 * before its update, in a ring of its own. */
static bool sums_late(const struct row *r)
{
    const struct hb_lower *lo = r->lo;
    bool alone =
        hb_fsdp_ways(lo, false) == lo->local.batch_ways && lo->local.vocab == lo->spec->model.vocab;
    return hb_in_rings(lo) && alone && !r->loop && !r->waits;
}

/* A list has small weights first. Depth-first those with most bytes come first; where all wait for
 * the norm they are alike above, and come as their names do, the last first. One update of two is
 * read by more, and comes before all others. */
static bool is_updated_before(const struct row *r, const struct weight *a, const struct weight *b)
{
    if (!r->list && (a->mate == HB_NONE) != (b->mate == HB_NONE))
        return a->mate != HB_NONE;
    const struct hb_leaf *x = &r->lo->leaves[a->leaf], *y = &r->lo->leaves[b->leaf];
    enum rank m = a->rank, n = b->rank;
    if (r->list)
        return x->all_bytes != y->all_bytes ? x->all_bytes < y->all_bytes : m < n;
    if (r->waits && r->loop && (is_last_after_loop(m) || is_last_after_loop(n)))
        return is_last_after_loop(m) && is_last_after_loop(n) ? m > n : is_last_after_loop(n);
    if ((r->waits && !r->loop) || sums_late(r))
        return m > n;
    return x->all_bytes != y->all_bytes ? x->all_bytes > y->all_bytes : m < n;
}

/* The first of the leaves that are of one weight. */
static uint32_t find_first(const struct row *r, uint32_t leaf)
{
    const struct hb_leaf *leaves = r->lo->leaves;
    for (uint32_t i = 0; i < r->weight_count; i++)
        if (hb_leaf_is_same(&leaves[r->weights[i].leaf], &leaves[leaf]))
            return r->weights[i].leaf;
    return leaf;
}

typedef bool before_fn(const struct row *r, const struct weight *a, const struct weight *b);

static bool is_named_after(const struct row *r, const struct weight *a, const struct weight *b)
{
    (void)r;
    return a->rank > b->rank;
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
    struct hb_shape p = hb_leaf_shape(lo, x, HB_DT_F32), q = hb_leaf_shape(lo, y, HB_DT_F32);
    bool same = x->stack[0] > 0 && y->stack[0] > 0 && p.rank == q.rank;
    for (int i = 0; same && i < p.rank; i++)
        same = p.dim[i] == q.dim[i];
    return same;
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
            if (!is_mate(r, r->weights[i].leaf, r->weights[k].leaf))
                continue;
            r->weights[i].mate = r->weights[k].leaf;
            r->weight_count--;
            memmove(&r->weights[k], &r->weights[k + 1], (r->weight_count - k) * sizeof *r->weights);
            break;
        }
}

static void list_weights(struct row *r)
{
    struct hb_lower *lo = r->lo;
    r->weights = hb_arena_raw(lo->arena, lo->leaf_count, sizeof *r->weights);
    r->first_of = hb_arena_raw(lo->arena, lo->leaf_count, sizeof *r->first_of);
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        r->first_of[i] = find_first(r, i);
        if (r->first_of[i] != i)
            continue;
        struct weight own = {.leaf = i, .mate = HB_NONE, .rank = rank_of(lo, i)};
        for (int k = 0; k < HB_LEAF_STATES; k++)
            own.fetched[0][k] = own.fetched[1][k] = HB_NONE;
        r->weights[r->weight_count++] = own;
    }
    sort_weights(r, is_named_after);
    join_mates(r);
    sort_weights(r, is_updated_before);
}

static uint32_t add_place(struct row *r, enum node_kind kind, double cost)
{
    struct node n = {.kind = kind, .leaf = HB_NONE, .mate = HB_NONE, .cost = cost};
    return add_node(r, n);
}

static void add_send(struct row *r, uint32_t leaf, int state, uint32_t update)
{
    uint32_t send = add_node(r, (struct node){.kind = SEND, .leaf = leaf, .state = state});
    add_before(r, send, update);
    uint32_t sent = add_node(r, (struct node){.kind = SENT, .leaf = leaf, .state = state});
    add_before(r, sent, send);
}

static uint32_t gradient_of(struct row *r, uint32_t leaf)
{
    if (r->waits)
        return r->norm;
    if (leaf == r->lo->embed) /* a tied head's is summed with the table's */
        return r->table;
    if (leaf == r->lo->head || !sums_late(r))
        return r->layers;
    double ways = (double)hb_fsdp_ways(r->lo, false);
    double bytes = (double)r->lo->leaves[leaf].all_bytes * ways / 2;
    uint32_t sum = add_place(r, GRADIENT, bytes / SLOWER);
    add_before(r, sum, r->layers);
    return sum;
}

static void fetch_leaf(struct row *r, uint32_t leaf, int state, uint32_t *fetched)
{
    if (leaf == HB_NONE || !hb_leaf_on_host(r->lo, &r->lo->leaves[leaf], state) ||
        fetched[state] != HB_NONE)
        return;
    uint32_t fetch = add_node(r, (struct node){.kind = FETCH, .leaf = leaf, .state = state});
    fetched[state] = add_node(r, (struct node){.kind = FETCHED, .leaf = leaf, .state = state});
    add_before(r, fetched[state], fetch);
}

static void fetch_weight(struct row *r, struct weight *w, int state)
{
    fetch_leaf(r, w->leaf, state, w->fetched[0]);
    fetch_leaf(r, w->mate, state, w->fetched[1]);
}

/* Weights of one size, from one on. */
static uint32_t end_of_size(const struct row *r, uint32_t first)
{
    const struct hb_leaf *leaves = r->lo->leaves;
    uint32_t end = first + 1;
    while (end < r->weight_count &&
           leaves[r->weights[end].leaf].all_bytes == leaves[r->weights[first].leaf].all_bytes)
        end++;
    return end;
}

/* A list begins with what needs nothing, the smallest first: copies from the host, and what the
 * first loop needs, which then comes before the list goes on: accumulators of gradients, or the
 * room for all layers' inputs (qwen3-30b on v5p, outer blocks of 400 MiB in all: 96 MiB before it,
 * 2304 behind; mixtral, 2048: 896 before it). */
static bool is_early(const struct row *r, uint32_t first, uint32_t end)
{
    const struct hb_lower *lo = r->lo;
    if (r->loop)
        return end < r->weight_count;
    return lo->leaves[r->weights[first].leaf].all_bytes <= lo->input_bytes;
}

static void fetch_early(struct row *r)
{
    for (uint32_t i = 0, end; i < r->weight_count; i = end) {
        end = end_of_size(r, i);
        for (int k = 0; k < HB_LEAF_STATES && is_early(r, i, end); k++)
            for (uint32_t w = i; w < end; w++)
                fetch_weight(r, &r->weights[w], k);
    }
}

static void read_fetched(struct row *r, uint32_t update, const uint32_t *fetched)
{
    for (int k = 0; k < HB_LEAF_STATES; k++)
        if (fetched[k] != HB_NONE)
            add_before(r, update, fetched[k]);
}

static void add_update(struct row *r, struct weight *w)
{
    uint32_t gradient = gradient_of(r, w->leaf);
    for (int k = 0; k < HB_LEAF_STATES; k++)
        fetch_weight(r, w, k);
    w->update = add_node(r, (struct node){.kind = UPDATE, .leaf = w->leaf, .mate = w->mate});
    read_fetched(r, w->update, w->fetched[0]);
    read_fetched(r, w->update, w->fetched[1]);
    add_before(r, w->update, gradient);
}

static void send_leaf(struct row *r, uint32_t leaf, uint32_t update, bool first, bool others)
{
    bool wanted = first;
    for (int k = 0; leaf != HB_NONE && k < HB_LEAF_STATES; k++) {
        if (!hb_leaf_on_host(r->lo, &r->lo->leaves[leaf], k))
            continue;
        if (wanted)
            add_send(r, leaf, k, update);
        wanted = others;
    }
}

/* The first state alone, the others, or all. */
static void send_weight(struct row *r, const struct weight *w, bool first, bool others)
{
    send_leaf(r, w->leaf, w->update, first, others);
    send_leaf(r, w->mate, w->update, first, others);
}

static void add_weight(struct row *r, struct weight *w, bool others)
{
    add_update(r, w);
    send_weight(r, w, true, others);
}

/* What is before the updates. */
static void add_gradients(struct row *r)
{
    struct hb_lower *lo = r->lo;
    uint32_t loss = add_place(r, LOSS, 0);
    r->layers = add_place(r, LAYERS, LONG);
    add_before(r, r->layers, loss);
    r->table = r->layers;
    if (!r->loop) {
        const struct hb_model *m = &lo->spec->model;
        double bytes = 2 * (double)m->vocab * (double)m->d_model;
        r->table = add_place(r, GRADIENT, bytes / SLOWER);
        add_before(r, r->table, r->layers);
    }
    if (r->waits) {
        r->norm = add_place(r, GRADIENT, 0);
        add_before(r, r->norm, r->table);
        add_before(r, r->norm, r->layers);
    }
}

/* In a list those of one size are updated, then sent, the last first; those that come late each in
 * its turn. */
static void add_list(struct row *r)
{
    for (uint32_t i = 0, end; i < r->weight_count; i = end) {
        end = end_of_size(r, i);
        bool turns = !is_early(r, i, end);
        for (uint32_t w = i; w < end; w++)
            fetch_weight(r, &r->weights[w], MOMENT);
        for (uint32_t w = i; w < end; w++) {
            add_update(r, &r->weights[w]);
            if (turns)
                send_weight(r, &r->weights[w], true, true);
        }
        for (uint32_t w = end; w-- > i && !turns;)
            send_weight(r, &r->weights[w], true, true);
    }
}

/* Depth-first the second states follow behind the last of a size, or where all wait for the norm
 * at once. */
static void add_others(struct row *r)
{
    for (uint32_t i = 0, end; i < r->weight_count; i = end) {
        end = r->waits ? i + 1 : end_of_size(r, i);
        for (uint32_t w = i; w < end; w++)
            add_weight(r, &r->weights[w], false);
        for (uint32_t w = i; w < end; w++)
            send_weight(r, &r->weights[w], false, true);
    }
}

/* --- the walk --- */

/* An op whose users all have their place, but the end of a copy. */
struct ready {
    uint32_t node;
    bool start;   /* of a copy */
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
    int64_t p = w->r->lo->leaves[w->r->nodes[x].leaf].all_bytes;
    int64_t q = w->r->lo->leaves[w->r->nodes[y].leaf].all_bytes;
    return w->r->lo->chip->longest_copy && p != q ? p > q : x > y;
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
    w->ready[w->ready_count++] = (struct ready){node, is_start(n), unlocks, n->ready};
}

static bool is_better(const struct walk *w, bool held_up, const struct ready *x,
                      const struct ready *y)
{
    double p = x->at > w->now ? x->at : w->now, q = y->at > w->now ? y->at : w->now;
    if (p < q || q < p)
        return p < q;
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
        b->ready = w->now + (is_start(b) ? (double)w->r->lo->leaves[b->leaf].all_bytes : 0);
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
    enum { PLACES = 5, OF_STATE = 4, OF_WEIGHT = 2 };
    struct row r = {.lo = lo,
                    .list = is_list(lo),
                    .loop = lo->spec->batch.accumulate > 1,
                    .waits = lo->spec->optimizer.clip};
    list_weights(&r);
    size_t most = PLACES + (size_t)lo->leaf_count * (OF_STATE * HB_LEAF_STATES + OF_WEIGHT);
    r.nodes = hb_arena_raw(lo->arena, most, sizeof *r.nodes);
    if (r.list)
        fetch_early(&r);
    add_gradients(&r);
    if (r.list)
        add_list(&r);
    else
        add_others(&r);
    struct walk w = {.r = &r,
                     .ready = hb_arena_raw(lo->arena, r.count, sizeof(struct ready)),
                     .ends = hb_arena_raw(lo->arena, r.count, sizeof(uint32_t)),
                     .placed = hb_arena_raw(lo->arena, r.count, sizeof(uint32_t))};
    for (uint32_t i = 0; i < r.count; i++)
        if (r.nodes[i].users == 0)
            add_ready(&w, i);
    while (w.ready_count + w.end_count > 0)
        place(&w, take_best(&w));
    lo->copies = hb_arena_alloc(lo->arena, 1, sizeof *lo->copies);
    lo->copies->first_of = r.first_of;
    lo->copies->events = hb_arena_raw(lo->arena, 2 * (size_t)r.count, sizeof *lo->copies->events);
    for (uint32_t i = w.placed_count; i-- > 0;)
        keep_event(lo->copies, &r.nodes[w.placed[i]]);
}
