/* The scan over pipeline iterations: see pipeline.h. Read in PPc/base (TPU): stacks of inputs and
 * outputs of all iterations (2 x 176 MiB), [iterations, layers of a stage, ...] of what layers keep
 * (704 MiB), and gradients twice in f32: the iterations' accumulator and the stage scan's own. */
#include "sim/ir/pipeline.h"

#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/ir/order.h"
#include "sim/ir/weight.h"

/* Of which an iteration touches one. */
static struct hb_shape stacked_state(struct hb_lower *lo, const struct hb_pipeline *pl,
                                     int64_t count)
{
    struct hb_shape s =
        hb_shape_make(lo->compute, (const int64_t[]){count, pl->batch, lo->local.resid_seq,
                                                     lo->local.resid_width, -1});
    s.slices = count;
    return s;
}

static uint32_t state_temp(struct hb_lower *lo, const struct hb_pipeline *pl, const char *name)
{
    return hb_temp(lo, name, HB_CAT_WORKING,
                   hb_shape_make(lo->compute, (const int64_t[]){pl->batch, lo->local.resid_seq,
                                                                lo->local.resid_width, -1}));
}

/* Saving each layer's input beside the iteration's adds the stack of all but the first; the layers
 * of an iteration still run again together (pr85: + 1.38 of 2.01 GB with 8 stages of two layers,
 * + 2.2 to 3.0 of 2.82 with 4 of four). */
static void save_layer_inputs(struct hb_lower *lo, struct hb_pipeline *pl)
{
    int64_t layers = 0;
    for (uint32_t i = 0; i < pl->count; i++)
        layers += pl->groups[i].trips;
    if (!hb_pipeline_saves_inputs(lo))
        return;
    struct hb_shape s = stacked_state(lo, pl, hb_mul_sat(pl->iterations, layers - 1));
    pl->layer_stack = hb_temp(lo, "inputs of the layers, saved for backward", HB_CAT_SAVED, s);
    hb_emit_mark(lo, "stack of layer inputs", HB_NONE, pl->layer_stack);
}

/* Microbatches in a buffer: MaxText's has a place for each stage's share (state_io, [stages,
 * microbatches / stages, ...] over the stages: llama3-8b/pp8_lps1 has no bf16[8,4,4096,4096]). */
static int64_t buffer_count(const struct hb_lower *lo)
{
    int64_t stages = lo->maxtext ? hb_ways(lo, HB_AX_PIPELINE) : 1;
    return hb_div_up(lo->spec->pipeline.microbatches, stages);
}

/* States in the stack of outputs: one an iteration, or one a microbatch in a buffer. */
static int64_t output_count(const struct hb_lower *lo, const struct hb_pipeline *pl)
{
    bool stacked = lo->spec->pipeline.outputs == HB_OUT_STACKED;
    return stacked ? pl->iterations : buffer_count(lo);
}

/* Who hands out a buffer of microbatches takes its inputs from one. */
static int64_t input_count(const struct hb_lower *lo, const struct hb_pipeline *pl)
{
    bool buffer = lo->spec->pipeline.outputs == HB_OUT_BUFFER;
    return buffer ? buffer_count(lo) : pl->iterations;
}

/* Without constraints in the body XLA:GPU splits the gradients of the iterations' inputs and
 * outputs over the expert axis by iteration (pr85/ep2pp4/good,constraints=none: two
 * bf16[4,8,4096,4096], and bf16[8,8,4096,4096] gathered in each iteration). */
static int64_t grad_count(const struct hb_lower *lo, int64_t count)
{
    bool split = lo->expert_batch == HB_EXPERTS_LOCAL;
    return split ? hb_div_up(count, hb_ways(lo, HB_AX_EXPERT)) : count;
}

/* --- forward --- */

static uint32_t group_forward(struct hb_lower *lo, struct hb_group *g, uint32_t x, bool keep)
{
    uint32_t loop = HB_NONE;
    if (g->looped)
        loop = hb_program_open_loop(lo->p, hb_name(lo, g->layer.name, ", layers of a stage"),
                                    g->trips);
    x = hb_body_forward(&g->body, x, g->looped ? x : HB_NONE, keep);
    if (g->looped)
        hb_program_close_loop(lo->p, loop);
    return x;
}

static void stage_stacks(struct hb_pipeline *pl, int64_t iterations)
{
    for (uint32_t i = 0; i < pl->count; i++) {
        struct hb_group *g = &pl->groups[i];
        int64_t layers = g->looped ? g->trips : 0;
        const int64_t lead[3] = {iterations ? iterations : layers, iterations ? layers : 0, 0};
        bool own = iterations == 0 && g->body.own_stacks;
        hb_body_stacks(&g->body, lead, own ? NULL : "stacks of saved values");
    }
}

/* What the next iteration finds in the state's place: on XLA:GPU that is empty once the last state
 * was read (rocm-pr85/pp8/good: bf16[1,4,4096,4096] to 681 and from 933 of 1103 on, four gradients
 * of keys and values at the same offset in between). */
static uint32_t renewed(struct hb_lower *lo, const char *name, uint32_t state)
{
    uint32_t next = hb_temp_in_place(lo, name, HB_CAT_WORKING, state);
    lo->p->bufs[next].renews = lo->habits->recompute_first;
    return next;
}

/* The input of an iteration: the previous stage's output, or the next microbatch. */
static uint32_t next_state(struct hb_lower *lo, const struct hb_pipeline *pl, uint32_t inputs)
{
    uint32_t moved = state_temp(lo, pl, "state from the stage before");
    hb_emit_collective(lo, HB_OP_PERMUTE, HB_AX_PIPELINE, "shift stages", pl->state, moved);
    uint32_t in = hb_temp_in_place(lo, "input of the iteration", HB_CAT_WORKING, moved);
    hb_emit_sum(lo, "select microbatch or state", moved, inputs, in);
    return in;
}

/* Accumulators of the stage's gradients, where they are not there. */
static void zero_gradients(struct hb_lower *lo, const struct hb_pipeline *pl)
{
    bool repeat = lo->spec->pipeline.gather == HB_GATHER_REPEAT;
    for (uint32_t i = 0; i < pl->count; i++) {
        const struct hb_layer *y = &pl->groups[i].layer;
        hb_weight_whole_grads(lo, y->first_leaf, y->end_leaf, repeat);
        hb_weight_zero_grads(lo, y->first_leaf, y->end_leaf);
    }
}

static uint32_t take_outputs(struct hb_lower *lo, uint32_t outputs, uint32_t like)
{
    uint32_t out = hb_temp(lo, "outputs of the pipeline", HB_CAT_WORKING, hb_buf_shape(lo, like));
    hb_emit_simple(lo, HB_OP_COPY, "take outputs of the microbatches", outputs, out);
    return out;
}

/* Iterations that a device takes from its neighbours: it holds `held` of them and wants `want`,
 * which begin `skip` later than those that it holds. */
static int64_t missing_iterations(int64_t held, int64_t want, int64_t skip, int64_t ways)
{
    int64_t right = skip + want - held;
    int64_t left = (ways - 1) * (held - want) - skip;
    left = left < held ? left : held;
    right = right > left ? right : left;
    return right > 0 ? right : 0;
}

/* XLA:GPU, where the batch is split: of the outputs' stack, in which each device has its part of
 * all iterations, it takes its share of iterations whole (pp2f4,m4: bf16[5,2,2048,2048] becomes
 * bf16[4,2,2,2048,2048]), among no more devices than there are microbatches (pp4f32,m8:
 * bf16[2,1,8,8192,7168]). Shards that are permuted between as many stages as parts of the batch
 * make a copy in its order (8B,pp8f8,m16: one bf16[23,1,4096,4096]). */
static uint32_t exchange_outputs(struct hb_lower *lo, const struct hb_pipeline *pl,
                                 uint32_t outputs, uint32_t like)
{
    int64_t microbatches = lo->spec->pipeline.microbatches;
    int64_t ways = hb_smaller(lo->local.input_ways, microbatches);
    bool all = lo->spec->pipeline.constraints == HB_CONS_ALL;
    int64_t held = hb_div_up(all ? microbatches : pl->iterations, ways);
    int64_t want = hb_div_up(microbatches, ways);
    int64_t skip = all ? 0 : hb_ways(lo, HB_AX_PIPELINE) - 1;
    int64_t more = missing_iterations(held, want, skip, ways);
    if (hb_ways(lo, HB_AX_PIPELINE) == lo->local.input_ways && more > 0)
        return take_outputs(lo, outputs, like);
    uint32_t out = hb_temp(lo, "outputs of the pipeline, exchanged", HB_CAT_WORKING,
                           stacked_state(lo, pl, hb_mul_sat(hb_add_sat(held, more), ways)));
    hb_emit_collective(lo, HB_OP_ALL_TO_ALL, HB_AX_FSDP, "exchange outputs", outputs, out);
    return out;
}

/* Where the backward iterations collect the gradients of their inputs. */
static uint32_t add_input_grads(struct hb_lower *lo, struct hb_pipeline *pl)
{
    pl->input_grads = hb_temp(lo, "gradients of the iterations' inputs", HB_CAT_WORKING,
                              stacked_state(lo, pl, grad_count(lo, input_count(lo, pl))));
    return pl->input_grads;
}

static void zero_input_grads(struct hb_lower *lo, struct hb_pipeline *pl)
{
    if (pl->input_grads == HB_NONE)
        hb_emit_mark(lo, "stack of input gradients", HB_NONE, add_input_grads(lo, pl));
}

/* XLA:GPU makes it with the forward iterations' stack of outputs, two zeros in one fusion
 * (rocm-pr85/pp8/good+layerin: bf16[15,4,4096,4096] from 7 to 1010 of 1067; on CUDA
 * vocab=128256,embed=onehot: -3.4 -> -1.7 %). */
static void zero_outputs(struct hb_lower *lo, struct hb_pipeline *pl, uint32_t outputs)
{
    struct hb_emit e = {.name = "stack of outputs", .kind = HB_OP_MARK};
    hb_emit_write(&e, outputs);
    if (lo->habits->recompute_first)
        hb_emit_write(&e, add_input_grads(lo, pl));
    hb_emit(lo, &e);
}

/* pipeline.gather: repeat and once: weights are gathered over fsdp before the iterations, for the
 * layers of one repeat or for all, and their gradients summed after them. */
static void gather_weights(struct hb_lower *lo, const struct hb_pipeline *pl)
{
    enum hb_pipe_gather gather = lo->spec->pipeline.gather;
    for (uint32_t i = 0; i < pl->count && gather != HB_GATHER_ITERATION; i++)
        hb_weight_gather_stacks(lo, pl->groups[i].layer.first_leaf, pl->groups[i].layer.end_leaf,
                                gather == HB_GATHER_REPEAT);
}

static void scatter_grads(struct hb_lower *lo, const struct hb_pipeline *pl)
{
    for (uint32_t i = 0; i < pl->count; i++)
        hb_weight_scatter_grads(lo, pl->groups[i].layer.first_leaf, pl->groups[i].layer.end_leaf);
}

/* Weights in the compute dtype depend on no iteration, so that the trace hands them out of the scan
 * over a stage's layers as residuals: a second copy of their stacks through the forward iterations
 * (PP/base: three more bf16[4,1,2048,8192] from 57 to 309). It does not stand at the peak, but the
 * logits find no place in the hole that it leaves. */
static uint32_t *copy_casts(struct hb_lower *lo, const struct hb_pipeline *pl)
{
    uint32_t *copies = hb_none_list(lo, lo->leaf_count);
    for (uint32_t g = 0; g < pl->count && !lo->spec->step.cast_upfront; g++)
        for (uint32_t i = pl->groups[g].layer.first_leaf; i < pl->groups[g].layer.end_leaf; i++) {
            const struct hb_leaf *l = &lo->leaves[i];
            if (l->cast == HB_NONE || !pl->groups[g].looped)
                continue;
            copies[i] = hb_temp(lo, hb_name(lo, l->name, ", cast handed out of the stage's scan"),
                                HB_CAT_PARAMS, hb_leaf_shape(l, lo->compute));
            hb_emit_simple(lo, HB_OP_COPY, "casts of the stage's layers", l->cast, copies[i]);
        }
    return copies;
}

static void end_copies(struct hb_lower *lo, const uint32_t *copies)
{
    for (uint32_t i = 0; i < lo->leaf_count; i++)
        if (copies[i] != HB_NONE)
            hb_emit_mark(lo, "end of the handed out casts", copies[i], HB_NONE);
}

uint32_t hb_pipeline_forward(struct hb_lower *lo, struct hb_pipeline *pl, uint32_t x)
{
    const uint32_t *copies = copy_casts(lo, pl);
    const struct hb_pipe *p = &lo->spec->pipeline;
    lo->phase = HB_PHASE_FORWARD;
    gather_weights(lo, pl);
    uint32_t inputs = hb_temp(lo, "inputs of the iterations", HB_CAT_WORKING,
                              stacked_state(lo, pl, input_count(lo, pl)));
    hb_emit_simple(lo, HB_OP_COPY, "microbatches in order", x, inputs);
    pl->inputs = inputs;
    pl->input_grads = HB_NONE;
    uint32_t outputs = hb_temp(lo, "outputs of the iterations", HB_CAT_WORKING,
                               stacked_state(lo, pl, output_count(lo, pl)));
    zero_outputs(lo, pl, outputs);
    if (p->remat_iteration) {
        pl->iter_stack = hb_temp(lo, "inputs of the iterations, saved for backward", HB_CAT_SAVED,
                                 stacked_state(lo, pl, pl->iterations));
        hb_emit_mark(lo, "stack of iteration inputs", HB_NONE, pl->iter_stack);
        save_layer_inputs(lo, pl);
    } else {
        stage_stacks(pl, pl->iterations);
    }
    pl->state = state_temp(lo, pl, "state of the stage");
    hb_emit_mark(lo, "empty state", HB_NONE, pl->state);
    uint32_t loop = hb_program_open_loop(lo->p, "pipeline iterations", pl->iterations);
    uint32_t in = next_state(lo, pl, inputs);
    if (pl->iter_stack != HB_NONE)
        hb_emit_simple(lo, HB_OP_COPY, "iteration input into its stack", in, pl->iter_stack);
    uint32_t out = in;
    for (uint32_t i = 0; i < pl->count; i++)
        out = group_forward(lo, &pl->groups[i], out, !p->remat_iteration);
    hb_emit_simple(lo, HB_OP_COPY, "output of the iteration", out, outputs);
    hb_emit_mark(lo, "carry state", out, renewed(lo, "state carried", pl->state));
    hb_program_close_loop(lo->p, loop);
    end_copies(lo, copies);
    if (!lo->habits->outputs_in_place)
        return take_outputs(lo, outputs, x);
    zero_input_grads(lo, pl);
    if (lo->local.input_ways > 1 && p->outputs == HB_OUT_STACKED)
        return exchange_outputs(lo, pl, outputs, x);
    return hb_temp_in_place(lo, "outputs of the pipeline, in their stack", HB_CAT_WORKING, outputs);
}

/* --- backward --- */

/* The stage scan collects gradients of its own in each iteration. */
static void own_grads(struct hb_lower *lo, struct hb_pipeline *pl, uint32_t *outer)
{
    for (uint32_t g = 0; g < pl->count; g++)
        for (uint32_t i = pl->groups[g].layer.first_leaf; i < pl->groups[g].layer.end_leaf; i++) {
            struct hb_leaf *l = &lo->leaves[i];
            if (outer[i] != HB_NONE)
                continue;
            outer[i] = l->grad;
            l->grad = hb_temp(lo, hb_name(lo, l->name, ", gradient of one iteration"),
                              HB_CAT_GRADIENTS, hb_leaf_shape(l, hb_weight_grad_dtype(lo)));
            hb_emit_mark(lo, "zero gradient of the iteration", HB_NONE, l->grad);
        }
}

static void add_grads(struct hb_lower *lo, uint32_t *outer)
{
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        if (outer[i] == HB_NONE)
            continue;
        hb_emit_simple(lo, HB_OP_ELEMENTWISE, "add gradient of the iteration", l->grad, outer[i]);
        l->grad = outer[i];
    }
}

/* Rematerialised layers side by side, without barriers between them: the scheduler makes them all
 * again before the backward pass of the last (ep2pp4--good,no_iter_remat,layer_remat: four layers'
 * dispatch masks and expert inputs, 8 x 320 MiB). */
static void recompute_stage(struct hb_pipeline *pl)
{
    for (uint32_t i = 0; i < pl->count; i++)
        if (!pl->groups[i].looped)
            hb_body_recompute(&pl->groups[i].body);
}

/* What an iteration saved is taken out of the stacks of all iterations before the loop over its
 * layers (PPc/pipe_layer_remat=False on TPU: bf16[4,1,2,2048,8192] six times beside
 * bf16[11,4,1,2,2048,8192]). */
static void take_iteration(struct hb_lower *lo, struct hb_group *g)
{
    for (uint32_t v = 0; v < g->layer.value_count; v++) {
        uint32_t stack = g->body.stack[v];
        if (stack == HB_NONE || lo->p->bufs[stack].space != HB_SPACE_HBM)
            continue;
        const char *name = hb_name(lo, lo->p->bufs[stack].name, ", of an iteration");
        struct hb_shape s = hb_buf_shape(lo, stack);
        memmove(s.dim, s.dim + 1, (size_t)--s.rank * sizeof *s.dim);
        s.slices = g->trips;
        uint32_t own = hb_temp_tiled(lo, name, HB_CAT_SAVED, s, g->layer.values[v].tiling);
        uint32_t op = hb_emit_simple(lo, HB_OP_COPY, "an iteration out of its stack", stack, own);
        lo->p->ops[op].moved_bytes = 2.0 * (double)lo->p->bufs[own].bytes;
        g->body.stack[v] = own;
    }
}

/* What the layer before makes again of the gradient that it is handed: see hand_on, body_back.c. */
static void take_on(struct hb_body *b, const struct hb_body *last)
{
    b->remade = last->remade;
    memcpy(b->remade_from, last->remade_from, sizeof b->remade_from);
}

static uint32_t stage_backward(struct hb_lower *lo, struct hb_pipeline *pl, uint32_t grad)
{
    for (uint32_t i = pl->count; i-- > 0;) {
        struct hb_group *g = &pl->groups[i];
        uint32_t loop = HB_NONE;
        if (g->looped && pl->iter_stack == HB_NONE)
            take_iteration(lo, g);
        if (g->looped)
            loop = hb_program_open_loop(
                lo->p, hb_name(lo, g->layer.name, ", layers of a stage, backward"), g->trips);
        if (i + 1 < pl->count)
            take_on(&g->body, &pl->groups[i + 1].body);
        uint32_t out = hb_body_backward(&g->body, grad);
        if (g->looped) {
            uint32_t back =
                hb_temp_in_place(lo, "gradient carried to the next layer", HB_CAT_WORKING, grad);
            hb_emit_mark(lo, "carry gradient", out, back);
            hb_program_close_loop(lo->p, loop);
            out = back;
        }
        grad = out;
    }
    for (uint32_t i = pl->count; i-- > 0;)
        hb_body_late(&pl->groups[i].body);
    return grad;
}

/* Iterations split over more devices than there are microbatches, as many as those: a few of them
 * whole on each before the gather (70B,pp4f16t4,m8: bf16[2,2,8,4096,8192]; 8B,pp2f8,m4:
 * bf16[2,8,2048,4096]; pp2f16,m4: bf16[2,16,8192,4096], then bf16[8,16,8192,4096]). */
static uint32_t exchange_iterations(struct hb_lower *lo, uint32_t gout, int64_t few, int64_t batch)
{
    uint32_t pair =
        hb_temp(lo, "gradients of some iterations' outputs", HB_CAT_COMMUNICATION,
                hb_shape_make(lo->compute, (const int64_t[]){few, batch, lo->local.seq,
                                                             lo->spec->model.d_model, -1}));
    hb_emit_collective(lo, HB_OP_ALL_TO_ALL, HB_AX_FSDP, "exchange gradients of outputs", gout,
                       pair);
    return pair;
}

/* Each iteration takes its part out of the stack of output gradients, for which XLA:GPU gathers the
 * whole stack over the batch (8B,pp4f4,m8,iter: bf16[11,1,2048,4096] -> bf16[11,4,2048,4096]). With
 * more devices than microbatches the iterations are what is split, padded to those
 * (70B,pp4f16t4,m8: bf16[16,16,4096,8192], 16 GiB): only then does XLA:TPU gather, twice, as it
 * comes and in order (70B,pp4f16t4,m8, with 8 layers as with 80: 2 x 16 GiB; pp4f4,m8: none). */
static uint32_t gather_outputs(struct hb_lower *lo, const struct hb_pipeline *pl, uint32_t gout)
{
    int64_t ways = lo->local.input_ways;
    int64_t microbatches = lo->spec->pipeline.microbatches;
    bool always = lo->habits->output_grads_gathered;
    if (always && lo->spec->pipeline.constraints == HB_CONS_ALL)
        return gout;
    if (ways == 1 || !(always || ways > microbatches))
        return gout;
    int64_t count = output_count(lo, pl);
    int64_t batch = hb_div_up(lo->spec->batch.global / lo->spec->batch.accumulate, microbatches);
    if (ways > microbatches) {
        count = hb_round_up(count, microbatches);
        gout = always ? exchange_iterations(lo, gout, count / microbatches, batch) : gout;
    }
    struct hb_shape shape = hb_shape_make(
        lo->compute, (const int64_t[]){count, batch, lo->local.seq, lo->spec->model.d_model, -1});
    uint32_t whole =
        hb_temp(lo, "gradients of the iterations' outputs, gathered", HB_CAT_COMMUNICATION, shape);
    hb_emit_collective(lo, HB_OP_ALL_GATHER, HB_AX_FSDP, "gather gradients of outputs", gout,
                       whole);
    if (always)
        return whole;
    uint32_t ordered =
        hb_temp(lo, "gradients of the iterations' outputs, in order", HB_CAT_COMMUNICATION, shape);
    hb_emit_simple(lo, HB_OP_COPY, "iterations in order", whole, ordered);
    return ordered;
}

/* ROCm reads a saved input of a layer where it lies, in the stack of all iterations
 * (pr85/pp8/good+layerin: no bf16[1,4,4096,4096] of them). */
static uint32_t input_stack(const struct hb_pipeline *pl, uint32_t i)
{
    return pl->groups[i].body.sums_wide && i > 0 ? pl->layer_stack : HB_NONE;
}

/* What layer i of an iteration that runs again begins with; `x` is what the one before made. */
static uint32_t input_again(struct hb_lower *lo, const struct hb_pipeline *pl, uint32_t i,
                            uint32_t x)
{
    if (i > 0 && pl->layer_stack == HB_NONE)
        return x;
    uint32_t there = input_stack(pl, i);
    if (there != HB_NONE)
        return there;
    x = state_temp(lo, pl, i > 0 ? "input of the layer, again" : "input of the iteration, again");
    hb_emit_simple(lo, HB_OP_COPY, "input out of its stack",
                   i > 0 ? pl->layer_stack : pl->iter_stack, x);
    return x;
}

/* The loop over an iteration's layers that runs again has collectives of its own, so that XLA's
 * latency hiding puts what else it needs before: the part of the outputs' gradients is taken first
 * (codellama-34b, fsdp 16 with two stages, dots, H100: bf16[8,16,4096,8192] gathered and gone
 * before the zeros of the stacks, bf16[24,1,1,4096,22016] twice). */
static uint32_t take_output_grad(struct hb_lower *lo, const struct hb_pipeline *pl, uint32_t gout)
{
    uint32_t whole = gather_outputs(lo, pl, gout);
    if (whole == gout)
        return gout;
    uint32_t own = state_temp(lo, pl, "gradient of the iteration's own output");
    hb_emit_simple(lo, HB_OP_COPY, "gradient of an iteration's output", whole, own);
    return own;
}

/* A rematerialised iteration runs forward again and keeps what its layers need, for itself. Layers
 * side by side: all but the last, whose experts run forward when its backward pass begins; the
 * outputs' gradients are gathered while its attention is made again on CUDA, and just before it on
 * ROCm (pr85/ep2pp4/good: bf16[7,8,4096,4096] from 886 to 951). Returns the gradients, gathered. */
static uint32_t run_again(struct hb_lower *lo, struct hb_pipeline *pl, uint32_t gout)
{
    uint32_t x = HB_NONE;
    bool first = pl->groups[0].looped;
    uint32_t whole = first ? take_output_grad(lo, pl, gout) : HB_NONE;
    stage_stacks(pl, 0);
    for (uint32_t i = 0; i < pl->count; i++) {
        struct hb_group *g = &pl->groups[i];
        if (i + 1 == pl->count && g->body.own_stacks)
            whole = gather_outputs(lo, pl, gout);
        uint32_t stack = input_stack(pl, i), *kept = &g->body.stack[g->body.y->input];
        if (stack != HB_NONE)
            *kept = HB_NONE;
        x = group_forward(lo, g, input_again(lo, pl, i, x), true);
        if (stack != HB_NONE)
            *kept = stack;
    }
    return whole != HB_NONE ? whole : gather_outputs(lo, pl, gout);
}

/* XLA:GPU, the loss split over the stages: each stage's part of the gradients on all of them,
 * before they are padded to the iterations (pr85/pp8/good: bf16[32,4096,4096] from 379 to 381 of
 * 1103; ep2pp4/good: bf16[16,4096,4096]). */
static uint32_t join_grads(struct hb_lower *lo, const struct hb_pipeline *pl, uint32_t grad)
{
    if (!lo->spec->sharding.ends_over_pipeline)
        return grad;
    uint32_t all = hb_temp(lo, "gradients of outputs of all stages", HB_CAT_COMMUNICATION,
                           stacked_state(lo, pl, lo->spec->pipeline.microbatches));
    hb_emit_collective(lo, HB_OP_ALL_GATHER, HB_AX_PIPELINE, "join gradients of outputs", grad,
                       all);
    return all;
}

uint32_t hb_pipeline_backward(struct hb_lower *lo, struct hb_pipeline *pl, uint32_t grad)
{
    lo->phase = HB_PHASE_BACKWARD;
    /* PP/base has no accumulators at its peak in the loss; XLA:GPU has made them before. */
    zero_gradients(lo, pl);
    uint32_t *outer = hb_none_list(lo, lo->leaf_count);
    uint32_t gout = hb_temp(lo, "gradients of the iterations' outputs", HB_CAT_WORKING,
                            stacked_state(lo, pl, grad_count(lo, output_count(lo, pl))));
    hb_emit_simple(lo, HB_OP_COPY, "gradients of outputs, padded", join_grads(lo, pl, grad), gout);
    zero_input_grads(lo, pl);
    for (uint32_t i = 0; i < pl->count && pl->iter_stack == HB_NONE; i++)
        if (pl->groups[i].looped)
            hb_stack_restack(lo, &pl->groups[i].body);
    uint32_t gin = pl->input_grads;
    uint32_t state = state_temp(lo, pl, "gradient of the state");
    hb_emit_mark(lo, "empty gradient", HB_NONE, state);
    uint32_t loop = hb_program_open_loop(lo->p, "pipeline iterations, backward", pl->iterations);
    uint32_t padded = gout;
    /* ROCm, which times nothing: before all else (70B,pp4f16t4,m8: f32[20,1,512,7168] from 480 on,
     * the gathered gradients at 621). */
    if (pl->iter_stack != HB_NONE)
        gout = run_again(lo, pl, gout);
    if (pl->layer_stack != HB_NONE)
        hb_emit_mark(lo, "layer inputs out of their stack", pl->layer_stack, HB_NONE);
    /* An iteration whose own input is not saved selects it again from state and microbatches
     * (PPc/pipe_iter_remat: + the stack of inputs; pr85/pp8/iter_save=: + 2.15 GB). */
    if (pl->iter_stack != HB_NONE && !(lo->spec->pipeline.iteration_save & 1u << HB_TN_ITER_IN))
        hb_emit_mark(lo, "select microbatch or state again", pl->inputs, HB_NONE);
    recompute_stage(pl);
    if (pl->iter_stack == HB_NONE)
        gout = gather_outputs(lo, pl, gout);
    uint32_t g = state_temp(lo, pl, "gradient of the iteration's output");
    struct hb_emit e = {.name = "add gradient of the output", .kind = HB_OP_ELEMENTWISE};
    hb_emit_read(&e, state);
    bool gone = pl->groups[pl->count - 1].body.own_stacks;
    hb_emit_read(&e, gone ? padded : gout);
    hb_emit_write(&e, g);
    e.moved_bytes = 3.0 * (double)lo->p->bufs[g].bytes; /* two parts of an iteration, their sum */
    hb_emit(lo, &e);
    if (pl->groups[0].looped)
        own_grads(lo, pl, outer);
    g = stage_backward(lo, pl, g);
    add_grads(lo, outer);
    hb_emit_simple(lo, HB_OP_COPY, "gradient of the input into its stack", g, gin);
    hb_emit_collective(lo, HB_OP_PERMUTE, HB_AX_PIPELINE, "shift gradients back", g,
                       renewed(lo, "gradient of the state, moved", state));
    hb_program_close_loop(lo->p, loop);
    scatter_grads(lo, pl);
    return take_outputs(lo, gin, grad);
}
