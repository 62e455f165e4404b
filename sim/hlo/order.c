/* A computation as a graph for its post-order; scopes by recursion, whose depth the flow bounds. */
#include "sim/hlo/order.h"

#include "base/arena.h"
#include "sim/graph/order.h"

void hb_hlo_post_order(struct hb_arena *scratch, const struct hb_hlo_module *m, uint32_t comp,
                       uint32_t *out)
{
    const struct hb_hlo_comp *of = &m->comps[comp];
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct hb_graph g;
    hb_graph_init(&g, scratch);
    hb_graph_add_comp(&g);
    for (uint32_t i = of->first_inst; i < of->first_inst + of->inst_count; i++) {
        hb_graph_add_op(&g);
        for (uint32_t k = 0; k < m->insts[i].operand_count; k++)
            hb_graph_add_ref(&g, HB_GRAPH_OPERAND, hb_hlo_operand(m, i, k) - of->first_inst);
        for (uint32_t k = 0; k < m->insts[i].pred_count; k++)
            hb_graph_add_ref(&g, HB_GRAPH_AFTER, hb_hlo_pred(m, i, k) - of->first_inst);
    }
    hb_graph_close(&g);
    hb_graph_order_post(scratch, &g, 0, out);
    for (uint32_t i = 0; i < of->inst_count; i++)
        out[i] += of->first_inst;
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
