/* XLA's latency-hiding scheduler on what the optimizer does with states on the host: see copies.h.
 *
 * The step's end, as the memory scheduler left it (hb_copies_row, out of the step's graph), is a
 * row of ops:
 *
 *   ... the loss, the layers' backward pass, the gradients' norm,
 *   fetch m, m is there, fetch v, v is there, update w, send m, m is gone, send v, v is gone, ...
 *
 * It is gone through from behind, with a clock that runs backwards. Of the ops whose users all have
 * their place, next is (latency_hiding_scheduler.cc, ReadySetLt, without its aggressive rules):
 *
 *   the end of a copy, while less than five are under way;
 *   else what waits least: a copy's start, until the copy's time is over, for what it moves;
 *   else a start that lets another copy's end be placed; an op that a copy's end stands before;
 *   and of equals the last in the row.
 *
 * So what is on its way over the layers' pass are the states of the weights that are updated first,
 * the largest mostly: their copies back were the last to be started. (mistral-24b on v5p, four
 * microbatches: of 5886 pairs of copies and updates 5879 stand as in the compiler's schedule;
 * 70B on 256: 99 of 100.) */
#include "sim/ir/copies.h"

#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/ir/head.h"

static const double LONG = 1e18; /* over any copy: the layers' way */

enum {
    AT_ONCE = 5, /* copies between host and device under way */
    SLOWER = 4   /* a byte's way to the host is so many times as long as an all-reduce's */
};

bool hb_copies_queued(const struct hb_lower *lo)
{
    const struct hb_optim *o = &lo->spec->optimizer;
    return lo->habits->rings && o->offload == HB_PLACE_PINNED_HOST && o->name != HB_OPT_MUON;
}

/* --- the row --- */

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
    uint32_t fetched[2][HB_LEAF_STATES]; /* nodes */
    uint32_t update;                     /* HB_NONE: not in the row so far */
};

struct row {
    struct hb_lower *lo;
    struct node *nodes;
    uint32_t count;
    struct weight *weights;
    uint32_t weight_count;
    bool loop;       /* over microbatches */
    bool waits;      /* updates wait for the gradients' norm */
    uint32_t layers; /* nodes */
    uint32_t table, head, norm;
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

/* Between rings of fsdp alone, where no norm waits for it, the sum of a weight's gradient comes
 * before its update, in a ring of its own. */
static bool sums_late(const struct row *r)
{
    const struct hb_lower *lo = r->lo;
    bool alone =
        hb_fsdp_ways(lo, false) == lo->local.batch_ways && lo->local.vocab == lo->spec->model.vocab;
    return hb_in_rings(lo) && alone && !r->loop && !r->waits;
}

static void list_weights(struct row *r)
{
    struct hb_lower *lo = r->lo;
    r->weights = hb_arena_raw(lo->arena, lo->leaf_count, sizeof *r->weights);
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < i && !known; k++)
            known = hb_leaf_is_same(&lo->leaves[k], &lo->leaves[i]);
        if (known)
            continue;
        struct weight *w = &r->weights[r->weight_count++];
        *w = (struct weight){.leaf = i, .mate = HB_NONE, .update = HB_NONE};
        for (int k = 0; k < HB_LEAF_STATES; k++)
            w->fetched[0][k] = w->fetched[1][k] = HB_NONE;
    }
}

static const char *name_of(const struct hb_lower *lo, uint32_t leaf)
{
    const char *dot = strchr(lo->leaves[leaf].name, '.');
    return dot ? dot + 1 : lo->leaves[leaf].name;
}

static bool is_pair(const char *a, const char *b, const char *one, const char *two)
{
    return (hb_str_same(a, one) && hb_str_same(b, two)) ||
           (hb_str_same(a, two) && hb_str_same(b, one));
}

static bool is_mate(const struct hb_lower *lo, uint32_t a, uint32_t b)
{
    const char *x = name_of(lo, a), *y = name_of(lo, b);
    bool pair = is_pair(x, y, "w_gate", "w_up") || is_pair(x, y, "e_gate", "e_up") ||
                is_pair(x, y, "wk", "wv");
    return pair && lo->leaves[a].all_bytes == lo->leaves[b].all_bytes;
}

/* v6e adds the last microbatch's gradients of two weights of a shape, and updates them, at once
 * (six steps on it with accumulation, each wg with wu, wv with wk, and one over sequence 2; five on
 * v5e and v5p: none; v6e over fsdp and tensor without accumulation: none). */
static void join_mates(struct row *r)
{
    if (!r->lo->chip->updates_joined || (!r->loop && hb_ways(r->lo, HB_AX_SEQUENCE) == 1))
        return;
    for (uint32_t i = 0; i < r->weight_count; i++)
        for (uint32_t k = i + 1; k < r->weight_count; k++) {
            if (!is_mate(r->lo, r->weights[i].leaf, r->weights[k].leaf))
                continue;
            r->weights[i].mate = r->weights[k].leaf;
            r->weight_count--;
            memmove(&r->weights[k], &r->weights[k + 1], (r->weight_count - k) * sizeof *r->weights);
            break;
        }
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
    if (leaf == r->lo->head || leaf == r->lo->embed)
        return leaf == r->lo->head ? r->head : r->table;
    if (!sums_late(r) || !r->lo->leaves[leaf].matrix)
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

/* What is before the updates. */
static void add_loss(struct row *r)
{
    r->head = add_place(r, LOSS, 0);
}

static void add_layers(struct row *r)
{
    const struct hb_model *m = &r->lo->spec->model;
    r->layers = r->table = add_place(r, LAYERS, LONG);
    add_before(r, r->layers, r->head);
    if (!r->loop) {
        double bytes = 2 * (double)m->vocab * (double)m->d_model;
        r->table = add_place(r, GRADIENT, r->lo->local.batch_ways > 1 ? bytes / SLOWER : 0);
        add_before(r, r->table, r->layers);
    } else {
        r->head = r->layers;
    }
    if (r->waits) {
        r->norm = add_place(r, GRADIENT, 0);
        add_before(r, r->norm, r->table);
        add_before(r, r->norm, r->head);
    }
}

/* Of the weights that have its name, how many come before. */
static uint32_t nth_of(const struct hb_lower *lo, uint32_t leaf)
{
    uint32_t nth = 0;
    for (uint32_t i = 0; i < leaf; i++) {
        bool known = !hb_str_same(name_of(lo, i), name_of(lo, leaf)) ||
                     hb_leaf_is_same(&lo->leaves[i], &lo->leaves[leaf]);
        for (uint32_t k = 0; k < i && !known; k++)
            known = hb_leaf_is_same(&lo->leaves[k], &lo->leaves[i]);
        nth += !known;
    }
    return nth;
}

static bool is_of(const struct hb_lower *lo, const struct hb_copies_event *e, uint32_t leaf)
{
    return leaf != HB_NONE && hb_str_same(name_of(lo, leaf), e->name) && nth_of(lo, leaf) == e->nth;
}

static struct weight *weight_of(struct row *r, const struct hb_copies_event *e, uint32_t *out_leaf)
{
    for (uint32_t i = 0; i < r->weight_count; i++) {
        struct weight *w = &r->weights[i];
        *out_leaf = is_of(r->lo, e, w->leaf) ? w->leaf : w->mate;
        if (is_of(r->lo, e, *out_leaf))
            return w;
    }
    return NULL;
}

static void add_event(struct row *r, const struct hb_copies_event *e)
{
    uint32_t leaf;
    struct weight *w = weight_of(r, e, &leaf);
    if (!w)
        return;
    if (e->kind == HB_COPIES_FETCH)
        fetch_leaf(r, leaf, e->state, leaf == w->leaf ? w->fetched[0] : w->fetched[1]);
    else if (e->kind == HB_COPIES_UPDATE && w->update == HB_NONE)
        add_update(r, w);
    else if (e->kind == HB_COPIES_SEND && hb_leaf_on_host(r->lo, &r->lo->leaves[leaf], e->state))
        add_send(r, leaf, e->state, w->update);
}

/* The head's own, whose gradient is made last of all, or before the layers; a table that is the
 * head as well has it behind them. */
enum turn { IN_TURN, BEHIND_LAYERS, LAST };

static enum turn turn_of(const struct row *r, const struct hb_copies_event *e)
{
    const struct hb_lower *lo = r->lo;
    if (!e->name || !hb_str_same(e->name, name_of(lo, lo->head)))
        return IN_TURN;
    if (hb_head_last(lo))
        return LAST;
    return r->loop || r->waits || lo->head == lo->embed ? BEHIND_LAYERS : IN_TURN;
}

static void add_turn(struct row *r, const struct hb_copies_row *from, uint32_t end, enum turn turn)
{
    for (uint32_t i = 0; i < end; i++)
        if (turn_of(r, &from->events[i]) == turn)
            add_event(r, &from->events[i]);
}

static void add_row(struct row *r, const struct hb_copies_row *from)
{
    bool behind = false;
    for (uint32_t i = 0; i < from->count; i++) {
        const struct hb_copies_event *e = &from->events[i];
        enum turn turn = turn_of(r, e);
        if (e->kind == HB_COPIES_LOSS) {
            add_loss(r);
        } else if (e->kind == HB_COPIES_LAYERS) {
            add_layers(r);
            add_turn(r, from, i, BEHIND_LAYERS);
            behind = true;
        } else if (turn == IN_TURN || (turn == BEHIND_LAYERS && behind)) {
            add_event(r, e);
        }
    }
    add_turn(r, from, from->count, LAST);
}

/* As the step is written: each weight's copies around its update. */
static void list_written(const struct row *r, struct hb_copies_row *out)
{
    enum { OF_WEIGHT = 2 * HB_LEAF_STATES + 1 };
    const struct hb_lower *lo = r->lo;
    out->events =
        hb_arena_raw(lo->arena, 2 + (size_t)OF_WEIGHT * lo->leaf_count, sizeof *out->events);
    out->events[0] = (struct hb_copies_event){.kind = HB_COPIES_LOSS};
    out->events[1] = (struct hb_copies_event){.kind = HB_COPIES_LAYERS};
    out->count = 2;
    for (uint32_t i = 0; i < r->weight_count; i++) {
        uint32_t leaf = r->weights[i].leaf;
        struct hb_copies_event e = {.name = name_of(lo, leaf), .nth = nth_of(lo, leaf)};
        for (int k = 0; k < OF_WEIGHT; k++) {
            e.kind = k < HB_LEAF_STATES    ? HB_COPIES_FETCH
                     : k == HB_LEAF_STATES ? HB_COPIES_UPDATE
                                           : HB_COPIES_SEND;
            e.state = k < HB_LEAF_STATES ? k : k - HB_LEAF_STATES - 1;
            out->events[out->count++] = e;
        }
    }
}

/* --- the walk --- */

struct walk {
    struct row *r;
    uint32_t *ready;
    uint32_t ready_count;
    uint32_t under_way;
    double now;
    uint32_t *placed; /* from the last on */
    uint32_t placed_count;
};

static bool is_end(const struct node *n)
{
    return n->kind == FETCHED || n->kind == SENT;
}

static bool is_start(const struct node *n)
{
    return n->kind == FETCH || n->kind == SEND;
}

static bool unlocks(const struct row *r, const struct node *n)
{
    return n->before_count > 0 && is_end(&r->nodes[n->before[0]]);
}

static bool is_better(const struct walk *w, bool held_up, uint32_t a, uint32_t b)
{
    const struct node *x = &w->r->nodes[a], *y = &w->r->nodes[b];
    if (is_end(x) != is_end(y))
        return is_end(x);
    double p = x->ready > w->now ? x->ready : w->now, q = y->ready > w->now ? y->ready : w->now;
    if (p < q || q < p)
        return p < q;
    if (held_up && is_start(x) != is_start(y))
        return is_start(x);
    if (unlocks(w->r, x) != unlocks(w->r, y))
        return unlocks(w->r, x);
    return a > b;
}

static uint32_t take_best(struct walk *w)
{
    bool full = w->under_way >= AT_ONCE, held_up = false;
    for (uint32_t i = 0; i < w->ready_count && full && !held_up; i++)
        held_up = is_end(&w->r->nodes[w->ready[i]]);
    uint32_t best = HB_NONE;
    for (uint32_t i = 0; i < w->ready_count; i++) {
        if (full && is_end(&w->r->nodes[w->ready[i]]))
            continue;
        if (best == HB_NONE || is_better(w, held_up, w->ready[i], w->ready[best]))
            best = i;
    }
    uint32_t node = w->ready[best];
    w->ready[best] = w->ready[--w->ready_count];
    return node;
}

static double way_of(const struct row *r, const struct node *n)
{
    return is_start(n) ? (double)r->lo->leaves[n->leaf].all_bytes : 0;
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
        b->ready = w->now + way_of(w->r, b);
        w->ready[w->ready_count++] = n->before[i];
    }
}

static void keep_event(const struct hb_lower *lo, struct hb_copies *c, const struct node *n)
{
    static const enum hb_copies_kind kinds[] = {[LOSS] = HB_COPIES_LOSS,
                                                [LAYERS] = HB_COPIES_LAYERS,
                                                [FETCH] = HB_COPIES_FETCH,
                                                [UPDATE] = HB_COPIES_UPDATE,
                                                [SENT] = HB_COPIES_SEND};
    if (n->kind == GRADIENT || n->kind == FETCHED || n->kind == SEND)
        return;
    struct hb_copies_event e = {
        .kind = kinds[n->kind], .leaf = n->leaf, .state = n->state, .op = HB_NONE};
    if (n->leaf != HB_NONE) {
        e.name = name_of(lo, n->leaf);
        e.nth = nth_of(lo, n->leaf);
    }
    c->events[c->count++] = e;
    if (n->kind == UPDATE && n->mate != HB_NONE) {
        e.leaf = n->mate;
        e.name = name_of(lo, n->mate);
        e.nth = nth_of(lo, n->mate);
        c->events[c->count++] = e;
    }
}

/* Under the latency-hiding scheduler, from behind. */
static uint32_t *hide(struct row *r, uint32_t *out_count)
{
    struct walk w = {.r = r,
                     .ready = hb_arena_raw(r->lo->arena, r->count, sizeof(uint32_t)),
                     .placed = hb_arena_raw(r->lo->arena, r->count, sizeof(uint32_t))};
    for (uint32_t i = 0; i < r->count; i++)
        if (r->nodes[i].users == 0)
            w.ready[w.ready_count++] = i;
    while (w.ready_count > 0)
        place(&w, take_best(&w));
    *out_count = w.placed_count;
    return w.placed;
}

/* On one device a list: updates have products inside, and with them more ops than the graph has,
 * which depth-first counts (by the compiler's log 4.13 4.41 4.41, here 3.83 3.68 4.41). MaxText's
 * trees have other names, and its states are averages, too: depth-first, as most. */
static enum hb_copies_order order_of(const struct hb_lower *lo)
{
    if (lo->maxtext)
        return HB_COPIES_DEPTH;
    return hb_alone(lo) ? HB_COPIES_AS_LIST : HB_COPIES_LEAST;
}

void hb_copies_find(struct hb_lower *lo)
{
    enum { PLACES = 5, OF_STATE = 4, OF_WEIGHT = 2 };
    const struct hb_copies_row *from = lo->spec->copies;
    struct hb_copies_row own;
    struct row r = {
        .lo = lo, .loop = lo->spec->batch.accumulate > 1, .waits = lo->spec->optimizer.clip};
    list_weights(&r);
    size_t most = PLACES + (size_t)lo->leaf_count * (OF_STATE * HB_LEAF_STATES + OF_WEIGHT);
    r.nodes = hb_arena_raw(lo->arena, most, sizeof *r.nodes);
    bool written = !from;
    if (written)
        list_written(&r, &own);
    else
        join_mates(&r);
    add_row(&r, written ? &own : from);
    lo->copies = hb_arena_alloc(lo->arena, 1, sizeof *lo->copies);
    lo->copies->order = order_of(lo);
    lo->copies->events = hb_arena_raw(lo->arena, 2 * (size_t)r.count, sizeof *lo->copies->events);
    uint32_t count = r.count, *placed = written ? NULL : hide(&r, &count);
    for (uint32_t i = 0; i < count; i++)
        keep_event(lo, lo->copies, &r.nodes[written ? i : placed[count - 1 - i]]);
}
