/* What ops of every policy work on: see op_floor.h. */
#include "solver/op_floor.h"

#include "base/arena.h"
#include "base/names.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/engine/live.h"
#include "sim/ir/program.h"
#include "solver/op_waits.h"

/* One of the programs. */
struct side {
    const struct hb_program *p;
    uint32_t *root;             /* by buffer */
    const struct hb_live *live; /* of its roots */
    uint32_t live_count;
    bool *fixed;       /* by root: argument or output */
    uint32_t *last_op; /* by root: the last op, and one, that it was counted for */
};

/* An op of every policy. */
struct every {
    uint32_t op;          /* of the first program */
    uint32_t operands_at; /* into the least bytes: those it reads, then those it writes */
    uint32_t waits_at, waits_end;
    bool gone; /* another program has it not, or otherwise */
};

/* A value that waits meanwhile. */
struct waiting {
    const char *name;
    int64_t bytes; /* the least of it; 0: not in all of the programs */
};

/* Ops of one phase and name in another program. */
struct ops {
    uint32_t operands_at;
    uint32_t read_count, write_count;
    uint32_t first, last; /* positions */
    bool there;           /* there is one */
    bool unlike;          /* some has another number of operands */
};

struct gradient {
    const char *name;
    int64_t bytes;
    int32_t start, end;
    bool looped; /* a loop writes it */
};

struct hb_op_floor {
    struct hb_arena *arena;
    struct hb_op_floor_ask ask;
    struct side all;
    struct every *every;
    uint32_t every_count;
    int64_t *least;
    struct gradient *gradients; /* of the first program; once another is joined */
    uint32_t gradient_count;
    bool *there; /* [every x gradient]: it lives then in all of the programs; null: none joined */
    struct waiting *waits;
};

static struct side open_side(struct hb_arena *arena, const struct hb_program *p,
                             const struct hb_live *live, uint32_t live_count)
{
    struct side s = {
        .p = p, .root = hb_program_roots(arena, p), .live = live, .live_count = live_count};
    s.fixed = hb_arena_alloc(arena, p->buf_count, sizeof *s.fixed);
    s.last_op = hb_arena_alloc(arena, p->buf_count, sizeof *s.last_op);
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->bufs[i].argument || p->bufs[i].output)
            s.fixed[s.root[i]] = true;
    return s;
}

/* Of a stack a layer's part, without its padding, which follows from the number of layers. */
static int64_t bytes_of(const struct hb_program *p, uint32_t buf, uint32_t root)
{
    const struct hb_buf *b = &p->bufs[buf], *r = &p->bufs[root];
    int64_t parts = hb_larger(b->slices, r->slices);
    if (parts > 1)
        return hb_smaller(b->plain_bytes, r->plain_bytes) / parts;
    return hb_smaller(b->bytes, r->bytes);
}

/* Each place once. */
static void list_operands(struct side *s, uint32_t op, int64_t *out)
{
    const struct hb_op *x = &s->p->ops[op];
    for (uint32_t i = 0; i < x->read_count + x->write_count; i++) {
        uint32_t buf = s->p->refs[x->refs_at + i], root = s->root[buf];
        const struct hb_buf *r = &s->p->bufs[root];
        bool counts = r->space == HB_SPACE_HBM && !s->fixed[root] &&
                      r->category != HB_CAT_GRADIENTS && s->last_op[root] != op + 1;
        s->last_op[root] = op + 1;
        out[i] = counts ? bytes_of(s->p, buf, root) : 0;
    }
}

/* --- gradients --- */

/* What is listed by name. */
typedef bool is_listed(const struct side *s, const struct hb_live *live);

static bool is_gradient(const struct side *s, const struct hb_live *live)
{
    const struct hb_buf *b = &s->p->bufs[live->buf];
    return b->category == HB_CAT_GRADIENTS && b->space == HB_SPACE_HBM && !s->fixed[live->buf];
}

static bool is_value(const struct side *s, const struct hb_live *live)
{
    return s->p->bufs[live->buf].space == HB_SPACE_HBM && !s->fixed[live->buf];
}

/* By root: some op inside of a loop writes it. */
static bool *find_looped(struct hb_arena *arena, const struct side *s)
{
    bool *looped = hb_arena_alloc(arena, s->p->buf_count, sizeof *looped);
    for (uint32_t i = 0; i < s->p->op_count; i++) {
        const struct hb_op *op = &s->p->ops[i];
        for (uint32_t w = 0; w < op->write_count && op->loop != HB_NONE; w++)
            looped[s->root[hb_op_writes(s->p, op)[w]]] = true;
    }
    return looped;
}

/* Of those of one name, which are not told apart, what holds of each. */
static struct gradient *list_lives(struct hb_arena *arena, const struct side *s, is_listed *listed,
                                   bool split, struct hb_names *names)
{
    const bool *looped = find_looped(arena, s);
    hb_names_init(names, arena, s->live_count);
    struct gradient *list = hb_arena_alloc(arena, names->room, sizeof *list);
    for (uint32_t i = 0; i < s->live_count; i++) {
        const struct hb_live *l = &s->live[i];
        if (!listed(s, l))
            continue;
        const char *name = s->p->bufs[l->buf].name;
        int64_t bytes = split ? s->p->bufs[l->buf].plain_bytes : l->bytes;
        struct gradient *g = &list[hb_names_put(names, name, 0)];
        if (!g->name)
            *g = (struct gradient){name, bytes, l->start, l->end, true};
        g->looped = g->looped && looped[l->buf];
        g->bytes = hb_smaller(g->bytes, bytes);
        g->start = l->start > g->start ? l->start : g->start;
        g->end = l->end < g->end ? l->end : g->end;
    }
    return list;
}

/* The last loop of the backward pass, or that over microbatches around it; null: there is none. */
static const struct hb_loop *find_last_loop(const struct hb_program *p)
{
    const struct hb_loop *around = NULL;
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->ops[i].phase == HB_PHASE_BACKWARD && p->ops[i].loop != HB_NONE)
            around = &p->loops[p->ops[i].loop];
    while (around && around->parent != HB_NONE)
        around = &p->loops[around->parent];
    return around;
}

/* All around that loop (not the zeros that nan_to_num puts in behind each microbatch, seed 19050);
 * without loops, behind all of it. */
static bool is_lasting(const struct hb_loop *around, const struct gradient *g)
{
    if (!around)
        return g->end >= 0;
    return g->start < (int64_t)around->first_op && g->end >= (int64_t)around->end_op;
}

static void take_gradients(struct hb_op_floor *s)
{
    const struct side *all = &s->all;
    struct hb_names names;
    const struct gradient *list = list_lives(s->arena, all, is_gradient, s->ask.split, &names);
    const struct hb_loop *around = find_last_loop(all->p);
    int64_t from = s->ask.late && around ? (int64_t)around->first_op : 0;
    s->gradients = hb_arena_alloc(s->arena, names.room, sizeof *s->gradients);
    for (size_t at = 0; at < names.room && !s->ask.apart; at++)
        if (list[at].looped && (!s->ask.lasting || is_lasting(around, &list[at])))
            s->gradients[s->gradient_count++] = list[at];
    s->there =
        hb_arena_alloc(s->arena, (size_t)s->every_count * s->gradient_count + 1, sizeof(bool));
    for (uint32_t i = 0; i < s->every_count; i++)
        for (uint32_t k = 0; k < s->gradient_count; k++) {
            const struct gradient *g = &s->gradients[k];
            int64_t op = s->every[i].op;
            s->there[i * s->gradient_count + k] = g->start <= op && g->end >= op && op >= from;
        }
}

/* --- the first program --- */

static void list_every(struct hb_op_floor *s)
{
    const struct hb_program *p = s->ask.all;
    uint32_t count = 0;
    s->every = hb_arena_alloc(s->arena, p->op_count, sizeof *s->every);
    s->least = hb_arena_alloc(s->arena, p->ref_count, sizeof *s->least);
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        if (s->ask.optional[i] || !s->ask.counts[i] || !hb_op_is_work(op))
            continue;
        s->every[s->every_count++] = (struct every){.op = i, .operands_at = count};
        list_operands(&s->all, i, s->least + count);
        count += op->read_count + op->write_count;
    }
}

/* To those of the list, which are in order. */
static void take_waits(struct hb_op_floor *s)
{
    const struct hb_program *p = s->ask.all;
    struct hb_op_wait *found;
    uint32_t count =
        hb_op_waits_find(s->arena, p, s->ask.live, s->ask.live_count, s->ask.optional, &found);
    int64_t *bytes = hb_arena_alloc(s->arena, p->buf_count, sizeof *bytes); /* by root */
    s->waits = hb_arena_alloc(s->arena, (size_t)count + 1, sizeof *s->waits);
    for (uint32_t i = 0; i < s->ask.live_count; i++)
        bytes[s->ask.live[i].buf] = s->all.fixed[s->ask.live[i].buf] ? 0 : s->ask.live[i].bytes;
    for (uint32_t i = 0, k = 0; i < s->every_count; i++) {
        while (k < count && found[k].op < s->every[i].op)
            k++;
        s->every[i].waits_at = k;
        for (; k < count && found[k].op == s->every[i].op; k++)
            s->waits[k] = (struct waiting){p->bufs[found[k].buf].name, bytes[found[k].buf]};
        s->every[i].waits_end = k;
    }
}

struct hb_op_floor *hb_op_floor_open(struct hb_arena *arena, const struct hb_op_floor_ask *ask)
{
    struct hb_op_floor *s = hb_arena_alloc(arena, 1, sizeof *s);
    *s = (struct hb_op_floor){
        .arena = arena, .ask = *ask, .all = open_side(arena, ask->all, ask->live, ask->live_count)};
    list_every(s);
    if (ask->waits)
        take_waits(s);
    return s;
}

/* --- another program --- */

static void join_operands(struct ops *o, const struct hb_op *op, int64_t *least, const int64_t *own)
{
    o->unlike = o->unlike || o->read_count != op->read_count || o->write_count != op->write_count;
    for (uint32_t i = 0; i < op->read_count + op->write_count && !o->unlike; i++)
        least[i] = hb_smaller(least[i], own[i]);
}

/* The names of those of every policy. */
static struct hb_names name_every(const struct hb_op_floor *s)
{
    struct hb_names names;
    hb_names_init(&names, s->arena, s->every_count);
    for (uint32_t i = 0; i < s->every_count; i++) {
        const struct hb_op *op = &s->ask.all->ops[s->every[i].op];
        hb_names_put(&names, op->name, (uint32_t)op->phase);
    }
    return names;
}

/* Of those names. */
static struct ops *list_ops(struct hb_arena *arena, struct side *side, const struct hb_names *names,
                            int64_t *least)
{
    const struct hb_program *p = side->p;
    uint32_t count = 0;
    struct ops *list = hb_arena_alloc(arena, names->room, sizeof *list);
    int64_t *own = hb_arena_raw(arena, p->ref_count, sizeof *own);
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        if (!hb_op_is_work(op))
            continue;
        size_t at = hb_names_place(names, op->name, (uint32_t)op->phase);
        if (!names->names[at])
            continue;
        list_operands(side, i, own);
        if (!list[at].there) {
            list[at] = (struct ops){count, op->read_count, op->write_count, i, i, true, false};
            for (uint32_t k = 0; k < op->read_count + op->write_count; k++)
                least[count++] = own[k];
        }
        join_operands(&list[at], op, least + list[at].operands_at, own);
        list[at].last = i;
    }
    return list;
}

/* The other program's, by gradient of the first. */
static const struct gradient *const *find_gradients(const struct hb_op_floor *s,
                                                    const struct gradient *others,
                                                    const struct hb_names *names)
{
    const struct gradient **own =
        hb_arena_alloc(s->arena, (size_t)s->gradient_count + 1, sizeof(struct gradient *));
    for (uint32_t k = 0; k < s->gradient_count; k++)
        own[k] = &others[hb_names_place(names, s->gradients[k].name, 0)];
    return own;
}

static void join_gradients(struct hb_op_floor *s, uint32_t every, const struct ops *o,
                           const struct gradient *const *others)
{
    bool *there = s->there + every * s->gradient_count;
    for (uint32_t k = 0; k < s->gradient_count; k++) {
        const struct gradient *g = others[k];
        there[k] =
            there[k] && g->name && g->start <= (int64_t)o->first && g->end >= (int64_t)o->last;
        if (there[k])
            s->gradients[k].bytes = hb_smaller(s->gradients[k].bytes, g->bytes);
    }
}

/* Whether an op of this name, from the first to the last of them, touches a value of that one. */
static bool is_operand(const struct side *side, const struct hb_op *op, const struct ops *o,
                       const char *name)
{
    const struct hb_program *p = side->p;
    for (uint32_t i = o->first; i <= o->last; i++) {
        const struct hb_op *x = &p->ops[i];
        bool same = x->phase == op->phase && hb_str_same(x->name, op->name);
        for (uint32_t r = 0; same && r < x->read_count + x->write_count; r++)
            if (hb_str_same(p->bufs[side->root[p->refs[x->refs_at + r]]].name, name))
                return true;
    }
    return false;
}

static void join_waits(struct hb_op_floor *s, const struct every *e, const struct side *side,
                       const struct ops *o, const struct gradient *others,
                       const struct hb_names *names)
{
    for (uint32_t k = e->waits_at; k < e->waits_end; k++) {
        struct waiting *w = &s->waits[k];
        const struct gradient *v = &others[hb_names_place(names, w->name, 0)];
        bool there = w->bytes > 0 && v->name && v->start < (int64_t)o->first &&
                     v->end > (int64_t)o->last &&
                     !is_operand(side, &s->ask.all->ops[e->op], o, w->name);
        w->bytes = there ? hb_smaller(w->bytes, v->bytes) : 0;
    }
}

void hb_op_floor_join(struct hb_op_floor *s, const struct hb_program *p, const struct hb_live *live,
                      uint32_t live_count)
{
    struct side side = open_side(s->arena, p, live, live_count);
    struct hb_names names = name_every(s), gradient_names, value_names;
    if (!s->there)
        take_gradients(s);
    int64_t *least = hb_arena_raw(s->arena, p->ref_count, sizeof *least);
    const struct ops *list = list_ops(s->arena, &side, &names, least);
    const struct gradient *others =
        list_lives(s->arena, &side, is_gradient, s->ask.split, &gradient_names);
    const struct gradient *values =
        s->waits ? list_lives(s->arena, &side, is_value, false, &value_names) : NULL;
    const struct gradient *const *own = find_gradients(s, others, &gradient_names);
    for (uint32_t i = 0; i < s->every_count; i++) {
        struct every *e = &s->every[i];
        const struct hb_op *op = &s->ask.all->ops[e->op];
        size_t at = hb_names_place(&names, op->name, (uint32_t)op->phase);
        const struct ops *o = &list[at];
        e->gone = e->gone || !o->there || o->unlike || o->read_count != op->read_count ||
                  o->write_count != op->write_count;
        if (e->gone)
            continue;
        for (uint32_t k = 0; k < op->read_count + op->write_count; k++)
            s->least[e->operands_at + k] =
                hb_smaller(s->least[e->operands_at + k], least[o->operands_at + k]);
        join_gradients(s, i, o, own);
        if (values)
            join_waits(s, e, &side, o, values, &value_names);
    }
}

/* --- the whole --- */

static int64_t operands_of(const struct hb_op_floor *s, const struct every *e)
{
    const struct hb_op *op = &s->ask.all->ops[e->op];
    int64_t sum = 0;
    for (uint32_t i = 0; i < op->read_count + op->write_count; i++)
        sum = hb_add_sat(sum, s->least[e->operands_at + i]);
    for (uint32_t k = e->waits_at; k < e->waits_end; k++)
        sum = hb_add_sat(sum, s->waits[k].bytes);
    return sum;
}

static int64_t all_gradients(const struct hb_op_floor *s)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < s->all.live_count; i++)
        if (is_gradient(&s->all, &s->all.live[i]))
            sum = hb_add_sat(sum, s->all.live[i].bytes);
    return sum;
}

/* Those that are there, of one of `every`. */
static int64_t gradients_of(const struct hb_op_floor *s, const bool *there)
{
    int64_t sum = 0;
    for (uint32_t k = 0; k < s->gradient_count; k++)
        if (there[k])
            sum = hb_add_sat(sum, s->gradients[k].bytes);
    return sum;
}

/* As more programs are joined no sum grows. */
void hb_op_floor_forget(struct hb_op_floor *s, int64_t bytes)
{
    int64_t all = all_gradients(s);
    uint32_t left = 0;
    for (uint32_t i = 0; i < s->every_count; i++)
        if (hb_add_sat(operands_of(s, &s->every[i]), all) > bytes)
            s->every[left++] = s->every[i];
    s->every_count = left;
}

int64_t hb_op_floor_bytes(const struct hb_op_floor *s)
{
    int64_t most = 0, all = s->there ? 0 : all_gradients(s);
    for (uint32_t i = 0; i < s->every_count; i++) {
        const struct every *e = &s->every[i];
        int64_t gradients =
            s->there ? gradients_of(s, s->there + (size_t)i * s->gradient_count) : all;
        if (!e->gone)
            most = hb_larger(most, hb_add_sat(operands_of(s, e), gradients));
    }
    return most;
}
