/* Running a program: its memory (live intervals placed by the compiler's heap) and its time (ops
 * as events on streams). The one engine behind simulate, plan, validate, load and hlo.
 * For the xla compilers memory follows positions in the schedule; the clock only dates them. */
#ifndef HB_SIM_ENGINE_RUN_H
#define HB_SIM_ENGINE_RUN_H

#include "sim/engine/heap.h"
#include "sim/ir/program.h"

struct hb_device;

/* One buffer that is alive at the peak. */
struct hb_at_peak {
    uint32_t buf;
    int64_t bytes; /* as placed, aligned */
};

/* What the compiler would report, and what stands in it. */
struct hb_memory {
    int64_t argument_bytes;
    int64_t output_bytes;
    int64_t alias_bytes;     /* of the output, lying in donated arguments */
    int64_t temp_bytes;      /* height of the heap */
    int64_t live_temp_bytes; /* largest live sum; temp - live = fragmentation */
    int64_t host_bytes;
    int64_t peak_bytes;      /* argument + output - alias + temp */
    int64_t allocated_bytes; /* of a caching allocator: peaks of the blocks in use ... */
    int64_t reserved_bytes;  /* ... and of what it holds from the device; else 0 */
    int64_t retries;         /* times that it gave memory back to serve a request */
    int64_t *rank_peaks; /* of a pipeline whose ranks run programs of their own: peak by rank ... */
    int64_t rank_count;  /* ... else 0 */
    int64_t rank;        /* whose program this is */
    int32_t peak_op;     /* position of the largest live sum; -1: there are no temporaries */
    int64_t category_bytes[HB_CATEGORY_COUNT]; /* sums to peak_bytes */
    struct hb_at_peak *at_peak; /* arguments, outputs of their own and temporaries; largest first */
    uint32_t at_peak_count;
    int64_t *offset_of;       /* by buffer: place in the heap; -1: not in it */
    bool *lent;               /* by root: a temporary that lies in an output's memory */
    int64_t heap_align_bytes; /* what temporaries were rounded to ... */
    int64_t leaf_align_bytes; /* ... and arguments and outputs */
    struct hb_live *live;
    uint32_t live_count;
    struct hb_live_part *parts; /* of live: when something is in its place */
    uint32_t part_count;
};

struct hb_span {
    uint32_t op;
    int64_t start_ns;
    int64_t end_ns;
    int64_t trip; /* of its loop: first, second or last; 0 outside */
};

/* Trips of a loop that are in no span, since they are like the second. */
struct hb_skip {
    uint32_t loop;
    int64_t start_ns; /* after the second trip ... */
    int64_t end_ns;   /* ... until the last */
};

struct hb_timing {
    int64_t step_ns;
    int64_t busy_ns[HB_STREAM_COUNT];
    int64_t exposed_ns[HB_STREAM_COUNT]; /* compute stood still, waiting for this stream */
    double flops;                        /* of the model's arithmetic: matmul and attention ops */
    struct hb_span *spans;               /* first, steady and last trips; in order of start */
    uint32_t span_count;
    struct hb_skip *skips;
    uint32_t skip_count;
    int64_t *op_start_ns; /* by op, first trip */
    int64_t *op_end_ns;   /* by op, last trip */
};

/* Where and how a program is placed, if not by the habits of its compiler. */
struct hb_placing {
    enum hb_heap_kind heap;
    int64_t heap_align_bytes; /* of a temporary */
    int64_t leaf_align_bytes; /* of an argument or an output, on device and host */
    /* Each alias lives in its own time, and between such times its memory is free: the values of
     * a compiler's dump (a program without loops, its buffers in the order of their first use). */
    bool apart;
    bool unpacked; /* temporaries get no place: they take what lives at once */
    /* Above this peak an HB_HEAP_IN_ORDER is packed again, by size, and the lower heap stays;
     * 0: never. */
    int64_t repack_bytes;
};

/* Memory alone: what validate and the planner ask thousands of times. */
void hb_run_memory(struct hb_arena *arena, const struct hb_program *p, struct hb_memory *out);
/* The same before anything is placed, which is where most of the time goes: temp_bytes is
 * live_temp_bytes, so that peak_bytes is the least that any heap takes; nothing is at_peak. */
void hb_run_memory_live(struct hb_arena *arena, const struct hb_program *p, struct hb_memory *out);
/* Behind that, what it left in out: bytes as hb_run_memory finds them, and still nothing at_peak.
 */
void hb_run_memory_pack(struct hb_arena *arena, const struct hb_program *p, struct hb_memory *out);
/* The same by other habits than those of the program's compiler. */
void hb_run_memory_placed(struct hb_arena *arena, const struct hb_program *p,
                          const struct hb_placing *placing, struct hb_memory *out);
/* Time alone, on this device. */
void hb_run_timing(struct hb_arena *arena, const struct hb_program *p,
                   const struct hb_device *device, struct hb_timing *out);
/* Of that the step alone, all that the planner asks. */
int64_t hb_run_step_ns(struct hb_arena *arena, const struct hb_program *p,
                       const struct hb_device *device);
/* All of it with the time of each op given, in [0, HB_COST_MAX_NS]. */
void hb_run_timing_with(struct hb_arena *arena, const struct hb_program *p, const int64_t *cost_ns,
                        struct hb_timing *out);

#endif
