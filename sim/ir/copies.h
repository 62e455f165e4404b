/* The optimizer's states on their way from the host and back, on XLA:TPU: which copy starts, and
 * ends, between which updates. optim.c fetches, updates and sends by it. */
#ifndef HB_SIM_IR_COPIES_H
#define HB_SIM_IR_COPIES_H

#include "sim/ir/lowering.h"

enum hb_copies_kind {
    HB_COPIES_LOSS,   /* here is the loss, with the head's products; no weight's */
    HB_COPIES_LAYERS, /* the layers' backward pass, or the loop over microbatches; no weight's */
    HB_COPIES_FETCH,  /* a state's copy to the device starts */
    HB_COPIES_UPDATE, /* of the weight, with all states that are not made apart; or of such a one */
    HB_COPIES_SEND    /* a new state's copy to the host has ended */
};

struct hb_copies_event {
    enum hb_copies_kind kind;
    uint32_t leaf; /* the weight's first; its others, of one run of layers each, go with it */
    int state;     /* of HB_LEAF_STATES; of an update 0, or the one that it makes alone */
};

/* The step's, in their order, and how far the program has come. */
struct hb_copies {
    struct hb_copies_event *events;
    uint32_t count, next;
    bool list;        /* they are a list's */
    bool head_behind; /* the head's gradient is made for its update alone, behind the layers */
};

/* Whether the optimizer's states are so ordered: not muon's whole matrices. */
bool hb_copies_queued(const struct hb_lower *lo);
/* Fills in the events, and of each kind of weight which states are renewed apart. */
void hb_copies_find(struct hb_lower *lo);

#endif
