/* Storages, holders and the tape of autograd: see tape.h. Saved storages of a node are given up
 * once it has run, its gradient by itself (torch/csrc/autograd/engine.cpp: a task's inputs die
 * with it; release_variables after the call). */
#include "sim/eager/tape.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/eager/reel.h"

void hb_sums_take(struct hb_sums *s, int64_t bytes, int64_t counted_bytes)
{
    s->alive_bytes = hb_add_sat(s->alive_bytes, bytes);
    s->most_bytes = hb_larger(s->most_bytes, s->alive_bytes);
    s->asked_bytes = hb_add_sat(s->asked_bytes, counted_bytes);
    s->asked_count++;
}

void hb_tape_init(struct hb_tape *t, struct hb_arena *arena, struct hb_program *p)
{
    *t = (struct hb_tape){.arena = arena, .p = p, .where = "", .width = 2};
}

void hb_tape_reserve(struct hb_tape *t, uint32_t storages)
{
    struct hb_program *p = t->p;
    t->storages = hb_arena_raw(t->arena, storages, sizeof *t->storages);
    t->storage_cap = storages;
    if (t->server)
        return;
    hb_program_reserve(p, storages);
    p->lives = hb_arena_raw(p->arena, storages, sizeof *p->lives);
    p->life_cap = storages;
}

int64_t hb_tape_size(struct hb_tape *t, int64_t a, int64_t b, int64_t c)
{
    int64_t size = hb_mul_sat(hb_mul_sat(a, b), c);
    if (hb_size_ok(size))
        return size;
    t->too_large = true;
    return 0;
}

/* In whatever order; an allocator comes to the same blocks. */
static void give_dead(struct hb_tape *t)
{
    if (t->reel)
        hb_reel_note(t);
    for (uint32_t i = 0; i < t->dead_count; i++)
        if (t->storages[t->dead[i]].served != HB_NONE)
            t->server->give(t->server->context, &t->storages[t->dead[i]]);
    t->dead_count = 0;
    t->open = false;
}

/* A storage that died under the op that made it needs no reader. */
static void put_op(struct hb_tape *t)
{
    if (t->reel)
        hb_reel_note(t);
    t->op.read_count = 0;
    for (uint32_t i = 0; i < t->dead_count; i++) {
        t->p->lives[t->dead[i]].end = (int32_t)t->p->op_count;
        if (t->dead[i] != t->written)
            t->dead[t->op.read_count++] = t->dead[i];
    }
    t->op.write_count = t->written != HB_NONE;
    hb_program_put_op(t->p, &t->op, t->dead, &t->written);
    t->dead_count = 0;
    t->open = false;
}

void hb_tape_end(struct hb_tape *t)
{
    if (t->server && (t->open || t->dead_count))
        give_dead(t);
    else if (t->open)
        put_op(t);
}

void hb_tape_end_program(struct hb_tape *t)
{
    hb_tape_end(t);
    for (uint32_t i = 0; i < t->storage_count; i++)
        if (t->storages[i].stays)
            t->p->lives[i].end = (int32_t)t->p->op_count;
}

void hb_tape_release(struct hb_tape *t)
{
    hb_tape_end(t);
    if (t->server && t->server->release)
        t->server->release(t->server->context);
}

/* The same names come again, pass by pass: the last of each are kept, by where they stand. */
enum { NAMES = 512 };
struct hb_taped_name {
    const char *where, *name;
    const char *text;
};

static const char *full_name(struct hb_tape *t, const char *name)
{
    if (!*t->where)
        return name;
    if (!t->names)
        t->names = hb_arena_alloc(t->arena, NAMES, sizeof *t->names);
    uintptr_t place = ((uintptr_t)t->where >> 4) * 31 + (uintptr_t)name;
    struct hb_taped_name *kept = &t->names[place % NAMES];
    if (kept->where == t->where && kept->name == name)
        return kept->text;
    size_t head = strlen(t->where), tail = strlen(name);
    char *text = hb_arena_raw(t->p->arena, head + tail + 1, 1);
    memcpy(text, t->where, head);
    memcpy(text + head, name, tail + 1);
    *kept = (struct hb_taped_name){t->where, name, text};
    return text;
}

/* Until it is given back it is as if it were by its own op. */
static void add_buf(struct hb_tape *t, const char *name, int64_t bytes, enum hb_category category)
{
    struct hb_program *p = t->p;
    uint8_t pool = (uint8_t)(t->pool + t->first_pool);
    int32_t now = (int32_t)p->op_count;
    p->lives = hb_grow(p->arena, p->lives, p->buf_count, &p->life_cap, sizeof *p->lives);
    p->lives[p->buf_count] = (struct hb_live){p->buf_count, now, now, pool, bytes};
    hb_program_add_buf(p, (struct hb_buf){.name = full_name(t, name),
                                          .why = "",
                                          .bytes = bytes,
                                          .plain_bytes = bytes,
                                          .dtype = HB_DT_BF16,
                                          .alias_of = HB_NONE,
                                          .category = category});
}

static uint32_t add_storage(struct hb_tape *t, const char *name, int64_t bytes,
                            enum hb_category category)
{
    uint8_t pool = (uint8_t)(t->pool + t->first_pool);
    struct hb_storage s = {.bytes = bytes, .holders = 1, .served = HB_NONE, .pool = pool};
    if (!t->server)
        add_buf(t, name, bytes, category);
    else if (bytes > 0)
        s.served = t->server->take(t->server->context, bytes, pool);
    t->storages =
        hb_grow(t->arena, t->storages, t->storage_count, &t->storage_cap, sizeof *t->storages);
    t->storages[t->storage_count] = s;
    return t->storage_count++;
}

uint32_t hb_tape_make(struct hb_tape *t, struct hb_made made)
{
    hb_tape_end(t);
    uint32_t storage = add_storage(t, made.name, made.bytes, made.category);
    t->open = true;
    t->written = storage;
    if (t->server)
        return storage;
    t->op = (struct hb_op){.name = made.op,
                           .kind = made.flops > 0 ? HB_OP_MATMUL : HB_OP_ELEMENTWISE,
                           .phase = t->phase,
                           .start = HB_NONE,
                           .dtype = HB_DT_BF16,
                           .flops = made.flops,
                           .batch = 1,
                           .moved_bytes = 2 * (double)made.bytes};
    return storage;
}

uint32_t hb_tape_argument(struct hb_tape *t, const char *name, int64_t bytes,
                          enum hb_category category)
{
    uint32_t storage = add_storage(t, name, bytes, category);
    if (!t->server) {
        t->p->bufs[storage].argument = true;
        t->p->lives[storage].start = -1;
    }
    hb_tape_keep(t, storage);
    return storage;
}

void hb_tape_count_as(struct hb_tape *t, uint32_t storage, enum hb_category category)
{
    if (!t->server)
        t->p->bufs[storage].category = category;
}

void hb_tape_keep(struct hb_tape *t, uint32_t storage)
{
    t->storages[storage].stays = true;
    if (!t->server)
        t->p->bufs[storage].output = true;
}

void hb_tape_check_end(const struct hb_tape *t)
{
    for (uint32_t i = 0; i < t->storage_count; i++)
        if (t->storages[i].holders > 0 && !t->storages[i].stays)
            HB_BUG("storage %u of %u is held in the end", i, t->storage_count);
}

/* One that its last holder let go under the op that is open. */
static void revive(struct hb_tape *t, uint32_t storage)
{
    uint32_t i = 0;
    while (i < t->dead_count && t->dead[i] != storage)
        i++;
    if (i == t->dead_count)
        HB_BUG("storage %u is held after it was given back", storage);
    t->dead[i] = t->dead[--t->dead_count];
}

void hb_tape_hold(struct hb_tape *t, uint32_t storage)
{
    if (storage == HB_NONE)
        return;
    if (!t->storages[storage].holders++)
        revive(t, storage);
}

void hb_tape_drop(struct hb_tape *t, uint32_t storage)
{
    if (storage == HB_NONE)
        return;
    struct hb_storage *s = &t->storages[storage];
    if (s->holders <= 0)
        HB_BUG("storage %u is dropped once too often", storage);
    if (--s->holders > 0)
        return;
    t->dead = hb_grow(t->arena, t->dead, t->dead_count, &t->dead_cap, sizeof *t->dead);
    t->dead[t->dead_count++] = storage;
}

int64_t hb_tape_bytes(const struct hb_tape *t, uint32_t storage)
{
    return t->storages[storage].bytes;
}

int64_t hb_tape_held_bytes(const struct hb_tape *t)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < t->storage_count; i++)
        if (t->storages[i].holders > 0 && t->storages[i].pool == 0)
            sum = hb_add_sat(sum, hb_tape_bytes(t, i));
    return sum;
}

uint32_t hb_tape_value(struct hb_tape *t, uint32_t storage)
{
    t->values = hb_grow(t->arena, t->values, t->value_count, &t->value_cap, sizeof *t->values);
    t->values[t->value_count] = (struct hb_value){storage, HB_NONE, 0};
    return t->value_count++;
}

uint32_t hb_tape_new(struct hb_tape *t, struct hb_made made)
{
    return hb_tape_value(t, hb_tape_make(t, made));
}

void hb_tape_drop_value(struct hb_tape *t, uint32_t value)
{
    hb_tape_drop(t, t->values[value].storage);
}

struct hb_taped *hb_tape_node(struct hb_tape *t,
                              void (*back)(struct hb_tape *, struct hb_taped *, uint32_t),
                              uint32_t out)
{
    if (!t->grad)
        return NULL;
    t->nodes = hb_grow(t->arena, t->nodes, t->node_count, &t->node_cap, sizeof *t->nodes);
    struct hb_taped *n = &t->nodes[t->node_count++];
    *n = (struct hb_taped){.back = back, .out = out};
    for (int i = 0; i < HB_TAPED_INPUTS; i++)
        n->in[i] = HB_NONE;
    for (int i = 0; i < HB_TAPED_SAVED; i++)
        n->saved[i] = HB_NONE;
    return n;
}

void hb_tape_hold_under(struct hb_tape *t, uint32_t first, const void *under)
{
    for (uint32_t i = first; i < t->node_count; i++)
        t->nodes[i].under = under;
}

static void save_at(struct hb_tape *t, uint32_t *place, uint32_t storage)
{
    if (!t->server && t->p->bufs[storage].category == HB_CAT_WORKING)
        hb_tape_count_as(t, storage, HB_CAT_SAVED);
    *place = storage;
    hb_tape_hold(t, storage);
}

void hb_tape_save(struct hb_tape *t, struct hb_taped *n, uint32_t storage)
{
    if (!n || storage == HB_NONE)
        return;
    for (int i = 0; i < HB_TAPED_SAVED; i++) {
        if (n->saved[i] != HB_NONE)
            continue;
        save_at(t, &n->saved[i], storage);
        return;
    }
    HB_BUG("a node saves more than %d storages", HB_TAPED_SAVED);
}

void hb_tape_save_in_order(struct hb_tape *t, struct hb_taped *n, const uint32_t *storages,
                           int count)
{
    for (int i = 0; i < count && i < HB_TAPED_SAVED; i++)
        if (storages[i] != HB_NONE)
            save_at(t, &n->saved[i], storages[i]);
}

void hb_tape_give_up(struct hb_tape *t, struct hb_taped *n, int place)
{
    struct hb_split *s = t->split;
    uint32_t storage = n->saved[place];
    n->saved[place] = HB_NONE;
    if (!s || !s->keeps || storage == HB_NONE) {
        hb_tape_drop(t, storage);
        return;
    }
    s->left = hb_grow(t->arena, s->left, s->left_count, &s->left_cap, sizeof *s->left);
    s->left[s->left_count++] = (struct hb_left){storage, s->with, n->under};
}

void hb_tape_give(struct hb_tape *t, uint32_t value, uint32_t grad)
{
    if (value == HB_NONE) {
        hb_tape_drop(t, grad);
        return;
    }
    uint32_t before = t->values[value].grad;
    if (before == HB_NONE) {
        t->values[value].grad = grad;
        return;
    }
    uint32_t sum = hb_tape_make(t, (struct hb_made){.op = "add",
                                                    .name = "sum of gradients",
                                                    .bytes = hb_tape_bytes(t, grad),
                                                    .category = HB_CAT_WORKING});
    hb_tape_drop(t, before);
    hb_tape_drop(t, grad);
    t->values[value].grad = sum;
}

void hb_tape_back(struct hb_tape *t, uint32_t first)
{
    while (t->node_count > first) {
        struct hb_taped n = t->nodes[--t->node_count];
        uint32_t grad = HB_NONE;
        if (n.out != HB_NONE) {
            grad = t->values[n.out].grad;
            t->values[n.out].grad = HB_NONE;
        }
        n.back(t, &n, grad);
        for (int i = 0; i < HB_TAPED_SAVED; i++)
            hb_tape_give_up(t, &n, i);
    }
}
