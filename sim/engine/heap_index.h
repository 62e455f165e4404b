/* Which of many spans of time meet a given one, without looking at all of them: for heaps of more
 * items than share an event. */
#ifndef HB_SIM_ENGINE_HEAP_INDEX_H
#define HB_SIM_ENGINE_HEAP_INDEX_H

#include "sim/engine/heap.h"

struct hb_heap_index;

/* For spans within life, from its start to its end. */
struct hb_heap_index *hb_heap_index_new(struct hb_arena *arena, struct hb_heap_span life);
void hb_heap_index_add(struct hb_heap_index *index, struct hb_heap_span span, uint32_t item);
/* The items of the spans that share an event with this one, one for each span, in no order; gives
 * up, returning max + 1, where there are more than max. */
uint32_t hb_heap_index_find(const struct hb_heap_index *index, struct hb_heap_span span,
                            uint32_t max, uint32_t *out_items);

#endif
