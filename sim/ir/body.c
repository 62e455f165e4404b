/* The forward pass of one layer, and making its values again: see body.h. */
#include "sim/ir/body_step.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "sim/ir/narrow.h"
#include "sim/ir/spread.h"
#include "sim/ir/weight.h"

void hb_body_init(struct hb_body *b, struct hb_lower *lo, const struct hb_layer *y,
                  const struct hb_saved *saved)
{
    *b = (struct hb_body){.lo = lo, .y = y, .saved = saved};
    b->mask = b->fill = b->remade = b->joined = HB_NONE;
    b->stack = hb_none_list(lo, y->value_count);
    b->now = hb_none_list(lo, y->value_count);
    b->grad = hb_none_list(lo, y->value_count);
    uint32_t leaves = y->end_leaf - y->first_leaf;
    b->full_dw = hb_none_list(lo, leaves);
    b->turned = hb_none_list(lo, leaves);
    b->made_first = hb_arena_alloc(lo->arena, leaves, sizeof *b->made_first);
    b->weights = hb_none_list(lo, leaves);
    b->late = hb_none_list(lo, y->step_count);
    b->late_room = HB_NONE;
    b->spread = hb_none_list(lo, y->value_count);
    b->rows = hb_none_list(lo, y->value_count);
    b->spread_grad = hb_none_list(lo, y->value_count);
    b->rows_grad = hb_none_list(lo, y->value_count);
    b->shared = hb_arena_alloc(lo->arena, y->value_count, sizeof *b->shared);
    b->narrow = hb_none_list(lo, y->value_count);
    b->narrow_grad = hb_arena_alloc(lo->arena, y->value_count, sizeof *b->narrow_grad);
}

const char *hb_body_name(struct hb_body *b, int v, const char *what)
{
    const char *const parts[] = {b->y->name, ".", b->y->values[v].name, what};
    return hb_name_of(b->lo, parts, sizeof parts / sizeof *parts);
}

/* What is gathered in f32 a loop keeps as the products read it (llama8b,f2t8,none on ROCm:
 * bf16[4096,32,4,4096] twice beside the gathers of f32[4,4096,4096]; pythia2.8b,f2t4 on CUDA). */
static bool is_kept_narrow(const struct hb_body *b, int v)
{
    return b->y->values[v].wide && !b->own_stacks;
}

/* Of the trips' values, in dimensions before their own. */
static struct hb_shape stack_shape(const struct hb_body *b, int v, const int64_t *lead)
{
    const struct hb_value *value = &b->y->values[v];
    const struct hb_shape *own = &value->shape;
    int64_t parts = value->in_parts ? b->lo->spec->batch.seq / b->lo->local.seq : 1;
    struct hb_shape s = {.dtype = own->dtype};
    for (int i = 0; i < 3 && lead[i] > 0; i++) {
        s.dim[s.rank++] = lead[i];
        s.slices = hb_mul_sat(hb_larger(s.slices, 1), lead[i]);
    }
    if (b->sums_wide && v == b->y->input)
        s.dtype = HB_DT_F32;
    if (is_kept_narrow(b, v))
        s.dtype = b->lo->compute;
    for (int i = 0; i < own->rank && s.rank < HB_SHAPE_RANK; i++)
        s.dim[s.rank++] = i == 2 ? own->dim[i] / parts : own->dim[i];
    return s;
}

static bool has_room(const struct hb_body *b, uint32_t v)
{
    return b->room && b->room[v] != HB_NONE;
}

/* A product that is kept as such has its heads side by side, a kernel's operand has rows of each
 * (heads of 64, dots, on v5p and v5e: q, k and v are bf16[24,2,8192,2048], nothing is padded). */
static enum hb_tiling stack_tiling(const struct hb_body *b, const struct hb_value *value)
{
    enum hb_policy policy = b->y->block->remat.policy;
    bool products = policy == HB_POLICY_DOTS || policy == HB_POLICY_DOTS_NO_BATCH;
    return products && value->dot && value->tiling == HB_TILE_MINOR ? HB_TILE_COMPACT
                                                                    : value->tiling;
}

void hb_body_stacks(struct hb_body *b, const int64_t *lead, const char *name)
{
    /* jax.checkpoint of a layer outside of loops: what it keeps goes through a barrier. */
    bool fenced = b->own_stacks && b->y->block->remat.policy != HB_POLICY_NONE;
    for (uint32_t v = 0; v < b->y->value_count; v++) {
        enum hb_keep keep = b->saved->keep[v];
        if (keep == HB_KEEP_NO)
            continue;
        b->stack[v] =
            hb_temp_tiled(b->lo, hb_body_name(b, (int)v, ", saved for backward"), HB_CAT_SAVED,
                          stack_shape(b, (int)v, lead), stack_tiling(b, &b->y->values[v]));
        if (keep == HB_KEEP_HOST)
            b->lo->p->bufs[b->stack[v]].space = HB_SPACE_HOST;
        b->lo->p->bufs[b->stack[v]].fenced = fenced;
        if (has_room(b, v) && keep == HB_KEEP_DEVICE)
            b->lo->p->bufs[b->stack[v]].alias_of = b->room[v];
        if (name)
            hb_emit_mark(b->lo, name, HB_NONE, b->stack[v]);
    }
}

static uint32_t make_value(struct hb_body *b, int v)
{
    const struct hb_value *value = &b->y->values[v];
    struct hb_shape shape = value->shape;
    if (value->mask && !value->wide_mask && b->saved->keep[v] == HB_KEEP_NO)
        shape.dtype = HB_DT_PRED;
    uint32_t buf =
        hb_temp_tiled(b->lo, hb_body_name(b, v, ""), HB_CAT_WORKING, shape, value->tiling);
    b->lo->p->bufs[buf].kept_by = hb_saved_by(b->y, v);
    return buf;
}

/* The reader of a fused value does the work that makes it. */
static void take_over(struct hb_emit *e, const struct hb_step_op *s)
{
    e->flops += s->flops;
    if (s->op != HB_OP_MATMUL || e->kind == HB_OP_MATMUL || e->kind == HB_OP_ATTENTION)
        return;
    e->kind = s->op;
    e->rows = s->rows;
    e->cols = s->cols;
    e->depth = s->depth;
    e->batch = s->batch;
}

void hb_body_read(struct hb_body *b, struct hb_emit *e, int v)
{
    if (b->now[v] != HB_NONE) {
        hb_emit_read(e, b->now[v]);
        return;
    }
    const struct hb_value *value = &b->y->values[v];
    if (!value->fused || value->producer < 0)
        HB_BUG("'%s' is read by '%s' before it is there", value->name, e->name);
    const struct hb_step_op *s = &b->y->steps[value->producer];
    take_over(e, s);
    if (hb_narrow_product(b->lo, s))
        hb_emit_read(e, hb_narrow_input(b, s));
    for (int i = 0; i < s->in_count && !hb_narrow_product(b->lo, s); i++)
        hb_body_read(b, e, s->in[i]);
    if (s->leaf != HB_NONE && s->kind == HB_STEP_PRODUCT)
        hb_emit_read(e, hb_weight_use(b->lo, s->leaf));
    if (s->scratch_told)
        hb_body_scratch(b, e, s->scratch, s->scratch_count);
}

void hb_body_scratch(struct hb_body *b, struct hb_emit *e, const struct hb_shape *scratch,
                     int count)
{
    for (int i = 0; i < count; i++)
        hb_emit_write(
            e, hb_temp(b->lo, hb_name(b->lo, e->name, ", scratch"), HB_CAT_WORKING, scratch[i]));
}

uint32_t hb_body_sum(struct hb_body *b, enum hb_axis axis, enum hb_op_kind kind, uint32_t buf)
{
    uint32_t sum = hb_temp_in_place(b->lo, hb_name(b->lo, b->lo->p->bufs[buf].name, ", summed"),
                                    HB_CAT_WORKING, buf);
    return hb_emit_collective(b->lo, kind, axis, "sum over tensor", buf, sum);
}

/* Whether a step's outputs become buffers: an output that is fused and not kept does not. */
static bool makes_buffers(const struct hb_body *b, const struct hb_step_op *s)
{
    for (int i = 0; i < s->out_count; i++)
        if (!b->y->values[s->out[i]].fused || b->saved->keep[s->out[i]] != HB_KEEP_NO)
            return true;
    return false;
}

static void run_move(struct hb_body *b, const struct hb_step_op *s, uint32_t out)
{
    bool own = s->op == HB_OP_COPY; /* takes its own part; only its gradient is gathered */
    struct hb_emit e = {.name = s->name, .kind = s->op};
    if (!own) {
        e.axis = s->axis;
        e.stream = HB_STREAM_COLLECTIVE + (unsigned)s->axis;
        e.group = hb_ways(b->lo, s->axis);
    }
    int64_t whole = b->lo->p->bufs[out].plain_bytes;
    if (s->op == HB_OP_REDUCE_SCATTER)
        whole = hb_mul_sat(whole, e.group);
    if (!own)
        e.sent_bytes = s->sent_bytes > 0 ? s->sent_bytes : hb_payload_bytes(s->op, whole, e.group);
    hb_body_read(b, &e, s->in[0]);
    hb_emit_write(&e, out);
    hb_emit(b->lo, &e);
}

struct hb_emit hb_body_emit(const struct hb_step_op *s)
{
    return (struct hb_emit){.name = s->name,
                            .kind = s->op,
                            .flops = s->flops,
                            .moved_bytes = s->moved_bytes,
                            .rows = s->rows,
                            .cols = s->cols,
                            .depth = s->depth,
                            .batch = s->batch};
}

/* Of a residual that is split over tensor, made may be the share that stays. */
static void sum_result(struct hb_body *b, enum hb_axis axis, struct hb_shape shape, uint32_t made)
{
    bool split = b->lo->spec->sharding.residual_over_tensor;
    uint32_t op = hb_body_sum(b, axis, split ? HB_OP_REDUCE_SCATTER : HB_OP_ALL_REDUCE, made);
    if (split)
        b->lo->p->ops[op].sent_bytes *= hb_layer_shares(b->lo, shape);
}

/* Parts of a product are summed where it becomes a tensor: here, or in the sum it is fused into. */
static void sum_results(struct hb_body *b, const struct hb_step_op *s, uint32_t made)
{
    if (made == HB_NONE)
        return;
    struct hb_shape shape = b->y->values[s->out[0]].shape;
    if (s->sum_parts)
        sum_result(b, s->axis, shape, made);
    for (int i = 0; i < s->in_count; i++) {
        const struct hb_value *v = &b->y->values[s->in[i]];
        if (!v->fused || b->now[s->in[i]] != HB_NONE || v->producer < 0)
            continue;
        const struct hb_step_op *from = &b->y->steps[v->producer];
        if (from->sum_parts)
            sum_result(b, from->axis, shape, made);
    }
}

/* XLA:GPU, layers side by side: what is kept is made where it stays (pr85/ep2pp4/mask,naive,causal:
 * one f32[1,2,8,4096,4096,4] of the scores of a layer that runs again, no second); in a loop what
 * its stack alone reads (mistral-7b, policy none: forwards three bf16[4,4096,14336]). */
static uint32_t place_value(struct hb_body *b, int v)
{
    const struct hb_value *value = &b->y->values[v];
    bool inside = value->trace_only && value->fused && hb_fuses_slices(b->lo);
    bool stays = (b->own_stacks || inside) && b->stack[v] != HB_NONE;
    if (stays && b->saved->keep[v] == HB_KEEP_DEVICE)
        return b->stack[v];
    if (!has_room(b, (uint32_t)v) || b->lo->phase != HB_PHASE_FORWARD)
        return make_value(b, v);
    return hb_temp_in_place(b->lo, hb_body_name(b, v, ""), HB_CAT_WORKING, b->room[v]);
}

/* Buffers of a step's outputs: none for what readers make again; the first's is place or none. */
static void make_outputs(struct hb_body *b, const struct hb_step_op *s, uint32_t place)
{
    for (int i = 0; i < s->out_count; i++) {
        const struct hb_value *v = &b->y->values[s->out[i]];
        bool kept = b->saved->keep[s->out[i]] != HB_KEEP_NO;
        bool real = kept || (!v->fused && (!v->trace_only || b->recomputed));
        b->made[i] = real ? place_value(b, s->out[i]) : HB_NONE;
    }
    if (place != HB_NONE)
        b->made[0] = hb_temp_in_place(b->lo, hb_body_name(b, s->out[0], ""), HB_CAT_WORKING, place);
}

uint32_t hb_body_turn_weight(struct hb_body *b, uint32_t leaf, uint32_t from)
{
    const char *name = b->lo->leaves[leaf].name;
    uint32_t copy = hb_temp(b->lo, hb_name(b->lo, name, ", gathered and turned"),
                            HB_CAT_COMMUNICATION, hb_buf_shape(b->lo, from));
    hb_emit_simple(b->lo, HB_OP_COPY, hb_name(b->lo, "turn ", name), from, copy);
    b->turned[leaf - b->y->first_leaf] = copy;
    return copy;
}

/* Shards narrower than a row of lanes come out of their gathers outermost; what the layer's own
 * products are made again from, and w_down for the activation's gradient, is turned (olmoe,v6e,f64:
 * copies of two of three up to 254; v5e, f32: at 521 and 534; not over 16, nor padded ones), over
 * an expert axis for two ops of v6e (f32e2: 154, 166), which is not told. Where places do
 * not fill the lanes all products read w_down turned, and it alone (320 places: at 290). */
static void turn_gathered(struct hb_body *b, uint32_t leaf, bool alone)
{
    struct hb_leaf *l = &b->lo->leaves[leaf];
    bool plain = hb_weight_gathers_plain(b->lo) && hb_ways(b->lo, HB_AX_EXPERT) > 1;
    if (leaf == HB_NONE || hb_gathers_padded(b->lo) || plain || l->gathered == HB_NONE ||
        l->gather_dim < 0 || hb_div_up(l->dim[l->gather_dim].size, l->fsdp_ways) >= HB_TPU_LANES)
        return;
    uint32_t copy = hb_body_turn_weight(b, leaf, l->gathered);
    l->gathered = alone ? copy : l->gathered;
}

/* XLA:TPU gathers experts before the masks are made (olmoe, f256: from 98 to 109, and at 239). */
static void gather_experts(struct hb_body *b, const struct hb_step_op *masks)
{
    const struct hb_shape *m = &b->y->values[masks->out[0]].shape;
    bool full = m->dim[m->rank - 1] % HB_TPU_LANES == 0;
    for (uint32_t i = b->y->first_leaf; i < b->y->end_leaf; i++)
        if (b->lo->leaves[i].rank == HB_LEAF_RANK)
            hb_weight_use(b->lo, i);
    if (full)
        turn_gathered(b, hb_layer_find_leaf(b->lo, b->y, "e_up"), false);
    turn_gathered(b, hb_layer_find_leaf(b->lo, b->y, "e_down"), !full);
}

uint32_t hb_body_turn(struct hb_body *b, uint32_t from, int v)
{
    uint32_t copy =
        hb_temp_tiled(b->lo, hb_body_name(b, v, ", turned for its ring"), HB_CAT_WORKING,
                      hb_buf_shape(b->lo, from), b->y->values[v].tiling);
    hb_emit_simple(b->lo, HB_OP_COPY, "turn for its ring", from, copy);
    return copy;
}

/* A predicate of what is made, out of the same fusion. */
static void make_beside(struct hb_body *b, const struct hb_step_op *s, struct hb_emit *e)
{
    if (!s->with_next || b->lo->phase == HB_PHASE_FORWARD)
        return;
    int mask = s[1].out[0];
    if (b->y->values[mask].wide_mask || b->saved->keep[mask] != HB_KEEP_NO)
        return;
    b->now[mask] = make_value(b, mask);
    hb_emit_write(e, b->now[mask]);
}

static void run_op(struct hb_body *b, const struct hb_step_op *s)
{
    struct hb_emit e = hb_body_emit(s);
    uint32_t w = s->kind == HB_STEP_PRODUCT ? hb_weight_use(b->lo, s->leaf) : HB_NONE;
    if (s->spread > 0) {
        w = hb_spread_weight(b, s, w, false);
        hb_emit_read(&e, b->rows[s->in[0]]);
    }
    bool narrow = hb_narrow_product(b->lo, s);
    if (narrow)
        hb_emit_read(&e, hb_narrow_input(b, s));
    for (int i = 0; i < s->in_count && s->spread == 0 && !narrow; i++)
        hb_body_read(b, &e, s->in[i]);
    hb_emit_read(&e, w);
    if (s->leaf != HB_NONE)
        hb_emit_read(&e, b->turned[s->leaf - b->y->first_leaf]);
    hb_emit_read(&e, s->mask_read ? b->mask : HB_NONE);
    hb_emit_read(&e, s->mask_read ? b->fill : HB_NONE);
    for (int i = 0; i < s->out_count; i++)
        hb_emit_write(&e, b->made[i]);
    hb_body_scratch(b, &e, s->scratch, s->scratch_count);
    make_beside(b, s, &e);
    hb_emit(b->lo, &e);
}

/* A forward step. */
static void run_step(struct hb_body *b, const struct hb_step_op *s, uint32_t place)
{
    if (!makes_buffers(b, s))
        return;
    if (s->experts_there)
        gather_experts(b, s);
    if (s->before && b->lo->phase != HB_PHASE_FORWARD)
        hb_body_bring(b, s->before);
    if (s->spread > 0)
        hb_spread_rows(b, s);
    make_outputs(b, s, place);
    if (s->kind == HB_STEP_MOVE)
        run_move(b, s, b->made[0]);
    else
        run_op(b, s);
    for (int i = 0; i < s->out_count; i++)
        b->now[s->out[i]] = b->made[i];
    if (b->y->values[s->out[0]].for_ring == HB_RING_VALUE && b->lo->phase != HB_PHASE_FORWARD)
        b->now[s->out[0]] = hb_body_turn(b, b->made[0], s->out[0]);
    sum_results(b, s, b->made[0]);
    if (s->with_next && b->lo->phase != HB_PHASE_FORWARD)
        hb_body_bring(b, s[1].out[0]);
}

/* Between a value and its stack, on the device or on the host. */
static void copy_value(struct hb_body *b, int v, uint32_t from, uint32_t to)
{
    bool out = to == b->now[v];
    const char *here = out ? " out of its stack" : " into its stack";
    struct hb_emit e = {.name = hb_body_name(b, v, here),
                        .kind = HB_OP_COPY,
                        .moved_bytes = (double)b->lo->p->bufs[b->now[v]].bytes};
    if (b->saved->keep[v] == HB_KEEP_HOST) {
        e.name = hb_body_name(b, v, out ? " from the host" : " to the host");
        e.kind = HB_OP_HOST_COPY;
        e.stream = out ? HB_STREAM_H2D : HB_STREAM_D2H;
    }
    hb_emit_read(&e, from);
    hb_emit_write(&e, to);
    hb_emit(b->lo, &e);
}

static void keep_value(struct hb_body *b, int v)
{
    if (b->stack[v] != HB_NONE && b->now[v] != HB_NONE && b->now[v] != b->stack[v])
        copy_value(b, v, b->now[v], b->stack[v]);
}

static void stow_leaves(struct hb_body *b)
{
    for (uint32_t i = b->y->first_leaf; i < b->y->end_leaf; i++)
        b->weights[i - b->y->first_leaf] = b->lo->leaves[i].gathered;
    hb_weight_forget(b->lo, b->y->first_leaf, b->y->end_leaf);
}

void hb_body_unstow(struct hb_body *b)
{
    for (uint32_t i = b->y->first_leaf; i < b->y->end_leaf; i++) {
        b->lo->leaves[i].gathered = b->weights[i - b->y->first_leaf];
        b->weights[i - b->y->first_leaf] = HB_NONE;
    }
}

uint32_t hb_body_forward(struct hb_body *b, uint32_t in, uint32_t place, bool keep)
{
    for (uint32_t v = 0; v < b->y->value_count; v++)
        b->now[v] = b->spread[v] = b->rows[v] = b->narrow[v] = HB_NONE;
    b->now[b->y->input] = in;
    if (keep && b->own_weights)
        hb_body_unstow(b);
    keep_value(b, b->y->input);
    for (uint32_t i = 0; i < b->y->step_count; i++) {
        const struct hb_step_op *s = &b->y->steps[i];
        bool last = s->out[0] == b->y->output;
        run_step(b, s, last ? place : HB_NONE);
        for (int o = 0; o < s->out_count; o++)
            keep_value(b, s->out[o]);
    }
    if (keep && b->own_weights)
        stow_leaves(b);
    hb_weight_forget(b->lo, b->y->first_leaf, b->y->end_leaf);
    return b->now[b->y->output];
}

/* --- backward --- */

/* Products between rings read rows along the lanes, stacks hold features there: the layer's input
 * comes out as a copy, and the gradient that the MLP's ring sends round is turned back (MaxText's
 * llama3-8b/b1: bf16[1,1,4096,4096]{2,3,1,0}; nested scans, too). Not of layers that keep all. */
static bool turns_rows(const struct hb_body *b)
{
    return hb_in_rings(b->lo) && b->saved->keep[b->y->input] != HB_KEEP_NO;
}

/* Whether what reads a kept value takes it out of its stack itself. bwd/base: the layer's input is
 * read by the fusions that need it; at the peak there is no copy of it. */
static bool is_read_stacked(const struct hb_body *b, int v)
{
    if (v == b->y->input)
        return !turns_rows(b);
    return b->y->values[v].read_stacked ||
           hb_saved_inside(b->y, b->saved, v, hb_fuses_slices(b->lo));
}

/* A value of which each device kept its part. */
static void gather_parts(struct hb_body *b, int v, uint32_t part)
{
    int64_t ways = b->lo->spec->batch.seq / b->lo->local.seq, whole;
    b->now[v] = make_value(b, v);
    whole = b->lo->p->bufs[b->now[v]].plain_bytes;
    struct hb_emit e = {.name = hb_body_name(b, v, ", gathered over sequence"),
                        .kind = HB_OP_ALL_GATHER,
                        .axis = HB_AX_SEQUENCE,
                        .stream = HB_STREAM_COLLECTIVE + HB_AX_SEQUENCE,
                        .group = ways,
                        .sent_bytes = hb_payload_bytes(HB_OP_ALL_GATHER, whole, ways)};
    hb_emit_read(&e, part);
    hb_emit_write(&e, b->now[v]);
    hb_emit(b->lo, &e);
}

/* A kept value comes out of its stack when it is first read. */
static void load_value(struct hb_body *b, int v)
{
    bool host = b->saved->keep[v] == HB_KEEP_HOST;
    if (b->y->values[v].in_parts && !host) {
        gather_parts(b, v, b->stack[v]);
        return;
    }
    if ((b->own_stacks || is_read_stacked(b, v)) && !host) {
        b->now[v] = b->stack[v];
        return;
    }
    b->now[v] = make_value(b, v);
    copy_value(b, v, b->stack[v], b->now[v]);
}

void hb_body_bring(struct hb_body *b, int v)
{
    const struct hb_value *value = &b->y->values[v];
    if (b->now[v] != HB_NONE)
        return;
    if (b->saved->keep[v] != HB_KEEP_NO) {
        load_value(b, v);
        return;
    }
    if (value->producer < 0)
        HB_BUG("'%s' is neither kept nor made", value->name);
    const struct hb_step_op *s = &b->y->steps[value->producer];
    for (int i = 0; i < s->in_count; i++)
        hb_body_bring(b, s->in[i]);
    if (b->now[v] != HB_NONE) /* with one of those */
        return;
    if (!value->fused)
        run_step(b, s, HB_NONE);
    else if (s->kind == HB_STEP_PRODUCT)
        hb_weight_use(b->lo, s->leaf);
}

bool hb_body_reads_input(const struct hb_body *b, const struct hb_step_op *s, int i)
{
    bool traced = s->trace_serves && s->out_count > 1 && b->saved->keep[s->out[1]] != HB_KEEP_NO;
    return (s->back_in & 1u << i) != 0 && !traced;
}

/* The scores that policy dots keeps of the blocks, in the order of the backward loop: one fusion
 * takes a layer's out of the stack for that and for the loop that makes the result again (gpt-oss,
 * fsdp 64 of H100: f32[4,1,8,8,512,2048] and [512,1,4,1,8,8,2048] from the layer's begin on). */
static void turn_scores(struct hb_body *b, const struct hb_step_op *s)
{
    int v = s->out[s->out_count - 1];
    if (!b->y->values[v].dots_only || b->saved->keep[v] == HB_KEEP_NO)
        return;
    b->now[v] = make_value(b, v);
    hb_emit_simple(b->lo, HB_OP_COPY, "scores in the order of the backward loop", b->stack[v],
                   b->now[v]);
}

int hb_body_back_as(const struct hb_body *b, int v)
{
    int as = b->y->values[v].back_as;
    bool made = b->saved->keep[v] == HB_KEEP_NO && b->saved->keep[as] == HB_KEEP_NO;
    return as && made ? as : v;
}

void hb_body_read_back(struct hb_body *b, struct hb_emit *e, const struct hb_step_op *s)
{
    for (int i = 0; i < s->in_count; i++)
        if (hb_body_reads_input(b, s, i) && !(s->first_last && i > 0))
            hb_body_read(b, e, hb_body_back_as(b, s->in[i]));
    int last = s->out[s->out_count - 1];
    if (b->own_stacks || b->now[last] == HB_NONE)
        turn_scores(b, s);
    if (b->y->values[last].dots_only)
        hb_emit_read(e, b->now[last]);
    /* Scores and probabilities kept side by side: the latter are made of the former inside (tiny/
     * layers=loop,remat=none with attn=naive: bf16[6,16,4096,4096] to 427, their gradient from 441
     * on); those that were turned at once are read to the end (cuda-pr85/ep2pp4/mask,naive,causal
     * with four key heads: to 1163 of 1800, the scores' gradient from 1149 on). */
    bool inside = b->y->values[s->in[0]].batch_dot && b->own_stacks;
    for (int i = 0; i < s->out_count; i++)
        if (((s->back_out & 1u << i) && !inside) || b->y->values[s->out[i]].trace_only)
            if (b->now[s->out[i]] != HB_NONE)
                hb_emit_read(e, b->now[s->out[i]]);
}

/* XLA:GPU runs the kernel again, and turns its result, just before its backward pass where the
 * MLP's needs nothing of it (55 layers on CUDA: names:attn_ctx over fsdp 8, gate again at 45,
 * kernel at 79, its backward at 87), unless its inputs are kept. */
static bool waits_for_kernel(const struct hb_body *b, const struct hb_step_op *s)
{
    bool made = false;
    for (int i = 0; i < s->in_count; i++)
        made = made || b->saved->remake[s->in[i]];
    return s->op == HB_OP_ATTENTION && made;
}

/* Where the scheduler runs all of the recomputation before the backward pass: what that will read
 * is made again in the order of the forward pass, needed soon or late (habit recompute_first). */
void hb_body_recompute(struct hb_body *b)
{
    for (uint32_t v = 0; v < b->y->value_count; v++)
        b->now[v] = b->spread[v] = b->rows[v] = b->narrow[v] = HB_NONE;
    b->recomputed = true;
    hb_body_unstow(b);
    for (uint32_t i = 0; i < b->y->step_count; i++) {
        const struct hb_step_op *s = &b->y->steps[i];
        int v = s->out[0];
        bool later = b->y->values[v].fused || b->y->values[v].cheap || waits_for_kernel(b, s);
        if (b->saved->remake[v] && b->now[v] == HB_NONE && !later) {
            hb_body_bring(b, v);
            if (!b->own_stacks)
                turn_scores(b, s);
        }
    }
    stow_leaves(b);
}
