/* Every allocation of a call fails once, and then all from that one on: the call says so by its
 * status, nothing is leaked, no descriptor stays open, and the next call is right again. The
 * allocator's functions are replaced for the whole process (glibc). Prints TAP. */
#include <hbmsim.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void __libc_free(void *piece);

static long seen, fail_at, live;
static bool on;

static bool fails(void)
{
    seen++;
    return fail_at && (seen == fail_at || (on && seen > fail_at));
}

void *malloc(size_t bytes)
{
    void *piece = fails() ? NULL : __libc_malloc(bytes);
    live += piece != NULL;
    return piece;
}

void *calloc(size_t count, size_t bytes)
{
    void *piece = fails() ? NULL : __libc_calloc(count, bytes);
    live += piece != NULL;
    return piece;
}

void *realloc(void *old, size_t bytes)
{
    void *piece = fails() ? NULL : __libc_realloc(old, bytes);
    live += piece != NULL && !old;
    return piece;
}

void free(void *piece)
{
    live -= piece != NULL;
    __libc_free(piece);
}

struct job {
    const char *name;
    int (*call)(const struct hbmsim_input *, const char *const *, struct hbmsim_result **);
    const char *options[5];
};

static const struct job jobs[] = {
    {"simulate", hbmsim_simulate, {"--full"}},
    {"an error", hbmsim_simulate, {"--set=batch.sequ=4"}},
    {"sweep", hbmsim_sweep, {"--x=batch.seq=2048..8192*2"}},
    {"advise", hbmsim_advise, {0}},
    {"plan", hbmsim_plan, {"--set=plan.search.remat=true", "--set=plan.search.mesh=[{fsdp: 8}]"}},
};

static struct hbmsim_input input;

static int call(const struct job *job, long at, bool all, struct hbmsim_result **r)
{
    seen = 0;
    fail_at = at;
    on = all;
    int status = job->call(&input, job->options, r);
    fail_at = 0;
    return status;
}

/* How many of the failures were wrong in some way. step: of the failing call's number. */
static int fail_each(const struct job *job, bool all, long step)
{
    struct hbmsim_result *r;
    int wrong = 0;
    int good = call(job, 0, false, &r);
    long calls = seen;
    hbmsim_free(r);
    for (long at = 1; at <= calls; at += at < 60 ? 1 : step) {
        long before = live;
        int status = call(job, at, all, &r);
        bool told = status == good || (status == HBMSIM_MACHINE && *hbmsim_messages(r));
        hbmsim_free(r);
        if (!told || live != before)
            printf("# %s, allocation %ld%s: status %d, %ld more alive\n", job->name, at,
                   all ? " and all after" : "", status, live - before);
        wrong += !told || live != before;
    }
    wrong += call(job, 0, false, &r) != good;
    hbmsim_free(r);
    printf("# %s: %ld allocations\n", job->name, calls);
    return wrong;
}

int main(int argc, char **argv)
{
    int failed = 0, number = 0;
    long step = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    static const char yaml[] = "hbmsim: 1\nmodel: {preset: llama3-8b}\n"
                               "batch: {global: 32, seq: 8192}\noptimizer: {name: adamw}\n"
                               "mesh: {fsdp: 8}\nremat: {policy: full}\n"
                               "hardware: {device: nvidia-h100, count: 8}\ncompiler: xla-gpu\n";
    input = (struct hbmsim_input){
        .text = yaml, .text_bytes = sizeof yaml - 1, .data_dir = argc > 1 ? argv[1] : NULL};
    int lowest = dup(0);
    close(lowest);
    printf("1..%d\n", 2 * (int)(sizeof jobs / sizeof *jobs) + 1);
    fflush(stdout);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        for (int all = 0; all < 2; all++) {
            bool good = fail_each(&jobs[i], all, step) == 0;
            failed += !good;
            printf("%sok %d - %s with %s\n", good ? "" : "not ", ++number, jobs[i].name,
                   all ? "no memory from some point on" : "one allocation refused");
        }
    int now = dup(0);
    failed += now != lowest;
    printf("%sok %d - no descriptor stays open\n", now == lowest ? "" : "not ", ++number);
    return failed != 0;
}
