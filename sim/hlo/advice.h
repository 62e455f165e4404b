/* What to try, and what first: one table, by the cause, by the message that tells it, by what kind
 * of program it was and by its framework. The tellers (story_*.c) only say what the log told. */
#ifndef HB_SIM_HLO_ADVICE_H
#define HB_SIM_HLO_ADVICE_H

#include <stdint.h>

#include "sim/hlo/knob.h"

struct teller;

/* What decides beside cause and message. */
enum hb_trait {
    /* of the program, by the log's words */
    HB_TRAIT_TRAINS,
    HB_TRAIT_RUNS,    /* runs a model and trains nothing */
    HB_TRAIT_LOADS,   /* a model's weights, and trains nothing */
    HB_TRAIT_SERVES,  /* a server of models, or one beside a trainer */
    HB_TRAIT_METAL,   /* on Apple's devices, of which no server takes a share */
    HB_TRAIT_ENGINE,  /* a runtime that only runs models does it */
    HB_TRAIT_TRAINER, /* one that only trains does it */
    HB_TRAIT_JAX,
    HB_TRAIT_TENSORRT,
    HB_TRAIT_GROWS,  /* PyTorch: its pool takes no more than the program's tensors did */
    HB_TRAIT_LEAST,  /* one sequence at a time */
    HB_TRAIT_REMAT,  /* recomputes whole layers already */
    HB_TRAIT_SAVES,  /* a checkpoint is written */
    HB_TRAIT_WHOLE,  /* a divided state is gathered, to load or to save it */
    HB_TRAIT_PLACES, /* its weights are put onto the device */
    HB_TRAIT_MANY,   /* several processes train together */
    HB_TRAIT_ONE,    /* weights are put onto one device */
    HB_TRAIT_HELD,   /* a process that is gone holds the device */
    HB_TRAIT_WHOLLY, /* nothing of its state is divided */
    HB_TRAIT_VOCAB,  /* logits of all words and tokens are spoken of */
    HB_TRAIT_INPUTS, /* how large an input is is spoken of */
    HB_TRAIT_LOWERS, /* somebody advises to lower a server's share */
    /* of the refusal, by its figures */
    HB_TRAIT_FIGURES, /* what was asked for is told */
    HB_TRAIT_SMALL,   /* less than JAX's pool leaves to others */
    HB_TRAIT_LISTED,  /* the buffers are told */
    HB_TRAIT_SCORES,  /* the giant is attention's */
    HB_TRAIT_UNNAMED, /* nothing says what the giant is */
    /* as a teller finds */
    HB_TRAIT_CARD,      /* the card is set to have less */
    HB_TRAIT_OWN_LIMIT, /* ... that the process or its platform has, not the device */
    HB_TRAIT_MINE,      /* what nobody accounts for is the program's own */
    HB_TRAIT_ABOVE,     /* one request above all that there is */
    HB_TRAIT_FAR_ABOVE, /* ... many times */
    HB_TRAIT_NEAR,      /* a larger pool would do, or costs nothing to try */
    HB_TRAIT_APART,     /* outputs as large as arguments do not take their place */
    HB_TRAIT_FULL,      /* a device full of what stays */
    HB_TRAIT_IDLE,      /* much is reserved that no tensor uses */
    HB_TRAIT_BESIDE,    /* much stands beside the framework's pool */
    HB_TRAIT_RESHARDS,  /* tensors are gathered to be sharded otherwise */
    HB_TRAIT_NOTHING,   /* the message has nothing to say: all its figures are zero */
    HB_TRAIT_ANYONES,   /* nothing tells whose memory it was, the host's or a device's */
    HB_TRAIT_COUNT
};

struct hb_advice {
    uint64_t traits;              /* bits of enum hb_trait that a teller found */
    int64_t frees[HB_KNOB_COUNT]; /* at most; 0: not known */
};

/* Fills the story's knobs, what helps most first. */
void hb_advise(const struct teller *t);

#endif
