/* Whose each root buffer is, and its bytes: as many as the engine counts for it, aligned as there
 * (one byte is run through it to see how), the largest of what lies in its place. */
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/engine/run.h"
#include "solver/segment_build.h"

/* --- bytes by steps --- */

static int64_t probe_bytes(struct hb_building *w, bool argument, enum hb_space space)
{
    struct hb_program p;
    struct hb_memory m;
    hb_program_init(&p, w->arena, "alignment", w->spec->compiler);
    struct hb_buf one = {.name = "one byte",
                         .why = "",
                         .bytes = 1,
                         .plain_bytes = 1,
                         .alias_of = HB_NONE,
                         .space = space,
                         .argument = argument};
    uint32_t buf = hb_program_add_buf(&p, one);
    hb_program_add_op(&p, (struct hb_op){.name = "write", .start = HB_NONE});
    hb_program_write(&p, buf);
    hb_run_memory_live(w->arena, &p, &m);
    return space == HB_SPACE_HOST ? m.host_bytes : argument ? m.argument_bytes : m.live_temp_bytes;
}

static int64_t align_of(const struct hb_building *w, uint32_t root)
{
    bool host = w->a.bufs[root].space == HB_SPACE_HOST;
    if (host)
        return w->heap_align[HB_BYTES_HOST];
    return w->is_fixed[root] ? w->leaf_align : w->heap_align[HB_BYTES_DEVICE];
}

bool hb_building_moves(const struct hb_building *w, uint32_t root)
{
    for (uint32_t i = root; i != HB_NONE; i = w->next_alias[i])
        if (hb_sized_moves(&w->sized, i))
            return true;
    return false;
}

int64_t hb_building_still_bytes(const struct hb_building *w, uint32_t root)
{
    int64_t bytes = 0;
    for (uint32_t i = root; i != HB_NONE; i = w->next_alias[i])
        bytes = w->a.bufs[i].bytes > bytes ? w->a.bufs[i].bytes : bytes;
    return hb_round_up(bytes, align_of(w, root));
}

const int64_t *hb_building_moving_bytes(struct hb_building *w, uint32_t root)
{
    if (w->moving[root])
        return w->moving[root];
    int64_t align = align_of(w, root);
    const int64_t *first = hb_sized_bytes(&w->sized, root, align);
    int64_t *own = NULL;
    for (uint32_t i = w->next_alias[root]; i != HB_NONE; i = w->next_alias[i]) {
        const int64_t *more = hb_sized_bytes(&w->sized, i, align);
        if (more == first)
            continue;
        if (!own) {
            own = hb_arena_alloc(w->arena, (size_t)w->s->max_steps + 1, sizeof *own);
            memcpy(own, first, ((size_t)w->s->max_steps + 1) * sizeof *own);
            first = own;
        }
        for (int64_t n = w->s->least_steps; n <= w->s->max_steps; n++)
            own[n] = more[n] > own[n] ? more[n] : own[n];
    }
    w->moving[root] = first;
    return first;
}

/* --- roots by owner --- */

static void link_aliases(struct hb_building *w)
{
    const struct hb_program *p = &w->a;
    w->next_alias = hb_arena_alloc(w->arena, p->buf_count, sizeof *w->next_alias);
    w->is_fixed = hb_arena_alloc(w->arena, p->buf_count, sizeof *w->is_fixed);
    w->moving = hb_arena_alloc(w->arena, p->buf_count, sizeof *w->moving);
    for (uint32_t i = 0; i < p->buf_count; i++)
        w->next_alias[i] = HB_NONE;
    for (uint32_t i = p->buf_count; i-- > 0;) {
        uint32_t root = w->o.root_of[i];
        w->is_fixed[root] = w->is_fixed[root] || p->bufs[i].argument || p->bufs[i].output;
        if (root == i)
            continue;
        w->next_alias[i] = w->next_alias[root];
        w->next_alias[root] = i;
    }
}

static void sort_roots(struct hb_building *w)
{
    uint32_t groups = w->o.pair.group_count;
    w->first_root = hb_arena_alloc(w->arena, (size_t)groups + 2, sizeof *w->first_root);
    w->roots_of = hb_arena_alloc(w->arena, w->o.root_count, sizeof *w->roots_of);
    uint32_t *at = w->first_root;
    for (uint32_t i = 0; i < w->o.root_count; i++) {
        uint32_t owner = w->o.roots[i].owner == HB_ENDS ? groups : w->o.roots[i].owner;
        at[owner + 1]++;
    }
    for (uint32_t g = 0; g <= groups; g++)
        at[g + 1] += at[g];
    uint32_t *fill = hb_arena_alloc(w->arena, (size_t)groups + 1, sizeof *fill);
    for (uint32_t i = 0; i < w->o.root_count; i++) {
        uint32_t owner = w->o.roots[i].owner == HB_ENDS ? groups : w->o.roots[i].owner;
        w->roots_of[at[owner] + fill[owner]++] = i;
    }
}

int hb_building_kind(const struct hb_building *w, uint32_t root)
{
    return w->a.bufs[root].space == HB_SPACE_HOST ? HB_BYTES_HOST : HB_BYTES_DEVICE;
}

/* Not in a floor: what policies save, stacks made ready for gathers (with remat none XLA:GPU reads
 * those of kept casts instead), and what an update makes for itself, one stack after another: a
 * block in two runs has two smaller ones (muon's iterates). */
bool hb_building_counts(const struct hb_building *w, uint32_t root)
{
    const struct hb_buf *b = &w->a.bufs[root];
    bool varies = b->category == HB_CAT_SAVED || b->category == HB_CAT_COMMUNICATION;
    varies = varies || (b->category == HB_CAT_OPTIMIZER && !w->is_fixed[root]);
    return b->space != HB_SPACE_CHIP && !(w->floor && varies);
}

bool hb_building_is_static(const struct hb_building *w, uint32_t root)
{
    return w->is_fixed[root] && hb_building_kind(w, root) == HB_BYTES_DEVICE;
}

static void find_lends(struct hb_building *w)
{
    struct hb_lend_slot *slots;
    struct hb_live *live;
    if (!w->a.outputs_lend || w->floor)
        return;
    uint32_t count = hb_live_find(w->arena, &w->a, &live);
    count = hb_lend_slots(w->arena, &w->a, live, count, &slots);
    w->lends = hb_arena_alloc(w->arena, w->a.buf_count, sizeof *w->lends);
    for (uint32_t i = 0; i < count; i++)
        w->lends[slots[i].buf] = slots[i];
}

bool hb_building_lends(const struct hb_building *w, uint32_t root, uint32_t slot)
{
    const struct hb_slot *q = &w->s->slots[slot];
    return w->lends && hb_lend_bytes(&w->lends[root]) > 0 &&
           w->lends[root].after + 1 < (int32_t)q->end_op &&
           w->lends[root].until >= (int32_t)q->first_op;
}

void hb_building_find_roots(struct hb_building *w)
{
    w->leaf_align = probe_bytes(w, true, HB_SPACE_HBM);
    w->heap_align[HB_BYTES_DEVICE] = probe_bytes(w, false, HB_SPACE_HBM);
    w->heap_align[HB_BYTES_HOST] = probe_bytes(w, false, HB_SPACE_HOST);
    link_aliases(w);
    sort_roots(w);
    find_lends(w);
}
