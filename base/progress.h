/* How far a long work is, on stderr: only on a terminal, and only once half a second has passed.
 * One line that is rewritten, `sweep: 340 of 2048, 96/s, 18 s left`, and wiped at the end. */
#ifndef HB_BASE_PROGRESS_H
#define HB_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct hb_env;

/* Plain record, private to progress.c in spirit: use the functions. */
struct hb_progress {
    struct hb_env *env;
    const char *what;
    int64_t total;    /* 0: not known */
    int64_t start_ns; /* on env's clock */
    int64_t next_ns;  /* nothing is printed before */
    bool shown;       /* a line stands on the terminal */
};

void hb_progress_start(struct hb_progress *p, struct hb_env *env, const char *what, int64_t total);
/* Cheap enough for an inner loop of microseconds. */
void hb_progress_at(struct hb_progress *p, int64_t done);
void hb_progress_end(struct hb_progress *p);

#endif
