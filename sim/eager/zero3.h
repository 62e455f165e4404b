/* DeepSpeed's ZeRO-3 (deepspeed/runtime/zero: partitioned_param_coordinator.py,
 * partition_parameters.py, stage3.py; 0.19.8): a parameter is split over the ranks, gathered when
 * its module is entered and given back when it is left. The first pass forwards and backwards
 * writes down which module comes when; from then on every module that is entered, one without
 * parameters too, also gathers what comes next, and what is used again soon is not given back.
 *
 *   enter     gather, if it is not there; then prefetch: the next parameters of the pass, until
 *             `prefetch` elements are asked for, while no more than `live` are there or coming
 *   leave     give back, unless it persists or comes again within `reuse` elements of the pass
 *
 * One parameter is gathered where it stays; several are gathered into one and copied out when the
 * first of them is waited for, and the one goes when the last has been. Small parameters persist:
 * they are gathered after each update and stay to the next. */
#ifndef HB_SIM_EAGER_ZERO3_H
#define HB_SIM_EAGER_ZERO3_H

#include "sim/eager/tape.h"

struct hb_weight;
struct hb_zero3;

struct hb_zero3_limits {
    int64_t ranks;
    int64_t prefetch; /* elements */
    int64_t live;
    int64_t reuse;
    int64_t persists;   /* parameters of no more than so many elements do */
    int64_t group;      /* elements of a rank's part that are updated together, at least */
    uint8_t pool;       /* of the gathers' stream */
    bool on_host;       /* a rank's parts live there: they are copied to be gathered */
    bool updates_there; /* nor does the update take memory here */
};

struct hb_zero3 *hb_zero3_new(struct hb_tape *t, struct hb_zero3_limits limits);
/* In the order of the model's parameters, all before the first pass, a bias behind its weight, with
 * which it is one module. Sets w->zero3 and w->at. */
void hb_zero3_add(struct hb_zero3 *z, struct hb_weight *w);
/* Elements of a rank's parts. */
int64_t hb_zero3_own_count(const struct hb_zero3 *z);
/* A pass forwards begins. */
void hb_zero3_begin(struct hb_zero3 *z);
/* A module that has no parameters of its own; z null: nothing is done. */
void hb_zero3_enter_plain(struct hb_zero3 *z);
/* The module of a parameter; nothing is done without w->zero3. */
void hb_zero3_enter(const struct hb_weight *w);
void hb_zero3_leave(const struct hb_weight *w);
/* For the backward pass of its op; where a checkpoint had entered it for that already, no more. */
void hb_zero3_enter_back(const struct hb_weight *w);
void hb_zero3_enter_early(const struct hb_weight *w);
/* The backward pass is over: modules that were not left are. */
void hb_zero3_end(struct hb_zero3 *z);
/* What is still there. */
void hb_zero3_forget(struct hb_zero3 *z);
/* The update: `update` makes what it takes for a group of parameters, of so many elements of a
 * rank's part. */
void hb_zero3_step(struct hb_zero3 *z, void (*update)(void *context, int64_t count), void *context);

#endif
