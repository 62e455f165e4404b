/* See mcore.h. Saved storages a token and layer were checked against Megatron's own CI figures;
 * what no source says is named as a fitted constant. Between steps Megatron keeps parameters, one
 * contiguous gradient buffer (f32 with bf16 parameters), the optimizer's share and workspaces; the
 * optimizer's moments appear at the end of the first step. */
#include "sim/eager/mcore.h"

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/eager/mcore_parts.h"
#include "sim/eager/short.h"

/* Between steps there are a workspace of cuBLAS for either pass, whose thread has a handle of its
 * own (32 MiB from sm90 on, 8320 KiB before; ATen/cuda/CublasHandlePool.cpp), one of Transformer
 * Engine (32 and 4 MiB) and four more where products are grouped (pytorch/cpp_extensions/gemm.py),
 * as Megatron's CI shows: on A100 28 and 81 MiB with 8320 KiB and 32 MiB each, 16 more with groups;
 * on H100 104, 128 more. The rest, batch and masks, is fitted there; the local specification, which
 * no key tells, has 32 MiB more. */
enum {
    NEW_KIB = 32 << 10,
    OLD_BLAS_KIB = 8320,
    OLD_ENGINE_KIB = 4 << 10,
    GROUPS = 4,
    REST_KIB = 9 << 10
};

/* What a pass over one microbatch left for its backward pass. */
struct hb_mcore_alive {
    struct hb_taped *nodes;
    uint32_t node_count;
    uint32_t in; /* values */
    uint32_t out;
};

/* Of a short program: a layer that is run, and how many of its kind are not. */
struct part {
    int64_t layer;
    int64_t left_out;
    int64_t rest_bytes; /* what each leaves for the backward pass */
};

struct hb_mcore_parts {
    struct hb_mcore *e;
    struct part *list;
    int64_t count;
    int64_t rest_bytes; /* of all that are left out, of one microbatch */
    int64_t alive;      /* microbatches whose rest there is */
    bool known;
};

/* --- passes --- */

static struct hb_mcore_alive *find_alive(struct hb_mcore *e, const struct hb_mcore_pass *p)
{
    return &e->alive[p->chunk * e->microbatches + p->microbatch];
}

static bool is_again(const struct hb_mcore *e, const struct hb_block *b, int64_t layer)
{
    return b->remat.policy != HB_POLICY_NONE && layer % e->spec->remat.every == 0;
}

/* The tape of one pass is taken off, to be put back for its backward pass. */
static void set_aside(struct hb_mcore *e, struct hb_mcore_alive *a)
{
    struct hb_tape *t = e->t;
    a->node_count = t->node_count;
    a->nodes = hb_arena_alloc(t->arena, (size_t)t->node_count + 1, sizeof *a->nodes);
    for (uint32_t i = 0; i < t->node_count; i++)
        a->nodes[i] = t->nodes[i];
    t->node_count = 0;
}

/* What the layers left out hold of all microbatches that ran them forwards, and not back. */
static void mark(struct hb_mcore *e)
{
    int64_t sum = 0;
    if (!e->cut)
        return;
    for (int64_t i = 0; i < e->plan.chunk_count; i++)
        sum = hb_add_sat(sum, hb_mul_sat(e->parts[i].alive, e->parts[i].rest_bytes));
    hb_short_mark(e->cut, e->t, sum, 0);
}

static void back_mark(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_mcore_parts *p = (struct hb_mcore_parts *)(uintptr_t)n->thing;
    (void)t;
    (void)grad;
    p->alive--;
    mark(p->e);
}

/* The layers left out stand before the chunk's last one. */
static void mark_last(struct hb_mcore *e, struct hb_mcore_parts *p)
{
    p->alive++;
    mark(e);
    struct hb_taped *n = hb_tape_node(e->t, back_mark, HB_NONE);
    n->thing = p;
}

static uint32_t run_one(struct hb_mcore *e, int64_t layer, int64_t microbatch, uint32_t x)
{
    const struct hb_block *b = hb_mcore_block(e->spec, layer);
    if (!e->t->server)
        e->t->where =
            hb_arena_printf(e->t->arena, "layers[%lld], microbatch %lld: ", (long long)layer,
                            (long long)microbatch);
    return hb_mcore_run_layer(e, b, is_again(e, b, layer), x);
}

static uint32_t run_parts(struct hb_mcore *e, struct hb_mcore_parts *p, int64_t microbatch,
                          uint32_t x)
{
    for (int64_t i = 0; i < p->count; i++) {
        struct part *part = &p->list[i];
        bool asked = part->left_out && !p->known;
        int64_t before = asked ? hb_tape_held_bytes(e->t) : 0;
        if (i == p->count - 1)
            mark_last(e, p);
        x = run_one(e, part->layer, microbatch, x);
        if (asked)
            part->rest_bytes = hb_tape_held_bytes(e->t) - before;
    }
    for (int64_t i = 0; i < p->count && !p->known; i++)
        p->rest_bytes =
            hb_add_sat(p->rest_bytes, hb_mul_sat(p->list[i].left_out, p->list[i].rest_bytes));
    p->known = true;
    return x;
}

static void forward(struct hb_mcore *e, const struct hb_mcore_pass *p)
{
    const struct hb_mcore_chunk *c = &e->plan.chunks[p->chunk];
    struct hb_mcore_alive *a = find_alive(e, p);
    e->t->phase = HB_PHASE_FORWARD;
    e->t->grad = true;
    e->t->where = "";
    uint32_t x =
        hb_tape_value(e->t, hb_mcore_make(e, c->embeds ? "embedded tokens" : "input of the stage",
                                          e->rows, 2 * e->d));
    a->in = x;
    if (e->cut)
        x = run_parts(e, &e->parts[p->chunk], p->microbatch, x);
    for (int64_t l = c->first; l < c->end && !e->cut; l++)
        x = run_one(e, l, p->microbatch, x);
    e->t->where = "";
    if (c->heads)
        x = hb_mcore_head(e, x);
    else
        hb_tape_drop_value(e->t, x); /* sent; the graph alone stays */
    a->out = x;
    set_aside(e, a);
}

static void backward(struct hb_mcore *e, const struct hb_mcore_pass *p)
{
    struct hb_tape *t = e->t;
    const struct hb_mcore_chunk *c = &e->plan.chunks[p->chunk];
    struct hb_mcore_alive *a = find_alive(e, p);
    t->phase = HB_PHASE_BACKWARD;
    for (uint32_t i = 0; i < a->node_count; i++) {
        t->nodes = hb_grow(t->arena, t->nodes, t->node_count, &t->node_cap, sizeof *t->nodes);
        t->nodes[t->node_count++] = a->nodes[i];
    }
    if (!c->heads)
        t->values[a->out].grad =
            hb_mcore_make(e, "gradient from the next stage", e->rows, 2 * e->d);
    hb_tape_back(t, 0);
    /* What reaches the chunk's input is sent, or goes into the embedding. */
    uint32_t table = HB_NONE;
    if (c->embeds && !e->spec->runtime.grad_fusion)
        table = hb_tape_make(t, (struct hb_made){"embedding, backward", "gradient of the embedding",
                                                 2 * hb_mcore_table_count(&e->plan),
                                                 HB_CAT_GRADIENTS, 0});
    hb_tape_drop(t, table);
    hb_tape_drop(t, t->values[a->in].grad);
    t->values[a->in].grad = HB_NONE;
}

/* --- what stands between steps --- */

static void keep(struct hb_mcore *e, const char *name, int64_t bytes, enum hb_category category)
{
    if (hb_size_ok(bytes) && bytes > 0)
        hb_tape_argument(e->t, name, bytes, category);
    e->t->too_large = e->t->too_large || !hb_size_ok(bytes);
}

static int64_t grad_width(const struct hb_spec *s)
{
    switch (s->precision.grads) {
    case HB_GRADS_PARAMS:
        return hb_dtype_bits(s->precision.params) / 8;
    case HB_GRADS_F32:
        return 4;
    case HB_GRADS_BF16:
        return 2;
    }
    return 4;
}

static int64_t own_count(const struct hb_mcore *e)
{
    int64_t dense = hb_mcore_rank_dense(&e->plan), experts = hb_mcore_rank_experts(&e->plan);
    if (e->spec->mesh[HB_AX_FSDP] > 1)
        return hb_div_up(hb_add_sat(dense, experts), e->spec->mesh[HB_AX_FSDP]);
    if (!e->spec->sharding.optimizer_over_data)
        return hb_add_sat(dense, experts);
    return hb_add_sat(hb_div_up(dense, e->plan.replicas),
                      hb_div_up(experts, e->plan.expert_replicas));
}

/* With fused accumulation Transformer Engine hands autograd a gradient that stands for none, one
 * for each shape of a weight, kept for good (transformer_engine/pytorch/module/base.py,
 * get_dummy_wgrad); Megatron's head likewise (core/tensor_parallel/layers.py). */
static void keep_dummies(struct hb_mcore *e)
{
    const struct hb_block *b = hb_mcore_block(e->spec, e->plan.chunks[0].first);
    const struct hb_attention *a = &b->attention;
    int64_t heads = 0;
    for (int64_t i = 0; i < e->plan.chunk_count; i++)
        heads += e->plan.chunks[i].heads;
    if (heads)
        keep(e, "stand-in gradient of the head", 2 * hb_mcore_table_count(&e->plan),
             HB_CAT_RUNTIME);
    if (a->kind == HB_ATTN_GQA) {
        int64_t qkv = hb_mcore_split(e, (a->heads + 2 * a->kv_heads) * a->head_dim);
        keep(e, "stand-in gradient of w_qkv", 2 * e->d * qkv, HB_CAT_RUNTIME);
        int64_t out = hb_mcore_split(e, a->heads * a->head_dim);
        if (out != qkv)
            keep(e, "stand-in gradient of w_o", 2 * e->d * out, HB_CAT_RUNTIME);
    }
    if (!b->moe.experts) {
        keep(e, "stand-in gradient of w_fc1",
             2 * e->d * hb_mcore_split(e, hb_mcore_first_width(b->mlp.kind, b->mlp.d_ff)),
             HB_CAT_RUNTIME);
        keep(e, "stand-in gradient of w_fc2", 2 * e->d * hb_mcore_split(e, b->mlp.d_ff),
             HB_CAT_RUNTIME);
    }
}

static bool has_groups(const struct hb_model *model, bool grouped)
{
    for (int i = 0; i < model->block_count; i++) {
        const struct hb_moe *m = &model->blocks[i].moe;
        if (m->experts && (m->dispatch == HB_DISPATCH_RAGGED || grouped))
            return true;
    }
    return false;
}

static int64_t workspace_bytes(const struct hb_spec *s)
{
    bool old = hb_str_starts(s->hardware.device, "nvidia-a100");
    int64_t engine = old ? OLD_ENGINE_KIB : NEW_KIB, own = s->runtime.blas_workspace;
    int64_t blas = own ? own : (int64_t)(old ? OLD_BLAS_KIB : NEW_KIB) << 10;
    int64_t engines = has_groups(&s->model, s->runtime.grouped_gemm) ? 1 + GROUPS : 1;
    return hb_add_sat(hb_mul_sat(blas, 2), (engines * engine + REST_KIB) << 10);
}

/* With fp8 each product's weight is there by row, once for all microbatches, unless it is stored
 * so, and by column: NVIDIA GPUs before Blackwell multiply 8-bit matrices in one layout alone,
 * later ones need the second where scales go by blocks, too (transformer_engine/pytorch/tensor). */
static void keep_narrow(struct hb_mcore *e, int64_t part)
{
    enum hb_fp8 fp8 = e->spec->precision.fp8;
    bool later = hb_str_starts(e->spec->hardware.device, "nvidia-b") ||
                 hb_str_starts(e->spec->hardware.device, "nvidia-gb");
    if (fp8 == HB_FP8_NONE)
        return;
    if (!e->spec->precision.fp8_params)
        keep(e, "weights in 8 bits", part, HB_CAT_PARAMS);
    if (!later || fp8 != HB_FP8_TENSORWISE)
        keep(e, "weights in 8 bits, by column", part, HB_CAT_PARAMS);
}

static void keep_static(struct hb_mcore *e)
{
    int64_t count = hb_add_sat(hb_mcore_rank_dense(&e->plan), hb_mcore_rank_experts(&e->plan));
    int64_t width = hb_dtype_bits(e->spec->precision.params) / 8;
    int64_t shards = e->spec->mesh[HB_AX_FSDP];
    int64_t part = hb_div_up(count, shards), linear = hb_mcore_rank_linear(&e->plan);
    int64_t narrow = e->spec->precision.fp8_params ? linear : 0; /* a byte each */
    keep(e, "parameters", hb_add_sat(hb_mul_sat(part - narrow, width), narrow), HB_CAT_PARAMS);
    keep_narrow(e, linear);
    keep(e, "gradient buffer", hb_mul_sat(part, grad_width(e->spec)), HB_CAT_GRADIENTS);
    if (e->spec->precision.master)
        keep(e, "master parameters", hb_mul_sat(own_count(e), 4), HB_CAT_OPTIMIZER);
    keep(e, "workspaces of cuBLAS and Transformer Engine, batch, masks", workspace_bytes(e->spec),
         HB_CAT_RUNTIME);
    if (e->spec->runtime.grad_fusion)
        keep_dummies(e);
}

static void make_moments(struct hb_mcore *e)
{
    const struct hb_optim *o = &e->spec->optimizer;
    e->t->phase = HB_PHASE_OPTIMIZER;
    for (int i = 0; i < o->moment_count && i < 2; i++) {
        int64_t bits = hb_dtype_bits(o->moments[i]);
        int64_t bytes = hb_tape_size(e->t, own_count(e), bits < 8 ? 1 : bits / 8, 1);
        hb_tape_keep(e->t,
                     hb_tape_make(e->t, (struct hb_made){"first step",
                                                         i ? "second moments" : "first moments",
                                                         bytes, HB_CAT_OPTIMIZER, 0}));
    }
}

/* Megatron-FSDP: the ends stay gathered through the step. */
static uint32_t gather_tables(struct hb_mcore *e)
{
    if (e->spec->mesh[HB_AX_FSDP] <= 1)
        return HB_NONE;
    return hb_tape_make(e->t, (struct hb_made){"all-gather over fsdp", "gathered tables",
                                               2 * hb_mcore_table_count(&e->plan),
                                               HB_CAT_COMMUNICATION, 0});
}

static void run_step(struct hb_mcore *e)
{
    e->t->value_count = 0;
    uint32_t tables = gather_tables(e);
    for (uint32_t i = 0; i < e->plan.pass_count; i++) {
        const struct hb_mcore_pass *p = &e->plan.passes[i];
        mark(e);
        if (p->backward)
            backward(e, p);
        else
            forward(e, p);
    }
    hb_tape_drop(e->t, tables);
}

/* Those that are run are the first of each kind, and the last of the chunk. */
static void find_parts(struct hb_mcore *e)
{
    e->parts = hb_arena_alloc(e->t->arena, (size_t)e->plan.chunk_count, sizeof *e->parts);
    for (int64_t c = 0; c < e->plan.chunk_count; c++) {
        const struct hb_mcore_chunk *chunk = &e->plan.chunks[c];
        struct hb_mcore_parts *p = &e->parts[c];
        p->e = e;
        p->list =
            hb_arena_alloc(e->t->arena, (size_t)(chunk->end - chunk->first) + 1, sizeof *p->list);
        for (int64_t l = chunk->first; l < chunk->end; l++) {
            const struct hb_block *b = hb_mcore_block(e->spec, l);
            int64_t like = 0;
            while (like < p->count && (hb_mcore_block(e->spec, p->list[like].layer) != b ||
                                       is_again(e, b, p->list[like].layer) != is_again(e, b, l)))
                like++;
            if (like == p->count || l == chunk->end - 1)
                p->list[p->count++] = (struct part){.layer = l};
            else
                p->list[like].left_out++;
        }
    }
}

void hb_mcore_lower(struct hb_tape *t, const struct hb_spec *spec, int64_t rank,
                    struct hb_short *cut)
{
    struct hb_mcore *e = hb_arena_alloc(t->arena, 1, sizeof *e);
    *e = (struct hb_mcore){.t = t, .spec = spec, .d = spec->model.d_model, .cut = cut};
    hb_mcore_plan_make(t->arena, spec, rank, &e->plan);
    e->rows = hb_div_up(e->plan.tokens, e->plan.sp);
    for (uint32_t i = 0; i < e->plan.pass_count; i++)
        e->microbatches = hb_larger(e->microbatches, e->plan.passes[i].microbatch + 1);
    e->alive =
        hb_arena_alloc(t->arena, (size_t)(e->microbatches * e->plan.chunk_count), sizeof *e->alive);
    if (cut)
        find_parts(e);
    keep_static(e);
    run_step(e);
    make_moments(e);
    hb_tape_end(t);
    t->p->caching.second_op = t->p->op_count;
    run_step(e);
    hb_tape_end(t);
}
