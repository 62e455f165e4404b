/* Menus: see menu.h. Sets of saved tensors are all tried where they are few, else grown one tensor
 * at a time from the sets that were worth it; then each that is left is tried with parts of it on
 * the host. */
#include "solver/menu.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "models/named.h"

enum { ALL_SUBSETS = 8, GROWN_ROUNDS = 6, GROWN_WIDTH = 12, LARGEST_BATCH = 96 };

#define BIT(name) (1u << HB_TN_##name)

struct make {
    struct hb_arena *arena;
    struct hb_arena *scratch;
    const struct hb_spec *spec;
    const struct hb_device *device;
    int block;
    struct hb_remat *list;   /* worth it so far */
    struct hb_price *prices; /* what all of the block costs under each */
    uint32_t count;
    uint32_t tried;
    uint32_t most;
};

static bool is_in(const struct hb_remat *list, uint32_t count, const struct hb_remat *remat)
{
    for (uint32_t i = 0; i < count; i++)
        if (hb_remat_same(&list[i], remat))
            return true;
    return false;
}

/* --- what beats what --- */

static int64_t bound_at(const struct hb_item *item, int variant, int64_t n)
{
    return item->bound_ns[variant] ? item->bound_ns[variant][n] : 0;
}

static bool is_no_slower(const struct hb_segment *s, const struct hb_item *a,
                         const struct hb_item *b, int64_t least)
{
    for (int v = 0; v < HB_BOUNDS; v++)
        for (int64_t n = s->max_steps; n >= least; n--)
            if (s->admits[n] && bound_at(a, v, n) > bound_at(b, v, n))
                return false;
    return true;
}

/* By steps, from the least on: no entry of a above that of b. */
static bool is_below(const struct hb_segment *s, const int64_t *a, const int64_t *b, int64_t least)
{
    for (int64_t n = s->max_steps; n >= least; n--)
        if (s->admits[n] && a[hb_segment_at(s, n)] > b[hb_segment_at(s, n)])
            return false;
    return true;
}

/* In so many tables, by slot and state; *counter is one in which a was the larger when it was held
 * against another last, and is asked first: in a slot of its own run it mostly is. */
static bool is_no_larger(const struct hb_segment *s, const struct hb_item *a,
                         const struct hb_item *b, int64_t least, size_t *counter)
{
    size_t row = hb_segment_row(s), tables = (size_t)s->slot_count * HB_PART_STATES;
    for (size_t t = *counter, tried = 0; tried < HB_BYTES_KINDS * tables; tried++) {
        size_t k = t / tables, at = t % tables * row;
        if (a->live[k] && !is_below(s, a->live[k] + at, b->live[k] + at, least)) {
            *counter = t;
            return false;
        }
        t = t + 1 < HB_BYTES_KINDS * tables ? t + 1 : 0;
    }
    return true;
}

static bool *find_beaten(struct hb_arena *arena, const struct hb_segment *s, bool whole)
{
    bool *beaten = hb_arena_alloc(arena, s->item_count, sizeof *beaten);
    size_t *counters = hb_arena_alloc(arena, s->item_count, sizeof *counters);
    int64_t least = whole ? s->max_steps : 1;
    for (uint32_t i = 0; i < s->item_count; i++)
        for (uint32_t k = 0; k < s->item_count && !beaten[i]; k++) {
            const struct hb_item *a = &s->items[k], *b = &s->items[i];
            if (k == i || beaten[k] || a->block != b->block)
                continue;
            beaten[i] = is_no_slower(s, a, b, least) && is_no_larger(s, a, b, least, &counters[k]);
        }
    return beaten;
}

bool *hb_menu_find_beaten(struct hb_arena *arena, const struct hb_segment *s)
{
    return find_beaten(arena, s, false);
}

/* --- trying --- */

static struct hb_price price_of(const struct hb_segment *s, uint32_t item)
{
    struct hb_part part = {item, (int32_t)s->max_steps};
    struct hb_price price;
    hb_segment_price(s, &part, 1, &price);
    return price;
}

/* Keeps those of the list, and of the count tried, that nothing beats. False: the sample cell has
 * no segments. */
static bool keep_best(struct make *m, const struct hb_remat *tried, uint32_t count)
{
    uint32_t all = 0;
    struct hb_remat *both = hb_arena_alloc(m->arena, m->count + count, sizeof *both);
    struct hb_price *prices = hb_arena_alloc(m->arena, m->count + count, sizeof *prices);
    for (uint32_t i = 0; i < m->count; i++)
        both[all++] = m->list[i];
    for (uint32_t i = 0; i < count; i++)
        if (!is_in(both, all, &tried[i]))
            both[all++] = tried[i];
    struct hb_arena_mark mark = hb_arena_mark(m->scratch);
    struct hb_spec spec = *m->spec;
    struct hb_menu menu = {both, all};
    struct hb_segment s;
    const char *why;
    spec.model.blocks = &m->spec->model.blocks[m->block];
    spec.model.block_count = 1;
    struct hb_segment_ask ask = {
        .spec = &spec, .menus = &menu, .device = m->device, .unchecked = true, .whole = true};
    bool ok = hb_segment_build(m->scratch, &ask, &s, &why);
    uint32_t left = 0;
    const bool *beaten = ok ? find_beaten(m->scratch, &s, true) : NULL;
    for (uint32_t i = 0; i < all && ok; i++)
        if (!beaten[i]) {
            both[left] = both[i];
            prices[left++] = price_of(&s, i);
        }
    hb_arena_rewind(m->scratch, mark);
    m->tried += count;
    if (ok) {
        m->list = both;
        m->prices = prices;
        m->count = left;
    }
    return ok;
}

/* --- tensors of a block --- */

uint32_t hb_menu_tensors(const struct hb_block *b)
{
    const struct hb_attention *a = &b->attention;
    uint32_t mask = BIT(ATTN_CTX) | BIT(ATTN_OUT) | BIT(MLP_GATE) | BIT(MLP_UP) | BIT(MLP_ACT);
    if (a->kind == HB_ATTN_NONE)
        mask &= ~BIT(ATTN_CTX);
    mask |= a->fused_qkv ? BIT(QKV) : BIT(Q) | BIT(K) | BIT(V);
    if (a->kind == HB_ATTN_MLA)
        mask |= BIT(MLA_Q) | BIT(MLA_KV);
    if (b->post_norm)
        mask |= BIT(MLP_DOWN);
    mask &= hb_named_tensors(b);
    if (!b->moe.experts)
        return mask;
    mask |= BIT(MOE_OUT);
    mask |= b->moe.dispatch == HB_DISPATCH_EINSUM ? BIT(MOE_DISPATCH) | BIT(MOE_COMBINE)
                                                  : BIT(MOE_SORTED);
    if (b->moe.shared_experts)
        return mask | BIT(SHARED_GATE) | BIT(SHARED_UP);
    return mask & ~BIT(MLP_ACT); /* programs give routed experts' activation no name */
}

/* Tensors that are kept or not together: k and v, the shared experts' two. */
static uint32_t make_units(uint32_t tensors, uint32_t *units)
{
    static const uint32_t pairs[] = {BIT(K) | BIT(V), BIT(SHARED_GATE) | BIT(SHARED_UP),
                                     BIT(MOE_DISPATCH) | BIT(MOE_COMBINE)};
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (tensors & pairs[i])
            units[count++] = tensors & pairs[i];
        tensors &= ~pairs[i];
    }
    for (int t = 0; t < HB_TN_COUNT; t++)
        if (tensors >> t & 1)
            units[count++] = 1u << t;
    return count;
}

static bool try_subsets(struct make *m, const uint32_t *units, uint32_t count)
{
    uint32_t subsets = 1u << count;
    struct hb_remat *r = hb_arena_alloc(m->arena, subsets, sizeof *r);
    for (uint32_t set = 1; set < subsets; set++) {
        r[set - 1].policy = HB_POLICY_NAMES;
        for (uint32_t u = 0; u < count; u++)
            r[set - 1].save |= set >> u & 1 ? units[u] : 0;
    }
    return keep_best(m, r, subsets - 1);
}

/* One tensor more than each set of the list. */
static bool grow_sets(struct make *m, const uint32_t *units, uint32_t count)
{
    uint32_t room = (m->count + 1) * count, made = 0;
    struct hb_remat *r = hb_arena_alloc(m->arena, room, sizeof *r);
    for (uint32_t i = 0; i < m->count && made + count <= LARGEST_BATCH; i++)
        for (uint32_t u = 0; u < count; u++)
            if (m->list[i].policy == HB_POLICY_NAMES || m->list[i].policy == HB_POLICY_FULL)
                r[made++] = (struct hb_remat){HB_POLICY_NAMES, m->list[i].save | units[u], 0};
    return keep_best(m, r, made);
}

/* XLA:TPU fails on the kernel's log-sum-exp (f32[1, heads, tokens]) on its way from the host where
 * a device has one sequence: "bitcast cannot have different shape sizes" (jax 0.10.2, libtpu
 * 0.0.51, v5p and v5e; two sequences compile). It travels with the attention's context. */
bool hb_menu_compiles(const struct hb_spec *spec, const struct hb_remat *remat)
{
    return spec->compiler != HB_XLA_TPU || !(remat->offload & BIT(ATTN_CTX));
}

static uint32_t keep_compiling(const struct make *m, struct hb_remat *r, uint32_t count)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++)
        if (hb_menu_compiles(m->spec, &r[i]))
            r[left++] = r[i];
    return left;
}

/* Each set with its layer input, all of it, or one tensor of it on the host. */
static bool try_offload(struct make *m)
{
    struct hb_remat *r = hb_arena_alloc(m->arena, (size_t)m->count * (HB_TN_COUNT + 3), sizeof *r);
    uint32_t made = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        const struct hb_remat *own = &m->list[i];
        if (own->policy != HB_POLICY_NAMES && own->policy != HB_POLICY_FULL)
            continue;
        r[made++] = (struct hb_remat){HB_POLICY_NAMES, own->save, BIT(LAYER_IN)};
        if (own->save) {
            r[made++] = (struct hb_remat){HB_POLICY_NAMES, 0, own->save};
            r[made++] = (struct hb_remat){HB_POLICY_NAMES, 0, own->save | BIT(LAYER_IN)};
        }
        for (int t = 0; t < HB_TN_COUNT; t++)
            if ((own->save >> t & 1) && own->save != 1u << t)
                r[made++] = (struct hb_remat){HB_POLICY_NAMES, own->save & ~(1u << t), 1u << t};
    }
    return keep_best(m, r, keep_compiling(m, r, made));
}

/* --- the menu --- */

/* Where no segments can be made: what always makes sense. */
static void plain_menu(struct make *m, uint32_t tensors)
{
    struct hb_remat *r = hb_arena_alloc(m->arena, HB_TN_COUNT + 8, sizeof *r);
    uint32_t made = 0;
    r[made++] = m->spec->model.blocks[m->block].remat;
    for (int p = HB_POLICY_NONE; p <= HB_POLICY_DOTS_NO_BATCH; p++)
        r[made++] = (struct hb_remat){(enum hb_policy)p, 0, 0};
    r[made++] = (struct hb_remat){HB_POLICY_NAMES, tensors, 0};
    r[made++] = (struct hb_remat){HB_POLICY_NAMES, 0, BIT(LAYER_IN)};
    for (int t = 0; t < HB_TN_COUNT; t++)
        if (tensors >> t & 1)
            r[made++] = (struct hb_remat){HB_POLICY_NAMES, 1u << t, 0};
    m->list = r;
    m->count = 0;
    for (uint32_t i = 0; i < made; i++)
        if (!is_in(r, m->count, &r[i]))
            r[m->count++] = r[i];
}

/* A policy with what all of the block costs under it. */
struct priced {
    struct hb_remat remat;
    struct hb_price price;
    bool front; /* nothing that takes fewer bytes is as fast */
    bool taken;
};

/* By live bytes, rising, and those that were first before those that came after. */
static void sort_priced(struct priced *list, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct priced own = list[i];
        uint32_t at = i;
        for (; at > 0 && list[at - 1].price.live_bytes > own.price.live_bytes; at--)
            list[at] = list[at - 1];
        list[at] = own;
    }
    int64_t fastest = INT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        list[i].front = list[i].price.bound_ns < fastest;
        fastest = list[i].front ? list[i].price.bound_ns : fastest;
    }
}

/* So many of those on the front, or not on it, evenly apart. */
static uint32_t take_evenly(struct priced *list, uint32_t count, bool front, uint32_t most)
{
    uint32_t all = 0, taken = 0, seen = 0;
    for (uint32_t i = 0; i < count; i++)
        all += list[i].front == front;
    for (uint32_t i = 0; i < count && all > 0; i++) {
        if (list[i].front != front)
            continue;
        /* the k-th of all is taken where k x most / all steps on */
        uint32_t now = (uint32_t)((uint64_t)(seen + 1) * most / all);
        list[i].taken = all <= most || now > taken || (seen == 0 && most > 0);
        taken += list[i].taken;
        seen++;
    }
    return taken;
}

/* At most so many, by live bytes, rising: the front of bytes against time first. */
static void sort_menu(struct make *m, uint32_t most)
{
    struct hb_arena_mark mark = hb_arena_mark(m->scratch);
    struct priced *list = hb_arena_alloc(m->scratch, m->count, sizeof *list);
    for (uint32_t i = 0; i < m->count; i++)
        list[i] = (struct priced){.remat = m->list[i], .price = m->prices[i]};
    sort_priced(list, m->count);
    uint32_t taken = take_evenly(list, m->count, true, most), left = 0;
    if (taken < most)
        take_evenly(list, m->count, false, most - taken);
    for (uint32_t i = 0; i < m->count; i++)
        if (list[i].taken) {
            m->list[left] = list[i].remat;
            m->prices[left++] = list[i].price;
        }
    m->count = left < most ? left : most;
    hb_arena_rewind(m->scratch, mark);
}

static void make_menu(struct make *m)
{
    uint32_t units[HB_TN_COUNT];
    uint32_t tensors = hb_menu_tensors(&m->spec->model.blocks[m->block]);
    uint32_t count = make_units(tensors, units);
    plain_menu(m, tensors);
    uint32_t plain_count = m->count;
    const struct hb_remat *plain = m->list;
    bool ok = count <= ALL_SUBSETS ? try_subsets(m, units, count) : keep_best(m, NULL, 0);
    for (int round = 0; ok && count > ALL_SUBSETS && round < GROWN_ROUNDS; round++) {
        ok = grow_sets(m, units, count);
        sort_menu(m, GROWN_WIDTH);
    }
    /* An optimizer on the host (GPUs) gives each run of layers ops of its own among the ends: no
     * set beats another then, and as many ops as sets are summed up for each. */
    if (m->count > LARGEST_BATCH)
        sort_menu(m, GROWN_WIDTH);
    ok = ok && try_offload(m);
    if (!ok) {
        m->count = m->count < m->most ? m->count : m->most; /* the block's own comes first */
        return;
    }
    struct hb_remat *all = hb_arena_alloc(m->arena, m->count + plain_count, sizeof *all);
    memcpy(all, m->list, m->count * sizeof *all);
    m->list = all;
    sort_menu(m, m->most - 1);
    if (!is_in(m->list, m->count, &plain[0])) /* the file's own policy is always there */
        m->list[m->count++] = plain[0];
}

const struct hb_menu *hb_menu_make(struct hb_arena *arena, struct hb_arena *scratch,
                                   const struct hb_spec *cell_spec, const struct hb_device *device,
                                   uint32_t most, uint32_t *out_tried)
{
    int blocks = cell_spec->model.block_count;
    struct hb_menu *menus = hb_arena_alloc(arena, (size_t)blocks, sizeof *menus);
    struct make m = {
        .arena = arena, .scratch = scratch, .spec = cell_spec, .device = device, .most = most};
    for (m.block = 0; m.block < blocks; m.block++) {
        const struct hb_block *b = &cell_spec->model.blocks[m.block];
        if (most > 1 && b->repeat > b->unit) { /* one step is not rematerialised */
            make_menu(&m);
            menus[m.block] = (struct hb_menu){m.list, m.count};
        } else {
            menus[m.block] = (struct hb_menu){&cell_spec->model.blocks[m.block].remat, 1};
        }
        m.count = 0;
    }
    *out_tried = m.tried;
    return menus;
}

uint32_t hb_menu_place(const struct hb_menu *menu, const struct hb_remat *remat)
{
    for (uint32_t i = 0; i < menu->count; i++)
        if (hb_remat_same(&menu->policies[i], remat))
            return i;
    return HB_NONE;
}

/* Rungs of the ladder: what is saved of the block's tensors, and what lies on the host. */
static const struct {
    uint32_t save;
    uint32_t offload;
} rungs[] = {{0, BIT(LAYER_IN)},
             {0, 0},
             {BIT(ATTN_CTX), 0},
             {BIT(ATTN_CTX) | BIT(ATTN_OUT) | BIT(MOE_OUT), 0},
             {BIT(ATTN_CTX) | BIT(Q) | BIT(K) | BIT(V) | BIT(QKV) | BIT(MLA_Q) | BIT(MLA_KV), 0},
             {BIT(ATTN_CTX) | BIT(MLP_GATE) | BIT(MLP_UP), 0},
             {~BIT(MLP_ACT) & ~BIT(MLP_GATE) & ~BIT(MLP_UP) & ~BIT(MOE_SORTED), 0},
             {~BIT(MLP_ACT) & ~BIT(MOE_SORTED), 0},
             {~0u, 0}};
enum { RUNGS = sizeof rungs / sizeof rungs[0] };

const struct hb_menu *hb_menu_ladder(struct hb_arena *arena, const struct hb_spec *cell_spec)
{
    size_t blocks = (size_t)cell_spec->model.block_count;
    struct hb_menu *menus = hb_arena_alloc(arena, blocks, sizeof *menus);
    for (size_t i = 0; i < blocks; i++) {
        const struct hb_block *b = &cell_spec->model.blocks[i];
        struct hb_remat *list = hb_arena_alloc(arena, RUNGS, sizeof *list);
        uint32_t count = 0, tensors = hb_menu_tensors(b);
        for (size_t k = 0; k < RUNGS && b->repeat > b->unit; k++) {
            struct hb_remat r = {.save = rungs[k].save & tensors, .offload = rungs[k].offload};
            r.policy = r.save | r.offload ? HB_POLICY_NAMES : HB_POLICY_FULL;
            if (!is_in(list, count, &r))
                list[count++] = r;
        }
        if (!count) /* one step is not rematerialised */
            list[count++] = b->remat;
        menus[i] = (struct hb_menu){list, count};
    }
    return menus;
}

const struct hb_menu *hb_menu_join(struct hb_arena *arena, int block_count,
                                   const struct hb_menu *first, const struct hb_menu *second)
{
    struct hb_menu *menus = hb_arena_alloc(arena, (size_t)block_count, sizeof *menus);
    for (int i = 0; i < block_count; i++) {
        uint32_t count = first[i].count;
        struct hb_remat *all = hb_arena_alloc(arena, count + second[i].count, sizeof *all);
        memcpy(all, first[i].policies, count * sizeof *all);
        for (uint32_t k = 0; k < second[i].count; k++)
            if (!is_in(first[i].policies, first[i].count, &second[i].policies[k]))
                all[count++] = second[i].policies[k];
        menus[i] = (struct hb_menu){all, count};
    }
    return menus;
}
