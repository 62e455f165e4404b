/* From a program to intervals: when each buffer of it is alive, in positions of the schedule.
 * A buffer lives from its first writer to its last reader (its own aliases' included); a buffer
 * written before a loop and read inside lives to the loop's end; one that is only written and
 * read inside a body lives inside it. */
#ifndef HB_SIM_ENGINE_LIVE_H
#define HB_SIM_ENGINE_LIVE_H

#include "sim/engine/heap.h"
#include "sim/ir/program.h"

/* One entry for each root buffer that is used (HBM and host alike), in order of buf. */
uint32_t hb_live_find(struct hb_arena *arena, const struct hb_program *p, struct hb_live **out);

/* By buffer, the first and last position at which it is touched itself, its aliases left out, of a
 * program without loops. end < start: never. */
struct hb_heap_span *hb_live_spans(struct hb_arena *arena, const struct hb_program *p);

/* A time at which something is in a place; between two of one place others may have it. */
struct hb_live_part {
    uint32_t live; /* whose: index of a struct hb_live */
    struct hb_heap_span span;
};

/* Each life in one part. Returns how many, as the other two do. */
uint32_t hb_live_whole(struct hb_arena *arena, const struct hb_live *live, uint32_t count,
                       struct hb_live_part **out);

/* The parts of all lives of a program without loops, each alias's own. */
uint32_t hb_live_apart(struct hb_arena *arena, const struct hb_program *p,
                       const struct hb_live *live, uint32_t count, struct hb_live_part **out);

/* The parts of all lives of a program with loops, those of one life in order of time. The first is
 * what is placed first: up to the loop that carries the place, or to the alias that takes it over,
 * even where the next one touches it. Where an alias renews what a loop carries, the place is empty
 * in the loop from its last reader to that alias's writer. */
uint32_t hb_live_carried(struct hb_arena *arena, const struct hb_program *p,
                         const struct hb_live *live, uint32_t count, struct hb_live_part **out);

/* By buffer, of an argument that is handed back: empty after start, the last position at which it
 * is touched itself, until end, the first at which its new value is. end <= start: never, or no
 * such argument. */
struct hb_heap_span *hb_live_gaps(struct hb_arena *arena, const struct hb_program *p);

#endif
