/* See titan_parts.h. What a python name holds, and until when, follows torchtitan's model code: a
 * layer's input is let go when its output has taken the name, attention's locals when it returns.
 */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/eager/knapsack.h"
#include "sim/eager/titan.h"
#include "sim/eager/titan_parts.h"

struct hb_linear hb_titan_linear(struct hb_titan_layer *l, int role, const char *name,
                                 struct hb_kept *kept)
{
    const struct hb_weight *w = l->by_role[role];
    return (struct hb_linear){.name = name,
                              .rows = l->e->tokens,
                              .in = w->cols,
                              .out = w->rows,
                              .weight = l->by_role[role],
                              .kept = kept};
}

static uint32_t rotate(struct hb_titan_layer *l, uint32_t x, const char *name)
{
    const struct hb_attention *a = &l->block->attention;
    if (!a->rope)
        return x;
    if (l->e->spec->runtime.compile)
        return hb_ops_map_fused(l->e->t, x, name);
    int64_t own = hb_div_up(l->e->spec->batch.seq, l->e->spec->mesh[HB_AX_SEQUENCE]);
    return hb_ops_rope(l->e->t, x, own * hb_titan_rope_width(a) / 2 * 8, name);
}

static void replace(struct hb_tape *t, uint32_t *value, uint32_t by)
{
    if (*value != by)
        hb_tape_drop_value(t, *value);
    *value = by;
}

bool hb_titan_is_fused(const struct hb_titan *e)
{
    return e->spec->runtime.compile || hb_titan_norms_fused(e->spec);
}

static uint32_t norm(struct hb_titan *e, uint32_t x, int64_t rows, int64_t width,
                     struct hb_weight *w)
{
    if (hb_titan_is_fused(e))
        return hb_ops_norm_fused(e->t, x, rows, width, w);
    return hb_ops_norm(e->t, x, rows, w);
}

/* q, k = f(q), f(k): both old ones go once both new ones are there. */
static void norm_heads(struct hb_titan_layer *l, uint32_t *q, uint32_t *k)
{
    const struct hb_attention *a = &l->block->attention;
    struct hb_tape *t = l->e->t;
    if (a->qk_norm == HB_QKN_NONE)
        return;
    int64_t heads = a->heads / l->e->ways, own = hb_div_up(a->kv_heads, l->e->ways);
    uint32_t nq = norm(l->e, *q, l->e->tokens * heads, a->head_dim, l->by_role[HB_TITAN_W_QN]);
    uint32_t nk = norm(l->e, *k, l->e->tokens * own, a->head_dim, l->by_role[HB_TITAN_W_KN]);
    replace(t, k, nk);
    replace(t, q, nq);
}

/* Products side by side, or one that views are taken of. */
static void project(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept, uint32_t out[3])
{
    static const struct {
        int role;
        const char *name;
    } told[] = {{HB_TITAN_W_Q, "q"}, {HB_TITAN_W_K, "k"}, {HB_TITAN_W_V, "v"}};
    const struct hb_attention *a = &l->block->attention;
    struct hb_tape *t = l->e->t;
    if (!a->fused_qkv) {
        for (int i = 0; i < 3; i++)
            out[i] = hb_ops_linear(t, x, hb_titan_linear(l, told[i].role, told[i].name, kept));
        return;
    }
    int64_t head = hb_tape_size(t, l->e->tokens, a->head_dim, t->width);
    int64_t own = hb_div_up(a->kv_heads, l->e->ways) * head;
    const int64_t bytes[] = {a->heads / l->e->ways * head, own, own};
    uint32_t all = hb_ops_linear(t, x, hb_titan_linear(l, HB_TITAN_W_QKV, "q, k, v", kept));
    if (a->sinks)
        hb_titan_copy_apart(t, all, out, bytes);
    else
        hb_ops_split(t, all, out, bytes, 3);
    hb_tape_drop_value(t, all);
}

static uint32_t dropped_out(struct hb_titan_layer *l, uint32_t x)
{
    const struct hb_titan *e = l->e;
    if (l->block->dropout == 0)
        return x;
    uint32_t out = hb_ops_dropout(e->t, x, hb_tape_size(e->t, e->rows, e->spec->model.d_model, 1));
    hb_tape_drop_value(e->t, x);
    return out;
}

static uint32_t run_heads(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept)
{
    const struct hb_attention *a = &l->block->attention;
    struct hb_tape *t = l->e->t;
    int64_t own = hb_div_up(a->kv_heads, l->e->ways);
    uint32_t qkv[3];
    project(l, x, kept, qkv);
    if (a->sinks)
        return hb_titan_run_sinks(l, qkv, kept);
    uint32_t q = qkv[0], k = qkv[1], v = qkv[2];
    norm_heads(l, &q, &k);
    uint32_t rq = rotate(l, q, "q after rope"), rk = rotate(l, k, "k after rope");
    replace(t, &k, rk);
    replace(t, &q, rq);
    if (a->heads != a->kv_heads) {
        int64_t times = a->heads / a->kv_heads;
        replace(t, &k, hb_ops_repeat(t, k, times, own == 1, "k repeated"));
        replace(t, &v, hb_ops_repeat(t, v, times, own == 1, "v repeated"));
    }
    const struct hb_sharding *s = &l->e->spec->sharding;
    bool keeps = !kept || !kept->names || hb_knapsack_keeps_attention(kept->names);
    uint32_t o = hb_ops_sdpa(t, (struct hb_sdpa){.q = q,
                                                 .k = k,
                                                 .v = v,
                                                 .rows = l->e->tokens,
                                                 .heads = a->heads / l->e->ways,
                                                 .width = a->head_dim,
                                                 .kept = keeps ? kept : NULL,
                                                 .ways = l->e->spec->mesh[HB_AX_SEQUENCE],
                                                 .gathers = s->sequence_kind == HB_SEQ_ALL_GATHER,
                                                 .balanced = s->sequence_balance});
    uint32_t out =
        hb_ops_linear(t, o, hb_titan_linear(l, HB_TITAN_W_O, "attention projected", kept));
    if (l->e->ways > 1) {
        uint32_t part = hb_ops_scatter(t, out, l->e->gather, kept);
        replace(t, &out, part);
    }
    out = dropped_out(l, out);
    hb_titan_note_module(l->e);
    hb_tape_drop_value(t, q);
    hb_tape_drop_value(t, k);
    hb_tape_drop_value(t, v);
    hb_tape_drop_value(t, o);
    return out;
}

/* What attention's names hold until it returns. */
struct latent {
    uint32_t q, plain_q, turned_q; /* plain: the part that rope does not turn */
    uint32_t k, plain_k, turned_k;
    uint32_t kv, v;
};

/* Bytes of so many elements of each head. */
static int64_t by_head(const struct hb_titan_layer *l, int64_t width)
{
    const struct hb_titan *e = l->e;
    return hb_tape_size(e->t, hb_mul_sat(e->tokens, l->block->attention.heads), width, e->t->width);
}

static void run_latent_q(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept,
                         struct latent *v)
{
    const struct hb_attention *a = &l->block->attention;
    struct hb_tape *t = l->e->t;
    const int64_t bytes[] = {by_head(l, a->qk_nope_head_dim), by_head(l, a->qk_rope_head_dim)};
    uint32_t parts[2], low = HB_NONE, normal = x;
    if (a->q_lora_rank) {
        low = hb_ops_linear(t, x, hb_titan_linear(l, HB_TITAN_W_Q_DOWN, "low rank of q", kept));
        normal = norm(l->e, low, l->e->tokens, a->q_lora_rank, l->by_role[HB_TITAN_W_QN]);
    }
    uint32_t q = hb_ops_linear(t, normal, hb_titan_linear(l, HB_TITAN_W_Q, "q", kept));
    if (a->q_lora_rank)
        hb_titan_drop_both(t, low, normal);
    hb_ops_split(t, q, parts, bytes, 2);
    v->plain_q = parts[0];
    v->turned_q = rotate(l, parts[1], "part of q after rope");
    hb_tape_drop_value(t, parts[1]);
    v->q = hb_ops_cat(t, v->plain_q, v->turned_q, bytes[0] + bytes[1], "q, whole");
    hb_tape_drop_value(t, q);
}

static void run_latent_kv(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept,
                          struct latent *v)
{
    const struct hb_attention *a = &l->block->attention;
    struct hb_tape *t = l->e->t;
    int64_t token = hb_tape_size(t, l->e->tokens, t->width, 1);
    const int64_t low_bytes[] = {hb_tape_size(t, token, a->kv_lora_rank, 1),
                                 hb_tape_size(t, token, a->qk_rope_head_dim, 1)};
    const int64_t bytes[] = {by_head(l, a->qk_nope_head_dim), by_head(l, a->v_head_dim)};
    uint32_t low[2], parts[2];
    uint32_t both =
        hb_ops_linear(t, x, hb_titan_linear(l, HB_TITAN_W_KV_DOWN, "low rank of k and v", kept));
    hb_ops_split(t, both, low, low_bytes, 2);
    hb_tape_drop_value(t, both);
    v->turned_k = rotate(l, low[1], "part of k after rope");
    hb_tape_drop_value(t, low[1]);
    uint32_t normal = norm(l->e, low[0], l->e->tokens, a->kv_lora_rank, l->by_role[HB_TITAN_W_KN]);
    v->kv = hb_ops_linear(t, normal, hb_titan_linear(l, HB_TITAN_W_KV_UP, "k and v", kept));
    hb_titan_drop_both(t, low[0], normal);
    hb_ops_split(t, v->kv, parts, bytes, 2);
    v->plain_k = parts[0];
    v->v = parts[1];
    uint32_t each = hb_ops_repeat(t, v->turned_k, a->heads, true, "");
    v->k = hb_ops_cat(t, v->plain_k, each, bytes[0] + by_head(l, a->qk_rope_head_dim), "k, whole");
    hb_tape_drop_value(t, each);
}

/* DeepSeek's (torchtitan/models/deepseek_v3/model: Attention). Heads of q and k are wider than v's,
 * so no kernel of flash attention takes them; memory-efficient attention and cuDNN's keep the same.
 */
static uint32_t run_latent(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept)
{
    const struct hb_attention *a = &l->block->attention;
    struct hb_tape *t = l->e->t;
    struct latent v;
    run_latent_q(l, x, kept, &v);
    run_latent_kv(l, x, kept, &v);
    uint32_t o = hb_ops_sdpa(t, (struct hb_sdpa){.q = v.q,
                                                 .k = v.k,
                                                 .v = v.v,
                                                 .rows = l->e->tokens,
                                                 .heads = a->heads,
                                                 .width = a->qk_nope_head_dim + a->qk_rope_head_dim,
                                                 .v_width = a->v_head_dim,
                                                 .kept = kept});
    uint32_t out =
        hb_ops_linear(t, o, hb_titan_linear(l, HB_TITAN_W_O, "attention projected", kept));
    const uint32_t names[] = {v.q, v.plain_q, v.turned_q, v.k, v.plain_k, v.turned_k, v.kv, v.v, o};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        hb_tape_drop_value(t, names[i]);
    return out;
}

static uint32_t run_attention(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept)
{
    hb_zero3_enter_plain(l->e->zero3);
    if (l->block->attention.kind == HB_ATTN_MLA)
        return run_latent(l, x, kept);
    return run_heads(l, x, kept);
}

bool hb_titan_is_layernorm(const struct hb_titan_layer *l)
{
    return l->block->norm == HB_NORM_LAYER;
}

static uint32_t normed(struct hb_titan_layer *l, uint32_t x, int role)
{
    struct hb_titan *e = l->e;
    if (hb_titan_is_layernorm(l))
        return hb_ops_layernorm(e->t, x, e->rows, l->by_role[role]);
    return norm(e, x, e->rows, e->spec->model.d_model, l->by_role[role]);
}

/* Of what goes to the residual, where the block says so. left_out: of a layer that is run again,
 * whose last value nobody reads. */
static uint32_t post_normed(struct hb_titan_layer *l, uint32_t x, int role, bool left_out)
{
    uint32_t out = x;
    if (!l->block->post_norm)
        return x;
    if (left_out && !hb_titan_is_fused(l->e))
        out = hb_ops_norm_left_out(l->e->t, x, l->e->rows, l->by_role[role]);
    else
        out = normed(l, x, role);
    hb_tape_drop_value(l->e->t, x);
    return out;
}

struct hb_gather hb_titan_gather(const struct hb_titan_layer *l)
{
    if (!l->block->moe.experts)
        return l->e->gather;
    return (struct hb_gather){l->e->ways, true, true}; /* of all sequences' tokens in one row */
}

uint32_t hb_titan_gathered(struct hb_titan *e, uint32_t x)
{
    return e->ways > 1 ? hb_ops_gather(e->t, x, e->gather) : x;
}

void hb_titan_drop_both(struct hb_tape *t, uint32_t a, uint32_t b)
{
    if (a != b)
        hb_tape_drop_value(t, a);
    hb_tape_drop_value(t, b);
}

void hb_titan_hold_last(struct hb_titan_layer *l, int role)
{
    struct hb_tape *t = l->e->t;
    if (t->grad)
        hb_tape_hold_under(t, t->node_count - 1, l->by_role[role]);
}

static uint32_t run_plain_mlp(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept)
{
    struct hb_tape *t = l->e->t;
    uint32_t up = hb_ops_linear(t, x, hb_titan_linear(l, HB_TITAN_W_UP, "mlp up", kept));
    uint32_t act = hb_ops_activation(t, up, HB_GELU);
    hb_titan_hold_last(l, HB_TITAN_W_DOWN);
    hb_tape_drop_value(t, up);
    return act;
}

/* Up to the product that the last weight takes. */
static uint32_t run_mlp(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept)
{
    struct hb_tape *t = l->e->t;
    hb_zero3_enter_plain(l->e->zero3);
    if (!l->by_role[HB_TITAN_W_GATE])
        return run_plain_mlp(l, x, kept);
    uint32_t gate = hb_ops_linear(t, x, hb_titan_linear(l, HB_TITAN_W_GATE, "mlp gate", kept));
    if (l->e->spec->runtime.compile) {
        uint32_t other = hb_ops_linear(t, x, hb_titan_linear(l, HB_TITAN_W_UP, "mlp up", kept));
        uint32_t both = hb_ops_gated_fused(t, gate, other);
        hb_tape_drop_value(t, gate);
        hb_tape_drop_value(t, other);
        return both;
    }
    hb_zero3_enter_plain(l->e->zero3); /* the activation */
    uint32_t act = hb_ops_activation(t, gate, HB_SILU);
    hb_titan_hold_last(l, HB_TITAN_W_DOWN);
    hb_titan_note_module(l->e);
    hb_tape_drop_value(t, gate);
    uint32_t up = hb_ops_linear(t, x, hb_titan_linear(l, HB_TITAN_W_UP, "mlp up", kept));
    uint32_t product = hb_ops_mul(t, act, up);
    hb_titan_hold_last(l, HB_TITAN_W_DOWN);
    hb_tape_drop_value(t, act);
    hb_tape_drop_value(t, up);
    return product;
}

/* A compiled layer's output is no one's to read: it keeps it not (torchao's 8B on eight H100, bf16,
 * every second product: +4.1 % with it, 0 without). */
uint32_t hb_titan_run_mlp(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept, bool again)
{
    struct hb_tape *t = l->e->t;
    uint32_t product = run_mlp(l, x, kept), down;
    if (again)
        down = hb_ops_linear_left_out(t, product,
                                      hb_titan_linear(l, HB_TITAN_W_DOWN, "mlp down", NULL));
    else
        down = hb_ops_linear(t, product,
                             hb_titan_linear(l, HB_TITAN_W_DOWN, "mlp down",
                                             l->e->spec->runtime.compile ? NULL : kept));
    if (!again)
        hb_titan_note_module(l->e);
    if (!again && l->e->ways > 1)
        replace(t, &down, hb_ops_scatter(t, down, hb_titan_gather(l), kept));
    hb_tape_drop_value(t, product);
    return dropped_out(l, down);
}

/* Its last op is the MLP's second product, which keeps nothing of what comes of it. */
static bool ends_with_product(const struct hb_titan_layer *l)
{
    return !l->block->post_norm && l->block->dropout == 0;
}

/* run: null, or what the pass keeps. */
static void issue_layer(struct hb_titan_layer *l, struct hb_titan_run *run, bool again)
{
    struct hb_tape *t = l->e->t;
    struct hb_kept *kept = run && l->mode == HB_TITAN_OPS ? &run->kept : NULL;
    if (kept) {
        kept->again = again;
        kept->names = hb_knapsack_has_names(l->e->spec, &l->remat) ? &l->remat : NULL;
        kept->next = kept->products = 0;
    }
    hb_zero3_enter_plain(l->e->zero3);
    uint32_t x = normed(l, l->in, HB_TITAN_W_NORM1), whole = hb_titan_gathered(l->e, x);
    uint32_t attn = run_attention(l, whole, kept);
    hb_titan_drop_both(t, whole, x);
    attn = post_normed(l, attn, HB_TITAN_W_POST1, false);
    l->half = hb_ops_add(t, l->in, attn);
    hb_tape_drop_value(t, attn);
    x = normed(l, l->half, HB_TITAN_W_NORM2);
    whole = l->block->moe.experts ? x : hb_titan_gathered(l->e, x);
    l->last = l->block->moe.experts
                  ? hb_titan_run_experts(l, x, kept, again)
                  : hb_titan_run_mlp(l, whole, kept, again && ends_with_product(l));
    hb_titan_drop_both(t, whole, x);
    l->last = post_normed(l, l->last, HB_TITAN_W_POST2, again);
    if (!again)
        l->out = hb_ops_add(t, l->half, l->last);
    hb_tape_drop_value(t, l->last);
    hb_tape_drop_value(t, l->half);
}

/* Its ops are the same for each microbatch: weights have no copies, nothing kept is taken again,
 * and what experts and sinks hold beyond values is not moved with these. */
static bool comes_again(const struct hb_titan_layer *l)
{
    const struct hb_titan *e = l->e;
    return e->pipeline.ranks > 1 && !e->t->autocast && !e->zero3 && l->mode != HB_TITAN_OPS &&
           !l->block->moe.experts && !l->block->attention.sinks;
}

struct hb_reel *hb_titan_find_reel(struct hb_titan_layer *l, uint32_t pass)
{
    return comes_again(l) ? hb_reels_find(l->e->t, &l->reels, (int)pass, l->in) : NULL;
}

void hb_titan_run_ops(struct hb_titan_layer *l, struct hb_titan_run *run, bool again)
{
    struct hb_tape *t = l->e->t;
    struct hb_reel *reel = hb_titan_find_reel(l, again ? HB_TITAN_AGAIN : HB_TITAN_FORWARD);
    uint32_t made[HB_REEL_MARKS] = {l->out, l->half, l->last};
    if (reel && hb_reel_is_new(reel)) {
        hb_reel_begin(t, reel, l->in);
        issue_layer(l, run, again);
        made[0] = again ? HB_NONE : l->out;
        made[1] = l->half;
        made[2] = l->last;
        hb_reel_end(t, reel, made);
    } else if (!reel || !hb_reel_play(t, reel, l->in, made)) {
        issue_layer(l, run, again);
    } else {
        l->out = made[0];
        l->half = made[1];
        l->last = made[2];
    }
}

static void back_before(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_titan_layer *l = (struct hb_titan_layer *)(uintptr_t)n->thing;
    (void)t;
    (void)grad;
    hb_fsdp_before_backward(&l->e->fsdp, &l->unit, l->before);
    hb_zero3_enter_plain(l->e->zero3);
}

static void back_module(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_titan *e = (struct hb_titan *)(uintptr_t)n->thing;
    (void)t;
    (void)grad;
    hb_zero3_enter_plain(e->zero3);
}

void hb_titan_note_module(struct hb_titan *e)
{
    if (e->zero3)
        hb_titan_set_thing(hb_tape_node(e->t, back_module, HB_NONE), e);
}

static void back_after(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_titan_layer *l = (struct hb_titan_layer *)(uintptr_t)n->thing;
    (void)t;
    (void)grad;
    hb_fsdp_after_backward(&l->e->fsdp, &l->unit);
    if (l == &l->e->layers[l->e->layer_count - 1])
        hb_titan_mark(l->e, false, l->e->microbatch > 0);
    if (l == l->e->layers)
        hb_titan_mark(l->e, false, true);
}

/* --- inputs on the host --- */

/* A copy runs on a stream of its own while its source is held: no longer than until the fifth
 * tensor after it is copied (torchtune/training/_activation_offloading.py, max_fwd_stash_size). */
static void stash_input(struct hb_titan *e, uint32_t storage)
{
    if (e->stash_count == HB_TITAN_STASH)
        hb_titan_unstash(e, 1);
    hb_tape_hold(e->t, storage);
    e->stash[e->stash_count++] = storage;
}

void hb_titan_unstash(struct hb_titan *e, int count)
{
    int left = 0;
    for (int i = 0; i < e->stash_count; i++) {
        if (i < count)
            hb_tape_drop(e->t, e->stash[i]);
        else
            e->stash[left++] = e->stash[i];
    }
    e->stash_count = left;
}

void hb_titan_forget_copies(struct hb_titan_layer *l)
{
    for (int w = 0; w < l->unit.count; w++)
        hb_ops_forget_copy(l->e->t, &l->weights[w]);
}

void hb_titan_set_thing(struct hb_taped *n, const void *thing)
{
    if (n)
        n->thing = thing;
}

static void run_checkpointed(struct hb_titan_layer *l)
{
    struct hb_tape *t = l->e->t;
    struct hb_titan_run *run = hb_arena_alloc(t->arena, 1, sizeof *run);
    run->layer = l;
    t->grad = false;
    hb_titan_run_ops(l, run, false);
    t->grad = true;
    struct hb_taped *n = hb_tape_node(t, hb_titan_back_checkpoint, l->out);
    n->in[0] = l->in;
    n->thing = run;
    n->number[0] = hb_tape_bytes(t, t->values[l->in].storage);
    if (l->e->stash)
        stash_input(l->e, t->values[l->in].storage);
    else
        hb_tape_save(t, n, t->values[l->in].storage);
}

uint32_t hb_titan_run_layer(struct hb_titan_layer *l, uint32_t x)
{
    struct hb_tape *t = l->e->t;
    int64_t before = l->left_out ? hb_tape_held_bytes(t) : 0;
    t->where = l->unit.where;
    l->in = x;
    if (l == &l->e->layers[l->e->layer_count - 1])
        hb_titan_mark(l->e, true, l->e->microbatch > 0);
    hb_fsdp_before_forward(&l->e->fsdp, &l->unit);
    hb_titan_set_thing(hb_tape_node(t, back_after, HB_NONE), l);
    if (l->mode == HB_TITAN_PLAIN || l->e->fsdp.frozen)
        hb_titan_run_ops(l, NULL, false);
    else
        run_checkpointed(l);
    hb_titan_set_thing(hb_tape_node(t, back_before, HB_NONE), l);
    hb_fsdp_after_forward(&l->e->fsdp, &l->unit);
    hb_tape_drop_value(t, x);
    bool leaves = l->left_out && !(l->e->stash && l->mode != HB_TITAN_PLAIN);
    if (leaves) /* an input on its way to the host is not there for long */
        l->rest_bytes = hb_tape_held_bytes(t) - before;
    return l->out;
}
