/* Names of tensors: see named.h. */
#include "models/named.h"

#include <string.h>

#include "base/arena.h"

#define BIT(name) (1u << HB_TN_##name)

uint32_t hb_named_tensors(const struct hb_block *b)
{
    const struct hb_attention *a = &b->attention;
    const struct hb_moe *moe = &b->moe;
    uint32_t all = (1u << HB_TN_COUNT) - 1;
    uint32_t masks = BIT(MOE_DISPATCH) | BIT(MOE_COMBINE),
             shared = BIT(SHARED_GATE) | BIT(SHARED_UP) | BIT(SHARED_DOWN);
    if (a->kind == HB_ATTN_NONE)
        all &= ~(BIT(Q) | BIT(K) | BIT(V) | BIT(QKV) | BIT(ATTN_CTX) | BIT(ATTN_OUT));
    if (!a->fused_qkv)
        all &= ~BIT(QKV);
    if (a->kind != HB_ATTN_MLA)
        all &= ~(BIT(MLA_Q) | BIT(MLA_KV));
    if (!hb_mlp_is_gated(moe->experts ? moe->kind : b->mlp.kind))
        all &= ~BIT(MLP_GATE);
    if (!moe->experts)
        return all & ~(masks | shared | BIT(MOE_SORTED) | BIT(MOE_OUT));
    if (!moe->shared_experts)
        all &= ~shared;
    return all & ~(moe->dispatch == HB_DISPATCH_EINSUM ? BIT(MOE_SORTED) : masks);
}

const struct hb_spec *hb_named_spec(struct hb_arena *arena, const struct hb_spec *spec)
{
    const struct hb_model *m = &spec->model;
    bool all = true;
    for (int i = 0; i < m->block_count; i++) {
        const struct hb_remat *r = &m->blocks[i].remat;
        all = all && !((r->save | r->offload) & ~hb_named_tensors(&m->blocks[i]));
    }
    if (all)
        return spec;
    struct hb_spec *own = hb_arena_alloc(arena, 1, sizeof *own);
    struct hb_block *blocks = hb_arena_alloc(arena, (size_t)m->block_count, sizeof *blocks);
    memcpy(blocks, m->blocks, (size_t)m->block_count * sizeof *blocks);
    for (int i = 0; i < m->block_count; i++) {
        uint32_t names = hb_named_tensors(&blocks[i]);
        blocks[i].remat.save &= names;
        blocks[i].remat.offload &= names;
    }
    *own = *spec;
    own->model.blocks = blocks;
    return own;
}
