/* MaxText at e591f30 (August 2026): Decoder.get_remat_policy of layers/decoders.py,
 * get_save_and_offload_names of utils/maxtext_utils.py, and the keys of configs/base.yml. With
 * experts, layers/moe.py gives the first product of an expert both names mlpwi_0 and moe_mlpwi_0,
 * the second moe_mlpwi_1 alone where its rows are ragged, the sum both mlpwo and moe_mlpwo. */
#include "models/maxtext.h"

#include <stddef.h>

#include "base/str.h"

#define BIT(name) (1u << HB_TN_##name)

const struct hb_maxtext_tensor hb_maxtext_tensors[HB_MAXTEXT_TENSORS] = {
    {"decoder_layer_input", BIT(LAYER_IN), BIT(LAYER_IN)},
    {"query_proj", BIT(Q), BIT(Q)},
    {"key_proj", BIT(K), BIT(K)},
    {"value_proj", BIT(V), BIT(V)},
    {"kv_proj", 0, 0},
    {"qkv_proj", BIT(QKV), BIT(QKV)},
    {"query_wa_proj", 0, 0},
    {"kv_wa_proj", 0, 0},
    {"mla_q", BIT(MLA_Q), BIT(MLA_Q)},
    {"mla_kv", BIT(MLA_KV), BIT(MLA_KV)},
    {"context", BIT(ATTN_CTX), BIT(ATTN_CTX)},
    {"attention_out", 0, 0},
    {"out_proj", BIT(ATTN_OUT), BIT(ATTN_OUT)},
    {"mlpwi", 0, 0},
    {"mlpwi_0", BIT(MLP_GATE), BIT(MLP_GATE) | BIT(SHARED_GATE)},
    {"mlpwi_1", BIT(MLP_UP), BIT(SHARED_UP)},
    {"mlpwo", BIT(MLP_DOWN), BIT(MOE_OUT) | BIT(SHARED_DOWN)},
    {"moe_mlpwi_0", 0, BIT(MLP_GATE)},
    {"moe_mlpwi_1", 0, BIT(MLP_UP)},
    {"moe_mlpwo", 0, BIT(MOE_OUT)},
    {"indexer_cutoff_threshold", 0, 0},
    {"engram", 0, 0},
    {"quantization", 0, 0},
};

#define QKV "query_proj", "value_proj", "key_proj", "kv_proj", "qkv_proj"
#define MLP "mlpwi_0", "mlpwi_1", "mlpwi", "mlpwo"
static const char *const none[] = {NULL};
static const char *const minimal[] = {QKV, "out_proj", MLP, NULL};
static const char *const minimal_context[] = {QKV, "out_proj", MLP, "context", NULL};
static const char *const except_mlp_context[] = {QKV, "context", "out_proj", NULL};
static const char *const except_mlpwi[] = {QKV, "out_proj", "mlpwo", NULL};
static const char *const except_mlp[] = {QKV, "out_proj", NULL};
static const char *const qkv[] = {QKV, NULL};
static const char *const qkv_offloaded[] = {"query_proj", "value_proj", "key_proj", "kv_proj",
                                            NULL};
static const char *const out[] = {"out_proj", NULL};

/* Where two keep the same, the first is the one that is written. */
const struct hb_maxtext_policy hb_maxtext_policies[HB_MAXTEXT_POLICIES] = {
    {"full", HB_POLICY_FULL, none, none},
    {"none", HB_POLICY_NONE, none, none},
    {"minimal", HB_POLICY_NAMES, minimal, none},
    {"minimal_with_context", HB_POLICY_NAMES, minimal_context, none},
    {"minimal_flash", HB_POLICY_NAMES, minimal_context, none},
    {"minimal_with_quantization", HB_POLICY_NAMES, minimal, none},
    {"save_dot_with_context_except_mlp", HB_POLICY_NAMES, except_mlp_context, none},
    {"save_dot_except_mlpwi", HB_POLICY_NAMES, except_mlpwi, none},
    {"save_dot_except_mlp", HB_POLICY_NAMES, except_mlp, none},
    {"save_qkv_proj", HB_POLICY_NAMES, qkv, none},
    {"save_out_proj", HB_POLICY_NAMES, out, none},
    {"qkv_proj_offloaded", HB_POLICY_NAMES, none, qkv_offloaded},
    {"minimal_offloaded", HB_POLICY_NAMES, none, minimal},
};

const struct hb_maxtext_policy *hb_maxtext_policy(const char *name)
{
    for (int i = 0; i < HB_MAXTEXT_POLICIES; i++)
        if (hb_str_same(hb_maxtext_policies[i].name, name))
            return &hb_maxtext_policies[i];
    return NULL;
}

uint32_t hb_maxtext_mask(const char *const *keys, bool dense, bool experts)
{
    uint32_t mask = 0;
    for (; *keys; keys++)
        for (int t = 0; t < HB_MAXTEXT_TENSORS; t++)
            if (hb_str_same(hb_maxtext_tensors[t].key, *keys))
                mask |= (dense ? hb_maxtext_tensors[t].dense : 0) |
                        (experts ? hb_maxtext_tensors[t].experts : 0);
    return mask;
}

uint32_t hb_maxtext_has(const struct hb_block *b)
{
    const uint32_t shared = BIT(SHARED_GATE) | BIT(SHARED_UP) | BIT(SHARED_DOWN);
    uint32_t mask = BIT(LAYER_IN) | BIT(ATTN_CTX) | BIT(ATTN_OUT) | BIT(MLP_GATE) | BIT(MLP_UP);
    mask |= b->attention.fused_qkv ? BIT(QKV) : BIT(Q) | BIT(K) | BIT(V);
    mask |= b->attention.kind == HB_ATTN_MLA ? BIT(MLA_Q) | BIT(MLA_KV) : 0;
    mask |= b->moe.experts ? BIT(MOE_OUT) : BIT(MLP_DOWN);
    return mask | (b->moe.shared_experts ? shared : 0);
}

const struct hb_maxtext_policy *hb_maxtext_policy_of(const struct hb_block *b)
{
    uint32_t has = hb_maxtext_has(b);
    bool experts = b->moe.experts != 0;
    for (int i = 0; i < HB_MAXTEXT_POLICIES; i++) {
        const struct hb_maxtext_policy *p = &hb_maxtext_policies[i];
        if (p->policy == b->remat.policy &&
            (hb_maxtext_mask(p->save, !experts, experts) & has) == (b->remat.save & has) &&
            (hb_maxtext_mask(p->offload, !experts, experts) & has) == (b->remat.offload & has) &&
            !((b->remat.save | b->remat.offload) & ~has))
            return p;
    }
    return NULL;
}
