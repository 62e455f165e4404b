/* The measured part of a record for `validate`, from what a log tells: kinds and meaning of the
 * figures as in the record's format. What the log does not tell is -1 (null). */
#ifndef HB_SIM_HLO_MEASURED_H
#define HB_SIM_HLO_MEASURED_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/hlo/log.h"

struct hb_arena;

#define HB_MEASURED_KINDS(X)                                                                       \
    X(XLA_TOTAL, "xla_total")                                                                      \
    X(RUNTIME_PEAK, "runtime_peak")                                                                \
    X(MAX_ALLOCATED, "max_allocated")                                                              \
    X(MAX_RESERVED, "max_reserved")

enum hb_measured_kind {
#define HB_ENUM(name, key) HB_MEASURED_##name,
    HB_MEASURED_KINDS(HB_ENUM)
#undef HB_ENUM
        HB_MEASURED_KIND_COUNT
};

struct hb_measured {
    enum hb_measured_kind kind;
    enum hb_log_kind from; /* the message whose figures these are */
    int64_t argument_bytes;
    int64_t output_bytes;
    int64_t alias_bytes;
    int64_t temp_bytes;
    int64_t host_bytes;
    int64_t peak_bytes;
    int64_t static_bytes;   /* held between steps */
    int64_t reserved_bytes; /* the allocator's, at the peak */
    int64_t active_bytes;
    int64_t step_bytes;   /* what the last printed digit of peak_bytes is worth; 1: exact */
    int fits;             /* 1, 0; -1: the log leaves it open */
    const char *compiler; /* that wrote the log; null: not known */
    const char *note;     /* what a reader of the record must know */
};

/* want: HB_MEASURED_KIND_COUNT, or the only kind that will do. True: peak_bytes is known. False:
 * *out_reason says why no record can be made, as a sentence. */
bool hb_measured_read(struct hb_arena *arena, const struct hb_log *log, enum hb_measured_kind want,
                      struct hb_measured *out_measured, const char **out_reason);
const char *hb_measured_kind_key(enum hb_measured_kind kind);

#endif
