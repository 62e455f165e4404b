/* See reel.h. A program's ops and buffers are copied from where they stand in it; of a server that
 * is asked, what dies under each op is kept here. */
#include "sim/eager/reel.h"

#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "sim/eager/tape.h"

enum state { NEW, RECORDED, UNFIT };

/* What the tape's state and the value have to be for the ops to be the same. */
struct here {
    int kind;
    const char *where;
    enum hb_phase phase;
    uint8_t pool, first_pool;
    bool grad, has_workspace, has_workspace_back;
    int64_t in_bytes, piece_bytes;
};

struct hb_reel {
    enum state state;
    struct here here;
    uint32_t in;
    int32_t *holders; /* of all that was there before */
    uint32_t first_storage, first_value, first_node, first_op, first_ref;
    uint32_t count;              /* of ops, each of which makes a storage */
    struct hb_storage *storages; /* as they stand in the end */
    uint8_t *category;           /* of their buffers, then ... */
    struct hb_live *lives;       /* ... counted from the first, and from the first op */
    uint32_t *dead;              /* what is given back, op by op: */
    uint32_t dead_count, dead_cap;
    uint32_t *dead_end; /* up to where, by op */
    uint32_t end_cap;
    uint32_t ref_count; /* of all ops but the last */
    struct hb_value *values;
    uint32_t value_count;
    struct hb_taped *nodes;
    uint32_t node_count;
    struct hb_saves saves;
    bool saves_in;     /* a node does, of the value from outside */
    struct hb_op last; /* issued; of a server's tape none */
    uint32_t marks[HB_REEL_MARKS];
    int32_t held;           /* more than before, of the storage of the value from outside */
    struct hb_reel *around; /* recorded at the same time */
    /* Places of outer ones stand for them below first_storage in dead and refs: */
    struct hb_outer outer;
    int32_t outer_holders[HB_REEL_OUTER]; /* before; more than before: */
    int32_t outer_held[HB_REEL_OUTER];
    uint32_t outer_end[HB_REEL_OUTER]; /* the op under which it goes, but the last; HB_NONE */
    uint32_t *refs;                    /* of all ops but the last */
    uint32_t *results, *played;        /* HB_NONE: of the value from outside */
    uint32_t result_count;
};

static struct here here(const struct hb_tape *t, int kind, uint32_t in)
{
    const struct hb_value *v = &t->values[in];
    return (struct here){.kind = kind,
                         .where = t->where,
                         .phase = t->phase,
                         .pool = t->pool,
                         .first_pool = t->first_pool,
                         .grad = t->grad,
                         .has_workspace = t->has_workspace,
                         .has_workspace_back = t->has_workspace_back,
                         .in_bytes = t->storages[v->storage].bytes,
                         .piece_bytes = v->piece_bytes};
}

static bool is_same(const struct here *a, const struct here *b)
{
    return a->kind == b->kind && a->where == b->where && a->phase == b->phase &&
           a->pool == b->pool && a->first_pool == b->first_pool && a->grad == b->grad &&
           a->has_workspace == b->has_workspace && a->has_workspace_back == b->has_workspace_back &&
           a->in_bytes == b->in_bytes && a->piece_bytes == b->piece_bytes;
}

struct hb_reel *hb_reels_find(struct hb_tape *t, struct hb_reels *reels, int kind, uint32_t in)
{
    struct here now = here(t, kind, in);
    for (int i = 0; i < HB_REELS; i++) {
        struct hb_reel **r = &reels->list[i];
        if (*r && is_same(&(*r)->here, &now))
            return *r;
        if (*r)
            continue;
        *r = hb_arena_alloc(t->arena, 1, sizeof **r);
        (*r)->here = now;
        return *r;
    }
    return NULL;
}

bool hb_reel_is_new(const struct hb_reel *r)
{
    return r->state == NEW;
}

/* --- recording --- */

void hb_reel_begin(struct hb_tape *t, struct hb_reel *r, uint32_t in)
{
    r->in = in;
    r->first_storage = t->storage_count;
    r->first_value = t->value_count;
    r->first_node = t->node_count;
    r->holders = hb_arena_raw(t->arena, t->storage_count, sizeof *r->holders);
    for (uint32_t i = 0; i < t->storage_count; i++)
        r->holders[i] = t->storages[i].holders;
    r->around = t->reel;
    t->reel = r;
}

void hb_reel_begin_closed(struct hb_tape *t, struct hb_reel *r, uint32_t in,
                          const struct hb_outer *outer)
{
    hb_reel_begin(t, r, in);
    r->outer = *outer;
    for (uint32_t i = 0; i < outer->count; i++)
        r->outer_holders[i] = t->storages[outer->storages[i]].holders;
}

static void note_op(struct hb_tape *t, struct hb_reel *r, const uint32_t *dead, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        r->dead = hb_grow(t->arena, r->dead, r->dead_count, &r->dead_cap, sizeof *r->dead);
        r->dead[r->dead_count++] = dead[i];
    }
    r->dead_end = hb_grow(t->arena, r->dead_end, r->count, &r->end_cap, sizeof *r->dead_end);
    r->dead_end[r->count++] = r->dead_count;
}

static void note_first(const struct hb_tape *t, struct hb_reel *r)
{
    if (r->count)
        return;
    r->first_op = t->p->op_count;
    r->first_ref = t->p->ref_count;
}

static void note_open(struct hb_tape *t, struct hb_reel *r)
{
    if (!t->open || t->written < r->first_storage)
        return;
    note_first(t, r);
    note_op(t, r, t->dead, t->dead_count);
}

void hb_reel_note(struct hb_tape *t)
{
    for (struct hb_reel *r = t->reel; r; r = r->around)
        note_open(t, r);
}

static bool is_own(const struct hb_reel *r, uint32_t storage)
{
    return storage == HB_NONE || storage >= r->first_storage;
}

/* HB_NONE: it is none of them. */
static uint32_t place_outside(const struct hb_reel *r, uint32_t storage)
{
    for (uint32_t i = 0; i < r->outer.count; i++)
        if (r->outer.storages[i] == storage)
            return i;
    return HB_NONE;
}

static uint32_t count_dead(const struct hb_reel *r, uint32_t storage)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->dead_count; i++)
        count += r->dead[i] == storage;
    return count;
}

/* One that nobody holds any more went under an op of the stretch. */
static bool has_own_storages(const struct hb_tape *t, const struct hb_reel *r)
{
    uint32_t in = t->values[r->in].storage;
    for (uint32_t i = 0; i < r->dead_count; i++)
        if (!is_own(r, r->dead[i]) && place_outside(r, r->dead[i]) == HB_NONE)
            return false;
    for (uint32_t i = 0; i < r->outer.count; i++) {
        uint32_t one = r->outer.storages[i];
        if (one == in || count_dead(r, one) != (t->storages[one].holders == 0))
            return false;
    }
    for (uint32_t i = r->first_value; i < t->value_count && !r->outer.count; i++)
        if (!is_own(r, t->values[i].storage) && t->values[i].storage != in)
            return false;
    for (uint32_t i = 0; i < r->first_storage; i++)
        if (i != in && t->storages[i].holders != r->holders[i] && place_outside(r, i) == HB_NONE)
            return false;
    for (uint32_t i = r->first_storage; i < t->storage_count; i++)
        if (t->storages[i].stays)
            return false;
    return true;
}

static bool has_own_nodes(const struct hb_tape *t, const struct hb_reel *r)
{
    uint32_t in = t->values[r->in].storage;
    for (uint32_t i = r->first_node; i < t->node_count; i++) {
        const struct hb_taped *n = &t->nodes[i];
        for (int k = 0; k < HB_TAPED_INPUTS; k++)
            if (n->in[k] != HB_NONE && n->in[k] < r->first_value && n->in[k] != r->in)
                return false;
        for (int k = 0; k < HB_TAPED_SAVED; k++)
            if (!is_own(r, n->saved[k]) && n->saved[k] != in)
                return false;
        if (n->out != HB_NONE && n->out < r->first_value)
            return false;
    }
    return true;
}

static bool is_fit(const struct hb_tape *t, const struct hb_reel *r)
{
    struct here now = here(t, r->here.kind, r->in);
    return r->count && r->count == t->storage_count - r->first_storage && t->open &&
           t->written + 1 == t->storage_count && t->node_count >= r->first_node &&
           is_same(&r->here, &now) && has_own_storages(t, r) && has_own_nodes(t, r);
}

/* What dies under the last op, which stays open, is not over. */
static void keep_bufs(const struct hb_tape *t, struct hb_reel *r)
{
    r->category = hb_arena_raw(t->arena, r->count, sizeof *r->category);
    r->lives = hb_arena_raw(t->arena, r->count, sizeof *r->lives);
    for (uint32_t i = 0; i < r->outer.count; i++)
        r->outer_end[i] = HB_NONE;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct hb_storage *s = &r->storages[i];
        r->category[i] = (uint8_t)t->p->bufs[r->first_storage + i].category;
        r->lives[i] = (struct hb_live){i, (int32_t)i, (int32_t)i, s->pool, s->bytes};
    }
    for (uint32_t op = 0, dead = 0; op + 1 < r->count; op++)
        for (; dead < r->dead_end[op]; dead++) {
            uint32_t one = r->dead[dead];
            if (is_own(r, one))
                r->lives[one - r->first_storage].end = (int32_t)op;
            else
                r->outer_end[place_outside(r, one)] = op;
        }
}

static void keep_ops(const struct hb_tape *t, struct hb_reel *r)
{
    const struct hb_storage *s = t->storages + r->first_storage;
    r->storages = hb_arena_raw(t->arena, r->count, sizeof *r->storages);
    for (uint32_t i = 0; i < r->count; i++) {
        r->storages[i] = s[i];
        r->storages[i].served = HB_NONE;
    }
    if (!t->server)
        keep_bufs(t, r);
    r->ref_count = t->p->ref_count - r->first_ref;
    r->last = t->op;
}

void hb_saves_list(struct hb_arena *arena, struct hb_saves *out, const struct hb_taped *nodes,
                   uint32_t count)
{
    out->nodes = nodes;
    out->node_count = count;
    out->count = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < HB_TAPED_SAVED; k++) {
            if (nodes[i].saved[k] == HB_NONE)
                continue;
            out->list = hb_grow(arena, out->list, out->count, &out->cap, sizeof *out->list);
            out->list[out->count++] = (struct hb_saved){i, k, nodes[i].saved[k], nodes[i].under};
        }
}

static void keep_nodes(const struct hb_tape *t, struct hb_reel *r)
{
    uint32_t in = t->values[r->in].storage;
    r->node_count = t->node_count - r->first_node;
    r->nodes = hb_arena_raw(t->arena, r->node_count, sizeof *r->nodes);
    for (uint32_t i = 0; i < r->node_count; i++) {
        r->nodes[i] = t->nodes[r->first_node + i];
        for (int k = 0; k < HB_TAPED_SAVED; k++)
            r->saves_in = r->saves_in || r->nodes[i].saved[k] == in;
    }
    hb_saves_list(t->arena, &r->saves, r->nodes, r->node_count);
}

static void keep_refs(const struct hb_tape *t, struct hb_reel *r)
{
    for (uint32_t i = 0; i < r->dead_count; i++)
        if (!is_own(r, r->dead[i]))
            r->dead[i] = place_outside(r, r->dead[i]);
    if (t->server)
        return;
    r->refs = hb_arena_raw(t->arena, r->ref_count, sizeof *r->refs);
    for (uint32_t i = 0; i < r->ref_count; i++) {
        uint32_t ref = t->p->refs[r->first_ref + i];
        r->refs[i] = is_own(r, ref) ? ref : place_outside(r, ref);
    }
}

/* False: it is not the same each time. */
static bool end_stretch(struct hb_tape *t, struct hb_reel *r)
{
    note_open(t, r);
    t->reel = r->around;
    r->state = is_fit(t, r) ? RECORDED : UNFIT;
    if (r->state == UNFIT)
        return false;
    uint32_t in = t->values[r->in].storage;
    r->held = t->storages[in].holders - r->holders[in];
    for (uint32_t i = 0; i < r->outer.count; i++)
        r->outer_held[i] = t->storages[r->outer.storages[i]].holders - r->outer_holders[i];
    keep_ops(t, r);
    keep_refs(t, r);
    return true;
}

void hb_reel_end(struct hb_tape *t, struct hb_reel *r, const uint32_t marks[HB_REEL_MARKS])
{
    if (!end_stretch(t, r))
        return;
    r->value_count = t->value_count - r->first_value;
    r->values = hb_arena_raw(t->arena, r->value_count, sizeof *r->values);
    for (uint32_t i = 0; i < r->value_count; i++)
        r->values[i] = t->values[r->first_value + i];
    keep_nodes(t, r);
    memcpy(r->marks, marks, sizeof r->marks);
}

void hb_reel_end_closed(struct hb_tape *t, struct hb_reel *r, const uint32_t *results,
                        uint32_t count)
{
    uint32_t in = t->values[r->in].storage;
    bool fit = end_stretch(t, r) && t->node_count == r->first_node && results;
    if (!fit) {
        r->state = UNFIT;
        return;
    }
    r->result_count = count;
    r->results = hb_arena_raw(t->arena, count, sizeof *r->results);
    r->played = hb_arena_raw(t->arena, count, sizeof *r->played);
    for (uint32_t i = 0; i < count; i++) {
        r->results[i] = is_own(r, results[i]) ? results[i] : place_outside(r, results[i]);
        fit = fit && (r->results[i] != HB_NONE || results[i] == in);
    }
    r->state = fit ? RECORDED : UNFIT;
}

/* --- playing --- */

/* For so many more than there are. */
static void *make_room(struct hb_arena *arena, void *items, uint32_t count, uint32_t *cap,
                       size_t item_bytes)
{
    while (count > *cap)
        items = hb_grow(arena, items, *cap, cap, item_bytes);
    return items;
}

static void add_storages(struct hb_tape *t, const struct hb_reel *r)
{
    t->storages = make_room(t->arena, t->storages, t->storage_count + r->count, &t->storage_cap,
                            sizeof *t->storages);
    memcpy(t->storages + t->storage_count, r->storages, r->count * sizeof *r->storages);
    t->storage_count += r->count;
}

/* Of dead and refs. */
static uint32_t move_ref(const struct hb_reel *r, uint32_t ref, uint32_t moved,
                         const struct hb_outer *outer)
{
    return ref >= r->first_storage ? ref + moved : outer->storages[ref];
}

/* A storage that dies under its op is taken all the same. */
static void serve_ops(struct hb_tape *t, const struct hb_reel *r, uint32_t moved,
                      const struct hb_outer *outer)
{
    const struct hb_server *s = t->server;
    uint32_t dead = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        struct hb_storage *own = &t->storages[r->first_storage + moved + i];
        if (own->bytes > 0)
            own->served = s->take(s->context, own->bytes, own->pool);
        for (; i + 1 < r->count && dead < r->dead_end[i]; dead++) {
            const struct hb_storage *gone = &t->storages[move_ref(r, r->dead[dead], moved, outer)];
            if (gone->served != HB_NONE)
                s->give(s->context, gone);
        }
    }
}

static void copy_lives(struct hb_program *p, const struct hb_reel *r)
{
    p->lives =
        make_room(p->arena, p->lives, p->buf_count + r->count, &p->life_cap, sizeof *p->lives);
    struct hb_live *to = p->lives + p->buf_count;
    int32_t first = (int32_t)p->op_count;
    for (uint32_t i = 0; i < r->count; i++) {
        to[i] = r->lives[i];
        to[i].buf += p->buf_count;
        to[i].start += first;
        to[i].end += first;
    }
}

static void copy_bufs(struct hb_program *p, const struct hb_reel *r)
{
    p->bufs = make_room(p->arena, p->bufs, p->buf_count + r->count, &p->buf_cap, sizeof *p->bufs);
    struct hb_buf *to = p->bufs + p->buf_count;
    memcpy(to, p->bufs + r->first_storage, r->count * sizeof *to);
    for (uint32_t i = 0; i < r->count; i++)
        to[i].category = (enum hb_category)r->category[i];
    copy_lives(p, r);
    p->buf_count += r->count;
}

/* All but the last. */
static void copy_ops(struct hb_program *p, const struct hb_reel *r, uint32_t moved,
                     const struct hb_outer *outer)
{
    uint32_t ops = r->count - 1, refs = p->ref_count - r->first_ref;
    p->ops = make_room(p->arena, p->ops, p->op_count + ops, &p->op_cap, sizeof *p->ops);
    p->refs =
        make_room(p->arena, p->refs, p->ref_count + r->ref_count, &p->ref_cap, sizeof *p->refs);
    struct hb_op *to = p->ops + p->op_count;
    memcpy(to, p->ops + r->first_op, ops * sizeof *to);
    for (uint32_t i = 0; i < ops; i++)
        to[i].refs_at += refs;
    for (uint32_t i = 0; i < r->ref_count; i++)
        p->refs[p->ref_count + i] = move_ref(r, r->refs[i], moved, outer);
    p->ref_count += r->ref_count;
    p->op_count += ops;
}

/* Before its ops are in the program. */
static void end_outer_lives(struct hb_program *p, const struct hb_reel *r,
                            const struct hb_outer *outer)
{
    for (uint32_t i = 0; i < outer->count; i++)
        if (r->outer_end[i] != HB_NONE)
            p->lives[outer->storages[i]].end = (int32_t)(p->op_count + r->outer_end[i]);
}

/* Those around it have its ops as their own. */
static void note_played(struct hb_tape *t, const struct hb_reel *r, uint32_t moved,
                        const struct hb_outer *outer)
{
    for (struct hb_reel *a = t->reel; a; a = a->around) {
        uint32_t dead = 0;
        note_first(t, a);
        for (uint32_t i = 0; i + 1 < r->count; i++) {
            note_op(t, a, NULL, 0);
            for (; dead < r->dead_end[i]; dead++) {
                a->dead = hb_grow(t->arena, a->dead, a->dead_count, &a->dead_cap, sizeof *a->dead);
                a->dead[a->dead_count++] = move_ref(r, r->dead[dead], moved, outer);
            }
            a->dead_end[a->count - 1] = a->dead_count;
        }
    }
}

/* The last op stays open, as it was. */
static void open_last(struct hb_tape *t, const struct hb_reel *r, uint32_t moved,
                      const struct hb_outer *outer)
{
    uint32_t first = r->count > 1 ? r->dead_end[r->count - 2] : 0;
    t->open = true;
    t->written = t->storage_count - 1;
    for (uint32_t i = first; i < r->dead_count; i++) {
        t->dead = hb_grow(t->arena, t->dead, t->dead_count, &t->dead_cap, sizeof *t->dead);
        t->dead[t->dead_count++] = move_ref(r, r->dead[i], moved, outer);
    }
}

static uint32_t move_storage(const struct hb_reel *r, uint32_t storage, uint32_t moved, uint32_t in)
{
    if (storage == HB_NONE)
        return HB_NONE;
    return storage >= r->first_storage ? storage + moved : in;
}

static uint32_t move_value(const struct hb_reel *r, uint32_t value, uint32_t moved, uint32_t in)
{
    if (value == HB_NONE)
        return HB_NONE;
    return value >= r->first_value ? value + moved : in;
}

static void copy_values(struct hb_tape *t, const struct hb_reel *r, uint32_t moved, uint32_t in)
{
    t->values = make_room(t->arena, t->values, t->value_count + r->value_count, &t->value_cap,
                          sizeof *t->values);
    struct hb_value *to = t->values + t->value_count;
    for (uint32_t i = 0; i < r->value_count; i++) {
        to[i] = r->values[i];
        to[i].storage = move_storage(r, to[i].storage, moved, in);
    }
    t->value_count += r->value_count;
}

/* Where the parts that refer to something stand is known: most of a node's places are empty. */
static void copy_nodes(struct hb_tape *t, const struct hb_reel *r, uint32_t moved, uint32_t in,
                       uint32_t values)
{
    uint32_t storage = t->values[in].storage;
    t->nodes = make_room(t->arena, t->nodes, t->node_count + r->node_count, &t->node_cap,
                         sizeof *t->nodes);
    struct hb_taped *to = t->nodes + t->node_count;
    memcpy(to, r->nodes, r->node_count * sizeof *to);
    for (uint32_t i = 0; i < r->node_count; i++) {
        to[i].out = move_value(r, to[i].out, values, in);
        for (int k = 0; k < HB_TAPED_INPUTS && to[i].in[k] != HB_NONE; k++)
            to[i].in[k] = move_value(r, to[i].in[k], values, in);
        for (int k = 0; k < HB_TAPED_SAVED && to[i].saved[k] != HB_NONE; k++)
            to[i].saved[k] = move_storage(r, to[i].saved[k], moved, storage);
    }
    t->node_count += r->node_count;
}

/* What nodes hold is saved (hb_tape_save). */
static void hold_in(struct hb_tape *t, const struct hb_reel *r, uint32_t storage)
{
    t->storages[storage].holders += r->held;
    if (r->saves_in && !t->server && t->p->bufs[storage].category == HB_CAT_WORKING)
        hb_tape_count_as(t, storage, HB_CAT_SAVED);
}

static bool can_play(const struct hb_tape *t, const struct hb_reel *r)
{
    return r->state == RECORDED && (t->open || !t->dead_count);
}

/* Returns by how much storages are moved. */
static uint32_t play_ops(struct hb_tape *t, const struct hb_reel *r, uint32_t in,
                         const struct hb_outer *outer)
{
    hb_tape_end(t);
    uint32_t moved = t->storage_count - r->first_storage;
    add_storages(t, r);
    note_played(t, r, moved, outer);
    if (t->server) {
        serve_ops(t, r, moved, outer);
    } else {
        copy_bufs(t->p, r);
        end_outer_lives(t->p, r, outer);
        copy_ops(t->p, r, moved, outer);
        t->op = r->last;
    }
    open_last(t, r, moved, outer);
    hold_in(t, r, t->values[in].storage);
    for (uint32_t i = 0; i < outer->count; i++)
        if (place_outside(r, r->outer.storages[i]) == i)
            t->storages[outer->storages[i]].holders += r->outer_held[i];
    return moved;
}

static const struct hb_outer none = {.count = 0};

bool hb_reel_play(struct hb_tape *t, const struct hb_reel *r, uint32_t in,
                  uint32_t marks[HB_REEL_MARKS])
{
    if (!can_play(t, r))
        return false;
    uint32_t moved = play_ops(t, r, in, &none);
    uint32_t values = t->value_count - r->first_value;
    copy_values(t, r, moved, t->values[in].storage);
    copy_nodes(t, r, moved, in, values);
    for (int i = 0; i < HB_REEL_MARKS; i++)
        if (r->marks[i] != HB_NONE && r->marks[i] >= r->first_value)
            marks[i] = r->marks[i] + values;
    return true;
}

const struct hb_saves *hb_reel_play_saves(struct hb_tape *t, struct hb_reel *r, uint32_t in)
{
    if (!can_play(t, r))
        return NULL;
    uint32_t moved = play_ops(t, r, in, &none), storage = t->values[in].storage;
    for (uint32_t i = 0; i < r->saves.count; i++) {
        struct hb_saved *one = &r->saves.list[i];
        one->storage = move_storage(r, r->nodes[one->node].saved[one->place], moved, storage);
    }
    return &r->saves;
}

/* The same one is twice in both, or in none; none is that of the value. */
static bool is_same_outer(const struct hb_tape *t, const struct hb_reel *r, uint32_t in,
                          const struct hb_outer *outer)
{
    if (outer->count != r->outer.count)
        return false;
    for (uint32_t i = 0; i < outer->count; i++) {
        const struct hb_storage *now = &t->storages[outer->storages[i]];
        const struct hb_storage *then = &t->storages[r->outer.storages[i]];
        uint32_t first = 0;
        while (outer->storages[first] != outer->storages[i])
            first++;
        if (outer->storages[i] == t->values[in].storage || now->bytes != then->bytes ||
            now->pool != then->pool || now->holders != r->outer_holders[i] ||
            place_outside(r, r->outer.storages[i]) != first)
            return false;
    }
    return true;
}

const uint32_t *hb_reel_play_closed(struct hb_tape *t, struct hb_reel *r, uint32_t in,
                                    const struct hb_outer *outer, uint32_t *out_count)
{
    if (!can_play(t, r) || !is_same_outer(t, r, in, outer))
        return NULL;
    uint32_t moved = play_ops(t, r, in, outer), storage = t->values[in].storage;
    for (uint32_t i = 0; i < r->result_count; i++)
        r->played[i] =
            r->results[i] == HB_NONE ? storage : move_ref(r, r->results[i], moved, outer);
    *out_count = r->result_count;
    return r->played;
}
