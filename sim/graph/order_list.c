/* ListScheduler. The queue is a heap whose entries are never changed: an op whose priority changed
 * is put in anew, with a later stamp, and its older entry is passed over. */
#include "sim/graph/order.h"

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"

struct ready {
    int64_t freed_bytes;
    uint32_t user_count;
    uint32_t stamp;
    uint32_t op;
};

struct lister {
    struct hb_arena *arena;
    const struct hb_graph *g;
    uint32_t first;   /* op of the computation at hand */
    uint32_t *waits;  /* by op of the computation: what it still waits for */
    uint32_t *uses;   /* by value: ops that have not run, and the caller */
    int64_t *made;    /* by op: bytes of what it makes */
    uint32_t *stamps; /* by op: of its entry; 0: it is not ready */
    int64_t *freed;   /* by op: the priority of that entry */
    struct ready *queue;
    uint32_t queue_count, queue_cap;
    uint32_t stamp;
};

static bool comes_before(const struct ready *a, const struct ready *b)
{
    if (a->freed_bytes != b->freed_bytes)
        return a->freed_bytes > b->freed_bytes;
    if (a->user_count != b->user_count)
        return a->user_count > b->user_count;
    return a->stamp > b->stamp;
}

static int64_t freed_bytes(const struct lister *l, uint32_t op)
{
    const struct hb_graph *g = l->g;
    if (g->ops[op].scalar)
        return INT64_MAX;
    if (g->loops_even && (g->ops[op].ring || hb_graph_ref_count(g, op, HB_GRAPH_RUNS) > 0))
        return 0;
    int64_t sum = -l->made[op - l->first];
    const uint32_t *uses = hb_graph_refs(g, op, HB_GRAPH_USES);
    for (uint32_t i = 0; i < hb_graph_ref_count(g, op, HB_GRAPH_USES); i++) {
        const struct hb_graph_value *v = &g->values[uses[i]];
        if (l->uses[uses[i]] == 1 && !g->ops[v->op].given)
            sum = hb_add_sat(sum, v->bytes);
    }
    return sum;
}

static void push(struct lister *l, uint32_t op, int64_t freed)
{
    const struct hb_graph *g = l->g;
    struct ready entry = {.freed_bytes = freed,
                          .user_count = hb_graph_user_count(g, op),
                          .stamp = ++l->stamp,
                          .op = op};
    l->stamps[op - l->first] = entry.stamp;
    l->freed[op - l->first] = freed;
    l->queue = hb_grow(l->arena, l->queue, l->queue_count, &l->queue_cap, sizeof *l->queue);
    uint32_t at = l->queue_count++;
    for (; at && comes_before(&entry, &l->queue[(at - 1) / 2]); at = (at - 1) / 2)
        l->queue[at] = l->queue[(at - 1) / 2];
    l->queue[at] = entry;
}

static struct ready pop(struct lister *l)
{
    struct ready top = l->queue[0], last = l->queue[--l->queue_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= l->queue_count)
            break;
        /* One past the end is the last, which ends the way down. */
        child += comes_before(&l->queue[child + 1], &l->queue[child]);
        if (!comes_before(&l->queue[child], &last))
            break;
        l->queue[at] = l->queue[child];
        at = child;
    }
    l->queue[at] = last;
    return top;
}

/* Takes a use off each value; true if one is left with a single one. */
static bool end_uses(struct lister *l, uint32_t op)
{
    bool single = false;
    const uint32_t *uses = hb_graph_refs(l->g, op, HB_GRAPH_USES);
    for (uint32_t i = 0; i < hb_graph_ref_count(l->g, op, HB_GRAPH_USES); i++)
        single |= --l->uses[uses[i]] == 1;
    return single;
}

static void end_waits(struct lister *l, const uint32_t *first, const uint32_t *list, uint32_t op)
{
    for (uint32_t i = first[op]; i < first[op + 1]; i++)
        if (--l->waits[list[i] - l->first] == 0)
            push(l, list[i], freed_bytes(l, list[i]));
}

/* Whoever reads the same as this op may free more now. */
static void weigh_again(struct lister *l, uint32_t op)
{
    const struct hb_graph *g = l->g;
    const uint32_t *operands = hb_graph_refs(g, op, HB_GRAPH_OPERAND);
    for (uint32_t i = 0; i < hb_graph_ref_count(g, op, HB_GRAPH_OPERAND); i++)
        for (uint32_t u = g->first_user[operands[i]]; u < g->first_user[operands[i] + 1]; u++) {
            uint32_t user = g->users[u];
            if (!l->stamps[user - l->first])
                continue;
            int64_t freed = freed_bytes(l, user);
            if (freed != l->freed[user - l->first])
                push(l, user, freed);
        }
}

/* A loop hands back all that it is given: of what no trip changes XLA:GPU's scheduler thinks that
 * it is made anew. What it holds inside does not count (hlo_memory_scheduler=2, "Bytes freed" of a
 * while: its operands but for parameters, less all of its tuple; XLA:TPU's always 0). */
static int64_t made_bytes(const struct lister *l, uint32_t op)
{
    const struct hb_graph_op *at = &l->g->ops[op];
    int64_t sum = 0, given = 0;
    for (uint32_t v = 0; v < at->value_count && !at->given; v++)
        sum = hb_add_sat(sum, l->g->values[at->first_value + v].bytes);
    const uint32_t *uses = hb_graph_refs(l->g, op, HB_GRAPH_USES);
    for (uint32_t i = 0; i < hb_graph_ref_count(l->g, op, HB_GRAPH_USES); i++)
        given = hb_add_sat(given, l->g->values[uses[i]].bytes);
    return hb_graph_ref_count(l->g, op, HB_GRAPH_RUNS) > 0 ? hb_larger(given, sum) : sum;
}

/* Each computation counts for itself, from nothing: others may use the same values. */
static void count_uses(struct lister *l, const struct hb_graph_comp *of, uint32_t by)
{
    const struct hb_graph *g = l->g;
    for (uint32_t op = of->first_op; op < of->first_op + of->op_count; op++)
        for (uint32_t i = 0; i < hb_graph_ref_count(g, op, HB_GRAPH_USES); i++) {
            uint32_t *uses = &l->uses[hb_graph_refs(g, op, HB_GRAPH_USES)[i]];
            *uses = by * (*uses + 1);
        }
}

static void open_lister(struct lister *l, const struct hb_graph_comp *of)
{
    const struct hb_graph *g = l->g;
    l->first = of->first_op;
    l->waits = hb_arena_alloc(l->arena, of->op_count, sizeof *l->waits);
    l->made = hb_arena_alloc(l->arena, of->op_count, sizeof *l->made);
    l->stamps = hb_arena_alloc(l->arena, of->op_count, sizeof *l->stamps);
    l->freed = hb_arena_alloc(l->arena, of->op_count, sizeof *l->freed);
    for (uint32_t op = of->first_op; op < of->first_op + of->op_count; op++) {
        l->made[op - l->first] = made_bytes(l, op);
        for (uint32_t u = g->first_user[op]; u < g->first_user[op + 1]; u++)
            l->waits[g->users[u] - l->first]++;
        for (uint32_t u = g->first_after[op]; u < g->first_after[op + 1]; u++)
            l->waits[g->after[u] - l->first]++;
    }
    count_uses(l, of, 0);
    count_uses(l, of, 1);
}

static void list_comp(struct lister *l, const struct hb_graph_comp *of, uint32_t *out)
{
    const struct hb_graph *g = l->g;
    uint32_t placed = 0;
    open_lister(l, of);
    for (uint32_t op = of->first_op; op < of->first_op + of->op_count; op++)
        if (!l->waits[op - l->first])
            push(l, op, freed_bytes(l, op));
    while (l->queue_count) {
        struct ready top = pop(l);
        if (l->stamps[top.op - l->first] != top.stamp)
            continue;
        l->stamps[top.op - l->first] = 0;
        out[placed++] = top.op;
        bool single = end_uses(l, top.op);
        end_waits(l, g->first_user, g->users, top.op);
        end_waits(l, g->first_after, g->after, top.op);
        if (single)
            weigh_again(l, top.op);
    }
}

void hb_graph_order_list(struct hb_arena *scratch, const struct hb_graph *g, uint32_t *out)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct lister l = {.arena = scratch, .g = g};
    l.uses = hb_arena_alloc(scratch, g->value_count, sizeof *l.uses);
    for (uint32_t c = g->comp_count; c-- > 0;) { /* what is run stands behind who runs it */
        struct hb_arena_mark own = hb_arena_mark(scratch);
        l.queue = NULL;
        l.queue_cap = 0;
        list_comp(&l, &g->comps[c], out + g->comps[c].first_op);
        hb_graph_order_async(scratch, g, c, out + g->comps[c].first_op);
        hb_arena_rewind(scratch, own);
    }
    hb_arena_rewind(scratch, mark);
}
