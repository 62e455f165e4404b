/* Refusals of what is not simulated yet, one sentence each: see support.h. */
#include "models/support.h"

#include <inttypes.h>

#include "base/arena.h"
#include "models/refusal.h"
#include "models/support_torch.h"

/* Layers that stand side by side in the program: of a loop and of a scan that is unrolled whole
 * all, of another scan one for each block. What packs and orders them takes some seconds for so
 * many, and four times as long for twice as many. */
enum { MOST_UNROLLED = 2048 };
/* Blocks whose sizes all differ pack worse than equal layers: 512 take 0.7 s, 2,000 took 14. */
enum { MOST_BLOCKS = 512 };

static int64_t unrolled_layers(const struct hb_spec *spec)
{
    int64_t layers = 0;
    for (int i = 0; i < spec->model.block_count; i++) {
        int64_t steps = hb_block_steps(&spec->model.blocks[i]);
        if (spec->stack.form == HB_FORM_LOOP)
            layers += spec->model.blocks[i].repeat;
        else
            layers += spec->stack.unroll >= steps ? steps : 1;
    }
    return layers;
}

static const char *say_unrolled(struct hb_arena *arena, int64_t layers)
{
    return hb_arena_printf(arena,
                           "%" PRId64 " layers stand side by side in the program; allowed: at most "
                           "%d (equal ones in one block with repeat, under stack.form: scan, count "
                           "as one)",
                           layers, MOST_UNROLLED);
}

static const char *say_blocks(struct hb_arena *arena, int blocks)
{
    return hb_arena_printf(arena,
                           "%d blocks; allowed: at most %d (layers that are equal are one block, "
                           "with repeat)",
                           blocks, MOST_BLOCKS);
}

static bool all_ragged(const struct hb_spec *spec)
{
    bool all = true;
    for (int i = 0; i < spec->model.block_count; i++) {
        const struct hb_moe *m = &spec->model.blocks[i].moe;
        all = all && (!m->experts || m->dispatch == HB_DISPATCH_RAGGED);
    }
    return all;
}

/* time: of its speed more is known than of its memory. */
static bool check(struct hb_diag *diag, const struct hb_node *root, const struct hb_spec *spec,
                  bool time)
{
    bool torch = spec->compiler == HB_TORCH;
    bool narrow = spec->precision.fp8 != HB_FP8_NONE && !torch;
    int64_t unrolled = unrolled_layers(spec);
    int blocks = spec->model.block_count;
    const struct hb_refusal refusals[] = {
        {!time && spec->mesh[HB_AX_PIPELINE] > 1 && spec->pipeline.schedule != HB_SCHED_SPMD &&
             !torch,
         "pipeline.schedule",
         "only spmd is simulated yet, no gpipe, 1f1b, interleaved or zero_bubble; use spmd, or "
         "mesh.pipeline 1"},
        {!time && narrow && spec->compiler == HB_XLA_GPU, "precision.fp8",
         "not simulated for xla-gpu yet; use fp8: none"},
        {!time && narrow && spec->precision.fp8 > HB_FP8_ROWWISE, "precision.fp8",
         "only tensorwise and rowwise are simulated but with compiler: torch; use one of them, or "
         "none"},
        {!time && narrow && spec->precision.fp8_params, "precision.fp8_params",
         "not simulated but with compiler: torch; use false"},
        {!time && narrow && spec->precision.fp8_gather && spec->precision.fp8 != HB_FP8_TENSORWISE,
         "precision.fp8_gather", "goes with fp8: tensorwise, one scale for all; use it, or false"},
        {!time && narrow && !all_ragged(spec), "precision.fp8",
         "experts' products in 8 bit are simulated with moe.dispatch: ragged only; use that, or "
         "fp8: none"},
        {!time && narrow && spec->mesh[HB_AX_PIPELINE] > 1, "precision.fp8",
         "not simulated beside a pipeline yet; use fp8: none, or mesh.pipeline: 1"},
        {!time && spec->model.mtp > 0 && spec->mesh[HB_AX_PIPELINE] > 1 && !torch, "model.mtp",
         "not simulated beside a pipeline yet; use mtp: 0, or mesh.pipeline: 1"},
        {spec->loss.kernel != HB_LOSS_EAGER && !torch, "loss.kernel",
         "only eager is simulated yet; use kernel: eager"},
        {spec->loss.kind != HB_LOSS_LM && !torch, "loss.kind",
         "only lm is simulated but with compiler: torch; use lm"},
        {spec->stack.form == HB_FORM_NESTED && spec->stack.unroll > 1 && !torch, "stack.unroll",
         "of nested scans only unroll: 1 is simulated yet; use that, or form: scan"},
        {!torch && unrolled > MOST_UNROLLED, "model.blocks",
         unrolled > MOST_UNROLLED ? say_unrolled(diag->arena, unrolled) : ""},
        {!torch && blocks > MOST_BLOCKS, "model.blocks",
         blocks > MOST_BLOCKS ? say_blocks(diag->arena, blocks) : ""},
    };
    struct hb_refusing r = {.diag = diag, .root = root, .before = ""};
    return HB_REFUSE(&r, refusals);
}

bool hb_spec_supported(struct hb_diag *diag, const struct hb_node *root, const struct hb_spec *spec)
{
    if (spec->compiler == HB_TORCH)
        return hb_support_torch(diag, root, spec);
    return check(diag, root, spec, false);
}

bool hb_spec_timed(struct hb_diag *diag, const struct hb_node *root, const struct hb_spec *spec)
{
    return check(diag, root, spec, true);
}
