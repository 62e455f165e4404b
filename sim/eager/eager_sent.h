/* Weights, gradients and activations that an eager framework sends beside its kernels, each on the
 * stream of its axis. Private to sim/eager/eager*.c. */
#ifndef HB_SIM_EAGER_EAGER_SENT_H
#define HB_SIM_EAGER_EAGER_SENT_H

#include "sim/eager/eager_layer.h"

/* Weights on this device when gathered. */
struct hb_eager_held {
    double dense;
    double experts;
};

bool hb_eager_has_fsdp(const struct hb_eager *e);
/* Devices that weights are split over, and those that hold copies of them. */
double hb_eager_split_ways(const struct hb_eager *e, bool expert);
double hb_eager_copy_ways(const struct hb_eager *e, bool expert);
void hb_eager_gather_weights(struct hb_eager *e, struct hb_eager_held w);
/* Waits for them. */
void hb_eager_take_weights(struct hb_eager *e, struct hb_eager_held w);
void hb_eager_gather_tables(struct hb_eager *e, double tables);
/* Updated parameters are gathered with the next pass forwards, not after the update. */
bool hb_eager_updates_ahead(const struct hb_eager *e);
void hb_eager_gather_updates(struct hb_eager *e, struct hb_eager_held w, uint32_t read,
                             uint32_t write);
void hb_eager_wait_for_updates(struct hb_eager *e);
/* last: of the microbatches; the copies' are summed, too. */
void hb_eager_sum_gradients(struct hb_eager *e, struct hb_eager_held w, bool last);
void hb_eager_sum_copies(struct hb_eager *e, struct hb_eager_held w);
bool hb_eager_sums_late(const struct hb_eager *e);
void hb_eager_pass_on(struct hb_eager *e);

#endif
