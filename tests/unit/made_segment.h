/* Random segments that no program stands behind: a few blocks, policies, slots of the ends and of
 * turns, with tables of small numbers; and what is said of them in segment.h and brute.h, written
 * down once more without any haste. */
#ifndef HB_TESTS_MADE_SEGMENT_H
#define HB_TESTS_MADE_SEGMENT_H

#include "base/arena.h"
#include "base/rng.h"
#include "solver/brute.h"
#include "tests/unit/unit.h"

enum { MADE_BLOCKS = 3, MADE_STEPS = 7, MADE_SLOTS = 4, MADE_ITEMS = 4 };

struct made {
    struct hb_arena *arena;
    struct hb_spec spec;
    struct hb_block blocks[MADE_BLOCKS];
    struct hb_segment s;
    bool straight; /* tables are lines, sizes in fours of MiB */
};

static inline int64_t made_number(const struct made *m, struct hb_rng *rng)
{
    static const int64_t most[] = {0, 1, 3, 40};
    int64_t n = hb_rng_range(rng, 0, most[hb_rng_range(rng, 0, 3)]);
    return m->straight ? n << 22 : n;
}

static inline void made_fill(const struct made *m, struct hb_rng *rng, int64_t *table)
{
    int64_t slope = made_number(m, rng), base = made_number(m, rng);
    for (int64_t n = 1; n <= m->s.max_steps; n++)
        table[n] = m->straight ? slope * n + base : made_number(m, rng);
}

static inline void made_item(struct made *m, struct hb_rng *rng, struct hb_item *item,
                             const bool *has_bound)
{
    size_t row = hb_segment_row(&m->s);
    for (int kind = 0; kind < (m->s.has_host ? HB_BYTES_KINDS : HB_BYTES_HOST); kind++) {
        size_t tables = (size_t)m->s.slot_count * HB_PART_STATES;
        item->fixed[kind] = hb_arena_alloc(m->arena, row, sizeof(int64_t));
        item->live[kind] = hb_arena_alloc(m->arena, tables * row, sizeof(int64_t));
        made_fill(m, rng, item->fixed[kind]);
        for (size_t t = 0; t < tables; t++)
            made_fill(m, rng, item->live[kind] + t * row);
    }
    for (int v = 0; v < HB_BOUNDS; v++) {
        item->bound_ns[v] = has_bound[v] ? hb_arena_alloc(m->arena, row, sizeof(int64_t)) : NULL;
        if (has_bound[v])
            made_fill(m, rng, item->bound_ns[v]);
    }
}

/* The item's tables of the slot are those of the one before it, some of them with a little more. */
static inline void made_copy(const struct made *m, struct hb_rng *rng, int64_t *to)
{
    size_t row = hb_segment_row(&m->s), size = HB_PART_STATES * row;
    memcpy(to, to - size, size * sizeof *to);
    for (size_t t = 0; t < size; t += row) {
        int64_t more = hb_rng_range(rng, 0, 3) ? 0 : made_number(m, rng);
        for (size_t n = 1; n < row; n++)
            to[t + n] += more;
    }
}

/* Of two slots that are alike one may never have the peak, whatever else differs between them. */
static inline void made_alike(const struct made *m, struct hb_rng *rng, uint32_t slot)
{
    size_t size = HB_PART_STATES * hb_segment_row(&m->s);
    for (int kind = 0; kind < (m->s.has_host ? HB_BYTES_KINDS : HB_BYTES_HOST); kind++)
        for (uint32_t i = 0; i < m->s.item_count; i++)
            made_copy(m, rng, m->s.items[i].live[kind] + slot * size);
}

static inline void made_ends(struct made *m, struct hb_rng *rng)
{
    m->s.slots = hb_arena_alloc(m->arena, m->s.slot_count, sizeof *m->s.slots);
    for (uint32_t q = 0; q < m->s.slot_count; q++)
        m->s.slots[q] =
            (struct hb_slot){.turns = hb_rng_range(rng, 0, 1), .rising = hb_rng_range(rng, 0, 1)};
    for (uint32_t q = 1; q < m->s.slot_count; q++)
        if (hb_rng_range(rng, 0, 1))
            made_alike(m, rng, q);
    for (int kind = 0; kind < HB_BYTES_KINDS; kind++) {
        m->s.live[kind] = hb_arena_alloc(m->arena, m->s.slot_count, sizeof(int64_t));
        m->s.fixed[kind] = m->s.has_host || kind == HB_BYTES_DEVICE ? made_number(m, rng) : 0;
        for (uint32_t q = 0; q < m->s.slot_count; q++)
            m->s.live[kind][q] = made_number(m, rng);
    }
}

/* Blocks of one step have no items; the first has more. */
static inline void made_blocks(struct made *m, struct hb_rng *rng)
{
    int count = (int)hb_rng_range(rng, 1, MADE_BLOCKS);
    m->spec.model.blocks = m->blocks;
    m->spec.model.block_count = count;
    m->s.first_item = hb_arena_alloc(m->arena, (size_t)count + 1, sizeof *m->s.first_item);
    m->s.items = hb_arena_alloc(m->arena, MADE_BLOCKS * MADE_ITEMS, sizeof *m->s.items);
    for (int i = 0; i < count; i++) {
        int32_t steps = (int32_t)hb_rng_range(rng, i ? 1 : 2, MADE_STEPS);
        uint32_t items = steps > 1 ? (uint32_t)hb_rng_range(rng, 1, MADE_ITEMS) : 0;
        m->blocks[i] = (struct hb_block){.name = "b", .repeat = steps, .unit = 1};
        m->s.max_steps = steps > m->s.max_steps ? steps : m->s.max_steps;
        for (uint32_t k = 0; k < items; k++)
            m->s.items[m->s.item_count++] = (struct hb_item){.block = (uint32_t)i, .policy = k};
        m->s.first_item[i + 1] = m->s.item_count;
    }
}

/* Some numbers of steps cannot be cut, some items are odd; of straight ones none. */
static inline void made_draw(struct made *m, struct hb_rng *rng)
{
    bool has_bound[HB_BOUNDS];
    m->s.least_steps = m->s.max_steps = 1;
    m->s.has_host = hb_rng_range(rng, 0, 1);
    m->s.slot_count = (uint32_t)hb_rng_range(rng, 1, MADE_SLOTS);
    made_blocks(m, rng);
    for (int v = 0; v < HB_BOUNDS; v++) {
        has_bound[v] = hb_rng_range(rng, 0, 2) == 0;
        m->s.bound_ns[v] = made_number(m, rng);
    }
    for (uint32_t i = 0; i < m->s.item_count; i++)
        made_item(m, rng, &m->s.items[i], has_bound);
    made_ends(m, rng);
    m->s.admits = hb_arena_alloc(m->arena, MADE_STEPS + 1, sizeof *m->s.admits);
    for (int n = 1; n <= MADE_STEPS; n++)
        m->s.admits[n] = m->straight || hb_rng_range(rng, 0, 3) > 0;
    for (int i = 0; i < m->spec.model.block_count; i++)
        m->s.admits[hb_block_steps(&m->blocks[i])] = true;
    m->s.odd_whole = hb_arena_alloc(m->arena, MADE_BLOCKS * MADE_ITEMS, sizeof *m->s.odd_whole);
    m->s.odd_split = hb_arena_alloc(m->arena, MADE_BLOCKS * MADE_ITEMS, sizeof *m->s.odd_split);
    m->s.odd_last = hb_arena_alloc(m->arena, MADE_BLOCKS * MADE_ITEMS, sizeof *m->s.odd_last);
    for (uint32_t i = 0; i < m->s.item_count && !m->straight; i++) {
        m->s.odd_whole[i] = hb_rng_range(rng, 0, 5) == 0;
        m->s.odd_split[i] = hb_rng_range(rng, 0, 5) == 0;
        m->s.odd_last[i] = hb_rng_range(rng, 0, 5) == 0;
    }
    hb_segment_find_high(m->arena, &m->s);
    hb_segment_find_bounds(&m->s);
}

/* --- what holds of them --- */

static inline int64_t made_state(const struct made *m, const struct hb_part *p, int kind,
                                 uint32_t slot, size_t state)
{
    size_t row = hb_segment_row(&m->s);
    return m->s.items[p->item].live[kind][(slot * HB_PART_STATES + state) * row + (size_t)p->steps];
}

static inline int64_t made_turn(const struct made *m, const struct hb_part *parts, uint32_t count,
                                int kind, uint32_t slot, uint32_t own)
{
    int64_t sum = m->s.live[kind][slot];
    for (uint32_t i = 0; i < count; i++) {
        bool over = m->s.slots[slot].rising ? i < own : i > own;
        size_t state = i == own ? HB_PART_OWN : over ? HB_PART_AFTER : HB_PART_BEFORE;
        sum += made_state(m, &parts[i], kind, slot, m->s.slots[slot].turns ? state : HB_PART_OWN);
    }
    return sum;
}

static inline int64_t made_bytes(const struct made *m, const struct hb_part *parts, uint32_t count,
                                 int kind)
{
    int64_t most = 0, fixed = m->s.fixed[kind];
    if (kind == HB_BYTES_HOST && !m->s.has_host)
        return 0;
    for (uint32_t q = 0; q < m->s.slot_count; q++)
        for (uint32_t i = 0; i < (count ? count : 1); i++) {
            int64_t live = made_turn(m, parts, count, kind, q, i);
            most = live > most ? live : most;
        }
    for (uint32_t i = 0; i < count; i++)
        fixed += m->s.items[parts[i].item].fixed[kind][parts[i].steps];
    return fixed + most;
}

static inline int64_t made_ns(const struct made *m, const struct hb_part *parts, uint32_t count)
{
    int64_t most = 0;
    for (int v = 0; v < HB_BOUNDS; v++) {
        int64_t sum = m->s.bound_ns[v];
        for (uint32_t i = 0; i < count; i++)
            if (m->s.items[parts[i].item].bound_ns[v])
                sum += m->s.items[parts[i].item].bound_ns[v][parts[i].steps];
        most = sum > most ? sum : most;
    }
    return most;
}

/* Where one block at most is in two; in the order of brute.h. */
struct made_walk {
    const struct made *m;
    bool odd; /* whole ones that have an odd item, else all that have none */
    void (*visit)(void *context, const struct hb_part *parts, uint32_t count);
    void *context;
    struct hb_part parts[HB_PARTS_MAX];
};

static inline void made_each_from(struct made_walk *w, int block, uint32_t count, bool split,
                                  bool any_odd);

static inline void made_each_cut(struct made_walk *w, int block, uint32_t count, uint32_t one,
                                 uint32_t other, bool any_odd)
{
    const struct hb_segment *s = &w->m->s;
    int32_t steps = hb_block_steps(&w->m->spec.model.blocks[block]);
    for (int32_t n = 1; n < steps; n++) {
        if (s->odd_split[one] || s->odd_last[other] || !s->admits[n] || !s->admits[steps - n])
            continue;
        w->parts[count] = (struct hb_part){one, n};
        w->parts[count + 1] = (struct hb_part){other, steps - n};
        made_each_from(w, block + 1, count + 2, true, any_odd);
    }
}

static inline void made_each_from(struct made_walk *w, int block, uint32_t count, bool split,
                                  bool any_odd)
{
    const struct hb_segment *s = &w->m->s;
    if (block == w->m->spec.model.block_count) {
        if (any_odd == w->odd)
            w->visit(w->context, w->parts, count);
        return;
    }
    uint32_t first = s->first_item[block], end = s->first_item[block + 1];
    if (first == end)
        made_each_from(w, block + 1, count, split, any_odd);
    for (uint32_t i = first; i < end; i++) {
        w->parts[count] = (struct hb_part){i, hb_block_steps(&w->m->spec.model.blocks[block])};
        made_each_from(w, block + 1, count + 1, split, any_odd || s->odd_whole[i]);
    }
    for (uint32_t i = first; i < end && !split && !w->odd; i++)
        for (uint32_t k = i + 1; k < end; k++)
            made_each_cut(w, block, count, i, k, any_odd);
}

static inline void made_each(struct made_walk *w)
{
    made_each_from(w, 0, 0, false, false);
}

#endif
