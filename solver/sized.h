/* Bytes of a program's buffers for every number of steps (layers / unit) of their group: tables,
 * one for each different shape, from the same hb_shape_bytes that the lowering uses. */
#ifndef HB_SOLVER_SIZED_H
#define HB_SOLVER_SIZED_H

#include "solver/outline.h"

struct hb_sized_entry;

enum { HB_SIZED_CHAINS = 256 };

struct hb_sized {
    struct hb_arena *arena;
    const struct hb_outline *outline;
    int64_t least_steps; /* the least for which tables are wanted */
    int64_t max_steps;
    int64_t *outer; /* by steps: trips of the outer loop (1 without) ... */
    int64_t *inner; /* ... and of the inner one */
    bool *admits;   /* by steps: they make a loop, outer x inner = steps */
    bool *wanted;   /* by steps: tables are filled here; elsewhere they are 0 */
    struct hb_sized_entry *entries;
    uint32_t count, cap;
    uint32_t chains[HB_SIZED_CHAINS]; /* by hash: the last entry of it, from 1; 0: none */
    uint32_t *entry_of; /* by buffer: the last that was asked for it, from 1; 0: none yet */
};

/* The shortest run that a search cuts a block into: what is less makes no loop. XLA:TPU takes the
 * last trip of a loop that fetches from the host out of it, and what is left of two trips is no
 * loop either: both layers stand in the step one by one, with what they keep (16 layers of 4,096
 * that keep q, then layers that keep mlp_gate too, with attn_out on the host, data 4 and fsdp 16 of
 * v5p: of two 13.96 GiB, of three 12.91). */
int32_t hb_sized_least_run(const struct hb_spec *spec);
/* The shortest that is written as a loop: what XLA:TPU makes of two layers the engine says, and no
 * sum. */
int32_t hb_sized_least_loop(const struct hb_spec *spec);
/* Only scans are cut into runs. */
bool hb_sized_may_split(const struct hb_spec *spec);

/* The spec says how steps are cut into loops. whole: blocks are not split, so that tables are
 * wanted at their own steps alone. */
void hb_sized_init(struct hb_sized *z, struct hb_arena *arena, const struct hb_spec *spec,
                   const struct hb_outline *outline, bool whole);
/* By steps (1 .. max_steps), rounded up to align. Equal tables are the same table. */
const int64_t *hb_sized_bytes(struct hb_sized *z, uint32_t buf, int64_t align);
/* Whether the buffer's own shape follows its group's layers. */
bool hb_sized_moves(const struct hb_sized *z, uint32_t buf);

#endif
