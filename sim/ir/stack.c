/* Blocks as loops: see stack.h. A scan keeps [layers, ...] stacks of what the backward pass needs;
 * nested scans keep the inputs of the outer blocks and, while one of them is run backwards, a
 * stack of its inner layers (tinyS, 16 layers as 4 x 4: 512 -> 128 + 128 MiB). */
#include "sim/ir/stack.h"

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/ir/body_step.h"
#include "sim/ir/head.h"
#include "sim/ir/moe_experts.h"
#include "sim/ir/nested.h"
#include "sim/ir/order.h"
#include "sim/ir/side.h"
#include "sim/ir/trip.h"
#include "sim/ir/turn.h"
#include "sim/ir/weight.h"

static int64_t outer_count(const struct hb_lower *lo, int64_t trips)
{
    if (lo->spec->stack.outer > 0)
        return lo->spec->stack.outer;
    int64_t best = 1;
    for (int64_t o = 1; o * o <= trips; o++)
        if (trips % o == 0)
            best = o;
    return best;
}

static struct hb_group *add_group(struct hb_lower *lo, struct hb_stack_plan *plan)
{
    plan->groups = hb_grow(lo->arena, plan->groups, plan->count, &plan->cap, sizeof *plan->groups);
    struct hb_group *g = &plan->groups[plan->count++];
    *g = (struct hb_group){
        .trips = 1, .outer_stack = HB_NONE, .turned = {HB_NONE, HB_NONE, HB_NONE}};
    return g;
}

static void unrolled_leaves(struct hb_lower *lo, struct hb_stack_plan *plan,
                            const struct hb_block *b)
{
    static const int64_t no_stack[2];
    for (int64_t i = 0; i < hb_block_steps(b); i++) {
        struct hb_group *g = add_group(lo, plan);
        const char *name = hb_arena_printf(lo->arena, "%s[%lld]", b->name, (long long)i);
        hb_layer_leaves(lo, b, name, no_stack, &g->layer);
    }
}

void hb_stack_one_layer(struct hb_lower *lo, struct hb_stack_plan *plan,
                        const struct hb_block *block)
{
    static const int64_t no_stack[2];
    *plan = (struct hb_stack_plan){0};
    hb_layer_leaves(lo, block, block->name, no_stack, &add_group(lo, plan)->layer);
}

static void looped_leaves(struct hb_lower *lo, struct hb_stack_plan *plan, const struct hb_block *b)
{
    struct hb_group *g = add_group(lo, plan);
    int64_t trips = hb_block_steps(b);
    int64_t stack[2] = {trips, 0};
    g->looped = true;
    g->trips = trips;
    if (lo->spec->stack.form == HB_FORM_NESTED) {
        stack[0] = g->trips = outer_count(lo, trips);
        stack[1] = g->inner = trips / g->trips;
    }
    hb_layer_leaves(lo, b, b->name, stack, &g->layer);
}

/* A scan with as many layers a trip as there are has no loop left: its layers stand side by side
 * over the same stacks of weights, and with no barrier around what should be made again, common
 * subexpressions take the rematerialisation away (tiny/unroll=4: 4067 -> 17451 MiB on TPU, 6.0 ->
 * 18.4 GiB on ROCm, as layers=loop,remat=none). */
static void merged_leaves(struct hb_lower *lo, struct hb_stack_plan *plan, const struct hb_block *b)
{
    uint32_t first = plan->count;
    looped_leaves(lo, plan, b);
    int64_t trips = plan->groups[first].trips;
    for (int64_t k = 1; k < trips; k++) {
        struct hb_group *more = add_group(lo, plan);
        *more = plan->groups[first];
    }
    for (uint32_t i = first; i < plan->count; i++) {
        plan->groups[i].looped = false;
        plan->groups[i].merged = true;
        plan->groups[i].trips = 1;
    }
}

void hb_stack_leaves(struct hb_lower *lo, struct hb_stack_plan *plan)
{
    *plan = (struct hb_stack_plan){0};
    for (int i = 0; i < lo->spec->model.block_count; i++) {
        const struct hb_block *b = &lo->spec->model.blocks[i];
        if (b->pipelined && hb_ways(lo, HB_AX_PIPELINE) > 1)
            continue;
        if (hb_is_unrolled(lo))
            unrolled_leaves(lo, plan, b);
        else if (lo->spec->stack.unroll >= hb_block_steps(b))
            merged_leaves(lo, plan, b);
        else
            looped_leaves(lo, plan, b);
    }
}

static void build_layer(struct hb_lower *lo, struct hb_layer *y)
{
    int64_t fsdp = hb_ways(lo, HB_AX_FSDP);
    struct hb_local local = lo->local;
    if (lo->batch_whole) {
        lo->local.batch = hb_mul_sat(local.batch, fsdp);
        lo->local.resid_width = hb_div_up(local.resid_width, fsdp);
    }
    hb_layer_build(lo, y, lo->local.batch);
    lo->local = local;
}

/* Layers side by side with nothing made again: gathers and casts of the forward pass are those of
 * the backward pass, and the MLP's activation is kept (1B,f8 with layers=loop, remat=none: 48
 * bf16[2048,8192] of weights and 48 bf16[4096,8192] beside the logits). Gathers are so of a block
 * of one layer, too (deepseek-moe-16b's first, fsdp 64 and expert 2, v5e; gate and up, no
 * activation); in a unit all but the last gather again (gemma3-4b, v5e, fsdp 128). */
void hb_stack_build(struct hb_lower *lo, struct hb_stack_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        struct hb_group *g = &plan->groups[i];
        struct hb_remat remat = g->layer.block->remat;
        if (g->merged)
            remat = (struct hb_remat){.policy = HB_POLICY_NONE};
        /* One outer trip is no loop, but the loop over its layers stays one. */
        if (g->trips == 1 && g->inner <= 1)
            g->looped = false;
        bool none = !g->looped && remat.policy == HB_POLICY_NONE;
        lo->acts_stay = none && g->layer.block->remat.policy == HB_POLICY_NONE;
        build_layer(lo, &g->layer);
        hb_saved_find(lo, &g->layer, &remat, false, !g->looped, &g->saved);
        hb_body_init(&g->body, lo, &g->layer, &g->saved);
        g->body.own_stacks = !g->looped;
        g->body.own_weights = none && g->layer.block->unit == 1;
    }
    hb_side_plan(lo, plan);
}

int64_t hb_stack_outer(const struct hb_lower *lo, int64_t layers)
{
    return hb_in_blocks(lo) ? outer_count(lo, layers) : 0;
}

int64_t hb_stack_input_bytes(const struct hb_lower *lo)
{
    const struct hb_spec *whole = lo->whole;
    int64_t one =
        hb_mul_sat(2 * lo->local.batch, hb_mul_sat(lo->local.resid_seq, lo->local.resid_width));
    int64_t layers = 0;
    for (int i = 0; i < whole->model.block_count; i++)
        layers += hb_block_steps(&whole->model.blocks[i]);
    int64_t blocks = hb_stack_outer(lo, layers);
    return hb_mul_sat(blocks ? blocks : layers, one);
}

/* --- forward --- */

/* XLA:GPU lifts the causal mask out of the forward scan and materialises it, with the fill value,
 * for every head (tiny/base: pred and f32[8,16,2048,2048]); the backward scan makes it again. Inner
 * loops of one trip are none (tiny/layers=nested: no pred[8,16,2048,2048] with outer=4, but 2). */
void hb_stack_hoist_mask(struct hb_lower *lo, struct hb_group *g)
{
    struct hb_shape s = g->layer.mask_shape;
    if (!lo->habits->mask_hoisted || s.rank == 0 || g->inner == 1 ||
        g->layer.block->attention.mask != HB_MASK_CAUSAL)
        return;
    g->body.fill =
        hb_temp(lo, hb_name(lo, g->layer.name, ".fill value of the mask"), HB_CAT_WORKING, s);
    s.dtype = HB_DT_PRED;
    g->body.mask = hb_temp(lo, hb_name(lo, g->layer.name, ".causal mask"), HB_CAT_WORKING, s);
    hb_emit_mark(lo, "fill value", HB_NONE, g->body.fill);
    hb_emit_mark(lo, "causal mask", HB_NONE, g->body.mask);
}

/* On several devices XLA:TPU sends what goes to the host one trip later, out of the loop's carry:
 * the last layer's values are there through the loss (1B/remat=offload:layer_in: bf16[2,4096,2048]
 * beside the last residual; tinyS/remat=offload:layer_in, one device: none). The backward loop
 * starts from them and has the next trip's in their place (ring/f8,upfront with
 * offload:layer_in,mlp_gate,mlp_up: wide.param.0{23}, {24}, bf16[2,4096,14336], beside this
 * trip's). MaxText's alike (qwen3-4b, v5p-32, minimal_offloaded: two bf16[2,8192,9728]). */
void hb_stack_carry_sent(struct hb_lower *lo, struct hb_group *g)
{
    struct hb_body *b = &g->body;
    if (!lo->habits->rings || lo->local.batch_ways == 1)
        return;
    g->last = hb_none_list(lo, b->y->value_count);
    for (uint32_t v = 0; v < b->y->value_count; v++) {
        if (b->saved->keep[v] != HB_KEEP_HOST || b->now[v] == HB_NONE)
            continue;
        struct hb_buf copy = lo->p->bufs[b->now[v]];
        copy.name = hb_name(lo, b->y->values[v].name, ", on its way to the host");
        copy.alias_of = HB_NONE;
        g->last[v] = hb_program_add_buf(lo->p, copy);
        hb_emit_mark(lo, "carry to the next trip", b->now[v], g->last[v]);
    }
}

/* v5e's scheduler makes room as soon as it can: a scan's stacks are there before the lookup (nine
 * of nine dumps; qwen3-8b, data 4, fsdp 32: bf16[36,1,4096,4096] at 62, the rows at 67, and so
 * below all else in memory; none of v5p and v6e), unless a trip is taken out for the host. */
static bool is_stack_early(const struct hb_lower *lo, const struct hb_group *g)
{
    return hb_head_room_early(lo) && !g->inner && !hb_offloads(lo);
}

static void add_stacks(struct hb_group *g)
{
    const int64_t lead[3] = {g->trips, g->inner, 0};
    hb_body_stacks(&g->body, lead, "stack of saved values");
}

void hb_stack_reserve(struct hb_lower *lo, struct hb_stack_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (is_stack_early(lo, &plan->groups[i]))
            add_stacks(&plan->groups[i]);
}

static uint32_t scan_forward(struct hb_lower *lo, struct hb_group *g, uint32_t x)
{
    /* With remat none a scan keeps what its program computed, the cast weights of each layer too
     * (bwd/remat=none: bf16[4,1024,2816] twice, [4,2816,1024], [4,1024,1024] four times). */
    if (g->layer.block->remat.policy == HB_POLICY_NONE && !g->inner)
        hb_weight_keep_casts(lo, g->layer.first_leaf, g->layer.end_leaf);
    hb_stack_hoist_mask(lo, g);
    if (!is_stack_early(lo, g))
        add_stacks(g);
    uint32_t loop = hb_program_open_loop(lo->p, g->layer.name, g->trips);
    uint32_t inner = HB_NONE;
    if (g->inner)
        inner = hb_program_open_loop(lo->p, hb_name(lo, g->layer.name, ", inner"), g->inner);
    uint32_t out = hb_body_forward(&g->body, x, x, true);
    hb_stack_carry_sent(lo, g);
    if (g->inner)
        hb_program_close_loop(lo->p, inner);
    hb_program_close_loop(lo->p, loop);
    g->body.mask = g->body.fill = HB_NONE;
    return out;
}

/* Layers side by side keep their values where they are made, the input of each in the last one's
 * output (tiny/layers=loop,remat=none: four f32[8,16,1,2048,2048] and bf16[8,16,2048,2048] at the
 * peak, no fifth bf16; bwd/layers=loop,remat=dots_nb: eight bf16[8,2048,2816], two gradients). */
static uint32_t keep_in_place(struct hb_lower *lo, struct hb_group *g, uint32_t x)
{
    static const int64_t lead[3];
    int in = g->layer.input;
    hb_body_stacks(&g->body, lead, NULL);
    if (g->saved.keep[in] != HB_KEEP_DEVICE)
        return x;
    lo->p->bufs[g->body.stack[in]].alias_of = x;
    hb_emit_mark(lo, "saved value", x, g->body.stack[in]);
    return g->body.stack[in];
}

static uint32_t group_forward(struct hb_lower *lo, struct hb_group *g, uint32_t x)
{
    if (!g->looped) {
        return hb_body_forward(&g->body, keep_in_place(lo, g, x), HB_NONE, true);
    }
    if (hb_nested_is(lo, g))
        return hb_nested_forward(lo, g, x);
    x = scan_forward(lo, g, x);
    hb_turn_early(lo, g);
    return x;
}

/* v5e's scheduler makes room for what rings collect as soon as it can. Of layers side by side, in a
 * loop over microbatches or over more than 16 devices, the room of all rings is there before the
 * first layer (llama3-3b of 24 layers, fsdp 8 and tensor 4: for gates, ups and the activations'
 * gradients 72 bf16[4,4096,2048]); else each layer's is made for it, that of all backward passes
 * before the loss (qwen2.5-14b of four layers over 16: fsdp alone and with tensor 2 in turn, all at
 * once in two microbatches; v5p makes it when it is needed, L4_noscan). So is that of a trip that
 * is taken out, with what it makes again of q, k and v, and the gradient of the context
 * (split--v5e-o03); of one run with a loss in chunks over more than 16 only
 * (laid--v5e,16,5120,2x2048,up,c8: none before or in the layers' loop). */
static bool reserves_room(const struct hb_lower *lo, const struct hb_group *g)
{
    bool whole = !hb_in_chunks(lo) || hb_head_rooms_at_once(lo) || lo->layers->count > 1;
    bool early =
        g->looped ? hb_trip_taken(lo, g) && whole && !hb_head_waits(lo) : !hb_in_short_ring(lo);
    return hb_in_rings(lo) && hb_head_room_early(lo) && early;
}

static int64_t backward_elements(const struct hb_lower *lo, const struct hb_group *g)
{
    static const uint32_t heads = 1u << HB_TN_Q | 1u << HB_TN_K | 1u << HB_TN_V;
    const struct hb_layer *y = &g->layer;
    int64_t sum = 0;
    for (uint32_t v = 0; v < y->value_count; v++) {
        uint32_t tags = y->values[v].tags;
        bool of_trip = (tags & 1u << HB_TN_ATTN_CTX) || ((tags & heads) && g->saved.remake[v]);
        if ((tags & 1u << HB_TN_MLP_ACT) || (of_trip && g->looped))
            sum = hb_add_sat(sum, hb_shape_elements(&y->values[v].shape));
    }
    for (uint32_t k = y->first_leaf; k < y->end_leaf; k++)
        if (lo->leaves[k].held || !g->looped)
            sum = hb_add_sat(sum, hb_weight_ring_room(lo, &lo->leaves[k]));
    return sum;
}

/* It reads a weight, and so is of the group's turn. */
static uint32_t emit_room(struct hb_lower *lo, const struct hb_group *g, const char *name,
                          struct hb_shape shape)
{
    uint32_t room = hb_temp(lo, name, HB_CAT_WORKING, shape);
    hb_emit_mark(lo, "room for rings", lo->leaves[g->layer.first_leaf].arg, room);
    return room;
}

/* A product with a weight whose rows are split sums up what its ring brings. */
static void reserve_forward(struct hb_lower *lo, struct hb_group *g)
{
    const struct hb_layer *y = &g->layer;
    g->body.room = hb_none_list(lo, y->value_count);
    for (uint32_t i = 0; i < y->step_count; i++) {
        const struct hb_step_op *s = &y->steps[i];
        uint32_t v = (uint32_t)s->out[0];
        if (s->kind != HB_STEP_PRODUCT || lo->leaves[s->leaf].gather_dim != 0 ||
            hb_weight_ring_room(lo, &lo->leaves[s->leaf]) == 0)
            continue;
        uint32_t room = emit_room(lo, g, hb_body_name(&g->body, s->out[0], ", room for its ring"),
                                  y->values[v].shape);
        if (g->saved.keep[v] == HB_KEEP_DEVICE)
            lo->p->bufs[room].category = HB_CAT_SAVED;
        g->body.room[v] = room;
    }
}

static void reserve_rooms(struct hb_lower *lo, struct hb_stack_plan *plan, bool before)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        struct hb_group *g = &plan->groups[i];
        bool first = !g->looped && (hb_accumulates(lo) || hb_head_rooms_at_once(lo));
        if (before)
            g->room = HB_NONE;
        if (first != before || !reserves_room(lo, g))
            continue;
        if (first)
            reserve_forward(lo, g);
        struct hb_shape rest =
            hb_shape_make(lo->compute, (const int64_t[]){backward_elements(lo, g), -1});
        g->room =
            emit_room(lo, g, hb_name(lo, g->layer.name, ", room for its backward rings"), rest);
        lo->p->bufs[g->room].early = g->looped;
    }
}

uint32_t hb_stack_forward(struct hb_lower *lo, struct hb_stack_plan *plan, uint32_t x)
{
    lo->phase = HB_PHASE_FORWARD;
    hb_side_gather(lo, plan);
    reserve_rooms(lo, plan, true);
    for (uint32_t i = 0; i < plan->count; i++)
        x = group_forward(lo, &plan->groups[i], x);
    reserve_rooms(lo, plan, false);
    return x;
}

/* --- backward --- */

uint32_t hb_stack_carried(struct hb_lower *lo, uint32_t out, uint32_t carry)
{
    if (hb_program_root(lo->p, out) == hb_program_root(lo->p, carry))
        return out;
    uint32_t back =
        hb_temp_in_place(lo, "gradient carried to the next layer", HB_CAT_WORKING, carry);
    hb_emit_mark(lo, "carry gradient", out, back);
    return back;
}

/* Several layers a trip: XLA:GPU makes them all again before the backward pass of the last
 * (tiny/unroll=2: two f32[128,2048,2048] of scores and a bf16 one more). */
static uint32_t unrolled_backward(struct hb_lower *lo, struct hb_group *g, uint32_t grad)
{
    int64_t count = lo->spec->stack.unroll;
    struct hb_body *bodies = hb_arena_alloc(lo->arena, (size_t)count, sizeof *bodies);
    for (int64_t i = 0; i < count; i++) {
        hb_body_init(&bodies[i], lo, &g->layer, &g->saved);
        bodies[i].stack = g->body.stack;
        hb_body_recompute(&bodies[i]);
    }
    for (int64_t i = count; i-- > 0;)
        grad = hb_body_backward(&bodies[i], grad);
    return grad;
}

/* Not where an activation reads it with what is made again, as the forward pass lays both. */
static bool is_turned(const struct hb_body *b, uint32_t v)
{
    bool turned = b->y->values[v].restacked && b->saved->keep[v] == HB_KEEP_DEVICE;
    for (uint32_t i = 0; i < b->y->step_count && turned; i++) {
        const struct hb_step_op *s = &b->y->steps[i];
        bool reads = s->op == HB_OP_ELEMENTWISE && s->in_count == 2;
        if (reads && (s->in[0] == (int)v || s->in[1] == (int)v))
            turned = b->saved->keep[s->in[0]] == b->saved->keep[s->in[1]];
    }
    return turned;
}

/* What follows v of the stacks that are turned, the largest first; HB_NONE: the first, none. */
static uint32_t next_turned(const struct hb_lower *lo, const struct hb_body *b, uint32_t v)
{
    int64_t most = v == HB_NONE ? INT64_MAX : lo->p->bufs[b->stack[v]].bytes, best_bytes = -1;
    uint32_t best = HB_NONE;
    for (uint32_t k = 0; k < b->y->value_count; k++) {
        if (!is_turned(b, k))
            continue;
        int64_t bytes = lo->p->bufs[b->stack[k]].bytes;
        bool after = bytes < most || (bytes == most && (v == HB_NONE || k > v));
        if (after && bytes > best_bytes) {
            best_bytes = bytes;
            best = k;
        }
    }
    return best;
}

/* Of nested scans those of an outer block (16 layers by 4, dots, blocked attention on MI300X:
 * f32[4,8,1,8,4096,512,2] and f32[4,8,1,8,2,512,4096]). */
void hb_stack_restack(struct hb_lower *lo, struct hb_body *b)
{
    for (uint32_t v = b->restacked ? HB_NONE : next_turned(lo, b, HB_NONE); v != HB_NONE;
         v = next_turned(lo, b, v)) {
        struct hb_buf copy = lo->p->bufs[b->stack[v]];
        copy.name = hb_name(lo, copy.name, ", transposed");
        uint32_t to = hb_program_add_buf(lo->p, copy);
        hb_emit_simple(lo, HB_OP_COPY, "transpose stack", b->stack[v], to);
        b->stack[v] = to;
    }
    b->restacked = true;
}

void hb_stack_end_sent(struct hb_lower *lo, const struct hb_group *g)
{
    for (uint32_t v = 0; g->last && v < g->body.y->value_count; v++)
        if (g->last[v] != HB_NONE)
            hb_emit_mark(lo, "end of what the host carries", g->last[v], HB_NONE);
}

static uint32_t scan_backward(struct hb_lower *lo, struct hb_group *g, uint32_t grad)
{
    hb_turn_begun(lo, g);
    hb_stack_restack(lo, &g->body);
    hb_weight_zero_grads(lo, g->layer.first_leaf, g->layer.end_leaf);
    int64_t unroll = lo->spec->stack.unroll;
    bool several = lo->habits->recompute_first && !g->inner && unroll > 1 && g->trips % unroll == 0;
    uint32_t loop = hb_program_open_loop(lo->p, hb_name(lo, g->layer.name, ", backward"),
                                         several ? g->trips / unroll : g->trips);
    lo->p->loops[loop].ordered = hb_moe_is_ordered(lo, &g->layer);
    uint32_t out = g->inner  ? hb_nested_inner_backward(lo, g, grad)
                   : several ? unrolled_backward(lo, g, grad)
                             : hb_body_backward(&g->body, grad);
    out = hb_stack_carried(lo, out, grad);
    if (g->body.defer)
        hb_body_late(&g->body);
    hb_stack_end_sent(lo, g);
    hb_program_close_loop(lo->p, loop);
    hb_turn_last(lo, g);
    hb_weight_drop_casts(lo, g->layer.first_leaf, g->layer.end_leaf);
    return out;
}

static uint32_t group_backward(struct hb_lower *lo, struct hb_group *g, uint32_t grad)
{
    if (!g->looped) {
        if (g->room != HB_NONE)
            hb_emit_mark(lo, "rings take their room", g->room, HB_NONE);
        return hb_body_backward(&g->body, grad);
    }
    if (g->outer_stack != HB_NONE)
        return hb_nested_backward(lo, g, grad);
    return scan_backward(lo, g, grad);
}

/* CUDA's second pass moves what has no operands, also where it may not pass the loss: gradients of
 * all runs begin before the first of their loops (olmo2-13b of 25 and 15 layers, data 4, fsdp 4 and
 * tensor 2, f32[25,1280,6912] twice from 125 on, the loop of the 15 at 158; fsdp 4 and tensor 2
 * all of them before it). */
static void zero_runs(struct hb_lower *lo, const struct hb_stack_plan *plan)
{
    bool all = lo->habits->zeros_hoisted && lo->spec->share < HB_SHARE_TIGHT;
    for (uint32_t i = plan->count; i-- > 0 && all;)
        hb_weight_zero_grads(lo, plan->groups[i].layer.first_leaf, plan->groups[i].layer.end_leaf);
}

uint32_t hb_stack_backward(struct hb_lower *lo, struct hb_stack_plan *plan, uint32_t grad)
{
    lo->phase = HB_PHASE_BACKWARD;
    zero_runs(lo, plan);
    for (uint32_t i = plan->count; i-- > 0;) {
        grad = group_backward(lo, &plan->groups[i], grad);
        hb_side_follow(lo, plan, i);
        hb_trip_hold(lo, &plan->groups[i]);
    }
    hb_trip_follow(lo, plan);
    if (!plan->held)
        hb_side_finish(plan);
    return grad;
}
