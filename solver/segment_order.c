/* Orders of configurations: see segment_order.h. */
#include "solver/segment_order.h"

#include "base/arena.h"
#include "base/diag.h"
#include "sim/ir/lower.h"
#include "solver/segment.h"

enum { MOST_ORDERS = 256 };

struct hb_segment_orders {
    struct hb_lower_orders *lower;
    const struct hb_spec *spec;
    const struct hb_menu *menus;
    struct hb_model model;
    struct hb_block *blocks; /* of the one that is asked for */
    int own;
};

static int order_of(const struct hb_segment *s, const struct hb_part *parts, uint32_t count)
{
    struct hb_segment_orders *o = s->orders;
    uint32_t at = 0, made = 0;
    for (int i = 0; i < o->spec->model.block_count; i++) {
        const struct hb_block *own = &o->spec->model.blocks[i];
        if (s->first_item[i] == s->first_item[i + 1]) {
            o->blocks[made] = *own;
            o->blocks[made++].remat = o->menus[i].policies[0];
        }
        for (; at < count && s->items[parts[at].item].block == (uint32_t)i; at++) {
            o->blocks[made] = *own;
            o->blocks[made].remat = o->menus[i].policies[s->items[parts[at].item].policy];
            o->blocks[made++].repeat = parts[at].steps * own->unit;
        }
    }
    o->model.block_count = (int)made;
    return hb_lower_order(o->lower, &o->model);
}

bool hb_segment_in_order(const struct hb_segment *s, const struct hb_part *parts, uint32_t count)
{
    return !s->orders || order_of(s, parts, count) == s->orders->own;
}

/* Each item whole, the other blocks under their first ones. */
static void find_own(const struct hb_segment *s)
{
    struct hb_segment_orders *o = s->orders;
    struct hb_part parts[HB_PARTS_MAX];
    uint32_t votes[MOST_ORDERS] = {0}, most = 0;
    for (uint32_t i = 0; i < s->item_count; i++) {
        uint32_t count = 0;
        for (int b = 0; b < o->spec->model.block_count; b++) {
            uint32_t first = s->first_item[b];
            if (first == s->first_item[b + 1])
                continue;
            uint32_t item = s->items[i].block == (uint32_t)b ? i : first;
            parts[count++] = (struct hb_part){item, hb_block_steps(&o->spec->model.blocks[b])};
        }
        int order = order_of(s, parts, count);
        if (++votes[order] > most) {
            most = votes[order];
            o->own = order;
        }
    }
}

int hb_segment_orders_open(struct hb_arena *arena, const struct hb_spec *spec,
                           const struct hb_menu *menus, struct hb_segment *s)
{
    struct hb_diag diag;
    if (spec->compiler != HB_XLA_TPU)
        return HB_OWN_ORDER;
    struct hb_segment_orders *o = hb_arena_alloc(arena, 1, sizeof *o);
    size_t room = (size_t)spec->model.block_count + HB_PARTS_MAX;
    hb_diag_init(&diag, arena);
    o->spec = spec;
    o->menus = menus;
    o->model = spec->model;
    o->blocks = hb_arena_alloc(arena, room, sizeof *o->blocks);
    o->model.blocks = o->blocks;
    o->lower = hb_lower_orders_open(arena, &diag, spec);
    s->orders = o;
    find_own(s);
    return o->own + 1;
}
