/* Depths of multi-token prediction: see depths.h. Their losses and backward passes come before the
 * model's own loss (8 layers of 2,048 with 128 experts, one depth, fsdp 64 of v5p), their weights'
 * gradients behind all layers (8 of 4,096, fsdp 8 of H100: products of the depth's MLP after the
 * last loop); the head is gathered once for all losses. */
#include "sim/ir/depths.h"

#include "base/arena.h"
#include "sim/ir/loss.h"
#include "sim/ir/side.h"

static const struct hb_block *block_of(struct hb_lower *lo)
{
    const struct hb_model *m = &lo->spec->model;
    struct hb_block *b = hb_arena_alloc(lo->arena, 1, sizeof *b);
    *b = m->blocks[m->block_count - 1];
    b->name = "mtp";
    b->repeat = b->unit;
    b->joins = true;
    b->remat = (struct hb_remat){.policy = HB_POLICY_NONE};
    return b;
}

void hb_depths_leaves(struct hb_lower *lo, struct hb_depths *d)
{
    *d = (struct hb_depths){.count = lo->spec->model.mtp};
    d->layers = hb_arena_alloc(lo->arena, (size_t)d->count, sizeof *d->layers);
    for (int64_t i = 0; i < d->count; i++)
        hb_stack_one_layer(lo, &d->layers[i], block_of(lo));
}

/* XLA:TPU's ragged experts sum their gradients at once, and the rest of their layer does alike (8
 * layers of 2,048, 128 experts, fsdp 64 of v5p and v6e: each before the loop backwards). */
static bool is_held(const struct hb_lower *lo, const struct hb_block *b)
{
    return lo->spec->compiler != HB_XLA_TPU || !hb_block_mixes(b);
}

void hb_depths_build(struct hb_lower *lo, struct hb_depths *d)
{
    for (int64_t i = 0; i < d->count; i++) {
        d->layers[i].held = is_held(lo, d->layers[i].groups[0].layer.block);
        hb_stack_build(lo, &d->layers[i]);
    }
}

static uint32_t add(struct hb_lower *lo, uint32_t grad, uint32_t more)
{
    if (more == HB_NONE)
        return grad;
    uint32_t sum =
        hb_temp_in_place(lo, "gradient of the residual, with its depths'", HB_CAT_WORKING, grad);
    hb_emit_sum(lo, "add gradients of the depths", grad, more, sum);
    return sum;
}

/* Between late gathers both losses come first, then the depths' backward passes (fsdp 64 of v6e:
 * two bf16[4,4096,151936] beside all that a depth keeps). */
static uint32_t backward(struct hb_lower *lo, struct hb_depths *d)
{
    uint32_t g = HB_NONE;
    for (int64_t i = d->count; i-- > 0;) {
        if (d->grad[i] == HB_NONE)
            d->grad[i] = hb_loss_further(lo, d->out[i], false);
        g = hb_stack_backward(lo, &d->layers[i], add(lo, d->grad[i], g));
    }
    return g;
}

void hb_depths_forward(struct hb_lower *lo, struct hb_depths *d, uint32_t x)
{
    d->more = HB_NONE;
    lo->further = hb_arena_alloc(lo->arena, (size_t)d->count, sizeof *lo->further);
    d->out = hb_arena_alloc(lo->arena, (size_t)d->count, sizeof *d->out);
    d->grad = hb_none_list(lo, (uint32_t)d->count);
    for (int64_t i = 0; i < d->count; i++)
        d->out[i] = hb_stack_forward(lo, &d->layers[i], i ? d->out[i - 1] : x);
    if (!hb_gathers_late(lo)) {
        d->more = backward(lo, d);
        return;
    }
    for (int64_t i = d->count; i-- > 0;)
        d->grad[i] = hb_loss_further(lo, d->out[i], true);
}

uint32_t hb_depths_backward(struct hb_lower *lo, struct hb_depths *d, uint32_t grad)
{
    if (hb_gathers_late(lo))
        d->more = backward(lo, d);
    return add(lo, grad, d->more);
}

void hb_depths_finish(struct hb_depths *d)
{
    for (int64_t i = d->count; i-- > 0;)
        hb_side_finish(&d->layers[i]);
}
