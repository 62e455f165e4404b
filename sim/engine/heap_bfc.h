/* A caching allocator that serves requests as they come, without knowledge of what follows: best
 * fit with coalescing. Memory is taken from the device in regions and cut into chunks; free
 * chunks stand in bins by size; a freed chunk joins its free neighbours. What is never given back
 * to the device is reserved: the difference to what is in use is fragmentation.
 *
 *   region   | in use  | free | in use | free            |    chunks, linked by address
 *   bins     256: -    512: [free]   ...   2^k*256: [free]    each by (size, address)
 */
#ifndef HB_SIM_ENGINE_HEAP_BFC_H
#define HB_SIM_ENGINE_HEAP_BFC_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/engine/heap.h"

struct hb_bfc;

struct hb_bfc_limits {
    int64_t limit_bytes;        /* what the device gives in all */
    int64_t first_region_bytes; /* 0: the whole limit at once; else regions grow, doubling */
};

struct hb_bfc_stats {
    int64_t in_use_bytes; /* chunks handed out, unused ends of chunks included */
    int64_t peak_in_use_bytes;
    int64_t asked_bytes;        /* of it asked for, before rounding */
    int64_t reserved_bytes;     /* regions */
    int64_t height_bytes;       /* highest end of a chunk ever handed out */
    int64_t largest_free_bytes; /* a larger request needs a new region */
    int64_t scattered_bytes;    /* free, but not in the largest free chunk */
};

struct hb_bfc *hb_bfc_new(struct hb_arena *arena, struct hb_bfc_limits limits);
/* A chunk of at least bytes (> 0), its address in out_offset; false where none is free and no
 * region can be added. */
bool hb_bfc_take(struct hb_bfc *bfc, int64_t bytes, uint32_t *out_chunk, int64_t *out_offset);
void hb_bfc_give(struct hb_bfc *bfc, uint32_t chunk);
struct hb_bfc_stats hb_bfc_stats(const struct hb_bfc *bfc);
/* Invariants: chunks tile their regions, no two free neighbours, each free chunk in its bin, sums
 * equal the counts. HB_BUG names the first that fails. */
void hb_bfc_check(const struct hb_bfc *bfc);

/* Runs whole lives in order of time (at each event all starts by order, then all ends) and sets
 * their offsets; bytes stay as asked. False at the first request that cannot be met, whose index
 * goes to out_failed (may be null); out_stats, of that moment or of the end, is set in any case. */
bool hb_bfc_run(struct hb_arena *scratch, struct hb_bfc_limits limits, struct hb_heap_item *items,
                uint32_t count, struct hb_bfc_stats *out_stats, uint32_t *out_failed);

#endif
