/* Paths: see critical.h. An op starts when the last of what it waits for has ended, so one of its
 * causes ends exactly where it starts, or it starts at rest. */
#include "solver/critical.h"

#include "base/arena.h"
#include "base/diag.h"

/* An op in one trip. */
struct node {
    uint32_t op; /* HB_NONE: rest */
    int trip;
};

struct walk {
    struct hb_streams *s;
    const struct hb_program *p;
    uint32_t first, end;
    int trip;
    int *ran;           /* by op: the trip of its latest run; -1 */
    struct node *cause; /* [trip][op] */
    struct node edge;
};

static const struct node rest = {HB_NONE, 0};

static struct node latest_run(const struct walk *w, uint32_t op)
{
    if (op == HB_NONE || op < w->first || op >= w->end)
        return rest;
    return (struct node){op, w->ran[op - w->first]};
}

enum { MOST_CAUSES = 64 };

struct causes {
    struct node list[MOST_CAUSES];
    int64_t end_ns[MOST_CAUSES]; /* before the op itself ran, which may be among them */
    uint32_t count;
};

static void add_cause(struct causes *c, struct node node)
{
    if (node.op != HB_NONE && c->count < MOST_CAUSES)
        c->list[c->count++] = node;
}

/* All that the op may wait for, the compute stream first: a path that stays on it is the one that
 * holds for most configurations. */
static void list_causes(const struct walk *w, uint32_t index, struct causes *c)
{
    const struct hb_op *op = &w->p->ops[index];
    c->count = 0;
    if (op->kind != HB_OP_MARK)
        add_cause(c, latest_run(w, w->s->last[op->stream]));
    if (op->kind != HB_OP_MARK && op->stream != HB_STREAM_COMPUTE)
        add_cause(c,
                  w->s->scheduled[index] ? latest_run(w, w->s->last[HB_STREAM_COMPUTE]) : w->edge);
    if (op->kind == HB_OP_DONE)
        add_cause(c, latest_run(w, op->start));
    for (uint32_t r = 0; r < op->read_count; r++)
        add_cause(c, latest_run(w, w->s->writer[w->s->root[w->p->refs[op->refs_at + r]]]));
}

static void run_op(struct walk *w, uint32_t op)
{
    struct causes causes;
    list_causes(w, op, &causes);
    for (uint32_t i = 0; i < causes.count; i++)
        causes.end_ns[i] = w->s->end_ns[causes.list[i].op];
    hb_streams_run(w->s, op);
    int64_t start = w->s->start_ns[op];
    struct node *cause = &w->cause[(size_t)w->trip * (w->end - w->first) + (op - w->first)];
    *cause = rest;
    w->ran[op - w->first] = w->trip;
    for (uint32_t i = 0; i < causes.count; i++)
        if (causes.end_ns[i] == start) {
            *cause = causes.list[i];
            return;
        }
    if (start != 0)
        HB_BUG("op '%s' waits for something unknown", w->p->ops[op].name);
}

/* Puts the streams back to rest: what is waited for elsewhere (a state's copy that starts before a
 * loop) has ended there. */
static void reset_streams(const struct walk *w)
{
    for (uint32_t i = w->first; i < w->end; i++) {
        const struct hb_op *op = &w->p->ops[i];
        w->s->end_ns[i] = 0;
        for (uint32_t r = 0; r < op->write_count; r++)
            w->s->writer[w->s->root[hb_op_writes(w->p, op)[r]]] = HB_NONE;
    }
    for (int i = 0; i < HB_STREAM_COUNT; i++)
        w->s->last[i] = HB_NONE;
    w->s->edge_ns = 0;
}

static struct node cause_of(const struct walk *w, struct node at)
{
    return w->cause[(size_t)at.trip * (w->end - w->first) + (at.op - w->first)];
}

static void mark_path(const struct walk *w, struct node at, uint8_t *passes)
{
    while (at.op != HB_NONE) {
        passes[at.op - w->first]++;
        at = cause_of(w, at);
    }
}

/* What lies between the two latest passes of one op in trips that follow each other, back from
 * `at`; false where there is none. A cause has run before, so that the one pass is looked for from
 * where that of a later op was. */
static bool mark_cycle(const struct walk *w, struct node at, uint8_t *cycle)
{
    struct node y = at;
    for (struct node x = at; x.op != HB_NONE; x = cause_of(w, x)) {
        while (y.op != HB_NONE && (y.trip >= x.trip || (y.trip == x.trip - 1 && y.op > x.op)))
            y = cause_of(w, y);
        if (y.op != x.op || y.trip != x.trip - 1)
            continue;
        for (struct node z = x; z.op != y.op || z.trip != y.trip; z = cause_of(w, z))
            cycle[z.op - w->first]++;
        return true;
    }
    return false;
}

void hb_critical_find(const struct hb_critical_ask *ask, struct hb_critical *out)
{
    uint32_t ops = ask->end_op - ask->first_op;
    struct walk w = {.s = ask->streams,
                     .p = ask->streams->p,
                     .first = ask->first_op,
                     .end = ask->end_op,
                     .edge = rest};
    *out = (struct hb_critical){.first_op = ask->first_op, .op_count = ops};
    w.ran = hb_arena_alloc(ask->arena, ops, sizeof *w.ran);
    w.cause = hb_arena_alloc(ask->arena, (size_t)ops * (size_t)ask->trips, sizeof *w.cause);
    for (uint32_t i = 0; i < ops; i++)
        w.ran[i] = -1;
    struct node at = rest;
    for (w.trip = 0; w.trip < ask->trips; w.trip++) {
        hb_streams_edge(w.s);
        w.edge = latest_run(&w, w.s->last[HB_STREAM_COMPUTE]);
        for (uint32_t i = w.first; i < w.end; i++)
            run_op(&w, i);
        at = latest_run(&w, w.s->last[HB_STREAM_COMPUTE]);
        out->passes[w.trip] = hb_arena_alloc(ask->arena, ops, sizeof(uint8_t));
        mark_path(&w, at, out->passes[w.trip]);
    }
    reset_streams(&w);
    out->cycle = hb_arena_alloc(ask->arena, ops, sizeof *out->cycle);
    if (ask->trips == 1 || !mark_cycle(&w, at, out->cycle))
        for (uint32_t i = 0; i < ops; i++)
            out->cycle[i] = out->passes[0][i];
}
