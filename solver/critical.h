/* The longest path through a run of ops that may be repeated: found by letting the engine's own
 * streams run them from rest, and going back from the last op of the compute stream along what
 * each op waited for. */
#ifndef HB_SOLVER_CRITICAL_H
#define HB_SOLVER_CRITICAL_H

#include "sim/engine/stream.h"

struct hb_arena;

enum { HB_CRITICAL_TRIPS = 4 };

struct hb_critical {
    uint32_t first_op;
    uint32_t op_count;
    /* [trips - 1][op - first_op]: how often the path through so many trips passes the op */
    uint8_t *passes[HB_CRITICAL_TRIPS];
    uint8_t *cycle; /* [op - first_op]: of what each further trip adds */
};

/* One streams object serves a program; it is left at rest. */
struct hb_critical_ask {
    struct hb_streams *streams;
    struct hb_arena *arena;
    uint32_t first_op;
    uint32_t end_op;
    int trips; /* 1, or HB_CRITICAL_TRIPS for the body of a loop */
};

void hb_critical_find(const struct hb_critical_ask *ask, struct hb_critical *out);

#endif
