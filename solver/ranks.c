#include "solver/ranks.h"

#ifdef HB_MPI

#include <limits.h>
#include <string.h>

#include <mpi.h>

#include "base/diag.h"

enum { TAG_TASK, TAG_LINE };

/* MPI's own handler ends the run where one of its calls fails. */
struct hb_ranks hb_ranks_open(void)
{
    struct hb_ranks ranks;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks.count);
    return ranks;
}

void hb_ranks_close(void)
{
    MPI_Finalize();
}

bool hb_ranks_agree(bool yes)
{
    int own = yes, all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return all;
}

/* To whoever waits the next task, and what it answered kept; whether there was one. */
static bool serve(const struct hb_ranks_tasks *tasks, char *line)
{
    MPI_Status status;
    int len;
    MPI_Recv(line, HB_RANKS_LINE, MPI_CHAR, MPI_ANY_SOURCE, TAG_LINE, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &len);
    if (len > 0) /* the first is empty: it only asks */
        tasks->keep(tasks->context, line, (size_t)len);
    int64_t task = tasks->next(tasks->context);
    MPI_Send(&task, 1, MPI_INT64_T, status.MPI_SOURCE, TAG_TASK, MPI_COMM_WORLD);
    return task >= 0;
}

static bool is_asked(void)
{
    int asked = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_LINE, MPI_COMM_WORLD, &asked, MPI_STATUS_IGNORE);
    return asked;
}

/* Whether there was a task left for rank 0 itself. */
static bool work_alone(const struct hb_ranks_tasks *tasks)
{
    int64_t task = tasks->next(tasks->context);
    if (task < 0)
        return false;
    const char *line = tasks->work(tasks->context, task);
    tasks->keep(tasks->context, line, strlen(line));
    return true;
}

void hb_ranks_lead(const struct hb_ranks *ranks, const struct hb_ranks_tasks *tasks, char *line)
{
    bool more = true;
    for (int working = ranks->count - 1; working > 0;) {
        if (more && !is_asked())
            more = work_alone(tasks);
        else
            working -= !serve(tasks, line);
    }
}

void hb_ranks_follow(hb_ranks_work *work, void *context)
{
    const char *line = "";
    for (;;) {
        int64_t task;
        size_t len = strlen(line);
        if (len > HB_RANKS_LINE)
            HB_BUG("an answer of %zu bytes", len);
        MPI_Send(line, (int)len, MPI_CHAR, 0, TAG_LINE, MPI_COMM_WORLD);
        MPI_Recv(&task, 1, MPI_INT64_T, 0, TAG_TASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (task < 0)
            return;
        line = work(context, task);
    }
}

#else

struct hb_ranks hb_ranks_open(void)
{
    return (struct hb_ranks){0, 1};
}

void hb_ranks_close(void)
{
}

bool hb_ranks_agree(bool yes)
{
    return yes;
}

/* There are no others: nothing to do. */
void hb_ranks_lead(const struct hb_ranks *ranks, const struct hb_ranks_tasks *tasks, char *line)
{
    (void)ranks;
    (void)tasks;
    *line = '\0';
}

void hb_ranks_follow(hb_ranks_work *work, void *context)
{
    (void)work;
    (void)context;
}

#endif
