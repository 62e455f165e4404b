/* Records predicted with conditions answered by force: see mutate.py, which numbers them and reads
 * what is said here, a line for each answer:
 *   condition  no|yes  records that ask it  records moved|unasked|alike|fault  error before  after
 * Errors are sums over the records moved, in percentage points. `all`: over all records; `first`:
 * an answer is done with the first record that moves. Each is forced alone on a few records that
 * answer otherwise; those that moved none of them are forced together, a few at a time, drawn anew
 * for each record, and apart where that moved. Of a step whose three orders the compiler's log
 * estimates (a file .tsv: id, list, depth, post in GiB) those are a record, too. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, mallopt */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "hw/device.h"
#include "models/record.h"
#include "sim/graph/link.h"
#include "sim/engine/budget.h"
#include "sim/engine/validate.h"

enum {
    CONDITIONS = 8192,
    MOST_LINES = 2 * CONDITIONS,
    ALONE = 16, /* records that an answer is first forced on */
    GROUP = 8,  /* answers forced together */
    SECONDS = 1,
    KEPT_BYTES = 1 << 30,
    FAULT_PCT = 100
};
static const rlim_t ROOM_BYTES = (rlim_t)3 << 30;

/* What the sources ask. */
extern unsigned char hb_asked[CONDITIONS];
extern signed char hb_forced[CONDITIONS];
unsigned char hb_asked[CONDITIONS];
signed char hb_forced[CONDITIONS];

struct said {
    double value; /* bytes with the parts measured, or seconds; NAN: not run */
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
    struct outcome *outcome;
    unsigned char (*asked)[CONDITIONS];
    bool all; /* no answer is done with the first record that moves */
};

struct line {
    int condition;
    int answer;
    bool done; /* what it moves is said */
};

/* Answers forced together on one record. */
struct trial {
    struct line *const *group;
    uint32_t n;
    uint32_t record;
};

/* Shared with the child that fills it; of each trial. */
struct outcome {
    uint32_t ended; /* trials */
    struct said said[];
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
        if (!hb_record_read(r->arena, &diag, node, ".", &record))
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

/* The total and what was measured of its parts, or whether it fits. */
static double figure(const struct hb_case *c)
{
    if (c->verdict)
        return 2 * c->fits_predicted + (double)c->word;
    double sum = (double)c->predicted_bytes;
    for (int i = 0; i < HB_PART_COUNT; i++)
        if (c->measured_part[i] >= 0)
            sum += (double)c->predicted_part[i] * (2 + i);
    return sum;
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
    struct said said = {c.speed ? c.predicted_seconds : figure(&c), c.error_pct};
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

static bool is_moved(const struct records *r, const struct trial *trials, uint32_t i)
{
    return fabs(r->outcome->said[i].value - r->plain[trials[i].record].value) > 0;
}

/* In a child. What takes too long falls. */
static void run_trial(struct records *r, const struct trial *t, struct said *out)
{
    const struct itimerval most = {.it_value = {SECONDS, 0}};
    setitimer(ITIMER_PROF, &most, NULL);
    for (uint32_t i = 0; i < t->n; i++)
        hb_forced[t->group[i]->condition] = (signed char)t->group[i]->answer;
    *out = predict(r, t->record);
    for (uint32_t i = 0; i < t->n; i++)
        hb_forced[t->group[i]->condition] = -1;
}

/* In a child of its own, which may fall. How many ended; the next one made it fall. first: done
 * with the first that moves. */
static uint32_t run_trials(struct records *r, const struct trial *trials, uint32_t count,
                           bool first, bool *fell)
{
    int status;
    r->outcome->ended = 0;
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
        for (uint32_t i = 0; i < count; i++) {
            run_trial(r, &trials[i], &r->outcome->said[i]);
            r->outcome->ended++;
            if (first && is_moved(r, trials, i))
                break;
        }
        _exit(0);
    }
    *fell = waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status);
    return r->outcome->ended;
}

static void say(const struct records *r, struct line *l, const char *what, double before,
                double after)
{
    uint32_t asks = 0;
    for (uint32_t i = 0; i < r->count; i++)
        asks += r->asked[i][l->condition] != 0;
    l->done = true;
    if (asks || !l->answer)
        printf("%d %s %u %s %.2f %.2f\n", l->condition, l->answer ? "yes" : "no", asks,
               asks ? what : "unasked", before, after);
}

/* Over count records, alone. Those that move none of them are not done. */
static void force_alone(struct records *r, struct line *l, const struct trial *trials,
                        uint32_t count)
{
    char what[16];
    bool fell;
    uint32_t moved = 0, ended = run_trials(r, trials, count, !r->all, &fell);
    double before = 0, after = 0;
    for (uint32_t i = 0; i < ended; i++)
        if (is_moved(r, trials, i)) {
            moved++;
            before += fabs(r->plain[trials[i].record].error_pct);
            after += fabs(r->outcome->said[i].error_pct);
        }
    snprintf(what, sizeof what, "%u", moved);
    if (fell || moved)
        say(r, l, fell ? "fault" : what, before, after);
}

/* Over all records that answer otherwise, or some of them, far from each other. */
static void force_line(struct records *r, struct line *l, struct trial *trials)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (is_asked_else(r, i, l))
            trials[count++] = (struct trial){&l, 1, i};
    if (!count)
        say(r, l, "alike", 0, 0);
    else if (r->all || count <= ALONE)
        force_alone(r, l, trials, count);
    else {
        for (uint32_t i = 0; i < ALONE; i++)
            trials[i] = trials[(size_t)i * count / ALONE];
        force_alone(r, l, trials, ALONE);
        return;
    }
    if (!l->done)
        say(r, l, "0", 0, 0);
}

/* Who of the group moves the record? Those say so. */
static void part(struct records *r, struct line *const *group, uint32_t n, uint32_t record)
{
    bool fell;
    const struct trial one = {group, n, record};
    if (n == 1)
        force_alone(r, group[0], &one, 1);
    else if (run_trials(r, &one, 1, false, &fell) == 0 || is_moved(r, &one, 0)) {
        part(r, group, n / 2, record);
        part(r, group + n / 2, n - n / 2, record);
    }
}

static void shuffle(struct line **list, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = (uint32_t)random() % i;
        struct line *other = list[k];
        list[k] = list[i - 1];
        list[i - 1] = other;
    }
}

/* Groups of the lines that are not done and that the record answers otherwise. */
static void force_groups(struct records *r, struct line *lines, uint32_t count, uint32_t record,
                         struct line **open, struct trial *trials)
{
    uint32_t n = 0, groups = 0, moved = 0, ended;
    bool fell = true;
    for (uint32_t i = 0; i < count; i++)
        if (!lines[i].done && is_asked_else(r, record, &lines[i]))
            open[n++] = &lines[i];
    shuffle(open, n);
    for (uint32_t i = 0; i < n; i += GROUP)
        trials[groups++] = (struct trial){open + i, n - i < GROUP ? n - i : GROUP, record};
    for (uint32_t at = 0; at < groups && fell; at += ended + 1) {
        ended = run_trials(r, trials + at, groups - at, false, &fell);
        for (uint32_t i = 0; i < ended; i++)
            if (is_moved(r, trials + at, i))
                trials[moved++] = trials[at + i];
        if (fell && at + ended < groups)
            trials[moved++] = trials[at + ended];
    }
    for (uint32_t i = 0; i < moved; i++)
        part(r, trials[i].group, trials[i].n, record);
}

static void force_lines(struct records *r, struct line *lines, uint32_t count)
{
    struct trial *trials = hb_arena_alloc(r->arena, r->count + count, sizeof *trials);
    struct line **open = hb_arena_alloc(r->arena, count, sizeof(struct line *));
    for (uint32_t i = 0; i < count; i++)
        force_line(r, &lines[i], trials);
    for (uint32_t i = 0; i < r->count; i++)
        force_groups(r, lines, count, i, open, trials);
    for (uint32_t i = 0; i < count; i++)
        if (!lines[i].done)
            say(r, &lines[i], "0", 0, 0);
}

static void *shared(size_t count, size_t size)
{
    void *at = mmap(NULL, count * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(3);
    return at;
}

/* As many workers as there are processors, each with lines of its own. False: one fell. */
static bool share_lines(struct records *r, struct line *lines, uint32_t count)
{
    uint32_t workers = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    int status;
    bool ok = true;
    for (uint32_t w = 0; w < workers; w++) {
        pid_t child = fork();
        if (child < 0)
            exit(3);
        if (child)
            continue;
        uint32_t own = 0;
        setvbuf(stdout, NULL, _IOLBF, 0); /* a line at once, beside other workers' */
        r->outcome = shared(r->count + count + 1, sizeof *r->outcome->said);
        for (uint32_t i = w; i < count; i += workers)
            lines[own++] = lines[i];
        force_lines(r, lines, own);
        fflush(stdout);
        _exit(0);
    }
    while (wait(&status) > 0)
        ok = ok && status == 0;
    return ok;
}

static void predict_all(struct records *r)
{
    r->plain = hb_arena_alloc(r->arena, r->count, sizeof *r->plain);
    r->asked = hb_arena_alloc(r->arena, r->count, sizeof *r->asked);
    for (uint32_t i = 0; i < r->count; i++) {
        memset(hb_asked, 0, sizeof hb_asked);
        r->plain[i] = predict(r, i);
        memcpy(r->asked[i], hb_asked, sizeof hb_asked);
    }
}

int main(int argc, char **argv)
{
    struct records r = {.arena = hb_arena_new(), .own = hb_arena_new()};
    static struct line lines[MOST_LINES];
    uint32_t count = 0;
    memset(hb_forced, -1, sizeof hb_forced);
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES); /* the kernel need not clear pages for each record */
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    if (argc < 4 || strtol(argv[2], NULL, 10) >= CONDITIONS)
        return 2;
    r.all = hb_str_same(argv[1], "all");
    for (int i = 3; i < argc; i++)
        read_file(&r, argv[i]);
    if (!r.count)
        return 3;
    predict_all(&r);
    while (count < MOST_LINES && scanf("%d %d", &lines[count].condition, &lines[count].answer) == 2)
        count++;
    bool ok = share_lines(&r, lines, count);
    hb_arena_free(r.own);
    hb_arena_free(r.arena);
    return ok ? 0 : 3;
}
