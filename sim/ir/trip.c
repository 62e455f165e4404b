/* Where layers fetch what they made from the host XLA:TPU takes the last trip out of their backward
 * loop, into the step itself. Between rings the weight gradients of that trip then come with the
 * updates, behind the loops of all other runs of layers, and what they read waits through those
 * (12 and 4 layers of 4,096 over 16 of v5e, v5p and v6e, gates or q on the host: three
 * bf16[2,4096,14336] and six bf16[2,4096,4096] at the peak of the twelve; 36 of 41 steps of
 * split-tpu; over 64, between gathers, at once), and those of sorted experts between gathers, too
 * (128 experts over 128 of v6e and v5p; on v5e, beside whose products gathers run, at once). */
#include "sim/ir/trip.h"

#include "sim/ir/copies.h"
#include "sim/ir/head.h"
#include "sim/ir/layer.h"
#include "sim/ir/nested.h"
#include "sim/ir/sequence.h"
#include "sim/ir/weight.h"

bool hb_trip_taken(const struct hb_lower *lo, const struct hb_group *g)
{
    bool loop = g->looped && (!g->inner || hb_nested_is(lo, g));
    return loop && g->layer.block->remat.offload && lo->spec->stack.unroll == 1;
}

/* A stack of the group's: what touches it is of the group's turn. */
static uint32_t gradient_of(const struct hb_lower *lo, const struct hb_group *g)
{
    for (uint32_t i = g->layer.first_leaf; i < g->layer.end_leaf; i++)
        if (lo->leaves[i].grad != HB_NONE)
            return lo->leaves[i].grad;
    return HB_NONE;
}

/* What its products make of what the loop's stack keeps, for which that waits, whole (a norm of the
 * layer's input between gathers: deepseek-v2-lite in two runs over fsdp 16, tensor and expert 2 of
 * v5e, gate on the host: bf16[21,4,4096,2048] through the other's loop). */
static uint32_t stack_of(const struct hb_lower *lo, const struct hb_group *g, int v)
{
    const struct hb_value *value = &g->layer.values[v];
    if (!value->fused || value->producer < 0)
        return HB_NONE;
    uint32_t stack = g->body.stack[g->layer.steps[value->producer].in[0]];
    return stack != HB_NONE && lo->p->bufs[stack].space == HB_SPACE_HBM ? stack : HB_NONE;
}

static void hold(struct hb_lower *lo, struct hb_group *g, uint32_t place, int v, const char *what)
{
    if (g->held[place] != HB_NONE)
        return;
    g->held[place] = place < g->layer.value_count ? stack_of(lo, g, v) : HB_NONE;
    if (g->held[place] != HB_NONE)
        return;
    const struct hb_value *value = &g->layer.values[v];
    struct hb_shape shape = value->shape;
    shape.dtype = lo->compute;
    g->held[place] = hb_temp(lo, hb_name(lo, value->name, what), HB_CAT_WORKING, shape);
    hb_emit_mark(lo, "for the last trip's weights", gradient_of(lo, g), g->held[place]);
}

/* A ring of four is no loop: its gradients come with their trip (deepseek-moe-16b of 1, 4 and 3
 * layers, q, k, v on the host: over 4 of v5p 29.6 GiB, told 33.2 as a loop, 31.0 so). */
static bool comes_last(const struct hb_lower *lo, const struct hb_block *b)
{
    bool gathers = hb_weight_gathers_plain(lo) || hb_weight_gathers_apart(lo);
    bool sorts = hb_block_mixes(b) && hb_layer_sorts_rows(&b->moe) && !hb_accumulates(lo);
    bool rings = hb_in_rings(lo) && !hb_in_short_ring(lo);
    return rings || (gathers && sorts && !hb_splits_sequence(lo));
}

void hb_trip_hold(struct hb_lower *lo, struct hb_group *g)
{
    const struct hb_layer *y = &g->layer;
    if (!comes_last(lo, y->block) || !hb_trip_taken(lo, g) || g->inner)
        return;
    if (g->room != HB_NONE)
        hb_emit_mark(lo, "rings take their room", g->room, gradient_of(lo, g));
    g->held = hb_none_list(lo, 2 * y->value_count);
    for (uint32_t i = 0; i < y->step_count; i++) {
        const struct hb_step_op *s = &y->steps[i];
        if (s->kind != HB_STEP_PRODUCT)
            continue;
        hold(lo, g, (uint32_t)s->in[0], s->in[0], ", of the last trip");
        hold(lo, g, y->value_count + (uint32_t)s->out[0], s->out[0], ", gradient of the last trip");
    }
}

static void release(struct hb_lower *lo, const struct hb_group *g, uint32_t leaf)
{
    const struct hb_layer *y = &g->layer;
    for (uint32_t i = 0; i < y->step_count; i++) {
        const struct hb_step_op *s = &y->steps[i];
        if (s->kind != HB_STEP_PRODUCT || s->leaf != leaf)
            continue;
        const uint32_t held[] = {(uint32_t)s->in[0], y->value_count + (uint32_t)s->out[0]};
        for (int k = 0; k < 2; k++)
            hb_emit_mark(lo, "gradient of the last trip", g->held[held[k]], lo->leaves[leaf].grad);
    }
}

/* Where states come from the host the weights' gradients of that trip are made one by one. */
static bool with_updates(const struct hb_lower *lo)
{
    return hb_copies_queued(lo) && !hb_updates_wait(lo);
}

void hb_trip_follow(struct hb_lower *lo, const struct hb_stack_plan *plan)
{
    for (uint32_t n = plan->count; n-- > 0 && !with_updates(lo);) {
        const struct hb_group *g = &plan->groups[n];
        for (uint32_t i = g->layer.end_leaf; g->held && i-- > g->layer.first_leaf;)
            release(lo, g, i);
    }
}

void hb_trip_update(struct hb_lower *lo, uint32_t leaf)
{
    if (!with_updates(lo))
        return;
    for (uint32_t n = 0; n < lo->layers->count; n++) {
        const struct hb_group *g = &lo->layers->groups[n];
        if (g->held)
            release(lo, g, leaf);
    }
}

/* Of several runs between gathers the last one's trip has the loop that adds a loss in chunks up
 * before the gradients of gate, up and down (8B over 64 of v6e in two runs, layer inputs on the
 * host, 4 chunks: the loop at 1062, those behind it, on v5p two of them; four such steps of v6e and
 * two of v5p; on v5e, and of one run, that loop comes last). */
bool hb_trip_meets_loss(const struct hb_lower *lo, const struct hb_stack_plan *plan)
{
    const struct hb_group *g = &plan->groups[0];
    bool last = hb_in_chunks(lo) && hb_sequence_loss_last(lo);
    return plan->count > 1 && last && hb_weight_gathers_apart(lo) && hb_trip_taken(lo, g) &&
           !g->inner && !hb_block_mixes(g->layer.block);
}
