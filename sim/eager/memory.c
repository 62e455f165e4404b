#include "sim/eager/memory.h"

#include "base/arena.h"
#include "base/diag.h"
#include "sim/eager/actions.h"
#include "sim/eager/mcore.h"
#include "sim/eager/mcore_plan.h"
#include "sim/eager/short.h"
#include "sim/eager/tape.h"
#include "sim/eager/titan.h"
#include "sim/ir/lower.h"

struct hb_caching hb_step_caching(const struct hb_spec *spec)
{
    return (struct hb_caching){.on = true,
                               .expandable = spec->runtime.expandable_segments,
                               .limit_bytes = spec->hardware.memory_bytes,
                               .max_split_bytes = spec->runtime.max_split_bytes,
                               .collect_above = spec->runtime.gc_threshold,
                               .captures = spec->runtime.cuda_graphs,
                               .reserved = spec->runtime.allocator == HB_MAX_RESERVED};
}

/* What the program keeps goes to its arena. */
static bool lower_eager(struct hb_tape *t, struct hb_diag *diag, const struct hb_spec *spec,
                        const struct hb_rank_ask *ask)
{
    struct hb_program *out = t->p;
    hb_program_init(out, out->arena, spec->model.name, HB_TORCH);
    for (int i = 0; i < HB_AX_COUNT; i++)
        out->mesh[i] = spec->mesh[i];
    out->caching = hb_step_caching(spec);
    t->workspace_bytes = spec->runtime.blas_workspace;
    if (ask->storages)
        hb_tape_reserve(t, ask->storages);
    if (spec->runtime.framework == HB_FW_MEGATRON)
        hb_mcore_lower(t, spec, ask->rank, ask->cut);
    else
        hb_titan_lower(t, spec, ask);
    if (!t->server)
        hb_tape_end_program(t);
    return !t->too_large || hb_error(diag, (struct hb_loc){0},
                                     "a tensor of '%s' exceeds 2^61 bytes", spec->model.name);
}

bool hb_step_lower(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                   const struct hb_rank_ask *ask, struct hb_program *out)
{
    struct hb_tape tape;
    if (spec->compiler != HB_TORCH)
        return hb_lower(arena, diag, spec, out);
    struct hb_arena *scratch = hb_arena_new();
    hb_tape_init(&tape, scratch, out);
    out->arena = arena;
    bool ok = lower_eager(&tape, diag, spec, ask);
    hb_arena_free(scratch);
    return ok;
}

bool hb_step_has_short(const struct hb_spec *spec)
{
    if (spec->runtime.framework == HB_FW_MEGATRON)
        return true;
    return hb_step_ranks(spec) == 1 && !hb_titan_is_zero3(spec) &&
           spec->loss.kind != HB_LOSS_GRPO && !spec->runtime.cuda_graphs;
}

bool hb_step_lower_short(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                         int64_t rank, struct hb_program *out, struct hb_short *out_short)
{
    struct hb_tape tape;
    *out_short = (struct hb_short){0};
    hb_tape_init(&tape, arena, out);
    out->arena = arena;
    return lower_eager(&tape, diag, spec, &(struct hb_rank_ask){.rank = rank, .cut = out_short});
}

const struct hb_actions *hb_step_actions(struct hb_arena *arena, const struct hb_spec *spec)
{
    struct hb_pipeline p = hb_pipeline_of(spec);
    bool own = spec->runtime.framework == HB_FW_MEGATRON || p.ranks == 1;
    return own || !hb_pipeline_is_many(&p) ? NULL : hb_pipeline_actions(arena, &p);
}

bool hb_step_serve(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                   const struct hb_rank_ask *ask)
{
    struct hb_program none = {.arena = arena};
    struct hb_tape tape;
    hb_tape_init(&tape, arena, &none);
    tape.server = ask->server;
    if (!lower_eager(&tape, diag, spec, ask))
        return false;
    hb_tape_check_end(&tape);
    return true;
}

/* The block of a layer, and its place among those that are checkpointed. */
static bool same_layer(const struct hb_spec *spec, int64_t a, int64_t b)
{
    return hb_mcore_block(spec, a) == hb_mcore_block(spec, b) &&
           a % spec->remat.every == b % spec->remat.every;
}

bool hb_step_is_like_before(const struct hb_spec *spec, int64_t rank)
{
    int64_t first = hb_stage_start(spec, rank), before = hb_stage_start(spec, rank - 1);
    if (spec->pipeline.schedule != HB_SCHED_GPIPE || rank < 2 || rank + 1 >= hb_step_ranks(spec) ||
        hb_stage_start(spec, rank + 1) - first != first - before)
        return false;
    for (int64_t i = 0; i < first - before; i++)
        if (!same_layer(spec, before + i, first + i))
            return false;
    return true;
}

int64_t hb_step_ranks(const struct hb_spec *spec)
{
    return spec->compiler == HB_TORCH ? spec->mesh[HB_AX_PIPELINE] : 1;
}
