/* Each op's storages in the order in which they come and go: see ops.h. */
#include "sim/eager/ops.h"

#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/eager/ring.h"
#include "sim/eager/zero3.h"

uint32_t hb_ops_work(struct hb_tape *t, const char *op, const char *name, int64_t bytes)
{
    return hb_tape_make(
        t, (struct hb_made){.op = op, .name = name, .bytes = bytes, .category = HB_CAT_WORKING});
}

uint32_t hb_ops_convert(struct hb_tape *t, uint32_t storage, struct hb_made made)
{
    if (made.bytes != hb_tape_bytes(t, storage))
        return hb_tape_make(t, made);
    hb_tape_hold(t, storage);
    return storage;
}

uint32_t hb_ops_convert_work(struct hb_tape *t, uint32_t storage, const char *op, const char *name,
                             int64_t bytes)
{
    return hb_ops_convert(
        t, storage,
        (struct hb_made){.op = op, .name = name, .bytes = bytes, .category = HB_CAT_WORKING});
}

static uint32_t new_value(struct hb_tape *t, const char *op, const char *name, int64_t bytes)
{
    return hb_tape_value(t, hb_ops_work(t, op, name, bytes));
}

int64_t hb_ops_value_bytes(const struct hb_tape *t, uint32_t value)
{
    const struct hb_value *v = &t->values[value];
    return v->piece_bytes ? v->piece_bytes : hb_tape_bytes(t, v->storage);
}

static int64_t value_bytes(const struct hb_tape *t, uint32_t value)
{
    return hb_ops_value_bytes(t, value);
}

uint32_t hb_ops_convert_view(struct hb_tape *t, uint32_t storage, int64_t bytes,
                             struct hb_made made)
{
    if (made.bytes != bytes)
        return hb_tape_make(t, made);
    hb_tape_hold(t, storage);
    return storage;
}

void hb_ops_give_up_all(struct hb_tape *t, struct hb_taped *n)
{
    for (int i = 0; i < HB_TAPED_SAVED; i++)
        hb_tape_give_up(t, n, i);
}

const void *hb_ops_owed_weight(const struct hb_taped *n)
{
    const struct hb_weight *w = n->thing;
    return w->unowed ? NULL : w;
}

void hb_ops_give_up_own(struct hb_tape *t, struct hb_taped *n)
{
    if (t->split)
        t->split->with = hb_ops_owed_weight(n);
    hb_ops_give_up_all(t, n);
    if (t->split)
        t->split->with = NULL;
}

struct hb_weight hb_ops_weight(const char *name, int64_t rows, int64_t cols)
{
    return (struct hb_weight){.name = name,
                              .rows = rows,
                              .cols = cols,
                              .copy = HB_NONE,
                              .copy_grad = HB_NONE,
                              .whole = HB_NONE,
                              .grad = HB_NONE,
                              .part = HB_NONE,
                              .waiting = HB_NONE,
                              .sum = HB_NONE};
}

/* Slices of each rank of each gradient in one, of which the own ones are added to those that stay;
 * a single gradient that divides is that already (reduce_scatter_coalesced). */
static void scatter_bucket(struct hb_tape *t, struct hb_zero *z)
{
    if (z->count > 1 || z->padded != z->filled)
        hb_tape_drop(t, hb_ops_work(t, "cat", "gradients to reduce, in one",
                                    hb_tape_size(t, z->padded, z->element_bytes, 1)));
    hb_tape_drop(t, z->large);
    z->large = HB_NONE;
    z->filled = z->padded = z->count = 0;
}

/* It is put together from each rank's slices, in one more copy, summed, and the own slices are
 * kept.
 */
void hb_ops_reduce_bucket(struct hb_tape *t, struct hb_zero *z)
{
    if (z->ranks) {
        scatter_bucket(t, z);
        return;
    }
    int64_t bytes = hb_tape_size(t, z->filled, z->element_bytes, 1);
    uint32_t one = hb_ops_work(t, "cat", "gradients to reduce, in one", bytes);
    hb_tape_drop(t, one);
    if (z->part == HB_NONE)
        z->part = hb_tape_make(t, (struct hb_made){"copy", "own part of the gradients",
                                                   z->part_bytes, HB_CAT_GRADIENTS, 0});
    hb_tape_drop(t, z->large);
    z->large = HB_NONE;
    z->filled = 0;
}

/* A gradient that is larger than the buffer waits where it is. */
static void fill_bucket(struct hb_tape *t, struct hb_weight *w)
{
    struct hb_zero *z = w->zero;
    int64_t count = hb_tape_size(t, w->rows, w->cols, 1);
    if (z->filled > 0 && hb_add_sat(z->filled, count) > z->room)
        hb_ops_reduce_bucket(t, z);
    z->filled = hb_add_sat(z->filled, count);
    z->count++;
    if (z->ranks)
        z->padded = hb_add_sat(z->padded, hb_mul_sat(hb_div_up(count, z->ranks), z->ranks));
    if (count > z->room) {
        z->large = w->grad == HB_NONE ? w->sum : w->grad;
        hb_tape_hold(t, z->large);
    }
}

uint32_t hb_ops_widened(struct hb_tape *t, uint32_t grad)
{
    struct hb_made made = {"to f32", "weight's gradient in f32", 2 * hb_tape_bytes(t, grad),
                           HB_CAT_GRADIENTS, 0};
    uint32_t wide = hb_tape_make(t, made);
    hb_tape_drop(t, grad);
    return wide;
}

/* Autograd puts the gradients of a weight that is used more than once together before anybody sees
 * them: two in a storage of their own, further ones in place (torch 2.15, real tensors). What an
 * earlier microbatch left is added to in place. */
static void add_gradient(struct hb_tape *t, struct hb_weight *w, uint32_t grad)
{
    if (w->seen == 0) {
        w->sum = grad;
    } else if (w->seen == 1) {
        uint32_t sum = hb_ops_work(t, "add", "sum of weight gradients", hb_tape_bytes(t, grad));
        hb_tape_drop(t, w->sum);
        hb_tape_drop(t, grad);
        w->sum = sum;
    } else {
        hb_tape_drop(t, grad);
    }
    if (++w->seen < w->uses)
        return;
    if (w->zero && w->zero->buffer == HB_NONE)
        w->zero->buffer = hb_tape_make(
            t, (struct hb_made){"empty", "buffer of gradients to reduce",
                                hb_tape_size(t, w->zero->room, w->zero->element_bytes, 1),
                                HB_CAT_COMMUNICATION, 0});
    if (w->updates && w->zero) {
        fill_bucket(t, w);
        hb_tape_drop(t, w->grad); /* of the microbatches before */
        w->grad = HB_NONE;
    }
    if (!w->updates && w->grad == HB_NONE)
        w->grad = w->wide ? hb_ops_widened(t, w->sum) : w->sum;
    else
        hb_tape_drop(t, w->each_wide ? hb_ops_widened(t, w->sum) : w->sum);
    w->sum = HB_NONE;
    w->seen = 0;
}

void hb_ops_weight_grad(struct hb_tape *t, struct hb_weight *w, uint32_t grad)
{
    if (w->late)
        w->waiting = grad;
    else
        add_gradient(t, w, grad);
}

void hb_ops_late_gradient(struct hb_tape *t, struct hb_weight *w)
{
    uint32_t grad = w->waiting;
    w->waiting = HB_NONE;
    if (grad != HB_NONE)
        add_gradient(t, w, grad);
}

/* --- a weight's gradient later --- */

void hb_ops_owe(struct hb_tape *t, const struct hb_taped *n, struct hb_owed o)
{
    struct hb_split *s = t->split;
    if (!hb_ops_owed_weight(n))
        return;
    o.weight = n->thing;
    o.run = s->run;
    for (int i = 0; i < 4; i++)
        o.number[i] = n->number[i];
    hb_tape_hold(t, o.grad);
    s->owed = hb_grow(t->arena, s->owed, s->owed_count, &s->owed_cap, sizeof *s->owed);
    s->owed[s->owed_count++] = o;
}

static uint32_t norm_gradient(struct hb_tape *t, int64_t rows, int64_t width)
{
    uint32_t by_scaled =
        hb_ops_work(t, "mul", "norm's gradient times its output", hb_tape_size(t, rows, width, 4));
    uint32_t sum =
        hb_ops_work(t, "sum", "gradient of a norm's weight", hb_tape_size(t, width, 4, 1));
    hb_tape_drop(t, by_scaled);
    return sum;
}

static uint32_t fused_norm_gradient(struct hb_tape *t, int64_t width)
{
    return hb_ops_work(t, "norm, backward", "gradient of a norm's weight",
                       hb_tape_size(t, width, 4, 1));
}

static uint32_t product_gradient(struct hb_tape *t, const struct hb_owed *o)
{
    const struct hb_weight *w = o->weight;
    int64_t rows = o->number[0], in = hb_mul_sat(o->number[1], o->number[3]), out = o->number[2];
    return hb_tape_make(
        t, (struct hb_made){.op = "mm, weight's gradient",
                            .name = w->name,
                            .bytes = hb_tape_size(t, in, out, o->wide ? 4 : t->width),
                            .category = HB_CAT_GRADIENTS,
                            .flops = 2 * (double)rows * (double)o->number[1] * (double)out});
}

uint32_t hb_ops_owed_gradient(struct hb_tape *t, const struct hb_owed *o)
{
    switch (o->kind) {
    case HB_OWED_NORM:
        return norm_gradient(t, o->number[0], o->number[1]);
    case HB_OWED_FUSED_NORM:
        return fused_norm_gradient(t, o->number[0]);
    case HB_OWED_PRODUCT:
        break;
    }
    return product_gradient(t, o);
}

/* torch.autograd.grad hands over a gradient of the dtype that they are added up in, and it is added
 * in place. */
uint32_t hb_ops_weight_grad_alone(struct hb_tape *t, const struct hb_owed *o, uint32_t grad)
{
    struct hb_weight *w = (struct hb_weight *)(uintptr_t)o->weight;
    if (o->wide) {
        uint32_t narrow = hb_ops_work(t, "to bf16", w->name, hb_tape_bytes(t, grad) / 2);
        hb_tape_drop(t, grad);
        grad = narrow;
    }
    uint32_t whole = w->wide ? hb_ops_widened(t, grad) : grad;
    if (w->grad == HB_NONE) {
        hb_tape_hold(t, whole);
        w->grad = whole;
    }
    return whole;
}

/* --- rope and attention --- */

/* Of so many bytes in compute's dtype. */
static int64_t in_f32(const struct hb_tape *t, int64_t bytes)
{
    return t->width == 4 ? bytes : 2 * bytes;
}

static void back_rope(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    int64_t bytes = n->number[1], whole = in_f32(t, bytes);
    uint32_t wide = hb_ops_convert_view(
        t, grad, bytes,
        (struct hb_made){"to f32", "gradient before rope, f32", whole, HB_CAT_WORKING, 0});
    hb_tape_drop(t, grad);
    uint32_t table = hb_ops_work(t, "clone", "rope's table, conjugated", n->number[0]);
    uint32_t turned = hb_ops_work(t, "mul", "gradient turned back", whole);
    hb_tape_drop(t, table);
    hb_tape_drop(t, wide);
    uint32_t out = hb_ops_convert_work(t, turned, "to bf16", "gradient before rope", bytes);
    hb_tape_drop(t, turned);
    hb_tape_give(t, n->in[0], out);
}

uint32_t hb_ops_rope(struct hb_tape *t, uint32_t x, int64_t table_bytes, const char *name)
{
    int64_t bytes = value_bytes(t, x), whole = in_f32(t, bytes);
    uint32_t wide = hb_ops_convert_view(
        t, t->values[x].storage, bytes,
        (struct hb_made){"to f32", "before rope, f32", whole, HB_CAT_WORKING, 0});
    uint32_t turned = hb_ops_work(t, "mul", "turned by rope", whole);
    uint32_t out = hb_tape_value(t, hb_ops_convert_work(t, turned, "to bf16", name, bytes));
    hb_tape_drop(t, turned);
    hb_tape_drop(t, wide);
    struct hb_taped *n = hb_tape_node(t, back_rope, out);
    if (n) {
        n->in[0] = x;
        n->number[0] = table_bytes;
        n->number[1] = bytes;
    }
    return out;
}

static void back_repeat(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t sum = hb_ops_work(t, "sum", "gradient over repeated heads", n->number[0]);
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], sum);
}

uint32_t hb_ops_repeat(struct hb_tape *t, uint32_t x, int64_t times, bool one, const char *name)
{
    uint32_t out;
    if (one) {
        hb_tape_hold(t, t->values[x].storage);
        out = hb_tape_value(t, t->values[x].storage);
    } else {
        out = new_value(t, "clone", name, hb_tape_size(t, value_bytes(t, x), times, 1));
    }
    struct hb_taped *n = hb_tape_node(t, back_repeat, out);
    if (n) {
        n->in[0] = x;
        n->number[0] = value_bytes(t, x);
    }
    return out;
}

static void back_sdpa(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    static const char *const names[] = {"gradient of q", "gradient of k", "gradient of v"};
    uint32_t out[3];
    struct hb_ring_sizes ring = {n->number[0], n->number[1], n->number[2], n->number[3] != 0,
                                 n->number[4] != 0};
    for (int i = 0; i < 3 && ring.ways <= 1; i++)
        out[i] = hb_ops_work(t, "flash attention, backward", names[i], n->number[i < 2 ? 0 : 5]);
    if (ring.ways > 1)
        hb_ring_backward(t, &ring, out);
    hb_ops_give_up_all(t, n);
    hb_tape_drop(t, grad);
    for (int i = 0; i < 3; i++)
        hb_tape_give(t, n->in[i], out[i]);
}

static void back_copy(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    hb_tape_give(t, n->in[0], grad);
}

/* In another order of its dimensions; its gradient is a view. */
static uint32_t copy(struct hb_tape *t, uint32_t x, const char *name)
{
    uint32_t out = new_value(t, "contiguous", name, value_bytes(t, x));
    struct hb_taped *n = hb_tape_node(t, back_copy, out);
    if (n)
        n->in[0] = x;
    return out;
}

uint32_t hb_ops_sdpa(struct hb_tape *t, struct hb_sdpa a)
{
    int64_t each = hb_tape_size(t, a.rows, a.heads, t->width);
    int64_t bytes = hb_tape_size(t, each, a.v_width ? a.v_width : a.width, 1);
    struct hb_made out = {"flash attention", "attention output", bytes, HB_CAT_WORKING, 0};
    struct hb_made sums = {"flash attention", "attention's log-sum-exp",
                           hb_tape_size(t, a.rows, a.heads, 4), HB_CAT_WORKING, 0};
    uint32_t output, lse;
    if (a.ways > 1) {
        hb_ring_forward(t, &a, &output, &lse);
    } else {
        output = hb_ops_make_or_take(t, a.kept, out);
        lse = hb_ops_make_or_take(t, a.kept, sums);
    }
    uint32_t o = hb_tape_value(t, output);
    struct hb_taped *n = hb_tape_node(t, back_sdpa, o);
    const uint32_t in[] = {a.q, a.k, a.v};
    for (int i = 0; n && i < 3; i++) {
        n->in[i] = in[i];
        hb_tape_save(t, n, t->values[in[i]].storage);
    }
    if (n) {
        n->number[0] = hb_tape_size(t, each, a.width, 1);
        n->number[5] = bytes;
        n->number[1] = value_bytes(t, a.k);
        n->number[2] = a.ways;
        n->number[3] = a.gathers;
        n->number[4] = a.balanced;
    }
    hb_tape_save(t, n, t->values[o].storage);
    hb_tape_save(t, n, lse);
    hb_tape_drop(t, lse);
    if (!hb_ring_copies(&a))
        return o;
    uint32_t ordered = copy(t, o, "attention output, in order");
    hb_tape_drop_value(t, o);
    return ordered;
}

/* --- element by element --- */

static const struct {
    const char *op, *back, *grad;
} activations[] = {[HB_SILU] = {"silu", "silu, backward", "gradient before silu"},
                   [HB_GELU] = {"gelu", "gelu, backward", "gradient before gelu"}};

static void back_activation(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t dx = hb_ops_work(t, activations[n->number[0]].back, activations[n->number[0]].grad,
                              hb_tape_bytes(t, grad));
    hb_ops_give_up_all(t, n);
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], dx);
}

uint32_t hb_ops_activation(struct hb_tape *t, uint32_t x, enum hb_activation kind)
{
    uint32_t out = new_value(t, activations[kind].op, "mlp activation", value_bytes(t, x));
    struct hb_taped *n = hb_tape_node(t, back_activation, out);
    if (n) {
        n->in[0] = x;
        n->number[0] = kind;
    }
    hb_tape_save(t, n, t->values[x].storage);
    return out;
}

static void back_mul(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    int64_t bytes = hb_tape_bytes(t, grad);
    uint32_t first = hb_ops_work(t, "mul, backward", "gradient of mlp up", bytes);
    uint32_t second = hb_ops_work(t, "mul, backward", "gradient of mlp activation", bytes);
    hb_ops_give_up_all(t, n);
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[1], first);
    hb_tape_give(t, n->in[0], second);
}

uint32_t hb_ops_mul(struct hb_tape *t, uint32_t a, uint32_t b)
{
    uint32_t out = new_value(t, "mul", "mlp product", value_bytes(t, a));
    struct hb_taped *n = hb_tape_node(t, back_mul, out);
    if (n) {
        n->in[0] = a;
        n->in[1] = b;
    }
    hb_tape_save(t, n, t->values[a].storage);
    hb_tape_save(t, n, t->values[b].storage);
    return out;
}

static void back_add(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t other =
        hb_ops_convert_work(t, grad, "to bf16", "gradient of what was added", n->number[0]);
    hb_tape_give(t, n->in[0], grad);
    hb_tape_give(t, n->in[1], other);
}

uint32_t hb_ops_add(struct hb_tape *t, uint32_t a, uint32_t b)
{
    uint32_t out = new_value(t, "add", "residual", value_bytes(t, a));
    struct hb_taped *n = hb_tape_node(t, back_add, out);
    if (n) {
        n->in[0] = a;
        n->in[1] = b;
        n->number[0] = value_bytes(t, b);
    }
    return out;
}

/* --- fused kernels --- */

static void back_norm_fused(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t dw = t->split ? HB_NONE : fused_norm_gradient(t, n->number[0]);
    uint32_t dx = hb_ops_work(t, "norm, backward", "gradient of the norm's input", n->number[1]);
    if (t->split)
        hb_ops_owe(t, n,
                   (struct hb_owed){.kind = HB_OWED_FUSED_NORM, .grad = grad, .places = UINT8_MAX});
    hb_ops_give_up_own(t, n);
    hb_tape_drop(t, grad);
    if (dw != HB_NONE)
        hb_ops_weight_grad(t, (struct hb_weight *)(uintptr_t)n->thing, dw);
    hb_tape_give(t, n->in[0], dx);
}

uint32_t hb_ops_norm_fused(struct hb_tape *t, uint32_t x, int64_t rows, int64_t width,
                           struct hb_weight *weight)
{
    uint32_t out = new_value(t, "norm", "norm's output", value_bytes(t, x));
    uint32_t scale = hb_ops_work(t, "norm", "norm's scale, a token", hb_tape_size(t, rows, 4, 1));
    struct hb_taped *n = hb_tape_node(t, back_norm_fused, out);
    if (n) {
        n->in[0] = x;
        n->number[0] = width;
        n->number[1] = value_bytes(t, x);
        n->thing = weight;
    }
    hb_tape_save(t, n, t->values[x].storage);
    hb_tape_save(t, n, scale);
    hb_tape_drop(t, scale);
    return out;
}

static void back_map(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t dx = hb_ops_work(t, "fused, backward", "gradient before rope", n->number[0]);
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], dx);
}

uint32_t hb_ops_map_fused(struct hb_tape *t, uint32_t x, const char *name)
{
    uint32_t out = new_value(t, "fused", name, value_bytes(t, x));
    struct hb_taped *n = hb_tape_node(t, back_map, out);
    if (n) {
        n->in[0] = x;
        n->number[0] = value_bytes(t, x);
    }
    return out;
}

uint32_t hb_ops_gated_fused(struct hb_tape *t, uint32_t gate, uint32_t up)
{
    uint32_t out = new_value(t, "fused", "mlp product", value_bytes(t, gate));
    struct hb_taped *n = hb_tape_node(t, back_mul, out);
    if (n) {
        n->in[0] = gate;
        n->in[1] = up;
    }
    hb_tape_save(t, n, t->values[gate].storage);
    hb_tape_save(t, n, t->values[up].storage);
    return out;
}

/* --- sequence parallelism: functional collectives over the sequence's dimension --- */

/* Of one sequence what comes by rank is in order already, and a view of it will do
 * (torch/_utils.py, _maybe_view_chunk_cat). */
uint32_t hb_ops_gather_storage(struct hb_tape *t, uint32_t x, struct hb_gather g)
{
    int64_t bytes = hb_tape_size(t, hb_tape_bytes(t, x), g.ways, 1);
    if (g.one)
        return hb_ops_work(t, "all-gather over tensor", "gathered sequence", bytes);
    uint32_t raw = hb_ops_work(t, "all-gather over tensor", "gathered sequence, by rank", bytes);
    uint32_t out = hb_ops_work(t, "cat", "gathered sequence", bytes);
    hb_tape_drop(t, raw);
    return out;
}

static uint32_t scatter_storage(struct hb_tape *t, uint32_t x, struct hb_gather g,
                                struct hb_kept *kept)
{
    int64_t whole = hb_tape_bytes(t, x);
    uint32_t chunks = g.flat ? HB_NONE : hb_ops_work(t, "cat", "partial sums, by rank", whole);
    uint32_t part = hb_ops_make_or_take(t, kept,
                                        (struct hb_made){"reduce-scatter over tensor",
                                                         "summed part of the sequence",
                                                         whole / g.ways, HB_CAT_WORKING, 0});
    hb_tape_drop(t, chunks);
    return part;
}

static struct hb_gather gather_of(const struct hb_taped *n)
{
    return (struct hb_gather){n->number[0], n->number[1], n->number[2]};
}

static void note_gather(struct hb_taped *n, uint32_t x, struct hb_gather g)
{
    if (!n)
        return;
    n->in[0] = x;
    n->number[0] = g.ways;
    n->number[1] = g.one;
    n->number[2] = g.flat;
}

static void back_gather(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t out = scatter_storage(t, grad, gather_of(n), NULL);
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], out);
}

static void back_scatter(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t out = hb_ops_gather_storage(t, grad, gather_of(n));
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], out);
}

uint32_t hb_ops_gather(struct hb_tape *t, uint32_t x, struct hb_gather g)
{
    uint32_t out = hb_tape_value(t, hb_ops_gather_storage(t, t->values[x].storage, g));
    note_gather(hb_tape_node(t, back_gather, out), x, g);
    return out;
}

uint32_t hb_ops_scatter(struct hb_tape *t, uint32_t x, struct hb_gather g, struct hb_kept *kept)
{
    uint32_t out = hb_tape_value(t, scatter_storage(t, t->values[x].storage, g, kept));
    note_gather(hb_tape_node(t, back_scatter, out), x, g);
    return out;
}
