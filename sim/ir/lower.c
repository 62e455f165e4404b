/* The driver of the lowering: sizes on one device, leaves, then the phases. Parts: lowering.h. */
#include "sim/ir/lower.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "models/named.h"
#include "sim/ir/again.h"
#include "sim/ir/chunks.h"
#include "sim/ir/copies.h"
#include "sim/ir/depths.h"
#include "sim/ir/head.h"
#include "sim/ir/loss.h"
#include "sim/ir/lowering.h"
#include "sim/ir/muon.h"
#include "sim/ir/optim.h"
#include "sim/ir/order.h"
#include "sim/ir/pipeline.h"
#include "sim/ir/sequence.h"
#include "sim/ir/stack.h"
#include "sim/ir/tail.h"
#include "sim/ir/weight.h"

static struct hb_local local_sizes(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    struct hb_local l = {.batch_ways = hb_ways(lo, HB_AX_DATA) * hb_ways(lo, HB_AX_FSDP) *
                                       hb_ways(lo, HB_AX_EXPERT)};
    int64_t tp = hb_ways(lo, HB_AX_TENSOR);
    l.input_ways = l.batch_ways;
    if (s->sharding.ends_over_pipeline)
        l.batch_ways *= hb_ways(lo, HB_AX_PIPELINE);
    l.batch = hb_div_up(hb_div_up(s->batch.global, s->batch.accumulate), l.batch_ways);
    l.seq = hb_div_up(s->batch.seq, hb_ways(lo, HB_AX_SEQUENCE));
    l.tokens = hb_mul_sat(l.batch, l.seq);
    l.resid_seq = l.seq;
    l.resid_width = s->model.d_model;
    if (s->sharding.residual_over_tensor && s->sharding.residual_split == HB_SPLIT_FEATURES)
        l.resid_width = hb_div_up(l.resid_width, tp);
    else if (s->sharding.residual_over_tensor)
        l.resid_seq = hb_div_up(l.seq, tp);
    l.vocab = hb_div_up(s->model.vocab, s->sharding.vocab_over_tensor ? tp : 1);
    return l;
}

/* Rings (collective matmuls) on TPU: fsdp of 5 to 32, the batch split by fsdp alone, enough tokens:
 * all seven products of a layer in 105 of 106 rows with at least 1024 tokens a device; none with
 * data or sequence axes (29 of 29), none at 2, 4, >= 33. The least tokens a device: v5p 640 at 8
 * ways, 512 at 16 and 32; v5e 1024; v6e 2048. Four ways go round where they are a side of the
 * torus: beside tensor parallelism on 16 devices (ring/f4t4; on 8 where those are 2 by 4, v5e--t1,
 * not 2 by 2 by 2, ring/f4t2), and alone where they are a part of a larger slice (gate/f4,b4,P8;
 * not ring/f4): with few tokens a slice of its own is meant, with more the larger one. */
enum { RING_MIN = 5, RING_MAX = 32, RING_SIDE = 4, SLICE_TOKENS = 8192 };

/* Without constraints what is split in a scan's layers is what their weights are split over: the
 * residual's features, by fsdp. Each product of it is a sum over devices, whole, for the sequences
 * of all of them (on CUDA, fsdp 8, eight layers of 4096 and 12288: bf16[32,4096,12288] six times,
 * 27.4 GiB where 9.4 are with constraints). On TPU a flash kernel asks for a split batch, and the
 * rows of ragged experts do everywhere. Unrolled layers are not known. */
static bool is_batch_whole(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    bool asked = lo->habits->rings;
    for (int i = 0; i < s->model.block_count; i++)
        if (hb_block_mixes(&s->model.blocks[i]) && hb_layer_sorts_rows(&s->model.blocks[i].moe))
            asked = true;
    return !s->sharding.activation_constraints && !asked && hb_ways(lo, HB_AX_FSDP) > 1;
}

/* The einsum's experts' weights go round beside an expert axis as well, where the tokens of the
 * axis come to each device (fsdp 8 with expert 4, v5p: a windowed_dot_general of bf16[2,512,14336]
 * in each of three products; so fsdp 8, 16 and 32 with expert 2 and 4); MaxText's do not. */
static enum hb_weight_mode find_mode(struct hb_lower *lo)
{
    int64_t f = hb_fsdp_ways(lo, false);
    bool apart = hb_ways(lo, HB_AX_EXPERT) > 1;
    lo->experts_own = !apart || (!lo->maxtext && f >= RING_MIN);
    if (f == 1)
        return HB_WEIGHT_LOCAL;
    bool may = lo->habits->rings && hb_ways(lo, HB_AX_DATA) == 1 && f <= RING_MAX;
    int64_t tp = hb_ways(lo, HB_AX_TENSOR);
    bool slice = tp == 1 && lo->local.tokens <= SLICE_TOKENS;
    bool side = f == RING_SIDE && !slice && hb_ways(lo, HB_AX_PIPELINE) == 1 &&
                (tp == 1 || tp >= RING_SIDE || lo->chip->flat);
    lo->experts_round = lo->experts_own && may && f >= RING_MIN;
    lo->experts_listed = lo->experts_round && (apart || tp > 1);
    return may && !apart && (side || f >= RING_MIN) ? HB_WEIGHT_RING : HB_WEIGHT_GATHER;
}

/* On v5p gathers over all devices, 64 and more, are sums of zero-padded tensors (8B64/base: two
 * whole bf16[4096,14336] at each gather, whatever the width of a shard; mix/gate/f48,d6k: one; over
 * 64 and 128 beside data 2 and 4 or tensor 2 and 4 none of seven, an expert axis neither). On v5e
 * they run beside the products, and the whole gradients wait for their sums (70B/base). */
enum { PADDED_WAYS = 64 };

static enum hb_gather_form find_form(const struct hb_lower *lo)
{
    int64_t ways = hb_fsdp_ways(lo, false);
    if (!lo->habits->rings || !hb_gathers_weights(lo))
        return HB_GATHER_PLAIN;
    bool all = ways == lo->spec->hardware.count;
    if (lo->chip->gathers_padded && ways >= PADDED_WAYS && all)
        return HB_GATHER_PADDED;
    if (lo->chip->gathers_beside)
        return HB_GATHER_BESIDE;
    return ways > RING_MAX ? HB_GATHER_LATE : HB_GATHER_PLAIN;
}

static void add_inputs(struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    int64_t batch = hb_div_up(s->batch.global, lo->local.input_ways);
    struct hb_shape ids = hb_shape_make(HB_DT_S32, (const int64_t[]){batch, lo->local.seq, -1});
    lo->tokens = hb_argument(lo, "tokens", HB_CAT_INPUTS, ids, HB_SPACE_HBM);
    lo->labels = hb_argument(lo, "labels", HB_CAT_INPUTS, ids, HB_SPACE_HBM);
    /* base/llama3-8b, v5p-512: five s32[4,8192]. */
    static const char *const more[] = {"positions", "segments", "segments of the labels"};
    for (int i = 0; i < 3 && lo->maxtext; i++)
        hb_argument(lo, more[i], HB_CAT_INPUTS, ids, HB_SPACE_HBM);
    struct hb_shape scalar = {.dtype = HB_DT_S32};
    uint32_t step = hb_argument(lo, "step counter", HB_CAT_INPUTS, scalar, HB_SPACE_HBM);
    uint32_t next = hb_temp_in_place(lo, "step counter, next", HB_CAT_INPUTS, step);
    lo->p->bufs[next].output = true;
    hb_emit_mark(lo, "count the step", step, next);
    lo->loss = hb_temp(lo, "loss", HB_CAT_WORKING, (struct hb_shape){.dtype = HB_DT_F32});
    lo->p->bufs[lo->loss].output = true;
    hb_emit_mark(lo, "loss", HB_NONE, lo->loss);
}

/* On one device a gradient that is no part of a stack is consumed by its update as it is made,
 * unless something must see all gradients first (tinyS/base against tinyS/clip: +62.5 MiB;
 * opt/layers=loop: temp 457 against 1382 scanned). */
static void fuse_updates(struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    bool waits = hb_updates_together(lo) || lo->local.batch_ways > 1;
    for (uint32_t i = 0; i < lo->leaf_count && !waits; i++)
        lo->leaves[i].grad_fused = !lo->leaves[i].stack[0];
    lo->leaves[lo->head].grad_fused =
        !waits && lo->head != lo->embed && s->model.mtp == 0 && !hb_habits_ordered(s);
}

static void add_accumulators(struct hb_lower *lo)
{
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        l->accum =
            hb_temp_tiled(lo, hb_name(lo, l->name, ", gradient accumulated"), HB_CAT_GRADIENTS,
                          hb_leaf_shape(l, HB_DT_F32), hb_weight_grad_tiling(lo, l));
        hb_emit_mark(lo, "zero accumulator", HB_NONE, l->accum);
    }
}

/* The layers: blocks outside the pipeline (all of them without one), then the pipeline. */
struct parts {
    struct hb_stack_plan stack;
    struct hb_pipeline pipeline;
    struct hb_depths depths;
    bool piped;
};

/* A table's gradient needs zeros where it is scattered into (tiny/base: bf16[32000,1024] from the
 * start to the end; in pipelines where the stage is a loop, not where its layers stand side by
 * side, pr85/pp8/good: from 1009 of 1103 on); one that comes out of a product does not. */
static void early_zeros(struct hb_lower *lo, struct hb_ends *ends, enum hb_zeros_at at)
{
    bool first = hb_ways(lo, HB_AX_PIPELINE) == 1 && hb_order_zeros(lo) == HB_ZEROS_FIRST;
    if (lo->tail.known ? lo->tail.table == (int)at : first && at == HB_ZEROS_FIRST)
        hb_ends_start_table(lo, ends);
    hb_order_put_zeros(lo, at);
}

static void forward_backward(struct hb_lower *lo, struct parts *parts)
{
    struct hb_ends ends = {.table_grad = HB_NONE};
    lo->layers = &parts->stack;
    lo->phase = HB_PHASE_FORWARD;
    early_zeros(lo, &ends, HB_ZEROS_FIRST);
    hb_stack_reserve(lo, &parts->stack);
    uint32_t x = hb_ends_embed(lo, &ends);
    /* The casts of the stacks come after the lookup (8B-L16,f64,b3: bf16[16,14336,64] from 114 on,
     * the rows from 75 to 109), or outside of the loop over microbatches. */
    if (!hb_accumulates(lo))
        hb_weight_hoist_casts(lo);
    hb_weight_cast_turned(lo);
    /* A list schedule starts with what needs no operand of the step (8B/opt=muon: three
     * f32[32,512,14336] from 100 on, beside the loss; 8B,f16,muon,clip). */
    if (!hb_accumulates(lo))
        hb_muon_copy_first(lo);
    hb_optim_order(lo);
    hb_loss_prepare(lo);
    hb_weight_transpose_stacks(lo);
    x = hb_stack_forward(lo, &parts->stack, x);
    if (parts->piped)
        x = hb_pipeline_forward(lo, &parts->pipeline, x);
    /* layers' ops on both sides, not of the same layers */
    hb_emit_mark(lo, "end of the layers", HB_NONE, HB_NONE);
    hb_weight_transpose_stacks(lo);
    hb_weight_nan_zeros(lo);
    early_zeros(lo, &ends, HB_ZEROS_BEFORE_LOSS);
    hb_optim_fetch_before_loss(lo);
    hb_depths_forward(lo, &parts->depths, x);
    uint32_t g = hb_depths_backward(lo, &parts->depths, hb_loss_pass(lo, &ends, x));
    if (lo->tail.table > HB_ZEROS_BEFORE_LOSS)
        hb_ends_start_table(lo, &ends);
    lo->phase = HB_PHASE_BACKWARD;
    hb_weight_transpose_stacks(lo);
    if (!hb_accumulates(lo))
        hb_optim_fetch(lo);
    if (parts->piped)
        g = hb_pipeline_backward(lo, &parts->pipeline, g);
    g = hb_stack_backward(lo, &parts->stack, g);
    hb_depths_finish(&parts->depths);
    hb_ends_finish(lo, &ends, g);
}

static void add_leaves(struct hb_lower *lo, struct parts *parts)
{
    hb_ends_leaves(lo);
    hb_stack_leaves(lo, &parts->stack);
    if (parts->piped)
        hb_pipeline_leaves(lo, &parts->pipeline);
    hb_depths_leaves(lo, &parts->depths);
    lo->stacked_grad_bytes = hb_order_grad_bytes(lo);
}

/* A sample takes its order from the configuration that it stands for. */
static void weigh_whole(struct hb_lower *lo)
{
    if (lo->whole == lo->spec) {
        hb_tail_find(lo, lo);
        return;
    }
    struct hb_lower whole = *lo;
    struct parts parts = {.piped = hb_pipeline_wanted(lo)};
    whole.spec = lo->whole;
    whole.leaves = NULL;
    whole.leaf_count = whole.leaf_cap = 0;
    whole.kinds = NULL;
    whole.kind_count = whole.kind_cap = 0;
    add_leaves(&whole, &parts);
    lo->stacked_grad_bytes = whole.stacked_grad_bytes;
    hb_leaf_weigh(lo, &whole);
    hb_tail_find(lo, &whole);
}

static void build_step(struct hb_lower *lo)
{
    struct parts parts = {.piped = hb_pipeline_wanted(lo)};
    add_leaves(lo, &parts);
    weigh_whole(lo);
    hb_leaf_arguments(lo);
    add_inputs(lo);
    lo->input_bytes = hb_stack_input_bytes(lo);
    fuse_updates(lo);
    hb_stack_build(lo, &parts.stack);
    if (parts.piped)
        hb_pipeline_build(lo, &parts.pipeline);
    hb_depths_build(lo, &parts.depths);
    if (hb_accumulates(lo)) { /* XLA:GPU moves what is the same in each trip out of the loop */
        hb_weight_transpose_stacks(lo);
        hb_weight_hoist_casts(lo);
    }
    hb_optim_fetch_first(lo);
    if (!hb_accumulates(lo)) {
        forward_backward(lo, &parts);
    } else {
        add_accumulators(lo);
        hb_chunks_turn(lo);
        hb_optim_fetch(lo);
        hb_muon_copy_first(lo);
        uint32_t loop = hb_program_open_loop(lo->p, "microbatches", lo->spec->batch.accumulate);
        forward_backward(lo, &parts);
        hb_weight_accumulate(lo, false);
        hb_program_close_loop(lo->p, loop);
    }
    hb_optim_update(lo);
}

/* MaxText's step differs from another JAX step in what no key names: its loss has a backward rule
 * of its own, stacks keep heads apart, a batch is five arrays, biases of outputs are split
 * (tests/unit/test_lower_maxtext.c). Where nobody says, split norms or layers stacked along
 * dimension 1 tell it: those two are its habits. */
bool hb_lower_is_maxtext(const struct hb_spec *s)
{
    if (s->runtime.framework != HB_FW_AUTO)
        return s->runtime.framework == HB_FW_MAXTEXT;
    return s->sharding.norms != HB_NORMS_REPLICATED || s->stack.axis == 1;
}

/* What splits the residual over tensor is a constraint: a program without any leaves it whole, and
 * with it the norms' kept copies and the stack of layer inputs (rnd/075 with
 * activation_constraints=false: f32[40,4,4096,4096] four times, 67.5 -> 95.4 GiB). Names that a
 * block has not keep nothing. */
static const struct hb_spec *as_compiled(struct hb_arena *arena, const struct hb_spec *spec)
{
    const struct hb_spec *named = hb_named_spec(arena, spec);
    if (named->sharding.activation_constraints)
        return named;
    struct hb_spec *own = hb_arena_alloc(arena, 1, sizeof *own);
    *own = *named;
    own->sharding.residual_over_tensor = false;
    return own;
}

/* The device's own, however small a budget is asked for. */
static int64_t memory_bytes(const struct hb_hardware *h)
{
    int64_t most = hb_larger(h->memory_bytes, h->hbm_bytes);
    return most > 0 ? most : INT64_MAX;
}

/* What XLA takes for the device's memory where it makes values again. */
static int64_t shared_memory(const struct hb_lower *lo)
{
    if (lo->spec->compiler != HB_XLA_TPU)
        return lo->hbm_bytes;
    int64_t memory = lo->chip->memory_bytes;
    return memory ? memory : INT64_MAX;
}

/* XLA:GPU's not for scans of one stage, unless experts are spread in their bodies: their stacks are
 * read by loops and wait whatever is done, and configurations are priced by sums over their layers.
 * XLA:TPU's all, but what a search prices: its plans do not count on it. */
static bool is_made_again(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    bool sums = s->stack.form != HB_FORM_LOOP && hb_ways(lo, HB_AX_PIPELINE) == 1;
    if (s->compiler == HB_XLA_TPU)
        return (s->share == HB_SHARE_ASKED || s->share == HB_SHARE_TIGHT) && lo->whole == s;
    return s->compiler == HB_XLA_GPU && (!sums || s->share == HB_SHARE_REDONE);
}

static void begin(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                  const struct hb_spec *whole, struct hb_program *out, struct hb_lower *lo)
{
    *lo = (struct hb_lower){.arena = arena,
                            .diag = diag,
                            .spec = spec,
                            .whole = whole,
                            .habits = hb_habits_find(spec),
                            .chip = hb_habits_chip(spec),
                            .p = out,
                            .maxtext = hb_lower_is_maxtext(spec),
                            .compute = spec->precision.compute,
                            .hbm_bytes = memory_bytes(&spec->hardware),
                            .phase = HB_PHASE_SETUP};

    hb_program_init(out, arena, spec->model.name, spec->compiler);
    out->labels_alone = lo->chip->labels_last;
    lo->waits = hb_arena_alloc(arena, 1, sizeof *lo->waits);
    lo->local = local_sizes(lo);
    lo->batch_whole = is_batch_whole(lo);
    lo->fsdp_mode = find_mode(lo);
    lo->gather_form = find_form(lo);
    if (lo->habits->constraints_needed || lo->experts_own)
        lo->expert_batch = HB_EXPERTS_JOINED;
}

static bool lower_once(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                       const struct hb_spec *whole, struct hb_program *out)
{
    enum { BUFS_OF_LAYER = 256 }; /* what deepseek-v3 has with states on the host */
    struct hb_lower lo;
    begin(arena, diag, spec, whole, out, &lo);
    hb_program_reserve(out, BUFS_OF_LAYER * ((uint32_t)spec->model.block_count + 1));
    out->repack_bytes = hb_chip_repack_bytes(lo.chip);
    for (int i = 0; i < HB_AX_COUNT; i++)
        out->mesh[i] = spec->mesh[i];
    out->outputs_lend = lo.habits->donated_reuse;
    int64_t memory = shared_memory(&lo);
    lo.made_again = memory < INT64_MAX && is_made_again(&lo);
    build_step(&lo);
    /* A step that did not fit before its logits were made again is packed by size, too (70B/base:
     * f32[8192,128256] at 3 MiB, f32[4096,128256], made again before it, at 6015). */
    if (hb_head_logits_again(&lo))
        out->repack_bytes = 1;
    if (lo.too_large)
        return false;
    bool tight = lo.made_again && lo.unit_waits && spec->share == HB_SHARE_ASKED &&
                 hb_again_exceeds(out, hb_again_limit(out, memory / 19 * 20, false));
    if (lo.made_again && !tight)
        hb_again_run(out, hb_again_limit(out, memory, lo.spreads));
    out->spreads = lo.spreads;
    out->share = tight ? HB_SHARE_TIGHT : spec->share;
    return true;
}

int64_t hb_lower_share_bytes(const struct hb_spec *spec)
{
    struct hb_program none = {0};
    int64_t memory = memory_bytes(&spec->hardware);
    return spec->compiler == HB_XLA_GPU ? hb_again_limit(&none, memory, false) : INT64_MAX;
}

bool hb_lower(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
              struct hb_program *out)
{
    struct hb_spec *own = hb_arena_alloc(arena, 1, sizeof *own);
    *own = *as_compiled(arena, spec);
    struct hb_arena_mark mark = hb_arena_mark(arena);
    bool asks = own->share == HB_SHARE_ASKED && hb_lower_share_bytes(own) < INT64_MAX;
    if (!lower_once(arena, diag, own, own, out))
        return false;
    /* Above the memory XLA:TPU's scheduler runs again, and no weight gradient waits for a unit's
     * end (gemma3-12b over 256 of v6e, 32768 tokens: each layer's at once, 28.19 GiB, told 36.4 if
     * they wait, 25.4 if not; 8192, all behind: 11.01 and 12.1; over 128 20.8, 37.3 and 26.2). */
    if (out->share != own->share) {
        own->share = out->share;
        hb_arena_rewind(arena, mark);
        return lower_once(arena, diag, own, own, out);
    }
    int64_t limit = hb_again_limit(out, memory_bytes(&spec->hardware), out->spreads);
    while (asks && own->share < HB_SHARE_REDONE && hb_again_exceeds(out, limit)) {
        enum hb_share next = own->share == HB_SHARE_TIGHT ? HB_SHARE_REDONE : HB_SHARE_TIGHT;
        own->share = out->spreads ? next : HB_SHARE_EXCEEDED;
        hb_arena_rewind(arena, mark);
        if (!lower_once(arena, diag, own, own, out))
            return false;
    }
    /* CUDA's second pass hides as long as its limit is not passed: zeros of other runs stand early
     * until it is reached (olmo2-13b in two runs, fsdp 4 of B200: limit, written, all late and
     * compiled 137.5 139.0 125.8 137.0 GiB; codellama-34b over 4 and tensor 2 137.9 140.1 128.1
     * 137.1; deepseek-llm-7b on four H100, 4 microbatches, 61.1 of 62.2, 57.7 and 60.6). */
    if (asks && own->share == HB_SHARE_EXCEEDED && own->model.block_count > 1 &&
        !hb_again_exceeds(out, limit))
        out->filled_bytes = limit;
    return true;
}

bool hb_lower_sample(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                     const struct hb_spec *whole, struct hb_program *out)
{
    return lower_once(arena, diag, as_compiled(arena, spec), as_compiled(arena, whole), out);
}

struct hb_lower_orders {
    struct hb_lower lo;
    struct hb_spec spec; /* of the one that is asked for */
    struct hb_program none;
};

struct hb_lower_orders *hb_lower_orders_open(struct hb_arena *arena, struct hb_diag *diag,
                                             const struct hb_spec *cell)
{
    struct hb_lower_orders *o = hb_arena_alloc(arena, 1, sizeof *o);
    struct parts parts = {0};
    o->spec = *as_compiled(arena, cell);
    begin(arena, diag, &o->spec, &o->spec, &o->none, &o->lo);
    add_leaves(&o->lo, &parts);
    o->lo.input_bytes = hb_stack_input_bytes(&o->lo);
    return o;
}

int hb_lower_order(struct hb_lower_orders *o, const struct hb_model *model)
{
    o->spec.model = *model;
    return hb_sequence_key(&o->lo);
}

int hb_lower_kinds(struct hb_arena *scratch, const struct hb_spec *cell, int out[HB_LOWER_KINDS])
{
    out[0] = cell->as_order;
    if (cell->as_order > 0 || cell->compiler != HB_XLA_TPU)
        return 1;
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    const struct hb_spec *spec = as_compiled(scratch, cell);
    struct hb_diag diag;
    struct hb_program none;
    struct hb_lower lo;
    hb_diag_init(&diag, scratch);
    begin(scratch, &diag, spec, spec, &none, &lo);
    int count = hb_sequence_kinds(&lo, out);
    for (int i = 0; i < count; i++)
        out[i]++;
    hb_arena_rewind(scratch, mark);
    return count > 0 ? count : 1;
}
