/* NCCL or RCCL: collectives that reach half of 450 GB/s after the latencies of NVLink. */
#include "tests/standin/standin.h"

struct comm {
    int rank, count;
};

static int open_comms, in_group, calls;

/* ccl=N: the N-th call here. */
static int fails(void)
{
    return ++calls == standin_trouble("ccl");
}

__attribute__((destructor)) static void check_ended(void)
{
    if (open_comms || in_group)
        standin_die("a communicator was left");
}

int ncclCommInitAll(void **comms, int count, const int *devices)
{
    if (fails())
        return FAILED;
    if (standin_trouble("noccl"))
        return 2;
    for (int i = 0; i < count; i++) {
        struct comm *c = calloc(1, sizeof *c);
        *c = (struct comm){devices[i], count};
        comms[i] = c;
        open_comms++;
    }
    return 0;
}

int ncclCommDestroy(void *comm)
{
    free(comm);
    open_comms--;
    return 0;
}

int ncclGroupStart(void)
{
    in_group++;
    return 0;
}

int ncclGroupEnd(void)
{
    in_group--;
    if (fails())
        return FAILED;
    return 0;
}

static int pass(void *stream, double bytes)
{
    if (!in_group)
        standin_die("a collective outside of a group");
    standin_work(stream, 14000 + 3 * 1900 + bytes / (0.5 * 450e9) * 1e9);
    return 0;
}

int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, void *stream)
{
    double n = ((struct comm *)comm)->count;
    if (fails())
        return FAILED;
    standin_check((uintptr_t)from, (double)count, "a gather beyond an allocation");
    standin_check((uintptr_t)to, (double)count * n, "a gather beyond an allocation");
    return type ? 4 : pass(stream, (double)count * (n - 1));
}

int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, void *comm,
                      void *stream)
{
    double n = ((struct comm *)comm)->count;
    if (fails())
        return FAILED;
    standin_check((uintptr_t)from, 2. * (double)count * n, "a scatter beyond an allocation");
    standin_check((uintptr_t)to, 2. * (double)count, "a scatter beyond an allocation");
    return type != 9 || op ? 4 : pass(stream, 2. * (double)count * (n - 1));
}

int ncclSend(const void *from, size_t count, int type, int peer, void *comm, void *stream)
{
    const struct comm *c = comm;
    if (fails())
        return FAILED;
    standin_check((uintptr_t)from, (double)count, "a send beyond an allocation");
    if (type || peer < 0 || peer >= c->count)
        return 4;
    standin_work(stream, (double)count / (0.5 * 450e9) * 1e9);
    return 0;
}

int ncclRecv(void *to, size_t count, int type, int peer, void *comm, void *stream)
{
    const struct comm *c = comm;
    (void)stream;
    if (fails())
        return FAILED;
    standin_check((uintptr_t)to, (double)count, "a receive beyond an allocation");
    return type || peer < 0 || peer >= c->count ? 4 : 0;
}
