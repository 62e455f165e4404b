/* Ops of GPT-2's layers and of DeepSeek's attention that others have not: see ops.h. Order and what
 * is kept were read off torch's own code (2.15, fake tensors). */
#include "sim/eager/ops.h"

#include "base/size.h"

/* --- LayerNorm --- */

static void back_layernorm(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_weight *w = (struct hb_weight *)(uintptr_t)n->thing;
    int64_t each = hb_tape_size(t, w->rows, t->autocast ? 4 : t->width, 1);
    static const char *const op = "layer_norm, backward";
    uint32_t dx = hb_ops_work(t, op, "gradient of the norm's input", n->number[0]);
    uint32_t dw = hb_ops_work(t, op, "gradient of a norm's weight", each);
    uint32_t db = hb_ops_work(t, op, "gradient of a norm's bias", each);
    hb_ops_give_up_all(t, n);
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], dx);
    hb_ops_weight_grad(t, w, dw);
    hb_ops_weight_grad(t, w->bias, db);
}

uint32_t hb_ops_layernorm(struct hb_tape *t, uint32_t x, int64_t rows, struct hb_weight *weight)
{
    int64_t bytes = hb_ops_value_bytes(t, x), each = hb_tape_size(t, rows, 4, 1);
    uint32_t out = hb_tape_value(t, hb_ops_work(t, "layer_norm", "norm's output", bytes));
    uint32_t mean = hb_ops_work(t, "layer_norm", "norm's mean, a token", each);
    uint32_t scale = hb_ops_work(t, "layer_norm", "norm's scale, a token", each);
    struct hb_taped *n = hb_tape_node(t, back_layernorm, out);
    if (n) {
        n->in[0] = x;
        n->number[0] = bytes;
        n->thing = weight;
    }
    hb_tape_save(t, n, t->values[x].storage);
    hb_tape_save(t, n, mean);
    hb_tape_save(t, n, scale);
    hb_tape_drop(t, mean);
    hb_tape_drop(t, scale);
    return out;
}

/* --- dropout --- */

static void back_dropout(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t dx =
        hb_ops_work(t, "dropout, backward", "gradient before dropout", hb_tape_bytes(t, grad));
    hb_ops_give_up_all(t, n);
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], dx);
}

uint32_t hb_ops_dropout(struct hb_tape *t, uint32_t x, int64_t elements)
{
    int64_t bytes = hb_ops_value_bytes(t, x);
    uint32_t out = hb_tape_value(t, hb_ops_work(t, "dropout", "after dropout", bytes));
    uint32_t mask = hb_ops_work(t, "dropout", "dropout's mask", elements);
    struct hb_taped *n = hb_tape_node(t, back_dropout, out);
    if (n)
        n->in[0] = x;
    hb_tape_save(t, n, mask);
    hb_tape_drop(t, mask);
    return out;
}

/* --- pieces --- */

/* in[0]: the whole; so far behind it the pieces' values follow. */
static void back_split(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t first = n->in[0] + (uint32_t)n->number[0], count = (uint32_t)n->number[1];
    uint32_t whole = hb_ops_work(t, "cat", "gradient of all pieces", n->number[2]);
    (void)grad;
    for (uint32_t i = first; i < first + count; i++) {
        hb_tape_drop(t, t->values[i].grad);
        t->values[i].grad = HB_NONE;
    }
    hb_tape_give(t, n->in[0], whole);
}

void hb_ops_split(struct hb_tape *t, uint32_t x, uint32_t *pieces, const int64_t *bytes, int count)
{
    uint32_t storage = t->values[x].storage;
    for (int i = 0; i < count; i++) {
        hb_tape_hold(t, storage);
        pieces[i] = hb_tape_value(t, storage);
        t->values[pieces[i]].piece_bytes = bytes[i];
    }
    struct hb_taped *n = hb_tape_node(t, back_split, HB_NONE);
    if (!n)
        return;
    n->in[0] = x;
    n->number[0] = pieces[0] - x;
    n->number[1] = count;
    n->number[2] = hb_ops_value_bytes(t, x);
}

static void back_cat(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    hb_tape_hold(t, grad);
    hb_tape_give(t, n->in[0], grad);
    hb_tape_give(t, n->in[1], grad);
}

uint32_t hb_ops_cat(struct hb_tape *t, uint32_t a, uint32_t b, int64_t bytes, const char *name)
{
    uint32_t out = hb_tape_value(t, hb_ops_work(t, "cat", name, bytes));
    struct hb_taped *n = hb_tape_node(t, back_cat, out);
    if (n) {
        n->in[0] = a;
        n->in[1] = b;
    }
    return out;
}
