/* A work in a process of its own (serve_work.h), forked from the server: what it prints comes back
 * as frames, it can be ended at any time, and nothing that it does or loses is the server's.
 *
 * A frame is a line `KIND LENGTH` and so many bytes: `job` the number by which it is stopped, `out`
 * and `err` what it printed, `tick` nothing (a second passed), `end` its exit status. */
#ifndef HB_CLI_SERVE_JOB_H
#define HB_CLI_SERVE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/select.h>
#include <sys/types.h>

#include "cli/serve_work.h"

struct hb_env;

enum { HB_JOB_ROOM = 256 << 10 };

struct hb_job {
    pid_t pid; /* 0: gone */
    int number;
    int out; /* of its pipes; -1: at its end */
    int err;
    bool ended; /* the last frame is in the buffer */
    size_t len;
    size_t taken;
    char frames[HB_JOB_ROOM]; /* from taken to len */
};

/* body is its standard input. False: this machine has no process or pipe left. */
bool hb_job_start(struct hb_job *job, struct hb_env *env, const struct hb_work *work, int body);
/* The descriptors to wait for, of those that have room for what comes; the largest. */
int hb_job_waits(const struct hb_job *job, fd_set *reads);
/* Reads what is there; at the end of both pipes it takes the exit status. */
void hb_job_read(struct hb_job *job, const fd_set *reads);
/* Something to send, so that a listener who went away is noticed. */
void hb_job_tick(struct hb_job *job);
/* Takes up to most bytes of frames. */
size_t hb_job_take(struct hb_job *job, char *out, size_t most);
/* Asks it to end with what it has so far. */
void hb_job_stop(const struct hb_job *job);
/* Ends it now. */
void hb_job_kill(struct hb_job *job);

#endif
