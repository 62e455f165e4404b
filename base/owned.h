/* What has to be given back where a call of the library ends in its middle (hb_die): arenas,
 * parsers, streams. Each owner makes itself known before it takes and takes leave when it has
 * given back. In the program, which ends with its memory, nothing is kept here. */
#ifndef HB_BASE_OWNED_H
#define HB_BASE_OWNED_H

#include <stdbool.h>

struct hb_owned {
    void (*drop)(void *what);
    void *what;
    struct hb_owned *older;
    struct hb_owned *newer;
    bool kept;
};

/* owned lives as long as what it tells of, on the stack or beside it. */
void hb_own(struct hb_owned *owned, void (*drop)(void *what), void *what);
/* Before what is given back: drop is not called any more. */
void hb_disown(struct hb_owned *owned);

/* From here on this thread keeps what is owned, */
void hb_owned_begin(void);
/* until here, where what is left is dropped, newest first. */
void hb_owned_end(void);

#endif
