/* Computations that are named before they stand, or written in braces for their names. Once all are
 * read, such calls are filled in, and all computations are put into an order in which each stands
 * before those that call it; instructions move with them. */
#include <string.h>

#include "base/arena.h"
#include "sim/hlo/reader.h"

struct order {
    const struct hb_hlo_module *m;
    uint32_t *list;   /* computations, those that are called first */
    uint32_t *place;  /* by computation: in list; HB_NONE: not yet */
    bool *open;       /* by computation: on the way from its caller */
    struct step *way; /* the computations that are open */
    uint32_t count;
};

struct step {
    uint32_t comp, inst, call; /* the next call to look at */
};

/* The next computation that an open one calls; HB_NONE: no more. */
static uint32_t next_call(const struct hb_hlo_module *m, struct step *at)
{
    const struct hb_hlo_comp *comp = &m->comps[at->comp];
    for (; at->inst < comp->first_inst + comp->inst_count; at->inst++, at->call = 0)
        if (at->call < m->insts[at->inst].call_count)
            return hb_hlo_called(m, at->inst, at->call++);
    return HB_NONE;
}

/* All that comp calls, then comp; false: one calls itself in a circle, out_circle. */
static bool visit(struct order *o, uint32_t comp, uint32_t *out_circle)
{
    uint32_t depth = 0;
    o->way[depth++] = (struct step){comp, o->m->comps[comp].first_inst, 0};
    o->open[comp] = true;
    while (depth) {
        struct step *at = &o->way[depth - 1];
        uint32_t called = next_call(o->m, at);
        if (called == HB_NONE) {
            o->open[at->comp] = false;
            o->place[at->comp] = o->count;
            o->list[o->count++] = at->comp;
            depth--;
        } else if (o->open[called]) {
            *out_circle = called;
            return false;
        } else if (o->place[called] == HB_NONE) {
            o->open[called] = true;
            o->way[depth++] = (struct step){called, o->m->comps[called].first_inst, 0};
        }
    }
    return true;
}

static bool fill_in(struct hb_hlo_reader *r)
{
    for (uint32_t i = 0; i < r->pending_count; i++) {
        struct hb_hlo_pending *p = &r->pending[i];
        if (!p->body) {
            uint32_t comp = *hb_hlo_find_comp(r, p->text);
            if (!comp)
                return hb_error(r->diag, hb_hlo_place(r, p->text.at),
                                "no computation '%.*s' in this module", hb_hlo_shown(p->text),
                                p->text.at);
            p->comp = comp - 1;
        }
        r->m->args[p->arg] = p->comp;
    }
    return true;
}

/* Moves computations and their instructions into the order found. */
static void rebuild(struct hb_hlo_module *m, const struct order *o)
{
    struct hb_hlo_comp *comps = hb_arena_alloc(m->arena, m->comp_count, sizeof *comps);
    struct hb_hlo_inst *insts = hb_arena_alloc(m->arena, m->inst_count, sizeof *insts);
    uint32_t *moved = hb_arena_alloc(m->arena, m->inst_count, sizeof *moved), count = 0;
    for (uint32_t c = 0; c < m->comp_count; c++) {
        comps[c] = m->comps[o->list[c]];
        comps[c].first_inst = count;
        for (uint32_t i = 0; i < comps[c].inst_count; i++) {
            uint32_t from = m->comps[o->list[c]].first_inst + i;
            insts[count] = m->insts[from];
            insts[count].comp = c;
            moved[from] = count++;
        }
        comps[c].root = moved[comps[c].root];
    }
    for (uint32_t i = 0; i < m->inst_count; i++) {
        uint32_t *args = m->args + insts[i].args_at;
        uint32_t own = insts[i].operand_count + insts[i].pred_count;
        for (uint32_t a = 0; a < own; a++)
            args[a] = moved[args[a]];
        for (uint32_t a = own; a < own + insts[i].call_count; a++)
            args[a] = o->place[args[a]];
    }
    for (uint32_t i = 0; i < m->param_count; i++)
        m->params[i] = moved[m->params[i]];
    m->entry = o->place[m->entry];
    m->comps = comps;
    m->insts = insts;
    m->comp_cap = m->comp_count;
    m->inst_cap = m->inst_count;
}

bool hb_hlo_link(struct hb_hlo_reader *r)
{
    struct hb_hlo_module *m = r->m;
    struct order o = {.m = m,
                      .list = hb_arena_alloc(m->arena, m->comp_count, sizeof *o.list),
                      .place = hb_arena_alloc(m->arena, m->comp_count, sizeof *o.place),
                      .open = hb_arena_alloc(m->arena, m->comp_count, sizeof *o.open),
                      .way = hb_arena_alloc(m->arena, m->comp_count, sizeof *o.way)};
    uint32_t circle = HB_NONE;
    if (!fill_in(r))
        return false;
    memset(o.place, 0xff, m->comp_count * sizeof *o.place);
    for (uint32_t c = 0; c < m->comp_count; c++)
        if (o.place[c] == HB_NONE && !visit(&o, c, &circle))
            return hb_error(r->diag, hb_hlo_place(r, m->comps[circle].name.at),
                            "computation '%.*s' calls itself, over others or at once",
                            hb_hlo_shown(m->comps[circle].name), m->comps[circle].name.at);
    rebuild(m, &o);
    return true;
}
