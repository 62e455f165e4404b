/* The backward pass of one layer: see body.h. The order of steps is what decides which tensors are
 * alive together. It was read in the compilers' schedules (bwd/base, 1B/base, 70B/base): the
 * gradient of the MLP's activation first, then what it needs is made again, so that a layer's
 * attention is recomputed before its MLP's backward and its results wait for their own. */
#include "sim/ir/body_step.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/ir/chunks.h"
#include "sim/ir/head.h"
#include "sim/ir/moe_experts.h"
#include "sim/ir/narrow.h"
#include "sim/ir/spread.h"
#include "sim/ir/weight.h"
#include "sim/ir/when.h"

static struct hb_shape grad_shape(const struct hb_body *b, const struct hb_value *value)
{
    struct hb_shape s = value->shape;
    if (value->batch_dot || value->wide)
        s.dtype = b->lo->compute;
    return s;
}

/* A new buffer for the gradient of v, or the one that exists, to be added to in place. */
static uint32_t grad_place(struct hb_body *b, int v, bool in_place_of_value)
{
    const struct hb_value *value = &b->y->values[v];
    const char *name = hb_body_name(b, v, ", gradient");
    if (b->grad[v] != HB_NONE && !b->shared[v])
        return hb_temp_in_place(b->lo, name, HB_CAT_WORKING, b->grad[v]);
    b->shared[v] = false;
    if (in_place_of_value && b->now[v] != HB_NONE && b->stack[v] != b->now[v])
        return hb_temp_in_place(b->lo, name, HB_CAT_WORKING, b->now[v]);
    if (value->wide_mask)
        return hb_temp(b->lo, name, HB_CAT_WORKING, grad_shape(b, value));
    return hb_temp_tiled(b->lo, name, HB_CAT_WORKING, grad_shape(b, value), value->tiling);
}

static uint32_t grad_out(struct hb_body *b, const struct hb_step_op *s)
{
    for (int i = 0; i < s->out_count; i++)
        if (b->grad[s->out[i]] != HB_NONE)
            return b->grad[s->out[i]];
    return HB_NONE;
}

/* MaxText's sorted experts add their gradients up whole in a call of their own; of unrolled layers
 * each device takes its part in the update, which waits for the norm (qwen3-30b-a3b, 48 layers,
 * v5p, fsdp 128: 95 bf16[128,2048,768] and 48 [128,768,2048] at the end of the backward pass). */
static void reduce_grad(struct hb_body *b, uint32_t i)
{
    struct hb_leaf *l = &b->lo->leaves[b->y->first_leaf + i];
    bool whole = b->own_stacks && l->experts && hb_head_own_loss(b->lo);
    if (b->full_dw[i] != HB_NONE && whole)
        l->grad = hb_weight_sum_whole(b->lo, b->y->first_leaf + i, b->full_dw[i]);
    else if (b->full_dw[i] != HB_NONE)
        hb_weight_reduce_grad(b->lo, b->y->first_leaf + i, b->full_dw[i]);
    b->full_dw[i] = HB_NONE;
}

static void back_weight(struct hb_body *b, const struct hb_step_op *s, uint32_t g)
{
    struct hb_lower *lo = b->lo;
    struct hb_leaf *l = &lo->leaves[s->leaf];
    struct hb_emit e = hb_body_emit(s);
    e.name = hb_name(lo, "gradient of ", l->name);
    if (s->spread > 0) {
        hb_spread_read_weight(b, &e, s);
    } else if (hb_narrow_product(lo, s)) {
        hb_narrow_gradient(b, s, g);
        hb_emit_read(&e, b->narrow_grad[s->out[0]][1]);
        hb_emit_read(&e, hb_narrow_input(b, s));
    } else {
        hb_body_bring(b, s->in[0]);
        hb_emit_read(&e, g);
        hb_body_read(b, &e, s->in[0]);
    }
    e.rows = s->depth;
    e.depth = s->rows;
    b->made_first[s->leaf - b->y->first_leaf] = true;
    if (hb_weight_grad_partial(lo, l)) {
        uint32_t full = hb_temp(lo, hb_name(lo, l->name, ", gradient before its sum"),
                                HB_CAT_GRADIENTS, hb_leaf_layer_shape(l, lo->compute, true));
        hb_emit_write(&e, full);
        hb_emit(lo, &e);
        b->full_dw[s->leaf - b->y->first_leaf] = full;
        return;
    }
    if (l->grad == HB_NONE && !l->grad_fused)
        l->grad = hb_temp(lo, hb_name(lo, l->name, ", gradient"), HB_CAT_GRADIENTS,
                          hb_leaf_shape(l, l->stack[0] ? hb_weight_grad_dtype(lo) : lo->compute));
    hb_emit_write(&e, l->grad);
    hb_emit(lo, &e);
    hb_weight_send_grad(lo, s->leaf);
}

/* The weight gradients of the step and of its siblings, products of the same input (8B-L16,v5e,f64:
 * both from 815 and 828 on, the gathered weights to 838 and 856); where memory is so scarce that
 * the logits are made again, one by one (70B/base: from 840 and 868 on). */
static void first_weights(struct hb_body *b, const struct hb_step_op *s)
{
    for (uint32_t i = b->y->step_count; i-- > 0;) {
        const struct hb_step_op *k = &b->y->steps[i];
        if (k != s && hb_head_logits_again(b->lo))
            continue;
        if (k->kind != HB_STEP_PRODUCT || grad_out(b, k) == HB_NONE ||
            hb_body_when(b, k) != HB_WHEN_FIRST || b->made_first[k->leaf - b->y->first_leaf])
            continue;
        back_weight(b, k, grad_out(b, k));
    }
}

/* XLA:GPU makes each product's part of an input's gradient apart and adds them afterwards (bwd,
 * offload of the layer input: two bf16[16384,1024]); where the sum goes to a collective it is a
 * tensor of its own (tied/1B,t8: three bf16[65536,2048]). Returns where the sum lies. */
static uint32_t add_part(struct hb_body *b, const struct hb_step_op *s, uint32_t part)
{
    uint32_t before = b->grad[s->in[0]];
    uint32_t sum = s->grad_sum_parts ? HB_NONE : before;
    const char *name = hb_body_name(b, s->in[0], ", gradient");
    const struct hb_value *value = &b->y->values[s->in[0]];
    sum = sum == HB_NONE
              ? hb_temp_tiled(b->lo, name, HB_CAT_WORKING, grad_shape(b, value), value->tiling)
              : hb_temp_in_place(b->lo, name, HB_CAT_WORKING, sum);
    hb_emit_sum(b->lo, "add parts of the gradient", part, before, sum);
    return sum;
}

/* The gradient of a residual that is split over tensor, whole for the product whose parts were
 * scattered into it (70B,f64t4,lin,spres on XLA:GPU: bf16[4,4096,8192] from before the activation's
 * gradient to the weight's; XLA:TPU, ring/f16t4,spres: bf16[2,4096,4096]). */
static uint32_t gather_grad(struct hb_body *b, const struct hb_step_op *s, uint32_t g)
{
    struct hb_lower *lo = b->lo;
    if (!s->sum_parts || lo->local.resid_seq == lo->local.seq)
        return g;
    struct hb_shape whole = b->y->values[s->out[0]].shape;
    whole.dim[1] = lo->local.seq;
    uint32_t all =
        hb_temp(lo, hb_body_name(b, s->out[0], ", gradient gathered"), HB_CAT_COMMUNICATION, whole);
    hb_emit_collective(lo, HB_OP_ALL_GATHER, HB_AX_TENSOR, "gather gradient", g, all);
    return all;
}

/* What a gradient that is put off reads is made again as soon as what that is made from has been
 * read by the rest, so that it may go. */
static void bring_put_off(struct hb_body *b)
{
    for (uint32_t k = 0; k < b->y->step_count; k++)
        if (b->y->steps[k].first_last)
            hb_body_bring(b, b->y->steps[k].in[1]);
}

static void inline_product(struct hb_body *b, const struct hb_step_op *s, enum hb_when at,
                           uint32_t g)
{
    b->grad[s->in[0]] = g;
    b->inlined = s;
    if (at == HB_WHEN_LATE)
        b->late[b->late_count++] = (uint32_t)(s - b->y->steps);
    else
        back_weight(b, s, g);
}

/* What the late gradient of that product's weight reads: turned again, from before it was. */
static uint32_t late_gradient(struct hb_body *b, const struct hb_step_op *s)
{
    for (uint32_t v = 0; v < b->y->value_count; v++) {
        if (b->y->values[v].turned != s->out[0])
            continue;
        uint32_t again = hb_temp(b->lo, hb_body_name(b, (int)v, ", gradient turned again"),
                                 HB_CAT_WORKING, hb_buf_shape(b->lo, b->grad[v]));
        hb_emit_simple(b->lo, HB_OP_COPY, "turn gradient again", b->grad[v], again);
        return again;
    }
    return grad_out(b, s);
}

/* What the gradient of the input is made of in 8 bit. */
static uint32_t narrow_gradient(struct hb_body *b, struct hb_emit *e, const struct hb_step_op *s,
                                uint32_t g)
{
    hb_narrow_gradient(b, s, g);
    if (hb_narrow_clips(b->lo, s)) {
        hb_body_bring(b, s->in[0]);
        hb_body_read(b, e, s->in[0]);
    }
    return b->narrow_grad[s->out[0]][0];
}

/* The weight's gradient waits: its input as it is now, in 8 bit where the product reads it so, or
 * was before it was turned. */
static void put_late(struct hb_body *b, const struct hb_step_op *s, uint32_t g)
{
    bool narrow = hb_narrow_product(b->lo, s);
    int in = s->in[0], from = narrow ? 0 : b->y->values[in].turned;
    if (narrow)
        hb_narrow_input(b, s);
    else
        hb_body_bring(b, from ? from : in);
    b->now[in] = from ? HB_NONE : b->now[in];
    b->grad[s->out[0]] = g;
    b->late[b->late_count++] = (uint32_t)(s - b->y->steps);
}

static void back_product(struct hb_body *b, const struct hb_step_op *s, uint32_t g)
{
    g = gather_grad(b, s, g);
    enum hb_when when = hb_body_when(b, s);
    if (s->grad_inline) {
        inline_product(b, s, when, g);
        return;
    }
    if (when == HB_WHEN_FIRST)
        first_weights(b, s);
    uint32_t rows = s->spread > 0 ? hb_spread_gradient(b, s, g) : HB_NONE;
    uint32_t w = hb_spread_weight(b, s, hb_weight_use(b->lo, s->leaf), true);
    struct hb_emit e = hb_body_emit(s);
    e.name = hb_name(b->lo, "gradient through ", b->lo->leaves[s->leaf].name);
    e.cols = s->depth;
    e.depth = s->cols;
    if (hb_narrow_product(b->lo, s))
        g = narrow_gradient(b, &e, s, g);
    hb_emit_read(&e, s->spread > 0 ? rows : g);
    hb_emit_read(&e, w);
    uint32_t before = b->grad[s->in[0]];
    /* Both parts are read by the product with the mask (olmoe: two bf16[64,8,640,2048]). */
    bool beside = s->parts_beside && before != HB_NONE;
    bool apart = b->lo->habits->parts_apart && before != HB_NONE && !beside;
    if (apart || beside)
        b->grad[s->in[0]] = HB_NONE;
    else
        hb_emit_read(&e, before);
    if (beside)
        b->parts[b->part_count++] = before;
    uint32_t out = grad_place(b, s->in[0], false);
    hb_emit_write(&e, out);
    hb_emit(b->lo, &e);
    if (apart) {
        b->grad[s->in[0]] = before;
        out = add_part(b, s, out);
    }
    b->grad[s->in[0]] = out;
    if (s->grad_sum_parts)
        hb_body_sum(b, s->axis, HB_OP_ALL_REDUCE, out);
    while (when == HB_WHEN_AFTER && hb_body_sorts_beside(b) && b->late_done < b->late_count) {
        const struct hb_step_op *down = &b->y->steps[b->late[b->late_done++]];
        back_weight(b, down, late_gradient(b, down));
    }
    if (when == HB_WHEN_AFTER)
        back_weight(b, s, g);
    if (when == HB_WHEN_LATE)
        put_late(b, s, g);
}

/* XLA:GPU, where weight gradients wait: what they are made from waits, each in its own place. */
static bool waits_whole(const struct hb_body *b)
{
    return b->defer && b->lo->habits->recompute_first;
}

/* Ends the gradient of a fused activation that reads value v. */
static void end_fused(struct hb_body *b, int v)
{
    for (uint32_t k = 0; k < b->y->step_count; k++) {
        const struct hb_step_op *s = &b->y->steps[k];
        bool reads = false;
        for (int j = 0; j < s->in_count; j++)
            reads = reads || s->in[j] == v;
        if (reads && s->grad_fused)
            hb_emit_mark(b->lo, "end of the MLP's weight gradients", b->grad[s->out[0]], HB_NONE);
    }
}

/* The weight gradients that waited, each followed by its sum; what they were made from goes. */
static void run_late_step(struct hb_body *b)
{
    const struct hb_step_op *s = &b->y->steps[b->late[b->late_done++]];
    back_weight(b, s, late_gradient(b, s));
    if (!b->sums_wait)
        reduce_grad(b, s->leaf - b->y->first_leaf);
}

void hb_body_late(struct hb_body *b)
{
    if (b->late_room != HB_NONE)
        hb_emit_mark(b->lo, "rings take their room", b->late_room, HB_NONE);
    b->late_room = HB_NONE;
    while (b->late_done < b->late_count)
        run_late_step(b);
    for (uint32_t i = 0; i < b->late_count; i++)
        end_fused(b, b->y->steps[b->late[i]].out[0]);
    b->late_count = b->late_done = 0;
}

/* Working tensors after the last input's gradient, when weight gradients that waited are made. */
static void scratch_after(struct hb_body *b, const struct hb_step_op *s)
{
    struct hb_emit e = {.name = hb_name(b->lo, s->name, ", gradient gathered"), .kind = HB_OP_MARK};
    struct hb_emit own = {.name = "own part of what was gathered", .kind = HB_OP_MARK};
    uint32_t *grad = &b->grad[s->in[s->in_count - 1]];
    hb_body_late(b);
    hb_emit_read(&e, *grad);
    for (int i = 0; i < s->back_scratch_count; i++) {
        uint32_t whole = hb_temp(b->lo, e.name, HB_CAT_WORKING, s->back_scratch[i]);
        hb_emit_write(&e, whole);
        hb_emit_read(&own, whole);
    }
    hb_emit(b->lo, &e);
    *grad = hb_temp(b->lo, "gradient of own tokens", HB_CAT_WORKING, hb_buf_shape(b->lo, *grad));
    hb_emit_write(&own, *grad);
    hb_emit(b->lo, &own);
}

static void read_gradient(struct hb_body *b, struct hb_emit *e, int v)
{
    if (b->grad[v] == HB_NONE || b->grad[v] != b->remade) {
        hb_emit_read(e, b->grad[v]);
        return;
    }
    for (int i = 0; i < 3; i++)
        hb_emit_read(e, b->remade_from[i]);
    b->remade = HB_NONE;
    b->shared[v] = true;
}

static void keep_parts(struct hb_body *b, const struct hb_step_op *s)
{
    b->remade_from[0] = b->grad[s->in[0]];
    b->remade_from[1] = b->grad[s->out[0]];
    b->remade_from[2] = b->now[s->in[0]];
    b->shared[s->in[0]] = true;
}

/* ROCm's layers of a stage: where attention begins its residual's gradient is there in f32 beside
 * the one in bf16 that products read; what the layer hands back is made again from that, from what
 * comes through the first norm and from the layer's input by the same fusion of the layer before it
 * (pr85/pp8/good: f32[1,4,4096,4096] from 681 to 791, made again at 791 in f32, to 865). */
static void hand_on(struct hb_body *b, const struct hb_step_op *s, uint32_t sum)
{
    struct hb_shape wide = b->y->values[s->in[0]].shape;
    b->remade = sum;
    b->remade_from[1] = b->remade_from[2] = HB_NONE;
    if (s->in[0] == b->y->input) {
        b->remade_from[1] = b->grad[s->out[0]];
        b->remade_from[2] = b->now[s->in[0]];
        return;
    }
    wide.dtype = HB_DT_F32;
    b->remade_from[0] =
        hb_temp(b->lo, hb_body_name(b, s->in[0], ", gradient in f32"), HB_CAT_WORKING, wide);
    hb_emit_mark(b->lo, "residual's gradient in f32", HB_NONE, b->remade_from[0]);
}

static bool is_norm_of_sum(const struct hb_body *b, const struct hb_step_op *s)
{
    return s->in_count == 1 && b->grad[s->in[0]] != HB_NONE;
}

/* The product that this step's gradients are made inside of, with its weight (moeFG/base: the whole
 * bf16[64,1408,2048] beside gate, up and their gradients). */
static const struct hb_step_op *take_inlined(struct hb_body *b, struct hb_emit *e,
                                             const struct hb_step_op *s)
{
    const struct hb_step_op *product = b->inlined;
    if (!product || product->in[0] != s->out[0])
        return NULL;
    b->inlined = NULL;
    hb_emit_read(e, hb_weight_use(b->lo, product->leaf));
    hb_emit_read(e, b->turned[product->leaf - b->y->first_leaf]);
    e->kind = HB_OP_MATMUL;
    e->flops += product->flops;
    e->rows = product->rows;
    e->cols = product->depth;
    e->depth = product->cols;
    e->batch = product->batch;
    return product;
}

/* Nothing flows back into a mask, unless it serves as the weights, too (MaxText's pairs). */
static bool takes_none(const struct hb_body *b, int v)
{
    int from = b->y->values[v].producer;
    return from >= 0 && b->y->steps[from].no_grad && !b->y->values[v].weighs;
}

/* The gradient that its reader put off. */
static void make_put_off(struct hb_body *b, const struct hb_step_op *reader)
{
    struct hb_emit e = hb_body_emit(reader);
    e.name = hb_body_name(b, reader->in[0], ", gradient of");
    hb_body_bring(b, reader->in[1]);
    hb_emit_read(&e, grad_out(b, reader));
    hb_body_read(b, &e, reader->in[1]);
    hb_emit_read(&e, b->grad[reader->in[0]]);
    uint32_t out = grad_place(b, reader->in[0], false);
    hb_emit_write(&e, out);
    hb_emit(b->lo, &e);
    if (b->y->values[reader->in[0]].for_ring == HB_RING_MASK)
        out = hb_body_turn(b, out, reader->in[0]);
    b->grad[reader->in[0]] = out;
}

/* What was put off until what this step made goes backward, or, early, until this activation. */
static void back_put_off(struct hb_body *b, const struct hb_step_op *s, bool early)
{
    for (uint32_t k = 0; k < b->y->step_count; k++) {
        const struct hb_step_op *reader = &b->y->steps[k];
        bool now = early ? reader->off_early : reader->in[0] == s->out[0] && !reader->off_early;
        if (reader->first_last && now && grad_out(b, reader) != HB_NONE) {
            make_put_off(b, reader);
            return;
        }
    }
}

static void read_outputs(struct hb_body *b, struct hb_emit *e, const struct hb_step_op *s)
{
    for (int i = 0; i < s->out_count; i++)
        hb_emit_read(e, b->grad[s->out[i]]);
    while (s->parts_beside && b->part_count > 0)
        hb_emit_read(e, b->parts[--b->part_count]);
}

/* XLA:GPU: nothing is written over a copy from the host (mistral-7b, fsdp 2, gate and up there:
 * five bf16[4,4096,14336]); a gate made again gives its place where up comes from there, or where
 * the activation is kept, so that no later fusion reads it (names:mlp_act: three, not four). */
static bool is_in_place(const struct hb_body *b, const struct hb_step_op *s, int i)
{
    const enum hb_keep *keep = b->saved->keep;
    bool own = (s->grad_in_place & 1u << i) != 0;
    if (!hb_fuses_slices(b->lo) || !s->grad_in_place)
        return own;
    bool alone = keep[s->out[0]] != HB_KEEP_NO || keep[s->in[0]] == HB_KEEP_HOST;
    return (own || alone) && keep[s->in[i]] != HB_KEEP_HOST;
}

/* Where the gradient of input i is made; none where nothing flows back now. */
static uint32_t mixed_place(struct hb_body *b, const struct hb_step_op *s, int i)
{
    if (takes_none(b, s->in[i]) || (s->first_last && i == 0))
        return HB_NONE;
    if (s->grad_follows && i == 0)
        return hb_temp_in_place(b->lo, hb_body_name(b, s->in[0], ", gradient"), HB_CAT_WORKING,
                                b->grad[s->out[0]]);
    return grad_place(b, s->in[i], is_in_place(b, s, i) && !waits_whole(b));
}

/* v5e's gather of the tokens' gradient begins when that is there and ends behind the combine
 * weights' gradient (six of six dumps: olmoe, fsdp 16 with expert 2: from 1357 to 1609). */
static void begin_joining(struct hb_body *b, const struct hb_step_op *rows)
{
    int from = b->y->values[rows->in[rows->in_count - 1]].producer;
    if (from < 0 || !hb_gathers_beside(b->lo) || !b->y->steps[from].back_scratch_after)
        return;
    b->joined = hb_temp(b->lo, "tokens' gradient gathered", HB_CAT_WORKING,
                        b->y->steps[from].back_scratch[0]);
    hb_emit_mark(b->lo, "gather begins", HB_NONE, b->joined);
}

/* In the list's order, behind the experts' activation and their inputs: see order_rings. */
static void run_listed(struct hb_body *b, const struct hb_step_op *s)
{
    begin_joining(b, s);
    if (s->late_first)
        hb_body_late(b);
    const struct hb_step_op *up = &b->y->steps[b->y->values[s->in[0]].producer];
    if (up->kind == HB_STEP_PRODUCT)
        first_weights(b, up);
    if (s->outputs_again)
        bring_put_off(b);
}

static uint32_t as_read(struct hb_body *b, int v, uint32_t grad)
{
    return b->y->values[v].for_ring == HB_RING_GRADIENT ? hb_body_turn(b, grad, v) : grad;
}

static void back_mix(struct hb_body *b, const struct hb_step_op *s)
{
    for (int i = 0; i < s->in_count; i++)
        if (hb_body_reads_input(b, s, i) && !(s->first_last && i > 0))
            hb_body_bring(b, hb_body_back_as(b, s->in[i]));
    for (int i = 0; i < s->out_count; i++)
        if ((s->back_out & 1u << i) ||
            (b->y->values[s->out[i]].trace_only && b->saved->keep[s->out[i]] != HB_KEEP_NO))
            hb_body_bring(b, s->out[i]);
    struct hb_emit e = hb_body_emit(s);
    e.name = hb_name(b->lo, "backward of ", s->name);
    e.flops = s->back_flops > 0 ? s->back_flops : 2 * s->flops;
    e.moved_bytes = s->back_moved_bytes;
    e.adjoint = true;
    const struct hb_step_op *inlined = take_inlined(b, &e, s);
    read_outputs(b, &e, s);
    hb_body_read_back(b, &e, s);
    bool remade = hb_body_sum_remade(b, s);
    bool handed = b->sums_wide && is_norm_of_sum(b, s);
    for (int i = 0; i < s->in_count; i++)
        read_gradient(b, &e, s->in[i]);
    if (remade)
        keep_parts(b, s);
    uint32_t made[HB_STEP_IN] = {0};
    for (int i = 0; i < s->in_count; i++) {
        made[i] = mixed_place(b, s, i);
        hb_emit_write(&e, made[i]);
    }
    if (!s->back_scratch_after)
        hb_body_scratch(b, &e, s->back_scratch, s->back_scratch_count);
    hb_emit(b->lo, &e);
    hb_spread_hidden(b, s, made);
    if (inlined && !hb_moe_in_list(b->lo, b->y))
        bring_put_off(b);
    for (int i = 0; i < s->in_count; i++)
        b->grad[s->in[i]] = as_read(b, s->in[i], made[i]);
    if (s->listed)
        run_listed(b, s);
    if (s->makes_off)
        back_put_off(b, s, true);
    if (s->back_scratch_after)
        scratch_after(b, s);
    if (remade)
        b->remade = made[0];
    if (handed)
        hand_on(b, s, made[0]);
}

static void back_move(struct hb_body *b, const struct hb_step_op *s, uint32_t g)
{
    struct hb_emit e = {.name = hb_name(b->lo, "backward of ", s->name),
                        .kind = s->back_op,
                        .axis = s->axis,
                        .stream = HB_STREAM_COLLECTIVE + (unsigned)s->axis,
                        .group = hb_ways(b->lo, s->axis)};
    int64_t whole = b->lo->p->bufs[g].plain_bytes;
    if (s->back_op == HB_OP_ALL_GATHER)
        whole = hb_mul_sat(whole, e.group);
    e.sent_bytes = s->sent_bytes > 0 ? s->sent_bytes : hb_payload_bytes(s->back_op, whole, e.group);
    if (s->back_scratch_after)
        hb_body_late(b); /* what is gathered here needs room */
    hb_emit_read(&e, g);
    hb_emit_read(&e, b->grad[s->in[0]]);
    uint32_t out = grad_place(b, s->in[0], false);
    hb_emit_write(&e, out);
    hb_emit_read(&e, b->joined);
    if (b->joined == HB_NONE)
        hb_body_scratch(b, &e, s->back_scratch, s->back_scratch_count);
    b->joined = HB_NONE;
    hb_emit(b->lo, &e);
    b->grad[s->in[0]] = out;
}

/* The sum's gradient is that of both parts: the same buffer under two names. Weight gradients that
 * wait for all layers read what came to theirs (llama3-8b/L4_noscan: two bf16[2,4096,4096] more a
 * layer at the first one's). */
static void back_add(struct hb_body *b, const struct hb_step_op *s, uint32_t g)
{
    for (int i = 0; i < s->in_count; i++) {
        if (b->grad[s->in[i]] == HB_NONE) {
            b->grad[s->in[i]] = g;
            b->shared[s->in[i]] = hb_weight_gathers_apart(b->lo) || b->defer;
            continue;
        }
        uint32_t sum = grad_place(b, s->in[i], false);
        hb_emit_sum(b->lo, s->name, g, b->grad[s->in[i]], sum);
        b->grad[s->in[i]] = sum;
    }
}

static void back_step(struct hb_body *b, const struct hb_step_op *s)
{
    back_put_off(b, s, false);
    uint32_t g = grad_out(b, s);
    if (g == HB_NONE || s->no_grad)
        return;
    switch (s->kind) {
    case HB_STEP_PRODUCT:
        back_product(b, s, g);
        break;
    case HB_STEP_MIX:
        back_mix(b, s);
        break;
    case HB_STEP_MOVE:
        back_move(b, s, g);
        break;
    case HB_STEP_ADD:
        back_add(b, s, g);
        break;
    }
}

/* Steps that need not wait for their turn: done[] remembers them. */
static void run_eager(struct hb_body *b, uint32_t i, bool *done)
{
    for (uint32_t k = 0; k < i; k++) {
        const struct hb_step_op *s = &b->y->steps[k];
        if (!s->eager || done[k] || grad_out(b, s) == HB_NONE || !hb_body_readers_done(b, s, i))
            continue;
        back_step(b, s);
        done[k] = true;
    }
}

/* After the backward pass of step i: a fused activation whose inputs are all done lets go of the
 * gradient that its readers made theirs from. */
static void release_fused(struct hb_body *b, uint32_t i)
{
    for (uint32_t k = i; k < b->y->step_count; k++) {
        const struct hb_step_op *s = &b->y->steps[k];
        if (!s->grad_fused)
            continue;
        int first = b->y->values[s->in[0]].producer;
        for (int j = 1; j < s->in_count; j++)
            if (b->y->values[s->in[j]].producer < first)
                first = b->y->values[s->in[j]].producer;
        uint32_t g = b->grad[s->out[0]];
        if (first == (int)i && g != HB_NONE)
            hb_emit_mark(b->lo, "end of the MLP's backward", g, HB_NONE);
    }
}

/* MaxText keeps its output projection: attention is made again where its own backward pass begins
 * (llama3-8b/remat_custom_outdev: no f32[2,32,4096,128] beside the MLP). */
static bool keeps_output(const struct hb_body *b)
{
    const struct hb_remat *r = &b->y->block->remat;
    return b->lo->maxtext && ((r->save | r->offload) & 1u << HB_TN_ATTN_OUT) != 0;
}

/* XLA:TPU makes a layer's attention again before the MLP's backward pass, even where that needs
 * nothing of it (bwd/remat=names:attn_out, bwd/remat=dots: q, k, v, the kernel's result and
 * log-sum-exp stand beside four bf16[8,2048,2816]). */
static void remake_attention(struct hb_body *b)
{
    for (uint32_t i = 0; i < b->y->step_count; i++) {
        const struct hb_step_op *s = &b->y->steps[i];
        if (s->op != HB_OP_ATTENTION)
            continue;
        for (int k = 0; k < s->in_count; k++)
            if (b->saved->remake[s->in[k]])
                hb_body_bring(b, s->in[k]);
        if (i + 1 < b->y->step_count && b->y->steps[i + 1].op == HB_OP_COPY &&
            b->saved->remake[b->y->steps[i + 1].out[0]])
            hb_body_bring(b, b->y->steps[i + 1].out[0]); /* the result in its other layout */
    }
}

/* In a unit all layers but the last gather the weights of the einsum's experts once more for the
 * way back (gpt-oss in pairs, fsdp 64 of v5e, v5p and v6e: nine of bf16[1,32,2880,2880] a trip). */
static void let_go_of_weights(struct hb_body *b, const struct hb_step_op *s)
{
    bool inside = (b->y->values[s->out[0]].tags & 1u << HB_TN_LAYER_IN) != 0;
    if (inside && b->lo->spec->compiler == HB_XLA_TPU && hb_block_mixes(b->y->block) &&
        b->y->block->moe.dispatch == HB_DISPATCH_EINSUM)
        hb_weight_forget(b->lo, b->y->first_leaf, b->y->end_leaf);
}

/* Of unrolled layers the rings that wait have room both ways round from their layer on (qwen3-8b of
 * 12 layers, v5p, fsdp 8: 42 bf16[512,12288] and 22 [12288,512] at the last but one). */
static void make_late_room(struct hb_body *b)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < b->late_count; i++)
        sum = hb_add_sat(sum,
                         hb_weight_ring_room(b->lo, &b->lo->leaves[b->y->steps[b->late[i]].leaf]));
    if (sum == 0)
        return;
    struct hb_shape all = hb_shape_make(b->lo->compute, (const int64_t[]){sum, -1});
    b->late_room = hb_temp(b->lo, hb_name(b->lo, b->y->name, ", room for rings that wait"),
                           HB_CAT_WORKING, all);
    hb_emit_mark(b->lo, "room for rings", HB_NONE, b->late_room);
}

uint32_t hb_body_backward(struct hb_body *b, uint32_t grad)
{
    if (b->lo->habits->recompute_first && !b->recomputed)
        hb_body_recompute(b);
    bool keep = b->recomputed;
    hb_body_unstow(b);
    for (uint32_t v = 0; v < b->y->value_count; v++) {
        b->grad[v] = b->spread_grad[v] = b->rows_grad[v] = HB_NONE;
        b->shared[v] = false;
        b->narrow_grad[v][0] = b->narrow_grad[v][1] = HB_NONE;
        if (!keep)
            b->now[v] = b->rows[v] = b->narrow[v] = HB_NONE;
    }
    b->recomputed = false;
    b->late_count = b->late_done = 0;
    for (uint32_t i = 0; i < b->y->end_leaf - b->y->first_leaf; i++) {
        b->made_first[i] = false;
        b->turned[i] = HB_NONE;
    }
    b->grad[b->y->output] = grad;
    if (!keeps_output(b))
        remake_attention(b);
    bool *done = hb_arena_alloc(b->lo->arena, b->y->step_count, sizeof *done);
    for (uint32_t i = b->y->step_count; i-- > 0;) {
        let_go_of_weights(b, &b->y->steps[i]);
        if (!done[i])
            back_step(b, &b->y->steps[i]);
        release_fused(b, i);
        run_eager(b, i, done);
    }
    if (b->meets_loss)
        hb_chunks_room(b->lo);
    if (!b->defer && !b->spread_wait)
        hb_body_late(b);
    else
        make_late_room(b);
    if (!b->sums_wait)
        hb_body_sums(b);
    hb_weight_forget(b->lo, b->y->first_leaf, b->y->end_leaf);
    return b->grad[b->y->input];
}

void hb_body_sums(struct hb_body *b)
{
    for (uint32_t i = 0; i < b->y->end_leaf - b->y->first_leaf; i++)
        reduce_grad(b, i);
}
