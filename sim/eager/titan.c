/* See titan.h. */
#include "sim/eager/titan.h"

#include "base/arena.h"
#include "base/size.h"
#include "models/params.h"
#include "sim/eager/knapsack.h"
#include "sim/eager/memory.h"
#include "sim/eager/short.h"
#include "sim/eager/titan_parts.h"

/* --- a short program --- */

/* What the layers left out hold between their forward and their backward pass. */
static int64_t left_out_rest(const struct hb_titan *e)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < e->layer_count; i++)
        sum = hb_add_sat(sum, hb_mul_sat(e->layers[i].left_out, e->layers[i].rest_bytes));
    return sum;
}

/* rest: the layers left out have run forwards; grads: they have run backwards, too. */
void hb_titan_mark(struct hb_titan *e, bool rest, bool grads)
{
    int64_t more = grads ? e->left_out_grad_bytes : 0; /* plain ones are the default stream's */
    if (e->cut)
        hb_short_mark(e->cut, e->t,
                      hb_add_sat(rest ? left_out_rest(e) : 0, e->fsdp.plain ? more : 0),
                      e->fsdp.plain ? 0 : more);
}

/* --- the step --- */

static void free_gradients(struct hb_titan *e)
{
    struct hb_unit *ends[] = {&e->first, &e->last, &e->root, &e->norm_alone, &e->head_alone};
    enum { ENDS = sizeof ends / sizeof ends[0] };
    for (int64_t i = 0; i < e->layer_count + ENDS; i++)
        for (struct hb_unit *u = i < ENDS ? ends[i] : &e->layers[i - ENDS].unit; u; u = u->more) {
            hb_tape_drop(e->t, u->sharded);
            u->sharded = HB_NONE;
            for (int w = 0; e->fsdp.plain && w < u->count; w++) {
                hb_tape_drop(e->t, u->weights[w].grad);
                u->weights[w].grad = HB_NONE;
            }
        }
}

/* Its context is that of the model's pass forwards with its loss. */
static void end_autocast(struct hb_titan *e)
{
    for (int64_t i = 0; i < e->layer_count; i++)
        hb_titan_forget_copies(&e->layers[i]);
    for (int i = 0; i < e->end_count; i++)
        hb_ops_forget_copy(e->t, &e->end_weights[i]);
}

static void run_microbatch(struct hb_titan *e)
{
    struct hb_tape *t = e->t;
    uint32_t tokens =
        hb_tape_make(t, (struct hb_made){"zeros", "tokens", 8 * e->tokens, HB_CAT_INPUTS, 0});
    uint32_t labels =
        hb_tape_make(t, (struct hb_made){"zeros", "labels", 8 * e->tokens, HB_CAT_INPUTS, 0});
    if (e->fsdp.flat && e->microbatch == 0)
        free_gradients(e); /* the step before has only let go of them */
    hb_titan_begin_zero(e);
    t->phase = HB_PHASE_FORWARD;
    if (e->grpo && e->spec->loss.reference)
        hb_titan_run_reference(e);
    t->grad = true;
    if (e->has_root)
        hb_fsdp_before_forward(&e->fsdp, &e->root);
    uint32_t x = hb_titan_embed(e);
    for (int64_t i = 0; i < e->layer_count; i++)
        x = hb_titan_run_layer(&e->layers[i], x);
    hb_titan_head(e, x);
    hb_titan_loss(e);
    end_autocast(e);
    hb_titan_back_loss(e);
    hb_tape_back(t, 0);
    t->where = "";
    hb_fsdp_after_backward(&e->fsdp, e->has_root ? &e->root : &e->first);
    hb_fsdp_backward_end(&e->fsdp);
    hb_titan_close_bucket(e);
    hb_tape_drop(t, tokens);
    hb_tape_drop(t, labels);
    t->value_count = 0;
}

int hb_titan_weight_count(const struct hb_titan_layer *l)
{
    return l->unit.count + (l->unit.more ? l->experts.count : 0);
}

const struct hb_weight *hb_titan_weight_at(const struct hb_titan_layer *l, int at)
{
    return at < l->unit.count ? &l->weights[at] : &l->expert_weights[at - l->unit.count];
}

static bool is_tied(const struct hb_titan *e)
{
    return e->spec->model.tied_embeddings;
}

void hb_titan_each_weight(struct hb_titan *e,
                          void (*visit)(struct hb_titan *, const struct hb_weight *))
{
    for (const struct hb_weight *w = e->end_weights; e->embeds && w < e->norm; w++)
        visit(e, w);
    for (int64_t i = 0; i < e->layer_count; i++) {
        e->t->where = e->layers[i].unit.where;
        for (int w = 0; w < hb_titan_weight_count(&e->layers[i]); w++)
            visit(e, hb_titan_weight_at(&e->layers[i], w));
    }
    e->t->where = "";
    for (const struct hb_weight *w = e->norm; e->heads && w < e->head + !is_tied(e); w++)
        visit(e, w);
}

static void add_param(struct hb_titan *e, const struct hb_weight *w)
{
    int64_t bytes = hb_titan_shard_bytes(e, w, e->fsdp.param_bytes);
    if (!e->fsdp.on_host && bytes)
        hb_tape_argument(e->t, e->fsdp.flat ? "parameters in one" : w->name, bytes, HB_CAT_PARAMS);
}

/* Elements of the weights of a layer on the rank. */
static int64_t part_count(struct hb_titan *e, const struct hb_titan_layer *l)
{
    int64_t sum = 0;
    for (int w = 0; w < hb_titan_weight_count(l); w++)
        sum = hb_add_sat(sum, hb_titan_shard_bytes(e, hb_titan_weight_at(l, w), 1));
    return sum;
}

/* Elements of the layers that are not run. */
static int64_t left_out_count(struct hb_titan *e)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < e->layer_count; i++)
        sum = hb_add_sat(
            sum, hb_tape_size(e->t, part_count(e, &e->layers[i]), e->layers[i].left_out, 1));
    return sum;
}

int64_t hb_titan_elements(struct hb_titan *e)
{
    int64_t elements = left_out_count(e);
    for (int i = 0; i < e->end_count - is_tied(e); i++)
        elements = hb_add_sat(elements, hb_titan_shard_bytes(e, &e->end_weights[i], 1));
    for (int64_t i = 0; i < e->layer_count; i++)
        elements = hb_add_sat(elements, part_count(e, &e->layers[i]));
    return elements;
}

/* DistributedDataParallel copies gradients into buckets to reduce them in: of 25 MiB or more, made
 * once, of the parameters from the last to the first; the last made has 1 MiB
 * (torch/csrc/distributed/c10d/reducer.cpp, gradient_as_bucket_view false). Together they are as
 * large as the gradients. */
static void add_buckets(struct hb_titan *e)
{
    enum { BUCKET_BYTES = 25 << 20 };
    int64_t bytes = hb_tape_size(e->t, hb_titan_elements(e), e->fsdp.reduce_bytes, 1);
    for (int64_t left = bytes; left > 0; left -= BUCKET_BYTES)
        hb_tape_argument(e->t, "DDP's bucket", left < BUCKET_BYTES ? left : BUCKET_BYTES,
                         HB_CAT_COMMUNICATION);
}

static void add_all_params(struct hb_titan *e)
{
    int64_t more = left_out_count(e);
    if (!e->zero3)
        hb_titan_each_weight(e, add_param);
    if (e->zero)
        hb_titan_add_zero(e);
    else if (e->fsdp.plain && e->spec->mesh[HB_AX_DATA] > 1)
        add_buckets(e);
    e->left_out_grad_bytes =
        hb_tape_size(e->t, more, e->spec->optimizer.in_backward ? 0 : e->fsdp.grad_bytes, 1);
    if (e->zero) /* they leave at once, or after the last microbatch: nothing is said */
        e->left_out_grad_bytes = 0;
    if (e->fsdp.replicas && e->fsdp.reduce_bytes != e->fsdp.grad_bytes)
        e->left_out_grad_bytes = 0; /* in a pool of their own: nothing is said */
    if (e->fsdp.on_host)
        e->left_out_grad_bytes = 0;
    else if (more)
        hb_tape_argument(e->t, "weights of other layers",
                         hb_tape_size(e->t, more, e->fsdp.param_bytes, 1), HB_CAT_PARAMS);
}

/* torchtitan/distributed/cudagraph.py: the first step's passes run on a stream of their own, then
 * torch.cuda.graph gives back what is cached and the second step's are captured, all streams of
 * theirs in the graph's private pool, which keeps what it took for the replays. The update between
 * is the default stream's, and zero_grad leaves gradients where they are, as a replay adds to them.
 */
static void enter_graph(struct hb_titan *e, bool first)
{
    enum { WARM_POOLS = 16, GRAPH_POOLS = 32 };
    if (!e->spec->runtime.cuda_graphs)
        return;
    if (!first)
        hb_tape_release(e->t);
    e->t->first_pool = first ? WARM_POOLS : GRAPH_POOLS;
}

static void leave_graph(struct hb_titan *e)
{
    e->t->first_pool = 0;
}

static void run_step(struct hb_titan *e, bool first)
{
    if (e->value)
        run_step(e->value, first);
    /* The third microbatch allocates as the second does. */
    int64_t count = e->spec->batch.accumulate < 3 ? e->spec->batch.accumulate : 3;
    e->first_step = first;
    enter_graph(e, first);
    for (e->microbatch = 0; e->microbatch < count; e->microbatch++) {
        hb_titan_mark(e, false, e->microbatch > 0);
        if (e->stages)
            hb_titan_run_pipeline(e);
        else
            run_microbatch(e);
    }
    leave_graph(e);
    e->t->phase = HB_PHASE_OPTIMIZER;
    if (e->zero)
        hb_titan_update_zero(e, first);
    else
        hb_titan_update(e);
    if (e->fsdp.plain && e->ways > 1 && e->embeds)
        hb_titan_share_table(e);
    if (!(e->fsdp.flat || e->spec->runtime.cuda_graphs) || !first)
        free_gradients(e);
    hb_titan_mark(e, false, false);
}

/* --- building it --- */

static enum hb_titan_mode find_mode(const struct hb_titan *e, const struct hb_remat *r, int64_t at)
{
    if (r->policy == HB_POLICY_NONE || at % e->spec->remat.every != 0)
        return HB_TITAN_PLAIN;
    return hb_remat_list(r) ? HB_TITAN_OPS : HB_TITAN_FULL;
}

/* Of a short program those are run whose kind is new, and the last two; the others count at the
 * first of their kind. */
static bool is_run(struct hb_titan *e, const struct hb_titan_layer *l, int64_t all)
{
    if (!e->cut || l->at >= all - 2)
        return true;
    for (int64_t i = 0; i < e->layer_count; i++)
        if (e->layers[i].block == l->block && e->layers[i].mode == l->mode) {
            e->layers[i].left_out++;
            return false;
        }
    return true;
}

static void build_units(struct hb_titan *e, int64_t at)
{
    struct hb_titan_layer *l = &e->layers[at];
    l->unit = (struct hb_unit){
        .where = hb_arena_printf(e->t->arena, "%slayers[%lld].", e->name, (long long)l->at),
        .weights = l->weights,
        .keeps = !e->spec->sharding.reshard_after_forward,
        .gathered = HB_NONE,
        .sharded = HB_NONE,
        .summed = HB_NONE};
    l->before = at ? &e->layers[at - 1].unit : e->has_root ? NULL : &e->first;
    l->sends = l->block->moe.experts && hb_titan_expert_ways(e->spec) > 1;
    l->parted = l->block->moe.experts && e->ways > 1 && e->spec->sharding.expert_tensor != 1;
    hb_titan_add_weights(l);
    if (!l->sends)
        return;
    l->experts = l->unit;
    l->experts.weights = l->expert_weights;
    l->experts.count = hb_titan_expert_weights(&l->block->moe);
    l->unit.more = &l->experts;
}

/* With experts on other ranks the host waits for counts in each layer, so torchtitan issues the
 * next unit's gather by itself. */
static void look_ahead(struct hb_titan *e, const struct hb_titan_stage *s)
{
    if (s->embeds)
        e->first.ahead = &e->layers[s->first].unit;
    for (int64_t i = s->first; i < s->end; i++) {
        bool last = i == s->end - 1;
        struct hb_unit *end = e->has_root || !s->heads ? NULL : &e->last;
        e->layers[i].unit.ahead = last ? end : &e->layers[i + 1].unit;
    }
}

static void look_ahead_all(struct hb_titan *e)
{
    const struct hb_titan_stage whole = {.end = e->layer_count, .embeds = true, .heads = true};
    int64_t stages = e->stages ? e->pipeline.chunks : 1;
    bool sends = false;
    for (int64_t i = 0; i < e->layer_count; i++)
        sends = sends || e->layers[i].sends;
    for (int64_t k = 0; k < stages && sends; k++)
        look_ahead(e, e->stages ? &e->stages[k] : &whole);
}

static bool is_of_rank(const struct hb_titan *e, int64_t layer)
{
    for (int64_t k = 0; e->stages && k < e->pipeline.chunks; k++) {
        int64_t stage = e->stages[k].stage;
        if (layer >= hb_stage_start(e->spec, stage) && layer < hb_stage_start(e->spec, stage + 1))
            return true;
    }
    return !e->stages;
}

/* Weights of several microbatches' gradients, added up in what they are reduced in. */
static void defer_gradients(struct hb_titan *e)
{
    bool wide = e->fsdp.reduce_bytes > e->t->width;
    for (int i = 0; i < e->end_count; i++)
        e->end_weights[i].wide = wide;
    for (int64_t i = 0; i < e->layer_count; i++) {
        for (int w = 0; w < e->layers[i].unit.count; w++)
            e->layers[i].weights[w].wide = wide;
        for (int w = 0; w < HB_TITAN_EXPERT_WEIGHTS; w++)
            e->layers[i].expert_weights[w].wide = wide;
    }
}

/* The stages that the rank has. */
static void place_stages(struct hb_titan *e)
{
    struct hb_pipeline *p = &e->pipeline;
    int64_t at = 0, last = p->ranks * p->chunks - 1;
    e->embeds = e->heads = p->ranks == 1;
    if (p->ranks == 1)
        return;
    e->stages = hb_arena_alloc(e->t->arena, (size_t)p->chunks, sizeof *e->stages);
    for (int64_t k = 0; k < p->chunks; k++) {
        int64_t stage = hb_pipeline_stage(p, e->rank, k);
        int64_t count = hb_stage_start(e->spec, stage + 1) - hb_stage_start(e->spec, stage);
        e->stages[k] = (struct hb_titan_stage){.stage = stage,
                                               .first = at,
                                               .end = at + count,
                                               .embeds = !stage,
                                               .heads = stage == last};
        e->embeds = e->embeds || !stage;
        e->heads = e->heads || stage == last;
        at += count;
    }
}

/* A stage's first layer has no unit before it, but the embedding. */
static void part_stages(struct hb_titan *e)
{
    for (int64_t k = 0; e->stages && k < e->pipeline.chunks; k++)
        e->layers[e->stages[k].first].before = e->stages[k].embeds ? &e->first : NULL;
    if (e->stages)
        defer_gradients(e);
}

static void build_layers(struct hb_titan *e)
{
    const struct hb_model *m = &e->spec->model;
    int64_t all = 0, at = 0, own = 0;
    for (int i = 0; i < m->block_count; i++)
        all += m->blocks[i].repeat;
    for (int64_t i = 0; i < all; i++)
        own += is_of_rank(e, i);
    e->layers = hb_arena_raw(e->t->arena, (size_t)own, sizeof *e->layers);
    for (int i = 0; i < m->block_count; i++) {
        const struct hb_block *b = &m->blocks[i];
        struct hb_remat r = hb_knapsack_remat(e->t->arena, e->spec, b, e->tokens, e->t->width);
        for (int64_t k = 0; k < b->repeat; k++, at++) {
            struct hb_titan_layer l = {.e = e, .block = b, .at = at, .remat = r};
            l.mode = find_mode(e, &r, at);
            if (is_of_rank(e, at) && is_run(e, &l, all))
                e->layers[e->layer_count++] = l;
        }
    }
    for (int64_t i = 0; i < e->layer_count; i++)
        build_units(e, i);
    if (e->spec->runtime.wrap_root)
        e->layers[e->layer_count - 1].unit.keeps = true;
    look_ahead_all(e);
}

enum hb_norm hb_titan_last_norm(const struct hb_titan *e)
{
    return e->spec->model.blocks[e->spec->model.block_count - 1].norm;
}

static const char *named(const struct hb_titan *e, const char *weight)
{
    return *e->name ? hb_arena_printf(e->t->p->arena, "%s%s", e->name, weight) : weight;
}

/* The table, positions, the last norm and the head, which a tied one only has the place of. */
static void add_end(struct hb_titan *e, const char *name, int64_t rows, int64_t cols)
{
    e->end_weights[e->end_count++] = hb_ops_weight(named(e, name), rows, cols);
}

static void build_ends(struct hb_titan *e)
{
    const struct hb_model *m = &e->spec->model;
    int64_t d = m->d_model, vocab = m->vocab;
    if (e->spec->sharding.vocab_over_tensor)
        vocab = hb_div_up(vocab, e->ways);
    add_end(e, "embedding", vocab, d);
    if (m->positions)
        add_end(e, "positions", m->positions, d);
    e->norm = e->end_weights + e->end_count;
    add_end(e, "last norm", d, 1);
    if (hb_titan_last_norm(e) == HB_NORM_LAYER) {
        add_end(e, "bias of the last norm", d, 1);
        e->norm->bias = e->norm + 1;
    }
    e->head = e->end_weights + e->end_count;
    add_end(e, "head", vocab, d);
}

static void build_end_units(struct hb_titan *e)
{
    struct hb_unit none = {.where = "", .gathered = HB_NONE, .sharded = HB_NONE, .summed = HB_NONE};
    e->first = e->last = e->root = e->norm_alone = e->head_alone = none;
    e->by_chunk = e->spec->loss.chunks > 1 && !e->fsdp.plain;
    e->norm_alone.weights = e->norm;
    e->head_alone.weights = is_tied(e) ? e->end_weights : e->head;
    if (e->by_chunk)
        e->norm_alone.count = e->head_alone.count = 1;
    e->norm->unowed = e->by_chunk;
    if (e->has_root) {
        e->root.weights = e->end_weights;
        e->root.count = e->end_count - is_tied(e);
        e->root.keeps = true;
        return;
    }
    e->first.weights = e->end_weights;
    e->first.count = (int)(e->norm - e->end_weights);
    e->first.keeps = !e->spec->sharding.reshard_after_forward;
    e->last.weights = e->norm;
    e->last.count = e->end_count - e->first.count;
    e->last.keeps = true;
}

int64_t hb_titan_sequences(const struct hb_spec *s)
{
    int64_t copies = hb_mul_sat(s->mesh[HB_AX_DATA], s->mesh[HB_AX_FSDP]);
    int64_t parts = hb_mul_sat(hb_mul_sat(copies, s->mesh[HB_AX_EXPERT]), s->batch.accumulate);
    if (s->mesh[HB_AX_PIPELINE] > 1)
        parts = hb_mul_sat(parts, s->pipeline.microbatches);
    return hb_div_up(s->batch.global, parts);
}

static void set_sizes(struct hb_titan *e)
{
    const struct hb_spec *s = e->spec;
    e->ways = s->mesh[HB_AX_TENSOR];
    e->sequences = hb_titan_sequences(s);
    e->gather = (struct hb_gather){.ways = e->ways, .one = e->sequences == 1};
    e->tokens =
        hb_tape_size(e->t, e->sequences, hb_div_up(s->batch.seq, s->mesh[HB_AX_SEQUENCE]), 1);
    e->rows = hb_div_up(e->tokens, e->ways);
}

/* FSDP2 runs a parameter's hook on the stream that reduced the unit's gradients, so the states that
 * the first step's make are of its pool; the gradients go after the unit's last one
 * (foreach_reduce). */
static void update_unit(void *context, const struct hb_unit *u)
{
    struct hb_titan *e = context;
    const char *where = e->t->where;
    e->t->where = u->where;
    for (int i = 0; i < u->count && e->first_step; i++)
        hb_titan_add_states(e, &u->weights[i]);
    e->t->where = where;
}

/* The optimizer in the backward pass is a hook of each parameter's, which runs when its gradient is
 * whole: the head's after all chunks, one that two layers share after both. */
static void update_in_backward(struct hb_titan *e)
{
    if (!e->fsdp.plain) {
        e->fsdp.update = update_unit;
        e->fsdp.context = e;
        return;
    }
    for (int i = 0; i < e->end_count; i++)
        e->end_weights[i].updates = true;
    for (int64_t i = 0; i < e->layer_count; i++)
        for (int w = 0; w < e->layers[i].unit.count; w++)
            e->layers[i].weights[w].updates = true;
}

/* As torch.chunk cuts: of equal size but the last, and so perhaps fewer than asked for. */
static void build_chunks(struct hb_titan *e)
{
    int64_t each = hb_div_up(e->tokens, e->spec->loss.chunks);
    e->chunk_count = hb_div_up(e->tokens, each);
    e->chunks = hb_arena_alloc(e->t->arena, (size_t)e->chunk_count, sizeof *e->chunks);
    for (int64_t i = 0; i < e->chunk_count; i++) {
        int64_t before = hb_mul_sat(each, i);
        int64_t left = e->tokens > before ? e->tokens - before : 0;
        e->chunks[i].rows = left < each ? left : each;
        e->chunks[i].held = HB_NONE;
        if (e->grpo)
            e->chunks[i].by_sequence =
                hb_arena_alloc(e->t->arena, (size_t)e->sequences, sizeof *e->chunks[i].by_sequence);
    }
}

bool hb_titan_is_zero3(const struct hb_spec *spec)
{
    return spec->precision.master && spec->mesh[HB_AX_FSDP] > 1;
}

bool hb_titan_norms_fused(const struct hb_spec *spec)
{
    return spec->runtime.fused_norm && !spec->runtime.written_norm &&
           spec->runtime.framework != HB_FW_TORCHTUNE && spec->loss.kind != HB_LOSS_GRPO &&
           !hb_titan_is_zero3(spec);
}

/* Bytes of an element of what is reduced. */
static int64_t reduced_width(const struct hb_spec *spec)
{
    if (spec->precision.grads == HB_GRADS_PARAMS)
        return hb_dtype_bits(spec->precision.params) / 8;
    return spec->precision.grads == HB_GRADS_BF16 ? 2 : 4;
}

/* ZeRO-3 is no FSDP: its weights are gathered by module. */
static void share_states(struct hb_titan *e, bool zero3)
{
    const struct hb_spec *spec = e->spec;
    int64_t ranks = zero3 ? 1 : spec->mesh[HB_AX_FSDP] * spec->mesh[HB_AX_EXPERT];
    if (spec->sharding.states_over_sequence)
        ranks *= spec->mesh[HB_AX_SEQUENCE];
    e->fsdp = (struct hb_fsdp){.t = e->t,
                               .ranks = ranks,
                               .param_bytes = hb_dtype_bits(spec->precision.params) / 8,
                               .reduce_bytes = reduced_width(spec),
                               .kept_ranks = spec->sharding.reshard_ranks,
                               .on_host = !zero3 && spec->optimizer.params_offload != HB_PLACE_NONE,
                               .narrow = spec->precision.fp8_gather,
                               .grad_bytes = hb_dtype_bits(spec->precision.params) / 8,
                               .replicas = spec->mesh[HB_AX_DATA] > 1,
                               .last_gather = HB_NONE,
                               .last_reduced = {HB_NONE, HB_NONE}};
    e->fsdp.plain = ranks == 1;
    e->t->width = (uint8_t)(hb_dtype_bits(spec->precision.compute) / 8);
    e->t->written_norms = spec->runtime.written_norm;
    e->t->autocast = e->fsdp.plain && !zero3 && e->fsdp.param_bytes > e->t->width;
    e->stream_bytes = e->t->autocast ? e->fsdp.param_bytes : e->t->width;
}

/* All of it but what stands before the first op. */
static void build(struct hb_titan *e)
{
    const struct hb_spec *spec = e->spec;
    e->pipeline = hb_pipeline_of(spec);
    place_stages(e);
    bool zero3 = hb_titan_is_zero3(spec);
    for (int i = 0; i < HB_TITAN_UPDATE_NAMES; i++)
        e->update_names[i] = HB_NONE;
    e->grpo = spec->loss.kind == HB_LOSS_GRPO;
    share_states(e, zero3);
    if (e->stages || zero3 || e->grpo || e->t->autocast || spec->runtime.cuda_graphs)
        e->cut = NULL; /* a whole one */
    e->fsdp.flat = spec->runtime.fsdp1 && !e->fsdp.plain;
    e->has_root = e->fsdp.flat || spec->runtime.wrap_root ||
                  ((spec->model.tied_embeddings || spec->model.positions) && !e->fsdp.plain);
    if (e->fsdp.plain) /* gradients are as their parameters */
        e->fsdp.reduce_bytes = e->fsdp.grad_bytes;
    set_sizes(e);
    build_ends(e);
    build_end_units(e);
    build_layers(e);
    part_stages(e);
    if (zero3 ||
        (e->fsdp.plain && spec->sharding.optimizer_over_data && spec->mesh[HB_AX_DATA] > 1))
        hb_titan_reduce_in_buckets(e);
    build_chunks(e);
    if (spec->model.blocks[0].remat.offload)
        e->stash = hb_arena_alloc(e->t->arena, HB_TITAN_STASH, sizeof *e->stash);
    (is_tied(e) ? e->end_weights : e->head)->uses =
        e->by_chunk ? 1 : hb_add_sat(e->chunk_count, is_tied(e));
    if (spec->optimizer.in_backward)
        update_in_backward(e);
}

int64_t hb_titan_rope_width(const struct hb_attention *a)
{
    return a->kind == HB_ATTN_MLA ? a->qk_rope_head_dim : a->head_dim;
}

void hb_titan_add_rope(struct hb_titan *e)
{
    const struct hb_model *m = &e->spec->model;
    if (m->positions == 0)
        hb_tape_argument(e->t, "table of rope",
                         e->spec->batch.seq * hb_titan_rope_width(&m->blocks[0].attention) / 2 * 8,
                         HB_CAT_PARAMS);
}

/* gpt-oss has a table of cosines and sines in each layer, as torchtitan's models have since June
 * 2026 (models/common/rope.py). */
static void add_tables(struct hb_titan *e)
{
    int64_t layers = 0, each = hb_tape_size(e->t, e->spec->batch.seq, 2 * 4, 1);
    for (int64_t i = 0; i < e->layer_count; i++)
        layers += 1 + e->layers[i].left_out;
    each = hb_tape_size(e->t, each, e->spec->model.blocks[0].attention.head_dim, layers);
    hb_tape_argument(e->t, "tables of rope", each, HB_CAT_PARAMS);
}

/* What stands before the first op. */
static void add_model(struct hb_titan *e)
{
    add_all_params(e);
    if (e->spec->model.blocks[0].attention.sinks) {
        add_tables(e);
        return;
    }
    for (int64_t k = 0; k < (e->stages ? e->pipeline.chunks : 1); k++)
        hb_titan_add_rope(e);
}

/* PPO's value model: a value for each token in place of logits, so its loss is nothing to speak
 * of; streams of its own, beyond the policy's and the reference's. */
static void add_value(struct hb_titan *policy)
{
    struct hb_spec *spec = hb_arena_alloc(policy->t->arena, 1, sizeof *spec);
    struct hb_titan *e = hb_arena_alloc(policy->t->arena, 1, sizeof *e);
    *spec = *policy->spec;
    spec->loss.kind = HB_LOSS_LM;
    spec->runtime.fused_norm = false; /* as the policy's */
    *e = (struct hb_titan){.t = policy->t, .spec = spec, .name = "value."};
    build(e);
    *e->head = hb_ops_weight(e->head->name, 1, spec->model.d_model);
    e->head->uses = 1;
    e->fsdp.first_pool = 2 * HB_POOL_ALL_REDUCE;
    add_model(e);
    policy->value = e;
}

void hb_titan_lower(struct hb_tape *t, const struct hb_spec *spec, const struct hb_rank_ask *ask)
{
    struct hb_titan *e = hb_arena_alloc(t->arena, 1, sizeof *e);
    *e = (struct hb_titan){.t = t,
                           .spec = spec,
                           .cut = ask->cut,
                           .rank = ask->rank,
                           .actions = ask->actions,
                           .name = "",
                           .tune = spec->runtime.framework == HB_FW_TORCHTUNE};
    build(e);
    add_model(e);
    hb_titan_add_average(e, left_out_count(e));
    if (e->grpo && spec->loss.value)
        add_value(e);
    if (e->grpo && spec->loss.reference)
        hb_titan_add_reference(e);
    run_step(e, true);
    hb_tape_end(t);
    t->p->caching.second_op = t->p->op_count;
    run_step(e, false);
    hb_titan_forget_logits(e);
    hb_zero3_forget(e->zero3);
    hb_tape_end(t);
}
