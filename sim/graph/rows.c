/* Events of the written step are sorted by where the graph's order has their ops. */
#include "sim/graph/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "sim/graph/step.h"
#include "sim/ir/copies.h"
#include "sim/ir/lower.h"

static struct hb_spec canonical(struct hb_arena *arena, const struct hb_spec *spec)
{
    struct hb_spec own = *spec;
    size_t count = (size_t)spec->model.block_count;
    struct hb_block *blocks = hb_arena_alloc(arena, count, sizeof *blocks);
    own.model.block_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct hb_block b = spec->model.blocks[i], like = b;
        b.remat = (struct hb_remat){.policy = HB_POLICY_FULL};
        struct hb_block *last = blocks + own.model.block_count - 1;
        if (own.model.block_count > 0) {
            like = *last;
            like.name = b.name, like.repeat = b.repeat;
        }
        if (own.model.block_count > 0 && memcmp(&like, &b, sizeof b) == 0)
            last->repeat += b.repeat;
        else
            blocks[own.model.block_count++] = b;
    }
    own.model.blocks = blocks;
    own.merged = false;
    own.share = HB_SHARE_KEPT;
    own.as_order = HB_OWN_ORDER;
    return own;
}

/* What of the graph the op is: its own, or its outermost loop's. */
static uint32_t item_of(const struct hb_program *p, uint32_t op)
{
    uint32_t in = op < p->op_count ? p->ops[op].loop : HB_NONE;
    if (in == HB_NONE)
        return op;
    while (p->loops[in].parent != HB_NONE)
        in = p->loops[in].parent;
    return p->op_count + in;
}

struct placed {
    struct hb_copies_event event;
    uint32_t at;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->event.op < y->event.op ? -1 : x->event.op > y->event.op;
}

/* By item of the program, one past its place in the entry's order; 0: it has none. */
static uint32_t *find_places(struct hb_arena *arena, const struct hb_program *p,
                             enum hb_copies_order as)
{
    struct hb_step_orders o;
    hb_step_orders_find(arena, p, &o);
    enum hb_order_kind kind = as == HB_COPIES_AS_LIST ? HB_ORDER_LIST
                              : as == HB_COPIES_DEPTH ? HB_ORDER_DEPTH
                                                      : o.choice.least;
    const struct hb_graph_comp *entry = &o.step.graph.comps[o.step.graph.entry];
    uint32_t *at = hb_arena_alloc(arena, (size_t)p->op_count + p->loop_count, sizeof *at);
    for (uint32_t i = 0; i < entry->op_count; i++) {
        uint32_t item = o.step.item[o.choice.orders[kind][entry->first_op + i]];
        if (item != HB_NONE)
            at[item] = i + 1;
    }
    return at;
}

/* Where the layers begin is where their loop does; a mark is where the next op is. */
static uint32_t op_of(const struct hb_program *p, const uint32_t *at,
                      const struct hb_copies_event *e)
{
    uint32_t op = e->op == HB_NONE ? 0 : e->op;
    bool loop = e->kind == HB_COPIES_LAYERS && p->loop_count > 0;
    if (e->name || op == 0)
        return op;
    while (op + 1 < p->op_count && (!at[item_of(p, op)] || (loop && item_of(p, op) < p->op_count)))
        op++;
    return op;
}

static const struct hb_copies_row *make_row(struct hb_arena *arena, const struct hb_program *p,
                                            const struct hb_copies *c)
{
    const uint32_t *at = find_places(arena, p, c->order);
    struct placed *all = hb_arena_raw(arena, c->count, sizeof *all);
    for (uint32_t i = 0; i < c->count; i++) {
        all[i].event = c->events[i];
        all[i].event.op = op_of(p, at, &c->events[i]);
        all[i].at = all[i].event.op == 0 ? 0 : at[item_of(p, all[i].event.op)];
    }
    qsort(all, c->count, sizeof *all, compare_placed);
    struct hb_copies_row *row = hb_arena_alloc(arena, 1, sizeof *row);
    row->events = hb_arena_raw(arena, c->count, sizeof *row->events);
    row->count = c->count;
    for (uint32_t i = 0; i < c->count; i++)
        row->events[i] = all[i].event;
    return row;
}

bool hb_rows_find(struct hb_arena *arena, struct hb_diag *diag, struct hb_spec *spec)
{
    struct hb_program p;
    const struct hb_copies *copies;
    if (spec->copies || !hb_lower_queues(arena, diag, spec))
        return true;
    struct hb_spec own = canonical(arena, spec);
    if (!hb_lower_written(arena, diag, &own, &p, &copies))
        return false;
    spec->copies = make_row(arena, &p, copies);
    return true;
}

const struct hb_spec *hb_rows_spec(struct hb_arena *arena, struct hb_diag *diag,
                                   const struct hb_spec *spec)
{
    struct hb_spec *own = hb_arena_alloc(arena, 1, sizeof *own);
    *own = *spec;
    return hb_rows_find(arena, diag, own) ? own : NULL;
}
