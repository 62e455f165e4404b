/* Ops on streams. Each stream runs its ops one after another in the order of the program; an op
 * starts when its stream is free and what it reads has been written. Ops beside the compute
 * stream are started by the program, which bounds how early they can run:
 *
 *   with a DONE op       where the program starts them, and no earlier (a compiler's schedule)
 *   without              anywhere in their trip of the loop, after the loops before them
 *
 * Since all streams are in order and the order is fixed, running the ops once in program order
 * gives the same times as a queue of events; each time is a maximum of sums of earlier times. */
#ifndef HB_SIM_ENGINE_STREAM_H
#define HB_SIM_ENGINE_STREAM_H

#include "sim/ir/program.h"

struct hb_streams {
    const struct hb_program *p;
    const int64_t *cost_ns;         /* by op */
    uint32_t *root;                 /* by buffer: whose memory it lies in */
    uint32_t *writer;               /* by root: the op that wrote it last; HB_NONE */
    bool *scheduled;                /* by op: a DONE waits for it */
    enum hb_stream *cause;          /* by op: the stream that waiting for it is counted under */
    int64_t *start_ns;              /* by op: of its latest run */
    int64_t *end_ns;                /* by op */
    uint32_t last[HB_STREAM_COUNT]; /* op that a stream ran last; HB_NONE */
    int64_t edge_ns;                /* nothing starts before this edge of a loop */
    int64_t exposed_ns[HB_STREAM_COUNT]; /* compute stood still because of this stream */
};

void hb_streams_init(struct hb_streams *s, struct hb_arena *arena, const struct hb_program *p,
                     const int64_t *cost_ns);
/* Runs one op after all that were run before; sets its start and end. */
void hb_streams_run(struct hb_streams *s, uint32_t index);
/* When a stream has done all that it was given. */
int64_t hb_streams_free_ns(const struct hb_streams *s, enum hb_stream stream);
/* An edge of a loop: the start of a trip, or the first op after it. */
void hb_streams_edge(struct hb_streams *s);

#endif
