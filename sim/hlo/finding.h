/* Pathologies in a dump: operations that cost memory and need not, each with what would remove it.
 * What it costs is not summed up but tried: the buffers are taken out of the program, which is
 * then run again. */
#ifndef HB_SIM_HLO_FINDING_H
#define HB_SIM_HLO_FINDING_H

#include "sim/hlo/halo.h"

#define HB_HLO_FINDINGS(X)                                                                         \
    X(HALO, "halo-exchange")                                                                       \
    X(PAD_FORECAST, "sharded-pad-forecast")                                                        \
    X(GRADIENTS, "gradients-kept-alive")                                                           \
    X(WIDE_COPY, "f32-copy-of-bf16")                                                               \
    X(HOISTED, "convert-hoisted-out-of-loop")                                                      \
    X(STACKED, "loop-invariant-stacked")                                                           \
    X(CARRY, "carry-copied-each-trip")                                                             \
    X(CONSTRAINT, "sharding-constraint-copy")                                                      \
    X(ONE_HOT, "one-hot")                                                                          \
    X(MASK, "materialised-mask")                                                                   \
    X(LOGITS, "full-f32-logits")                                                                   \
    X(REPLICATED, "replicated-tensor")                                                             \
    X(GATHERED, "all-gather-of-whole-array")                                                       \
    X(UNDONATED, "missing-donation")                                                               \
    X(OFFLOAD, "host-copy-overlaps-nothing")

enum hb_hlo_finding_kind {
#define HB_ENUM(name, text) HB_HLO_FIND_##name,
    HB_HLO_FINDINGS(HB_ENUM)
#undef HB_ENUM
        HB_HLO_FINDING_COUNT
};

/* One way to pad a sharded array, in bytes per device. */
struct hb_hlo_way {
    int64_t temp_bytes, output_bytes;
    struct hb_hlo_halo_ops ops;
};

/* What a pad will become, in one direction or all. */
struct hb_hlo_forecast {
    const char *direction; /* "east-west": along the last dimension, "north-south", "both" */
    struct hb_hlo_span shape, padding;
    int rank;
    int64_t parts[HB_HLO_HALO_RANK];
    uint32_t pads;              /* of this kind */
    struct hb_hlo_way fused;    /* by the partitioner, its operations fused, */
    struct hb_hlo_way kept;     /* or each kept; */
    struct hb_hlo_way permuted; /* by permutes of slabs, a halo kept in each shard */
};

struct hb_hlo_finding {
    enum hb_hlo_finding_kind kind;
    const char **ops; /* names of what makes it; not all where there are many */
    uint32_t op_count;
    uint32_t count;      /* how many there are */
    int64_t bytes;       /* the total falls by it when they are removed; 0: not at the peak */
    int64_t held_bytes;  /* of their buffers, or moved by them */
    int64_t total_bytes; /* of the program without them, or with the alternative that what names */
    struct hb_hlo_forecast *forecasts; /* of sharded-pad-forecast */
    uint32_t forecast_count;
    const char *what;   /* a sentence with this case's figures */
    const char *advice; /* what removes it */
};

struct hb_hlo_findings {
    struct hb_arena *arena;
    struct hb_hlo_finding *items; /* what frees most first */
    uint32_t count, cap;
    /* Of a program so large that it is not packed again for each finding, what is freed is taken
     * from what is alive at once. */
    bool by_liveness;
};

/* total_bytes: of the module as it stands. */
void hb_hlo_findings_make(struct hb_arena *arena, const struct hb_hlo_program *hp,
                          int64_t total_bytes, struct hb_hlo_findings *out_findings);
const char *hb_hlo_finding_name(enum hb_hlo_finding_kind kind);

#endif
