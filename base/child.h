/* Another program, run to its end or stopped: its input, its output and its messages are kept in
 * memory. No shell: the words of argv are passed as they are. The only user of fork and exec.
 *
 * The child is the head of a process group of its own, so that what it starts in turn is stopped
 * with it: by SIGTERM, a second later by SIGKILL. While it runs, SIGINT, SIGTERM and SIGHUP are
 * held back: the group is stopped, and the caller decides what the signal means. */
#ifndef HB_BASE_CHILD_H
#define HB_BASE_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"

struct hb_arena;

struct hb_child_ask {
    const char *const *argv; /* ended by null; argv[0] is looked for in PATH */
    const char *folder;      /* where it runs; null: here */
    const char *input;       /* its standard input, whole; null: empty */
    int64_t most_ns;         /* of time; 0: no limit */
    size_t most_bytes;       /* of its output; of its messages the last so many are kept */
    int64_t (*now_ns)(void); /* a monotonic clock */
};

enum hb_child_end {
    HB_CHILD_DONE,        /* it ended by itself, with `status` */
    HB_CHILD_ABSENT,      /* it could not be started: `status` is the errno */
    HB_CHILD_SIGNAL,      /* killed by signal `status`, not by us */
    HB_CHILD_LATE,        /* stopped after most_ns */
    HB_CHILD_LONG,        /* stopped: its output exceeds most_bytes */
    HB_CHILD_INTERRUPTED, /* stopped: signal `status` came for us, and was taken */
};

struct hb_child {
    enum hb_child_end end;
    int status;
    struct hb_text out; /* what it printed, up to most_bytes */
    struct hb_text err; /* the end of its messages */
    int64_t took_ns;
};

/* Dies only where this machine cannot start any process (pipes, fork). */
void hb_child_run(struct hb_arena *arena, const struct hb_child_ask *ask, struct hb_child *out);

#endif
