/* Owners, loops and slots: see outline.h. */
#include "solver/outline.h"

#include <string.h>

#include "base/arena.h"
#include "sim/engine/live.h"

struct find {
    struct hb_arena *arena;
    struct hb_outline *o;
    const struct hb_program *p;
    uint32_t *grows; /* by root: the group with whose layers it grows; HB_NONE */
    const char *why;
};

static bool fail(struct find *f, const char *why)
{
    f->why = why;
    return false;
}

/* --- the pair --- */

static bool same_refs(const struct hb_program *a, const struct hb_program *b)
{
    return a->ref_count == b->ref_count &&
           (a->ref_count == 0 || memcmp(a->refs, b->refs, a->ref_count * sizeof *a->refs) == 0);
}

static bool same_ops(const struct hb_program *a, const struct hb_program *b)
{
    for (uint32_t i = 0; i < a->op_count; i++) {
        const struct hb_op *x = &a->ops[i], *y = &b->ops[i];
        if (x->kind != y->kind || x->stream != y->stream || x->refs_at != y->refs_at ||
            x->read_count != y->read_count || x->loop != y->loop)
            return false;
    }
    return true;
}

static bool same_bufs(const struct hb_program *a, const struct hb_program *b)
{
    for (uint32_t i = 0; i < a->buf_count; i++) {
        const struct hb_buf *x = &a->bufs[i], *y = &b->bufs[i];
        if (x->alias_of != y->alias_of || x->rank != y->rank || x->dtype != y->dtype ||
            x->tiling != y->tiling || x->space != y->space || x->argument != y->argument ||
            x->output != y->output)
            return false;
    }
    return true;
}

static bool same_form(const struct hb_program *a, const struct hb_program *b)
{
    return a->op_count == b->op_count && a->buf_count == b->buf_count &&
           a->loop_count == b->loop_count && same_refs(a, b) && same_ops(a, b) && same_bufs(a, b);
}

/* What a number follows that is `a` in one program and `b` in the other. False: nothing known. */
static bool find_follow(const struct hb_outline_pair *pair, int64_t a, int64_t b,
                        enum hb_follow *out_follow, uint32_t *out_group)
{
    *out_group = HB_NONE;
    *out_follow = HB_FOLLOW_NOTHING;
    if (a == b)
        return true;
    *out_follow = HB_FOLLOW_OUTER;
    if (pair->outer_a && a == pair->outer_a && b == pair->outer_b)
        return true;
    *out_follow = HB_FOLLOW_INNER;
    for (uint32_t g = 0; g < pair->group_count && a == pair->inner_a; g++)
        if (b == pair->inner_b[g]) {
            *out_group = g;
            return true;
        }
    return false;
}

static bool has_shape_bytes(const struct hb_buf *b)
{
    struct hb_shape s = {.rank = b->rank, .dtype = b->dtype};
    for (int i = 0; i < b->rank; i++)
        s.dim[i] = b->dim[i];
    return hb_shape_bytes(&s, b->tiling) == b->bytes;
}

static bool follow_buf(struct find *f, uint32_t i)
{
    const struct hb_buf *a = &f->o->pair.a->bufs[i], *b = &f->o->pair.b->bufs[i];
    uint32_t *grows = &f->grows[f->o->root_of[i]];
    bool moves = false;
    for (int d = 0; d < a->rank; d++) {
        uint32_t group;
        if (!find_follow(&f->o->pair, a->dim[d], b->dim[d], &f->o->dim_follow[i][d], &group))
            return fail(f, "a dimension that follows no group");
        moves = moves || f->o->dim_follow[i][d] != HB_FOLLOW_NOTHING;
        if (group == HB_NONE)
            continue;
        if (*grows != HB_NONE && *grows != group)
            return fail(f, "a buffer that grows with two groups");
        *grows = group;
    }
    if (!moves)
        return a->bytes == b->bytes || fail(f, "bytes that do not follow the shape");
    return (has_shape_bytes(a) && has_shape_bytes(b)) ||
           fail(f, "bytes that do not follow the shape");
}

static bool follow_bufs(struct find *f)
{
    struct hb_outline *o = f->o;
    for (uint32_t i = 0; i < f->p->buf_count; i++) {
        o->root_of[i] = f->p->bufs[i].alias_of == HB_NONE ? i : o->root_of[f->p->bufs[i].alias_of];
        f->grows[i] = HB_NONE;
    }
    for (uint32_t i = 0; i < f->p->buf_count; i++)
        if (!follow_buf(f, i))
            return false;
    for (uint32_t i = 0; i < f->p->loop_count; i++) {
        uint32_t group;
        if (!find_follow(&o->pair, o->pair.a->loops[i].trips, o->pair.b->loops[i].trips,
                         &o->loop_follow[i], &group))
            return fail(f, "trips that follow no group");
    }
    return true;
}

/* --- owners --- */

#define NOBODY (UINT32_MAX - 2) /* of a loop or op, while none of its buffers grows */

static uint32_t join_owner(uint32_t a, uint32_t b)
{
    if (a == NOBODY || a == b)
        return b;
    return b == NOBODY ? a : HB_NONE;
}

/* The group whose growing buffers the op touches; NOBODY; HB_NONE for several. */
static uint32_t touched_group(const struct find *f, uint32_t op)
{
    const struct hb_op *x = &f->p->ops[op];
    uint32_t owner = NOBODY;
    for (uint32_t r = 0; r < x->read_count + x->write_count; r++) {
        uint32_t group = f->grows[f->o->root_of[f->p->refs[x->refs_at + r]]];
        if (group != HB_NONE)
            owner = join_owner(owner, group);
    }
    return owner;
}

static void own_loops(struct find *f)
{
    for (uint32_t i = 0; i < f->p->loop_count; i++) {
        const struct hb_loop *loop = &f->p->loops[i];
        uint32_t owner = NOBODY, parent = loop->parent;
        for (uint32_t op = loop->first_op; op < loop->end_op; op++)
            owner = join_owner(owner, touched_group(f, op));
        if (parent != HB_NONE && f->o->loop_owner[parent] != HB_NONE)
            owner = f->o->loop_owner[parent];
        f->o->loop_owner[i] = owner == NOBODY ? HB_ENDS : owner;
    }
}

static bool moves(const struct find *f, uint32_t buf)
{
    for (int d = 0; d < f->p->bufs[buf].rank; d++)
        if (f->o->dim_follow[buf][d] != HB_FOLLOW_NOTHING)
            return true;
    return false;
}

/* What grows with the outer trips alone is the group's in whose loop it is used. */
static void own_outer_bufs(struct find *f)
{
    for (uint32_t i = 0; i < f->p->op_count; i++) {
        const struct hb_op *x = &f->p->ops[i];
        uint32_t owner = x->loop == HB_NONE ? HB_NONE : f->o->loop_owner[x->loop];
        for (uint32_t r = 0; owner < HB_ENDS && r < x->read_count + x->write_count; r++) {
            uint32_t buf = f->p->refs[x->refs_at + r], *grows = &f->grows[f->o->root_of[buf]];
            if (*grows == HB_NONE && moves(f, buf))
                *grows = owner;
        }
    }
}

/* An op outside of the groups' loops that writes nothing (the global norm of the gradients, told a
 * number of leaves at a time) is nobody's turn. */
static void own_ops(struct find *f)
{
    for (uint32_t i = 0; i < f->p->op_count; i++) {
        uint32_t loop = f->p->ops[i].loop;
        uint32_t owner = loop == HB_NONE ? HB_NONE : f->o->loop_owner[loop];
        if (owner == HB_NONE && f->p->ops[i].write_count > 0)
            owner = touched_group(f, i);
        f->o->op_owner[i] = owner < f->o->pair.group_count ? owner : HB_ENDS;
    }
}

/* --- slots --- */

static bool *find_edges(const struct find *f)
{
    bool *edge = hb_arena_alloc(f->arena, (size_t)f->p->op_count + 1, sizeof *edge);
    for (uint32_t i = 0; i < f->p->loop_count; i++)
        if (f->o->loop_owner[i] == HB_NONE)
            edge[f->p->loops[i].first_op] = edge[f->p->loops[i].end_op] = true;
    return edge;
}

struct turn {
    uint32_t last; /* group that had its turn last */
    bool directed; /* two groups had theirs */
    bool rising;
    bool *had; /* by group */
};

/* Whether group can follow in the slot that is open. */
static bool continues(struct turn *t, uint32_t group)
{
    if (group == t->last)
        return true;
    bool rising = group > t->last;
    if (t->had[group] || (t->directed && rising != t->rising))
        return false;
    t->directed = true;
    t->rising = rising;
    return true;
}

/* A mark takes no time: where it writes nothing and reads nothing of another's, it may count to
 * this group's turn. */
static bool may_belong(const struct find *f, uint32_t op, uint32_t group)
{
    const struct hb_op *x = &f->p->ops[op];
    bool loose = x->loop == HB_NONE || f->o->loop_owner[x->loop] == HB_NONE;
    return f->o->op_owner[op] == HB_ENDS && x->kind == HB_OP_MARK && loose && x->write_count == 0 &&
           (x->read_count == 0 || touched_group(f, op) == group);
}

/* Marks that read what is the last group's are its turn's (what is read beside a turned stack,
 * before the last trip's gradients), and so are those between its turn and another group's (what
 * ends with its loop): else each group's turn were a slot of its own. */
static void own_marks(struct find *f, const bool *edge, const struct turn *t, uint32_t first)
{
    struct turn next = *t;
    uint32_t end = first, ops = f->p->op_count;
    while (end < ops && !edge[end] && may_belong(f, end, t->last))
        end++;
    uint32_t after = end < ops && !edge[end] ? f->o->op_owner[end] : HB_ENDS;
    bool between = after != HB_ENDS && after != t->last && continues(&next, after);
    for (uint32_t i = first; i < end; i++)
        if (between || f->p->ops[i].read_count > 0)
            f->o->op_owner[i] = t->last;
}

static void find_slots(struct find *f)
{
    struct hb_outline *o = f->o;
    struct hb_arena_mark mark;
    o->slots = hb_arena_alloc(f->arena, (size_t)f->p->op_count + 1, sizeof *o->slots);
    mark = hb_arena_mark(f->arena);
    bool *edge = find_edges(f);
    struct turn t = {.had = hb_arena_alloc(f->arena, o->pair.group_count, sizeof *t.had)};
    struct hb_slot *slot = NULL;
    for (uint32_t i = 0; i < f->p->op_count; i++) {
        if (slot && slot->turns && o->op_owner[i] == HB_ENDS)
            own_marks(f, edge, &t, i);
        uint32_t owner = o->op_owner[i];
        bool turns = owner != HB_ENDS;
        if (!slot || edge[i] || turns != slot->turns || (turns && !continues(&t, owner))) {
            slot = &o->slots[o->slot_count++];
            *slot = (struct hb_slot){.first_op = i, .turns = turns, .rising = true};
            memset(t.had, 0, o->pair.group_count * sizeof *t.had);
            t.directed = false;
            t.last = owner;
        }
        slot->end_op = i + 1;
        if (!turns)
            continue;
        slot->rising = !t.directed || t.rising;
        t.had[owner] = true;
        t.last = owner;
    }
    hb_arena_rewind(f->arena, mark);
}

/* Where two slots meet at one group (1 2 3 3 2 1), its two turns look like one. They are told apart
 * by those of the others: the second begins with the first op of a kind that no other group's first
 * turn has, and has the kind that the second turn of the group that comes next begins with.
 *
 *   rising 1 2 3 | falling (3) 2 1         ops of 3:  h h h h | t e e e [...]
 *                                          ops of 2:  h h h       e e e [...]
 *
 * Where it has no op of that kind, it has no second turn. */
static bool in_own_loop(const struct find *f, uint32_t op)
{
    uint32_t loop = f->p->ops[op].loop;
    return loop != HB_NONE && f->o->loop_owner[loop] < HB_ENDS;
}

/* Which op a loop begins with is a matter of policy; that it is a loop is not. */
static bool same_kind(const struct find *f, uint32_t x, uint32_t y)
{
    const struct hb_op *a = &f->p->ops[x], *b = &f->p->ops[y];
    if (in_own_loop(f, x) || in_own_loop(f, y))
        return in_own_loop(f, x) && in_own_loop(f, y);
    return a->kind == b->kind && a->stream == b->stream; /* to the host, or from it */
}

static bool has_kind(const struct find *f, uint32_t first, uint32_t end, uint32_t like)
{
    while (first < end && !same_kind(f, first, like))
        first++;
    return first < end;
}

static bool part_turns(struct find *f, struct hb_slot *before, struct hb_slot *after)
{
    uint32_t like = after->first_op, end = before->end_op, own = end;
    while (own > before->first_op && f->o->op_owner[own - 1] == f->o->op_owner[end - 1])
        own--;
    uint32_t cut = own;
    while (cut < end && (own > before->first_op ? has_kind(f, before->first_op, own, cut)
                                                : !same_kind(f, cut, like)))
        cut++;
    bool apart = !has_kind(f, before->first_op, own, like) && has_kind(f, cut, end, like);
    bool one = !has_kind(f, own, end, like);
    if (!apart && !one && !f->o->pair.sums_alone)
        return fail(f, "two turns of a group that cannot be told apart");
    cut = one ? end : apart ? cut : own;
    before->end_op = after->first_op = cut;
    after->rising = !before->rising;
    return true;
}

/* The owner before or behind HB_ENDS is none, and a lone group has no other beside it. */
static bool part_slots(struct find *f)
{
    for (uint32_t q = 0; q + 1 < f->o->slot_count; q++) {
        struct hb_slot *a = &f->o->slots[q], *b = &f->o->slots[q + 1];
        uint32_t last = f->o->op_owner[a->end_op - 1], first = f->o->op_owner[b->first_op];
        uint32_t end = f->o->op_owner[b->end_op - 1];
        bool onward = a->rising ? end > first : end < first;
        bool turned = first == (a->rising ? last - 1 : last + 1) && !onward;
        if (turned && !part_turns(f, a, b))
            return false;
    }
    return true;
}

/* Each group's ops in each slot; where it has none, the place where its turn would be. */
static void find_turns(struct find *f)
{
    struct hb_outline *o = f->o;
    uint32_t groups = o->pair.group_count;
    o->turn_first = hb_arena_alloc(f->arena, (size_t)o->slot_count * groups, sizeof(uint32_t));
    o->turn_end = hb_arena_alloc(f->arena, (size_t)o->slot_count * groups, sizeof(uint32_t));
    for (uint32_t q = 0; q < o->slot_count; q++) {
        const struct hb_slot *slot = &o->slots[q];
        uint32_t *first = o->turn_first + (size_t)q * groups;
        uint32_t *end = o->turn_end + (size_t)q * groups;
        uint32_t at = slot->first_op;
        for (uint32_t k = 0; slot->turns && k < groups; k++) {
            uint32_t g = slot->rising ? k : groups - 1 - k;
            first[g] = at;
            while (at < slot->end_op && o->op_owner[at] == g)
                at++;
            end[g] = at;
        }
    }
}

/* --- lives --- */

/* A root that does not grow is its group's if only that group's ops touch it. */
static void own_roots(struct find *f, uint32_t *owner)
{
    for (uint32_t i = 0; i < f->p->buf_count; i++)
        owner[i] = NOBODY;
    for (uint32_t i = 0; i < f->p->op_count; i++) {
        const struct hb_op *x = &f->p->ops[i];
        for (uint32_t r = 0; r < x->read_count + x->write_count; r++) {
            uint32_t root = f->o->root_of[f->p->refs[x->refs_at + r]];
            owner[root] = join_owner(owner[root], f->o->op_owner[i]);
        }
    }
    for (uint32_t i = 0; i < f->p->buf_count; i++) {
        if (f->grows[i] != HB_NONE)
            owner[i] = f->grows[i];
        else if (owner[i] == NOBODY || owner[i] == HB_NONE)
            owner[i] = HB_ENDS;
    }
}

static void find_lives(struct find *f)
{
    struct hb_outline *o = f->o;
    uint32_t *owner = hb_arena_alloc(f->arena, f->p->buf_count, sizeof *owner);
    struct hb_live *live;
    own_roots(f, owner);
    o->root_count = hb_live_find(f->arena, f->p, &live);
    o->roots = hb_arena_alloc(f->arena, o->root_count, sizeof *o->roots);
    for (uint32_t i = 0; i < o->root_count; i++)
        o->roots[i] =
            (struct hb_outline_root){live[i].buf, owner[live[i].buf], live[i].start, live[i].end};
}

bool hb_outline_find(struct hb_arena *arena, const struct hb_outline_pair *pair,
                     struct hb_outline *out, const char **out_why)
{
    *out = (struct hb_outline){.pair = *pair};
    struct find f = {.arena = arena, .o = out, .p = pair->a, .why = ""};
    const struct hb_program *p = pair->a;
    out->op_owner = hb_arena_alloc(arena, p->op_count, sizeof *out->op_owner);
    out->loop_owner = hb_arena_alloc(arena, p->loop_count, sizeof *out->loop_owner);
    out->loop_follow = hb_arena_alloc(arena, p->loop_count, sizeof *out->loop_follow);
    out->dim_follow = hb_arena_alloc(arena, p->buf_count, sizeof *out->dim_follow);
    out->root_of = hb_arena_alloc(arena, p->buf_count, sizeof *out->root_of);
    f.grows = hb_arena_alloc(arena, p->buf_count, sizeof *f.grows);
    bool ok = same_form(pair->a, pair->b) ? follow_bufs(&f) : fail(&f, "programs of two forms");
    if (ok) {
        own_loops(&f);
        own_outer_bufs(&f);
        own_ops(&f);
        find_slots(&f);
        ok = part_slots(&f);
    }
    if (ok) {
        find_turns(&f);
        find_lives(&f);
    }
    *out_why = f.why;
    return ok;
}
