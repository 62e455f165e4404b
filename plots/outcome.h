/* What pictures and the report show of one simulated configuration: the keys of `simulate --json`
 * as a record. Beyond the keys of the command line's contract these are understood, all optional:
 *   "name": what the configuration is called;
 *   "timeline": {"seconds": [t0, t1, ...],            samples, rising; each holds until the next
 *                "categories": {"params": [bytes, ...], ...},  one array a category, as long
 *                "phases": [{"name", "start_seconds", "end_seconds"}, ...],
 *                "streams": [{"name", "busy_seconds", "spans": [[start, end, "name"], ...]}, ...]}
 *   "heap": {"bytes": height,
 *            "buffers": [{"name", "category", "offset_bytes", "bytes", "start_op",
 *                         "end_op"}, ...]}           alive at both; ops of the schedule
 *   "load": {"device_peak_bytes", "host_peak_bytes",
 *            "by_processes": [{"processes", "device_peak_bytes", "host_peak_bytes"}, ...]} */
#ifndef HB_PLOTS_OUTCOME_H
#define HB_PLOTS_OUTCOME_H

#include "base/diag.h"
#include "sim/engine/result.h"

struct hb_json;
struct hb_node;

struct hb_shown_tensor {
    const char *name;
    const char *why; /* "" where nothing more is to be said */
    enum hb_category category;
    int64_t bytes;
};

struct hb_shown_span {
    const char *name;
    double start_seconds;
    double end_seconds;
};

struct hb_shown_stream {
    const char *name;
    double busy_seconds;
    struct hb_shown_span *spans; /* in order of start */
    uint32_t span_count;
};

/* What kind of operation made a buffer of a compiler's dump. */
#define HB_SHOWN_KINDS(X)                                                                          \
    X(NONE, "") /* not of a dump: by its category */                                               \
    X(PRODUCT, "matrix products")                                                                  \
    X(ELEMENT, "element by element")                                                               \
    X(REDUCTION, "sums and maxima")                                                                \
    X(LAYOUT, "copies and layout")                                                                 \
    X(SLICE, "slices, gathers, stacks")                                                            \
    X(COLLECTIVE, "collectives")                                                                   \
    X(OTHER, "others")

enum hb_shown_kind {
#define HB_ENUM(name, text) HB_SHOWN_##name,
    HB_SHOWN_KINDS(HB_ENUM)
#undef HB_ENUM
        HB_SHOWN_KIND_COUNT
};
/* "matrix products" */
const char *hb_shown_kind_name(enum hb_shown_kind kind);

struct hb_shown_buffer {
    const char *name;
    const char *label; /* of a dump, in the user's own words: source and operation; null: none */
    enum hb_shown_kind kind;
    const char *why; /* "" where it was read from JSON */
    enum hb_category category;
    int64_t offset_bytes;
    int64_t bytes;
    int64_t start_op; /* positions in the schedule; alive at both */
    int64_t end_op;
    uint32_t buf; /* of the program; HB_NONE where it was read from JSON */
};

struct hb_shown_load {
    int64_t processes;
    int64_t device_peak_bytes;
    int64_t host_peak_bytes; /* -1: not told */
};

struct hb_outcome {
    const char *name;  /* of the configuration; "" */
    const char *place; /* see plots/place.h; null or "": not told */
    bool fits;
    int64_t peak_bytes;
    int64_t low_bytes; /* of the peak's interval; 0, as high_bytes: not told */
    int64_t high_bytes;
    double confidence;
    int64_t records;      /* that the interval is from */
    int64_t budget_bytes; /* 0: none given */
    int64_t argument_bytes;
    int64_t output_bytes;
    int64_t alias_bytes;
    int64_t temp_bytes;
    int64_t host_bytes;
    double step_seconds; /* 0: not told */
    double tokens_per_second;
    double mfu;
    const char *peak_at; /* the op or moment of the peak; "" */
    int64_t category_bytes[HB_CATEGORY_COUNT];
    struct hb_shown_tensor *tensors; /* at the peak, largest first */
    uint32_t tensor_count;

    uint32_t sample_count; /* 0: no timeline */
    double *seconds;
    uint32_t *positions;                        /* in the schedule; null: read from JSON */
    int64_t *category_curve[HB_CATEGORY_COUNT]; /* null: nothing of that category */
    struct hb_shown_span *phases;
    uint32_t phase_count;
    struct hb_shown_stream *streams;
    uint32_t stream_count;

    int64_t heap_bytes;
    struct hb_shown_buffer *buffers;
    uint32_t buffer_count;

    struct hb_shown_load *loads; /* rising in processes */
    uint32_t load_count;
};

/* The categories from the bottom of a stack to its top: what stays first, what passes last. */
extern const enum hb_category hb_stack_order[HB_CATEGORY_COUNT];

/* From the engine's run. o keeps pointers into r. */
void hb_outcome_make(struct hb_arena *arena, const struct hb_result *r, struct hb_outcome *out);
/* Of a program's run the heap and the totals alone: of a compiler's dump. */
void hb_outcome_make_heap(struct hb_arena *arena, const struct hb_program *p,
                          const struct hb_memory *memory, struct hb_outcome *out);
/* The keys "timeline" and "heap", into an object that is open; the second alone. */
void hb_outcome_write_curves(struct hb_json *j, const struct hb_outcome *o);
void hb_outcome_write_heap(struct hb_json *j, const struct hb_outcome *o);
/* The key "by_processes", into the open object "load". */
void hb_outcome_write_loads(struct hb_json *j, const struct hb_outcome *o);
/* From the JSON of `simulate`. False, with errors, where a key has the wrong type or the categories
 * do not sum to the peak. */
bool hb_outcome_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *json,
                     struct hb_outcome *out);
/* Sum over categories at sample i. */
int64_t hb_outcome_total(const struct hb_outcome *o, uint32_t i);
/* The sample with the largest total; 0 where there is none. */
uint32_t hb_outcome_peak_sample(const struct hb_outcome *o);
/* "backward": the phase that holds the moment, or "". */
const char *hb_outcome_phase_at(const struct hb_outcome *o, double seconds);
/* "fits: peak 71.2 GiB of 80 GiB, 8.8 GiB free", "does not fit: ...": the first words of titles. */
enum hb_verdict hb_outcome_word(const struct hb_outcome *o);
const char *hb_outcome_verdict(struct hb_arena *arena, const struct hb_outcome *o);

#endif
