/* Casts, gathers and sums of weights and their gradients: see weight.h. */
#include "sim/ir/weight.h"

#include "base/arena.h"
#include "base/size.h"
#include "sim/ir/narrow.h"
#include "sim/ir/order.h"
#include "sim/ir/sequence.h"
#include "base/str.h"

static bool needs_cast(const struct hb_lower *lo, const struct hb_leaf *l)
{
    return l->matrix && lo->spec->precision.params != lo->compute;
}

static enum hb_tiling tiling_of(const struct hb_lower *lo, bool rows)
{
    enum hb_tiling tiling = lo->habits->tiling;
    return rows && tiling == HB_TILE_COMPACT ? HB_TILE_MINOR : tiling;
}

/* How stacks of gradients lie, and sums of them (experts whose rows are sorted: e_down's alone in
 * the order that its kernel writes, f32[48,128,768,64] in 2304 MiB of qwen3-30b over 32). */
enum hb_tiling hb_weight_grad_tiling(const struct hb_lower *lo, const struct hb_leaf *l)
{
    return tiling_of(lo, l->row_major);
}

/* How copies of them lie: between padded gathers alike, else with what is gathered outermost
 * (qwen3-30b over 64: bf16[12,128,768,32] in 288 MiB on v5p, in 72 on v5e and v6e). */
static enum hb_tiling copy_tiling(const struct hb_lower *lo, const struct hb_leaf *l)
{
    return tiling_of(lo, l->row_major && hb_gathers_padded(lo));
}

/* Padded gathers put a shard between zeros along the gathered dimension; copies of these stacks lie
 * with it along the lanes, padded where it is narrower: wq's, wk's and wv's (not gate's and up's),
 * experts' gate and up (mixtral/base: bf16[32,8,64,14336] in 896, not 448). */
static bool is_shard_minor(const struct hb_lower *lo, const struct hb_leaf *l)
{
    if (!hb_gathers_padded(lo) || lo->maxtext || l->gather_dim < 0 || l->row_major)
        return false;
    return l->rank == HB_LEAF_RANK ? l->gather_dim == 1 : !l->held;
}

/* A copy of the leaf's stack in the compute dtype. */
static uint32_t copy_stack(struct hb_lower *lo, const struct hb_leaf *l, const char *name)
{
    struct hb_shape s = hb_leaf_shape(l, lo->compute);
    if (!is_shard_minor(lo, l))
        return hb_temp_tiled(lo, name, HB_CAT_PARAMS, s, copy_tiling(lo, l));
    int at = s.rank - l->rank + l->gather_dim;
    int64_t shard = s.dim[at];
    s.dim[at] = s.dim[s.rank - 1];
    s.dim[s.rank - 1] = shard;
    return hb_temp_tiled(lo, name, HB_CAT_PARAMS, s, HB_TILE_MINOR);
}

/* A table that is the head lies with its words along the lanes where its features on a device are
 * no whole rows of them; a loss in chunks and the update read it the other way round, off a copy
 * that stays to the end (qwen3-4b over 8 of v5e, v6e and v5p: f32[151936,320] from 62 to 3206 of
 * 3207; neither with the loss in one nor of 64 features, llama3.2-1b over 32). */
static bool is_table_apart(const struct hb_lower *lo, const struct hb_leaf *l)
{
    struct hb_shape s = hb_leaf_layer_shape(l, lo->compute, false);
    int64_t own = s.dim[s.rank - 1];
    bool table = l == &lo->leaves[lo->embed] && lo->head == lo->embed && hb_in_chunks(lo);
    return table && tiling_of(lo, true) == HB_TILE_MINOR && own > HB_TPU_LANES &&
           own % HB_TPU_LANES != 0;
}

/* MaxText with the optimizer split over data: gradients are split alike, and parameters that fsdp
 * does not split in their first dimension are copied into that layout for the update, before
 * anything else (llama3-8b/dp8_zero1: all of them). Where the graph tells the order each copy
 * stands before its update, so that as written it is no larger than in any order. */
void hb_weight_copy_param(struct hb_lower *lo, struct hb_leaf *l)
{
    bool split = lo->spec->sharding.optimizer_over_data && hb_ways(lo, HB_AX_DATA) > 1;
    bool apart = is_table_apart(lo, l), wanted = apart || (split && l->gather_dim != 0);
    if (!wanted || l->param_copy != HB_NONE)
        return;
    l->param_copy =
        hb_temp_tiled(lo, hb_name(lo, l->name, ", in the layout of its gradient"), HB_CAT_PARAMS,
                      hb_leaf_shape(l, lo->spec->precision.params), tiling_of(lo, apart));
    hb_emit_simple(lo, HB_OP_COPY, hb_name(lo, "turn ", l->name), l->arg, l->param_copy);
}

/* MaxText: a stack whose last dimension, split over fsdp, is exactly one row of lanes is
 * cast layer by layer (w_down: llama3-8b over 32, llama3-70b over 64: gate's and up's
 * bf16[80,128,28672] alone; with 64, 160, 512 features a device all three). */
static bool is_one_lane_row(const struct hb_lower *lo, const struct hb_leaf *l)
{
    const struct hb_split *last = &l->dim[l->rank - 1];
    return lo->maxtext && !l->experts && l->gather_dim == l->rank - 1 &&
           hb_div_up(last->size, last->ways) == HB_TPU_LANES;
}

static void cast_stack(struct hb_lower *lo, struct hb_leaf *l, uint32_t from)
{
    l->cast = copy_stack(lo, l, hb_name(lo, l->name, ", cast once for all layers"));
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, hb_name(lo, "cast ", l->name), from, l->cast);
}

/* Out of the loop over layers; out of the one over microbatches those of the embedding, of the head
 * and of layers side by side as well (tinyS/accum=2: bf16[32000,1024] and bf16[1024,32000] through
 * it, tinyS/base: none; mistral-7b of 12 layers, loop, fsdp 16, two microbatches: 24
 * bf16[512,14336] and 12 [14336,512] through it). */
static void hoist_cast(struct hb_lower *lo, struct hb_leaf *l)
{
    bool hoisted = lo->habits->casts_hoisted && (l->stack[0] > 0 || hb_accumulates(lo));
    bool wanted = needs_cast(lo, l) && !is_one_lane_row(lo, l) &&
                  (hoisted || (lo->spec->step.cast_upfront && !l->end));
    /* 8B,f64,b8,bf16params: w_down's copy all the same. Of nested stacks an outer block's slice is
     * enough (qwen3-30b over 64 of v5e, in 3: bf16[1,16,128,768,32]). */
    bool moved = hoisted && l->stack[0] > 0 && l->gather_dim == l->rank - 1 &&
                 (l->row_major || is_shard_minor(lo, l));
    if (l->transposed == HB_NONE && (wanted || moved))
        cast_stack(lo, l, l->arg);
}

/* Of stacks that lie turned outside of the loop over microbatches, each trip casts the copy (8B of
 * 16 layers over fsdp 8 with four microbatches, cast upfront, H100 and MI300X: f32[512,16,14336]
 * through it, in it bf16[512,16,14336] and none of bf16[16,14336,512]). */
void hb_weight_cast_turned(struct hb_lower *lo)
{
    for (uint32_t i = 0; i < lo->leaf_count && lo->spec->step.cast_upfront; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        if (l->transposed == HB_NONE || l->cast != HB_NONE || !needs_cast(lo, l))
            continue;
        cast_stack(lo, l, l->transposed);
        l->transposed = l->cast;
    }
}

void hb_weight_hoist_casts(struct hb_lower *lo)
{
    for (uint32_t i = 0; i < lo->leaf_count && !hb_habits_ordered(lo->spec); i++)
        hb_weight_copy_param(lo, &lo->leaves[i]);
    for (uint32_t i = 0; i < lo->leaf_count; i++)
        hoist_cast(lo, &lo->leaves[i]);
}

void hb_weight_keep_casts(struct hb_lower *lo, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        if (l->stack[0] && needs_cast(lo, l) && (l->cast == HB_NONE || lo->habits->rings))
            l->kept = hb_temp(lo, hb_name(lo, l->name, ", cast, saved for backward"), HB_CAT_SAVED,
                              hb_leaf_shape(l, lo->compute));
    }
}

void hb_weight_drop_casts(struct hb_lower *lo, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        lo->leaves[i].kept = HB_NONE;
}

/* The iterations of a pipeline that are not rematerialised run forwards on casts of all stacks,
 * turned in the compute dtype; backwards they turn the parameters themselves (8B,pp4f4,m8: two
 * bf16[1024,8,1,14336] read by while.126, two f32[1024,1,8,14336] by while.128 behind the loss). */
static bool is_turned_late(const struct hb_lower *lo, const struct hb_leaf *l)
{
    const struct hb_pipe *p = &lo->spec->pipeline;
    return hb_ways(lo, HB_AX_PIPELINE) > 1 && !p->remat_iteration && needs_cast(lo, l) &&
           l->cast == HB_NONE;
}

/* Whether more than one row lies before the gathered dimension on a device (mixtral/fsdp=8,ep=8,
 * one expert on each: e_down's f32[512,32,1,14336] alone is copied). */
static bool is_gathered_inside(const struct hb_leaf *l)
{
    int64_t before = 1;
    for (int i = 0; i < l->gather_dim; i++)
        before = hb_mul_sat(before, hb_div_up(l->dim[i].size, l->dim[i].ways));
    return before > 1;
}

bool hb_weight_is_turned(const struct hb_lower *lo, const struct hb_leaf *l)
{
    /* pr85/pp8: stacks of experts too, three f32[1,2,16,4096,2048], where the einsum of a stage
     * has more than one sequence (microbatch 4, or 1 that comes from 2 devices; none with 1,
     * none with ragged, none outside of pipelines: moeT/base, moeFG/ep=8). */
    bool staged = l->einsum_batch > 1 && hb_ways(lo, HB_AX_PIPELINE) > 1;
    /* Kept casts are stacked as the backward loop wants them (1B,sp4f2,none:
     * bf16[16,8192,1024] in layout {1,0,2} beside no other). */
    bool wanted = ((!lo->batch_whole && is_gathered_inside(l)) || staged) && l->kept == HB_NONE;
    /* Of layers side by side each weight, where microbatches read it (qwen3-32b of four layers,
     * fsdp 2: f32[2560,25600] and [2560,8192] of each through their loop, none without). */
    bool repeats = l->stack[0] || hb_accumulates(lo);
    return lo->habits->transposed_stacks && !l->end && l->matrix && repeats && wanted;
}

void hb_weight_transpose_stacks(struct hb_lower *lo)
{
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        /* On ROCm, which hides nothing behind them, experts' after the loss (pr85/pp8/good,
         * no_loss_stage: none beside 2 x f32[32,4096,32000]; on CUDA three). */
        bool late =
            (!lo->habits->gathers_timed && !hb_habits_ordered(lo->spec)) || is_turned_late(lo, l);
        if (!hb_weight_is_turned(lo, l) || l->transposed != HB_NONE ||
            (late && lo->phase == HB_PHASE_FORWARD))
            continue;
        uint32_t from = l->cast != HB_NONE ? l->cast : l->arg;
        l->transposed = hb_temp(lo, hb_name(lo, l->name, ", transposed copy of the stack"),
                                HB_CAT_COMMUNICATION, hb_leaf_shape(l, lo->p->bufs[from].dtype));
        hb_emit_simple(lo, HB_OP_COPY, hb_name(lo, "transpose ", l->name), from, l->transposed);
    }
}

enum hb_weight_mode hb_weight_mode(const struct hb_lower *lo, const struct hb_leaf *l)
{
    if (lo->batch_whole)
        return HB_WEIGHT_LOCAL;
    if (l->expert_ways > 1)
        return HB_WEIGHT_GATHER;
    if (l->gather_dim < 0)
        return HB_WEIGHT_LOCAL;
    /* moeFG/base: between rings the experts' weights are gathered, three bf16[64,2048,1408]. */
    if (l->rank == HB_LEAF_RANK && l->held)
        return HB_WEIGHT_GATHER;
    return lo->fsdp_mode;
}

static bool goes_round(const struct hb_lower *lo, const struct hb_leaf *l)
{
    return hb_weight_mode(lo, l) == HB_WEIGHT_RING;
}

/* So do gradients of the einsum's experts, whose weights are gathered (mixtral, fsdp 8 with expert
 * 4: bf16[2,512,14336], no [2,4096,14336]). */
static bool grad_goes_round(const struct hb_lower *lo, const struct hb_leaf *l)
{
    return goes_round(lo, l) || (lo->experts_round && l->einsum_batch > 0);
}

int64_t hb_weight_ring_room(const struct hb_lower *lo, const struct hb_leaf *l)
{
    enum { WAYS_ROUND = 2 };
    struct hb_shape one = hb_leaf_layer_shape(l, lo->compute, false);
    bool room = goes_round(lo, l) && !hb_in_short_ring(lo);
    return room ? hb_mul_sat(WAYS_ROUND, hb_shape_elements(&one)) : 0;
}

/* MaxText's weights in f32 come out of their casts as an all-gather wants them, even over 64
 * devices and more (base/llama3-8b, v5p-128: all-gather bf16[1,4096,14336]); those in bf16 do not
 * (rand027/qwen3-8b: all-reduce bf16[1,4096,12288]). */
static bool is_padded(const struct hb_lower *lo)
{
    bool cast = lo->maxtext && lo->spec->precision.params != lo->compute;
    return hb_gathers_padded(lo) && !cast;
}

void hb_weight_gather(struct hb_lower *lo, const char *name, uint32_t part, uint32_t whole)
{
    if (is_padded(lo)) {
        struct hb_buf zeros = lo->p->bufs[whole];
        zeros.name = hb_name(lo, name, ", padded with zeros");
        uint32_t padded = hb_program_add_buf(lo->p, zeros);
        hb_emit_simple(lo, HB_OP_COPY, "own part between zeros", part, padded);
        part = padded;
    }
    hb_emit_collective(lo, HB_OP_ALL_GATHER, HB_AX_FSDP, name, part, whole);
}

/* As much as the gather or the sum that it replaces, piece by piece, without a buffer. */
static void send_round(struct hb_lower *lo, const struct hb_leaf *l, enum hb_op_kind kind)
{
    bool gather = kind == HB_OP_ALL_GATHER;
    struct hb_shape whole =
        hb_leaf_layer_shape(l, gather ? hb_narrow_gathered(lo, l) : lo->compute, true);
    struct hb_emit e = {.name = hb_name(lo, "ring of ", l->name),
                        .kind = kind,
                        .axis = HB_AX_FSDP,
                        .stream = HB_STREAM_COLLECTIVE + (unsigned)HB_AX_FSDP,
                        .group = l->fsdp_ways,
                        .moved_bytes = (double)hb_shape_plain_bytes(&whole),
                        .sent_bytes = (double)hb_shape_plain_bytes(&whole),
                        .over_data = kind == HB_OP_REDUCE_SCATTER};
    hb_emit(lo, &e);
}

void hb_weight_send_grad(struct hb_lower *lo, uint32_t leaf)
{
    if (grad_goes_round(lo, &lo->leaves[leaf]))
        send_round(lo, &lo->leaves[leaf], HB_OP_REDUCE_SCATTER);
}

static bool is_gathered(const struct hb_lower *lo, const struct hb_leaf *l)
{
    enum hb_weight_mode mode = hb_weight_mode(lo, l);
    /* 1B/base: in the backward pass of rings gate and up are gathered for their recomputation
     * (all-gather.30 and .31), and the gathered weights serve their backward products too. */
    return mode == HB_WEIGHT_GATHER || (mode == HB_WEIGHT_RING && lo->phase == HB_PHASE_BACKWARD);
}

/* In a trip of a loop a cast goes with the gather of its result to where the scheduler that hides
 * latencies starts that (H200, 70B over 256 devices: 17.5 -> 16.1 s of 15.5). */
static uint32_t cast_slice(struct hb_lower *lo, const struct hb_leaf *l, uint32_t from)
{
    uint32_t slice = hb_temp(lo, hb_name(lo, l->name, ", cast for one layer"), HB_CAT_WORKING,
                             hb_leaf_layer_shape(l, lo->compute, false));
    uint32_t op = hb_emit_simple(lo, HB_OP_ELEMENTWISE, hb_name(lo, "cast ", l->name), from, slice);
    if (lo->p->open_loop != HB_NONE && is_gathered(lo, l) && l->expert_ways <= 1)
        lo->p->ops[op].stream = HB_STREAM_COLLECTIVE + (unsigned)HB_AX_FSDP;
    return slice;
}

/* A trip of XLA:GPU's loop takes its slices out of the stacks, of weights that nothing casts or
 * gathers (llama8b in bf16, 1024 tokens: two bf16[1,4096,14336] and, turned, bf16[4096,14336]). */
static bool is_sliced(const struct hb_lower *lo, const struct hb_leaf *l)
{
    return hb_fuses_slices(lo) && hb_weight_mode(lo, l) == HB_WEIGHT_LOCAL && l->matrix &&
           l->stack[0] > 1;
}

/* Shards that are no whole number of sublanes are gathered outermost, each row in a tile of two
 * (olmo2-32b, v6e, fsdp 256: of 20 rows a shard bf16[1,5120,27648]{2,0,1:T(2,128)}, 540 MiB, not
 * 270; none of 40 rows), down's copied at once. */
static bool is_gathered_by_rows(const struct hb_lower *lo, const struct hb_leaf *l)
{
    struct hb_shape part = hb_leaf_layer_shape(l, lo->compute, false);
    return lo->p->compiler == HB_XLA_TPU && lo->spec->stack.axis == 0 && l->rank == 2 &&
           part.dim[0] % HB_TPU_SUBLANES != 0 && part.dtype == HB_DT_BF16;
}

/* XLA:TPU gathers over the expert axis and fsdp at once, the devices outermost: a copy puts experts
 * and features in order, and one more the tiles where the features are last (phi-3.5-moe, ragged,
 * fsdp 16 with expert 8: bf16[128,2,6400,256], [1,8,2,6400,16,256] and [16,6400,4096]). */
static void order_gathered(struct hb_lower *lo, struct hb_leaf *l)
{
    int copies = l->gather_dim == l->rank - 1 ? 2 : 1;
    if (lo->p->compiler != HB_XLA_TPU || l->gather_dim < 0)
        return;
    for (int i = 0; i < copies; i++) {
        uint32_t copy = hb_temp(lo, hb_name(lo, l->name, ", gathered, in order"),
                                HB_CAT_COMMUNICATION, hb_buf_shape(lo, l->gathered));
        hb_emit_simple(lo, HB_OP_COPY, hb_name(lo, "order ", l->name), l->gathered, copy);
        l->gathered = copy;
    }
}

uint32_t hb_weight_use(struct hb_lower *lo, uint32_t leaf)
{
    struct hb_leaf *l = &lo->leaves[leaf];
    if (l->whole != HB_NONE)
        return l->whole;
    if (l->gathered != HB_NONE)
        return l->gathered;
    uint32_t source = l->cast != HB_NONE ? l->cast : l->arg;
    if (l->transposed != HB_NONE)
        source = l->transposed;
    if (l->kept != HB_NONE && lo->phase == HB_PHASE_BACKWARD)
        source = l->kept;
    /* What is sent comes out of the stack of kept casts as well. */
    if (is_sliced(lo, l) || l->kept != HB_NONE || (l->cast == HB_NONE && needs_cast(lo, l)))
        source = cast_slice(lo, l, source);
    if (l->kept != HB_NONE && lo->phase == HB_PHASE_FORWARD)
        hb_emit_simple(lo, HB_OP_COPY, "cast weight into its stack", source, l->kept);
    bool gather = is_gathered(lo, l);
    enum hb_dtype dtype = hb_narrow_gathered(lo, l);
    if (l->narrow && (dtype == HB_DT_F8 || !gather))
        source = hb_narrow_weight(lo, l, source, false);
    l->gathered = source;
    if (!gather && goes_round(lo, l))
        send_round(lo, l, HB_OP_ALL_GATHER);
    if (!gather)
        return source;
    l->gathered = hb_temp(lo, hb_name(lo, l->name, ", gathered"), HB_CAT_COMMUNICATION,
                          hb_leaf_layer_shape(l, dtype, true));
    if (is_gathered_by_rows(lo, l))
        lo->p->bufs[l->gathered].bytes = hb_mul_sat(2, lo->p->bufs[l->gathered].bytes);
    hb_weight_gather(lo, hb_name(lo, "gather ", l->name), source, l->gathered);
    struct hb_op *op = &lo->p->ops[lo->p->op_count - 1];
    op->sent_bytes = (double)lo->p->bufs[l->gathered].plain_bytes;
    op->group = l->fsdp_ways * hb_larger(l->expert_ways, 1);
    if (l->expert_ways > 1) {
        op->axis = HB_AX_EXPERT;
        op->stream = HB_STREAM_COLLECTIVE + (unsigned)HB_AX_EXPERT;
        order_gathered(lo, l);
    }
    if (l->narrow && dtype != HB_DT_F8)
        l->gathered = hb_narrow_weight(lo, l, l->gathered, true);
    return l->gathered;
}

void hb_weight_forget(struct hb_lower *lo, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        lo->leaves[i].gathered = HB_NONE;
}

bool hb_weight_grad_partial(const struct hb_lower *lo, const struct hb_leaf *l)
{
    if (grad_goes_round(lo, l) || l->whole != HB_NONE)
        return false;
    /* Stages have weights of their own (pr85/pp8/good,blocked: no bf16[16,4096,2048] waits). */
    int64_t ways =
        (l->end ? lo->local.batch_ways : lo->local.input_ways) * hb_ways(lo, HB_AX_SEQUENCE);
    if (lo->batch_whole && !l->end)
        ways /= hb_ways(lo, HB_AX_FSDP);
    return ways > 1;
}

enum hb_dtype hb_weight_grad_dtype(const struct hb_lower *lo)
{
    /* 1B/cast=upfront, opt/param_dtype=bf16: the stacks of gradients are bf16. */
    return lo->spec->step.cast_upfront ? lo->compute : lo->spec->precision.params;
}

static void zero_grad(struct hb_lower *lo, struct hb_leaf *l)
{
    if (!l->stack[0] || l->grad != HB_NONE)
        return;
    l->grad = hb_temp_tiled(lo, hb_name(lo, l->name, ", gradient"), HB_CAT_GRADIENTS,
                            hb_leaf_grad_shape(lo, l, hb_weight_grad_dtype(lo)),
                            hb_weight_grad_tiling(lo, l));
    struct hb_emit e = {.name = hb_name(lo, "zero gradient of ", l->name),
                        .kind = HB_OP_ELEMENTWISE};
    hb_emit_write(&e, l->grad);
    if (l->nan_with_grad)
        hb_emit_write(&e, l->nan_zero);
    l->nan_with_grad = false;
    hb_emit(lo, &e);
}

void hb_weight_zero_grads(struct hb_lower *lo, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        zero_grad(lo, &lo->leaves[i]);
}

/* Where a gradient is collected, unless an update took it. */
static void add_grad(struct hb_lower *lo, struct hb_leaf *l)
{
    if (l->grad == HB_NONE && !l->grad_fused)
        l->grad = hb_temp(lo, hb_name(lo, l->name, ", gradient"), HB_CAT_GRADIENTS,
                          hb_leaf_shape(l, hb_weight_grad_dtype(lo)));
}

/* Whether so many lanes, the last perhaps in part (37,984 words, v5e--k30), divide into windows of
 * the chip's least to WINDOW_MOST. */
enum { WINDOW_MOST = 56 };

static bool has_windows(const struct hb_lower *lo, int64_t width)
{
    int64_t least = lo->chip->window_least;
    for (int64_t lanes = WINDOW_MOST; lanes > 0 && lanes >= least; lanes--)
        if (hb_div_up(width, HB_TPU_LANES) % lanes == 0)
            return true;
    return false;
}

bool hb_weight_gathers_plain(const struct hb_lower *lo)
{
    return lo->habits->rings && hb_gathers_weights(lo) && lo->gather_form == HB_GATHER_PLAIN;
}

/* So many words are whole lanes, whose number has no prime factor above WINDOW_MOST. */
static bool divides_evenly(int64_t words)
{
    int64_t lanes = words / HB_TPU_LANES;
    if (words % HB_TPU_LANES != 0)
        return false;
    for (int64_t k = 2; k <= WINDOW_MOST; k++)
        while (lanes % k == 0)
            lanes /= k;
    return lanes == 1;
}

bool hb_weight_late_beside(const struct hb_lower *lo)
{
    return hb_gathers_late(lo) && hb_order_rows_beside(lo);
}

/* 16 layers of 4,096, data 4 and fsdp 16, four microbatches: of 128,256 words (1,002 lanes) v5p
 * sums the whole, bf16[4096,128256], v6e each device's part, f32[256,128256]. So do all over a
 * sequence axis, before that of both (olmo2-7b, v6e, fsdp 8 and sequence 2: f32[512,100352]), and
 * v5p and v6e beside data parallelism between late gathers where words divide evenly (4,096 wide,
 * data 2 and fsdp 64: of 32,000, 49,152, 100,352, 131,072, 152,064, 256,000 and 262,144 words
 * f32[64,152064]; of 50,304, 128,256, 151,936, 201,088 and 24 to 54 times 59 lanes the whole). */
bool hb_weight_head_scattered(const struct hb_lower *lo)
{
    if (hb_weight_late_beside(lo))
        return divides_evenly(lo->local.vocab);
    bool lanes = lo->local.vocab % HB_TPU_LANES == 0;
    bool apart =
        (hb_weight_gathers_apart(lo) && hb_ways(lo, HB_AX_TENSOR) > 1) || hb_splits_sequence(lo);
    return ((hb_weight_gathers_plain(lo) && lanes) || apart) && has_windows(lo, lo->local.vocab);
}

bool hb_weight_sums_own(const struct hb_lower *lo, int64_t width)
{
    int64_t ways = hb_ways(lo, HB_AX_FSDP), side = 1;
    while (side * side < ways)
        side++;
    bool square = side * side == ways && ways == lo->spec->hardware.count;
    if (hb_gathers_late(lo))
        return !square && divides_evenly(width);
    return lo->chip->gathers_beside && !square && has_windows(lo, width);
}

uint32_t hb_weight_sum_whole(struct hb_lower *lo, uint32_t leaf, uint32_t full)
{
    const struct hb_leaf *l = &lo->leaves[leaf];
    uint32_t sum = hb_temp(lo, hb_name(lo, l->name, ", gradient summed"), HB_CAT_GRADIENTS,
                           hb_buf_shape(lo, full));
    hb_emit_grad_sum(lo, hb_name(lo, "sum gradient of ", l->name), full, sum);
    return sum;
}

void hb_weight_reduce_grad(struct hb_lower *lo, uint32_t leaf, uint32_t full)
{
    struct hb_leaf *l = &lo->leaves[leaf];
    add_grad(lo, l);
    bool split = l->gather_dim >= 0 || l->expert_ways > 1;
    /* What came whole over two axes is summed whole, and each device takes its part (fsdp 2 and
     * expert 4: all-reduce bf16[64,2048,1408] on v5p, H100 and MI300X). */
    bool summed = !split || l->expert_ways > 1;
    struct hb_emit e = {.name = hb_name(lo, "sum gradient of ", l->name),
                        .kind = summed ? HB_OP_ALL_REDUCE : HB_OP_REDUCE_SCATTER,
                        .axis = l->expert_ways > 1 ? HB_AX_EXPERT
                                : split            ? HB_AX_FSDP
                                                   : HB_AX_DATA};
    e.stream = HB_STREAM_COLLECTIVE + (unsigned)e.axis;
    e.group = split ? l->fsdp_ways * hb_larger(l->expert_ways, 1) : lo->local.batch_ways;
    e.over_data = split;
    e.sent_bytes = (double)lo->p->bufs[full].plain_bytes;
    hb_emit_read(&e, full);
    hb_emit_write(&e, l->grad);
    hb_emit(lo, &e);
}

bool hb_weight_gathers_apart(const struct hb_lower *lo)
{
    return hb_gathers_padded(lo) || hb_gathers_late(lo);
}

void hb_weight_accumulate(struct hb_lower *lo, bool made)
{
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        if (l->added || (made && l->grad == HB_NONE))
            continue;
        hb_emit_simple(lo, HB_OP_ELEMENTWISE, "accumulate gradient", l->grad, l->accum);
        l->grad = l->grad_half = HB_NONE;
        l->added = true;
    }
}

/* One zero tensor for each shape, not for each leaf (opt/nan_to_num: + 0.437 GB = f32
 * [16,2816,1024] + [16,1024,2816] + [16,1024,1024]); leaves that the loop collects in another
 * layout have none. They live from before the loss, or the microbatches, to the update. */
void hb_weight_nan_zeros(struct hb_lower *lo)
{
    if (!lo->habits->nan_zero_per_shape || !lo->spec->step.nan_to_num)
        return;
    enum hb_dtype dtype = hb_weight_grad_dtype(lo);
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        struct hb_shape s = hb_leaf_shape(l, dtype);
        if (!l->stack[0] || hb_weight_is_turned(lo, l))
            continue;
        for (uint32_t k = 0; k < i; k++) {
            struct hb_shape other = hb_leaf_shape(&lo->leaves[k], dtype);
            if (lo->leaves[k].nan_zero != HB_NONE && hb_shape_same_dims(&s, &other))
                l->nan_zero = lo->leaves[k].nan_zero;
        }
        if (l->nan_zero != HB_NONE)
            continue;
        l->nan_zero =
            hb_temp(lo, hb_name(lo, l->name, ", zeros for nan_to_num"), HB_CAT_GRADIENTS, s);
        l->nan_with_grad = hb_habits_ordered(lo->spec);
        if (!l->nan_with_grad)
            hb_emit_mark(lo, "zeros for nan_to_num", HB_NONE, l->nan_zero);
    }
}

/* A layer alone is in no loop, so nothing makes zeros for its gradients to begin with: the fusion
 * that replaces has the constant in itself. */
void hb_weight_drop_nan_zeros(struct hb_lower *lo)
{
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        uint32_t zero = lo->leaves[i].nan_zero;
        for (uint32_t k = i; k < lo->leaf_count && lo->leaves[i].nan_with_grad; k++)
            if (lo->leaves[k].nan_zero == zero)
                lo->leaves[k].nan_zero = HB_NONE;
    }
}

/* The whole of a stack, or of its last dimension of layers, not split over fsdp. */
static struct hb_shape gathered_stack(const struct hb_lower *lo, const struct hb_leaf *l,
                                      bool one_repeat)
{
    struct hb_leaf whole = *l;
    whole.dim[whole.gather_dim].ways /= whole.fsdp_ways;
    if (one_repeat && whole.stack[1]) {
        whole.stack[0] = whole.stack[1];
        whole.stack[1] = 0;
    }
    return hb_leaf_shape(&whole, lo->compute);
}

void hb_weight_gather_stacks(struct hb_lower *lo, uint32_t first, uint32_t end, bool one_repeat)
{
    for (uint32_t i = first; i < end; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        if (l->gather_dim < 0 || l->whole != HB_NONE)
            continue;
        uint32_t from = l->cast != HB_NONE ? l->cast : l->arg;
        l->whole = hb_temp(lo, hb_name(lo, l->name, ", gathered for all iterations"),
                           HB_CAT_COMMUNICATION, gathered_stack(lo, l, one_repeat));
        hb_emit_collective(lo, HB_OP_ALL_GATHER, HB_AX_FSDP, hb_name(lo, "gather ", l->name), from,
                           l->whole);
    }
}

void hb_weight_whole_grads(struct hb_lower *lo, uint32_t first, uint32_t end, bool one_repeat)
{
    for (uint32_t i = first; i < end; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        if (l->whole == HB_NONE || l->grad != HB_NONE)
            continue;
        l->grad = hb_temp(lo, hb_name(lo, l->name, ", gradient of the gathered stack"),
                          HB_CAT_GRADIENTS, gathered_stack(lo, l, one_repeat));
        hb_emit_mark(lo, "zero gradient of the gathered stack", HB_NONE, l->grad);
    }
}

void hb_weight_scatter_grads(struct hb_lower *lo, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        if (l->whole == HB_NONE)
            continue;
        uint32_t shard = hb_temp(lo, hb_name(lo, l->name, ", gradient"), HB_CAT_GRADIENTS,
                                 hb_leaf_shape(l, hb_weight_grad_dtype(lo)));
        hb_emit_grad_sum(lo, hb_name(lo, "sum gradient of ", l->name), l->grad, shard);
        l->grad = shard;
        l->whole = HB_NONE;
    }
}
