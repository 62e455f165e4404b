/* See titan_parts.h: a checkpointed layer's pass backwards, for which it is run again, whole or in
 * two: then once for each weight. */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "sim/eager/titan_parts.h"

/* A layer that is run again for the gradient of each of its weights: what a node saves stays, of
 * each run, until the node's own weight is done, and of others to the end
 * (torch/utils/checkpoint.py: recomputed tensors go with the holders of their nodes). */
struct hb_titan_again {
    uint8_t *done; /* by node: places that save no more */
    uint32_t node_count;
    struct hb_saved *left;
    uint32_t left_count, left_cap;
    struct hb_titan_again *spare; /* the next that no run has */
};

static void fetch_input(struct hb_titan_layer *l, uint32_t value, int64_t bytes)
{
    struct hb_tape *t = l->e->t;
    hb_titan_unstash(l->e, HB_TITAN_STASH);
    t->pool = HB_POOL_GATHER; /* another stream's */
    t->values[value].storage = hb_tape_make(
        t, (struct hb_made){"copy from the host", "a layer's input", bytes, HB_CAT_SAVED, 0});
    t->pool = HB_POOL_DEFAULT;
}

/* The input goes with the last of what the second run saved, which is its first norm's f32 copy
 * (torch/utils/checkpoint.py: the frame that holds the arguments dies with its last holder); with
 * LayerNorm it is that input, which is gone before the sum of its gradients (torch-layers, gpt-42).
 * Where an RMSNorm is one kernel it stays for that sum (torch-h100 27). */
static void hand_input_on(struct hb_tape *t, struct hb_taped *n, uint32_t first)
{
    hb_tape_save(t, &t->nodes[first], n->saved[0]);
    hb_tape_give_up(t, n, 0);
}

/* Of the layer's last product, in its dtype, or of the norm behind it in f32; bytes: of the layer's
 * input. */
static uint32_t product_gradient(struct hb_titan_layer *l, uint32_t grad, int64_t bytes)
{
    struct hb_tape *t = l->e->t;
    int64_t count = bytes / l->e->stream_bytes;
    struct hb_made narrow = {"to bf16", "gradient of the last product", count * t->width,
                             HB_CAT_WORKING, 0};
    struct hb_made wide = {"to f32", "norm's gradient in f32", count * 4, HB_CAT_WORKING, 0};
    uint32_t last = hb_ops_convert(t, grad, narrow);
    if (!l->block->post_norm || hb_titan_is_fused(l->e))
        return last;
    uint32_t before = last;
    last = hb_ops_convert(t, before, wide);
    hb_tape_drop(t, before);
    return last;
}

/* The one whose op asks for what was kept: the MLP's last product, in it, or the norm behind. */
static void enter_last_modules(struct hb_titan_layer *l)
{
    if (!l->e->zero3)
        return;
    if (!l->block->post_norm)
        hb_zero3_enter_plain(l->e->zero3);
    hb_zero3_enter_early(l->by_role[l->block->post_norm ? HB_TITAN_W_POST2 : HB_TITAN_W_DOWN]);
}

/* What needs nothing kept runs before the layer is: the sum's gradient is gathered first. What was
 * kept of it beyond what is taken again goes with the checkpoint. */
static void issue_back(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_titan_run *run = (struct hb_titan_run *)(uintptr_t)n->thing;
    struct hb_titan_layer *l = run->layer;
    uint32_t first = t->node_count, last = grad;
    if (l->e->stash)
        fetch_input(l, n->in[0], n->number[0]);
    bool shares = l->block->moe.shared_d_ff > 0;
    if (l->e->ways > 1 && (!l->block->moe.experts || l->parted || shares))
        last = hb_ops_gather_storage(t, grad, hb_titan_gather(l));
    else
        last = product_gradient(l, grad, n->number[0]);
    enter_last_modules(l);
    hb_titan_run_ops(l, run, true);
    hb_titan_forget_copies(l);
    if (!l->e->stash && !t->split && (hb_titan_is_layernorm(l) || !hb_titan_is_fused(l->e)))
        hand_input_on(t, n, first);
    t->values[shares ? l->own : l->last].grad = last;
    if (shares) {
        hb_tape_hold(t, grad);
        t->values[l->last].grad = grad;
    }
    t->values[l->half].grad = grad;
    if (t->split) {
        t->split->keeps = false;
        t->split->run = run;
    }
    hb_tape_back(t, first);
    if (t->split) {
        t->split->keeps = true;
        t->split->run = NULL;
    }
    if (l->e->stash)
        hb_tape_drop_value(t, l->in);
    for (int i = run->kept.next; i < run->kept.count; i++)
        hb_tape_drop(t, run->kept.storages[i]);
    run->kept.count = 0;
}

static struct hb_weight *copy_weights(const struct hb_titan_layer *l)
{
    struct hb_weight *copy = hb_arena_raw(l->e->t->arena, 1, sizeof l->weights);
    memcpy(copy, l->weights, sizeof l->weights);
    return copy;
}

static bool is_unmoved(const struct hb_weight *a, const struct hb_weight *b)
{
    return a->copy == b->copy && a->copy_grad == b->copy_grad && a->whole == b->whole &&
           a->grad == b->grad && a->part == b->part && a->waiting == b->waiting &&
           a->seen == b->seen && a->sum == b->sum;
}

/* No gradient went to a weight by itself. */
static bool is_as_before(const struct hb_titan_layer *l, const struct hb_weight *weights)
{
    bool same = true;
    for (size_t i = 0; i < sizeof l->weights / sizeof *weights && same; i++)
        same = is_unmoved(&weights[i], &l->weights[i]);
    return same;
}

/* What the layer's weights are owed, and the gradient of its input. */
static void note_back(struct hb_titan_layer *l, struct hb_reel *reel, uint32_t first,
                      const struct hb_weight *before)
{
    struct hb_tape *t = l->e->t;
    const struct hb_split *s = t->split;
    uint32_t results[HB_REEL_OUTER], count = s->owed_count - first;
    _Static_assert((int)HB_TITAN_W_COUNT < (int)HB_REEL_OUTER, "each weight is owed one");
    l->owed = hb_arena_raw(t->arena, count, sizeof *l->owed);
    for (uint32_t i = 0; i < count && i < HB_TITAN_W_COUNT; i++) {
        l->owed[i] = s->owed[first + i];
        results[i] = l->owed[i].grad;
    }
    bool fits = count <= HB_TITAN_W_COUNT && is_as_before(l, before);
    results[fits ? count : 0] = t->values[l->in].grad;
    hb_reel_end_closed(t, reel, fits ? results : NULL, count + 1);
}

static bool play_back(struct hb_titan_layer *l, struct hb_reel *reel, struct hb_titan_run *run,
                      const struct hb_outer *outer)
{
    struct hb_tape *t = l->e->t;
    struct hb_split *s = t->split;
    uint32_t count;
    const uint32_t *made = hb_reel_play_closed(t, reel, l->in, outer, &count);
    for (uint32_t i = 0; made && i + 1 < count; i++) {
        s->owed = hb_grow(t->arena, s->owed, s->owed_count, &s->owed_cap, sizeof *s->owed);
        s->owed[s->owed_count] = l->owed[i];
        s->owed[s->owed_count].run = run;
        s->owed[s->owed_count++].grad = made[i];
    }
    if (made)
        t->values[l->in].grad = made[count - 1];
    return made;
}

/* In a program passes in two are recorded whole: ranks that are served have few. */
void hb_titan_back_checkpoint(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_titan_run *run = (struct hb_titan_run *)(uintptr_t)n->thing;
    struct hb_titan_layer *l = run->layer;
    struct hb_outer outer = {{grad}, 1};
    bool parted = t->split && !t->server && !l->e->stash;
    bool fits = parted && t->values[n->in[0]].grad == HB_NONE;
    t->grad = true;
    l->in = run->in = n->in[0];
    struct hb_reel *reel = fits ? hb_titan_find_reel(l, HB_TITAN_BACK) : NULL;
    if (reel && play_back(l, reel, run, &outer))
        return;
    bool records = reel && hb_reel_is_new(reel);
    uint32_t first = records ? t->split->owed_count : 0;
    const struct hb_weight *before = records ? copy_weights(l) : NULL;
    if (records)
        hb_reel_begin_closed(t, reel, l->in, &outer);
    issue_back(t, n, grad);
    if (records)
        note_back(l, reel, first, before);
}

/* What nodes of the run hold to what is left of all runs; those that are done, or that only `gone`
 * held, hold what they saved no longer than the run takes. */
static void keep_saves(struct hb_tape *t, struct hb_titan_again *a, const struct hb_saves *s,
                       const void *gone)
{
    if (s->node_count > a->node_count)
        HB_BUG("a layer has more than %u nodes", a->node_count);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct hb_saved *one = &s->list[i];
        if ((gone && one->under == gone) || a->done[one->node] >> one->place & 1) {
            hb_tape_drop(t, one->storage);
            continue;
        }
        a->left = hb_grow(t->arena, a->left, a->left_count, &a->left_cap, sizeof *a->left);
        a->left[a->left_count++] = *one;
    }
}

/* The last one takes its place. */
static void drop_saved(struct hb_tape *t, struct hb_titan_again *a, uint32_t at)
{
    hb_tape_drop(t, a->left[at].storage);
    a->left[at] = a->left[--a->left_count];
}

static void release(struct hb_tape *t, struct hb_titan_again *a, uint32_t node, uint8_t places)
{
    for (uint32_t i = a->left_count; i-- > 0;)
        if (a->left[i].node == node && places >> a->left[i].place & 1)
            drop_saved(t, a, i);
    a->done[node] |= places;
}

/* Nodes that nothing but a weight's op holds die with it. */
static void release_under(struct hb_tape *t, struct hb_titan_again *a, const void *under)
{
    for (uint32_t i = a->left_count; i-- > 0;) {
        if (a->left[i].under != under)
            continue;
        a->done[a->left[i].node] = UINT8_MAX;
        drop_saved(t, a, i);
    }
}

static uint32_t node_with(const struct hb_saves *s, const void *weight)
{
    for (uint32_t i = 0; i < s->node_count; i++)
        if (s->nodes[i].thing == weight)
            return i;
    HB_BUG("no node of a layer has the weight '%s'", ((const struct hb_weight *)weight)->name);
}

/* The layer is run again, of which nothing stays but what its nodes saved. */
static const struct hb_saves *run_saves(struct hb_titan_layer *l, struct hb_titan_run *run)
{
    struct hb_titan *e = l->e;
    struct hb_tape *t = e->t;
    struct hb_reel *reel = hb_titan_find_reel(l, HB_TITAN_AGAIN);
    const struct hb_saves *saves = reel ? hb_reel_play_saves(t, reel, l->in) : NULL;
    if (saves)
        return saves;
    uint32_t first = t->node_count;
    hb_titan_run_ops(l, run, true);
    hb_saves_list(t->arena, &e->saves, t->nodes + first, t->node_count - first);
    t->node_count = first;
    return &e->saves;
}

static struct hb_titan_again *new_again(struct hb_titan *e)
{
    enum { MOST_NODES = 64 };
    struct hb_titan_again *a = e->spare_again;
    if (!a) {
        a = hb_arena_alloc(e->t->arena, 1, sizeof *a);
        a->done = hb_arena_raw(e->t->arena, MOST_NODES, 1);
        a->node_count = MOST_NODES;
    } else {
        e->spare_again = a->spare;
    }
    memset(a->done, 0, a->node_count);
    a->left_count = 0;
    return a;
}

uint32_t hb_titan_run_for(struct hb_tape *t, const struct hb_owed *o, bool last)
{
    struct hb_titan_run *run = o->run;
    struct hb_titan_again *a = run->again;
    if (!a)
        a = run->again = new_again(run->layer->e);
    run->layer->in = run->in;
    t->grad = true;
    t->where = run->layer->unit.where;
    const struct hb_saves *saves = run_saves(run->layer, run);
    keep_saves(t, a, saves, last ? run->layer : NULL);
    uint32_t dw = hb_ops_owed_gradient(t, o);
    release(t, a, node_with(saves, o->weight), o->places);
    return dw;
}

/* The layer's, where each adds to a gradient that is there. */
static bool list_owed(struct hb_titan_layer *l, struct hb_split *split, struct hb_titan_payment *p)
{
    for (uint32_t i = 0; i < split->owed_count; i++) {
        struct hb_owed *o = &split->owed[i];
        const struct hb_weight *w = o->weight;
        const struct hb_titan_run *run = o->run;
        if (!run || run->layer != l || o->grad == HB_NONE)
            continue;
        if (w->grad == HB_NONE || run->again || p->outer.count == HB_REEL_OUTER)
            return false;
        p->owed[p->owed_count++] = o;
        p->outer.storages[p->outer.count++] = o->grad;
    }
    return p->owed_count;
}

bool hb_titan_pay_again(struct hb_titan_layer *l, struct hb_split *split, uint32_t *dw, bool last,
                        struct hb_titan_payment *out)
{
    struct hb_tape *t = l->e->t;
    uint32_t count, before = *dw != HB_NONE;
    *out = (struct hb_titan_payment){.outer = {{*dw}, before}};
    if (t->server || !list_owed(l, split, out))
        return false;
    struct hb_titan_run *run = out->owed[0]->run;
    t->grad = true;
    l->in = run->in;
    out->reel = hb_titan_find_reel(l, HB_TITAN_PAID + last + 2 * before);
    if (!out->reel)
        return false;
    const uint32_t *made = hb_reel_play_closed(t, out->reel, l->in, &out->outer, &count);
    if (!made) {
        if (!hb_reel_is_new(out->reel)) {
            out->reel = NULL;
            return false;
        }
        out->weights = copy_weights(l);
        hb_reel_begin_closed(t, out->reel, l->in, &out->outer);
        return false;
    }
    struct hb_titan_again *a = run->again = new_again(l->e);
    for (uint32_t i = 1; i < count; i++) {
        a->left = hb_grow(t->arena, a->left, a->left_count, &a->left_cap, sizeof *a->left);
        a->left[a->left_count++] = (struct hb_saved){.storage = made[i]};
    }
    for (uint32_t i = 0; i < out->owed_count; i++)
        out->owed[i]->grad = HB_NONE;
    *dw = made[0];
    return true;
}

void hb_titan_note_paid(struct hb_titan_layer *l, const struct hb_titan_payment *p, uint32_t dw)
{
    struct hb_tape *t = l->e->t;
    if (!p->reel)
        return;
    const struct hb_titan_run *run = p->owed[0]->run;
    uint32_t count = run->again ? run->again->left_count : 0;
    uint32_t *results = hb_arena_raw(t->arena, (size_t)count + 1, sizeof *results);
    results[0] = dw;
    for (uint32_t i = 0; i < count; i++)
        results[i + 1] = run->again->left[i].storage;
    hb_reel_end_closed(t, p->reel, is_as_before(l, p->weights) ? results : NULL, count + 1);
}

void hb_titan_forget_under(struct hb_tape *t, const struct hb_owed *o)
{
    struct hb_titan_run *run = o->run;
    if (run->again)
        release_under(t, run->again, o->weight);
}

void hb_titan_forget_runs(struct hb_tape *t, const struct hb_owed *o)
{
    struct hb_titan_run *run = o->run;
    struct hb_titan_again *a = run ? run->again : NULL;
    if (!a)
        return;
    for (uint32_t i = 0; i < a->left_count; i++)
        hb_tape_drop(t, a->left[i].storage);
    a->spare = run->layer->e->spare_again;
    run->layer->e->spare_again = a;
    run->again = NULL;
}
