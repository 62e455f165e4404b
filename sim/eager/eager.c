/* The driver of an eager framework's step: see eager.h.
 *
 * Weights over fsdp are gathered one layer ahead on their own stream, and again on the way back
 * unless they stay (torch FSDP: backward and forward prefetch of one); gradients of a layer are
 * summed while the next layer runs. Gradients over data go the same way in the last microbatch,
 * or by chunks in the last round of an interleaved schedule; ZeRO-1 gathers the new parameters
 * after the update.
 *
 * A pipeline's step lasts as long as its slowest stage: m microbatches of its own, and P - 1 chunks
 * of the others before its first and after its last (1F1B: Narayanan et al. 2021, section 2.2: a
 * bubble of P - 1 of m microbatches, divided by the chunks a stage when interleaved), or what the
 * ranks wait where weights' gradients fill some of it (clock.h). */
#include "sim/eager/eager.h"

#include <math.h>

#include "base/arena.h"
#include "base/size.h"
#include "models/params.h"
#include "models/schema.h"
#include "sim/eager/clock.h"
#include "sim/eager/eager_layer.h"
#include "sim/eager/eager_sent.h"

/* Layers of one kind on the stage, by whether `remat` applies to them. */
struct part {
    const struct hb_block *block;
    struct hb_eager_layer *layers; /* of a unit, with remat and then without */
    int64_t trips[2];              /* units with, without */
    double weights;                /* of a unit on this device, gathered */
    double experts;                /* of them in experts */
};

struct stage {
    struct part *parts;
    int part_count;
    bool head;
    int64_t fill; /* layers that others run while this stage waits */
};

/* --- sizes --- */

static double axis_ways(const struct hb_eager *e, enum hb_axis axis)
{
    return (double)hb_eager_ways(e, axis);
}

static int64_t microbatches(const struct hb_spec *s)
{
    int64_t m = s->batch.accumulate;
    return s->mesh[HB_AX_PIPELINE] > 1 ? hb_mul_sat(m, s->pipeline.microbatches) : m;
}

static void init_sizes(struct hb_eager *e)
{
    const struct hb_spec *s = e->spec;
    double ways = axis_ways(e, HB_AX_DATA) * axis_ways(e, HB_AX_FSDP) * axis_ways(e, HB_AX_EXPERT);
    e->batch = (double)s->batch.global / ways / (double)microbatches(s);
    e->seq = (double)s->batch.seq / axis_ways(e, HB_AX_SEQUENCE);
    e->tokens = e->batch * e->seq;
    e->resid_tokens = e->tokens;
    if (s->sharding.residual_over_tensor)
        e->resid_tokens /= axis_ways(e, HB_AX_TENSOR);
    e->fused = s->runtime.compile || s->runtime.framework == HB_FW_MEGATRON;
}

static double dense_weights(const struct hb_eager *e, const struct hb_block *b)
{
    const struct hb_model *m = &e->spec->model;
    int64_t split = hb_add_sat(hb_params_attention(m, b), hb_params_mlp(m, b));
    int64_t whole = hb_add_sat(hb_params_router(m, b), hb_params_norms(m, b));
    return (double)split / axis_ways(e, HB_AX_TENSOR) + (double)whole;
}

static double expert_weights(const struct hb_eager *e, const struct hb_block *b)
{
    double all = (double)b->moe.experts * (double)hb_params_expert(&e->spec->model, b);
    return all / (axis_ways(e, HB_AX_EXPERT) * axis_ways(e, HB_AX_TENSOR));
}

static double table_weights(const struct hb_eager *e)
{
    double ways = e->spec->sharding.vocab_over_tensor ? axis_ways(e, HB_AX_TENSOR) : 1;
    return (double)e->spec->model.vocab * (double)e->spec->model.d_model / ways;
}

/* --- the stage --- */

static int64_t overlap(int64_t a, int64_t a_end, int64_t b, int64_t b_end)
{
    int64_t low = a > b ? a : b, high = a_end < b_end ? a_end : b_end;
    return high > low ? high - low : 0;
}

/* Layers of a block, which is that of the layers from first on, that a rank holds. */
static int64_t rank_layers(const struct hb_spec *s, int64_t rank, int64_t first,
                           const struct hb_block *b)
{
    struct hb_pipeline p = hb_pipeline_of(s);
    int64_t sum = 0;
    if (p.ranks <= 1)
        return b->repeat;
    for (int64_t k = 0; k < p.chunks; k++) {
        int64_t stage = hb_pipeline_stage(&p, rank, k);
        sum += overlap(hb_stage_start(s, stage), hb_stage_start(s, stage + 1), first,
                       hb_add_sat(first, b->repeat));
    }
    return sum;
}

static struct hb_piece head_piece(const struct hb_eager *e)
{
    double vocab = (double)e->spec->model.vocab, d = (double)e->spec->model.d_model;
    if (e->spec->sharding.vocab_over_tensor)
        vocab /= axis_ways(e, HB_AX_TENSOR);
    return (struct hb_piece){.name = "logits",
                             .kind = HB_OP_MATMUL,
                             .flops = 2 * e->tokens * vocab * d,
                             .rows = e->tokens,
                             .cols = vocab,
                             .depth = d,
                             .batch = 1,
                             .bytes = 2 * (e->tokens * d + vocab * d + e->tokens * vocab),
                             .back_bytes = 2 * (e->tokens * d + vocab * d + e->tokens * vocab),
                             .dtype = e->spec->precision.compute};
}

static void build_part(struct hb_eager *e, struct part *part, const struct hb_block *b,
                       int64_t layers)
{
    int64_t units = hb_div_up(layers, b->unit), every = e->spec->remat.every;
    bool remat = hb_eager_remat(e, b).policy != HB_POLICY_NONE;
    *part = (struct part){.block = b};
    part->trips[0] = remat ? units / every : 0;
    part->trips[1] = units - part->trips[0];
    part->layers = hb_arena_alloc(e->arena, (size_t)b->unit * 2, sizeof *part->layers);
    for (int64_t i = 0; i < b->unit; i++) {
        hb_eager_layer_build(e, b, i, true, &part->layers[i]);
        hb_eager_layer_build(e, b, i, false, &part->layers[b->unit + i]);
    }
    part->experts = (double)b->unit * expert_weights(e, b);
    part->weights = (double)b->unit * dense_weights(e, b) + part->experts;
}

static double rank_flops(struct hb_eager *e, int64_t rank)
{
    const struct hb_spec *s = e->spec;
    struct hb_pipeline p = hb_pipeline_of(s);
    bool head = rank == hb_pipeline_rank(&p, p.ranks * p.chunks - 1);
    double sum = head ? head_piece(e).flops : 0;
    int64_t first = 0;
    for (int i = 0; i < s->model.block_count; i++) {
        struct hb_eager_layer layer;
        const struct hb_block *b = &s->model.blocks[i];
        hb_eager_layer_build(e, b, 0, false, &layer);
        sum += hb_eager_layer_flops(&layer) * (double)rank_layers(s, rank, first, b);
        first = hb_add_sat(first, b->repeat);
    }
    return sum;
}

static int64_t slowest_rank(struct hb_eager *e)
{
    int64_t slowest = 0;
    double most = 0;
    for (int64_t r = 0; r < hb_eager_ways(e, HB_AX_PIPELINE); r++) {
        double flops = rank_flops(e, r);
        if (flops >= most) {
            most = flops;
            slowest = r;
        }
    }
    return slowest;
}

static int64_t count_weights(const struct hb_block *b)
{
    enum { PRODUCTS = 7, NORMS = 2, HEAD_NORMS = 2 };
    return PRODUCTS + NORMS + (b->attention.qk_norm != HB_QKN_NONE ? HEAD_NORMS : 0);
}

static bool is_parted(const struct hb_spec *s)
{
    return s->mesh[HB_AX_PIPELINE] > 1 && hb_schedule_parts(s->pipeline.schedule);
}

/* DualPipeV parts a pass here and there alone. */
static bool parts_all(const struct hb_spec *s)
{
    return is_parted(s) && s->pipeline.schedule != HB_SCHED_DUALPIPE_V;
}

/* Times that torch runs a layer again for the gradients of its weights, whose pass is parted from
 * its input's: once for each (sim/eager/titan_pipe.c). The first stage parts nothing. */
static int64_t runs_again(const struct hb_eager *e, const struct hb_block *b, bool remat)
{
    bool full = remat && b->remat.policy == HB_POLICY_FULL;
    bool titan = e->spec->runtime.framework == HB_FW_TORCHTITAN;
    return full && titan && is_parted(e->spec) ? count_weights(b) : 0;
}

/* Chunks' passes, both ways, that a rank waits for: P - 1 where a pass backwards is whole (1F1B:
 * Narayanan et al. 2021, section 2.2), else as the ranks' own orders have it. */
static double waited_chunks(struct hb_eager *e)
{
    const struct hb_spec *s = e->spec;
    const struct hb_block *b = &s->model.blocks[0];
    struct hb_pipeline p = hb_pipeline_of(s);
    struct hb_pass_times t = {1, 1, 1, 0};
    if (!is_parted(s))
        return (double)(p.ranks - 1);
    if (b->remat.policy == HB_POLICY_FULL)
        t.input++;
    t.again = runs_again(e, b, true);
    p.microbatches = microbatches(s);
    struct hb_arena_mark mark = hb_arena_mark(e->arena);
    int64_t bubble = hb_pipeline_bubble(e->arena, &p, t);
    hb_arena_rewind(e->arena, mark);
    if (bubble < 0)
        return (double)(p.ranks - 1);
    if (parts_all(s))
        bubble -= hb_mul_sat(hb_mul_sat(p.chunks, p.microbatches), t.again);
    return (double)bubble / (double)(t.forward + t.input + t.weight);
}

static void build_stage(struct hb_eager *e, struct stage *stage)
{
    const struct hb_spec *s = e->spec;
    int64_t rank = slowest_rank(e), ranks = s->mesh[HB_AX_PIPELINE], first = 0;
    struct hb_pipeline p = hb_pipeline_of(s);
    *stage = (struct stage){.head = rank == hb_pipeline_rank(&p, p.ranks * p.chunks - 1),
                            .part_count = s->model.block_count};
    stage->parts = hb_arena_alloc(e->arena, (size_t)stage->part_count, sizeof *stage->parts);
    for (int i = 0; i < stage->part_count; i++) {
        const struct hb_block *b = &s->model.blocks[i];
        build_part(e, &stage->parts[i], b, rank_layers(s, rank, first, b));
        first = hb_add_sat(first, b->repeat);
    }
    double chunk = (double)first / (double)(ranks * s->pipeline.repeats);
    stage->fill = (int64_t)llround(waited_chunks(e) * chunk);
}

/* --- a microbatch --- */

static void back_layer(struct hb_eager *e, const struct part *p, int kind, int64_t at)
{
    const struct hb_eager_layer *l = &p->layers[kind * p->block->unit + at];
    hb_eager_layer_backward(e, l);
    int64_t again = parts_all(e->spec) ? runs_again(e, p->block, kind == 0) : 0;
    for (int64_t i = 0; i < again; i++)
        hb_eager_layer_forward(e, l);
}

/* Over all of the stage's layers, or over one of the chunks that they lie in. */
struct pass {
    bool backward;
    bool last; /* of the microbatches: copies' gradients are summed, updates gathered */
    int64_t chunk, chunks;
};

static int64_t trips_of(const struct part *p, int kind, struct pass pass)
{
    int64_t end = hb_mul_sat(p->trips[kind], pass.chunk + 1) / pass.chunks;
    return end - hb_mul_sat(p->trips[kind], pass.chunk) / pass.chunks;
}

static void run_part(struct hb_eager *e, const struct part *p, int kind, struct pass pass)
{
    int64_t unit = p->block->unit, trips = trips_of(p, kind, pass);
    const struct hb_eager_layer *layers = p->layers + kind * unit;
    if (!trips)
        return;
    bool gathers = !pass.backward || e->spec->sharding.reshard_after_forward;
    bool updates = !pass.backward && pass.last && hb_eager_updates_ahead(e);
    struct hb_eager_held held = {p->weights - p->experts, p->experts};
    if (gathers)
        hb_eager_gather_weights(e, held);
    if (updates)
        hb_eager_gather_updates(e, held, HB_NONE, e->updates);
    uint32_t loop = hb_program_open_loop(e->p, p->block->name, trips);
    if (gathers)
        hb_eager_take_weights(e, held);
    if (gathers)
        hb_eager_gather_weights(e, held);
    if (updates) {
        hb_eager_wait_for_updates(e);
        hb_eager_gather_updates(e, held, HB_NONE, e->updates);
    }
    for (int64_t i = 0; i < unit; i++) {
        if (pass.backward)
            back_layer(e, p, kind, unit - 1 - i);
        else
            hb_eager_layer_forward(e, &layers[i]);
    }
    if (pass.backward)
        hb_eager_sum_gradients(e, held, pass.last);
    hb_program_close_loop(e->p, loop);
}

static void run_parts(struct hb_eager *e, const struct stage *stage, struct pass pass)
{
    e->phase = pass.backward ? HB_PHASE_BACKWARD : HB_PHASE_FORWARD;
    for (int i = 0; i < stage->part_count; i++) {
        const struct part *p = &stage->parts[pass.backward ? stage->part_count - 1 - i : i];
        run_part(e, p, pass.backward, pass);
        run_part(e, p, !pass.backward, pass);
    }
}

/* Chunks' gradients of the head are added up (4+4+4), each converted first (2+4), where they are
 * reduced in f32 (FSDP2: to_accumulated_grad_if_needed), else in bf16 (2+2+2). */
static double chunk_traffic(const struct hb_eager *e)
{
    double n = (double)e->spec->loss.chunks;
    return hb_eager_has_fsdp(e) && hb_eager_grad_bytes(e->spec) > 2 ? 6 * n + 12 * (n - 1)
                                                                    : 6 * (n - 1);
}

static void run_head(struct hb_eager *e)
{
    struct hb_piece head = head_piece(e);
    e->phase = HB_PHASE_LOSS;
    hb_eager_piece(e, &head, false);
    hb_eager_emit(
        e,
        (struct hb_op){.name = "loss and its gradient",
                       .kind = HB_OP_ELEMENTWISE,
                       .moved_bytes = head.rows * head.cols * hb_eager_loss_bytes(&e->spec->loss)},
        HB_NONE, HB_NONE);
    hb_eager_piece(e, &head, true);
    if (e->spec->loss.chunks > 1)
        hb_eager_emit(e,
                      (struct hb_op){.name = "add up gradients of the head",
                                     .kind = HB_OP_ELEMENTWISE,
                                     .moved_bytes = table_weights(e) * chunk_traffic(e)},
                      HB_NONE, HB_NONE);
}

/* Embedding and head that the stage holds. */
static double held_tables(const struct hb_eager *e, const struct stage *stage)
{
    bool both = !e->spec->model.tied_embeddings && axis_ways(e, HB_AX_PIPELINE) <= 1;
    return (stage->head + both) * table_weights(e);
}

static void look_up(struct hb_eager *e, const char *name, double table)
{
    double rows = 4 * e->tokens * (double)e->spec->model.d_model;
    hb_eager_emit(e,
                  (struct hb_op){.name = name, .kind = HB_OP_GATHER, .moved_bytes = rows + table},
                  e->weights, HB_NONE);
}

/* Forwards alone: its logits by the temperature (2+2), and their log-softmax (2+2). */
static void run_reference(struct hb_eager *e, const struct stage *stage, double tables)
{
    struct hb_piece head = head_piece(e);
    hb_eager_gather_tables(e, tables);
    look_up(e, "look up embedding", 0);
    run_parts(e, stage, (struct pass){.chunks = 1});
    hb_eager_piece(e, &head, false);
    hb_eager_emit(e,
                  (struct hb_op){.name = "log-probabilities of the reference",
                                 .kind = HB_OP_ELEMENTWISE,
                                 .moved_bytes = head.rows * head.cols * 8},
                  HB_NONE, HB_NONE);
}

/* head: with logits and their loss. */
static void run_model(struct hb_eager *e, const struct stage *stage, double tables, bool head,
                      bool last)
{
    hb_eager_gather_tables(e, tables);
    if (last && hb_eager_updates_ahead(e))
        hb_eager_gather_updates(e, (struct hb_eager_held){tables, 0}, HB_NONE, e->updates);
    look_up(e, "look up embedding", 0);
    run_parts(e, stage, (struct pass){.last = last, .chunks = 1});
    hb_eager_pass_on(e);
    if (head)
        run_head(e);
    run_parts(e, stage, (struct pass){.backward = true, .last = last, .chunks = 1});
    if (axis_ways(e, HB_AX_PIPELINE) <= 1)
        look_up(e, "gradient of the embedding", 2 * table_weights(e));
    hb_eager_sum_gradients(e, (struct hb_eager_held){tables, 0}, last);
    hb_eager_pass_on(e);
}

static bool has_value(const struct hb_spec *s)
{
    return s->loss.kind == HB_LOSS_GRPO && s->loss.value;
}

static void run_microbatch(struct hb_eager *e, const struct stage *stage, bool last)
{
    double tables = held_tables(e, stage);
    e->phase = HB_PHASE_FORWARD;
    if (has_value(e->spec))
        run_model(e, stage, tables - table_weights(e), false, last);
    e->phase = HB_PHASE_FORWARD;
    if (e->spec->loss.kind == HB_LOSS_GRPO && e->spec->loss.reference)
        run_reference(e, stage, tables);
    run_model(e, stage, tables, stage->head, last);
}

/* --- rounds of an interleaved schedule --- */

static struct hb_eager_held held_layers(const struct stage *stage, struct pass pass)
{
    struct hb_eager_held h = {0, 0};
    for (int i = 0; i < stage->part_count; i++) {
        const struct part *p = &stage->parts[i];
        double units = (double)(trips_of(p, 0, pass) + trips_of(p, 1, pass));
        h.dense += units * (p->weights - p->experts);
        h.experts += units * p->experts;
    }
    return h;
}

/* Megatron's ranks run as many microbatches through a chunk as there are ranks, then the next
 * chunk (core/pipeline_parallel/schedules.py, get_schedule_table). A chunk's gradients are summed
 * from the end of its last microbatch on, beside the chunks after it (there, grad_sync_func), and
 * its parameters are gathered beside the chunk before it (param_sync_func). */
static bool runs_rounds(const struct hb_spec *s)
{
    return s->runtime.framework == HB_FW_MEGATRON && s->sharding.optimizer_over_data &&
           s->pipeline.schedule == HB_SCHED_INTERLEAVED && s->mesh[HB_AX_PIPELINE] > 1 &&
           s->pipeline.repeats > 1;
}

static void run_chunk(struct hb_eager *e, const struct stage *stage, struct pass pass,
                      int64_t group)
{
    struct hb_eager_held held = held_layers(stage, pass);
    if (!(held.dense + held.experts > 0))
        return;
    uint32_t loop = hb_program_open_loop(e->p, "microbatches of a chunk", group);
    run_parts(e, stage, pass);
    hb_program_close_loop(e->p, loop);
}

/* The ends of a microbatch, which the first or the last stage has. */
static void run_ends(struct hb_eager *e, const struct stage *stage, int64_t group)
{
    uint32_t loop = hb_program_open_loop(e->p, "ends of the pipeline", group);
    look_up(e, "look up embedding", 0);
    hb_eager_pass_on(e);
    if (stage->head)
        run_head(e);
    hb_eager_pass_on(e);
    hb_program_close_loop(e->p, loop);
}

static void run_rounds(struct hb_eager *e, const struct stage *stage, int64_t group)
{
    struct hb_eager_held tables = {held_tables(e, stage), 0};
    struct pass pass = {.chunks = e->spec->pipeline.repeats};
    e->phase = HB_PHASE_FORWARD;
    hb_eager_gather_updates(e, tables, HB_NONE, e->updates);
    hb_eager_gather_updates(e, held_layers(stage, pass), HB_NONE, e->updates);
    while (pass.chunk < pass.chunks) {
        struct pass here = pass;
        hb_eager_wait_for_updates(e);
        if (++pass.chunk < pass.chunks)
            hb_eager_gather_updates(e, held_layers(stage, pass), HB_NONE, e->updates);
        run_chunk(e, stage, here, group);
    }
    run_ends(e, stage, group);
    pass.backward = true;
    while (pass.chunk-- > 0) {
        run_chunk(e, stage, pass, group);
        hb_eager_sum_copies(e, held_layers(stage, pass));
    }
    hb_eager_sum_copies(e, tables);
}

/* --- the step --- */

static const struct part *largest_part(const struct stage *stage)
{
    const struct part *best = &stage->parts[0];
    for (int i = 1; i < stage->part_count; i++)
        if (stage->parts[i].trips[0] + stage->parts[i].trips[1] > best->trips[0] + best->trips[1])
            best = &stage->parts[i];
    return best;
}

/* Waits for chunks of the other stages. */
static void run_fill(struct hb_eager *e, const struct stage *stage)
{
    const struct part *p = largest_part(stage);
    int64_t units = hb_div_up(stage->fill, p->block->unit);
    if (!units)
        return;
    uint32_t loop = hb_program_open_loop(e->p, "pipeline fills and drains", units);
    e->phase = HB_PHASE_SETUP;
    const struct hb_eager_layer *layers = p->trips[0] ? p->layers : p->layers + p->block->unit;
    for (int64_t i = 0; i < p->block->unit; i++) {
        hb_eager_layer_forward(e, &layers[i]);
        hb_eager_layer_backward(e, &layers[i]);
    }
    hb_program_close_loop(e->p, loop);
}

static void turn_momentum(struct hb_eager *e, const struct stage *stage)
{
    int64_t d = e->spec->model.d_model;
    double flops = 0;
    for (int i = 0; i < stage->part_count; i++) {
        const struct part *p = &stage->parts[i];
        double layers = (double)((p->trips[0] + p->trips[1]) * p->block->unit);
        flops += layers * hb_eager_muon_flops(e->spec, p->block);
    }
    hb_eager_emit(e,
                  (struct hb_op){.name = "turn momentum",
                                 .kind = HB_OP_MATMUL,
                                 .dtype = HB_DT_BF16,
                                 .flops = flops,
                                 .rows = d,
                                 .cols = d,
                                 .depth = d,
                                 .batch = 1},
                  e->sums, HB_NONE);
}

static void update(struct hb_eager *e, const struct stage *stage)
{
    const struct hb_sharding *s = &e->spec->sharding;
    struct hb_eager_held h = held_layers(stage, (struct pass){.chunks = 1});
    h.dense += held_tables(e, stage);
    if (has_value(e->spec))
        h.dense += h.dense - table_weights(e);
    double dense = h.dense / hb_eager_split_ways(e, false);
    double experts = h.experts / hb_eager_split_ways(e, true);
    double own = dense + experts;
    /* Megatron zeroes its buffer whole (core/distributed/param_and_grad_buffer.py, reset). */
    double zeroed =
        e->spec->runtime.framework == HB_FW_MEGATRON ? own * hb_eager_grad_bytes(e->spec) : 0;
    if (s->optimizer_over_data)
        own = dense / hb_eager_copy_ways(e, false) + experts / hb_eager_copy_ways(e, true);
    e->phase = HB_PHASE_OPTIMIZER;
    if (hb_eager_sums_late(e))
        hb_eager_sum_copies(e, h);
    hb_eager_emit(e,
                  (struct hb_op){.name = "update",
                                 .kind = HB_OP_ELEMENTWISE,
                                 .moved_bytes = own * hb_eager_update_bytes(e->spec) + zeroed},
                  e->sums, HB_NONE);
    if (e->spec->optimizer.name == HB_OPT_MUON && hb_eager_has_rule(e->spec))
        turn_momentum(e, stage);
    if (s->optimizer_over_data && !hb_eager_updates_ahead(e))
        hb_eager_gather_updates(e, h, e->x, e->x);
}

static uint32_t add_buf(struct hb_eager *e, const char *name)
{
    struct hb_buf buf = {.name = name, .why = "", .alias_of = HB_NONE, .dtype = HB_DT_BF16};
    uint32_t b = hb_program_add_buf(e->p, buf);
    hb_program_add_op(e->p, (struct hb_op){.name = "start", .kind = HB_OP_MARK, .start = HB_NONE});
    hb_program_write(e->p, b);
    return b;
}

static void run_step(struct hb_eager *e, const struct stage *stage)
{
    int64_t count = microbatches(e->spec);
    int64_t ranks = e->spec->mesh[HB_AX_PIPELINE];
    int64_t apart = hb_eager_copy_ways(e, false) > 1;
    bool rounds = apart && runs_rounds(e->spec);
    if (rounds)
        apart = ranks < count ? ranks : count;
    run_fill(e, stage);
    if (count - apart > 0) {
        uint32_t loop = hb_program_open_loop(e->p, "microbatches", count - apart);
        run_microbatch(e, stage, false);
        hb_program_close_loop(e->p, loop);
    }
    if (rounds)
        run_rounds(e, stage, apart);
    else if (apart)
        run_microbatch(e, stage, true);
    update(e, stage);
}

/* Eager models with learned positions under FSDP are MosaicML's MPT, whose speeds were taken with
 * the kernel in Triton (llm-foundry, train/benchmarking/submit_benchmarks.py: attn_impl). */
static enum hb_flash_kernel pick_flash(const struct hb_spec *s)
{
    if (s->runtime.framework == HB_FW_MEGATRON)
        return HB_FLASH_LIBRARY;
    bool mpt = s->model.positions > 0 && s->mesh[HB_AX_FSDP] > 1;
    return mpt && !s->runtime.compile ? HB_FLASH_TRITON : HB_FLASH_TORCH;
}

void hb_eager_lower(struct hb_arena *arena, const struct hb_spec *spec, struct hb_program *out)
{
    struct hb_eager e = {.arena = arena, .spec = spec, .p = out};
    struct stage stage;
    hb_program_init(out, arena, spec->model.name, spec->compiler);
    for (int i = 0; i < HB_AX_COUNT; i++)
        out->mesh[i] = spec->mesh[i];
    out->flash = pick_flash(spec);
    e.x = add_buf(&e, "activations");
    e.weights = add_buf(&e, "gathered weights");
    e.grads = add_buf(&e, "gradients of a layer");
    e.sums = add_buf(&e, "summed gradients");
    e.keys = add_buf(&e, "what goes beside the kernels");
    e.updates = add_buf(&e, "updated parameters");
    init_sizes(&e);
    build_stage(&e, &stage);
    run_step(&e, &stage);
}
