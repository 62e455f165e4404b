/* A memory snapshot of PyTorch's caching allocator (torch.cuda.memory._dump_snapshot): what it
 * holds from the device, block by block, and the history of requests that led there. Read from its
 * pickle as data. The fields are those that torch/cuda/memory.py documents at _snapshot.
 *
 * From it come, for each device: what is in use and what is not, segment by segment; the peak of
 * the history and who stood there, by the line of code that asked; and what the same requests
 * would have taken from the device with other settings of the allocator (replayed). */
#ifndef HB_SIM_HLO_SNAPSHOT_H
#define HB_SIM_HLO_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hb_arena;
struct hb_diag;

/* Blocks that one line of code asked for. */
struct hb_snapshot_group {
    const char *where; /* "model.py:123 forward"; "asked for before the history begins" */
    int64_t bytes;
    int64_t largest_bytes;
    uint32_t count;
};

/* Segments of one stream and kind. */
struct hb_snapshot_pool {
    int64_t stream;
    bool small;
    uint32_t segments;
    int64_t reserved_bytes;
    int64_t active_bytes;  /* in use, or until another stream is done */
    int64_t stuck_bytes;   /* free, in segments that are in use: not to be given back */
    int64_t whole_bytes;   /* segments, or pages of expandable ones, that are free whole */
    int64_t largest_bytes; /* free block */
};

struct hb_snapshot_segment {
    int64_t address;
    int64_t stream;
    int64_t total_bytes;
    int64_t free_bytes;
    int64_t largest_free_bytes;
    int64_t idle_bytes; /* of the free: whole pages, which can be unmapped */
    int64_t page_bytes; /* of an expandable one; else 0 */
    uint32_t holes;
    bool expandable;
};

/* The history run through the allocator again. */
struct hb_snapshot_replay {
    const char *settings; /* "as default", "expandable_segments:True" */
    int64_t allocated_bytes;
    int64_t reserved_bytes; /* the most of it */
};

struct hb_snapshot_device {
    int64_t device;
    int64_t reserved_bytes, allocated_bytes, active_bytes, requested_bytes;
    struct hb_snapshot_pool *pools; /* by reserved bytes */
    uint32_t pool_count, pool_cap;
    struct hb_snapshot_segment *worst; /* by free bytes in segments in use */
    uint32_t worst_count, worst_cap;
    uint32_t events;
    int64_t peak_bytes;               /* allocated; of the history, or now without one */
    int64_t peak_event;               /* its place; -1: before the first */
    struct hb_snapshot_group *groups; /* at the peak, by bytes */
    uint32_t group_count, group_cap;
    uint32_t ooms;
    int64_t oom_bytes;      /* the last one's request; 0: none */
    int64_t oom_free_bytes; /* what the device had then; -1: not said */
    struct hb_snapshot_replay *replays;
    uint32_t replay_count;
};

struct hb_snapshot {
    struct hb_snapshot_device *devices;
    uint32_t device_count, device_cap;
    int expandable; /* of its settings; -1: not said */
};

/* False: the file is no such snapshot (an error says why, and where). */
bool hb_snapshot_read(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                      const char *text, size_t len, struct hb_snapshot *out);

#endif
