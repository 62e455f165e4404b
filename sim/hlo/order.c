/* Depth first, with a stack of its own; scopes by recursion, whose depth the flow bounds. */
#include "sim/hlo/order.h"

#include "base/arena.h"

enum { NEW, OPEN, DONE };

struct walk {
    const struct hb_hlo_module *m;
    uint32_t first; /* instruction of the computation */
    unsigned char *state;
    uint32_t *stack;
    uint32_t depth;
    uint32_t *out;
    uint32_t count;
};

static void push(struct walk *w, uint32_t inst)
{
    if (w->state[inst - w->first] == NEW)
        w->stack[w->depth++] = inst;
}

/* An instruction is met twice: its operands are pushed above it, the first one on top, and then
 * it is put down itself. */
static void walk_from(struct walk *w, uint32_t inst)
{
    push(w, inst);
    while (w->depth) {
        uint32_t at = w->stack[w->depth - 1];
        const struct hb_hlo_inst *of = &w->m->insts[at];
        unsigned char *state = &w->state[at - w->first];
        if (*state != NEW) {
            w->depth--;
            if (*state == OPEN)
                w->out[w->count++] = at;
            *state = DONE;
            continue;
        }
        *state = OPEN;
        for (uint32_t i = of->pred_count; i-- > 0;)
            push(w, hb_hlo_pred(w->m, at, i));
        for (uint32_t i = of->operand_count; i-- > 0;)
            push(w, hb_hlo_operand(w->m, at, i));
    }
}

void hb_hlo_post_order(struct hb_arena *scratch, const struct hb_hlo_module *m, uint32_t comp,
                       uint32_t *out)
{
    const struct hb_hlo_comp *of = &m->comps[comp];
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct walk w = {.m = m, .first = of->first_inst};
    w.out = out;
    size_t edges = of->inst_count;
    w.state = hb_arena_alloc(scratch, of->inst_count, 1);
    bool *used = hb_arena_alloc(scratch, of->inst_count, sizeof *used);
    for (uint32_t i = of->first_inst; i < of->first_inst + of->inst_count; i++) {
        edges += m->insts[i].operand_count + (size_t)m->insts[i].pred_count;
        for (uint32_t k = 0; k < m->insts[i].operand_count; k++)
            used[hb_hlo_operand(m, i, k) - of->first_inst] = true;
    }
    w.stack = hb_arena_alloc(scratch, edges, sizeof *w.stack);
    for (uint32_t i = of->first_inst; i < of->first_inst + of->inst_count; i++)
        if (!used[i - of->first_inst])
            walk_from(&w, i);
    hb_arena_rewind(scratch, mark);
}

/* Scopes so that callees stand before callers, from the entry (index 0) down. */
static void list_scopes(const struct hb_hlo_flow *f, uint32_t scope, uint32_t *out, uint32_t *count)
{
    const struct hb_hlo_scope *at = &f->scopes[scope];
    uint32_t insts = f->m->comps[at->comp].inst_count;
    for (uint32_t node = at->first_node; node < at->first_node + insts; node++)
        for (uint32_t s = f->child_scope[node]; s != HB_NONE; s = f->scopes[s].next)
            list_scopes(f, s, out, count);
    out[(*count)++] = scope;
}

void hb_hlo_order_nodes(struct hb_hlo_flow *f)
{
    f->post_order = hb_arena_alloc(f->arena, f->node_count, sizeof *f->post_order);
    struct hb_arena_mark mark = hb_arena_mark(f->arena);
    uint32_t *insts = hb_arena_alloc(f->arena, f->m->inst_count, sizeof *insts);
    uint32_t *scopes = hb_arena_alloc(f->arena, f->scope_count, sizeof *scopes);
    uint32_t count = 0, place = 0;
    list_scopes(f, 0, scopes, &count);
    for (uint32_t i = count; i-- > 0;) { /* callers first */
        const struct hb_hlo_scope *at = &f->scopes[scopes[i]];
        const struct hb_hlo_comp *comp = &f->m->comps[at->comp];
        hb_hlo_post_order(f->arena, f->m, at->comp, insts);
        for (uint32_t k = 0; k < comp->inst_count; k++)
            f->post_order[at->first_node + (insts[k] - comp->first_inst)] = place++;
    }
    hb_arena_rewind(f->arena, mark);
}
