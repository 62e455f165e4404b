/* Records predicted with conditions answered by force: see mutate.py, which numbers them and reads
 * what is said here, a line for each answer:
 *   condition  no|yes  records that ask it  records moved|unasked|alike|fault  error before  after
 * one Errors are sums over the records moved, in percentage points; one is a record that moved, or
 * -1. A line `condition answer one` asks for it: that record is run first, the others by their
 * time. Of a step whose three orders the compiler's log estimates (a file .tsv: id, list, depth,
 * post in GiB) those are a record, too. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "hw/device.h"
#include "models/record.h"
#include "sim/graph/link.h"
#include "sim/engine/budget.h"
#include "sim/engine/validate.h"

enum { CONDITIONS = 8192, MOST_LINES = 2 * CONDITIONS, SECONDS = 1, FAULT_PCT = 100 };
static const rlim_t ROOM_BYTES = (rlim_t)3 << 30;

/* What the sources ask. */
extern unsigned char hb_asked[CONDITIONS];
extern signed char hb_forced[CONDITIONS];
unsigned char hb_asked[CONDITIONS];
signed char hb_forced[CONDITIONS];

struct said {
    double value; /* bytes or seconds; NAN: not run */
    double error_pct;
};

/* Of the log; none: the step itself is asked. */
struct estimates {
    double gib[HB_ORDER_KINDS];
};

struct records {
    struct hb_arena *arena;
    struct hb_arena *own; /* of the record that is run */
    struct hb_record *list;
    uint32_t *device_of; /* of a record, in devices */
    struct estimates *estimates;
    struct hb_device *devices;
    uint32_t count;
    uint32_t cap;
    uint32_t of_cap;
    uint32_t estimate_cap;
    uint32_t device_count;
    uint32_t device_cap;
    struct said *plain;
    struct said *forced; /* shared with the child that fills it */
    uint32_t *by_time;   /* the quickest first */
    unsigned char (*asked)[CONDITIONS];
    uint32_t every; /* one of so many is run, the others ask nothing */
    bool all;       /* no answer is done with the first record that moves */
};

struct line {
    int condition;
    int answer;
    long first; /* the record to begin with; none: -1 */
};

/* HB_NONE: no such device. */
static uint32_t find_device(struct records *r, const char *name)
{
    struct hb_diag quiet;
    struct hb_device device;
    for (uint32_t i = 0; i < r->device_count; i++)
        if (hb_str_same(r->devices[i].name, name))
            return i;
    hb_diag_init(&quiet, r->arena);
    if (!hb_device_load(r->arena, &quiet, ".", name, (struct hb_loc){0}, &device))
        return HB_NONE;
    r->devices = hb_grow(r->arena, r->devices, r->device_count, &r->device_cap, sizeof *r->devices);
    r->devices[r->device_count] = device;
    return r->device_count++;
}

static void add_record(struct records *r, struct hb_record record, uint32_t device,
                       struct estimates e)
{
    r->list = hb_grow(r->arena, r->list, r->count, &r->cap, sizeof *r->list);
    r->device_of = hb_grow(r->arena, r->device_of, r->count, &r->of_cap, sizeof *r->device_of);
    r->estimates =
        hb_grow(r->arena, r->estimates, r->count, &r->estimate_cap, sizeof *r->estimates);
    r->list[r->count] = record;
    r->device_of[r->count] = device;
    r->estimates[r->count++] = e;
}

static void read_records(struct records *r, const char *path)
{
    struct hb_jsonl file;
    struct hb_diag diag;
    struct hb_node *node;
    hb_diag_init(&diag, r->arena);
    bool ok = hb_jsonl_open(r->arena, &diag, path, &file);
    while (ok && hb_jsonl_next(&file, r->arena, &diag, &node) && node) {
        struct hb_record record;
        if (!hb_record_read(r->arena, &diag, node, ".", &record) || record.verdict)
            continue;
        struct hb_spec *spec = &record.spec;
        uint32_t device = find_device(r, spec->hardware.device);
        if (device == HB_NONE)
            continue;
        spec->hardware.memory_bytes = hb_budget_found_bytes(spec, &r->devices[device]);
        add_record(r, record, device, (struct estimates){{0}});
    }
}

/* Behind the records that they are of. */
static void read_estimates(struct records *r, const char *path)
{
    enum { LONGEST = 512 };
    char line[LONGEST];
    FILE *in = fopen(path, "r");
    uint32_t steps = r->count;
    while (in && fgets(line, sizeof line, in)) {
        struct estimates e;
        char *at = strchr(line, '\t');
        if (!at || line[0] == '#')
            continue;
        *at++ = '\0';
        for (int k = 0; k < HB_ORDER_KINDS; k++) /* list, depth, post */
            e.gib[k] = strtod(at, &at);
        for (uint32_t i = 0; i < steps; i++)
            if (hb_str_same(r->list[i].id, line)) {
                add_record(r, r->list[i], r->device_of[i], e);
                break;
            }
    }
    if (in)
        fclose(in);
}

static void read_file(struct records *r, const char *path)
{
    size_t len = strlen(path);
    if (len > 4 && hb_str_same(path + len - 4, ".tsv"))
        read_estimates(r, path);
    else
        read_records(r, path);
}

/* One figure of three, and how far off they are in all. */
static struct said predict_orders(struct records *r, uint32_t i, const struct hb_program *p)
{
    struct hb_step_orders orders;
    struct said said = {0, 0};
    hb_step_orders_find(r->own, p, &orders);
    for (int k = 0; k < HB_ORDER_KINDS; k++) {
        double gib = (double)orders.choice.bytes[k] / (1 << 30);
        said.value += (double)orders.choice.bytes[k] * (1 << k);
        said.error_pct += 100 * fabs(gib / r->estimates[i].gib[k] - 1) / HB_ORDER_KINDS;
    }
    return said;
}

static struct said predict(struct records *r, uint32_t i)
{
    struct hb_program program;
    struct hb_memory memory;
    struct hb_case c;
    const struct hb_record *record = &r->list[i];
    const struct hb_device *device = &r->devices[r->device_of[i]];
    struct hb_arena_mark mark = hb_arena_mark(r->own);
    hb_validate_case(r->own, record, record->peak_bytes < 0 ? device : NULL, &c, &program, &memory);
    struct said said = {c.speed ? c.predicted_seconds : (double)c.predicted_bytes, c.error_pct};
    if (c.failed)
        said = (struct said){-1, FAULT_PCT};
    else if (r->estimates[i].gib[0] > 0)
        said = predict_orders(r, i, &program);
    hb_arena_rewind(r->own, mark);
    return said;
}

static bool is_asked_else(const struct records *r, uint32_t i, const struct line *l)
{
    return r->asked[i][l->condition] & (l->answer ? 1 : 2);
}

static bool is_moved(const struct records *r, uint32_t i)
{
    return !isnan(r->forced[i].value) && fabs(r->forced[i].value - r->plain[i].value) > 0;
}

/* Whether it moved. What falls or takes too long has. */
static bool force_record(struct records *r, uint32_t i)
{
    const struct itimerval most = {.it_value = {SECONDS, 0}};
    setitimer(ITIMER_PROF, &most, NULL);
    r->forced[i] = (struct said){INFINITY, FAULT_PCT};
    r->forced[i] = predict(r, i);
    return is_moved(r, i);
}

/* In a child of its own, which may fall. False: it did. */
static bool force(struct records *r, const struct line *l)
{
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        exit(3);
    if (!child) {
        struct rlimit core = {0, 0}, room = {ROOM_BYTES, ROOM_BYTES};
        setrlimit(RLIMIT_CORE, &core);
        setrlimit(RLIMIT_AS, &room);
        if (!freopen("/dev/null", "w", stderr))
            _exit(3);
        hb_forced[l->condition] = (signed char)l->answer;
        bool known = l->first >= 0 && l->first < r->count &&
                     is_asked_else(r, (uint32_t)l->first, l) && force_record(r, (uint32_t)l->first);
        for (uint32_t k = 0; k < r->count && (r->all || !known); k++)
            if (is_asked_else(r, r->by_time[k], l) && isnan(r->forced[r->by_time[k]].value))
                known = force_record(r, r->by_time[k]) || known;
        _exit(0);
    }
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void try_answer(struct records *r, const struct line *l)
{
    const char *word = l->answer ? "yes" : "no";
    uint32_t asks = 0, else_ = 0, moved = 0;
    double before = 0, after = 0;
    long one = -1;
    for (uint32_t i = 0; i < r->count; i++) {
        asks += r->asked[i][l->condition] != 0;
        else_ += is_asked_else(r, i, l);
        r->forced[i].value = NAN;
    }
    if (!else_) {
        if (asks || !l->answer)
            printf("%d %s %u %s 0 0 -1\n", l->condition, word, asks, asks ? "alike" : "unasked");
        return;
    }
    bool whole = force(r, l);
    for (uint32_t i = 0; i < r->count; i++)
        if (is_moved(r, i)) {
            moved++;
            one = i;
            before += fabs(r->plain[i].error_pct);
            after += fabs(r->forced[i].error_pct);
        }
    if (whole)
        printf("%d %s %u %u %.2f %.2f %ld\n", l->condition, word, asks, moved, before, after, one);
    else
        printf("%d %s %u fault %.2f %.2f %ld\n", l->condition, word, asks, before, after, one);
}

static void *shared(size_t count, size_t size)
{
    void *at = mmap(NULL, count * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(3);
    return at;
}

/* As many workers as there are processors, each with lines of its own. False: one fell. */
static bool share_lines(struct records *r, const struct line *lines, uint32_t count)
{
    long workers = sysconf(_SC_NPROCESSORS_ONLN);
    int status;
    bool ok = true;
    for (long w = 0; w < workers; w++) {
        pid_t child = fork();
        if (child < 0)
            exit(3);
        if (child)
            continue;
        r->forced = shared(r->count, sizeof *r->forced);
        for (uint32_t i = (uint32_t)w; i < count; i += (uint32_t)workers) {
            try_answer(r, &lines[i]);
            fflush(stdout); /* a line at once, beside other workers' */
        }
        _exit(0);
    }
    while (wait(&status) > 0)
        ok = ok && status == 0;
    return ok;
}

struct timed {
    clock_t took;
    uint32_t record;
};

static int compare_times(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->took != y->took)
        return x->took < y->took ? -1 : 1;
    return x->record < y->record ? -1 : x->record > y->record;
}

static void predict_all(struct records *r)
{
    struct timed *times = hb_arena_alloc(r->arena, r->count, sizeof *times);
    r->plain = hb_arena_alloc(r->arena, r->count, sizeof *r->plain);
    r->asked = hb_arena_alloc(r->arena, r->count, sizeof *r->asked);
    r->by_time = hb_arena_alloc(r->arena, r->count, sizeof *r->by_time);
    for (uint32_t i = 0; i < r->count; i++) {
        clock_t start = clock();
        if (i % r->every)
            continue;
        memset(hb_asked, 0, sizeof hb_asked);
        r->plain[i] = predict(r, i);
        memcpy(r->asked[i], hb_asked, sizeof hb_asked);
        times[i].took = clock() - start;
    }
    for (uint32_t i = 0; i < r->count; i++)
        times[i].record = i;
    qsort(times, r->count, sizeof *times, compare_times);
    for (uint32_t i = 0; i < r->count; i++)
        r->by_time[i] = times[i].record;
}

int main(int argc, char **argv)
{
    struct records r = {.arena = hb_arena_new(), .own = hb_arena_new()};
    static struct line lines[MOST_LINES];
    uint32_t count = 0;
    memset(hb_forced, -1, sizeof hb_forced);
    if (argc < 5 || strtol(argv[2], NULL, 10) >= CONDITIONS)
        return 2;
    r.all = hb_str_same(argv[1], "all");
    r.every = (uint32_t)strtol(argv[3], NULL, 10);
    for (int i = 4; i < argc; i++)
        read_file(&r, argv[i]);
    if (!r.count)
        return 3;
    predict_all(&r);
    while (count < MOST_LINES && scanf("%d %d %ld", &lines[count].condition, &lines[count].answer,
                                       &lines[count].first) == 3)
        count++;
    bool ok = share_lines(&r, lines, count);
    hb_arena_free(r.own);
    hb_arena_free(r.arena);
    return ok ? 0 : 3;
}
