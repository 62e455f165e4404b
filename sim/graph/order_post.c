/* Depth first with a stack of its own (HloComputation::MakeInstructionPostOrder): an op is met
 * twice, first its operands are pushed above it, then it is put down. Starts are the ops that
 * nobody reads, by age. */
#include "sim/graph/order.h"

#include "base/arena.h"

enum { NEW, OPEN, DONE };

struct walk {
    const struct hb_graph *g;
    uint32_t first; /* op of the computation */
    unsigned char *state;
    uint32_t *stack;
    uint32_t depth;
    uint32_t *out;
    uint32_t count;
};

static void push(struct walk *w, uint32_t op)
{
    w->stack[w->depth++] = op;
}

static void walk_from(struct walk *w, uint32_t start)
{
    push(w, start);
    while (w->depth) {
        uint32_t op = w->stack[w->depth - 1];
        unsigned char *state = &w->state[op - w->first];
        if (*state != NEW) {
            w->depth--;
            if (*state == OPEN)
                w->out[w->count++] = op;
            *state = DONE;
            continue;
        }
        *state = OPEN;
        const uint32_t *operands = hb_graph_refs(w->g, op, HB_GRAPH_OPERAND);
        for (uint32_t i = hb_graph_ref_count(w->g, op, HB_GRAPH_OPERAND); i-- > 0;)
            push(w, operands[i]);
        const uint32_t *before = hb_graph_refs(w->g, op, HB_GRAPH_AFTER);
        for (uint32_t i = 0; i < hb_graph_ref_count(w->g, op, HB_GRAPH_AFTER); i++)
            push(w, before[i]);
    }
}

void hb_graph_order_post(struct hb_arena *scratch, const struct hb_graph *g, uint32_t comp,
                         uint32_t *out)
{
    const struct hb_graph_comp *of = &g->comps[comp];
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct walk w = {.g = g, .first = of->first_op};
    size_t edges = 1;
    for (uint32_t op = of->first_op; op < of->first_op + of->op_count; op++)
        edges += 1 + (g->ops[op].refs_at[HB_GRAPH_USES] - g->ops[op].refs_at[HB_GRAPH_OPERAND]);
    w.out = out;
    w.state = hb_arena_alloc(scratch, of->op_count, 1);
    w.stack = hb_arena_raw(scratch, edges, sizeof *w.stack);
    for (uint32_t op = of->first_op; op < of->first_op + of->op_count; op++)
        if (!hb_graph_user_count(g, op))
            walk_from(&w, op);
    hb_arena_rewind(scratch, mark);
}
