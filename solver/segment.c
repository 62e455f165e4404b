/* Tables of bytes and times by number of layers: see segment.h. */
#include "solver/segment.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/engine/run.h"
#include "sim/ir/lower.h"
#include "solver/replay.h"
#include "solver/sized.h"
#include "solver/step_bound.h"

/* Trip counts of the two programs: those of the second are beyond a tile, so that no padding makes
 * the two look alike. Nested scans cut steps at the largest divisor up to the root: primes, the
 * outer one below the inner ones, are cut as wanted. */
enum { LEAST_INNER_A = 3, FIRST_INNER_B = 129, OUTER_A = 2, OUTER_B = 131 };

struct build {
    struct hb_arena *arena;
    const struct hb_spec *spec;
    const struct hb_menu *menus;
    const struct hb_device *device;
    struct hb_segment *s;
    const char *why;
    struct hb_program a;
    struct hb_program b;
    struct hb_outline_pair pair;
    struct hb_outline o;
    struct hb_sized sized;
    int64_t heap_align[HB_BYTES_KINDS];
    int64_t leaf_align;
    bool *is_fixed;         /* by root: argument or output */
    uint32_t *next_alias;   /* by buffer: the next of the same root; HB_NONE */
    uint32_t *roots_of;     /* roots sorted by owner, groups first, ends last */
    uint32_t *first_root;   /* by group (ends: group_count) */
    const int64_t **moving; /* by root: its table, once it was asked for */
    struct hb_item *items;
    bool floor;
};

/* --- the pair of programs --- */

/* Whether a block's layers make a loop: else it is part of the ends. */
static bool is_looped(const struct build *w, int block)
{
    return w->sized.admits[hb_block_steps(&w->spec->model.blocks[block])];
}

static uint32_t count_items(struct build *w)
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

static void choose_trips(struct build *w, uint32_t groups)
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
                                       .outer_b = nested ? OUTER_B : 0};
    if (!nested && w->spec->stack.unroll >= LEAST_INNER_A)
        w->pair.inner_a = w->spec->stack.unroll + 1;
}

static struct hb_block make_block(const struct build *w, int block, uint32_t policy, uint32_t group,
                                  bool second)
{
    struct hb_block b = w->spec->model.blocks[block];
    int64_t inner = second ? w->pair.inner_b[group] : w->pair.inner_a;
    int64_t outer = second ? w->pair.outer_b : w->pair.outer_a;
    b.remat = w->menus[block].policies[policy];
    b.repeat = inner * (outer ? outer : 1) * b.unit;
    return b;
}

/* Each item once, blocks without items as they are; where there is but one item, once more, since
 * outlines want two groups. */
static bool lower_one(struct build *w, bool second, struct hb_program *out)
{
    struct hb_spec spec = *w->spec;
    struct hb_diag diag;
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
            blocks[at++] = make_block(w, i, k, group++, second);
        if (w->s->item_count == 1)
            blocks[at++] = make_block(w, i, 0, group++, second);
    }
    spec.model.blocks = blocks;
    spec.model.block_count = (int)at;
    spec.stack.outer = 0;
    spec.sample_of = w->spec;
    hb_diag_init(&diag, w->arena);
    return hb_lower(w->arena, &diag, &spec, out);
}

static bool make_outline(struct build *w)
{
    w->s->item_count = count_items(w);
    if (w->s->item_count == 0) {
        w->why = "no layers that make a loop";
        return false;
    }
    choose_trips(w, w->s->item_count < 2 ? 2 : w->s->item_count);
    if (!lower_one(w, false, &w->a) || !lower_one(w, true, &w->b)) {
        w->why = "sizes beyond the range";
        return false;
    }
    if (w->a.argument_extra_bytes != w->b.argument_extra_bytes) {
        w->why = "index tables that follow the layers";
        return false;
    }
    return hb_outline_find(w->arena, &w->pair, &w->o, &w->why);
}

/* --- bytes by steps --- */

static int64_t probe_bytes(struct build *w, bool argument, enum hb_space space)
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

static int64_t align_of(const struct build *w, uint32_t root)
{
    bool host = w->a.bufs[root].space == HB_SPACE_HOST;
    if (host)
        return w->heap_align[HB_BYTES_HOST];
    return w->is_fixed[root] ? w->leaf_align : w->heap_align[HB_BYTES_DEVICE];
}

static bool root_moves(const struct build *w, uint32_t root)
{
    for (uint32_t i = root; i != HB_NONE; i = w->next_alias[i])
        if (hb_sized_moves(&w->sized, i))
            return true;
    return false;
}

/* Of a root that stays as it is. */
static int64_t still_bytes(const struct build *w, uint32_t root)
{
    int64_t bytes = 0;
    for (uint32_t i = root; i != HB_NONE; i = w->next_alias[i])
        bytes = w->a.bufs[i].bytes > bytes ? w->a.bufs[i].bytes : bytes;
    return hb_round_up(bytes, align_of(w, root));
}

/* Of a root that moves, by steps: the largest of its aliases. */
static const int64_t *moving_bytes(struct build *w, uint32_t root)
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

static void link_aliases(struct build *w)
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

static void sort_roots(struct build *w)
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

static int kind_of(const struct build *w, uint32_t root)
{
    return w->a.bufs[root].space == HB_SPACE_HOST ? HB_BYTES_HOST : HB_BYTES_DEVICE;
}

/* Whether it is counted at all, and whether for the whole step. Not in a floor: what policies save,
 * and stacks made ready for gathers (with remat none XLA:GPU reads those of kept casts instead). */
static bool counts(const struct build *w, uint32_t root)
{
    const struct hb_buf *b = &w->a.bufs[root];
    bool varies = b->category == HB_CAT_SAVED || b->category == HB_CAT_COMMUNICATION;
    return b->space != HB_SPACE_CHIP && !(w->floor && varies);
}

static bool is_static(const struct build *w, uint32_t root)
{
    return w->is_fixed[root] && kind_of(w, root) == HB_BYTES_DEVICE;
}

/* --- the ends --- */

/* Adds a root of the ends to what lives at each op. */
static bool add_end(struct build *w, const struct hb_outline_root *r, int64_t *const *at)
{
    int32_t last = (int32_t)w->a.op_count - 1;
    int kind = kind_of(w, r->buf);
    if (!counts(w, r->buf))
        return true;
    if (root_moves(w, r->buf)) {
        w->why = "a buffer of the ends that follows the layers";
        return false;
    }
    int64_t bytes = still_bytes(w, r->buf);
    if (is_static(w, r->buf)) {
        w->s->fixed[kind] += bytes;
        return true;
    }
    at[kind][r->start < 0 ? 0 : r->start] += bytes;
    at[kind][(r->end > last ? last : r->end) + 1] -= bytes;
    return true;
}

/* The most of the ends in a slot; in turns of the groups it must not change. */
static bool sum_slot(struct build *w, uint32_t slot, int kind, const int64_t *at)
{
    const struct hb_slot *q = &w->s->slots[slot];
    int64_t *most = &w->s->live[kind][slot];
    for (uint32_t t = q->first_op; t < q->end_op; t++) {
        if (q->turns && at[t] != at[q->first_op]) {
            w->why = "a buffer of the ends that comes or goes in a turn of the layers";
            return false;
        }
        *most = at[t] > *most ? at[t] : *most;
    }
    return true;
}

static bool sum_ends(struct build *w)
{
    uint32_t groups = w->o.pair.group_count, ops = w->a.op_count;
    struct hb_segment *s = w->s;
    int64_t *at[HB_BYTES_KINDS];
    for (int k = 0; k < HB_BYTES_KINDS; k++) {
        at[k] = hb_arena_alloc(w->arena, (size_t)ops + 2, sizeof *at[k]);
        s->live[k] = hb_arena_alloc(w->arena, s->slot_count, sizeof *s->live[k]);
    }
    s->fixed[HB_BYTES_DEVICE] = w->a.argument_extra_bytes;
    for (uint32_t i = w->first_root[groups]; i < w->first_root[groups + 1]; i++)
        if (!add_end(w, &w->o.roots[w->roots_of[i]], at))
            return false;
    for (int k = 0; k < HB_BYTES_KINDS; k++) {
        for (uint32_t t = 1; t < ops; t++)
            at[k][t] += at[k][t - 1];
        for (uint32_t q = 0; q < s->slot_count; q++)
            if (!sum_slot(w, q, k, at[k]))
                return false;
    }
    return true;
}

/* --- the groups --- */

/* Where a root is alive in a slot, seen from its owner's turn. */
struct stay {
    bool state[HB_PART_STATES]; /* OWN: throughout the turn */
    bool partial;               /* a part of the turn, from .. to (ops of it) */
    uint32_t from;
    uint32_t to;
    bool broken; /* comes or goes in another's turn */
};

static struct stay find_stay(const struct build *w, const struct hb_outline_root *r, uint32_t slot,
                             uint32_t group)
{
    const struct hb_slot *q = &w->o.slots[slot];
    struct stay stay = {{false}, false, 0, 0, false};
    int64_t first = q->first_op, last = (int64_t)q->end_op - 1, start = r->start, end = r->end;
    if (start > last || end < first)
        return stay;
    bool whole = start <= first && end >= last;
    if (!q->turns) {
        stay.state[HB_PART_OWN] = whole;
        stay.broken = !whole;
        return stay;
    }
    size_t at = (size_t)slot * w->o.pair.group_count + group;
    int64_t own = w->o.turn_first[at], own_end = w->o.turn_end[at];
    if (own == own_end) { /* no turn here: alive throughout, or not at all */
        stay.state[HB_PART_BEFORE] = stay.state[HB_PART_AFTER] = whole;
        stay.broken = !whole;
        return stay;
    }
    stay.state[HB_PART_BEFORE] = start < first || (start < own && start == first);
    stay.state[HB_PART_AFTER] = end > last || (end >= own_end && end == last);
    stay.broken = (start > first && start < own) || start >= own_end || end < own ||
                  (end >= own_end && end < last);
    stay.state[HB_PART_OWN] = start <= own && end >= own_end - 1;
    stay.partial = !stay.state[HB_PART_OWN];
    stay.from = (uint32_t)((start > own ? start : own) - own);
    stay.to = (uint32_t)((end < own_end - 1 ? end : own_end - 1) - own);
    return stay;
}

/* The highest point of one group's turn, by steps. Roots that are alive throughout are added by
 * the caller. */
struct profile {
    struct build *w;
    uint32_t op_count;
    int64_t *still;       /* [op]: what begins there, less what ended before */
    uint32_t *begin;      /* [op]: list of moving roots that begin there */
    uint32_t *finish;     /* [op]: list of those that end there */
    uint32_t *next_begin; /* by place in the list of moving roots */
    uint32_t *next_finish;
    const int64_t **moving;
    uint32_t moving_count;
    bool any;
};

static struct profile open_profile(struct build *w, uint32_t ops, uint32_t roots)
{
    struct profile f = {.w = w, .op_count = ops};
    f.still = hb_arena_alloc(w->arena, (size_t)ops + 1, sizeof *f.still);
    f.begin = hb_arena_alloc(w->arena, ops, sizeof *f.begin);
    f.finish = hb_arena_alloc(w->arena, ops, sizeof *f.finish);
    f.next_begin = hb_arena_alloc(w->arena, roots, sizeof *f.next_begin);
    f.next_finish = hb_arena_alloc(w->arena, roots, sizeof *f.next_finish);
    f.moving = hb_arena_alloc(w->arena, roots, sizeof *f.moving);
    for (uint32_t i = 0; i < ops; i++)
        f.begin[i] = f.finish[i] = HB_NONE;
    return f;
}

static void add_partial(struct profile *f, uint32_t root, const struct stay *stay)
{
    f->any = true;
    if (!root_moves(f->w, root)) {
        int64_t bytes = still_bytes(f->w, root);
        f->still[stay->from] += bytes;
        f->still[stay->to + 1] -= bytes;
        return;
    }
    uint32_t at = f->moving_count++;
    f->moving[at] = moving_bytes(f->w, root);
    f->next_begin[at] = f->begin[stay->from];
    f->begin[stay->from] = at;
    f->next_finish[at] = f->finish[stay->to];
    f->finish[stay->to] = at;
}

/* Rows begin where tables by steps are wanted (hb_segment_at). */
static void raise_to(const struct hb_segment *s, int64_t *high, const int64_t *now, int64_t still)
{
    for (size_t i = 1; i < hb_segment_row(s); i++) {
        int64_t live = now[i] + still;
        high[i] = live > high[i] ? live : high[i];
    }
}

static void add_row(const struct hb_segment *s, int64_t *to, const int64_t *row)
{
    for (size_t i = 1; i < hb_segment_row(s); i++)
        to[i] += row[i];
}

static void add_table(const struct hb_segment *s, int64_t *to, const int64_t *by_steps,
                      int64_t times)
{
    for (size_t i = 1; i < hb_segment_row(s); i++)
        to[i] += times * by_steps[(size_t)s->least_steps - 1 + i];
}

/* Walks the turn: between two changes of what moves, only the highest sum of the rest counts. */
static void close_profile(struct profile *f, int64_t *own)
{
    const struct hb_segment *s = f->w->s;
    int64_t still = 0, high_still = 0;
    int64_t *now = hb_arena_alloc(f->w->arena, hb_segment_row(s), sizeof *now);
    int64_t *high = hb_arena_alloc(f->w->arena, hb_segment_row(s), sizeof *high);
    for (uint32_t t = 0; t < f->op_count; t++) {
        if (f->begin[t] != HB_NONE) {
            raise_to(s, high, now, high_still);
            for (uint32_t i = f->begin[t]; i != HB_NONE; i = f->next_begin[i])
                add_table(s, now, f->moving[i], 1);
            high_still = 0;
        }
        still += f->still[t];
        high_still = still > high_still ? still : high_still;
        if (f->finish[t] == HB_NONE)
            continue;
        raise_to(s, high, now, high_still);
        for (uint32_t i = f->finish[t]; i != HB_NONE; i = f->next_finish[i])
            add_table(s, now, f->moving[i], -1);
        high_still = still + f->still[t + 1];
    }
    raise_to(s, high, now, high_still);
    add_row(s, own, high);
}

static int64_t *state_table(const struct build *w, struct hb_item *item, int kind, uint32_t slot,
                            int state)
{
    return item->live[kind] +
           ((size_t)slot * HB_PART_STATES + (size_t)state) * hb_segment_row(w->s);
}

/* A row that is being summed up: what moves, and apart from it what does not. */
struct sum {
    int64_t *row;
    int64_t still;
};

static void add_root(struct build *w, struct sum *to, uint32_t root)
{
    if (root_moves(w, root))
        add_table(w->s, to->row, moving_bytes(w, root), 1);
    else
        to->still += still_bytes(w, root);
}

static void close_sum(const struct hb_segment *s, const struct sum *sum)
{
    for (size_t i = 1; i < hb_segment_row(s) && sum->still; i++)
        sum->row[i] += sum->still;
}

/* One group in one slot. */
static bool sum_stay(struct build *w, uint32_t group, uint32_t slot)
{
    struct hb_item *item = &w->items[group];
    size_t at = (size_t)slot * w->o.pair.group_count + group;
    uint32_t ops = w->o.turn_end[at] - w->o.turn_first[at];
    uint32_t first = w->first_root[group], end = w->first_root[group + 1];
    struct profile profiles[HB_BYTES_KINDS];
    struct sum sums[HB_BYTES_KINDS][HB_PART_STATES];
    for (int k = 0; k < HB_BYTES_KINDS && item->live[k]; k++) {
        profiles[k] = open_profile(w, ops, end - first);
        for (int state = 0; state < HB_PART_STATES; state++)
            sums[k][state] = (struct sum){state_table(w, item, k, slot, state), 0};
    }
    for (uint32_t i = first; i < end; i++) {
        const struct hb_outline_root *r = &w->o.roots[w->roots_of[i]];
        if (!counts(w, r->buf) || is_static(w, r->buf))
            continue;
        int kind = kind_of(w, r->buf);
        struct stay stay = find_stay(w, r, slot, group);
        if (stay.broken) {
            w->why = "a buffer of a group that comes or goes in another's turn";
            return false;
        }
        for (int k = 0; k < HB_PART_STATES; k++)
            if (stay.state[k])
                add_root(w, &sums[kind][k], r->buf);
        if (stay.partial)
            add_partial(&profiles[kind], r->buf, &stay);
    }
    for (int k = 0; k < HB_BYTES_KINDS && item->live[k]; k++) {
        for (int state = 0; state < HB_PART_STATES; state++)
            close_sum(w->s, &sums[k][state]);
        if (profiles[k].any)
            close_profile(&profiles[k], sums[k][HB_PART_OWN].row);
    }
    return true;
}

static void sum_fixed(struct build *w, uint32_t group)
{
    struct sum sums[HB_BYTES_KINDS] = {{NULL, 0}};
    for (int k = 0; k < HB_BYTES_KINDS; k++)
        sums[k].row = w->items[group].fixed[k] =
            hb_arena_alloc(w->arena, hb_segment_row(w->s), sizeof(int64_t));
    for (uint32_t i = w->first_root[group]; i < w->first_root[group + 1]; i++) {
        uint32_t root = w->o.roots[w->roots_of[i]].buf;
        if (counts(w, root) && is_static(w, root))
            add_root(w, &sums[kind_of(w, root)], root);
    }
    for (int k = 0; k < HB_BYTES_KINDS; k++)
        close_sum(w->s, &sums[k]);
}

static bool has_host(const struct build *w)
{
    for (uint32_t i = 0; i < w->o.root_count; i++)
        if (w->a.bufs[w->o.roots[i].buf].space == HB_SPACE_HOST)
            return true;
    return false;
}

static bool sum_items(struct build *w)
{
    w->s->has_host = has_host(w);
    struct hb_segment *s = w->s;
    size_t tables = (size_t)s->slot_count * HB_PART_STATES * hb_segment_row(s);
    for (uint32_t g = 0; g < s->item_count; g++) {
        for (int k = 0; k < HB_BYTES_KINDS; k++)
            if (k == HB_BYTES_DEVICE || s->has_host)
                w->items[g].live[k] = hb_arena_alloc(w->arena, tables, sizeof(int64_t));
        sum_fixed(w, g);
        for (uint32_t q = 0; q < s->slot_count; q++)
            if (!sum_stay(w, g, q))
                return false;
    }
    return true;
}

static void name_items(struct build *w)
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

/* --- does it hold --- */

/* The configuration of these parts. Blocks without items stay. */
static bool lower_parts(struct build *w, const struct hb_part *parts, uint32_t count,
                        struct hb_program *out)
{
    struct hb_spec spec = *w->spec;
    struct hb_diag diag;
    uint32_t at = 0, made = 0;
    struct hb_block *blocks =
        hb_arena_alloc(w->arena, count + (size_t)spec.model.block_count, sizeof *blocks);
    for (int i = 0; i < spec.model.block_count; i++) {
        if (!is_looped(w, i)) {
            blocks[made] = w->spec->model.blocks[i];
            blocks[made++].remat = w->menus[i].policies[0];
        }
        for (; at < count && w->s->items[parts[at].item].block == (uint32_t)i; at++, made++) {
            blocks[made] = w->spec->model.blocks[i];
            blocks[made].remat = w->menus[i].policies[w->s->items[parts[at].item].policy];
            blocks[made].repeat = parts[at].steps * blocks[made].unit;
        }
    }
    spec.model.blocks = blocks;
    spec.model.block_count = (int)made;
    hb_diag_init(&diag, w->arena);
    return hb_lower(w->arena, &diag, &spec, out);
}

/* Whether the engine finds for these parts what the sums say. */
static bool check_parts(struct build *w, const struct hb_part *parts, uint32_t count)
{
    int64_t replayed_ns = w->s->replay ? hb_replay_bound_ns(w->s->replay, parts, count) : 0;
    struct hb_arena_mark mark = hb_arena_mark(w->arena);
    struct hb_program p;
    struct hb_memory m;
    struct hb_price price;
    bool ok = lower_parts(w, parts, count, &p);
    if (ok) {
        hb_run_memory_live(w->arena, &p, &m);
        hb_segment_price(w->s, parts, count, &price);
        ok = price.host_bytes == m.host_bytes && price.live_bytes == m.peak_bytes;
    }
    if (ok && w->s->replay) {
        int64_t step_ns = hb_run_step_ns(w->arena, &p, w->device);
        ok = price.bound_ns <= step_ns && replayed_ns <= step_ns;
    }
    hb_arena_rewind(w->arena, mark);
    return ok;
}

/* Parts of which `item` is one; the other blocks are under their first items. With split: half of
 * its block's steps, the rest under the item after it. Returns their number; 0 where the block
 * cannot be split so. */
static uint32_t parts_with(const struct build *w, uint32_t item, bool split, struct hb_part *parts)
{
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
        if (some == 0 || item + 1 == s->first_item[i + 1])
            return 0;
        parts[count++] = (struct hb_part){item, some};
        parts[count++] = (struct hb_part){item + 1, steps - some};
    }
    return count;
}

static bool check_items(struct build *w)
{
    struct hb_segment *s = w->s;
    struct hb_part parts[HB_PARTS_MAX];
    bool any = false;
    for (uint32_t i = 0; i < s->item_count; i++) {
        s->odd_whole[i] = !check_parts(w, parts, parts_with(w, i, false, parts));
        uint32_t count = parts_with(w, i, true, parts);
        s->odd_split[i] = count > 0 && !check_parts(w, parts, count);
        any = any || !s->odd_whole[i] || (count > 0 && !s->odd_split[i]);
    }
    return any;
}

/* The floor's own configuration. */
static bool lower_whole(struct build *w, struct hb_program *out)
{
    struct hb_spec spec = *w->spec;
    struct hb_diag diag;
    size_t count = (size_t)spec.model.block_count;
    struct hb_block *blocks = hb_arena_alloc(w->arena, count, sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = w->spec->model.blocks[i];
        blocks[i].remat = w->menus[i].policies[0];
    }
    spec.model.blocks = blocks;
    hb_diag_init(&diag, w->arena);
    return hb_lower(w->arena, &diag, &spec, out);
}

/* The same ops in the same order, groups that only make up the number left out. */
static bool check_form(struct build *w)
{
    struct hb_program p;
    uint32_t at = 0;
    if (!lower_whole(w, &p))
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
    return at == p.op_count;
}

static bool check_holds(struct build *w)
{
    if (w->s->timed && !w->floor)
        w->s->replay = hb_replay_open(w->arena, w->s);
    bool ok = w->floor ? check_form(w) : check_items(w);
    if (!ok)
        w->why = "a program whose form follows from the whole model";
    return ok;
}

static const struct hb_menu *floor_menus(struct hb_arena *arena, const struct hb_spec *spec)
{
    size_t blocks = (size_t)spec->model.block_count;
    struct hb_menu *menus = hb_arena_alloc(arena, blocks, sizeof *menus);
    struct hb_remat *all = hb_arena_alloc(arena, 1, sizeof *all);
    *all = hb_segment_floor_policy();
    for (size_t i = 0; i < blocks; i++)
        menus[i] = (struct hb_menu){all, 1};
    return menus;
}

/* What the rest of the search asks of the build stays in the arena with it. */
static struct build *open_build(struct hb_arena *arena, const struct hb_segment_ask *ask,
                                struct hb_segment *out)
{
    struct build *w = hb_arena_alloc(arena, 1, sizeof *w);
    const struct hb_spec *spec = ask->spec;
    struct hb_sized sized;
    *out = (struct hb_segment){0};
    hb_sized_init(&sized, arena, spec, &w->o, ask->floor || ask->whole);
    *w = (struct build){.arena = arena,
                        .spec = spec,
                        .s = out,
                        .why = "",
                        .floor = ask->floor,
                        .sized = sized,
                        .device = ask->device,
                        .menus = ask->floor ? floor_menus(arena, spec) : ask->menus};
    return w;
}

/* The tables of bytes. */
static bool sum_bytes(struct build *w)
{
    struct hb_segment *out = w->s;
    out->slots = w->o.slots;
    out->slot_count = w->o.slot_count;
    w->leaf_align = probe_bytes(w, true, HB_SPACE_HBM);
    w->heap_align[HB_BYTES_DEVICE] = probe_bytes(w, false, HB_SPACE_HBM);
    w->heap_align[HB_BYTES_HOST] = probe_bytes(w, false, HB_SPACE_HOST);
    out->least_steps = w->sized.least_steps;
    out->max_steps = w->sized.max_steps;
    out->admits = w->sized.admits;
    name_items(w);
    out->odd_whole = hb_arena_alloc(w->arena, out->item_count, sizeof *out->odd_whole);
    out->odd_split = hb_arena_alloc(w->arena, out->item_count, sizeof *out->odd_split);
    link_aliases(w);
    sort_roots(w);
    return sum_ends(w) && sum_items(w);
}

bool hb_segment_build(struct hb_arena *arena, const struct hb_segment_ask *ask,
                      struct hb_segment *out, const char **out_why)
{
    struct build *w = open_build(arena, ask, out);
    bool ok = ask->spec->mesh[HB_AX_PIPELINE] == 1 && ask->spec->stack.form != HB_FORM_LOOP;
    if (!ok)
        w->why = "a pipeline, or a stack that is not scanned";
    ok = ok && make_outline(w) && sum_bytes(w);
    if (ok && !ask->bytes_only)
        hb_step_bounds(arena, &w->sized, ask, out);
    ok = ok && (ask->unchecked || check_holds(w));
    *out_why = w->why;
    return ok;
}
