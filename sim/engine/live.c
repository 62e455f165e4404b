/* Each op touches the roots of what it reads and writes; a root's life is the hull of its
 * touches, widened to whole loops: seen from the innermost loop that holds all its touches, a
 * touch deeper inside stands for the child loop around it, from its first op to its last, since
 * every trip of that child finds the buffer or leaves it behind.
 *
 *   op:      0    1    2 [ 3    4    5 ] 6    7
 *   touches  w              r                          life 0..5: the next trip reads it again
 *   touches                      w         r           life 3..6: the first trip wrote it already
 *
 * An asynchronous op holds what it touches until its DONE. */
#include "sim/engine/live.h"

#include "base/arena.h"
#include "sim/engine/check.h"

struct search {
    const struct hb_program *p;
    uint32_t *root;     /* of each buffer */
    uint32_t *common;   /* innermost loop around all touches of a root */
    bool *touched;      /* a root */
    bool *returned;     /* a root: the caller reads it, outside of every loop */
    struct hb_live *by; /* by root */
};

typedef void visit_fn(struct search *s, uint32_t root, uint32_t op, uint32_t loop);

static uint32_t loop_depth(const struct hb_program *p, uint32_t loop)
{
    uint32_t depth = 0;
    for (; loop != HB_NONE; loop = p->loops[loop].parent)
        depth++;
    return depth;
}

/* The innermost loop around both. */
static uint32_t join_loops(const struct hb_program *p, uint32_t a, uint32_t b)
{
    uint32_t depth_a = loop_depth(p, a), depth_b = loop_depth(p, b);
    for (; depth_a > depth_b; depth_a--)
        a = p->loops[a].parent;
    for (; depth_b > depth_a; depth_b--)
        b = p->loops[b].parent;
    while (a != b) {
        a = p->loops[a].parent;
        b = p->loops[b].parent;
    }
    return a;
}

/* To its first and its last touch. */
static void extend_life(struct search *s, uint32_t root, uint32_t op, uint32_t loop)
{
    struct hb_live *live = &s->by[root];
    (void)loop;
    live->start = (int32_t)op < live->start ? (int32_t)op : live->start;
    live->end = (int32_t)op > live->end ? (int32_t)op : live->end;
}

static void join_touch(struct search *s, uint32_t root, uint32_t op, uint32_t loop)
{
    extend_life(s, root, op, loop);
    if (!s->touched[root]) {
        s->touched[root] = true;
        s->common[root] = loop;
    } else if (s->common[root] != loop && s->common[root] != HB_NONE) {
        s->common[root] = join_loops(s->p, s->common[root], loop);
    }
}

/* The loop around the op that lies directly in the common one; HB_NONE: the op itself does. */
static uint32_t child_around(const struct hb_program *p, uint32_t op, uint32_t common)
{
    uint32_t loop = p->ops[op].loop;
    if (loop == common)
        return HB_NONE;
    while (p->loops[loop].parent != common)
        loop = p->loops[loop].parent;
    return loop;
}

/* From the first and the last touch to the hull of all, widened: loops lie one behind the other, so
 * that what is widened furthest is what is outermost already. */
static void widen_life(const struct hb_program *p, uint32_t common, struct hb_live *live)
{
    if (live->start >= 0 && live->start < (int32_t)p->op_count) {
        uint32_t loop = child_around(p, (uint32_t)live->start, common);
        live->start = loop == HB_NONE ? live->start : (int32_t)p->loops[loop].first_op;
    }
    if (live->end >= 0 && live->end < (int32_t)p->op_count) {
        uint32_t loop = child_around(p, (uint32_t)live->end, common);
        live->end = loop == HB_NONE ? live->end : (int32_t)p->loops[loop].end_op - 1;
    }
}

/* Calls visit for each touch: of an op itself, and at a DONE of the op that it ends. */
static void visit_touches(struct search *s, visit_fn *visit)
{
    const struct hb_program *p = s->p;
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        for (uint32_t r = 0; r < op->read_count + op->write_count; r++)
            visit(s, s->root[p->refs[op->refs_at + r]], i, op->loop);
        if (op->kind != HB_OP_DONE)
            continue;
        const struct hb_op *begun = &p->ops[op->start];
        for (uint32_t r = 0; r < begun->read_count + begun->write_count; r++)
            visit(s, s->root[p->refs[begun->refs_at + r]], i, op->loop);
    }
}

/* Roots, the largest of their aliases, and what is alive at the start or the end. */
static void find_roots(struct search *s)
{
    const struct hb_program *p = s->p;
    for (uint32_t i = 0; i < p->buf_count; i++) {
        const struct hb_buf *buf = &p->bufs[i];
        uint32_t root = buf->alias_of == HB_NONE ? i : s->root[buf->alias_of];
        s->root[i] = root;
        if (root == i)
            s->by[i] = (struct hb_live){.buf = i, .start = INT32_MAX, .end = -1};
        struct hb_live *live = &s->by[root];
        live->bytes = buf->bytes > live->bytes ? buf->bytes : live->bytes;
        if (buf->argument)
            live->start = -1;
        if (buf->output)
            live->end = (int32_t)p->op_count;
        if (buf->argument || buf->output) {
            s->touched[root] = s->touched[root] || buf->argument;
            s->common[root] = HB_NONE;
        }
        s->returned[root] = s->returned[root] || buf->output;
    }
}

uint32_t hb_live_find(struct hb_arena *arena, const struct hb_program *p, struct hb_live **out)
{
#ifndef NDEBUG
    hb_program_check(p);
#endif
    struct hb_live *found = hb_arena_raw(arena, p->buf_count, sizeof *found);
    struct hb_arena_mark mark = hb_arena_mark(arena);
    struct search s = {.p = p,
                       .root = hb_arena_raw(arena, p->buf_count, sizeof *s.root),
                       .common = hb_arena_raw(arena, p->buf_count, sizeof *s.common),
                       .touched = hb_arena_alloc(arena, p->buf_count, sizeof *s.touched),
                       .returned = hb_arena_alloc(arena, p->buf_count, sizeof *s.returned),
                       .by = hb_arena_raw(arena, p->buf_count, sizeof *s.by)};
    find_roots(&s);
    visit_touches(&s, join_touch);
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (s.root[i] == i && s.touched[i]) {
            widen_life(p, s.returned[i] ? HB_NONE : s.common[i], &s.by[i]);
            found[count++] = s.by[i];
        }
    hb_arena_rewind(arena, mark);
    *out = found;
    return count;
}

struct hb_heap_span *hb_live_spans(struct hb_arena *arena, const struct hb_program *p)
{
    struct hb_heap_span *spans = hb_arena_alloc(arena, p->buf_count, sizeof *spans);
    for (uint32_t i = 0; i < p->buf_count; i++)
        spans[i] = (struct hb_heap_span){INT32_MAX, -1};
    for (uint32_t op = 0; op < p->op_count; op++) {
        uint32_t at = p->ops[op].refs_at, count = p->ops[op].read_count + p->ops[op].write_count;
        for (uint32_t r = at; r < at + count; r++) {
            struct hb_heap_span *span = &spans[p->refs[r]];
            span->start = (int32_t)op < span->start ? (int32_t)op : span->start;
            span->end = (int32_t)op;
        }
    }
    return spans;
}

uint32_t hb_live_whole(struct hb_arena *arena, const struct hb_live *live, uint32_t count,
                       struct hb_live_part **out)
{
    *out = hb_arena_alloc(arena, count, sizeof **out);
    for (uint32_t i = 0; i < count; i++)
        (*out)[i] = (struct hb_live_part){i, {live[i].start, live[i].end}};
    return count;
}

uint32_t hb_live_apart(struct hb_arena *arena, const struct hb_program *p,
                       const struct hb_live *live, uint32_t count, struct hb_live_part **out)
{
    struct hb_live_part *parts = hb_arena_alloc(arena, p->buf_count, sizeof *parts);
    struct hb_arena_mark mark = hb_arena_mark(arena);
    const struct hb_heap_span *spans = hb_live_spans(arena, p);
    const uint32_t *roots = hb_program_roots(arena, p);
    uint32_t *live_of = hb_arena_alloc(arena, p->buf_count, sizeof *live_of), n = 0;
    for (uint32_t i = 0; i < count; i++)
        live_of[live[i].buf] = i;
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (spans[i].end >= spans[i].start)
            parts[n++] = (struct hb_live_part){live_of[roots[i]], spans[i]};
    hb_arena_rewind(arena, mark);
    *out = parts;
    return n;
}

struct hb_heap_span *hb_live_gaps(struct hb_arena *arena, const struct hb_program *p)
{
    struct hb_heap_span *gaps = hb_arena_raw(arena, p->buf_count, sizeof *gaps);
    struct hb_arena_mark mark = hb_arena_mark(arena);
    struct search s = {.p = p,
                       .root = hb_arena_raw(arena, p->buf_count, sizeof *s.root),
                       .by = hb_arena_raw(arena, p->buf_count, sizeof *s.by)};
    for (uint32_t i = 0; i < p->buf_count; i++) { /* each by itself */
        s.root[i] = i;
        s.by[i] = (struct hb_live){.buf = i, .start = INT32_MAX, .end = -1};
    }
    visit_touches(&s, extend_life);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        widen_life(p, HB_NONE, &s.by[i]); /* outside of every loop */
        gaps[i] = (struct hb_heap_span){s.by[i].end, -1};
    }
    const uint32_t *roots = hb_program_roots(arena, p);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        struct hb_heap_span *gap = &gaps[roots[i]];
        if (p->bufs[i].alias_of != HB_NONE && (gap->end < 0 || s.by[i].start < gap->end))
            gap->end = s.by[i].start;
    }
    hb_arena_rewind(arena, mark);
    return gaps;
}

/* What loops carry, by root. */
struct carry {
    const struct hb_program *p;
    const uint32_t *roots;      /* by buffer */
    uint32_t *loop;             /* the first that does; HB_NONE */
    struct hb_heap_span *empty; /* after start and before end; end 0: never */
    int32_t *start;
    int32_t *last;   /* the position at which it was touched last; -1 */
    int32_t *shared; /* the position at which an alias takes it over; -1 */
};

/* The outermost loop around `loop`, itself included, that begins when the place is filled. */
static uint32_t carrying_loop(const struct carry *c, uint32_t root, uint32_t loop)
{
    uint32_t found = HB_NONE;
    for (; loop != HB_NONE; loop = c->p->loops[loop].parent)
        if (c->start[root] < (int32_t)c->p->loops[loop].first_op)
            found = loop;
    return found;
}

/* The last position up to which a touch holds in this loop: an inner loop's does to its end. -1: it
 * is not in the loop. */
static int32_t held_until(const struct hb_program *p, uint32_t loop, int32_t touch)
{
    uint32_t own = touch < 0 ? HB_NONE : p->ops[touch].loop;
    if (own == loop)
        return touch;
    while (own != HB_NONE && p->loops[own].parent != loop)
        own = p->loops[own].parent;
    return own == HB_NONE ? -1 : (int32_t)p->loops[own].end_op - 1;
}

static void visit_write(struct carry *c, uint32_t buf, int32_t op, uint32_t loop)
{
    uint32_t root = c->roots[buf], by = carrying_loop(c, root, loop);
    if (buf != root && c->shared[root] < 0)
        c->shared[root] = op;
    if (by == HB_NONE)
        return;
    if (c->loop[root] == HB_NONE)
        c->loop[root] = by;
    int32_t from = held_until(c->p, loop, c->last[root]);
    if (c->p->bufs[buf].renews && from >= 0 && from + 1 < op)
        c->empty[root] = (struct hb_heap_span){from, op};
}

static void touch_refs(struct carry *c, const struct hb_op *op, uint32_t from, uint32_t end,
                       int32_t at)
{
    for (uint32_t r = from; r < end; r++)
        c->last[c->roots[c->p->refs[op->refs_at + r]]] = at;
}

static void visit_op(struct carry *c, uint32_t i)
{
    const struct hb_op *op = &c->p->ops[i];
    uint32_t count = op->read_count + op->write_count;
    touch_refs(c, op, 0, op->read_count, (int32_t)i);
    for (uint32_t r = op->read_count; r < count; r++)
        visit_write(c, c->p->refs[op->refs_at + r], (int32_t)i, op->loop);
    touch_refs(c, op, op->read_count, count, (int32_t)i);
    if (op->start != HB_NONE) {
        const struct hb_op *begun = &c->p->ops[op->start];
        touch_refs(c, begun, 0, begun->read_count + begun->write_count, (int32_t)i);
    }
}

static void find_carried(struct hb_arena *arena, struct carry *c, const struct hb_live *live,
                         uint32_t count)
{
    uint32_t bufs = c->p->buf_count;
    c->roots = hb_program_roots(arena, c->p);
    c->loop = hb_arena_alloc(arena, bufs, sizeof *c->loop);
    c->empty = hb_arena_alloc(arena, bufs, sizeof *c->empty);
    c->start = hb_arena_alloc(arena, bufs, sizeof *c->start);
    c->last = hb_arena_alloc(arena, bufs, sizeof *c->last);
    c->shared = hb_arena_alloc(arena, bufs, sizeof *c->shared);
    for (uint32_t i = 0; i < bufs; i++) {
        c->loop[i] = HB_NONE;
        c->last[i] = c->shared[i] = -1;
    }
    for (uint32_t i = 0; i < count; i++)
        c->start[live[i].buf] = live[i].start;
    for (uint32_t i = 0; i < c->p->op_count; i++)
        visit_op(c, i);
}

/* Where what was placed first ends and another begins: at a loop or an alias; -1: nowhere. */
static int32_t second_start(const struct carry *c, uint32_t root)
{
    uint32_t loop = c->loop[root];
    int32_t shared = c->shared[root];
    int32_t first = loop == HB_NONE ? -1 : (int32_t)c->p->loops[loop].first_op;
    return first < 0 || (shared >= 0 && shared < first) ? shared : first;
}

uint32_t hb_live_carried(struct hb_arena *arena, const struct hb_program *p,
                         const struct hb_live *live, uint32_t count, struct hb_live_part **out)
{
    struct hb_live_part *parts = hb_arena_alloc(arena, 3 * (size_t)count, sizeof *parts);
    struct hb_arena_mark mark = hb_arena_mark(arena);
    struct carry c = {.p = p};
    find_carried(arena, &c, live, count);
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct hb_heap_span empty = c.empty[live[i].buf], rest = {live[i].start, live[i].end};
        int32_t second = second_start(&c, live[i].buf);
        if (second > rest.start) {
            parts[n++] = (struct hb_live_part){i, {rest.start, second - 1}};
            rest.start = second;
        }
        if (empty.end) {
            parts[n++] = (struct hb_live_part){i, {rest.start, empty.start}};
            rest.start = empty.end;
        }
        parts[n++] = (struct hb_live_part){i, rest};
    }
    hb_arena_rewind(arena, mark);
    *out = parts;
    return n;
}
