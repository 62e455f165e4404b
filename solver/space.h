/* The configurations that a plan may be: cells (mesh, batch, chunks, stack form, where the
 * optimizer lies) times, for each block, the policies of its menu, with its layers split at most
 * once into two runs of different policy. Made from the spec's `plan.search`, or from the default
 * that frees mesh, remat with offload, nesting, loss chunks, accumulation and the optimizer's
 * place; what is not freed stays as written. */
#ifndef HB_SOLVER_SPACE_H
#define HB_SOLVER_SPACE_H

#include "solver/segment.h"
#include "solver/values.h"

struct hb_device;

/* What of a configuration of compiler torch no other one has: see torch_space.h. */
struct hb_torch_cell {
    uint32_t policy; /* of the space's, for all layers ... */
    int64_t every;   /* ... or each so many-th */
    int64_t repeats;
    enum hb_schedule schedule;
    bool reshard;
};

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
    struct hb_torch_cell torch;
};

/* The values that are tried; cells are all combinations that hb_schema_check admits. */
struct hb_space_axes {
    struct hb_values batch;
    struct hb_values accumulate;
    struct hb_values chunks;
    struct hb_values outers;
    struct hb_values microbatches; /* of pipelines */
    uint32_t forms;                /* mask of 1u << HB_FORM_* */
    uint32_t offloads;             /* mask of 1u << HB_PLACE_* */
};

struct hb_plan_space {
    const struct hb_spec *base;
    struct hb_cell *cells; /* those of one mesh, batch and accumulation stand together */
    uint32_t cell_count, cell_cap;
    bool remat;   /* policies are free */
    bool written; /* `plan.search` was there */
};

/* All cells that hb_schema_check admits, for so many devices. False: there is none. */
bool hb_space_make(struct hb_arena *arena, const struct hb_spec *base,
                   const struct hb_device *device, int64_t devices, struct hb_plan_space *out);
struct hb_space_axes hb_space_axes_of(const struct hb_spec *s);
/* Microbatches of a pipeline's cells; of others the file's own. */
struct hb_values hb_space_microbatches(const struct hb_spec *base, const struct hb_cell *cell);
/* Axes of the mesh that are free: mask of 1u << HB_AX_*. */
uint32_t hb_space_free_axes(const struct hb_spec *base);
/* What hb_schema_check did not admit, in the order of the enumeration, with its words: a whole
 * mesh, batch, accumulation and microbatches, or one variant of them. Meshes beyond plan.keep, and
 * what leaves a device too few tokens, are not told. */
typedef void hb_space_refused(void *context, const struct hb_cell *cell, bool variant,
                              const char *why);
void hb_space_each_refused(const struct hb_spec *base, const struct hb_device *device,
                           int64_t devices, hb_space_refused *told, void *context);
/* base with the cell's values. */
void hb_space_cell_spec(const struct hb_spec *base, const struct hb_cell *cell,
                        struct hb_spec *out);

/* Layers of one block in a row under one policy of its menu. */
struct hb_run {
    uint32_t block;
    uint32_t policy;
    int32_t steps; /* layers / unit */
};

/* The name of a block's run, counted from 0. */
const char *hb_space_run_name(struct hb_arena *arena, const struct hb_spec *spec, uint32_t block,
                              int run);
/* A cell's spec with its blocks as the runs say, in the model's order: further runs of a block are
 * named `name_2`, ... */
void hb_space_parts_spec(struct hb_arena *arena, const struct hb_spec *cell_spec,
                         const struct hb_menu *menus, const struct hb_run *runs, uint32_t count,
                         struct hb_spec *out);
/* What the search frees, in words: "mesh, remat and offload, ...". */
const char *hb_space_words(struct hb_arena *arena, const struct hb_plan_space *space);

#endif
