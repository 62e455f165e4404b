/* Exact parameter counts of a model, from the layer-level description. */
#ifndef HB_MODELS_PARAMS_H
#define HB_MODELS_PARAMS_H

#include <stdint.h>

#include "models/spec.h"

/* Parameters by part; a count that does not fit is INT64_MAX (saturated), parts and total. */
struct hb_params {
    int64_t total;
    int64_t active;    /* of these, what one token passes: top_k experts of each layer, no mtp; the
                          embedding is counted whole, as the published figures do */
    int64_t embedding; /* token and position tables */
    int64_t head;      /* unembedding; 0 where it is tied */
    int64_t attention; /* projections, their biases, norms of q and k, sinks */
    int64_t mlp;       /* dense MLPs and shared experts */
    int64_t experts;   /* routed experts */
    int64_t router;
    int64_t norm; /* of layers and the final one */
    int64_t mtp;  /* further layers of multi-token prediction, all parts together */
};

void hb_params_count(const struct hb_spec *spec, struct hb_params *out_params);

/* Of one layer of the block. */
int64_t hb_params_attention(const struct hb_model *model, const struct hb_block *block);
int64_t hb_params_mlp(const struct hb_model *model, const struct hb_block *block);
int64_t hb_params_expert(const struct hb_model *model, const struct hb_block *block);
int64_t hb_params_router(const struct hb_model *model, const struct hb_block *block);
int64_t hb_params_norms(const struct hb_model *model, const struct hb_block *block);

/* Tokens of a sequence that an expert of the einsum dispatch has room for. */
int64_t hb_params_capacity(const struct hb_moe *moe, int64_t seq);

#endif
