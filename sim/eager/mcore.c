/* See mcore.h. Saved storages a token and layer were checked against Megatron's own CI figures;
 * what no source says is named as a fitted constant. Between steps Megatron keeps parameters, one
 * contiguous gradient buffer (f32 with bf16 parameters), the optimizer's share and workspaces; the
 * optimizer's moments appear at the end of the first step. */
#include "sim/eager/mcore.h"

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/eager/mcore_plan.h"
#include "sim/eager/short.h"

/* Seen between steps in Megatron's CI on sm90 and later: cuBLAS and Transformer Engine workspaces
 * (32 + 32 MiB), batch and masks; older devices have smaller ones; grouped products four more.
 * Fitted on those records; the local specification, which no key tells, has 32 MiB more. */
enum { WORKSPACE_MIB = 105, OLD_WORKSPACE_MIB = 24, GROUPED_MIB = 128 };

/* Rows of experts beside what their products keep: permuted input and output; with gathered tokens
 * also the weighed output and its sum in f32. In halves of the model's width; fitted. */
enum { EXCHANGED_HALVES = 8, GATHERED_HALVES = 19 };

struct mcore;

/* What a pass over one microbatch left for its backward pass. */
struct alive {
    struct hb_node *nodes;
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

struct parts {
    struct mcore *e;
    struct part *list;
    int64_t count;
    int64_t rest_bytes; /* of all that are left out, of one microbatch */
    int64_t alive;      /* microbatches whose rest there is */
    bool known;
};

struct mcore {
    struct hb_tape *t;
    const struct hb_spec *spec;
    struct hb_mcore_plan plan;
    struct alive *alive; /* by chunk, then microbatch */
    int64_t microbatches;
    int64_t d, rows;      /* width, and tokens of the residual's part */
    struct hb_short *cut; /* null: the program is a whole one */
    struct parts *parts;  /* by chunk */
};

/* --- ops: what is made, what is kept, what the backward pass makes --- */

static uint32_t make(struct mcore *e, const char *name, int64_t tokens, int64_t width_bytes)
{
    return hb_tape_make(e->t, (struct hb_made){.op = name,
                                               .name = name,
                                               .bytes = hb_tape_size(e->t, tokens, width_bytes, 1),
                                               .category = HB_CAT_WORKING});
}

/* numbers: bytes of the input's gradient, bytes of a weight's gradient of its own or 0. */
static void back_op(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    if (n->number[1] > 0)
        hb_tape_drop(t,
                     hb_tape_make(t, (struct hb_made){"weight's gradient", "gradient of a weight",
                                                      n->number[1], HB_CAT_GRADIENTS, 0}));
    uint32_t dx = HB_NONE;
    if (n->number[0] > 0)
        dx = hb_tape_make(t, (struct hb_made){"backward", "gradient of an input", n->number[0],
                                              HB_CAT_WORKING, 0});
    for (int i = 0; i < HB_NODE_SAVED; i++) {
        hb_tape_drop(t, n->saved[i]);
        n->saved[i] = HB_NONE;
    }
    hb_tape_drop(t, grad);
    if (dx != HB_NONE)
        hb_tape_give(t, n->in[0], dx);
}

/* A step of the code: x is consumed where `last` says so. */
struct op {
    const char *name;
    uint32_t x;
    int64_t tokens;
    int64_t width_bytes;  /* of the output, a token */
    int64_t weight_count; /* elements; 0: it has none */
    bool keeps_input;
    bool last; /* nobody else uses x after it */
};

static uint32_t run(struct mcore *e, struct op o)
{
    uint32_t out = hb_tape_value(e->t, make(e, o.name, o.tokens, o.width_bytes));
    struct hb_node *n = hb_tape_node(e->t, back_op, out);
    uint32_t x = e->t->values[o.x].storage;
    if (n) {
        n->in[0] = o.x;
        n->number[0] = hb_tape_bytes(e->t, x);
        n->number[1] = e->spec->runtime.grad_fusion ? 0 : 2 * o.weight_count;
    }
    if (o.keeps_input)
        hb_tape_save(e->t, n, x);
    if (o.last)
        hb_tape_drop(e->t, x);
    return out;
}

/* A storage kept by the node that was added last, made for it alone. */
static void keep_more(struct mcore *e, const char *name, int64_t tokens, int64_t width_bytes)
{
    if (!width_bytes)
        return;
    uint32_t s = make(e, name, tokens, width_bytes);
    hb_tape_save(e->t, e->t->grad ? &e->t->nodes[e->t->node_count - 1] : NULL, s);
    hb_tape_drop(e->t, s);
}

static void back_add(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    hb_tape_hold(t, grad);
    hb_tape_give(t, n->in[0], grad);
    hb_tape_give(t, n->in[1], grad);
}

/* Bias, dropout and residual in one kernel: keeps a byte an element where there is dropout. */
static uint32_t add_residual(struct mcore *e, uint32_t x, uint32_t part, double dropout)
{
    uint32_t out = hb_tape_value(e->t, make(e, "residual", e->rows, 2 * e->d));
    struct hb_node *n = hb_tape_node(e->t, back_add, out);
    if (n) {
        n->in[0] = x;
        n->in[1] = part;
    }
    if (dropout > 0)
        keep_more(e, "dropout's mask", e->rows, e->d);
    hb_tape_drop_value(e->t, part);
    return out;
}

static int64_t split(const struct mcore *e, int64_t width)
{
    return hb_div_up(width, e->plan.tp);
}

static bool again(const struct mcore *e, enum hb_remat_module module)
{
    return e->spec->remat.modules & (1u << module);
}

/* Norm in the product that follows: its input stays with the residual; its output is kept by the
 * product unless it is made again. */
static uint32_t run_norm(struct mcore *e, uint32_t x)
{
    return run(e, (struct op){"norm's output", x, e->rows, 2 * e->d, 0, true, false});
}

/* --- attention --- */

static uint32_t latent(struct mcore *e, uint32_t x, const struct hb_attention *a)
{
    int64_t width = a->q_lora_rank + a->kv_lora_rank + a->qk_rope_head_dim;
    int64_t n = e->d * width;
    uint32_t down =
        run(e, (struct op){"latents of q and kv", x, e->rows, 2 * width, n, true, true});
    return run(e, (struct op){"latents, normed", down, e->rows, 2 * width, 0, true, true});
}

static uint32_t project(struct mcore *e, const struct hb_attention *a, uint32_t x)
{
    int64_t tokens = e->plan.tokens;
    if (a->kind == HB_ATTN_MLA) {
        int64_t q = 2 * a->heads * (a->qk_nope_head_dim + a->qk_rope_head_dim);
        int64_t kv = a->heads * (a->qk_nope_head_dim + a->v_head_dim);
        x = latent(e, x, a);
        return run(e, (struct op){"q, k and v from the latents", x, tokens, 2 * split(e, q + kv), 0,
                                  true, true});
    }
    int64_t width = (a->heads + 2 * a->kv_heads) * a->head_dim;
    uint32_t mixed = run(e, (struct op){"q, k and v in one", x, tokens, 2 * split(e, width),
                                        e->d * split(e, width), true, true});
    return run(e, (struct op){"q, k and v", mixed, tokens, 2 * split(e, width), 0, false, true});
}

static uint32_t run_core(struct mcore *e, const struct hb_attention *a, uint32_t qkv)
{
    int64_t heads = split(e, a->heads), tokens = e->plan.tokens;
    int64_t width = a->kind == HB_ATTN_MLA ? a->v_head_dim : a->head_dim;
    uint32_t out =
        run(e, (struct op){"attention output", qkv, tokens, 2 * heads * width, 0, true, true});
    if (a->kernel == HB_KERNEL_FLASH) {
        keep_more(e, "attention's log-sum-exp", tokens, 4 * heads);
        return out;
    }
    if (again(e, HB_RM_CORE_ATTN))
        return out;
    int64_t scores =
        hb_mul_sat(heads, hb_div_up(e->spec->batch.seq, e->spec->mesh[HB_AX_SEQUENCE]));
    keep_more(e, "probabilities", tokens, 2 * scores);
    if (a->dropout > 0) {
        keep_more(e, "mask of the probabilities", tokens, scores);
        keep_more(e, "dropped probabilities", tokens, 2 * scores);
    }
    return out;
}

static uint32_t run_attention(struct mcore *e, const struct hb_block *b, uint32_t x)
{
    const struct hb_attention *a = &b->attention;
    int64_t width = a->kind == HB_ATTN_MLA ? a->v_head_dim : a->head_dim;
    uint32_t h = run_norm(e, x);
    uint32_t core = run_core(e, a, project(e, a, h));
    return run(e, (struct op){"attention projected", core, e->rows, 2 * e->d,
                              e->d * split(e, a->heads * width), true, true});
}

/* --- mlp and experts --- */

static int64_t first_width(enum hb_mlp_kind kind, int64_t ff)
{
    return kind == HB_MLP_SWIGLU || kind == HB_MLP_GEGLU ? 2 * ff : ff;
}

static uint32_t run_mlp(struct mcore *e, enum hb_mlp_kind kind, int64_t ff, uint32_t x)
{
    int64_t tokens = e->plan.tokens, first = split(e, first_width(kind, ff)), second = split(e, ff);
    uint32_t in =
        run(e, (struct op){"first product", x, tokens, 2 * first, e->d * first, true, true});
    uint32_t act = run(e, (struct op){"activation", in, tokens, 2 * second, 0, true, true});
    return run(e, (struct op){"second product", act, e->rows, 2 * e->d, e->d * second, true, true});
}

/* Balanced rows, through this rank's experts, and the shared one beside them. */
static uint32_t run_experts(struct mcore *e, const struct hb_block *b, uint32_t x)
{
    int64_t rows = hb_mcore_expert_rows(&e->plan, b), ff = hb_div_up(b->moe.d_ff, e->plan.etp);
    int64_t first = first_width(b->moe.kind, ff), own = hb_div_up(b->moe.experts, e->plan.ep);
    bool gathered = b->moe.dispatch == HB_DISPATCH_ALLGATHER;
    int64_t halves = gathered ? GATHERED_HALVES : EXCHANGED_HALVES;
    uint32_t in = run(e, (struct op){"rows sorted by expert", x, rows, 2 * e->d, 0, true, false});
    keep_more(e, "router's scores", e->rows, 4 * b->moe.experts);
    uint32_t up = run(e, (struct op){"experts' first product", in, rows, 2 * first,
                                     own * e->d * first, true, true});
    uint32_t act = run(e, (struct op){"experts' activation", up, rows, 2 * ff, 0, true, true});
    uint32_t down = run(e, (struct op){"experts' second product", act, rows, 2 * e->d,
                                       own * e->d * ff, true, true});
    uint32_t out = run(e, (struct op){"experts' output", down, e->rows, 2 * e->d, 0, true, true});
    if (halves > EXCHANGED_HALVES)
        keep_more(e, "experts' output, weighed and summed", rows,
                  (halves - EXCHANGED_HALVES) * e->d / 2);
    if (b->moe.shared_d_ff)
        hb_tape_drop_value(e->t, run_mlp(e, b->moe.kind, b->moe.shared_d_ff, x));
    else
        hb_tape_drop_value(e->t, x);
    return out;
}

static uint32_t run_layer(struct mcore *e, const struct hb_block *b, uint32_t x)
{
    uint32_t attn = run_attention(e, b, x);
    uint32_t half = add_residual(e, x, attn, b->dropout);
    uint32_t h = run_norm(e, half);
    uint32_t mlp = b->moe.experts ? run_experts(e, b, h) : run_mlp(e, b->mlp.kind, b->mlp.d_ff, h);
    uint32_t out = add_residual(e, half, mlp, b->dropout);
    hb_tape_drop_value(e->t, half);
    return out;
}

/* --- recomputation of whole layers --- */

struct again {
    struct mcore *e;
    const struct hb_block *block;
};

static void back_again(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    const struct again *a = n->thing;
    uint32_t first = t->node_count, x = n->in[0];
    t->grad = true;
    uint32_t out = run_layer(a->e, a->block, x);
    hb_tape_drop_value(t, out);
    t->values[out].grad = grad;
    hb_tape_back(t, first);
}

static uint32_t run_again(struct mcore *e, const struct hb_block *b, uint32_t x)
{
    e->t->grad = false;
    uint32_t out = run_layer(e, b, x);
    e->t->grad = true;
    struct again *a = hb_arena_alloc(e->t->arena, 1, sizeof *a);
    *a = (struct again){e, b};
    struct hb_node *n = hb_tape_node(e->t, back_again, out);
    n->in[0] = x;
    n->thing = a;
    hb_tape_save(e->t, n, e->t->values[x].storage);
    return out;
}

/* --- the loss --- */

static uint32_t wide(struct mcore *e, const char *name, int64_t width)
{
    int64_t words = split(e, e->spec->model.vocab);
    return hb_tape_make(e->t, (struct hb_made){"cross entropy", name,
                                               hb_tape_size(e->t, e->plan.tokens, words, width),
                                               HB_CAT_LOGITS, 0});
}

static void back_loss(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    struct mcore *e = (struct mcore *)(uintptr_t)n->thing;
    (void)grad;
    if (e->spec->loss.kernel == HB_LOSS_FUSED) {
        hb_tape_hold(t, n->saved[0]);
        hb_tape_give(t, n->in[0], n->saved[0]);
        return;
    }
    uint32_t narrow = wide(e, "gradient of the logits", 2);
    hb_tape_drop(t, n->saved[0]);
    n->saved[0] = HB_NONE;
    hb_tape_give(t, n->in[0], narrow);
}

/* Megatron's own cross entropy: a copy in f32 becomes the probabilities and then the gradient, in
 * place; the logits are held to the end of the forward pass. A fused kernel: a gradient alone. */
static void run_loss(struct mcore *e, uint32_t logits)
{
    bool fused = e->spec->loss.kernel == HB_LOSS_FUSED;
    uint32_t copy = fused ? wide(e, "gradient of the logits", 2)
                          : wide(e, "logits in f32, then their gradient", 4);
    struct hb_node *n = hb_tape_node(e->t, back_loss, HB_NONE);
    n->in[0] = logits;
    n->thing = e;
    hb_tape_save(e->t, n, copy);
    hb_tape_drop(e->t, copy);
    hb_tape_drop_value(e->t, logits);
}

static uint32_t run_head(struct mcore *e, uint32_t x)
{
    uint32_t h = run_norm(e, x);
    hb_tape_drop_value(e->t, x);
    e->t->phase = HB_PHASE_LOSS;
    uint32_t logits = hb_tape_value(e->t, wide(e, "logits", 2));
    struct hb_node *n = hb_tape_node(e->t, back_op, logits);
    n->in[0] = h;
    n->number[0] = hb_tape_bytes(e->t, e->t->values[h].storage);
    n->number[1] = e->spec->runtime.grad_fusion ? 0 : 2 * hb_mcore_table_count(&e->plan);
    hb_tape_save(e->t, n, e->t->values[h].storage);
    hb_tape_drop_value(e->t, h);
    run_loss(e, logits);
    return logits;
}

/* --- passes --- */

static struct alive *find_alive(struct mcore *e, const struct hb_mcore_pass *p)
{
    return &e->alive[p->chunk * e->microbatches + p->microbatch];
}

static bool is_again(const struct mcore *e, const struct hb_block *b, int64_t layer)
{
    return b->remat.policy != HB_POLICY_NONE && layer % e->spec->remat.every == 0;
}

/* The tape of one pass is taken off, to be put back for its backward pass. */
static void set_aside(struct mcore *e, struct alive *a)
{
    struct hb_tape *t = e->t;
    a->node_count = t->node_count;
    a->nodes = hb_arena_alloc(t->arena, (size_t)t->node_count + 1, sizeof *a->nodes);
    for (uint32_t i = 0; i < t->node_count; i++)
        a->nodes[i] = t->nodes[i];
    t->node_count = 0;
}

/* What the layers left out hold of all microbatches that ran them forwards, and not back. */
static void mark(struct mcore *e)
{
    int64_t sum = 0;
    if (!e->cut)
        return;
    for (int64_t i = 0; i < e->plan.chunk_count; i++)
        sum = hb_add_sat(sum, hb_mul_sat(e->parts[i].alive, e->parts[i].rest_bytes));
    hb_short_mark(e->cut, e->t, sum, 0);
}

static void back_mark(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    struct parts *p = (struct parts *)(uintptr_t)n->thing;
    (void)t;
    (void)grad;
    p->alive--;
    mark(p->e);
}

/* The layers left out stand before the chunk's last one. */
static void mark_last(struct mcore *e, struct parts *p)
{
    p->alive++;
    mark(e);
    struct hb_node *n = hb_tape_node(e->t, back_mark, HB_NONE);
    n->thing = p;
}

static uint32_t run_one(struct mcore *e, int64_t layer, int64_t microbatch, uint32_t x)
{
    const struct hb_block *b = hb_mcore_block(e->spec, layer);
    e->t->where = hb_arena_printf(e->t->arena, "layers[%lld], microbatch %lld: ", (long long)layer,
                                  (long long)microbatch);
    uint32_t out = is_again(e, b, layer) ? run_again(e, b, x) : run_layer(e, b, x);
    hb_tape_drop_value(e->t, x);
    return out;
}

static uint32_t run_parts(struct mcore *e, struct parts *p, int64_t microbatch, uint32_t x)
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

static void forward(struct mcore *e, const struct hb_mcore_pass *p)
{
    const struct hb_mcore_chunk *c = &e->plan.chunks[p->chunk];
    struct alive *a = find_alive(e, p);
    e->t->phase = HB_PHASE_FORWARD;
    e->t->grad = true;
    e->t->where = "";
    uint32_t x = hb_tape_value(
        e->t, make(e, c->embeds ? "embedded tokens" : "input of the stage", e->rows, 2 * e->d));
    a->in = x;
    if (e->cut)
        x = run_parts(e, &e->parts[p->chunk], p->microbatch, x);
    for (int64_t l = c->first; l < c->end && !e->cut; l++)
        x = run_one(e, l, p->microbatch, x);
    e->t->where = "";
    if (c->heads)
        x = run_head(e, x);
    else
        hb_tape_drop_value(e->t, x); /* sent; the graph alone stays */
    a->out = x;
    set_aside(e, a);
}

static void backward(struct mcore *e, const struct hb_mcore_pass *p)
{
    struct hb_tape *t = e->t;
    const struct hb_mcore_chunk *c = &e->plan.chunks[p->chunk];
    struct alive *a = find_alive(e, p);
    t->phase = HB_PHASE_BACKWARD;
    for (uint32_t i = 0; i < a->node_count; i++) {
        t->nodes = hb_grow(t->arena, t->nodes, t->node_count, &t->node_cap, sizeof *t->nodes);
        t->nodes[t->node_count++] = a->nodes[i];
    }
    if (!c->heads)
        t->values[a->out].grad = make(e, "gradient from the next stage", e->rows, 2 * e->d);
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

static void keep(struct mcore *e, const char *name, int64_t bytes, enum hb_category category)
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

static int64_t own_count(const struct mcore *e)
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
static void keep_dummies(struct mcore *e)
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
        int64_t qkv = split(e, (a->heads + 2 * a->kv_heads) * a->head_dim);
        keep(e, "stand-in gradient of w_qkv", 2 * e->d * qkv, HB_CAT_RUNTIME);
        int64_t out = split(e, a->heads * a->head_dim);
        if (out != qkv)
            keep(e, "stand-in gradient of w_o", 2 * e->d * out, HB_CAT_RUNTIME);
    }
    if (!b->moe.experts) {
        keep(e, "stand-in gradient of w_fc1",
             2 * e->d * split(e, first_width(b->mlp.kind, b->mlp.d_ff)), HB_CAT_RUNTIME);
        keep(e, "stand-in gradient of w_fc2", 2 * e->d * split(e, b->mlp.d_ff), HB_CAT_RUNTIME);
    }
}

static int64_t workspace_mib(const struct mcore *e)
{
    bool old = hb_str_starts(e->spec->hardware.device, "nvidia-a100");
    int64_t mib = old ? OLD_WORKSPACE_MIB : WORKSPACE_MIB;
    for (int i = 0; i < e->spec->model.block_count; i++)
        if (e->spec->model.blocks[i].moe.experts &&
            e->spec->model.blocks[i].moe.dispatch == HB_DISPATCH_RAGGED)
            return mib + GROUPED_MIB;
    return mib;
}

static void keep_static(struct mcore *e)
{
    int64_t count = hb_add_sat(hb_mcore_rank_dense(&e->plan), hb_mcore_rank_experts(&e->plan));
    int64_t width = hb_dtype_bits(e->spec->precision.params) / 8;
    int64_t shards = e->spec->mesh[HB_AX_FSDP];
    int64_t part = hb_div_up(count, shards);
    keep(e, "parameters", hb_mul_sat(part, width), HB_CAT_PARAMS);
    keep(e, "gradient buffer", hb_mul_sat(part, grad_width(e->spec)), HB_CAT_GRADIENTS);
    if (e->spec->precision.master)
        keep(e, "master parameters", hb_mul_sat(own_count(e), 4), HB_CAT_OPTIMIZER);
    keep(e, "workspaces of cuBLAS and Transformer Engine, batch, masks", workspace_mib(e) << 20,
         HB_CAT_RUNTIME);
    if (e->spec->runtime.grad_fusion)
        keep_dummies(e);
}

static void make_moments(struct mcore *e)
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
static uint32_t gather_tables(struct mcore *e)
{
    if (e->spec->mesh[HB_AX_FSDP] <= 1)
        return HB_NONE;
    return hb_tape_make(e->t, (struct hb_made){"all-gather over fsdp", "gathered tables",
                                               2 * hb_mcore_table_count(&e->plan),
                                               HB_CAT_COMMUNICATION, 0});
}

static void run_step(struct mcore *e)
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
static void find_parts(struct mcore *e)
{
    e->parts = hb_arena_alloc(e->t->arena, (size_t)e->plan.chunk_count, sizeof *e->parts);
    for (int64_t c = 0; c < e->plan.chunk_count; c++) {
        const struct hb_mcore_chunk *chunk = &e->plan.chunks[c];
        struct parts *p = &e->parts[c];
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
    struct mcore *e = hb_arena_alloc(t->arena, 1, sizeof *e);
    *e = (struct mcore){.t = t, .spec = spec, .d = spec->model.d_model, .cut = cut};
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
