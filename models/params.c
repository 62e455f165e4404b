/* Parameter counts: see params.h. Every sum saturates, so a model too large to count is seen in
 * its total. The rules were compared with the published weights of the model zoo
 * (tests/unit/test_zoo.c). */
#include "models/params.h"

#include <math.h>

#include "base/size.h"

static int64_t mul3(int64_t a, int64_t b, int64_t c)
{
    return hb_mul_sat(hb_mul_sat(a, b), c);
}

/* Weights of a norm over width elements: layernorm has a bias. */
static int64_t count_norm(enum hb_norm norm, int64_t width)
{
    return norm == HB_NORM_LAYER ? hb_mul_sat(2, width) : width;
}

/* DeepSeek-V2 (arXiv:2405.04434, section 2.1): low-rank q (or direct) and kv, each with a norm
 * of its rank; the rope part of the key is shared by the heads. */
static int64_t count_mla(int64_t d, const struct hb_attention *a)
{
    int64_t qk = hb_add_sat(a->qk_nope_head_dim, a->qk_rope_head_dim);
    int64_t nope_v = hb_add_sat(a->qk_nope_head_dim, a->v_head_dim);
    int64_t rank = a->q_lora_rank;
    int64_t sum =
        rank ? hb_add_sat(hb_mul_sat(d, rank), mul3(rank, a->heads, qk)) : mul3(d, a->heads, qk);
    sum = hb_add_sat(sum, hb_mul_sat(d, hb_add_sat(a->kv_lora_rank, a->qk_rope_head_dim)));
    sum = hb_add_sat(sum, mul3(a->kv_lora_rank, a->heads, nope_v));
    sum = hb_add_sat(sum, mul3(a->heads, a->v_head_dim, d));
    return hb_add_sat(sum, hb_add_sat(rank, a->kv_lora_rank));
}

static int64_t count_gqa(int64_t d, const struct hb_attention *a)
{
    int64_t q = hb_mul_sat(a->heads, a->head_dim);
    int64_t kv = mul3(2, a->kv_heads, a->head_dim);
    int64_t sum = hb_mul_sat(d, hb_add_sat(hb_mul_sat(2, q), kv));
    if (a->bias != HB_BIAS_NONE)
        sum = hb_add_sat(sum, hb_add_sat(q, kv));
    if (a->bias == HB_BIAS_ALL)
        sum = hb_add_sat(sum, d);
    if (a->qk_norm == HB_QKN_LEARNED)
        sum = hb_add_sat(sum, hb_mul_sat(2, a->head_dim));
    return sum;
}

int64_t hb_params_attention(const struct hb_model *model, const struct hb_block *block)
{
    const struct hb_attention *a = &block->attention;
    int64_t sum =
        a->kind == HB_ATTN_MLA ? count_mla(model->d_model, a) : count_gqa(model->d_model, a);
    return a->sinks ? hb_add_sat(sum, a->heads) : sum;
}

static int64_t count_mlp(int64_t d, int64_t d_ff, enum hb_mlp_kind kind, bool bias)
{
    if (!d_ff)
        return 0;
    int64_t ins = hb_mlp_is_gated(kind) ? 2 : 1;
    int64_t sum = mul3(ins + 1, d, d_ff);
    return bias ? hb_add_sat(sum, hb_add_sat(hb_mul_sat(ins, d_ff), d)) : sum;
}

int64_t hb_params_mlp(const struct hb_model *model, const struct hb_block *block)
{
    const struct hb_moe *m = &block->moe;
    if (m->experts)
        return count_mlp(model->d_model, m->shared_d_ff, m->kind, m->bias);
    return count_mlp(model->d_model, block->mlp.d_ff, block->mlp.kind, block->mlp.bias);
}

int64_t hb_params_expert(const struct hb_model *model, const struct hb_block *block)
{
    const struct hb_moe *m = &block->moe;
    return m->experts ? count_mlp(model->d_model, m->d_ff, m->kind, m->bias) : 0;
}

int64_t hb_params_router(const struct hb_model *model, const struct hb_block *block)
{
    const struct hb_moe *m = &block->moe;
    int64_t sum = hb_mul_sat(model->d_model, m->experts);
    return m->router_bias ? hb_add_sat(sum, m->experts) : sum;
}

int64_t hb_params_norms(const struct hb_model *model, const struct hb_block *block)
{
    return hb_mul_sat(block->post_norm ? 4 : 2, count_norm(block->norm, model->d_model));
}

int64_t hb_params_capacity(const struct hb_moe *moe, int64_t seq)
{
    double even = (double)seq * (double)moe->top_k / (double)moe->experts * moe->capacity_factor;
    return hb_round_up((int64_t)ceil(even - 1e-9), 4);
}

static void add_to(int64_t *sum, int64_t layers, int64_t each)
{
    *sum = hb_add_sat(*sum, hb_mul_sat(layers, each));
}

/* DeepSeek-V3 (arXiv:2412.19437, section 2.2): a layer, a 2 d -> d projection, a norm before
 * each half of its input and one before the shared head. */
static int64_t count_mtp(const struct hb_model *m, const struct hb_block *last)
{
    int64_t layer = hb_add_sat(hb_params_attention(m, last), hb_params_mlp(m, last));
    add_to(&layer, last->moe.experts, hb_params_expert(m, last));
    add_to(&layer, 1, hb_params_router(m, last));
    add_to(&layer, 1, hb_params_norms(m, last));
    add_to(&layer, 2, hb_mul_sat(m->d_model, m->d_model));
    add_to(&layer, 3, count_norm(last->norm, m->d_model));
    return hb_mul_sat(m->mtp, layer);
}

void hb_params_count(const struct hb_spec *spec, struct hb_params *out_params)
{
    const struct hb_model *m = &spec->model;
    struct hb_params p = {0};
    const struct hb_block *last = &m->blocks[m->block_count - 1];
    int64_t table = hb_mul_sat(m->vocab, m->d_model);
    int64_t active_experts = 0;
    p.embedding = hb_add_sat(table, hb_mul_sat(m->positions, m->d_model));
    p.head = m->tied_embeddings ? 0 : table;
    p.norm = count_norm(last->norm, m->d_model);
    for (int i = 0; i < m->block_count; i++) {
        const struct hb_block *b = &m->blocks[i];
        int64_t expert = hb_mul_sat(b->repeat, hb_params_expert(m, b));
        add_to(&p.attention, b->repeat, hb_params_attention(m, b));
        add_to(&p.mlp, b->repeat, hb_params_mlp(m, b));
        add_to(&p.router, b->repeat, hb_params_router(m, b));
        add_to(&p.norm, b->repeat, hb_params_norms(m, b));
        add_to(&p.experts, b->moe.experts, expert);
        add_to(&active_experts, b->moe.top_k, expert);
    }
    p.mtp = count_mtp(m, last);
    const int64_t shared[] = {p.embedding, p.head, p.attention, p.mlp, p.router, p.norm};
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
        sum = hb_add_sat(sum, shared[i]);
    p.active = hb_add_sat(sum, active_experts);
    p.total = hb_add_sat(hb_add_sat(sum, p.experts), p.mtp);
    *out_params = p;
}
