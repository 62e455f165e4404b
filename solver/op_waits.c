/* What waits for ops of every policy: see op_waits.h. */
#include "solver/op_waits.h"

#include "base/arena.h"
#include "base/str.h"
#include "sim/engine/live.h"
#include "sim/ir/program.h"

enum { WORD = 64 };

/* One loop's body. */
struct body {
    const struct hb_program *p;
    const uint32_t *root;
    const bool *optional;
    struct hb_arena *arena;
    uint32_t first, end;
    uint32_t words;
    bool *node;       /* by op of it: every policy has it, of the gradients */
    uint64_t *before; /* [op x words]: the ops that it follows from */
    uint32_t *writer; /* by root: the last op so far, and one; 0: none in this body */
    struct hb_op_wait *found;
    uint32_t count, cap;
};

static uint64_t *row_of(const struct body *b, uint32_t op)
{
    return b->before + (size_t)(op - b->first) * b->words;
}

static bool follows(const struct body *b, uint32_t op, uint32_t from)
{
    uint32_t at = from - b->first;
    return row_of(b, op)[at / WORD] >> at % WORD & 1;
}

static bool is_node(const struct body *b, uint32_t op)
{
    return b->node[op - b->first];
}

/* The op that wrote what is read there; HB_NONE: none of the body's nodes. */
static uint32_t find_writer(const struct body *b, uint32_t ref)
{
    uint32_t op = b->writer[b->root[ref]];
    return op > b->first && is_node(b, op - 1) ? op - 1 : HB_NONE;
}

/* Copies within the device of what such ops have made are no policy's: they turn it. */
static bool is_of_all(const struct body *b, uint32_t index)
{
    const struct hb_op *op = &b->p->ops[index];
    bool turns = op->kind == HB_OP_COPY && op->read_count > 0;
    for (uint32_t r = 0; r < op->read_count && turns; r++)
        turns = find_writer(b, b->p->refs[op->refs_at + r]) != HB_NONE;
    return op->phase == HB_PHASE_BACKWARD && (!b->optional[index] || turns);
}

static void add_before(const struct body *b, uint32_t op, uint32_t from)
{
    uint64_t *own = row_of(b, op), *more = row_of(b, from);
    uint32_t at = from - b->first;
    for (uint32_t i = 0; i < b->words; i++)
        own[i] |= more[i];
    own[at / WORD] |= (uint64_t)1 << at % WORD;
}

static void link_ops(const struct body *b)
{
    for (uint32_t i = b->first; i < b->end; i++) {
        const struct hb_op *op = &b->p->ops[i];
        const uint32_t *refs = &b->p->refs[op->refs_at];
        b->node[i - b->first] = is_of_all(b, i);
        for (uint32_t r = 0; r < op->read_count && is_node(b, i); r++) {
            uint32_t from = find_writer(b, refs[r]);
            if (from != HB_NONE)
                add_before(b, i, from);
        }
        for (uint32_t w = op->read_count; w < op->read_count + op->write_count; w++)
            b->writer[b->root[refs[w]]] = i + 1;
    }
}

static bool touches(const struct body *b, uint32_t op, uint32_t buf, uint32_t count)
{
    for (uint32_t r = 0; r < count; r++)
        if (b->root[b->p->refs[b->p->ops[op].refs_at + r]] == buf)
            return true;
    return false;
}

static bool reads(const struct body *b, uint32_t op, uint32_t buf)
{
    return is_node(b, op) && touches(b, op, buf, b->p->ops[op].read_count);
}

/* Whether the value, made by `from`, is read by an op of every policy that follows from this one.
 */
static bool waits_at(const struct body *b, const struct hb_live *v, uint32_t op)
{
    const struct hb_op *x = &b->p->ops[op];
    if (!is_node(b, op) || !follows(b, op, (uint32_t)v->start) ||
        touches(b, op, v->buf, x->read_count + x->write_count))
        return false;
    for (uint32_t i = op + 1; i <= (uint32_t)v->end; i++)
        if (follows(b, i, op) && reads(b, i, v->buf))
            return true;
    return false;
}

static void find_waits(struct body *b, const struct hb_live *v)
{
    const struct hb_buf *buf = &b->p->bufs[v->buf];
    bool counts = buf->space == HB_SPACE_HBM && buf->slices <= 1 &&
                  buf->category != HB_CAT_GRADIENTS && is_node(b, (uint32_t)v->start);
    for (uint32_t op = (uint32_t)v->start + 1; counts && op < (uint32_t)v->end; op++)
        if (waits_at(b, v, op)) {
            b->found = hb_grow(b->arena, b->found, b->count, &b->cap, sizeof *b->found);
            b->found[b->count++] = (struct hb_op_wait){op, v->buf};
        }
}

/* A loop without loops inside. */
static bool is_body(const struct hb_program *p, uint32_t loop)
{
    for (uint32_t i = 0; i < p->loop_count; i++)
        if (p->loops[i].parent == loop)
            return false;
    return true;
}

static void look_inside(struct body *b, const struct hb_loop *loop, const struct hb_live *live,
                        uint32_t live_count)
{
    b->first = loop->first_op;
    b->end = loop->end_op;
    b->words = (b->end - b->first + WORD - 1) / WORD;
    b->before =
        hb_arena_alloc(b->arena, (size_t)(b->end - b->first) * b->words + 1, sizeof *b->before);
    b->node = hb_arena_alloc(b->arena, (size_t)(b->end - b->first) + 1, sizeof *b->node);
    link_ops(b);
    for (uint32_t i = 0; i < live_count; i++)
        if (live[i].start >= (int64_t)b->first && live[i].end < (int64_t)b->end)
            find_waits(b, &live[i]);
}

static void sort_by_op(struct hb_arena *arena, const struct hb_program *p, struct body *b)
{
    uint32_t *at = hb_arena_alloc(arena, (size_t)p->op_count + 1, sizeof *at);
    struct hb_op_wait *sorted = hb_arena_alloc(arena, (size_t)b->count + 1, sizeof *sorted);
    for (uint32_t i = 0; i < b->count; i++)
        at[b->found[i].op + 1]++;
    for (uint32_t i = 0; i < p->op_count; i++)
        at[i + 1] += at[i];
    for (uint32_t i = 0; i < b->count; i++)
        sorted[at[b->found[i].op]++] = b->found[i];
    b->found = sorted;
}

uint32_t hb_op_waits_find(struct hb_arena *arena, const struct hb_program *p,
                          const struct hb_live *live, uint32_t live_count, const bool *optional,
                          struct hb_op_wait **out)
{
    struct body b = {.p = p,
                     .root = hb_program_roots(arena, p),
                     .optional = optional,
                     .arena = arena,
                     .writer = hb_arena_alloc(arena, p->buf_count, sizeof *b.writer)};
    for (uint32_t i = 0; i < p->loop_count; i++)
        if (is_body(p, i))
            look_inside(&b, &p->loops[i], live, live_count);
    sort_by_op(arena, p, &b);
    *out = b.found;
    return b.count;
}
