/* The life of a unit: see fsdp.h. Order of allocations and releases: _fsdp_param_group.py
 * (unshard, wait_for_unshard, pre_backward, post_backward) and _fsdp_collectives.py
 * (foreach_all_gather, foreach_all_gather_copy_out, foreach_reduce). */
#include "sim/eager/fsdp.h"

#include "base/size.h"

int64_t hb_fsdp_rows(const struct hb_fsdp *f, const struct hb_weight *w)
{
    return hb_div_up(w->rows, w->ranks ? w->ranks : f->ranks);
}

static int64_t unit_ranks(const struct hb_fsdp *f, const struct hb_unit *u)
{
    return u->weights[0].ranks ? u->weights[0].ranks : f->ranks;
}

/* Each parameter by itself, or all of them in one. */
int64_t hb_fsdp_part(const struct hb_fsdp *f, const struct hb_unit *u)
{
    int64_t sum = 0;
    for (int i = 0; i < u->count; i++) {
        int64_t rows = f->flat ? u->weights[i].rows : hb_fsdp_rows(f, &u->weights[i]);
        sum = hb_add_sat(sum, hb_tape_size(f->t, rows, u->weights[i].cols, 1));
    }
    return f->flat ? hb_div_up(sum, f->ranks) : sum;
}

/* Of a weight as it is gathered. */
static int64_t sent_width(const struct hb_fsdp *f, const struct hb_weight *w)
{
    return f->narrow && w->narrow ? 1 : f->t->width;
}

static int64_t sent_bytes(const struct hb_fsdp *f, const struct hb_unit *u)
{
    int64_t sum = 0;
    for (int i = 0; i < u->count; i++) {
        const struct hb_weight *w = &u->weights[i];
        sum = hb_add_sat(sum, hb_tape_size(f->t, hb_fsdp_rows(f, w), w->cols, sent_width(f, w)));
    }
    return sum;
}

static uint32_t make(struct hb_fsdp *f, const struct hb_unit *u, struct hb_made made, uint8_t pool)
{
    const char *where = f->t->where;
    f->t->where = u->where;
    f->t->pool = pool == HB_POOL_DEFAULT ? pool : (uint8_t)(f->first_pool + pool);
    uint32_t storage = hb_tape_make(f->t, made);
    f->t->pool = HB_POOL_DEFAULT;
    f->t->where = where;
    return storage;
}

/* Parameters in compute's dtype are gathered from where they are (FSDPParam.param_dtype: none). */
static bool is_cast(const struct hb_fsdp *f)
{
    return f->param_bytes != f->t->width;
}

static struct hb_made own_weights(int64_t bytes)
{
    return (struct hb_made){"copy in", "own weights to gather", bytes, HB_CAT_COMMUNICATION, 0};
}

/* One by one, as they are on the host, then in compute's dtype. */
static void copy_from_host(struct hb_fsdp *f, struct hb_unit *u)
{
    for (int i = 0; i < u->count; i++) {
        struct hb_weight *w = &u->weights[i];
        int64_t count = hb_tape_size(f->t, hb_fsdp_rows(f, w), w->cols, 1);
        struct hb_made stored = {"copy from the host", "own weights as they are stored",
                                 hb_tape_size(f->t, count, f->param_bytes, 1), HB_CAT_COMMUNICATION,
                                 0};
        w->part = make(f, u, stored, HB_POOL_GATHER);
        if (!is_cast(f))
            continue;
        uint32_t wide = w->part;
        w->part =
            make(f, u, own_weights(hb_tape_size(f->t, count, sent_width(f, w), 1)), HB_POOL_GATHER);
        hb_tape_drop(f->t, wide);
    }
}

static void drop_parts(struct hb_fsdp *f, struct hb_unit *u)
{
    for (int i = 0; i < u->count; i++) {
        hb_tape_drop(f->t, u->weights[i].part);
        u->weights[i].part = HB_NONE;
    }
}

static void issue_gather(struct hb_fsdp *f, struct hb_unit *u)
{
    if (u->whole || u->gathered != HB_NONE || unit_ranks(f, u) == 1)
        return;
    int64_t part = sent_bytes(f, u);
    uint8_t pool = f->here ? HB_POOL_DEFAULT : HB_POOL_GATHER;
    bool kept = u->weights[0].part != HB_NONE;
    uint32_t own = HB_NONE;
    if (!kept && f->on_host)
        copy_from_host(f, u);
    else if (!kept && !f->frozen && is_cast(f))
        own = make(f, u, own_weights(part), pool);
    u->gathered = make(f, u,
                       (struct hb_made){"all-gather over fsdp", "gathered weights in one buffer",
                                        hb_tape_size(f->t, part, unit_ranks(f, u), 1),
                                        HB_CAT_COMMUNICATION, 0},
                       pool);
    hb_tape_drop(f->t, own);
    if (!kept)
        drop_parts(f, u);
}

static uint32_t make_copy(struct hb_fsdp *f, const struct hb_unit *u, const struct hb_weight *w,
                          const char *name)
{
    int64_t rows = hb_mul_sat(hb_fsdp_rows(f, w), unit_ranks(f, u));
    return make(f, u,
                (struct hb_made){"copy out", name,
                                 hb_tape_size(f->t, rows, w->cols, sent_width(f, w)),
                                 HB_CAT_COMMUNICATION, 0},
                HB_POOL_DEFAULT);
}

/* Of those split along the second dimension first a copy by rank, all of which live until the last
 * one is put together. Of a single rank there is no gather, and each weight is converted first. */
static void copy_out(struct hb_fsdp *f, struct hb_unit *u)
{
    bool alone = unit_ranks(f, u) == 1 && is_cast(f);
    for (int i = 0; i < u->count; i++) {
        struct hb_weight *w = &u->weights[i];
        if (alone)
            w->part = make_copy(f, u, w, "weight in compute's dtype");
        w->whole = make_copy(f, u, w, w->name);
        if (w->across)
            w->part = make_copy(f, u, w, "gathered weight, by rank");
        if (alone) {
            hb_tape_drop(f->t, w->part);
            w->part = HB_NONE;
        }
    }
    u->whole = true;
    drop_parts(f, u);
}

static void forget_sum(struct hb_fsdp *f, struct hb_unit *u)
{
    hb_tape_drop(f->t, u->summed);
    u->summed = HB_NONE;
}

static bool is_listed(const struct hb_fsdp *f, const struct hb_unit *u)
{
    const struct hb_unit *at = f->last_summed;
    while (at && at != u)
        at = at->summed_before;
    return at;
}

/* The last sum over replicas of a unit is held until the backward pass is over. */
static void hold_sum(struct hb_fsdp *f, struct hb_unit *u, uint32_t sum)
{
    hb_tape_hold(f->t, sum);
    forget_sum(f, u);
    u->summed = sum;
    if (is_listed(f, u))
        return;
    u->summed_before = f->last_summed;
    f->last_summed = u;
}

/* The sums stay as gradients, in their parameters' dtype, or are added in place to what the
 * microbatches before left. */
static void keep_gradients(struct hb_fsdp *f, struct hb_unit *u, uint32_t sum)
{
    uint32_t grads = sum;
    if (f->replicas)
        hold_sum(f, u, sum);
    if (f->reduce_bytes != f->grad_bytes) {
        int64_t bytes = hb_tape_size(f->t, hb_fsdp_part(f, u), f->grad_bytes, 1);
        grads = make(f, u,
                     (struct hb_made){"to the parameters' dtype", "sharded gradients", bytes,
                                      HB_CAT_GRADIENTS, 0},
                     f->replicas ? HB_POOL_ALL_REDUCE : HB_POOL_REDUCE);
        hb_tape_drop(f->t, sum);
    }
    if (f->update) {
        f->t->pool = (uint8_t)(f->first_pool + (f->replicas ? HB_POOL_ALL_REDUCE : HB_POOL_REDUCE));
        f->update(f->context, u);
        f->t->pool = HB_POOL_DEFAULT;
    }
    if (u->sharded == HB_NONE && !f->on_host && !f->update)
        u->sharded = grads;
    else
        hb_tape_drop(f->t, grads);
}

/* --- FSDP1 --- */

static void unshard_flat(struct hb_fsdp *f, struct hb_unit *u)
{
    if (u->whole)
        return;
    int64_t part = hb_tape_size(f->t, hb_fsdp_part(f, u), f->t->width, 1);
    uint32_t own = make(f, u, own_weights(part), HB_POOL_OWN_PART);
    u->gathered =
        make(f, u,
             (struct hb_made){"all-gather over fsdp", "gathered weights in one",
                              hb_tape_size(f->t, part, f->ranks, 1), HB_CAT_COMMUNICATION, 0},
             HB_POOL_GATHER);
    hb_tape_drop(f->t, own);
    u->whole = true;
}

static void give_back_flat(struct hb_fsdp *f, struct hb_unit *u)
{
    hb_tape_drop(f->t, u->gathered);
    u->gathered = HB_NONE;
    u->whole = false;
}

static void drop_gradients(struct hb_fsdp *f, struct hb_unit *u)
{
    for (int i = 0; i < u->count; i++) {
        hb_tape_drop(f->t, u->weights[i].grad);
        u->weights[i].grad = HB_NONE;
    }
}

/* Autograd puts the gradients of the views into one; the microbatches' parts are added in place. */
static void reduce_flat(struct hb_fsdp *f, struct hb_unit *u)
{
    int64_t part = hb_fsdp_part(f, u), all = hb_mul_sat(part, f->ranks);
    struct hb_made made = {"cat", "gradients in one", hb_tape_size(f->t, all, f->t->width, 1),
                           HB_CAT_GRADIENTS, 0};
    uint32_t flat = make(f, u, made, HB_POOL_DEFAULT), wide = HB_NONE;
    drop_gradients(f, u);
    give_back_flat(f, u);
    if (f->reduce_bytes != f->t->width) {
        made = (struct hb_made){"to the reduction's dtype", "gradients to reduce",
                                hb_tape_size(f->t, all, f->reduce_bytes, 1), HB_CAT_GRADIENTS, 0};
        wide = make(f, u, made, HB_POOL_REDUCE);
    }
    made = (struct hb_made){"reduce-scatter over fsdp", "sharded gradients",
                            hb_tape_size(f->t, part, f->reduce_bytes, 1), HB_CAT_GRADIENTS, 0};
    uint32_t sum = make(f, u, made, HB_POOL_REDUCE);
    hb_tape_drop(f->t, wide);
    keep_gradients(f, u, sum);
    hb_tape_drop(f->t, flat);
}

static void give_back(struct hb_fsdp *f, struct hb_unit *u)
{
    if (f->flat) {
        give_back_flat(f, u);
        return;
    }
    for (int i = 0; u->whole && i < u->count; i++) {
        hb_tape_drop(f->t, u->weights[i].whole);
        u->weights[i].whole = HB_NONE;
    }
    u->whole = false;
}

/* Each weight's part of fewer ranks than all, out of the whole one. */
static void keep_parts(struct hb_fsdp *f, struct hb_unit *u)
{
    for (int i = 0; i < u->count; i++) {
        struct hb_weight *w = &u->weights[i];
        int64_t bytes = hb_tape_bytes(f->t, w->whole) / f->kept_ranks;
        w->part = make(f, u,
                       (struct hb_made){"clone", "part of a weight, kept for the backward pass",
                                        bytes, HB_CAT_COMMUNICATION, 0},
                       HB_POOL_DEFAULT);
        hb_tape_drop(f->t, w->whole);
        w->whole = HB_NONE;
    }
}

static void unshard(struct hb_fsdp *f, struct hb_unit *g)
{
    issue_gather(f, g);
    hb_tape_drop(f->t, f->last_gather);
    copy_out(f, g);
    f->last_gather = g->gathered;
    g->gathered = HB_NONE;
}

void hb_fsdp_before_forward(struct hb_fsdp *f, struct hb_unit *u)
{
    struct hb_unit *ahead = u->ahead;
    if (f->plain)
        return;
    if (f->flat) {
        unshard_flat(f, u);
        return;
    }
    for (struct hb_unit *g = u; g; g = g->more)
        if (!g->whole)
            unshard(f, g);
    for (struct hb_unit *g = ahead; g; g = g->more)
        issue_gather(f, g);
}

void hb_fsdp_after_forward(struct hb_fsdp *f, struct hb_unit *u)
{
    if ((u->keeps && !f->frozen) || f->plain)
        return;
    if (f->kept_ranks > 1 && f->kept_ranks < f->ranks)
        keep_parts(f, u);
    for (; u; u = u->more)
        give_back(f, u);
}

void hb_fsdp_forward_end(struct hb_fsdp *f)
{
    hb_tape_drop(f->t, f->last_gather);
    f->last_gather = HB_NONE;
}

void hb_fsdp_before_backward(struct hb_fsdp *f, struct hb_unit *u, struct hb_unit *next)
{
    if (f->plain)
        return;
    if (f->flat) {
        unshard_flat(f, u);
        if (next)
            unshard_flat(f, next);
        return;
    }
    for (; u; u = u->more) {
        if (u->whole)
            continue;
        issue_gather(f, u);
        copy_out(f, u);
        hb_tape_drop(f->t, u->gathered);
        u->gathered = HB_NONE;
    }
    if (next && next->more)
        issue_gather(f, next->more);
    if (next)
        issue_gather(f, next);
}

static void drop_reduced(struct hb_fsdp *f)
{
    for (int i = 0; i < 2; i++) {
        hb_tape_drop(f->t, f->last_reduced[i]);
        f->last_reduced[i] = HB_NONE;
    }
}

/* Gradients of what is split along the second dimension are put in order by rank. */
static void turn_gradients(struct hb_fsdp *f, struct hb_unit *u)
{
    for (int i = 0; i < u->count; i++) {
        struct hb_weight *w = &u->weights[i];
        if (!w->across || w->grad == HB_NONE)
            continue;
        uint32_t turned = make(f, u,
                               (struct hb_made){"cat", "weight's gradient, by rank",
                                                hb_tape_bytes(f->t, w->grad), HB_CAT_GRADIENTS, 0},
                               HB_POOL_DEFAULT);
        hb_tape_drop(f->t, w->grad);
        w->grad = turned;
    }
}

static void reduce(struct hb_fsdp *f, struct hb_unit *u, int slot)
{
    int64_t part = hb_tape_size(f->t, hb_fsdp_part(f, u), f->reduce_bytes, 1);
    turn_gradients(f, u);
    f->last_reduced[slot] =
        make(f, u,
             (struct hb_made){"pack gradients", "gradients to reduce",
                              hb_tape_size(f->t, part, unit_ranks(f, u), 1), HB_CAT_GRADIENTS, 0},
             HB_POOL_DEFAULT);
    drop_gradients(f, u);
    uint32_t sum = make(f, u,
                        (struct hb_made){"reduce-scatter over fsdp", "sharded gradients", part,
                                         HB_CAT_GRADIENTS, 0},
                        HB_POOL_REDUCE);
    keep_gradients(f, u, sum);
}

void hb_fsdp_unshard(struct hb_fsdp *f, struct hb_unit *u)
{
    f->here = true;
    for (; u && !f->plain; u = u->more)
        issue_gather(f, u);
    f->here = false;
}

void hb_fsdp_wait_unshard(struct hb_fsdp *f, struct hb_unit *u)
{
    for (; u; u = u->more) {
        if (u->gathered == HB_NONE)
            continue;
        copy_out(f, u);
        hb_tape_drop(f->t, u->gathered);
        u->gathered = HB_NONE;
    }
}

void hb_fsdp_reshard(struct hb_fsdp *f, struct hb_unit *u)
{
    for (; u; u = u->more)
        give_back(f, u);
}

void hb_fsdp_reduce(struct hb_fsdp *f, struct hb_unit *u, struct hb_unit *before)
{
    drop_reduced(f);
    reduce(f, u, 0);
    if (before)
        forget_sum(f, before);
}

/* slot: what `more` has packed goes with the next unit's; 0: before this one's own. */
static void reduce_both(struct hb_fsdp *f, struct hb_unit *u, int slot)
{
    drop_reduced(f);
    if (u->more) {
        reduce(f, u->more, slot);
        give_back(f, u);
    }
    if (!slot)
        drop_reduced(f);
    reduce(f, u, 0);
}

void hb_fsdp_after_backward(struct hb_fsdp *f, struct hb_unit *u)
{
    if (f->plain || f->defers)
        return;
    if (f->flat) {
        reduce_flat(f, u);
        return;
    }
    if (u->more)
        give_back(f, u->more);
    else
        give_back(f, u);
    reduce_both(f, u, 1);
}

void hb_fsdp_reduce_whole(struct hb_fsdp *f, struct hb_unit *u)
{
    if (f->plain)
        return;
    give_back(f, u->more ? u->more : u);
    reduce_both(f, u, f->replicas ? 1 : 0);
}

void hb_fsdp_backward_end(struct hb_fsdp *f)
{
    drop_reduced(f);
    for (struct hb_unit *u = f->last_summed; u; u = u->summed_before)
        forget_sum(f, u);
    f->last_summed = NULL;
}
