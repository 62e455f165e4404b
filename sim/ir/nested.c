/* Nested scans: blocks of layers of which only the first input is kept, and whose layers are run
 * once more before their backward pass. Source of truth: the lab program's layers=nested
 * (tiny, 8B, rnd and 1B of the measured records). */
#include "sim/ir/nested.h"
#include "sim/ir/moe_experts.h"

#include "base/arena.h"
#include "sim/ir/turn.h"
#include "sim/ir/weight.h"

/* A leaf as an outer block has it. */
static struct hb_leaf part_of(const struct hb_leaf *l)
{
    struct hb_leaf part = *l;
    part.stack[0] = part.stack[1];
    part.stack[1] = 0;
    return part;
}

static uint32_t *leaf_list(struct hb_lower *lo, const struct hb_group *g)
{
    return hb_arena_alloc(lo->arena, g->layer.end_leaf - g->layer.first_leaf, sizeof(uint32_t));
}

/* XLA:GPU hands the loop over the inner layers copies of an outer block's weights, as they are or
 * transposed (8B/layers=nested at 8192 tokens with logits in bf16: f32[1,16,512,14336] twice and
 * f32[512,1,16,14336] beside the stacks). Returns a buffer of each leaf. */
static uint32_t *copy_parts(struct hb_lower *lo, const struct hb_group *g)
{
    uint32_t *parts = hb_none_list(lo, g->layer.end_leaf - g->layer.first_leaf);
    for (uint32_t i = g->layer.first_leaf; i < g->layer.end_leaf; i++) {
        const struct hb_leaf *l = &lo->leaves[i];
        uint32_t from = l->cast != HB_NONE ? l->cast : l->arg;
        if (l->transposed != HB_NONE)
            from = l->transposed;
        if (!lo->habits->recompute_first || !l->stack[1])
            continue;
        struct hb_leaf part = part_of(l);
        uint32_t copy = hb_temp(lo, hb_name(lo, l->name, ", part of an outer block"),
                                HB_CAT_WORKING, hb_leaf_shape(&part, lo->p->bufs[from].dtype));
        hb_emit_simple(lo, HB_OP_COPY, "part of an outer block", from, copy);
        parts[i - g->layer.first_leaf] = copy;
    }
    return parts;
}

static void end_parts(struct hb_lower *lo, const struct hb_group *g, const uint32_t *parts)
{
    for (uint32_t i = g->layer.first_leaf; i < g->layer.end_leaf; i++)
        if (parts[i - g->layer.first_leaf] != HB_NONE)
            hb_emit_mark(lo, "end of an outer block", parts[i - g->layer.first_leaf], HB_NONE);
}

bool hb_nested_is(const struct hb_lower *lo, const struct hb_group *g)
{
    return g->inner > 1 && hb_in_blocks(lo);
}

uint32_t hb_nested_forward(struct hb_lower *lo, struct hb_group *g, uint32_t x)
{
    struct hb_shape s = hb_buf_shape(lo, x);
    struct hb_shape stack = {.rank = s.rank + 1, .dtype = s.dtype, .dim = {g->trips}};
    for (int i = 0; i < s.rank; i++)
        stack.dim[i + 1] = s.dim[i];
    g->outer_stack = hb_temp(lo, hb_name(lo, g->layer.name, " outer inputs, saved for backward"),
                             HB_CAT_SAVED, stack);
    hb_emit_mark(lo, "stack of outer inputs", HB_NONE, g->outer_stack);
    hb_stack_hoist_mask(lo, g);
    uint32_t loop = hb_program_open_loop(lo->p, g->layer.name, g->trips);
    hb_emit_simple(lo, HB_OP_COPY, "outer input into its stack", x, g->outer_stack);
    uint32_t *parts = copy_parts(lo, g);
    uint32_t inner = hb_program_open_loop(lo->p, hb_name(lo, g->layer.name, ", inner"), g->inner);
    uint32_t out = hb_body_forward(&g->body, x, x, false);
    hb_program_close_loop(lo->p, inner);
    end_parts(lo, g, parts);
    hb_program_close_loop(lo->p, loop);
    g->body.mask = g->body.fill = HB_NONE;
    return out;
}

/* One outer block's part of the weights in the compute dtype and of their gradients: the inner loop
 * works on slices (8B/layers=nested: +6 bytes for each parameter of an outer block), of the weights
 * themselves where they need no cast, and where the outer blocks are not made again either. */
struct slices {
    uint32_t *grads, *casts; /* the stacks', by leaf */
};

static struct slices slice_weights(struct hb_lower *lo, struct hb_group *g)
{
    struct slices s = {leaf_list(lo, g), leaf_list(lo, g)};
    for (uint32_t i = g->layer.first_leaf; i < g->layer.end_leaf; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        struct hb_leaf part = part_of(l);
        uint32_t from = l->cast;
        s.casts[i - g->layer.first_leaf] = from;
        if (from == HB_NONE && lo->habits->casts_hoisted && l->matrix)
            from = l->arg;
        if (from != HB_NONE) {
            uint32_t slice = hb_temp(lo, hb_name(lo, l->name, ", slice of an outer block"),
                                     HB_CAT_PARAMS, hb_leaf_shape(&part, lo->compute));
            hb_emit_simple(lo, HB_OP_COPY, "slice weights", from, slice);
            l->cast = slice;
        }
        s.grads[i - g->layer.first_leaf] = l->grad;
        l->grad = hb_temp_tiled(lo, hb_name(lo, l->name, ", gradient of an outer block"),
                                HB_CAT_GRADIENTS, hb_leaf_shape(&part, hb_weight_grad_dtype(lo)),
                                hb_weight_grad_tiling(lo, l));
        hb_emit_mark(lo, "zero gradient of an outer block", HB_NONE, l->grad);
    }
    return s;
}

static void unslice_weights(struct hb_lower *lo, struct hb_group *g, struct slices s)
{
    for (uint32_t i = g->layer.first_leaf; i < g->layer.end_leaf; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        hb_emit_simple(lo, HB_OP_COPY, "gradient of an outer block into its stack", l->grad,
                       s.grads[i - g->layer.first_leaf]);
        l->grad = s.grads[i - g->layer.first_leaf];
        l->cast = s.casts[i - g->layer.first_leaf];
    }
}

/* So it does on what an outer block keeps that is not made again (1B,o4,inner-only,names:
 * bf16[4,2,8192,2048] of the layers' inputs, bf16[4,2,8192,16,64] of q). Returns the stacks. */
static uint32_t *slice_kept(struct hb_lower *lo, struct hb_group *g)
{
    struct hb_body *b = &g->body;
    uint32_t *stacks = hb_arena_alloc(lo->arena, b->y->value_count, sizeof *stacks);
    for (uint32_t v = 0; v < b->y->value_count; v++)
        stacks[v] = b->stack[v];
    const int64_t lead[3] = {g->inner, 0, 0};
    hb_body_stacks(b, lead, "slices of an outer block");
    for (uint32_t v = 0; v < b->y->value_count; v++) {
        if (b->saved->keep[v] == HB_KEEP_HOST)
            b->stack[v] = stacks[v];
        else if (stacks[v] != HB_NONE)
            hb_emit_simple(lo, HB_OP_COPY, "slice kept values", stacks[v], b->stack[v]);
    }
    return stacks;
}

/* One outer block backwards; XLA:TPU works on slices of weights and gradients. */
uint32_t hb_nested_inner_backward(struct hb_lower *lo, struct hb_group *g, uint32_t grad)
{
    struct slices slices = slice_weights(lo, g);
    uint32_t *stacks = slice_kept(lo, g);
    uint32_t loop =
        hb_program_open_loop(lo->p, hb_name(lo, g->layer.name, ", inner backward"), g->inner);
    lo->p->loops[loop].ordered = hb_moe_is_ordered(lo, &g->layer);
    uint32_t out = hb_stack_carried(lo, hb_body_backward(&g->body, grad), grad);
    hb_program_close_loop(lo->p, loop);
    unslice_weights(lo, g, slices);
    g->body.stack = stacks;
    return out;
}

uint32_t hb_nested_backward(struct hb_lower *lo, struct hb_group *g, uint32_t grad)
{
    hb_weight_zero_grads(lo, g->layer.first_leaf, g->layer.end_leaf);
    uint32_t loop = hb_program_open_loop(lo->p, hb_name(lo, g->layer.name, ", backward"), g->trips);
    lo->p->loops[loop].ordered = hb_moe_is_ordered(lo, &g->layer);
    uint32_t *parts = copy_parts(lo, g);
    struct slices slices = slice_weights(lo, g);
    uint32_t x = hb_temp(lo, hb_name(lo, g->layer.name, " outer input"), HB_CAT_WORKING,
                         hb_buf_shape(lo, grad));
    hb_emit_simple(lo, HB_OP_COPY, "outer input out of its stack", g->outer_stack, x);
    const int64_t lead[3] = {g->inner, 0, 0};
    hb_body_stacks(&g->body, lead, "stack of an outer block");
    /* tiny/layers=nested: the loop that makes an outer block again has the mask for itself. */
    hb_stack_hoist_mask(lo, g);
    uint32_t inner =
        hb_program_open_loop(lo->p, hb_name(lo, g->layer.name, ", inner again"), g->inner);
    hb_body_forward(&g->body, x, x, true);
    hb_stack_carry_sent(lo, g);
    hb_program_close_loop(lo->p, inner);
    hb_stack_restack(lo, &g->body);
    g->body.mask = g->body.fill = HB_NONE;
    hb_turn_group_sent(lo, g);
    hb_turn_early(lo, g);
    inner = hb_program_open_loop(lo->p, hb_name(lo, g->layer.name, ", inner backward"), g->inner);
    lo->p->loops[inner].ordered = hb_moe_is_ordered(lo, &g->layer);
    uint32_t out = hb_stack_carried(lo, hb_body_backward(&g->body, grad), grad);
    hb_stack_end_sent(lo, g);
    hb_program_close_loop(lo->p, inner);
    hb_turn_last(lo, g);
    end_parts(lo, g, parts);
    unslice_weights(lo, g, slices);
    hb_program_close_loop(lo->p, loop);
    return out;
}
