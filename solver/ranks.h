/* The processes of an MPI run, where the program was built with it (make MPI=1) and started by
 * mpirun: rank 0 has a list of tasks and gives out the next to whoever is free, itself where nobody
 * asks; the others answer each with a line. Without MPI there is one process of rank 0. The only
 * user of MPI. */
#ifndef HB_SOLVER_RANKS_H
#define HB_SOLVER_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hb_ranks {
    int rank;
    int count;
};

/* The next task, >= 0; -1: there is none. */
typedef int64_t hb_ranks_next(void *context);
/* A line of at most HB_RANKS_LINE bytes, that stays until the next call. */
typedef const char *hb_ranks_work(void *context, int64_t task);
typedef void hb_ranks_keep(void *context, const char *line, size_t len);

enum { HB_RANKS_LINE = 65536 };

struct hb_ranks_tasks {
    hb_ranks_next *next;
    hb_ranks_work *work; /* rank 0's own */
    hb_ranks_keep *keep;
    void *context;
};

/* Once in a process, and closed before it ends. */
struct hb_ranks hb_ranks_open(void);
void hb_ranks_close(void);
/* Whether all ranks say yes; each is told. */
bool hb_ranks_agree(bool yes);
/* Rank 0 of several: until all tasks are answered and kept. line has room for HB_RANKS_LINE. */
void hb_ranks_lead(const struct hb_ranks *ranks, const struct hb_ranks_tasks *tasks, char *line);
/* The others: until there are no more tasks. */
void hb_ranks_follow(hb_ranks_work *work, void *context);

#endif
