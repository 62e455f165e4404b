/* When a search is to end before it is done: at a time, or when somebody asks for it. What takes
 * long looks here in its loops; what was found so far is still worth what it was. */
#ifndef HB_SOLVER_STOP_H
#define HB_SOLVER_STOP_H

#include <stdbool.h>
#include <stdint.h>

struct hb_stop {
    int64_t (*now_ns)(void); /* a monotonic clock */
    bool (*is_asked)(void);  /* to end now; null: nobody can */
    int64_t until_ns;        /* 0: for ever */
    int64_t asked_ns;        /* when that was last looked at */
    bool stopped;            /* stays so */
};

/* From now on; most_ns: 0 for ever. */
void hb_stop_start(struct hb_stop *stop, int64_t most_ns);
/* Whether it is over; cheap. Null: never. */
bool hb_stop_now(struct hb_stop *stop);

#endif
