/* What words mean in sentences about memory. */
#ifndef HB_SIM_HLO_LOGMEANING_H
#define HB_SIM_HLO_LOGMEANING_H

enum {
    WANTS = 1 << 0,   /* what stands beside it was asked for */
    WANTED = 1 << 1,  /* the same, where no other word says more */
    FREES = 1 << 2,   /* ... is there to be had */
    LIMITS = 1 << 3,  /* ... is the most that may be had */
    TOTALS = 1 << 4,  /* ... is all there is */
    HOLDS = 1 << 5,   /* ... is in use */
    PAUSES = 1 << 6,  /* compares: what is behind it is another amount */
    ALLOCS = 1 << 7,  /* an allocation */
    FAILS = 1 << 8,   /* that failed */
    MEMORY = 1 << 9,  /* memory */
    THING = 1 << 10,  /* or what lies in it */
    SHORT = 1 << 11,  /* too little of it */
    HOST = 1 << 12,   /* the host's */
    DEVICE = 1 << 13, /* a device's */
    CHIP = 1 << 14,   /* a kernel's own */
    ADVISES = 1 << 15,
    ENDS = 1 << 16,  /* a process was ended */
    LEADS = 1 << 18, /* may stand between such a word and its number */
    EXCEEDS = 1 << 19,
    OWNER = 1 << 20,   /* before memory: the host's */
    PINNED = 1 << 21,  /* the host's, though a device reads it */
    LINKS = 1 << 22,   /* a library of collectives */
    KERNELS = 1 << 23, /* a library of kernels */
    CANNOTS = 1 << 24, /* before an allocation: it failed */
    RECKONS = 1 << 25  /* before a number: what somebody reckons */
};

enum { HB_MEANING_WORD = 24 }; /* longer words mean nothing */

/* All that a word in lower case can mean, also with an ending ("exceeding", "pods"); 0: nothing
 * that is known. */
int hb_meaning_of(const char *word);

#endif
