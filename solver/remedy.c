#include "solver/remedy.h"

#include "base/arena.h"
#include "base/diag.h"
#include "hw/device.h"
#include "models/schema.h"
#include "models/support.h"
#include "sim/engine/measure.h"

static bool fits(struct hb_arena *scratch, const struct hb_spec *spec, int64_t budget_bytes)
{
    struct hb_diag diag;
    int64_t peak_bytes;
    hb_diag_init(&diag, scratch);
    return hb_schema_check(scratch, &diag, NULL, spec) && hb_spec_supported(&diag, NULL, spec) &&
           hb_measure_peak(scratch, spec, &peak_bytes) && peak_bytes <= budget_bytes;
}

/* One axis grown; the ranks that the batch is split over may then be too many for the microbatches
 * that it was accumulated in: fewer of them are tried too. */
static bool grown_fits(struct hb_arena *scratch, const struct hb_spec *spec, int axis,
                       int64_t factor, int64_t budget_bytes)
{
    struct hb_spec s = *spec;
    bool own = spec->sharding.expert_tensor == spec->mesh[HB_AX_TENSOR];
    s.mesh[axis] *= factor;
    s.hardware.count *= factor;
    if (own)
        s.sharding.expert_tensor = s.mesh[HB_AX_TENSOR];
    for (; s.batch.accumulate >= 1; s.batch.accumulate /= 2) {
        struct hb_arena_mark mark = hb_arena_mark(scratch);
        bool ok = fits(scratch, &s, budget_bytes);
        hb_arena_rewind(scratch, mark);
        if (ok)
            return true;
    }
    return false;
}

int64_t hb_remedy_devices(struct hb_arena *arena, const struct hb_spec *smallest,
                          const struct hb_device *device, int64_t budget_bytes, int64_t most_factor)
{
    for (int64_t factor = 2; factor <= most_factor; factor *= 2)
        for (int axis = 0; axis < HB_AX_PIPELINE; axis++) {
            bool beyond = axis == HB_AX_TENSOR && device->link_domain > 1 &&
                          smallest->mesh[axis] * factor > device->link_domain;
            if (!beyond && grown_fits(arena, smallest, axis, factor, budget_bytes))
                return smallest->hardware.count * factor;
        }
    return 0;
}
