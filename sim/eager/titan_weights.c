/* See titan_parts.h: the weights of a layer, in the order of its modules' parameters. */
#include "base/size.h"
#include "sim/eager/titan.h"
#include "sim/eager/titan_parts.h"

static void add_weight(struct hb_titan_layer *l, int role, const char *name, int64_t rows,
                       int64_t cols)
{
    struct hb_weight *w = &l->weights[l->unit.count++];
    *w = hb_ops_weight(name, rows, cols);
    w->narrow = cols > 1 && role != HB_TITAN_W_ROUTER; /* no norm's */
    l->by_role[role] = w;
}

/* Of the product of `of`, one op with it. */
static void add_bias(struct hb_titan_layer *l, int of, int role, const char *name)
{
    add_weight(l, role, name, l->by_role[of]->rows, 1);
    l->by_role[of]->bias = l->by_role[role];
}

/* bias: the role of LayerNorm's; -1: an RMSNorm has none. */
static void add_norm(struct hb_titan_layer *l, int role, int bias, const char *name)
{
    add_weight(l, role, name, l->e->spec->model.d_model, 1);
    if (bias >= 0)
        add_bias(l, role, bias, "bias of a norm");
}

static void add_gated(struct hb_titan_layer *l, int64_t ff)
{
    int64_t d = l->e->spec->model.d_model;
    add_weight(l, HB_TITAN_W_GATE, "w_gate", ff, d);
    add_weight(l, HB_TITAN_W_DOWN, "w_down", d, ff);
    add_weight(l, HB_TITAN_W_UP, "w_up", ff, d);
}

static void add_mlp(struct hb_titan_layer *l)
{
    const struct hb_mlp *m = &l->block->mlp;
    int64_t d = l->e->spec->model.d_model, ff = hb_div_up(m->d_ff, l->e->ways);
    if (hb_mlp_is_gated(l->block->mlp.kind)) {
        add_gated(l, ff);
        return;
    }
    add_weight(l, HB_TITAN_W_UP, "w_up", ff, d);
    if (m->bias)
        add_bias(l, HB_TITAN_W_UP, HB_TITAN_W_UPB, "bias of mlp up");
    add_weight(l, HB_TITAN_W_DOWN, "w_down", d, ff);
    if (m->bias)
        add_bias(l, HB_TITAN_W_DOWN, HB_TITAN_W_DOWNB, "bias of mlp down");
}

int64_t hb_titan_own_experts(const struct hb_titan_layer *l)
{
    return hb_div_up(l->block->moe.experts, hb_titan_expert_ways(l->e->spec));
}

int64_t hb_titan_expert_width(const struct hb_titan_layer *l)
{
    return l->parted ? hb_div_up(l->block->moe.d_ff, l->e->ways) : l->block->moe.d_ff;
}

int hb_titan_expert_weights(const struct hb_moe *m)
{
    return m->bias ? 4 : 3;
}

/* The weight is [experts, second, third]. */
struct expert_weight {
    int role;
    const char *name;
    int64_t second, third;
};

/* With biases gate and up are one (models/gpt_oss/moe.py). */
static struct expert_weight expert_weight(const struct hb_moe *m, int at, int64_t d, int64_t ff)
{
    const struct expert_weight plain[] = {
        {HB_TITAN_W_EXPERT_GATE, "experts' w_gate", ff, d},
        {HB_TITAN_W_EXPERT_DOWN, "experts' w_down", d, ff},
        {HB_TITAN_W_EXPERT_UP, "experts' w_up", ff, d},
    };
    const struct expert_weight biased[] = {
        {HB_TITAN_W_EXPERT_GATE, "experts' w_gate and w_up", 2 * ff, d},
        {HB_TITAN_W_EXPERT_GATEB, "experts' bias of gate and up", 2 * ff, 1},
        {HB_TITAN_W_EXPERT_DOWN, "experts' w_down", d, ff},
        {HB_TITAN_W_EXPERT_DOWNB, "experts' bias of down", d, 1},
    };
    return m->bias ? biased[at] : plain[at];
}

/* Of all of a rank's experts in one: split over its ranks by expert where there are enough of them,
 * else along the next dimension (torchtitan/distributed/fsdp.py, which counts the mesh's replicas
 * with the ranks where experts are not sent to). */
static void add_experts(struct hb_titan_layer *l)
{
    const struct hb_moe *m = &l->block->moe;
    int64_t d = l->e->spec->model.d_model, own = hb_titan_own_experts(l);
    int64_t ranks = l->e->fsdp.ranks / (l->sends ? l->e->spec->mesh[HB_AX_EXPERT] : 1);
    int64_t ff = hb_titan_expert_width(l);
    int64_t counted = l->sends ? hb_titan_expert_ways(l->e->spec) : l->e->spec->mesh[HB_AX_DATA];
    bool across = hb_mul_sat(ranks, counted) > m->experts;
    for (int i = 0; i < hb_titan_expert_weights(m); i++) {
        struct expert_weight told = expert_weight(m, i, d, ff);
        int64_t rows = across ? told.second : own;
        int64_t cols = hb_tape_size(l->e->t, across ? own : told.second, told.third, 1);
        struct hb_weight w = hb_ops_weight(told.name, rows, cols);
        w.across = across;
        if (l->sends) {
            w.ranks = ranks;
            w.late = true;
            l->expert_weights[i] = w;
            l->by_role[told.role] = &l->expert_weights[i];
            continue;
        }
        l->by_role[told.role] = &l->weights[l->unit.count];
        l->weights[l->unit.count++] = w;
    }
}

static void add_projections(struct hb_titan_layer *l)
{
    static const struct {
        int role, bias;
        const char *name, *bias_name;
    } told[] = {{HB_TITAN_W_Q, HB_TITAN_W_QB, "w_q", "bias of q"},
                {HB_TITAN_W_K, HB_TITAN_W_KB, "w_k", "bias of k"},
                {HB_TITAN_W_V, HB_TITAN_W_VB, "w_v", "bias of v"},
                {HB_TITAN_W_QKV, HB_TITAN_W_QKVB, "w_qkv", "bias of q, k, v"}};
    const struct hb_attention *a = &l->block->attention;
    int64_t d = l->e->spec->model.d_model, q = a->heads * a->head_dim / l->e->ways;
    int64_t kv = hb_div_up(a->kv_heads, l->e->ways) * a->head_dim;
    const int64_t rows[] = {q, kv, kv, q + 2 * kv};
    for (int i = a->fused_qkv ? 3 : 0; i < (a->fused_qkv ? 4 : 3); i++) {
        add_weight(l, told[i].role, told[i].name, rows[i], d);
        if (a->bias != HB_BIAS_NONE)
            add_bias(l, told[i].role, told[i].bias, told[i].bias_name);
    }
    add_weight(l, HB_TITAN_W_O, "w_o", d, q);
    if (a->bias == HB_BIAS_ALL)
        add_bias(l, HB_TITAN_W_O, HB_TITAN_W_OB, "bias of attention's output");
    if (a->sinks)
        add_weight(l, HB_TITAN_W_SINKS, "sinks", a->heads, 1);
    if (a->qk_norm != HB_QKN_NONE) {
        add_weight(l, HB_TITAN_W_QN, "norm of q", a->head_dim, 1);
        add_weight(l, HB_TITAN_W_KN, "norm of k", a->head_dim, 1);
    }
}

/* torchtitan/models/deepseek_v3: q by a low rank or at once, keys and values by one. */
static void add_latent(struct hb_titan_layer *l)
{
    const struct hb_attention *a = &l->block->attention;
    int64_t d = l->e->spec->model.d_model, r = a->q_lora_rank, kv = a->kv_lora_rank;
    int64_t q = a->heads * (a->qk_nope_head_dim + a->qk_rope_head_dim);
    if (r) {
        add_weight(l, HB_TITAN_W_Q_DOWN, "w_q, down", r, d);
        add_weight(l, HB_TITAN_W_QN, "norm of q", r, 1);
    }
    add_weight(l, HB_TITAN_W_Q, "w_q", q, r ? r : d);
    add_weight(l, HB_TITAN_W_KV_DOWN, "w_kv, down", kv + a->qk_rope_head_dim, d);
    add_weight(l, HB_TITAN_W_KN, "norm of k and v", kv, 1);
    add_weight(l, HB_TITAN_W_KV_UP, "w_kv, up", a->heads * (a->qk_nope_head_dim + a->v_head_dim),
               kv);
    add_weight(l, HB_TITAN_W_O, "w_o", d, a->heads * a->v_head_dim);
}

static void add_mixture(struct hb_titan_layer *l)
{
    const struct hb_moe *m = &l->block->moe;
    add_experts(l);
    add_weight(l, HB_TITAN_W_ROUTER, "router", m->experts, l->e->spec->model.d_model);
    if (m->bias)
        add_bias(l, HB_TITAN_W_ROUTER, HB_TITAN_W_ROUTERB, "bias of the router");
    if (m->shared_d_ff)
        add_gated(l, hb_div_up(m->shared_d_ff, l->e->ways));
}

static void add_plain_norms(struct hb_titan_layer *l)
{
    add_norm(l, HB_TITAN_W_NORM1, -1, "norm before attention");
    add_norm(l, HB_TITAN_W_NORM2, -1, "norm before mlp");
}

/* GPT-2 has each norm before what it is for, torchtitan's models all behind, gpt-oss between. */
void hb_titan_add_weights(struct hb_titan_layer *l)
{
    bool before = l->block->norm == HB_NORM_LAYER;
    if (before)
        add_norm(l, HB_TITAN_W_NORM1, HB_TITAN_W_NORM1B, "norm before attention");
    if (l->block->attention.kind == HB_ATTN_MLA)
        add_latent(l);
    else
        add_projections(l);
    if (before)
        add_norm(l, HB_TITAN_W_NORM2, HB_TITAN_W_NORM2B, "norm before mlp");
    bool between = l->block->attention.sinks;
    if (between)
        add_plain_norms(l);
    if (l->block->moe.experts)
        add_mixture(l);
    else
        add_mlp(l);
    if (before || between)
        return;
    add_plain_norms(l);
    if (!l->block->post_norm)
        return;
    add_norm(l, HB_TITAN_W_POST1, -1, "norm after attention");
    add_norm(l, HB_TITAN_W_POST2, -1, "norm after mlp");
}
