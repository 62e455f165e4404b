/* One walk each way: behind every op come those that start once it has run, and from the end,
 * before every op, those that are awaited by it or by what stands behind. */
#include "sim/graph/order.h"

#include "base/arena.h"

struct mover {
    const struct hb_graph *g;
    uint32_t first; /* op of the computation */
    bool *placed;   /* by op of it */
    uint32_t *out;
    uint32_t count;
};

static void place(struct mover *m, uint32_t op)
{
    m->placed[op - m->first] = true;
    m->out[m->count++] = op;
}

static bool all_placed(const struct mover *m, const uint32_t *ops, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!m->placed[ops[i] - m->first])
            return false;
    return true;
}

static bool can_start(const struct mover *m, uint32_t op)
{
    const struct hb_graph *g = m->g;
    return g->ops[op].soon && !m->placed[op - m->first] &&
           all_placed(m, hb_graph_refs(g, op, HB_GRAPH_OPERAND),
                      hb_graph_ref_count(g, op, HB_GRAPH_OPERAND)) &&
           all_placed(m, hb_graph_refs(g, op, HB_GRAPH_AFTER),
                      hb_graph_ref_count(g, op, HB_GRAPH_AFTER));
}

static bool is_awaited(const struct mover *m, uint32_t op)
{
    const struct hb_graph *g = m->g;
    return g->ops[op].late && !m->placed[op - m->first] &&
           all_placed(m, g->users + g->first_user[op], hb_graph_user_count(g, op)) &&
           all_placed(m, g->after + g->first_after[op],
                      g->first_after[op + 1] - g->first_after[op]);
}

static void start_soon(struct mover *m, const uint32_t *row, uint32_t count)
{
    const struct hb_graph *g = m->g;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t op = row[i];
        if (m->placed[op - m->first])
            continue;
        place(m, op);
        for (uint32_t u = g->first_user[op]; u < g->first_user[op + 1]; u++)
            if (can_start(m, g->users[u]))
                place(m, g->users[u]);
        for (uint32_t u = g->first_after[op]; u < g->first_after[op + 1]; u++)
            if (can_start(m, g->after[u]))
                place(m, g->after[u]);
    }
}

static void place_awaited(struct mover *m, uint32_t op, enum hb_graph_ref kind)
{
    const uint32_t *to = hb_graph_refs(m->g, op, kind);
    for (uint32_t k = 0; k < hb_graph_ref_count(m->g, op, kind); k++)
        if (is_awaited(m, to[k]))
            place(m, to[k]);
}

/* Fills out from behind. */
static void await_late(struct mover *m, const uint32_t *row, uint32_t count)
{
    for (uint32_t i = count; i-- > 0;) {
        if (m->placed[row[i] - m->first])
            continue;
        place(m, row[i]);
        place_awaited(m, row[i], HB_GRAPH_OPERAND);
        place_awaited(m, row[i], HB_GRAPH_AFTER);
    }
}

void hb_graph_order_async(struct hb_arena *scratch, const struct hb_graph *g, uint32_t comp,
                          uint32_t *row)
{
    const struct hb_graph_comp *of = &g->comps[comp];
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct mover m = {.g = g, .first = of->first_op};
    uint32_t *early = hb_arena_raw(scratch, of->op_count, sizeof *early);
    m.placed = hb_arena_alloc(scratch, of->op_count, sizeof *m.placed);
    m.out = early;
    start_soon(&m, row, of->op_count);
    uint32_t *late = hb_arena_raw(scratch, of->op_count, sizeof *late);
    m.placed = hb_arena_alloc(scratch, of->op_count, sizeof *m.placed);
    m.out = late;
    m.count = 0;
    await_late(&m, early, of->op_count);
    for (uint32_t i = 0; i < of->op_count; i++)
        row[i] = late[of->op_count - 1 - i];
    hb_arena_rewind(scratch, mark);
}
