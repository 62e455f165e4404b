/* Dependences of a step's ends on its layers: see last_loop.h. */
#include "solver/last_loop.h"

#include "base/arena.h"

struct walk {
    const struct hb_program *p;
    const struct hb_outline *o;
    uint32_t *outermost; /* by loop */
    bool *is_layers;     /* by outermost loop: layers are in it */
    bool *is_wanted;     /* by outermost loop: one of those depends on it */
    uint32_t *writer;    /* by reference that is read: the op that wrote it last; HB_NONE */
    struct hb_last_loop *out;
};

static uint32_t loop_of(const struct walk *w, uint32_t op)
{
    uint32_t loop = w->p->ops[op].loop;
    return loop == HB_NONE ? HB_NONE : w->outermost[loop];
}

static void find_loops(struct walk *w)
{
    for (uint32_t i = 0; i < w->p->loop_count; i++) {
        uint32_t parent = w->p->loops[i].parent;
        w->outermost[i] = parent == HB_NONE ? i : w->outermost[parent];
        if (w->o->loop_owner[i] < HB_ENDS)
            w->is_layers[w->outermost[i]] = true;
    }
}

static void find_writers(struct hb_arena *arena, struct walk *w)
{
    const struct hb_program *p = w->p;
    uint32_t *last = hb_arena_raw(arena, p->buf_count, sizeof *last);
    w->writer = hb_arena_raw(arena, p->ref_count, sizeof *w->writer);
    for (uint32_t i = 0; i < p->buf_count; i++)
        last[i] = HB_NONE;
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        for (uint32_t r = op->refs_at; r < op->refs_at + op->read_count; r++)
            w->writer[r] = last[w->o->root_of[p->refs[r]]];
        for (uint32_t r = 0; r < op->write_count; r++)
            last[w->o->root_of[hb_op_writes(p, op)[r]]] = i;
    }
}

static void want(struct walk *w, uint32_t op)
{
    if (op == HB_NONE)
        return;
    w->out->before[op] = true;
    if (loop_of(w, op) != HB_NONE)
        w->is_wanted[loop_of(w, op)] = true;
}

/* From the last op to the first: readers come before what they read. */
static void find_before(struct walk *w)
{
    for (uint32_t i = w->p->op_count; i-- > 0;) {
        const struct hb_op *op = &w->p->ops[i];
        uint32_t loop = loop_of(w, i);
        bool *before = &w->out->before[i];
        *before = *before || (loop != HB_NONE && (w->is_layers[loop] || w->is_wanted[loop]));
        if (!*before)
            continue;
        want(w, op->kind == HB_OP_DONE ? op->start : HB_NONE);
        for (uint32_t r = op->refs_at; r < op->refs_at + op->read_count; r++)
            want(w, w->writer[r]);
    }
}

/* Whether what an op makes is there only when the layers' loops have ended. */
static bool is_late(const struct walk *w, uint32_t op)
{
    if (op == HB_NONE)
        return false;
    uint32_t loop = loop_of(w, op);
    if (loop == HB_NONE || !w->is_layers[loop])
        return w->out->behind[op];
    return w->o->loop_owner[loop] == HB_NONE || w->p->ops[op].phase == HB_PHASE_BACKWARD;
}

static void find_behind(struct walk *w)
{
    for (uint32_t i = 0; i < w->p->op_count; i++) {
        const struct hb_op *op = &w->p->ops[i];
        if (w->out->before[i])
            continue;
        bool late = is_late(w, op->kind == HB_OP_DONE ? op->start : HB_NONE);
        for (uint32_t r = op->refs_at; r < op->refs_at + op->read_count && !late; r++)
            late = is_late(w, w->writer[r]);
        w->out->behind[i] = late;
    }
}

void hb_last_loop_find(struct hb_arena *arena, const struct hb_outline *o, struct hb_last_loop *out)
{
    const struct hb_program *p = o->pair.a;
    out->before = hb_arena_alloc(arena, p->op_count, sizeof *out->before);
    out->behind = hb_arena_alloc(arena, p->op_count, sizeof *out->behind);
    struct hb_arena_mark mark = hb_arena_mark(arena);
    struct walk w = {.p = p,
                     .o = o,
                     .out = out,
                     .outermost = hb_arena_alloc(arena, p->loop_count, sizeof *w.outermost),
                     .is_layers = hb_arena_alloc(arena, p->loop_count, sizeof *w.is_layers),
                     .is_wanted = hb_arena_alloc(arena, p->loop_count, sizeof *w.is_wanted)};
    find_loops(&w);
    find_writers(arena, &w);
    find_before(&w);
    find_behind(&w);
    hb_arena_rewind(arena, mark);
}
