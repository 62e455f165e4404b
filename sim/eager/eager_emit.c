/* The pieces of a layer as ops, forwards, made again and backwards: see eager_layer.h. What a piece
 * hides behind, by framework: Megatron's column-parallel linear has the collective of the input's
 * gradient beside the weight gradient and gathers a split input again beside the input's
 * gradient (core/tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication); a
 * ring goes beside its kernel. */
#include "sim/eager/eager_layer.h"

#include <stddef.h>

void hb_eager_emit(struct hb_eager *e, struct hb_op op, uint32_t read, uint32_t write)
{
    op.phase = e->phase;
    op.start = HB_NONE;
    hb_program_add_op(e->p, op);
    hb_program_read(e->p, e->x);
    if (read != HB_NONE && read != e->x)
        hb_program_read(e->p, read);
    hb_program_write(e->p, write == HB_NONE ? e->x : write);
}

/* Sizes of the curves: what exceeds them is as good as their end. */
static int64_t whole(double size)
{
    return size < 0x1p62 ? (int64_t)size : INT64_C(1) << 62;
}

static struct hb_op product_op(const struct hb_piece *m, double rows, double cols, double depth,
                               double bytes)
{
    return (struct hb_op){.name = m->name,
                          .kind = HB_OP_MATMUL,
                          .dtype = m->dtype,
                          .flops = m->flops,
                          .moved_bytes = bytes,
                          .rows = whole(rows),
                          .cols = whole(cols),
                          .depth = whole(depth),
                          .batch = m->grouped ? 1 : m->batch,
                          .grouped = m->grouped};
}

/* The axis as whose ranks those of a collective lie. */
static enum hb_axis lies_along(const struct hb_eager *e, const struct hb_piece *c)
{
    if (!c->packed)
        return c->axis;
    return e->spec->sharding.expert_tensor > 1 ? HB_AX_SEQUENCE : HB_AX_TENSOR;
}

static void emit_collective(struct hb_eager *e, const struct hb_piece *c, enum hb_op_kind kind,
                            bool beside)
{
    bool back = kind == c->back_kind && kind != c->kind && c->back_sent_bytes > 0;
    struct hb_op op = {.name = c->name,
                       .kind = kind,
                       .stream = HB_STREAM_COLLECTIVE + (unsigned)c->axis,
                       .sent_bytes = back ? c->back_sent_bytes : c->sent_bytes,
                       .axis = lies_along(e, c),
                       .group = c->group};
    if (kind != HB_OP_MARK)
        hb_eager_emit(e, op, HB_NONE, beside ? e->keys : HB_NONE);
}

static void wait_beside(struct hb_eager *e)
{
    hb_eager_emit(e, (struct hb_op){.name = "wait", .kind = HB_OP_MARK}, e->keys, HB_NONE);
}

static void emit_kernel(struct hb_eager *e, const struct hb_piece *k, bool backward)
{
    /* dv, dp, dq, dk and the scores again: five products for two. */
    static const double backward_share = 2.5;
    struct hb_op op = {.name = k->name,
                       .kind = k->kind,
                       .dtype = k->dtype,
                       .flops = k->flops * (backward ? backward_share : 1),
                       .moved_bytes = backward ? k->back_bytes : k->bytes,
                       .rows = whole(k->rows),
                       .cols = whole(k->cols),
                       .depth = whole(k->depth),
                       .batch = 1,
                       .adjoint = backward};
    if (op.moved_bytes > 0 || op.flops > 0)
        hb_eager_emit(e, op, HB_NONE, HB_NONE);
}

static void emit_quantise(struct hb_eager *e, double bytes)
{
    if (bytes > 0)
        hb_eager_emit(
            e, (struct hb_op){.name = "quantise", .kind = HB_OP_ELEMENTWISE, .moved_bytes = bytes},
            HB_NONE, HB_NONE);
}

/* enter: the collective whose way back hides behind the weight gradient; null: none. */
static void emit_product_backward(struct hb_eager *e, const struct hb_piece *m,
                                  const struct hb_piece *enter)
{
    bool again = enter && enter->kind == HB_OP_ALL_GATHER;
    emit_quantise(e, m->quantise_back_bytes);
    if (again)
        emit_collective(e, enter, HB_OP_ALL_GATHER, true);
    hb_eager_emit(e, product_op(m, m->rows, m->depth, m->cols, m->bytes), HB_NONE, HB_NONE);
    if (again)
        wait_beside(e);
    if (enter)
        emit_collective(e, enter, enter->back_kind, true);
    hb_eager_emit(e, product_op(m, m->cols, m->depth, m->rows, m->back_bytes), HB_NONE, e->grads);
    hb_eager_emit(e, (struct hb_op){.name = "gradient of the weight", .kind = HB_OP_MARK}, e->grads,
                  HB_NONE);
    if (enter)
        wait_beside(e);
}

static void emit_product(struct hb_eager *e, const struct hb_piece *m)
{
    emit_quantise(e, m->quantise_bytes);
    hb_eager_emit(e, product_op(m, m->rows, m->cols, m->depth, m->bytes), HB_NONE, HB_NONE);
}

void hb_eager_piece(struct hb_eager *e, const struct hb_piece *piece, bool backward)
{
    if (piece->kind == HB_OP_MATMUL && backward)
        emit_product_backward(e, piece, NULL);
    else if (piece->kind == HB_OP_MATMUL)
        emit_product(e, piece);
    else if (piece->group > 0)
        emit_collective(e, piece, backward ? piece->back_kind : piece->kind, piece->beside);
    else
        emit_kernel(e, piece, backward);
}

/* What goes beside a kernel is waited for after it. */
static void emit_run(struct hb_eager *e, const struct hb_eager_layer *l, bool again)
{
    bool waiting = false;
    for (uint32_t i = 0; i < l->count; i++) {
        if (again && !l->pieces[i].remade)
            continue;
        const struct hb_piece *p = &l->pieces[i];
        hb_eager_piece(e, p, false);
        if (waiting || (p->beside && p->waits))
            wait_beside(e);
        waiting = p->beside && !p->waits;
    }
}

void hb_eager_layer_forward(struct hb_eager *e, const struct hb_eager_layer *layer)
{
    emit_run(e, layer, false);
}

/* Keys and values go round once more, and their gradients; sums over tensor are only that. */
static void emit_beside_backward(struct hb_eager *e, const struct hb_piece *kernel,
                                 const struct hb_piece *ring)
{
    if (ring->axis != HB_AX_TENSOR)
        emit_collective(e, ring, ring->kind, true);
    emit_collective(e, ring, ring->back_kind, true);
    if (ring->waits)
        wait_beside(e);
    hb_eager_piece(e, kernel, true);
    if (!ring->waits)
        wait_beside(e);
}

/* Of a column-parallel product: what it gathers, or a sum backwards alone. */
static bool enters_tensor(const struct hb_piece *c)
{
    bool in = c->kind == HB_OP_ALL_GATHER || c->kind == HB_OP_MARK;
    return c->axis == HB_AX_TENSOR && c->group > 0 && in;
}

void hb_eager_layer_backward(struct hb_eager *e, const struct hb_eager_layer *layer)
{
    emit_run(e, layer, true);
    bool hides = e->spec->runtime.framework == HB_FW_MEGATRON;
    for (uint32_t i = layer->count; i-- > 0;) {
        const struct hb_piece *p = &layer->pieces[i], *before = i > 0 ? p - 1 : p;
        if (hides && p->kind == HB_OP_MATMUL && enters_tensor(before)) {
            emit_product_backward(e, p, before);
            i--;
        } else if (before->beside) {
            emit_beside_backward(e, p, before);
            i--;
        } else {
            hb_eager_piece(e, p, true);
        }
    }
}
