/* Tables of bytes by steps: see sized.h. */
#include "solver/sized.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/str.h"

enum { KEY_WORDS = 4 + 2 * HB_SHAPE_RANK };

struct hb_sized_entry {
    struct hb_shape shape; /* 0 where a dimension follows the layers */
    enum hb_tiling tiling;
    enum hb_follow follow[HB_SHAPE_RANK];
    int64_t align;
    int64_t key[KEY_WORDS]; /* all of these */
    int64_t *bytes;
    uint32_t next; /* of its chain, from 1; 0: the last */
};

/* As schema.md says of stack.outer: 0. */
static int64_t auto_outer(int64_t steps)
{
    int64_t best = 1;
    for (int64_t o = 1; o * o <= steps; o++)
        if (steps % o == 0)
            best = o;
    return best;
}

bool hb_sized_may_split(const struct hb_spec *spec)
{
    return spec->stack.form == HB_FORM_SCAN && spec->mesh[HB_AX_PIPELINE] == 1;
}

static int32_t above_unroll(const struct hb_spec *spec, int32_t least)
{
    return spec->stack.unroll >= least ? (int32_t)spec->stack.unroll + 1 : least;
}

int32_t hb_sized_least_run(const struct hb_spec *spec)
{
    return above_unroll(spec, spec->compiler == HB_XLA_TPU ? 3 : 2);
}

int32_t hb_sized_least_loop(const struct hb_spec *spec)
{
    return above_unroll(spec, 2);
}

/* A run that a search may make, or a block of the file. */
static bool is_run(const struct hb_spec *spec, int64_t steps)
{
    bool own = steps >= hb_sized_least_run(spec);
    for (int i = 0; i < spec->model.block_count; i++)
        own = own || hb_block_steps(&spec->model.blocks[i]) == steps;
    return own;
}

void hb_sized_init(struct hb_sized *z, struct hb_arena *arena, const struct hb_spec *spec,
                   const struct hb_outline *outline, bool whole)
{
    *z = (struct hb_sized){.arena = arena, .outline = outline};
    for (int i = 0; i < spec->model.block_count; i++) {
        int64_t steps = hb_block_steps(&spec->model.blocks[i]);
        z->max_steps = steps > z->max_steps ? steps : z->max_steps;
    }
    size_t room = (size_t)z->max_steps + 1;
    z->outer = hb_arena_alloc(arena, room, sizeof *z->outer);
    z->inner = hb_arena_alloc(arena, room, sizeof *z->inner);
    z->admits = hb_arena_alloc(arena, room, sizeof *z->admits);
    z->wanted = hb_arena_alloc(arena, room, sizeof *z->wanted);
    for (int i = 0; i < spec->model.block_count && whole; i++)
        z->wanted[hb_block_steps(&spec->model.blocks[i])] = true;
    bool nested = spec->stack.form == HB_FORM_NESTED;
    z->least_steps = z->max_steps;
    for (int64_t n = z->max_steps; n >= 1; n--) {
        z->wanted[n] = z->wanted[n] || !whole;
        z->least_steps = z->wanted[n] ? n : z->least_steps;
        int64_t outer = spec->stack.outer > 0 ? spec->stack.outer : auto_outer(n);
        z->outer[n] = nested ? outer : 1;
        z->admits[n] = nested ? z->outer[n] > 1 && n > z->outer[n] && n % z->outer[n] == 0
                              : n > 1 && n > spec->stack.unroll && is_run(spec, n);
        z->inner[n] = z->admits[n] ? n / z->outer[n] : 1;
    }
}

bool hb_sized_moves(const struct hb_sized *z, uint32_t buf)
{
    for (int i = 0; i < z->outline->pair.a->bufs[buf].rank; i++)
        if (z->outline->dim_follow[buf][i] != HB_FOLLOW_NOTHING)
            return true;
    return false;
}

static void make_key(const struct hb_sized_entry *e, int64_t *key)
{
    key[0] = e->shape.rank;
    key[1] = (int64_t)e->shape.dtype;
    key[2] = (int64_t)e->tiling;
    key[3] = e->align;
    for (int i = 0; i < HB_SHAPE_RANK; i++) {
        key[4 + 2 * i] = e->shape.dim[i];
        key[5 + 2 * i] = (int64_t)e->follow[i];
    }
}

static struct hb_sized_entry entry_of(const struct hb_sized *z, uint32_t buf, int64_t align)
{
    const struct hb_buf *b = &z->outline->pair.a->bufs[buf];
    struct hb_sized_entry e = {
        .shape = {.rank = b->rank, .dtype = b->dtype}, .tiling = b->tiling, .align = align};
    for (int i = 0; i < b->rank; i++) {
        e.follow[i] = z->outline->dim_follow[buf][i];
        e.shape.dim[i] = e.follow[i] == HB_FOLLOW_NOTHING ? b->dim[i] : 0;
    }
    make_key(&e, e.key);
    return e;
}

static uint32_t chain_of(const struct hb_sized_entry *e)
{
    uint64_t hash = HB_HASH_START;
    for (int i = 0; i < KEY_WORDS; i++)
        hash = hb_hash(hash, (uint64_t)e->key[i]);
    return (uint32_t)(hash >> 32) % HB_SIZED_CHAINS;
}

static void fill_entry(const struct hb_sized *z, struct hb_sized_entry *e)
{
    e->bytes = hb_arena_alloc(z->arena, (size_t)z->max_steps + 1, sizeof *e->bytes);
    for (int64_t n = z->least_steps; n <= z->max_steps; n++) {
        struct hb_shape s = e->shape;
        if (!z->wanted[n])
            continue;
        for (int i = 0; i < s.rank; i++)
            if (e->follow[i] != HB_FOLLOW_NOTHING)
                s.dim[i] = e->follow[i] == HB_FOLLOW_OUTER ? z->outer[n] : z->inner[n];
        e->bytes[n] = hb_round_up(hb_shape_bytes(&s, e->tiling), e->align);
    }
}

const int64_t *hb_sized_bytes(struct hb_sized *z, uint32_t buf, int64_t align)
{
    if (!z->entry_of)
        z->entry_of = hb_arena_alloc(z->arena, z->outline->pair.a->buf_count, sizeof *z->entry_of);
    uint32_t *at = &z->entry_of[buf];
    if (*at && z->entries[*at - 1].align == align)
        return z->entries[*at - 1].bytes;
    struct hb_sized_entry e = entry_of(z, buf, align);
    uint32_t *chain = &z->chains[chain_of(&e)];
    for (*at = *chain; *at; *at = z->entries[*at - 1].next)
        if (memcmp(z->entries[*at - 1].key, e.key, sizeof e.key) == 0)
            return z->entries[*at - 1].bytes;
    fill_entry(z, &e);
    e.next = *chain;
    z->entries = hb_grow(z->arena, z->entries, z->count, &z->cap, sizeof e);
    z->entries[z->count++] = e;
    *chain = *at = z->count;
    return e.bytes;
}
