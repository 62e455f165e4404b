/* Records whose configurations differ in one key: what that key cost, measured and predicted. Two
 * errors can hide each other in a total; a difference shows the mechanism alone.
 *
 * A key is a leaf of the complete configuration, a list counting as one. What another key brings
 * with it counts as part of that key: the moments of an optimizer, the names of a policy, the
 * device count of a mesh. Names, and the memory that there is, are no part of the program. */
#ifndef HB_SIM_ENGINE_PAIRS_H
#define HB_SIM_ENGINE_PAIRS_H

#include "sim/engine/validate.h"

struct hb_pairs_side;

/* Records gathered so far. */
struct hb_pairs {
    struct hb_arena *arena;
    const char **keys; /* paths, each once */
    uint32_t key_count, key_cap;
    struct hb_pairs_side *sides;
    uint32_t side_count, side_cap;
};

/* What the second record has more than the first, which was added before it. */
struct hb_pair {
    const char *first; /* ids */
    const char *second;
    const char *key;
    int64_t measured_bytes;
    int64_t predicted_bytes;
    bool rematerialised; /* one of the two by the compiler itself: not the key's doing alone */
};

/* Differences below this are within what unrelated changes of a schedule do; of them only the size
 * is asked, of larger ones the sign, and whether they are right within so much. */
#define HB_PAIR_LARGE_BYTES INT64_C(500000000)
#define HB_PAIR_CLOSE       0.15

struct hb_pair_stats {
    uint32_t n;            /* of the pairs asked for */
    uint32_t large;        /* of them measured above HB_PAIR_LARGE_BYTES */
    uint32_t sign_right;   /* of the large ones */
    uint32_t within_close; /* of the large ones: off by at most HB_PAIR_CLOSE of the measured */
    uint32_t small_within; /* of the others: off by at most HB_PAIR_LARGE_BYTES */
};

void hb_pairs_init(struct hb_pairs *pairs, struct hb_arena *arena);
/* A record and what became of it; the texts of c must last. Records of speed and those without a
 * prediction have no part in this. scratch, another arena, is rewound. */
void hb_pairs_add(struct hb_pairs *pairs, struct hb_arena *scratch, const struct hb_record *record,
                  const struct hb_case *c);
/* All pairs, in order of the second record, then of the first; returns their number. */
uint32_t hb_pairs_find(const struct hb_pairs *pairs, struct hb_pair **out);
/* Of those pairs that have a record which the compiler rematerialised by itself, or of the others:
 * such records stand in a group of their own, and so do their differences. */
struct hb_pair_stats hb_pairs_stats(const struct hb_pair *list, uint32_t count,
                                    bool rematerialised);

#endif
