/* Products with a weight, their workspaces, and what autocast makes of them: see ops.h. */
#include "base/diag.h"
#include "base/size.h"
#include "sim/eager/knapsack.h"
#include "sim/eager/ops.h"
#include "sim/eager/zero3.h"

/* A BLAS handle belongs to a thread, and autograd's is not the program's: each takes a workspace
 * from the allocator once its first product has its result, and keeps it. */
static void take_workspace(struct hb_tape *t, bool *has, const char *name)
{
    if (*has || t->workspace_bytes == 0)
        return;
    *has = true;
    hb_tape_keep(t, hb_ops_work(t, "mm, its workspace", name, t->workspace_bytes));
}

static void take_workspace_back(struct hb_tape *t)
{
    take_workspace(t, &t->has_workspace_back, "workspace of the backward pass's products");
}

static uint32_t weight_back(struct hb_tape *t, const struct hb_taped *n)
{
    const struct hb_weight *w = n->thing;
    int64_t rows = n->number[0], in = n->number[1], out = n->number[2], groups = n->number[3];
    return hb_tape_make(
        t, (struct hb_made){.op = "mm, weight's gradient",
                            .name = w->name,
                            .bytes = hb_tape_size(t, hb_mul_sat(in, groups), out, t->width),
                            .category = HB_CAT_GRADIENTS,
                            .flops = 2 * (double)rows * (double)in * (double)out});
}

static uint32_t input_back(struct hb_tape *t, const struct hb_taped *n)
{
    int64_t rows = n->number[0], in = n->number[1];
    return hb_tape_make(
        t, (struct hb_made){.op = "mm, input's gradient",
                            .name = "gradient of a product's input",
                            .bytes = hb_tape_size(t, rows, in, t->width),
                            .category = HB_CAT_WORKING,
                            .flops = 2 * (double)rows * (double)in * (double)n->number[2]});
}

/* Autocast's copy of a weight is made before the product's input is cast, so its gradient waits. */
static void give_weight(struct hb_tape *t, struct hb_weight *w, uint32_t grad)
{
    if (t->autocast)
        w->copy_grad = grad;
    else
        hb_ops_weight_grad(t, w, grad);
}

/* Of its input alone. */
static void back_linear_input(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t dx = input_back(t, n);
    take_workspace_back(t);
    hb_ops_owe(t, n, (struct hb_owed){.grad = grad, .places = UINT8_MAX});
    hb_ops_give_up_own(t, n);
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], dx);
}

/* mm's gradients begin with the weight's, addmm's with the input's (torch 2.15). */
static void back_linear(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    if (t->split) {
        back_linear_input(t, n, grad);
        return;
    }
    struct hb_weight *w = (struct hb_weight *)(uintptr_t)n->thing;
    uint32_t dw = HB_NONE, db = HB_NONE;
    hb_zero3_enter_back(w);
    if (!w->bias)
        dw = weight_back(t, n);
    uint32_t dx = input_back(t, n);
    if (w->bias) {
        dw = weight_back(t, n);
        db = hb_tape_make(t, (struct hb_made){"sum", w->bias->name,
                                              hb_tape_size(t, n->number[2], t->width, 1),
                                              HB_CAT_GRADIENTS, 0});
    }
    take_workspace_back(t);
    hb_ops_give_up_all(t, n);
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], dx);
    give_weight(t, w, dw);
    if (w->bias)
        give_weight(t, w->bias, db);
    hb_zero3_leave(w);
}

static void record_linear(struct hb_tape *t, uint32_t x, uint32_t out, const struct hb_linear *l)
{
    struct hb_taped *n = hb_tape_node(t, back_linear, out);
    if (!n)
        return;
    n->in[0] = x;
    n->number[0] = l->rows;
    n->number[1] = l->in;
    n->number[2] = l->out;
    n->number[3] = l->groups > 1 ? l->groups : 1;
    n->thing = l->weight;
    hb_tape_save(t, n, t->values[x].storage);
    if (l->weight->copy != HB_NONE)
        hb_tape_save(t, n, l->weight->copy);
}

/* --- autocast: a product's arguments in compute's dtype, from the last to the first; of a weight
 * the copy is cached until the context ends (aten/src/ATen/autocast_mode.cpp) --- */

static void back_copy_weight(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_weight *w = (struct hb_weight *)(uintptr_t)n->thing;
    uint32_t wide = hb_ops_widened(t, w->copy_grad);
    (void)grad;
    w->copy_grad = HB_NONE;
    hb_ops_weight_grad(t, w, wide);
}

static void copy_weight(struct hb_tape *t, struct hb_weight *w)
{
    if (!w || w->copy != HB_NONE)
        return;
    struct hb_made made = {"to bf16", "autocast's copy of a weight",
                           hb_tape_size(t, w->rows, w->cols, t->width), HB_CAT_WORKING, 0};
    w->copy = hb_tape_make(t, made);
    struct hb_taped *n = hb_tape_node(t, back_copy_weight, HB_NONE);
    if (n)
        n->thing = w;
}

void hb_ops_forget_copy(struct hb_tape *t, struct hb_weight *w)
{
    hb_tape_drop(t, w->copy);
    w->copy = HB_NONE;
}

static void back_cast_input(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t wide = hb_ops_work(t, "to f32", "gradient of a product's input in f32",
                                2 * hb_tape_bytes(t, grad));
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], wide);
}

/* Held once more than it was. */
static uint32_t cast_input(struct hb_tape *t, uint32_t x, const struct hb_linear *l)
{
    int64_t bytes = hb_tape_size(t, l->rows, l->in, t->width);
    if (bytes == hb_tape_bytes(t, t->values[x].storage)) {
        hb_tape_hold(t, t->values[x].storage);
        return x;
    }
    uint32_t in = hb_tape_value(t, hb_ops_work(t, "to bf16", "a product's input", bytes));
    struct hb_taped *n = hb_tape_node(t, back_cast_input, in);
    if (n)
        n->in[0] = x;
    return in;
}

static uint32_t cast_all(struct hb_tape *t, uint32_t x, const struct hb_linear *l)
{
    if (!t->autocast) {
        hb_tape_hold(t, t->values[x].storage);
        return x;
    }
    copy_weight(t, l->weight->bias);
    copy_weight(t, l->weight);
    return cast_input(t, x, l);
}

/* Of a policy that keeps every second product: the first, the third ... Those with a bias (addmm)
 * are kept all, and not counted (torchtitan/distributed/activation_checkpoint.py). */
static bool is_kept(struct hb_kept *kept, bool biased)
{
    if (kept && !kept->names && biased)
        return true;
    int at = kept ? kept->products++ : 0;
    if (kept && kept->names)
        return hb_knapsack_keeps(kept->names, at);
    return kept && at % 2 == 0;
}

uint32_t hb_ops_make_or_take(struct hb_tape *t, struct hb_kept *kept, struct hb_made made)
{
    if (kept && kept->again)
        return kept->storages[kept->next++];
    uint32_t storage = hb_tape_make(t, made);
    if (kept) {
        if (kept->count == HB_KEPT)
            HB_BUG("a layer keeps more than %d outputs", HB_KEPT);
        hb_tape_count_as(t, storage, HB_CAT_SAVED);
        hb_tape_hold(t, storage);
        kept->storages[kept->count++] = storage;
    }
    return storage;
}

uint32_t hb_ops_linear(struct hb_tape *t, uint32_t x, struct hb_linear l)
{
    struct hb_made made = {.op = l.weight->bias ? "addmm" : "mm",
                           .name = l.name,
                           .bytes = hb_tape_size(t, l.rows, l.out, t->width),
                           .category = HB_CAT_WORKING,
                           .flops = 2 * (double)l.rows * (double)l.in * (double)l.out};
    hb_zero3_enter(l.weight);
    uint32_t in = cast_all(t, x, &l);
    uint32_t out = hb_tape_value(
        t, hb_ops_make_or_take(t, is_kept(l.kept, l.weight->bias) ? l.kept : NULL, made));
    take_workspace(t, &t->has_workspace, "workspace of the forward pass's products");
    record_linear(t, in, out, &l);
    hb_tape_drop_value(t, in);
    hb_zero3_leave(l.weight);
    return out;
}

uint32_t hb_ops_linear_left_out(struct hb_tape *t, uint32_t x, struct hb_linear l)
{
    uint32_t out = hb_tape_value(t, HB_NONE);
    hb_zero3_enter(l.weight);
    uint32_t in = cast_all(t, x, &l);
    record_linear(t, in, out, &l);
    hb_tape_drop_value(t, in);
    return out;
}
