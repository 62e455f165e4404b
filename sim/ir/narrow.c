/* See narrow.h. Read in steps compiled for TPU v7 (tests/golden/fp8.jsonl), 8 bit and not: the
 * copy of an input serves every product that reads it and, made again with them, the gradient of
 * their weights; both copies of a gradient come of one fusion; weights are copied before their
 * gather, but those of grouped products, which a shard_map takes whole, behind it, unless they are
 * gathered inside (precision.fp8_gather). Casts that leave the loops stay as wide as they are. */
#include "sim/ir/narrow.h"

#include "sim/ir/body_step.h"

/* What a fusion made leaves it in 8 bit; what a gather wrote takes a pass. */
static enum hb_op_kind pass_kind(const struct hb_lower *lo, uint32_t from)
{
    for (uint32_t i = lo->p->op_count; i-- > 0;) {
        const struct hb_op *op = &lo->p->ops[i];
        for (uint32_t w = 0; w < op->write_count; w++)
            if (hb_op_writes(lo->p, op)[w] == from)
                return op->kind == HB_OP_ALL_GATHER || op->kind == HB_OP_GATHER ? HB_OP_ELEMENTWISE
                                                                                : HB_OP_MARK;
    }
    return HB_OP_MARK;
}

bool hb_narrow_product(const struct hb_lower *lo, const struct hb_step_op *s)
{
    return s->kind == HB_STEP_PRODUCT && s->leaf != HB_NONE && lo->leaves[s->leaf].narrow;
}

/* Grouped products clip nothing (MaxText, kernels/megablox/ops.py). */
bool hb_narrow_clips(const struct hb_lower *lo, const struct hb_step_op *s)
{
    return lo->spec->precision.fp8 == HB_FP8_TENSORWISE && !lo->leaves[s->leaf].experts;
}

static uint32_t copy_of(struct hb_body *b, int v, const char *what)
{
    struct hb_shape s = b->y->values[v].shape;
    s.dtype = HB_DT_F8;
    return hb_temp_tiled(b->lo, hb_body_name(b, v, what), HB_CAT_WORKING, s,
                         b->y->values[v].tiling);
}

uint32_t hb_narrow_input(struct hb_body *b, const struct hb_step_op *s)
{
    int v = s->in[0];
    if (b->narrow[v] != HB_NONE)
        return b->narrow[v];
    struct hb_emit e = {.name = "quantise", .kind = HB_OP_MARK};
    hb_body_bring(b, v);
    hb_body_read(b, &e, v);
    if (b->now[v] != HB_NONE)
        e.kind = pass_kind(b->lo, b->now[v]);
    b->narrow[v] = copy_of(b, v, ", in 8 bit");
    hb_emit_write(&e, b->narrow[v]);
    hb_emit(b->lo, &e);
    return b->narrow[v];
}

void hb_narrow_gradient(struct hb_body *b, const struct hb_step_op *s, uint32_t grad)
{
    int v = s->out[0];
    if (b->narrow_grad[v][0] != HB_NONE)
        return;
    struct hb_emit e = {.name = "quantise gradient", .kind = pass_kind(b->lo, grad)};
    hb_emit_read(&e, grad);
    b->narrow_grad[v][0] = copy_of(b, v, ", gradient in 8 bit by row");
    b->narrow_grad[v][1] = copy_of(b, v, ", gradient in 8 bit by column");
    for (int i = 0; i < 2; i++)
        hb_emit_write(&e, b->narrow_grad[v][i]);
    hb_emit(b->lo, &e);
}

uint32_t hb_narrow_weight(struct hb_lower *lo, const struct hb_leaf *l, uint32_t from, bool whole)
{
    uint32_t copy = hb_temp(lo, hb_name(lo, l->name, ", in 8 bit"), HB_CAT_WORKING,
                            hb_leaf_layer_shape(l, HB_DT_F8, whole));
    hb_emit_simple(lo, pass_kind(lo, from), hb_name(lo, "quantise ", l->name), from, copy);
    return copy;
}

enum hb_dtype hb_narrow_gathered(const struct hb_lower *lo, const struct hb_leaf *l)
{
    return l->narrow && (!l->experts || lo->spec->precision.fp8_gather) ? HB_DT_F8 : lo->compute;
}
