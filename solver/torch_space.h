/* The configurations that a plan of compiler torch may be: mesh, batch, accumulation, the
 * pipeline's microbatches and chunks a rank (with the schedule that they want, or the written one
 * that parts its passes), whether gathered weights stay, and one policy of checkpointing for all
 * layers, or for every k-th. Each is a cell of its own: what another compiler's cells leave to
 * integer programs is a list here. */
#ifndef HB_SOLVER_TORCH_SPACE_H
#define HB_SOLVER_TORCH_SPACE_H

#include "solver/space.h"

/* Menus and runs by cell.torch.policy; the first policy is as written. */
struct hb_torch_policies {
    const struct hb_menu *menus; /* by block */
    const struct hb_run *const *runs;
    const struct hb_block *const *blocks;
    uint32_t count;
};

/* The policies of a space, the file's own first. With remat false that one alone. */
void hb_torch_policies_make(struct hb_arena *arena, const struct hb_spec *base, bool remat,
                            struct hb_torch_policies *out);
/* All cells that are admitted, for so many devices. False: there is none. */
bool hb_torch_space_make(struct hb_arena *arena, const struct hb_spec *base,
                         const struct hb_device *device, int64_t devices,
                         struct hb_plan_space *out);
/* What of a cell concerns compiler torch, into a spec that has the rest of it. */
void hb_torch_cell_spec(const struct hb_spec *base, const struct hb_cell *cell,
                        struct hb_spec *out);

#endif
