/* What the ranks of a pipeline do, in order, as torch.distributed.pipelining lists it (torch 2.15,
 * schedules.py), and what its runtime adds to that: receives where the sender has sent, weights
 * gathered for the stages that come next, gradients reduced after a stage's last pass.
 *
 *   stages    loop: 0 1 2 3 0 1 2 3    V: 0 1 2 3 3 2 1 0     (ranks, by stage)
 *
 * Tables that torch made are compared, rank by rank, in tests/unit/test_actions.c. */
#ifndef HB_SIM_EAGER_ACTIONS_H
#define HB_SIM_EAGER_ACTIONS_H

#include "models/spec.h"

struct hb_arena;
struct hb_str;

enum hb_action_kind {
    HB_ACT_FORWARD,
    HB_ACT_BACKWARD, /* of inputs and weights at once */
    HB_ACT_INPUT,    /* of the stage's input alone */
    HB_ACT_WEIGHT,   /* the rest of it, later */
    HB_ACT_UNSHARD,
    HB_ACT_RESHARD,
    HB_ACT_REDUCE,
    HB_ACT_WAIT_REDUCE, /* it is over */
    HB_ACT_RECV_F,      /* a receive's buffer is there */
    HB_ACT_RECV_B,
    HB_ACT_SEND_F,
    HB_ACT_SEND_B,
    HB_ACT_WAIT_F, /* what was sent is let go */
    HB_ACT_WAIT_B
};

struct hb_action {
    enum hb_action_kind kind;
    bool joined; /* with the next one: what both need is there before, what both send goes after */
    int64_t stage;
    int64_t microbatch;
};

struct hb_actions {
    struct hb_action *list;
    uint32_t count, cap;
};

struct hb_pipeline {
    enum hb_schedule schedule;
    int64_t ranks;
    int64_t chunks; /* stages a rank */
    int64_t microbatches;
};

struct hb_pipeline hb_pipeline_of(const struct hb_spec *s);
int64_t hb_pipeline_rank(const struct hb_pipeline *p, int64_t stage);
/* First layer of a stage, in model order. */
int64_t hb_stage_start(const struct hb_spec *spec, int64_t stage);
/* The k-th of a rank's. */
int64_t hb_pipeline_stage(const struct hb_pipeline *p, int64_t rank, int64_t k);
/* torch runs it with its runtime of several stages a rank, not with one that is written out. */
bool hb_pipeline_is_many(const struct hb_pipeline *p);
/* Passes alone. */
struct hb_actions hb_pipeline_passes(struct hb_arena *arena, const struct hb_pipeline *p,
                                     int64_t rank);
/* All that the runtime does, of schedules that are `many`, by rank. */
const struct hb_actions *hb_pipeline_actions(struct hb_arena *arena, const struct hb_pipeline *p);
/* It is of one microbatch, not of a whole stage. */
bool hb_action_is_of_one(const struct hb_action *a);
/* As torch prints it: "2F0". */
void hb_action_name(struct hb_str *out, const struct hb_action *a);

#endif
