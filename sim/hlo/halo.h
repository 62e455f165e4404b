/* What a halo exchange of one sharded array costs, done in this way or that: each way is written
 * down as HLO and put through the same rules as any dump. */
#ifndef HB_SIM_HLO_HALO_H
#define HB_SIM_HLO_HALO_H

#include "sim/hlo/program.h"

enum { HB_HLO_HALO_RANK = 8 };

/* An array, how many parts its mesh axes cut each dimension into, and what is wanted around it. */
struct hb_hlo_halo {
    enum hb_hlo_type type;
    int rank;
    int64_t dims[HB_HLO_HALO_RANK]; /* of the whole array */
    int64_t parts[HB_HLO_HALO_RANK];
    int64_t low[HB_HLO_HALO_RANK], high[HB_HLO_HALO_RANK];
};

enum hb_hlo_halo_way {
    HB_HLO_HALO_PAD,    /* the whole array is padded; the partitioner's operations fuse */
    HB_HLO_HALO_KEPT,   /* the same, each of its operations kept */
    HB_HLO_HALO_PERMUTE /* each device keeps a halo of its own, from collective permutes of slabs */
};

/* Operations that the partitioner makes of one pad. */
struct hb_hlo_halo_ops {
    uint32_t broadcasts, pads, dynamic_slices, selects, permutes, all_gathers;
};

/* False if it cannot be said: no such type, sizes out of range. scratch is rewound. */
bool hb_hlo_halo_try(struct hb_arena *scratch, const struct hb_hlo_dialect *dialect,
                     const struct hb_hlo_halo *halo, enum hb_hlo_halo_way way,
                     struct hb_hlo_figures *out_figures, struct hb_hlo_halo_ops *out_ops);

#endif
