/* A measured record: one line of a *.jsonl file, its configuration read as a step, its figures in
 * bytes. Figures that are absent are -1. */
#ifndef HB_MODELS_RECORD_H
#define HB_MODELS_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/node.h"
#include "models/spec.h"

struct hb_arena;
struct hb_diag;

struct hb_record {
    const char *id;
    const char *group; /* "" where the record has none */
    const char *kind;  /* "xla_total", "max_allocated", "speed" ... */
    int64_t argument_bytes;
    int64_t output_bytes;
    int64_t alias_bytes;
    int64_t temp_bytes;
    int64_t host_bytes;
    int64_t peak_bytes;  /* what is compared; -1 for a record of speed */
    double step_seconds; /* 0: not measured */
    int fits;            /* 1: it ran; 0: it did not fit; -1: the record leaves it open */
    bool verdict;        /* somebody's word that it fits or does not; a peak is not compared */
    bool rematerialised; /* its note says that the compiler rematerialised by itself */
    struct hb_spec spec;
};

/* False, with an error at the line, if the record cannot be read at all or its configuration
 * cannot be; id and group are set whenever they are there. */
bool hb_record_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *node,
                    const char *data_dir, struct hb_record *out);

/* One third of all records, by a hash of the id: those on which no rule was learnt. */
bool hb_record_held_out(const char *id);

#endif
