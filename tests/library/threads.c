/* Eight threads at once, each another call on another configuration, over and over, under a locale
 * that writes 0,5: every answer must be the bytes of the first, made alone. Prints TAP. */
#include <hbmsim.h>
#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, CALLS = 6 };

struct job {
    const char *name;
    int (*call)(const struct hbmsim_input *, const char *const *, struct hbmsim_result **);
    const char *options[5];
    int status; /* wanted */
};

static const struct job jobs[CALLS] = {
    {"simulate", hbmsim_simulate, {"--full"}, HBMSIM_YES},
    {"sweep", hbmsim_sweep, {"--x=batch.seq=2048..8192*2", "--y=batch.global=16,32"}, HBMSIM_YES},
    {"advise", hbmsim_advise, {0}, HBMSIM_YES},
    {"plan",
     hbmsim_plan,
     {"--seconds=600", "--set=plan.search.remat=true", "--set=plan.search.mesh=[{fsdp: 8}]"},
     HBMSIM_YES},
    {"error", hbmsim_simulate, {"--set=batch.sequ=4"}, HBMSIM_INPUT},
    {"infeasible", hbmsim_simulate, {"--set=batch.seq=131072"}, HBMSIM_NO},
};

static struct hbmsim_input input;
static char *wanted[CALLS];

/* Of a plan all but the time that it took. */
static char *answer(const struct job *job, int *out_status)
{
    struct hbmsim_result *r;
    *out_status = job->call(&input, job->options, &r);
    size_t bytes;
    const char *text = hbmsim_text(r, &bytes);
    const char *messages = hbmsim_messages(r);
    char *whole = malloc(bytes + strlen(messages) + 1);
    if (!whole)
        abort();
    memcpy(whole, text, bytes);
    memcpy(whole + bytes, messages, strlen(messages) + 1);
    char *seconds = strstr(whole, "  \"seconds\": ");
    const char *rest = seconds ? strchr(seconds, '\n') : NULL;
    if (rest)
        memmove(seconds, rest, strlen(rest) + 1);
    hbmsim_free(r);
    return whole;
}

struct worker {
    pthread_t thread;
    int first;
    int rounds;
    int wrong;
};

static void *work(void *context)
{
    struct worker *w = context;
    for (int i = 0; i < w->rounds * CALLS; i++) {
        int which = (w->first + i) % CALLS;
        int status;
        char *got = answer(&jobs[which], &status);
        bool wrong = status != jobs[which].status || strcmp(got, wanted[which]) != 0;
        if (wrong)
            printf("# %s: status %d, %.300s\n", jobs[which].name, status, got);
        w->wrong += wrong;
        free(got);
    }
    return NULL;
}

static int check(int *number, bool good, const char *name)
{
    printf("%sok %d - %s\n", good ? "" : "not ", ++*number, name);
    return !good;
}

int main(int argc, char **argv)
{
    struct worker workers[THREADS] = {0};
    int number = 0, failed = 0, wrong = 0;
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1;
    static const char yaml[] = "hbmsim: 1\nmodel: {preset: llama3-8b}\n"
                               "batch: {global: 32, seq: 8192}\noptimizer: {name: adamw}\n"
                               "mesh: {fsdp: 8}\nremat: {policy: full}\n"
                               "hardware: {device: nvidia-h100, count: 8}\ncompiler: xla-gpu\n";
    input = (struct hbmsim_input){
        .text = yaml, .text_bytes = sizeof yaml - 1, .data_dir = argc > 1 ? argv[1] : NULL};
    bool comma = argc > 2 && setlocale(LC_ALL, argv[2]) != NULL;
    printf("1..%d\n# decimal point: %s\n", CALLS + 1, comma ? localeconv()->decimal_point : ".");
    for (int i = 0; i < CALLS; i++) {
        int status;
        wanted[i] = answer(&jobs[i], &status);
        failed += check(&number, status == jobs[i].status && wanted[i][0], jobs[i].name);
        if (status != jobs[i].status)
            printf("# status %d: %.200s\n", status, wanted[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.first = i, .rounds = rounds};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            abort();
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        wrong += workers[i].wrong;
    }
    failed += check(&number, wrong == 0, "eight threads give what one gives");
    for (int i = 0; i < CALLS; i++)
        free(wanted[i]);
    return failed != 0;
}
