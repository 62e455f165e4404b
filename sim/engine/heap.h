/* Placing live intervals at addresses, as a compiler's heap does for a whole program.
 * Input: for each buffer its bytes and the first and last event at which it is alive; output: an
 * offset each and the height of the heap. Source of truth: the rules of XLA's heap simulator as
 * they were seen to reproduce the compilers' own totals (hlo rules 7 and 12). */
#ifndef HB_SIM_ENGINE_HEAP_H
#define HB_SIM_ENGINE_HEAP_H

#include <stdint.h>

struct hb_arena;

/* From start to end, both included; end >= start. */
struct hb_heap_span {
    int32_t start;
    int32_t end;
};

struct hb_heap_item {
    int64_t bytes;  /* rounded up to the alignment by hb_heap_pack */
    int32_t start;  /* alive from here ... */
    int32_t end;    /* ... to here, both included; >= start */
    uint32_t order; /* breaks ties: position among definitions */
    int64_t offset; /* out */
    /* Null: alive throughout. Else the times at which it is, by start, the first at start and
     * none beyond end; between them others may have its place (HB_HEAP_SORTED only). */
    const struct hb_heap_span *spans;
    uint32_t span_count;
};

enum hb_heap_kind {
    HB_HEAP_IN_ORDER, /* TPU: best fit in the order of start */
    HB_HEAP_SORTED,   /* CPU and GPU: best fit by size, then by duration; the lower heap is kept */
    HB_HEAP_CACHING   /* no foresight: heap_bfc.h, in one region without limit */
};

/* Sets each item's offset (a multiple of align_bytes) and returns the height of the heap, which is
 * at least the live peak. Deterministic. scratch is rewound. */
int64_t hb_heap_pack(struct hb_arena *scratch, struct hb_heap_item *items, uint32_t count,
                     enum hb_heap_kind kind, int64_t align_bytes);
/* The largest sum of aligned bytes alive at one event; out_at (may be null) is that event. */
int64_t hb_heap_live_peak(struct hb_arena *scratch, const struct hb_heap_item *items,
                          uint32_t count, int64_t align_bytes, int32_t *out_at);

/* From places in a schedule to events, as XLA's heap counts time: at each place all spans that
 * start there, in the order of the array, then all that end there. */
void hb_heap_count_events(struct hb_arena *scratch, struct hb_heap_span *spans, uint32_t count);

#endif
