/* Floors of a cell's layers alone, by a search of their segment: see bound.h. */
#include <string.h>

#include "base/arena.h"
#include "sim/graph/link.h"
#include "sim/ir/lower.h"
#include "solver/bound.h"
#include "solver/brute.h"

/* Without the ends and all that is fixed, but for so much; of the times the path alone. */
static struct hb_segment layers_alone(struct hb_arena *scratch, const struct hb_segment *whole,
                                      int64_t fixed)
{
    struct hb_segment s = *whole;
    int64_t *none = hb_arena_alloc(scratch, (size_t)s.max_steps + 1, sizeof *none);
    s.items = hb_arena_alloc(scratch, s.item_count, sizeof *s.items);
    for (uint32_t i = 0; i < s.item_count; i++) {
        s.items[i] = whole->items[i];
        for (int k = 0; k < HB_BYTES_KINDS; k++)
            s.items[i].fixed[k] = none;
        for (int v = 1; v < HB_BOUNDS; v++)
            s.items[i].bound_ns[v] = NULL;
    }
    for (int k = 0; k < HB_BYTES_KINDS; k++)
        s.live[k] = hb_arena_alloc(scratch, s.slot_count, sizeof *s.live[k]);
    memset(s.fixed, 0, sizeof s.fixed);
    memset(s.bound_ns, 0, sizeof s.bound_ns);
    s.bounds[0] = 0;
    s.bound_count = 1;
    s.fixed[HB_BYTES_DEVICE] = fixed;
    hb_segment_find_high(scratch, &s);
    return s;
}

static int64_t least_time(struct hb_arena *scratch, const struct hb_segment *segment,
                          const struct hb_layers_ask *ask, enum hb_brute_time time)
{
    struct hb_segment layers = layers_alone(scratch, segment, ask->fixed_bytes);
    struct hb_brute_limits limits = {.goal = HB_GOAL_TIME,
                                     .time = time,
                                     .budget_bytes = ask->budget_bytes,
                                     .host_bytes = ask->host_bytes,
                                     .most_value = ask->most_ns,
                                     .after_value = -1,
                                     .stop = ask->stop};
    struct hb_brute_choice best;
    uint32_t found = hb_brute_best(scratch, &layers, ask->cell_spec, &limits, 1, &best);
    if (hb_stop_now(ask->stop))
        return 0;
    if (found)
        return best.value;
    return ask->most_ns < INT64_MAX ? ask->most_ns + 1 : INT64_MAX;
}

static bool build_paths(struct hb_arena *scratch, const struct hb_layers_ask *ask,
                        const struct hb_menu *menus, struct hb_segment *out)
{
    const char *why;
    struct hb_segment_ask segment = {.spec = ask->cell_spec,
                                     .menus = menus,
                                     .device = ask->device,
                                     .unchecked = true,
                                     .path_only = true,
                                     .zeros_free = ask->any_share};
    return hb_segment_build(scratch, &segment, out, &why);
}

static int main_block(const struct hb_spec *spec)
{
    int main = 0;
    for (int i = 1; i < spec->model.block_count; i++)
        if (hb_block_steps(&spec->model.blocks[i]) > hb_block_steps(&spec->model.blocks[main]))
            main = i;
    return main;
}

/* The items of the other blocks take no bytes, and no less time than the floor's. */
static void make_free(struct hb_arena *scratch, struct hb_segment *s,
                      const struct hb_segment *floor, uint32_t main)
{
    size_t tables = (size_t)s->slot_count * HB_PART_STATES * hb_segment_row(s);
    int64_t *none = hb_arena_alloc(scratch, tables, sizeof *none);
    for (uint32_t i = 0; i < s->item_count; i++) {
        if (s->items[i].block == main)
            continue;
        s->items[i].bound_ns[0] = floor->items[floor->first_item[s->items[i].block]].bound_ns[0];
        for (int k = 0; k < HB_BYTES_KINDS; k++)
            s->items[i].live[k] = s->items[i].live[k] ? none : NULL;
    }
}

/* With the policies of one block alone, which takes fewer programs: that may be above most_ns
 * already. */
static bool is_out_by_one(struct hb_arena *scratch, const struct hb_layers_ask *ask)
{
    size_t count = (size_t)ask->cell_spec->model.block_count;
    struct hb_segment_ask floor_ask = {
        .spec = ask->cell_spec, .device = ask->device, .floor = true, .path_only = true};
    struct hb_segment s, floor;
    const char *why;
    if (count < 2 || ask->most_ns == INT64_MAX)
        return false;
    int main = main_block(ask->cell_spec);
    struct hb_menu *menus = hb_arena_alloc(scratch, count, sizeof *menus);
    for (size_t i = 0; i < count; i++)
        menus[i] = (struct hb_menu){ask->menus[i].policies, 1};
    menus[main] = ask->menus[main];
    if (!hb_segment_build(scratch, &floor_ask, &floor, &why) ||
        !build_paths(scratch, ask, menus, &s))
        return false;
    make_free(scratch, &s, &floor, (uint32_t)main);
    return least_time(scratch, &s, ask, HB_TIME_SUMS) > ask->most_ns;
}

/* As written and beyond XLA:GPU's share dense layers have the same ops, and but for the zeros of
 * gradients, which are just before their loops beyond the share and may be anywhere before it as
 * written (order.c, stack.c), in the same order. So every path of the step beyond that counts
 * nothing for zeros is one of the step as written, where zeros only lengthen the compute stream;
 * and whatever lives beyond lives as written, the gradients for longer. */
static int64_t bound_as(struct hb_arena *scratch, const struct hb_layers_ask *ask)
{
    struct hb_spec written = hb_bound_written(ask->cell_spec);
    struct hb_layers_ask own = *ask;
    struct hb_segment s;
    own.cell_spec = &written;
    written.share = ask->any_share ? HB_SHARE_EXCEEDED : written.share;
    if (is_out_by_one(scratch, &own))
        return ask->most_ns + 1;
    if (!build_paths(scratch, &own, ask->menus, &s))
        return 0;
    return least_time(scratch, &s, &own, HB_TIME_SUMS);
}

/* Of all items together the order may be none of a configuration's: where the layers stand
 * otherwise in another, each is asked (70B over 512 v6e, data 2 and fsdp 256: 14.8707 s of the list
 * that 44 policies together are in, a plan's two, depth-first, take 14.7160 s). */
int64_t hb_bound_layers(struct hb_arena *scratch, const struct hb_layers_ask *ask)
{
    int kinds[HB_LOWER_KINDS], count = hb_lower_kinds(scratch, ask->cell_spec, kinds);
    struct hb_spec spec = *ask->cell_spec;
    struct hb_layers_ask own = *ask;
    int64_t least = INT64_MAX;
    if (hb_link_is_inside(ask->cell_spec)) /* not as written */
        return 0;
    own.cell_spec = &spec;
    for (int i = 0; i < count; i++) {
        spec.as_order = kinds[i];
        int64_t ns = bound_as(scratch, &own);
        least = ns < least ? ns : least;
    }
    return least;
}

int64_t hb_bound_turns(struct hb_arena *scratch, const struct hb_segment *segment,
                       const struct hb_layers_ask *ask)
{
    /* The other cells may be in another order, in which something is there for less long. */
    int kinds[HB_LOWER_KINDS];
    if (hb_bound_reordered(ask->cell_spec) || hb_lower_kinds(scratch, ask->cell_spec, kinds) > 1)
        return 0;
    return least_time(scratch, segment, ask, HB_TIME_TURNS);
}
