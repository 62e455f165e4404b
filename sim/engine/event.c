/* Spans come in order of start; ends are sorted in between. An op that takes no time ends after
 * it starts, and what ends at a moment comes before what starts there. */
#include "sim/engine/event.h"

#include <stdlib.h>

#include "base/arena.h"

static int compare_events(const void *a, const void *b)
{
    const struct hb_event *left = a, *right = b;
    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    return left->seq < right->seq ? -1 : left->seq > right->seq;
}

uint32_t hb_event_list(struct hb_arena *arena, const struct hb_timing *timing,
                       struct hb_event **out)
{
    uint32_t count = timing->span_count;
    struct hb_event *events = hb_arena_alloc(arena, 2 * (size_t)count, sizeof *events);
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_span *span = &timing->spans[i];
        /* Starts and instant ops after all ends of the same moment, in the order of the spans. */
        bool instant = span->start_ns == span->end_ns;
        events[2 * i] =
            (struct hb_event){span->start_ns, count + 2 * i, span->op, span->trip, false};
        events[2 * i + 1] = (struct hb_event){span->end_ns, instant ? count + 2 * i + 1 : i,
                                              span->op, span->trip, true};
    }
    if (count)
        qsort(events, 2 * (size_t)count, sizeof *events, compare_events);
    *out = events;
    return 2 * count;
}
