/* DFSMemoryScheduler: what stands above each op, counted along every path to it (and so often more
 * than once), says which operand is visited first. Ops that nobody reads come before the root. */
#include "sim/graph/order.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/size.h"

enum { NEW, OPEN, DONE };

struct weight {
    int64_t extra_users; /* users but one, of all above */
    int64_t bytes;       /* made above */
    uint32_t rank;
    uint32_t op;
};

struct walk {
    const struct hb_graph *g;
    uint32_t first;
    struct weight *weights; /* by op of the computation */
    unsigned char *state;
    struct weight *stack;
    uint32_t depth;
    uint32_t *out;
    uint32_t count;
};

static int64_t made_bytes(const struct hb_graph *g, uint32_t op)
{
    int64_t sum = 0;
    for (uint32_t v = 0; v < g->ops[op].value_count; v++)
        sum = hb_add_sat(sum, g->values[g->ops[op].first_value + v].bytes);
    return sum;
}

/* Along a post-order, which has operands first. */
static void weigh(struct walk *w, const uint32_t *post, uint32_t count, uint32_t *met)
{
    int64_t all_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t op = post[i], users = hb_graph_user_count(w->g, op);
        struct weight *at = &w->weights[op - w->first];
        *at = (struct weight){.rank = w->g->ops[op].rank, .op = op};
        if (w->g->ops[op].given)
            continue;
        at->extra_users = (int64_t)users - 1;
        at->bytes = made_bytes(w->g, op);
        all_bytes = hb_add_sat(all_bytes, at->bytes);
        const uint32_t *operands = hb_graph_refs(w->g, op, HB_GRAPH_OPERAND);
        for (uint32_t k = 0; k < hb_graph_ref_count(w->g, op, HB_GRAPH_OPERAND); k++) {
            const struct weight *above = &w->weights[operands[k] - w->first];
            if (met[operands[k] - w->first] == op + 1)
                continue;
            met[operands[k] - w->first] = op + 1;
            at->extra_users += above->extra_users;
            at->bytes = hb_add_sat(at->bytes, above->bytes);
        }
        at->bytes = at->bytes < all_bytes ? at->bytes : all_bytes;
        at->extra_users = at->extra_users < count ? at->extra_users : count;
    }
}

/* Whoever is to be visited first stands last, on top of the stack. */
static int compare_weights(const void *a, const void *b)
{
    const struct weight *left = a, *right = b;
    int users = (left->extra_users > right->extra_users) - (left->extra_users < right->extra_users);
    int bytes = (left->bytes > right->bytes) - (left->bytes < right->bytes);
    return 4 * users + 2 * bytes + (left->rank < right->rank) - (left->rank > right->rank);
}

static void push(struct walk *w, uint32_t op)
{
    w->stack[w->depth++] = w->weights[op - w->first];
}

static void open_op(struct walk *w, uint32_t op)
{
    uint32_t floor = w->depth;
    for (int kind = HB_GRAPH_OPERAND; kind <= HB_GRAPH_AFTER; kind++) {
        const uint32_t *to = hb_graph_refs(w->g, op, (enum hb_graph_ref)kind);
        for (uint32_t i = 0; i < hb_graph_ref_count(w->g, op, (enum hb_graph_ref)kind); i++)
            push(w, to[i]);
    }
    qsort(w->stack + floor, w->depth - floor, sizeof *w->stack, compare_weights);
}

static void walk_from(struct walk *w, uint32_t start)
{
    push(w, start);
    while (w->depth) {
        uint32_t op = w->stack[w->depth - 1].op;
        unsigned char *state = &w->state[op - w->first];
        if (*state == NEW) {
            *state = OPEN;
            open_op(w, op);
            continue;
        }
        w->depth--;
        if (*state == OPEN)
            w->out[w->count++] = op;
        *state = DONE;
    }
}

void hb_graph_order_depth(struct hb_arena *scratch, const struct hb_graph *g, uint32_t comp,
                          uint32_t *out)
{
    const struct hb_graph_comp *of = &g->comps[comp];
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct walk w = {.g = g, .first = of->first_op, .out = out};
    size_t edges = 1;
    for (uint32_t op = of->first_op; op < of->first_op + of->op_count; op++)
        edges += 1 + (g->ops[op].refs_at[HB_GRAPH_USES] - g->ops[op].refs_at[HB_GRAPH_OPERAND]);
    w.weights = hb_arena_raw(scratch, of->op_count, sizeof *w.weights);
    w.state = hb_arena_alloc(scratch, of->op_count, 1);
    w.stack = hb_arena_raw(scratch, edges, sizeof *w.stack);
    hb_graph_order_post(scratch, g, comp, out); /* overwritten below */
    weigh(&w, out, of->op_count, hb_arena_alloc(scratch, of->op_count, sizeof(uint32_t)));
    for (uint32_t op = of->first_op; op < of->first_op + of->op_count; op++)
        if (op != of->root && !hb_graph_user_count(g, op) &&
            g->first_after[op + 1] == g->first_after[op])
            walk_from(&w, op);
    if (of->root != HB_NONE)
        walk_from(&w, of->root);
    hb_arena_rewind(scratch, mark);
}
