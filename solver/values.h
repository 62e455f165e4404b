/* A short list of the values that a key may take in a search, each once, in the order of asking. */
#ifndef HB_SOLVER_VALUES_H
#define HB_SOLVER_VALUES_H

#include <stdint.h>

enum { HB_VALUES_MOST = 64 };

struct hb_values {
    int64_t list[HB_VALUES_MOST];
    int count;
};

/* Where it is not there already; what is beyond the room is left out. */
void hb_values_add(struct hb_values *v, int64_t value);
/* Those of a list, or the file's own where the list is empty. */
struct hb_values hb_values_listed(const int64_t *list, int count, int64_t own);

#endif
