/* PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp; constants at its top). Requests
 * are rounded up to 512 bytes and served, best fit, from the free blocks of the same stream and
 * pool: small ones (up to 1 MiB) from segments of 2 MiB, those below 10 MiB from segments of 20
 * MiB, larger ones from segments of their own, rounded up to 2 MiB. Blocks are split, and joined
 * again when both are free. Nothing goes back to the device before a request fails; then whole free
 * segments do, and it is tried once more. With a garbage collection threshold those that were not
 * used for long go back before. With expandable segments each stream and pool has one
 * range that grows by pages of 2 MiB (small) or 20 MiB; a free block at its end goes last, since it
 * counts as large as it can grow.
 *
 *   pool (stream, small?)   segment | used | free | used |  segment | free |
 *   allocated = blocks in use; reserved = segments (pages that are mapped) */
#ifndef HB_SIM_ENGINE_HEAP_CUDA_H
#define HB_SIM_ENGINE_HEAP_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/size.h"

struct hb_arena;
struct hb_cuda;

struct hb_cuda_limits {
    bool expandable;
    int64_t limit_bytes;     /* what the device gives in all; 0: no limit */
    int64_t max_split_bytes; /* larger blocks are not split; 0: all are */
    double collect_above;    /* share of the limit above which old segments go back; 0: none do */
};

struct hb_cuda_stats {
    int64_t allocated_bytes;
    int64_t peak_allocated_bytes;
    int64_t reserved_bytes;
    int64_t peak_reserved_bytes;
    int64_t retries; /* times that free segments were given back to serve a request */
    bool failed;     /* a request found no room after that; it was served all the same */
};

struct hb_cuda *hb_cuda_new(struct hb_arena *arena, struct hb_cuda_limits limits);
/* A block of at least bytes (> 0) on a stream; its address, each segment's far from the others',
 * goes to out_address. */
uint32_t hb_cuda_take(struct hb_cuda *c, int64_t bytes, uint32_t stream, int64_t *out_address);
void hb_cuda_give(struct hb_cuda *c, uint32_t block);
/* What is cached goes back to the device: whole segments, or pages of those that grow. */
void hb_cuda_release(struct hb_cuda *c);
struct hb_cuda_stats hb_cuda_stats(const struct hb_cuda *c);
int64_t hb_cuda_allocated(const struct hb_cuda *c); /* of them */
/* As large as what was asked for, rounded, or larger. */
int64_t hb_cuda_block_bytes(const struct hb_cuda *c, uint32_t block);
/* What a request takes of the allocated bytes. */
static inline int64_t hb_cuda_round(int64_t bytes)
{
    const int64_t step = 512;
    return hb_add_sat(bytes, step - 1) & -step;
}
/* Invariants: blocks tile their segments, no two free neighbours can be joined, each free block is
 * in its pool, sums equal the counts. HB_BUG names the first that fails. */
void hb_cuda_check(const struct hb_cuda *c);

#endif
