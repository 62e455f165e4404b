#include "sim/engine/measure.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "sim/eager/timed.h"
#include "sim/engine/run.h"
#include "sim/engine/step.h"

bool hb_measure_peak(struct hb_arena *scratch, const struct hb_spec *spec, int64_t *out_bytes)
{
    struct hb_diag quiet;
    hb_diag_init(&quiet, scratch);
    return hb_step_peak(scratch, &quiet, spec, out_bytes);
}

bool hb_measure_step(struct hb_arena *scratch, const struct hb_spec *spec,
                     const struct hb_device *device, int64_t *out_ns)
{
    struct hb_diag quiet;
    struct hb_program p;
    hb_diag_init(&quiet, scratch);
    if (!hb_timed_lower(scratch, &quiet, spec, &p))
        return false;
    memcpy(p.mesh, spec->mesh, sizeof p.mesh);
    *out_ns = hb_run_step_ns(scratch, &p, device);
    return true;
}

bool hb_measure_both(struct hb_arena *scratch, struct hb_diag *diag, const struct hb_spec *spec,
                     const struct hb_device *device, int64_t *out_bytes, int64_t *out_ns)
{
    struct hb_program p;
    struct hb_memory m;
    if (spec->compiler == HB_TORCH)
        return hb_step_peak(scratch, diag, spec, out_bytes) &&
               hb_measure_step(scratch, spec, device, out_ns);
    if (!hb_step_run(scratch, diag, spec, &p, &m))
        return false;
    *out_bytes = m.peak_bytes;
    *out_ns = hb_run_step_ns(scratch, &p, device);
    return true;
}
