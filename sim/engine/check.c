/* Invariants of a program: see check.h. */
#include "sim/engine/check.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"

static void check_buf(const struct hb_program *p, uint32_t i)
{
    const struct hb_buf *b = &p->bufs[i];
    if (!b->name)
        HB_BUG("buffer %u has no name", i);
    if (!hb_size_ok(b->bytes) || b->plain_bytes < 0 || b->plain_bytes > b->bytes)
        HB_BUG("buffer '%s': %lld bytes, %lld plain", b->name, (long long)b->bytes,
               (long long)b->plain_bytes);
    if (b->alias_of != HB_NONE && b->alias_of >= i)
        HB_BUG("buffer '%s' lies in a later one", b->name);
}

static void check_op(const struct hb_program *p, uint32_t i, const uint32_t *roots, bool *born)
{
    const struct hb_op *op = &p->ops[i];
    const uint32_t *ref = p->refs + op->refs_at;
    if (op->kind == HB_OP_DONE ? op->start >= i : op->start != HB_NONE)
        HB_BUG("op '%s' waits for a later one, or is none that waits", op->name);
    for (uint32_t r = 0; r < op->read_count; r++)
        if (!born[roots[ref[r]]])
            HB_BUG("op '%s' reads '%s' before it is written", op->name, p->bufs[ref[r]].name);
    for (uint32_t w = 0; w < op->write_count; w++)
        born[roots[ref[op->read_count + w]]] = true;
}

static void check_loop(const struct hb_program *p, uint32_t i)
{
    const struct hb_loop *l = &p->loops[i];
    if (l->trips < 1 || l->first_op > l->end_op || l->end_op > p->op_count)
        HB_BUG("loop '%s': ops %u..%u, %lld trips", l->name, l->first_op, l->end_op,
               (long long)l->trips);
    if (l->parent != HB_NONE && (l->parent >= i || p->loops[l->parent].first_op > l->first_op ||
                                 p->loops[l->parent].end_op < l->end_op))
        HB_BUG("loop '%s' does not nest", l->name);
}

void hb_program_check(const struct hb_program *p)
{
    struct hb_arena_mark mark = hb_arena_mark(p->arena);
    bool *born = hb_arena_alloc(p->arena, p->buf_count + 1, sizeof *born);
    for (uint32_t i = 0; i < p->buf_count; i++)
        check_buf(p, i);
    const uint32_t *roots = hb_program_roots(p->arena, p);
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->bufs[i].argument)
            born[roots[i]] = true;
    for (uint32_t i = 0; i < p->op_count; i++)
        check_op(p, i, roots, born);
    for (uint32_t i = 0; i < p->loop_count; i++)
        check_loop(p, i);
    hb_arena_rewind(p->arena, mark);
}
