/* Megatron's sizes on one rank: which layers it holds, parameters, and the order in which it runs
 * forward and backward passes. Private to sim/eager/mcore*.c. */
#ifndef HB_SIM_EAGER_MCORE_PLAN_H
#define HB_SIM_EAGER_MCORE_PLAN_H

#include "models/spec.h"

struct hb_arena;

/* Layers first .. end, in model order. */
struct hb_mcore_chunk {
    int64_t first;
    int64_t end;
    bool embeds; /* holds the embedding */
    bool heads;  /* holds the head */
};

/* One pass of a chunk over a microbatch. */
struct hb_mcore_pass {
    bool backward;
    int64_t chunk;
    int64_t microbatch;
};

struct hb_mcore_plan {
    const struct hb_spec *spec;
    int64_t rank, ranks, chunk_count;
    struct hb_mcore_chunk *chunks;
    struct hb_mcore_pass *passes;
    uint32_t pass_count;
    int64_t tokens; /* of a microbatch on the device */
    int64_t tp, sp, ep, etp;
    int64_t replicas; /* ranks with the same dense parameters ... */
    int64_t expert_replicas;
};

void hb_mcore_plan_make(struct hb_arena *arena, const struct hb_spec *spec, int64_t rank,
                        struct hb_mcore_plan *out);
const struct hb_block *hb_mcore_block(const struct hb_spec *spec, int64_t layer);
/* Parameters of the rank, layers and ends. */
int64_t hb_mcore_rank_dense(const struct hb_mcore_plan *p);
int64_t hb_mcore_rank_experts(const struct hb_mcore_plan *p);
/* Of them, those of the layers' products. */
int64_t hb_mcore_rank_linear(const struct hb_mcore_plan *p);
/* One table of the vocabulary on the rank. */
int64_t hb_mcore_table_count(const struct hb_mcore_plan *p);
/* Rows that the rank's experts take, balanced. */
int64_t hb_mcore_expert_rows(const struct hb_mcore_plan *p, const struct hb_block *b);

#endif
