/* Clusters of the order at hand and of the one that is followed are told apart by what they do and
 * how many of their like came before; what the other lacks comes with what is emitted behind it. */
#include "sim/graph/link.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "models/schema.h"
#include "sim/graph/step.h"
#include "sim/ir/habits.h"
#include "sim/ir/lower.h"

struct cluster {
    const char *name; /* of an op or loop of the ends, else what of the layers it is */
    enum hb_op_kind kind;
    enum hb_phase phase;
    bool layers;
    bool fills;             /* from nothing */
    uint32_t nth;           /* of those alike */
    uint32_t first_op, end; /* a run of ops, loops among them */
    uint32_t first_dep;     /* clusters that it stands behind */
    uint32_t rank;
    bool placed;
};

/* The ops of one computation, which lies within a loop or (HB_NONE) in none. */
struct row {
    struct hb_arena *arena;
    struct hb_program *p;
    uint32_t within;
    bool single; /* each op is a cluster */
    struct cluster *clusters;
    uint32_t count;
    struct cluster **alike; /* sorted by likeness, those alike by place; null: not asked for */
    uint32_t *deps;
    uint32_t dep_count, dep_cap;
};

/* --- clusters --- */

static uint32_t first_op(const struct row *r)
{
    return r->within == HB_NONE ? 0 : r->p->loops[r->within].first_op;
}

static uint32_t end_op(const struct row *r)
{
    return r->within == HB_NONE ? r->p->op_count : r->p->loops[r->within].end_op;
}

/* The loop directly within that the op is in; HB_NONE: in none. */
static uint32_t loop_of(const struct row *r, uint32_t op)
{
    uint32_t in = r->p->ops[op].loop;
    if (in == r->within)
        return HB_NONE;
    while (r->p->loops[in].parent != r->within)
        in = r->p->loops[in].parent;
    return in;
}

static bool is_of_layers(const struct hb_program *p, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const struct hb_op *op = &p->ops[i];
        bool sums = op->write_count == 0; /* a norm of all gradients */
        for (uint32_t k = 0; k < op->read_count + op->write_count && !sums; k++)
            if (p->bufs[p->refs[op->refs_at + k]].slices > 0)
                return true;
    }
    return false;
}

static struct cluster make_cluster(const struct row *r, uint32_t at)
{
    const struct hb_op *op = &r->p->ops[at];
    uint32_t loop = loop_of(r, at);
    struct cluster c = {.name = op->name,
                        .kind = op->kind,
                        .phase = op->phase,
                        .fills = op->read_count == 0,
                        .first_op = at,
                        .end = at + 1,
                        .rank = HB_NONE};
    if (loop != HB_NONE) {
        c.kind = HB_OP_OTHER;
        c.fills = false;
        c.end = r->p->loops[loop].end_op;
        c.name = r->p->loops[loop].name;
    }
    c.layers = is_of_layers(r->p, c.first_op, c.end);
    if (c.layers)
        c.name = loop == HB_NONE ? "" : "loop";
    return c;
}

/* Updates of layers, with what their states are fetched and brought away by, count as one, and so
 * do the loops of a pass. */
static uint32_t kind_of(const struct cluster *c)
{
    bool loop = c->kind == HB_OP_OTHER;
    bool late = c->phase == (loop ? HB_PHASE_BACKWARD : HB_PHASE_OPTIMIZER);
    return late ? UINT32_MAX : (uint32_t)c->kind * 2 + c->fills;
}

/* 0: alike. */
static int compare_alike(const struct cluster *a, const struct cluster *b)
{
    int names = strcmp(a->name, b->name);
    uint32_t kind = kind_of(a), other = kind_of(b);
    return names ? names : (kind > other) - (kind < other);
}

static int compare_places(const void *a, const void *b)
{
    const struct cluster *left = *(struct cluster *const *)a, *right = *(struct cluster *const *)b;
    int alike = compare_alike(left, right);
    return alike ? alike : left->first_op < right->first_op ? -1 : 1;
}

/* Stacks stand beside the loop that fills them. */
static bool is_stack(const struct cluster *c)
{
    return c->kind == HB_OP_MARK && c->fills;
}

static void find_clusters(struct row *r)
{
    uint32_t end = end_op(r), cap = 0;
    for (uint32_t i = first_op(r); i < end; i = r->clusters[r->count - 1].end) {
        struct cluster c = make_cluster(r, i);
        struct cluster *last = r->count && !r->single ? &r->clusters[r->count - 1] : NULL;
        if (last && compare_alike(last, &c) == 0) {
            last->end = c.end;
            continue;
        }
        if (last && c.layers && c.kind == HB_OP_OTHER && is_stack(last)) {
            c.first_op = last->first_op;
            r->count--;
        }
        r->clusters = hb_grow(r->arena, r->clusters, r->count, &cap, sizeof *r->clusters);
        r->clusters[r->count++] = c;
    }
}

static struct cluster **sort_clusters(const struct row *r,
                                      int (*compare)(const void *a, const void *b))
{
    struct cluster **sorted = hb_arena_raw(r->arena, r->count, sizeof(struct cluster *));
    for (uint32_t k = 0; k < r->count; k++)
        sorted[k] = &r->clusters[k];
    qsort(sorted, r->count, sizeof(struct cluster *), compare);
    return sorted;
}

/* Each among its like, who come in their order. */
static void count_alike(struct row *r)
{
    r->alike = sort_clusters(r, compare_places);
    for (uint32_t k = 1; k < r->count; k++)
        if (compare_alike(r->alike[k - 1], r->alike[k]) == 0)
            r->alike[k]->nth = r->alike[k - 1]->nth + 1;
}

static uint32_t cluster_at(const struct row *r, uint32_t op)
{
    uint32_t low = 0, high = r->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (r->clusters[middle].first_op <= op)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void add_dep(struct row *r, uint32_t cluster)
{
    r->deps = hb_grow(r->arena, r->deps, r->dep_count, &r->dep_cap, sizeof *r->deps);
    r->deps[r->dep_count++] = cluster;
}

/* Of the cluster's op, behind who wrote last what it touches; *writer: by the root of a buffer. */
static void follow_op(struct row *r, uint32_t cluster, const struct hb_op *op, uint32_t *writer)
{
    for (uint32_t n = 0; n < op->read_count + op->write_count; n++) {
        uint32_t *w = &writer[hb_program_root(r->p, r->p->refs[op->refs_at + n])];
        if (*w != HB_NONE)
            add_dep(r, *w);
        *w = n < op->read_count ? *w : cluster;
    }
}

static void find_deps(struct row *r)
{
    uint32_t *writer = hb_arena_raw(r->arena, r->p->buf_count, sizeof *writer);
    for (uint32_t b = 0; b < r->p->buf_count; b++)
        writer[b] = HB_NONE;
    for (uint32_t k = 0; k < r->count; k++) {
        r->clusters[k].first_dep = r->dep_count;
        for (uint32_t i = r->clusters[k].first_op; i < r->clusters[k].end; i++) {
            const struct hb_op *op = &r->p->ops[i];
            follow_op(r, k, op, writer);
            if (op->kind == HB_OP_DONE) /* which it may not touch: a state from the host */
                add_dep(r, cluster_at(r, op->start));
        }
    }
}

static void make_row_in(struct hb_arena *arena, struct hb_program *p, uint32_t within, bool single,
                        struct row *out)
{
    *out = (struct row){.arena = arena, .p = p, .within = within, .single = single};
    find_clusters(out);
}

/* Of the computation that the loop of that name runs, or (null) of the entry; false: none. */
static bool make_row(struct hb_arena *arena, struct hb_program *p, const char *loop, bool single,
                     struct row *out)
{
    uint32_t within = HB_NONE;
    for (uint32_t i = 0; i < p->loop_count && loop; i++)
        if (hb_str_same(p->loops[i].name, loop))
            within = i;
    *out = (struct row){.arena = arena};
    if (loop && within == HB_NONE)
        return false;
    make_row_in(arena, p, within, single, out);
    count_alike(out);
    return true;
}

/* --- ranks --- */

/* The computation of the graph that is the row. */
static uint32_t comp_of(const struct row *r, const struct hb_step_graph *s)
{
    for (uint32_t i = 0; i < s->graph.op_count && r->within != HB_NONE; i++)
        if (s->item[i] == r->p->op_count + r->within)
            return hb_graph_refs(&s->graph, i, HB_GRAPH_RUNS)[0];
    return s->graph.entry;
}

/* Those without a rank last. */
static int compare_ranks(const void *a, const void *b)
{
    const struct cluster *left = *(struct cluster *const *)a, *right = *(struct cluster *const *)b;
    int rank = (left->rank > right->rank) - (left->rank < right->rank);
    return 2 * rank + (left->first_op > right->first_op) - (left->first_op < right->first_op);
}

/* A cluster stands where the last of its ops does. */
static void rank_clusters(struct row *r, const struct hb_step_graph *s, const uint32_t *order)
{
    const struct hb_graph_comp *c = &s->graph.comps[comp_of(r, s)];
    for (uint32_t i = c->first_op; i < c->first_op + c->op_count; i++) {
        uint32_t item = s->item[order[i]], count = r->p->op_count;
        if (item == HB_NONE || !r->clusters)
            continue;
        uint32_t op = item < count ? item : r->p->loops[item - count].first_op;
        r->clusters[cluster_at(r, op)].rank = i;
    }
}

/* Where the first of the row's clusters like this one stands in alike, if there is one. */
static uint32_t find_alike(const struct row *r, const struct cluster *c)
{
    uint32_t low = 0, high = r->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_alike(r->alike[middle], c) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_alike(const struct row *r, uint32_t at, const struct cluster *c)
{
    return at < r->count && compare_alike(r->alike[at], c) == 0;
}

/* What the other has not so often comes with the first of its like. */
static void take_rank(struct cluster *c, const struct row *from)
{
    uint32_t first = find_alike(from, c), nth = first + c->nth;
    if (!is_alike(from, first, c))
        return;
    if (is_alike(from, nth, c) && from->alike[nth]->rank != HB_NONE)
        c->rank = from->alike[nth]->rank;
    else if (c->layers && from->alike[first]->rank != HB_NONE)
        c->rank = from->alike[first]->rank;
}

static void take_ranks(struct row *r, const struct row *from)
{
    for (uint32_t k = r->count, rank = HB_NONE; k-- > 0;) {
        struct cluster *c = &r->clusters[k];
        c->rank = rank;
        if (c->phase == HB_PHASE_SETUP) /* outputs are there anyway */
            c->rank = 0;
        else
            take_rank(c, from);
        rank = c->rank;
    }
}

/* --- back to a program --- */

struct linked {
    const struct row *r;
    uint32_t *ops; /* of the program, in the new order */
    uint32_t count;
};

static void place(struct linked *l, uint32_t k)
{
    struct cluster *c = &l->r->clusters[k];
    if (c->placed)
        return;
    c->placed = true;
    uint32_t deps = k + 1 < l->r->count ? c[1].first_dep : l->r->dep_count;
    for (uint32_t d = c->first_dep; d < deps; d++)
        place(l, l->r->deps[d]);
    for (uint32_t op = c->first_op; op < c->end; op++)
        l->ops[l->count++] = op;
}

/* Loops are numbered as they come, whoever is outside first. */
static int compare_loops(const void *a, const void *b)
{
    const struct hb_loop *left = a, *right = b;
    if (left->first_op != right->first_op)
        return left->first_op < right->first_op ? -1 : 1;
    return left->end_op > right->end_op ? -1 : left->end_op < right->end_op;
}

static void number_loops(struct row *r)
{
    struct hb_program *p = r->p;
    if (p->loop_count)
        qsort(p->loops, p->loop_count, sizeof *p->loops, compare_loops);
    for (uint32_t i = 0; i < p->loop_count; i++) {
        struct hb_loop *l = &p->loops[i];
        l->parent = HB_NONE;
        for (uint32_t k = 0; k < i; k++)
            if (p->loops[k].end_op >= l->end_op)
                l->parent = k;
        for (uint32_t op = l->first_op; op < l->end_op; op++)
            p->ops[op].loop = i;
    }
}

static void move_ops(struct row *r, const uint32_t *ops)
{
    struct hb_program *p = r->p;
    uint32_t *at = hb_arena_raw(r->arena, p->op_count, sizeof *at), first = first_op(r);
    uint32_t count = end_op(r) - first;
    struct hb_op *old = hb_arena_raw(r->arena, count, sizeof *old);
    memcpy(old, p->ops + first, count * sizeof *old);
    for (uint32_t i = 0; i < p->op_count; i++)
        at[i] = i;
    for (uint32_t i = 0; i < count; i++) {
        at[ops[i]] = first + i;
        p->ops[first + i] = old[ops[i] - first];
    }
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->ops[i].start != HB_NONE)
            p->ops[i].start = at[p->ops[i].start];
    for (uint32_t i = 0; i < p->loop_count; i++) {
        struct hb_loop *l = &p->loops[i];
        uint32_t trips = l->end_op - l->first_op;
        if (i != r->within && l->end_op <= end_op(r)) {
            l->first_op = at[l->first_op];
            l->end_op = l->first_op + trips;
        }
    }
    number_loops(r);
}

static void link(struct row *r)
{
    struct cluster **sorted = sort_clusters(r, compare_ranks);
    struct linked l = {.r = r};
    l.ops = hb_arena_raw(r->arena, r->p->op_count, sizeof *l.ops);
    find_deps(r);
    for (uint32_t k = 0; k < r->count; k++)
        place(&l, (uint32_t)(sorted[k] - r->clusters));
    move_ops(r, l.ops);
}

/* --- whose order --- */

static struct hb_remat first_policy(const struct hb_spec *spec)
{
    return spec->model.blocks[0].remat;
}

/* A spec of the cell, or a sample, as a whole: runs of a block are one, all under one policy. */
static struct hb_spec whole_spec(const struct hb_link *l, const struct hb_spec *spec,
                                 struct hb_remat policy)
{
    struct hb_spec own = *l->cell;
    size_t count = (size_t)own.model.block_count;
    struct hb_block *blocks = hb_arena_alloc(l->arena, count, sizeof *blocks);
    own.merged = spec->merged;
    own.share = spec->share;
    own.model.block_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct hb_block b = own.model.blocks[i], *last = blocks + own.model.block_count - 1;
        b.remat = policy;
        if (own.model.block_count > 0) {
            struct hb_block like = *last;
            like.name = b.name, like.repeat = b.repeat;
            if (hb_schema_same_block(&like, &b)) {
                last->repeat += b.repeat;
                continue;
            }
        }
        blocks[own.model.block_count++] = b;
    }
    own.model.blocks = blocks;
    return own;
}

static bool lower_whole(const struct hb_link *l, const struct hb_spec *spec, struct hb_remat policy,
                        struct hb_program *out)
{
    struct hb_spec whole = whole_spec(l, spec, policy);
    struct hb_diag diag;
    hb_diag_init(&diag, l->arena);
    return hb_lower(l->arena, &diag, &whole, out);
}

/* What layers keep decides on the way that an order goes: nothing, their products, or all. */
static const struct hb_remat classes[HB_LINK_CLASSES] = {
    {.policy = HB_POLICY_FULL}, {.policy = HB_POLICY_DOTS}, {.policy = HB_POLICY_NONE}};

static int class_of(const struct hb_spec *spec)
{
    enum hb_policy policy = first_policy(spec).policy;
    return policy == HB_POLICY_FULL ? 0 : policy == HB_POLICY_NONE ? 2 : 1;
}

bool hb_link_is_inside(const struct hb_spec *cell)
{
    bool mixes = false;
    for (int i = 0; i < cell->model.block_count; i++) {
        const struct hb_block *b = &cell->model.blocks[i];
        mixes = mixes || (hb_block_mixes(b) && b->moe.dispatch == HB_DISPATCH_EINSUM);
    }
    return mixes && cell->compiler == HB_XLA_TPU;
}

void hb_link_open(struct hb_arena *arena, const struct hb_spec *cell, struct hb_link *out)
{
    *out = (struct hb_link){.arena = arena, .cell = cell};
    out->known = hb_habits_ordered(cell) && cell->as_order != HB_AS_WRITTEN;
}

/* Entry, and loops whose own ops are put in order. */
static const char *const rows[] = {NULL,
                                   "microbatches",
                                   "loss chunks",
                                   "loss chunks, backward",
                                   "pipeline iterations",
                                   "pipeline iterations, backward"};
enum { ROWS = sizeof rows / sizeof *rows };

/* Of an order, the rows that steps of the cell follow. */
struct hb_link_rows {
    struct row list[ROWS]; /* without clusters where there is none */
};

static struct hb_link_rows *make_rows(struct hb_link *l, int class, const uint32_t *order)
{
    struct hb_link_rows *r = hb_arena_alloc(l->arena, 1, sizeof *r);
    for (int i = 0; i < ROWS; i++)
        if (make_row(l->arena, &l->wholes[class], rows[i], false, &r->list[i]))
            rank_clusters(&r->list[i], &l->graphs[class], order);
    return r;
}

/* False: sizes beyond the range. */
static bool make_class(struct hb_link *l, int class)
{
    if (l->ready[class])
        return true;
    if (!lower_whole(l, l->cell, classes[class], &l->wholes[class]))
        return false;
    hb_step_graph_make(l->arena, &l->wholes[class], &l->graphs[class]);
    l->ready[class] = true;
    return true;
}

/* Of a spec in its own order the least of the three: of the class, or of a program like it. */
static bool find_kind(struct hb_link *l, const struct hb_spec *spec, enum hb_order_kind *out)
{
    struct hb_remat policy = first_policy(spec);
    int class = class_of(spec);
    struct hb_step_graph own;
    struct hb_order_choice choice;
    bool ok = make_class(l, class), like = hb_remat_same(&policy, &classes[class]) && !spec->merged;
    struct hb_arena_mark mark = hb_arena_mark(l->arena);
    if (ok && !like) {
        struct hb_program whole;
        ok = lower_whole(l, spec, policy, &whole);
        if (ok)
            hb_step_graph_make(l->arena, &whole, &own);
    }
    if (ok) {
        hb_graph_choose(l->arena, like ? &l->graphs[class].graph : &own.graph, &choice);
        *out = choice.least;
    }
    hb_arena_rewind(l->arena, mark);
    return ok;
}

/* The least of the three for the step whose layers are all under the first policy. */
static enum hb_order_kind find_layers(struct hb_link *l, const struct hb_spec *spec)
{
    struct hb_step_graph own;
    struct hb_order_choice choice = {.least = HB_ORDER_LIST};
    struct hb_program whole;
    struct hb_arena_mark mark = hb_arena_mark(l->arena);
    if (lower_whole(l, spec, first_policy(spec), &whole)) {
        hb_step_graph_make(l->arena, &whole, &own);
        hb_graph_choose(l->arena, &own.graph, &choice);
    }
    hb_arena_rewind(l->arena, mark);
    return choice.least;
}

/* Of the last few that were found. */
static bool recall(const struct hb_link *l, struct hb_link_least *own)
{
    uint32_t count = l->least_count < HB_LINK_KNOWN ? l->least_count : HB_LINK_KNOWN;
    for (uint32_t i = 0; i < count; i++)
        if (hb_remat_same(&l->least[i].policy, &own->policy) && l->least[i].merged == own->merged) {
            own->kind = l->least[i].kind;
            return true;
        }
    return false;
}

enum hb_order_kind hb_link_layers(struct hb_link *l, const struct hb_spec *spec)
{
    struct hb_link_least own = {first_policy(spec), spec->merged, HB_ORDER_LIST};
    if (spec->as_layers > 0)
        return (enum hb_order_kind)(spec->as_layers - 1);
    if (!recall(l, &own)) {
        own.kind = find_layers(l, spec);
        l->least[l->least_count++ % HB_LINK_KNOWN] = own;
    }
    return own.kind;
}

static bool know_kind(struct hb_link *l, const struct hb_spec *spec, enum hb_order_kind *out)
{
    struct hb_link_least own = {first_policy(spec), spec->merged, HB_ORDER_LIST};
    if (!recall(l, &own)) {
        if (!find_kind(l, spec, &own.kind))
            return false;
        l->least[l->least_count++ % HB_LINK_KNOWN] = own;
    }
    *out = own.kind;
    return true;
}

static bool make_order(struct hb_link *l, int index)
{
    int class = index / HB_ORDER_KINDS;
    if (l->orders[index])
        return true;
    if (!make_class(l, class))
        return false;
    enum hb_order_kind kind = (enum hb_order_kind)(index % HB_ORDER_KINDS);
    const uint32_t *order = hb_graph_order_make(l->arena, &l->graphs[class].graph, kind);
    l->orders[index] = make_rows(l, class, order);
    return true;
}

bool hb_link_ready(struct hb_link *l, const struct hb_spec *spec, int *out_index)
{
    enum hb_order_kind kind;
    if (!l->known)
        return false;
    *out_index = spec->as_order - 1;
    if (spec->as_order == HB_OWN_ORDER) {
        if (!know_kind(l, spec, &kind))
            return false;
        *out_index = class_of(spec) * HB_ORDER_KINDS + (int)kind;
    }
    return make_order(l, *out_index);
}

/* Op by op, as the graph says. */
static void put_row(struct row *r, const struct hb_step_graph *s, const uint32_t *order)
{
    rank_clusters(r, s, order);
    for (uint32_t k = r->count; k-- > 1;)
        if (r->clusters[k - 1].rank == HB_NONE)
            r->clusters[k - 1].rank = r->clusters[k].rank;
    link(r);
}

/* Stages are in no segment. */
static void put_own(struct hb_arena *arena, struct hb_program *p)
{
    struct hb_step_orders o;
    hb_step_orders_find(arena, p, &o);
    for (int i = ROWS; i-- > 0;) { /* what is inside first: of who is outside nothing moves */
        struct row r;
        if (make_row(arena, p, rows[i], true, &r))
            put_row(&r, &o.step, o.choice.orders[o.choice.least]);
    }
}

static int64_t layers_of(const struct hb_spec *cell)
{
    int64_t sum = 0;
    for (int i = 0; i < cell->model.block_count; i++)
        sum += hb_block_steps(&cell->model.blocks[i]);
    return sum;
}

/* Inside of layers the order of a computation is its own matter; which of the three, the whole
 * step's. */
static void put_layers(struct hb_arena *arena, struct hb_link *l, const struct hb_spec *spec,
                       struct hb_program *p)
{
    struct hb_step_graph s;
    uint32_t *loops = hb_arena_raw(arena, (size_t)p->loop_count + 1, sizeof *loops);
    struct hb_step_inside in = {.layers = layers_of(l->cell), .loops = loops};
    for (uint32_t i = 0; i < p->loop_count; i++)
        if (p->loops[i].ordered)
            loops[in.count++] = i;
    if (in.count == 0)
        return;
    hb_step_graph_inside(arena, p, &in, &s);
    const uint32_t *order = hb_graph_order_make(arena, &s.graph, hb_link_layers(l, spec));
    for (uint32_t i = 0; i < in.count; i++) {
        struct row r;
        make_row_in(arena, p, loops[i], true, &r);
        put_row(&r, &s, order);
    }
}

void hb_link_put(struct hb_arena *arena, struct hb_link *l, const struct hb_spec *spec,
                 struct hb_program *p)
{
    int index;
    put_layers(arena, l, spec, p);
    if (l->known && spec->mesh[HB_AX_PIPELINE] > 1) {
        put_own(arena, p);
        return;
    }
    if (!hb_link_ready(l, spec, &index))
        return;
    for (int i = 0; i < ROWS; i++) {
        struct row r;
        if (!make_row(arena, p, rows[i], false, &r))
            continue;
        take_ranks(&r, &l->orders[index]->list[i]);
        link(&r);
    }
}

/* --- all orders of a cell --- */

/* Names of clusters in their order, of all rows. */
static const char **list_order(struct hb_link *l, int index, uint32_t *out_count)
{
    struct hb_arena *arena = l->arena;
    const char **names = NULL;
    uint32_t count = 0, cap = 0;
    for (int i = 0; i < ROWS; i++) {
        const struct row *from = &l->orders[index]->list[i];
        struct cluster **sorted = sort_clusters(from, compare_ranks);
        for (uint32_t k = 0; k < from->count; k++) {
            names = hb_grow(arena, names, count, &cap, sizeof *names);
            names[count++] = sorted[k]->name;
        }
    }
    *out_count = count;
    return names;
}

static bool is_same_list(const char *const *a, uint32_t a_count, const char *const *b,
                         uint32_t b_count)
{
    for (uint32_t i = 0; i < a_count && a_count == b_count; i++)
        if (!hb_str_same(a[i], b[i]))
            return false;
    return a_count == b_count;
}

int hb_link_all(struct hb_link *l, int out[HB_LINK_ORDERS])
{
    const char **lists[HB_LINK_ORDERS];
    uint32_t counts[HB_LINK_ORDERS];
    int count = 0;
    if (l->cell->mesh[HB_AX_PIPELINE] > 1) /* their floors are as written */
        return 0;
    for (int i = 0; i < HB_LINK_ORDERS && l->known; i++) {
        if (!make_order(l, i))
            continue;
        lists[count] = list_order(l, i, &counts[count]);
        bool new = true;
        for (int k = 0; k < count; k++)
            new = new && !is_same_list(lists[k], counts[k], lists[count], counts[count]);
        if (new)
            out[count++] = i + 1;
    }
    return count;
}

void hb_link_order(struct hb_arena *arena, const struct hb_spec *spec, struct hb_program *p)
{
    struct hb_link l;
    hb_link_open(arena, spec, &l);
    hb_link_put(arena, &l, spec, p);
}

bool hb_link_lower_in(struct hb_arena *arena, struct hb_diag *diag, struct hb_link *l,
                      const struct hb_spec *spec, struct hb_program *out)
{
    if (!hb_lower(arena, diag, spec, out))
        return false;
    hb_link_put(arena, l, spec, out);
    return true;
}

bool hb_link_lower(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                   struct hb_program *out)
{
    struct hb_link l;
    hb_link_open(arena, spec, &l);
    return hb_link_lower_in(arena, diag, &l, spec, out);
}
