/* Refusals of what is not simulated yet, one sentence each: see support.h. */
#include "models/support.h"

#include "models/support_torch.h"

struct refusal {
    bool refused;
    bool timed; /* only its memory is unknown */
    const char *text;
};

/* Layers that stand side by side in the program: of a loop all, of a scan one for each block. What
 * packs and orders them takes some seconds for so many, and four times as long for twice as many.
 */
enum { MOST_UNROLLED = 2048 };

static int64_t unrolled_layers(const struct hb_spec *spec)
{
    int64_t layers = spec->model.block_count;
    for (int i = 0; i < spec->model.block_count && spec->stack.form == HB_FORM_LOOP; i++)
        layers += spec->model.blocks[i].repeat - 1;
    return layers;
}

static bool check(struct hb_diag *diag, struct hb_loc loc, const struct hb_spec *spec, bool time)
{
    bool torch = spec->compiler == HB_TORCH;
    const struct refusal refusals[] = {
        {spec->mesh[HB_AX_PIPELINE] > 1 && spec->pipeline.schedule != HB_SCHED_SPMD && !torch, true,
         "pipeline.schedule: only spmd is simulated yet, no gpipe, 1f1b, interleaved or "
         "zero_bubble; use spmd, or mesh.pipeline 1"},
        {spec->precision.fp8 != HB_FP8_NONE && !torch, true,
         "precision.fp8 is not simulated yet; use fp8: none"},
        {spec->model.mtp > 0 && !torch, true, "model.mtp is not simulated yet; use mtp: 0"},
        {spec->loss.kernel != HB_LOSS_EAGER && !torch, false,
         "loss.kernel: only eager is simulated yet; use kernel: eager"},
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (refusals[i].refused && !(time && refusals[i].timed))
            ok = hb_error(diag, loc, "%s", refusals[i].text);
    if (!torch && unrolled_layers(spec) > MOST_UNROLLED)
        ok = hb_error(
            diag, loc,
            "%lld layers stand side by side in the program; allowed: at most %d (equal ones "
            "in one block with repeat, under stack.form: scan, count as one)",
            (long long)unrolled_layers(spec), MOST_UNROLLED);
    return ok;
}

bool hb_spec_supported(struct hb_diag *diag, struct hb_loc loc, const struct hb_spec *spec)
{
    if (spec->compiler == HB_TORCH)
        return hb_support_torch(diag, loc, spec);
    return check(diag, loc, spec, false);
}

bool hb_spec_timed(struct hb_diag *diag, struct hb_loc loc, const struct hb_spec *spec)
{
    return check(diag, loc, spec, true);
}
