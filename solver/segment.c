/* Tables of bytes and times by number of layers: see segment.h. */
#include "solver/segment.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "sim/graph/link.h"
#include "sim/ir/lower.h"
#include "solver/segment_build.h"
#include "solver/segment_order.h"
#include "solver/step_bound.h"

/* Trip counts of the two programs: those of the second are beyond a tile, so that no padding makes
 * the two look alike. Nested scans cut steps at the largest divisor up to the root: primes, the
 * outer one below the inner ones, are cut as wanted. */
enum { LEAST_INNER_A = 3, FIRST_INNER_B = 129, OUTER_A = 2, OUTER_B = 131 };

/* --- the pair of programs --- */

/* Whether a block's layers make a loop: else it is part of the ends. */
static bool is_looped(const struct hb_building *w, int block)
{
    return w->sized.admits[hb_block_steps(&w->spec->model.blocks[block])];
}

static uint32_t count_items(struct hb_building *w)
{
    uint32_t count = 0;
    for (int i = 0; i < w->spec->model.block_count; i++)
        count += is_looped(w, i) ? w->menus[i].count : 0;
    return count;
}

static bool is_prime(int64_t n)
{
    for (int64_t d = 2; d * d <= n; d++)
        if (n % d == 0)
            return false;
    return true;
}

static void choose_trips(struct hb_building *w, uint32_t groups)
{
    bool nested = w->spec->stack.form == HB_FORM_NESTED;
    int64_t next = nested ? OUTER_B + 1 : FIRST_INNER_B;
    int64_t *inner = hb_arena_alloc(w->arena, groups, sizeof *inner);
    for (uint32_t i = 0; i < groups; i++, next++) {
        while (nested && !is_prime(next))
            next++;
        inner[i] = next;
    }
    w->pair = (struct hb_outline_pair){.a = &w->a,
                                       .b = &w->b,
                                       .group_count = groups,
                                       .inner_a = LEAST_INNER_A,
                                       .inner_b = inner,
                                       .outer_a = nested ? OUTER_A : 0,
                                       .outer_b = nested ? OUTER_B : 0,
                                       .sums_alone = w->floor};
    if (!nested && w->spec->stack.unroll >= LEAST_INNER_A)
        w->pair.inner_a = w->spec->stack.unroll + 1;
}

static struct hb_block make_block(const struct hb_building *w, int block, uint32_t policy,
                                  uint32_t group, bool second)
{
    struct hb_block b = w->spec->model.blocks[block];
    int64_t inner = second ? w->pair.inner_b[group] : w->pair.inner_a;
    int64_t outer = second ? w->pair.outer_b : w->pair.outer_a;
    if (policy) /* where updates follow the names, runs' come in the order of the menu */
        b.name = hb_arena_printf(w->arena, "%s_%06u", b.name, policy);
    b.remat = w->menus[block].policies[policy];
    b.repeat = inner * (outer ? outer : 1) * b.unit;
    return b;
}

/* Ops and loops are put in order in their place. */
static struct hb_program copy_program(struct hb_arena *arena, const struct hb_program *p)
{
    struct hb_program copy = *p;
    copy.ops = hb_arena_raw(arena, p->op_count, sizeof *p->ops);
    copy.loops = hb_arena_raw(arena, p->loop_count, sizeof *p->loops);
    memcpy(copy.ops, p->ops, p->op_count * sizeof *p->ops);
    memcpy(copy.loops, p->loops, p->loop_count * sizeof *p->loops);
    return copy;
}

static bool lower_part(struct hb_building *w, const struct hb_spec *spec,
                       enum hb_floor_program part, struct hb_program *out)
{
    struct hb_diag diag;
    hb_diag_init(&diag, w->arena);
    return part == HB_FLOOR_WHOLE ? hb_lower(w->arena, &diag, spec, out)
                                  : hb_lower_sample(w->arena, &diag, spec, w->spec, out);
}

bool hb_building_lower(struct hb_building *w, const struct hb_spec *spec,
                       enum hb_floor_program part, struct hb_program *out)
{
    bool none = false, *known = w->programs ? &w->programs->known[part] : &none;
    struct hb_program *lowered = w->programs ? &w->programs->lowered[part] : out;
    if (!*known && !lower_part(w, spec, part, lowered))
        return false;
    *known = true;
    if (w->programs)
        *out = copy_program(w->arena, lowered);
    hb_link_put(w->arena, w->link, spec, out);
    return true;
}

/* Each item once, blocks without items as they are; where there is but one item, once more, since
 * outlines want two groups. */
static bool lower_one(struct hb_building *w, enum hb_floor_program part, struct hb_program *out)
{
    struct hb_spec spec = *w->spec;
    uint32_t group = 0, at = 0, groups = w->pair.group_count;
    size_t room = groups + (size_t)spec.model.block_count;
    struct hb_block *blocks = hb_arena_alloc(w->arena, room, sizeof *blocks);
    for (int i = 0; i < spec.model.block_count; i++) {
        if (!is_looped(w, i)) {
            blocks[at] = w->spec->model.blocks[i];
            blocks[at++].remat = w->menus[i].policies[0];
            continue;
        }
        for (uint32_t k = 0; k < w->menus[i].count; k++)
            blocks[at++] = make_block(w, i, k, group++, part == HB_FLOOR_SECOND);
        if (w->s->item_count == 1)
            blocks[at++] = make_block(w, i, 0, group++, part == HB_FLOOR_SECOND);
    }
    spec.model.blocks = blocks;
    spec.model.block_count = (int)at;
    spec.stack.outer = 0;
    spec.merged = part == HB_FLOOR_MERGED;
    hb_segment_put_order(w->s, &spec);
    return hb_building_lower(w, &spec, part, out);
}

static void name_items(struct hb_building *w)
{
    uint32_t at = 0;
    w->s->first_item =
        hb_arena_alloc(w->arena, (size_t)w->spec->model.block_count + 1, sizeof *w->s->first_item);
    w->items = w->s->items = hb_arena_alloc(w->arena, w->s->item_count, sizeof *w->items);
    for (int i = 0; i < w->spec->model.block_count; i++) {
        w->s->first_item[i] = at;
        for (uint32_t k = 0; is_looped(w, i) && k < w->menus[i].count; k++, at++)
            w->items[at] = (struct hb_item){.block = (uint32_t)i, .policy = k};
    }
    w->s->first_item[w->spec->model.block_count] = at;
}

static bool make_outline(struct hb_building *w)
{
    w->s->item_count = count_items(w);
    if (w->s->item_count == 0) {
        w->why = "no layers that make a loop";
        return false;
    }
    name_items(w);
    if (!w->floor && !w->unordered)
        hb_building_choose_order(w);
    choose_trips(w, w->s->item_count < 2 ? 2 : w->s->item_count);
    if (!lower_one(w, HB_FLOOR_FIRST, &w->a) || !lower_one(w, HB_FLOOR_SECOND, &w->b)) {
        w->why = "sizes beyond the range";
        return false;
    }
    if (w->a.argument_extra_bytes != w->b.argument_extra_bytes) {
        w->why = "index tables that follow the layers";
        return false;
    }
    return hb_outline_find(w->arena, &w->pair, &w->o, &w->why);
}

/* --- the whole --- */

static const struct hb_menu *floor_menus(struct hb_arena *arena, const struct hb_spec *spec)
{
    size_t blocks = (size_t)spec->model.block_count;
    struct hb_menu *menus = hb_arena_alloc(arena, blocks, sizeof *menus);
    struct hb_remat *all = hb_arena_alloc(arena, 1, sizeof *all);
    *all = hb_segment_floor_policy();
    for (size_t i = 0; i < blocks; i++) {
        const struct hb_block *b = &spec->model.blocks[i];
        menus[i] = (struct hb_menu){b->repeat > b->unit ? all : &b->remat, 1};
    }
    return menus;
}

/* What any policy's order needs, before the arena is taken back to a mark. */
static void ready_orders(struct hb_building *w)
{
    struct hb_spec spec = *w->spec;
    size_t count = (size_t)spec.model.block_count;
    struct hb_block *blocks = hb_arena_raw(w->arena, count, sizeof *blocks);
    memcpy(blocks, spec.model.blocks, count * sizeof *blocks);
    spec.model.blocks = blocks;
    w->order = hb_arena_alloc(w->arena, w->s->item_count, sizeof *w->order);
    for (size_t i = 0; i < count; i++)
        blocks[i].remat = w->menus[i].policies[0];
    for (uint32_t i = 0; i < w->s->item_count && w->link->known; i++) {
        struct hb_block *own = &blocks[w->s->items[i].block];
        struct hb_remat first = own->remat;
        own->remat = w->menus[w->s->items[i].block].policies[w->s->items[i].policy];
        hb_link_ready(w->link, &spec, &w->order[i]);
        own->remat = first;
    }
}

static struct hb_link *open_link(struct hb_arena *arena, const struct hb_spec *spec)
{
    struct hb_link *link = hb_arena_alloc(arena, 1, sizeof *link);
    hb_link_open(arena, spec, link);
    return link;
}

/* What the rest of the search asks of the build stays in the arena with it. */
static struct hb_building *open_build(struct hb_arena *arena, const struct hb_segment_ask *ask,
                                      struct hb_segment *out)
{
    struct hb_building *w = hb_arena_alloc(arena, 1, sizeof *w);
    const struct hb_spec *spec = ask->spec;
    struct hb_sized sized;
    *out = (struct hb_segment){0};
    hb_sized_init(&sized, arena, spec, &w->o, ask->floor || ask->whole);
    *w = (struct hb_building){.arena = arena,
                              .spec = spec,
                              .s = out,
                              .why = "",
                              .floor = ask->floor,
                              .untried = ask->untried,
                              .unordered = ask->unchecked,
                              .sized = sized,
                              .device = ask->device,
                              .programs = ask->programs,
                              .link = ask->link ? ask->link : open_link(arena, spec),
                              .menus = ask->floor ? floor_menus(arena, spec) : ask->menus};
    return w;
}

static bool find_bounds(struct hb_building *w, const struct hb_segment_ask *ask)
{
    struct hb_program merged;
    if (ask->bytes_only)
        return true;
    if (ask->floor && !lower_one(w, HB_FLOOR_MERGED, &merged)) {
        w->why = "sizes beyond the range";
        return false;
    }
    hb_step_bounds(w->arena, &w->sized, ask, ask->floor ? &merged : NULL, w->s);
    return true;
}

bool hb_segment_build(struct hb_arena *arena, const struct hb_segment_ask *ask,
                      struct hb_segment *out, const char **out_why)
{
    struct hb_building *w = open_build(arena, ask, out);
    bool ok = ask->spec->mesh[HB_AX_PIPELINE] == 1 && ask->spec->stack.form != HB_FORM_LOOP;
    if (!ok)
        w->why = "a pipeline, or a stack that is not scanned";
    ok = ok && make_outline(w) && hb_building_sum(w) && find_bounds(w, ask);
    if (ok && !ask->unchecked) {
        ready_orders(w);
        ok = hb_building_check(w);
    }
    *out_why = w->why;
    return ok;
}
