/* See mcore_parts.h: a layer's ops as Transformer Engine keeps their inputs, and what is made again
 * in the backward pass. */
#include "base/arena.h"
#include "base/size.h"
#include "sim/eager/mcore_parts.h"

/* Rows of experts beside what their products keep: permuted input and output; with gathered tokens
 * also the weighed output and its sum in f32. In halves of the model's width; fitted. */
enum { EXCHANGED_HALVES = 8, GATHERED_HALVES = 19 };

/* --- ops: what is made, what is kept, what the backward pass makes --- */

uint32_t hb_mcore_make(struct hb_mcore *e, const char *name, int64_t tokens, int64_t width_bytes)
{
    return hb_tape_make(e->t, (struct hb_made){.op = name,
                                               .name = name,
                                               .bytes = hb_tape_size(e->t, tokens, width_bytes, 1),
                                               .category = HB_CAT_WORKING});
}

/* numbers: bytes of the input's gradient; bytes of a weight's gradient of its own or 0; bytes of
 * the gradient in 8 bits, by row and by column, or 0. */
void hb_mcore_back_op(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t narrow = HB_NONE;
    if (n->number[2] > 0)
        narrow = hb_tape_make(
            t, (struct hb_made){"quantise", "gradient in 8 bits", n->number[2], HB_CAT_WORKING, 0});
    if (n->number[1] > 0)
        hb_tape_drop(t,
                     hb_tape_make(t, (struct hb_made){"weight's gradient", "gradient of a weight",
                                                      n->number[1], HB_CAT_GRADIENTS, 0}));
    uint32_t dx = HB_NONE;
    if (n->number[0] > 0)
        dx = hb_tape_make(t, (struct hb_made){"backward", "gradient of an input", n->number[0],
                                              HB_CAT_WORKING, 0});
    hb_tape_drop(t, narrow);
    for (int i = 0; i < HB_TAPED_SAVED; i++) {
        hb_tape_drop(t, n->saved[i]);
        n->saved[i] = HB_NONE;
    }
    hb_tape_drop(t, grad);
    if (dx != HB_NONE)
        hb_tape_give(t, n->in[0], dx);
}

/* A tensor of 16-bit numbers in 8: scales are one for all of it, f32 for 128 numbers (blockwise),
 * or a byte for 32 (mxfp8). */
static int64_t narrow_bytes(const struct hb_mcore *e, int64_t bytes)
{
    int64_t count = bytes / 2;
    switch (e->spec->precision.fp8) {
    case HB_FP8_BLOCKWISE:
        return hb_add_sat(count, count / 128 * 4);
    case HB_FP8_MXFP8:
        return hb_add_sat(count, count / 32);
    case HB_FP8_NONE:
    case HB_FP8_TENSORWISE:
    case HB_FP8_ROWWISE:
    case HB_FP8_NVFP4:
        break;
    }
    return count;
}

static uint32_t quantised(struct hb_mcore *e, const char *name, int64_t bytes)
{
    return hb_tape_make(e->t, (struct hb_made){"quantise", name, bytes, HB_CAT_WORKING, 0});
}

/* Transformer Engine quantises a linear layer's input by row for the product and by column for the
 * weight's gradient, and keeps the latter alone (module/linear.py, update_usage; what it was made
 * of goes unless somebody else keeps it). */
uint32_t hb_mcore_op(struct hb_mcore *e, struct hb_mcore_op o)
{
    struct hb_tape *t = e->t;
    uint32_t x = t->values[o.x].storage, by_row = HB_NONE, by_column = HB_NONE;
    bool narrow = o.linear && e->spec->precision.fp8 != HB_FP8_NONE;
    int64_t bytes = narrow_bytes(e, hb_tape_bytes(t, x));
    if (narrow && t->grad)
        by_column = quantised(e, "input in 8 bits, by column", bytes);
    if (narrow)
        by_row = quantised(e, "input in 8 bits, by row", bytes);
    uint32_t out = hb_tape_value(t, hb_mcore_make(e, o.name, o.tokens, o.width_bytes));
    hb_tape_drop(t, by_row);
    struct hb_taped *n = hb_tape_node(t, hb_mcore_back_op, out);
    if (n) {
        n->in[0] = o.x;
        n->number[0] = hb_tape_bytes(t, x);
        n->number[1] = e->spec->runtime.grad_fusion ? 0 : 2 * o.weight_count;
        if (narrow)
            n->number[2] = 2 * narrow_bytes(e, hb_tape_bytes(t, t->values[out].storage));
    }
    if (o.keeps_input)
        hb_tape_save(t, n, narrow ? by_column : x);
    hb_tape_drop(t, by_column);
    if (o.last)
        hb_tape_drop(t, x);
    return out;
}

/* A storage kept by the node that was added last, made for it alone. */
static void keep_more(struct hb_mcore *e, const char *name, int64_t tokens, int64_t width_bytes)
{
    if (!width_bytes)
        return;
    uint32_t s = hb_mcore_make(e, name, tokens, width_bytes);
    hb_tape_save(e->t, e->t->grad ? &e->t->nodes[e->t->node_count - 1] : NULL, s);
    hb_tape_drop(e->t, s);
}

/* --- what is not kept but made again --- */

/* Where the nodes of a module keep a tensor that was given up. */
struct hb_mcore_place {
    uint32_t node;
    int slot;
};

struct redo {
    const char *name;
    uint32_t value;
    int64_t bytes;
    struct hb_mcore_place *places;
    int count;
};

static void back_redo(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    const struct redo *r = n->thing;
    uint32_t storage =
        hb_tape_make(t, (struct hb_made){"again", r->name, r->bytes, HB_CAT_WORKING, 0});
    (void)grad;
    for (int i = 0; i < r->count; i++) {
        hb_tape_hold(t, storage);
        t->nodes[r->places[i].node].saved[r->places[i].slot] = storage;
    }
    t->values[r->value].storage = storage;
    hb_tape_drop(t, storage);
}

/* Of the nodes from `first` on none keeps the value's storage any more: it is made again when the
 * module's output has its gradient (megatron/core/tensor_parallel/random.py,
 * CheckpointWithoutOutput). */
static void give_up(struct hb_mcore *e, const char *name, uint32_t value, uint32_t first)
{
    struct hb_tape *t = e->t;
    uint32_t most = (t->node_count - first) * HB_TAPED_SAVED, storage = t->values[value].storage;
    if (!t->grad)
        return;
    struct redo *r = hb_arena_alloc(t->arena, 1, sizeof *r);
    *r = (struct redo){name, value, hb_tape_bytes(t, storage),
                       hb_arena_alloc(t->arena, most, sizeof *r->places), 0};
    for (uint32_t k = 0; k < most; k++) {
        uint32_t node = first + k / HB_TAPED_SAVED;
        int slot = (int)(k % HB_TAPED_SAVED);
        if (t->nodes[node].saved[slot] != storage)
            continue;
        t->nodes[node].saved[slot] = HB_NONE;
        hb_tape_drop(t, storage);
        r->places[r->count++] = (struct hb_mcore_place){node, slot};
    }
    if (r->count)
        hb_tape_node(t, back_redo, HB_NONE)->thing = r;
}

typedef uint32_t run_part(struct hb_mcore *e, const struct hb_block *b, uint32_t x);

/* Recomputed from x. */
struct again {
    struct hb_mcore *e;
    const struct hb_block *block;
    run_part *run;
};

static void back_again(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    const struct again *a = n->thing;
    uint32_t first = t->node_count, x = n->in[0];
    t->grad = true;
    uint32_t out = a->run(a->e, a->block, x);
    hb_tape_drop_value(t, out);
    t->values[out].grad = grad;
    hb_tape_back(t, first);
}

/* x stays the caller's. */
static uint32_t run_again(struct hb_mcore *e, const struct hb_block *b, uint32_t x, run_part *run)
{
    bool grad = e->t->grad;
    e->t->grad = false;
    uint32_t out = run(e, b, x);
    e->t->grad = grad;
    struct hb_taped *n = hb_tape_node(e->t, back_again, out);
    if (!n)
        return out;
    struct again *a = hb_arena_alloc(e->t->arena, 1, sizeof *a);
    *a = (struct again){e, b, run};
    n->in[0] = x;
    n->thing = a;
    hb_tape_save(e->t, n, e->t->values[x].storage);
    return out;
}

/* --- parts of a layer --- */

static void back_add(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    hb_tape_hold(t, grad);
    hb_tape_give(t, n->in[0], grad);
    hb_tape_give(t, n->in[1], grad);
}

/* Bias, dropout and residual in one kernel: keeps a byte an element where there is dropout. */
static uint32_t add_residual(struct hb_mcore *e, uint32_t x, uint32_t part, double dropout)
{
    uint32_t out = hb_tape_value(e->t, hb_mcore_make(e, "residual", e->rows, 2 * e->d));
    struct hb_taped *n = hb_tape_node(e->t, back_add, out);
    if (n) {
        n->in[0] = x;
        n->in[1] = part;
    }
    if (dropout > 0)
        keep_more(e, "dropout's mask", e->rows, e->d);
    hb_tape_drop_value(e->t, part);
    return out;
}

int64_t hb_mcore_split(const struct hb_mcore *e, int64_t width)
{
    return hb_div_up(width, e->plan.tp);
}

static bool again(const struct hb_mcore *e, enum hb_remat_module module)
{
    return e->spec->remat.modules & (1u << module);
}

/* Norm in the product that follows: its input stays with the residual; its output is kept by the
 * product unless it is made again. */
uint32_t hb_mcore_norm(struct hb_mcore *e, uint32_t x)
{
    return hb_mcore_op(
        e, (struct hb_mcore_op){"norm's output", x, e->rows, 2 * e->d, 0, true, false, false});
}

/* --- attention --- */

static uint32_t latent(struct hb_mcore *e, uint32_t x, const struct hb_attention *a)
{
    int64_t width = a->q_lora_rank + a->kv_lora_rank + a->qk_rope_head_dim;
    int64_t n = e->d * width;
    uint32_t down = hb_mcore_op(
        e, (struct hb_mcore_op){"latents of q and kv", x, e->rows, 2 * width, n, true, true, true});
    return hb_mcore_op(
        e, (struct hb_mcore_op){"latents, normed", down, e->rows, 2 * width, 0, true, true, false});
}

static uint32_t project(struct hb_mcore *e, const struct hb_attention *a, uint32_t x)
{
    int64_t tokens = e->plan.tokens;
    if (a->kind == HB_ATTN_MLA) {
        int64_t q = 2 * a->heads * (a->qk_nope_head_dim + a->qk_rope_head_dim);
        int64_t kv = a->heads * (a->qk_nope_head_dim + a->v_head_dim);
        x = latent(e, x, a);
        return hb_mcore_op(e, (struct hb_mcore_op){"q, k and v from the latents", x, tokens,
                                                   2 * hb_mcore_split(e, q + kv), 0, true, true,
                                                   true});
    }
    int64_t width = (a->heads + 2 * a->kv_heads) * a->head_dim;
    uint32_t mixed = hb_mcore_op(
        e, (struct hb_mcore_op){"q, k and v in one", x, tokens, 2 * hb_mcore_split(e, width),
                                e->d * hb_mcore_split(e, width), true, true, true});
    if (a->qk_norm != HB_QKN_NONE) /* norms of views keep the whole, and v is one of them */
        return hb_mcore_op(
            e, (struct hb_mcore_op){"q and k, normed", mixed, tokens,
                                    2 * hb_mcore_split(e, (a->heads + a->kv_heads) * a->head_dim),
                                    0, true, true, false});
    return hb_mcore_op(e,
                       (struct hb_mcore_op){"q, k and v", mixed, tokens,
                                            2 * hb_mcore_split(e, width), 0, false, true, false});
}

static uint32_t run_core(struct hb_mcore *e, const struct hb_attention *a, uint32_t qkv)
{
    int64_t heads = hb_mcore_split(e, a->heads), tokens = e->plan.tokens;
    int64_t width = a->kind == HB_ATTN_MLA ? a->v_head_dim : a->head_dim;
    uint32_t out = hb_mcore_op(e, (struct hb_mcore_op){"attention output", qkv, tokens,
                                                       2 * heads * width, 0, true, true, false});
    if (a->kernel == HB_KERNEL_FLASH) { /* its own output, too: the next product may not keep it */
        struct hb_tape *t = e->t;
        hb_tape_save(t, t->grad ? &t->nodes[t->node_count - 1] : NULL, t->values[out].storage);
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

static uint32_t run_attention(struct hb_mcore *e, const struct hb_block *b, uint32_t x)
{
    const struct hb_attention *a = &b->attention;
    struct hb_tape *t = e->t;
    bool mla = a->kind == HB_ATTN_MLA;
    int64_t width = mla ? a->v_head_dim : a->head_dim;
    uint32_t first = t->node_count, h = hb_mcore_norm(e, x);
    uint32_t qkv = project(e, a, h), core_first = t->node_count;
    uint32_t core = run_core(e, a, qkv);
    if (mla && again(e, HB_RM_MLA_UP_PROJ))
        give_up(e, "q, k and v from the latents", qkv, core_first);
    uint32_t out = hb_mcore_op(
        e, (struct hb_mcore_op){"attention projected", core, e->rows, 2 * e->d,
                                e->d * hb_mcore_split(e, a->heads * width), true, true, true});
    if (mla && again(e, HB_RM_LAYERNORM))
        give_up(e, "norm's output", h, first);
    return out;
}

/* --- mlp and experts --- */

int64_t hb_mcore_first_width(enum hb_mlp_kind kind, int64_t ff)
{
    return hb_mlp_is_gated(kind) ? 2 * ff : ff;
}

static uint32_t run_mlp(struct hb_mcore *e, enum hb_mlp_kind kind, int64_t ff, uint32_t x)
{
    int64_t tokens = e->plan.tokens, first = hb_mcore_split(e, hb_mcore_first_width(kind, ff)),
            second = hb_mcore_split(e, ff);
    uint32_t in = hb_mcore_op(e, (struct hb_mcore_op){"first product", x, tokens, 2 * first,
                                                      e->d * first, true, true, true});
    uint32_t act = hb_mcore_op(
        e, (struct hb_mcore_op){"activation", in, tokens, 2 * second, 0, true, true, false});
    return hb_mcore_op(e, (struct hb_mcore_op){"second product", act, e->rows, 2 * e->d,
                                               e->d * second, true, true, true});
}

/* Balanced rows, through this rank's experts, and the shared one beside them. */
static uint32_t run_experts(struct hb_mcore *e, const struct hb_block *b, uint32_t x)
{
    int64_t rows = hb_mcore_expert_rows(&e->plan, b), ff = hb_div_up(b->moe.d_ff, e->plan.etp);
    int64_t first = hb_mcore_first_width(b->moe.kind, ff),
            own = hb_div_up(b->moe.experts, e->plan.ep);
    bool gathered = b->moe.dispatch == HB_DISPATCH_ALLGATHER;
    int64_t halves = gathered ? GATHERED_HALVES : EXCHANGED_HALVES;
    uint32_t in = hb_mcore_op(
        e, (struct hb_mcore_op){"rows sorted by expert", x, rows, 2 * e->d, 0, true, false, false});
    keep_more(e, "router's scores", e->rows, 4 * b->moe.experts);
    uint32_t up = hb_mcore_op(e, (struct hb_mcore_op){"experts' first product", in, rows, 2 * first,
                                                      own * e->d * first, true, true, true});
    uint32_t act = hb_mcore_op(
        e, (struct hb_mcore_op){"experts' activation", up, rows, 2 * ff, 0, true, true, false});
    uint32_t down_first = e->t->node_count;
    uint32_t down =
        hb_mcore_op(e, (struct hb_mcore_op){"experts' second product", act, rows, 2 * e->d,
                                            own * e->d * ff, true, true, true});
    if (again(e, HB_RM_MOE_ACT))
        give_up(e, "experts' activation", act, down_first);
    uint32_t out = hb_mcore_op(
        e, (struct hb_mcore_op){"experts' output", down, e->rows, 2 * e->d, 0, true, true, false});
    if (halves > EXCHANGED_HALVES)
        keep_more(e, "experts' output, weighed and summed", rows,
                  (halves - EXCHANGED_HALVES) * e->d / 2);
    if (b->moe.shared_d_ff)
        hb_tape_drop_value(e->t, run_mlp(e, b->moe.kind, b->moe.shared_d_ff, x));
    else
        hb_tape_drop_value(e->t, x);
    return out;
}

/* A part of a layer whose input stays the caller's. */
static uint32_t run_mixture(struct hb_mcore *e, const struct hb_block *b, uint32_t x)
{
    hb_tape_hold(e->t, e->t->values[x].storage);
    return run_experts(e, b, x);
}

static uint32_t run_normed_mlp(struct hb_mcore *e, const struct hb_block *b, uint32_t x)
{
    return run_mlp(e, b->mlp.kind, b->mlp.d_ff, hb_mcore_norm(e, x));
}

/* The norm before experts is a module of its own, that before an MLP is in its first product: only
 * the first can be made again by itself, and the second is made again with the MLP. */
static uint32_t run_second_half(struct hb_mcore *e, const struct hb_block *b, uint32_t half)
{
    if (!b->moe.experts)
        return again(e, HB_RM_MLP) ? run_again(e, b, half, run_normed_mlp)
                                   : run_normed_mlp(e, b, half);
    uint32_t first = e->t->node_count, h = hb_mcore_norm(e, half);
    uint32_t out = again(e, HB_RM_MOE) ? run_again(e, b, h, run_mixture) : run_mixture(e, b, h);
    hb_tape_drop_value(e->t, h);
    if (again(e, HB_RM_LAYERNORM))
        give_up(e, "norm's output", h, first);
    return out;
}

static uint32_t run_layer(struct hb_mcore *e, const struct hb_block *b, uint32_t x)
{
    uint32_t attn = run_attention(e, b, x);
    uint32_t half = add_residual(e, x, attn, b->dropout);
    uint32_t out = add_residual(e, half, run_second_half(e, b, half), b->dropout);
    hb_tape_drop_value(e->t, half);
    return out;
}

uint32_t hb_mcore_run_layer(struct hb_mcore *e, const struct hb_block *b, bool again, uint32_t x)
{
    uint32_t out = again ? run_again(e, b, x, run_layer) : run_layer(e, b, x);
    hb_tape_drop_value(e->t, x);
    return out;
}
