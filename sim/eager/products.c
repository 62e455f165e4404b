/* Products with a weight, and their workspaces: see ops.h. */
#include "base/diag.h"
#include "base/size.h"
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

/* Of its input alone. */
static void back_linear_input(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    int64_t rows = n->number[0], in = n->number[1];
    uint32_t dx = hb_tape_make(
        t, (struct hb_made){.op = "mm, input's gradient",
                            .name = "gradient of a product's input",
                            .bytes = hb_tape_size(t, rows, in, 2),
                            .category = HB_CAT_WORKING,
                            .flops = 2 * (double)rows * (double)in * (double)n->number[2]});
    take_workspace_back(t);
    hb_ops_owe(t, n, (struct hb_owed){.grad = grad, .places = UINT8_MAX});
    hb_ops_give_up_own(t, n);
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], dx);
}

static void back_linear(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    if (t->split) {
        back_linear_input(t, n, grad);
        return;
    }
    int64_t rows = n->number[0], in = n->number[1], out = n->number[2], groups = n->number[3];
    struct hb_weight *w = (struct hb_weight *)(uintptr_t)n->thing;
    hb_zero3_enter_back(w);
    double flops = 2 * (double)rows * (double)in * (double)out;
    uint32_t dw =
        hb_tape_make(t, (struct hb_made){.op = "mm, weight's gradient",
                                         .name = w->name,
                                         .bytes = hb_tape_size(t, hb_mul_sat(in, groups), out, 2),
                                         .category = HB_CAT_GRADIENTS,
                                         .flops = flops});
    uint32_t dx = hb_tape_make(t, (struct hb_made){.op = "mm, input's gradient",
                                                   .name = "gradient of a product's input",
                                                   .bytes = hb_tape_size(t, rows, in, 2),
                                                   .category = HB_CAT_WORKING,
                                                   .flops = flops});
    take_workspace_back(t);
    hb_ops_give_up_all(t, n);
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], dx);
    hb_ops_weight_grad(t, w, dw);
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
}

/* Of a policy that keeps every second product: the first, the third ... */
static bool is_kept(struct hb_kept *kept)
{
    return kept && kept->products++ % 2 == 0;
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
    struct hb_made made = {.op = "mm",
                           .name = l.name,
                           .bytes = hb_tape_size(t, l.rows, l.out, 2),
                           .category = HB_CAT_WORKING,
                           .flops = 2 * (double)l.rows * (double)l.in * (double)l.out};
    hb_zero3_enter(l.weight);
    uint32_t out = hb_tape_value(t, hb_ops_make_or_take(t, is_kept(l.kept) ? l.kept : NULL, made));
    take_workspace(t, &t->has_workspace, "workspace of the forward pass's products");
    record_linear(t, x, out, &l);
    hb_zero3_leave(l.weight);
    return out;
}

uint32_t hb_ops_linear_left_out(struct hb_tape *t, uint32_t x, struct hb_linear l)
{
    uint32_t out = hb_tape_value(t, HB_NONE);
    hb_zero3_enter(l.weight);
    record_linear(t, x, out, &l);
    return out;
}
