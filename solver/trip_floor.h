/* How long the trips of a loop take at least, whatever the policy: the compute stream runs what
 * every policy runs, and waits for the collectives that every policy needs.
 *
 * Proof. Before a compute op of the trip runs, the ops before it on the compute stream have run,
 * and what it reads has been written. A collective that waits for an op of the trip ends no earlier
 * than that op's end and its own cost. None starts earlier than the trip's edge (stream.h) on a
 * stream that runs one at a time: all of a stream's whose first readers have run by now have taken
 * their sum. Which of those came first does not matter, and under which policy they were wanted
 * early does not either: a gather that recomputation wants sooner, and hides behind what is made
 * again, still lies after the edge and before the op that reads it here: so a cast before a gather,
 * which comes with it, waits for no more than what it reads.
 * In the forward pass, where policies add copies and nothing else, all streams keep their order.
 * Ops that a policy can do without (hb_segment_optional_ops) take no time, and nothing waits for
 * them; in the forward pass a copy into a stack only passes on what it waits for itself, since what
 * reads the stack there would read the value. In the backward pass copies that turn what such ops
 * made in this trip (a gathered weight, for the gradient's product) are no policy's either
 * (op_waits.h): who reads what is turned waits for them, and they for what they turn, but they hold
 * no stream, since what is made again may have them sooner. What an earlier loop wrote is there
 * when the trip begins: the backward pass waits for no op of the forward pass. What the trip before
 * wrote is waited for where this one reads it (the sum of a layer's output over the tensor axis,
 * which ends a trip). A stream is held by what the trip before gave it: whatever the order of that,
 * it is through no earlier than if each began as soon as it could. Sums of weights' gradients stand
 * behind all steps of a layer (hb_body_sums), so behind the gathers for these on their stream: what
 * is made again gathers a weight sooner, never later. They stand there in the order of the leaves,
 * so each behind the one before. Where a trip has several layers a sum of one may come before the
 * gathers of the next (test_floors, seed 6: olmo3-7b, four a trip, on an MI300X, 1.6 % less): none
 * waits so.
 *
 * Where all that is made again comes first, gathers have their turn: each stands right before its
 * first reader, so the compute stream waits for it wherever that is, by as much less as it waits
 * for something else by then. In the program's own order, without what could be waited for before
 * the first of these ops (what the trip before left, gathers and sums on other streams), moving a
 * gather to the front begins all that follows by its time later, and takes no more away behind.
 * Both ways hold, so the longer is the bound.
 *
 * In whatever order (any_order: pipelines, where policies decide on it, and steps that XLA:GPU may
 * make otherwise for want of memory) an op waits for what it reads; a trip is no shorter than its
 * ops on the compute stream, nor than what these read off another. An op that is made again reads
 * what the first one read, takes as long, and so is there no sooner. All this is monotone: where a
 * trip begins later, by any policy's ops or between two runs, and what it waits for ends later, so
 * does it. A second trip that begins and leaves behind no less than the first, moved on by c, is
 * followed by others that take c each. Tests compare it with every policy, for every kind of model
 * and device (tests/prop/test_floors.c). */
#ifndef HB_SOLVER_TRIP_FLOOR_H
#define HB_SOLVER_TRIP_FLOOR_H

#include "solver/op_cost.h"

struct hb_arena;

struct hb_trip_floor {
    const struct hb_program *p;
    const struct hb_op_costs *costs;
    const uint32_t *root_of; /* by buffer */
    const bool *optional;    /* by op */
    uint32_t *writer;        /* by root: the op of this trip that wrote it last; HB_NONE */
    int64_t *end_ns;         /* by op, from the trip's edge */
    bool *is_kept;           /* by op of the loop: every policy has it */
    bool *is_turn;           /* the same: a copy of what such an op made (find_turns) */
    uint32_t *turns;         /* by op: of a turn, the op that made it in this trip; HB_NONE */
    bool *is_read;           /* by root: an op further down the trip reads it */
    bool *is_led;            /* by op: it waits for an op of the compute stream */
    bool *is_summed;         /* by op: it is in sum_ns */
    bool *is_scheduled;      /* by op: a DONE waits for it */
    bool *is_carried;        /* by op: its latest run is of the trip before */
    int64_t *carried_ns;     /* by op: its end in the trip before, from this trip's edge */
    int64_t *start_ns;       /* by op: of its latest run, from that trip's edge */
    uint32_t *by_start;      /* ops of the backward pass beside compute, in the order of that */
    uint32_t by_start_count;
    int64_t held_ns[HB_STREAM_COUNT];     /* by the trip before, from this trip's edge */
    int64_t gathered_ns[HB_STREAM_COUNT]; /* what was gathered in this trip is there */
    int64_t summed_ns[HB_STREAM_COUNT];   /* the last sum of a gradient so far has ended */
    int64_t sum_ns[HB_STREAM_COUNT];
    int64_t free_ns[HB_STREAM_COUNT];
    enum hb_stream *stops_for; /* by op: of the gather right behind it; HB_STREAM_COMPUTE: none */
    enum hb_stream turn;       /* that of most of these */
    bool in_turn;              /* they stay where they are */
    bool any_order;            /* the ops may be in another one: for who asks to set */
    bool several;              /* layers in a trip: the same */
    bool apart;                /* streams are not held */
    uint32_t edge;             /* ops before it are of other trips */
    int64_t least_ns; /* of the last loop that was asked for: a trip of it, the first of a loop or a
                       * later one, takes no less */
};

/* root_of: by buffer, whose memory it lies in. */
void hb_trip_floor_init(struct hb_trip_floor *t, struct hb_arena *arena, const struct hb_program *p,
                        const uint32_t *root_of, const struct hb_op_costs *costs,
                        const bool *optional);
/* Loops stand in the loop: its trips have no floor of their own. */
bool hb_trip_floor_has_inner(const struct hb_program *p, uint32_t loop);
/* All trips of a loop without loops inside, where its group has n steps. */
int64_t hb_trip_floor_ns(struct hb_trip_floor *t, uint32_t loop, int64_t n, int64_t trips);
/* The same where a trip's sums of gradients are through before the next begins. */
int64_t hb_trip_floor_apart_ns(struct hb_trip_floor *t, uint32_t loop, int64_t n, int64_t trips);

#endif
