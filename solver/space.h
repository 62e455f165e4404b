/* The configurations that a plan may be: cells (mesh, batch, chunks, stack form, where the
 * optimizer lies) times, for each block, the policies of its menu, with its layers split at most
 * once into two runs of different policy. Made from the spec's `plan.search`, or from the default
 * that frees mesh, remat with offload, nesting, loss chunks, accumulation and the optimizer's
 * place; what is not freed stays as written. */
#ifndef HB_SOLVER_SPACE_H
#define HB_SOLVER_SPACE_H

#include "solver/segment.h"

struct hb_diag;
struct hb_device;

/* Everything but the policies. */
struct hb_cell {
    int64_t mesh[HB_AX_COUNT];
    int64_t batch_global;
    int64_t accumulate;
    int64_t loss_chunks;
    int64_t outer; /* of nested scans; 0: chosen per run of layers */
    int64_t microbatches;
    enum hb_form form;
    enum hb_place optimizer_offload;
};

struct hb_plan_space {
    const struct hb_spec *base;
    struct hb_cell *cells;
    uint32_t cell_count, cell_cap;
    struct hb_menu *menus; /* by block; the first policy is the spec's own */
    bool splits;           /* a block's layers may be split into two runs */
    bool written;          /* `plan.search` was there */
    double raw_count;      /* configurations: cells times policies times splits */
};

/* Cells that pass hb_schema_check and hb_spec_supported. False: there is none, or bad input. */
bool hb_space_make(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *base,
                   const struct hb_device *device, struct hb_plan_space *out);
/* base with the cell's values. */
void hb_space_cell_spec(const struct hb_spec *base, const struct hb_cell *cell,
                        struct hb_spec *out);
/* A cell's spec with its blocks as parts say (items of a segment with these menus): runs of one
 * block are named `name`, `name_2`. */
void hb_space_parts_spec(struct hb_arena *arena, const struct hb_spec *cell_spec,
                         const struct hb_segment *s, const struct hb_menu *menus,
                         const struct hb_part *parts, uint32_t count, struct hb_spec *out);
/* What the search frees, in words: "mesh, remat and offload, ...". */
const char *hb_space_words(struct hb_arena *arena, const struct hb_plan_space *space);

#endif
