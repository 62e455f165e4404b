/* Schedules: megatron/core/pipeline_parallel/schedules.py (get_pp_rank_microbatches: a rank's
 * warm-up is pp - rank - 1 forward passes, interleaved twice that and a group for each further
 * chunk; the alive set is the first warm-up + 1 of the order). Parameters start at multiples of 64
 * elements in their buffer (core/optimizer/param_layout.py), which is at most 0.1 % and left out.
 */
#include "sim/eager/mcore_plan.h"

#include "base/arena.h"
#include "base/size.h"
#include "sim/eager/actions.h"

const struct hb_block *hb_mcore_block(const struct hb_spec *spec, int64_t layer)
{
    const struct hb_model *m = &spec->model;
    for (int i = 0; i < m->block_count; i++) {
        if (layer < m->blocks[i].repeat)
            return &m->blocks[i];
        layer -= m->blocks[i].repeat;
    }
    return &m->blocks[m->block_count - 1];
}

static void place_chunks(struct hb_arena *arena, struct hb_mcore_plan *p)
{
    int64_t all = p->ranks * p->chunk_count;
    p->chunks = hb_arena_alloc(arena, (size_t)p->chunk_count, sizeof *p->chunks);
    for (int64_t i = 0; i < p->chunk_count; i++) {
        int64_t at = i * p->ranks + p->rank;
        p->chunks[i] = (struct hb_mcore_chunk){
            hb_stage_start(p->spec, at), hb_stage_start(p->spec, at + 1), at == 0, at == all - 1};
    }
}

/* --- schedule --- */

/* The k-th pass of one direction: groups of microbatches, chunk by chunk, backwards from the last.
 */
static struct hb_mcore_pass nth_pass(const struct hb_mcore_plan *p, int64_t group, int64_t k,
                                     bool backward)
{
    int64_t round = group * p->chunk_count;
    int64_t chunk = k % round / group;
    return (struct hb_mcore_pass){backward, backward ? p->chunk_count - 1 - chunk : chunk,
                                  k / round * group + k % group};
}

static int64_t warm_up(const struct hb_mcore_plan *p, int64_t group, int64_t total)
{
    int64_t behind = p->ranks - p->rank - 1, warm = behind;
    if (p->spec->pipeline.schedule == HB_SCHED_GPIPE)
        return total;
    if (p->chunk_count > 1)
        warm = 2 * behind + (p->chunk_count - 1) * group;
    return warm < total ? warm : total;
}

/* Steady passes repeat: two rounds of them are as many as more, except that GPipe has none. */
static int64_t passes_told(const struct hb_mcore_plan *p, int64_t group, int64_t warm,
                           int64_t total)
{
    int64_t round = group * p->chunk_count;
    int64_t enough = hb_round_up(warm, round) + 2 * round;
    return p->spec->pipeline.schedule == HB_SCHED_GPIPE || total < enough ? total : enough;
}

static void list_passes(struct hb_arena *arena, struct hb_mcore_plan *p)
{
    const struct hb_spec *s = p->spec;
    int64_t microbatches = s->batch.accumulate;
    if (p->ranks > 1)
        microbatches = hb_mul_sat(microbatches, s->pipeline.microbatches);
    int64_t group = s->pipeline.group ? s->pipeline.group : p->ranks;
    group = group < microbatches ? group : microbatches;
    if (p->chunk_count == 1 || microbatches % group != 0)
        group = p->chunk_count == 1 ? 1 : microbatches;
    int64_t total = microbatches * p->chunk_count, warm = warm_up(p, group, total);
    total = passes_told(p, group, warm, total);
    p->passes = hb_arena_alloc(arena, (size_t)total * 2, sizeof *p->passes);
    for (int64_t k = 0; k < total + warm; k++) {
        if (k < total)
            p->passes[p->pass_count++] = nth_pass(p, group, k, false);
        if (k >= warm)
            p->passes[p->pass_count++] = nth_pass(p, group, k - warm, true);
    }
}

/* --- parameters --- */

static int64_t split(const struct hb_mcore_plan *p, int64_t count)
{
    return hb_div_up(count, p->tp);
}

static int64_t norm_count(const struct hb_mcore_plan *p, const struct hb_block *b)
{
    return hb_mul_sat(p->spec->model.d_model, b->norm == HB_NORM_LAYER ? 2 : 1);
}

/* Elements of the attention's products. */
static int64_t attention_linear(const struct hb_mcore_plan *p, const struct hb_attention *a)
{
    int64_t d = p->spec->model.d_model;
    if (a->kind == HB_ATTN_MLA) {
        int64_t key = a->qk_nope_head_dim + a->qk_rope_head_dim;
        int64_t in = a->q_lora_rank ? a->q_lora_rank : d;
        int64_t up = hb_mul_sat(in * a->heads, key) +
                     hb_mul_sat(a->kv_lora_rank * a->heads, a->qk_nope_head_dim + a->v_head_dim) +
                     hb_mul_sat(d * a->heads, a->v_head_dim);
        return split(p, up) + d * (a->q_lora_rank + a->kv_lora_rank + a->qk_rope_head_dim);
    }
    int64_t out = (a->heads + 2 * a->kv_heads) * a->head_dim, in = a->heads * a->head_dim;
    return split(p, hb_mul_sat(d, out)) + split(p, hb_mul_sat(in, d));
}

static int64_t attention_count(const struct hb_mcore_plan *p, const struct hb_block *b)
{
    const struct hb_attention *a = &b->attention;
    int64_t sum = attention_linear(p, a);
    if (a->kind == HB_ATTN_MLA)
        return sum + a->q_lora_rank + a->kv_lora_rank;
    if (a->bias != HB_BIAS_NONE)
        sum += split(p, (a->heads + 2 * a->kv_heads) * a->head_dim) +
               (a->bias == HB_BIAS_ALL ? p->spec->model.d_model : 0);
    return sum + (a->qk_norm != HB_QKN_NONE ? 2 * a->head_dim : 0);
}

static int64_t mlp_linear(const struct hb_mcore_plan *p, enum hb_mlp_kind kind, int64_t ff)
{
    return split(p, hb_mul_sat(p->spec->model.d_model, (hb_mlp_is_gated(kind) ? 3 : 2) * ff));
}

static int64_t mlp_count(const struct hb_mcore_plan *p, const struct hb_mlp *m, int64_t ff)
{
    int64_t first = hb_mlp_is_gated(m->kind) ? 2 * ff : ff, sum = mlp_linear(p, m->kind, ff);
    return m->bias ? sum + split(p, first) + p->spec->model.d_model : sum;
}

static int64_t count_expert(const struct hb_mcore_plan *p, const struct hb_block *b)
{
    int64_t one =
        hb_mul_sat(p->spec->model.d_model * b->moe.d_ff, hb_mlp_is_gated(b->moe.kind) ? 3 : 2);
    return hb_mul_sat(hb_div_up(b->moe.experts, p->ep), hb_div_up(one, p->etp));
}

/* Elements of the products of a layer: those that compute in 8 bits where any do. */
static int64_t linear_count(const struct hb_mcore_plan *p, const struct hb_block *b)
{
    int64_t sum = attention_linear(p, &b->attention);
    if (!b->moe.experts)
        return sum + mlp_linear(p, b->mlp.kind, b->mlp.d_ff);
    sum = hb_add_sat(sum, count_expert(p, b));
    return b->moe.shared_d_ff ? sum + mlp_linear(p, b->moe.kind, b->moe.shared_d_ff) : sum;
}

static int64_t count_dense(const struct hb_mcore_plan *p, const struct hb_block *b)
{
    int64_t sum = attention_count(p, b) + 2 * norm_count(p, b);
    if (!b->moe.experts)
        return sum + mlp_count(p, &b->mlp, b->mlp.d_ff);
    struct hb_mlp shared = {.kind = b->moe.kind};
    sum += hb_mul_sat(b->moe.experts, p->spec->model.d_model);
    return b->moe.shared_d_ff ? sum + mlp_count(p, &shared, b->moe.shared_d_ff) : sum;
}

int64_t hb_mcore_table_count(const struct hb_mcore_plan *p)
{
    return hb_mul_sat(hb_div_up(p->spec->model.vocab, p->tp), p->spec->model.d_model);
}

static const struct hb_block *last_block(const struct hb_mcore_plan *p)
{
    return &p->spec->model.blocks[p->spec->model.block_count - 1];
}

/* The product of a depth of multi-token prediction that takes embedding and hidden states. */
static int64_t joint_count(const struct hb_mcore_plan *p)
{
    return split(p, hb_mul_sat(2 * p->spec->model.d_model, p->spec->model.d_model));
}

/* Of all depths: each has a layer, the product before it and three norms; a stage that has no
 * embedding has a copy of it for them. */
static int64_t depths_count(const struct hb_mcore_plan *p)
{
    const struct hb_block *b = last_block(p);
    const struct hb_model *m = &p->spec->model;
    int64_t one = count_dense(p, b) + 3 * norm_count(p, b) + joint_count(p);
    bool copies = m->mtp > 0 && p->ranks > 1 && !m->tied_embeddings;
    return hb_add_sat(hb_mul_sat(m->mtp, one), copies ? hb_mcore_table_count(p) : 0);
}

static int64_t ends_count(const struct hb_mcore_plan *p, const struct hb_mcore_chunk *c)
{
    const struct hb_model *m = &p->spec->model;
    int64_t sum = 0;
    if (c->embeds)
        sum += hb_mcore_table_count(p) + hb_mul_sat(m->positions, m->d_model);
    if (c->heads)
        sum += norm_count(p, last_block(p)) + depths_count(p);
    if (c->heads && !(m->tied_embeddings && p->ranks == 1))
        sum += hb_mcore_table_count(p);
    return sum;
}

/* Of the rank's layers, those of further depths among them. */
static int64_t sum_layers(const struct hb_mcore_plan *p,
                          int64_t (*count)(const struct hb_mcore_plan *, const struct hb_block *))
{
    int64_t sum = 0;
    for (int64_t i = 0; i < p->chunk_count; i++) {
        for (int64_t l = p->chunks[i].first; l < p->chunks[i].end; l++)
            sum = hb_add_sat(sum, count(p, hb_mcore_block(p->spec, l)));
        if (p->chunks[i].heads)
            sum = hb_add_sat(sum, hb_mul_sat(p->spec->model.mtp, count(p, last_block(p))));
    }
    return sum;
}

static bool has_head(const struct hb_mcore_plan *p)
{
    return p->chunks[p->chunk_count - 1].heads;
}

int64_t hb_mcore_rank_dense(const struct hb_mcore_plan *p)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < p->chunk_count; i++) {
        for (int64_t l = p->chunks[i].first; l < p->chunks[i].end; l++)
            sum = hb_add_sat(sum, count_dense(p, hb_mcore_block(p->spec, l)));
        sum = hb_add_sat(sum, ends_count(p, &p->chunks[i]));
    }
    return sum;
}

int64_t hb_mcore_rank_experts(const struct hb_mcore_plan *p)
{
    return sum_layers(p, count_expert);
}

int64_t hb_mcore_rank_linear(const struct hb_mcore_plan *p)
{
    int64_t more = has_head(p) ? hb_mul_sat(p->spec->model.mtp, joint_count(p)) : 0;
    return hb_add_sat(sum_layers(p, linear_count), more);
}

int64_t hb_mcore_expert_rows(const struct hb_mcore_plan *p, const struct hb_block *b)
{
    double factor = b->moe.pad_to_capacity ? b->moe.capacity_factor : 1;
    int64_t rows = hb_mul_sat(hb_mul_sat(p->tokens, b->moe.top_k), p->etp) / p->tp;
    return (int64_t)((double)rows * factor);
}

void hb_mcore_plan_make(struct hb_arena *arena, const struct hb_spec *spec, int64_t rank,
                        struct hb_mcore_plan *out)
{
    const int64_t *mesh = spec->mesh;
    int64_t batches = mesh[HB_AX_DATA] * mesh[HB_AX_FSDP] * mesh[HB_AX_EXPERT];
    *out = (struct hb_mcore_plan){.spec = spec, .rank = rank, .ranks = mesh[HB_AX_PIPELINE]};
    out->chunk_count = out->ranks > 1 ? spec->pipeline.repeats : 1;
    out->tp = mesh[HB_AX_TENSOR];
    out->sp = spec->sharding.residual_over_tensor ? out->tp : 1;
    out->etp = spec->sharding.expert_tensor ? spec->sharding.expert_tensor : out->tp;
    out->ep = mesh[HB_AX_EXPERT] * hb_div_up(out->tp, out->etp);
    out->replicas = batches * mesh[HB_AX_SEQUENCE];
    out->expert_replicas = hb_larger(1, out->replicas * out->tp / (out->ep * out->etp));
    int64_t parts = hb_mul_sat(batches, spec->batch.accumulate);
    if (out->ranks > 1)
        parts = hb_mul_sat(parts, spec->pipeline.microbatches);
    out->tokens = hb_mul_sat(hb_div_up(spec->batch.global, parts),
                             hb_div_up(spec->batch.seq, mesh[HB_AX_SEQUENCE]));
    place_chunks(arena, out);
    list_passes(arena, out);
}
