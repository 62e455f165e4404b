/* Whether the sums are what the engine finds: every item is tried whole and split, and of a floor
 * the form of its program. */
#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "sim/engine/lend.h"
#include "sim/engine/run.h"
#include "sim/graph/link.h"
#include "solver/brute.h"
#include "solver/replay.h"
#include "solver/segment_build.h"
#include "solver/segment_order.h"
#include "solver/space.h"

/* The configuration of these parts. */
static bool lower_parts(struct hb_building *w, const struct hb_part *parts, uint32_t count,
                        struct hb_program *out)
{
    struct hb_run runs[HB_PARTS_MAX];
    struct hb_spec spec;
    struct hb_diag diag;
    uint32_t made = hb_brute_runs(w->s, w->spec, parts, count, runs);
    hb_space_parts_spec(w->arena, w->spec, w->menus, runs, made, &spec);
    hb_diag_init(&diag, w->arena);
    return hb_link_lower_in(w->arena, &diag, w->link, &spec, out);
}

/* Policies of several blocks, or one in another order than the sample. */
static bool is_joint(const struct hb_building *w, uint32_t leader)
{
    const struct hb_segment *s = w->s;
    return s->items[0].block != s->items[s->item_count - 1].block ||
           w->order[leader] != w->order[0];
}

/* What of two programs is compared: of one block's policies, which come in turn as ever, the loss
 * and the backward pass. */
struct form {
    const struct hb_building *w;
    const struct hb_program *p;
    bool *is_part; /* by group; null: a program without groups */
    bool all;
};

/* The next op that does something, of the ends or of a group that is among the parts. */
static uint32_t next_op(const struct form *f, uint32_t at)
{
    for (; at < f->p->op_count; at++) {
        const struct hb_op *op = &f->p->ops[at];
        uint32_t owner = f->is_part ? f->w->o.op_owner[at] : HB_ENDS;
        bool looked = f->all || op->phase == HB_PHASE_LOSS || op->phase == HB_PHASE_BACKWARD;
        if (op->kind != HB_OP_MARK && looked && (owner == HB_ENDS || f->is_part[owner]))
            return at;
    }
    return at;
}

/* Whether the parts' program has the sample's ops in the sample's order, of the ends no more. Where
 * the first block's policy decides on it, or policies of several blocks together, peaks may agree
 * for these parts and not for others (32 layers on v5e, dots_no_batch first: the head's gradient
 * comes after the layers, and live bytes were 2 % too low where the peak is there). */
static bool has_form(const struct hb_building *w, const struct hb_part *parts, uint32_t count,
                     const struct hb_program *p)
{
    bool *is_part = hb_arena_alloc(w->arena, w->pair.group_count, sizeof *is_part);
    for (uint32_t i = 0; i < count; i++)
        is_part[parts[i].item] = true;
    bool all = is_joint(w, parts[0].item);
    struct form sample = {w, &w->a, is_part, all}, own = {w, p, NULL, all};
    uint32_t at = next_op(&own, 0);
    for (uint32_t i = next_op(&sample, 0); i < w->a.op_count; i = next_op(&sample, i + 1)) {
        const struct hb_op *op = &w->a.ops[i];
        bool ends = w->o.op_owner[i] == HB_ENDS;
        bool same = at < p->op_count && p->ops[at].kind == op->kind &&
                    (!ends || hb_str_same(p->ops[at].name, op->name));
        if (!same && !ends)
            return false;
        at = same ? next_op(&own, at + 1) : at;
    }
    return at == p->op_count;
}

/* Whether the engine finds for these parts what the sums say. */
static bool check_parts(struct hb_building *w, const struct hb_part *parts, uint32_t count)
{
    int64_t replayed_ns = w->s->replay ? hb_replay_bound_ns(w->s->replay, parts, count) : 0;
    struct hb_arena_mark mark = hb_arena_mark(w->arena);
    struct hb_program p;
    struct hb_memory m;
    struct hb_price price;
    bool ok = lower_parts(w, parts, count, &p);
    ok = ok && has_form(w, parts, count, &p);
    if (ok) {
        hb_run_memory_live(w->arena, &p, &m);
        hb_segment_price(w->s, parts, count, &price);
        int64_t most =
            price.live_bytes + hb_lend_room(w->arena, &p, m.live, m.live_count, INT32_MAX);
        ok = price.host_bytes == m.host_bytes && price.live_bytes <= m.peak_bytes &&
             m.peak_bytes <= (p.outputs_lend ? most : price.live_bytes);
    }
    if (ok && w->s->replay) {
        int64_t step_ns = hb_run_step_ns(w->arena, &p, w->device);
        ok = price.bound_ns <= step_ns && replayed_ns <= step_ns;
    }
    hb_arena_rewind(w->arena, mark);
    return ok;
}

/* Parts of which `item` is one; the other blocks are under their first items. With a rest: half of
 * its block's steps, the others under that item. Returns their number; 0 where the block cannot be
 * split so. */
static uint32_t parts_beside(const struct hb_building *w, uint32_t item, uint32_t rest,
                             struct hb_part *parts)
{
    bool split = rest != item;
    const struct hb_segment *s = w->s;
    uint32_t count = 0;
    for (int i = 0; i < w->spec->model.block_count; i++) {
        int32_t steps = hb_block_steps(&w->spec->model.blocks[i]), some = steps / 2;
        if (s->first_item[i] == s->first_item[i + 1])
            continue;
        bool own = s->items[item].block == (uint32_t)i;
        if (!own || !split) {
            parts[count++] = (struct hb_part){own ? item : s->first_item[i], steps};
            continue;
        }
        while (some > 0 && !(s->admits[some] && s->admits[steps - some]))
            some--;
        if (some == 0 || rest == s->first_item[i + 1])
            return 0;
        parts[count++] = (struct hb_part){item, some};
        parts[count++] = (struct hb_part){rest, steps - some};
    }
    return count;
}

uint32_t hb_building_whole(const struct hb_building *w, uint32_t item, struct hb_part *parts)
{
    return parts_beside(w, item, item, parts);
}

static uint32_t parts_with(const struct hb_building *w, uint32_t item, bool split,
                           struct hb_part *parts)
{
    return parts_beside(w, item, item + split, parts);
}

static bool check_ordered(struct hb_building *w, const struct hb_part *parts, uint32_t count)
{
    return hb_segment_in_order(w->s, parts, count) && check_parts(w, parts, count);
}

/* Of an item and one behind it: the next, or the first that may be last and is in the segment's
 * order. */
static uint32_t find_split(const struct hb_building *w, uint32_t item, struct hb_part *parts)
{
    const struct hb_segment *s = w->s;
    uint32_t end = s->first_item[s->items[item].block + 1], k = item + 1;
    while (k < end && s->odd_last[k])
        k++;
    uint32_t count = parts_beside(w, item, k, parts);
    for (k++; k < end && count && !hb_segment_in_order(s, parts, count); k++)
        if (!s->odd_last[k])
            count = parts_beside(w, item, k, parts);
    return count;
}

/* One that is odd alone may be so for what the last layers' policy decides, whatever comes before
 * (phi-4 over 2 of v5e in two chunks, layer inputs and attention outputs on the host: the stacks
 * that turn there do so before the last norm's gradient, those of a run that others follow behind
 * it): it is tried behind one that is not odd. */
static void check_last(struct hb_building *w, uint32_t item)
{
    struct hb_segment *s = w->s;
    struct hb_part parts[HB_PARTS_MAX];
    for (uint32_t i = s->first_item[s->items[item].block]; i < item; i++) {
        uint32_t count = s->odd_whole[i] ? 0 : parts_beside(w, i, item, parts);
        if (count && hb_segment_in_order(s, parts, count)) {
            s->odd_last[item] = !check_parts(w, parts, count);
            return;
        }
    }
}

/* Whether the other blocks' items are what the sums say where this one of the first block leads. */
static bool leads(struct hb_building *w, uint32_t leader)
{
    const struct hb_segment *s = w->s;
    struct hb_part parts[HB_PARTS_MAX];
    for (uint32_t i = s->first_item[s->items[leader].block + 1]; i < s->item_count; i++) {
        for (int split = 0; split < 2; split++) {
            uint32_t count = parts_with(w, i, split, parts);
            parts[0].item = leader;
            bool odd = s->odd_whole[i];
            if (split && count)
                odd = hb_segment_is_odd(s, i, i + 1);
            if (count && !odd && !check_ordered(w, parts, count))
                return false;
        }
    }
    return true;
}

/* The first block's policy decides on the order of all: each of those is tried that is not the
 * sample's (seeds 702703, 1000727: two blocks' transposed stacks where the first one's layers keep
 * nothing). */
static void check_leaders(struct hb_building *w)
{
    struct hb_segment *s = w->s;
    enum { UNKNOWN, LEADS, FAILS } verdicts[HB_LINK_ORDERS] = {UNKNOWN};
    uint32_t end = s->first_item[s->items[0].block + 1];
    for (uint32_t i = 1; i < end && end < s->item_count; i++) {
        if (w->order[i] == w->order[0])
            continue;
        if (!s->odd_whole[i] && verdicts[w->order[i]] == UNKNOWN)
            verdicts[w->order[i]] = leads(w, i) ? LEADS : FAILS;
        if (s->odd_whole[i] || verdicts[w->order[i]] == FAILS)
            s->odd_whole[i] = s->odd_split[i] = true;
    }
}

/* Two that are both odd where they are alone may be so together, though each beside its next is not
 * (32 layers on v5e, 11 under policy none and the rest under dots_no_batch: 0.1 % less than the
 * sums say). */
static void check_pairs(struct hb_building *w)
{
    struct hb_segment *s = w->s;
    struct hb_part parts[HB_PARTS_MAX];
    for (uint32_t i = 0; i < s->item_count; i++)
        for (uint32_t k = i + 2; k < s->first_item[s->items[i].block + 1]; k++)
            if (s->odd_whole[i] && s->odd_whole[k] && !hb_segment_is_odd(s, i, k)) {
                uint32_t count = parts_beside(w, i, k, parts);
                bool tried = count > 0 && hb_segment_in_order(s, parts, count);
                s->odd_split[i] = tried && !check_parts(w, parts, count);
            }
}

static bool check_items(struct hb_building *w)
{
    struct hb_segment *s = w->s;
    struct hb_part parts[HB_PARTS_MAX] = {{0}};
    bool any = false;
    for (uint32_t i = 0; i < s->item_count; i++) {
        s->odd_whole[i] = !check_ordered(w, parts, hb_building_whole(w, i, parts));
        if (s->odd_whole[i])
            check_last(w, i);
    }
    for (uint32_t i = 0; i < s->item_count; i++) {
        uint32_t count = find_split(w, i, parts);
        s->odd_split[i] = count > 0 && !check_ordered(w, parts, count);
        any = any || !s->odd_whole[i] || (count > 0 && !s->odd_split[i]);
    }
    check_pairs(w);
    check_leaders(w);
    return any;
}

/* The same ops in the same order, groups that only make up the number left out. */
static bool check_form(struct hb_building *w)
{
    struct hb_spec floor = hb_segment_under(w->arena, w->spec, hb_segment_floor_policy());
    struct hb_program p;
    uint32_t at = 0;
    if (!hb_building_lower(w, &floor, HB_FLOOR_WHOLE, &p))
        return false;
    for (uint32_t i = 0; i < w->a.op_count; i++) {
        uint32_t owner = w->o.op_owner[i];
        if (owner < HB_ENDS && owner >= w->s->item_count)
            continue;
        if (at == p.op_count || p.ops[at].kind != w->a.ops[i].kind ||
            p.ops[at].stream != w->a.ops[i].stream)
            return false;
        at++;
    }
    struct hb_live *live;
    uint32_t count = hb_live_find(w->arena, &p, &live);
    w->s->lent_bytes = hb_lend_room(w->arena, &p, live, count, INT32_MAX);
    const bool *optional = hb_segment_optional_ops(w->arena, &p);
    bool accumulates = w->spec->batch.accumulate > 1;
    w->s->scratch_bytes = hb_segment_scratch_bytes(&p, live, count, optional, accumulates);
    return at == p.op_count;
}

bool hb_building_check(struct hb_building *w)
{
    if (w->s->timed && !w->floor)
        w->s->replay = hb_replay_open(w->arena, w->s);
    bool ok = w->floor ? check_form(w) : w->untried || check_items(w);
    if (!ok)
        w->why = "a program whose form follows from the whole model";
    return ok;
}
