/* XLA's HloRematerialization (xla/hlo/transforms/simplifiers/hlo_rematerialization.cc; XLA:GPU asks
 * for recomputation of single instructions, of XLA:TPU nothing else was seen that frees much), on
 * the program's ops. It walks along the schedule of a computation: the step, or a loop's body.
 * Where more is alive than the limit, one op after another is made again until it is not, or none
 * is left:
 *
 *   op:     0     1     2 *   3     4                     * = too much
 *   value   w     r           .     r                     waits from 1 to 4
 *           w     r         [ w' ]  r                     an op again: before 4, or before the next
 *                                                         use of what it reads, whichever is first
 *
 * Of the candidates the first that was not read so far (it just moves), else the one that frees
 * most (TPU: llama3.1-70b on 128 v6e, the logits bf16[4,8192,128256], 30.8 -> 24.9 GiB). No
 * candidate is what a loop touches, what is handed back, fenced or in another's memory, what the op
 * at hand reads, a kernel's result or a collective's, but for gathers of XLA:TPU's (27 of 28 dumps
 * above the limit). A loop at which it is still too much is walked in its turn, with what is left
 * of the limit; XLA:TPU's not where nothing is left: it makes much again there for nothing. */
#include "sim/ir/again.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/queue.h"
#include "base/ring.h"
#include "base/size.h"
#include "base/str.h"

#include <math.h>

/* xla_tpu_rematerialization_min_size_in_bytes. */
enum { LEAST_BYTES = 10 << 20 };

/* Of an op in the list that grows; the first are the program's own. */
struct item {
    struct hb_op op;
    uint32_t *refs;
    uint32_t touch; /* of its first ref; those of the others follow */
    uint32_t prev, next;
    uint32_t rank; /* place in the program; of what was put before another, that one's */
    uint32_t turn; /* of its unit in the walk over its computation */
    bool moved;    /* it took the place of one that is gone */
    bool tired;    /* as often as is good */
    bool gone;     /* all that read it reads another */
};

struct value {      /* by root */
    int64_t bytes;  /* 0: the caller's */
    uint32_t home;  /* the innermost loop around all that touch it; HB_NONE: the step */
    uint32_t maker; /* its first item */
    bool plain;     /* one op makes it, others of its computation read it, nothing else */
    uint32_t past;  /* in the ring of those that touch it: the last of a unit that began */
    /* in the walk over its home */
    uint32_t left;       /* touches of units that are not over */
    bool seen;           /* a reader began */
    uint32_t dirty;      /* in any: the last walk in which it was overwritten ... */
    uint32_t dirty_turn; /* ... and its turn then */
};

/* A unit of a computation is an op of its own or a loop inside, from its first to its last op. */
struct unit {
    uint32_t first, last;
    uint32_t loop; /* HB_NONE: an op */
};

struct inner {            /* a loop */
    uint32_t first, last; /* items */
    int64_t peak;         /* bytes of its own values */
    bool walked;
};

struct again {
    struct hb_program *p;
    uint32_t *root;
    uint32_t root_cap, value_cap;
    struct hb_rings touches; /* by value, of the items that touch it, in their order */
    struct value *values;
    struct item *items;
    uint32_t item_count, item_cap;
    struct inner *loops;
    uint32_t walks; /* so far */
    bool tpu;       /* what makes less than LEAST_BYTES is left alone, and some loops */
};

/* One walk over a computation. */
struct walk {
    struct again *a;
    uint32_t loop;
    uint32_t number; /* from 1 */
    int64_t limit;
    int64_t now;           /* bytes alive */
    int64_t made;          /* of these what the unit at hand makes */
    struct unit at;        /* at hand */
    uint32_t first, end;   /* items: the computation's first, and the one after its last */
    uint32_t turn;         /* of the unit at hand */
    bool defers;           /* nothing else than copies */
    struct hb_queue queue; /* ops before it, by a price that may be higher now */
};

int64_t hb_again_limit(const struct hb_program *p, int64_t hbm_bytes, bool host)
{
    /* XLA:GPU: 0.8 of the memory less arguments and results, aliases once, and 0.95 of that
     * (gpu_hlo_schedule.cc: GetSchedulerMemoryLimit, xla_gpu_memory_limit_slop_factor; the log of
     * 23 programs). XLA:TPU: 0.95 of the memory (xla_jf_rematerialization_percent_shared_memory_
     * limit) less those, and less room for the program's own text, 0.03 to 0.26 GiB in 40 logs, not
     * known here. XLA:GPU takes the host's tensors for the device's, too (70 dumps). */
    if (hbm_bytes == INT64_MAX)
        return INT64_MAX;
    bool tpu = p->compiler == HB_XLA_TPU;
    int64_t limit = tpu ? hbm_bytes / 20 * 19 : hbm_bytes / 5 * 4, sent = 0;
    for (uint32_t i = 0; i < p->buf_count; i++) {
        const struct hb_buf *b = &p->bufs[i];
        bool own = b->output && !p->bufs[hb_program_root(p, i)].argument;
        if (b->space == HB_SPACE_HBM && (b->argument || own))
            limit -= b->bytes;
        else if (host && b->space != HB_SPACE_HBM && !b->argument && !own)
            sent += b->alias_of == HB_NONE ? b->bytes : 0;
    }
    limit = tpu ? limit : limit / 100 * 95;
    return hb_larger(limit - sent, 0);
}

/* --- what is where --- */

/* Loops are numbered as they open: one that is inside has the higher number. */
static uint32_t join_loops(const struct hb_program *p, uint32_t a, uint32_t b)
{
    while (a != b && a != HB_NONE && b != HB_NONE)
        if (a > b)
            a = p->loops[a].parent;
        else
            b = p->loops[b].parent;
    return a == b ? a : HB_NONE;
}

static uint32_t ref_count(const struct item *x)
{
    return x->op.read_count + x->op.write_count;
}

static struct value *value_of(const struct again *a, const struct item *x, uint32_t ref)
{
    return &a->values[a->root[x->refs[ref]]];
}

/* The item of the last unit that began and touches a value; of the first to come. HB_NONE: none. */
static uint32_t last_user(const struct again *a, const struct value *v)
{
    return a->touches.links[v->past].owner;
}

static uint32_t next_user(const struct again *a, const struct value *v)
{
    return a->touches.links[a->touches.links[v->past].next].owner;
}

static void find_homes(struct again *a)
{
    for (uint32_t i = 0; i < a->item_count; i++) {
        struct item *x = &a->items[i];
        x->touch = a->touches.count;
        for (uint32_t r = 0; r < ref_count(x); r++) {
            struct value *v = value_of(a, x, r);
            v->home = v->maker == HB_NONE ? x->op.loop : join_loops(a->p, v->home, x->op.loop);
            v->maker = v->maker == HB_NONE ? i : v->maker;
            v->past = hb_ring_add(&a->touches, i, v->past);
        }
    }
}

static bool is_fetch(const struct item *x)
{
    return x->op.stream == HB_STREAM_H2D;
}

/* XLA:TPU's are made asynchronous later (qwen3-32b over 64 v5e, chunks: all-gather.444.remat,
 * bf16[5120,151936], for the second product of a chunk's gradient). */
static bool is_gather(const struct again *a, const struct item *x)
{
    return a->tpu && x->op.kind == HB_OP_ALL_GATHER && x->op.start == HB_NONE;
}

/* What a step's collective reads may wait: XLA:TPU's are not begun yet (70B in nested scans over
 * 256 v5e: fusion.247.remat, f32[8192,128256], right before all-reduce.10; not what a loop sums).
 */
static bool may_be_summed(const struct again *a, const struct item *x)
{
    return a->tpu && x->op.loop == HB_NONE && x->op.start == HB_NONE;
}

static void find_plain(struct again *a)
{
    for (uint32_t i = 0; i < a->item_count; i++) {
        const struct item *x = &a->items[i];
        bool apart = x->op.kind == HB_OP_DONE || x->op.stream != HB_STREAM_COMPUTE;
        for (uint32_t r = 0; r < ref_count(x); r++) {
            struct value *v = value_of(a, x, r);
            bool makes = r >= x->op.read_count;
            bool held = apart && (makes || !may_be_summed(a, x));
            if (x->op.loop != v->home || (held && !is_fetch(x) && !is_gather(a, x)) ||
                makes != (v->maker == i) || v->bytes == 0)
                v->plain = false;
        }
    }
}

static void fill_values(struct again *a)
{
    const struct hb_program *p = a->p;
    for (uint32_t i = 0; i < p->buf_count; i++) {
        const struct hb_buf *b = &p->bufs[i];
        struct value *v = &a->values[a->root[i]];
        if (a->root[i] == i)
            *v = (struct value){.home = HB_NONE, .maker = HB_NONE, .plain = !b->fenced, .past = i};
        hb_ring_new(&a->touches, HB_NONE); /* its number is i */
        v->bytes = hb_larger(v->bytes, b->bytes);
    }
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->bufs[i].argument || p->bufs[i].output || p->bufs[i].space != HB_SPACE_HBM)
            a->values[a->root[i]].bytes = 0;
}

static void fill_items(struct again *a)
{
    const struct hb_program *p = a->p;
    for (uint32_t l = 0; l < p->loop_count; l++)
        a->loops[l] = (struct inner){p->loops[l].first_op, p->loops[l].end_op - 1, 0, false};
    for (uint32_t i = 0; i < p->op_count; i++)
        a->items[i] = (struct item){.op = p->ops[i],
                                    .refs = p->refs + p->ops[i].refs_at,
                                    .rank = i,
                                    .prev = i ? i - 1 : HB_NONE,
                                    .next = i + 1 < p->op_count ? i + 1 : HB_NONE};
    a->item_count = p->op_count;
}

/* --- units --- */

static struct unit unit_from(const struct walk *w, uint32_t item)
{
    const struct again *a = w->a;
    uint32_t loop = a->items[item].op.loop;
    if (loop == w->loop)
        return (struct unit){item, item, HB_NONE};
    while (a->p->loops[loop].parent != w->loop)
        loop = a->p->loops[loop].parent;
    return (struct unit){a->loops[loop].first, a->loops[loop].last, loop};
}

static bool next_unit(const struct walk *w, struct unit *u)
{
    uint32_t next = w->a->items[u->last].next;
    if (next == w->end)
        return false;
    *u = unit_from(w, next);
    return true;
}

typedef void visit_fn(struct walk *w, struct value *v, bool write);

static void visit_unit(struct walk *w, struct unit u, visit_fn *visit)
{
    for (uint32_t i = u.first;; i = w->a->items[i].next) {
        const struct item *x = &w->a->items[i];
        for (uint32_t r = 0; r < ref_count(x) && !x->gone; r++)
            visit(w, value_of(w->a, x, r), r >= x->op.read_count);
        if (i == u.last)
            return;
    }
}

static void count_touch(struct walk *w, struct value *v, bool write)
{
    (void)write;
    v->left += v->home == w->loop;
    v->past = w->a->touches.links[v->past].prev;
}

static void note_write(struct walk *w, struct value *v, bool write)
{
    v->dirty = write ? w->number : v->dirty;
    v->dirty_turn = write ? w->turn : v->dirty_turn;
}

static void begin_touch(struct walk *w, struct value *v, bool write)
{
    int64_t born = v->home == w->loop && last_user(w->a, v) == HB_NONE ? v->bytes : 0;
    v->past = w->a->touches.links[v->past].next;
    v->seen |= !write;
    w->now += born;
    w->made += born;
    note_write(w, v, write);
}

/* --- one op again --- */

/* Attention is a library's kernel, marks are nothing that runs. */
static const bool repeatable[HB_OP_KIND_COUNT] = {
    [HB_OP_MATMUL] = true, [HB_OP_ELEMENTWISE] = true, [HB_OP_REDUCE] = true,
    [HB_OP_GATHER] = true, [HB_OP_COPY] = true,
};

static int64_t made_by(const struct again *a, const struct item *x)
{
    int64_t made = 0;
    for (uint32_t r = x->op.read_count; r < ref_count(x); r++)
        made = hb_add_sat(made, value_of(a, x, r)->bytes);
    return made;
}

/* Whether it may be made again now, or later in the walk. */
static bool may_repeat(const struct walk *w, const struct item *x)
{
    bool fit = repeatable[x->op.kind] || w->defers || is_gather(w->a, x);
    if (x->tired || !fit || (w->a->tpu && made_by(w->a, x) < LEAST_BYTES))
        return false;
    for (uint32_t r = 0; r < ref_count(x); r++) {
        const struct value *v = value_of(w->a, x, r);
        bool over = v->dirty >= w->number && v->dirty_turn > x->turn;
        if (r >= x->op.read_count ? !v->plain : over)
            return false;
    }
    return true;
}

static bool is_at_hand(const struct walk *w, const struct item *x)
{
    for (uint32_t r = x->op.read_count; r < ref_count(x); r++)
        if (last_user(w->a, value_of(w->a, x, r)) == w->at.first)
            return true;
    return false;
}

/* Bytes that are free at the unit at hand if the op is made again after it. */
static int64_t freed_by(const struct walk *w, const struct item *x, bool *out_moves)
{
    int64_t freed = 0;
    *out_moves = true;
    for (uint32_t r = 0; r < ref_count(x); r++) {
        const struct value *v = value_of(w->a, x, r);
        bool made = r >= x->op.read_count;
        if (made && v->left > 0)
            freed += v->bytes;
        if (made && v->seen)
            *out_moves = false;
        if (!made && v->left == 0)
            freed -= v->bytes;
    }
    return freed;
}

static bool is_early(const struct again *a, const struct item *x)
{
    return x->op.write_count == 1 && a->p->bufs[x->refs[x->op.read_count]].early;
}

/* What a walk that defers asks of those that wait. */
static bool may_defer(const struct again *a, const struct item *x)
{
    return x->op.kind == HB_OP_COPY || is_fetch(x) || is_early(a, x);
}

/* Infinite: it frees nothing, until something that it reads waits again. What may be deferred has
 * one price, so that the queue holds it in the order in which it was put there. */
static double price_of(const struct walk *w, const struct item *x)
{
    bool moves;
    int64_t freed = freed_by(w, x, &moves);
    if (w->defers)
        return may_defer(w->a, x) ? 0 : INFINITY;
    if (freed <= 0 || x->op.loop != w->loop || !may_repeat(w, x))
        return INFINITY;
    int64_t price = w->limit / freed;
    return moves ? 0 : (double)price;
}

/* An op before the unit at hand, or that one when it is over. */
static void wait_for(struct walk *w, uint32_t item)
{
    const struct item *x = &w->a->items[item];
    double price = price_of(w, x);
    if (isfinite(price))
        hb_queue_add(&w->queue,
                     (struct hb_queue_entry){price, w->defers ? w->turn : x->turn, 0, item});
}

static void end_touch(struct walk *w, struct value *v, bool write)
{
    (void)write;
    if (v->home != w->loop)
        return;
    if (--v->left == 0)
        w->now -= v->bytes;
    else if (w->limit < INT64_MAX && v->plain && !w->defers)
        wait_for(w, v->maker);
}

/* Prices only rise, but for those that wait_for is told of. */
static uint32_t find_best(struct walk *w)
{
    struct hb_queue_entry first;
    while (hb_queue_take(&w->queue, &first)) {
        const struct item *x = &w->a->items[first.index];
        if (is_at_hand(w, x)) /* it is put back when it is over */
            continue;
        if (price_of(w, x) <= first.value)
            return first.index;
        wait_for(w, first.index);
    }
    return HB_NONE;
}

/* What the one op that is left to read a value makes of it, value by value: it takes the place of
 * XLA:TPU's where that is made again alone, and not by an op that had other results as well
 * (gemma2-9b, v5e-16, four of 4,096: multiply_reduce_fusion.7 makes logits and their maxima). */
static uint32_t find_heir(const struct walk *w, uint32_t old)
{
    const struct again *a = w->a;
    if (!a->tpu || a->values[old].left != 1)
        return HB_NONE;
    const struct item *x = &a->items[next_user(a, &a->values[old])];
    if (x->op.kind != HB_OP_REDUCE || x->op.write_count != 1)
        return HB_NONE;
    uint32_t made = x->refs[x->op.read_count];
    return a->root[made] == made && a->values[made].home == w->loop ? made : HB_NONE;
}

static uint32_t add_value(struct walk *w, uint32_t old)
{
    struct again *a = w->a;
    struct hb_buf b = a->p->bufs[old];
    uint32_t heir = find_heir(w, old);
    b.alias_of = heir;
    b.name = hb_arena_printf(a->p->arena, "%s, made again", b.name);
    b.category = b.category == HB_CAT_SAVED ? HB_CAT_WORKING : b.category;
    b.why = "more than the compiler's share of the memory: what waited is made again";
    uint32_t made = hb_program_add_buf(a->p, b);
    a->root = hb_grow(a->p->arena, a->root, made, &a->root_cap, sizeof *a->root);
    a->values = hb_grow(a->p->arena, a->values, made, &a->value_cap, sizeof *a->values);
    a->root[made] = heir == HB_NONE ? made : heir;
    struct value *v = &a->values[a->root[made]];
    if (heir == HB_NONE)
        *v = (struct value){.bytes = a->values[old].bytes,
                            .home = w->loop,
                            .past = hb_ring_new(&a->touches, HB_NONE)};
    v->maker = a->item_count;
    v->plain = heir == HB_NONE;
    v->left++;
    return made;
}

/* The new value that all units read which are to come. */
static uint32_t pass_readers(struct walk *w, uint32_t old)
{
    struct again *a = w->a;
    uint32_t made = add_value(w, old), next;
    struct value *v = &a->values[a->root[old]], *to = &a->values[a->root[made]];
    w->now -= v->left > 0 ? v->bytes : 0;
    to->left += v->left;
    for (uint32_t behind = to->past; v->left > 0; v->left--, behind = next) {
        next = a->touches.links[v->past].next;
        const struct item *x = &a->items[a->touches.links[next].owner];
        x->refs[next - x->touch] = made;
        hb_ring_move(&a->touches, next, behind);
    }
    return made;
}

static bool is_before(const struct again *a, uint32_t one, uint32_t other)
{
    uint32_t rank = a->items[one].rank;
    if (rank != a->items[other].rank)
        return rank < a->items[other].rank;
    while (one != HB_NONE && one != other && a->items[one].rank == rank)
        one = a->items[one].next;
    return one == other;
}

/* First item of the unit to come that touches what this op does first. */
static uint32_t find_place(const struct walk *w, const struct item *x)
{
    const struct again *a = w->a;
    uint32_t place = HB_NONE;
    for (uint32_t r = 0; r < ref_count(x); r++) {
        uint32_t i = next_user(a, value_of(a, x, r));
        if (i != HB_NONE && (place == HB_NONE || is_before(a, i, place)))
            place = i;
    }
    if (place == HB_NONE)
        HB_BUG("op '%s' made again for nobody", x->op.name);
    return unit_from(w, place).first;
}

static void insert_item(struct again *a, uint32_t item, uint32_t before)
{
    uint32_t prev = a->items[before].prev;
    a->items[item].prev = prev;
    a->items[item].next = before;
    a->items[item].rank = a->items[before].rank;
    a->items[before].prev = item;
    a->items[prev].next = item; /* the op at hand, or a later one, is before it */
}

/* In the unit to come. What it wakes may be worth making again, and so may what reads that. */
static void read_again(struct walk *w, struct value *v)
{
    if (v->home != w->loop || v->left++ > 0)
        return;
    w->now += v->bytes;
    const struct hb_link *links = w->a->touches.links;
    for (uint32_t t = v->past; links[t].owner != HB_NONE; t = links[t].prev)
        wait_for(w, links[t].owner);
}

static void drop_item(struct again *a, struct item *x)
{
    x->gone = true;
    for (uint32_t r = 0; r < ref_count(x); r++) {
        struct value *v = value_of(a, x, r);
        if (v->past == x->touch + r)
            v->past = a->touches.links[v->past].prev;
        hb_ring_cut(&a->touches, x->touch + r);
    }
}

static void repeat_op(struct walk *w, uint32_t old)
{
    struct again *a = w->a;
    bool moves;
    freed_by(w, &a->items[old], &moves);
    a->items = hb_grow(a->p->arena, a->items, a->item_count, &a->item_cap, sizeof *a->items);
    uint32_t made = a->item_count;
    struct item *x = &a->items[made], *from = &a->items[old];
    *x = *from;
    x->refs = hb_arena_raw(a->p->arena, ref_count(x), sizeof *x->refs);
    for (uint32_t r = 0; r < ref_count(x); r++)
        x->refs[r] = r < x->op.read_count ? from->refs[r] : pass_readers(w, from->refs[r]);
    a->item_count++;
    insert_item(a, made, find_place(w, x));
    x->touch = a->touches.count;
    for (uint32_t r = 0; r < ref_count(x); r++)
        hb_ring_add(&a->touches, made, value_of(a, x, r)->past);
    x->moved = moves;
    x->tired = moves && from->moved;
    if (moves)
        drop_item(a, from);
    for (uint32_t r = 0; r < x->op.read_count; r++)
        read_again(w, value_of(a, x, r));
}

/* --- the walk --- */

static int64_t walk_computation(struct again *a, uint32_t loop, int64_t limit, bool defers);

static int64_t inside_of(const struct walk *w)
{
    return w->at.loop == HB_NONE ? 0 : w->a->loops[w->at.loop].peak;
}

/* Whether it waits there for nothing but the units to come. */
static bool may_come_later(const struct walk *w, const struct item *x)
{
    bool waits = !is_at_hand(w, x) && may_repeat(w, x);
    for (uint32_t r = x->op.read_count; r < ref_count(x) && waits; r++)
        waits = value_of(w->a, x, r)->left > 0 && !value_of(w->a, x, r)->seen;
    return waits;
}

/* XLA:TPU's scheduler that hides latencies comes before, and goes from the end: where as much is
 * alive as there may be, a copy that could come earlier does not; at a loop it counts what is alive
 * behind it (13B over 64 and 2 v5e: copy.425 and 426, 27 GiB alive of 12.6). */
static void defer_copies(struct walk *w)
{
    uint32_t left = 0;
    if (w->a->items[w->at.first].moved || w->now < w->limit)
        return;
    for (uint32_t i = 0; i < w->queue.count; i++) {
        struct hb_queue_entry e = w->queue.heap[i];
        const struct item *x = &w->a->items[e.index];
        bool later = may_come_later(w, x);
        if (later || is_at_hand(w, x))
            w->queue.heap[left++] = e;
        if (later && x->op.kind == HB_OP_COPY)
            repeat_op(w, e.index);
    }
    w->queue.count = left;
}

/* One after another, until what is at hand fits; v5e's rooms for rings, too (seven dumps of 14.3
 * GiB and more, split--v5e-w and -v among them; none of eleven with less). */
static void defer_fetches(struct walk *w)
{
    for (uint32_t i = w->queue.count; i-- > 0 && w->now + inside_of(w) > w->limit;) {
        const struct item *x = &w->a->items[w->queue.heap[i].index];
        bool moves = is_fetch(x) || is_early(w->a, x);
        if (moves && may_come_later(w, x))
            repeat_op(w, w->queue.heap[i].index);
    }
}

static void relieve_unit(struct walk *w)
{
    struct again *a = w->a;
    uint32_t best;
    if (w->defers) {
        defer_fetches(w);
        if (w->at.loop == HB_NONE)
            defer_copies(w);
        return;
    }
    while (w->made + inside_of(w) > 0 && w->now + inside_of(w) > w->limit &&
           (best = find_best(w)) != HB_NONE)
        repeat_op(w, best);
    if (w->at.loop != HB_NONE && !a->loops[w->at.loop].walked && w->now + inside_of(w) > w->limit &&
        (w->limit > w->now || !a->tpu)) {
        a->loops[w->at.loop].walked = true;
        walk_computation(a, w->at.loop, hb_larger(w->limit - w->now, 0), false);
        visit_unit(w, w->at, note_write);
    }
}

static void open_walk(struct walk *w)
{
    struct again *a = w->a;
    for (uint32_t i = 0; i < a->p->buf_count; i++)
        if (a->values[i].home == w->loop) {
            a->values[i].left = 0;
            a->values[i].seen = false;
        }
    w->number = ++a->walks;
    w->at = unit_from(w, w->first);
    do
        visit_unit(w, w->at, count_touch);
    while (next_unit(w, &w->at));
}

/* The most that is alive of the computation's own values and those inside. */
static int64_t walk_computation(struct again *a, uint32_t loop, int64_t limit, bool defers)
{
    struct walk w = {.a = a,
                     .loop = loop,
                     .limit = limit,
                     .end = HB_NONE,
                     .defers = defers,
                     .queue.arena = a->p->arena};
    int64_t peak = 0;
    if (loop != HB_NONE) {
        w.first = a->loops[loop].first;
        w.end = a->items[a->loops[loop].last].next;
    }
    open_walk(&w);
    w.at = unit_from(&w, w.first);
    do {
        w.made = 0;
        a->items[w.at.first].turn = ++w.turn;
        visit_unit(&w, w.at, begin_touch);
        relieve_unit(&w);
        peak = hb_larger(peak, hb_add_sat(w.now, inside_of(&w)));
        visit_unit(&w, w.at, end_touch);
        if (defers && w.at.loop == HB_NONE)
            wait_for(&w, w.at.first);
        else if (defers)
            defer_copies(&w);
    } while (next_unit(&w, &w.at));
    if (loop != HB_NONE)
        a->loops[loop].peak = peak;
    return peak;
}

static void defer_all(struct again *a, int64_t limit)
{
    walk_computation(a, HB_NONE, limit, true);
    for (uint32_t i = 0; i < a->p->buf_count; i++)
        if (a->p->bufs[i].unseen) /* the scheduler counts the host's memory, too */
            a->values[a->root[i]].bytes = 0;
    for (uint32_t i = 0; i < a->item_count; i++)
        a->items[i].moved = false;
}

static void open_again(struct again *a, struct hb_program *p)
{
    *a = (struct again){.p = p};
    a->tpu = p->compiler == HB_XLA_TPU;
    a->root_cap = a->value_cap = a->touches.cap = p->buf_count;
    a->touches.arena = p->arena;
    a->touches.links = hb_arena_raw(p->arena, p->buf_count, sizeof *a->touches.links);
    a->item_cap = p->op_count;
    a->root = hb_program_roots(p->arena, p);
    a->values = hb_arena_alloc(p->arena, p->buf_count, sizeof *a->values);
    a->items = hb_arena_alloc(p->arena, p->op_count, sizeof *a->items);
    a->loops = hb_arena_alloc(p->arena, p->loop_count, sizeof *a->loops);
    fill_values(a);
    fill_items(a);
    find_homes(a);
    find_plain(a);
    for (uint32_t l = p->loop_count; l-- > 0;) /* those inside first */
        walk_computation(a, l, INT64_MAX, false);
}

/* --- the program anew --- */

static void move_loops(struct again *a, uint32_t loop, uint32_t op)
{
    for (; loop != HB_NONE; loop = a->p->loops[loop].parent) {
        struct hb_loop *l = &a->p->loops[loop];
        l->first_op = op < l->first_op ? op : l->first_op;
        l->end_op = op + 1;
    }
}

static void write_program(struct again *a)
{
    struct hb_program *p = a->p;
    struct hb_op *ops = hb_arena_raw(p->arena, a->item_count, sizeof *ops);
    uint32_t *place = hb_arena_alloc(p->arena, a->item_count, sizeof *place);
    uint32_t *refs = hb_arena_raw(p->arena, a->touches.count, sizeof *refs), count = 0, made = 0;
    for (uint32_t l = 0; l < p->loop_count; l++)
        p->loops[l].first_op = UINT32_MAX;
    for (uint32_t i = 0; i != HB_NONE; i = a->items[i].next) {
        const struct item *x = &a->items[i];
        if (x->gone)
            continue;
        place[i] = made;
        ops[made] = x->op;
        ops[made].refs_at = count;
        if (x->op.start != HB_NONE)
            ops[made].start = place[x->op.start];
        for (uint32_t r = 0; r < ref_count(x); r++)
            refs[count++] = x->refs[r];
        move_loops(a, x->op.loop, made++);
    }
    p->ops = ops;
    p->op_count = made;
    p->op_cap = a->item_count;
    p->refs = refs;
    p->ref_count = count;
    p->ref_cap = a->touches.count;
}

/* No schedule needs more. */
static int64_t sum_values(const struct hb_program *p)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->buf_count; i++) {
        const struct hb_buf *b = &p->bufs[i];
        if (b->space == HB_SPACE_HBM && !b->argument && b->alias_of == HB_NONE)
            sum = hb_add_sat(sum, b->bytes);
    }
    return sum;
}

bool hb_again_exceeds(struct hb_program *p, int64_t limit_bytes)
{
    struct again a;
    if (p->op_count == 0 || sum_values(p) <= limit_bytes)
        return false;
    struct hb_arena_mark mark = hb_arena_mark(p->arena);
    open_again(&a, p);
    int64_t peak = walk_computation(&a, HB_NONE, INT64_MAX, false);
    hb_arena_rewind(p->arena, mark);
    return peak > limit_bytes;
}

void hb_again_run(struct hb_program *p, int64_t limit_bytes)
{
    struct again a;
    if (p->op_count == 0 || sum_values(p) <= limit_bytes)
        return;
    struct hb_arena_mark mark = hb_arena_mark(p->arena);
    open_again(&a, p);
    if (a.tpu)
        defer_all(&a, limit_bytes);
    walk_computation(&a, HB_NONE, limit_bytes, false);
    if (a.item_count > p->op_count)
        write_program(&a);
    else
        hb_arena_rewind(p->arena, mark);
}
