/* The answer to one configuration: memory, time, whether it fits, and what loading takes. */
#ifndef HB_SIM_ENGINE_RESULT_H
#define HB_SIM_ENGINE_RESULT_H

#include "hw/device.h"
#include "models/spec.h"
#include "sim/engine/budget.h"
#include "sim/engine/interval.h"
#include "sim/engine/run.h"

struct hb_diag;

/* Loading with so many processes: the largest sums alive at one time. */
struct hb_load_row {
    int64_t processes;
    int64_t device_peak_bytes;
    int64_t host_peak_bytes; /* of one process */
    bool fits;               /* the device peak within the budget */
};

struct hb_result {
    const struct hb_spec *spec;
    const struct hb_device *device;
    struct hb_program program;
    struct hb_memory memory;
    struct hb_timing timing;
    int64_t budget_bytes; /* budget.bytes */
    struct hb_budget budget;
    struct hb_interval interval; /* of the peak, at plan.confidence */
    bool host_fits;              /* what it keeps on the host, where its size is known */
    bool step_fits;              /* peak within the budget, and that */
    bool endless;                /* torch: an op takes longer than is counted */
    bool fits;                   /* the step and, where it is described, the loading */
    enum hb_verdict step_verdict;
    enum hb_verdict verdict; /* loading that does not fit included */
    double step_seconds;
    double tokens_per_second; /* of all devices */
    double mfu;               /* model FLOPs utilisation: what the model needs, of the peak rate */
    double hfu;               /* hardware: what is computed, recomputation included */
    struct hb_load_row load;  /* of the processes described; where spec->load.present */
    struct hb_load_row *load_rows; /* the same for 1, 2, 4 ... processes, up to twice as many */
    uint32_t load_row_count;
};

/* Lowers and runs the step, which has passed hb_spec_supported. False: errors are in diag. */
bool hb_result_run(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                   const struct hb_device *device, struct hb_result *out);
/* The same, of whose timing only the step is there, and no hfu. */
bool hb_result_brief(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                     const struct hb_device *device, struct hb_result *out);

#endif
