/* Orders of configurations: see segment_order.h. */
#include "solver/segment_order.h"

#include "base/arena.h"
#include "base/diag.h"
#include "sim/graph/link.h"
#include "sim/ir/lower.h"
#include "sim/ir/sequence.h"
#include "solver/brute.h"
#include "solver/segment_build.h"
#include "solver/space.h"

enum { MOST_ORDERS = HB_SEQUENCE_KEYS * HB_ORDER_KINDS };

struct hb_segment_orders {
    struct hb_arena *arena;
    struct hb_lower_orders *lower;
    struct hb_link *link;
    const struct hb_spec *spec;
    const struct hb_menu *menus;
    int own;
};

static int order_of(const struct hb_segment *s, const struct hb_part *parts, uint32_t count)
{
    const struct hb_segment_orders *o = s->orders;
    struct hb_run runs[HB_PARTS_MAX];
    struct hb_spec spec;
    struct hb_arena_mark mark = hb_arena_mark(o->arena);
    uint32_t made = hb_brute_runs(s, o->spec, parts, count, runs);
    hb_space_parts_spec(o->arena, o->spec, o->menus, runs, made, &spec);
    int order = hb_lower_order(o->lower, &spec.model);
    if (hb_link_is_inside(o->spec))
        order += HB_SEQUENCE_KEYS * (int)hb_link_layers(o->link, &spec);
    hb_arena_rewind(o->arena, mark);
    return order;
}

void hb_segment_put_order(const struct hb_segment *s, struct hb_spec *spec)
{
    if (!s->orders)
        return;
    spec->as_order = s->orders->own % HB_SEQUENCE_KEYS + 1;
    spec->as_layers = s->orders->own / HB_SEQUENCE_KEYS + 1;
}

bool hb_segment_in_order(const struct hb_segment *s, const struct hb_part *parts, uint32_t count)
{
    return !s->orders || order_of(s, parts, count) == s->orders->own;
}

/* That of most items, each whole. */
static void find_own(const struct hb_building *w)
{
    struct hb_part parts[HB_PARTS_MAX];
    uint32_t votes[MOST_ORDERS] = {0}, most = 0;
    for (uint32_t i = 0; i < w->s->item_count; i++) {
        int order = order_of(w->s, parts, hb_building_whole(w, i, parts));
        if (++votes[order] > most) {
            most = votes[order];
            w->s->orders->own = order;
        }
    }
}

void hb_building_choose_order(struct hb_building *w)
{
    struct hb_diag diag;
    if (w->spec->compiler != HB_XLA_TPU)
        return;
    struct hb_segment_orders *o = hb_arena_alloc(w->arena, 1, sizeof *o);
    hb_diag_init(&diag, w->arena);
    *o = (struct hb_segment_orders){.arena = w->arena,
                                    .lower = hb_lower_orders_open(w->arena, &diag, w->spec),
                                    .link = w->link,
                                    .spec = w->spec,
                                    .menus = w->menus};
    w->s->orders = o;
    find_own(w);
}
