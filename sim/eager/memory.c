#include "sim/eager/memory.h"

#include "base/arena.h"
#include "base/diag.h"
#include "sim/eager/mcore.h"
#include "sim/eager/tape.h"
#include "sim/eager/titan.h"
#include "sim/ir/lower.h"

static bool lower_eager(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                        int64_t rank, struct hb_program *out)
{
    struct hb_tape tape;
    hb_program_init(out, arena, spec->model.name, HB_TORCH);
    for (int i = 0; i < HB_AX_COUNT; i++)
        out->mesh[i] = spec->mesh[i];
    out->caching = (struct hb_caching){.on = true,
                                       .expandable = spec->runtime.expandable_segments,
                                       .reserved = spec->runtime.allocator == HB_MAX_RESERVED};
    hb_tape_init(&tape, arena, out);
    if (spec->runtime.framework == HB_FW_MEGATRON)
        hb_mcore_lower(&tape, spec, rank);
    else
        hb_titan_lower(&tape, spec);
    return !tape.too_large || hb_error(diag, (struct hb_loc){0},
                                       "a tensor of '%s' exceeds 2^61 bytes", spec->model.name);
}

bool hb_step_lower(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                   int64_t rank, struct hb_program *out)
{
    if (spec->compiler == HB_TORCH)
        return lower_eager(arena, diag, spec, rank, out);
    return hb_lower(arena, diag, spec, out);
}

int64_t hb_step_ranks(const struct hb_spec *spec)
{
    return spec->compiler == HB_TORCH ? spec->mesh[HB_AX_PIPELINE] : 1;
}
