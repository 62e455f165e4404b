/* Combinations that cannot be: each check names one key, says why and what would do. What is
 * merely useless (an option of a part that is not there) passes, so that one key can be varied
 * without touching others. */
#include "models/schema.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "models/params.h"
#include "models/schema_key.h"
#include "models/spec_names.h"

static const int64_t DEVICES_MAX = (int64_t)1 << 40; /* so that a device has an index to spare */

struct checker {
    struct hb_arena *arena;
    struct hb_diag *diag;
    const struct hb_node *root;
    const struct hb_spec *spec;
    bool ok;
};

/* An error about the key at path. */
static void fault(struct checker *c, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void fault(struct checker *c, const char *path, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    c->ok = false;
    if (c->diag->quiet) {
        c->diag->errors++;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct hb_loc loc = c->root ? hb_schema_locate(c->root, path) : (struct hb_loc){0};
    hb_error(c->diag, loc, "%s: %s", path, text);
}

/* "model.blocks[3].attention.heads" */
static const char *block_path(struct checker *c, int block, const char *key)
{
    return hb_arena_printf(c->arena, "model.blocks[%d].%s", block, key);
}

/* False where the mesh is so wrong that nothing can be asked about it. */
static bool check_devices(struct checker *c)
{
    const int64_t *m = c->spec->mesh;
    int64_t product = 1;
    for (int a = 0; a < HB_AX_COUNT; a++)
        product = hb_mul_sat(product, m[a]);
    if (product > DEVICES_MAX) {
        fault(c, "mesh", "the product of the axes is above 2^40 devices; allowed: fewer");
        return false;
    }
    if (product != c->spec->hardware.count)
        fault(c, "mesh",
              "%" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64
              " = %" PRId64 " devices, but hardware.count is %" PRId64
              "; the product of the axes must be the count (an axis may be `rest`)",
              m[0], m[1], m[2], m[3], m[4], m[5], product, c->spec->hardware.count);
    return true;
}

/* Ranks that split the batch. */
static int64_t batch_ranks(const struct hb_spec *spec)
{
    return hb_mul_sat(spec->mesh[HB_AX_DATA],
                      hb_mul_sat(spec->mesh[HB_AX_FSDP], spec->mesh[HB_AX_EXPERT]));
}

/* JAX refuses a batch that its ranks do not divide before XLA could pad it (IndivisibleError of the
 * arguments, with MaxText at per_device_batch_size=1.5 over 8; shard_map's of the flash kernel). */
static void check_batch(struct checker *c)
{
    const struct hb_batch *b = &c->spec->batch;
    const struct hb_pipe *p = &c->spec->pipeline;
    int64_t ranks = batch_ranks(c->spec);
    int64_t parts = hb_mul_sat(ranks, b->accumulate);
    int64_t sequence = c->spec->mesh[HB_AX_SEQUENCE];
    if (b->global % parts)
        fault(c, "batch.global",
              "%" PRId64 " sequences cannot be split over mesh.data x fsdp x expert = %" PRId64
              " ranks and batch.accumulate = %" PRId64 "; allowed: multiples of %" PRId64,
              b->global, ranks, b->accumulate, parts);
    else if (c->spec->mesh[HB_AX_PIPELINE] > 1 && b->global % hb_mul_sat(parts, p->microbatches))
        fault(c, "pipeline.microbatches",
              "%" PRId64 " sequences of a rank cannot be split into %" PRId64
              " microbatches; allowed: divisors of %" PRId64,
              b->global / parts, p->microbatches, b->global / parts);
    if (b->seq % sequence)
        fault(c, "batch.seq",
              "%" PRId64 " tokens cannot be split over mesh.sequence = %" PRId64
              "; allowed: multiples of %" PRId64,
              b->seq, sequence, sequence);
}

static void check_loss(struct checker *c)
{
    const struct hb_batch *b = &c->spec->batch;
    int64_t chunks = c->spec->loss.chunks;
    bool tokens = c->spec->loss.chunk_over == HB_CHUNK_TOKENS;
    int64_t whole = tokens ? hb_mul_sat(b->global / b->accumulate, b->seq) : b->seq;
    if (whole % chunks)
        fault(c, "loss.chunks",
              "%" PRId64 " tokens cannot be cut into %" PRId64
              " chunks; allowed: divisors of %" PRId64,
              whole, chunks, whole);
    if (c->spec->loss.value && c->spec->loss.kind != HB_LOSS_GRPO)
        fault(c, "loss.value", "true, but loss.kind is lm; allowed: false, or loss.kind grpo");
}

static void check_residual(struct checker *c)
{
    const struct hb_sharding *s = &c->spec->sharding;
    int64_t tensor = c->spec->mesh[HB_AX_TENSOR];
    int64_t ways = hb_mul_sat(tensor, c->spec->mesh[HB_AX_SEQUENCE]);
    bool features = s->residual_split == HB_SPLIT_FEATURES;
    if (tensor % s->expert_tensor)
        fault(c, "sharding.expert_tensor",
              "%" PRId64 " does not divide mesh.tensor = %" PRId64 "; allowed: its divisors",
              s->expert_tensor, tensor);
    if (!s->residual_over_tensor)
        return;
    if (features && c->spec->model.d_model % tensor)
        fault(c, "sharding.residual_split",
              "model.d_model = %" PRId64 " cannot be split over mesh.tensor = %" PRId64
              "; allowed: sequence, or a divisor of d_model as mesh.tensor",
              c->spec->model.d_model, tensor);
    if (!features && c->spec->batch.seq % ways)
        fault(c, "batch.seq",
              "%" PRId64 " tokens cannot be split over sequence x tensor = %" PRId64
              " (sharding.residual_over_tensor); allowed: multiples of %" PRId64,
              c->spec->batch.seq, ways, ways);
}

static void check_mla(struct checker *c, int block, const struct hb_attention *a)
{
    const struct {
        const char *key;
        int64_t value;
    } sizes[] = {{"attention.kv_lora_rank", a->kv_lora_rank},
                 {"attention.qk_nope_head_dim", a->qk_nope_head_dim},
                 {"attention.v_head_dim", a->v_head_dim}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (!sizes[i].value)
            fault(c, block_path(c, block, sizes[i].key),
                  "is missing or 0; kind: mla needs it; allowed: 1 and more");
    int64_t width = a->qk_nope_head_dim + a->qk_rope_head_dim;
    if (a->head_dim != width)
        fault(c, block_path(c, block, "attention.head_dim"),
              "%" PRId64 " is not qk_nope_head_dim + qk_rope_head_dim = %" PRId64
              "; leave it out with kind: mla",
              a->head_dim, width);
    if (a->kv_heads != a->heads)
        fault(c, block_path(c, block, "attention.kv_heads"),
              "%" PRId64 " is not heads = %" PRId64 "; leave it out with kind: mla", a->kv_heads,
              a->heads);
}

static void check_gqa(struct checker *c, int block, const struct hb_attention *a)
{
    if (a->q_lora_rank || a->kv_lora_rank || a->qk_nope_head_dim || a->qk_rope_head_dim ||
        a->v_head_dim)
        fault(c, block_path(c, block, "attention.kind"),
              "the ranks and widths of mla are set, but kind is not mla; allowed: mla, or none of "
              "q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim");
    if (a->heads % a->kv_heads)
        fault(c, block_path(c, block, "attention.kv_heads"),
              "%" PRId64 " does not divide heads = %" PRId64 "; allowed: its divisors", a->kv_heads,
              a->heads);
    if (!a->head_dim)
        fault(c, block_path(c, block, "attention.heads"),
              "%" PRId64 " does not divide model.d_model = %" PRId64
              "; give head_dim, or a divisor",
              a->heads, c->spec->model.d_model);
}

static void check_head_split(struct checker *c, int block, const struct hb_attention *a)
{
    int64_t tensor = c->spec->mesh[HB_AX_TENSOR];
    int64_t sequence = c->spec->mesh[HB_AX_SEQUENCE];
    int64_t ways = hb_mul_sat(tensor, sequence);
    if (a->heads % tensor)
        fault(c, block_path(c, block, "attention.heads"),
              "%" PRId64 " heads cannot be split over mesh.tensor = %" PRId64
              "; allowed: multiples of %" PRId64,
              a->heads, tensor, tensor);
    else if (c->spec->sharding.sequence_kind == HB_SEQ_ALL_TO_ALL && a->heads % ways)
        fault(c, block_path(c, block, "attention.heads"),
              "%" PRId64 " heads cannot be split over tensor x sequence = %" PRId64
              " (sharding.sequence_kind: all_to_all); allowed: multiples of %" PRId64,
              a->heads, ways, ways);
}

static void check_attention(struct checker *c, int block, const struct hb_block *b)
{
    const struct hb_attention *a = &b->attention;
    int64_t seq = c->spec->batch.seq;
    if (a->kind == HB_ATTN_MLA)
        check_mla(c, block, a);
    else
        check_gqa(c, block, a);
    check_head_split(c, block, a);
    if (a->window_count > 1 && a->window_count != b->unit)
        fault(c, block_path(c, block, "attention.window"),
              "a list of %d, but unit is %" PRId64 "; allowed: one window, or one for each layer "
              "of a unit",
              a->window_count, b->unit);
    if (a->kernel == HB_KERNEL_BLOCKED && a->block < seq && seq % a->block)
        fault(c, block_path(c, block, "attention.block"),
              "%" PRId64 " does not divide batch.seq = %" PRId64 "; allowed: its divisors",
              a->block, seq);
}

static void check_moe(struct checker *c, int block, const struct hb_moe *m)
{
    const struct hb_sharding *s = &c->spec->sharding;
    int64_t tensor = c->spec->mesh[HB_AX_TENSOR];
    int64_t ways = hb_mul_sat(c->spec->mesh[HB_AX_EXPERT], tensor / s->expert_tensor);
    if (m->top_k > m->experts)
        fault(c, block_path(c, block, "moe.top_k"),
              "%" PRId64 " is more than experts = %" PRId64 "; allowed: 1 to %" PRId64, m->top_k,
              m->experts, m->experts);
    if (tensor % s->expert_tensor == 0 && m->experts % ways)
        fault(c, block_path(c, block, "moe.experts"),
              "%" PRId64 " experts cannot be split %" PRId64
              " ways (mesh.expert x mesh.tensor / sharding.expert_tensor); allowed: multiples of "
              "%" PRId64,
              m->experts, ways, ways);
    if (m->d_ff % s->expert_tensor)
        fault(c, block_path(c, block, "moe.d_ff"),
              "%" PRId64 " cannot be split over sharding.expert_tensor = %" PRId64
              "; allowed: multiples of %" PRId64,
              m->d_ff, s->expert_tensor, s->expert_tensor);
    if (m->shared_d_ff % tensor)
        fault(c, block_path(c, block, "moe.shared_d_ff"),
              "%" PRId64 " cannot be split over mesh.tensor = %" PRId64
              "; allowed: multiples of %" PRId64,
              m->shared_d_ff, tensor, tensor);
    if ((m->shared_d_ff != 0) != (m->shared_experts != 0))
        fault(c, block_path(c, block, "moe.shared_d_ff"),
              "%" PRId64 " with shared_experts = %" PRId64 "; allowed: both 0, or neither",
              m->shared_d_ff, m->shared_experts);
}

static void check_mlp(struct checker *c, int block, const struct hb_mlp *mlp)
{
    int64_t tensor = c->spec->mesh[HB_AX_TENSOR];
    if (mlp->d_ff % tensor)
        fault(c, block_path(c, block, "mlp.d_ff"),
              "%" PRId64 " cannot be split over mesh.tensor = %" PRId64
              "; allowed: multiples of %" PRId64,
              mlp->d_ff, tensor, tensor);
}

static void check_stack(struct checker *c, int block, const struct hb_block *b)
{
    const struct hb_stack *s = &c->spec->stack;
    int64_t steps = hb_block_steps(b);
    if (b->repeat % b->unit)
        fault(c, block_path(c, block, "repeat"),
              "%" PRId64 " layers are no multiple of unit = %" PRId64
              "; allowed: multiples of %" PRId64,
              b->repeat, b->unit, b->unit);
    else if (s->form == HB_FORM_NESTED && s->outer && c->spec->mesh[HB_AX_PIPELINE] == 1 &&
             steps % s->outer)
        fault(c, "stack.outer",
              "%" PRId64 " does not divide the %" PRId64
              " steps of block '%s'; allowed: 0, or a divisor",
              s->outer, steps, b->name);
}

static void check_block_remat(struct checker *c, int block, const struct hb_block *b)
{
    const struct hb_remat *r = &b->remat;
    bool own = memcmp(r, &c->spec->remat.all, sizeof *r) != 0;
    const char *stem = own ? hb_arena_printf(c->arena, "remat.per_block.%s.", b->name) : "remat.";
    uint32_t anywhere = 1u << HB_TN_LAYER_IN;
    if (!own && block > 0)
        return; /* said of the first block already */
    if (r->save && r->policy != HB_POLICY_NAMES)
        fault(c, hb_arena_printf(c->arena, "%ssave", stem),
              "tensors are named, but policy is not names; allowed: policy: names, or []");
    if (r->offload && r->policy != HB_POLICY_NAMES &&
        (r->policy == HB_POLICY_NONE || (r->offload & ~anywhere)))
        fault(c, hb_arena_printf(c->arena, "%soffload", stem),
              "tensors are named, but policy is not names; allowed: policy: names, or "
              "[layer_in] with full, dots and dots_no_batch, or []");
    uint32_t both = r->save & r->offload;
    for (int i = 0; i < HB_TN_COUNT; i++)
        if (both >> i & 1)
            fault(c, hb_arena_printf(c->arena, "%soffload", stem),
                  "'%s' is listed under save as well; allowed: one of the two", hb_tensor_names[i]);
}

static void check_names(struct checker *c)
{
    const struct hb_model *m = &c->spec->model;
    for (int i = 0; i < m->block_count; i++)
        for (int k = 0; k < i; k++)
            if (hb_str_same(m->blocks[i].name, m->blocks[k].name)) {
                fault(c, block_path(c, i, "name"),
                      "'%s' is the name of blocks[%d] too; allowed: a name of its own",
                      m->blocks[i].name, k);
                break;
            }
}

static void check_blocks(struct checker *c)
{
    const struct hb_model *m = &c->spec->model;
    for (int i = 0; i < m->block_count; i++) {
        const struct hb_block *b = &m->blocks[i];
        check_attention(c, i, b);
        if (b->moe.experts)
            check_moe(c, i, &b->moe);
        else
            check_mlp(c, i, &b->mlp);
        check_stack(c, i, b);
        check_block_remat(c, i, b);
    }
    check_names(c);
}

static void check_remat(struct checker *c)
{
    const struct hb_remat_more *r = &c->spec->remat;
    if (r->modules && r->all.policy != HB_POLICY_NONE)
        fault(c, "remat.modules",
              "parts are named, but policy is not none; allowed: policy: none, "
              "or []");
    if (r->budget < 1 && (r->all.policy != HB_POLICY_NONE || !c->spec->runtime.compile))
        fault(c, "remat.budget",
              "below 1, but policy is not none or layers are not compiled; allowed: policy: none "
              "with runtime.compile: true, or 1");
}

static void check_chunk_layers(struct checker *c, int64_t layers, int64_t stages)
{
    const struct hb_pipe *p = &c->spec->pipeline;
    int64_t sum = 0;
    bool even = true;
    for (int i = 0; i < p->layer_count; i++) {
        sum = hb_add_sat(sum, p->layers[i]);
        even = even && p->layers[i] == p->layers[0];
    }
    if (p->layer_count != stages)
        fault(c, "pipeline.layers",
              "%d numbers for mesh.pipeline x repeats = %" PRId64
              " chunks; allowed: one for each chunk",
              p->layer_count, stages);
    else if (sum != layers)
        fault(c, "pipeline.layers",
              "the chunks have %" PRId64 " layers together, the model %" PRId64
              "; the sums must agree",
              sum, layers);
    else if (!even && p->schedule == HB_SCHED_SPMD)
        fault(c, "pipeline.layers",
              "uneven chunks with schedule: spmd, whose stages are one program; allowed: even");
}

static void check_stages(struct checker *c, int64_t stages)
{
    const struct hb_model *m = &c->spec->model;
    const struct hb_pipe *p = &c->spec->pipeline;
    int64_t layers = 0;
    int groups = 0;
    int64_t unit = 1;
    for (int i = 0; i < m->block_count; i++) {
        if (!m->blocks[i].pipelined)
            continue;
        layers = hb_add_sat(layers, m->blocks[i].repeat);
        unit = m->blocks[i].unit;
        groups++;
    }
    if (groups == 0)
        fault(c, "mesh.pipeline",
              "no block is pipelined; allowed: 1, or a block with pipelined: "
              "true");
    else if (p->schedule == HB_SCHED_SPMD && groups > 1)
        fault(c, "pipeline.schedule",
              "spmd runs one program on all stages, but %d blocks are pipelined; allowed: one, the "
              "others with pipelined: false",
              groups);
    if (p->layer_count)
        check_chunk_layers(c, layers, stages);
    else if (layers % stages)
        fault(c, "mesh.pipeline",
              "%" PRId64 " layers cannot be split into mesh.pipeline x repeats = %" PRId64
              " chunks; allowed: divisors of %" PRId64 ", or pipeline.layers",
              layers, stages, layers);
    else if (groups == 1 && layers / stages % unit)
        fault(c, "mesh.pipeline",
              "%" PRId64 " layers of a chunk are no multiple of the block's unit = %" PRId64
              "; allowed: fewer stages",
              layers / stages, unit);
}

static void check_pipeline(struct checker *c)
{
    const struct hb_pipe *p = &c->spec->pipeline;
    int64_t stages = c->spec->mesh[HB_AX_PIPELINE];
    if (p->rank >= stages)
        fault(c, "pipeline.rank",
              "%" PRId64 " is no stage of mesh.pipeline = %" PRId64 "; allowed: max, 0 to %" PRId64,
              p->rank, stages, stages - 1);
    if (stages == 1)
        return;
    check_stages(c, hb_mul_sat(stages, p->repeats));
    if (p->repeats > 1 && (p->schedule == HB_SCHED_GPIPE || p->schedule == HB_SCHED_1F1B))
        fault(c, "pipeline.repeats",
              "%" PRId64 " with schedule: gpipe or 1f1b; allowed: 1, or schedule spmd, interleaved "
              "or zero_bubble",
              p->repeats);
    if (p->repeats != 2 && (p->schedule == HB_SCHED_ZBV || p->schedule == HB_SCHED_DUALPIPE_V))
        fault(c, "pipeline.repeats",
              "%" PRId64 " with schedule: zbv or dualpipe_v, which have two stages a rank; "
              "allowed: 2",
              p->repeats);
    if (p->schedule == HB_SCHED_SPMD && p->repeats > 1 && p->microbatches < stages)
        fault(c, "pipeline.microbatches",
              "%" PRId64 " are too few for a circular pipeline of %" PRId64
              " stages; allowed: %" PRId64 " and more",
              p->microbatches, stages, stages);
    const struct hb_stack *s = &c->spec->stack;
    if (s->form == HB_FORM_NESTED && s->outer && !p->layer_count) {
        for (int i = 0; i < c->spec->model.block_count; i++) {
            const struct hb_block *b = &c->spec->model.blocks[i];
            int64_t ways = b->pipelined ? hb_mul_sat(stages, p->repeats) : 1;
            int64_t steps = b->repeat / hb_mul_sat(b->unit, ways);
            if (steps && steps % s->outer)
                fault(c, "stack.outer",
                      "%" PRId64 " does not divide the %" PRId64
                      " steps of block '%s' in a stage; allowed: 0, or a divisor",
                      s->outer, steps, b->name);
        }
    }
}

static void check_optimizer(struct checker *c)
{
    static const struct {
        int least;
        int most;
        const char *text;
    } counts[] = {[HB_OPT_SGD] = {0, 0, "sgd keeps 0"},
                  [HB_OPT_MOMENTUM] = {1, 1, "momentum keeps 1"},
                  [HB_OPT_ADAMW] = {2, 2, "adamw keeps 2"},
                  [HB_OPT_LION] = {1, 1, "lion keeps 1"},
                  [HB_OPT_ADAFACTOR] = {0, 1, "adafactor keeps 0, or 1 with momentum"},
                  [HB_OPT_MUON] = {1, 1, "muon keeps 1"}};
    const struct hb_optim *o = &c->spec->optimizer;
    if (o->moment_count < counts[o->name].least || o->moment_count > counts[o->name].most)
        fault(c, "optimizer.moments", "a list of %d; allowed: %s full-size states", o->moment_count,
              counts[o->name].text);
    if (o->in_backward && c->spec->batch.accumulate > 1)
        fault(c, "optimizer.in_backward",
              "the update cannot be in the backward pass with batch.accumulate = %" PRId64
              "; allowed: false, or accumulate 1",
              c->spec->batch.accumulate);
    if (o->in_backward && o->clip)
        fault(c, "optimizer.in_backward",
              "the update cannot be in the backward pass with clip, "
              "which needs all gradients first; allowed: one of them");
    const struct hb_precision *p = &c->spec->precision;
    if (p->fp8 == HB_FP8_NONE && (p->fp8_gather || p->fp8_params))
        fault(c, p->fp8_gather ? "precision.fp8_gather" : "precision.fp8_params",
              "true, but fp8 is none; allowed: false, or a kind of fp8");
}

/* Bytes that any one kind of tensor can reach, each far from the end of the range. */
static void check_sizes(struct checker *c)
{
    const struct hb_spec *s = c->spec;
    struct hb_params params;
    hb_params_count(s, &params);
    if (!hb_size_ok(hb_mul_sat(params.total, 64))) {
        fault(c, "model", "more than 2^55 parameters; a size has a few digits too many");
        return;
    }
    int64_t tokens = hb_mul_sat(s->batch.global, s->batch.seq);
    int64_t widest = hb_add_sat(s->model.d_model, s->model.vocab);
    for (int i = 0; i < s->model.block_count; i++) {
        const struct hb_block *b = &s->model.blocks[i];
        const struct hb_attention *a = &b->attention;
        int64_t heads = hb_mul_sat(a->heads, hb_add_sat(a->head_dim, a->v_head_dim));
        int64_t scores = a->kernel == HB_KERNEL_FLASH ? 0 : hb_mul_sat(a->heads, s->batch.seq);
        int64_t inner = hb_add_sat(hb_mul_sat(b->moe.top_k, b->moe.d_ff),
                                   hb_add_sat(b->mlp.d_ff, b->moe.shared_d_ff));
        int64_t layer = hb_add_sat(hb_add_sat(heads, scores), hb_add_sat(inner, b->moe.experts));
        widest = hb_add_sat(widest, hb_mul_sat(b->repeat, hb_add_sat(layer, s->model.d_model)));
    }
    if (!hb_size_ok(hb_mul_sat(hb_mul_sat(tokens, widest), 64)))
        fault(c, "batch",
              "%" PRId64 " x %" PRId64 " tokens make tensors of more than 2^55 elements; a size "
              "has a few digits too many",
              s->batch.global, s->batch.seq);
}

/* CachingAllocatorConfig refuses what is not above a large segment's size. */
static void check_runtime(struct checker *c)
{
    const int64_t least = (int64_t)20 << 20;
    int64_t split = c->spec->runtime.max_split_bytes;
    if (split && split <= least)
        fault(c, "runtime.max_split_size",
              "%" PRId64 " bytes are not above 20 MiB, which PyTorch refuses; allowed: more, or 0",
              split);
    if (c->spec->runtime.gc_threshold > 0 && c->spec->runtime.memory_fraction == 0)
        fault(c, "runtime.gc_threshold",
              "does nothing without a limit (torch.cuda.set_per_process_memory_fraction); add "
              "runtime.memory_fraction, or use 0");
}

static bool check_all(struct checker *c, bool batch)
{
    if (!check_devices(c))
        return false;
    if (batch)
        check_batch(c);
    check_loss(c);
    check_residual(c);
    check_blocks(c);
    check_remat(c);
    check_pipeline(c);
    check_optimizer(c);
    check_runtime(c);
    if (c->ok)
        check_sizes(c);
    return c->ok;
}

bool hb_schema_check(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *root,
                     const struct hb_spec *spec)
{
    struct checker c = {arena, diag, root, spec, true};
    return check_all(&c, true);
}

bool hb_schema_check_searched(struct hb_arena *arena, struct hb_diag *diag,
                              const struct hb_node *root, const struct hb_spec *spec)
{
    struct checker c = {arena, diag, root, spec, true};
    const struct hb_plan_axes *p = &spec->plan;
    bool free = !p->present || p->mesh_axes || p->mesh_count;
    return check_all(&c, !free);
}
