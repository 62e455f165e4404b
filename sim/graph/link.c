/* Clusters of the order at hand and of the one that is followed are told apart by what they do and
 * how many of their like came before; what the other lacks comes with what is emitted behind it. */
#include "sim/graph/link.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "sim/graph/step.h"
#include "sim/ir/habits.h"
#include "sim/ir/lower.h"

struct cluster {
    const char *name; /* of an op or loop of the ends; null: of the layers */
    enum hb_op_kind kind;
    enum hb_phase phase;
    bool loop;
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
    struct cluster *clusters; /* one more at the end */
    uint32_t count;
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
        bool sums = op->write_count == 0 && op->read_count > 1; /* a norm of all gradients */
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
                        .first_op = at,
                        .end = at + 1,
                        .rank = HB_NONE};
    if (loop != HB_NONE) {
        c.loop = true;
        c.kind = HB_OP_OTHER;
        c.end = r->p->loops[loop].end_op;
        c.phase = r->p->ops[c.end - 1].phase;
        c.name = r->p->loops[loop].name;
    }
    if (is_of_layers(r->p, c.first_op, c.end))
        c.name = NULL;
    return c;
}

static bool is_alike(const struct cluster *a, const struct cluster *b)
{
    if (a->kind != b->kind || a->loop != b->loop || !a->name != !b->name)
        return false;
    enum hb_phase apart = a->loop ? HB_PHASE_BACKWARD : HB_PHASE_OPTIMIZER;
    return a->name ? hb_str_same(a->name, b->name) : (a->phase == apart) == (b->phase == apart);
}

static void find_clusters(struct row *r)
{
    uint32_t end = end_op(r), cap = 0;
    for (uint32_t i = first_op(r); i < end; i = r->clusters[r->count - 1].end) {
        struct cluster c = make_cluster(r, i);
        struct cluster *last = r->count ? &r->clusters[r->count - 1] : NULL;
        if (last && !c.name && is_alike(last, &c)) {
            last->end = c.end;
            continue;
        }
        for (uint32_t k = 0; k < r->count; k++)
            c.nth += is_alike(&r->clusters[k], &c);
        r->clusters = hb_grow(r->arena, r->clusters, r->count, &cap, sizeof *r->clusters);
        r->clusters[r->count++] = c;
    }
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
        if (*w != HB_NONE && *w != cluster)
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
        for (uint32_t i = r->clusters[k].first_op; i < r->clusters[k].end; i++)
            follow_op(r, k, &r->p->ops[i], writer);
    }
}

static struct row make_row(struct hb_arena *arena, struct hb_program *p)
{
    struct row r = {.arena = arena, .p = p, .within = HB_NONE};
    for (uint32_t i = 0; i < p->loop_count && r.within == HB_NONE; i++)
        if (hb_str_same(p->loops[i].name, "microbatches"))
            r.within = i;
    find_clusters(&r);
    return r;
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

/* A cluster stands where the last of its ops does. */
static void rank_clusters(struct row *r, const struct hb_step_graph *s, const uint32_t *order)
{
    const struct hb_graph_comp *c = &s->graph.comps[comp_of(r, s)];
    for (uint32_t i = c->first_op; i < c->first_op + c->op_count; i++) {
        uint32_t item = s->item[order[i]], count = r->p->op_count;
        if (item == HB_NONE)
            continue;
        uint32_t op = item < count ? item : r->p->loops[item - count].first_op;
        struct cluster *of = &r->clusters[cluster_at(r, op)];
        of->rank = i;
    }
}

static void take_ranks(struct row *r, const struct row *from)
{
    for (uint32_t k = r->count; k-- > 0;) {
        struct cluster *c = &r->clusters[k];
        c->rank = k + 1 < r->count ? c[1].rank : HB_NONE;
        for (uint32_t i = 0; i < from->count; i++) {
            const struct cluster *f = &from->clusters[i];
            if (f->nth == c->nth && f->rank != HB_NONE && is_alike(f, c))
                c->rank = f->rank;
        }
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

static int compare_ranks(const void *a, const void *b)
{
    const struct cluster *left = *(struct cluster *const *)a, *right = *(struct cluster *const *)b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return left->first_op < right->first_op ? -1 : left->first_op > right->first_op;
}

static void move_ops(struct row *r, const uint32_t *ops)
{
    struct hb_program *p = r->p;
    struct hb_op *old = hb_arena_raw(r->arena, p->op_count, sizeof *old);
    uint32_t *at = hb_arena_raw(r->arena, p->op_count, sizeof *at), first = first_op(r);
    memcpy(old, p->ops, p->op_count * sizeof *old);
    for (uint32_t i = 0; i < p->op_count; i++)
        at[i] = i;
    for (uint32_t i = first; i < end_op(r); i++) {
        at[ops[i - first]] = i;
        p->ops[i] = old[ops[i - first]];
    }
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->ops[i].start != HB_NONE)
            p->ops[i].start = at[p->ops[i].start];
    for (uint32_t i = 0; i < p->loop_count; i++) {
        struct hb_loop *l = &p->loops[i];
        uint32_t trips = l->end_op - l->first_op;
        if (l->first_op >= first && i != r->within && l->end_op <= end_op(r)) {
            l->first_op = at[l->first_op];
            l->end_op = l->first_op + trips;
        }
    }
}

static void link(struct row *r)
{
    struct cluster **sorted = hb_arena_raw(r->arena, r->count, sizeof(struct cluster *));
    struct linked l = {.r = r};
    l.ops = hb_arena_raw(r->arena, r->p->op_count, sizeof *l.ops);
    for (uint32_t k = 0; k < r->count; k++)
        sorted[k] = &r->clusters[k];
    qsort(sorted, r->count, sizeof(struct cluster *), compare_ranks);
    find_deps(r);
    for (uint32_t k = 0; k < r->count; k++)
        place(&l, (uint32_t)(sorted[k] - r->clusters));
    move_ops(r, l.ops);
}

/* --- whose order --- */

/* A layer alone has the policy that it has in the spec. */
static struct hb_remat own_policy(const struct hb_spec *spec, const struct hb_block *b)
{
    for (int i = 0; i < spec->model.block_count; i++)
        if (hb_str_same(spec->model.blocks[i].name, b->name))
            return spec->model.blocks[i].remat;
    return b->remat;
}

static struct hb_remat first_policy(const struct hb_spec *spec)
{
    for (int i = 0; i < spec->model.block_count; i++)
        if (hb_block_steps(&spec->model.blocks[i]) > 1)
            return spec->model.blocks[i].remat;
    return spec->model.blocks[0].remat;
}

/* Runs of one block are one again, and all that are scanned under one policy. */
static struct hb_spec whole_spec(struct hb_arena *arena, const struct hb_spec *spec,
                                 struct hb_remat policy)
{
    struct hb_spec own = *spec;
    size_t count = (size_t)own.model.block_count;
    struct hb_block *blocks = hb_arena_alloc(arena, count, sizeof *blocks);
    own.model.block_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct hb_block b = own.model.blocks[i], *last = blocks + own.model.block_count - 1;
        if (hb_block_steps(&b) > 1)
            b.remat = policy;
        else
            b.remat = own_policy(spec, &b);
        if (own.model.block_count > 0) {
            struct hb_block like = *last;
            like.name = b.name, like.repeat = b.repeat;
            if (memcmp(&like, &b, sizeof b) == 0) {
                last->repeat += b.repeat;
                continue;
            }
        }
        blocks[own.model.block_count++] = b;
    }
    own.model.blocks = blocks;
    return own;
}

static bool lower_whole(struct hb_arena *arena, const struct hb_spec *spec, struct hb_remat policy,
                        struct hb_program *out)
{
    struct hb_spec whole = whole_spec(arena, spec, policy);
    struct hb_diag diag;
    hb_diag_init(&diag, arena);
    return hb_lower(arena, &diag, &whole, out);
}

static bool find_kind(struct hb_arena *arena, const struct hb_spec *spec, enum hb_order_kind *out)
{
    struct hb_program p;
    struct hb_step_orders o;
    if (!lower_whole(arena, spec, first_policy(spec), &p))
        return false;
    hb_step_orders_find(arena, &p, &o);
    *out = o.choice.least;
    return true;
}

bool hb_link_is_known(const struct hb_spec *spec)
{
    return spec->compiler == HB_XLA_GPU && !hb_habits_find(spec)->gathers_timed &&
           spec->stack.form != HB_FORM_LOOP && spec->mesh[HB_AX_PIPELINE] == 1;
}

void hb_link_order(struct hb_arena *arena, const struct hb_spec *spec, struct hb_program *p)
{
    struct hb_remat products = {.policy = HB_POLICY_DOTS};
    struct hb_step_graph graph;
    struct hb_program whole;
    enum hb_order_kind kind;
    if (!hb_link_is_known(spec))
        return;
    if (!find_kind(arena, spec, &kind) || !lower_whole(arena, spec, products, &whole))
        return;
    hb_step_graph_make(arena, &whole, &graph);
    struct row from = make_row(arena, &whole), r = make_row(arena, p);
    rank_clusters(&from, &graph, hb_graph_order_make(arena, &graph.graph, kind));
    take_ranks(&r, &from);
    link(&r);
#ifndef NDEBUG
    hb_program_check(p);
#endif
}
